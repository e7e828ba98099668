"""What to know about contributions, beside their tables: notes, and warnings, which begin with 'warning: '."""

from __future__ import annotations

import numpy as np
import polars as pl

from mmgibbs.contributions.candidates import Candidates
from mmgibbs.contributions.matings import MAX_MATINGS_ASSIGNED
from mmgibbs.contributions.planning import MAX_DRAWN_CANDIDATES, OverDraws
from mmgibbs.contributions.values import Criterion, KeptValues
from mmgibbs.data.phenotypes import SHOWN
from mmgibbs.report.finished import Finished
from pedigree.tables import counted, quoted


def describe_draws(
    finished: Finished,
    criterion: Criterion,
    candidates: Candidates,
    draws: int,
    kept: KeptValues | None,
    over_draws: OverDraws | None,
) -> list[str]:
    if not draws:
        return []
    if finished.solved:
        return ["no draws: the run has solutions (method blup or reml); a run with method gibbs has draws"]
    n = len(candidates.ids)
    if kept is None:
        terms = {term for term, _ in criterion.components.values()}
        sampler = finished.record["analysis"].get("sampler", {})
        count = sampler.get("chains", 1) * sampler.get("samples", 0) // max(1, sampler.get("thin", 1))
        return [
            "no draws: the run has kept none of these breeding values. For the uncertainty of contributions and a "
            f"robust plan, keep those of the candidates (output.save_levels, term {', '.join(sorted(terms))}); "
            f"{min(n, MAX_DRAWN_CANDIDATES):,} candidates take "
            f"{8e-6 * count * min(n, MAX_DRAWN_CANDIDATES):,.0f} MB for each component of the term"
        ]
    if over_draws is None:
        return [
            "warning: no plans of draws: candidates with kept draws cannot meet the limits alone (a candidate with min "
            "or matings that are made has none, or they are too few); needed draws of these too (output.save_levels)"
        ]
    notes = []
    if over_draws.places.size < n:
        absent = np.delete(np.arange(n), over_draws.places)
        shown = ", ".join(quoted(i) for i in candidates.ids.gather(absent[:SHOWN]))
        why = (
            "have no kept draws"
            if kept.places.size < n
            else f"are beyond the best {MAX_DRAWN_CANDIDATES:,} by mean + 2 SD"
        )
        notes.append(f"plans of draws leave out {counted(absent.size, 'candidate')}, such as {shown}, that {why}")
    return notes


def note_pairs(pairs: pl.DataFrame | None, matings: int) -> list[str]:
    if pairs is not None:
        return []
    return [
        f"warning: no list of matings: {matings:,} are above the {MAX_MATINGS_ASSIGNED:,} that are paired at once; "
        "plan them by herd or region"
    ]
