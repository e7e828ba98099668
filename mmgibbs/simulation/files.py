"""Simulated records as files: tables, the true values behind them, an analysis file and a provenance note."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from mmgibbs.posterior.draw_names import RESIDUAL
from mmgibbs.posterior.model_parts import ResidualInfo, TermInfo, ThresholdInfo
from mmgibbs.posterior.parameters import named_parameters
from mmgibbs.simulation.data_folder import FILES_OF_TRAITS, new_data
from mmgibbs.simulation.herd import Herd
from mmgibbs.simulation.simulate import animal_ids, parent_ids, program

FILES = FILES_OF_TRAITS


@dataclass(frozen=True)
class Simulated:
    """Records of a herd and everything that is behind them."""

    what: str  # 'Simulated calvings; no animal in it ever lived.'
    herd: Herd
    values: dict[str, np.ndarray]  # column of true_values.csv -> (n,) true value of each animal, NaN for none
    animal: np.ndarray  # (r,) int32 the animal of each record
    records: dict[str, np.ndarray]  # the other columns of phenotypes.csv -> (r,), NaN or '' where missing
    liabilities: dict[str, np.ndarray]  # trait -> (r,) true liability, log time or log rate of each record
    parameters: dict[str, float]  # as summary.csv names them
    analysis: str  # the analysis file, with {name} in the place of a name
    notes: tuple[str, ...]  # what the columns mean, how the records came about


def write(simulated: Simulated, directory: str | Path, how: str, overwrite: bool = False) -> Path:
    """Write the files into a directory and return it; how: the command that made the data.

    ConfigError where the directory holds anything, unless `overwrite` (files of the same names are then replaced)."""
    with new_data(directory, how, overwrite) as target:
        _write_files(simulated, target, Path(directory).resolve().name, how)
    return Path(directory)


def _write_files(simulated: Simulated, target: Path, name: str, how: str) -> None:
    ids = animal_ids(simulated.herd)
    animal = {"animal": ids.gather(simulated.animal)}
    pedigree = {
        "animal": ids,
        "sire": parent_ids(ids, simulated.herd.sire),
        "dam": parent_ids(ids, simulated.herd.dam),
        "birth_year": simulated.herd.birth_year,
    }
    parameters = {"parameter": list(simulated.parameters), "value": list(simulated.parameters.values())}
    _table(pedigree).write_csv(target / "pedigree.csv")
    _table(animal | simulated.records).write_csv(target / "phenotypes.csv")
    _table({"animal": ids} | simulated.values).write_csv(target / "true_values.csv", float_precision=3)
    _table(animal | simulated.liabilities).write_csv(target / "true_liabilities.csv", float_precision=3)
    rounded = pl.col("value").round(6)
    _table(parameters).with_columns(rounded).write_csv(target / "true_parameters.csv")
    text = simulated.analysis.replace("{name}", name)
    (target / "analysis.yaml").write_text(text, encoding="utf-8")
    (target / "PROVENANCE.txt").write_text(_provenance(simulated, how), encoding="utf-8")


def _table(columns: dict) -> pl.DataFrame:
    """A frame with empty cells for NaN and ''."""
    return pl.DataFrame(columns, nan_to_null=True).with_columns(pl.col(pl.String).replace("", None))


def _provenance(simulated: Simulated, how: str) -> str:
    herd = simulated.herd
    lines = [
        simulated.what,
        f"Made by: {how}",
        f"Program: {program()}",
        f"{herd.n_animals} animals born {herd.birth_year.min()} to {herd.birth_year.max()}, {simulated.animal.size} "
        f"records of {np.unique(simulated.animal).size}.",
        "",
        "pedigree.csv           animal, sire, dam (empty: unknown), birth_year",
        "true_values.csv        true value of every animal",
        "true_liabilities.csv   liability (log time, log rate) of every record, its residual included",
        "true_parameters.csv    what is below, with the names of summary.csv",
        "analysis.yaml          an analysis of these files",
        *simulated.notes,
        "",
        "True parameters",
        *(f"{name:<66}{value:.6g}" for name, value in simulated.parameters.items()),
        "",
    ]
    return "\n".join(lines)


def true_parameters(
    terms: Sequence[tuple[TermInfo, np.ndarray]],
    traits: Sequence[str],
    R: np.ndarray,
    thresholds: Sequence[tuple[str, Sequence[str], np.ndarray]] = (),
) -> dict[str, float]:
    """Name -> value, as `named_parameters` has them; terms: (info, G); thresholds: (trait, labels, (K - 1,) with 0)."""
    matrices = {info.matrix: G[None, None] for info, G in terms} | {RESIDUAL: R[None, None]}
    matrices |= {f"threshold.{trait}": cuts[None, None, 1:] for trait, _, cuts in thresholds}
    ordinal = tuple(ThresholdInfo(t, tuple(labels), f"threshold.{t}") for t, labels, _ in thresholds if len(labels) > 2)
    residual = ResidualInfo(tuple(traits), thresholds=ordinal)
    named = named_parameters([info for info, _ in terms], matrices, residual).draws
    return {name: float(draws[0, 0]) for name, draws in named.items()}


def term(name: str, components: Sequence[str], traits: Sequence[str], *, genetic: bool = False) -> TermInfo:
    """TermInfo of components 'effect:trait', or 'trait' for an unnamed effect; maternal effects are those of dams."""
    pairs = [c.split(":") if ":" in c else ["", c] for c in components]
    effects = tuple(dict.fromkeys(effect for effect, _ in pairs))
    return TermInfo(
        name=name,
        components=tuple(components),
        effect_of_component=tuple(effects.index(effect) for effect, _ in pairs),
        trait_of_component=tuple(traits.index(trait) for _, trait in pairs),
        effects=effects,
        level_columns=tuple("dam" if effect == "maternal" else "animal" for effect in effects),
        regression=(False,) * len(effects),
        related=genetic,
        of_pedigree=genetic,
        matrix=name,
    )
