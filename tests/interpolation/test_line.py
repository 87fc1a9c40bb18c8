"""Functions of one number: short dyadic choices, windows that are met, points and intervals that arrive."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import interp_lib as il
from interp_lib.fields import fraction, rational
from interp_lib.interpolation.line import (
    Cluster,
    Knot,
    WidthError,
    Window,
    deliver_from_right,
    dyadic_between,
    evaluate,
    evaluate_at,
    through_windows,
)

numbers = st.fractions(-20, 20, max_denominator=30)


@given(numbers, st.fractions(Fraction(1, 1000), 10, max_denominator=1000))
def test_a_dyadic_number_between(low: Fraction, length: Fraction) -> None:
    found = fraction(dyadic_between(rational(low), rational(low + length)))
    assert low < found < low + length
    assert found.denominator & (found.denominator - 1) == 0
    assert found.denominator <= max(1, 4 / length)


@given(numbers, st.lists(st.tuples(numbers, numbers), max_size=6), st.lists(numbers, min_size=1, max_size=8))
def test_one_sweep_equals_the_definition(
    constant: Fraction, pairs: list[tuple[Fraction, Fraction]], places: list[Fraction]
) -> None:
    knots = [Knot(rational(at), rational(turn)) for at, turn in pairs]
    exact = list(map(rational, places))
    expected = [constant + sum(turn * max(t - at, 0) for at, turn in pairs) for t in places]
    assert [fraction(v) for v in evaluate_at(rational(constant), knots, exact)] == expected
    assert [fraction(evaluate(rational(constant), knots, t)) for t in exact] == expected


@given(
    st.lists(
        st.tuples(numbers, numbers, st.fractions(Fraction(1, 50), 5)), min_size=1, max_size=10, unique_by=lambda w: w[0]
    )
)
def test_all_windows_are_met_with_few_knots(listed: list[tuple[Fraction, Fraction, Fraction]]) -> None:
    windows = [Window(rational(at), rational(low), rational(low + size)) for at, low, size in sorted(listed)]
    constant, knots = through_windows(windows)
    assert len(knots) <= len(windows) - 1
    for window, value in zip(windows, evaluate_at(constant, knots, [w.at for w in windows]), strict=True):
        assert window.low < value < window.high


@st.composite
def clusters(draw: st.DrawFn) -> list[Cluster]:
    ends = sorted(draw(st.sets(st.fractions(2, 30, max_denominator=8), min_size=2, max_size=12)))
    found = []
    for left, right in zip(ends[::2], ends[1::2], strict=False):
        high = right if draw(st.booleans()) else left
        target = tuple(rational(draw(st.fractions(-3, 1, max_denominator=5))) for _ in range(2))
        found.append(Cluster(rational(left), rational(high), target))
    return found


@given(clusters(), st.integers(2, 5), st.fractions(0, 1))
def test_points_and_intervals_arrive(listed: list[Cluster], width: int, share: Fraction) -> None:
    blocks = deliver_from_right(listed, width, rational(1))
    assert max(block.feed_forward.width for block in blocks) <= width
    tokens = [(fraction(c.low + (c.high - c.low) * rational(share)), 0) for c in listed]
    arrived = il.Transformer(blocks).forward(tokens, field=il.EXACT)
    assert list(arrived) == [tuple(map(fraction, c.target)) for c in listed]


def test_an_interval_needs_two_units() -> None:
    with pytest.raises(WidthError, match="2 units"):
        deliver_from_right([Cluster(rational(2), rational(3), (rational(0), rational(0)))], 1, rational(1))
