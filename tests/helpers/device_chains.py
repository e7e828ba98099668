"""Chains of regressions on a device without a GPU, and what they have in common with those of the host."""

import numpy as np
import pytest
from helpers.host_device import HostDevice, build

from mmgibbs.errors import ModelError
from mmgibbs.regressions.arrays.base import Host
from mmgibbs.regressions.device_chains import ChainsOnDevice
from mmgibbs.regressions.loop import SideBySideChains
from mmgibbs.regressions.protocol import Keys

KEYS = Keys(3, (0, 4))


def compile_once(folder, make_source, kernels):
    """A function that compiles make_source(*types) when it is first called with these types, (values, products)."""
    libraries = {}

    def compile_types(*types):
        name = "_".join(np.dtype(dtype).name for dtype in types)
        if name not in libraries:
            libraries[name] = build(folder, name, make_source(*types), kernels)
        return libraries[name]

    return compile_types


def make_device_chains(library, model, keys=KEYS, burn_in=0, thin=1, state=None, backwards=False):
    """The chains of a model on a device whose kernels g++ compiled, and the device."""
    device = HostDevice(library, backwards)
    return ChainsOnDevice(model, device, keys, burn_in, thin, state), device


def assert_draws_of_host(chains, model, n_sweeps, tolerance, burn_in=0):
    """The kept draws of the host's chains, up to rounding, after so many sweeps; returns those chains."""
    expected = SideBySideChains(model, Host(1), KEYS, burn_in)
    for run in (expected, chains):
        run.advance(n_sweeps)
    draws = chains.result().draws
    for name, values in expected.result().draws.items():
        np.testing.assert_allclose(draws[name], values, rtol=tolerance, atol=tolerance, err_msg=name)
    return expected


def assert_sweep_of_host(library, model, changes, tolerance):
    """From the host's state after two sweeps, some of it changed by functions of arrays in place: after another sweep
    the state is the host's up to rounding, and finite.
    """
    before = SideBySideChains(model, Host(1), KEYS, 9)
    before.advance(2)
    state = {name: np.array(values) for name, values in before.state().items()}
    for name, change in changes.items():
        change(state[f"state.{name}"])
    expected = SideBySideChains(model, Host(1), KEYS, 9, state=state)
    chains, _ = make_device_chains(library, model, burn_in=9, state=state)
    for run in (expected, chains):
        run.advance(3)
    found = chains.state()
    for name, values in expected.state().items():
        if name.startswith("state."):
            assert np.isfinite(values).all(), name
            np.testing.assert_allclose(found[name], values, rtol=tolerance, atol=0, err_msg=name)


def fill(place, value):
    """A function that writes a value to a place of an array."""

    def change(array):
        array[place] = value

    return change


def assert_contract(library, model, n_sweeps, n_nodes):
    """The last of the chains is the same alone and resumed after two sweeps. A sweep is one graph of so many kernels,
    for which the host allocates, copies and waits for nothing, and sets the counter of cooperative launches back to 0,
    which no launch of the shim uses.
    """
    last = Keys(KEYS.seed, KEYS.chains[-1:])
    together, device = make_device_chains(library, model)
    together.advance(n_sweeps)
    alone, _ = make_device_chains(library, model, last)
    alone.advance(2)
    resumed, _ = make_device_chains(library, model, last, state=alone.state())
    resumed.advance(n_sweeps)
    for name, values in resumed.result().draws.items():
        np.testing.assert_array_equal(together.result().draws[name][-1:], values, err_msg=name)
    together.chains.arena["arrived"][:] = 7
    device.asked.clear()
    device.nodes.clear()
    for _ in range(3):
        together._sweep(0)
    assert device.asked == [] and device.nodes == [n_nodes] * 3
    assert together.chains.arena["arrived"][0] == 0


def assert_failed_factor_ends_the_chain(library, model, name):
    """A matrix that has no factor leaves no finite value of parameter `name`, and the chain says so."""
    chains, _ = make_device_chains(library, model)
    with pytest.raises(ModelError, match=f"cannot continue after sweep 3: a value of '{name}' is no longer finite"):
        chains.advance(3)
