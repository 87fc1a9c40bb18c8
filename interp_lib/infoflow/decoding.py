"""The price of decoding: ``m`` numbers of ``[0, 1]`` in a state of ``E < m`` numbers, recovered within ``ε`` by ReLU units.

**Theorem.**  A decoder with one hidden layer of ``p`` ReLU units, whatever its weights, needs ``p + 1 ≥ c(m) ε^{1 - m/E}``; the
codes built here need ``p = E (2 K^{μ-1} - 1)``, ``μ = m/E``, ``K = ⌈1/(2ε)⌉``, where ``E`` divides ``m``, and
``p = E (2 b^{m-E} - 1)``, ``b = ⌈(2ε)^{-1/E}⌉``, for every ``E < m``: the same power of ``ε``.

A decoder is a polygon for each code coordinate: one ReLU unit for each straight piece.  The first number of a polygon is
passed on as it is, along the straight pieces; the others are known up to a cell.

* *snake*: the cells are visited so that consecutive ones are neighbours, forwards and backwards in the first number;
* *raster*: the code ``2 Σ_j k_j K^{μ-j} + x_1`` is a sum over the numbers, so that one uniform attention layer computes it;
* *digits*: every polygon carries one raw number and one base-``b`` digit of each of the ``m - E`` others; ``E`` need not divide ``m``;
* *interleaved*: binary digits in turn, no number raw: one power worse, for comparison.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, Final, Literal, final

from ..evaluate import apply_attention
from ..fields import EXACT, fraction, rational, rational_matrix
from ..layers import ScaledLowRank, SelfAttention

Kind = Literal["snake", "raster", "digits", "interleaved"]
KINDS: Final[tuple[Kind, ...]] = ("snake", "raster", "digits", "interleaved")
Vector = tuple[Fraction, ...]
LARGEST: Final = 1 << 16
"""The most straight pieces a polygon is built with."""


class DecodingError(ValueError):
    """Sizes, an error level or numbers are out of range; the message names them."""


# ---------------------------------------------------------------- polygons and decoders


@final
@dataclass(frozen=True, slots=True)
class Polygon:
    """The piecewise-linear curve through ``points[k]`` at ``knots[k]``, from ``R`` to ``R^m``; constant to the left."""

    knots: Vector
    points: tuple[Vector, ...]

    def __call__(self, z: Fraction) -> Vector:
        """The point at ``z``, exact for a Fraction; beyond the last knot the last piece goes on."""
        if z <= self.knots[0] or len(self.knots) == 1:
            return self.points[0]
        k = min(bisect_right(self.knots, z), len(self.knots) - 1)
        a, b = self.knots[k - 1], self.knots[k]
        share = (z - a) / (b - a)
        return tuple(p + share * (q - p) for p, q in zip(self.points[k - 1], self.points[k], strict=True))

    @property
    def length(self) -> Fraction:
        """The length of the interval of codes."""
        return self.knots[-1] - self.knots[0]

    def slopes(self) -> list[Vector]:
        """The velocity on every straight piece."""
        found = []
        for (a, p), (b, q) in pairwise(zip(self.knots, self.points, strict=True)):
            found.append(tuple((y - x) / (b - a) for x, y in zip(p, q, strict=True)))
        return found

    def bends(self) -> Iterator[tuple[Fraction, Vector]]:
        """The knots where the velocity changes, the first one included, with the change: one ReLU unit each."""
        before: Vector = (Fraction(0),) * len(self.points[0])
        for knot, slope in zip(self.knots, self.slopes(), strict=False):
            if slope != before:
                yield knot, tuple(new - old for new, old in zip(slope, before, strict=True))
            before = slope


@final
@dataclass(frozen=True, slots=True)
class Unit:
    """``z ↦ w σ(z_e - knot)``: one hidden unit of a decoder."""

    coordinate: int
    knot: Fraction
    weight: Vector


@final
@dataclass(frozen=True, slots=True)
class Decoder:
    """``F̂(z) = Σ_e polygon_e(z_e)``, and the same as a network with one hidden layer.

    Shapes: from ``R^E`` to ``R^m``.

    Exactness: exact for Fractions.

    Cost: a unit per straight piece.
    """

    polygons: tuple[Polygon, ...]

    def __call__(self, code: Sequence[Fraction]) -> Vector:
        """The decoded numbers, through the polygons."""
        parts = [polygon(z) for polygon, z in zip(self.polygons, code, strict=True)]
        return tuple(sum(column, Fraction(0)) for column in zip(*parts, strict=True))

    def network(self) -> tuple[Vector, tuple[Unit, ...]]:
        """The output bias and the hidden units."""
        bias = tuple(sum(column, Fraction(0)) for column in zip(*(p.points[0] for p in self.polygons), strict=True))
        units = tuple(Unit(e, knot, w) for e, polygon in enumerate(self.polygons) for knot, w in polygon.bends())
        return bias, units

    def through_units(self, code: Sequence[Fraction]) -> Vector:
        """The decoded numbers, through the hidden units: equal to the call, and slower."""
        bias, units = self.network()
        total = list(bias)
        for unit in units:
            active = max(code[unit.coordinate] - unit.knot, Fraction(0))
            if active:
                total = [sofar + w * active for sofar, w in zip(total, unit.weight, strict=True)]
        return tuple(total)

    @property
    def units(self) -> int:
        """``p``: the number of hidden units, weights free."""
        return sum(1 for polygon in self.polygons for _ in polygon.bends())

    @property
    def turning(self) -> Fraction:
        """The total change of slope (largest coordinate) when every code coordinate is scaled to ``[0, 1]``."""
        return sum(
            (polygon.length * max(map(abs, w)) for polygon in self.polygons for _, w in polygon.bends()), Fraction(0)
        )

    @property
    def bounded_units(self) -> int:
        """The units needed when all weights are at most 1 and codes lie in ``[0, 1]``: a bend by ``a`` takes ``⌈a⌉`` copies."""
        return sum(
            math.ceil(polygon.length * max(map(abs, w))) for polygon in self.polygons for _, w in polygon.bends()
        )


# ---------------------------------------------------------------- codes


@final
@dataclass(frozen=True, slots=True)
class Code:
    """An encoder ``[0, 1]^m → R^E`` and its decoder; build it with `code`.

    Exactness: exact for Fractions.
    """

    kind: Kind
    m: int
    E: int
    base: int
    depth: int
    decoder: Decoder

    @property
    def error(self) -> Fraction:
        """The largest error over the cube: half a cell, or 0 for the numbers passed on raw."""
        return Fraction(1, 2 * self.base**self.depth)

    def encode(self, numbers: Sequence[Any]) -> Vector:
        """The code of ``m`` numbers."""
        x = _read(numbers, self.m)
        if self.kind in ("raster", "digits"):
            parts = [self.contribution(i, v) for i, v in enumerate(x)]
            return tuple(sum(column, Fraction(0)) for column in zip(*parts, strict=True))
        own = self.m // self.E
        place = _snake_place if self.kind == "snake" else _interleaved_place
        return tuple(place(x[e * own : (e + 1) * own], self.base, self.depth) for e in range(self.E))

    def contribution(self, i: int, value: Fraction) -> Vector:
        """What number ``i`` adds to the code, for the two codes that are sums (*raster*, *digits*)."""
        if self.kind == "raster":
            own = self.m // self.E
            e, j = divmod(i, own)
            added = value if j == 0 else Fraction(2 * cell(value, self.base) * self.base ** (own - 1 - j))
            return tuple(added if k == e else Fraction(0) for k in range(self.E))
        if self.kind == "digits":
            if i < self.E:
                return tuple(value if k == i else Fraction(0) for k in range(self.E))
            weight = 2 * self.base ** (self.m - 1 - i)
            return tuple(Fraction(weight * digit) for digit in _digits(value, self.base, self.E))
        raise DecodingError(f"kind: expected raster or digits, a code that is a sum, got {self.kind}")

    def recover(self, numbers: Sequence[Any]) -> Vector:
        """Encode and decode."""
        return self.decoder(self.encode(numbers))

    def worst_error(self, points: Sequence[Sequence[Any]]) -> Fraction:
        """The largest error over the given points, exact."""
        return max(
            abs(a - b) for point in points for a, b in zip(self.recover(point), _read(point, self.m), strict=True)
        )


def _read(numbers: Sequence[Any], m: int) -> list[Fraction]:
    read = [v if type(v) is Fraction else fraction(rational(v)) for v in numbers]
    if len(read) != m:
        raise DecodingError(f"numbers: expected {m}, got {len(read)}")
    for i, v in enumerate(read):
        if not 0 <= v <= 1:
            raise DecodingError(f"numbers[{i}]: expected a number in [0, 1], got {v}")
    return read


def cell(x: Fraction, K: int) -> int:
    """The number of the cell of ``[0, 1]`` that holds ``x``, of ``K`` equal ones; the last one is closed.

    >>> cell(Fraction(1, 2), 2), cell(Fraction(1), 2)
    (1, 1)
    """
    return min(math.floor(x * K), K - 1)


def _digits(x: Fraction, base: int, count: int) -> list[int]:
    """The first ``count`` digits of ``x`` in the given base, most significant first."""
    k = cell(x, base**count)
    return [k // base ** (count - 1 - e) % base for e in range(count)]


def snake_cell(index: int, K: int, count: int) -> tuple[int, ...]:
    """Cell number ``index`` of ``K^count`` along the snake: consecutive cells differ by one step in one coordinate.

    >>> [snake_cell(j, 2, 2) for j in range(4)]
    [(0, 0), (0, 1), (1, 1), (1, 0)]
    """
    found = []
    before = 0
    for j in range(count):
        before, digit = index // K ** (count - 1 - j) // K, index // K ** (count - 1 - j) % K
        found.append(digit if before % 2 == 0 else K - 1 - digit)
    return tuple(found)


def snake_index(cells: Sequence[int], K: int) -> int:
    """The number of a cell along the snake: the inverse of `snake_cell`.

    >>> snake_index((1, 1), 2)
    2
    """
    index = 0
    for k in cells:
        index = index * K + (k if index % 2 == 0 else K - 1 - k)
    return index


def _snake_place(x: Sequence[Fraction], K: int, _depth: int) -> Fraction:
    j = snake_index([cell(v, K) for v in x[1:]], K)
    return j * (1 + Fraction(1, K)) + (x[0] if j % 2 == 0 else 1 - x[0])


def _interleaved_place(x: Sequence[Fraction], base: int, depth: int) -> Fraction:
    rows = [_digits(v, base, depth) for v in x]
    index = 0
    for digits in zip(*rows, strict=True):
        for digit in digits:
            index = index * base + digit
    return Fraction(index)


def _snake(m: int, E: int, K: int) -> Decoder:
    own = m // E
    knots: list[Fraction] = []
    points: list[Vector] = []
    for j in range(K ** (own - 1)):
        rest = tuple(Fraction(2 * k + 1, 2 * K) for k in snake_cell(j, K, own - 1))
        start = j * (1 + Fraction(1, K))
        for share in (0, 1):
            knots.append(start + share)
            points.append((Fraction(share if j % 2 == 0 else 1 - share), *rest))
    return _blocks(m, E, knots, points)


def _raster(m: int, E: int, K: int) -> Decoder:
    own = m // E
    knots: list[Fraction] = []
    points: list[Vector] = []
    for j in range(K ** (own - 1)):
        rest = tuple(Fraction(2 * (j // K ** (own - 1 - i) % K) + 1, 2 * K) for i in range(1, own))
        knots += [Fraction(2 * j), Fraction(2 * j + 1)]
        points += [(Fraction(0), *rest), (Fraction(1), *rest)]
    return _blocks(m, E, knots, points)


def _interleaved(m: int, E: int, base: int, depth: int) -> Decoder:
    own = m // E
    knots, points = [], []
    for index in range(base ** (own * depth)):
        totals = [0] * own
        for place in range(own * depth):
            digit = index // base ** (own * depth - 1 - place) % base
            totals[place % own] = totals[place % own] * base + digit
        knots.append(Fraction(index))
        points.append(tuple(Fraction(2 * k + 1, 2 * base**depth) for k in totals))
    return _blocks(m, E, knots, points)


def _blocks(m: int, E: int, knots: Sequence[Fraction], points: Sequence[Vector]) -> Decoder:
    """The same polygon for every block of ``m / E`` numbers."""
    own = m // E
    zero = Fraction(0)
    polygons = []
    for e in range(E):
        before, after = (zero,) * (e * own), (zero,) * (m - (e + 1) * own)
        polygons.append(Polygon(tuple(knots), tuple((*before, *p, *after) for p in points)))
    return Decoder(tuple(polygons))


def _split(m: int, E: int, b: int) -> Decoder:
    rest = m - E
    zero = Fraction(0)
    polygons = []
    for e in range(E):
        # The centre of the cell is added once, by the first polygon.
        centre = Fraction(1, 2 * b**E) if e == 0 else zero
        knots: list[Fraction] = []
        points: list[Vector] = []
        for j in range(b**rest):
            others = tuple(Fraction(j // b ** (rest - 1 - i) % b, b ** (e + 1)) + centre for i in range(rest))
            for share in (0, 1):
                knots.append(Fraction(2 * j + share))
                points.append((*(Fraction(share) if k == e else zero for k in range(E)), *others))
        polygons.append(Polygon(tuple(knots), tuple(points)))
    return Decoder(tuple(polygons))


def smallest_base(eps: Fraction, power: int) -> int:
    """The smallest ``b ≥ 1`` with ``b^power ≥ 1/(2ε)``, in integers.

    >>> smallest_base(Fraction(1, 32), 2), smallest_base(Fraction(1, 34), 2)
    (4, 5)
    """
    b = max(1, int(float(1 / (2 * eps)) ** (1 / power)))
    while b > 1 and 2 * eps * (b - 1) ** power >= 1:
        b -= 1
    while 2 * eps * b**power < 1:
        b += 1
    return b


def pieces(m: int, E: int, eps: Fraction, kind: Kind) -> int:
    """The number of straight pieces of one polygon, before it is built.

    >>> pieces(3, 1, Fraction(1, 10), "snake"), pieces(3, 2, Fraction(1, 8), "digits")
    (49, 3)
    """
    own = m // E
    if kind == "digits":
        count: int = 2 * smallest_base(eps, E) ** (m - E) - 1
        return count
    if kind == "interleaved":
        return (1 << (own * (smallest_base(eps, 1) - 1).bit_length())) - 1
    return int(2 * smallest_base(eps, 1) ** (own - 1) - 1)


def code(m: int, E: int, eps: Any, kind: Kind | None = None) -> Code:
    """An encoder of ``m`` numbers in ``E`` and a decoder that recovers them within ``ε``.

    Statement: ``|recover(x) - x| ≤ ε`` in every coordinate for all ``x ∈ [0, 1]^m``.  ``kind`` defaults to *snake* where ``E``
    divides ``m`` and to *digits* elsewhere.

    Shapes: ``m`` numbers, ``E`` code coordinates, ``1 ≤ E < m``.

    Exactness: exact.

    Cost: ``E (2 K^{m/E - 1} - 1)`` units for *snake* and *raster*, ``E (2 b^{m - E} - 1)`` for *digits*.

    Raises: `DecodingError` for sizes out of range, or a decoder of more than `LARGEST` pieces.

    Example:

    >>> snake = code(2, 1, Fraction(1, 8))
    >>> snake.decoder.units, [str(v) for v in snake.recover([Fraction(1, 3), Fraction(1, 3)])]
    (7, ['1/3', '3/8'])
    """
    level = fraction(rational(eps))
    if not 1 <= E < m:
        raise DecodingError(f"expected 1 ≤ E < m, got E = {E}, m = {m}")
    if not 0 < level <= Fraction(1, 2):
        raise DecodingError(f"eps: expected a number in (0, 1/2], got {eps}")
    chosen: Kind = kind if kind is not None else "digits" if m % E else "snake"
    if chosen not in KINDS:
        raise DecodingError(f"kind: expected one of {KINDS}, got {chosen!r}")
    if chosen != "digits" and m % E:
        raise DecodingError(f"kind: {chosen} needs E to divide m, got E = {E}, m = {m}; use digits")
    if pieces(m, E, level, chosen) > LARGEST:
        raise DecodingError(f"eps: {eps} needs {pieces(m, E, level, chosen)} pieces; at most {LARGEST} are built")
    if chosen == "digits":
        b = smallest_base(level, E)
        return Code(chosen, m, E, b, E, _split(m, E, b))
    K = smallest_base(level, 1)
    if chosen == "interleaved":
        depth = (K - 1).bit_length()
        return Code(chosen, m, E, 2, depth, _interleaved(m, E, 2, depth))
    build: Callable[[int, int, int], Decoder] = _snake if chosen == "snake" else _raster
    return Code(chosen, m, E, K, 1, build(m, E, K))


def attention_code(scheme: Code, tokens: Sequence[Sequence[Any]]) -> tuple[Vector, ...]:
    """The code of the tokens' numbers, computed by one uniform attention layer: the state of every token after it.

    Statement: the encoder turns token ``t`` into what its numbers add to the code (it may depend on the position); an attention
    layer with ``A = 0``, ``ρ = 0``, ``V = T0 I`` adds these up.  Every row of the result is ``scheme.encode`` of all numbers.

    Shapes: ``T0`` tokens in ``R^d`` with ``T0 d = m``.

    Exactness: exact; the layer is evaluated over Q.

    Raises: `DecodingError` for a code that is no sum, or numbers that do not fit.

    Example:

    >>> scheme = code(4, 2, Fraction(1, 8), "raster")
    >>> rows = attention_code(scheme, [[0.25, 0.5], [1, 0]])
    >>> rows[0] == rows[1] == scheme.encode([0.25, 0.5, 1, 0])
    True
    """
    T0 = len(tokens)
    numbers = _read([v for token in tokens for v in token], scheme.m)
    d = len(numbers) // T0
    encoded = []
    for t in range(T0):
        parts = [scheme.contribution(t * d + a, numbers[t * d + a]) for a in range(d)]
        encoded.append([sum(column, Fraction(0)) for column in zip(*parts, strict=True)])
    layer = SelfAttention(0, ScaledLowRank.zero(scheme.E), ScaledLowRank.identity(scheme.E, T0))
    return EXACT.result(apply_attention(layer, rational_matrix(encoded), EXACT, rational(1)))


# ---------------------------------------------------------------- enough room: averaging with a position code


def averaged(tokens: Sequence[Sequence[Any]]) -> Vector:
    """``(1/T0) Σ_t e_t ⊗ x(t)``: uniform attention on tokens that are written into coordinates of their own.

    >>> averaged([[1, 2], [3, 4]]) == (Fraction(1, 2), 1, Fraction(3, 2), 2)
    True
    """
    T0, d = len(tokens), len(tokens[0])
    rows = [[tokens[t][a] if s == t else 0 for s in range(T0) for a in range(d)] for t in range(T0)]
    return EXACT.result(EXACT.mean(rational_matrix(rows)))[0]


def sylvester(order: int) -> list[list[int]]:
    """The Hadamard matrix of Sylvester, ``H Hᵀ = order · I``, for a power of two.

    >>> sylvester(2)
    [[1, 1], [1, -1]]
    """
    if order < 1 or order & (order - 1):
        raise DecodingError(f"order: expected a power of two, got {order}")
    return [[1 if (i & j).bit_count() % 2 == 0 else -1 for j in range(order)] for i in range(order)]


def averaging_decoder(T0: int, d: int) -> tuple[list[list[Fraction]], list[list[Fraction]]]:
    """``(U, V)`` with ``V σ(U z + 1) = T0 z`` for ``z = averaged(X)``, ``X`` in ``[0, 1]``: entries at most 1, fewer than ``4 T0 d`` units.

    Statement: with columns ``h_1..h_m``, ``m = T0 d``, of a Hadamard matrix of order ``p > m``, none of them constant,
    ``U = (h_a / d)`` and ``V = (m/p) Uᵀ d``: ``|U z| ≤ 1`` keeps every unit active, and ``V U = T0 I``, ``V 1 = 0``.

    Exactness: exact.

    Cost: ``p`` units, ``p`` the power of two with ``m < p ≤ 2m``.

    Example:

    >>> U, V = averaging_decoder(2, 1)
    >>> len(U), max(abs(v) for row in (*U, *V) for v in row) <= 1
    (4, True)
    """
    m = T0 * d
    p = 1 << m.bit_length()
    H = sylvester(p)
    U = [[Fraction(H[k][a], d) for a in range(1, m + 1)] for k in range(p)]
    V = [[Fraction(m, p) * H[k][a] for k in range(p)] for a in range(1, m + 1)]
    return U, V


# ---------------------------------------------------------------- the inequalities of the proofs


def cells_of_arrangement(p: int, E: int) -> tuple[int, int]:
    """``(Σ_{i ≤ E} C(p, i), (p+1)^E)``: the first bounds the cells that ``p`` hyperplanes cut ``R^E`` into, and is at most the second.

    >>> cells_of_arrangement(3, 2)
    (7, 16)
    """
    return sum(math.comb(p, i) for i in range(E + 1)), (p + 1) ** E


def tube_volume(m: int, flat: int, eps: float) -> float:
    """``(8√m)^m ε^{m - e}``: bounds the volume of the sup-norm ``ε``-neighbourhood of a set in an ``e``-flat inside ``[-ε, 1+ε]^m``, ``ε ≤ 1``.

    >>> tube_volume(2, 1, 0.5) > 2.0
    True
    """
    return (8 * math.sqrt(m)) ** m * eps ** (m - flat)


def segment_tube(direction: Sequence[float], eps: float) -> float:
    """The volume of the sup-norm ``ε``-neighbourhood of a segment, exactly: ``(2ε)^m + Σ |v_i| (2ε)^{m-1}``.

    >>> segment_tube([1.0, 0.0], 0.5)
    2.0
    """
    m = len(direction)
    return (2 * eps) ** m + sum(map(abs, direction)) * (2 * eps) ** (m - 1)


def lap_inequality(heights: Sequence[float], durations: Sequence[float]) -> tuple[float, float]:
    """``(Σ h_i/τ_i, (Σ h_i)² / Σ τ_i)``: the first is at least the second for ``0 ≤ h_i ≤ 1``, ``τ_i > 0``.

    >>> left, right = lap_inequality([0.5, 1.0], [1.0, 1.0])
    >>> left >= right
    True
    """
    return sum(h / t for h, t in zip(heights, durations, strict=True)), sum(heights) ** 2 / sum(durations)


def turning_of_laps(knots: Sequence[Fraction], values: Sequence[Fraction]) -> tuple[Fraction, Fraction]:
    """``(total change of slope, Σ h_i/τ_i)`` of a piecewise-linear function with at least two monotone laps: the first is at least the second.

    Laps are maximal runs of pieces that all rise or all fall; level pieces belong to none.  ``h_i`` is the height of a lap and
    ``τ_i`` its duration.  With one lap only the second number is 0: nothing is claimed.

    >>> [str(v) for v in turning_of_laps([Fraction(k) for k in range(3)], [Fraction(0), Fraction(1), Fraction(0)])]
    ['2', '2']
    """
    slopes = [(q - p) / (b - a) for (a, p), (b, q) in pairwise(zip(knots, values, strict=True))]
    turning = sum((abs(t - s) for s, t in pairwise(slopes)), Fraction(0))
    laps: list[tuple[int, Fraction, Fraction]] = []
    for slope, (a, b) in zip(slopes, pairwise(knots), strict=True):
        sign = (slope > 0) - (slope < 0)
        if not sign:
            continue
        if laps and laps[-1][0] == sign:
            laps[-1] = (sign, laps[-1][1] + abs(slope) * (b - a), laps[-1][2] + (b - a))
        else:
            laps.append((sign, abs(slope) * (b - a), b - a))
    if len(laps) < 2:
        return turning, Fraction(0)
    return turning, sum((h / t for _, h, t in laps), Fraction(0))


def packing(distance: float) -> tuple[float, float]:
    """``(1 + 2/ρ, 4/ρ)``: the first is less than the second for ``ρ < 2``; their ``E``-th powers bound how many points of the unit ball of ``R^E`` lie ``ρ`` apart.

    >>> packing(1.0)
    (3.0, 4.0)
    """
    return 1 + 2 / distance, 4 / distance


def fitted_slope(xs: Sequence[float], ys: Sequence[float]) -> float:
    """The slope of the least-squares line through ``(log x, log y)``.

    >>> round(fitted_slope([1, 10, 100], [2, 200, 20000]), 12)
    2.0
    """
    a, b = [math.log(x) for x in xs], [math.log(y) for y in ys]
    mean_a, mean_b = sum(a) / len(a), sum(b) / len(b)
    spread = sum((x - mean_a) ** 2 for x in a)
    return sum((x - mean_a) * (y - mean_b) for x, y in zip(a, b, strict=True)) / spread
