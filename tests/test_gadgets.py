"""Gadgets: every formula symbolically, and the units over Q on random knots, values and directions."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st

from interp_lib import gadgets as gd
from interp_lib.fields import fraction, rational

# ---------------------------------------------------------------- symbols

t = sp.Symbol("t", real=True)
t_gap = sp.Symbol("s", positive=True)


def relu(x: Any) -> Any:
    return sp.Max(0, x)


def on_piece(expression: Any, where: Any) -> Any:
    """``expression`` with ``t`` replaced, and every ``Max`` resolved from the signs that sympy knows."""
    replaced = expression.subs(t, where)

    def resolve(maximum: Any) -> Any:
        (inner,) = [a for a in maximum.args if a != 0]
        inner = sp.expand(inner)
        if inner.is_nonnegative:
            return inner
        assert inner.is_nonpositive, f"the sign of {inner} is not known"
        return sp.Integer(0)

    return sp.simplify(replaced.replace(lambda e: isinstance(e, sp.Max), resolve))


def test_the_hat_formula() -> None:
    c, r = sp.Symbol("c", real=True), sp.Symbol("r", positive=True)
    part = t_gap / (1 + t_gap)  # any number strictly between 0 and 1
    formula = (relu(t - c + r) - 2 * relu(t - c) + relu(t - c - r)) / r
    assert on_piece(formula, c - r - t_gap) == 0
    assert on_piece(formula, c + r + t_gap) == 0
    assert on_piece(formula, c) == 1
    assert sp.simplify(on_piece_between(formula, c - r, c, r) - (1 - (c - t) / r).subs(t, c - r + r * part)) == 0
    assert sp.simplify(on_piece_between(formula, c, c + r, r) - (1 - (t - c) / r).subs(t, c + r * part)) == 0


def on_piece_between(formula: Any, left: Any, right: Any, length: Any) -> Any:
    """The formula at ``left + length · s / (1 + s)``, a general point of the open interval."""
    assert sp.simplify(right - left - length) == 0
    part = t_gap / (1 + t_gap)
    # Multiplying by 1 + s > 0 makes every argument a polynomial whose signs sympy can read off.
    cleared = formula.subs(t, left + length * part)
    cleared = cleared.replace(
        lambda e: isinstance(e, sp.Max),
        lambda e: relu_of_cleared(next(a for a in e.args if a != 0)),
    )
    return sp.simplify(cleared)


def relu_of_cleared(inner: Any) -> Any:
    scaled = sp.expand(sp.simplify(inner * (1 + t_gap)))
    if scaled.is_nonnegative:
        return inner
    assert scaled.is_nonpositive, f"the sign of {scaled} is not known"
    return sp.Integer(0)


def test_the_plateau_formula() -> None:
    left, w, length = sp.Symbol("l", real=True), sp.Symbol("w", positive=True), sp.Symbol("L", positive=True)
    right = left + length
    part = t_gap / (1 + t_gap)
    formula = (relu(t - left + w) - relu(t - left) - relu(t - right) + relu(t - right - w)) / w
    assert on_piece(formula, left - w - t_gap) == 0
    assert on_piece(formula, right + w + t_gap) == 0
    assert on_piece(formula, left) == on_piece(formula, right) == 1
    assert on_piece_between(formula, left, right, length) == 1
    assert sp.simplify(on_piece_between(formula, left - w, left, w) - part) == 0
    assert sp.simplify(on_piece_between(formula, right, right + w, w) - (1 - part)) == 0


def test_the_triangular_formula_for_general_knots() -> None:
    gaps = sp.symbols("h1:4", positive=True)
    first = sp.Symbol("k0", real=True)
    knots = [first + sum(gaps[:i]) for i in range(4)]
    values = [sp.Integer(0), *sp.symbols("f1:4", real=True)]
    slopes = [(values[i + 1] - values[i]) / gaps[i] for i in range(3)]
    turns = [after - before for before, after in zip([0, *slopes], [*slopes, 0], strict=True)]
    formula = sum(turn * relu(t - knot) for turn, knot in zip(turns, knots, strict=True))
    for knot, value in zip(knots, values, strict=True):
        assert sp.simplify(on_piece(formula, knot) - value) == 0
    assert sp.simplify(on_piece(formula, knots[-1] + t_gap) - values[-1]) == 0
    assert on_piece(formula, first - t_gap) == 0
    for i in range(3):
        inside = on_piece_between(formula, knots[i], knots[i + 1], gaps[i])
        part = t_gap / (1 + t_gap)
        assert sp.simplify(inside - (1 - part) * values[i] - part * values[i + 1]) == 0


def test_the_collapsing_formula() -> None:
    left, w, length = sp.Symbol("l", real=True), sp.Symbol("w", positive=True), sp.Symbol("L", positive=True)
    y = sp.Symbol("y", real=True)
    knots = [left - w, left, left + length, left + length + w]
    # The displacement along the line: y - t on the plateau, so that t + displacement is constant there.
    values = [0, y - knots[1], y - knots[2], 0]
    slopes = [(values[i + 1] - values[i]) / (knots[i + 1] - knots[i]) for i in range(3)]
    turns = [after - before for before, after in zip([0, *slopes], [*slopes, 0], strict=True)]
    formula = t + sum(turn * relu(t - knot) for turn, knot in zip(turns, knots, strict=True))
    assert on_piece_between(formula, knots[1], knots[2], length) == y
    assert sp.simplify(on_piece(formula, knots[3] + t_gap) - knots[3] - t_gap) == 0


# ---------------------------------------------------------------- the units over Q

numbers = st.fractions(-20, 20, max_denominator=16)
widths = st.fractions(Fraction(1, 16), 8, max_denominator=16)
points = st.lists(numbers, min_size=2, max_size=2)
directions = points.filter(any)


def exact(values: Any) -> list[Any]:
    return [rational(v) for v in values]


def value(units: gd.Units, x: list[Fraction]) -> list[Fraction]:
    """``Σ w σ(<u, x> + b)`` over Fractions, without the library's forward pass."""
    total = [Fraction(0)] * len(x)
    for unit in units:
        height = fraction(unit.b) + sum((fraction(u) * v for u, v in zip(unit.u, x, strict=True)), Fraction(0))
        total = [s + fraction(w) * max(height, Fraction(0)) for s, w in zip(total, unit.w, strict=True)]
    return total


def at(direction: list[Fraction], where: Fraction) -> list[Fraction]:
    """A point with ``<direction, x> = where``."""
    square = sum(a * a for a in direction)
    return [where * a / square for a in direction]


def scaled(factor: Fraction, vector: list[Fraction]) -> list[Fraction]:
    return [factor * v for v in vector]


@given(directions, numbers, widths, points, numbers)
def test_a_hat_is_its_formula(
    a: list[Fraction], c: Fraction, r: Fraction, move: list[Fraction], where: Fraction
) -> None:
    units = gd.hat(exact(a), rational(c), rational(r), exact(move))
    assert len(units) == 3
    height = max(Fraction(0), 1 - abs(where - c) / r)
    assert value(units, at(a, where)) == scaled(height, move)
    assert value(units, at(a, c)) == move
    assert value(units, at(a, c + r)) == value(units, at(a, c - r)) == [0, 0]


@given(directions, numbers, widths, widths, points, numbers)
def test_a_plateau_is_its_formula(
    a: list[Fraction], left: Fraction, length: Fraction, w: Fraction, move: list[Fraction], where: Fraction
) -> None:
    right = left + length
    units = gd.plateau(exact(a), rational(left), rational(right), rational(w), exact(move))
    assert len(units) == 4
    outside = max(left - where, where - right, Fraction(0))
    assert value(units, at(a, where)) == scaled(max(Fraction(0), 1 - outside / w), move)


@given(directions, numbers, widths, points, st.fractions(-1, 1, max_denominator=64))
def test_a_flat_hat_is_one_near_its_centre_and_zero_outside(
    a: list[Fraction], c: Fraction, r: Fraction, move: list[Fraction], part: Fraction
) -> None:
    units = gd.flat_hat(exact(a), rational(c), rational(r), exact(move))
    assert len(units) == 4
    # The stated margins: constant for |t - c| ≤ 3r/16, zero from 13r/16 on.
    assert value(units, at(a, c + part * r * Fraction(3, 16))) == move
    for side in (-1, 1):
        assert value(units, at(a, c + side * r * (Fraction(13, 16) + abs(part)))) == [0, 0]
    knots = [fraction(k) for k in gd.flat_knots(rational(c), rational(r))]
    assert all((8 * k / r).denominator == 1 for k in knots)
    assert c - r < knots[0] < knots[1] < c < knots[2] < knots[3] < c + r


@st.composite
def graphs(draw: Any) -> tuple[list[Fraction], list[list[Fraction]]]:
    knots = sorted(draw(st.lists(numbers, min_size=1, max_size=6, unique=True)))
    values = draw(st.lists(points, min_size=len(knots) - 1, max_size=len(knots) - 1))
    return knots, [[Fraction(0)] * 2, *values]


@given(directions, graphs(), numbers)
def test_a_piecewise_linear_function_interpolates(a: list[Fraction], graph: Any, where: Fraction) -> None:
    knots, values = graph
    units = gd.piecewise_linear(exact(a), exact(knots), [exact(v) for v in values])
    assert len(units) == len(knots)
    for knot, wanted in zip(knots, values, strict=True):
        assert value(units, at(a, knot)) == wanted
    if where <= knots[0]:
        expected = values[0]
    elif where >= knots[-1]:
        expected = values[-1]
    else:
        i = max(k for k, knot in enumerate(knots) if knot <= where)
        part = (where - knots[i]) / (knots[i + 1] - knots[i])
        expected = [(1 - part) * p + part * q for p, q in zip(values[i], values[i + 1], strict=True)]
    assert value(units, at(a, where)) == expected


@given(numbers, widths, widths, widths, points, st.fractions(0, 1, max_denominator=32), numbers)
def test_collapse_to_makes_an_interval_of_the_line_one_point(
    start: Fraction, w: Fraction, length: Fraction, v: Fraction, y: list[Fraction], part: Fraction, far: Fraction
) -> None:
    knots = [start, start + w, start + w + length, start + w + length + v]
    units = gd.collapse_to(exact([1, 0]), exact(knots), exact(y))

    def moved(x: Fraction) -> list[Fraction]:
        return [a + b for a, b in zip([x, Fraction(0)], value(units, [x, Fraction(0)]), strict=True)]

    assert moved(knots[1] + part * length) == y
    assert moved(start - abs(far)) == [start - abs(far), 0]
    assert moved(knots[3] + abs(far)) == [knots[3] + abs(far), 0]


@st.composite
def alternating(draw: Any) -> tuple[list[Fraction], list[Fraction], list[list[Fraction]]]:
    """Knots and places in turn, a place at times equal to the next knot."""
    knots, places, where = [], [], draw(numbers)
    for _ in range(draw(st.integers(1, 6))):
        knots.append(where)
        places.append(where + draw(widths))
        where = places[-1] + draw(st.just(Fraction(0)) | widths)
    return knots, places, draw(st.lists(points, min_size=len(knots), max_size=len(knots)))


@given(directions, alternating(), widths)
def test_a_triangular_solve_prescribes_the_values(a: list[Fraction], problem: Any, step: Fraction) -> None:
    knots, places, values = problem
    units = gd.through_points(exact(a), exact(knots), exact(places), [exact(v) for v in values])
    assert len(units) == len(knots)
    assert [fraction(-unit.b) for unit in units] == knots
    for place, wanted in zip(places, values, strict=True):
        assert value(units, at(a, place)) == wanted
    assert value(units, at(a, knots[0] - step)) == value(units, at(a, knots[0])) == [0, 0]


def test_the_triangular_solve_in_symbols() -> None:
    gaps, steps = sp.symbols("g1:4", positive=True), sp.symbols("h1:4", nonnegative=True)
    values = sp.symbols("y1:4", real=True)
    knots, places, where = [], [], sp.Symbol("k0", real=True)
    for gap, step in zip(gaps, steps, strict=True):
        knots.append(where)
        places.append(where + gap)
        where = where + gap + step
    weights: list[Any] = []
    for knot, place, wanted in zip(knots, places, values, strict=True):
        known = sum(w * (place - k) for w, k in zip(weights, knots, strict=False))
        weights.append((wanted - known) / (place - knot))
    formula = sum(w * relu(t - k) for w, k in zip(weights, knots, strict=True))
    for place, wanted in zip(places, values, strict=True):
        assert sp.simplify(on_piece(formula, place) - wanted) == 0


@given(points, points)
def test_a_translation_moves_everything_alike(move: list[Fraction], x: list[Fraction]) -> None:
    assert value(gd.translation(exact(move)), x) == move


@given(directions, numbers, widths, points, points, st.sampled_from([0, 1]))
def test_a_layer_is_eta_times_the_token_plus_the_units(
    a: list[Fraction], c: Fraction, r: Fraction, move: list[Fraction], x: list[Fraction], eta: int
) -> None:
    units = gd.hat(exact(a), rational(c), rational(r), exact(move)) + gd.translation(exact(move))
    layer = gd.feed_forward(units, 2, eta)
    assert layer.width == 4
    heights = [
        max(Fraction(0), b + sum((u * v for u, v in zip(row, x, strict=True)), Fraction(0)))
        for row, b in zip(layer.U, layer.b, strict=True)
    ]
    result = [
        layer.eta * v + sum((w * h for w, h in zip(row, heights, strict=True)), Fraction(0))
        for v, row in zip(x, layer.W, strict=True)
    ]
    assert result == [eta * v + s for v, s in zip(x, value(units, x), strict=True)]


# ---------------------------------------------------------------- refused

ONE = rational(1)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: gd.hat([ONE], ONE, 0 * ONE, [ONE]), "half_width must be positive, got 0"),
        (lambda: gd.hat([ONE], ONE, -ONE, [ONE]), "half_width must be positive, got -1"),
        (lambda: gd.flat_hat([ONE], ONE, 0 * ONE, [ONE]), "half_width must be positive, got 0"),
        (lambda: gd.plateau([ONE], ONE, 2 * ONE, 0 * ONE, [ONE]), "ramp must be positive, got 0"),
        (
            lambda: gd.plateau([ONE], 2 * ONE, ONE, ONE / 2, [ONE]),
            "knots must increase strictly, got ['3/2', '2', '1', '3/2']",
        ),
        (
            lambda: gd.plateau([ONE], ONE, ONE, ONE, [ONE]),
            "knots must increase strictly, got ['0', '1', '1', '2']",
        ),
        (
            lambda: gd.piecewise_linear([ONE], [ONE, 2 * ONE], [[0 * ONE]]),
            "values has 1 points but knots has 2; one value per knot is required",
        ),
        (
            lambda: gd.through_points([ONE], [ONE], [2 * ONE], []),
            "knots, places and values have 1, 1 and 0 entries; one place and one value per knot are required",
        ),
        (
            lambda: gd.through_points([ONE], [ONE], [ONE], [[ONE]]),
            "knots and places must alternate: each place right of its own knot and not right of the next one; "
            "got knots ['1'] and places ['1']",
        ),
        (
            lambda: gd.through_points([ONE], [ONE, 2 * ONE], [3 * ONE, 4 * ONE], [[ONE]] * 2),
            "knots and places must alternate: each place right of its own knot and not right of the next one; "
            "got knots ['1', '2'] and places ['3', '4']",
        ),
        (
            lambda: gd.piecewise_linear([ONE], [ONE], [[ONE]]),
            "values[0] must be zero: units vanish to the left of the first knot",
        ),
    ],
)
def test_gadgets_that_are_not_defined(build: Any, message: str) -> None:
    with pytest.raises(gd.GadgetError) as caught:
        build()
    assert str(caught.value) == message
