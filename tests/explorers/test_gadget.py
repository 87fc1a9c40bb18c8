"""The gadget explorer: the curve it draws is the gadget, and its units add up."""

from __future__ import annotations

import time
from fractions import Fraction
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interp_lib.explorers import gadget as gx
from interp_lib.fields import fraction

quarters = st.integers(-16, 16).map(lambda k: k / 4)
positive = st.integers(1, 12).map(lambda k: k / 4)
shares = st.integers(1, 7).map(lambda k: k / 8)
four_points = st.lists(st.tuples(quarters, quarters), min_size=4, max_size=4)


@given(quarters, positive, shares, quarters)
@pytest.mark.parametrize("kind", [gx.HAT, gx.FLAT_HAT, gx.PLATEAU])
def test_shaped_gadgets_take_their_value_at_the_centre_and_vanish_outside(
    kind: str, c: float, r: float, top: float, h: float
) -> None:
    units = gx.units_of(kind, c, r, top, h, [])
    assert gx.unit_value(units, Fraction(c)) == Fraction(h)
    for t in (c - r, c + r, c + r + 1):
        assert gx.unit_value(units, Fraction(t)) == 0


@given(quarters, positive, shares, quarters, st.fractions(-1, 1, max_denominator=32))
def test_the_constant_piece_cancels_the_identity(c: float, r: float, top: float, h: float, part: Fraction) -> None:
    t = Fraction(c) + part * Fraction(top) * Fraction(r)
    assert t + gx.unit_value(gx.units_of(gx.CONSTANT, c, r, top, h, []), t) == Fraction(h)


@given(four_points)
def test_the_general_function_goes_through_its_points(points: list[tuple[float, float]]) -> None:
    units = gx.units_of(gx.GENERAL, 0, 1, 0.5, 1, points)
    places, knots = gx.places_and_knots([x for x, _ in points])
    assert len(units) == 4
    assert [fraction(-unit.b) for unit in units] == [fraction(k) for k in knots]
    for place, (_, y) in zip(places, sorted(points), strict=True):
        assert gx.unit_value(units, fraction(place)) == Fraction(y)
    assert gx.unit_value(units, fraction(knots[0]) - 3) == 0


@given(st.sampled_from(gx.KINDS), st.booleans(), st.booleans(), four_points)
def test_the_picture_is_well_formed(kind: str, residual: bool, units: bool, points: list[tuple[float, float]]) -> None:
    places = {f"{axis}{i}": v for i, p in enumerate(points, start=1) for axis, v in zip("xy", p, strict=True)}
    shown = gx.EXPLORER.picture(kind=kind, residual=residual, show_units=units, **places)
    tree = ElementTree.fromstring(shown.svg)
    # Nothing is drawn outside the picture.
    for line in tree.iter("{http://www.w3.org/2000/svg}line"):
        assert all(-1 <= float(line.get(name, "nan")) <= 641 for name in ("x1", "x2"))
        assert all(-1 <= float(line.get(name, "nan")) <= 441 for name in ("y1", "y2"))
    assert shown.numbers["units"] == (3 if kind == gx.HAT else 4)


def test_numbers_follow_the_controls() -> None:
    assert gx.EXPLORER.picture(r=1, h=2, c=0).numbers["unit 2"] == "−4 σ(t − 0)"
    assert gx.EXPLORER.picture(kind=gx.PLATEAU).numbers["units"] == 4
    assert gx.EXPLORER.picture(residual=True).svg != gx.EXPLORER.picture().svg


def test_handles_lie_on_the_curve() -> None:
    for kind in gx.KINDS:
        for residual in (False, True):
            found = "explorer-handle" in gx.EXPLORER.picture(kind=kind, residual=residual).svg
            assert found == (residual == (kind == gx.CONSTANT))


def test_it_answers_fast() -> None:
    gx.EXPLORER.picture()
    began = time.perf_counter()
    gx.EXPLORER.picture(kind=gx.GENERAL)
    assert time.perf_counter() - began < 0.1
