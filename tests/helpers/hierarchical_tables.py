"""Small tables of grouped records, and samplers of the hierarchical model for them."""

import numpy as np

from mmgibbs.regressions.arrays.base import Host
from mmgibbs.regressions.hierarchical.slice import HierarchicalSliceOptions, HierarchicalSliceSampler
from mmgibbs.regressions.predictors import read_predictors
from mmgibbs.regressions.protocol import Keys, RegressionData

KEYS = Keys(5, (0, 1))


def table(rng, sizes=(1, 7, 40, 3, 19), p=2, response="binary", dtype=np.float64):
    """Predictors, response and groups in random order."""
    groups = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    X = rng.standard_normal((len(groups), p)) * 2 + 1
    X = np.round(10 * X).astype(dtype) if np.dtype(dtype).kind in "iu" else X.astype(dtype)
    kinds = {
        "binary": lambda n: rng.integers(0, 2, n),
        "three": lambda n: rng.integers(0, 3, n),
        "counts": lambda n: rng.integers(0, 4, (n, 3)) + 1,
        "poisson": lambda n: rng.poisson(2.0, n),
    }
    return X, kinds[response](len(groups)), groups


def sampler(X, y, groups, z=None, standardise=True, threads=1, **options):
    if "family" not in options and y.ndim == 1 and y.max() > 2:
        options["family"] = "poisson"
    options.setdefault("method", "slice")  # draws of tests do not follow a default
    data = RegressionData(read_predictors(X, standardise=standardise), y, "y", groups, z)
    return HierarchicalSliceSampler(data, HierarchicalSliceOptions(**options), Host(threads))


def run(model, sweeps=4, keys=KEYS):
    state = model.start(keys)
    for sweep in range(1, sweeps + 1):
        state = model.step(state, sweep, keys)
    return state
