"""BLUP of one analysis at given variances, with some of its records left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl

from mmgibbs.build.assemble import Assembled, assemble
from mmgibbs.build.memory_estimate import refuse_solving_beyond_memory
from mmgibbs.config import Analysis
from mmgibbs.config.sampling import TOLERANCES
from mmgibbs.config.variances import Variances
from mmgibbs.data.animal_ids import guess_parent_role
from mmgibbs.data.interactions import interactions_of_columns
from mmgibbs.data.levels import lookup
from mmgibbs.data.phenotypes import Phenotypes, read_phenotypes
from mmgibbs.data.prepare import prepare
from mmgibbs.data.prepared import Prepared
from mmgibbs.data.random import ANIMAL_COLUMNS, animal_column
from mmgibbs.data.residuals import BY as RESIDUAL_CLASSES
from mmgibbs.data.traits import read_records
from mmgibbs.engines.direct.solutions import needs_factor, solve_by_factor
from mmgibbs.engines.direct.solver import DirectSolver, PlannedFactor, planned_factor
from mmgibbs.engines.pcg.solver import PcgSolver
from mmgibbs.equations.base import refuse_reduced_rank
from mmgibbs.equations.partition import partition
from mmgibbs.equations.structured import structured_equations
from mmgibbs.errors import ConfigError, DataError, ModelError
from mmgibbs.machine.threads import ALONE, Threads
from mmgibbs.models.design import Design
from mmgibbs.models.relationships.base import Relationship, solve_inverse
from mmgibbs.models.relationships.identity import Identity
from mmgibbs.models.terms import Term
from mmgibbs.pedigree.tables import quoted
from mmgibbs.validation.options import refuse_without_starts


@dataclass(frozen=True)
class Recorded:
    """An analysis and the records that it uses, in the order of the design."""

    analysis: Analysis  # to be solved by BLUP, or sampled, at given variances
    phenotypes: Phenotypes
    animal: pl.Series  # (n,) String, of each record
    column: str  # that names the animal
    table: Phenotypes | None = None  # all rows of the file as read, until its design is made

    @property
    def units(self) -> str:
        """Name of the units of this column: levels of a sire model are no animals with records of their own."""
        return "animals" if self.column in ANIMAL_COLUMNS else f"levels of '{self.column}'"

    def without(self, masked: np.ndarray) -> Analysis:
        """The analysis with every trait missing on the records of `masked` (n,) bool; animals stay in the pedigree."""
        seen, data = pl.Series(~masked), self.analysis.data
        columns = dict.fromkeys(trait.column for trait in self.analysis.traits)
        absent = {value for trait in self.analysis.traits for value in trait.missing}
        # the records that are left may not show whether their commas are decimal
        frame = self.phenotypes.with_points(self._read_as_numbers(), absent)
        frame = frame.with_columns(pl.when(seen).then(pl.col(c)).alias(c) for c in columns)
        plain = {"header": None, "separator": None, "encoding": None, "widths": None, "decimal": data.decimal and "."}
        data = data.model_copy(update={"phenotypes": frame, **plain})
        return self.analysis.model_copy(update={"data": data, "variances": self._used_variances(seen)})

    def _read_as_numbers(self) -> set[str]:
        """Columns of numbers that are not levels as well: these keep their names."""
        model, by = self.analysis.model, self.analysis.variances.residual.by
        random = [e for r in model.random.values() for e in r.effects.values()]
        covariates = {x for f in model.fixed.values() for x in f.number_columns}
        covariates |= {x for e in random for x in e.covariates or ()}
        covariates |= {e.legendre.column for e in random if e.legendre is not None}
        levels = {c for f in model.fixed.values() for c in f.class_columns}
        levels |= {c for e in random for c in e.level_columns} | {m.level for m in model.markers.values()}
        return (covariates | self.phenotypes.of_numbers) - levels - {by, self.column}

    def _used_variances(self, seen: pl.Series) -> Variances:
        """Drop the residual classes of which no record is left."""
        variances = self.analysis.variances
        if variances.residual.by is None:
            return variances
        remaining_classes = set(self.phenotypes.text(variances.residual.by, RESIDUAL_CLASSES).filter(seen))
        classes = {name: spec for name, spec in variances.residual.classes.items() if name in remaining_classes}
        residual = variances.residual.model_copy(update={"classes": classes})
        return variances.model_copy(update={"residual": residual})


@dataclass(frozen=True)
class Evaluation:
    """Solutions of the mixed-model equations at given variances."""

    prepared: Prepared
    assembled: Assembled
    solver: PcgSolver | None  # None: only what was found is wanted
    theta: list[np.ndarray]  # per term (q, k), on the scale of the design
    direct: DirectSolver | None = None  # for many right-hand sides, where it is the quicker way

    @property
    def design(self) -> Design:
        return self.prepared.design

    def variance(self, i: int) -> np.ndarray:
        """(k, k) covariance matrix of random term i, as given."""
        return self.assembled.model.covariance(i).start

    @property
    def engine(self) -> PcgSolver:
        """The solver for other right-hand sides."""
        if self.solver is None:
            refuse_reduced_rank(self.design)
        assert self.solver is not None, "only what was found was kept of this evaluation"
        return self.solver

    def single_threaded(self) -> Evaluation:
        """Return the evaluation with one thread, for who solves several right-hand sides side by side."""
        engine = copy(self.engine)
        engine.threads = ALONE
        return replace(self, solver=engine)

    def planned(self, columns: int) -> PlannedFactor | None:
        """The factor by which so many right-hand sides are best solved, before it is made; None: by iterations."""
        model = self.assembled.model
        G = [None if c is None else c.start for c in model.covariances]
        return planned_factor(self.engine, G, model.residual.start, columns)

    def solutions(self, b: np.ndarray, tolerance: float) -> np.ndarray:
        """C^-1 b (N, m), in sweep order; tolerance: of an iteration, in posterior standard deviations."""
        if self.direct is not None:
            return self.direct.solve(b)
        return self.engine.solve_columns(b, np.zeros(b.shape), tolerance).x


def read_recorded(analysis: Analysis, sampled: bool = False) -> Recorded:
    """The records of an analysis. Raises ConfigError where it cannot be validated. sampled: so are its variances."""
    if analysis.model.plugin is not None:
        raise ConfigError(f"validate: found model.plugin {analysis.model.plugin}, needed a mixed model (model.random)")
    residual = analysis.variances.residual
    if residual.known is not None or residual.relationships:
        key = "relationship" if residual.known is None else "known"
        raise ConfigError(
            f"validate: variances.residual.{key}: expected independent residuals, got correlated ones, of which none "
            "can be left out alone"
        )
    for name, random in analysis.model.random.items():
        for effect in random.effects.values():
            if effect.legendre is not None and effect.legendre.range is None:
                raise ConfigError(
                    f"validate: model.random.{name} has Legendre polynomials without a range; needed `range: "
                    "[low, high]`,"
                    " so that they stay the same where records are left out"
                )
    if not sampled:
        refuse_without_starts(analysis)
    data = analysis.data
    table = replace(read_phenotypes(data), interactions=interactions_of_columns(analysis))
    phenotypes = read_records(analysis, table).phenotypes
    _refuse_mates_without_records(analysis, phenotypes, table)
    related = [
        e.level
        for r in analysis.model.random.values()
        if r.relationship.related
        for e in r.effects.values()
        if guess_parent_role(e.level) is None and not e.has_several_levels
    ] + [m.level for m in analysis.model.markers.values()]
    every = [e.level for r in analysis.model.random.values() for e in r.effects.values() if not e.has_several_levels]
    column = animal_column(analysis.model.random, phenotypes) or next(iter([*related, *every]), None)
    if column is None or not phenotypes.has(column):
        raise ConfigError(
            f"validate: found no column of {phenotypes.name} that names the animal of a record; needed a random effect "
            "or SNP effects, whose level is the animal or the line, or a column called animal or id"
        )
    return Recorded(
        analysis if sampled else _fix_variances(analysis),
        phenotypes,
        phenotypes.text(column, "validate", data.unknown_parent),
        column,
        table,
    )


def drop_unused(records: Recorded, prepared: Prepared) -> Recorded:
    """Drop the records that the design lacks: SNP effects may drop those of animals without genotypes.

    Steps of autoregressions are those of all records, also where some are left out.
    """
    records = replace(records, analysis=_hold_steps(records.analysis, prepared.counts.get("steps", {})))
    used = np.isin(records.phenotypes.rows, prepared.record_row)
    if used.all():
        return replace(records, table=None)
    animal = records.animal.filter(pl.Series(used))
    return replace(records, phenotypes=records.phenotypes.keep(used), animal=animal, table=None)


def _hold_steps(analysis: Analysis, steps: Mapping[str, Mapping[str, float]]) -> Analysis:
    """The analysis with these steps; steps: term -> column -> its step."""
    random = {
        name: term.model_copy(update={"relationship": term.relationship.with_steps(steps[name])})
        for name, term in analysis.model.random.items()
        if name in steps
    }
    model = analysis.model.model_copy(update={"random": {**analysis.model.random, **random}})
    return analysis.model_copy(update={"model": model})


def _fix_variances(analysis: Analysis) -> Analysis:
    """Fix the variances for BLUP. Records with liabilities, or SNPs with effects, are sampled at fixed variances."""
    random = {
        name: term.model_copy(update={"relationship": term.relationship.with_fixed_parameters()})
        for name, term in analysis.model.random.items()
    }
    analysis = analysis.model_copy(update={"model": analysis.model.model_copy(update={"random": random})})
    if any(not trait.is_normal for trait in analysis.traits) or analysis.model.markers:
        return analysis.model_copy(update={"variances": analysis.variances.model_copy(update={"mode": "fixed"})})
    blup = {"method": "blup", "tolerance": TOLERANCES["blup"], "pev_limit": 0}
    return analysis.model_copy(update={"sampler": analysis.sampler.model_copy(update=blup)})


def evaluate(analysis: Analysis, prepared: Prepared | None = None, threads: Threads = ALONE) -> Evaluation:
    """BLUP by conjugate gradients at the starts of the variances. prepared:
    of this analysis, where it is there already. threads: the same solutions, sooner.
    """
    prepared = prepare(analysis) if prepared is None else prepared
    assembled = assemble(analysis, prepared)
    refuse_solving_beyond_memory(analysis, assembled)
    model = assembled.model
    G, R = [None if c is None else c.start for c in model.covariances], model.residual.start
    if model.design.n_scores:  # PCG needs the inverse of G
        return Evaluation(prepared, assembled, None, solve_by_factor(model.design, G, R))
    equations = structured_equations(model.design, partition(model.design))
    engine = PcgSolver(equations, threads, analysis.sampler.preconditioner)
    engine.set_variances(G, R)
    if needs_factor(model.design):
        return Evaluation(prepared, assembled, engine, solve_by_factor(model.design, G, R))
    tolerance = analysis.sampler.tolerance
    assert tolerance is not None, "a complete analysis has one"
    return Evaluation(prepared, assembled, engine, engine.solve(tolerance).theta)


def evaluate_masked(records: Recorded, masked: np.ndarray, what: str, threads: Threads = ALONE) -> Evaluation:
    """The evaluation without some records; `what` they are is named where it is impossible."""
    try:
        return evaluate(_as_it_can_be_solved(records.without(masked)), threads=threads)
    except (DataError, ModelError) as error:
        raise type(error)(f"validate: without the records of {what}: {error}") from None


def _as_it_can_be_solved(analysis: Analysis) -> Analysis:
    """Set `absorption` to auto: where the whole data have just enough records for it, a part may have too few."""
    if analysis.sampler.preconditioner != "absorption":
        return analysis
    return analysis.model_copy(update={"sampler": analysis.sampler.model_copy(update={"preconditioner": "auto"})})


def label(term: str, effect: str, trait: str) -> str:
    """'genetic direct, weaning_weight'."""
    return f"{' '.join(p for p in (term, effect) if p)}, {trait}"


def differing_held_groups(whole_data: Evaluation, partial: Evaluation, i: int) -> np.ndarray:
    """(k,) bool per component of term i of whole: its fixed unknown-parent groups at 0 are not those of the partial
    data.
    """
    term = whole_data.design.terms[i]
    partial_term = next(t for t in partial.design.terms if t.name == term.name)
    if not term.groups_fixed:
        return np.zeros(term.n_components, bool)
    return (
        np.any(_held(term) != _held(partial_term), axis=0)
        if term.n_groups == partial_term.n_groups
        else np.ones(term.n_components, bool)
    )


def _held(term: Term) -> np.ndarray:
    """(groups, k) bool."""
    active = np.ones((term.n_levels, term.n_components), bool) if term.active is None else term.active
    return ~active[term.n_levels - term.n_groups :]


def random_solutions(partial: Evaluation, whole_data: Evaluation) -> list[np.ndarray]:
    """Solutions from the partial data, by the levels of the whole data; of levels without a record what others say of
    them, which is 0 of independent levels.

    Fixed effects are left at 0. Raises DataError for an animal that left the pedigree with its records.
    """
    out = [np.zeros((t.n_levels, t.n_components)) for t in whole_data.design.terms]
    where = {t.name: i for i, t in enumerate(partial.design.terms)}
    for i, term in enumerate(whole_data.design.terms):
        if term.kind == "random":
            j, ids = where[term.name], whole_data.prepared.levels[i].ids
            code = lookup(ids, partial.prepared.levels[j].ids)
            if term.relationship.related and code.null_count():
                raise DataError(
                    f"validate: animal {quoted(ids.filter(code.is_null())[0])} is in the pedigree because it has "
                    "records (data.add_missing_animals), and is not without them; needed a row of the pedigree for "
                    "every animal"
                )
            is_known = code.is_not_null().to_numpy()
            out[i][is_known] = partial.theta[j][code.drop_nulls().to_numpy()]
            out[i][~is_known] = _predict_levels(term.relationship, is_known, out[i])
    return out


def _predict_levels(relationship: Relationship, is_known: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """(levels that are not known, k) their expectation given the others: points of a curve, times, between known ones.

    E(u | s) = -(K^-1)_uu^-1 (K^-1)_us theta_s, which is 0 of independent levels.
    """
    unknown = np.flatnonzero(~is_known)
    if not unknown.size or relationship.related or isinstance(relationship, Identity):
        return np.zeros((unknown.size, theta.shape[1]))
    inverse = relationship.inverse_matrix()
    return solve_inverse(relationship, unknown, -(inverse[unknown] @ np.where(is_known[:, None], theta, 0.0)))


# ------------------------------------------------------------ records for another machine


class Portable:
    """Records that can be pickled together with the pedigree and the relationship matrices, whole files."""

    def __init__(self, records: Recorded, files: list[tuple[str, bytes]] | None = None):
        self._records = records
        self._files = files  # None where they are where the analysis says

    def __reduce__(self) -> tuple[Any, ...]:
        files: list[tuple[str, bytes]] = []

        def pack(path: Path) -> Path:
            files.append((path.name, path.read_bytes()))
            return path

        replace_files(self._records.analysis, pack)
        return Portable, (self._records, files)

    @contextmanager
    def records(self) -> Iterator[Recorded]:
        """The records; within the block their files are there."""
        if self._files is None:
            yield self._records
            return
        with TemporaryDirectory(prefix="mmgibbs-") as folder:
            remaining = enumerate(self._files)

            def unpack(_: Path) -> Path:
                number, (name, content) = next(remaining)
                path = Path(folder) / str(number) / name  # two files may have one name
                path.parent.mkdir()
                path.write_bytes(content)
                return path

            yield replace(self._records, analysis=replace_files(self._records.analysis, unpack))


def replace_files(analysis: Analysis, change: Callable[[Path], Path]) -> Analysis:
    """The analysis with change(path) in place of each file that its design is read from, records aside."""
    data, model = analysis.data, analysis.model
    if isinstance(data.pedigree, Path):
        data = data.model_copy(update={"pedigree": change(data.pedigree)})
    if data.genotypes is not None:
        data = data.model_copy(update={"genotypes": data.genotypes.with_paths(change)})
    random = {
        name: r.model_copy(update={"relationship": r.relationship.with_paths(change)})
        for name, r in model.random.items()
    }
    return analysis.model_copy(update={"data": data, "model": model.model_copy(update={"random": random})})


def _refuse_mates_without_records(analysis: Analysis, phenotypes: Phenotypes, table: Phenotypes) -> None:
    """ConfigError where animals without records may be mates: folds read again the records that are used alone."""
    if len(phenotypes) == len(table):
        return
    for name, random in analysis.model.random.items():
        for of_effect, effect in random.effects.items():
            if effect.mates is not None:
                raise ConfigError(
                    f"validate: model.random.{name}.effects.{of_effect}.level: cannot be combined with rows of "
                    f"{table.name} without a record, whose animals are mates too; needed the columns of the mates, "
                    "level: [mate1, mate2]"
                )
