"""CUDA source through NVRTC, which needs no driver and no GPU."""

from collections.abc import Sequence

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
