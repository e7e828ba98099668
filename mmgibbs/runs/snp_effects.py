"""SNP effects behind the breeding values of genomic and single-step terms (Strandén & Garrick 2009).

    alpha = W'u        W = s K^-1 X' times the scale of a copy        Var(alpha) = G_cc w'H w - w'C^cc w  of a SNP

u are the breeding values of the run, C^cc the prediction error covariance of component c among the genotyped at the
variances of the run, H their relationships in the model (K, or the weighted ones of single-step), and Var(alpha) the
variance of the estimate over repeated records: alpha / sqrt(Var(alpha)) is the test of the SNP (Gualdrón Duarte et al.
2014, Aguilar et al. 2019). Where all animals with records are genotyped it equals that of the SNP as a covariate of the
model. The posterior variance of the effect is

    s scale^2 G_cc - s scale x'w G_cc + w'C^cc w
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import polars as pl

from mmgibbs.build.assemble import Assembled
from mmgibbs.config import Analysis
from mmgibbs.data.genomic_parts import GenomicPart, genomic_parts
from mmgibbs.data.prepared import Prepared
from mmgibbs.likelihood.matrices import Variances
from mmgibbs.likelihood.restricted import Point
from mmgibbs.models.labels import component_labels
from mmgibbs.posterior.draw_names import RESIDUAL
from mmgibbs.posterior.result import posterior_mean
from mmgibbs.results.windows import log_p_of_z
from mmgibbs.runs.model_of_run import factor_if_affordable

FILE = "snp_effects.parquet"
MAX_ANIMALS = 15_000  # whose matrix of prediction errors is made, 1.8 GB
COLUMNS = 64  # solutions at once


def snp_effects_of_run(
    analysis: Analysis,
    prepared: Prepared,
    assembled: Assembled,
    solutions: Sequence[np.ndarray],
    draws: Mapping[str, np.ndarray],
) -> tuple[pl.DataFrame, list[str]]:
    """The table at the estimates or posterior means of the variances, and notes. draws: of the covariance matrices."""
    matrices, design = {info.name: info.matrix for info in assembled.terms}, prepared.design
    G = [posterior_mean(draws[matrices[t.name]]) if t.name in matrices else None for t in design.terms]
    R = posterior_mean(draws[RESIDUAL])
    variances = Variances(G, R if assembled.model.residual.classes else R[None])
    of_terms = [None if c is None else c.blocks for c in assembled.model.covariances]
    of_residuals = [m.blocks for m in assembled.model.residual.matrices]
    point = factor_if_affordable(design, variances, of_terms, of_residuals)
    notes = [f"{FILE}: no standard deviations and p values: {point}"] if isinstance(point, str) else []
    values = lambda part: np.asarray(solutions[part.number])[part.levels]
    known = None if isinstance(point, str) else point
    return snp_effects_frame(genomic_parts(analysis, prepared), prepared, values, variances, known), notes


def snp_effects_frame(
    parts: Sequence[GenomicPart],
    prepared: Prepared,
    breeding_values: Callable[[GenomicPart], np.ndarray],
    variances: Variances,
    point: Point | None,
) -> pl.DataFrame:
    """A row for each SNP of the file of the run, null where it is not used.

    breeding_values: (genotyped, k) of a term; point: the factor of the equations at these variances, None: standard
    deviations and p values are null.
    """
    assert prepared.genotypes is not None, "a run with genotypes"
    kept = prepared.genotypes.checked.kept_snps
    frame = prepared.genotypes.checked.snps
    for part in parts:
        term = prepared.design.terms[part.number]
        effect, error, log_p = _compute(
            part, prepared, breeding_values(part), np.asarray(variances.G[part.number]), point
        )
        ending = f"_{part.name}" if len(parts) > 1 else ""
        columns = {f"centre{ending}": part.coded.centre}
        for c, label in enumerate(component_labels(term, prepared.design.traits)):
            end = f"{ending}_{label}"
            columns |= {
                f"effect{end}": effect[:, c], f"effect_sd{end}": error[:, c], f"log10_p{end}": log_p[:, c]
            }  # fmt: skip
        is_used = part.coded.scale > 0
        for name, values in columns.items():
            every = np.full(frame.height, np.nan)
            every[kept] = np.where(is_used, values, np.nan)
            frame = frame.with_columns(pl.Series(name, every, nan_to_null=True))
    return frame


def _compute(
    part: GenomicPart, prepared: Prepared, u: np.ndarray, G: np.ndarray, point: Point | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(p, k) effects, their posterior standard deviations, and -log10 p."""
    effect = part.compute_effects(u)
    error, log_p = np.full(effect.shape, np.nan), np.full(effect.shape, np.nan)
    if point is None or len(part.ids) > MAX_ANIMALS:
        return effect, error, log_p
    relationship, variance = prepared.design.terms[part.number].relationship, np.diag(G)
    s, is_weighted = part.blending.snps, part.is_single_step and (part.tau != 1 or part.omega != 1)
    errors = [error_covariance(point, part, c) for c in range(len(G))]
    for rows, x in part.blocks():
        scale = part.coded.scale[rows]
        weight = s * scale * part.solve(np.ascontiguousarray(x.T))
        by_genotypes = s * scale * np.einsum("ja,aj->j", x, weight)  # x'w, of the scale of a copy
        explained = by_genotypes
        if is_weighted:
            full = np.zeros((relationship.n_levels, len(rows)))
            full[part.levels[part.chosen]] = weight
            explained = np.einsum("aj,aj->j", weight, relationship.times(full)[part.levels[part.chosen]])
        for c, C in enumerate(errors):
            of_errors = np.einsum("aj,aj->j", weight, C @ weight)
            error[rows, c] = np.sqrt(np.maximum(variance[c] * (s * scale**2 - by_genotypes) + of_errors, 0.0))
            with np.errstate(divide="ignore", invalid="ignore"):
                log_p[rows, c] = log_p_of_z(effect[rows, c] / np.sqrt(variance[c] * explained - of_errors))
    return effect, error, log_p


def error_covariance(point: Point, part: GenomicPart, component: int) -> np.ndarray:
    """(chosen, chosen) C^cc of the animals by which K was inverted."""
    places = point.likelihood.layout
    k = places.shapes[part.number][1]
    equation = places.equation[places.first[part.number] + part.levels[part.chosen] * k + component]
    n, out = int(places.active.sum()), np.empty((equation.size, equation.size))
    for first in range(0, equation.size, COLUMNS):
        columns = equation[first : first + COLUMNS]
        unit = np.zeros((n, columns.size))
        unit[columns, np.arange(columns.size)] = 1.0
        out[:, first : first + columns.size] = point.solve_equations(unit)[equation]
    return out
