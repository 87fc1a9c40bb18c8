"""The calculator builds and counts: its numbers are those of the transformers and stay within the budgets."""

from __future__ import annotations

import pytest

from interp_lib import costs
from interp_lib.explorers import costs as calculator


@pytest.mark.parametrize(("N", "n", "m", "d"), [(1, 1, 1, 2), (4, 6, 2, 4), (3, 2, 4, 7), (6, 12, 4, 24)])
@pytest.mark.parametrize("shared", ["no", "yes"])
def test_numbers(N: int, n: int, m: int, d: int, shared: str) -> None:
    tokens, sizes = calculator.built(N, n, m, d, shared, 0)
    M = N * min(m, n)
    for kind in calculator.KINDS:
        shown = calculator.picture(kind, shared, N, n, m, d, 0).numbers
        assert shown["M"] == M
        assert shown["different tokens"] == tokens
        for name, label in calculator.SHORT.items():
            if name not in sizes:
                assert shared == "yes"
                assert shown[label] == "impossible"
                continue
            allowed = costs.budget(name, N=N, M=M, d=d, omega=tokens)
            most = allowed.blocks if kind == "blocks" else getattr(allowed, kind.split()[0])
            assert shown[label] == sizes[name][kind] <= most
        if kind != "blocks":
            assert shown["lower bound dM"] == d * M
            assert shown["Theorem S / dM"] >= 1


def test_without_sharing_everything_can_be_built() -> None:
    assert set(calculator.built(4, 6, 2, 4, "no", 0)[1]) == set(costs.NAMES)
