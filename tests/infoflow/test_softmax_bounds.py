"""The certified side of Lemma S: rational temperatures that are cold enough, and hardly colder than needed."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interp_lib.fields import Ball, fraction, rational, working_precision
from interp_lib.infoflow.softmax_bounds import SoftmaxBoundError, cold_enough, lambert_w, lambert_w_above, witness


@given(st.integers(2, 10**6))
def test_lambert_w_above_is_above_and_close(T: int) -> None:
    w = lambert_w_above(T)
    with working_precision(200):
        assert Ball(w) * (Ball(w) + 1).exp() > T - 1
        below = Ball(w - rational(Fraction(1, 10**9)))
        assert below * (below + 1).exp() < T - 1


@given(st.integers(2, 2000), st.fractions(Fraction(1, 10**6), 1))
def test_cold_enough_is_cold_enough_in_balls(T: int, gap: Fraction) -> None:
    """At the worst numbers, rounded to rationals, the gap stays below what was asked for; and β is not much too large."""
    beta = cold_enough(T, rational(gap))
    assert float(fraction(beta)) * float(gap) <= lambert_w((T - 1) / math.e) * (1 + 1e-6) + 1e-6
    with working_precision(128):
        distance = -Ball(rational(witness(T, float(fraction(beta)))[1]))
        leak = (T - 1) * (-Ball(beta) * distance).exp()
        assert leak * distance / (1 + leak) <= Ball(rational(gap))


def test_errors() -> None:
    with pytest.raises(SoftmaxBoundError, match="T: expected"):
        lambert_w_above(0)
    with pytest.raises(SoftmaxBoundError, match="gap: expected"):
        cold_enough(3, rational(0))
