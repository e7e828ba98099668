"""Variances along the covariate of a random regression: from the covariances of the coefficients of its curves.

With phi(x) the Legendre polynomials at x and G the covariance matrix of the coefficients, the variance at x is
phi(x)' G phi(x), in every draw. Of the one term with breeding values of the animals themselves its share of the sum of
all variances at x is the heritability there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from mmgibbs.data.covariates import legendre
from mmgibbs.report import plots
from mmgibbs.report.finished import Finished
from mmgibbs.report.html_tables import Column, Table, decimals, decimals_of, listed, number, numbers

POINTS = 61  # of a curve
SHOWN = 5  # of them in the table, evenly spaced
MOST = 2000  # draws
ADDITIVE = ("A", "G", "H")  # symbols of relationships by which the variance of animals is a genetic one
PARENTS = ("sire", "father", "dam", "mother")  # level columns, whose variance is a part of that, or a maternal one


@dataclass(frozen=True)
class _Curve:
    """Legendre polynomials of one covariate, on one trait."""

    term: str
    effect: str  # '' without a name
    trait: str
    column: str
    degree: int
    low: float
    high: float

    def along(self, draws: Mapping[str, np.ndarray], x: np.ndarray) -> np.ndarray | None:
        """(draws, points) variances at x; None where a variance of a coefficient is not known."""
        labels = [f"{self.effect}.{j}:{self.trait}" for j in range(self.degree + 1)]
        phi = legendre(x, self.degree, self.low, self.high)
        out: np.ndarray | None = None
        for (i, a), (j, b) in product(enumerate(labels), repeat=2):
            found = _element(draws, self.term, a, b)
            if found is None:
                if i == j:
                    return None
                continue  # structure: diagonal
            part = found[:, None] * (phi[:, i] * phi[:, j])
            out = part if out is None else out + part
        return out


def _element(draws: Mapping[str, np.ndarray], term: str, a: str, b: str) -> np.ndarray | None:
    """(draws,) of a variance, or of a covariance, which the draws have once."""
    names = [f"{term}.var[{a}]"] if a == b else [f"{term}.cov[{a},{b}]", f"{term}.cov[{b},{a}]"]
    return next((draws[name] for name in names if name in draws), None)


def curves_of_variance(run: Finished, figures: plots.Figures) -> list[dict[str, Any]]:
    """Per trait and term with relationships and one curve, whose range the analysis states: figures and a table."""
    if not run.relationships:  # of a regression, whose draws may take gigabytes
        return []
    draws = {name: _some(values) for name, values in run.draws.items()}
    model = run.record.get("analysis", {}).get("model", {})
    out = []
    for trait in run.record.get("analysis", {}).get("traits", {}):
        of_animals = [term for term in run.relationships if _of_animals(run, term, trait)]
        for term in run.relationships:
            found = _of_term(model["random"][term], term, trait)
            if term not in run.related or len(found) != 1 or not isinstance(found[0], _Curve):
                continue
            curve = found[0]
            x = np.linspace(curve.low, curve.high, POINTS)
            variance = curve.along(draws, x)
            if variance is not None:
                total = _total(run, draws, trait, curve, x)
                share = variance / total[0] if total is not None and of_animals == [term] else None
                heading = "Genetic variance" if term in of_animals else "Variance"
                out.append(_item(curve, x, heading, variance, share, total[1] if total else [], figures, run.solved))
    return out


def _some(values: np.ndarray) -> np.ndarray:
    """(draws,) of all chains, an even sample of them."""
    return plots.thin_to(values.reshape(-1), MOST)


def _on(random: Mapping[str, Any], trait: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(name, keys) of the effects of a random term on the trait."""
    for effect, spec in (random.get("effects") or {"": random}).items():
        if trait in (spec.get("traits") or [trait]):
            yield effect, spec


def _of_animals(run: Finished, term: str, trait: str) -> bool:
    """The term has breeding values of the animals themselves: one such term alone has the heritability."""
    random = run.record["analysis"]["model"]["random"][term]
    levels = [str(spec.get("level") or term) for _, spec in _on(random, trait)]
    return run.relationships[term]["symbol"] in ADDITIVE and any(level.lower() not in PARENTS for level in levels)


def _of_term(random: Mapping[str, Any], term: str, trait: str) -> list[_Curve | str | None]:
    """What a random term has on the trait: a curve, the label of a plain effect, or None for what has neither."""
    out: list[_Curve | str | None] = []
    for effect, spec in _on(random, trait):
        of = spec.get("legendre")
        if of and of.get("range"):
            out.append(_Curve(term, effect, trait, of["column"], of["degree"], *map(float, of["range"])))
        elif of or spec.get("covariates"):
            out.append(None)
        else:
            out.append(f"{effect}:{trait}".removeprefix(":"))
    return out


def _total(
    run: Finished, draws: Mapping[str, np.ndarray], trait: str, curve: _Curve, x: np.ndarray
) -> tuple[np.ndarray, list[str]] | None:
    """(the sum of all variances of a record at x (draws, points), names of its terms).

    None where it is no such sum: several effects of one term, curves along something else, SNP effects, residual
    variances by class.
    """
    model, names = run.record["analysis"]["model"], []
    residual = draws.get(f"residual.var[{trait}]")
    if residual is None or any(trait in (m.get("traits") or [trait]) for m in (model.get("markers") or {}).values()):
        return None
    total = np.broadcast_to(residual[:, None], (len(residual), len(x)))
    for term, random in model["random"].items():
        found = _of_term(random, term, trait)
        if not found:
            continue
        own = found[0]
        if len(found) > 1 or own is None or (isinstance(own, _Curve) and own.column != curve.column):
            return None
        part = own.along(draws, x) if isinstance(own, _Curve) else _element(draws, term, own, own)
        if part is None:
            return None
        total = total + (part if part.ndim == 2 else part[:, None])
        names.append(term)
    return total, [*names, "residual"]


def _item(
    curve: _Curve,
    x: np.ndarray,
    of_variance: str,
    variance: np.ndarray,
    share: np.ndarray | None,
    counted: list[str],
    figures: plots.Figures,
    solved: bool,
) -> dict[str, Any]:
    of = f"{curve.term}, {curve.trait}"
    drawn = [_figure(of_variance, of, curve, x, variance, "", figures)]
    at = np.linspace(0, POINTS - 1, SHOWN).astype(int)
    columns = [Column(curve.column, "number")]
    cells = [numbers(x[at].tolist(), max(decimals_of(float(round(v, 6)), None) for v in x[at]))]
    for heading, values in (("Variance", variance), ("Heritability", share)):
        if values is None:
            continue
        if heading == "Heritability":
            parts = f"It is the variance of {curve.term} divided by the sum of those of {listed(counted, most=12)}."
            drawn.append(_figure(heading, of, curve, x, values, parts, figures))
        new_columns, new_cells = _columns(heading, values[:, at], solved)
        columns, cells = columns + new_columns, cells + new_cells
    several = len(variance) > 1
    note = "Means of the draws; low and high: 2.5 % and 97.5 % of them." if several else ""
    table = Table(f"{of}: variances along {curve.column}", columns, list(zip(*cells, strict=True)), note)
    return {"label": f"{of}, along {curve.column}", "figures": drawn, "table": table}


def _columns(heading: str, values: np.ndarray, solved: bool) -> tuple[list[Column], list[list]]:
    """values (draws, points); of a single one there is no interval."""
    mean = values.mean(axis=0)
    if len(values) == 1:
        places = 3 if heading == "Heritability" else decimals(float(abs(mean).max()), 3)
        at = "at the variances above" if solved else ""
        return [Column(heading, "number", at)], [numbers(mean.tolist(), places)]
    low, high = np.percentile(values, (2.5, 97.5), axis=0)
    places = 3 if heading == "Heritability" else decimals(float(np.median(values.std(axis=0))))
    heads = [heading, f"{heading}, low", f"{heading}, high"]
    return [Column(h, "number") for h in heads], [numbers(v.tolist(), places) for v in (mean, low, high)]


def _figure(
    heading: str, of: str, curve: _Curve, x: np.ndarray, values: np.ndarray, more: str, figures: plots.Figures
) -> tuple[str, str, str]:
    middle = values.mean(axis=0)
    low, high = np.percentile(values, (2.5, 97.5), axis=0)
    places = 2 if heading == "Heritability" else decimals(float(np.ptp(middle) or abs(middle).max()))
    of_x = [number(float(v), decimals_of(float(round(v, 6)), None)) for v in (x[0], x[-1], x[int(middle.argmax())])]
    at = [number(float(v), places) for v in (middle[0], middle[-1], middle.max())]
    caption = (
        f"{heading} along {curve.column} (right): from {at[0]} at {of_x[0]} to {at[1]} at {of_x[1]}; the highest is "
        f"{at[2]} at {of_x[2]}."
    )
    band = "The band is the 95 % interval at each point." if len(values) > 1 else ""
    caption = " ".join(filter(None, (caption, more, band)))
    ceiling = 1.0 if heading == "Heritability" else None
    paint = plots.paint_by_year(x, middle, low, high, 0.0, ceiling, whole=False)
    name = f"{heading} along {curve.column}"
    return name, figures.draw(paint, f"{name}, {of}", caption, x_label="covariate of the curve"), caption
