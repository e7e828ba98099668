"""The likelihood of liabilities against dense formulas."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.mixed_models import equations_of
from reference import dense, models

from mmgibbs.engines.direct.engine import MarginalEngine
from mmgibbs.models.families import Categories, Interval
from mmgibbs.models.relationships.identity import Identity

N, LEVELS = 30, 12


def design_of(scaled):
    """One trait with weights: in categories, whose scale is integrated out, or between ends."""
    rng = np.random.default_rng(2)
    level = rng.integers(0, LEVELS, N).astype(np.int32)
    terms = [
        models.class_term("sex", np.arange(N) % 2, 2, [0]),
        models.random_term("animal", [models.Effect("", level, (0,))], Identity(LEVELS), LEVELS),
    ]
    design = models.with_records(rng, N, terms, [None, np.eye(1)], np.eye(1), weight=rng.uniform(0.5, 2.0, N))
    y = design.y[:, 0]
    response = Categories(0, ("a", "b", "c"), np.searchsorted([0.0, 1.0], y).astype(np.int16))
    if not scaled:
        response = Interval(0, y - 1.0, y + 1.0)
    return replace(design, responses=(response,))


@pytest.mark.parametrize("scaled", [False, True])
def test_density_of_liabilities_against_dense_formulas(scaled):
    design = design_of(scaled)
    engine = MarginalEngine(equations_of(design, "term"))
    likelihood, rng = engine.liability_likelihood, np.random.default_rng(3)
    n_power = N + 1 if scaled else 0
    assert likelihood.power == n_power
    by_record = engine.equations.records.record
    differences = []
    for g, r in ((0.5, 1.0), (2.0, 1.0), (1.0, 1.7)):
        likelihood.evaluate(np.array([g, r]))
        likelihood.keep()
        for _ in range(2):
            y = rng.normal(0.3, 2.0, (N, 1))
            value = likelihood.take(y[by_record])
            exact = [
                dense.log_marginal_likelihood(
                    replace(design, y=factor * y, responses=()), [None, np.eye(1) * g], np.eye(1) * r
                )
                for factor in (0.0, 1.0)
            ]
            Q = 2 * (exact[0] - exact[1])
            assert likelihood.kept_squares() == pytest.approx(Q)
            expected = exact[0] - 0.5 * n_power * np.log(Q) if scaled else exact[1]
            differences.append(value - expected)
            assert likelihood.evaluate(np.array([g, r])) == pytest.approx(value)
    np.testing.assert_allclose(differences, differences[0], rtol=0, atol=1e-9)


@pytest.mark.parametrize("scaled", [False, True])
def test_summary_against_differences(scaled):
    """Derivatives of Q by the inverses of both variances."""
    design = design_of(scaled)
    engine = MarginalEngine(equations_of(design, "term"))
    likelihood, step = engine.liability_likelihood, 1e-5

    def squares(precisions):
        likelihood.evaluate(1 / np.asarray(precisions))
        likelihood.keep()
        return likelihood.kept_squares()

    at = np.array([1.3, 0.8])
    Q = squares(at)
    likelihood.evaluate(1 / at)
    likelihood.take_reference()
    expected = [(squares(at + d) - squares(at - d)) / (2 * step) for d in step * np.eye(2)]
    np.testing.assert_allclose(likelihood.summarise(), np.array(expected) / (Q if scaled else 1.0), rtol=1e-6)
