"""OPTION cat of a parameter file -> binary and ordinal traits, on the scale that an analysis has for them.

GIBBSF90+ and THRGIBBS1F90 number categories from 1, hold two thresholds (0 and 1, or those of OPTION thresholds) and
sample the residual variance R. Here R is 1, the first threshold 0 and the others are sampled: the same model with
another unit of the liability, so that

    variances / R        covariances with a normal trait / sqrt(R)        solutions / sqrt(R)
    (thresholds - the first one) / sqrt(R)                                h2 as it is
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mmgibbs.config.text import spelled
from mmgibbs.errors import DataError
from mmgibbs.exchange.blupf90_context import Context
from mmgibbs.exchange.blupf90_pedigree import WARNING

CONVERSION = (
    "has a residual variance of 1 and its first threshold at 0 here: divide variances of GIBBSF90+ or THRGIBBS1F90 by "
    "their residual variance R, solutions and differences of thresholds by sqrt(R), draw by draw, to compare"
)


def numbers_of_categories(context: Context) -> tuple[int, ...]:
    """(T,) K of each trait of the last OPTION cat, 0 where it is normal."""
    T = len(context.traits)
    option = next((o for o in reversed(context.parameters.options) if o.value[0] == "cat"), None)
    if option is None:
        return (0,) * T
    words = option.value[1:]
    if len(words) != T or not all(word.isdecimal() for word in words) or "1" in words:
        needed = f"{T} number{'s' * (T > 1)}, one for each trait: 0 for a normal one, or how many categories it has"
        raise context.refuse(option.line, f"OPTION {' '.join(option.value)}: needed {needed} (two or more)")
    if not any(int(word) for word in words):
        context.note(option.line, f"OPTION {' '.join(option.value)}: every trait is normal")
    elif "WEIGHT(S)" in context.parameters.stated and context.parameters.stated["WEIGHT(S)"].value:
        line = context.parameters.stated["WEIGHT(S)"].line
        raise context.refuse(line, f"WEIGHT(S): cannot be combined with OPTION cat (line {option.line}); needed none")
    return tuple(int(word) for word in words)


def divisors(context: Context, categories: Sequence[int]) -> np.ndarray:
    """(T,) the stated residual variance of each trait in categories, which becomes 1; 1 for the others."""
    residual = np.diag(context.parameters.stated["RESIDUAL_VARIANCE"].value)
    out = np.ones(len(categories))
    for t, K in enumerate(categories[: len(residual)]):
        if K and residual[t] > 0:
            out[t] = residual[t]
    return out


def keys_of_type(context: Context, trait: int, K: int, missing: str, missing_is_stated: bool) -> dict:
    """type, categories or positive, and missing of a trait with K categories; what its column holds decides on 0."""
    line = next(o.line for o in reversed(context.parameters.options) if o.value[0] == "cat")
    position = context.parameters.stated["TRAITS"].value[trait]
    values = context.values(position)
    cells = values.drop_nulls().unique().to_list()
    spellings = {spelled(cell) for cell in cells}
    codes, name = [str(k) for k in range(1, K + 1)], context.traits[trait]
    where = f"column {position} of {context.data.name}"
    if K == 2 and spellings == {"0", "1"} and spelled(missing) == "0" and not missing_is_stated:
        context.note(
            line,
            f"{WARNING}{where} ({name}) has only 0 and 1: 0 is the first category here, not a missing value as for "
            "the BLUPF90 programs; if it means missing, the trait has only one category and cannot be analysed",
        )
        codes, missing = ["0", "1"], ""
    known = {*codes, spelled(missing)} if missing else set(codes)
    wrong = sorted(spellings - known)
    if wrong:
        record = next(i for i, v in enumerate(values.to_list()) if v is not None and spelled(v) in wrong)
        cell = values[record]
        raise DataError(
            f"{context.data.name} row {context.row(record)}: found {cell!r} in column {position}, needed "
            f"{_listed(codes)}{f', or {missing} (missing)' if missing else ''}: OPTION cat has {K} categories for "
            f"{name}"
        )
    empty = [code for code in codes if code not in spellings]
    if empty:
        raise context.refuse(
            line,
            f"OPTION cat: found no record of category {' and '.join(empty)} in {where} ({name}), where {missing} is "
            "missing; needed records in each (codes begin with 1; fewer categories, or OPTION missing)",
        )
    absent = sum(v is not None and spelled(v) == spelled(missing) for v in values.to_list()) if missing else 0
    kind = "binary" if K == 2 else "ordinal"
    void = f", {missing} is missing ({absent} records)" if missing else ""
    context.note(line, f"OPTION cat: {name} is {kind}, {codes[0]} to {codes[-1]}{void}; it {CONVERSION}")
    keys = {"type": "binary", "positive": codes[-1]} if K == 2 else {"type": "ordinal", "categories": codes}
    return keys | {"missing": [missing] if missing else []}


def _listed(codes: Sequence[str]) -> str:
    return f"{codes[0]} or {codes[1]}" if len(codes) == 2 else f"{codes[0]} to {codes[-1]}"


def tell_of_scale(context: Context) -> None:
    """Where stated variances are those of another unit."""
    for t in np.flatnonzero(context.divisor != 1.0).tolist():
        context.note(
            context.parameters.stated["RESIDUAL_VARIANCE"].line,
            f"RESIDUAL_VARIANCE: {context.divisor[t]:g} of {context.traits[t]} becomes 1, and its other (co)variances "
            "are divided by it (by its root with other traits)",
        )
