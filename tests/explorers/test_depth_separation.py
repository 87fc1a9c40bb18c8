"""The explorer of depth: its numbers are the library's, at every setting."""

from __future__ import annotations

import time
from fractions import Fraction

import pytest

from interp_lib.explorers.depth_separation import EXPLORER, barrier_error
from interp_lib.infoflow.bounds import one_layer_units, two_layer_units
from interp_lib.infoflow.targets import circle_vectors, reveal_smallest_product


@pytest.mark.parametrize("T", [3, 16, 64])
@pytest.mark.parametrize(("h", "n", "d"), [(1, 1, 2), (2, 2, 3), (4, 4, 16)])
@pytest.mark.parametrize("exponent", [-15, -3, -0.5])
def test_every_setting(T: int, h: int, n: int, d: int, exponent: float) -> None:
    start = time.perf_counter()
    shown = EXPLORER.picture(T=T, h=h, n=n, d=d, eps=exponent)
    assert time.perf_counter() - start < 0.25
    eps = 10.0**exponent
    assert shown.svg.startswith("<svg")
    assert shown.numbers["two layers, units"] == two_layer_units(eps, d)
    needed = one_layer_units(eps, T, h, n)
    assert shown.numbers["one layer, units at least"] == (pytest.approx(needed) if needed >= 1 else "nothing yet")
    expected = "impossible" if eps < barrier_error(T, h, n, d) else "not excluded"
    assert shown.numbers["one layer with continuous encoders"] == expected


@pytest.mark.parametrize("m", [3, 4, 5, 8])
def test_the_wall_is_the_one_the_library_certifies(m: int) -> None:
    assert barrier_error(m + 1, 1, m - 2, 2) == pytest.approx(
        float(reveal_smallest_product(circle_vectors(m), m + 1).error), abs=2e-3
    )
    orthogonal = [tuple(int(i == k) for k in range(m)) for i in range(m)]
    assert reveal_smallest_product(orthogonal, m + 1).error == Fraction(1, 2) == barrier_error(m + 1, 1, m - 2, m)
    assert barrier_error(m, 1, m - 2, m) == 0
