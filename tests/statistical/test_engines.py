"""Every engine against the dense posterior: means and covariances of five small models at fixed variances, and a
spoiled engine that fails.

Each model stands COPIES times in one design (support.copies), so every sweep draws that many independent chains; a copy
is a batch.
"""

import numpy as np
import pytest
from helpers.monte_carlo import compare
from helpers.mutants import mutant
from helpers.selection import first
from helpers.support import copies
from reference import dense, models

from mmgibbs.config.sampling import TOLERANCES
from mmgibbs.engines import dense as dense_sweeps
from mmgibbs.engines.choice import EngineChoice
from mmgibbs.equations.partition import partition
from mmgibbs.equations.structured import structured_equations

COPIES, BURN_IN, SWEEPS = 150, 60, 60
MODELS = ("bivariate_missing", "direct_maternal", "random_regression", "univariate_animal", "user_relationship")
WITH_DENSE_BLOCKS = ("single_step_maternal", "genomic_relationships")
ENGINES = [
    ("serial", "level", "term"),
    ("serial", "site", "effect"),
    ("structured", "level", "colour"),
    ("hybrid", "level", "colour"),
    ("hybrid", "site", "effect"),
    ("pcg", "level", "term"),
]


def posterior(name: str, engine: str, update: str, kind: str, spoil=None):
    """A comparison of all means and of all elements of the covariance matrix about the exact mean."""
    example = models.example(name)
    exact = dense.build(example.design, example.G, example.R)
    design = copies(example.design, COPIES)
    made = EngineChoice(engine, update, threads=2, variances_fixed=True, tolerance=TOLERANCES["gibbs"]).build(
        structured_equations(design, partition(design, kind))
    )
    made.set_variances(example.G, example.R)
    if spoil:
        spoil(made)
    burn_in, sweeps = (
        (0, 12) if engine == "pcg" else (BURN_IN, SWEEPS)
    )  # exact draws need no burn-in and cost a solve each
    lower = np.tril_indices(exact.size)
    total = np.zeros((COPIES, exact.size + lower[0].size))
    active = np.concatenate(
        [
            np.ones(t.n_levels * t.n_components, bool) if t.active is None else t.active.ravel()
            for t in example.design.terms
        ]
    )
    for number in range(1, burn_in + sweeps + 1):
        made.sweep(number, (3, 0))
        if number > burn_in:
            x = np.concatenate([t.reshape(COPIES, -1) for t in made.fetch()], axis=1)[:, active] - exact.solution
            total[:, : exact.size] += x
            total[:, exact.size :] += x[:, lower[0]] * x[:, lower[1]]
    return compare(total / sweeps, np.concatenate([np.zeros(exact.size), exact.covariance[lower]]))


@pytest.mark.parametrize("name", first(3, MODELS))
@pytest.mark.parametrize("engine, update, kind", ENGINES)
def test_the_whole_posterior(name, engine, update, kind):
    comparison = posterior(name, engine, update, kind)
    assert comparison.agrees, comparison


@pytest.mark.parametrize("name", first(1, WITH_DENSE_BLOCKS))
@pytest.mark.parametrize("engine, update, kind", [e for e in ENGINES if e[0] != "hybrid"])
def test_the_whole_posterior_with_a_dense_block(name, engine, update, kind):
    comparison = posterior(name, engine, update, kind)
    assert comparison.agrees, comparison


@pytest.mark.slow
@pytest.mark.parametrize("name", WITH_DENSE_BLOCKS)
def test_a_sweep_that_forgets_what_has_moved_within_a_tile_fails(name, monkeypatch):
    spoilt = mutant(dense_sweeps, "row[a] += s * moved[j, a]", "row[a] += 0.0 * s * moved[j, a]")
    monkeypatch.setattr(dense_sweeps, "sweep_tiles", spoilt.sweep_tiles)
    assert not posterior(name, "serial", "level", "term").agrees


@pytest.mark.slow
def test_a_spoiled_engine_fails():
    """The inverse of the whole R where the inverse of its observed part is due."""

    def spoil(engine):
        engine.Rinv = np.linalg.inv(engine.R)[None] * (engine.Rinv != 0)

    assert not posterior("bivariate_missing", "serial", "level", "term", spoil).agrees
