"""What the page of a validation begins with: when, by which version, of which model, at which variances."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mmgibbs.report.html_tables import Column, Table, decimals_of, numbers
from mmgibbs.report.page import model_section
from mmgibbs.report.words import behind_words
from mmgibbs.results.relationships import relationships_of


def when_and_by_what(head: dict[str, Any]) -> str:
    """'Finished 2026-05-01 14:30 UTC, mmgibbs 0.1.0'; '' where nothing is known."""
    if "finished" not in head:
        return ""
    version = head.get("versions", {}).get("mmgibbs")
    return f"Finished {head['finished'][:16].replace('T', ' ')} UTC" + (f", mmgibbs\u00a0{version}" if version else "")


def equations(head: dict[str, Any]) -> list[tuple[str, list[str]]]:
    """(trait, what it is the sum of) for each trait, as on the page of a run."""
    section = model_section(head, intercept=head.get("intercept", [])) if "analysis" in head else None
    return section["equations"] if section else []


def models_words(head: dict[str, Any], of_all: bool = False) -> str:
    """What the equations are, above them; of_all: those of every analysis of a comparison."""
    behind = behind_words(head.get("analysis", {}).get("traits", {}))
    or_behind = f" (or {behind})" if behind else ""
    return f"Each record of a trait{or_behind} is the sum of these effects{', in all analyses' * of_all}:"


def relationships_words(heads: Sequence[dict[str, Any]]) -> str:
    """'genetic: related by the pedigree; litter: independent levels.', of terms of which all analyses that have them
    say the same."""
    found = [{term: kind["sentence"] for term, kind in relationships_of(head).items()} for head in heads]
    every = {term: {own[term] for own in found if term in own} for own in found for term in own}
    said = "; ".join(f"{term}: {next(iter(sentences))}" for term, sentences in every.items() if len(sentences) == 1)
    return f"{said}." if said else ""


def variance_table(variances: object, components: dict[str, list[str]]) -> Table | None:
    """Given variances and covariances, named as parameters; None where they were sampled."""
    if not isinstance(variances, dict):
        return None
    rows = given_variances(variances, components)
    values = [value for _, value in rows]
    columns = [Column("Parameter"), Column("Value", "number")]
    cells = numbers(values, [decimals_of(v, None) for v in values])
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
