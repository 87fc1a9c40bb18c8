"""The clustering explorer: its steps are the definition, its lemmas hold on random tokens, its picture is complete."""

from __future__ import annotations

import math
import time
from fractions import Fraction
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from interp_lib.explorers import clustering as cl
from interp_lib.layers import ScaledLowRank

quarters = st.integers(-16, 16).map(lambda k: Fraction(k, 4))
token_lists = st.lists(st.tuples(quarters, quarters), min_size=1, max_size=6, unique=True)
angles = st.integers(0, 72).map(lambda k: 5.0 * k)
matrices = st.builds(cl.score_matrix, st.sampled_from(cl.MATRICES), angles, st.sampled_from([-2.0, -0.5, 0.0, 1.0]))


def inner(x: Any, y: Any) -> Fraction:
    return sum((a * b for a, b in zip(x, y, strict=True)), Fraction(0))


def mean(points: list[Any]) -> tuple[Fraction, ...]:
    return tuple(sum(column, Fraction(0)) / len(points) for column in zip(*points, strict=True))


@given(matrices, token_lists)
def test_a_hardmax_step_is_the_mean_of_all_maximisers(A: ScaledLowRank, tokens: list[Any]) -> None:
    for x, goal in zip(tokens, cl.hardmax_step(A, tokens), strict=True):
        looking = [inner(row, x) for row in A.dense()]
        best = max(inner(looking, y) for y in tokens)
        assert goal == mean([y for y in tokens if inner(looking, y) == best])


@given(angles, token_lists)
def test_lemma_4_1_three_destinations(angle: float, tokens: list[Any]) -> None:
    v = cl.direction(angle)
    labels = [inner(v, x) for x in tokens]
    highest = mean([x for x, t in zip(tokens, labels, strict=True) if t == max(labels)])
    lowest = mean([x for x, t in zip(tokens, labels, strict=True) if t == min(labels)])
    goals = cl.hardmax_step(cl.score_matrix(cl.RANK_ONE, angle, 0), tokens)
    for t, goal in zip(labels, goals, strict=True):
        assert goal == (highest if t > 0 else lowest if t < 0 else mean(tokens))


@given(st.lists(st.tuples(quarters, quarters), min_size=0, max_size=5), st.integers(1, 16))
def test_lemma_4_2_all_collapse_onto_the_corner(others: list[Any], size: int) -> None:
    corner = (Fraction(size, 4), Fraction(size, 4))
    tokens = [corner, *((abs(x), abs(y)) for x, y in others)]
    assume(all(0 < c <= corner[0] for x in tokens for c in x))
    tokens = list(dict.fromkeys(tokens))
    assert set(cl.hardmax_step(ScaledLowRank.identity(2), tokens)) == {corner}


@given(st.lists(st.fractions(-5, 5, max_denominator=20), min_size=1, max_size=6, unique=True), st.integers(1, 4))
def test_lemma_4_3_nothing_moves_on_a_sphere(slopes: list[Fraction], radius: int) -> None:
    # The rational points of a circle: ((1 - s²)/(1 + s²), 2s/(1 + s²)).
    tokens = [(radius * (1 - s * s) / (1 + s * s), radius * 2 * s / (1 + s * s)) for s in slopes]
    assert cl.hardmax_step(ScaledLowRank.identity(2), tokens) == tokens


@given(matrices, token_lists)
def test_the_coldest_softmax_is_hardmax_and_the_hottest_the_mean(A: ScaledLowRank, tokens: list[Any]) -> None:
    # Different scores are multiples of 2⁻¹⁶ apart at least, which e^(-10) per unit of 2⁻²⁰ tells apart.
    for soft, hard in zip(cl.softmax_step(A, tokens, 1e-7), cl.hardmax_step(A, tokens), strict=True):
        assert soft == pytest.approx(tuple(map(float, hard)), abs=1e-12)
    for soft in cl.softmax_step(A, tokens, 1e12):
        assert soft == pytest.approx(tuple(map(float, mean(tokens))), abs=1e-9)


@pytest.mark.parametrize("angle", [0, 90, 180, 270, 360])
def test_right_angles_are_exact(angle: float) -> None:
    assert sorted(map(abs, cl.direction(angle))) == [0, 1]


@given(st.sampled_from(cl.MATRICES), angles, st.sampled_from(["hardmax", "softmax"]), st.integers(1, 6))
def test_the_picture_is_well_formed_and_shows_every_token(matrix: str, angle: float, attention: str, n: int) -> None:
    shown = cl.EXPLORER.picture(matrix=matrix, angle=angle, attention=attention, n=n)
    tree = ElementTree.fromstring(shown.svg)
    handles = [e for e in tree.iter() if "explorer-handle" in e.get("class", "")]
    assert [h.get("data-x") for h in handles] == [f"x{i}" for i in range(1, n + 1)]
    assert shown.numbers["tokens"] == n
    assert 1 <= shown.numbers["clusters under hardmax"] <= n  # type: ignore[operator]
    assert ("farthest from hardmax" in shown.numbers) == (attention == "softmax")
    assert all(math.isfinite(v) for v in shown.numbers.values() if isinstance(v, float))


def test_numbers_follow_the_controls() -> None:
    first = cl.EXPLORER.picture()
    assert first.numbers["clusters under hardmax"] == 2
    assert cl.EXPLORER.picture(x1=-4, y1=-4).svg != first.svg
    assert cl.EXPLORER.picture(attention="softmax", tau=3).numbers["farthest from hardmax"] > 1  # type: ignore[operator]
    assert cl.EXPLORER.picture(attention="softmax", tau=-3).numbers["farthest from hardmax"] < 1e-9  # type: ignore[operator]


def test_tokens_on_top_of_each_other_are_no_problem() -> None:
    assert cl.EXPLORER.picture(x1=0, y1=0, x2=0, y2=0, n=2, matrix="I").numbers["tokens"] == 1


def test_it_answers_fast() -> None:
    cl.EXPLORER.picture(n=6)
    began = time.perf_counter()
    cl.EXPLORER.picture(n=6, attention="softmax")
    assert time.perf_counter() - began < 0.1
