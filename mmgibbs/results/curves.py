"""Variances along the covariates of random regressions: from the covariances of the coefficients of their curves.

With phi(x) the Legendre polynomials at x and G the covariance matrix of the coefficients, the variance at x is
phi(x)' G phi(x), in every draw. Of the one term with breeding values of the animals themselves its share of the sum of
all variances at x is the heritability there. curves.csv and curves.parquet have both at POINTS values of x.

Curves of a trait over a covariate as a table: the mean of the trait at each value, with its error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import polars as pl

from mmgibbs.data.covariates import legendre
from mmgibbs.data.prepared import Prepared
from mmgibbs.posterior.adjusted_means import AdjustedMeans, MeansMoments
from mmgibbs.posterior.summary import summary_table
from mmgibbs.results.relationships import describe_relationships

POINTS = 61  # of a curve
ADDITIVE = ("A", "G", "H")  # symbols of relationships by which the variance of animals is a genetic one
PARENTS = ("sire", "father", "dam", "mother")  # level columns, whose variance is a part of that, or a maternal one
CURVE_COLUMNS = ("term", "effect", "trait", "quantity", "covariate", "at", "mean", "sd", "mcse", "hpd_low", "hpd_high")


@dataclass(frozen=True)
class LegendreCurve:
    """Legendre polynomials of one covariate, on one trait."""

    term: str
    effect: str  # '' without a name
    trait: str
    column: str
    degree: int
    low: float
    high: float
    is_alone: bool = True  # no other effect of the term is on the trait

    @property
    def name(self) -> str:
        """The term, with the effect where there are others."""
        return self.term if self.is_alone else f"{self.term}.{self.effect}"

    def along(self, draws: Mapping[str, np.ndarray], x: np.ndarray) -> np.ndarray | None:
        """(draws, points) variances at x; None where a variance of a coefficient is not known."""
        labels = [f"{self.effect}.{j}:{self.trait}" for j in range(self.degree + 1)]
        phi = legendre(x, self.degree, self.low, self.high)
        out: np.ndarray | None = None
        for (i, a), (j, b) in product(enumerate(labels), repeat=2):
            element = _element(draws, self.term, a, b)
            if element is None:
                if i == j:
                    return None
                continue  # structure: diagonal
            summand = element[:, None] * (phi[:, i] * phi[:, j])
            out = summand if out is None else out + summand
        return out


@dataclass(frozen=True)
class VarianceCurve:
    """Curve of a variance at the points x, over the draws."""

    curve: LegendreCurve
    x: np.ndarray  # (points,)
    is_genetic: bool  # of the animals themselves, by relationships
    variance: np.ndarray  # (draws, points)
    heritability: np.ndarray | None  # (draws, points)
    counted: list[str]  # terms whose variances make up the phenotypic one


def variance_curves(record: Mapping[str, Any], draws: Mapping[str, np.ndarray]) -> list[VarianceCurve]:
    """List the curves of each trait and random term, whose range the analysis or the data state.

    record: of the run; draws: (draws,) of each parameter.
    """
    analysis, relationships = record.get("analysis", {}), describe_relationships(record)
    model, out = analysis.get("model", {}), []
    ranges = record.get("data", {}).get("legendre_ranges", {})
    for trait in analysis.get("traits", {}):
        of_animals = [term for term in relationships if _has_breeding_values(model, relationships, term, trait)]
        curves = [
            effect
            for term in relationships
            for effect in effects_of_term(model["random"][term], term, trait, ranges)
            if isinstance(effect, LegendreCurve)
        ]
        for curve in curves:
            x = np.linspace(curve.low, curve.high, POINTS)
            variance = curve.along(draws, x)
            if variance is not None:
                total = _total(model, ranges, draws, trait, curve, x)
                share = variance / total[0] if total is not None and of_animals == [curve.term] else None
                is_genetic = curve.term in of_animals
                out.append(VarianceCurve(curve, x, is_genetic, variance, share, total[1] if total else []))
    return out


def curves_frame(record: Mapping[str, Any], draws: Mapping[str, np.ndarray]) -> pl.DataFrame:
    """A row for each curve, quantity and point. draws: (chains, draws) of each parameter."""
    chains = len(next(iter(draws.values()), ()))
    flat = {name: np.asarray(values).reshape(-1) for name, values in draws.items()}
    texts = set(CURVE_COLUMNS[:5])
    frames = [pl.DataFrame(schema={name: pl.String if name in texts else pl.Float64 for name in CURVE_COLUMNS})]
    for curve in variance_curves(record, flat):
        frames.append(_frame(curve, "variance", curve.variance, chains))
        if curve.heritability is not None:
            frames.append(_frame(curve, "heritability", curve.heritability, chains))
    return pl.concat(frames)


def _frame(curve: VarianceCurve, quantity: str, values: np.ndarray, chains: int) -> pl.DataFrame:
    """values: (chains x draws, points)."""
    of_points = values.reshape(chains, -1, len(curve.x))
    moments = summary_table({str(i): of_points[:, :, i] for i in range(len(curve.x))})
    numbers = {"at": curve.x} | {name: moments[name] for name in CURVE_COLUMNS[6:]}
    return pl.DataFrame(
        {name: pl.Series(values, dtype=pl.Float64, nan_to_null=True) for name, values in numbers.items()}
    ).select(
        pl.lit(curve.curve.term).alias("term"),
        pl.lit(curve.curve.effect).alias("effect"),
        pl.lit(curve.curve.trait).alias("trait"),
        pl.lit(quantity).alias("quantity"),
        pl.lit(curve.curve.column).alias("covariate"),
        *numbers,
    )


def _element(draws: Mapping[str, np.ndarray], term: str, a: str, b: str) -> np.ndarray | None:
    """(draws,) of a variance, or of a covariance, which the draws have once."""
    names = [f"{term}.var[{a}]"] if a == b else [f"{term}.cov[{a},{b}]", f"{term}.cov[{b},{a}]"]
    return next((draws[name] for name in names if name in draws), None)


def _effects_by_trait(random: Mapping[str, Any], trait: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(name, keys) of the effects of a random term on the trait."""
    for effect, spec in (random.get("effects") or {"": random}).items():
        if trait in (spec.get("traits") or [trait]):
            yield effect, spec


def _has_breeding_values(model: Mapping[str, Any], relationships: Mapping[str, Any], term: str, trait: str) -> bool:
    """The term has breeding values of the animals themselves: one such term alone has the heritability."""
    levels = [str(spec.get("level") or term) for _, spec in _effects_by_trait(model["random"][term], trait)]
    return relationships[term]["symbol"] in ADDITIVE and any(level.lower() not in PARENTS for level in levels)


def effects_of_term(
    random: Mapping[str, Any], term: str, trait: str, ranges: Mapping[str, Any]
) -> list[LegendreCurve | str | None]:
    """List the effects of a random term on the trait.

    Each is a curve, the label of a plain effect, or None for what has neither.

    ranges: 'TERM.EFFECT' -> of the data.
    """
    out: list[LegendreCurve | str | None] = []
    effects = list(_effects_by_trait(random, trait))
    for effect, spec in effects:
        of = spec.get("legendre")
        span = of and (of.get("range") or ranges.get(f"{term}.{effect}"))
        if of and span:
            low, high = map(float, span)
            out.append(LegendreCurve(term, effect, trait, of["column"], of["degree"], low, high, len(effects) == 1))
        elif of or spec.get("covariates"):
            out.append(None)
        else:
            out.append(f"{effect}:{trait}".removeprefix(":"))
    return out


def _total(
    model: Mapping[str, Any],
    ranges: Mapping[str, Any],
    draws: Mapping[str, np.ndarray],
    trait: str,
    curve: LegendreCurve,
    x: np.ndarray,
) -> tuple[np.ndarray, list[str]] | None:
    """(the sum of all variances of a record at x (draws, points), names of its terms).

    None where it is no such sum: several effects of one term, curves along something else, SNP effects, residual
    variances by class.
    """
    names = []
    residual = draws.get(f"residual.var[{trait}]")
    if residual is None or any(trait in (m.get("traits") or [trait]) for m in (model.get("markers") or {}).values()):
        return None
    total = np.broadcast_to(residual[:, None], (len(residual), len(x)))
    for term, random in model["random"].items():
        effects = effects_of_term(random, term, trait, ranges)
        if not effects:
            continue
        first = effects[0]
        if len(effects) > 1 or first is None or (isinstance(first, LegendreCurve) and first.column != curve.column):
            return None
        is_curve = isinstance(first, LegendreCurve)
        component = first.along(draws, x) if isinstance(first, LegendreCurve) else _element(draws, term, first, first)
        if component is None:
            return None
        total = total + (component if is_curve else component[:, None])
        names.append(term)
    return total, [*names, "residual"]


def smooths_frame(
    prepared: Prepared, means: Sequence[AdjustedMeans], moments: Mapping[str, MeansMoments]
) -> pl.DataFrame | None:
    """A row for each value of the covariate of each curve; None without curves, or before they are computed."""
    frames = [
        _smooth_frame(prepared, curve, moments[curve.name])
        for curve in means
        if curve.is_curve and curve.name in moments
    ]
    return pl.concat(frames) if frames else None


def _smooth_frame(prepared: Prepared, means: AdjustedMeans, moments: MeansMoments) -> pl.DataFrame:
    assert means.random is not None, "curves are those of random terms"
    curve = prepared.levels[means.random[0]].curve
    assert curve is not None, "the term has one"
    text = lambda word: pl.repeat(word, len(curve.values), dtype=pl.String, eager=True)
    return pl.DataFrame(
        {
            "term": text(means.effect),
            "trait": text(means.trait),
            "class": curve.classes,
            "covariate": text(curve.column),
            "at": curve.values,
            "records": means.records,
            "mean": moments.mean,
            "sd": np.sqrt(np.maximum(np.diag(moments.covariance), 0.0)),
        }
    )
