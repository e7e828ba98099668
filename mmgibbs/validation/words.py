"""What the pages of validations say in words: statistics, models, variances, differences of analyses."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mmgibbs.report.html_tables import (
    Column,
    Table,
    count_decimals,
    listed,
    make_table,
    number,
    number_column,
    text_column,
)
from mmgibbs.report.model_words import related_words, underlying_words
from mmgibbs.results.relationships import describe_relationships
from mmgibbs.validation.options import SAMPLE
from mmgibbs.validation.results import Validation

NAMES = {
    "predictive_ability": "predictive ability",
    "ratio_of_accuracies": "ratio of accuracies, partial to whole",
    "reliability_ratio": "ratio of reliabilities, partial to whole",
    "error": "mean squared error",
    "auc": "area under the ROC curve",
    "brier": "Brier score",
    "log_score": "log score",
    "ranked_probability": "ranked probability score",
}  # of a page, where they are not those of the tables
MEANINGS = {
    "kfold": {
        "predictive_ability": "correlation of predictions with records, of normal traits corrected for fixed effects",
        "accuracy": "predictive ability divided by the root of the heritability, an estimate of the correlation of "
        "predictions with true breeding values",
        "auc": "share of the pairs of a record of the category and another record that the predictions put in the "
        "right order: 0.5 by chance, 1 at best",
        "concordance": "share of the pairs of different records that the predictions put in the right order: 0.5 by "
        "chance, 1 at best",
        "brier": "mean squared difference of what was observed (1 or 0) and its probability; where all of more than "
        "two categories have one score, the sum over them; smaller is better",
        "ranked_probability": "as a Brier score, but a prediction that misses by several categories costs more; "
        "smaller is better",
        "log_score": "minus the mean logarithm of the probability of what was observed; smaller is better",
        "error": "mean squared difference of a record and its prediction; smaller is better",
        "dispersion": "regression of records on predictions. Below 1, predictions differ too much: high ones are too "
        "high, and low ones too low. Above 1, they differ too little",
        "bias": "mean prediction minus mean record. Above 0, predictions are too high on average; below 0, too low",
    },
    "lr": {
        "bias": "mean breeding value from partial data minus that from whole data. Above 0, these animals were "
        "predicted too high, and lose once the records that were left out come in; below 0, they were predicted too "
        "low",
        "dispersion": "regression of breeding values from whole data on those from partial data. Below 1, predictions "
        "differ too much: the best animals are predicted too high, and the poorest too low. Above 1, they differ too "
        "little",
        "ratio_of_accuracies": "correlation of the two breeding values, an estimate of the accuracy from partial data "
        "as a share of that from whole data: 1 if the records that were left out add nothing",
        "reliability_ratio": "estimate of the reliability from partial data as a share of that from whole data",
        "accuracy": "estimate of the correlation of breeding values from partial data with true breeding values",
    },
}


def explain_statistics(method: str, statistics: Collection[str]) -> list[tuple[str, str]]:
    """(name on the page, what it says) of these statistics of a method."""
    return [(NAMES.get(s, s), text) for s, text in MEANINGS[method].items() if s in statistics]


# ------------------------------------------------------------ models and variances


def finished_text(head: dict[str, Any]) -> str:
    """'Finished 2026-05-01 14:30 UTC, mmgibbs 0.1.0'; '' where nothing is known."""
    if "finished" not in head:
        return ""
    version = head.get("versions", {}).get("mmgibbs")
    return f"Finished {head['finished'][:16].replace('T', ' ')} UTC" + (f", mmgibbs\u00a0{version}" if version else "")


def equations(head: dict[str, Any]) -> list[tuple[str, list[str]]]:
    """(trait, what it is the sum of) for each trait, as on the page of a run."""
    from mmgibbs.report.page import model_section  # with matplotlib, which only a page needs

    section = model_section(head, intercept=head.get("intercept", [])) if "analysis" in head else None
    return section["equations"] if section else []


def solution_text(info: Mapping[str, Any]) -> str:
    """'BLUP at given variances', of the facts of validation.json."""
    if info.get("variances") == SAMPLE:
        return "by sampling, variances too"
    return f"{'by sampling' if 'sampled' in info else 'BLUP'} at given variances"


def models_words(heads: Sequence[Mapping[str, Any]], of_all: bool = False) -> str:
    """Describe the equations of these analyses, above them; of_all: all of them have the same."""
    # a trait may be normal in one analysis and binary in another: each is named with the place of its analysis
    traits_of_each = [head.get("analysis", {}).get("traits", {}) for head in heads]
    behind = underlying_words(
        {f"{i} {name}": spec for i, traits in enumerate(traits_of_each) for name, spec in traits.items()}
    )
    or_behind = f" (or {behind})" if behind else ""
    return f"Each record of a trait{or_behind} is the sum of these effects{', in all analyses' * of_all}:"


def relationships_words(heads: Sequence[dict[str, Any]]) -> str:
    """'Levels of genetic: related by the pedigree; of litter: independent levels.', of terms of which all analyses that
    have them say the same."""
    sentences_of_each, short = [sentences(head) for head in heads], [sentences(head, short=True) for head in heads]
    every = {
        term: {by_term[term] for by_term in sentences_of_each if term in by_term}
        for by_term in sentences_of_each
        for term in by_term
    }
    same = {term: by_term[term] for by_term in short for term in by_term if len(every[term]) == 1}
    return f"Levels {'; '.join(f'of {term}: {said}' for term, said in same.items())}." if same else ""


def sentences(head: Mapping[str, Any], short: bool = False) -> dict[str, str]:
    """Random term -> how its levels are related; short: of a relationship file the name without its path."""
    random = head.get("analysis", {}).get("model", {}).get("random") or {}
    by_term = {term: kind["sentence"] for term, kind in describe_relationships(head).items()}
    if not short:
        return by_term
    return {term: related_words(said, str(random[term].get("relationship", ""))) for term, said in by_term.items()}


def variance_table(variances: object, components: dict[str, list[str]]) -> Table | None:
    """Given variances and covariances, named as parameters; None where they were sampled."""
    if not isinstance(variances, dict):
        return None
    rows = given_variances(variances, components)
    names, values = [name for name, _ in rows], [value for _, value in rows]
    places = [count_decimals(v, None) for v in values]
    columns = [text_column("Parameter", names), number_column("Value", values, places)]
    return make_table("Variances and covariances, as given", columns)


def given_variances(variances: object, components: dict[str, list[str]]) -> list[tuple[str, float]]:
    """(parameter, value) of each; none where they were sampled.

    variances: {term: (k, k)}, of residuals by class {class: (k, k)}; components: {term: (k,) labels}.
    """
    rows: list[tuple[str, float]] = []
    for term, section in variances.items() if isinstance(variances, dict) else ():
        of_class = section if isinstance(section, dict) else {"": section}
        for name, matrix in of_class.items():
            rows += _elements(term, np.asarray(matrix, float), components.get(term, []), f"|{name}" if name else "")
    return rows


def _elements(term: str, matrix: np.ndarray, labels: list[str], of_class: str) -> list[tuple[str, float]]:
    """The diagonal, then what of the lower triangle is not 0."""
    k = len(matrix)
    names = labels if len(labels) == k else [str(i + 1) for i in range(k)]
    elements = [(f"{term}.var[{names[i]}{of_class}]", float(matrix[i, i])) for i in range(k)]
    below = [(i, j) for i in range(k) for j in range(i) if matrix[i, j] != 0]
    return elements + [(f"{term}.cov[{names[j]},{names[i]}{of_class}]", float(matrix[i, j])) for i, j in below]


# ------------------------------------------------------------ differences between analyses

SECTIONS = ("data", "traits", "model")  # of an analysis, that say what is evaluated; with `variances` if sampled
NONE = "none"
Place = tuple[str, ...]  # of a key of the analysis file: model, random, animal, level


def difference_table(validations: Sequence[Validation]) -> Table | None:
    """A row for each thing in which they differ, a column for each analysis; None where nothing is known to differ."""
    in_words = _describe(validations)
    of_keys = [(".".join(place), *_written(values)) for place, values in _differing(_sections(validations))]
    of_keys = [row for row in of_keys if len(set(row[1:])) > 1]  # an empty list says what no key says
    rows = in_words + of_keys
    columns = [Column("What"), *(Column(str(v.info["analysis"])) for v in validations)]
    begin = listed(list(dict.fromkeys(f"{row[0].partition('.')[0]}." for row in of_keys)), "or")
    note = f"Names that begin with {begin} are keys of the analysis file." if of_keys else ""
    return Table("In what the analyses differ", columns, rows, note) if rows else None


def _describe(validations: Sequence[Validation]) -> list[tuple[str, ...]]:
    facts_of_each, short = [_facts(v) for v in validations], [_facts(v, short=True) for v in validations]
    keys = list(dict.fromkeys(key for facts in facts_of_each for key in facts))
    of = lambda several, key: [facts.get(key, NONE) for facts in several]
    rows = [(key, *_apart(of(short, key), of(facts_of_each, key))) for key in keys]
    return [row for row in rows if len(set(row[1:])) > 1 and not (NONE in row and row[0].startswith("number of"))]


def _facts(validation: Validation, short: bool = False) -> dict[str, str]:
    """List facts of an analysis that are words or numbers; short: of relationship files the name alone."""
    info, head = validation.info, validation.head
    facts = {"records": f"{info['records']:,}", "solved": solution_text(info)} if "records" in info else {}
    if chain := info.get("sampled"):
        facts["each chain"] = f"{chain['burn_in']:,} sweeps of burn-in, {chain['samples']:,} sweeps"
    facts |= {f"levels of {term}": sentence for term, sentence in sentences(head, short).items()}
    facts |= {f"number of levels of {term}": f"{n:,}" for term, n in head.get("levels", {}).items()}
    given = given_variances(info.get("variances"), head.get("components", {}))
    return facts | {name: number(value, count_decimals(value, None)) for name, value in given}


def _names(validations: Sequence[Validation]) -> tuple[str, ...]:
    """Sections of the analysis file that are compared."""
    sampled = any(v.info.get("variances") == SAMPLE for v in validations)
    return (*SECTIONS, "variances") if sampled else SECTIONS


def _sections(validations: Sequence[Validation]) -> list[dict[str, Any]]:
    names = _names(validations)
    return [{name: v.head.get("analysis", {}).get(name) or {} for name in names} for v in validations]


def _is_in_words(place: Place) -> bool:
    """Keys that stand in words, or among the variances: by their place, as an effect may have any of these names."""
    if place[:2] == ("model", "random"):
        return len(place) == 4 and place[3] == "relationship"
    return place[0] == "variances" and len(place) > 2 and place[-1] in ("start", "classes")


def _differing(values: Sequence[Any], place: Place = ()) -> Iterator[tuple[Place, Sequence[Any]]]:
    """(('model', 'random', 'animal', 'level'), the value of each analysis) of what differs; a section that one has
    not, whole."""
    if all(isinstance(value, Mapping) for value in values):
        for key in dict.fromkeys(key for value in values for key in value):
            if not _is_in_words(below := (*place, str(key))):
                yield from _differing([value.get(key) for value in values], below)
    elif any(value != values[0] for value in values) and not (None in values and place[:-1] == ("model", "random")):
        yield place, values  # a random term that one has not is among what is said in words


def _written(values: Sequence[Any]) -> list[str]:
    """Write values as cells: of files the name alone, where that tells them apart."""
    section = "yes" if None in values else "given"  # one without a file, where another analysis has none
    return _apart([_cell(v, section) for v in values], [_cell(v, section, short=False) for v in values])


def _apart(short: list[str], full: list[str]) -> list[str]:
    """The short ones, where they tell apart what the full ones do."""
    return short if len(set(short)) == len(set(full)) else full


def _cell(value: Any, section: str, short: bool = True) -> str:
    """A value; of a section its file, the names of the sections in it, or `section`; short: without the paths of
    files."""
    if isinstance(value, Mapping):
        if value.get("file") is not None:
            return _cell(value["file"], section, short)
        within = [str(key) for key, v in value.items() if isinstance(v, Mapping)]
        return ", ".join(within) if within and len(within) == len(value) else section
    if value is None or value == []:
        return NONE
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return ", ".join(_cell(v, section, short) for v in value)
    return Path(str(value)).name if short and Path(str(value)).root else str(value)
