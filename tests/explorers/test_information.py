"""Two explorers of the framework: sets and verdicts are the library's, bad input is said and not raised."""

from __future__ import annotations

import pytest

from interp_lib.explorers import information as info
from interp_lib.explorers import verdict as vd
from interp_lib.infoflow.comparison import parse
from interp_lib.infoflow.cost_law import decoding_cost
from interp_lib.infoflow.information import Architecture
from interp_lib.infoflow.verdict import verdict


def modes(first: str, second: str = info.IDLE) -> dict[str, str]:
    return {f"l{l}h{h}": first if h == 1 else second for l in (1, 2, 3) for h in (1, 2)}


@pytest.mark.parametrize("T", [2, 6, 10])
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_sets(T: int, layers: int) -> None:
    everything = info.picture(T, layers, 1, 1, False, 0, **modes(info.AVERAGE)).numbers
    assert everything["output reaches"] == f"{T} of {T} tokens"
    assert everything["exponent of 1/ε"] == float(decoding_cost(T, 1, 2))
    nothing = info.picture(T, layers, 1, 1, False, 0, **modes(info.IDLE)).numbers
    assert nothing["output reaches"] == f"0 of {T} tokens"
    some = info.picture(T, layers, 1, 1, False, 3, **modes(info.RETRIEVE)).numbers
    assert some["output reaches"] != nothing["output reaches"]


def test_fixed_positions_are_refused_without_a_code() -> None:
    refused = info.picture(5, 1, 1, 1, False, 0, **modes(info.FIXED)).numbers
    assert "positional" in str(refused["refused"])
    allowed = info.picture(5, 1, 1, 1, True, 0, **modes(info.FIXED)).numbers
    assert "refused" not in allowed
    assert allowed["output reaches"] == "2 of 5 tokens"


@pytest.mark.parametrize("formula", [vd.START, "min[s,t](f(s,t))", "min[r,s,t](f(r,s,t))", "second[t](f(t))", "f(1,2)"])
@pytest.mark.parametrize("heads", [(1,), (1, 1), (3, 2), (2, 3, 1)])
def test_verdicts(formula: str, heads: tuple[int, ...]) -> None:
    counts = {f"h{l}": heads[l - 1] if l <= len(heads) else 1 for l in (1, 2, 3)}
    numbers = vd.picture(formula, 16, 1, 1, False, len(heads), **counts).numbers
    found = verdict(parse(formula), Architecture(16, heads))
    assert numbers["verdict"] == ("efficient" if found.efficient else f"not efficient: {found.binding}")
    assert numbers["exponent of 1/ε"] == float(found.exponent)


def test_a_formula_that_cannot_be_read_is_said() -> None:
    numbers = vd.picture("min[t](f(t)", 8, 1, 1, False, 1, h1=1, h2=1, h3=1).numbers
    assert "the end" in str(numbers["problem"])
