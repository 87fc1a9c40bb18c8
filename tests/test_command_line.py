"""The command line: exit codes, messages, files that are whole or absent, certificates that can be checked again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import interp_lib as il
from interp_lib import command_line
from interp_lib.certificate_files import CertificateError, check_again, load_certificate, save_certificate
from interp_lib.command_line import main
from interp_lib.data_files import write_dataset
from interp_lib.examples import running_example
from interp_lib.files import FileError
from interp_lib.layers import Block, FeedForward, SelfAttention


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_dataset(running_example(), "data.json")
    return tmp_path


@pytest.mark.parametrize(
    ("attention", "temperatures"),
    [("hardmax", ["0"]), ("softmax", ["0", "critical"]), ("mean", ["0", "1/8", "0.25", "1e3", "all"])],
)
@pytest.mark.usefixtures("folder")
def test_interpolate_verify_check(attention: str, temperatures: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["interpolate", "data.json", "--attention", attention, "--out", "T.json"]) == 0
    assert "4 targets" not in capsys.readouterr().err
    built = {"hardmax": il.hardmax_interpolant, "softmax": il.softmax_interpolant, "mean": il.mean_interpolant}
    assert il.load("T.json") == built[attention](running_example())
    for temperature in temperatures:
        assert main(["verify", "T.json", "data.json", "--temperature", temperature, "--certificate", "c.json"]) == 0
        assert main(["check", "c.json", "T.json", "data.json"]) == 0
        assert capsys.readouterr().out.count("certified (") == 2


def test_the_commands_of_the_interpolation_can_be_followed(folder: Path) -> None:
    """What `interpolate` prints as the next step is run as printed, in processes of their own."""
    environment = {**os.environ, "PYTHONPATH": str(Path(il.__file__).parents[1])}

    def run(arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, *arguments.split()]
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=environment)

    done = run("-m interp_lib interpolate data.json --out T.json")
    again = run(done.stdout.split("now: python ")[1])
    assert (again.returncode, again.stderr) == (0, "")
    assert again.stdout.startswith("certified")


@pytest.mark.usefixtures("folder")
def test_npz_in() -> None:
    data = running_example()
    sides = {"inputs": data.inputs, "outputs": data.outputs}
    np.savez(
        "data.npz", **{f"{k}_{j}": np.array(X, dtype=float) for k, side in sides.items() for j, X in enumerate(side)}
    )
    assert main(["interpolate", "data.npz", "--out", "T.json"]) == 0
    assert main(["verify", "T.json", "data.npz"]) == 0
    assert main(["verify", "T.json", "data.json"]) == 0


@pytest.mark.usefixtures("folder")
def test_refuted_is_1_and_its_certificate_holds(capsys: pytest.CaptureFixture[str]) -> None:
    il.save(il.Transformer([Block.identity(2)]), "identity.json")
    assert main(["verify", "identity.json", "data.json", "--certificate", "c.json"]) == 1
    assert "refuted (exact over Q)" in capsys.readouterr().out
    assert main(["check", "c.json", "identity.json", "data.json"]) == 1
    written = json.loads(Path("c.json").read_text(encoding="utf-8"))
    assert (written["status"], written["temperature"], written["sequence"]) == ("refuted", "0", 0)


@pytest.mark.usefixtures("folder")
def test_undecided_is_2(capsys: pytest.CaptureFixture[str]) -> None:
    main(["interpolate", "data.json", "--out", "T.json"])
    assert main(["verify", "T.json", "data.json", "--temperature", "all", "--certificate", "c.json"]) == 2
    assert "undecided" in capsys.readouterr().out
    assert main(["check", "c.json", "T.json", "data.json"]) == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["interpolate", "none.json", "--out", "T.json"], "none.json: No such file"),
        (["interpolate", "bad.json", "--out", "T.json"], 'bad.json: "outputs" is missing'),
        (["interpolate", "data.json", "--out", "data.json"], "would be overwritten"),
        (["interpolate", "data.json", "--out", "nowhere/T.json"], "nowhere"),
        (["verify", "data.json", "data.json"], "data.json is not a transformer file"),
        (["verify", "model.json", "bad.json"], "bad.json"),
        (["verify", "model.json", "data.json", "--temperature", "critical"], "states no critical temperature"),
        (["verify", "model.json", "data.json", "--certificate", "model.json"], "would be overwritten"),
        (["verify", "space.json", "data.json"], "T acts on R^3 but data has tokens in R^2"),
        (["check", "model.json", "model.json", "data.json"], "is not a certificate file"),
    ],
)
def test_wrong_input_is_3(folder: Path, arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("bad.json").write_text('{"inputs": [[[0, 0]]]}')
    il.save(il.hardmax_interpolant(running_example()), "model.json")
    il.save(il.Transformer([Block.identity(3)]), "space.json")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert main(arguments) == 3
    heard = capsys.readouterr()
    assert heard.out == ""
    assert heard.err.startswith("error: ")
    assert words in heard.err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["interpolate", "data.json"],
        ["interpolate", "data.json", "--attention", "linear", "--out", "T.json"],
        ["verify", "T.json", "data.json", "--temperature", "-1"],
        ["verify", "T.json", "data.json", "--temperature", "nan"],
        ["verify", "T.json", "data.json", "--temperature", "1e999999999"],
        ["verify", "T.json", "data.json", "--max-bits", "1"],
        ["burn", "everything"],
    ],
)
def test_a_wrong_command_is_4(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 4
    assert "error: " in capsys.readouterr().err


def test_an_error_of_the_program_is_never_taken_for_a_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(command_line, "load", broken)
    assert main(["verify", "T.json", "data.json"]) == 5


def test_help_says_the_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "--help"]) == 0
    assert "2 undecided" in " ".join(capsys.readouterr().out.split())


# ---------------------------------------------------------------- certificates


@pytest.fixture
def claim(tmp_path: Path) -> Path:
    data = running_example()
    T = il.hardmax_interpolant(data)
    save_certificate(il.verify(T, data), T, data, tmp_path / "c.json")
    return tmp_path / "c.json"


def test_other_weights_and_other_data_are_noticed(claim: Path) -> None:
    data = running_example()
    T = il.hardmax_interpolant(data)
    moved = il.Dataset(data.inputs, [[(y[0] + 1, *y[1:]) for y in Y] for Y in data.outputs])
    assert check_again(load_certificate(claim), T, data).status == "certified"
    with pytest.raises(CertificateError, match="other data"):
        check_again(load_certificate(claim), T, moved)
    with pytest.raises(CertificateError, match="other weights"):
        check_again(load_certificate(claim), T.padded(T.depth + 1), data)


def test_a_forged_certificate_is_contradicted(tmp_path: Path) -> None:
    """Someone writes "certified" over weights that fail, with all digests right."""
    data = running_example()
    good, bad = il.hardmax_interpolant(data), il.Transformer([Block.identity(2)])
    save_certificate(il.verify(good, data), bad, data, tmp_path / "forged.json")
    with pytest.raises(CertificateError, match="says certified, but the checker finds: refuted"):
        check_again(load_certificate(tmp_path / "forged.json"), bad, data)


def test_every_changed_digit_is_noticed(claim: Path) -> None:
    text = claim.read_text(encoding="utf-8")
    for at in [i for i, c in enumerate(text) if c.isdigit()]:
        claim.write_text(text[:at] + ("1" if text[at] != "1" else "2") + text[at + 1 :], encoding="utf-8")
        with pytest.raises(FileError):
            load_certificate(claim)


def test_an_enormous_distance_is_still_json(tmp_path: Path) -> None:
    data = il.Dataset([[[0, 0]]], [[[0, 0]]])
    far = il.Transformer([Block(FeedForward(0, [[0, 0]], [10**400], [[1], [0]]), SelfAttention.identity(2))])
    certificate = il.verify(far, data)
    save_certificate(certificate, far, data, tmp_path / "c.json")
    assert json.loads((tmp_path / "c.json").read_text(encoding="utf-8"))["distance"] == "inf"
    assert check_again(load_certificate(tmp_path / "c.json"), far, data).status == "refuted"
