"""One forward pass, written once over a field.

Tokens are the rows of a matrix ``X``.  A feed-forward layer is ``η X + σ(X Uᵀ + b) Wᵀ``.  Attention
scores ``<A x_i, x_l>`` with ``A = α I + L Rᵀ`` are inner products of short vectors,

    ``<A x_i, x_l> = <(α x_i, Rᵀ x_i), (x_l, Lᵀ x_l)>``,

so no ``d × d`` matrix is formed; for ``α = 0`` and rank one the query and the key are single numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, final

from .fields import FLOAT, Field, Matrix, Rational, rational, rational_matrix
from .layers import FeedForward, LayerError, ScaledLowRank, SelfAttention, Transformer, read_temperature
from .sequences import read_tokens


@final
@dataclass(frozen=True, slots=True)
class State:
    """The tokens after one layer of a forward pass.

    ``block`` counts from 1 (0 is the input), ``layer`` is ``"input"``, ``"feed_forward"`` or
    ``"attention"``, ``phase`` is the phase of the block, ``tokens`` are numbers of the field.
    """

    block: int
    layer: str
    phase: str
    tokens: Any


def forward(transformer: Transformer, X: Any, field: Field = FLOAT, temperature: Any = 0) -> Any:
    """The output tokens ``T_τ(X)``, one row per input token.

    Shapes: ``X`` is ``(n, d)``; so is the result.

    Exactness: `EXACT` gives Fractions, equal to the real-arithmetic result; `balls` gives enclosures;
    `FLOAT` gives a float64 array.  With `EXACT`, softmax is possible only where scores are constant.

    Cost: ``O(n d)`` per block with attention of rank at most one under hardmax, else ``O(n² d)``.

    Raises: `DatasetError` for a bad ``X``, `LayerError` for a bad temperature, `FieldError` where the
    field has no exact result, `UndecidedError` where balls cannot decide a hardmax.

    Example:

    >>> from interp_lib.layers import Block
    >>> forward(Transformer([Block.identity(2)]), [[1, 2]]).tolist()
    [[1.0, 2.0]]
    """
    *_, last = states(transformer, X, field, temperature)
    return field.result(last.tokens)


def trace(transformer: Transformer, X: Any, field: Field = FLOAT, temperature: Any = 0) -> tuple[State, ...]:
    """The input and the tokens after every layer: ``2 L + 1`` states with their phase names.

    Shapes, exactness, cost and errors are those of `forward`.

    >>> from interp_lib.layers import Block
    >>> [(s.block, s.layer) for s in trace(Transformer([Block.identity(2)]), [[1, 2]])]
    [(0, 'input'), (1, 'feed_forward'), (1, 'attention')]
    """
    return tuple(
        replace(state, tokens=field.result(state.tokens)) for state in states(transformer, X, field, temperature)
    )


def states(transformer: Transformer, X: Any, field: Field = FLOAT, temperature: Any = 0) -> Iterator[State]:
    """The states of `trace` one after another, each computed when it is asked for, as matrices of the field.

    Shapes, exactness and errors are those of `forward`.

    >>> from interp_lib.layers import Block
    >>> next(states(Transformer([Block.identity(2)]), [[1, 2]])).layer
    'input'
    """
    tau = read_temperature(temperature)
    tokens = field.matrix(rational_matrix(_read(transformer, X, "X")))
    yield State(0, "input", "input", tokens)
    for number, block in enumerate(transformer.blocks, start=1):
        phase = transformer.phase_of(number - 1)
        tokens = apply_feed_forward(block.feed_forward, tokens, field)
        yield State(number, "feed_forward", phase, tokens)
        tokens = apply_attention(block.attention, tokens, field, tau)
        yield State(number, "attention", phase, tokens)


def read_floats(transformer: Transformer, X: Any, name: str) -> Any:
    """A float64 array; an array of finite floats of the right shape is taken as it is."""
    import numpy as np

    right_shape = isinstance(X, np.ndarray) and X.ndim == 2 and X.size > 0 and X.shape[1] == transformer.d
    if right_shape and X.dtype == np.float64 and np.isfinite(X).all():
        return X
    return FLOAT.matrix(rational_matrix(_read(transformer, X, name)))


def _read(transformer: Transformer, X: Any, name: str) -> list[list[Rational]]:
    rows = read_tokens(X, name)
    if len(rows[0]) != transformer.d:
        raise LayerError(f"{name} has tokens in R^{len(rows[0])} but the transformer acts on R^{transformer.d}")
    return rows


def apply_feed_forward(layer: FeedForward, tokens: Matrix, field: Field) -> Matrix:
    """``η X + σ(X Uᵀ + b) Wᵀ`` for a matrix of the field, one token per row."""
    eta, U_transposed, b, W_transposed = layer.over(field)
    kept = tokens if layer.eta == 1 else field.scale(eta, tokens)
    if not layer.width:
        return kept
    units = field.relu(field.add_to_rows(field.product(tokens, U_transposed), b))
    return field.add(kept, field.product(units, W_transposed))


def apply_attention(layer: SelfAttention, tokens: Matrix, field: Field, temperature: Rational) -> Matrix:
    """``ρ X + Π X Vᵀ`` for a matrix of the field, one token per row."""
    kept = tokens if layer.rho == 1 else field.scale(field.scalar(rational(layer.rho)), tokens)
    if layer.V.is_zero:
        return kept
    averaged = _average(layer.A, tokens, field, temperature, layer.causal)
    return field.add(kept, _times(layer.V, averaged, field))


def _average(A: ScaledLowRank, tokens: Matrix, field: Field, temperature: Rational, causal: bool) -> Matrix:
    if A.is_zero:
        # Constant scores: hardmax ties over all tokens it may see and softmax is uniform at every temperature.
        return field.running_mean(tokens) if causal else field.mean(tokens)
    scale, left, _, right = A.over(field)
    if not A.scale:
        queries, keys = field.product(tokens, right), field.product(tokens, left)
    elif not A.rank:
        queries, keys = field.scale(scale, tokens), tokens
    else:
        queries = field.join(field.scale(scale, tokens), field.product(tokens, right))
        keys = field.join(tokens, field.product(tokens, left))

    def attend(seen: Matrix, queries: Matrix, keys: Matrix) -> Matrix:
        if temperature == 0:
            return field.hardmax(seen, queries, keys)
        return field.softmax(seen, queries, keys, temperature)

    if not causal:
        return attend(tokens, queries, keys)
    # A masked position is one that is not there: position i sees the sequence that ends with it.
    return field.stack(
        [
            attend(field.part(tokens, 0, i + 1), field.part(queries, i, i + 1), field.part(keys, 0, i + 1))
            for i in range(len(field.rows(tokens)))
        ]
    )


def _times(V: ScaledLowRank, tokens: Matrix, field: Field) -> Matrix:
    """``X Vᵀ = scale X + (X right) leftᵀ``."""
    scale, _, left_transposed, right = V.over(field)
    if not V.rank:
        return tokens if V.scale == 1 else field.scale(scale, tokens)
    low_rank = field.product(field.product(tokens, right), left_transposed)
    return field.add(field.scale(scale, tokens), low_rank) if V.scale else low_rank
