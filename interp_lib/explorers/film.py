"""A picture that moves by itself: tokens on their way through the blocks, as an SVG with a style sheet and no script."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Final, final

from .data import as_floats, flat
from .drawing import Drawing, Pair, Panel, Scale, number
from .hardmax import Journey

SECONDS_PER_BLOCK: Final = 1.4
HOLD: Final = 0.45
"""The part of a block's time in which its tokens stand still."""

WORDS: Final = {
    "input": "the data: inputs share tokens",
    "separation": "separation",
    "leaders": "leaders leave",
    "collapse": "collapse",
    "interpolation": "leaders go to the targets",
}


@final
@dataclass(frozen=True, slots=True)
class Film:
    """The journey of a data set from block to block, repeated; a reader can pause it.

    Readers who asked their system for less motion see the data at rest.

    >>> from ..examples import running_example
    >>> "@keyframes" in Film(Journey(running_example()), "Tokens on their way")._repr_html_()
    True
    """

    journey: Journey
    caption: str

    def _repr_html_(self) -> str:
        return (
            f'<figure class="drawing film">{film(self.journey)}<figcaption>{escape(self.caption)} '
            '<label class="film-pause"><input type="checkbox"> Pause</label></figcaption></figure>'
        )


def film(journey: Journey) -> str:
    """The SVG text: every token carries its own animation, every phase its words."""
    data, T = journey.data, journey.transformer
    steps = range(T.depth + 1)
    draw = Drawing(
        640,
        420,
        "Tokens on their way from inputs to targets",
        f"An animation in {T.depth} blocks: {data.N} sequences that share tokens are separated, their leaders leave for "
        "places far out, all other tokens collapse onto them, and the leaders go to the targets, which are drawn hollow.",
    )
    places = [place for j in range(data.N) for place in as_floats(journey.places.of(j))]
    reach = 1.5 * max(abs(v) for place in places for v in flat(place))
    unit = max(abs(v) for X in data.inputs for x in as_floats(X) for v in flat(x)) / 2 or 1.0
    view = Panel(draw, Scale(-reach, reach, 10, 630, unit=unit), Scale(-reach, reach, 380, 10, unit=unit))
    draw.rectangle(10, 10, 620, 370, stroke="currentColor", opacity=0.45)
    for j, Y in enumerate(data.outputs):
        for y in as_floats(Y):
            draw.mark(*view(*flat(y)), j, size=10, hollow=True)
    duration = number((T.depth + 2) * SECONDS_PER_BLOCK)
    styles = []
    for j in range(data.N):
        for i in range(data.n[j]):
            name = f"film-{j}-{i}"
            path = [view(*flat(journey.clouds(step)[j][i])) for step in steps]
            styles.append(f"@keyframes {name}{{{_keyframes(path)}}}")
            at_first = "px,".join(map(number, path[0]))
            draw.add(f'<g style="transform:translate({at_first}px);animation:{name} {duration}s infinite">')
            draw.mark(0, 0, j, size=7 - j)
            draw.add("</g>")
    phases = ["input", *(T.phase_of(step - 1) for step in steps if step)]
    for at, phase in enumerate(dict.fromkeys(phases)):
        styles.append(f"@keyframes film-phase-{at}{{{_visibility([p == phase for p in phases])}}}")
        draw.add(f'<g opacity="{int(at == 0)}" style="animation:film-phase-{at} {duration}s infinite step-end">')
        draw.text(320, 408, WORDS[phase], size=17, anchor="middle", bold=True)
        draw.add("</g>")
    draw.add(
        f"<style>{''.join(styles)}.film:has(input:checked) g{{animation-play-state:paused!important}}"
        "@media (prefers-reduced-motion:reduce){.film g{animation:none!important}}</style>"
    )
    return draw.svg()


def _keyframes(path: Sequence[Pair]) -> str:
    """Stand, move, stand; two more turns of standing at the end."""
    turns = len(path) + 1
    frames = []
    for k, (x, y) in enumerate(path):
        arrives, leaves = 100 * k / turns, 100 * (k + HOLD if k + 1 < len(path) else turns) / turns
        where = f"{{transform:translate({number(x)}px,{number(y)}px)}}"
        frames.append(f"{arrives:.2f}%,{leaves:.2f}%{where}")
    return "".join(frames)


def _visibility(visible: Sequence[bool]) -> str:
    turns = len(visible) + 1
    frames = [f"{100 * (k - 1 + HOLD if k else 0) / turns:.2f}%{{opacity:{int(v)}}}" for k, v in enumerate(visible)]
    return "".join(frames)
