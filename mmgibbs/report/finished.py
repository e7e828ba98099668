"""A finished run as its folder describes it: all that the report is made from."""

from __future__ import annotations

import math
import os
import zipfile
import zlib
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from mmgibbs.errors import ConfigError
from mmgibbs.results.markers import TOTAL
from mmgibbs.results.reading import RunFiles, refuse_outside_storage
from mmgibbs.results.relationships import describe_relationships

OF_ANIMALS = ("A", "G", "D", "H")  # symbols of relationships by a pedigree, genotypes or both
ASKED = "report: "  # begins its messages
MOST_DRAWS = 50_000_000  # of one array of parameters of a regression that is read, 0.4 GB


@dataclass(frozen=True)
class Trend:
    """Draws of the mean of each birth year of one term, 'trend[TERM]' in draws.nc."""

    years: np.ndarray  # (years,) int64
    components: list[str]  # (k,) 'direct:weaning_weight'
    draws: np.ndarray  # (chains, draws, years, k)


@dataclass(frozen=True)
class Finished:
    """Results of a run, as read from its folder."""

    directory: Path
    record: dict[str, Any]  # run.json
    summary: pl.DataFrame
    solutions: pl.DataFrame | None = None  # None for a regression
    animals: pl.DataFrame | None = None  # id, sire, dam, birth; None without a pedigree
    decisions: pl.DataFrame | None = None  # candidates for selection; None where none were asked for
    response: pl.DataFrame | None = None
    markers: pl.DataFrame | None = None  # SNPs with their effects; None without SNP effects
    windows: pl.DataFrame | None = None  # of neighbouring SNPs; None where none were asked for
    chromosomes: pl.DataFrame | None = None
    marker_draws: int | None = None  # of SNP effects, of all chains; None where none were kept or their file is gone
    genotyped: pl.DataFrame | None = None  # principal components; None without relationships from genotypes
    relationship_sample: pl.DataFrame | None = None  # of some of them
    means: pl.DataFrame | None = None  # adjusted means; None where none were asked for
    factor_scores: pl.DataFrame | None = None  # of levels of terms with factors; None without any
    plots: pl.DataFrame | None = None  # trends of plots; None without trials in rows and columns
    variogram: pl.DataFrame | None = None  # of trend and error of these plots
    smooths: pl.DataFrame | None = None  # curves over covariates; None without any
    predicted: pl.DataFrame | None = None  # classes of traits that are not normal; None where there is no such trait
    draws: dict[str, np.ndarray] = field(default_factory=dict)  # parameter -> (chains, draws)
    trends: dict[str, Trend] = field(default_factory=dict)  # by term

    @property
    def name(self) -> str:
        return str(self.record.get("name", self.directory.name))

    @property
    def relationships(self) -> dict[str, dict[str, Any]]:
        """Random term -> how its levels are related, in words (see results/relationships.py)."""
        return describe_relationships(self.record)

    @property
    def related(self) -> set[str]:
        """Random terms whose levels are related."""
        return {term for term, kind in self.relationships.items() if kind["related"]}

    @cached_property
    def polygenic(self) -> set[tuple[str, str, str]]:
        """(term, effect, trait) of values that SNP effects complete: the solutions have their sums as well."""
        if self.solutions is None:
            return set()
        sums = self.solutions.lazy().filter(effect=TOTAL).select("term", "trait").unique().collect().rows()
        model = self.record["analysis"]["model"]
        components = set()
        for names, trait in sums:
            term, *snps = names.split("+")
            effects = model["random"][term].get("effects") or {"": model["random"][term]}
            level = model["markers"][snps[0]]["level"]
            components |= {
                (term, effect, trait) for effect, description in effects.items() if description.get("level") == level
            }
        return components

    @property
    def solved(self) -> bool:
        """Effects are solutions with standard errors (BLUP, REML); else means of draws with their deviations."""
        return self.record.get("method") in ("blup", "reml")

    def value_name(self, term: str, effect: str, trait: str) -> str:
        """Name the value of a level of a related component.

        It is a breeding value, its polygenic part, or, by random regression, a coefficient of its curve.
        """
        curves = self.record.get("analysis", {}).get("model", {}).get("random", {}).get(term, {}).get("effects") or {}
        of = curves.get(effect.rpartition(".")[0]) or {}  # 'rr' of rr.0
        if of.get("legendre") or of.get("covariates"):
            return "coefficient"
        return "polygenic value" if (term, effect, trait) in self.polygenic else "breeding value"

    def level_names(self, term: str) -> tuple[str, str]:
        """(what a level of a related term is, head of a column of them): ('animal', 'Animal') where a pedigree or
        genotypes relate them, else ('level', the column that they are in).
        """
        if self.relationships[term]["symbol"] in OF_ANIMALS:
            return "animal", "Animal"
        random = self.record.get("analysis", {}).get("model", {}).get("random", {}).get(term, {})
        column = str(random.get("level") or "level")  # effects with names may have a column each
        return "level", column[:1].upper() + column[1:]

    @cached_property
    def components(self) -> list[tuple[str, str, str]]:
        """(term, effect, trait) of every random component in the order of the solutions, without groups."""
        if self.solutions is None:
            return []
        kept = self.solutions.lazy().filter(pl.col("term").is_in(list(self.relationships)), pl.col("effect") != "group")
        return kept.select("term", "effect", "trait").unique(maintain_order=True).collect().rows()

    def component(self, term: str, effect: str, trait: str) -> pl.DataFrame:
        """The solutions of one component, in the order of the file."""
        assert self.solutions is not None, "a regression has no components"
        return self.solutions.filter(term=term, effect=effect, trait=trait)


def read_finished(directory: str | os.PathLike, solutions: pl.DataFrame | None = None) -> Finished:
    """The finished run in `directory`; ConfigError where it is none, or one of its files is damaged or missing.

    solutions: the same table as in its file, where it is in memory: it may have gigabytes.
    """
    path = Path(directory)
    for name in ("run.json", "summary.parquet"):
        if not (path / name).is_file():
            raise ConfigError(
                f"{ASKED}'{directory}' is not the folder of a finished run: found no {name}; needed what `mmgibbs "
                "run` writes"
            )
    files = RunFiles(path, ASKED)
    table = lambda name: files.table_if_any(f"{name}.parquet")
    path_of_draws = files.path("draws.nc")
    draws, trends = _draws(path_of_draws) if path_of_draws is not None else ({}, {})
    return Finished(
        directory=path.resolve(),
        record=files.record,
        summary=files.table("summary.parquet"),
        solutions=table("solutions") if solutions is None else solutions,
        animals=table("animals"),
        decisions=table("decisions"),
        response=table("response"),
        markers=table("markers"),
        windows=table("windows"),
        chromosomes=files.table_if_any("chromosomes.csv"),
        marker_draws=_marker_draws(files),
        genotyped=table("genotyped"),
        relationship_sample=table("relationship_sample"),
        means=table("means"),
        factor_scores=table("factor_scores"),
        plots=table("field"),
        variogram=table("variogram"),
        smooths=table("smooths"),
        predicted=table("predicted_classes"),
        draws=draws,
        trends=trends,
    )


def _marker_draws(files: RunFiles) -> int | None:
    """Draws of the SNP effects that the run kept, of all chains; None where it kept none.

    Only their numbers are read: the effects themselves may take gigabytes.
    """
    path = files.path("marker_draws.npz", content=False)
    chains = files.record.get("analysis", {}).get("sampler", {}).get("chains")
    if path is None or not chains:
        return None
    try:
        with np.load(path, allow_pickle=False) as file:
            return len(file["number"]) * chains
    except (OSError, ValueError, KeyError, EOFError, NotImplementedError, zipfile.BadZipFile, zlib.error) as error:
        raise ConfigError(f"{ASKED}'{path}' cannot be read: {error}") from None


def _elements(name: str, values: np.ndarray, labels: list[list]) -> dict[str, np.ndarray]:
    """An array such as beta (chain, draw, predictor, contrast) -> 'beta[predictor,contrast]' -> (chains, draws), named
    as in the summary."""
    flat = values.reshape(*values.shape[:2], -1)
    return {
        f"{name}[{','.join(map(str, labels_of_element))}]": flat[..., i]
        for i, labels_of_element in enumerate(product(*labels))
    }


def _draws(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Trend]]:
    """({parameter: (chains, draws)}, trends); draws of chosen levels are left alone."""
    refuse_outside_storage(path, ASKED)
    import h5netcdf  # xarray, which reads the same, takes a second longer to import

    parameters, trends = {}, {}
    try:
        with h5netcdf.File(path, "r", decode_vlen_strings=True) as file:
            posterior = file["posterior"].variables
            labels = lambda variable: [posterior[d][...].tolist() for d in variable.dimensions[2:]]
            for name, variable in posterior.items():
                if name in variable.dimensions:  # its labels
                    continue
                known = str(variable.attrs.get("long_name", name))
                if variable.dimensions == ("chain", "draw"):
                    parameters[known] = variable[...]
                elif "long_name" not in variable.attrs:  # not of a term: an array of parameters of a regression
                    if math.prod(variable.shape) <= MOST_DRAWS:
                        parameters |= _elements(name, variable[...], labels(variable))
                elif known.startswith("trend["):
                    years, components = labels(variable)
                    trends[known[6:-1]] = Trend(np.array(years, np.int64), [str(c) for c in components], variable[...])
    except (OSError, KeyError, ValueError, RuntimeError) as error:
        raise ConfigError(f"{ASKED}'{path}' cannot be read: {error}") from None
    return parameters, trends
