"""Incidences and heritabilities of whole runs against the formulas in plain loops over the records of the table."""

import numpy as np
import polars as pl
import pytest
from helpers.other_traits import MATERNAL, draws_of, tables
from scipy import stats

import mmgibbs


def run(path, traits, random, fixed, variances=None, save=()):
    phenotypes, pedigree = tables()
    config = {
        "name": "observed",
        "data": {"phenotypes": phenotypes, "pedigree": pedigree},
        "traits": traits,
        "model": {"fixed": fixed, "random": random},
        "variances": variances or {},
        "sampler": {"chains": 2, "burn_in": 10, "samples": 15, "thin": 1, "seed": 4},
        "output": {"directory": str(path), "save_levels": list(save)},
    }
    return mmgibbs.run(config, overwrite=True, progress=False)


CURVE = {"level": "animal", "legendre": {"column": "age", "degree": 1}}


def test_maternal_effects_and_covariates(tmp_path):
    """Records whose dam is not known have no maternal effect, and a smaller variance."""
    found = run(
        tmp_path / "run", {"alive": {"type": "binary"}}, MATERNAL, {"herd": {}, "age": {"kind": "covariate"}},
        save=["intercept", "herd", "age"],
    )  # fmt: skip
    d, table = draws_of(found), tables()[0].filter(pl.col("alive").is_not_null())
    herd = table["herd"].str.slice(1).cast(int).to_numpy()
    eta = d["intercept"][..., 0] + d["herd"][..., herd, 0] + d["age"][..., 0] * table["age"].to_numpy()
    direct, maternal = d["genetic.var[direct:alive]"], d["genetic.var[maternal:alive]"]
    cov = d["genetic.cov[direct:alive,maternal:alive]"]
    V = direct[..., None] + 1 + np.where(table["mother"].is_null(), 0, (maternal + cov)[..., None])
    p, psi = stats.norm.cdf(eta / np.sqrt(V)).mean(-1), (stats.norm.pdf(eta / np.sqrt(V)) / np.sqrt(V)).mean(-1)
    np.testing.assert_allclose(d["incidence[alive]"], p, rtol=1e-9)
    np.testing.assert_allclose(d["h2_observed[alive]"], psi**2 * direct / (p * (1 - p)), rtol=1e-9)
    row = found.summary.filter(parameter="h2_observed[alive]").to_dicts()[0]
    assert row["mean"] == pytest.approx(d["h2_observed[alive]"].mean())
    assert row["sd"] > 0 and row["hpd_low"] < row["mean"] < row["hpd_high"]
    assert row["rhat"] > 0 and row["ess_bulk"] > 0


def test_scores(tmp_path):
    found = run(tmp_path / "run", {"score": {"type": "ordinal"}},
                {"genetic": {"level": "animal", "relationship": "pedigree"}}, {}, save=["intercept"])  # fmt: skip
    d = draws_of(found)
    V, t = d["genetic.var[score]"] + 1, d["threshold[score:2|3]"]
    mu, sd = d["intercept"][..., 0, 0], np.sqrt(V)
    below = [0 * mu, stats.norm.cdf(-mu / sd), stats.norm.cdf((t - mu) / sd), 1 + 0 * mu]
    density = [0 * mu, stats.norm.pdf(-mu / sd), stats.norm.pdf((t - mu) / sd), 0 * mu]
    p, psi = np.diff(below, axis=0), -np.diff(density, axis=0) / sd
    for k in range(3):
        np.testing.assert_allclose(d[f"incidence[score:{k + 1}]"], p[k], rtol=1e-9)
        np.testing.assert_allclose(d[f"h2_observed[score:{k + 1}]"], psi[k] ** 2 * (V - 1) / (p[k] * (1 - p[k])))
    s = np.arange(1, 4)[:, None, None]
    of_score = (s * psi).sum(0) ** 2 * (V - 1) / ((s**2 * p).sum(0) - (s * p).sum(0) ** 2)
    np.testing.assert_allclose(d["h2_observed[score]"], of_score, rtol=1e-9)


def test_counts_of_residual_classes_at_their_exposures(tmp_path):
    found = run(
        tmp_path / "run", {"cases": {"type": "count", "exposure": "months"}},
        {"genetic": {"level": "animal", "relationship": "pedigree"}}, {"herd": {}},
        {"residual": {"by": "housing"}, "genetic": {"prior": {"df": 5, "scale": 0.5}}}, save=["herd"],
    )  # fmt: skip
    d, table = draws_of(found), tables()[0]
    for name in ("indoor", "outdoor"):
        own = table.filter(housing=name)
        eta = d["herd"][..., own["herd"].str.slice(1).cast(int).to_numpy(), 0] + np.log(own["months"].to_numpy())
        genetic = d["genetic.var[cases]"]
        V = (genetic + d[f"residual.var[cases|{name}]"])[..., None]
        m = np.exp(eta + V / 2).mean(-1)
        exact = m**2 * genetic / (np.exp(2 * eta + 2 * V).mean(-1) - m**2 + m)
        np.testing.assert_allclose(d[f"h2_observed[cases|{name}]"], exact, rtol=1e-9)


def test_random_regressions_have_incidences_of_records_and_no_heritability(tmp_path):
    """V_i = z' G z + 1 at the age of each record."""
    found = run(
        tmp_path / "run", {"alive": {"type": "binary"}},
        {"rr": {"relationship": "pedigree", "effects": {"u": CURVE}}}, {},
        save=["intercept"],
    )  # fmt: skip
    d, table = draws_of(found), tables()[0]
    age = table["age"].to_numpy()
    used = table["alive"].is_not_null().to_numpy()
    q = 2 * (age - age[used].min()) / np.ptp(age[used]) - 1
    z = np.stack([np.full(len(q), np.sqrt(0.5)), np.sqrt(1.5) * q])[:, used]
    G = np.stack([[d["rr.var[u.0:alive]"], d["rr.cov[u.0:alive,u.1:alive]"]],
                  [d["rr.cov[u.0:alive,u.1:alive]"], d["rr.var[u.1:alive]"]]])  # fmt: skip
    V = 1 + np.einsum("an,abcd,bn->cdn", z, G, z)
    p = stats.norm.cdf(d["intercept"][..., 0] / np.sqrt(V)).mean(-1)
    np.testing.assert_allclose(d["incidence[alive]"], p, rtol=1e-9)
    assert "h2_observed[alive]" not in d
