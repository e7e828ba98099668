"""What a trait that is not normal asks of the rest of the analysis, and what it fills in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mmgibbs.config.decisions import FORMS_ON_RECORDS, TYPES_ON_RECORDS
from mmgibbs.config.effects import Fixed, Model, Random
from mmgibbs.config.fields import plain
from mmgibbs.config.messages import Problems
from mmgibbs.config.priors import list_short_forms, read_prior
from mmgibbs.config.text import spelled
from mmgibbs.config.traits import Trait
from mmgibbs.config.variances import ResidualVariance, Variance
from mmgibbs.errors import describe_unknown_trait
from mmgibbs.models.families import FAMILIES, NORMAL
from mmgibbs.models.priors import PROPER, PROPER_OF_ONE

if TYPE_CHECKING:
    from mmgibbs.config.analysis import Analysis

# Normal prior of fixed effects on liabilities with a residual variance of 1, where the file says nothing: flat effects
# would weigh heritability by their number, and a level whose records are all alike has no posterior under them.
PRIOR_VARIANCE = 10.0


def check_types(analysis: Analysis, problems: Problems) -> None:
    """Refuse what has no meaning with such traits."""
    _check_probabilities(analysis, problems)
    _check_moments(analysis, problems)
    for trait in analysis.traits:
        if analysis.sampler.method != "gibbs" and not trait.is_normal:
            method = analysis.sampler.method
            problems.add(
                ("sampler", "method"),
                f"{method} cannot be combined with traits.{trait.name}.type: {trait.type}, whose liabilities are not "
                "known; needed method: gibbs, with variances.mode: fixed where the variances are known",
            )
            break
    _check_missing(analysis, problems)
    if analysis.data.weights is not None:
        for trait in analysis.traits:
            if not (trait.is_normal or FAMILIES[trait.type].takes_weights):
                problems.add(
                    ("data", "weights"),
                    f"weights cannot be combined with traits.{trait.name}.type: {trait.type}: a record of it is one "
                    "observation; needed a row for each",
                )
                break


def _check_missing(analysis: Analysis, problems: Problems) -> None:
    """Refuse a category that data.missing would take away without a word."""
    for trait in analysis.traits:
        for cell in analysis.data.missing:
            if spelled(cell) in trait.named_categories:
                problems.add(
                    ("data", "missing"),
                    f"found {cell!r}, which is a category of traits.{trait.name} too; needed it to mean one thing",
                )


def _check_moments(analysis: Analysis, problems: Problems) -> None:
    types, where = {t.name: t.type for t in analysis.traits}, ("output", "moments")
    if analysis.model.plugin is not None or analysis.sampler.method != "gibbs":
        return  # refused as a whole
    for name in analysis.output.moments:
        if name not in types:
            problems.add(where, describe_unknown_trait(name, types))
        elif types[name] != NORMAL:
            problems.add(where, f"found {name}, whose type is {types[name]}; needed a normal trait")


def _check_probabilities(analysis: Analysis, problems: Problems) -> None:
    types = {t.name: t.type for t in analysis.traits}
    suited = [name for name, of in types.items() if of in FORMS_ON_RECORDS]
    where = ("output", "probabilities")
    for name in analysis.output.probabilities if analysis.model.plugin is None else ():
        if name not in types:
            problems.add(where, describe_unknown_trait(name, types))
        elif name not in suited:
            problems.add(
                where,
                f"found {name}, whose type is {types[name]}; needed a {TYPES_ON_RECORDS} trait"
                + (f": {', '.join(suited)}" if suited else ""),
            )


def is_vague(effect: Fixed, trait: Trait) -> bool:
    """Check whether an effect on a trait with R = 1 has the default prior, under which differences are reported."""
    of_trait = trait.has_unit_residual and trait.name in effect.traits
    return of_trait and effect.trait_prior(trait.name) == PRIOR_VARIANCE


def with_default_priors(analysis: Analysis, model: Model) -> Model:
    """Class effects on traits with R = 1 have a normal prior unless the file says otherwise; others keep theirs.

    Covariates stay flat: what a variance of 10 means depends on their unit.
    """
    unit = {t.name for t in analysis.traits if t.has_unit_residual}

    def completed(effect: Fixed) -> Fixed:
        of_unit = [t for t in effect.traits if t in unit]
        if not of_unit or effect.kind == "covariate":
            return effect
        if isinstance(effect.prior_variance, dict):
            variances = dict.fromkeys(of_unit, PRIOR_VARIANCE) | effect.prior_variance
            return effect.model_copy(update={"prior_variance": variances})
        if "prior_variance" in effect.model_fields_set:
            return effect
        prior = PRIOR_VARIANCE if len(of_unit) == len(effect.traits) else dict.fromkeys(of_unit, PRIOR_VARIANCE)
        return effect.model_copy(update={"prior_variance": prior})

    return model.model_copy(update={"fixed": {name: completed(effect) for name, effect in model.fixed.items()}})


def with_default_scale_prior(analysis: Analysis, random: Random, variance: Variance) -> Variance:
    """A covariance matrix with components of traits with R = 1 has a proper prior unless the file says otherwise.

    Its likelihood does not hold it back: as it grows, that of a binary animal model tends to a constant above 0.
    """
    unit = {t.name for t in analysis.traits if t.has_unit_residual}
    traits = [t for e in random.effects.values() for t in e.traits for _ in e.coefficients]
    has_loadings = variance.structure.kind_class.is_singular  # and no standard deviations
    if has_loadings or "prior" in variance.model_fields_set or not unit.intersection(traits):
        return variance
    prior = PROPER_OF_ONE if len(traits) == 1 else PROPER
    return variance.model_copy(update={"prior": read_prior(prior)})


def with_unit_start(analysis: Analysis, residual: ResidualVariance) -> ResidualVariance:
    """1 as the start where a trait in categories is the only trait: it can be nothing else."""
    if residual.start is None and len(analysis.traits) == 1 and analysis.traits[0].has_unit_residual:
        return residual.model_copy(update={"start": ((1.0,),)})
    return residual


def with_proper_classes(analysis: Analysis, residual: ResidualVariance) -> ResidualVariance:
    """Residual matrices of classes have a proper prior unless the file says otherwise, where a trait has R = 1 in one.

    In the other classes its likelihood tends to a constant above 0 as its variance grows.
    """
    unit = any(t.has_unit_residual for t in analysis.traits)
    if residual.by is None or not unit or "prior" in residual.model_fields_set:
        return residual
    return residual.model_copy(update={"prior": read_prior(PROPER)})


def check_unit_residuals(analysis: Analysis, residual: ResidualVariance, problems: Problems) -> None:
    """The residual variance of a trait in categories is 1: a start says so, or nothing. With classes of residuals that
    holds for one of them, which the data tell (build/residual.py).
    """
    unit = [i for i, t in enumerate(analysis.traits) if t.has_unit_residual]
    for place, prior in [
        (("variances", "residual"), residual.prior),
        *((("variances", "residual", "classes", name), c.prior) for name, c in residual.classes.items()),
    ]:
        if prior is not None and not prior.kind_class.suits_residuals:
            key = prior.kind_class.key
            problems.add(
                (*place, "prior", key),
                f"found {plain(getattr(prior, key))}, which is a prior of random effects; needed "
                f"{list_short_forms(of_residuals=True)}",
            )
    if residual.by is not None:
        return
    if unit and len(analysis.traits) == 1 and residual.prior is not None and "prior" in residual.model_fields_set:
        problems.add(
            ("variances", "residual", "prior"),
            f"found a prior of the residual variance of {analysis.traits[0].name}, which is 1; needed none",
        )
    size = {len(analysis.traits)}
    if residual.start is None or not unit or {len(residual.start), *map(len, residual.start)} != size:
        return
    for i in unit:
        variance = float(np.asarray(residual.start)[i, i])
        if variance != 1.0:
            problems.add(
                ("variances", "residual", "start"),
                f"found {variance:g} for {analysis.traits[i].name}, needed 1: the residual variance of a "
                f"{analysis.traits[i].type} trait sets the scale of its liability",
            )
