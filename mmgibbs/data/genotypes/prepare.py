"""From `data.genotypes` to what a model needs: who and which SNPs are used, allele frequencies, packed genotypes."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from mmgibbs.config.genotypes import Genotypes
from mmgibbs.data.genotypes.file_format import GenotypeFile, open_genotypes
from mmgibbs.data.genotypes.map_file import read_frequencies
from mmgibbs.data.genotypes.quality import Checked, Matched, check_quality, match_ids
from mmgibbs.data.phenotypes import SHOWN
from mmgibbs.errors import DataError
from mmgibbs.genotypes.store import (
    FixedGenotypes,
    PackedGenotypes,
    RealGenotypes,
    Store,
    open_store,
    store_genotypes,
)
from mmgibbs.pedigree.read import Pedigree
from mmgibbs.pedigree.tables import counted


@dataclass(frozen=True)
class PreparedGenotypes:
    """The genotypes of an analysis, read and checked; packed for chosen animals by `packed`."""

    section: Genotypes
    file: GenotypeFile
    matched: Matched
    checked: Checked
    # (q,) of the q SNPs that are kept, in the order of the file; of the counted allele
    frequency: np.ndarray  # as `data.genotypes.frequencies` chooses
    mean: np.ndarray  # float64, mean dosage among the genotyped: what a missing genotype counts as

    @property
    def snps(self) -> pl.DataFrame:
        """The SNPs that are kept: the columns of `Checked.snps`."""
        return self.checked.snps.filter("kept")

    @property
    def animals(self) -> pl.DataFrame:
        """The animals that are kept: the columns of `Checked.animals`."""
        return self.checked.animals.filter("kept")

    @property
    def centre(self) -> np.ndarray:
        """(q,) float64 2 p, which is taken from each dosage."""
        return 2 * self.frequency

    @property
    def sum_2pq(self) -> float:
        """Sum of 2 p (1 - p): variance of the genotypes per unit of variance of allele effects, in equilibrium."""
        return float(np.sum(2 * self.frequency * (1 - self.frequency)))

    @property
    def notes(self) -> tuple[str, ...]:
        return self.file.notes + self.matched.notes + self.checked.notes

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings of what changes results."""
        return self.file.warnings + self.matched.warnings

    @property
    def counts(self) -> dict:
        """Plain numbers for run.json and `mmgibbs check`."""
        return {
            "file": self.file.name,
            "read": {"SNPs": self.file.n_snps, "animals": self.file.n_animals},
            "dropped": [{"what": what, "why": why, "count": n} for what, why, n in self.checked.dropped],
            "kept": {"SNPs": len(self.checked.kept_snps), "animals": len(self.checked.kept_animals)},
            "matched": self.matched.counts,
            "frequencies": str(self.section.frequencies),
            "sum_2pq": self.sum_2pq,
        }

    def explain_left_out(self, ids: pl.Series) -> str:
        """Lines that say why animals of the file are not among those kept, each after a line break; '' for none."""
        animals = self.checked.animals.filter(~pl.col("kept") & pl.col("animal").is_in(ids.cast(pl.String).implode()))
        lines = []
        for (why,), group in animals.group_by("why_dropped", maintain_order=True):
            shown = ", ".join(group["animal"].head(SHOWN))
            lines.append(
                f"{self.file.name} has {group.height:,} of these animals ({shown}), left out by "
                f"data.genotypes.quality: {why}"
            )
        return "".join(f"\n{line}" for line in (*lines, *(self.file.warnings if lines else ())))

    def find_rows(self, ids: pl.Series) -> np.ndarray:
        """(len(ids),) int64 where these animals are in the file. DataError names those not there, or left out."""
        kept = pl.DataFrame(
            {"id": self.file.ids, "row": np.arange(self.file.n_animals), "kept": self.checked.animals["kept"]}
        )
        matched = pl.DataFrame({"id": ids.cast(pl.String)}).join(kept, on="id", how="left", maintain_order="left")
        absent = matched.filter(~pl.col("kept").fill_null(False))
        if absent.height:
            raise DataError(
                f"{self.file.name}: {counted(absent.height, 'animal', 'is')} not genotyped, or left out by "
                f"data.genotypes.quality, such as {', '.join(str(i) for i in absent['id'].head(SHOWN))}"
                f"{self.explain_left_out(absent['id'])}"
            )
        return matched["row"].to_numpy().astype(np.int64)

    def packed(self, ids: pl.Series, folder: Path | None = None, snps: np.ndarray | None = None) -> Store:
        """The SNPs that are kept, for these animals in this order; snps: of those some, by their place in the file.

        folder: keep the file there, and take it from there where it is already: its name is a digest of the file of
        genotypes, the animals, the SNPs and how they are stored. Without, the store is in memory.
        """
        animals, snps = self.find_rows(ids), self.checked.kept_snps if snps is None else snps
        kind = _kind(self.section, self.file)
        if folder is None:
            return store_genotypes(self.file.source, animals, snps, kind=kind)
        path = folder / f"genotypes-{self._digest(animals, snps, kind)}.npy"
        if path.exists():
            return open_store(path, len(animals))
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(f".{os.getpid()}.npy")
        store_genotypes(self.file.source, animals, snps, unfinished, kind)
        unfinished.replace(path)
        return open_store(path, len(animals))

    def _digest(self, animals: np.ndarray, snps: np.ndarray, kind: type[Store]) -> str:
        state = self.section.file.stat()
        digest = hashlib.sha256(f"{self.section.file} {state.st_size} {state.st_mtime_ns} {kind.kind}".encode())
        for chosen in (animals, snps):
            digest.update(np.ascontiguousarray(chosen, np.int64).tobytes())
        return digest.hexdigest()[:16]


def prepare_genotypes(
    section: Genotypes, recorded: pl.Series | None, pedigree: Pedigree | None, traits: Collection[str] = ()
) -> PreparedGenotypes:
    """Read, match, check. recorded: ids of the records, None where no column of them names animals; traits: columns of
    records, which are no SNPs.

    Raises DataError for what a reader, the matching or the quality control refuses.
    """
    file = open_genotypes(section, traits)
    matched = match_ids(file, recorded, pedigree)
    every = np.arange(file.n_animals), np.arange(file.n_snps)
    store = store_genotypes(file.source, *every, kind=_kind(section, file))
    checked = check_quality(file, store, section.quality, matched, pedigree)
    of_genotyped = checked.snps.filter("kept")["frequency"].to_numpy()
    kept = checked.kept_snps
    with_records = matched.recorded & checked.animals["kept"].to_numpy()
    snps, where = checked.snps.filter("kept")["snp"], "data.genotypes.frequencies"
    frequency = choose_frequencies(section.frequencies, file.name, snps, of_genotyped, store, with_records, where, kept)
    return PreparedGenotypes(section, file, matched, checked, frequency, 2 * of_genotyped)


def _kind(section: Genotypes, file: GenotypeFile) -> type[Store]:
    if not file.source.real_valued:
        return PackedGenotypes
    return FixedGenotypes if section.dosages == "byte" else RealGenotypes


def choose_frequencies(
    choice: str | Path,
    name: str,
    snps: pl.Series,
    of_genotyped: np.ndarray,
    store: Store,
    recorded: np.ndarray,
    where: str,
    kept: np.ndarray | None = None,
) -> np.ndarray:
    """(q,) of the counted allele of each of these SNPs: genotyped, half, recorded, or a file.

    of_genotyped (q,); recorded (n,) bool: which animals of the store have records; kept (q,): the rows of the store
    that are these SNPs, None: all. name: of the file of genotypes, where: the key of the choice, for messages.
    """
    if choice == "genotyped":
        return of_genotyped
    if choice == "half":
        return np.full(len(of_genotyped), 0.5)
    if isinstance(choice, Path):
        return read_frequencies(choice, snps)
    if not recorded.any():
        raise DataError(f"{name}: no genotyped animal has a record; needed some for {where}: recorded")
    moments = store.moments(recorded.astype(np.float64))
    known, first, _ = (moments if kept is None else moments[kept]).T
    return np.where(known > 0, first / np.maximum(2 * known, 1), of_genotyped)
