"""Every page of the built book in headless Chromium: no errors, no other hosts, readable on a phone, live explorers."""

from __future__ import annotations

import functools
import http.server
import json
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from interp_lib.explorers.base import draw, shown

HTML = Path(__file__).resolve().parents[2] / "_build" / "html"
PAGES = sorted(path.relative_to(HTML).as_posix() for path in HTML.rglob("chapters/**/*.html"))
LIVE = [name for name in PAGES if 'class="explorer"' in (HTML / name).read_text(encoding="utf-8")]
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

pytestmark = pytest.mark.browser


def test_the_book_is_built() -> None:
    assert PAGES
    assert LIVE


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    handler = functools.partial(_Quiet, directory=str(HTML))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    names = ("chromium", "chromium-browser", "google-chrome")
    path = next(found for name in names if (found := shutil.which(name)))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


class Visit:
    """A page opened with every other host blocked, and what went wrong on it."""

    def __init__(self, browser: Browser, address: str, name: str, width: int, scheme: str = "light") -> None:
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)  # type: ignore[arg-type]
        self.problems: list[str] = []

        def guard(route):  # type: ignore[no-untyped-def]
            if route.request.url.startswith((address, "data:", "blob:")):
                route.continue_()
            else:
                self.problems.append(f"asked for {route.request.url}")
                route.abort()

        context.route("**/*", guard)
        self.page: Page = context.new_page()
        self.page.on("console", lambda m: self.problems.append(m.text) if m.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda e: self.problems.append(str(e)))
        self.page.on("response", lambda r: self.problems.append(f"{r.status} {r.url}") if r.status >= 400 else None)
        self.page.goto(f"{address}/{name}", wait_until="load")

    def close(self) -> None:
        self.page.context.close()


@pytest.mark.parametrize("name", PAGES)
def test_page(name: str, browser: Browser, address: str) -> None:
    visit = Visit(browser, address, name, width=390)
    page = visit.page
    if page.locator(".math").count():
        # The first formula of a page may stand in a closed drop-down.
        page.wait_for_selector("mjx-container", state="attached")
        page.wait_for_function("MathJax.startup.promise.then(() => true)")
    assert page.locator("mjx-merror, .merror").count() == 0, "a formula has an error"
    assert page.evaluate("document.documentElement.scrollWidth") <= 390, "the page scrolls sideways on a phone"
    silent = page.evaluate(
        "[...document.querySelectorAll('img')].filter((i) => !i.alt).map((i) => i.src)"
        ".concat([...document.querySelectorAll('article .cell_output svg, article figure svg')]"
        ".filter((s) => !s.closest('mjx-container') && !s.getAttribute('aria-label') && !s.getAttribute('aria-hidden')"
        " && !s.querySelector('title')).map((s) => s.outerHTML.slice(0, 80)))"
    )
    assert silent == []
    assert visit.problems == []
    visit.close()


@pytest.mark.parametrize("name", LIVE)
def test_explorers(name: str, browser: Browser, address: str) -> None:
    """Each explorer starts by itself; each slider, moved, gives exactly the library's own answer."""
    visit = Visit(browser, address, name, width=1280)
    page = visit.page
    page.set_default_timeout(120_000)
    for index in range(page.locator(".explorer").count()):
        box = page.locator(".explorer").nth(index)
        box.scroll_into_view_if_needed()
        _wait(page, index)
        spec = json.loads(box.get_attribute("data-explorer") or "")
        _check_numbers(page, index, spec)
        for parameter in spec["parameters"]:
            if parameter["kind"] not in ("integer", "real", "log"):
                continue
            moved = page.evaluate(
                """([index, name]) => {
                    const input = document.querySelectorAll('.explorer')[index].querySelector(`[name="${name}"]`);
                    if (input.closest('[hidden]') || input.min === input.max) return false;
                    const at = input.value;
                    input.value = Number(at) + Number(input.step);
                    if (input.value === at) input.value = Number(at) - Number(input.step);
                    input.dispatchEvent(new Event('input', { bubbles: true }));
                    return input.value !== at;
                }""",
                [index, parameter["name"]],
            )
            if moved:
                _wait(page, index)
                _check_numbers(page, index, spec)
    assert visit.problems == []
    visit.close()


def _wait(page: Page, index: int) -> None:
    state = "document.querySelectorAll('.explorer')[{0}].dataset.state"
    page.wait_for_function(f"['done', 'failed'].includes({state.format(index)})")
    box = page.locator(".explorer").nth(index)
    assert box.get_attribute("data-state") == "done", box.locator(".explorer-status").inner_text()


def _check_numbers(page: Page, index: int, spec: dict) -> None:  # type: ignore[type-arg]
    box = page.locator(".explorer").nth(index)
    arguments = page.evaluate(
        "(index) => { const e = document.querySelectorAll('.explorer')[index].explorer;"
        " return Object.fromEntries(e.spec.parameters.map((p) => [p.name, e.value(p)])); }",
        index,
    )
    expected = {name: shown(value) for name, value in draw(spec["target"], arguments).numbers.items()}
    rows = box.locator(".explorer-numbers dd")
    there = {rows.nth(k).get_attribute("data-name"): rows.nth(k).inner_text() for k in range(rows.count())}
    assert there == expected, arguments
