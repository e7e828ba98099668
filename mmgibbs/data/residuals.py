"""Residuals that are not independent or not alike: classes, relationships and known covariances.

Keys `by`, `relationship` and `known` of `variances.residual`. Each trait and class of residuals has a matrix K of its
own. Records that are adjusted means of a first analysis have the covariances of its means_covariance.npz: each is
matched to its mean by file, effect, trait and level, and means without a record are left out of the matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from mmgibbs.config import Analysis
from mmgibbs.config.fields import NOT_IN_A_NAME
from mmgibbs.config.smooth_relationships import Autoregression
from mmgibbs.config.variances import KnownResidual
from mmgibbs.data.autoregression import build_autoregression
from mmgibbs.data.levels import code_levels
from mmgibbs.data.phenotypes import SHOWN, Phenotypes, refuse_repeated, refuse_rows
from mmgibbs.data.series import (
    Distances,
    FoundSteps,
    Placed,
    choose_steps,
    code_classes,
    describe_steps,
    find_distances,
)
from mmgibbs.data.traits import Records
from mmgibbs.errors import ConfigError, DataError, nearest
from mmgibbs.models.relationships.base import Relationship
from mmgibbs.models.relationships.identity import Identity
from mmgibbs.models.relationships.user_inverse import SparseInverse
from mmgibbs.models.residual import CorrelatedRecords
from mmgibbs.pedigree.tables import agreeing, counted, quoted

KNOWN = "variances.residual.known"
# after the name of means in the file: effect and trait, ids of the levels, whether the effect is random
NAMES, LEVELS, RANDOM = ":names", ":levels", ":random"
MIN_EIGENVALUE = 1e-10  # of the correlations of means


class KnownMeans(NamedTuple):
    """Means of one effect and trait of a first analysis."""

    source: str  # file, as messages call it
    effect: str
    trait: str
    levels: list[str]  # (L,)
    covariance: np.ndarray  # (L, L)

    @property
    def name(self) -> str:
        return f"{self.effect}.{self.trait}"


def read_known_residuals(
    spec: KnownResidual, records: Records
) -> tuple[tuple[CorrelatedRecords, ...], tuple[str, ...]]:
    """Return the records of each trait with the inverse of their covariance, in units of its mean variance; warnings.

    DataError for a file without labels, a record whose mean is in no file, and two records of one mean.
    """
    files = dict(spec.files) if isinstance(spec.files, dict) else {str(path): path for path in spec.files}
    read = {value: read_means(path) for value, path in files.items()}
    tables = [means for several in read.values() for means in several]
    group, place = _match(spec, records.phenotypes, read, tables)
    keys = zip(group.tolist(), place.tolist(), strict=True)
    name = lambda key: f"the mean of {quoted(tables[key[0]].levels[key[1]])} in {tables[key[0]].name}"
    refuse_repeated(records.phenotypes, range(group.size), keys, name, KNOWN, "one record for each mean")
    return _correlate_by_covariance(records, group, place, tables), tuple(
        _warn_of_means_without_records(group, place, tables)
    )


def _match(
    spec: KnownResidual, phenotypes: Phenotypes, read: dict[str, list[KnownMeans]], tables: Sequence[KnownMeans]
) -> tuple[np.ndarray, np.ndarray]:
    """(n,) number of the table of means that each record is in, and (n,) its place there."""
    phenotypes.need(spec.level, f"{KNOWN}.level")
    levels = phenotypes.text(spec.level, f"{KNOWN}.level").to_list()
    keys = list(zip(*_list_keys(spec, phenotypes), strict=True))
    matched = {key: _find_means(spec, read, *key) for key in dict.fromkeys(keys)}
    number = {id(means): i for i, means in enumerate(tables)}
    places = [{level: i for i, level in enumerate(means.levels)} for means in tables]
    group, place = np.empty(len(phenotypes), np.int64), np.empty(len(phenotypes), np.int64)
    problems: dict[int, str] = {}
    for i, (key, level) in enumerate(zip(keys, levels, strict=True)):
        means = matched[key]
        if isinstance(means, str):
            problems[i] = means
            continue
        group[i] = number[id(means)]
        place[i] = places[group[i]].get(level, -1)
        if place[i] < 0:
            known = nearest(str(level), means.levels, f"means of {means.name} are of")
            problems[i] = (
                f"found {quoted(level)} in column '{spec.level}', which has no mean in {means.source}: {known}"
            )
    if problems:
        rows, texts = phenotypes.rows[list(problems)], [f"{text} ({KNOWN})" for text in problems.values()]
        raise refuse_rows(phenotypes.name, rows, texts, "records that are means of the first analysis")
    return group, place


def read_means(path: Path) -> list[KnownMeans]:
    """Return all means whose covariance a file has. DataError for a file that is none, or of shrunken means."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except FileNotFoundError:
        raise DataError(f"{path}: there is no such file ({KNOWN})") from None
    except (OSError, ValueError, KeyError) as error:
        raise DataError(f"{path}: expected means_covariance.npz of a run ({KNOWN}), got {error}") from None
    names = [name for name in arrays if f"{name}{LEVELS}" in arrays and f"{name}{NAMES}" in arrays]
    if not names:
        raise DataError(
            f"{path}: expected covariances of means with the ids of their levels ({KNOWN}), got none; run the first "
            "analysis again with output.means, which writes them to means_covariance.npz"
        )
    read = []
    for name in names:
        effect, trait = (str(text) for text in arrays[f"{name}{NAMES}"])
        if bool(arrays.get(f"{name}{RANDOM}", np.array(False))):
            raise DataError(
                f"{path}: expected means of fixed effects ({KNOWN}), got those of the random effect {quoted(effect)}, "
                "which are shrunken; make it fixed in the first analysis"
            )
        levels = [str(level) for level in arrays[f"{name}{LEVELS}"]]
        covariance = np.asarray(arrays[name], np.float64)
        if covariance.shape != (len(levels), len(levels)) or not np.isfinite(covariance).all():
            raise DataError(f"{path}: expected a covariance matrix of {len(levels)} means of {name} ({KNOWN})")
        read.append(KnownMeans(path.name, effect, trait, levels, (covariance + covariance.T) / 2))
    return read


def _list_keys(spec: KnownResidual, phenotypes: Phenotypes) -> list[list[str | None]]:
    """Cells of by, effect and trait; None without the column, which records need where the file names it."""
    keys = []
    for key, column in (("by", spec.by), ("effect", spec.effect), ("trait", spec.trait)):
        if column is not None:
            phenotypes.need(column, f"{KNOWN}.{key}")
        is_there = column is not None or (key != "by" and phenotypes.has(key))
        cells = phenotypes.text(column or key, f"{KNOWN}.{key}").to_list() if is_there else [None] * len(phenotypes)
        keys.append(cells)
    return keys


def _find_means(
    spec: KnownResidual, read: dict[str, list[KnownMeans]], by: str | None, effect: str | None, trait: str | None
) -> KnownMeans | str:
    """Return the means that a record is one of, or what is wrong."""
    if spec.by is not None:
        if by not in read:
            known = nearest(str(by), list(read), "the files are of")
            return f"found {quoted(by)} in column '{spec.by}', which has no file; {known}"
        candidates = read[by]
    else:
        candidates = [means for several in read.values() for means in several]
    if len(candidates) > 1 and effect is not None:
        candidates = [means for means in candidates if means.effect == effect]
    if len(candidates) > 1 and trait is not None:
        candidates = [means for means in candidates if means.trait == trait]
    if len(candidates) == 1:
        return candidates[0]
    if not candidates:
        shown = ", ".join(quoted(value) for value in (effect, trait) if value is not None)
        return f"found {shown}, of which no file has means"
    names = ", ".join(f"{means.name} of {means.source}" for means in candidates[:SHOWN])
    return f"found a record that may be a mean of {names}: needed a column that tells them apart (trait, effect, or by)"


def _correlate_by_covariance(
    records: Records, group: np.ndarray, place: np.ndarray, tables: Sequence[KnownMeans]
) -> tuple[CorrelatedRecords, ...]:
    """A block of K^-1 for each table of means, trait by trait. DataError for a table that is of several traits."""
    built = []
    for g, means in enumerate(tables):
        traits = np.flatnonzero(records.observed[group == g].any(axis=0))
        if traits.size > 1:
            raise DataError(
                f"{means.source}: {means.name}: expected means of one trait of the analysis ({KNOWN}), got records of "
                f"{traits.size} traits, whose covariances would be lost"
            )
    for t in range(records.observed.shape[1]):
        is_observed = records.observed[:, t]
        blocks, order = [], []
        for g in np.unique(group[is_observed]):
            rows = np.flatnonzero(is_observed & (group == g))
            covariance = tables[g].covariance[np.ix_(place[rows], place[rows])]
            blocks.append((tables[g], covariance))
            order.append(rows)
        rows = np.concatenate(order)
        # K in units of the mean variance, which is then reported as that of the residuals
        unit = float(np.concatenate([np.diag(block) for _, block in blocks]).mean())
        inverse = [_invert(means, block) * unit for means, block in blocks]
        relationship = _block_diagonal(inverse)
        built.append(CorrelatedRecords(t, 0, relationship, rows, np.arange(rows.size), unit))
    return tuple(built)


def _invert(means: KnownMeans, covariance: np.ndarray) -> np.ndarray:
    """(r, r) inverse of the covariance matrix of r means. DataError where it is not positive definite."""
    variances = np.diag(covariance)
    if not (variances > 0).all():
        level = quoted(means.levels[int(np.argmin(variances))])
        raise DataError(f"{means.source}: {means.name}: expected variances above 0 ({KNOWN}), got the one of {level}")
    sd = np.sqrt(variances)
    values, vectors = np.linalg.eigh(covariance / sd[:, None] / sd)
    if values[0] < MIN_EIGENVALUE:
        raise DataError(
            f"{means.source}: {means.name}: expected a positive definite covariance matrix ({KNOWN}), got one with the "
            f"eigenvalue {values[0]:.1e} of its correlations: some means are functions of others"
        )
    root = vectors / np.sqrt(values) / sd[:, None]
    return root @ root.T


def _block_diagonal(blocks: Sequence[np.ndarray]) -> SparseInverse:
    """blockdiag of (r_g, r_g) matrices as K^-1."""
    sizes = np.array([len(block) for block in blocks])
    first = np.concatenate([[0], np.cumsum(sizes)])
    indptr = np.concatenate([[0], np.cumsum(np.repeat(sizes, sizes))])
    indices = np.concatenate([np.tile(np.arange(a, b), b - a) for a, b in zip(first[:-1], first[1:], strict=True)])
    values = np.concatenate([block.ravel() for block in blocks])
    return SparseInverse(indptr.astype(np.int64), indices.astype(np.int32), values, "the first analysis")


def _warn_of_means_without_records(group: np.ndarray, place: np.ndarray, tables: Sequence[KnownMeans]) -> list[str]:
    """Warn of effects that records are means of, where a mean has no record; a file may have those of others."""
    effects, warnings = {tables[g].effect for g in np.unique(group)}, []
    for g, means in enumerate(tables):
        absent = np.setdiff1d(np.arange(len(means.levels)), place[group == g])
        if absent.size and means.effect in effects:
            names = ", ".join(quoted(means.levels[i]) for i in absent[:SHOWN])
            names += ", ..." if absent.size > SHOWN else ""
            have = f"{counted(absent.size, 'mean')} of {means.name} {agreeing(absent.size, 'has')}"
            warnings.append(
                f"{KNOWN}: {means.source}: {have} no record ({names}): left out of the covariance matrix of the others"
            )
    return warnings


PATH = "variances.residual"


class CorrelatedResiduals(NamedTuple):
    """Residuals that are correlated between records."""

    records: tuple[CorrelatedRecords, ...] = ()  # of each trait and class
    notes: Sequence[str] = ()
    warnings: Sequence[str] = ()
    steps: dict[str, float] = {}  # column -> distance of neighbours


class _Series(NamedTuple):
    """The records of one trait and class, and how they are correlated."""

    place: str  # YAML path
    kind: object
    is_met: np.ndarray
    trait: int
    residual_class: int
    label: str  # of the class, or the trait


def correlated_residuals(
    analysis: Analysis, records: Records, classes: tuple[tuple[str, ...], np.ndarray] | None
) -> CorrelatedResiduals:
    """Return the records of each trait and class, none where residuals are independent.

    classes: names of the classes of residuals, and the class of each record. DataError for a record with several
    traits, and for two records of one cell.
    """
    residual = analysis.variances.residual
    if residual.known is None and not residual.relationships:
        return CorrelatedResiduals()
    key = "known" if residual.known is not None else "relationship"
    _refuse_several_traits(records, f"{PATH}.{key}")
    if residual.known is not None:
        correlated, of_means = read_known_residuals(residual.known, records)
        return CorrelatedResiduals(correlated, warnings=of_means)
    names, class_of_record = classes or (("",), np.zeros(len(records.phenotypes), np.int32))
    several = []
    for c, name in enumerate(names):
        section, kind, place = residual.classes.get(name), residual.relationship, PATH
        if section is not None and "relationship" in section.model_fields_set:
            kind, place = section.relationship, f"{PATH}.classes.{name}"
        for t in range(len(analysis.traits)):
            is_met = records.observed[:, t] & (class_of_record == c)
            if is_met.any():
                several.append(_Series(place, kind, is_met, t, c, name or analysis.traits[t].name))
    steps = _find_common_steps(records.phenotypes, several)
    built = tuple(_correlate(records, series, steps[series.place]) for series in several)
    notes = [text for found in steps.values() for text in found.notes]
    warnings = [text for found in steps.values() for text in found.warnings]
    lengths = {
        f"{column}|{series.label}" if len(steps) > 1 else column: length
        for series in several
        for column, length in steps[series.place].lengths.items()
    }
    return CorrelatedResiduals(built, notes, warnings, lengths)


def _find_common_steps(phenotypes: Phenotypes, several: Sequence[_Series]) -> dict[str, FoundSteps]:
    """Path of a relationship -> its steps: one for all classes and traits that have a column in common, unless a
    relationship states its own."""
    distances: list[tuple[Autoregression, dict[str, Distances]]] = []
    for series in several:
        if isinstance(series.kind, Autoregression):
            path, rows = f"{series.place}.relationship", np.flatnonzero(series.is_met)
            group, names = code_classes(phenotypes, series.kind.within, f"{path}.within", series.is_met)
            shown = names if series.kind.within is not None else pl.Series("id", [series.label])
            found = find_distances(Placed(phenotypes, path, series.kind, rows, group, shown))
            distances.append((series.kind, found))
    steps = {}
    for series in several:
        kind, path = series.kind, f"{series.place}.relationship"
        if not isinstance(kind, Autoregression):
            steps[series.place] = FoundSteps({})
        elif series.place not in steps:
            pool = [
                {key: values for key, values in found.items() if _have_common_step(kind, other, key)}
                for other, found in distances
            ]
            steps[series.place] = describe_steps(kind, choose_steps(kind, path, phenotypes.name, pool), path, pool)
    return steps


def _have_common_step(kind: Autoregression, other: Autoregression, key: str) -> bool:
    if key in kind.stated_steps or key in other.stated_steps:
        return kind == other
    return getattr(kind, key) == getattr(other, key)


def _correlate(records: Records, series: _Series, steps: FoundSteps) -> CorrelatedRecords:
    """The records of one trait and class, their cells and K."""
    rows = np.flatnonzero(series.is_met)
    relationship: Relationship = Identity(rows.size)
    cells = np.arange(rows.size)
    if isinstance(series.kind, Autoregression):
        built = build_autoregression(records.phenotypes, series.place, series.kind, [series.is_met], steps)
        relationship, cells = built.relationship, built.levels[0][rows].astype(np.int64)
        ids, what = built.ids.to_list(), "time" if built.plots is None else "plot"
        refuse_repeated(
            records.phenotypes,
            rows.tolist(),
            cells.tolist(),
            lambda cell: f"{what} '{ids[cell]}'",
            f"{series.place}.relationship",
            f"one record for each {what}, where the residuals have no nugget; name the column of the trials in within, "
            "or write the relationship below a random effect",
        )
    return CorrelatedRecords(series.trait, series.residual_class, relationship, rows, cells)


def _refuse_several_traits(records: Records, path: str) -> None:
    several = np.flatnonzero(records.observed.sum(axis=1) > 1)
    if several.size:
        raise refuse_rows(
            records.phenotypes.name,
            records.phenotypes.rows[several],
            [f"found values of several traits ({path})"] * SHOWN,
            "one trait in each row, such as {TRAIT: {by: COLUMN}} has, where residuals of records are correlated",
        )


BY = "variances.residual.by"


def residual_classes(analysis: Analysis, records: Records) -> tuple[tuple[str, ...], np.ndarray] | None:
    """(names of the classes, class of each record (n,) int32); None where one matrix serves all records.

    DataError for a record without a class, and for a class whose name parameters cannot carry; ConfigError for a class
    of the analysis that no record has.
    """
    spec, phenotypes = analysis.variances.residual, records.phenotypes
    if spec.by is None:
        return None
    text = phenotypes.text(spec.by, BY)
    absent = text.is_null().to_numpy()
    if absent.any():
        raise refuse_rows(
            phenotypes.name,
            phenotypes.rows[absent],
            [f"found no value in column '{spec.by}' ({BY})"] * SHOWN,
            "the class of the residual of every record that observes a trait",
        )
    ids, (code,) = code_levels([text])
    names = tuple(ids.to_list())
    for name in names:
        bad = next((c for c in name if c in NOT_IN_A_NAME), None)
        if bad is not None:
            raise DataError(
                f"{phenotypes.name}: column '{spec.by}' ({BY}): found the class '{name}' with the character {bad!r}, "
                f"needed names without {' '.join(NOT_IN_A_NAME)}, since parameters are named by them"
            )
    for name in spec.classes:
        if name not in names:
            known = nearest(name, names, "the classes are")
            raise ConfigError(
                f"variances.residual.classes.{name}: no record has this value in column '{spec.by}'; {known}"
            )
    return names, code
