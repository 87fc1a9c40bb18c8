"""The extremes with six parameters and certified errors; the completions behind the lower bound for the others."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from interp_lib.infoflow.retrieval import (
    RetrievalError,
    certified_error,
    extreme,
    hidden_order,
    kth_largest,
    lemma_s_at_a_maximum,
)

np = pytest.importorskip("numpy")


@given(
    st.lists(st.fractions(-2, 2, max_denominator=1000), min_size=1, max_size=12),
    st.fractions(Fraction(1, 1000), 1),
    st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_extremes_within_epsilon(values: list[Fraction], eps: Fraction, smallest: bool) -> None:
    model = extreme(len(values), eps, smallest)
    assert model.target(values) == (min(values) if smallest else max(values))
    error = certified_error(model, values)
    assert error.at_most <= eps * (1 + Fraction(1, 10**20))
    assert float(error.low) == pytest.approx(model.forward(values) - float(model.target(values)), abs=1e-9)
    assert model.parameters == 6


@pytest.mark.parametrize("T", [2, 8, 64, 512])
@pytest.mark.parametrize("smallest", [False, True])
def test_the_error_is_attained(T: int, smallest: bool) -> None:
    for eps in (Fraction(1, 10), Fraction(1, 1000)):
        model = extreme(T, eps, smallest)
        error = certified_error(model, model.worst_input())
        assert error.at_least >= eps * Fraction(999, 1000)
        assert error.at_most <= eps


def test_kth_largest_by_sorting() -> None:
    assert [kth_largest([5, 1, 5, 3], k) for k in (1, 2, 3, 4)] == [5, 5, 3, 1]
    with pytest.raises(RetrievalError, match="k: expected"):
        kth_largest([1], 2)


@given(st.lists(st.floats(0, 20), min_size=1, max_size=20))
def test_the_step_of_lemma_s(distances: list[float]) -> None:
    f, term = lemma_s_at_a_maximum(distances)
    assert term <= math.exp(-1 - f) * (1 + 1e-12)
    k = max(range(len(distances)), key=lambda l: abs(distances[l] - 1 - f))
    moved = [*distances[:k], 1 + f, *distances[k + 1 :]]
    assert lemma_s_at_a_maximum(moved)[0] >= f - 1e-12


@given(st.integers(2, 6), st.integers(1, 5), st.booleans(), st.data())
def test_the_order_is_hidden_in_the_last_difference(k: int, count: int, high: bool, data: st.DataObject) -> None:
    low, width = (Fraction(1, 100), Fraction(1, 2)) if high else (Fraction(1, 2), Fraction(49, 100))
    choices = [
        [
            low + (t + data.draw(st.fractions(0, Fraction(9, 10), max_denominator=20))) * width / count
            for t in range(count)
        ]
        for _ in range(2)
    ]
    assume(choices[0] != choices[1])
    anchor = Fraction(3, 4) if high else Fraction(1, 4)
    T = count + k + data.draw(st.integers(0, 3))
    X, Y = hidden_order(k, choices, anchor, high, T)
    assert len(X) == len(Y) == T
    last = max(t for t in range(count) if choices[0][t] != choices[1][t])
    assert (kth_largest(X, k), kth_largest(Y, k)) == (choices[0][last], choices[1][last])


def test_errors() -> None:
    with pytest.raises(RetrievalError, match="T: expected"):
        extreme(0, 1)
    with pytest.raises(RetrievalError, match="eps: expected"):
        extreme(3, 0)
    with pytest.raises(RetrievalError, match="values: expected 3"):
        extreme(3, 1).forward([1])
    with pytest.raises(RetrievalError, match="k ≥ 2"):
        hidden_order(1, ([0], [1]), 0.5, True, 2)
