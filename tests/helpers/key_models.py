"""Small mixed models of many kinds, whose chains are advanced by a few sweeps: what the recorder of keys listens to."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
from helpers.mixed_models import example_of, sampled
from reference import models

import mmgibbs
from mmgibbs.engines.coloured.engine import StructuredEngine
from mmgibbs.engines.direct.engine import MarginalEngine
from mmgibbs.engines.hybrid.engine import HybridEngine
from mmgibbs.engines.serial import SerialEngine
from mmgibbs.equations.partition import partition
from mmgibbs.equations.structured import structured_equations
from mmgibbs.models.families import Categories
from mmgibbs.models.priors import HalfT
from mmgibbs.models.residual import ResidualModel
from mmgibbs.sampler.chain import Chain
from mmgibbs.sampler.interweave import terms_to_interweave
from mmgibbs.sampler.mixed_model import MixedModel
from mmgibbs.sampler.schedule import Schedule

APART = ((0, 2), (1,))  # traits 1 and 3 are recorded together, trait 2 alone
SWEEPS = 22  # the first are independent draws of matrices, the 21st and 22nd over-relaxed ones
ENGINES: dict[str, tuple[str, Callable]] = {  # name -> partition, engine of equations
    "serial": ("term", SerialEngine),
    "structured": ("colour", StructuredEngine),
    "hybrid": ("equal", HybridEngine),
    "marginal": ("term", MarginalEngine),
}


def with_blocks_apart(model: MixedModel) -> MixedModel:
    """Residual traits that covary are not neighbours."""

    def block(c):
        mask = np.zeros(c.start.shape)
        for traits in APART:
            mask[np.ix_(traits, traits)] = 1.0
        return replace(c, start=c.start * mask, blocks=APART, prior=replace(c.prior, scale=c.prior.scale * mask))

    return replace(model, residual=ResidualModel(tuple(map(block, model.residual.matrices)), model.residual.classes))


def three_traits() -> MixedModel:
    example = models.example("three_traits_maternal")
    return with_blocks_apart(sampled(example.design, example.G, example.R))


def residual_classes() -> MixedModel:
    return with_blocks_apart(sampled(*example_of("three_traits_maternal")))


def under_half_t(model: MixedModel) -> MixedModel:
    """Priors of standard deviations, which have auxiliary variables, of all matrices."""
    half_t = lambda c: c and replace(c, prior=HalfT(2.0, np.sqrt(np.diag(c.start))))
    residual = ResidualModel(tuple(map(half_t, model.residual.matrices)), model.residual.classes)
    return replace(model, covariances=tuple(map(half_t, model.covariances)), residual=residual)


def with_categories(*traits: int, model: MixedModel | None = None) -> MixedModel:
    """`three_traits`, or another model of them, with these traits in categories, of residual variance 1 in the first
    residual class."""
    model = three_traits() if model is None else model
    y, responses = model.design.y.copy(), []
    for trait in traits:
        liability = y[:, trait] - np.nanmedian(y[:, trait])
        category = np.where(np.isfinite(liability), np.searchsorted([0.0, 0.8], liability), -1).astype(np.int16)
        responses.append(Categories(trait, ("a", "b", "c"), category))
        y[:, trait] = responses[-1].start()

    def restrict(c):
        sd = np.sqrt(np.diag(c.start))
        return replace(c, start=c.start / np.outer(sd, sd), unit=traits)

    design = replace(model.design, y=y, responses=tuple(responses))
    first, *others = model.residual.matrices
    residual = ResidualModel((restrict(first), *others), model.residual.classes)
    return replace(model, design=design, residual=residual)


MODELS: dict[str, Callable[[], MixedModel]] = {
    "blocks apart": three_traits,
    "residual classes, blocks apart": residual_classes,
    "half-t priors of residual classes": lambda: under_half_t(residual_classes()),
    "ordinal beside another": lambda: with_categories(0),
    "ordinal in residual classes": lambda: with_categories(0, model=residual_classes()),
    "two ordinal": lambda: with_categories(0, 2),
    "all ordinal": lambda: with_categories(0, 1, 2),
}


def advance(name: str, engine: str = "serial") -> None:
    """Advance a chain of one of MODELS."""
    advance_model(MODELS[name](), engine)


def advance_model(model: MixedModel, engine: str = "serial", sweeps: int = SWEEPS) -> None:
    """Advance a chain of a model by a few sweeps."""
    kind, make = ENGINES[engine]
    equations = structured_equations(model.design, partition(model.design, kind))
    schedule = Schedule(burn_in=sweeps // 2, samples=sweeps, interweave=terms_to_interweave(model))
    Chain(model, make(equations), schedule, (11, 2)).advance(sweeps)


STRUCTURES: dict[str, Any] = {
    **{kind: kind for kind in ("factor_analytic", "compound_symmetry", "ar1", "antedependence")},
    "number of factors": {"kind": "factor_analytic", "factors": "auto"},
    "reduced rank": {"kind": "reduced_rank", "factors": 1},
}
BESIDE_FIELD = {"random": {"line": {}, "field": {"relationship": {"kind": "ar1", "row": "row", "column": "column"}}}}
ONE = {"traits": ["a"]}
TRIALS: dict[str, dict[str, Any]] = {
    "correlated plots": ONE | {"model": BESIDE_FIELD},
    "marginal": ONE | {"sampler": {"engine": "marginal", "burn_in": 240, "samples": 4}},
    "marginal, binary": {"traits": {"sick": {"type": "binary"}}, "sampler": {"engine": "marginal", "burn_in": 240}},
    "two in categories": {"traits": {"sick": {"type": "binary"}, "score": {"type": "ordinal"}, "a": {}}},
    "counts": {"traits": {"cases": {"type": "count"}, "a": {}}},
    "REML by Monte Carlo": {"sampler": {"method": "reml", "engine": "pcg", "reml_samples": 10}},
    "prediction errors": {
        "sampler": {"method": "blup", "pev_limit": 0, "pev_samples": 20},
        "variances": {"line": [[1.0, 0.2], [0.2, 1.0]], "residual": [[1.0, 0.0], [0.0, 1.0]]},
    },
    "pcg": {"sampler": {"engine": "pcg"}},
}


def trial_records() -> pl.DataFrame:
    """80 plots of 20 lines, of which some lack some traits."""
    rng, n = np.random.default_rng(7), 80
    line = rng.permutation(np.arange(n) % 20)
    u = rng.multivariate_normal(np.zeros(4), 0.7 + 0.5 * np.eye(4), size=20)
    y = u[line] + rng.standard_normal((n, 4))
    seen = np.where(rng.random((n, 4)) < 0.15, np.nan, y)
    columns = {t: pl.Series(seen[:, i], nan_to_null=True) for i, t in enumerate("abcd")}
    return pl.DataFrame(
        {
            "line": [f"l{i}" for i in line], "row": np.arange(n) // 10, "column": np.arange(n) % 10,
            "sick": (y[:, 0] > 0).astype(int), "score": np.searchsorted([-0.5, 0.7], y[:, 1]),
            "cases": rng.poisson(np.exp(0.4 * y[:, 2])), **columns,
        }
    )  # fmt: skip


def run_trial(name: str) -> None:
    """Run one of TRIALS, or a structure of the lines over four traits."""
    analysis: dict[str, Any] = {
        "data": {"phenotypes": trial_records()}, "traits": ["a", "b"], "model": {"random": {"line": {}}},
    }  # fmt: skip
    sampler = {"chains": 1, "burn_in": 22, "samples": 4, "thin": 1, "threads": 1}
    if name in STRUCTURES:
        variances = {"line": {"structure": STRUCTURES[name]}, "residual": {"structure": "diagonal"}}
        analysis |= {"traits": list("abcd"), "variances": variances}
    else:
        changes = dict(TRIALS[name])
        given = changes.pop("sampler", {})
        sampler = given | {"threads": 1} if "method" in given else sampler | given
        analysis |= changes
    with tempfile.TemporaryDirectory() as folder:
        mmgibbs.run(analysis | {"sampler": sampler, "output": {"directory": f"{folder}/run"}}, progress=False)
