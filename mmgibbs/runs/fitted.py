"""Fitted values and residuals of the records: `output.fitted`."""

from __future__ import annotations

import numpy as np
import polars as pl

from mmgibbs.data.prepared import Prepared
from mmgibbs.likelihood.incidence import Incidence


def fitted_frame(prepared: Prepared, solutions: list[np.ndarray]) -> pl.DataFrame:
    """Make a row for each observation of a trait: y, W theta and y - W theta, of solutions on the user's scale.

    solutions: (q, k) per term, as they are reported. Traits that are not normal have the liability that is fitted, and
    no residual.
    """
    design = prepared.design
    fitted = Incidence(design).fit([theta[..., None] for theta in design.to_model_scale(solutions)])[..., 0]
    y, responses = design.y.copy(), {r.trait for r in design.responses}
    for term, component, value in design.offsets:
        t = int(design.terms[term].component_trait[component])
        y[:, t] += value
        fitted[:, t] += value
    record, trait = np.nonzero(design.patterns[design.pattern])
    liability = np.isin(trait, list(responses))
    observed = np.where(liability, np.nan, y[record, trait])
    columns = {
        "row": prepared.record_row[record],
        "trait": np.array(design.traits)[trait],
        "observed": observed,
        "fitted": fitted[record, trait],
        "residual": observed - fitted[record, trait],
    }
    return pl.DataFrame(columns).fill_nan(None)
