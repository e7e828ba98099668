"""One order of elimination for two evaluations: that of the equations of all records, for those without some as well.

Without records no two equations meet that did not meet with them, so that the factor has no element in this order that
the factor of the whole has not, but for equations that the whole holds at 0, which come last. To find an order takes
longer than all else that is known of a factor.
"""

from __future__ import annotations

from concurrent.futures import Future

import numpy as np
import scipy

from mmgibbs.cholesky.ordering import minimum_degree
from mmgibbs.data.levels import lookup
from mmgibbs.data.prepared import Prepared
from mmgibbs.equations.explicit.csr import ExplicitEquations


class OrderOfWhole:
    """Found by the thread that plans the factor of the whole, waited for by the one that plans the other."""

    def __init__(self, whole: Prepared):
        self.whole = whole
        self._found: Future[list[np.ndarray] | None] = Future()

    def find(self, explicit: ExplicitEquations, pattern: scipy.sparse.csr_array) -> np.ndarray:
        """The order of the whole (see direct.coefficients.Order)."""
        order = minimum_degree(pattern)
        place = np.full(order.size + 1, order.size)  # the last one: of components that are set to 0
        place[order] = np.arange(order.size)
        self._found.set_result([place[numbers] for numbers in explicit.layout.split(explicit.layout.equation)])
        return order

    def end(self) -> None:
        """The whole was planned, or needs no factor: nobody waits any longer."""
        if not self._found.done():
            self._found.set_result(None)

    def follow(self, prepared: Prepared, explicit: ExplicitEquations, pattern: scipy.sparse.csr_array) -> np.ndarray:
        """The order of the equations of `prepared`, as they stand in that of the whole; its own where there is none."""
        places = self._found.result()
        if places is None:
            return minimum_degree(pattern)
        n = explicit.n_equations
        place = np.full(n + 1, np.iinfo(np.int64).max)
        of_term = {t.name: i for i, t in enumerate(self.whole.design.terms)}
        numbers = explicit.layout.split(explicit.layout.equation)
        for j, term in enumerate(prepared.design.terms):
            i = of_term[term.name]
            code = lookup(prepared.levels[j].ids, self.whole.levels[i].ids).to_numpy()  # NaN where the whole lacks it
            if len(code) != len(numbers[j]) or numbers[j].shape[1] != places[i].shape[1]:
                continue  # two levels are called the same, or have other components: the term comes last
            known = np.flatnonzero(~np.isnan(code))
            place[numbers[j][known]] = places[i][code[known].astype(np.int64)]
        return np.argsort(place[:n], kind="stable")
