"""Estimates of variances on their boundary of 0, shown as 0: REML keeps them just above it, where equations can be
solved (see reml/boundary.py)."""

from __future__ import annotations

import re

import polars as pl

from mmgibbs.report.html_tables import known
from mmgibbs.results.tables import was_drawn

AT_BOUND = 1e-4  # of the largest variance of the trait; REML's floor is a tenth of it
COEFFICIENT = re.compile(r"\.\d+:")  # in genetic.var[rr.1:weight], which has the units of its covariate


def bound_as_0(summary: pl.DataFrame) -> pl.DataFrame:
    """The summary of estimates with 0 for what is on its boundary: variances without a standard error that are next to
    nothing beside the others of their trait, their covariances and their shares. Draws stay as they are.
    """
    if was_drawn(summary):
        return summary
    rows = list(summary.select("parameter", "mean", "sd").iter_rows())
    largest: dict[str, float] = {}
    for name, mean, _ in rows:
        if ".var[" in name and known(mean) and not COEFFICIENT.search(name.partition("|")[0]):
            largest[_trait(name)] = max(mean, largest.get(_trait(name), 0.0))
    loose = {name: mean for name, mean, sd in rows if not known(sd) and known(mean)}  # given values have an sd of 0
    small = {
        name
        for name, mean in loose.items()
        if (".var[" in name and mean < AT_BOUND * largest.get(_trait(name), 0.0))
        or (name.startswith(("h2[", "ratio[")) and 0 <= mean < AT_BOUND)
    }
    small |= {name for name in loose if ".cov[" in name and _variances(name) & small}
    return summary.with_columns(mean=pl.when(pl.col("parameter").is_in(list(small))).then(0.0).otherwise("mean"))


def _trait(name: str) -> str:
    """'weaning' of genetic.var[direct:weaning], and of residual.var[weaning|indoor]."""
    return re.split(r"[:\[]", name.partition("|")[0].removesuffix("]"))[-1]  # a class may hold any of these signs


def _variances(name: str) -> set[str]:
    """The names of the variances that genetic.cov[direct:birth,direct:weaning] is between."""
    term, _, inside = name.removesuffix("]").partition(".cov[")
    labels, bar, of_class = inside.partition("|")
    return {f"{term}.var[{label}{bar}{of_class}]" for label in labels.split(",")}
