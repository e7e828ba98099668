"""Columns of traits that are not normal, as families read them (models/families), and levels without a posterior."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from mmgibbs.config import Trait
from mmgibbs.config.text import as_number, spelled
from mmgibbs.data import dates
from mmgibbs.data.fixed import ClassEffect, CovariateEffect
from mmgibbs.data.missing_codes import explain_codes, looks_like_code
from mmgibbs.data.phenotypes import SHOWN, Phenotypes, refuse_rows
from mmgibbs.errors import DataError
from mmgibbs.models.families import FAMILIES, Response
from mmgibbs.models.families.base import Cells
from mmgibbs.pedigree.tables import quoted

if TYPE_CHECKING:
    from mmgibbs.data.traits import Records


def read_response(trait: Trait, index: int, phenotypes: Phenotypes) -> Response:
    """The response of trait number `index`. DataError names row, column, found and needed."""
    return FAMILIES[trait.type].read(index, TraitColumns(trait, phenotypes))


def response_columns(trait: Trait) -> list[tuple[str, str]]:
    """(column, YAML path) of every column that the trait reads."""
    if trait.is_normal:
        return [(trait.column, f"traits.{trait.name}")]
    bounds = bool(trait.lower or trait.upper)  # in place of the column
    named = ("lower", "upper") if bounds else ("column", "censored", "exposure")
    return [(getattr(trait, key), f"traits.{trait.name}.{key}") for key in named if getattr(trait, key)]


class TraitColumns:
    """The columns of a trait in the table of records: see `TraitTable`."""

    def __init__(self, trait: Trait, phenotypes: Phenotypes):
        self.keys, self.phenotypes, self.path = trait, phenotypes, f"traits.{trait.name}"
        self.name, self.place = phenotypes.name, f"column '{trait.column}' ({self.path})"

    def _find(self, key: str) -> tuple[str, str, tuple[str, ...]]:
        """(column, YAML path, cells that mean a missing value beside those of all columns)."""
        column: str = getattr(self.keys, key)
        path = self.path if key == "column" else f"{self.path}.{key}"
        return column, path, self.keys.missing if key in ("column", "lower", "upper") else ()

    def numbers(self, key: str = "column", open_end: float | None = None) -> np.ndarray:
        """See `TraitTable`."""
        column, path, missing = self._find(key)
        table = self.phenotypes if open_end is None else _drop_infinite(self.phenotypes, column, open_end)
        return table.numbers(column, path, missing)

    def cells(self, key: str = "column") -> Cells:
        """See `TraitTable`. DataError for a column of values without any."""
        column, path, missing = self._find(key)
        text = self.phenotypes.text(column, path, missing)
        values = text.drop_nulls().unique(maintain_order=True).to_list()
        spelled_as = {value: spelled(value) for value in values}
        absent = {spelled(v) for v in (*missing, *self.phenotypes.missing)} if key == "column" else set()
        known = tuple(dict.fromkeys(spelled_as[value] for value in values if spelled_as[value] not in absent))
        if key == "column" and not known:
            raise no_records_error(self.keys, self.phenotypes)
        number = {value: i for i, value in enumerate(known)}
        codes = pl.DataFrame(
            {"cell": values, "code": [number.get(spelled_as[value], -1) for value in values]},
            schema={"cell": pl.String, "code": pl.Int32},
        )
        matched = pl.DataFrame({"cell": text}).join(codes, on="cell", how="left", maintain_order="left")["code"]
        return Cells(matched.fill_null(-1).to_numpy(), known)

    def spell(self, cell: str) -> str:
        """See `TraitTable`."""
        return spelled(cell)

    def number(self, cell: str) -> float:
        """See `TraitTable`."""
        number = as_number(cell)
        return float("nan") if number is None or not np.isfinite(float(number)) else float(number)

    def looks_missing(self, cell: str) -> bool:
        """See `TraitTable`."""
        return looks_like_code(cell)

    def describe_dates(self, cells: Sequence[str]) -> str | None:
        """See `TraitTable`."""
        return dates.needed(self.path) if dates.are_dates(pl.Series(cells)) else None

    def missing_words(self) -> str:
        """See `TraitTable`."""
        return _list_missing(self.keys, self.phenotypes)

    def refuse(
        self,
        wrong: np.ndarray,
        describe: Callable[[int], str],
        needed: str,
        cells: Callable[[int], Iterable[str]] | None = None,
    ) -> DataError:
        """See `TraitTable`."""
        shown = wrong[:SHOWN].tolist()
        if cells is not None:
            suspects = (cell for i in shown for cell in cells(i))
            needed += explain_codes(suspects, f"{self.path}.missing", self.keys.missing)
        return refuse_rows(self.phenotypes.name, self.phenotypes.rows[wrong], list(map(describe, shown)), needed)


def _drop_infinite(phenotypes: Phenotypes, column: str, open_end: float) -> Phenotypes:
    """An infinite bound on the open side means what an empty cell means."""
    if not phenotypes.has(column):
        return phenotypes
    series = phenotypes.frame[column]
    if series.dtype == pl.String:
        series = series.str.strip_chars()
    number = series.cast(pl.Float64, strict=False)
    cells = pl.when((number == open_end).fill_null(False)).then(None).otherwise(series).alias(column)
    return replace(phenotypes, frame=phenotypes.frame.with_columns(cells))


def no_records_error(trait: Trait, phenotypes: Phenotypes) -> DataError:
    """Make the error for a trait without a single value, to be raised."""
    return DataError(
        f"{phenotypes.name}: found no record of trait '{trait.name}' (column '{trait.column}'); needed "
        f"at least one that is not missing ({_list_missing(trait, phenotypes)})"
    )


def _list_missing(trait: Trait, phenotypes: Phenotypes) -> str:
    return ", ".join(v or "empty" for v in dict.fromkeys((*phenotypes.missing, *trait.missing)))


def refuse_extreme_levels(
    effects: Sequence[ClassEffect | CovariateEffect], records: Records, traits: Sequence[Trait]
) -> None:
    """DataError for levels of a flat class effect whose records are all in the lowest, or all in the highest category,
    all censored on one side, or all counts of 0.

    The effect of such a level has no posterior: the more extreme it is, the better it fits.
    """
    for response in records.responses:
        seen, down, up = response.one_sided_masks()
        for effect in effects:
            if not isinstance(effect, ClassEffect) or not effect.is_flat(response.trait):
                continue
            level, n = effect.level[seen], len(effect.ids)
            count, low, high = (np.bincount(level, weights, n) for weights in (None, down[seen], up[seen]))
            extreme = np.flatnonzero((count > 0) & ((low == count) | (high == count)))
            if len(extreme):
                shown = ", ".join(quoted(str(effect.ids[i])) for i in extreme[:SHOWN])
                more = f" and {len(extreme) - SHOWN} more" if len(extreme) > SHOWN else ""
                trait = traits[response.trait]
                raise DataError(
                    f"{records.phenotypes.name}: found {len(extreme)} of {n} levels of model.fixed.{effect.name} whose "
                    f"records of trait '{trait.name}' are all {response.one_sided} ({shown}{more}): with a flat "
                    f"prior their effects have no posterior; needed model.fixed.{effect.name}.prior: "
                    f"{{variance: {_wide(records, response, trait)}}}, the effect among the random ones, or levels "
                    "joined"
                )


def _wide(records: Records, response: Response, trait: Trait) -> str:
    """A prior variance that says little: 10 residual variances, or on a log scale 10."""
    is_on_scale_of_trait = not response.name_link(trait.log)
    return f"{float(f'{10 * records.variance[response.trait]:.1g}'):g}" if is_on_scale_of_trait else "10"
