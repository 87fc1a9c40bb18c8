"""The exact checker against an evaluation from the definitions, on right and on damaged transformers."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import interp_lib as il
from interp_lib.examples import running_example
from interp_lib.layers import Block, FeedForward, LayerError, ScaledLowRank, SelfAttention
from tests.datasets import brute, data_sets, nasty


def mutants(T: il.Transformer, count: int, seed: int) -> list[il.Transformer]:
    """Transformers that differ in one weight: a little, a lot, or set to zero."""
    source = random.Random(seed)
    found = []
    while len(found) < count:
        k = source.randrange(T.depth)
        ff, sa = T.blocks[k].feed_forward, T.blocks[k].attention
        rows = {"U": ff.U, "W": ff.W, "left A": sa.A.left, "right A": sa.A.right, "left V": sa.V.left}
        name = source.choice([*rows, "b", "eta", "rho", "scale A", "scale V"])
        old = {"eta": ff.eta, "rho": sa.rho, "scale A": sa.A.scale, "scale V": sa.V.scale}.get(name)
        i = c = 0
        if name in rows:
            if not rows[name] or not rows[name][0]:
                continue
            i, c = source.randrange(len(rows[name])), source.randrange(len(rows[name][0]))
            old = rows[name][i][c]
        if name == "b":
            if not ff.b:
                continue
            i = source.randrange(len(ff.b))
            old = ff.b[i]
        assert old is not None
        new = source.choice(
            [old * (1 + Fraction(1, 2**20)), old + 1, Fraction(0), -old, Fraction(math.nextafter(float(old), 2e300))]
        )
        if new == old:
            continue

        def put(matrix: Any, here: bool, i: int = i, c: int = c, new: Fraction = new) -> Any:
            return [
                [new if here and (r, s) == (i, c) else v for s, v in enumerate(row)] for r, row in enumerate(matrix)
            ]

        feed = FeedForward(
            new if name == "eta" else ff.eta,
            put(ff.U, name == "U"),
            [new if name == "b" and r == i else v for r, v in enumerate(ff.b)],
            put(ff.W, name == "W"),
        )
        A = ScaledLowRank(
            new if name == "scale A" else sa.A.scale,
            put(sa.A.left, name == "left A"),
            put(sa.A.right, name == "right A"),
        )
        V = ScaledLowRank(new if name == "scale V" else sa.V.scale, put(sa.V.left, name == "left V"), sa.V.right)
        attention = SelfAttention(new if name == "rho" else sa.rho, A, V)
        blocks = [*T.blocks[:k], Block(feed, attention), *T.blocks[k + 1 :]]
        found.append(il.Transformer(blocks, T.phases))
    return found


@pytest.mark.parametrize("name", ["running example", "nested", "on a circle", "targets are swapped inputs"])
def test_a_mutant_is_certified_only_if_its_outputs_still_agree(name: str, nightly: bool) -> None:
    data = nasty()[name]
    T = il.hardmax_interpolant(data)
    refuted = 0
    for mutant in mutants(T, 800 if nightly else 40, seed=len(name)):
        agrees = all(brute(mutant, X) == set(Y) for X, Y in zip(data.inputs, data.outputs, strict=True))
        found = il.verify(mutant, data)
        assert found.status == ("certified" if agrees else "refuted"), found.explain()
        refuted += not agrees
    assert refuted > 10  # the test would mean nothing if most mutants were still right


def test_a_refutation_names_the_first_offence() -> None:
    data = running_example()
    outputs = [list(Y) for Y in data.outputs]
    outputs[1] = [[5, 2]]
    found = il.verify(il.hardmax_interpolant(data), il.Dataset(data.inputs, outputs))
    assert (found.status, found.sequence, found.token, found.distance) == ("refuted", 1, (5, 1), 1.0)
    assert "inputs[1]" in found.explain()
    outputs = [list(Y) for Y in data.outputs]
    outputs[2] = [*outputs[2], [9, 9]]
    found = il.verify(il.hardmax_interpolant(data), il.Dataset(data.inputs, outputs))
    assert (found.status, found.sequence, found.token) == ("refuted", 2, (9, 9))


small = st.integers(-2, 2).map(Fraction)


@st.composite
def transformers(draw: Any, d: int) -> il.Transformer:
    """Small integer weights: ties, zero scores and dead units are common."""

    def matrix(rows: int, columns: int) -> list[list[Fraction]]:
        return draw(st.lists(st.lists(small, min_size=columns, max_size=columns), min_size=rows, max_size=rows))

    blocks = []
    for _ in range(draw(st.integers(1, 3))):
        width, rank = draw(st.integers(0, 3)), draw(st.integers(0, 2))
        ff = FeedForward(
            draw(small), matrix(width, d), draw(st.lists(small, min_size=width, max_size=width)), matrix(d, width)
        )
        A, V = (ScaledLowRank(draw(small), matrix(d, rank), matrix(d, rank)) for _ in range(2))
        blocks.append(Block(ff, SelfAttention(draw(small), A, V)))
    return il.Transformer(blocks)


@given(data_sets(most=3), st.data())
def test_the_verdict_on_any_transformer_is_that_of_the_definitions(data: il.Dataset, source: Any) -> None:
    T = source.draw(transformers(data.d))
    reached = [brute(T, X) for X in data.inputs]
    agrees = all(points == set(Y) for points, Y in zip(reached, data.outputs, strict=True))
    assert il.verify(T, data).status == ("certified" if agrees else "refuted")
    # Against its own outputs every transformer is certified.
    own = il.Dataset(data.inputs, [sorted(points) for points in reached])
    assert il.verify(T, own).status == "certified"
    for X, points in zip(data.inputs, reached, strict=True):
        assert set(T.forward(X, field=il.EXACT)) == points


@given(data_sets())
@settings(max_examples=20)
def test_distances_are_those_of_the_definition(data: il.Dataset) -> None:
    identity = il.Transformer([Block.identity(data.d)])
    found = il.verify(identity, data)
    distances = [il.hausdorff_distance(X, Y) for X, Y in zip(data.inputs, data.outputs, strict=True)]
    assert found.distance == max(distances)


def test_bad_questions_are_refused() -> None:
    data = running_example()
    T = il.hardmax_interpolant(data)
    for temperature in (-1, float("nan"), float("inf"), "hot", None):
        with pytest.raises(LayerError, match="temperature"):
            il.verify(T, data, temperature)
    with pytest.raises(LayerError, match="R\\^3"):
        il.verify(il.Transformer([Block.identity(3)]), data)


def test_all_temperatures_at_once_needs_constant_scores() -> None:
    data = running_example()
    found = il.verify(il.hardmax_interpolant(data), data, "all")
    assert found.status == "undecided"
    assert "not constant" in found.explain()
