"""Breeding values of the candidates in a finished run: posterior means of a trait or an index, and kept draws."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from mmgibbs.errors import ConfigError, DataError, nearest, option_name
from mmgibbs.pedigree.parents import find_rows
from mmgibbs.pedigree.recode import IdIndex
from mmgibbs.report.finished import Finished
from mmgibbs.results.markers import GEBV, TOTAL
from mmgibbs.results.reading import RunFiles, refuse_outside_storage

ASKED = "contributions: "


@dataclass(frozen=True)
class Criterion:
    """A weighted sum of breeding values."""

    weights: Mapping[str, float]  # trait -> what one unit of it is worth
    components: Mapping[str, tuple[str, str]]  # trait -> term and effect of the solutions

    @property
    def words(self) -> str:
        """'weight', or '2 x milk - 0.5 x fertility'."""
        if list(self.weights.values()) == [1.0]:
            return next(iter(self.weights))
        parts = [f"{'-' if w < 0 else '+'} {abs(w):g} x {trait}" for trait, w in self.weights.items()]
        return " ".join(parts).removeprefix("+ ")


def choose_criterion(finished: Finished, trait: str | None, index: Mapping[str, float] | None) -> Criterion:
    """The trait or index that is named, else the only trait. ConfigError where that does not settle it."""
    components = _components(finished)
    if trait is not None and index:
        raise ConfigError(f"{ASKED}{option_name('trait')} cannot be combined with {option_name('index')}")
    if not components:
        raise ConfigError(
            f"{ASKED}'{finished.directory}' has no breeding values: expected a run with a random effect whose "
            "levels are animals (relationship: pedigree, genomic or single_step), or SNP effects"
        )
    if trait is None and not index and len(components) > 1:
        raise ConfigError(
            f"{ASKED}'{finished.directory}' has several traits ({', '.join(components)}); needed one of them "
            f"({option_name('trait')}) or their weights ({option_name('index')})"
        )
    weights = dict(index) if index else {trait or next(iter(components)): 1.0}
    for name in weights:
        if name not in components:
            raise ConfigError(f"{ASKED}'{name}' is no trait with breeding values; {nearest(name, components)}")
    if not any(weights.values()):
        raise ConfigError(f"{ASKED}{option_name('index')}: found weights of 0 alone, needed one that is not 0")
    return Criterion(weights, {name: components[name] for name in weights})


def _components(finished: Finished) -> dict[str, tuple[str, str]]:
    """Trait -> term and effect of its breeding values: totals with SNP effects, else those of the direct effect."""
    if finished.solutions is None:
        raise ConfigError(f"{ASKED}'{finished.directory}' holds a regression; needed the run of a mixed model")
    out: dict[str, tuple[str, str]] = {}
    rows = finished.solutions.lazy().select("term", "effect", "trait").unique(maintain_order=True).collect().rows()
    for wanted in (TOTAL, GEBV):
        for term, effect, trait in rows:
            if effect == wanted:
                out.setdefault(trait, (term, effect))
    direct = {of.get("direct_variance") for of in finished.record.get("variances_counted", {}).values()}
    for term, effect, trait in finished.components:
        if f"{term}.var[{_component(effect, trait)}]" in direct:
            out.setdefault(trait, (term, effect))
    return out


def _component(effect: str, trait: str) -> str:
    return f"{effect}:{trait}" if effect else trait


def evaluated_ids(finished: Finished, criterion: Criterion) -> pl.Series:
    """Ids with values of every trait of the criterion."""
    ids: pl.Series | None = None
    for trait, (term, effect) in criterion.components.items():
        levels = finished.component(term, effect, trait)["level"]
        ids = levels if ids is None else ids.filter(ids.is_in(levels.implode()))
    assert ids is not None
    return ids


def posterior_means(finished: Finished, criterion: Criterion, ids: pl.Series) -> np.ndarray:
    """(m,) of the criterion."""
    out = np.zeros(len(ids))
    for trait, (term, effect) in criterion.components.items():
        rows = finished.component(term, effect, trait)
        places = find_rows(IdIndex(rows["level"]), ids)
        out += criterion.weights[trait] * rows["mean"].to_numpy()[places]
    return out


@dataclass(frozen=True)
class KeptValues:
    """Draws of the criterion of some candidates."""

    places: np.ndarray  # (k,) of the candidates whose draws the run has kept
    draws: np.ndarray  # (draws, k)


def read_draws(finished: Finished, criterion: Criterion, ids: pl.Series, most: int) -> KeptValues | None:
    """Read at most so many draws, evenly spaced; None where the run has kept none of a term of the criterion."""
    path = RunFiles(finished.directory, ASKED).path("draws.nc")
    if path is None or any(effect in (TOTAL, GEBV) for _, effect in criterion.components.values()):
        return None
    refuse_outside_storage(path, ASKED)
    kept = np.ones(len(ids), bool)
    parts: list[tuple[float, np.ndarray, np.ndarray]] = []
    for trait, (term, effect) in criterion.components.items():
        levels, values = _read_term(path, term, _component(effect, trait), most)
        if values is None:
            return None
        places = find_rows(IdIndex(pl.Series(levels, dtype=pl.String)), ids)
        kept &= places >= 0
        parts.append((criterion.weights[trait], places, values))
    if not kept.any():
        return None
    draws = sum(weight * values[:, places[kept]] for weight, places, values in parts)
    return KeptValues(np.flatnonzero(kept), np.asarray(draws))


def _read_term(path: Path, term: str, component: str, most: int) -> tuple[list[str], np.ndarray | None]:
    """Ids of the kept levels of a term, and (draws, levels) of one of its components."""
    import h5netcdf

    try:
        with h5netcdf.File(path, "r", decode_vlen_strings=True) as file:
            posterior = file["posterior"].variables
            for name, variable in posterior.items():
                if (
                    str(variable.attrs.get("long_name", "")) != term
                    or len(variable.dimensions) != 4
                    or name in variable.dimensions
                ):
                    continue
                levels, components = (posterior[d][...].tolist() for d in variable.dimensions[2:])
                chains, draws = variable.shape[:2]
                step = max(1, -(-chains * draws // most))
                values = variable[:, step - 1 :: step, :, list(map(str, components)).index(component)]
                return [str(level) for level in levels], values.reshape(-1, len(levels))
    except (OSError, KeyError, ValueError, RuntimeError) as error:
        raise DataError(f"{ASKED}'{path}' cannot be read: {error}") from None
    return [], None
