"""Which total breeding values a model has: traits with SNP effects and a polygenic effect of the same animals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from mmgibbs.config.markers import J
from mmgibbs.data.levels import lookup
from mmgibbs.data.prepared import Prepared
from mmgibbs.posterior.model_parts import TermInfo
from mmgibbs.posterior.moments import PooledMoments
from mmgibbs.posterior.totals import TotalValues
from mmgibbs.posterior.variance_shares import direct_component, random_components
from mmgibbs.results.markers import TOTAL, breeding_value_columns

if TYPE_CHECKING:
    from mmgibbs.build.assemble import Assembled


def with_totals(assembled: Assembled, prepared: Prepared) -> Assembled:
    """The model with the totals of each trait that has both: of animals that are genotyped and levels of the term."""
    every = [make_total(t, assembled.terms, prepared) for t in range(len(prepared.design.traits))]
    totals = tuple(total for total in every if total is not None)
    return replace(assembled, model=replace(assembled.model, totals=totals))


def make_total(trait: int, terms: Sequence[TermInfo], prepared: Prepared) -> TotalValues | None:
    """Make the total of a trait.

    None where it has no SNP effects, no effect of the animal itself, or one that changes with covariates.
    """
    direct = direct_component(terms, random_components(terms, trait))
    if direct is None:
        return None
    info, component = terms[direct[0]], direct[1]
    effect = info.effect_of_component[component]
    markers = [
        j
        for j, (m, labels) in enumerate(zip(prepared.design.markers, prepared.markers, strict=True))
        if m.trait == trait and labels.section.level == info.level_columns[effect]
    ]
    if not markers or info.regression[effect]:
        return None
    term = next(i for i, t in enumerate(prepared.design.terms) if t.name == info.name)
    labels = prepared.levels[term]
    codes = lookup(prepared.markers[markers[0]].animals, labels.ids.head(len(labels.ids) - labels.n_groups))
    places = np.flatnonzero(codes.is_not_null().to_numpy())
    known = codes.drop_nulls().to_numpy().astype(np.int64)
    regression = _j_contribution(trait, prepared, markers, places)
    return TotalValues(trait, term, component, tuple(markers), places, known, regression) if places.size else None


def _j_contribution(
    trait: int, prepared: Prepared, markers: Sequence[int], places: np.ndarray
) -> tuple[int, int, np.ndarray] | None:
    """Return the contribution of the regression on J to total breeding values; None where there is none.

    See data/genotypes/imputed.py.
    """
    j = next((prepared.markers[m].j for m in markers if prepared.markers[m].j is not None), None)
    terms = [i for i, term in enumerate(prepared.design.terms) if term.name == J and term.kind == "fixed"]
    if j is None or not terms:
        return None
    component = int(np.flatnonzero(prepared.design.terms[terms[0]].component_trait == trait)[0])
    return terms[0], component, j[places]


def totals_frame(
    values: TotalValues,
    prepared: Prepared,
    moments: PooledMoments,
    variance: float,
    genomic: Sequence[np.ndarray],
    missing: np.ndarray,
) -> pl.DataFrame:
    """Rows of the solutions, effect `total`, term the names of its terms joined by '+'.

    variance: of the random effect. genomic: for each term of SNP effects (animals of its store,) the prior variance of
    the breeding value; missing: (animals of the store,) what missing genotypes add to PEV. Reliability is
    1 - PEV / ((1 + F) variance + sum of the genomic ones); where genotypes are predicted, the variance that they leave
    to the random effect stands in the place of 1 + F: 0 for genotyped animals.
    """
    design, labels = prepared.design, prepared.levels[values.term]
    term = design.terms[values.term]
    inbreeding = None if labels.inbreeding is None else labels.inbreeding[values.codes]
    markers = prepared.markers[values.markers[0]]
    diagonal = 1.0 + (0.0 if inbreeding is None else inbreeding)
    if term.relationship.prior_diagonal is not None:
        diagonal = term.relationship.prior_diagonal[values.codes]
    if markers.unexplained is not None:
        diagonal = markers.unexplained[values.places]
    prior = variance * diagonal + sum(g[values.places] for g in genomic)
    if not term.relationship.known_diagonal or (markers.predicted and markers.unexplained is None):
        prior = np.full(values.codes.size, np.nan)
    mean, sd, mcse, ess = (
        values_of_chain[0][:, 0] for values_of_chain in (moments.mean, moments.sd, moments.mcse, moments.ess)
    )
    sd = np.sqrt(sd**2 + missing[values.places])
    name = "+".join([term.name, *(design.markers[j].name for j in values.markers)])
    ids = prepared.markers[values.markers[0]].animals.gather(values.places)
    return breeding_value_columns(name, TOTAL, design.traits[values.trait], ids, mean, sd, prior, mcse, ess, inbreeding)
