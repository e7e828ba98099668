"""NVRTC compiles the structured engine's kernels for three GPU generations: no driver is needed."""

import numpy as np
import pytest

from mmgibbs.engines.coloured_gpu.source import kernels, source
from mmgibbs.model.relationships.identity import IdentityLists
from mmgibbs.model.relationships.pedigree import PedigreeLists
from mmgibbs.model.relationships.user_inverse import SparseLists

ARCHITECTURES = ("sm_80", "sm_90", "sm_100")


def compiled(specialisations, n_traits: int, real, pattern, architecture: str, output: str = "CUBIN") -> bytes:
    """The machine code, or the PTX, of the kernels of a model; every message of the compiler is an error."""
    nvrtc = pytest.importorskip("cuda.bindings.nvrtc", reason="needs cuda-bindings and nvidia-cuda-nvrtc")
    text, names = source(np.dtype(real), np.dtype(pattern)), kernels(specialisations, n_traits, np.dtype(real))
    status, program = nvrtc.nvrtcCreateProgram(text.encode(), b"structured.cu", 0, [], [])
    assert status == nvrtc.nvrtcResult.NVRTC_SUCCESS
    for name in names:
        assert nvrtc.nvrtcAddNameExpression(program, name.encode())[0] == nvrtc.nvrtcResult.NVRTC_SUCCESS
    options = [f"--gpu-architecture={architecture}".encode(), b"--fmad=false", b"--std=c++17"]
    (status,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
    _, size = nvrtc.nvrtcGetProgramLogSize(program)
    log = b" " * size
    nvrtc.nvrtcGetProgramLog(program, log)
    assert status == nvrtc.nvrtcResult.NVRTC_SUCCESS and not log.strip(b" \0"), log.decode()
    for name in names:
        status, lowered = nvrtc.nvrtcGetLoweredName(program, name.encode())
        assert status == nvrtc.nvrtcResult.NVRTC_SUCCESS and lowered
    _, size = getattr(nvrtc, f"nvrtcGet{output}Size")(program)
    code = b" " * size
    getattr(nvrtc, f"nvrtcGet{output}")(program, code)
    nvrtc.nvrtcDestroyProgram(program)
    return code


@pytest.mark.parametrize("architecture", ["sm_90"])
def test_a_model_of_three_traits(architecture):
    """Direct and maternal effects, contemporary groups, maternal environment: single precision."""
    assert len(compiled([(4, PedigreeLists), (1, IdentityLists)], 3, np.float32, np.uint8, architecture)) > 50_000


def test_more_components_and_many_missing_patterns():
    assert len(compiled([(5, SparseLists)], 2, np.float64, np.uint32, "compute_90", "PTX")) > 50_000


def test_bits_are_kept_and_rows_are_read_in_one_go():
    text = compiled([(4, PedigreeLists)], 3, np.float32, np.uint8, "compute_90", "PTX")
    assert b"fma." not in text and b"approx" not in text
    assert b"ld.global.v4.f32" in text


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("real", [np.float32, np.float64])
@pytest.mark.parametrize("n_traits", [1, 2, 3, 4])
def test_every_specialisation(n_traits, real, architecture):
    every = [(k, kin) for k in (1, 2, 3, 4, 5, 8) for kin in (IdentityLists, PedigreeLists, SparseLists)]
    assert len(compiled(every, n_traits, real, np.uint8, architecture)) > 50_000
