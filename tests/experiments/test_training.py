"""Targets against plain loops, networks that respect what they must, and a training that learns the same thing twice."""

from __future__ import annotations

from itertools import combinations_with_replacement
from typing import Any

import pytest
import torch

from interp_lib.experiments.models import network
from interp_lib.experiments.targets import ConfigurationError, target, unit_direction
from interp_lib.experiments.training import error, train, training

MODEL = {"heads": [2, 1], "size": 8, "width": 4, "hidden": 16}


def generator(seed: int = 1_000_006) -> torch.Generator:
    """The generator that draws the fixed matrices of a target with seed 3."""
    return torch.Generator().manual_seed(seed)


def sampled(description: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
    return target(description, 3).sample(300, generator(0))


def test_pairwise_maxima_are_sums_of_the_largest_forms() -> None:
    tokens, values = sampled({"kind": "pairwise maxima", "number": 2, "length": 4, "dimension": 3})
    A = torch.randn(2, 3, 3, generator=generator())
    for X, value in zip(tokens[-5:], values[-5:], strict=True):
        plain = sum(max(float(x @ A[i] @ y) for x in X for y in X) for i in range(2))
        assert float(value) == pytest.approx(plain, rel=1e-5)


def test_tokenwise_maxima_and_ranks_look_at_single_tokens() -> None:
    tokens, values = sampled({"kind": "tokenwise maxima", "number": 2, "length": 5, "dimension": 3})
    directions = torch.randn(3, 2, generator=generator())
    for X, value in zip(tokens[:5], values[:5], strict=True):
        plain = sum(max(float(x @ directions[:, i]) for x in X) for i in range(2))
        assert float(value) == pytest.approx(plain, rel=1e-5)
    tokens, values = sampled({"kind": "rank", "place": 2, "length": 5, "dimension": 3})
    a = unit_direction(3, generator())
    for X, value in zip(tokens[:5], values[:5], strict=True):
        assert float(value) == pytest.approx(sorted(float(x @ a) for x in X)[-2], rel=1e-5)


def test_the_triangle_centre_is_the_smallest_sum_of_three() -> None:
    tokens, values = sampled({"kind": "triangle centre", "length": 4})
    norms = tokens.norm(dim=2)
    assert float(norms.min()) >= 0.2 - 1e-6
    assert float(norms.max()) <= 4 + 1e-6
    for X, value in zip(tokens[:5], values[:5], strict=True):
        plain = min(float((x + y + z).norm()) for x, y, z in combinations_with_replacement(X, 3))
        assert float(value) == pytest.approx(plain, rel=1e-5)


def test_a_network_without_a_positional_code_does_not_see_the_order() -> None:
    tokens = torch.randn(3, 6, 4, generator=generator(1))
    mixed = tokens[:, [3, 0, 5, 1, 2, 4]]
    plain, coded = network(MODEL, 4, 0), network({**MODEL, "positions": 6}, 4, 0)
    assert torch.allclose(plain(tokens), plain(mixed), atol=1e-6)
    assert not torch.allclose(coded(tokens), coded(mixed), atol=1e-6)
    weights = plain.attention[-1].weights(*plain.states(tokens))
    assert weights.shape == (3, 1, 1, 6)
    assert torch.allclose(weights.sum(dim=-1), torch.ones(3, 1, 1))


def test_training_learns_and_repeats_itself() -> None:
    goal = target({"kind": "fixed positions", "length": 4, "positions": [0, 1]}, 0)
    settings = training({"steps": 150, "batch": 64, "rate": 0.01, "validation": 256, "every": 50})
    curves = []
    for _ in range(2):
        model = network({**MODEL, "heads": [1], "positions": 4}, 1, 5)
        curves.append(train(model, goal, settings, seed=7))
    assert curves[0] == curves[1]
    assert curves[0].steps == (50, 100, 150)
    assert curves[0].best < 0.3
    assert train(network({**MODEL, "heads": [1], "positions": 4}, 1, 6), goal, settings, seed=7) != curves[0]


def test_the_mean_as_a_prediction_has_error_one() -> None:
    tokens, values = torch.zeros(1000, 1, 1), torch.randn(1000, generator=generator(2))
    assert error(lambda x: values.mean().expand(len(x)), tokens, values) == pytest.approx(1)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: target({"kind": "median", "length": 3}, 0), "target.kind is 'median'"),
        (lambda: target({"kind": "rank", "length": 3, "place": 4, "dimension": 2}, 0), "target.place is 4"),
        (lambda: target({"kind": "triangle centre", "length": 0}, 0), "target.length is 0"),
        (lambda: target({"kind": "triangle centre"}, 0), "length"),
        (lambda: target({"kind": "fixed positions", "length": 3, "positions": [3]}, 0), "from 0 to 2"),
        (lambda: network({**MODEL, "heads": [0]}, 2, 0), "model.heads is \\[0\\]"),
        (lambda: network({**MODEL, "size": -1}, 2, 0), "model.size is -1"),
        (lambda: network({**MODEL, "depth": 2}, 2, 0), "depth"),
        (lambda: training({"steps": 0}), "training.steps is 0"),
        (lambda: training({"steps": 5, "pool": 3}), "training.pool is 3"),
        (lambda: training({"steps": 5, "schedule": "linear"}), "training.schedule is 'linear'"),
    ],
)
def test_a_configuration_without_meaning_is_named(build: Any, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        build()
