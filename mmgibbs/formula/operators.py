"""The operators of formulas for the parser of formulaic, which knows neither bars within parentheses nor '||'."""

from __future__ import annotations

from collections.abc import Generator, Iterable

from formulaic.parser import DefaultFormulaParser
from formulaic.parser.types import Operator, OperatorResolver, Token

from mmgibbs.formula.grammar import split_symbols

# symbol, arity, precedence, associativity, fixity
_TABLE = (
    ("~", 2, -100, None, "infix"),
    ("||", 2, -50, None, "infix"),
    ("|", 2, -50, None, "infix"),
    ("+", 2, 100, "left", "infix"),
    ("-", 2, 100, "left", "infix"),
    ("+", 1, 100, "right", "prefix"),
    ("-", 1, 100, "right", "prefix"),
    ("*", 2, 200, "left", "infix"),
    ("/", 2, 200, "left", "infix"),
    ("in", 2, 200, "left", "infix"),
    (":", 2, 300, "left", "infix"),
    ("**", 2, 500, "right", "infix"),
    ("^", 2, 500, "right", "infix"),
)
_BARS = ("|", "||")


def _is_within_parentheses(context: list[Token | Operator]) -> bool:
    """A bar stands in parentheses of its own; '~' never does."""
    return bool(context) and isinstance(context[-1], Token)


class Operators(OperatorResolver):
    """The operators of lme4 and bambi."""

    @property
    def operators(self) -> list[Operator]:
        """The operators."""
        return [
            Operator(
                symbol,
                arity=arity,
                precedence=precedence,
                associativity=associativity,
                fixity=fixity,
                accepts_context=_is_within_parentheses if symbol in _BARS else None,
            )
            for symbol, arity, precedence, associativity, fixity in _TABLE
        ]

    def resolve(self, token: Token) -> Generator[tuple[Token, Iterable[Operator]], None, None]:
        """Yield the candidates of each operator of a run such as '+-'."""
        for symbol in split_symbols(token.token):
            yield self._resolve(token, symbol)


def make_parser() -> DefaultFormulaParser:
    """The parser; an intercept is left to what the formula says."""
    return DefaultFormulaParser(operator_resolver=Operators(), include_intercept=False)
