"""The training loop and the evaluation: AdamW, cosine or one-cycle rates, the best validation error and its whole curve."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, final

import torch
from torch import Generator, Tensor, nn

from .targets import ConfigurationError, Target

PIECE: Final = 512


@final
@dataclass(frozen=True, slots=True)
class Training:
    """How to train.  `pool` 0 draws fresh sequences in every step; otherwise that many are drawn once and reused.

    `rate` is the largest learning rate of the schedule, `clip` bounds the norm of a gradient.
    """

    steps: int
    batch: int = 256
    rate: float = 3e-3
    decay: float = 1e-4
    schedule: str = "one-cycle"
    pool: int = 0
    validation: int = 4096
    every: int = 100
    clip: float = 1.0

    def __post_init__(self) -> None:
        for name in ("steps", "batch", "validation", "every"):
            if type(getattr(self, name)) is not int or getattr(self, name) < 1:
                raise ConfigurationError(f"training.{name} is {getattr(self, name)!r}; expected a positive integer")
        for name in ("rate", "clip"):
            if not getattr(self, name) > 0:
                raise ConfigurationError(f"training.{name} is {getattr(self, name)!r}; expected a positive number")
        if self.schedule not in ("one-cycle", "cosine"):
            raise ConfigurationError(f"training.schedule is {self.schedule!r}; expected 'one-cycle' or 'cosine'")
        if type(self.pool) is not int or not (self.pool == 0 or self.pool >= self.batch):
            raise ConfigurationError(
                f"training.pool is {self.pool!r}; expected 0 or at least training.batch = {self.batch}"
            )


@final
@dataclass(frozen=True, slots=True)
class Curve:
    """Normalised mean square errors on the validation set, by step; the scale of the target the network was trained on."""

    steps: tuple[int, ...]
    errors: tuple[float, ...]
    mean: float
    deviation: float

    @property
    def best(self) -> float:
        return min(self.errors)


def training(description: Mapping[str, Any]) -> Training:
    """The settings a configuration describes.

    >>> training({"steps": 10, "rate": 0.01}).batch
    256
    """
    try:
        return Training(**description)
    except TypeError as error:
        raise ConfigurationError(f"training: {error}") from None


def train(model: nn.Module, target: Target, settings: Training, seed: int) -> Curve:
    """Train `model` in place on `(target - mean) / deviation` and return its validation curve.

    The weights stay those of the last step.  Training and validation sequences come from generators of their own, so the
    same seed meets the same data whatever the model is.
    """
    check, drawn = Generator().manual_seed(2_000_003 + seed), Generator().manual_seed(3_000_017 + seed)
    tokens, values = target.sample(settings.validation, check)
    mean, deviation = float(values.mean()), float(values.std())
    values = (values - mean) / deviation
    pool = target.sample(settings.pool, drawn) if settings.pool else None
    optimiser = torch.optim.AdamW(model.parameters(), lr=settings.rate, weight_decay=settings.decay)
    schedule = _schedule(optimiser, settings)
    steps, errors = [], []
    for step in range(1, settings.steps + 1):
        if pool is None:
            x, y = target.sample(settings.batch, drawn)
        else:
            chosen = torch.randint(settings.pool, (settings.batch,), generator=drawn)
            x, y = pool[0][chosen], pool[1][chosen]
        loss = ((model(x) - (y - mean) / deviation) ** 2).mean()
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), settings.clip)
        optimiser.step()
        schedule.step()
        if step % settings.every == 0 or step == settings.steps:
            steps.append(step)
            errors.append(error(model, tokens, values))
            if not math.isfinite(errors[-1]):
                break
    return Curve(tuple(steps), tuple(errors), mean, deviation)


def error(model: nn.Module, tokens: Tensor, values: Tensor) -> float:
    """The mean square error divided by the variance of `values`, measured without gradients and in pieces.

    >>> error(lambda x: x[:, 0, 0], torch.ones(4, 1, 1), torch.tensor([0.0, 2.0, 0.0, 2.0]))
    1.0
    """
    with torch.inference_mode():
        answers = torch.cat([model(piece) for piece in tokens.split(PIECE)])
        return float(((answers - values) ** 2).mean() / values.var(correction=0))


def _schedule(optimiser: torch.optim.Optimizer, settings: Training) -> Any:
    if settings.schedule == "cosine":
        return torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, settings.steps)
    return torch.optim.lr_scheduler.OneCycleLR(
        optimiser, settings.rate, total_steps=settings.steps + 1, pct_start=0.15, div_factor=10, final_div_factor=100
    )
