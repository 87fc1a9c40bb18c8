"""One explorer, three hosts.

An explorer is a list of parameters and a pure function from their values to a `Picture`.  In the built book
its box comes alive with nothing but a browser: the page runs this very library.  In Jupyter
and Binder the same object shows ipywidgets.  Without either it is the picture for the default values.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from html import escape
from typing import Any, Final, Literal, final

Value = int | float | str | bool
Kind = Literal["integer", "real", "log", "choice", "flag", "text"]
WIDGET: Final = "application/vnd.jupyter.widget-view+json"
VALUES: Final = "values.json"
"""The file that every explorer offers: its parameters and numbers."""


class ExplorerError(ValueError):
    """A parameter is unknown or its value is out of range; the message names it."""


@final
@dataclass(frozen=True, slots=True)
class Parameter:
    """One control.  ``visible_when`` is ``(other, least)``: shown while parameter ``other`` is at least ``least``;
    or ``(other, options)``: shown while the choice ``other`` is one of ``options``; in both cases only while ``other`` is
    shown itself.

    A ``"log"`` parameter runs over exponents; the function receives ``10 ** exponent``.  ``play`` adds a button
    that steps through the values.
    """

    name: str
    label: str
    kind: Kind
    value: Value
    minimum: float = 0
    maximum: float = 1
    step: float = 1
    options: tuple[str, ...] = ()
    visible_when: tuple[str, float | tuple[str, ...]] | None = None
    play: bool = False
    advanced: bool = False


def integer(name: str, label: str, minimum: int, maximum: int, value: int, **more: Any) -> Parameter:
    """A whole number on a slider.

    >>> integer("N", "sequences", 1, 8, 3).value
    3
    """
    return Parameter(name, label, "integer", value, minimum, maximum, 1, **more)


def real(name: str, label: str, minimum: float, maximum: float, value: float, step: float, **more: Any) -> Parameter:
    """A number on a slider.

    >>> real("angle", "angle", 0, 6.3, 1, 0.1).step
    0.1
    """
    return Parameter(name, label, "real", value, minimum, maximum, step, **more)


def log(
    name: str, label: str, minimum: float, maximum: float, value: float, step: float = 0.25, **more: Any
) -> Parameter:
    """A positive number on a logarithmic slider; bounds and value are exponents of ten.

    >>> log("tau", "temperature", -6, 2, -1).maximum
    2
    """
    return Parameter(name, label, "log", value, minimum, maximum, step, **more)


def choice(name: str, label: str, options: tuple[str, ...], value: str, **more: Any) -> Parameter:
    """One of several words.

    >>> choice("kind", "attention", ("hardmax", "softmax"), "hardmax").options
    ('hardmax', 'softmax')
    """
    return Parameter(name, label, "choice", value, options=options, **more)


def flag(name: str, label: str, value: bool, **more: Any) -> Parameter:
    """Yes or no.

    >>> flag("pad", "padded", False).kind
    'flag'
    """
    return Parameter(name, label, "flag", value, **more)


@final
@dataclass(frozen=True, slots=True)
class Picture:
    """What the function of an explorer returns.

    ``numbers`` are shown as a table under the drawing; ``limits`` move the bounds of sliders; ``files`` are
    functions that write the texts a reader may download, by file name.
    """

    svg: str
    numbers: Mapping[str, Value] = field(default_factory=dict)
    limits: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    files: Mapping[str, Callable[[], str]] = field(default_factory=dict)


@final
@dataclass(frozen=True, slots=True)
class Explorer:
    """A titled set of parameters with ``target``, the dotted name ``"module:function"`` of a pure function.

    Example:

    >>> shown = Explorer("Softmax", "interp_lib.explorers.base:example", (real("x", "x", 0, 1, 0.5, 0.1),))
    >>> shown.picture(x=1).numbers["x"]
    1.0
    """

    title: str
    target: str
    parameters: tuple[Parameter, ...]

    def picture(self, **values: Value) -> Picture:
        """The picture for the given values, defaults elsewhere."""
        return draw(self.target, self.arguments(values))

    def arguments(self, values: Mapping[str, Value]) -> dict[str, Value]:
        """All arguments of the function; checks names, kinds and ranges."""
        known = {p.name: p for p in self.parameters}
        for name in values:
            if name not in known:
                raise ExplorerError(f"{name!r} is no parameter of {self.title!r}; expected one of {sorted(known)}")
        return {name: _argument(p, values.get(name, p.value)) for name, p in known.items()}

    def specification(self) -> dict[str, Any]:
        """What the page script needs to know, ready for JSON."""
        return {
            "title": self.title,
            "target": self.target,
            "parameters": [asdict(p) for p in self.parameters],
        }

    def html(self) -> str:
        """The box with the controls and the picture for the default values."""
        first = self.picture()
        plain = [p for p in self.parameters if not p.advanced]
        advanced = [p for p in self.parameters if p.advanced]
        more = f"<details><summary>More controls</summary>{_controls(advanced)}</details>" if advanced else ""
        spec = escape(json.dumps(self.specification(), ensure_ascii=False), quote=True)
        return (
            f'<section class="explorer" aria-label="{escape(self.title, quote=True)}" data-explorer="{spec}" '
            f'data-state="still"><p class="explorer-title">{escape(self.title)}</p>'
            f'<fieldset class="explorer-controls" disabled>{_controls(plain)}{more}</fieldset>'
            f'<div class="explorer-picture">{first.svg}</div>'
            f'<dl class="explorer-numbers">{_numbers(first.numbers)}</dl>'
            f'<details class="explorer-words"><summary>The picture in words</summary><p>{_words(first.svg)}</p></details>'
            '<p class="explorer-actions" hidden><button type="button" data-action="reset">Reset</button> '
            '<a data-action="link" href="#">Link to this state</a> <a data-action="wide" href="#">At full width</a> '
            '<button type="button" data-action="svg">Save picture</button>'
            '<span class="explorer-files"></span></p>'
            '<p class="explorer-status" role="status" aria-live="polite">This is the picture for the starting values.</p>'
            "</section>"
        )

    def is_visible(self, parameter: Parameter, values: Mapping[str, Value]) -> bool:
        """Whether the control is of any use while the parameters have these values."""
        if parameter.visible_when is None:
            return True
        name, least = parameter.visible_when
        other = next(p for p in self.parameters if p.name == name)
        value = values[name]
        enough = value in least if isinstance(least, tuple) else not isinstance(value, str) and value >= least
        return enough and self.is_visible(other, values)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        bundle: dict[str, Any] = {"text/html": self.html(), "text/plain": f"Explorer: {self.title}"}
        view = _widget(self)
        if view is not None:
            bundle[WIDGET] = view
        return bundle


def draw(target: str, arguments: Mapping[str, Value]) -> Picture:
    """Call the function ``"module:function"``."""
    module, _, name = target.partition(":")
    picture = getattr(importlib.import_module(module), name)(**arguments)
    assert isinstance(picture, Picture)
    return picture


def answer(target: str, arguments: str, file: str = "") -> str:
    """The picture as JSON, for JSON arguments: what the page asks for.  With ``file``, the text of that file as JSON.

    >>> json.loads(answer("interp_lib.explorers.base:example", '{"x": 2}'))["numbers"]
    {'x': '2'}
    >>> json.loads(json.loads(answer("interp_lib.explorers.base:example", '{"x": 2}', VALUES)))["parameters"]
    {'x': 2}
    """
    values = json.loads(arguments)
    picture = draw(target, values)
    if file == VALUES:
        kept = {"explorer": target, "parameters": values, "numbers": dict(picture.numbers)}
        return json.dumps(json.dumps(kept, ensure_ascii=False, indent=1), ensure_ascii=False)
    if file:
        return json.dumps(picture.files[file](), ensure_ascii=False)
    return json.dumps(
        {
            "svg": picture.svg,
            "numbers": {name: shown(value) for name, value in picture.numbers.items()},
            "limits": {name: list(bounds) for name, bounds in picture.limits.items()},
            "files": [*picture.files, VALUES],
        },
        ensure_ascii=False,
    )


def example(x: float) -> Picture:
    """A picture of nothing but a number, for the examples of this module."""
    return Picture(f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{x}"></svg>', {"x": x})


def shown(value: Value) -> str:
    """A number as the table shows it.

    >>> shown(True), shown(3), shown(0.123456789), shown("certified")
    ('yes', '3', '0.1235', 'certified')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _words(svg: str) -> str:
    """The description inside a drawing, as it stands there: escaped."""
    return svg.partition("<desc>")[2].partition("</desc>")[0]


def _argument(parameter: Parameter, value: Value) -> Value:
    name = parameter.name
    if parameter.kind == "choice":
        if value not in parameter.options:
            raise ExplorerError(f"{name}: expected one of {parameter.options}, got {value!r}")
        return value
    if parameter.kind == "text":
        return str(value)
    if parameter.kind == "flag":
        return bool(value)
    if isinstance(value, str) or not parameter.minimum <= value <= parameter.maximum:
        raise ExplorerError(f"{name}: expected a number from {parameter.minimum} to {parameter.maximum}, got {value!r}")
    if parameter.kind == "integer":
        return int(value)
    return 10.0**value if parameter.kind == "log" else float(value)


def _controls(parameters: list[Parameter]) -> str:
    return "".join(map(_control, parameters))


def _control(p: Parameter) -> str:
    name, label = escape(p.name, quote=True), escape(p.label)
    if p.kind == "choice":
        options = "".join(
            f"<option{' selected' if option == p.value else ''}>{escape(option)}</option>" for option in p.options
        )
        inner = f'<select name="{name}">{options}</select>'
    elif p.kind == "flag":
        inner = f'<input type="checkbox" name="{name}"{" checked" if p.value else ""}>'
    elif p.kind == "text":
        inner = f'<input type="text" name="{name}" value="{escape(str(p.value), quote=True)}">'
    else:
        inner = (
            f'<input type="range" name="{name}" min="{p.minimum}" max="{p.maximum}" step="{p.step}" value="{p.value}">'
            f"<output>{_slider_text(p)}</output>"
        )
    play = (
        f'<button type="button" data-action="play" data-name="{name}" aria-label="Play {label}">▶</button>'
        if p.play
        else ""
    )
    return (
        f'<div class="explorer-row"><label class="explorer-control" data-name="{name}"><span>{label}</span>{inner}</label>'
        f"{play}</div>"
    )


def _slider_text(p: Parameter) -> str:
    return f"{10.0 ** float(p.value):.3g}" if p.kind == "log" else str(p.value)


def _numbers(numbers: Mapping[str, Value]) -> str:
    return "".join(
        f'<div><dt>{escape(name)}</dt><dd data-name="{escape(name, quote=True)}">{escape(shown(value))}</dd></div>'
        for name, value in numbers.items()
    )


# ---------------------------------------------------------------- Jupyter


def _widget(explorer: Explorer) -> Any:
    """The ipywidgets view, or None where there is no kernel or no ipywidgets."""
    try:
        import ipywidgets
        from IPython.core.getipython import get_ipython
    except ImportError:
        return None
    shell = get_ipython()
    if shell is None or not hasattr(shell, "kernel"):
        return None
    return _build_widget(explorer, ipywidgets)._repr_mimebundle_().get(WIDGET)


def _build_widget(explorer: Explorer, widgets: Any) -> Any:
    picture, numbers = widgets.HTML(), widgets.HTML()
    controls = {p.name: _widget_control(p, widgets) for p in explorer.parameters}

    def redraw(_: Any = None) -> None:
        values = {name: control.value for name, control in controls.items()}
        for p in explorer.parameters:
            if p.visible_when is not None:
                controls[p.name].layout.display = None if explorer.is_visible(p, values) else "none"
        new = explorer.picture(**values)
        for name, (low, high) in new.limits.items():
            _set_limits(controls[name], low, high)
        picture.value = new.svg
        numbers.value = f'<dl class="explorer-numbers">{_numbers(new.numbers)}</dl>'

    for control in controls.values():
        control.observe(redraw, names="value")
    redraw()
    return widgets.VBox([widgets.HTML(f"<b>{escape(explorer.title)}</b>"), *controls.values(), picture, numbers])


def _set_limits(control: Any, low: float, high: float) -> None:
    # Bounds are set in the order that never makes them cross.
    if low > control.max:
        control.max, control.min = high, low
    else:
        control.min, control.max = low, high


def _widget_control(p: Parameter, widgets: Any) -> Any:
    common = {"description": p.label, "style": {"description_width": "14em"}, "layout": {"width": "34em"}}
    if p.kind == "choice":
        return widgets.Dropdown(options=p.options, value=p.value, **common)
    if p.kind == "flag":
        return widgets.Checkbox(value=p.value, **common)
    if p.kind == "text":
        return widgets.Text(value=p.value, continuous_update=False, **common)
    slider = widgets.IntSlider if p.kind == "integer" else widgets.FloatSlider
    return slider(value=p.value, min=p.minimum, max=p.maximum, step=p.step, **common)
