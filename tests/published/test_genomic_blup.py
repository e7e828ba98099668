"""Genomic BLUP as BLUPF90 prints it, from genotypes that were read, checked, centred and packed here.

Example 6 of the tutorial data of Masuda (github.com/masuday/data): 15 animals, 100 SNPs, of which quality control
leaves 83; G = 0.95 ZZ'/(2 sum pq) + 0.05 I, variances 0.3 and 0.7, weighted records. Solutions printed by BLUPF90.
"""

import numpy as np
import polars as pl
import pytest
from helpers.support import shared_data

from mmgibbs.config.genotypes import Genotypes
from mmgibbs.data.genotypes.prepare import prepare_genotypes

FOLDER = "data/genomics/blupf90_gblup6"
MEAN = -0.08090772
SOLUTIONS = {
    "ID001": -0.42220198, "ID002": -0.44672494, "ID003": 0.26450865, "ID004": 0.24686356,
    "ID005": 0.05496292, "ID006": 0.16937536, "ID007": -0.17601451, "ID008": -0.24385662,
}  # fmt: skip


@pytest.fixture(scope="module")
def prepared():
    keys = {"file": str(shared_data(FOLDER) / "snp6.txt"), "quality": {"maf": 0.05}}
    return prepare_genotypes(Genotypes.model_validate(keys), None, None)


def relationships(prepared, ids):
    """G of these animals: products of packed genotypes with themselves."""
    store = prepared.packed(pl.Series(ids))
    x = store.decode(store.every, store.values(prepared.centre, mean=prepared.mean)).astype(np.float64)
    return 0.95 * x.T @ x / prepared.sum_2pq + 0.05 * np.eye(len(ids))


def test_quality_control_leaves_as_many_snps(prepared):
    assert prepared.counts["kept"] == {"SNPs": 83, "animals": 15}


def test_the_inverse_is_that_of_the_file(prepared):
    """ginverse6.txt; the numbers of its animals are those of the first column of data6.txt where they have records."""
    records = np.loadtxt(shared_data(FOLDER) / "data6.txt", dtype=str)
    rows = np.loadtxt(shared_data(FOLDER) / "ginverse6.txt")
    i, j = rows[:, 0].astype(int) - 1, rows[:, 1].astype(int) - 1
    expected = np.zeros((15, 15))
    expected[i, j] = expected[j, i] = rows[:, 2]
    number = {row[4]: int(row[0]) - 1 for row in records}
    there = np.array(list(number.values()))
    found = relationships(prepared, list(number))
    assert found == pytest.approx(np.linalg.inv(expected)[np.ix_(there, there)], abs=1e-6)


def test_solutions_are_those_printed(prepared):
    records = np.loadtxt(shared_data(FOLDER) / "data6.txt", dtype=str)
    ids = prepared.animals["animal"].to_list()
    G = relationships(prepared, ids)
    at = [ids.index(id) for id in records[:, 4]]
    y, weight = records[:, 2].astype(float), records[:, 3].astype(float)
    V = 0.3 * G[np.ix_(at, at)] + np.diag(0.7 / weight)
    one = np.ones(len(y))
    mean = one @ np.linalg.solve(V, y) / (one @ np.linalg.solve(V, one))
    u = 0.3 * G[:, at] @ np.linalg.solve(V, y - mean)
    assert mean == pytest.approx(MEAN, abs=1e-6)
    assert [u[ids.index(id)] for id in SOLUTIONS] == pytest.approx(list(SOLUTIONS.values()), abs=1e-6)
