"""Phase 1: separation.  At most ``N - 1`` blocks make all tokens of all sequences different.

Fix a label direction ``v > 0`` that is injective on all tokens and a context direction ``u ⊥ v``.  One
block raises one token above all others along ``v`` (or none) and then translates each sequence as a
whole by a multiple of its largest label, along ``u``.  The largest labels tell the sequences apart;
labels tell the tokens apart; neither disturbs the other, because ``u ⊥ v``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, count, pairwise
from typing import final

from ..fields import (
    Rational,
    RationalMatrix,
    exact_matrix,
    first_occurrences,
    power_of_two_above,
    power_of_two_below,
    rational,
)
from ..gadgets import Units, feed_forward, hat, translation
from ..layers import Block, ScaledLowRank, SelfAttention
from ..sequences import Dataset
from .directions import Direction, best_direction, isolation, project, smallest_gap


@final
@dataclass(frozen=True, slots=True)
class Step:
    """One block of the separation: which token was raised, how far, and the shift per unit of label.

    ``least`` and ``largest`` are the labels of each sequence, as its attention layer sees them.
    """

    raised: int | None
    lift: Rational
    half_width: Rational
    gamma: Rational
    least: tuple[Rational, ...]
    largest: tuple[Rational, ...]


@final
@dataclass(frozen=True, slots=True)
class Separation:
    """The outcome of phase 1.

    ``offset`` is the translation that the very first block of the construction applies; ``blocks``
    are the blocks (none for ``N = 1``); ``tokens[j]`` are the tokens of sequence ``j`` afterwards, in
    the order of the data, all in the open positive orthant and pairwise different across sequences.
    ``room`` is a power of two, at least the range of every coordinate of the data, and ``far`` says how many times
    that far from 0 the tokens go.
    """

    v: Direction
    u: Direction
    room: Rational
    far: int
    offset: Direction
    steps: tuple[Step, ...]
    contexts: tuple[Rational, ...]
    blocks: tuple[Block, ...]
    tokens: tuple[RationalMatrix, ...]


def separate(data: Dataset, far: int = 1) -> Separation:
    """Phase 1 of Theorems 1.6 and 1.8.

    Statement: after ``K ≤ N - 1`` blocks all tokens of all sequences are pairwise different and lie in
    the open positive orthant.  Every coordinate of the data is first raised to ``far · room`` at least; under
    softmax, larger labels mean less drift.

    Exactness: exact over Q under hardmax.

    Cost: ``O(K Σ n_j + d Σ n_j)`` rational operations, and a sort of the distinct tokens.
    """
    tokens, members = vocabulary(data)
    v = best_direction(tokens, smallest_gap)
    u = context_direction(v)
    room = _room(tokens)
    labels = project(tokens, v)
    into_orthant = tuple(_into_orthant(column, room, far) for column in zip(*tokens.tolist(), strict=True))
    lifted_by = sum((a * b for a, b in zip(v, into_orthant, strict=True)), rational(0))
    positive_labels = [label + lifted_by for label in labels]

    steps, contexts, lifts = _split(members, positive_labels, v)
    if contexts:
        span = max(contexts) - min(contexts)
        # Contexts may move tokens by at most `room` in any coordinate, half of it either way.
        unit = power_of_two_below(room / span)
        steps = [replace(step, gamma=step.gamma * unit) for step in steps]
        contexts = [c * unit for c in contexts]
        middle = _round_down((max(contexts) + min(contexts)) / 2, room / 8)
    else:
        contexts, middle = [rational(0)] * data.N, rational(0)
    offset = tuple(c - middle * a for c, a in zip(into_orthant, u, strict=True))

    blocks = []
    current = list(labels)
    for k, step in enumerate(steps):
        units: Units = translation(offset) if k == 0 else ()
        if step.raised is not None:
            lift = [step.lift * a for a in v]
            units += hat(v, current[step.raised], step.half_width, lift)
            current[step.raised] += step.lift * _square(v)
        if k == 0:
            current = [label + lifted_by for label in current]
        shift = ScaledLowRank.outer([step.gamma * a for a in u], v)
        blocks.append(Block(feed_forward(units, data.d), SelfAttention(1, ScaledLowRank.outer(v, v), shift)))
    moved = [
        exact_matrix(
            [
                [x + o + lifts[z] * a + c * b for x, o, a, b in zip(token, offset, v, u, strict=True)]
                for z, token in zip(ids, tokens.tolist(), strict=True)
            ]
        )
        for ids, tokens, c in zip(members, data.input_matrices, contexts, strict=True)
    ]
    return Separation(v, u, room, far, offset, tuple(steps), tuple(contexts), tuple(blocks), tuple(moved))


def context_direction(v: Direction) -> Direction:
    """A direction ``u ⊥ v`` with two non-zero coordinates, ``1/2 < max |u_i| ≤ 1``.

    >>> context_direction((rational(1), rational(2), rational(5)))
    (1, -1/2, 0)
    """
    by_size = sorted(range(len(v)), key=v.__getitem__)
    # Of two neighbours in size, take those whose ratio is nearest to one: both coordinates then move.
    i, k = min(pairwise(by_size), key=lambda pair: v[pair[1]] / v[pair[0]])
    size = power_of_two_above(max(v[i], v[k]))
    u = [rational(0)] * len(v)
    u[i], u[k] = v[k] / size, -v[i] / size
    return tuple(u)


def vocabulary(data: Dataset) -> tuple[RationalMatrix, list[list[int]]]:
    """The distinct tokens, and for each sequence the positions of its tokens among them."""
    tokens = [token for matrix in data.input_matrices for token in matrix.tolist()]
    first = first_occurrences(exact_matrix(tokens))
    numbered = {i: number for number, i in enumerate(dict.fromkeys(first))}
    ends = accumulate(data.n)
    members = [[numbered[i] for i in first[end - n : end]] for end, n in zip(ends, data.n, strict=True)]
    return exact_matrix([tokens[i] for i in numbered]), members


def _room(vocabulary: RationalMatrix) -> Rational:
    """A power of two at least the range of every coordinate."""
    widest = max(max(column) - min(column) for column in zip(*vocabulary.tolist(), strict=True))
    return power_of_two_above(widest) if widest else rational(1)


def _into_orthant(column: Sequence[Rational], room: Rational, far: int) -> Rational:
    """A dyadic shift after which the smallest entry lies between ``far · room`` and ``(far + 1/8) room``."""
    return far * room - _round_down(min(column), room / 8)


def _round_down(value: Rational, unit: Rational) -> Rational:
    return (value / unit).floor() * unit


def _square(v: Direction) -> Rational:
    return sum((a * a for a in v), rational(0))


def _split(
    members: list[list[int]], labels: list[Rational], v: Direction
) -> tuple[list[Step], list[Rational], list[Rational]]:
    """The steps that give every sequence its own context, the contexts, and the lift of each token."""
    if len(members) == 1:
        return [], [], [rational(0)] * len(labels)
    labels = list(labels)
    lifts = [rational(0)] * len(labels)
    contexts = [rational(0)] * len(members)
    span = max(labels) - min(labels)
    square = _square(v)
    grain = power_of_two_above(span) / power_of_two_below(square)
    highest = max(labels)
    steps = []
    while len(set(contexts)) < len(members):
        maxima = [max(labels[z] for z in ids) for ids in members]
        raised, lift, half_width = None, rational(0), rational(0)
        if not _splits(contexts, maxima):
            raised = _most_splitting_token(members, contexts)
            # Lift it above every label by at least `span`, in multiples of one dyadic number.
            lift = ((highest + span - labels[raised]) / square / grain).ceil() * grain
            gap = isolation(labels)[raised]
            assert gap is not None  # there are other labels
            half_width = power_of_two_below(gap)
            labels[raised] += lift * square
            lifts[raised] += lift
            highest = labels[raised]
            maxima = [max(labels[z] for z in ids) for ids in members]
        gamma = shift_per_label(contexts, maxima)
        contexts = [c + gamma * m for c, m in zip(contexts, maxima, strict=True)]
        minima = [min(labels[z] for z in ids) for ids in members]
        steps.append(Step(raised, lift, half_width, gamma, tuple(minima), tuple(maxima)))
    return steps, contexts, lifts


def _splits(contexts: list[Rational], maxima: list[Rational]) -> bool:
    return len(set(zip(contexts, maxima, strict=True))) > len(set(contexts))


def _most_splitting_token(members: list[list[int]], contexts: list[Rational]) -> int:
    """A token that lies in some but not all sequences of a class, for as even splits as possible.

    Two sequences of a class differ as sets, so such a token exists while a class has two members.
    """
    sizes = Counter(contexts)
    counts: Counter[tuple[int, Rational]] = Counter()
    for ids, context in zip(members, contexts, strict=True):
        for z in ids:
            counts[z, context] += 1
    gain: Counter[int] = Counter()
    for (z, context), inside in counts.items():
        gain[z] += min(inside, sizes[context] - inside)
    return max(sorted(gain), key=gain.__getitem__)


def shift_per_label(contexts: list[Rational], maxima: list[Rational]) -> Rational:
    """``γ`` such that contexts ``+ γ · maxima`` differ wherever either differs, with the widest gap of a few.

    Each pair of sequences excludes at most one value, so the candidates, which never end, contain a
    good one.
    """
    wanted = len(set(zip(contexts, maxima, strict=True)))
    span = max(contexts) - min(contexts)
    spread = max(maxima) - min(maxima)
    if span == 0:
        return rational(1)
    base = power_of_two_above(span / spread)
    found: tuple[Rational, Rational] | None = None
    for tried, factor in enumerate(_factors()):
        if tried >= 12 and found is not None:
            return found[1]
        values = {c + base * factor * m for c, m in zip(contexts, maxima, strict=True)}
        if len(values) == wanted:
            gap = smallest_gap(list(values))
            if found is None or gap > found[0]:
                found = (gap, base * factor)
    raise AssertionError("the candidates never end")


def _factors() -> Iterator[Rational]:
    for power in range(-8, 3):
        yield rational(2) ** power
    for odd in count(3, 2):
        yield rational(odd) / 4
