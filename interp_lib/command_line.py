"""The command line: interpolate data in a file, verify a transformer, check a certificate again.

    python -m interp_lib interpolate DATA --attention hardmax|softmax|mean --out MODEL
    python -m interp_lib verify MODEL DATA [--temperature 0|NUMBER|critical|all] [--certificate FILE] [--max-bits BITS]
    python -m interp_lib check CERTIFICATE MODEL DATA

Exit codes: 0 done, or certified; 1 refuted; 2 undecided; 3 an input is wrong (file, field, data, certificate);
4 the command itself is wrong; 5 an error of this program.  Results go to standard output, errors to standard error.
"""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, NoReturn, final

from .certificate_files import check_again, load_certificate, save_certificate
from .certificates import MOST_BITS, Certificate, verify
from .data_files import read_dataset
from .fields import decimal_text
from .files import load, save
from .interpolation.four_phase import hardmax_interpolant
from .interpolation.mean_pooling import mean_interpolant
from .interpolation.softmax import softmax_interpolant
from .layers import Transformer
from .sequences import Dataset

DONE, REFUTED, UNDECIDED, WRONG_INPUT, WRONG_COMMAND, FAILURE = range(6)
STATUS_CODES: Final = {"certified": DONE, "refuted": REFUTED, "undecided": UNDECIDED}
CONSTRUCTIONS: Final[dict[str, Callable[[Dataset], Transformer]]] = {
    "hardmax": hardmax_interpolant,
    "softmax": softmax_interpolant,
    "mean": mean_interpolant,
}
CODES: Final = (
    "exit codes: 0 done, or certified; 1 refuted; 2 undecided; 3 an input is wrong; "
    "4 the command itself is wrong; 5 an error of this program"
)


class CommandError(ValueError):
    """The files do not fit the command; the message says what was expected."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    >>> main(["verify", "no-such-file.json", "data.json"])
    3
    """
    try:
        choice = _parser().parse_args(arguments)
    except SystemExit as stop:
        return int(stop.code or 0)
    try:
        return int(choice.run(choice))
    except OSError as problem:
        _complain(f"{problem.filename or 'file'}: {problem.strerror or problem}")
        return WRONG_INPUT
    except (ValueError, ImportError) as problem:
        _complain(str(problem))
        return WRONG_INPUT
    except KeyboardInterrupt:
        _complain("interrupted; nothing was written")
        return FAILURE
    except Exception:
        # An uncaught error would exit with 1, which means "refuted" here.
        traceback.print_exc()
        return FAILURE


def _interpolate(choice: argparse.Namespace) -> int:
    _keep_apart(choice.out, choice.data)
    data = read_dataset(choice.data)
    T = CONSTRUCTIONS[choice.attention](data)
    save(T, choice.out)
    print(f"data: N = {data.N} sequences in R^{data.d}, M = {data.M} targets")
    print(f"transformer: {T.depth} blocks, width {T.width}, {T.num_parameters('nonzero')} non-zero parameters")
    where = {"hardmax": "0", "softmax": "critical", "mean": "all"}[choice.attention]
    if T.critical_temperature is not None:
        print(f"critical temperature: {T.critical_temperature} ({decimal_text(T.critical_temperature, 3)})")
    print(f"written to {choice.out}; now: python -m interp_lib verify {choice.out} {choice.data} --temperature {where}")
    return DONE


def _verify(choice: argparse.Namespace) -> int:
    if choice.certificate is not None:
        _keep_apart(choice.certificate, choice.model, choice.data)
    T, data = load(choice.model), read_dataset(choice.data)
    certificate = verify(T, data, _temperature(choice.temperature, T, choice.model), choice.max_bits)
    # The file first: who reads the verdict may rely on it.
    if choice.certificate is not None:
        save_certificate(certificate, T, data, choice.certificate)
    return _report(certificate)


def _check(choice: argparse.Namespace) -> int:
    claim = load_certificate(choice.certificate)
    return _report(check_again(claim, load(choice.model), read_dataset(choice.data)))


def _report(certificate: Certificate) -> int:
    print(certificate.explain())
    return STATUS_CODES[certificate.status]


def _temperature(asked: Fraction | str, T: Transformer, model: Path) -> Fraction | str:
    if asked != "critical":
        return asked
    if T.critical_temperature is None:
        raise CommandError(
            f"{model.name} states no critical temperature; expected a softmax transformer, or a number or all"
        )
    return T.critical_temperature


def _keep_apart(out: Path, *inputs: Path) -> None:
    if any(out.exists() and path.exists() and out.samefile(path) for path in inputs):
        raise CommandError(f"{out} would be overwritten, but it is an input of this command; expected another name")


def _read_temperature(text: str) -> Fraction | str:
    if text in ("all", "critical"):
        return text
    try:
        value = Fraction(text) if len(text) < 1000 and abs(int(text.lower().partition("e")[2] or 0)) < 1000 else None
    except (ValueError, ZeroDivisionError):
        value = None
    if value is None or value < 0:
        raise argparse.ArgumentTypeError(
            f"expected 0, a positive number such as 0.01 or 1/8, critical or all; got {text!r}"
        )
    return value


def _read_bits(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 2 <= int(text[:9]) <= 2**24):
        raise argparse.ArgumentTypeError(f"expected a whole number from 2 to {2**24}, got {text!r}")
    return int(text)


@final
class _Parser(argparse.ArgumentParser):
    """argparse with an exit code of its own: its 2 means "undecided" here."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(WRONG_COMMAND, f"{self.prog}: error: {message}\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="python -m interp_lib", description="Exact interpolation with transformers.", epilog=CODES)
    commands: Any = parser.add_subparsers(title="commands", required=True, metavar="interpolate | verify | check")

    interpolate = commands.add_parser("interpolate", help="build a transformer for data", epilog=CODES)
    interpolate.add_argument("data", type=Path, metavar="DATA", help="JSON or npz file with inputs and outputs")
    interpolate.add_argument("--attention", choices=list(CONSTRUCTIONS), default="hardmax", help="default: hardmax")
    interpolate.add_argument("--out", type=Path, required=True, metavar="MODEL", help="where to write the weights")
    interpolate.set_defaults(run=_interpolate)

    check = commands.add_parser("verify", help="decide whether T(X_j) = Y_j for every j", epilog=CODES)
    check.add_argument("model", type=Path, metavar="MODEL")
    check.add_argument("data", type=Path, metavar="DATA")
    check.add_argument(
        "--temperature",
        type=_read_temperature,
        default=Fraction(0),
        metavar="TAU",
        help="0 (hardmax, the default), a number such as 0.01 or 1/8, critical (as MODEL states it), or all",
    )
    check.add_argument("--certificate", type=Path, metavar="FILE", help="write what was found to this file")
    check.add_argument("--max-bits", type=_read_bits, default=MOST_BITS, metavar="BITS", help=f"default: {MOST_BITS}")
    check.set_defaults(run=_verify)

    again = commands.add_parser("check", help="repeat the check that a certificate speaks of", epilog=CODES)
    again.add_argument("certificate", type=Path, metavar="CERTIFICATE")
    again.add_argument("model", type=Path, metavar="MODEL")
    again.add_argument("data", type=Path, metavar="DATA")
    again.set_defaults(run=_check)
    return parser


def _complain(message: str) -> None:
    print(f"error: {message}", file=sys.stderr)
