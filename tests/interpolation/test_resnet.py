"""Without attention: the decision is right, the schemes interpolate and keep their budgets, refusals name the obstruction."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import ceil
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import interp_lib as il
from interp_lib.examples import running_example
from interp_lib.interpolation.line import WidthError
from interp_lib.interpolation.resnet import InfeasibleError, SchemeError, token_map
from tests.datasets import brute, nasty, uniform


def distinct_tokens(data: il.Dataset) -> list[tuple[Fraction, ...]]:
    return list(dict.fromkeys(x for X in data.inputs for x in X))


def check(data: il.Dataset) -> None:
    f = token_map(data)
    for X, Y in zip(data.inputs, data.outputs, strict=True):
        assert {f[x] for x in X} == set(Y)
    omega = len(f)
    by_tokens = il.resnet_interpolant(data, scheme="tokens")
    assert by_tokens.depth == omega
    assert by_tokens.width <= 4
    transformers = [by_tokens]
    for width in (1, 4):
        T = il.resnet_interpolant(data, width=width)
        assert T.width <= width
        assert T.depth <= ceil(omega / width) + ceil(data.M / width) + 2
        transformers.append(T)
    for T in transformers:
        assert il.verify(T, data, "all").status == "certified"
        assert all(block.attention.is_identity for block in T.blocks)


@st.composite
def tiny(draw: Any) -> il.Dataset:
    """At most five tokens and three targets, few sequences: small enough to try all maps."""
    pool = [(Fraction(a), Fraction(b)) for a, b in ((0, 0), (1, 0), (0, 1), (2, 3), (-1, 1))]
    goals = [(Fraction(5), Fraction(k)) for k in range(3)]
    subset = st.frozensets(st.sampled_from(pool), min_size=1, max_size=4)
    inputs = draw(st.lists(subset, min_size=1, max_size=5, unique=True))
    outputs = [draw(st.sets(st.sampled_from(goals), min_size=1, max_size=min(3, len(x)))) for x in inputs]
    return il.Dataset([sorted(x) for x in inputs], [sorted(y) for y in outputs])


@given(tiny())
@settings(max_examples=150)
def test_the_decision_is_that_of_trying_all_maps(data: il.Dataset) -> None:
    tokens = distinct_tokens(data)
    targets = list(dict.fromkeys(y for Y in data.outputs for y in Y))
    possible = any(
        all({f[x] for x in X} == set(Y) for X, Y in zip(data.inputs, data.outputs, strict=True))
        for f in (dict(zip(tokens, choice, strict=True)) for choice in product(targets, repeat=len(tokens)))
    )
    if possible:
        check(data)
    else:
        with pytest.raises(InfeasibleError):
            token_map(data)


def test_data_without_shared_tokens() -> None:
    for data in (
        uniform(0, 6, 5, 2, 3),
        uniform(1, 1, 1, 1, 2),
        uniform(2, 3, 7, 7, 5, scale=1e12),
        nasty()["singletons"],
    ):
        check(data)


def test_targets_among_the_tokens() -> None:
    data = il.Dataset([[[0, 0], [1, 1]], [[2, 2], [3, 3]]], [[[2, 2], [3, 3]], [[1, 1], [0, 0]]])
    check(data)
    T = il.resnet_interpolant(data, scheme="tokens")
    for X, Y in zip(data.inputs, data.outputs, strict=True):
        assert brute(T, X) == set(Y)


def test_obstructions_are_named() -> None:
    with pytest.raises(InfeasibleError, match=r"token \(0, 2\) lies in inputs\[0\], inputs\[1\]"):
        il.resnet_interpolant(running_example())
    unreachable = il.Dataset([[[0, 0], [1, 0]], [[0, 0], [1, 0], [2, 0]]], [[[5, 5], [6, 6]], [[6, 6]]])
    with pytest.raises(InfeasibleError, match=r"target \(5, 5\) of outputs\[0\] cannot be reached"):
        il.resnet_interpolant(unreachable)


def test_a_complete_search_where_no_single_reason_exists() -> None:
    """Three tokens, each pair must take both of two values: a triangle has no 2-colouring."""
    e = [[0, 0], [1, 0], [0, 1]]
    both = [[5, 5], [6, 6]]
    triangle = il.Dataset([[e[0], e[1]], [e[1], e[2]], [e[0], e[2]]], [both] * 3)
    with pytest.raises(InfeasibleError, match="complete search"):
        il.resnet_interpolant(triangle)


def test_more_demands_than_python_has_stack() -> None:
    """Every target of data without shared tokens is a branch of the search."""
    inputs = [[[j, i] for i in range(5)] for j in range(600)]
    outputs = [[[-j, i] for i in range(3)] for j in range(600)]
    data = il.Dataset(inputs, outputs)
    f = token_map(data)
    assert all({f[x] for x in X} == set(Y) for X, Y in zip(data.inputs, data.outputs, strict=True))


def test_bad_arguments_are_named() -> None:
    data = uniform(0, 2, 2, 1, 2)
    with pytest.raises(SchemeError, match="'hats'"):
        il.resnet_interpolant(data, scheme="hats")  # type: ignore[arg-type]
    with pytest.raises(WidthError, match="width is 3"):
        il.resnet_interpolant(data, scheme="tokens", width=3)
    with pytest.raises(WidthError, match="width is 0"):
        il.resnet_interpolant(data, width=0)


def test_the_label_scheme_has_no_factor_d() -> None:
    data = uniform(5, 10, 20, 2, 100)
    labels = il.resnet_interpolant(data).num_parameters("nonzero")
    tokens = il.resnet_interpolant(data, scheme="tokens").num_parameters("nonzero")
    assert labels <= data.d * data.M + 4 * (200 + data.M) + 2 * data.d + 20
    assert tokens >= 5 * labels
