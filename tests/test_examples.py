"""The running example has the properties that the chapters say it has."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

from interp_lib.examples import running_example


def test_sizes() -> None:
    data = running_example()
    assert (data.N, data.d, data.n, data.m, data.M) == (3, 2, (2, 3, 4), (1, 1, 2), 4)
    assert len({token for x in data.inputs for token in x}) == 5


def test_the_largest_label_is_shared_along_every_positive_direction() -> None:
    top = (Fraction(4), Fraction(3))
    for x in running_example().inputs:
        assert top in x
        assert all(a <= b for token in x for a, b in zip(token, top, strict=True))


def test_no_map_of_single_tokens_does_it() -> None:
    data = running_example()
    vocabulary = sorted({token for x in data.inputs for token in x})
    targets = sorted({token for y in data.outputs for token in y})
    # Only values that occur among the targets can help; there are finitely many maps to try.
    for values in product(targets, repeat=len(vocabulary)):
        f = dict(zip(vocabulary, values, strict=True))
        assert any({f[z] for z in x} != set(y) for x, y in zip(data.inputs, data.outputs, strict=True))
