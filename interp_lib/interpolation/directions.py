"""Choosing directions: positive vectors along which given points project to well separated numbers.

Almost every direction separates finitely many distinct points.  The candidates here are small
positive integers (times powers of two that even out the ranges of the coordinates), tried in a fixed
order, and the best by a given quality wins.  If none is good at all, the moment curve
``(1, s, s², …)`` is: two distinct points project equally for at most ``d - 1`` values of ``s``, so
finitely many ``s`` fail for finitely many points.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count, pairwise
from random import Random

from ..fields import Rational, RationalMatrix, common_denominator, power_of_two_below, rational, rational_matrix

Direction = tuple[Rational, ...]
TRIED = 8
PROJECTIONS = 100_000
SAMPLE = 512


def project(tokens: RationalMatrix, direction: Direction) -> list[Rational]:
    """The numbers ``<direction, x>`` for the rows ``x`` of ``tokens``.

    >>> project(rational_matrix([[1, 2], [3, 4]]), (rational(1), rational(10)))
    [21, 43]
    """
    return (tokens * rational_matrix([[v] for v in direction])).entries()


def isolation(values: Sequence[Rational]) -> list[Rational | None]:
    """For each number the distance to the nearest other one (0 for a repeated number, None if alone).

    >>> isolation([rational(4), rational(1), rational(2)])
    [2, 1, 1]
    """
    whole, denominator = common_denominator(values)
    order = sorted(range(len(values)), key=whole.__getitem__)
    gaps = [whole[right] - whole[left] for left, right in pairwise(order)]
    nearest: list[Rational | None] = [None] * len(values)
    if gaps:
        for at, before, after in zip(order, [gaps[0], *gaps], [*gaps, gaps[-1]], strict=True):
            nearest[at] = rational(min(before, after)) / denominator
    return nearest


def smallest_gap(values: Sequence[Rational]) -> Rational:
    """The least isolation, relative to the span; 1 for a single number.

    >>> smallest_gap([rational(0), rational(1), rational(4)])
    1/4
    """
    ordered = sorted(common_denominator(values)[0])
    if len(ordered) == 1:
        return rational(1)
    span = ordered[-1] - ordered[0]
    return rational(min(right - left for left, right in pairwise(ordered))) / span if span > 0 else rational(0)


def best_direction(
    tokens: RationalMatrix,
    quality: Callable[[list[Rational]], Rational],
    shape: Callable[[Direction], Direction] = tuple,
) -> Direction:
    """A direction for which ``quality`` of the projections is positive, the best of a few.

    The candidates are ``shape(c)`` for positive ``c``; ``shape`` is linear and one-to-one.  ``quality`` must
    be positive for every direction that is injective on the rows of ``tokens``.

    >>> best_direction(rational_matrix([[0, 0], [1, 0], [0, 1]]), smallest_gap)
    (1, 2)
    """
    found: tuple[Rational, Direction] | None = None
    # Fewer where each costs more.
    enough = max(2, min(TRIED, PROJECTIONS // tokens.nrows()))
    for tried, candidate in enumerate(_candidates(tokens)):
        if tried >= enough and found is not None:
            break
        direction = shape(candidate)
        value = quality(project(tokens, direction))
        if value > 0 and (found is None or value > found[0]):
            found = (value, direction)
    assert found is not None  # the candidates never end before one is found
    return found[1]


def _candidates(tokens: RationalMatrix) -> Iterator[Direction]:
    d = tokens.ncols()
    scales = _even_out(tokens)
    yield tuple(s * k for k, s in enumerate(scales, start=1))
    random, largest = Random(0), max(8, tokens.nrows())
    for _ in range(TRIED):
        yield tuple(s * random.randint(1, largest) for s in scales)
    for s in count(1):
        yield tuple(rational(s**power) for power in range(d))


def _even_out(tokens: RationalMatrix) -> list[Rational]:
    """Powers of two ``≥ 1`` that bring the range of every coordinate near the largest one, judged by a sample of tokens."""
    n, d = tokens.nrows(), tokens.ncols()
    sample = range(0, n, -(-n // SAMPLE))
    ranges = [max(column) - min(column) for column in ([tokens[i, c] for i in sample] for c in range(d))]
    widest = max(ranges)
    return [power_of_two_below(widest / r) if r != 0 else rational(1) for r in ranges]
