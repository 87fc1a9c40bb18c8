"""One-layer models: the same function in every arithmetic, derivatives that agree, adapters that check what they read."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interp_lib.fields import Ball, BallSeries, rational, working_precision
from interp_lib.infoflow import one_layer as ol

units = st.floats(0, 1, allow_nan=False)


@given(
    st.integers(0, 10**6),
    st.sampled_from(ol.RANDOM_KINDS),
    st.integers(1, 2),
    st.integers(1, 3),
    st.lists(units, min_size=1, max_size=5),
)
def test_balls_contain_the_float_state(seed: int, kind: Any, heads: int, dimension: int, tokens: list[float]) -> None:
    model = ol.random_model(seed, heads, dimension, len(tokens), kind=kind)
    measured = model.state([[x] for x in tokens])
    with working_precision(128):
        enclosed = model.state([[Ball(x)] for x in tokens], ol.BALLS)
    for value, ball in zip(measured, enclosed, strict=True):
        assert abs(float(ball.mid()) - value) <= float(ball.rad()) + 1e-9 * (1 + abs(value))


@given(st.integers(0, 10**6), st.sampled_from(ol.RANDOM_KINDS), units)
def test_duals_and_series_give_the_same_derivatives(seed: int, kind: Any, x: float) -> None:
    model = ol.random_model(seed, 1, 2, 1, kind=kind)
    with working_precision(128):
        by_dual = model.heads_of([ol.Dual(Ball(x), Ball(1))], 0, ol.BALL_DUALS)
        by_series = model.heads_of([BallSeries([Ball(x), Ball(1)], prec=2)], 0, ol.SERIES)
        for (s, v), (t, w) in zip(by_dual, by_series, strict=True):
            for one, other in zip([s, *v], [t, *w], strict=True):
                assert one.value.overlaps(other[0])
                assert one.slope.overlaps(other[1])


@given(st.lists(st.fractions(-3, 3), min_size=1, max_size=6), st.data())
def test_order_statistics_of_balls_are_enclosures(values: list[Fraction], data: st.DataObject) -> None:
    k = data.draw(st.integers(1, len(values)))
    exact = sorted(values, reverse=True)[k - 1]
    wide = [Ball(rational(v)) + Ball(0, 0.25) for v in values]
    assert ol.BALLS.largest(wide, k).contains(rational(exact))
    assert ol.RATIONALS.largest(list(map(rational, values)), k) == rational(exact)
    assert math.isclose(ol.FLOATS.largest([float(v) for v in values], k), float(exact))


def test_a_relu_over_its_kink_has_every_slope() -> None:
    found = ol.BALL_DUALS.relu(ol.Dual(Ball(0, 1), Ball(1)))
    assert found.slope.contains(0)
    assert found.slope.contains(1)


def test_large_scores_do_not_overflow() -> None:
    model = ol.OneLayer(1, 1, 1, lambda x, _p, _a: [(1e6 * x[0], [x[0]])])
    assert math.isclose(model.state([[0.0], [0.5], [1.0]])[0], 1.0)


def test_torch_modules_are_read_exactly() -> None:
    torch = pytest.importorskip("torch")
    from interp_lib.experiments.second_largest import OneLayerNetwork

    torch.manual_seed(0)
    module = OneLayerNetwork(2, 3, width=5).double()
    model = ol.from_torch(module)
    assert (model.heads, model.dimension, model.sums) == (2, 3, 8)
    tokens = torch.rand(4, 6, dtype=torch.float64)
    with torch.inference_mode():
        expected = module(tokens).tolist()
    for row, value in zip(tokens.tolist(), expected, strict=True):
        assert math.isclose(model.answer([[x] for x in row]), value, rel_tol=1e-9, abs_tol=1e-12)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"encoder.0.weight": None}, "encoder.0.weight"),
        ({"reader.0.bias": None}, "reader.0.bias"),
        ({"encoder.0.bias": [0.0]}, "does not map"),
        ({"reader.0.weight": [[1.0, 2.0]]}, "does not map"),
        ({"encoder.0.weight": [[math.nan], [1.0]]}, "not finite"),
    ],
)
def test_damaged_weights_are_named(change: dict[str, Any], words: str) -> None:
    weights: dict[str, Any] = {
        "encoder.0.weight": [[1.0], [2.0]], "encoder.0.bias": [0.0, 0.0], "reader.0.weight": [[1.0]], "reader.0.bias": [0.5],
    }  # fmt: skip
    weights = {key: value for key, value in {**weights, **change}.items() if value is not None}
    with pytest.raises(ol.ModelError, match=words):
        ol.from_state(weights, {"heads": 1, "dimension": 1, "token_dimension": 1})


def test_bad_models_are_named() -> None:
    with pytest.raises(ol.ModelError, match="heads"):
        ol.OneLayer(0, 1, 1, lambda _x, _p, _a: [])
    with pytest.raises(ol.ModelError, match="description"):
        ol.from_state({}, {"heads": 1})
    with pytest.raises(ol.ModelError, match="state_dict"):
        ol.from_torch(object())
    with pytest.raises(ol.ModelError, match="kind"):
        ol.random_model(0, 1, 1, 2, kind="cubic")  # type: ignore[arg-type]
    with pytest.raises(ol.ModelError, match="name"):
        ol.stored_record("none")
    model = ol.OneLayer(1, 2, 1, lambda x, _p, _a: [(x[0], [x[0]])])
    with pytest.raises(ol.ModelError, match="length 2"):
        model.state([[0.5]])
    with pytest.raises(ol.ModelError, match="no answers"):
        model.answer([[0.5]])


def test_stored_models_belong_to_their_records() -> None:
    for name in ol.stored_models():
        record = ol.stored_record(name)
        model = ol.stored_model(name)
        assert model.name == name
        assert record["command"].startswith("python -m interp_lib.experiments.second_largest")
        errors = []
        import random

        source = random.Random(0)
        for _ in range(200):
            tokens = [source.random() for _ in range(record["length"])]
            errors.append((model.answer([[x] for x in tokens]) - sorted(tokens)[-2]) ** 2)
        typical = math.sqrt(sum(errors) / len(errors))
        assert 0.5 * record["measured_root_mean_square_error"] < typical < 2 * record["measured_root_mean_square_error"]
