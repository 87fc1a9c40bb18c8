"""The data sets that the book talks about, small enough to draw and to check by hand."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from random import Random

from .sequences import Dataset, DatasetError


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


def random_dataset(N: int, n: int, m: Sequence[int], d: int, seed: int, *, largest: int = 4) -> Dataset:
    """``N`` random sequences of ``n`` tokens that share tokens, with ``min(m[j], n)`` random targets each.

    Statement: the data of the explorers.  Every input is a random choice of ``n`` among ``n + N`` points of the cube ``[0, largest]^d``;
    all coordinates are multiples of ``1/16``.

    Exactness: dyadic numbers.  The same arguments give the same data on every machine.

    Raises: `DatasetError` for ``N < 1``, ``n < 1``, ``d < 2`` or fewer than ``N`` entries in ``m``.

    Example:

    >>> data = random_dataset(2, 3, [1, 2], 2, seed=0)
    >>> data.n, data.m
    ((3, 3), (1, 2))
    """
    if N < 1 or n < 1 or d < 2 or len(m) < N or min(m[:N]) < 1:
        raise DatasetError(
            f"N = {N}, n = {n}, d = {d}, m = {list(m)}; N ≥ 1, n ≥ 1, d ≥ 2 and N entries m_j ≥ 1 are required"
        )
    random = Random(seed)

    def points(count: int) -> list[tuple[Fraction, ...]]:
        found: dict[tuple[Fraction, ...], None] = {}
        while len(found) < count:
            found[tuple(Fraction(random.randrange(16 * largest + 1), 16) for _ in range(d))] = None
        return list(found)

    pool = points(n + N)
    chosen: dict[tuple[int, ...], None] = {}
    while len(chosen) < N:
        chosen[tuple(sorted(random.sample(range(len(pool)), n)))] = None
    inputs = [[pool[i] for i in ids] for ids in chosen]
    return Dataset(inputs, [points(min(m[j], n)) for j in range(N)])
