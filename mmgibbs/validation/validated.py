"""The analysis that a validation is of, for the head of its page."""

from __future__ import annotations

from typing import Any

from mmgibbs.config.analysis import Analysis
from mmgibbs.data.prepared import Prepared
from mmgibbs.model.labels import parameter_labels
from mmgibbs.runs.record import common_record, described_relationship


def head_of(analysis: Analysis, prepared: Prepared) -> dict[str, Any]:
    """As run.json has it of a run, with the labels of the components of each random term."""
    design = prepared.design
    random = [t for t in design.terms if t.kind == "random"]
    return common_record(analysis) | {
        "levels": {t.name: t.n_levels for t in design.terms},
        "relationships": {t.name: described_relationship(t) for t in random},
        "components": {t.name: parameter_labels(t, design.traits) for t in random} | {"residual": list(design.traits)},
    }
