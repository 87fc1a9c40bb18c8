"""Exact outputs under hardmax, straight from the definitions, fast enough for thousands of sequences.

Tokens are followed as *multisets*: tokens of one sequence that coincide are kept once, with their multiplicity, because without a
mask a transformer cannot tell them apart.  Beside them stands which token is at which position: a causal mask reads it.  Three facts save work, and none of them assumes anything about how weights were chosen.

* **One direction.**  A residual feed-forward layer whose units all read the same projection ``t = <u, x>`` adds a
  piecewise-linear function ``g(t)``.  It moves only the tokens on pieces where ``g`` is not zero; an ordered list of the ``t`` finds
  them, and stays in order when few tokens move.
* **Sums.**  If ``<u, g> = 0`` as well, the layer keeps ``t``.  Then consecutive such layers, with nothing between them, add up to one.
* **Low rank.**  For ``A = l rᵀ`` the score ``<A x_i, x_l> = <r, x_i> <l, x_l>`` is a product of two numbers, so only the sign of the
  query matters, and for ``A = 0`` everyone attends to everyone.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from operator import itemgetter
from typing import final

from .fields import EXACT, Rational, RationalMatrix, common_denominator, exact_matrix, first_occurrences, rational
from .layers import FeedForward, ScaledLowRank, SelfAttention, Transformer
from .sequences import Dataset

Point = tuple[Rational, ...]
Vector = list[Rational]
_Shift = list[tuple[int, Rational]]
ZERO = rational(0)
ROWS_AT_ONCE = 64
"""How many rows of scores are held at a time."""


def exact_outputs(T: Transformer, data: Dataset) -> list[list[Point]]:
    """The distinct output tokens of every input sequence under hardmax.

    Statement: the set ``T_0(X_j)`` for every ``j``.  If ``A = 0`` in every attention layer that acts, it is also ``T_τ(X_j)`` for
    every ``τ > 0``.

    Exactness: exact over Q.

    Cost: ``O(n log n)`` comparisons when a direction is first read, ``O(d)`` for every token that moves and ``O(log n)`` for a layer
    that moves none; ``O(n² d)`` for a full-rank attention layer, ``O(n d)`` otherwise.

    Example:

    >>> from .layers import Block
    >>> exact_outputs(Transformer([Block.identity(2)]), Dataset([[[1, 2]]], [[[0, 0]]]))
    [[(1, 2)]]
    """
    state = _State([matrix.tolist() for matrix in data.input_matrices])
    for step in _steps(T):
        if isinstance(step, _Piecewise):
            state.add(step)
        elif isinstance(step, FeedForward):
            state.feed_forward(step)
        else:
            state.attend(step)
    return state.points()


# ---------------------------------------------------------------- layers, simplified


@final
@dataclass(frozen=True, slots=True)
class _Piecewise:
    """``x ↦ x + constant + Σ w σ(±(t - k))`` with ``t = <direction, x>``; ``turns`` lists ``(k, w)`` and the slope turns by ``w`` there.

    ``slope`` and ``constant`` describe the leftmost piece.
    """

    direction: Point
    turns: tuple[tuple[Rational, Point], ...]
    slope: Point
    constant: Point

    @property
    def keeps_direction(self) -> bool:
        """Whether ``t`` is the same afterwards."""
        vectors = (self.slope, self.constant, *(w for _, w in self.turns))
        return all(_inner(self.direction, w) == 0 for w in vectors)

    def plus(self, other: _Piecewise) -> _Piecewise:
        """The sum of two functions of the same projection."""
        return _Piecewise(
            self.direction,
            self.turns + other.turns,
            _sum(self.slope, other.slope),
            _sum(self.constant, other.constant),
        )


def _steps(T: Transformer) -> Iterator[_Piecewise | FeedForward | SelfAttention]:
    """The layers in order; identities left out, sums formed where that is allowed."""
    waiting: _Piecewise | None = None
    for block in T.blocks:
        layer = block.feed_forward
        step = _piecewise(layer)
        if step is None:
            if waiting is not None:
                yield waiting
            waiting = None
            if layer.width or layer.eta != 1:
                yield layer
        elif waiting is None:
            waiting = step
        elif waiting.direction == step.direction and waiting.keeps_direction and step.keeps_direction:
            waiting = waiting.plus(step)
        else:
            yield waiting
            waiting = step
        if not block.attention.is_identity:
            if waiting is not None:
                yield waiting
            waiting = None
            yield block.attention
    if waiting is not None:
        yield waiting


def _piecewise(layer: FeedForward) -> _Piecewise | None:
    """The layer as a function of one projection, if it is residual and its units read only one."""
    if layer.eta != 1 or not layer.width:
        return None
    _, U_transposed, biases, W_transposed = layer.over(EXACT)
    direction: Point | None = None
    zero = (rational(0),) * layer.d
    turns: list[tuple[Rational, Point]] = []
    slope, constant = zero, zero
    rows = zip(U_transposed.transpose().tolist(), biases.entries(), W_transposed.tolist(), strict=True)
    for row, b, w in rows:
        u = tuple(row)
        if u == zero:
            if b > 0:
                constant = tuple(c + b * v for c, v in zip(constant, w, strict=True))
            continue
        if direction is None:
            direction = u
        factor = rational(1) if u == direction else _ratio(u, direction)
        if factor is None:
            return None
        # σ(factor t + b) has its knot at -b / factor; the slope of w σ turns by |factor| w there.
        size = abs(factor)
        knot, turn = -b / factor, tuple(w) if size == 1 else tuple(size * v for v in w)
        turns.append((knot, turn))
        if factor < 0:  # on for t below the knot
            slope = tuple(s - v for s, v in zip(slope, turn, strict=True))
            constant = tuple(c + knot * v for c, v in zip(constant, turn, strict=True))
    return None if direction is None else _Piecewise(direction, tuple(turns), slope, constant)


def _ratio(u: Point, direction: Point) -> Rational | None:
    """The number ``f`` with ``u = f · direction``, if there is one."""
    at = next(c for c, v in enumerate(direction) if v != 0)
    factor = u[at] / direction[at]
    if factor == 0 or any(a != factor * b for a, b in zip(u, direction, strict=True)):
        return None
    return factor


def _sum(a: Point, b: Point) -> Point:
    return tuple(x + y for x, y in zip(a, b, strict=True))


def _inner(a: Sequence[Rational], b: Sequence[Rational]) -> Rational:
    return sum((x * y for x, y in zip(a, b, strict=True) if x != 0), ZERO)


def _along(direction: Point) -> Callable[[Sequence[Rational]], Rational]:
    """``<direction, x>`` as a function that knows where the direction is not zero."""
    support = [(c, v) for c, v in enumerate(direction) if v != 0]
    if len(support) == 1:
        ((c, v),) = support
        return itemgetter(c) if v == 1 else lambda x: v * x[c]
    return lambda x: sum((v * x[c] for c, v in support), ZERO)


# ---------------------------------------------------------------- tokens


class _State:
    """The distinct tokens of all sequences, ordered along the directions that layers have read."""

    __slots__ = ("bounds", "lengths", "multiplicity", "ordered", "places", "rows")

    def __init__(self, sequences: Sequence[Sequence[Sequence[Rational]]]) -> None:
        self.rows: list[Vector] = [list(x) for tokens in sequences for x in tokens]
        self.multiplicity = [1] * len(self.rows)
        self.bounds = [0, *accumulate(map(len, sequences))]
        self.lengths = list(map(len, sequences))
        self.places = list(range(len(self.rows)))  # the number of the token at every position of every sequence
        self.ordered: dict[Point, list[tuple[Rational, int]]] = {}

    def points(self) -> list[list[Point]]:
        return [
            list(dict.fromkeys(map(tuple, self.rows[start:end])))
            for start, end in zip(self.bounds, self.bounds[1:], strict=False)
        ]

    def _merge(self, tokens: RationalMatrix) -> None:
        """Replace every token, counting those that now coincide."""
        first = first_occurrences(tokens)
        rows = tokens.tolist()
        kept: list[Vector] = []
        multiplicity: list[int] = []
        bounds = [0]
        now = [0] * len(rows)
        for start, end in zip(self.bounds, self.bounds[1:], strict=False):
            counted: dict[int, int] = {}
            numbered: dict[int, int] = {}
            for i in range(start, end):
                counted[first[i]] = counted.get(first[i], 0) + self.multiplicity[i]
                now[i] = numbered.setdefault(first[i], len(kept) + len(numbered))
            # Lists of their own: the same point may occur in several sequences.
            kept += [list(rows[i]) for i in counted]
            multiplicity += counted.values()
            bounds.append(len(kept))
        self.places = [now[i] for i in self.places]
        self.rows, self.multiplicity, self.bounds, self.ordered = kept, multiplicity, bounds, {}

    def _spread_out(self) -> None:
        """One row for every position, in order."""
        self.rows = [list(self.rows[i]) for i in self.places]
        self.multiplicity = [1] * len(self.rows)
        self.bounds = [0, *accumulate(self.lengths)]
        self.places = list(range(len(self.rows)))

    def _project(self, direction: Point) -> list[Rational]:
        if sum(v != 0 for v in direction) == 1:
            return list(map(_along(direction), self.rows))
        return (exact_matrix(self.rows) * exact_matrix([[v] for v in direction])).entries()

    def _order(self, direction: Point) -> list[tuple[Rational, int]]:
        if direction not in self.ordered:
            projections = self._project(direction)
            whole, _ = common_denominator(projections)
            order = sorted(range(len(whole)), key=whole.__getitem__)
            self.ordered[direction] = [(projections[i], i) for i in order]
        return self.ordered[direction]

    def add(self, g: _Piecewise) -> None:
        """``x + g(<u, x>)`` for every token; only pieces where ``g`` is not zero are visited."""
        order = self._order(g.direction)
        places = sorted(g.turns, key=itemgetter(0))
        slope, constant = list(g.slope), list(g.constant)
        moved: list[tuple[int, _Shift]] = []
        first = 0
        for at in range(len(places) + 1):
            end = bisect_right(order, (places[at][0], len(self.rows))) if at < len(places) else len(order)
            if end > first and (any(v != 0 for v in slope) or any(v != 0 for v in constant)):
                for t, tokens in groupby(order[first:end], key=itemgetter(0)):
                    values = [t * s + c if s != 0 else c for s, c in zip(slope, constant, strict=True)]
                    shift = [(c, v) for c, v in enumerate(values) if v != 0]
                    moved += [(i, shift) for _, i in tokens]
            first = max(first, end)
            if at < len(places):
                knot, turn = places[at]
                for c, v in enumerate(turn):
                    if v != 0:
                        slope[c] += v
                        constant[c] -= knot * v
        self._move(moved)

    def _move(self, moved: list[tuple[int, _Shift]]) -> None:
        # Keeping an order costs a search per moved token; making it anew costs a sort.
        for direction in list(self.ordered):
            along = _along(direction)
            changed = []
            for i, shift in moved:
                delta = sum((direction[c] * v for c, v in shift), ZERO)
                if delta != 0:
                    changed.append((i, delta))
            if 8 * len(changed) > len(self.rows) + 64:
                del self.ordered[direction]
                continue
            order = self.ordered[direction]
            for i, delta in changed:
                old = along(self.rows[i])
                del order[bisect_left(order, (old, i))]
                insort(order, (old + delta, i))
        for i, shift in moved:
            row = self.rows[i]
            for c, v in shift:
                row[c] += v

    def feed_forward(self, layer: FeedForward) -> None:
        """``η x + W σ(U x + b)`` for every token, as products of matrices."""
        eta, U_transposed, b, W_transposed = layer.over(EXACT)
        tokens = exact_matrix(self.rows)
        if not layer.width:
            self._merge(tokens * eta)
            return
        biases = b.entries()
        units = (tokens * U_transposed).tolist()
        on = [[max(v + c, ZERO) for v, c in zip(line, biases, strict=True)] for line in units]
        result = exact_matrix(on) * W_transposed
        self._merge(result if eta == 0 else result + tokens * eta)

    def attend(self, layer: SelfAttention) -> None:
        """``ρ x_i + V mean(maximisers)`` for every token of every sequence."""
        if layer.causal and not layer.V.is_zero:
            self._attend_causally(layer)
            return
        rho = rational(layer.rho)
        moved: list[Vector] = []
        for start, end in zip(self.bounds, self.bounds[1:], strict=False):
            tokens, times = self.rows[start:end], self.multiplicity[start:end]
            shifts: dict[Hashable, Vector] = {}
            for x, (name, chosen) in zip(tokens, _maximisers(layer, tokens), strict=True):
                if name not in shifts:
                    shifts[name] = _transformed_mean(layer, tokens, times, chosen)
                shift = shifts[name]
                kept = x if rho == 1 else [rho * a for a in x] if rho != 0 else None
                moved.append(
                    shift if kept is None else [a + b if b != 0 else a for a, b in zip(kept, shift, strict=True)]
                )
        self._merge(exact_matrix(moved))

    def _attend_causally(self, layer: SelfAttention) -> None:
        """``ρ x_i + V mean(maximisers among the positions up to i)`` for every position of every sequence."""
        self._spread_out()
        means: list[Vector] = []
        for start, end in zip(self.bounds, self.bounds[1:], strict=False):
            means += _causal_means(layer.A, self.rows[start:end])
        scale, _, left_transposed, right = layer.V.over(EXACT)
        averaged = exact_matrix(means)
        result = averaged * scale
        if layer.V.rank:
            result = result + (averaged * right) * left_transposed
        rho = rational(layer.rho)
        self._merge(result if rho == 0 else result + exact_matrix(self.rows) * rho)


def _causal_means(A: ScaledLowRank, tokens: list[Vector]) -> Iterator[Vector]:
    """For every position the mean of the tokens up to it that have the largest score."""
    if A.is_zero:
        everyone = _Mean()
        for x in tokens:
            everyone.add(x)
            yield everyone.value()
        return
    matrix = exact_matrix(tokens)
    scale, left, left_transposed, right = A.over(EXACT)
    if scale == 0 and A.rank == 1:
        keys, queries = (matrix * left).entries(), (matrix * right).entries()
        everyone, top, bottom = _Mean(), _Mean(), _Mean()
        highest = lowest = keys[0]
        for x, key, query in zip(tokens, keys, queries, strict=True):
            if key > highest:
                highest, top = key, _Mean()
            if key < lowest:
                lowest, bottom = key, _Mean()
            everyone.add(x)
            if key == highest:
                top.add(x)
            if key == lowest:
                bottom.add(x)
            yield (top if query > 0 else bottom if query < 0 else everyone).value()
        return
    looking = matrix * scale + (matrix * right) * left_transposed if A.rank else matrix * scale
    for i, query in enumerate(looking.tolist()):
        scores = [sum((a * b for a, b in zip(query, x, strict=True)), ZERO) for x in tokens[: i + 1]]
        best = max(scores)
        chosen = _Mean()
        for x, score in zip(tokens, scores, strict=False):
            if score == best:
                chosen.add(x)
        yield chosen.value()


class _Mean:
    """The mean of the vectors added so far."""

    __slots__ = ("count", "total")

    def __init__(self) -> None:
        self.count = 0
        self.total: Vector = []

    def add(self, x: Vector) -> None:
        self.total = [a + b for a, b in zip(self.total, x, strict=True)] if self.count else list(x)
        self.count += 1

    def value(self) -> Vector:
        return [v / self.count for v in self.total]


def _maximisers(layer: SelfAttention, tokens: list[Vector]) -> Iterator[tuple[Hashable, Sequence[int]]]:
    """For every token the numbers of all tokens with the largest score ``<A x_i, x_l>``, with a name for that set."""
    everyone = "everyone", range(len(tokens))
    if layer.A.is_zero or layer.V.is_zero:
        yield from (everyone for _ in tokens)
        return
    scale, left, left_transposed, right = layer.A.over(EXACT)
    matrix = exact_matrix(tokens)
    if scale == 0 and layer.A.rank == 1:
        keys, queries = (matrix * left).entries(), (matrix * right).entries()
        highest, lowest = max(keys), min(keys)
        top = "top", [l for l, k in enumerate(keys) if k == highest]
        bottom = "bottom", [l for l, k in enumerate(keys) if k == lowest]
        yield from (top if q > 0 else bottom if q < 0 else everyone for q in queries)
        return
    keys = matrix.transpose()
    for start in range(0, len(tokens), ROWS_AT_ONCE):
        part = exact_matrix(tokens[start : start + ROWS_AT_ONCE])
        looking = part * scale + (part * right) * left_transposed if layer.A.rank else part * scale
        for row in (looking * keys).tolist():
            best = max(row)
            chosen = tuple(l for l, score in enumerate(row) if score == best)
            yield chosen, chosen


def _transformed_mean(layer: SelfAttention, tokens: list[Vector], times: list[int], chosen: Sequence[int]) -> Vector:
    """``V`` times the mean of the chosen tokens, each as often as it is there."""
    total = sum(times[l] for l in chosen)
    if len(chosen) == 1:
        mean = tokens[chosen[0]]
    else:
        columns = zip(*(tokens[l] for l in chosen), strict=True)
        weights = [times[l] for l in chosen]
        mean = [
            sum((k * v for k, v in zip(weights, column, strict=True) if v != 0), rational(0)) / total
            for column in columns
        ]
    scale, _, left_transposed, right = layer.V.over(EXACT)
    result = [scale * v for v in mean]
    if layer.V.rank:
        low_rank = ((exact_matrix([mean]) * right) * left_transposed).entries()
        result = [a + b for a, b in zip(result, low_rank, strict=True)]
    return result
