"""One pass over the bytes of a text table: its rows, its fields, and what a parser would read in a way of its own."""

from __future__ import annotations

import numba

# What `scan` finds that a parser would read in a way of its own.
_NEVER_CLOSED, _INSIDE, _AFTER, _CARRIAGE_RETURN = 1, 2, 3, 4
WRONG = {
    _NEVER_CLOSED: "a quotation mark is opened here and never closed",
    _INSIDE: "found a quotation mark inside a field; needed the whole field in quotation marks and each one inside it "
    "doubled, or none",
    _AFTER: "found text behind a closing quotation mark; needed the whole field in quotation marks and each one inside "
    "it doubled, or none",
    _CARRIAGE_RETURN: "found a carriage return inside the row; needed the same line end throughout the file",
}


@numba.njit(cache=True, nogil=True, error_model="numpy")
def scan(data, separator, blanks, out, lines):
    """Count the records, blank lines and fields of a text table; look for what a parser would pass over.

    out: of the data's size for a copy without blank lines and, for `blanks`, with one tab between fields; size 0 for
    none. lines: (n_records,) for the line of each record; size 0 for none.
    Returns n_records, n_blank, fields of the first record, line and fields of the first record that differs (0, 0:
    none), line of the first record, whether a field may have outer blanks or is "", whether a line breaks within
    quotes, the first thing of `WRONG` and its line (0, 0: none), bytes written.
    """
    size = data.size
    write, record_lines = out.size > 0, lines.size > 0
    n_records, n_blank, needed, first_line, bad_line, bad_fields = 0, 0, 0, 0, 0, 0
    padded, multiline = False, False
    wrong, wrong_line = 0, 0
    line, i, o = 1, 0, 0
    while i < size:
        record_line = line
        j = i
        while j < size and (data[j] == 32 or data[j] == 13 or (data[j] == 9 and separator != 9)):
            j += 1
        if j == size or data[j] == 10:
            n_blank += 1
            line += 1
            i = j + 1
            continue
        if blanks:
            i = j
        fields = 0
        while True:  # a field begins at i
            fields += 1
            start, closed = i, -1
            if i < size and data[i] == 34:
                i += 1
                while i < size and not (data[i] == 34 and (i + 1 == size or data[i + 1] != 34)):
                    if data[i] == 34:
                        i += 1  # a doubled quotation mark
                    elif data[i] == 10:
                        line += 1
                        multiline = True
                    i += 1
                if i >= size:
                    if wrong == 0:
                        wrong, wrong_line = _NEVER_CLOSED, record_line
                    break
                if i == start + 1:
                    padded = True  # "" is read as text; empty values are null here
                for byte in (data[start + 1], data[i - 1]):
                    if byte <= 32 or byte >= 128:
                        padded = True
                i += 1
                closed = i
            while (
                i < size
                and data[i] != 10
                and not (data[i] == separator or (blanks and (data[i] == 9 or data[i] == 13)))
            ):
                if data[i] == 34 and closed < 0 and wrong == 0:
                    wrong, wrong_line = _INSIDE, line
                elif data[i] == 13:
                    end = i + 1
                    while end < size and data[end] == 13:
                        end += 1
                    padded |= end > i + 1
                    if end < size and data[end] != 10 and wrong == 0:
                        wrong, wrong_line = _CARRIAGE_RETURN, line
                elif closed >= 0 and wrong == 0:
                    wrong, wrong_line = _AFTER, record_line
                i += 1
            if not blanks and i > start:
                last = i - 1
                if last > start and data[last] == 13:
                    last -= 1
                for at in (start, last):
                    if data[at] <= 32 or data[at] >= 128:
                        padded = True
            if write:
                for at in range(start, i):
                    out[o] = data[at]
                    o += 1
            if blanks:
                while i < size and (data[i] == 32 or data[i] == 9 or data[i] == 13):
                    i += 1
            if i >= size or data[i] == 10:
                break
            if write:
                out[o] = 9 if blanks else separator
                o += 1
            if not blanks:
                i += 1
        i += 1
        line += 1
        if write:
            out[o] = 10
            o += 1
        if record_lines:
            lines[n_records] = record_line
        if n_records == 0:
            needed, first_line = fields, record_line
        elif fields != needed and bad_line == 0:
            bad_line, bad_fields = record_line, fields
        n_records += 1
    return n_records, n_blank, needed, bad_line, bad_fields, first_line, padded, multiline, wrong, wrong_line, o
