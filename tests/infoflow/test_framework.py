"""The framework: sets only grow, costs are monotone, names do not matter, verdicts follow from rules."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interp_lib.infoflow import bounds
from interp_lib.infoflow import comparison as cp
from interp_lib.infoflow.cost_law import (
    Use,
    cheapest_plan,
    decoding_cost,
    plan_cost,
    retrieval_cost,
    symbolic_exponents,
)
from interp_lib.infoflow.depth_separation import smallest_product
from interp_lib.infoflow.information import Architecture, Global, MaxPosition, PlanError, Specific, follow, renamed
from interp_lib.infoflow.lens import LensError, measured_modes, read_head, weights_of
from interp_lib.infoflow.verdict import pairs_of_layers, tasks_of, verdict


@st.composite
def plans(draw: Any) -> tuple[Architecture, list[list[Any]]]:
    T = draw(st.integers(1, 6))
    heads = draw(st.lists(st.integers(0, 2), min_size=1, max_size=3))
    position = st.integers(1, T + 1)
    mode = st.one_of(
        st.dictionaries(position, position, max_size=T + 1).map(MaxPosition),
        st.frozensets(position, max_size=T + 1).map(Global),
        st.tuples(st.frozensets(position, min_size=1), st.frozensets(position)).map(lambda p: Specific(*p)),
    )
    return Architecture(T, tuple(heads), positional=True), [draw(st.lists(mode, max_size=h)) for h in heads]


@given(plans())
def test_sets_only_grow_and_start_with_themselves(case: tuple[Architecture, list[list[Any]]]) -> None:
    history = follow(*case)
    for t in range(1, case[0].class_position + 1):
        assert history.at(t, 0) == {t}
        for l in range(case[0].layers):
            assert history.at(t, l) <= history.at(t, l + 1)


@given(plans(), st.randoms(use_true_random=False))
def test_renaming_positions_changes_nothing(case: tuple[Architecture, list[list[Any]]], source: random.Random) -> None:
    architecture, plan = case
    everyone = list(range(1, architecture.class_position + 1))
    shuffled = source.sample(everyone, len(everyone))
    to = dict(zip(everyone, shuffled, strict=True))
    history, other = follow(architecture, plan), follow(architecture, renamed(plan, to))
    for t in everyone:
        assert other.at(to[t], architecture.layers) == {to[s] for s in history.at(t, architecture.layers)}


@given(plans())
def test_more_modes_reach_no_less(case: tuple[Architecture, list[list[Any]]]) -> None:
    architecture, plan = case
    fewer = [modes[:-1] for modes in plan]
    assert follow(architecture, fewer).output <= follow(architecture, plan).output


def test_impossible_plans_are_named() -> None:
    plain = Architecture(3, (1,))
    for plan, words in (
        ([[Global(), Global()]], "2 modes"),
        ([[Specific(frozenset({1}))]], "positional code"),
        ([[MaxPosition({5: 1})]], "position 5"),
        ([[], []], "2 layers"),
    ):
        with pytest.raises(PlanError, match=words):
            follow(plain, plan)
    with pytest.raises(PlanError, match="names no positions"):
        follow(Architecture(3, (1,), positional=True), [[Specific(frozenset())]])
    for arguments, words in (((0, (1,)), "T is 0"), ((3, ()), "heads"), ((3, (-1,)), "heads")):
        with pytest.raises(PlanError, match=words):
            Architecture(*arguments)
    with pytest.raises(PlanError, match="does not hold it"):
        plan_cost(follow(plain, [[]]), [Use(4, 1, frozenset({1}))], 1)


# ---------------------------------------------------------------- costs


@given(st.integers(1, 20), st.integers(1, 5), st.integers(1, 30))
def test_decoding_costs_are_those_of_the_theorem_and_monotone(tokens: int, d: int, E: int) -> None:
    assert decoding_cost(tokens, d, E) == max(Fraction(0), bounds.decoding_exponent(tokens * d, E))
    assert decoding_cost(tokens, d, E) >= decoding_cost(tokens, d, E + 1)
    assert decoding_cost(tokens, d, E) <= decoding_cost(tokens + 1, d, E)


@given(st.integers(3, 30), st.integers(1, 5), st.data())
def test_retrieval_costs_are_those_of_the_theorem(T: int, n: int, data: Any) -> None:
    k = data.draw(st.integers(2, T - 1))
    assert retrieval_cost(k, T, n) == max(Fraction(0), bounds.retrieval_exponent(k, T, n))
    assert retrieval_cost(1, T, n) == retrieval_cost(T, T, n) == 0
    assert retrieval_cost(k, T, n) >= retrieval_cost(k, T, n + 1)


@given(st.integers(2, 4), st.integers(1, 3))
def test_a_smaller_budget_never_costs_less(D: int, h: int) -> None:
    needed = list(range(1, D + 1))
    costs = [cheapest_plan(Architecture(6, (heads,)), needed, d=1, E=4)[1].exponent for heads in range(1, 4)]
    assert costs == sorted(costs, reverse=True)
    widths = [cheapest_plan(Architecture(6, (h,)), needed, d=1, E=E)[1].exponent for E in (1, 2, 4, 8)]
    assert widths == sorted(widths, reverse=True)


def test_enough_heads_need_no_decoding() -> None:
    for D in (1, 2, 3):
        plan, cost = cheapest_plan(Architecture(8, (D,)), list(range(1, D + 1)), d=1, E=D)
        assert cost.exponent == 0
        assert all(isinstance(mode, MaxPosition) for mode in plan[0])
    # With one head too few, everything is aggregated and decoded.
    assert cheapest_plan(Architecture(8, (2,)), [1, 2, 3], d=1, E=2)[1].exponent == decoding_cost(8, 1, 2)


def test_symbolic_exponents_are_those_of_the_law_and_of_the_theorems() -> None:
    import sympy

    found = symbolic_exponents()
    sizes = {"T": 17, "d": 2, "E": 3, "k": 5, "n": 2, "h": 2}
    at = {sympy.Symbol(name, positive=True): value for name, value in sizes.items()}
    numbers = {name: Fraction(str(expression.subs(at))) for name, expression in found.items()}
    assert numbers["decoding"] == decoding_cost(17, 2, 3) == bounds.decoding_exponent(34, 3)
    both = max(numbers["retrieval from above"], numbers["retrieval from below"])
    assert both == retrieval_cost(5, 17, 2) == bounds.retrieval_exponent(5, 17, 2)
    assert numbers["pairs in one layer"] == bounds.one_layer_exponent(17, 2, 2)
    one_layer = judge("min[s,t](f(s,t))", (2,), dimension=2)
    assert one_layer.exponent == bounds.one_layer_exponent(16, 2, 2)


# ---------------------------------------------------------------- trees


@pytest.mark.parametrize(
    ("text", "order", "dimension", "comparisons"),
    [
        ("max[t](f(t))", 1, 1, 10),
        ("min[s,t](f(s,t))", 2, 1, 100),
        ("max[s](min[t](f(s,t)))", 2, 1, 100),
        ("min[r,s,t](f(r,s,t))", 3, 1, 1000),
        ("max[s,t](f(s,t)) + max[s,t](g(s,t)) + max[t](h(t))", 2, 3, 210),
        ("max[s](f(s)) + max[t](f(t))", 1, 1, 10),
        ("F(f(1,2), sum[t](g(t)))", 0, 0, 0),
    ],
)
def test_measures(text: str, order: int, dimension: int, comparisons: int) -> None:
    target = cp.parse(text)
    assert (cp.order(target), cp.dimension(target), cp.number_of_comparisons(target, 10)) == (
        order,
        dimension,
        comparisons,
    )
    assert str(cp.parse(str(target))) == str(target)
    assert cp.tree(target)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "the end"),
        ("min[t](f(s))", "'\\)'|not bound|expected"),
        ("best[t](f(t))", "does not compare"),
        ("min[t,t](f(t))", "bound twice"),
        ("min[t](f(t)) f", "left over"),
        ("min[t](f(t)", "the end"),
        ("min[t](f(t)) $", "cannot read"),
        ("3", "expected a name"),
    ],
)
def test_bad_formulas_are_named(text: str, words: str) -> None:
    with pytest.raises(cp.FormulaError, match=words):
        cp.parse(text)


# ---------------------------------------------------------------- verdicts (a) to (e)


def judge(text: str, heads: tuple[int, ...], **more: Any) -> Any:
    return verdict(cp.parse(text), Architecture(16, heads, **more))


def test_a_retrievals_need_as_many_heads() -> None:
    for D in (2, 3, 4):
        text = "F(" + ", ".join(f"min[t](f{i}(t))" for i in range(D)) + ")"
        assert judge(text, (D,)).efficient
        short = judge(text, (D - 1,))
        assert (short.efficient, short.binding) == (False, "heads")
        assert short.exponent == decoding_cost(16, 1, D - 1)
        assert judge(text, (D - 1, 1)).efficient
        assert judge(text, (D,)).smallest == (D,)


def test_b_pairwise_minima_need_two_layers() -> None:
    one = judge("min[s,t](f(s,t))", (4,))
    assert (one.efficient, one.binding) == (False, "layers")
    assert judge("min[s,t](f(s,t))", (1,)).exponent == bounds.one_layer_exponent(16, 1, 1)
    assert judge("min[s,t](f(s,t))", (1, 1)).efficient
    assert one.smallest == (1, 1)


def test_c_sums_of_pairwise_maxima_need_heads_in_both_layers() -> None:
    for D in (2, 3, 5):
        text = " + ".join(f"max[s,t](f{i}(s,t))" for i in range(D))
        assert judge(text, (D, D)).efficient
        assert judge(text, (D - 1, D)).binding == "heads"
        assert judge(text, (D, D - 1)).binding == "heads"
        assert judge(text, (D, D)).smallest == (D, D)


def test_d_order_three_is_never_efficient_and_says_that_this_is_a_heuristic() -> None:
    for heads in ((2, 2), (4, 4), (8, 8, 8)):
        found = judge("min[r,s,t](f(r,s,t))", heads)
        assert (found.efficient, found.binding, found.smallest, found.heuristic) == (False, "order", None, True)
        assert "heuristic" in found.explain()


def test_e_fixed_positions_need_a_positional_code_and_one_head() -> None:
    assert judge("f(1,2,3)", (1,)).binding == "positional code"
    assert judge("f(1,2,3)", (1,), positional=True).efficient


def test_other_order_statistics_are_decoded() -> None:
    found = judge("second[t](f(t))", (2, 2))
    assert (found.efficient, found.binding, found.exponent) == (False, "decoding", retrieval_cost(2, 16, 1))
    assert judge("all[t](f(t))", (2,)).exponent == decoding_cost(16, 1, 2)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=4), st.integers(0, 5))
def test_more_heads_serve_no_fewer_pairs(heads: list[int], pairs: int) -> None:
    left = pairs_of_layers(heads, pairs)
    if left is not None:
        assert sum(left) == sum(heads) - 2 * pairs
        assert min(left) >= 0
        for l in range(len(heads)):
            assert pairs_of_layers([h + (l == k) for k, h in enumerate(heads)], pairs) is not None
    else:
        # The known criterion: at most half of all heads, and no layer so large that partners are missing.
        assert pairs > sum(heads) // 2 or pairs > sum(heads) - max(heads)


def test_counting_is_by_shape() -> None:
    assert tasks_of(cp.parse("max[s](f(s)) + max[t](f(t))")).single == 1
    assert tasks_of(cp.parse("sum[s](max[t](f(s,t)))")).pair == 1


# ---------------------------------------------------------------- the lens


def test_the_lens_finds_the_plan_of_the_two_layer_transformer() -> None:
    model = smallest_product(T=6, d=3, eps=Fraction(1, 1000))
    source = random.Random(1)
    inputs = []
    for _ in range(6):
        rows = [[source.uniform(-1, 1) for _ in range(3)] for _ in range(6)]
        inputs.append([[v / 2 for v in row] for row in rows])
    layers = [weights_of(model, X) for X in inputs]
    for at, X in enumerate(inputs):
        products = [[sum(a * b for a, b in zip(x, y, strict=True)) for y in X] for x in X]
        partners = {s + 1: min(range(6), key=products[s].__getitem__) + 1 for s in range(6)}
        best = min(range(6), key=lambda s: min(products[s])) + 1
        (first,) = measured_modes([layer[0] for layer in layers], at, queries=range(1, 7))
        (second,) = measured_modes([layer[1] for layer in layers], at, queries=[7])
        assert first == MaxPosition(partners)
        assert isinstance(second, MaxPosition)
        # Two tokens share the smallest product: either of them is right.
        assert second.source[7] in (best, partners[best])
        history = follow(Architecture(6, (1, 1)), [[first], [second]])
        assert {best, partners[best]} <= history.output


def test_the_lens_tells_the_modes_apart() -> None:
    uniform = [[[0.25] * 4] * 2] * 3
    fixed = [[[0.5, 0.5, 0.0, 0.0]] * 2] * 3
    moving = [[[1.0, 0.0, 0.0, 0.0]] * 2, [[0.0, 0.0, 1.0, 0.0]] * 2]
    wobbly = [[[0.7, 0.3, 0.0, 0.0]] * 2, [[0.1, 0.3, 0.6, 0.0]] * 2]
    kinds = [read_head(samples)[0].kind for samples in (uniform, fixed, moving, wobbly)]
    assert kinds == ["global", "specific", "max-position", "mixed"]
    assert read_head(fixed)[0].keys == (0, 1)


def test_bad_weights_are_named() -> None:
    good = [[0.5, 0.5]]
    for samples, words in (
        ([good], "at least two"),
        ([good, [[1.0]]], r"samples\[1\]"),
        ([good, [[0.5, 0.4]]], "sum 0.9"),
    ):
        with pytest.raises(LensError, match=words):
            read_head(samples)
