"""By which classes the records of a trait that is not normal are checked against the model, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mmgibbs.build.observed_scale import evenly
from mmgibbs.build.residual import reference_class
from mmgibbs.data.fixed import INTERCEPT
from mmgibbs.data.prepared import Prepared
from mmgibbs.models.design import Design
from mmgibbs.models.response import Categories, Count
from mmgibbs.posterior.draw_names import liability_name, predicted_name, threshold_name
from mmgibbs.posterior.observed_scale import ObservedScale
from mmgibbs.posterior.predictive import PredictedClasses
from mmgibbs.posterior.result import posterior_mean
from mmgibbs.results.predictive import ExtremeLevels

FEW = 12  # classes shown


def predicted_classes(prepared: Prepared) -> tuple[PredictedClasses, ...]:
    """One for each trait in categories or of counts."""
    responses = [r for r in prepared.design.responses if isinstance(r, (Categories, Count))]
    return tuple(_predict_response(prepared, r) for r in responses)


def _predict_response(prepared: Prepared, response: Categories | Count) -> PredictedClasses:
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
    exposure = response.exposure[records] if isinstance(response, Count) else np.ones(records.size)
    return PredictedClasses(
        trait=t,
        draws=predicted_name(t),
        effect=effect,
        classes=classes,
        labels=response.labels if isinstance(response, Categories) else (),
        records=records,
        of_class=level[records],
        observed=(response.category if isinstance(response, Categories) else response.count)[records],
        exposure=exposure,
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
        if not isinstance(response, Categories):
            continue
        seen, last = response.category >= 0, len(response.labels) - 1
        for term, labels in zip(design.terms, prepared.levels, strict=True):
            for effect in term.effects:
                if term.kind != "fixed" or effect.covariates is not None or response.trait not in effect.traits:
                    continue
                met = seen & (effect.level >= 0)
                low, high = np.full(term.n_levels, last + 1), np.full(term.n_levels, -1)
                np.minimum.at(low, effect.level[met], response.category[met])
                np.maximum.at(high, effect.level[met], response.category[met])
                extreme = np.flatnonzero((high == 0) | (low == last))
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
        if not isinstance(response, Categories):
            continue
        t, name = response.trait, design.traits[response.trait]
        scale = next((s for s in scales if s.liability == liability_name(t, reference_class(design, t))), None)
        if scale is None:
            continue
        mean, of_fixed, V = posterior_mean(draws[scale.liability])[:3]
        free = posterior_mean(draws[threshold_name(t)]) if len(response.labels) > 2 else np.empty(0)
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
