"""Ten generations of full-sib mating through the whole path, against the recursion of inbreeding and equations written
out here.
"""

import numpy as np
import polars as pl
import pytest
from reference import tabular

import mmgibbs

GENERATIONS, SIBS = 10, 3
SIGMA2_U, SIGMA2_E = 5.0, 7.0


def line():
    """Codes of sire and dam, sex; brother and sister number 0 and 1 of each generation are the parents of the next."""
    sire, dam, sex = [-1, -1], [-1, -1], ["m", "f"]
    parents = (0, 1)
    for _ in range(GENERATIONS):
        first = len(sire)
        for s in range(SIBS):
            sire.append(parents[0])
            dam.append(parents[1])
            sex.append("mf"[s % 2])
        parents = (first, first + 1)
    return np.array(sire), np.array(dam), np.array(sex)


def inbreeding_by_generation():
    """F_t = (1 + 2 F_t-1 + F_t-2) / 4 (Wright 1921); generation 0 and its progeny are not inbred."""
    F = [0.0, 0.0]
    for _ in range(GENERATIONS - 1):
        F.append((1 + 2 * F[-1] + F[-2]) / 4)
    return np.repeat(F[1:], SIBS)


def tables():
    """Ids that do not sort by age, rows in random order, one record for every animal but the founders."""
    rng = np.random.default_rng(91)
    sire, dam, sex = line()
    n = len(sire)
    ids = np.array([f"K{i}" for i in rng.permutation(n)])
    weight = rng.uniform(0.5, 2.0, n)
    y = 50 + 3 * (sex == "m") + np.cumsum(rng.standard_normal(n)) + rng.standard_normal(n)
    name = lambda code: ids[code] if code >= 0 else None
    rows = rng.permutation(n)
    pedigree = pl.DataFrame(
        {"animal": ids[rows], "sire": [name(sire[i]) for i in rows], "dam": [name(dam[i]) for i in rows]}
    )
    recorded = rows[rows > 1]
    records = pl.DataFrame(
        {"animal": ids[recorded], "sex": sex[recorded], "y": y[recorded], "precision": weight[recorded]}
    )
    return ids, sire, dam, sex, y, weight, records, pedigree


def run_blup(directory, inbreeding):
    *_, records, pedigree = tables()
    config = {
        "name": "line",
        "data": {"phenotypes": records, "pedigree": pedigree, "weights": "precision", "inbreeding": inbreeding},
        "traits": ["y"],
        "model": {"fixed": {"sex": {}}, "random": {"genetic": {"level": "animal", "relationship": "pedigree"}}},
        "variances": {"mode": "fixed", "genetic": {"start": SIGMA2_U}, "residual": {"start": SIGMA2_E}},
        "sampler": {"method": "blup"},
        "output": {"directory": str(directory)},
    }
    solutions = mmgibbs.run(config, progress=False).solutions.filter(pl.col("term") == "genetic")
    by_id = {row["level"]: row for row in solutions.iter_rows(named=True)}
    rows = [by_id[i] for i in tables()[0]]
    return {c: np.array([r[c] for r in rows], float) for c in ("mean", "pev", "reliability", "inbreeding")}


def exact(account):
    """Breeding values and PEV: (X'WX ...) by hand, A by the tabular method."""
    _, sire, dam, sex, y, weight, *_ = tables()
    n = len(sire)
    A = tabular.relationship(sire, dam, account)
    recorded = np.arange(2, n)
    design = np.zeros((recorded.size, 2 + n))
    design[np.arange(recorded.size), (sex[recorded] == "m").astype(int)] = 1.0
    design[np.arange(recorded.size), 2 + recorded] = 1.0
    C = (design.T * weight[recorded]) @ design / SIGMA2_E
    C[2:, 2:] += np.linalg.inv(A) / SIGMA2_U
    inverse = np.linalg.inv(C)
    return (inverse @ ((design.T * weight[recorded]) @ y[recorded] / SIGMA2_E))[2:], np.diag(inverse)[2:]


@pytest.mark.parametrize("inbreeding", ["account", "ignore"])
def test_blup_of_the_line(tmp_path, inbreeding):
    found = run_blup(tmp_path / "run", inbreeding)
    u, pev = exact(inbreeding == "account")
    F = inbreeding_by_generation() if inbreeding == "account" else np.zeros(GENERATIONS * SIBS)
    np.testing.assert_allclose(found["inbreeding"][2:], F, atol=1e-12)
    np.testing.assert_allclose(found["mean"], u, rtol=1e-8, atol=1e-8 * np.abs(u).max())
    np.testing.assert_allclose(found["pev"], pev, rtol=1e-8)
    np.testing.assert_allclose(found["reliability"][2:], 1 - pev[2:] / (SIGMA2_U * (1 + F)), rtol=1e-8)
    other, _ = exact(inbreeding != "account")
    assert np.abs(found["mean"] - other).max() > 0.01
