"""Piecewise-linear functions of one number, a few knots per block.

Theorem S and the network without attention do all their work on one coordinate.  Three tasks recur: choose
a short number inside an open interval, choose a piecewise-linear function that passes through given
windows, and carry points of a line to targets in ``R^d``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from ..fields import Rational, power_of_two_above, power_of_two_below, rational
from ..gadgets import Unit, feed_forward
from ..layers import Block

Point = Sequence[Rational]


class WidthError(ValueError):
    """The feed-forward width is not an integer, or too small for the construction."""


def check_width(width: int, least: int) -> int:
    """The width itself, if it is an integer ``≥ least``.

    >>> check_width(4, 1)
    4
    """
    if isinstance(width, bool) or not isinstance(width, int):
        raise WidthError(f"width: expected an integer, got {width!r}")
    if width < least:
        raise WidthError(f"width is {width}; at least {least} is required")
    return width


def dyadic_between(low: Rational, high: Rational) -> Rational:
    """A number strictly between ``low < high`` with a denominator that is a power of two, as small as possible.

    Statement: the result is a multiple of the largest power of two that has a multiple in the open interval
    and is at most four times its length.  Such numbers keep weights short wherever a condition is open.

    >>> dyadic_between(rational(9) / 10, rational(13) / 10), dyadic_between(rational(1) / 3, rational(2) / 5)
    (1, 3/8)
    """
    step = 2 * power_of_two_above(high - low)
    while True:
        value = ((low / step).floor() + 1) * step
        if value < high:
            return value
        step /= 2


# ---------------------------------------------------------------- functions of one number


@final
@dataclass(frozen=True, slots=True)
class Knot:
    """One unit ``turn · σ(t - at)``: the slope changes by ``turn`` where ``t = at``."""

    at: Rational
    turn: Rational


@final
@dataclass(frozen=True, slots=True)
class Window:
    """The function should have a value strictly between ``low`` and ``high`` at ``at``."""

    at: Rational
    low: Rational
    high: Rational


def evaluate(constant: Rational, knots: Sequence[Knot], at: Rational) -> Rational:
    """``constant + Σ turn · σ(at - knot)``.

    >>> evaluate(rational(1), [Knot(rational(2), rational(3))], rational(4))
    7
    """
    return sum((k.turn * (at - k.at) for k in knots if at > k.at), constant)


def evaluate_at(constant: Rational, knots: Sequence[Knot], places: Sequence[Rational]) -> list[Rational]:
    """The same for many places at once, in one sweep from left to right.

    >>> evaluate_at(rational(1), [Knot(rational(2), rational(3))], [rational(4), rational(0)])
    [7, 1]
    """
    waiting = sorted(knots, key=lambda knot: knot.at, reverse=True)
    slope, value = rational(0), constant
    values = [constant] * len(places)
    for i in sorted(range(len(places)), key=places.__getitem__):
        # On the present piece the function is value + slope · t.
        while waiting and waiting[-1].at < places[i]:
            knot = waiting.pop()
            slope += knot.turn
            value -= knot.turn * knot.at
        values[i] = value + slope * places[i]
    return values


def through_windows(windows: Sequence[Window]) -> tuple[Rational, tuple[Knot, ...]]:
    """A constant and at most ``len(windows) - 1`` knots whose function passes through every window.

    Statement: constant to the left of the first knot; a knot only where the present straight piece
    would miss the next window.  A new piece starts just right of the last window that was met; of the slopes that
    meet the next windows, one is taken that meets as many in a row as possible.

    Shapes: windows with increasing ``at`` and ``low < high``.

    Exactness: exact over Q; for any windows all knots and turns are dyadic.

    Cost: linear in the number of windows.

    >>> one = rational(1)
    >>> constant, knots = through_windows([Window(0 * one, 0 * one, one), Window(one, 4 * one, 5 * one)])
    >>> constant, knots
    (1/2, (Knot(at=1/4, turn=5),))
    """
    low, high, at = _longest_run(windows, 0, None)
    constant = value = dyadic_between(low, high)
    slope, knots = rational(0), []
    here = windows[at - 1].at
    while at < len(windows):
        # Leave the present piece soon: it must not run far beyond the window that it was made for.
        reach = (windows[at].at - here) / 2
        if slope != 0:
            reach = min(reach, 1 / (4 * abs(slope)))
        start = dyadic_between(here, here + reach)
        value += slope * (start - here)
        low, high, following = _longest_run(windows, at, (start, value))
        turned = dyadic_between(low, high)
        knots.append(Knot(start, turned - slope))
        here, slope, at = windows[following - 1].at, turned, following
        value += slope * (here - start)
    return constant, tuple(knots)


def _longest_run(
    windows: Sequence[Window], first: int, pivot: tuple[Rational, Rational] | None
) -> tuple[Rational, Rational, int]:
    """Bounds for the slope through ``pivot`` (without one: for a constant) that meets windows ``first, …, last - 1``."""
    low = high = None
    for at in range(first, len(windows)):
        window = windows[at]
        if pivot is None:
            least, most = window.low, window.high
        else:
            run = window.at - pivot[0]
            least, most = (window.low - pivot[1]) / run, (window.high - pivot[1]) / run
        new_low = least if low is None or least > low else low
        new_high = most if high is None or most < high else high
        if not new_low < new_high:
            assert low is not None  # a single window is not empty
            assert high is not None
            return low, high, at
        low, high = new_low, new_high
    assert low is not None  # there is a window
    assert high is not None
    return low, high, len(windows)


def axis(d: int, index: int = 0, length: Rational | None = None) -> tuple[Rational, ...]:
    """``length`` times the unit vector number ``index`` of ``R^d``.

    >>> axis(3, 1)
    (0, 1, 0)
    """
    return tuple((rational(1) if length is None else length) if c == index else rational(0) for c in range(d))


def knot_units(knots: Sequence[Knot], d: int, read: int, write: int) -> tuple[Unit, ...]:
    """The units that read coordinate ``read`` and add to coordinate ``write``.

    >>> knot_units([Knot(rational(2), rational(3))], 2, 1, 0)
    (Unit(u=(0, 1), b=-2, w=(3, 0)),)
    """
    return tuple(Unit(axis(d, read), -k.at, axis(d, write, k.turn)) for k in knots)


def in_chunks(items: Sequence[Knot], size: int) -> list[Sequence[Knot]]:
    """Consecutive pieces of ``size`` items, the last one possibly shorter.

    >>> [len(chunk) for chunk in in_chunks([Knot(rational(k), rational(1)) for k in range(5)], 4)]
    [4, 1]
    """
    return [items[start : start + size] for start in range(0, len(items), size)]


# ---------------------------------------------------------------- delivery


@final
@dataclass(frozen=True, slots=True)
class Cluster:
    """Tokens on the line ``R e_1`` with first coordinate in ``[low, high]``, and the one point they all go to."""

    low: Rational
    high: Rational
    target: tuple[Rational, ...]

    @property
    def knots(self) -> int:
        """A point costs one unit, an interval two: the second makes the map constant on it."""
        return 1 if self.low == self.high else 2


def deliver_from_right(clusters: Sequence[Cluster], width: int, floor: Rational) -> tuple[Block, ...]:
    """Residual blocks that send every cluster to its target, the rightmost ones first.

    Statement: let the clusters be disjoint, to the right of ``floor``, and every target have first
    coordinate at most ``floor``.  Then the composition of the blocks maps every ``x e_1`` with ``x`` in a cluster to the
    target of that cluster.  Proof: one block holds ``σ(x_1 - b_1) w_1 + …`` with ``b_1 < b_2 < …`` and ``b_1`` at least as
    large as every point still to come and as ``floor``; so it moves nothing else, and what was delivered
    earlier stays.  The value at the next point is changed by the next ``w`` alone: a triangular system.

    Shapes: targets ``(d,)``.

    Exactness: exact over Q.

    Cost: with points only, ``⌈M / width⌉`` blocks; with intervals only, ``⌈M / ⌊width / 2⌋⌉``.  Each unit has ``d + 2``
    non-zero parameters at most.

    Example:

    >>> one = rational(1)
    >>> len(deliver_from_right([Cluster(k * one, k * one, (0 * one, one)) for k in range(1, 6)], 4, 0 * one))
    2
    """
    d = len(clusters[0].target)
    waiting = sorted(clusters, key=lambda cluster: cluster.low)
    blocks = []
    while waiting:
        start, room = len(waiting), width
        while start and waiting[start - 1].knots <= room:
            start -= 1
            room -= waiting[start].knots
        if start == len(waiting):
            raise WidthError(f"width is {width}; an interval needs 2 units")
        left = waiting[start - 1].high if start else floor
        blocks.append(Block.feeding(feed_forward(_carry(waiting[start:], left, d), d)))
        del waiting[start:]
    return tuple(blocks)


def _carry(clusters: Sequence[Cluster], left: Rational, d: int) -> list[Unit]:
    """Units that vanish left of ``left`` and add ``target - x_1 e_1`` on every cluster, found from left to right."""
    row = axis(d)
    placed: list[tuple[Rational, tuple[Rational, ...]]] = []
    for cluster in clusters:
        sofar = _sum(placed, cluster.low, d)
        # A power of two as the distance to the knot: dividing by it makes no number longer.
        ramp = power_of_two_below(cluster.low - left)
        wanted = (cluster.target[0] - cluster.low, *cluster.target[1:])
        rise = tuple((goal - reached) / ramp for goal, reached in zip(wanted, sofar, strict=True))
        placed.append((cluster.low - ramp, rise))
        if cluster.knots == 2:
            # From here on the slope is -e_1: together with the identity, a constant.
            slopes = [sum(column, rational(0)) for column in zip(*(w for _, w in placed), strict=True)]
            placed.append((cluster.low, (-1 - slopes[0], *(-v for v in slopes[1:]))))
        left = cluster.high
    return [Unit(row, -at, w) for at, w in placed]


def _sum(placed: Sequence[tuple[Rational, tuple[Rational, ...]]], at: Rational, d: int) -> list[Rational]:
    total = [rational(0)] * d
    for knot, w in placed:
        run = at - knot
        total = [value + run * v for value, v in zip(total, w, strict=True)]
    return total
