"""simdata2, trait 1, with the residual classes of its last column: sampled variances against REML computed here.

REML is independent of the program: Henderson's equations with the inverse relationship matrix by his rules (inbreeding
ignored), -2 log L = log|R| + log|G| + log|C| + y'Py by a sparse factor, minimised over the four variances.
"""

import numpy as np
import pytest
from helpers.support import shared_data
from scipy import sparse
from scipy.optimize import minimize
from scipy.sparse.linalg import splu

import mmgibbs

COLUMNS = "animal sire dam weight mu farm sex year y1 y2 y3 y4 covariate class".split()


def analysis(directory, **sampler):
    return {
        "name": "simdata2",
        "data": {
            "phenotypes": str(shared_data("data/simdata_more/simdata2.txt")),
            "header": COLUMNS,
            "pedigree": str(shared_data("data/simdata_more/simped2.txt")),
            "pedigree_columns": {"id": 1, "sire": 2, "dam": 3},
            "inbreeding": "ignore",
        },
        "traits": {"y1": {"missing": [0]}},
        "model": {
            "fixed": {"farm": {}, "sex": {}, "year": {}},
            "random": {"genetic": {"level": "animal", "relationship": "pedigree"}},
        },
        "variances": {"genetic": {"start": 38.5}, "residual": {"by": "class", "start": 62.7}},
        "sampler": sampler,
        "output": {"directory": str(directory)},
    }


def relationship_inverse(sire, dam):
    """A^-1 (q, q) by Henderson's rules without inbreeding; -1: unknown."""
    q = len(sire)
    own = 4.0 / (2.0 + (sire < 0) + (dam < 0))
    rows, columns, values = [np.arange(q)], [np.arange(q)], [own]
    for parent in (sire, dam):
        known = parent >= 0
        i, p, v = np.flatnonzero(known), parent[known], -own[known] / 2
        rows, columns, values = [*rows, i, p], [*columns, p, i], [*values, v, v]
        for other in (sire, dam):
            both = known & (other >= 0)
            rows, columns = [*rows, parent[both]], [*columns, other[both]]
            values = [*values, own[both] / 4]
    parts = np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))
    return sparse.csc_matrix(parts, shape=(q, q))


def reml():
    """Genetic variance, and the residual variance of classes 1, 2, 3."""
    table = np.loadtxt(shared_data("data/simdata_more/simdata2.txt"))
    pedigree = np.loadtxt(shared_data("data/simdata_more/simped2.txt"), usecols=(0, 1, 2)).astype(int)
    number = {animal: i for i, animal in enumerate(pedigree[:, 0])}
    sire, dam = (np.array([number.get(p, -1) for p in pedigree[:, c]]) for c in (1, 2))
    table = table[table[:, 8] != 0]
    n, q, y = len(table), len(pedigree), table[:, 8]
    own = np.unique(table[:, 13], return_inverse=True)[1]
    blocks = []
    for j, column in enumerate((5, 6, 7)):
        level = np.unique(table[:, column], return_inverse=True)[1]
        block = sparse.csc_matrix((np.ones(n), (np.arange(n), level)))
        blocks.append(block[:, 1:] if j else block)
    X = sparse.hstack(blocks)
    animal = np.array([number[int(a)] for a in table[:, 0]])
    W = sparse.hstack([X, sparse.csc_matrix((np.ones(n), (np.arange(n), animal)), shape=(n, q))]).tocsc()
    K = sparse.block_diag([sparse.csc_matrix((X.shape[1], X.shape[1])), relationship_inverse(sire, dam)]).tocsc()

    def criterion(logs):
        genetic, residual = np.exp(logs[0]), np.exp(logs[1:])
        weight = 1.0 / residual[own]
        C = (W.T @ sparse.diags(weight) @ W + K / genetic).tocsc()
        lu = splu(C, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
        rhs = W.T @ (weight * y)
        quadratic = y @ (weight * y) - rhs @ lu.solve(rhs)
        return np.log(residual[own]).sum() + q * np.log(genetic) + np.log(lu.U.diagonal()).sum() + quadratic

    start = np.log([38.5, 62.7, 62.7, 62.7])
    found = minimize(criterion, start, method="Nelder-Mead", options={"xatol": 1e-4, "fatol": 1e-4, "maxiter": 600})
    assert found.success
    return np.exp(found.x)


@pytest.mark.slow
def test_posterior_of_the_classes_is_that_of_reml(tmp_path):
    """Flat priors on some 1,500 records a class: posterior means lie within half a posterior SD of REML."""
    sampler = {"chains": 2, "burn_in": 500, "samples": 5000, "thin": 5, "seed": 3}
    result = mmgibbs.run(analysis(tmp_path / "run", **sampler), progress=False)
    rows = {r["parameter"]: r for r in result.summary.iter_rows(named=True)}
    names = ["genetic.var[y1]", *(f"residual.var[y1|{c}]" for c in (1, 2, 3))]
    for name, exact in zip(names, reml(), strict=True):
        assert abs(rows[name]["mean"] - exact) < 0.5 * rows[name]["sd"], (name, exact, rows[name])
    assert set(result.info["data"]["residual_classes"]) == {"1", "2", "3"}
    assert {f"h2[y1|{c}]" for c in (1, 2, 3)} <= set(rows)


def test_a_short_run(tmp_path):
    result = mmgibbs.run(analysis(tmp_path / "run", chains=1, burn_in=20, samples=60, seed=3), progress=False)
    rows = {r["parameter"]: r["mean"] for r in result.summary.iter_rows(named=True)}
    assert all(20 < rows[f"residual.var[y1|{c}]"] < 150 for c in (1, 2, 3)), rows
