"""What the forms of the mixed-model equations share: a layout of vectors, and the precisions in force.

    C theta = b,      C = sum_r W_r' R_r^-1 W_r + blockdiag(K^-1 (x) G^-1),      b = sum_r W_r' R_r^-1 y_r

A vector over the equations is one flat float64 array: term by term, level by level, component by component, levels in
model order. It has a place for every component of every level, so that `x[a:b].reshape(q, k)` is Theta without a copy;
those set to 0 (`Term.active`) add nothing to C x and get 0 from it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np

from mmgibbs.errors import ModelError
from mmgibbs.models.design import Design, inverse_by_pattern
from mmgibbs.models.residual import stack_classes


@dataclass(frozen=True)
class Layout:
    """Positions of the components of every level in a flat vector, and those that are equations in force."""

    shapes: tuple[tuple[int, int], ...]  # (q, k) per term
    first: np.ndarray  # (terms + 1,) int64: the first place of each term
    active: np.ndarray  # (places,) bool
    equation: np.ndarray  # (places,) int64: number among the equations in force; -1 where set to 0

    @property
    def size(self) -> int:
        return int(self.first[-1])

    def split(self, x: np.ndarray) -> list[np.ndarray]:
        """Split a flat vector into views (q, k), one per term."""
        return [x[a:b].reshape(shape) for a, b, shape in zip(self.first[:-1], self.first[1:], self.shapes, strict=True)]

    def join(self, theta: list[np.ndarray]) -> np.ndarray:
        """The flat vector of one (q, k) array per term."""
        return np.concatenate([np.asarray(t, np.float64).ravel() for t in theta])


def layout(design: Design) -> Layout:
    """The layout of a design, levels in model order."""
    shapes = tuple((t.n_levels, t.n_components) for t in design.terms)
    first = np.cumsum([0] + [q * k for q, k in shapes], dtype=np.int64)
    masks = [
        np.ones(q * k, bool) if t.active is None else t.active.ravel()
        for t, (q, k) in zip(design.terms, shapes, strict=True)
    ]
    active = np.concatenate(masks)
    return Layout(shapes, first, active, np.where(active, np.cumsum(active, dtype=np.int64) - 1, -1))


def precisions(design: Design, G: Sequence[np.ndarray | None], R: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
    """G^-1 per term (fixed terms: their prior precision, 0 where flat) and (patterns, T, T) R_P^-1, zero-padded.

    R: (T, T), or (classes, T, T) where the residuals have classes.

    All of them exactly symmetric, so that C is. ModelError where a matrix has no inverse to compute with.
    """
    return invert_terms(design, G), invert_residual(design, R)


def invert_terms(design: Design, G: Sequence[np.ndarray | None], with_scores: bool = False) -> list[np.ndarray]:
    """G^-1 of random terms, the prior precision of fixed ones, 0 where flat.

    with_scores: 0 in place of a matrix without an inverse, whose levels are drawn by their scores; ModelError else.
    """
    if not with_scores:
        refuse_reduced_rank(design)
    inverses = []
    for i, (term, g) in enumerate(zip(design.terms, G, strict=True)):
        if g is None:
            inverses.append(term.fixed_precision)
        elif i in design.n_scores:
            inverses.append(np.zeros(np.shape(g)))
        else:
            inverses.append(_inverse_of_term(np.asarray(g, np.float64), term.name))
    return inverses


def refuse_reduced_rank(design: Design) -> None:
    """ModelError where a covariance matrix of a design has no inverse."""
    if design.reduced_rank_name is not None:
        raise ModelError(
            f"variances.{design.reduced_rank_name}.structure: found reduced_rank, whose matrix has no inverse, which "
            "is needed for this; needed structure: factor_analytic or full"
        )


def invert_residual(design: Design, R: np.ndarray) -> np.ndarray:
    """Compute R_P^-1 (patterns, T, T), zero-padded; R: (T, T), or (classes, T, T)."""
    R = np.asarray(R, np.float64)
    if R.size == 1 and design.patterns.size == 1 and R.flat[0] > 0 and isfinite(1 / R.flat[0]):
        return np.array([[[1 / R.flat[0] if design.patterns[0, 0] else 0.0]]])
    of_patterns = design.patterns, design.class_of_pattern
    return _inverse(lambda: inverse_by_pattern(stack_classes(R), *of_patterns), "residual", R)


def _inverse_of_term(g: np.ndarray, name: str) -> np.ndarray:
    """G^-1; of one component without a call of LAPACK in every sweep."""
    if g.size == 1 and g[0, 0] != 0 and isfinite(1 / g[0, 0]):
        return 1 / g
    return _inverse(lambda: np.linalg.inv(g), name, g)


def _inverse(compute: Callable[[], np.ndarray], name: str, matrix: np.ndarray) -> np.ndarray:
    try:
        inverses = compute()
    except np.linalg.LinAlgError:
        inverses = np.full(1, np.nan)
    if not np.isfinite(inverses).all():
        variances = np.diagonal(matrix, axis1=-2, axis2=-1)
        raise ModelError(
            f"variances.{name}: the current covariance matrix cannot be inverted (variances from "
            f"{variances.min():.3g} to {variances.max():.3g}): "
            "the data do not determine it, or its start is singular; needed a proper prior, fewer effects, or "
            "fixed variances"
        )
    return (inverses + np.swapaxes(inverses, -1, -2)) / 2
