"""The data sets on which the theorems are tested, and an evaluation that shares nothing with the library."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import combinations
from typing import Any

from hypothesis import strategies as st

import interp_lib as il
from interp_lib.examples import running_example


@st.composite
def data_sets(draw: Any, most: int = 6) -> il.Dataset:
    """Sequences that share tokens or contain each other; integers, so that collisions and ties are common."""
    d = draw(st.sampled_from([2, 2, 3, 8]))
    coordinate = st.integers(-3, 3).map(lambda k: Fraction(k, 2))
    token = st.tuples(*[coordinate] * d)
    inputs = draw(st.lists(st.frozensets(token, min_size=1, max_size=4), min_size=1, max_size=most, unique=True))
    outputs = [draw(st.lists(token, min_size=1, max_size=min(3, len(x)), unique=True)) for x in inputs]
    return il.Dataset([sorted(x) for x in inputs], outputs)


def uniform(seed: int, N: int, n: int, m: int, d: int, scale: float = 1.0) -> il.Dataset:
    """Floats from the cube ``[0, scale]^d``."""
    source = random.Random(seed)

    def tokens(count: int) -> list[list[float]]:
        return [[scale * source.random() for _ in range(d)] for _ in range(count)]

    return il.Dataset([tokens(n) for _ in range(N)], [tokens(m) for _ in range(N)])


def nasty() -> dict[str, il.Dataset]:
    """Every kind of valid data set that a construction might trip over."""
    e = [[0, 0], [1, 0], [0, 1], [1, 1]]
    chain = [e[: k + 1] for k in range(4)]
    subsets = [list(s) for k in (1, 2, 3, 4) for s in combinations(e, k)]
    huge, tiny = 10**12, Fraction(1, 10**12)
    circle = [[3, 4], [4, 3], [5, 0], [0, 5], [-3, 4]]
    mixed = [[huge, tiny, 0], [tiny, huge, 1], [-huge, -tiny, 1], [0, 0, tiny]]
    return {
        "one sequence": il.Dataset([e], [[[5, 5], [6, 6]]]),
        "one token": il.Dataset([[[7, 7]]], [[[0, 0]]]),
        "all tokens are targets": il.Dataset(chain, [[[k, i] for i in range(k + 1)] for k in range(4)]),
        "nested": il.Dataset(chain, [[[k, -k]] for k in range(4)]),
        "all subsets": il.Dataset(subsets, [[[k, 1]] for k in range(len(subsets))]),
        "targets equal inputs": il.Dataset(chain, chain),
        "targets equal each other": il.Dataset(chain, [[[2, 2]]] * 4),
        "targets are swapped inputs": il.Dataset([e[:2], e[2:]], [e[2:], e[:2]]),
        "all zero targets": il.Dataset(chain, [[[0, 0]]] * 4),
        "singletons": il.Dataset([[x] for x in e], [[x] for x in reversed(e)]),
        "equal centroids": il.Dataset(
            [[[k, 0], [-k, 0]] for k in range(1, 6)] + [[[0, 0]]], [[[k, k]] for k in range(6)]
        ),
        "on a circle": il.Dataset([circle[:k] for k in (2, 3, 4, 5)], [circle[k : k + 1] for k in range(4)]),
        "huge and tiny": il.Dataset([mixed[:k] for k in (1, 2, 3, 4)], [mixed[4 - k :] for k in (1, 2, 3, 4)]),
        "tiny": il.Dataset(
            [[[x * tiny, y * tiny] for x, y in tokens] for tokens in chain], [[[k, k]] for k in range(4)]
        ),
        "far from zero": il.Dataset(
            [[[x + huge, y - huge] for x, y in t] for t in chain], [[[k, k]] for k in range(4)]
        ),
        "close together": il.Dataset(
            [[[0, 0], [Fraction(1, 10**9), 0]], [[0, 0], [0, Fraction(1, 10**9)]]], [[[1, 1], [2, 1]], [[3, 1]]]
        ),
        "thirds": il.Dataset([[[Fraction(1, 3), Fraction(2, 7)], [Fraction(1, 3), 0]]], [[[Fraction(5, 11), 1]]]),
        "dimension 64": uniform(3, 4, 5, 2, 64),
        "running example": running_example(),
    }


def brute(T: Any, X: Any) -> set[tuple[Fraction, ...]]:
    """``T(X)`` under hardmax from the definitions, in plain Fractions with dense matrices."""

    def times(matrix: Any, x: Any) -> list[Fraction]:
        return [sum((a * b for a, b in zip(row, x, strict=True)), Fraction(0)) for row in matrix]

    tokens = [[Fraction(v) for v in x] for x in X]
    for block in T.blocks:
        ff, sa = block.feed_forward, block.attention
        after = []
        for x in tokens:
            units = [max(Fraction(0), t + b) for t, b in zip(times(ff.U, x), ff.b, strict=True)]
            after.append([ff.eta * a + c for a, c in zip(x, times(ff.W, units), strict=True)])
        A, V = sa.A.dense(), sa.V.dense()
        tokens = []
        for x in after:
            looking = times(A, x)
            scores = [sum(a * b for a, b in zip(looking, y, strict=True)) for y in after]
            best = [y for y, s in zip(after, scores, strict=True) if s == max(scores)]
            mean = [sum(column, Fraction(0)) / len(best) for column in zip(*best, strict=True)]
            tokens.append([sa.rho * a + b for a, b in zip(x, times(V, mean), strict=True)])
    return {tuple(x) for x in tokens}
