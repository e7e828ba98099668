"""An analysis and its prepared data -> the model that is sampled: covariance matrices with their starts and priors, the engine."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mmgibbs.chains.parameters import TermInfo, term_info
from mmgibbs.design import Design, Term
from mmgibbs.errors import ConfigError
from mmgibbs.engines.choice import EngineChoice, cores
from mmgibbs.sampler import MixedModel
from mmgibbs.variances import (
    CovarianceModel,
    blocks_recorded_together,
    check_posterior_exists,
    diagonal_blocks,
    full_block,
)


LARGE = 50_000  # equations from which the structured engine's colours, classes and threads pay


@dataclass(frozen=True)
class Assembled:
    model: MixedModel
    terms: tuple[TermInfo, ...]  # of the random terms, for names
    notes: tuple[str, ...]  # warnings about the posterior


def assemble(analysis, prepared) -> Assembled:
    """Covariance matrices for every random term and the residual; ModelError where a posterior cannot exist."""
    design = prepared.design
    all_fixed = analysis.variances.mode == "fixed" or analysis.sampler.method == "blup"
    default = default_starts(design, prepared.phenotypic_variance)
    covariances, infos, notes = [], [], []
    for i, term in enumerate(design.terms):
        if term.kind == "fixed":
            covariances.append(None)
            continue
        spec, random = analysis.variances.terms[term.name], analysis.model.random[term.name]
        k = term.n_components
        blocks = diagonal_blocks(k) if spec.structure == "diagonal" else full_block(k)
        covariance = _covariance(spec, default[i], blocks, all_fixed, f"variances.{term.name}")
        notes += check_posterior_exists(term.name, covariance, term.n_prior_levels)
        covariances.append(covariance)
        columns = [random.effects[e.name].level for e in term.effects]
        relationship = random.relationship if random.relationship in ("identity", "pedigree") else "file"
        infos.append(term_info(term, design.traits, columns, relationship, blocks, covariance.fixed))
    spec = analysis.variances.residual
    residual = _covariance(spec, default[-1], blocks_recorded_together(design.patterns, spec.structure), all_fixed, "variances.residual")
    observed = design.patterns[design.pattern]
    records = {b: int(observed[:, list(b)].any(axis=1).sum()) for b in residual.blocks}
    notes += check_posterior_exists("residual", residual, records, "records")
    saved = saved_levels(analysis.output.save_levels, prepared)
    return Assembled(MixedModel(design, tuple(covariances), residual, saved), tuple(infos), tuple(notes))


def _covariance(spec, default: np.ndarray, blocks, all_fixed: bool, where: str) -> CovarianceModel:
    fixed = all_fixed or spec.fixed
    if spec.start is None and fixed:
        raise ConfigError(f"{where}: found no start, needed the variance at which it is held fixed")
    start = default if spec.start is None else np.array(spec.start, float)
    within = np.zeros(start.shape, bool)
    for block in blocks:
        within[np.ix_(block, block)] = True
    prior = spec.prior
    return CovarianceModel(
        start=np.where(within, start, 0.0),
        fixed=fixed,
        blocks=blocks,
        df=None if prior is None else prior.df,
        scale=None if prior is None else np.array(prior.scale, float),
    )


def default_starts(design: Design, phenotypic_variance: np.ndarray) -> list[np.ndarray | None]:
    """Per term (None for fixed), and last the residual: the phenotypic variance of each trait split equally over its effects and the residual."""
    effects_on = np.zeros(design.n_traits)
    for term in design.terms:
        if term.kind == "random":
            for e in term.effects:
                effects_on[list(e.traits)] += 1
    share = phenotypic_variance / (effects_on + 1)
    starts = [np.diag(share[t.component_trait] / _mean_squares(t)) if t.kind == "random" else None for t in design.terms]
    return [*starts, np.diag(share)]


def _mean_squares(term: Term) -> np.ndarray:
    """(k,) what a unit variance of each component adds to the variance of a record: m times the mean square of its covariate."""
    out = []
    for e in term.effects:
        squares = [1.0] if e.covariates is None else [max(float(np.mean(z**2)) * len(e.covariates.T), 1e-12) for z in e.covariates.T]
        out += [s for _ in e.traits for s in squares]
    return np.array(out)


def saved_levels(wanted, prepared) -> dict[str, np.ndarray]:
    """term -> level codes whose draws are kept, from `output.save_levels`: names of terms, or term -> ids."""
    wanted = wanted if isinstance(wanted, dict) else dict.fromkeys(wanted)
    sizes = {t.name: t.n_levels for t in prepared.design.terms}
    # codes() refuses an unknown term
    return {name: prepared.codes(name, ids or []) if ids is not None or name not in sizes else np.arange(sizes[name]) for name, ids in wanted.items()}


def choose_engine(sampler, model: MixedModel) -> tuple[EngineChoice, str, str]:
    """The engine, the kind of partition, and why.

    auto: structured from LARGE equations on (colours, classes of levels and threads pay then), serial below, which has nothing to set up,
    and for any other partition that is asked for. Threads: `sampler.threads`, else the cores that chains in parallel leave.
    """
    size, kind = model.design.n_equations, sampler.partition
    name, why = sampler.engine, "asked for"
    if name == "auto":
        large, free = size >= LARGE, kind in ("auto", "colour")
        name = "structured" if large and free else "serial"
        why = f"auto: {size:,} equations, {'at least' if large else 'fewer than'} {LARGE:,}" + ("" if free else f", and partition {kind}")
    if sampler.device == "gpu" and name != "hybrid":
        raise ConfigError(f"sampler.device: found 'gpu' with engine {name}, which runs on the CPU in this version; needed engine: hybrid, or device: cpu")
    if name == "structured" and kind not in ("auto", "colour"):
        raise ConfigError(f"sampler.partition: found '{kind}', needed colour (or auto) for engine: structured")
    if kind == "auto":
        kind = "term" if name in ("serial", "pcg") else "colour"
    threads = sampler.threads or max(1, cores() // sampler.chains)
    fixed = model.residual.fixed and all(c is None or c.fixed for c in model.covariances)
    device = "gpu" if sampler.device == "gpu" else "cpu"
    return EngineChoice(name, sampler.update, threads if name in ("structured", "hybrid") else 1, device, fixed), kind, why
