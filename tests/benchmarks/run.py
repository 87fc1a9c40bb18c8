"""Measure how exact computation scales; the book's page on it reads the stored results.

    python tests/benchmarks/run.py                 all measurements, into results.json beside this file
    python tests/benchmarks/run.py mean bits       only these; the others keep their stored results

Needs the test requirements; `browser` needs the built book and Chromium.  Numbers are the best of a few runs where one run is short.
"""

from __future__ import annotations

import argparse
import functools
import http.server
import json
import math
import os
import platform
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from typing import Any

import interp_lib as il

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results.json"
HTML = HERE.parents[1] / "_build" / "html"
SEED = 1


def uniform(N: int, n: int, m: int, d: int, seed: int = SEED) -> il.Dataset:
    """Floats from the unit cube."""
    source = random.Random(seed)

    def tokens(count: int) -> list[list[float]]:
        return [[source.random() for _ in range(d)] for _ in range(count)]

    return il.Dataset([tokens(n) for _ in range(N)], [tokens(m) for _ in range(N)])


def timed(task: Callable[[], Any], repeat: int = 1) -> tuple[float, Any]:
    """The shortest time of a few runs, and the last result."""
    best, result = math.inf, None
    for _ in range(repeat):
        start = time.perf_counter()
        result = task()
        best = min(best, time.perf_counter() - start)
    return best, result


def build_and_verify(
    data: il.Dataset, build: Callable[[il.Dataset], il.Transformer], temperature: Any, repeat: int
) -> dict[str, Any]:
    building, T = timed(lambda: build(data), repeat)
    verifying, found = timed(lambda: il.verify(T, data, temperature), repeat)
    assert found.status == "certified", found.explain()
    return {
        "N": data.N, "tokens": sum(data.n), "M": data.M, "d": data.d, "blocks": T.depth,
        "build_s": round(building, 3), "verify_s": round(verifying, 3),
    }  # fmt: skip


def mean() -> dict[str, Any]:
    """Theorem S for a thousand sequences, in a process of its own so that its peak memory is its own."""
    data = uniform(1000, 50, 3, 16)
    found = build_and_verify(data, il.mean_interpolant, "all", 2)
    found["peak_MiB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return found


def tokens() -> list[dict[str, Any]]:
    """Verification against the number of tokens of a single sequence."""
    rows = []
    for n in (10**4, 10**5, 10**6):
        source = random.Random(SEED)
        X = [[source.random(), source.random()] for _ in range(n)]
        rows.append(build_and_verify(il.Dataset([X], [X[:3]]), il.mean_interpolant, "all", 1))
    return rows


def targets() -> list[dict[str, Any]]:
    """Verification against the number of targets, ten tokens per sequence."""
    return [build_and_verify(uniform(N, 10, 3, 16), il.mean_interpolant, "all", 2) for N in (125, 250, 500, 1000, 2000)]


def hardmax() -> list[dict[str, Any]]:
    """Theorem 1.6."""
    return [build_and_verify(uniform(N, 50, 3, 16), il.hardmax_interpolant, 0, 1) for N in (50, 100, 200)]


def softmax() -> list[dict[str, Any]]:
    """Certificates of Theorem 1.8 at the critical temperature."""
    rows = []
    for N in (10, 20, 50):
        data = uniform(N, 10, 3, 8)
        building, T = timed(lambda data=data: il.softmax_interpolant(data))
        verifying, found = timed(lambda T=T, data=data: il.verify(T, data, T.critical_temperature))
        assert found.status == "certified"
        rows.append({
            "N": N, "M": data.M, "d": data.d, "blocks": T.depth, "build_s": round(building, 3), "verify_s": round(verifying, 3),
            "bits": found.bits, "exponentials": found.exponentials, "critical_temperature": float(T.critical_temperature),
        })  # fmt: skip
    return rows


def plain() -> dict[str, Any]:
    """The checker against a plain evaluation in Fractions with dense matrices, in one run."""
    sys.path.insert(0, str(HERE.parents[1]))
    from tests.datasets import brute

    data = uniform(20, 10, 3, 8)
    T = il.mean_interpolant(data)
    fast, _ = timed(lambda: il.verify(T, data, "all"), 5)
    slow, _ = timed(lambda: [brute(T, X) for X in data.inputs])
    return {"N": data.N, "tokens": sum(data.n), "d": data.d, "blocks": T.depth, "checker_s": round(fast, 4), "plain_s": round(slow, 3),
            "ratio": round(slow / fast, 1)}  # fmt: skip


def floats() -> dict[str, Any]:
    """Float64 passes against the same weights as dense torch matrices with full attention, in one run."""
    import numpy as np
    import torch

    data = uniform(200, 50, 3, 16)
    T = il.hardmax_interpolant(data)
    arrays = [np.array([[float(v) for v in x] for x in X]) for X in data.inputs]
    T.forward_many(arrays[:2])  # weights are converted once
    together, _ = timed(lambda: T.forward_many(arrays), 3)
    alone, _ = timed(lambda: [T(X) for X in arrays[:20]])
    dense = [_dense(block, torch) for block in T.blocks]
    tensors = [torch.from_numpy(X) for X in arrays]
    with torch.inference_mode():
        _torch_pass(dense, tensors[0], torch)
        single, _ = timed(lambda: [_torch_pass(dense, X, torch) for X in tensors[:20]])
        batch, _ = timed(lambda: _torch_pass(dense, torch.stack(tensors), torch))
    return {
        "N": data.N, "n": 50, "d": data.d, "blocks": T.depth, "threads": torch.get_num_threads(),
        "forward_many_s": round(together, 3), "one_by_one_s": round(10 * alone, 2),
        "torch_one_by_one_s": round(10 * single, 2), "torch_batch_s": round(batch, 2),
        "ratio_one_by_one": round(10 * single / together, 1), "ratio_batch": round(batch / together, 1),
    }  # fmt: skip


def _dense(block: Any, torch: Any) -> tuple[Any, ...]:
    def tensor(rows: Any, *shape: int) -> Any:
        return torch.tensor([float(v) for row in rows for v in row], dtype=torch.float64).reshape(shape)

    ff, sa = block.feed_forward, block.attention
    d, w = ff.d, ff.width
    return (float(ff.eta), tensor(ff.U, w, d), tensor([ff.b], w), tensor(ff.W, d, w), float(sa.rho),
            tensor(sa.A.dense(), d, d), tensor(sa.V.dense(), d, d))  # fmt: skip


def _torch_pass(blocks: list[tuple[Any, ...]], X: Any, torch: Any) -> Any:
    for eta, U, b, W, rho, A, V in blocks:
        X = eta * X + torch.relu(X @ U.T + b) @ W.T
        scores = (X @ A.T) @ X.transpose(-1, -2)
        hits = (scores == scores.amax(-1, keepdim=True)).to(X.dtype)
        X = rho * X + (hits / hits.sum(-1, keepdim=True) @ X) @ V.T
    return X


def bits() -> dict[str, Any]:
    """The longest numerator plus denominator of a token's coordinate after each block."""
    data = uniform(20, 8, 3, 4)
    found = {}
    for name, T in (("hardmax", il.hardmax_interpolant(data)), ("mean", il.mean_interpolant(data))):
        longest = [0] * (T.depth + 1)
        for X in data.inputs:
            for state in T.trace(X, field=il.EXACT):
                if state.layer != "feed_forward":
                    size = max(_bits(v) for x in state.tokens for v in x)
                    longest[state.block] = max(longest[state.block], size)
        weights = [
            max(_bits(v) for row in (*b.feed_forward.U, b.feed_forward.b, *b.feed_forward.W) for v in row)
            for b in T.blocks
        ]
        found[name] = {"phases": T.phases, "tokens": longest, "weights": weights}
    return found


def _bits(value: Fraction) -> int:
    return value.numerator.bit_length() + value.denominator.bit_length()


def pages() -> dict[str, Any]:
    """Sizes of the built pages: HTML, and everything loaded before the live kernel, apart from what all pages share."""
    sizes = {path.relative_to(HTML).as_posix(): path.stat().st_size for path in sorted(HTML.glob("chapters/**/*.html"))}
    return {
        "largest": max(sizes, key=sizes.__getitem__),
        "largest_KiB": max(sizes.values()) // 1024,
        "pages": len(sizes),
    }


def book() -> dict[str, Any]:
    """Seconds of a clean build of the book, and of a rebuild after one page has changed, in a copy of the project."""
    root = HERE.parents[1]
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch, "project")
        shutil.copytree(
            root, copy, ignore=shutil.ignore_patterns("_build", ".git", ".venv", ".vendor", "__pycache__", ".*_cache")
        )
        copy.joinpath(".vendor").symlink_to(root / ".vendor")
        command = [str(Path(sys.executable).with_name("jupyter-book")), "build", "."]
        settings = {
            **os.environ,
            "PYTHONPATH": str(copy),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        }

        def run() -> None:
            done = subprocess.run(command, cwd=copy, env=settings, check=False, capture_output=True, text=True)
            if done.returncode:
                sys.exit(done.stdout[-2000:] + done.stderr[-2000:])

        clean, _ = timed(run)
        page = copy / "chapters" / "interpolation" / "hardmax.md"
        page.write_text(page.read_text(encoding="utf-8") + "\nOne line more.\n", encoding="utf-8")
        again, _ = timed(run)
    return {"clean_s": round(clean, 1), "one_page_s": round(again, 1)}


def browser() -> list[dict[str, Any]]:
    """For every explorer: seconds until its Python answers, and the times of answers at the largest slider settings."""
    from playwright.sync_api import sync_playwright

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    rows: list[dict[str, Any]] = []
    names = ("chromium", "chromium-browser", "google-chrome")
    path = next(found for name in names if (found := shutil.which(name)))
    live = [p for p in sorted(HTML.glob("chapters/**/*.html")) if 'class="explorer"' in p.read_text(encoding="utf-8")]
    with (
        http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(HTML))) as server,
        sync_playwright() as p,
    ):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        chrome = p.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        for page_path in live:
            page = chrome.new_page(viewport={"width": 1280, "height": 900})
            page.set_default_timeout(120_000)
            page.goto(
                f"http://127.0.0.1:{server.server_port}/{page_path.relative_to(HTML).as_posix()}", wait_until="load"
            )
            page.wait_for_timeout(1000)
            for index in range(page.locator(".explorer").count()):
                start = time.perf_counter()
                page.locator(".explorer").nth(index).scroll_into_view_if_needed()
                page.wait_for_function(f"document.querySelectorAll('.explorer')[{index}].dataset.live === '1'")
                boot = time.perf_counter() - start
                times = page.evaluate(_SLIDE, index)
                rows.append({
                    "page": page_path.stem, "title": page.locator(".explorer-title").nth(index).inner_text(),
                    "boot_s": round(boot, 2), "first_of_page": index == 0, "answers": len(times),
                    "median_ms": round(sorted(times)[len(times) // 2]), "p95_ms": round(sorted(times)[int(0.95 * (len(times) - 1))]),
                })  # fmt: skip
            page.close()
        chrome.close()
    return rows


# Every choice to its last option and all sliders to their maximum, then one slider after another through its values; the time from input to picture.
_SLIDE = """async (index) => {
  const box = document.querySelectorAll('.explorer')[index];
  const rest = async () => { while (box.explorer.busy) await new Promise((r) => setTimeout(r, 1)); };
  const sliders = [...box.querySelectorAll('input[type=range]')];
  for (const s of box.querySelectorAll('select')) { s.selectedIndex = s.options.length - 1; }
  for (const s of sliders) { s.value = s.max; }
  sliders[0].dispatchEvent(new Event('input', { bubbles: true }));
  await rest();
  const times = [];
  for (const s of sliders) {
    if (s.closest('[hidden]')) continue;
    const low = Number(s.min), high = Number(s.max), step = Number(s.step);
    const count = Math.min(6, Math.round((high - low) / step));
    for (let k = 0; k < count; k++) {
      s.value = high - step * (k + 1);
      const began = performance.now();
      s.dispatchEvent(new Event('input', { bubbles: true }));
      await rest();
      times.push(performance.now() - began);
    }
    s.value = s.max;
    s.dispatchEvent(new Event('input', { bubbles: true }));
    await rest();
  }
  return times;
}"""

TASKS: dict[str, Callable[[], Any]] = {
    task.__name__: task for task in (mean, tokens, targets, hardmax, softmax, plain, floats, bits, book, pages, browser)
}


def environment() -> dict[str, Any]:
    names = ("python-flint", "numpy", "torch")
    return {
        "python": platform.python_version(),
        "cpu_count": os.cpu_count(),
        **{name: version(name) for name in names},
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "seed": SEED,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure how exact computation scales.")
    parser.add_argument("tasks", nargs="*", choices=[[], *TASKS], metavar="TASK", help=", ".join(TASKS))
    parser.add_argument("--one", choices=list(TASKS), help=argparse.SUPPRESS)
    choice = parser.parse_args()
    if choice.one:
        print(json.dumps(TASKS[choice.one]()))
        return
    stored = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    for name in choice.tasks or TASKS:
        # Each in a process of its own: no shared caches, and a peak memory of its own.
        done = subprocess.run([sys.executable, __file__, "--one", name], check=True, capture_output=True, text=True)
        stored[name] = json.loads(done.stdout.splitlines()[-1])
        print(name, json.dumps(stored[name]))
        stored["environment"] = environment()
        scratch = RESULTS.with_suffix(".tmp")
        scratch.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
        scratch.replace(RESULTS)


if __name__ == "__main__":
    main()
