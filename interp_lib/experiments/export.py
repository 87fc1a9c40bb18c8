"""Transformers as torch modules: the same weights, the same structure, ready for training."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, final

import torch
from torch import Tensor, nn

from ..layers import Block, ScaledLowRank, Transformer


@final
class StructuredMatrix(nn.Module):
    """``scale · I + left rightᵀ``, applied without forming the ``d × d`` matrix."""

    def __init__(self, matrix: ScaledLowRank, dtype: torch.dtype) -> None:
        super().__init__()
        self.scale = _parameter(float(matrix.scale), dtype)
        self.left = _parameter(_floats(matrix.left), dtype)
        self.right = _parameter(_floats(matrix.right), dtype)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.scale * tokens + (tokens @ self.right) @ self.left.T

    def vanishes(self) -> bool:
        """Whether the matrix is zero because a factor is."""
        return not bool(self.scale) and not (bool(self.left.any()) and bool(self.right.any()))


@final
class TorchBlock(nn.Module):
    """One block: ``η x + W σ(U x + b)``, then ``ρ x_i + V Σ_l π_il x_l``."""

    def __init__(self, block: Block, dtype: torch.dtype) -> None:
        super().__init__()
        layer, attention = block.feed_forward, block.attention
        width, d = layer.width, layer.d
        self.eta = _parameter(float(layer.eta), dtype)
        self.U = nn.Parameter(torch.tensor(_floats(layer.U), dtype=dtype).reshape(width, d))
        self.b = _parameter(list(map(float, layer.b)), dtype)
        self.W = nn.Parameter(torch.tensor(_floats(layer.W), dtype=dtype).reshape(d, width))
        self.rho = _parameter(float(attention.rho), dtype)
        self.A = StructuredMatrix(attention.A, dtype)
        self.V = StructuredMatrix(attention.V, dtype)
        self.rank_one = attention.A.scale == 0 and attention.A.rank == 1
        self.causal = attention.causal

    def forward(self, tokens: Tensor, temperature: float) -> Tensor:
        tokens = self.eta * tokens + torch.relu(tokens @ self.U.T + self.b) @ self.W.T
        # While training, a zero V still needs its gradient.
        if not self.training and self.V.vanishes():
            return self.rho * tokens
        return self.rho * tokens + self.V(self._average(tokens, temperature))

    def _average(self, tokens: Tensor, temperature: float) -> Tensor:
        if not self.training and self.A.vanishes():
            first = tokens[..., :1, :]
            if self.causal:
                seen = torch.arange(1, tokens.shape[-2] + 1, dtype=tokens.dtype).unsqueeze(-1)
                return first + (tokens - first).cumsum(dim=-2) / seen
            return (first + (tokens - first).mean(dim=-2, keepdim=True)).expand_as(tokens)
        scores = self._rank_one_scores(tokens) if self.rank_one else self.A(tokens) @ tokens.transpose(-1, -2)
        if self.causal:
            later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
            scores = scores.masked_fill(later, -torch.inf)
        best = scores.amax(dim=-1, keepdim=True)
        if temperature > 0:
            # Subtract before dividing: nothing overflows, however cold it is.
            return torch.softmax((scores - best) / temperature, dim=-1) @ tokens
        hits = scores == best
        first = tokens.gather(-2, hits.to(torch.uint8).argmax(dim=-1, keepdim=True).expand_as(tokens))
        several = hits.sum(dim=-1, keepdim=True)
        if bool((several == 1).all()):
            return first
        # Relative to one maximiser, so that the mean of equal tokens is exactly that token.
        weights = hits.to(tokens.dtype) / several
        return first + torch.einsum("...il,...ild->...id", weights, tokens.unsqueeze(-3) - first.unsqueeze(-2))

    def _rank_one_scores(self, tokens: Tensor) -> Tensor:
        queries, keys = tokens @ self.A.right, tokens @ self.A.left
        return queries @ keys.transpose(-1, -2)


@final
class TorchTransformer(nn.Module):
    """The module of a `Transformer`; call it with tokens ``(n, d)`` or ``(batch, n, d)``.

    ``temperature`` 0 is hardmax.  All weights are parameters, so the module can be trained further.
    """

    def __init__(self, transformer: Transformer, dtype: torch.dtype) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(TorchBlock(block, dtype) for block in transformer.blocks)

    def forward(self, tokens: Tensor, temperature: float = 0.0) -> Tensor:
        for block in self.blocks:
            tokens = block(tokens, temperature)
        return tokens


def _floats(rows: Iterable[Sequence[Any]]) -> list[list[float]]:
    return [list(map(float, row)) for row in rows]


def _parameter(value: Any, dtype: torch.dtype) -> nn.Parameter:
    return nn.Parameter(torch.tensor(value, dtype=dtype))
