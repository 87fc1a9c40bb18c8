"""The forward pass: the same over every field, equal to the formulas, equivariant, with a full trace."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import interp_lib as il
from interp_lib.examples import running_example
from interp_lib.fields import FieldError, UndecidedError, rational, working_precision
from interp_lib.layers import Block, FeedForward, LayerError, ScaledLowRank, SelfAttention, Transformer
from tests.datasets import data_sets

small = st.integers(-2, 2)
halves = st.integers(-4, 4).map(lambda k: Fraction(k, 2))


def rows(count: int, length: int) -> st.SearchStrategy[list[list[Any]]]:
    return st.lists(st.lists(small, min_size=length, max_size=length), min_size=count, max_size=count)


@st.composite
def transformers(draw: Any, d: int = 2, depth: int = 2) -> Transformer:
    listed = []
    for _ in range(draw(st.integers(1, depth))):
        width = draw(st.integers(0, 2))
        ranks = draw(st.tuples(st.integers(0, 2), st.integers(0, 1)))
        A, V = (ScaledLowRank(draw(small), draw(rows(d, r)), draw(rows(d, r))) for r in ranks)
        bias = [row[0] for row in draw(rows(width, 1))]
        feed = FeedForward(draw(small), draw(rows(width, d)), bias, draw(rows(d, width)))
        listed.append(Block(feed, SelfAttention(draw(small), A, V)))
    return Transformer(listed)


sequences = st.lists(st.tuples(halves, halves), min_size=1, max_size=5, unique=True)


def by_definition(T: Transformer, X: Any) -> list[list[Fraction]]:
    """The hardmax pass, straight from the formulas with dense matrices, over Fractions."""
    tokens = [[Fraction(v) for v in x] for x in X]

    def times(matrix: Any, x: list[Fraction]) -> list[Fraction]:
        return [sum((a * b for a, b in zip(row, x, strict=True)), Fraction(0)) for row in matrix]

    for block in T.blocks:
        feed, attention = block.feed_forward, block.attention
        moved = []
        for x in tokens:
            units = [max(t + b, Fraction(0)) for t, b in zip(times(feed.U, x), feed.b, strict=True)]
            moved.append([feed.eta * v + s for v, s in zip(x, times(feed.W, units), strict=True)])
        A, V = attention.A.dense(), attention.V.dense()
        tokens = []
        for x in moved:
            looking = times(A, x)
            scores = [sum((a * b for a, b in zip(looking, y, strict=True)), Fraction(0)) for y in moved]
            chosen = [y for y, s in zip(moved, scores, strict=True) if s == max(scores)]
            mean = [sum(column, Fraction(0)) / len(chosen) for column in zip(*chosen, strict=True)]
            tokens.append([attention.rho * v + s for v, s in zip(x, times(V, mean), strict=True)])
    return tokens


@given(transformers(), sequences)
def test_the_exact_pass_is_the_formulas(T: Transformer, X: Any) -> None:
    assert [list(x) for x in T.forward(X, field=il.EXACT)] == by_definition(T, X)


@given(transformers(), sequences)
def test_float64_agrees_on_numbers_it_can_hold(T: Transformer, X: Any) -> None:
    # Means of three tokens are no dyadic numbers, and a rounded tie is no tie: compare one block only.
    one = Transformer(T.blocks[:1])
    exact = np.array(one.forward(X, field=il.EXACT), dtype=float)
    assert np.allclose(one(X), exact, rtol=1e-13, atol=1e-13)


@given(transformers(), sequences)
def test_balls_contain_the_exact_answer_or_say_that_they_cannot_decide(T: Transformer, X: Any) -> None:
    exact = T.forward(X, field=il.EXACT)
    try:
        enclosed = T.forward(X, field=il.balls(128))
    except UndecidedError:
        return
    # A fraction becomes a ball before it is compared: a narrow one, or nothing would contain it.
    with working_precision(300):
        for row, balls in zip(exact, enclosed, strict=True):
            assert all(ball.contains(rational(value)) for value, ball in zip(row, balls, strict=True))


@given(transformers(), sequences, st.sampled_from([Fraction(1, 2), Fraction(3)]))
def test_softmax_balls_and_float64_agree(T: Transformer, X: Any, tau: Fraction) -> None:
    one = Transformer(T.blocks[:1])
    measured = one(X, temperature=tau)
    for row, balls in zip(measured, one.forward(X, field=il.balls(128), temperature=tau), strict=True):
        for value, ball in zip(row, balls, strict=True):
            assert value == pytest.approx(float(ball.mid()), rel=1e-11, abs=1e-11)
            assert float(ball.rad()) < 1e-20


@given(transformers(), sequences, st.randoms(use_true_random=False))
def test_a_permutation_of_the_tokens_permutes_the_output(T: Transformer, X: Any, random: Any) -> None:
    order = random.sample(range(len(X)), len(X))
    plain = T.forward(X, field=il.EXACT)
    permuted = T.forward([X[i] for i in order], field=il.EXACT)
    assert permuted == tuple(plain[i] for i in order)


@given(transformers(), sequences, st.randoms(use_true_random=False), st.sampled_from([0.1, 1]))
def test_so_does_softmax(T: Transformer, X: Any, random: Any, tau: float) -> None:
    one = Transformer(T.blocks[:1])
    order = random.sample(range(len(X)), len(X))
    assert np.allclose(one([X[i] for i in order], tau), one(X, tau)[order], rtol=1e-12, atol=1e-12)


def test_the_trace_has_a_state_for_the_input_and_after_every_layer() -> None:
    data = running_example()
    T = il.hardmax_interpolant(data)
    for X in data.inputs:
        states = T.trace(X, field=il.EXACT)
        assert len(states) == 2 * T.depth + 1
        assert (states[0].block, states[0].layer, states[0].phase, states[0].tokens) == (0, "input", "input", X)
        expected = [(k, layer) for k in range(1, T.depth + 1) for layer in ("feed_forward", "attention")]
        assert [(s.block, s.layer) for s in states[1:]] == expected
        assert [s.phase for s in states[2::2]] == [T.phase_of(k) for k in range(T.depth)]
        assert states[-1].tokens == T.forward(X, field=il.EXACT)
        assert all(len(s.tokens) == len(X) for s in states)


def test_a_float_trace_holds_arrays() -> None:
    data = running_example()
    T = il.hardmax_interpolant(data)
    states = T.trace(data.inputs[0])
    assert all(isinstance(s.tokens, np.ndarray) and s.tokens.shape == (2, 2) for s in states)
    assert np.array_equal(states[-1].tokens, T(data.inputs[0]))


@given(sequences, st.sampled_from([0, Fraction(1, 10**12), 1, 10**12]))
def test_attention_without_scores_is_the_mean_at_every_temperature_exactly(X: Any, tau: Any) -> None:
    mean = SelfAttention(0, ScaledLowRank.zero(2), ScaledLowRank.identity(2))
    T = Transformer([Block(FeedForward.identity(2), mean)])
    centre = tuple(sum(column, Fraction(0)) / len(X) for column in zip(*X, strict=True))
    assert T.forward(X, field=il.EXACT, temperature=tau) == (centre,) * len(X)


def test_numpy_arrays_are_accepted_and_returned() -> None:
    T = Transformer([Block.identity(3)])
    X = np.array([[1, 2, 3], [4, 5, 6]], dtype=np.float32)
    assert T(X).dtype == np.float64
    assert np.array_equal(T(X), X)


@pytest.mark.parametrize(
    ("X", "problem", "message"),
    [
        ([[1, 2, 3]], LayerError, r"X has tokens in R\^3 but the transformer acts on R\^2"),
        ([], il.DatasetError, "X is empty; a sequence has at least one token"),
        ([[1, math.nan]], il.DatasetError, r"X\[0\]\[1\] is nan; a finite number is required"),
        ([[1, 2], [3]], il.DatasetError, r"X\[1\] has 1 coordinates but X\[0\] has 2"),
        (None, il.DatasetError, "X: expected a list of tokens, got None"),
        ([1, 2], il.DatasetError, r"X\[0\]: expected a list of coordinates, got 1"),
    ],
)
def test_what_is_no_sequence(X: Any, problem: type[Exception], message: str) -> None:
    with pytest.raises(problem, match=message):
        Transformer([Block.identity(2)])(X)


def test_fields_that_cannot_answer_say_so() -> None:
    attend = SelfAttention(0, ScaledLowRank.identity(2), ScaledLowRank.identity(2))
    T = Transformer([Block(FeedForward.identity(2), attend)])
    with pytest.raises(FieldError, match="irrational"):
        T.forward([[0, 0], [1, 0]], field=il.EXACT, temperature=1)
    with pytest.raises(UndecidedError, match="token 0 is not certain at 64 bits"):
        T.forward([[0, 0], [1, 0]], field=il.balls(64))
    with pytest.raises(LayerError, match="temperature is -1; τ ≥ 0 is required"):
        T([[0, 0]], temperature=-1)


@given(data_sets(), st.sampled_from([0, 0.5, 3]))
def test_many_sequences_in_one_pass(data: il.Dataset, temperature: float) -> None:
    T = il.hardmax_interpolant(data)
    together = T.forward_many(data.inputs, temperature)
    assert len(together) == data.N
    for X, found in zip(data.inputs, together, strict=True):
        alone = T(X, temperature)
        assert found.shape == alone.shape
        assert abs(found - alone).max() <= 1e-9 * (1 + abs(alone).max())


def test_many_sequences_are_named_in_errors() -> None:
    T = il.hardmax_interpolant(il.Dataset([[[0, 0]]], [[[1, 1]]]))
    assert T.forward_many([]) == []
    with pytest.raises(il.DatasetError, match=r"sequences\[1\]"):
        T.forward_many([[[0, 0]], []])
    with pytest.raises(LayerError, match=r"sequences\[0\]"):
        T.forward_many([[[0, 0, 0]]])


def test_many_sequences_through_layers_of_every_kind() -> None:
    """Runs of layers that read one projection, broken by layers that read more, by scaling and by attention."""
    u, v = [1, 2, 0], [0, 1, -1]
    along = FeedForward(1, [u, [-2 * c for c in u]], [-1, 3], [[1, 0], [0, 1], [Fraction(1, 2), -1]])
    constant = FeedForward(1, [[0, 0, 0]], [2], [[1], [0], [1]])
    across = FeedForward(1, [u, v], [0, 1], [[1, 1], [0, 1], [2, 0]])
    scaled = FeedForward(Fraction(1, 2), [v], [0], [[1], [1], [1]])
    attend = SelfAttention(1, ScaledLowRank.outer(u, v), ScaledLowRank.identity(3, Fraction(1, 3)))
    kept = SelfAttention.identity(3)
    layers = [constant, along, along, constant, across, along, scaled, along]
    T = Transformer([*(Block(layer, kept) for layer in layers), Block(along, attend), Block(along, kept)])
    sequences = [[[0, 1, 2], [3, -1, 1]], [[5, 0, Fraction(1, 4)]], [[-2, 1, 0], [0, 0, 0], [1, 1, 1]]]
    for X, found in zip(sequences, T.forward_many(sequences), strict=True):
        exact = T.forward(X, field=il.EXACT)
        assert abs(found - [[float(c) for c in x] for x in exact]).max() < 1e-9
