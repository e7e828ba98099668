"""W, which says what each observation is the sum of, as a sparse matrix: fitted values and their transpose."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import scipy

from mmgibbs.models.design import Design


class Incidence:
    """W of a design: y = W theta + e, records and levels in model order.

    matrix: (n T, places), a row for each trait of each record.
    """

    def __init__(self, design: Design):
        sizes = [t.n_levels * t.n_components for t in design.terms]
        self.shape = design.y.shape
        entries = list(_list_entries(design))
        rows, columns, values = (np.concatenate(arrays) for arrays in zip(*entries, strict=True))
        order = np.argsort(rows, kind="stable")  # effects stay in their order, and sums their bits
        ends = np.cumsum(np.bincount(rows, minlength=design.y.size))
        shape = (design.y.size, sum(sizes))
        self.matrix = scipy.sparse.csr_array((values[order], columns[order], np.append(0, ends)), shape=shape)
        self.transposed = scipy.sparse.csr_array(self.matrix.T)

    def fit(self, thetas: Sequence[np.ndarray]) -> np.ndarray:
        """(n, T, m) W Theta; thetas: (q, k, m) per term."""
        m = thetas[0].shape[2]
        return (self.matrix @ np.concatenate([theta.reshape(-1, m) for theta in thetas])).reshape(*self.shape, m)

    def accumulate(self, u: np.ndarray) -> np.ndarray:
        """(places, m) W'u; u (n, T, m)."""
        return self.transposed @ u.reshape(-1, u.shape[2])


def _list_entries(design: Design) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """(row, column, value) of W, one scalar effect after another; a record that meets a level twice has both."""
    first, T = 0, design.n_traits
    for term in design.terms:
        k, component = term.n_components, 0
        for effect in term.effects:
            of_components = [(trait, a) for trait in effect.traits for a in range(effect.n_regressors)]
            for level, z in effect.meetings():
                met = np.flatnonzero(level >= 0)
                place = first + level[met].astype(np.int64) * k
                for c, (trait, a) in enumerate(of_components, component):
                    yield met * T + trait, place + c, np.ones(met.size) if z is None else z[met, a].astype(float)
            component += len(of_components)
        first += term.n_levels * k
