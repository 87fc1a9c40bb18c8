"""The softmax checker: sound on random transformers, sharp on interpolants, silent only at the precision cap."""

from __future__ import annotations

import math
import random
import threading
from fractions import Fraction
from typing import Any

import flint
import pytest
from hypothesis import given
from hypothesis import strategies as st

import interp_lib as il
from interp_lib.certificates import MOST_BITS
from interp_lib.enclosure import enclose_outputs
from interp_lib.examples import running_example
from interp_lib.fields import Ball, rational, working_precision
from interp_lib.interpolation.softmax import softmax_interpolant
from interp_lib.layers import Block, FeedForward, ScaledLowRank, SelfAttention

small = st.integers(-2, 2).map(lambda k: Fraction(k, 2))


@st.composite
def matrices(draw: Any, d: int) -> ScaledLowRank:
    rank = draw(st.integers(0, 1))
    columns = st.lists(st.lists(small, min_size=rank, max_size=rank), min_size=d, max_size=d)
    return ScaledLowRank(draw(small), draw(columns), draw(columns))


@st.composite
def transformers(draw: Any, d: int = 2) -> il.Transformer:
    vector = st.lists(small, min_size=d, max_size=d)
    blocks = []
    for _ in range(draw(st.integers(1, 3))):
        width = draw(st.integers(0, 3))
        U = draw(st.lists(vector, min_size=width, max_size=width))
        b = draw(st.lists(small, min_size=width, max_size=width))
        W = draw(st.lists(st.lists(small, min_size=width, max_size=width), min_size=d, max_size=d))
        attention = SelfAttention(draw(small), draw(matrices(d)), draw(matrices(d)))
        blocks.append(Block(FeedForward(draw(small), U, b, W), attention))
    return il.Transformer(blocks)


@st.composite
def sequences(draw: Any, d: int = 2) -> list[tuple[Fraction, ...]]:
    return draw(st.lists(st.tuples(*[small] * d), min_size=1, max_size=4, unique=True))  # type: ignore[no-any-return]


@given(transformers(), sequences(), st.sampled_from([Fraction(1, 50), Fraction(1, 2), Fraction(1), Fraction(30)]))
def test_enclosures_meet_a_direct_pass_in_balls(T: il.Transformer, X: Any, tau: Fraction) -> None:
    """Two enclosures of the same real number overlap; an exact value lies in every enclosure."""
    data = il.Dataset([X], [X[:1]])
    direct = T.forward(X, il.balls(200), tau)
    for bits in (32, 96):
        (tokens,) = enclose_outputs(T, data, rational(tau), bits).sequences
        for token, row in zip(tokens, direct, strict=True):
            with working_precision(200):
                for c, (mine, theirs) in enumerate(zip(token.enclosure, row, strict=True)):
                    assert mine.overlaps(theirs)
                    if token.exact is not None:
                        assert theirs.overlaps(Ball(token.exact[c]))


@given(transformers(), sequences(), st.sampled_from([Fraction(1, 3), Fraction(2)]))
def test_no_answer_contradicts_a_direct_pass(T: il.Transformer, X: Any, tau: Fraction) -> None:
    target = [tuple(map(Fraction, row)) for row in T(X, temperature=tau)][:1]
    data = il.Dataset([X], [target])
    found = il.verify(T, data, tau, max_bits=128)
    with working_precision(200):
        rows = T.forward(X, il.balls(200), tau)
        agree = [all(v.contains(rational(y)) for v, y in zip(row, target[0], strict=True)) for row in rows]
        if found.status == "certified":
            assert all(agree)
        if found.status == "refuted":
            assert found.distance is not None
            assert (
                found.distance_bounds is None or found.distance_bounds[0] <= found.distance <= found.distance_bounds[1]
            )


def test_exact_agreement_is_not_closeness() -> None:
    """A target moved by 2^-300 is refuted, although no float and no 64-bit ball sees the difference."""
    data = running_example()
    T = softmax_interpolant(data)
    tau = T.critical_temperature
    assert il.verify(T, data, tau).status == "certified"
    moved = [[list(y) for y in Y] for Y in data.outputs]
    moved[2][1][0] += Fraction(1, 2**300)
    found = il.verify(T, il.Dataset(data.inputs, moved), tau)
    assert found.status == "refuted"
    assert found.sequence == 2
    assert found.distance == pytest.approx(2.0**-300)


def test_the_certificate_reports_bits_and_exponentials() -> None:
    data = running_example()
    T = softmax_interpolant(data)
    found = il.verify(T, data, T.critical_temperature)
    layers = T.phases["separation"] + 1
    assert found.bits == 64
    assert found.exponentials == layers * sum(n * (n - 1) for n in data.n)
    assert "64 bits" in found.explain()


# ---------------------------------------------------------------- the constant query


def test_a_constant_query_is_certified_at_its_temperature() -> None:
    """``A = β e_1 e_2ᵀ``, second coordinate 1: the means are irrational, and plateaus make the result exact."""
    one, zero = Fraction(1), Fraction(0)
    tau = Fraction(1, 2)
    X = [[[0, 0], [1, 0]], [[0, 0], [2, 0]]]
    means = [(math.exp(2) * t) / (1 + math.exp(2)) if t == 1 else 2 * math.exp(4) / (1 + math.exp(4)) for t in (1, 2)]
    middle = Fraction((means[0] + means[1]) / 2)
    lift = FeedForward(1, [[0, 0]], [1], [[0], [1]])
    attend = SelfAttention(
        1, ScaledLowRank.outer([one, zero], [zero, one]), ScaledLowRank.outer([zero, one], [one, zero])
    )
    # Second coordinate 1 + mean: below the middle nothing happens, above it a step of 10 along e_1.
    step = FeedForward(1, [[0, 1], [0, 1]], [-1 - middle, -1 - middle - Fraction(1, 16)], [[160, -160], [0, 0]])
    flatten = FeedForward(0, [[1, 0], [0, 0]], [-5, 1], [[1, 0], [0, 1]])
    blocks = [Block(lift, attend), Block.feeding(step), Block.feeding(flatten)]
    T = il.Transformer(blocks)
    data = il.Dataset(X, [[[0, 1]], [[5, 1], [7, 1]]])
    assert il.verify(T, data, tau).status == "certified"
    # The step has moved past both means at a temperature far above, where all means are half of the sum.
    assert il.verify(T, data, 10**6).status == "refuted"


# ---------------------------------------------------------------- undecided, NaN, precision


def cancelling() -> tuple[il.Transformer, il.Dataset]:
    """A mean that is zero by a symmetry of the tokens, which enclosures cannot see."""
    layer = SelfAttention(0, ScaledLowRank.outer([0, 1], [0, 1]), ScaledLowRank.identity(2))
    T = il.Transformer([Block(FeedForward(0, [[0, 1]], [0], [[0], [1]]), SelfAttention.identity(2))])
    del T
    spread = il.Transformer(
        [Block(FeedForward.identity(2), layer), Block.feeding(FeedForward(0, [[1, 0]], [0], [[1], [0]]))]
    )
    return spread, il.Dataset([[[1, 1], [-1, 1], [0, 2]]], [[[0, 0]]])


def test_undecided_only_at_the_cap_and_it_says_so() -> None:
    T, data = cancelling()
    for cap in (64, 256):
        found = il.verify(T, data, 1, max_bits=cap)
        assert found.status == "undecided"
        assert found.bits == cap
        assert f"{cap} bits" in found.explain()
        assert found.distance is None
    assert MOST_BITS >= 4096


def test_more_bits_decide_what_few_cannot() -> None:
    """A target nearer to the output than 64 bits can tell, and not equal to it."""
    layer = SelfAttention(0, ScaledLowRank.outer([1, 0], [1, 0]), ScaledLowRank.identity(2))
    T = il.Transformer([Block(FeedForward.identity(2), layer)])
    data = il.Dataset([[[1, 0], [2, 0]]], [[[1, 0]]])
    rows = T.forward(data.inputs[0], il.balls(300), 1)
    targets = [[il.fields.fraction(row[0].mid().fmpq()), 0] for row in rows]
    near = il.Dataset(data.inputs, [targets])
    assert il.verify(T, near, 1, max_bits=128).status == "undecided"
    found = il.verify(T, near, 1)
    assert found.status == "refuted"
    assert found.bits is not None
    assert found.bits > 256


def test_nan_certifies_and_refutes_nothing() -> None:
    from interp_lib.certificates import _compare_enclosed
    from interp_lib.enclosure import EnclosedOutputs, EnclosedToken

    nan = Ball("nan")
    data = il.Dataset([[[0, 0]]], [[[0, 0]]])
    outputs = EnclosedOutputs(((EnclosedToken(None, (nan, nan)),),), 0)
    assert _compare_enclosed(outputs, data, Fraction(1), 64) is None


def test_the_global_precision_is_left_alone_and_threads_take_turns() -> None:
    before = flint.ctx.prec
    data = running_example()
    T = softmax_interpolant(data)
    found: list[str] = []

    def work(tau: Fraction) -> None:
        found.append(il.verify(T, data, tau).status)

    threads = [threading.Thread(target=work, args=(T.critical_temperature / k,)) for k in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == ["certified"] * 4
    assert flint.ctx.prec == before


# ---------------------------------------------------------------- mutations


def mutated(value: Fraction, kind: str) -> Fraction:
    if kind == "relative":
        return value * (1 + Fraction(1, 2**20))
    nearest = float(value)
    return value + Fraction(math.nextafter(nearest, math.inf)) - Fraction(nearest)


def replace_block(T: il.Transformer, k: int, block: Block) -> il.Transformer:
    return il.Transformer((*T.blocks[:k], block, *T.blocks[k + 1 :]), T.phases)


def change_feed_forward(T: il.Transformer, k: int, part: str, i: int, c: int, kind: str) -> il.Transformer:
    layer = T.blocks[k].feed_forward
    eta, U, b, W = layer.eta, [list(u) for u in layer.U], list(layer.b), [list(w) for w in layer.W]
    if part == "eta":
        eta = mutated(eta, kind)
    elif part == "U":
        U[i][c] = mutated(U[i][c], kind)
    elif part == "b":
        b[i] = mutated(b[i], kind)
    else:
        W[c][i] = mutated(W[c][i], kind)
    return replace_block(T, k, Block(FeedForward(eta, U, b, W), T.blocks[k].attention))


def test_a_mutant_of_a_weight_that_matters_is_not_certified(nightly: bool) -> None:
    """Weights of the units that are on where a cluster is collapsed: each of them changes an output."""
    data = running_example()
    T = softmax_interpolant(data)
    tau = T.critical_temperature / 2
    assert il.verify(T, data, tau).status == "certified"
    source = random.Random(1)
    first = T.depth - T.phases["interpolation"]
    tried = 0
    while tried < (1200 if nightly else 50):
        k, i, c = source.randrange(first, T.depth), source.randrange(2), source.randrange(2)
        part, kind = source.choice(["eta", "U", "b", "W"]), source.choice(["relative", "ulp"])
        layer = T.blocks[k].feed_forward
        if (part == "U" and not layer.U[i][c]) or (part == "W" and not layer.W[c][i]):
            continue
        found = il.verify(change_feed_forward(T, k, part, i, c, kind), data, tau)
        assert found.status == "refuted", (k, part, i, c, kind, found.explain())
        tried += 1


def test_a_mutant_that_is_certified_still_interpolates(nightly: bool) -> None:
    """Any weight at all: plateaus forgive small changes before them; then the outputs really are the targets."""
    data = running_example()
    T = softmax_interpolant(data)
    tau = T.critical_temperature / 1000
    source = random.Random(2)
    kept = 0
    for _ in range(1200 if nightly else 50):
        k = source.randrange(T.depth)
        layer = T.blocks[k].feed_forward
        part = source.choice(["U", "b", "W", "attention"])
        kind = source.choice(["relative", "ulp"])
        if part == "attention":
            attention = T.blocks[k].attention
            A, V = (
                ScaledLowRank(
                    mutated(matrix.scale, kind) if matrix.scale else 0,
                    [[mutated(v, kind) if v and r == 0 else v for v in row] for r, row in enumerate(matrix.left)],
                    matrix.right,
                )
                for matrix in (attention.A, attention.V)
            )
            changed = replace_block(T, k, Block(layer, SelfAttention(attention.rho, A, V)))
        else:
            if not layer.width:
                continue
            i, c = source.randrange(layer.width), source.randrange(2)
            changed = change_feed_forward(T, k, part, i, c, kind)
        if il.verify(changed, data, tau).status == "certified":
            kept += 1
            for X, Y in zip(data.inputs, data.outputs, strict=True):
                assert _distance(changed.forward(X, il.balls(2000), tau), Y) < 1e-100
    assert kept > 0


def _distance(rows: Any, targets: Any) -> float:
    """An upper bound for the Hausdorff distance (in the largest coordinate)."""
    with working_precision(2000):
        gaps = [
            [max(float(abs(v - rational(y)).upper()) for v, y in zip(row, t, strict=True)) for t in targets]
            for row in rows
        ]
    return max(*(min(line) for line in gaps), *(min(column) for column in zip(*gaps, strict=True)))
