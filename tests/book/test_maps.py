"""The maps: every row is a link, arcs join what they should, and the drawing stays in its frame."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st
from maps import MARGIN, Row, chapter_pairs, diagram, used_pairs
from results import Mention, Page, Proof, Result


def page(name: str, *labels: str, uses: tuple[tuple[str, str], ...] = (), needs: tuple[str, ...] = ()) -> Page:
    return Page(
        name,
        tuple(Result(label, "lemma", label, name) for label in labels),
        tuple(Proof(name, f"proof-of-{label}", label) for label in labels),
        (),
        tuple(Mention(used, name, by, True) for used, by in uses),
        frozenset(),
        needs,
    )


PAGES = [
    page("one", "lem-a", "lem-b", uses=(("lem-a", "lem-b"),)),
    page("two", "lem-c", uses=(("lem-a", "lem-c"),)),
    page("three", "lem-d", needs=("two", "lem-b", "elsewhere")),
]


def test_pairs() -> None:
    assert used_pairs(PAGES) == [("lem-a", "lem-b"), ("lem-a", "lem-c")]
    assert chapter_pairs(PAGES) == [("one", "two"), ("two", "three"), ("one", "three")]


@given(st.integers(2, 30), st.data())
def test_a_diagram_is_well_formed_and_stays_in_its_frame(count: int, data: st.DataObject) -> None:
    rows = [Row(f"k{i}", data.draw(st.text("ab<&> ", max_size=80)), f"p.html#k{i}", i) for i in range(count)]
    keys = st.sampled_from([row.key for row in rows])
    arcs = data.draw(st.lists(st.tuples(keys, keys), max_size=20))
    svg = diagram(rows, arcs, "rows & arcs")
    root = ET.fromstring(svg)
    links = [node.get("href") for node in root.iter("a")]
    assert links == [row.address for row in rows]
    paths = list(root.iter("path"))
    assert {(p.get("data-from"), p.get("data-to")) for p in paths} == {(a, b) for a, b in arcs if a != b}
    for p in paths:
        numbers = [float(v) for v in re.findall(r"-?\d+\.?\d*", p.get("d") or "")]
        assert all(0 <= x <= MARGIN for x in numbers[::2])
