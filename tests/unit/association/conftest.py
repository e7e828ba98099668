import numpy as np
import polars as pl
import pytest
from helpers.new_animals import Herd

GENOMIC = {"kind": "genomic", "blend": 0.1}


@pytest.fixture(scope="module")
def herd(tmp_path_factory):
    return Herd(tmp_path_factory.mktemp("herd"))


@pytest.fixture(scope="module")
def run(herd):
    return herd.run("genomic", GENOMIC)


@pytest.fixture(scope="module")
def dense_projection(herd):
    """K -> (Z, P, y) of the records at the variances of the herd."""
    records = pl.read_csv(herd.folder / "records.csv")
    n = records.height
    Z = np.zeros((n, len(herd.old)))
    Z[np.arange(n), herd.animal] = 1
    X, y = records["herd"].to_dummies().to_numpy().astype(float), records["gain"].to_numpy()

    def project(K):
        V_inverse = np.linalg.inv(Z @ (1.5 * K + 0.3 * np.eye(len(K))) @ Z.T + 1.2 * np.eye(n))
        return Z, V_inverse - V_inverse @ X @ np.linalg.solve(X.T @ V_inverse @ X, X.T @ V_inverse), y

    return project
