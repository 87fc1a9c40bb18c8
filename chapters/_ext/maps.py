"""Maps of what rests on what: one row for each result or chapter in reading order, one arc for each dependency.

* `{result-map}`: an arc from a result to each result whose proof uses it.
* `{chapter-map}`: an arc from a chapter to each chapter that needs it: a result of the one is used or quoted in the other,
  or the other's box "What you need" links to it.

An arc diagram needs no layout, reads from top to bottom, and stays readable on a phone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, final

import results
from docutils import nodes
from ledger import Fill, Listing, listing
from results import Page
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

WIDTH, MARGIN, STEP = 440, 120, 24


@final
@dataclass(frozen=True, slots=True)
class Row:
    """A line of the diagram; a heading has no address of its own in the list of arcs."""

    key: str
    words: str
    address: str
    colour: int = 0
    strong: bool = False
    heading: bool = False


def shortened(words: str, most: int = 46) -> str:
    """Words that fit on a row; what follows a colon goes first.

    >>> shortened("A direction in which all places lie beyond all tokens")
    'A direction in which all places lie beyond…'
    """
    if len(words) > most:
        words = words.partition(":")[0]
    if len(words) <= most:
        return words
    return words[: most - 1].rsplit(" ", 1)[0] + "…"


def diagram(rows: Sequence[Row], arcs: Iterable[tuple[str, str]], label: str) -> str:
    """The rows below one another, and on the left an arc from `a` to `b` for each pair of keys.

    >>> "<path" in diagram([Row("a", "A", "#a"), Row("b", "B", "#b")], [("a", "b")], "two rows")
    True
    """
    heights = {row.key: STEP * (k + 1) for k, row in enumerate(rows)}
    colours = {row.key: row.colour for row in rows}
    total = STEP * (len(rows) + 1)
    parts = [f'<svg class="map" viewBox="0 0 {WIDTH} {total}" role="group" aria-label="{escape(label)}">']
    for a, b in dict.fromkeys(arcs):
        if a in heights and b in heights and a != b:
            top, bottom = heights[a] - 4, heights[b] - 4
            # Long arcs bulge farther, up to the margin.
            depth = min(MARGIN - 12, 14 + abs(bottom - top) * 0.35)
            left = MARGIN - 6 - depth
            parts.append(
                f'<path data-from="{escape(a)}" data-to="{escape(b)}" class="map-{colours[a] % 8}" '
                f'd="M{MARGIN - 6} {top}C{left:.0f} {top} {left:.0f} {bottom} {MARGIN - 6} {bottom}"/>'
            )
    for row in rows:
        weight = ' class="map-strong"' if row.strong or row.heading else ""
        x = MARGIN if not row.heading else MARGIN - 9
        dot = (
            ""
            if row.heading
            else f'<circle class="map-{row.colour % 8}" cx="{MARGIN - 6}" cy="{heights[row.key] - 4}" r="3"/>'
        )
        text = f'<text x="{x}" y="{heights[row.key]}"{weight}>{escape(shortened(row.words))}</text>'
        hidden = f"<title>{escape(row.words)}</title>"
        parts.append(f'{dot}<a href="{escape(row.address)}" data-key="{escape(row.key)}">{hidden}{text}</a>')
    return "".join([*parts, "</svg>"])


def used_pairs(pages: Sequence[Page]) -> list[tuple[str, str]]:
    """Pairs (result, result whose proof uses it)."""
    return [(r.label, by) for page in pages for r in page.results for by in results.users(pages, r.label)]


def chapter_pairs(pages: Sequence[Page]) -> list[tuple[str, str]]:
    """Pairs (chapter, later chapter that needs it)."""
    home = {r.label: page.name for page in pages for r in page.results}
    order = {page.name: k for k, page in enumerate(pages)}
    pairs = []
    for page in pages:
        needed = [home[m.label] for m in page.mentions if m.label in home and m.by is not None]
        needed += [home.get(name, name) for name in page.needs]
        pairs += [(name, page.name) for name in needed if name in order and order[name] < order[page.name]]
    return list(dict.fromkeys(pairs))


class Draw(SphinxPostTransform):
    """Put the maps in; after the ledger's own lists, before references are resolved."""

    default_priority = Fill.default_priority + 1

    def run(self, **_: Any) -> None:
        for node in list(self.document.findall(listing)):
            draw = {"result-map": self.results, "chapter-map": self.chapters}.get(node["kind"])
            if draw is not None:
                node.replace_self(nodes.raw("", f'<div class="map-box">{draw()}</div>', format="html"))

    def address(self, page: str, anchor: str = "") -> str:
        there = self.app.builder.get_relative_uri(self.env.docname, page)
        return f"{there}#{anchor}" if anchor else there

    def results(self) -> str:
        pages = [page for page in results.in_order(self.env) if page.results]
        rows = []
        for k, page in enumerate(pages):
            rows.append(Row(page.name, self.env.titles[page.name].astext(), self.address(page.name), k, heading=True))
            for r in page.results:
                words = f"{results.number(self.env, r.label)} {r.title.replace('$', '')}"
                rows.append(Row(r.label, words, self.address(page.name, r.label), k, r.kind == "theorem"))
        return diagram(
            rows, used_pairs(pages), "Results in reading order; an arc leads from a result to one that uses it."
        )

    def chapters(self) -> str:
        pages = [page for page in results.in_order(self.env) if page.results or page.boxes]
        numbers = self.env.toc_secnumbers
        rows = []
        for k, page in enumerate(pages):
            number = ".".join(map(str, numbers.get(page.name, {}).get("") or ()))
            words = f"{number} {self.env.titles[page.name].astext()}".strip()
            rows.append(Row(page.name, words, self.address(page.name), k))
        return diagram(
            rows, chapter_pairs(pages), "Chapters in reading order; an arc leads from a chapter to one that needs it."
        )


def _script(app: Sphinx, _page: str, _template: str, context: dict[str, Any], _doctree: Any) -> None:
    if 'class="map"' in context.get("body", ""):
        app.add_js_file("map.mjs", type="module")


def setup(app: Sphinx) -> dict[str, Any]:
    app.setup_extension("ledger")
    for name in ("result-map", "chapter-map"):
        app.add_directive(name, Listing)
    app.add_post_transform(Draw)
    app.connect("html-page-context", _script)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
