"""One pass over the bytes of a text table: its rows, its fields, and what a parser would read in a way of its own."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mmgibbs.pedigree.kernels import kernel

# What `scan` finds that a parser would read in a way of its own.
# int64 and no numbers as they stand in the source: for each of those Numba compiles a function anew.
_NEVER_CLOSED, _INSIDE, _AFTER, _CARRIAGE_RETURN = (np.int64(i) for i in range(1, 5))
WRONG = {
    int(_NEVER_CLOSED): "a quotation mark is opened here and never closed",
    int(
        _INSIDE
    ): "found a quotation mark inside a field; needed the whole field in quotation marks and each one inside it "
    "doubled, or none",
    int(
        _AFTER
    ): "found text behind a closing quotation mark; needed the whole field in quotation marks and each one inside "
    "it doubled, or none",
    int(_CARRIAGE_RETURN): "found a carriage return inside the row; needed the same line end throughout the file",
}
_TAB, _NEWLINE, _RETURN, _BLANK, _QUOTE = 9, 10, 13, 32, 34  # bytes; a value's other bytes are mostly above these
_PADDED, _MULTILINE, _WHAT, _WHERE = 0, 1, 2, 3  # places in `notes`: two flags, the first thing of WRONG and its line


class Scan(NamedTuple):
    """Contents of the bytes of a table. Lines count from 1."""

    n_records: int
    n_blank: int  # blank lines
    n_fields: int  # of the first record
    first_line: int  # on which the first record begins
    uneven_line: int  # of the first record with another number of fields; 0: none
    uneven_fields: int  # of that record
    padded: bool  # a field may have outer blanks or is ""
    multiline: bool  # a line breaks within quotes
    wrong: int  # the first thing of WRONG; 0: none
    wrong_line: int
    n_written: int  # bytes


def scan(data: np.ndarray, separator: int, blanks: bool, out: np.ndarray, lines: np.ndarray) -> Scan:
    """Count the records, blank lines and fields of a text table; look for what a parser would pass over.

    data: (n,) uint8. separator: a byte. blanks: any run of blanks and tabs separates fields.
    out: (n + 1,) uint8 for a copy without blank lines and, for `blanks`, with one tab between fields; size 0 for none.
    lines: (n_records,) int64 for the line of each record; size 0 for none.
    """
    notes = np.zeros(4, np.int64)
    counts = _records(data, separator, blanks, out, lines, notes)
    n_records, n_blank, n_fields, first_line, uneven_line, uneven_fields, n_written = (int(n) for n in counts)
    padded, multiline, wrong, wrong_line = notes.tolist()
    return Scan(
        n_records, n_blank, n_fields, first_line, uneven_line, uneven_fields,
        bool(padded), bool(multiline), wrong, wrong_line, n_written,
    )  # fmt: skip


@kernel
def _records(data, separator, blanks, out, lines, notes):
    n_records, n_blank, n_fields, first_line, uneven_line, uneven_fields = 0, 0, 0, 0, 0, 0
    line, at, written = np.int64(1), np.int64(0), np.int64(0)  # see the constants above
    while at < data.size:
        text = _past_blanks(data, at, separator)
        if text == data.size or data[text] == _NEWLINE:
            n_blank += 1
            line += 1
            at = text + 1
            continue
        begins = line
        at, line, fields, written = _record(data, text if blanks else at, line, separator, blanks, out, written, notes)
        if lines.size > 0:
            lines[n_records] = begins
        if n_records == 0:
            n_fields, first_line = fields, begins
        elif fields != n_fields and uneven_line == 0:
            uneven_line, uneven_fields = begins, fields
        n_records += 1
    return n_records, n_blank, n_fields, first_line, uneven_line, uneven_fields, written


@kernel(forceinline=True)
def _record(data, at, line, separator, blanks, out, written, notes):
    """Read the record that begins at `at`. Returns where the next line begins, its number, fields, bytes written."""
    begins, fields, write = line, 0, out.size > 0
    while True:
        fields += 1
        start = at
        at, line = _field(data, start, line, begins, separator, blanks, notes)
        if at > data.size:  # its quotation mark is never closed
            break
        if write:
            written = _copy(data, start, at, out, written)
        if blanks:
            at = _past_blanks(data, at, separator)
        if at >= data.size or data[at] == _NEWLINE:
            break
        if write:
            out[written] = _TAB if blanks else separator
            written += 1
        if not blanks:
            at += 1
    if write:
        out[written] = _NEWLINE
        written += 1
    return at + 1, line + 1, fields, written


@kernel(forceinline=True)
def _field(data, start, line, record_line, separator, blanks, notes):
    """The end of the field that begins at `start`, beyond the data if its quotation mark is never closed; its line."""
    at = start
    quoted = start < data.size and data[start] == _QUOTE
    if quoted:
        at, line = _past_quotes(data, start, line, notes)
        if at > data.size:
            _note_wrong(notes, _NEVER_CLOSED, record_line)
            return at, line
    else:
        while at < data.size and data[at] > _QUOTE and data[at] != separator:  # most bytes; the rest is looked at
            at += 1
    while at < data.size and not _ends_field(data[at], separator, blanks):
        if quoted or data[at] <= _QUOTE:
            _check_byte(data, at, quoted, line, record_line, notes)
        at += 1
    if not blanks and at > start:
        last = at - 2 if at - 1 > start and data[at - 1] == _RETURN else at - 1
        if _may_be_blank(data[start]) or _may_be_blank(data[last]):
            notes[_PADDED] = 1
    return at, line


@kernel(forceinline=True)
def _past_quotes(data, start, line, notes):
    """The place behind the quotation mark that closes the one at `start`, beyond the data if none does; its line."""
    at, first_line = start + 1, line
    while at < data.size:
        if data[at] == _QUOTE:
            if at + 1 == data.size or data[at + 1] != _QUOTE:
                break
            at += 1  # a doubled quotation mark
        elif data[at] == _NEWLINE:
            line += 1
        at += 1
    if line > first_line:
        notes[_MULTILINE] = 1
    # "" is read as text; empty values are null here
    if at < data.size and (at == start + 1 or _may_be_blank(data[start + 1]) or _may_be_blank(data[at - 1])):
        notes[_PADDED] = 1
    return at + 1, line


@kernel
def _check_byte(data, at, quoted, line, record_line, notes):
    """Note a quotation mark within a field, text behind a closing one, carriage returns that do not end the line."""
    if data[at] == _QUOTE and not quoted:
        _note_wrong(notes, _INSIDE, line)
    elif data[at] == _RETURN:
        end = at + 1
        while end < data.size and data[end] == _RETURN:
            end += 1
        if end > at + 1:
            notes[_PADDED] = 1
        if end < data.size and data[end] != _NEWLINE:
            _note_wrong(notes, _CARRIAGE_RETURN, line)
    elif quoted:
        _note_wrong(notes, _AFTER, record_line)


@kernel(forceinline=True)
def _note_wrong(notes, what, line):
    """Keep the first thing of WRONG and its line."""
    if notes[_WHAT] == 0:
        notes[_WHAT], notes[_WHERE] = what, line


@kernel(forceinline=True)
def _past_blanks(data, at, separator):
    """The first place from `at` on without a blank, a carriage return or a tab that separates nothing."""
    while at < data.size and (data[at] == _BLANK or data[at] == _RETURN or (data[at] == _TAB and separator != _TAB)):
        at += 1
    return at


@kernel(forceinline=True)
def _ends_field(byte, separator, blanks):
    return byte in (separator, _NEWLINE) or (blanks and byte in (_TAB, _RETURN))


@kernel(forceinline=True)
def _may_be_blank(byte):
    """Blanks and control characters; beyond ASCII the byte may belong to a blank, so that the value is looked at."""
    return byte <= _BLANK or byte >= 128


@kernel(forceinline=True)
def _copy(data, start, end, out, written):
    for at in range(start, end):
        out[written] = data[at]
        written += 1
    return written
