"""What a run found of SNP effects: genomic breeding values among the solutions, and `markers.parquet`.

markers.parquet has a row for each SNP of the file, in its order: what the file and the map say of it, its frequency and
call rate, whether it was kept, and why not, and its centre: the copies that are taken from each dosage. For each
trait, null where a term does not have the SNP: effect_TRAIT, its sd and Monte Carlo error (of one copy of the counted
allele, whatever the scale of the analysis), and where the prior has classes pip_TRAIT, the probability that the effect
is not 0, with its Monte Carlo error, and class_k_TRAIT. Where there is a state for every set of traits, state_SET is
the probability that a SNP has an effect on just the traits of SET (state_none, state_milk, state_milk+fat), with
state_mcse_SET. Probabilities are means of the full conditional ones over the draws (Rao-Blackwell).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from mmgibbs.data.markers import MarkerLabels
from mmgibbs.data.prepared import Prepared
from mmgibbs.models.labels import state_labels
from mmgibbs.models.markers import Markers
from mmgibbs.posterior.draw_names import MEAN_VARIANCE, marker_name
from mmgibbs.posterior.moments import PooledMoments
from mmgibbs.posterior.thinned import KeptDraws
from mmgibbs.posterior.zero_counts import effective_draws, raise_errors_of_unseen
from mmgibbs.results.tables import SOLUTION_COLUMNS, reliabilities

FILE = "markers.parquet"
EFFECT, VALUE, CHANCE = 0, 1, 2  # arrays of the pooled moments
TOTAL = "total"  # of those of genomic and polygenic values together
GEBV = "gebv"  # effect of the rows of genomic breeding values


def breeding_values_frame(
    markers: Markers,
    labels: MarkerLabels,
    moments: PooledMoments,
    draws: Mapping[str, np.ndarray],
    traits: Sequence[str],
) -> pl.DataFrame:
    """Rows of the solutions: the genomic breeding value of every genotyped animal, effect `gebv`.

    PEV is the variance of the draws, and of each missing genotype 2pq E(b^2). Reliability is 1 - PEV / (x'x v), v the
    posterior mean of the variance of an effect under its prior, with 2pq in place of x^2 of a missing genotype.
    """
    mean, sd, mcse, ess = (figures[VALUE][:, 0] for figures in (moments.mean, moments.sd, moments.mcse, moments.ess))
    sd = np.sqrt(sd**2 + variance_of_missing(markers, second_moments(moments)))
    trait, variance = traits[markers.trait], prior_variances(markers, draws)
    return breeding_value_columns(markers.name, GEBV, trait, labels.animals, mean, sd, variance, mcse, ess)


def prior_variances(markers: Markers, draws: Mapping[str, np.ndarray]) -> np.ndarray:
    """(n,) of breeding values under the prior, with the posterior mean of the variance of an effect."""
    return squares_of_animals(markers) * float(draws[marker_name(markers.key, MEAN_VARIANCE)].mean())


def breeding_value_columns(
    term: str,
    effect: str,
    trait: str,
    level: pl.Series,
    mean: np.ndarray,
    sd: np.ndarray,
    variance: np.ndarray,
    mcse: np.ndarray | None = None,
    ess: np.ndarray | None = None,
    inbreeding: np.ndarray | None = None,
) -> pl.DataFrame:
    """The columns of the solutions; variance (n,): of each value under its prior, NaN where unknown."""
    n = len(mean)
    blank = np.full(n, np.nan)
    reliability = reliabilities(sd**2, variance)
    text = lambda word: pl.repeat(word, n, dtype=pl.String, eager=True)
    columns: dict[str, Any] = {
        "term": text(term), "effect": text(effect), "trait": text(trait), "level": level,
        "mean": mean, "sd": sd, "mcse": blank if mcse is None else mcse, "ess": blank if ess is None else ess,
        "pev": sd**2, "reliability": reliability,
        "accuracy": np.where(np.isnan(reliability), np.nan, np.sqrt(np.fmax(reliability, 0.0))),
        "inbreeding": blank if inbreeding is None else inbreeding,
    }  # fmt: skip
    return pl.DataFrame([_column(name, columns[name]) for name in SOLUTION_COLUMNS])


def second_moments(moments: PooledMoments) -> np.ndarray:
    """(p,) posterior mean of the square of each effect."""
    return moments.mean[EFFECT][:, 0] ** 2 + moments.sd[EFFECT][:, 0] ** 2


def shared_moments(
    first: Markers, second: Markers, moments: Mapping[str, PooledMoments], draws: Mapping[str, KeptDraws]
) -> np.ndarray:
    """(p of first,) posterior mean of the product of the effects of two terms; 0 where the second lacks the SNP. The
    covariance is that of the kept draws, 0 without any.
    """
    _, in_first, in_second = np.intersect1d(first.number, second.number, assume_unique=True, return_indices=True)
    of_both = moments[first.key].mean[EFFECT][in_first, 0] * moments[second.key].mean[EFFECT][in_second, 0]
    if first.key in draws and second.key in draws:
        a, b = (draws[m.key].values.reshape(-1, m.n_snps) for m in (first, second))
        if len(a) > 1:
            away = (effects - effects.mean(axis=0, dtype=np.float64) for effects in (a[:, in_first], b[:, in_second]))
            of_both = of_both + np.einsum("dj,dj->j", *away) / (len(a) - 1)
    out = np.zeros(first.n_snps)
    out[in_first] = (
        of_both * second.scale[in_second] / first.scale[in_first]
    )  # both effects on the scale of the first term
    return out


def variance_of_missing(markers: Markers, moments: np.ndarray | float) -> np.ndarray:
    """(n,) what the missing genotypes of an animal add to the variance of its breeding value: the sum over them of
    2pq scale^2 E(b^2), in Hardy-Weinberg proportions; moments (p,): E(b^2) on the scale of the analysis.
    """
    store = markers.genotypes
    weights = genotype_variances(markers.mean) * markers.scale**2 * moments
    return store.product(store.every, store.missing(), weights)


def genotype_variances(mean: np.ndarray) -> np.ndarray:
    """(p,) 2pq of SNPs with 2p copies in the mean."""
    return np.asarray(mean) * (1 - np.asarray(mean) / 2)


def squares_of_animals(markers: Markers) -> np.ndarray:
    """(n,) sum over the SNPs of x_aj^2, of missing genotypes of its expectation: the prior variance of a breeding value
    in units of that of an effect."""
    store = markers.genotypes
    out = variance_of_missing(markers, 1.0)
    values = store.values(markers.centre, markers.scale, markers.mean)
    for first in range(0, store.n_snps, 1024):
        x = store.decode(store.every[first : first + 1024], values)
        out += np.einsum("ja,ja->a", x, x, dtype=np.float64)
    return out


def markers_file(
    prepared: Prepared, moments_by_term: Mapping[str, PooledMoments], states: Mapping[str, PooledMoments]
) -> dict[str, pl.DataFrame]:
    """File name -> table; {} without SNP effects. states: of terms with states over several traits, by key."""
    if not prepared.design.markers or prepared.genotypes is None:
        return {}
    frame = prepared.genotypes.checked.snps

    def all_snps_column(name: str, values: np.ndarray, number: np.ndarray) -> pl.Series:
        """number: of each SNP in the file."""
        out = np.full(frame.height, np.nan)
        out[number] = values
        return _column(name, out)

    columns = [all_snps_column("centre", prepared.genotypes.centre, prepared.genotypes.checked.kept_snps)]
    terms = {m.name for m in prepared.design.markers}
    for m in prepared.design.markers:
        moments, trait = moments_by_term[m.key], prepared.design.traits[m.trait]
        ending = column_suffix(m.name, trait, terms)
        for what, column in (("effect", moments.mean), ("effect_sd", moments.sd), ("effect_mcse", moments.mcse)):
            columns.append(all_snps_column(f"{what}_{ending}", column[EFFECT][:, 0] * m.scale, m.number))
        chances, errors = moments.mean[CHANCE], _errors_of_chances(moments, CHANCE)
        if chances.shape[1] > 1:
            columns.append(all_snps_column(f"pip_{ending}", 1 - chances[:, 0], m.number))
            columns.append(all_snps_column(f"pip_mcse_{ending}", errors[:, 0], m.number))
        if chances.shape[1] > 2:
            columns += [
                all_snps_column(f"class_{k}_{ending}", chances[:, k], m.number) for k in range(chances.shape[1])
            ]
    for m in prepared.design.markers:
        if m.joint is None or not m.first or m.joint_key not in states:
            continue
        of_states = states[m.joint_key]
        errors = _errors_of_chances(of_states, 0)
        for k, label in enumerate(state_labels(m.joint, prepared.design.traits)):
            ending = column_suffix(m.name, label, terms)
            columns.append(all_snps_column(f"state_{ending}", of_states.mean[0][:, k], m.number))
            columns.append(all_snps_column(f"state_mcse_{ending}", errors[:, k], m.number))
    return {FILE: frame.with_columns(columns)}


def _errors_of_chances(moments: PooledMoments, i: int) -> np.ndarray:
    """(p, K) MCSE of the probabilities of the classes, array i; of classes that the draws never saw not below that of a
    count of zero.
    """
    mean = moments.mean[i]
    if mean.shape[1] < 2:
        return moments.mcse[i]
    effective = effective_draws(moments.sd[i], moments.ess[i], moments.n_draws, moments.n_batches)
    return raise_errors_of_unseen(mean, moments.mcse[i], moments.n_draws, effective)


def column_suffix(term: str, trait: str, terms: Collection[str]) -> str:
    """Return the suffix of the columns of one term and trait: the trait, after the term where there are several."""
    return f"{term}_{trait}" if len(terms) > 1 else trait


def _column(name: str, values: Any) -> pl.Series:
    if isinstance(values, pl.Series):
        return values.alias(name)
    return pl.Series(name, np.ascontiguousarray(values, np.float64), nan_to_null=True)
