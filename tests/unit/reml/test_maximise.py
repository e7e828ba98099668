"""The maximum: no neighbour is higher, also on the boundary; what does not converge says so."""

import re
from dataclasses import replace

import numpy as np
import pytest
from helpers.likelihoods import CLASSES, example_of, likelihood_of, parts
from reference import models

from mmgibbs.reml.estimate import estimate
from mmgibbs.reml.maximise import maximise

# Ten variances of 35 records, twenty-four of 49: at their maximum two and five combinations have no variance, and
# average information alone takes 87 iterations. With a FLOOR of 0 they would be 1e-4 higher.
FLAT = {"direct_maternal": -71.144578292, "three_traits_maternal": -101.450716138}
ASKED = [*models.NAMES, CLASSES]


@pytest.mark.parametrize("name", ASKED)
def test_no_neighbour_is_higher(name):
    likelihood, elements, start = likelihood_of(example_of(name))
    found = maximise(likelihood, elements, start, 1e-5, 100)
    assert found.converged and found.log_likelihoods[-1] > found.log_likelihoods[0]
    assert np.all(np.diff(found.log_likelihoods) > -1e-8)
    rng = np.random.default_rng(5)
    blocks = [block.scaled(block.extract(found.point.variances)) for block in elements.blocks]
    for _ in range(30):
        moved = found.point.variances._replace(
            G=[None if g is None else g.copy() for g in found.point.variances.G], R=found.point.variances.R.copy()
        )
        for block, matrix in zip(elements.blocks, blocks, strict=True):
            k = len(matrix)
            values, vectors = np.linalg.eigh(matrix)
            B = vectors * np.sqrt(values) + 0.02 * rng.standard_normal((k, k))
            near = (B @ B.T + 1e-5 * np.eye(k)) * block.scale[:, None] * block.scale
            block.assign(moved, near)
        assert likelihood.evaluate(moved).log_likelihood < found.point.log_likelihood + 1e-6


@pytest.mark.parametrize("name", FLAT)
def test_where_average_information_creeps_the_maximum_is_found(name):
    likelihood, elements, start = likelihood_of(example_of(name))
    found = maximise(likelihood, elements, start, 1e-5, 100)
    assert found.converged and found.point.log_likelihood == pytest.approx(FLAT[name], abs=1e-7)


def test_starts_do_not_matter():
    likelihood, elements, start = likelihood_of(models.example("univariate_animal"))
    ends = []
    for scale in (0.05, 1.0, 20.0):
        there = start._replace(G=[None if g is None else g * scale for g in start.G])
        ends.append(elements.vector(maximise(likelihood, elements, there, 1e-8, 200).point.variances))
    np.testing.assert_allclose(ends[1:], [ends[0]] * 2, rtol=1e-5)


def test_a_variance_at_its_boundary_is_named():
    """Records of random_groups, whose genetic matrix has no full rank at the maximum."""
    example = models.example("random_groups")
    found = estimate(example.design, *parts(example), 1e-5, 200)
    assert len(found.notes) == 1 and "on the boundary" in found.notes[0] and found.notes[0].startswith("genetic")
    assert found.criteria.parameters == len(found.elements) - 1


def test_what_does_not_converge_says_so():
    example = models.example("direct_maternal")
    found = estimate(example.design, *parts(example), 1e-5, 1)
    assert re.match(r"REML has not converged after 1 iteration, .* sampler.max_iterations: 1;", found.warnings[0])
    assert found.warnings[0].endswith("The results are those of this point") and not found.facts["converged"]
    assert found.criteria.log_likelihood == max(found.facts["log_likelihoods"])


@pytest.mark.parametrize(("tolerance", "converges"), [(1e-3, True), (0.1, False)])
def test_where_no_step_rises_the_maximum_is_near_and_said_to_be(monkeypatch, tolerance, converges):
    """As rounding makes it where one variance is millions of times another; not from far away."""
    example = example_of(CLASSES)
    near = estimate(example.design, *parts(example), tolerance, 100)
    monkeypatch.setattr("mmgibbs.reml.maximise._uphill", lambda *at: None)
    monkeypatch.setattr("mmgibbs.reml.maximise._em", lambda *at: None)
    there = replace(example, G=near.variances.G, R=near.variances.R)
    if not converges:
        (warning,) = estimate(example.design, *parts(there), 1e-15, 100).warnings
        assert "no step increases the likelihood further" in warning
        return
    found = estimate(example.design, *parts(there), 1e-15, 100)
    assert found.facts["iterations"] == 0 and 1e-15 < found.facts["distance_to_maximum"] <= 1e-3
    (note,) = found.warnings
    assert note.startswith("the estimates are about ") and "sampler.tolerance: found 1e-15" in note
