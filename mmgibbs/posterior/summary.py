"""The summary of all parameters, and the file of their draws.

`draws.nc` is a NetCDF4 file with the groups /posterior and /sample_stats, which `xarray.open_datatree` and ArviZ open:
one variable per parameter with dims (chain, draw), one per term of chosen levels with dims (chain, draw, TERM_level,
TERM_component).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np

from mmgibbs.errors import ModelError
from mmgibbs.models.labels import find_name_clash, stored_dimensions, stored_name
from mmgibbs.posterior.diagnostics import COLUMNS, diagnose
from mmgibbs.posterior.draws_file import Group, Variable, write_groups


@dataclass(frozen=True)
class LevelDraws:
    """Draws of chosen levels of one term."""

    draws: np.ndarray  # (chains, draws, levels, k)
    levels: Sequence[str]  # original ids
    components: Sequence[str]  # (k,) 'direct:weaning_weight'


def summary_table(parameters: Mapping[str, np.ndarray], fixed: frozenset[str] = frozenset()) -> dict[str, np.ndarray]:
    """parameter, mean, median, sd, mcse, ess_bulk, ess_tail, rhat, hpd_low, hpd_high: an array each, NaN where unknown.

    parameters: name -> (chains, draws). `fixed`: names held at their value (sd 0, even where there is a single draw).
    """
    rows = [diagnose(draws, name in fixed) for name, draws in parameters.items()]
    table = {"parameter": np.array(list(parameters), dtype=object)}
    return table | {c: np.array([row[c] for row in rows], np.float64) for c in COLUMNS}


def write_draws(
    path: str | PathLike,
    parameters: Mapping[str, np.ndarray],
    levels: Mapping[str, LevelDraws] | None = None,
    sample_stats: Mapping[str, np.ndarray] | None = None,
    attributes: Mapping[str, Any] | None = None,
) -> None:
    """Write draws.nc. parameters, sample_stats: name -> (chains, draws); levels: term -> LevelDraws; attributes: of the
    whole file.

    A slash in a name, which NetCDF reads as a group, is written as '|', and a term 'chain' or 'draw' gets an
    underscore; `long_name` keeps the name as it is. Attributes that are neither text nor number are written as JSON.
    ModelError for two names that would be one then.
    """
    levels, sample_stats = levels or {}, sample_stats or {}
    twice = find_name_clash(parameters, levels) or find_name_clash(sample_stats)
    if twice:
        raise ModelError(
            f"draws.nc: {twice[0]} and {twice[1]} would both be called '{twice[2]}'; needed names that differ there too"
        )
    posterior = _variables(parameters)
    shape = _chains_and_draws(parameters, {k: v.draws for k, v in levels.items()}, sample_stats)
    labels: dict[str, Any] = {}
    for term, chosen in levels.items():
        name = stored_name(term)
        dims = stored_dimensions(term)
        posterior[name] = Variable(("chain", "draw", *dims), chosen.draws, {"long_name": term})
        labels |= {dims[0]: list(chosen.levels), dims[1]: list(chosen.components)}
    groups = {"posterior": Group(posterior, shape | labels), "sample_stats": Group(_variables(sample_stats), shape)}
    of_file = {
        k: v if type(v) in (str, int, float) else json.dumps(v, default=str) for k, v in (attributes or {}).items()
    }
    write_groups(path, groups, of_file)


def _chains_and_draws(*groups: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    shape = next((v.shape for group in groups for v in group.values()), (0, 0))
    return {"chain": np.arange(shape[0]), "draw": np.arange(shape[1])}


def _variables(named: Mapping[str, np.ndarray]) -> dict[str, Variable]:
    return {stored_name(name): Variable(("chain", "draw"), v, {"long_name": name}) for name, v in named.items()}
