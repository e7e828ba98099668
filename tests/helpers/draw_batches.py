"""Many draws of one family, in Numba and through the C++ twins: draw i belongs to level i of the given sweep.

Every family is one function batch(*parameters, sweep) -> (n,) float64, its parameters (n,) float64 arrays.
"""

import ctypes
import shutil
import subprocess

import numpy as np
import pytest

from mmgibbs.draws import exponential as ex
from mmgibbs.draws import gamma as ga
from mmgibbs.draws import inverse_gaussian as ig
from mmgibbs.draws import normal as no
from mmgibbs.draws import poisson_log_normal as pl
from mmgibbs.draws import polya_gamma as pg
from mmgibbs.draws import truncated_normal as tn
from mmgibbs.draws.purpose import REGRESSION_LATENT, stream
from mmgibbs.draws.source import FOLDER, NAMES, cuda_source
from mmgibbs.pedigree.kernels import kernel

STREAM = stream(REGRESSION_LATENT, 9)
DRAW, SEED, CHAIN = 3, 20240, 1

# family -> (number of parameters, C++ expression of one draw, with its parameters p0[i], p1[i], p2[i])
SITE = f"sweep, i, {STREAM}u, {DRAW}u, {SEED}u, {CHAIN}u"
FAMILIES = {
    "normal": (0, f"normal({SITE})"),
    "exponential": (0, f"exponential({SITE})"),
    "gamma": (1, f"gamma(p0[i], {SITE})"),
    "log_gamma_draw": (1, f"log_gamma_draw(p0[i], {SITE})"),
    "chi_square": (1, f"chi_square(p0[i], {SITE})"),
    "truncated_normal_positive": (1, f"truncated_normal_positive(p0[i], {SITE})"),
    "truncated_normal_negative": (1, f"truncated_normal_negative(p0[i], {SITE})"),
    "truncated_normal": (3, f"truncated_normal(p0[i], p1[i], p2[i], {SITE})"),
    "inverse_gaussian": (2, f"inverse_gaussian(p0[i], p1[i], {SITE})"),
    "polya_gamma_1": (1, f"polya_gamma_1(p0[i], {SITE})"),
    "polya_gamma": (2, f"polya_gamma((long long)p0[i], p1[i], {SITE})"),
    "poisson_log_normal": (3, f"poisson_log_normal(p0[i], 1.5, p1[i], p2[i], {SITE})"),
    "over_relaxed_chi_square": (2, f"over_relaxed_chi_square(p0[i], p1[i], {SITE})"),
}


@kernel  # kept for these sources alone: Numba's own cache would not see a change of what is called
def _fill(family, p0, p1, p2, sweep, out):
    for i in range(out.shape[0]):
        if family == 0:
            out[i] = no.normal(sweep, i, STREAM, DRAW, SEED, CHAIN)
        elif family == 1:
            out[i] = ex.exponential(sweep, i, STREAM, DRAW, SEED, CHAIN)
        elif family == 2:
            out[i] = ga.gamma(p0[i], sweep, i, STREAM, DRAW, SEED, CHAIN)
        elif family == 3:
            out[i] = ga.log_gamma_draw(p0[i], sweep, i, STREAM, DRAW, SEED, CHAIN)
        elif family == 4:
            out[i] = ga.chi_square(p0[i], sweep, i, STREAM, DRAW, SEED, CHAIN)
        elif family == 5:
            out[i] = tn.truncated_normal_positive(p0[i], sweep, i, STREAM, DRAW, SEED, CHAIN)
        elif family == 6:
            out[i] = tn.truncated_normal_negative(p0[i], sweep, i, STREAM, DRAW, SEED, CHAIN)
        elif family == 7:
            out[i] = tn.truncated_normal(p0[i], p1[i], p2[i], sweep, i, STREAM, DRAW, SEED, CHAIN)
        elif family == 8:
            out[i] = ig.inverse_gaussian(p0[i], p1[i], sweep, i, STREAM, DRAW, SEED, CHAIN)
        elif family == 9:
            out[i] = pg.polya_gamma_1(p0[i], sweep, i, STREAM, DRAW, SEED, CHAIN)
        elif family == 10:
            out[i] = pg.polya_gamma(np.int64(p0[i]), p1[i], sweep, i, STREAM, DRAW, SEED, CHAIN)
        elif family == 11:
            out[i] = pl.poisson_log_normal(p0[i], 1.5, p1[i], p2[i], sweep, i, STREAM, DRAW, SEED, CHAIN)
        elif family == 12:
            out[i] = ga.over_relaxed_chi_square(p0[i], p1[i], sweep, i, STREAM, DRAW, SEED, CHAIN)


def _arguments(family, n, parameters):
    full = [np.ascontiguousarray(np.broadcast_to(np.asarray(p, np.float64), n)) for p in parameters]
    assert len(full) == FAMILIES[family][0]
    return full + [np.zeros(1)] * (3 - len(full))


def numba_draws(family, n, *parameters, sweep=0):
    """(n,) draws of the Numba functions."""
    out = np.empty(n)
    _fill(list(FAMILIES).index(family), *_arguments(family, n, parameters), sweep, out)
    return out


def compiler():
    """The path of g++, or a visible skip."""
    path = shutil.which("g++")
    if path is None:
        pytest.skip("needs g++, which is not here")
    return path


def twin_source(mutations=()):
    """host_shim.h, all headers (with the textual `mutations`, each of which must occur) and one loop per family."""
    headers = cuda_source(*NAMES)
    for old, new in mutations:
        assert old in headers, f"mutation does not apply: {old}"
        headers = headers.replace(old, new)
    loops = "".join(
        f'extern "C" void {family}_loop'
        "(unsigned n, const double *p0, const double *p1, const double *p2, unsigned sweep, double *out)"
        f"{{ (void)p0; (void)p1; (void)p2; for (unsigned i = 0; i < n; ++i) out[i] = mmgibbs::{expression}; }}\n"
        for family, (_, expression) in FAMILIES.items()
    )
    return (FOLDER / "host_shim.h").read_text(encoding="utf-8").replace("#pragma once\n", "") + headers + loops


def build(folder, name, text):
    """The shared library that g++ makes of `text`."""
    source, library = folder / f"{name}.cpp", folder / f"{name}.so"
    source.write_text(text, encoding="utf-8")
    command = [
        compiler(),
        "-O1",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-ffp-contract=off",
        "-shared",
        "-fPIC",
        str(source),
        "-o",
        str(library),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(library))


def twin_draws(library, family, n, *parameters, sweep=0):
    """(n,) draws of the C++ twins in `library`."""
    out = np.empty(n)
    arrays = [*_arguments(family, n, parameters), out]
    p0, p1, p2, result = (ctypes.c_void_p(a.ctypes.data) for a in arrays)
    getattr(library, f"{family}_loop")(ctypes.c_uint(n), p0, p1, p2, ctypes.c_uint(sweep), result)
    return out
