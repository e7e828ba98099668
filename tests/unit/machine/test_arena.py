"""Buffers of a sampler on a device: allocated together, or refused together; a ring of kept draws."""

import numpy as np
import pytest
from helpers.host_device import HostDevice

from mmgibbs.errors import DeviceError
from mmgibbs.machine.arena import Arena, count_bytes
from mmgibbs.machine.gpu_queue import GpuQueue
from mmgibbs.machine.ring import MAX_RING_BYTES, MAX_SLOTS, Ring, count_slots

CONSTANTS, BUFFERS = {"x": np.arange(5.0)}, {"state": ((2, 3), np.float64), "number": (2, np.uint32), "none": (0, "u1")}


@pytest.fixture
def queue():
    return GpuQueue(HostDevice(None), "use device: cpu")


def test_buffers_have_the_given_values_or_zeros(queue):
    arena = Arena(queue, CONSTANTS, BUFFERS)
    np.testing.assert_array_equal(queue.read(arena["x"]), CONSTANTS["x"])
    assert arena["state"].shape == (2, 3) and not queue.read(arena["state"]).any()
    assert arena["number"].dtype == np.uint32 and arena.address("x") == arena["x"].ctypes.data
    assert "none" in arena and "another" not in arena


def test_bytes_are_counted_before_anything_is_allocated(queue):
    assert count_bytes(CONSTANTS, BUFFERS) == 3 * 512  # 40, 48 and 8 bytes, each in a block of its own
    queue.device.free = 1535
    with pytest.raises(DeviceError, match="found 1,535 bytes free on the device, needed 1,536 for the sampler"):
        Arena(queue, CONSTANTS, BUFFERS)
    assert queue.device.asked == []
    queue.device.free = 1536
    assert Arena(queue, CONSTANTS, BUFFERS).nbytes == 1536


@pytest.mark.parametrize("first", [0, 1, 5, 8, 13])
@pytest.mark.parametrize("looks", [(), (1,), (4,), (3, 4, 5), (7, 8, 20), range(1, 40)])
def test_a_ring_gives_every_draw_once_and_in_order(queue, first, looks):
    """Whenever the host looks, and whichever draw is the first."""
    slots = Arena(queue, {}, {"slots": ((8, 2), np.float64)})["slots"]
    ring, taken = Ring(queue, slots, first), []
    for k in range(first, first + 39):
        slots[k % 8] = k
        ring.count()
        if k - first + 1 in looks:
            taken += ring.take()
    taken += ring.take()
    np.testing.assert_array_equal(np.array(taken), np.repeat(np.arange(first, first + 39.0), 2).reshape(-1, 2))
    assert ring.take() == []


def test_slots_are_an_even_number_that_fits():
    assert count_slots(8) == MAX_SLOTS and count_slots(MAX_RING_BYTES) == count_slots(MAX_RING_BYTES * 3) == 2
    assert count_slots(MAX_RING_BYTES // 7) == 6
