"""New lines of wheat (CIMMYT, 599 lines x 1,279 DArT markers) from runs with genomic relationships.

Against dense matrices of the records, and against an evaluation with the new lines in it: yields in two environments.
"""

import numpy as np
import polars as pl
import pytest
from helpers.support import shared_data

import mmgibbs

NEW = 60
BLEND = 0.05
G, R = np.array([[0.6, 0.1], [0.1, 0.5]]), np.array([[0.5, 0.05], [0.05, 0.6]])


@pytest.fixture(scope="module")
def wheat(tmp_path_factory):
    """(folder, copies (n, p), yields (n, 2)); the last NEW lines have no records."""
    folder = tmp_path_factory.mktemp("wheat")
    stored = np.load(shared_data("data/genomics/bglr_wheat/wheat.npz"))
    X, Y = 2 * stored["X"].astype(int), stored["Y"][:, :2]  # present or absent in inbred lines
    ids = np.array([f"line{i}" for i in range(len(X))])
    table = pl.DataFrame({"line": ids} | {f"m{j}": X[:, j] for j in range(X.shape[1])})
    table.write_csv(folder / "every.csv")
    table.head(len(X) - NEW).write_csv(folder / "old.csv")
    table.tail(NEW).write_csv(folder / "new.csv")
    pl.DataFrame({"line": ids, "y1": Y[:, 0], "y2": Y[:, 1]}).head(len(X) - NEW).write_csv(folder / "records.csv")
    return folder, X.astype(float), Y


@pytest.fixture(scope="module")
def runs(wheat):
    """Of the old lines, and of all."""
    folder = wheat[0]

    def run(genotypes):
        quality = {"maf": 0, "monomorphic": "keep"}
        data = {"phenotypes": str(folder / "records.csv"),
                "genotypes": {"file": str(folder / genotypes), "frequencies": "half", "quality": quality}}  # fmt: skip
        random = {"genetic": {"level": "line", "relationship": {"kind": "genomic", "blend": BLEND}}}
        analysis = {
            "data": data, "traits": {"y1": {}, "y2": {}}, "model": {"random": random},
            "variances": {"genetic": {"start": G.tolist()}, "residual": {"start": R.tolist()}},
            "sampler": {"method": "blup", "tolerance": 1e-13}, "output": {"snp_effects": True},
        }  # fmt: skip
        return mmgibbs.run(analysis, directory=folder / genotypes.removesuffix(".csv"), progress=False)

    return run("old.csv"), run("every.csv")


@pytest.fixture(scope="module")
def predicted(wheat, runs):
    return mmgibbs.predict(runs[0].directory, wheat[0] / "new.csv").values


@pytest.mark.slow
def test_against_dense_matrices(wheat, predicted):
    """u_y = Cov(u_y, y) P y and its prediction error variance, records of a line side by side."""
    _, X, Y = wheat
    n, old = len(X), len(X) - NEW
    Z = X - 1.0
    K = (1 - BLEND) * Z @ Z.T / (X.shape[1] / 2) + BLEND * np.eye(n)
    V = np.kron(K[:old, :old], G) + np.kron(np.eye(old), R)
    F, y = np.kron(np.ones((old, 1)), np.eye(2)), Y[:old].ravel()
    V_inverse = np.linalg.inv(V)
    VF = V_inverse @ F
    P = V_inverse - VF @ np.linalg.solve(F.T @ VF, VF.T)
    C = np.kron(K[old:, :old], G)
    u = (C @ P @ y).reshape(NEW, 2)
    pev = np.kron(np.diag(K[old:, old:]), np.diag(G)) - np.einsum("ij,jk,ik->i", C, P, C, optimize=True)
    for t, trait in enumerate(("y1", "y2")):
        rows = predicted.filter(trait=trait)
        np.testing.assert_allclose(rows["mean"], u[:, t], atol=1e-8)
        np.testing.assert_allclose(rows["pev"], pev.reshape(NEW, 2)[:, t], atol=1e-8)


def test_against_an_evaluation_with_them(runs, predicted):
    both = predicted.join(runs[1].solutions.filter(term="genetic"), on=["level", "trait"], suffix="_there")
    assert both.height == 2 * NEW
    for column in ("mean", "pev", "reliability"):
        np.testing.assert_allclose(both[column], both[f"{column}_there"], atol=1e-8)
