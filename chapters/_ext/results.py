"""What the pages state, prove and check: read from the document trees, one record a page.

* A *result* is a labelled `{prf:theorem}`, `{prf:lemma}`, … .
* A *proof* is a `{prf:proof}`; it belongs to the result that its opening emphasis refers to
  (`*Of {prf:ref}`thm-x`.*`), else to the last result before it.  A whole section is the proof of `thm-x`
  if the target `(proof-of-thm-x)=` stands above its heading.
* A *check* is a code cell with the comment `# checks thm-x`; it has to assert something.
* A *mention* is a `{prf:ref}`.  Inside a proof it means that the proof uses the result; so does a lemma that is
  stated inside the section that proves a theorem.
* Two *boxes* frame a chapter: `:class: needs` ("What you need") and `:class: now` ("What you can do now").

Proofs and cells get anchors of their own: `proof-of-thm-x`, `checks-thm-x`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, final

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx_proof.nodes import NODE_TYPES, proof_node, unenumerable_node

CLAIMS = ("theorem", "proposition", "lemma", "corollary")
PROOF_OF = "proof-of-"
_CHECKS = re.compile(r"^\s*# checks ((?:[a-z]+-[\w-]+(?:, )?)+)\s*$", re.MULTILINE)


@final
@dataclass(frozen=True, slots=True)
class Result:
    label: str
    kind: str
    title: str
    page: str

    @property
    def is_claim(self) -> bool:
        """Whether it needs a proof: definitions and remarks do not."""
        return self.kind in CLAIMS


@final
@dataclass(frozen=True, slots=True)
class Proof:
    page: str
    anchor: str
    of: str | None


@final
@dataclass(frozen=True, slots=True)
class Check:
    page: str
    anchor: str
    of: tuple[str, ...]
    asserts: bool


@final
@dataclass(frozen=True, slots=True)
class Mention:
    """A reference to the result `label`, inside the proof (or the statement) of `by`, if it is inside one."""

    label: str
    page: str
    by: str | None
    in_proof: bool


@final
@dataclass(frozen=True, slots=True)
class Page:
    name: str
    results: tuple[Result, ...]
    proofs: tuple[Proof, ...]
    checks: tuple[Check, ...]
    mentions: tuple[Mention, ...]
    boxes: frozenset[str]
    needs: tuple[str, ...] = ()


def named_in(source: str) -> tuple[str, ...]:
    """The results that a code cell says it checks.

    >>> named_in("# checks thm-a, lem-b\\nassert 1 + 1 == 2")
    ('thm-a', 'lem-b')
    """
    return tuple(label for found in _CHECKS.findall(source) for label in found.split(", "))


def is_result(node: nodes.Node) -> bool:
    return isinstance(node, (*NODE_TYPES.values(), unenumerable_node))


def is_reference(node: nodes.Node) -> bool:
    return isinstance(node, addnodes.pending_xref) and node.get("refdomain") == "prf"


def read(doctree: nodes.document, page: str) -> Page:
    """The record of one page; proofs and checking cells receive their anchors on the way."""
    anchors: Counter[str] = Counter()

    def anchor(name: str) -> str:
        anchors[name] += 1
        return name if anchors[name] == 1 else f"{name}-{anchors[name]}"

    results: list[Result] = []
    proofs: list[Proof] = []
    checks: list[Check] = []
    owners: dict[nodes.Node, tuple[str | None, bool]] = {}
    for node in doctree.findall(lambda n: isinstance(n, nodes.Element)):
        if is_result(node):
            title = node["title"].strip().removeprefix("(").removesuffix(")")
            results.append(Result(node["label"], node["realtype"], title, page))
            owners[node] = (node["label"], False)
            # sphinx-proof gives every statement and every proof of a page the same id.
            node[-1]["ids"] = [f"{node['label']}-statement"]
        elif isinstance(node, proof_node):
            of = _named_at_the_start(node) or (results[-1].label if results else None)
            # Two proofs in a row without a name would both claim the last result.
            if of is not None and _named_at_the_start(node) is None and any(p.of == of for p in proofs):
                of = None
            name = anchor(PROOF_OF + of) if of else anchor("proof")
            node[0]["ids"] = [name]
            proofs.append(Proof(page, name, of))
            owners[node] = (of, True)
        elif isinstance(node, nodes.section):
            for name in node["ids"]:
                if name.startswith(PROOF_OF):
                    of = name.removeprefix(PROOF_OF)
                    anchors[name] += 1
                    proofs.append(Proof(page, name, of))
                    owners[node] = (of, True)
        elif node.get("nb_element") == "cell_code":
            source = "\n".join(block.astext() for block in _inputs(node))
            if of_cell := named_in(source):
                names = [anchor(f"checks-{label}") for label in of_cell]
                node["ids"] += names
                checks += [Check(page, name, (label,), "assert " in source) for name, label in zip(names, of_cell)]
    mentions = [Mention(node["reftarget"], page, *_owner(node, owners)) for node in doctree.findall(is_reference)]
    # A lemma inside the section that proves a theorem is there for that theorem.
    for node, (label, _) in list(owners.items()):
        if is_result(node) and label is not None and node.parent is not None:
            by, in_proof = _owner(node.parent, owners)
            if by is not None and by != label:
                mentions.append(Mention(label, page, by, in_proof))
    boxes = frozenset(c for node in doctree.findall(nodes.admonition) for c in node["classes"] if c in ("needs", "now"))
    needs = tuple(needed(doctree))
    return Page(page, tuple(results), tuple(proofs), tuple(checks), tuple(mentions), boxes, needs)


def needed(doctree: nodes.document) -> Iterator[str]:
    """What the box "What you need" links to: labels of results and names of pages."""
    for box in doctree.findall(nodes.admonition):
        if "needs" in box["classes"]:
            for node in box.findall(addnodes.pending_xref):
                if node.get("refdomain") in ("prf", "doc"):
                    yield str(node["reftarget"]).lstrip("/")


def _inputs(cell: nodes.Element) -> Iterator[nodes.Element]:
    for part in cell.findall(nodes.container):
        if part.get("nb_element") == "cell_code_source":
            yield from part.findall(nodes.literal_block)


def _named_at_the_start(proof: nodes.Element) -> str | None:
    paragraph = next(iter(proof.findall(nodes.paragraph)), None)
    if paragraph is None:
        return None
    # The directive writes "Proof. " before the first words.
    for child in paragraph.children[:2]:
        if isinstance(child, nodes.emphasis):
            for reference in child.findall(is_reference):
                return str(reference["reftarget"])
    return None


def _owner(node: nodes.Node | None, owners: dict[nodes.Node, tuple[str | None, bool]]) -> tuple[str | None, bool]:
    """The result whose statement or proof the node stands in."""
    while node is not None:
        if node in owners:
            return owners[node]
        node = node.parent
    return None, False


def users(pages: Iterable[Page], label: str) -> list[str]:
    """The results whose proofs use `label`, in reading order, each once."""
    return _mentioning(list(pages), label, in_proof=True)


def stated_with(pages: Iterable[Page], label: str) -> list[str]:
    """The results whose statements mention `label`."""
    return _mentioning(list(pages), label, in_proof=False)


def _mentioning(pages: list[Page], label: str, *, in_proof: bool) -> list[str]:
    known = {r.label for page in pages for r in page.results}
    found = [m.by for page in pages for m in page.mentions if m.label == label and m.in_proof is in_proof]
    return [by for by in dict.fromkeys(found) if by in known and by != label and by is not None]


def records(env: Any) -> dict[str, Page]:
    if not hasattr(env, "book_records"):
        env.book_records = {}
    found: dict[str, Page] = env.book_records
    return found


def reading_order(env: Any) -> list[str]:
    """All pages in the order of the table of contents."""

    def walk(page: str) -> Iterator[str]:
        yield page
        for child in env.toctree_includes.get(page, ()):
            yield from walk(child)

    return list(walk(env.config.root_doc))


def in_order(env: Any) -> list[Page]:
    found = records(env)
    return [found[name] for name in reading_order(env) if name in found]


def number(env: Any, label: str) -> str:
    """The number that the book gives a result."""
    entry = env.proof_list[label]
    parts = env.toc_fignumbers.get(entry["docname"], {}).get(entry["countertype"], {}).get(label, ())
    return ".".join(map(str, parts))


def _read(app: Sphinx, doctree: nodes.document) -> None:
    records(app.env)[app.env.docname] = read(doctree, app.env.docname)


def _purge(_app: Sphinx, env: Any, page: str) -> None:
    records(env).pop(page, None)


def _merge(_app: Sphinx, env: Any, _pages: set[str], other: Any) -> None:
    records(env).update(records(other))


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("doctree-read", _read)
    app.connect("env-purge-doc", _purge)
    app.connect("env-merge-info", _merge)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
