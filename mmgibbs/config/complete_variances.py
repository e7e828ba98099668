"""The variances of a model: a section for every term, its matrices checked, held where nothing is estimated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from mmgibbs.config.analysis import Analysis
from mmgibbs.config.effects import Model, Random, component_names
from mmgibbs.config.markers import MarkerEffects
from mmgibbs.config.matrices import check_matrix, describe_size
from mmgibbs.config.messages import Problems
from mmgibbs.config.orders import GuessedOrder, component_positions, find_order_problem
from mmgibbs.config.paths import absolute
from mmgibbs.config.relationships import AnyRelationship
from mmgibbs.config.rules import OF_VARIANCES, broken
from mmgibbs.config.types_of_traits import (
    check_unit_residuals,
    with_default_scale_prior,
    with_proper_classes,
    with_unit_start,
)
from mmgibbs.config.variances import ResidualClass, ResidualVariance, Variance, Variances
from mmgibbs.errors import nearest
from mmgibbs.models.engine_kinds import INTEGRATING
from mmgibbs.models.priors import KINDS

AnyVariance = TypeVar("AnyVariance", bound=Variance)


def complete_variances(
    analysis: Analysis, model: Model, folder: Path, problems: Problems, guessed: Mapping[str, GuessedOrder]
) -> Variances:
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

    def place_components(term: str, random: Random, variance: Variance) -> Variance:
        """The variance with the positions of its components, where its structure depends on them."""
        place, structure = ("variances", term, "structure"), variance.structure
        unknown = find_order_problem(structure, random, guessed)
        positions, refusal = component_positions(structure, random, analysis.traits)
        for key, message in (("kind", unknown), ("distances", refusal)):
            if message is not None:
                problems.add((*place, key), message)
        if positions is None:
            return variance
        return variance.model_copy(update={"structure": structure.model_copy(update={"positions": positions})})

    def finish(place: tuple[str, ...], variance: AnyVariance, labels: tuple[str, ...]) -> AnyVariance:
        fixed = variance.fixed or why is not None
        by_class = isinstance(variance, ResidualVariance) and variance.classes
        is_known = isinstance(variance, ResidualVariance) and variance.known is not None
        if fixed and variance.start is None and not by_class and not is_known:
            problems.add((*place, "start"), f"missing, needed {describe_size(labels)} for {why or 'fixed: true'}")
        start, prior = variance.start, variance.prior
        for key, message in structure_problems(variance, labels, of_residuals=place == ("variances", "residual")):
            problems.add((*place, *key), message)
        if start is not None:
            start = check_matrix(start, labels, variance.structure.kind, True, (*place, "start"), problems)
        if prior is not None:
            prior = prior.with_matrices(
                lambda key, matrix: check_matrix(
                    matrix, labels, variance.structure.kind, False, (*place, "prior", key), problems
                )
            )
        return variance.model_copy(update={"start": start, "prior": prior, "fixed": fixed})

    terms = {
        term: finish(
            ("variances", term),
            place_components(
                term, random, with_default_scale_prior(analysis, random, variances.terms.get(term, Variance()))
            ),
            component_names(random),
        )
        if term not in implied
        else implied_variance(analysis, random, implied[term])
        for term, random in model.random.items()
    }
    of_all = with_proper_classes(analysis, with_unit_start(analysis, variances.residual))
    of_all = _complete_correlations(analysis, of_all, folder, problems)
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


def _complete_correlations(
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
        return hold_known_parameters(kind, analysis, place, problems)

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


def hold_known_parameters(
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


def _refuse_sweeps(analysis: Analysis, residual: ResidualVariance, problems: Problems) -> None:
    """Sweeps draw records one by one, which correlated residuals do not allow."""
    sampler, place = analysis.sampler, ("variances", "residual")
    if residual.relationships and sampler.method == "gibbs":
        problems.add(
            (*place, "relationship"),
            "cannot be combined with sampler.method: gibbs; needed method: reml or blup, or the same relationship in a "
            "random effect, beside which the residual is a nugget",
        )
    if residual.known is not None and sampler.method == "gibbs" and sampler.engine not in ("auto", *INTEGRATING):
        problems.add(
            (*place, "known"),
            f"cannot be combined with sampler.engine: {sampler.engine}; needed auto or {' or '.join(INTEGRATING)}, or "
            "sampler.method: reml or blup",
        )
    if (residual.relationships or residual.known is not None) and sampler.method != "gibbs" and sampler.has_solver:
        problems.add(
            ("sampler", "engine"),
            f"found {sampler.engine}, which cannot be combined with correlated residuals (variances.residual); needed "
            "auto",
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
    if section.kind_class.is_singular and variance.prior is not None:
        yield (
            ("prior",),
            f"expected no prior for structure: {section.kind}, whose loadings are normal about 0; needed "
            "structure.loading_sd, their standard deviation",
        )
    elif section.is_structured and variance.prior is not None and not variance.prior.kind_class.suits_structures:
        expected = " or ".join(kind.key for kind in KINDS if kind.suits_structures)
        yield (
            ("prior",),
            f"expected {expected} for structure: {section.kind}, whose standard deviations have it, got "
            f"{' and '.join(variance.prior.fields_by_key())}",
        )


def implied_variances(model: Model) -> dict[str, MarkerEffects]:
    """Random term -> the SNP effects that imply its variance: it has no start, and is held where theirs is."""
    return {
        name: section
        for section in model.markers.values()
        if section.variance_left == "implied"
        for name, term in model.random.items()
        if term.relationship.of_pedigree and any(e.level == section.level for e in term.effects.values())
    }


def implied_variance(analysis: Analysis, random: Random, section: MarkerEffects) -> Variance:
    """The variance of a term that SNP effects imply: without a start, and fixed where theirs is."""
    default = with_default_scale_prior(analysis, random, Variance())
    return default.model_copy(update={"fixed": section.variance.fixed})


def _check_reml(variances: Variances, problems: Problems) -> None:
    """Estimates have no priors: one that was given would be dropped."""
    classes = {("residual", "classes", name): c for name, c in variances.residual.classes.items()}
    terms = {(name,): v for name, v in variances.terms.items()}
    for name, variance in variances.terms.items():
        if variance.structure.has_drawn_factors and variance.structure.kind_class.can_draw_factors:
            problems.add(
                ("variances", name, "structure", "factors"),
                "found auto, which needs sampler.method: gibbs; needed a number; mmgibbs compare tests one factor more "
                "and shows AIC and BIC",
            )
    for place, given in (classes | terms | {("residual",): variances.residual}).items():
        if given.prior is not None:
            problems.add(
                ("variances", *place, "prior"),
                "cannot be combined with sampler.method: reml, which has no priors; needed flat, or method: gibbs",
            )
