"""What of the fixed effects the records determine."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import lsqr

from mmgibbs.models.design import Design
from mmgibbs.posterior.adjusted_means import Part

NOT_ESTIMABLE = 1e-6  # share of a random direction of which the records say nothing


def raw_covariates(design: Design, i: int, components: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """(rows, m) covariates of a term on the user's scale: not orthonormal, not centred."""
    effect = design.terms[i].effects[0]
    assert effect.covariates is not None
    values = effect.covariates[rows].astype(np.float64)
    for r in design.rescale:
        if r.term == i and set(r.components) == set(components.tolist()):
            values = np.linalg.solve(r.matrix.T, values.T).T
    for s in design.shifts:
        if s.source == i and set(s.source_components) == set(components.tolist()):
            return values + s.means[effect.level[rows]]
    return values


def find_not_estimable(
    parts: Sequence[Part], n: int, design: Design, t: int, rows: np.ndarray
) -> dict[int, np.ndarray]:
    """Fixed term -> (n,) bool: it makes that function of the solutions one that these records do not determine.

    A direction of the fixed effects of which the records say nothing is z less its projection on the rows of X; a
    function is estimable if it is 0 in a random one of these. Effects with a normal prior have no such direction.
    """
    matrix, first = _flat_columns(design, t, rows)
    scale = np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=0)).ravel())
    scale[scale == 0] = 1.0
    matrix = sp.csr_array(matrix @ sp.diags_array(1 / scale))
    z = np.random.default_rng(1).standard_normal(scale.size)
    unknown = z - lsqr(matrix, matrix @ z, atol=1e-14, btol=1e-14, iter_lim=20 * scale.size)[0] if z.size else z
    unknown /= scale
    found: dict[int, np.ndarray] = {}
    size = np.zeros(n)
    for part in parts:
        if (part.term, part.component) in first:
            at = first[part.term, part.component] + part.codes
            found[part.term] = found.get(part.term, np.zeros(n)) + part.weights @ unknown[at]
            size = size + abs(part.weights) @ np.abs(z[at] / scale[at])
    limit = NOT_ESTIMABLE * size
    is_lost = np.abs(sum(found.values(), start=np.zeros(n))) > limit
    return {term: is_lost & (np.abs(values) > limit) for term, values in found.items()}


def _flat_columns(design: Design, t: int, rows: np.ndarray) -> tuple[sp.csr_array, dict[tuple[int, int], int]]:
    """X of the fixed effects without a prior, on the user's scale; (term, component) -> its first column."""
    columns, first, places = [sp.csr_array((len(rows), 0))], {}, 0
    for i in list_fixed(design, t):
        term, level = design.terms[i], design.terms[i].effects[0].level[rows]
        components = np.flatnonzero(term.component_trait == t)
        known = np.flatnonzero(level >= 0)
        ones = np.ones((len(rows), 1))
        values = ones if term.effects[0].covariates is None else raw_covariates(design, i, components, rows)
        for c, x in zip(components, values.T, strict=True):
            if (precision := term.prior.precision) is not None and precision[c, c] > 0:
                continue
            first[i, int(c)] = places
            columns.append(sp.csr_array((x[known], (known, level[known])), shape=(len(rows), term.n_levels)))
            places += term.n_levels
    return sp.csr_array(sp.hstack(columns)), first


def list_fixed(design: Design, t: int) -> list[int]:
    """Numbers of the fixed terms of a trait."""
    return [i for i, term in enumerate(design.terms) if term.kind == "fixed" and t in term.effects[0].traits]


def name_confounded(names: Sequence[str]) -> str:
    """Say which effects the records do not separate."""
    shown = [name for name in names if name != "intercept"] or list(names)
    listed = ", ".join(shown[:-1]) + (" and " if len(shown) > 1 else "") + shown[-1]
    return f"the records do not separate {listed}" if len(shown) > 1 else f"the records do not determine {listed}"
