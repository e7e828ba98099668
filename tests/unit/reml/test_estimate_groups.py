"""Traits that have nothing in common are estimated one after another, with what estimates of all at once are."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import mmgibbs
from mmgibbs.build.assemble import assemble
from mmgibbs.data.prepare import prepare
from mmgibbs.data.traits import load_analysis
from mmgibbs.likelihood.trait_groups import group_traits
from mmgibbs.models.terms import Normal
from mmgibbs.reml.estimate import estimate
from mmgibbs.reml.estimate_groups import estimate_by_groups

ROWS, COLUMNS, SITES = 8, 6, ("A", "B", "C")
AR1 = {"kind": "ar1", "row": "row", "column": "column"}


def trial():
    """Three sites of 48 plots with trends, 12 lines and a covariate; some cells are missing."""
    rng = np.random.default_rng(8)
    row, column = np.divmod(np.arange(ROWS * COLUMNS), COLUMNS)
    lines = rng.normal(size=(12, len(SITES)))
    frames = []
    for s, site in enumerate(SITES):
        line, x = rng.permutation(np.arange(48) % 12), rng.normal(10, 2, 48)
        trend = np.cumsum(rng.normal(size=ROWS))[row] + np.cumsum(rng.normal(size=COLUMNS))[column]
        y = lines[line, s] + trend + 0.3 * (s + 1) * x + (0.5 + 0.3 * s) * rng.normal(size=48)
        names = {"site": [site] * 48, "line": [f"L{i:02}" for i in line], "block": [f"B{r // 2}" for r in row]}
        frames.append(pl.DataFrame({**names, "row": row, "column": column, "x": x, "y": y}).sample(44, seed=s))
    return pl.concat(frames)


def build(model, variances, traits=None):
    source = {
        "data": {"phenotypes": trial()},
        "traits": traits or {"y": {"by": "site"}},
        "model": model,
        "variances": variances,
        "sampler": {"method": "reml"},
    }
    analysis = load_analysis(source)
    assembled = assemble(analysis, prepare(analysis)).model
    return assembled.design, assembled.covariances, assembled.residual


FIXED = {"block": {"reference": "B1"}, "x": {"kind": "covariate", "degree": 2}}
FIELDS = {f"field{s}": {"traits": [f"y|{s}"], "relationship": AR1} for s in SITES}
MODELS = {
    "classes and covariates": ({"fixed": FIXED, "random": {"line": {}}}, {"line": {"structure": "diagonal"}}),
    "correlated residuals": (
        {"fixed": FIXED, "random": {"line": {}}},
        {"line": {"structure": "diagonal"}, "residual": {"relationship": AR1}},
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_estimates_are_those_of_all_traits_together(name):
    model = build(*MODELS[name])
    assert group_traits(*model) == [(0,), (1,), (2,)]
    together, apart = (how(*model, 1e-6, 400) for how in (estimate, estimate_by_groups))
    assert together.facts["converged"] and apart.facts["converged"]
    assert apart.facts["groups_of_traits"] == 3
    assert 0.0 < apart.facts["distance_to_maximum"] <= 1e-6 * np.sqrt(3)
    for key in ("log_likelihood", "log_likelihood_without_2_pi", "aic", "bic"):
        assert apart.facts[key] == pytest.approx(together.facts[key], abs=1e-5)
    for key in ("estimated_elements", "degrees_of_freedom", "log_likelihood_constant"):
        assert apart.facts[key] == together.facts[key]
    psi, scale = together.variances.psi, np.abs(together.variances.psi).max()
    np.testing.assert_allclose(apart.variances.psi, psi, atol=2e-3 * scale, rtol=2e-3)
    for found, expected in zip((*apart.solutions, *apart.sd), (*together.solutions, *together.sd), strict=True):
        np.testing.assert_allclose(found, expected, atol=5e-3 * max(np.abs(expected).max(), 1e-9))
    errors = lambda found: {(e[0], found.elements.blocks[e[0]].name): np.sqrt(found.covariance[n, n])
                            for n, e in enumerate(found.elements.elements)}  # fmt: skip
    assert sorted(errors(apart).values()) == pytest.approx(sorted(errors(together).values()), rel=0.02)
    if together.correlations is not None:
        assert apart.correlations.sources == together.correlations.sources
        assert apart.correlations.labels(model[0]) == together.correlations.labels(model[0])
        np.testing.assert_allclose(apart.correlations.values, together.correlations.values, atol=5e-3)
    history = apart.facts["log_likelihoods"]
    assert history[-1] == pytest.approx(apart.facts["log_likelihood"])


def test_field_trends_of_each_site():
    """All correlations at once take more iterations than there are; one site after another converges."""
    model = build({"fixed": {"line": {}}, "random": FIELDS}, {})
    together, apart = estimate(*model, 1e-5, 100), estimate_by_groups(*model, 1e-5, 100)
    assert apart.facts["converged"]
    assert apart.facts["log_likelihood"] >= together.facts["log_likelihood"] - 1e-6
    assert apart.correlations.sources == together.correlations.sources
    assert apart.correlations.labels(model[0])[:2] == ["fieldA.rho[row]", "fieldA.rho[column]"]


def test_what_joins_traits():
    full = {"random": {"line": {}}}
    assert group_traits(*build(full, {})) == [(0, 1, 2)]
    shared = {"fixed": {"line": {}}, "random": {"field": {"relationship": AR1}}}
    assert group_traits(*build(shared, {"field": {"structure": "diagonal"}})) == [(0, 1, 2)]
    known = {"fixed": {"line": {}}, "random": {"field": {"relationship": AR1 | {"rho": 0.5, "fixed": True}}}}
    assert group_traits(*build(known, {"field": {"structure": "diagonal"}})) == [(0,), (1,), (2,)]
    pairs = {"random": {"line": {"traits": ["y|A", "y|C"]}, "row": {"traits": ["y|B"]}}}
    assert group_traits(*build(pairs, {})) == [(0, 2), (1,)]
    structured = {"line": {"structure": "compound_symmetry"}}
    assert group_traits(*build(full, structured)) == [(0, 1, 2)]


def test_a_prior_of_fixed_effects_joins_traits():
    design, *rest = build(*MODELS["classes and covariates"])
    precision = np.eye(3)
    precision[0, 2] = precision[2, 0] = 0.1
    number = next(i for i, term in enumerate(design.terms) if term.kind == "fixed" and term.n_components == 3)
    terms = list(design.terms)
    terms[number] = replace(terms[number], prior=Normal(precision))
    assert group_traits(replace(design, terms=tuple(terms)), *rest) == [(0, 1, 2)]


class Watch:
    """Keeps the iterations and correlations that it is told."""

    correlations = None

    def __init__(self):
        self.iterations, self.told = [], []

    def begin(self, description, operations, step):
        self.iterations.append([])

    def __call__(self, iteration, point, distance):
        self.iterations[-1].append(iteration)
        self.told.append((len(self.iterations), None if self.correlations is None else self.correlations.copy()))
        return False


def test_groups_begin_at_given_correlations_and_count_iterations_on():
    start, watch = np.linspace(0.1, 0.6, 6), Watch()
    apart = estimate_by_groups(*build(*MODELS["correlated residuals"]), 1e-4, 400, watch, start_correlations=start)
    for group in range(3):
        begun = next(correlations for number, correlations in watch.told if number == group + 1)
        np.testing.assert_allclose(begun[2 * group :], start[2 * group :], rtol=1e-12)
        np.testing.assert_allclose(begun[: 2 * group], apart.correlations.values[: 2 * group], rtol=1e-12)
    assert watch.iterations[1][0] >= watch.iterations[0][-1] and watch.iterations[2][0] >= watch.iterations[1][-1]
    assert watch.iterations[2][-1] <= apart.facts["iterations"]


def test_a_run_says_which_group_it_is_at(tmp_path, capsys):
    source = {
        "data": {"phenotypes": trial()},
        "traits": {"y": {"by": "site"}},
        "model": {"fixed": {"line": {}}, "random": FIELDS},
        "sampler": {"method": "reml"},
        "output": {"directory": str(tmp_path / "run")},
    }
    result = mmgibbs.run(source, verbose=True)
    said = capsys.readouterr().err
    assert "REML: y|A (1 of 3): " in said and "REML: y|C (3 of 3): " in said
    names = result.summary["parameter"].to_list()
    assert {f"field{s}.rho[row]" for s in SITES} <= set(names)
