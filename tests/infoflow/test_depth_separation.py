"""Two layers for the smallest inner product: weights, certified errors, the search, and every inequality of both proofs."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from interp_lib.fields import FLOAT, balls
from interp_lib.infoflow.depth_separation import (
    Arcs,
    DepthSeparationError,
    certified_error,
    confuse,
    errors_and_gradients,
    pieces_needed,
    probe_separation,
    product_error,
    random_tokens,
    search,
    smallest_product,
    square_excess,
    target,
    worst_input,
)
from interp_lib.infoflow.one_layer import RANDOM_KINDS, OneLayer, random_model

np = pytest.importorskip("numpy")

LEVELS = (Fraction(1, 10), Fraction(1, 100), Fraction(1, 1000))


@pytest.mark.parametrize("d", [2, 4])
@pytest.mark.parametrize("T", [8, 64])
@pytest.mark.parametrize("eps", LEVELS)
def test_the_search_stays_below_and_comes_close(d: int, T: int, eps: Fraction) -> None:
    model = smallest_product(T, d, eps)
    found = search(model, seed=1, starts=10, steps=60 if T == 8 else 15)
    assert 0.7 * eps <= found.ascent <= eps * (1 + Fraction(1, 10**9))
    error = certified_error(model, found.worst)
    assert float(error.at_most) == pytest.approx(found.ascent, rel=1e-6)
    assert error.at_most <= eps * (1 + Fraction(1, 10**20))


@pytest.mark.parametrize("d", [2, 4])
@pytest.mark.parametrize("eps", LEVELS)
def test_long_sequences(d: int, eps: Fraction) -> None:
    model = smallest_product(512, d, eps)
    assert search(model, seed=0, starts=5, steps=2).ascent <= eps * (1 + Fraction(1, 10**9))
    assert float(abs(model.forward(worst_input(model)) - target(worst_input(model)))) == pytest.approx(float(eps))


def test_a_long_sequence_certified() -> None:
    model = smallest_product(512, 2, Fraction(1, 1000))
    error = certified_error(model, worst_input(model))
    assert Fraction(99999, 10**8) < error.at_least <= error.at_most <= Fraction(1, 1000) * (1 + Fraction(1, 10**20))


@pytest.mark.parametrize("d", [2, 4])
def test_parameters(d: int) -> None:
    """The same count for all T; entries at most 1; slope one half in 1/ε; the stated formula."""
    levels = [
        Fraction(1, 10),
        Fraction(1, 31),
        Fraction(1, 100),
        Fraction(1, 316),
        Fraction(1, 1000),
        Fraction(1, 10000),
    ]
    counts = []
    for eps in levels:
        models = [smallest_product(T, d, eps) for T in (1, 2, 8, 64, 512)]
        assert len({(model.parameters, model.units) for model in models}) == 1
        assert all(model.feed_forward == models[0].feed_forward for model in models)
        assert all(model.largest_entry <= 1 for model in models)
        units = models[0].units
        assert units == 4 * d * pieces_needed(d, eps)
        assert units <= math.sqrt(6 * d**3 / eps) + 4 * d
        counts.append(models[0].parameters)
    logs = np.log([1 / float(eps) for eps in levels])
    assert 0.45 <= np.polyfit(logs, np.log(counts), 1)[0] <= 0.6
    first, last = (smallest_product(8, d, eps).parameters for eps in (LEVELS[0], LEVELS[-1]))
    assert 0.45 <= math.log10(last / first) / 2 <= 0.6


@given(st.integers(1, 6), st.integers(1, 3), st.fractions(Fraction(1, 200), 1), st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_certified_errors_of_random_inputs(T: int, d: int, eps: Fraction, seed: int) -> None:
    model = smallest_product(T, d, eps)
    X = random_tokens(T, d, seed)
    error = certified_error(model, X)
    assert error.at_most <= eps
    assert error.high - error.low < Fraction(1, 10**18)
    measured = model.forward(X, FLOAT) - float(target(X))
    assert float(error.low) == pytest.approx(measured, abs=1e-12)


@given(st.integers(2, 12), st.integers(1, 4), st.fractions(Fraction(1, 500), Fraction(1, 2)))
@settings(max_examples=30, deadline=None)
def test_the_bound_is_attained(T: int, d: int, eps: Fraction) -> None:
    model = smallest_product(T, d, eps)
    X = worst_input(model)
    norm = sum(v * v for v in X[0])
    assert norm <= 1
    slack = 3 * T * math.exp(-2 * float(model.beta * norm))
    assert float(certified_error(model, X).at_least) >= float(eps) - slack - 1e-15


def test_the_bound_is_attained_at_every_level() -> None:
    for eps in LEVELS:
        model = smallest_product(8, 2, eps)
        assert certified_error(model, worst_input(model)).at_least > eps * Fraction(999999, 10**6)


def test_the_classification_token_is_no_key() -> None:
    """All inner products positive: a key with score 0 would win, and the answer would be far below the minimum."""
    model = smallest_product(3, 2, Fraction(1, 100))
    X = [[0.75, 0.25], [0.5, 0.5], [0.5, 0.25]]
    assert target(X) > Fraction(1, 4)
    assert certified_error(model, X).at_most <= Fraction(1, 100)


def test_fields_agree() -> None:
    model = smallest_product(5, 3, Fraction(1, 50))
    X = random_tokens(5, 3, 3)
    assert float(model.forward(X, balls(128))) == pytest.approx(model.forward(X), abs=1e-13)
    values, _ = errors_and_gradients(model, np.array([X], dtype=float))
    assert values[0] == pytest.approx(model.forward(X) - float(target(X)), abs=1e-13)


def test_gradients_are_difference_quotients() -> None:
    model = smallest_product(4, 2, Fraction(1, 10))
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.6, 0.6, (3, 4, 2))
    _, gradient = errors_and_gradients(model, X)
    for index in np.ndindex(X.shape):
        step = np.zeros_like(X)
        step[index] = 1e-6
        up, down = (errors_and_gradients(model, X + s * step)[0] for s in (1, -1))
        assert (up - down)[index[0]] / 2e-6 == pytest.approx(gradient[index], abs=1e-4)


# ---------------------------------------------------------------- the inequalities


@given(st.fractions(-2, 2), st.integers(1, 30))
def test_square_excess(z: Fraction, K: int) -> None:
    excess, bound = square_excess(z, K)
    assert 0 <= excess <= bound


@given(
    st.integers(1, 4).flatmap(lambda d: st.tuples(*[st.lists(st.fractions(-1, 1), min_size=d, max_size=d)] * 2)),
    st.integers(1, 12),
)
def test_product_error(xy: tuple[list[Fraction], list[Fraction]], K: int) -> None:
    error, bound = product_error(*xy, K)
    assert abs(error) <= bound


@given(st.integers(1, 10**4), st.integers(1, 50))
def test_pieces_are_enough_and_needed(inverse: int, d: int) -> None:
    eps = Fraction(1, inverse)
    K = pieces_needed(d, eps)
    assert Fraction(d, 4 * K * K) <= 2 * eps / 3
    assert K == 1 or Fraction(d, 4 * (K - 1) ** 2) > 2 * eps / 3


@given(st.floats(1e-3, math.pi / 6), st.floats(1, 3), st.floats(1, 3))
def test_probe_separation(w: float, a: float, b: float) -> None:
    left, right = probe_separation(w, a * w, b * w)
    assert left >= right - 1e-15


@given(st.integers(1, 7), st.integers(2, 9), st.data())
def test_the_probe_reads_its_arc(count: int, grid: int, data: st.DataObject) -> None:
    """With one token on every arc, the smallest inner product is the probe's with its own arc, and it moves by the separation."""
    arcs = Arcs(count, grid)
    points = [data.draw(st.integers(0, grid - 1)) for _ in range(count)]
    arc = data.draw(st.integers(0, count - 1))
    other = data.draw(st.integers(0, grid - 1))
    assume(other != points[arc])
    assert arcs.angle(count - 1, grid - 1) - arcs.angle(0, 0) <= math.pi / 4 + 1e-12
    values = []
    for own in (points[arc], other):
        tokens = [arcs.token(s, own if s == arc else points[s]) for s in range(count)]
        X = np.array([*tokens, arcs.probe(arc)])
        S = X @ X.T
        assert S.min() == pytest.approx(S[-1, arc], abs=1e-15)
        assert (S[:-1, :-1] > 0).all()
        values.append(S.min())
    assert abs(values[0] - values[1]) >= arcs.separation - 1e-13


@pytest.mark.parametrize("kind", RANDOM_KINDS)
@pytest.mark.parametrize(("h", "n", "T", "grid"), [(1, 1, 6, 6), (1, 2, 7, 4), (2, 1, 7, 6), (1, 1, 3, 8)])
def test_the_adversary_confuses_every_model(kind: str, h: int, n: int, T: int, grid: int) -> None:
    model = random_model(3, h, n, length=T, token_dimension=2, kind=kind)  # type: ignore[arg-type]
    found = confuse(model, T, grid)
    assert len(found.first) == len(found.second) == T
    assert found.distance <= found.bound
    assert found.gap >= Arcs(T - 1, grid).separation * (1 - 1e-9)
    assert found.gap == pytest.approx(abs(float(target(found.first) - target(found.second))))
    assert found.units(found.gap / 3, h * n) >= found.gap / 3 / ((h * n) ** 1.5 * found.bound) * (1 - 1e-9)


def test_the_adversary_copes_with_discontinuous_encoders() -> None:
    model = OneLayer(1, 1, 2, lambda x, t, a: [(a.number(0), [a.number((t + 1) * x[1] * 97 % 1)])])
    found = confuse(model, 7, 6)
    assert found.distance <= found.bound


def test_errors() -> None:
    with pytest.raises(DepthSeparationError, match="tokens of dimension 2"):
        confuse(random_model(0, 1, 1, length=6), 6, 6)
    with pytest.raises(DepthSeparationError, match="T ≥ h"):
        confuse(random_model(0, 1, 1, length=2, token_dimension=2), 2, 6)
    with pytest.raises(DepthSeparationError, match="eps: expected"):
        smallest_product(3, 2, 0)
    with pytest.raises(DepthSeparationError, match="T ≥ 1"):
        smallest_product(0, 2, Fraction(1, 2))
    model = smallest_product(2, 2, Fraction(1, 2))
    with pytest.raises(DepthSeparationError, match="expected 2 tokens"):
        model.forward([[0, 0]])
    with pytest.raises(DepthSeparationError, match=r"X\[1\]: expected a token in the unit ball"):
        model.forward([[0, 0], [1, 1]])
