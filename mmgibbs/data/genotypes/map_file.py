"""A map: where each SNP lies. A table with columns for SNP, chromosome and position, or a .bim or .map of PLINK."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import polars as pl

from mmgibbs.data.genotypes.snps import UNIT_OF_COLUMN, positions_of_plink, warn_of_respelled
from mmgibbs.data.phenotypes import SHOWN, cells_as_text, read_any, refuse_rows
from mmgibbs.errors import DataError
from mmgibbs.pedigree.spelling import are_unknown_codes, parse_numbers
from mmgibbs.pedigree.tables import counted, quoted

if TYPE_CHECKING:
    from mmgibbs.data.genotypes.file_format import GenotypeFile

NAMES = {  # column -> what headers call it, in lower case and without punctuation
    "snp": tuple("snp snpid snpname marker markerid markername name id rs rsid variant locus probesetid".split()),
    "chromosome": ("chromosome", "chrom", "chr", "chromosomenumber", "linkagegroup", "lg"),
    "position": tuple(UNIT_OF_COLUMN),
}
BIM = {"chromosome": 0, "snp": 1, "centimorgan": 2, "position": 3}


def with_map(file: GenotypeFile, path: Path) -> GenotypeFile:
    """The SNPs with the chromosomes and positions of the map, by name; by order where the file has no names.

    Raises DataError for a map without such columns, a SNP twice, a position that is no number, or, without names, as
    many rows as there are not SNPs.
    """
    table, rows, name, unit = read_map(path)
    if not file.named:
        if table.height != file.n_snps:
            raise DataError(
                f"{name}: found {table.height:,} SNPs, but {file.name} has {file.n_snps:,}, without names; needed a "
                "row for each, in the same order (data.genotypes.map)"
            )
        return replace(file, snps=file.snps.with_columns(table.get_columns()), unit=unit)
    has_name = ~are_unknown_codes(table["snp"], "value")
    table, rows = table.filter(has_name), rows[has_name.to_numpy()]
    _refuse_repeated(table["snp"], rows, name)
    joined = file.snps.drop("chromosome", "position").join(table, on="snp", how="left", maintain_order="left")
    known = joined["snp"].is_in(table["snp"].implode())
    notes, warnings = file.notes, file.warnings
    if not known.any():
        of_map = f"the map has {quoted(table['snp'][0])}" if table.height else "the map has no names"
        raise DataError(
            f"{name}: none of its {table.height:,} SNPs is one of {file.name}, which has {quoted(file.snps['snp'][0])} "
            f"and others; {of_map} (data.genotypes.map)"
        )
    if not known.all():
        absent = file.snps["snp"].filter(~known)
        shown = ", ".join(absent.head(SHOWN))
        warnings += warn_of_respelled(absent, table["snp"], file.name, name)
        notes += (f"{name}: {counted(len(absent), 'SNP')} of {file.name} without a row in the map, such as {shown}",)
    if table.height > int(known.sum()):
        more = counted(table.height - int(known.sum()), "SNP")
        notes += (f"{name}: {more} of the map without genotypes in {file.name}",)
    return replace(file, snps=joined.select(file.snps.columns), notes=notes, warnings=warnings, unit=unit)


def read_map(path: Path) -> tuple[pl.DataFrame, np.ndarray, str, str | None]:
    """(frame of snp, chromosome and position, lines, name of the file, unit of the positions, None: not said)."""
    unit: str | None = "bp"
    if path.suffix in (".bim", ".map"):
        frame, _, rows, name = read_any(path, " ", header=False)
        if frame.width < 4:
            raise DataError(
                f"{name}: found {counted(frame.width, 'column')}; needed chromosome, SNP, centimorgan, position"
            )
        chosen = {key: frame.to_series(i) for key, i in BIM.items()}
    else:
        frame, _, rows, name = read_any(path)
        columns = {key: _column(frame, key, name) for key in NAMES}
        chosen, unit = {key: frame[c] for key, c in columns.items()}, UNIT_OF_COLUMN[_plain(columns["position"])]
    text = pl.DataFrame({k: cells_as_text(s, name) for k, s in chosen.items()})
    position = parse_positions(text["position"], rows, name, "position")
    if "centimorgan" in text.columns:
        centimorgans = parse_positions(text["centimorgan"], rows, name, "position in centimorgan")
        position, unit = positions_of_plink(position, centimorgans)
    return text.select("snp", "chromosome", position.alias("position")), rows, name, unit


def parse_positions(text: pl.Series, rows: np.ndarray, name: str, what: str) -> pl.Series:
    """(n,) Float64, null for a code for unknown. Raises DataError for a text that is no number, by its row."""
    numbers = parse_numbers(text)
    if not numbers.null_count():
        return numbers
    wrong = np.flatnonzero((numbers.is_null() & ~are_unknown_codes(text, "value")).to_numpy())
    if len(wrong):
        problems = [f"found {quoted(text[int(i)])} as the {what}" for i in wrong[:SHOWN]]
        raise refuse_rows(name, rows[wrong], problems, "a number")
    return numbers


def _column(frame: pl.DataFrame, key: str, name: str, path: str = "data.genotypes.map") -> str:
    plain = {c: _plain(c) for c in frame.columns}
    column = next((c for known in NAMES[key] for c, p in plain.items() if p == known), None)
    if column is None:
        raise DataError(
            f"{name}: found the columns {', '.join(quoted(c) for c in frame.columns[:6])}, none of them for the {key}; "
            f"needed a header with one called {key} (or {', '.join(NAMES[key][1:4])}) ({path})"
        )
    return column


def _plain(column: str) -> str:
    return "".join(character for character in column.lower() if character.isalnum())


def _refuse_repeated(snps: pl.Series, rows: np.ndarray, name: str) -> None:
    twice = np.flatnonzero((snps.is_duplicated() & ~snps.is_first_distinct()).to_numpy())
    if len(twice):
        problems = [f"found SNP {quoted(snps[int(i)])} again" for i in twice[:SHOWN]]
        raise refuse_rows(name, rows[twice], problems, "every SNP once")


def read_frequencies(path: Path, snps: pl.Series) -> np.ndarray:
    """(len(snps),) float64 frequency of the counted allele, by name, from a table of two columns, SNP and frequency.

    Raises DataError for a SNP that is not there, or whose frequency is none.
    """
    frame, _, rows, name = read_any(path)
    column = _column(frame, "snp", name, "data.genotypes.frequencies")
    value_columns = [c for c in frame.columns if c != column]
    if len(value_columns) != 1:
        raise DataError(
            f"{name}: found {frame.width} columns; needed two, SNP and frequency (data.genotypes.frequencies)"
        )
    names, text = (cells_as_text(frame[c], name) for c in (column, value_columns[0]))
    _refuse_repeated(names, rows, name)
    has_comma, has_point = (bool(text.str.contains(mark, literal=True).any()) for mark in (",", "."))
    decimal: Literal[",", "."] = "," if has_comma and not has_point else "."
    table = pl.DataFrame({"snp": names, "p": parse_numbers(text, decimal)})
    wrong = np.flatnonzero(~table["p"].is_between(0, 1).fill_null(False).to_numpy())
    if len(wrong):
        cells = [frame[value_columns[0]][int(i)] for i in wrong[:SHOWN]]
        problems = [f"found {'nothing' if cell is None else quoted(cell)} as the frequency" for cell in cells]
        raise refuse_rows(name, rows[wrong], problems, "a number from 0 to 1")
    joined = pl.DataFrame({"snp": snps}).join(table, on="snp", how="left", maintain_order="left")
    absent = joined.filter(pl.col("p").is_null())["snp"]
    if len(absent):
        respelled = warn_of_respelled(absent, table["snp"], "the analysis", name)
        raise DataError(
            f"{name}: {counted(len(absent), 'SNP', 'is')} not in it, such as {', '.join(absent.head(SHOWN))}; needed "
            "the frequency of every SNP that is used (data.genotypes.frequencies)"
            + "".join(f"\n{x}" for x in respelled)
        )
    return joined["p"].to_numpy()
