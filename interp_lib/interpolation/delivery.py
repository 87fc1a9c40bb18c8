"""Phase 4: interpolation.  One flat-topped hat per point moves it from its place to its target.

All places lie outside a slab ``|x_1| ≤ clear`` that contains every target, with different first
coordinates.  So the first coordinate alone isolates a point from all others, delivered or not.  Points
leave from the outside in, and hats on the left read ``-x_1``: the points that remain, and all
delivered ones, then lie where every unit of the hat is zero, not merely where they cancel.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..fields import Rational, power_of_two_below, rational
from ..gadgets import feed_forward, flat_hat
from ..layers import Block

Point = Sequence[Rational]


def deliver(places: Sequence[Point], targets: Sequence[Point], clear: Rational) -> tuple[Block, ...]:
    """One block per point: ``places[k]`` goes to ``targets[k]``, nothing else moves.

    Statement: if the first coordinates of the places are different and larger than ``clear`` in size or
    equal to it, and those of the targets are less than ``clear`` in size, the composition maps each
    place to its target exactly.

    Shapes: ``places`` and ``targets`` are ``(M, d)``.

    Exactness: exact over Q.

    Cost: ``M`` blocks of four units; a sort.

    >>> one = rational(1)
    >>> len(deliver([[4 * one, one], [-4 * one, one]], [[one, one], [one, 0 * one]], 2 * one))
    2
    """
    d = len(places[0])
    bound = max(max(abs(y[0]) for y in targets), clear / 2)
    blocks = []
    for sign in (1, -1):
        side = sorted(
            (
                (sign * place[0], place, target)
                for place, target in zip(places, targets, strict=True)
                if sign * place[0] > 0
            ),
            key=lambda entry: entry[0],
            reverse=True,
        )
        inner = [*(distance for distance, _, _ in side[1:]), bound]
        direction = (rational(sign), *(rational(0),) * (d - 1))
        for (distance, place, target), following in zip(side, inner, strict=False):
            displacement = [y - s for y, s in zip(target, place, strict=True)]
            half_width = power_of_two_below(distance - following)
            blocks.append(Block.feeding(feed_forward(flat_hat(direction, distance, half_width, displacement), d)))
    return tuple(blocks)
