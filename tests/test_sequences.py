"""Data sets: what is accepted, what is refused and in which words, and the Hausdorff distance."""

from __future__ import annotations

import copy
import math
import pickle
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import interp_lib as il
from interp_lib.examples import running_example
from interp_lib.fields import rational
from interp_lib.sequences import root_as_float, squared_hausdorff_distance

X = [[[0, 0], [1, 0]], [[1, 0], [2, 1]]]
Y = [[[5, 5]], [[6, 5], [5, 6]]]


def changed(side: list[Any], place: tuple[int, ...], value: Any) -> list[Any]:
    """A copy of ``side`` with ``value`` at the nested position ``place``."""
    new = copy.deepcopy(side)
    inner = new
    for at in place[:-1]:
        inner = inner[at]
    inner[place[-1]] = value
    return new


# ---------------------------------------------------------------- refused


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (math.nan, "nan; a finite number is required"),
        (math.inf, "inf; a finite number is required"),
        (-math.inf, "-inf; a finite number is required"),
        (np.float32("nan"), "nan; a finite number is required"),
        (np.float64("inf"), "inf; a finite number is required"),
        (Decimal("NaN"), "NaN; a finite number is required"),
        (Decimal("-Infinity"), "-Infinity; a finite number is required"),
        ("1.5", "a string ('1.5'); a real number is required"),
        (b"1", "a string (b'1'); a real number is required"),
        (np.str_("x"), "a string"),
        (True, "a boolean (True); a real number is required"),
        (np.bool_(False), "a boolean"),
        (1 + 2j, "a complex number ((1+2j)); a real number is required"),
        (np.complex64(1), "a complex number"),
        (None, "a NoneType (None); a real number is required"),
        (object, "a type"),
    ],
)
@pytest.mark.parametrize(("name", "place"), [("inputs", (1, 0, 1)), ("outputs", (0, 0, 0))])
def test_a_coordinate_that_is_no_finite_real_number(value: Any, words: str, name: str, place: tuple[int, ...]) -> None:
    sides = {"inputs": X, "outputs": Y}
    sides[name] = changed(sides[name], place, value)
    with pytest.raises(il.DatasetError) as caught:
        il.Dataset(**sides)
    at = "".join(f"[{i}]" for i in place)
    assert str(caught.value).startswith(f"{name}{at} is {words}")


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_nan_inside_an_array(dtype: Any) -> None:
    bad = np.array([[0, 0], [1, np.nan]], dtype=dtype)
    with pytest.raises(il.DatasetError, match=r"inputs\[0\]\[1\]\[1\] is nan; a finite number is required"):
        il.Dataset([bad, X[1]], Y)


@pytest.mark.parametrize("dtype", [bool, complex, "U3"])
def test_arrays_of_other_kinds(dtype: Any) -> None:
    bad = np.zeros((2, 2)).astype(dtype)
    with pytest.raises(il.DatasetError, match=r"inputs\[0\]\[0\]\[0\] is a (boolean|complex number|string)"):
        il.Dataset([bad, X[1]], Y)


@pytest.mark.parametrize(
    ("inputs", "outputs", "message"),
    [
        ([], [], "inputs is empty; at least one sequence is required"),
        (X, [], "outputs is empty; at least one sequence is required"),
        (changed(X, (1,), []), Y, "inputs[1] is empty; a sequence has at least one token"),
        (X, changed(Y, (0,), []), "outputs[0] is empty; a sequence has at least one token"),
        (X, changed(Y, (0,), np.zeros((0, 2))), "outputs[0] is empty; a sequence has at least one token"),
        (X, Y[:1], "outputs has 1 sequences but inputs has 2; one target per input is required"),
        (X[:1], Y, "outputs has 2 sequences but inputs has 1; one target per input is required"),
        (
            X,
            changed(Y, (1,), [[1, 1], [2, 2], [3, 3]]),
            "outputs[1] has 3 tokens but inputs[1] has 2; m_j ≤ n_j is required",
        ),
        (
            changed(X, (1, 1), [2, 1, 0]),
            Y,
            "inputs[1][1] has 3 coordinates but inputs[1][0] has 2; all tokens need the same dimension",
        ),
        (
            changed(X, (1,), [[1, 0, 0]]),
            Y,
            "inputs[1] has tokens with 3 coordinates but inputs[0] has 2; all tokens need the same dimension",
        ),
        (
            X,
            changed(Y, (0,), [[1, 2, 3]]),
            "outputs[0] has tokens with 3 coordinates but inputs[0] has 2; all tokens need the same dimension",
        ),
        ([[[1], [2]]], [[[3]]], "inputs[0] has tokens with 1 coordinates; d ≥ 2 is required"),
        ([[[]]], [[[]]], "inputs[0] has tokens with 0 coordinates; d ≥ 2 is required"),
        (
            changed(X, (0,), [[1, 2], [0, 0], [1.0, Fraction(2)]]),
            Y,
            "inputs[0][2] repeats inputs[0][0]; the tokens of a sequence must be distinct",
        ),
        (
            X,
            changed(Y, (1,), [[1, 2], [1, 2]]),
            "outputs[1][1] repeats outputs[1][0]; the tokens of a sequence must be distinct",
        ),
        (
            [X[0], X[1], X[0]],
            [*Y, Y[0]],
            "inputs[2] equals inputs[0]; sequences are sets of tokens and the inputs must be pairwise different",
        ),
        (
            [X[0], X[1], X[1][::-1]],
            [*Y, Y[0]],
            "inputs[2] has the same tokens as inputs[1]; "
            "sequences are sets of tokens and the inputs must be pairwise different",
        ),
        (None, Y, "inputs: expected a list of sequences, got None"),
        (X, None, "outputs: expected a list of sequences, got None"),
        (changed(X, (0,), None), Y, "inputs[0]: expected a list of tokens, got None"),
        (X, changed(Y, (1, 1), None), "outputs[1][1]: expected a list of coordinates, got None"),
        ("abc", Y, "inputs: expected a list of sequences, got 'abc'"),
        (changed(X, (0,), "ab"), Y, "inputs[0]: expected a list of tokens, got 'ab'"),
        (changed(X, (0, 1), "ab"), Y, "inputs[0][1]: expected a list of coordinates, got 'ab'"),
        (7, Y, "inputs: expected a list of sequences, got 7"),
        ({"a": X[0]}, Y, "inputs: expected a list of sequences, got {'a': [[0, 0], [1, 0]]}"),
        (X[0], Y, "inputs[0][0]: expected a list of coordinates, got 0"),
        ([X, X], Y, "inputs[0][0][0]: expected a number, got a nested list; a token is a flat list"),
        (
            X,
            [np.zeros((1, 1, 2)), Y[1]],
            "outputs[0][0][0]: expected a number, got a nested list; a token is a flat list",
        ),
        (np.array(3.0), Y, "inputs: expected a list of sequences, got array(3.)"),
    ],
)
def test_every_broken_assumption_has_its_own_message(inputs: Any, outputs: Any, message: str) -> None:
    with pytest.raises(il.DatasetError) as caught:
        il.Dataset(inputs, outputs)
    assert str(caught.value) == message


def test_messages_are_value_errors_and_stay_short_for_long_values() -> None:
    with pytest.raises(ValueError, match=r"inputs: expected a list of sequences, got a str$"):
        il.Dataset("x" * 1000, Y)


def test_tokens_that_differ_only_beyond_float_precision_are_different() -> None:
    near = Fraction(1, 3) + Fraction(1, 10**40)
    data = il.Dataset([[[Fraction(1, 3), 0], [near, 0]]], [[[0, 0]]])
    assert data.n == (2,)


# ---------------------------------------------------------------- accepted


def test_a_float_is_the_dyadic_rational_it_is() -> None:
    data = il.Dataset([[[0.1, np.float32(0.1)]]], [[[Decimal("0.1"), Fraction(1, 10)]]])
    assert data.inputs[0][0] == (Fraction(0.1), Fraction(float(np.float32(0.1))))
    assert data.inputs[0][0][0] != Fraction(1, 10)
    assert data.outputs[0][0] == (Fraction(1, 10), Fraction(1, 10))


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.int64, np.int8, np.uint16, object])
def test_arrays_of_any_real_kind(dtype: Any) -> None:
    data = il.Dataset([np.array(x, dtype=dtype) for x in X], [np.array(y, dtype=dtype) for y in Y])
    assert data == il.Dataset(X, Y)
    assert all(type(v) is Fraction for x in data.inputs for token in x for v in token)


def test_one_array_for_all_sequences_and_an_object_array_of_fractions() -> None:
    assert il.Dataset(np.array(X), Y) == il.Dataset(X, Y)
    thirds = np.array([[Fraction(1, 3), 0.5], [2, np.int32(3)]], dtype=object)
    assert il.Dataset([thirds], [[[0, 0]]]).inputs[0] == ((Fraction(1, 3), Fraction(1, 2)), (2, 3))


def test_mixed_kinds_tuples_generators_and_sets() -> None:
    mixed = (((0, Fraction(0)), (np.float32(1), 0.0)), np.array([[1, 0], [2, 1]]))
    assert il.Dataset(mixed, iter(Y)) == il.Dataset(X, Y)
    assert il.Dataset([{(1, 2)}], [frozenset({(3, 4)})]) == il.Dataset([[[1, 2]]], [[[3, 4]]])


def test_an_array_of_numbers_in_reversed_or_strided_memory() -> None:
    strided = np.arange(12.0).reshape(6, 2)[::-2]
    assert il.Dataset([strided], [[[0, 0]]]).inputs[0] == ((10, 11), (6, 7), (2, 3))


def test_shared_tokens_nested_sets_and_equal_targets_are_allowed() -> None:
    data = il.Dataset([[[0, 0]], [[0, 0], [1, 1]]], [[[0, 0]], [[0, 0]]])
    assert (data.N, data.d, data.n, data.m, data.M) == (2, 2, (1, 2), (1, 1), 2)


def test_the_caller_s_lists_are_not_kept() -> None:
    mine = copy.deepcopy(X)
    data = il.Dataset(mine, Y)
    mine[0][0][0] = 99
    assert data == il.Dataset(X, Y)
    with pytest.raises((AttributeError, TypeError)):
        data.inputs = ()  # type: ignore[misc]


def test_a_data_set_survives_copying_and_pickling() -> None:
    data = running_example()
    assert pickle.loads(pickle.dumps(data)) == data
    assert copy.deepcopy(data) == data
    assert hash(data) == hash(running_example())


# ---------------------------------------------------------------- Hausdorff distance

coordinates = st.integers(-8, 8) | st.fractions(-8, 8, max_denominator=12) | st.floats(-8, 8, width=32)
points = st.lists(st.lists(coordinates, min_size=2, max_size=2), min_size=1, max_size=5)


def brute_force(A: list[list[Any]], B: list[list[Any]]) -> Fraction:
    """The square of the distance, from the definition, over Fractions."""

    def squared(a: list[Any], b: list[Any]) -> Fraction:
        return sum(((Fraction(x) - Fraction(y)) ** 2 for x, y in zip(a, b, strict=True)), Fraction(0))

    there = max(min(squared(a, b) for b in B) for a in A)
    back = max(min(squared(a, b) for a in A) for b in B)
    return max(there, back)


@given(points, points)
def test_the_distance_is_the_definition(A: list[list[Any]], B: list[list[Any]]) -> None:
    assert il.hausdorff_distance(A, B) == pytest.approx(math.sqrt(brute_force(A, B)), rel=1e-15, abs=1e-300)


@given(points, points, points, st.randoms(use_true_random=False))
def test_the_distance_is_a_metric_on_sets(A: list[Any], B: list[Any], C: list[Any], random: Any) -> None:
    shuffled = random.sample(A, len(A)) + A[:1]
    assert il.hausdorff_distance(A, shuffled) == 0.0
    assert il.hausdorff_distance(A, B) == il.hausdorff_distance(B, A)
    assert il.hausdorff_distance(A, C) <= (il.hausdorff_distance(A, B) + il.hausdorff_distance(B, C)) * (1 + 1e-12)
    same = {tuple(map(Fraction, a)) for a in A} == {tuple(map(Fraction, b)) for b in B}
    assert (il.hausdorff_distance(A, B) == 0.0) == same


def test_the_distance_sees_differences_that_floats_do_not() -> None:
    tiny = Fraction(1, 10**200)
    assert il.hausdorff_distance([[1 + tiny, 0]], [[1, 0]]) == pytest.approx(1e-200)
    assert il.hausdorff_distance([[Fraction(1, 10**400), 0]], [[0, 0]]) > 0
    assert il.hausdorff_distance([[10**400, 0]], [[0, 0]]) == math.inf


@pytest.mark.parametrize(
    ("A", "B", "message"),
    [
        ([], [[0]], "A is empty; a sequence has at least one token"),
        ([[0]], [], "B is empty; a sequence has at least one token"),
        (
            [[0, 0]],
            [[0]],
            "A has tokens with 2 coordinates but B has 1; all tokens need the same dimension",
        ),
        ([[math.nan]], [[0]], "A[0][0] is nan; a finite number is required"),
        (None, [[0]], "A: expected a list of tokens, got None"),
    ],
)
def test_the_distance_refuses_what_is_no_set_of_tokens(A: Any, B: Any, message: str) -> None:
    with pytest.raises(il.DatasetError) as caught:
        il.hausdorff_distance(A, B)
    assert str(caught.value) == message


@given(st.fractions(0, 10**30, max_denominator=10**30))
def test_the_root_is_right_to_the_last_digit_or_so(square: Fraction) -> None:
    root = Fraction(root_as_float(rational(square)))
    slack = Fraction(1, 2**52)
    assert (root * (1 - slack)) ** 2 <= square <= (root * (1 + slack)) ** 2


@given(points, points)
def test_the_squared_distance_is_exact(A: list[list[Any]], B: list[list[Any]]) -> None:
    exact = squared_hausdorff_distance([[rational(v) for v in a] for a in A], [[rational(v) for v in b] for b in B])
    assert exact == rational(brute_force(A, B))
