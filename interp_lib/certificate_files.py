"""Certificates in files: what the checker found, for which weights and which data, so that it can be checked again.

Format, version 1.  One JSON object with the fields of `interp_lib.certificates.Certificate`, the digests ``"transformer"`` and
``"data"`` of what was checked, the ``"words"`` of ``explain()``, and its own ``"sha256"``.  A certificate is a claim and
no proof: `check_again` repeats the check.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, Literal, final, get_args

from .certificates import MOST_BITS, Certificate, Status, verify
from .data_files import data_digest
from .files import FileError, digest, read_signed, signed_text, write_whole
from .layers import Transformer
from .sequences import Dataset

FORMAT: Final = "interp_lib certificate"
VERSION: Final = 1


class CertificateError(ValueError):
    """The certificate belongs to other weights or other data, or the checker contradicts it; the message says which."""


@final
@dataclass(frozen=True, slots=True)
class CertificateFile:
    """The claim in a file: ``status`` at ``temperature`` for the weights and data with these digests."""

    status: Status
    temperature: Fraction | Literal["all"]
    transformer: str
    data: str
    bits: int | None


def save_certificate(certificate: Certificate, T: Transformer, data: Dataset, path: str | os.PathLike[str]) -> None:
    """Write what `verify` found about ``T`` and ``data``.

    Exactness: fractions are strings; distances are the floats of the certificate.

    Cost: that of writing the weights and the data once, for their digests.

    Raises: `OSError` when the folder is missing or not writable; an existing file is then untouched.

    Example: see `check_again`.
    """
    write_whole(path, certificate_text(certificate, T, data))


def certificate_text(certificate: Certificate, T: Transformer, data: Dataset) -> str:
    """The text that `save_certificate` writes.

    >>> from interp_lib.layers import Block
    >>> data = Dataset([[[0, 0]]], [[[0, 0]]])
    >>> T = Transformer([Block.identity(2)])
    >>> '"status": "certified"' in certificate_text(verify(T, data), T, data)
    True
    """
    bounds = certificate.distance_bounds
    return signed_text(
        {
            "format": FORMAT,
            "version": VERSION,
            "status": certificate.status,
            "temperature": str(certificate.temperature),
            "words": certificate.explain(),
            "arithmetic": certificate.arithmetic,
            "bits": certificate.bits,
            "sequences": certificate.sequences,
            "distance": _number(certificate.distance),
            "distance_bounds": None if bounds is None else list(map(_number, bounds)),
            "sequence": certificate.sequence,
            "token": None if certificate.token is None else list(map(str, certificate.token)),
            "token_distance": _number(certificate.token_distance),
            "transformer": digest(T),
            "data": data_digest(data),
        }
    )


def load_certificate(path: str | os.PathLike[str]) -> CertificateFile:
    """Read the claim that `save_certificate` has written.

    Raises: `FileError` for a foreign, damaged or newer file; `OSError` when it cannot be read.

    Example: see `check_again`.
    """
    source = Path(path)
    content = read_signed(source, FORMAT, VERSION, "a certificate")
    try:
        status, temperature, bits = content["status"], content["temperature"], content["bits"]
        if status not in get_args(Status):
            raise ValueError(f"status: expected one of {get_args(Status)}, got {status!r}")
        if not (bits is None or isinstance(bits, int)):
            raise ValueError(f"bits: expected a whole number or null, got {bits!r}")
        return CertificateFile(
            status,
            "all" if temperature == "all" else Fraction(temperature),
            str(content["transformer"]),
            str(content["data"]),
            bits,
        )
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as problem:
        raise FileError(f"{source.name} is malformed: {type(problem).__name__}: {problem}") from None


def check_again(claim: CertificateFile, T: Transformer, data: Dataset) -> Certificate:
    """Repeat the check that a certificate speaks of.

    Statement: the returned certificate has the claimed status, for exactly the weights and data of the claim.

    Cost: that of `verify`.

    Raises: `CertificateError` when the digests of ``T`` or ``data`` differ, or the checker finds another status.

    Example:

    >>> import tempfile
    >>> from interp_lib.layers import Block
    >>> data, T = Dataset([[[0, 0]]], [[[0, 0]]]), Transformer([Block.identity(2)])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_certificate(verify(T, data), T, data, Path(folder, "c.json"))
    ...     claim = load_certificate(Path(folder, "c.json"))
    >>> check_again(claim, T, data).status
    'certified'
    """
    for noun, stated, found in (("weights", claim.transformer, digest(T)), ("data", claim.data, data_digest(data))):
        if stated != found:
            raise CertificateError(
                f"the certificate speaks of other {noun}: expected sha256 {stated[:12]}…, got {found[:12]}…"
            )
    found_again = verify(T, data, claim.temperature, MOST_BITS if claim.bits is None else claim.bits)
    if found_again.status != claim.status:
        raise CertificateError(f"the certificate says {claim.status}, but the checker finds: {found_again.explain()}")
    return found_again


def _number(value: float | None) -> Any:
    # JSON has no infinity.
    return value if value is None or math.isfinite(value) else str(value)
