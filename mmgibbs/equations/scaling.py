"""How records see a linear change of a random term, theta_l -> M theta_l, M (k x k, lower triangular) for all levels.

At M = I + D the residuals are e_r - sum over elements (c, j) of D_cj x_r,cj, where element (c, j) moves trait t(c) by

    x_r,cj = z_r,a(c) theta_l,j         l the level that record r meets through the effect of component c

(of several levels the sum, each times its weight), so the records' density is Gaussian in the elements of M, with
normal equations of dimension k(k+1)/2 at most:

    H_pq = sum_r w_r (R_P^-1)_t(p),t(q) x_r,p x_r,q         s_p = sum_r w_r x_r,p (R_P^-1 e_r)_t(p)

Unknown-parent groups that are *fixed* have no variance to scale: an animal then moves by its deviation from the mean of
its groups, theta_l - (Q g)_l -> M (theta_l - (Q g)_l), and the groups stay. Random groups are levels like any other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mmgibbs.equations.structured import StructuredEquations
from mmgibbs.models.relationships.base import UNKNOWN
from mmgibbs.pedigree.kernels import kernel

UNROLL_FROM = 2000  # levels of a term from which compiling the pass for its very size (a second or two) pays
UNROLL_TO = 8  # places (direct effects of three traits and a maternal one have 7) and traits


Elements = tuple[tuple[int, int], ...]  # (c, j) of a matrix M


class Plan(NamedTuple):
    """Positions of the x of the elements of M: element i has its x, z_r,regressor theta_l,component, at place[i]."""

    effect: np.ndarray  # (places,) int64
    first_slot: np.ndarray  # (places,) int64: the slots of the effect, in each of which a record may meet a level
    end_slot: np.ndarray  # (places,) int64
    regressor: np.ndarray  # (places,) int64
    component: np.ndarray  # (places,) int64
    place: np.ndarray  # (p,) int64
    trait: np.ndarray  # (p,) int64 the trait that each element moves


class Scaling:
    """The two operations for an engine that holds Theta (q, k) per term and e (n, T) in sweep order."""

    def __init__(self, equations: StructuredEquations):
        self.equations = equations
        self._levels: dict[int, np.ndarray] = {}
        self._parents_first: dict[int, np.ndarray] = {}
        self._weights: dict[int, np.ndarray] = {}
        self._plans: dict[tuple[int, Elements], Plan] = {}
        self._groups_fixed = [term.groups_fixed for term in equations.design.terms]
        self._identities = [np.eye(term.n_components) for term in equations.design.terms]

    def products(
        self, term: int, elements: Elements, theta: np.ndarray, e: np.ndarray, Rinv: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """H (p, p) and s (p,) for the elements ((c, j), ...) of M, at M = I: one pass over the records."""
        plan = self._plans.get((term, elements))
        if plan is None:
            plan = self._plans[term, elements] = self._plan(term, elements)
        p = len(elements)
        zeros = np.zeros((p + 1, p))
        H, s = zeros[:p], zeros[p]
        normal_equations(plan, *self._sums(term, plan, theta, e, Rinv), Rinv, H, s)
        return H, s

    def _sums(
        self, term: int, plan: Plan, theta: np.ndarray, e: np.ndarray, Rinv: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Sum w x x' (patterns, m, m), the lower triangle, and w x e' (patterns, m, T)."""
        lists, levels = self.equations.terms[term], self.record_levels(term)
        (n_patterns, T, _), m = Rinv.shape, plan.effect.size
        unrolled = ((0,) * m, (0,) * T)
        if theta.shape[0] < UNROLL_FROM or m > UNROLL_TO or T > UNROLL_TO:
            unrolled = (), ()
        xx, xe = np.zeros((n_patterns, m, m)), np.zeros((n_patterns, m, T))
        deviations = self._deviations(term, theta) if self._groups_fixed[term] else theta
        weights = self._record_weights(term)
        scaling_sums(self.equations.records, levels, weights, lists.covariates, plan, *unrolled, deviations, e, xx, xe)
        return xx, xe

    def _plan(self, term: int, elements: Elements) -> Plan:
        """Elements that share a regressor and a component of theta share their z theta: these are the `places`."""
        lists = self.equations.terms[term]
        c, j = np.array(elements, np.int64).T
        places, place = np.unique(np.stack([lists.regressor[c], j], axis=1), axis=0, return_inverse=True)
        regressor, component = np.ascontiguousarray(places.T)
        design_term = self.equations.design.terms[term]
        effect, effect_of_slot = design_term.regressor_effect[regressor], design_term.incidence.slot_effect
        slots = np.searchsorted(effect_of_slot, effect), np.searchsorted(effect_of_slot, effect, "right")
        return Plan(effect, *slots, regressor, component, place.reshape(-1), lists.trait[c])

    def transform(self, term: int, M: np.ndarray, theta: np.ndarray, e: np.ndarray) -> None:
        """theta_l <- M theta_l (with fixed groups: deviations from their mean) and e <- y - W theta, both in place."""
        change = M - self._identities[term]
        deviations = self._deviations(term, theta) if self._groups_fixed[term] else theta
        move_levels(self.equations.terms[term], change, deviations, theta, e)

    def _deviations(self, term: int, theta: np.ndarray) -> np.ndarray:
        """Return what M multiplies, (q, k): Theta itself, or Theta - Q g with fixed groups (0 in their own rows)."""
        if not self._groups_fixed[term]:
            return theta
        t = self.equations.design.terms[term]
        if term not in self._parents_first:
            self._parents_first[term] = np.argsort(self.equations.terms[term].code)
        return t.relationship.deviations(self.equations.relationships[term], self._parents_first[term], theta)

    def record_levels(self, term: int) -> np.ndarray:
        """Find the sweep position of the level of each record, (n, slots) uint32; UNKNOWN where it meets none."""
        if term not in self._levels:
            code, record = self.equations.terms[term].code, self.equations.records.record
            position = np.full(code.size + 1, UNKNOWN)  # level -1 is the last element
            position[code] = np.arange(code.size, dtype=np.uint32)
            incidence = self.equations.design.terms[term].incidence
            self._levels[term] = np.empty((record.size, len(incidence.slots)), np.uint32)
            for column, level in enumerate(incidence.slots):
                self._levels[term][:, column] = position[level[record]]
        return self._levels[term]

    def _record_weights(self, term: int) -> np.ndarray:
        """Return the weights of these levels, (n, slots) float64; no rows where all are 1."""
        if term not in self._weights:
            weights = self.equations.design.terms[term].incidence.slot_weights
            self._weights[term] = weights[self.equations.records.record] if len(weights) else weights
        return self._weights[term]


@kernel
def scaling_sums(records, levels, weights, covariates, plan, m_, T_, deviation, e, xx, xe):
    """Sums of w x x' (patterns, m, m), the lower triangle, and of w x e' (patterns, m, T), into xx and xe, which come
    as zeros.

    levels (n, slots): see `record_levels`; weights (n, slots) of these levels, or no rows.

    m_ and T_: tuples whose length is the number of places and of traits, for loops that the compiler unrolls; () for a
    general loop.
    """
    m = len(m_) if len(m_) > 0 else plan.effect.size
    T = len(T_) if len(T_) > 0 else e.shape[1]
    x = np.empty(m)
    plain, of_levels = covariates.shape[0] == 0, weights.shape[0] > 0
    weighted = records.weight.size > 0
    for r in range(np.uint64(e.shape[0])):
        pattern = records.pattern[r]
        w = np.float64(records.weight[r]) if weighted else 1.0
        for a in range(m):
            x[a] = 0.0
            for slot in range(plan.first_slot[a], plan.end_slot[a]):
                level = levels[r, slot]
                if level != UNKNOWN:
                    times = weights[r, slot] if of_levels else 1.0
                    x[a] += times * np.float64(deviation[level, plan.component[a]])
            if not plain:
                x[a] *= np.float64(covariates[r, plan.regressor[a]])
        for a in range(m):
            wx = w * x[a]
            for b in range(a + 1):
                xx[pattern, a, b] += wx * x[b]
            for t in range(T):
                xe[pattern, a, t] += wx * np.float64(e[r, t])


@kernel
def normal_equations(plan, xx, xe, Rinv, H, s):
    """H (p, p) and s (p,) float64, which come as zeros, from the sums of each pattern, xx (patterns, m, m) and xe
    (patterns, m, T), and Rinv (patterns, T, T): what is not observed meets a 0 in R_P^-1.
    """
    n_patterns, T, p = Rinv.shape[0], Rinv.shape[1], plan.place.size
    for pattern in range(n_patterns):
        for i in range(p):
            for t in range(T):
                s[i] += Rinv[pattern, plan.trait[i], t] * xe[pattern, plan.place[i], t]
            for j in range(p):
                a, b = plan.place[i], plan.place[j]
                lower = xx[pattern, a, b] if a >= b else xx[pattern, b, a]
                H[i, j] += Rinv[pattern, plan.trait[i], plan.trait[j]] * lower


@kernel
def move_levels(term, D, deviation, theta, e):
    """theta_l += D deviation_l, e_r -= W_r (change); the change is what the stored precision can hold.

    D (k, k) lower triangle, deviation and theta (q, k), e (n, T).
    """
    k = theta.shape[1]
    change = np.empty(k)
    plain = term.covariates.shape[0] == 0
    several, weighted = term.visit_effect.size > 0, term.visit_weight.size > 0
    for level in range(np.uint64(theta.shape[0])):
        for a in range(k):
            change[a] = 0.0
            for b in range(a + 1):
                change[a] += D[a, b] * np.float64(deviation[level, b])
        for a in range(k):
            old = theta[level, a]
            theta[level, a] = old + change[a]
            change[a] = np.float64(theta[level, a]) - np.float64(old)
        for v in range(term.visit_ptr[level], term.visit_ptr[level + np.uint64(1)]):
            r = term.visit_record[v]
            effect = term.visit_effect[v] if several else np.uint8(0)
            times = np.float64(term.visit_weight[v]) if weighted else 1.0
            for c in range(term.effect_first[effect], term.effect_first[effect + 1]):
                z = times if plain else times * np.float64(term.covariates[r, term.regressor[c]])
                e[r, term.trait[c]] -= change[c] * z
