"""Two layers of one head each for ``F(X) = min_{s,t} <x(s), x(t)>``: explicit weights, certified errors, an adversary.

**Theorem.**  Tokens in the unit ball of ``R^d``.  For ``0 < ε ≤ 1`` the transformer built here has ``4 d K`` ReLU units with
``K = ⌈√(3d / (8ε))⌉``, that is ``√6 d^{3/2} ε^{-1/2}`` up to rounding, all entries of its matrices and biases are at most 1,
and it errs by at most ``ε`` on all sequences of ``T`` tokens.  Only its inverse temperature ``β`` depends on ``T``.

A state has ``E = 2d + 3`` coordinates: ``x`` (``d``), ``x̄`` (``d``), ``m``, a flag that is 1 on the classification token
alone, and the output.  Layer 1: every token asks for the smallest ``<x(s), x(t)>`` and receives the softmax mean ``x̄(s)``; by
linearity ``<x(s), x̄(s)>`` is the softmax mean of the inner products, at most ``g`` above the smallest.  The feed-forward part
computes it by squares, with error at most ``f``.  Layer 2: the classification token asks for the smallest and gets it with
another gap of at most ``g``.  The sum is off by ``-f`` to ``f + 2g``; an output bias ``-g`` centres that: ``±(f + g) = ±ε``.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, Literal, final

from ..evaluate import apply_feed_forward
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
from ..layers import FeedForward
from ..sequences import read_tokens
from .one_layer import FLOATS, OneLayer
from .softmax_bounds import cold_enough

if TYPE_CHECKING:
    import numpy as np

Rows = tuple[tuple[Fraction, ...], ...]
_ONE: Final = Fraction(1)


class DepthSeparationError(ValueError):
    """A size, an error level or an input is out of range; the message names it."""


# ---------------------------------------------------------------- weights


@final
@dataclass(frozen=True, slots=True)
class MaskedHead:
    """One attention head; the classification token asks but is never asked.

    ``z(s) ↦ z(s) + O Σ_t π_st V z(t)`` with ``π_st ∝ exp(β <Q z(s), K z(t)>)``, the sum over the ``T`` tokens only.

    Shapes: ``query``, ``key`` are ``(n, E)``, ``value`` is ``(k, E)``, ``output`` is ``(E, k)``.
    """

    beta: Fraction
    query: Rows
    key: Rows
    value: Rows
    output: Rows

    @property
    def nonzero(self) -> int:
        """The non-zero entries of the four matrices, and the inverse temperature."""
        return 1 + sum(1 for M in (self.query, self.key, self.value, self.output) for row in M for v in row if v)

    @property
    def largest_entry(self) -> Fraction:
        """The largest entry of the four matrices in absolute value."""
        return max(abs(v) for M in (self.query, self.key, self.value, self.output) for row in M for v in row)


@final
@dataclass(frozen=True, slots=True)
class SmallestProduct:
    """A two-layer transformer for ``min_{s,t} <x(s), x(t)>``; build it with `smallest_product`.

    Shapes: acts on ``(T, d)``; answers one number.

    Exactness: the weights are exact rationals.  `forward` over `FLOAT` is measured, over `balls` enclosed.

    Cost: ``O(T² d + T d K)`` operations.
    """

    d: int
    T: int
    eps: Fraction
    pieces: int
    first: MaskedHead
    feed_forward: FeedForward
    second: MaskedHead
    bias: Fraction

    @property
    def width(self) -> int:
        """``E = 2d + 3``."""
        return 2 * self.d + 3

    @property
    def units(self) -> int:
        """The number of ReLU units, ``4 d K``."""
        return self.feed_forward.width

    @property
    def beta(self) -> Fraction:
        """The inverse temperature, the same in both layers."""
        return self.first.beta

    @property
    def feed_forward_error(self) -> Fraction:
        """``f = d / (4 K²)``: how far the feed-forward product can be from ``<x, x̄>``."""
        return Fraction(self.d, 4 * self.pieces**2)

    @property
    def softmax_gap(self) -> Fraction:
        """``g = ε - f``: how far a softmax mean can be above the smallest number, at this ``β``."""
        return self.eps - self.feed_forward_error

    @property
    def largest_entry(self) -> Fraction:
        """The largest entry of all matrices and biases; the inverse temperature is not an entry."""
        ff = self.feed_forward
        feed_forward = (abs(v) for row in (*ff.U, ff.b, *ff.W) for v in row)
        return max(self.first.largest_entry, self.second.largest_entry, abs(self.bias), *feed_forward)

    @property
    def parameters(self) -> int:
        """Non-zero numbers: matrices, biases, two inverse temperatures, the flag, the read-out and its bias."""
        ff = self.feed_forward
        inner = sum(1 for row in (*ff.U, ff.b, *ff.W) for v in row if v)
        return self.first.nonzero + inner + self.second.nonzero + 3

    def forward(self, X: Any, field: Field = FLOAT) -> Any:
        """The answer for the tokens ``X`` as a number of the field.

        Shapes: ``X`` is ``(T, d)``.

        Raises: `DepthSeparationError` for another shape or a token outside the unit ball.
        """
        d, E = self.d, self.width
        rows = self.read(X)
        zero = rational(0)
        tokens = field.matrix(rational_matrix([row + [zero] * (E - d) for row in rows]))
        asking = field.matrix(rational_matrix([[zero] * (E - 2) + [rational(1), zero]]))
        average = _attend(self.first, tokens, asking, field)
        tokens = field.add(tokens, _attend(self.first, tokens, tokens, field))
        asking = field.add(asking, average)
        tokens = apply_feed_forward(self.feed_forward, tokens, field)
        asking = apply_feed_forward(self.feed_forward, asking, field)
        # The answer is read at the classification token: in the last layer only its row matters.
        asking = field.add(asking, _attend(self.second, tokens, asking, field))
        read = field.matrix(rational_matrix([[0]] * (E - 1) + [[1]]))
        answer = field.add_to_rows(field.product(asking, read), field.matrix(rational_matrix([[self.bias]])))
        return field.rows(answer)[0][0]

    def read(self, X: Any) -> list[list[Rational]]:
        """The tokens as rationals, checked: ``T`` of them, in the unit ball of ``R^d``."""
        rows = [list(row) for row in read_tokens(X, "X")]
        if len(rows) != self.T or len(rows[0]) != self.d:
            raise DepthSeparationError(
                f"X: expected {self.T} tokens in R^{self.d}, got {len(rows)} in R^{len(rows[0])}"
            )
        for t, row in enumerate(rows):
            if not sum((v * v for v in row), rational(0)) <= 1:
                raise DepthSeparationError(f"X[{t}]: expected a token in the unit ball, got norm above 1")
        return rows


def _attend(head: MaskedHead, tokens: Any, asking: Any, field: Field) -> Any:
    """``O Σ_t π_st V z(t)`` for every row ``s`` of ``asking``; keys and values come from ``tokens`` only."""

    def applied(M: Rows, states: Any) -> Any:
        return field.product(states, field.transpose(field.matrix(rational_matrix(M))))

    averaged = field.softmax(
        applied(head.value, tokens), applied(head.query, asking), applied(head.key, tokens), rational(1 / head.beta)
    )
    return applied(head.output, averaged)


def pieces_needed(d: int, eps: Fraction) -> int:
    """``K = ⌈√(3d / (8ε))⌉``: the smallest ``K`` with ``d / (4K²) ≤ 2ε/3``, so that products err by at most two thirds of ``ε``.

    >>> [pieces_needed(2, Fraction(1, 10**k)) for k in (1, 2, 3)]
    [3, 9, 28]
    """
    least = Fraction(3 * d) / (8 * eps)
    return max(1, math.isqrt(math.ceil(least) - 1) + 1)


def smallest_product(T: int, d: int, eps: Any) -> SmallestProduct:
    """The two-layer transformer that answers ``min_{s,t} <x(s), x(t)>`` within ``ε`` for all ``T`` tokens of the unit ball.

    Statement: ``|answer - F(X)| ≤ ε``; ``4 d K`` units with ``K`` from `pieces_needed`; entries at most 1.

    Shapes: ``T`` tokens in ``R^d``.

    Exactness: exact rational weights; ``β`` satisfies ``W((T-1)/e)/β ≤ ε - f``, certified by `cold_enough`.

    Cost: ``O(d K)`` weights, whatever ``T``.

    Raises: `DepthSeparationError` for ``T < 1``, ``d < 1`` or ``ε`` outside ``(0, 1]``.

    Example:

    >>> model = smallest_product(T=8, d=2, eps=Fraction(1, 10))
    >>> model.units, model.parameters, float(model.largest_entry)
    (24, 105, 1.0)
    >>> X = [[0.5, 0.5]] * 7 + [[-0.5, 0.25]]
    >>> abs(model.forward(X) - (-0.125)) <= 0.1
    True
    """
    if T < 1 or d < 1:
        raise DepthSeparationError(f"expected T ≥ 1 and d ≥ 1, got T = {T}, d = {d}")
    level = fraction(rational(eps))
    if not 0 < level <= 1:
        raise DepthSeparationError(f"eps: expected a number in (0, 1], got {eps}")
    K = pieces_needed(d, level)
    gap = level - Fraction(d, 4 * K * K)
    beta = fraction(cold_enough(T, rational(gap)))
    E, m, flag, out = 2 * d + 3, 2 * d, 2 * d + 1, 2 * d + 2
    own = tuple(_unit(E, i) for i in range(d))
    opposite = tuple(tuple(-v for v in row) for row in own)
    fresh = tuple(tuple(_ONE if row == d + i else Fraction(0) for i in range(d)) for row in range(E))
    first = MaskedHead(beta, own, opposite, own, fresh)
    second = MaskedHead(
        beta,
        (_unit(E, flag),),
        (tuple(-v for v in _unit(E, m)),),
        (_unit(E, m),),
        tuple((_ONE if row == out else Fraction(0),) for row in range(E)),
    )
    return SmallestProduct(d, T, level, K, first, _products(d, K), second, -gap)


def _unit(E: int, i: int) -> tuple[Fraction, ...]:
    return tuple(_ONE if k == i else Fraction(0) for k in range(E))


def _products(d: int, K: int) -> FeedForward:
    """Writes ``Σ_i (P(x_i + x̄_i) - P(x_i - x̄_i)) / 4`` to the coordinate ``m``, ``P`` the interpolant of the square with mesh ``2/K``.

    ``P(z)/4 = (r/2) Σ_± σ(±z/2) + r Σ_± Σ_{0<k<K} σ(±z/2 - kr/2)`` for ``|z| ≤ 2`` and ``r = 2/K``: no entry exceeds 1.
    """
    E, half, r = 2 * d + 3, Fraction(1, 2), Fraction(2, K)
    U: list[list[Fraction]] = []
    b: list[Fraction] = []
    w: list[Fraction] = []
    for i in range(d):
        for sign in (1, -1):
            for side in (1, -1):
                for k in range(K):
                    row = [Fraction(0)] * E
                    row[i], row[d + i] = side * half, side * sign * half
                    U.append(row)
                    b.append(-k * r / 2)
                    w.append(sign * (r if k else r / 2))
    W = [w if row == 2 * d else [Fraction(0)] * len(w) for row in range(E)]
    return FeedForward(1, U, b, W)


# ---------------------------------------------------------------- the inequalities of the proof


def interpolated_square(z: Fraction, K: int) -> Fraction:
    """``P(z)``: the piecewise-linear interpolant of ``z²`` at the multiples of ``2/K``, as the units compute it (``|z| ≤ 2``).

    >>> interpolated_square(Fraction(1, 2), 2), interpolated_square(Fraction(1), 2)
    (Fraction(1, 2), Fraction(1, 1))
    """
    r = Fraction(2, K)
    zero = Fraction(0)
    return sum(
        (r * (2 if k else 1) * (max(z - k * r, zero) + max(-z - k * r, zero)) for k in range(K)),
        start=zero,
    )


def square_excess(z: Fraction, K: int) -> tuple[Fraction, Fraction]:
    """``(P(z) - z², r²/4)``: the proof uses ``0 ≤ P(z) - z² ≤ r²/4`` for ``|z| ≤ 2``, ``r = 2/K``.

    >>> square_excess(Fraction(1, 2), 2)
    (Fraction(1, 4), Fraction(1, 4))
    """
    return interpolated_square(z, K) - z * z, Fraction(1, K * K)


def product_error(x: Sequence[Fraction], y: Sequence[Fraction], K: int) -> tuple[Fraction, Fraction]:
    """``(Σ_i (P(x_i + y_i) - P(x_i - y_i))/4 - <x, y>, d r²/16)``: the first is at most the second in absolute value.

    >>> product_error([Fraction(1, 2)], [Fraction(-1, 2)], 1)
    (Fraction(-1, 4), Fraction(1, 4))
    """
    computed = sum(
        (interpolated_square(a + b, K) - interpolated_square(a - b, K) for a, b in zip(x, y, strict=True)), Fraction(0)
    )
    exact = sum((a * b for a, b in zip(x, y, strict=True)), Fraction(0))
    return computed / 4 - exact, Fraction(len(x), 4 * K * K)


def probe_separation(width: float, a: float, b: float) -> tuple[float, float]:
    """``(|cos a - cos b|, sin(w) |a - b|)``: the first is at least the second for ``a, b ∈ [w, 3w]``, ``3w ≤ π/2``.

    The smallest inner product seen by the probe is ``-cos`` of the angle between its axis and a token of the arc it probes.

    >>> left, right = probe_separation(0.1, 0.15, 0.25)
    >>> left >= right
    True
    """
    return abs(math.cos(a) - math.cos(b)), math.sin(width) * abs(a - b)


@final
@dataclass(frozen=True, slots=True)
class Arcs:
    """The tokens of the lower bound: ``count`` arcs of half-width ``w``, centres ``8w`` apart, spanning at most 45°.

    ``grid`` candidate tokens in each arc, at equal angles.
    """

    count: int
    grid: int

    @property
    def half_width(self) -> float:
        """``w = π / (4 (8 count - 6))``: the arcs span ``8w (count - 1) + 2w = 45°``."""
        return math.pi / (4 * (8 * self.count - 6))

    def angle(self, arc: int, point: int) -> float:
        """The angle of a candidate token."""
        w = self.half_width
        return 8 * w * arc + w + (2 * w * point / (self.grid - 1) - w)

    def token(self, arc: int, point: int) -> tuple[float, float]:
        """A candidate token on the unit circle."""
        return math.cos(self.angle(arc, point)), math.sin(self.angle(arc, point))

    def probe(self, arc: int) -> tuple[float, float]:
        """``-(cos, sin)`` of the arc's centre plus ``2w``: among the tokens of all arcs it sees those of this arc as smallest."""
        axis = 8 * self.half_width * arc + 3 * self.half_width
        return -math.cos(axis), -math.sin(axis)

    @property
    def separation(self) -> float:
        """``sin(w)`` times the spacing: how much the target changes at least when the probed token changes."""
        return math.sin(self.half_width) * 2 * self.half_width / (self.grid - 1)


# ---------------------------------------------------------------- the adversary of the lower bound


@final
@dataclass(frozen=True, slots=True)
class Confusion:
    """Two inputs whose states a one-layer model can hardly tell apart, and whose targets differ.

    ``distance``: of the two states; ``bound``: what Lemma B promises for it; ``gap``: between the two targets.
    """

    first: tuple[tuple[float, ...], ...]
    second: tuple[tuple[float, ...], ...]
    distance: float
    bound: float
    gap: float

    def units(self, eps: float, E: int) -> float:
        """``(gap - 2ε) / (E √E · distance)``: the hidden units that an ``ε``-approximation with this encoder needs.

        Output matrix and read-out have entries at most 1, units are 1-Lipschitz (Lemma L).
        """
        return max(0.0, self.gap - 2 * eps) / (E * math.sqrt(E) * self.distance) if self.distance else math.inf


def confuse(model: OneLayer, T: int, grid: int) -> Confusion:
    """The proof of the lower bound, run against a given one-layer model.

    Statement: anchors, arcs without anchors, a pigeonhole for the sums, and the probe.  The states differ by at most
    ``√h (√n + 1) δ`` (times the largest norm of a value, where that exceeds 1), the targets by at least `Arcs.separation`.

    Exactness: measured (float64).

    Cost: ``grid^(T - h - 1)`` sums, sorted into cubes that are halved while two of them share one.

    Raises: `DepthSeparationError` for another token dimension, ``T < h + 2``, ``grid < 2`` or too many choices.

    Example:

    >>> from .one_layer import random_model
    >>> found = confuse(random_model(0, 1, 1, length=6, token_dimension=2), T=6, grid=6)
    >>> found.distance <= found.bound, found.gap >= Arcs(5, 6).separation - 1e-12
    (True, True)
    """
    h, n = model.heads, model.dimension
    free = T - h - 1
    if model.token_dimension != 2:
        raise DepthSeparationError(f"model: expected tokens of dimension 2, got {model.token_dimension}")
    if free < 1 or grid < 2 or grid**free > 1 << 20:
        raise DepthSeparationError(f"expected T ≥ h + 2, grid ≥ 2 and grid^(T-h-1) ≤ 2^20, got T = {T}, grid = {grid}")
    arcs = Arcs(T - 1, grid)
    candidates = [(arc, point) for arc in range(T - 1) for point in range(grid)]
    seen = {
        (arc, point, position): model.heads_of(arcs.token(arc, point), position, FLOATS)
        for arc, point in candidates
        for position in range(T - 1)
    }
    largest = max(1.0, *(math.hypot(*value) for heads in seen.values() for _, value in heads))
    unused = list(range(T - 1))
    anchors: list[tuple[int, int, int]] = []
    for i in range(h):
        at = max(((*c, t) for c in candidates for t in unused), key=lambda key: seen[key][i][0])
        anchors.append(at)
        unused.remove(at[2])
    occupied = {arc for arc, _, _ in anchors}
    own = [arc for arc in range(T - 1) if arc not in occupied][:free]
    side = 4 * free * grid ** (-free / ((n + 1) * h))

    def terms(arc: int, point: int, position: int) -> list[float]:
        found: list[float] = []
        for i, (score, value) in enumerate(seen[arc, point, position]):
            weight = math.exp(score - seen[anchors[i]][i][0])
            found += [weight * v / largest for v in value] + [weight]
        return found

    parts = [[terms(arc, k, t) for k in range(grid)] for arc, t in zip(own, unused, strict=True)]
    sums = [
        (
            choice,
            [sum(column) for column in zip(*(part[k] for part, k in zip(parts, choice, strict=True)), strict=True)],
        )
        for choice in itertools.product(range(grid), repeat=free)
    ]
    choice, other = sums[0][0], sums[-1][0]
    smaller: float = side
    while True:
        # The first time the pigeonhole promises a pair; then the cubes are halved for as long as two choices share one.
        cubes: dict[tuple[int, ...], tuple[int, ...]] = {}
        for now, values in sums:
            earlier = cubes.setdefault(tuple(math.floor((v + free) / smaller) for v in values), now)
            if earlier is not now:
                choice, other = now, earlier
                break
        else:
            break
        if smaller < 1e-12:
            break
        smaller /= 2
    s = next(s for s in range(free) if choice[s] != other[s])

    def sequence(chosen: tuple[int, ...]) -> tuple[tuple[float, ...], ...]:
        tokens = {t: arcs.token(arc, k) for arc, t, k in zip(own, unused, chosen, strict=True)}
        tokens |= {t: arcs.token(arc, k) for arc, k, t in anchors}
        return (*(tokens[t] for t in range(T - 1)), arcs.probe(own[s]))

    X, Y = sequence(other), sequence(choice)
    probe = model.heads_of(X[-1], T - 1, FLOATS)
    bound = max(largest, *(math.hypot(*value) for _, value in probe)) * math.sqrt(h) * (math.sqrt(n) + 1) * side
    gap = abs(float(target(X) - target(Y)))
    return Confusion(X, Y, math.dist(model.state(X), model.state(Y)), bound, gap)


# ---------------------------------------------------------------- errors


def target(X: Any) -> Fraction:
    """``F(X) = min_{s,t} <x(s), x(t)>``, ``s = t`` included, exact.

    >>> target([[1, 0], [-0.5, 0.5]])
    Fraction(-1, 2)
    """
    M = rational_matrix(read_tokens(X, "X"))
    return fraction(min((M * M.transpose()).entries()))


@final
@dataclass(frozen=True, slots=True)
class CertifiedError:
    """``low ≤ answer - F(X) ≤ high``, proved in balls with exact weights and exact tokens."""

    low: Fraction
    high: Fraction

    @property
    def at_most(self) -> Fraction:
        """A bound for the absolute error."""
        return max(abs(self.low), abs(self.high))

    @property
    def at_least(self) -> Fraction:
        """What the absolute error certainly reaches."""
        return max(self.low, -self.high, Fraction(0))


def certified_error(model: SmallestProduct, X: Any, bits: int = 96) -> CertifiedError:
    """The error of the model on one input, enclosed.

    Exactness: certified.

    Cost: ``T²`` ball exponentials.

    Raises: `DepthSeparationError` for an input of another shape.

    Example:

    >>> model = smallest_product(4, 2, Fraction(1, 10))
    >>> error = certified_error(model, [[0.5, 0.5], [0.25, -0.5], [0, 1], [-0.5, 0]])
    >>> error.at_most <= Fraction(1, 10)
    True
    """
    answer = model.forward(X, balls(bits))
    with working_precision(bits):
        low, high = rational_bounds(answer)
    exact = target(X)
    return CertifiedError(fraction(low) - exact, fraction(high) - exact)


def worst_input(model: SmallestProduct) -> list[list[Fraction]]:
    """Tokens ``x, -x, x, -x, …`` on which the error is ``-ε`` up to ``3 T e^{-2β|x|²}``: the theorem's bound is attained.

    All coordinates of ``x`` are equal and ``2 x_i`` is the middle of a piece of ``P``.  The products of opposite tokens are
    all equal, so that both softmax means are exact, the squares err by all of ``f``, and the centring by ``g`` is in vain.

    >>> model = smallest_product(8, 2, Fraction(1, 10))
    >>> float(certified_error(model, worst_input(model)).at_least) > 0.099
    True
    """
    K, d = model.pieces, model.d
    j = 0
    while d * Fraction(2 * j + 3, 2 * K) ** 2 <= 1:
        j += 1
    value = Fraction(2 * j + 1, 2 * K)
    return [[value if t % 2 == 0 else -value] * d for t in range(model.T)]


Start = Literal["sphere", "ball", "cluster", "opposite", "spread"]
STARTS: Final[tuple[Start, ...]] = ("sphere", "ball", "cluster", "opposite", "spread")


@final
@dataclass(frozen=True, slots=True)
class SearchResult:
    """What a search found, in float64: the largest random error, the largest after ascent, and where."""

    random: float
    ascent: float
    worst: tuple[tuple[float, ...], ...]


def search(model: SmallestProduct, seed: int = 0, starts: int = 20, steps: int = 120) -> SearchResult:
    """Looks for the largest error: random inputs of five kinds, then gradient ascent on the error from each of them.

    Exactness: measured (float64); certify the found input with `certified_error`.

    Cost: ``starts · steps`` passes with gradient, ``O(T²)`` each; NumPy is needed.

    Example:

    >>> found = search(smallest_product(4, 2, Fraction(1, 10)), starts=5, steps=20)
    >>> found.random <= found.ascent <= 0.1
    True
    """
    import numpy as np

    rng = np.random.default_rng(seed)
    X = _project(np.stack([_start(STARTS[k % len(STARTS)], model, rng) for k in range(starts)]))
    values, _ = errors_and_gradients(model, X)
    best = np.abs(values)
    at = X.copy()
    first = float(best.max())
    beta, K = float(model.beta), model.pieces
    # Two scales matter: the softmax's 1/β and the mesh 2/K of the squares.
    for large in (0.5 / K, 0.3 / math.sqrt(beta), 1 / beta):
        X = at.copy()
        for step in range(steps):
            values, gradients = errors_and_gradients(model, X)
            better = np.abs(values) > best
            best = np.where(better, np.abs(values), best)
            at[better] = X[better]
            direction = gradients * np.sign(values)[:, None, None]
            size = np.abs(direction).max(axis=(1, 2), keepdims=True) + 1e-300
            X = _project(X + large * (1 - step / steps) * direction / size)
    k = int(best.argmax())
    return SearchResult(first, float(best[k]), tuple(tuple(map(float, row)) for row in at[k]))


def _start(kind: Start, model: SmallestProduct, rng: np.random.Generator) -> np.ndarray:
    import numpy as np

    T, d = model.T, model.d
    shape = rng.standard_normal((T, d))
    if kind == "sphere":
        return np.asarray(shape / np.linalg.norm(shape, axis=1, keepdims=True))
    if kind == "ball":
        return 0.5 * shape
    centre = rng.standard_normal((1, d))
    centre *= rng.random() / np.linalg.norm(centre)
    noise = rng.choice([0.0, 1 / float(model.beta), 0.05]) * shape
    if kind == "cluster":
        return np.asarray(centre + noise)
    if kind == "opposite":
        return np.asarray(centre * (-1.0) ** np.arange(T)[:, None] + noise)
    # One token at the smallest product with all others, which keep the worst distance of the softmax lemma.
    apart = np.full((T, 1), 1.0)
    apart[0] = -1.0
    return np.asarray(centre * apart + noise)


def _project(X: np.ndarray) -> np.ndarray:
    import numpy as np

    # A little inside, so that rounding does not leave the unit ball.
    norms = np.linalg.norm(X, axis=-1, keepdims=True)
    return np.asarray(X / np.maximum(1.0, norms * (1 + 1e-12)))


def errors_and_gradients(model: SmallestProduct, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """``answer - F`` for a batch ``(B, T, d)`` in float64, and its gradient in the tokens.

    The squares are evaluated as a chord of the parabola instead of by their ``4 d K`` units: the same function, faster.
    """
    import numpy as np

    beta, r, K = float(model.beta), 2 / model.pieces, model.pieces

    def square(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        left = np.minimum(np.floor(np.abs(z) / r), K - 1) * r
        slope = 2 * left + r
        return left * left + slope * (np.abs(z) - left), slope * np.sign(z)

    S = X @ X.transpose(0, 2, 1)
    weights = np.exp(-beta * (S - S.min(axis=2, keepdims=True)))
    pi = weights / weights.sum(axis=2, keepdims=True)
    means = pi @ X
    (plus, d_plus), (minus, d_minus) = square(X + means), square(X - means)
    m = (plus - minus).sum(axis=2) / 4
    weights = np.exp(-beta * (m - m.min(axis=1, keepdims=True)))
    rho = weights / weights.sum(axis=1, keepdims=True)
    answer = (rho * m).sum(axis=1)
    batch = np.arange(len(X))
    flat = S.reshape(len(X), -1)
    s, t = np.divmod(flat.argmin(axis=1), X.shape[1])
    values = answer + float(model.bias) - flat.min(axis=1)

    by_m = rho * (1 - beta * (m - answer[:, None]))
    by_mean = by_m[:, :, None] * (d_plus + d_minus) / 4
    gradient = by_m[:, :, None] * (d_plus - d_minus) / 4
    by_pi = by_mean @ X.transpose(0, 2, 1)
    by_S = -beta * pi * (by_pi - (pi * by_pi).sum(axis=2, keepdims=True))
    gradient = gradient + pi.transpose(0, 2, 1) @ by_mean + (by_S + by_S.transpose(0, 2, 1)) @ X
    gradient[batch, s] -= X[batch, t]
    gradient[batch, t] -= X[batch, s]
    return values, gradient


def random_tokens(T: int, d: int, seed: int) -> list[list[Fraction]]:
    """``T`` random tokens of the unit ball with short rational coordinates.

    >>> random_tokens(1, 2, 0)[0][0].denominator <= 1024
    True
    """
    rng = random.Random(seed)
    found: list[list[Fraction]] = []
    while len(found) < T:
        row = [Fraction(rng.randint(-1024, 1024), 1024) for _ in range(d)]
        shrink = 1 if sum(v * v for v in row) <= 1 else d
        found.append([v / shrink for v in row])
    return found
