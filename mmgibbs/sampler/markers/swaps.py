"""A Metropolis move of effects between SNPs that are alike (alike.py), after each sweep over the effects.

One SNP at a time has a hard way from a SNP with an effect to another that records hardly tell from it: the second
comes in only where the first is out, or the other way round. Each SNP i here proposes to exchange its class and effect
with those of another SNP j, which is drawn uniformly from those that are alike, of the sign c of their correlation:

    a_i' = c a_j    a_j' = c a_i        log ratio = m's - m'D m / 2,    m = x_i (a_i' - a_i) + x_j (a_j' - a_j)

with s and D of sweep.py; on T traits the sums over traits. SNPs have the same prior, so that nothing of it is left in
the ratio. Equal SNPs exchange always: their states are in a random order in every sweep. A variance of a SNP alone
moves with its effect where the prior draws it anew given the effect next (bayes_b); in other priors it stays, and the
densities of the effects are in the ratio.

The probabilities of the classes of equal SNPs given all else are the same for each order of their states. Their mean
over the SNPs of a group is that over the orders: each of them is given it.
"""

from __future__ import annotations

import numpy as np

from mmgibbs.draws.elementary import log
from mmgibbs.draws.philox import draw_word, uniform_pair
from mmgibbs.draws.purpose import MARKER_SWAP, stream
from mmgibbs.genotypes.products import CHUNK, add_rows
from mmgibbs.genotypes.store import Store
from mmgibbs.pedigree.kernels import kernel
from mmgibbs.sampler.markers.alike import find_alike
from mmgibbs.sampler.markers.arguments import Animals, Genotypes
from mmgibbs.sampler.markers.priors.base import Site

NO_VARIANCES = np.empty((0, 0))


class SwapMoves:
    """Exchanges between the SNPs of one term in one chain; number: of the term; weight (n,): see `find_alike`."""

    def __init__(self, store: Store, genotypes: Genotypes, weight: np.ndarray, number: int, site: Site):
        self.alike = find_alike(store, genotypes.values, weight)
        self.genotypes, self.site, self.stream = genotypes, site, stream(MARKER_SWAP, number)

    def move(
        self, number: int, animals: Animals, a: np.ndarray, of_class: np.ndarray, variance: np.ndarray = NO_VARIANCES
    ) -> None:
        """Exchange effects a (p, T) and classes (p,), in place; s and g follow.

        variance (K, p): of the effects, where it stays with a SNP.
        """
        if not self.alike.snp.size:
            return
        state = animals, a, of_class
        _swap(number, self.site.level, self.stream, *self.site.key, self.alike, self.genotypes, state, variance)

    def share(self, *chances: np.ndarray) -> None:
        """Give every SNP of a group of equal ones the mean of their probabilities, (p, K) each."""
        members, sizes = self.alike.members, np.diff(self.alike.first)
        if not members.size:
            return
        for each in chances:
            means = np.add.reduceat(each[members], self.alike.first[:-1], axis=0) / sizes[:, None]
            each[members] = np.repeat(means, sizes, axis=0)


@kernel(forceinline=True)
def _choose_partner(alike, m, u):
    """Choose a SNP that is alike to the m-th, by a uniform u, and return it with the sign of their correlation.

    It may be the SNP itself.
    """
    group, total = alike.group[m], 0
    for k in range(alike.near_first[group], alike.near_first[group + 1]):
        total += alike.first[alike.near[k] + 1] - alike.first[alike.near[k]]
    place = min(int(u * total), total - 1)
    for k in range(alike.near_first[group], alike.near_first[group + 1]):
        size = alike.first[alike.near[k] + 1] - alike.first[alike.near[k]]
        if place < size:
            j = alike.members[alike.first[alike.near[k]] + place]
            return j, alike.sign[alike.snp[m]] * alike.sign[j] * alike.near_sign[k]
        place -= size
    return alike.snp[m], 1.0


@kernel
def _swap(number, level, at, seed, chain, alike, genotypes, state, variance):
    (D, s, g), a, of_class = state
    T, n = s.shape
    moved, rows, by, before = np.empty_like(s), np.empty(2, np.int64), np.empty((T, 2)), np.empty(T)
    chunks = n // CHUNK
    for m in range(alike.snp.size):
        i = alike.snp[m]
        u, v = uniform_pair(number, level[i], at, draw_word(0, 0), seed, chain)
        j, sign = _choose_partner(alike, m, u)
        differs = False
        for t in range(T):
            by[t, 0], by[t, 1] = sign * a[j, t] - a[i, t], sign * a[i, t] - a[j, t]
            differs = differs or by[t, 0] != 0.0 or by[t, 1] != 0.0
        if i == j or not differs:
            continue
        rows[0], rows[1] = i, j
        log_ratio = _log_prior_ratio(a, of_class, i, j, variance)
        for t in range(T):
            moved[t, :] = 0.0
            add_rows(genotypes.array, rows, genotypes.values, by[t], 0, chunks, moved[t])
        for t in range(T):
            for x in range(n):
                log_ratio += moved[t, x] * s[t, x]
            for o in range(T):
                for x in range(n):
                    log_ratio -= 0.5 * moved[t, x] * D[t, o, x] * moved[o, x]
        if not log(v) < log_ratio:  # NaN is no reason to move
            continue
        before[:] = a[i]
        for t in range(T):
            a[i, t], a[j, t] = sign * a[j, t], sign * before[t]
            for x in range(n):
                g[t, x] += moved[t, x]
            for o in range(T):
                for x in range(n):
                    s[o, x] -= D[o, t, x] * moved[t, x]
        of_class[i], of_class[j] = of_class[j], of_class[i]


@kernel
def _log_prior_ratio(a, of_class, i, j, variance):
    """Log of the densities of the effects on one trait after an exchange over those before; variance (0, 0): 0."""
    if variance.size == 0:
        return 0.0
    of_i, of_j = of_class[i], of_class[j]
    total = 0.0
    if variance[of_i, i] > 0.0:
        total += 0.5 * (log(variance[of_i, i] / variance[of_i, j]))
        total += 0.5 * a[i, 0] ** 2 * (1.0 / variance[of_i, i] - 1.0 / variance[of_i, j])
    if variance[of_j, j] > 0.0:
        total += 0.5 * (log(variance[of_j, j] / variance[of_j, i]))
        total += 0.5 * a[j, 0] ** 2 * (1.0 / variance[of_j, j] - 1.0 / variance[of_j, i])
    return total
