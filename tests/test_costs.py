"""Budgets bound what is built, symbols agree with numbers, and the lower bound is below everything."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

import interp_lib as il
from interp_lib import costs
from interp_lib.interpolation.resnet import InfeasibleError
from interp_lib.layers import Block, FeedForward, ScaledLowRank, SelfAttention
from tests.datasets import nasty, uniform

BUILT: dict[str, Callable[[il.Dataset], il.Transformer]] = {
    "hardmax": il.hardmax_interpolant,
    "hardmax, as stated": lambda data: il.hardmax_interpolant(data, pad=True),
    "softmax": il.softmax_interpolant,
    "softmax, as stated": lambda data: il.softmax_interpolant(data, pad=True),
    "mean": il.mean_interpolant,
    "resnet, by tokens": lambda data: il.resnet_interpolant(data, scheme="tokens"),
    "resnet, by labels": il.resnet_interpolant,
}
DATA = {**nasty(), "uniform": uniform(3, 5, 4, 2, 7)}
WITHOUT_A_MAP = {
    "all tokens are targets",
    "nested",
    "all subsets",
    "on a circle",
    "tiny",
    "far from zero",
    "close together",
    "running example",
}
"""Sequences that share tokens while their targets do not allow one map of tokens."""


@pytest.mark.parametrize("name", costs.NAMES)
@pytest.mark.parametrize("data", DATA)
def test_what_is_built_stays_within_the_budget(name: str, data: str) -> None:
    if name.startswith("resnet") and data in WITHOUT_A_MAP:
        with pytest.raises(InfeasibleError):
            BUILT[name](DATA[data])
        return
    T = BUILT[name](DATA[data])
    sizes = DATA[data]
    omega = len({x for X in sizes.inputs for x in X})
    allowed = costs.budget(name, N=sizes.N, M=sizes.M, d=sizes.d, omega=omega)
    measured = costs.measure(T)
    assert T.depth <= allowed.blocks
    for phase, blocks in allowed.phases.items():
        if phase != "all":
            assert measured.blocks[phase] <= blocks
    for count in costs.COUNTS:
        assert measured.total(count) == T.num_parameters(count) <= getattr(allowed, count), count
    if name.endswith("stated"):
        assert T.depth == allowed.blocks


sizes = st.tuples(st.integers(1, 60), st.integers(0, 200), st.integers(2, 80), st.integers(1, 300))


@pytest.mark.parametrize("name", costs.NAMES)
@given(sizes)
def test_symbols_agree_with_numbers(name: str, values: tuple[int, int, int, int]) -> None:
    N, extra, d, omega = values
    M = N + extra
    numbers, symbols = costs.budget(name, N=N, M=M, d=d, omega=omega), costs.symbolic(name)
    at = {
        sympy.Symbol(s, positive=True, integer=True): v
        for s, v in zip(("N", "M", "d", "Omega"), (N, M, d, omega), strict=True)
    }
    assert numbers.blocks == symbols.blocks.subs(at)
    for count in costs.COUNTS:
        assert getattr(numbers, count) == getattr(symbols, count).subs(at)
    if not name.startswith("resnet"):
        assert costs.parameter_lower_bound(M, d) <= numbers.nonzero <= numbers.structured
        assert costs.block_lower_bound(M, d) <= numbers.blocks


def test_the_stated_bound_of_the_sharper_theorem() -> None:
    N, M, d = sympy.symbols("N M d", positive=True, integer=True)
    surplus = sympy.expand(d * M + 4 * M + 8 * N + 2 * d + 40 - costs.symbolic("mean").nonzero)
    # A ceiling of x/4 is at most (x + 3)/4; what is then left is a sum of non-negative terms.
    surplus = surplus.replace(sympy.ceiling, lambda x: x + sympy.Rational(3, 4))
    assert all(c >= 0 for c in sympy.Poly(sympy.expand(surplus), N, M, d).coeffs())


def test_ratios() -> None:
    M, N = sympy.symbols("M N", positive=True, integer=True)
    assert sympy.limit(costs.ratio_to_lower_bound("mean"), M, sympy.oo) == 1
    assert costs.ratio_to_lower_bound("hardmax", "structured").equals(16 + 12 * (N - 1) / M)
    with pytest.raises(costs.CostError, match="dense"):
        costs.ratio_to_lower_bound("mean", "dense")


@given(st.integers(2, 6), st.integers(0, 4), st.integers(0, 2), st.integers(0, 2))
def test_block_parameters_are_those_of_a_block(d: int, width: int, rank_A: int, rank_V: int) -> None:
    ff = FeedForward(1, [[1] * d] * width, [1] * width, [[1] * width] * d)
    A, V = (ScaledLowRank(1, [[1] * r] * d, [[1] * r] * d) for r in (rank_A, rank_V))
    block = Block(ff, SelfAttention(1, A, V))
    assert block.num_parameters("structured") == costs.block_parameters(d, width, rank_A, rank_V)
    assert block.num_parameters("dense") == costs.dense_block_parameters(d, width)


def test_work_counts_the_input_length_where_it_enters() -> None:
    data = uniform(1, 4, 5, 2, 3)
    hard, mean = il.hardmax_interpolant(data), il.mean_interpolant(data)
    for T in (hard, mean):
        works = [costs.evaluation_work(T, n) for n in (10, 20, 40)]
        assert works[1].feed_forward == 2 * works[0].feed_forward
    grow = [costs.evaluation_work(hard, n).attention for n in (1000, 2000)]
    assert 3.5 < grow[1] / grow[0] < 4
    grow = [costs.evaluation_work(mean, n).attention for n in (1000, 2000)]
    assert grow[1] == 2 * grow[0]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"name": "magic", "N": 1, "M": 1, "d": 2}, "magic"),
        ({"name": "mean", "N": 0, "M": 1, "d": 2}, "N is 0"),
        ({"name": "mean", "N": 3, "M": 2, "d": 2}, "M is 2"),
        ({"name": "mean", "N": 3, "M": 3, "d": 1}, "d is 1"),
        ({"name": "mean", "N": True, "M": 3, "d": 2}, "N is True"),
        ({"name": "resnet, by labels", "N": 1, "M": 1, "d": 2}, "omega"),
    ],
)
def test_impossible_sizes_are_refused(arguments: dict[str, object], words: str) -> None:
    with pytest.raises(costs.CostError, match=words):
        costs.budget(**arguments)  # type: ignore[arg-type]
