"""Reading attention through the framework's eyes: which heads retrieve an extreme, which average, which look at fixed positions.

Given attention weights on sample inputs, each head is classified query by query, from measurements only:

* *specific*: the weights hardly change from input to input, and are not spread over everything;
* *global*: the weights are nearly uniform;
* *max-position*: almost all weight is on one key, or evenly on two that tie, and which ones depends on the input;
* *mixed*: none of these.

All thresholds are measurements on samples and prove nothing.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, final

from ..fields import fraction
from ..layers import FeedForward
from .depth_separation import MaskedHead, SmallestProduct
from .information import Global, MaxPosition, Mode, Specific

Weights = Sequence[Sequence[float]]
"""One head on one input: a row of weights for every query, over the keys."""
Kind = Literal["max-position", "global", "specific", "mixed"]

SHARP = 0.9
SPREAD = 1.5
STEADY = 0.05
TIE = 1.5


class LensError(ValueError):
    """Attention weights of the wrong shape; the message names the place."""


@final
@dataclass(frozen=True, slots=True)
class Reading:
    """What one head does for one query: its kind, the mean weight of its strongest key, and the keys that matter."""

    kind: Kind
    strength: float
    keys: tuple[int, ...]


def read_head(samples: Sequence[Weights]) -> list[Reading]:
    """A reading for every query of one head, from its weights on several inputs.

    Raises: `LensError` for fewer than two samples, ragged rows, or rows that do not sum to 1.

    >>> hard = [[[1.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]]]
    >>> [r.kind for r in read_head(hard)]
    ['max-position', 'specific']
    """
    if len(samples) < 2:
        raise LensError(f"samples: at least two inputs are needed to tell fixed from changing, got {len(samples)}")
    queries, keys = len(samples[0]), len(samples[0][0])
    for i, sample in enumerate(samples):
        if len(sample) != queries or any(len(row) != keys for row in sample):
            raise LensError(f"samples[{i}]: expected {queries} rows of {keys} weights")
        for q, row in enumerate(sample):
            if abs(sum(row) - 1) > 1e-6 or min(row) < -1e-9:
                raise LensError(
                    f"samples[{i}][{q}]: expected weights that are not negative and sum to 1, got sum {sum(row):.6g}"
                )
    return [_read([sample[q] for sample in samples]) for q in range(queries)]


def _read(rows: list[Sequence[float]]) -> Reading:
    keys = len(rows[0])
    means = [sum(row[k] for row in rows) / len(rows) for k in range(keys)]
    change = max(max(row[k] for row in rows) - min(row[k] for row in rows) for k in range(keys))
    top = sum(max(row) for row in rows) / len(rows)
    strongest = Counter(max(range(keys), key=row.__getitem__) for row in rows)
    if change <= STEADY and max(means) > SPREAD / keys:
        return Reading("specific", top, tuple(k for k, m in enumerate(means) if m > max(means) / 2))
    if all(max(row) <= SPREAD / keys for row in rows):
        return Reading("global", top, tuple(range(keys)))
    if sum(map(_leading, rows)) / len(rows) >= SHARP:
        return Reading("max-position", top, tuple(sorted(strongest)))
    return Reading("mixed", top, tuple(sorted(strongest)))


def _leading(row: Sequence[float]) -> float:
    """The weight on the strongest key, or on the two strongest together if they tie: an extreme may be attained twice."""
    first, second = [*sorted(row, reverse=True), 0.0][:2]
    return first + second if first <= TIE * second else first


def measured_modes(
    samples: Sequence[Sequence[Weights]], input_index: int = 0, queries: Sequence[int] | None = None
) -> list[Mode | None]:
    """One mode per head, as a plan says it, for the input number ``input_index``: positions and keys count from 1.

    ``samples[i][h]`` are the weights of head ``h`` on input ``i``; ``queries`` are the positions that matter (all, if none are given).  A head
    is given the mode of the majority of them; None for a mixed one.

    >>> hard = [[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]]
    >>> measured_modes([[w] for w in hard])
    [MaxPosition(source={1: 1, 2: 2})]
    """
    modes: list[Mode | None] = []
    for h in range(len(samples[0])):
        own = [sample[h] for sample in samples]
        asked = range(len(own[0])) if queries is None else [q - 1 for q in queries]
        read = read_head(own)
        readings = [read[q] for q in asked]
        kind = Counter(r.kind for r in readings).most_common(1)[0][0]
        rows = own[input_index]
        if kind == "max-position":
            source = {q + 1: max(range(len(rows[q])), key=rows[q].__getitem__) + 1 for q in asked}
            modes.append(MaxPosition(source))
        elif kind == "global":
            modes.append(Global() if queries is None else Global(frozenset(queries)))
        elif kind == "specific":
            modes.append(Specific(frozenset(k + 1 for r in readings if r.kind == "specific" for k in r.keys)))
        else:
            modes.append(None)
    return modes


# ---------------------------------------------------------------- attention weights of constructed models


def weights_of(model: SmallestProduct, X: Any) -> list[list[list[list[float]]]]:
    """The attention weights of the two-layer transformer for the smallest inner product: per layer, head, query and key.

    Queries are the ``T`` tokens and then the classification token; the classification token is no key, so its column is 0.

    Exactness: float64, measured.

    >>> from .depth_separation import smallest_product
    >>> layers = weights_of(smallest_product(T=3, d=2, eps=1), [[1, 0], [-1, 0], [0, 1]])
    >>> len(layers), len(layers[0][0]), len(layers[0][0][0])
    (2, 4, 4)
    """
    d, E = model.d, model.width
    rows = [[float(fraction(v)) for v in row] + [0.0] * (E - d) for row in model.read(X)]
    asking = [0.0] * (E - 2) + [1.0, 0.0]
    first = [_weights(model.first, z, rows) for z in (*rows, asking)]
    moved = [_moved(model.first, z, w, rows) for z, w in zip((*rows, asking), first, strict=True)]
    after = [_feed(model.feed_forward, z) for z in moved]
    second = [_weights(model.second, z, after[:-1]) for z in after]
    return [[[[*row, 0.0] for row in layer]] for layer in (first, second)]


def _times(M: Sequence[Sequence[Any]], z: Sequence[float]) -> list[float]:
    return [sum(float(a) * b for a, b in zip(row, z, strict=True)) for row in M]


def _weights(head: MaskedHead, z: Sequence[float], keys: Sequence[Sequence[float]]) -> list[float]:
    query = _times(head.query, z)
    scores = [float(head.beta) * sum(a * b for a, b in zip(query, _times(head.key, k), strict=True)) for k in keys]
    top = max(scores)
    weights = [math.exp(max(s - top, -745.0)) for s in scores]
    return [w / sum(weights) for w in weights]


def _moved(
    head: MaskedHead, z: Sequence[float], weights: Sequence[float], keys: Sequence[Sequence[float]]
) -> list[float]:
    values = [_times(head.value, k) for k in keys]
    mean = [sum(w * v for w, v in zip(weights, column, strict=True)) for column in zip(*values, strict=True)]
    return [a + b for a, b in zip(z, _times(head.output, mean), strict=True)]


def _feed(layer: FeedForward, z: Sequence[float]) -> list[float]:
    units = [max(0.0, v + float(b)) for v, b in zip(_times(layer.U, z), layer.b, strict=True)]
    return [float(layer.eta) * a + b for a, b in zip(z, _times(layer.W, units), strict=True)]
