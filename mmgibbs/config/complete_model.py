"""The terms of a model: names looked up in other sections, defaults filled in, combinations refused."""

from __future__ import annotations

from pathlib import Path

from mmgibbs.config.analysis import Analysis
from mmgibbs.config.complete_variances import hold_known_parameters, implied_variance
from mmgibbs.config.effects import RESERVED, Fixed, Model, Random, RandomEffect, component_names
from mmgibbs.config.interactions import check_relationship, complete_fixed, complete_level
from mmgibbs.config.markers import J, MarkerEffects
from mmgibbs.config.matrices import check_matrix
from mmgibbs.config.messages import Problems
from mmgibbs.config.paths import absolute
from mmgibbs.config.several_levels import complete_several
from mmgibbs.config.smooth_relationships import Spline
from mmgibbs.config.text import show
from mmgibbs.config.traits import check_columns_of_values
from mmgibbs.errors import describe_unknown_trait

# Keys that a regression (model.plugin) shares with a mixed model.
SHARED_SAMPLER_KEYS = {
    "method", "chains", "burn_in", "samples", "thin", "seed", "device", "threads", "precision", "checkpoint_every",
    "stop",
}  # fmt: skip
SHARED_DATA_KEYS = {"phenotypes", "separator", "encoding", "widths", "header", "missing", "decimal"}


def complete_model(analysis: Analysis, folder: Path, problems: Problems) -> Model:
    model = analysis.model
    model = model.model_copy(update={"random": _write_out_surfaces(model.random, problems)})
    if model.plugin is not None:
        for section, shared in (("sampler", SHARED_SAMPLER_KEYS), ("data", SHARED_DATA_KEYS)):
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
                problems.add((*place, "traits"), describe_unknown_trait(trait, names))
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
                update=(
                    complete_several(effect, r.effects, r.relationship, (*place, "effects", e), problems)
                    if effect.has_several_levels
                    else complete_level(term, effect, r.relationship, (*place, "effects", e), problems)
                )
                | {"traits": effect_traits(effect, *place, "effects", e)}
            )
            for e, effect in r.effects.items()
        }
        check_relationship(r, place, problems)
        relationship = r.relationship.with_paths(lambda path: absolute(path, folder))
        relationship = hold_known_parameters(relationship, analysis, place, problems)
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


def _write_out_surfaces(random: dict[str, Random], problems: Problems) -> dict[str, Random]:
    """Write each part of a surface as a term of its own, NAME_rows, ... (see Spline)."""
    out: dict[str, Random] = {}
    for name, term in random.items():
        parts = term.relationship.write_out() if isinstance(term.relationship, Spline) else {"": term.relationship}
        for part, relationship in parts.items():
            key = f"{name}_{part}" if part else name
            if key in out or (part and key in random):
                problems.add(("model", "random", name), f"its part {key} has the name of another effect")
            out[key] = term.model_copy(update={"relationship": relationship})
    return out


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
                problems.add((*place, "traits"), describe_unknown_trait(trait, traits))
        refusals = section.refusals()
        for key, message in refusals:
            problems.add((*place, *key), message)
        if section.single_step != "none":
            for of_key, why in _single_step_refusals(analysis, random, section):
                problems.add((*place, of_key), why)
        sections[name] = section if refusals else _check_matrices(section, place, problems)
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
        if len(section.traits) > 1 and not (section.prior_kind.is_normal and section.across_traits == "joint"):
            got = f"prior: {section.prior}, across_traits: {section.across_traits}"
            needed = "rr and joint, where one covariance matrix of effects implies that of breeding values"
            out.append(("variance_left", f"implied: found several traits with {got}; needed {needed}"))
        if given is not None and given.model_fields_set and given != implied_variance(analysis, term, section):
            out.append(("variance_left", f"implied cannot be combined with variances.{name}, which follows from it"))
    if J in (*analysis.model.fixed, *random):
        out.append(("single_step", f"adds a fixed effect {J}: needed another name for the effect of that name"))
    if analysis.data.groups is not None:
        out.append(("single_step", "cannot be combined with data.groups"))
    if section.snps is not None:
        out.append(("snps", "cannot be combined with single_step, where the SNPs of the term must be all of them"))
    return out


def _check_matrices(section: MarkerEffects, place: tuple[str, ...], problems: Problems) -> MarkerEffects:
    """The section with the matrices of its variance as they are meant."""
    given = {key: getattr(section.variance, key) for key in ("start", "scale")}
    checked = {
        key: check_matrix(rows, section.traits, "full", True, (*place, "variance", key), problems)
        for key, rows in given.items()
        if isinstance(rows, tuple)
    }
    return section.model_copy(update={"variance": section.variance.model_copy(update=checked)})
