"""The torch module computes what the library computes."""

from __future__ import annotations

import numpy as np
import pytest

import interp_lib as il
from interp_lib.examples import running_example
from interp_lib.layers import Block, FeedForward, ScaledLowRank, SelfAttention

torch = pytest.importorskip("torch")


def _tokens(seed: int, n: int, d: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, d))


@pytest.mark.parametrize("temperature", [0, 1e-3, 1, 1e6])
@pytest.mark.parametrize(
    "A",
    [
        ScaledLowRank.zero(3),
        ScaledLowRank.identity(3),
        ScaledLowRank.outer([1, -2, 0.5], [0.25, 1, 3]),
        ScaledLowRank(0.5, [[1, 2], [3, 4], [5, 6]], [[1, 0], [0, 1], [1, 1]]),
    ],
)
def test_one_block_agrees_with_the_float_pass(A: ScaledLowRank, temperature: float) -> None:
    layer = FeedForward(0.5, [[1, 2, -1], [0, 1, 1]], [0.25, -0.5], [[1, 0], [2, 1], [0, -3]])
    T = il.Transformer([Block(layer, SelfAttention(-0.5, A, ScaledLowRank(2, [[1], [0], [1]], [[0], [1], [1]])))])
    X = _tokens(1, 7, 3)
    there = T.to_torch()(torch.tensor(X), temperature).detach().numpy()
    np.testing.assert_allclose(there, T(X, temperature), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("temperature", [0, 0.5])
@pytest.mark.parametrize(
    "A", [ScaledLowRank.zero(3), ScaledLowRank.identity(3), ScaledLowRank.outer([1, -2, 0.5], [0.25, 1, 3])]
)
def test_a_masked_block_agrees_with_the_float_pass(A: ScaledLowRank, temperature: float) -> None:
    attention = SelfAttention(-0.5, A, ScaledLowRank.identity(3, 2), causal=True)
    T = il.Transformer([Block(FeedForward.identity(3), attention)])
    X = _tokens(5, 7, 3)
    for module in (T.to_torch(), T.to_torch().train()):
        there = module(torch.tensor(X), temperature).detach().numpy()
        np.testing.assert_allclose(there, T(X, temperature), rtol=1e-9, atol=1e-9)


def test_a_constructed_model_interpolates_as_a_module() -> None:
    data = running_example()
    module = il.hardmax_interpolant(data).to_torch()
    for X, Y in zip(data.inputs, data.outputs, strict=True):
        output = module(torch.tensor(np.array(X, dtype=float))).detach().numpy()
        assert il.hausdorff_distance(output, Y) < 1e-9


def test_a_batch_is_its_sequences_one_by_one() -> None:
    module = il.hardmax_interpolant(running_example()).to_torch()
    batch = torch.tensor(np.stack([_tokens(2, 5, 2), _tokens(3, 5, 2)]))
    together = module(batch, 0.5)
    for sequence, output in zip(batch, together, strict=True):
        torch.testing.assert_close(module(sequence, 0.5), output)


def test_state_dict_round_trip_and_float32() -> None:
    T = il.hardmax_interpolant(running_example())
    first, second = T.to_torch(torch.float32), T.padded(T.depth).to_torch(torch.float32)
    for parameter in second.parameters():
        torch.nn.init.zeros_(parameter)
    second.load_state_dict(first.state_dict())
    X = torch.tensor(_tokens(4, 4, 2), dtype=torch.float32)
    assert torch.equal(first(X), second(X))


def test_training_reaches_every_parameter_that_matters() -> None:
    """Fine-tuning works: with softmax the loss falls, and even a zero V receives a gradient."""
    T = il.hardmax_interpolant(running_example())
    module = T.to_torch().train()
    X = torch.tensor(_tokens(5, 4, 2))
    goal = module(X, 1.0).detach() + 0.01
    optimiser = torch.optim.SGD(module.parameters(), lr=1e-14)
    losses = []
    for _ in range(3):
        optimiser.zero_grad()
        loss = ((module(X, 1.0) - goal) ** 2).mean()
        loss.backward()
        losses.append(loss.item())
        optimiser.step()
    assert losses[-1] < losses[0]
    last = [block.V.scale.grad for block in module.blocks][-1]
    assert last is not None
    assert torch.isfinite(last)
    assert last != 0
