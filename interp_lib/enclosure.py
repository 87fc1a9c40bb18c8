"""Softmax, followed rigorously: every token as an exact point plus enclosed multiples of exact directions.

A token is kept as ``x = x⁰ + Σ_g ξ_g g`` with a rational point ``x⁰``, rational directions ``g`` and real
numbers ``ξ_g`` enclosed by balls.  An affine map acts on ``x⁰`` and on each ``g`` over Q.  So where the units of
a ReLU layer that are on are known for certain, and the affine map they make kills a direction, that
direction is gone: the token is the *exact* point again, however wide its ball was.  This is how an
identity like ``x - x = 0``, which balls cannot see, is proved: strict inequalities show that the token lies
on a flat piece, and the slope of the piece is zero over Q.

* **ReLU.**  A unit is on if its argument is certainly positive and off if it is certainly ``≤ 0``.  Any other unit
  contributes its column of ``W`` as a new direction, with an enclosure of its value.
* **Attention.**  Relative to a reference token ``*`` (the likely maximiser; any choice is sound),

      ``Σ_l π_il x_l = x_* + Σ_{l ≠ *} π_il (x_l - x_*)``,   ``π_il = e^{s_il - s_i*} / (1 + Σ_{k ≠ *} e^{s_ik - s_i*})``.

  The first term is exact; the second, the *leak*, is enclosed.  Where the scores are constant, the weights
  are equal, and the mean is exact too.

Everything is read off the weights and the data.  Nothing here knows how the weights were chosen.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import final

from .fields import EXACT, Ball, BallMatrix, Rational, RationalMatrix, rational, rational_matrix, working_precision
from .layers import FeedForward, ScaledLowRank, SelfAttention, Transformer
from .sequences import Dataset

Point = tuple[Rational, ...]
Coefficients = dict[int, Ball]


@final
@dataclass(frozen=True, slots=True)
class EnclosedToken:
    """An output token: its exact value where that is known, and an enclosure of every coordinate."""

    exact: Point | None
    enclosure: tuple[Ball, ...]


@final
@dataclass(frozen=True, slots=True)
class EnclosedOutputs:
    """All output tokens, sequence by sequence, and how many exponentials it took to enclose them."""

    sequences: tuple[tuple[EnclosedToken, ...], ...]
    exponentials: int

    @property
    def is_exact(self) -> bool:
        """Whether every output token is known exactly."""
        return all(token.exact is not None for tokens in self.sequences for token in tokens)


def enclose_outputs(T: Transformer, data: Dataset, temperature: Rational, bits: int) -> EnclosedOutputs:
    """The tokens of ``T_τ(X_j)`` for every ``j``, in the order of the data.

    Statement: every output token lies in its enclosure, and equals its exact value where one is given, in
    real arithmetic, for the softmax transformer at temperature ``τ > 0``.

    Shapes: ``T`` and ``data`` in the same dimension.

    Exactness: rigorous; ``bits`` only decides how narrow the enclosures are.

    Cost: ``O(n_j²)`` exponentials per sequence and attention layer whose scores vary; one rational product
    per token and distinct row of ``U``.

    >>> from .layers import Block
    >>> data = Dataset([[[0, 0], [1, 0]]], [[[0, 0]]])
    >>> outputs = enclose_outputs(Transformer([Block.identity(2)]), data, rational(1), 64)
    >>> outputs.sequences[0][1].exact
    (1, 0)
    """
    with working_precision(bits):
        state = _State(data)
        for block in T.blocks:
            _feed_forward(block.feed_forward, state)
            _attention(block.attention, state, temperature)
        return EnclosedOutputs(
            tuple(
                tuple(state.token(i) for i in range(start, end))
                for start, end in zip(state.bounds, state.bounds[1:], strict=False)
            ),
            state.exponentials,
        )


class _State:
    """All tokens of all sequences: exact parts as rows of one matrix, coefficients by number of direction."""

    __slots__ = ("bounds", "coefficients", "d", "directions", "exact", "exponentials", "numbers")

    def __init__(self, data: Dataset) -> None:
        self.d = data.d
        self.exact: RationalMatrix = rational_matrix([row for m in data.input_matrices for row in m.tolist()])
        self.bounds = [0]
        for matrix in data.input_matrices:
            self.bounds.append(self.bounds[-1] + matrix.nrows())
        self.coefficients: list[Coefficients] = [{} for _ in range(self.bounds[-1])]
        self.directions: list[Point] = []
        self.numbers: dict[Point, int] = {}
        self.exponentials = 0

    def number(self, vector: Point) -> tuple[int, Rational] | None:
        """The number of the line through ``vector``, and the factor along it; None for the zero vector."""
        factor = next((v for v in vector if v != 0), None)
        if factor is None:
            return None
        unit = tuple(v / factor for v in vector)
        if unit not in self.numbers:
            self.numbers[unit] = len(self.directions)
            self.directions.append(unit)
        return self.numbers[unit], factor

    def combine(self, terms: Iterable[tuple[tuple[int, Rational] | None, Ball]]) -> Coefficients:
        """The sum of ``coefficient · factor · direction`` over the terms, with at most ``d`` directions."""
        total: Coefficients = {}
        for place, coefficient in terms:
            if place is not None:
                g, factor = place
                step = coefficient if factor == 1 else coefficient * factor
                total[g] = total[g] + step if g in total else step
        if len(total) <= self.d:
            return total
        axes: Coefficients = {}
        for g, coefficient in total.items():
            for c, v in enumerate(self.directions[g]):
                if v != 0:
                    axis = self.number(tuple(rational(int(c == k)) for k in range(self.d)))
                    assert axis is not None
                    step = coefficient * v
                    axes[axis[0]] = axes[axis[0]] + step if axis[0] in axes else step
        return axes

    def token(self, i: int) -> EnclosedToken:
        point = tuple(self.exact[i, c] for c in range(self.d))
        enclosure = [Ball(v) for v in point]
        for g, coefficient in self.coefficients[i].items():
            for c, v in enumerate(self.directions[g]):
                if v != 0:
                    enclosure[c] += coefficient * v
        return EnclosedToken(None if self.coefficients[i] else point, tuple(enclosure))


# ---------------------------------------------------------------- feed-forward layers


def _feed_forward(layer: FeedForward, state: _State) -> None:
    """``η x + W σ(U x + b)`` for every token."""
    eta, U_transposed, b, W_transposed = layer.over(EXACT)
    base = state.exact if eta == 1 else state.exact * eta
    if not layer.width:
        state.exact = base
        _rescale(state, eta)
        return
    U, W, biases = U_transposed.transpose().tolist(), W_transposed.tolist(), b.entries()
    # Units that share a row of U share its product with each token and direction.
    rows = list(dict.fromkeys(map(tuple, U)))
    which = [rows.index(tuple(row)) for row in U]
    projection = rational_matrix(rows).transpose()
    projected = (state.exact * projection).tolist()
    along = (rational_matrix(state.directions, layer.d) * projection).tolist()
    units = list(zip(which, [-bias for bias in biases], strict=True))
    pieces = _Pieces(eta, U, biases, W, state)
    changed: RationalMatrix = +base
    for i, line in enumerate(projected):
        held = state.coefficients[i]
        wobble = [_combination(held, along, p) for p in range(len(rows))] if held else [None] * len(rows)
        on, unsure = [], []
        for k, (p, threshold) in enumerate(units):
            drift = wobble[p]
            if drift is None:
                if line[p] > threshold:
                    on.append(k)
                continue
            argument = drift + (line[p] - threshold)
            if argument > 0:
                on.append(k)
            elif not argument <= 0:
                unsure.append((k, argument))
        piece = tuple(on)
        if not pieces.vanishes(piece):
            for c in range(layer.d):
                changed[i, c] += sum((W[k][c] * (line[which[k]] + biases[k]) for k in on), rational(0))
        elif eta == 1 and not unsure:
            continue
        if held or unsure:
            terms = [(pieces.image(piece, g), coefficient) for g, coefficient in held.items()]
            terms += [(state.number(tuple(W[k])), argument.nonnegative_part()) for k, argument in unsure]
            state.coefficients[i] = state.combine(terms)
    state.exact = changed


def _combination(held: Coefficients, along: list[list[Rational]], p: int) -> Ball | None:
    """``Σ ξ_g <u_p, g>``, or None if every product is zero over Q: then the unit's argument is exact."""
    total: Ball | None = None
    for g, coefficient in held.items():
        factor = along[g][p]
        if factor != 0:
            step = coefficient if factor == 1 else coefficient * factor
            total = step if total is None else total + step
    return total


class _Pieces:
    """The affine pieces of one layer: for a set of units that are on, the map ``η x + W_S (U_S x + b_S)``."""

    __slots__ = ("W", "biases", "eta", "images", "maps", "rows", "state")

    def __init__(
        self, eta: Rational, U: list[list[Rational]], biases: list[Rational], W: list[list[Rational]], state: _State
    ) -> None:
        self.eta, self.W, self.state, self.biases, self.rows = eta, W, state, biases, U
        self.maps: dict[tuple[int, ...], RationalMatrix | None] = {(): None}
        self.images: dict[tuple[tuple[int, ...], int], tuple[int, Rational] | None] = {}

    def vanishes(self, on: tuple[int, ...]) -> bool:
        """Whether ``W_S (U_S x + b_S)`` is zero for every ``x``."""
        if on not in self.maps:
            columns = rational_matrix([self.W[k] for k in on]).transpose()
            affine = columns * rational_matrix([[*self.rows[k], self.biases[k]] for k in on])
            self.maps[on] = affine if any(affine.entries()) else None
        return self.maps[on] is None

    def image(self, on: tuple[int, ...], g: int) -> tuple[int, Rational] | None:
        """Where direction number ``g`` goes: ``η g + W_S U_S g``."""
        key = on, g
        if key not in self.images:
            direction = self.state.directions[g]
            moved = [self.eta * v for v in direction]
            affine = None if self.vanishes(on) else self.maps[on]
            if affine is not None:
                extended = rational_matrix([[v] for v in (*direction, 0)])
                moved = [a + b for a, b in zip(moved, (affine * extended).entries(), strict=True)]
            self.images[key] = self.state.number(tuple(moved))
        return self.images[key]


def _rescale(state: _State, factor: Rational) -> None:
    if factor == 0:
        state.coefficients = [{} for _ in state.coefficients]
    elif factor != 1:
        state.coefficients = [{g: c * factor for g, c in held.items()} for held in state.coefficients]


# ---------------------------------------------------------------- attention


def _attention(layer: SelfAttention, state: _State, temperature: Rational) -> None:
    """``ρ x_i + V Σ_l π_il x_l`` for every token."""
    rho = rational(layer.rho)
    if layer.V.is_zero:
        if rho != 1:
            state.exact = state.exact * rho
            _rescale(state, rho)
        return
    attend = _Attention(layer, state, temperature)
    rows: list[Point] = []
    coefficients: list[Coefficients] = []
    for start, end in zip(state.bounds, state.bounds[1:], strict=False):
        if layer.causal:
            # A masked position is one that is not there: position i sees the sequence that ends with it.
            moved = [attend.sequence(start, i + 1, i - start)[0] for i in range(start, end)]
        else:
            moved = attend.sequence(start, end)
        for point, held in moved:
            rows.append(point)
            coefficients.append(held)
    state.exact, state.coefficients = rational_matrix(rows), coefficients


class _Attention:
    """One attention layer, with the images of all directions under ``V``."""

    __slots__ = ("A", "V", "constant", "functionals", "moved", "rho", "spread", "state", "temperature")

    def __init__(self, layer: SelfAttention, state: _State, temperature: Rational) -> None:
        self.state, self.temperature = state, temperature
        self.rho = rational(layer.rho)
        self.constant = layer.A.is_zero
        self.A = rational_matrix(layer.A.dense())
        self.V = rational_matrix(layer.V.dense())
        known = rational_matrix(state.directions, state.d) * self.V.transpose()
        self.moved = [state.number(tuple(row)) for row in known.tolist()]
        # V x = Σ_r spread_r · <functional_r, x>: as few terms as the shape of V allows.
        self.spread, self.functionals = _factor(layer.V)

    def sequence(self, start: int, end: int, first: int = 0) -> list[tuple[Point, Coefficients]]:
        """The tokens numbered ``start`` to ``end - 1``, one sequence, after the layer: those from place ``first`` on."""
        state = self.state
        tokens = rational_matrix([[state.exact[i, c] for c in range(state.d)] for i in range(start, end)])
        held = state.coefficients[start:end]
        means = self._means(tokens, held)
        if self.constant or end - start == 1:
            return means[first:]
        scores = _scores(self.A, tokens)
        corrections = _corrections(self.A, tokens, held, state.directions)
        values = (tokens * self.functionals).tolist()
        shifted = (tokens * self.V.transpose()).tolist()
        kept = tokens.tolist()
        places = [state.number(row) for row in self.spread]
        results = []
        for i in range(first, end - start):
            correction = None if corrections is None else corrections[i]
            if correction is None and all(score == scores[i][0] for score in scores[i]):
                results.append(means[i])
                continue
            lead = _likely_maximum(scores[i], correction)
            weights, total = self._weights(scores[i], correction, lead)
            terms = [((g, self.rho), c) for g, c in held[i].items()] if self.rho != 0 else []
            for g in {g for coefficients in held for g in coefficients}:
                place = self.moved[g]
                if place is not None:
                    terms.append((place, _leaking(lead, weights, total, held, g)))
            for r, place in enumerate(places):
                leak = _leak(lead, weights, values, r)
                if place is not None and leak is not None:
                    terms.append((place, leak / total))
            point = tuple(self.rho * a + b for a, b in zip(kept[i], shifted[lead], strict=True))
            results.append((point, state.combine(terms)))
        return results

    def _means(self, tokens: RationalMatrix, held: list[Coefficients]) -> list[tuple[Point, Coefficients]]:
        """Equal weights: the mean of the exact parts is exact, and so is every direction of it."""
        n = tokens.nrows()
        mean = rational_matrix([[rational(1) / n] * n]) * tokens
        shift = (mean * self.V.transpose()).entries()
        shared = []
        for g in {g for coefficients in held for g in coefficients}:
            if self.moved[g] is not None:
                present = [coefficients[g] for coefficients in held if g in coefficients]
                shared.append((self.moved[g], sum(present[1:], present[0]) / n))
        return [
            (
                tuple(self.rho * a + b for a, b in zip(row, shift, strict=True)),
                self.state.combine([*(((g, self.rho), c) for g, c in own.items() if self.rho != 0), *shared]),
            )
            for row, own in zip(tokens.tolist(), held, strict=True)
        ]

    def _weights(
        self, scores: list[Rational], correction: list[Ball] | None, lead: int
    ) -> tuple[list[tuple[int, Ball]], Ball]:
        """``e^{(s_l - s_lead)/τ}`` for ``l ≠ lead``, and one plus their sum."""
        weights, total = [], Ball(1)
        for at, score in enumerate(scores):
            if at == lead:
                continue
            exponent = Ball((score - scores[lead]) / self.temperature)
            if correction is not None:
                exponent += (correction[at] - correction[lead]) / self.temperature
            weight = exponent.exp()
            weights.append((at, weight))
            total += weight
        self.state.exponentials += len(weights)
        return weights, total


def _factor(V: ScaledLowRank) -> tuple[list[Point], RationalMatrix]:
    """Vectors ``spread_r`` and a matrix with columns ``functional_r`` such that ``V x = Σ_r spread_r <functional_r, x>``."""
    if V.scale:
        axes = [tuple(rational(int(c == k)) for k in range(V.d)) for c in range(V.d)]
        return axes, rational_matrix(V.dense()).transpose()
    columns = zip(*V.left, strict=True)
    return [tuple(map(rational, column)) for column in columns], rational_matrix(V.right)


def _scores(A: RationalMatrix, tokens: RationalMatrix) -> list[list[Rational]]:
    return (tokens * A.transpose() * tokens.transpose()).tolist()


def _corrections(
    A: RationalMatrix, tokens: RationalMatrix, held: list[Coefficients], directions: list[Point]
) -> list[list[Ball]] | None:
    """What the enclosed multiples add to ``<A x_i, x_l>``; None where every product is zero over Q."""
    present = sorted({g for coefficients in held for g in coefficients})
    if not present:
        return None
    G = rational_matrix([directions[g] for g in present])
    of_queries = G * A.transpose() * tokens.transpose()
    of_keys = tokens * A.transpose() * G.transpose()
    of_both = G * A.transpose() * G.transpose()
    if not any(any(matrix.entries()) for matrix in (of_queries, of_keys, of_both)):
        return None
    amounts = BallMatrix([[coefficients.get(g, Ball(0)) for g in present] for coefficients in held])
    total = amounts * BallMatrix(of_queries) + BallMatrix(of_keys) * amounts.transpose()
    return (total + amounts * BallMatrix(of_both) * amounts.transpose()).tolist()


def _likely_maximum(scores: list[Rational], correction: list[Ball] | None) -> int:
    """A reference token: nothing depends on its being the maximiser but the width of the enclosures."""
    if correction is None:
        return max(range(len(scores)), key=scores.__getitem__)
    lead, best = 0, (correction[0] + scores[0]).mid()
    for at in range(1, len(scores)):
        middle = (correction[at] + scores[at]).mid()
        if middle > best:
            lead, best = at, middle
    return lead


def _leaking(lead: int, weights: list[tuple[int, Ball]], total: Ball, held: list[Coefficients], g: int) -> Ball:
    """The mean multiple of direction ``g``: that of the reference token and its leak."""
    zero = Ball(0)
    own = held[lead].get(g, zero)
    leak = zero
    for at, weight in weights:
        leak += weight * (held[at].get(g, zero) - own)
    return own + leak / total


def _leak(lead: int, weights: list[tuple[int, Ball]], values: list[list[Rational]], r: int) -> Ball | None:
    """``Σ_l weight_l (value_l - value_lead)``, or None if every difference is zero over Q."""
    leak: Ball | None = None
    for at, weight in weights:
        difference = values[at][r] - values[lead][r]
        if difference != 0:
            step = weight * difference
            leak = step if leak is None else leak + step
    return leak
