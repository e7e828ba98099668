"""Parameters on the page: which are shown, on which boundary they lie, and between which values they can."""

from __future__ import annotations

import fnmatch
import math
import re
import reprlib
from collections.abc import Iterable, Iterator

import numpy as np
import polars as pl

from mmgibbs.errors import ConfigError, nearest
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


SHARES = ("h2", "ratio", "h2_observed", "incidence", "pi")  # of a whole
OF_ANY_SIGN = ("beta", "intercept", "population", "cov", "effect_cov")  # though all of their draws may be above 0
MATRIX = "covariance"  # of a regression, with variances on its diagonal


def bounds(name: str, draws: np.ndarray) -> tuple[float | None, float | None]:
    """(floor, ceiling) of a parameter of the summary, None where there is none.

    Correlations lie from -1 to 1, shares from 0 to 1. What else has no draw below 0 is taken for a variance or a scale,
    but for coefficients and covariances. A bound that a draw is beyond is none: with a negative covariance of direct
    and maternal effects a share may be above 1.
    """
    kind, _, inside = name.removesuffix("]").partition("[")
    kind = kind.rpartition(".")[2]
    lowest, highest = draws.min(), draws.max()
    if kind.endswith("corr") or kind == "rho":
        return _kept(-1.0, 1.0, lowest, highest)
    if kind in SHARES:
        return _kept(0.0, 1.0, lowest, highest)
    if kind in OF_ANY_SIGN or (kind == MATRIX and not _is_diagonal(inside)):
        return None, None
    return _kept(0.0, None, lowest, highest)


def _kept(floor: float, ceiling: float | None, lowest: float, highest: float) -> tuple[float | None, float | None]:
    return floor if lowest >= floor else None, ceiling if ceiling is not None and highest <= ceiling else None


def _is_diagonal(inside: str) -> bool:
    """'a,a', or 'difficult,dam_age,difficult,dam_age'."""
    labels = inside.split(",")
    return labels[: len(labels) // 2] == labels[len(labels) // 2 :]


COEFFICIENTS = ("beta", "intercept", "population")  # with two labels that may change places, but no matrix


def lower_triangle(summary: pl.DataFrame) -> pl.DataFrame:
    """The summary without the rows above a diagonal.

    Regressions keep covariance matrices whole; mixed models have each covariance once, and nothing is left out.
    """
    above = drop_mirrored(summary)
    return summary.filter(~pl.col("parameter").is_in(above)) if above else summary


def drop_mirrored(summary: pl.DataFrame) -> list[str]:
    """List the earlier of name[a,b] and name[b,a], whose means and SDs are equal."""
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


def match_names(argument: str, noun: str, patterns: object, names: Iterable[str]) -> list[str]:
    """The names that fit any of the patterns, in the order of the patterns.

    argument: what the message begins with; noun: what a name is of. ConfigError where the patterns are no text, or
    where one of them fits no name.
    """
    known = list(names)
    given: list[object] = [patterns]
    if isinstance(patterns, Iterable) and not isinstance(patterns, str):
        given = list(patterns)
    if not given or not all(isinstance(pattern, str) for pattern in given):
        raise ConfigError(
            f"{argument}: expected the name of a {noun}, a pattern such as 'h2[*]', or a list of them, got "
            f"{reprlib.repr(patterns)}"
        )
    matches: list[str] = []
    for pattern in map(str, given):
        literal = pattern.replace("[", "[[]") if not pattern.startswith("[[]") else pattern
        fitting = [name for name in known if name == pattern or fnmatch.fnmatchcase(name, literal)]
        if not fitting:
            plain = pattern.replace("*", "")
            raise ConfigError(f"{argument}: no {noun} fits '{pattern}'; {nearest(plain, known, f'the {noun}s are')}")
        matches += [name for name in fitting if name not in matches]
    return matches
