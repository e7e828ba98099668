"""Traits that are not normal, as the table has them: categories, bounds and counts, each checked against its rules."""

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
from mmgibbs.models.response import Categories, Count, Interval, Response
from mmgibbs.pedigree.tables import format_number, quoted

if TYPE_CHECKING:
    from mmgibbs.data.traits import Records


MOST_CATEGORIES = 100  # more are a scale, and the walk of their thresholds is hopeless
NOT_IN_A_LABEL = "[],:/=|"  # threshold[trait:low|high]


def read_response(trait: Trait, index: int, phenotypes: Phenotypes) -> Response:
    """The response of trait number `index`. DataError names row, column, found and needed."""
    return _READERS[trait.type](trait, index, phenotypes)


def response_columns(trait: Trait) -> list[tuple[str, str]]:
    """(column, YAML path) of every column that the trait reads."""
    if trait.type == "normal":
        return [(trait.column, f"traits.{trait.name}")]
    bounds = bool(trait.lower or trait.upper)  # in place of the column
    named = ("lower", "upper") if bounds else ("column", "censored", "exposure")
    return [(getattr(trait, key), f"traits.{trait.name}.{key}") for key in named if getattr(trait, key)]


def _text(trait: Trait, phenotypes: Phenotypes) -> pl.Series:
    text = phenotypes.text(trait.column, f"traits.{trait.name}", trait.missing)
    plain = text.to_frame("value").select(pl.col("value").replace({v: spelled(v) for v in text.drop_nulls().unique()}))
    known = {spelled(v) for v in (*trait.missing, *phenotypes.missing)}
    unknown_codes = plain.select(pl.when(~pl.col("value").is_in(list(known))).then(pl.col("value"))).to_series()
    if unknown_codes.null_count() == len(unknown_codes):
        raise no_records_error(trait, phenotypes)
    return unknown_codes


def no_records_error(trait: Trait, phenotypes: Phenotypes) -> DataError:
    """Make the error for a trait without a single value, to be raised."""
    missing = ", ".join(v or "empty" for v in dict.fromkeys((*phenotypes.missing, *trait.missing)))
    return DataError(
        f"{phenotypes.name}: found no record of trait '{trait.name}' (column '{trait.column}'); needed "
        f"at least one that is not missing ({missing})"
    )


def _binary(trait: Trait, index: int, phenotypes: Phenotypes) -> Categories:
    text = _text(trait, phenotypes)
    values = text.drop_nulls().unique().sort().to_list()
    where = f"column '{trait.column}' (traits.{trait.name})"
    positive = None if trait.positive is None else spelled(trait.positive)
    if positive is not None and positive not in values:
        raise DataError(
            f"{phenotypes.name}: found no {quoted(positive)} in {where}, needed it as one of two values "
            f"(found {_listed(values)})"
        )
    if len(values) > 2:
        first_two = _two_values(list(dict.fromkeys(text.drop_nulls().to_list())))
        wrong = np.flatnonzero(~(text.is_in(first_two) | text.is_null()).to_numpy())
        named = [f"found {quoted(text[int(i)])} in {where}" for i in wrong[:SHOWN]]
        hint = _explain_codes(trait, (text[int(i)] for i in wrong[:SHOWN]))
        needed = f"one of two values, as {_listed(first_two)}{hint}"
        raise refuse_rows(phenotypes.name, phenotypes.rows[wrong], named, needed)
    if len(values) < 2:
        void = ", ".join(v or "empty" for v in dict.fromkeys((*phenotypes.missing, *trait.missing)))
        raise DataError(
            f"{phenotypes.name}: found {_listed(values)} alone in {where}, needed two values (missing are: {void})"
        )
    if positive is not None:
        labels = (next(v for v in values if v != positive), positive)
    else:
        labels = tuple(sorted(values, key=_as_number))
        if any(np.isnan(_as_number(v)) for v in labels):
            raise DataError(
                f"{phenotypes.name}: found the values {_listed(values)} in {where}; needed "
                f"traits.{trait.name}.positive: which of them is the event"
            )
    return _categories(trait, index, phenotypes, text, labels)


def _two_values(labels: list[str]) -> list[str]:
    """The two of a binary trait: those that remain without codes for a missing value, else the first ones."""
    values = [v for v in labels if v == "0" or not looks_like_code(v)]
    return values if len(values) == 2 else labels[:2]


def _explain_codes(trait: Trait, cells: Iterable[str]) -> str:
    return explain_codes(cells, f"traits.{trait.name}.missing", trait.missing)


def _ordinal(trait: Trait, index: int, phenotypes: Phenotypes) -> Categories:
    text = _text(trait, phenotypes)
    if trait.categories:
        return _categories(trait, index, phenotypes, text, tuple(map(spelled, trait.categories)))
    labels = text.drop_nulls().unique().to_list()
    words = [v for v in labels if np.isnan(_as_number(v))]
    if words and dates.are_dates(pl.Series(labels)):
        path = f"traits.{trait.name}"
        raise DataError(
            f"{phenotypes.name}: found {quoted(sorted(words)[0])} in column '{trait.column}' ({path}); needed "
            f"{dates.needed(path)}"
        )
    if words:
        raise DataError(
            f"{phenotypes.name}: found {quoted(sorted(words)[0])} in column '{trait.column}' (traits.{trait.name}), "
            f"which is not a number; needed traits.{trait.name}.categories: the values from low to high"
        )
    return _categories(trait, index, phenotypes, text, tuple(sorted(labels, key=_as_number)))


def _categories(trait: Trait, index: int, phenotypes: Phenotypes, text: pl.Series, labels: Sequence[str]) -> Categories:
    where = f"column '{trait.column}' (traits.{trait.name})"
    codes = pl.DataFrame({"label": list(labels), "code": np.arange(len(labels), dtype=np.int16)})
    matched = pl.DataFrame({"label": text}).join(codes, on="label", how="left", maintain_order="left")["code"]
    wrong = np.flatnonzero((matched.is_null() & text.is_not_null()).to_numpy())
    if len(wrong):
        named = [f"found {quoted(text[int(i)])} in {where}" for i in wrong[:SHOWN]]
        needed = f"a category ({_listed(labels)}) or missing"
        needed += _explain_codes(trait, (text[int(i)] for i in wrong[:SHOWN]))
        raise refuse_rows(phenotypes.name, phenotypes.rows[wrong], named, needed)
    category = matched.fill_null(-1).to_numpy().astype(np.int16)
    if len(labels) > MOST_CATEGORIES:
        raise DataError(
            f"{phenotypes.name}: found {len(labels):,} different values in {where}, needed at most {MOST_CATEGORIES} "
            "categories; a trait with more is normal or censored"
        )
    bad = next((c for label in labels for c in label if c in NOT_IN_A_LABEL or not c.isprintable()), None)
    if bad is not None and len(labels) > 2:
        raise DataError(
            f"{phenotypes.name}: found a category with the character {bad!r} in {where}, needed names without "
            f"{' '.join(NOT_IN_A_LABEL)}: they separate the parts of a parameter's name"
        )
    if len(labels) < 2:
        raise DataError(f"{phenotypes.name}: found {len(labels)} category in {where}, needed two or more")
    counts = np.bincount(category[category >= 0], minlength=len(labels))
    if (counts == 0).any():
        empty = [quoted(label) for label, n in zip(labels, counts, strict=True) if n == 0]
        raise DataError(
            f"{phenotypes.name}: found no record of {' and '.join(empty)} in {where}; needed records in every "
            f"category, or traits.{trait.name}.categories without it: its threshold has no posterior"
        )
    return Categories(index, tuple(str(label) for label in labels), category)


def _censored(trait: Trait, index: int, phenotypes: Phenotypes) -> Interval:
    if trait.censored:
        lower, upper = _bounds_by_status(trait, phenotypes)
    else:
        ends = []
        for key, open_end in (("lower", -np.inf), ("upper", np.inf)):
            column = getattr(trait, key)
            bounded = drop_infinite_bounds(phenotypes, column, open_end)
            values = bounded.numbers(column, f"traits.{trait.name}.{key}", trait.missing)
            ends.append((values, open_end))
        neither = np.isnan(ends[0][0]) & np.isnan(ends[1][0])
        lower, upper = (np.where(np.isnan(v), open_end, v) for v, open_end in ends)
        lower[neither], upper[neither] = np.nan, np.nan
    wrong = np.flatnonzero(lower > upper)
    if len(wrong):
        named = [
            f"found the bounds {format_number(lower[i])} and {format_number(upper[i])} (traits.{trait.name})"
            for i in wrong[:SHOWN]
        ]
        needed = "a lower bound that is not above the upper"
        needed += _explain_codes(
            trait, (format_number(b[i]) for i in wrong[:SHOWN] for b in (lower, upper) if b[i] != 0)
        )
        raise refuse_rows(phenotypes.name, phenotypes.rows[wrong], named, needed)
    if trait.log:
        for values in (lower, upper):
            wrong = np.flatnonzero(values <= 0 if values is upper else np.isfinite(values) & (values < 0))
            if len(wrong):
                named = [f"found {format_number(values[i])} (traits.{trait.name})" for i in wrong[:SHOWN]]
                needed = "a number above 0 (log: true)"
                needed += _explain_codes(trait, (format_number(values[i]) for i in wrong[:SHOWN]))
                raise refuse_rows(phenotypes.name, phenotypes.rows[wrong], named, needed)
        wrong = np.flatnonzero((lower == 0) & np.isinf(upper))
        if len(wrong):
            named = ["found 0 or more, which says nothing of a logarithm"] * SHOWN
            needed = "a lower bound above 0, or no record (log: true)"
            raise refuse_rows(phenotypes.name, phenotypes.rows[wrong], named, needed)
        with np.errstate(divide="ignore", invalid="ignore"):
            lower = np.where(lower <= 0, -np.inf, np.log(np.maximum(lower, 1e-300)))
            upper = np.log(upper)
    known = ~np.isnan(lower)
    for bound, side, opposite in ((lower, "at most", "a lower"), (upper, "at least", "an upper")):
        if known.any() and not np.isfinite(bound[known]).any():
            raise DataError(
                f"{phenotypes.name}: found no record of trait '{trait.name}' with {opposite} bound: every one is "
                f"{side} a value, which leaves its mean open; needed some that are exact, or bounded from "
                f"the other side"
            )
    return Interval(index, lower, upper)


def drop_infinite_bounds(phenotypes: Phenotypes, column: str, open_end: float) -> Phenotypes:
    """An infinite bound on the open side means what an empty cell means."""
    if not phenotypes.has(column):
        return phenotypes
    series = phenotypes.frame[column]
    if series.dtype == pl.String:
        series = series.str.strip_chars()
    number = series.cast(pl.Float64, strict=False)
    cells = pl.when((number == open_end).fill_null(False)).then(None).otherwise(series).alias(column)
    return replace(phenotypes, frame=phenotypes.frame.with_columns(cells))


def _bounds_by_status(trait: Trait, phenotypes: Phenotypes) -> tuple[np.ndarray, np.ndarray]:
    """Bounds from one column of values and one that says what is known of each."""
    assert trait.censored is not None and trait.values is not None, "held together by the analysis file"
    value = phenotypes.numbers(trait.column, f"traits.{trait.name}", trait.missing)
    path = f"traits.{trait.name}.censored"
    status = phenotypes.text(trait.censored, path)
    meaning = {spelled(cell): side for side, cells in trait.values.items() for cell in cells}
    status = status.to_frame("s").select(pl.col("s").replace({v: spelled(v) for v in status.drop_nulls().unique()}))[
        "s"
    ]
    known = status.is_in(list(meaning)).fill_null(False).to_numpy()
    wrong = np.flatnonzero(~known & ~np.isnan(value))
    if len(wrong):
        named = [
            f"found {'no value' if status[int(i)] is None else quoted(status[int(i)])} in column '{trait.censored}' "
            f"({path})"
            for i in wrong[:SHOWN]
        ]
        raise refuse_rows(phenotypes.name, phenotypes.rows[wrong], named, f"one of {_listed(meaning)}")
    side = np.array([meaning.get(s, "") for s in status.to_list()])
    lower = np.where(side == "left", -np.inf, value)
    upper = np.where(side == "right", np.inf, value)
    missing = np.isnan(value)
    lower[missing], upper[missing] = np.nan, np.nan
    return lower, upper


def _count(trait: Trait, index: int, phenotypes: Phenotypes) -> Count:
    where = f"column '{trait.column}' (traits.{trait.name})"
    count = phenotypes.numbers(trait.column, f"traits.{trait.name}", trait.missing)
    wrong = np.flatnonzero((count < 0) | (count % 1 > 0))
    if len(wrong):
        named = [f"found {format_number(count[i])} in {where}" for i in wrong[:SHOWN]]
        needed = "a count: a whole number from 0"
        needed += _explain_codes(trait, (format_number(count[i]) for i in wrong[:SHOWN]))
        raise refuse_rows(phenotypes.name, phenotypes.rows[wrong], named, needed)
    if (count == 0).any() and not (count > 0).any():
        raise DataError(
            f"{phenotypes.name}: found no count above 0 in {where}; needed some: the log of a rate of 0 is not finite"
        )
    exposure = np.ones(len(count))
    if trait.exposure:
        path = f"traits.{trait.name}.exposure"
        exposure = phenotypes.numbers(trait.exposure, path)
        wrong = np.flatnonzero(~(exposure > 0) & ~np.isnan(count))
        if len(wrong):
            named = [
                f"found {'no value' if np.isnan(exposure[i]) else format_number(exposure[i])} in column "
                f"'{trait.exposure}' ({path})"
                for i in wrong[:SHOWN]
            ]
            raise refuse_rows(phenotypes.name, phenotypes.rows[wrong], named, "an exposure above 0")
        exposure = np.where(exposure > 0, exposure, 1.0)
    return Count(index, count, exposure)


_READERS: dict[str, Callable[[Trait, int, Phenotypes], Response]] = {
    "binary": _binary,
    "ordinal": _ordinal,
    "censored": _censored,
    "count": _count,
}


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
                    f"records of trait '{trait.name}' are all {_ONE_SIDED[trait.type]} ({shown}{more}): with a flat "
                    f"prior their effects have no posterior; needed model.fixed.{effect.name}.prior: "
                    f"{{variance: {_wide(records, response, trait)}}}, the effect among the random ones, or levels "
                    "joined"
                )


_ONE_SIDED = {
    "binary": "in one end category",
    "ordinal": "in one end category",
    "censored": "censored on one side",
    "count": "counts of 0",
}


def _wide(records: Records, response: Response, trait: Trait) -> str:
    """A prior variance that says little: 10 residual variances, or on a log scale 10."""
    on_its_own_scale = trait.type == "censored" and not trait.log
    return f"{float(f'{10 * records.variance[response.trait]:.1g}'):g}" if on_its_own_scale else "10"


def _as_number(text: str) -> float:
    """NaN for what is no finite number."""
    number = as_number(text)
    return float("nan") if number is None or not np.isfinite(float(number)) else float(number)


def _listed(values: Iterable[str]) -> str:
    shown = [quoted(str(v)) for v in values]
    return ", ".join(shown[:8]) + (f" and {len(shown) - 8} more" if len(shown) > 8 else "")
