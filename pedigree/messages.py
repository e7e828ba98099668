"""What is said beside an error: notes, and warnings."""

from __future__ import annotations

from collections.abc import Sequence


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
