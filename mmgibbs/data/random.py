"""Random effects as terms of the design: the levels that records meet, and the covariates of random regressions.

An effect's `level` is a column of the phenotypes. `sire` and `dam`, where the phenotypes have no such column, are the
parents of the record's animal in the pedigree. The record's animal stands in the one level column of the pedigree
effects that names no parent (usually `animal`); where there is none, in a phenotype column called animal or id; where
there is more than one, in the one of them called so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from mmgibbs.config import Analysis, Data, Random, RandomEffect
from mmgibbs.data.animal_ids import codes_for_unknown, explain_respelled, guess_parent_role
from mmgibbs.data.covariates import legendre
from mmgibbs.data.genotypes.prepare import PreparedGenotypes
from mmgibbs.data.group_mates import find_mates
from mmgibbs.data.levels import code_levels, lookup
from mmgibbs.data.phenotypes import SHOWN, Phenotypes, refuse_rows
from mmgibbs.data.prepared import LevelLabels
from mmgibbs.data.relationships import READERS, Kin
from mmgibbs.data.series import FoundSteps
from mmgibbs.data.traits import observing
from mmgibbs.errors import DataError
from mmgibbs.models.terms import Effect, Levels, Related, Term
from mmgibbs.pedigree.problems import MAX_ROWS_LISTED
from mmgibbs.pedigree.read import Pedigree
from mmgibbs.pedigree.spelling import have_lost_digits, normal_forms
from mmgibbs.pedigree.tables import agreeing, counted, format_number, quoted

ANIMAL_COLUMNS = ("animal", "id")
PARENT_COLUMNS = ("sire", "dam", "father", "mother")
_FROM_PEDIGREE = ("sire", "dam")
COLUMN_KEYS = ("row", "column", "time", "of", "within")  # of relationships whose levels are made of columns


def animal_column(random: Mapping[str, Random], phenotypes: Phenotypes) -> str | None:
    """The column that names the record's animal, or None where the rule at the head of this file finds none."""
    columns = dict.fromkeys(
        e.level
        for r in random.values()
        if r.relationship.of_pedigree
        for e in r.effects.values()
        if guess_parent_role(e.level) is None
    )
    candidates = [c for c in columns if c in phenotypes.columns]
    if len(candidates) == 1:
        return candidates[0]
    return next((c for c in ANIMAL_COLUMNS if c in (candidates or phenotypes.columns)), None)


def unknown_values(effect: RandomEffect, of_pedigree: bool, data: Data) -> tuple[str, ...]:
    """Cells that mean an unknown level: those of the effect, and the pedigree's wherever a column holds animals."""
    holds_animals = of_pedigree or guess_parent_role(effect.level) is not None
    return (*effect.missing, *(data.unknown_parent if holds_animals else ()))


def ids_with_records(analysis: Analysis, phenotypes: Phenotypes, observed: np.ndarray) -> pl.Series:
    """Animals that the records of pedigree effects name, in order of appearance: what `add_missing_animals` adds."""
    series = []
    for name, random in analysis.model.random.items():
        for effect in random.effects.values() if random.relationship.of_pedigree else ():
            needed = pl.Series(_needed(effect.traits, analysis, observed))
            unknown = unknown_values(effect, True, analysis.data)
            for name_of_column in filter(phenotypes.has, effect.id_columns):
                named = phenotypes.text(name_of_column, name, unknown)
                series.append(named if effect.mates is not None else named.filter(needed))
    column = animal_column(analysis.model.random, phenotypes)
    if takes_parents(analysis.model.random, phenotypes) and column is not None:
        series.append(phenotypes.text(column, "level", analysis.data.unknown_parent))
    ids = pl.concat([f.rename("id") for f in series]) if series else pl.Series("id", [], pl.String)
    return ids.drop_nulls().unique(maintain_order=True)


def takes_parents(random: Mapping[str, Random], phenotypes: Phenotypes) -> bool:
    """Check whether some level is the sire or dam from the pedigree."""
    return any(
        e.level in _FROM_PEDIGREE and e.level not in phenotypes.columns
        for r in random.values()
        for e in r.effects.values()
    )


def wanted_columns(random: Mapping[str, Random]) -> list[str]:
    """List every phenotype column that random effects may use."""
    out = list(ANIMAL_COLUMNS)
    for r in random.values():
        out += r.relationship.number_columns
        for e in r.effects.values():
            out += [*e.level_columns, *(e.covariates or ()), *((e.legendre.column,) if e.legendre else ())]
            out += [*e.weight_columns, *((e.mates.group,) if e.mates else ())]
    return out


class RandomTerms:
    """Builds the random terms of one analysis from its phenotypes and, where there is one, its pedigree."""

    def __init__(
        self,
        analysis: Analysis,
        phenotypes: Phenotypes,
        observed: np.ndarray,
        kin: Kin | None,
        genotypes: PreparedGenotypes | None = None,
        table: Phenotypes | None = None,
    ):
        self.analysis, self.phenotypes, self.observed, self.kin = analysis, phenotypes, observed, kin
        self.genotypes, self.table = genotypes, phenotypes if table is None else table  # all rows of the table
        self._slots: dict[str, list[RandomEffect]] = {}
        self.notes: list[str] = []
        self.warnings: list[str] = []
        self.ranges: dict[str, list[float]] = {}  # 'TERM.EFFECT' -> of its Legendre polynomials
        self.steps: dict[str, dict[str, float]] = {}  # term -> column -> distance of neighbours
        self._record_animals: np.ndarray | None = None
        self._animal_column = ""

    def build(self, name: str) -> tuple[Term, LevelLabels]:
        """Build a term of `model.random` and its labels.

        DataError: a level or covariate that is missing or unknown on a record that needs it.
        """
        random = self.analysis.model.random[name]
        columns: list[pl.Series | np.ndarray] = []
        self._slots[name], sizes = [], []
        for effect_name, effect in random.effects.items():
            of_effect = self._ids_of_slots(name, effect_name, effect)
            columns += of_effect
            sizes.append(len(of_effect))
            names = effect.levels or effect.id_columns * len(of_effect)
            self._slots[name] += [effect.model_copy(update={"level": column}) for column in names]
        read = READERS[type(random.relationship)](self, name, random.relationship, columns)
        ends = np.cumsum(sizes)
        effects = []
        for (effect_name, effect), first, end in zip(random.effects.items(), ends - sizes, ends, strict=True):
            level = np.stack(read.levels[first:end], axis=1) if effect.has_several_levels else read.levels[first]
            effects.append(self._effect(name, effect_name, effect, level, read.factor))
        prior = Related(read.relationship, self.analysis.variances.terms[name].structure.n_scores)
        return Term(name, Levels(tuple(effects), read.relationship.n_levels), prior), read.labels

    def add_steps(self, name: str, steps: FoundSteps) -> None:
        """Keep the steps of a term, and what is said of them."""
        self.notes += steps.notes
        self.warnings += steps.warnings
        if steps.lengths:
            self.steps[name] = steps.lengths

    def slots(self, name: str) -> list[RandomEffect]:
        """Effects of a term, once for each column of levels that records have: its level says which."""
        return self._slots[name]

    @property
    def _pedigree(self) -> Pedigree:
        assert self.kin is not None, "a pedigree that is needed has been read"
        return self.kin.pedigree

    # -------------------------------------------------------------------------------------------- levels

    def _ids_of_slots(self, term: str, effect_name: str, effect: RandomEffect) -> list[pl.Series | np.ndarray]:
        """Levels of each record as `_level_ids` says them, one column for each that it may have."""
        if not effect.has_several_levels:
            return [self._level_ids(term, effect_name, effect)]
        path, of_pedigree = _path(term, effect_name, "level"), self.analysis.model.random[term].relationship.of_pedigree
        needed = _needed(effect.traits, self.analysis, self.observed)
        unknown = unknown_values(effect, of_pedigree, self.analysis.data)
        if effect.levels is not None:
            ids = [self._read_levels(column, path, unknown, of_pedigree) for column in effect.levels]
            has_value = np.stack([column.is_not_null().to_numpy() for column in ids], axis=1)
            is_empty = ~has_value.any(axis=1)
            some = int(np.count_nonzero(needed & ~is_empty & ~has_value.all(axis=1)))
            if some:
                self.notes.append(
                    f"{path}: {counted(some, 'record', 'has')} no level in some of the columns "
                    f"{', '.join(effect.levels)}: used with the others"
                )
        else:
            ids, is_empty = self._ids_of_mates(effect, path, unknown, of_pedigree)
        found = f"found no known level in {effect.level} ({path})"
        if effect.mates is not None:
            found = f"found no value in column '{effect.mates.group}' ({path}.group), so its mates are not known"
        self._accept_unknown(needed & is_empty, effect, path, [found] * SHOWN)
        return [pl.DataFrame({"id": c, "needed": needed}).select(pl.when("needed").then("id")).to_series() for c in ids]

    def _read_levels(self, column: str, path: str, unknown: tuple[str, ...], of_pedigree: bool) -> pl.Series:
        ids = self.phenotypes.text(column, path, unknown)
        return self._mask_unknown_codes(ids, column, path) if of_pedigree else ids

    def _ids_of_mates(
        self, effect: RandomEffect, path: str, unknown: tuple[str, ...], of_pedigree: bool
    ) -> tuple[list[pl.Series], np.ndarray]:
        """(ids of the mates of each record, null where none; (n,) bool whether its group is unknown)."""
        mates, of_table = effect.mates, self.table
        assert mates is not None, "asked before"
        groups = of_table.text(mates.group, f"{path}.group", effect.missing)
        animals = of_table.text(mates.of, f"{path}.of", unknown)
        if of_pedigree:
            animals = self._mask_unknown_codes(animals, mates.of, path)
        records = np.searchsorted(of_table.rows, self.phenotypes.rows)
        found = find_mates(groups, animals, records, mates.others)
        n_mates, has_group = np.count_nonzero(found.mate >= 0, axis=1), groups.is_not_null().to_numpy()[records]
        if has_group.any():
            whose = "other animals of its" if mates.others else "animals of its"
            itself = "" if mates.others else ", itself among them"
            self.notes.append(
                f"{path}: a record has {n_mates[has_group].mean():.3g} {whose} {mates.group} on average, "
                f"{n_mates.max()} at most{itself}"
            )
        alone = int(np.count_nonzero(has_group & (n_mates == 0)))
        if alone:
            self.notes.append(
                f"{path}: {counted(alone, 'record', 'is')} of animals alone in their {mates.group}: used without this "
                "effect"
            )
        ids = [pl.Series(np.where(mate >= 0, mate, len(found.ids))) for mate in found.mate.T]
        known = pl.concat([found.ids.rename("id"), pl.Series("id", [None], pl.String)])
        return [known.gather(place) for place in ids], ~has_group

    def _level_ids(self, term: str, effect_name: str, effect: RandomEffect) -> pl.Series | np.ndarray:
        """Level of each record: ids (String, null where none) or, for parents from the pedigree, codes (-1 where none).

        Records that observe none of the effect's traits have none.
        """
        path = _path(term, effect_name, "level")
        needed = _needed(effect.traits, self.analysis, self.observed)
        if self.phenotypes.has(effect.level):
            of_pedigree = self.analysis.model.random[term].relationship.of_pedigree
            unknown = unknown_values(effect, of_pedigree, self.analysis.data)
            ids = self.phenotypes.text(effect.level, path, unknown)
            ids = pl.DataFrame({"id": ids, "needed": needed}).select(pl.when("needed").then("id")).to_series()
            if of_pedigree or guess_parent_role(effect.level) is not None:
                ids = self._mask_unknown_codes(ids, effect.level, path)
            absent = needed & ids.is_null().to_numpy()
            as_written = self.phenotypes.text(effect.level, path)
            rows = np.flatnonzero(absent)[:SHOWN].tolist()
            columns = [self.phenotypes.find_empty(effect.level, path, i) for i in rows]
            problems = [
                f"found no known level in column '{column}' ({self._column_path(term, column) or path})"
                + (f", but {quoted(as_written[i])} for unknown" if as_written[i] is not None else "")
                for i, column in zip(rows, columns, strict=True)
            ]
            self._accept_unknown(absent, effect, path, problems)
            return ids
        if effect.level not in _FROM_PEDIGREE or self.kin is None:
            if effect.level in _FROM_PEDIGREE:
                raise DataError(
                    f"{self.phenotypes.name}: there is no column '{effect.level}' ({path}), nor a pedigree "
                    "(data.pedigree) to take it from"
                )
            self.phenotypes.need(effect.level, path.removesuffix(".level") if effect.interaction else path)
        animals = self._animals_of_records(effect.level, path)
        parent = getattr(self._pedigree, effect.level)
        codes = np.where(animals >= 0, parent[animals], -1).astype(np.int32)
        codes[(codes >= len(self._pedigree.ids)) | ~needed] = -1  # an unknown-parent group is no animal
        absent = np.flatnonzero(needed & (codes < 0))
        ids = self._pedigree.ids
        problems = [
            f"the {effect.level} of animal {quoted(ids[int(animals[i])])} is unknown in the pedigree ({path})"
            for i in absent[:SHOWN]
        ]
        self._accept_unknown(needed & (codes < 0), effect, path, problems)
        return codes

    def _column_path(self, term: str, column: str) -> str | None:
        """Return the path of the key by which the relationship of a term names a column, as the rows of plots."""
        relationship = self.analysis.model.random[term].relationship
        key = next((key for key in COLUMN_KEYS if getattr(relationship, key, None) == column), None)
        return None if key is None else f"model.random.{term}.relationship.{key}"

    def _mask_unknown_codes(self, ids: pl.Series, column: str, path: str) -> pl.Series:
        """The ids, null where a code for unknown; a warning says which, but for a user's code in another spelling."""
        pedigree = self.kin.pedigree if self.kin is not None else None
        codes = codes_for_unknown(ids, self.analysis.data, pedigree)
        if not codes.height:
            return ids
        named = normal_forms(pl.Series(self.analysis.data.unknown_parent, dtype=pl.String))
        is_named = normal_forms(codes["id"]).is_in(named.implode())
        for chosen, said in ((codes.filter(is_named), self.notes), (codes.filter(~is_named), self.warnings)):
            if chosen.height:
                listed = ", ".join(f"{quoted(i)} ({counted(n, 'record')})" for i, n in chosen.head(SHOWN).iter_rows())
                said.append(
                    f"{self.phenotypes.name}: column '{column}' ({path}): {listed}"
                    f"{f' and {chosen.height - SHOWN} more' if chosen.height > SHOWN else ''} "
                    f"{agreeing(chosen.height, 'is')} taken for an unknown animal"
                    + (": add such codes to data.unknown_parent" if said is self.warnings else "")
                )
        return pl.DataFrame({"id": ids}).select(pl.when(~pl.col("id").is_in(codes["id"].implode())).then("id"))["id"]

    def _accept_unknown(self, absent: np.ndarray, effect: RandomEffect, path: str, problems: Sequence[str]) -> None:
        if not absent.any():
            return
        option = f"{path.removesuffix('level')}unknown_level"
        if effect.unknown_level != "omit":
            raise refuse_rows(
                self.phenotypes.name,
                self.phenotypes.rows[absent],
                problems,
                f"{'a known level' if effect.mates is None else 'its group'}, or '{option}: omit' (the record is then "
                "used without this effect)",
            )
        lacking = effect.level if effect.mates is None else effect.mates.group
        self.notes.append(
            f"{option}: omit: {counted(int(np.count_nonzero(absent)), 'record', 'has')} no {lacking}: used without "
            "this effect"
        )

    def _animals_of_records(self, level: str, path: str) -> np.ndarray:
        """(n,) int32 code of each record's animal."""
        if self._record_animals is None:
            column = animal_column(self.analysis.model.random, self.phenotypes)
            if column is None:
                raise DataError(
                    f"{self.phenotypes.name}: there is no column '{level}' ({path}), and it cannot be taken from "
                    "the pedigree: no column names the record's animal; "
                    f"needed a column animal or id, or one level column besides sire and dam among the pedigree effects"
                )
            ids = self.phenotypes.text(column, path, self.analysis.data.unknown_parent)
            absent = ids.is_null().to_numpy()
            if absent.any():
                raise refuse_rows(
                    self.phenotypes.name,
                    self.phenotypes.rows[absent],
                    [f"found no animal in column '{column}'"] * SHOWN,
                    f"one, to take its {level} from the pedigree ({path})",
                )
            self._record_animals, self._animal_column = self.codes(ids, column), column
        whose = f"the record's animal in column '{self._animal_column}' of {self.phenotypes.name}"
        note = f"{level}s are taken from the pedigree, by {whose}"
        if note not in self.notes:
            self.notes.append(note)
        return self._record_animals

    def codes(self, ids: pl.Series, column: str) -> np.ndarray:
        """(n,) int32 pedigree codes, -1 where null; an id without a pedigree row is an error."""
        codes = self._pedigree.codes(ids)
        strange = (codes.is_null() & ids.is_not_null() & ~have_lost_digits(ids)).to_numpy()  # those are said elsewhere
        if strange.any():
            absent = ids.filter(pl.Series(strange))
            problems = [
                f"animal {quoted(i)} (column '{column}') is not in the pedigree"
                for i in absent.head(MAX_ROWS_LISTED).to_list()
            ]
            respelled = explain_respelled(absent, self._pedigree.ids, self._pedigree.name)
            needed = "a pedigree row for it, or 'data.add_missing_animals: true'"
            raise refuse_rows(
                self.phenotypes.name,
                self.phenotypes.rows[strange],
                problems,
                needed if respelled is None else "ids written as in the pedigree",
                respelled,
            )
        return codes.fill_null(-1).cast(pl.Int32).to_numpy().copy()

    def file_levels(
        self, term: str, effect: RandomEffect, column: pl.Series, ids: pl.Series, source: Path
    ) -> np.ndarray:
        codes = lookup(column, ids)
        strange = (codes.is_null() & column.is_not_null()).to_numpy()
        if strange.any():
            absent = column.filter(pl.Series(strange))
            problems = [f"{quoted(i)} (column '{effect.level}') is not in {source.name}" for i in absent.head(SHOWN)]
            raise refuse_rows(
                self.phenotypes.name,
                self.phenotypes.rows[strange],
                problems,
                f"an id of the relationship file of model.random.{term}",
                explain_respelled(absent, ids, source.name),
            )
        return codes.fill_null(-1).to_numpy().copy()

    def genotyped_levels(self, term: str, effect: RandomEffect, column: pl.Series, ids: pl.Series) -> np.ndarray:
        """(n,) place of each record's animal among the genotyped, -1 where null; another animal is an error."""
        codes = lookup(column, ids)
        ungenotyped = column.filter(codes.is_null() & column.is_not_null())
        if len(ungenotyped):
            animals = ungenotyped.unique(maintain_order=True)
            why = "" if self.genotypes is None else self.genotypes.explain_left_out(animals)
            raise DataError(
                f"{self.phenotypes.name}: {counted(len(ungenotyped), 'record', 'is')} of animals without genotypes, "
                f"such as {', '.join(animals.head(SHOWN))} (column '{effect.level}'), which model.random.{term} cannot "
                "relate to others; needed their genotypes, relationship: {kind: single_step} with a pedigree, or a "
                f"file without these records{why}"
            )
        return codes.fill_null(-1).to_numpy().copy()

    def coded(self, columns: Sequence[pl.Series | np.ndarray]) -> tuple[pl.Series, list[np.ndarray]]:
        """`code_levels` of columns of ids or of codes in the pedigree.

        Where all are codes, the id of each animal is looked at once, not that of each record.
        """
        if any(isinstance(column, pl.Series) for column in columns):
            return code_levels([self.texts(column) for column in columns])
        code = np.full(len(self._pedigree.ids) + 1, -1, np.int32)  # the last for a record that has none, of code -1
        for column in columns:
            code[column] = 0
        code[-1] = -1
        animals = np.flatnonzero(code >= 0)
        ids, of_animals = code_levels([self._pedigree.ids.gather(animals)])
        code[animals] = of_animals[0]
        return ids, [code[column] for column in columns]

    def observed_traits(self, traits: Sequence[Sequence[str]]) -> dict[str, np.ndarray]:
        """Trait of these effects -> (n,) bool: the record observes it."""
        names = {name for of_effect in traits for name in of_effect}
        return {t.name: self.observed[:, i] for i, t in enumerate(self.analysis.traits) if t.name in names}

    def texts(self, ids: pl.Series | np.ndarray) -> pl.Series:
        """Ids of levels, also of those that were taken from the pedigree as codes."""
        if isinstance(ids, pl.Series):
            return ids
        codes = pl.Series("code", ids)
        return (
            self._pedigree.ids.gather(codes.clip(0))
            .to_frame("id")
            .with_columns(codes)
            .select(pl.when(pl.col("code") >= 0).then("id"))
            .to_series()
        )

    # -------------------------------------------------------------------------------------------- covariates

    def _effect(
        self, term: str, effect_name: str, effect: RandomEffect, level: np.ndarray, factor: np.ndarray | None
    ) -> Effect:
        traits = tuple(self._trait_index(t) for t in effect.traits)
        if effect.has_several_levels:
            return Effect(effect_name, level, traits, self._weights_of_levels(term, effect_name, effect, level))
        if effect.covariates:
            columns = [self._covariate(c, _path(term, effect_name, "covariates"), level) for c in effect.covariates]
            X = np.stack(columns, axis=1)
        elif effect.legendre:
            path = _path(term, effect_name, "legendre")
            x = self._covariate(effect.legendre.column, path, level)
            low, high = legendre_range(
                self.phenotypes, effect.legendre.column, path, x, level >= 0, effect.legendre.range
            )
            X = legendre(x, effect.legendre.degree, low, high)
            self.ranges[f"{term}.{effect_name}"] = [low, high]
        elif factor is not None:
            return Effect(effect_name, level, traits, np.where(level >= 0, factor, 0.0)[:, None])
        else:
            return Effect(effect_name, level, traits)
        # G lives on the scale of these covariates: they are neither centred nor made orthonormal.
        X = np.where(level[:, None] >= 0, X, 0.0)
        return Effect(effect_name, level, traits, X, tuple(str(j) for j in range(X.shape[1])))

    def _weights_of_levels(
        self, term: str, effect_name: str, effect: RandomEffect, level: np.ndarray
    ) -> np.ndarray | None:
        """(n, s) float64, 0 where there is no level; None where all are 1."""
        if effect.weights is not None:
            path = _path(term, effect_name, "weights")
            words = "a number for every level of a record; 0 leaves it out"
            columns = [self._covariate(c, path, level[:, j], words) for j, c in enumerate(effect.weights)]
            return np.stack(columns, axis=1)
        if effect.mates is None or (effect.mates.weight is None and effect.mates.dilution == 0.0):
            return None
        has_level = level >= 0
        weights = has_level * np.maximum(has_level.sum(axis=1), 1)[:, None] ** -effect.mates.dilution
        if effect.mates.weight is not None:
            path, is_met = _path(term, effect_name, "level"), np.where(has_level.any(axis=1), 0, -1)
            words = "a number for every record that has mates; 0 leaves them out"
            weights = weights * self._covariate(effect.mates.weight, f"{path}.weight", is_met, words)[:, None]
        return weights

    def _covariate(self, column: str, path: str, level: np.ndarray, expected: str | None = None) -> np.ndarray:
        words = {} if expected is None else {"expected": expected}
        return covariate(self.phenotypes, column, path, level >= 0, **words)

    def _trait_index(self, name: str) -> int:
        return next(i for i, t in enumerate(self.analysis.traits) if t.name == name)


def covariate(
    phenotypes: Phenotypes,
    column: str,
    path: str,
    needed: np.ndarray,
    missing: Iterable[str] = (),
    option: str | None = None,
    expected: str = "a covariate for every record of a trait that it acts on",
) -> np.ndarray:
    """(n,) float64, 0 where not needed; missing on a record that needs it is an error. option: the key that leaves such
    records out. expected: what the message asks for.
    """
    x = phenotypes.numbers(column, path, missing)
    absent = needed & np.isnan(x)
    if absent.any():
        raise refuse_rows(
            phenotypes.name,
            phenotypes.rows[absent],
            [f"found no value in column '{column}' ({path})"] * SHOWN,
            expected + advise_omitting(option),
        )
    return np.where(needed, x, 0.0)


def advise_omitting(option: str | None) -> str:
    """The end of a message about records without a value."""
    return "" if option is None else f", or '{option}: drop' (these records are then left out)"


def legendre_range(
    phenotypes: Phenotypes, column: str, path: str, x: np.ndarray, needed: np.ndarray, stated: Iterable[float] | None
) -> tuple[float, float]:
    """The stated range, every value checked to lie within; else the range of the data."""
    if stated is None:
        low, high = (float(x[needed].min()), float(x[needed].max())) if needed.any() else (0.0, 1.0)
        if not low < high:
            raise DataError(
                f"{phenotypes.name}: found the one value {format_number(low)} in column '{column}' ({path}); "
                "needed a range, stated or in the data, for Legendre polynomials"
            )
        return low, high
    low, high = (float(v) for v in stated)
    outside = needed & ((x < low) | (x > high))
    if outside.any():
        problems = [f"found {format_number(v)} in column '{column}' ({path})" for v in x[outside][:SHOWN]]
        raise refuse_rows(
            phenotypes.name, phenotypes.rows[outside], problems,
            f"a value in the stated range, {format_number(low)} to {format_number(high)}",
        )  # fmt: skip
    return low, high


def _needed(traits: Sequence[str], analysis: Analysis, observed: np.ndarray) -> np.ndarray:
    """(n,) bool: the record observes one of the traits."""
    index = [i for i, t in enumerate(analysis.traits) if t.name in traits]
    return observing(observed, index)


def _path(term: str, effect: str, key: str) -> str:
    return f"model.random.{term}.{key}" if effect == "" else f"model.random.{term}.effects.{effect}.{key}"
