"""The book's own Sphinx extension: self-hosted front end and live explorers.

* Files fetched at set-up (`.vendor/`) and the files beside this module (`static/`) are served with the book;
  no page asks another host for anything.
* `templates/` holds the one template that differs from the theme's, so that all of a page lies in landmarks.
* Pages with an explorer load one small module script.  It starts a worker that runs this
  library in the page: at the end of the build the library is packed into a zip archive beside the worker.
* `figure(...)` of `interp_lib.explorers.figure` and explorers are raw HTML; nothing here rewrites them.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

HERE = Path(__file__).parent
VENDOR = ".vendor"


def _serve_files(app: Sphinx, config: Any) -> None:
    # Jupyter Book loads every script it finds under its own static folders on every page;
    # these folders are added after it has looked.
    config.templates_path.append(str(HERE / "templates"))
    config.html_static_path += [str(HERE / "static"), str(Path(str(app.srcdir)) / VENDOR)]


def _prepare_page(app: Sphinx, _page: str, _template: str, context: dict[str, Any], _doctree: Any) -> None:
    if 'class="explorer"' in context.get("body", ""):
        app.add_js_file("explorers/page.mjs", type="module")
    # sphinx-thebe adds its script to every page although no page uses it.
    scripts = context.get("script_files")
    if scripts is not None:
        scripts[:] = [s for s in scripts if "thebe" not in str(getattr(s, "filename", "")) + _inline(s).lower()]


def _inline(script: Any) -> str:
    return str((getattr(script, "attributes", None) or {}).get("body") or "")


def _pack_library(app: Sphinx, problem: Exception | None) -> None:
    if problem or app.builder.format != "html":
        return
    static = Path(str(app.outdir), "_static")
    source = Path(str(app.srcdir))
    with zipfile.ZipFile(static / "explorers" / "interp_lib.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(source.joinpath("interp_lib").rglob("*")):
            if file.suffix in (".py", ".json") and "experiments" not in file.parts and file.is_file():
                name = file.relative_to(source).as_posix()
                archive.writestr(zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0)), file.read_bytes(), zipfile.ZIP_DEFLATED)
    (flint,) = static.joinpath("vendor", "pyodide").glob("python_flint-*.whl")
    files = {"library": "interp_lib.zip", "flint": flint.name}
    static.joinpath("explorers", "files.json").write_text(json.dumps(files), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    app.setup_extension("maps")
    app.add_css_file("book.css")
    app.add_js_file("reading.mjs", type="module")
    app.connect("config-inited", _serve_files)
    app.connect("html-page-context", _prepare_page, priority=900)
    app.connect("build-finished", _pack_library)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
