"""Quality control of genotypes (`data.genotypes.quality`): which SNPs and animals are used, and a table of what was
left out and why.

In this order, each on what those before it have left:

    1. SNPs by call rate, among all genotyped animals
    2. animals by call rate, at these SNPs
    3. SNPs of sex chromosomes and mitochondria (sex_chromosomes: drop)
    4. animals with the genotypes of an earlier one (duplicate_animals: drop)
    5. animals whose genotypes conflict with those of a parent or progeny (parent_progeny: drop): while some pair has
       more opposing homozygotes of autosomes than `conflicts` allows, the animal of most such pairs; of equals, the
       progeny
    6. SNPs of one genotype, SNPs by the frequency of the rarer allele, among the animals left
    7. SNPs with the genotypes of an earlier one, alleles swapped or not (duplicates: drop)

Before it the ids of genotypes, records and pedigree are checked against each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from mmgibbs.config.genotypes import Quality
from mmgibbs.data.genotypes.file_format import GenotypeFile
from mmgibbs.data.genotypes.snps import describe_sex_chromosomes, find_sex_chromosomes, mark_chromosomes
from mmgibbs.data.phenotypes import SHOWN
from mmgibbs.errors import DataError
from mmgibbs.genotypes.quality import call_rates, opposing_homozygotes, repeated_animals, repeated_snps
from mmgibbs.genotypes.store import Store
from mmgibbs.pedigree.messages import ResultWarning
from mmgibbs.pedigree.read import Pedigree
from mmgibbs.pedigree.spelling import find_respelled
from mmgibbs.pedigree.tables import counted, quoted


def find_genotyped_parents(pedigree: Pedigree, code: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Places of parents and of progeny (pairs,) int64 among the genotyped animals, and whether a parent is a dam.

    code: (n,) int64 of the genotyped animals in the pedigree, -1 of those that do not count.
    """
    place = np.full(pedigree.n_animals + pedigree.n_groups + 1, -1)  # the last: unknown parents, code -1
    animals = np.flatnonzero(code >= 0)
    place[code[animals]] = animals
    progeny = np.tile(animals, 2)
    parent = np.concatenate([place[pedigree.sire[code[animals]]], place[pedigree.dam[code[animals]]]])
    is_dam = np.repeat([False, True], animals.size)
    has_both = parent >= 0
    return parent[has_both], progeny[has_both], is_dam[has_both]


@dataclass(frozen=True)
class Matched:
    """The n genotyped animals among the others."""

    recorded: np.ndarray  # (n,) bool: has a record of a trait
    pedigree_code: np.ndarray  # (n,) int64 in the pedigree, -1 where it is not there, or there is none
    counts: dict
    notes: tuple[str, ...]
    warnings: tuple[str, ...] = ()


def match_ids(file: GenotypeFile, recorded: pl.Series | None, pedigree: Pedigree | None) -> Matched:
    """recorded: ids of the records, None where no column names animals.

    Raises DataError where no genotyped animal has a record or is in the pedigree: then ids are not written alike.
    """
    with_record = np.zeros(file.n_animals, bool)
    code = np.full(file.n_animals, -1, np.int64)
    counts: dict = {"animals": file.n_animals}
    notes: list[str] = []
    warnings: list[str] = []
    if pedigree is not None:
        code = pedigree.codes(file.ids).fill_null(-1).to_numpy().astype(np.int64)
        counts["in_pedigree"] = int(np.count_nonzero(code >= 0))
        strangers = file.ids.filter(pl.Series(code < 0))
        notes += _note(file, ("genotyped animal", "is", "not in the pedigree"), strangers)
        warnings += _respelled(file, strangers, pedigree.ids, "the pedigree")
    if recorded is not None:
        recorded = recorded.drop_nulls().unique(maintain_order=True)
        with_record = file.ids.is_in(recorded.implode()).to_numpy()
        counts["with_records"] = int(with_record.sum())
        without = recorded.filter(~recorded.is_in(file.ids.implode()))
        counts["records_of_others"] = len(without)
        ungenotyped = file.ids.filter(pl.Series(~with_record))
        notes += _note(file, ("genotyped animal", "has", "no record"), ungenotyped)
        notes += _note(file, ("recorded animal", "is", "not genotyped"), without)
        unknown = file.ids.filter(pl.Series(~with_record & (code < 0)))  # those of the pedigree are who they are
        warnings += _respelled(file, unknown, without, "the records")
        if not with_record.any() and not (code >= 0).any():
            raise DataError(
                f"{file.id_file}: none of the {file.n_animals:,} genotyped animals has a record"
                f"{'' if pedigree is None else ' or is in the pedigree'}; are ids written in the same way? "
                f"Genotypes have {quoted(file.ids[0])}, records {quoted(recorded[0])} (data.genotypes)"
                + "".join(f"\n{warning}" for warning in warnings)
            )
    return Matched(with_record, code, counts, tuple(notes), tuple(warnings))


def _respelled(file: GenotypeFile, ids: pl.Series, known: pl.Series, where: str) -> list[str]:
    """A warning of ids that a table may have in another spelling: '007' and '7', 'dk12' and 'DK12'."""
    if not len(ids) or not len(known):
        return []
    pairs = find_respelled(ids, known)
    if not pairs.height:
        return []
    shown = ", ".join(f"{quoted(text)} = {quoted(id)}" for text, id, _ in pairs.head(SHOWN).iter_rows())
    return [
        f"{file.id_file}: {counted(pairs.height, 'genotyped animal', 'is')} in {where} in another spelling only, such "
        f"as {shown}: these count as other animals; needed each id in one spelling"
    ]


def _note(file: GenotypeFile, what: tuple[str, str, str], ids: pl.Series) -> list[str]:
    if not len(ids):
        return []
    noun, verb, rest = what
    return [f"{file.name}: {counted(len(ids), noun, verb)} {rest}, such as {', '.join(ids.head(SHOWN))}"]


@dataclass(frozen=True)
class Checked:
    """The p SNPs and n animals of a file, with what was found of them.

    snps: the columns of the file, then known (animals), frequency (of the counted allele, among the animals kept),
    call_rate, kept, why_dropped (null where kept). animals: animal, recorded, in_pedigree, call_rate, kept,
    why_dropped.
    """

    snps: pl.DataFrame
    animals: pl.DataFrame
    dropped: tuple[tuple[str, str, int], ...]  # (SNPs | animals, why, how many), in the order of the steps
    notes: tuple[str, ...]
    sex_chromosomes: Mapping[str, str]  # chromosome -> X, Y, Z, W, MT or haploid

    @property
    def kept_snps(self) -> np.ndarray:
        """(..,) int64 positions in the file."""
        return np.flatnonzero(self.snps["kept"].to_numpy())

    @property
    def kept_animals(self) -> np.ndarray:
        return np.flatnonzero(self.animals["kept"].to_numpy())


class _Check:
    """The steps, on one store of all animals and SNPs of the file in its order."""

    def __init__(self, file: GenotypeFile, store: Store, quality: Quality, matched: Matched):
        self.file, self.store, self.quality, self.matched = file, store, quality, matched
        self.why: dict[str, list[str | None]] = {
            "SNPs": [None] * store.n_snps,
            "animals": [None] * store.n_animals,
        }
        self.kept = {what: np.ones(len(why), bool) for what, why in self.why.items()}
        self.dropped: list[tuple[str, str, int]] = []
        self.notes: list[str] = []
        self.sex_chromosomes: dict[str, str] = {}

    @property
    def rows(self) -> np.ndarray:
        return np.flatnonzero(self.kept["SNPs"])

    def drop(self, what: str, which: np.ndarray, why: str) -> None:
        """which: (p or n,) bool."""
        which = which & self.kept[what]
        self.kept[what] &= ~which
        for i in np.flatnonzero(which):
            self.why[what][i] = why
        self.dropped.append((what, why, int(which.sum())))
        if not self.kept[what].any():
            counts = ", ".join(f"{n:,} by {reason}" for w, reason, n in self.dropped if w == what and n)
            of_file = "".join(f"\n{warning}" for warning in self.file.warnings)  # may be the reason
            raise DataError(
                f"{self.file.name}: none of the {len(which):,} {what} is left: {counts}; needed other limits "
                f"(data.genotypes.quality), or another file{of_file}"
            )

    def moments(self) -> np.ndarray:
        """(p, 3) of the animals that are kept."""
        every = self.kept["animals"].all()
        return self.store.moments(None if every else self.kept["animals"].astype(np.float64))

    def find_sex_chromosomes(self, pedigree: Pedigree | None) -> None:
        """Say which there are, and what they are used for."""
        chromosome = self.file.snps["chromosome"]
        parents = np.zeros(0, np.int64), np.zeros(0, np.int64)
        if pedigree is not None:
            parent, _, is_dam = find_genotyped_parents(pedigree, self.matched.pedigree_code)
            parents = parent[~is_dam], parent[is_dam]
        self.sex_chromosomes = find_sex_chromosomes(chromosome, self.store, *parents)
        if self.quality.sex_chromosomes == "drop":
            which = mark_chromosomes(chromosome, self.sex_chromosomes)
            self.drop("SNPs", which, "sex chromosomes and mitochondria")
        elif self.sex_chromosomes:
            self.notes.append(
                f"{self.file.name}: {describe_sex_chromosomes(chromosome, self.sex_chromosomes)}: parents and progeny "
                "are compared without them; relationships, SNP effects and tests use them like others, with a haploid "
                "genotype as a homozygous one (data.genotypes.quality.sex_chromosomes: drop leaves them out)"
            )

    def same_animals(self) -> None:
        first = repeated_animals(self.store, self.rows)
        twice = (first != np.arange(len(first))) & self.kept["animals"] & self.kept["animals"][first]
        self._same("animals", twice, first, self.file.ids, self.quality.duplicate_animals)

    def same_snps(self) -> None:
        rows = self.rows
        first = np.arange(self.store.n_snps)
        first[rows] = rows[repeated_snps(self.store, rows, self.kept["animals"])]
        twice = first != np.arange(len(first))
        self._same("SNPs", twice, first, self.file.snps["snp"], self.quality.duplicates)

    def _same(self, what: str, twice: np.ndarray, first: np.ndarray, names: pl.Series, action: str) -> None:
        pairs = [f"{names[int(i)]} = {names[int(first[i])]}" for i in np.flatnonzero(twice)[:SHOWN]]
        if pairs:
            several = counted(int(twice.sum()), what.removesuffix("s"), "has")
            message = f"{self.file.name}: {several} the genotypes of an earlier one"
            self.notes.append(
                f"{message}, such as {', '.join(pairs)}" + ("; kept" if action == "keep" else "; dropped")
            )
        if action == "drop":
            self.drop(what, twice, f"the genotypes of an earlier one of the {what}")

    def parents(self, pedigree: Pedigree) -> None:
        """Pairs of parent and progeny that are both genotyped and kept."""
        kept = self.kept["animals"]
        code = np.where(kept, self.matched.pedigree_code, -1)
        parent, progeny, _ = find_genotyped_parents(pedigree, code)
        rows = self.rows[~mark_chromosomes(self.file.snps["chromosome"], self.sex_chromosomes)[self.rows]]
        counts = opposing_homozygotes(self.store, rows, parent, progeny)
        share = counts[:, 0] / np.maximum(counts[:, 1], 1)
        wrong = share > self.quality.conflicts
        ids = self.file.ids
        if wrong.any():
            worst = np.flatnonzero(wrong)[np.argsort(-share[wrong], kind="stable")][:SHOWN]
            pairs = [f"{ids[int(parent[k])]} and {ids[int(progeny[k])]} {100 * share[k]:.1f} %" for k in worst]
            self.notes.append(
                ResultWarning(
                    f"{self.file.name}: {int(wrong.sum()):,} of {len(wrong):,} pairs of parent and progeny are "
                    f"opposing homozygotes at more than {100 * self.quality.conflicts:g} % of the SNPs, such as "
                    f"{', '.join(pairs)}"
                )
            )
        if self.quality.parent_progeny == "drop":
            which = _most_conflicts(parent[wrong], progeny[wrong], len(kept))
            self.drop("animals", which, "conflicts between parent and progeny")


def check_quality(
    file: GenotypeFile, store: Store, quality: Quality, matched: Matched, pedigree: Pedigree | None
) -> Checked:
    """store: all animals and SNPs of the file in its order. Raises DataError where nothing is left."""
    check = _Check(file, store, quality, matched)
    known = store.moments()[:, 0]
    if not known.all():
        check.drop("SNPs", known == 0, "no genotype known")
    check.drop("SNPs", known / store.n_animals < quality.call_rate, f"call rate below {quality.call_rate:g}")
    rates = call_rates(store, check.rows)
    check.drop("animals", rates < quality.animal_call_rate, f"call rate below {quality.animal_call_rate:g}")
    check.find_sex_chromosomes(pedigree)
    check.same_animals()
    if pedigree is not None and quality.parent_progeny != "ignore":
        check.parents(pedigree)
    n_known, first, second = check.moments().T
    with np.errstate(invalid="ignore"):
        frequency = first / (2 * n_known)
        variance = second / n_known - (first / n_known) ** 2
    if quality.monomorphic == "drop":
        check.drop("SNPs", ~(variance > 0), "monomorphic")
    rarer = np.minimum(frequency, 1 - frequency)
    if quality.maf > 0:
        low = ~(rarer >= quality.maf) & (variance > 0)
        check.drop("SNPs", low, f"minor allele frequency below {quality.maf:g}")
    check.same_snps()
    snps = file.snps.with_columns(
        known=pl.Series(n_known.astype(np.int64)), frequency=pl.Series(frequency).fill_nan(None),
        call_rate=pl.Series(known / store.n_animals), **_reasons(check, "SNPs"),
    )  # fmt: skip
    animals = pl.DataFrame(
        {"animal": file.ids, "recorded": matched.recorded, "in_pedigree": matched.pedigree_code >= 0,
         "call_rate": rates, **_reasons(check, "animals")},
    )  # fmt: skip
    return Checked(snps, animals, tuple(check.dropped), tuple(check.notes), check.sex_chromosomes)


def _reasons(check: _Check, what: str) -> dict[str, pl.Series]:
    return {"kept": pl.Series(check.kept[what]), "why_dropped": pl.Series(check.why[what], dtype=pl.String)}


def _most_conflicts(parent: Sequence[int] | np.ndarray, progeny: Sequence[int] | np.ndarray, n: int) -> np.ndarray:
    """(n,) bool: animals whose absence leaves no pair."""
    parent, progeny = np.asarray(parent, np.int64), np.asarray(progeny, np.int64)
    out, remaining = np.zeros(n, bool), np.ones(len(parent), bool)
    while remaining.any():
        pairs = np.bincount(parent[remaining], minlength=n) + np.bincount(progeny[remaining], minlength=n)
        most = np.flatnonzero(pairs == pairs.max())
        young = most[np.isin(most, progeny[remaining])]
        worst = int((young if len(young) else most)[0])
        out[worst] = True
        remaining &= (parent != worst) & (progeny != worst)
    return out
