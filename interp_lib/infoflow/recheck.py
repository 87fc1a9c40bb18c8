"""A collision's certificate, decided again with other means than those that found it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, final

from ..fields import Ball, BallMatrix, BallSeries, UndecidedError, rational, working_precision
from .collision import Certificate, Parameter, lower_bound, tokens_of
from .one_layer import BALLS, SERIES, OneLayer, Scalar, middle
from .targets import Revealed, Target


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

    >>> from .barrier import refute
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
        values.append(target.value(tokens_of(certificate, revealed, balls, BALLS), BALLS))
    difference = abs(values[0] - values[1])
    proved = lower_bound(difference)
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
