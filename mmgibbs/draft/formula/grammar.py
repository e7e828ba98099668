"""The grammar of formulas: text -> its response, its fixed terms and its random terms.

formulaic reads the text (tokens, precedence, a syntax tree); the operators and what they mean are here:

    a + b, a - b    union, difference             a:b            interaction
    a*b             a + b + a:b                   a/b            a + a:b (b %in% a: a:b)
    (a + b)**2      all up to two factors (^ too)  0, -1, 1      without, with an intercept
    (x | g)         coefficients for each level of g, correlated; (x || g) uncorrelated

The operators of formulas for the parser of formulaic, which knows neither bars within parentheses nor '||'.
"""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NoReturn

from formulaic.parser import DefaultFormulaParser
from formulaic.parser.types import Operator, OperatorResolver, Token

from mmgibbs.draft.formula.advice import advise_bar
from mmgibbs.draft.formula.columns import HiddenNames, write_name
from mmgibbs.errors import ConfigError

if TYPE_CHECKING:
    from formulaic.parser.types import ASTNode, Token


_SYMBOL = re.compile(r"\|\||\*\*|in\b|.")  # of a run of operators; formulaic writes %in% as in
_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_BACKTICKS = "a column with blanks or signs in its name stands in backticks, `birth weight`"
_ADVICE = {  # behind a message of formulaic that has one of these
    "'|' is out of place": "expected a random term in parentheses with one bar, such as (1 | animal)",
    "'||' is out of place": "expected a random term in parentheses with one bar, such as (age || animal)",
    "'.'": "expected the names of the columns: a dot for all others cannot be read",
    "'$'": "expected the name of the column alone",
    "Unknown operator": f"expected columns with + - * / : and ^ between them; {_BACKTICKS}",
    "Missing operator": f"expected + or another operator between two columns; {_BACKTICKS}",
}
MAX_POWER = 6  # of a sum, (a + b)**power
MAX_CHARACTERS = 10_000  # of a formula


@dataclass(frozen=True)
class Factor:
    """A column, or a call such as poly(age, 2) with its arguments: columns (Factor), numbers, texts."""

    name: str
    text: str
    arguments: tuple[Any, ...] = ()
    keywords: tuple[tuple[str, Any], ...] = ()
    is_call: bool = False


Term = tuple[Factor, ...]  # of an interaction several


@dataclass
class Sum:
    """Terms of one side, or of what stands before a bar. has_intercept: None where the formula does not say."""

    terms: dict[frozenset[str], Term] = field(default_factory=dict)
    has_intercept: bool | None = None
    groups: list[Group] = field(default_factory=list)

    def __iter__(self) -> Iterator[Term]:
        return iter(self.terms.values())


@dataclass(frozen=True)
class Group:
    """Random coefficients: those of the terms of `coefficients`, for each level of `level`."""

    coefficients: Sum
    level: Term
    is_correlated: bool
    text: str

    @property
    def has_intercept(self) -> bool:
        return self.coefficients.has_intercept is not False


@dataclass(frozen=True)
class ParsedFormula:
    """A formula: its responses in their order, and its right-hand side."""

    text: str
    responses: tuple[Factor, ...]
    right: Sum


def parse_formula(text: str) -> ParsedFormula:
    """Parse a formula. ConfigError: no text, a mistake in it, or formulaic is not installed."""
    if not isinstance(text, str) or not text.strip():
        raise ConfigError(f"formula: expected a text such as 'weight ~ sex + (1 | animal)', got {text!r:.60}")
    if len(text) > MAX_CHARACTERS:
        raise ConfigError(f"formula: expected at most {MAX_CHARACTERS:,} characters, got {len(text):,}")
    if text.count("~") == 0:
        refuse(text, "there is no '~'; expected RESPONSE ~ EFFECTS, such as weight ~ sex + (1 | animal)")
    advice = advise_bar(text.partition("~")[0])
    if advice is not None:
        refuse(text, advice)
    names = HiddenNames(text)
    tree = _read_tree(text, names)
    reader = _Reader(text, names)
    symbol, arguments = reader.split_node(tree)
    if symbol != "~" or len(arguments) != 2:
        refuse(text, "there is no response before '~'; expected RESPONSE ~ EFFECTS")
    return ParsedFormula(text, reader.read_responses(arguments[0]), reader.read_sum(arguments[1]))


def refuse(formula: str, message: str) -> NoReturn:
    """Raise the error of a formula."""
    raise problem(formula, message)


def problem(formula: str, message: str) -> ConfigError:
    """The error of a formula."""
    return ConfigError(f"formula '{' '.join(formula.split())}': {message}")


def _read_tree(text: str, names: HiddenNames) -> Token | ASTNode:
    """The syntax tree of formulaic, with its errors as ours."""
    if find_spec("formulaic") is None:
        raise ConfigError('formula: formulaic is not installed; install it with: pip install "mmgibbs[formula]"')
    from formulaic.errors import FormulaicError

    try:
        tree = make_parser().get_ast(names.text, context={})
    except FormulaicError as error:
        said, _, place = _ANSI.sub("", str(error)).partition("\n\n")
        at = re.search("⧛(.*?)⧚", place, re.DOTALL)
        reworded = names.describe(_reword(said).rstrip("."))
        advice = next((f"; {advice}" for part, advice in _ADVICE.items() if part in reworded), "")
        refuse(text, reworded + (f", at '{names.describe(at[1])}'" if at else "") + advice)
    except (SyntaxError, ValueError, RecursionError):
        refuse(text, f"a call in it, such as factor(...), cannot be read; expected columns and numbers; {_BACKTICKS}")
    if tree is None:
        refuse(text, "it is empty")
    return tree


def _reword(said: str) -> str:
    """A message of formulaic without its words for programmers."""
    words = {
        "`": "'",
        "has insuffient arguments and/or is misplaced": "lacks a term on one side",
        "Could not find matching context marker": "a parenthesis has no partner",
        "Formula ended before quote context was closed. Expected: ": "it ends before this is closed by ",
        "is incorrectly used": "is out of place",
    }
    for old, new in words.items():
        said = said.replace(old, new)
    return said


class _Reader:
    """Evaluates the syntax tree of one formula."""

    def __init__(self, text: str, names: HiddenNames) -> None:
        self.text, self.names = text, names

    def split_node(self, node: Token | ASTNode) -> tuple[str, list[Any]]:
        """(symbol, arguments) of an operator; ('', []) of a token."""
        operator = getattr(node, "operator", None)
        return ("", []) if operator is None else (operator.symbol, list(node.args))

    def read_responses(self, node: Token | ASTNode) -> tuple[Factor, ...]:
        """y, cbind(y1, y2), or y1 + y2."""
        symbol, arguments = self.split_node(node)
        if symbol == "+" and len(arguments) == 2:
            return tuple(factor for part in arguments for factor in self.read_responses(part))
        if symbol:
            refuse(
                self.text, f"'{symbol}' before '~' cannot be read; expected a column, or cbind(a, b) for several traits"
            )
        factor = self.read_factor(node)
        if factor is None:
            refuse(self.text, "the response is a number; expected a column")
        if factor.is_call and factor.name in ("cbind", "mvbind", "c"):
            if not factor.arguments or not all(isinstance(part, Factor) for part in factor.arguments):
                refuse(self.text, f"{factor.text}: expected columns")
            return factor.arguments
        return (factor,)

    def read_sum(self, node: Token | ASTNode) -> Sum:
        """Read an expression of the right-hand side."""
        symbol, arguments = self.split_node(node)
        if not symbol:
            return self.read_token(node)
        if symbol == "~":
            refuse(self.text, "there are several '~'; expected one, between the response and the effects")
        if symbol in ("|", "||"):
            return Sum(groups=self.read_groups(symbol, arguments))
        if symbol in ("+", "-"):
            return self.add_or_remove(symbol, arguments)
        if symbol in ("**", "^"):
            return self.raise_to_power(arguments)
        left, right = (self.read_sum(argument) for argument in arguments)
        for side in (left, right):
            if side.groups:
                refuse(self.text, f"a term with a bar cannot be combined by '{symbol}'; expected + before and after it")
            if side.has_intercept is not None:
                refuse(self.text, f"0 and 1 cannot be combined by '{symbol}'")
        if symbol == ":":
            return self.cross(left, right)
        if symbol == "*":
            return self.join(left, right, self.cross(left, right))
        if symbol == "in":
            return self.cross(right, left)
        whole = tuple(dict.fromkeys(factor for term in left for factor in term))
        return self.join(left, self.cross(self.as_sum(whole), right))

    def read_token(self, node: Any) -> Sum:
        """A column, a call, 0 or 1."""
        if node.token == "1":
            return Sum(has_intercept=True)
        factor = self.read_factor(node)
        if factor is None:
            refuse(self.text, f"{node.token} is no effect; expected columns, 0 or 1")
        return self.as_sum((factor,))

    def read_factor(self, node: Any) -> Factor | None:
        """The column or the call of a token; None of a number or a text."""
        kind = node.kind.value
        if kind == "name":
            return self.as_column(node.token)
        if kind != "python":
            return None
        text = self.names.describe(node.token)
        try:
            tree = ast.parse(node.token, mode="eval").body
        except SyntaxError:
            refuse(self.text, f"{text} cannot be read")
        return self.as_factor(tree, text)

    def as_column(self, token: str) -> Factor:
        return Factor(self.names.restore(token), self.names.describe(token))

    def as_factor(self, tree: ast.expr, text: str) -> Factor:
        """A call, a column, or y[level], as a Factor."""
        if isinstance(tree, ast.Name):
            return self.as_column(tree.id)
        if isinstance(tree, ast.Subscript):
            column = self.as_factor(tree.value, text)
            return Factor("[", text, (column, self.as_value(tree.slice)), is_call=True)
        if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name):
            arguments = tuple(self.as_value(part) for part in tree.args)
            keywords = tuple((part.arg or "", self.as_value(part.value)) for part in tree.keywords)
            return Factor(self.names.restore(tree.func.id), text, arguments, keywords, is_call=True)
        if isinstance(tree, ast.BinOp) and isinstance(tree.op, (ast.Pow, ast.BitXor)):
            parts = (self.as_value(tree.left), self.as_value(tree.right))
            return Factor("**", text, parts, is_call=True)
        return Factor("expression", text, is_call=True)

    def as_value(self, tree: ast.expr) -> Any:
        """An argument of a call: a number, a text, a list of these, or a Factor."""
        try:
            return ast.literal_eval(tree)
        except ValueError:
            return self.as_factor(tree, self.names.describe(ast.unparse(tree)))

    def as_sum(self, term: Term) -> Sum:
        return Sum({frozenset(factor.text for factor in term): term})

    def join(self, *sums: Sum) -> Sum:
        """The terms of all, each once."""
        terms: dict[frozenset[str], Term] = {}
        for part in sums:
            for key, term in part.terms.items():
                terms.setdefault(key, term)
        return Sum(terms)

    def cross(self, left: Sum, right: Sum) -> Sum:
        """Combine every term of the left with every term of the right to an interaction."""
        products = (tuple(dict.fromkeys((*a, *b))) for a in left for b in right)
        return self.join(*(self.as_sum(term) for term in products))

    def raise_to_power(self, arguments: list[Any]) -> Sum:
        base, power = self.read_sum(arguments[0]), arguments[1]
        number = getattr(power, "token", "")
        if not number.isdecimal() or not 1 <= int(number) <= MAX_POWER or base.groups or base.has_intercept is not None:
            refuse(self.text, f"expected a sum of columns to a power of 1 to {MAX_POWER}; write I(age**2) for a square")
        result = base
        for _ in range(int(number) - 1):
            result = self.join(result, self.cross(result, base))
        ordered = sorted(result.terms.items(), key=lambda item: len(item[0]))
        return Sum(dict(ordered))

    def add_or_remove(self, symbol: str, arguments: list[Any]) -> Sum:
        left = self.read_sum(arguments[0]) if len(arguments) == 2 else Sum()
        right = self.read_sum(arguments[-1])
        if symbol == "+":
            both = self.join(left, right)
            both.has_intercept = left.has_intercept if right.has_intercept is None else right.has_intercept
            both.groups = left.groups + right.groups
            return both
        if right.groups:
            refuse(self.text, "a term with a bar cannot be removed by '-'; leave it out")
        absent = [key for key in right.terms if key not in left.terms]
        if absent:
            refuse(self.text, f"'-' removes {':'.join(sorted(absent[0]))}, which stands nowhere before it")
        has_intercept = left.has_intercept
        if right.has_intercept is not None:
            has_intercept = not right.has_intercept
        return Sum(
            {key: term for key, term in left.terms.items() if key not in right.terms}, has_intercept, left.groups
        )

    def read_groups(self, symbol: str, arguments: list[Any]) -> list[Group]:
        """(x | g), or (x | a/b), which is one term for a and one for a:b."""
        coefficients, levels = (self.read_sum(argument) for argument in arguments)
        if coefficients.groups or levels.groups or levels.has_intercept is not None or not levels.terms:
            refuse(self.text, f"expected (COEFFICIENTS {symbol} LEVEL), such as (1 | animal)")
        if self.split_node(arguments[1])[0] == "+":
            refuse(self.text, f"expected one column after '{symbol}'; write a term in parentheses for each")
        if coefficients.has_intercept is False and not coefficients.terms:
            refuse(self.text, f"(0 {symbol} ...) has no coefficient; expected (1 {symbol} LEVEL)")
        return [
            Group(coefficients, level, symbol == "|", describe_group(coefficients, level, symbol)) for level in levels
        ]


def describe_group(coefficients: Sum, level: Term, symbol: str) -> str:
    """A random term as a formula has it."""
    parts = [] if coefficients.has_intercept is None else [str(int(coefficients.has_intercept))]
    parts += [describe_term(term) for term in coefficients]
    return f"({' + '.join(parts) or '1'} {symbol} {describe_term(level)})"


def write_level(column: str, level: str) -> str:
    """ill[yes]: the trait that a record has this value in the column."""
    mark = '"' if "'" in level else "'"
    is_name = level.isidentifier() and not keyword.iskeyword(level)
    return f"{write_name(column)}[{level if is_name else f'{mark}{level}{mark}'}]"


def describe_term(term: Term) -> str:
    return ":".join(factor.text for factor in term)


def split_symbols(text: str) -> Iterable[str]:
    """The operators of a run such as '+-' or '~-'."""
    return _SYMBOL.findall(text)


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
