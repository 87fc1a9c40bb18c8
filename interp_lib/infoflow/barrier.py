"""The barrier: one attention layer with continuous encoders, against any read-out.

**Theorem B.**  Let scores and values be finite and continuous in the token.  If ``(n + 1) h < m``, every one-layer model,
with any read-out whatever, errs by at least ``c / 2`` on some input.

(For *revealed dimension* see `interp_lib.infoflow.targets`.)  The proof is a collision: the ``q = (n + 1) h`` sums ``Φ(u) = Σ_t e^{s_i} (v_i, 1)`` are continuous, so by Borsuk–Ulam
``Φ(u) = Φ(-u)`` for some ``u`` on the boundary of the cube ``[-1, 1]^{q+1}``.  Some ``|u_t| = 1``; under ``R_t`` the two inputs
have equal states, hence equal answers, and targets at least ``c`` apart.

This module finds that collision for a given model and *proves* it:

1. `refute` searches by Newton's method from several starts and then by a homotopy from a linear odd map;
2. Krawczyk's test in balls proves that a true solution exists near the float one;
3. the target gap is enclosed over the whole box, so the `Certificate` holds for the true solution.

`recheck` decides the same claim again with other means: power series in place of dual numbers, the interval Newton
operator in place of Krawczyk's, more bits.  `collide` is the same adversary where the theorem promises nothing.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal, final

from ..fields import Ball, BallMatrix, BallSeries, UndecidedError, fraction, rational, working_precision
from .one_layer import (
    BALL_DUALS,
    BALLS,
    FLOAT_DUALS,
    FLOATS,
    SERIES,
    Arithmetic,
    Dual,
    ModelError,
    OneLayer,
    Scalar,
    Token,
    middle,
)
from .targets import BarrierError, Curve, Revealed, Target, kth_largest_target

Vector = list[float]


# ---------------------------------------------------------------- what the adversary hands over


@final
@dataclass(frozen=True, slots=True)
class Parameter:
    """A curve parameter of one of the two inputs: ``centre`` exactly, or ``centre ± radius`` where ``unknown``."""

    centre: Fraction
    unknown: bool


@final
@dataclass(frozen=True, slots=True)
class Certificate:
    """Two inputs that a one-layer model cannot tell apart, although their targets differ.

    Claim: there is exactly one choice of the unknown parameters within ``radius`` of their centres (in each coordinate)
    for which the two inputs have equal sums (``kind = "sums"``: equal states under every completion) or equal
    states (``kind = "states"``); for it the targets differ by at least ``gap``.  So *any* read-out errs by at least
    `error` on one of the two.

    ``face``: the curve whose parameter is ``±1`` (its completion ``R_face`` is used), None for ``"states"``.
    ``left``, ``right``: the parameters of the two inputs, one per curve.  For ``"sums"``, ``right = -left`` curve by
    curve, except where a parameter is held fixed in both.
    """

    kind: Literal["sums", "states"]
    target: str
    face: int | None
    left: tuple[Parameter, ...]
    right: tuple[Parameter, ...]
    radius: Fraction
    gap: Fraction
    bits: int

    @property
    def error(self) -> Fraction:
        """``gap / 2``: certified for every read-out, of any size."""
        return self.gap / 2

    def explain(self) -> str:
        """The claim in words."""
        what = "sums, hence states under every completion" if self.kind == "sums" else "states"
        return (
            f"certified at {self.bits} bits: two inputs within {float(self.radius):.1e} of the stated ones have equal {what}; "
            f"{self.target} differs by at least {float(self.gap):.6g}; any read-out errs by at least {float(self.error):.6g}"
        )


@final
@dataclass(frozen=True, slots=True)
class Attack:
    """What a search found.

    ``status``: ``"certified"`` (there is a `certificate`), ``"uncertified"`` (a float collision was found, the proof failed:
    nothing is claimed) or ``"not found"``.  ``method``: how the float solution was reached.  ``residual``: the largest difference of
    the sums (or states) at the float solution, *measured*.
    """

    status: Literal["certified", "uncertified", "not found"]
    certificate: Certificate | None
    method: Literal["newton", "homotopy", ""]
    starts: int
    residual: float | None
    reason: str

    def explain(self) -> str:
        """The result in words."""
        if self.certificate is not None:
            return f"{self.certificate.explain()} (found by {self.method}, start {self.starts})"
        return f"{self.status}: {self.reason}"


# ---------------------------------------------------------------- the equations


@final
@dataclass(frozen=True, slots=True)
class _Slot:
    """One position of one input: the token ``curve(t, sign · w_unknown)``, or ``curve(t, fixed)``."""

    position: int
    curve: int
    unknown: int | None
    sign: int
    fixed: Fraction | float


@final
@dataclass(frozen=True, slots=True)
class _System:
    """The equations "left sums = right sums" or "left state = right state" in ``size`` unknowns.

    Every token depends on at most one unknown, so a column of the Jacobian is a derivative in one variable.
    """

    model: OneLayer
    curve: Curve
    left: tuple[_Slot, ...]
    right: tuple[_Slot, ...]
    common: tuple[tuple[int, Token], ...]
    states: bool
    size: int
    shifts: tuple[float, ...]

    def features(self, slot: _Slot, w: Sequence[Scalar], a: Arithmetic, base: Arithmetic) -> list[Scalar]:
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


def _shifts(model: OneLayer, curve: Curve, slots: Sequence[tuple[int, int]]) -> tuple[float, ...]:
    """Per head, about the largest score on the curves: the sums are then of size one and never overflow."""
    best = [-math.inf] * model.heads
    for t, position in slots:
        for u in (-1.0, -0.5, 0.0, 0.5, 1.0):
            for i, (score, _) in enumerate(model.heads_of(curve(t, u, FLOATS), position, FLOATS)):
                best[i] = max(best[i], score)
    if not all(math.isfinite(b) for b in best):
        raise BarrierError("model: a score is not finite on the curves; continuous finite scores are required")
    return tuple(best)


# ---------------------------------------------------------------- small linear algebra in floats


def _solve(matrix: Sequence[Sequence[float]], right: Sequence[float]) -> Vector | None:
    """The solution of a square system by elimination with pivoting, or None if it is singular to working accuracy."""
    size = len(matrix)
    rows = [[*row, b] for row, b in zip(matrix, right, strict=True)]
    scale = max((abs(x) for row in matrix for x in row), default=0.0)
    if not math.isfinite(scale):
        return None
    for k in range(size):
        pivot = max(range(k, size), key=lambda i: abs(rows[i][k]))
        if abs(rows[pivot][k]) <= 1e-14 * scale or scale == 0.0:
            return None
        rows[k], rows[pivot] = rows[pivot], rows[k]
        for i in range(k + 1, size):
            factor = rows[i][k] / rows[k][k]
            if factor:
                rows[i] = [x - factor * y for x, y in zip(rows[i], rows[k], strict=True)]
    x = [0.0] * size
    for k in reversed(range(size)):
        x[k] = (rows[k][size] - sum(rows[k][j] * x[j] for j in range(k + 1, size))) / rows[k][k]
    return x if all(map(math.isfinite, x)) else None


def _inverse(matrix: Sequence[Sequence[float]]) -> list[Vector] | None:
    size = len(matrix)
    columns = [_solve(matrix, [float(i == j) for i in range(size)]) for j in range(size)]
    if any(c is None for c in columns):
        return None
    return [[columns[j][i] for j in range(size)] for i in range(size)]  # type: ignore[index]


def _kernel(matrix: Sequence[Sequence[float]], scales: Sequence[float]) -> Vector | None:
    """A unit vector in the kernel of a matrix with one column more than rows."""
    columns = len(matrix[0])
    for free in sorted(range(columns), key=lambda j: scales[j], reverse=True):
        others = [j for j in range(columns) if j != free]
        x = _solve([[row[j] for j in others] for row in matrix], [-row[free] for row in matrix])
        if x is not None:
            full = [0.0] * columns
            full[free] = 1.0
            for j, value in zip(others, x, strict=True):
                full[j] = value
            length = math.sqrt(sum(v * v for v in full))
            return [v / length for v in full]
    return None


def _shortest(matrix: Sequence[Sequence[float]], right: Sequence[float], damping: float) -> Vector | None:
    """About the shortest solution of a wide system: ``Jᵀ (J Jᵀ + μ)⁻¹ r``."""
    normal = [[sum(a * b for a, b in zip(r, s, strict=True)) for s in matrix] for r in matrix]
    size = sum(normal[i][i] for i in range(len(normal)))
    for i in range(len(normal)):
        normal[i][i] += damping + 1e-14 * size
    y = _solve(normal, right)
    if y is None:
        return None
    return [sum(y[i] * matrix[i][j] for i in range(len(matrix))) for j in range(len(matrix[0]))]


def _size(vector: Sequence[float]) -> float:
    worst = max((abs(x) for x in vector), default=0.0)
    return worst if math.isfinite(worst) and not any(x != x for x in vector) else math.inf


# ---------------------------------------------------------------- Theorem B's collision

MOST_STEPS: Final = 40
CONVERGED: Final = 1e-12


def refute(
    model: OneLayer,
    revealed: Revealed,
    *,
    seed: int = 0,
    starts: int = 30,
    curves: Sequence[int] | None = None,
    bits: int = 160,
    methods: Sequence[Literal["newton", "homotopy"]] = ("newton", "homotopy"),
) -> Attack:
    """Find and certify the collision that Theorem B promises for a model with ``(n + 1) h < m``.

    Statement: a result with status ``"certified"`` holds a `Certificate`.  Any other status claims nothing: the theorem says
    that a collision exists, not that this search finds or proves it (a singular or exceptional solution defeats the test).

    ``curves``: which ``q + 1`` of the ``m`` curves to use, the first ones by default; the others stay at ``u = 0``.
    ``starts``: Newton's method starts on the kernel of the linear part of the odd map, then at random points.

    Exactness: the search is in floats and proves nothing; the certificate is in balls.

    Cost: a Newton step encodes ``2 (q + 1)`` tokens and solves a ``q × q`` system.

    Raises: `BarrierError` when ``(n + 1) h ≥ m``, or model and target do not fit together.

    Example:

    >>> from .targets import reveal_kth_largest
    >>> model = OneLayer(1, 1, 1, lambda x, position, a: [(a.sin(3 * x[0] + position), [a.exp(x[0])])])
    >>> attack = refute(model, reveal_kth_largest(3, 5))
    >>> attack.status, attack.certificate.error > Fraction(16, 100)
    ('certified', True)
    """
    _check_fit(model, revealed.target)
    q = model.sums
    if not revealed.forbids(model):
        raise BarrierError(
            f"model: (n + 1) h = {q} is not below the revealed dimension {revealed.dimension} of {revealed.target.name}; "
            "the barrier says nothing (see collide)"
        )
    chosen = tuple(range(q + 1)) if curves is None else tuple(curves)
    if len(set(chosen)) != q + 1 or not all(0 <= t < revealed.dimension for t in chosen):
        raise BarrierError(f"curves: expected {q + 1} different numbers below {revealed.dimension}, got {chosen}")
    odd = _OddMap(model, revealed, chosen)
    rng = random.Random(f"{seed} refute")
    tried = 0
    best: tuple[float, str] | None = None
    reasons: list[str] = []
    for method in methods:
        for start in range(starts if method == "newton" else 3):
            tried += 1
            u = odd.newton(odd.start(start, rng)) if method == "newton" else odd.homotopy(rng)
            if u is None:
                continue
            certificate, residual, reason = odd.certify(u, bits)
            if certificate is not None:
                return Attack("certified", certificate, method, tried, residual, "")
            reasons.append(reason)
            best = min(best or (math.inf, method), (residual, method))
    if best is None:
        return Attack("not found", None, "", tried, None, f"no start out of {tried} led to a float collision")
    reason = f"float collisions found, none proved: {reasons[-1]}"
    return Attack("uncertified", None, best[1], tried, best[0], reason)  # type: ignore[arg-type]


def _check_fit(model: OneLayer, target: Target) -> None:
    if model.token_dimension != target.token_dimension:
        raise BarrierError(
            f"model reads tokens of dimension {model.token_dimension}; {target.name} has dimension {target.token_dimension}"
        )
    if model.length is not None and model.length != target.length:
        raise BarrierError(f"model reads {model.length} tokens; {target.name} needs {target.length}")


@final
class _OddMap:
    """``g(u) = Φ(u) - Φ(-u)`` on the boundary of the cube ``[-1, 1]^{q+1}``, in floats, and its face systems in balls."""

    __slots__ = ("chosen", "model", "q", "revealed", "shifts", "whole")

    def __init__(self, model: OneLayer, revealed: Revealed, chosen: tuple[int, ...]) -> None:
        self.model, self.revealed, self.chosen, self.q = model, revealed, chosen, model.sums
        self.shifts = _shifts(model, revealed.curve, [(t, revealed.positions[t]) for t in chosen])
        self.whole = self._system(None)

    def _system(self, face: int | None) -> _System:
        """The equations with all ``q + 1`` parameters unknown, or with number ``face`` fixed at 1 (left) and -1 (right)."""
        left, right = [], []
        count = 0
        for k, t in enumerate(self.chosen):
            position = self.revealed.positions[t]
            if k == face:
                left.append(_Slot(position, t, None, 1, Fraction(1)))
                right.append(_Slot(position, t, None, 1, Fraction(-1)))
            else:
                left.append(_Slot(position, t, count, 1, 0.0))
                right.append(_Slot(position, t, count, -1, 0.0))
                count += 1
        return _System(self.model, self.revealed.curve, tuple(left), tuple(right), (), False, count, self.shifts)

    def value(self, u: Sequence[float]) -> tuple[Vector, list[Vector]]:
        return self.whole.evaluate(u, FLOAT_DUALS, FLOATS)

    def start(self, number: int, rng: random.Random) -> Vector:
        if number == 0:
            # An odd map is linear to first order; its linear part vanishes on a line.
            jacobian = self.value([0.0] * (self.q + 1))[1]
            line = _kernel(jacobian, [rng.random() for _ in range(self.q + 1)])
            if line is not None:
                return _onto_boundary(line)
        return _onto_boundary([rng.uniform(-1, 1) for _ in range(self.q + 1)])

    def newton(self, u: Vector) -> Vector | None:
        """Damped Newton on the boundary: a step in the current face, then back onto the boundary along the ray."""
        residual, jacobian = self.value(u)
        scale = max(_size(row) for row in jacobian) or 1.0
        for _ in range(MOST_STEPS):
            if _size(residual) <= CONVERGED * scale:
                return u
            face = max(range(len(u)), key=lambda k: abs(u[k]))
            free = [k for k in range(len(u)) if k != face]
            reduced = [[row[k] for k in free] for row in jacobian]
            step = _shortest(reduced, [-r for r in residual], 1e-3 * sum(r * r for r in residual))
            if step is None:
                return None
            length = _size(step)
            factor = min(1.0, 0.7 / length) if length > 0 else 1.0
            for _ in range(7):
                trial = list(u)
                for k, s in zip(free, step, strict=True):
                    trial[k] += factor * s
                trial = _onto_boundary(trial)
                new_residual, new_jacobian = self.value(trial)
                if _norm(new_residual) < _norm(residual):
                    break
                factor /= 3
            else:
                return None
            u, residual, jacobian = trial, new_residual, new_jacobian
        return u if _size(residual) <= 1e-9 * scale else None

    def homotopy(self, rng: random.Random, most_steps: int = 4000) -> Vector | None:
        """Follow the zero of ``(1 - s) A u + s g(u)`` from ``s = 0`` to ``s = 1`` along the boundary of the cube.

        ``A`` is linear, so at ``s = 0`` there is one antipodal pair of zeros.  For generic ``A`` the zeros form curves that
        come in antipodal pairs; the one from ``s = 0`` cannot return there, so it ends at ``s = 1``, in a collision.
        """
        path = _Path(self, rng)
        return path.follow(most_steps)

    def certify(self, u: Vector, bits: int) -> tuple[Certificate | None, float, str]:
        """Prove a zero near ``u`` on its face, and enclose the target gap there."""
        face = max(range(len(u)), key=lambda k: abs(u[k]))
        sign = 1.0 if u[face] > 0 else -1.0
        # The antipode is a solution too: choose the one on the face u_t = 1.
        w = [x * sign for k, x in enumerate(u) if k != face]
        system = self._system(face)
        residual = _size(system.evaluate(w, FLOAT_DUALS, FLOATS)[0])
        proof = _prove_root(system, w, bits)
        if isinstance(proof, str):
            return None, residual, proof
        centre, radius, used = proof
        if any(abs(c) + radius > 1 for c in centre):
            return None, residual, "the solution lies too near the edge of its face"
        whole = list(centre)
        whole.insert(face, Fraction(1))
        left, right = [], []
        for t in range(self.revealed.dimension):
            if t in self.chosen:
                k = self.chosen.index(t)
                left.append(Parameter(whole[k], k != face))
                right.append(Parameter(-whole[k], k != face))
            else:
                left.append(Parameter(Fraction(0), False))
                right.append(Parameter(Fraction(0), False))
        t = self.chosen[face]
        with working_precision(used):
            values = []
            for side in (left, right):
                balls = [_enclosure(p, radius) for p in side]
                values.append(self.revealed.target.value(self.revealed.sequence(balls, t, BALLS), BALLS))
            gap = _lower_bound(values[0] - values[1])
        if not gap > 0:
            return None, residual, "the targets of the two inputs are not certainly different"
        name = self.revealed.target.name
        return Certificate("sums", name, t, tuple(left), tuple(right), radius, gap, used), residual, ""


def _onto_boundary(u: Sequence[float]) -> Vector:
    size = max(abs(x) for x in u) or 1.0
    return [x / size for x in u]


def _norm(vector: Sequence[float]) -> float:
    total = math.fsum(x * x for x in vector) if all(map(math.isfinite, vector)) else math.inf
    return math.sqrt(total)


@final
class _Path:
    """A curve of zeros of ``H(u, s) = (1 - s) A u + s g(u)``, followed face by face with predictor and corrector."""

    __slots__ = ("A", "face", "map", "s", "scale", "u")

    def __init__(self, odd: _OddMap, rng: random.Random) -> None:
        self.map = odd
        jacobian = odd.value([0.0] * (odd.q + 1))[1]
        sizes = [_size(row) or 1.0 for row in jacobian]
        self.A = [[x + 0.3 * size * rng.gauss(0, 1) for x in row] for row, size in zip(jacobian, sizes, strict=True)]
        self.scale = sizes
        line = _kernel(self.A, [rng.random() for _ in range(odd.q + 1)])
        self.u = _onto_boundary(line if line is not None else [1.0] * (odd.q + 1))
        self.s = 0.0
        self.face = max(range(len(self.u)), key=lambda k: abs(self.u[k]))
        self.u[self.face] = math.copysign(1.0, self.u[self.face])

    def _value(self, u: Vector, s: float) -> tuple[Vector, list[Vector]]:
        """``H`` and its derivatives in all ``u`` and in ``s``, rows scaled to size one."""
        g, jacobian = self.map.value(u)
        linear = [sum(a * x for a, x in zip(row, u, strict=True)) for row in self.A]
        value = [((1 - s) * a + s * b) / c for a, b, c in zip(linear, g, self.scale, strict=True)]
        slopes = [
            [*(((1 - s) * a + s * b) / c for a, b in zip(row, other, strict=True)), (y - x) / c]
            for row, other, x, y, c in zip(self.A, jacobian, linear, g, self.scale, strict=True)
        ]
        return value, slopes

    def _correct(self, u: Vector, s: float, normal: Vector, offset: float) -> tuple[Vector, float] | None:
        """Newton for ``H = 0`` in the plane ``<normal, (w, s)> = offset``, ``w`` the coordinates inside the face."""
        free = [k for k in range(len(u)) if k != self.face]
        for _ in range(6):
            value, slopes = self._value(u, s)
            position = [*(u[k] for k in free), s]
            off = sum(a * b for a, b in zip(normal, position, strict=True)) - offset
            if _size(value) < 1e-11 and abs(off) < 1e-12:
                return u, s
            matrix = [[row[k] for k in (*free, len(u))] for row in slopes] + [list(normal)]
            step = _solve(matrix, [*(-v for v in value), -off])
            if step is None or _size(step) > 0.5:
                return None
            u = list(u)
            for k, d in zip(free, step, strict=False):
                u[k] += d
            s += step[-1]
        value, _ = self._value(u, s)
        return (u, s) if _size(value) < 1e-9 else None

    def follow(self, most_steps: int) -> Vector | None:
        q = self.map.q
        u, s = self.u, self.s
        before: Vector | None = None
        step = 0.05
        for _ in range(most_steps):
            free = [k for k in range(q + 1) if k != self.face]
            slopes = self._value(u, s)[1]
            matrix = [[row[k] for k in (*free, q + 1)] for row in slopes]
            tangent = _kernel(matrix, [abs(x) for x in before] if before else [0.0] * q + [1.0])
            if tangent is None:
                return None
            if before is None:
                forward = tangent[-1] > 0
            else:
                forward = sum(a * b for a, b in zip(tangent, before, strict=True)) > 0
            if not forward:
                tangent = [-x for x in tangent]
            trial = list(u)
            for k, d in zip(free, tangent, strict=False):
                trial[k] += step * d
            offset = sum(
                a * b for a, b in zip(tangent, [*(trial[k] for k in free), s + step * tangent[-1]], strict=True)
            )
            found = self._correct(trial, s + step * tangent[-1], tangent, offset)
            if found is None or (
                before is not None and step > 1e-3 and sum(a * b for a, b in zip(tangent, before, strict=True)) < 0.5
            ):
                step /= 2
                if step < 1e-7:
                    return None
                continue
            new_u, new_s = found
            over = max(free, key=lambda k: abs(new_u[k]))
            if new_s >= 1 and abs(new_u[over]) <= 1:
                last = self._correct(new_u, 1.0, [0.0] * q + [1.0], 1.0)
                return None if last is None else _onto_boundary(last[0])
            if abs(new_u[over]) > 1:
                # Stop exactly on the edge, then go on in the neighbouring face.
                normal = [float(k == over) for k in free] + [0.0]
                edge = self._correct(new_u, new_s, normal, math.copysign(1.0, new_u[over]))
                if edge is None:
                    step /= 2
                    if step < 1e-7:
                        return None
                    continue
                u, s = edge
                u = [max(-1.0, min(1.0, x)) for x in u]
                before = self._turn(u, s, over)
                if before is None:
                    return None
                self.face = over
                u[over] = math.copysign(1.0, u[over])
                step = min(step, 0.02)
                continue
            if new_s < -0.05:
                return None
            u, s, before = new_u, new_s, tangent
            step = min(step * 1.4, 0.15)
        return None

    def _turn(self, u: Vector, s: float, over: int) -> Vector | None:
        """The direction in which the path goes on in face ``over``: away from the edge to the old face."""
        q = self.map.q
        free = [k for k in range(q + 1) if k != over]
        matrix = [[row[k] for k in (*free, q + 1)] for row in self._value(u, s)[1]]
        tangent = _kernel(matrix, [1.0] * (q + 1))
        if tangent is None:
            return None
        at = free.index(self.face)
        inward = -math.copysign(1.0, u[self.face])
        return tangent if tangent[at] * inward > 0 else [-x for x in tangent]


# ---------------------------------------------------------------- Krawczyk's test


def _prove_root(system: _System, w: Sequence[float], bits: int) -> tuple[list[Fraction], Fraction, int] | str:
    """Centre and radius of a box that holds exactly one zero of ``system``, or why there is none to show.

    Krawczyk: for any matrix ``C`` and a box ``X = c + [-ρ, ρ]^q``, if ``-C G(c) + (I - C J(X)) [-ρ, ρ]^q`` lies in the
    interior of ``[-ρ, ρ]^q``, then ``G`` has exactly one zero in ``X``.
    """
    _, jacobian = system.evaluate(w, FLOAT_DUALS, FLOATS)
    inverse = _inverse(jacobian)
    if inverse is None:
        return "the Jacobian at the float solution is singular to working accuracy"
    reason = ""
    for used, digits in ((bits, 40), (bits, 60), (2 * bits, 90)):
        with working_precision(used):
            centre = _polish(system, w, inverse, used)
            if centre is None:
                return "Newton's method in balls does not settle"
            radius = Fraction(1, 1 << digits)
            if _krawczyk(system, centre, radius, inverse):
                return centre, radius, used
            reason = f"Krawczyk's test fails at radius 2^-{digits} with {used} bits"
    return reason


def _polish(system: _System, w: Sequence[float], inverse: list[Vector], bits: int) -> list[Fraction] | None:
    """Simplified Newton steps on midpoints, from float accuracy to about ``bits`` bits."""
    centre = [Ball(x) for x in w]
    for _ in range(14):
        residual, _ = system.evaluate(centre, BALL_DUALS, BALLS)
        step = [sum(row[i] * r.mid() for i, r in enumerate(residual)) for row in inverse]
        if not all(s.is_finite() and abs(s) < 1 for s in step):
            return None
        centre = [(c - s).mid() for c, s in zip(centre, step, strict=True)]
        if all(abs(s) < rational(Fraction(1, 1 << (bits - 30))) for s in step):
            break
    return [_dyadic(c, bits) for c in centre]


def _krawczyk(system: _System, centre: list[Fraction], radius: Fraction, inverse: list[Vector]) -> bool:
    size = system.size
    at_centre = system.evaluate([Ball(rational(c)) for c in centre], BALL_DUALS, BALLS)[0]
    box = [_enclosure(Parameter(c, True), radius) for c in centre]
    slopes = system.evaluate(box, BALL_DUALS, BALLS)[1]
    rho = Ball(rational(radius))
    for i in range(size):
        moved = -sum(inverse[i][k] * at_centre[k] for k in range(size))
        for j in range(size):
            entry = (1 if i == j else 0) - sum(inverse[i][k] * slopes[k][j] for k in range(size))
            moved = moved + entry.abs_upper() * Ball(0, 1) * rho
        if not (moved.is_finite() and abs(moved) < rho):
            return False
    return True


def _dyadic(value: Ball, bits: int) -> Fraction:
    """The midpoint as a fraction, rounded to a multiple of ``2^-bits``."""
    return Fraction(round(fraction(value.mid().fmpq()) * (1 << bits)), 1 << bits)


def _enclosure(parameter: Parameter, radius: Fraction) -> Ball:
    centre = Ball(rational(parameter.centre))
    return centre + Ball(0, 1) * Ball(rational(radius)) if parameter.unknown else centre


def _lower_bound(difference: Ball) -> Fraction:
    """A rational lower bound of ``|difference|``, rounded down to a multiple of ``2^-48``; 0 if nothing is certain."""
    least = difference.abs_lower()
    if not (difference.is_finite() and least > 0):
        return Fraction(0)
    return Fraction(max(0, math.floor(fraction(least.lower().fmpq()) * (1 << 48))), 1 << 48)


# ---------------------------------------------------------------- beyond the theorem: scalar order statistics


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
    _check_fit(model, target)
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
        self.shifts = _shifts(model, lambda _t, u, _a: [(u + 1) / 2], [(p, p) for p in range(target.length)])

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
        slots = tuple(tuple(_Slot(p, p, side * T + p, 1, 0.0) for p in range(T)) for side in range(2))
        system = _System(self.model, _line, slots[0], slots[1], (), True, 2 * T, self.shifts)
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
            if _size(residual) < 1e-12:
                return z
            step = _shortest(jacobian, [-r for r in residual], 1e-3 * sum(r * r for r in residual))
            if step is None:
                return None
            factor = min(1.0, 3.0 / (_norm(step) or 1.0))
            for _ in range(5):
                trial = [max(-30.0, min(30.0, x + factor * d)) for x, d in zip(z, step, strict=True)]
                new_residual, new_jacobian = self.value(trial)
                if _norm(new_residual) < _norm(residual):
                    break
                factor /= 4
            else:
                return None
            z, residual, jacobian = trial, new_residual, new_jacobian
        return z if _size(residual) < 1e-9 else None

    def certify(self, z: Vector, bits: int) -> tuple[Certificate | None, float, str]:
        left, right = ([entry[0] for entry in side] for side in self.tokens(z))
        T, unknowns = self.target.length, self.model.heads * self.model.dimension
        # Move tokens that are well inside (0, 1) and away from the k-th largest, so that the target does not move.
        order = self.target.value([[x] for x in right], FLOATS)
        movable = [p for p in range(T) if 1e-6 < right[p] < 1 - 1e-6 and abs(right[p] - order) > 1e-6]
        residual, by_token = self._frozen(left, right, movable)
        chosen = _independent_columns(by_token, unknowns)
        if chosen is None:
            return None, _size(residual), f"fewer than {unknowns} tokens can be moved independently"
        moved = [movable[c] for c in chosen]
        fixed_left = tuple(_Slot(p, p, None, 1, Fraction(x)) for p, x in enumerate(left))
        slots = tuple(_Slot(p, p, moved.index(p) if p in moved else None, 1, Fraction(x)) for p, x in enumerate(right))
        system = _System(self.model, _line, fixed_left, slots, (), True, unknowns, self.shifts)
        proof = _prove_root(system, [right[p] for p in moved], bits)
        if isinstance(proof, str):
            return None, _size(residual), proof
        centre, radius, used = proof
        if any(not radius <= c <= 1 - radius for c in centre):
            return None, _size(residual), "a token of the solution may leave [0, 1]"
        a = tuple(Parameter(Fraction(x), False) for x in left)
        b = tuple(
            Parameter(centre[moved.index(p)], True) if p in moved else Parameter(Fraction(x), False)
            for p, x in enumerate(right)
        )
        with working_precision(used):
            values = [self.target.value([[_enclosure(p, radius)] for p in side], BALLS) for side in (a, b)]
            gap = _lower_bound(values[1] - values[0])
        if not gap > 0:
            return None, _size(residual), "the targets of the two inputs are not certainly different"
        return Certificate("states", self.target.name, None, a, b, radius, gap, used), _size(residual), ""

    def _frozen(self, left: Vector, right: Vector, movable: list[int]) -> tuple[Vector, list[Vector]]:
        fixed = tuple(_Slot(p, p, None, 1, x) for p, x in enumerate(left))
        slots = tuple(_Slot(p, p, movable.index(p) if p in movable else None, 1, x) for p, x in enumerate(right))
        system = _System(self.model, _line, fixed, slots, (), True, len(movable), self.shifts)
        return system.evaluate([right[p] for p in movable], FLOAT_DUALS, FLOATS)


def _logistic(x: float) -> tuple[float, float]:
    s = 1 / (1 + math.exp(-x))
    return s, s * (1 - s)


def _independent_columns(matrix: list[Vector], count: int) -> list[int] | None:
    """``count`` columns of a wide matrix, chosen greedily by what is left after projecting on those before."""
    columns = [list(column) for column in zip(*matrix, strict=True)] if matrix and matrix[0] else []
    chosen: list[int] = []
    for _ in range(count):
        sizes = [-1.0 if j in chosen else _norm(c) for j, c in enumerate(columns)]
        if not sizes or max(sizes) <= 1e-13:
            return None
        best = max(range(len(sizes)), key=lambda j: sizes[j])
        chosen.append(best)
        unit = [x / sizes[best] for x in columns[best]]
        for j, c in enumerate(columns):
            if j not in chosen:
                part = sum(a * b for a, b in zip(unit, c, strict=True))
                columns[j] = [x - part * a for x, a in zip(c, unit, strict=True)]
    return chosen


# ---------------------------------------------------------------- the inputs, and the model's own answers


@final
@dataclass(frozen=True, slots=True)
class Verdict:
    """The model's own two answers on the two colliding inputs, enclosed.

    ``answers``, ``targets``: for the left and the right input.  ``together``: a certified lower bound of the sum of the two
    errors.  ``worst``: a certified lower bound of the larger error.  ``refuted``: whether ``together ≥`` the guaranteed error.
    """

    answers: tuple[Ball, Ball]
    targets: tuple[Ball, Ball]
    together: Fraction
    worst: Fraction
    refuted: bool


def inputs(certificate: Certificate, revealed: Revealed | Target) -> tuple[list[list[float]], list[list[float]]]:
    """The two inputs rounded to floats: what one feeds to the model to *see* the failure.

    >>> from .targets import reveal_kth_largest
    >>> model = OneLayer(1, 1, 1, lambda x, p, a: [(a.sin(3 * x[0] + p), [a.exp(x[0])])])
    >>> left, right = inputs(refute(model, reveal_kth_largest(3, 5)).certificate, reveal_kth_largest(3, 5))
    >>> abs(model.state(left)[0] - model.state(right)[0]) < 1e-9
    True
    """
    sides = []
    for side in (certificate.left, certificate.right):
        tokens = _tokens(certificate, revealed, [float(p.centre) for p in side], FLOATS)
        sides.append([[float(x) for x in token] for token in tokens])
    return sides[0], sides[1]


def _tokens(
    certificate: Certificate, revealed: Revealed | Target, parameters: Sequence[Scalar], arithmetic: Arithmetic
) -> list[Sequence[Scalar]]:
    if isinstance(revealed, Revealed):
        if certificate.kind != "sums" or certificate.face is None:
            raise BarrierError('certificate: kind "states" belongs to a plain target, not to a revealed one')
        return revealed.sequence(parameters, certificate.face, arithmetic)
    if certificate.kind != "states":
        raise BarrierError('certificate: kind "sums" belongs to a revealed target with its curves and completions')
    return [[u] for u in parameters]


def confront(model: OneLayer, certificate: Certificate, revealed: Revealed | Target, bits: int = 0) -> Verdict:
    """The model's own answers on the certified pair, in balls.

    Statement: both answers are the same real number ``ŷ``, so ``|ŷ - F| + |ŷ - F'| ≥ gap`` and the larger error is at least
    ``gap / 2``.  Here the two errors are enclosed *without* using that, from the model's weights alone.

    Exactness: certified; ``bits`` is the precision of the certificate unless given.

    Raises: `BarrierError` when certificate and target do not belong together; `ModelError` when there is no read-out.

    Example:

    >>> from .targets import reveal_kth_largest
    >>> model = OneLayer(1, 1, 1, lambda x, p, a: [(a.sin(3 * x[0] + p), [a.exp(x[0])])], lambda z, a: z[0])
    >>> median = reveal_kth_largest(3, 5)
    >>> confront(model, refute(model, median).certificate, median).refuted
    True
    """
    if model.read_out is None:
        raise ModelError("read_out: this model has none, so it gives no answers")
    with working_precision(bits or certificate.bits):
        answers, targets, errors = [], [], []
        for side in (certificate.left, certificate.right):
            tokens = _tokens(certificate, revealed, [_enclosure(p, certificate.radius) for p in side], BALLS)
            target = revealed.target if isinstance(revealed, Revealed) else revealed
            answers.append(model.answer(tokens, BALLS))
            targets.append(target.value(tokens, BALLS))
            errors.append(_lower_bound(answers[-1] - targets[-1]))
    together, worst = sum(errors, Fraction(0)), max(errors)
    return Verdict(
        (answers[0], answers[1]), (targets[0], targets[1]), together, worst, together >= certificate.error > 0
    )


# ---------------------------------------------------------------- the independent re-check


@final
@dataclass(frozen=True, slots=True)
class Recheck:
    """``status``: ``"confirmed"`` (every claim of the certificate was proved again), ``"rejected"`` (the certificate is malformed
    or claims more than holds) or ``"undecided"``.  ``gap``: the gap proved here."""

    status: Literal["confirmed", "rejected", "undecided"]
    gap: Fraction
    reason: str


def recheck(model: OneLayer, revealed: Revealed | Target, certificate: Certificate, bits: int = 0) -> Recheck:
    """Prove a certificate again, from the model, the target and the certificate alone.

    Statement: ``"confirmed"`` means that the two inputs exist, that the model's states agree on them, and that the targets
    differ by at least the stated gap.

    It shares nothing with the search but the model and the curves: derivatives are power series of the ball library, existence comes
    from the interval Newton operator ``c - J(X)⁻¹ G(c) ⊂ int X`` with a rigorous linear solver, the precision is higher.

    Exactness: certified.

    Cost: two evaluations of every token at twice the bits.

    Example:

    >>> from .targets import reveal_kth_largest
    >>> model = OneLayer(1, 1, 1, lambda x, position, a: [(a.sin(3 * x[0] + position), [a.exp(x[0])])])
    >>> median = reveal_kth_largest(3, 5)
    >>> certificate = refute(model, median).certificate
    >>> recheck(model, median, certificate).status
    'confirmed'
    """
    form = _malformed(model, revealed, certificate)
    if form:
        return Recheck("rejected", Fraction(0), form)
    try:
        with working_precision(bits or 2 * certificate.bits):
            return _recheck(model, revealed, certificate)
    except (UndecidedError, ZeroDivisionError) as problem:
        return Recheck("undecided", Fraction(0), str(problem))


def _malformed(model: OneLayer, revealed: Revealed | Target, certificate: Certificate) -> str:
    """Everything about a certificate that is a matter of reading, not of analysis."""
    left, right, r = certificate.left, certificate.right, certificate.radius
    if certificate.gap <= 0 or r <= 0:
        return "gap and radius must be positive"
    if isinstance(revealed, Revealed):
        if certificate.kind != "sums" or certificate.face is None:
            return 'a revealed target needs a certificate of kind "sums"'
        if len(left) != revealed.dimension or len(right) != revealed.dimension or not 0 <= certificate.face < len(left):
            return f"expected {revealed.dimension} parameters per input"
        for p, o in zip(left, right, strict=True):
            if p.unknown != o.unknown or (p.centre != -o.centre and (p.unknown or p.centre != o.centre)):
                return "the parameters of the right input are not those of the left one with the sign changed"
        ends = left[certificate.face], right[certificate.face]
        if any(e.unknown for e in ends) or {e.centre for e in ends} != {Fraction(1), Fraction(-1)}:
            return "the parameter of the named face is not ±1"
        unknowns, low = sum(p.unknown for p in left), Fraction(-1)
        needed = model.sums
    else:
        if certificate.kind != "states" or len(left) != revealed.length or len(right) != revealed.length:
            return f'a plain target needs a certificate of kind "states" with {revealed.length} tokens per input'
        if any(p.unknown for p in left):
            return "the left input of such a certificate is exactly known"
        unknowns, low = sum(p.unknown for p in right), Fraction(0)
        needed = model.heads * model.dimension
    if unknowns != needed:
        return f"expected {needed} unknowns, got {unknowns}"
    for p in (*left, *right):
        reach = r if p.unknown else 0
        if not low <= p.centre - reach or not p.centre + reach <= 1:
            return "a parameter may leave its interval"
    return ""


def _recheck(model: OneLayer, revealed: Revealed | Target, certificate: Certificate) -> Recheck:
    target = revealed.target if isinstance(revealed, Revealed) else revealed
    sums = certificate.kind == "sums"
    r = Ball(0, 1) * Ball(rational(certificate.radius))
    numbers: dict[int, int] = {}
    for t, parameter in enumerate(certificate.left if sums else certificate.right):
        if parameter.unknown:
            numbers[t] = len(numbers)

    def token(t: int, u: Scalar) -> Sequence[Scalar]:
        return revealed.curve(t, u, SERIES) if isinstance(revealed, Revealed) else [u]

    def moments(side: Sequence[Parameter], wide: bool, sign: int) -> tuple[list[Ball], list[list[Ball]]]:
        """Per head ``Σ e^{s} (1, v)`` over the tokens of the curves, and the derivatives in the unknowns."""
        total = [Ball(0)] * model.sums
        slopes = [[Ball(0)] * len(numbers) for _ in total]
        for t, parameter in enumerate(side):
            position = revealed.positions[t] if isinstance(revealed, Revealed) else t
            u: Scalar = Ball(rational(parameter.centre))
            if parameter.unknown:
                u = BallSeries([u + r if wide else u, Ball(sign)], prec=2)
            row: list[Scalar] = []
            for i, (score, value) in enumerate(model.heads_of(token(t, u), position, SERIES)):
                weight = SERIES.exp(score - scale[i])
                row += [weight, *(weight * v for v in value)]
            for i, entry in enumerate(row):
                series = isinstance(entry, BallSeries)
                total[i] += entry[0] if series else entry
                if series and parameter.unknown:
                    slopes[i][numbers[t]] += entry[1]
        return total, slopes

    # A common factor per head: the score of the first curve's token, rounded.
    first = certificate.left[0].centre
    where = revealed.positions[0] if isinstance(revealed, Revealed) else 0
    scale = [middle(s) for s, _ in model.heads_of(token(0, Ball(rational(first))), where, SERIES)]
    turn = -1 if sums else 1
    equations, jacobian = [], []
    for wide in (False, True):
        left, left_slopes = moments(certificate.left, wide, 1)
        right, right_slopes = moments(certificate.right, wide, turn)
        if not sums:
            left, left_slopes = _divided(model, left, left_slopes, scale)
            right, right_slopes = _divided(model, right, right_slopes, scale)
        if wide:
            jacobian = [
                [x - y for x, y in zip(a, b, strict=True)] for a, b in zip(left_slopes, right_slopes, strict=True)
            ]
        else:
            equations = [x - y for x, y in zip(left, right, strict=True)]
    shift = BallMatrix(jacobian).solve(BallMatrix(len(equations), 1, equations)).entries()
    radius = Ball(rational(certificate.radius))
    if not all(s.is_finite() and abs(s) < radius for s in shift):
        return Recheck("undecided", Fraction(0), "the interval Newton operator does not map the box into itself")
    values = []
    for side in (certificate.left, certificate.right):
        balls = [Ball(rational(p.centre)) + (r if p.unknown else 0) for p in side]
        values.append(target.value(_tokens(certificate, revealed, balls, BALLS), BALLS))
    difference = abs(values[0] - values[1])
    proved = _lower_bound(difference)
    if difference >= rational(certificate.gap):
        return Recheck("confirmed", proved, "")
    if difference < rational(certificate.gap):
        return Recheck("rejected", proved, "the targets are certainly closer than stated")
    return Recheck("undecided", proved, "the stated gap is not certain at this precision")


def _divided(
    model: OneLayer, sums: list[Ball], slopes: list[list[Ball]], scale: Sequence[float]
) -> tuple[list[Ball], list[list[Ball]]]:
    """States ``N / D`` and their derivatives ``(N' D - N D') / D²``, with a classification token's key if there is one."""
    z, dz = [], []
    for i in range(model.heads):
        at = i * (model.dimension + 1)
        extra = Ball(0)
        values: Sequence[Fraction] = [Fraction(0)] * model.dimension
        if model.class_key is not None:
            score, values = model.class_key[i]
            extra = (Ball(rational(score)) - scale[i]).exp()
        below, moved = sums[at] + extra, slopes[at]
        for j in range(model.dimension):
            above = sums[at + 1 + j] + extra * rational(values[j])
            z.append(above / below)
            dz.append(
                [(a * below - above * b) / (below * below) for a, b in zip(slopes[at + 1 + j], moved, strict=True)]
            )
    return z, dz
