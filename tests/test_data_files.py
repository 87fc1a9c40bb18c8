"""Data in files: exact numbers from JSON and npz, messages that name file, field, expected and got."""

from __future__ import annotations

import json
import tempfile
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import interp_lib as il
from interp_lib.data_files import DataFileError, data_digest, data_text, read_dataset, write_dataset
from interp_lib.examples import random_dataset, running_example


@given(st.integers(1, 4), st.integers(1, 5), st.integers(2, 4), st.integers(0, 99))
def test_json_round_trip_is_exact(N: int, n: int, d: int, seed: int) -> None:
    data = random_dataset(N, n, [2] * N, d, seed)
    with tempfile.TemporaryDirectory() as folder:
        write_dataset(data, Path(folder, "data.json"))
        again = read_dataset(Path(folder, "data.json"))
    assert again == data
    assert data_digest(again) == data_digest(data)


def test_json_numbers_are_read_as_written(tmp_path: Path) -> None:
    path = tmp_path / "data.json"
    path.write_text('{"inputs": [[[0.1, "-5/8"], [1e-3, 7]]], "outputs": [[["2.5", -0.5E+2]]]}')
    data = read_dataset(path)
    assert data.inputs == (((Fraction(1, 10), Fraction(-5, 8)), (Fraction(1, 1000), Fraction(7))),)
    assert data.outputs == (((Fraction(5, 2), Fraction(-50)),),)


def test_npz_floats_are_the_rationals_they_are(tmp_path: Path) -> None:
    inputs = np.random.default_rng(0).normal(size=(3, 4, 2))
    outputs = np.arange(12, dtype=np.int32).reshape(3, 2, 2)
    np.savez(tmp_path / "even.npz", inputs=inputs, outputs=outputs)
    assert read_dataset(tmp_path / "even.npz") == il.Dataset(inputs, outputs)
    ragged = {f"inputs_{j}": inputs[j, : 2 + j].astype(np.float32) for j in range(3)}
    np.savez_compressed(tmp_path / "ragged.npz", **ragged, **{f"outputs_{j}": outputs[j] for j in range(3)})
    assert read_dataset(tmp_path / "ragged.npz") == il.Dataset(list(ragged.values()), outputs)


def test_the_digest_names_the_numbers_and_their_order() -> None:
    data = running_example()
    as_floats = il.Dataset(*([np.array(X, dtype=float) for X in side] for side in (data.inputs, data.outputs)))
    assert data_digest(as_floats) == data_digest(data)
    flipped = il.Dataset([list(reversed(X)) for X in data.inputs], data.outputs)
    assert data_digest(flipped) != data_digest(data)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("hello", "bad.json is neither JSON text nor an npz archive"),
        ("[" * 100_000, "bad.json is neither"),
        ("[1]", 'bad.json: expected an object with "inputs" and "outputs", got a list'),
        ('{"inputs": []}', 'bad.json: "outputs" is missing'),
        ('{"inputs": [[[0, 1]]], "outputs": [[[0, 1]]], "weights": 1}', 'unknown field "weights"'),
        ('{"inputs": 1, "inputs": 2, "outputs": 3}', 'gives "inputs" twice'),
        ('{"inputs": [[[0, NaN]]], "outputs": [[[0, 1]]]}', "says NaN; finite numbers"),
        ('{"inputs": [[[0, 1e999999]]], "outputs": [[[0, 1]]]}', r"inputs\[0\]\[0\]\[1\]: expected an exponent"),
        ('{"inputs": [[[0, "x"]]], "outputs": [[[0, 1]]]}', r"inputs\[0\]\[0\]\[1\]: expected a number .*got 'x'"),
        ('{"inputs": [[[0, "1/0"]]], "outputs": [[[0, 1]]]}', "divides by zero"),
        ('{"inputs": [[[0, true]]], "outputs": [[[0, 1]]]}', r"bad.json: inputs\[0\]\[0\]\[1\] is a boolean"),
        ('{"inputs": [[[0, null]]], "outputs": [[[0, 1]]]}', r"bad.json: inputs\[0\]\[0\]\[1\]"),
        ('{"inputs": [[[0, 1]]], "outputs": [[[0, 1], [2, 3]]]}', r"outputs\[0\] has 2 tokens .* m_j ≤ n_j"),
        ('{"inputs": [[[0, 1, 2]]], "outputs": [[[0, 1]]]}', "same dimension"),
        ('{"inputs": 5, "outputs": [[[0, 1]]]}', "bad.json: inputs: expected a list of sequences"),
        (f'{{"inputs": [[[0, {"1" * 2000}]]], "outputs": [[[0, 1]]]}}', "a text of 2000 characters"),
    ],
)
def test_bad_json_is_named(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text)
    with pytest.raises(DataFileError, match=words):
        read_dataset(path)


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"inputs": np.zeros((2, 2)), "outputs": np.zeros((1, 1, 2))}, r"bad.npz: inputs: expected .* shape \(2, 2\)"),
        ({"inputs": np.zeros((1, 1, 2))}, '"outputs" is missing'),
        ({"inputs_0": np.zeros((1, 2)), "outputs_1": np.zeros((1, 2))}, '"outputs_0" is missing'),
        ({"inputs_0": np.zeros(2), "outputs_0": np.zeros((1, 2))}, r"inputs_0: expected an array \(length, d\)"),
        ({"x": np.zeros(2)}, "got 'x'"),
        ({"inputs": np.array([[["a", "b"]]]), "outputs": np.zeros((1, 1, 2))}, r"inputs\[0\]"),
        ({"inputs": np.full((1, 1, 2), np.nan), "outputs": np.zeros((1, 1, 2))}, "finite"),
        (
            {"inputs": np.array([[[None, 1]]], dtype=object), "outputs": np.zeros((1, 1, 2))},
            "other things than numbers",
        ),
    ],
)
def test_bad_npz_is_named(arrays: dict[str, np.ndarray], words: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "bad.npz", **arrays)
    with pytest.raises(DataFileError, match=words):
        read_dataset(tmp_path / "bad.npz")


def test_a_cut_archive_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "cut.npz"
    np.savez(path, inputs=np.zeros((1, 1, 2)), outputs=np.ones((1, 1, 2)))
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(DataFileError, match="damaged"):
        read_dataset(path)


def test_the_text_is_json_with_fractions_as_strings() -> None:
    assert json.loads(data_text(running_example()))["outputs"][0] == [["-1", "-1"]]
