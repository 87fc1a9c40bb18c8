"""What softmax retrieves: the extremes with a constant number of parameters; the ``k``-th largest as a target.

**Theorem.**  One head of dimension 1 with score ``±βx``, value ``x`` and an output bias answers the largest (smallest) of ``T``
numbers within ``ε``, where ``2ε = W((T-1)/e)/β``: six parameters whatever ``ε`` and ``T``, and the error ``ε`` is attained.
For ``2 ≤ k ≤ T - 1`` one head needs ``c ε^{1 - max(T-k, k-1)/(n+1)}`` units behind it; see `interp_lib.infoflow.bounds`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

from ..fields import (
    FLOAT,
    Field,
    Rational,
    balls,
    fraction,
    rational,
    rational_bounds,
    rational_matrix,
    working_precision,
)
from .depth_separation import CertifiedError
from .softmax_bounds import cold_enough, witness


class RetrievalError(ValueError):
    """A size, an error level or an input is out of range; the message names it."""


def kth_largest(values: Sequence[Any], k: int) -> Fraction:
    """``F_k``: the ``k``-th largest of some numbers, exact; equal numbers count one by one.

    >>> kth_largest([3, 1, 3, 2], 2), kth_largest([3, 1, 3, 2], 3)
    (Fraction(3, 1), Fraction(2, 1))
    """
    if not 1 <= k <= len(values):
        raise RetrievalError(f"k: expected 1 ≤ k ≤ {len(values)}, got {k}")
    return fraction(sorted(map(rational, values), reverse=True)[k - 1])


@final
@dataclass(frozen=True, slots=True)
class Extreme:
    """One attention head for the largest (``sign = 1``) or the smallest (``sign = -1``) of ``T`` numbers; build it with `extreme`.

    ``answer = Σ_t π_t x_t + bias`` with ``π_t ∝ e^{sign β x_t}``.

    Exactness: the weights are exact rationals.  `forward` over `FLOAT` is measured, over `balls` enclosed.

    Cost: ``O(T)``.
    """

    T: int
    eps: Fraction
    sign: int
    beta: Fraction
    bias: Fraction

    @property
    def parameters(self) -> int:
        """Query, key, value, output, inverse temperature, bias: six numbers."""
        return 6

    def forward(self, values: Sequence[Any], field: Field = FLOAT) -> Any:
        """The answer as a number of the field."""
        tokens = field.matrix(rational_matrix([[v] for v in self.read(values)]))
        asking = field.matrix(rational_matrix([[self.sign]]))
        average = field.softmax(tokens, asking, tokens, rational(1 / self.beta))
        return field.rows(field.add_to_rows(average, field.matrix(rational_matrix([[self.bias]]))))[0][0]

    def read(self, values: Sequence[Any]) -> list[Rational]:
        """The numbers as rationals, ``T`` of them."""
        if len(values) != self.T:
            raise RetrievalError(f"values: expected {self.T} numbers, got {len(values)}")
        return [rational(v) for v in values]

    def target(self, values: Sequence[Any]) -> Fraction:
        """The number asked for."""
        return kth_largest(values, 1 if self.sign == 1 else self.T)

    def worst_input(self) -> list[Fraction]:
        """Numbers on which the error is ``ε``, up to the rounding of a float64: the worst ones of Lemma S."""
        return [self.sign * Fraction(v) for v in witness(self.T, float(self.beta))]


def extreme(T: int, eps: Any, smallest: bool = False) -> Extreme:
    """One head that answers the largest of ``T`` numbers within ``ε``.

    Statement: the softmax mean is below the maximum by a gap in ``[0, 2ε]``; adding ``ε`` centres it.

    Exactness: ``W((T-1)/e)/β ≤ 2ε`` is certified.

    Raises: `RetrievalError` for ``T < 1`` or ``ε ≤ 0``.

    Example:

    >>> model = extreme(8, Fraction(1, 100))
    >>> abs(model.forward([0.5, 0.25, 0.75, 0.7, 0, 0, 0, 0.1]) - 0.75) <= 0.01
    True
    """
    level = fraction(rational(eps))
    if T < 1:
        raise RetrievalError(f"T: expected T ≥ 1, got {T}")
    if level <= 0:
        raise RetrievalError(f"eps: expected a positive number, got {eps}")
    sign = -1 if smallest else 1
    beta = fraction(cold_enough(T, rational(2 * level)))
    return Extreme(T, level, sign, beta, sign * level if T > 1 else Fraction(0))


def certified_error(model: Extreme, values: Sequence[Any], bits: int = 96) -> CertifiedError:
    """The error of the model on given numbers, enclosed.

    Exactness: certified.

    Example:

    >>> model = extreme(3, Fraction(1, 10))
    >>> certified_error(model, [0, 0.5, 1]).at_most <= Fraction(1, 10)
    True
    """
    answer = model.forward(values, balls(bits))
    with working_precision(bits):
        low, high = rational_bounds(answer)
    exact = model.target(values)
    return CertifiedError(fraction(low) - exact, fraction(high) - exact)


def lemma_s_at_a_maximum(distances: Sequence[float]) -> tuple[float, float]:
    """``(f, largest (δ - f) e^{-δ})`` with ``f = Σ δ_l e^{-δ_l} / (1 + Σ e^{-δ_l})``: moving one ``δ`` to ``1 + f`` never lowers ``f``.

    The second number is at most ``e^{-1-f}``, which ``δ = 1 + f`` attains: the step of the proof of Lemma S.

    >>> f, term = lemma_s_at_a_maximum([1.0, 2.0])
    >>> term <= math.exp(-1 - f)
    True
    """
    total = 1 + sum(math.exp(-d) for d in distances)
    f = sum(d * math.exp(-d) for d in distances) / total
    return f, max((d - f) * math.exp(-d) for d in distances)


def hidden_order(
    k: int, free: Sequence[Sequence[Any]], anchor: Any, anchor_is_high: bool, T: int
) -> tuple[list[Fraction], list[Fraction]]:
    """The completion of the lower bound: two choices of free numbers become two inputs that differ only where the choices do.

    Statement: ``free`` holds two choices ``S, S'`` of numbers strictly between 0 and 1, position ``t``'s in block ``t``, blocks
    increasing, the anchor above all of them (``anchor_is_high``) or below.  Common numbers become 0; the anchor counts among the
    ``k - 1`` numbers on top if it is high; the other top numbers are 1; the rest is 0.  Then the ``k``-th largest of the two
    inputs are the entries of ``S`` and ``S'`` at the last position where they differ.

    Shapes: two inputs of ``T`` numbers.

    Raises: `RetrievalError` where there are not enough positions.

    Example:

    >>> X, Y = hidden_order(2, ([0.1, 0.3], [0.1, 0.4]), anchor=0.9, anchor_is_high=True, T=4)
    >>> float(kth_largest(X, 2)), float(kth_largest(Y, 2))
    (0.3, 0.4)
    """
    first, second = ([fraction(rational(v)) for v in choice] for choice in free)
    tops = [Fraction(1)] * (k - 1 - (1 if anchor_is_high else 0))
    rest = T - len(first) - 1 - len(tops)
    if k < 2 or rest < 0:
        raise RetrievalError(
            f"T: expected k ≥ 2 and at least {len(first) + 1 + len(tops)} positions, got k = {k}, T = {T}"
        )
    common = [*tops, fraction(rational(anchor)), *[Fraction(0)] * rest]
    different = [a != b for a, b in zip(first, second, strict=True)]
    return (
        [v if keep else Fraction(0) for v, keep in zip(first, different, strict=True)] + common,
        [v if keep else Fraction(0) for v, keep in zip(second, different, strict=True)] + common,
    )
