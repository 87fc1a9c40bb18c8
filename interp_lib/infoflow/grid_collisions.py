"""The Lipschitz price: nearly equal states with different targets, where exact equality is not promised.

The barrier needs ``(n + 1) h < m``.  Beyond it a model may still be forced to read its state very sharply.  Let the free tokens take
values on grids.  The ``(n + 1) h`` sums of a layer are additive over tokens, so by the pigeonhole principle (Lemma B) two
choices nearly share them, far closer than the grid is fine.  If their targets differ by ``g``, a read-out with error at most ``ε``
changes by ``g - 2 ε`` over that tiny distance: so large is its Lipschitz constant, at least.

Two searches.  *Meet in the middle* sorts the differences of the left half of the positions and those of the right half into cells.
*Lattice reduction* looks for a combination of few differences with coefficients ``-1, 0, 1`` that nearly vanishes (LLL).
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Final, Literal, final

from ..fields import Ball, IntegerMatrix, fraction, rational, working_precision
from .one_layer import BALLS, FLOATS, OneLayer, Scalar
from .targets import BarrierError, Revealed

Vector = list[float]
BITS: Final = 256
MOST_DIFFERENCES: Final = 60_000


@final
@dataclass(frozen=True, slots=True)
class Price:
    """Two inputs whose states are close and whose targets are not.

    ``left``, ``right``: exact curve parameters of the two inputs; ``face``: the curve whose completion is used.  ``distance``: a certified
    upper bound of the Euclidean distance of the two states.  ``gap``: a certified lower bound of the difference of the targets.
    """

    target: str
    face: int
    left: tuple[Fraction, ...]
    right: tuple[Fraction, ...]
    distance: Fraction
    gap: Fraction
    method: Literal["middle", "lattice"]

    def lipschitz(self, error: Fraction | int = 0) -> Fraction:
        """``(gap - 2 ε) / distance``: what the Lipschitz constant of every read-out with error at most ``ε`` is, at least.

        >>> Price("F", 0, (), (), Fraction(1, 100), Fraction(1, 2), "middle").lipschitz(Fraction(1, 8))
        Fraction(25, 1)
        """
        return max(Fraction(0), (self.gap - 2 * error) / self.distance)

    def units(self, model: OneLayer, error: Fraction | int = 0) -> float:
        """``Lip / √E`` (Lemma L): so many hidden units has every read-out with entries at most 1 in size and error at most ``ε``."""
        return float(self.lipschitz(error)) / math.sqrt(model.heads * model.dimension)


def lipschitz_price(
    model: OneLayer,
    revealed: Revealed,
    *,
    grid: int = 6,
    method: Literal["middle", "lattice"] = "middle",
    seed: int = 0,
) -> Price:
    """The largest certified ratio of target gap to state distance that one search finds.

    Statement: a `Price`, certified in balls; it bounds the Lipschitz constant of *this* model's read-out from below, whatever the
    read-out is.  No claim is made that the search finds the best pair.

    Exactness: the search is in floats, ``distance`` and ``gap`` are certified.

    Cost: ``"middle"``: about ``grid^m`` differences, at most ``MOST_DIFFERENCES`` per half; ``"lattice"``: one reduction of an ``m × (m + q)``
    matrix for each of a few weights.

    Raises: `BarrierError` when model and target do not fit together, ``grid < 2``, or nothing is found.

    Example:

    >>> from .one_layer import random_model
    >>> from .targets import reveal_kth_largest
    >>> price = lipschitz_price(random_model(0, 1, 3, 7), reveal_kth_largest(4, 7))
    >>> price.lipschitz() > 100
    True
    """
    if model.token_dimension != revealed.target.token_dimension:
        raise BarrierError(
            f"model reads tokens of dimension {model.token_dimension}, not those of {revealed.target.name}"
        )
    if grid < 2:
        raise BarrierError(f"grid: expected at least 2 points per curve, got {grid}")
    values = [Fraction(2 * i, grid - 1) - 1 for i in range(grid)]
    features = [[_features(model, revealed, t, u) for u in values] for t in range(revealed.dimension)]
    pairs = _middle(features, seed) if method == "middle" else _lattice(features, seed)
    best: Price | None = None
    for left, right in pairs:
        sides = [tuple(values[i] for i in side) for side in (left, right)]
        found = _certify(model, revealed, sides[0], sides[1], method)
        if found is not None and (best is None or found.lipschitz() > best.lipschitz()):
            best = found
    if best is None:
        raise BarrierError(f"no two choices with different targets were found by {method!r}")
    return best


def recheck_price(model: OneLayer, revealed: Revealed, price: Price) -> bool:
    """Whether the claims of a price hold, from the model, the target and the two inputs alone, at twice the precision.

    >>> from .one_layer import random_model
    >>> from .targets import reveal_kth_largest
    >>> model, revealed = random_model(0, 1, 3, 7), reveal_kth_largest(4, 7)
    >>> recheck_price(model, revealed, lipschitz_price(model, revealed))
    True
    """
    with working_precision(2 * BITS):
        sides = [[Ball(rational(u)) for u in side] for side in (price.left, price.right)]
        tokens = [revealed.sequence(side, price.face, BALLS) for side in sides]
        states = [model.state(side, BALLS) for side in tokens]
        targets = [revealed.target.value(side, BALLS) for side in tokens]
        square = sum(((a - b) ** 2 for a, b in zip(*states, strict=True)), Ball(0))
        close = square <= Ball(rational(price.distance)) ** 2
        apart = abs(targets[0] - targets[1]) >= Ball(rational(price.gap))
        return bool(close) and bool(apart) and price.gap > 0


def _features(model: OneLayer, revealed: Revealed, t: int, u: Fraction) -> Vector:
    """What token ``x_t(u)`` adds to the sums: ``e^s (1, v)`` of every head."""
    found: Vector = []
    token = revealed.curve(t, float(u), FLOATS)
    for score, value in model.heads_of(token, revealed.positions[t], FLOATS):
        weight = math.exp(score)
        found += [weight, *(weight * v for v in value)]
    return found


Choice = tuple[int, ...]


def _middle(features: list[list[Vector]], seed: int) -> Iterator[tuple[Choice, Choice]]:
    """Pairs of choices whose sums differ by the difference of a left and of a right half that share a cell."""
    m, q = len(features), len(features[0][0])
    rng = random.Random(seed)
    halves = []
    for positions in (range(m // 2), range(m // 2, m)):
        choices = list(product(*(range(len(features[t])) for t in positions)))
        sums = [
            [sum(features[t][i][c] for t, i in zip(positions, choice, strict=True)) for c in range(q)]
            for choice in choices
        ]
        differences = []
        for _ in range(min(MOST_DIFFERENCES, len(choices) ** 2)):
            i, k = rng.randrange(len(choices)), rng.randrange(len(choices))
            differences.append(([x - y for x, y in zip(sums[i], sums[k], strict=True)], choices[i], choices[k]))
        halves.append(differences)
    left, right = halves
    size = max(max(map(abs, d)) for d, _, _ in (*left, *right)) or 1.0
    # Cells so fine that each holds about one difference of the right half.
    side = size * max(1, len(right)) ** (-1 / q)
    cells: dict[tuple[int, ...], list[int]] = {}
    for index, (d, _, _) in enumerate(right):
        cells.setdefault(tuple(math.floor(-x / side) for x in d), []).append(index)
    ranked = []
    for at, (d, a, b) in enumerate(left):
        for index in cells.get(tuple(math.floor(x / side) for x in d), ())[:4]:
            e, c, f = right[index]
            if (a, c) != (b, f):
                ranked.append((max(abs(x + y) for x, y in zip(d, e, strict=True)), at, index))
    ranked.sort()
    for _, at, index in ranked[:12]:
        (_, one, other), (_, three, four) = left[at], right[index]
        yield one + three, other + four


def _lattice(features: list[list[Vector]], seed: int) -> Iterator[tuple[Choice, Choice]]:
    """Choices between two grid points per position; LLL proposes which positions differ, and how."""
    m, q = len(features), len(features[0][0])
    rng = random.Random(seed)
    for attempt in range(8):
        ends = [tuple(rng.sample(range(len(row)), 2)) for row in features]
        steps = [[row[b][c] - row[a][c] for c in range(q)] for row, (a, b) in zip(features, ends, strict=True)]
        scale = max(max(map(abs, step)) for step in steps) or 1.0
        weight = 2.0 ** (4 + 3 * attempt)
        rows = [
            [int(i == k) for k in range(m)] + [round(weight * x / scale) for x in step] for i, step in enumerate(steps)
        ]
        for row in IntegerMatrix(rows).lll().tolist():
            signs = [int(v) for v in row[:m]]
            if any(signs) and max(map(abs, signs)) == 1:
                left = tuple(b if s == 1 else a for s, (a, b) in zip(signs, ends, strict=True))
                right = tuple(b if s == -1 else a for s, (a, b) in zip(signs, ends, strict=True))
                yield left, right


def _certify(
    model: OneLayer,
    revealed: Revealed,
    left: Sequence[Fraction],
    right: Sequence[Fraction],
    method: Literal["middle", "lattice"],
) -> Price | None:
    """The completion with the best ratio, enclosed; None if no target differs for certain."""
    best: Price | None = None
    with working_precision(BITS):
        balls: list[list[Scalar]] = [[Ball(rational(u)) for u in side] for side in (left, right)]
        for face in range(revealed.dimension):
            if left[face] == right[face]:
                continue
            tokens = [revealed.sequence(side, face, BALLS) for side in balls]
            states = [model.state(side, BALLS) for side in tokens]
            values = [revealed.target.value(side, BALLS) for side in tokens]
            gap = _down(abs(values[0] - values[1]).lower())
            square = sum(((a - b) ** 2 for a, b in zip(*states, strict=True)), Ball(0))
            if gap <= 0 or not square.is_finite():
                continue
            distance = _up(square.abs_upper().sqrt().upper())
            if distance <= 0:
                continue
            found = Price(revealed.target.name, face, tuple(left), tuple(right), distance, gap, method)
            if best is None or found.lipschitz() > best.lipschitz():
                best = found
    return best


def _down(value: Ball) -> Fraction:
    """A rational not above the value, with a short denominator."""
    return Fraction(math.floor(fraction(value.fmpq()) * (1 << 64)), 1 << 64)


def _up(value: Ball) -> Fraction:
    return Fraction(math.ceil(fraction(value.fmpq()) * (1 << 128)), 1 << 128)
