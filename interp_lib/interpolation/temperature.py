"""How cold is cold enough: a certified lower bound for the critical temperature, with all its parts.

Three estimates carry Theorem 1.8.

* **Drift.**  A softmax mean of labels stays below the largest by at most the entropy over the inverse
  temperature (`mean_below_maximum`).  So after the separation a token is where hardmax would
  put it, less ``ε u`` with ``0 ≤ ε ≤ τ Λ_j``.
* **Gap.**  On drifted tokens the attended token still leads (`drifted_gap`).
* **Leak.**  The others weigh ``e^{-g/τ}`` each at most (`leak_bound`).

Each is used at one place with a known amount of room.  All of them grow with ``τ``; so what holds at
one temperature holds at every lower one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import final

from ..fields import Ball, Rational, RationalMatrix, fraction, rational, rational_matrix, working_precision
from .directions import project
from .separation import Step

BITS = 96
HOTTEST = 40
"""The bound stops at ``2^40``: a construction that nothing limits (all ``n_j = 1``) works at every temperature."""
COLDEST = -4096
STEPS = 8


class TemperatureError(ArithmeticError):
    """No temperature of the grid satisfies the estimates."""


# ---------------------------------------------------------------- the three estimates


def mean_below_maximum(n: int, inverse_temperature: Ball) -> Ball:
    """``log(n) / β``: how far the mean of ``n`` numbers with weights ``∝ e^{β t}`` can stay below the largest.

    Statement: ``max t - Σ π_l t_l ≤ log(n) / β``.  *Proof.*  ``β max t ≤ log Σ e^{β t_l} = β Σ π_l t_l + H(π)`` and
    the entropy ``H(π)`` is at most ``log n``.

    >>> mean_below_maximum(1, Ball(3))
    0
    """
    return Ball(n).log() / inverse_temperature


def drifted_gap(gap: Rational, drift: Ball, slope: Rational, square: Rational) -> Ball:
    """``g - D s - D² |u|²``: what is left of a gap ``<x, p - y>`` when each token slides along ``-u`` by at most ``D``.

    Statement: for ``ε, ε', ε''`` in ``[0, D]`` and ``s ≥ |<u, p - y>| + |<x, u>|``,
    ``<x - εu, (p - ε'u) - (y - ε''u)> ≥ <x, p - y> - D s - D² |u|²``.

    >>> drifted_gap(rational(5), Ball(1), rational(2), rational(1))
    2.00000000000000
    """
    return gap - drift * slope - drift * drift * square


def leak_bound(others: int, gap: Ball, temperature: Rational, spread: Ball) -> Ball:
    """``(n - 1) e^{-g/τ} w``: how far a softmax mean can be from the token that leads every other by ``g``.

    Statement: if ``s_* - s_l ≥ g > 0`` and ``|y_l - y_*| ≤ w`` for all ``l ≠ *``, then ``|Σ π_l y_l - y_*| ≤ (n-1) e^{-g/τ} w``.
    *Proof.*  ``Σ π_l y_l - y_* = Σ_{l ≠ *} π_l (y_l - y_*)`` and ``π_l ≤ e^{(s_l - s_*)/τ}``.

    >>> leak_bound(0, Ball(1), rational(1), Ball(1))
    0
    """
    return others * (-gap / temperature).exp() * spread if others else Ball(0)


# ---------------------------------------------------------------- where they are used


@final
@dataclass(frozen=True, slots=True)
class Part:
    """One place where the temperature matters.

    ``layer`` names what would fail first (``"leaders"``: a plateau of phase 2 misses a drifted token;
    ``"collapse"``: a cluster leaves its interval), in block number ``block`` (from 1), for sequence ``sequence`` and
    its leader number ``leader``.  ``room`` is the distance available and ``temperature`` the largest one of
    the grid for which the estimate stays below it.
    """

    layer: str
    block: int
    sequence: int
    leader: int
    room: Fraction
    temperature: Fraction


@final
@dataclass(frozen=True, slots=True)
class TemperatureBound:
    """A temperature below which the construction is exact, and the parts it is the least of.

    ``temperature`` is certified: at it and at every lower temperature all estimates hold.  ``parts`` is empty where nothing
    depends on the temperature at all; the bound is then ``2^40``.
    """

    temperature: Fraction
    parts: tuple[Part, ...]

    @property
    def limiting(self) -> Part | None:
        """The part that sets the bound; None where there is none."""
        return min(self.parts, key=lambda part: part.temperature, default=None)


@final
@dataclass(frozen=True, slots=True)
class Demand:
    """What must hold at one place, for the estimates to be compared with.

    ``drift`` multiplies the drift of one token (0 where drift does no harm here); if ``others > 0``, the leak
    of a cluster with gap ``gap``, slope ``slope`` (see `drifted_gap`) and spread ``spread`` is added.  The sum must stay
    below ``room``.
    """

    layer: str
    block: int
    sequence: int
    leader: int
    room: Rational
    everywhere: bool
    drift: Rational
    others: int = 0
    gap: Rational = field(default_factory=lambda: rational(0))
    slope: Rational = field(default_factory=lambda: rational(0))
    spread: Rational = field(default_factory=lambda: rational(0))


def drift_rates(steps: Sequence[Step], n: Sequence[int], raised: Rational | int = 0) -> list[Ball]:
    """``Λ_j = log n_j Σ_k γ_k / p_jk``: at temperature ``τ`` the tokens of sequence ``j`` drift by at most ``τ Λ_j``.

    ``p_jk`` is the least label of the sequence when block ``k`` attends: a token with label ``p`` weighs the
    others with inverse temperature ``p/τ``.  With ``raised``, as if all labels were larger by that much.

    >>> drift_rates([], [3])
    [0]
    """
    return [
        mean_below_maximum(length, Ball(1))
        * sum((step.gamma / (step.least[j] + raised) for step in steps), rational(0))
        for j, length in enumerate(n)
    ]


def collapse_demands(
    tokens: RationalMatrix, places: Sequence[int], u: Sequence[Rational]
) -> list[tuple[Rational, Rational, Rational]]:
    """Gap, slope and spread of each cluster of a sequence, in the collapse layer ``A = V = I``, ``ρ = 0``.

    ``tokens`` are the nominal tokens once the leaders have moved; ``places`` are the rows of the
    leaders, the first of which draws all others.

    Statement: for cluster ``k``, with ``x*`` its leader, ``gap`` is the least ``<x, x* - y>`` over the tokens ``x`` that
    attend to ``x*`` and ``y ≠ x*``; ``slope`` the largest ``|<u, x* - y>| + |<u, x>|``; ``spread`` the largest ``|y_1 - x*_1|``.

    Cost: ``O(n_j² d)``.
    """
    rows = tokens.tolist()
    along = project(tokens, tuple(u))
    quiet = set(places[1:])
    demands = []
    for k, at in enumerate(places):
        attending = [at] if k else [i for i in range(len(rows)) if i not in quiet]
        others = [l for l in range(len(rows)) if l != at]
        if not others:
            demands.append((rational(0), rational(0), rational(0)))
            continue
        queries = rational_matrix([rows[i] for i in attending])
        scores = (queries * tokens.transpose()).tolist()
        gap = min(line[at] - line[l] for line in scores for l in others)
        slope = max(abs(along[at] - along[l]) for l in others) + max(abs(along[i]) for i in attending)
        demands.append((gap, slope, max(abs(rows[at][0] - rows[l][0]) for l in others)))
    return demands


# ---------------------------------------------------------------- the bound


def grid(index: int) -> Rational:
    """Temperatures in steps of at most an eighth: ``2^e (8 + f) / 8`` for ``index = 8 e + f``.

    >>> grid(0), grid(4), grid(-8)
    (1, 3/2, 1/2)
    """
    octave, step = divmod(index, STEPS)
    power = rational(1 << octave) if octave >= 0 else rational(1) / (1 << -octave)
    return power * (STEPS + step) / STEPS


def temperature_bound(demands: Sequence[Demand], rates: Sequence[Ball], u: Sequence[Rational]) -> TemperatureBound:
    """The largest temperature of the grid at which every demand is met, and each demand's own.

    Statement: at ``temperature`` and at every ``τ`` below it each demand holds, because each estimate grows with ``τ``.

    Exactness: certified in ball arithmetic.

    Cost: a bisection of about twenty steps per demand.

    Raises: `TemperatureError` if even the coldest temperature of the grid is too hot.
    """
    with working_precision(BITS):
        # `max` of the library is a rigorous enclosure of the largest; Python's is not.
        largest = rates[0]
        for rate in rates[1:]:
            largest = largest.max(rate)
        square = sum((v * v for v in u), rational(0))
        parts = []
        for demand in demands:
            rate = largest if demand.everywhere else rates[demand.sequence]
            found = _hottest(demand, rate, rates[demand.sequence], abs(u[0]), square)
            if found is not None:
                parts.append(
                    Part(
                        demand.layer,
                        demand.block,
                        demand.sequence,
                        demand.leader,
                        fraction(demand.room),
                        fraction(grid(found)),
                    )
                )
    bound = min((part.temperature for part in parts), default=fraction(grid(STEPS * HOTTEST)))
    return TemperatureBound(bound, tuple(parts))


def _hottest(demand: Demand, rate: Ball, own: Ball, first: Rational, square: Rational) -> int | None:
    """The largest index of the grid at which the demand is met; None if it is met up to the hottest."""
    good, bad = STEPS * COLDEST, STEPS * HOTTEST
    if _met(demand, rate, own, first, square, grid(bad)):
        return None
    guess, stride = 0, STEPS
    # Gallop from 1 towards the change, then bisect.
    if _met(demand, rate, own, first, square, grid(guess)):
        good = guess
        while good + stride < bad and _met(demand, rate, own, first, square, grid(good + stride)):
            good, stride = good + stride, 2 * stride
        bad = min(bad, good + stride)
    else:
        bad = guess
        while not _met(demand, rate, own, first, square, grid(bad - stride)):
            bad, stride = bad - stride, 2 * stride
            if bad < good:
                raise TemperatureError(f"block {demand.block} would need a temperature below 2^{COLDEST}")
        good = bad - stride
    while bad - good > 1:
        middle = (good + bad) // 2
        if _met(demand, rate, own, first, square, grid(middle)):
            good = middle
        else:
            bad = middle
    return good


def _met(demand: Demand, rate: Ball, own: Ball, first: Rational, square: Rational, tau: Rational) -> bool:
    used = rate * (demand.drift * tau)
    if demand.others:
        drift = own * tau
        gap = drifted_gap(demand.gap, drift, demand.slope, square)
        if not gap > 0:
            return False
        used += leak_bound(demand.others, gap, tau, drift * first + demand.spread)
    return bool(used < demand.room)
