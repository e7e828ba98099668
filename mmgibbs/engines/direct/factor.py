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
panels pay. `LONG` is where both take about as long. Its AMD and our minimum degree fill alike (within 3 %); nested
dissection by level structures fills 5 to 180 times as much, as pedigrees are no meshes (tests/bench/orderings.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy

from mmgibbs.engines.direct.columns import Columns, columns_of
from mmgibbs.engines.direct.elimination import elimination
from mmgibbs.engines.direct.symbolic import Symbolic, symbolic
from mmgibbs.errors import ModelError

LONG = 100  # operations for each element of L


def factor_pattern(matrix: scipy.sparse.csr_array, order: np.ndarray | None = None) -> Symbolic | Columns:
    """Of a symmetric matrix with a full diagonal, (n, n), both triangles; its values are not read. order: that of
    `elimination`."""
    known = elimination(matrix, order)
    return symbolic(known) if known.flops > LONG * known.nonzeros else columns_of(known)


@dataclass(frozen=True)
class Factor:
    """L of C at one set of variances."""

    symbolic: Symbolic | Columns
    values: np.ndarray  # (elements,) float64

    @property
    def log_determinant(self) -> float:
        """log|C|"""
        return self.symbolic.log_determinant(self.values)

    def solve(self, b: np.ndarray) -> np.ndarray:
        """C^-1 b: b (n,) or (n, m), equations in their own order."""
        s = self.symbolic
        x = np.ascontiguousarray(b.reshape(b.shape[0], -1)[s.order], np.float64)
        s.solve(self.values, x)
        return x[s.place].reshape(b.shape)

    def selected_inverse(self) -> np.ndarray:
        """(elements,) C^-1 in the places of the factor."""
        return self.symbolic.selected_inverse(self.values)


def factorise(
    known: Symbolic | Columns, values: np.ndarray, name: Callable[[int], str] = "equation {}".format
) -> Factor:
    """The factor of C; values: C in its places (elements,), which are overwritten.

    A pivot below SINGULAR times the diagonal of C is refused: ModelError, which names the equation.
    """
    failed = known.factorise(values)
    if failed >= 0:
        raise ModelError(
            f"the mixed-model equations are not positive definite, first at {name(int(known.order[failed]))}: the "
            "variances differ too much, or effects cannot be separated; needed other variances or fewer effects"
        )
    return Factor(known, values)


def factor_of(matrix: scipy.sparse.csr_array) -> Factor:
    """The factor of one symmetric matrix with a full diagonal, both triangles of it stored."""
    known = factor_pattern(matrix)
    values = np.zeros(known.elements)
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    values[known.places(rows, matrix.indices)] = matrix.data
    return factorise(known, values)
