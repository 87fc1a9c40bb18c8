"""Krawczyk's test in balls: a true solution of a collision's equations exists near a float one."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from ..fields import Ball, fraction, rational, working_precision
from .collision import Parameter, enclosure
from .equations import System
from .one_layer import BALL_DUALS, BALLS, FLOAT_DUALS, FLOATS
from .small_algebra import Vector, inverse_of


def prove_root(system: System, w: Sequence[float], bits: int) -> tuple[list[Fraction], Fraction, int] | str:
    """Centre and radius of a box that holds exactly one zero of ``system``, or why there is none to show.

    Krawczyk: for any matrix ``C`` and a box ``X = c + [-ρ, ρ]^q``, if ``-C G(c) + (I - C J(X)) [-ρ, ρ]^q`` lies in the
    interior of ``[-ρ, ρ]^q``, then ``G`` has exactly one zero in ``X``.
    """
    _, jacobian = system.evaluate(w, FLOAT_DUALS, FLOATS)
    inverse = inverse_of(jacobian)
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


def _polish(system: System, w: Sequence[float], inverse: list[Vector], bits: int) -> list[Fraction] | None:
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


def _krawczyk(system: System, centre: list[Fraction], radius: Fraction, inverse: list[Vector]) -> bool:
    size = system.size
    at_centre = system.evaluate([Ball(rational(c)) for c in centre], BALL_DUALS, BALLS)[0]
    box = [enclosure(Parameter(c, True), radius) for c in centre]
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
