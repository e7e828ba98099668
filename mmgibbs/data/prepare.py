"""From an analysis to its design: phenotypes, pedigree, effects, in this order."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import polars as pl

from mmgibbs.config import Analysis
from mmgibbs.config.orders import describe_order
from mmgibbs.data.all_problems import collect_problems
from mmgibbs.data.animal_ids import name_keys
from mmgibbs.data.column_checks import warn_of_codes, warn_of_similar_groups, warn_of_similar_levels
from mmgibbs.data.fixed import GroupColumns, resolve
from mmgibbs.data.fixed_columns import find_stated_level, read_fixed_effects
from mmgibbs.data.genotypes.imputed import drop_genotyped_levels, imputed_animals, regression_on_j
from mmgibbs.data.genotypes.prepare import prepare_genotypes
from mmgibbs.data.interactions import interactions_of_columns
from mmgibbs.data.kin import (
    find_recorded_ids,
    read_kin,
    trend_notes,
    uses_pedigree,
    warn_of_strangers,
    warn_of_unused_pedigree,
)
from mmgibbs.data.levels import natural_order
from mmgibbs.data.markers import MarkerLabels, drop_ungenotyped_records, marker_terms
from mmgibbs.data.phenotypes import Phenotypes, read_phenotypes
from mmgibbs.data.prepared import LevelLabels, Prepared
from mmgibbs.data.random import (
    RandomTerms,
    animal_column,
    wanted_columns,
)
from mmgibbs.data.record_checks import (
    refuse_ids_as_numbers,
    refuse_rounded_ids,
    warn_of_doubles,
    warn_of_ids_as_numbers,
    warn_of_nicknames,
    warn_of_other_parents,
    warn_of_repeated_records,
)
from mmgibbs.data.relationship_files import with_gamma
from mmgibbs.data.relationships import Kin
from mmgibbs.data.residuals import BY as RESIDUAL_CLASSES
from mmgibbs.data.residuals import correlated_residuals, residual_classes
from mmgibbs.data.responses import refuse_extreme_levels, response_columns
from mmgibbs.data.self_explained import refuse_traits_as_effects, warn_of_copies
from mmgibbs.data.traits import Records, missing_patterns, read_records
from mmgibbs.errors import DataError
from mmgibbs.models.design import Design
from mmgibbs.models.labels import component_labels
from mmgibbs.models.markers import Markers
from mmgibbs.models.residual import fold_classes
from mmgibbs.models.terms import Term
from mmgibbs.pedigree.groups import groups_by_age
from mmgibbs.pedigree.messages import ResultWarning, split_messages


def prepare(
    analysis: Analysis, progress: Callable[..., None] | None = None, table: Phenotypes | None = None
) -> Prepared:
    """Read the tables of an analysis (mmgibbs.config.Analysis), check them and build its design.

    progress: called with the name of each stage that the analysis has, as it begins, and where it may take long with
    its multiplications. table: the phenotypes with all of their columns, where they have been read. Terms come in the
    order intercept, fixed effects, random effects, each as in the analysis file; records keep the order of the file.
    Raises DataError (everything that is wrong in the tables, with file, row, column, found, needed) and ModelError (an
    effect that has nothing to estimate).
    """
    try:
        return _prepare(analysis, progress, table)
    except DataError as error:
        raise collect_problems(analysis, error, table) from None


def _prepare(analysis: Analysis, progress: Callable[..., None] | None, table: Phenotypes | None) -> Prepared:
    timings: dict[str, float] = {}

    @contextmanager
    def stage(name: str, has_it: bool = True) -> Iterator[None]:
        if progress is not None and has_it:
            progress(name)
        start = time.perf_counter()
        yield
        timings[name] = time.perf_counter() - start

    with stage("phenotypes"):
        columns = _columns(analysis)
        phenotypes = read_phenotypes(analysis.data, columns) if table is None else table.choose_columns(columns)
        phenotypes = replace(phenotypes, interactions=interactions_of_columns(analysis))
        _need_columns(analysis, phenotypes)
        refuse_ids_as_numbers(analysis, phenotypes)
        refuse_rounded_ids(analysis, phenotypes)
        refuse_traits_as_effects(analysis, phenotypes)
        records = read_records(analysis, phenotypes)
    with stage("pedigree", uses_pedigree(analysis, records)):
        kin = read_kin(analysis, records)
    genotypes = imputed = None
    of_markers: list[str] = []
    ungenotyped = 0  # records that a term of SNP effects drops
    markers: list[Markers] = []
    marker_labels: list[MarkerLabels] = []
    if analysis.data.genotypes is not None:
        with stage("genotypes"):
            recorded = find_recorded_ids(analysis, records, kin)
            of_traits = {column for trait in analysis.traits for column, _ in response_columns(trait)}
            genotypes = prepare_genotypes(analysis.data.genotypes, recorded, kin.pedigree if kin else None, of_traits)
            kin = kin and with_gamma(kin, analysis.data, genotypes)
            kept, of_markers = drop_ungenotyped_records(analysis, records.phenotypes, genotypes)
            ungenotyped = len(records.phenotypes) - len(kept)
            if ungenotyped:
                again = read_records(analysis, kept)
                records = replace(
                    again, n_read=records.n_read, notes=records.notes + again.notes, warnings=records.warnings
                )
            imputed, of_imputed = imputed_animals(analysis, records.phenotypes, genotypes, kin)
            markers, marker_labels, of_snps = marker_terms(analysis, records, genotypes, analysis.traits, imputed)
            of_markers += of_imputed + of_snps
    elif kin is not None:
        kin = with_gamma(kin, analysis.data, None)
    with stage("fixed effects"):
        of_records = _warnings_of_records(analysis, records)  # of those that are left: others may be as they are
        effects, fixed_labels = read_fixed_effects(analysis, records)
        if imputed is not None and (on_j := regression_on_j(imputed, records.phenotypes)) is not None:
            effects.append(on_j)
            fixed_labels.append(LevelLabels(pl.Series("id", [""]), np.arange(1), coefficient_in_level=True))
        refuse_extreme_levels(effects, records, analysis.traits)
        of_records += warn_of_copies(analysis, records, effects)
    with stage("random effects", bool(analysis.model.random)):
        builder = RandomTerms(analysis, records.phenotypes, records.observed, kin, genotypes, phenotypes)
        for name, random in analysis.model.random.items():
            if progress is not None and genotypes is not None and random.relationship.of_genotypes:
                m, p = len(genotypes.animals), len(genotypes.frequency)
                what = f"relationships of {name} from {m:,} genotyped animals and {p:,} SNPs"
                progress(what, operations=2.0 * m**2 * p + 6.0 * m**3)
        built = [builder.build(name) for name in analysis.model.random]
        if imputed is not None:
            built = [
                drop_genotyped_levels(term, label, imputed) if term.name == imputed.term else (term, label)
                for term, label in built
            ]
    with stage("rank"):
        names = [t.name for t in analysis.traits]
        groups = _group_columns([term for term, _ in built], names, lambda: _group_order(analysis, kin))
        fixed = resolve(
            effects, records.observed, records.mean, records.weight, names, groups, kin.pedigree.groups if kin else ()
        )
    terms = fixed.terms + tuple(_hold_groups(term, fixed.groups_active) for term, _ in built)
    of_pedigree = (*map(name_keys, kin.pedigree.notes), *trend_notes(kin.pedigree)) if kin else ()
    used = markers or any(r.relationship.of_genotypes for r in analysis.model.random.values())
    unused = () if used else (ResultWarning("data.genotypes: no term of the model uses the genotypes"),)
    of_genotypes = () if genotypes is None else (*genotypes.notes, *of_markers, *unused)
    classes = residual_classes(analysis, records)
    correlated = correlated_residuals(analysis, records, classes)
    of_terms = (*builder.notes, *fixed.notes, *correlated.notes)
    of_reading, notes = split_messages(
        (*records.phenotypes.notes, *records.notes, *of_pedigree, *of_genotypes, *of_terms)
    )
    pattern, patterns = missing_patterns(records.observed)
    n_patterns, pattern_class = len(patterns), None
    if classes is not None:
        pattern, patterns, pattern_class = fold_classes(pattern, patterns, classes[1], len(classes[0]))
    y, responses = records.y.copy(), {r.trait: r for r in records.responses}
    for term, component, value in fixed.offsets:
        trait = int(terms[term].component_trait[component])
        y[:, trait] -= value
        if trait in responses:
            responses[trait] = responses[trait].shifted(value)
    design = Design(
        tuple(names), y, pattern, patterns, records.weight, terms, fixed.rescale, fixed.shifts, fixed.offsets,
        fixed.base, notes, () if classes is None else classes[0], pattern_class, tuple(responses.values()),
        tuple(markers), correlated.records,
    )  # fmt: skip
    labels = tuple(fixed_labels) + tuple(label for _, label in built)
    counts = _counts(analysis, records, kin, design, ungenotyped) | {"missing_patterns": n_patterns}
    if classes is not None:
        in_class = np.bincount(classes[1], minlength=len(classes[0]))
        counts["residual_classes"] = dict(zip(classes[0], in_class.tolist(), strict=True))
    if genotypes is not None:
        counts["genotypes"] = genotypes.counts
    if builder.ranges:
        counts["legendre_ranges"] = builder.ranges
    steps = builder.steps | ({"residual": correlated.steps} if correlated.steps else {})
    if steps:
        counts["steps"] = steps
    warnings = (*phenotypes.warnings, *of_reading, *of_records, *correlated.warnings)
    warnings += warn_of_repeated_records(analysis, terms, records.observed)
    if kin is not None:
        warnings += tuple(name_keys(warning) for warning in kin.pedigree.warnings)
        warnings += warn_of_similar_groups(analysis, kin.pedigree.groups)
        warnings += warn_of_other_parents(analysis, records.phenotypes, kin.pedigree)
        warnings += warn_of_nicknames(analysis, records.phenotypes, kin.pedigree)
    warnings += () if genotypes is None else genotypes.warnings
    warnings += (*builder.warnings, *fixed.warnings)
    warnings += (*warn_of_strangers(analysis, records, kin), *warn_of_unused_pedigree(analysis, phenotypes, kin))
    return Prepared(
        design, kin.pedigree if kin else None, labels, counts, records.variance, records.phenotypes.rows, timings,
        warnings, genotypes, tuple(marker_labels), fixed.references,
    )  # fmt: skip


def _warnings_of_records(analysis: Analysis, records: Records) -> tuple[str, ...]:
    return (
        *records.warnings,
        *warn_of_codes(analysis, records),
        *warn_of_ids_as_numbers(analysis, records.phenotypes),
        *warn_of_similar_levels(analysis, records),
        *warn_of_orders(analysis),
        *warn_of_doubles(analysis, records.phenotypes),
    )


def warn_of_orders(analysis: Analysis) -> tuple[str, ...]:
    """Return a warning for each structure whose components are in no line, or whose levels are not equally far."""
    variances, random = analysis.variances.terms, analysis.model.random
    said = {n: describe_order(variances[n].structure, r, analysis.traits) for n, r in random.items() if n in variances}
    return tuple(f"variances.{name}.structure: {text}" for name, text in said.items() if text is not None)


def _columns(analysis: Analysis) -> list[str]:
    """List every phenotype column that the analysis may use."""
    fixed = [c for f in analysis.model.fixed.values() for c in (*f.class_columns, *f.number_columns)]
    weights = [analysis.data.weights] if analysis.data.weights is not None else []
    by = analysis.variances.residual.by
    weights += [by] if by is not None else []
    weights += analysis.variances.residual.correlation_columns
    traits = [column for trait in analysis.traits for column, _ in response_columns(trait)]
    where = [column for trait in analysis.traits for column in trait.where]
    markers = [m.level for m in analysis.model.markers.values()]
    weights += analysis.data.order
    return traits + where + weights + fixed + wanted_columns(analysis.model.random) + markers


def _need_columns(analysis: Analysis, phenotypes: Phenotypes) -> None:
    """Check that all columns of the analysis are there, so that a misspelt one is reported before any work."""
    for trait in analysis.traits:
        for column, path in response_columns(trait):
            phenotypes.need(column, path)
        for column in trait.where:
            phenotypes.need(column, f"traits.{trait.name}.where")
    if analysis.data.weights is not None:
        phenotypes.need(analysis.data.weights, "data.weights")
    for column in analysis.data.order:
        phenotypes.need(column, f"data.order.{column}")
    if analysis.variances.residual.by is not None:
        phenotypes.need(analysis.variances.residual.by, RESIDUAL_CLASSES)
    for name, markers in analysis.model.markers.items():
        phenotypes.need(markers.level, f"model.markers.{name}.level")
    for name, effect in analysis.model.fixed.items():
        phenotypes.need(effect.column, f"model.fixed.{name}")
        if effect.by is not None:
            phenotypes.need(effect.by, f"model.fixed.{name}" + (".by" if effect.interaction is None else ""))


# ------------------------------------------------------------------------------------------------ groups


def _group_columns(
    terms: list[Term], traits: Sequence[str], group_order: Callable[[], np.ndarray]
) -> list[GroupColumns]:
    """The columns of fixed unknown-parent groups by component: covariate times expected share of each group."""
    out = []
    composition = order = None
    for term in terms:
        if not term.groups_fixed:
            continue
        if composition is None:
            composition, order = term.relationship.group_shares(), group_order()
        labels = component_labels(term, traits)
        component = 0
        for effect in term.effects:
            shares = [
                (np.where(level[:, None] >= 0, composition[level], 0.0).astype(np.float64), z)
                for level, z in effect.meetings()
            ]
            for trait in effect.traits:
                for j in range(effect.n_regressors):
                    values = np.sum([share if z is None else share * z[:, j : j + 1] for share, z in shares], axis=0)
                    out.append(GroupColumns(term.name, component, trait, values, labels[component], order))
                    component += 1
    return out


def _group_order(analysis: Analysis, kin: Kin | None) -> np.ndarray:
    """(g,) groups in the order in which they are the reference: the one that the analysis names, then by age."""
    assert kin is not None and analysis.data.groups is not None, "groups are of a pedigree"
    read, reference = kin.pedigree, analysis.data.groups.reference
    order = groups_by_age(read.sire, read.dam, read.birth, natural_order(read.groups))
    if reference is None:
        return order
    first = find_stated_level(reference, pl.Series(read.groups), "data.groups.reference", "the groups are")
    return np.concatenate([[first], order[order != first]])


def _hold_groups(term: Term, groups_active: dict) -> Term:
    """The term with those fixed groups set to 0 that the data cannot tell apart."""
    if not term.groups_fixed:
        return term
    active = np.ones((term.n_levels, term.n_components), bool)
    for component in range(term.n_components):
        active[term.n_levels - term.n_groups :, component] = groups_active[term.name, component]
    return term if active.all() else replace(term, active=active)


# ------------------------------------------------------------------------------------------------ counts


def _counts(analysis: Analysis, records: Records, kin: Kin | None, design: Design, ungenotyped: int) -> dict:
    used = len(records.y)
    left_out = {"no observed trait": records.n_read - ungenotyped - used}
    if ungenotyped:
        left_out["no genotypes"] = ungenotyped
    counts = {
        "records": {"read": records.n_read, "used": used, "left_out": left_out},
        "observations": {t.name: int(n) for t, n in zip(analysis.traits, records.observed.sum(axis=0), strict=False)},
        "missing_patterns": len(design.patterns),
        "levels": {t.name: t.n_levels for t in design.terms},
        "equations": design.n_equations,
    }
    if records.responses:
        counts["observed_as"] = {analysis.traits[r.trait].name: r.tally() for r in records.responses}
    if kin is not None:
        column = animal_column(analysis.model.random, records.phenotypes)
        counts["animals"] = len(kin.pedigree.ids)
        counts["founders_added"] = int(np.count_nonzero(np.asarray(kin.pedigree.row) < 0))
        counts["groups"] = len(kin.pedigree.groups)
        if column is not None and records.phenotypes.has(column):
            animals = records.phenotypes.text(column, "", analysis.data.unknown_parent)
            counts["animals_with_records"] = animals.drop_nulls().n_unique()
    return counts
