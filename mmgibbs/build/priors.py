"""Start and prior of each covariance matrix as sampled, and the refusal of flat ones that have no posterior.

Traits in categories have a residual variance of 1, so that a flat prior of a genetic variance is not held back by the
data: as the variance grows, the likelihood of a binary animal model tends to a constant above 0, and flat fixed effects
add to it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mmgibbs.config.priors import PriorSection
from mmgibbs.config.variances import Variance
from mmgibbs.errors import ConfigError, ModelError
from mmgibbs.models.covariance import CovarianceModel
from mmgibbs.models.design import Design
from mmgibbs.models.priors import FLAT
from mmgibbs.models.priors.base import CovariancePrior, PriorContext
from mmgibbs.models.structures.base import Structure
from mmgibbs.models.terms import Term

MOST_FLAT = 1.25  # times the mean square that a flat prior may add to before it is said


def unit_traits(design: Design) -> set[int]:
    """Traits whose residual variance is 1 by convention."""
    return {r.trait for r in design.responses if r.has_unit_residual}


def make_prior(
    spec: Variance, name: str, labels: Sequence[str], traits: Sequence[int], design: Design, phenotypic: np.ndarray
) -> CovariancePrior:
    """The prior of a section of `variances`; traits: that of each component, phenotypic (T,): its variance."""
    return FLAT if spec.prior is None else build_prior(spec.prior, name, labels, traits, design, phenotypic)


def build_prior(
    section: PriorSection,
    name: str,
    labels: Sequence[str],
    traits: Sequence[int],
    design: Design,
    phenotypic: np.ndarray,
) -> CovariancePrior:
    """Build the prior of its section: see `make_prior`."""
    unit = np.array([t in unit_traits(design) for t in traits])
    context = PriorContext(f"variances.{name}.prior", labels, unit, np.sqrt(phenotypic[list(traits)]))
    return section.kind_class.build(section, context)


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
    prior: CovariancePrior,
    structure: Structure | None = None,
) -> CovarianceModel:
    """The matrix of a section of `variances`, its start from the data where it has none."""
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
    return CovarianceModel(np.where(within, start, 0.0), fixed, blocks, prior, name, structure=structure)
