"""Genotypes and QTL of a simulated population, and their files: PLINK .bed, .bim, .fam, and the true effects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mmgibbs.simulation.genome import (
    Genome,
    Map,
    allele_counts,
    bed_rows,
    breeding_values,
    drop_genes,
    drop_through_parents,
    effects_of_qtl,
    historic_population,
)

if TYPE_CHECKING:
    import polars as pl

FILES = ("genotypes.bed", "genotypes.bim", "genotypes.fam", "true_effects.csv")
ALLELES = ("A", "C")  # counted, other
ROWS = 512  # SNPs that are written at a time: whole words
_HEAD = b"\x6c\x1b\x01"  # of a .bed, SNP after SNP


@dataclass(frozen=True)
class SimulatedGenotypes:
    """Haplotypes of n animals, and the QTL among the loci."""

    genome: Genome
    where: Map
    haplotypes: np.ndarray  # (n, 2, words) uint64
    qtl: np.ndarray  # (q,) int64 loci, ascending
    effects: np.ndarray  # (q, k) float64 of one copy of the counted allele, by component
    frequency: np.ndarray  # (q,) float64 of that allele among the founders
    genotyped: np.ndarray  # (m,) int64 animals whose genotypes are written

    @property
    def snps(self) -> np.ndarray:
        """(p,) int64 loci that are written."""
        every = np.arange(len(self.where.place))
        return np.setdiff1d(every, self.qtl) if self.genome.hide_qtl else every

    @property
    def names(self) -> np.ndarray:
        """(loci,) names: the number of the locus."""
        width = len(str(len(self.where.place)))
        return np.array([f"snp{i:0{width}d}" for i in range(1, len(self.where.place) + 1)])


def simulate_genotypes(
    sire: np.ndarray,
    dam: np.ndarray,
    polygenic: np.ndarray,
    covariance: np.ndarray,
    genome: Genome,
    genotyped: int,
    rng: np.random.Generator,
) -> tuple[SimulatedGenotypes, np.ndarray]:
    """(genotypes, breeding values (n, k)): QTL and polygenic ones,

        u = sqrt(1 - s) u_polygenic + sum_j a_j (m_j - mean of the founders),   s = genome.qtl_share

    where the effects a_j give the founders the covariance matrix s `covariance` exactly. sire, dam: (n,) true parents,
    -1 for founders. genotyped: how many animals are, the youngest; 0: all. Raises ConfigError, DeviceError.
    """
    n, k = polygenic.shape
    genome.refuse(n, k)
    where, historic = historic_population(genome, rng)
    haplotypes = drop_genes(sire, dam, historic, where, rng)
    qtl = np.sort(rng.permutation(genome.loci)[: genome.qtl])
    counts = allele_counts(haplotypes, qtl, np.flatnonzero((sire < 0) & (dam < 0)))
    effects = effects_of_qtl(counts, genome.qtl_share * covariance, rng)
    mean = counts.mean(axis=1)
    u = np.sqrt(1 - genome.qtl_share) * polygenic + breeding_values(haplotypes, qtl, effects, mean)
    chosen = np.arange(n - genotyped if genotyped else 0, n)
    return SimulatedGenotypes(genome, where, haplotypes, qtl, effects, mean / 2, chosen), u


class Inheritance:
    """Genes dropped year by year, so that parents may be selected by them: see pedigree.simulate.Inherit.

    Values are those of `simulate_genotypes`, QTL scaled among all founders; the draws are others.
    """

    def __init__(self, n: int, covariance: np.ndarray, genome: Genome, rng: np.random.Generator):
        genome.refuse(n, len(covariance))
        self.covariance, self.genome, self.rng = covariance, genome, rng
        self.where, self.historic = historic_population(genome, rng)
        self.haplotypes = np.zeros((n, 2, self.historic.shape[2]), np.uint64)
        self.values = np.zeros((n, len(covariance)))
        self.qtl = np.sort(rng.permutation(genome.loci)[: genome.qtl])

    def __call__(self, first: int, sire: np.ndarray, dam: np.ndarray, polygenic: np.ndarray) -> np.ndarray:
        """(m, k) breeding values of the next animals."""
        drop_through_parents(self.haplotypes, first, sire, dam, self.historic, self.where, self.rng)
        rows, share = slice(first, first + len(sire)), self.genome.qtl_share
        if first == 0:
            counts = allele_counts(self.haplotypes, self.qtl, np.arange(len(sire)))
            self.effects = effects_of_qtl(counts, share * self.covariance, self.rng)
            self.mean = counts.mean(axis=1)
        of_qtl = breeding_values(self.haplotypes[rows], self.qtl, self.effects, self.mean)
        self.values[rows] = np.sqrt(1 - share) * polygenic + of_qtl
        return self.values[rows]

    def finish(self, genotyped: int) -> SimulatedGenotypes:
        """Once all are born; genotyped: as for `simulate_genotypes`."""
        n = len(self.values)
        chosen = np.arange(n - genotyped if genotyped else 0, n)
        arguments = self.where, self.haplotypes, self.qtl, self.effects, self.mean / 2, chosen
        return SimulatedGenotypes(self.genome, *arguments)


def write_genotypes(
    made: SimulatedGenotypes,
    ids: pl.Series,
    parents: tuple[pl.Series, pl.Series],
    sex: np.ndarray,
    components: Sequence[str],
    folder: Path,
) -> None:
    """ids, parents (null unknown), sex (1 male, 0 female): of all n animals. components: names of the k columns."""
    import polars as pl

    with open(folder / "genotypes.bed", "wb") as file:
        file.write(_HEAD)
        written = made.snps
        for first in range(0, len(made.where.place), ROWS):
            stop = min(first + ROWS, len(made.where.place))
            rows = bed_rows(made.haplotypes, first, stop, made.genotyped)
            inside = written[np.searchsorted(written, first) : np.searchsorted(written, stop)]
            file.write(rows[inside - first].tobytes())
    names, chromosome, base = made.names, made.where.chromosome, made.where.base_pair
    bim = pl.DataFrame(
        {"c": chromosome, "snp": names, "cm": 100 * made.where.place, "bp": base, "a1": ALLELES[0], "a2": ALLELES[1]}
    )[made.snps]
    bim.write_csv(folder / "genotypes.bim", separator="\t", include_header=False, float_precision=6)
    sire, dam = (parent.fill_null("0") for parent in parents)
    fam = pl.DataFrame({"f": ids, "id": ids, "s": sire, "d": dam, "sex": 2 - sex.astype(np.int64), "y": -9})
    fam[made.genotyped].write_csv(folder / "genotypes.fam", separator=" ", include_header=False)
    columns = {c.replace(":", "_"): made.effects[:, i] for i, c in enumerate(components)}
    pl.DataFrame(
        {"snp": names[made.qtl], "chromosome": chromosome[made.qtl], "position": base[made.qtl],
         "counted": ALLELES[0], "frequency": made.frequency, **columns}
    ).write_csv(folder / "true_effects.csv", float_precision=6)  # fmt: skip


def provenance(made: SimulatedGenotypes) -> list[str]:
    """Lines of the note beside the data."""
    g = made.genome
    hidden = "which are not among the SNPs" if g.hide_qtl else "which are SNPs of the file"
    return [
        f"genotypes.bed      {g.snps:,} SNPs of {len(made.genotyped):,} animals, with .bim and .fam; A is counted",
        f"true_effects.csv   {g.qtl:,} QTL, {hidden}: frequency of A among founders, effect of one A on each "
        "breeding value",
        "",
        f"Genome: {g.chromosomes} chromosomes of {g.morgans:g} Morgan; a historic population of {g.largest:,} that "
        f"shrinks to {g.smallest:,} over {g.generations:,} generations,",
        f"mutation {g.mutation:g}; loci with a minor allele frequency of at least {g.maf:g} in its last generation.",
        f"QTL make {100 * g.qtl_share:g} % of the genetic covariance matrix of the founders; the rest is polygenic.",
        "",
    ]
