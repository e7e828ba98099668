"""The units in which variances are near 1, from the data alone: neither starts nor the units of the traits matter.

With e_r what the fixed effects leave of the records of trait t, and w_r their weights, the units are the variances with
which a component c of a random term, or the residuals of a class, would give the records all of it:

    s_c^2 = v_t / (mean of z_c^2 over the records that meet it x mean diagonal of K),   v_t = sum w_r e_r^2 / sum w_r
    s_R^2 = sum e_r^2 / sum (1 / w_r)     over the records of the class

Of the weighted and the plain sums these are the ones in which the other variances have the least part.

A random effect may be most of that: of herds a hundred times as variable as what is within them. What it leaves is seen
once it is estimated: at a point, with e what all effects leave and g_c, R the variances there, the units are

    s_c^2 = (mean of e^2) / (mean of z_c^2 x mean diagonal of K) + g_c        s_R^2 = sum e_r^2 / sum (1 / w_r) + R
"""

from __future__ import annotations

import numpy as np

from mmgibbs.errors import ModelError
from mmgibbs.likelihood.base import Likelihood, LikelihoodPoint
from mmgibbs.likelihood.matrices import Variances
from mmgibbs.models.terms import Effect
from mmgibbs.reml.elements import Units

NONE = 1e-5  # variances of random effects in which they take up little, relative to those of the records
FITTED = float(np.finfo(float).eps)  # share of the mean square of a trait that rounding leaves of a complete fit


def model_units(likelihood: Likelihood) -> Units:
    """Compute the units of a model from one factor of C; 0 where the fixed effects fit all records of a trait."""
    design, random = likelihood.design, set(likelihood.random)
    given = _given_fixed_effects(likelihood)
    of_trait, of_class = given[0], given[1:]
    sizes = [_sizes(likelihood, i) if i in random else None for i in range(len(design.terms))]
    G = [
        None if size is None else np.sqrt(of_trait[term.component_trait] / size)
        for term, size in zip(design.terms, sizes, strict=True)
    ]
    return Units(G, np.sqrt(np.where(of_class > 0, of_class, of_trait)))


def point_units(point: LikelihoodPoint) -> Units:
    """Compute the units from what the other effects leave of the records at these variances."""
    likelihood, at = point.likelihood, point.variances
    of_residuals = _mean_squares_of_records(likelihood, point.residuals)
    G: list[np.ndarray | None] = [None] * len(at.G)
    for i in likelihood.random:
        matrix = at.G[i]
        assert matrix is not None
        of_records = of_residuals[0][likelihood.design.terms[i].component_trait]
        G[i] = np.sqrt(of_records / _sizes(likelihood, i) + np.diag(matrix))
    return Units(G, np.sqrt(of_residuals[1:] + np.diagonal(at.R, axis1=1, axis2=2)))


def _given_fixed_effects(likelihood: Likelihood) -> np.ndarray:
    """Compute v_t of all records, and s_R^2 of each class, (1 + classes, T).

    Where C has no factor with small variances of random effects they are 0, and the units those of the starts.
    """
    design = likelihood.design
    n_classes = max(1, len(design.residual_classes))
    raw = _mean_squares_of_records(likelihood, np.nan_to_num(design.y))
    start = np.where(raw > 0, raw, np.where(raw[0] > 0, raw[0], 1.0))
    G: list[np.ndarray | None] = [None] * len(design.terms)
    for i in likelihood.random:
        G[i] = np.diag(NONE * start[0][design.terms[i].component_trait] / _sizes(likelihood, i))
    R = np.repeat(np.diag(start[1:].mean(axis=0))[None], n_classes, axis=0)
    try:
        e = likelihood.evaluate(Variances(G, R)).residuals
    except ModelError:
        return np.zeros_like(raw)
    of_residuals = _mean_squares_of_records(likelihood, e) * likelihood.n_observations / likelihood.freedom
    return np.where(of_residuals > FITTED * raw, of_residuals, 0.0)


def _mean_squares_of_records(likelihood: Likelihood, e: np.ndarray) -> np.ndarray:
    """Compute mean squares of e, (1 + classes, T): weighted of all, and of each class in the unit of its R."""
    design = likelihood.design
    w, seen = design.weight, design.patterns[design.pattern]
    classes = design.class_of_pattern[design.pattern]
    squares = np.where(seen, e**2, 0.0)
    of_class = [(classes == c) for c in range(max(1, len(design.residual_classes)))]
    shares = [(w @ squares, w @ seen), *((squares[g].sum(axis=0), (1.0 / w[g]) @ seen[g]) for g in of_class)]
    return np.array([np.divide(s, n, out=np.zeros_like(s), where=n > 0) for s, n in shares])


def _sizes(likelihood: Likelihood, i: int) -> np.ndarray:
    """Compute what a unit variance of each component of a random term adds to the variance of a record, (k,)."""
    term = likelihood.design.terms[i]
    squares = np.concatenate([np.tile(_mean_squares(e), len(e.traits)) for e in term.effects])
    return squares * likelihood.mean_diagonal(i)


def _mean_squares(effect: Effect) -> np.ndarray:
    """Compute mean squares of the covariates, (m,), over the records that meet the effect; 1 of one that is all 0."""
    if effect.has_several_levels:
        return np.array([effect.mean_power(2) or 1.0])
    if effect.covariates is None:
        return np.ones(1)
    met = effect.level >= 0
    squares = np.sum(effect.covariates[met] ** 2, axis=0) / max(int(np.count_nonzero(met)), 1)
    return np.where(squares > 0, squares, 1.0)
