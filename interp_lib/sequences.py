"""Data: sequences as finite sets of tokens, and pairs of them.

A token is a point of ``R^d`` with rational coordinates, ``d ≥ 2``.  A sequence is a finite set of
distinct tokens; the order in which they are listed matters only for causal masks (``causal=True``).  Everything is checked here, once,
before any construction starts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate
from typing import Any, final

from .fields import Rational, RationalMatrix, exact_matrix, first_occurrences, fraction, rational

Token = tuple[Fraction, ...]
Tokens = tuple[Token, ...]


class DatasetError(ValueError):
    """The data break an assumption; the message names the place, what was expected and what came."""


@final
@dataclass(frozen=True, slots=True, init=False, repr=False)
class Dataset:
    """``N`` pairs of sequences ``(X_j, Y_j)`` in ``R^d`` with ``1 ≤ m_j ≤ n_j``.

    Statement: the standing assumptions of the interpolation theorems.  The ``X_j`` are pairwise
    distinct as sets; the tokens inside one ``X_j`` are distinct, and so inside one ``Y_j``.
    Different ``X_j`` may share tokens, and targets of different ``j`` may coincide.
    With ``causal=True`` the order of the tokens counts, as it does under a causal mask: the ``X_j`` are pairwise distinct *as
    lists*, so one may permute or extend another.

    Shapes: ``inputs`` is a sequence of ``N`` arrays ``(n_j, d)``, ``outputs`` of ``N`` arrays
    ``(m_j, d)``.  Lists, NumPy arrays, `Fraction`, ints and floats may be mixed.

    Exactness: exact over Q.  A float is the dyadic rational it is.

    Cost: linear in the number of coordinates.

    Raises: `DatasetError`.

    Example:

    >>> data = Dataset([[[0, 0], [1, 0.5]], [[1, 0.5], [2, 2]]], [[[3, 3]], [[4, 4]]])
    >>> data.N, data.d, data.n, data.m, data.M
    (2, 2, (2, 2), (1, 1), 2)
    """

    input_matrices: tuple[RationalMatrix, ...]
    output_matrices: tuple[RationalMatrix, ...]
    causal: bool
    _fractions: dict[str, tuple[Tokens, ...]] = field(compare=False, repr=False)

    def __init__(self, inputs: Iterable[Any], outputs: Iterable[Any], causal: bool = False) -> None:
        if not isinstance(causal, bool):
            raise DatasetError(f"causal: expected True or False, got {causal!r}")
        sources = _read_side(inputs, "inputs")
        targets = _read_side(outputs, "outputs")
        if len(sources) != len(targets):
            raise DatasetError(
                f"outputs has {len(targets)} sequences but inputs has {len(sources)}; one target per input is required"
            )
        _check_dimension(sources, targets)
        numbered = [_number(side) for side in (sources, targets)]
        for j, (xs, ys) in enumerate(zip(*numbered, strict=True)):
            _check_distinct(xs, f"inputs[{j}]")
            _check_distinct(ys, f"outputs[{j}]")
            if len(ys) > len(xs):
                raise DatasetError(
                    f"outputs[{j}] has {len(ys)} tokens but inputs[{j}] has {len(xs)}; m_j ≤ n_j is required"
                )
        _check_different_inputs(numbered[0], causal)
        object.__setattr__(self, "causal", causal)
        object.__setattr__(self, "input_matrices", tuple(map(exact_matrix, sources)))
        object.__setattr__(self, "output_matrices", tuple(map(exact_matrix, targets)))
        object.__setattr__(self, "_fractions", {})

    @property
    def inputs(self) -> tuple[Tokens, ...]:
        """The input sequences as Fractions."""
        return self._as_fractions("inputs", self.input_matrices)

    @property
    def outputs(self) -> tuple[Tokens, ...]:
        """The targets as Fractions."""
        return self._as_fractions("outputs", self.output_matrices)

    def _as_fractions(self, name: str, matrices: tuple[RationalMatrix, ...]) -> tuple[Tokens, ...]:
        # Made when asked for: constructions and checks work on the matrices.
        if name not in self._fractions:
            self._fractions[name] = tuple(
                tuple(tuple(map(fraction, token)) for token in matrix.tolist()) for matrix in matrices
            )
        return self._fractions[name]

    def __hash__(self) -> int:
        return hash((self.n, self.m, self.d, self.input_matrices[0][0, 0]))

    def __repr__(self) -> str:
        return f"Dataset(inputs={self.inputs!r}, outputs={self.outputs!r}{', causal=True' if self.causal else ''})"

    def as_sets(self) -> Dataset:
        """The same pairs with the order of the tokens forgotten: what constructions without a mask interpolate.

        Raises: `DatasetError` where two inputs have the same tokens in different orders.

        >>> Dataset([[[0, 0], [1, 0]]], [[[0, 0]]], causal=True).as_sets().causal
        False
        """
        return Dataset(self.inputs, self.outputs) if self.causal else self

    @property
    def N(self) -> int:
        """The number of pairs."""
        return len(self.input_matrices)

    @property
    def d(self) -> int:
        """The dimension of the tokens."""
        return int(self.input_matrices[0].ncols())

    @property
    def n(self) -> tuple[int, ...]:
        """The input lengths ``n_j``."""
        return tuple(int(matrix.nrows()) for matrix in self.input_matrices)

    @property
    def m(self) -> tuple[int, ...]:
        """The target lengths ``m_j``."""
        return tuple(int(matrix.nrows()) for matrix in self.output_matrices)

    @property
    def M(self) -> int:
        """The number of target tokens, ``M = Σ m_j``."""
        return sum(self.m)

    def __reduce__(self) -> tuple[type[Dataset], tuple[tuple[Tokens, ...], tuple[Tokens, ...], bool]]:
        return Dataset, (self.inputs, self.outputs, self.causal)


def _read_side(value: Iterable[Any], where: str) -> list[list[list[Rational]]]:
    sequences = _as_list(value, where, "a list of sequences")
    if not sequences:
        raise DatasetError(f"{where} is empty; at least one sequence is required")
    return [read_tokens(tokens, f"{where}[{j}]") for j, tokens in enumerate(sequences)]


def read_tokens(value: Any, where: str) -> list[list[Rational]]:
    """The tokens of one sequence as exact rationals; ``where`` names it in error messages.

    Raises: `DatasetError` for an empty sequence, ragged rows, and anything but finite real numbers.

    >>> read_tokens([[0.25, 1]], "X")
    [[1/4, 1]]
    """
    rows = _as_list(value, where, "a list of tokens")
    if not rows:
        raise DatasetError(f"{where} is empty; a sequence has at least one token")
    tokens: list[list[Rational]] = []
    for i, row in enumerate(rows):
        coordinates = row if type(row) is list else _as_list(row, f"{where}[{i}]", "a list of coordinates")
        if tokens and len(coordinates) != len(tokens[0]):
            raise DatasetError(
                f"{where}[{i}] has {len(coordinates)} coordinates but {where}[0] has {len(tokens[0])}; "
                "all tokens need the same dimension"
            )
        try:
            tokens.append([rational(v) for v in coordinates])
        except (TypeError, ValueError):
            tokens.append([_read_number(v, f"{where}[{i}][{c}]") for c, v in enumerate(coordinates)])
    return tokens


def _as_list(value: Any, where: str, expected: str) -> list[Any]:
    listed = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(listed, (str, bytes, dict)) or not isinstance(listed, Iterable):
        shown = repr(value) if len(repr(value)) < 40 else f"a {type(value).__name__}"
        raise DatasetError(f"{where}: expected {expected}, got {shown}")
    return list(listed)


def _read_number(value: Any, where: str) -> Rational:
    try:
        return rational(value)
    except ValueError:
        raise DatasetError(f"{where} is {value}; a finite number is required") from None
    except TypeError as problem:
        if isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
            raise DatasetError(f"{where}: expected a number, got a nested list; a token is a flat list") from None
        raise DatasetError(f"{where} is {problem} ({value!r}); a real number is required") from None


def _check_dimension(sources: list[list[list[Rational]]], targets: list[list[list[Rational]]]) -> None:
    d = len(sources[0][0])
    if d < 2:
        raise DatasetError(f"inputs[0] has tokens with {d} coordinates; d ≥ 2 is required")
    for where, side in (("inputs", sources), ("outputs", targets)):
        for j, tokens in enumerate(side):
            if len(tokens[0]) != d:
                raise DatasetError(
                    f"{where}[{j}] has tokens with {len(tokens[0])} coordinates but inputs[0] has {d}; "
                    "all tokens need the same dimension"
                )


def _number(side: list[list[list[Rational]]]) -> list[list[int]]:
    """Every token as a number, equal tokens as the same number."""
    first = first_occurrences(exact_matrix([token for tokens in side for token in tokens]))
    ends = list(accumulate(map(len, side)))
    return [first[end - len(tokens) : end] for end, tokens in zip(ends, side, strict=True)]


def _check_distinct(tokens: list[int], where: str) -> None:
    first: dict[int, int] = {}
    for i, token in enumerate(tokens):
        seen = first.setdefault(token, i)
        if seen != i:
            raise DatasetError(f"{where}[{i}] repeats {where}[{seen}]; the tokens of a sequence must be distinct")


def _check_different_inputs(sources: list[list[int]], causal: bool) -> None:
    first: dict[frozenset[int] | tuple[int, ...], int] = {}
    for j, tokens in enumerate(sources):
        seen = first.setdefault(tuple(tokens) if causal else frozenset(tokens), j)
        if seen != j:
            how = "equals" if sources[seen] == tokens else "has the same tokens as"
            what = "lists of tokens" if causal else "sets of tokens"
            raise DatasetError(
                f"inputs[{j}] {how} inputs[{seen}]; sequences are {what} and the inputs must be pairwise different"
            )


def squared_hausdorff_distance(left: Sequence[Sequence[Rational]], right: Sequence[Sequence[Rational]]) -> Rational:
    """The square of the Hausdorff distance of two finite sets of tokens, exactly.

    >>> squared_hausdorff_distance([[rational(0), rational(0)]], [[rational(3), rational(4)]])
    25
    """
    zero = rational(0)

    def one_sided(xs: Sequence[Sequence[Rational]], ys: Sequence[Sequence[Rational]]) -> Rational:
        return max(min(sum(((a - b) ** 2 for a, b in zip(x, y, strict=True)), zero) for y in ys) for x in xs)

    if set(map(tuple, left)) == set(map(tuple, right)):
        return zero
    return max(one_sided(left, right), one_sided(right, left))


def root_as_float(square: Rational) -> float:
    """The square root, rounded; positive for a positive number, however small.

    >>> root_as_float(rational(25)), root_as_float(rational(0))
    (5.0, 0.0)
    """
    if square == 0:
        return 0.0
    top, bottom = int(square.p), int(square.q)
    # Scale to an integer with plenty of bits, so that neither huge nor tiny numbers are lost.
    shift = max(0, 128 - (top.bit_length() - bottom.bit_length()))
    shift += shift % 2
    root = math.isqrt((top << shift) // bottom)
    try:
        value = float(Fraction(root, 1 << (shift // 2)))
    except OverflowError:
        return math.inf
    return value or math.ulp(0.0)


def hausdorff_distance(A: Any, B: Any) -> float:
    """The Hausdorff distance of two finite sets of tokens (Euclidean norm).

    Statement: ``max(max_a min_b |a - b|, max_b min_a |a - b|)``.

    Shapes: ``A`` is ``(n, d)`` and ``B`` is ``(m, d)``: lists, arrays, Fractions, floats.

    Exactness: computed over Q and rounded once at the end; 0.0 if and only if the sets are equal.

    Cost: ``O(n m d)`` rational operations.

    Raises: `DatasetError`.

    Example:

    >>> hausdorff_distance([[0, 0], [1, 0]], [[0, 0]])
    1.0
    """
    left, right = read_tokens(A, "A"), read_tokens(B, "B")
    if len(left[0]) != len(right[0]):
        raise DatasetError(
            f"A has tokens with {len(left[0])} coordinates but B has {len(right[0])}; all tokens need the same dimension"
        )
    return root_as_float(squared_hausdorff_distance(left, right))
