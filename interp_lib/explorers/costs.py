"""A calculator: every construction built for random data, counted, and compared with its budget and the lower bound."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Final

from ..costs import COUNTS, NAMES, budget, parameter_lower_bound
from ..data_files import data_text
from ..examples import random_dataset
from ..files import to_text
from ..interpolation.four_phase import hardmax_interpolant
from ..interpolation.mean_pooling import mean_interpolant
from ..interpolation.resnet import InfeasibleError, resnet_interpolant
from ..interpolation.softmax import softmax_interpolant
from ..layers import Count, Transformer
from ..sequences import Dataset
from .base import Explorer, Picture, Value, choice, integer
from .drawing import Drawing, Panel, Scale, colour

BLOCKS: Final = "blocks"
KINDS: Final = (BLOCKS, *(f"{count} parameters" for count in COUNTS))
SHORT: Final = {
    "hardmax": "Theorem 1.6",
    "hardmax, as stated": "1.6 as stated",
    "softmax": "Theorem 1.8",
    "softmax, as stated": "1.8 as stated",
    "mean": "Theorem S",
    "resnet, by tokens": "ResNet, hats",
    "resnet, by labels": "ResNet, labels",
}
Sizes = dict[str, int]


@lru_cache(maxsize=16)
def built(N: int, n: int, m: int, d: int, shared: str, seed: int) -> tuple[int, dict[str, Sizes]]:
    """The number of different tokens, and for every construction that is possible its size in blocks and in the three counts.

    >>> tokens, sizes = built(2, 3, 1, 2, "no", 0)
    >>> tokens, sizes["mean"]["blocks"]
    (6, 3)
    """
    data = _data(N, n, m, d, shared, seed)
    found = {
        name: {BLOCKS: T.depth, **{f"{count} parameters": T.num_parameters(count) for count in COUNTS}}
        for name, T in _transformers(data).items()
    }
    return len({x for X in data.inputs for x in X}), found


def _transformers(data: Dataset) -> dict[str, Transformer]:
    """Every construction that is possible for the data."""
    hard, soft = hardmax_interpolant(data), softmax_interpolant(data)
    transformers = {
        "hardmax": hard,
        "hardmax, as stated": hard.padded(2 * data.M + 2 * data.N + 1),
        "softmax": soft,
        "softmax, as stated": soft.padded(2 * data.M + 3 * data.N),
        "mean": mean_interpolant(data),
    }
    try:
        transformers["resnet, by tokens"] = resnet_interpolant(data, scheme="tokens")
        transformers["resnet, by labels"] = resnet_interpolant(data)
    except InfeasibleError:
        pass
    return transformers


def _data(N: int, n: int, m: int, d: int, shared: str, seed: int) -> Dataset:
    if shared == "yes":
        return random_dataset(N, n, [m] * N, d, seed)
    # Sequences of their own: one long random sequence, cut into pieces.
    whole = random_dataset(1, N * n, [N * min(m, n)], d, seed, largest=64)
    X, Y = whole.inputs[0], whole.outputs[0]
    k = min(m, n)
    return Dataset([X[j * n : (j + 1) * n] for j in range(N)], [Y[j * k : (j + 1) * k] for j in range(N)])


def picture(kind: str, shared: str, N: int, n: int, m: int, d: int, seed: int) -> Picture:
    """One bar per construction on a logarithmic axis, with its budget and, for parameters, the lower bound ``dM``."""
    tokens, sizes = built(N, n, m, d, shared, seed)
    M = N * min(m, n)
    lower = parameter_lower_bound(M, d) if kind != BLOCKS else 1
    allowed: dict[str, int] = {}
    for name in NAMES:
        bounds = budget(name, N=N, M=M, d=d, omega=tokens)
        allowed[name] = bounds.blocks if kind == BLOCKS else getattr(bounds, _count(kind))
    top = 1.3 * max(allowed.values())
    impossible = [name for name in NAMES if name not in sizes]
    draw = Drawing(
        640,
        350,
        f"{kind} of every construction",
        "; ".join(f"{SHORT[name]}: {sizes[name][kind]}, at most {allowed[name]}" for name in NAMES if name in sizes)
        + (f". Impossible for these data: {', '.join(SHORT[name] for name in impossible)}." if impossible else "."),
    )
    low = max(0.5, min(lower, *(values[kind] for values in sizes.values())) / 2)
    view = Panel(draw, Scale(low, top, 176, 628, log=True), Scale(0, len(NAMES), 20, 300))
    for value, text in view.x.ticks():
        draw.line((view.x(value), 20), (view.x(value), 300), opacity=0.2)
        draw.text(view.x(value), 318, text, size=13, anchor="middle")
    draw.text(402, 341, kind, size=14, anchor="middle")
    for row, name in enumerate(NAMES):
        y = 20 + 40 * (row + 0.5)
        draw.text(168, y + 5, SHORT[name], size=14, anchor="end")
        limit = view.x(allowed[name])
        if name in sizes:
            edge = view.x(sizes[name][kind])
            draw.rectangle(view.x.start, y - 10, edge - view.x.start, 20, fill=colour(row), opacity=0.75)
        else:
            draw.text(view.x.start + 6, y + 5, "impossible: tokens are shared", size=14)
        draw.line((limit, y - 14), (limit, y + 14), width=2)
    if kind != BLOCKS:
        x = view.x(lower)
        draw.line((x, 16), (x, 304), stroke=colour(1), dash="6 4", width=1.8)
        draw.text(x + 4, 14, "dM", size=13, fill=colour(1))
    numbers: dict[str, Value] = {"M": M, "different tokens": tokens}
    for name in NAMES:
        numbers[SHORT[name]] = sizes[name][kind] if name in sizes else "impossible"
    if kind != BLOCKS:
        numbers["lower bound dM"] = lower
        numbers["Theorem S / dM"] = sizes["mean"][kind] / lower
    data = _data(N, n, m, d, shared, seed)
    files: dict[str, Callable[[], str]] = {"data.json": lambda: data_text(data)}
    for plain in ("hardmax", "softmax", "mean"):
        files[f"{plain}.json"] = partial(_weights, data, plain)
    return Picture(draw.svg(), numbers, files=files)


def _weights(data: Dataset, name: str) -> str:
    return to_text(_transformers(data)[name])


def _count(kind: str) -> Count:
    return next(count for count in COUNTS if kind.startswith(count))


EXPLORER = Explorer(
    "What does it cost? Built and counted",
    "interp_lib.explorers.costs:picture",
    (
        choice("kind", "count", KINDS, BLOCKS),
        choice("shared", "tokens shared", ("no", "yes"), "no"),
        integer("N", "sequences N", 1, 4, 4),
        integer("n", "tokens per sequence n", 1, 8, 6),
        integer("m", "targets each m", 1, 3, 2),
        integer("d", "dimension d", 2, 12, 4),
        integer("seed", "seed", 0, 99, 0),
    ),
)
