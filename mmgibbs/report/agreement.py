"""Agreement of two sets of solutions, for the page and for the command that compare.

b = cov(x, y) / var(x) is the regression of y on x: below 1 where y is shrunk more, or where x is inflated.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from scipy.stats import spearmanr

MIN_LEVELS = 3  # for correlations


def rank_levels(both: pl.DataFrame) -> pl.DataFrame:
    """Levels with values a and b, with rank_a and rank_b (1 is the highest), difference (b - a) and places (rank_a -
    rank_b).
    """
    ranks = [pl.col(c).rank("ordinal", descending=True).cast(pl.Int64).alias(f"rank_{c}") for c in ("a", "b")]
    return both.with_columns(*ranks).with_columns(
        difference=pl.col("b") - pl.col("a"), places=pl.col("rank_a") - pl.col("rank_b")
    )


def compute_agreement(ranked: pl.DataFrame, top: int) -> dict[str, Any]:
    """Compute correlations, regressions and ranks of a table of `rank_levels`; None where values do not vary.

    top: how many of the highest of a are looked for among those of b.
    """
    a, b = ranked["a"].to_numpy(), ranked["b"].to_numpy()
    varies = len(a) >= MIN_LEVELS and min(a.std(), b.std()) > 0
    cov = np.cov(a, b) if varies else None
    n = min(top, len(a))
    places = ranked["places"].abs()
    return {
        "correlation": None if cov is None else float(cov[0, 1] / np.sqrt(cov[0, 0] * cov[1, 1])),
        "rank_correlation": float(spearmanr(a, b).statistic) if varies else None,
        "regression_of_b_on_a": None if cov is None else float(cov[0, 1] / cov[0, 0]),
        "regression_of_a_on_b": None if cov is None else float(cov[0, 1] / cov[1, 1]),
        "mean_a": float(a.mean()) if len(a) else None,
        "mean_b": float(b.mean()) if len(b) else None,
        "sd_a": float(a.std(ddof=1)) if len(a) > 1 else None,
        "sd_b": float(b.std(ddof=1)) if len(b) > 1 else None,
        "largest_difference": float(np.abs(b - a).max()) if len(a) else None,
        "top": n,
        "in_both_top": ranked.filter(pl.col("rank_a") <= n, pl.col("rank_b") <= n).height,
        "median_places": float(places.median() or 0),  # type: ignore[arg-type]
        "most_places": int(places.max() or 0),  # type: ignore[arg-type]
    }
