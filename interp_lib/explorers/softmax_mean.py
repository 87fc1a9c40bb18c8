"""The softmax mean of some numbers against their maximum, with the sharp bound of Lemma S."""

from __future__ import annotations

import math

from ..infoflow.softmax_bounds import largest_gap, softmax_mean, witness
from .base import Explorer, Picture, integer, log, real
from .drawing import Drawing, Panel, Scale, colour


def picture(T: int, beta: float, spread: float) -> Picture:
    """``T`` equally spaced numbers and the worst ``T`` numbers, with their softmax means as ``β`` grows."""
    even = [1 - spread * k / max(1, T - 1) for k in range(T)]
    worst = [1 + z for z in witness(T, beta)]
    bound = largest_gap(T, beta)
    gap = 1 - softmax_mean(even, beta)
    betas = [10 ** (k / 20) for k in range(-10, 61)]
    draw = Drawing(
        640,
        400,
        "Gap between maximum and softmax mean",
        f"At inverse temperature {beta:.3g} the softmax mean of {T} equally spaced numbers lies {gap:.3g} below their "
        f"maximum; no {T} numbers can have a gap above {bound:.3g}, and the dashed familiar bound is {math.log(T) / beta:.3g}.",
    )
    low = 1e-5
    panel = Panel(draw, Scale(betas[0], betas[-1], 70, 620, log=True), Scale(low, 10, 340, 30, log=True))
    panel.frame(xlabel="inverse temperature β", ylabel="gap below the maximum")
    curves = [
        ([(b, largest_gap(T, b)) for b in betas], colour(1), "", "sharp bound"),
        ([(b, math.log(T) / b) for b in betas if T > 1], colour(4), "6 4", "log T / β"),
        ([(b, 1 - softmax_mean(even, b)) for b in betas], colour(0), "", "equally spaced"),
    ]
    for at, (points, stroke, dash, name) in enumerate(curves):
        visible = [panel(b, g) for b, g in points if low <= g <= 10]
        if visible:
            draw.polyline(visible, stroke=stroke, dash=dash)
        draw.line((430, 50 + 25 * at), (458, 50 + 25 * at), stroke=stroke, width=2, dash=dash)
        draw.text(466, 55 + 25 * at, name, size=14)
    x = panel.x(beta)
    draw.line((x, 30), (x, 340), dash="3 3", opacity=0.6)
    worst_gap = 1 - softmax_mean(worst, beta)
    if low <= worst_gap <= 10:
        draw.mark(*panel(beta, worst_gap), 1)
    if low <= gap <= 10:
        draw.mark(*panel(beta, gap), 0)
    return Picture(
        draw.svg(),
        {"gap": gap, "sharp bound": bound, "gap of the worst numbers": worst_gap, "log T / β": math.log(T) / beta},
    )


EXPLORER = Explorer(
    "How far below the maximum is a softmax mean?",
    "interp_lib.explorers.softmax_mean:picture",
    (
        integer("T", "numbers T", 2, 512, 8),
        log("beta", "inverse temperature β", -0.5, 3, 1, 0.05),
        real("spread", "spread", 0.1, 2, 1, 0.1),
    ),
)
