"""Linear systems of a few unknowns in floats: what the searches for collisions solve at every step.

Nothing here proves anything; `interp_lib.infoflow.krawczyk` does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

Vector = list[float]


def solve(matrix: Sequence[Sequence[float]], right: Sequence[float]) -> Vector | None:
    """The solution of a square system by elimination with pivoting, or None if it is singular to working accuracy."""
    size = len(matrix)
    rows = [[*row, b] for row, b in zip(matrix, right, strict=True)]
    scale = max((abs(x) for row in matrix for x in row), default=0.0)
    if not math.isfinite(scale):
        return None
    for k in range(size):
        pivot = max(range(k, size), key=lambda i: abs(rows[i][k]))
        if abs(rows[pivot][k]) <= 1e-14 * scale or scale == 0.0:
            return None
        rows[k], rows[pivot] = rows[pivot], rows[k]
        for i in range(k + 1, size):
            factor = rows[i][k] / rows[k][k]
            if factor:
                rows[i] = [x - factor * y for x, y in zip(rows[i], rows[k], strict=True)]
    x = [0.0] * size
    for k in reversed(range(size)):
        x[k] = (rows[k][size] - sum(rows[k][j] * x[j] for j in range(k + 1, size))) / rows[k][k]
    return x if all(map(math.isfinite, x)) else None


def inverse_of(matrix: Sequence[Sequence[float]]) -> list[Vector] | None:
    """The inverse of a square matrix, or None where `solve` finds it singular.

    >>> inverse_of([[0.0, 2.0], [1.0, 0.0]])
    [[0.0, 1.0], [0.5, 0.0]]
    """
    size = len(matrix)
    columns = [solve(matrix, [float(i == j) for i in range(size)]) for j in range(size)]
    if any(c is None for c in columns):
        return None
    return [[columns[j][i] for j in range(size)] for i in range(size)]  # type: ignore[index]


def kernel(matrix: Sequence[Sequence[float]], scales: Sequence[float]) -> Vector | None:
    """A unit vector in the kernel of a matrix with one column more than rows."""
    columns = len(matrix[0])
    for free in sorted(range(columns), key=lambda j: scales[j], reverse=True):
        others = [j for j in range(columns) if j != free]
        x = solve([[row[j] for j in others] for row in matrix], [-row[free] for row in matrix])
        if x is not None:
            full = [0.0] * columns
            full[free] = 1.0
            for j, value in zip(others, x, strict=True):
                full[j] = value
            length = math.sqrt(sum(v * v for v in full))
            return [v / length for v in full]
    return None


def shortest(matrix: Sequence[Sequence[float]], right: Sequence[float], damping: float) -> Vector | None:
    """About the shortest solution of a wide system: ``Jᵀ (J Jᵀ + μ)⁻¹ r``."""
    normal = [[sum(a * b for a, b in zip(r, s, strict=True)) for s in matrix] for r in matrix]
    size = sum(normal[i][i] for i in range(len(normal)))
    for i in range(len(normal)):
        normal[i][i] += damping + 1e-14 * size
    y = solve(normal, right)
    if y is None:
        return None
    return [sum(y[i] * matrix[i][j] for i in range(len(matrix))) for j in range(len(matrix[0]))]


def size_of(vector: Sequence[float]) -> float:
    """The largest absolute entry; infinite if an entry is not finite.

    >>> size_of([1.0, -3.0]), size_of([float("nan")])
    (3.0, inf)
    """
    worst = max((abs(x) for x in vector), default=0.0)
    return worst if math.isfinite(worst) and not any(x != x for x in vector) else math.inf


def norm(vector: Sequence[float]) -> float:
    """The Euclidean norm; infinite if an entry is not finite.

    >>> norm([3.0, 4.0]), norm([float("nan")])
    (5.0, inf)
    """
    total = math.fsum(x * x for x in vector) if all(map(math.isfinite, vector)) else math.inf
    return math.sqrt(total)


def independent_columns(matrix: list[Vector], count: int) -> list[int] | None:
    """``count`` columns of a wide matrix, chosen greedily by what is left after projecting on those before."""
    columns = [list(column) for column in zip(*matrix, strict=True)] if matrix and matrix[0] else []
    chosen: list[int] = []
    for _ in range(count):
        sizes = [-1.0 if j in chosen else norm(c) for j, c in enumerate(columns)]
        if not sizes or max(sizes) <= 1e-13:
            return None
        best = max(range(len(sizes)), key=lambda j: sizes[j])
        chosen.append(best)
        unit = [x / sizes[best] for x in columns[best]]
        for j, c in enumerate(columns):
            if j not in chosen:
                part = sum(a * b for a, b in zip(unit, c, strict=True))
                columns[j] = [x - part * a for x, a in zip(c, unit, strict=True)]
    return chosen
