"""Relationship matrices the slow way: the tabular method, and the QP matrix of unknown-parent groups by definition."""

from __future__ import annotations

import numpy as np


def relationship(sire, dam, inbreeding: bool = True) -> np.ndarray:
    """A, (n, n), row by row (Emik & Terrill 1949): a_ij = (a_js + a_jd)/2 for j before i, a_ii = 1 + a_sd/2.

    sire, dam: codes with parents before progeny; -1 and codes >= n (unknown-parent groups) are unknown.
    inbreeding False: parents taken as not inbred, Mendelian sampling variances 1/2, 3/4, 1 (`inbreeding: ignore`).
    """
    n = len(sire)
    A = np.zeros((n, n))
    for i in range(n):
        parents = [p for p in (sire[i], dam[i]) if 0 <= p < n]
        for p in parents:
            A[i, :i] += A[p, :i] / 2
        A[:i, i] = A[i, :i]
        both = A[parents[0], parents[1]] if len(parents) == 2 else 0.0
        A[i, i] = 1 + both / 2
        if not inbreeding:
            A[i, i] = 1 - len(parents) / 4 + sum(A[p, p] for p in parents) / 4 + both / 2
    return A


def inbreeding(sire, dam) -> np.ndarray:
    """F, (n,)."""
    return np.diag(relationship(sire, dam)) - 1


def with_selfed_generations(sire, dam, generations) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(sire, dam, place): every generation of selfing a plant of its own, whose sire and dam are one plant.

    place: (n,) the last generation of each plant, the parent of its progeny. Codes >= n (groups) are unknown parents.
    """
    n, last, parents = len(sire), [], []
    for i in range(n):
        parents.append([last[p] if 0 <= p < n else -1 for p in (sire[i], dam[i])])
        parents += [[len(parents) + k] * 2 for k in range(-1, generations[i] - 1)]
        last.append(len(parents) - 1)
    codes = np.array(parents, np.int32).reshape(-1, 2)
    return codes[:, 0], codes[:, 1], np.array(last)


def selfed_relationship(sire, dam, generations) -> np.ndarray:
    """A of plants with generations of selfing: a part of the A in which every generation is a plant."""
    every_sire, every_dam, place = with_selfed_generations(sire, dam, generations)
    return relationship(every_sire, every_dam)[np.ix_(place, place)]


def with_metafounders(sire, dam, gamma) -> np.ndarray:
    """A of the animals, then the metafounders (codes n, n + 1, ...): gamma among these, then row by row as above."""
    n, m = len(sire), len(gamma)
    A = np.zeros((n + m, n + m))
    A[n:, n:] = gamma
    others = list(range(n, n + m))
    for i in range(n):
        known = [p for p in (sire[i], dam[i]) if p >= 0]
        for j in others:
            A[i, j] = A[j, i] = 0.5 * sum(A[p, j] for p in known)
        A[i, i] = 1 + (0.5 * A[sire[i], dam[i]] if len(known) == 2 else 0)
        others.append(i)
    return A


def group_shares(sire, dam, n_groups: int) -> np.ndarray:
    """Q, (n, n_groups): the expected share of each group's genes in each animal."""
    n = len(sire)
    Q = np.zeros((n, n_groups))
    for i in range(n):
        for p in (sire[i], dam[i]):
            if p >= n:
                Q[i, p - n] += 0.5
            elif p >= 0:
                Q[i] += Q[p] / 2
    return Q


def relationship_inverse(
    sire, dam, n_groups: int = 0, random_groups: bool = False, inbreeding: bool = True, generations=None
) -> np.ndarray:
    """The dense inverse of A, or with groups the QP matrix of (u + Qg, g), (n + n_groups, n + n_groups):

    [  A^-1      -A^-1 Q         ]
    [ -Q'A^-1     Q'A^-1 Q (+ I) ]        + I where groups are random (Quaas & Pollak 1981)

    generations: (n,) of selfing after each cross.
    """
    A = relationship(sire, dam, inbreeding) if generations is None else selfed_relationship(sire, dam, generations)
    A_inverse = np.linalg.inv(A)
    Q = group_shares(sire, dam, n_groups)
    corner = Q.T @ A_inverse @ Q + (np.eye(n_groups) if random_groups else 0.0)
    return np.block([[A_inverse, -A_inverse @ Q], [-Q.T @ A_inverse, corner]])
