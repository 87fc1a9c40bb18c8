"""The collision explorer: what it shows is certified, and at the end of the way the states agree."""

from __future__ import annotations

import pytest

from interp_lib.explorers import collision as co
from interp_lib.infoflow.one_layer import RANDOM_KINDS


@pytest.mark.parametrize("target", co.TARGETS)
@pytest.mark.parametrize(("heads", "dimension"), [(1, 1), (2, 2), (2, 3)])
def test_at_the_collision_states_agree_and_targets_differ(target: str, heads: int, dimension: int) -> None:
    for kind in RANDOM_KINDS:
        numbers = co.picture(target, kind, heads, dimension, 1, 1.0).numbers
        if numbers["collision"] != "certified":
            assert "reason" in numbers
            continue
        assert numbers["states differ by"] < 1e-9
        assert abs(numbers["target, left"] - numbers["target, right"]) >= numbers["certified gap"] - 1e-9
        assert abs(numbers["answer, left"] - numbers["answer, right"]) < 1e-6
        assert numbers["proved again"] == "yes"
        assert numbers["any read-out errs by"] >= 0.99 * numbers["error forced"]


def test_on_the_way_states_differ() -> None:
    numbers = co.picture(co.PRODUCT, "tanh", 1, 1, 0, 0.5).numbers
    assert numbers["states differ by"] > 1e-3
    assert co.picture(co.PRODUCT, "tanh", 1, 1, 0, 0.0).numbers["states differ by"] == 0
