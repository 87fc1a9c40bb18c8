"""Theorem S step by step: labels, contexts, thresholds, the line, delivery."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import ceil
from typing import Final, final

from ..certificates import Certificate, verify
from ..fields import Rational, fraction
from ..interpolation.line import evaluate_at
from ..interpolation.mean_pooling import MeanPhases, mean_phases
from ..sequences import Dataset
from .base import Explorer, Picture, Value, choice, integer
from .data import (
    RANDOM,
    Cloud,
    Steps,
    as_floats,
    chosen_data,
    chosen_targets,
    data_controls,
    downloads,
    flat,
    plane,
)
from .drawing import Drawing, Pair, Panel, Scale, colour, panel

MOST_SEQUENCES: Final = 5
MOST_TOKENS: Final = 6
MOST_TARGETS: Final = 3
LABELS, CONTEXTS, THRESHOLDS, LINE, DELIVERY = "labels", "contexts", "thresholds", "the line", "delivery"
STAGES: Final = (LABELS, CONTEXTS, THRESHOLDS, LINE, DELIVERY)
WORDS: Final = {
    LABELS: "every token has a label; sequences share labels where they share tokens",
    CONTEXTS: "attention writes the mean label of its sequence beside every label",
    THRESHOLDS: "a function of the mean shifts each sequence; as many tokens as it needs leaders become positive",
    LINE: "one ReLU sends all others of a sequence to one point",
    DELIVERY: "points go to their targets, from the right",
}


@final
class Study:
    """One data set with its mean interpolant and the tokens after every block, computed when asked for."""

    __slots__ = ("_steps", "certificate", "data", "parts")

    def __init__(self, data: Dataset, width: int = 4) -> None:
        self.data = data
        self.parts: MeanPhases = mean_phases(data, width)
        T = self.parts.transformer
        self.certificate: Certificate = verify(T, data, "all")
        self._steps = Steps(T, data)

    def clouds(self, step: int) -> tuple[Cloud, ...]:
        """The first two coordinates of the tokens of each sequence after block ``step``; later ones are zero until delivery.

        >>> from ..examples import running_example
        >>> study = Study(running_example())
        >>> study.clouds(study.parts.transformer.depth)[0]
        ((-1.0, -1.0), (-1.0, -1.0))
        """
        return plane(self._steps.after(step))

    def block_of(self, stage: str) -> int:
        """The block after which a stage is complete; for the delivery the one before it starts."""
        phases = self.parts.transformer.phases
        told = phases["project"] + phases["labels"]
        ends = {LABELS: told, CONTEXTS: told, THRESHOLDS: told + phases["thresholds"]}
        return ends.get(stage, told + phases["thresholds"] + 1)


@lru_cache(maxsize=16)
def _study(source: str, N: int, n: int, m: tuple[int, ...], d: int, seed: int, width: int) -> Study:
    return Study(chosen_data(source, N, n, m, d, seed), width)


def picture(
    stage: str, step: int, source: str, N: int, n: int, d: int, seed: int, width: int, **targets: int
) -> Picture:
    """One stage of the construction, and beside it the function of the context with the windows it must meet."""
    study = _study(source, N, n, chosen_targets(targets, N), d, seed, width)
    data, T = study.data, study.parts.transformer
    deliveries = T.phases["delivery"]
    step = min(max(int(step), 0), deliveries)
    draw = Drawing(
        640,
        372,
        f"Stage: {stage}",
        f"{WORDS[stage]}. {data.N} sequences with {', '.join(map(str, data.m))} targets; {len(study.parts.thresholds)} knots in the "
        f"function of the mean, {sum(map(len, study.parts.relabellings))} knots to tell the means apart.",
    )
    box = (44, 34, 266, 276)
    block = study.block_of(stage)
    if stage == LABELS:
        _draw_labels(draw, box, study)
    elif stage in (CONTEXTS, THRESHOLDS):
        _draw_plane(draw, box, study, study.clouds(block), stage == THRESHOLDS)
    elif stage == LINE:
        _draw_line(draw, box, study, study.clouds(block))
    else:
        _draw_delivery(draw, box, study, study.clouds(block + step))
    _draw_function(draw, study)
    draw.legend(20, 364, [f"X{chr(0x2080 + j)}" for j in range(1, data.N + 1)], step=62)
    nonzero = T.num_parameters("nonzero")
    numbers: dict[str, Value] = {
        "stage": WORDS[stage],
        "blocks L": T.depth,
        "at most": 2 * ceil((data.N - 1) / width) + ceil(data.M / width) + 2,
        "Theorem 1.6": 2 * data.M + 2 * data.N + 1,
        "non-zero parameters": nonzero,
        "lower bound dM": data.d * data.M,
        "knots for labels": sum(map(len, study.parts.relabellings)),
        "knots for thresholds": len(study.parts.thresholds),
        "certificate": f"{study.certificate.status} at every temperature",
    }
    return Picture(draw.svg(), numbers, {"step": (0, deliveries)}, downloads(data, T, study.certificate))


def _f(value: Rational) -> float:
    return float(fraction(value))


def _rows(
    draw: Drawing, box: tuple[float, float, float, float], N: int, values: Sequence[float], heading: str
) -> Panel:
    """A panel with one horizontal line per sequence, and the scale of ``values`` under it."""
    left, top, width, height = box
    low, high = min(values), max(values)
    margin = 0.06 * (high - low) or 1.0
    view = Panel(draw, Scale(low - margin, high + margin, left, left + width), Scale(N + 0.7, 0.3, top + height, top))
    view.frame(heading=heading, ticks=False)
    for value, text in view.x.ticks():
        draw.text(view.x(value), top + height + 17, text, size=13, anchor="middle")
    for j in range(N):
        draw.line(view(low, j + 1), view(high, j + 1), opacity=0.3)
    return view


def _draw_labels(draw: Drawing, box: tuple[float, float, float, float], study: Study) -> None:
    labels = [list(map(_f, own)) for own in study.parts.labels]
    view = _rows(draw, box, study.data.N, [t for own in labels for t in own], "labels and their means")
    for j, own in enumerate(labels):
        x, y = view(sum(own) / len(own), j + 1)
        draw.line((x, y - 11), (x, y + 11), stroke=colour(j), width=2.5)
        for t in own:
            draw.mark(*view(t, j + 1), j)


def _draw_plane(
    draw: Drawing, box: tuple[float, float, float, float], study: Study, clouds: Sequence[Cloud], shifted: bool
) -> None:
    constant = _f(study.parts.constant) if shifted else 0.0
    points: list[list[Pair]] = [[(x[0] + constant, x[1]) for x in cloud] for cloud in clouds]
    everything = [p for own in points for p in own]
    view = panel(draw, box, [*everything, (0.0, everything[0][1])] if shifted else everything)
    view.frame(heading="shifted label →  context ↑" if shifted else "label →  context ↑")
    if shifted:
        draw.line(view(0, view.y.low), view(0, view.y.high), stroke=colour(1), dash="6 4", width=1.6)
    for j, own in enumerate(points):
        for p in dict.fromkeys(own):
            draw.mark(*view(*p), j, hollow=shifted and p[0] <= 0)


def _draw_line(draw: Drawing, box: tuple[float, float, float, float], study: Study, clouds: Sequence[Cloud]) -> None:
    targets = [[y[0] for y in as_floats(Y)] for Y in study.data.outputs]
    values = [x[0] for cloud in clouds for x in cloud] + [y for own in targets for y in own]
    view = _rows(draw, box, study.data.N, values, "the line")
    for j, (cloud, own) in enumerate(zip(clouds, targets, strict=True)):
        for y in own:
            draw.mark(*view(y, j + 1), j, size=7, hollow=True)
        for t in {x[0] for x in cloud}:
            draw.mark(*view(t, j + 1), j)


def _draw_delivery(
    draw: Drawing, box: tuple[float, float, float, float], study: Study, clouds: Sequence[Cloud]
) -> None:
    start = study.clouds(study.block_of(DELIVERY))
    everything = [flat(x) for cloud in (*start, *map(as_floats, study.data.outputs)) for x in cloud]
    view = panel(draw, box, everything)
    view.frame(heading="delivery")
    for j, Y in enumerate(study.data.outputs):
        for y in as_floats(Y):
            draw.mark(*view(*flat(y)), j, size=7.5, hollow=True)
    for j, cloud in enumerate(clouds):
        for p in dict.fromkeys(map(flat, cloud)):
            draw.mark(*view(*p), j)


def _draw_function(draw: Drawing, study: Study) -> None:
    """``constant + g`` over the contexts, with the open windows that it must meet."""
    parts = study.parts
    ordered = [sorted(own, reverse=True) for own in parts.labels]
    span = max(own[0] for own in ordered) - min(own[-1] for own in ordered)
    at = [context for context, _ in parts.contexts]
    windows = [
        (-own[m - 2] if m > 1 else -own[0] - span, -own[m - 1]) for own, m in zip(ordered, study.data.m, strict=True)
    ]
    reached = evaluate_at(parts.constant, parts.thresholds, at)
    low, high = min(at), max(at)
    margin = (high - low) / 12 if high > low else abs(high) / 4 + 1
    knots = sorted(knot.at for knot in parts.thresholds if low - margin < knot.at < high + margin)
    path = [low - margin, *knots, high + margin]
    curve = [(_f(t), _f(v)) for t, v in zip(path, evaluate_at(parts.constant, parts.thresholds, path), strict=True)]
    corners = [(_f(t), _f(v)) for t, pair in zip(at, windows, strict=True) for v in pair]
    corners += [(_f(t), _f(v)) for t, v in zip(at, reached, strict=True)]
    view = panel(draw, (372, 34, 258, 276), [*corners, (curve[0][0], corners[0][1]), (curve[-1][0], corners[0][1])])
    view.frame(heading="shift of a sequence", xlabel="context")
    for j, (t, (least, most)) in enumerate(zip(at, windows, strict=True)):
        # With one target there is no lower end.
        end = _f(least) if study.data.m[j] > 1 else view.y.low
        draw.line(view(_f(t), end), view(_f(t), _f(most)), stroke=colour(j), width=5, opacity=0.45)
    draw.polyline([view(x, min(max(y, view.y.low), view.y.high)) for x, y in curve], stroke="currentColor", width=1.8)
    for j, (t, v) in enumerate(zip(at, reached, strict=True)):
        y = min(max(_f(v), view.y.low), view.y.high)
        draw.mark(*view(_f(t), y), j, size=5)


EXPLORER = Explorer(
    "One mean is enough",
    "interp_lib.explorers.sharper:picture",
    (
        choice("stage", "stage", STAGES, CONTEXTS),
        integer("step", "delivery block", 0, 8, 0, play=True, visible_when=("stage", (DELIVERY,))),
        *data_controls(
            RANDOM,
            (MOST_SEQUENCES, 4),
            (MOST_TOKENS, 5),
            [1 + j % 3 for j in range(1, MOST_SEQUENCES + 1)],
            MOST_TARGETS,
            16,
        ),
        integer("width", "width w", 2, 8, 4),
    ),
)
