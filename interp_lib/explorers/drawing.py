"""Small drawings as SVG text: panels with axes, marks, lines, arrows and words.

A sequence has a colour *and* a shape, so that colour alone never carries meaning.  Colours are the Okabe–Ito
palette, through CSS variables that the book's style sheet adjusts for dark pages; everything neutral is
drawn in ``currentColor``.  A drawing scales with the page; on a phone the style sheet enlarges its letters (the
variable ``--letters``), so leave them half as much room again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Final, final

PALETTE: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C564B", "#7F7F7F")
SHAPES: Final = ("circle", "square", "triangle", "diamond", "cross", "wedge", "pentagon", "plus")
WIDTH: Final = 640

Pair = tuple[float, float]


def colour(index: int) -> str:
    """The colour of sequence number ``index``.

    >>> colour(0)
    'var(--sequence-0, #0072B2)'
    """
    at = index % len(PALETTE)
    return f"var(--sequence-{at}, {PALETTE[at]})"


def number(value: float) -> str:
    """A coordinate with two decimals and no needless zeros.

    >>> number(3.0), number(-0.126), number(0.0)
    ('3', '-0.13', '0')
    """
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


@final
@dataclass(slots=True)
class Drawing:
    """A picture under construction; `svg` gives the finished text.

    ``title`` and ``description`` are what a screen reader says.
    """

    width: float
    height: float
    title: str
    description: str
    parts: list[str] = field(default_factory=list)

    def add(self, part: str) -> None:
        self.parts.append(part)

    def text(
        self,
        x: float,
        y: float,
        words: str,
        *,
        size: float = 15,
        anchor: str = "start",
        fill: str = "currentColor",
        bold: bool = False,
    ) -> None:
        weight = ' font-weight="600"' if bold else ""
        self.add(
            f'<text x="{number(x)}" y="{number(y)}" style="font-size:calc({number(size)}px*var(--letters,1))" '
            f'text-anchor="{anchor}" fill="{fill}"{weight}>{escape(words)}</text>'
        )

    def line(
        self,
        start: Pair,
        end: Pair,
        *,
        stroke: str = "currentColor",
        width: float = 1.2,
        dash: str = "",
        opacity: float = 1,
        arrow: bool = False,
    ) -> None:
        (x1, y1), (x2, y2) = start, end
        dashed = f' stroke-dasharray="{dash}"' if dash else ""
        faint = f' opacity="{number(opacity)}"' if opacity < 1 else ""
        self.add(
            f'<line x1="{number(x1)}" y1="{number(y1)}" x2="{number(x2)}" y2="{number(y2)}" stroke="{stroke}" '
            f'stroke-width="{number(width)}"{dashed}{faint}/>'
        )
        length = math.hypot(x2 - x1, y2 - y1)
        if arrow and length > 6:
            dx, dy = (x2 - x1) / length, (y2 - y1) / length
            tip = f"{number(x2)},{number(y2)}"
            wings = [f"{number(x2 - 8 * dx + s * 3.5 * dy)},{number(y2 - 8 * dy - s * 3.5 * dx)}" for s in (1, -1)]
            self.add(f'<polygon points="{tip} {" ".join(wings)}" fill="{stroke}"{faint}/>')

    def polyline(self, points: Iterable[Pair], *, stroke: str, width: float = 2, dash: str = "") -> None:
        path = " ".join(f"{number(x)},{number(y)}" for x, y in points)
        dashed = f' stroke-dasharray="{dash}"' if dash else ""
        self.add(
            f'<polyline points="{path}" fill="none" stroke="{stroke}" stroke-width="{number(width)}" '
            f'stroke-linejoin="round"{dashed}/>'
        )

    def rectangle(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        *,
        fill: str = "none",
        stroke: str = "none",
        opacity: float = 1,
    ) -> None:
        faint = f' opacity="{number(opacity)}"' if opacity < 1 else ""
        self.add(
            f'<rect x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}" '
            f'fill="{fill}" stroke="{stroke}"{faint}/>'
        )

    def circle(
        self,
        x: float,
        y: float,
        radius: float,
        *,
        fill: str = "none",
        stroke: str = "currentColor",
        width: float = 1.2,
        dash: str = "",
        opacity: float = 1,
    ) -> None:
        dashed = f' stroke-dasharray="{dash}"' if dash else ""
        faint = f' opacity="{number(opacity)}"' if opacity < 1 else ""
        self.add(
            f'<circle cx="{number(x)}" cy="{number(y)}" r="{number(radius)}" fill="{fill}" stroke="{stroke}" '
            f'stroke-width="{number(width)}"{dashed}{faint}/>'
        )

    def mark(
        self, x: float, y: float, sequence: int, *, size: float = 6, hollow: bool = False, opacity: float = 1
    ) -> None:
        """A token of sequence number ``sequence``: its colour and its shape."""
        paint = colour(sequence)
        fill = "var(--page, #fff)" if hollow else paint
        faint = f' opacity="{number(opacity)}"' if opacity < 1 else ""
        style = f'fill="{fill}" stroke="{paint}" stroke-width="1.6"{faint}'
        shape = SHAPES[sequence % len(SHAPES)]
        if shape == "circle":
            self.add(f'<circle cx="{number(x)}" cy="{number(y)}" r="{number(size)}" {style}/>')
            return
        corners = " ".join(f"{number(x + size * dx)},{number(y + size * dy)}" for dx, dy in _CORNERS[shape])
        self.add(f'<polygon points="{corners}" {style}/>')

    def legend(self, x: float, y: float, names: Sequence[str], *, step: float = 110) -> None:
        """The marks of sequences ``0, 1, …`` with their names, from left to right."""
        for index, name in enumerate(names):
            self.mark(x + index * step, y - 5, index)
            self.text(x + index * step + 11, y, name, size=14)

    def svg(self) -> str:
        """The finished picture."""
        # What is inside an image cannot take the focus, so a drawing with handles is a group.
        role = "group" if any("tabindex" in part for part in self.parts) else "img"
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {number(self.width)} {number(self.height)}" '
            f'role="{role}" aria-label="{escape(self.title, quote=True)}" font-family="inherit">'
            f"<title>{escape(self.title)}</title><desc>{escape(self.description)}</desc>{''.join(self.parts)}</svg>"
        )


def _regular(sides: int, turn: float) -> list[Pair]:
    angles = [turn + 2 * math.pi * k / sides for k in range(sides)]
    return [(1.15 * math.cos(a), 1.15 * math.sin(a)) for a in angles]


def _crossed(turn: float) -> list[Pair]:
    arms = [(-0.4, -1.2), (0.4, -1.2), (0.4, -0.4), (1.2, -0.4), (1.2, 0.4), (0.4, 0.4)]
    outline = arms + [(-x, -y) for x, y in arms]
    c, s = math.cos(turn), math.sin(turn)
    return [(c * x - s * y, s * x + c * y) for x, y in outline]


_CORNERS: Final = {
    "square": [(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
    "triangle": _regular(3, -math.pi / 2),
    "diamond": _regular(4, 0),
    "cross": _crossed(math.pi / 4),
    "wedge": _regular(3, math.pi / 2),
    "pentagon": _regular(5, -math.pi / 2),
    "plus": _crossed(0),
}


@final
@dataclass(frozen=True, slots=True)
class Scale:
    """An axis: numbers from ``low`` to ``high`` (powers of ten if ``log``) onto pixels ``start`` to ``end``.

    With ``unit`` the axis is linear near 0 and logarithmic beyond ``±unit``: it shows ``asinh(value / unit)``.

    >>> axis = Scale(-1000, 1000, 0, 100, unit=1)
    >>> axis(0), round(axis(10)), round(axis(100))
    (50.0, 70, 85)
    """

    low: float
    high: float
    start: float
    end: float
    log: bool = False
    unit: float = 0

    def __call__(self, value: float) -> float:
        low, high, value = self._flat(self.low), self._flat(self.high), self._flat(value)
        return self.start + (value - low) / ((high - low) or 1) * (self.end - self.start)

    def _flat(self, value: float) -> float:
        if self.unit:
            return math.asinh(value / self.unit)
        return math.log10(value) if self.log else value

    def ticks(self) -> list[tuple[float, str]]:
        """Round numbers inside the range, at most seven, with their labels.

        >>> Scale(0, 1, 0, 100).ticks()[1]
        (0.2, '0.2')
        """
        if self.unit:
            reach = max(abs(self.low), abs(self.high))
            power = 10 ** math.ceil(math.log10(2 * self.unit))
            sizes = [power * 10**k for k in range(8) if power * 10**k <= reach]
            sizes = sizes[:: max(1, math.ceil(len(sizes) / 2))]
            values = [*(-size for size in reversed(sizes)), 0, *sizes]
            return [(value, f"{value:.6g}") for value in values if self.low <= value <= self.high]
        if self.log:
            first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
            step = max(1, math.ceil((last - first) / 6))
            return [(10.0**k, _power_of_ten(k)) for k in range(first, last + 1, step)]
        span = self.high - self.low
        if span <= 0:
            return [(self.low, f"{self.low:.4g}")]
        power = 10 ** math.floor(math.log10(span))
        step = next(power * f for f in (0.1, 0.2, 0.5, 1, 2) if span / (power * f) <= 6)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [(k * step, f"{k * step:.6g}") for k in range(first, last + 1)]


def _power_of_ten(k: int) -> str:
    digits = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
    return "1" if k == 0 else "10" if k == 1 else "10" + str(k).translate(digits)


@final
@dataclass(frozen=True, slots=True)
class Panel:
    """A rectangle of a drawing with two axes; call it with data coordinates to get pixels."""

    drawing: Drawing
    x: Scale
    y: Scale

    def __call__(self, x: float, y: float) -> Pair:
        return self.x(x), self.y(y)

    def frame(self, *, xlabel: str = "", ylabel: str = "", ticks: bool = True, heading: str = "") -> None:
        """The border, ticks and labels."""
        draw, x, y = self.drawing, self.x, self.y
        draw.rectangle(x.start, y.end, x.end - x.start, y.start - y.end, stroke="currentColor", opacity=0.45)
        if ticks:
            for value, label in x.ticks():
                at = x(value)
                draw.line((at, y.start), (at, y.start + 4), opacity=0.6)
                draw.text(at, y.start + 18, label, size=13, anchor="middle")
            for value, label in y.ticks():
                at = y(value)
                draw.line((x.start - 4, at), (x.start, at), opacity=0.6)
                draw.text(x.start - 7, at + 4.5, label, size=13, anchor="end")
        if xlabel:
            draw.text((x.start + x.end) / 2, y.start + (36 if ticks else 18), xlabel, size=14, anchor="middle")
        if ylabel:
            draw.text(x.start, y.end - 8, ylabel, size=14)
        if heading:
            draw.text((x.start + x.end) / 2, y.end - 8, heading, size=15, anchor="middle", bold=True)

    def handle(self, x: float, y: float, x_name: str, y_name: str, label: str) -> None:
        """An invisible disc that the reader drags; it sets the parameters ``x_name`` and ``y_name``."""
        px, py = self(x, y)
        scales = [self.x.low, self.x.high, self.x.start, self.x.end, self.y.low, self.y.high, self.y.start, self.y.end]
        self.drawing.add(
            f'<circle class="explorer-handle" cx="{number(px)}" cy="{number(py)}" r="16" fill="transparent" '
            f'tabindex="0" role="button" aria-label="{escape(label, quote=True)}" data-x="{escape(x_name)}" '
            f'data-y="{escape(y_name)}" data-scales="{" ".join(map(str, scales))}"/>'
        )


def panel(
    drawing: Drawing,
    box: tuple[float, float, float, float],
    points: Iterable[Pair],
    *,
    equal: bool = False,
    margin: float = 0.08,
) -> Panel:
    """A panel in the pixel box ``(left, top, width, height)`` whose axes hold all ``points``.

    With ``equal`` one unit is equally long on both axes.
    """
    left, top, width, height = box
    listed = list(points)
    xs, ys = [p[0] for p in listed], [p[1] for p in listed]
    (x_low, x_high), (y_low, y_high) = _padded(xs, margin), _padded(ys, margin)
    if equal:
        unit = max((x_high - x_low) / width, (y_high - y_low) / height)
        x_mid, y_mid = (x_low + x_high) / 2, (y_low + y_high) / 2
        x_low, x_high = x_mid - unit * width / 2, x_mid + unit * width / 2
        y_low, y_high = y_mid - unit * height / 2, y_mid + unit * height / 2
    return Panel(drawing, Scale(x_low, x_high, left, left + width), Scale(y_low, y_high, top + height, top))


def _padded(values: Sequence[float], margin: float) -> Pair:
    low, high = min(values), max(values)
    pad = (high - low) * margin or max(abs(low), 1) * margin
    return low - pad, high + pad


@final
@dataclass(frozen=True, slots=True)
class Figure:
    """A finished drawing with its caption, as a notebook cell shows it."""

    drawing: Drawing
    caption: str

    def _repr_html_(self) -> str:
        return f'<figure class="drawing">{self.drawing.svg()}<figcaption>{escape(self.caption)}</figcaption></figure>'
