"""Small transformers to be trained: a classification token reads the sequence, there is no layer norm.

    z(t) = encode(x(t)) (+ p(t)),   z(T+1) = c
    z(t) ← z(t) + W_O concat_i Σ_s softmax_s(<q_i z(t), k_i z(s)> / √n) v_i z(s),   z ← z + feed_forward(z)
    answer = read(z(T+1))

Keys are the tokens `1..T`; in the last layer only the classification token `T+1` asks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import torch
from torch import Tensor, nn

from .targets import ConfigurationError


@final
class Attention(nn.Module):
    """Softmax attention with `heads` heads of dimension `width` on states of dimension `size`."""

    def __init__(self, size: int, heads: int, width: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(size, heads * width)
        self.key = nn.Linear(size, heads * width)
        self.value = nn.Linear(size, heads * width)
        self.out = nn.Linear(heads * width, size)

    def weights(self, asking: Tensor, tokens: Tensor) -> Tensor:
        """Shapes: `asking` is `(batch, S, E)`, `tokens` `(batch, T, E)`; the result `(batch, heads, S, T)`."""
        queries, keys = self._split(self.query(asking)), self._split(self.key(tokens))
        scores: Tensor = queries @ keys.transpose(-1, -2) * queries.shape[-1] ** -0.5
        return scores.softmax(dim=-1)

    def collected(self, asking: Tensor, tokens: Tensor) -> Tensor:
        """What all heads bring, side by side, before the output matrix: `(batch, S, heads · width)`."""
        mixed = nn.functional.scaled_dot_product_attention(
            self._split(self.query(asking)), self._split(self.key(tokens)), self._split(self.value(tokens))
        )
        return mixed.transpose(1, 2).flatten(2)

    def forward(self, asking: Tensor, tokens: Tensor) -> Tensor:
        answer: Tensor = self.out(self.collected(asking, tokens))
        return answer

    def _split(self, states: Tensor) -> Tensor:
        return states.unflatten(-1, (self.heads, -1)).transpose(1, 2)


@final
class Network(nn.Module):
    """A transformer with `len(heads)` layers; `positions` tokens get a learned positional code, none if it is 0."""

    def __init__(
        self, dimension: int, heads: list[int], size: int, width: int, hidden: int, positions: int = 0
    ) -> None:
        super().__init__()
        self.encode = _feed_forward(dimension, hidden, size)
        self.token = nn.Parameter(torch.randn(size) * size**-0.5)
        self.code = nn.Parameter(torch.randn(positions, size) * size**-0.5) if positions else None
        self.attention = nn.ModuleList(Attention(size, h, width) for h in heads)
        self.feed_forward = nn.ModuleList(_feed_forward(size, hidden, size) for _ in heads)
        self.read = _feed_forward(size, hidden, 1)

    def states(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """The states the last attention layer works on: of the classification token, `(batch, 1, E)`, and of the tokens."""
        encoded = self.encode(tokens)
        if self.code is not None:
            encoded = encoded + self.code
        states = torch.cat([encoded, self.token.expand(tokens.shape[0], 1, -1)], dim=1)
        for attention, feed_forward in list(zip(self.attention, self.feed_forward, strict=True))[:-1]:
            states = states + attention(states, states[:, :-1])
            states = states + feed_forward(states)
        return states[:, -1:], states[:, :-1]

    def forward(self, tokens: Tensor) -> Tensor:
        asking, states = self.states(tokens)
        asking = asking + self.attention[-1](asking, states)
        asking = asking + self.feed_forward[-1](asking)
        answer: Tensor = self.read(asking)[:, 0, 0]
        return answer


def network(description: Mapping[str, Any], dimension: int, seed: int) -> Network:
    """The untrained network a configuration describes, its weights drawn with `seed`.

    Raises: `ConfigurationError` for fields that are unknown, missing or not positive.

    >>> model = network({"heads": [2, 1], "size": 8, "width": 4, "hidden": 16}, 3, 0)
    >>> model(torch.zeros(5, 7, 3)).shape
    torch.Size([5])
    """
    heads = description.get("heads")
    if not isinstance(heads, list) or not heads or not all(type(h) is int and h > 0 for h in heads):
        raise ConfigurationError(f"model.heads is {heads!r}; expected a list of positive integers, one for each layer")
    for name, value in description.items():
        if name != "heads" and (type(value) is not int or value < (name != "positions")):
            raise ConfigurationError(f"model.{name} is {value!r}; expected a positive integer")
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        try:
            return Network(dimension, **description)
        except TypeError as error:
            raise ConfigurationError(f"model: {error}") from None


def _feed_forward(dimension: int, hidden: int, out: int) -> nn.Module:
    return nn.Sequential(nn.Linear(dimension, hidden), nn.GELU(), nn.Linear(hidden, out))
