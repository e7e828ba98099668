"""Passes over the records for effects of SNPs: sums by animal, and what the animals' breeding values move.

A record r of animal a(r) sees the breeding values of its animal for one trait t as an offset of y[r, t]:

    s_a = sum over the records of a of w_r (R_p^-1 e_r)_t          gather
    e[r, t] -= g_a(r) - offset_r,   offset_r = g_a(r)              scatter

in sweep order. Sums are float64 and in the order of the records.
"""

from __future__ import annotations

import numpy as np

from mmgibbs.equations.structured import Records
from mmgibbs.models.design import Design
from mmgibbs.pedigree.kernels import kernel


def with_markers(design: Design) -> str | None:
    """Describe the first term of SNP effects, for engines that have none; None: there is none."""
    if not design.markers:
        return None
    return f"model.markers ('{design.markers[0].name}'); use engine: serial, or structured on the CPU"


@kernel
def gather(pattern, weight, animal, trait, e, Rinv, out):
    """s_a of the module: out (animals,) float64, from 0; animal (n,), -1 where the record has none; weight (n,) or
    empty.

    pattern (n,); e (n, T); Rinv (patterns, T, T); trait: t.
    """
    out[:] = 0.0
    for r in range(animal.size):
        a = animal[r]
        if a < 0:
            continue
        p, total = pattern[r], 0.0
        for o in range(e.shape[1]):
            total += Rinv[p, trait, o] * e[r, o]
        out[a] += total * weight[r] if weight.size > 0 else total


@kernel
def scatter(animal, trait, g, offset, e):
    """e_rt and offset_r of the module, in place: offset (n,), e (n, T) float64.

    g (animals,); animal (n,), -1 where the record has none; trait: t.
    """
    for r in range(animal.size):
        a = animal[r]
        if a >= 0:
            old = offset[r]
            offset[r] = g[a]
            e[r, trait] -= offset[r] - old


def weights_of_animals(design: Design, records: Records, markers: int, n: int) -> np.ndarray:
    """Sum the weights of each animal's records by missing pattern, (patterns, n) float64."""
    n_patterns, animal = len(design.patterns), design.markers[markers].animal[records.record]
    known = animal >= 0
    w = records.weight[known].astype(np.float64) if records.weight.size else np.ones(int(known.sum()))
    cell = records.pattern[known].astype(np.int64) * n + animal[known]
    return np.bincount(cell, weights=w, minlength=n_patterns * n).reshape(n_patterns, n)
