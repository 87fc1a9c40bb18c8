"""Targets with a proof of how many dimensions they reveal.

**Revealed dimension.**  A target ``F`` of ``T`` tokens has revealed dimension at least ``m`` with gap ``c`` if there are ``m``
positions, a continuous curve of tokens ``x_t(u_t)``, ``u_t ∈ [-1, 1]``, at each of them, and for each ``t`` a completion ``R_t``
of the other positions, such that ``|F(S_u ∪ R_t) - F(S_u' ∪ R_t)| ≥ c`` whenever ``u_t = 1`` and ``u'_t = -1``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

from .one_layer import Arithmetic, OneLayer, Scalar, Token

Curve = Callable[[int, Scalar, Arithmetic], Sequence[Scalar]]


class BarrierError(ValueError):
    """The hypotheses do not hold, or a description is malformed; the message names the field."""


@final
@dataclass(frozen=True, slots=True)
class Target:
    """A function ``F`` of ``length`` tokens of dimension ``token_dimension``, evaluable in floats and in balls."""

    name: str
    length: int
    token_dimension: int
    value: Callable[[Sequence[Sequence[Scalar]], Arithmetic], Scalar]


@final
@dataclass(frozen=True, slots=True)
class Revealed:
    """A proof that ``target`` has revealed dimension at least ``len(positions)`` with gap ``gap``.

    ``curve(t, u, arithmetic)``: the token ``x_t(u)`` at ``positions[t]``.  ``completions[t]``: ``R_t``, the tokens at the
    other positions in increasing order.  ``gap``: the ``c`` of the definition, proved where the object is built.
    """

    target: Target
    positions: tuple[int, ...]
    curve: Curve
    completions: tuple[tuple[Token, ...], ...]
    gap: Fraction

    def __post_init__(self) -> None:
        m, T = len(self.positions), self.target.length
        if len(set(self.positions)) != m or not all(0 <= p < T for p in self.positions):
            raise BarrierError(f"positions: expected different numbers from 0 to {T - 1}, got {self.positions}")
        if len(self.completions) != m or any(len(R) != T - m for R in self.completions):
            raise BarrierError(f"completions: expected {m} of {T - m} tokens each")

    @property
    def dimension(self) -> int:
        """``m``: the revealed dimension."""
        return len(self.positions)

    @property
    def error(self) -> Fraction:
        """``c / 2``: what every one-layer model with ``(n + 1) h < m`` errs by, whatever its read-out."""
        return self.gap / 2

    def forbids(self, model: OneLayer) -> bool:
        """Whether Theorem B applies to the sizes of ``model``: ``(n + 1) h < m``."""
        return model.sums < self.dimension

    def sequence(self, u: Sequence[Scalar], t: int, arithmetic: Arithmetic) -> list[Sequence[Scalar]]:
        """``S_u ∪ R_t``: all tokens, in the order of the positions."""
        tokens: list[Any] = [None] * self.target.length
        for s, position in enumerate(self.positions):
            tokens[position] = self.curve(s, u[s], arithmetic)
        rest = iter(self.completions[t])
        return [[arithmetic.number(x) for x in next(rest)] if token is None else token for token in tokens]


def kth_largest_target(k: int, length: int) -> Target:
    """``F_k``: the ``k``-th largest of ``length`` numbers in ``[0, 1]``.

    >>> from .one_layer import FLOATS
    >>> kth_largest_target(2, 3).value([[0.5], [0.25], [1.0]], FLOATS)
    0.5
    """
    if not 1 <= k <= length:
        raise BarrierError(f"k: expected a number from 1 to {length}, got {k}")
    return Target(f"{k}-th largest of {length}", length, 1, lambda tokens, a: a.largest([x for (x,) in tokens], k))


def reveal_kth_largest(k: int, length: int, dimension: int | None = None) -> Revealed:
    """Corollary 2: ``F_k`` has revealed dimension ``m = min(k, T - k + 1)`` with gap ``1/m``, and any smaller ``m`` likewise.

    Curve ``t`` runs through the block ``[t/m, (t+1)/m]`` (counted from 0).  Of the ``T - m`` other tokens, ``j`` are 1 and the
    rest 0; the ``k``-th largest of all is then the ``(k - j)``-th largest free one, which is the token of block
    ``m - (k - j)``.  So ``R_t`` has ``j = k - (m - t)`` ones; ``0 ≤ j ≤ T - m`` for every ``t`` because ``m ≤ k`` and ``m ≤ T - k + 1``.

    Exactness: rational.

    Raises: `BarrierError` when ``dimension`` exceeds ``min(k, T - k + 1)``.

    Example:

    >>> median = reveal_kth_largest(3, 5)
    >>> median.dimension, median.gap, median.error
    (3, Fraction(1, 3), Fraction(1, 6))
    """
    target = kth_largest_target(k, length)
    most = min(k, length - k + 1)
    m = most if dimension is None else dimension
    if not 1 <= m <= most:
        raise BarrierError(f"dimension: expected a number from 1 to min(k, T - k + 1) = {most}, got {m}")

    def curve(t: int, u: Scalar, arithmetic: Arithmetic) -> list[Scalar]:
        return [u * arithmetic.number(Fraction(1, 2 * m)) + arithmetic.number(Fraction(2 * t + 1, 2 * m))]

    completions = []
    for t in range(m):
        ones = k - (m - t)
        completions.append(((Fraction(1),),) * ones + ((Fraction(0),),) * (length - m - ones))
    return Revealed(target, tuple(range(m)), curve, tuple(completions), Fraction(1, m))


def second_largest_model(gamma: float, length: int) -> OneLayer:
    """One head of dimension 2 that reads the second largest of ``T ≥ 2`` numbers in ``[0, 1]``, whatever ``T``.

    Statement: uniform attention, ``v(x) = (e^{γ(x-1)}, e^{2γ(x-1)})``; from the state ``L_a = (1/a) log Σ e^{a x}`` for ``a = γ, 2γ``, and with
    ``r = L_γ - L_{2γ}`` the answer ``L_{2γ} + (1/γ) log(γ r)`` errs by at most ``max(1.06, 1.5 log T) / γ``.

    Exactness: as the arithmetic in which it is evaluated; the bound is proved in the book.

    Raises: `BarrierError` unless ``γ > 0`` and ``T ≥ 2``.

    >>> model = second_largest_model(40.0, 3)
    >>> abs(model.answer([[0.25], [0.75], [0.5]]) - 0.5) < 1.7 / 40
    True
    """
    if not gamma > 0 or length < 2:
        raise BarrierError(f"gamma, length: expected γ > 0 and T ≥ 2, got {gamma} and {length}")

    def encode(token: Sequence[Scalar], position: int, arithmetic: Arithmetic) -> list[Any]:
        del position
        (x,) = token
        return [(arithmetic.number(0), [arithmetic.exp((x - 1) * gamma), arithmetic.exp((x - 1) * (2 * gamma))])]

    def read_out(z: Sequence[Scalar], arithmetic: Arithmetic) -> Scalar:
        first, second = (arithmetic.log(v * length) for v in z)
        # γ L_γ = γ + log Σ e^{γ(x-1)}, and so on; γ r = first - second / 2.
        return 1 + (second / 2 + arithmetic.log(first - second / 2)) / gamma

    return OneLayer(1, 2, 1, encode, read_out, length=length, name="second largest by two power sums")


def smallest_product_target(length: int, token_dimension: int) -> Target:
    """``F(X) = min_{s,t} <x(s), x(t)>``, the target of the depth-separation theorem.

    >>> from .one_layer import FLOATS
    >>> smallest_product_target(2, 2).value([[1.0, 0.0], [0.0, 1.0]], FLOATS)
    0.0
    """

    def value(tokens: Sequence[Sequence[Scalar]], arithmetic: Arithmetic) -> Scalar:
        products = []
        for s, x in enumerate(tokens):
            for y in tokens[s:]:
                terms = [a * b for a, b in zip(x, y, strict=True)]
                products.append(sum(terms[1:], terms[0]))
        return arithmetic.largest(products, len(products))

    return Target(f"smallest product of {length} tokens", length, token_dimension, value)


def product_gap(upper: Fraction, lower: Fraction) -> tuple[Fraction, Fraction]:
    """``(r, c)``: the best radius and gap of Corollary 1 for unit vectors with ``-lower ≤ <e_s, e_t> ≤ upper``.

    ``c(r) = r - max(upper · r, lower · r²)`` on ``[0, 1]``: it grows up to ``r = upper / lower``, then follows ``r - lower · r²``,
    whose top is at ``1 / (2 lower)``.

    >>> product_gap(Fraction(0), Fraction(0)), product_gap(Fraction(1, 2), Fraction(1))
    ((Fraction(1, 1), Fraction(1, 1)), (Fraction(1, 2), Fraction(1, 4)))
    """
    upper, lower = max(upper, Fraction(0)), max(lower, Fraction(0))
    r = min(Fraction(1), max(upper / lower, 1 / (2 * lower))) if lower else Fraction(1)
    return r, r - max(upper * r, lower * r * r)


def reveal_smallest_product(vectors: Sequence[Sequence[Fraction | int]], length: int) -> Revealed:
    """Corollary 1: unit vectors ``e_1 … e_m`` reveal ``m`` dimensions of ``min <x(s), x(t)>``, if ``T ≥ m + 1``.

    Curves ``x_t(u) = r (1 + u)/2 · e_t``; ``R_t`` holds copies of the probe ``-e_t``.  At ``u_t = 1`` the minimum is exactly
    ``-r``; at ``u_t = -1`` the token ``t`` is 0, and every product is at least ``-max(κ r, κ' r²)`` when
    ``-κ' ≤ <e_s, e_t> ≤ κ``.  Orthogonal vectors: gap 1.

    Exactness: the vectors are rational with norm exactly 1.

    Raises: `BarrierError` for vectors that are no unit vectors, or too few positions.

    Example:

    >>> reveal_smallest_product([(1, 0, 0), (0, 1, 0), (0, 0, 1)], 5).error
    Fraction(1, 2)
    """
    units = [tuple(map(Fraction, v)) for v in vectors]
    m, d = len(units), len(units[0]) if units else 0
    if not units or any(len(v) != d or sum(x * x for x in v) != 1 for v in units):
        raise BarrierError("vectors: expected unit vectors of one dimension with rational entries")
    if length < m + 1:
        raise BarrierError(f"length: {m} curves and a probe need at least {m + 1} tokens, got {length}")
    products = [sum(a * b for a, b in zip(v, w, strict=True)) for i, v in enumerate(units) for w in units[:i]]
    r, gap = product_gap(Fraction(max(products, default=0)), -Fraction(min(products, default=0)))
    if gap <= 0:
        raise BarrierError("vectors: two of them are equal, so nothing is revealed")

    def curve(t: int, u: Scalar, arithmetic: Arithmetic) -> list[Scalar]:
        half = [arithmetic.number(r * x / 2) for x in units[t]]
        return [x * (u + 1) if x != 0 else x for x in half]

    completions = tuple((tuple(-x for x in v),) * (length - m) for v in units)
    return Revealed(smallest_product_target(length, d), tuple(range(m)), curve, completions, gap)


def circle_vectors(m: int) -> list[Token]:
    """``m`` rational points of the unit circle, nearly equally spaced: for Corollary 1 in the plane.

    >>> all(x * x + y * y == 1 for x, y in circle_vectors(7))
    True
    """
    points: list[Token] = []
    for k in range(m):
        angle = 2 * math.pi * k / m - math.pi
        # Stereographic coordinates: rational slope, rational point.
        s = Fraction(math.tan(angle / 2)).limit_denominator(1000) if k else None
        if s is None:
            points.append((Fraction(-1), Fraction(0)))
        else:
            points.append(((1 - s * s) / (1 + s * s), 2 * s / (1 + s * s)))
    return points


def reveal_retrieval(retrievals: int, length: int, dimension: int | None = None) -> Revealed:
    """Corollary 3 on the line: ``F = Σ_i min_t f_i(x(t))`` with ``f_i(x) = |x - ξ_i| / η``, ``ξ_i = 2 i η``, ``η = 1/(2D - 1)``.

    The minimisers ``ξ_i`` are ``2 η`` apart.  Curve ``t`` leads from ``ξ_t`` to ``ξ_t + η``: on it ``f_t`` runs from 0 to 1, and
    every other ``f_s`` stays at least 1.  ``R_t`` holds every other minimiser and copies of one of them.  So
    ``min f_s = 0`` for ``s ≠ t`` while ``min f_t`` is 0 or 1: the gap is 1.  The general statement is in the book.

    Exactness: rational.

    Raises: `BarrierError` unless ``2 ≤ D``, ``m ≤ D`` and ``T ≥ m + D - 1``.

    Example:

    >>> reveal_retrieval(3, 5).gap
    Fraction(1, 1)
    """
    D = retrievals
    m = D if dimension is None else dimension
    if D < 2 or not 1 <= m <= D:
        raise BarrierError(f"retrievals, dimension: expected D ≥ 2 and 1 ≤ m ≤ D, got D = {D}, m = {m}")
    if length < m + D - 1:
        raise BarrierError(f"length: {m} curves and {D - 1} minimisers need at least {m + D - 1} tokens, got {length}")
    eta = Fraction(1, 2 * D - 1)
    centres = [2 * i * eta for i in range(D)]

    def value(tokens: Sequence[Sequence[Scalar]], arithmetic: Arithmetic) -> Scalar:
        total = arithmetic.number(0)
        for centre in centres:
            distances = [abs(x - arithmetic.number(centre)) / arithmetic.number(eta) for (x,) in tokens]
            total = total + arithmetic.largest(distances, len(distances))
        return total

    def curve(t: int, u: Scalar, arithmetic: Arithmetic) -> list[Scalar]:
        return [u * arithmetic.number(eta / 2) + arithmetic.number(centres[t] + eta / 2)]

    completions = []
    for t in range(m):
        others = [(centre,) for s, centre in enumerate(centres) if s != t]
        completions.append(tuple(others + [others[0]] * (length - m - len(others))))
    target = Target(f"sum of {D} retrievals among {length} tokens", length, 1, value)
    return Revealed(target, tuple(range(m)), curve, tuple(completions), Fraction(1))
