"""What sections of an analysis say of each other: names looked up and filled in, matrices checked."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np

from mmgibbs.config.analysis import Analysis
from mmgibbs.config.decisions import check_on_records, complete_decisions
from mmgibbs.config.effects import Fixed, Model, Random, RandomEffect, component_names
from mmgibbs.config.fields import Rows
from mmgibbs.config.interactions import check_relationship, complete_fixed, complete_level
from mmgibbs.config.markers import MarkerEffects
from mmgibbs.config.messages import Problems
from mmgibbs.config.paths import absolute, with_absolute_paths
from mmgibbs.config.relationships import AnyRelationship
from mmgibbs.config.rules import BETWEEN_SECTIONS, OF_VARIANCES, broken
from mmgibbs.config.sampling import MARKER_DRAWS
from mmgibbs.config.smooth_relationships import Spline
from mmgibbs.config.tables import Data
from mmgibbs.config.text import show
from mmgibbs.config.traits import check_columns_of_values
from mmgibbs.config.types_of_traits import (
    check_types,
    check_unit_residuals,
    with_default_priors,
    with_default_scale_prior,
    with_proper_classes,
    with_unit_start,
)
from mmgibbs.config.variances import (
    Prior,
    ResidualClass,
    ResidualVariance,
    UniformHeritability,
    Variance,
    Variances,
)
from mmgibbs.errors import nearest
from mmgibbs.models.labels import find_name_clash

OfVariance = TypeVar("OfVariance", bound=Variance)
RESERVED = ("mode", "residual", "intercept")  # they have a meaning of their own beside the names of terms
# What a regression shares with a mixed model.
OF_EVERY_SAMPLER = {
    "method", "chains", "burn_in", "samples", "thin", "seed", "device", "threads", "precision", "checkpoint_every",
    "stop",
}  # fmt: skip
OF_A_TABLE = {"phenotypes", "separator", "widths", "header", "missing", "decimal"}
J = "J"  # name of the fixed regression that single_step adds
_SYMMETRIC = 1e-8  # relative
_SINGULAR = 1e-12  # smallest eigenvalue of a correlation matrix
_LEAST, _MOST = 1e-40, 1e40  # a variance; beyond these sums of squares overflow, and a unit was mistaken


def complete(analysis: Analysis, folder: Path, path: Path | None) -> Analysis:
    """The analysis with every default that depends on other sections. `folder`: what paths to data are relative to.

    Raises pydantic's ValidationError with everything that does not fit.
    """
    problems = Problems()
    for place, message in broken(BETWEEN_SECTIONS, analysis):
        problems.add(place, message)
    name = analysis.name or (path.stem if path else "analysis")
    data = with_absolute_paths(analysis.data, folder)
    model = with_default_priors(analysis, _complete_model(analysis, folder, problems))
    check_types(analysis, problems)
    _check_references(model, [trait.name for trait in analysis.traits], problems)
    _check_pedigree(data, model, problems)
    sampler = analysis.sampler
    if sampler.tolerance is None and (sampler.method != "gibbs" or sampler.engine == "pcg"):
        sampler = sampler.model_copy(update={"tolerance": sampler.default_tolerance})
    directory = Path(os.path.abspath(analysis.output.directory or Path("runs") / name))
    output = analysis.output.model_copy(update={"directory": directory})
    if model.markers and output.save_marker_draws is None:
        output = output.model_copy(update={"save_marker_draws": MARKER_DRAWS})
    _check_saved_levels(analysis, model, problems)
    _check_means(analysis, model, problems)
    names = [trait.name for trait in analysis.traits]
    decisions = complete_decisions(analysis.decisions, model, names, sampler.method, problems)
    check_on_records(decisions, {trait.name: trait.type for trait in analysis.traits}, problems)
    if decisions is not None and decisions.candidates.file is not None:
        candidates = decisions.candidates.model_copy(update={"file": absolute(decisions.candidates.file, folder)})
        decisions = decisions.model_copy(update={"candidates": candidates})
    problems.refuse()  # sizes are known only where all names are
    variances = _complete_variances(analysis, model, folder, problems)
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


def _check_references(model: Model, traits: Sequence[str], problems: Problems) -> None:
    """A reference level needs a flat prior, and something beside it that contains the mean of each trait."""
    classes = {name: effect for name, effect in model.fixed.items() if effect.kind == "class"}
    for name, effect in classes.items():
        if effect.reference is not None and not any(effect.is_flat(trait) for trait in effect.traits):
            problems.add(
                ("model", "fixed", name, "reference"),
                "found with a normal prior, under which no level is set to 0 (traits in categories have one by "
                "default); needed prior: flat, or no reference",
            )
    for trait in traits if model.intercept is False else ():
        flat = [effect for effect in classes.values() if effect.is_flat(trait)]
        if flat and all(effect.reference is not None for effect in flat):
            problems.add(
                ("model", "intercept"),
                f"found false, and a reference in every class effect on {trait}, so that none contains its mean; "
                "needed auto, or a class effect without reference",
            )


# ------------------------------------------------------------------------------------------------ names


def _write_out_surfaces(random: dict[str, Random], problems: Problems) -> dict[str, Random]:
    """Each part of a surface as a term of its own, NAME_rows, ... (see Spline)."""
    out: dict[str, Random] = {}
    for name, term in random.items():
        parts = term.relationship.write_out() if isinstance(term.relationship, Spline) else {"": term.relationship}
        for part, relationship in parts.items():
            key = f"{name}_{part}" if part else name
            if key in out or (part and key in random):
                problems.add(("model", "random", name), f"its part {key} has the name of another effect")
            out[key] = term.model_copy(update={"relationship": relationship})
    return out


def _complete_model(analysis: Analysis, folder: Path, problems: Problems) -> Model:
    model = analysis.model
    model = model.model_copy(update={"random": _write_out_surfaces(model.random, problems)})
    if model.plugin is not None:
        for section, shared in (("sampler", OF_EVERY_SAMPLER), ("data", OF_A_TABLE)):
            values = getattr(analysis, section)
            for key, field in type(values).model_fields.items():
                if key not in shared and getattr(values, key) != field.default:
                    problems.add((section, key), "cannot be combined with model.plugin; it belongs to a mixed model")
        return model
    names = tuple(trait.name for trait in analysis.traits)
    check_columns_of_values(analysis.traits, problems)
    for kind, terms in (("fixed", model.fixed), ("random", model.random)):
        for term in terms:
            if term in RESERVED:
                problems.add(
                    ("model", kind, term),
                    "this name is reserved, needed another name (column: or level: says which column)",
                )
    for term in model.random:
        if term in model.fixed:
            problems.add(
                ("model", "random", term),
                "a fixed effect has this name already, needed another name (level: says which column)",
            )

    def effect_traits(effect: Fixed | RandomEffect, *place: str) -> tuple[str, ...]:
        for trait in effect.traits:
            if trait not in names and names:
                problems.add(
                    (*place, "traits"), f"{show(trait)} is not a trait; {nearest(trait, names, 'the traits are')}"
                )
        return effect.traits or names

    fixed = {
        term: complete_fixed(term, f, model.fixed, problems).model_copy(
            update={"traits": effect_traits(f, "model", "fixed", term)}
        )
        for term, f in model.fixed.items()
    }
    random = {}
    for term, r in model.random.items():
        place = ("model", "random", term)
        effects = {
            e: effect.model_copy(
                update=complete_level(term, effect, r.relationship, (*place, "effects", e), problems)
                | {"traits": effect_traits(effect, *place, "effects", e)}
            )
            for e, effect in r.effects.items()
        }
        check_relationship(r, place, problems)
        relationship = r.relationship.with_paths(lambda path: absolute(path, folder))
        relationship = _with_known_parameters(relationship, analysis, place, problems)
        random[term] = r.model_copy(update={"relationship": relationship, "effects": effects})
        labels = component_names(random[term])
        twice = next((label for i, label in enumerate(labels) if label in labels[:i]), None)
        if twice is not None:
            problems.add(
                (*place, "effects"),
                f"two components would both be called {show(twice)}, needed different names for the effects",
            )
    markers = {
        name: section.with_paths(lambda path: absolute(path, folder))
        for name, section in _complete_markers(analysis, names, random, problems).items()
    }
    return model.model_copy(update={"fixed": fixed, "random": random, "markers": markers})


def _with_known_parameters(
    relationship: AnyRelationship, analysis: Analysis, place: tuple[str, ...], problems: Problems
) -> AnyRelationship:
    """Hold the parameters of a relationship where nothing is estimated; they must then be given."""
    blup = analysis.sampler.method == "blup"
    if not relationship.has_free_parameters or not (blup or analysis.variances.mode == "fixed"):
        return relationship
    if relationship.lacks_parameters:
        why = "sampler.method: blup" if blup else "variances.mode: fixed"
        wanted = ", ".join(f"{name}: R" for name in relationship.parameters)
        problems.add((*place, "relationship", "rho"), f"missing, needed {{{wanted}}} for {why}")
    return relationship.with_fixed_parameters()


def _complete_markers(
    analysis: Analysis, traits: tuple[str, ...], random: dict[str, Random], problems: Problems
) -> dict[str, MarkerEffects]:
    sections = {name: section.completed().on_traits(traits) for name, section in analysis.model.markers.items()}
    for name, section in sections.items():
        place = ("model", "markers", name)
        if name in RESERVED or name in analysis.model.fixed or name in analysis.model.random:
            problems.add(place, "another effect has this name already, needed another name (level: says which column)")
        for trait in section.traits:
            if trait not in traits:
                problems.add((*place, "traits"), f"{show(trait)} is not a trait; {nearest(trait, traits, 'there are')}")
        refusals = section.refusals()
        for key, message in refusals:
            problems.add((*place, *key), message)
        if section.single_step != "none":
            for of_key, why in _single_step_refusals(analysis, random, section):
                problems.add((*place, of_key), why)
        sections[name] = section if refusals else _with_checked_matrices(section, place, problems)
        if section.windows is not None and analysis.output.save_marker_draws == 0:
            problems.add((*place, "windows"), "cannot be combined with output.save_marker_draws: 0; needed some draws")
    _refuse_other_animals(sections, random, problems)
    rest = [name for name, section in sections.items() if section.snps is not None and section.snps.rest]
    for name in rest[1:]:
        problems.add(("model", "markers", name, "snps"), f"found rest, as in {rest[0]}; needed one such term at most")
    if rest and any(section.snps is None for section in sections.values()):
        problems.add(
            ("model", "markers", rest[0], "snps"), "found rest beside a term with every SNP, which leaves none"
        )
    return sections


def _refuse_other_animals(sections: dict[str, MarkerEffects], random: dict[str, Random], problems: Problems) -> None:
    """Predicted genotypes are of one set of animals, and every term of SNP effects sees the same."""
    predicted = {name: section for name, section in sections.items() if section.single_step != "none"}
    first = next(iter(predicted), None)
    if first is None:
        return
    level = predicted[first].level
    for name, section in sections.items():
        place = ("model", "markers", name)
        if name in predicted and section.level != level:
            problems.add(
                (*place, "level"), f"found {section.level}, but {level} in {first}; needed the same with single_step"
            )
        if name not in predicted:
            problems.add((*place, "single_step"), f"found none beside epsilon in {first}; needed the same in all terms")
    for name, term in random.items():
        if term.relationship.of_genotypes:
            kind = term.relationship.name
            problems.add(
                ("model", "random", name, "relationship"),
                f"found {kind} beside single_step in model.markers.{first}; needed one of them",
            )


def _single_step_refusals(
    analysis: Analysis, random: dict[str, Random], section: MarkerEffects
) -> list[tuple[str, str]]:
    """(key, message) of what goes against the records of animals without genotypes: see data/genotypes/imputed.py."""
    out = []
    predicted = {
        name: term
        for name, term in random.items()
        if term.relationship.of_pedigree
        and not term.relationship.of_genotypes
        and any(e.level == section.level for e in term.effects.values())
    }
    if len(predicted) != 1:
        what = "no random effect" if not predicted else f"{len(predicted)} random effects ({', '.join(predicted)})"
        needed = f"one with level: {section.level} and relationship: pedigree, for what genotypes do not explain"
        return [("single_step", f"found {what}; needed {needed}")]
    (name, term), *_ = predicted.items()
    effect = next(iter(term.effects.values()))
    if len(term.effects) > 1 or effect.covariates or effect.legendre:
        out.append(("single_step", f"cannot be combined with effects: or covariates in model.random.{name}"))
    elif set(effect.traits) != set(section.traits):
        out.append(("traits", f"needed those of model.random.{name}, whose breeding values single_step splits"))
    if type(term.relationship).name != "pedigree":
        out.append(("single_step", f"needed relationship: pedigree in model.random.{name}"))
    if section.variance_left == "implied":
        given = analysis.variances.terms.get(name)
        if len(analysis.model.markers) > 1:
            out.append(("variance_left", "implied: found several terms of SNP effects, needed one"))
        if len(section.traits) > 1 and (section.prior, section.across_traits) != ("rr", "joint"):
            got = f"prior: {section.prior}, across_traits: {section.across_traits}"
            needed = "rr and joint, where one covariance matrix of effects implies that of breeding values"
            out.append(("variance_left", f"implied: found several traits with {got}; needed {needed}"))
        if given is not None and given.model_fields_set and given != _following(analysis, term, section):
            out.append(("variance_left", f"implied cannot be combined with variances.{name}, which follows from it"))
    if J in (*analysis.model.fixed, *random):
        out.append(("single_step", f"adds a fixed effect {J}: needed another name for the effect of that name"))
    if analysis.data.groups is not None:
        out.append(("single_step", "cannot be combined with data.groups"))
    if section.snps is not None:
        out.append(("snps", "cannot be combined with single_step, where the SNPs of the term must be all of them"))
    return out


def _with_checked_matrices(section: MarkerEffects, place: tuple[str, ...], problems: Problems) -> MarkerEffects:
    """The section with the matrices of its variance as they are meant."""
    given = {key: getattr(section.variance, key) for key in ("start", "scale")}
    checked = {
        key: _checked_matrix(rows, section.traits, "full", True, (*place, "variance", key), problems)
        for key, rows in given.items()
        if isinstance(rows, tuple)
    }
    return section.model_copy(update={"variance": section.variance.model_copy(update=checked)})


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


# ------------------------------------------------------------------------------------------------ covariance matrices


def _complete_variances(analysis: Analysis, model: Model, folder: Path, problems: Problems) -> Variances:
    variances = analysis.variances
    if model.plugin is not None:
        for term in ("residual", *variances.terms):
            if term != "residual" or "residual" in variances.model_fields_set:
                problems.add(
                    ("variances", term),
                    "cannot be combined with model.plugin; a regression has its priors in model.options",
                )
        return variances
    for term in variances.terms:
        if term not in model.random:
            what = "is a fixed effect" if term in model.fixed else "is not a random effect"
            problems.add(
                ("variances", term), f"{what} of the model; {nearest(term, [*model.random, 'residual'], 'there are')}"
            )
    for place, message in broken(OF_VARIANCES, analysis):
        problems.add(place, message)
    blup = analysis.sampler.method == "blup"
    if analysis.sampler.method == "reml":
        _check_reml(variances, problems)
    why = "sampler.method: blup" if blup else "variances.mode: fixed" if variances.mode == "fixed" else None

    implied = implied_variances(model)

    def finish(place: tuple[str, ...], variance: OfVariance, labels: tuple[str, ...]) -> OfVariance:
        fixed = variance.fixed or why is not None
        by_class = isinstance(variance, ResidualVariance) and variance.classes
        is_known = isinstance(variance, ResidualVariance) and variance.known is not None
        if fixed and variance.start is None and not by_class and not is_known:
            problems.add((*place, "start"), f"missing, needed {_size(labels)} for {why or 'fixed: true'}")
        start, prior = variance.start, variance.prior
        for key, message in structure_problems(variance, labels, of_residuals=place == ("variances", "residual")):
            problems.add((*place, *key), message)
        if start is not None:
            start = _checked_matrix(start, labels, variance.structure.kind, True, (*place, "start"), problems)
        if isinstance(prior, Prior):
            scale = _checked_matrix(
                prior.scale, labels, variance.structure.kind, False, (*place, "prior", "scale"), problems
            )
            prior = prior.model_copy(update={"scale": scale})
        return variance.model_copy(update={"start": start, "prior": prior, "fixed": fixed})

    terms = {
        term: finish(
            ("variances", term),
            with_default_scale_prior(analysis, random, variances.terms.get(term, Variance())),
            component_names(random),
        )
        if term not in implied
        else _following(analysis, random, implied[term])
        for term, random in model.random.items()
    }
    of_all = with_proper_classes(analysis, with_unit_start(analysis, variances.residual))
    of_all = _with_correlations(analysis, of_all, folder, problems)
    residual = finish(("variances", "residual"), of_all, component_names(analysis.traits))
    check_unit_residuals(analysis, residual, problems)
    classes = {}
    for name, section in variances.residual.classes.items():  # written out: what it does not say is that of all classes
        place, given = ("variances", "residual", "classes", name), residual.of_class(name)
        finished = finish(place, given, component_names(analysis.traits))
        classes[name] = section.model_copy(update={key: getattr(finished, key) for key in ("start", "fixed", "prior")})
    residual = residual.model_copy(update={"classes": classes})
    _refuse_sweeps(analysis, residual, problems)
    matrices: list[Variance | ResidualClass] = [residual, *classes.values(), *terms.values()]
    of_terms = [random.relationship for random in model.random.values()]
    is_free = any(relationship.has_free_parameters for relationship in (*of_terms, *residual.relationships))
    mode = "fixed" if all(v.fixed for v in matrices) and not is_free else "sample"
    if all(v.fixed for v in matrices) and analysis.sampler.method == "reml":
        problems.add(
            ("sampler", "method"), "found reml, but every variance is fixed; needed blup, or variances to estimate"
        )
    return variances.model_copy(update={"mode": mode, "terms": terms, "residual": residual})


def _with_correlations(
    analysis: Analysis, residual: ResidualVariance, folder: Path, problems: Problems
) -> ResidualVariance:
    """The residuals with correlations that are held where nothing is estimated, and absolute paths."""
    place, update = ("variances", "residual"), dict[str, object]()

    def complete_kind(kind: AnyRelationship | None, place: tuple[str, ...]) -> AnyRelationship | None:
        if kind is None or kind.name == "identity":
            return kind
        if kind.name != "ar1":
            problems.add(
                (*place, "relationship"),
                f"expected ar1 for residuals, got {kind.name}, whose relationships are those of a random effect",
            )
        return _with_known_parameters(kind, analysis, place, problems)

    update["relationship"] = complete_kind(residual.relationship, place)
    update["classes"] = {
        name: section
        if "relationship" not in section.model_fields_set
        else section.model_copy(update={"relationship": complete_kind(section.relationship, (*place, "classes", name))})
        for name, section in residual.classes.items()
    }
    if residual.known is not None:
        update |= {"known": residual.known.with_paths(lambda path: absolute(path, folder)), "fixed": True}
    return residual.model_copy(update=update)


def _refuse_sweeps(analysis: Analysis, residual: ResidualVariance, problems: Problems) -> None:
    """Sweeps draw records one by one, which correlated residuals do not allow."""
    sampler, place = analysis.sampler, ("variances", "residual")
    if residual.relationships and sampler.method == "gibbs":
        problems.add(
            (*place, "relationship"),
            "cannot be combined with sampler.method: gibbs; needed method: reml or blup, or the same relationship in a "
            "random effect, beside which the residual is a nugget",
        )
    if residual.known is not None and sampler.method == "gibbs" and sampler.engine not in ("auto", "marginal"):
        problems.add(
            (*place, "known"),
            f"cannot be combined with sampler.engine: {sampler.engine}; needed auto or marginal, or sampler.method: "
            "reml or blup",
        )
    if (residual.relationships or residual.known is not None) and sampler.method != "gibbs" and sampler.engine == "pcg":
        problems.add(
            ("sampler", "engine"),
            "found pcg, which cannot be combined with correlated residuals (variances.residual); needed auto",
        )


def structure_problems(
    variance: Variance, labels: Sequence[str], of_residuals: bool
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Place and message of what a matrix of these components cannot have as its structure, or beside it."""
    section = variance.structure
    if of_residuals and section.is_structured:
        yield (
            ("structure",),
            f"expected full or diagonal for residuals, got {section.kind}; correlations between records of one animal "
            "or plot are those of a random effect",
        )
        return
    for key, message in section.problems(labels):
        yield ("structure", key), message
    if section.is_structured and isinstance(variance.prior, (Prior, UniformHeritability)):
        given = "df and scale" if isinstance(variance.prior, Prior) else "h2"
        yield (
            ("prior",),
            f"expected half_t for structure: {section.kind}, whose standard deviations have it, got {given}",
        )


def _following(analysis: Analysis, random: Random, section: MarkerEffects) -> Variance:
    """The variance of a term that SNP effects imply: without a start, and fixed where theirs is."""
    default = with_default_scale_prior(analysis, random, Variance())
    return default.model_copy(update={"fixed": section.variance.fixed})


def implied_variances(model: Model) -> dict[str, MarkerEffects]:
    """Random term -> the SNP effects that imply its variance: it has no start, and is held where theirs is."""
    return {
        name: section
        for section in model.markers.values()
        if section.variance_left == "implied"
        for name, term in model.random.items()
        if term.relationship.of_pedigree and any(e.level == section.level for e in term.effects.values())
    }


def _check_reml(variances: Variances, problems: Problems) -> None:
    """Estimates have no priors: one that was given would be dropped."""
    classes = {("residual", "classes", name): c for name, c in variances.residual.classes.items()}
    terms = {(name,): v for name, v in variances.terms.items()}
    for place, given in (classes | terms | {("residual",): variances.residual}).items():
        if given.prior is not None:
            problems.add(
                ("variances", *place, "prior"),
                "cannot be combined with sampler.method: reml, which has no priors; needed flat, or method: gibbs",
            )


def _size(labels: Sequence[str]) -> str:
    """'a 2 x 2 matrix in the order direct:a, maternal:a'."""
    k = len(labels)
    shown = ", ".join(labels) if k <= 12 else f"{', '.join(labels[:12])}, ..."
    return f"one number (the variance of {labels[0]})" if k == 1 else f"a {k} x {k} matrix in the order {shown}"


def _checked_matrix(
    rows: Rows, labels: tuple[str, ...], structure: str, definite: bool, place: tuple[str, ...], problems: Problems
) -> Rows:
    """The symmetric matrix that is meant; a problem where it is none, or no covariance matrix of these components."""
    k = len(labels)
    widths = {len(row) for row in rows}
    if len(rows) != k or widths != {k}:
        if len(rows) == 1 and widths == {1}:
            got = f"the number {rows[0][0]:g}"
        elif len(widths) == 1:
            got = f"a {len(rows)} x {widths.pop()} matrix"
        else:
            got = f"a matrix with rows of {' and '.join(str(w) for w in sorted(widths))} numbers"
        problems.add(place, f"found {got}, needed {_size(labels)}")
        return rows
    matrix = np.array(rows, dtype=np.float64)
    message = _not_symmetric(matrix, labels) or _not_definite(matrix, labels, definite)
    if message is None and structure == "diagonal" and np.any(matrix[~np.eye(k, dtype=bool)]):
        message = "found covariances other than 0, needed 0 outside the diagonal for structure: diagonal"
    if message is not None:
        problems.add(place, message)
        return rows
    matrix = matrix / 2 + matrix.T / 2
    return tuple(tuple(float(v) for v in row) for row in matrix)


def _not_symmetric(matrix: np.ndarray, labels: Sequence[str]) -> str | None:
    with np.errstate(over="ignore"):
        apart = np.abs(matrix - matrix.T) > _SYMMETRIC * np.maximum(np.abs(matrix), np.abs(matrix.T))
    if not apart.any():
        return None
    i, j = (int(v) for v in np.argwhere(apart)[0])
    above, below = f"({labels[i]}, {labels[j]})", f"({labels[j]}, {labels[i]})"
    message = f"found {matrix[i, j]:.10g} for {above} and {matrix[j, i]:.10g} for {below}"
    return f"{message}, needed a symmetric matrix"


def _not_definite(matrix: np.ndarray, labels: Sequence[str], definite: bool) -> str | None:
    """Judged on the correlations, so that the units of the traits do not matter. `definite`: zero is not enough."""
    needed = "a positive definite matrix" if definite else "a positive semi-definite matrix"
    variances = np.diag(matrix)
    for v, label in zip(variances, labels, strict=True):
        if v < 0 or (definite and v == 0):
            return (
                f"found the variance {v:.10g} for {label}, needed {'one above 0' if definite else 'one of 0 or more'}"
            )
        if v != 0 and not _LEAST <= v <= _MOST:
            return f"found the variance {v:.10g} for {label}, needed one from {_LEAST:g} to {_MOST:g} (another unit?)"
    is_positive = variances > 0
    for i, j in np.argwhere(matrix != 0):
        if i != j and not (is_positive[i] and is_positive[j]):
            pair = f"{labels[i]} and {labels[j]}"
            return f"found the covariance {matrix[i, j]:.10g} of {pair} where a variance is 0, needed 0"
    sd = np.sqrt(variances[is_positive])
    with np.errstate(over="ignore", under="ignore"):
        correlation = matrix[np.ix_(is_positive, is_positive)] / sd[:, None] / sd[None, :]
    names = [label for label, s in zip(labels, is_positive, strict=True) if s]
    for i, j in np.argwhere(np.abs(correlation) > 1 + (0 if definite else _SYMMETRIC)):
        if i != j:
            message = f"found the correlation {correlation[i, j]:.4g} between {names[i]} and {names[j]}"
            return f"{message}, needed one between -1 and 1 ({needed})"
    smallest = np.linalg.eigvalsh(correlation / 2 + correlation.T / 2)[0] if names else 0.0
    if (definite and smallest <= _SINGULAR) or smallest < -_SYMMETRIC:
        message = "found a matrix whose correlations cannot occur together"
        return f"{message} (smallest eigenvalue {smallest:.3g} as correlations), needed {needed}"
    return None
