"""The barrier at work: a small one-layer model, the collision on the cube's boundary, two inputs it cannot tell apart."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from ..infoflow import barrier, collision, one_layer, recheck, targets
from .base import Explorer, Picture, Value, choice, integer, real
from .drawing import Drawing, Panel, Scale, colour

MEDIAN, PRODUCT = "the middle one of numbers", "smallest inner product"
TARGETS: Final = (MEDIAN, PRODUCT)
STEPS: Final = 25


@lru_cache(maxsize=32)
def _attack(
    target: str, kind: one_layer.RandomKind, heads: int, dimension: int, seed: int
) -> tuple[one_layer.OneLayer, targets.Revealed, collision.Attack, recheck.Recheck | None]:
    q = (dimension + 1) * heads
    if target == MEDIAN:
        revealed = targets.reveal_kth_largest(q + 1, 2 * q + 1)
    else:
        basis = [[int(i == k) for i in range(q + 1)] for k in range(q + 1)]
        revealed = targets.reveal_smallest_product(basis, q + 2)
    length, token = revealed.target.length, revealed.target.token_dimension
    model = one_layer.random_model(seed, heads, dimension, length, token_dimension=token, kind=kind)
    # A few starts only: where they fail, the picture says so at once instead of making the reader wait.
    attack = barrier.refute(model, revealed, starts=4, methods=("newton",))
    again = None if attack.certificate is None else recheck.recheck(model, revealed, attack.certificate)
    return model, revealed, attack, again


def picture(target: str, kind: one_layer.RandomKind, heads: int, dimension: int, seed: int, along: float) -> Picture:
    """The parameters of both inputs, the difference of their sums on the way, their states and their targets.

    ``along`` walks from the middle of the cube (0) to the collision (1) on a straight line.
    """
    model, revealed, attack, again = _attack(target, kind, heads, dimension, seed)
    numbers: dict[str, Value] = {
        "sums (n + 1) h": model.sums,
        "revealed dimension": revealed.dimension,
        "error forced": float(revealed.error),
        "collision": attack.status,
    }
    certificate = attack.certificate
    if certificate is None:
        draw = Drawing(640, 120, "No certified collision", attack.explain())
        draw.text(320, 66, "This search proved no collision; nothing is claimed.", size=16, anchor="middle")
        return Picture(draw.svg(), {**numbers, "reason": attack.reason})
    u = [float(p.centre) for p in certificate.left]
    here = [along * x for x in u]
    face = certificate.face or 0
    sides = [revealed.sequence(values, face, one_layer.FLOATS) for values in (here, [-x for x in here])]
    states = [model.state(side) for side in sides]
    values = [revealed.target.value(side, one_layer.FLOATS) for side in sides]
    assert model.read_out is not None
    answers = [model.read_out(state, one_layer.FLOATS) for state in states]
    apart = max(abs(a - b) for a, b in zip(*states, strict=True))
    draw = Drawing(
        640,
        400,
        "Two inputs with equal states",
        f"{len(u)} curve parameters of the left input and their negatives in the right one. At the collision the states agree, the "
        f"targets are {values[0]:.3g} and {values[1]:.3g}, and the model answers {answers[0]:.3g} both times.",
    )
    _draw_parameters(draw, here, face)
    _draw_way(draw, _way(target, kind, heads, dimension, seed), along)
    _draw_outcome(draw, states, values, answers)
    numbers |= {
        # Below that it is rounding, which differs from machine to machine.
        "states differ by": apart if apart > 1e-12 else 0.0,
        "target, left": values[0],
        "target, right": values[1],
        "answer, left": answers[0],
        "answer, right": answers[1],
        "certified gap": float(certificate.gap),
        "any read-out errs by": float(certificate.error),
        "proved again": "yes" if again is not None and again.status == "confirmed" else "no",
    }
    return Picture(draw.svg(), numbers, {}, {"certificate.json": lambda: certificate_text(certificate)})


def certificate_text(certificate: collision.Certificate) -> str:
    """Everything that a second program needs to prove the certificate again, fractions as strings.

    >>> model, revealed, attack, _ = _attack(PRODUCT, "tanh", 1, 1, 0)
    >>> sorted(json.loads(certificate_text(attack.certificate)))
    ['bits', 'face', 'gap', 'kind', 'left', 'radius', 'right', 'target', 'words']
    """
    sides = {
        name: [{"centre": str(p.centre), "unknown": p.unknown} for p in side]
        for name, side in (("left", certificate.left), ("right", certificate.right))
    }
    plain = {"kind": certificate.kind, "target": certificate.target, "face": certificate.face, "bits": certificate.bits}
    numbers = {"radius": str(certificate.radius), "gap": str(certificate.gap)}
    return json.dumps({**plain, **sides, **numbers, "words": certificate.explain()}, indent=1)


def _draw_parameters(draw: Drawing, here: list[float], face: int) -> None:
    m = len(here)
    view = Panel(draw, Scale(-1.1, 1.1, 44, 300), Scale(m + 0.6, 0.4, 200, 34))
    view.frame(heading="curve parameters u", ticks=False)
    for tick in (-1, 0, 1):
        draw.text(view.x(tick), 217, str(tick), size=13, anchor="middle")
    for t, value in enumerate(here):
        draw.line(view(-1, t + 1), view(1, t + 1), opacity=0.35)
        draw.mark(*view(-value, t + 1), 1, size=6, hollow=True)
        draw.mark(*view(value, t + 1), 0, size=6)
        if t == face:
            draw.text(36, view.y(t + 1) + 5, "★", size=14, anchor="end")


@lru_cache(maxsize=32)
def _way(
    target: str, kind: one_layer.RandomKind, heads: int, dimension: int, seed: int
) -> tuple[tuple[float, float], ...]:
    """The largest difference of the states along the line from the middle to the collision."""
    model, revealed, attack, _ = _attack(target, kind, heads, dimension, seed)
    assert attack.certificate is not None
    u, face = [float(p.centre) for p in attack.certificate.left], attack.certificate.face or 0
    curve = []
    for k in range(STEPS):
        s = k / (STEPS - 1)
        sides = [revealed.sequence([sign * s * x for x in u], face, one_layer.FLOATS) for sign in (1, -1)]
        states = [model.state(side) for side in sides]
        curve.append((s, max(abs(a - b) for a, b in zip(*states, strict=True))))
    return tuple(curve)


def _draw_way(draw: Drawing, curve: Sequence[tuple[float, float]], along: float) -> None:
    top = max(1e-9, *(v for _, v in curve)) * 1.1
    view = Panel(draw, Scale(0, 1, 372, 628), Scale(0, top, 200, 34))
    view.frame(heading="difference of the states")
    draw.text(500, 236, "0 the middle — 1 the collision", size=13, anchor="middle")
    draw.polyline([view(s, v) for s, v in curve], stroke=colour(2))
    x = view.x(along)
    draw.line((x, 34), (x, 200), dash="3 3", opacity=0.7)


def _draw_outcome(draw: Drawing, states: list[list[float]], values: list[float], answers: list[float]) -> None:
    low = min(*values, *answers)
    high = max(*values, *answers)
    margin = 0.1 * (high - low) or 1
    view = Panel(draw, Scale(low - margin, high + margin, 110, 628), Scale(0, 3, 370, 262))
    view.frame(ticks=False)
    for value, text in view.x.ticks():
        draw.line((view.x(value), 370), (view.x(value), 374), opacity=0.6)
        draw.text(view.x(value), 388, text, size=13, anchor="middle")
    for row, (label, pair) in enumerate((("targets", values), ("answers", answers))):
        y = 298 + 40 * row
        draw.text(102, y + 5, label, size=14, anchor="end")
        draw.line((view.x(pair[0]), y), (view.x(pair[1]), y), width=2, opacity=0.5)
        draw.mark(view.x(pair[1]), y, 1, size=9, hollow=True)
        draw.mark(view.x(pair[0]), y, 0, size=6)
    draw.text(
        320, 254, f"left: filled, right: hollow; the state has {len(states[0])} numbers", size=13, anchor="middle"
    )


EXPLORER = Explorer(
    "Two inputs that one layer cannot tell apart",
    "interp_lib.explorers.collision:picture",
    (
        real("along", "way to the collision", 0, 1, 1, 0.025, play=True),
        choice("target", "target", TARGETS, PRODUCT),
        choice("kind", "encoder", one_layer.RANDOM_KINDS, "tanh"),
        integer("heads", "heads h", 1, 2, 1),
        integer("dimension", "head dimension n", 1, 2, 1),
        integer("seed", "seed", 0, 99, 0),
    ),
)
