"""Delivery by first coordinates: every place goes to its own target, whatever the targets are."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

import interp_lib as il
from interp_lib.fields import rational
from interp_lib.interpolation.delivery import deliver

inside = st.fractions(-2, 2, max_denominator=8)


@given(st.lists(st.fractions(4, 9, max_denominator=16), min_size=1, max_size=8, unique=True), st.data())
def test_each_place_reaches_its_target(sizes: list[Fraction], data: st.DataObject) -> None:
    signs = [data.draw(st.sampled_from([1, -1])) for _ in sizes]
    places = [(sign * size, data.draw(inside)) for sign, size in zip(signs, sizes, strict=True)]
    targets = [(data.draw(inside), data.draw(inside)) for _ in sizes]
    exact = [[[rational(v) for v in point] for point in points] for points in (places, targets)]
    blocks = deliver(*exact, rational(4))
    assert len(blocks) == len(places)
    arrived = il.Transformer(blocks).forward(places, field=il.EXACT)
    assert list(arrived) == targets
    assert max(block.feed_forward.width for block in blocks) <= 4
