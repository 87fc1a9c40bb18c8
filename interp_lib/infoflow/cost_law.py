"""The cost law: what a plan costs, as a power of ``1/ε``.

Retrieving the position with the largest score is cheap.  Two things are not.

* **Decoding.**  To use ``T0`` tokens of dimension ``d`` *jointly* from a state of dimension ``E`` takes ``ε^{1 - T0 d / E}`` parameters when
  ``T0 d > E`` (Theorem 3), and nothing extra otherwise.
* **Other order statistics.**  To retrieve the ``k``-th largest, ``2 ≤ k ≤ T - 1``, takes ``ε^{1 - max(T - k, k - 1)/(n + 1)}`` (Theorem 2).

Exponents add up to the largest one: the total is a sum of powers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any, final

from .bounds import decoding_exponent, retrieval_exponent
from .information import Architecture, Global, History, MaxPosition, Mode, Plan, PlanError, follow


def decoding_cost(tokens: int, d: int, E: int) -> Fraction:
    """The exponent of decoding: ``max(0, T0 d / E - 1)``.

    >>> decoding_cost(8, 2, 4), decoding_cost(2, 2, 4)
    (Fraction(3, 1), Fraction(0, 1))
    """
    return max(Fraction(0), decoding_exponent(tokens * d, E))


def retrieval_cost(k: int, T: int, n: int) -> Fraction:
    """The exponent of retrieving the ``k``-th largest of ``T`` with one head of dimension ``n``.

    >>> retrieval_cost(1, 9, 1), retrieval_cost(9, 9, 1), retrieval_cost(2, 9, 1)
    (Fraction(0, 1), Fraction(0, 1), Fraction(5, 2))
    """
    if not 1 <= k <= T:
        raise PlanError(f"k is {k}; a number from 1 to T = {T} is required")
    return Fraction(0) if k in (1, T) else max(Fraction(0), retrieval_exponent(k, T, n))


def symbolic_exponents() -> dict[str, Any]:
    """The exponents of the law as sympy expressions, where they are positive, in ``T, d, E, k, n, h``.

    Raises: `ImportError` without sympy.

    >>> sorted(map(str, symbolic_exponents()["decoding"].free_symbols))
    ['E', 'T', 'd']
    """
    import sympy

    T, d, E, k, n, h = sympy.symbols("T d E k n h", positive=True)
    return {
        "decoding": T * d / E - 1,
        "retrieval from above": (T - k) / (n + 1) - 1,
        "retrieval from below": (k - 1) / (n + 1) - 1,
        "pairs in one layer": (T - h - 1) / ((n + 1) * h) - 1,
    }


@final
@dataclass(frozen=True, slots=True)
class Use:
    """At the end of layer ``layer`` position ``position`` uses the tokens in ``together`` jointly."""

    position: int
    layer: int
    together: frozenset[int]


@final
@dataclass(frozen=True, slots=True)
class Charge:
    """One term of the total: an exponent of ``1/ε`` and why."""

    exponent: Fraction
    reason: str


@final
@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a plan: its charges; the largest exponent decides."""

    charges: tuple[Charge, ...]

    @property
    def exponent(self) -> Fraction:
        return max((charge.exponent for charge in self.charges), default=Fraction(0))

    def parameters(self, eps: float) -> float:
        """``Σ (1/ε)^exponent``, without the constants that the law leaves out."""
        return float(sum((1 / eps) ** float(charge.exponent) for charge in self.charges))


def plan_cost(history: History, uses: Sequence[Use], d: int, E: int | None = None) -> Cost:
    """What the uses cost, given what flows where.

    Statement: every use must lie inside the information set at its place.  Tokens that arrived by max-position retrieval alone, one per head and
    layer, are held as they are: up to ``E / d`` of them are free.  Any larger set has to be decoded.

    Raises: `PlanError` when a use asks for tokens that are not there.

    Example:

    >>> one = Architecture(8, (1,))
    >>> spread = follow(one, [[Global()]])
    >>> plan_cost(spread, [Use(9, 1, frozenset(range(1, 9)))], d=1, E=2).exponent
    Fraction(3, 1)
    """
    width = history.architecture.embedding if E is None else E
    charges = []
    for use in uses:
        missing = sorted(use.together - history.at(use.position, use.layer))
        if missing:
            raise PlanError(
                f"position {use.position} uses token {missing[0]} after layer {use.layer}, but its information set does not hold it"
            )
        exponent = decoding_cost(len(use.together), d, width)
        words = f"{len(use.together)} tokens of dimension {d} out of a state of dimension {width}"
        charges.append(Charge(exponent, ("decodes " if exponent else "reads ") + words))
    return Cost(tuple(charges))


def cheapest_plan(architecture: Architecture, needed: Sequence[int], d: int, E: int | None = None) -> tuple[Plan, Cost]:
    """The cheapest one- or two-layer plan that brings the tokens at ``needed`` to the classification token.

    Statement: complete search over plans in which each head is idle, retrieves one of the needed positions for the classification token, or
    aggregates everything.  The needed positions stand for positions that attain extremes, each with a score of its own; a head that
    aggregates globally costs the decoding of *all* tokens, because nothing tells them apart beforehand.

    Cost: ``(|needed| + 2)^{heads}`` plans.

    Raises: `PlanError` if no plan reaches the tokens.

    Example:

    >>> plan, cost = cheapest_plan(Architecture(8, (2,)), [3, 5], d=1)
    >>> cost.exponent, [mode.source for mode in plan[0]]
    (Fraction(0, 1), [{9: 3}, {9: 5}])
    >>> cheapest_plan(Architecture(8, (1,)), [3, 5], d=1)[1].exponent
    Fraction(7, 1)
    """
    target = frozenset(needed)
    best: tuple[Fraction, int, Plan, Cost] | None = None
    for plan in _plans(architecture, sorted(target)):
        history = follow(architecture, plan)
        if not target <= history.output:
            continue
        last = architecture.layers
        spread = any(isinstance(mode, Global) for modes in plan for mode in modes)
        together = frozenset(range(1, architecture.T + 1)) if spread else target
        cost = plan_cost(history, [Use(architecture.class_position, last, together)], d, E)
        size = sum(map(len, plan))
        if best is None or (cost.exponent, size) < best[:2]:
            best = cost.exponent, size, plan, cost
    if best is None:
        raise PlanError(f"no plan of this architecture brings positions {sorted(target)} to the classification token")
    return best[2], best[3]


def _plans(architecture: Architecture, needed: Sequence[int]) -> Iterator[Plan]:
    c = architecture.class_position
    choices: list[Mode | None] = [None, *(MaxPosition({c: t}) for t in needed), Global(frozenset({c}))]
    for picks in product(choices, repeat=sum(architecture.heads)):
        plan, start = [], 0
        for h in architecture.heads:
            plan.append(tuple(mode for mode in picks[start : start + h] if mode is not None))
            start += h
        yield tuple(plan)
