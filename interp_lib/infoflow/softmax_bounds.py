"""How far a softmax mean can be from the extreme it imitates: the sharp bound, in floats and certified.

**Lemma S.**  For ``z_1..z_T`` and ``β > 0``:  ``0 ≤ max z - Σ z e^{βz} / Σ e^{βz} ≤ W((T-1)/e) / β`` with Lambert's ``W``,
and numbers exist that attain it.
"""

from __future__ import annotations

import math
from fractions import Fraction

from ..fields import Ball, Rational, UndecidedError, fraction, rational, working_precision


class SoftmaxBoundError(ValueError):
    """A number of tokens, an inverse temperature or a gap out of range."""


def softmax_mean(values: list[float], beta: float) -> float:
    """``Σ z e^{βz} / Σ e^{βz}`` in float64, with the maximum subtracted first.

    >>> softmax_mean([0.0, 1.0], 0.0)
    0.5
    """
    top = max(values)
    weights = [math.exp(beta * (z - top)) for z in values]
    return sum(w * z for w, z in zip(weights, values, strict=True)) / sum(weights)


def lambert_w(x: float) -> float:
    """Lambert's ``W``: the ``w ≥ 0`` with ``w e^w = x``, for ``x ≥ 0``, by Newton's method in float64.

    >>> round(lambert_w(math.e), 12)
    1.0
    """
    w = math.log1p(x)
    for _ in range(50):
        step = (w * math.exp(w) - x) / (math.exp(w) * (w + 1))
        w -= step
        if abs(step) <= 1e-15 * (1 + w):
            break
    return w


def largest_gap(T: int, beta: float) -> float:
    """``W((T-1)/e) / β``: how far below the maximum a softmax mean of ``T`` numbers can be (float64).

    >>> largest_gap(1, 2.0)
    0.0
    """
    return lambert_w((T - 1) / math.e) / beta


def witness(T: int, beta: float) -> list[float]:
    """The numbers that attain the bound: one at 0, the others at distance ``(1 + W)/β`` below it.

    >>> beta = 3.0
    >>> values = witness(8, beta)
    >>> math.isclose(max(values) - softmax_mean(values, beta), largest_gap(8, beta))
    True
    """
    return [0.0] + [-(1 + lambert_w((T - 1) / math.e)) / beta] * (T - 1)


def lambert_w_above(T: int) -> Rational:
    """A rational number at least ``W((T-1)/e)``, and larger by less than ``10⁻⁹``.

    Statement: ``w e^w`` increases, so ``w ≥ W((T-1)/e)`` exactly when ``w e^{w+1} ≥ T - 1``.

    Exactness: certified; the last inequality is checked in balls.

    Raises: `SoftmaxBoundError` for ``T < 1``.

    Example:

    >>> 0.2784 < float(fraction(lambert_w_above(2))) < 0.2785
    True
    """
    if T < 1:
        raise SoftmaxBoundError(f"T: expected a number of tokens ≥ 1, got {T}")
    if T == 1:
        return rational(0)
    w = rational(lambert_w((T - 1) / math.e)) + rational(Fraction(1, 2 * 10**9))
    with working_precision(128):
        ball = Ball(w)
        if not ball * (ball + 1).exp() > T - 1:
            raise UndecidedError(f"T = {T} is too large for a float64 start")
    return w


def cold_enough(T: int, gap: Rational) -> Rational:
    """A rational inverse temperature ``β > 0`` with ``W((T-1)/e) / β ≤ gap``, certified, and the smallest up to ``10⁻⁶`` relative.

    Statement: by Lemma S a softmax mean of ``T`` numbers at this ``β`` is within ``gap`` of their maximum.

    Exactness: certified: ``β = w / gap`` rounded up, with ``w`` from `lambert_w_above`.

    Raises: `SoftmaxBoundError` for ``T < 1`` or ``gap ≤ 0``.

    Example:

    >>> beta = cold_enough(8, rational(Fraction(1, 100)))
    >>> largest_gap(8, float(fraction(beta))) <= 0.01
    True
    """
    if not gap > 0:
        raise SoftmaxBoundError(f"gap: expected a positive number, got {gap}")
    least = lambert_w_above(T) / gap
    if T == 1:
        return rational(1)
    # Rounded up to a multiple of a small power of two, so that numbers stay short.
    grain = rational(Fraction(1, 1 << 24)) / gap
    return rational(math.ceil(fraction(least / grain))) * grain
