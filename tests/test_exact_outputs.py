"""The fast exact pass against the definitions, on layers made to trigger each of its shortcuts."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import interp_lib as il
from interp_lib.exact_outputs import exact_outputs
from interp_lib.fields import fraction
from interp_lib.layers import Block, FeedForward, ScaledLowRank, SelfAttention
from tests.datasets import brute, data_sets

small = st.integers(-2, 2).map(Fraction)


@st.composite
def layers_along_few_directions(draw: Any, d: int) -> il.Transformer:
    """Residual layers that read multiples of few directions, some orthogonal to what they write; dead rows; few attentions."""
    vector = st.lists(small, min_size=d, max_size=d)
    directions = draw(st.lists(vector, min_size=1, max_size=2))
    axes = [[Fraction(c == i) for c in range(d)] for i in range(d)]
    blocks = []
    for _ in range(draw(st.integers(1, 6))):
        u = draw(st.sampled_from([*directions, *axes]))
        factors = draw(st.lists(st.sampled_from([-2, -1, 0, 1, 1, 1]), min_size=0, max_size=4))
        columns = [draw(st.sampled_from([*axes, draw(vector)])) for _ in factors]
        ff = FeedForward(
            draw(st.sampled_from([1, 1, 1, 0])),
            [[f * v for v in u] for f in factors],
            draw(st.lists(small, min_size=len(factors), max_size=len(factors))),
            [[column[c] for column in columns] for c in range(d)],
        )
        zero, identity = ScaledLowRank.zero(d), ScaledLowRank.identity(d)
        sa = draw(
            st.sampled_from(
                [
                    *[SelfAttention.identity(d)] * 4,
                    SelfAttention(1, zero, identity),
                    SelfAttention(0, identity, identity),
                    SelfAttention(
                        draw(small), ScaledLowRank.outer(u, draw(vector)), ScaledLowRank.outer(draw(vector), u)
                    ),
                    SelfAttention(2, zero, zero),
                ]
            )
        )
        blocks.append(Block(ff, sa))
    return il.Transformer(blocks)


@given(data_sets(most=4), st.data())
def test_the_outputs_are_those_of_the_definitions(data: il.Dataset, source: Any) -> None:
    T = source.draw(layers_along_few_directions(data.d))
    found = exact_outputs(T, data)
    for X, points in zip(data.inputs, found, strict=True):
        assert len(set(points)) == len(points)
        assert {tuple(map(fraction, x)) for x in points} == brute(T, X)


def test_long_sequences_are_scored_in_parts() -> None:
    """More tokens than rows of scores are held at a time; all move to the largest."""
    X = [(k, 200 - k) for k in range(1, 200)] + [(300, 300)]
    layer = SelfAttention(0, ScaledLowRank.identity(2), ScaledLowRank.identity(2))
    T = il.Transformer([Block(FeedForward.identity(2), layer)])
    assert exact_outputs(T, il.Dataset([X], [[[300, 300]]])) == [[(300, 300)]]
