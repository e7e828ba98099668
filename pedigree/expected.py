"""What is expected of animals given the known values of relatives: E[u_n | u_g] = A_ng A_gg^-1 u_g.

In terms of the inverse, with n the animals asked for (and all other unknown ones) and g those with known values,

    A^nn u_n = -A^ng u_g                                    u_n - E[u_n | u_g] ~ N(0, (A^nn)^-1 sigma2_u)

Genotypes of animals without a DNA sample are predicted so from those of their relatives, SNP by SNP (Gengler, Mayeres &
Szydlowski 2007, Animal 1:21; Fernando, Dekkers & Garrick 2014, Genet. Sel. Evol. 46:50). Values are deviations from
what is expected of the base population. Only the animals at hand and their ancestors matter: descendants of which
nothing is known say nothing.
"""

from __future__ import annotations

import numpy as np

from mmgibbs.pedigree.partitioned import COLUMNS, partitioned, restricted
from mmgibbs.pedigree.relationship import Relatives


class ConditionalExpectation:
    """The map from known values to expected ones: one factorisation, then products by blocks of columns."""

    def __init__(self, kin: Relatives, known: np.ndarray, wanted: np.ndarray):
        """known, wanted: codes of animals, none in both; an animal without known relatives has expectation 0. kin
        without groups.
        """
        small, number = restricted(kin, np.concatenate([known, wanted]))
        self._parts = partitioned(small, number[known])
        self._wanted = np.searchsorted(self._parts.others, number[wanted])

    def __call__(self, values: np.ndarray) -> np.ndarray:
        """(wanted, k) float64 from (known, k)."""
        parts = self._parts
        return -parts.solve(parts.across.T @ np.ascontiguousarray(values, np.float64))[self._wanted]

    def total_unexplained(self) -> float:
        """1'V 1 of the block V of (A^nn)^-1 of the wanted ones, in units of sigma2_u: the sum over all their pairs."""
        unit = np.zeros((len(self._parts.others), 1))
        unit[self._wanted] = 1.0
        return float(self._parts.solve(unit)[self._wanted].sum())

    def unexplained(self) -> np.ndarray:
        """(wanted,) diagonal of (A^nn)^-1: the variance that is left, in units of sigma2_u. A solution for each."""
        out = np.empty(len(self._wanted))
        for first in range(0, len(out), COLUMNS):
            columns = self._wanted[first : first + COLUMNS]
            unit = np.zeros((len(self._parts.others), len(columns)))
            unit[columns, np.arange(len(columns))] = 1.0
            out[first : first + COLUMNS] = self._parts.solve(unit)[columns, np.arange(len(columns))]
        return out
