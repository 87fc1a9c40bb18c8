"""The ledger: for every result of the book its proof, the cells that check it, the tests that would fail, its code.

Proofs, cells and uses are read off the pages (`results`).  What a page cannot know stands in `chapters/ledger.toml`:

    [thm-hardmax]
    how = ["exact"]                       # exact, certified, measured: how cells and tests check it
    tests = ["tests/interpolation/test_four_phase.py::test_every_small_data_set_is_interpolated"]
    code = ["interp_lib.hardmax_interpolant"]
    note = "what is checked, where that is less than the statement"     # optional

* `{ledger}` lists everything, `{ledger-tests}` shows the source of the tests named there.
* Under every statement a line says where it is used and checked.
* The build warns, so fails under `-W`, if a claim has no proof, no cell that checks it or no test, if a proof has no
  claim, or if an entry, a cell or a test that is named does not exist.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import results
from docutils import nodes
from results import Page, Result
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

FILE = "chapters/ledger.toml"
HOW = {"exact": "exact, over Q", "certified": "certified, enclosed in balls", "measured": "measured, in floats"}
FIELDS = {"how", "tests", "code", "note"}
logger = logging.getLogger(__name__)


@final
@dataclass(frozen=True, slots=True)
class Entry:
    """What `ledger.toml` says about one result."""

    how: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    code: tuple[str, ...] = ()
    note: str = ""


def entries_of(text: str) -> dict[str, Entry]:
    """The entries of a ledger file.

    >>> entries_of('[lem-a]\\nhow = ["exact"]\\ntests = ["tests/test_a.py::test_b"]')["lem-a"].how
    ('exact',)
    """
    found = {}
    for label, fields in tomllib.loads(text).items():
        if unknown := set(fields) - FIELDS:
            raise ValueError(
                f"{FILE}, {label}: {sorted(unknown)[0]} is no field; fields are {', '.join(sorted(FIELDS))}"
            )
        lists = {name: tuple(fields.get(name, ())) for name in ("how", "tests", "code")}
        found[label] = Entry(**lists, note=fields.get("note", ""))
    return found


def source_of(root: Path, name: str) -> str | None:
    """The source of the test `path::function`, with its decorators; None if there is no such test."""
    path, _, function = name.partition("::")
    file = root / path
    if not function.startswith("test_") or not file.is_file():
        return None
    text = file.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef) and node.name == function:
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            return "\n".join(text.splitlines()[first - 1 : node.end_lineno])
    return None


def complaints(pages: Iterable[Page], entries: Mapping[str, Entry], root: Path) -> list[tuple[str, str]]:
    """What is wrong, as pairs (page, words), false statements first and gaps last."""
    pages = list(pages)
    known = {r.label: r for page in pages for r in page.results}
    proved = {p.of for page in pages for p in page.proofs}
    checked = {label for page in pages for c in page.checks for label in c.of}
    wrong = []
    for page in pages:
        for p in page.proofs:
            if p.of not in known:
                wrong.append((page.name, f"a proof without a result (it would belong to {p.of})"))
        for c in page.checks:
            wrong += [
                (page.name, f"a cell checks {label}, which does not exist") for label in c.of if label not in known
            ]
            if not c.asserts:
                wrong.append((page.name, f"the cell that checks {', '.join(c.of)} asserts nothing"))
    for label, entry in entries.items():
        if label not in known:
            wrong.append((FILE, f"{label} is no result of the book"))
        wrong += [(FILE, f"{label}: how = {how!r} is none of {', '.join(HOW)}") for how in entry.how if how not in HOW]
        wrong += [(FILE, f"{label}: there is no test {t}") for t in entry.tests if source_of(root, t) is None]
    for label, result in known.items():
        if result.is_claim:
            entry = entries.get(label, Entry())
            gaps = [
                (label in proved, "has no proof"),
                (label in checked, "is checked by no cell; mark one with the comment `# checks " + label + "`"),
                (bool(entry.tests), f"has no test in {FILE}"),
                (bool(entry.how), f"says nowhere in {FILE} how it is checked"),
            ]
            wrong += [(result.page, f"{label} {words}") for good, words in gaps if not good]
    return wrong


class listing(nodes.General, nodes.Element):
    """Stands where a generated list will be."""


class Listing(SphinxDirective):
    has_content = False

    def run(self) -> list[nodes.Node]:
        return [listing(kind=self.name)]


class Fill(SphinxPostTransform):
    """Fill in the lists and the lines under statements, once all pages are read; before references are resolved."""

    default_priority = 5

    def run(self, **_: Any) -> None:
        self.page = self.env.docname
        self.pages = results.in_order(self.env)
        self.entries: dict[str, Entry] = self.env.ledger_entries  # type: ignore[attr-defined]
        for node in list(self.document.findall(listing)):
            if node["kind"] == "ledger":
                node.replace_self(self.ledger())
            elif node["kind"] == "ledger-tests":
                node.replace_self(self.tests())
        for node in list(self.document.findall(results.is_result)):
            self.footer(node)

    # Links

    def link(self, page: str, anchor: str, *content: nodes.Node | str) -> nodes.reference:
        address = "" if page == self.page else self.app.builder.get_relative_uri(self.page, page)
        children = [nodes.Text(c) if isinstance(c, str) else c for c in content]
        return nodes.reference("", "", *children, internal=True, refuri=f"{address}#{anchor}")

    def name(self, label: str) -> str:
        entry = self.env.proof_list[label]  # type: ignore[attr-defined]
        return f"{entry['realtype'].title()} {results.number(self.env, label)}"

    def named(self, label: str) -> nodes.reference:
        return self.link(self.env.proof_list[label]["docname"], label, self.name(label))  # type: ignore[attr-defined]

    def proofs(self, label: str) -> list[nodes.Node]:
        found = [p for page in self.pages for p in page.proofs if p.of == label]
        return [self.link(p.page, p.anchor, "proof" if not k else f"part {k + 1}") for k, p in enumerate(found)]

    def checks(self, label: str) -> list[nodes.Node]:
        found = [c for page in self.pages for c in page.checks if label in c.of]
        return [self.link(c.page, c.anchor, "a cell" if not k else "another") for k, c in enumerate(found)]

    # The line under a statement

    def footer(self, node: nodes.Element) -> None:
        label = node["label"]
        if label not in {r.label for page in self.pages for r in page.results}:
            return
        line = nodes.paragraph("", "", classes=["used-in"])
        if used := results.users(self.pages, label):
            line += [nodes.Text("Used in "), *joined([self.named(by) for by in used], ", "), nodes.Text(". ")]
        if found := self.checks(label):
            line += [nodes.Text("Checked in "), *joined(found, ", "), nodes.Text(". ")]
        if ledger := self.page_with("ledger"):
            line += [self.link(ledger, f"ledger-{label}", "Ledger"), nodes.Text(".")]
        if line.children:
            node += line

    def page_with(self, kind: str) -> str | None:
        found: dict[str, str] = self.env.ledger_pages  # type: ignore[attr-defined]
        return found.get(kind)

    # The ledger

    def ledger(self) -> list[nodes.Node]:
        filled: list[nodes.Node] = [nodes.raw("", _FILTER, format="html")]
        for page in self.pages:
            if not page.results:
                continue
            tree = self.env.get_doctree(page.name)
            statements = {n["label"]: n for n in tree.findall(results.is_result)}
            title = self.env.titles[page.name].deepcopy().children
            group = nodes.container("", classes=["ledger-chapter"])
            heading = nodes.rubric("", "", self.link(page.name, "", *title))
            group += [heading, *(self.row(result, statements[result.label]) for result in page.results)]
            filled.append(group)
        return filled

    def row(self, result: Result, statement: nodes.Element) -> nodes.Element:
        entry = self.entries.get(result.label, Entry())
        title = [n.deepcopy() for n in statement[0].children]
        head = nodes.paragraph("", "", self.named(result.label), nodes.inline("", "", *title), classes=["ledger-name"])
        body = statement[1].deepcopy()
        for node in list(body.findall(lambda n: isinstance(n, nodes.Element))):
            node["ids"] = []
            if isinstance(node, nodes.target):
                node.parent.remove(node)
            elif isinstance(node, nodes.math_block):
                # The number of a formula belongs to the page that it stands on.
                node["label"] = node["number"] = None
            elif isinstance(node, addnodes.pending_xref):
                node["refdoc"] = self.page
        facts: list[tuple[str, list[nodes.Node]]] = []
        if result.is_claim:
            facts.append(("Proved", self.proofs(result.label)))
        facts.append(("Asserted in", self.checks(result.label)))
        facts.append(("Test that would fail", [self.test(t) for t in entry.tests]))
        facts.append(("How exact", [nodes.Text(HOW[h]) for h in entry.how if h in HOW]))
        facts.append(("Code", [self.code(c) for c in entry.code]))
        facts.append(("Used in", [self.named(by) for by in results.users(self.pages, result.label)]))
        if not result.is_claim:
            stated = results.stated_with(self.pages, result.label)
            facts.append(("Stated with it", [self.named(by) for by in stated]))
        listed = nodes.bullet_list("", classes=["ledger-facts"])
        for words, found in facts:
            if found:
                line = nodes.paragraph("", "", nodes.strong("", words), nodes.Text(" "), *joined(found, ", "))
                listed += nodes.list_item("", line)
        if entry.note:
            listed += nodes.list_item("", nodes.paragraph("", "", nodes.Text(entry.note)))
        details = [nodes.raw("", "<details><summary>statement</summary>", format="html"), *body.children]
        details.append(nodes.raw("", "</details>", format="html"))
        classes = ["ledger-row", f"ledger-{result.kind}", *(f"ledger-{h}" for h in entry.how)]
        return nodes.container("", head, *details, listed, ids=[f"ledger-{result.label}"], classes=classes)

    def test(self, name: str) -> nodes.Node:
        words = nodes.literal("", name.partition("::")[2])
        page = self.page_with("ledger-tests")
        return self.link(page, anchor_of(name), words) if page else words

    def code(self, name: str) -> nodes.Node:
        words = nodes.literal("", name.removeprefix("interp_lib."), classes=["xref", "py", "py-obj"])
        return addnodes.pending_xref(
            "", words, refdomain="py", reftype="obj", reftarget=name, refdoc=self.page, refwarn=True
        )

    # The tests

    def tests(self) -> list[nodes.Node]:
        root = Path(str(self.app.srcdir))
        users: dict[str, list[str]] = {}
        for page in self.pages:
            for result in page.results:
                for name in self.entries.get(result.label, Entry()).tests:
                    users.setdefault(name, []).append(result.label)
        filled: list[nodes.Node] = []
        for path in sorted({name.partition("::")[0] for name in users}):
            filled.append(nodes.rubric("", "", nodes.literal("", path)))
            for name in sorted(n for n in users if n.startswith(f"{path}::")):
                source = source_of(root, name) or ""
                guards = [
                    nodes.Text("Guards "),
                    *joined([self.named(label) for label in users[name]], ", "),
                    nodes.Text("."),
                ]
                block = nodes.literal_block(source, source, language="python")
                filled.append(nodes.container("", nodes.paragraph("", "", *guards), block, ids=[anchor_of(name)]))
        return filled


def anchor_of(name: str) -> str:
    """The place of a test on the page of tests.

    >>> anchor_of("tests/interpolation/test_line.py::test_it")
    'interpolation-test_line-test_it'
    """
    return name.removeprefix("tests/").replace(".py::", "-").replace("/", "-")


def joined(items: list[nodes.Node], between: str) -> list[nodes.Node]:
    found: list[nodes.Node] = []
    for item in items:
        found += [nodes.Text(between), item] if found else [item]
    return found


_FILTER = """
<form class="ledger-filter" role="search" hidden>
<label>Find <input type="search" autocomplete="off" placeholder="words, e.g. collapse or 4.2"></label>
<label>Kind <select name="kind"><option value="">all</option><option value="ledger-theorem">theorems</option>
<option value="ledger-proposition">propositions</option><option value="ledger-lemma">lemmas</option>
<option value="ledger-corollary">corollaries</option><option value="ledger-definition">definitions</option></select></label>
<label>Checked <select name="how"><option value="">any way</option><option value="ledger-exact">over Q</option>
<option value="ledger-certified">enclosed</option><option value="ledger-measured">measured</option></select></label>
<output aria-live="polite"></output>
</form>
"""


def _load(app: Sphinx) -> None:
    file = Path(str(app.srcdir), FILE)
    app.env.ledger_entries = entries_of(file.read_text(encoding="utf-8")) if file.exists() else {}  # type: ignore[attr-defined]


def _check(app: Sphinx, env: Any) -> None:
    """Complain, unless this is a build of a few pages without the ledger."""
    env.ledger_pages = {}
    for page in results.records(env):
        for node in env.get_doctree(page).findall(listing):
            env.ledger_pages[node["kind"]] = page
            # Its source has no formula, so Sphinx would not load the renderer; what will be filled in has some.
            env.get_domain("math").data["has_equations"][page] = True
    if "ledger" in env.ledger_pages:
        for page, words in complaints(results.in_order(env), env.ledger_entries, Path(str(app.srcdir))):
            say = logger.warning if app.config.ledger_complete else logger.info
            say("ledger: %s: %s", page, words)


def _script(app: Sphinx, _page: str, _template: str, context: dict[str, Any], _doctree: Any) -> None:
    if "ledger-filter" in context.get("body", ""):
        app.add_js_file("ledger.mjs", type="module")


def setup(app: Sphinx) -> dict[str, Any]:
    app.setup_extension("results")
    app.add_config_value("ledger_complete", False, "env")
    app.add_node(listing)
    for name in ("ledger", "ledger-tests"):
        app.add_directive(name, Listing)
    app.add_post_transform(Fill)
    app.connect("builder-inited", _load)
    app.connect("env-check-consistency", _check)
    app.connect("html-page-context", _script)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
