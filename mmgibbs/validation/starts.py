"""Variances without a start: refused, with the lines to write into the analysis file."""

from __future__ import annotations

from collections.abc import Sequence

import yaml

from mmgibbs.config import Analysis
from mmgibbs.config.complete import implied_variances
from mmgibbs.config.effects import component_names
from mmgibbs.config.types_of_traits import UNIT_RESIDUAL
from mmgibbs.config.variances import Variance
from mmgibbs.errors import ConfigError, option

MOST = 6  # rows of a matrix that is written out
RESIDUAL = "residual"


def refuse_without_starts(analysis: Analysis) -> None:
    """ConfigError where a variance of a term or of the residuals has no start."""
    implied, missing = implied_variances(analysis.model), []
    for name, spec in (analysis.variances.terms | {RESIDUAL: analysis.variances.residual}).items():
        own = getattr(spec, "classes", {})
        if name not in implied and spec.start is None and not (own and all(c.start is not None for c in own.values())):
            missing.append(name)
    if missing:
        raise ConfigError(
            f"variances.{missing[0]}: found no start, needed one, {option('variances', 'RUN')} for the posterior means "
            f"of a finished run, or {option('variances', 'sample')} to sample them in every chain; a start is, with "
            f"your numbers for V (variance) and C (covariance):\n{lines_of_starts(analysis, missing)}"
        )


def lines_of_starts(analysis: Analysis, names: Sequence[str]) -> str:
    """YAML of the starts of these terms."""
    lines = ["variances:"]
    for name in names:
        spec: Variance = analysis.variances.residual if name == RESIDUAL else analysis.variances.terms[name]
        labels = component_names(analysis.traits if name == RESIDUAL else analysis.model.random[name])
        known = [i for i, t in enumerate(analysis.traits) if t.type in UNIT_RESIDUAL and name == RESIDUAL]
        rows = f"  # rows and columns: {', '.join(labels)}" if len(labels) > 1 else ""
        lines.append(f"  {yaml.safe_dump(name, allow_unicode=True, width=1000).partition(chr(10))[0]}:{rows}")
        lines.append(f"    start: {_start(len(labels), spec.structure == 'diagonal', known)}")
    return "\n".join(lines)


def _start(k: int, diagonal: bool, known: Sequence[int]) -> str:
    """'V' or '[[V1, C12], [C12, V2]]' of k components; known: those whose variance is 1."""
    if k > MOST:
        return f"...  # {k} rows of {k} numbers"
    if k == 1:
        return "1" if known else "V"
    element = lambda i, j: (
        ("1" if i in known else f"V{i + 1}") if i == j else "0" if diagonal else f"C{min(i, j) + 1}{max(i, j) + 1}"
    )
    return f"[{', '.join('[' + ', '.join(element(i, j) for j in range(k)) + ']' for i in range(k))}]"
