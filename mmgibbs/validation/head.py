"""What the page of a validation begins with: when, by which version, of which model, at which variances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mmgibbs.report.html_tables import Column, Table, count_decimals, numbers
from mmgibbs.report.words import related_words, underlying_words
from mmgibbs.results.relationships import describe_relationships
from mmgibbs.validation.plan import SAMPLE


def when_and_by_what(head: dict[str, Any]) -> str:
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


def how_solved(info: Mapping[str, Any]) -> str:
    """'BLUP at given variances', of the facts of validation.json."""
    if info.get("variances") == SAMPLE:
        return "by sampling, variances too"
    return f"{'by sampling' if 'sampled' in info else 'BLUP'} at given variances"


def models_words(heads: Sequence[Mapping[str, Any]], of_all: bool = False) -> str:
    """What the equations of these analyses are, above them; of_all: all of them have the same."""
    # a trait may be normal in one analysis and binary in another: each is named with the place of its analysis
    each = [head.get("analysis", {}).get("traits", {}) for head in heads]
    behind = underlying_words({f"{i} {name}": spec for i, traits in enumerate(each) for name, spec in traits.items()})
    or_behind = f" (or {behind})" if behind else ""
    return f"Each record of a trait{or_behind} is the sum of these effects{', in all analyses' * of_all}:"


def relationships_words(heads: Sequence[dict[str, Any]]) -> str:
    """'Levels of genetic: related by the pedigree; of litter: independent levels.', of terms of which all analyses that
    have them say the same."""
    found, short = [sentences(head) for head in heads], [sentences(head, short=True) for head in heads]
    every = {term: {own[term] for own in found if term in own} for own in found for term in own}
    same = {term: own[term] for own in short for term in own if len(every[term]) == 1}
    return f"Levels {'; '.join(f'of {term}: {said}' for term, said in same.items())}." if same else ""


def sentences(head: Mapping[str, Any], short: bool = False) -> dict[str, str]:
    """Random term -> how its levels are related; short: of a relationship file the name without its path."""
    random = head.get("analysis", {}).get("model", {}).get("random") or {}
    found = {term: kind["sentence"] for term, kind in describe_relationships(head).items()}
    if not short:
        return found
    return {term: related_words(said, str(random[term].get("relationship", ""))) for term, said in found.items()}


def variance_table(variances: object, components: dict[str, list[str]]) -> Table | None:
    """Given variances and covariances, named as parameters; None where they were sampled."""
    if not isinstance(variances, dict):
        return None
    rows = given_variances(variances, components)
    values = [value for _, value in rows]
    columns = [Column("Parameter"), Column("Value", "number")]
    cells = numbers(values, [count_decimals(v, None) for v in values])
    return Table("Variances and covariances, as given", columns, list(zip([p for p, _ in rows], cells, strict=True)))


def given_variances(variances: object, components: dict[str, list[str]]) -> list[tuple[str, float]]:
    """(parameter, value) of each; none where they were sampled.

    variances: {term: (k, k)}, of residuals by class {class: (k, k)}; components: {term: (k,) labels}.
    """
    rows: list[tuple[str, float]] = []
    for term, own in variances.items() if isinstance(variances, dict) else ():
        of_class = own if isinstance(own, dict) else {"": own}
        for name, matrix in of_class.items():
            rows += _elements(term, np.asarray(matrix, float), components.get(term, []), f"|{name}" if name else "")
    return rows


def _elements(term: str, matrix: np.ndarray, labels: list[str], of_class: str) -> list[tuple[str, float]]:
    """The diagonal, then what of the lower triangle is not 0."""
    k = len(matrix)
    names = labels if len(labels) == k else [str(i + 1) for i in range(k)]
    found = [(f"{term}.var[{names[i]}{of_class}]", float(matrix[i, i])) for i in range(k)]
    below = [(i, j) for i in range(k) for j in range(i) if matrix[i, j] != 0]
    return found + [(f"{term}.cov[{names[j]},{names[i]}{of_class}]", float(matrix[i, j])) for i, j in below]
