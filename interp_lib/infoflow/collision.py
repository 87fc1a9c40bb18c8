"""What an adversary of one-layer models hands over: two inputs that the model cannot tell apart, and what it answers on them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, final

from ..fields import Ball, fraction, rational, working_precision
from .one_layer import BALLS, FLOATS, Arithmetic, ModelError, OneLayer, Scalar
from .targets import BarrierError, Revealed, Target


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

    >>> from .barrier import refute
    >>> from .targets import reveal_kth_largest
    >>> model = OneLayer(1, 1, 1, lambda x, p, a: [(a.sin(3 * x[0] + p), [a.exp(x[0])])])
    >>> left, right = inputs(refute(model, reveal_kth_largest(3, 5)).certificate, reveal_kth_largest(3, 5))
    >>> abs(model.state(left)[0] - model.state(right)[0]) < 1e-9
    True
    """
    sides = []
    for side in (certificate.left, certificate.right):
        tokens = tokens_of(certificate, revealed, [float(p.centre) for p in side], FLOATS)
        sides.append([[float(x) for x in token] for token in tokens])
    return sides[0], sides[1]


def tokens_of(
    certificate: Certificate, revealed: Revealed | Target, parameters: Sequence[Scalar], arithmetic: Arithmetic
) -> list[Sequence[Scalar]]:
    """The tokens of one input with the given curve parameters; raises `BarrierError` where certificate and target do not fit."""
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

    >>> from .barrier import refute
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
            tokens = tokens_of(certificate, revealed, [enclosure(p, certificate.radius) for p in side], BALLS)
            target = revealed.target if isinstance(revealed, Revealed) else revealed
            answers.append(model.answer(tokens, BALLS))
            targets.append(target.value(tokens, BALLS))
            errors.append(lower_bound(answers[-1] - targets[-1]))
    together, worst = sum(errors, Fraction(0)), max(errors)
    return Verdict(
        (answers[0], answers[1]), (targets[0], targets[1]), together, worst, together >= certificate.error > 0
    )


def check_fit(model: OneLayer, target: Target) -> None:
    """Raise `BarrierError` where a model cannot take the target's tokens or positions."""
    if model.token_dimension != target.token_dimension:
        raise BarrierError(
            f"model reads tokens of dimension {model.token_dimension}; {target.name} has dimension {target.token_dimension}"
        )
    if model.length is not None and model.length != target.length:
        raise BarrierError(f"model reads {model.length} tokens; {target.name} needs {target.length}")


def enclosure(parameter: Parameter, radius: Fraction) -> Ball:
    """The ball of all values that a parameter may take."""
    centre = Ball(rational(parameter.centre))
    return centre + Ball(0, 1) * Ball(rational(radius)) if parameter.unknown else centre


def lower_bound(difference: Ball) -> Fraction:
    """A rational lower bound of ``|difference|``, rounded down to a multiple of ``2^-48``; 0 if nothing is certain."""
    least = difference.abs_lower()
    if not (difference.is_finite() and least > 0):
        return Fraction(0)
    return Fraction(max(0, math.floor(fraction(least.lower().fmpq()) * (1 << 48))), 1 << 48)
