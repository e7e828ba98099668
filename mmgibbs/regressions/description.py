"""A regression in words and symbols, for the reader of its report: what each plugin's sampler describes itself with.

Equations are plain text; `_{j}` in them is a subscript. They keep to the symbols of the plugins: z the predictors of a
record, alpha and beta their coefficients.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mmgibbs.regressions.predictors import Predictors

MAX_NAMED_CLASSES = 8  # in a sentence


@dataclass(frozen=True)
class Columns:
    """The user's columns that a description names."""

    response: tuple[str, ...]  # one, or a column of counts for each class
    groups: str | None = None
    group_predictors: tuple[str, ...] = ()


@dataclass(frozen=True)
class Description:
    """Description of a regression, stored in run.json under `described`."""

    model: str  # a sentence that says what is regressed on what, and how
    equations: tuple[str, ...]  # of the records given the coefficients
    priors: tuple[str, ...]  # of everything that is drawn
    where: tuple[str, ...] = ()  # sentences on the symbols, the reference class, the groups


def predictors_words(X: Predictors, scaled: str = "divided by its standard deviation") -> str:
    """Describe z, and the scale of priors and coefficients; scaled: what is done where X is standardised."""
    count = f"the {X.p:,} predictors" if X.p > 1 else "the predictor"
    done = ["centred"] if X.origin.any() else []
    done += [scaled] if (X.scale != 1).any() else []
    if not done:
        return f"z has {count} of a record as given."
    return (
        f"z has {count} of a record, {'each ' if X.p > 1 else ''}{' and '.join(done)}. Priors are for the coefficients "
        "of z; coefficients are reported for the columns as given, and the intercept for predictors of 0."
    )


def predictors_counted(p: int) -> str:
    """'1 predictor', '2,000 predictors'."""
    return f"{p:,} predictor{'' if p == 1 else 's'}"


def label(value: Any) -> str:
    """A class as the user wrote it: numbers were read as float64."""
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def labels(classes: Sequence[Any]) -> str:
    """'assisted and difficult'; of many classes the first ones, and how many there are besides."""
    names = [label(value) for value in classes]
    if len(names) > MAX_NAMED_CLASSES:
        names = [*names[: MAX_NAMED_CLASSES - 1], f"{len(names) - MAX_NAMED_CLASSES + 1:,} more"]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def probability(columns: Columns, of: str) -> str:
    """'P(birth = easy)', or 'P(easy)' where each class has a column of counts."""
    return f"P({columns.response[0]} = {of})" if len(columns.response) == 1 else f"P({of})"


def log_odds(columns: Columns, classes: Sequence[Any]) -> str:
    """'log P(birth = k) / P(birth = easy)': against the last class, which is the reference."""
    return f"log [ {probability(columns, 'k')} / {probability(columns, label(classes[-1]))} ]"


def reference_words(classes: Sequence[Any]) -> str:
    """Describe the reference class, and what the coefficients of the others mean."""
    legend = "k stands for each other class" if len(classes) > 2 else "k stands for the other class"
    return (
        f"The reference (baseline) class is {label(classes[-1])}, whose coefficients are 0; {legend}, "
        f"{labels(classes[:-1])}, whose coefficients are changes of the log odds against the reference."
    )
