"""Handwritten digits as data: right shape, right pixels, named refusals."""

from __future__ import annotations

import pytest

import interp_lib as il
from interp_lib.digits import DigitsError, as_picture, digit_patches

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def test_tokens_are_the_pixels() -> None:
    from sklearn.datasets import load_digits

    data = digit_patches(images=3, first=5)
    for X, Y, image in zip(data.inputs, data.outputs, load_digits().images[5:8], strict=True):
        assert as_picture((*X, *Y)) == image.astype(int).tolist()
        assert {(int(r), int(c)) for r, c, _ in Y} == {(r, c) for r in (2, 3, 4) for c in (3, 4, 5)}


def test_the_default_has_a_few_hundred_targets() -> None:
    data = digit_patches()
    assert (data.N, data.d, data.M) == (30, 3, 270)


def test_digits_are_restored_exactly() -> None:
    data = digit_patches(images=4, patch=(range(4), range(2, 6)))
    assert data.m == (16,) * 4
    assert il.verify(il.hardmax_interpolant(data), data).status == "certified"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"images": 0}, "images = 0"),
        ({"images": 5000}, "1797"),
        ({"first": -1}, "first = -1"),
        ({"patch": ([], [1])}, "patch"),
        ({"patch": ([8], [1])}, "patch"),
        ({"patch": (range(8), range(5))}, "half"),
    ],
)
def test_impossible_requests_are_refused(arguments: dict[str, object], words: str) -> None:
    with pytest.raises(DigitsError, match=words):
        digit_patches(**arguments)  # type: ignore[arg-type]
