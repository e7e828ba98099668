"""Whom to select: tables of the candidates and of the response to selection, as files of a run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from mmgibbs.posterior.decisions import Decided


def candidates_frame(
    decided: Decided, criteria: Sequence[str], levels: pl.Series, top: Sequence[float]
) -> pl.DataFrame:
    """A row for each criterion and candidate: score, P(top x), ranks. levels: (m,) ids of the candidates."""
    scores, m = decided.scores, len(levels)
    columns = {
        "criterion": pl.Series(criteria, dtype=pl.String).gather(np.repeat(np.arange(len(criteria)), m)),
        "level": levels.gather(np.tile(np.arange(m), len(criteria))),
    }
    columns |= {name: _numbers(getattr(scores, name)[0]) for name in ("mean", "sd", "mcse", "ess")}
    for x, per_cent in enumerate(top):
        columns |= {
            f"p_top_{per_cent:g}": _numbers(decided.top[:, x]),
            f"mcse_top_{per_cent:g}": _numbers(decided.top_mcse[:, x]),
        }
    columns |= {
        f"rank_{name}": pl.Series(ranks.reshape(-1))
        for name, ranks in zip(("low", "median", "high"), decided.rank, strict=True)
    }
    return pl.DataFrame(columns)


def response_frame(
    decided: Decided, criteria: Sequence[str], top: Sequence[float], selected: Sequence[int], candidates: int
) -> pl.DataFrame:
    """A row for each criterion and top: the mean of the selected less that of all, in units of the criterion."""
    c, p = len(criteria), len(top)
    of_gains = {name: _numbers(getattr(decided.scores, name)[1]) for name in ("mean", "sd", "mcse", "ess")}
    columns = {
        "criterion": pl.Series(criteria, dtype=pl.String).gather(np.repeat(np.arange(c), p)),
        "top": _numbers(np.tile(top, (c, 1))),
        "selected": pl.Series(np.tile(selected, c)),
        "candidates": pl.repeat(candidates, c * p, dtype=pl.Int64, eager=True),
        "by_mean": _numbers(decided.gain_by_mean),
        "by_p_top": _numbers(decided.gain_by_top),
        "perfect": of_gains.pop("mean"),
    }
    return pl.DataFrame(columns | {f"perfect_{name}": values for name, values in of_gains.items()})


def _numbers(values: np.ndarray) -> pl.Series:
    return pl.Series(np.ascontiguousarray(values, np.float64).reshape(-1), nan_to_null=True)
