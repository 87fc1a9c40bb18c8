"""The number systems: exact rationals, float64, rigorous balls.

A *field* knows how to hold a matrix of tokens and how to do the few things a transformer does to it:
multiply, add, scale, take the positive part, and average rows under hardmax or softmax weights.
The forward pass is written once over these operations (`interp_lib.evaluate`).

This is the only module that touches python-flint.  NumPy is imported when a float64 matrix is made.

Three facts about balls shape the code below.  A comparison of balls is true only when it holds for
every pair of points in them, so "not less" never means "at least".  The working precision of the
ball library is global, so every ball operation runs under one lock that sets and restores it.  A softmax weight near one
is never formed: the average is written as the leading token plus a *leak*, whose size is a sum of
small exponentials.
"""

from __future__ import annotations

import math
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, reduce
from itertools import accumulate
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar, Final, final

from flint import arb, arb_mat, arb_series, ctx, fmpq, fmpq_mat, fmpz_mat

if TYPE_CHECKING:
    import numpy as np

Rational = fmpq
"""An exact rational number, many times faster than `fractions.Fraction`."""
Ball = arb
"""A real number known up to a rigorous error radius."""
RationalMatrix = fmpq_mat
"""A dense matrix of exact rationals."""
BallMatrix = arb_mat
"""A dense matrix of balls."""
BallSeries = arb_series
"""A truncated power series with balls as coefficients: an enclosure of a function and of its derivatives."""
IntegerMatrix = fmpz_mat
"""A dense matrix of integers, with lattice reduction."""

Matrix = Any
"""A matrix of whichever field is in use."""


class FieldError(ValueError):
    """The operation has no exact result in this field."""


class UndecidedError(ArithmeticError):
    """The enclosures are too wide to decide a comparison; more bits may help."""


# ---------------------------------------------------------------- exact rationals


def rational(value: Any) -> Rational:
    """The rational number that ``value`` is; a float is the dyadic rational it is.

    Raises `TypeError` for anything that is not a real number (booleans, strings and complex
    numbers included) and `ValueError` for NaN and infinities.

    >>> rational(0.5), rational(Fraction(1, 3)), rational(7)
    (1/2, 1/3, 7)
    """
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError("not finite")
        return fmpq(*value.as_integer_ratio())
    if isinstance(value, fmpq):
        return value
    if isinstance(value, bool) or type(value).__name__ in ("bool", "bool_"):
        raise TypeError("a boolean")
    if isinstance(value, int):
        return fmpq(value)
    if isinstance(value, Fraction):
        return fmpq(value.numerator, value.denominator)
    if isinstance(value, (str, bytes)):
        raise TypeError("a string")
    if isinstance(value, complex) or "complex" in type(value).__name__:
        raise TypeError("a complex number")
    ratio = getattr(value, "as_integer_ratio", None)
    try:
        if ratio is not None:
            top, bottom = ratio()
            return fmpq(int(top), int(bottom))
        return fmpq(value.__index__())
    except (ValueError, OverflowError):
        raise ValueError("not finite") from None
    except (AttributeError, TypeError):
        raise TypeError(f"a {type(value).__name__}") from None


def fraction(value: Rational) -> Fraction:
    """The same number as a `fractions.Fraction`.

    >>> fraction(rational(0.75))
    Fraction(3, 4)
    """
    return Fraction(int(value.p), int(value.q))


def decimal_text(value: Fraction, digits: int) -> str:
    """The number rounded for people; exact numbers may lie beyond all floats.

    >>> decimal_text(Fraction(1, 3), 4), decimal_text(Fraction(-(10**400)), 4)
    ('0.3333', 'beyond -1e308')
    """
    try:
        return f"{float(value):.{digits}g}"
    except OverflowError:
        return "beyond 1e308" if value > 0 else "beyond -1e308"


def rational_matrix(rows: Sequence[Sequence[Any]], columns: int | None = None) -> RationalMatrix:
    """The matrix with the given rows; ``columns`` is needed only when there are no rows.

    >>> rational_matrix([[1, 0.5]]).tolist()
    [[1, 1/2]]
    """
    width = len(rows[0]) if rows else (columns or 0)
    return fmpq_mat(len(rows), width, [rational(v) for row in rows for v in row])


def exact_matrix(rows: Sequence[Sequence[Rational]]) -> RationalMatrix:
    """The matrix with the given non-empty rows of numbers that are known to be `Rational`: faster than `rational_matrix`.

    >>> exact_matrix([[rational(1), rational(2)]]).tolist()
    [[1, 2]]
    """
    return fmpq_mat(len(rows), len(rows[0]), [v for row in rows for v in row])


def common_denominator(values: Sequence[Rational]) -> tuple[list[int], int]:
    """Integers ``k_i`` and one denominator ``D > 0`` with ``values[i] = k_i / D``: integers are compared and sorted faster.

    >>> common_denominator([rational(1) / 2, rational(1) / 3])
    ([3, 2], 6)
    """
    top, bottom = fmpq_mat(1, len(values), list(values)).numer_denom()
    return list(map(int, top.entries())), int(bottom)


def first_occurrences(matrix: RationalMatrix) -> list[int]:
    """For every row the number of the first row that equals it.

    Rows are compared only where one fixed linear combination of their entries agrees, which hardly ever happens for different
    rows; that is much faster than hashing every entry.

    >>> first_occurrences(rational_matrix([[1, 2], [3, 4], [1, 2]]))
    [0, 1, 0]
    """
    random = Random(matrix.ncols())
    weights = fmpq_mat(matrix.ncols(), 1, [random.getrandbits(32) for _ in range(matrix.ncols())])
    combined, _ = common_denominator((matrix * weights).entries())
    found = list(range(len(combined)))
    if len(set(combined)) == len(combined):
        return found
    alike: dict[int, list[int]] = {}
    rows = matrix.tolist()
    for i, key in enumerate(combined):
        earlier = alike.setdefault(key, [])
        found[i] = next((k for k in earlier if rows[k] == rows[i]), i)
        if found[i] == i:
            earlier.append(i)
    return found


def power_of_two_below(value: Rational) -> Rational:
    """The largest power of two that is at most ``value > 0``.

    >>> power_of_two_below(rational(Fraction(5, 7))), power_of_two_below(rational(8))
    (1/2, 8)
    """
    top, bottom = int(value.p), int(value.q)
    if top <= 0:
        raise ValueError(f"expected a positive number, got {value}")
    exponent = top.bit_length() - bottom.bit_length()
    guess = fmpq(1 << exponent) if exponent >= 0 else fmpq(1, 1 << -exponent)
    return guess if guess <= value else guess / 2


def power_of_two_above(value: Rational) -> Rational:
    """The smallest power of two that is at least ``value > 0``.

    >>> power_of_two_above(rational(Fraction(5, 7))), power_of_two_above(rational(8))
    (1, 8)
    """
    below = power_of_two_below(value)
    return below if below == value else 2 * below


# ---------------------------------------------------------------- the interface


class Field(ABC):
    """A number system, seen through what a transformer layer needs.

    Matrices hold one token per row.  Methods never change their arguments.
    """

    __slots__ = ()
    name: ClassVar[str]

    @abstractmethod
    def scalar(self, value: Rational) -> Any:
        """The number ``value`` in this field."""

    @abstractmethod
    def matrix(self, value: RationalMatrix) -> Matrix:
        """The rational matrix ``value`` in this field."""

    @abstractmethod
    def rows(self, value: Matrix) -> list[list[Any]]:
        """The entries, row by row, as numbers of this field."""

    @abstractmethod
    def result(self, value: Matrix) -> Any:
        """What the caller of a forward pass receives."""

    @abstractmethod
    def product(self, left: Matrix, right: Matrix) -> Matrix: ...

    @abstractmethod
    def transpose(self, value: Matrix) -> Matrix: ...

    @abstractmethod
    def add(self, left: Matrix, right: Matrix) -> Matrix: ...

    @abstractmethod
    def add_to_rows(self, value: Matrix, row: Matrix) -> Matrix:
        """Add the one-row matrix ``row`` to every row."""

    @abstractmethod
    def scale(self, factor: Any, value: Matrix) -> Matrix: ...

    @abstractmethod
    def relu(self, value: Matrix) -> Matrix: ...

    @abstractmethod
    def join(self, left: Matrix, right: Matrix) -> Matrix:
        """The matrices side by side."""

    @abstractmethod
    def part(self, value: Matrix, start: int, end: int) -> Matrix:
        """The rows numbered ``start`` to ``end - 1``."""

    @abstractmethod
    def stack(self, parts: Sequence[Matrix]) -> Matrix:
        """The matrices one below the other."""

    @abstractmethod
    def mean(self, tokens: Matrix) -> Matrix:
        """Every row replaced by the mean of all rows."""

    @abstractmethod
    def running_mean(self, tokens: Matrix) -> Matrix:
        """Every row replaced by the mean of the rows up to it."""

    @abstractmethod
    def hardmax(self, tokens: Matrix, queries: Matrix, keys: Matrix) -> Matrix:
        """Row ``i`` becomes the mean of the tokens ``l`` that maximise ``<queries_i, keys_l>``."""

    @abstractmethod
    def softmax(self, tokens: Matrix, queries: Matrix, keys: Matrix, temperature: Rational) -> Matrix:
        """Row ``i`` becomes the mean with weights ``∝ exp(<queries_i, keys_l> / temperature)``."""


# ---------------------------------------------------------------- exact


@final
@dataclass(frozen=True, slots=True)
class ExactField(Field):
    """Exact rationals.  Hardmax at temperature zero; uniform attention at any temperature."""

    name: ClassVar[str] = "exact"

    def scalar(self, value: Rational) -> Rational:
        return value

    def matrix(self, value: RationalMatrix) -> RationalMatrix:
        return value

    def rows(self, value: RationalMatrix) -> list[list[Rational]]:
        return value.tolist()

    def result(self, value: RationalMatrix) -> tuple[tuple[Fraction, ...], ...]:
        return tuple(tuple(fraction(v) for v in row) for row in value.tolist())

    def product(self, left: RationalMatrix, right: RationalMatrix) -> RationalMatrix:
        return left * right

    def transpose(self, value: RationalMatrix) -> RationalMatrix:
        return value.transpose()

    def add(self, left: RationalMatrix, right: RationalMatrix) -> RationalMatrix:
        return left + right

    def add_to_rows(self, value: RationalMatrix, row: RationalMatrix) -> RationalMatrix:
        return value + fmpq_mat(value.nrows(), 1, [1] * value.nrows()) * row

    def scale(self, factor: Rational, value: RationalMatrix) -> RationalMatrix:
        return value * factor

    def relu(self, value: RationalMatrix) -> RationalMatrix:
        return fmpq_mat(value.nrows(), value.ncols(), [v if v > 0 else 0 for v in value.entries()])

    def join(self, left: RationalMatrix, right: RationalMatrix) -> RationalMatrix:
        rows = [a + b for a, b in zip(left.tolist(), right.tolist(), strict=True)]
        return rational_matrix(rows, left.ncols() + right.ncols())

    def part(self, value: RationalMatrix, start: int, end: int) -> RationalMatrix:
        return rational_matrix(value.tolist()[start:end], value.ncols())

    def stack(self, parts: Sequence[RationalMatrix]) -> RationalMatrix:
        return rational_matrix([row for part in parts for row in part.tolist()])

    def mean(self, tokens: RationalMatrix) -> RationalMatrix:
        return _repeated_mean(tokens, tokens.nrows())

    def running_mean(self, tokens: RationalMatrix) -> RationalMatrix:
        sums = [list(accumulate(column)) for column in zip(*tokens.tolist(), strict=True)]
        return rational_matrix([[total / (i + 1) for total in row] for i, row in enumerate(zip(*sums, strict=True))])

    def hardmax(self, tokens: RationalMatrix, queries: RationalMatrix, keys: RationalMatrix) -> RationalMatrix:
        rows = tokens.tolist()
        if keys.ncols() == 1:
            # A rank-one score is (query of i) times (key of l): only the sign of the query matters.
            row_keys = keys.entries()
            highest, lowest = max(row_keys), min(row_keys)
            top = _mean_row([x for x, k in zip(rows, row_keys, strict=True) if k == highest])
            bottom = _mean_row([x for x, k in zip(rows, row_keys, strict=True) if k == lowest])
            every = _mean_row(rows)
            chosen = [top if q > 0 else bottom if q < 0 else every for q in queries.entries()]
            return rational_matrix(chosen)
        averaged = []
        for scores in (queries * keys.transpose()).tolist():
            best = max(scores)
            averaged.append(_mean_row([x for x, s in zip(rows, scores, strict=True) if s == best]))
        return rational_matrix(averaged)

    def softmax(
        self, tokens: RationalMatrix, queries: RationalMatrix, keys: RationalMatrix, temperature: Rational
    ) -> RationalMatrix:
        del temperature  # constant scores are constant at every temperature
        for scores in (queries * keys.transpose()).tolist():
            if any(score != scores[0] for score in scores):
                raise FieldError(
                    "softmax weights of non-constant scores are irrational: "
                    "use il.balls(bits) for an enclosure or il.FLOAT for float64"
                )
        return _repeated_mean(tokens, queries.nrows())


def _repeated_mean(tokens: RationalMatrix, times: int) -> RationalMatrix:
    n = tokens.nrows()
    row = fmpq_mat(1, n, [fmpq(1, n)] * n) * tokens
    return fmpq_mat(times, 1, [1] * times) * row


def _mean_row(rows: list[list[Rational]]) -> list[Rational]:
    if len(rows) == 1:
        return rows[0]
    return [sum(column, fmpq(0)) / len(rows) for column in zip(*rows, strict=True)]


# ---------------------------------------------------------------- float64


@final
@dataclass(frozen=True, slots=True)
class FloatField(Field):
    """IEEE double precision through NumPy: fast, and only as accurate as rounding allows."""

    name: ClassVar[str] = "float64"

    def scalar(self, value: Rational) -> float:
        return float(fraction(value))

    def matrix(self, value: RationalMatrix) -> np.ndarray:
        import numpy as np

        entries = [float(fraction(v)) for v in value.entries()]
        return np.array(entries, dtype=np.float64).reshape(value.nrows(), value.ncols())

    def rows(self, value: np.ndarray) -> list[list[float]]:
        return value.tolist()

    def result(self, value: np.ndarray) -> np.ndarray:
        return value

    def product(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return left @ right

    def transpose(self, value: np.ndarray) -> np.ndarray:
        return value.T

    def add(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return left + right

    def add_to_rows(self, value: np.ndarray, row: np.ndarray) -> np.ndarray:
        return value + row

    def scale(self, factor: float, value: np.ndarray) -> np.ndarray:
        return factor * value

    def relu(self, value: np.ndarray) -> np.ndarray:
        import numpy as np

        return np.maximum(value, 0.0)

    def join(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        import numpy as np

        return np.concatenate([left, right], axis=1)

    def mean(self, tokens: np.ndarray) -> np.ndarray:
        import numpy as np

        return np.broadcast_to(_float_mean(tokens), tokens.shape)

    def part(self, value: np.ndarray, start: int, end: int) -> np.ndarray:
        return value[start:end]

    def stack(self, parts: Sequence[np.ndarray]) -> np.ndarray:
        import numpy as np

        return np.concatenate(parts)

    def running_mean(self, tokens: np.ndarray) -> np.ndarray:
        import numpy as np

        # Relative to the first token, so that the mean of equal tokens is exactly that token.
        return tokens[0] + np.cumsum(tokens - tokens[0], axis=0) / np.arange(1, len(tokens) + 1)[:, None]

    def hardmax(self, tokens: np.ndarray, queries: np.ndarray, keys: np.ndarray) -> np.ndarray:
        import numpy as np

        if keys.shape[1] == 1:
            key, query = keys[:, 0], queries[:, 0]
            top = _float_mean(tokens[key == key.max()])
            bottom = _float_mean(tokens[key == key.min()])
            every = _float_mean(tokens)
            return np.where((query > 0)[:, None], top, np.where((query < 0)[:, None], bottom, every))
        scores = queries @ keys.T
        hits = scores == scores.max(axis=1, keepdims=True)
        averaged = tokens[hits.argmax(axis=1)]
        for i in np.flatnonzero(hits.sum(axis=1) > 1):
            averaged[i] = _float_mean(tokens[hits[i]])
        return averaged

    def softmax(self, tokens: np.ndarray, queries: np.ndarray, keys: np.ndarray, temperature: Rational) -> np.ndarray:
        import numpy as np

        scores = queries @ keys.T
        # Subtract the row maximum before dividing: nothing overflows, however cold it is.
        with np.errstate(over="ignore", under="ignore"):
            exponents = (scores - scores.max(axis=1, keepdims=True)) / _float_temperature(temperature)
            weights = np.exp(exponents)
        return (weights @ tokens) / weights.sum(axis=1, keepdims=True)


def _float_temperature(temperature: Rational) -> float:
    """The temperature as a positive finite float: beyond float64 the nearest such number serves.

    >>> _float_temperature(rational(Fraction(1, 10**400))), _float_temperature(rational(10**400))
    (5e-324, 1.7976931348623157e+308)
    """
    tau = fraction(temperature)
    if tau >= sys.float_info.max:
        return sys.float_info.max
    return float(tau) or math.ulp(0.0)


def _float_mean(rows: np.ndarray) -> np.ndarray:
    """The mean of the rows, exactly the common value when all rows are equal."""
    return rows[0] + (rows - rows[0]).mean(axis=0)


# ---------------------------------------------------------------- balls

_PRECISION_LOCK: Final = threading.RLock()


@contextmanager
def working_precision(bits: int) -> Iterator[None]:
    """Ball arithmetic with ``bits`` bits inside the block; nothing changed outside it.

    The precision of the ball library is one global number: the block holds a lock, so that threads
    take turns.

    >>> with working_precision(200):
    ...     narrow = arb(1) / 3
    >>> narrow.rel_accuracy_bits() > 190
    True
    """
    with _PRECISION_LOCK:
        before = ctx.prec
        ctx.prec = bits
        try:
            yield
        finally:
            ctx.prec = before


def rational_bounds(ball: Ball) -> tuple[Rational, Rational]:
    """The ends of a finite ball, as exact dyadic rationals with at most the working precision.

    >>> low, high = rational_bounds(arb(2).sqrt())
    >>> low * low < 2 < high * high
    True
    """
    if not ball.is_finite():
        raise UndecidedError("the enclosure is not finite; more bits may help")
    return ball.lower().fmpq(), ball.upper().fmpq()


@final
@dataclass(frozen=True, slots=True)
class BallField(Field):
    """Rigorous real arithmetic: every number is an enclosure, computed with ``bits`` bits."""

    bits: int
    name: ClassVar[str] = "balls"

    def scalar(self, value: Rational) -> Ball:
        with working_precision(self.bits):
            return arb(value)

    def matrix(self, value: RationalMatrix) -> arb_mat:
        with working_precision(self.bits):
            return arb_mat(value)

    def rows(self, value: arb_mat) -> list[list[Ball]]:
        return value.tolist()

    def result(self, value: arb_mat) -> tuple[tuple[Ball, ...], ...]:
        return tuple(tuple(row) for row in value.tolist())

    def product(self, left: arb_mat, right: arb_mat) -> arb_mat:
        with working_precision(self.bits):
            return left * right

    def transpose(self, value: arb_mat) -> arb_mat:
        with working_precision(self.bits):
            return value.transpose()

    def add(self, left: arb_mat, right: arb_mat) -> arb_mat:
        with working_precision(self.bits):
            return left + right

    def add_to_rows(self, value: arb_mat, row: arb_mat) -> arb_mat:
        with working_precision(self.bits):
            (shift,) = row.tolist()
            entries = [v + s for line in value.tolist() for v, s in zip(line, shift, strict=True)]
            return arb_mat(value.nrows(), value.ncols(), entries)

    def scale(self, factor: Ball, value: arb_mat) -> arb_mat:
        with working_precision(self.bits):
            return value * factor

    def relu(self, value: arb_mat) -> arb_mat:
        with working_precision(self.bits):
            entries = [v.nonnegative_part() for v in value.entries()]
            return arb_mat(value.nrows(), value.ncols(), entries)

    def join(self, left: arb_mat, right: arb_mat) -> arb_mat:
        rows = [a + b for a, b in zip(left.tolist(), right.tolist(), strict=True)]
        with working_precision(self.bits):
            return arb_mat(rows) if rows else arb_mat(0, left.ncols() + right.ncols())

    def mean(self, tokens: arb_mat) -> arb_mat:
        with working_precision(self.bits):
            n = tokens.nrows()
            row = [sum(column, arb(0)) / n for column in zip(*tokens.tolist(), strict=True)]
            return arb_mat([row] * n)

    def part(self, value: arb_mat, start: int, end: int) -> arb_mat:
        with working_precision(self.bits):
            return arb_mat(value.tolist()[start:end])

    def stack(self, parts: Sequence[arb_mat]) -> arb_mat:
        with working_precision(self.bits):
            return arb_mat([row for part in parts for row in part.tolist()])

    def running_mean(self, tokens: arb_mat) -> arb_mat:
        with working_precision(self.bits):
            sums = [list(accumulate(column)) for column in zip(*tokens.tolist(), strict=True)]
            return arb_mat([[total / (i + 1) for total in row] for i, row in enumerate(zip(*sums, strict=True))])

    def hardmax(self, tokens: arb_mat, queries: arb_mat, keys: arb_mat) -> arb_mat:
        with working_precision(self.bits):
            rows = tokens.tolist()
            chosen = []
            for i, scores in enumerate((queries * keys.transpose()).tolist()):
                lead = _leading(scores)
                if not all(s < scores[lead] for at, s in enumerate(scores) if at != lead):
                    raise UndecidedError(f"the largest score of token {i} is not certain at {self.bits} bits")
                chosen.append(rows[lead])
            return arb_mat(chosen)

    def softmax(self, tokens: arb_mat, queries: arb_mat, keys: arb_mat, temperature: Rational) -> arb_mat:
        with working_precision(self.bits):
            rows = tokens.tolist()
            averaged = []
            for scores in (queries * keys.transpose()).tolist():
                lead = _leading(scores)
                total = arb(1)
                leak = [arb(0)] * tokens.ncols()
                for at, score in enumerate(scores):
                    if at == lead:
                        continue
                    weight = ((score - scores[lead]) / temperature).exp()
                    total += weight
                    step = zip(leak, rows[at], rows[lead], strict=True)
                    leak = [sofar + weight * (x - best) for sofar, x, best in step]
                if total > 0 and total.is_finite():
                    averaged.append([best + part / total for best, part in zip(rows[lead], leak, strict=True)])
                else:
                    # Scores too wide for an exponential say nothing; a mean still lies in the hull of the tokens.
                    averaged.append([reduce(arb.union, column) for column in zip(*rows, strict=True)])
            return arb_mat(averaged)


def _leading(scores: list[Ball]) -> int:
    """An index whose midpoint is largest: a reference point, not a proof of maximality."""
    middles = [s.mid() for s in scores]
    lead = 0
    for at, middle in enumerate(middles):
        if middle > middles[lead]:
            lead = at
    return lead


EXACT: Final = ExactField()
FLOAT: Final = FloatField()


@lru_cache(maxsize=64)
def balls(bits: int = 128) -> BallField:
    """Rigorous balls with ``bits`` bits of working precision (at least 32).

    >>> balls(200)
    BallField(bits=200)
    """
    if type(bits) is not int or not 32 <= bits <= 1 << 20:
        raise FieldError(f"bits: expected an integer between 32 and {1 << 20}, got {bits!r}")
    return BallField(bits)
