"""Records of animals without genotypes, with SNP effects: the single-step model of Fernando, Dekkers & Garrick (2014).

Genet. Sel. Evol. 46:50. With x the centred genotypes, g animals that have some and n those that have none,

    u_g = x_g' a                     x_n = -(A^nn)^-1 A^ng x_g                   (pedigree/expected.py)
    u_n = x_n' a + epsilon_n         epsilon_n ~ N(0, (A^nn)^-1 sigma2)

so that epsilon is the pedigree's random effect with the animals of g set to 0, and the columns of animals without
genotypes are real numbers. The mean of genotyped animals need not be that of the base: J is -1 for them, and
-(A^nn)^-1 A^ng J_g for the others, a fixed regression. A genotype that is missing among others counts as the mean.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import polars as pl

from mmgibbs.config import Analysis
from mmgibbs.config.markers import J
from mmgibbs.data.covariates import Basis
from mmgibbs.data.fixed import CovariateEffect
from mmgibbs.data.genotypes.prepare import PreparedGenotypes
from mmgibbs.data.phenotypes import Phenotypes
from mmgibbs.data.prepared import LevelLabels
from mmgibbs.data.relationships import Kin
from mmgibbs.errors import DataError
from mmgibbs.genotypes.store import GenotypeSource, RealGenotypes, Store, dosages, store_genotypes
from mmgibbs.models.terms import Term
from mmgibbs.pedigree.expected import ConditionalExpectation
from mmgibbs.pedigree.tables import counted

CONSTANT = 1e-10  # J that varies less is constant
J_OF_GENOTYPED = -1.0
MOST_SOLVED = 20_000  # animals for whose reliability what genotypes leave is computed: a solution for each


@dataclass(frozen=True)
class Imputed:
    """The animals with records and without genotypes, and what relatives say of them."""

    term: str  # the random effect that holds epsilon
    level: str  # the column of the records with its animals
    traits: tuple[int, ...]
    ids: pl.Series  # (n,) in the order of the records
    genotypes: PreparedGenotypes
    known: pl.Series  # (g,) ids of the genotyped animals that the pedigree knows,
    held: np.ndarray  # and their codes there
    wanted: np.ndarray  # codes of `ids`
    expected: ConditionalExpectation  # from the values of `known` to those of `ids`
    made: dict[str, tuple[pl.Series, Store]] = field(default_factory=dict)  # the store, once it was asked for

    def store(self, genotyped: pl.Series) -> Store:
        """The genotypes of `genotyped` animals, in this order, then those expected of `ids`, in float32.

        Made once for all terms of SNP effects, which have the animals of one column.
        """
        if "store" not in self.made or not self.made["store"][0].equals(genotyped):
            self.made["store"] = genotyped, self._new_store(genotyped)
        return self.made["store"][1]

    def _new_store(self, genotyped: pl.Series) -> Store:
        of_file = self.genotypes.find_rows
        source = _WithExpected(self, of_file(genotyped), of_file(self.known))
        every = np.arange(source.n_animals)
        return store_genotypes(source, every, self.genotypes.checked.kept_snps, kind=RealGenotypes)

    @cached_property
    def left(self) -> np.ndarray | None:
        """(n,) variance of epsilon of `ids` in units of its own; None where that takes too long to know."""
        return self.expected.unexplained() if len(self.ids) <= MOST_SOLVED else None

    def unexplained(self, n_genotyped: int) -> np.ndarray | None:
        """(animals of the store,) `left`, and 0 of genotyped ones."""
        return None if self.left is None else np.concatenate([np.zeros(n_genotyped), self.left])

    @cached_property
    def _j_by_id(self) -> pl.DataFrame:
        expected = self.expected(np.full((len(self.known), 1), J_OF_GENOTYPED))[:, 0]
        ids = pl.concat([self.genotypes.animals["animal"], self.ids])
        return pl.DataFrame(
            {"id": ids, "j": np.concatenate([np.full(len(ids) - len(expected), J_OF_GENOTYPED), expected])}
        )

    def j(self, ids: pl.Series) -> np.ndarray:
        """(len(ids),) J of animals; 0 where there is none."""
        wanted = pl.DataFrame({"id": ids.cast(pl.String)})
        matched = wanted.join(self._j_by_id, on="id", how="left", maintain_order="left")
        return matched["j"].fill_null(0.0).to_numpy()


def imputed_animals(
    analysis: Analysis, phenotypes: Phenotypes, genotypes: PreparedGenotypes, kin: Kin | None
) -> tuple[Imputed | None, list[str]]:
    """Find the imputed animals and notes; None where no term of SNP effects asks for them.

    DataError where every animal is genotyped.
    """
    section = next((s for s in analysis.model.markers.values() if s.single_step == "epsilon"), None)
    if section is None:
        return None, []
    assert kin is not None, "checked with the analysis"
    random = analysis.model.random
    term = next(
        name
        for name, r in random.items()
        if r.relationship.of_pedigree
        and not r.relationship.of_genotypes
        and any(e.level == section.level for e in r.effects.values())
    )
    relationship = kin.additive(random[term].relationship)
    every = genotypes.animals["animal"]
    codes = kin.pedigree.codes(every)
    known, held = every.filter(codes.is_not_null()), codes.drop_nulls().to_numpy().astype(np.int64)
    if held.size == kin.pedigree.n_animals:
        raise DataError(
            f"model.random.{term}: every animal of the pedigree is genotyped, so that nothing is left for it "
            "to explain; needed an analysis without this effect and without single_step"
        )
    recorded = phenotypes.text(section.level, "level").cast(pl.String).drop_nulls().unique(maintain_order=True)
    ungenotyped = recorded.filter(~recorded.is_in(every.implode()))
    of_others = kin.pedigree.codes(
        ungenotyped
    )  # an id that is no animal of the pedigree is refused with the random effect
    ids, wanted = ungenotyped.filter(of_others.is_not_null()), of_others.drop_nulls().to_numpy().astype(np.int64)
    if not len(ids):
        raise DataError(
            f"model.markers: all {len(recorded):,} animals with records are genotyped: no record has information about "
            f"model.random.{term}; needed records of other animals, or an analysis without this effect and without "
            "single_step"
        )
    names = [t.name for t in analysis.traits]
    imputed = Imputed(
        term,
        section.level,
        tuple(names.index(t) for t in section.traits),
        ids,
        genotypes,
        known,
        held,
        wanted,
        ConditionalExpectation(relationship.relatives, held, wanted),
    )
    notes = [
        f"single_step: the genotypes of {counted(len(ids), 'animal')} with records are predicted from those of "
        f"relatives; {term} is what the SNPs do not explain in the {kin.pedigree.n_animals - held.size:,} animals "
        "without genotypes"
    ]
    if np.ptp(imputed.j(phenotypes.text(section.level, "level"))) < CONSTANT:
        notes.append(f"single_step: {J} is the same for all records and is left out")
    return imputed, notes


def regression_on_j(imputed: Imputed, phenotypes: Phenotypes) -> CovariateEffect | None:
    """The fixed regression of every trait on J; None where J is the same for all records."""
    values = imputed.j(phenotypes.text(imputed.level, "level"))
    if np.ptp(values) < CONSTANT:
        return None
    level = np.zeros(len(values), np.int32)
    return CovariateEffect(
        J, imputed.traits, Basis(values, level, 1, 1, None), [""], None, (None,) * len(imputed.traits)
    )


def drop_genotyped_levels(term: Term, labels: LevelLabels, imputed: Imputed) -> tuple[Term, LevelLabels]:
    """Epsilon: the genotyped animals are set to 0, and are not reported, since their breeding values are the SNPs'."""
    active = np.ones((term.n_levels, term.n_components), bool) if term.active is None else term.active.copy()
    active[imputed.held] = False
    order, diagonal = np.asarray(labels.order), np.full(term.n_levels, np.nan)
    if imputed.left is not None:
        diagonal[imputed.wanted] = imputed.left
    kept = order[~np.isin(order, imputed.held)]
    return replace(term, active=active), replace(labels, order=kept, diagonal=diagonal)


class _WithExpected(GenotypeSource):
    """Genotyped animals, then those whose genotypes are expected ones."""

    real_valued = True

    def __init__(self, imputed: Imputed, rows: np.ndarray, known: np.ndarray):
        """rows: of the genotyped animals in the file, as the store wants them; known: as `expected` wants them."""
        self.imputed, self.rows, self.known = imputed, rows, known
        genotypes = imputed.genotypes
        self.centre, self.mean = np.zeros(genotypes.file.n_snps), np.zeros(genotypes.file.n_snps)
        kept = genotypes.checked.kept_snps
        self.centre[kept], self.mean[kept] = genotypes.centre, genotypes.mean

    @property
    def n_animals(self) -> int:
        return len(self.rows) + len(self.imputed.ids)

    @property
    def n_snps(self) -> int:
        return self.imputed.genotypes.file.n_snps

    def block(self, first: int, stop: int) -> np.ndarray:
        m = dosages(self.imputed.genotypes.file.source.block(first, stop))
        centre, mean = self.centre[first:stop, None], self.mean[first:stop, None]
        known = m[:, self.known].astype(np.float64)
        x = np.where(np.isnan(known), mean, known) - centre
        return np.concatenate([m[:, self.rows], (centre + self.imputed.expected(x.T).T).astype(np.float32)], axis=1)
