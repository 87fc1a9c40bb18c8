"""The drawing module: well-formed SVG with words for those who do not see it, scales, panels."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interp_lib.explorers.drawing import SHAPES, Drawing, Figure, Scale, panel

SVG = "{http://www.w3.org/2000/svg}"


def _everything() -> Drawing:
    draw = Drawing(640, 300, "A <b> & c", "What it shows")
    p = panel(draw, (60, 30, 250, 220), [(0, 0), (2, 1)], equal=True)
    p.frame(xlabel="x", ylabel="y", heading="start")
    for k in range(2 * len(SHAPES)):
        draw.mark(*p(0.1 * k, 0.5), k, hollow=k % 2 == 0, opacity=0.5)
    draw.line((0, 0), (50, 50), arrow=True, dash="2 2", opacity=0.4)
    draw.polyline([(0, 0), (1, 2)], stroke="currentColor")
    draw.rectangle(1, 2, 3, 4, fill="currentColor", opacity=0.2)
    draw.circle(5, 5, 3)
    draw.legend(20, 290, ["one", "two"])
    p.handle(1, 0.5, "x1", "y1", "token 1")
    return draw


def test_the_picture_is_well_formed_and_described() -> None:
    root = ElementTree.fromstring(_everything().svg())
    assert root.get("role") == "group"  # it holds a handle, which takes the focus
    assert ElementTree.fromstring(Drawing(10, 10, "t", "d").svg()).get("role") == "img"
    assert root.get("aria-label") == "A <b> & c"
    assert root.find(f"{SVG}title").text == "A <b> & c"  # type: ignore[union-attr]
    assert root.find(f"{SVG}desc").text == "What it shows"  # type: ignore[union-attr]


def test_neighbouring_sequences_differ_in_shape_not_only_in_colour() -> None:
    marks = []
    for k in range(len(SHAPES)):
        draw = Drawing(10, 10, "t", "d")
        draw.mark(5, 5, k)
        (part,) = draw.parts
        marks.append(part.split(" style")[0].split("fill=")[0])
    assert len(set(marks)) == len(SHAPES)


def test_the_handle_knows_the_scales_of_its_panel() -> None:
    draw = Drawing(100, 100, "t", "d")
    p = panel(draw, (10, 10, 80, 80), [(0, 0), (1, 1)])
    p.handle(0.25, 0.75, "x", "y", "token")
    handle = ElementTree.fromstring(draw.svg()).find(f"{SVG}circle")
    assert handle is not None
    x_low, x_high, x_start, x_end, y_low, y_high, y_start, y_end = map(float, handle.get("data-scales", "").split())
    x, y = float(handle.get("cx", "")), float(handle.get("cy", ""))
    assert x_low + (x - x_start) / (x_end - x_start) * (x_high - x_low) == pytest.approx(0.25, abs=1e-3)
    assert y_low + (y - y_start) / (y_end - y_start) * (y_high - y_low) == pytest.approx(0.75, abs=1e-3)


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6), st.booleans())
def test_ticks_are_few_and_inside(low: float, span: float, log: bool) -> None:
    scale = (
        Scale(10.0 ** (low / 1e5), 10.0 ** (low / 1e5 + 1 + span / 1e5), 0, 100, log=True)
        if log
        else Scale(low, low + span, 0, 100)
    )
    ticks = scale.ticks()
    assert 1 <= len(ticks) <= 8
    assert all(-1e-3 <= scale(value) <= 100 + 1e-3 for value, _ in ticks)
    assert sorted(ticks) == ticks


def test_equal_axes_have_equal_units() -> None:
    p = panel(Drawing(1, 1, "t", "d"), (0, 0, 300, 100), [(0, 0), (1, 1)], equal=True)
    assert p.x(1) - p.x(0) == pytest.approx(p.y(0) - p.y(1))


def test_a_log_scale_maps_ratios_to_distances() -> None:
    scale = Scale(1e-3, 1e3, 0, 60, log=True)
    assert scale(10) - scale(1) == pytest.approx(scale(1) - scale(0.1))
    assert scale.ticks()[0] == (pytest.approx(1e-3), "10⁻³")


def test_a_figure_shows_drawing_and_caption() -> None:
    text = Figure(_everything(), "Caption <1>")._repr_html_()
    assert "<figcaption>Caption &lt;1&gt;</figcaption>" in text
