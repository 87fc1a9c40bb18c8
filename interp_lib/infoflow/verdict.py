"""Can this architecture do this task efficiently as ``T`` grows?  The framework's answer, with the rule behind it.

The rules, all stated for a fixed architecture and growing ``T``:

1. A comparison of **order 1** (an extreme over one index) takes one head in one layer, which retrieves the extreme.
2. A comparison of **order 2** takes two steps: in one layer every token retrieves its best partner with one head, in a later layer
   the output retrieves the best pair with one head.
3. A comparison of **order 3 or more** has ``T^order`` candidates, while the heads of any fixed architecture compare ``O(T²)`` pairs.
   *This rule is a heuristic of the framework, not a theorem.*
4. **Other order statistics** (second largest, median) and other functions of all tokens have to be decoded from an aggregate.
5. **Sums** are aggregated by one head and need no decoding; sums over fixed positions need a positional code.
6. Where heads or layers are missing, what is left over has to be decoded from an aggregate, at the price ``ε^{1 - T d / E}``; for one layer and
   order 2 the theorem on depth separation gives its own exponent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Final, Literal, final

from .comparison import Combination, Comparison, Expression, TokenFunction, comparisons, order, shape
from .cost_law import decoding_cost, retrieval_cost
from .information import Architecture

Binding = Literal["nothing", "layers", "heads", "order", "decoding", "positional code"]
MOST_LAYERS: Final = 3
MOST_HEADS: Final = 8


@final
@dataclass(frozen=True, slots=True)
class Verdict:
    """What the framework says.

    ``binding``: the resource that is missing.  ``exponent``: the power of ``1/ε`` that the missing resource costs at this ``T``, as
    predicted.  ``smallest``: the smallest numbers of heads per layer that are efficient (fewest heads, then fewest layers), None if no size is.
    ``heuristic``: whether a rule without proof decided.  ``reasons``: the rules that were used.
    """

    efficient: bool
    binding: Binding
    exponent: Fraction
    smallest: tuple[int, ...] | None
    heuristic: bool
    reasons: tuple[str, ...]

    def explain(self) -> str:
        """The verdict in words."""
        head = "efficient" if self.efficient else f"not efficient: {self.binding}"
        if not self.efficient:
            head += f", about (1/ε)^{float(self.exponent):.3g}" if self.exponent else ""
        return "; ".join((head, *self.reasons))


@final
@dataclass(frozen=True, slots=True)
class Tasks:
    """What a target asks for, counted: different comparisons of each kind.

    >>> from .comparison import parse
    >>> tasks_of(parse("min[s,t](f(s,t)) + max[t](g(t)) + sum[t](k(t))"))
    Tasks(single=1, pair=1, higher=0, decoded=0, everywhere=1, fixed=0)
    """

    single: int
    pair: int
    higher: int
    decoded: int
    everywhere: int
    fixed: int


def tasks_of(target: Expression) -> Tasks:
    """Count the different comparisons of a target by what they take."""
    different = {shape(c): c for c in comparisons(target)}
    counts = dict.fromkeys(("single", "pair", "higher", "decoded", "everywhere"), 0)
    for c in different.values():
        counts[_kind_of(c)] += 1
    fixed = {f for f in _outside(target) if f.positions}
    return Tasks(**counts, fixed=len(fixed))


def _kind_of(c: Comparison) -> str:
    if c.kind in ("second", "median", "all"):
        return "decoded"
    if c.kind == "sum":
        # A sum of token functions is one aggregate; a sum of extremes is a comparison for every token first.
        inner = comparisons(c.body)
        if not inner:
            return "everywhere" if order(Comparison("max", c.indices, c.body)) <= 1 else "decoded"
        return "pair" if order(Comparison("max", c.indices, c.body)) == 2 else "higher"
    asked = order(c)
    return "single" if asked <= 1 else "pair" if asked == 2 else "higher"


def _outside(target: Expression) -> list[TokenFunction]:
    """Token functions that no comparison contains."""
    if isinstance(target, TokenFunction):
        return [target]
    if isinstance(target, Combination):
        return [f for part in target.parts for f in _outside(part)]
    return []


def pairs_of_layers(heads: Sequence[int], pairs: int) -> list[int] | None:
    """Heads left per layer after ``pairs`` comparisons of order 2 have each taken a head in two different layers, or None.

    The choice that leaves most is made by serving each pair from the two layers with most heads left.

    >>> pairs_of_layers([2, 1], 1), pairs_of_layers([3], 1), pairs_of_layers([1, 1, 2], 2)
    ([1, 0], None, [0, 0, 0])
    """
    left = list(heads)
    for _ in range(pairs):
        by_room = sorted(range(len(left)), key=lambda l: left[l], reverse=True)
        if len(left) < 2 or left[by_room[1]] == 0:
            return None
        for l in by_room[:2]:
            left[l] -= 1
    return left


def verdict(target: Expression, architecture: Architecture, d: int = 1) -> Verdict:
    """Whether the architecture does the task efficiently as ``T`` grows, by the rules of this module.

    Statement: *efficient* means that the number of parameters for an error ``ε`` does not grow with ``T`` in the exponent of ``1/ε``.  Rules 1, 2, 5
    are constructions; rule 4 and the one-layer cases of rule 6 are lower bounds of theorems; rule 3 is a heuristic.

    Cost: constant, but for the search of the smallest architecture.

    Example:

    >>> from .comparison import parse
    >>> pairwise = parse("min[s,t](f(s,t))")
    >>> verdict(pairwise, Architecture(16, (1,))).binding, verdict(pairwise, Architecture(16, (1, 1))).efficient
    ('layers', True)
    """
    tasks = tasks_of(target)
    smallest = _smallest(tasks)
    T, heads, E = architecture.T, architecture.heads, max(1, architecture.embedding)
    if tasks.higher:
        reason = f"order {order(target)} has T^{order(target)} candidates; all heads compare {architecture.comparisons} pairs"
        return Verdict(False, "order", decoding_cost(T, d, E), None, True, (reason, "heuristic, not a theorem"))
    if tasks.decoded:
        k = _order_statistic(target, T)
        exponent = decoding_cost(T, d, E) if k is None else retrieval_cost(k, T, architecture.dimension)
        reason = "softmax retrieves extremes only; anything else is decoded from an aggregate"
        return Verdict(False, "decoding", exponent, None, False, (reason,))
    if tasks.fixed and not architecture.positional:
        return Verdict(
            False,
            "positional code",
            Fraction(0),
            smallest,
            False,
            ("fixed positions cannot be seen without a positional code",),
        )
    left = pairs_of_layers(heads, tasks.pair)
    if left is None:
        layers = sum(h > 0 for h in heads)
        if layers < 2:
            exponent = max(Fraction(0), Fraction(T - heads[0] - 1, (architecture.dimension + 1) * max(1, heads[0])) - 1)
            reason = "order 2 takes two layers: partners first, then the best pair"
            return Verdict(False, "layers", exponent, smallest, False, (reason,))
        reason = f"{tasks.pair} comparisons of order 2 take that many heads in two different layers, there are {heads}"
        return Verdict(False, "heads", decoding_cost(T, d, E), smallest, False, (reason,))
    wanted = tasks.single + tasks.everywhere + bool(tasks.fixed)
    if sum(left) < wanted:
        reason = f"{wanted} further tasks take one head each, {sum(left)} heads are left"
        return Verdict(False, "heads", decoding_cost(T, d, E), smallest, False, (reason,))
    reasons = []
    if tasks.pair:
        reasons.append(f"{tasks.pair} of order 2, each with a head in two layers")
    if tasks.single:
        reasons.append(f"{tasks.single} of order 1, one head each")
    if tasks.everywhere:
        reasons.append(f"{tasks.everywhere} sums, one head each")
    if tasks.fixed:
        reasons.append("fixed positions, one head with the positional code")
    return Verdict(True, "nothing", Fraction(0), smallest, False, tuple(reasons or ["nothing to compare"]))


def _order_statistic(target: Expression, T: int) -> int | None:
    kinds = {c.kind for c in comparisons(target)} & {"second", "median", "all"}
    return {"second": 2, "median": (T + 1) // 2}.get(next(iter(kinds))) if len(kinds) == 1 else None


def _smallest(tasks: Tasks) -> tuple[int, ...] | None:
    """The fewest heads, then the fewest layers, that do everything."""
    if tasks.higher or tasks.decoded:
        return None
    wanted = tasks.single + tasks.everywhere + bool(tasks.fixed)
    best: tuple[int, int, tuple[int, ...]] | None = None
    for layers in range(1, MOST_LAYERS + 1):
        for heads in product(range(1, MOST_HEADS + 1), repeat=layers):
            left = pairs_of_layers(heads, tasks.pair)
            if left is not None and sum(left) >= wanted:
                key = (sum(heads), layers, heads)
                best = key if best is None or key < best else best
    return None if best is None else best[2]
