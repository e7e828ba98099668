"""Adjusted means of a run: at given variances from the factor of C, in sampling from the draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from mmgibbs.build.assemble import Assembled
from mmgibbs.build.means import form_matrix
from mmgibbs.engines.direct.linear_forms import form_covariances
from mmgibbs.equations.base import layout
from mmgibbs.likelihood.matrices import Variances
from mmgibbs.models.design import Design
from mmgibbs.models.relationships.identity import Identity
from mmgibbs.posterior.adjusted_means import AdjustedMeans, MeansMoments
from mmgibbs.posterior.result import posterior_mean
from mmgibbs.results.means import MeansTable
from mmgibbs.runs.estimates import PosteriorEstimates

EFFECTS = ".effects"  # after the name of means: the random effects in them, without the rest


@dataclass(frozen=True)
class _Forms:
    name: str
    matrix: sp.csr_array


def solve_means(
    design: Design,
    wanted: Sequence[AdjustedMeans],
    variances: Variances,
    theta: Sequence[np.ndarray],
) -> dict[str, MeansMoments]:
    """Means and their covariance at these variances; theta: solutions on the user's scale, (q, k) per term."""
    if not wanted:
        return {}
    places = layout(design)
    components = [k for _, k in places.shapes]
    forms = [_Forms(m.name, form_matrix(m.parts, len(m.levels), places.first, components)) for m in wanted]
    forms += [
        _Forms(m.name + EFFECTS, form_matrix(m.parts[:1], len(m.levels), places.first, components))
        for m in wanted
        if m.random is not None and m.is_of_levels and _is_unrelated(design, m)
    ]
    covariances = form_covariances(design, variances, [form.matrix for form in forms])
    values = places.join(list(theta))
    return {f.name: MeansMoments(f.matrix @ values, V) for f, V in zip(forms, covariances, strict=True)}


def _is_unrelated(design: Design, means: AdjustedMeans) -> bool:
    assert means.random is not None, "asked before"
    return isinstance(design.terms[means.random[0]].relationship, Identity)


def means_tables(assembled: Assembled, estimates: PosteriorEstimates) -> list[MeansTable]:
    """Make the tables of each effect and trait in `output.means`, in the order of the analysis."""
    design, is_drawn = assembled.model.design, estimates.facts["method"] == "gibbs"
    matrices = {info.name: info.matrix for info in assembled.terms}
    at_bound = _traits_at_bound(design, estimates)
    tables = []
    for means in (m for m in assembled.model.means if m.is_of_levels):
        variance, of_effects = None, estimates.means.get(means.name + EFFECTS)
        if means.random is not None:
            G = posterior_mean(estimates.draws[matrices[means.effect]])
            variance = float(G[means.random[1], means.random[1]])
        tables.append(
            MeansTable(
                means,
                estimates.means[means.name],
                None if is_drawn else _count_freedom(design, design.traits.index(means.trait)),
                variance,
                None if of_effects is None else of_effects.covariance,
                design.traits.index(means.trait) not in at_bound,
            )
        )
    return tables


def _traits_at_bound(design: Design, estimates: PosteriorEstimates) -> set[int]:
    """Traits with a term, or residuals, whose variance is what the upper bound of a correlation makes of it.

    The likelihood rises with the variance beyond the bound, so that a standard error of a mean would be too small.
    """
    correlations = None if estimates.estimates is None else estimates.estimates.correlations
    out: set[int] = set()
    if correlations is None:
        return out
    for n in np.flatnonzero(correlations.decides_variance):
        source = correlations.sources[n]
        if source.term is not None:
            out |= set(design.terms[source.term].component_trait.tolist())
        elif source.group is not None:
            out.add(design.correlated[source.group].trait)
    return out


def _count_freedom(design: Design, t: int) -> int:
    """Records of the trait less its fixed effects that can be estimated."""
    n = int(np.count_nonzero(design.patterns[:, t][design.pattern]))
    for term in design.terms:
        if term.kind == "fixed":
            of_trait = np.flatnonzero(term.component_trait == t)
            n -= term.n_levels * of_trait.size if term.active is None else int(term.active[:, of_trait].sum())
    return max(n, 1)
