"""What messages are made of: quoted values, counted nouns; and what is said beside an error: notes, and warnings."""

from __future__ import annotations

from collections.abc import Sequence

EXACT = 2.0**53  # below it float64 has every whole number


class ResultWarning(str):
    """A message on what changes a result, among the notes that reading makes.

    A *warning* says that results are not what the data and the model would lead a reader to expect: data that are not
    used as they are given, something that looks like a mistake, figures that the data do not determine or that are not
    as good as asked. Warnings stand in `warnings` of run.json, first on the page and in what `check` prints, and are
    printed with --quiet too. A *note* is all else: what was recognised, counted, chosen, or done because it was asked
    for.
    """


def split_messages(messages: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(warnings, notes), each in their order."""
    warnings = tuple(str(text) for text in messages if isinstance(text, ResultWarning))
    return warnings, tuple(text for text in messages if not isinstance(text, ResultWarning))


def quoted(text: object, most: int = 60) -> str:
    """Quote a value for a message: cut where it is long, invisible characters spelt out."""
    text = str(text)
    shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text[:most])
    return f"'{shown}...'" if len(text) > most else f"'{shown}'"


def format_number(value: float) -> str:
    """Write a number of a table for a message: a whole one with all its digits, another with up to ten figures."""
    return f"{value:.0f}" if abs(value) < EXACT and value % 1 == 0 else f"{value:.10g}"


def counted(n: int, noun: str, verb: str = "") -> str:
    """'1 row', '2 rows'; with a verb of one, 'is': '1 row is', '2 rows are'."""
    return f"{n:,} {noun}" + ("" if n == 1 else "s") + (f" {agreeing(n, verb)}" if verb else "")


def agreeing(n: int, verb: str) -> str:
    """Conjugate a verb for one or for n: 'is', 'has', 'counts' or 'are', 'have', 'count'."""
    return verb if n == 1 else {"is": "are", "has": "have", "was": "were"}.get(verb, verb.removesuffix("s"))
