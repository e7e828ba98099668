"""HapMap files, as TASSEL and GAPIT have them: a row for each SNP, a column for each animal, genotypes as letters.

The columns before the animals are rs#, alleles (A/G), chrom, pos, strand, assembly#, center, protLSID, assayLSID,
panelLSID and QCcode. A genotype is one letter (A = A/A, R = A/G, ... of IUPAC; N is missing) or two (AG; NN is
missing). The second of the `alleles` is counted.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from itertools import product
from typing import NamedTuple

import numpy as np
import polars as pl

from mmgibbs.config.genotypes import Genotypes
from mmgibbs.data.genotypes.file_format import GenotypeFile, first_line, snp_table
from mmgibbs.data.genotypes.map_file import parse_positions
from mmgibbs.data.phenotypes import SHOWN, refuse_rows
from mmgibbs.errors import DataError
from mmgibbs.genotypes.store import BLOCK, PackedGenotypes, PackedSource, count_chunks
from mmgibbs.pedigree.contents import UTF8
from mmgibbs.pedigree.errors import TableError
from mmgibbs.pedigree.spelling import are_unknown_codes
from mmgibbs.pedigree.tables import Table, counted, open_table, quoted

# Columns before the animals, in lower case without punctuation, as TASSEL and others call them.
_DESCRIPTIONS = frozenset(
    "rs alleles chrom pos strand assembly center protlsid assaylsid panellsid panel qccode qc".split()
)
_CELLS = 20_000_000  # genotypes that are parsed at a time
_BASES = "ACGT+-"  # + and - are the alleles of an insertion or deletion
_PAIR_OF_LETTER = {base: base + base for base in _BASES} | {
    "R": "AG", "Y": "CT", "S": "CG", "W": "AT", "K": "GT", "M": "AC", "0": "+-",
}  # fmt: skip
_UNKNOWN_LETTERS = "NX?."
MISSING, _NO_GENOTYPE = 3, 255
_CODE_UNKNOWN = len(_BASES) ** 2  # after the numbers of pairs of bases


def matches(head: bytes) -> bool:
    """Check whether a file that begins with these bytes is a HapMap file: rs#, alleles, chrom, pos."""
    return _is_header(first_line(head).decode(errors="replace"))


def _is_header(line: str) -> bool:
    """Check whether a line is the header of a HapMap file, however its fields are separated."""
    fields = line.replace(",", " ").replace(";", " ").replace('"', " ").lower().split()[:4]
    return len(fields) == 4 and fields[0] in ("rs#", "rs") and fields[1:] == ["alleles", "chrom", "pos"]


def read(genotypes: Genotypes, traits: Collection[str] = ()) -> GenotypeFile:
    """SNPs of more than two alleles are left out and counted; genotypes with one known letter of two are missing.

    Raises DataError for columns other than those of HapMap, and by row and animal for a genotype that is none, or has
    an allele that the SNP has not.
    """
    path = genotypes.file
    try:
        table = open_table(path, genotypes.separator, encoding=UTF8)
        n_descriptions = _count_descriptions(table)
        animals = list(table.names[n_descriptions:])
        if not animals:
            raise DataError(f"{path.name}: has no columns of animals after {quoted(table.names[-1])} (data.genotypes)")
        site_columns = table.read(list(table.names[:4]))
        pairs = _pairs(table, animals)
    except TableError as error:
        raise DataError(f"{error} (data.genotypes)") from None
    sites = site_columns.rename(dict(zip(site_columns.columns, ("snp", "alleles", "chrom", "pos"), strict=True)))
    alleles, is_used = _alleles(sites["alleles"], pairs)
    rows = np.flatnonzero(is_used)
    if not len(rows):
        raise DataError(f"{path.name}: found no SNP with two alleles; needed alleles such as A/G (data.genotypes)")
    packed = _pack(_Reading(table, sites, animals), pairs, alleles, rows)
    position = parse_positions(sites["pos"], table.lines(), path.name, "position")
    bases = pl.Series([*_BASES, None], dtype=pl.String)  # the last where there is none
    first, second = (bases.gather(alleles[:, i] % len(bases)) for i in (0, 1))
    snps = snp_table(snp=sites["snp"], chromosome=sites["chrom"], position=position, counted=second, other=first)
    n_several = len(is_used) - len(rows)
    notes = (f"{path.name}: {counted(n_several, 'SNP')} with other than two alleles left out",) if n_several else ()
    ids, columns = pl.Series("id", animals, pl.String), np.arange(n_descriptions + 1, len(table.names) + 1)
    return GenotypeFile(path.name, ids, columns, path.name, snps[rows], PackedSource(packed), notes=notes)


class _Reading(NamedTuple):
    """Names that messages on genotypes use."""

    table: Table
    sites: pl.DataFrame
    animals: list[str]


def _count_descriptions(table: Table) -> int:
    """Count the columns before the animals."""
    if not _is_header("\t".join(table.names[:4])):
        shown = ", ".join(quoted(name) for name in table.names[:4])
        raise DataError(
            f"{table.name}: begins with the columns {shown}; needed rs#, alleles, chrom, pos, as in a HapMap file"
        )
    plain = ["".join(c for c in name.lower() if c.isalnum()) for name in table.names[:11]]
    return 1 + max(i for i, name in enumerate(plain) if name in _DESCRIPTIONS)


def _pair_codes() -> dict[str, int]:
    """Genotype as written -> the number of its pair of bases, 6 first + second, or _CODE_UNKNOWN."""
    number = {base: i for i, base in enumerate(_BASES)}
    pair = {a + b: len(_BASES) * number[a] + number[b] for a, b in product(_BASES, _BASES)}
    known = pair | {letter: pair[two] for letter, two in _PAIR_OF_LETTER.items()}
    known |= {f"{two[0]}{mark}{two[1]}": code for two, code in pair.items() for mark in "/|:"}
    half = {a + b for a, b in product(_BASES, _UNKNOWN_LETTERS)} | {b + a for a, b in product(_BASES, _UNKNOWN_LETTERS)}
    unknown = half | {a + b for a, b in product(_UNKNOWN_LETTERS, _UNKNOWN_LETTERS)} | set(_UNKNOWN_LETTERS)
    unknown |= {f"{two[0]}{mark}{two[1]}" for two in unknown if len(two) == 2 for mark in "/|:"}
    return known | dict.fromkeys([*unknown, "00"], _CODE_UNKNOWN)


def _pairs(table: Table, animals: list[str]) -> np.ndarray:
    """(animals, SNPs) uint8 of `_pair_codes`, _NO_GENOTYPE for any other text."""
    known = _pair_codes()
    out = np.empty((len(animals), table.n_rows), np.uint8)
    at_once = max(1, _CELLS // table.n_rows)
    for begin in range(0, len(animals), at_once):
        frame = table.read(animals[begin : begin + at_once], all_strings=False)
        for row, series in zip(out[begin:], frame, strict=False):
            row[:] = _encode_genotypes(series, known)
    return out


def _encode_genotypes(series: pl.Series, known: dict[str, int]) -> np.ndarray:
    """(SNPs,) uint8 of one animal; any code for unknown, and an empty cell, is missing."""
    text = series.cast(pl.String)
    written = text.unique()
    upper = written.str.strip_chars().str.to_uppercase()
    codes = upper.replace_strict(known, default=None, return_dtype=pl.UInt8)
    is_unknown = codes.is_null() & are_unknown_codes(upper, "value")
    codes = codes.set(is_unknown, _CODE_UNKNOWN).fill_null(_NO_GENOTYPE)
    return text.replace_strict(written, codes, return_dtype=pl.UInt8).to_numpy()


def _alleles(alleles: pl.Series, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(SNPs, 2) numbers of the first and the second allele in _BASES, -1 where there is none; which SNPs have at most
    two, of one base each.

    Alleles that the column does not say are those of the genotypes, in the order of _BASES.
    """
    texts = alleles.str.strip_chars().str.to_uppercase().set(are_unknown_codes(alleles, "value"), None).fill_null("")
    out, is_used = np.full((len(texts), 2), -1), np.ones(len(texts), bool)
    for j, text in enumerate(texts):
        said = list(dict.fromkeys(letter for letter in re.split("[/|,:; ]", text) if letter not in ("", "N")))
        is_used[j] = len(said) <= 2 and all(letter in _BASES and len(letter) == 1 for letter in said)
        if is_used[j]:
            numbers = [_BASES.index(letter) for letter in said]
            if len(numbers) < 2:
                numbers += [allele for allele in _list_bases(pairs[:, j]) if allele not in numbers]
                is_used[j] = len(numbers) <= 2
            out[j, : min(len(numbers), 2)] = numbers[:2]
    return out, is_used


def _list_bases(pairs: np.ndarray) -> list[int]:
    """Numbers of the letters in genotypes; + and - are alleles where the column of alleles says so."""
    codes = np.unique(pairs)
    codes = codes[codes < _CODE_UNKNOWN]
    seen = np.unique(np.concatenate([codes // len(_BASES), codes % len(_BASES)]))
    return [int(base) for base in seen if _BASES[base] not in "+-"]


def _pack(reading: _Reading, pairs: np.ndarray, alleles: np.ndarray, rows: np.ndarray) -> PackedGenotypes:
    """The genotypes of the SNPs in `rows`. Raises DataError for a text that is none, or with another allele."""
    n, lookup = len(reading.animals), _copies_of_pairs()
    words = np.empty((len(rows), count_chunks(n), PackedGenotypes.width), np.uint32)
    for begin in range(0, len(rows), BLOCK):
        chunk = rows[begin : begin + BLOCK]
        block = pairs[:, chunk].T
        codes = lookup[alleles[chunk, 0][:, None], alleles[chunk, 1][:, None], block]
        if (codes == _NO_GENOTYPE).any():
            raise _no_genotypes(reading, chunk, block, codes)
        PackedGenotypes.pack(codes, np.arange(n), words[begin : begin + BLOCK])
    return PackedGenotypes(words, n)


def _copies_of_pairs() -> np.ndarray:
    """(bases + 1, bases + 1, 256) uint8: copies of the second allele in a pair, by first and second allele (the last
    of each axis: none) and pair; 3 = missing, _NO_GENOTYPE for an allele that is neither.
    """
    n, gaps = len(_BASES), [_BASES.index("+"), _BASES.index("-")]
    lookup = np.full((n + 1, n + 1, 256), _NO_GENOTYPE, np.uint8)
    lookup[:, :, _CODE_UNKNOWN] = MISSING
    for first, second in product(range(-1, n), repeat=2):
        alleles = [allele for allele in (first, second) if allele >= 0]
        if not set(alleles) & set(gaps):  # '--' and '0' mean missing
            for i, j in product(gaps, repeat=2):
                lookup[first, second, n * i + j] = MISSING
        for i, j in product(alleles, repeat=2):
            lookup[first, second, n * i + j] = (i == second) + (j == second)
    return lookup


def _no_genotypes(reading: _Reading, rows: np.ndarray, pairs: np.ndarray, codes: np.ndarray) -> DataError:
    """The error for texts that are no genotype, or else for those with an allele that the SNP has not."""
    table, sites, animals = reading
    is_text = pairs == _NO_GENOTYPE
    wrong, needed = is_text, "one letter (A, C, G, T, R, Y, S, W, K, M) or two, or N for missing"
    if not is_text.any():
        wrong, needed = codes == _NO_GENOTYPE, "its alleles, as the column of alleles has them, or N for missing"
    at = np.flatnonzero(wrong.any(axis=1))
    messages = []
    for k in at[:SHOWN]:
        j, animal = int(rows[k]), animals[int(wrong[k].argmax())]
        text = table.read([animal]).item(j, 0)
        of_snp = f"SNP {quoted(sites['snp'][j])} ({sites['alleles'][j]})"
        messages.append(f"found {quoted(text)} for {of_snp} of animal {quoted(animal)}")
    return refuse_rows(table.name, table.lines()[rows[at]], messages, needed)
