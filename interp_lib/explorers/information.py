"""Information sets growing layer by layer, for modes that the reader chooses."""

from __future__ import annotations

import random
from typing import Final

from ..infoflow.cost_law import decoding_cost
from ..infoflow.information import Architecture, Global, MaxPosition, Mode, Specific, follow
from .base import Explorer, Picture, Value, choice, flag, integer
from .drawing import Drawing, colour

RETRIEVE, AVERAGE, FIXED, IDLE = "retrieve an extreme", "aggregate all", "look at 1 and 2", "idle"
MODES: Final = (RETRIEVE, AVERAGE, FIXED, IDLE)
MOST_LAYERS: Final = 3
HEADS: Final = 2


def mode_of(name: str, T: int, rng: random.Random) -> Mode | None:
    """The mode that a word stands for; an extreme is attained at a position that the seed chooses, one for each query.

    >>> mode_of("idle", 3, random.Random(0)) is None
    True
    """
    if name == RETRIEVE:
        return MaxPosition({t: rng.randint(1, T) for t in range(1, T + 2)})
    if name == AVERAGE:
        return Global()
    return Specific(frozenset({1, min(2, T)})) if name == FIXED else None


def picture(T: int, layers: int, n: int, d: int, positional: bool, seed: int, **modes: str) -> Picture:
    """One table per layer: the row of a position marks the positions in its information set."""
    rng = random.Random(seed)
    plan, refused = [], False
    for l in range(1, layers + 1):
        chosen = []
        for h in range(1, HEADS + 1):
            mode = mode_of(modes[f"l{l}h{h}"], T, rng)
            if isinstance(mode, Specific) and not positional:
                refused, mode = True, None
            if mode is not None:
                chosen.append(mode)
        plan.append(chosen)
    architecture = Architecture(T, (HEADS,) * layers, n, positional)
    history = follow(architecture, plan)
    draw = Drawing(
        640,
        60 + 600 / (layers + 1) + 10,
        "Information sets, layer by layer",
        "; ".join(
            f"after layer {l} the classification token reaches {len(history.at(T + 1, l))} of {T + 1} positions"
            for l in range(layers + 1)
        )
        + ".",
    )
    size = (600 / (layers + 1) - 14) / (T + 1)
    for l in range(layers + 1):
        left = 28 + l * (612 / (layers + 1))
        draw.text(
            left + size * (T + 1) / 2, 18, "input" if l == 0 else f"layer {l}", size=14, anchor="middle", bold=True
        )
        for t in range(1, T + 2):
            y = 28 + (t - 1) * size
            if l == 0:
                draw.text(22, y + size * 0.7, "c" if t == T + 1 else str(t), size=13, anchor="end")
            known, before = history.at(t, l), history.at(t, max(0, l - 1))
            for s in range(1, T + 2):
                x = left + (s - 1) * size
                draw.rectangle(x, y, size, size, stroke="currentColor", opacity=0.25)
                if s in known:
                    old = s in before or l == 0
                    inset = 1.5 if old else 0.22 * size
                    fill = colour(0) if old else colour(1)
                    draw.rectangle(x + inset, y + inset, size - 2 * inset, size - 2 * inset, fill=fill)
    draw.text(
        28,
        50 + 600 / (layers + 1),
        "row: who knows; column: what; c: the output; small: new in this layer",
        size=13,
    )
    reached = sorted(history.output - {T + 1})
    E = HEADS * n
    exponent = decoding_cost(len(reached), d, E)
    numbers: dict[str, Value] = {
        "output reaches": f"{len(reached)} of {T} tokens",
        "state dimension E": E,
        "numbers to decode": len(reached) * d,
        "exponent of 1/ε": float(exponent),
        "parameters at ε = 0.01": float(100.0 ** float(exponent)),
        "pairs compared": architecture.comparisons,
    }
    if refused:
        numbers["refused"] = "fixed positions need a positional code"
    return Picture(draw.svg(), numbers)


EXPLORER = Explorer(
    "What flows where",
    "interp_lib.explorers.information:picture",
    (
        integer("T", "tokens T", 2, 10, 6),
        integer("layers", "layers", 1, MOST_LAYERS, 2),
        *(
            choice(f"l{l}h{h}", f"layer {l}, head {h}", MODES, RETRIEVE if h == 1 else IDLE, visible_when=("layers", l))
            for l in range(1, MOST_LAYERS + 1)
            for h in range(1, HEADS + 1)
        ),
        flag("positional", "positional code", False),
        integer("n", "head dimension n", 1, 8, 1),
        integer("d", "token dimension d", 1, 4, 1),
        integer("seed", "seed", 0, 99, 0),
    ),
)
