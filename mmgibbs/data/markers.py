"""Terms of SNP effects from `model.markers` and the genotypes of the analysis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from mmgibbs.config import Analysis
from mmgibbs.config.markers import MarkerEffects
from mmgibbs.config.traits import Trait
from mmgibbs.data.genotypes.chosen import chosen_snps, shared_or_in_none
from mmgibbs.data.genotypes.prepare import PreparedGenotypes
from mmgibbs.data.genotypes.windows import windows_notes
from mmgibbs.data.phenotypes import SHOWN, Phenotypes
from mmgibbs.data.traits import Records
from mmgibbs.errors import ConfigError, DataError
from mmgibbs.genotypes.store import Store
from mmgibbs.models.marker_priors import GAMMA_SHAPE
from mmgibbs.models.markers import JointPriorSpec, MarkerPriorSpec, Markers, ResidualPolygenicVariance, states_of_traits
from mmgibbs.pedigree.tables import counted

if TYPE_CHECKING:
    from mmgibbs.data.genotypes.imputed import Imputed


@dataclass(frozen=True)
class MarkerLabels:
    """Labels of one term of SNP effects, as the user knows it."""

    name: str
    animals: pl.Series  # (n,) ids in the order of the store
    recorded: np.ndarray  # (n,) bool
    section: MarkerEffects
    n_genotyped: int  # the others' genotypes are predicted from those of relatives
    unexplained: np.ndarray | None = None  # (n,) with predicted ones: the variance that is left to the pedigree
    j: np.ndarray | None = None  # (n,) with predicted ones: the covariate J of each animal

    @property
    def predicted(self) -> bool:
        """The genotypes of some animals are predicted."""
        return self.n_genotyped < len(self.animals)


def drop_ungenotyped_records(
    analysis: Analysis, phenotypes: Phenotypes, genotypes: PreparedGenotypes
) -> tuple[Phenotypes, list[str]]:
    """The records that are left where a term drops those of animals without genotypes, and notes."""
    notes, known = [], genotypes.animals["animal"].implode()
    for name, section in analysis.model.markers.items():
        if section.single_step != "none":
            continue
        ids = phenotypes.text(section.level, f"model.markers.{name}.level")
        genotyped = ids.is_in(known).fill_null(False).to_numpy()
        ungenotyped = ids.filter(pl.Series(~genotyped)).drop_nulls().unique(maintain_order=True)
        count = int(np.count_nonzero(~genotyped))
        if not count:
            continue
        what = f"{counted(count, 'record', 'is')} of animals without genotypes, such as "
        what += ", ".join(ungenotyped.head(SHOWN)) or "none"
        if section.without_genotypes == "refuse":
            raise DataError(
                f"model.markers.{name}: {what}; needed without_genotypes: keep (only the other terms act on these "
                f"records) or drop{genotypes.explain_left_out(ungenotyped)}"
            )
        notes.append(f"model.markers.{name}: {what}: {'left out' if section.without_genotypes == 'drop' else 'kept'}")
        if section.without_genotypes == "drop":
            phenotypes = phenotypes.keep(genotyped)
    return phenotypes, notes


def marker_terms(
    analysis: Analysis,
    records: Records,
    genotypes: PreparedGenotypes,
    traits: Sequence[Trait],
    imputed: Imputed | None = None,
) -> tuple[list[Markers], list[MarkerLabels], list[str]]:
    """Build a term for each section of `model.markers` and each of its traits, with notes on their SNPs."""
    terms, labels = [], []
    names = [t.name for t in traits]
    sections = analysis.model.markers
    of_term, notes = chosen_snps({name: section.snps for name, section in sections.items()}, genotypes.snps)
    on_traits = {name: section.traits or names for name, section in sections.items()}
    notes += shared_or_in_none(of_term, on_traits, genotypes.snps["snp"])
    for name, section in analysis.model.markers.items():
        if section.windows is not None:
            snps, path = genotypes.snps.filter(pl.Series(of_term[name])), f"model.markers.{name}.windows"
            notes += windows_notes(path, snps, section.windows, genotypes.file.unit)
        ids = records.phenotypes.text(section.level, f"model.markers.{name}.level")
        of_record = pl.DataFrame({"animal": ids}).with_columns(pl.col("animal").cast(pl.String))
        kept = genotypes.animals["animal"]
        has = kept.is_in(of_record["animal"].drop_nulls().unique().implode())
        epsilon = None if section.single_step == "none" else imputed
        if not has.any() and epsilon is None:
            raise DataError(f"model.markers.{name}: no genotyped animal has a record; are ids written in the same way?")
        genotyped = pl.concat([kept.filter(has), kept.filter(~has)])
        order = genotyped if epsilon is None else pl.concat([genotyped, epsilon.ids])
        place = pl.DataFrame({"animal": order, "place": np.arange(len(order), dtype=np.int32)})
        animal = of_record.join(place, on="animal", how="left", maintain_order="left")["place"].fill_null(-1).to_numpy()
        own_snps = np.flatnonzero(of_term[name])
        numbers = genotypes.checked.kept_snps[own_snps]
        store = genotypes.packed(genotyped, snps=numbers) if epsilon is None else epsilon.store(genotyped)
        variance = column_variances(store, len(genotyped))
        scale = 1 / np.sqrt(variance) if section.scale == "standard" else np.ones(len(variance))
        total = float(np.sum(variance * scale**2))
        n = int(has.sum()) if epsilon is None else len(order)
        of_j = None if epsilon is None else epsilon.j(order)
        unexplained = None if epsilon is None else epsilon.unexplained(len(genotyped))
        trait_numbers = [names.index(trait) for trait in section.traits or names]
        for t in trait_numbers:
            if not np.any(records.observed[:, t] & (animal >= 0)):
                raise DataError(f"model.markers.{name}: trait '{names[t]}' has records, but of no genotyped animal")
            if section.variance.start is None and not records.variance[t] > 0:
                raise ConfigError(f"model.markers.{name}: the trait '{names[t]}' does not vary; needed variance.start")
        residual_variance = None
        if section.variance_left == "implied" and epsilon is not None:
            p = genotypes.frequency[own_snps]
            residual_variance = ResidualPolygenicVariance(
                epsilon.term, float(np.sum(2 * p * (1 - p) * scale**2)) * _mean_factor(section)
            )
        joint = (
            joint_prior_spec(section, trait_numbers, total, records.variance[trait_numbers])
            if section.together
            else None
        )
        for i, t in enumerate(trait_numbers):
            spec = (
                prior_spec(section, total, float(records.variance[t]))
                if joint is None
                else _trait_prior(section, joint, i)
            )
            centred = genotypes.centre[own_snps], scale, genotypes.mean[own_snps]
            terms.append(
                Markers(
                    name,
                    t,
                    animal.astype(np.int32),
                    store,
                    numbers,
                    *centred,
                    spec,
                    n,
                    joint,
                    section.single_step != "none",
                    len(genotyped),
                    residual_variance,
                )
            )
            recorded = order.is_in(of_record["animal"].drop_nulls().unique().implode()).to_numpy()
            labels.append(MarkerLabels(name, order, recorded, section, len(genotyped), unexplained, of_j))
    return terms, labels, notes


def column_variances(store: Store, genotyped: int) -> np.ndarray:
    """(q,) of the known genotypes of each SNP among the first animals of the store, above 0."""
    every = genotyped == store.n_animals
    known, first, second = store.moments(None if every else np.arange(store.n_animals) < genotyped).T
    known = np.maximum(known, 1)
    return np.maximum(second / known - (first / known) ** 2, 1e-12)


def prior_spec(section: MarkerEffects, total: float, phenotypic: float) -> MarkerPriorSpec:
    """The numbers of a prior; total: the genetic variance of effects of variance 1, phenotypic: that of the trait.

    A share h of the phenotypic variance asks for effects of variance h phenotypic / (total x mean factor of a class).
    S of nu S / chi2(nu) puts the mode of the prior there, nu S / (nu + 2).
    """
    s, given = section, section.variance
    factor = _mean_factor(section)
    assert not isinstance(given.start, tuple) and not isinstance(given.scale, tuple), "one variance"
    start = given.start if given.start is not None else given.share * phenotypic / (total * factor)
    scale = given.scale if given.scale is not None else start * (given.df + 2) / given.df
    kind, options = s.prior_kind, dict[str, Any]()
    if kind.classes or "classes" in kind.keys:
        options |= {"classes": s.classes, "pi": s.pi.start, "counts": None if s.pi.fixed else s.pi.prior}
    if kind.rate is not None:
        options |= {"shape": GAMMA_SHAPE, "rate": kind.rate(start, scale)}
    if "global_scale" in kind.keys:
        options["global_scale"] = s.global_scale or start**0.5
    return MarkerPriorSpec(s.prior, start, given.fixed, given.df, scale, options)


def _mean_factor(section: MarkerEffects) -> float:
    """Return the mean factor of the variance of an effect over the classes, at the starting shares; else 1."""
    if not section.classes or section.pi.start is None:
        return 1.0
    return float(np.dot(section.classes, section.pi.start))


def joint_prior_spec(
    section: MarkerEffects, traits: Sequence[int], total: float, phenotypic: np.ndarray
) -> JointPriorSpec:
    """The numbers of a prior of effects on T traits together; phenotypic (T,): variances of the traits.

    G ~ IW(df + T - 1, (df + 2) start): each variance then has the prior that `prior_spec` gives it alone, nu = df.
    Shares of single traits make those of sets of traits as if they were independent, with as many imaginary SNPs.
    """
    s, given, T = section, section.variance, len(traits)
    states, factor, pi, counts = _states(section)
    matrix = lambda value: np.array(value) if isinstance(value, tuple) else np.diag(np.broadcast_to(value, T))
    inside = (pi * factor) @ states
    start = matrix(given.start if given.start is not None else given.share * phenotypic / (total * inside))
    scale = start * (given.df + 2) if given.scale is None else given.df * matrix(given.scale)
    one_by_one = s.across_traits == "one_by_one"
    return JointPriorSpec(
        tuple(traits), states, factor, pi, counts, start, given.fixed, given.df + T - 1, scale, one_by_one
    )


def _states(section: MarkerEffects) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]:
    """States (K, T), their factors, shares and counts (or None)."""
    T, pi = len(section.traits), section.pi
    if section.prior_kind.is_normal:
        return np.ones((1, T), bool), np.ones(1), np.ones(1), None
    assert pi.start is not None, "filled in by the configuration"
    counts = None if pi.fixed or pi.prior is None else np.array(pi.prior)
    if section.across_traits == "shared":
        factor = np.array(section.classes)
        return np.repeat(factor[:, None] > 0, T, axis=1), np.where(factor > 0, factor, 1.0), np.array(pi.start), counts
    states = states_of_traits(T)
    if counts is not None and len(counts) == 2:
        counts = counts.sum() * set_shares(counts / counts.sum(), states)
    start = set_shares(np.array(pi.start), states) if len(pi.start) == 2 else np.array(pi.start)
    return states, np.ones(len(states)), start, counts


def set_shares(shares: np.ndarray, states: np.ndarray) -> np.ndarray:
    """(K,) shares of sets of traits from those of no effect and of one on a trait."""
    return np.prod(np.where(states, shares[1], shares[0]), axis=1)


def _trait_prior(section: MarkerEffects, joint: JointPriorSpec, i: int) -> MarkerPriorSpec:
    """Derive the prior of one of the traits of a joint prior."""
    df = section.variance.df
    arguments = float(joint.start[i, i]), joint.fixed, df, float(joint.scale[i, i]) / df
    return MarkerPriorSpec(section.prior, *arguments, {"classes": section.classes} if section.classes else {})
