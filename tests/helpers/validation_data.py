"""One trait of simulated beef cattle, in frames: what validation is tried on. The variances are the true ones."""

from __future__ import annotations

import numpy as np
import polars as pl

from mmgibbs.simulation.simulate import GENETIC, RESIDUAL, Beef, animal_ids, simulate_beef

G, R = float(GENETIC[0, 0]), float(RESIDUAL[0, 0])  # birth weight


def beef_frames(beef: Beef) -> tuple[pl.DataFrame, pl.DataFrame]:
    """(phenotypes, pedigree) of the animals weighed at birth."""
    ids = animal_ids(beef)
    weighed = np.flatnonzero(~np.isnan(beef.y[:, 0]))
    animal = beef.animal[weighed]
    phenotypes = pl.DataFrame(
        {
            "animal": ids.gather(animal),
            "herd": beef.herd[animal],
            "year": beef.birth_year[animal],
            "sex": beef.sex[animal],
            "dam_age": beef.dam_age_class[weighed],
            "birth_weight": beef.y[weighed, 0],
        }
    ).with_columns(group=pl.format("{}-{}", "herd", "year"))
    parents = {}
    for name, code in (("sire", beef.sire), ("dam", beef.dam)):
        known = pl.Series(code).to_frame("c").select(pl.when(pl.col("c") >= 0).then("c"))["c"]
        parents[name] = ids.gather(known)
    return phenotypes, pl.DataFrame({"animal": ids, **parents, "birth": beef.birth_year})


def analysis_of(
    phenotypes: pl.DataFrame, pedigree: pl.DataFrame, G: float = G, R: float = R, group: str = "group"
) -> dict:
    return {
        "name": "birth",
        "data": {"phenotypes": phenotypes, "pedigree": pedigree},
        "traits": ["birth_weight"],
        "model": {"fixed": {group: {}, "sex": {}, "dam_age": {}}, "random": {"animal": {"relationship": "pedigree"}}},
        "variances": {"animal": G, "residual": R},
    }


def small_beef(n: int, seed: int, years: int) -> Beef:
    return simulate_beef(n, seed, years)
