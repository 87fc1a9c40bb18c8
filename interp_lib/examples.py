"""The data sets that the book talks about, small enough to draw and to check by hand."""

from __future__ import annotations

from .sequences import Dataset


def running_example() -> Dataset:
    """Three sequences in the plane that share tokens, with targets of 1, 1 and 2 tokens.

    Statement: the data of the first half of the book, in the spirit of the paper's own illustration.  The
    five distinct input tokens have small integer coordinates.  The token ``(4, 3)`` lies in every sequence and is at least
    as large as every other token in every coordinate, so along every positive direction the three
    sequences have the *same* largest label: the separation must work.  The first sequence is a
    subset of the second, so no map of single tokens, and therefore no network without attention,
    sends each input to its target.

    Exactness: integers.

    Example:

    >>> data = running_example()
    >>> data.N, data.d, data.n, data.m, data.M
    (3, 2, (2, 3, 4), (1, 1, 2), 4)
    """
    top, left, right = [4, 3], [0, 2], [2, 0]
    inputs = [
        [left, top],
        [left, right, top],
        [right, [0, 0], [1, 3], top],
    ]
    outputs = [
        [[-1, -1]],
        [[5, 1]],
        [[1, 5], [3, -2]],
    ]
    return Dataset(inputs, outputs)
