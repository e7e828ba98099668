"""Many right-hand sides by one factor: the solutions of PCG, where it pays."""

import numpy as np
import pytest
from helpers.mixed_models import equations_of
from helpers.mutants import mutant
from reference import models

from mmgibbs.engines.direct import solver as solver_module
from mmgibbs.engines.pcg.solver import PcgSolver

MODELS = ("three_traits_maternal", "fixed_groups", "fixed_covariates")


@pytest.fixture
def cheap(monkeypatch):
    """A factor pays for the smallest equations."""
    monkeypatch.setattr(solver_module, "WORTH", -1.0)


def made(name):
    example = models.example(name)
    solver = PcgSolver(equations_of(example))
    solver.set_variances(example.G, example.R)
    return example, solver


def difference(module, name):
    """Of solutions by the factor from those of PCG: the largest, of their size."""
    example, solver = made(name)
    b = np.random.default_rng(4).standard_normal((int(solver.bounds[-1]), 3))
    b[solver.active == 0] = 0.0
    expected = solver.solve_columns(b, np.zeros(b.shape), 1e-12).x
    direct = module.direct_solver(solver, example.G, example.R, 3)
    return np.abs(direct.solve(b) - expected).max() / np.abs(expected).max()


@pytest.mark.parametrize("name", MODELS)
def test_solutions_are_those_of_pcg(cheap, name):
    assert difference(solver_module, name) < 1e-8


def test_levels_in_another_order_are_seen():
    wrong = mutant(solver_module, "of_model[lists.code] = of_sweep", "of_model[:] = of_sweep", compiled=False)
    wrong.WORTH = -1.0
    assert difference(wrong, MODELS[0]) > 1e-3


def test_iterations_stay_where_a_factor_does_not_pay_or_fit(cheap, monkeypatch):
    example, solver = made(MODELS[0])
    arguments = solver, example.G, example.R
    assert solver_module.direct_solver(*arguments, 3) is not None
    for name, value in {"free_bytes": lambda: 10, "FACTORISED": 1.0, "MOST_EQUATIONS": 3, "WORTH": 1.0}.items():
        with monkeypatch.context() as patch:
            patch.setattr(solver_module, name, value)
            assert solver_module.direct_solver(*arguments, 3) is None
    example, solver = made("genomic_relationships")
    assert solver_module.direct_solver(solver, example.G, example.R, 3) is None
