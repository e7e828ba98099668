"""Genotypes as BLUPF90 has them: a line an animal, its id and a string with one digit a SNP: 0, 1, 2, 5 = missing.

Lines are read in place, so that a file of 50,000 animals and 50,000 SNPs needs no more than its 0.6 GB in 2 bits.
(nce.ads.uga.edu/wiki/doku.php?id=readme.pregsf90)
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import numpy as np
import polars as pl

from mmgibbs.config.genotypes import Genotypes
from mmgibbs.data.genotypes.file_format import (
    BYTE_ORDER_MARK,
    GZIP,
    HEAD_BYTES,
    GenotypeFile,
    first_line,
    snp_table,
)
from mmgibbs.data.phenotypes import SHOWN
from mmgibbs.errors import DataError
from mmgibbs.genotypes.reading import LINE_END, pack_digits, split_lines
from mmgibbs.genotypes.store import PackedGenotypes, PackedSource, count_chunks
from mmgibbs.pedigree.contents import unzip
from mmgibbs.pedigree.errors import TableError
from mmgibbs.pedigree.tables import quoted

_CARRIAGE_RETURN = 13


def matches(head: bytes) -> bool:
    """Check whether the first line of a file that begins with these bytes is an id and a string of digits."""
    fields = first_line(head).split()
    return len(fields) == 2 and fields[1].isdigit()


def read(genotypes: Genotypes, traits: Collection[str] = ()) -> GenotypeFile:
    """Raises DataError for lines that are no id and string, strings of other lengths, and other digits: by line."""
    path = genotypes.file
    content = _content(path)
    if np.count_nonzero(content) < content.size:
        line = 1 + np.count_nonzero(content[: int(content.argmin())] == LINE_END)
        raise DataError(f"{path.name} row {line}: found a zero byte; needed text: is the file damaged?")
    bounds = _lines(content)  # id begins, id ends, string begins, string ends, line
    name = path.name
    if not len(bounds):
        raise DataError(f"{name}: is empty; needed an id and a string of 0, 1, 2 and 5 on each line")
    _refuse_lines(name, content, bounds)
    p, n = int(bounds[0, 3] - bounds[0, 2]), len(bounds)
    words = np.empty((p, count_chunks(n), PackedGenotypes.width), np.uint32)
    animal, snp = pack_digits(content, np.ascontiguousarray(bounds[:, 2]), words)
    if animal >= 0:
        character = chr(content[bounds[animal, 2] + snp])
        raise DataError(
            f"{name} row {bounds[animal, 4]}: found {quoted(character)} for SNP {snp + 1} of animal "
            f"{quoted(_text(content, bounds[animal, 0], bounds[animal, 1]))}; needed 0, 1, 2, or 5 for missing"
        )
    ids = pl.Series("id", [_id(content, begin, end, line, name) for begin, end, _, _, line in bounds], pl.String)
    numbers = pl.Series("snp", np.arange(1, p + 1)).cast(pl.String)
    snps = snp_table(snp=pl.select("snp" + pl.lit(numbers)).to_series())
    return GenotypeFile(name, ids, bounds[:, 4], name, snps, PackedSource(PackedGenotypes(words, n)), named=False)


def _content(path: Path) -> np.ndarray:
    """(bytes,) uint8 of the file, mapped into memory; gzipped ones are unpacked. Without a byte order mark."""
    with open(path, "rb") as file:
        head = file.read(len(BYTE_ORDER_MARK))
    if head.startswith(GZIP):
        try:
            content = np.frombuffer(unzip(path.read_bytes(), path.name), np.uint8)
        except TableError as error:
            raise DataError(str(error)) from None
    else:
        content = np.memmap(path, np.uint8, "r") if head else np.empty(0, np.uint8)
    head = content[:3].tobytes()
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise DataError(f"{path.name}: is UTF-16 text; needed UTF-8 or ASCII: save it so")
    if not (content[:HEAD_BYTES] == LINE_END).any() and (content[:HEAD_BYTES] == _CARRIAGE_RETURN).any():
        content = np.where(content == _CARRIAGE_RETURN, np.uint8(LINE_END), content)  # as old spreadsheets end lines
    return content[len(BYTE_ORDER_MARK) :] if head == BYTE_ORDER_MARK else content


def _id(content: np.ndarray, begin: int, end: int, line: int, name: str) -> str:
    """DataError for an id that is no text."""
    try:
        text = bytes(content[begin:end]).decode()
    except UnicodeDecodeError as error:
        raise DataError(
            f"{name} row {line}: found byte 0x{error.object[error.start]:02x} in an id, which is not UTF-8 text; save "
            "the file as UTF-8"
        ) from None
    return text


def _text(content: np.ndarray, begin: int, end: int) -> str:
    return bytes(content[begin:end]).decode(errors="replace")


def _refuse_lines(name: str, content: np.ndarray, bounds: np.ndarray) -> None:
    """DataError for lines that are no id and string, and for strings of another length than most have."""
    lengths = bounds[:, 3] - bounds[:, 2]
    values, first, counts = np.unique(lengths, return_index=True, return_counts=True)
    usual = np.lexsort((first, -counts))[0]  # of equals, the one that comes first
    for wrong, message in (
        (lengths <= 0, "found {text}; needed two fields, an id and a string of genotypes"),
        (lengths != values[usual], "found {length:,} genotypes; needed {usual:,}, as in row {row}"),
    ):
        lines = [
            f"{name} row {bounds[i, 4]}: "
            + message.format(
                text=quoted(_text(content, bounds[i, 0], bounds[i, 1])), length=int(lengths[i]),
                usual=int(values[usual]), row=int(bounds[first[usual], 4]),
            )
            for i in np.flatnonzero(wrong)[:SHOWN]
        ]  # fmt: skip
        if lines:
            more = [f"... and {wrong.sum() - SHOWN:,} more rows"] if wrong.sum() > SHOWN else []
            raise DataError("\n".join([*lines, *more]))


def _lines(content: np.ndarray) -> np.ndarray:
    """(n, 5) int64 for each line that is not blank: where its id begins and ends, its string begins and ends (0, 0
    where it has not two fields), its number from 1."""
    ends = np.empty(int(np.count_nonzero(content == LINE_END)) + 1, np.int64)
    out = np.zeros((ends.size, 5), np.int64)
    return out[: split_lines(content, out)]
