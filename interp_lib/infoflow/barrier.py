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

`interp_lib.infoflow.recheck` decides the same claim again with other means; `interp_lib.infoflow.order_statistics` is the same
adversary where the theorem promises nothing.
"""

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
from .one_layer import BALLS, FLOAT_DUALS, FLOATS, OneLayer
from .small_algebra import Vector, kernel, norm, shortest, size_of, solve
from .targets import BarrierError, Revealed

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
    check_fit(model, revealed.target)
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


@final
class _OddMap:
    """``g(u) = Φ(u) - Φ(-u)`` on the boundary of the cube ``[-1, 1]^{q+1}``, in floats, and its face systems in balls."""

    __slots__ = ("chosen", "model", "q", "revealed", "shifts", "whole")

    def __init__(self, model: OneLayer, revealed: Revealed, chosen: tuple[int, ...]) -> None:
        self.model, self.revealed, self.chosen, self.q = model, revealed, chosen, model.sums
        self.shifts = shifts_of(model, revealed.curve, [(t, revealed.positions[t]) for t in chosen])
        self.whole = self._system(None)

    def _system(self, face: int | None) -> System:
        """The equations with all ``q + 1`` parameters unknown, or with number ``face`` fixed at 1 (left) and -1 (right)."""
        left, right = [], []
        count = 0
        for k, t in enumerate(self.chosen):
            position = self.revealed.positions[t]
            if k == face:
                left.append(Slot(position, t, None, 1, Fraction(1)))
                right.append(Slot(position, t, None, 1, Fraction(-1)))
            else:
                left.append(Slot(position, t, count, 1, 0.0))
                right.append(Slot(position, t, count, -1, 0.0))
                count += 1
        return System(self.model, self.revealed.curve, tuple(left), tuple(right), (), False, count, self.shifts)

    def value(self, u: Sequence[float]) -> tuple[Vector, list[Vector]]:
        return self.whole.evaluate(u, FLOAT_DUALS, FLOATS)

    def start(self, number: int, rng: random.Random) -> Vector:
        if number == 0:
            # An odd map is linear to first order; its linear part vanishes on a line.
            jacobian = self.value([0.0] * (self.q + 1))[1]
            line = kernel(jacobian, [rng.random() for _ in range(self.q + 1)])
            if line is not None:
                return _onto_boundary(line)
        return _onto_boundary([rng.uniform(-1, 1) for _ in range(self.q + 1)])

    def newton(self, u: Vector) -> Vector | None:
        """Damped Newton on the boundary: a step in the current face, then back onto the boundary along the ray."""
        residual, jacobian = self.value(u)
        scale = max(size_of(row) for row in jacobian) or 1.0
        for _ in range(MOST_STEPS):
            if size_of(residual) <= CONVERGED * scale:
                return u
            face = max(range(len(u)), key=lambda k: abs(u[k]))
            free = [k for k in range(len(u)) if k != face]
            reduced = [[row[k] for k in free] for row in jacobian]
            step = shortest(reduced, [-r for r in residual], 1e-3 * sum(r * r for r in residual))
            if step is None:
                return None
            length = size_of(step)
            factor = min(1.0, 0.7 / length) if length > 0 else 1.0
            for _ in range(7):
                trial = list(u)
                for k, s in zip(free, step, strict=True):
                    trial[k] += factor * s
                trial = _onto_boundary(trial)
                new_residual, new_jacobian = self.value(trial)
                if norm(new_residual) < norm(residual):
                    break
                factor /= 3
            else:
                return None
            u, residual, jacobian = trial, new_residual, new_jacobian
        return u if size_of(residual) <= 1e-9 * scale else None

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
        residual = size_of(system.evaluate(w, FLOAT_DUALS, FLOATS)[0])
        proof = prove_root(system, w, bits)
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
                balls = [enclosure(p, radius) for p in side]
                values.append(self.revealed.target.value(self.revealed.sequence(balls, t, BALLS), BALLS))
            gap = lower_bound(values[0] - values[1])
        if not gap > 0:
            return None, residual, "the targets of the two inputs are not certainly different"
        name = self.revealed.target.name
        return Certificate("sums", name, t, tuple(left), tuple(right), radius, gap, used), residual, ""


def _onto_boundary(u: Sequence[float]) -> Vector:
    size = max(abs(x) for x in u) or 1.0
    return [x / size for x in u]


@final
class _Path:
    """A curve of zeros of ``H(u, s) = (1 - s) A u + s g(u)``, followed face by face with predictor and corrector."""

    __slots__ = ("A", "face", "map", "s", "scale", "u")

    def __init__(self, odd: _OddMap, rng: random.Random) -> None:
        self.map = odd
        jacobian = odd.value([0.0] * (odd.q + 1))[1]
        sizes = [size_of(row) or 1.0 for row in jacobian]
        self.A = [[x + 0.3 * size * rng.gauss(0, 1) for x in row] for row, size in zip(jacobian, sizes, strict=True)]
        self.scale = sizes
        line = kernel(self.A, [rng.random() for _ in range(odd.q + 1)])
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
            if size_of(value) < 1e-11 and abs(off) < 1e-12:
                return u, s
            matrix = [[row[k] for k in (*free, len(u))] for row in slopes] + [list(normal)]
            step = solve(matrix, [*(-v for v in value), -off])
            if step is None or size_of(step) > 0.5:
                return None
            u = list(u)
            for k, d in zip(free, step, strict=False):
                u[k] += d
            s += step[-1]
        value, _ = self._value(u, s)
        return (u, s) if size_of(value) < 1e-9 else None

    def follow(self, most_steps: int) -> Vector | None:
        q = self.map.q
        u, s = self.u, self.s
        before: Vector | None = None
        step = 0.05
        for _ in range(most_steps):
            free = [k for k in range(q + 1) if k != self.face]
            slopes = self._value(u, s)[1]
            matrix = [[row[k] for k in (*free, q + 1)] for row in slopes]
            tangent = kernel(matrix, [abs(x) for x in before] if before else [0.0] * q + [1.0])
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
        tangent = kernel(matrix, [1.0] * (q + 1))
        if tangent is None:
            return None
        at = free.index(self.face)
        inward = -math.copysign(1.0, u[self.face])
        return tangent if tangent[at] * inward > 0 else [-x for x in tangent]
