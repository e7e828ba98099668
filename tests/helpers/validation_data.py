"""One trait of simulated beef cattle, in frames: what validation is tried on. The variances are the true ones."""

from __future__ import annotations

import numpy as np
import polars as pl

from mmgibbs.simulation.simulate import GENETIC, RESIDUAL, Beef, animal_ids, simulate_beef

G, R = float(GENETIC[0, 0]), float(RESIDUAL[0, 0])  # birth weight

N, FOUNDERS, GENETIC_OF_LIABILITY = 2400, 240, 3.0  # of binary records


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


def binary_population() -> tuple[pl.DataFrame, pl.DataFrame]:
    """Binary records of a pedigree with a heritability of .75 on the liability."""
    rng = np.random.default_rng(11)
    sire = np.where(np.arange(N) < FOUNDERS, -1, rng.integers(0, FOUNDERS // 4, N))
    dam = np.where(np.arange(N) < FOUNDERS, -1, rng.integers(FOUNDERS // 4, FOUNDERS, N))
    u = np.zeros(N)
    for i in range(N):
        own = rng.standard_normal() * np.sqrt(GENETIC_OF_LIABILITY)
        u[i] = own if sire[i] < 0 else 0.5 * (u[sire[i]] + u[dam[i]]) + np.sqrt(0.5) * own
    alive = (0.6 + u + rng.standard_normal(N) > 0).astype(int)
    name = lambda code: [None if c < 0 else f"a{c}" for c in code]
    phenotypes = pl.DataFrame({"animal": [f"a{i}" for i in range(N)], "alive": alive})
    return phenotypes, pl.DataFrame({"id": phenotypes["animal"], "sire": name(sire), "dam": name(dam)})


def binary_analysis(phenotypes: pl.DataFrame, pedigree: pl.DataFrame, directory: str, **sampler: int) -> dict:
    """At the variances that made the records of `binary_population`."""
    return {
        "name": "binary",
        "data": {"phenotypes": phenotypes, "pedigree": pedigree},
        "traits": {"alive": {"type": "binary"}},
        "model": {"random": {"genetic": {"level": "animal", "relationship": "pedigree"}}},
        "variances": {"mode": "fixed", "genetic": GENETIC_OF_LIABILITY, "residual": 1},
        "sampler": {"thin": 1, "seed": 2} | sampler,
        "output": {"directory": directory},
    }
