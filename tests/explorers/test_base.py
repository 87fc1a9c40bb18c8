"""The explorer type: arguments, the box in the page, the answer to the page."""

from __future__ import annotations

import html
import json
import re

import pytest

from interp_lib.explorers.base import (
    Explorer,
    ExplorerError,
    Parameter,
    answer,
    choice,
    draw,
    flag,
    integer,
    log,
    real,
    shown,
)

TARGET = "interp_lib.explorers.softmax_mean:picture"
SHOWN = Explorer(
    "A <title>",
    TARGET,
    (integer("T", "numbers", 2, 512, 8), log("beta", "β", -0.5, 3, 1), real("spread", "spread", 0.1, 2, 1, 0.1)),
)


def test_defaults_are_filled_in_and_exponents_become_numbers() -> None:
    assert SHOWN.arguments({}) == {"T": 8, "beta": 10.0, "spread": 1.0}
    assert SHOWN.arguments({"beta": -0.5})["beta"] == pytest.approx(10**-0.5)


@pytest.mark.parametrize(
    ("values", "message"),
    [({"U": 1}, "no parameter"), ({"T": 1}, "from 2 to 512"), ({"T": float("nan")}, "from 2"), ({"T": "8"}, "got '8'")],
)
def test_wrong_arguments_are_named(values: dict[str, object], message: str) -> None:
    with pytest.raises(ExplorerError, match=message):
        SHOWN.arguments(values)  # type: ignore[arg-type]


def test_choices_and_flags() -> None:
    explorer = Explorer(
        "t", TARGET, (choice("c", "c", ("a", "b"), "a"), flag("f", "f", True), Parameter("w", "w", "text", "x"))
    )
    assert explorer.arguments({"f": 0}) == {"c": "a", "f": False, "w": "x"}
    with pytest.raises(ExplorerError, match="expected one of"):
        explorer.arguments({"c": "z"})


def test_the_box_carries_the_specification_and_the_picture() -> None:
    box = SHOWN.html()
    spec = json.loads(html.unescape(re.search(r'data-explorer="([^"]*)"', box)[1]))  # type: ignore[index]
    assert spec["target"] == TARGET
    assert [p["name"] for p in spec["parameters"]] == ["T", "beta", "spread"]
    assert SHOWN.picture().svg in box
    assert "A &lt;title&gt;" in box
    for name in ("T", "beta", "spread"):
        assert f'name="{name}"' in box


def test_the_answer_to_the_page_is_the_picture() -> None:
    arguments = SHOWN.arguments({"T": 5})
    reply = json.loads(answer(TARGET, json.dumps(arguments)))
    picture = draw(TARGET, arguments)
    assert reply["svg"] == picture.svg
    assert reply["numbers"] == {name: shown(value) for name, value in picture.numbers.items()}


def test_notebooks_get_html_and_text_without_a_kernel() -> None:
    bundle = SHOWN._repr_mimebundle_()
    assert set(bundle) == {"text/html", "text/plain"}


def test_the_widget_recomputes_and_follows_limits() -> None:
    widgets = pytest.importorskip("ipywidgets")
    from interp_lib.explorers.base import _build_widget

    box = _build_widget(SHOWN, widgets)
    slider, picture = box.children[1], box.children[-2]
    assert picture.value == SHOWN.picture().svg
    slider.value = 20
    assert picture.value == SHOWN.picture(T=20).svg


def test_the_widget_hides_what_the_other_controls_make_idle() -> None:
    widgets = pytest.importorskip("ipywidgets")
    from interp_lib.explorers.base import _build_widget
    from interp_lib.explorers.clustering import BOTH, EXPLORER, IDENTITY

    box = _build_widget(EXPLORER, widgets)
    controls = {control.description: control for control in box.children[1:-2]}
    angle, scale, third = controls["angle of v"], controls["α"], controls["token 3, x"]
    hidden = []
    for matrix, n in ((IDENTITY, 5), (BOTH, 5), (BOTH, 2)):
        controls["matrix A"].value, controls["tokens"].value = matrix, n
        hidden.append([control.layout.display == "none" for control in (angle, scale, third)])
    assert hidden == [[True, True, False], [False, False, False], [False, False, True]]
