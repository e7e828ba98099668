"""The classes of the residuals: a column of the phenotypes, `variances.residual.by`."""

from __future__ import annotations

import numpy as np

from mmgibbs.config.analysis import Analysis
from mmgibbs.config.fields import NOT_IN_A_NAME
from mmgibbs.data.levels import code_levels
from mmgibbs.data.phenotypes import SHOWN, refuse_rows
from mmgibbs.data.traits import Records
from mmgibbs.errors import ConfigError, DataError, nearest

PATH = "variances.residual.by"


def residual_classes(analysis: Analysis, records: Records) -> tuple[tuple[str, ...], np.ndarray] | None:
    """(names of the classes, class of each record (n,) int32); None where one matrix serves all records.

    DataError for a record without a class, and for a class whose name parameters cannot carry; ConfigError for a class
    of the analysis that no record has.
    """
    spec, phenotypes = analysis.variances.residual, records.phenotypes
    if spec.by is None:
        return None
    text = phenotypes.text(spec.by, PATH)
    absent = text.is_null().to_numpy()
    if absent.any():
        raise refuse_rows(
            phenotypes.name,
            phenotypes.rows[absent],
            [f"found no value in column '{spec.by}' ({PATH})"] * SHOWN,
            "the class of the residual of every record that observes a trait",
        )
    ids, (code,) = code_levels([text])
    names = tuple(ids.to_list())
    for name in names:
        bad = next((c for c in name if c in NOT_IN_A_NAME), None)
        if bad is not None:
            raise DataError(
                f"{phenotypes.name}: column '{spec.by}' ({PATH}): found the class '{name}' with the character {bad!r}, "
                f"needed names without {' '.join(NOT_IN_A_NAME)}, since parameters are named by them"
            )
    for name in spec.classes:
        if name not in names:
            known = nearest(name, names, "the classes are")
            raise ConfigError(
                f"variances.residual.classes.{name}: no record has this value in column '{spec.by}'; {known}"
            )
    return names, code
