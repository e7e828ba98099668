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


class UnknownParameterError(ConfigError):
    """A function of a parameter that is not among the values."""


@dataclass(frozen=True)
class ParameterFunction:
    """A function of parameters, by its name in the summary and its text."""

    name: str
    text: str

    def compute(self, values: Mapping[str, np.ndarray]) -> tuple[np.ndarray, frozenset[str]]:
        """Compute the function of draws or estimates by name; return it with the names that it depends on.

        A value that is not finite is NaN. UnknownParameterError for a name that is not among the values, ConfigError
        for anything but arithmetic.
        """
        if len(self.text) > MOST_CHARACTERS:
            raise ConfigError(
                f"functions.{self.name}: expected at most {MOST_CHARACTERS:,} characters, got {len(self.text):,}"
            )
        if self.name in values:
            raise ConfigError(f"functions.{self.name}: is the name of a parameter; expected another name")
        text, used = self._name_parameters(values)
        try:
            tree = ast.parse(text, mode="eval").body
            with np.errstate(all="ignore"):
                value = self._evaluate(tree, {place: values[name] for place, name in used.items()})
        except (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError) as error:
            if isinstance(error, ConfigError):
                raise
            raise self._refuse("cannot be read") from None
        if not used:
            raise self._refuse("has no parameter in it")
        out = np.broadcast_to(np.asarray(value, float), values[next(iter(used.values()))].shape)
        return np.where(np.isfinite(out), out, np.nan), frozenset(used.values())

    def _name_parameters(self, known: Collection[str]) -> tuple[str, dict[str, str]]:
        """Put identifiers in place of the names of parameters, the longest first; return {identifier: name} too."""
        names, used, out, i = sorted(known, key=len, reverse=True), dict[str, str](), "", 0
        text = self.text.replace("\n", " ").strip()
        if "#" in text:
            raise self._refuse("has a comment")
        while i < len(text):
            name = next((name for name in names if text.startswith(name, i)), None)
            word = text[i].isidentifier() and (i == 0 or not _continues(text[i - 1]))
            if name is not None and (i == 0 or not _continues(text[i - 1])):
                place = next((place for place, of in used.items() if of == name), f"p{len(used)}")
                used[place] = name
                out, i = f"{out} {place} ", i + len(name)
            elif word:
                end = next((j for j in range(i, len(text)) if not _continues(text[j])), len(text))
                end = text.find("]", end) + 1 or len(text) if text[end : end + 1] == "[" else end
                if text[i:end] not in CALLS:
                    known_names = nearest(text[i:end], known, "the parameters are")
                    what = f"functions.{self.name}: there is no parameter '{text[i:end]}'"
                    raise UnknownParameterError(f"{what}; {known_names}")
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


def add_functions(
    functions: Collection[ParameterFunction], draws: dict[str, np.ndarray], fixed: set[str]
) -> tuple[dict[str, frozenset[str]], list[str]]:
    """Add the functions of the draws to them, and to the fixed names where all that they depend on is fixed.

    Return what each depends on, and notes on draws without a value. Functions of parameters that are not among the
    draws are left out: a few matrices may be all that is asked for.
    """
    depends, notes = {}, []
    for of in functions:
        try:
            values, used = of.compute({name: d for name, d in draws.items() if name not in depends})
        except UnknownParameterError:
            continue
        draws[of.name], depends[of.name] = values, used
        fixed |= {of.name} if used <= fixed else set()
        lacking = int(np.isnan(values).sum())
        if lacking:
            notes.append(
                f"functions.{of.name}: {lacking:,} of {values.size:,} values are not finite, such as a root or "
                "logarithm of a number below 0, or a division by 0: the summary has no number of it"
            )
    return depends, notes
