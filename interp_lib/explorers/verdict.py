"""A target builder with a live verdict: write a formula, choose an architecture."""

from __future__ import annotations

from typing import Final

from ..infoflow.comparison import (
    Comparison,
    Expression,
    FormulaError,
    TokenFunction,
    dimension,
    number_of_comparisons,
    order,
    parse,
)
from ..infoflow.information import Architecture
from ..infoflow.verdict import verdict
from .base import Explorer, Parameter, Picture, Value, flag, integer
from .drawing import Drawing, colour

MOST_LAYERS: Final = 3
START: Final = "max[s,t](f(s,t)) + max[s,t](g(s,t)) + max[t](h(t))"


def picture(formula: str, T: int, n: int, d: int, positional: bool, layers: int, **heads: int) -> Picture:
    """The comparison tree, and the verdict for the chosen layers and heads."""
    try:
        target = parse(formula)
    except FormulaError as problem:
        draw = Drawing(640, 110, "The formula cannot be read", str(problem))
        draw.text(320, 60, "This formula cannot be read yet.", size=16, anchor="middle")
        return Picture(draw.svg(), {"problem": str(problem)})
    counts = tuple(heads[f"h{l}"] for l in range(1, layers + 1))
    architecture = Architecture(T, counts, n, positional)
    found = verdict(target, architecture, d)
    lines: list[tuple[int, str, str]] = []
    _lines(target, 0, lines)
    draw = Drawing(
        640,
        max(90, 24 * len(lines) + 46),
        "Comparison tree",
        f"{formula}: order {order(target)}, {dimension(target)} different comparisons. {found.explain()}.",
    )
    for row, (depth, text, kind) in enumerate(lines):
        y = 26 + 24 * row
        x = 24 + 30 * depth
        if depth:
            draw.line((x - 20, y - 20), (x - 20, y - 5), opacity=0.5)
            draw.line((x - 20, y - 5), (x - 6, y - 5), opacity=0.5)
        draw.text(x, y, text, size=15, bold=kind == "compare", fill=colour(0) if kind == "compare" else "currentColor")
    verdict_at = 24 * len(lines) + 34
    draw.text(
        24, verdict_at, "efficient" if found.efficient else f"not efficient: {found.binding}", size=17, bold=True,
        fill=colour(2) if found.efficient else colour(1),
    )  # fmt: skip
    numbers: dict[str, Value] = {
        "order": order(target),
        "different comparisons": dimension(target),
        "number of comparisons": number_of_comparisons(target, T),
        "pairs the heads compare": architecture.comparisons,
        "verdict": "efficient" if found.efficient else f"not efficient: {found.binding}",
        "exponent of 1/ε": float(found.exponent),
        "smallest efficient": "none" if found.smallest is None else " + ".join(map(str, found.smallest)) + " heads",
        "because": "; ".join(found.reasons),
    }
    return Picture(draw.svg(), numbers)


def _lines(target: Expression, depth: int, lines: list[tuple[int, str, str]]) -> None:
    if isinstance(target, TokenFunction):
        lines.append((depth, str(target), "leaf"))
        return
    if isinstance(target, Comparison):
        lines.append((depth, f"{target.kind} over {', '.join(target.indices)}", "compare"))
        _lines(target.body, depth + 1, lines)
        return
    lines.append((depth, "sum of" if target.name == "+" else f"{target.name} of", "combine"))
    for part in target.parts:
        _lines(part, depth + 1, lines)


EXPLORER = Explorer(
    "Write a target, choose a transformer",
    "interp_lib.explorers.verdict:picture",
    (
        Parameter("formula", "target", "text", START),
        integer("T", "tokens T", 2, 64, 16),
        integer("layers", "layers", 1, MOST_LAYERS, 2),
        *(
            integer(f"h{l}", f"heads in layer {l}", 1, 6, 2, visible_when=("layers", l))
            for l in range(1, MOST_LAYERS + 1)
        ),
        integer("n", "head dimension n", 1, 8, 1),
        integer("d", "token dimension d", 1, 4, 1),
        flag("positional", "positional code", False),
    ),
)
