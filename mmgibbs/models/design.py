"""What the solver core sees of a model and its data: NumPy arrays, no tables, no names of files.

The model of record r with observed traits P_r (its *missing pattern*) and weight w_r is

    y_r = sum over terms i of W_ri theta_i,l(r)  +  e_r,        e_r ~ N(0, R[P_r, P_r] / w_r)

(with residual classes R is that of the record's class: residual.py).

Terms are in terms.py, their relationship matrices in relationships/.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from mmgibbs.models.families import Response
from mmgibbs.models.markers import Markers
from mmgibbs.models.residual import CorrelatedRecords
from mmgibbs.models.terms import Term
from mmgibbs.pedigree.kernels import kernel


@dataclass(frozen=True)
class CentringShift:
    """Undo a centring on the original scale: Theta[target][l, c] -= sum_j mean[s(l), j] Theta[source][s(l),
    source_components[j]].

    Centring a covariate about its mean moves a constant into the term that spans the constant (an intercept or a class
    effect), trait by trait. So does a reference level: it is subtracted from its class, whose constant another term
    then contains (`Design.base`).
    """

    target: int  # term that carries the constant
    component: int  # its component (one trait)
    source: int  # the covariate term
    source_components: tuple[int, ...]  # its components of the same trait
    source_level: np.ndarray  # (q_target,) int32 level of the source for each level of the target
    means: np.ndarray  # (q_source, m) float64 means on the original scale, one per source component
    moved: np.ndarray | None = None  # (q_target,) bool: the levels that it moves; None: those in force


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
    `rescale`, then `shifts`, then `offsets` undo it for reports, and `base` sets reference levels to 0 that the sampler
    keeps, for a class with many levels should not depend on the few records of one of them.
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
    base: tuple[CentringShift, ...] = ()  # applied last
    notes: tuple[str, ...] = field(default=())  # choices made on the way, for run.json and the user
    residual_classes: tuple[str, ...] = ()  # names of the classes of the residuals; none: one R for all records
    pattern_class: np.ndarray | None = None  # (n_patterns,) int64 class of each row of `patterns`; None: one for all
    responses: tuple[Response, ...] = ()  # how traits are observed that are not normal; y then holds where they start
    markers: tuple[Markers, ...] = ()  # terms of SNP effects
    correlated: tuple[CorrelatedRecords, ...] = ()  # all records, where residuals of several are correlated; else none

    @property
    def n_records(self) -> int:
        return self.y.shape[0]

    @property
    def n_traits(self) -> int:
        return self.y.shape[1]

    @cached_property
    def class_of_pattern(self) -> np.ndarray:
        """Residual class of each row of `patterns`, (n_patterns,) int64."""
        return np.zeros(len(self.patterns), np.int64) if self.pattern_class is None else self.pattern_class

    @cached_property
    def n_scores(self) -> dict[int, int]:
        """Term whose covariance matrix has no inverse -> scores of each of its levels (models/structures)."""
        return {i: term.n_scores for i, term in enumerate(self.terms) if term.n_scores is not None}

    @property
    def reduced_rank_name(self) -> str | None:
        """Name of the first term whose covariance matrix has no inverse."""
        return next((self.terms[i].name for i in self.n_scores), None)

    @property
    def n_equations(self) -> int:
        return sum(t.n_equations for t in self.terms)

    @property
    def n_effects(self) -> int:
        """Numbers in Theta: every component of every level, those held at 0 too, which are no equations."""
        return sum(t.n_levels * t.n_components for t in self.terms)

    def to_original_scale(self, theta: list[np.ndarray]) -> list[np.ndarray]:
        """Solutions on the scale of the user's covariates and traits;
        `theta` (one (q, k) array per term) is left as it is.
        """
        out = [t.astype(np.float64) for t in theta]
        for r in self.rescale:
            columns = list(r.components)
            out[r.term][:, columns] = out[r.term][:, columns] @ r.matrix.T
        for s in self.shifts:
            self._shift(out, s)
        for term, component, value in self.offsets:
            out[term][:, component] += _fill_active(self.terms[term], component, value)
        for s in self.base:
            self._shift(out, s)
        return out

    def to_model_scale(self, theta: list[np.ndarray]) -> list[np.ndarray]:
        """Solutions on the scale of this design from those on the user's scale: W theta + offsets is the same.

        `base` is not undone, as it changes no fitted value.
        """
        out = [t.astype(np.float64) for t in theta]
        for term, component, value in self.offsets:
            out[term][:, component] -= _fill_active(self.terms[term], component, value)
        for s in reversed(self.shifts):
            self._shift(out, s, -1.0)
        for r in reversed(self.rescale):
            columns = list(r.components)
            out[r.term][:, columns] = np.linalg.solve(r.matrix, out[r.term][:, columns].T).T
        return out

    def _shift(self, theta: list[np.ndarray], s: CentringShift, sign: float = 1.0) -> None:
        source = theta[s.source][:, list(s.source_components)]
        shift = sign * np.einsum("lj,lj->l", s.means, source)[s.source_level]
        if s.moved is None:
            theta[s.target][:, s.component] -= _fill_active(self.terms[s.target], s.component, shift)
        else:
            theta[s.target][:, s.component] -= np.where(s.moved, shift, 0.0)

    def estimated(self, term: int) -> np.ndarray | None:
        """Mark the levels and components of a term with a solution on the original scale, (q, k) bool; None: all.

        The others are set to 0. Where `base` moves the term these are not the equations in force.
        """
        active = self.terms[term].active
        for s in self.base:
            if s.target == term and s.moved is not None:
                t = self.terms[term]
                active = np.ones((t.n_levels, t.n_components), bool) if active is None else active.copy()
                active[s.moved, s.component] = True
                if s.source == term:  # the reference level, less itself
                    active[s.moved & (s.source_level == np.arange(t.n_levels)), s.component] = False
        return active


def _fill_active(term: Term, component: int, value: np.ndarray | float) -> np.ndarray | float:
    return value if term.active is None else np.where(term.active[:, component], value, 0.0)


def inverse_by_pattern(R: np.ndarray, patterns: np.ndarray, class_of_pattern: np.ndarray) -> np.ndarray:
    """Invert the observed part R_c[P, P] for each missing pattern, (n_patterns, T, T).

    The inverse is zero-padded (not a part of the inverse of R_c); LinAlgError where one is not positive definite.

    R (classes, T, T) float64, patterns (n_patterns, T) bool, class_of_pattern (n_patterns,) int64. Compiled: with
    sampled variances it runs once per sweep.
    """
    out = np.zeros((len(patterns), *R.shape[1:]))
    if not _invert_observed(R, patterns, class_of_pattern, out):
        raise np.linalg.LinAlgError("Matrix is not positive definite.")
    return out


@kernel
def _invert_observed(R, patterns, class_of_pattern, out):
    """`inverse_by_pattern` into `out`, which comes as zeros, by sweeping each observed trait (Goodnight 1979): without
    exchanges of rows, since R is positive definite. False where a pivot is not above 0."""
    T = R.shape[1]
    for p in range(patterns.shape[0]):
        A, observed = out[p], patterns[p]
        for i in range(T):
            for j in range(T):
                if observed[i] and observed[j]:
                    A[i, j] = R[class_of_pattern[p], i, j]
        for m in range(T):
            if observed[m]:
                if not A[m, m] > 0.0:
                    return False
                pivot = 1.0 / A[m, m]
                for i in range(T):
                    if i != m:
                        multiple = A[i, m] * pivot
                        for j in range(T):
                            if j != m:
                                A[i, j] -= multiple * A[m, j]
                        A[i, m] = -multiple
                for j in range(T):
                    A[m, j] *= pivot
                A[m, m] = pivot
    return True
