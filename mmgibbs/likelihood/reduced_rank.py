"""The restricted likelihood where a covariance matrix G = L L' (k x k of rank f) has no inverse.

Effects of such a term are theta_l = L s_l, s ~ MN(0, K (x) I_f). With Lambda = blockdiag(I, ..., I (x) L, ...), W_s =
W Lambda and the scores among the equations,

    C = W_s' R^-1 W_s + blockdiag(K_j^-1 (x) P_j),     P_j = G_j^-1, or I_f
    log p(y | psi) = -1/2 [ sum_r log|R_r| + sum_j (q_j log|P_j^-1| + k_j log|K_j|) + log|C| + y'Py + (N - p) log 2 pi ]

and everything is said on the scale of theta = Lambda s: solutions, and Lambda C^-1 Lambda' in place of C^-1. With Z the
columns of W of the term and e the residuals,

    d log p / dL = 2 D L,    (D L)_tj = 1/2 sum_l [ s_lj (Z'R^-1 e)_lt - (C^-1 W_s'R^-1 Z)_lj,lt ]

of which only elements of C^-1 are needed where C is not 0. A symmetric D with these products gives all derivatives
along matrices of rank f, d log p = tr(D dG). Working variates are (dV/dG_ab) P y = Z (K (x) E) Z'R^-1 e. Derivatives of
the other matrices are those of restricted.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.sparse import block_diag, coo_array, csr_array, eye_array, kron

from mmgibbs.cholesky.factor import Factor, NotPositiveDefiniteError, analyse, factorise
from mmgibbs.equations.base import layout
from mmgibbs.likelihood.base import Place
from mmgibbs.likelihood.coefficients import factorise_inverse, fill_ones, refuse_equation
from mmgibbs.likelihood.incidence import Incidence
from mmgibbs.likelihood.matrices import Variances
from mmgibbs.likelihood.sparse import SparseLikelihood
from mmgibbs.likelihood.working_variates import working_effects, working_residuals
from mmgibbs.machine.threads import blas_threads
from mmgibbs.models.design import Design
from mmgibbs.models.structures.reduced_rank import factor_of_rank


class Observations(NamedTuple):
    """Records of one missing pattern."""

    records: np.ndarray  # (m,)
    traits: np.ndarray  # (T_p,) that they have
    rows: np.ndarray  # (m, T_p) of W


class ReducedRankLikelihood(SparseLikelihood):
    """log p(y | psi) of a design with normal traits and independent records, some of whose matrices have no inverse."""

    name = "sparse, by scores"

    def __init__(self, design: Design):
        super().__init__(design)
        self.layout = layout(design)
        masks = [
            np.ones((term.n_levels, design.n_scores[i]), bool) if i in design.n_scores else mask
            for i, (term, mask) in enumerate(zip(design.terms, self.layout.split(self.layout.active), strict=True))
        ]
        self.in_force = np.flatnonzero(np.concatenate([np.ravel(mask) for mask in masks]))
        self.equations = _number_equations(masks)
        self.W = csr_array(Incidence(design).matrix)
        self.observed = design.patterns[design.pattern]
        self.y = np.where(self.observed, design.y, 0.0)
        self.observations = list(_list_observations(design))
        self.relationships = [
            self.inverses[i] if i in self.inverses else csr_array(eye_array(term.n_levels))
            for i, term in enumerate(design.terms)
        ]
        self.symbolic = analyse(self._find_pattern())

    def combine(self, loadings: Mapping[int, np.ndarray]) -> csr_array:
        """Lambda (places of theta, equations); loadings: (k, f) of each term without an inverse."""
        blocks = [
            kron(eye_array(term.n_levels), loadings[i])
            if i in self.design.n_scores
            else eye_array(term.n_levels * size)
            for i, (term, size) in enumerate(zip(self.design.terms, self.sizes, strict=True))
        ]
        return csr_array(csr_array(block_diag(blocks, format="csr"))[:, self.in_force])

    def make_prior(self, precisions: Sequence[np.ndarray]) -> csr_array:
        """blockdiag(K^-1 (x) P) between the equations."""
        blocks = [kron(K, P, format="csr") for K, P in zip(self.relationships, precisions, strict=True)]
        return csr_array(csr_array(block_diag(blocks, format="csr"))[self.in_force][:, self.in_force])

    def _find_pattern(self) -> csr_array:
        """The elements of C that may be other than 0: of equations that a record meets, and of relatives."""
        combined = self.combine(
            {i: np.ones((self.design.terms[i].n_components, f)) for i, f in self.design.n_scores.items()}
        )
        of_records = kron(eye_array(len(self.y)), np.ones((1, self.design.n_traits)), format="csr")
        met = csr_array(of_records @ fill_ones(csr_array(self.W @ combined)))
        prior = fill_ones(self.make_prior([np.ones((size, size)) for size in self.sizes]))
        return fill_ones(csr_array(met.T @ met + prior + eye_array(self.in_force.size)))

    @cached_property
    def constant(self) -> float:
        """Of -2 log p, its sign turned."""
        return self.log_weights + self.log_determinant_of_relationships - self.freedom * float(np.log(2 * np.pi))

    @cached_property
    def factors_of_relationships(self) -> dict[int, Factor]:
        """Of K^-1 of each term without an inverse of G."""
        return {i: factorise_inverse(csr_array(self.inverses[i])) for i in self.design.n_scores}

    @property
    def description(self) -> str:
        return f"{self.in_force.size:,} equations"

    def factor(self, C: csr_array) -> Factor:
        """ModelError, which names the equation, where C is not positive definite."""
        below = coo_array(C)
        is_below = below.row >= below.col
        values = np.zeros(self.symbolic.elements)
        values[self.symbolic.locate(below.row[is_below], below.col[is_below])] = below.data[is_below]
        try:
            with blas_threads(1):
                return factorise(self.symbolic, values)
        except NotPositiveDefiniteError as error:
            raise refuse_equation(self._name_equation(error.equation)) from None

    def _name_equation(self, number: int) -> str:
        term = next(i for i, numbers in enumerate(self.equations) if number in numbers)
        return f"effect {self.design.terms[term].name}"

    def weigh(self, inverse_R: np.ndarray) -> csr_array:
        """(n T, n T) R^-1 of the records, 0 where a trait is not observed; inverse_R (patterns, T, T)."""
        weight, entries = self.design.weight, []
        for inverse, (records, traits, rows) in zip(inverse_R, self.observations, strict=True):
            for a, t in enumerate(traits):
                for b, u in enumerate(traits):
                    entries.append((rows[:, a], rows[:, b], inverse[t, u] * weight[records]))
        rows, columns, values = (np.concatenate(arrays) for arrays in zip(*entries, strict=True))
        return csr_array(coo_array((values, (rows, columns)), shape=(self.design.y.size,) * 2))

    def evaluate(self, variances: Variances) -> ReducedRankPoint:
        """ModelError where C is not positive definite there. A matrix of lower rank is taken as the nearest one."""
        return ReducedRankPoint(self, variances)


def _number_equations(masks: Sequence[np.ndarray]) -> list[np.ndarray]:
    """(q, size) int64 per term the number of each equation; -1 where set to 0."""
    first, out = 0, []
    for mask in masks:
        numbers = np.where(mask, first + np.cumsum(np.ravel(mask)).reshape(mask.shape) - 1, -1)
        out.append(numbers)
        first += int(np.count_nonzero(mask))
    return out


def _list_observations(design: Design) -> Iterator[Observations]:
    for p, seen in enumerate(design.patterns):
        records, traits = np.flatnonzero(design.pattern == p), np.flatnonzero(seen)
        yield Observations(records, traits, records[:, None] * design.n_traits + traits)


class ReducedRankPoint:
    """The likelihood at one psi; what derivatives need is computed when it is asked for."""

    def __init__(self, likelihood: ReducedRankLikelihood, variances: Variances):
        self.likelihood, self.variances = likelihood, variances
        matrices, places = likelihood.matrices, likelihood.layout
        self.L = {i: factor_of_rank(_known(variances.G[i]), f) for i, f in likelihood.design.n_scores.items()}
        # log|I| = 0 and I^-1 = I stand for what scores have in place of G
        regular = Variances([_identity(g) if i in self.L else g for i, g in enumerate(variances.G)], variances.R)
        self.v = np.ones(matrices.size)
        self.log_determinants = matrices.invert(regular.psi, self.v)
        if not np.isfinite(self.log_determinants):
            matrices.refuse_singular(regular)
        self.Ginv, inverse_R = matrices.unpack(self.v)
        self.precisions = [np.eye(likelihood.design.n_scores[i]) if i in self.L else P for i, P in enumerate(self.Ginv)]
        self.combined = likelihood.combine(self.L)
        self.W = csr_array(likelihood.W @ self.combined)  # W_s
        self.weights = likelihood.weigh(inverse_R)
        self.weighted = csr_array(self.weights @ self.W)  # R^-1 W_s
        C = csr_array(self.W.T @ self.weighted + likelihood.make_prior(self.precisions))
        self.factor = likelihood.factor(C)
        self.solved = self.factor.solve((self.weighted.T @ likelihood.y.ravel())[:, None])[:, 0]
        self.solutions = places.split(self.combined @ self.solved)
        fitted = (self.W @ self.solved).reshape(likelihood.y.shape)
        self.residuals = np.where(likelihood.observed, likelihood.y - fitted, 0.0)

    @property
    def _effects(self) -> list[np.ndarray]:
        """(q, size) per term: theta, or scores."""
        sizes, q = self.likelihood.sizes, [term.n_levels for term in self.likelihood.design.terms]
        every = np.zeros(sum(n * size for n, size in zip(q, sizes, strict=True)))
        every[self.likelihood.in_force] = self.solved
        ends = np.cumsum([n * size for n, size in zip(q, sizes, strict=True)])[:-1]
        return [part.reshape(n, size) for part, n, size in zip(np.split(every, ends), q, sizes, strict=True)]

    @cached_property
    def squares(self) -> list[np.ndarray]:
        """Theta' K^-1 Theta per term, of scores where there are some; of a fixed term Theta' Theta."""
        return [t.T @ (K @ t) for t, K in zip(self._effects, self.likelihood.relationships, strict=True)]

    def solve_equations(self, b: np.ndarray) -> np.ndarray:
        """Lambda C^-1 Lambda' b, (equations of the design, m)."""
        active = np.flatnonzero(self.likelihood.layout.active)
        combined = self.combined[active]
        return np.asarray(combined @ self.factor.solve(np.ascontiguousarray(combined.T @ b)))

    @cached_property
    def log_likelihood(self) -> float:
        """log p(y | psi), with its constant."""
        changing = self.log_determinants + self.factor.log_determinant + self.quadratic
        return -0.5 * (changing - self.likelihood.constant)

    @cached_property
    def quadratic(self) -> float:
        """y'Py, as a sum of squares: nothing cancels."""
        e = self.residuals.ravel()
        of_terms = zip(self.precisions, self.squares, strict=True)
        return float(e @ (self.weights @ e)) + sum(float(np.sum(P * square)) for P, square in of_terms)

    @cached_property
    def selected(self) -> np.ndarray:
        """C^-1 in the places of the factor."""
        with blas_threads(1):
            return self.factor.selected_inverse()

    def _select(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Elements of C^-1, 0 for equation -1."""
        places = self.likelihood.symbolic.locate(rows, columns)
        return np.where(places >= 0, self.selected[places], 0.0)

    @property
    def inverse_diagonal(self) -> np.ndarray:
        """(equations of the design,) the diagonal of Lambda C^-1 Lambda'."""
        out = []
        for i, numbers in enumerate(self.likelihood.equations):
            if i in self.L:
                size = numbers.shape[1]
                pairs = [[self._select(numbers[:, a], numbers[:, b]) for b in range(size)] for a in range(size)]
                out.append(np.einsum("ta,tb,abl->lt", self.L[i], self.L[i], np.array(pairs)))
            else:
                out.append(self._select(numbers.ravel(), numbers.ravel()).reshape(numbers.shape))
        return np.concatenate([np.ravel(diagonal) for diagonal in out])[self.likelihood.layout.active]

    @cached_property
    def derivatives(self) -> Variances:
        """D of each matrix; of one of reduced rank the D of the module."""
        likelihood = self.likelihood
        S: list[np.ndarray | None] = [None] * len(self.Ginv)
        for i in likelihood.random:
            S[i] = np.zeros_like(self.Ginv[i]) if i in self.L else self.squares[i] + self._trace(i)
        D = likelihood.matrices.differentiate(self.v, S, self._products())
        for i in self.L:
            D.G[i] = self._derivative_of_rank(i)
        return D

    def _trace(self, i: int) -> np.ndarray:
        """(k, k) sum_lm kappa_lm C^-1[(l, a), (m, b)]."""
        K, numbers = coo_array(self.likelihood.relationships[i]), self.likelihood.equations[i]
        k = numbers.shape[1]
        out = np.empty((k, k))
        for a in range(k):
            for b in range(a + 1):
                out[a, b] = out[b, a] = K.data @ self._select(numbers[K.row, a], numbers[K.col, b])
        return out

    def _products(self) -> np.ndarray:
        """(patterns, T, T) sum of w_r (e_r e_r' + W_r C^-1 W_r') over the records of each pattern."""
        likelihood, T = self.likelihood, self.likelihood.design.n_traits
        out = np.zeros((len(likelihood.observations), T, T))
        e, weight = self.residuals.ravel(), likelihood.design.weight
        for p, (records, traits, rows) in enumerate(likelihood.observations):
            w = weight[records]
            for a, t in enumerate(traits):
                for b, u in enumerate(traits[: a + 1]):
                    M = coo_array(self.W[rows[:, a]].T @ (self.W[rows[:, b]] * w[:, None]))
                    total = w @ (e[rows[:, a]] * e[rows[:, b]]) + M.data @ self._select(M.row, M.col)
                    out[p, t, u] = out[p, u, t] = total
        return out

    def _incidence(self, i: int) -> csr_array:
        """Z (n T, q k) of a term."""
        places, k = self.likelihood.layout.first, self.likelihood.design.terms[i].n_components
        return csr_array(self.likelihood.W[:, places[i] : places[i] + self.likelihood.design.terms[i].n_levels * k])

    def _score(self, i: int) -> np.ndarray:
        """(q, k) Z'R^-1 e of a term."""
        sums = self._incidence(i).T @ (self.weights @ self.residuals.ravel())
        return sums.reshape(-1, self.likelihood.design.terms[i].n_components)

    def _derivative_of_rank(self, i: int) -> np.ndarray:
        """(k, k) D with the D L of the module: D = M B' + B M' - B L'M B' of M = D L and B = L (L'L)^-1."""
        L, numbers, scores = self.L[i], self.likelihood.equations[i], self._effects[i]
        k, f = L.shape
        N = coo_array(self.weighted.T @ self._incidence(i))  # W_s' R^-1 Z
        level, component = np.divmod(N.col, k)
        M = self._score(i).T @ scores
        for j in range(f):
            M[:, j] -= np.bincount(component, N.data * self._select(N.row, numbers[level, j]), k)
        M *= 0.5
        B = np.linalg.pinv(L).T
        middle = L.T @ M
        return np.asarray(M @ B.T + B @ M.T - B @ ((middle + middle.T) / 2) @ B.T)

    def average_information(self, places: Sequence[Place]) -> np.ndarray:
        """(p, p) 1/2 F' P F of some elements, with F'PG = F'R^-1 G - (W_s'R^-1 F)' C^-1 (W_s'R^-1 G)."""
        F = self.working_variates(places).reshape(-1, len(places))
        b = self.weighted.T @ F
        total = 0.25 * (F.T @ (self.weights @ F) - b.T @ self.factor.solve(np.ascontiguousarray(b)))
        return np.asarray(total + total.T)

    def working_variates(self, places: Sequence[Place]) -> np.ndarray:
        """(n, T, p) F = (dV/dpsi) P y."""
        likelihood, design, shape = self.likelihood, self.likelihood.design, self.residuals.shape
        unweighted = (self.weights @ self.residuals.ravel()).reshape(shape) / design.weight[:, None]
        residuals = working_residuals(places, unweighted, design.class_of_pattern[design.pattern])
        units = [
            likelihood.factors_of_relationships[i].solve(self._score(i)) if i in self.L else theta @ self.Ginv[i]
            for i, theta in enumerate(self.solutions)
        ]
        effects = [effect.reshape(-1, len(places)) for effect in working_effects(places, units)]
        return residuals + (likelihood.W @ np.concatenate(effects)).reshape(*shape, len(places))


def _known(G: np.ndarray | None) -> np.ndarray:
    assert G is not None, "of a random term"
    return G


def _identity(G: np.ndarray | None) -> np.ndarray:
    return np.eye(len(_known(G)))
