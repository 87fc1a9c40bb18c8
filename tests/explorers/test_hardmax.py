"""The Theorem 1.6 explorer: its numbers are the library's, its steps are the trace, its answers are quick."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

import interp_lib as il
from interp_lib.command_line import main
from interp_lib.data_files import read_dataset
from interp_lib.examples import random_dataset, running_example
from interp_lib.explorers import hardmax as hm
from interp_lib.explorers.data import EXAMPLE, RANDOM, as_floats
from interp_lib.explorers.film import Film

CASES = [(1, 1, 2, 0), (2, 1, 2, 5), (3, 4, 2, 1), (4, 5, 16, 3), (4, 2, 5, 7)]


def arguments(
    N: int, n: int, d: int, seed: int, step: int, m: int = 2, pad: bool = False
) -> dict[str, int | str | bool]:
    more = {f"m{j}": m for j in range(1, hm.MOST_SEQUENCES + 1)}
    return {"source": RANDOM, "N": N, "n": n, "d": d, "seed": seed, "pad": pad, "step": step, **more}


@pytest.mark.parametrize(("N", "n", "d", "seed"), CASES)
@pytest.mark.parametrize("pad", [False, True])
def test_numbers_are_those_of_the_library(N: int, n: int, d: int, seed: int, pad: bool) -> None:
    data = random_dataset(N, n, [2] * N, d, seed)
    T = il.hardmax_interpolant(data, pad)
    numbers = hm.picture(**arguments(N, n, d, seed, step=999, pad=pad)).numbers  # type: ignore[arg-type]
    assert numbers["blocks L"] == T.depth <= numbers["at most"]
    assert numbers["parameters P"] == T.num_parameters("structured")
    assert numbers["width"] == T.width
    assert numbers["certificate"] == "certified"
    assert numbers["at their targets"] == f"{N} of {N}"


@pytest.mark.parametrize(("N", "n", "d", "seed"), CASES)
def test_steps_are_the_exact_trace(N: int, n: int, d: int, seed: int) -> None:
    data = random_dataset(N, n, [2] * N, d, seed)
    journey = hm.Journey(data)
    T = journey.transformer
    for step in (T.depth, 0, T.depth // 2):  # in any order
        for X, cloud in zip(data.inputs, journey.clouds(step), strict=True):
            tokens = T.trace(X, field=il.EXACT)[2 * step].tokens
            assert cloud == as_floats([x[:2] for x in tokens])
        assert journey.different(step) == [len(set(T.trace(X, field=il.EXACT)[2 * step].tokens)) for X in data.inputs]
    assert (journey.arrived(0), journey.arrived(T.depth)) == (0, N)


def test_every_step_of_the_example_is_a_picture_with_words() -> None:
    depth = il.hardmax_interpolant(running_example()).depth
    phases = set()
    for step in range(depth + 1):
        shown = hm.picture(EXAMPLE, 3, 4, 2, 0, False, step, **{f"m{j}": 1 for j in range(1, hm.MOST_SEQUENCES + 1)})
        root = ElementTree.fromstring(shown.svg)
        assert f"block {step} of {depth}" in (root.findtext("{http://www.w3.org/2000/svg}desc") or "")
        assert shown.limits == {"step": (0, depth)}
        phases.add(shown.numbers["phase"])
    assert len(phases) == 5


def test_files_are_the_data_the_weights_and_a_certificate(tmp_path: Path) -> None:
    shown = hm.picture(**arguments(2, 3, 2, 4, step=1))  # type: ignore[arg-type]
    paths = {name: tmp_path / name for name in shown.files}
    for name, path in paths.items():
        path.write_text(shown.files[name](), encoding="utf-8")
    data, transformer, certificate = (str(paths[f"{name}.json"]) for name in ("data", "transformer", "certificate"))
    assert read_dataset(data) == random_dataset(2, 3, [2, 2], 2, 4)
    assert il.load(transformer) == il.hardmax_interpolant(read_dataset(data))
    assert main(["check", certificate, transformer, data]) == 0


def test_the_film_has_a_path_for_every_token() -> None:
    data = running_example()
    text = Film(hm.Journey(data), "On their way")._repr_html_()
    for j in range(data.N):
        for i in range(data.n[j]):
            assert f"@keyframes film-{j}-{i}{{" in text
    assert "prefers-reduced-motion" in text
    ElementTree.fromstring(text[text.index("<svg") : text.index("</svg>") + 6])
