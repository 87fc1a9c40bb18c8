"""The equations of a collision: equal sums, or equal states, of a one-layer model on two inputs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from .one_layer import FLOATS, Arithmetic, Dual, OneLayer, Scalar, Token
from .targets import BarrierError, Curve


@final
@dataclass(frozen=True, slots=True)
class Slot:
    """One position of one input: the token ``curve(t, sign · w_unknown)``, or ``curve(t, fixed)``."""

    position: int
    curve: int
    unknown: int | None
    sign: int
    fixed: Fraction | float


@final
@dataclass(frozen=True, slots=True)
class System:
    """The equations "left sums = right sums" or "left state = right state" in ``size`` unknowns.

    Every token depends on at most one unknown, so a column of the Jacobian is a derivative in one variable.
    """

    model: OneLayer
    curve: Curve
    left: tuple[Slot, ...]
    right: tuple[Slot, ...]
    common: tuple[tuple[int, Token], ...]
    states: bool
    size: int
    shifts: tuple[float, ...]

    def features(self, slot: Slot, w: Sequence[Scalar], a: Arithmetic, base: Arithmetic) -> list[Scalar]:
        """``e^{s_i - shift_i} (1, v_i)`` for every head, one after the other."""
        if slot.unknown is None:
            u = base.number(slot.fixed)
            a = base
        else:
            u = Dual(w[slot.unknown] * slot.sign, slot.sign)
        return self._weigh(self.model.heads_of(self.curve(slot.curve, u, a), slot.position, a), a)

    def _weigh(self, heads: Sequence[tuple[Scalar, Sequence[Scalar]]], a: Arithmetic) -> list[Scalar]:
        found: list[Scalar] = []
        for (score, value), shift in zip(heads, self.shifts, strict=True):
            weight = a.exp(score - shift)
            found.append(weight)
            found.extend(weight * v for v in value)
        return found

    def evaluate(self, w: Sequence[Scalar], a: Arithmetic, base: Arithmetic) -> tuple[list[Scalar], list[list[Scalar]]]:
        """The left sides minus the right sides, and their Jacobian, in floats or in balls."""
        sums, slopes = [], []
        for slots in (self.left, self.right):
            total = [base.number(0)] * self.model.sums
            columns = [[base.number(0)] * self.size for _ in total]
            for slot in slots:
                for i, f in enumerate(self.features(slot, w, a, base)):
                    if isinstance(f, Dual):
                        assert slot.unknown is not None
                        total[i] = total[i] + f.value
                        columns[i][slot.unknown] = columns[i][slot.unknown] + f.slope
                    else:
                        total[i] = total[i] + f
            sums.append(total)
            slopes.append(columns)
        if not self.states:
            residual = [x - y for x, y in zip(*sums, strict=True)]
            jacobian = [[x - y for x, y in zip(r, s, strict=True)] for r, s in zip(*slopes, strict=True)]
            return residual, jacobian
        extra = self._common_sums(base)
        states = [
            self._state([x + y for x, y in zip(t, extra, strict=True)], c) for t, c in zip(sums, slopes, strict=True)
        ]
        (zl, jl), (zr, jr) = states
        residual = [x - y for x, y in zip(zl, zr, strict=True)]
        return residual, [[x - y for x, y in zip(r, s, strict=True)] for r, s in zip(jl, jr, strict=True)]

    def _common_sums(self, base: Arithmetic) -> list[Scalar]:
        total = [base.number(0)] * self.model.sums
        per_token = [
            self.model.heads_of([base.number(x) for x in token], position, base) for position, token in self.common
        ]
        if self.model.class_key is not None:
            per_token.append([(base.number(s), [base.number(v) for v in value]) for s, value in self.model.class_key])
        for heads in per_token:
            total = [x + y for x, y in zip(total, self._weigh(heads, base), strict=True)]
        return total

    def _state(self, sums: list[Scalar], slopes: list[list[Scalar]]) -> tuple[list[Scalar], list[list[Scalar]]]:
        state, jacobian = [], []
        width = self.model.dimension + 1
        for i in range(self.model.heads):
            weight, moved = sums[i * width], slopes[i * width]
            for j in range(1, width):
                z = sums[i * width + j] / weight
                state.append(z)
                jacobian.append([(a - z * b) / weight for a, b in zip(slopes[i * width + j], moved, strict=True)])
        return state, jacobian


def shifts_of(model: OneLayer, curve: Curve, slots: Sequence[tuple[int, int]]) -> tuple[float, ...]:
    """Per head, about the largest score on the curves: the sums are then of size one and never overflow."""
    best = [-math.inf] * model.heads
    for t, position in slots:
        for u in (-1.0, -0.5, 0.0, 0.5, 1.0):
            for i, (score, _) in enumerate(model.heads_of(curve(t, u, FLOATS), position, FLOATS)):
                best[i] = max(best[i], score)
    if not all(math.isfinite(b) for b in best):
        raise BarrierError("model: a score is not finite on the curves; continuous finite scores are required")
    return tuple(best)
