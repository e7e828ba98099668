"""Scores of levels on the factors of a factor-analytic matrix: overall performance and stability over environments.

With G = L L' + Psi, columns of L on principal axes, and the values u_l (T,) of level l, its scores are

    f_l = E(f_l | u_l) = L' G^-1 u_l

and, as Smith & Cullis (2018, Euphytica 214:143) define them for the traits of T environments,

    overall performance   mean of the loadings of the first factor x f_l1
    stability             root mean square over environments of sum_(j > 1) L_tj f_lj

so a level is the more stable the smaller that deviation from its regression on the first factor is. L, Psi and u are
posterior means, or the estimates and solutions of REML.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
import polars as pl

_LOADING = re.compile(r"^(?P<term>.+)\.loading\[(?P<component>.+):(?P<factor>\d+)\]$", re.DOTALL)


class Factors(NamedTuple):
    """The factors of one term."""

    components: list[str]
    loadings: np.ndarray  # (T, k)
    specific: np.ndarray  # (T,) variances, 0 where the matrix has none


def read_factors(summary: pl.DataFrame) -> dict[str, Factors]:
    """Term -> its factors, in the order of the summary."""
    values = dict(summary.select("parameter", "mean").iter_rows())
    sizes: dict[str, dict[str, list[float]]] = {}
    for name, value in values.items():
        match = _LOADING.match(name)
        if match is not None:
            sizes.setdefault(match["term"], {}).setdefault(match["component"], []).append(value)
    return {
        term: Factors(
            list(loadings),
            np.array(list(loadings.values())),
            np.array([values.get(f"{term}.specific[{component}]", 0.0) for component in loadings]),
        )
        for term, loadings in sizes.items()
    }


def score_levels(factors: Factors, values: np.ndarray) -> np.ndarray:
    """(q, k) f of values u (q, T)."""
    L = factors.loadings
    G = L @ L.T + np.diag(factors.specific)
    return np.asarray(values @ np.linalg.pinv(G, hermitian=True) @ L)


def scores_frame(summary: pl.DataFrame, solutions: pl.DataFrame) -> pl.DataFrame | None:
    """A row for each level of each term with factors over traits, best first; None without such a term."""
    frames = []
    for term, factors in read_factors(summary).items():
        values = _values_by_trait(solutions.filter(term=term), factors.components)
        if values is None:
            continue
        f = score_levels(factors, values.select(factors.components).to_numpy())
        k = f.shape[1]
        rest = f[:, 1:] @ factors.loadings[:, 1:].T
        frame = pl.DataFrame(
            {
                "term": [term] * len(f),
                "level": values["level"],
                "overall_performance": factors.loadings[:, 0].mean() * f[:, 0],
                "stability": np.sqrt((rest**2).mean(axis=1)) if k > 1 else pl.Series([None] * len(f), dtype=pl.Float64),
                **{f"score_{j + 1}": f[:, j] for j in range(k)},
            }
        )
        frames.append(frame.sort("overall_performance", descending=True, maintain_order=True))
    return pl.concat(frames, how="diagonal") if frames else None


def _values_by_trait(solutions: pl.DataFrame, components: list[str]) -> pl.DataFrame | None:
    """Columns `level` and one for each component; None unless the components are traits."""
    if set(components) != set(solutions["trait"].to_list()) or solutions["effect"].n_unique() > 1:
        return None
    return solutions.pivot("trait", index="level", values="mean")
