"""What a renumf90 parameter file states -> an analysis, and what could not be carried over, line by line.

Columns of the data file are called col1, col2, ... (`animal` and `sire` where they hold these), traits trait1, trait2,
..., effects by their number in the parameter file or by what they are (genetic, permanent_environment, ...).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from mmgibbs.exchange.blupf90_context import Context
from mmgibbs.exchange.blupf90_data import (
    divisors,
    enter_weights,
    keys_of_type,
    numbers_of_categories,
    tell_of_scale,
    weights_of_each_trait,
)
from mmgibbs.exchange.blupf90_effects import covariance_matrix, fixed_effects, random_terms
from mmgibbs.exchange.blupf90_genomic import OPTIONS as GENOMIC
from mmgibbs.exchange.blupf90_pedigree import WARNING
from mmgibbs.exchange.blupf90_read import ParameterFile

# What is to be said of an option, None for nothing; of the others that they are not carried over.
OPTIONS = {
    **dict.fromkeys(
        (
            "hetres_int",
            "cat",
            "sol",
            "missing",
            "method",
            "alpha_size",
            "max_string_readline",
            "max_field_readline",
            "use_yams",
        )
    ),
    "SNP_file": "not carried over: its animals are renumbered; needed SNP_FILE below RANDOM animal",
    "thresholds": "not carried over; the first threshold is 0 and the others are sampled",
    "residual": "not carried over; the residual variance of a trait in categories is 1",
    "fixed_var": "with OPTION cat every variance is fixed at its start; else it is not carried over",
    "censored": "not carried over; a trait of type censored has a column of bounds, or one that says what is known",
    "conv_crit": "not carried over; solving stops at sampler.tolerance",
    "maxrounds": "not carried over; solving stops at sampler.tolerance",
    "prior": "not carried over; a prior is variances.NAME.prior: {df, scale}",
    "seed": "not carried over; the seed is sampler.seed",
}
LATIN_1 = "the file is not UTF-8 and was read as Latin-1: are names with letters beyond a to z those that you mean?"
OF_EFFECTS = {
    "GEN_INT": "not carried over; where the pedigree has births, parents may not be younger than their progeny",
    "REC_SEX": "not carried over; an animal may not be both a sire and a dam",
}


@dataclass(frozen=True)
class Translation:
    """An analysis as the tree of its YAML; notes: (line, 0 for none; text); tables to write: file name -> frame."""

    analysis: dict
    notes: list[tuple[int, str]]
    tables: dict[str, pl.DataFrame]


def translate(parameters: ParameterFile, folder: Path, stem: str) -> Translation:
    """The analysis that a parameter file represents.

    folder: where the analysis will be; its paths are relative to it. stem: of the names of new tables. ConfigError
    and DataError name the line, what was found there and what is needed.
    """
    context = Context(parameters, folder, stem)
    categories = numbers_of_categories(context)
    context.divisor = divisors(context, categories)
    data, traits = _data(context), _traits(context, categories)
    fixed: dict[str, Any] = {}
    random: dict[str, Any] = {}
    variances: dict[str, Any] = {}
    for number, effect in enumerate(parameters.effects, 1):
        context.check(effect.line, "EFFECT", effect.positions)
        if "RANDOM" in effect.stated:
            random_terms(context, number, effect, data, random, variances)
        else:
            fixed |= fixed_effects(context, number, effect)
    residual = parameters.stated["RESIDUAL_VARIANCE"]
    size = f"{len(traits)} traits" if len(traits) > 1 else "one trait"
    variances["residual"] = covariance_matrix(
        context, residual, "RESIDUAL_VARIANCE", range(len(traits)), len(traits), size
    )
    by = _residual_class(context)
    if by is not None:
        variances["residual"] = {"by": by, "start": variances["residual"]}
    if weights_of_each_trait(context):
        enter_weights(context, _option(context, "missing", "0")[1], data, traits, variances)
    # the BLUPF90 programs have no intercept but what an effect of one level is
    model = {"intercept": False} | {key: terms for key, terms in (("fixed", fixed), ("random", random)) if terms}
    if any(categories):
        tell_of_scale(context)
        variances |= _held(context)
    sampler = {"method": _sampling(context) if any(categories) else _method(context)}
    _tell_the_rest(context, data)
    if parameters.encoding != "UTF-8":
        context.note(0, LATIN_1)
    analysis = {
        "name": parameters.path.stem,
        "data": data,
        "traits": traits,
        "model": model,
        "variances": variances,
        "sampler": sampler,
    }
    notes = sorted(context.notes, key=lambda note: (not note[1].startswith(WARNING), note))
    return Translation(analysis, notes, context.tables)


def _option(context: Context, name: str, default: str) -> tuple[int, str]:
    """(line, first value) of the last option of this name; line 0 where there is none."""
    values = [(o.line, o.value[1]) for o in context.parameters.options if o.value[0] == name and len(o.value) > 1]
    return values[-1] if values else (0, default)


def _residual_class(context: Context) -> str | None:
    """OPTION hetres_int POSITION CLASSES: the column that says which residual (co)variances a record has."""
    option = next((o for o in reversed(context.parameters.options) if o.value[0] == "hetres_int"), None)
    if option is None:
        return None
    if len(option.value) < 3 or not all(word.isdigit() and int(word) > 0 for word in option.value[1:3]):
        raise context.refuse(
            option.line, f"OPTION {' '.join(option.value)}: needed the position of the class and the number of classes"
        )
    position = int(option.value[1])
    context.check(option.line, "OPTION hetres_int", [position])
    context.note(
        option.line,
        f"OPTION {' '.join(option.value)}: residual (co)variances by class of {context.columns[position]}; those of "
        "every class start at RESIDUAL_VARIANCE",
    )
    return context.columns[position]


def _traits(context: Context, categories: Sequence[int]) -> dict[str, dict]:
    """Read the traits. A code for a missing observation is one for traits alone: a covariate may be 0.

    categories: (T,) how many, 0 for a normal trait.
    """
    stated = context.parameters.stated["TRAITS"]
    context.check(stated.line, "TRAITS", stated.value)
    line, missing = _option(context, "missing", "0")
    traits = {}
    for t, (name, p) in enumerate(zip(context.traits, stated.value, strict=True)):
        keys = keys_of_type(context, t, categories[t], missing, line > 0) if categories[t] else {"missing": [missing]}
        traits[name] = {"column": context.columns[p]} | keys
    return traits


def _data(context: Context) -> dict[str, Any]:
    stated = context.parameters.stated
    if context.parameters.combined or context.n_skipped:
        data: dict[str, Any] = {"phenotypes": _new_data(context)}
    else:
        data = {"phenotypes": context.path(stated["DATAFILE"].value), "separator": "whitespace"}
        data["header"] = [context.columns[i] for i in sorted(context.columns)]
    data["missing"] = []
    if "WEIGHT(S)" in stated:
        line, positions = stated["WEIGHT(S)"].line, stated["WEIGHT(S)"].value
        context.check(line, "WEIGHT(S)", positions)
        if len(set(positions)) == 1:
            data["weights"] = context.columns[positions[0]]
    return data


def _new_data(context: Context) -> str:
    """The name of the data file anew: with the columns that COMBINE joins, without skipped lines."""
    columns, stated = context.columns, context.parameters.stated
    frame = context.table()[context.n_skipped :]
    for combine in context.parameters.combined:
        new, *old = combine.value
        context.check(combine.line, "COMBINE", old)
        missing = [p for p in old if columns[p] not in frame.columns]
        if missing:
            raise context.refuse(
                combine.line, f"COMBINE: found position {missing[0]} before it was made, needed its COMBINE first"
            )
        frame = frame.with_columns(pl.concat_str(pl.col(columns[p]).fill_null("") for p in old).alias(columns[new]))
    name = context.name_of_new_data
    context.tables[name] = frame
    lines = [c.line for c in context.parameters.combined] + ([stated["SKIP_HEADER"].line] if context.n_skipped else [])
    context.note(
        lines[0],
        f"{name} is a copy of the data file with joined columns or without its header; import again if the data change",
    )
    return name


def _method(context: Context) -> str:
    line, method = _option(context, "method", "BLUP")
    if method.upper() == "VCE":
        context.note(line, "OPTION method VCE: sampler.method is reml; for their posterior: method: gibbs")
        return "reml"
    if not line:
        context.note(0, "sampler.method is blup, as in blupf90+; for variance components: method: reml or gibbs")
    elif method.upper() != "BLUP":
        context.note(line, f"OPTION method {method}: not carried over; sampler.method is blup")
    return "blup"


def _sampling(context: Context) -> str:
    """The method where a trait is in categories: liabilities are sampled in any case."""
    line, method = _option(context, "method", "")
    if line and method.upper() != "VCE":
        context.note(line, f"OPTION method {method}: sampler.method is gibbs, as OPTION cat needs it")
    return "gibbs"


def _held(context: Context) -> dict[str, str]:
    """variances.mode: sampled as by gibbsf90+, or fixed with OPTION fixed_var."""
    option = next((o for o in reversed(context.parameters.options) if o.value[0] == "fixed_var"), None)
    if option is None:
        context.note(
            0,
            "sampler.method is gibbs for OPTION cat, as in gibbsf90+, and variances are sampled (those of traits in "
            "categories with proper priors, as flat ones may leave no posterior); variances.mode: fixed fixes them",
        )
        return {}
    return {"mode": "fixed"}


def _tell_the_rest(context: Context, data: dict[str, Any]) -> None:
    passed = context.parameters.stated.get("FIELDS_PASSED")
    if passed is not None and passed.value:
        context.note(
            passed.line,
            "FIELDS_PASSED TO OUTPUT: not needed: solutions have the ids of the data",
        )
    for effect in context.parameters.effects:
        for keyword, what in OF_EFFECTS.items():
            if keyword in effect.stated:
                context.note(effect.stated[keyword].line, f"{keyword}: {what}")
    last = {option.value[0]: option.line for option in context.parameters.options}
    for option in context.parameters.options:
        if option.value[0] in ("missing", "method") and option.line < last[option.value[0]]:
            context.note(
                option.line, f"OPTION {' '.join(option.value)}: the one of line {last[option.value[0]]} counts"
            )
            continue
        if option.value[0] == "missing" and len(option.value) > 2:
            more = " ".join(option.value[2:])
            context.note(option.line, f"OPTION missing: {more} is not carried over: one number says what is missing")
        if option.value[0] in GENOMIC:
            if "genotypes" not in data:
                context.note(option.line, f"OPTION {' '.join(option.value)}: there is no SNP_FILE that it applies to")
            continue
        comment = OPTIONS.get(option.value[0], "not carried over")
        if comment is not None:
            context.note(option.line, f"OPTION {' '.join(option.value)}: {comment}")
