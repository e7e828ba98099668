"""Parents in a pedigree against genotypes, births and sexes: conflicts, likely parents, samples of one animal.

A parent and its progeny share an allele at every SNP, so that they are never 0 and 2 but for errors. If a genotype is
called as one of the other two with probability e, a share

    r = e (1 - 2 mean(p q))

of the SNPs of a true pair are opposing homozygotes (an error makes them of two homozygotes with probability 1/2, of a
homozygote and a heterozygote with 1/4). A pair is in conflict where it has more than the quantile of the binomial
distribution with this share that a true pair exceeds once in a million. Of unrelated animals 2 mean(p^2 q^2) of the
SNPs are opposing, of full sibs a quarter of that.

Two samples are of one animal (or of identical twins) where at most as many genotypes differ as errors in both explain.

Where births are unknown, those of relatives say who is older. An animal is younger than its parents and older than its
progeny, so that its birth lies between

    low_i  = its birth, else the latest low of its parents        (-inf: nothing is known)
    high_i = its birth, else the earliest high of its progeny     (+inf)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from scipy import stats

from mmgibbs.config.genotypes import Quality
from mmgibbs.data.genotypes.file_format import GenotypeFile
from mmgibbs.data.genotypes.quality import find_genotyped_parents, match_ids
from mmgibbs.data.genotypes.snps import describe_sex_chromosomes, find_sex_chromosomes, mark_chromosomes
from mmgibbs.data.phenotypes import SHOWN
from mmgibbs.errors import DataError
from mmgibbs.genotypes.quality import call_rates, compare_genotypes, find_compatible_pairs
from mmgibbs.genotypes.store import Store, store_genotypes
from mmgibbs.pedigree.read import Pedigree
from mmgibbs.pedigree.tables import counted, quoted
from mmgibbs.runs.other_genotypes import NamedGenotypes, genotypes_section, open_other_genotypes


def birth_bounds(pedigree: Pedigree) -> tuple[np.ndarray, np.ndarray]:
    """(n + 1,) low and high of every animal; the last, code -1, is of animals that the pedigree does not have."""
    n, sire, dam = pedigree.n_animals, pedigree.sire, pedigree.dam
    birth = np.full(n, np.nan) if pedigree.birth is None else np.asarray(pedigree.birth, np.float64)
    is_known = ~np.isnan(birth)
    low, high = (
        np.append(np.where(is_known, birth, -np.inf), -np.inf),
        np.append(np.where(is_known, birth, np.inf), np.inf),
    )
    if not is_known.any():
        return low, high
    parents = [np.where((p >= 0) & (p < n), p, n) for p in (sire, dam)]  # of unknown parents nothing is known
    for i in np.flatnonzero(~is_known):  # parents have lower codes than their progeny
        low[i] = max(low[parents[0][i]], low[parents[1][i]])
    has_open_parent = [(p < n) & ~np.append(is_known, True)[p] for p in parents]
    for i in np.flatnonzero(has_open_parent[0] | has_open_parent[1])[::-1]:
        for of_role, is_open in zip(parents, has_open_parent, strict=True):
            if is_open[i]:
                high[of_role[i]] = min(high[of_role[i]], high[i])
    return low, high


def are_descendants(pedigree: Pedigree, ancestor: np.ndarray, animal: np.ndarray) -> np.ndarray:
    """(m,) bool: the animal descends from this ancestor; codes, -1 of animals that the pedigree does not have."""
    n = pedigree.n_animals
    out = np.zeros(len(animal), bool)
    for k, (a, b) in enumerate(zip(ancestor.tolist(), animal.tolist(), strict=True)):
        open_codes, seen = [b], set()
        while a >= 0 and open_codes:
            code = open_codes.pop()
            if code == a and code != b:
                out[k] = True
                break
            if code <= a or code >= n or code in seen:  # an ancestor has a lower code
                continue
            seen.add(code)
            open_codes += [int(pedigree.sire[code]), int(pedigree.dam[code])]
    return out


ERROR_RATE = 0.01
FALSE_CONFLICTS = 1e-6  # of true pairs of parent and progeny
SCREENED_SNPS = 2048  # by which all pairs are compared first, evenly spaced over the file
FEWEST_SNPS = 100
MAX_LIKELY_PARENTS = 5  # listed of an animal and role


@dataclass(frozen=True)
class Parentage:
    """Results of the comparison of genotypes with a pedigree.

    Attributes
    ----------
    conflicts : polars.DataFrame
        A row for each parent and progeny whose genotypes exclude each other.
    likely_parents : polars.DataFrame
        Genotyped animals that may be a parent which is unknown or in conflict, those with the fewest opposing first.
    duplicates : polars.DataFrame
        Pairs of animals with the same genotypes.
    facts : dict
        Counts and thresholds.
    notes : tuple of str
        What to know about them; warnings begin with "warning: ".
    """

    conflicts: pl.DataFrame
    likely_parents: pl.DataFrame
    duplicates: pl.DataFrame
    facts: dict[str, Any]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Thresholds:
    """Thresholds of the counts of opposing homozygotes that errors explain."""

    error_rate: float
    expected_share: float  # of a true pair of parent and progeny
    unrelated_share: float

    def highest_opposing(self, n_snps: np.ndarray | int) -> np.ndarray:
        """The count that a true pair exceeds once in a million."""
        return np.asarray(stats.binom.isf(FALSE_CONFLICTS, n_snps, self.expected_share))

    def highest_different(self, n_snps: np.ndarray | int) -> np.ndarray:
        """Return the highest count of different genotypes of two samples of an animal."""
        return np.asarray(stats.binom.isf(FALSE_CONFLICTS, n_snps, min(1.0, 2 * self.error_rate)))


def check_parentage(
    pedigree: Pedigree,
    genotypes: NamedGenotypes,
    error_rate: float = ERROR_RATE,
) -> Parentage:
    """Compare a pedigree with genotypes, a path or keys of `data.genotypes`. DataError where too few SNPs are known."""
    file = open_other_genotypes(genotypes_section("pedigree", genotypes), ())
    matched = match_ids(file, None, pedigree)
    if not (matched.pedigree_code >= 0).any():
        raise DataError(
            f"{file.id_file}: none of the {file.n_animals:,} genotyped animals is in the pedigree; are ids written in "
            f"the same way? Genotypes have {quoted(file.ids[0])}, the pedigree {quoted(pedigree.ids[0])}"
        )
    store = store_genotypes(file.source, np.arange(file.n_animals), np.arange(file.n_snps))
    parent, _, is_dam = find_genotyped_parents(pedigree, matched.pedigree_code)
    sex_linked = find_sex_chromosomes(file.snps["chromosome"], store, parent[~is_dam], parent[is_dam])
    rows, animals, of_quality = _choose(store, file, mark_chromosomes(file.snps["chromosome"], sex_linked))
    if sex_linked:
        words = describe_sex_chromosomes(file.snps["chromosome"], sex_linked)
        of_quality.append(f"{file.name}: {words} left out: parents do not pass them on as they do autosomes")
    thresholds = _thresholds(store, rows, error_rate)
    compared = _Compared(pedigree, file, store, rows, animals, matched.pedigree_code, thresholds)
    warned = (*file.warnings, *matched.warnings)
    notes = [
        *(f"warning: {w}" for w in warned),
        *file.notes,
        *matched.notes,
        *of_quality,
        *_question_power(thresholds, rows.size),
    ]
    return compared.report(notes)


def _choose(store: Store, file: GenotypeFile, is_left_out: np.ndarray) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """SNPs and animals with enough known genotypes, by the limits of `data.genotypes.quality`.

    is_left_out: (p,) bool, SNPs that are not used.
    """
    limits = Quality()
    is_known = store.moments()[:, 0] >= limits.call_rate * store.n_animals
    rows = np.flatnonzero(is_known & ~is_left_out)
    if rows.size < FEWEST_SNPS:
        n_compared, kind = store.n_snps - int(is_left_out.sum()), "autosomal " if is_left_out.any() else ""
        raise DataError(
            f"{file.name}: {rows.size:,} of {n_compared:,} {kind}SNPs are known in {100 * limits.call_rate:g} % of the "
            f"animals; needed {FEWEST_SNPS:,} to compare parents and progeny"
        )
    rates = call_rates(store, rows)
    notes = []
    if not is_known.all():
        notes.append(
            f"{file.name}: {counted(int((~is_known).sum()), 'SNP')} left out, call rate below {limits.call_rate:g}"
        )
    low = np.flatnonzero(rates < limits.animal_call_rate)
    if low.size:
        shown = ", ".join(file.ids.gather(low[:SHOWN]))
        notes.append(
            f"warning: {file.name}: {counted(low.size, 'animal')} left out, call rate below "
            f"{limits.animal_call_rate:g}, such as {shown}"
        )
    return rows, np.flatnonzero(rates >= limits.animal_call_rate), notes


def _thresholds(store: Store, rows: np.ndarray, error_rate: float) -> Thresholds:
    known, copies = store.moments()[rows, :2].T
    pq = copies / (2 * known) * (1 - copies / (2 * known))
    return Thresholds(error_rate, float(error_rate * (1 - 2 * pq.mean())), float(2 * np.mean(pq**2)))


def _question_power(thresholds: Thresholds, n_snps: int) -> list[str]:
    limit = float(thresholds.highest_opposing(n_snps))
    of_full_sibs = thresholds.unrelated_share / 4 * n_snps
    if limit < of_full_sibs - 4 * np.sqrt(of_full_sibs):
        return []
    return [
        f"warning: {n_snps:,} SNPs do not tell a parent from a full sib: {limit:,.0f} opposing homozygotes are "
        f"allowed, and full sibs have about {of_full_sibs:,.0f}; more SNPs or a smaller error rate would"
    ]


@dataclass(frozen=True)
class _Compared:
    """The comparisons of one file."""

    pedigree: Pedigree
    file: GenotypeFile
    store: Store
    rows: np.ndarray
    animals: np.ndarray  # places of the animals that count
    code: np.ndarray  # (n,) of all genotyped animals in the pedigree, -1: not there
    thresholds: Thresholds

    def report(self, notes: list[str]) -> Parentage:
        counts_as = np.zeros(self.file.n_animals, bool)
        counts_as[self.animals] = True
        parent, progeny, is_dam = find_genotyped_parents(self.pedigree, np.where(counts_as, self.code, -1))
        checked = self._compare(parent, progeny).with_columns(is_dam=is_dam)
        wrong = checked.filter(pl.col("opposing") > pl.col("limit"))
        pairs = self._compatible_pairs()
        is_same = pairs["compared"] - pairs["same"] <= pl.Series(
            self.thresholds.highest_different(pairs["compared"].to_numpy())
        )
        duplicates, relatives = pairs.filter(is_same), pairs.filter(~is_same)
        likely = self._likely_parents(relatives, wrong)
        best = (
            likely.group_by("animal", "role", maintain_order=True)
            .first()
            .select("animal", "role", most_likely="candidate")
        )
        conflicts = self._named(wrong, "parent", "progeny").with_columns(
            role=pl.when("is_dam").then(pl.lit("dam")).otherwise(pl.lit("sire"))
        )
        conflicts = (
            conflicts.join(
                best, left_on=["progeny", "role"], right_on=["animal", "role"], how="left", maintain_order="left"
            )
            .select(
                "progeny",
                "parent",
                "role",
                "opposing",
                "compared",
                share=pl.col("opposing") / pl.col("compared"),
                limit="limit",
                most_likely="most_likely",
            )
            .sort("share", descending=True, maintain_order=True)
        )
        facts = {
            "genotypes": self.file.name,
            "genotyped": self.file.n_animals,
            "snps": int(self.rows.size),
            "error_rate": self.thresholds.error_rate,
            "highest_opposing": int(self.thresholds.highest_opposing(self.rows.size)),
            "unrelated_opposing": round(self.thresholds.unrelated_share * self.rows.size),
            "pairs": checked.height,
            "conflicts": wrong.height,
            "duplicates": duplicates.height,
            "animals_with_likely_parents": likely["animal"].n_unique(),
            "animals_with_older_likely_parents": likely.filter("born_before")["animal"].n_unique(),
        }
        named = self._named(duplicates, "first", "second").select(
            "first", "second", "compared", different=pl.col("compared") - pl.col("same")
        )
        notes += self._question_births(likely)
        return Parentage(conflicts, likely, named, facts, (*notes, *self._warnings(conflicts, named, checked.height)))

    def _compare(
        self, first: np.ndarray, second: np.ndarray, names: tuple[str, str] = ("parent", "progeny")
    ) -> pl.DataFrame:
        counts = compare_genotypes(self.store, self.rows, first, second)
        limit = self.thresholds.highest_opposing(counts[:, 1]).astype(np.int64)
        return pl.DataFrame(
            {
                names[0]: first,
                names[1]: second,
                "opposing": counts[:, 0],
                "compared": counts[:, 1],
                "same": counts[:, 2],
                "limit": limit,
            }
        )

    def _compatible_pairs(self) -> pl.DataFrame:
        """List all pairs that may be parent and progeny, or one animal: screened by some SNPs, then compared by all."""
        step = max(1, self.rows.size // SCREENED_SNPS)
        screened = self.rows[::step]
        most = int(self.thresholds.highest_opposing(screened.size))
        pairs = find_compatible_pairs(self.store, screened, self.animals, most)
        compared = self._compare(pairs[:, 0], pairs[:, 1], ("first", "second"))
        return compared.filter(pl.col("opposing") <= pl.col("limit"))

    def _likely_parents(self, relatives: pl.DataFrame, wrong: pl.DataFrame) -> pl.DataFrame:
        """List likely parents of each genotyped animal of the pedigree whose sire or dam is unknown or in conflict."""
        ways = [
            relatives.select("opposing", "compared", animal=a, candidate=b)
            for a, b in (("first", "second"), ("second", "first"))
        ]
        pairs = pl.concat(ways)
        a, b = (self.code[pairs[name].to_numpy()] for name in ("animal", "candidate"))
        ped, n = self.pedigree, self.pedigree.n_animals
        low, high = birth_bounds(ped)
        younger = low[b] >= high[a]  # False where the births of relatives leave it open
        is_older = high[b] <= low[a]
        born_before = pl.Series(np.where(is_older, 1.0, np.nan), nan_to_null=True) == 1.0
        is_child = np.where(b >= 0, (ped.sire[b] == a) | (ped.dam[b] == a), False) & (a >= 0)
        is_known = np.where(a >= 0, (ped.sire[a] == b) | (ped.dam[a] == b), False) & (b >= 0)
        was_sire, was_dam = np.zeros(n + 1, bool), np.zeros(n + 1, bool)
        for was_parent, parents in ((was_sire, ped.sire), (was_dam, ped.dam)):
            was_parent[parents[(parents >= 0) & (parents < n)]] = True
        open_roles = self._open_roles(wrong)
        frames = []
        for role, is_other_sex in (("sire", was_dam), ("dam", was_sire)):
            chosen = open_roles[role][a] & (a >= 0) & ~is_other_sex[b] & ~younger & ~is_child & ~is_known
            is_open = np.flatnonzero(chosen & ~is_older)
            chosen[is_open] = ~are_descendants(ped, a[is_open], b[is_open])
            frames.append(pairs.with_columns(role=pl.lit(role), born_before=born_before).filter(pl.Series(chosen)))
        ranked = pl.concat(frames).sort(
            "animal", "role", pl.col("born_before").is_null(), pl.col("opposing") / pl.col("compared"), "candidate"
        )
        ranked = ranked.group_by("animal", "role", maintain_order=True).head(MAX_LIKELY_PARENTS)
        return self._named(ranked, "animal", "candidate").select(
            "animal", "role", "candidate", "opposing", "compared", "born_before"
        )

    def _question_births(self, likely: pl.DataFrame) -> list[str]:
        """A note where nobody knows which of two animals is the parent."""
        is_open = likely.filter(pl.col("born_before").is_null())
        if is_open.is_empty():
            return []
        animal, candidate = is_open.row(0, named=True)["animal"], is_open.row(0, named=True)["candidate"]
        why = "the pedigree has no births" if self.pedigree.birth is None else "a birth is unknown"
        n_animals = is_open["animal"].n_unique()
        return [
            f"likely parents: {counted(is_open.height, 'candidate')} of {counted(n_animals, 'animal')}, such as "
            f"{candidate} of {animal}, may be progeny as well as a parent: {why}, so that genotypes alone do not tell "
            "who is older. born_before is empty there, and such candidates come last; births in the pedigree (a column "
            "of years or dates) would tell"
        ]

    def _open_roles(self, wrong: pl.DataFrame) -> dict[str, np.ndarray]:
        """(n + 1,) bool of each role: the parent is unknown, or in conflict with the animal."""
        n, out = self.pedigree.n_animals, {}
        for role, parents, is_dam in (("sire", self.pedigree.sire, False), ("dam", self.pedigree.dam, True)):
            is_open = np.append((parents < 0) | (parents >= n), False)
            is_open[self.code[wrong.filter(is_dam=is_dam)["progeny"].to_numpy()]] = True
            is_open[n] = False  # -1, animals that the pedigree does not have
            out[role] = is_open
        return out

    def _named(self, frame: pl.DataFrame, *columns: str) -> pl.DataFrame:
        """Ids in place of places."""
        return frame.with_columns(self.file.ids.gather(frame[name]).alias(name) for name in columns)

    def _warnings(self, conflicts: pl.DataFrame, duplicates: pl.DataFrame, n_pairs: int) -> list[str]:
        out = []
        if conflicts.height:
            shown = [
                f"{parent} as {role} of {progeny}"
                for progeny, parent, role in conflicts.head(SHOWN).select("progeny", "parent", "role").iter_rows()
            ]
            out.append(
                f"warning: {conflicts.height:,} of {n_pairs:,} pairs of parent and progeny are in conflict with their "
                f"genotypes, such as {', '.join(shown)}"
            )
        if duplicates.height:
            shown = [f"{a} and {b}" for a, b in duplicates.head(SHOWN).select("first", "second").iter_rows()]
            out.append(
                f"warning: {counted(duplicates.height, 'pair')} of animals with the same genotypes: {', '.join(shown)}"
            )
        return out


def question_both_sexes(read: Pedigree) -> list[str]:
    """A warning with their number; a note where a plant is both parents of one progeny, as others may then be both."""
    n = read.n_animals
    none = np.iinfo(np.int64).max
    first = []  # of each animal, the first row as a sire and as a dam
    is_selfed = (read.sire == read.dam) & (read.sire >= 0) & (read.sire < n)
    for parent in (read.sire, read.dam):
        rows, is_known = np.full(n, none), (parent >= 0) & (parent < n) & ~is_selfed
        np.minimum.at(rows, parent[is_known], read.row[is_known])
        first.append(rows)
    both = np.flatnonzero((first[0] < none) & (first[1] < none))
    if not both.size:
        return []
    both = both[np.argsort(np.maximum(*first)[both], kind="stable")]
    shown = "; ".join(
        f"{quoted(read.ids[int(b)])} is a sire in row {first[0][b]} and a dam in row {first[1][b]}"
        for b in both[:SHOWN]
    )
    more = f"; and {both.size - SHOWN:,} more" if both.size > SHOWN else ""
    said = f"{read.name}: {counted(both.size, 'animal', 'is')} sire of some and dam of others: {shown}{more}"
    if is_selfed.any():
        return [f"{said}. Some are both parents of one progeny: these are plants"]
    return [
        f"warning: {said}. Plants may be both; among animals, sire and dam of a row are exchanged, or two have one id"
    ]
