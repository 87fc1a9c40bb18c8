"""Data sets in files: JSON text with exact numbers, or NumPy archives.

JSON: one object with ``"inputs"`` and ``"outputs"``, each a list of sequences; a sequence is a list of tokens, a token a
list of numbers.  A number is a JSON number, read as the decimal fraction it is (``0.1`` is one tenth), or a string such as
``"-5/8"``.

npz: arrays ``inputs`` ``(N, n, d)`` and ``outputs`` ``(N, m, d)`` where all lengths agree; otherwise ``inputs_0``,
``inputs_1``, … and ``outputs_0``, ``outputs_1``, …, one array ``(n_j, d)`` or ``(m_j, d)`` each.  A binary float is the
dyadic rational it is.  Only these files need NumPy.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import zipfile
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, NoReturn

from .files import write_whole
from .sequences import Dataset, DatasetError

SIDES: Final = ("inputs", "outputs")
MOST_DIGITS: Final = 1000
"""The most characters in a number, and the largest decimal exponent: one short text must not stand for gigabytes."""
_NUMBER: Final = re.compile(r"[+-]?\d+(?:/\d+|(?:\.\d*)?(?:[eE][+-]?\d{1,9})?)")


class DataFileError(ValueError):
    """The file holds no data set; the message names the file, the field, what was expected and what came."""


def read_dataset(path: str | os.PathLike[str]) -> Dataset:
    """The data set in a JSON or npz file; the content decides which, not the name.

    Exactness: exact over Q, see the module.

    Cost: linear in the size of the file.

    Raises: `DataFileError` when the file is neither, a field is missing or unknown, an entry is no number, or the data break
    an assumption of `Dataset`; `OSError` when it cannot be read; `ImportError` for npz without NumPy.

    Example:

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "data.json")
    ...     _ = path.write_text('{"inputs": [[[0.1, 0], [1, "1/3"]]], "outputs": [[[5, 5]]]}')
    ...     read_dataset(path).inputs[0][0]
    (Fraction(1, 10), Fraction(0, 1))
    """
    source = Path(path)
    content = source.read_bytes()
    # An npz file is a zip archive, and no JSON text starts like one.
    sides = _from_archive(content, source.name) if content[:2] == b"PK" else _from_json(content, source.name)
    try:
        return Dataset(*sides)
    except DatasetError as problem:
        raise DataFileError(f"{source.name}: {problem}") from None


def write_dataset(data: Dataset, path: str | os.PathLike[str]) -> None:
    """Write a data set as JSON text; ``read_dataset(path) == data`` afterwards.

    Exactness: exact over Q; fractions are strings.

    Raises: `OSError` when the folder is missing or not writable; an existing file is then untouched.

    Example:

    >>> import tempfile
    >>> data = Dataset([[[0.5, 0], [1, 2]]], [[[5, 5]]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_dataset(data, Path(folder, "data.json"))
    ...     read_dataset(Path(folder, "data.json")) == data
    True
    """
    write_whole(path, data_text(data) + "\n")


def data_text(data: Dataset) -> str:
    """The text that `write_dataset` writes.

    >>> json.loads(data_text(Dataset([[[0.5, 0], [1, 2]]], [[[5, 5]]])))["inputs"]
    [[['1/2', '0'], ['1', '2']]]
    """
    return json.dumps(_content(data), indent=1)


def data_digest(data: Dataset) -> str:
    """A sha256 that names the data: equal for equal numbers listed in the same order, whatever file they came from.

    >>> data_digest(Dataset([[[0.5, 0]]], [[[1, 1]]])) == data_digest(Dataset([[[Fraction(1, 2), 0]]], [[[1, 1.0]]]))
    True
    """
    return hashlib.sha256(json.dumps(_content(data), separators=(",", ":")).encode()).hexdigest()


def _content(data: Dataset) -> dict[str, list[list[list[str]]]]:
    sides = zip(SIDES, (data.inputs, data.outputs), strict=True)
    return {name: [[list(map(str, token)) for token in tokens] for tokens in side] for name, side in sides}


# ---------------------------------------------------------------- JSON


def _from_json(content: bytes, name: str) -> list[Any]:
    def no_number(word: str) -> NoReturn:
        raise DataFileError(f"{name} says {word}; finite numbers are required")

    def without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        fields = dict(pairs)
        if len(fields) < len(pairs):
            keys = [key for key, _ in pairs]
            twice = next(key for key in keys if keys.count(key) > 1)
            raise DataFileError(f'{name} gives "{twice}" twice; each field once is required')
        return fields

    try:
        text = content.decode("utf-8-sig")
        # Decimals stay text until the place they stand at is known.
        read = json.loads(
            text, parse_float=_Text, parse_int=_Text, parse_constant=no_number, object_pairs_hook=without_repetition
        )
    except DataFileError:
        raise
    except (ValueError, RecursionError) as problem:
        raise DataFileError(f"{name} is neither JSON text nor an npz archive: {problem}") from None
    if not isinstance(read, dict):
        raise DataFileError(f'{name}: expected an object with "inputs" and "outputs", got {_kind(read)}')
    _check_fields(set(read), set(SIDES), name)
    return [_numbers(read[side], side, name) for side in SIDES]


class _Text(str):
    """A JSON number, as it is written."""

    __slots__ = ()


def _numbers(value: Any, where: str, name: str) -> Any:
    if isinstance(value, list):
        return [_numbers(entry, f"{where}[{i}]", name) for i, entry in enumerate(value)]
    if not isinstance(value, str):
        return value
    if len(value) > MOST_DIGITS or not _NUMBER.fullmatch(value):
        shown = repr(str(value)) if len(value) < 40 else f"a text of {len(value)} characters"
        raise DataFileError(f'{name}: {where}: expected a number such as 3, 0.25 or "-5/8", got {shown}')
    exponent = re.search(r"[eE](.*)", value)
    if exponent and abs(int(exponent[1])) > MOST_DIGITS:
        raise DataFileError(f"{name}: {where}: expected an exponent of at most {MOST_DIGITS}, got {value}")
    try:
        return Fraction(value)
    except ZeroDivisionError:
        raise DataFileError(f"{name}: {where}: expected a number, got {value!r}, which divides by zero") from None


def _kind(value: Any) -> str:
    names = {list: "a list", dict: "an object", bool: "true or false", type(None): "null", _Text: "a number"}
    return names.get(type(value), "a string")


# ---------------------------------------------------------------- npz


def _from_archive(content: bytes, name: str) -> list[Any]:
    try:
        import numpy as np
    except ImportError:
        raise ImportError(f"{name} is an npz archive; reading it needs NumPy (JSON files need nothing)") from None
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            arrays = {key: archive[key] for key in archive.files}
    except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile, NotImplementedError) as problem:
        raise DataFileError(f"{name} is a damaged npz archive, or holds other things than numbers: {problem}") from None
    return [_side(arrays, side, name) for side in _known(arrays, name)]


def _known(arrays: dict[str, Any], name: str) -> tuple[str, ...]:
    if set(SIDES) & set(arrays):
        _check_fields(set(arrays), set(SIDES), name)
    strange = [key for key in arrays if key not in SIDES and not re.fullmatch(r"(inputs|outputs)_(0|[1-9]\d*)", key)]
    if strange or not arrays:
        got = strange[0] if strange else "none"
        raise DataFileError(f'{name}: expected arrays "inputs" and "outputs", or "inputs_0", …; got {got!r}')
    return SIDES


def _side(arrays: dict[str, Any], side: str, name: str) -> list[Any]:
    if side in arrays:
        if arrays[side].ndim != 3:
            shape = arrays[side].shape
            raise DataFileError(f"{name}: {side}: expected an array (N, length, d), got one of shape {shape}")
        return list(arrays[side])
    numbered = {int(key.split("_")[1]): array for key, array in arrays.items() if key.startswith(f"{side}_")}
    for j in range(len(numbered) or 1):
        if j not in numbered:
            raise DataFileError(f'{name}: "{side}_{j}" is missing; expected {side}_0, {side}_1, … without gaps')
        if numbered[j].ndim != 2:
            raise DataFileError(f"{name}: {side}_{j}: expected an array (length, d), got shape {numbered[j].shape}")
    return [numbered[j] for j in range(len(numbered))]


def _check_fields(there: set[str], expected: set[str], name: str) -> None:
    if missing := sorted(expected - there):
        raise DataFileError(f'{name}: "{missing[0]}" is missing; expected the fields "inputs" and "outputs"')
    if strange := sorted(there - expected):
        raise DataFileError(f'{name}: unknown field "{strange[0]}"; expected "inputs" and "outputs" only')
