"""Piecewise-linear functions as ReLU units.

Every gadget is a function of one projection ``t = <a, x>`` with values in ``R^d``, written as a sum of
units ``w σ(<u, x> + b)``.  A feed-forward layer of the paper is ``η x`` plus at most four of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
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
    if any(left >= right for left, right in zip(knots, knots[1:], strict=False)):
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
    grain = half_width / 8
    middle = (centre / grain + rational(1) / 2).floor() * grain
    return plateau(direction, middle - 2 * grain, middle + 2 * grain, 4 * grain, displacement)


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
