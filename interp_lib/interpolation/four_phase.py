"""Theorem 1.6: separation, leaders, collapse, interpolation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from ..fields import Rational, rational
from ..layers import Transformer
from ..sequences import Dataset
from .delivery import deliver
from .leaders import Leaders, place_leaders
from .separation import Separation, separate


@final
@dataclass(frozen=True, slots=True)
class FourPhases:
    """A hardmax interpolant together with the choices that made it, for those who want to look inside."""

    separation: Separation
    leaders: Leaders
    transformer: Transformer


def four_phases(data: Dataset) -> FourPhases:
    """The construction of Theorem 1.6 with all its choices; `hardmax_interpolant` keeps the transformer.

    >>> parts = four_phases(Dataset([[[0, 0], [1, 0]]], [[[5, 5]]]))
    >>> parts.transformer.phases
    {'separation': 0, 'leaders': 0, 'collapse': 1, 'interpolation': 1}
    """
    data = data.as_sets()
    separation = separate(data)
    leaders = place_leaders(separation, data.m, largest_coordinate(data))
    places = [place for j in range(data.N) for place in leaders.places.of(j)]
    targets = [target for matrix in data.output_matrices for target in matrix.tolist()]
    delivery = deliver(places, targets, leaders.places.clear)
    transformer = Transformer(
        separation.blocks + leaders.blocks + delivery,
        {
            "separation": len(separation.blocks),
            "leaders": data.M - 1,
            "collapse": 1,
            "interpolation": data.M,
        },
    )
    return FourPhases(separation, leaders, transformer)


def hardmax_interpolant(data: Dataset, pad: bool = False) -> Transformer:
    """A hardmax transformer with ``T(X_j) = Y_j`` for every ``j``, exactly.

    Statement: Theorem 1.6.  Width at most 4, at most ``2 M + N - 1`` blocks (with ``pad=True`` exactly
    ``2 M + 2 N + 1``), at most ``12 d + 8`` structured parameters per block; none of this depends on
    the lengths ``n_j``.

    Shapes: acts on sequences ``(n, d)`` with ``d = data.d``.

    Exactness: exact over Q; ``T(X_j) = Y_j`` as sets.

    Cost: ``O(K Σ n_j)`` for ``K ≤ N - 1`` separation blocks, and sorting; ``O(d L)`` numbers are stored.

    Raises: nothing beyond what `Dataset` has already checked.

    Example:

    >>> data = Dataset([[[0, 0], [1, 0]], [[1, 0], [2, 1]]], [[[5, 5]], [[6, 5], [5, 6]]])
    >>> T = hardmax_interpolant(data)
    >>> T.depth, T.width, hardmax_interpolant(data, pad=True).depth
    (7, 4, 11)
    """
    transformer = four_phases(data).transformer
    return transformer.padded(2 * data.M + 2 * data.N + 1) if pad else transformer


def largest_coordinate(data: Dataset) -> Rational:
    """The largest absolute value of a coordinate of a target; 1 if all are zero.

    >>> largest_coordinate(Dataset([[[0, 0]]], [[[5, -7]]]))
    7
    """
    largest = max(max(map(abs, matrix.entries())) for matrix in data.output_matrices)
    return largest if largest > 0 else rational(1)
