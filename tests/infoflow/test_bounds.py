"""Constants and exponents: lower bounds stay below what is built, exponents are slopes, the lemmas' inequalities hold."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interp_lib.infoflow import bounds
from interp_lib.infoflow.decoding import code, fitted_slope
from interp_lib.infoflow.depth_separation import smallest_product

ENTRIES = st.floats(-1, 1)


@given(st.integers(1, 4), st.integers(0, 6), st.data())
def test_lipschitz_price(E: int, p: int, data: st.DataObject) -> None:
    row = st.lists(ENTRIES, min_size=E, max_size=E)
    state = st.lists(st.floats(-5, 5), min_size=E, max_size=E)
    U = [data.draw(row) for _ in range(p)]
    V = [data.draw(ENTRIES) for _ in range(p)]
    difference, bound = bounds.lipschitz_price(U, V, data.draw(state), data.draw(state))
    assert difference <= bound + 1e-12


@given(st.integers(1, 4), st.data())
def test_quotient_difference(n: int, data: st.DataObject) -> None:
    def drawn() -> tuple[list[float], float]:
        D = data.draw(st.floats(1, 10))
        N = data.draw(st.lists(ENTRIES, min_size=n, max_size=n))
        return [v * D / max(1.0, math.hypot(*N)) for v in N], D

    difference, bound = bounds.quotient_difference(*drawn(), *drawn())
    assert difference <= bound + 1e-12


@given(st.integers(1, 8), st.integers(2, 50), st.integers(2, 8))
def test_fewer_cubes_than_choices(free: int, grid: int, q: int) -> None:
    assert bounds.cubes(free, grid, q) < grid**free


@pytest.mark.parametrize(("T", "h", "n"), [(8, 1, 1), (10, 1, 2), (12, 2, 1)])
def test_theorem_1_exponent_is_the_slope(T: int, h: int, n: int) -> None:
    levels = [10.0**-k for k in range(9, 14)]
    units = [bounds.one_layer_units(eps, T, h, n) for eps in levels]
    slope = fitted_slope([1 / e for e in levels], units)
    assert slope == pytest.approx(float(bounds.one_layer_exponent(T, h, n)), abs=0.02)
    assert bounds.one_layer_units(0.1, T, h, n) == 0


@pytest.mark.parametrize(("k", "T", "n"), [(2, 8, 1), (3, 6, 1), (6, 7, 1), (2, 12, 3)])
def test_theorem_2_exponent_is_the_slope(k: int, T: int, n: int) -> None:
    levels = [10.0**-j for j in range(6, 11)]
    units = [bounds.retrieval_units(eps, k, T, n) for eps in levels]
    assert fitted_slope([1 / e for e in levels], units) == pytest.approx(
        float(bounds.retrieval_exponent(k, T, n)), abs=0.02
    )
    assert bounds.retrieval_units(1e-6, k, T, n) == bounds.retrieval_units(1e-6, T - k + 1, T, n)


@given(st.integers(1, 5), st.integers(1, 4), st.fractions(Fraction(1, 40), Fraction(1, 2)))
@settings(max_examples=40, deadline=None)
def test_decoders_obey_the_lower_bounds(extra: int, E: int, eps: Fraction) -> None:
    m = E + extra
    built = bounds.decoding_units_built(eps, m, E)
    assert built >= bounds.decoding_units_free(float(eps), m, E)
    if built < 2000 and extra <= 3:
        decoder = code(m, E, eps).decoder
        assert decoder.units == built
        # Weights at most 1 and codes in the unit ball: codes in [0, 1/√E]^E need √E times as many copies.
        assert math.ceil(math.sqrt(E)) * decoder.bounded_units >= bounds.decoding_units_bounded(float(eps), m, E)
    if E == 1 and built < 2000:
        assert code(m, 1, eps).decoder.bounded_units >= bounds.decoding_units_line(float(eps), m)


def test_two_layers_as_built() -> None:
    for d in (1, 2, 5):
        for eps in (Fraction(1, 3), Fraction(1, 100)):
            assert bounds.two_layer_units(eps, d) == smallest_product(4, d, eps).units


def test_exponents() -> None:
    assert bounds.decoding_exponent(5, 2) == Fraction(3, 2)
    assert bounds.one_layer_exponent(20, 1, 1) == 8
    with pytest.raises(bounds.BoundError, match="extremes cost a constant"):
        bounds.retrieval_exponent(1, 8, 1)
    with pytest.raises(bounds.BoundError, match="extremes cost a constant"):
        bounds.retrieval_units(0.1, 8, 8, 1)


def test_symbols_and_numbers_agree() -> None:
    pytest.importorskip("sympy")
    values = {"T": 9, "h": 2, "n": 3, "k": 4, "m": 5, "E": 2}
    for law in bounds.LAWS:
        ours, source = bounds.symbolic(law)
        at = {symbol: values[symbol.name] for symbol in ours.free_symbols}
        assert {symbol.name for symbol in ours.free_symbols} == set(law.symbols)
        assert float(ours.subs(at)) == pytest.approx(float(law.ours(*(values[name] for name in law.symbols))))
        assert (source is None) == (law.source is None)
    one = bounds.LAWS[0].ours(*(Fraction(values[s]) for s in bounds.LAWS[0].symbols))
    assert one == bounds.one_layer_exponent(9, 2, 3)
    third = bounds.LAWS[2].ours(Fraction(9), Fraction(4), Fraction(3))
    assert third == bounds.retrieval_exponent(4, 9, 3)
