"""Densities and chances that are not numbers end a chain with a named error, and every loop has an end."""

from itertools import pairwise

import numpy as np
import pytest
from helpers.key_models import with_categories
from helpers.mixed_models import equations_of
from statistical.test_markers import model as marker_model
from statistical.test_markers import spec

from mmgibbs.engines.serial import SerialEngine
from mmgibbs.errors import ModelError
from mmgibbs.models.covariance import CovarianceModel, full_block
from mmgibbs.models.priors.inverse_wishart import InverseWishart
from mmgibbs.models.structures.correlated import CompoundSymmetry
from mmgibbs.sampler.chain import Chain
from mmgibbs.sampler.correlations import slice_parameters
from mmgibbs.sampler.covariances import draw_covariance
from mmgibbs.sampler.markers.choose import NO_CLASS, choose
from mmgibbs.sampler.markers.effects import MarkerEffects
from mmgibbs.sampler.schedule import Schedule
from mmgibbs.sampler.slice import MAX_TRIES, LostDensityError, draw_each, shrink
from mmgibbs.sampler.structured_covariance import draw_structure

NAN = float("nan")
LOST = (NAN, np.inf, -np.inf)


def chain_of(model, **schedule):
    equations = equations_of(model, "term")
    return Chain(model, SerialEngine(equations), Schedule(**{"burn_in": 2, "samples": 6} | schedule), (5, 1))


@pytest.mark.parametrize("value", LOST)
def test_a_slice_at_a_lost_density_is_refused(value):
    rng = np.random.default_rng(1)
    with pytest.raises(LostDensityError, match=f"log density {value}"):
        draw_each(lambda x: value, np.zeros(2), rng, range(2))
    with pytest.raises(LostDensityError):
        slice_parameters(lambda x: value, np.array([0.1]), np.array([[-0.9, 0.9]]), 3, 1 << 24, (1, 0))


def test_an_interval_that_has_no_length_left_leaves_the_value():
    """No proposal is high enough, or its density a number; each is an end of the next interval."""
    for elsewhere in (-np.inf, NAN):
        ends = []

        def propose(low, high, ends=ends):
            ends.append(high - low)
            return 0.5 * (low + high) + 1e-3 * (high - low)

        found = shrink(lambda x, far=elsewhere: far, 0.25, -1.0, -1.0, 1.0, propose)
        assert found == 0.25 and len(ends) == MAX_TRIES
        assert all(after <= before for before, after in pairwise(ends))


def test_correlations_of_traits_in_categories_are_named():
    W = np.array([[NAN, 1.0], [1.0, 30.0]])
    model = CovarianceModel(
        np.eye(2), False, full_block(2), InverseWishart(5.0, np.eye(2)), unit=(0, 1), name="residual"
    )
    with pytest.raises(ModelError, match=r"variances\.residual: cannot be drawn at sweep 7 of chain 3: .* got"):
        draw_covariance(model, W, 20, 7, 1, (5, 2))


@pytest.mark.parametrize("unit", [(0,), (0, 1)])
def test_products_that_are_not_positive_definite_beside_them_are_named(unit):
    """No traceback of a factor: the message of every matrix that cannot be drawn."""
    products = np.array([[9.0, 0.0, 9.0], [0.0, 9.0, 0.0], [9.0, 0.0, 9.0 - 1e-3]])
    model = CovarianceModel(
        np.eye(3), False, full_block(3), InverseWishart(5.0, 1e-9 * np.eye(3)), unit=unit, name="residual"
    )
    with pytest.raises(
        ModelError, match=r"variances\.residual: no covariance matrix can be drawn at sweep 7 of chain 3"
    ):
        draw_covariance(model, products, 20, 7, 1, (5, 2))


def test_parameters_of_structures():
    structure = CompoundSymmetry(3, False, np.ones(3))
    phi = structure.fit(np.eye(3) + 0.5)
    with pytest.raises(LostDensityError):
        draw_structure(structure, np.full((3, 3), NAN), 20, phi, np.random.default_rng(1))


@pytest.mark.parametrize("weights", [(NAN, NAN, NAN), (0.0, 0.0, NAN), (-np.inf,) * 3, (np.inf, 0.0, 0.0)])
def test_weights_that_give_no_chances_choose_no_class(weights):
    assert choose(np.array(weights), 0.5, np.empty(3, np.float32)) == NO_CLASS


def test_weights_that_give_chances_choose_one():
    chances = np.empty(3, np.float32)
    assert choose(np.array([-np.inf, 700.0, 700.0]), 0.75, chances) == 2
    assert chances.tolist() == [0.0, 0.5, 0.5]


@pytest.mark.parametrize("counts", [None, (1.0, 1.0, 1.0)])  # shares that are sampled move every second sweep
def test_classes_of_snps_are_named(counts):
    chain = chain_of(marker_model(spec("bayes_r", counts=counts)))
    chain.advance(3)
    step = next(s for s in chain.steps if isinstance(s, MarkerEffects))
    step.prior.v = NAN
    with pytest.raises(ModelError, match=r"model\.markers\.snps: .* cannot be drawn at sweep 4 of chain 2"):
        chain.advance(4)


def test_a_kept_draw_that_is_not_finite_ends_the_chain():
    chain = chain_of(with_categories(0))
    chain.advance(3)
    liabilities = chain.steps[0]
    draws = liabilities.draws
    liabilities.draws = lambda: {name: values * NAN for name, values in draws().items()}
    with pytest.raises(
        ModelError,
        match="chain 2 cannot continue after sweep 4: expected finite draws, got infinite or undefined ones of: thr",
    ):
        chain.advance(4)


def test_effects_that_are_not_finite_end_the_chain():
    chain = chain_of(marker_model(spec("rr")))
    chain.advance(3)
    chain.engine.theta[0][0] = np.inf
    with pytest.raises(
        ModelError, match="after sweep 3: expected finite effects, got infinite or undefined ones of 'intercept'"
    ):
        chain._refuse_lost_values()
