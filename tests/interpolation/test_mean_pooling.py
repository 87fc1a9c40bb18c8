"""Theorem S: certified at all temperatures at once, within every budget, for every width; the softmax variant at its own."""

from __future__ import annotations

import random
from fractions import Fraction
from math import ceil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import interp_lib as il
from interp_lib.fields import rational
from interp_lib.interpolation.line import WidthError
from interp_lib.interpolation.mean_pooling import mean_phases, splitting_knot, tell_apart
from interp_lib.layers import LayerError
from tests.datasets import brute, data_sets, nasty, uniform

NASTY = nasty()


def check(data: il.Dataset, width: int = 4) -> il.Transformer:
    T = il.mean_interpolant(data, width=width)
    found = il.verify(T, data, temperature="all")
    assert found.status == "certified", found.explain()
    assert found.temperature == "all"
    assert T.width <= width
    assert T.depth <= 2 * ceil((data.N - 1) / width) + ceil(data.M / width) + 2
    assert T.num_parameters("nonzero") <= data.d * data.M + 4 * data.M + 8 * data.N + 2 * data.d + 40
    acting = [block.attention for block in T.blocks if not block.attention.V.is_zero]
    assert len(acting) == 1
    assert acting[0].A.is_zero
    return T


@given(data_sets())
def test_every_small_data_set(data: il.Dataset) -> None:
    check(data)


@pytest.mark.parametrize("name", NASTY)
def test_every_nasty_data_set(name: str) -> None:
    T = check(NASTY[name])
    for temperature in (0, Fraction(1, 10**6), 1, 10**6):
        assert il.verify(T, NASTY[name], temperature).status == "certified"


@pytest.mark.parametrize(
    "name", ["all subsets", "equal centroids", "all tokens are targets", "huge and tiny", "running example"]
)
def test_an_evaluation_from_the_definitions_agrees(name: str) -> None:
    data = NASTY[name]
    T = il.mean_interpolant(data)
    for X, Y in zip(data.inputs, data.outputs, strict=True):
        assert brute(T, X) == set(Y)


def from_a_small_pool(seed: int) -> il.Dataset:
    """Up to 30 different subsets of at most seven tokens, with as many targets as they can have."""
    source = random.Random(seed)
    d = source.choice([2, 3, 4])
    pool = list({tuple(source.randint(-2, 2) for _ in range(d)) for _ in range(7)})
    N = min(source.randint(1, 30), 2 ** len(pool) - 1)
    chosen: dict[frozenset[tuple[int, ...]], None] = {}
    while len(chosen) < N:
        chosen[frozenset(source.sample(pool, source.randint(1, len(pool))))] = None
    outputs = [
        [[source.randint(-3, 3) + Fraction(i, 7) for _ in range(d)] for i in range(source.randint(1, len(X)))]
        for X in chosen
    ]
    return il.Dataset([sorted(X) for X in chosen], outputs)


@pytest.mark.parametrize("block", range(3))
def test_three_hundred_data_sets_from_small_pools(block: int) -> None:
    for seed in range(100 * block, 100 * block + 100):
        check(from_a_small_pool(seed))


@pytest.mark.parametrize("width", [2, 3, 5, 8])
def test_other_widths(width: int) -> None:
    for data in (NASTY["all subsets"], NASTY["equal centroids"], uniform(2, 12, 5, 3, 3)):
        check(data, width)


def test_few_parameters_in_high_dimension() -> None:
    data = uniform(0, 100, 4, 3, 256)
    assert check(data).num_parameters("nonzero") <= 1.04 * data.d * data.M


@pytest.mark.parametrize(("N", "n", "m", "d"), [(10, 5, 3, 3), (30, 5, 4, 8), (50, 4, 1, 2), (50, 6, 3, 16)])
def test_at_most_a_quarter_of_the_blocks_of_the_four_phases(N: int, n: int, m: int, d: int) -> None:
    data = uniform(1, N, n, m, d)
    assert 4 * il.mean_interpolant(data).depth <= il.hardmax_interpolant(data).depth


def test_all_mean_labels_equal() -> None:
    """Subsets of a set symmetric about 0, chosen symmetric: every linear label has the same mean."""
    pairs = [[[k, 1], [-k, -1]] for k in range(1, 7)]
    inputs = [[x for i, pair in enumerate(pairs) if code >> i & 1 for x in pair] for code in range(1, 31)]
    data = il.Dataset(inputs, [[[code, 0]] for code in range(1, 31)])
    T = check(data)
    assert 1 <= T.phases["labels"] <= ceil((data.N - 1) / 4)


def test_float_passes_are_accurate() -> None:
    data = uniform(3, 20, 6, 3, 4)
    T = il.mean_interpolant(data)
    for X, Y in zip(data.inputs, data.outputs, strict=True):
        for temperature in (0, 1e-6, 1e6):
            assert il.hausdorff_distance(T(X, temperature), Y) < 1e-6


# ---------------------------------------------------------------- the steps


@given(data_sets())
@settings(max_examples=30)
def test_phases_do_what_the_proof_says(data: il.Dataset) -> None:
    parts = mean_phases(data)
    assert len({low for low, _ in parts.contexts}) == data.N
    for own, m in zip(parts.labels, data.m, strict=True):
        assert len(set(own)) == len(own) >= m
    for j, X in enumerate(data.inputs):
        states = parts.transformer.trace(X, field=il.EXACT)
        merged = states[2 * (sum(parts.transformer.phases.values()) - parts.transformer.phases["delivery"])].tokens
        reached = {x[0] for x in merged}
        assert reached == {il.fields.fraction(cluster.low) for cluster in parts.clusters[j]}
        assert all(set(x[1:]) <= {0} for x in merged)


numbers = st.fractions(-3, 3, max_denominator=4)


@given(st.sets(numbers, min_size=1, max_size=5), st.sets(numbers, min_size=1, max_size=5))
def test_a_knot_splits_any_two_sets(left: set[Fraction], right: set[Fraction]) -> None:
    if left == right:
        return
    one, other = sorted(map(rational, left)), sorted(map(rational, right))
    b = splitting_knot(one, other)

    def mean(values: list[object]) -> object:
        return sum((max(v - b, rational(0)) for v in values), rational(0)) / len(values)  # type: ignore[operator]

    assert mean(one) != mean(other)


@given(st.lists(st.frozensets(numbers, min_size=1, max_size=4), min_size=1, max_size=9, unique=True), st.integers(2, 5))
def test_relabelling_needs_fewer_knots_than_sequences(sets: list[frozenset[Fraction]], width: int) -> None:
    labels = [sorted(map(rational, own)) for own in sets]
    relabellings, new = tell_apart(labels, width)
    assert sum(map(len, relabellings)) <= len(sets) - 1
    assert all(len(knots) <= width for knots in relabellings)
    assert all(knot.turn > 0 for knots in relabellings for knot in knots)
    assert len({sum(own, rational(0)) / len(own) for own in new}) == len(sets)
    assert all(own == sorted(set(own)) for own in new)


# ---------------------------------------------------------------- the softmax variant


@pytest.mark.parametrize("name", NASTY)
@pytest.mark.parametrize("temperature", [Fraction(1, 1000), 1, 10**4])
def test_the_softmax_variant_is_certified_at_its_temperature(name: str, temperature: Fraction) -> None:
    data = NASTY[name]
    T = il.mean_interpolant(data, temperature=temperature)
    found = il.verify(T, data, temperature)
    assert found.status == "certified", found.explain()
    assert T.depth <= ceil((data.N - 1) / 4) + ceil(data.M / 2) + 2
    assert T.phases["labels"] == 0


def test_bad_arguments_are_named() -> None:
    data = NASTY["running example"]
    for width in (1, 0, True, 2.0, "4"):
        with pytest.raises(WidthError, match="width"):
            il.mean_interpolant(data, width=width)  # type: ignore[arg-type]
    for temperature in (0, -1, float("nan"), "all"):
        with pytest.raises(LayerError, match="temperature"):
            il.mean_interpolant(data, temperature=temperature)
