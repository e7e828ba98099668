"""The serial engine against the dense equations: the same draws, number by number."""

import numpy as np
import pytest
from helpers.mixed_models import starting_point
from reference import dense, models

from mmgibbs.draws.normal import normal
from mmgibbs.draws.over_relaxation import OVER_RELAXED
from mmgibbs.draws.purpose import LOCATION, stream
from mmgibbs.engines.serial import SerialEngine
from mmgibbs.equations.partition import partition
from mmgibbs.equations.structured import structured_equations

KEY = (7, 3)


def engine_for(example, kind="term", update="level", precision="double", **options):
    design = example.design
    engine = SerialEngine(structured_equations(design, partition(design, kind, **options), precision), update=update)
    engine.set_variances(example.G, example.R)
    return engine


def dense_sweep(example, engine, theta, number, joint):
    """One sweep written out on the dense equations, with the engine's own normals."""
    equations = dense.build(example.design, example.G, example.R)
    x = equations.vector(theta)
    part = engine.equations.partition
    for block in part.blocks:
        for level in part.order[block.term][block.first : block.last]:
            components = [
                c
                for c in range(block.first_component, block.last_component)
                if (block.term, level, c) in equations.number
            ]
            sites = [equations.index(block.term, level, c) for c in components]
            z = [normal(number, int(level), stream(LOCATION, block.term), c, *KEY) for c in components]
            for group in [range(len(sites))] if joint else [[i] for i in range(len(sites))]:
                if not len(group):
                    continue
                at = [sites[i] for i in group]
                mean, covariance = dense.conditional(equations, x, at)
                root = np.linalg.cholesky(np.linalg.inv(covariance))
                noise = np.linalg.solve(root.T, [z[i] for i in group])
                a = OVER_RELAXED if joint else 0.0
                x[at] = (1 - a) * mean + a * x[at] + np.sqrt(1 - a**2) * noise
    return equations.theta(x)


@pytest.mark.parametrize("name", models.NAMES)
@pytest.mark.parametrize(
    "kind, update", [("term", "level"), ("term", "site"), ("colour", "level"), ("equal", "level"), ("effect", "site")]
)
def test_a_sweep_draws_what_the_dense_equations_draw(name, kind, update):
    example = models.example(name)
    engine = engine_for(example, kind, update)
    theta = starting_point(example)
    engine.start(theta)
    for number in (1, 2, 3):
        theta = dense_sweep(example, engine, theta, number, joint=update == "level")
        engine.sweep(number, KEY)
        for term, ours, expected in zip(example.design.terms, engine.fetch(), theta, strict=True):
            np.testing.assert_allclose(ours, expected, atol=1e-9 * max(1.0, np.abs(expected).max()), err_msg=term.name)


@pytest.mark.parametrize("name", models.NAMES)
def test_residuals_are_kept_up_to_date(name):
    example = models.example(name)
    engine = engine_for(example)
    for number in range(1, 30):
        engine.sweep(number, KEY)
    kept = engine.e.copy()
    engine.refresh()
    np.testing.assert_allclose(kept, engine.e, atol=1e-9 * np.abs(engine.e).max())


@pytest.mark.parametrize("name", models.NAMES)
def test_quadratic_forms_and_residual_products(name):
    example = models.example(name)
    engine = engine_for(example, "colour")
    theta = starting_point(example)
    engine.start(theta)
    for i in example.random_terms():
        K_inverse = dense.relationship_inverse(example.design.terms[i])
        np.testing.assert_allclose(engine.quadratic_form(i), theta[i].T @ K_inverse @ theta[i], rtol=1e-9, atol=1e-9)
    observed = example.design.patterns[example.design.pattern]
    if observed.all():
        equations = dense.build(example.design, example.G, example.R)
        e = equations.residuals(equations.vector(theta))
        products, n = engine.residual_products(1, KEY, [tuple(range(e.shape[1]))])
        np.testing.assert_allclose(products, (e * example.design.weight[:, None]).T @ e, rtol=1e-9)
        assert n.tolist() == [len(e)]


@pytest.mark.slow  # compiles every kernel once more
def test_single_precision_follows_double_for_a_sweep():
    example = models.example("three_traits_maternal")
    single, double = engine_for(example, precision="single"), engine_for(example)
    for number in (1, 2):
        single.sweep(number, KEY)
        double.sweep(number, KEY)
    for a, b in zip(single.fetch(), double.fetch(), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-4 * max(1.0, np.abs(b).max()))
        assert not np.array_equal(a, b)
