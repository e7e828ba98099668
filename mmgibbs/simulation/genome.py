"""Genomes that are passed on: a historic population that makes linkage disequilibrium, then gene dropping.

Loci have two alleles, a bit each; the haplotypes of an individual are 2 rows of words of 64 loci, chromosome after
chromosome, so that 100,000 animals at 50,000 loci are 1.25 GB. A gamete takes each chromosome from one strand of the
parent and changes strands where crossovers fall: a Poisson process of one a Morgan, without interference (Haldane 1919,
J. Genet. 8:299).

Livestock's linkage disequilibrium comes from drift: a random-mating population that shrinks geometrically over
`generations`, from alleles at frequency 1/2 in equilibrium, with recurrent mutation; what is common in its last
generation makes the loci, and its gametes the founders (compare Sargolzaei & Schenkel 2009, Bioinformatics 25:680).

Genotypes and QTL of a simulated population, and their files: PLINK .bed, .bim, .fam, and the true effects.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mmgibbs.errors import ConfigError, option
from mmgibbs.machine.memory import refuse_beyond_free
from mmgibbs.pedigree.kernels import kernel
from mmgibbs.simulation import arguments

if TYPE_CHECKING:
    import polars as pl


BASES_PER_MORGAN = 1e8
WORD = 64  # loci
_ONE, _FULL = np.uint64(1), np.uint64(2**64 - 1)


@dataclass(frozen=True)
class Genome:
    """Genotypes that are simulated: SNPs, and loci with effects (QTL) on the traits.

    Parameters
    ----------
    snps : int
        Number of SNPs, which are written.
    qtl : int, default 300
        Number of loci with effects: some of the SNPs, or further loci where they are hidden.
    chromosomes : int, default 29
        Number of chromosomes.
    morgans : float, default 1.0
        Length of each chromosome.
    qtl_share : float, default 1.0
        Share of the genetic covariance matrix that the loci explain; the rest is polygenic.
    hide_qtl : bool, default False
        Leave the loci with effects out of the genotype file.
    genotyped : int, default 0
        Write genotypes of the youngest animals only, this many; 0: of all.
    generations : int, default 500
        Generations of the historic population.
    largest, smallest : int, default 1500, 120
        Individuals of its first and of its last generation.
    mutation : float, default 2.5e-5
        Mutations of a locus and gamete.
    maf : float, default 0.05
        Least frequency of the rarer allele of every locus in its last generation.

    Examples
    --------
    >>> import mmgibbs
    >>> mmgibbs.Genome(1000, qtl=50, hide_qtl=True).loci
    1050
    """

    snps: int
    qtl: int = 300
    chromosomes: int = 29
    morgans: float = 1.0
    qtl_share: float = 1.0
    hide_qtl: bool = False
    genotyped: int = 0
    generations: int = 500
    largest: int = 1500
    smallest: int = 120
    mutation: float = 2.5e-5
    maf: float = 0.05

    @property
    def loci(self) -> int:
        """Number of loci: SNPs, and QTL beside them."""
        return self.snps + self.qtl * self.hide_qtl

    def _refuse(self, n_animals: int, components: int) -> None:
        """ConfigError for numbers that make no genome, DeviceError where haplotypes would not fit into memory."""
        if not isinstance(self.hide_qtl, bool):
            raise ConfigError(f"{option('hide_qtl', self.hide_qtl)} is neither True nor False")
        limits = {
            "snps": (1, None),
            "qtl": (components, None if self.hide_qtl else self.snps),
            "chromosomes": (1, self.snps),
            "genotyped": (0, n_animals),
            "generations": (1, None),
            "largest": (2, None),
            "smallest": (2, self.largest),
        }
        for name, (least, most) in limits.items():
            which_is = "the number of animals" if name == "genotyped" else ""
            arguments.check_integer(name, getattr(self, name), least, most, which_is)
        arguments.share("qtl_share", self.qtl_share, most=True)
        for name, low, high in (("morgans", 1e-6, 1e3), ("mutation", 0.0, 0.1), ("maf", 0.0, 0.5)):
            arguments.check_number(name, getattr(self, name), low, high)
        historic = 4 * self.largest * _words(_CANDIDATES * self.loci)
        needed = 8 * (2 * n_animals * _words(self.loci) + 2 * historic)
        advice = "fewer animals or SNPs, or more memory"
        refuse_beyond_free(needed, f"haplotypes of {n_animals:,} animals at {self.loci:,} loci", advice)


@dataclass(frozen=True)
class Map:
    """Positions of loci: chromosome c has loci first[c] .. first[c + 1] - 1."""

    first: np.ndarray  # (C + 1,) int64
    place: np.ndarray  # (p,) float64 Morgans from the beginning of the chromosome, ascending within it
    morgans: float  # length of each

    @property
    def chromosome(self) -> np.ndarray:
        """(p,) int64, from 1."""
        return np.repeat(np.arange(1, len(self.first)), np.diff(self.first))

    @property
    def base_pair(self) -> np.ndarray:
        """(p,) int64."""
        return 1 + np.rint(self.place * BASES_PER_MORGAN).astype(np.int64)

    def of(self, loci: np.ndarray) -> Map:
        """Return the map of some loci, ascending."""
        return Map(np.searchsorted(loci, self.first), self.place[loci], self.morgans)


_CANDIDATES = 2  # loci that the historic population carries for each that is wanted: drift loses some


def historic_population(genome: Genome, rng: np.random.Generator) -> tuple[Map, np.ndarray]:
    """(map, haplotypes (N, 2, words) uint64 of the last generation), at loci whose rarer allele has frequency
    `genome.maf`. Raises ConfigError where drift has left too few."""
    per_chromosome = -(-_CANDIDATES * genome.loci // genome.chromosomes)
    place = np.sort(rng.uniform(0, genome.morgans, (genome.chromosomes, per_chromosome)), axis=1).ravel()
    wide = Map(np.arange(genome.chromosomes + 1) * per_chromosome, place, genome.morgans)
    sizes = np.geomspace(genome.largest, genome.smallest, genome.generations + 1).astype(np.int64)
    shape = (int(sizes[0]), 2, _words(len(place)))
    parents = rng.integers(0, 2**64, shape, dtype=np.uint64)
    for size in sizes[1:]:
        children = np.zeros((int(size), *shape[1:]), np.uint64)
        _mate(rng, parents, wide.first, wide.place, wide.morgans, genome.mutation, children)
        parents = children
    frequency = allele_counts(parents, np.arange(len(place))).mean(axis=1) / 2
    common = np.flatnonzero(np.minimum(frequency, 1 - frequency) >= genome.maf)
    if len(common) < genome.loci:
        raise ConfigError(
            f"no genome: drift has left {len(common):,} of {len(place):,} loci common enough; needed {genome.loci:,}: "
            "use more SNPs, or fewer chromosomes"
        )
    chosen = np.sort(rng.permutation(common)[: genome.loci])
    return wide.of(chosen), _columns(parents, chosen)


def drop_genes(
    sire: np.ndarray, dam: np.ndarray, historic: np.ndarray, where: Map, rng: np.random.Generator
) -> np.ndarray:
    """(n, 2, words) uint64 haplotypes, paternal and maternal, of animals whose parents (codes, -1 unknown) come before
    them; an unknown parent is an individual of the historic population."""
    out = np.zeros((len(sire), 2, historic.shape[2]), np.uint64)
    drop_through_parents(out, 0, sire, dam, historic, where, rng)
    return out


def drop_through_parents(
    out: np.ndarray,
    begin: int,
    sire: np.ndarray,
    dam: np.ndarray,
    historic: np.ndarray,
    where: Map,
    rng: np.random.Generator,
) -> None:
    """Drop alleles to animals begin, begin + 1, ..., whose rows of `out` are 0, and whose parents have theirs."""
    _drop(rng, begin, sire, dam, historic, where.first, where.place, where.morgans, out)


def allele_counts(haplotypes: np.ndarray, loci: np.ndarray, animals: np.ndarray | None = None) -> np.ndarray:
    """(loci, animals) uint8 copies of allele 1."""
    every = np.arange(len(haplotypes)) if animals is None else animals
    out = np.empty((len(loci), len(every)), np.uint8)
    _count(haplotypes, loci, every, out)
    return out


def bed_rows(haplotypes: np.ndarray, first: int, stop: int, animals: np.ndarray) -> np.ndarray:
    """(stop - first, ceil(n / 4)) uint8 of loci first .. stop - 1 as a .bed has them, allele 1 counted."""
    out = np.zeros((stop - first, -(-len(animals) // 4)), np.uint8)
    _bed(haplotypes, first, animals, out)
    return out


def _words(loci: int) -> int:
    return -(-loci // WORD)


def _columns(haplotypes: np.ndarray, loci: np.ndarray) -> np.ndarray:
    out = np.zeros((*haplotypes.shape[:2], _words(len(loci))), np.uint64)
    _gather(haplotypes, loci, out)
    return out


def effects_of_qtl(counts: np.ndarray, target: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """(q, k) effects a of one copy, for which counts' a has the covariance matrix `target` (k, k) among these animals.

    counts: (q, n) of the founders. Effects are normal, then changed linearly to give the target exactly.
    """
    raw = rng.standard_normal((len(counts), len(target)))
    values = (counts - counts.mean(axis=1, keepdims=True)).T @ raw
    factor = np.linalg.cholesky(np.cov(values.T))
    return raw @ np.linalg.solve(factor.T, np.linalg.cholesky(target).T)


def breeding_values(haplotypes: np.ndarray, qtl: np.ndarray, effects: np.ndarray, mean: Sequence[float]) -> np.ndarray:
    """(n, k): effects (q, k) times the copies that differ from their mean (q,) among founders."""
    out = np.empty((len(haplotypes), effects.shape[1]))
    for first in range(0, len(haplotypes), 10_000):  # keeps the counts of few animals at once
        rows = np.arange(first, min(first + 10_000, len(haplotypes)))
        counts = allele_counts(haplotypes, qtl, rows).astype(np.float64)
        out[rows] = (counts - np.asarray(mean)[:, None]).T @ effects
    return out


# ------------------------------------------------------------------------------------------------ kernels


@kernel
def _mate(rng, parents, first, place, morgans, mutation, children):
    loci = place.size
    for i in range(children.shape[0]):
        for side in range(2):
            parent = min(int(rng.random() * parents.shape[0]), parents.shape[0] - 1)
            _gamete(rng, parents[parent], first, place, morgans, children[i, side])
            for _ in range(rng.poisson(mutation * loci)):
                locus = min(int(rng.random() * loci), loci - 1)
                children[i, side, locus >> 6] ^= _ONE << np.uint64(locus & 63)


@kernel
def _drop(rng, begin, sire, dam, historic, first, place, morgans, out):
    for i in range(sire.size):
        for side in range(2):
            parent = sire[i] if side == 0 else dam[i]
            if parent >= 0:
                _gamete(rng, out[parent], first, place, morgans, out[begin + i, side])
            else:
                second = min(int(rng.random() * historic.shape[0]), historic.shape[0] - 1)
                _gamete(rng, historic[second], first, place, morgans, out[begin + i, side])


@kernel
def _gamete(rng, parent, first, place, morgans, out):
    """out (words,) is 0 before."""
    for c in range(first.size - 1):
        strand = int(rng.random() < 0.5)
        begin, stop, x = first[c], first[c + 1], 0.0
        while begin < stop:
            x += rng.standard_exponential()
            end = stop
            if x < morgans:
                end = begin + np.searchsorted(place[begin:stop], x)
            _copy(parent[strand], begin, end, out)
            begin, strand = end, 1 - strand


@kernel
def _copy(source, begin, end, out):
    """Bits begin .. end - 1, into bits that are 0."""
    if begin >= end:
        return
    low, high = begin >> 6, (end - 1) >> 6
    head = _FULL << np.uint64(begin & 63)
    tail = _FULL >> np.uint64(63 - ((end - 1) & 63))
    if low == high:
        out[low] |= source[low] & head & tail
        return
    out[low] |= source[low] & head
    out[low + 1 : high] = source[low + 1 : high]
    out[high] |= source[high] & tail


@kernel
def _gather(haplotypes, loci, out):
    for i in range(out.shape[0]):
        for side in range(2):
            for k in range(loci.size):
                bit = (haplotypes[i, side, loci[k] >> 6] >> np.uint64(loci[k] & 63)) & _ONE
                out[i, side, k >> 6] |= bit << np.uint64(k & 63)


@kernel
def _count(haplotypes, loci, animals, out):
    for k in range(loci.size):
        word, shift = loci[k] >> 6, np.uint64(loci[k] & 63)
        for i in range(animals.size):
            both = haplotypes[animals[i], :, word]
            out[k, i] = ((both[0] >> shift) & _ONE) + ((both[1] >> shift) & _ONE)


@kernel
def _bed(haplotypes, first, animals, out):
    """Bits of four animals to a byte: 3, 2, 0 for 0, 1, 2 copies. Words are read once for their 64 loci."""
    for low in range(first >> 6, ((first + out.shape[0] - 1) >> 6) + 1):
        begin, end = max(low * 64, first), min(low * 64 + 64, first + out.shape[0])
        for i in range(animals.size):
            allele_1, two = haplotypes[animals[i], 0, low], haplotypes[animals[i], 1, low]
            for locus in range(begin, end):
                shift = np.uint64(locus & 63)
                copies = ((allele_1 >> shift) & _ONE) + ((two >> shift) & _ONE)
                bits = np.uint8(3) - np.uint8(copies) - np.uint8(copies >> _ONE)
                out[locus - first, i >> 2] |= bits << np.uint8(2 * (i & 3))


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

    @property
    def genotyped(self) -> np.ndarray:
        """(m,) int64 animals whose genotypes are written."""
        n, m = len(self.haplotypes), self.genome.genotyped
        return np.arange(n - m if m else 0, n)

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
    rng: np.random.Generator,
) -> tuple[SimulatedGenotypes, np.ndarray]:
    """(genotypes, breeding values (n, k)): QTL and polygenic ones,

        u = sqrt(1 - s) u_polygenic + sum_j a_j (m_j - mean of the founders),   s = genome.qtl_share

    where the effects a_j give the founders the covariance matrix s `covariance` exactly. sire, dam: (n,) true parents,
    -1 for founders. Raises ConfigError, DeviceError.
    """
    n, k = polygenic.shape
    genome._refuse(n, k)
    where, historic = historic_population(genome, rng)
    haplotypes = drop_genes(sire, dam, historic, where, rng)
    qtl = np.sort(rng.permutation(genome.loci)[: genome.qtl])
    counts = allele_counts(haplotypes, qtl, np.flatnonzero((sire < 0) & (dam < 0)))
    effects = effects_of_qtl(counts, genome.qtl_share * covariance, rng)
    mean = counts.mean(axis=1)
    u = np.sqrt(1 - genome.qtl_share) * polygenic + breeding_values(haplotypes, qtl, effects, mean)
    return SimulatedGenotypes(genome, where, haplotypes, qtl, effects, mean / 2), u


class Inheritance:
    """Genes dropped year by year, so that parents may be selected by them: see mmgibbs.pedigree.simulate.Inherit.

    Values are those of `simulate_genotypes`, QTL scaled among all founders; the draws are others.
    """

    def __init__(self, n: int, covariance: np.ndarray, genome: Genome, rng: np.random.Generator):
        genome._refuse(n, len(covariance))
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

    def finish(self) -> SimulatedGenotypes:
        """Genotypes of all animals, once they are born."""
        return SimulatedGenotypes(self.genome, self.where, self.haplotypes, self.qtl, self.effects, self.mean / 2)


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
