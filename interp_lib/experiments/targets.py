"""What the networks are asked for: functions of a sequence of Gaussian tokens, each with its own way to draw sequences.

A target is named in a configuration as a dictionary, `{"kind": "pairwise maxima", "number": 2, "length": 32, ...}`, and
built by `target`.  Every random number comes from a generator that is passed in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, final

import torch
from torch import Generator, Tensor

CHUNK: Final = 256


class ConfigurationError(ValueError):
    """A field of a configuration is unknown, missing or out of range; the message names it."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """A scalar function of `length` tokens of dimension `dimension`.

    Shapes: `draw(count, generator)` gives `(count, T, d)`; `value` maps `(count, T, d)` to `(count,)`.
    """

    length: int
    dimension: int
    draw: Callable[[int, Generator], Tensor]
    value: Callable[[Tensor], Tensor]

    def sample(self, count: int, generator: Generator) -> tuple[Tensor, Tensor]:
        """Fresh sequences and their values, computed in pieces so that memory stays small."""
        tokens = self.draw(count, generator)
        return tokens, torch.cat([self.value(piece) for piece in tokens.split(CHUNK)])


def target(description: Mapping[str, Any], seed: int) -> Target:
    """The target a configuration describes; `seed` draws its matrices or directions.

    Raises: `ConfigurationError` for an unknown kind or a field that does not fit.

    >>> gaussian = torch.Generator().manual_seed(0)
    >>> tokens, values = target({"kind": "fixed positions", "length": 10, "positions": [0, 1, 2]}, 0).sample(5, gaussian)
    >>> bool((tokens[:, :3, 0].sum(1) - values).abs().max() < 1e-6)
    True
    """
    fields = dict(description)
    kind = fields.pop("kind", None)
    if kind not in KINDS:
        raise ConfigurationError(f"target.kind is {kind!r}; expected one of {sorted(KINDS)}")
    for name, value in fields.items():
        if name != "positions" and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
            raise ConfigurationError(f"target.{name} is {value!r}; expected a positive integer")
    try:
        return KINDS[kind](generator=torch.Generator().manual_seed(1_000_003 + seed), **fields)
    except TypeError as error:
        raise ConfigurationError(f"target of kind {kind!r}: {error}") from None


def pairwise_maxima(number: int, length: int, dimension: int, generator: Generator) -> Target:
    """`Σ_i max_{s,t} x(s)ᵀ A_i x(t)` with `number` Gaussian matrices `A_i`; order 2, dimension `number`."""
    matrices = torch.randn(number, dimension, dimension, generator=generator)

    def value(tokens: Tensor) -> Tensor:
        # One product per matrix keeps the (T, T) tables in the processor's cache.
        return sum(((tokens @ A) @ tokens.transpose(1, 2)).flatten(1).amax(dim=1) for A in matrices)

    return Target(length, dimension, _gaussian(length, dimension), value)


def tokenwise_maxima(number: int, length: int, dimension: int, generator: Generator) -> Target:
    """`Σ_i max_t a_iᵀ x(t)` with `number` Gaussian directions `a_i`; order 1, dimension `number`."""
    directions = torch.randn(dimension, number, generator=generator)
    return Target(
        length, dimension, _gaussian(length, dimension), lambda tokens: (tokens @ directions).amax(dim=1).sum(dim=1)
    )


def rank(place: int, length: int, dimension: int, generator: Generator) -> Target:
    """The `place`-th largest of the numbers `aᵀ x(t)` for one Gaussian unit direction `a`."""
    if place > length:
        raise ConfigurationError(f"target.place is {place}; expected at most target.length = {length}")
    direction = unit_direction(dimension, generator)
    return Target(
        length,
        dimension,
        _gaussian(length, dimension),
        lambda tokens: (tokens @ direction).topk(place, dim=1).values[:, -1],
    )


def unit_direction(dimension: int, generator: Generator) -> Tensor:
    """The direction `a` of `rank`."""
    direction = torch.randn(dimension, generator=generator)
    return direction / direction.norm()


def triangle_centre(length: int, generator: Generator) -> Target:
    """`min |x(r) + x(s) + x(t)|` over all triples, tokens `N(0, 2 I)` in the plane with norms clamped to `[0.2, 4]`; order 3.

    Triples may repeat a token.
    """
    del generator  # nothing about this target is random
    triples = torch.combinations(torch.arange(length), 3, with_replacement=True)

    def draw(count: int, generator: Generator) -> Tensor:
        tokens = torch.randn(count, length, 2, generator=generator) * 2**0.5
        norms = tokens.norm(dim=2, keepdim=True)
        return tokens * norms.clamp(0.2, 4) / norms

    def value(tokens: Tensor) -> Tensor:
        flat = tokens.permute(2, 1, 0).contiguous()
        sums = flat[:, triples[:, 0]] + flat[:, triples[:, 1]]
        sums += flat[:, triples[:, 2]]
        return sums.square_().sum(dim=0).amin(dim=0).sqrt()

    return Target(length, 2, draw, value)


def fixed_positions(length: int, positions: list[int], generator: Generator) -> Target:
    """The sum of the numbers at the given positions, counted from 0."""
    del generator
    if not positions or not all(type(p) is int and 0 <= p < length for p in positions):
        raise ConfigurationError(f"target.positions is {positions!r}; expected integers from 0 to {length - 1}")
    return Target(length, 1, _gaussian(length, 1), lambda tokens: tokens[:, positions, 0].sum(dim=1))


KINDS: Final[Mapping[str, Callable[..., Target]]] = {
    "pairwise maxima": pairwise_maxima,
    "tokenwise maxima": tokenwise_maxima,
    "rank": rank,
    "triangle centre": triangle_centre,
    "fixed positions": fixed_positions,
}


def _gaussian(length: int, dimension: int) -> Callable[[int, Generator], Tensor]:
    return lambda count, generator: torch.randn(count, length, dimension, generator=generator)
