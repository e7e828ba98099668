"""What a user hears where there is no GPU, and how the CuPy calls are made: a stand-in for the module `cupy`."""

import builtins
import sys
import types

import numpy as np
import pytest
from helpers.fake_cupy import CUDARuntimeError, install_cupy

from mmgibbs.errors import DeviceError
from mmgibbs.machine import device


@pytest.fixture
def no_cupy(monkeypatch):
    real = builtins.__import__

    def refuse(name, *args, **kwargs):
        if name.split(".")[0] == "cupy":
            raise ImportError("No module named 'cupy'")
        return real(name, *args, **kwargs)

    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    monkeypatch.setattr(builtins, "__import__", refuse)


def test_cupy_missing_says_how_to_install_it(no_cupy):
    with pytest.raises(DeviceError, match=r'device: gpu needs CuPy.*pip install "mmgibbs\[gpu\]".*device: cpu'):
        device.import_cupy()


@pytest.mark.parametrize(
    "found, message",
    [
        ({"driver": 0}, "no NVIDIA driver on this machine"),
        ({"driver": 12040}, r"CUDA 12\.4, needed CUDA 13\.2: update the driver, or install.*mmgibbs\[gpu12\]"),
        ({"devices": 0}, "found no CUDA device"),
        (
            {"devices": CUDARuntimeError("cudaErrorNoDevice: no CUDA-capable device is detected")},
            "found no CUDA device.*cudaErrorNoDevice.*nvidia-smi",
        ),
    ],
)
def test_a_missing_driver_or_device_is_named(monkeypatch, found, message):
    install_cupy(monkeypatch, **found)
    with pytest.raises(DeviceError, match=message):
        device.import_cupy()


def test_a_device_that_is_there_is_taken(monkeypatch):
    module = install_cupy(monkeypatch)
    assert device.Device().cupy is module


class Recorder:
    """A kernel that keeps what it was launched with."""

    def __init__(self):
        self.launches, self.current = [], None

    def __call__(self, blocks, threads, arguments):
        self.launches.append((blocks, threads, arguments, self.current))


class Stream:
    def __init__(self, recorder):
        self.recorder = recorder

    def __enter__(self):
        self.recorder.current = self

    def __exit__(self, *_):
        self.recorder.current = None


def test_a_launch_covers_every_thread_and_sends_whole_numbers_as_uint64():
    kernel = Recorder()
    kernels = device.Kernels(types.SimpleNamespace(get_function=lambda name: {"f": kernel}[name]))
    stream, array = Stream(kernel), np.zeros(3)
    kernels.launch("f", 0, array, stream=stream)
    kernels.launch("f", device.THREADS_PER_BLOCK, array, 7, stream=stream)
    kernels.launch("f", device.THREADS_PER_BLOCK + 1, array, np.int64(7), stream=stream)
    (one, two) = kernel.launches
    assert one[0] == (1,) and two[0] == (2,) and one[1] == two[1] == (device.THREADS_PER_BLOCK,)
    for (_, _, arguments, where), n in ((one, device.THREADS_PER_BLOCK), (two, device.THREADS_PER_BLOCK + 1)):
        assert where is stream and arguments[1] is array
        assert arguments[::2] == (n, 7) and {type(a) for a in arguments[::2]} == {np.uint64}


def test_out_of_memory_is_told_apart(monkeypatch):
    module = install_cupy(monkeypatch)

    class OutOfMemoryError(MemoryError):
        pass

    def refuse(shape, dtype):
        raise OutOfMemoryError("Out of memory allocating 8 bytes")

    module.cuda.memory = types.SimpleNamespace(OutOfMemoryError=OutOfMemoryError)
    module.empty = refuse
    with pytest.raises(device.DeviceMemoryError, match="allocating 8 bytes"):
        device.Device().empty(1, np.float64)
