"""Two numbers in one: the path of a decoder through the square, its straight pieces, and one point encoded and decoded."""

from __future__ import annotations

import json
from fractions import Fraction
from functools import lru_cache
from typing import Final

from ..infoflow.decoding import Code, Kind, code
from .base import Explorer, Picture, Value, choice, integer, real
from .drawing import Drawing, Panel, Scale, colour

NAMES: Final[dict[str, Kind]] = {"snake": "snake", "raster": "raster", "interleaved digits": "interleaved"}


@lru_cache(maxsize=64)
def scheme(path: str, K: int) -> Code:
    """The code of two numbers in one with mesh ``1/K``; interleaved digits take the next power of two.

    >>> scheme("snake", 4).decoder.units
    7
    """
    return code(2, 1, Fraction(1, 2 * K), NAMES[path])


@lru_cache(maxsize=64)
def counts(path: str, K: int) -> tuple[int, int]:
    """The units of the decoder with free weights, and with entries at most 1.

    >>> counts("snake", 4)
    (7, 35)
    """
    decoder = scheme(path, K).decoder
    return decoder.units, decoder.bounded_units


def picture(path: str, K: int, x: float, y: float) -> Picture:
    """The decoder's curve in the square (left) and its two outputs against the code (right)."""
    chosen = scheme(path, K)
    decoder = chosen.decoder
    units, bounded = counts(path, K)
    polygon = decoder.polygons[0]
    point = (Fraction(x), Fraction(y))
    (z,) = chosen.encode(point)
    found = decoder((z,))
    error = max(abs(a - b) for a, b in zip(found, point, strict=True))
    end = max(polygon.knots[-1], Fraction(1))
    share = z / end
    size = chosen.base**chosen.depth
    draw = Drawing(
        640,
        430,
        f"Two numbers in one by {path}",
        f"A decoder with {units} ReLU units follows a path of {len(polygon.knots) - 1} straight pieces through the unit "
        f"square, mesh 1/{size}. The point ({x:.3g}, {y:.3g}) is decoded as ({float(found[0]):.3g}, {float(found[1]):.3g}).",
    )
    square = Panel(draw, Scale(0, 1, 34, 324), Scale(0, 1, 330, 40))
    for k in range(1, size):
        if path == "interleaved digits":
            draw.line(square(k / size, 0), square(k / size, 1), opacity=0.18)
        draw.line(square(0, k / size), square(1, k / size), opacity=0.18)
    square.frame(xlabel="first number", ylabel="second number")
    draw.polyline([square(float(p), float(q)) for p, q in polygon.points], stroke=colour(0), width=2)
    a, b = square(x, y), square(float(found[0]), float(found[1]))
    draw.line(a, b, stroke=colour(1), width=2)
    draw.mark(*b, 1)
    draw.mark(*a, 0, hollow=True)
    square.handle(x, y, "x", "y", "the point to encode")
    for row, name in enumerate(("first number", "second number")):
        bottom = 170 + 160 * row
        plot = Panel(draw, Scale(0, float(end), 380, 624), Scale(0, 1, bottom, bottom - 130))
        draw.rectangle(380, bottom - 130, 244, 130, stroke="currentColor", opacity=0.45)
        curve = [plot(float(k), float(p[row])) for k, p in zip(polygon.knots, polygon.points, strict=True)]
        draw.polyline(curve, stroke=colour(0), width=1.6)
        draw.line((plot.x(float(z)), bottom - 130), (plot.x(float(z)), bottom), dash="3 3", opacity=0.7)
        draw.mark(*plot(float(z), float(found[row])), 1, size=5)
        draw.text(380, bottom - 137, f"decoded {name}", size=14)
    draw.text(502, 352, "code", size=14, anchor="middle")
    for at, (name, mark, hollow) in enumerate((("point", 0, True), ("decoded", 1, False))):
        draw.mark(60 + 150 * at, 405, mark, hollow=hollow)
        draw.text(74 + 150 * at, 410, name, size=14)
    numbers: dict[str, Value] = {
        "ReLU units": units,
        "units with entries at most 1": bounded,
        "ε": float(chosen.error),
        "code, as a share of its range": float(share),
        "decoded first": float(found[0]),
        "decoded second": float(found[1]),
        "error": float(error),
    }
    return Picture(draw.svg(), numbers, files={"decoder.json": lambda: decoder_text(chosen)})


def decoder_text(chosen: Code) -> str:
    """The decoder as a network with one hidden layer; fractions as strings.

    >>> json.loads(decoder_text(scheme("snake", 1)))["units"][0]
    {'input': 0, 'knot': '0', 'weights': ['1', '0']}
    """
    bias, units = chosen.decoder.network()
    hidden = [{"input": u.coordinate, "knot": str(u.knot), "weights": list(map(str, u.weight))} for u in units]
    return json.dumps({"output bias": list(map(str, bias)), "units": hidden}, indent=1)


EXPLORER = Explorer(
    "The path of a decoder",
    "interp_lib.explorers.snake:picture",
    (
        choice("path", "code", tuple(NAMES), "snake"),
        integer("K", "cells K", 1, 24, 6),
        real("x", "first number", 0, 1, 0.3, 0.01),
        real("y", "second number", 0, 1, 0.62, 0.01),
    ),
)
