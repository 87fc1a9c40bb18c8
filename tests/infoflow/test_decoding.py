"""Codes and decoders: recovered within ε on fine grids, the stated numbers of units, and every inequality of the proofs."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interp_lib.infoflow import decoding
from interp_lib.infoflow.decoding import Code, DecodingError, code

PAIRS = [(2, 1), (3, 1), (4, 2), (3, 2), (5, 2)]


def fine_points(scheme: Code, seed: int) -> list[list[Fraction]]:
    """A grid that hits corners, borders of cells and both sides of them, and random points; at most about 1500."""
    K = scheme.base**scheme.depth
    tiny = Fraction(1, 1000 * K)
    line = sorted(
        {min(max(Fraction(k, K) + s * tiny, Fraction(0)), Fraction(1)) for k in range(K + 1) for s in (-1, 0, 1)}
    )
    rng = random.Random(seed)
    per_axis = max(3, int(800 ** (1 / scheme.m)))
    axis = line if len(line) <= per_axis else [line[0], *rng.sample(line[1:-1], per_axis - 2), line[-1]]
    grid = list(map(list, itertools.product(axis, repeat=scheme.m)))
    grid += [[Fraction(rng.randint(0, 10**6), 10**6) for _ in range(scheme.m)] for _ in range(300)]
    return grid + [[rng.choice(line) for _ in range(scheme.m)] for _ in range(300)]


@pytest.mark.parametrize(("m", "E"), PAIRS)
@pytest.mark.parametrize("kind", ["snake", "raster", "digits", "interleaved"])
@pytest.mark.parametrize("eps", [Fraction(1, 2), Fraction(1, 7), Fraction(1, 16)])
def test_recovered_within_epsilon(m: int, E: int, kind: decoding.Kind, eps: Fraction) -> None:
    if kind != "digits" and m % E:
        with pytest.raises(DecodingError, match="use digits"):
            code(m, E, eps, kind)
        return
    scheme = code(m, E, eps, kind)
    assert scheme.error <= eps
    assert scheme.worst_error(fine_points(scheme, 1)) <= scheme.error


@pytest.mark.parametrize(("m", "E"), PAIRS)
def test_the_error_is_exactly_half_a_cell(m: int, E: int) -> None:
    for K in (2, 4):
        eps = Fraction(1, 2 * K)
        scheme = code(m, E, eps)
        if m % E == 0:
            assert scheme.recover([0] * m)[-1] == eps == scheme.error


@pytest.mark.parametrize(("m", "E"), PAIRS)
def test_slopes_of_units(m: int, E: int) -> None:
    """Log-log slope of the built decoders' units against 1/ε within 0.1 of m/E - 1, and the formula for p."""
    expected = m / E - 1
    bases = {
        (2, 1): range(4, 200, 20),
        (3, 1): range(4, 40, 6),
        (4, 2): range(4, 200, 20),
        (3, 2): range(4, 40, 6),
        (5, 2): range(4, 14, 3),
    }
    levels = [Fraction(1, 2 * (b if m % E == 0 else b**E)) for b in bases[m, E]]
    units = []
    for eps, b in zip(levels, bases[m, E], strict=True):
        scheme = code(m, E, eps)
        units.append(scheme.decoder.units)
        assert scheme.base == b
        assert (
            units[-1]
            == E * (2 * b ** (m // E - 1 if m % E == 0 else m - E) - 1)
            == E * decoding.pieces(m, E, eps, scheme.kind)
        )
        assert units[-1] == len(scheme.decoder.network()[1])
    assert decoding.fitted_slope([1 / float(e) for e in levels], units) == pytest.approx(expected, abs=0.1)


@pytest.mark.parametrize(("m", "expected"), [(2, 2), (3, 4)])
def test_slopes_with_bounded_entries(m: int, expected: int) -> None:
    """One code coordinate, all weights at most 1: twice the exponent."""
    sizes = [8, 16, 32]
    schemes = [code(m, 1, Fraction(1, 2 * K), "snake") for K in sizes]
    assert decoding.fitted_slope(sizes, [s.decoder.bounded_units for s in schemes]) == pytest.approx(expected, abs=0.25)
    for scheme in schemes:
        assert scheme.decoder.turning <= scheme.decoder.bounded_units <= scheme.decoder.turning + scheme.decoder.units
        copies = [
            math.ceil(scheme.decoder.polygons[0].length * max(map(abs, u.weight))) for u in scheme.decoder.network()[1]
        ]
        assert sum(copies) == scheme.decoder.bounded_units


@pytest.mark.parametrize("m", [2, 3])
def test_interleaving_is_a_power_worse(m: int) -> None:
    depths = [2, 3, 4] if m == 3 else [2, 3, 4, 5, 6]
    units = [code(m, 1, Fraction(1, 2 ** (k + 1)), "interleaved").decoder.units for k in depths]
    assert decoding.fitted_slope([2.0**k for k in depths], units) == pytest.approx(m, abs=0.3)
    assert all(
        u > code(m, 1, Fraction(1, 2 ** (k + 1)), "snake").decoder.units for k, u in zip(depths, units, strict=True)
    )


@given(st.sampled_from(PAIRS), st.integers(2, 6), st.data())
@settings(max_examples=60, deadline=None)
def test_units_and_polygons_agree(sizes: tuple[int, int], inverse: int, data: st.DataObject) -> None:
    scheme = code(
        *sizes,
        Fraction(1, inverse),
        data.draw(st.sampled_from(["snake", "raster", "digits"] if sizes[0] % sizes[1] == 0 else ["digits"])),
    )
    z = [data.draw(st.fractions(-1, polygon.knots[-1] + 1, max_denominator=50)) for polygon in scheme.decoder.polygons]
    assert scheme.decoder(z) == scheme.decoder.through_units(z)


@given(st.sampled_from([(2, 1, 2), (4, 2, 2), (4, 2, 4), (3, 1, 3), (3, 2, 3), (5, 2, 5), (6, 2, 3)]), st.data())
@settings(max_examples=40, deadline=None)
def test_one_uniform_attention_layer_computes_the_code(sizes: tuple[int, int, int], data: st.DataObject) -> None:
    m, E, T0 = sizes
    kinds = ["raster", "digits"] if m % E == 0 else ["digits"]
    scheme = code(m, E, Fraction(1, 8), data.draw(st.sampled_from(kinds)))
    x = [data.draw(st.fractions(0, 1, max_denominator=64)) for _ in range(m)]
    tokens = [x[t * (m // T0) : (t + 1) * (m // T0)] for t in range(T0)]
    rows = decoding.attention_code(scheme, tokens)
    assert len(rows) == T0
    assert all(row == scheme.encode(x) for row in rows)
    assert all(abs(a - b) <= Fraction(1, 8) for a, b in zip(scheme.decoder(rows[0]), x, strict=True))


@given(st.integers(1, 5), st.integers(1, 3))
def test_the_snake_visits_every_cell_once_and_never_jumps(K: int, count: int) -> None:
    cells = [decoding.snake_cell(j, K, count) for j in range(K**count)]
    assert len(set(cells)) == K**count
    assert [decoding.snake_index(c, K) for c in cells] == list(range(K**count))
    assert all(sum(abs(a - b) for a, b in zip(c, d, strict=True)) == 1 for c, d in pairwise(cells))


@given(st.fractions(Fraction(1, 5000), Fraction(1, 2)), st.integers(1, 5))
def test_smallest_base(eps: Fraction, power: int) -> None:
    b = decoding.smallest_base(eps, power)
    assert 2 * eps * b**power >= 1
    assert b == 1 or 2 * eps * (b - 1) ** power < 1


@pytest.mark.parametrize(("T0", "d"), [(1, 1), (2, 1), (3, 2), (5, 3)])
def test_averaging_keeps_everything(T0: int, d: int) -> None:
    rng = random.Random(0)
    U, V = decoding.averaging_decoder(T0, d)
    assert max(abs(v) for row in (*U, *V) for v in row) <= 1
    assert T0 * d < len(U) <= 2 * T0 * d
    for _ in range(5):
        X = [[Fraction(rng.randint(0, 99), 99) for _ in range(d)] for _ in range(T0)]
        z = decoding.averaged(X)
        hidden = [max(sum(u * v for u, v in zip(row, z, strict=True)) + 1, Fraction(0)) for row in U]
        out = [sum(v * s for v, s in zip(row, hidden, strict=True)) for row in V]
        assert out == [x for token in X for x in token]


# ---------------------------------------------------------------- the inequalities


@given(st.integers(0, 60), st.integers(1, 8))
def test_cells_of_arrangement(p: int, E: int) -> None:
    cells, bound = decoding.cells_of_arrangement(p, E)
    assert cells <= bound


@given(st.lists(st.floats(-1.5, 1.5), min_size=2, max_size=5), st.floats(1e-3, 1))
def test_tube_volume_of_segments(direction: list[float], eps: float) -> None:
    clipped = [max(-1 - 2 * eps, min(1 + 2 * eps, v)) for v in direction]
    assert decoding.segment_tube(clipped, eps) <= decoding.tube_volume(len(direction), 1, eps)


@given(st.integers(1, 6), st.floats(1e-3, 1))
def test_tube_volume_of_points(m: int, eps: float) -> None:
    assert (2 * eps) ** m <= decoding.tube_volume(m, 0, eps)


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(1e-6, 2)), min_size=1, max_size=20))
def test_lap_inequality(laps: list[tuple[float, float]]) -> None:
    left, right = decoding.lap_inequality([h for h, _ in laps], [t for _, t in laps])
    assert left >= right * (1 - 1e-12)


@given(
    st.lists(
        st.tuples(st.fractions(Fraction(1, 20), 1, max_denominator=20), st.fractions(0, 1, max_denominator=9)),
        min_size=2,
        max_size=12,
    )
)
def test_turning_of_laps(steps: list[tuple[Fraction, Fraction]]) -> None:
    knots = list(itertools.accumulate(step for step, _ in steps))
    turning, laps = decoding.turning_of_laps(knots, [v for _, v in steps])
    assert turning >= laps


@given(st.floats(1e-3, 1.999))
def test_packing(distance: float) -> None:
    left, right = decoding.packing(distance)
    assert left < right


def test_errors() -> None:
    with pytest.raises(DecodingError, match="1 ≤ E < m"):
        code(2, 2, Fraction(1, 4))
    with pytest.raises(DecodingError, match="eps: expected"):
        code(2, 1, 1)
    with pytest.raises(DecodingError, match="pieces"):
        code(4, 1, Fraction(1, 1000))
    with pytest.raises(DecodingError, match="kind: expected"):
        code(2, 1, Fraction(1, 4), "zigzag")  # type: ignore[arg-type]
    scheme = code(2, 1, Fraction(1, 4))
    with pytest.raises(DecodingError, match=r"numbers\[1\]"):
        scheme.encode([0, 2])
    with pytest.raises(DecodingError, match="expected 2, got 1"):
        scheme.encode([0])
    with pytest.raises(DecodingError, match="a code that is a sum"):
        decoding.attention_code(scheme, [[0], [1]])
    with pytest.raises(DecodingError, match="power of two"):
        decoding.sylvester(3)
