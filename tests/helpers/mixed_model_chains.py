"""Chains of mixed models on a device without a GPU, beside those of the host."""

import numpy as np


def assert_near(actual, expected, what, tolerance=1e-9):
    """Arrays of one shape, equal up to `tolerance` times the largest element."""
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance * np.abs(expected).max(initial=0), err_msg=what)


def assert_same_results(chain, expected):
    """Draws, facts of sweeps and moments of two chains, equal up to rounding."""
    actual, reference = chain.result(), expected.result()
    for kept in ("draws", "sample_stats"):
        arrays, references = getattr(actual, kept), getattr(reference, kept)
        assert arrays.keys() == references.keys()
        for name, values in references.items():
            if name.startswith("marker_drift"):  # which is rounding itself
                np.testing.assert_allclose(arrays[name], values, rtol=0, atol=1e-12, err_msg=name)
            else:
                assert_near(arrays[name], values, name)
    for part, values in reference.moments.state().items():
        assert_near(actual.moments.state()[part], values, part)


def assert_continues(make_chains, n_before, n_sweeps):
    """A chain that stopped after n_before sweeps: on the same device bit for bit that which did not, on the other up
    to rounding.

    make_chains(states): the chains of the host and of a device; states: one each to continue from, or None.
    """
    host, stopped = make_chains((None, None))
    _, whole = make_chains((None, None))
    for run in (host, stopped):
        run.advance(n_before)
    of_host, of_device = ({name: np.array(values) for name, values in run.state().items()} for run in (host, stopped))
    moved_to_host, moved_to_device = make_chains((of_device, of_host))
    _, resumed = make_chains((None, of_device))
    for run in (whole, resumed, moved_to_host, moved_to_device):
        run.advance(n_sweeps)
    for name, values in whole.result().draws.items():
        np.testing.assert_array_equal(resumed.result().draws[name], values, err_msg=name)
    for part, values in whole.result().moments.state().items():
        np.testing.assert_array_equal(resumed.result().moments.state()[part], values, err_msg=part)
    for run in (moved_to_host, moved_to_device):
        assert_same_results(run, whole)
