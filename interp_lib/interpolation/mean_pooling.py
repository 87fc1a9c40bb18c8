"""Theorem S: one attention layer that takes means, exact at every temperature at once.

Everything happens on a line.  Tokens are projected to labels; one uniform attention layer tells every token
the mean label of its sequence; a piecewise-linear function of that mean shifts each sequence so that as many of its tokens are
positive as it needs leaders; one ReLU sends all others to one point; the points are delivered from the right.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, final

from ..fields import (
    Ball,
    Rational,
    UndecidedError,
    common_denominator,
    power_of_two_above,
    power_of_two_below,
    rational,
    rational_bounds,
    working_precision,
)
from ..gadgets import Unit, feed_forward
from ..layers import Block, LayerError, ScaledLowRank, SelfAttention, Transformer, read_temperature
from ..sequences import Dataset
from .directions import Direction, best_direction, project, smallest_gap
from .line import (
    Cluster,
    Knot,
    Window,
    axis,
    check_width,
    deliver_from_right,
    dyadic_between,
    evaluate_at,
    in_chunks,
    knot_units,
    through_windows,
)
from .separation import shift_per_label, vocabulary

Interval = tuple[Rational, Rational]
Labels = list[list[Rational]]

TRIED: Final = 8
"""How many weights ``κ`` are compared."""
PRECISIONS: Final = (128, 512, 2048, 8192)
"""Bits for the contexts of the softmax variant."""


@final
@dataclass(frozen=True, slots=True)
class MeanPhases:
    """A mean interpolant together with the choices that made it.

    A token ``x`` gets the label ``<a, x> + offset``; after the knots of all ``relabellings``, ``labels[j]`` are those of sequence ``j``, in
    the order of the data.  ``contexts[j]`` encloses what the attention layer writes beside them (low = high where it is
    rational).  With ``g`` the function with knots ``thresholds``, the point of a token is
    ``σ(label + g(context) + constant) + κ context + shift``.  ``clusters[j]`` are the ``m_j - 1`` leaders of sequence ``j`` and then all its
    others, on the line, with their targets.
    """

    a: Direction
    offset: Rational
    relabellings: tuple[tuple[Knot, ...], ...]
    labels: tuple[tuple[Rational, ...], ...]
    contexts: tuple[Interval, ...]
    thresholds: tuple[Knot, ...]
    constant: Rational
    kappa: Rational
    shift: Rational
    clusters: tuple[tuple[Cluster, ...], ...]
    transformer: Transformer


def mean_interpolant(data: Dataset, width: int = 4, temperature: Any = None) -> Transformer:
    """A transformer that attends once, and uniformly, with ``T_τ(X_j) = Y_j`` for every ``j`` and *every* ``τ ≥ 0``.

    Statement: Theorem S.  With width ``w ≥ 2`` (4 unless told otherwise) at most ``2 ⌈(N - 1)/w⌉ + ⌈M/w⌉ + 2`` blocks and
    ``d (M + 1) + O(M + N)`` non-zero parameters; knots only where the data need them.  One attention layer has ``V ≠ 0``, and it has
    ``A = 0``: hardmax and softmax both take the mean.
    With a ``temperature τ > 0`` the softmax variant for that one temperature: with a constant query all contexts differ without any
    relabelling; they are irrational, so delivery uses intervals: at most ``⌈(N - 1)/w⌉ + ⌈M/⌊w/2⌋⌉ + 2`` blocks.

    Shapes: acts on sequences ``(n, d)`` with ``d = data.d``.

    Exactness: exact over Q; ``verify(T, data, temperature="all")`` certifies all temperatures in one call.  The softmax variant is
    certified at its temperature by ``verify(T, data, τ)``.

    Cost: ``O(d Σ n_j + K Σ n_j + w d M)`` rational operations for ``K`` relabelling knots, and sorting.

    Raises: `WidthError` for a width that is no integer or less than 2; `LayerError` for a bad temperature.

    Example:

    >>> data = Dataset([[[0, 0], [1, 0]], [[1, 0], [2, 1]]], [[[5, 5]], [[6, 5], [5, 6]]])
    >>> T = mean_interpolant(data)
    >>> T.depth, T.phases
    (3, {'project': 1, 'labels': 0, 'thresholds': 0, 'merge': 1, 'delivery': 1})
    """
    return mean_phases(data, width, temperature).transformer


def mean_phases(data: Dataset, width: int = 4, temperature: Any = None) -> MeanPhases:
    """The construction of Theorem S with all its choices; `mean_interpolant` keeps the transformer.

    >>> mean_phases(Dataset([[[0, 0], [1, 0]]], [[[5, 5]]])).transformer.depth
    3
    """
    check_width(width, 2)
    data = data.as_sets()
    d = data.d
    a, offset, labels = label(data)
    if temperature is None:
        relabellings, labels = tell_apart(labels, width)
        contexts = [(mean, mean) for mean in map(_mean, labels)]
        attention = SelfAttention(1, ScaledLowRank.zero(d), ScaledLowRank.outer(axis(d, 1), axis(d)))
        choices = _choose(data, labels, contexts)
        constant_query: list[Unit] = []
    else:
        tau = read_temperature(temperature)
        if not tau > 0:
            raise LayerError(
                "temperature is 0; the softmax variant needs τ > 0, and without one the mean serves all temperatures"
            )
        relabellings = []
        beta, contexts, choices = _choose_softmax(data, labels, tau)
        A = ScaledLowRank.outer(axis(d, 0, beta), axis(d, 1))
        attention = SelfAttention(1, A, ScaledLowRank.outer(axis(d, 1), axis(d)))
        constant_query = [Unit((rational(0),) * d, rational(1), axis(d, 1))]

    project_layer = feed_forward([Unit(tuple(a), offset, axis(d)), *constant_query], d, eta=0)
    label_layers = [feed_forward(knot_units(knots, d, 0, 0), d) for knots in relabellings]
    blocks = [Block.feeding(layer) for layer in (project_layer, *label_layers)]
    blocks[-1] = Block(blocks[-1].feed_forward, attention)
    chunks = in_chunks(choices.thresholds, width)
    blocks += [Block.feeding(feed_forward(knot_units(chunk, d, 1, 0), d)) for chunk in chunks]
    # The argument of the second unit is positive on all tokens: they lie right of 0.
    merge = [Unit(axis(d), choices.constant, axis(d)), Unit(axis(d, 1, choices.kappa), choices.shift, axis(d))]
    blocks.append(Block.feeding(feed_forward(merge, d, eta=0)))
    delivery = deliver_from_right([cluster for own in choices.clusters for cluster in own], width, choices.floor)
    transformer = Transformer(
        (*blocks, *delivery),
        {
            "project": 1,
            "labels": len(label_layers),
            "thresholds": len(chunks),
            "merge": 1,
            "delivery": len(delivery),
        },
    )
    return MeanPhases(
        tuple(a),
        offset,
        tuple(map(tuple, relabellings)),
        tuple(map(tuple, labels)),
        tuple(contexts),
        choices.thresholds,
        choices.constant,
        choices.kappa,
        choices.shift,
        choices.clusters,
        transformer,
    )


# ---------------------------------------------------------------- labels


def label(data: Dataset) -> tuple[Direction, Rational, Labels]:
    """A direction that is injective on all tokens, an offset, and the positive labels ``<a, x> + offset`` of every sequence.

    >>> label(Dataset([[[0, 0], [1, 0]]], [[[5, 5]]]))[2]
    [[1, 2]]
    """
    tokens, members = vocabulary(data)
    a = best_direction(tokens, smallest_gap)
    values = project(tokens, a)
    least, span = min(values), max(values) - min(values)
    unit = power_of_two_above(span) if span > 0 else rational(1)
    offset = unit - (least / unit).floor() * unit
    values = [value + offset for value in values]
    return a, offset, [[values[z] for z in ids] for ids in members]


def _mean(values: Sequence[Rational]) -> Rational:
    return sum(values, rational(0)) / len(values)


def tell_apart(labels: Labels, width: int) -> tuple[list[list[Knot]], Labels]:
    """Increasing relabellings, ``width`` knots each, after which all sequences have different mean labels.

    Statement: at most ``N - 1`` knots in all.  *Proof.*  While two sequences have the same mean, `splitting_knot` gives ``b`` with
    different means of ``σ(t - b)``; for all but finitely many ``c > 0`` adding ``c σ(t - b)`` splits their class and merges none.
    As ``c > 0`` the new labels are an increasing function of the old ones, so they remain injective.

    >>> one, zero = rational(1), rational(0)
    >>> tell_apart([[-one, one], [zero]], 4)
    ([[Knot(at=0, turn=1)]], [[-1, 2], [0]])
    """
    relabellings: list[list[Knot]] = []
    means = list(map(_mean, labels))
    while len(set(means)) < len(means):
        knots: list[Knot] = []
        while len(knots) < width and len(set(means)) < len(means):
            at = splitting_knot(*_two_alike(labels, means))
            excess = [_mean([t - at if t > at else rational(0) for t in own]) for own in labels]
            weight = shift_per_label(means, excess)
            knots.append(Knot(at, weight))
            means = [mean + weight * more for mean, more in zip(means, excess, strict=True)]
        labels = [
            [t + more for t, more in zip(own, evaluate_at(rational(0), knots, own), strict=True)] for own in labels
        ]
        relabellings.append(knots)
    return relabellings, labels


def _two_alike(labels: Labels, means: Sequence[Rational]) -> tuple[list[Rational], list[Rational]]:
    first: dict[Rational, int] = {}
    for j, mean in enumerate(means):
        if mean in first:
            return labels[first[mean]], labels[j]
        first[mean] = j
    raise AssertionError("all means differ")


def splitting_knot(left: Sequence[Rational], right: Sequence[Rational]) -> Rational:
    """A number ``b`` for which the means of ``σ(t - b)`` over two different finite sets differ.

    Statement: let ``z`` be the largest number at which the uniform measures of the sets differ, and ``b < z`` not smaller than any
    other element below ``z``.  Then the means differ by ``(z - b)`` times the difference of the measures of ``{z}``: above ``z`` the
    measures agree, between ``b`` and ``z`` there is nothing.

    >>> splitting_knot([rational(0), rational(2)], [rational(1)])
    1
    """
    one, other = set(left), set(right)
    support = sorted(one | other, reverse=True)
    for z, below in zip(support, [*support[1:], support[-1] - 1], strict=True):
        if (z in one) * len(other) != (z in other) * len(one):
            between = dyadic_between(below, z)
            return below if len(str(below)) <= len(str(between)) else between
    raise AssertionError("the sets are equal")


# ---------------------------------------------------------------- thresholds and places


@final
@dataclass(frozen=True, slots=True)
class _Choices:
    thresholds: tuple[Knot, ...]
    constant: Rational
    kappa: Rational
    shift: Rational
    floor: Rational
    clusters: tuple[tuple[Cluster, ...], ...]


def _choose(data: Dataset, labels: Labels, contexts: Sequence[Interval]) -> _Choices:
    """Everything after the attention layer; raises `UndecidedError` if the contexts are enclosed too widely."""
    ordered = [sorted(own, reverse=True) for own in labels]
    constant, thresholds = _thresholds(ordered, contexts, data.m)
    shifts = _ranges(constant, thresholds, contexts)
    points = [_points(own, shift, m) for own, shift, m in zip(ordered, shifts, data.m, strict=True)]
    kappa = _weight_of_context(points, contexts)
    placed = _placed(points, contexts, kappa)
    targets = [matrix.tolist() for matrix in data.output_matrices]
    floor = max(rational(0), *(y[0] for rows in targets for y in rows))
    leftmost = min(low for own in placed for low, _ in own)
    span = max(high for own in placed for _, high in own) - leftmost
    unit = power_of_two_above(span) if span > 0 else rational(1)
    shift = (((floor - leftmost) / unit).floor() + 2) * unit
    clusters = tuple(
        tuple(Cluster(low + shift, high + shift, tuple(y)) for (low, high), y in zip(own, rows, strict=True))
        for own, rows in zip(placed, targets, strict=True)
    )
    return _Choices(thresholds, constant, kappa, shift, floor, clusters)


def _thresholds(ordered: Labels, contexts: Sequence[Interval], m: Sequence[int]) -> tuple[Rational, tuple[Knot, ...]]:
    """``g(context_j)`` so large that exactly the ``m_j - 1`` largest labels of sequence ``j`` become positive."""
    largest, least = max(own[0] for own in ordered), min(own[-1] for own in ordered)
    lowest = -largest - 2 * (largest - least) - 1
    windows = [
        Window((low + high) / 2, -own[mj - 2] if mj > 1 else lowest, -own[mj - 1])
        for own, (low, high), mj in zip(ordered, contexts, m, strict=True)
    ]
    return through_windows(sorted(windows, key=lambda window: window.at))


def _ranges(constant: Rational, knots: Sequence[Knot], contexts: Sequence[Interval]) -> list[Interval]:
    """The values of ``constant + g`` on every context; an interval must contain no knot."""
    lows = evaluate_at(constant, knots, [low for low, _ in contexts])
    if all(low == high for low, high in contexts):
        return [(value, value) for value in lows]
    highs = evaluate_at(constant, knots, [high for _, high in contexts])
    at = sorted(knot.at for knot in knots)
    if any(bisect_left(at, low) != bisect_right(at, high) for low, high in contexts if low != high):
        raise UndecidedError("a knot lies inside the enclosure of a context")
    return [(min(ends), max(ends)) for ends in zip(lows, highs, strict=True)]


def _points(ordered: Sequence[Rational], shift: Interval, m: int) -> list[Interval]:
    """Where the leaders and the others are once the others are zero."""
    low, high = shift
    leaders = [(value + low, value + high) for value in ordered[: m - 1]]
    if any(start <= 0 for start, _ in leaders) or ordered[m - 1] + high > 0:
        raise UndecidedError("a threshold is not certain")
    return [*leaders, (rational(0), rational(0))]


def _placed(
    points: Sequence[Sequence[Interval]], contexts: Sequence[Interval], kappa: Rational
) -> list[list[Interval]]:
    return [
        [(low + kappa * context[0], high + kappa * context[1]) for low, high in own]
        for own, context in zip(points, contexts, strict=True)
    ]


def _weight_of_context(points: Sequence[Sequence[Interval]], contexts: Sequence[Interval]) -> Rational:
    """``κ > 0`` for which all points ``value + κ context`` are different, with the widest relative gap of a few.

    Two points of one sequence differ anyway, and two of different sequences agree for one ``κ`` at most.
    """
    middles = [(low + high) / 2 for low, high in contexts]
    spread = max(middles) - min(middles)
    if spread == 0:
        return rational(1)
    highest = max(high for own in points for _, high in own)
    base = power_of_two_below(highest / spread) if highest > 0 else rational(1)
    # Every pair excludes one value, so one more than there are pairs is enough for exact contexts.
    enough = sum(map(len, points)) ** 2 + TRIED
    found: tuple[Rational, Rational] | None = None
    for tried in range(enough):
        if tried >= TRIED and found is not None:
            break
        kappa = base * (rational(1 << tried) if tried < TRIED else rational(2 * (tried - TRIED) + 3) / 2)
        gap = _least_gap([interval for own in _placed(points, contexts, kappa) for interval in own])
        if gap > 0 and (found is None or gap > found[0]):
            found = gap, kappa
        if tried >= TRIED and contexts[0][0] != contexts[0][1]:
            break
    if found is None:
        raise UndecidedError("the contexts are enclosed too widely to keep all points apart")
    return found[1]


def _least_gap(intervals: Sequence[Interval]) -> Rational:
    """The least distance between two of the intervals relative to the span; not positive if some overlap."""
    ends, _ = common_denominator([end for interval in intervals for end in interval])
    ordered = sorted(zip(ends[::2], ends[1::2], strict=True))
    if len(ordered) == 1:
        return rational(1)
    span = ordered[-1][1] - ordered[0][0]
    gap = min(right[0] - left[1] for left, right in pairwise(ordered))
    return rational(gap) / span if span > 0 else rational(0)


# ---------------------------------------------------------------- the softmax variant


def _choose_softmax(data: Dataset, labels: Labels, tau: Rational) -> tuple[Rational, list[Interval], _Choices]:
    """``β``, the enclosed contexts ``1 + f_j(β/τ)``, and everything after the attention layer.

    ``f_j`` of different sets agree only at isolated ``β`` (exponentials are linearly independent), so some ``β`` and some precision do.
    """
    span = max(map(max, labels)) - min(map(min, labels))
    base = power_of_two_above(tau / span) if span > 0 else rational(1)
    for beta, bits in _attempts(base):
        with working_precision(bits):
            contexts = [rational_bounds(1 + _softmax_mean(own, beta / tau)) for own in labels]
        if _least_gap(contexts) > 0:
            try:
                return beta, contexts, _choose(data, labels, contexts)
            except UndecidedError:
                continue
    raise UndecidedError(f"contexts could not be told apart with {PRECISIONS[-1]} bits")


def _attempts(base: Rational) -> Iterator[tuple[Rational, int]]:
    for factor in (4, 3, 5, 2, 7, 6):
        for bits in PRECISIONS:
            yield base * factor, bits


def _softmax_mean(values: Sequence[Rational], beta: Rational) -> Ball:
    """``Σ t e^{βt} / Σ e^{βt}`` at the working precision; a single label is exact."""
    top = max(values)
    weights = [Ball((t - top) * beta).exp() for t in values]
    return sum((w * (t - top) for w, t in zip(weights, values, strict=True)), Ball(0)) / sum(weights, Ball(0)) + top
