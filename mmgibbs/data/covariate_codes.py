"""Numbers that mean a missing value elsewhere (-9, 999), among the covariates and the weights of the records."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mmgibbs.config import Analysis
from mmgibbs.data.missing_codes import missing_code
from mmgibbs.data.traits import Records, observing


def warn_of_codes(analysis: Analysis, records: Records) -> tuple[str, ...]:
    """A warning for each column of a covariate, and that of the weights, with such a number; traits have theirs."""
    phenotypes, seen, out = records.phenotypes, set(), []
    for path, column, traits in _numbers(analysis):
        if column in seen or not phenotypes.has(column):
            continue
        seen.add(column)
        needed = observing(records.observed, [i for i, t in enumerate(analysis.traits) if t.name in traits])
        values = np.where(needed, phenotypes.numbers(column, path), np.nan)
        code = missing_code(values)
        if code is not None and not (code.value == 0 and path.endswith(".covariates")):  # 0: a record has none of it
            where = f" (the first in row {phenotypes.rows[np.flatnonzero(values == code.value)[0]]})"
            n = int(np.count_nonzero(~np.isnan(values)))
            said = code.described_of_numbers(path, column, n, where, phenotypes.missing)
            out.append(f"{phenotypes.name}: {said}")
    return tuple(out)


def _numbers(analysis: Analysis) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """(YAML path, column, traits that it acts on) of every column that is read as a number beside the traits."""
    if analysis.data.weights is not None:
        yield "data.weights", analysis.data.weights, tuple(t.name for t in analysis.traits)
    for name, fixed in analysis.model.fixed.items():
        if fixed.kind == "covariate":
            yield f"model.fixed.{name}", fixed.column, tuple(fixed.traits)
    for name, random in analysis.model.random.items():
        for of_effect, effect in random.effects.items():
            path = f"model.random.{name}" + (f".effects.{of_effect}" if of_effect else "")
            for column in effect.covariates or ():
                yield f"{path}.covariates", column, tuple(effect.traits)
            if effect.legendre:
                yield f"{path}.legendre", effect.legendre.column, tuple(effect.traits)
