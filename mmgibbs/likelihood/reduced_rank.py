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

from collections.abc import Mapping
from functools import cached_property

import numpy as np
from scipy.sparse import block_diag, coo_array, csr_array, eye_array, kron

from mmgibbs.likelihood.cholesky.factor import Factor, analyse
from mmgibbs.likelihood.coefficients import factorise_inverse, fill_ones
from mmgibbs.likelihood.matrices import Variances
from mmgibbs.likelihood.records import RecordsLikelihood, RecordsPoint
from mmgibbs.models.design import Design
from mmgibbs.models.structures.reduced_rank import factor_of_rank


class ReducedRankLikelihood(RecordsLikelihood):
    """log p(y | psi) of a design with normal traits and independent records, some of whose matrices have no inverse."""

    name = "sparse, by scores"

    def __init__(self, design: Design):
        super().__init__(design)
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

    def _find_pattern(self) -> csr_array:
        """The elements of C that may be other than 0: of equations that a record meets, and of relatives."""
        combined = self.combine(
            {i: np.ones((self.design.terms[i].n_components, f)) for i, f in self.design.n_scores.items()}
        )
        of_records = kron(eye_array(self.design.n_records), np.ones((1, self.design.n_traits)), format="csr")
        met = csr_array(of_records @ fill_ones(csr_array(self.incidence.matrix @ combined)))
        prior = fill_ones(self.make_prior([np.ones((size, size)) for size in self.sizes]))
        return fill_ones(csr_array(met.T @ met + prior + eye_array(self.n_equations)))

    @cached_property
    def factors_of_relationships(self) -> dict[int, Factor]:
        """Factors of K^-1 of each term without an inverse of G."""
        return {i: factorise_inverse(csr_array(self.inverses[i])) for i in self.design.n_scores}

    def _name_equation(self, number: int) -> str:
        term = next(i for i, numbers in enumerate(self.equations) if number in numbers)
        return f"effect {self.design.terms[term].name}"

    def evaluate(self, variances: Variances) -> ReducedRankPoint:
        """ModelError where C is not positive definite there. A matrix of lower rank is taken as the nearest one."""
        return ReducedRankPoint(self, variances)


class ReducedRankPoint(RecordsPoint):
    """The likelihood at one psi; what derivatives need is computed when it is asked for."""

    likelihood: ReducedRankLikelihood

    def __init__(self, likelihood: ReducedRankLikelihood, variances: Variances):
        super().__init__(likelihood, variances)
        scores = likelihood.design.n_scores
        self.L = {i: factor_of_rank(_known(variances.G[i]), f) for i, f in scores.items()}
        # log|I| = 0 and I^-1 = I stand for what scores have in place of G
        G = [np.eye(len(_known(g))) if i in self.L else g for i, g in enumerate(variances.G)]
        weights = likelihood.weigh(self._invert(Variances(G, variances.R)))
        self.precisions = [np.eye(scores[i]) if i in self.L else P for i, P in enumerate(self.Ginv)]
        self.combined = likelihood.combine(self.L)
        W = csr_array(likelihood.incidence.matrix @ self.combined)  # W_s
        self.weighted = csr_array(weights @ W)  # R^-1 W_s
        C = csr_array(W.T @ self.weighted + likelihood.make_prior(self.precisions))
        self._solve(weights, W, likelihood.factor(C))

    @property
    def solutions(self) -> list[np.ndarray]:
        """(q, k) per term: BLUE and BLUP at these variances, on the scale of the equations."""
        return self.likelihood.layout.split(self.combined @ self.solved)

    def solve_equations(self, b: np.ndarray) -> np.ndarray:
        """Lambda C^-1 Lambda' b, (equations of the design, m)."""
        combined = self.combined[np.flatnonzero(self.likelihood.layout.active)]
        return np.asarray(combined @ self.factor.solve(np.ascontiguousarray(combined.T @ b)))

    @property
    def inverse_diagonal(self) -> np.ndarray:
        """(equations of the design,) the diagonal of Lambda C^-1 Lambda'."""
        out = []
        for i, numbers in enumerate(self.likelihood.equations):
            if i in self.L:
                size = numbers.shape[1]
                pairs = [[self.select(numbers[:, a], numbers[:, b]) for b in range(size)] for a in range(size)]
                out.append(np.einsum("ta,tb,abl->lt", self.L[i], self.L[i], np.array(pairs)))
            else:
                out.append(self.select(numbers.ravel(), numbers.ravel()).reshape(numbers.shape))
        return np.concatenate([np.ravel(diagonal) for diagonal in out])[self.likelihood.layout.active]

    @cached_property
    def derivatives(self) -> Variances:
        """D of each matrix; of one of reduced rank the D of the module."""
        likelihood = self.likelihood
        S: list[np.ndarray | None] = [None] * len(self.Ginv)
        for i in likelihood.random:
            zero = np.zeros_like(self.Ginv[i])
            S[i] = zero if i in self.L else self.squares[i] + self._trace(i, zero + 1.0)
        D = likelihood.matrices.differentiate(self.v, S, self._products() + self._trace_records())
        for i in self.L:
            D.G[i] = self._derivative_of_rank(i)
        return D

    def _trace_records(self) -> np.ndarray:
        """(patterns, T, T) sum of w_r W_r C^-1 W_r' over the records of each pattern."""
        design = self.likelihood.design
        out = np.zeros((len(design.patterns), design.n_traits, design.n_traits))
        for p, seen in enumerate(design.patterns):
            records = np.flatnonzero(design.pattern == p)
            of_traits = {t: self.W[records * design.n_traits + t] for t in np.flatnonzero(seen)}
            for t, W_t in of_traits.items():
                for u, W_u in of_traits.items():
                    if u <= t:
                        M = coo_array(W_t.T @ (W_u * design.weight[records, None]))
                        out[p, t, u] = out[p, u, t] = M.data @ self.select(M.row, M.col)
        return out

    def _incidence(self, i: int) -> csr_array:
        """Z (n T, q k) of a term."""
        term, first = self.likelihood.design.terms[i], self.likelihood.layout.first[i]
        return csr_array(self.likelihood.incidence.matrix[:, first : first + term.n_levels * term.n_components])

    def _score(self, i: int) -> np.ndarray:
        """(q, k) Z'R^-1 e of a term."""
        sums = self._incidence(i).T @ (self.weights @ self.e)
        return sums.reshape(-1, self.likelihood.design.terms[i].n_components)

    def _derivative_of_rank(self, i: int) -> np.ndarray:
        """(k, k) D with the D L of the module: D = M B' + B M' - B L'M B' of M = D L and B = L (L'L)^-1."""
        L, numbers, scores = self.L[i], self.likelihood.equations[i], self.effects[i]
        k, f = L.shape
        N = coo_array(self.weighted.T @ self._incidence(i))  # W_s' R^-1 Z
        level, component = np.divmod(N.col, k)
        M = self._score(i).T @ scores
        for j in range(f):
            M[:, j] -= np.bincount(component, N.data * self.select(N.row, numbers[level, j]), k)
        M *= 0.5
        B = np.linalg.pinv(L).T
        middle = L.T @ M
        return np.asarray(M @ B.T + B @ M.T - B @ ((middle + middle.T) / 2) @ B.T)

    def _units(self) -> list[np.ndarray]:
        factors = self.likelihood.factors_of_relationships
        return [factors[i].solve(self._score(i)) if i in self.L else unit for i, unit in enumerate(super()._units())]


def _known(G: np.ndarray | None) -> np.ndarray:
    assert G is not None, "of a random term"
    return G
