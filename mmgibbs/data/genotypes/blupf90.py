"""Genotypes as BLUPF90 has them: a line an animal, its id and a string with one digit a SNP: 0, 1, 2, 5 = missing.

Lines are read in place, so that a file of 50,000 animals and 50,000 SNPs needs no more than its 0.6 GB in 2 bits.
(nce.ads.uga.edu/wiki/doku.php?id=readme.pregsf90)
"""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import polars as pl
from numba import njit

from mmgibbs.config.genotypes import Genotypes
from mmgibbs.data.genotypes.file import GenotypeFile, snp_table
from mmgibbs.data.phenotypes import SHOWN
from mmgibbs.errors import DataError
from mmgibbs.genotypes.store import PackedGenotypes, PackedSource, chunks_of
from pedigree.tables import quoted

SNPS_AT_ONCE = 64  # of one chunk of animals: their words stay in the first cache while digits become bits
_BLANK, _LINE_END, _RETURN, _TAB, _ZERO, _FIVE = 32, 10, 13, 9, 48, 53


def read(genotypes: Genotypes) -> GenotypeFile:
    """Raises DataError for lines that are no id and string, strings of other lengths, and other digits: by line."""
    path = genotypes.file
    content = _content(path)
    bounds = _lines(content)  # id begins, id ends, string begins, string ends, line
    name = path.name
    if not len(bounds):
        raise DataError(f"{name}: is empty; needed an id and a string of 0, 1, 2 and 5 on each line")
    _refuse_lines(name, content, bounds)
    p, n = int(bounds[0, 3] - bounds[0, 2]), len(bounds)
    words = np.empty((p, chunks_of(n), PackedGenotypes.width), np.uint32)
    animal, snp = _pack_digits(content, np.ascontiguousarray(bounds[:, 2]), words)
    if animal >= 0:
        found = chr(content[bounds[animal, 2] + snp])
        raise DataError(
            f"{name} row {bounds[animal, 4]}: found {quoted(found)} for SNP {snp + 1} of animal "
            f"{quoted(_text(content, bounds[animal, 0], bounds[animal, 1]))}; needed 0, 1, 2, or 5 for missing"
        )
    ids = pl.Series("id", [_text(content, a, b) for a, b in bounds[:, :2]], pl.String)
    numbers = pl.Series("snp", np.arange(1, p + 1)).cast(pl.String)
    snps = snp_table(snp=pl.select("snp" + pl.lit(numbers)).to_series())
    return GenotypeFile(name, ids, bounds[:, 4], name, snps, PackedSource(PackedGenotypes(words, n)), named=False)


def _content(path: Path) -> np.ndarray:
    """(bytes,) uint8 of the file, mapped into memory; gzipped ones are unpacked."""
    with open(path, "rb") as file:
        zipped = file.read(2) == b"\x1f\x8b"
    if zipped:
        with gzip.open(path) as file:
            return np.frombuffer(file.read(), np.uint8)
    return np.memmap(path, np.uint8, "r") if path.stat().st_size else np.empty(0, np.uint8)


def _text(content: np.ndarray, begin: int, end: int) -> str:
    return bytes(content[begin:end]).decode(errors="replace")


def _refuse_lines(name: str, content: np.ndarray, bounds: np.ndarray) -> None:
    lengths = bounds[:, 3] - bounds[:, 2]
    for wrong, message in (
        (lengths <= 0, "found {text}; needed two fields, an id and a string of genotypes"),
        (lengths != lengths[0], "found {length:,} genotypes; needed {first:,}, as in row {row}"),
    ):
        lines = [
            f"{name} row {bounds[i, 4]}: "
            + message.format(
                text=quoted(_text(content, bounds[i, 0], bounds[i, 1])), length=int(lengths[i]), first=int(lengths[0]),
                row=int(bounds[0, 4]),
            )
            for i in np.flatnonzero(wrong)[:SHOWN]
        ]  # fmt: skip
        if lines:
            more = [f"... and {wrong.sum() - SHOWN:,} more rows"] if wrong.sum() > SHOWN else []
            raise DataError("\n".join([*lines, *more]))


def _lines(content: np.ndarray) -> np.ndarray:
    """(n, 5) int64 for each line that is not blank: where its id begins and ends, its string begins and ends (0, 0
    where it has not two fields), its number from 1."""
    ends = np.empty(int(np.count_nonzero(content == _LINE_END)) + 1, np.int64)
    out = np.zeros((ends.size, 5), np.int64)
    return out[: _split(content, out)]


@njit(cache=True, nogil=True, error_model="numpy")
def _split(content, out):
    found, begin, line = 0, 0, 0
    while begin < content.size:
        line += 1
        end = begin
        while end < content.size and content[end] != _LINE_END:
            end += 1
        fields, at = 0, begin
        while at < end:
            while at < end and content[at] <= _BLANK:
                at += 1
            if at == end:
                break
            start = at
            while at < end and content[at] > _BLANK:
                at += 1
            fields += 1
            if fields <= 2:
                out[found, 2 * fields - 2] = start
                out[found, 2 * fields - 1] = at
        if fields > 0:
            if fields != 2:
                out[found, 1] = at  # the whole line, for the message
                out[found, 2] = 0
                out[found, 3] = 0
            out[found, 4] = line
            found += 1
        begin = end + 1
    return found


@njit(cache=True, nogil=True, error_model="numpy")
def _pack_digits(content, start, words):
    """The digits from `start` of each animal as the words of PackedGenotypes; (animal, SNP) of the first that is
    none, or (-1, -1)."""
    n, p = start.size, words.shape[0]
    words[:] = 0xFFFFFFFF
    for chunk in range(words.shape[1]):
        last = min(n, (chunk + 1) * 128)
        for first in range(0, p, SNPS_AT_ONCE):
            for a in range(chunk * 128, last):
                within = a & 127
                shift, lane = np.uint32(2 * (within >> 3)), within & 7
                for j in range(first, min(p, first + SNPS_AT_ONCE)):
                    digit = content[start[a] + j]
                    if digit != _FIVE:
                        if digit < _ZERO or digit > _ZERO + 2:
                            return a, j
                        words[j, chunk, lane] ^= np.uint32(3 - (digit - _ZERO)) << shift
    return -1, -1
