"""Start and prior of each covariance matrix as sampled, and the refusal of flat ones that have no posterior.

Traits in categories have a residual variance of 1, so that a flat prior of a genetic variance is not held back by the
data: as the variance grows, the likelihood of a binary animal model tends to a constant above 0, and flat fixed effects
add to it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mmgibbs.config.variances import HalfT as HalfTSection
from mmgibbs.config.variances import Prior, UniformHeritability, Variance
from mmgibbs.errors import ConfigError, ModelError
from mmgibbs.models import priors
from mmgibbs.models.covariance import CovarianceModel
from mmgibbs.models.design import Design
from mmgibbs.models.terms import Term

MOST_FLAT = 1.25  # times the mean square that a flat prior may add to before it is said
WIDE = 1e3  # scale of a half-t by default, in phenotypic standard deviations, of traits whose scale the data know


def unit_traits(design: Design) -> set[int]:
    """Traits whose residual variance is 1 by convention."""
    return {r.trait for r in design.responses if r.has_unit_residual}


def make_prior(
    spec: Variance, name: str, labels: Sequence[str], traits: Sequence[int], design: Design, phenotypic: np.ndarray
) -> dict:
    """df, scale and scale_prior of a CovarianceModel; traits: that of each component, phenotypic (T,): its variance."""
    unit = [t in unit_traits(design) for t in traits]
    given = spec.prior
    where = f"variances.{name}.prior"
    if isinstance(given, Prior):
        return {"df": given.df, "scale": np.array(given.scale, float)}
    if isinstance(given, UniformHeritability):
        if unit != [True]:
            raise ConfigError(
                f"{where}.h2: found uniform for {', '.join(labels)}; it is for one component of a trait whose residual "
                "variance is 1 (binary or ordinal); needed prior: {half_t: {}}"
            )
        return {"scale_prior": priors.UniformHeritability()}
    if isinstance(given, HalfTSection):
        return {"scale_prior": half_t_prior(given, name, labels, traits, design, phenotypic)}
    return {}


def half_t_prior(
    given: HalfTSection,
    name: str,
    labels: Sequence[str],
    traits: Sequence[int],
    design: Design,
    phenotypic: np.ndarray,
) -> priors.HalfT:
    """nu, and the scale of each component."""
    where, unit = f"variances.{name}.prior", [t in unit_traits(design) for t in traits]
    A = np.where(unit, 1.0, WIDE * np.sqrt(phenotypic[list(traits)]))
    if given.half_t.scale is not None:
        if len(given.half_t.scale) not in (1, len(labels)):
            raise ConfigError(
                f"{where}.half_t.scale: found {len(given.half_t.scale)} numbers, needed one, or one for each of "
                f"{', '.join(labels)}"
            )
        A = np.broadcast_to(np.array(given.half_t.scale), len(labels)).astype(float)
    return priors.HalfT(given.half_t.df, A)


def refuse_flat(term: Term, labels: Sequence[str], design: Design) -> list[str]:
    """ModelError where a flat variance of a trait in categories has no posterior; a warning where it may have none."""
    observed = design.patterns[design.pattern]
    warnings = []
    for component, (effect, trait) in enumerate(zip(term.component_effect, term.component_trait, strict=True)):
        if int(trait) not in unit_traits(design):
            continue
        level = term.effects[int(effect)].level[observed[:, trait]]
        level = level[level >= 0]
        if np.unique(level).size == level.size:
            raise ModelError(
                f"variances.{term.name}.prior: found flat for {labels[component]}, whose {level.size:,} records have a "
                "level each: the posterior does not exist, since the residual variance is 1 and nothing limits this "
                "one; needed prior: {h2: uniform} (the default), {half_t: {}} or {df: ..., scale: ...}"
            )
        warnings.append(
            f"variances.{term.name}.prior: flat for {labels[component]}, whose residual variance is 1: the posterior "
            "may not exist, and draws may diverge; {h2: uniform} is the default"
        )
    return warnings


def warn_of_few_levels(term: Term, covariance: CovarianceModel) -> list[str]:
    """A warning where a flat prior counts for much beside the levels: were the effects of q levels known, the posterior
    mean of a k x k matrix under a flat prior would be q / (q - 2 k - 2) times their mean squares and products.
    """
    met = np.zeros(term.n_levels, bool)  # np.unique takes 300 times as long
    for effect in term.effects:
        met[effect.level[effect.level >= 0]] = True
    q = int(np.count_nonzero(met))
    k = max(len(block) for block in covariance.blocks)
    degrees_left = q - 2 * k - 2
    if degrees_left > 0 and q / degrees_left <= MOST_FLAT:
        return []
    would = f"would be {q / degrees_left:.1f} times their mean square" if degrees_left > 0 else "would not exist"
    return [
        f"variances.{term.name}: a flat prior, and {q:,} levels with records: if their effects were known, the "
        f"posterior mean of the variance {would}; read the median, or give a proper prior "
        f"(variances.{term.name}.prior: {{half_t: {{}}}})"
    ]


def covariance_model(
    spec: Variance,
    default: np.ndarray,
    blocks: tuple[tuple[int, ...], ...],
    all_fixed: bool,
    name: str,
    labels: Sequence[str],
    prior: dict,
) -> CovarianceModel:
    """The matrix of a section of `variances`, its start from the data where it has none; prior: that of make_prior."""
    fixed = all_fixed or spec.fixed
    if spec.start is None and fixed:
        raise ConfigError(f"variances.{name}: found no start, needed the variance at which it is fixed")
    start = default if spec.start is None else np.array(spec.start, float)
    for label, variance in zip(labels, np.diag(start), strict=True):
        if not variance > 0:
            raise ModelError(
                f"variances.{name}: found no start, and none can be guessed for {label}, which does not vary; "
                "needed a start"
            )
    within = np.zeros(start.shape, bool)
    for block in blocks:
        within[np.ix_(block, block)] = True
    return CovarianceModel(
        start=np.where(within, start, 0.0),
        fixed=fixed,
        blocks=blocks,
        name=name,
        **prior,
    )
