"""The analysis that a validation is of, for the head of its page."""

from __future__ import annotations

from typing import Any

from mmgibbs.config.analysis import Analysis
from mmgibbs.data.fixed import INTERCEPT
from mmgibbs.data.prepared import Prepared
from mmgibbs.model.labels import parameter_labels
from mmgibbs.runs.record import common_record, described_relationship


def head_of(analysis: Analysis, prepared: Prepared) -> dict[str, Any]:
    """As run.json has it of a run, with the labels of the components of each random term and the traits that have an
    intercept."""
    design = prepared.design
    random = [t for t in design.terms if t.kind == "random"]
    intercept = [e for t in design.terms if t.name == INTERCEPT for e in t.effects]
    return common_record(analysis) | {
        "levels": {t.name: t.n_levels for t in design.terms},
        "relationships": {t.name: described_relationship(t) for t in random},
        "intercept": [design.traits[i] for e in intercept for i in e.traits],
        "components": {t.name: parameter_labels(t, design.traits) for t in random} | {"residual": list(design.traits)},
    }
