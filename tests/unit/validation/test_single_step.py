"""The LR method with predicted genotypes: total breeding values from whole and partial data against dense equations."""

import numpy as np
import pytest
from helpers.single_step_herd import (  # noqa: F401  data is a fixture
    POLYGENIC,
    RESIDUAL,
    N,
    V,
    analysis,
    covariances,
    data,
    prepared_of,
)

from mmgibbs.validation import focal_values
from mmgibbs.validation.focal_values import BreedingValue, is_held, residual_spread
from mmgibbs.validation.options import ValidationPlan
from mmgibbs.validation.run import validate_analysis

FOCAL = [70, 71, 76, 78, 80, 85, 88, 89]  # two of them without genotypes


def solution(data, kept):  # noqa: F811
    """(N,) posterior means of total breeding values from the chosen records, and what J has in them."""
    _, columns, left, j = covariances(data)
    animal, y = (of[kept] for of in data[3][3:])
    cov = V * columns @ columns.T + POLYGENIC * left
    X = np.column_stack([np.ones(len(y)), j[animal]])
    V_inv = np.linalg.inv(cov[np.ix_(animal, animal)] + RESIDUAL * np.eye(len(y)))
    b = np.linalg.solve(X.T @ V_inv @ X, X.T @ V_inv @ y)
    return cov[:, animal] @ V_inv @ (y - X @ b) + j * b[1], j * b[1]


def examined(data, path):  # noqa: F811
    (path / "focal.txt").write_text("\n".join(f"a{i}" for i in FOCAL))
    wanted = analysis(data, path / "run")
    plan = ValidationPlan("lr", focal=str(path / "focal.txt"))
    return validate_analysis(wanted, plan, progress=False, report=False, output=path / "out")


def apart(found, data):  # noqa: F811
    """Root mean squares of the differences of p and w to the dense solutions, in units of their spread."""
    total = found.predictions.filter(effect="total").sort("animal")
    at = np.array([int(i[1:]) for i in total["animal"]])
    assert sorted(at) == FOCAL
    masked = np.isin(data[3][3], FOCAL)
    out = []
    for name, kept in (("predicted", ~masked), ("observed", masked | True)):
        exact = solution(data, kept)[0][at]
        out.append(np.sqrt(np.mean((total[name].to_numpy() - exact) ** 2)) / exact.std())
    return out


def test_whole_and_partial_values_are_those_of_the_dense_equations(data, tmp_path):  # noqa: F811
    found = examined(data, tmp_path)
    assert max(apart(found, data)) < 0.12
    statistics = dict(found.table.filter(effect="total").select("statistic", "estimate").iter_rows())
    w, p = (solution(data, kept)[0][FOCAL] for kept in (slice(None), ~np.isin(data[3][3], FOCAL)))
    assert abs(statistics["bias"] - (p.mean() - w.mean())) < 0.4 * p.std()
    assert np.isfinite(statistics["accuracy"])


@pytest.mark.slow
def test_values_without_j_are_seen(data, tmp_path, monkeypatch):  # noqa: F811
    evaluate = BreedingValue.evaluate

    def without_j(value, draw):
        object.__setattr__(value, "regression", None)
        return evaluate(value, draw)

    monkeypatch.setattr(BreedingValue, "evaluate", without_j)
    assert min(apart(examined(data, tmp_path), data)) > 0.12


def test_spread_of_what_genotypes_leave(data, tmp_path, monkeypatch):  # noqa: F811
    left = covariances(data)[2][np.ix_(FOCAL, FOCAL)]
    exact = np.trace(left) / len(FOCAL) - left.mean()
    term = next(t for t in prepared_of(data, tmp_path).design.terms if t.name == "genetic")
    codes = np.array(FOCAL)  # animals are coded in the order of the pedigree: parents come first in the file
    assert residual_spread(term.relationship, is_held(term), codes) == pytest.approx(exact, rel=1e-9)
    assert is_held(term).sum() == len(data[3][2]) and exact > 0.01
    term = next(t for t in prepared_of(data, tmp_path).design.terms if t.name == "genetic")
    held, codes, known = is_held(term), np.array(FOCAL), {}
    both = np.concatenate([codes, np.flatnonzero(held)[:3]])
    once = [residual_spread(term.relationship, held, of, known) for of in (codes, both)]
    assert len(known) == 1
    assert once == pytest.approx([residual_spread(term.relationship, held, of) for of in (codes, both)], rel=1e-12)
    monkeypatch.setattr(focal_values, "MOST_SOLVED", 1)
    assert np.isnan(residual_spread(term.relationship, held, codes))
