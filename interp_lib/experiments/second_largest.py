"""Train one-layer models on the second largest of ``T`` numbers, to hand them to the adversary.

    python -m interp_lib.experiments.second_largest T [--dimension n] [--seed s] [--steps k]

Writes ``interp_lib/infoflow/data/second-largest-T-n.json``: weights, the command, the seed, versions and the measured error.
"""

from __future__ import annotations

import argparse
import json
import math
from importlib.metadata import version
from pathlib import Path
from typing import Any, final

import torch
from torch import Tensor, nn

FOLDER = Path(__file__).resolve().parent.parent / "infoflow" / "data"


@final
class OneLayerNetwork(nn.Module):
    """One attention layer with ``h`` heads of dimension ``n``: a tanh network gives scores and values, a ReLU network reads the state.

    ``state_dict`` and ``description`` are what `interp_lib.infoflow.one_layer.from_torch` expects.
    """

    def __init__(self, heads: int, dimension: int, width: int = 24) -> None:
        super().__init__()
        self.heads, self.dimension = heads, dimension
        self.encoder = nn.Sequential(nn.Linear(1, width), nn.Tanh(), nn.Linear(width, heads * (1 + dimension)))
        self.reader = nn.Sequential(nn.Linear(heads * dimension, 4 * width), nn.ReLU(), nn.Linear(4 * width, 1))

    def forward(self, tokens: Tensor) -> Tensor:
        encoded = self.encoder(tokens.unsqueeze(-1))
        weights = torch.softmax(encoded[..., : self.heads], dim=-2)
        values = encoded[..., self.heads :].unflatten(-1, (self.heads, self.dimension))
        state = (weights.unsqueeze(-1) * values).sum(dim=-3).flatten(-2)
        answer: Tensor = self.reader(state).squeeze(-1)
        return answer

    def description(self) -> dict[str, Any]:
        return {"heads": self.heads, "dimension": self.dimension, "token_dimension": 1}


def train(length: int, dimension: int, seed: int, steps: int) -> tuple[OneLayerNetwork, float]:
    """A trained model and its largest error on a validation set of 20 000 sequences."""
    torch.manual_seed(seed)
    model = OneLayerNetwork(1, dimension)
    optimiser = torch.optim.Adam(model.parameters(), lr=5e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    for _ in range(steps):
        tokens = torch.rand(512, length)
        loss = ((model(tokens) - second_largest(tokens)) ** 2).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    with torch.inference_mode():
        tokens = torch.rand(20_000, length)
        worst = float((model(tokens) - second_largest(tokens)).abs().max())
        typical = math.sqrt(float(((model(tokens) - second_largest(tokens)) ** 2).mean()))
    print(f"T = {length}, n = {dimension}: root mean square error {typical:.2e}, largest {worst:.2e}")
    return model.double(), typical


def second_largest(tokens: Tensor) -> Tensor:
    """The target, row by row."""
    return tokens.topk(2, dim=-1).values[..., 1]


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a one-layer model on the second largest of T numbers.")
    parser.add_argument("length", type=int, metavar="T")
    parser.add_argument("--dimension", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=6000)
    choice = parser.parse_args()
    model, error = train(choice.length, choice.dimension, choice.seed, choice.steps)
    name = f"second-largest-{choice.length}-{choice.dimension}"
    record = {
        "description": {**model.description(), "name": name},
        "command": f"python -m interp_lib.experiments.second_largest {choice.length} --dimension {choice.dimension} "
        f"--seed {choice.seed} --steps {choice.steps}",
        "versions": {"torch": version("torch")},
        "measured_root_mean_square_error": error,
        "length": choice.length,
        "state": {key: value.tolist() for key, value in model.state_dict().items()},
    }
    FOLDER.mkdir(exist_ok=True)
    FOLDER.joinpath(f"{name}.json").write_text(json.dumps(record) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
