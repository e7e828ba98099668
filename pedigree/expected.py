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

from pedigree.relationship import Relatives, a_inverse_csr, mendelian_variance, relatives, with_ancestors

BLOCK = 256  # columns that are solved for at a time


class ExpectedOf:
    """The map from known values to expected ones: one factorisation, then products by blocks of columns."""

    def __init__(self, kin: Relatives, known: np.ndarray, wanted: np.ndarray):
        """known, wanted: codes of animals, none in both; an animal without known relatives has expectation 0."""
        from scipy.sparse.linalg import splu

        small, number = _restricted(kin, np.concatenate([known, wanted]))
        inverse = a_inverse_csr(small).tocsc()
        is_known = np.zeros(small.n_animals, bool)
        is_known[number[known]] = True
        others = np.flatnonzero(~is_known)
        place = np.cumsum(~is_known) - 1
        self._of_known = inverse[others][:, number[known]].tocsr()
        unknown = inverse[others][:, others].tocsc()
        self._factor = splu(unknown, permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True})
        self._wanted = place[number[wanted]]

    def __call__(self, values: np.ndarray) -> np.ndarray:
        """(wanted, k) float64 from (known, k)."""
        return -self._factor.solve(self._of_known @ np.ascontiguousarray(values, np.float64))[self._wanted]

    def unexplained(self) -> np.ndarray:
        """(wanted,) diagonal of (A^nn)^-1: the variance that is left, in units of sigma2_u. A solution for each."""
        out = np.empty(len(self._wanted))
        for first in range(0, len(out), BLOCK):
            own = self._wanted[first : first + BLOCK]
            unit = np.zeros((self._of_known.shape[0], len(own)))
            unit[own, np.arange(len(own))] = 1.0
            out[first : first + BLOCK] = self._factor.solve(unit)[own, np.arange(len(own))]
        return out


def _restricted(kin: Relatives, animals: np.ndarray) -> tuple[Relatives, np.ndarray]:
    """The pedigree of these animals and their ancestors, and the number of each animal in it, -1 of the others."""
    n = kin.n_animals
    keep = with_ancestors(kin.sire, kin.dam, animals)
    number = np.where(keep, np.cumsum(keep) - 1, -1).astype(np.int32)
    sire, dam = (
        np.where((p >= 0) & (p < n), number[np.clip(p, 0, n - 1)], -1)[keep].astype(np.int32)
        for p in (kin.sire, kin.dam)
    )
    F = kin.inbreeding[keep]
    more = 1 / kin.dinv[keep] - mendelian_variance(sire, dam, F)  # of generations of selfing; else 0
    return relatives(sire, dam, F, within=more), number
