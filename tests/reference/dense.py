"""The mixed-model equations written out in full: the truth that every engine and block kind is held against.

    C = sum_r W_r' R_r^-1 W_r + blockdiag(K^-1 (x) G^-1)        rhs = sum_r W_r' R_r^-1 y_r

NumPy only, plain loops, and no code shared with the package but the `Design` itself. Equations run term by term, level
by level, component by component; levels set to 0 (`Term.active`) have none.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from reference import tabular

from mmgibbs.models.relationships.genomic import Genomic


def relationship_inverse(term) -> np.ndarray:
    """K^-1 of a random term, (q, q): identity, the inverse of the tabular A (QP with groups), or the user's matrix;
    and, on top of it, the dense block between genotyped levels."""
    kind, q = term.relationship, term.n_levels
    if kind.dense is not None and kind.n_groups:
        return _with_metafounders(kind)
    listed = listed_inverse(kind, q)
    if kind.dense is not None:
        listed[np.ix_(kind.dense.levels, kind.dense.levels)] += kind.dense.values
    return listed


def _with_metafounders(kind) -> np.ndarray:
    """Gamma^-1 stands last in the dense block: in A of the table it is Gamma."""
    kin, block, g = kind.relatives, kind.dense, kind.n_groups
    inverse = np.linalg.inv(tabular.with_metafounders(kin.sire, kin.dam, np.linalg.inv(block.values[-g:, -g:])))
    genotyped = block.levels[:-g]
    inverse[np.ix_(genotyped, genotyped)] += block.values[:-g, :-g]
    return inverse


def listed_inverse(kind, q: int) -> np.ndarray:
    """Of the lists alone."""
    if isinstance(kind, Genomic):
        return np.zeros((q, q))
    if hasattr(kind, "indptr"):
        K_inverse = np.zeros((q, q))
        for i in range(q):
            for e in range(kind.indptr[i], kind.indptr[i + 1]):
                K_inverse[i, kind.indices[e]] += kind.values[e]
        return K_inverse
    if hasattr(kind, "relatives"):
        generations, kind = getattr(kind, "generations", None), kind.relatives
        accounted = bool(np.any(kind.inbreeding))  # F = 0 throughout: nobody is inbred, or inbreeding is ignored
        groups = kind.n_groups, kind.random_groups
        return tabular.relationship_inverse(kind.sire, kind.dam, *groups, accounted, generations)
    return np.eye(q)


def prior_precision(term, G_inverse) -> np.ndarray:
    """(q k, q k): K^-1 (x) G^-1 of a random term, I (x) prior precision of a fixed one (0 where flat)."""
    if term.kind == "random":
        return np.kron(relationship_inverse(term), G_inverse)
    k = term.n_components
    flat = np.zeros((k, k))
    return np.kron(np.eye(term.n_levels), flat if term.prior_precision is None else term.prior_precision)


def incidence(term, n_traits: int) -> np.ndarray:
    """W of one term, (n, T, q k): W[r, t, l k + c] = covariate of record r where t = t(c) and r meets level l."""
    k = term.n_components
    n = len(term.effects[0].level)
    W = np.zeros((n, n_traits, term.n_levels * k))
    c = 0
    for effect in term.effects:
        several = effect.level.ndim == 2  # levels l_1, l_2, ... of a record, its covariates their weights
        for trait in effect.traits:
            for j in range(1 if effect.covariates is None or several else effect.covariates.shape[1]):
                for r in range(n):
                    for slot, level in enumerate(np.atleast_1d(effect.level[r])):
                        if level >= 0:
                            z = 1.0 if effect.covariates is None else effect.covariates[r, slot if several else j]
                            W[r, trait, level * k + c] += z
                c += 1
    return W


@dataclass(frozen=True)
class DenseEquations:
    design: object
    G: list  # (k, k) per term; None for fixed terms
    R: np.ndarray  # (T, T)
    labels: list  # (term, level, component) of each equation
    W: np.ndarray  # (n, T, N)
    record_precision: np.ndarray  # (n, T, T): R_r^-1, zero-padded
    prior: np.ndarray  # (N, N): blockdiag(K^-1 (x) G^-1)
    C: np.ndarray  # (N, N)
    rhs: np.ndarray  # (N,)

    @property
    def size(self) -> int:
        return len(self.labels)

    @cached_property
    def number(self) -> dict:
        return {label: i for i, label in enumerate(self.labels)}

    def index(self, term: int, level: int, component: int) -> int:
        """The equation of a component of a level; KeyError where it is set to 0."""
        return self.number[term, level, component]

    @cached_property
    def solution(self) -> np.ndarray:
        """Posterior mean at these variances (BLUE and BLUP), (N,)."""
        return np.linalg.solve(self.C, self.rhs)

    @cached_property
    def covariance(self) -> np.ndarray:
        """Posterior covariance at these variances, C^-1, (N, N); PEV is its diagonal."""
        return np.linalg.inv(self.C)

    def theta(self, x) -> list[np.ndarray]:
        """One (q, k) array per term from a vector of equations; 0 where set to 0."""
        out = [np.zeros((t.n_levels, t.n_components)) for t in self.design.terms]
        for value, (term, level, component) in zip(x, self.labels, strict=True):
            out[term][level, component] = value
        return out

    def vector(self, theta) -> np.ndarray:
        """(N,) from one (q, k) array per term."""
        return np.array([theta[term][level, component] for term, level, component in self.labels])

    def residuals(self, x) -> np.ndarray:
        """e = y - W theta, (n, T); NaN where the trait is not observed."""
        return self.design.y - self.W @ x


def build(design, G, R) -> DenseEquations:
    """The equations of a design at variances G (one (k, k) per term, None for fixed terms) and R (T, T), or (classes,
    T, T)."""
    n, T = design.y.shape
    R = np.asarray(R, float)
    labels, kept, W, priors = [], [], [], []
    for number, term in enumerate(design.terms):
        W.append(incidence(term, T))
        priors.append(prior_precision(term, None if G[number] is None else np.linalg.inv(G[number])))
        for level in range(term.n_levels):
            for component in range(term.n_components):
                active = term.active is None or bool(term.active[level, component])
                kept.append(active)
                if active:
                    labels.append((number, level, component))
    W = np.concatenate(W, axis=2)[:, :, kept]
    prior = np.zeros((len(kept), len(kept)))
    first = 0
    for block in priors:
        prior[first : first + len(block), first : first + len(block)] = block
        first += len(block)
    prior = prior[np.ix_(kept, kept)]

    record_precision = np.zeros((n, T, T))
    C, rhs = prior.copy(), np.zeros(len(labels))
    for r in range(n):
        observed = ~np.isnan(design.y[r])
        own = R if R.ndim == 2 else R[design.pattern_class[design.pattern[r]]]
        record_precision[r][np.ix_(observed, observed)] = design.weight[r] * np.linalg.inv(
            own[np.ix_(observed, observed)]
        )
        C += W[r].T @ record_precision[r] @ W[r]
        rhs += W[r].T @ record_precision[r] @ np.where(observed, design.y[r], 0.0)
    return DenseEquations(design, list(G), R, labels, W, record_precision, prior, C, rhs)


# One sweep


def sites(dense: DenseEquations, order=None) -> list[list[int]]:
    """Blocks of one equation each, in `order` (equation numbers; default: as they stand)."""
    return [[int(i)] for i in (range(dense.size) if order is None else order)]


def levels(dense: DenseEquations, order=None) -> list[list[int]]:
    """Blocks of the equations of one level each, in `order`, a list of (term, level); default: as they stand.

    A level without equations gives no block."""
    blocks = {}
    for i, (term, level, _) in enumerate(dense.labels):
        blocks.setdefault((term, level), []).append(i)
    return [blocks[key] for key in (blocks if order is None else map(tuple, order)) if key in blocks]


def conditional(dense: DenseEquations, x, block) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of the equations in `block` given all others: P^-1 (b_B - C_BO x_O) and P^-1, P = C_BB."""
    others = np.setdiff1d(np.arange(dense.size), block)
    P = dense.C[np.ix_(block, block)]
    mean = np.linalg.solve(P, dense.rhs[block] - dense.C[np.ix_(block, others)] @ np.asarray(x)[others])
    return mean, np.linalg.inv(P)


def gibbs_sweep(dense: DenseEquations, x, blocks, a=0.0) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of x_new given x after one Gibbs sweep over `blocks` (each drawn jointly, in this order).

    Each is over-relaxed, x_B <- m + a (x_B - m) + sqrt(1 - a^2) noise. With D the block diagonal of C, L what is below
    it in the order of the blocks, w = 1 - a and C = M - N, M = D / w + L (successive over-relaxation):
    E[x_new | x] = M^-1 (b + N x),  Var = (2 - w) / w M^-1 D M^-T. Equations in no block keep their value.
    """
    x = np.asarray(x, float)
    order = np.concatenate([np.asarray(b, int) for b in blocks])
    stage = np.concatenate([np.full(len(b), i) for i, b in enumerate(blocks)])
    C = dense.C[np.ix_(order, order)]
    kept = np.setdiff1d(np.arange(dense.size), order)
    b = dense.rhs[order] - dense.C[np.ix_(order, kept)] @ x[kept]
    D = np.where(stage[:, None] == stage[None, :], C, 0.0)
    w = 1.0 - a
    M = D / w + np.where(stage[:, None] > stage[None, :], C, 0.0)
    M_inverse = np.linalg.inv(M)
    mean, covariance = x.copy(), np.zeros_like(dense.C)
    mean[order] = M_inverse @ (b + (M - C) @ x[order])
    covariance[np.ix_(order, order)] = (2 - w) / w * M_inverse @ D @ M_inverse.T
    return mean, covariance


# Linear models by V


def linear_model(design, G, R) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(y, X, V) of all observed values, record by record: V = Z (K (x) G) Z' + R / w, and proper priors of effects.

    R: (T, T), or (classes, T, T).
    """
    seen = ~np.isnan(design.y)
    V, X, first = np.zeros((seen.sum(), seen.sum())), [], 0
    for term, g in zip(design.terms, G, strict=True):
        W = incidence(term, design.n_traits)[seen]
        if term.kind == "random":
            V += W @ np.kron(np.linalg.inv(relationship_inverse(term)), g) @ W.T
        elif term.prior_precision is None:
            X.append(W if term.active is None else W[:, term.active.ravel()])
        else:
            V += W @ np.kron(np.eye(term.n_levels), np.linalg.inv(term.prior_precision)) @ W.T
    classes = design.class_of_pattern[design.pattern]
    for record, (observed, w) in enumerate(zip(seen, design.weight, strict=True)):
        m, own = observed.sum(), R if np.ndim(R) == 2 else R[classes[record]]
        V[first : first + m, first : first + m] += own[np.ix_(observed, observed)] / w
        first += m
    return design.y[seen], np.concatenate(X, axis=1), V


def projection(X, V) -> np.ndarray:
    """P = V^-1 - V^-1 X (X'V^-1 X)^-1 X'V^-1."""
    inverse = np.linalg.inv(V)
    return inverse - inverse @ X @ np.linalg.solve(X.T @ inverse @ X, X.T @ inverse)


def restricted_log_likelihood(y, X, V) -> float:
    """-1/2 (log|V| + log|X'V^-1 X| + y'Py + (n - p) log 2 pi); LinAlgError where V is not positive definite."""
    L = np.linalg.cholesky(V)
    half_X, half_y = np.linalg.solve(L, X), np.linalg.solve(L, y)
    C = half_X.T @ half_X
    error = half_y - half_X @ np.linalg.solve(C, half_X.T @ half_y)
    determinants = 2 * np.log(np.diag(L)).sum() + np.linalg.slogdet(C)[1]
    return float(-0.5 * (determinants + error @ error + (len(y) - X.shape[1]) * np.log(2 * np.pi)))


def predicted(y, X, G, V, at) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of the errors of `at` b + u, u ~ N(0, G) the effects of the records."""
    P, W = projection(X, V), np.linalg.inv(V)
    C = np.linalg.inv(X.T @ W @ X)
    cross = at @ C @ X.T @ W @ G
    return at @ C @ X.T @ W @ y + G @ P @ y, at @ C @ at.T + G - G @ P @ G - cross - cross.T


def information(P, y, derivatives) -> np.ndarray:
    """Average information: 1/2 y'P V_i P V_j P y for the derivatives V_i of V."""
    F = np.array([slope @ P @ y for slope in derivatives])
    return 0.5 * F @ P @ F.T


# Variances


def log_marginal_likelihood(design, G, R) -> float:
    """log p(y | G, R), locations integrated out (flat fixed effects: restricted likelihood), up to a constant.

        -1/2 ( sum_r log|R_r| - log|K^-1 (x) G^-1| + log|C| + y'R^-1y - rhs' C^-1 rhs )

    The prior determinant runs over equations whose prior has a variance: no fixed terms, no fixed unknown-parent group.
    """
    dense = build(design, G, R)
    proper = [
        i
        for i, (term, level, _) in enumerate(dense.labels)
        if design.terms[term].kind == "random" and level < design.terms[term].n_prior_levels
    ]
    observed = ~np.isnan(design.y)
    quadratic, log_R = 0.0, 0.0
    for r in range(len(design.y)):
        block = np.ix_(observed[r], observed[r])
        log_R -= np.linalg.slogdet(dense.record_precision[r][block])[1]
        y = design.y[r, observed[r]]
        quadratic += y @ dense.record_precision[r][block] @ y
    log_prior = np.linalg.slogdet(dense.prior[np.ix_(proper, proper)])[1]
    log_C = np.linalg.slogdet(dense.C)[1]
    return -0.5 * (log_R - log_prior + log_C + quadratic - dense.rhs @ dense.solution)


def log_inverse_wishart(X, nu: float, S) -> float:
    """log density of IW(nu, S) at X (k, k) up to a constant: -(nu + k + 1)/2 log|X| - tr(S X^-1)/2.

    Flat: nu = -(k + 1), S = 0.
    """
    X, S = np.atleast_2d(X), np.atleast_2d(S)
    return -0.5 * ((nu + len(X) + 1) * np.linalg.slogdet(X)[1] + np.trace(S @ np.linalg.inv(X)))


def grid_posterior(log_density, axes) -> tuple[np.ndarray, list[float], list[float]]:
    """Integrate exp(log_density(*point)) on a product of equally spaced axes.

    Returns the normalised weights (shape of the grid) and the posterior mean and standard deviation of each axis.
    Equally spaced points of a smooth density that is negligible at both ends converge faster than any power of the
    spacing.
    """
    shape = tuple(len(a) for a in axes)
    values = np.array(
        [log_density(*point) for point in np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, len(axes))]
    )
    weights = np.exp(values - values.max()).reshape(shape)
    weights /= weights.sum()
    means, deviations = [], []
    for i, axis in enumerate(axes):
        margin = weights.sum(axis=tuple(j for j in range(len(axes)) if j != i))
        means.append(float(margin @ axis))
        deviations.append(float(np.sqrt(margin @ (axis - means[-1]) ** 2)))
    return weights, means, deviations
