"""The number systems: reading numbers, hardmax with ties, means of equal floats, softmax at extreme temperatures."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import interp_lib as il
from interp_lib.fields import (
    EXACT,
    FLOAT,
    Ball,
    BallMatrix,
    FieldError,
    balls,
    fraction,
    power_of_two_above,
    power_of_two_below,
    rational,
    rational_matrix,
    working_precision,
)

small = st.integers(-3, 3)


def matrices(
    columns: int, entries: st.SearchStrategy[Any] = small, most: int = 6
) -> st.SearchStrategy[list[list[Any]]]:
    return st.lists(st.lists(entries, min_size=columns, max_size=columns), min_size=1, max_size=most)


def hardmax_by_definition(
    tokens: list[list[Any]], queries: list[list[Any]], keys: list[list[Any]]
) -> list[list[Fraction]]:
    """Row ``i``: the mean over all maximisers of ``<queries_i, keys_l>``, over Fractions."""
    means = []
    for q in queries:
        scores = [sum((Fraction(a) * Fraction(b) for a, b in zip(q, k, strict=True)), Fraction(0)) for k in keys]
        chosen = [x for x, s in zip(tokens, scores, strict=True) if s == max(scores)]
        means.append([sum(map(Fraction, column), Fraction(0)) / len(chosen) for column in zip(*chosen, strict=True)])
    return means


def as_fractions(matrix: Any) -> list[list[Fraction]]:
    return [list(row) for row in EXACT.result(matrix)]


# ---------------------------------------------------------------- reading numbers


@given(st.fractions())
def test_fractions_pass_through_unchanged(value: Fraction) -> None:
    assert fraction(rational(value)) == value


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_is_read_exactly(value: float) -> None:
    assert fraction(rational(value)) == Fraction(value)
    assert fraction(rational(np.float64(value))) == Fraction(value)


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_a_float32_is_read_exactly(value: float) -> None:
    assert fraction(rational(np.float32(value))) == Fraction(value)


@given(st.integers(-(2**63), 2**63 - 1))
def test_integers_of_any_kind(value: int) -> None:
    assert rational(np.int64(value)) == rational(value) == value


@pytest.mark.parametrize("value", [math.nan, math.inf, np.float64("inf"), np.float32("nan"), np.longdouble("-inf")])
def test_what_is_not_finite_is_a_value_error(value: Any) -> None:
    with pytest.raises(ValueError, match="not finite"):
        rational(value)


@pytest.mark.parametrize("value", [True, np.True_, "1", b"1", 1j, np.complex128(1), None, [1], np.zeros(2), object()])
def test_what_is_no_number_is_a_type_error(value: Any) -> None:
    with pytest.raises(TypeError):
        rational(value)


@given(st.fractions(Fraction(1, 10**20), 10**20))
def test_powers_of_two_round_a_positive_number_down_and_up(value: Fraction) -> None:
    below, above = (fraction(f(rational(value))) for f in (power_of_two_below, power_of_two_above))
    for power in (below, above):
        assert math.log2(power) == int(math.log2(power))
    assert below <= value < 2 * below
    assert above / 2 < value <= above


@pytest.mark.parametrize("value", [0, -1])
def test_no_power_of_two_for_what_is_not_positive(value: int) -> None:
    with pytest.raises(ValueError, match="expected a positive number"):
        power_of_two_below(rational(value))


# ---------------------------------------------------------------- exact hardmax


@st.composite
def attention_inputs(draw: Any) -> tuple[list[list[int]], list[list[int]], list[list[int]]]:
    tokens = draw(matrices(2))
    rank = draw(st.integers(1, 3))
    shape = {"min_size": len(tokens), "max_size": len(tokens)}
    rows = st.lists(st.lists(small, min_size=rank, max_size=rank), **shape)
    return tokens, draw(rows), draw(rows)


@given(attention_inputs())
def test_exact_hardmax_is_the_definition_ties_included(inputs: Any) -> None:
    averaged = EXACT.hardmax(*map(rational_matrix, inputs))
    assert as_fractions(averaged) == hardmax_by_definition(*inputs)


@given(attention_inputs())
def test_float_hardmax_agrees_where_everything_is_representable(inputs: Any) -> None:
    averaged = FLOAT.hardmax(*(FLOAT.matrix(rational_matrix(m)) for m in inputs))
    assert np.allclose(averaged, np.array(hardmax_by_definition(*inputs), dtype=float), rtol=1e-15, atol=1e-15)


@given(attention_inputs())
def test_the_rank_one_shortcut_equals_the_general_path(inputs: Any) -> None:
    tokens, queries, keys = inputs
    queries, keys = [q[:1] for q in queries], [k[:1] for k in keys]
    # A second coordinate that is zero changes no score but switches the shortcut off.
    wide = [[*q, 0] for q in queries], [[*k, 0] for k in keys]
    exact = EXACT.hardmax(*map(rational_matrix, (tokens, queries, keys)))
    assert exact == EXACT.hardmax(*map(rational_matrix, (tokens, *wide)))
    over = [FLOAT.matrix(rational_matrix(m)) for m in (tokens, queries, keys)]
    general = FLOAT.hardmax(over[0], *(FLOAT.matrix(rational_matrix(m)) for m in wide))
    assert np.array_equal(FLOAT.hardmax(*over), general)


def test_a_zero_query_ties_over_all_tokens() -> None:
    tokens, queries, keys = (rational_matrix(m) for m in ([[0, 0], [1, 0], [5, 3]], [[0], [1], [-1]], [[7], [8], [9]]))
    assert as_fractions(EXACT.hardmax(tokens, queries, keys)) == [[2, 1], [5, 3], [0, 0]]


# ---------------------------------------------------------------- float means

floats = st.floats(-1e12, 1e12)


@given(st.lists(floats, min_size=2, max_size=2), st.integers(1, 40))
def test_the_mean_of_equal_floats_is_that_float(token: list[float], n: int) -> None:
    tokens = np.array([token] * n)
    assert np.array_equal(FLOAT.mean(tokens), tokens)
    ones = np.ones((n, 2))
    assert np.array_equal(FLOAT.hardmax(tokens, ones, ones), tokens)
    assert np.array_equal(FLOAT.hardmax(tokens, ones[:, :1], ones[:, :1]), tokens)


@given(matrices(2, floats, most=12))
def test_float_means_are_close_to_exact_means(rows: list[list[float]]) -> None:
    exact = as_fractions(EXACT.mean(rational_matrix(rows)))
    size = max(abs(v) for row in rows for v in row)
    assert np.allclose(FLOAT.mean(np.array(rows)), np.array(exact, dtype=float), rtol=0, atol=1e-14 * size + 1e-300)


def test_methods_never_change_their_arguments() -> None:
    tokens = np.array([[1.0, 2.0], [3.0, 4.0]])
    kept = tokens.copy()
    FLOAT.hardmax(tokens, tokens, tokens)
    FLOAT.softmax(tokens, tokens, tokens, rational(1))
    FLOAT.relu(-tokens)
    FLOAT.mean(tokens)
    assert np.array_equal(tokens, kept)


# ---------------------------------------------------------------- softmax

temperatures = st.sampled_from([Fraction(10) ** k for k in (-400, -12, -6, -1, 0, 1, 6, 12, 400)])


@given(attention_inputs(), temperatures)
def test_softmax_is_finite_and_stays_in_the_range_of_the_tokens(inputs: Any, tau: Fraction) -> None:
    tokens, queries, keys = (FLOAT.matrix(rational_matrix(m)) for m in inputs)
    averaged = FLOAT.softmax(tokens, queries, keys, rational(tau))
    assert np.isfinite(averaged).all()
    assert (averaged >= tokens.min(axis=0) - 1e-14).all()
    assert (averaged <= tokens.max(axis=0) + 1e-14).all()


@given(attention_inputs())
@pytest.mark.parametrize("exponent", [-400, -12])
def test_the_coldest_softmax_is_hardmax(exponent: int, inputs: Any) -> None:
    # Scores are integers: a gap of 1 at τ = 1e-12 leaves weights of exp(-1e12) = 0.
    tokens, queries, keys = (FLOAT.matrix(rational_matrix(m)) for m in inputs)
    cold = FLOAT.softmax(tokens, queries, keys, rational(Fraction(10) ** exponent))
    assert np.allclose(cold, FLOAT.hardmax(tokens, queries, keys), rtol=1e-14, atol=1e-14)


@given(attention_inputs())
@pytest.mark.parametrize("exponent", [12, 400])
def test_the_hottest_softmax_is_the_mean(exponent: int, inputs: Any) -> None:
    tokens, queries, keys = (FLOAT.matrix(rational_matrix(m)) for m in inputs)
    hot = FLOAT.softmax(tokens, queries, keys, rational(Fraction(10) ** exponent))
    assert np.allclose(hot, FLOAT.mean(tokens), rtol=0, atol=1e-10)


@given(attention_inputs(), st.sampled_from([0.01, 0.3, 1, 20]))
def test_softmax_is_the_definition(inputs: Any, tau: float) -> None:
    tokens, queries, keys = inputs
    averaged = FLOAT.softmax(*(FLOAT.matrix(rational_matrix(m)) for m in inputs), rational(tau))
    for q, row in zip(queries, averaged, strict=True):
        scores = [sum(a * b for a, b in zip(q, k, strict=True)) for k in keys]
        weights = [math.exp((s - max(scores)) / tau) for s in scores]
        for c, value in enumerate(row):
            expected = sum(w * x[c] for w, x in zip(weights, tokens, strict=True)) / sum(weights)
            assert value == pytest.approx(expected, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("size", [1e-12, 1.0, 1e12])
def test_softmax_at_any_scale_of_the_scores(size: float) -> None:
    tokens = np.array([[0.0, 1.0], [2.0, 3.0]])
    for tau in (1e-12, 1.0, 1e12):
        averaged = FLOAT.softmax(tokens, size * tokens, tokens, rational(tau))
        assert np.isfinite(averaged).all()


@given(matrices(2), temperatures)
def test_exact_softmax_exists_where_scores_are_constant(tokens: list[list[int]], tau: Fraction) -> None:
    matrix = rational_matrix(tokens)
    still = rational_matrix([[1]] * len(tokens))
    assert EXACT.softmax(matrix, matrix * rational_matrix([[1], [1]]), still, rational(tau)) == EXACT.mean(matrix)


def test_exact_softmax_is_refused_where_scores_differ() -> None:
    keys = rational_matrix([[0], [1]])
    with pytest.raises(FieldError, match="weights of non-constant scores are irrational"):
        EXACT.softmax(keys, keys, keys, rational(1))


# ---------------------------------------------------------------- balls


@given(attention_inputs(), st.sampled_from([Fraction(1, 100), Fraction(1), Fraction(50)]))
def test_balls_enclose_the_float_softmax(inputs: Any, tau: Fraction) -> None:
    exact = [rational_matrix(m) for m in inputs]
    field = il.balls(128)
    enclosed = field.result(field.softmax(*map(field.matrix, exact), rational(tau)))
    measured = FLOAT.softmax(*map(FLOAT.matrix, exact), rational(tau))
    for enclosures, row in zip(enclosed, measured, strict=True):
        for ball, value in zip(enclosures, row, strict=True):
            assert abs(float(ball.mid()) - value) <= float(ball.rad()) + 1e-12


@pytest.mark.parametrize("bits", [31, 0, -5, 1 << 21, 53.0, True, None, "128"])
def test_a_number_of_bits_that_makes_no_sense(bits: Any) -> None:
    with pytest.raises(FieldError, match="bits: expected an integer between 32 and"):
        il.balls(bits)


def test_a_softmax_of_scores_too_wide_to_tell_stays_in_the_hull() -> None:
    wide = Ball(0, 10**12)
    with working_precision(64):
        tokens = BallMatrix([[Ball(0), Ball(1)], [Ball(3), Ball(5)]])
        keys = BallMatrix([[wide], [Ball(0)]])
    (row, _) = balls(64).softmax(tokens, BallMatrix([[Ball(1)], [Ball(1)]]), keys, rational(1) / 1000).tolist()
    for value, low, high in zip(row, (0, 1), (3, 5), strict=True):
        assert value.is_finite()
        assert value.contains(low)
        assert value.contains(high)
