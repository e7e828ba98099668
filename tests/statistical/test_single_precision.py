"""`precision: single` stores values in float32 and accumulates in float64:
the same posterior, and no drift of the residuals.
"""

import numpy as np
import pytest
from helpers.selection import first
from helpers.support import shared_data

from mmgibbs.engines.choice import EngineChoice
from mmgibbs.equations.partition import partition
from mmgibbs.equations.structured import structured_equations

G, R = 38.538, 62.691


@pytest.fixture(scope="module")
def simdata():
    from mmgibbs.config import load_config
    from mmgibbs.data.prepare import prepare

    config = {
        "name": "simdata",
        "data": {
            "phenotypes": str(shared_data("data/simdata/simdata.txt")),
            "header": ["animal", "sire", "dam", "weight", "mu", "farm", "sex", "year", "y1", "y2", "y3", "y4"],
            "pedigree": str(shared_data("data/simdata/simped.txt")),
            "pedigree_columns": {"id": 1, "sire": 2, "dam": 3},
            "weights": "weight",
        },
        "traits": {"y1": {"missing": ["0"]}},
        "model": {
            "fixed": {"farm": {}, "sex": {}, "year": {}},
            "random": {"genetic": {"level": "animal", "relationship": "pedigree"}},
        },
    }
    return prepare(load_config(config)).design


def engine_of(design, precision, name="structured"):
    kind = "colour" if name == "structured" else "term"
    engine = EngineChoice(name).build(structured_equations(design, partition(design, kind), precision))
    engine.set_variances([np.array([[G]]) if t.kind == "random" else None for t in design.terms], np.array([[R]]))
    return engine


def residual_drift(engine) -> float:
    """Largest difference between the residuals kept up to date and those computed from scratch in float64, in residual
    SDs.
    """
    exact = structured_equations(engine.equations.design, engine.equations.partition)
    fresh = EngineChoice("serial").build(exact)
    fresh.start(engine.fetch())
    return float(np.abs(fresh.e - engine.e).max() / np.sqrt(R))


@pytest.mark.parametrize("name", first(1, ["serial", "structured"]))
def test_means_and_drift(simdata, name):
    """Both precisions get the same draws, so their chains stay together:
    means differ by rounding, far below 1 % of a posterior SD.
    """
    engines = [engine_of(simdata, precision, name) for precision in ("double", "single")]
    burn_in, sweeps = 100, 400
    sums = [[np.zeros((t.n_levels, t.n_components)) for t in simdata.terms] for _ in engines]
    squares = [np.zeros((t.n_levels, t.n_components)) for t in simdata.terms]
    for number in range(1, burn_in + sweeps + 1):
        for engine, total in zip(engines, sums, strict=True):
            engine.sweep(number, (5, 0))
            if number > burn_in:
                for a, b in zip(total, engine.fetch(), strict=True):
                    a += b
        if number > burn_in:
            for a, b in zip(squares, engines[0].fetch(), strict=True):
                a += b**2
    for term, double, single, square in zip(simdata.terms, *sums, squares, strict=True):
        sd = np.sqrt(np.maximum(square / sweeps - (double / sweeps) ** 2, 0.0))
        drawn = sd > 0
        assert np.abs(single - double)[drawn].max() / sweeps < 0.01 * sd[drawn].min(), term.name
    assert residual_drift(engines[0]) < 1e-9
    assert 0 < residual_drift(engines[1]) < 1e-3


def test_drift_is_real_and_refresh_ends_it(simdata):
    engine = engine_of(simdata, "single")
    for number in range(1, 200):
        engine.sweep(number, (5, 0))
    before = residual_drift(engine)
    engine.refresh()
    assert residual_drift(engine) < before
