"""The true break: between which temperatures interpolation stops being exact."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

from ..certificates import MOST_BITS, Certificate, verify
from ..layers import Transformer
from ..sequences import Dataset

COLDEST = Fraction(1, 2**64)
HOTTEST = Fraction(2**64)


class BreakError(ArithmeticError):
    """No bracket was found: the certificates were not decided, or no temperature was certified."""


@final
@dataclass(frozen=True, slots=True)
class Break:
    """A change from certified to refuted: exact at temperature ``below``, certainly not at ``above``.

    ``above`` is None when nothing was refuted up to ``2^64`` (for example when all ``n_j = 1``: then softmax
    changes nothing).  ``certificates`` is how many temperatures were checked.
    """

    below: Fraction
    above: Fraction | None
    certified: Certificate
    refuted: Certificate | None
    certificates: int

    @property
    def relative_width(self) -> float:
        """``above / below - 1``."""
        return math.inf if self.above is None else float(self.above / self.below - 1)


def measured_critical_temperature(
    T: Transformer, data: Dataset, tolerance: Any = Fraction(1, 100), max_bits: int = MOST_BITS
) -> Break:
    """A bracket of the temperature at which ``T_τ(X_j) = Y_j`` breaks, as narrow as ``tolerance`` (relative).

    Statement: `verify` certifies at ``below`` and refutes at ``above``, both in real arithmetic, and
    ``above ≤ (1 + tolerance) · below``.  So a break lies between.  Whether it is the only one is not claimed: the
    search starts at ``T.critical_temperature`` (at 1 if there is none), doubles until something is refuted, and bisects.

    Exactness: both ends are certified.

    Cost: one certificate for every octave up to the break, and ``log₂(1/tolerance)`` more.

    Raises: `BreakError` when no temperature down to ``2^-64`` is certified, or a certificate stays undecided.

    Example:

    >>> from interp_lib.interpolation.softmax import softmax_interpolant
    >>> data = Dataset([[[0, 0], [1, 0], [0, 1]]], [[[5, 5], [6, 6]]])
    >>> found = measured_critical_temperature(softmax_interpolant(data), data)
    >>> found.certified.status, found.refuted.status, found.relative_width < 0.01
    ('certified', 'refuted', True)
    """
    most = 1 + Fraction(tolerance)
    if not most > 1:
        raise BreakError(f"tolerance is {tolerance}; a positive number is required")
    count = 0

    def check(tau: Fraction) -> Certificate:
        nonlocal count
        count += 1
        return verify(T, data, tau, max_bits)

    below = T.critical_temperature or Fraction(1)
    certified = check(below)
    above, refuted = None, None
    while certified.status != "certified":
        if certified.status == "refuted":
            above, refuted = below, certified
        below /= 2
        if below < COLDEST:
            raise BreakError(f"not certified at any temperature tried down to {float(COLDEST):.3g}")
        certified = check(below)
    while above is None:
        if 2 * below > HOTTEST:
            return Break(below, None, certified, None, count)
        found = check(2 * below)
        if found.status == "undecided":
            found = check(below * Fraction(31, 16))
        if found.status == "undecided":
            raise BreakError(found.explain())
        if found.status == "certified":
            below, certified = fraction_of(found), found
        else:
            above, refuted = fraction_of(found), found
    while above > most * below:
        # Three places to look: a certificate can stay undecided at the break itself, but not near it.
        for share in (1 / 2, 1 / 3, 2 / 3):
            found = check(_between(below, above, share))
            if found.status != "undecided":
                break
        else:
            raise BreakError(found.explain())
        if found.status == "certified":
            below, certified = fraction_of(found), found
        else:
            above, refuted = fraction_of(found), found
    return Break(below, above, certified, refuted, count)


def fraction_of(certificate: Certificate) -> Fraction:
    """The temperature of a certificate for one temperature."""
    assert isinstance(certificate.temperature, Fraction)
    return certificate.temperature


def _between(below: Fraction, above: Fraction, share: float) -> Fraction:
    """``below^(1 - share) above^share``, rounded to a number with a short denominator strictly between."""
    ratio = above / below
    grain = 1 << (8 + (1 / (ratio - 1)).__ceil__().bit_length())
    return below * Fraction(round(float(ratio) ** share * grain), grain)
