"""Theorem 1.6, block by block: tokens on their way from inputs to targets, with the exact certificate."""

from __future__ import annotations

from functools import lru_cache
from typing import Final, final

from ..certificates import verify
from ..fields import RationalMatrix, first_occurrences, fraction
from ..interpolation.four_phase import four_phases
from ..sequences import Dataset
from .base import Explorer, Picture, Value, flag, integer
from .data import (
    EXAMPLE,
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
from .drawing import Drawing, Pair, Panel, Scale, panel

MOST_SEQUENCES: Final = 4
MOST_TOKENS: Final = 5
MOST_TARGETS: Final = 3

PHASES: Final = {
    "input": "the data",
    "separation": "separation: one token is raised, then each sequence moves by its largest label",
    "leaders": "leaders: one leader goes to its place far out",
    "collapse": "collapse: the last leader goes, then every token goes to a leader of its sequence",
    "interpolation": "interpolation: one point goes to its target",
    "padding": "padding: nothing moves",
}


@final
class Journey:
    """One data set, its interpolant, its certificate, and every token after every block, computed when asked for."""

    __slots__ = ("_steps", "certificate", "data", "places", "transformer")

    def __init__(self, data: Dataset, pad: bool = False) -> None:
        parts = four_phases(data)
        T = parts.transformer
        self.data = data
        self.places = parts.leaders.places
        self.transformer = T.padded(2 * data.M + 2 * data.N + 1) if pad else T
        self.certificate = verify(self.transformer, data)
        self._steps = Steps(self.transformer, data)

    def matrices(self, step: int) -> tuple[RationalMatrix, ...]:
        """The tokens of each sequence after block ``step``, exactly."""
        return self._steps.after(step)

    def clouds(self, step: int) -> tuple[Cloud, ...]:
        """The first two coordinates of the tokens of each sequence after block ``step``, rounded for drawing.

        >>> from ..examples import running_example
        >>> journey = Journey(running_example())
        >>> journey.clouds(journey.transformer.depth)[0]
        ((-1.0, -1.0), (-1.0, -1.0))
        """
        return plane(self.matrices(step))

    def different(self, step: int) -> list[int]:
        """The number of different points of each sequence after block ``step``."""
        return [len(set(first_occurrences(tokens))) for tokens in self.matrices(step)]

    def arrived(self, step: int) -> int:
        """How many sequences are exactly their targets after block ``step``."""
        return sum(
            set(map(tuple, tokens.tolist())) == set(map(tuple, targets.tolist()))
            for tokens, targets in zip(self.matrices(step), self.data.output_matrices, strict=True)
        )


@lru_cache(maxsize=16)
def _journey(source: str, N: int, n: int, m: tuple[int, ...], d: int, seed: int, pad: bool) -> Journey:
    return Journey(chosen_data(source, N, n, m, d, seed), pad)


def close_up(shown: Journey, box: tuple[float, float, float, float], drawing: Drawing) -> Panel:
    """A panel with linear axes that holds inputs, separated tokens and targets."""
    separated = shown.clouds(shown.transformer.phases["separation"])
    clouds = [*shown.clouds(0), *separated, *map(as_floats, shown.data.outputs)]
    return panel(drawing, box, [flat(token) for cloud in clouds for token in cloud], equal=True)


def wide_view(shown: Journey, box: tuple[float, float, float, float], drawing: Drawing) -> Panel:
    """A panel that holds every token of every block; linear near 0, logarithmic farther out."""
    left, top, width, height = box
    places = [place for j in range(shown.data.N) for place in as_floats(shown.places.of(j))]
    reach = 1.6 * max(abs(v) for place in places for v in flat(place))
    near = float(fraction(shown.places.clear)) / 16
    return Panel(
        drawing,
        Scale(-reach, reach, left, left + width, unit=near),
        Scale(-reach, reach, top + height, top, unit=near),
    )


def draw_state(view: Panel, shown: Journey, step: int, *, arrows: bool = True, size: float = 6) -> None:
    """Targets hollow, tokens solid, and an arrow from where each token was one block before."""
    for j, targets in enumerate(map(as_floats, shown.data.outputs)):
        for target in targets:
            if _inside(view, flat(target)):
                view.drawing.mark(*view(*flat(target)), j, size=size + 1.5, hollow=True)
    if arrows and step:
        moved = zip(shown.clouds(step - 1), shown.clouds(step), strict=True)
        for old, new in {(flat(a), flat(b)) for before, after in moved for a, b in zip(before, after, strict=True)}:
            if old != new and _inside(view, old) and _inside(view, new):
                view.drawing.line(view(*old), view(*new), width=1.3, opacity=0.55, arrow=True)
    for j, cloud in enumerate(shown.clouds(step)):
        # Tokens of different sequences may coincide: later ones are smaller, so that all can be seen.
        for token in dict.fromkeys(map(flat, cloud)):
            if _inside(view, token):
                view.drawing.mark(*view(*token), j, size=size * (1 - 0.4 * j / MOST_SEQUENCES))


def _inside(view: Panel, point: Pair) -> bool:
    return view.x.low <= point[0] <= view.x.high and view.y.low <= point[1] <= view.y.high


def picture(source: str, N: int, n: int, d: int, seed: int, pad: bool, step: int, **targets: int) -> Picture:
    """The state after block ``step``, a close-up beside a view of everything, and the numbers of the theorem."""
    shown = _journey(source, N, n, chosen_targets(targets, N), d, seed, pad)
    data, T = shown.data, shown.transformer
    step = min(max(int(step), 0), T.depth)
    phase = T.phase_of(step - 1) if step else "input"
    distinct, arrived = shown.different(step), shown.arrived(step)
    projection = "" if data.d == 2 else f" The first two of {data.d} coordinates are drawn."

    draw = Drawing(
        640,
        372,
        f"Tokens after block {step} of {T.depth}",
        f"{PHASES[phase]}. After block {step} of {T.depth} the {data.N} sequences occupy "
        f"{', '.join(map(str, distinct))} points; {arrived} of them are at their targets.{projection}",
    )
    near, far = close_up(shown, (34, 34, 276, 276), draw), wide_view(shown, (354, 34, 276, 276), draw)
    near.frame(heading="close-up")
    far.frame(heading="everything")
    for view in (near, far):
        draw_state(view, shown, step)
    draw.legend(20, 362, [f"X{chr(0x2080 + j)}" for j in range(1, data.N + 1)], step=62)
    if data.d > 2:
        draw.text(634, 362, f"coordinates 1, 2 of {data.d}", size=14, anchor="end")
    numbers: dict[str, Value] = {
        "phase": PHASES[phase],
        "blocks L": T.depth,
        "at most": 2 * data.M + 2 * data.N + 1 if pad else 2 * data.M + data.N - 1,
        "width": T.width,
        "parameters P": T.num_parameters("structured"),
        "different points": " + ".join(map(str, distinct)),
        "at their targets": f"{arrived} of {data.N}",
        "certificate": shown.certificate.status,
    }
    return Picture(draw.svg(), numbers, {"step": (0, T.depth)}, downloads(data, T, shown.certificate))


EXPLORER = Explorer(
    "From inputs to targets, block by block",
    "interp_lib.explorers.hardmax:picture",
    (
        integer("step", "after block", 0, 40, 0, play=True),
        *data_controls(
            EXAMPLE,
            (MOST_SEQUENCES, 3),
            (MOST_TOKENS, 4),
            [1 + j % 2 for j in range(1, MOST_SEQUENCES + 1)],
            MOST_TARGETS,
            16,
        ),
        flag("pad", "pad to 2M + 2N + 1 blocks", False),
    ),
)
