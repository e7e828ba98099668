"""CUDA source through NVRTC, which needs no driver and no GPU."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import pytest

ARCHITECTURES = ("sm_80", "sm_90", "sm_100")
MAX_SHARED_BYTES = 48 * 1024  # that a block may take without being asked for
MAX_REGISTERS = 128  # of a thread


def compiled(
    text: str, architecture: str, *options: str, expressions: Sequence[str] = (), output: str = "CUBIN"
) -> tuple[bytes, str]:
    """The machine code, or the PTX, and what the compiler said; expressions: instances of templates that it makes."""
    nvrtc = pytest.importorskip("cuda.bindings.nvrtc", reason="needs cuda-bindings and nvidia-cuda-nvrtc")
    done = nvrtc.nvrtcResult.NVRTC_SUCCESS

    def read(name: str) -> bytes:
        """By `nvrtcGet...` into a buffer of ours: never into bytes, of which Python keeps one object for every place
        that has the same single character."""
        status, size = getattr(nvrtc, f"nvrtcGet{name}Size")(program)
        assert status == done
        buffer = bytearray(size)
        assert getattr(nvrtc, f"nvrtcGet{name}")(program, buffer) == (done,)
        return bytes(buffer)

    status, program = nvrtc.nvrtcCreateProgram(text.encode(), b"kernels.cu", 0, [], [])
    assert status == done
    for expression in expressions:
        assert nvrtc.nvrtcAddNameExpression(program, expression.encode()) == (done,)
    given = [option.encode() for option in (f"--gpu-architecture={architecture}", "--fmad=false", *options)]
    (status,) = nvrtc.nvrtcCompileProgram(program, len(given), given)
    said = read("ProgramLog").rstrip(b"\0").decode()
    assert status == done, said
    for expression in expressions:
        status, lowered = nvrtc.nvrtcGetLoweredName(program, expression.encode())
        assert status == done and lowered
    code = read(output)
    nvrtc.nvrtcDestroyProgram(program)
    return code, said


class Resources(NamedTuple):
    """What a kernel takes on a device, as the compiler reports it."""

    registers: int
    spilled_bytes: int
    shared_bytes: int


def read_resources(text: str, architecture: str, expressions: Sequence[str]) -> list[tuple[str, Resources]]:
    """Of each kernel, with the name of its function; warnings of the compiler are errors."""
    _, said = compiled(text, architecture, "--std=c++17", "--ptxas-options=-v", expressions=expressions)
    assert "warning" not in said, said
    kernels = []
    for report in re.split(r"Compiling entry function", said)[1:]:
        name = re.search(r"'_ZN7mmgibbs\d+([a-z_]+?)(?:I[LNfd]|E)", report)
        registers, spilled = re.search(r"Used (\d+) registers", report), re.search(r"(\d+) bytes spill stores", report)
        shared = re.search(r"(\d+) bytes smem", report)
        assert name and registers, report
        numbers = (int(match[1]) if match else 0 for match in (registers, spilled, shared))
        kernels.append((name[1], Resources(*numbers)))
    return kernels


def assert_kernels_fit(
    text: str,
    architecture: str,
    expressions: Sequence[str],
    names: Iterable[str],
    spilled_bytes: Mapping[str, int],
) -> None:
    """The kernels of these names, all that the text has, take no more of a device than a block can have.

    spilled_bytes: of registers, by the name of a kernel; of others none.
    """
    kernels = read_resources(text, architecture, expressions)
    assert {name for name, _ in kernels} == set(names)
    for name, taken in kernels:
        assert taken.spilled_bytes <= spilled_bytes.get(name, 0), name
        assert taken.shared_bytes <= MAX_SHARED_BYTES and taken.registers <= MAX_REGISTERS, name
