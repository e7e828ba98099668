"""PEV of BLUP from samples: what is asked for, and what is said of their errors in tables, run.json and notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mmgibbs.models.design import Design
from mmgibbs.results.tables import LevelColumns

if TYPE_CHECKING:
    from mmgibbs.engines.pcg.prediction_errors import MonteCarloPev


class PevSamples(NamedTuple):
    """See engines.pcg.prediction_errors.monte_carlo_pev."""

    samples: int
    seed: int
    diagonals: list[np.ndarray | None]


def error_columns(pev: MonteCarloPev) -> dict[tuple[int, int], LevelColumns]:
    """(term, component) -> the column pev_mcse; blank where the level is set to 0."""
    return {
        (i, c): {"pev_mcse": np.where(sd[:, c] > 0, error[:, c], np.nan)}
        for i, (sd, error) in enumerate(zip(pev.sd, pev.error, strict=True))
        for c in range(sd.shape[1])
    }


def shares_of_variance(
    design: Design, G: Sequence[np.ndarray | None], pev: MonteCarloPev
) -> dict[str, dict[str, float]]:
    """Random term -> mean and largest standard error of PEV over levels and components, as a share of the variance of
    the component: of a reliability where there is no inbreeding."""
    out = {}
    for term, g, sd, error in zip(design.terms, G, pev.sd, pev.error, strict=True):
        if g is not None and (sd > 0).any():
            share = (error / np.diag(g))[sd > 0]
            out[term.name] = {"mean": float(share.mean()), "largest": float(share.max())}
    return out


def words_of_samples(pev: MonteCarloPev, because: str, errors: Mapping[str, Mapping[str, float]]) -> str:
    """The note of a run."""
    shown = "; ".join(f"{name} {of['mean']:.2g} (largest {of['largest']:.2g})" for name, of in errors.items())
    return (
        f"PEV and reliability are by Monte Carlo, from {pev.samples:,} samples (sampler.pev_samples): {because}. "
        f"Mean standard error of a PEV as a share of the variance: {shown}; that of each is in column pev_mcse"
    )
