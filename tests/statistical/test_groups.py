"""Unknown-parent groups, random and fixed, from tables to breeding values: equal to equations written out here.

Flat (fixed) groups make the equations singular, since their shares sum to one and herds span the same constant; one
group is then set to 0 and only what the data can tell is compared: fitted values and differences of breeding values.
"""

import numpy as np
import polars as pl
import pytest
from helpers.monte_carlo import batches, compare
from reference import models, tabular

import mmgibbs

N_ANIMALS, N_RECORDS, GROUPS = 24, 40, ("imported", "old", "young")
SIGMA2_U, SIGMA2_E = 6.0, 9.0


def tables():
    """Codes of parents (groups N_ANIMALS + ...), records, and the two tables."""
    rng = np.random.default_rng(101)
    sire, dam = models.looped_pedigree(rng, N_ANIMALS, 6)
    group = rng.integers(0, 3, N_ANIMALS)
    group[:3] = (0, 1, 2)
    ids = np.array([f"a{i}" for i in range(N_ANIMALS)])
    name = lambda code: ids[code] if code >= 0 else None
    pedigree = pl.DataFrame(
        {
            "animal": ids,
            "sire": [name(s) for s in sire],
            "dam": [name(d) for d in dam],
            "origin": [GROUPS[g] for g in group],
        }
    )
    sire, dam = (np.where(p < 0, N_ANIMALS + group, p) for p in (sire, dam))
    animal = np.concatenate([np.arange(4, N_ANIMALS), rng.integers(0, N_ANIMALS, N_RECORDS - N_ANIMALS + 4)])
    herd = np.arange(N_RECORDS) % 3
    y = (
        20
        + 2 * herd
        + 4 * tabular.group_shares(sire, dam, 3)[animal] @ [1, 0, -1]
        + 3.5 * rng.standard_normal(N_RECORDS)
    )
    records = pl.DataFrame({"animal": ids[animal], "herd": [f"h{h}" for h in herd], "y": y})
    return sire, dam, animal, herd, y, records, pedigree


def analysis(effect, directory="unused", **sampler):
    *_, records, pedigree = tables()
    return {
        "name": "groups",
        "data": {"phenotypes": records, "pedigree": pedigree, "groups": {"column": "origin", "effect": effect}},
        "traits": ["y"],
        "model": {"fixed": {"herd": {}}, "random": {"genetic": {"level": "animal", "relationship": "pedigree"}}},
        "variances": {"mode": "fixed", "genetic": {"start": SIGMA2_U}, "residual": {"start": SIGMA2_E}},
        "sampler": sampler,
        "output": {"directory": str(directory), "save_levels": {"genetic": list(GROUPS)}},
    }


def dense_equations(random_groups):
    """W (records x (herds, animals, groups)), C and right-hand side."""
    sire, dam, animal, herd, y, *_ = tables()
    W = np.zeros((N_RECORDS, 3 + N_ANIMALS + 3))
    W[np.arange(N_RECORDS), herd] = 1.0
    W[np.arange(N_RECORDS), 3 + animal] = 1.0
    C = W.T @ W / SIGMA2_E
    C[3:, 3:] += tabular.relationship_inverse(sire, dam, 3, random_groups) / SIGMA2_U
    return W, C, W.T @ y / SIGMA2_E


def in_order(solutions, column="mean"):
    """Herds, animals, groups as `dense_equations` has them."""
    by_level = {(row["term"], row["level"]): row[column] for row in solutions.iter_rows(named=True)}
    order = (
        [("herd", f"h{i}") for i in range(3)]
        + [("genetic", f"a{i}") for i in range(N_ANIMALS)]
        + [("genetic", g) for g in GROUPS]
    )
    return np.array([by_level[at] for at in order], float)


def test_random_groups_equal_the_dense_build(tmp_path):
    solutions = mmgibbs.run(analysis("random", tmp_path / "run", method="blup"), progress=False).solutions
    _, C, rhs = dense_equations(True)
    np.testing.assert_allclose(in_order(solutions), np.linalg.solve(C, rhs), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(in_order(solutions, "sd") ** 2, np.diag(np.linalg.inv(C)), rtol=1e-8)
    # of u + Q g: 1 - PEV / diag(A + Q Q'), and the inverse of the rows of animals and groups is that matrix
    sire, dam, *_ = tables()
    K = np.linalg.inv(tabular.relationship_inverse(sire, dam, 3, True))[:N_ANIMALS, :N_ANIMALS]
    pev = np.diag(np.linalg.inv(C))[3 : 3 + N_ANIMALS]
    reliability = in_order(solutions, "reliability")[3 : 3 + N_ANIMALS]
    np.testing.assert_allclose(reliability, 1 - pev / (SIGMA2_U * np.diag(K)), atol=1e-6)
    of_groups = solutions.filter(pl.col("effect") == "group")
    assert of_groups["level"].to_list() == list(GROUPS) and of_groups["reliability"].null_count() == 3


def test_an_animal_without_information_has_a_reliability_of_0_with_random_groups(tmp_path):
    given = analysis("random", tmp_path / "run", method="blup")
    lone = pl.DataFrame({"animal": ["lone"], "sire": [None], "dam": [None], "origin": ["unseen"]})
    given["data"] |= {"pedigree": pl.concat([given["data"]["pedigree"], lone], how="vertical_relaxed")}
    given["output"] = {"directory": str(tmp_path / "run")}
    result = mmgibbs.run(given, progress=False)
    row = result.solutions.filter(pl.col("level") == "lone").row(0, named=True)
    assert row["reliability"] == pytest.approx(0, abs=1e-6) and row["pev"] == pytest.approx(2 * SIGMA2_U)
    assert result.solutions["reliability"].min() >= 0 and "negative_reliabilities" not in result.info


def test_fixed_groups_equal_the_dense_build(tmp_path):
    solutions = mmgibbs.run(analysis("fixed", tmp_path / "run", method="blup"), progress=False).solutions
    W, C, rhs = dense_equations(False)
    assert np.linalg.matrix_rank(C) == len(C) - 1
    found, expected = in_order(solutions), np.linalg.pinv(C, rcond=1e-12, hermitian=True) @ rhs
    np.testing.assert_allclose(C @ found, rhs, atol=1e-8 * np.abs(rhs).max())
    np.testing.assert_allclose(W @ found, W @ expected, rtol=1e-8)
    np.testing.assert_allclose(np.diff(found[3:]), np.diff(expected[3:]), atol=1e-7)
    assert np.count_nonzero(found[-3:] == 0.0) == 1  # one group is held
    _, C_random, rhs_random = dense_equations(True)
    other = np.linalg.solve(C_random, rhs_random)
    assert np.abs(np.diff(found[3:]) - np.diff(other[3:])).max() > 0.05


@pytest.mark.parametrize("effect", ["random", "fixed"])
def test_a_chain_has_the_exact_means_of_groups(tmp_path, effect):
    sampler = {"chains": 1, "burn_in": 500, "samples": 10_000, "thin": 1, "seed": 102}
    result = mmgibbs.run(analysis(effect, tmp_path / "run", **sampler), progress=False)
    draws = result.draws["/posterior"]["genetic"].to_numpy()[0, :, :, 0]
    free = draws.std(axis=0) > 0
    assert free.sum() == (3 if effect == "random" else 2)  # one fixed group is held
    _, C, rhs = dense_equations(effect == "random")
    held = np.append(np.ones(len(C) - 3, bool), free)
    exact = np.zeros(len(C))
    exact[held] = np.linalg.solve(C[np.ix_(held, held)], rhs[held])
    comparison = compare(batches(draws[:, free]), exact[-3:][free])
    assert comparison.agrees, comparison
