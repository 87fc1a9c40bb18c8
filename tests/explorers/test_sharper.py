"""The Theorem S explorer: numbers are the library's, stages show what the proof says."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

import interp_lib as il
from interp_lib.examples import random_dataset
from interp_lib.explorers import sharper as sh

TARGETS = {f"m{j}": 1 + j % 3 for j in range(1, sh.MOST_SEQUENCES + 1)}
CASES = [(1, 1, 2, 0, 4), (2, 2, 2, 3, 2), (4, 5, 2, 0, 4), (5, 6, 16, 1, 3)]


@pytest.mark.parametrize(("N", "n", "d", "seed", "width"), CASES)
@pytest.mark.parametrize("stage", sh.STAGES)
def test_numbers_are_those_of_the_library(stage: str, N: int, n: int, d: int, seed: int, width: int) -> None:
    shown = sh.picture(stage, 1, sh.RANDOM, N, n, d, seed, width, **TARGETS)
    data = random_dataset(N, n, [TARGETS[f"m{j}"] for j in range(1, N + 1)], d, seed)
    T = il.mean_interpolant(data, width=width)
    assert shown.numbers["blocks L"] == T.depth <= shown.numbers["at most"]
    assert shown.numbers["non-zero parameters"] == T.num_parameters("nonzero") >= shown.numbers["lower bound dM"]
    assert shown.numbers["certificate"] == "certified at every temperature"
    assert shown.limits == {"step": (0, T.phases["delivery"])}
    root = ElementTree.fromstring(shown.svg)
    assert sh.WORDS[stage] in (root.findtext("{http://www.w3.org/2000/svg}desc") or "")


def test_leaders_are_the_positive_ones() -> None:
    study = sh.Study(random_dataset(5, 6, [1, 2, 3, 1, 4], 3, 2))
    shifted = study.clouds(study.block_of(sh.THRESHOLDS))
    constant = float(il.fields.fraction(study.parts.constant))
    for cloud, m in zip(shifted, study.data.m, strict=True):
        assert sum(x[0] + constant > 0 for x in cloud) == m - 1
    merged = study.clouds(study.block_of(sh.LINE))
    assert [len(set(cloud)) for cloud in merged] == list(study.data.m)
    assert len({x for cloud in merged for x in cloud}) == study.data.M
