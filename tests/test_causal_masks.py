"""Causal masks: every pass agrees with the definition, position by position; order counts; files and modules keep the mask."""

from __future__ import annotations

import math
import pickle
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import interp_lib as il
from interp_lib.enclosure import enclose_outputs
from interp_lib.exact_outputs import exact_outputs
from interp_lib.fields import UndecidedError, fraction, rational
from interp_lib.layers import Block, FeedForward, LayerError, ScaledLowRank, SelfAttention, Transformer

small = st.integers(-2, 2).map(Fraction)
Tokens = list[list[Fraction]]


@st.composite
def causal_transformers(draw: Any, d: int = 2) -> Transformer:
    """Random layers, most of them masked; attention without scores, with rank-one scores and with full ones."""

    def rows(count: int, length: int) -> Any:
        return draw(st.lists(st.lists(small, min_size=length, max_size=length), min_size=count, max_size=count))

    blocks = []
    for _ in range(draw(st.integers(1, 3))):
        width = draw(st.integers(0, 2))
        biases = [row[0] for row in rows(width, 1)]
        feed = FeedForward(draw(st.sampled_from([0, 1, 1])), rows(width, d), biases, rows(d, width))
        A = draw(
            st.sampled_from(
                [ScaledLowRank.zero(d), ScaledLowRank.outer(*rows(2, d)), ScaledLowRank(1, rows(d, 1), rows(d, 1))]
            )
        )
        V = ScaledLowRank(draw(small), rows(d, 1), rows(d, 1))
        blocks.append(Block(feed, SelfAttention(draw(small), A, V, causal=draw(st.sampled_from([True, True, False])))))
    return Transformer(blocks)


@st.composite
def ordered_sequences(draw: Any, d: int = 2) -> list[tuple[Fraction, ...]]:
    return draw(st.lists(st.tuples(*[small] * d), min_size=1, max_size=5, unique=True))


def _times(matrix: Any, x: list[Fraction]) -> list[Fraction]:
    return [sum((a * b for a, b in zip(row, x, strict=True)), Fraction(0)) for row in matrix]


def _fed(layer: FeedForward, x: list[Fraction]) -> list[Fraction]:
    units = [max(t + b, Fraction(0)) for t, b in zip(_times(layer.U, x), layer.b, strict=True)]
    return [layer.eta * v + s for v, s in zip(x, _times(layer.W, units), strict=True)]


def _scores(attention: SelfAttention, tokens: Tokens, i: int) -> tuple[Tokens, list[Fraction]]:
    """What position ``i`` sees, and how it scores it."""
    seen = tokens[: i + 1] if attention.causal else tokens
    looking = _times(attention.A.dense(), tokens[i])
    return seen, [sum((a * b for a, b in zip(looking, y, strict=True)), Fraction(0)) for y in seen]


def by_definition(T: Transformer, X: Any) -> Tokens:
    """The hardmax pass from the formulas, with dense matrices, over Fractions."""
    tokens = [list(map(Fraction, x)) for x in X]
    for block in T.blocks:
        fed = [_fed(block.feed_forward, x) for x in tokens]
        attention = block.attention
        tokens = []
        for i, x in enumerate(fed):
            seen, scores = _scores(attention, fed, i)
            chosen = [y for y, s in zip(seen, scores, strict=True) if s == max(scores)]
            mean = [sum(column, Fraction(0)) / len(chosen) for column in zip(*chosen, strict=True)]
            shift = _times(attention.V.dense(), mean)
            tokens.append([attention.rho * v + s for v, s in zip(x, shift, strict=True)])
    return tokens


def softmax_by_definition(T: Transformer, X: Any, tau: float) -> np.ndarray:
    """One softmax block from the formulas: exact scores, weights in float64."""
    (block,) = T.blocks
    fed = [_fed(block.feed_forward, list(map(Fraction, x))) for x in X]
    attention = block.attention
    results = []
    for i, x in enumerate(fed):
        seen, scores = _scores(attention, fed, i)
        weights = [math.exp(float((s - max(scores)) / Fraction(tau))) for s in scores]
        mean = np.array(weights) @ np.array(seen, dtype=float) / sum(weights)
        dense = np.array(attention.V.dense(), dtype=float)
        results.append(float(attention.rho) * np.array(x, dtype=float) + dense @ mean)
    return np.array(results)


@given(causal_transformers(), ordered_sequences())
def test_the_exact_pass_is_the_definition(T: Transformer, X: Any) -> None:
    assert [list(x) for x in T.forward(X, field=il.EXACT)] == by_definition(T, X)


@given(causal_transformers(), st.lists(ordered_sequences(), min_size=1, max_size=3, unique_by=tuple))
def test_the_checker_sees_the_order(T: Transformer, inputs: Any) -> None:
    data = il.Dataset(inputs, [[X[0]] for X in inputs], causal=True)
    for X, points in zip(inputs, exact_outputs(T, data), strict=True):
        assert len(set(points)) == len(points)
        assert {tuple(map(fraction, x)) for x in points} == set(map(tuple, by_definition(T, X)))


@given(causal_transformers(), ordered_sequences())
def test_float64_agrees_on_one_block(T: Transformer, X: Any) -> None:
    one = Transformer(T.blocks[:1])
    np.testing.assert_allclose(one(X), np.array(by_definition(one, X), dtype=float), rtol=1e-12, atol=1e-12)
    several = one.forward_many([X, X[:1], X])
    np.testing.assert_allclose(several[2], one(X), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(several[1], one(X[:1]), rtol=1e-12, atol=1e-12)


@given(causal_transformers(), ordered_sequences(), st.sampled_from([0.5, 2.0]))
def test_softmax_agrees_in_floats_and_balls(T: Transformer, X: Any, tau: float) -> None:
    one = Transformer(T.blocks[:1])
    wanted = softmax_by_definition(one, X, tau)
    np.testing.assert_allclose(one(X, tau), wanted, rtol=1e-9, atol=1e-9)
    enclosed = one.forward(X, field=il.balls(100), temperature=tau)
    np.testing.assert_allclose([[float(v) for v in row] for row in enclosed], wanted, rtol=1e-9, atol=1e-9)
    tokens = enclose_outputs(one, il.Dataset([X], [X[:1]], causal=True), rational(tau), 100).sequences[0]
    np.testing.assert_allclose([[float(v) for v in t.enclosure] for t in tokens], wanted, rtol=1e-9, atol=1e-9)


@given(causal_transformers(), ordered_sequences())
def test_balls_enclose_hardmax_where_they_decide_it(T: Transformer, X: Any) -> None:
    try:
        enclosed = T.forward(X, field=il.balls(100))
    except UndecidedError:
        return
    for row, exact in zip(enclosed, by_definition(T, X), strict=True):
        assert all(ball.contains(rational(v)) for ball, v in zip(row, exact, strict=True))


@given(causal_transformers(), ordered_sequences())
def test_a_position_does_not_depend_on_what_comes_later(T: Transformer, X: Any) -> None:
    if all(block.attention.causal for block in T.blocks):
        whole = T.forward(X, field=il.EXACT)
        for i in range(1, len(X)):
            assert T.forward(X[:i], field=il.EXACT) == whole[:i]


@settings(max_examples=20)
@given(causal_transformers())
def test_masks_survive_files_pickles_and_padding(T: Transformer) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "T.json")
        il.save(T, path)
        assert il.load(path) == T
    assert pickle.loads(pickle.dumps(T)) == T
    assert T.padded(T.depth + 2).causal == T.causal
    unmasked = [Block(b.feed_forward, SelfAttention(b.attention.rho, b.attention.A, b.attention.V)) for b in T.blocks]
    assert (Transformer(unmasked) == T) == (not any(b.attention.causal for b in T.blocks))


def mean_layer(causal: bool) -> Transformer:
    attention = SelfAttention(0, ScaledLowRank.zero(2), ScaledLowRank.identity(2), causal=causal)
    return Transformer([Block(FeedForward.identity(2), attention)])


def test_a_masked_mean_by_hand() -> None:
    X = [[0, 0], [2, 4], [4, 2]]
    assert mean_layer(True).forward(X, field=il.EXACT) == ((0, 0), (1, 2), (2, 2))
    assert mean_layer(False).forward(X, field=il.EXACT) == ((2, 2),) * 3
    assert mean_layer(True).causal
    assert not mean_layer(False).causal


def test_verify_takes_the_order_of_the_data() -> None:
    X = [[0, 0], [2, 4], [4, 2]]
    data = il.Dataset([X, X[::-1]], [[[0, 0], [1, 2], [2, 2]], [[4, 2], [3, 3], [2, 2]]], causal=True)
    for temperature in (0, 1, "all"):
        assert il.verify(mean_layer(True), data, temperature).status == "certified"
        assert il.verify(mean_layer(False), data, temperature).status == "refuted"
    swapped = il.Dataset(data.inputs[::-1], data.outputs, causal=True)
    assert il.verify(mean_layer(True), swapped).status == "refuted"


def test_a_layer_that_does_not_act_makes_no_model_causal() -> None:
    attention = SelfAttention(1, ScaledLowRank.zero(2), ScaledLowRank.zero(2), causal=True)
    assert not Transformer([Block(FeedForward.identity(2), attention)]).causal


def test_ordered_data_have_their_own_rules() -> None:
    X, Y = [[0, 0], [1, 0]], [[0, 0]]
    with pytest.raises(il.DatasetError, match=r"inputs\[1\] has the same tokens as inputs\[0\]"):
        il.Dataset([X, X[::-1]], [Y, Y])
    data = il.Dataset([X, X[::-1], X[:1]], [Y, Y, Y], causal=True)
    assert data.causal
    assert pickle.loads(pickle.dumps(data)) == data
    assert "causal=True" in repr(data)
    assert data != il.Dataset([X, X[:1]], [Y, Y])
    with pytest.raises(il.DatasetError, match=r"inputs\[1\] equals inputs\[0\]; sequences are lists of tokens"):
        il.Dataset([X, X], [Y, Y], causal=True)
    with pytest.raises(il.DatasetError, match=r"inputs\[0\]\[1\] repeats inputs\[0\]\[0\]"):
        il.Dataset([[[0, 0], [0, 0]]], [Y], causal=True)
    with pytest.raises(il.DatasetError, match="causal: expected True or False, got 1"):
        il.Dataset([X], [Y], causal=1)  # type: ignore[arg-type]
    for construct in (il.hardmax_interpolant, il.softmax_interpolant, il.mean_interpolant):
        with pytest.raises(il.DatasetError, match="has the same tokens as"):
            construct(data)
    fine = il.Dataset([X, X[:1]], [Y, [[2, 2]]], causal=True)
    assert il.verify(il.mean_interpolant(fine), fine, "all").status == "certified"


def test_a_mask_is_a_truth_value() -> None:
    with pytest.raises(LayerError, match="causal: expected True or False, got 'yes'"):
        SelfAttention(1, ScaledLowRank.zero(2), ScaledLowRank.zero(2), causal="yes")  # type: ignore[arg-type]
