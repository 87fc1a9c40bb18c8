"""Lemma S, in floats: the bound holds, is attained, and the explorer shows it."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interp_lib.explorers.softmax_mean import EXPLORER
from interp_lib.infoflow.softmax_bounds import lambert_w, largest_gap, softmax_mean, witness


@given(st.floats(0, 1e6))
def test_lambert_w_solves_its_equation(x: float) -> None:
    w = lambert_w(x)
    assert w >= 0
    assert w * math.exp(w) == pytest.approx(x, rel=1e-12, abs=1e-300)


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=30), st.floats(0.01, 100))
def test_the_gap_never_exceeds_the_sharp_bound(values: list[float], beta: float) -> None:
    gap = max(values) - softmax_mean(values, beta)
    assert -1e-12 <= gap <= largest_gap(len(values), beta) + 1e-12


@given(st.integers(2, 600), st.floats(0.01, 1000))
def test_the_witness_attains_it_and_the_familiar_bound_is_weaker(T: int, beta: float) -> None:
    assert -softmax_mean(witness(T, beta), beta) == pytest.approx(largest_gap(T, beta), rel=1e-9)
    assert largest_gap(T, beta) < math.log(T) / beta


def test_the_figures_of_the_text() -> None:
    """T = 512: 3.88 against log T = 6.24."""
    assert largest_gap(512, 1.0) == pytest.approx(3.88, abs=0.005)
    assert math.log(512) == pytest.approx(6.24, abs=0.005)


@pytest.mark.parametrize("T", [2, 8, 512])
@pytest.mark.parametrize("exponent", [-0.5, 1, 3])
def test_the_explorer_draws_every_setting(T: int, exponent: float) -> None:
    picture = EXPLORER.picture(T=T, beta=exponent)
    assert picture.numbers["gap of the worst numbers"] == pytest.approx(picture.numbers["sharp bound"], rel=1e-6)
    assert picture.svg.startswith("<svg")
