"""Theorem 1.8 as the temperature moves: clouds, clusters against their plateaus, distance and certificate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Final, final

from ..certificates import Certificate, verify
from ..fields import fraction
from ..interpolation.critical import Break, measured_critical_temperature
from ..interpolation.softmax import SoftmaxPhases, softmax_phases
from ..layers import Transformer
from ..sequences import Dataset
from .base import Explorer, Picture, Value, flag, integer, log
from .data import EXAMPLE, as_floats, chosen_data, chosen_targets, data_controls, downloads, flat
from .drawing import Drawing, Pair, Panel, Scale, colour

MOST_SEQUENCES: Final = 4
MOST_TOKENS: Final = 4
MOST_TARGETS: Final = 2
NAMES: Final = {
    "input": "the data",
    "separation": "separation",
    "leaders": "leaders leave",
    "collapse": "collapse",
    "line": "on the line",
    "interpolation": "delivery",
}
EXPONENTS: Final = (-6.0, 2.0)
CURVE: Final = 9
FLOOR: Final = 1e-16

Rows = list[list[float]]


def float_trace(blocks: FloatBlocks, X: Sequence[Sequence[float]], temperature: float) -> list[Rows]:
    """The tokens before the first and after every block in plain floats, for drawing where there is no NumPy.

    >>> from ..layers import Block
    >>> float_trace(float_blocks(Transformer([Block.identity(2)])), [[1.0, 2.0]], 1.0)
    [[[1.0, 2.0]], [[1.0, 2.0]]]
    """
    tokens = [list(map(float, x)) for x in X]
    states = [tokens]
    for eta, units, attention in blocks:
        tokens = [_feed_forward(x, eta, units) for x in tokens]
        if attention is not None:
            tokens = _attend(tokens, *attention, temperature)
        states.append(tokens)
    return states


_Attention = tuple[float, Rows, Rows]
# For each direction that the units of a layer read: the direction, and a bias and a column for each of its units.
_Units = list[tuple[list[float], list[tuple[float, list[float]]]]]


FloatBlocks = list[tuple[float, _Units, _Attention | None]]


def float_blocks(T: Transformer) -> FloatBlocks:
    """The weights of a transformer as floats, units grouped by the direction that they read.

    >>> from ..layers import Block
    >>> float_blocks(Transformer([Block.identity(2)]))
    [(1.0, [], None)]
    """
    blocks = []
    for block in T.blocks:
        ff, sa = block.feed_forward, block.attention
        attention = None if sa.is_identity else (float(sa.rho), _floats(sa.A.dense()), _floats(sa.V.dense()))
        grouped: dict[tuple[Fraction, ...], list[tuple[float, list[float]]]] = {}
        for u, b, w in zip(ff.U, ff.b, zip(*ff.W, strict=True), strict=True):
            grouped.setdefault(u, []).append((float(b), list(map(float, w))))
        blocks.append((float(ff.eta), [(list(map(float, u)), units) for u, units in grouped.items()], attention))
    return blocks


def _floats(rows: Sequence[Sequence[Fraction]]) -> Rows:
    return [list(map(float, row)) for row in rows]


def _dot(x: Sequence[float], y: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(x, y, strict=True))


def _feed_forward(x: list[float], eta: float, units: _Units) -> list[float]:
    result = [eta * v for v in x]
    for direction, group in units:
        t = _dot(direction, x)
        for bias, column in group:
            if t + bias > 0:
                result = [v + (t + bias) * w for v, w in zip(result, column, strict=True)]
    return result


def _attend(tokens: Rows, rho: float, A: Rows, V: Rows, temperature: float) -> Rows:
    moved = []
    for x in tokens:
        looking = [_dot(row, x) for row in A]
        scores = [_dot(looking, y) for y in tokens]
        best = max(scores)
        weights = [math.exp(max((s - best) / temperature, -745.0)) for s in scores]
        total = sum(weights)
        mean = [
            sum(w * v for w, v in zip(weights, column, strict=True)) / total for column in zip(*tokens, strict=True)
        ]
        moved.append([rho * v + _dot(row, mean) for v, row in zip(x, V, strict=True)])
    return moved


def distance(points: Sequence[Sequence[float]], targets: Sequence[Sequence[float]]) -> float:
    """The Hausdorff distance in floats.

    >>> distance([[0.0, 0.0]], [[3.0, 4.0]])
    5.0
    """
    return max(
        max(min(math.dist(x, y) for y in right) for x in left) for left, right in ((points, targets), (targets, points))
    )


@final
class Study:
    """One data set with its softmax interpolant; everything that does not depend on the chosen temperature."""

    __slots__ = ("_blocks", "curve", "data", "inputs", "line", "parts", "targets")

    def __init__(self, data: Dataset) -> None:
        self.data = data
        self.parts: SoftmaxPhases = softmax_phases(data)
        self._blocks = float_blocks(self.parts.transformer)
        self.inputs = [as_floats(X) for X in data.inputs]
        self.targets = [as_floats(Y) for Y in data.outputs]
        phases = self.parts.transformer.phases
        self.line = phases["separation"] + phases["leaders"] + phases["collapse"] + 1
        low, high = EXPONENTS
        taus = [10 ** (low + (high - low) * k / (CURVE - 1)) for k in range(CURVE)]
        self.curve = [(tau, self.worst(tau)) for tau in taus]

    def clouds(self, tau: float) -> list[list[Rows]]:
        """For each sequence the tokens after every block."""
        return [float_trace(self._blocks, X, tau) for X in self.inputs]

    def worst(self, tau: float) -> float:
        """The largest Hausdorff distance of an output from its target, measured in floats."""
        return max(distance(states[-1], Y) for states, Y in zip(self.clouds(tau), self.targets, strict=True))


@lru_cache(maxsize=8)
def _study(source: str, N: int, n: int, m: tuple[int, ...], d: int, seed: int) -> Study:
    return Study(chosen_data(source, N, n, m, d, seed, largest=1))


@lru_cache(maxsize=64)
def _certificate(study: Study, tau: float) -> Certificate:
    return verify(study.parts.transformer, study.data, Fraction(tau))


@lru_cache(maxsize=8)
def _bracket(study: Study) -> Break:
    return measured_critical_temperature(study.parts.transformer, study.data)


def radii(study: Study, clouds: Sequence[Sequence[Rows]]) -> list[tuple[int, float]]:
    """For each cluster its sequence, and how far it reaches from its place, in units of the room on its interval.

    A value below 1 means that the whole cluster lies where the layer is constant.

    >>> from ..examples import running_example
    >>> study = Study(running_example())
    >>> all(value < 1 for _, value in radii(study, study.clouds(1e-3)))
    True
    """
    line = study.line
    found = []
    for interval in study.parts.intervals:
        own = [i for i in study.parts.intervals if i.sequence == interval.sequence]
        centre, room = float(fraction(interval.centre)), float(fraction(interval.room))
        points = [
            x[0]
            for x in clouds[interval.sequence][line]
            if min(own, key=lambda i: abs(float(fraction(i.centre)) - x[0])) is interval
        ]
        reach = max((abs(p - centre) for p in points), default=math.inf)
        found.append((interval.sequence, reach / room))
    return found


def picture(
    source: str, N: int, n: int, d: int, seed: int, tau: float, step: int, bracket: bool, **targets: int
) -> Picture:
    """Clouds after one phase, the distance curve, and the clusters against their plateaus, at temperature ``tau``."""
    study = _study(source, N, n, chosen_targets(targets, N), d, seed)
    data, T = study.data, study.parts.transformer
    clouds = study.clouds(tau)
    step = min(max(int(step), 0), T.depth)
    name = NAMES[T.phase_of(step - 1) if step else "input"]
    certificate = _certificate(study, tau)
    bound = float(study.parts.bound.temperature)
    found = _bracket(study) if bracket else None
    reached = radii(study, clouds)
    worst = max(distance(states[-1], Y) for states, Y in zip(clouds, study.targets, strict=True))
    inside = sum(value < 1 for _, value in reached)
    draw = Drawing(
        640,
        560,
        f"Softmax at temperature {tau:.3g}",
        f"Tokens after block {step} of {T.depth} ({name}) at temperature {tau:.3g}; the certificate says {certificate.status}. {inside} of {data.M} clusters lie "
        f"inside the interval on which the delivering layer is constant. The estimates promise exactness up to {bound:.3g}."
        + ("" if data.d == 2 else f" The first two of {data.d} coordinates are drawn."),
    )
    _draw_clouds(draw, study, [states[step] for states in clouds], f"block {step}: {name}")
    _draw_curve(draw, study, tau, worst, found)
    _draw_radii(draw, reached)
    draw.legend(20, 552, [f"X{chr(0x2080 + j)}" for j in range(1, data.N + 1)], step=62)
    if data.d > 2:
        draw.text(634, 552, f"coordinates 1, 2 of {data.d}", size=14, anchor="end")
    limiting = study.parts.bound.limiting
    numbers: dict[str, Value] = {
        "certificate": certificate.status,
        "bits": certificate.bits or 0,
        "distance": 0.0 if certificate.status == "certified" else (certificate.distance or 0.0),
        "critical temperature at least": bound,
        "limited by": "nothing" if limiting is None else f"{limiting.layer}, block {limiting.block}",
        "clusters inside": f"{inside} of {data.M}",
        "blocks L": T.depth,
        "at most": 2 * data.M + data.N,
    }
    if found is not None:
        numbers["certified at"] = float(found.below)
        numbers["refuted at"] = "never" if found.above is None else float(found.above)
    return Picture(draw.svg(), numbers, {"step": (0, T.depth)}, downloads(data, T, certificate))


def _draw_clouds(draw: Drawing, study: Study, clouds: Sequence[Rows], heading: str) -> None:
    everything: list[Pair] = [flat(x) for cloud in clouds for x in cloud]
    everything += [flat(y) for Y in study.targets for y in Y]
    reach = 1.15 * max(max(map(abs, x)) for x in everything) or 1.0
    unit = max(max(map(abs, flat(x))) for X in study.inputs for x in X) or 1.0
    far = reach > 30 * unit
    low = -reach if far or min(min(x) for x in everything) < 0 else -0.05 * reach
    axes = [Scale(low, reach, 66, 332, unit=unit if far else 0), Scale(low, reach, 296, 30, unit=unit if far else 0)]
    panel = Panel(draw, *axes)
    panel.frame(heading=heading)
    if not far:
        for j, Y in enumerate(study.targets):
            for y in Y:
                draw.mark(*panel(*flat(y)), j, size=7.5, hollow=True)
    for j, cloud in enumerate(clouds):
        for x in cloud:
            draw.mark(*panel(*flat(x)), j, size=5.5 - 0.7 * j, opacity=0.8)


def _draw_curve(draw: Drawing, study: Study, tau: float, worst: float, found: Break | None) -> None:
    bottom, top = FLOOR, 10 * max(1.0, max(value for _, value in study.curve))
    low, high = 10 ** EXPONENTS[0], 10 ** EXPONENTS[1]
    panel = Panel(draw, Scale(low, high, 388, 612, log=True), Scale(bottom, top, 296, 30, log=True))
    panel.frame(xlabel="temperature τ", heading="distance to targets")
    draw.text(394, 288, "0 is drawn here", size=13)
    bound = float(study.parts.bound.temperature)
    if low < bound:
        edge = panel.x(min(bound, high))
        draw.rectangle(panel.x.start, 30, edge - panel.x.start, 266, fill=colour(2), opacity=0.13)
    if found is not None and found.above is not None and low < found.below < high:
        x = panel.x(float(found.below))
        draw.line((x, 30), (x, 296), stroke=colour(1), width=2)
    draw.polyline([panel(t, min(max(v, bottom), top)) for t, v in study.curve], stroke=colour(0))
    x = panel.x(tau)
    draw.line((x, 30), (x, 296), dash="3 3", opacity=0.7)
    draw.circle(x, panel.y(min(max(worst, bottom), top)), 5, fill="currentColor")


def _draw_radii(draw: Drawing, reached: Sequence[tuple[int, float]]) -> None:
    low, high = 1e-8, 1e4
    panel = Panel(draw, Scale(0, len(reached) + 1, 60, 628), Scale(low, high, 510, 372, log=True))
    panel.frame(ticks=False, ylabel="reach of each cluster / room on its interval")
    for value, label in ((1e-8, "10⁻⁸"), (1e-4, "10⁻⁴"), (1.0, "1"), (1e4, "10⁴")):
        draw.text(53, panel.y(value) + 5, label, size=13, anchor="end")
    draw.line(panel(0, 1), panel(len(reached) + 1, 1), stroke=colour(1), dash="6 4", width=1.6)
    for k, (j, value) in enumerate(reached, start=1):
        at = min(max(value, low), high)
        draw.line(panel(k, low), panel(k, at), stroke=colour(j), width=2)
        draw.mark(*panel(k, at), j, size=6, hollow=value >= 1)


EXPLORER = Explorer(
    "How cold is cold enough?",
    "interp_lib.explorers.softmax:picture",
    (
        log("tau", "temperature τ", *EXPONENTS, 0.5, 0.125),
        integer("step", "after block", 0, 40, 6, play=True),
        *data_controls(
            EXAMPLE,
            (MOST_SEQUENCES, 3),
            (MOST_TOKENS, 4),
            [1 + j % 2 for j in range(1, MOST_SEQUENCES + 1)],
            MOST_TARGETS,
            8,
        ),
        flag("bracket", "bracket the break point", False),
    ),
)
