"""Parameters against ``ε``: what one layer needs at least, where it becomes impossible, and what two layers need."""

from __future__ import annotations

import math
from fractions import Fraction

from ..infoflow.bounds import one_layer_exponent, one_layer_units, two_layer_units
from ..infoflow.targets import product_gap
from .base import Explorer, Picture, Value, integer, log
from .drawing import Drawing, Panel, Scale, colour

SMALLEST = 1e-16


def barrier_error(T: int, h: int, n: int, d: int) -> float:
    """The error that every one-layer model with continuous encoders makes (Theorem B, Corollary 1); 0 if ``T ≤ (n+1)h + 1``.

    Orthogonal vectors where ``d`` allows them, else a regular polygon in a plane.

    >>> barrier_error(8, 1, 1, 3), barrier_error(3, 1, 1, 3)
    (0.5, 0.0)
    """
    m = (n + 1) * h + 1
    if m + 1 > T:
        return 0.0
    if d >= m:
        return 0.5
    nearest = Fraction(math.cos(2 * math.pi / m))
    opposite = Fraction(1) if m % 2 == 0 else Fraction(math.cos(math.pi / m))
    return float(product_gap(nearest, opposite)[1] / 2)


def picture(T: int, h: int, n: int, d: int, eps: float) -> Picture:
    """The units of one and of two layers against ``1/ε``, on logarithmic axes, with the barrier as a shaded region."""
    levels = [10 ** (-k / 8) for k in range(int(-8 * math.log10(SMALLEST)) + 1)]
    wall = barrier_error(T, h, n, d)
    one = [(1 / e, one_layer_units(e, T, h, n)) for e in levels]
    two = [(1 / e, two_layer_units(e, d)) for e in levels]
    top = 1e16
    built = two_layer_units(eps, d)
    needed = one_layer_units(eps, T, h, n)
    impossible = eps < wall
    known = f"one layer at least {needed:.3g}," if needed >= 1 else "the bound for one layer does not bite yet,"
    verdict = (
        f"no one-layer model with continuous encoders errs by less than {wall:.3g}" if wall else "no barrier at this T"
    )
    draw = Drawing(
        640,
        430,
        "Hidden units against accuracy",
        f"T = {T}, heads of one layer: {h}, of dimension {n}, tokens in R^{d}. At error {eps:.2g} two layers need {built} units, "
        f"{known} even with discontinuous encoders; {verdict}.",
    )
    panel = Panel(draw, Scale(1, 1 / SMALLEST, 66, 624, log=True), Scale(1, top, 370, 34, log=True))
    if wall:
        x = panel.x(1 / wall)
        draw.rectangle(x, 34, 624 - x, 336, fill=colour(1), opacity=0.12)
        draw.line((x, 34), (x, 370), stroke=colour(1), width=2, dash="6 4")
    panel.frame(xlabel="accuracy 1/ε", ylabel="hidden units")
    for points, stroke in ((two, colour(0)), (one, colour(1))):
        seen = [panel(x, y) for x, y in points if 1 <= y <= top]
        if len(seen) > 1:
            draw.polyline(seen, stroke=stroke, width=2.4)
    draw.line((panel.x(1 / eps), 34), (panel.x(1 / eps), 370), dash="3 3", opacity=0.6)
    draw.mark(*panel(1 / eps, built), 0)
    if 1 <= needed <= top:
        draw.mark(*panel(1 / eps, needed), 1, hollow=True)
    for row, (text, stroke) in enumerate((("one layer, at least", colour(1)), ("two layers, as built", colour(0)))):
        draw.line((84, 56 + 27 * row), (112, 56 + 27 * row), stroke=stroke, width=2.4)
        draw.text(119, 61 + 27 * row, text, size=14)
    if wall:
        draw.rectangle(84, 103, 28, 14, fill=colour(1), opacity=0.25)
        draw.text(119, 115, "barrier: impossible", size=14)
    numbers: dict[str, Value] = {
        "two layers, units": built,
        "one layer, units at least": needed if needed >= 1 else "nothing yet",
        "one layer, exponent": str(max(one_layer_exponent(T, h, n), Fraction(0))),
        "barrier: error at least": wall,
        "one layer with continuous encoders": "impossible" if impossible else "not excluded",
    }
    return Picture(draw.svg(), numbers)


EXPLORER = Explorer(
    "One layer or two?",
    "interp_lib.explorers.depth_separation:picture",
    (
        integer("T", "tokens T", 3, 64, 16),
        log("eps", "error ε", -15, -0.5, -3, 0.25),
        integer("h", "heads of the one layer h", 1, 4, 1),
        integer("n", "head dimension n", 1, 4, 1),
        integer("d", "token dimension d", 2, 16, 4),
    ),
)
