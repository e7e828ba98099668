"""What is wrong with tables, collected while they are read, so that one message says all of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

MAX_ROWS_LISTED = 40  # of one problem


class Problems:
    """Problems of the tables of one task, in the order in which they were found: the worst of a table first.

    Readers add what is wrong and go on without it, as far as they can. Who has asked for the tables then raises one
    error with all of them.
    """

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.questions: list[str] = []  # what may be wrong beside these

    def __bool__(self) -> bool:
        return bool(self.texts)

    def add(self, text: str) -> None:
        """Add a problem, unless it is there."""
        if text not in self.texts:
            self.texts.append(text)

    def ask(self, question: str) -> None:
        """Add what may be wrong, which is said where something else is."""
        if question not in self.questions:
            self.questions.append(question)

    def sort_by_file(self) -> None:
        """Put the problems of a file together, files and the problems of each in the order in which they were found."""
        files = [_read_file_name(text) for text in self.texts]
        place = {file: files.index(file) for file in files}
        self.texts = [text for _, text in sorted(zip(files, self.texts, strict=True), key=lambda pair: place[pair[0]])]

    @contextmanager
    def collect(self, *kinds: type[Exception]) -> Iterator[None]:
        """Add an error of these kinds in place of raising it."""
        try:
            yield
        except kinds as error:
            self.add(str(error))

    def describe(self) -> str:
        """Write all of them: a single one as it is, several as a numbered list; then what may be wrong beside them."""
        if len(self.texts) == 1 and not self.questions:
            return self.texts[0]
        things = "1 thing" if len(self.texts) == 1 else f"{len(self.texts)} things"
        lines = [f"found {things} that must be changed:", *_number_lines(self.texts, 1)]
        if self.questions:
            lines += ["look at this too:", *_number_lines(self.questions, len(self.texts) + 1)]
        return "\n".join(lines)

    def refuse(self, kind: type[Exception]) -> None:
        """Raise an error of this kind with all of them, if there are any."""
        if self.texts:
            raise kind(self.describe())


def _read_file_name(text: str) -> str:
    """'records.csv' of 'records.csv row 3: ...' and of 'records.csv: ...'."""
    return re.split(r" row \d|:", text, maxsplit=1)[0]


def _number_lines(texts: Sequence[str], first: int) -> list[str]:
    return [f"{i}. {text}".replace("\n", "\n   ") for i, text in enumerate(texts, first)]


def list_rows(name: str, rows: Sequence[int], found: Sequence[str], needed: str, hint: str | None = None) -> str:
    """Write rows that cannot be used: 'NAME row 812: FOUND; needed NEEDED', a line for each further row, and a hint.

    rows: lines of all of them. found: what is wrong in each of the first ones.
    """
    listed = list(zip(rows, found, strict=False))[:MAX_ROWS_LISTED]
    row, first = listed[0]
    lines = [f"{name} row {row}: {first}; needed {needed}"]
    lines += [f"  row {row}: {what}" for row, what in listed[1:]]
    if len(rows) > len(listed):
        lines.append(f"  ... and {len(rows) - len(listed):,} more rows, the last of them row {rows[-1]}")
    return "\n".join([*lines, *([] if hint is None else [hint])])
