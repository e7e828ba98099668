"""What the model expects of the LR statistics: whole and partial evaluations of records that are simulated from it.

Breeding values are drawn down the pedigree of the analysis at its variances, u = L D^1/2 z with A = L D L', the other
random effects and the residuals beside them; fixed effects are 0, which no contrast sees. Fixed unknown-parent groups
are seen: where a term has them, they and the fixed effects are the solutions from the whole data. Every replicate is
one more right-hand side of both systems of equations.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mmgibbs.model.design import Design
from mmgibbs.validation.evaluation import Evaluation, fitted

TOLERANCE = 1e-4  # of solutions, in posterior standard deviations
VALUES = 20_000_000  # equations times replicates that are solved at once, and
AT_ONCE = 10  # replicates: enough to share a pass over the data, few enough to share out


def can_simulate(evaluation: Evaluation) -> bool:
    """No random effect has a relationship matrix that is known by its inverse alone."""
    return all(t.relationship.can_draw for t in evaluation.design.terms)


def has_fixed_groups(design: Design) -> bool:
    return any(term.groups_fixed for term in design.terms)


def blocks_of(replicates: int, n_equations: int) -> list[tuple[int, int]]:
    """(number, replicates) of the blocks that are solved at once: their size does not depend on who solves them."""
    at_once = max(1, min(AT_ONCE, VALUES // n_equations))
    return [(block, min(at_once, replicates - first)) for block, first in enumerate(range(0, replicates, at_once))]


def simulated_sums(
    whole: Evaluation,
    partial: Evaluation,
    masked: np.ndarray,
    focal: Mapping[int, np.ndarray],
    seed: int,
    block: int,
    m: int,
) -> dict[int, np.ndarray]:
    """Term of whole -> (k, m, 6) sums over its focal levels of 1, w, p, w^2, p^2 and w p, for the m replicates of a
    block.

    masked: (n,) records that the partial data lack. focal: term -> (f,) level codes.
    """
    y = simulated_records(whole, m, np.random.default_rng([seed, 1 + block]))
    of_whole, of_partial = _solutions(whole, y), _solutions(partial, y[~masked])
    sums = {}
    for term, levels in focal.items():
        name = whole.design.terms[term].name
        w, p = of_whole[name][levels], of_partial[name][levels]
        moments = [np.full(w.shape[1:], len(levels)), *(v.sum(axis=0) for v in (w, p, w * w, p * p, w * p))]
        sums[term] = np.stack(moments, axis=-1)
    return sums


def draw_once(evaluation: Evaluation) -> None:
    """One draw of each random effect, which leaves with the relationship what it derives for draws: threads that draw
    side by side without it would each derive it."""
    for term in evaluation.design.terms:
        if term.kind == "random":
            term.relationship.draw(np.zeros((term.n_levels, 1)))


def simulated_records(evaluation: Evaluation, m: int, rng: np.random.Generator) -> np.ndarray:
    """(n, T, m) records at the variances of an evaluation; traits that are not observed have values too."""
    design, model = evaluation.design, evaluation.assembled.model
    theta, with_fixed = [], has_fixed_groups(design)
    for i, (term, found) in enumerate(zip(design.terms, evaluation.theta, strict=True)):
        if term.kind == "fixed":
            theta.append(np.repeat(found[:, :, None], m, axis=2) if with_fixed else np.zeros((0, 0, m)))
            continue
        z = rng.standard_normal((term.n_levels, term.n_components, m))
        u = np.einsum("ab,qbm->qam", np.linalg.cholesky(evaluation.variance(i)), z)
        if term.groups_fixed:
            first = term.n_levels - term.n_groups
            u[first:] = found[first:, :, None]
        theta.append(term.relationship.draw(u.reshape(len(u), -1)).reshape(u.shape))
    root, z = np.linalg.cholesky(model.residual.start), rng.standard_normal((*design.y.shape, m))
    if model.residual.classes:
        e = np.einsum("nst,ntm->nsm", root[design.class_of_pattern[design.pattern]], z)
    else:
        e = np.einsum("st,ntm->nsm", root, z)
    return (
        fitted(design, theta, lambda term, _: with_fixed or term.kind == "random")
        + e / np.sqrt(design.weight)[:, None, None]
    )


def _solutions(evaluation: Evaluation, y: np.ndarray) -> dict[str, np.ndarray]:
    """Term -> (q, k, m) solutions from records y (n, T, m) of the evaluation."""
    engine = evaluation.engine
    b = engine.weighted_sums(y[engine.equations.records.record])
    solved = engine.split(evaluation.solutions(b, TOLERANCE))
    out = {}
    for term, lists, found in zip(evaluation.design.terms, engine.equations.terms, solved, strict=True):
        out[term.name] = np.empty(found.shape)
        out[term.name][lists.code] = found
    return out
