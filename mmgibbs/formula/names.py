"""Names of columns in a formula: those that stand in backticks, and those that no identifier of Python can be."""

from __future__ import annotations

import keyword
import re
import unicodedata
from collections.abc import Iterable

from mmgibbs.errors import nearest

# Words that the grammar knows; a column of such a name stands in backticks.
_GRAMMAR_WORDS = frozenset({"in", "True", "False", "None"})
_NAME = r"\.*[^\W\d][\w.]*"  # letters, digits, dots and underscores, as R has them
_PIECES = re.compile(
    rf"""(?P<text>'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")|`(?P<backticks>[^`]+)`|(?<![\w.])(?P<plain>{_NAME})"""
)
_PLACEHOLDER = re.compile("_ʭ([0-9]+)_")  # of a name while formulaic and Python read the formula; no column has it


class HiddenNames:
    """A formula in which placeholders stand for the names that formulaic or Python cannot read.

    These are names in backticks, names with dots (Ring.no., x..y, in.herd), words of Python (class, lambda), and names
    that Python would change (µg).
    """

    def __init__(self, formula: str) -> None:
        self.names: list[str] = []
        self.text = _PIECES.sub(self._hide, formula)

    def _hide(self, piece: re.Match[str]) -> str:
        if piece["text"]:
            return piece[0]
        if piece["plain"] and (piece[0] in _GRAMMAR_WORDS or _is_identifier(piece[0])):
            return piece[0]
        self.names.append(piece["backticks"] or piece["plain"])
        return f"_ʭ{len(self.names) - 1}_"

    def restore(self, text: str) -> str:
        """The name of a column or of a function."""
        return _PLACEHOLDER.sub(lambda found: self.names[int(found[1])], text)

    def describe(self, text: str) -> str:
        """A part of the formula as the user writes it, with backticks where a name needs them."""
        return _PLACEHOLDER.sub(lambda found: write_name(self.names[int(found[1])]), text)


def _is_identifier(name: str) -> bool:
    is_unchanged = unicodedata.normalize("NFKC", name) == name
    return is_unchanged and name.isidentifier() and not keyword.iskeyword(name)


def write_name(column: str) -> str:
    """A column as a formula has it: in backticks if it has blanks or signs."""
    is_plain = re.fullmatch(_NAME, column) is not None and column not in _GRAMMAR_WORDS
    return column if is_plain or "`" in column else f"`{column}`"


def advise_column(formula: str, name: str, columns: Iterable[str]) -> str:
    """The end of a message about a name that no column has: which may be meant, and how to write it."""
    columns = list(columns)
    advice = advise_backticks(formula, [column for column in columns if name in column])
    if advice is not None:
        return advice
    as_r_reads = [column for column in columns if _as_r_names(column) == name]
    if len(as_r_reads) == 1:
        return f"R calls '{as_r_reads[0]}' so; expected {write_name(as_r_reads[0])}"
    said = nearest(name, columns, "the columns are")
    meant = next((column for column in columns if said == f"did you mean '{column}'?"), None)
    return said if meant is None or write_name(meant) == meant else f"{said} Expected {write_name(meant)}"


def advise_backticks(formula: str, columns: Iterable[str]) -> str | None:
    """What to write where the name of a column lacks the backticks that it needs; None if no name lacks them."""
    rest = _PIECES.sub(lambda piece: piece[0] if piece["plain"] else " ", formula)
    needy = (column for column in columns if write_name(column) != column and column not in _GRAMMAR_WORDS)
    for column in sorted(needy, key=len, reverse=True):
        if re.search(rf"(?<![\w.]){re.escape(column)}(?![\w.])", rest):
            return f"a column with blanks or signs in its name stands in backticks; expected {write_name(column)}"
    return None


def _as_r_names(column: str) -> str:
    """The name that read.csv of R gives a column."""
    name = re.sub(r"[^\w.]", ".", column)
    return name if re.match(r"\.*[^\W\d_]|\.$", name) else f"X{name}"
