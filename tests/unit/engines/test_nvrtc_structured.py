"""NVRTC compiles the structured engine's kernels for three GPU generations: no driver is needed."""

import numpy as np
import pytest
from helpers.nvrtc import compiled

from mmgibbs.engines.coloured_gpu.source import kernels, source
from mmgibbs.models.relationships.identity import IdentityLists
from mmgibbs.models.relationships.pedigree import PedigreeLists
from mmgibbs.models.relationships.user_inverse import SparseLists


def machine_code(specialisations, n_traits: int, real, pattern, architecture: str, output: str = "CUBIN") -> bytes:
    """Of the kernels of a model, or the PTX; every message of the compiler is an error."""
    text, names = source(np.dtype(real), np.dtype(pattern)), kernels(specialisations, n_traits, np.dtype(real))
    code, said = compiled(text, architecture, "--std=c++17", expressions=names, output=output)
    assert not said.strip(), said
    return code


@pytest.mark.slow
def test_a_model_of_three_traits():
    """Direct and maternal effects, contemporary groups, maternal environment: single precision."""
    assert len(machine_code([(4, PedigreeLists), (1, IdentityLists)], 3, np.float32, np.uint8, "sm_90")) > 50_000


@pytest.mark.slow
def test_more_components_and_many_missing_patterns():
    assert len(machine_code([(5, SparseLists)], 2, np.float64, np.uint32, "compute_90", "PTX")) > 50_000


@pytest.mark.slow
def test_sums_of_many_traits_fit_into_shared_memory():
    """Of a term of seven components, and of one; the machine code says so, not PTX."""
    text = source(np.dtype(np.float32), np.dtype(np.uint8))
    for k, n_traits in ((7, 18), (1, 45)):
        name = f"mmgibbs::scaling_strands<{k}, {n_traits}>"
        assert compiled(text, "sm_90", "--std=c++17", expressions=[name])[0]


# their log ratios have the normal tails of the CUDA library, to 1e-10 of those of the CPU; all others keep its bits
OF_LOG_RATIOS = (b"compare_cuts", b"compare_residual_scales")


def test_bits_are_kept_and_rows_are_read_in_one_go():
    text = machine_code([(4, PedigreeLists)], 3, np.float32, np.uint8, "compute_90", "PTX")
    kernels = {of.split(b"(")[0].split()[-1]: of for of in text.split(b".entry ")[1:]}
    inexact = [name for name, of in kernels.items() if b"fma." in of or b"approx" in of]
    assert len(kernels) > 10 and all(any(of in name for of in OF_LOG_RATIOS) for name in inexact), inexact
    assert b"ld.global.v4.f32" in text
