"""What each construction costs: the theorems' budgets, the lower bound, and what was really built.

Every budget is written once, with ``+``, ``*`` and a ceiling, and serves as numbers and as sympy expressions.  Counts of parameters
come in three kinds, see `Transformer.num_parameters`; each formula says which one it bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, final

from .layers import Count, Transformer

Ceiling = Callable[[Any, Any], Any]
COUNTS: Final[tuple[Count, ...]] = ("structured", "nonzero", "dense")


class CostError(ValueError):
    """A size is not possible or a construction is unknown; the message names it."""


# ---------------------------------------------------------------- one block


def block_parameters(d: Any, width: Any, rank_A: Any = 0, rank_V: Any = 0) -> Any:
    """Structured parameters of one block: ``1 + w (2 d + 1)`` feed-forward, ``3 + 2 d (r_A + r_V)`` attention.

    Statement: the numbers ``η, U, b, W, ρ``, and for each attention matrix its scale and two ``d × r`` factors.  For width 4 and
    ranks 1 it is ``12 d + 8``.

    >>> block_parameters(10, 4, 1, 1) == 12 * 10 + 8
    True
    """
    return 1 + width * (2 * d + 1) + 3 + 2 * d * (rank_A + rank_V)


def dense_block_parameters(d: Any, width: Any) -> Any:
    """The same block with full ``d × d`` matrices.

    >>> dense_block_parameters(2, 4)
    30
    """
    return 1 + width * (2 * d + 1) + 1 + 2 * d * d


# ---------------------------------------------------------------- budgets


@final
@dataclass(frozen=True, slots=True)
class Budget:
    """Upper bounds of one theorem for given sizes: blocks per phase, and parameters in the three counts."""

    name: str
    statement: str
    phases: Mapping[str, Any]
    structured: Any
    nonzero: Any
    dense: Any

    @property
    def blocks(self) -> Any:
        """The depth, at most."""
        return sum(self.phases.values())


def _alike(name: str, statement: str, phase: str, L: Any, d: Any, rank: int) -> Budget:
    """The budget of ``L`` blocks of width 4, all with attention matrices of one rank."""
    structured = L * block_parameters(d, 4, rank, rank)
    return Budget(name, statement, {phase: L}, structured, structured, L * dense_block_parameters(d, 4))


def _hardmax(N: Any, M: Any, d: Any, omega: Any, ceiling: Ceiling) -> Budget:
    del omega, ceiling
    attending, quiet = block_parameters(d, 4, 1, 1), block_parameters(d, 4)
    structured = (N - 1) * attending + 2 * M * quiet
    phases = {"separation": N - 1, "leaders": M - 1, "collapse": 1, "interpolation": M}
    dense = (2 * M + N - 1) * dense_block_parameters(d, 4)
    return Budget("hardmax", "Theorem 1.6, as built here", phases, structured, structured, dense)


def _hardmax_paper(N: Any, M: Any, d: Any, omega: Any, ceiling: Ceiling) -> Budget:
    del omega, ceiling
    return _alike("hardmax, as stated", "Theorem 1.6, as stated", "all", 2 * M + 2 * N + 1, d, 1)


def _softmax(N: Any, M: Any, d: Any, omega: Any, ceiling: Ceiling) -> Budget:
    del omega, ceiling
    structured = (N - 1) * block_parameters(d, 4, 1, 1) + 2 * M * block_parameters(d, 4) + block_parameters(d, 1)
    phases = {"separation": N - 1, "leaders": M - 1, "collapse": 1, "line": 1, "interpolation": M}
    dense = (2 * M + N - 1) * dense_block_parameters(d, 4) + dense_block_parameters(d, 1)
    return Budget("softmax", "Theorem 1.8, as built here", phases, structured, structured, dense)


def _softmax_paper(N: Any, M: Any, d: Any, omega: Any, ceiling: Ceiling) -> Budget:
    del omega, ceiling
    return _alike("softmax, as stated", "Theorem 1.8, as stated", "all", 2 * M + 3 * N, d, 1)


def _mean(N: Any, M: Any, d: Any, omega: Any, ceiling: Ceiling) -> Budget:
    del omega
    knots, delivery = ceiling(N - 1, 4), ceiling(M, 4)
    phases = {"project": 1, "labels": knots, "thresholds": knots, "merge": 1, "delivery": delivery}
    L = 2 * knots + delivery + 2
    # The one attention layer has V of rank one, wherever it sits.
    structured = (
        block_parameters(d, 1) + block_parameters(d, 2) + 2 * d + (2 * knots + delivery) * block_parameters(d, 4)
    )
    # Units: d + 2, three for every knot, six, d + 2 for every delivered point; V has 2; η and ρ of every block.
    nonzero = (d + 2) + 3 * 2 * (N - 1) + 6 + (d + 2) * M + 2 + 2 * L
    return Budget("mean", "Theorem S", phases, structured, nonzero, L * dense_block_parameters(d, 4))


def _resnet_tokens(N: Any, M: Any, d: Any, omega: Any, ceiling: Ceiling) -> Budget:
    del N, M, ceiling
    return _alike("resnet, by tokens", "one hat per token", "tokens", omega, d, 0)


def _resnet_labels(N: Any, M: Any, d: Any, omega: Any, ceiling: Ceiling) -> Budget:
    del N
    knots, delivery = ceiling(omega, 4), ceiling(M, 4)
    phases = {"project": 1, "labels": knots, "merge": 1, "delivery": delivery}
    L = knots + delivery + 2
    structured = 2 * block_parameters(d, 1) + (knots + delivery) * block_parameters(d, 4)
    nonzero = (d + 2) + 3 * omega + 3 + (d + 2) * M + 2 * L
    return Budget(
        "resnet, by labels", "tokens, then labels", phases, structured, nonzero, L * dense_block_parameters(d, 4)
    )


_BUDGETS: Final = {
    "hardmax": _hardmax,
    "hardmax, as stated": _hardmax_paper,
    "softmax": _softmax,
    "softmax, as stated": _softmax_paper,
    "mean": _mean,
    "resnet, by tokens": _resnet_tokens,
    "resnet, by labels": _resnet_labels,
}
NAMES: Final = tuple(_BUDGETS)


def budget(name: str, *, N: int, M: int, d: int, omega: int | None = None) -> Budget:
    """The budget of a construction, as numbers.

    Statement: ``N`` pairs, ``M`` target tokens, tokens in ``R^d``; ``omega`` is the number of different input tokens, which only the networks
    without attention depend on.  The budgets hold for all data of these sizes (for ``resnet`` where a map of tokens exists).

    Exactness: exact.

    Raises: `CostError`.

    Example:

    >>> budget("mean", N=12, M=25, d=8).blocks, budget("hardmax, as stated", N=12, M=25, d=8).blocks
    (15, 75)
    """
    if name not in _BUDGETS:
        raise CostError(f"name is {name!r}; one of {', '.join(map(repr, NAMES))} is required")
    for field, value, least in (("N", N, 1), ("M", M, N), ("d", d, 2)):
        if type(value) is not int or value < least:
            raise CostError(f"{field} is {value!r}; an integer of at least {least} is required")
    if name.startswith("resnet") and (omega is None or omega < 1):
        raise CostError(f"omega is {omega!r}; the number of different tokens is required for {name!r}")
    return _BUDGETS[name](N, M, d, omega, lambda a, b: -(-a // b))


def symbolic(name: str) -> Budget:
    """The same budget as sympy expressions in ``N``, ``M``, ``d`` and ``Omega``.

    Raises: `CostError`; `ImportError` without sympy.

    >>> symbolic("mean").blocks
    ceiling(M/4) + 2*ceiling(N/4 - 1/4) + 2
    """
    import sympy

    if name not in _BUDGETS:
        raise CostError(f"name is {name!r}; one of {', '.join(map(repr, NAMES))} is required")
    N, M, d, omega = sympy.symbols("N M d Omega", positive=True, integer=True)
    found = _BUDGETS[name](N, M, d, omega, lambda a, b: sympy.ceiling(sympy.expand(a / sympy.Integer(b))))
    phases = {phase: sympy.sympify(blocks) for phase, blocks in found.phases.items()}
    return Budget(name, found.statement, phases, *(sympy.expand(getattr(found, count)) for count in COUNTS))


def ratio_to_lower_bound(name: str, count: Count = "nonzero") -> Any:
    """The limit of ``P / (d M)`` as ``d → ∞``, with ceilings rounded down: a sympy expression in ``N``, ``M``, ``Omega``.

    Statement: all structured and non-zero budgets are linear in ``d``; this is the coefficient of ``d`` over ``M``.

    >>> ratio_to_lower_bound("mean")
    1 + 1/M
    """
    import sympy

    if count == "dense":
        raise CostError('count is "dense"; dense counts grow with the square of d')
    expression = getattr(symbolic(name), count)
    M, d = (s for label in ("M", "d") for s in [sympy.Symbol(label, positive=True, integer=True)])
    leading = expression.coeff(d, 1).replace(sympy.ceiling, lambda x: x)
    return sympy.expand(leading / M)


# ---------------------------------------------------------------- lower bounds


def parameter_lower_bound(M: int, d: int) -> int:
    """``d M``: a family of transformers that reaches every choice of targets has at least so many real parameters.

    Statement: the lower bound of the sharper theorem's chapter; it holds for real parameters, so for each of the counts.

    >>> parameter_lower_bound(3, 2)
    6
    """
    return d * M


def block_lower_bound(M: int, d: int, width: int = 4, rank: int = 1) -> int:
    """``⌈d M / (parameters of one block)⌉``: no family of this width and these ranks reaches all targets with fewer blocks.

    >>> block_lower_bound(100, 10)
    8
    """
    one_block: int = block_parameters(d, width, rank, rank)
    return -(-parameter_lower_bound(M, d) // one_block)


# ---------------------------------------------------------------- what was built


@final
@dataclass(frozen=True, slots=True)
class Measured:
    """The sizes of a transformer: blocks and parameters, in all and for each phase."""

    blocks: Mapping[str, int]
    parameters: Mapping[Count, Mapping[str, int]]

    def total(self, count: Count) -> int:
        """All parameters in one of the counts."""
        return sum(self.parameters[count].values())


def measure(T: Transformer) -> Measured:
    """Blocks and parameters of each phase, counted on the transformer itself.

    >>> from .layers import Block
    >>> measure(Transformer([Block.identity(2)])).total("nonzero")
    2
    """
    blocks = T.phases
    counts: dict[Count, dict[str, int]] = {count: dict.fromkeys(blocks, 0) for count in COUNTS}
    for k, block in enumerate(T.blocks):
        for count in COUNTS:
            counts[count][T.phase_of(k)] += block.num_parameters(count)
    return Measured(blocks, counts)


@final
@dataclass(frozen=True, slots=True)
class Work:
    """Multiplications of one forward pass on ``n`` tokens under hardmax."""

    feed_forward: int
    attention: int

    @property
    def total(self) -> int:
        return self.feed_forward + self.attention


def evaluation_work(T: Transformer, n: int) -> Work:
    """Multiplications in a hardmax pass that uses the structure of the layers.

    Statement: a feed-forward layer takes ``2 n d w``.  An identity attention takes none.  With ``A`` of rank one, queries and keys take
    ``2 n d`` and only signs and extremes matter; with ``A = 0`` there are no scores; otherwise scores take ``n² (d + r)`` and queries and keys
    ``n d (1 + 2 r)``.  ``V`` of rank ``r`` takes ``2 n d r``, and means take additions only.

    >>> from .layers import Block
    >>> evaluation_work(Transformer([Block.identity(2)]), 10).total
    0
    """
    if n < 1:
        raise CostError(f"n is {n}; a sequence has at least one token")
    d, feeding, attending = T.d, 0, 0
    for block in T.blocks:
        feeding += 2 * n * d * block.feed_forward.width
        A, V = block.attention.A, block.attention.V
        if V.is_zero:
            continue
        attending += 2 * n * d * V.rank
        if A.is_zero:
            continue
        if A.scale == 0 and A.rank == 1:
            attending += 2 * n * d
        else:
            attending += n * n * (d + A.rank) + n * d * (1 + 2 * A.rank)
    return Work(feeding, attending)
