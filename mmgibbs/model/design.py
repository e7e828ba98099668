"""What the solver core sees of a model and its data: NumPy arrays, no tables, no names of files.

The model of record r with observed traits P_r (its *missing pattern*) and weight w_r is

    y_r = sum over terms k of W_rk theta_k,l(r)  +  e_r,        e_r ~ N(0, R[P_r, P_r] / w_r)

A *term* holds q levels with k components each, Theta (q x k). Its components run effect by effect, then trait by trait,
then coefficient by coefficient. Each effect brings one level per record and either the constant 1 or m covariates; the
pairs (effect, covariate) are the term's *regressors*, numbered effect by effect. So component c has a trait t(c) and a
regressor a(c), and

    W_rk[t, c] = z_r,a(c)   where t = t(c),   else 0.

Fixed and random terms differ in their prior alone:

    random:  Theta ~ MN(0, K (x) G)        precision K^-1 (x) G^-1, G is a parameter
    fixed:   precision I (x) `prior_precision` (k x k; zero where the prior is flat), never sampled
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numba import njit


@dataclass(frozen=True)
class Identity:
    """K = I: levels are independent a priori."""

    n_levels: int


@dataclass(frozen=True)
class SparseInverse:
    """A user's K^-1 in CSR: symmetric, both triangles, diagonal included."""

    indptr: np.ndarray  # (q + 1,) int64
    indices: np.ndarray  # (nnz,) int32, sorted within a row
    values: np.ndarray  # (nnz,) float64


# The third kind is pedigree.relationship.Relatives: the structured A-inverse (parents, 1/d, progeny lists).


@dataclass(frozen=True)
class Effect:
    """One way in which records meet the levels of a term: 'direct' through the animal, 'maternal' through its dam."""

    name: str  # '' where the term has one unnamed effect
    level: np.ndarray  # (n,) int32 level of each record; -1: the record does not meet this effect
    traits: tuple[int, ...]  # the traits that it acts on
    covariates: np.ndarray | None = None  # (n, m) float64; None: the constant 1 (m = 1)
    coefficients: tuple[str, ...] = ("",)  # (m,) label of each covariate, as reported

    @property
    def n_regressors(self) -> int:
        return 1 if self.covariates is None else self.covariates.shape[1]


@dataclass(frozen=True)
class Term:
    """A fixed effect, or the random effects that share one covariance matrix."""

    name: str
    kind: str  # 'fixed' | 'random'
    effects: tuple[Effect, ...]
    relationship: object  # Identity | SparseInverse | pedigree.relationship.Relatives
    n_levels: int  # q, unknown-parent groups included
    prior_precision: np.ndarray | None = None  # (k, k), fixed terms only; None: flat
    active: np.ndarray | None = None  # (q, k) bool; False: held at 0 (dropped, or without records); None: all active
    n_groups: int = 0  # the last n_groups levels are unknown-parent groups
    groups_fixed: bool = False

    @property
    def component_effect(self) -> np.ndarray:
        """(k,) int64: the effect of each component."""
        return np.array(
            [i for i, e in enumerate(self.effects) for _ in e.traits for _ in range(e.n_regressors)], np.int64
        )

    @property
    def component_trait(self) -> np.ndarray:
        """(k,) int64: t(c)."""
        return np.array([t for e in self.effects for t in e.traits for _ in range(e.n_regressors)], np.int64)

    @property
    def component_regressor(self) -> np.ndarray:
        """(k,) int64: a(c)."""
        first = np.cumsum([0] + [e.n_regressors for e in self.effects])
        return np.array(
            [first[i] + j for i, e in enumerate(self.effects) for _ in e.traits for j in range(e.n_regressors)],
            np.int64,
        )

    @property
    def regressor_effect(self) -> np.ndarray:
        """(m,) int64: the effect that each regressor belongs to."""
        return np.array([i for i, e in enumerate(self.effects) for _ in range(e.n_regressors)], np.int64)

    @property
    def n_components(self) -> int:
        return sum(len(e.traits) * e.n_regressors for e in self.effects)

    @property
    def n_regressors(self) -> int:
        return sum(e.n_regressors for e in self.effects)

    @property
    def n_equations(self) -> int:
        """Equations in force: components held at 0 are not counted."""
        return self.n_levels * self.n_components if self.active is None else int(np.count_nonzero(self.active))

    @property
    def n_prior_levels(self) -> int:
        """Levels that count as degrees of freedom of an inverse-Wishart: fixed unknown-parent groups never do."""
        return self.n_levels - (self.n_groups if self.groups_fixed else 0)


@dataclass(frozen=True)
class CentringShift:
    """Undo a centring on the original scale: Theta[target][l, c] -= sum_j mean[l, j] Theta[source][s(l),
    source_components[j]].

    Centring a covariate about its mean moves a constant into the term that spans the constant (an intercept or a class
    effect), trait by trait.
    """

    target: int  # term that carries the constant
    component: int  # its component (one trait)
    source: int  # the covariate term
    source_components: tuple[int, ...]  # its components of the same trait
    source_level: np.ndarray  # (q_target,) int32 level of the source for each level of the target
    means: np.ndarray  # (q_source, m) float64 means on the original scale, one per source component


@dataclass(frozen=True)
class Rescale:
    """Undo an orthonormalisation on the original scale: Theta[term][:, components] <- Theta[term][:, components] @
    matrix.T.
    """

    term: int
    components: tuple[int, ...]
    matrix: np.ndarray  # (m, m)


@dataclass(frozen=True)
class Design:
    """Records, terms and traits. Covariates are already centred and orthonormal;
    `rescale`, then `shifts`, then `offsets` undo it for reports.
    """

    traits: tuple[str, ...]
    y: np.ndarray  # (n, T) float64; NaN where not observed; centred by `offsets`
    pattern: np.ndarray  # (n,) int32 row of `patterns`
    patterns: np.ndarray  # (n_patterns, T) bool: the observed traits P_r
    weight: np.ndarray  # (n,) float64, positive
    terms: tuple[Term, ...]
    rescale: tuple[Rescale, ...] = ()
    shifts: tuple[CentringShift, ...] = ()
    offsets: tuple[
        tuple[int, int, float], ...
    ] = ()  # (term, component, value): value added to every active level of that component
    notes: tuple[str, ...] = field(default=())  # choices made on the way, for run.json and the user

    @property
    def n_records(self) -> int:
        return self.y.shape[0]

    @property
    def n_traits(self) -> int:
        return self.y.shape[1]

    @property
    def n_equations(self) -> int:
        return sum(t.n_equations for t in self.terms)

    def to_original_scale(self, theta: list[np.ndarray]) -> list[np.ndarray]:
        """Solutions on the scale of the user's covariates and traits;
        `theta` (one (q, k) array per term) is left as it is.
        """
        out = [t.astype(np.float64) for t in theta]
        for r in self.rescale:
            columns = list(r.components)
            out[r.term][:, columns] = out[r.term][:, columns] @ r.matrix.T
        for s in self.shifts:
            source = out[s.source][:, list(s.source_components)]
            shift = np.einsum("lj,lj->l", s.means, source)[s.source_level]
            out[s.target][:, s.component] -= _where_active(self.terms[s.target], s.component, shift)
        for term, component, value in self.offsets:
            out[term][:, component] += _where_active(self.terms[term], component, value)
        return out


def _where_active(term: Term, component: int, value):
    return value if term.active is None else np.where(term.active[:, component], value, 0.0)


@njit(cache=True)
def inverse_by_pattern(R: np.ndarray, patterns: np.ndarray) -> np.ndarray:
    """(n_patterns, T, T): for each missing pattern the inverse of the observed part R[P, P], zero-padded (not a part of
    the inverse).

    R (T, T) float64, patterns (n_patterns, T) bool. Compiled: with sampled variances it runs once per sweep.
    """
    out = np.zeros((patterns.shape[0], R.shape[0], R.shape[0]))
    for p in range(patterns.shape[0]):
        observed = np.flatnonzero(patterns[p])
        part = np.empty((observed.size, observed.size))
        for i in range(observed.size):
            for j in range(observed.size):
                part[i, j] = R[observed[i], observed[j]]
        inverse = np.linalg.inv(part)
        for i in range(observed.size):
            for j in range(observed.size):
                out[p, observed[i], observed[j]] = inverse[i, j]
    return out
