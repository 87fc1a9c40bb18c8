"""Layers, blocks and transformers: shapes, structured matrices, phases, counts, errors."""

from __future__ import annotations

import pickle
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import interp_lib as il
from interp_lib.fields import fraction
from interp_lib.layers import (
    Block,
    FeedForward,
    LayerError,
    ScaledLowRank,
    SelfAttention,
    Transformer,
    read_temperature,
)

small = st.integers(-3, 3) | st.fractions(-2, 2, max_denominator=5)


def rows(count: int, length: int) -> st.SearchStrategy[list[list[Any]]]:
    return st.lists(st.lists(small, min_size=length, max_size=length), min_size=count, max_size=count)


@st.composite
def blocks(draw: Any, d: int) -> Block:
    width = draw(st.integers(0, 4))
    ranks = draw(st.tuples(st.integers(0, 2), st.integers(0, 2)))
    A, V = (ScaledLowRank(draw(small), draw(rows(d, r)), draw(rows(d, r))) for r in ranks)
    feed = FeedForward(
        draw(small), draw(rows(width, d)), [row[0] for row in draw(rows(width, 1))], draw(rows(d, width))
    )
    return Block(feed, SelfAttention(draw(small), A, V))


def test_weights_are_fractions_of_the_stated_shapes() -> None:
    layer = FeedForward(0.5, [[1, 2], [3, 4], [5, 6]], [7, 8, 9], [[1, 0, 0], [0, Fraction(1, 3), 0]])
    assert (layer.eta, layer.d, layer.width) == (Fraction(1, 2), 2, 3)
    assert (len(layer.U), len(layer.U[0]), len(layer.b), len(layer.W), len(layer.W[0])) == (3, 2, 3, 2, 3)
    assert all(type(v) is Fraction for row in (*layer.U, layer.b, *layer.W) for v in row)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1, [], [], []), "W has no rows; expected d ≥ 1"),
        ((1, [[1, 2]], [0, 0], [[1, 1]] * 2), "U has 1 rows; expected 2"),
        ((1, [[1, 2, 3]], [0], [[1]] * 2), "U[0] has 3 entries; expected 2"),
        ((1, [[1, 2]], [0], [[1], [1, 2]]), "W[1] has 2 entries; expected 1"),
        ((float("nan"), [[1, 2]], [0], [[1]] * 2), "eta holds not finite; rational numbers are required"),
        ((1, [["x", 2]], [0], [[1]] * 2), "U[0] holds a string; rational numbers are required"),
        ((1, [[1, 2]], [True], [[1]] * 2), "b holds a boolean; rational numbers are required"),
    ],
)
def test_a_feed_forward_layer_with_wrong_weights(arguments: Any, message: str) -> None:
    with pytest.raises(LayerError) as caught:
        FeedForward(*arguments)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: ScaledLowRank(1, [], []), "left has no rows; expected d ≥ 1"),
        (lambda: ScaledLowRank(1, [[1], [2]], [[1]]), "right has 1 rows; expected 2"),
        (lambda: ScaledLowRank(1, [[1], [2]], [[1], [2, 3]]), "right[1] has 2 entries; expected 1"),
        (lambda: ScaledLowRank(None, [[1]], [[1]]), "scale holds a NoneType; rational numbers are required"),
        (
            lambda: SelfAttention(1, ScaledLowRank.zero(2), ScaledLowRank.zero(3)),
            "A is 2 × 2 but V is 3 × 3; the same size is required",
        ),
        (
            lambda: Block(FeedForward.identity(2), SelfAttention.identity(3)),
            "feed_forward acts on R^2 but attention on R^3; the same dimension is required",
        ),
        (lambda: Transformer([]), "blocks is empty; a transformer has at least one block"),
        (
            lambda: Transformer([Block.identity(2), Block.identity(3)]),
            "blocks[1] acts on R^3 but blocks[0] on R^2",
        ),
        (lambda: Transformer([Block.identity(2)], {"a": 2}), "phases count 2 blocks but there are 1"),
        (lambda: Transformer([Block.identity(2)] * 3).padded(2), "cannot pad 3 blocks to 2"),
        (
            lambda: Transformer([Block.identity(2)]).num_parameters("all"),  # type: ignore[arg-type]
            'count: expected "structured", "nonzero" or "dense", got \'all\'',
        ),
    ],
)
def test_values_that_do_not_fit_together(build: Any, message: str) -> None:
    with pytest.raises(LayerError) as caught:
        build()
    assert str(caught.value) == message


@given(small, rows(3, 2), rows(3, 2))
def test_a_structured_matrix_is_scaled_identity_plus_outer_products(scale: Any, left: Any, right: Any) -> None:
    dense = ScaledLowRank(scale, left, right).dense()
    for i in range(3):
        for k in range(3):
            low_rank = sum(Fraction(a) * Fraction(b) for a, b in zip(left[i], right[k], strict=True))
            assert dense[i][k] == low_rank + (scale if i == k else 0)


def test_the_named_matrices() -> None:
    assert ScaledLowRank.identity(2).dense() == ((1, 0), (0, 1))
    assert ScaledLowRank.identity(2, Fraction(1, 2)).dense() == ((Fraction(1, 2), 0), (0, Fraction(1, 2)))
    assert ScaledLowRank.zero(2).is_zero
    assert ScaledLowRank.outer([1, 2], [3, 4]).dense() == ((3, 4), (6, 8))
    assert not ScaledLowRank.outer([1, 2], [3, 4]).is_zero
    assert ScaledLowRank.outer([0, 0], [3, 4]).is_zero


def test_the_three_counts_of_one_block() -> None:
    d = 5
    A = V = ScaledLowRank(1, [[1]] * d, [[1]] * d)
    block = Block(FeedForward(1, [[1] * d] * 4, [1] * 4, [[1] * 4] * d), SelfAttention(1, A, V))
    assert block.num_parameters("structured") == 12 * d + 8
    assert block.num_parameters("nonzero") == 12 * d + 8
    assert block.num_parameters("dense") == 2 * d * d + 8 * d + 6
    assert Block.identity(d).num_parameters("nonzero") == 2


@given(st.integers(2, 4).flatmap(lambda d: st.lists(blocks(d), min_size=1, max_size=3)))
def test_counts_add_up_and_nonzero_never_exceeds_structured(listed: list[Block]) -> None:
    T = Transformer(listed)
    for count in ("structured", "nonzero", "dense"):
        assert T.num_parameters(count) == sum(block.num_parameters(count) for block in listed)  # type: ignore[arg-type]
    assert T.num_parameters("nonzero") <= T.num_parameters("structured")
    assert T.width == max(block.feed_forward.width for block in listed)
    assert T.depth == len(listed)


@given(st.lists(blocks(2), min_size=1, max_size=2))
def test_values_compare_copy_and_pickle(listed: list[Block]) -> None:
    T = Transformer(listed, critical_temperature=Fraction(1, 7))
    again = pickle.loads(pickle.dumps(T))
    assert again == T
    assert hash(again) == hash(T)


def test_phases_name_every_block_in_order() -> None:
    T = Transformer([Block.identity(2)] * 3, {"first": 1, "none": 0, "second": 2})
    assert [T.phase_of(k) for k in range(3)] == ["first", "second", "second"]
    with pytest.raises(IndexError):
        T.phase_of(3)
    padded = T.padded(5)
    assert padded.phases == {"first": 1, "none": 0, "second": 2, "padding": 2}
    assert padded.padded(6).phases["padding"] == 3
    assert T.padded(3) is T


def test_padding_does_not_change_the_map() -> None:
    data = il.Dataset([[[0, 0], [1, 0]]], [[[5, 5]]])
    T = il.hardmax_interpolant(data)
    X = data.inputs[0]
    assert T.padded(T.depth + 4).forward(X, field=il.EXACT) == T.forward(X, field=il.EXACT)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (-1, "temperature is -1; τ ≥ 0 is required"),
        (float("nan"), "temperature is not finite; a finite number τ ≥ 0 is required"),
        (float("inf"), "temperature is not finite; a finite number τ ≥ 0 is required"),
        ("0", "temperature is a string; a finite number τ ≥ 0 is required"),
        (True, "temperature is a boolean; a finite number τ ≥ 0 is required"),
        (None, "temperature is a NoneType; a finite number τ ≥ 0 is required"),
    ],
)
def test_temperatures_that_make_no_sense(value: Any, message: str) -> None:
    with pytest.raises(LayerError) as caught:
        read_temperature(value)
    assert str(caught.value) == message


@pytest.mark.parametrize("value", [0, 1, Fraction(1, 3), 0.1])
def test_temperatures_are_read_exactly(value: Any) -> None:
    assert fraction(read_temperature(value)) == Fraction(value)
