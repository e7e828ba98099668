"""An analysis with every default that depends on other sections, and what its sections say of each other checked."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from mmgibbs.config.analysis import Analysis
from mmgibbs.config.complete_model import complete_model
from mmgibbs.config.complete_variances import complete_variances
from mmgibbs.config.decisions import check_on_records, complete_decisions
from mmgibbs.config.effects import Model
from mmgibbs.config.genomic_relationships import Genomic
from mmgibbs.config.markers import J
from mmgibbs.config.messages import Problems
from mmgibbs.config.orders import GuessedOrder
from mmgibbs.config.paths import absolute, with_absolute_files, with_absolute_paths
from mmgibbs.config.rules import BETWEEN_SECTIONS, broken
from mmgibbs.config.sampling import MARKER_DRAWS
from mmgibbs.config.tables import Data
from mmgibbs.config.text import show
from mmgibbs.config.traits import Trait
from mmgibbs.config.types_of_traits import check_types, is_vague, with_default_priors
from mmgibbs.errors import nearest
from mmgibbs.models.labels import find_name_clash


def complete(
    analysis: Analysis, folder: Path, path: Path | None, guessed: Mapping[str, GuessedOrder] | None = None
) -> Analysis:
    """The analysis with every default that depends on other sections. `folder`: what paths to data are relative to;
    guessed: trait -> the order of its environment and the others, where nothing says what it is.

    Raises pydantic's ValidationError with everything that does not fit.
    """
    problems = Problems()
    for place, message in broken(BETWEEN_SECTIONS, analysis):
        problems.add(place, message)
    name = analysis.name or (path.stem if path else "analysis")
    data = with_absolute_paths(analysis.data, folder)
    model = with_default_priors(analysis, complete_model(analysis, folder, problems))
    check_types(analysis, problems)
    _check_references(model, analysis.traits, problems)
    _check_pedigree(data, model, problems)
    sampler = analysis.sampler
    if sampler.tolerance is None and (sampler.method != "gibbs" or sampler.has_solver):
        sampler = sampler.model_copy(update={"tolerance": sampler.default_tolerance})
    directory = Path(os.path.abspath(analysis.output.directory or Path("runs") / name))
    saved = with_absolute_files(analysis.output.save_levels, folder)
    output = analysis.output.model_copy(update={"directory": directory, "save_levels": saved})
    if model.markers and output.save_marker_draws is None:
        output = output.model_copy(update={"save_marker_draws": MARKER_DRAWS})
    _check_saved_levels(analysis, model, problems)
    _check_means(analysis, model, problems)
    _check_snp_effects(analysis, model, problems)
    if analysis.output.fitted and model.markers:
        problems.add(("output", "fitted"), "cannot be combined with model.markers; needed false")
    names = [trait.name for trait in analysis.traits]
    decisions = complete_decisions(analysis.decisions, model, names, sampler.method, problems)
    check_on_records(decisions, {trait.name: trait.type for trait in analysis.traits}, problems)
    if decisions is not None and decisions.candidates.file is not None:
        candidates = decisions.candidates.model_copy(update={"file": absolute(decisions.candidates.file, folder)})
        decisions = decisions.model_copy(update={"candidates": candidates})
    problems.refuse()  # sizes are known only where all names are
    variances = complete_variances(analysis, model, folder, problems, guessed or {})
    problems.refuse()
    parts = {
        "data": data,
        "model": model,
        "variances": variances,
        "sampler": sampler,
        "output": output,
        "decisions": decisions,
    }
    return analysis.model_copy(update=parts | {"name": name, "path": path})


def _check_references(model: Model, traits: Sequence[Trait], problems: Problems) -> None:
    """A reference level needs a flat or vague prior, and something beside it that contains the mean of each trait."""
    classes = {name: effect for name, effect in model.fixed.items() if effect.kind == "class"}
    for name, effect in classes.items():
        if effect.reference is not None and not any(effect.is_flat(t.name) or is_vague(effect, t) for t in traits):
            problems.add(
                ("model", "fixed", name, "reference"),
                "found with a normal prior of its own, under which no level is set to 0; needed prior: flat, or no "
                "reference",
            )
        without_mean = [
            t.name
            for t in traits
            if effect.reference is not None and is_vague(effect, t) and model.intercept is False
            if not any(other.is_flat(t.name) for other in classes.values())
        ]
        if without_mean:
            problems.add(
                ("model", "fixed", name, "reference"),
                f"found without an intercept, or an effect with prior: flat, that contains the mean of "
                f"{without_mean[0]}; needed intercept: auto, or no reference",
            )
    for trait in [t.name for t in traits] if model.intercept is False else ():
        flat = [effect for effect in classes.values() if effect.is_flat(trait)]
        if flat and all(effect.reference is not None for effect in flat):
            problems.add(
                ("model", "intercept"),
                f"found false, and a reference in every class effect on {trait}, so that none contains its mean; "
                "needed auto, or a class effect without reference",
            )


def _check_pedigree(data: Data, model: Model, problems: Problems) -> None:
    for term, r in model.random.items():
        for key, message in r.relationship.refusals(data):
            problems.add(("model", "random", term, "relationship", *([key] if key else [])), message)


def _check_saved_levels(analysis: Analysis, model: Model, problems: Problems) -> None:
    terms = [*model.fixed, *model.random]
    terms += [J] if any(section.single_step != "none" for section in model.markers.values()) else []
    for term in analysis.output.save_levels:
        if term not in terms and term != "intercept":
            problems.add(
                ("output", "save_levels"),
                f"{show(term)} is not an effect of the model; {nearest(term, terms, 'the effects are')}",
            )
    twice = find_name_clash((), analysis.output.save_levels)
    if twice:
        problems.add(
            ("output", "save_levels"),
            f"{twice[0]} and {twice[1]} would both be called {show(twice[2])} in draws.nc; needed another name for an "
            "effect, or draws of one of the two alone",
        )


def _check_snp_effects(analysis: Analysis, model: Model, problems: Problems) -> None:
    """Check that `snp_effects` has breeding values of genotyped animals to come from."""
    kinds = (random.relationship for random in model.random.values())
    if analysis.output.snp_effects and not any(isinstance(kind, Genomic) for kind in kinds):
        problems.add(
            ("output", "snp_effects"),
            "needed a random effect with relationship: genomic or single_step; effects of model.markers are in "
            "markers.parquet without this key",
        )


def _check_means(analysis: Analysis, model: Model, problems: Problems) -> None:
    """Adjusted means are those of classes."""
    classes = [name for name, effect in model.fixed.items() if effect.kind == "class"]
    effects = [*classes, *model.random]
    for name in analysis.output.means:
        if name in model.fixed and name not in classes:
            problems.add(("output", "means"), f"expected a class effect, got the covariate {show(name)}")
        elif name not in effects:
            problems.add(
                ("output", "means"),
                f"{show(name)} is not a class effect of the model; {nearest(name, effects, 'these are')}",
            )
