"""The adversary where the barrier promises nothing: equal states for inputs whose ``k``-th largest numbers differ."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from fractions import Fraction
from typing import Final, Literal, final

from ..fields import working_precision
from .collision import Attack, Certificate, Parameter, check_fit, enclosure, lower_bound
from .equations import Slot, System, shifts_of
from .krawczyk import prove_root
from .one_layer import BALLS, FLOAT_DUALS, FLOATS, Arithmetic, OneLayer, Scalar
from .small_algebra import Vector, independent_columns, norm, shortest, size_of
from .targets import BarrierError, Target, kth_largest_target

MOST_STEPS: Final = 40


def collide(
    model: OneLayer, k: int, length: int, gap: float, *, seed: int = 0, starts: int = 12, bits: int = 160
) -> Attack:
    """Search for two inputs in ``[0, 1]^T`` with equal *states* whose ``k``-th largest tokens are ``gap`` apart.

    Statement: a result with status ``"certified"`` holds a `Certificate` of kind ``"states"`` whose ``gap`` is what was *proved*,
    close to the one asked for.  No theorem promises that such inputs exist; ``"not found"`` says nothing about the model.

    Both inputs are free: ``2T`` numbers, ``hn`` equations.  Shortest Gauss–Newton steps from random starts; then ``hn`` tokens
    of the right input are kept as unknowns and Krawczyk's test proves the collision.

    Exactness: as `refute`.

    Cost: a step encodes ``2T`` tokens and solves an ``hn × hn`` system.

    Raises: `BarrierError` for ``k`` or ``gap`` out of range, or a model of the wrong token dimension.

    Example:

    >>> mean = OneLayer(1, 1, 1, lambda x, position, a: [(a.number(0) * x[0], [x[0]])])
    >>> attack = collide(mean, 2, 4, 0.5)
    >>> attack.status, attack.certificate.gap > Fraction(49, 100)
    ('certified', True)
    """
    target = kth_largest_target(k, length)
    check_fit(model, target)
    if not 0 < gap < 1:
        raise BarrierError(f"gap: expected a number between 0 and 1, got {gap!r}")
    rng = random.Random(f"{seed} collide")
    pair = _FreePair(model, target, k, gap)
    best: float | None = None
    reason = f"no start out of {starts} led to equal states"
    for start in range(1, starts + 1):
        z = pair.search(rng)
        if z is None:
            continue
        certificate, residual, why = pair.certify(z, bits)
        if certificate is not None:
            return Attack("certified", certificate, "newton", start, residual, "")
        best = residual if best is None else min(best, residual)
        reason = f"float collisions found, none proved: {why}"
    status: Literal["uncertified", "not found"] = "not found" if best is None else "uncertified"
    return Attack(status, None, "newton" if best is not None else "", starts, best, reason)


def widest_collision(
    model: OneLayer,
    k: int,
    length: int,
    gaps: Sequence[float] = (0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1),
    *,
    seed: int = 0,
    starts: int = 6,
) -> Attack:
    """The first certified result of `collide` for the gaps in the order given, else the last one.

    >>> mean = OneLayer(1, 1, 1, lambda x, position, a: [(a.number(0) * x[0], [x[0]])])
    >>> widest_collision(mean, 2, 4).status
    'certified'
    """
    attack = None
    for gap in gaps:
        attack = collide(model, k, length, gap, seed=seed, starts=starts)
        if attack.certificate is not None:
            return attack
    if attack is None:
        raise BarrierError("gaps: expected at least one, got none")
    return attack


def _line(_curve: int, u: Scalar, _arithmetic: Arithmetic) -> list[Scalar]:
    """The curve of a free scalar token: the parameter is the token."""
    return [u]


@final
class _FreePair:
    """Two sequences in ``[0, 1]^T`` whose ``k``-th largest entries are ``b`` and ``b + gap``, through logistic parameters."""

    __slots__ = ("gap", "k", "model", "shifts", "target")

    def __init__(self, model: OneLayer, target: Target, k: int, gap: float) -> None:
        self.model, self.target, self.k, self.gap = model, target, k, gap
        self.shifts = shifts_of(model, lambda _t, u, _a: [(u + 1) / 2], [(p, p) for p in range(target.length)])

    def tokens(self, z: Vector) -> tuple[list[tuple[float, int, float, float]], list[tuple[float, int, float, float]]]:
        """Per input and position: the token, its own parameter, and its derivatives in that one and in the level."""
        T, k, gap = self.target.length, self.k, self.gap
        level, slope = _logistic(z[2 * T])
        low, d_low = level * (1 - gap), slope * (1 - gap)
        sides = []
        for side, b in enumerate((low, low + gap)):
            entries = []
            for p in range(T):
                s, ds = _logistic(z[side * T + p])
                if p < k - 1:
                    entries.append((b + (1 - b) * s, side * T + p, (1 - b) * ds, (1 - s) * d_low))
                elif p == k - 1:
                    entries.append((b, side * T + p, 0.0, d_low))
                else:
                    entries.append((b * s, side * T + p, b * ds, s * d_low))
            sides.append(entries)
        return sides[0], sides[1]

    def value(self, z: Vector) -> tuple[Vector, list[Vector]]:
        """The difference of the states and its Jacobian in the ``2T + 1`` parameters."""
        T, sides = self.target.length, self.tokens(z)
        slots = tuple(tuple(Slot(p, p, side * T + p, 1, 0.0) for p in range(T)) for side in range(2))
        system = System(self.model, _line, slots[0], slots[1], (), True, 2 * T, self.shifts)
        flat = [entry for entries in sides for entry in entries]
        residual, by_token = system.evaluate([entry[0] for entry in flat], FLOAT_DUALS, FLOATS)
        jacobian = []
        for row in by_token:
            own = [row[at] * d for at, (_, _, d, _) in enumerate(flat)]
            jacobian.append([*own, sum(row[at] * e for at, (_, _, _, e) in enumerate(flat))])
        return residual, jacobian

    def search(self, rng: random.Random) -> Vector | None:
        z = [rng.gauss(0, 2.0) for _ in range(2 * self.target.length + 1)]
        residual, jacobian = self.value(z)
        for _ in range(MOST_STEPS):
            if size_of(residual) < 1e-12:
                return z
            step = shortest(jacobian, [-r for r in residual], 1e-3 * sum(r * r for r in residual))
            if step is None:
                return None
            factor = min(1.0, 3.0 / (norm(step) or 1.0))
            for _ in range(5):
                trial = [max(-30.0, min(30.0, x + factor * d)) for x, d in zip(z, step, strict=True)]
                new_residual, new_jacobian = self.value(trial)
                if norm(new_residual) < norm(residual):
                    break
                factor /= 4
            else:
                return None
            z, residual, jacobian = trial, new_residual, new_jacobian
        return z if size_of(residual) < 1e-9 else None

    def certify(self, z: Vector, bits: int) -> tuple[Certificate | None, float, str]:
        left, right = ([entry[0] for entry in side] for side in self.tokens(z))
        T, unknowns = self.target.length, self.model.heads * self.model.dimension
        # Move tokens that are well inside (0, 1) and away from the k-th largest, so that the target does not move.
        order = self.target.value([[x] for x in right], FLOATS)
        movable = [p for p in range(T) if 1e-6 < right[p] < 1 - 1e-6 and abs(right[p] - order) > 1e-6]
        residual, by_token = self._frozen(left, right, movable)
        chosen = independent_columns(by_token, unknowns)
        if chosen is None:
            return None, size_of(residual), f"fewer than {unknowns} tokens can be moved independently"
        moved = [movable[c] for c in chosen]
        fixed_left = tuple(Slot(p, p, None, 1, Fraction(x)) for p, x in enumerate(left))
        slots = tuple(Slot(p, p, moved.index(p) if p in moved else None, 1, Fraction(x)) for p, x in enumerate(right))
        system = System(self.model, _line, fixed_left, slots, (), True, unknowns, self.shifts)
        proof = prove_root(system, [right[p] for p in moved], bits)
        if isinstance(proof, str):
            return None, size_of(residual), proof
        centre, radius, used = proof
        if any(not radius <= c <= 1 - radius for c in centre):
            return None, size_of(residual), "a token of the solution may leave [0, 1]"
        a = tuple(Parameter(Fraction(x), False) for x in left)
        b = tuple(
            Parameter(centre[moved.index(p)], True) if p in moved else Parameter(Fraction(x), False)
            for p, x in enumerate(right)
        )
        with working_precision(used):
            values = [self.target.value([[enclosure(p, radius)] for p in side], BALLS) for side in (a, b)]
            gap = lower_bound(values[1] - values[0])
        if not gap > 0:
            return None, size_of(residual), "the targets of the two inputs are not certainly different"
        return Certificate("states", self.target.name, None, a, b, radius, gap, used), size_of(residual), ""

    def _frozen(self, left: Vector, right: Vector, movable: list[int]) -> tuple[Vector, list[Vector]]:
        fixed = tuple(Slot(p, p, None, 1, x) for p, x in enumerate(left))
        slots = tuple(Slot(p, p, movable.index(p) if p in movable else None, 1, x) for p, x in enumerate(right))
        system = System(self.model, _line, fixed, slots, (), True, len(movable), self.shifts)
        return system.evaluate([right[p] for p in movable], FLOAT_DUALS, FLOATS)


def _logistic(x: float) -> tuple[float, float]:
    s = 1 / (1 + math.exp(-x))
    return s, s * (1 - s)
