"""Shared by all tests: where the data sets are, the published numbers, and a chain in a few words."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]


def shared_data(name: str) -> Path:
    """The path of a data set beside the repository (../shared/NAME), or a visible skip where it is absent."""
    path = ROOT.parent / "shared" / name
    if not path.exists():
        pytest.skip(f"needs ../shared/{name}, which is not here")
    return path


def published(name: str) -> dict:
    """One case of cases/published.json: facts printed by others, or integrated independently."""
    return json.loads(shared_data("cases/published.json").read_text(encoding="utf-8"))[name]


def mixed_model(design, G, R, priors: Mapping[int | str, tuple | None] | None = None, saved=()):
    """A model to sample: G per term (None for fixed ones) and R are its starts.

    priors: term number (or 'residual') -> (df, scale), None for the flat prior; matrices that are not named in it are
    fixed. saved: names of terms whose draws are kept.
    """
    from mmgibbs.models.covariance import CovarianceModel, blocks_recorded_together, full_block
    from mmgibbs.models.priors import FLAT, InverseWishart
    from mmgibbs.sampler.mixed_model import MixedModel

    def covariance(name, start, blocks):
        if priors is None or name not in priors:
            return CovarianceModel(np.array(start, float), True, blocks)
        prior = InverseWishart(priors[name][0], np.array(priors[name][1], float)) if priors[name] else FLAT
        return CovarianceModel(np.array(start, float), False, blocks, prior)

    covariances = tuple(None if g is None else covariance(i, g, full_block(len(g))) for i, g in enumerate(G))
    residual = covariance("residual", R, blocks_recorded_together(design.patterns))
    kept = {t.name: np.arange(t.n_levels) for t in design.terms if t.name in saved}
    return MixedModel(design, covariances, residual, kept)


def chain(
    model,
    samples: int,
    burn_in: int = 200,
    thin: int = 1,
    key: tuple[int, int] = (1, 0),
    update: str = "level",
    mutate: Callable | None = None,
    each: Callable | None = None,
    record: bool = True,
    interweave: tuple[int, ...] = (),
):
    """One chain in this process; `interweave` names the terms whose G is redrawn given standardised effects too.

    `mutate(engine)` spoils the engine before the start; `each(engine, draws)` comes after every kept sweep, and may
    change the state; `record=False` keeps no draws.
    """
    from mmgibbs.engines.serial import SerialEngine
    from mmgibbs.equations.partition import partition
    from mmgibbs.equations.structured import structured_equations
    from mmgibbs.sampler.chain import sample_chain
    from mmgibbs.sampler.schedule import Schedule

    engine = SerialEngine(structured_equations(model.design, partition(model.design)), update=update)
    if mutate is not None:
        mutate(engine)
    schedule = Schedule(burn_in, samples, thin if record else samples, interweave=interweave)

    def progress(chain):
        if each is not None and schedule.burn_in < chain.number and (chain.number - burn_in) % thin == 0:
            each(engine, chain.draws())

    return sample_chain(model, engine, schedule, key, progress)


def copies(design, n: int):
    """The same data and pedigree n times in one design, with levels of their own: at fixed variances, n independent
    posteriors.

    One sweep is then n sweeps of the small model, and the n copies are independent batches. Level l of copy c is c q +
    l.
    """
    from scipy.sparse import block_diag, csr_array

    from mmgibbs.models.relationships.base import DenseBlock
    from mmgibbs.models.relationships.genomic import Genomic
    from mmgibbs.models.relationships.identity import Identity
    from mmgibbs.models.relationships.pedigree import Pedigree
    from mmgibbs.models.relationships.single_step import SingleStep
    from mmgibbs.models.relationships.user_inverse import SparseInverse
    from mmgibbs.models.terms import Levels, Related
    from mmgibbs.pedigree.relationship import relatives

    def dense(block, q):
        levels = np.concatenate([block.levels + c * q for c in range(n)]).astype(np.int32)
        return DenseBlock(levels, np.kron(np.eye(n), block.values))

    def kin(kind, q):
        if isinstance(kind, Genomic):
            return Genomic(dense(kind.block, q), np.tile(kind.diagonal_of_K, n), {})
        if isinstance(kind, SingleStep):
            return SingleStep(kin(Pedigree(kind.relatives), q).relatives, dense(kind.block, q), {})
        if isinstance(kind, Pedigree):
            kind = kind.relatives
            assert kind.n_groups == 0
            parents = [
                np.concatenate([np.where(p < 0, -1, p + c * q) for c in range(n)]).astype(np.int32)
                for p in (kind.sire, kind.dam)
            ]
            return Pedigree(relatives(*parents, np.tile(kind.inbreeding, n)))
        if isinstance(kind, SparseInverse):
            block = csr_array((kind.values, kind.indices, kind.indptr), shape=(q, q))
            whole = csr_array(block_diag([block] * n))
            whole.sort_indices()
            return SparseInverse(whole.indptr.astype(np.int64), whole.indices.astype(np.int32), whole.data)
        assert isinstance(kind, Identity)
        return Identity(n * q)

    def repeated(term):
        q = term.n_levels
        effects = tuple(
            replace(
                e,
                level=np.concatenate([np.where(e.level < 0, -1, e.level + c * q) for c in range(n)]).astype(np.int32),
                covariates=None if e.covariates is None else np.tile(e.covariates, (n, 1)),
            )
            for e in term.effects
        )
        active = None if term.active is None else np.tile(term.active, (n, 1))
        prior = Related(kin(term.relationship, q)) if term.kind == "random" else term.prior
        return replace(term, incidence=Levels(effects, n * q), prior=prior, active=active)

    assert not design.rescale and not design.shifts
    return replace(
        design,
        y=np.tile(design.y, (n, 1)),
        pattern=np.tile(design.pattern, n),
        weight=np.tile(design.weight, n),
        terms=tuple(repeated(t) for t in design.terms),
    )


def random_draws(result) -> list:
    """Draws (n, k, k) of the covariance matrix of each random term."""
    names = (name for name in result.draws if name.startswith("G."))
    return [result.draws[name] for name in sorted(names, key=lambda name: int(name[2:]))]


def saved_draws(result) -> dict:
    """term -> draws (n, levels, k) of its chosen levels."""
    kept = {name.removeprefix("levels."): t for name, t in result.tracked.items() if name.startswith("levels.")}
    return {term: tracked.draws for term, tracked in kept.items()}


def exact_draws(equations, **options):
    """The pcg engine at the tolerance that an analysis has by default."""
    from mmgibbs.config.sampling import TOLERANCES
    from mmgibbs.engines.pcg.engine import PcgEngine

    return PcgEngine(equations, TOLERANCES["gibbs"], **options)
