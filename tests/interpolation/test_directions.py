"""Directions: injective where they must be, the widest gap of the tried ones, isolation from the definition."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from interp_lib.fields import power_of_two_above, rational, rational_matrix
from interp_lib.interpolation.directions import best_direction, isolation, project, smallest_gap
from interp_lib.interpolation.separation import context_direction

numbers = st.fractions(-5, 5, max_denominator=8)


@given(st.lists(numbers, min_size=1, max_size=8))
def test_isolation_is_the_distance_to_the_nearest_other(values: list[Fraction]) -> None:
    found = isolation(list(map(rational, values)))
    for i, gap in enumerate(found):
        others = [abs(values[i] - v) for k, v in enumerate(values) if k != i]
        assert gap == (rational(min(others)) if others else None)


@given(st.integers(2, 5).flatmap(lambda d: st.lists(st.tuples(*[numbers] * d), min_size=1, max_size=9, unique=True)))
def test_the_best_direction_is_positive_and_injective(tokens: list[tuple[Fraction, ...]]) -> None:
    matrix = rational_matrix(tokens)
    v = best_direction(matrix, smallest_gap)
    assert all(c > 0 for c in v)
    assert len(set(project(matrix, v))) == len(tokens)


def test_tokens_that_agree_along_every_tried_direction_need_the_moment_curve() -> None:
    # Differences orthogonal to small integer vectors: (k, -1) for k = 1, …, 40 kills (1, k).
    tokens = [[0, 0], *([k, -1] for k in range(1, 41))]
    matrix = rational_matrix(tokens)
    v = best_direction(matrix, smallest_gap)
    assert len(set(project(matrix, v))) == len(tokens)


@given(st.lists(st.integers(1, 1000), min_size=2, max_size=6))
def test_the_context_direction_is_orthogonal_and_of_size_one(v: list[int]) -> None:
    u = context_direction(tuple(map(rational, v)))
    assert sum((a * b for a, b in zip(u, map(rational, v), strict=True)), rational(0)) == 0
    assert power_of_two_above(max(map(abs, u))) == 1
    assert sum(c != 0 for c in u) == 2
