"""C = L L' or L D L' on a pattern that is known: by columns where they are short, by supernodes where they are long.

Measured on one core beside the LDL' of the package qdldl (0.1.9, with its AMD order), in one run with others at work;
milliseconds of a factorisation, and of C^-1 on its pattern, which qdldl has not:

                       equations   elements of L   columns     supernodes    qdldl
    gryphon                1,311           7,116   .04  .04     .37   .55      .05
    gryphon, two traits    3,478          62,632   1.1  1.4     1.8   3.0      1.4
    milk                   7,966          53,777   .62  .72     2.4   7.4      .86
    warcolak, A and D     10,802          82,803   .32  .38     2.4   3.5      .55
    simdata                4,807          75,270   1.8  2.5      12    15      2.6
    beef                  15,195         368,811    20   37      21    33       36

before columns of one pattern were factorised together (columns.py: two thirds of it for two traits and simdata), so
there is no dependence on that package. Columns gather and scatter element by element; where they are long, dense
panels pay: `MAX_FLOPS_PER_ELEMENT` is where both take about as long. Its AMD and our minimum degree fill alike (within
3 %); nested dissection by level structures fills 5 to 180 times as much, as pedigrees are no meshes
(benchmarks/orderings.py).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from mmgibbs.likelihood.cholesky.columns import analyse_columns
from mmgibbs.likelihood.cholesky.elimination import eliminate
from mmgibbs.likelihood.cholesky.supernodes import analyse_supernodes
from mmgibbs.likelihood.cholesky.symbolic import SymbolicFactor

MAX_FLOPS_PER_ELEMENT = 100  # of L, up to which it is factorised by columns


class NotPositiveDefiniteError(ValueError):
    """A pivot is too small; `equation`: its number in the matrix."""

    def __init__(self, equation: int):
        super().__init__(f"expected a positive definite matrix, got a pivot near or below 0 at equation {equation}")
        self.equation = equation


@dataclass(frozen=True)
class Factor:
    """L of one matrix C."""

    symbolic: SymbolicFactor
    values: np.ndarray  # (elements,) float64

    @property
    def log_determinant(self) -> float:
        """log|C|"""
        return self.symbolic.log_determinant(self.values)

    def solve(self, b: np.ndarray) -> np.ndarray:
        """C^-1 b: b (n,) or (n, m), equations as they are numbered in C."""
        s = self.symbolic
        x = np.ascontiguousarray(b.reshape(b.shape[0], -1)[s.order], np.float64)
        s.solve(self.values, x)
        return x[s.step].reshape(b.shape)

    def selected_inverse(self) -> np.ndarray:
        """Compute C^-1 where L has elements, (elements,)."""
        return self.symbolic.selected_inverse(self.values)


def analyse(pattern: scipy.sparse.csr_array, last: np.ndarray | None = None) -> SymbolicFactor:
    """Analyse a symmetric pattern in the form that is faster; arguments as of `eliminate`."""
    eliminated = eliminate(pattern, last)
    is_long = eliminated.flops > MAX_FLOPS_PER_ELEMENT * eliminated.nonzeros
    return analyse_supernodes(eliminated) if is_long else analyse_columns(eliminated)


def factorise(symbolic: SymbolicFactor, values: np.ndarray) -> Factor:
    """Factor C; values: C on the pattern (elements,), which is overwritten.

    A pivot that is not above MIN_PIVOT times the diagonal of C is refused with NotPositiveDefiniteError. Sums have one
    order, and results the same bits, as long as BLAS has one thread.
    """
    failed = symbolic.factorise(values)
    if failed >= 0:
        raise NotPositiveDefiniteError(int(symbolic.order[failed]))
    return Factor(symbolic, values)


def factorise_matrix(matrix: scipy.sparse.csr_array) -> Factor:
    """The factor of one symmetric matrix with a full diagonal, both triangles of it stored."""
    symbolic = analyse(matrix)
    values = np.zeros(symbolic.elements)
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    values[symbolic.locate(rows, matrix.indices)] = matrix.data
    return factorise(symbolic, values)
