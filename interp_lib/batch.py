"""The float64 pass of many sequences at once.

Feed-forward layers act on all tokens of all sequences together.  Where consecutive residual layers read one projection
``t = <u, x>`` only, a *run*, the tokens are needed once:

    ``x ↦ x + Σ_k W_k h_k``,  ``h_k = σ(f_k t_k + b_k)``,  ``t_(k+1) = t_k + <u, W_k h_k>``,

so each layer of the run costs a few numbers per token, whatever the dimension.  Only attention that acts is computed sequence by
sequence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, final

from .evaluate import apply_attention, apply_feed_forward, read_floats
from .fields import FLOAT
from .layers import FeedForward, FeedForwardOver, SelfAttention, Transformer, read_temperature

if TYPE_CHECKING:
    import numpy as np

LAYERS_AT_ONCE = 10
"""How many layers of a run are added to the tokens together: their units should stay in the processor's cache."""


def forward_many(transformer: Transformer, sequences: Iterable[Any], temperature: Any = 0) -> list[Any]:
    """The float64 outputs of many sequences in one pass.

    Statement: ``forward`` for each of them, up to rounding.

    Shapes: sequences ``(n_j, d)`` of any lengths; one array ``(n_j, d)`` for each.

    Exactness: float64.

    Cost: at most that of `forward`, with one call per layer instead of one per layer and sequence; ``O(w)`` instead of ``O(w d)`` per
    token where a layer of width ``w`` continues a run.

    Raises: as `forward`.

    Example:

    >>> from interp_lib.layers import Block
    >>> [tokens.shape for tokens in forward_many(Transformer([Block.identity(2)]), [[[1, 2]], [[3, 4], [5, 6]]])]
    [(1, 2), (2, 2)]
    """
    import numpy as np

    tau = read_temperature(temperature)
    read = [read_floats(transformer, X, f"sequences[{j}]") for j, X in enumerate(sequences)]
    if not read:
        return []
    inner_ends = np.cumsum([len(tokens) for tokens in read])[:-1]
    tokens = np.concatenate(read)
    which = np.arange(len(tokens))
    for step in _steps(transformer):
        if isinstance(step, _Run):
            tokens = step.apply(tokens)
        elif isinstance(step, FeedForward):
            tokens = apply_feed_forward(step, tokens, FLOAT)
        else:
            parts = np.split(tokens[which], inner_ends)
            tokens = np.concatenate([apply_attention(step, part, FLOAT, tau) for part in parts])
            # Attention makes tokens coincide, and equal tokens stay equal: each is followed once.
            tokens, which = np.unique(tokens, axis=0, return_inverse=True)
            which = which.reshape(-1)
    return np.split(tokens[which], inner_ends)


@final
@dataclass(frozen=True, slots=True)
class _Run:
    """Consecutive residual layers whose units all read multiples of one direction ``u``."""

    u: np.ndarray
    layers: list[tuple[np.ndarray, FeedForwardOver]] = field(default_factory=list)
    """For each layer the factors ``f`` with ``U = f uᵀ``, and its weights."""

    def apply(self, tokens: np.ndarray) -> np.ndarray:
        import numpy as np

        tokens, t = tokens.copy(), tokens @ self.u
        for start in range(0, len(self.layers), LAYERS_AT_ONCE):
            group = self.layers[start : start + LAYERS_AT_ONCE]
            W_transposed = np.concatenate([layer.W_transposed for _, layer in group])
            units = np.empty((len(W_transposed), len(tokens)))
            end = 0
            for factors, layer in group:
                h = units[end : (end := end + len(factors))]
                np.multiply(factors[:, None], t, out=h)
                h += layer.b.T
                np.maximum(h, 0.0, out=h)
                t += (layer.W_transposed @ self.u) @ h
            tokens += units.T @ W_transposed
        return tokens


def _steps(transformer: Transformer) -> Iterator[_Run | FeedForward | SelfAttention]:
    """The layers in order, identities left out, residual layers that read one projection gathered into runs."""
    run: _Run | None = None
    for block in transformer.blocks:
        layer = block.feed_forward
        if layer.eta == 1 and layer.width:
            over = layer.over(FLOAT)
            U = over.U_transposed.T
            factors = None if run is None else _multiples(U, run.u)
            if factors is None:
                if run is not None:
                    yield run
                u = next((row for row in U if row.any()), U[0])
                factors = _multiples(U, u)
                run = None if factors is None else _Run(u)
            if run is None or factors is None:
                yield layer
            else:
                run.layers.append((factors, over))
        elif layer.eta != 1:
            if run is not None:
                yield run
            run = None
            yield layer
        if not block.attention.is_identity:
            if run is not None:
                yield run
            run = None
            yield block.attention
    if run is not None:
        yield run


def _multiples(U: np.ndarray, u: np.ndarray) -> np.ndarray | None:
    """The ``f`` with ``U = f uᵀ`` in float64; None if a row is not such a multiple."""
    import numpy as np

    at = int(np.argmax(np.abs(u)))
    if not u[at]:
        return np.zeros(len(U)) if not U.any() else None
    factors: np.ndarray = U[:, at] / u[at]
    return factors if np.array_equal(factors[:, None] * u, U) else None
