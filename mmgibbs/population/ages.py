"""Who is older: births, and where they are unknown, what the births of relatives say.

An animal is younger than its parents and older than its progeny, so that its birth lies between

    low_i  = its birth, else the latest low of its parents        (-inf: nothing is known)
    high_i = its birth, else the earliest high of its progeny     (+inf)
"""

from __future__ import annotations

import numpy as np

from pedigree.read import Pedigree


def birth_bounds(pedigree: Pedigree) -> tuple[np.ndarray, np.ndarray]:
    """(n + 1,) low and high of every animal; the last, code -1, is of animals that the pedigree does not have."""
    n, sire, dam = pedigree.n_animals, pedigree.sire, pedigree.dam
    birth = np.full(n, np.nan) if pedigree.birth is None else np.asarray(pedigree.birth, np.float64)
    is_known = ~np.isnan(birth)
    low, high = (
        np.append(np.where(is_known, birth, -np.inf), -np.inf),
        np.append(np.where(is_known, birth, np.inf), np.inf),
    )
    if not is_known.any():
        return low, high
    parents = [np.where((p >= 0) & (p < n), p, n) for p in (sire, dam)]  # of unknown parents nothing is known
    for i in np.flatnonzero(~is_known):  # parents have lower codes than their progeny
        low[i] = max(low[parents[0][i]], low[parents[1][i]])
    has_open_parent = [(p < n) & ~np.append(is_known, True)[p] for p in parents]
    for i in np.flatnonzero(has_open_parent[0] | has_open_parent[1])[::-1]:
        for of_role, is_open in zip(parents, has_open_parent, strict=True):
            if is_open[i]:
                high[of_role[i]] = min(high[of_role[i]], high[i])
    return low, high


def are_descendants(pedigree: Pedigree, ancestor: np.ndarray, animal: np.ndarray) -> np.ndarray:
    """(m,) bool: the animal descends from this ancestor; codes, -1 of animals that the pedigree does not have."""
    n = pedigree.n_animals
    out = np.zeros(len(animal), bool)
    for k, (a, b) in enumerate(zip(ancestor.tolist(), animal.tolist(), strict=True)):
        open_codes, seen = [b], set()
        while a >= 0 and open_codes:
            code = open_codes.pop()
            if code == a and code != b:
                out[k] = True
                break
            if code <= a or code >= n or code in seen:  # an ancestor has a lower code
                continue
            seen.add(code)
            open_codes += [int(pedigree.sire[code]), int(pedigree.dam[code])]
    return out
