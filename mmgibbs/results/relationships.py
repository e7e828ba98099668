"""How the levels of random terms are related, as run.json has it: what a report says of a term comes from here.

Covariance matrices of a summary, whose elements are rows: TERM.var[a], TERM.cov[a,b], TERM.corr[a,b].
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from mmgibbs.models.relationships.base import Relationship


def described(kind: Relationship | type[Relationship]) -> dict[str, Any]:
    """Describe a relationship for run.json.

    The keys are words ('pedigree'), symbol (I, A, K), sentence, related, of_pedigree; of a matrix, facts of it.
    """
    facts = kind.facts if isinstance(kind, Relationship) else {}
    return {key: getattr(kind, key) for key in ("words", "symbol", "sentence", "related", "of_pedigree")} | facts


def describe_relationships(record: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Random term -> its description, in the order of the analysis."""
    random = record.get("analysis", {}).get("model", {}).get("random") or {}
    return {name: record["relationships"][name] for name in random}


_ELEMENT = re.compile(r"^(?P<term>.*?)\.(?P<of>effect_)?(?P<what>var|cov|corr)\[(?P<labels>.*)\]$", re.DOTALL)


@dataclass(frozen=True)
class CovarianceMatrix:
    """k >= 2 components, their posterior means or estimates; NaN where an element has no row: it is 0 by the model."""

    name: str  # of the term, with the class of a residual
    labels: tuple[str, ...]  # (k,)
    variances: np.ndarray  # (k,)
    covariances: np.ndarray  # (k, k), symmetric
    correlations: np.ndarray  # (k, k), 1 on the diagonal
    correlation_sds: np.ndarray  # (k, k)


def covariance_matrices(summary: pl.DataFrame) -> list[CovarianceMatrix]:
    """List the matrices of terms of which at least two components covary, in the order of the summary."""
    groups: dict[str, dict[str, dict[str, tuple[float, float]]]] = {}
    for name, mean, sd in summary.select("parameter", "mean", "sd").iter_rows():
        match = _ELEMENT.match(name)
        if match is None:
            continue
        labels, residual_class = match["labels"], ""
        if match["term"] == "residual":
            labels, bar, of_class = match["labels"].rpartition("|")
            labels, residual_class = (labels, of_class) if bar else (match["labels"], "")
        called = match["term"] + (f", {residual_class}" if residual_class else "")
        called += ", effects of a SNP" if match["of"] else ""
        numbers = tuple(np.nan if v is None else v for v in (mean, sd))
        groups.setdefault(called, {}).setdefault(match["what"], {})[labels] = numbers  # type: ignore[assignment]
    return [m for called, parts in groups.items() for m in _matrix(called, parts)]


def _matrix(name: str, parts: dict[str, dict[str, tuple[float, float]]]) -> Iterator[CovarianceMatrix]:
    labels = tuple(parts.get("var", {}))
    if len(labels) < 2 or not parts.get("cov"):
        return
    number = {label: i for i, label in enumerate(labels)}
    covariances, correlations, sds = np.full((3, len(labels), len(labels)), np.nan)
    variances = np.array([parts["var"][label][0] for label in labels])
    np.fill_diagonal(covariances, variances)
    np.fill_diagonal(correlations, 1.0)
    for what, values in (("cov", covariances), ("corr", correlations)):
        for pair, (mean, sd) in parts.get(what, {}).items():
            for a, b in _pairs(pair, number):
                values[a, b] = values[b, a] = mean
                if what == "corr":
                    sds[a, b] = sds[b, a] = sd
    yield CovarianceMatrix(name, labels, variances, covariances, correlations, sds)


def _pairs(text: str, number: dict[str, int]) -> list[tuple[int, int]]:
    """The two components that 'a,b' names; labels may have commas themselves."""
    parts = text.split(",")
    both = ((",".join(parts[:i]), ",".join(parts[i:])) for i in range(1, len(parts)))
    return [(number[a], number[b]) for a, b in both if a in number and b in number][:1]
