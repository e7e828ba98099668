"""Strains and hybrids of lines whose F is near 1: A is nearly singular, V = A sigma2_a + I sigma2_e is not."""

import numpy as np
import polars as pl
import pytest
from reference.blup import blup
from reference.tabular import relationship

import mmgibbs
from mmgibbs.errors import ConfigError

GENETIC, RESIDUAL = 0.5, 1.0


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def strain(generations):
    """Brother-sister mating: (ids, sire, dam) with codes, -1 unknown."""
    ids, sire, dam = ["m0", "f0"], [-1, -1], [-1, -1]
    for t in range(1, generations):
        ids += [f"m{t}", f"f{t}"]
        sire += [2 * t - 2] * 2
        dam += [2 * t - 1] * 2
    return ids, np.array(sire), np.array(dam)


def tables(ids, sire, dam, recorded, seed=3):
    names = np.array([*ids, None], object)
    pedigree = pl.DataFrame({"id": ids, "sire": list(names[sire]), "dam": list(names[dam])})
    y = 10 + np.random.default_rng(seed).normal(size=len(recorded))
    return pedigree, pl.DataFrame({"id": [ids[i] for i in recorded], "y": y})


def analysis(pedigree, records, method="blup", mode="fixed", relationship="pedigree", **sampler):
    return {
        "data": {"phenotypes": records, "pedigree": pedigree},
        "traits": ["y"],
        "model": {"random": {"genetic": {"level": "id", "relationship": relationship}}},
        "variances": {"mode": mode, "genetic": GENETIC, "residual": RESIDUAL},
        "sampler": {"method": method, **sampler},
    }


def effects(run, ids):
    solved = pl.DataFrame({"level": ids}).join(run.solutions.filter(term="genetic"), on="level", maintain_order="left")
    return solved["mean"].to_numpy(), solved["sd"].to_numpy()


@pytest.mark.parametrize("generations", [80, 250])
def test_a_strain_has_its_exact_blup(generations):
    """1 - F is 1e-7 after 80 generations, 1e-23 after 250."""
    ids, sire, dam = strain(generations)
    recorded = np.repeat(np.arange(0, len(ids), 7), 2)
    pedigree, records = tables(ids, sire, dam, recorded)
    right, pev = blup(GENETIC * relationship(sire, dam), recorded, records["y"].to_numpy(), RESIDUAL)
    run = mmgibbs.run(analysis(pedigree, records), progress=False)
    np.testing.assert_allclose(effects(run, ids), (right, np.sqrt(pev)), atol=2e-6)


def lines_and_hybrids(selfings):
    """(pedigree, records, A) of six lines after so many selfings, and all of their hybrids."""
    lines = [f"L{i}" for i in range(6)]
    pairs = [(i, j) for i in range(6) for j in range(i)]
    ids = [*lines, *(f"H{i}x{j}" for i, j in pairs)]
    sire, dam = (np.array([-1] * 6 + [pair[k] for pair in pairs]) for k in (0, 1))
    recorded = np.repeat(np.arange(6, len(ids)), 2)
    pedigree, records = tables(ids, sire, dam, recorded)
    L = np.vstack([np.eye(6), [np.eye(6)[i] / 2 + np.eye(6)[j] / 2 for i, j in pairs]])
    A = L @ L.T * (2 - 0.5**selfings)
    A[np.arange(6, len(ids)), np.arange(6, len(ids))] = 1.0
    return pedigree.with_columns(g=pl.Series([selfings] * 6 + [0] * len(pairs))), records, A, ids, recorded


@pytest.mark.parametrize("selfings", [20, 60])
def test_hybrids_of_lines(selfings):
    pedigree, records, A, ids, recorded = lines_and_hybrids(selfings)
    right, pev = blup(GENETIC * A, recorded, records["y"].to_numpy(), RESIDUAL)
    run = mmgibbs.run(analysis(pedigree, records, relationship={"kind": "pedigree", "selfing": "g"}), progress=False)
    np.testing.assert_allclose(effects(run, ids), (right, np.sqrt(pev)), atol=1e-6)


def test_reml_of_a_strain_is_that_of_the_dense_likelihood():
    """The maximum of the likelihood of V, by Nelder and Mead."""
    ids, sire, dam = strain(120)
    recorded = np.repeat(np.arange(0, len(ids), 4), 3)
    pedigree, _ = tables(ids, sire, dam, recorded)
    A, rng = relationship(sire, dam), np.random.default_rng(5)
    u = np.linalg.cholesky(A + 1e-9 * np.eye(len(A))) @ rng.normal(size=len(A))
    y = 3 * u[recorded] + rng.normal(size=recorded.size)
    records = pl.DataFrame({"id": [ids[i] for i in recorded], "y": y})
    run = mmgibbs.run(analysis(pedigree, records, "reml", "sample"), progress=False)
    estimates = dict(run.summary.select("parameter", "mean").iter_rows())
    found = np.array([estimates["genetic.var[y]"], estimates["residual.var[y]"]])

    def minus_log_likelihood(log_variances):
        genetic, residual = np.exp(log_variances)
        V = genetic * A[np.ix_(recorded, recorded)] + residual * np.eye(y.size)
        one = np.ones((y.size, 1))
        information = one.T @ np.linalg.solve(V, one)
        b = np.linalg.solve(information, one.T @ np.linalg.solve(V, y))
        r = y - one @ b
        return (np.linalg.slogdet(V)[1] + np.linalg.slogdet(information)[1] + r @ np.linalg.solve(V, r)) / 2

    from scipy.optimize import minimize

    best = minimize(
        minus_log_likelihood, np.log([5.0, 1.0]), method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-10}
    )
    np.testing.assert_allclose(found, np.exp(best.x), rtol=1e-3)


def test_gibbs_draws_lines_and_hybrids_at_once():
    """Given the variances, effects are drawn exactly, so that few draws agree with the BLUP at their mean."""
    pedigree, records, A, ids, recorded = lines_and_hybrids(20)
    source = analysis(
        pedigree, records, "gibbs", "sample", {"kind": "pedigree", "selfing": "g"},
        samples=4000, thin=1, burn_in=500, chains=1, seed=1,
    )  # fmt: skip
    source["variances"] = {
        "genetic": {"start": GENETIC, "prior": {"df": 1e5, "scale": 1e5 * GENETIC}},
        "residual": {"start": RESIDUAL, "prior": {"df": 1e5, "scale": 1e5 * RESIDUAL}},
    }
    run = mmgibbs.run(source, progress=False)
    assert run.info["engine"] == "marginal"
    mean, pev = blup(GENETIC * A, recorded, records["y"].to_numpy(), RESIDUAL)
    error = np.sqrt(pev)
    found = effects(run, ids)
    np.testing.assert_allclose(found[0], mean, atol=6 * error.max() / np.sqrt(4000))
    np.testing.assert_allclose(found[1], error, rtol=0.07)


@pytest.mark.parametrize("change", [{"engine": "serial"}, {"engine": "structured"}, {"engine": "pcg"}])
def test_draws_of_one_level_after_another_are_refused(change):
    pedigree, records, *_ = lines_and_hybrids(20)
    source = analysis(pedigree, records, "gibbs", "sample", {"kind": "pedigree", "selfing": "g"}, **change)
    with pytest.raises(
        ConfigError, match="inbred lines.*parents with F near 1.*needed method: reml or blup, engine: m"
    ):
        mmgibbs.run(source, progress=False)
