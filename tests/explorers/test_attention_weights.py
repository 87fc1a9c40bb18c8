"""Attention weights: rows are distributions, hardmax is the limit, the leak stays below its bound."""

from __future__ import annotations

import math

import pytest

from interp_lib.explorers import attention_weights as aw


@pytest.mark.parametrize(("source", "n", "seed"), [(aw.EXAMPLE, 4, 0), (aw.RANDOM, 2, 1), (aw.RANDOM, 6, 7)])
@pytest.mark.parametrize("sequence", [1, 2, 3])
def test_weights(source: str, n: int, seed: int, sequence: int) -> None:
    scores, leaders = aw.scores_of_the_collapse(source, n, seed, sequence)
    hard = aw.hardmax_weights(scores)
    # Leaders stay, everyone else goes to the first of them.
    for i, row in enumerate(hard):
        assert row == [float(l == (i if i < leaders else 0)) for l in range(len(scores))]
    differences = []
    for tau in (1e6, 1e4, 1e2, 1.0):
        soft = aw.softmax_weights(scores, tau)
        assert all(math.isclose(sum(row), 1) for row in soft)
        differences.append(max(abs(a - b) for s, h in zip(soft, hard, strict=True) for a, b in zip(s, h, strict=True)))
        numbers = aw.picture(source, n, seed, sequence, tau).numbers
        assert numbers["largest leak"] <= numbers["bound (n − 1) e^(−gap/τ)"] + 1e-12
        assert numbers["largest difference"] == differences[-1]
    assert differences == sorted(differences, reverse=True)
    assert differences[-1] < 1e-9
