"""How the queue asks the device, and the device CuPy: a stand-in for the module `cupy` that keeps what it was asked."""

import sys
import types

import numpy as np
import pytest
from helpers.fake_cupy import install_cupy

from mmgibbs.errors import DeviceError
from mmgibbs.machine.device import Device, DeviceMemoryError
from mmgibbs.machine.gpu_queue import STAGED, GpuQueue


class Stream:
    def __init__(self, asked):
        self.asked = asked

    def __enter__(self):
        self.asked.append("enter")

    def __exit__(self, *_):
        self.asked.append("leave")

    def begin_capture(self):
        self.asked.append("begin")

    def end_capture(self):
        self.asked.append("end")
        return types.SimpleNamespace(launch=lambda stream: self.asked.append("graph"))

    def synchronize(self):
        self.asked.append("wait")


class Memory:
    ptr = 4096

    def __init__(self, asked):
        self.asked = asked

    def memset_async(self, value, nbytes, stream):
        self.asked.append(("memset", value, nbytes))

    def copy_from_host_async(self, address, nbytes, stream):
        self.asked.append(("up", nbytes))

    def copy_to_host_async(self, address, nbytes, stream):
        self.asked.append(("down", nbytes))


@pytest.fixture
def asked(monkeypatch):
    asked = []

    def empty(shape, dtype):
        return np.empty(shape, dtype).view(type("DeviceArray", (np.ndarray,), {"data": Memory(asked)}))

    def module(code, options, name_expressions):
        asked.append((code, options, name_expressions))
        launch = lambda name: lambda *of_launch: asked.append((name, *of_launch))
        return types.SimpleNamespace(get_function=launch)

    cupy = install_cupy(monkeypatch)
    cupy.cuda.Stream = lambda non_blocking: Stream(asked)
    cupy.cuda.memory = types.SimpleNamespace(OutOfMemoryError=MemoryError)
    cupy.empty, cupy.RawModule = empty, module
    cupyx = types.ModuleType("cupyx")
    cupyx.empty_pinned = np.empty
    monkeypatch.setitem(sys.modules, "cupyx", cupyx)
    return asked


def test_buffers_are_filled_and_copied_on_one_stream_and_waited_for(asked):
    queue = GpuQueue()
    large = np.arange(3000.0)
    buffer = queue.upload(large)
    assert asked == [("memset", 0, large.nbytes), ("up", large.nbytes), "wait"]
    assert queue.address(buffer) == 4096
    queue.read(buffer)
    assert asked[3:] == [("down", large.nbytes), "wait"]


def test_small_values_are_not_waited_for_until_their_room_is_full(asked):
    """They go from memory of the queue, so that the caller's may change; it is used again once copies are done."""
    queue = GpuQueue()
    buffer = queue.empty(100, np.float64)
    for value in range(200):
        queue.write(buffer, np.full(100, float(value)))
    copies = [what for what in asked if what == ("up", 800)]
    assert len(copies) == 200 and 0 < asked.count("wait") <= 200 * 832 // STAGED
    until = asked.index("wait")
    assert asked[1:until] == [("up", 800)] * (STAGED // 832)
    queue.read(buffer)
    assert queue._staged == 0


def test_kernels_are_instances_without_fused_multiply_adds(asked):
    kernels = GpuQueue().kernels("text", ["f<1>", "f<2>"])
    assert asked == [("text", ("--fmad=false", "--std=c++17"), ("f<1>", "f<2>"))]
    kernels["f<2>"](7, 128, None, np.uint32(3))
    assert asked[1:] == ["enter", ("f<2>", (7,), (128,), (None, np.uint32(3))), "leave"]


def test_work_is_recorded_once_and_repeated(asked):
    queue = GpuQueue()
    for _ in range(4):
        queue.repeat("name", lambda: asked.append("work"))
    assert asked == ["work", "enter", "begin", "work", "end", "leave", "graph", "graph", "graph"]
    queue.repeat("another", lambda: asked.append("other"))
    assert asked[9:] == ["other"]


def test_memory_that_ends_is_a_device_error(asked, monkeypatch):
    def refuse(*_):
        raise DeviceMemoryError("Out of memory allocating 8 bytes")

    monkeypatch.setattr(Device, "zeros", refuse)
    monkeypatch.setattr(Device, "free_bytes", lambda self: 2e9)
    with pytest.raises(
        DeviceError, match=r"2.0 GB free on the device are too few .*allocating 8 bytes.*precision: single"
    ):
        GpuQueue(remedy="use precision: single").empty(1, np.float64)
