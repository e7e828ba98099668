"""Functions of parameters that an analysis names: `functions: {gain: h2[milk] * sqrt(cow.var[milk])}`.

Arithmetic of numbers and names of parameters: + - * / ** with parentheses, sqrt, log, exp and abs. The text is parsed
and computed here; it is never run as Python.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import numpy as np

from mmgibbs.errors import ConfigError, nearest

OPERATORS: dict[type, Callable] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
CALLS: dict[str, Callable] = {"sqrt": np.sqrt, "log": np.log, "exp": np.exp, "abs": np.abs}
ALLOWED = f"numbers, names of parameters, + - * / **, parentheses, {', '.join(CALLS)}"
MOST_CHARACTERS = 2000


@dataclass(frozen=True)
class ParameterFunction:
    """A function of parameters, by its name in the summary and its text."""

    name: str
    text: str

    def compute(self, values: Mapping[str, np.ndarray]) -> tuple[np.ndarray, frozenset[str]]:
        """Compute the function of draws or estimates by name; return it with the names that it depends on.

        ConfigError for a name that is not among them, and for anything but arithmetic.
        """
        if self.name in values:
            raise ConfigError(f"functions.{self.name}: is the name of a parameter; expected another name")
        text, used = self._name_parameters(values)
        try:
            tree = ast.parse(text, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise self._refuse("cannot be read") from None
        with np.errstate(all="ignore"):  # a draw without a value is NaN
            value = self._evaluate(tree, {place: values[name] for place, name in used.items()})
        if not used:
            raise self._refuse("has no parameter in it")
        like = values[next(iter(used.values()))]
        return np.broadcast_to(np.asarray(value, float), like.shape), frozenset(used.values())

    def _name_parameters(self, known: Collection[str]) -> tuple[str, dict[str, str]]:
        """Put identifiers in place of the names of parameters, the longest first; return {identifier: name} too."""
        names, used, out, i = sorted(known, key=len, reverse=True), dict[str, str](), "", 0
        text = self.text.replace("\n", " ").strip()[:MOST_CHARACTERS]
        while i < len(text):
            name = next((name for name in names if text.startswith(name, i)), None)
            word = text[i].isidentifier() and (i == 0 or not _continues(text[i - 1]))
            if name is not None and (i == 0 or not _continues(text[i - 1])):
                place = next((place for place, of in used.items() if of == name), f"p{len(used)}")
                used[place] = name
                out, i = f"{out} {place} ", i + len(name)
            elif word:
                end = next((j for j in range(i, len(text)) if not _continues(text[j])), len(text))
                end = text.find("]", end) + 1 if text[end : end + 1] == "[" else end
                if text[i:end] not in CALLS:
                    known_names = nearest(text[i:end], known, "the parameters are")
                    raise ConfigError(f"functions.{self.name}: there is no parameter '{text[i:end]}'; {known_names}")
                out, i = out + text[i:end], end
            else:
                out, i = out + text[i], i + 1
        return out.strip(), used

    def _evaluate(self, node: ast.expr, values: Mapping[str, np.ndarray]) -> np.ndarray | float:
        match node:
            case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
                return float(number)
            case ast.Name(id=name) if name in values:
                return values[name]
            case ast.UnaryOp(op=op, operand=operand) if type(op) in OPERATORS:
                return OPERATORS[type(op)](self._evaluate(operand, values))
            case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
                a, b = np.asarray(self._evaluate(left, values)), np.asarray(self._evaluate(right, values))
                return OPERATORS[type(op)](a, b)
            case ast.Call(func=ast.Name(id=name), args=[argument], keywords=[]) if name in CALLS:
                return CALLS[name](self._evaluate(argument, values))
        raise self._refuse("is not arithmetic")

    def _refuse(self, why: str) -> ConfigError:
        return ConfigError(f"functions.{self.name}: '{self.text}' {why}; expected {ALLOWED}")


def _continues(character: str) -> bool:
    """Check whether a name may go on with this character."""
    return character.isalnum() or character in "_."


def add_functions(functions: Collection[ParameterFunction], draws: dict[str, np.ndarray], fixed: set[str]) -> None:
    """Add the functions of the draws to them, and to the fixed names where all that they depend on is fixed."""
    computed = [(of.name, *of.compute(draws)) for of in functions]
    for name, values, used in computed:
        draws[name] = values
        if used <= fixed:
            fixed.add(name)
