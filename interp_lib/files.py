"""Saving and loading transformers: JSON text, exact fractions, versioned, checked, written atomically.

Format, version 1.  One JSON object:

* ``"format"``: ``"interp_lib transformer"``; ``"version"``: 1;
* ``"d"``: the dimension of the tokens; ``"phases"``: a list of ``[name, number of blocks]``;
* ``"critical_temperature"``: a number or null;
* ``"blocks"``: for each block ``{"eta", "U", "b", "W", "rho", "A", "V"}``; a matrix is a list of rows, and
  ``A`` and ``V`` are ``{"scale", "left", "right"}`` with ``scale · I + left rightᵀ``; ``"causal": true`` beside them where
  attention has a causal mask;
* ``"sha256"``: the digest of everything above, so that a damaged file is recognised.

Numbers are strings, ``"3"`` or ``"-5/8"``: JSON has no fractions.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from .layers import Block, FeedForward, LayerError, ScaledLowRank, SelfAttention, Transformer

FORMAT: Final = "interp_lib transformer"
VERSION: Final = 1


class FileError(ValueError):
    """The file is not a transformer, is damaged, or comes from another version; the message says which."""


def save(T: Transformer, path: str | os.PathLike[str]) -> None:
    """Write a transformer to a file, exactly.

    Statement: ``load(path) == T`` afterwards.

    Exactness: exact over Q.

    Cost: linear in the number of weights; the file appears whole or not at all.

    Raises: `OSError` when the folder is missing or not writable; an existing file is then untouched.

    Example:

    >>> import tempfile
    >>> from interp_lib.layers import Block
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(Transformer([Block.identity(2)]), Path(folder, "T.json"))
    ...     load(Path(folder, "T.json")) == Transformer([Block.identity(2)])
    True
    """
    write_whole(path, to_text(T))


def to_text(T: Transformer) -> str:
    """The text that `save` writes.

    >>> from interp_lib.layers import Block
    >>> json.loads(to_text(Transformer([Block.identity(2)])))["d"]
    2
    """
    return signed_text(_content(T))


def digest(T: Transformer) -> str:
    """The sha256 that `save` writes into the file: it names the weights, phases and critical temperature.

    >>> from interp_lib.layers import Block
    >>> len(digest(Transformer([Block.identity(2)])))
    64
    """
    return _digest(_content(T))


def load(path: str | os.PathLike[str]) -> Transformer:
    """Read a transformer that `save` has written.

    Exactness: exact over Q.

    Raises: `FileError` for a foreign, damaged or newer file; `OSError` when it cannot be read.

    Example: see `save`.
    """
    source = Path(path)
    content = read_signed(source, FORMAT, VERSION, "a transformer")
    try:
        blocks = [_block(entry) for entry in content["blocks"]]
        phases = {str(name): int(count) for name, count in content["phases"]}
        critical = content["critical_temperature"]
        T = Transformer(blocks, phases, None if critical is None else Fraction(critical))
    except (KeyError, TypeError, ValueError, ZeroDivisionError, LayerError) as problem:
        raise FileError(f"{source.name} is malformed: {type(problem).__name__}: {problem}") from None
    if content.get("d") != T.d:
        raise FileError(f"{source.name} says d = {content.get('d')!r} but its blocks act on R^{T.d}")
    return T


def write_whole(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file so that it appears whole or not at all.

    Raises: `OSError` when the folder is missing or not writable; an existing file is then untouched.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_whole(Path(folder, "a.txt"), "ü")
    ...     Path(folder, "a.txt").read_text(encoding="utf-8")
    'ü'
    """
    target = Path(path)
    # A temporary file in the same folder, renamed at the end: a reader never sees half a file.
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def signed_text(content: dict[str, Any]) -> str:
    """The content as JSON text with its own digest, which `read_signed` compares.

    >>> sorted(json.loads(signed_text({"format": "example"})))
    ['format', 'sha256']
    """
    return json.dumps({**content, "sha256": _digest(content)}, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def read_signed(source: Path, kind: str, version: int, noun: str) -> dict[str, Any]:
    """The content of a file of `signed_text`, without the digest, which is checked.

    Raises: `FileError` for a foreign, damaged or newer file; `OSError` when it cannot be read.
    """
    try:
        content = json.loads(source.read_bytes().decode("utf-8"))
    except (ValueError, RecursionError) as problem:
        raise FileError(f"{source.name} is not JSON text: {problem}") from None
    if not isinstance(content, dict) or content.get("format") != kind:
        raise FileError(f'{source.name} is not {noun} file: it does not say "format": "{kind}"')
    if content.get("version") != version:
        raise FileError(f"{source.name} has version {content.get('version')!r}; this library reads version {version}")
    stated = content.pop("sha256", None)
    if stated != _digest(content):
        raise FileError(f"{source.name} is damaged: its content does not match its sha256")
    return content


def _content(T: Transformer) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "version": VERSION,
        "d": T.d,
        "phases": [[name, count] for name, count in T.phases.items()],
        "critical_temperature": None if T.critical_temperature is None else str(T.critical_temperature),
        "blocks": [
            {
                "eta": str(block.feed_forward.eta),
                "U": _written(block.feed_forward.U),
                "b": list(map(str, block.feed_forward.b)),
                "W": _written(block.feed_forward.W),
                "rho": str(block.attention.rho),
                "A": _structured(block.attention.A),
                "V": _structured(block.attention.V),
                **({"causal": True} if block.attention.causal else {}),
            }
            for block in T.blocks
        ],
    }


def _structured(matrix: ScaledLowRank) -> dict[str, Any]:
    return {"scale": str(matrix.scale), "left": _written(matrix.left), "right": _written(matrix.right)}


def _written(rows: Iterable[Iterable[Fraction]]) -> list[list[str]]:
    return [list(map(str, row)) for row in rows]


def _digest(content: dict[str, Any]) -> str:
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode("utf-8")).hexdigest()


def _block(entry: dict[str, Any]) -> Block:
    return Block(
        FeedForward(Fraction(entry["eta"]), _read(entry["U"]), list(map(Fraction, entry["b"])), _read(entry["W"])),
        SelfAttention(
            Fraction(entry["rho"]), _matrix(entry["A"]), _matrix(entry["V"]), causal=entry.get("causal", False)
        ),
    )


def _matrix(entry: dict[str, Any]) -> ScaledLowRank:
    return ScaledLowRank(Fraction(entry["scale"]), _read(entry["left"]), _read(entry["right"]))


def _read(rows: list[list[str]]) -> list[list[Fraction]]:
    return [list(map(Fraction, row)) for row in rows]
