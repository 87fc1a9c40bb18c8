"""Theorem 1.8: one set of weights, certified at every tried temperature below the explicit bound."""

from __future__ import annotations

import math
import random
import time
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import interp_lib as il
from interp_lib.examples import running_example
from interp_lib.fields import Ball, rational, working_precision
from interp_lib.gadgets import GadgetError, collapse_to, feed_forward, flat_knots
from interp_lib.interpolation.critical import BreakError, measured_critical_temperature
from interp_lib.interpolation.softmax import AIM, softmax_interpolant, softmax_phases
from interp_lib.interpolation.temperature import (
    TemperatureError,
    drift_rates,
    drifted_gap,
    grid,
    leak_bound,
    mean_below_maximum,
)
from tests.datasets import data_sets


def random_data(seed: int, N: int, m: int, n: int, d: int, shared: bool = True) -> il.Dataset:
    """Uniform tokens in the unit cube; with ``shared``, sequences draw from one small pool of tokens."""
    source = random.Random(seed)
    pool = [[source.random() for _ in range(d)] for _ in range(n + N if shared else n * N)]
    inputs: list[list[list[float]]] = []
    while len(inputs) < N:
        drawn = source.sample(pool, n) if shared else pool[len(inputs) * n : (len(inputs) + 1) * n]
        if all(sorted(drawn) != sorted(other) for other in inputs):
            inputs.append(drawn)
    return il.Dataset(inputs, [[[source.random() for _ in range(d)] for _ in range(m)] for _ in range(N)])


# ---------------------------------------------------------------- the theorem


@given(data_sets())
def test_certified_at_the_bound_and_far_below_with_the_same_weights(data: il.Dataset) -> None:
    T = softmax_interpolant(data)
    assert T.critical_temperature is not None
    for share in (Fraction(1), Fraction(1, 10**3), Fraction(1, 10**9)):
        found = il.verify(T, data, share * T.critical_temperature)
        assert found.status == "certified", found.explain()
    assert il.verify(T, data).status == "certified"


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("d", [2, 3, 8])
def test_uniform_data_in_the_unit_cube(seed: int, d: int) -> None:
    data = random_data(seed, 8, 2, 5, d)
    T = softmax_interpolant(data)
    assert T.critical_temperature >= Fraction(1, 100)
    for share in (Fraction(1), Fraction(1, 10**3), Fraction(1, 10**9)):
        assert il.verify(T, data, share * T.critical_temperature).status == "certified"


@given(data_sets())
def test_the_budget_of_the_theorem(data: il.Dataset) -> None:
    T, padded = softmax_interpolant(data), softmax_interpolant(data, pad=True)
    assert T.depth <= 2 * data.M + data.N
    assert padded.depth == 2 * data.M + 3 * data.N
    assert T.width <= 4
    assert list(padded.phases)[:5] == ["separation", "leaders", "collapse", "line", "interpolation"]
    assert padded.num_parameters("structured") <= (12 * data.d + 8) * padded.depth
    assert padded.critical_temperature == T.critical_temperature
    assert il.verify(padded, data, T.critical_temperature).status == "certified"


def test_nasty_data() -> None:
    tiny, huge = 1e-9, 1e9
    cases = [
        il.Dataset([[[0, 0]]], [[[0, 0]]]),
        il.Dataset([[[0, 0], [tiny, 0], [0, tiny]], [[tiny, 0]]], [[[huge, 0], [0, 1]], [[huge, 0]]]),
        il.Dataset([[[huge, 1], [-huge, 2]], [[huge, 1]], [[-huge, 2]]], [[[0, tiny]], [[0, 0]], [[1, 0]]]),
        il.Dataset([[[k, k * k] for k in range(7)]], [[[k, -k] for k in range(7)]]),
        running_example(),
    ]
    for data in cases:
        T = softmax_interpolant(data)
        for share in (1, Fraction(1, 1000)):
            found = il.verify(T, data, share * T.critical_temperature)
            assert found.status == "certified", found.explain()


def test_a_large_certificate_is_quick() -> None:
    data = random_data(0, 20, 3, 10, 8)
    T = softmax_interpolant(data)
    start = time.process_time()
    found = il.verify(T, data, T.critical_temperature)
    assert found.status == "certified"
    assert time.process_time() - start < 10
    assert found.bits is not None
    assert found.exponentials > 0


@pytest.mark.parametrize("exponent", [-12, -6, 0, 6, 12])
def test_float_passes_at_any_temperature(exponent: int) -> None:
    import numpy as np

    data = random_data(3, 4, 2, 4, 3)
    T = softmax_interpolant(data)
    for X, Y in zip(data.inputs, data.outputs, strict=True):
        result = T(X, temperature=10.0**exponent)
        assert np.isfinite(result).all()
        if 10.0**exponent < T.critical_temperature:
            assert il.hausdorff_distance(result, Y) < 1e-9


# ---------------------------------------------------------------- the bound and its parts


@given(data_sets())
def test_the_bound_is_the_least_of_its_parts(data: il.Dataset) -> None:
    bound = softmax_phases(data).bound
    assert all(part.room > 0 for part in bound.parts)
    if bound.limiting is None:
        assert max(data.n) == 1 or data.N == 1
    else:
        assert bound.temperature == min(part.temperature for part in bound.parts) == bound.limiting.temperature


@pytest.mark.parametrize("seed", range(5))
def test_drift_and_clusters_stay_within_the_estimates(seed: int) -> None:
    """At the bound itself, in balls: drift along ``-u`` only and at most ``τ Λ``; clusters inside their rooms."""
    data = random_data(seed, 4, 2, 4, 2)
    parts = softmax_phases(data)
    T, tau = parts.transformer, parts.bound.temperature
    K = len(parts.separation.blocks)
    rooms = {(i.sequence, i.leader): i for i in parts.intervals}
    with working_precision(96):
        rates = drift_rates(parts.separation.steps, data.n)
        for j, X in enumerate(data.inputs):
            # A plain pass in balls loses digits at every steep slope, so it needs many.
            states = T.trace(X, il.balls(1024), tau)
            separated = states[2 * K].tokens
            for row, nominal in zip(separated, parts.separation.tokens[j].tolist(), strict=True):
                drifts = [(b - a) / c for a, b, c in zip(row, nominal, parts.separation.u, strict=True) if c != 0]
                for drift in drifts:
                    assert drift.overlaps(drifts[0])
                    assert drift > -1e-20
                    assert drift < rates[j] * rational(tau) + Ball(1e-20)
            line = states[2 * (K + data.M + 1)].tokens
            reached = set()
            for row in line:
                near = [i for i, own in rooms.items() if i[0] == j and abs(row[0] - own.centre) < own.room]
                assert len(near) == 1
                reached.update(near)
            assert reached == {(j, i) for i in range(data.m[j])}


def test_tokens_go_far_out_when_drift_asks_for_it() -> None:
    data = random_data(2, 8, 2, 5, 2)
    parts = softmax_phases(data)
    assert parts.separation.far > 1
    assert parts.bound.temperature >= il.fields.fraction(AIM * parts.separation.room**2)


def test_nothing_limits_single_tokens() -> None:
    data = il.Dataset([[[0, 0]], [[1, 0]]], [[[3, 3]], [[4, 4]]])
    parts = softmax_phases(data)
    assert parts.bound.parts == ()
    assert parts.bound.limiting is None
    assert il.verify(parts.transformer, data, 10**12).status == "certified"


def test_the_grid_climbs_by_an_eighth_at_most() -> None:
    values = [grid(k) for k in range(-40, 41)]
    assert all(1 < b / a <= rational(9) / 8 for a, b in pairwise(values))


numbers = st.fractions(-4, 4, max_denominator=16)


@given(st.lists(numbers, min_size=1, max_size=6), st.fractions(Fraction(1, 8), 20, max_denominator=8))
def test_a_softmax_mean_is_near_the_maximum(values: list[Fraction], beta: Fraction) -> None:
    with working_precision(128):
        top = max(values)
        weights = [Ball(rational((v - top) * beta)).exp() for v in values]
        below = sum((w * rational(top - v) for w, v in zip(weights, values, strict=True)), Ball(0)) / sum(
            weights, Ball(0)
        )
        bound = mean_below_maximum(len(values), Ball(rational(beta)))
        assert below < bound + Ball(1e-30)


@given(
    st.lists(st.tuples(numbers, numbers), min_size=4, max_size=4), st.lists(st.fractions(0, 1), min_size=3, max_size=3)
)
def test_what_drift_leaves_of_a_gap(points: list[tuple[Fraction, ...]], shares: list[Fraction]) -> None:
    x, p, y, u = points
    D = Fraction(1, 4)
    a, b, c = (D * share for share in shares)

    def inner(s: Any, t: Any) -> Fraction:
        return sum((v * w for v, w in zip(s, t, strict=True)), Fraction(0))

    def minus(s: Any, t: Any, factor: Fraction = Fraction(1)) -> tuple[Fraction, ...]:
        return tuple(v - factor * w for v, w in zip(s, t, strict=True))

    left = inner(minus(x, u, a), minus(minus(p, u, b), minus(y, u, c)))
    slope = abs(inner(u, minus(p, y))) + abs(inner(x, u))
    gap = rational(inner(x, minus(p, y)))
    bound = drifted_gap(gap, Ball(rational(D)), rational(slope), rational(inner(u, u)))
    assert bound < rational(left) + Ball(1e-9)


@given(st.lists(st.tuples(st.fractions(1, 5, max_denominator=8), numbers), min_size=0, max_size=5), numbers)
def test_a_leak_is_exponentially_small(others: list[tuple[Fraction, Fraction]], own: Fraction) -> None:
    """``others`` holds the gap and the value of each other token."""
    tau = Fraction(1, 3)
    with working_precision(128):
        weights = [Ball(rational(-gap / tau)).exp() for gap, _ in others]
        moved = [w * rational(value - own) for w, (_, value) in zip(weights, others, strict=True)]
        leak = abs(sum(moved, Ball(0)) / sum(weights, Ball(1)))
        gap = min((g for g, _ in others), default=Fraction(1))
        spread = max((abs(value - own) for _, value in others), default=Fraction(0))
        bound = leak_bound(len(others), Ball(rational(gap)), rational(tau), Ball(rational(spread)))
        assert leak < bound + Ball(1e-30)


def test_data_too_close_for_the_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("interp_lib.interpolation.temperature.COLDEST", 6)
    with pytest.raises(TemperatureError, match="below 2\\^6"):
        softmax_interpolant(random_data(0, 4, 2, 4, 2))


# ---------------------------------------------------------------- the break


@pytest.mark.parametrize("seed", range(4))
def test_a_bracket_of_one_percent(seed: int) -> None:
    data = random_data(seed, 3, 2, 4, 2 + seed % 2)
    T = softmax_interpolant(data)
    found = measured_critical_temperature(T, data)
    assert found.certified.status == "certified"
    assert found.refuted is not None
    assert found.above is not None
    assert found.refuted.status == "refuted"
    assert T.critical_temperature <= found.below < found.above <= Fraction(101, 100) * found.below
    assert il.verify(T, data, found.below).status == "certified"
    assert il.verify(T, data, found.above).status == "refuted"
    # Well below nothing goes wrong, well above nothing goes right.
    assert il.verify(T, data, found.below / 2).status == "certified"
    assert il.verify(T, data, found.above * 1000).status == "refuted"


def test_a_sharper_bracket() -> None:
    data = running_example()
    found = measured_critical_temperature(softmax_interpolant(data), data, Fraction(1, 10**4))
    assert 0 < found.relative_width <= 1e-4


def test_no_break_where_softmax_does_nothing() -> None:
    data = il.Dataset([[[0, 0]], [[1, 0]]], [[[3, 3]], [[4, 4]]])
    found = measured_critical_temperature(softmax_interpolant(data), data)
    assert found.above is None
    assert found.refuted is None
    assert found.relative_width == math.inf


def test_no_bracket_for_what_never_interpolates() -> None:
    data = running_example()
    other = il.Dataset(data.inputs, [[[9, 9]], *data.outputs[1:]])
    with pytest.raises(BreakError, match="not certified at any"):
        measured_critical_temperature(softmax_interpolant(data), other)
    with pytest.raises(BreakError, match="tolerance"):
        measured_critical_temperature(softmax_interpolant(data), data, 0)


# ---------------------------------------------------------------- the gadgets


@given(st.fractions(-5, 5), st.integers(-3, 3))
def test_flat_knots_leave_room_on_all_sides(centre: Fraction, exponent: int) -> None:
    c, r = rational(centre), rational(2) ** exponent
    outer_left, left, right, outer_right = flat_knots(c, r)
    room = 3 * r / 16
    assert left + room <= c <= right - room
    assert c - r + room <= outer_left
    assert outer_right <= c + r - room
    with pytest.raises(GadgetError, match="half_width"):
        flat_knots(c, rational(0))


@given(st.fractions(0, 6), st.tuples(st.fractions(-3, 3), st.fractions(-3, 3)))
def test_a_cluster_becomes_a_point(t: Fraction, target: tuple[Fraction, Fraction]) -> None:
    axis = (rational(1), rational(0))
    units = collapse_to(axis, [rational(k) for k in (1, 2, 4, 5)], [rational(y) for y in target])
    layer = feed_forward(units, 2)
    T = il.Transformer([il.layers.Block.feeding(layer)])
    (result,) = T.forward([[t, 0]], il.EXACT)
    if 2 <= t <= 4:
        assert result == target
    elif t <= 1 or t >= 5:
        assert result == (t, 0)
