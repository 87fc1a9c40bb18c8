"""Theorem 1.6: certified on every data set, within every budget; each phase does what its lemma says."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import interp_lib as il
from interp_lib.fields import fraction
from interp_lib.interpolation.four_phase import four_phases
from interp_lib.interpolation.leaders import lean
from tests.datasets import brute, data_sets, nasty, uniform

NASTY = nasty()


def check(data: il.Dataset) -> None:
    T = il.hardmax_interpolant(data)
    certificate = il.verify(T, data)
    assert certificate.status == "certified", certificate.explain()
    assert T.depth <= 2 * data.M + data.N - 1
    assert T.width <= 4
    assert T.num_parameters("structured") <= (12 * data.d + 8) * T.depth
    assert T.num_parameters("nonzero") <= T.num_parameters("structured") <= T.num_parameters("dense")
    assert sum(T.phases.values()) == T.depth
    assert T.phases["separation"] <= data.N - 1


@given(data_sets())
def test_every_small_data_set_is_interpolated(data: il.Dataset) -> None:
    check(data)


@pytest.mark.parametrize("name", NASTY)
def test_every_nasty_data_set_is_interpolated(name: str) -> None:
    check(NASTY[name])


@pytest.mark.parametrize("name", ["nested", "all subsets", "on a circle", "close together", "running example"])
def test_an_evaluation_from_the_definitions_agrees(name: str) -> None:
    data = NASTY[name]
    T = il.hardmax_interpolant(data)
    for X, Y in zip(data.inputs, data.outputs, strict=True):
        assert brute(T, X) == set(Y) == set(T.forward(X, field=il.EXACT))


@pytest.mark.parametrize(("N", "n", "m", "d"), [(1, 1, 1, 2), (1, 30, 5, 3), (20, 8, 3, 16), (3, 3, 3, 2)])
def test_uniform_floats(N: int, n: int, m: int, d: int) -> None:
    for scale in (1e-12, 1.0, 1e12):
        check(uniform(N, N, n, m, d, scale))


@given(data_sets())
@settings(max_examples=20)
def test_padding_gives_exactly_the_papers_depth(data: il.Dataset) -> None:
    T = il.hardmax_interpolant(data, pad=True)
    assert T.depth == 2 * data.M + 2 * data.N + 1
    assert il.verify(T, data).status == "certified"


@given(data_sets(), st.randoms(use_true_random=False))
@settings(max_examples=20)
def test_weights_do_not_depend_on_the_order_of_a_call(data: il.Dataset, random: Any) -> None:
    assert il.hardmax_interpolant(data) == il.hardmax_interpolant(data)
    shuffled = [random.sample(X, len(X)) for X in data.inputs]
    T = il.hardmax_interpolant(data)
    for X, Y in zip(shuffled, data.outputs, strict=True):
        assert set(T.forward(X, field=il.EXACT)) == set(Y)


def test_the_input_length_does_not_enter() -> None:
    depths = {il.hardmax_interpolant(uniform(1, 4, n, 2, 3)).depth for n in (2, 20, 200)}
    assert max(depths) <= 2 * 8 + 4 - 1


def test_float_passes_are_accurate() -> None:
    import numpy as np

    data = uniform(5, 50, 10, 3, 8)
    T = il.hardmax_interpolant(data)
    scale = max(float(np.linalg.norm([float(v) for v in y])) for Y in data.outputs for y in Y)
    error = max(il.hausdorff_distance(T(X), Y) for X, Y in zip(data.inputs, data.outputs, strict=True))
    assert error < 1e-6 * scale


# ---------------------------------------------------------------- phase by phase


def states_after(T: Any, data: il.Dataset, block: int) -> list[list[tuple[Fraction, ...]]]:
    return [[tuple(x) for x in T.trace(X, field=il.EXACT)[2 * block].tokens] for X in data.inputs]


@given(data_sets())
def test_separation_and_collapse(data: il.Dataset) -> None:
    parts = four_phases(data)
    T, places = parts.transformer, parts.leaders.places
    K = T.phases["separation"]
    assert len(set(parts.separation.contexts)) == data.N
    assert all(c > 0 for c in parts.separation.v)
    if K:
        separated = states_after(T, data, K)
        points = [x for tokens in separated for x in tokens]
        assert len(set(points)) == sum(data.n)
        assert min(map(min, points)) > 0
        expected = [[tuple(map(fraction, row)) for row in matrix.tolist()] for matrix in parts.separation.tokens]
        assert separated == expected
    collapsed = states_after(T, data, K + data.M)
    for j, tokens in enumerate(collapsed):
        assert set(tokens) == {tuple(map(fraction, place)) for place in places.of(j)}


@given(data_sets())
def test_places_lie_beyond_all_tokens(data: il.Dataset) -> None:
    parts = four_phases(data)
    a, places = parts.leaders.a, parts.leaders.places

    def along(x: Any) -> Any:
        return sum(p * q for p, q in zip(a, x, strict=True))

    tokens = [row for matrix in parts.separation.tokens for row in matrix.tolist()]
    everywhere = [place for j in range(data.N) for place in places.of(j)]
    assert max(map(along, tokens)) < min(map(along, everywhere))
    assert len({place[0] for place in everywhere}) == data.M
    assert all(16 * max(map(abs, x)) <= places.clear <= min(abs(p[0]) for p in everywhere) for x in tokens)
    assert all(16 * max(map(abs, y)) <= places.clear for matrix in data.output_matrices for y in matrix.tolist())


@given(st.lists(st.integers(1, 50), min_size=2, max_size=6), st.data())
def test_the_leaning_direction_keeps_its_promise(c: list[int], data: Any) -> None:
    """The bounds of the lemma, for any tokens in ``(0, B]`` and any places as far out as it asks."""
    from interp_lib.fields import rational

    a = [fraction(v) for v in lean(tuple(map(rational, c)))]
    h, B = sum(c), Fraction(1)
    share = st.fractions(Fraction(1, 100), 1, max_denominator=100)
    x = [data.draw(share) * B for _ in c]
    t = data.draw(
        st.fractions(Fraction(1, 16), Fraction(3, 16), max_denominator=1000).filter(lambda v: v < Fraction(3, 16))
    )
    r, R = 64 * B, 16 * B
    q = [-r * (1 - t * t) / (1 + t * t), -r * 2 * t / (1 + t * t), *[Fraction(0)] * (len(c) - 2)]

    def along(y: Any) -> Fraction:
        return sum((p * v for p, v in zip(a, y, strict=True)), Fraction(0))

    assert along(x) <= Fraction(9, 4) * h * B
    assert along([R] * len(c)) > 4 * h * B
    assert along(q) > h * r / 3
