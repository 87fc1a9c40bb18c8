"""What the interpolation explorers share: choosing data, following tokens block by block, files to save."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, final

from ..certificate_files import certificate_text
from ..certificates import Certificate
from ..data_files import data_text
from ..evaluate import states
from ..examples import random_dataset, running_example
from ..fields import EXACT, RationalMatrix, fraction, rational
from ..files import to_text
from ..layers import Transformer
from ..sequences import Dataset
from .base import Parameter, choice, integer
from .drawing import Pair

EXAMPLE, RANDOM = "running example", "random data"
Cloud = tuple[tuple[float, ...], ...]


def chosen_data(source: str, N: int, n: int, m: Sequence[int], d: int, seed: int, *, largest: int = 4) -> Dataset:
    """The running example, or random data of the chosen sizes.

    >>> chosen_data(EXAMPLE, 1, 1, [1], 2, 0) == running_example()
    True
    """
    return running_example() if source == EXAMPLE else random_dataset(N, n, m, d, seed, largest=largest)


def chosen_targets(targets: dict[str, int], N: int) -> tuple[int, ...]:
    """The values of the controls ``m1, …, mN``.

    >>> chosen_targets({"m1": 2, "m2": 3, "m3": 1}, 2)
    (2, 3)
    """
    return tuple(targets[f"m{j}"] for j in range(1, N + 1))


def data_controls(
    source: str, N: tuple[int, int], n: tuple[int, int], m: Sequence[int], most_targets: int, most_d: int
) -> tuple[Parameter, ...]:
    """The controls for the data: ``N`` and ``n`` with their largest and first values, ``m`` the first number of targets of each sequence.

    >>> [p.name for p in data_controls(EXAMPLE, (2, 1), (3, 2), [1, 1], 2, 4)]
    ['source', 'N', 'n', 'm1', 'm2', 'd', 'seed']
    """
    random: dict[str, Any] = {"visible_when": ("source", (RANDOM,))}
    return (
        choice("source", "data", (EXAMPLE, RANDOM), source),
        integer("N", "sequences N", 1, *N, **random),
        integer("n", "tokens per sequence", 1, *n, **random),
        *(
            integer(f"m{j}", f"targets m{chr(0x2080 + j)}", 1, most_targets, first, visible_when=("N", j))
            for j, first in enumerate(m, start=1)
        ),
        integer("d", "dimension d", 2, most_d, 2, **random),
        integer("seed", "seed", 0, 99, 0, **random),
    )


@final
class Steps:
    """The exact tokens of every sequence after every block, computed when they are asked for."""

    __slots__ = ("_passes", "_seen")

    def __init__(self, T: Transformer, data: Dataset) -> None:
        self._passes = [states(T, X, EXACT) for X in data.inputs]
        self._seen: list[tuple[RationalMatrix, ...]] = []

    def after(self, block: int) -> tuple[RationalMatrix, ...]:
        """One matrix per sequence.

        >>> from ..layers import Block
        >>> steps = Steps(Transformer([Block.identity(2)]), Dataset([[[1, 2]]], [[[0, 0]]]))
        >>> steps.after(1)[0].tolist()
        [[1, 2]]
        """
        while len(self._seen) <= block:
            self._seen.append(tuple(next(s for s in one if s.layer != "feed_forward").tokens for one in self._passes))
        return self._seen[block]


def as_floats(tokens: Iterable[Iterable[Any]]) -> Cloud:
    """Tokens as rows of floats, for drawing only.

    >>> as_floats([[rational(1) / 2, 3]])
    ((0.5, 3.0),)
    """
    return tuple(tuple(float(fraction(rational(v))) for v in token) for token in tokens)


def plane(matrices: Iterable[RationalMatrix]) -> tuple[Cloud, ...]:
    """The first two coordinates of the tokens of each sequence, rounded for drawing."""
    return tuple(as_floats([[tokens[i, 0], tokens[i, 1]] for i in range(tokens.nrows())]) for tokens in matrices)


def flat(token: Sequence[float]) -> Pair:
    """The projection that is drawn: the first two coordinates.

    >>> flat((1.0, 2.0, 3.0))
    (1.0, 2.0)
    """
    return token[0], token[1]


def downloads(data: Dataset, T: Transformer, certificate: Certificate) -> dict[str, Callable[[], str]]:
    """The files of an explorer: data, weights, and the certificate; `python -m interp_lib check` takes all three."""
    return {
        "data.json": lambda: data_text(data),
        "transformer.json": lambda: to_text(T),
        "certificate.json": lambda: certificate_text(certificate, T, data),
    }
