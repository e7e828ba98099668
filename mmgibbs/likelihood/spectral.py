"""The restricted likelihood of one relationship and a residual, by one diagonalisation (Kang et al. 2008, EMMA; Zhou &
Stephens 2014, GEMMA).

With records times the square roots of their weights, and the same fixed effects for all traits,

    Y = X B + Z U + E        U ~ MN(0, K (x) G)        E ~ MN(0, I (x) R)

the eigenvectors Q and values d of S Z K Z' S, S = I - X (X'X)^-1 X', leave out the n - p directions without fixed
effects, in which the traits are independent of those of any other direction:

    h_i = Y'q_i ~ N(0, V_i),    V_i = d_i G + R

    log p(y | psi) = -1/2 [ sum_i (log|V_i| + h_i' V_i^-1 h_i) + T log|X'X| - T sum_r log w_r + (N - p) log 2 pi ]

With v_i = V_i^-1 h_i and unit matrices E of elements, the derivatives, d log p = tr(D dG), and the information are

    D_G = -1/2 sum_i d_i (V_i^-1 - v_i v_i')        D_R = -1/2 sum_i (V_i^-1 - v_i v_i')
    1/2 f'Pg = 1/2 sum_i f_i' V_i^-1 g_i            f_i = d_i E v_i of G,  E v_i of R

Solutions and their errors ask for A = K Z'Q, c = X'ZKZ'Q and an X with orthonormal columns:

    U = A v G                                       PEV of U_l = K_ll G - sum_i a_li^2 G V_i^-1 G
    B = X'(Y - Z U)                                 var(B) = X'ZKZ'X (x) G + I (x) R - sum_i c_i c_i' (x) G V_i^-1 G

After the diagonalisation a point takes n T^3 operations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy

from mmgibbs.equations.base import layout
from mmgibbs.errors import ModelError
from mmgibbs.likelihood.base import Likelihood, Place
from mmgibbs.likelihood.matrices import Variances
from mmgibbs.machine.threads import blas_threads
from mmgibbs.models.design import Design
from mmgibbs.models.terms import Term

# Measured on one core with 1,814 animals: a diagonalisation takes as long as 27 n^3 / 3 operations of a sparse factor,
# products with a dense K as 3 of them.
DIAGONALISATION, PRODUCTS = 9.0, 1.0  # operations for each n^3, and each n q^2
COLUMN_BYTES = 256_000_000  # of columns of K at once
MIN_SINGULAR_VALUE = 1e-9  # of X, relative to the largest one


class FixedColumn(NamedTuple):
    """A column of X: one level of one regressor of a fixed term."""

    term: int
    effect: int
    regressor: int
    level: int


class Spectrum(NamedTuple):
    """The diagonalisation: n records in m = n - p directions."""

    values: np.ndarray  # (m,) d
    vectors: np.ndarray  # (n, m) Q
    y: np.ndarray  # (m, T) h
    shared: np.ndarray  # (p, m) c = X'ZKZ'Q, X orthonormal
    of_fixed: np.ndarray  # (p, p) X'ZKZ'X
    diagonal: np.ndarray  # of K, the levels with records


@dataclass(frozen=True)
class OneRelationship:
    """A design with one random term, whose records have all traits or none."""

    design: Design
    term: int  # the random one
    records: np.ndarray  # (n,) int64 those with traits
    level: np.ndarray  # (n,) int32 of the random term; -1: the record does not meet it
    z: np.ndarray  # (n,) covariate of the random term times sqrt(w); 0 where the record does not meet it
    columns: tuple[FixedColumn, ...]  # (p,) of X

    @property
    def operations(self) -> float:
        """Operations for the columns of K and the diagonalisation, in those of a sparse factor."""
        n, q = float(self.records.size), float(self.design.terms[self.term].n_levels)
        return DIAGONALISATION * n**3 + PRODUCTS * n * q * q

    @property
    def bytes(self) -> int:
        """Bytes of the matrices between records, and of columns of K."""
        n, q = self.records.size, self.design.terms[self.term].n_levels
        return 8 * 6 * n * n + 2 * min(COLUMN_BYTES, 8 * n * q) + 8 * n * q

    @property
    def root_weights(self) -> np.ndarray:
        """(n,) sqrt(w)"""
        return np.sqrt(self.design.weight[self.records])

    def fixed_effects(self) -> np.ndarray:
        """(n, p) X, times sqrt(w)."""
        X = np.zeros((self.records.size, len(self.columns)))
        for j, column in enumerate(self.columns):
            effect = self.design.terms[column.term].effects[column.effect]
            met = effect.level[self.records] == column.level
            X[met, j] = 1.0 if effect.covariates is None else effect.covariates[self.records[met], column.regressor]
        return X * self.root_weights[:, None]


def one_relationship(design: Design) -> OneRelationship | None:
    """The design in that form; None where it has another one."""
    random = [i for i, term in enumerate(design.terms) if term.kind == "random"]
    complete = np.asarray(design.patterns.all(axis=1))
    if len(random) != 1 or design.residual_classes or design.markers or design.responses:
        return None
    if not complete.any() or (design.patterns.any(axis=1) != complete).any():
        return None
    if not _is_plain(design, random[0]) or not _scales_fixed_terms_alone(design):
        return None
    columns = [tuple(_fixed_columns(design, t)) for t in range(design.n_traits)]
    if any(of_trait != columns[0] for of_trait in columns[1:]):
        return None
    records = np.flatnonzero(complete[design.pattern])
    effect = design.terms[random[0]].effects[0]
    level = effect.level[records]
    z = np.ones(records.size) if effect.covariates is None else effect.covariates[records, 0]
    z = np.where(level >= 0, z, 0.0) * np.sqrt(design.weight[records])
    return OneRelationship(design, random[0], records, level, z, columns[0])


def _is_plain(design: Design, number: int) -> bool:
    """The random term has one effect with one covariate on all traits, all of its levels have a variance, and fixed
    terms are flat."""
    term = design.terms[number]
    return (
        len(term.effects) == 1
        and not term.has_several_levels
        and term.effects[0].n_regressors == 1
        and term.effects[0].traits == tuple(range(design.n_traits))
        and (term.active is None or bool(term.active.all()))
        and term.n_without_fixed_groups == term.n_levels
        and all(t.prior_precision is None for t in design.terms)
    )


def _scales_fixed_terms_alone(design: Design) -> bool:
    """Solutions of random terms are those of the user's scale."""
    touched = {r.term for r in design.rescale} | {
        i for s in (*design.shifts, *design.base) for i in (s.target, s.source)
    }
    return all(design.terms[i].kind == "fixed" for i in touched)


def _fixed_columns(design: Design, trait: int) -> Iterator[FixedColumn]:
    """List the fixed columns of one trait."""
    for number, effect, regressor, component in _fixed_components(design, trait):
        active = design.terms[number].active
        levels = range(design.terms[number].n_levels) if active is None else np.flatnonzero(active[:, component])
        for level in levels:
            yield FixedColumn(number, effect, regressor, int(level))


def _fixed_components(design: Design, trait: int) -> Iterator[tuple[int, int, int, int]]:
    """(term, effect, regressor, component) of the fixed terms on one trait."""
    for number, term in enumerate(design.terms):
        component = 0
        for e, effect in enumerate(term.effects):
            for t in effect.traits:
                for regressor in range(effect.n_regressors):
                    if term.kind == "fixed" and t == trait:
                        yield number, e, regressor, component
                    component += 1


def _columns_of_K(term: Term, levels: np.ndarray, rows: np.ndarray) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
    """(which of `levels`, K[rows, those], their diagonal), some levels at a time."""
    q = term.n_levels
    size = max(1, COLUMN_BYTES // (8 * max(q, 1)))
    for first in range(0, levels.size, size):
        chunk = levels[first : first + size]
        unit, place = np.zeros((q, chunk.size)), np.arange(chunk.size)
        unit[chunk, place] = 1.0
        columns = term.relationship.times(unit)
        yield slice(first, first + chunk.size), columns[rows], columns[chunk, place]


class SpectralLikelihood(Likelihood):
    """log p(y | psi) of a design with one relationship. LinAlgError where fixed effects depend on each other."""

    def __init__(self, known: OneRelationship):
        super().__init__(known.design)
        self.known, self.term = known, known.design.terms[known.term]
        self.meeting = np.flatnonzero(known.z != 0.0)  # records that meet a level
        by_size = self.meeting[np.argsort(-np.abs(known.z[self.meeting]), kind="stable")]
        self.levels, first = np.unique(known.level[by_size], return_index=True)
        self.record_of_level = by_size[first]  # that with the largest covariate
        self.place = np.searchsorted(self.levels, known.level[self.meeting])  # among the levels with records
        X = known.fixed_effects()
        self.basis, self.triangle = np.linalg.qr(X)  # X = basis triangle
        sizes = np.abs(np.diag(self.triangle))
        if X.shape[1] > len(X) or not (sizes > MIN_SINGULAR_VALUE * np.linalg.norm(X, axis=0)).all():
            raise np.linalg.LinAlgError("fixed effects depend on each other")
        log_gram = 2.0 * float(np.sum(np.log(sizes)))
        self.constant = self.log_weights - self.design.n_traits * log_gram - self.freedom * np.log(2 * np.pi)

    @cached_property
    def equations(self) -> list[np.ndarray]:
        """(q, k) per term: the number of each equation; -1 where it is set to 0."""
        places = layout(self.design)
        return places.split(places.equation)

    def fixed_places(self, trait: int) -> list[tuple[int, int, int]]:
        """(term, level, component) of each column of X, for one trait."""
        components = {(n, e, a): c for n, e, a, c in _fixed_components(self.design, trait)}
        return [(c.term, c.level, components[c[:3]]) for c in self.known.columns]

    @cached_property
    def fixed_equations(self) -> np.ndarray:
        """(p T,) equations of the columns of X, column by column, trait by trait."""
        places = [self.fixed_places(t) for t in range(self.design.n_traits)]
        return np.array(
            [self.equations[i][level, c] for column in zip(*places, strict=True) for i, level, c in column], int
        )

    @cached_property
    def spectrum(self) -> Spectrum:
        """ModelError where K^-1 is not positive definite."""
        known, n, p = self.known, *self.basis.shape
        with blas_threads(1):
            H, diagonal = self._record_covariances()
            raised = float(np.trace(H)) / n or 1.0
            shared = self.basis.T @ H
            of_fixed = shared @ self.basis
            H -= self.basis @ shared
            H -= (H @ self.basis) @ self.basis.T
            # the directions of fixed effects keep the value 0, and all others are moved above them
            H += raised * (np.eye(n) - self.basis @ self.basis.T)
            values, vectors = scipy.linalg.eigh((H + H.T) / 2, driver="evd", overwrite_a=True, check_finite=False)
            vectors = vectors[:, p:]
            y = vectors.T @ (known.design.y[known.records] * known.root_weights[:, None])
            return Spectrum(np.maximum(values[p:] - raised, 0.0), vectors, y, shared @ vectors, of_fixed, diagonal)

    def _record_covariances(self) -> tuple[np.ndarray, np.ndarray]:
        """(n, n) Z K Z', weighted; the diagonal of K of the levels with records."""
        K, diagonal = np.empty((self.levels.size,) * 2), np.empty(self.levels.size)
        try:
            for chunk, columns, of_chunk in _columns_of_K(self.term, self.levels, self.levels):
                K[:, chunk], diagonal[chunk] = columns, of_chunk
        except np.linalg.LinAlgError:
            raise ModelError(
                f"the inverse relationship matrix of {self.term.name} is not positive definite; needed one that is"
            ) from None
        n, z = self.known.records.size, self.known.z[self.meeting]
        H = np.zeros((n, n))
        H[np.ix_(self.meeting, self.meeting)] = K[np.ix_(self.place, self.place)] * z[:, None] * z
        return H, diagonal

    def evaluate(self, variances: Variances) -> SpectralPoint:
        return SpectralPoint(self, variances)

    def _mean_unknown_diagonal(self, i: int) -> float:
        return float(np.mean(self.spectrum.diagonal))

    @property
    def description(self) -> str:
        return f"{self.known.records.size:,} records, their covariances diagonalised once"

    @property
    def step(self) -> str:
        return "for that"

    @property
    def operations(self) -> float:
        return self.known.operations

    @property
    def bytes(self) -> int:
        return self.known.bytes

    @property
    def facts(self) -> dict[str, Any]:
        return {"likelihood": "spectral", "eigenvalues": self.spectrum.values.size}

    @cached_property
    def reach(self) -> tuple[np.ndarray, np.ndarray]:
        """(q, m) A = K Z'Q, and the diagonal of K. Levels with records have it from Z K Z'Q = Q d + X c."""
        spectrum, known, q = self.spectrum, self.known, self.term.n_levels
        A, diagonal = np.empty((q, spectrum.values.size)), np.empty(q)
        with blas_threads(1):
            of_records = spectrum.vectors * spectrum.values + self.basis @ spectrum.shared
            A[self.levels] = of_records[self.record_of_level] / known.z[self.record_of_level, None]
            diagonal[self.levels] = spectrum.diagonal
            without = np.delete(np.arange(q), self.levels)
            if without.size:
                met = (known.z[self.meeting], (self.place, self.meeting))
                incidence = scipy.sparse.csr_array(met, shape=(self.levels.size, known.records.size))
                of_levels = incidence @ spectrum.vectors
                for chunk, columns, of_chunk in _columns_of_K(self.term, without, self.levels):
                    A[without[chunk]], diagonal[without[chunk]] = columns.T @ of_levels, of_chunk
        return A, diagonal


class SpectralPoint:
    """The likelihood at one psi."""

    def __init__(self, likelihood: SpectralLikelihood, variances: Variances):
        self.likelihood, self.variances, spectrum = likelihood, variances, likelihood.spectrum
        likelihood.matrices.refuse_singular(variances)
        G = variances.G[likelihood.known.term]
        assert G is not None
        self.G, self.R = G, variances.R[0]
        V = spectrum.values[:, None, None] * self.G + self.R  # (m, T, T)
        self.log_determinant = float(np.linalg.slogdet(V)[1].sum())
        self.inverse = np.linalg.inv(V)
        self.v = np.einsum("itu,iu->it", self.inverse, spectrum.y)

    @cached_property
    def log_likelihood(self) -> float:
        """log p(y | psi), with its constant."""
        quadratic = float(np.sum(self.v * self.likelihood.spectrum.y))
        return -0.5 * (self.log_determinant + quadratic - self.likelihood.constant)

    @cached_property
    def derivatives(self) -> Variances:
        """D of each matrix."""
        values, terms = self.likelihood.spectrum.values, len(self.variances.G)
        by_G, by_R = (
            -0.5 * (np.einsum("i,itu->tu", d, self.inverse) - (self.v * d[:, None]).T @ self.v)
            for d in (values, np.ones(values.size))
        )
        G = [by_G if i == self.likelihood.known.term else None for i in range(terms)]
        return Variances(G, by_R[None])

    def average_information(self, places: Sequence[Place]) -> np.ndarray:
        """(p, p) 1/2 F' P F of the working variates of some elements."""
        F = np.zeros((*self.v.shape, len(places)))
        for number, place in enumerate(places):
            d = 1.0 if place.term is None else self.likelihood.spectrum.values
            F[:, place.row, number] = d * self.v[:, place.column]
            F[:, place.column, number] = d * self.v[:, place.row]
        total = 0.25 * np.einsum("itp,itq->pq", F, np.einsum("itu,iuq->itq", self.inverse, F))
        return total + total.T

    @cached_property
    def residuals(self) -> np.ndarray:
        """(n, T) e = Q v R, records in model order; 0 where not observed."""
        known = self.likelihood.known
        out = np.zeros(known.design.y.shape)
        of_records = self.likelihood.spectrum.vectors @ (self.v @ self.R)
        out[known.records] = of_records / known.root_weights[:, None]
        return out

    @cached_property
    def solutions(self) -> list[np.ndarray]:
        """(q, k) per term: BLUE and BLUP at these variances, on the scale of the equations."""
        likelihood, known = self.likelihood, self.likelihood.known
        U = likelihood.reach[0] @ (self.v @ self.G)
        y = known.design.y[known.records] * known.root_weights[:, None]
        of_effects = y - known.root_weights[:, None] * self.residuals[known.records]
        of_effects[likelihood.meeting] -= known.z[likelihood.meeting, None] * U[known.level[likelihood.meeting]]
        B = scipy.linalg.solve_triangular(likelihood.triangle, likelihood.basis.T @ of_effects)
        out = [np.zeros((t.n_levels, t.n_components)) for t in known.design.terms]
        out[known.term] = U
        for trait in range(known.design.n_traits):
            for (term, level, component), solution in zip(likelihood.fixed_places(trait), B[:, trait], strict=True):
                out[term][level, component] = solution
        return out

    @cached_property
    def fixed_covariance(self) -> np.ndarray:
        """(p T, p T) of the solutions of fixed effects, column by column of X, trait by trait."""
        spectrum, p, T = self.likelihood.spectrum, len(self.likelihood.triangle), len(self.R)
        c = spectrum.shared
        lost = np.einsum("ji,itu,ki->jtku", c, self.G @ self.inverse @ self.G, c, optimize=True)
        J = np.einsum("tu,jk->jtku", self.G, spectrum.of_fixed) + np.einsum("tu,jk->jtku", self.R, np.eye(p)) - lost
        root = np.kron(scipy.linalg.solve_triangular(self.likelihood.triangle, np.eye(p)), np.eye(T))
        return root @ J.reshape(p * T, p * T) @ root.T

    @cached_property
    def inverse_diagonal(self) -> np.ndarray:
        """(equations,) the diagonal of C^-1."""
        likelihood, known = self.likelihood, self.likelihood.known
        A, of_K = likelihood.reach
        lost = np.einsum("tu,iuv,vt->it", self.G, self.inverse, self.G)  # the diagonals of G V_i^-1 G
        out = np.zeros(sum(t.n_equations for t in known.design.terms))
        of_random = likelihood.equations[known.term]
        out[of_random] = of_K[:, None] * np.diag(self.G) - (A * A) @ lost
        out[likelihood.fixed_equations] = np.diag(self.fixed_covariance)
        return out

    def solve_equations(self, b: np.ndarray) -> np.ndarray:
        """C^-1 b, (equations, m), of b that is 0 but for fixed effects; of the solution these alone."""
        out, fixed = np.zeros(b.shape), self.likelihood.fixed_equations
        out[fixed] = self.fixed_covariance @ b[fixed]
        return out
