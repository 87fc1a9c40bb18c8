"""The barrier: revealed dimensions hold, collisions are found, proved, proved again, and cannot be forged."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interp_lib.fields import Ball, rational, working_precision
from interp_lib.infoflow import one_layer as ol
from interp_lib.infoflow import targets as tg
from interp_lib.infoflow.barrier import refute
from interp_lib.infoflow.collision import Certificate, confront, inputs
from interp_lib.infoflow.order_statistics import collide, widest_collision
from interp_lib.infoflow.recheck import recheck

parameters = st.fractions(-1, 1, max_denominator=64)


def cases() -> list[tg.Revealed]:
    return [
        tg.reveal_kth_largest(3, 5),
        tg.reveal_kth_largest(2, 9),
        tg.reveal_kth_largest(5, 9, dimension=4),
        tg.reveal_smallest_product([(1, 0, 0), (0, 1, 0), (0, 0, 1)], 5),
        tg.reveal_smallest_product(tg.circle_vectors(5), 6),
        tg.reveal_retrieval(3, 7),
        tg.reveal_retrieval(4, 6, dimension=2),
    ]


@given(st.sampled_from(range(7)), st.data())
@settings(max_examples=80)
def test_the_gap_holds_whatever_the_other_parameters_are(which: int, data: Any) -> None:
    revealed = cases()[which]
    m = revealed.dimension
    t = data.draw(st.integers(0, m - 1))
    u, v = ([data.draw(parameters) for _ in range(m)] for _ in range(2))
    u[t], v[t] = Fraction(1), Fraction(-1)
    values = [
        revealed.target.value(revealed.sequence([rational(x) for x in side], t, ol.RATIONALS), ol.RATIONALS)
        for side in (u, v)
    ]
    assert abs(values[0] - values[1]) >= rational(revealed.gap)


@pytest.mark.parametrize("kind", ol.RANDOM_KINDS)
@pytest.mark.parametrize(("heads", "dimension"), [(1, 1), (1, 3), (2, 1), (2, 2)])
def test_random_models_collide_and_the_proof_is_proved_again(kind: Any, heads: int, dimension: int) -> None:
    q = (dimension + 1) * heads
    revealed = tg.reveal_kth_largest(q + 1, 2 * q + 1)
    model = ol.random_model(7, heads, dimension, 2 * q + 1, kind=kind)
    attack = refute(model, revealed)
    assert attack.status == "certified", attack.explain()
    certificate = attack.certificate
    assert certificate is not None
    assert certificate.error >= Fraction(99, 100) * revealed.error
    assert recheck(model, revealed, certificate).status == "confirmed"
    left, right = inputs(certificate, revealed)
    for a, b in zip(model.state(left), model.state(right), strict=True):
        assert math.isclose(a, b, abs_tol=1e-9)
    verdict = confront(model, certificate, revealed)
    assert verdict.refuted
    assert verdict.together >= certificate.error
    assert verdict.worst >= certificate.gap / 2 * Fraction(99, 100)


def test_the_smallest_product_beats_one_layer_by_a_half() -> None:
    basis = [[int(i == k) for i in range(4)] for k in range(4)]
    revealed = tg.reveal_smallest_product(basis, 6)
    model = ol.random_model(3, 1, 2, 6, token_dimension=4)
    attack = refute(model, revealed)
    assert attack.certificate is not None
    assert attack.certificate.error > Fraction(499, 1000)
    assert recheck(model, revealed, attack.certificate).status == "confirmed"


def test_the_homotopy_finds_what_newton_finds() -> None:
    revealed = tg.reveal_kth_largest(3, 5)
    found = 0
    for seed in range(4):
        model = ol.random_model(seed, 1, 1, 5)
        attack = refute(model, revealed, methods=("homotopy",))
        if attack.certificate is not None:
            found += 1
            assert attack.method == "homotopy"
            assert recheck(model, revealed, attack.certificate).status == "confirmed"
    assert found >= 2


def certified() -> tuple[ol.OneLayer, tg.Revealed, Certificate]:
    revealed = tg.reveal_kth_largest(3, 5)
    model = ol.random_model(1, 1, 1, 5)
    certificate = refute(model, revealed).certificate
    assert certificate is not None
    return model, revealed, certificate


def test_a_forged_certificate_is_not_confirmed() -> None:
    model, revealed, genuine = certified()
    unknown = next(i for i, p in enumerate(genuine.left) if p.unknown)
    shifted = [*genuine.left]
    shifted[unknown] = replace(shifted[unknown], centre=shifted[unknown].centre + Fraction(1, 1000))
    mirrored = [replace(p, centre=-p.centre) for p in shifted]
    forgeries = [
        replace(genuine, gap=genuine.gap * 2),
        replace(genuine, gap=Fraction(0)),
        replace(genuine, left=tuple(shifted)),
        replace(genuine, left=tuple(shifted), right=tuple(mirrored)),
        replace(genuine, radius=Fraction(0)),
        replace(genuine, radius=Fraction(4)),
        replace(genuine, face=(genuine.face + 1) % 3 if genuine.face is not None else 0),
        replace(genuine, kind="states"),
        replace(genuine, left=genuine.left[:-1]),
    ]
    for forgery in forgeries:
        assert recheck(model, revealed, forgery).status != "confirmed"
    other = ol.random_model(2, 1, 1, 5)
    assert recheck(other, revealed, genuine).status != "confirmed"


def test_more_bits_confirm_too() -> None:
    model, revealed, genuine = certified()
    assert recheck(model, revealed, genuine, bits=1000).status == "confirmed"


def test_the_barrier_is_not_claimed_where_it_does_not_apply() -> None:
    with pytest.raises(tg.BarrierError, match="not below the revealed dimension 2"):
        refute(ol.random_model(0, 1, 1, 9), tg.reveal_kth_largest(2, 9))
    with pytest.raises(tg.BarrierError, match="dimension"):
        refute(ol.random_model(0, 1, 1, 5, token_dimension=2), tg.reveal_kth_largest(3, 5))
    with pytest.raises(tg.BarrierError, match="tokens"):
        refute(ol.random_model(0, 1, 1, 4), tg.reveal_kth_largest(3, 5))


def test_a_singular_collision_is_reported_and_not_claimed() -> None:
    """Constant scores: one of the sums is constant, so the equations are dependent and no root is isolated."""
    mean = ol.OneLayer(1, 1, 1, lambda x, _p, a: [(a.number(0) * x[0], [x[0]])])
    attack = refute(mean, tg.reveal_kth_largest(3, 5), starts=3)
    assert attack.status != "certified"
    assert attack.certificate is None
    assert attack.reason


def test_encoders_with_steps_escape() -> None:
    """A step in the encoder is outside the hypotheses: the search may fail, and then says so."""
    model = ol.OneLayer(1, 1, 1, lambda x, _p, a: [(a.number(0) * x[0], [a.relu(x[0] - 2)])])
    attack = refute(model, tg.reveal_kth_largest(3, 5), starts=2)
    assert attack.certificate is None


@pytest.mark.parametrize("name", ol.stored_models())
def test_trained_models_are_refuted_beyond_the_theorem(name: str) -> None:
    model, length = ol.stored_model(name), ol.stored_record(name)["length"]
    attack = widest_collision(model, 2, length, gaps=(0.45, 0.41), starts=12)
    assert attack.certificate is not None
    target = tg.kth_largest_target(2, length)
    assert recheck(model, target, attack.certificate).status == "confirmed"
    assert confront(model, attack.certificate, target).refuted
    if model.dimension == 2:
        assert attack.certificate.gap >= Fraction(2, 5)


@given(st.lists(st.fractions(0, 1, max_denominator=40), min_size=2, max_size=12), st.sampled_from([5.0, 20.0, 60.0]))
def test_the_second_largest_by_two_power_sums(values: list[Fraction], gamma: float) -> None:
    """Every inequality of the proof, enclosed: the range of ``γ r`` and the error of the answer."""
    T = len(values)
    first, second = sorted(values, reverse=True)[:2]
    with working_precision(256):
        p = [(Ball(rational(x - first)) * gamma).exp() for x in values]
        A, B = sum(p, Ball(0)), sum((x * x for x in p), Ball(0))
        scaled = A.log() - B.log() / 2
        decay = (Ball(rational(second - first)) * gamma).exp()
        assert not scaled > (T - 1) * decay
        assert not scaled < (1 + decay).log() / 2
        model = tg.second_largest_model(gamma, T)
        answer = model.answer([[Ball(rational(x))] for x in values], ol.BALLS)
        error = abs(answer - rational(second))
        assert error < Ball(max(1.06, 1.5 * math.log(T))) / gamma + Ball(1e-12)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: tg.reveal_kth_largest(3, 4), None),
        (lambda: tg.reveal_kth_largest(0, 4), "k"),
        (lambda: tg.reveal_kth_largest(2, 4, dimension=3), "dimension"),
        (lambda: tg.reveal_smallest_product([(1, 1)], 3), "unit vectors"),
        (lambda: tg.reveal_smallest_product([(1, 0), (0, 1)], 2), "length"),
        (lambda: tg.reveal_smallest_product([(1, 0), (1, 0)], 3), "equal"),
        (lambda: tg.second_largest_model(0, 4), "gamma"),
        (lambda: tg.reveal_retrieval(1, 4), "retrievals"),
        (lambda: tg.reveal_retrieval(3, 4), "length"),
        (lambda: collide(ol.random_model(0, 1, 1, 4), 2, 4, 1.5), "gap"),
    ],
)
def test_bad_descriptions_are_named(call: Any, words: str | None) -> None:
    if words is None:
        assert call().dimension == 2
        return
    with pytest.raises(tg.BarrierError, match=words):
        call()
