"""One attention layer on a few tokens in the plane: who looks where, and who goes to whom.

The layer has ``ρ = 0`` and ``V = I``, as in the clustering lemmas.  Hardmax is computed exactly with the library's own
layers; softmax weights come from `math.exp` on exact scores.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from fractions import Fraction

from ..evaluate import apply_attention
from ..fields import EXACT, rational, rational_matrix
from ..files import to_text
from ..layers import Block, FeedForward, ScaledLowRank, SelfAttention, Transformer
from .base import Explorer, Parameter, Picture, choice, integer, log, real
from .drawing import Drawing, Pair, Panel, Scale, colour

IDENTITY, RANK_ONE, BOTH = "I", "v vᵀ", "α I + v vᵀ"
MATRICES = (IDENTITY, RANK_ONE, BOTH)
MOST = 6
REACH = 4.0
GRAIN = 64

Vector = tuple[Fraction, ...]


def direction(angle: float) -> Vector:
    """A dyadic vector near ``(cos angle, sin angle)``, ``angle`` in degrees; right angles are exact.

    >>> direction(90), direction(45)[0] == direction(45)[1]
    ((Fraction(0, 1), Fraction(1, 1)), True)
    """
    turn = math.radians(angle)
    return tuple(Fraction(round(GRAIN * part), GRAIN) for part in (math.cos(turn), math.sin(turn)))


def score_matrix(matrix: str, angle: float, scale: float) -> ScaledLowRank:
    """The matrix ``A`` that the reader chose.

    >>> score_matrix("α I + v vᵀ", 0, -0.5).dense()
    ((Fraction(1, 2), Fraction(0, 1)), (Fraction(0, 1), Fraction(-1, 2)))
    """
    v = direction(angle)
    if matrix == IDENTITY:
        return ScaledLowRank.identity(2)
    return ScaledLowRank(scale if matrix == BOTH else 0, [[a] for a in v], [[a] for a in v])


def _layer(A: ScaledLowRank) -> SelfAttention:
    return SelfAttention(0, A, ScaledLowRank.identity(2))


def hardmax_step(A: ScaledLowRank, tokens: Sequence[Vector]) -> list[Vector]:
    """Where every token goes under hardmax with ``ρ = 0`` and ``V = I``, exactly.

    >>> two = [(Fraction(1), Fraction(0)), (Fraction(3), Fraction(1))]
    >>> hardmax_step(ScaledLowRank.identity(2), two) == [two[1], two[1]]
    True
    """
    return list(EXACT.result(apply_attention(_layer(A), rational_matrix(tokens), EXACT, rational(0))))


def softmax_step(A: ScaledLowRank, tokens: Sequence[Vector], tau: float) -> list[Pair]:
    """The same under softmax at temperature ``tau``: exact scores, float exponentials.

    >>> softmax_step(ScaledLowRank.zero(2), [(Fraction(0), Fraction(0)), (Fraction(1), Fraction(2))], 1.0)
    [(0.5, 1.0), (0.5, 1.0)]
    """
    dense = A.dense()
    means = []
    for x in tokens:
        looking = [sum(a * b for a, b in zip(row, x, strict=True)) for row in dense]
        scores = [sum(a * b for a, b in zip(looking, y, strict=True)) for y in tokens]
        top = max(scores)
        weights = [math.exp(float(score - top) / tau) for score in scores]
        total = sum(weights)
        first, second = (sum(w * float(y[c]) for w, y in zip(weights, tokens, strict=True)) / total for c in (0, 1))
        means.append((first, second))
    return means


def picture(
    matrix: str, angle: float, scale: float, attention: str, tau: float, n: int, **coordinates: float
) -> Picture:
    """``n`` tokens at ``(x1, y1), (x2, y2), …``, and an arrow from each to where it goes."""
    n = min(max(int(n), 1), MOST)
    tokens = [(Fraction(coordinates[f"x{i}"]), Fraction(coordinates[f"y{i}"])) for i in range(1, n + 1)]
    A = score_matrix(matrix, angle, scale)
    hard = hardmax_step(A, tokens)
    hard_points = [(float(x), float(y)) for x, y in hard]
    soft = attention == "softmax"
    goals = softmax_step(A, tokens, tau) if soft else hard_points
    starts = [(float(x), float(y)) for x, y in tokens]
    moves = [math.dist(a, b) for a, b in zip(starts, goals, strict=True)]
    clusters = len(set(hard))
    same = "no token moves" if hard == tokens else f"they form {clusters} cluster{'s' if clusters > 1 else ''}"

    draw = Drawing(
        640,
        500,
        "Tokens and where attention sends them",
        f"{n} tokens in the plane with A = {matrix} and {attention}. Under hardmax {same}. "
        + "; ".join(
            f"token {i} at ({_short(a[0])}, {_short(a[1])}) goes to ({_short(b[0])}, {_short(b[1])})"
            for i, (a, b) in enumerate(zip(starts, goals, strict=True), start=1)
        )
        + ".",
    )
    panel = Panel(draw, Scale(-5.6, 5.6, 40, 630), Scale(-4.35, 4.35, 468.3, 10))  # equal units
    panel.frame()
    _axes(panel)
    if matrix == IDENTITY:
        _circle(panel, max(math.hypot(*p) for p in starts))
    else:
        _line_of_v(panel, angle)
    _looks(panel, A, tokens, starts)
    for i, (start, goal) in enumerate(zip(starts, goals, strict=True)):
        if moves[i] > 1e-9:
            end = panel(*goal) if soft else _before(panel(*start), panel(*goal), 14)
            draw.line(panel(*start), end, stroke=colour(i), width=2.2, arrow=True)
    for point in sorted(set(hard_points)):
        draw.circle(*panel(*point), 13, width=1.6, dash="4 3" if soft else "")
    for i, start in enumerate(starts):
        draw.mark(*panel(*start), i, size=7)
        x, y = panel(*start)
        draw.text(x + 13, y - 12, str(i + 1), size=14)
    for i, start in enumerate(starts, start=1):
        panel.handle(*start, f"x{i}", f"y{i}", f"token {i}")
    numbers: dict[str, int | float | str | bool] = {
        "tokens": len(set(tokens)),
        "clusters under hardmax": clusters,
        "tokens that stay": sum(goal == start for goal, start in zip(hard, tokens, strict=True)),
        "longest move": max(moves),
    }
    if soft:
        numbers["farthest from hardmax"] = max(math.dist(a, b) for a, b in zip(goals, hard_points, strict=True))
    files = {
        "tokens.json": lambda: json.dumps([[str(v) for v in token] for token in tokens]),
        "transformer.json": lambda: to_text(Transformer([Block(FeedForward.identity(2), _layer(A))])),
    }
    return Picture(draw.svg(), numbers, files=files)


def _short(value: float) -> str:
    return f"{value:.3g}"


def _before(start: Pair, end: Pair, gap: float) -> Pair:
    """The point ``gap`` pixels short of ``end``, so that an arrow stops at the ring and not under the mark."""
    length = math.dist(start, end)
    part = max(length - gap, 0) / length if length else 0
    return start[0] + part * (end[0] - start[0]), start[1] + part * (end[1] - start[1])


def _axes(panel: Panel) -> None:
    for start, end in (((-REACH, 0), (REACH, 0)), ((0, -REACH), (0, REACH))):
        panel.drawing.line(panel(*start), panel(*end), width=1, opacity=0.35)


def _circle(panel: Panel, radius: float) -> None:
    x, y = panel(0, 0)
    panel.drawing.circle(x, y, panel.x(radius) - x, dash="2 5", opacity=0.6)


def _line_of_v(panel: Panel, angle: float) -> None:
    """The direction ``v`` as an arrow, and the line across it that parts the two sides."""
    vx, vy = (float(part) for part in direction(angle))
    panel.drawing.line(panel(0, 0), panel(1.2 * vx, 1.2 * vy), width=3, arrow=True)
    x, y = panel(1.45 * vx, 1.45 * vy)
    panel.drawing.text(x, y + 5, "v", size=16, anchor="middle", bold=True)
    reach = REACH / max(abs(vx), abs(vy))
    panel.drawing.line(panel(reach * vy, -reach * vx), panel(-reach * vy, reach * vx), dash="2 5", opacity=0.6)


def _looks(panel: Panel, A: ScaledLowRank, tokens: Sequence[Vector], starts: Sequence[Pair]) -> None:
    """A short dotted stroke from each token in the direction ``A x`` in which it looks."""
    dense = A.dense()
    for token, (x, y) in zip(tokens, starts, strict=True):
        dx, dy = (float(sum(a * b for a, b in zip(row, token, strict=True))) for row in dense)
        length = math.hypot(dx, dy)
        if length > 0:
            end = panel(x + 0.7 * dx / length, y + 0.7 * dy / length)
            panel.drawing.line(panel(x, y), end, width=1.6, dash="1.5 3", opacity=0.8)


def explorer(
    title: str,
    matrix: str,
    tokens: Sequence[Pair],
    *,
    angle: float = 30,
    scale: float = -0.5,
    attention: str = "hardmax",
    exponent: float = -0.5,
) -> Explorer:
    """The explorer with its own starting values; ``tokens`` are at most six points.

    >>> explorer("Two tokens", "I", [(1, 1), (2, 2)]).picture().numbers["clusters under hardmax"]
    1
    """
    spare = [(-3.5, -3.5), (3.5, -3.5), (-3.5, 3.5), (0.5, -3.5), (-3.5, 0.5), (3.5, 0.5)]
    places = [*tokens, *spare[len(tokens) :]]
    coordinates: list[Parameter] = []
    for i, place in enumerate(places, start=1):
        for axis, value in zip("xy", place, strict=True):
            label = f"token {i}, {axis}"
            coordinates.append(
                real(f"{axis}{i}", label, -REACH, REACH, value, 0.25, visible_when=("n", i), advanced=True)
            )
    return Explorer(
        title,
        "interp_lib.explorers.clustering:picture",
        (
            choice("matrix", "matrix A", MATRICES, matrix),
            real("angle", "angle of v", 0, 360, angle, 5, visible_when=("matrix", (RANK_ONE, BOTH))),
            real("scale", "α", -2, 2, scale, 0.125, visible_when=("matrix", (BOTH,))),
            choice("attention", "attention", ("hardmax", "softmax"), attention),
            log("tau", "temperature τ", -3, 3, exponent, 0.125, visible_when=("attention", ("softmax",))),
            integer("n", "tokens", 1, MOST, len(tokens)),
            *coordinates,
        ),
    )


EXPLORER = explorer(
    "Who goes to whom? Drag the tokens, choose A",
    RANK_ONE,
    [(2.5, 1.0), (-1.0, 2.0), (-3.0, -0.5), (1.0, -2.5), (1.5, -0.75)],
)
