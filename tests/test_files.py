"""Saving and loading: exact round trips, clear errors, atomic writes."""

from __future__ import annotations

import json
import os
from fractions import Fraction
from pathlib import Path

import pytest

import interp_lib as il
from interp_lib.files import FileError
from interp_lib.layers import Block, FeedForward, ScaledLowRank, SelfAttention


@pytest.fixture
def model() -> il.Transformer:
    data = il.Dataset(
        [[[0.1, 0], [1, Fraction(1, 3)]], [[1, Fraction(1, 3)], [2, 1e-12]]], [[[5, 5]], [[6, 1e12], [5, 6]]]
    )
    return il.hardmax_interpolant(data)


def test_round_trip_is_exact(model: il.Transformer, tmp_path: Path) -> None:
    il.save(model, tmp_path / "T.json")
    assert il.load(tmp_path / "T.json") == model


def test_every_part_of_a_block_survives(tmp_path: Path) -> None:
    third = Fraction(1, 3)
    block = Block(
        FeedForward(third, [[1, 2]], [-third], [[5], [7]]),
        SelfAttention(-2, ScaledLowRank(third, [[1], [2]], [[3], [4]]), ScaledLowRank.identity(2, 9)),
    )
    T = il.Transformer([block, block], {"a": 1, "b": 1}, critical_temperature=third)
    il.save(T, tmp_path / "T.json")
    read = il.load(tmp_path / "T.json")
    assert read == T
    assert read.phases == {"a": 1, "b": 1}
    assert read.critical_temperature == third


def test_the_file_is_readable_text(model: il.Transformer, tmp_path: Path) -> None:
    il.save(model, tmp_path / "T.json")
    content = json.loads((tmp_path / "T.json").read_text(encoding="utf-8"))
    assert content["format"] == "interp_lib transformer"
    assert content["version"] == 1
    assert Fraction(content["blocks"][0]["U"][0][0]) == model.blocks[0].feed_forward.U[0][0]


def test_every_changed_digit_is_noticed(model: il.Transformer, tmp_path: Path) -> None:
    path = tmp_path / "T.json"
    il.save(model, path)
    text = path.read_text(encoding="utf-8")
    digits = [i for i, c in enumerate(text) if c.isdigit()]
    for at in digits[:: len(digits) // 40]:
        changed = "1" if text[at] != "1" else "2"
        path.write_text(text[:at] + changed + text[at + 1 :], encoding="utf-8")
        with pytest.raises(FileError):
            il.load(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xff\xfe", "not JSON"),
        (b"hello", "not JSON"),
        (b"[1, 2]", "does not say"),
        (b"{}", "does not say"),
        (b'{"format": "interp_lib transformer", "version": 2}', "version 2"),
        (b'{"format": "interp_lib transformer", "version": 1}', "sha256"),
    ],
)
def test_foreign_files_get_a_clear_error(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "T.json"
    path.write_bytes(content)
    with pytest.raises(FileError, match=message):
        il.load(path)


def test_a_truncated_file_is_refused(model: il.Transformer, tmp_path: Path) -> None:
    path = tmp_path / "T.json"
    il.save(model, path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(FileError, match="not JSON"):
        il.load(path)


def test_a_failed_write_leaves_the_old_file_and_no_litter(
    model: il.Transformer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "T.json"
    il.save(model, path)
    before = path.read_bytes()

    def full(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="no space left"):
        il.save(il.Transformer([Block.identity(2)]), path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["T.json"]
