"""Of a symmetric matrix that a summary has whole, what a page shows: its lower triangle and its diagonal."""

from __future__ import annotations

import math
from collections.abc import Iterator

import polars as pl

COEFFICIENTS = ("beta", "intercept", "population")  # with two labels that may change places, but no matrix


def lower_triangle(summary: pl.DataFrame) -> pl.DataFrame:
    """The summary without the rows above a diagonal.

    Regressions keep covariance matrices whole; mixed models have each covariance once, and nothing is left out.
    """
    above = drop_mirrored(summary)
    return summary.filter(~pl.col("parameter").is_in(above)) if above else summary


def drop_mirrored(summary: pl.DataFrame) -> list[str]:
    """Of name[a,b] and name[b,a], whose means and SDs are equal, the earlier one."""
    names = summary["parameter"].to_list()
    moments = dict(zip(names, summary.select("mean", "sd").iter_rows(), strict=True))
    place = {name: i for i, name in enumerate(names)}
    return [
        name
        for name in names
        if name.partition("[")[0] not in COEFFICIENTS
        and any(place.get(o, -1) > place[name] and _alike(moments[name], moments[o]) for o in _mirrored(name))
    ]


def _mirrored(name: str) -> Iterator[str]:
    """'covariance[b,a]' of 'covariance[a,b]'; labels such as 'difficult,dam_age' have commas too, so at each comma."""
    kind, _, inside = name.removesuffix("]").partition("[")
    parts = inside.split(",")
    for k in range(1, len(parts)):
        yield f"{kind}[{','.join(parts[k:] + parts[:k])}]"


def _alike(a: tuple[float | None, ...], b: tuple[float | None, ...]) -> bool:
    return all(
        x == y or (x is not None and y is not None and math.isclose(x, y, rel_tol=1e-9))
        for x, y in zip(a, b, strict=True)
    )
