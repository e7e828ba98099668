"""A small table with traits that are not normal, and what tests read of the runs on it."""

from __future__ import annotations

import numpy as np
import polars as pl


def tables(n=90):
    """Calves of known and unknown dams, a covariate, a count at an exposure; (phenotypes, pedigree)."""
    rng = np.random.default_rng(2)
    sire = [None if i < 20 else f"a{rng.integers(0, 10)}" for i in range(n)]
    dam = [None if i < 20 or i % 7 == 0 else f"a{rng.integers(10, 20)}" for i in range(n)]
    x = rng.normal(size=n)
    liability = 0.4 + 0.5 * x + rng.normal(size=n)
    phenotypes = pl.DataFrame(
        {
            "animal": [f"a{i}" for i in range(n)],
            "mother": dam,
            "herd": [f"h{i % 3}" for i in range(n)],
            "housing": [("indoor", "outdoor")[i % 4 == 0] for i in range(n)],
            "age": x,
            "alive": [None if i % 9 == 4 else int(liability[i] > 0) for i in range(n)],
            "score": 1 + np.searchsorted([0.0, 1.0], liability),
            "cases": rng.poisson(np.exp(0.3 * liability)),
            "months": rng.uniform(0.5, 2, n),
        }
    )
    return phenotypes, pl.DataFrame({"id": phenotypes["animal"], "sire": sire, "dam": dam})


def draws_of(result):
    found = result.draws["posterior"]
    return {name: found[name].to_numpy() for name in found.data_vars}


MATERNAL = {
    "genetic": {
        "relationship": "pedigree",
        "effects": {"direct": {"level": "animal"}, "maternal": {"level": "mother", "unknown_level": "omit"}},
    }
}
