"""Theorem 1.8: one set of weights that interpolates at every temperature below an explicit one.

Separation and leaders are those of Theorem 1.6.  Under softmax a token drifts along the context direction only, and the flat hats
of phase 2 tolerate the drift; the collapse leaves small clusters instead of points.  One further
block projects everything to a line, and a residual block that is constant on an interval collapses
a cluster exactly and delivers it at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from ..fields import Rational, RationalMatrix, power_of_two_below, rational, rational_matrix, working_precision
from ..gadgets import Unit, collapse_to, feed_forward, flat_knots
from ..layers import Block, Transformer
from ..sequences import Dataset
from .directions import isolation
from .four_phase import largest_coordinate
from .leaders import Leaders, place_leaders
from .separation import Separation, separate
from .temperature import BITS, Demand, TemperatureBound, collapse_demands, drift_rates, temperature_bound

AIM = rational(1) / 8
"""The temperature aimed at, in units of ``room²``: scores are quadratic in the data."""
FARTHEST = 1024
"""How many times ``room`` the tokens go at most; farther out, float64 passes lose digits."""


@final
@dataclass(frozen=True, slots=True)
class Interval:
    """One block of phase 4: the cluster of leader ``leader`` of sequence ``sequence`` goes to ``target``.

    ``centre`` is where hardmax puts the cluster on the line, ``knots`` are ``l - w, l, r, r + w``, and ``room`` is the distance
    of the centre from the ends of ``[l, r]`` at least.
    """

    sequence: int
    leader: int
    centre: Rational
    knots: tuple[Rational, ...]
    room: Rational
    target: tuple[Rational, ...]


@final
@dataclass(frozen=True, slots=True)
class SoftmaxPhases:
    """A softmax interpolant together with the choices that made it, for those who want to look inside.

    ``intervals`` are in the order of their blocks, from the right; ``line`` is the constant of the projection
    ``x ↦ (x_1 + line) e_1``; ``bound`` says what limits the temperature.
    """

    separation: Separation
    leaders: Leaders
    line: Rational
    intervals: tuple[Interval, ...]
    bound: TemperatureBound
    transformer: Transformer


def softmax_interpolant(data: Dataset, pad: bool = False) -> Transformer:
    """A softmax transformer with ``T_τ(X_j) = Y_j`` for every ``j`` and every ``0 < τ ≤ T.critical_temperature``, exactly.

    Statement: Theorem 1.8, with one set of weights for all temperatures.  Width at most 4, at most ``2 M + N``
    blocks (with ``pad=True`` exactly ``2 M + 3 N``), at most ``12 d + 8`` structured parameters per block;
    none of this depends on the lengths ``n_j``.  The same weights interpolate under hardmax.

    Shapes: acts on sequences ``(n, d)`` with ``d = data.d``.

    Exactness: the weights are exact rationals; ``T_τ(X_j) = Y_j`` as sets, in real arithmetic.
    ``critical_temperature`` is a certified lower bound, from the estimates in `interp_lib.interpolation.temperature`;
    `softmax_phases` gives its parts.

    Cost: that of `hardmax_interpolant`, ``O(d Σ n_j²)`` for the gaps, and a bisection for each of ``2 M`` parts.

    Raises: `TemperatureError` for data so close together that the bound would be below ``2^-4096``.

    Example:

    >>> data = Dataset([[[0, 0], [1, 0]], [[1, 0], [2, 1]]], [[[5, 5]], [[6, 5], [5, 6]]])
    >>> T = softmax_interpolant(data)
    >>> T.depth, T.width, softmax_interpolant(data, pad=True).depth
    (8, 4, 12)
    >>> T.critical_temperature > 1
    True
    """
    transformer = softmax_phases(data).transformer
    return transformer.padded(2 * data.M + 3 * data.N) if pad else transformer


def softmax_phases(data: Dataset) -> SoftmaxPhases:
    """The construction of Theorem 1.8 with all its choices; `softmax_interpolant` keeps the transformer.

    >>> parts = softmax_phases(Dataset([[[0, 0], [1, 0]]], [[[5, 5]]]))
    >>> parts.transformer.phases
    {'separation': 0, 'leaders': 0, 'collapse': 1, 'line': 1, 'interpolation': 1}
    >>> parts.bound.limiting.layer
    'collapse'
    """
    data = data.as_sets()
    separation, leaders = _far_enough(data)
    # No place has a first coordinate below -radius: after the shift all are at least `clear`.
    line = leaders.places.radius + leaders.places.clear
    intervals = choose_intervals(leaders, data, line)
    axis = _axis(data.d)
    project = Block.feeding(feed_forward([Unit(axis, line, axis)], data.d, eta=0))
    delivery = [Block.feeding(feed_forward(collapse_to(axis, i.knots, i.target), data.d)) for i in intervals]
    bound = _bound(data, separation, leaders, intervals)
    transformer = Transformer(
        (*separation.blocks, *leaders.blocks, project, *delivery),
        {
            "separation": len(separation.blocks),
            "leaders": data.M - 1,
            "collapse": 1,
            "line": 1,
            "interpolation": data.M,
        },
        bound.temperature,
    )
    return SoftmaxPhases(separation, leaders, line, intervals, bound, transformer)


def _far_enough(data: Dataset) -> tuple[Separation, Leaders]:
    """Phases 1 and 2 with the tokens so far out that drift allows temperatures up to ``AIM · room²``.

    Raising all labels by ``c`` changes neither directions, contexts nor gaps, only the inverse temperatures ``p/τ``
    to ``(p + c)/τ``.  So how far is far enough can be read off the construction with ``far = 1``.
    """
    target = largest_coordinate(data)
    separation = separate(data)
    leaders = place_leaders(separation, data.m, target)
    if not separation.steps:
        return separation, leaders
    aim = AIM * separation.room**2
    allowed = 3 * min(move.half_width for move in leaders.moves) / 16
    across = aim * _crossing(separation, leaders)
    step = separation.room * sum(separation.v, rational(0))
    far = 1
    with working_precision(BITS):
        while far < FARTHEST:
            rates = drift_rates(separation.steps, data.n, (far - 1) * step)
            if all(rate * across < allowed for rate in rates):
                break
            far *= 2
    if far == 1:
        return separation, leaders
    separation = separate(data, far)
    return separation, place_leaders(separation, data.m, target)


def _crossing(separation: Separation, leaders: Leaders) -> Rational:
    """``|<a, u>|``: how fast drift along ``u`` moves what the plateaus of phase 2 read."""
    return abs(sum((x * y for x, y in zip(leaders.a, separation.u, strict=True)), rational(0)))


def choose_intervals(leaders: Leaders, data: Dataset, line: Rational) -> tuple[Interval, ...]:
    """One interval per place, from the right, each apart from all others and from every target.

    Statement: with ``ρ`` the half-width of an interval (a power of two, at most the distance to the
    neighbouring places and to ``clear/2``), points within ``3ρ/16`` of their places lie in their own ``[l, r]`` and outside every
    other ``(l - w, r + w)``.
    """
    where = [(j, i) for j in range(data.N) for i in range(data.m[j])]
    centres = [leaders.places.of(j)[i][0] + line for j, i in where]
    bound = leaders.places.clear / 2
    chosen = []
    for (j, i), centre, gap in zip(where, centres, isolation(centres), strict=True):
        half_width = power_of_two_below(centre - bound if gap is None else min(gap, centre - bound))
        knots = flat_knots(centre, half_width)
        room = 3 * half_width / 16
        chosen.append(Interval(j, i, centre, knots, room, tuple(data.output_matrices[j].tolist()[i])))
    return tuple(sorted(chosen, key=lambda interval: interval.centre, reverse=True))


def _bound(data: Dataset, separation: Separation, leaders: Leaders, intervals: Sequence[Interval]) -> TemperatureBound:
    u = separation.u
    crossing = _crossing(separation, leaders)
    first = len(separation.blocks) + 1
    leader_number = _leader_numbers(leaders, data.N)
    demands = [
        Demand(
            "leaders",
            first + k,
            move.sequence,
            leader_number[move.sequence].index(move.token),
            3 * move.half_width / 16,
            True,
            crossing,
        )
        for k, move in enumerate(leaders.moves)
    ]
    nominal = [_after_moves(matrix, leaders, j) for j, matrix in enumerate(separation.tokens)]
    clusters = [collapse_demands(tokens, leader_number[j], u) for j, tokens in enumerate(nominal)]
    collapse = len(separation.blocks) + data.M
    for interval in intervals:
        gap, slope, spread = clusters[interval.sequence][interval.leader]
        demands.append(
            Demand(
                "collapse",
                collapse,
                interval.sequence,
                interval.leader,
                interval.room,
                False,
                abs(u[0]),
                data.n[interval.sequence] - 1,
                gap,
                slope,
                spread,
            )
        )
    with working_precision(BITS):
        rates = drift_rates(separation.steps, data.n)
    return temperature_bound(demands, rates, u)


def _leader_numbers(leaders: Leaders, N: int) -> list[list[int]]:
    """For each sequence the rows of its leaders, in the order of their places."""
    found: list[dict[tuple[Rational, ...], int]] = [{} for _ in range(N)]
    for move in leaders.moves:
        found[move.sequence][move.place] = move.token
    return [[found[j][place] for place in leaders.places.of(j)] for j in range(N)]


def _after_moves(tokens: RationalMatrix, leaders: Leaders, sequence: int) -> RationalMatrix:
    rows = tokens.tolist()
    for move in leaders.moves:
        if move.sequence == sequence:
            rows[move.token] = list(move.place)
    return rational_matrix(rows)


def _axis(d: int) -> tuple[Rational, ...]:
    return (rational(1), *(rational(0),) * (d - 1))
