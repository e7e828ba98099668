"""Traits that are not normal, on the scale of their records: probabilities, moments, predicted classes and extreme
levels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from mmgibbs.build.residual import reference_class
from mmgibbs.build.totals import make_total
from mmgibbs.config.markers import J
from mmgibbs.data.fixed import INTERCEPT
from mmgibbs.data.genotypes.imputed import MOST_SOLVED
from mmgibbs.data.levels import lookup
from mmgibbs.data.prepared import Prepared
from mmgibbs.errors import ConfigError
from mmgibbs.models.design import Design
from mmgibbs.models.families import Response
from mmgibbs.models.terms import Term
from mmgibbs.posterior.draw_names import (
    liability_name,
    matrix_name,
    observed_name,
    predicted_name,
    threshold_name,
    trait_moments_name,
)
from mmgibbs.posterior.model_parts import TermInfo
from mmgibbs.posterior.observed_scale import (
    MOST,
    FixedContribution,
    GenomicContribution,
    ObservedScale,
    Population,
    observed_names,
)
from mmgibbs.posterior.predictive import PredictedClasses
from mmgibbs.posterior.probabilities import Probabilities
from mmgibbs.posterior.result import posterior_mean
from mmgibbs.posterior.trait_moments import TraitMoments
from mmgibbs.posterior.variance_shares import (
    correlated_effects,
    covariate_term_names,
    direct_component,
    random_components,
)
from mmgibbs.results.predictive import ExtremeLevels


def observed_scales(
    design: Design,
    terms: Sequence[TermInfo],
    marker_levels: Sequence[str] = (),
    diagonals: Mapping[str, np.ndarray] | None = None,
) -> tuple[ObservedScale, ...]:
    """Build a scale for each trait in categories or of counts, and for each of its residual classes.

    marker_levels: the column of the genotyped animals of each term of SNP effects. diagonals: random term -> (q,) the
    variance of each level in units of its own, of those that hold what predicted genotypes leave (single_step); None
    of the traits of such a term where a level with records has none.
    """
    diagonal_of = {} if diagonals is None else diagonals
    unknown = {t for info in terms if info.name in diagonal_of and not _known(design, info.name, diagonal_of[info.name])
               for t in info.trait_of_component}  # fmt: skip
    return tuple(
        scale
        for response in design.responses
        if response.criterion and response.trait not in unknown
        for scale in _response_scale(design, terms, marker_levels, diagonal_of, response)
    )


def _known(design: Design, name: str, diagonal: np.ndarray) -> bool:
    term = next(t for t in design.terms if t.name == name)
    return bool(np.isfinite(diagonal[np.unique(term.effects[0].level)]).all())


def residual_diagonals(prepared: Prepared) -> dict[str, np.ndarray]:
    """The `diagonals` of observed_scales: 0 for genotyped animals, NaN where it is not known."""
    return {
        term.name: np.where(term.active[:, 0], labels.diagonal, 0.0)
        for term, labels in zip(prepared.design.terms, prepared.levels, strict=True)
        if labels.diagonal is not None and term.active is not None
    }


def _response_scale(
    design: Design,
    terms: Sequence[TermInfo],
    marker_levels: Sequence[str],
    diagonals: Mapping[str, np.ndarray],
    response: Response,
) -> list[ObservedScale]:
    t, parts = response.trait, []
    labels = response.labels
    scores = parse_scores(labels)
    on_trait = [] if covariate_term_names(terms, t) else random_components(terms, t)
    direct = direct_component(terms, on_trait)
    related = [(i, c) for i, c in on_trait if terms[i].related]
    animal_effect = direct or (related[0] if len(related) == 1 else None)
    of = lambda effect: None if effect is None else (terms[effect[0]].matrix, effect[1])
    varies = bool(covariate_term_names(terms, t))
    own_markers = () if varies else _markers_by_level(design, t, terms, animal_effect, marker_levels)
    genomic = not varies and any(m.trait == t for m in design.markers)
    observes = design.patterns[:, t]
    for c, name in enumerate(design.residual_classes or ("",)):
        records = np.flatnonzero((observes & (design.class_of_pattern == c))[design.pattern])
        if not records.size:
            continue
        ending = f"|{name}" if name else ""
        names = observed_names(design.traits[t], ending, labels, direct is not None or genomic, bool(scores))
        chosen = evenly(records)
        people = population(design, terms, response, chosen, diagonals)
        draws = observed_name(t, c), liability_name(t, c)
        scale = ObservedScale(
            *draws,
            names,
            people,
            type(response),
            len(labels),
            scores,
            of(direct),
            of(animal_effect),
            own_markers,
            genomic,
        )
        if animal_effect is not None and terms[animal_effect[0]].name in diagonals:
            mean = _diagonal(design, terms[animal_effect[0]].name, chosen, diagonals).mean()
            scale = replace(scale, own_regression=_regression_on_j(design, t, chosen), direct_diagonal=float(mean))
        parts.append(scale)
    return parts


def _diagonal(design: Design, name: str, records: np.ndarray, diagonals: Mapping[str, np.ndarray]) -> np.ndarray:
    """(records,) the variance that the animal's level of a random term has in each, in units of its own."""
    term = next(t for t in design.terms if t.name == name)
    return diagonals[name][term.effects[0].level[records]]


def _regression_on_j(design: Design, trait: int, records: np.ndarray) -> tuple[int, int, float] | None:
    """Term, component, and the mean of J over the records times what makes its slope that of the user's scale."""
    i = next((i for i, t in enumerate(design.terms) if t.name == J and t.kind == "fixed"), None)
    if i is None:
        return None
    component = int(np.flatnonzero(design.terms[i].component_trait == trait)[0])
    values = design.terms[i].effects[0].covariates
    assert values is not None, "a regression"
    scale = next((r.matrix[0, 0] for r in design.rescale if r.term == i and component in r.components), 1.0)
    means = [s.means[0, 0] for s in design.shifts if s.source == i and component in s.source_components]
    # Z = (J - mean) scale and the slope is scale b, b that of the sampler: J times the slope is (Z + mean scale) b
    return i, component, float(values[records, 0].mean() + (means[0] * scale if means else 0.0))


def _markers_by_level(
    design: Design,
    trait: int,
    terms: Sequence[TermInfo],
    animal_effect: tuple[int, int] | None,
    marker_levels: Sequence[str],
) -> tuple[int, ...]:
    """Terms of SNP effects on the trait of the animals of the own effect, or without one of those of the first term."""
    on_trait = [j for j, m in enumerate(design.markers) if m.trait == trait]
    if not on_trait:
        return ()
    column = marker_levels[on_trait[0]]
    if animal_effect is not None:
        info = terms[animal_effect[0]]
        column = info.level_columns[info.effect_of_component[animal_effect[1]]]
    return tuple(j for j in on_trait if marker_levels[j] == column)


def read_probabilities(
    traits: Sequence[str], prepared: Prepared, terms: Sequence[TermInfo], scales: Sequence[ObservedScale]
) -> tuple[Probabilities, ...]:
    """List the probabilities of `output.probabilities`.

    ConfigError where the trait has no effect of the animal itself, or it varies.
    """
    return tuple(make_probabilities(name, prepared, terms, scales, "output.probabilities") for name in traits)


def make_probabilities(
    name: str, prepared: Prepared, terms: Sequence[TermInfo], scales: Sequence[ObservedScale], where: str
) -> Probabilities:
    """Make the probabilities of one trait; errors name `where` it was asked for."""
    design = prepared.design
    t = design.traits.index(name)
    response = next(r for r in design.responses if r.trait == t)
    scale = next((s for s in scales if s.liability == liability_name(t, reference_class(design, t))), None)
    if scale is None:
        raise ConfigError(
            f"{where}: found predicted genotypes (model.markers, single_step) of more than {MOST_SOLVED:,} animals, "
            f"too many to know what they leave of {name} to each; needed fewer records of animals without genotypes"
        )
    if scale.own is None and not scale.own_markers:
        regressions = covariate_term_names(terms, t)
        reason = f"random regressions ({', '.join(sorted(regressions))})" if regressions else "no such effect"
        raise ConfigError(
            f"{where}: found {reason} of {name}; needed an effect of the animal itself, or of its sire, "
            "that is the same at every record"
        )
    of_trait = name, type(response), response.labels
    draws, markers = (scale.liability, threshold_name(t)), scale.own_markers
    animals = prepared.markers[markers[0]].animals if markers else None
    if scale.own is None:
        n = 0 if animals is None else len(animals)
        return Probabilities(*of_trait, None, 0, n, *draws, markers, np.arange(n))
    matrix, component = scale.own
    term = next(i for i, info in enumerate(design.terms) if matrix_name(i) == matrix)
    if any(prepared.markers[j].predicted for j in markers):
        total = make_total(t, terms, prepared)
        assert total is not None, "the animals' own effect is split into what SNPs explain and leave"
        return Probabilities(*of_trait, term, component, total.codes.size, *draws, markers, total=total)
    places = None if animals is None else lookup(prepared.levels[term].ids, animals).fill_null(-1).to_numpy()
    return Probabilities(*of_trait, term, component, design.terms[term].n_levels, *draws, markers, places)


def evenly(records: np.ndarray, most: int = MOST) -> np.ndarray:
    """Select at most so many of the records, spread evenly over the file."""
    return records[np.linspace(0, records.size - 1, min(records.size, most)).astype(np.int64)]


def parse_scores(labels: Sequence[str]) -> tuple[float, ...]:
    """More than two categories as numbers; () where one of them is a word."""
    try:
        scores = tuple(float(label) for label in labels)
    except ValueError:
        return ()
    return scores if len(labels) > 2 and np.isfinite(scores).all() else ()


def population(
    design: Design,
    terms: Sequence[TermInfo],
    response: Response,
    records: np.ndarray,
    diagonals: Mapping[str, np.ndarray] | None = None,
) -> Population:
    """The chosen records, those that agree in everything that matters joined to one row. diagonals: as of
    observed_scales."""
    exposure = np.log(response.exposures()[records])
    return population_of_trait(design, terms, response.trait, records, exposure, diagonals)


def population_of_trait(
    design: Design,
    terms: Sequence[TermInfo],
    t: int,
    records: np.ndarray,
    exposure: np.ndarray,
    diagonals: Mapping[str, np.ndarray] | None = None,
) -> Population:
    """Build the population of a trait of any type.

    exposure: (records,) on the scale of the logarithm, 0 of all but counts.
    """
    parts = [_fixed_contribution(design, i, e, t, records) for i, e in _fixed_effects(design, t)]
    products = [(info.matrix, _products(design, terms, n, t, records)) for n, info in enumerate(terms)]
    for n, info in enumerate(terms):
        if diagonals is not None and info.name in diagonals:
            diagonal = _diagonal(design, info.name, records, diagonals)
            products[n] = info.matrix, products[n][1] * diagonal[:, None, None]
    of_class = design.class_of_pattern[design.pattern[records]]
    columns = [exposure[:, None], of_class[:, None], *(p.level[:, None] for p in parts), *(p.values for p in parts)]
    columns += [p.reshape(len(p), -1) for _, p in products]
    genotyped, markers, places = _genotyped(design, t, records)
    columns.append(genotyped[:, None])
    _, first, counts = np.unique(np.hstack(columns), axis=0, return_index=True, return_counts=True)
    random = np.hstack([of_class[first, None], *(p[first].reshape(len(first), -1) for _, p in products)])
    _, of_profile, profile = np.unique(random, axis=0, return_index=True, return_inverse=True)
    chosen = first[of_profile]
    return Population(
        trait=t,
        weight=counts / records.size,
        fixed=tuple(FixedContribution(p.term, p.components, p.level[first], p.values[first]) for p in parts),
        log_exposure=exposure[first],
        origin=sum(value for term, c, value in design.offsets if design.terms[term].component_trait[c] == t),
        profile=profile.ravel(),
        products=tuple((name, p[chosen]) for name, p in products),
        residual_class=of_class[chosen],
        genomic=GenomicContribution(markers, places, genotyped[first]) if markers else None,
    )


def _genotyped(design: Design, trait: int, records: np.ndarray) -> tuple[np.ndarray, tuple[int, ...], np.ndarray]:
    """((records,) 1 where SNPs have effects on the record, terms of SNP effects on the trait, (terms, m) places of the
    animals of those m records in their stores).
    """
    markers = tuple(j for j, m in enumerate(design.markers) if m.trait == trait)
    animals = [design.markers[j].animal[records] for j in markers]
    places = np.array(animals, np.int64).reshape(len(markers), records.size)
    known = (places >= 0).any(axis=0) if markers else np.zeros(records.size, bool)
    return known.astype(float), markers, places[:, known] if markers else places


def _fixed_effects(design: Design, trait: int) -> list[tuple[int, int]]:
    """(term, effect) of the fixed effects on a trait."""
    fixed = [(i, term) for i, term in enumerate(design.terms) if term.kind == "fixed"]
    return [(i, e) for i, term in fixed for e, effect in enumerate(term.effects) if trait in effect.traits]


def _fixed_contribution(design: Design, i: int, e: int, trait: int, records: np.ndarray) -> FixedContribution:
    term = design.terms[i]
    components = np.flatnonzero((term.component_trait == trait) & (term.component_effect == e))
    level, values = find_met_levels(term, e, records)
    return FixedContribution(i, components, np.maximum(level, 0).astype(np.int64), values)


def find_met_levels(term: Term, e: int, records: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(level (n,), covariates (n, m)): 0 where a record does not meet the effect."""
    effect = term.effects[e]
    if effect.has_several_levels:  # of levels that are not related
        return effect.level[records].max(axis=1), np.sqrt(effect.sum_powers(2)[records, None])
    level = effect.level[records]
    values = np.ones((records.size, 1)) if effect.covariates is None else effect.covariates[records]
    return level, np.where(level[:, None] >= 0, values, 0.0)


def _products(design: Design, terms: Sequence[TermInfo], n: int, trait: int, records: np.ndarray) -> np.ndarray:
    """(records, k, k) z_a z_b r_ab of a random term, so that sum_ab of it times G_ab is what the term adds to V."""
    info = terms[n]
    term = next(t for t in design.terms if t.name == info.name)
    k = term.n_components
    z, related = np.zeros((records.size, k)), np.eye(k)
    for e in range(len(term.effects)):
        components = np.flatnonzero((term.component_trait == trait) & (term.component_effect == e))
        if components.size:
            z[:, components] = find_met_levels(term, e, records)[1]
    for i, a, b, r in correlated_effects(terms, random_components(terms, trait)):
        if i == n:
            related[a, b] = related[b, a] = r
    return z[:, :, None] * z[:, None, :] * related


MAX_RECORDS = 100_000  # over which means and variances are taken, spread evenly over the file


def trait_moments(asked: Sequence[str], prepared: Prepared, terms: Sequence[TermInfo]) -> tuple[TraitMoments, ...]:
    """List the moments of `output.moments`."""
    return tuple(_trait_moments(prepared.design, terms, prepared.design.traits.index(name)) for name in asked)


def _trait_moments(design: Design, terms: Sequence[TermInfo], t: int) -> TraitMoments:
    records = np.flatnonzero(design.patterns[:, t][design.pattern])
    chosen = evenly(records, MAX_RECORDS)
    people = population_of_trait(design, terms, t, chosen, np.zeros(chosen.size))
    # y is centred by what `origin` adds; a record of 0 may be off by rounding
    values = design.y[records, t] + people.origin
    is_ratio_scale = bool((values > 1e-9 * np.abs(values).max()).all())
    return TraitMoments(design.traits[t], trait_moments_name(t), people, is_ratio_scale)


FEW = 12  # classes shown


def predicted_classes(prepared: Prepared) -> tuple[PredictedClasses, ...]:
    """Predict the classes of each trait in categories or of counts."""
    responses = [r for r in prepared.design.responses if r.criterion]
    return tuple(_predict_response(prepared, r) for r in responses)


def _predict_response(prepared: Prepared, response: Response) -> PredictedClasses:
    design, t = prepared.design, response.trait
    observes = design.patterns[design.pattern, t]
    term = _class_effect(prepared, t)
    if term is None:
        effect, classes, level = "", ("all records",), np.zeros(design.n_records, np.int64)
    else:
        effect, ids = design.terms[term].name, prepared.levels[term].ids
        level = next(e.level for e in design.terms[term].effects if t in e.traits).astype(np.int64)
        sizes = np.bincount(level[observes & (level >= 0)], minlength=len(ids))
        largest = np.sort(np.argsort(-sizes, kind="stable")[: min(FEW, np.count_nonzero(sizes))])
        classes = tuple(ids.gather(largest).to_list())
        position = np.full(len(ids) + 1, -1)
        position[largest] = np.arange(largest.size)
        level = position[level]
    records = evenly(np.flatnonzero(observes & (level >= 0)))
    return PredictedClasses(
        trait=t,
        draws=predicted_name(t),
        effect=effect,
        classes=classes,
        records=records,
        of_class=level[records],
        response=response.keep(records),
    )


def _class_effect(prepared: Prepared, trait: int) -> int | None:
    """The term whose classes are shown: a fixed one before an unrelated random one, and of several that with most
    levels up to FEW, else with fewest.
    """
    design = prepared.design
    plain = [
        (term.kind == "random", term.n_levels > FEW, -term.n_levels if term.n_levels <= FEW else term.n_levels, i)
        for i, term in enumerate(design.terms)
        if term.name != INTERCEPT
        and not term.relationship.related
        and not term.has_several_levels
        and any(trait in e.traits and e.covariates is None for e in term.effects)
    ]
    return min(plain)[-1] if plain else None


def extreme_levels(prepared: Prepared) -> list[ExtremeLevels]:
    """Levels of fixed class effects whose records of a trait in categories all lie in one end category."""
    design, levels = prepared.design, []
    for response in design.responses:
        if not response.labels:
            continue
        seen, down, up = response.one_sided_masks()
        for term, labels in zip(design.terms, prepared.levels, strict=True):
            for effect in term.effects:
                if term.kind != "fixed" or effect.covariates is not None or response.trait not in effect.traits:
                    continue
                met = seen & (effect.level >= 0)
                count, low, high = (
                    np.bincount(effect.level[met], weights, term.n_levels) for weights in (None, down[met], up[met])
                )
                extreme = np.flatnonzero((count > 0) & ((low == count) | (high == count)))
                if extreme.size:
                    ids = labels.ids.gather(extreme[:5]).to_list()
                    trait = design.traits[response.trait]
                    levels.append(ExtremeLevels(trait, term.name, int(extreme.size), term.n_levels, ids))
    return levels


def acceptance(statistics: Mapping[str, np.ndarray], trait: str) -> float | None:
    """Share of the proposed thresholds that was accepted; None where none is free."""
    values = statistics.get(f"threshold_acceptance[{trait}]")
    return None if values is None else float(values.mean())


def liability_facts(
    design: Design,
    scales: Sequence[ObservedScale],
    draws: Mapping[str, np.ndarray],
    statistics: Mapping[str, np.ndarray],
) -> dict[str, dict]:
    """Trait in categories -> posterior means of its liability and thresholds, for run.json: what a picture of it needs.

    With residual classes it is the liability of records of the class where the residual variance is 1.
    """
    out = {}
    for response in design.responses:
        if not response.labels:
            continue
        t, name = response.trait, design.traits[response.trait]
        scale = next((s for s in scales if s.liability == liability_name(t, reference_class(design, t))), None)
        if scale is None:
            continue
        mean, of_fixed, V = posterior_mean(draws[scale.liability])[:3]
        free = posterior_mean(draws[threshold_name(t)]) if response.n_free_thresholds else np.empty(0)
        p = posterior_mean(draws[scale.draws])[: len(response.labels)]
        out[name] = {
            "categories": list(response.labels),
            "thresholds": [0.0, *free],
            "mean": mean,
            "sd": float(np.sqrt(of_fixed + V)),
            "incidence": [1 - p[0], p[0]] if len(response.labels) == 2 else list(p),
            "threshold_acceptance": acceptance(statistics, name),
        }
    return out
