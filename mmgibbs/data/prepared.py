"""What `prepare` hands over: the design, and all that is needed to speak of its levels in the user's own ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import polars as pl

from mmgibbs.data.animal_ids import explain_respelled
from mmgibbs.data.dates import birth_years
from mmgibbs.data.genotypes.prepare import PreparedGenotypes
from mmgibbs.data.ids_file import name_absent
from mmgibbs.data.markers import MarkerLabels
from mmgibbs.errors import ConfigError, nearest
from mmgibbs.models.design import Design
from mmgibbs.pedigree.read import Pedigree
from mmgibbs.pedigree.tables import counted


@dataclass(frozen=True)
class Curve:
    """The values of a covariate at which a curve is known, class by class, rising."""

    column: str  # of the covariate
    within: str | None  # column of the classes that have a curve each
    classes: pl.Series  # (m,) String: class of each value; '' without `within`
    values: np.ndarray  # (m,)
    levels: np.ndarray  # (m,) int64 level of the term at each value; -1: the curve begins there, its level is 0
    number: np.ndarray  # (n,) int64 value of each record; -1: none

    @cached_property
    def class_of_value(self) -> np.ndarray:
        """(m,) int64 number of the class of each value, in their order."""
        return self.classes.rle_id().cast(pl.Int64).to_numpy()


@dataclass(frozen=True)
class SurfacePart:
    """One of the random effects whose sum is a surface over the rows and columns of fields."""

    name: str  # 'rows', ..., 'surface'
    columns: tuple[str, str, str | None]  # of rows, columns and trials: the surface that it is of
    plots: pl.DataFrame  # (plots,) trial, row, column, trial by trial
    levels: np.ndarray  # (plots,) int64 level of the term at each plot
    factors: np.ndarray  # (plots,) what the level is multiplied by there
    plot: np.ndarray  # (n,) int64 plot of each record; -1: none


@dataclass(frozen=True)
class LevelLabels:
    """The levels of one term as the user knows them."""

    ids: pl.Series  # (q,) String: the id of each level code; '' for the one level of a covariate without `by`
    order: np.ndarray  # (q,) int32 or int64 level codes in reporting order
    # (q,) float64 F as the model uses it: 0 under `inbreeding: ignore`, NaN for groups; None where there is no pedigree
    inbreeding: np.ndarray | None = None
    n_groups: int = 0  # the last n_groups levels are unknown-parent groups, reported with effect 'group'
    coefficient_in_level: bool = False  # fixed covariates: the reported level is `reported(label)`, not the id alone
    # (q,) float64 variance of a level in units of its own, where it is not that of the relationship; NaN where unknown
    diagonal: np.ndarray | None = None
    # (q,) trial (String), row and column (Int64) of the plots of fields; a direction without a column is null
    plots: pl.DataFrame | None = None
    curve: Curve | None = None  # of a term whose levels are points of a curve
    surface: SurfacePart | None = None  # of a term that is a part of a surface

    @property
    def group(self) -> np.ndarray:
        """(q,) bool: the level is an unknown-parent group."""
        return np.arange(len(self.ids)) >= len(self.ids) - self.n_groups

    def reported(self, coefficient: str = "") -> pl.Series:
        """(q,) String: the `level` column of solutions by level code.

        The id; for a fixed covariate the coefficient, 'slope', with `by` 'LEVEL:slope'.
        """
        if not self.coefficient_in_level:
            return self.ids
        separator = pl.when(pl.col("id") == "").then(pl.lit("")).otherwise(pl.lit(":"))
        return (
            pl.DataFrame({"id": self.ids})
            .select((pl.col("id") + separator + pl.lit(coefficient)).alias("level"))
            .to_series()
        )


@dataclass(frozen=True)
class Prepared:
    """An analysis ready to be solved or sampled."""

    design: Design
    pedigree: Pedigree | None
    levels: tuple[LevelLabels, ...]  # one per term of the design
    counts: dict  # records, observations, animals, ...: plain numbers for run.json
    phenotypic_variance: np.ndarray  # (T,) float64 raw sample variance of each trait, adjusted for nothing
    record_row: np.ndarray  # (n,) int64 line of each record in the phenotype file (data frame: row, from 1)
    timings: dict[str, float]  # seconds per stage
    warnings: tuple[str, ...] = ()  # of the tables
    genotypes: PreparedGenotypes | None = None
    markers: tuple[MarkerLabels, ...] = ()  # one per term of SNP effects
    references: dict = field(default_factory=dict)  # reference levels and groups, for run.json

    @cached_property
    def birth_years(self) -> pl.Series | None:
        """(animals,) Int64 year of birth by pedigree code, null where unknown; None where no birth was given."""
        if self.pedigree is None or self.pedigree.birth is None:
            return None
        return birth_years(pl.Series(self.pedigree.birth, nan_to_null=True))

    def codes(
        self, term_name: str, ids: Sequence[str], where: str = "", rows: Sequence[int] | None = None
    ) -> np.ndarray:
        """(len(ids),) int64 level codes of a term; a ConfigError names an unknown term or the unknown ids.

        where: the key that has the ids; rows: of each id in its file.
        """
        names = [t.name for t in self.design.terms]
        if term_name not in names:
            raise ConfigError(f"output.save_levels: there is no term '{term_name}'; {nearest(term_name, names)}")
        index = names.index(term_name)
        labels, term = self.levels[index], self.design.terms[index]
        wanted = pl.Series("id", [str(i) for i in ids], dtype=pl.String)
        known = [labels.ids]
        if labels.coefficient_in_level:
            known += [labels.reported(c) for e in term.effects for c in e.coefficients]
        codes = np.tile(np.arange(len(labels.ids)), len(known))
        table = pl.DataFrame({"id": pl.concat(known), "code": codes}).unique("id", keep="first")
        matched = pl.DataFrame({"id": wanted}).join(table, on="id", how="left", maintain_order="left")["code"]
        if matched.null_count():
            is_absent = matched.is_null()
            hint = explain_respelled(wanted.filter(is_absent), labels.ids, term_name)
            raise ConfigError(
                f"{where or f'output.save_levels.{term_name}'}: found "
                f"{name_absent(wanted.to_list(), rows, is_absent.to_numpy())}, needed names among the "
                f"{counted(len(labels.ids), 'level')} of {term_name}; {int(is_absent.sum()):,} of {len(wanted):,} are "
                f"none of these{'' if hint is None else f'. {hint}'}"
            )
        return matched.to_numpy().astype(np.int64)
