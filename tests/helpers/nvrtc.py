"""CUDA source through NVRTC, which needs no driver and no GPU."""

import re
from collections.abc import Sequence
from typing import NamedTuple

import pytest

ARCHITECTURES = ("sm_80", "sm_90", "sm_100")


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


def resources(text: str, architecture: str, expressions: Sequence[str]) -> dict[str, Resources]:
    """Of each kernel, by the name of its function; warnings of the compiler are errors."""
    _, said = compiled(text, architecture, "--std=c++17", "--ptxas-options=-v", expressions=expressions)
    assert "warning" not in said, said
    kernels = {}
    for report in re.split(r"Compiling entry function", said)[1:]:
        name = re.search(r"'_ZN7mmgibbs\d+([a-z_]+?)(?:I[LN]|E)", report)
        registers, spilled = re.search(r"Used (\d+) registers", report), re.search(r"(\d+) bytes spill stores", report)
        shared = re.search(r"(\d+) bytes smem", report)
        assert name and registers, report
        found = (int(match[1]) if match else 0 for match in (registers, spilled, shared))
        kernels[name[1]] = Resources(*found)
    return kernels
