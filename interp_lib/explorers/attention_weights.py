"""The attention weights of the collapse layer as the temperature falls, with hardmax beside them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Final

from ..data_files import data_text
from ..evaluate import states
from ..examples import random_dataset, running_example
from ..fields import EXACT, Rational, fraction
from ..files import to_text
from ..interpolation.four_phase import four_phases
from ..sequences import Dataset
from .base import Explorer, Picture, choice, integer, log
from .data import EXAMPLE, RANDOM
from .drawing import Drawing

MOST: Final = 6

Weights = list[list[float]]


def _data(source: str, n: int, seed: int) -> Dataset:
    return running_example() if source == EXAMPLE else random_dataset(3, n, [1, 2, min(3, n)], 2, seed)


@lru_cache(maxsize=32)
def scores_of_the_collapse(source: str, n: int, seed: int, sequence: int) -> tuple[list[list[Fraction]], int]:
    """The exact scores ``<x_i, x_l>`` of one sequence in the collapse layer, and the number of its leaders.

    >>> scores, leaders = scores_of_the_collapse("running example", 4, 0, 3)
    >>> len(scores), leaders
    (4, 2)
    """
    data = _data(source, n, seed)
    j = min(sequence, data.N) - 1
    parts = four_phases(data)
    T = parts.transformer
    block = T.phases["separation"] + data.M
    passing = states(T, data.inputs[j], EXACT)
    tokens = next(s for s in passing if s.block == block and s.layer == "feed_forward").tokens
    places = [list(place) for place in parts.leaders.places.of(j)]
    rows: list[list[Rational]] = tokens.tolist()
    # Leaders first, in the order of their places; the others as they come.
    rows.sort(key=lambda x: places.index(x) if x in places else len(places))
    scores = [[fraction(sum((a * b for a, b in zip(x, y, strict=True)), 0 * x[0])) for y in rows] for x in rows]
    return scores, len(places)


def softmax_weights(scores: Sequence[Sequence[Fraction]], tau: float) -> Weights:
    """The softmax of every row, from exact score differences.

    >>> softmax_weights([[Fraction(0), Fraction(0)]], 1.0)
    [[0.5, 0.5]]
    """
    result = []
    for row in scores:
        best = max(row)
        weights = [math.exp(max(float((s - best) / Fraction(tau)), -745.0)) for s in row]
        result.append([w / sum(weights) for w in weights])
    return result


def hardmax_weights(scores: Sequence[Sequence[Fraction]]) -> Weights:
    """Uniform on all maximisers of every row.

    >>> hardmax_weights([[Fraction(1), Fraction(1), Fraction(0)]])
    [[0.5, 0.5, 0.0]]
    """
    return [[(s == max(row)) / row.count(max(row)) for s in row] for row in scores]


def picture(source: str, n: int, seed: int, sequence: int, tau: float) -> Picture:
    """Two tables of weights, one square per pair of tokens, the area growing with the weight."""
    scores, leaders = scores_of_the_collapse(source, n, seed, sequence)
    soft, hard = softmax_weights(scores, tau), hardmax_weights(scores)
    difference = max(abs(a - b) for s, h in zip(soft, hard, strict=True) for a, b in zip(s, h, strict=True))
    gap = min(max(row) - s for row in scores for s in row if s != max(row)) if len(scores) > 1 else Fraction(0)
    names = ["p", *(f"q{chr(0x2080 + k)}" for k in range(2, leaders + 1))]
    names += [f"x{chr(0x2080 + k)}" for k in range(1, len(scores) - leaders + 1)]
    draw = Drawing(
        640,
        330,
        f"Attention weights at temperature {tau:.3g}",
        f"Rows are tokens that look, columns tokens that are looked at; {leaders} leaders come first. The largest difference "
        f"between a softmax weight and the hardmax weight is {difference:.3g}.",
    )
    for left, heading, weights in ((40, "softmax", soft), (360, "hardmax", hard)):
        _table(draw, left, heading, names, weights)
    leak = max(1 - row[max(range(len(row)), key=row.__getitem__)] for row in soft)
    return Picture(
        draw.svg(),
        {
            "tokens": len(scores),
            "leaders": leaders,
            "smallest gap of scores": float(gap),
            "largest leak": leak,
            "bound (n − 1) e^(−gap/τ)": (len(scores) - 1) * math.exp(max(-float(gap) / tau, -745.0)),
            "largest difference": difference,
        },
        files={
            "data.json": lambda: data_text(_data(source, n, seed)),
            "transformer.json": lambda: to_text(four_phases(_data(source, n, seed)).transformer),
        },
    )


def _table(draw: Drawing, left: float, heading: str, names: Sequence[str], weights: Weights) -> None:
    size = 252 / len(names)
    draw.text(left + 126, 18, heading, size=15, anchor="middle", bold=True)
    for i, (name, row) in enumerate(zip(names, weights, strict=True)):
        draw.text(left - 8, 52 + (i + 0.5) * size + 5, name, size=14, anchor="end")
        draw.text(left + (i + 0.5) * size, 44, name, size=14, anchor="middle")
        for l, weight in enumerate(row):
            x, y = left + l * size, 52 + i * size
            draw.rectangle(x, y, size, size, stroke="currentColor", opacity=0.25)
            side = (size - 4) * math.sqrt(weight)
            if side > 0.5:
                draw.rectangle(
                    x + (size - side) / 2, y + (size - side) / 2, side, side, fill="var(--sequence-0, #0072B2)"
                )


EXPLORER = Explorer(
    "Attention in the collapse layer",
    "interp_lib.explorers.attention_weights:picture",
    (
        log("tau", "temperature τ", -2, 6, 4.5, 0.125, play=True),
        choice("source", "data", (EXAMPLE, RANDOM), EXAMPLE),
        integer("sequence", "sequence", 1, 3, 3),
        integer("n", "tokens per sequence", 2, MOST, 5, visible_when=("source", (RANDOM,))),
        integer("seed", "seed", 0, 99, 0, visible_when=("source", (RANDOM,))),
    ),
)
