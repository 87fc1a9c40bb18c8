"""Comparison trees: what a target has to compare, read off a formula.

The language: ``min[s,t](f(s,t))`` and ``max`` compare over all tokens at the named indices; ``second`` and ``median`` are other order
statistics; ``sum[t](f(t))`` adds up; ``all[…]`` stands for a function of all tokens at once that is none of these.  ``f(s,t)`` is any function of the tokens at
the named indices; ``f(1,2)`` one of the tokens at fixed positions.  Expressions may be added, and wrapped in a function of finitely
many of them: ``F(min[t](f(t)), max[t](g(t)))``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, final


class FormulaError(ValueError):
    """A formula that cannot be read; the message shows where."""


EXTREMES: Final = ("min", "max")
OTHERS: Final = ("second", "median", "all")
BINDERS: Final = (*EXTREMES, *OTHERS, "sum")


@final
@dataclass(frozen=True, slots=True)
class TokenFunction:
    """``name(s, t, 3, …)``: a function of the tokens at bound indices and fixed positions."""

    name: str
    indices: tuple[str, ...]
    positions: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}({', '.join((*self.indices, *map(str, self.positions)))})"


@final
@dataclass(frozen=True, slots=True)
class Comparison:
    """``kind[indices](body)``."""

    kind: str
    indices: tuple[str, ...]
    body: Expression

    def __str__(self) -> str:
        return f"{self.kind}[{','.join(self.indices)}]({self.body})"


@final
@dataclass(frozen=True, slots=True)
class Combination:
    """A function of finitely many expressions; ``name`` is ``"+"`` for a sum."""

    name: str
    parts: tuple[Expression, ...]

    def __str__(self) -> str:
        if self.name == "+":
            return " + ".join(map(str, self.parts))
        return f"{self.name}({', '.join(map(str, self.parts))})"


Expression = TokenFunction | Comparison | Combination

_TOKEN = re.compile(r"\s*([A-Za-z_]\w*|\d+|[\[\](),+])")


def parse(text: str) -> Expression:
    """The expression that a formula denotes.

    Raises: `FormulaError`, with the place.

    >>> str(parse("F(min[t](f(t)), max[s,t](g(s,t))) + h(1,2)"))
    'F(min[t](f(t)), max[s,t](g(s, t))) + h(1, 2)'
    """
    tokens, at = [], 0
    stripped = text.rstrip()
    while at < len(stripped):
        match = _TOKEN.match(stripped, at)
        if not match:
            raise FormulaError(f"cannot read {stripped[at : at + 12]!r} at place {at + 1} of {text!r}")
        tokens.append(match.group(1))
        at = match.end()
    reader = _Reader(tokens, text)
    found = reader.expression(frozenset())
    if reader.at < len(tokens):
        raise FormulaError(f"{tokens[reader.at]!r} is left over in {text!r}")
    return found


class _Reader:
    """Recursive descent over the tokens of a formula."""

    __slots__ = ("at", "text", "tokens")

    def __init__(self, tokens: list[str], text: str) -> None:
        self.tokens, self.text, self.at = tokens, text, 0

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, expected: str = "") -> str:
        token = self.peek()
        if not token or (expected and token != expected):
            raise FormulaError(f"expected {expected or 'more'!r} but found {token or 'the end'!r} in {self.text!r}")
        self.at += 1
        return token

    def expression(self, bound: frozenset[str]) -> Expression:
        parts = [self.term(bound)]
        while self.peek() == "+":
            self.take()
            parts.append(self.term(bound))
        return parts[0] if len(parts) == 1 else Combination("+", tuple(parts))

    def term(self, bound: frozenset[str]) -> Expression:
        name = self.take()
        if not name[0].isalpha() and name[0] != "_":
            raise FormulaError(f"expected a name but found {name!r} in {self.text!r}")
        if self.peek() == "[":
            if name not in BINDERS:
                raise FormulaError(f"{name!r} does not compare; one of {', '.join(BINDERS)} is required before '['")
            self.take("[")
            indices = [self.take()]
            while self.peek() == ",":
                self.take()
                indices.append(self.take())
            self.take("]")
            again = [i for i in indices if i in bound or indices.count(i) > 1]
            if again:
                raise FormulaError(f"index {again[0]!r} is bound twice in {self.text!r}")
            self.take("(")
            body = self.expression(bound | set(indices))
            self.take(")")
            return Comparison(name, tuple(indices), body)
        self.take("(")
        if self.peek().isdigit() or self.peek() in bound:
            return self._token_function(name, bound)
        parts = [self.expression(bound)]
        while self.peek() == ",":
            self.take()
            parts.append(self.expression(bound))
        self.take(")")
        return Combination(name, tuple(parts))

    def _token_function(self, name: str, bound: frozenset[str]) -> TokenFunction:
        indices: list[str] = []
        positions: list[int] = []
        while True:
            token = self.take()
            if token.isdigit():
                positions.append(int(token))
            elif token in bound:
                indices.append(token)
            else:
                raise FormulaError(f"index {token!r} is not bound in {self.text!r}")
            if self.peek() != ",":
                break
            self.take()
        self.take(")")
        return TokenFunction(name, tuple(indices), tuple(positions))


# ---------------------------------------------------------------- measures


def comparisons(target: Expression) -> list[Comparison]:
    """The outermost comparisons, from left to right: the tasks of the target.

    >>> [str(c) for c in comparisons(parse("max[s](min[t](f(s,t))) + max[t](g(t))"))]
    ['max[s](min[t](f(s, t)))', 'max[t](g(t))']
    """
    if isinstance(target, Comparison):
        return [target]
    if isinstance(target, Combination):
        return [c for part in target.parts for c in comparisons(part)]
    return []


def token_functions(target: Expression) -> Iterator[TokenFunction]:
    """All token functions of an expression."""
    if isinstance(target, TokenFunction):
        yield target
    elif isinstance(target, Comparison):
        yield from token_functions(target.body)
    else:
        for part in target.parts:
            yield from token_functions(part)


def order(target: Expression) -> int:
    """``β'``: how many tokens have to be compared jointly.

    >>> order(parse("min[s,t](f(s,t))")), order(parse("max[s](min[t](f(s,t)))")), order(parse("min[r,s,t](f(r,s,t))"))
    (2, 2, 3)
    """
    bound = [len(set(f.indices)) for c in comparisons(target) if c.kind != "sum" for f in token_functions(c)]
    return max(bound, default=0)


def dimension(target: Expression) -> int:
    """``β₁``: how many different comparisons there are.

    >>> dimension(parse("max[t](f(t)) + max[t](g(t)) + max[s](f(s))"))
    2
    """
    return len({shape(c) for c in comparisons(target) if c.kind != "sum"})


def number_of_comparisons(target: Expression, T: int) -> int:
    """``Σ T^order`` over the different comparisons.

    >>> number_of_comparisons(parse("min[s,t](f(s,t)) + max[t](g(t))"), 10)
    110
    """
    different = {shape(c): c for c in comparisons(target) if c.kind != "sum"}
    return sum(T ** order(c) for c in different.values())


def shape(c: Comparison) -> str:
    """The comparison with its indices renamed in order, so that names of indices do not matter.

    >>> shape(parse("max[q](f(q))"))
    'max[i0](f(i0))'
    """
    names: dict[str, str] = {}
    text = str(c)
    for index in re.findall(r"\[([^\]]*)\]", text):
        for name in index.split(","):
            names.setdefault(name, f"i{len(names)}")
    return re.sub(r"\b\w+\b", lambda m: names.get(m.group(), m.group()), text)


def tree(target: Expression, indent: str = "") -> str:
    """The comparison tree as indented lines.

    >>> print(tree(parse("max[s](min[t](f(s,t))) + g(1)")))
    +
      max over s
        min over t
          f(s, t)
      g(1)
    """
    if isinstance(target, TokenFunction):
        return f"{indent}{target}"
    if isinstance(target, Comparison):
        return f"{indent}{target.kind} over {', '.join(target.indices)}\n{tree(target.body, indent + '  ')}"
    return "\n".join([f"{indent}{target.name}", *(tree(part, indent + "  ") for part in target.parts)])
