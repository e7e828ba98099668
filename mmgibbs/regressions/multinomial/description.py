"""The multinomial logit in words and symbols, for both of its samplers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mmgibbs.regressions.description import (
    Columns,
    Description,
    log_odds,
    predictors_counted,
    predictors_words,
    reference_words,
)
from mmgibbs.regressions.predictors import Predictors


def multinomial_description(
    columns: Columns, classes: Sequence[Any], X: Predictors, intercept: bool, priors: Sequence[str]
) -> Description:
    """priors: those of the coefficients, and of the intercepts where there are any."""
    what = "binary logit" if len(classes) == 2 else "multinomial logit"
    counts = len(columns.response) > 1
    of = f"the counts of {', '.join(columns.response)}" if counts else columns.response[0]
    return Description(
        model=f"{what.capitalize()}: regression of {of}, {len(classes)} classes, on {predictors_counted(X.p)}.",
        equations=(f"{log_odds(columns, classes)} = {'α_{k} + ' if intercept else ''}zβ_{{k}}",),
        priors=tuple(priors),
        where=(reference_words(classes), predictors_words(X), *(["α_{k} is the intercept of class k."] * intercept)),
    )
