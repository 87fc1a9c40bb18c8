"""Real data: handwritten digits with a hidden patch, as pairs of sequences.

An image of 8 × 8 pixels with intensities 0 to 16 is a set of tokens ``(row, column, intensity)`` in ``R^3``.  The input
is the set of pixels outside the patch, the target the set of pixels inside.  The images are those that scikit-learn brings
along (1797 digits of the UCI repository); nothing is downloaded.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from .sequences import Dataset

SIZE: Final = 8
PATCH: Final = (range(2, 5), range(3, 6))
"""The rows and columns of the patch: nine pixels near the middle, where strokes cross."""


class DigitsError(ValueError):
    """The number of images or the patch is not possible; the message names it."""


def digit_patches(images: int = 30, first: int = 0, patch: tuple[Sequence[int], Sequence[int]] = PATCH) -> Dataset:
    """Pairs ``(pixels outside the patch, pixels inside)`` of the images ``first, …, first + images - 1``.

    Statement: by default ``N = 30`` sequences of 55 tokens in ``R^3`` with ``m_j = 9``, so ``M = 270``.

    Exactness: integers.

    Cost: linear in the number of pixels, after scikit-learn has loaded.

    Raises: `DigitsError` for a number of images that is not there, or a patch that is empty, leaves the image, or hides more
    than half of it; `DatasetError` if two images agree outside the patch; `ImportError` without scikit-learn.

    Example:

    >>> data = digit_patches(images=2)
    >>> data.N, data.d, data.n, data.m
    (2, 3, (55, 55), (9, 9))
    """
    rows, columns = sorted(set(patch[0])), sorted(set(patch[1]))
    hidden = len(rows) * len(columns)
    if not hidden or not {*rows, *columns} <= set(range(SIZE)):
        raise DigitsError(
            f"patch: expected rows and columns among 0, …, {SIZE - 1}, at least one of each; got {rows}, {columns}"
        )
    if 2 * hidden > SIZE * SIZE:
        raise DigitsError(f"patch hides {hidden} of {SIZE * SIZE} pixels; at most half are possible, as m_j ≤ n_j")
    pictures = _pictures()
    if images < 1 or first < 0 or first + images > len(pictures):
        raise DigitsError(f"images = {images}, first = {first}; there are {len(pictures)} images, numbered from 0")
    inputs, outputs = [], []
    for picture in pictures[first : first + images]:
        tokens = [(r, c, int(picture[r][c])) for r in range(SIZE) for c in range(SIZE)]
        inside = [t for t in tokens if t[0] in rows and t[1] in columns]
        inputs.append([t for t in tokens if t not in inside])
        outputs.append(inside)
    return Dataset(inputs, outputs)


def as_picture(tokens: Iterable[Sequence[Any]]) -> list[list[int | None]]:
    """Eight rows of eight intensities; None where no token says one.

    >>> as_picture([(0, 1, 5)])[0][:3]
    [None, 5, None]
    """
    picture: list[list[int | None]] = [[None] * SIZE for _ in range(SIZE)]
    for row, column, intensity in tokens:
        picture[int(row)][int(column)] = int(intensity)
    return picture


def _pictures() -> list[Any]:
    from sklearn.datasets import load_digits

    return list(load_digits().images)
