"""Piecewise-linear functions as ReLU units.

Every gadget is a function of one projection ``t = <a, x>`` with values in ``R^d``, written as a sum of
units ``w σ(<u, x> + b)``.  A feed-forward layer of the paper is ``η x`` plus at most four of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import final

from .fields import Rational, rational
from .layers import FeedForward

Point = Sequence[Rational]


class GadgetError(ValueError):
    """A gadget is not defined for the given knots or widths."""


@final
@dataclass(frozen=True, slots=True)
class Unit:
    """One ReLU unit ``w σ(<u, x> + b)``: a row ``u`` of ``U``, a bias ``b``, a column ``w`` of ``W``."""

    u: tuple[Rational, ...]
    b: Rational
    w: tuple[Rational, ...]


Units = tuple[Unit, ...]


def piecewise_linear(direction: Point, knots: Sequence[Rational], values: Sequence[Point]) -> Units:
    """The function of ``t = <direction, x>`` through the points ``(knots[i], values[i])``.

    Statement: linear between knots, constant to the left of the first and to the right of the last;
    the first value must be zero.  With ``s_i = (values[i+1] - values[i]) / (knots[i+1] - knots[i])``
    and ``s_{-1} = s_last = 0`` it is ``Σ_i (s_i - s_{i-1}) σ(t - knots[i])``.

    Shapes: ``direction`` ``(d,)``, ``knots`` ``(k,)`` increasing, ``values`` ``(k, d)``.

    Exactness: exact over Q.

    Cost: ``k`` units.

    Raises: `GadgetError` for knots that do not increase, or a first value that is not zero.

    Example:

    >>> zero, one = rational(0), rational(1)
    >>> [unit.w for unit in piecewise_linear([one, zero], [zero, one], [[zero, zero], [one, zero]])]
    [(1, 0), (-1, 0)]
    """
    if len(knots) != len(values):
        raise GadgetError(f"values has {len(values)} points but knots has {len(knots)}; one value per knot is required")
    if any(left >= right for left, right in pairwise(knots)):
        raise GadgetError(f"knots must increase strictly, got {[str(k) for k in knots]}")
    if any(v != 0 for v in values[0]):
        raise GadgetError("values[0] must be zero: units vanish to the left of the first knot")
    still = (rational(0),) * len(values[0])
    slopes = [
        tuple((after - before) / (right - left) for before, after in zip(low, high, strict=True))
        for left, right, low, high in zip(knots, knots[1:], values, values[1:], strict=False)
    ]
    turns = zip(knots, [still, *slopes], [*slopes, still], strict=True)
    row = tuple(direction)
    return tuple(
        Unit(row, -knot, tuple(right - left for left, right in zip(before, after, strict=True)))
        for knot, before, after in turns
    )


def hat(direction: Point, centre: Rational, half_width: Rational, displacement: Point) -> Units:
    """``displacement`` at ``t = centre``, zero outside ``(centre - half_width, centre + half_width)``.

    Statement: ``(σ(t - c + r) - 2 σ(t - c) + σ(t - c - r)) / r · displacement`` with ``t = <direction, x>``.

    Shapes: ``direction`` and ``displacement`` ``(d,)``.

    Exactness: exact over Q.

    Cost: three units.

    Raises: `GadgetError` unless ``half_width > 0``.

    Example:

    >>> one = rational(1)
    >>> [str(unit.w[0]) for unit in hat([one], 2 * one, one / 2, [one])]
    ['2', '-4', '2']
    """
    if not half_width > 0:
        raise GadgetError(f"half_width must be positive, got {half_width}")
    still = [0 * v for v in displacement]
    knots = [centre - half_width, centre, centre + half_width]
    return piecewise_linear(direction, knots, [still, displacement, still])


def plateau(direction: Point, left: Rational, right: Rational, ramp: Rational, displacement: Point) -> Units:
    """``displacement`` for ``t`` in ``[left, right]``, zero outside ``(left - ramp, right + ramp)``.

    Statement: ``(σ(t - l + w) - σ(t - l) - σ(t - r) + σ(t - r - w)) / w · displacement``.

    Shapes: ``direction`` and ``displacement`` ``(d,)``.

    Exactness: exact over Q.

    Cost: four units.

    Raises: `GadgetError` unless ``left < right`` and ``ramp > 0``.

    Example:

    >>> one = rational(1)
    >>> [str(unit.b) for unit in plateau([one], one, 2 * one, one / 2, [one])]
    ['-1/2', '-1', '-2', '-5/2']
    """
    if not ramp > 0:
        raise GadgetError(f"ramp must be positive, got {ramp}")
    still = [0 * v for v in displacement]
    return piecewise_linear(
        direction, [left - ramp, left, right, right + ramp], [still, displacement, displacement, still]
    )


def flat_hat(direction: Point, centre: Rational, half_width: Rational, displacement: Point) -> Units:
    """A plateau that contains ``t = centre``, zero outside ``(centre - half_width, centre + half_width)``.

    A hat multiplies the rounding error of ``t`` by its slope.  On a flat top the two active units
    differ by exactly the ramp; and since the four knots are multiples of ``half_width / 8``, dyadic for
    a dyadic half-width, that stays true in float64.  With ``r`` the half-width and ``c`` the multiple of
    ``r/8`` nearest to the centre, the plateau is ``[c - r/4, c + r/4]`` and its ramps have width ``r/2``.

    >>> one = rational(1)
    >>> [str(unit.b) for unit in flat_hat([one], 2 * one, one, [one])]
    ['-5/4', '-7/4', '-9/4', '-11/4']
    """
    _, left, right, end = flat_knots(centre, half_width)
    return plateau(direction, left, right, end - right, displacement)


def flat_knots(centre: Rational, half_width: Rational) -> tuple[Rational, Rational, Rational, Rational]:
    """The knots ``l - w, l, r, r + w`` of a flat top: multiples of ``half_width / 8``.

    Statement: with ``ρ`` the half-width and ``c`` the multiple of ``ρ/8`` nearest to the centre they are
    ``c - 3ρ/4, c - ρ/4, c + ρ/4, c + 3ρ/4``.  As ``|c - centre| ≤ ρ/16``, the centre is at least ``3ρ/16`` inside
    ``[l, r]``, and ``[l - w, r + w]`` stays at least ``3ρ/16`` inside ``(centre - ρ, centre + ρ)``: the gadget
    tolerates a drift of ``3ρ/16`` of every token.

    >>> flat_knots(rational(2), rational(1))
    (5/4, 7/4, 9/4, 11/4)
    """
    if not half_width > 0:
        raise GadgetError(f"half_width must be positive, got {half_width}")
    grain = half_width / 8
    middle = (centre / grain + rational(1) / 2).floor() * grain
    return middle - 6 * grain, middle - 2 * grain, middle + 2 * grain, middle + 6 * grain


def collapse_to(direction: Point, knots: Sequence[Rational], target: Point) -> Units:
    """On the line ``t · direction``, with ``|direction| = 1``: added to the identity, the constant ``target`` between the inner knots.

    Statement: with four knots ``l - w, l, r, r + w`` and ``x = t · direction``, the map ``x + units(x)`` is ``target``
    for ``t`` in ``[l, r]`` (the slope ``-direction`` cancels the identity) and ``x`` outside ``(l - w, r + w)``.

    Shapes: ``knots`` ``(4,)`` increasing, ``direction`` and ``target`` ``(d,)``.

    Exactness: exact over Q.

    Cost: four units.

    Raises: `GadgetError` for knots that do not increase.

    Example:

    >>> zero, one = rational(0), rational(1)
    >>> [str(unit.w[0]) for unit in collapse_to([one, zero], [one, 2 * one, 3 * one, 4 * one], [zero, one])]
    ['-2', '1', '4', '-3']
    """
    still = [0 * v for v in target]
    reached = [[y - t * v for y, v in zip(target, direction, strict=True)] for t in knots[1:-1]]
    return piecewise_linear(direction, knots, [still, *reached, still])


def through_points(
    direction: Point, knots: Sequence[Rational], places: Sequence[Rational], values: Sequence[Point]
) -> Units:
    """The function of ``t = <direction, x>`` with the given knots that is zero left of them and takes prescribed values.

    Statement: for ``knots[0] < places[0] ≤ knots[1] < places[1] ≤ …`` there is exactly one sum ``Σ_i w_i σ(t - knots[i])``
    that equals ``values[i]`` at ``places[i]`` for every ``i``.  The system is triangular, because unit ``l`` vanishes at
    ``places[i]`` for ``l > i``: ``w_i = (values[i] - Σ_{l<i} w_l (places[i] - knots[l])) / (places[i] - knots[i])``.
    To the right of the last place the function goes on with its last slope.

    Shapes: ``direction`` ``(d,)``, ``knots`` and ``places`` ``(k,)``, ``values`` ``(k, d)``.

    Exactness: exact over Q.

    Cost: ``k`` units, found in ``O(k² d)`` operations.

    Raises: `GadgetError` for different lengths, or knots and places that do not alternate.

    Example:

    >>> zero, one = rational(0), rational(1)
    >>> units = through_points([one], [zero, 2 * one], [one, 3 * one], [[one], [-one]])
    >>> [str(unit.w[0]) for unit in units]
    ['1', '-4']
    """
    if not len(knots) == len(places) == len(values):
        raise GadgetError(
            f"knots, places and values have {len(knots)}, {len(places)} and {len(values)} entries; "
            "one place and one value per knot are required"
        )
    order = [*zip(knots, places, strict=True)]
    if any(k >= p for k, p in order) or any(p > k for (_, p), (k, _) in pairwise(order)):
        raise GadgetError(
            "knots and places must alternate: each place right of its own knot and not right of the next one; "
            f"got knots {[str(k) for k in knots]} and places {[str(p) for p in places]}"
        )
    row = tuple(direction)
    weights: list[tuple[Rational, ...]] = []
    for knot, place, value in zip(knots, places, values, strict=True):
        missing = list(value)
        for earlier, weight in zip(knots, weights, strict=False):
            missing = [v - w * (place - earlier) for v, w in zip(missing, weight, strict=True)]
        weights.append(tuple(v / (place - knot) for v in missing))
    return tuple(Unit(row, -knot, weight) for knot, weight in zip(knots, weights, strict=True))


def translation(displacement: Point) -> Units:
    """``displacement`` everywhere: one unit with ``u = 0`` and ``b = 1``.

    >>> translation([rational(3), rational(4)])
    (Unit(u=(0, 0), b=1, w=(3, 4)),)
    """
    return (Unit((rational(0),) * len(displacement), rational(1), tuple(displacement)),)


def feed_forward(units: Iterable[Unit], d: int, eta: int = 1) -> FeedForward:
    """The layer ``x ↦ η x + Σ units``.

    >>> feed_forward(translation([rational(3), rational(4)]), 2).W
    ((Fraction(3, 1),), (Fraction(4, 1),))
    """
    listed = tuple(units)
    return FeedForward(
        eta,
        [unit.u for unit in listed],
        [unit.b for unit in listed],
        [[unit.w[i] for unit in listed] for i in range(d)],
    )
