"""The restricted likelihood where scores on common factors stand among the equations.

Effects of a term with G = L L' + Psi (k x k, f factors) are theta_l = L s_l + d_l, s ~ MN(0, K (x) I_f) and
d ~ MN(0, K (x) Psi); G = L L' of reduced rank has no inverse, and its d is 0. With Lambda = blockdiag(I, ...,
I (x) [L I], ...), W_s = W Lambda, and s_l and d_l among the equations,

    C = W_s' R^-1 W_s + blockdiag(K_j^-1 (x) P_j),     P_j = G_j^-1, or blockdiag(I_f, Psi^-1)
    log p(y | psi) = -1/2 [ sum_r log|R_r| + sum_j (q_j log|P_j^-1| + k_j log|K_j|) + log|C| + y'Py + (N - p) log 2 pi ]

If each record has one of the components, as in trials at several places, the specific effects of two components have
no common element in C, which has q x q blocks on its diagonal and a border of f q scores. By G^-1 it would be full.

Everything is said on the scale of theta = Lambda s: solutions, and Lambda C^-1 Lambda' in place of C^-1. With Z the
columns of W of the term and e the residuals,

    d log p / dL = 2 D L,    (D L)_tj = 1/2 sum_l [ s_lj (Z'R^-1 e)_lt - (C^-1 W_s'R^-1 Z)_lj,lt ]
    d log p / dPsi_tt = D_tt = -1/2 [ q / Psi_tt - (d_t'K^-1 d_t + sum_lm kappa_lm C^-1[d_lt, d_mt]) / Psi_tt^2 ]

of which only elements of C^-1 are needed where C is not 0. A symmetric D with these products and this diagonal gives
all derivatives by parameters, d log p = tr(D dG). Working variates are (dV/dG_ab) P y = Z (K (x) E) Z'R^-1 e.
Derivatives of the other matrices are those of restricted.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
from scipy.sparse import block_diag, coo_array, csr_array, eye_array, kron

from mmgibbs.likelihood.cholesky.factor import Factor, analyse
from mmgibbs.likelihood.coefficients import Blocks, factorise_inverse, fill_ones, solve_factor
from mmgibbs.likelihood.matrices import Variances
from mmgibbs.likelihood.memory import OF_PRIOR, SOLUTION
from mmgibbs.likelihood.records import RecordsLikelihood, RecordsPoint
from mmgibbs.likelihood.sparse import mask_joined
from mmgibbs.machine.memory import refuse_beyond_free
from mmgibbs.models.design import Design
from mmgibbs.models.structures.base import CommonFactors
from mmgibbs.models.structures.reduced_rank import factor_of_rank


class ScoresLikelihood(RecordsLikelihood):
    """log p(y | psi) of a design with normal traits and independent records.

    of_terms: components that may covary, None for fixed terms. n_factors: number of factors of each factor-analytic
    term that is fitted by scores; terms of reduced rank always are.
    """

    name = "sparse, by scores"

    def __init__(self, design: Design, of_terms: Sequence[Blocks | None], n_factors: Mapping[int, int] | None = None):
        of_specific = dict(n_factors or {})
        sizes = {i: f + design.terms[i].n_components for i, f in of_specific.items()}
        self.n_factors = design.n_scores | of_specific
        super().__init__(design, design.n_scores | sizes)
        self.joined = [
            np.eye(self.sizes[i]) if i in self.n_factors else mask_joined(term, blocks)
            for i, (term, blocks) in enumerate(zip(design.terms, of_terms, strict=True))
        ]
        refuse_beyond_free(self._prior_bytes, f"the pattern of a factor of {self.n_equations:,} equations", SOLUTION)
        of_scores = [self.equations[i][:, :f].ravel() for i, f in of_specific.items()]
        last = np.concatenate(of_scores) if of_scores else None
        self.symbolic = analyse(self._find_pattern(), last)

    @property
    def _prior_bytes(self) -> int:
        """Bytes of the prior of C while C is made."""
        elements = sum(inverse.nnz * np.count_nonzero(self.joined[i]) for i, inverse in self.inverses.items())
        return OF_PRIOR * int(elements)

    @property
    def bytes(self) -> int:
        return self.symbolic.bytes + self._prior_bytes

    def list_loadings(self, factors: Mapping[int, CommonFactors]) -> dict[int, np.ndarray]:
        """(k, size) Lambda of one level of each term: L, or [L I]."""
        return {
            i: c.loadings if i in self.design.n_scores else np.hstack([c.loadings, np.eye(len(c.loadings))])
            for i, c in factors.items()
        }

    def combine(self, loadings: Mapping[int, np.ndarray]) -> csr_array:
        """Lambda (places of theta, equations); loadings: (k, size) of each term with scores."""
        blocks = [
            kron(eye_array(term.n_levels), loadings[i]) if i in loadings else eye_array(term.n_levels * size)
            for i, (term, size) in enumerate(zip(self.design.terms, self.sizes, strict=True))
        ]
        return csr_array(csr_array(block_diag(blocks, format="csr"))[:, self.in_force])

    def _find_pattern(self) -> csr_array:
        """The elements of C that may be other than 0: of equations that a record meets, of relatives, of one level."""
        design = self.design
        ones = {
            i: CommonFactors(np.ones((k := design.terms[i].n_components, f)), np.ones(k))
            for i, f in self.n_factors.items()
        }
        loadings = self.list_loadings(ones)
        record = self.observations // design.n_traits
        of_records = csr_array((np.ones(record.size), (record, np.arange(record.size))))
        met = csr_array(of_records @ fill_ones(csr_array(fill_ones(self.W_of_theta) @ self.combine(loadings))))
        of_levels = [
            kron(eye_array(term.n_levels), loadings[i].T @ loadings[i] if i in loadings else np.eye(size))
            for i, (term, size) in enumerate(zip(design.terms, self.sizes, strict=True))
        ]
        levels = self.take_in_force(of_levels)
        return fill_ones(csr_array(met.T @ met + fill_ones(self.make_prior(self.joined)) + levels))

    @cached_property
    def factors_of_relationships(self) -> dict[int, Factor]:
        """Factors of K^-1 of each term with scores."""
        return {i: factorise_inverse(csr_array(self.inverses[i])) for i in self.n_factors}

    def find_factors(self, variances: Variances) -> dict[int, CommonFactors]:
        """The loadings and specific variances of each term with scores.

        A matrix of reduced rank is taken as the nearest one. A factor-analytic term uses the given factors; without
        them its matrix must be diagonal.
        """
        out = {}
        for i, f in self.n_factors.items():
            G = _known(variances.G[i])
            if i in self.design.n_scores:
                out[i] = CommonFactors(factor_of_rank(G, f), np.zeros(len(G)))
            elif variances.factors and i in variances.factors:
                out[i] = variances.factors[i]
            else:
                assert np.count_nonzero(G) == len(G), "expected a diagonal matrix where no factors are given"
                out[i] = CommonFactors(np.zeros((len(G), f)), np.diag(G))
        return out

    def _name_equation(self, number: int) -> str:
        term = next(i for i, numbers in enumerate(self.equations) if number in numbers)
        return f"effect {self.design.terms[term].name}"

    def evaluate(self, variances: Variances) -> ScoresPoint:
        """ModelError where C is not positive definite there."""
        return ScoresPoint(self, variances)


class ScoresPoint(RecordsPoint):
    """The likelihood at one psi; what derivatives need is computed when it is asked for."""

    likelihood: ScoresLikelihood

    def __init__(self, likelihood: ScoresLikelihood, variances: Variances):
        super().__init__(likelihood, variances)
        self.factors = likelihood.find_factors(variances)
        self.loadings = likelihood.list_loadings(self.factors)
        # log|I| = 0 and I^-1 = I stand for what scores have in place of G
        G = [np.eye(len(_known(g))) if i in self.factors else g for i, g in enumerate(variances.G)]
        weights = likelihood.weigh(self._invert(Variances(G, variances.R)))
        self.precisions = list(self.Ginv)
        for i, (L, specific) in self.factors.items():
            of_scores = np.ones(L.shape[1])
            if i in likelihood.design.n_scores:
                self.precisions[i] = np.diag(of_scores)
            else:
                self.precisions[i] = np.diag(np.append(of_scores, 1.0 / specific))
                self.log_determinants += likelihood.design.terms[i].n_levels * float(np.sum(np.log(specific)))
        self.combined = likelihood.combine(self.loadings)
        W = csr_array(likelihood.W_of_theta @ self.combined)  # W_s
        self.weighted = csr_array(weights @ W)  # R^-1 W_s
        self._solve(weights, W, likelihood.factor(csr_array(W.T @ self.weighted), self.precisions))

    @property
    def solutions(self) -> list[np.ndarray]:
        """(q, k) per term: BLUE and BLUP at these variances, on the scale of the equations."""
        return self.likelihood.layout.split(self.combined @ self.solved)

    def solve_equations(self, b: np.ndarray) -> np.ndarray:
        """Lambda C^-1 Lambda' b, (equations of the design, m)."""
        combined = self.combined[np.flatnonzero(self.likelihood.layout.active)]
        return np.asarray(combined @ solve_factor(self.factor, np.ascontiguousarray(combined.T @ b)))

    @property
    def inverse_diagonal(self) -> np.ndarray:
        """(equations of the design,) the diagonal of Lambda C^-1 Lambda'."""
        out = []
        for i, numbers in enumerate(self.likelihood.equations):
            if i in self.loadings:
                out.append(np.column_stack([self._variances_of_sums(numbers, row) for row in self.loadings[i]]))
            else:
                out.append(self.select(numbers.ravel(), numbers.ravel()).reshape(numbers.shape))
        return np.concatenate([np.ravel(diagonal) for diagonal in out])[self.likelihood.layout.active]

    def _variances_of_sums(self, numbers: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """(q,) w'C^-1 w of the equations (q, size) of each level."""
        out, used = np.zeros(len(numbers)), np.flatnonzero(weights)
        for a in used:
            for b in used:
                out += weights[a] * weights[b] * self.select(numbers[:, a], numbers[:, b])
        return out

    @cached_property
    def derivatives(self) -> Variances:
        """D of each matrix; of one with scores the D of the module."""
        likelihood = self.likelihood
        S: list[np.ndarray | None] = [None] * len(self.Ginv)
        for i in likelihood.random:
            if i in self.factors:
                S[i] = np.zeros_like(self.Ginv[i])
            else:
                S[i] = self.squares[i] + self._trace(i)
        D = likelihood.matrices.differentiate(self.v, S, self._products() + self._trace_records())
        for i in self.factors:
            by_loadings = self._derivative_of_loadings(i)
            is_singular = i in likelihood.design.n_scores
            D.G[i] = by_loadings if is_singular else self._with_diagonal(i, by_loadings)
        return D

    def _trace_records(self) -> np.ndarray:
        """(patterns, T, T) sum of w_r W_r C^-1 W_r' over the records of each pattern."""
        design = self.likelihood.design
        out = np.zeros((len(design.patterns), design.n_traits, design.n_traits))
        for p, seen in enumerate(design.patterns):
            records = np.flatnonzero(design.pattern == p)
            rows = np.searchsorted(self.likelihood.observations, records * design.n_traits)
            of_traits = {t: self.W[rows + n] for n, t in enumerate(np.flatnonzero(seen))}
            for t, W_t in of_traits.items():
                for u, W_u in of_traits.items():
                    if u <= t:
                        M = coo_array(W_t.T @ (W_u * design.weight[records, None]))
                        out[p, t, u] = out[p, u, t] = M.data @ self.select(M.row, M.col)
        return out

    def _incidence(self, i: int) -> csr_array:
        """Z (observations, q k) of a term."""
        term, first = self.likelihood.design.terms[i], self.likelihood.layout.first[i]
        return csr_array(self.likelihood.W_of_theta[:, first : first + term.n_levels * term.n_components])

    def _score(self, i: int) -> np.ndarray:
        """(q, k) Z'R^-1 e of a term."""
        sums = self._incidence(i).T @ (self.weights @ self.e)
        return sums.reshape(-1, self.likelihood.design.terms[i].n_components)

    def _derivative_of_loadings(self, i: int) -> np.ndarray:
        """(k, k) D with the D L of the module: D = M B' + B M' - B L'M B' of M = D L and B = L (L'L)^-1."""
        L = self.factors[i].loadings
        k, f = L.shape
        numbers, scores = self.likelihood.equations[i], self.effects[i][:, :f]
        N = coo_array(self.weighted.T @ self._incidence(i))  # W_s' R^-1 Z
        level, component = np.divmod(N.col, k)
        M = self._score(i).T @ scores
        for j in range(f):
            M[:, j] -= np.bincount(component, N.data * self.select(N.row, numbers[level, j]), k)
        M *= 0.5
        B = np.linalg.pinv(L).T
        middle = L.T @ M
        return np.asarray(M @ B.T + B @ M.T - B @ ((middle + middle.T) / 2) @ B.T)

    def _with_diagonal(self, i: int, D: np.ndarray) -> np.ndarray:
        """D + Q diag(c) Q with D_tt of the module; Q = I - L (L'L)^-1 L', so that D L stays.

        Derivatives by L and Psi need no more. Other elements of D are not the derivatives by those of G.
        """
        L, specific = self.factors[i]
        sums = np.diag(self.squares[i] + self._trace(i))[L.shape[1] :]
        diagonal = -0.5 * (self.likelihood.design.terms[i].n_levels - sums / specific) / specific
        Q = np.eye(len(L)) - L @ np.linalg.pinv(L)
        c = np.linalg.lstsq(Q**2, diagonal - np.diag(D))[0]
        return np.asarray(D + (Q * c) @ Q)

    def _units(self) -> list[np.ndarray]:
        factors = self.likelihood.factors_of_relationships
        out = []
        for i, (theta, inverse) in enumerate(zip(self.solutions, self.Ginv, strict=True)):
            out.append(solve_factor(factors[i], self._score(i)) if i in factors else theta @ inverse)
        return out


def _known(G: np.ndarray | None) -> np.ndarray:
    assert G is not None, "of a random term"
    return G
