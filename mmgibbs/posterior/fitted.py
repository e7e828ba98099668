"""Fitted values of the records, from solutions on the scale of the design or of the user."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mmgibbs.models.design import CentringShift, Design
from mmgibbs.models.terms import Effect, Term

Chosen = Callable[[Term, Effect], bool]


def fitted(design: Design, theta: list[np.ndarray], chosen: Chosen) -> np.ndarray:
    """Sum W_ri theta_i,l(r) over the chosen effects, (n, T, ...) float64; theta: per term (q, k, ...)."""
    out = np.zeros((design.n_records, design.n_traits, *theta[0].shape[2:]))
    for term, values in zip(design.terms, theta, strict=True):
        first = 0
        for effect in term.effects:
            traits, m = list(effect.traits), effect.n_regressors
            columns = slice(first, first + len(traits) * m)
            first = columns.stop
            if chosen(term, effect):
                for level, covariates in effect.meetings():
                    met = np.flatnonzero(level >= 0)
                    z = np.ones((met.size, 1)) if covariates is None else covariates[met]
                    coefficients = values[level[met], columns].reshape(met.size, len(traits), m, *out.shape[2:])
                    out[np.ix_(met, np.array(traits))] += np.einsum("rtm...,rm->rt...", coefficients, z)
    return out


def residuals(design: Design, solutions: list[np.ndarray], chosen: Chosen) -> np.ndarray:
    """Subtract the chosen effects from the records, (n, T), on the scale of the user; NaN where not observed."""
    return design.y - fitted(design, undo_original_scale(design, solutions), chosen)


def undo_original_scale(design: Design, solutions: list[np.ndarray]) -> list[np.ndarray]:
    """Solutions on the scale of the design that fit the records as `solutions` of `Design.to_original_scale` do.

    Which levels are 0 stays as it is: reference levels do not change what is fitted.
    """
    theta = [values.astype(np.float64) for values in solutions]
    for term, component, value in design.offsets:
        theta[term][:, component] -= _mask_inactive(design.terms[term], component, value)
    for s in reversed(design.shifts):
        theta[s.target][:, s.component] += _undo(design, theta, s)
    for r in reversed(design.rescale):
        columns = list(r.components)
        # columns that depend on others have none of their own in the matrix
        theta[r.term][:, columns] = theta[r.term][:, columns] @ np.linalg.pinv(r.matrix).T
    return theta


def _undo(design: Design, theta: list[np.ndarray], s: CentringShift) -> np.ndarray | float:
    """Return what the shift subtracted, (q,)."""
    source = theta[s.source][:, list(s.source_components)]
    shift = np.einsum("lj,lj->l", s.means, source)[s.source_level]
    return _mask_inactive(design.terms[s.target], s.component, shift)


def _mask_inactive(term: Term, component: int, value: np.ndarray | float) -> np.ndarray | float:
    return value if term.active is None else np.where(term.active[:, component], value, 0.0)
