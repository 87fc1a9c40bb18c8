"""The independent checker.

It reads weights and data only, and knows nothing of how the weights were chosen.  Under hardmax, and
wherever scores are constant, it evaluates a transformer straight from the definitions over Q (`interp_lib.exact_outputs`).
Under softmax it follows enclosures (`interp_lib.enclosure`) until the weights make them exact again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, final

from .enclosure import EnclosedOutputs, EnclosedToken, enclose_outputs
from .exact_outputs import exact_outputs
from .fields import Ball, Rational, decimal_text, fraction, rational, working_precision
from .layers import LayerError, Transformer, read_temperature
from .sequences import Dataset, Token, root_as_float, squared_hausdorff_distance

Status = Literal["certified", "refuted", "undecided"]
Point = tuple[Rational, ...]
FEWEST_BITS = 64
MOST_BITS = 8192
"""Where `verify` stops doubling the precision, unless told otherwise."""


@final
@dataclass(frozen=True, slots=True)
class Certificate:
    """What the checker found.

    ``status``: ``"certified"`` (``T_τ(X_j) = Y_j`` as sets for every ``j``, in real arithmetic),
    ``"refuted"`` (some output differs for certain) or ``"undecided"``.
    ``distance``: the largest Hausdorff distance between an output and its target; 0.0 when certified; when
    only enclosed, the lower end of ``distance_bounds``.
    ``sequence``, ``token``: the first sequence that fails and its first output token that is no target
    (or, if all are targets, the first target that is missed), else None; rounded where only enclosed.
    ``bits``, ``exponentials``: under softmax, the precision that decided and the number of exponentials enclosed at all
    precisions tried: a cost that does not depend on the machine.
    """

    status: Status
    temperature: Fraction | Literal["all"]
    arithmetic: str
    sequences: int
    distance: float | None = 0.0
    sequence: int | None = None
    token: Token | None = None
    token_distance: float | None = None
    reason: str = ""
    distance_bounds: tuple[float, float] | None = None
    bits: int | None = None
    exponentials: int = 0

    def explain(self) -> str:
        """The result in words."""
        how = _at(self.temperature)
        if self.status == "certified":
            return f"certified ({self.arithmetic}): T(X_j) = Y_j as sets for all {self.sequences} sequences, {how}"
        if self.status == "undecided":
            return f"undecided ({self.arithmetic}) {how}: {self.reason}"
        return f"refuted ({self.arithmetic}) {how}: {self.reason}"


def verify(T: Transformer, data: Dataset, temperature: Any = 0, max_bits: int = MOST_BITS) -> Certificate:
    """Decide whether ``T_τ(X_j) = Y_j`` as sets for every ``j``.

    Statement: interpolation in the sense of the theorems, Hausdorff distance exactly 0.  Temperature 0
    is hardmax.  ``temperature="all"`` asks for hardmax and every ``τ > 0`` at once; that is decided
    when every attention layer that acts has constant scores (``A = 0``), because then hardmax and
    softmax are both the mean.

    Shapes: ``T`` and ``data`` in the same dimension.

    Exactness: exact over Q under hardmax and wherever scores are constant.  Otherwise every token is
    enclosed, with twice as many bits until the answer is certain or ``max_bits`` are reached; then, and only
    then, the answer is ``"undecided"``.  Both other answers are statements about real arithmetic.

    Cost: ``O(d)`` per distinct token and ReLU unit; ``O(n² d)`` for a full-rank attention layer.

    Raises: `LayerError` when the dimensions differ or the temperature is not a number ``≥ 0``.

    Example:

    >>> from interp_lib.layers import Block
    >>> data = Dataset([[[0, 0], [1, 0]]], [[[0, 0], [1, 0]]])
    >>> verify(Transformer([Block.identity(2)]), data).status
    'certified'
    """
    if T.d != data.d:
        raise LayerError(f"T acts on R^{T.d} but data has tokens in R^{data.d}")
    everywhere = isinstance(temperature, str)
    if everywhere and temperature != "all":
        raise LayerError(f'temperature is {temperature!r}; a number τ ≥ 0 or "all" is required')
    tau = rational(0) if everywhere else read_temperature(temperature)
    shown: Fraction | Literal["all"] = "all" if everywhere else fraction(tau)
    constant = all(block.attention.V.is_zero or block.attention.A.is_zero for block in T.blocks)
    if everywhere and not constant:
        return Certificate(
            "undecided",
            shown,
            "exact over Q",
            data.N,
            None,
            reason="some attention layer has scores that are not constant",
        )
    if tau > 0 and not constant:
        return _verify_softmax(T, data, tau, max_bits)
    return _compare(exact_outputs(T, data), data, shown)


def _compare(outputs: list[list[Point]], data: Dataset, temperature: Fraction | Literal["all"]) -> Certificate:
    worst, first = rational(0), None
    for j, (points, matrix) in enumerate(zip(outputs, data.output_matrices, strict=True)):
        targets = [tuple(row) for row in matrix.tolist()]
        if set(points) == set(targets):
            continue
        first = j if first is None else first
        worst = max(worst, squared_hausdorff_distance(points, targets))
    if first is None:
        return Certificate("certified", temperature, "exact over Q", data.N)
    targets = [tuple(row) for row in data.output_matrices[first].tolist()]
    wanted, reached = set(targets), set(outputs[first])
    strays = [x for x in outputs[first] if x not in wanted]
    missed = [y for y in targets if y not in reached]
    token, others = (strays[0], targets) if strays else (missed[0], outputs[first])
    gap = root_as_float(min(sum(((a - b) ** 2 for a, b in zip(token, y, strict=True)), rational(0)) for y in others))
    kind = f"output token of inputs[{first}] is no target" if strays else f"target of outputs[{first}] is missed"
    where = ", ".join(decimal_text(fraction(v), 12) for v in token)
    return Certificate(
        "refuted",
        temperature,
        "exact over Q",
        data.N,
        root_as_float(worst),
        first,
        tuple(map(fraction, token)),
        gap,
        f"the {kind}: ({where}), at distance {gap:.3g}; largest Hausdorff distance {root_as_float(worst):.3g}",
    )


# ---------------------------------------------------------------- softmax


def _verify_softmax(T: Transformer, data: Dataset, tau: Rational, max_bits: int) -> Certificate:
    """More and more bits, until the answer is certain or the cap is reached."""
    bits, exponentials = min(FEWEST_BITS, max_bits), 0
    while True:
        outputs = enclose_outputs(T, data, tau, bits)
        exponentials += outputs.exponentials
        found = _compare_enclosed(outputs, data, fraction(tau), bits)
        if found is not None:
            return replace(found, bits=bits, exponentials=exponentials)
        if bits >= max_bits:
            return Certificate(
                "undecided",
                fraction(tau),
                f"balls of {bits} bits",
                data.N,
                None,
                reason=f"the enclosures are too wide to tell even with {bits} bits, the most allowed",
                bits=bits,
                exponentials=exponentials,
            )
        bits = min(2 * bits, max_bits)


def _compare_enclosed(outputs: EnclosedOutputs, data: Dataset, temperature: Fraction, bits: int) -> Certificate | None:
    """A certificate if something is certain, else None."""
    how = f"balls of {bits} bits, then exact over Q"
    known = [[token.exact for token in tokens if token.exact is not None] for tokens in outputs.sequences]
    if outputs.is_exact:
        return replace(_compare(known, data, temperature), arithmetic=how)
    with working_precision(bits):
        failure, low, high = None, Ball(0), Ball(0)
        for j, (tokens, matrix) in enumerate(zip(outputs.sequences, data.output_matrices, strict=True)):
            targets = [EnclosedToken(tuple(row), tuple(map(Ball, row))) for row in matrix.tolist()]
            least, most = _hausdorff_bounds(tokens, targets)
            low, high = low.max(least), high.max(most)
            if failure is None:
                for kind, points, others in (("output token", tokens, targets), ("target", targets, tokens)):
                    stray = next((x for x in points if all(_differ(x, y) for y in others)), None)
                    if stray is not None:
                        failure = j, kind, stray, _nearest(stray, others)
                        break
        if failure is None:
            return None
        j, kind, stray, (nearest, _) = failure
        bounds = _outward(low, high)
        gap = _outward(nearest, nearest)[0]
    rounded = [float(v) for v in stray.enclosure]
    where = ", ".join(f"{v:.6g}" for v in rounded)
    what = (
        f"output token of inputs[{j}] is no target" if kind == "output token" else f"target of outputs[{j}] is missed"
    )
    return Certificate(
        "refuted",
        temperature,
        f"balls of {bits} bits",
        data.N,
        bounds[0],
        j,
        tuple(map(Fraction, rounded)),
        gap,
        f"the {what}: near ({where}), at distance at least {gap:.3g}; "
        f"largest Hausdorff distance between {bounds[0]:.3g} and {bounds[1]:.3g}",
        bounds,
    )


def _differ(x: EnclosedToken, y: EnclosedToken) -> bool:
    """Whether two tokens are different for certain."""
    if x.exact is not None and y.exact is not None:
        return x.exact != y.exact
    # The difference is a ball; only a lower bound above zero counts, and NaN has none.
    return any((a - b).abs_lower() > 0 for a, b in zip(x.enclosure, y.enclosure, strict=True))


def _nearest(x: EnclosedToken, others: Sequence[EnclosedToken]) -> tuple[Ball, Ball]:
    """Bounds for the distance from ``x`` to the nearest of the others."""
    low, high = None, None
    for y in others:
        differences = [a - b for a, b in zip(x.enclosure, y.enclosure, strict=True)]
        least = sum((v.abs_lower() ** 2 for v in differences), Ball(0)).sqrt()
        most = sum((v.abs_upper() ** 2 for v in differences), Ball(0)).sqrt()
        low = least if low is None else low.min(least)
        high = most if high is None else high.min(most)
    assert low is not None  # sequences are not empty
    assert high is not None
    return low, high


def _hausdorff_bounds(xs: Sequence[EnclosedToken], ys: Sequence[EnclosedToken]) -> tuple[Ball, Ball]:
    low, high = Ball(0), Ball(0)
    for points, others in ((xs, ys), (ys, xs)):
        for x in points:
            least, most = _nearest(x, others)
            low, high = low.max(least), high.max(most)
    return low, high


def _outward(low: Ball, high: Ball) -> tuple[float, float]:
    """Floats below and above; NaN gives the trivial bounds."""
    least = math.nextafter(float(low.lower()), 0.0) if low.is_finite() else 0.0
    most = math.nextafter(float(high.upper()), math.inf) if high.is_finite() else math.inf
    return max(0.0, least), most


def _at(temperature: Fraction | Literal["all"]) -> str:
    if temperature == "all":
        return "under hardmax and at every temperature"
    return "under hardmax" if temperature == 0 else f"at temperature {decimal_text(temperature, 6)}"
