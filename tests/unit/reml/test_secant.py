"""What slopes at successive points say of the curvature."""

import numpy as np

from mmgibbs.reml.secant import update_secant

INFORMATION = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, -0.5], [0.5, -0.5, 2.0]])
FREE = np.ones(3, bool)


def begin():
    return update_secant(None, np.zeros(3), np.array([1.0, 2.0, 3.0]), np.diag([0.2, 0.5, 0.4]), FREE)


def test_a_step_has_the_fall_of_the_gradient_that_was_seen():
    first, step = begin(), np.array([0.3, -0.2, 0.5])
    second = update_secant(first, step, first.gradient - INFORMATION @ step, np.eye(3), FREE)
    assert not first.is_learnt and second.is_learnt
    np.testing.assert_allclose(second.inverse @ (INFORMATION @ step), step, atol=1e-12)
    np.testing.assert_allclose(second.inverse, second.inverse.T, atol=1e-12)
    assert np.linalg.eigvalsh(second.inverse).min() > 0


def test_it_begins_anew_where_others_move_or_slopes_bend_upwards():
    first, step, given = begin(), np.array([0.3, -0.2, 0.5]), np.diag([1.0, 2.0, 3.0])
    upwards = update_secant(first, step, first.gradient + INFORMATION @ step, given, FREE)
    at_bound = update_secant(first, step, first.gradient - INFORMATION @ step, given, np.array([True, True, False]))
    for secant in (upwards, at_bound):
        assert not secant.is_learnt
        np.testing.assert_array_equal(secant.inverse, given)
