"""Information sets: which input positions can still be read off each state, layer by layer.

The framework does not follow vectors.  It follows for every position ``t`` and layer ``l`` the set ``I(t, l)`` of input positions whose
information the state still holds.  At first ``I(t, 0) = {t}``.  The residual connection keeps what is there; each head adds something, in one
of three modes:

* **max-position retrieval**: the set of the one position with the largest score, ``I(s*, l)``;
* **global aggregation**: the sets of all positions;
* **specific-position aggregation**: the sets of fixed positions, whatever the content; it needs a positional code.

Positions are ``1, …, T`` and the classification token ``T + 1``, which is where the output is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import final


class PlanError(ValueError):
    """A plan that the architecture cannot carry out; the message names the place."""


@final
@dataclass(frozen=True, slots=True)
class Architecture:
    """``len(heads)`` layers with ``heads[l]`` heads each, on ``T`` tokens and a classification token.

    ``dimension`` is ``n``, the dimension of a head; ``positional`` says whether there is a positional code.

    >>> Architecture(8, (1, 1)).layers, Architecture(8, (1, 1)).class_position
    (2, 9)
    """

    T: int
    heads: tuple[int, ...]
    dimension: int = 1
    positional: bool = False

    def __post_init__(self) -> None:
        for name, value in (("T", self.T), ("dimension", self.dimension)):
            if type(value) is not int or value < 1:
                raise PlanError(f"{name} is {value!r}; a positive integer is required")
        if not self.heads or any(type(h) is not int or h < 0 for h in self.heads):
            raise PlanError(f"heads is {self.heads!r}; a number of heads for each of at least one layer is required")

    @property
    def layers(self) -> int:
        return len(self.heads)

    @property
    def class_position(self) -> int:
        """``T + 1``."""
        return self.T + 1

    @property
    def embedding(self) -> int:
        """``E = h n`` of the widest layer."""
        return max(self.heads) * self.dimension

    @property
    def comparisons(self) -> int:
        """How many pairs of query and key all heads compare: ``Σ_l h_l T (T + 1)``.

        >>> Architecture(8, (1, 2)).comparisons
        216
        """
        return sum(self.heads) * self.T * (self.T + 1)


@final
@dataclass(frozen=True, slots=True)
class MaxPosition:
    """Each listed position retrieves from the position that attains its largest score: ``source[t]`` for query ``t``."""

    source: Mapping[int, int]


@final
@dataclass(frozen=True, slots=True)
class Global:
    """The listed queries (all, if none are listed) take in everything."""

    queries: frozenset[int] = frozenset()


@final
@dataclass(frozen=True, slots=True)
class Specific:
    """The listed queries (all, if none are listed) take in fixed positions."""

    positions: frozenset[int]
    queries: frozenset[int] = frozenset()


Mode = MaxPosition | Global | Specific
Plan = tuple[tuple[Mode, ...], ...]
"""For every layer the modes of its heads, at most as many as there are heads."""


@final
@dataclass(frozen=True, slots=True)
class History:
    """``sets[l][t - 1]`` is ``I(t, l)``.

    >>> history = follow(Architecture(3, (1,)), [[Global()]])
    >>> sorted(history.at(4, 1))
    [1, 2, 3, 4]
    """

    architecture: Architecture
    plan: Plan
    sets: tuple[tuple[frozenset[int], ...], ...] = field(repr=False)

    def at(self, position: int, layer: int) -> frozenset[int]:
        """``I(position, layer)``."""
        return self.sets[layer][position - 1]

    @property
    def output(self) -> frozenset[int]:
        """What the classification token can reach at the end."""
        return self.sets[-1][-1]


def follow(architecture: Architecture, plan: Sequence[Sequence[Mode]]) -> History:
    """All information sets of a plan.

    Statement: ``I(t, l + 1) = I(t, l) ∪ ⋃_heads (what the head adds)``.

    Cost: ``O(L T · heads)`` unions of sets.

    Raises: `PlanError` for more modes than heads, positions that do not exist, a specific mode without a positional code, or a
    number of layers that does not fit.

    Example:

    >>> two = Architecture(3, (1, 1))
    >>> plan = [[MaxPosition({1: 2, 2: 1, 3: 2})], [MaxPosition({4: 3})]]
    >>> sorted(follow(two, plan).output)
    [2, 3, 4]
    """
    if len(plan) != architecture.layers:
        raise PlanError(f"plan has {len(plan)} layers but the architecture has {architecture.layers}")
    everyone = range(1, architecture.class_position + 1)
    sets = [tuple(frozenset({t}) for t in everyone)]
    for l, modes in enumerate(plan):
        if len(modes) > architecture.heads[l]:
            raise PlanError(f"plan[{l}] has {len(modes)} modes but layer {l + 1} has {architecture.heads[l]} heads")
        now = sets[-1]
        following = list(now)
        for k, mode in enumerate(modes):
            _check(architecture, mode, f"plan[{l}][{k}]")
            for t in everyone:
                following[t - 1] |= _added(mode, t, now)
        sets.append(tuple(following))
    return History(architecture, tuple(map(tuple, plan)), tuple(sets))


def _added(mode: Mode, t: int, now: tuple[frozenset[int], ...]) -> frozenset[int]:
    if isinstance(mode, MaxPosition):
        return now[mode.source[t] - 1] if t in mode.source else frozenset()
    if mode.queries and t not in mode.queries:
        return frozenset()
    sources = range(1, len(now) + 1) if isinstance(mode, Global) else mode.positions
    return frozenset().union(*(now[s - 1] for s in sources))


def _check(architecture: Architecture, mode: Mode, where: str) -> None:
    if isinstance(mode, Specific):
        if not architecture.positional:
            raise PlanError(f"{where} attends to fixed positions, which needs a positional code")
        if not mode.positions:
            raise PlanError(f"{where} names no positions")
    named: set[int] = set()
    if isinstance(mode, MaxPosition):
        named = {*mode.source, *mode.source.values()}
    else:
        named = {*mode.queries, *(mode.positions if isinstance(mode, Specific) else ())}
    wrong = sorted(p for p in named if not 1 <= p <= architecture.class_position)
    if wrong:
        raise PlanError(f"{where} names position {wrong[0]}; positions are 1 to {architecture.class_position}")


def renamed(plan: Sequence[Sequence[Mode]], to: Mapping[int, int]) -> Plan:
    """The same plan with positions renamed by a permutation.

    >>> renamed([[MaxPosition({1: 2})]], {1: 2, 2: 1})
    ((MaxPosition(source={2: 1}),),)
    """

    def mode_of(mode: Mode) -> Mode:
        if isinstance(mode, MaxPosition):
            return MaxPosition({to[t]: to[s] for t, s in mode.source.items()})
        queries = frozenset(to[t] for t in mode.queries)
        if isinstance(mode, Global):
            return Global(queries)
        return Specific(frozenset(to[p] for p in mode.positions), queries)

    return tuple(tuple(map(mode_of, modes)) for modes in plan)
