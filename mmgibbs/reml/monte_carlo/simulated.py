"""Records simulated from the model at some variances: the same standard normals, whatever the variances are.

    y*_r = sum over terms of W_ri u*_i,l(r) + e*_r,      u* ~ MN(0, K (x) G),  e*_r ~ N(0, R[P_r, P_r] / w_r)

Effects with a flat prior are 0 here: solutions of the mixed-model equations do not depend on them. Normals are keyed by
seed, sample, level and record, so sample j is the same in every iteration but for the Cholesky factors of G and R.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mmgibbs.draws.normal import fill_normals
from mmgibbs.draws.purpose import SIMULATED_RECORD, stream
from mmgibbs.engines.pcg.engine import add_residual_noise, roots_by_pattern
from mmgibbs.equations.records import add_matvec
from mmgibbs.equations.structured import StructuredEquations
from mmgibbs.likelihood.matrices import Variances
from mmgibbs.machine.threads import blas_threads


class SimulatedRecords:
    """Draws records of a model, several samples at once."""

    def __init__(self, equations: StructuredEquations, seed: int):
        self.equations, self.seed = equations, seed
        self.streams = [stream(SIMULATED_RECORD, i) for i in range(len(equations.terms) + 1)]

    def draw(self, samples: Sequence[int], variances: Variances) -> np.ndarray:
        """Draw y* (n, T, m) in sweep order, a column for each number of a sample; 0 to any value where not observed."""
        records = self.equations.records
        y, z = np.zeros((*records.y.shape, len(samples))), np.empty(records.y.shape)
        roots = roots_by_pattern(self.equations.design, variances.R)
        for j, number in enumerate(samples):
            fill_normals(z, number, records.record.view(np.int32), self.streams[-1], self.seed, 0)
            add_residual_noise(records, roots, z, j, y)
        for i, (term, lists) in enumerate(zip(self.equations.design.terms, self.equations.terms, strict=True)):
            G = variances.G[i]
            if G is not None:
                add_matvec(lists, self._draw_random(i, np.linalg.cholesky(G), samples), y)
            elif term.fixed_precision.any():
                add_matvec(lists, self._draw_fixed(i, samples), y)
        return y

    def _draw_random(self, i: int, root: np.ndarray, samples: Sequence[int]) -> np.ndarray:
        """Draw (q, k, m) u* ~ MN(0, K (x) root root') in sweep order; fixed unknown-parent groups are 0."""
        term = self.equations.design.terms[i]
        columns = np.einsum("ab,qbm->qam", root, self._normals(i, samples))
        columns[term.n_without_fixed_groups :] = 0.0
        with blas_threads(1):  # sums in one order
            drawn = term.relationship.draw(columns.reshape(len(columns), -1)).reshape(columns.shape)
        return np.ascontiguousarray(drawn[self.equations.terms[i].code])

    def _draw_fixed(self, i: int, samples: Sequence[int]) -> np.ndarray:
        """Draw levels of a fixed effect from its known prior, (q, k, m) in sweep order.

        Components set to 0, or with a flat prior, are 0.
        """
        term = self.equations.design.terms[i]
        z = self._normals(i, samples)
        active = np.ones(z.shape[:2], bool) if term.active is None else term.active
        out = np.zeros(z.shape)
        for mask in np.unique(active, axis=0):
            root = root_of_inverse(np.where(np.outer(mask, mask), term.fixed_precision, 0.0))
            levels = (active == mask).all(axis=1)
            out[levels] = np.einsum("ab,qbm->qam", root, z[levels])
        return np.ascontiguousarray(out[self.equations.terms[i].code])

    def _normals(self, i: int, samples: Sequence[int]) -> np.ndarray:
        """Draw standard normals (q, k, m) in model order."""
        term = self.equations.design.terms[i]
        z, levels = np.empty((term.n_levels, term.n_components)), np.arange(term.n_levels, dtype=np.int32)
        out = np.empty((*z.shape, len(samples)))
        for j, number in enumerate(samples):
            fill_normals(z, number, levels, self.streams[i], self.seed, 0)
            out[:, :, j] = z
        return out


def root_of_inverse(precision: np.ndarray) -> np.ndarray:
    """B with B B' the pseudo-inverse of precision (k, k)."""
    values, vectors = np.linalg.eigh(precision)
    known = values > 1e-12 * max(values[-1], np.finfo(float).tiny)
    return np.asarray(vectors * np.where(known, 1.0 / np.sqrt(np.where(known, values, 1.0)), 0.0))
