"""A level whose own equations cannot be solved stops every engine and is named: its diagonal is 0, or negative."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.mixed_models import equations_of
from helpers.support import exact_draws
from reference import models

from mmgibbs.engines.coloured.engine import StructuredEngine
from mmgibbs.engines.hybrid.engine import HybridEngine
from mmgibbs.engines.pcg.solver import PcgSolver
from mmgibbs.engines.serial import SerialEngine
from mmgibbs.errors import ModelError
from mmgibbs.simulation.simulate import beef_design, simulate_beef

KEY = (5, 1)
ENGINES = {
    "serial, levels": SerialEngine,
    "serial, sites": lambda equations: SerialEngine(equations, "site"),
    "structured, levels": StructuredEngine,
    "structured, sites": lambda equations: StructuredEngine(equations, "site", threads=2),
    "hybrid, levels": HybridEngine,
    "hybrid, sites": lambda equations: HybridEngine(equations, "site"),
    "exact draws": exact_draws,
    "pcg": PcgSolver,
}


def refusal(make, design, G, R) -> str:
    """Of the variances, or of the first sweep."""
    engine = make(equations_of(design))
    with pytest.raises(ModelError) as refused:
        engine.set_variances(G, R)
        engine.sweep(1, KEY)
    return str(refused.value)


@pytest.mark.parametrize("make", ENGINES.values(), ids=ENGINES)
def test_a_level_without_information_is_named(make):
    example = models.example("univariate_animal")
    herd = example.design.terms[0]
    q = herd.n_levels + 1
    wider = replace(herd, incidence=replace(herd.incidence, n_levels=q), active=None)
    design = replace(example.design, terms=(wider, *example.design.terms[1:]))
    message = refusal(make, design, example.G, example.R)
    assert message.startswith(f"term 'herd' (trait1), level number {q} of {q}: its equations cannot be solved")


@pytest.mark.parametrize("make", ENGINES.values(), ids=ENGINES)
def test_a_negative_diagonal_is_named(make):
    example = models.example("bivariate_missing")
    G = [None if g is None else -np.asarray(g) for g in example.G]
    message = refusal(make, example.design, G, example.R)
    assert message.startswith("term 'genetic' (") and "level number" in message and "proper priors" in message


@pytest.mark.slow  # compiles lanes in single precision
def test_among_levels_side_by_side(monkeypatch):
    """The structured engine's other way through a colour: many levels at once."""
    monkeypatch.setattr("mmgibbs.engines.coloured.unrolled.UNROLL_FROM", 0)
    monkeypatch.setattr("mmgibbs.equations.cell_classes.WORTHWHILE", 1)
    monkeypatch.setattr("mmgibbs.equations.cell_classes.MANY", 0)
    herds = simulate_beef(600, 1)
    design = beef_design(herds)
    G = [*herds.G[:3], -herds.G[3], herds.G[4]]
    equations = equations_of(design, precision="single")
    engine = StructuredEngine(equations)
    engine.set_variances(G, herds.R)
    with pytest.raises(ModelError, match="term 'genetic'.*level number [0-9]+ of 600"):
        engine.sweep(1, KEY)
