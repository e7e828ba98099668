"""The equations, explicit and dense, against published solutions: no engine, no reading of tables, a direct solver."""

import json

import numpy as np
import pytest
from helpers.explicit_matrix import right_hand_side, sparse_matrix
from helpers.support import shared_data
from reference import dense, models
from scipy.sparse.linalg import splu

from mmgibbs.equations.explicit.csr import explicit_equations
from mmgibbs.models.design import Design
from mmgibbs.models.relationships.pedigree import Pedigree
from mmgibbs.models.terms import Effect
from pedigree.inbreeding import inbreeding
from pedigree.relationship import relatives


def case(name):
    return json.loads(shared_data("cases/published.json").read_text(encoding="utf-8"))[name]


def factorised(equations):
    """Sparse factor of C: a symmetric ordering fills in 50 times less than the default."""
    C = sparse_matrix(equations).tocsc()
    return splu(C, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})


def weaning_design(*traits) -> Design:
    """Sex and animal, the traits of the five calves side by side; all of them observed."""
    data = case("weaning_gain")
    rows = data["records"][1:]
    animal = np.array([row[0] - 1 for row in rows], np.int32)
    sex = np.array([("male", "female").index(row[3]) for row in rows], np.int32)
    sire, dam = (np.array([(row[i] or 0) - 1 for row in data["pedigree"]], np.int32) for i in (1, 2))
    T = tuple(range(len(traits)))
    terms = (
        models.class_term("sex", sex, 2, T),
        models.random_term(
            "animal", [Effect("", animal, T)], Pedigree(relatives(sire, dam, inbreeding(sire, dam))), len(sire)
        ),
    )
    y = np.array(traits, float).T
    pattern = np.zeros(len(rows), np.int32)
    return Design(tuple(map(str, T)), y, pattern, np.ones((1, len(T)), bool), np.ones(len(rows)), terms)


def solved(design, G, R):
    """Solution and C^-1 from the explicit equations by a direct solver, as (q, k) per term."""
    equations = explicit_equations(design)
    equations.set_variances(G, R)
    assert equations.layout.active.all()
    factor = factorised(equations)
    inverse = factor.solve(np.eye(equations.n_equations))
    split = equations.layout.split
    return split(factor.solve(right_hand_side(equations))), split(np.diag(inverse).copy())


def test_weaning_gain():
    data = case("weaning_gain")
    gain = [row[4] for row in data["records"][1:]]
    design = weaning_design(gain)
    G, R = [None, [[20.0]]], [[40.0]]
    solution, variance = solved(design, G, R)
    expected = data["expected"]
    np.testing.assert_allclose(np.concatenate(solution)[:, 0], expected["solution"], atol=5.1e-6)
    np.testing.assert_allclose(np.sqrt(np.concatenate(variance)[:, 0]), expected["sep"], atol=5.1e-6)
    np.testing.assert_allclose(1 - variance[1][:, 0] / 20, expected["reliability_a1_8"], atol=5.1e-6)
    truth = dense.build(design, G, R)
    np.testing.assert_allclose(truth.solution, expected["solution"], atol=5.1e-6)
    wrong, _ = solved(design, [None, [[20.1]]], R)
    assert np.abs(np.concatenate(wrong)[:, 0] - expected["solution"]).max() > 1e-4


def test_weaning_gain_bivariate():
    data, second = case("weaning_gain"), case("weaning_gain_bivariate")
    rows = data["records"][1:]
    design = weaning_design([row[4] for row in rows], [second["second_trait_by_id"][str(row[0])] for row in rows])
    G, R = [None, [[20.0, 18.0], [18.0, 40.0]]], [[40.0, 11.0], [11.0, 30.0]]
    (sex, animal), (_, variance) = solved(design, G, R)
    expected = second["expected"]
    np.testing.assert_allclose(sex.T.ravel(), expected["sex"], atol=5.1e-6)
    for t, (solutions, reliability) in enumerate((("WWG", "rel_WWG"), ("PWG", "rel_PWG"))):
        np.testing.assert_allclose(animal[:, t], expected[solutions], atol=5.1e-6)
        np.testing.assert_allclose(1 - variance[:, t] / G[1][t][t], expected[reliability], atol=5.1e-6)


def simdata_trait1(account_inbreeding: bool) -> Design:
    """y1 = farm + sex + year + animal with weights; 0 is a missing trait; the first sex and year are set to 0."""
    records = np.loadtxt(shared_data("data/simdata/simdata.txt"))
    pedigree = np.loadtxt(shared_data("data/simdata/simped.txt"), dtype=np.int64)
    assert np.array_equal(pedigree[:, 0], np.arange(1, len(pedigree) + 1))
    records = records[records[:, 8] != 0]
    n = len(records)
    sire, dam = (pedigree[:, i].astype(np.int32) - 1 for i in (1, 2))
    kind = Pedigree(relatives(sire, dam, inbreeding(sire, dam) if account_inbreeding else None))
    farm, sex, year = (np.unique(records[:, i], return_inverse=True)[1] for i in (5, 6, 7))
    held = models.without_first_level
    terms = (
        models.class_term("farm", farm, farm.max() + 1, [0]),
        models.class_term("sex", sex, sex.max() + 1, [0], held(sex.max() + 1, 1)),
        models.class_term("year", year, year.max() + 1, [0], held(year.max() + 1, 1)),
        models.random_term("animal", [Effect("", records[:, 0].astype(np.int32) - 1, (0,))], kind, len(sire)),
    )
    pattern = np.zeros(n, np.int32)
    return Design(("y1",), records[:, [8]], pattern, np.ones((1, 1), bool), np.ascontiguousarray(records[:, 3]), terms)


@pytest.mark.parametrize("account, file", [(False, "noinb"), (True, "inb")])
def test_simdata_breeding_values_and_prediction_error_variances(account, file):
    design = simdata_trait1(account)
    exact = np.genfromtxt(shared_data(f"data/simdata/exact_blup_trait1_{file}.csv"), delimiter=",", names=True)
    equations = explicit_equations(design)
    equations.set_variances([None, None, None, [[38.538]]], [[62.691]])
    factor = factorised(equations)
    x = factor.solve(right_hand_side(equations))
    first = equations.n_equations - len(exact)
    np.testing.assert_allclose(x[first:], exact["u"], atol=2e-8, rtol=1e-7)
    for animal in range(0, len(exact), 400):
        unit = np.zeros(equations.n_equations)
        unit[first + animal] = 1.0
        assert factor.solve(unit)[first + animal] == pytest.approx(exact["pev"][animal], abs=1e-7)


@pytest.mark.parametrize("account, key", [(False, "independent_REML"), (True, "with_inbreeding_REML")])
def test_simdata_restricted_likelihood_is_highest_at_reml(account, key):
    """-2 log L = n log s2e + q log s2u + log|C| + (y'R^-1y - rhs'x) + constant; one build serves all variances."""
    design = simdata_trait1(account)
    equations = explicit_equations(design)
    y, q = design.y[:, 0], design.terms[3].n_levels

    def minus_two_log_likelihood(s2u, s2e):
        equations.set_variances([None, None, None, [[s2u]]], [[s2e]])
        factor = factorised(equations)
        rhs = right_hand_side(equations)
        log_C = np.log(np.abs(factor.U.diagonal())).sum() + np.log(np.abs(factor.L.diagonal())).sum()
        squares = np.sum(design.weight * y**2) / s2e - rhs @ factor.solve(rhs)
        return y.size * np.log(s2e) + q * np.log(s2u) + log_C + squares

    best = np.array(case("simdata_trait1")["expected"][key])
    # The parabola through three points is lowest where REML is.
    step = np.array([0.05, 0.05])
    f = {(i, j): minus_two_log_likelihood(*(best + step * (i, j))) for i in (-1, 0, 1) for j in (-1, 0, 1)}
    gradient = np.array([f[1, 0] - f[-1, 0], f[0, 1] - f[0, -1]]) / 2
    mixed = (f[1, 1] - f[1, -1] - f[-1, 1] + f[-1, -1]) / 4
    hessian = np.array([[f[1, 0] - 2 * f[0, 0] + f[-1, 0], mixed], [mixed, f[0, 1] - 2 * f[0, 0] + f[0, -1]]])
    assert np.all(np.linalg.eigvalsh(hessian) > 0)
    np.testing.assert_allclose(best - step * np.linalg.solve(hessian, gradient), best, atol=2e-4)
