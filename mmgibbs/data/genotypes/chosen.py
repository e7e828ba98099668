"""Which SNPs a term has: those of chromosomes, of groups of a file, or those that no other term has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from mmgibbs.config.markers import ChosenSnps
from mmgibbs.data.genotypes.map_file import NAMES
from mmgibbs.data.phenotypes import SHOWN, cells_as_text, read_any
from mmgibbs.errors import DataError, nearest
from mmgibbs.pedigree.messages import ResultWarning
from mmgibbs.pedigree.tables import agreeing, counted, quoted

GROUP_COLUMNS = ("group", "annotation", "class", "category", "set")  # what headers call the groups, in lower case


def chosen_snps(terms: Mapping[str, ChosenSnps | None], snps: pl.DataFrame) -> tuple[dict[str, np.ndarray], list[str]]:
    """Name of a term -> (q,) bool of the q SNPs that are kept; and notes.

    snps: snp, chromosome, ... of each. Raises DataError for a chromosome or group that is not there, a file without
    such columns, and a term that none of the SNPs is left for.
    """
    masks, notes = {}, []
    for name, chosen in terms.items():
        where = f"model.markers.{name}.snps"
        if chosen is None:
            masks[name] = np.ones(snps.height, bool)
        elif chosen.chromosomes:
            masks[name] = _select_chromosomes(chosen.chromosomes, snps, where)
        elif chosen.file is not None:
            masks[name], of_file = _select_groups(chosen.file, chosen.group, snps, where)
            notes += of_file
    taken = np.any(list(masks.values()), axis=0) if masks else np.zeros(snps.height, bool)
    for name in terms:
        if name not in masks:  # the rest
            masks[name] = ~taken
    for name, chosen in terms.items():
        count = int(masks[name].sum())
        if not count:
            raise DataError(
                f"model.markers.{name}.snps: none of the {snps.height:,} SNPs that are kept is one of these"
            )
        if chosen is not None:
            notes.append(f"model.markers.{name}: {count:,} of {snps.height:,} SNPs")
    return masks, notes


def shared_or_in_none(
    masks: Mapping[str, np.ndarray], traits: Mapping[str, Sequence[str]], snps: pl.Series
) -> list[str]:
    """Notes on SNPs that several terms on a trait have, and on SNPs that none has; traits: of each term."""
    said: dict[str, list[str]] = {}
    every = list(dict.fromkeys(trait for term_traits in traits.values() for trait in term_traits))
    for trait in every:
        terms = [name for name in masks if trait in traits[name]]
        count = np.sum([masks[name] for name in terms], axis=0)
        for at, what in (
            (count > 1, f"in several of the terms {', '.join(terms)}: their effects add up"),
            (count == 0, f"in none of the terms {', '.join(terms)}: they have no effect"),
        ):
            if at.any():
                shown = ", ".join(snps.filter(pl.Series(at)).head(SHOWN))
                n = int(at.sum())
                said.setdefault(f"{counted(n, 'SNP')}, such as {shown}, {agreeing(n, 'is')} {what}", []).append(trait)
    return [
        f"model.markers: {note}" + ("" if term_traits == every else f" (trait {', '.join(term_traits)})")
        for note, term_traits in said.items()
    ]


def _select_chromosomes(chromosomes: Sequence[str], snps: pl.DataFrame, where: str) -> np.ndarray:
    known = snps["chromosome"].drop_nulls().unique(maintain_order=True).to_list()
    if not known:
        raise DataError(f"{where}.chromosomes: no SNP has a chromosome; needed a map (data.genotypes.map)")
    _refuse_unknown(chromosomes, known, "chromosome", f"{where}.chromosomes", "the SNPs are on")
    return snps["chromosome"].is_in(list(chromosomes)).fill_null(False).to_numpy()


def _select_groups(path: Path, groups: Sequence[str], snps: pl.DataFrame, where: str) -> tuple[np.ndarray, list[str]]:
    frame, _, _, name = read_any(path)
    column = _named(frame.columns, NAMES["snp"])
    if column is None:
        raise DataError(f"{name}: found the columns {_listed(frame.columns)}; needed one called snp ({where}.file)")
    table = cells_as_text(frame[column], name).alias("snp").to_frame()
    if groups:
        group_columns = [c for c in frame.columns if c != column]
        of = group_columns[0] if len(group_columns) == 1 else _named(group_columns, GROUP_COLUMNS)
        if of is None:
            raise DataError(
                f"{name}: found the columns {_listed(frame.columns)}; needed one called group ({where}.file)"
            )
        table = table.with_columns(cells_as_text(frame[of], name).alias("group"))
        known = table["group"].drop_nulls().unique(maintain_order=True).to_list()
        _refuse_unknown(groups, known, "group", f"{where}.group", f"{name} has")
        table = table.filter(pl.col("group").is_in(list(groups)))
    wanted = table["snp"].drop_nulls().unique(maintain_order=True)
    absent = wanted.filter(~wanted.is_in(snps["snp"].implode()))
    notes: list[str] = []
    if len(absent):
        shown = ", ".join(absent.head(SHOWN))
        text = f"{name}: {len(absent):,} SNPs are not among those kept, such as {shown} ({where})"
        notes.append(ResultWarning(text))
    return snps["snp"].is_in(wanted.implode()).to_numpy(), notes


def _refuse_unknown(wanted: Iterable[str], known: Sequence[str], what: str, where: str, source: str) -> None:
    for name in wanted:
        if name not in known:
            raise DataError(f"{where}: no SNP is in {what} {quoted(name)}; {nearest(name, known, source)}")


def _named(columns: Sequence[str], names: Sequence[str]) -> str | None:
    plain = {c: "".join(ch for ch in c.lower() if ch.isalnum()) for c in columns}
    return next((c for name in names for c, p in plain.items() if p == name), None)


def _listed(columns: Sequence[str]) -> str:
    return ", ".join(quoted(c) for c in columns[:6])
