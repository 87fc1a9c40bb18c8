"""A piecewise-linear gadget as the sum of its ReLU units, drawn over the projection ``t = <a, x>``."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

from ..fields import Rational, fraction, rational
from ..files import to_text
from ..gadgets import Units, collapse_to, feed_forward, flat_hat, hat, plateau, through_points
from ..layers import Block, SelfAttention, Transformer
from .base import Explorer, Picture, choice, flag, real
from .drawing import Drawing, Pair, Panel, Scale, colour

HAT, FLAT_HAT, PLATEAU, CONSTANT, GENERAL = "hat", "flat hat", "plateau", "constant piece", "through four points"
KINDS = (HAT, FLAT_HAT, PLATEAU, CONSTANT, GENERAL)
SHAPED = (HAT, FLAT_HAT, PLATEAU, CONSTANT)
REACH = 5.0
CLOSEST = Fraction(1, 8)


def places_and_knots(places: Sequence[float]) -> tuple[list[Rational], list[Rational]]:
    """The places in increasing order, at least 1/8 apart, and a knot for each: the place before it, and 1 before the first.

    >>> places_and_knots([1, 0.5, 0.5])
    ([1/2, 5/8, 1], [-1/2, 1/2, 5/8])
    """
    apart: list[Fraction] = []
    for place in sorted(map(Fraction, places)):
        apart.append(max(place, apart[-1] + CLOSEST) if apart else place)
    # A knot nearer to its own place would work too, with steeper slopes.
    knots = [apart[0] - 1, *apart[:-1]]
    return [rational(place) for place in apart], [rational(knot) for knot in knots]


def units_of(kind: str, c: float, r: float, top: float, h: float, points: Sequence[Pair]) -> Units:
    """The units on the line, so that direction and displacement are numbers.

    >>> len(units_of("hat", 0, 1, 0.5, 1, [])), len(units_of("plateau", 0, 1, 0.5, 1, []))
    (3, 4)
    """
    one = [rational(1)]
    centre, half_width, height = rational(c), rational(r), rational(h)
    if kind == HAT:
        return hat(one, centre, half_width, [height])
    if kind == FLAT_HAT:
        return flat_hat(one, centre, half_width, [height])
    inner = rational(top) * half_width
    if kind == PLATEAU:
        return plateau(one, centre - inner, centre + inner, half_width - inner, [height])
    if kind == CONSTANT:
        return collapse_to(one, [centre - half_width, centre - inner, centre + inner, centre + half_width], [height])
    places, knots = places_and_knots([x for x, _ in points])
    return through_points(one, knots, places, [[rational(y)] for _, y in sorted(points)])


def unit_value(units: Units, t: Fraction) -> Fraction:
    """``Σ w σ(t + b)``.

    >>> unit_value(units_of("hat", 0, 1, 0.5, 3, []), Fraction(0))
    Fraction(3, 1)
    """
    return sum((fraction(unit.w[0]) * max(t + fraction(unit.b), Fraction(0)) for unit in units), Fraction(0))


def picture(
    kind: str, c: float, r: float, top: float, h: float, residual: bool, show_units: bool, **coordinates: float
) -> Picture:
    """The gadget, its units, and what a token on the line does."""
    points = [(coordinates[f"x{i}"], coordinates[f"y{i}"]) for i in range(1, 5)] if kind == GENERAL else []
    units = units_of(kind, c, r, top, h, points)
    eta = int(residual)
    knots = [fraction(-unit.b) for unit in units]
    ends = [Fraction(-REACH), *(k for k in knots if abs(k) < REACH), Fraction(REACH)]
    curve = [(float(t), float(eta * t + unit_value(units, t))) for t in ends]
    values = [float(eta * k + unit_value(units, k)) for k in knots]

    draw = Drawing(
        640,
        440,
        f"The gadget “{kind}” and its units",
        f"A piecewise-linear function of t with knots {_list(knots)} and values {_list(values)} there"
        + (", the identity added." if residual else "."),
    )
    panel = Panel(draw, Scale(-REACH, REACH, 40, 630), Scale(-REACH, REACH, 400, 10))
    panel.frame(xlabel="t = ⟨a, x⟩")
    draw.line(panel(-REACH, 0), panel(REACH, 0), opacity=0.35)
    if residual:
        draw.line(panel(-REACH, -REACH), panel(REACH, REACH), dash="2 5", opacity=0.6)
    if show_units:
        for i, unit in enumerate(units):
            _unit(panel, knots[i], fraction(unit.w[0]), i)
    for start, end in pairwise(curve):
        _segment(panel, start, end)
    for knot, value in zip(knots, values, strict=True):
        if abs(knot) <= REACH and abs(value) <= REACH:
            draw.circle(*panel(float(knot), value), 4, fill="currentColor")
    if residual == (kind == CONSTANT):  # else the curve does not pass through the handles
        _handles(panel, kind, c, h, points)
    numbers: dict[str, int | float | str | bool] = {"units": len(units)}
    for i, (unit, knot) in enumerate(zip(units, knots, strict=True), start=1):
        numbers[f"unit {i}"] = f"{_signed(fraction(unit.w[0]))} σ(t {_minus(knot)})"
    layer = feed_forward(units, 1, eta)
    files = {"transformer.json": lambda: to_text(Transformer([Block(layer, SelfAttention.identity(1))]))}
    return Picture(draw.svg(), numbers, files=files)


def _signed(value: Fraction) -> str:
    return f"{float(value):.4g}".replace("-", "−")


def _minus(knot: Fraction) -> str:
    return f"{'−' if knot >= 0 else '+'} {abs(float(knot)):.4g}"


def _list(values: Sequence[Fraction | float]) -> str:
    return ", ".join(f"{float(v):.4g}" for v in values)


def _unit(panel: Panel, knot: Fraction, weight: Fraction, index: int) -> None:
    """The unit ``weight · σ(t - knot)``, dashed."""
    if weight:
        _segment(
            panel, (float(knot), 0.0), (REACH, float(weight * (Fraction(REACH) - knot))), colour(index), "5 4", 1.6
        )


def _segment(
    panel: Panel, start: Pair, end: Pair, stroke: str = "currentColor", dash: str = "", width: float = 2.6
) -> None:
    """The part of a segment that lies inside the panel."""
    (x0, y0), (x1, y1) = start, end
    low, high = 0.0, 1.0
    for begin, change in ((x0, x1 - x0), (y0, y1 - y0)):
        if change == 0:
            if abs(begin) > REACH:
                return
            continue
        enter, leave = sorted(((-REACH - begin) / change, (REACH - begin) / change))
        low, high = max(low, enter), min(high, leave)
    if low < high:
        at = [(x0 + part * (x1 - x0), y0 + part * (y1 - y0)) for part in (low, high)]
        panel.drawing.line(panel(*at[0]), panel(*at[1]), stroke=stroke, dash=dash, width=width)


def _handles(panel: Panel, kind: str, c: float, h: float, points: Sequence[Pair]) -> None:
    marks = [((c, h), "c", "h", "centre and height")] if kind != GENERAL else []
    marks += [(place, f"x{i}", f"y{i}", f"point {i}") for i, place in enumerate(points, start=1)]
    for place, x_name, y_name, label in marks:
        panel.drawing.mark(*panel(*place), 0, size=7, hollow=True)
        panel.handle(*place, x_name, y_name, label)


def explorer(title: str, kind: str, residual: bool = False) -> Explorer:
    """The explorer with a starting gadget.

    >>> explorer("A hat", "hat").picture().numbers["unit 2"]
    '−4 σ(t − 1)'
    """
    points = [(-2.0, 1.5), (-0.5, -1.0), (1.0, 3.0), (2.5, 2.0)]
    places = [
        real(
            f"{axis}{i}", f"point {i}, {name}", -4.5, 4.5, value, 0.25, visible_when=("kind", (GENERAL,)), advanced=True
        )
        for i, point in enumerate(points, start=1)
        for axis, name, value in zip("xy", ("place", "value"), point, strict=True)
    ]
    return Explorer(
        title,
        "interp_lib.explorers.gadget:picture",
        (
            choice("kind", "gadget", KINDS, kind),
            real("c", "centre c", -3, 3, 1, 0.25, visible_when=("kind", SHAPED)),
            real("r", "half-width r", 0.25, 3, 1.5, 0.25, visible_when=("kind", SHAPED)),
            real("top", "top / width", 0.125, 0.875, 0.5, 0.125, visible_when=("kind", (PLATEAU, CONSTANT))),
            real("h", "value", -4, 4, 3, 0.25, visible_when=("kind", SHAPED)),
            flag("residual", "add the identity (η = 1)", residual),
            flag("show_units", "show the units", True),
            *places,
        ),
    )


EXPLORER = explorer("A gadget and the ReLU units it is made of", HAT)
