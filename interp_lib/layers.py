"""Layers, blocks and transformers as frozen values with exact rational weights.

Nothing here computes a forward pass (see `interp_lib.evaluate`) and nothing here knows how weights are
chosen (see `interp_lib.interpolation`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, final

from .fields import FLOAT, Field, Matrix, Rational, fraction, rational, rational_matrix

if TYPE_CHECKING:
    from .evaluate import State

Vector = tuple[Fraction, ...]
Rows = tuple[Vector, ...]
Count = Literal["structured", "nonzero", "dense"]


class LayerError(ValueError):
    """A weight has the wrong shape or is not a rational number; the message names it."""


def _vector(values: Iterable[Any], name: str, length: int | None = None) -> Vector:
    listed = list(values)
    if length is not None and len(listed) != length:
        raise LayerError(f"{name} has {len(listed)} entries; expected {length}")
    try:
        return tuple(v if type(v) is Fraction else fraction(rational(v)) for v in listed)
    except (TypeError, ValueError) as problem:
        raise LayerError(f"{name} holds {problem}; rational numbers are required") from None


def _rows(values: Iterable[Iterable[Any]], name: str, count: int, length: int) -> Rows:
    listed = [_vector(row, f"{name}[{i}]", length) for i, row in enumerate(values)]
    if len(listed) != count:
        raise LayerError(f"{name} has {len(listed)} rows; expected {count}")
    return tuple(listed)


def _nonzero(*groups: Iterable[Fraction]) -> int:
    return sum(1 for group in groups for v in group if v)


class FeedForwardOver(NamedTuple):
    """The weights of a feed-forward layer in one field; ``U`` and ``W`` transposed for row tokens."""

    eta: Any
    U_transposed: Matrix
    b: Matrix
    W_transposed: Matrix


@final
@dataclass(frozen=True, slots=True, init=False)
class FeedForward:
    """``FF(x) = η x + W σ(U x + b)`` with ``σ = ReLU``; ``eta``, ``U``, ``b``, ``W`` as in the paper.

    Shapes: ``U`` is ``(d', d)``, ``b`` is ``(d',)``, ``W`` is ``(d, d')``; ``d'`` is the width and may be 0.

    Exactness: exact over Q.

    Raises: `LayerError`.

    Example:

    >>> layer = FeedForward(eta=1, U=[[1, 0]], b=[-1], W=[[0], [2]])
    >>> layer.width, layer.W
    (1, ((Fraction(0, 1),), (Fraction(2, 1),)))
    """

    eta: Fraction
    U: Rows
    b: Vector
    W: Rows
    _over: dict[Field, FeedForwardOver] = field(compare=False, repr=False)

    def __init__(self, eta: Any, U: Sequence[Sequence[Any]], b: Sequence[Any], W: Sequence[Sequence[Any]]) -> None:
        d, width = len(W), len(b)
        if d < 1:
            raise LayerError("W has no rows; expected d ≥ 1")
        object.__setattr__(self, "eta", _vector([eta], "eta")[0])
        object.__setattr__(self, "U", _rows(U, "U", width, d))
        object.__setattr__(self, "b", _vector(b, "b"))
        object.__setattr__(self, "W", _rows(W, "W", d, width))
        object.__setattr__(self, "_over", {})

    @classmethod
    def identity(cls, d: int) -> FeedForward:
        """The layer ``x ↦ x`` on ``R^d``, of width 0."""
        return cls(1, [], [], [[]] * d)

    @property
    def d(self) -> int:
        return len(self.W)

    @property
    def width(self) -> int:
        """The number of ReLU units, ``d'``."""
        return len(self.b)

    def over(self, field: Field) -> FeedForwardOver:
        """The weights in the given field, converted once."""
        if field not in self._over:
            self._over[field] = FeedForwardOver(
                field.scalar(rational(self.eta)),
                field.transpose(field.matrix(rational_matrix(self.U, self.d))),
                field.matrix(rational_matrix([self.b])),
                field.transpose(field.matrix(rational_matrix(self.W, self.width))),
            )
        return self._over[field]

    def num_parameters(self, count: Count) -> int:
        if count == "nonzero":
            return _nonzero([self.eta], self.b, *self.U, *self.W)
        return 1 + self.width * (2 * self.d + 1)

    def __reduce__(self) -> tuple[Any, ...]:
        return FeedForward, (self.eta, self.U, self.b, self.W)


class ScaledLowRankOver(NamedTuple):
    """The parts of a structured matrix in one field; ``left`` transposed for row tokens."""

    scale: Any
    left: Matrix
    left_transposed: Matrix
    right: Matrix


@final
@dataclass(frozen=True, slots=True, init=False)
class ScaledLowRank:
    """The ``d × d`` matrix ``scale · I + left rightᵀ``; the paper's ``α I + a₁ a₂ᵀ``.

    Shapes: ``left`` and ``right`` are ``(d, r)``; ``r`` is the rank of the low-rank part and may be 0.

    Exactness: exact over Q.

    Cost: applied to a token in ``O(d (r + 1))`` operations, without forming the dense matrix.

    Raises: `LayerError`.

    Example:

    >>> ScaledLowRank(2, [[1], [0]], [[0], [3]]).dense()
    ((Fraction(2, 1), Fraction(3, 1)), (Fraction(0, 1), Fraction(2, 1)))
    """

    scale: Fraction
    left: Rows
    right: Rows
    _over: dict[Field, ScaledLowRankOver] = field(compare=False, repr=False)

    def __init__(self, scale: Any, left: Sequence[Sequence[Any]], right: Sequence[Sequence[Any]]) -> None:
        d = len(left)
        if d < 1:
            raise LayerError("left has no rows; expected d ≥ 1")
        rank = len(left[0])
        object.__setattr__(self, "scale", _vector([scale], "scale")[0])
        object.__setattr__(self, "left", _rows(left, "left", d, rank))
        object.__setattr__(self, "right", _rows(right, "right", d, rank))
        object.__setattr__(self, "_over", {})

    @classmethod
    def identity(cls, d: int, scale: Any = 1) -> ScaledLowRank:
        """``scale · I``."""
        return cls(scale, [[]] * d, [[]] * d)

    @classmethod
    def zero(cls, d: int) -> ScaledLowRank:
        """The zero matrix."""
        return cls.identity(d, 0)

    @classmethod
    def outer(cls, left: Sequence[Any], right: Sequence[Any]) -> ScaledLowRank:
        """``left rightᵀ`` for two vectors."""
        return cls(0, [[v] for v in left], [[v] for v in right])

    @property
    def d(self) -> int:
        return len(self.left)

    @property
    def rank(self) -> int:
        """The number of columns of ``left``: an upper bound for the rank of the low-rank part."""
        return len(self.left[0])

    @property
    def is_zero(self) -> bool:
        """Whether every part that could contribute is absent or zero."""
        return not self.scale and (not any(map(any, self.left)) or not any(map(any, self.right)))

    def dense(self) -> Rows:
        """The ``d × d`` matrix itself."""
        matrix = rational_matrix(self.left) * rational_matrix(self.right).transpose()
        for i in range(self.d):
            matrix[i, i] += rational(self.scale)
        return tuple(tuple(map(fraction, row)) for row in matrix.tolist())

    def over(self, field: Field) -> ScaledLowRankOver:
        """The parts in the given field, converted once."""
        if field not in self._over:
            left = field.matrix(rational_matrix(self.left))
            right = field.matrix(rational_matrix(self.right))
            self._over[field] = ScaledLowRankOver(
                field.scalar(rational(self.scale)), left, field.transpose(left), right
            )
        return self._over[field]

    def num_parameters(self, count: Count) -> int:
        if count == "dense":
            return self.d**2
        if count == "nonzero":
            return _nonzero([self.scale], *self.left, *self.right)
        return 1 + 2 * self.d * self.rank

    def __reduce__(self) -> tuple[Any, ...]:
        return ScaledLowRank, (self.scale, self.left, self.right)


@lru_cache(maxsize=64)
def _identity_attention(d: int) -> SelfAttention:
    """One value for all blocks of a transformer that do not attend."""
    return SelfAttention(1, ScaledLowRank.zero(d), ScaledLowRank.zero(d))


@final
@dataclass(frozen=True, slots=True, init=False)
class SelfAttention:
    """``SA_i(X) = ρ x_i + V Σ_l π_il x_l``; ``rho``, ``A``, ``V`` as in the paper.

    Hardmax (temperature 0): ``π_i.`` is uniform on all maximisers of ``<A x_i, x_l>``.
    Softmax at temperature ``τ > 0``: ``π_il ∝ exp(<A x_i, x_l> / τ)``.
    With ``causal=True`` position ``i`` attends to the positions ``l ≤ i`` alone, and the order of the tokens matters.

    Shapes: ``A`` and ``V`` are `ScaledLowRank` matrices of the same size.

    Exactness: exact over Q.

    Raises: `LayerError`.

    Example:

    >>> SelfAttention.identity(2).is_identity
    True
    """

    rho: Fraction
    A: ScaledLowRank
    V: ScaledLowRank
    causal: bool

    def __init__(self, rho: Any, A: ScaledLowRank, V: ScaledLowRank, causal: bool = False) -> None:
        if A.d != V.d:
            raise LayerError(f"A is {A.d} × {A.d} but V is {V.d} × {V.d}; the same size is required")
        if not isinstance(causal, bool):
            raise LayerError(f"causal: expected True or False, got {causal!r}")
        object.__setattr__(self, "rho", _vector([rho], "rho")[0])
        object.__setattr__(self, "A", A)
        object.__setattr__(self, "V", V)
        object.__setattr__(self, "causal", causal)

    @classmethod
    def identity(cls, d: int) -> SelfAttention:
        """The layer that changes nothing: ``ρ = 1``, ``V = 0``."""
        return _identity_attention(d)

    @property
    def d(self) -> int:
        return self.A.d

    @property
    def is_identity(self) -> bool:
        return self.rho == 1 and self.V.is_zero

    def num_parameters(self, count: Count) -> int:
        own = int(bool(self.rho)) if count == "nonzero" else 1
        return own + self.A.num_parameters(count) + self.V.num_parameters(count)

    def __reduce__(self) -> tuple[Any, ...]:
        return SelfAttention, (self.rho, self.A, self.V, self.causal)


@final
@dataclass(frozen=True, slots=True)
class Block:
    """One block: the feed-forward layer first, then self-attention.

    Raises: `LayerError` when the two layers have different dimensions.

    >>> Block.identity(3).d
    3
    """

    feed_forward: FeedForward
    attention: SelfAttention

    def __post_init__(self) -> None:
        if self.feed_forward.d != self.attention.d:
            raise LayerError(
                f"feed_forward acts on R^{self.feed_forward.d} but attention on R^{self.attention.d}; "
                "the same dimension is required"
            )

    @classmethod
    def identity(cls, d: int) -> Block:
        """The block that changes nothing; it pads a construction to a stated depth."""
        return cls(FeedForward.identity(d), SelfAttention.identity(d))

    @classmethod
    def feeding(cls, layer: FeedForward) -> Block:
        """A block whose attention layer changes nothing."""
        return cls(layer, SelfAttention.identity(layer.d))

    @property
    def d(self) -> int:
        return self.feed_forward.d

    def num_parameters(self, count: Count) -> int:
        return self.feed_forward.num_parameters(count) + self.attention.num_parameters(count)


@final
@dataclass(frozen=True, slots=True, init=False)
class Transformer:
    """``T = block_L ∘ … ∘ block_1`` with exact weights; call it on a sequence to evaluate it.

    Shapes: acts on sequences ``(n, d)`` of any length ``n ≥ 1``.

    Exactness: the weights are exact rationals; a forward pass is exact over Q, enclosed, or float64,
    as its ``field`` says.

    Cost: ``O(n d)`` operations per block, and ``O(n² d)`` where an attention matrix has rank above one.

    Raises: `LayerError` for blocks of different dimensions or phases that do not add up to the depth.

    Example:

    >>> T = Transformer([Block.identity(2)], {"padding": 1})
    >>> T.depth, T.width, T([[1, 2]]).tolist()
    (1, 0, [[1.0, 2.0]])
    """

    blocks: tuple[Block, ...]
    phase_counts: tuple[tuple[str, int], ...]
    critical_temperature: Fraction | None

    def __init__(
        self,
        blocks: Iterable[Block],
        phases: Mapping[str, int] | None = None,
        critical_temperature: Any = None,
    ) -> None:
        listed = tuple(blocks)
        if not listed:
            raise LayerError("blocks is empty; a transformer has at least one block")
        for k, block in enumerate(listed):
            if block.d != listed[0].d:
                raise LayerError(f"blocks[{k}] acts on R^{block.d} but blocks[0] on R^{listed[0].d}")
        counts = tuple((phases if phases is not None else {"blocks": len(listed)}).items())
        if sum(count for _, count in counts) != len(listed):
            raise LayerError(f"phases count {sum(count for _, count in counts)} blocks but there are {len(listed)}")
        critical = None if critical_temperature is None else _vector([critical_temperature], "critical_temperature")[0]
        object.__setattr__(self, "blocks", listed)
        object.__setattr__(self, "phase_counts", counts)
        object.__setattr__(self, "critical_temperature", critical)

    @property
    def d(self) -> int:
        """The dimension of the tokens."""
        return self.blocks[0].d

    @property
    def depth(self) -> int:
        """The number of blocks, ``L``."""
        return len(self.blocks)

    @property
    def width(self) -> int:
        """The largest feed-forward width ``d'``."""
        return max(block.feed_forward.width for block in self.blocks)

    @property
    def causal(self) -> bool:
        """Whether some attention layer that acts has a causal mask, so that the order of the tokens matters."""
        return any(block.attention.causal and not block.attention.V.is_zero for block in self.blocks)

    @property
    def phases(self) -> dict[str, int]:
        """The phases in order, each with its number of blocks."""
        return dict(self.phase_counts)

    def phase_of(self, block: int) -> str:
        """The name of the phase that block number ``block`` (from 0) belongs to."""
        passed = 0
        for name, count in self.phase_counts:
            passed += count
            if block < passed:
                return name
        raise IndexError(f"block {block} of a transformer with {self.depth} blocks")

    def num_parameters(self, count: Count = "structured") -> int:
        """The number of parameters ``P``.

        ``"structured"`` counts scaled identities plus low rank (what the theorems' ``O(·)`` counts),
        ``"nonzero"`` the non-zero numbers among those, ``"dense"`` full attention matrices.
        """
        if count not in ("structured", "nonzero", "dense"):
            raise LayerError(f'count: expected "structured", "nonzero" or "dense", got {count!r}')
        return sum(block.num_parameters(count) for block in self.blocks)

    def padded(self, depth: int) -> Transformer:
        """The same map with identity blocks appended up to ``depth`` blocks."""
        if depth < self.depth:
            raise LayerError(f"cannot pad {self.depth} blocks to {depth}")
        extra = depth - self.depth
        if not extra:
            return self
        phases = self.phases
        phases["padding"] = phases.get("padding", 0) + extra
        return Transformer(self.blocks + (Block.identity(self.d),) * extra, phases, self.critical_temperature)

    def __call__(self, X: Any, temperature: Any = 0) -> Any:
        """The float64 forward pass: an ``(n, d)`` array.  Temperature 0 is hardmax."""
        return self.forward(X, field=FLOAT, temperature=temperature)

    def forward(self, X: Any, field: Field = FLOAT, temperature: Any = 0) -> Any:
        """The output tokens over a field, one row per input token; see `interp_lib.evaluate.forward`."""
        from .evaluate import forward

        return forward(self, X, field, temperature)

    def forward_many(self, sequences: Iterable[Any], temperature: Any = 0) -> list[Any]:
        """The float64 outputs of many sequences in one pass; see `interp_lib.batch.forward_many`."""
        from .batch import forward_many

        return forward_many(self, sequences, temperature)

    def trace(self, X: Any, field: Field = FLOAT, temperature: Any = 0) -> tuple[State, ...]:
        """The states after every layer; see `interp_lib.evaluate.trace`."""
        from .evaluate import trace

        return trace(self, X, field, temperature)

    def to_torch(self, dtype: Any = None) -> Any:
        """The same weights as a `torch.nn.Module`; needs torch.  ``dtype`` defaults to ``torch.float64``.

        The module is called with tokens ``(n, d)`` or ``(batch, n, d)`` and a ``temperature`` (0 is hardmax).
        """
        import torch

        from .experiments.export import TorchTransformer

        return TorchTransformer(self, torch.float64 if dtype is None else dtype).eval()

    def __reduce__(self) -> tuple[Any, ...]:
        return Transformer, (self.blocks, self.phases, self.critical_temperature)


def read_temperature(value: Any) -> Rational:
    """A temperature ``τ ≥ 0`` as an exact rational; 0 means hardmax.

    >>> read_temperature(0.5)
    1/2
    """
    try:
        tau = rational(value)
    except (TypeError, ValueError) as problem:
        raise LayerError(f"temperature is {problem}; a finite number τ ≥ 0 is required") from None
    if tau < 0:
        raise LayerError(f"temperature is {value}; τ ≥ 0 is required")
    return tau
