"""The Lipschitz price: certified, checked again, sharper than chance, and not forgeable."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import pytest

from interp_lib.infoflow.grid_collisions import lipschitz_price, recheck_price
from interp_lib.infoflow.one_layer import FLOATS, random_model
from interp_lib.infoflow.targets import BarrierError, Revealed, reveal_kth_largest


def distance(model: object, revealed: Revealed, left: object, right: object, face: int) -> float:
    states = [model.state(revealed.sequence(list(map(float, side)), face, FLOATS)) for side in (left, right)]  # type: ignore[attr-defined]
    return math.dist(*states)


@pytest.mark.parametrize("method", ["middle", "lattice"])
@pytest.mark.parametrize(("heads", "dimension", "k"), [(1, 2, 4), (1, 3, 5), (2, 1, 5)])
def test_a_price_is_what_it_says(method: str, heads: int, dimension: int, k: int) -> None:
    revealed = reveal_kth_largest(k, 2 * k - 1)
    model = random_model(3, heads, dimension, 2 * k - 1)
    price = lipschitz_price(model, revealed, method=method)  # type: ignore[arg-type]
    assert recheck_price(model, revealed, price)
    measured = distance(model, revealed, price.left, price.right, price.face)
    assert measured <= float(price.distance) * (1 + 1e-9) + 1e-12
    sides = [revealed.sequence(list(map(float, side)), price.face, FLOATS) for side in (price.left, price.right)]
    values = [revealed.target.value(side, FLOATS) for side in sides]
    assert abs(values[0] - values[1]) >= float(price.gap) - 1e-9
    assert price.units(model) > 0
    assert price.lipschitz(price.gap) == 0


def test_the_price_grows_with_the_length() -> None:
    """One head of dimension two: longer inputs leave more near-coincidences."""
    prices = []
    for k in (3, 5, 8):
        model = random_model(1, 1, 2, 2 * k - 1)
        prices.append(float(lipschitz_price(model, reveal_kth_largest(k, 2 * k - 1), grid=4).lipschitz()))
    assert prices[-1] > 5 * prices[0]


def test_lattice_reduction_reaches_where_enumeration_cannot() -> None:
    k = 16
    model = random_model(2, 1, 2, 2 * k - 1)
    price = lipschitz_price(model, reveal_kth_largest(k, 2 * k - 1), method="lattice")
    assert recheck_price(model, reveal_kth_largest(k, 2 * k - 1), price)
    assert price.lipschitz() > 1000


def test_a_forged_price_is_rejected() -> None:
    revealed = reveal_kth_largest(4, 7)
    model = random_model(3, 1, 2, 7)
    price = lipschitz_price(model, revealed)
    for forged in (
        replace(price, gap=price.gap * 2 + 1),
        replace(price, distance=price.distance / 2),
        replace(price, gap=Fraction(0)),
        replace(price, right=price.left),
    ):
        assert not recheck_price(model, revealed, forged)


def test_bad_questions_are_named() -> None:
    revealed = reveal_kth_largest(4, 7)
    with pytest.raises(BarrierError, match="grid"):
        lipschitz_price(random_model(0, 1, 1, 7), revealed, grid=1)
    with pytest.raises(BarrierError, match="dimension 2"):
        lipschitz_price(random_model(0, 1, 1, 7, token_dimension=2), revealed)
