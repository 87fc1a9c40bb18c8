"""The baseline without attention: when one map of single tokens is enough, and what it then costs.

Feed-forward layers act on every token alone.  So they interpolate if and only if some map ``f`` of tokens has
``f(X_j) = Y_j`` for every ``j``.  Shared tokens usually forbid it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import Literal, final

from ..fields import (
    Rational,
    exact_matrix,
    first_occurrences,
    fraction,
    power_of_two_above,
    power_of_two_below,
    rational,
)
from ..gadgets import Unit, feed_forward, flat_hat, hat, translation
from ..layers import Block, Transformer
from ..sequences import Dataset, Token
from .directions import best_direction, project, smallest_gap
from .line import Cluster, Knot, axis, check_width, deliver_from_right, in_chunks, knot_units
from .separation import vocabulary

Scheme = Literal["labels", "tokens"]


class InfeasibleError(ValueError):
    """No map of single tokens sends every input to its target; the message says why."""


class SchemeError(ValueError):
    """The scheme is neither ``"labels"`` nor ``"tokens"``."""


# ---------------------------------------------------------------- is there a map?


@final
@dataclass(frozen=True, slots=True)
class _Problem:
    """Tokens and targets as numbers: ``allowed[z]`` are the targets common to all sequences that contain token ``z``.

    A demand is a set of tokens one of which must go to a target: one demand for every target token of every sequence.
    """

    allowed: tuple[frozenset[int], ...]
    demands: tuple[tuple[int, frozenset[int]], ...]


def token_map(data: Dataset) -> dict[Token, Token]:
    """A map ``f`` of tokens with ``f(X_j) = Y_j`` for every ``j``.

    Statement: such a map exists if and only if this function returns; it decides the question exactly.  Token ``x`` may go to the
    targets common to all sequences that contain it, and each target of each sequence must be reached from that sequence.  The
    question contains NAE-3SAT (all ``Y_j`` equal to one set of two tokens), so it is NP-complete; the search propagates
    forced choices and branches on the tightest demand, which settles ordinary data at once.

    Exactness: exact.

    Raises: `InfeasibleError`, naming a token without a common target, a target that cannot be reached, or, after a
    complete search, that no assignment exists.

    Example:

    >>> data = Dataset([[[0, 0], [1, 0]], [[1, 0], [2, 1]]], [[[5, 5], [6, 6]], [[6, 6]]])
    >>> {tuple(map(int, x)): tuple(map(int, y)) for x, y in token_map(data).items()}
    {(0, 0): (5, 5), (1, 0): (6, 6), (2, 1): (6, 6)}
    """
    tokens, members = vocabulary(data)
    targets, goals = _numbered_targets(data)
    problem = _state(members, goals, [_as_token(x) for x in tokens.tolist()], targets)
    found = _search(problem)
    if found is None:
        raise InfeasibleError(
            "every token has a target common to all its sequences and every target can be reached, but no choice of one target "
            "per token reaches all targets of all sequences (complete search)"
        )
    names = [_as_token(x) for x in tokens.tolist()]
    return {names[z]: targets[found.get(z, min(allowed))] for z, allowed in enumerate(problem.allowed)}


def _as_token(row: Iterable[Rational]) -> Token:
    return tuple(map(fraction, row))


def _numbered_targets(data: Dataset) -> tuple[list[Token], list[list[int]]]:
    rows = [row for matrix in data.output_matrices for row in matrix.tolist()]
    first = first_occurrences(exact_matrix(rows))
    numbered = {i: k for k, i in enumerate(dict.fromkeys(first))}
    goals, start = [], 0
    for m in data.m:
        goals.append([numbered[i] for i in first[start : start + m]])
        start += m
    return [_as_token(rows[i]) for i in numbered], goals


def _state(members: list[list[int]], goals: list[list[int]], names: list[Token], targets: list[Token]) -> _Problem:
    allowed: list[frozenset[int] | None] = [None] * len(names)
    seen: list[list[int]] = [[] for _ in names]
    for j, (ids, ys) in enumerate(zip(members, goals, strict=True)):
        for z in ids:
            before = allowed[z]
            allowed[z] = frozenset(ys) if before is None else before & frozenset(ys)
            seen[z].append(j)
            if not allowed[z]:
                where = ", ".join(f"inputs[{i}]" for i in seen[z])
                raise InfeasibleError(
                    f"token {_shown(names[z])} lies in {where}, whose targets have no token in common"
                )
    sets = [a if a is not None else frozenset() for a in allowed]
    demands = []
    for j, (ids, ys) in enumerate(zip(members, goals, strict=True)):
        for y in ys:
            servers = frozenset(z for z in ids if y in sets[z])
            if not servers:
                raise InfeasibleError(
                    f"target {_shown(targets[y])} of outputs[{j}] cannot be reached: every token of inputs[{j}] also lies in a "
                    "sequence without that target"
                )
            demands.append((y, servers))
    return _Problem(tuple(sets), tuple(demands))


def _shown(token: Token) -> str:
    return "(" + ", ".join(map(str, token)) + ")"


def _search(problem: _Problem) -> dict[int, int] | None:
    """Choices that meet every demand, or None if there are none.

    The branches are kept on a list, not on Python's stack: data without shared tokens branch about ``M`` times in a row.
    Counters of free servers follow each choice and its undoing, so a choice costs only the demands that it touches.
    """
    demands = problem.demands
    touching: list[list[int]] = [[] for _ in problem.allowed]
    for k, (_, servers) in enumerate(demands):
        for z in servers:
            touching[z].append(k)
    fixed: dict[int, int] = {}
    trail: list[int] = []
    free = [len(servers) for _, servers in demands]
    met = [0] * len(demands)
    tightest = [(count, k) for k, count in enumerate(free)]
    heapify(tightest)

    def choose(waiting: list[tuple[int, int]]) -> bool:
        """Fix the choices and all that they force; False if a demand can no longer be met."""
        while waiting:
            z, y = waiting.pop()
            if z in fixed:
                continue
            fixed[z] = y
            trail.append(z)
            possible = True
            for k in touching[z]:
                goal, servers = demands[k]
                free[k] -= 1
                met[k] += goal == y
                if met[k]:
                    continue
                if free[k] == 0:
                    possible = False
                elif free[k] == 1:
                    waiting.append((next(w for w in servers if w not in fixed), goal))
                else:
                    heappush(tightest, (free[k], k))
            if not possible:
                return False
        return True

    def undo(length: int) -> None:
        while len(trail) > length:
            z = trail.pop()
            y = fixed.pop(z)
            for k in touching[z]:
                free[k] += 1
                met[k] -= demands[k][0] == y
                heappush(tightest, (free[k], k))

    branches: list[tuple[int, int, Iterator[int]]] = []
    consistent = choose([(next(iter(servers)), y) for y, servers in demands if len(servers) == 1])
    while True:
        if consistent:
            # Entries are never updated; one is out of date if its demand is met or its count has changed.
            while tightest and (met[tightest[0][1]] or free[tightest[0][1]] != tightest[0][0]):
                heappop(tightest)
            if not tightest:
                return fixed
            y, servers = demands[tightest[0][1]]
            # One of these tokens must serve.
            branches.append((len(trail), y, iter(sorted(z for z in servers if z not in fixed))))
        while branches:
            length, y, untried = branches[-1]
            undo(length)
            following = next(untried, None)
            if following is not None:
                consistent = choose([(following, y)])
                break
            branches.pop()
        else:
            return None


# ---------------------------------------------------------------- the two schemes


def resnet_interpolant(data: Dataset, scheme: Scheme = "labels", width: int = 4) -> Transformer:
    """A transformer without attention that interpolates, where one exists: the honest baseline.

    Statement: with ``f`` from `token_map` and ``|Ω|`` different tokens in all,

    * ``scheme="tokens"``: every token is moved by its own hat; ``|Ω|`` blocks of width 4, ``O(d |Ω|)`` parameters.  This is the scheme
      that transformers are usually compared with.
    * ``scheme="labels"``: tokens are projected to a line, a piecewise-linear function with at most ``|Ω|`` knots gives all tokens
      with the same target the same label, and the at most ``M`` labels are delivered: at most ``⌈|Ω|/w⌉ + ⌈M/w⌉ + 2`` blocks of width
      ``w ≥ 1``, ``d M + O(|Ω| + M + d)`` parameters.

    Shapes: acts on sequences ``(n, d)``.

    Exactness: exact over Q; no attention layer acts, so the result holds at every temperature.

    Cost: that of `token_map`, and sorting.

    Raises: `InfeasibleError` where no map of tokens does it, with the obstruction; `SchemeError`; `WidthError`.

    Example:

    >>> data = Dataset([[[0, 0], [1, 0]], [[1, 0], [2, 1]]], [[[5, 5], [6, 6]], [[6, 6]]])
    >>> resnet_interpolant(data).phases
    {'project': 1, 'labels': 1, 'merge': 1, 'delivery': 1}
    """
    if scheme not in ("labels", "tokens"):
        raise SchemeError(f'scheme is {scheme!r}; "labels" or "tokens" is required')
    check_width(width, 1 if scheme == "labels" else 4)
    f = token_map(data)
    return _by_labels(data, f, width) if scheme == "labels" else _by_tokens(data, f)


def _by_tokens(data: Dataset, f: Mapping[Token, Token]) -> Transformer:
    """One hat per token, along a direction in which all tokens are first moved beyond all targets."""
    d = data.d
    matrix, _ = vocabulary(data)
    a = best_direction(matrix, smallest_gap)
    rows = matrix.tolist()
    labels = project(matrix, a)
    goals = [tuple(map(rational, f[_as_token(x)])) for x in rows]
    reach = max(_inner(a, y) for y in goals)
    # All tokens move by `away`, a multiple of (1, …, 1), so that their labels exceed those of all targets.
    total = sum(a, rational(0))
    gap = reach - min(labels)
    step = power_of_two_above(gap / total) if gap > 0 else rational(0)
    away = tuple(2 * step for _ in range(d))
    lifted = _inner(a, away)
    order = sorted(range(len(rows)), key=labels.__getitem__, reverse=True)
    blocks = []
    for at, i in enumerate(order):
        # To the left are the tokens still to come, and everything delivered.
        left = labels[order[at + 1]] + lifted if at + 1 < len(order) else reach
        start = tuple(x + o for x, o in zip(rows[i], away, strict=True))
        displacement = [y - x for x, y in zip(start, goals[i], strict=True)]
        centre = labels[i] + lifted
        half_width = power_of_two_below(centre - left) if centre > left else rational(1)
        if at == 0 and step > 0:
            units = translation(away) + hat(a, labels[i], half_width, displacement)
        else:
            units = flat_hat(a, centre, half_width, displacement)
        blocks.append(Block.feeding(feed_forward(units, d)))
    return Transformer(blocks, {"tokens": len(blocks)})


def _inner(a: Iterable[Rational], x: Iterable[Rational]) -> Rational:
    return sum((p * q for p, q in zip(a, x, strict=True)), rational(0))


def _by_labels(data: Dataset, f: Mapping[Token, Token], width: int) -> Transformer:
    """Project, relabel by target, keep the new label only, deliver."""
    d = data.d
    matrix, _ = vocabulary(data)
    a = best_direction(matrix, smallest_gap)
    values = project(matrix, a)
    least, span = min(values), max(values) - min(values)
    unit = power_of_two_above(span) if span > 0 else rational(1)
    offset = unit - (least / unit).floor() * unit
    goals = [f[_as_token(x)] for x in matrix.tolist()]
    floor = max(rational(0), *(rational(y[0]) for y in goals))
    # Targets in the order in which their tokens come along the line: then many neighbours share one.
    order = sorted(range(len(values)), key=values.__getitem__)
    base = power_of_two_above(floor) if floor > 0 else rational(1)
    classes = {y: base * (k + 2) for k, y in enumerate(dict.fromkeys(goals[i] for i in order))}
    path = [(values[i] + offset, classes[goals[i]]) for i in order]
    knots = _knots_through(path)
    first = path[0][1]
    project_layer = feed_forward([Unit(tuple(a), offset, axis(d))], d, eta=0)
    chunks = in_chunks(knots, width)
    label_blocks = [Block.feeding(feed_forward(knot_units(chunk, d, 0, 1), d)) for chunk in chunks]
    merge = feed_forward([Unit(axis(d, 1), first, axis(d))], d, eta=0)
    clusters = [Cluster(place, place, tuple(map(rational, y))) for y, place in classes.items()]
    delivery = deliver_from_right(clusters, width, floor)
    return Transformer(
        (Block.feeding(project_layer), *label_blocks, Block.feeding(merge), *delivery),
        {"project": 1, "labels": len(label_blocks), "merge": 1, "delivery": len(delivery)},
    )


def _knots_through(path: list[tuple[Rational, Rational]]) -> list[Knot]:
    """The knots of the piecewise-linear function through the points, less its first value; none where the slope does not turn."""
    knots, slope = [], rational(0)
    for (t, value), (following, goal) in pairwise(path):
        turned = (goal - value) / (following - t)
        if turned != slope:
            knots.append(Knot(t, turned - slope))
        slope = turned
    return knots
