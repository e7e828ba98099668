"""A small finished run, written from made-up numbers: what tests of the report page read."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl

from mmgibbs.models.relationships.identity import Identity
from mmgibbs.models.relationships.pedigree import Pedigree
from mmgibbs.models.relationships.user_inverse import SparseInverse
from mmgibbs.posterior.summary import LevelDraws, summary_table, write_draws
from mmgibbs.results.relationships import described
from mmgibbs.results.tables import SOLUTION_COLUMNS, summary_frame

TRAITS = ("birth", "weaning")
HERDS = ("north", "south", "<west & 'east'>")
YEARS = tuple(range(2000, 2008))


def analysis() -> dict:
    both = list(TRAITS)
    return {
        "name": "calves",
        "data": {"phenotypes": "/somewhere/calves.csv", "pedigree": "/somewhere/pedigree.csv", "inbreeding": "account"},
        "traits": {t: {"column": t} for t in TRAITS},
        "model": {
            "fixed": {"herd": {"column": "herd", "kind": "class", "traits": both, "prior": "flat"}},
            "random": {
                "genetic": {
                    "relationship": "pedigree",
                    "effects": {
                        "direct": {"level": "animal", "traits": both},
                        "maternal": {"level": "dam", "traits": ["weaning"]},
                    },
                },
                "litter": {"relationship": "identity", "level": "litter", "traits": ["birth"]},
            },
        },
        "variances": {
            "mode": "sample",
            "genetic": {"prior": "flat"},
            "litter": {"fixed": True},
            "residual": {"prior": {"df": 5, "scale": []}},
        },
        "sampler": {"method": "gibbs", "chains": 3, "burn_in": 100, "samples": 400, "thin": 10, "seed": 9},
    }


def describe_random(analysis: dict) -> dict[str, dict]:
    """Random term -> its relationships, as run.json has them: independent, by the pedigree, or by a file."""
    kinds, described_by_term = {"identity": Identity, "pedigree": Pedigree}, {}
    for name, random in (analysis.get("model", {}).get("random") or {}).items():
        written = str(random.get("relationship", "identity"))
        of_file = described(SparseInverse) | {"sentence": f"related by {written}"}
        described_by_term[name] = described(kinds[written]) if written in kinds else of_file
    return described_by_term


def record(**more) -> dict:
    more = {"analysis": analysis()} | more
    return {
        "name": "calves",
        "finished": "2026-01-02T03:04:05+00:00",
        "versions": {"python": "3.11.7", "mmgibbs": "0.1.0"},
        "relationships": describe_random(more["analysis"]),
        "seed": 9,
        "inbreeding": "account",
        "data": {
            "records": {"read": 120, "used": 118, "left_out": {"no observed trait": 2}},
            "observations": {"birth": 118, "weaning": 90},
            "animals": 160,
        },
        "equations": 700,
        "levels": {"herd": 3, "genetic": 160, "litter": 40},
        "device": "cpu",
        "method": "gibbs",
        "engine": "serial",
        "engine_chosen_because": "auto: 700 equations, fewer than 50,000",
        "kept_draws_per_chain": 40,
        "seconds": {"sampling": 12.5},
        "warnings": [],
        "notes": ["herd, birth: 1 level set to 0 (no records): south"],
        "files": ["run.json", "solutions.parquet"],
    } | more


def draws(mixed: bool = True, n: int = 400) -> dict[str, np.ndarray]:
    random = np.random.default_rng(4)
    apart = np.array([[0.0], [0.0], [0.0 if mixed else 8.0]])
    at = {
        "genetic.var[direct:weaning]": (90.0, 9.0),
        "genetic.corr[direct:birth,direct:weaning]": (0.4, 0.05),
        "h2[birth]": (0.3, 0.02),
        "h2[weaning]": (0.25, 0.03),
    }
    return {
        name: mean + sd * (random.normal(size=(3, n)) + (apart if name.startswith("genetic.var") else 0))
        for name, (mean, sd) in at.items()
    }


def solutions(animals: int = 160, seed: int = 5) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    frames = []
    held = np.array([0, 1, 0])
    for trait in TRAITS:
        value = random.normal(200, 5, 3)
        frames.append(_frame("herd", "", trait, HERDS, np.where(held, 0, value), np.where(held, 0.0, 1.5)))
    for effect, trait in (("direct", "birth"), ("direct", "weaning"), ("maternal", "weaning")):
        sd = random.uniform(1, 2, animals)
        extra = {
            "pev": sd**2,
            "reliability": 1 - sd**2 / 9,
            "accuracy": np.sqrt(1 - sd**2 / 9),
            "inbreeding": random.uniform(0, 0.1, animals),
        }
        frames.append(_frame("genetic", effect, trait, ids(animals), random.normal(0, 4, animals), sd, **extra))
    frames.append(
        _frame(
            "litter",
            "",
            "birth",
            [f"L{i}" for i in range(40)],
            random.normal(0, 1, 40),
            np.full(40, 0.8),
            reliability=np.full(40, 0.36),
        )
    )
    return pl.concat(frames)


def ids(animals: int) -> list[str]:
    return [f"cow-{i:04d}" for i in range(animals)]


def _frame(term, effect, trait, levels, mean, sd, **extra) -> pl.DataFrame:
    n = len(mean)
    columns = {
        "term": [term] * n,
        "effect": [effect] * n,
        "trait": [trait] * n,
        "level": list(levels),
        "mean": mean,
        "sd": sd,
    }
    unknown = (
        {c: np.full(n, np.nan) for c in SOLUTION_COLUMNS[6:]}
        | {"mcse": np.full(n, 0.05), "ess": np.full(n, 900.0)}
        | extra
    )
    frame = pl.DataFrame(columns | unknown)
    return frame.with_columns(pl.col(pl.Float64).fill_nan(None))


def animals_frame(animals: int = 160) -> pl.DataFrame:
    names = ids(animals)
    parents = [None if i < 20 else names[i // 2] for i in range(animals)]
    return pl.DataFrame(
        {
            "id": names,
            "sire": parents,
            "dam": [None] * animals,
            "birth": [float(YEARS[i * len(YEARS) // animals]) for i in range(animals)],
        },
        schema_overrides={"dam": pl.String},
    )


def write_run(folder: Path, mixed: bool = True, trend: bool = True, animals: int = 160, seed: int = 5, **more) -> Path:
    """The files that a report reads. more: keys of run.json."""
    folder.mkdir()
    parameters = draws(mixed) | {"litter.var[birth]": np.full((3, 400), 2.0)}
    levels = {}
    if trend:
        years = np.linspace(0, 3, len(YEARS))[:, None] * np.array([1.0, 10.0, 0.0])
        noise = np.random.default_rng(6).normal(0, 0.1, (3, 400, len(YEARS), 3))
        levels = {
            "trend[genetic]": LevelDraws(
                years + noise, [str(y) for y in YEARS], ["direct:birth", "direct:weaning", "maternal:weaning"]
            )
        }
    write_draws(folder / "draws.nc", parameters, levels)
    summary_frame(summary_table(parameters, frozenset({"litter.var[birth]"}))).write_parquet(folder / "summary.parquet")
    solutions(animals, seed).write_parquet(folder / "solutions.parquet")
    animals_frame(animals).write_parquet(folder / "animals.parquet")
    (folder / "run.json").write_text(json.dumps(record(**more)), encoding="utf-8")
    return folder
