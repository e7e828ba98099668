"""The SNPs of an earlier run in another file: by name, and by their alleles, of which either may be the counted one.

A file that counts the other allele than the run has 2 - m copies where the run would have m. Alleles that are not
those of the run (another strand, another SNP of that name) are refused. A/T and C/G SNPs read the same on both
strands, so that for them the strand is the user's to know.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from mmgibbs.data.genotypes.file_format import GenotypeFile
from mmgibbs.data.genotypes.snps import warn_of_respelled
from mmgibbs.data.phenotypes import SHOWN
from mmgibbs.errors import DataError, option_name
from mmgibbs.genotypes.store import BLOCK, dosages
from mmgibbs.pedigree.tables import agreeing, counted, quoted

UNKNOWN = ("0", ".", "")  # what files write for an allele that they do not know


@dataclass(frozen=True)
class Counterparts:
    """Positions of the q SNPs of a run in another file."""

    row: np.ndarray  # (q,) int64 in the file; -1: not there
    turned: np.ndarray  # (q,) bool: the file counts the other allele
    notes: tuple[str, ...]
    warnings: tuple[str, ...] = ()

    def read_copies(self, file: GenotypeFile, animals: np.ndarray | slice) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield SNPs of the run, and their copies (SNPs, animals), block by block of the file; NaN: missing."""
        order = np.argsort(self.row, kind="stable")
        for begin in range(0, file.n_snps, BLOCK):
            snps = order[slice(*np.searchsorted(self.row[order], [begin, begin + BLOCK]))]
            if snps.size:
                block = file.source.block(begin, min(begin + BLOCK, file.n_snps))
                copies = dosages(block[:, animals][self.row[snps] - begin]).astype(np.float64)
                yield snps, np.where(self.turned[snps, None], 2 - copies, copies)


def counterparts(snps: pl.DataFrame, every: int, file: GenotypeFile, mapped: bool) -> Counterparts:
    """snps: snp, counted and other of the run; every: SNPs that its file had, number: their place there; mapped: the
    new file was read with a map, which names its SNPs.

    Raises DataError: none of the SNPs is there, or alleles are others, which are named.
    """
    if not file.named and not mapped and file.n_snps != every:
        raise DataError(
            f"{file.name}: has {file.n_snps:,} SNPs without names, but the run's file had {every:,}; needed the same "
            f"SNPs in the same order, or a map ({option_name('map')})"
        )
    named = file.snps.select("snp", new_counted="counted", new_other="other").with_row_index("row")
    if file.named or mapped:
        joined = snps.join(named, on="snp", how="left", maintain_order="left")
    else:
        joined = snps.join(named.drop("snp"), left_on="number", right_on="row", how="left", maintain_order="left")
        joined = joined.with_columns(row=pl.col("number"))
    if joined["row"].is_null().all():
        raise DataError(
            f"{file.name}: has none of the {snps.height:,} SNPs of the run; the run has {quoted(snps['snp'][0])}, the "
            f"file {quoted(file.snps['snp'][0])}; needed names written in the same way"
        )
    same, turned, said = _orientation(joined)
    has_partner = joined["row"].is_not_null().to_numpy()
    _refuse_unknown_alleles(joined.filter(pl.Series(has_partner & ~same & ~turned)), file.name)
    turned &= ~same & has_partner
    absent = joined["snp"].filter(pl.Series(~has_partner))
    warnings = warn_of_respelled(absent, file.snps["snp"], "the run", file.name) if len(absent) else ()
    row = joined["row"].cast(pl.Int64).fill_null(-1).to_numpy()
    return Counterparts(row, turned, _notes(joined, file, has_partner, turned, said), warnings)


def _orientation(joined: pl.DataFrame) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(may be as in the run, may be turned round, alleles say which), each (q,) bool."""
    names = {"a": "counted", "b": "other", "c": "new_counted", "d": "new_other"}
    text = {k: pl.col(v).cast(pl.String).str.to_uppercase() for k, v in names.items()}
    known = joined.select(**{k: pl.when(~x.is_in(list(UNKNOWN))).then(x) for k, x in text.items()})
    agree = lambda x, y: (pl.col(x) == pl.col(y)).fill_null(True)
    agreement = known.select(same=agree("a", "c") & agree("b", "d"), turned=agree("a", "d") & agree("b", "c"))
    same, turned = agreement["same"].to_numpy(), agreement["turned"].to_numpy()
    return same, turned.copy(), ~(same & turned)


def _refuse_unknown_alleles(unknown: pl.DataFrame, name: str) -> None:
    if not unknown.height:
        return
    lines = [
        f"{name}: SNP {quoted(snp)} has the alleles {c} and {d}; the run has {a} and {b}"
        for snp, a, b, c, d in unknown.select("snp", "counted", "other", "new_counted", "new_other")
        .head(SHOWN)
        .iter_rows()
    ]
    more = [f"... and {unknown.height - SHOWN:,} more SNPs"] if unknown.height > SHOWN else []
    raise DataError("\n".join([*lines, *more, "needed the alleles of the run, in either order: is it another strand?"]))


def _notes(
    joined: pl.DataFrame, file: GenotypeFile, has_partner: np.ndarray, turned: np.ndarray, said: np.ndarray
) -> tuple[str, ...]:
    absent, notes = joined["snp"].filter(pl.Series(~has_partner)), []
    if len(absent):
        shown = ", ".join(absent.head(SHOWN))
        notes.append(
            f"{file.name}: {len(absent):,} of the {joined.height:,} SNPs of the run {agreeing(len(absent), 'is')} not "
            f"in it, such as {shown}; "
            "each counts as its mean in the run"
        )
    if turned.any():
        n = int(turned.sum())
        notes.append(f"{file.name}: {counted(n, 'SNP', 'counts')} the other allele and {agreeing(n, 'is')} reversed")
    silent = int(np.count_nonzero(has_partner & ~said))
    if silent:
        notes.append(
            f"{file.name}: {counted(silent, 'SNP')} without known alleles, here or in the run: assumed to count the "
            "same allele"
        )
    more = file.n_snps - int(has_partner.sum())
    if more:
        notes.append(f"{file.name}: {counted(more, 'SNP', 'has')} no effect in the run: not used")
    return tuple(notes)
