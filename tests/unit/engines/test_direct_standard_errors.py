"""PEV and variances of fixed levels from the selected inverse against a dense one."""

import numpy as np
import pytest
from helpers.small_analysis import small_design
from helpers.support import ROOT
from reference import dense, models

from mmgibbs.config import load_config
from mmgibbs.data.prepare import prepare
from mmgibbs.engines.direct import standard_errors
from mmgibbs.engines.direct.standard_errors import affordable_posterior_sd, posterior_sd
from mmgibbs.likelihood import coefficients
from mmgibbs.machine import memory


@pytest.mark.parametrize("name", models.NAMES)
def test_every_model(name):
    example = models.example(name)
    truth = dense.build(example.design, example.G, example.R)
    found = posterior_sd(example.design, example.G, example.R)
    for one, other in zip(found, truth.theta(np.sqrt(np.diag(truth.covariance))), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9)


def test_scaled_covariates(tmp_path):
    """B by transforming every unit vector."""
    design, G, R = small_design(tmp_path)
    assert design.rescale and design.shifts
    truth = dense.build(design, G, R)
    shapes = [(t.n_levels, t.n_components) for t in design.terms]
    zero = np.concatenate([z.ravel() for z in design.to_original_scale([np.zeros(s) for s in shapes])])
    B = []
    for i in range(truth.size):
        moved = design.to_original_scale(truth.theta(np.eye(truth.size)[i]))
        B.append(np.concatenate([m.ravel() for m in moved]) - zero)
    expected = np.sqrt(np.einsum("ix,ij,jx->x", np.array(B), truth.covariance, np.array(B)))
    found = np.concatenate([sd.ravel() for sd in posterior_sd(design, G, R)])
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_what_takes_too_long_or_does_not_fit_is_left_out_and_says_why(monkeypatch):
    example = models.example("bivariate_missing")
    arguments = example.design, example.G, example.R
    for one, other in zip(affordable_posterior_sd(*arguments), posterior_sd(*arguments), strict=True):
        np.testing.assert_array_equal(one, other)
    with monkeypatch.context() as patch:
        patch.setattr(memory, "free_bytes", lambda: 10)
        assert "0.0 MB free" in affordable_posterior_sd(*arguments)
    monkeypatch.setattr(standard_errors, "MOST_OPERATIONS", 10.0)
    assert affordable_posterior_sd(*arguments).endswith("operations, more than 1e+01")
    monkeypatch.setattr(standard_errors, "MOST_EQUATIONS", 3)
    assert affordable_posterior_sd(*arguments).endswith("equations are more than 3")


def test_a_dense_block_is_refused_before_its_pattern_is_made(monkeypatch):
    """Whose lists and pattern alone would take 87 bytes an element: of 20,000 genotyped animals 35 GB."""
    config = load_config(ROOT / "configs" / "single_step.yaml")
    design = prepare(config).design
    G = [None if t.kind == "fixed" else np.eye(t.n_components) for t in design.terms]
    monkeypatch.setattr(coefficients, "explicit_equations", lambda *_: pytest.fail("lists were made"))
    monkeypatch.setattr(standard_errors, "MOST_OPERATIONS", 10)
    assert "all related takes over" in affordable_posterior_sd(design, G, np.eye(design.n_traits))
    monkeypatch.setattr(standard_errors, "MOST_OPERATIONS", 1e12)
    monkeypatch.setattr(memory, "free_bytes", lambda: 1000)
    assert "the pattern of a factor of" in affordable_posterior_sd(design, G, np.eye(design.n_traits))
