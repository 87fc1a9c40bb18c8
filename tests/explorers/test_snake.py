"""The explorer of decoding: what it shows is within ε, for every path and mesh, and drawn quickly."""

from __future__ import annotations

import time

import pytest

from interp_lib.explorers.snake import EXPLORER, NAMES, scheme


@pytest.mark.parametrize("path", NAMES)
@pytest.mark.parametrize("K", [1, 6, 24])
@pytest.mark.parametrize(("x", "y"), [(0, 0), (0.3, 0.62), (1, 1)])
def test_every_setting(path: str, K: int, x: float, y: float) -> None:
    EXPLORER.picture(path=path, K=K, x=x, y=y)
    start = time.perf_counter()
    shown = EXPLORER.picture(path=path, K=K, x=x, y=y)
    assert time.perf_counter() - start < 0.25
    assert shown.svg.startswith("<svg")
    assert float(shown.numbers["error"]) <= float(shown.numbers["ε"]) <= 1 / (2 * K)
    assert shown.numbers["ReLU units"] == scheme(path, K).decoder.units
    assert 0 <= float(shown.numbers["code, as a share of its range"]) <= 1
    if path != "interleaved digits":
        assert shown.numbers["ReLU units"] == 2 * K - 1
