"""Phases 2 and 3: leaders take their places, then one attention layer collapses every sequence.

In every sequence ``m_j`` leaders are chosen.  The first goes to ``p_j = R_j (1, …, 1)``, beyond every
token in every coordinate; the others go to points ``q`` of a circle round 0 in the plane of the first
two coordinates, both negative.  All other tokens stay in the open positive orthant.  With ``A = V = I`` and ``ρ = 0``
each of them is drawn to ``p_j``, and every leader stays where it is.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import final

from ..fields import Rational, RationalMatrix, power_of_two_above, power_of_two_below, rational, rational_matrix
from ..gadgets import feed_forward, flat_hat, hat, translation
from ..layers import Block, ScaledLowRank, SelfAttention
from .directions import Direction, best_direction, isolation, project
from .separation import Separation

Point = tuple[Rational, ...]


@final
@dataclass(frozen=True, slots=True)
class Places:
    """Where the leaders go: ``p[j]`` for the first leader of sequence ``j``, ``q[j]`` for the others.

    All places lie outside the slab ``|x_1| ≤ clear``, and every coordinate of every token and target is
    at most ``clear / 16`` in size.
    """

    p: tuple[Point, ...]
    q: tuple[tuple[Point, ...], ...]
    clear: Rational
    radius: Rational

    def of(self, j: int) -> tuple[Point, ...]:
        """The places of the leaders of sequence ``j``, in order."""
        return (self.p[j], *self.q[j])


@final
@dataclass(frozen=True, slots=True)
class Move:
    """One block of phase 2: leader ``token`` of sequence ``sequence`` goes to ``place``."""

    sequence: int
    token: int
    place: Point
    centre: Rational
    half_width: Rational


@final
@dataclass(frozen=True, slots=True)
class Leaders:
    """The outcome of phases 2 and 3: the direction ``a``, the moves, the blocks (one per leader)."""

    a: Direction
    places: Places
    moves: tuple[Move, ...]
    blocks: tuple[Block, ...]


def choose_places(tokens: Sequence[RationalMatrix], m: Sequence[int], largest_target: Rational) -> Places:
    """Places for ``m[j]`` leaders of each sequence, in order of the first coordinate well apart.

    Statement: ``p_j > x`` in every coordinate for every token ``x``; the ``q`` lie on one circle round
    0 with both coordinates negative, so ``<q, x> < 0`` for every ``x`` in the open positive orthant
    and ``<q, q> > <q, q'>`` for ``q' ≠ q``; all first coordinates are different and exceed every
    target's in size.

    Exactness: exact over Q; ``p`` dyadic, ``q`` from the rational parametrisation of the circle.
    """
    d = tokens[0].ncols()
    largest = max(max(matrix.entries()) for matrix in tokens)
    clear = 16 * power_of_two_above(max(largest, largest_target))
    step = clear / _power_of_two_at_least(len(m))
    p = tuple((clear + j * step,) * d for j in range(len(m)))
    # The points (cos θ, sin θ) = (1 - t², 2 t) / (1 + t²) for t from 1/16 to 3/16: tan θ < 2/5.
    radius, count = 4 * clear, sum(m) - len(m)
    grid = rational(1) / (8 * _power_of_two_at_least(count))
    ring = []
    for k in range(count):
        t = rational(1) / 16 + k * grid
        scale = -radius / (1 + t * t)
        ring.append((scale * (1 - t * t), scale * 2 * t, *(rational(0),) * (d - 2)))
    # Points of one sequence lie far apart on the ring: their distances are the gaps of its softmax scores.
    spread = sorted((rational(2 * i + 1) / (2 * (mj - 1)), j) for j, mj in enumerate(m) for i in range(mj - 1))
    q = tuple(tuple(point for (_, j), point in zip(spread, ring, strict=True) if j == of) for of in range(len(m)))
    return Places(p, q, clear, radius)


def _power_of_two_at_least(k: int) -> int:
    return 1 << max(0, k - 1).bit_length()


def lean(c: Direction) -> Direction:
    """A direction in which all places project beyond all tokens, made from a positive vector ``c``.

    With ``h = c_0 + c_1 + …`` it is ``a = (-h, (5 h + c_1) / 4, c_2, …)``.  Let every coordinate of every
    token lie in ``(0, B]``.  Then ``<a, x> ≤ (5/4 h + c_1/4 + c_2 + …) B ≤ 5/2 h B``, while
    ``<a, R (1, …, 1)> ≥ h R / 4`` and, on the circle of radius ``r`` with ``tan θ < 2/5`` and so
    ``cos θ > 12/13``, ``<a, q> ≥ h r (cos θ - 3/2 sin θ) ≥ 2/5 h r cos θ > h r / 3``.  So ``R > 10 B`` and
    ``r > 15/2 B`` are enough.

    >>> lean((rational(1), rational(3), rational(4)))
    (-8, 43/4, 4)
    """
    h = sum(c, rational(0))
    return (-h, (5 * h + c[1]) / 4, *c[2:])


def leading_direction(tokens: Sequence[RationalMatrix], m: Sequence[int]) -> Direction:
    """A leaning direction in which the ``m_j`` most isolated tokens of every sequence are well isolated."""
    sizes = [matrix.nrows() for matrix in tokens]
    every = rational_matrix([row for matrix in tokens for row in matrix.tolist()])

    def quality(values: list[Rational]) -> Rational:
        if len(values) == 1:
            return rational(1)
        span = max(values) - min(values)
        if span == 0:
            return rational(0)
        return min(gaps[-1] for gaps in _most_isolated(values, sizes, m)) / span

    return best_direction(every, quality, lean)


def _most_isolated(values: list[Rational], sizes: Sequence[int], m: Sequence[int]) -> list[list[Rational]]:
    """For each sequence the isolations of its ``m_j`` most isolated tokens, largest first."""
    nearest = [rational(1) if gap is None else gap for gap in isolation(values)]
    starts = accumulate(sizes, initial=0)
    return [
        sorted(nearest[start : start + size], reverse=True)[:mj]
        for start, size, mj in zip(starts, sizes, m, strict=False)
    ]


def place_leaders(separation: Separation, m: Sequence[int], largest_target: Rational) -> Leaders:
    """Phases 2 and 3 for hardmax: one block per leader; the attention of the last one collapses.

    Statement: after ``M`` blocks sequence ``j`` is exactly ``{p_j, q_j2, …}``, ``m_j`` points, all ``M`` of
    them different.

    Exactness: exact over Q.

    Cost: ``M`` binary searches in the sorted projections of all tokens.
    """
    tokens = separation.tokens
    places = choose_places(tokens, m, largest_target)
    a = leading_direction(tokens, m)
    projections = [project(matrix, a) for matrix in tokens]
    moves = _plan(projections, places, a, m)
    away = tuple(-x for x in a)
    blocks = []
    for k, move in enumerate(moves):
        token = tokens[move.sequence].tolist()[move.token]
        displacement = [there - here for there, here in zip(move.place, token, strict=True)]
        units = flat_hat(away, -move.centre, move.half_width, displacement)
        if k == 0 and not separation.blocks:
            # N = 1: nothing was separated, so the translation rides here, beside a hat of three units
            # that reads x before it.
            shift = sum((x * o for x, o in zip(a, separation.offset, strict=True)), rational(0))
            units = translation(separation.offset) + hat(a, move.centre - shift, move.half_width, displacement)
        blocks.append(Block.feeding(feed_forward(units, len(a))))
    d = len(a)
    collapse = SelfAttention(0, ScaledLowRank.identity(d), ScaledLowRank.identity(d))
    blocks[-1] = Block(blocks[-1].feed_forward, collapse)
    return Leaders(a, places, tuple(moves), tuple(blocks))


def _plan(projections: list[list[Rational]], places: Places, a: Direction, m: Sequence[int]) -> list[Move]:
    """The moves, by increasing projection; each half-width is a power of two that reaches no other present point.

    Leaders leave from the left and arrive on the far right, and the hats read ``-<a, x>``: so all
    leaders, moved or not, stay where every unit of a hat is zero, not merely where the units cancel.
    """
    flat = [value for values in projections for value in values]
    nearest = [rational(1) if gap is None else gap for gap in isolation(flat)]
    chosen = []
    start = 0
    for j, values in enumerate(projections):
        by_isolation = sorted(range(len(values)), key=lambda i, at=start: nearest[at + i], reverse=True)  # type: ignore[misc]
        chosen += [(values[i], j, i, place) for i, place in zip(by_isolation[: m[j]], places.of(j), strict=True)]
        start += len(values)
    present = sorted(flat)
    moves = []
    for centre, j, token, place in sorted(chosen, key=lambda entry: entry[0]):
        arrival = sum((x * y for x, y in zip(a, place, strict=True)), rational(0))
        gap = distance_to_others(present, centre)
        moves.append(Move(j, token, place, centre, power_of_two_below(gap if gap else arrival - centre)))
        del present[bisect_left(present, centre)]
        insort(present, arrival)
    return moves


def distance_to_others(ordered: Sequence[Rational], value: Rational) -> Rational | None:
    """The distance from ``value``, an entry of the sorted list, to its neighbours; None if it is alone.

    >>> distance_to_others([rational(0), rational(2), rational(5)], rational(2))
    2
    """
    at = bisect_left(ordered, value)
    gaps = []
    if at > 0:
        gaps.append(value - ordered[at - 1])
    if at + 1 < len(ordered):
        gaps.append(ordered[at + 1] - value)
    return min(gaps) if gaps else None
