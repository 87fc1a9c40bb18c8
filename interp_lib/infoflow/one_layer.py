"""Models with one attention layer, written once and evaluated in any arithmetic.

With ``h`` heads of dimension ``n``, scores ``s_i`` and values ``v_i`` that may be any functions of the token and its
position, and any read-out ``F̂``,

    ``ŷ = F̂(z)``,   ``z = (Σ_t e^{s_i(x(t), t)} v_i(x(t), t) / Σ_t e^{s_i(x(t), t)})_{i ≤ h} ∈ R^{hn}``.

The residual stream, the output matrix and the first affine map of a real network are part of ``F̂``.  A model is a
Python function (`OneLayer`), weights (`network_encoder`), or a trained torch module (`from_state`).

The encoder is written over an `Arithmetic`, so that one and the same code runs in float64, in balls, with derivatives
(`Dual` numbers) and on power series.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib.resources import files
from itertools import pairwise
from operator import mul
from typing import Any, Final, Literal, Protocol, final

from ..fields import Ball, BallSeries, UndecidedError, fraction, rational

Scalar = Any
"""A float, a ball, a power series, or a dual number over one of them."""
Head = tuple[Scalar, Sequence[Scalar]]
"""The score and the value of one head for one token."""
Token = tuple[Fraction, ...]


class ModelError(ValueError):
    """A model or an input to it is malformed; the message names the field."""


# ---------------------------------------------------------------- arithmetic


class Arithmetic(Protocol):
    """What an encoder, a target or a read-out may do besides ``+ - * /``."""

    def number(self, value: Any) -> Scalar:
        """The constant ``value`` (an integer, fraction or float) in this arithmetic."""

    def exp(self, x: Scalar) -> Scalar: ...

    def log(self, x: Scalar) -> Scalar: ...

    def sin(self, x: Scalar) -> Scalar: ...

    def cos(self, x: Scalar) -> Scalar: ...

    def tanh(self, x: Scalar) -> Scalar: ...

    def relu(self, x: Scalar) -> Scalar: ...

    def largest(self, values: Sequence[Scalar], k: int) -> Scalar:
        """The ``k``-th largest of the values, ``k = 1`` for the maximum."""


@final
@dataclass(frozen=True, slots=True)
class _Floats:
    """Float64: fast, and only as accurate as rounding allows.

    >>> FLOATS.largest([1.0, 3.0, 2.0], 2)
    2.0
    """

    def number(self, value: Any) -> float:
        return float(fraction(value)) if type(value).__name__ == "fmpq" else float(value)

    def exp(self, x: float) -> float:
        return math.exp(x) if x < 700 else math.inf

    def log(self, x: float) -> float:
        return math.log(x)

    def sin(self, x: float) -> float:
        return math.sin(x)

    def cos(self, x: float) -> float:
        return math.cos(x)

    def tanh(self, x: float) -> float:
        return math.tanh(x)

    def relu(self, x: float) -> float:
        return max(x, 0.0)

    def largest(self, values: Sequence[float], k: int) -> float:
        return sorted(values, reverse=True)[k - 1]


@final
@dataclass(frozen=True, slots=True)
class _Balls:
    """Rigorous enclosures, at the working precision of the caller.

    >>> BALLS.largest([Ball(1), Ball(3), Ball(2)], 2)
    2.00000000000000
    """

    def number(self, value: Any) -> Ball:
        return value if isinstance(value, Ball) else Ball(rational(value))

    def exp(self, x: Ball) -> Ball:
        return x.exp()

    def log(self, x: Ball) -> Ball:
        return x.log()

    def sin(self, x: Ball) -> Ball:
        return x.sin()

    def cos(self, x: Ball) -> Ball:
        return x.cos()

    def tanh(self, x: Ball) -> Ball:
        return x.tanh()

    def relu(self, x: Ball) -> Ball:
        return x.nonnegative_part()

    def largest(self, values: Sequence[Ball], k: int) -> Ball:
        # The k-th largest is non-decreasing in every argument: order the lower ends and the upper ends apart.
        if not all(v.is_finite() for v in values):
            return Ball("nan")
        lowest: Ball = _kth(sorted(v.lower() for v in values), k)
        return lowest.union(_kth(sorted(v.upper() for v in values), k))


def _kth(ascending: Sequence[Scalar], k: int) -> Scalar:
    return ascending[len(ascending) - k]


@final
@dataclass(frozen=True, slots=True)
class _Rationals:
    """Exact rationals, for targets on exactly known inputs; no transcendental functions.

    >>> RATIONALS.largest([rational(1), rational(3), rational(2)], 2)
    2
    """

    def number(self, value: Any) -> Scalar:
        return rational(value)

    def exp(self, _x: Scalar) -> Scalar:
        raise ModelError("exp has no exact rational value; use BALLS")

    log = sin = cos = tanh = exp

    def relu(self, x: Scalar) -> Scalar:
        return x if x > 0 else rational(0)

    def largest(self, values: Sequence[Scalar], k: int) -> Scalar:
        return _kth(sorted(values), k)


@final
class Dual:
    """A number with its derivative in one variable: ``value + slope · δ`` with ``δ² = 0``.

    The components may be floats or balls; a number that is no `Dual` is a constant.

    >>> x = Dual(3.0, 1.0)
    >>> y = x * x + 2 * x
    >>> y.value, y.slope
    (15.0, 8.0)
    """

    __slots__ = ("slope", "value")

    def __init__(self, value: Scalar, slope: Scalar) -> None:
        self.value = value
        self.slope = slope

    def __add__(self, other: Scalar) -> Dual:
        if isinstance(other, Dual):
            return Dual(self.value + other.value, self.slope + other.slope)
        return Dual(self.value + other, self.slope)

    __radd__ = __add__

    def __neg__(self) -> Dual:
        return Dual(-self.value, -self.slope)

    def __sub__(self, other: Scalar) -> Dual:
        if isinstance(other, Dual):
            return Dual(self.value - other.value, self.slope - other.slope)
        return Dual(self.value - other, self.slope)

    def __rsub__(self, other: Scalar) -> Dual:
        return Dual(other - self.value, -self.slope)

    def __mul__(self, other: Scalar) -> Dual:
        if isinstance(other, Dual):
            return Dual(self.value * other.value, self.slope * other.value + self.value * other.slope)
        return Dual(self.value * other, self.slope * other)

    __rmul__ = __mul__

    def __truediv__(self, other: Scalar) -> Dual:
        if isinstance(other, Dual):
            ratio = self.value / other.value
            return Dual(ratio, (self.slope - ratio * other.slope) / other.value)
        return Dual(self.value / other, self.slope / other)

    def __rtruediv__(self, other: Scalar) -> Dual:
        ratio = other / self.value
        return Dual(ratio, -ratio * self.slope / self.value)


@final
@dataclass(frozen=True, slots=True)
class _Duals:
    """Derivatives over another arithmetic by the chain rule."""

    base: Arithmetic

    def number(self, value: Any) -> Scalar:
        return self.base.number(value)

    def exp(self, x: Scalar) -> Scalar:
        if not isinstance(x, Dual):
            return self.base.exp(x)
        value = self.base.exp(x.value)
        return Dual(value, value * x.slope)

    def log(self, x: Scalar) -> Scalar:
        return Dual(self.base.log(x.value), x.slope / x.value) if isinstance(x, Dual) else self.base.log(x)

    def sin(self, x: Scalar) -> Scalar:
        if not isinstance(x, Dual):
            return self.base.sin(x)
        return Dual(self.base.sin(x.value), self.base.cos(x.value) * x.slope)

    def cos(self, x: Scalar) -> Scalar:
        if not isinstance(x, Dual):
            return self.base.cos(x)
        return Dual(self.base.cos(x.value), -(self.base.sin(x.value) * x.slope))

    def tanh(self, x: Scalar) -> Scalar:
        if not isinstance(x, Dual):
            return self.base.tanh(x)
        value = self.base.tanh(x.value)
        return Dual(value, (1 - value * value) * x.slope)

    def relu(self, x: Scalar) -> Scalar:
        if not isinstance(x, Dual):
            return self.base.relu(x)
        if x.value > 0:
            return x
        if x.value < 0:
            return Dual(x.value * 0, x.slope * 0)
        # A ball over the kink: every difference quotient of ReLU lies in [0, 1].
        step = Ball(0.5, 0.5) if isinstance(x.value, Ball) else 0.0
        return Dual(self.base.relu(x.value), x.slope * step)

    def largest(self, _values: Sequence[Scalar], _k: int) -> Scalar:
        raise ModelError("order statistics are used in targets only, which need no derivative")


@final
@dataclass(frozen=True, slots=True)
class _Series:
    """Power series of the ball library: derivatives that share no code with `Dual`."""

    def number(self, value: Any) -> Scalar:
        return BALLS.number(value)

    def _apply(self, name: str, x: Scalar) -> Scalar:
        return getattr(x, name)()

    def exp(self, x: Scalar) -> Scalar:
        return self._apply("exp", x)

    def log(self, x: Scalar) -> Scalar:
        return self._apply("log", x)

    def sin(self, x: Scalar) -> Scalar:
        return self._apply("sin", x)

    def cos(self, x: Scalar) -> Scalar:
        return self._apply("cos", x)

    def tanh(self, x: Scalar) -> Scalar:
        return 1 - 2 / ((2 * x).exp() + 1) if isinstance(x, BallSeries) else x.tanh()

    def relu(self, x: Scalar) -> Scalar:
        if not isinstance(x, BallSeries):
            return x.nonnegative_part()
        if x[0] > 0:
            return x
        if x[0] < 0:
            return x * 0
        raise UndecidedError("a ReLU is not certainly on or off")

    def largest(self, _values: Sequence[Scalar], _k: int) -> Scalar:
        raise ModelError("order statistics are used in targets only, which need no derivative")


FLOATS: Final[Arithmetic] = _Floats()
BALLS: Final[Arithmetic] = _Balls()
RATIONALS: Final[Arithmetic] = _Rationals()
FLOAT_DUALS: Final[Arithmetic] = _Duals(FLOATS)
BALL_DUALS: Final[Arithmetic] = _Duals(BALLS)
SERIES: Final[Arithmetic] = _Series()


# ---------------------------------------------------------------- models


class Encoder(Protocol):
    """Score and value of every head for a token at a position (counted from 0)."""

    def __call__(self, token: Sequence[Scalar], position: int, arithmetic: Arithmetic) -> Sequence[Head]: ...


class ReadOut(Protocol):
    """The model's answer for a state ``z ∈ R^{hn}``."""

    def __call__(self, state: Sequence[Scalar], arithmetic: Arithmetic) -> Scalar: ...


@final
@dataclass(frozen=True, slots=True)
class OneLayer:
    """``ŷ = F̂(z)``, ``z_i = Σ_t e^{s_i} v_i / Σ_t e^{s_i}``: ``h`` heads of dimension ``n``, any encoder, any read-out.

    ``encode(token, position, arithmetic)`` returns ``[(s_1, v_1), …, (s_h, v_h)]`` with each ``v_i`` of length ``n``.
    ``class_key``: score and value per head of a classification token that is also a key (constants), or None.
    ``length``: the number of tokens, where the encoder knows only so many positions.
    The encoder must be a formula in the arithmetic's operations: a branch on the value of a token (``if x > 0``) is outside the
    hypotheses, and in balls it silently takes the branch that is not certain.
    The theorem's symbols: ``heads`` = h, ``dimension`` = n, `sums` = (n + 1) h.

    Exactness: as the arithmetic in which it is evaluated.

    Raises: `ModelError` for sizes that are not positive integers.

    Example:

    >>> mean = OneLayer(1, 1, 1, lambda x, position, a: [(a.number(0), [x[0]])])
    >>> mean.state([[0.0], [1.0]])
    [0.5]
    >>> mean.sums
    2
    """

    heads: int
    dimension: int
    token_dimension: int
    encode: Encoder | Callable[[Sequence[Scalar], int, Arithmetic], Sequence[Head]]
    read_out: ReadOut | Callable[[Sequence[Scalar], Arithmetic], Scalar] | None = None
    class_key: tuple[tuple[Fraction, tuple[Fraction, ...]], ...] | None = None
    length: int | None = None
    name: str = "one layer"

    def __post_init__(self) -> None:
        for field in ("heads", "dimension", "token_dimension"):
            value = getattr(self, field)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ModelError(f"{field}: expected a positive integer, got {value!r}")
        if self.class_key is not None and len(self.class_key) != self.heads:
            raise ModelError(
                f"class_key has {len(self.class_key)} entries; one for each of {self.heads} heads is required"
            )

    @property
    def sums(self) -> int:
        """``(n + 1) h``: the numerators and denominators through which the layer sees its input."""
        return (self.dimension + 1) * self.heads

    def heads_of(self, token: Sequence[Scalar], position: int, arithmetic: Arithmetic) -> Sequence[Head]:
        """What the encoder says, with its sizes checked."""
        heads = self.encode(token, position, arithmetic)
        if len(heads) != self.heads or any(len(value) != self.dimension for _, value in heads):
            got = [len(value) for _, value in heads]
            raise ModelError(
                f"encode returned values of lengths {got}; expected {self.heads} of length {self.dimension}"
            )
        return heads

    def state(self, tokens: Sequence[Sequence[Scalar]], arithmetic: Arithmetic = FLOATS) -> list[Scalar]:
        """``z``, all heads one after the other, in float64 or in balls."""
        self.check_tokens(tokens)
        per_token = [self.heads_of(token, position, arithmetic) for position, token in enumerate(tokens)]
        if self.class_key is not None:
            number = arithmetic.number
            per_token.append([(number(s), [number(v) for v in value]) for s, value in self.class_key])
        state: list[Scalar] = []
        for i in range(self.heads):
            scores = [heads[i][0] for heads in per_token]
            # Softmax does not see a common shift; with the largest score at 0 nothing overflows.
            top = arithmetic.number(max(middle(s) for s in scores))
            weights = [arithmetic.exp(s - top) for s in scores]
            total = sum(weights[1:], weights[0])
            for j in range(self.dimension):
                products = [w * heads[i][1][j] for w, heads in zip(weights, per_token, strict=True)]
                state.append(sum(products[1:], products[0]) / total)
        return state

    def answer(self, tokens: Sequence[Sequence[Scalar]], arithmetic: Arithmetic = FLOATS) -> Scalar:
        """``ŷ``, in float64 or in balls."""
        if self.read_out is None:
            raise ModelError("read_out: this model has none, so it gives no answers")
        return self.read_out(self.state(tokens, arithmetic), arithmetic)

    def check_tokens(self, tokens: Sequence[Sequence[Scalar]]) -> None:
        """Raise `ModelError` unless the model can read these tokens."""
        if not tokens:
            raise ModelError("tokens: expected at least one, got none")
        if self.length is not None and len(tokens) != self.length:
            raise ModelError(f"tokens: expected {self.length} (the model has a positional code), got {len(tokens)}")
        for position, token in enumerate(tokens):
            if len(token) != self.token_dimension:
                raise ModelError(f"tokens[{position}]: expected dimension {self.token_dimension}, got {len(token)}")


def middle(value: Scalar) -> float:
    """A float near ``value``: for choosing, never for proving."""
    return float(value.mid()) if isinstance(value, Ball) else float(value)


# ---------------------------------------------------------------- networks as encoders and read-outs

Activation = Literal["tanh", "relu", "sin"]


@final
@dataclass(frozen=True, slots=True)
class Network:
    """A small feed-forward network: affine maps ``(W, b)`` with ``activation`` between them.

    Weights are floats, which are dyadic rationals: in balls they are exact.

    Example:

    >>> twice = Network(((((2.0,),), (1.0,)),), "tanh")
    >>> twice([3.0], FLOATS)
    [7.0]
    """

    layers: tuple[tuple[tuple[tuple[float, ...], ...], tuple[float, ...]], ...]
    activation: Activation

    def __call__(self, vector: Sequence[Scalar], arithmetic: Arithmetic) -> list[Scalar]:
        values = list(vector)
        act = getattr(arithmetic, self.activation)
        for index, (weights, biases) in enumerate(self.layers):
            if index:
                values = [act(v) for v in values]
            values = _affine(weights, biases, values)
        return values


def _affine(weights: Sequence[Sequence[float]], biases: Sequence[float], values: list[Scalar]) -> list[Scalar]:
    if values and all(isinstance(v, Dual) for v in values):
        # The same sums, component by component: several times faster than dual by dual.
        plain, slopes = [v.value for v in values], [v.slope for v in values]
        return [
            Dual(sum(map(mul, plain, row)) + b, sum(map(mul, slopes, row)))
            for row, b in zip(weights, biases, strict=True)
        ]
    return [sum(map(mul, values, row)) + b for row, b in zip(weights, biases, strict=True)]


def network_encoder(
    trunk: Network, heads: int, dimension: int, positional: Sequence[Sequence[float]] | None = None
) -> Callable[[Sequence[Scalar], int, Arithmetic], list[Head]]:
    """An encoder that reads all scores and values off one network with ``h (1 + n)`` outputs.

    Outputs ``0 … h-1`` are the scores, then come the values, head by head.  ``positional`` gives numbers appended to the
    token at each position.

    Example:

    >>> encode = network_encoder(Network(((((1.0,), (2.0,)), (0.0, 0.0)),), "tanh"), 1, 1)
    >>> encode([3.0], 0, FLOATS)
    [(3.0, [6.0])]
    """

    def encode(token: Sequence[Scalar], position: int, arithmetic: Arithmetic) -> list[Head]:
        extra = [] if positional is None else [Dual(x, 0.0) if _dual(token) else x for x in positional[position]]
        outputs = trunk([*token, *extra], arithmetic)
        start = [heads + i * dimension for i in range(heads)]
        return [(outputs[i], outputs[start[i] : start[i] + dimension]) for i in range(heads)]

    return encode


def _dual(token: Sequence[Scalar]) -> bool:
    return any(isinstance(x, Dual) for x in token)


def from_state(state: Mapping[str, Any], description: Mapping[str, Any]) -> OneLayer:
    """A model from named weights: a torch module's ``state_dict()``, or the same as lists of numbers.

    ``description``: ``{"heads", "dimension", "token_dimension"}``, and optionally ``"offset"`` and ``"scale"`` of the
    answer (``ŷ = offset + scale · network output``, 0 and 1 if missing) and ``"name"``.  Expected names, each with
    ``.weight`` and ``.bias`` and numbered in order: ``encoder.0``, ``encoder.1``, … (tanh between them, ``h (1 + n)``
    outputs: the scores, then the values, head by head) and ``reader.0``, ``reader.1``, … (ReLU between them, from
    ``hn`` inputs to one output).  A name counts as long as it holds these; gaps in the numbering (activation modules)
    do not matter.

    Exactness: the weights are taken as the dyadic rationals they are.

    Raises: `ModelError` when a part is missing or sizes do not fit.

    Example:

    >>> weights = {"encoder.0.weight": [[1.0], [2.0]], "encoder.0.bias": [0.0, 0.0],
    ...            "reader.0.weight": [[1.0]], "reader.0.bias": [0.5]}
    >>> model = from_state(weights, {"heads": 1, "dimension": 1, "token_dimension": 1})
    >>> model.answer([[0.25]])
    1.0
    """
    try:
        heads, dimension, tokens = (int(description[key]) for key in ("heads", "dimension", "token_dimension"))
    except KeyError as missing:
        raise ModelError(f"description: {missing} is missing") from None
    encoder = Network(_stack(state, "encoder", tokens, heads * (1 + dimension)), "tanh")
    reader = Network(_stack(state, "reader", heads * dimension, 1), "relu")
    offset, scale = float(description.get("offset", 0.0)), float(description.get("scale", 1.0))

    def read_out(z: Sequence[Scalar], arithmetic: Arithmetic) -> Scalar:
        return reader(z, arithmetic)[0] * scale + offset

    return OneLayer(
        heads,
        dimension,
        tokens,
        network_encoder(encoder, heads, dimension),
        read_out,
        name=str(description.get("name", "trained")),
    )


def from_torch(module: Any) -> OneLayer:
    """A model from a torch module with ``state_dict()`` and ``description()``: see `from_state`.

    Nothing here imports torch; whatever has these two methods will do.

    Example: see `from_state`.
    """
    for method in ("state_dict", "description"):
        if not callable(getattr(module, method, None)):
            raise ModelError(f"module: a {type(module).__name__} has no {method}(); it is required")
    return from_state(module.state_dict(), module.description())


def _stack(state: Mapping[str, Any], prefix: str, inputs: int, outputs: int) -> Any:
    numbers = sorted(
        int(key.split(".")[1]) for key in state if key.startswith(prefix + ".") and key.endswith(".weight")
    )
    if not numbers:
        raise ModelError(f"state: no weights named {prefix}.0.weight, {prefix}.1.weight, …")
    layers = []
    width = inputs
    for k in numbers:
        if f"{prefix}.{k}.bias" not in state:
            raise ModelError(f"state: {prefix}.{k}.bias is missing")
        weights = tuple(tuple(map(float, row)) for row in _listed(state[f"{prefix}.{k}.weight"]))
        biases = tuple(map(float, _listed(state[f"{prefix}.{k}.bias"])))
        if any(len(row) != width for row in weights) or len(biases) != len(weights):
            raise ModelError(f"state: {prefix}.{k} does not map {width} numbers to {len(biases)}")
        if any(x - x != 0 for row in (*weights, biases) for x in row):
            raise ModelError(f"state: {prefix}.{k} has a weight that is not finite")
        layers.append((weights, biases))
        width = len(weights)
    if width != outputs:
        raise ModelError(f"state: {prefix} ends in {width} numbers; expected {outputs}")
    return tuple(layers)


def _listed(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else value


# ---------------------------------------------------------------- stored and random models


def stored_models() -> tuple[str, ...]:
    """The names of the trained models that come with the library.

    >>> all(name.startswith("second-largest") for name in stored_models())
    True
    """
    folder = files(__package__).joinpath("data")
    names = [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
    return tuple(sorted(name.removesuffix(".json") for name in names if name.endswith(".json")))


def stored_record(name: str) -> dict[str, Any]:
    """The file of a trained model: its weights, the command and seed that made it, versions, and its error."""
    if name not in stored_models():
        raise ModelError(f"name: expected one of {stored_models()}, got {name!r}")
    record = json.loads(files(__package__).joinpath("data", f"{name}.json").read_text(encoding="utf-8"))
    assert isinstance(record, dict)
    return record


def stored_model(name: str) -> OneLayer:
    """A trained model that comes with the library."""
    record = stored_record(name)
    return from_state(record["state"], record["description"])


RandomKind = Literal["tanh", "polynomial", "exponential", "sine", "network"]
RANDOM_KINDS: Final[tuple[RandomKind, ...]] = ("tanh", "polynomial", "exponential", "sine", "network")


def random_model(
    seed: int, heads: int, dimension: int, length: int, token_dimension: int = 1, kind: RandomKind = "tanh"
) -> OneLayer:
    """A one-layer model with a random smooth encoder that depends on token *and* position.

    With ``ℓ(x) = <a, x> + b_t`` for random ``a`` and a random number ``b_t`` per position, a score is
    ``2 sin ℓ`` and a value is ``tanh ℓ``, ``ℓ - ℓ³/3``, ``e^{-ℓ²}`` or ``sin 2ℓ``; for ``"network"`` scores and values are
    read off a random tanh network with a random positional code.  The read-out is a random ReLU network.

    Exactness: all coefficients are floats, so the model is the same real function in every arithmetic.

    Raises: `ModelError` for an unknown kind.

    Example:

    >>> random_model(0, 2, 3, length=9).sums
    8
    """
    if kind not in RANDOM_KINDS:
        raise ModelError(f"kind: expected one of {RANDOM_KINDS}, got {kind!r}")
    rng = random.Random(f"{seed} {heads} {dimension} {length} {token_dimension} {kind}")
    reader = _random_network(rng, (heads * dimension, 8, 1), "relu")

    def read_out(z: Sequence[Scalar], arithmetic: Arithmetic) -> Scalar:
        return reader(z, arithmetic)[0]

    encode: Callable[[Sequence[Scalar], int, Arithmetic], Sequence[Head]]
    if kind == "network":
        trunk = _random_network(rng, (token_dimension + 2, 8, heads * (1 + dimension)), "tanh")
        code = [[rng.uniform(-1, 1) for _ in range(2)] for _ in range(length)]
        encode = network_encoder(trunk, heads, dimension, code)
    else:
        slopes = [[rng.gauss(0, 1.5) for _ in range(token_dimension)] for _ in range(heads * (1 + dimension))]
        shifts = [[rng.uniform(-1.5, 1.5) for _ in slopes] for _ in range(length)]

        def encode(token: Sequence[Scalar], position: int, arithmetic: Arithmetic) -> list[Head]:
            lines = [sum(map(mul, token, a)) + b for a, b in zip(slopes, shifts[position], strict=True)]
            result: list[Head] = []
            for i in range(heads):
                first, *rest = lines[i * (1 + dimension) : (i + 1) * (1 + dimension)]
                result.append((2 * arithmetic.sin(first), [_shape(kind, line, arithmetic) for line in rest]))
            return result

    return OneLayer(heads, dimension, token_dimension, encode, read_out, length=length, name=f"random {kind}")


def _shape(kind: RandomKind, line: Scalar, arithmetic: Arithmetic) -> Scalar:
    if kind == "tanh":
        return arithmetic.tanh(line)
    if kind == "polynomial":
        return line - line * line * line / 3
    if kind == "exponential":
        return arithmetic.exp(-(line * line))
    return arithmetic.sin(2 * line)


def _random_network(rng: random.Random, widths: Sequence[int], activation: Activation) -> Network:
    layers = []
    for inputs, outputs in pairwise(widths):
        scale = 1.8 / math.sqrt(inputs)
        weights = tuple(tuple(rng.gauss(0, scale) for _ in range(inputs)) for _ in range(outputs))
        layers.append((weights, tuple(rng.gauss(0, 0.5) for _ in range(outputs))))
    return Network(tuple(layers), activation)
