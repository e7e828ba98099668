"""What scikit-learn asks of an estimator beyond `fit` and `predict`: tags, its error for an estimator that is not
fitted, its warnings for a response in a column and for draws that are too few. The library is not needed: it is used
where the caller has imported it.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

from mmgibbs.errors import ModelError


def make_tags(kind: str, *, several_classes: bool = True) -> Any:
    """sklearn.utils.Tags; kind: 'classifier' | 'regressor'. Called by scikit-learn alone."""
    from sklearn.utils import ClassifierTags, RegressorTags, Tags, TargetTags

    return Tags(
        estimator_type=kind,
        target_tags=TargetTags(required=True),
        classifier_tags=ClassifierTags(multi_class=several_classes) if kind == "classifier" else None,
        regressor_tags=RegressorTags() if kind == "regressor" else None,
    )


class NotFitted(ModelError, AttributeError):
    """An AttributeError too, so that `hasattr` is False of what a fit leaves."""


def not_fitted(message: str) -> ModelError:
    """A ModelError, which is scikit-learn's NotFittedError too where that library is loaded."""
    exceptions = sys.modules.get("sklearn.exceptions")
    if exceptions is None:
        return NotFitted(message)
    both: type[ModelError] = type("NotFittedModelError", (NotFitted, exceptions.NotFittedError), {})
    return both(message)


def warn_of_a_column(shape: tuple[int, ...]) -> None:
    """The response came as a table of one column."""
    exceptions = sys.modules.get("sklearn.exceptions")
    kind = UserWarning if exceptions is None else exceptions.DataConversionWarning
    text = f"A column-vector y was passed when a 1d array was expected: found {shape}, used as ({shape[0]},)"
    warnings.warn(text, kind, stacklevel=2)


def warn_of_rows(text: str) -> None:
    """Rows may not belong together as they stand."""
    warnings.warn(text, UserWarning, stacklevel=4)


def warn_of_draws(text: str) -> None:
    """The draws of a fit are not enough: scikit-learn's ConvergenceWarning where that library is loaded, else a
    UserWarning, at the caller of `fit`.
    """
    exceptions = sys.modules.get("sklearn.exceptions")
    warnings.warn(text, UserWarning if exceptions is None else exceptions.ConvergenceWarning, stacklevel=4)
