"""The constants and exponents of the theorems on one layer, two layers and decoding, as numbers and as symbols.

Lower bounds hold for a read-out ``F̂`` with one hidden layer of 1-Lipschitz units and weights at most 1, and a model with ``h``
heads of dimension ``n``, ``E = h n``, unless it says "free weights".  The source states orders; they stand beside ours in `LAWS`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, final

from .decoding import smallest_base
from .depth_separation import Arcs, pieces_needed


class BoundError(ValueError):
    """A size for which a bound is not stated; the message names it."""


# ---------------------------------------------------------------- the two lemmas


def lipschitz_price(
    U: Sequence[Sequence[float]], V: Sequence[float], z: Sequence[float], other: Sequence[float]
) -> tuple[float, float]:
    """``(|F̂(z) - F̂(z')|, p √E |z - z'|)`` for ``F̂(z) = V σ(U z)``, entries at most 1: the first is at most the second (Lemma L).

    >>> lipschitz_price([[1.0, 0.0]], [1.0], [2.0, 0.0], [1.0, 0.0])
    (1.0, 1.4142135623730951)
    """

    def answer(state: Sequence[float]) -> float:
        return sum(
            v * max(0.0, sum(u * x for u, x in zip(row, state, strict=True))) for v, row in zip(V, U, strict=True)
        )

    return abs(answer(z) - answer(other)), len(V) * math.sqrt(len(z)) * math.dist(z, other)


def quotient_difference(N: Sequence[float], D: float, other_N: Sequence[float], other_D: float) -> tuple[float, float]:
    """``(|N/D - N'/D'|, |N - N'| + |D - D'|)``: the first is at most the second for ``D, D' ≥ 1``, ``|N'| ≤ D'`` (Lemma B).

    >>> quotient_difference([1.0], 2.0, [1.0], 1.0)
    (0.5, 1.0)
    """
    quotients = math.dist([v / D for v in N], [v / other_D for v in other_N])
    return quotients, math.dist(N, other_N) + abs(D - other_D)


def bottleneck_side(free: int, grid: int, q: int) -> float:
    """``δ = 4 T0 G^{-T0/q}``, ``q = (n+1)h``: two choices of the free tokens have sums within ``δ`` in every entry (Lemma B).

    >>> bottleneck_side(4, 16, 2)
    0.0625
    """
    return float(4 * free * grid ** (-free / q))


def cubes(free: int, grid: int, q: int) -> int:
    """How many cubes of side ``δ`` cover ``[-T0, T0]^q``: fewer than the ``G^{T0}`` choices, so two choices share one.

    >>> cubes(4, 16, 2) < 16**4
    True
    """
    count: int = math.ceil(2 * free / bottleneck_side(free, grid, q) - 1e-9) ** q
    return count


def state_distance(free: int, grid: int, h: int, n: int) -> float:
    """``A = E √h (√n + 1) δ``: how far apart two colliding states are at most, after the output matrix.

    >>> state_distance(4, 16, 1, 1)
    0.125
    """
    return h * n * math.sqrt(h) * (math.sqrt(n) + 1) * bottleneck_side(free, grid, (n + 1) * h)


def _price(eps: float, free: int, grid: int, h: int, n: int) -> float:
    """``ε / (A √E)``, or 0 where the grid has fewer than two points and the proof says nothing."""
    return eps / (state_distance(free, grid, h, n) * math.sqrt(h * n)) if grid >= 2 and free >= 1 else 0.0


# ---------------------------------------------------------------- Theorem 1


def one_layer_exponent(T: int, h: int, n: int) -> Fraction:
    """``k(T) = (T - h - 1) / ((n+1)h) - 1``: one layer needs ``c ε^{-k(T)}`` units for the smallest inner product.

    >>> one_layer_exponent(10, 1, 2)
    Fraction(5, 3)
    """
    return Fraction(T - h - 1, (n + 1) * h) - 1


def one_layer_grid(eps: float, T: int) -> int:
    """``G = ⌊w² / (6ε)⌋``, ``w`` the half-width of `Arcs`: the candidates on each of the ``T - 1`` arcs.

    >>> one_layer_grid(1e-6, 3)
    1028
    """
    return math.floor(Arcs(max(1, T - 1), 2).half_width ** 2 / (6 * eps))


def one_layer_units(eps: float, T: int, h: int, n: int) -> float:
    """The lower bound of Theorem 1 with its constant: ``ε / (A √E)``, 0 while the grid is too coarse to say anything.

    >>> one_layer_units(1e-2, 8, 1, 1), one_layer_units(1e-12, 8, 1, 1) > 1e6
    (0.0, True)
    """
    return _price(eps, T - h - 1, one_layer_grid(eps, T), h, n)


def two_layer_units(eps: float | Fraction, d: int) -> int:
    """``4 d ⌈√(3d/(8ε))⌉``: the units of the two-layer transformer, whatever ``T``.

    >>> two_layer_units(Fraction(1, 100), 2)
    72
    """
    return 4 * d * pieces_needed(d, Fraction(eps))


# ---------------------------------------------------------------- Theorem 2


def retrieval_exponent(k: int, T: int, n: int) -> Fraction:
    """``max(T - k, k - 1)/(n+1) - 1``: one head needs ``c ε^{-this}`` units for the ``k``-th largest, ``2 ≤ k ≤ T - 1``.

    >>> retrieval_exponent(2, 8, 1)
    Fraction(2, 1)
    """
    if not 2 <= k <= T - 1:
        raise BoundError(f"k: expected 2 ≤ k ≤ {T - 1}, got {k}; the extremes cost a constant")
    return Fraction(max(T - k, k - 1), n + 1) - 1


def retrieval_grid(eps: float, free: int) -> int:
    """``G = ⌊1 / (6 T0 ε)⌋``: the points of each of ``T0`` blocks of a region of length ``1/2``, ``3ε`` apart.

    >>> retrieval_grid(1e-3, 4)
    41
    """
    return math.floor(1 / (6 * free * eps) + 1e-9)


def retrieval_units(eps: float, k: int, T: int, n: int) -> float:
    """The lower bound of Theorem 2 with its constant; 0 while the grid is too coarse to say anything.

    >>> retrieval_units(1e-9, 2, 8, 1) > 1e6
    True
    """
    if not 2 <= k <= T - 1:
        raise BoundError(f"k: expected 2 ≤ k ≤ {T - 1}, got {k}; the extremes cost a constant")
    return max(_price(eps, free, retrieval_grid(eps, free), 1, n) for free in (T - k, k - 1))


# ---------------------------------------------------------------- Theorem 3


def decoding_exponent(m: int, E: int) -> Fraction:
    """``m/E - 1``: the price of ``m`` numbers from ``E`` is of the exact order ``ε^{-this}`` in units with free weights.

    >>> decoding_exponent(3, 2)
    Fraction(1, 2)
    """
    return Fraction(m, E) - 1


def decoding_units_bounded(eps: float, m: int, E: int) -> float:
    """``ε / (4 √E (3ε)^{m/E})``: units needed when all weights are at most 1 and codes lie in the unit ball; 0 for ``ε > 1/3``, where nothing is claimed.

    >>> round(decoding_units_bounded(1e-3, 2, 1), 3)
    27.778
    """
    return float(eps / (4 * math.sqrt(E) * (3 * eps) ** (m / E))) if 3 * eps <= 1 else 0.0


def decoding_units_free(eps: float, m: int, E: int) -> float:
    """``(8√m)^{-m/E} ε^{1 - m/E} - 1``: ReLU units needed whatever the weights and the codes.

    >>> decoding_units_free(1e-6, 2, 1) > 7000
    True
    """
    return float((8 * math.sqrt(m)) ** (-m / E) * eps ** (1 - m / E) - 1)


def decoding_units_line(eps: float, m: int) -> float:
    """``(ℓ/m)²/2`` with ``ℓ = 2ε((4ε)^{-m} - 1)``: ReLU units needed for ``E = 1``, weights and codes at most 1.

    >>> decoding_units_line(1e-3, 2) > 1900
    True
    """
    length = 2 * eps * ((4 * eps) ** -m - 1)
    # With a variation of at most 1 there may be a single lap, and nothing is claimed.
    return (length / m) ** 2 / 2 if length / m > 1 else 0.0


def decoding_units_built(eps: float | Fraction, m: int, E: int) -> int:
    """The units of the decoders built here: snake where ``E`` divides ``m``, digits elsewhere.

    >>> decoding_units_built(Fraction(1, 8), 2, 1), decoding_units_built(Fraction(1, 8), 3, 2)
    (7, 6)
    """
    level = Fraction(eps)
    if m % E == 0:
        return int(E * (2 * smallest_base(level, 1) ** (m // E - 1) - 1))
    return int(E * (2 * smallest_base(level, E) ** (m - E) - 1))


# ---------------------------------------------------------------- ours and the source's, as symbols


@final
@dataclass(frozen=True, slots=True)
class Law:
    """One bound on the number of units as a power of ``1/ε``: ours and the source's exponents.

    ``ours`` and ``source`` are functions of the sizes in ``symbols``; they take numbers or sympy symbols.  ``source`` is `None`
    where the source names no exponent.
    """

    name: str
    symbols: tuple[str, ...]
    ours: Callable[..., Any]
    source: Callable[..., Any] | None
    remark: str


LAWS: Final[tuple[Law, ...]] = (
    Law(
        "one layer, smallest inner product, lower bound",
        ("T", "h", "n"),
        lambda T, h, n: (T - h - 1) / ((n + 1) * h) - 1,
        None,
        "the source states an exponent k(T) that grows linearly in T",
    ),
    Law(
        "two layers, smallest inner product, upper bound",
        (),
        lambda: Fraction(1, 2),
        lambda: 1,
        "our mesh for squares uses that interpolation of a parabola errs by the square of the mesh",
    ),
    Law(
        "one head, k-th largest, lower bound",
        ("T", "k", "n"),
        lambda T, k, n: (T - k) / (n + 1) - 1,
        lambda T, k, n: (T - k - 1) / (n + 1),
        "the slope in T is the same, 1/(n+1); ours is smaller by n/(n+1); by symmetry k - 1 may replace T - k",
    ),
    Law(
        "decoding, lower and upper bound",
        ("m", "E"),
        lambda m, E: m / E - 1,
        lambda m, E: m / E - 1,
        "the source's cost law; tight in units with free weights for every E < m",
    ),
)


def symbolic(law: Law) -> tuple[Any, Any]:
    """Both exponents of a law as sympy expressions, the source's `None` where it names none (needs sympy).

    >>> ours, source = symbolic(LAWS[2])
    >>> import sympy
    >>> sympy.simplify(source - ours)
    n/(n + 1)
    """
    import sympy

    symbols = sympy.symbols(" ".join(law.symbols), positive=True) if law.symbols else ()
    chosen = symbols if isinstance(symbols, tuple) else (symbols,)
    return sympy.sympify(law.ours(*chosen)), law.source and sympy.sympify(law.source(*chosen))
