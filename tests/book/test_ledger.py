"""The ledger's extension: small books built with it, its complaints, and the names in the real ledger file."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import ledger
import pytest
import results
from results import Check, Mention, Page, Proof, Result
from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = ROOT / "chapters"

BOOK = """
# A book

:::{prf:definition} Even
:label: def-even
An integer is **even** if it is twice an integer.
:::

:::{prf:lemma} Sums
:label: lem-sums
Sums of even numbers ({prf:ref}`def-even`) are even.
:::

:::{prf:proof}
$2a + 2b = 2 (a + b)$.
:::

:::{prf:theorem} Multiples
:label: thm-multiples
Multiples of even numbers are even.
:::

:::{prf:lemma} Nothing to add
:label: lem-nothing
$0$ is even.
:::

:::{prf:proof}
$0 = 2 \\cdot 0$.
:::

:::{prf:proof}
*Of {prf:ref}`thm-multiples`.* Use {prf:ref}`lem-sums` and {prf:ref}`lem-nothing`.
:::

:::{prf:theorem} Long
:label: thm-long
A theorem whose proof is a section.
:::

(proof-of-thm-long)=
## A long proof

:::{prf:lemma} Inside
:label: lem-inside
A step.
:::

:::{prf:proof}
By {prf:ref}`lem-sums`.
:::

```{ledger}
```
"""


def built(text: str, folder: Path) -> Sphinx:
    (folder / "index.md").write_text(text, encoding="utf-8")
    (folder / "tests").mkdir()
    (folder / "tests" / "test_it.py").write_text("def test_sums():\n    assert 2 + 2 == 4\n", encoding="utf-8")
    settings = {
        "extensions": ["myst_parser", "sphinx_proof", "ledger"],
        "myst_enable_extensions": ["colon_fence", "dollarmath"],
        "prf_realtyp_to_countertyp": dict.fromkeys((*results.CLAIMS, "definition"), "theorem"),
        "html_theme": "basic",
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # other people's deprecations
        app = Sphinx(folder, None, folder / "out", folder / "trees", "html", settings, status=None, warning=None)
        app.build()
    return app


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> tuple[Page, str]:
    folder = tmp_path_factory.mktemp("book")
    app = built(BOOK, folder)
    (page,) = results.in_order(app.env)
    return page, (folder / "out" / "index.html").read_text(encoding="utf-8")


def test_results_and_proofs_find_each_other(book: tuple[Page, str]) -> None:
    page, _ = book
    assert [r.label for r in page.results] == [
        "def-even",
        "lem-sums",
        "thm-multiples",
        "lem-nothing",
        "thm-long",
        "lem-inside",
    ]
    assert [r.title for r in page.results][:2] == ["Even", "Sums"]
    assert {p.of for p in page.proofs} == {"lem-sums", "lem-nothing", "thm-multiples", "thm-long", "lem-inside"}


def test_uses_are_read_off_the_proofs(book: tuple[Page, str]) -> None:
    page, _ = book
    assert results.users([page], "lem-sums") == ["thm-multiples", "lem-inside"]
    assert results.users([page], "lem-inside") == ["thm-long"]  # stated inside the proof
    assert results.users([page], "def-even") == []
    assert results.stated_with([page], "def-even") == ["lem-sums"]


def test_the_page_has_rows_anchors_and_lines_of_uses(book: tuple[Page, str]) -> None:
    page, html = book
    for result in page.results:
        assert f'id="ledger-{result.label}"' in html
    for proof in page.proofs:
        assert html.count(f'id="{proof.anchor}"') == 1
        assert f'href="#{proof.anchor}"' in html
    assert "Used in" in html
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert len(ids) == len(set(ids))


def test_a_page_filled_with_formulas_loads_their_renderer(tmp_path: Path) -> None:
    """The source of the ledger has no formula; the statements copied into it have."""
    statement, _, _ = BOOK.partition("```{ledger}")
    (tmp_path / "results.md").write_text(statement.replace("are even.", "are $2 k$."), encoding="utf-8")
    (tmp_path / "all.md").write_text("# All\n\n```{ledger}\n```\n", encoding="utf-8")
    built("# Book\n\n```{toctree}\nresults\nall\n```\n", tmp_path)
    pages = {name: (tmp_path / "out" / f"{name}.html").read_text(encoding="utf-8") for name in ("all", "results")}
    assert all('class="math' in html and re.search("<script[^>]*mathjax", html) for html in pages.values())


def test_a_cell_says_what_it_checks() -> None:
    assert results.named_in("x = 1\n# checks thm-a, lem-b-2\nassert x") == ("thm-a", "lem-b-2")
    assert results.named_in("# checks that it works\n") == ()


GOOD = Page(
    "p",
    (Result("lem-a", "lemma", "A", "p"), Result("def-b", "definition", "B", "p")),
    (Proof("p", "proof-of-lem-a", "lem-a"),),
    (Check("p", "checks-lem-a", ("lem-a",), True),),
    (Mention("def-b", "p", "lem-a", True),),
    frozenset(),
)
ENTRY = ledger.Entry(("exact",), ("tests/test_it.py::test_sums",))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_it.py").write_text("def test_sums():\n    assert 2 + 2 == 4\n", encoding="utf-8")
    return tmp_path


def changed(**parts: object) -> Page:
    fields = {name: getattr(GOOD, name) for name in ("name", "results", "proofs", "checks", "mentions", "boxes")}
    return Page(**{**fields, **parts})  # type: ignore[arg-type]


def test_a_complete_book_is_not_complained_about(root: Path) -> None:
    assert ledger.complaints([GOOD], {"lem-a": ENTRY}, root) == []


@pytest.mark.parametrize(
    ("page", "entries", "words"),
    [
        (changed(proofs=()), {"lem-a": ENTRY}, "lem-a has no proof"),
        (changed(checks=()), {"lem-a": ENTRY}, "lem-a is checked by no cell"),
        (GOOD, {"lem-a": ledger.Entry(("exact",))}, "lem-a has no test"),
        (GOOD, {"lem-a": ledger.Entry((), ENTRY.tests)}, "lem-a says nowhere"),
        (GOOD, {"lem-a": ENTRY, "lem-z": ENTRY}, "lem-z is no result"),
        (GOOD, {"lem-a": ledger.Entry(("exact",), ("tests/test_it.py::test_gone",))}, "there is no test"),
        (GOOD, {"lem-a": ledger.Entry(("roughly",), ENTRY.tests)}, "is none of exact"),
        (changed(proofs=(*GOOD.proofs, Proof("p", "proof", None))), {"lem-a": ENTRY}, "a proof without a result"),
        (changed(checks=(Check("p", "x", ("lem-a",), False),)), {"lem-a": ENTRY}, "asserts nothing"),
        (changed(checks=(*GOOD.checks, Check("p", "x", ("lem-y",), True))), {"lem-a": ENTRY}, "lem-y, which does not"),
    ],
)
def test_every_gap_and_every_false_name_is_said(
    page: Page, entries: dict[str, ledger.Entry], words: str, root: Path
) -> None:
    found = [said for _, said in ledger.complaints([page], entries, root)]
    assert len(found) == 1
    assert words in found[0]


def test_an_unknown_field_is_named() -> None:
    with pytest.raises(ValueError, match="proof is no field"):
        ledger.entries_of('[lem-a]\nproof = "yes"')


# The real ledger, without a build


def pages_of_the_book() -> list[Path]:
    return sorted(CHAPTERS.rglob("*.md"))


def test_the_ledger_names_results_and_tests_that_exist() -> None:
    labels = {
        label for file in pages_of_the_book() for label in re.findall(r"(?m)^:label: (\S+)$", file.read_text("utf-8"))
    }
    entries = ledger.entries_of((ROOT / ledger.FILE).read_text(encoding="utf-8"))
    assert entries
    assert set(entries) <= labels
    missing = [t for e in entries.values() for t in e.tests if ledger.source_of(ROOT, t) is None]
    assert not missing
    assert {h for e in entries.values() for h in e.how} <= set(ledger.HOW)
