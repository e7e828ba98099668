"""How much is known of the ancestors of animals, and whose genes they have: completeness, founders, ancestors.

Codes as everywhere in this package: parents before progeny, -1 and codes >= n (unknown-parent groups) are unknown.

    equivalent generations  g_i = sum over known parents p of (g_p + 1) / 2            (Boichard et al. 1997)
    completeness            c_k(i) = (c_(k-1)(sire) + c_(k-1)(dam)) / 2, c_0 = 1 of a known animal, 0 of an unknown one
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mmgibbs.pedigree.kernels import kernel


def equivalent_generations(sire: np.ndarray, dam: np.ndarray) -> np.ndarray:
    """(n,) float64 number of complete generations that would have as many known ancestors, each at its weight."""
    out = np.zeros(len(sire))
    _equivalent_generations(sire, dam, out)
    return out


def completeness(sire: np.ndarray, dam: np.ndarray, generations: int) -> np.ndarray:
    """(n, generations) float64 share of the ancestors in each generation that are known: parents first."""
    n = len(sire)
    out = np.zeros((n, generations))
    before = np.ones(n)
    for k in range(generations):
        _known_share(sire, dam, before, out[:, k])
        before = np.ascontiguousarray(out[:, k])
    return out


def founder_contributions(sire: np.ndarray, dam: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """(n,) float64 share of the genes of the reference animals that enters with each animal.

    An animal without known parents brings all of its own; one with an unknown parent the half that comes from it. The
    shares add to 1. reference: (n,) bool.
    """
    share = reference / max(1, int(reference.sum()))
    _pass_up(sire, dam, share)
    n = len(sire)
    unknown = ((sire < 0) | (sire >= n)).astype(float) + ((dam < 0) | (dam >= n))
    return np.asarray(share * unknown / 2)


class Ancestors(NamedTuple):
    """The ancestors that explain most of the genes of the reference animals."""

    code: np.ndarray  # (m,) int64, the most important first
    marginal: np.ndarray  # (m,) share of the genes that no earlier one explains


def major_ancestors(sire: np.ndarray, dam: np.ndarray, reference: np.ndarray, most: int) -> Ancestors:
    """Find ancestors one by one, each by what those before it leave unexplained (Boichard et al. 1997, method 1).

    reference: (n,) bool; most: ancestors that are looked for; fewer where they explain all.
    """
    sire, dam = sire.copy(), dam.copy()
    codes, marginal = [], []
    n = len(sire)
    explained = np.zeros(n)  # share of the genes of each animal that chosen ancestors explain
    chosen = np.zeros(n, bool)
    for _ in range(most):
        share = reference / max(1, int(reference.sum()))
        _pass_up(sire, dam, share)
        _pass_down(sire, dam, chosen, explained)
        gain = np.where(chosen, 0.0, share * (1.0 - explained))
        best = int(np.argmax(gain))
        if gain[best] < 1e-9:
            break
        codes.append(best)
        marginal.append(float(gain[best]))
        chosen[best] = True
        sire[best] = dam[best] = -1  # its genes are its own from here on
    return Ancestors(np.array(codes, np.int64), np.array(marginal))


def effective_number(shares: np.ndarray) -> float:
    """1 / sum of squares: as many equal shares would keep as much diversity."""
    squares = float(np.sum(shares**2))
    return 1.0 / squares if squares > 0 else float("nan")


@kernel
def _equivalent_generations(sire, dam, out):
    n = len(sire)
    for i in range(n):
        for parent in (sire[i], dam[i]):
            if 0 <= parent < n:
                out[i] += 0.5 * (out[parent] + 1.0)


@kernel
def _known_share(sire, dam, before, out):
    n = len(sire)
    for i in range(n):
        total = 0.0
        for parent in (sire[i], dam[i]):
            if 0 <= parent < n:
                total += 0.5 * before[parent]
        out[i] = total


@kernel
def _pass_up(sire, dam, share):
    n = len(sire)
    for i in range(n - 1, -1, -1):
        for parent in (sire[i], dam[i]):
            if 0 <= parent < n:
                share[parent] += 0.5 * share[i]


@kernel
def _pass_down(sire, dam, chosen, explained):
    n = len(sire)
    for i in range(n):
        total = 0.0
        if chosen[i]:
            total = 1.0
        else:
            for parent in (sire[i], dam[i]):
                if 0 <= parent < n:
                    total += 0.5 * explained[parent]
        explained[i] = total
