"""The temperature explorer: floats agree with the library's pass, numbers with its certificates."""

from __future__ import annotations

from fractions import Fraction
from xml.etree import ElementTree

import numpy as np
import pytest

import interp_lib as il
from interp_lib.examples import random_dataset, running_example
from interp_lib.explorers import softmax as sm
from interp_lib.explorers.data import RANDOM

CASES = [(1, 1, 2, 0), (2, 3, 2, 5), (4, 4, 8, 3)]


def arguments(N: int, n: int, d: int, seed: int, tau: float, step: int = 5, bracket: bool = False) -> dict[str, object]:
    more = {f"m{j}": 2 for j in range(1, sm.MOST_SEQUENCES + 1)}
    return {
        "source": RANDOM,
        "N": N,
        "n": n,
        "d": d,
        "seed": seed,
        "tau": tau,
        "step": step,
        "bracket": bracket,
        **more,
    }


@pytest.mark.parametrize(("N", "n", "d", "seed"), CASES)
@pytest.mark.parametrize("tau", [1e-6, 0.1, 100.0])
def test_the_plain_float_pass_is_the_librarys(N: int, n: int, d: int, seed: int, tau: float) -> None:
    data = random_dataset(N, n, [2] * N, d, seed, largest=1)
    T = il.softmax_interpolant(data)
    for X in data.inputs:
        states = sm.float_trace(sm.float_blocks(T), [[float(v) for v in x] for x in X], tau)
        expected = [s.tokens for s in T.trace(X, temperature=tau) if s.layer != "feed_forward"]
        assert len(states) == len(expected)
        for mine, theirs in zip(states, expected, strict=True):
            assert np.allclose(mine, theirs, rtol=1e-9, atol=1e-6)


@pytest.mark.parametrize(("N", "n", "d", "seed"), CASES)
def test_numbers_are_those_of_the_library(N: int, n: int, d: int, seed: int) -> None:
    data = random_dataset(N, n, [2] * N, d, seed, largest=1)
    T = il.softmax_interpolant(data)
    for tau in (1e-6, 1.0, 100.0):
        numbers = sm.picture(**arguments(N, n, d, seed, tau)).numbers  # type: ignore[arg-type]
        assert numbers["certificate"] == il.verify(T, data, Fraction(tau)).status
        assert numbers["critical temperature at least"] == float(T.critical_temperature or 0)
        assert numbers["blocks L"] == T.depth <= numbers["at most"]
        if tau <= float(T.critical_temperature or 0):
            assert numbers["certificate"] == "certified"
            assert numbers["clusters inside"] == f"{data.M} of {data.M}"


def test_the_bracket_is_shown_when_asked_for() -> None:
    shown = sm.picture(**arguments(2, 3, 2, 5, 1.0, bracket=True)).numbers  # type: ignore[arg-type]
    found = il.measured_critical_temperature(*_model(2, 3, 2, 5))
    assert shown["certified at"] == float(found.below)
    assert shown["refuted at"] == (float(found.above) if found.above else "never")


def _model(N: int, n: int, d: int, seed: int) -> tuple[il.Transformer, il.Dataset]:
    data = random_dataset(N, n, [2] * N, d, seed, largest=1)
    return il.softmax_interpolant(data), data


@pytest.mark.parametrize("step", range(12))
def test_every_step_is_a_picture_with_words(step: int) -> None:
    shown = sm.EXPLORER.picture(step=step, tau=1.5)
    root = ElementTree.fromstring(shown.svg)
    assert f"after block {step} of 11" in (root.findtext("{http://www.w3.org/2000/svg}desc") or "")


def test_a_cluster_out_of_its_interval_is_seen() -> None:
    study = sm.Study(running_example())
    cold, hot = (sm.radii(study, study.clouds(tau)) for tau in (1e-3, 1e3))
    assert all(value < 1 for _, value in cold)
    assert any(value >= 1 for _, value in hot)
    assert study.worst(1e-3) < 1e-9 < 1 < study.worst(1e3)
