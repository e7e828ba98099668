"""Probabilities of records left out are calibrated where the model is the one that made the records.

z = sum (y - p)(p - p') / sqrt(sum p (1 - p) (p - p')^2) is standard normal if p are the probabilities of y. Spoilt
copies must fail: squared probabilities, and Phi of the mean liability in place of the mean of Phi.
"""

import numpy as np
import polars as pl
import pytest
from scipy.special import ndtr

from mmgibbs.validation import sampled
from mmgibbs.validation.make import validate
from mmgibbs.validation.page import calibration_curve
from mmgibbs.validation.plan import Plan

pytestmark = pytest.mark.slow
N, FOUNDERS, GENETIC = 2400, 240, 3.0


def population():
    """Binary records of a pedigree with a heritability of .75 on the liability."""
    rng = np.random.default_rng(11)
    sire = np.where(np.arange(N) < FOUNDERS, -1, rng.integers(0, FOUNDERS // 4, N))
    dam = np.where(np.arange(N) < FOUNDERS, -1, rng.integers(FOUNDERS // 4, FOUNDERS, N))
    u = np.zeros(N)
    for i in range(N):
        own = rng.standard_normal() * np.sqrt(GENETIC)
        u[i] = own if sire[i] < 0 else 0.5 * (u[sire[i]] + u[dam[i]]) + np.sqrt(0.5) * own
    alive = (0.6 + u + rng.standard_normal(N) > 0).astype(int)
    name = lambda code: [None if c < 0 else f"a{c}" for c in code]
    phenotypes = pl.DataFrame({"animal": [f"a{i}" for i in range(N)], "alive": alive})
    return phenotypes, pl.DataFrame({"id": phenotypes["animal"], "sire": name(sire), "dam": name(dam)})


def predictions(path):
    phenotypes, pedigree = population()
    config = {
        "name": "calibrated",
        "data": {"phenotypes": phenotypes, "pedigree": pedigree},
        "traits": {"alive": {"type": "binary"}},
        "model": {"random": {"genetic": {"level": "animal", "relationship": "pedigree"}}},
        "variances": {"mode": "fixed", "genetic": GENETIC, "residual": 1},
        "sampler": {"burn_in": 100, "samples": 500, "thin": 1, "seed": 2},
        "output": {"directory": str(path / "run")},
    }
    found = validate(config, Plan(method="kfold", folds=4), progress=False, report=False).predictions
    return found["predicted"].to_numpy(), found["observed"].to_numpy()


@pytest.fixture(scope="module")
def right(tmp_path_factory):
    return predictions(tmp_path_factory.mktemp("right"))


def z_of(p, y):
    weight = p - p.mean()
    return ((y - p) * weight).sum() / np.sqrt((p * (1 - p) * weight**2).sum())


def test_the_model_is_calibrated(right):
    p, y = right
    assert abs(z_of(p, y)) < 3.3
    curve = calibration_curve(p, y)
    outside = ((curve[:, 1] < curve[:, 2]) | (curve[:, 1] > curve[:, 3])).sum()
    assert len(curve) == 10 and outside <= 2


def test_squared_probabilities_are_noticed(right):
    p, y = right
    curve = calibration_curve(p**2, y)
    assert ((curve[:, 1] < curve[:, 2]) | (curve[:, 1] > curve[:, 3])).sum() >= 6


def test_phi_of_the_mean_is_noticed(tmp_path, monkeypatch):
    """Liabilities are averaged first: too sure of themselves."""
    monkeypatch.setattr(sampled.Predictions, "_of_draw", lambda self, eta, V, drawn: (eta[:, None], eta))

    def found(self):
        eta = self.sums[1] / self.n
        p = ndtr(eta)
        return sampled.LeftOut(self.records, np.stack([1 - p, p], axis=1), p, 0)

    monkeypatch.setattr(sampled.Predictions, "found", found)
    assert abs(z_of(*predictions(tmp_path))) > 5
