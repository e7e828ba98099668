"""Parts that all estimators share: parameters by name, one fit, draws, summary, predictions.

They are estimators of scikit-learn (tags, clone, Pipeline, GridSearchCV, cross_val_score, pickle) without needing it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import fields
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from mmgibbs.errors import ConfigError, DataError
from mmgibbs.machine.compiling import announce_compiling, is_interactive, write_line
from mmgibbs.machine.device import explain_device_errors
from mmgibbs.posterior.summary import summary_table
from mmgibbs.regressions.arguments import check_sampling, read_seed
from mmgibbs.regressions.containers import (
    Frame,
    comparable_labels,
    find_doubtful_labels,
    find_rows_in_other_order,
    label_array,
    missing_rows,
    read_array,
    shown,
)
from mmgibbs.regressions.device_chains import make_chains
from mmgibbs.regressions.keywords import Keywords
from mmgibbs.regressions.loop import SideBySideChains, prepared_sampler
from mmgibbs.regressions.mixing import describe_doubtful_draws
from mmgibbs.regressions.numbers import read_numbers
from mmgibbs.regressions.options import fill_options, options_in_use, read_choices, words_of_choices
from mmgibbs.regressions.predictors import read_predictors, read_table
from mmgibbs.regressions.protocol import GroupPredictors, Keys, Parameter, Plugin, RegressionData
from mmgibbs.regressions.scikit_learn import make_tags, not_fitted, warn_of_a_column, warn_of_draws, warn_of_rows
from mmgibbs.regressions.weights import read_weights, weighted_classes

if TYPE_CHECKING:
    import xarray

    from mmgibbs.regressions.arrays.base import Arrays


def make_arrays(device: str, threads: int | None) -> Arrays:
    """Choose where arrays live: `cpu` or `gpu`; `auto` is the CPU, as everywhere.

    DeviceError says what a GPU lacks.
    """
    if device in ("cpu", "auto"):
        from mmgibbs.regressions.arrays.base import Host

        return Host(threads)
    if device != "gpu":
        raise ConfigError(f"device: found {device!r}, needed 'cpu', 'gpu' or 'auto'")
    from mmgibbs.regressions.arrays.gpu import Gpu

    return Gpu()


class Regression(Keywords):
    """Base of the estimators.

    A subclass names its plugin, and its __init__ lists the plugin's options as keywords with their defaults.

    Attributes
    ----------
    coef_ : ndarray
        Posterior means of the coefficients, on the scale of the columns as given.
    intercept_ : float or ndarray
        Posterior means of the intercepts.
    classes_ : ndarray or None
        Classes of the response of a classifier, in order.
    feature_names_in_ : ndarray, shape (p,)
        Names of the predictors.
    n_features_in_ : int
        Number of predictors p.
    seed_ : int
        The seed that was used.
    options_ : dict
        The options of the model as the fit used them: what was "auto" has the value that it chose.
    """

    OF_FIT = (
        "posterior", "coef_", "intercept_", "classes_", "feature_names_in_", "n_features_in_", "seed_", "options_",
    )  # fmt: skip
    plugin: Plugin
    kind: ClassVar[str] = "regressor"  # or 'classifier'
    several_classes: ClassVar[bool] = True  # of a classifier: more than two
    chains: int
    burn_in: int
    samples: int
    thin: int
    seed: int | None
    device: str
    threads: int | None
    standardise: bool
    progress: bool
    classes_: np.ndarray | None

    def __sklearn_tags__(self) -> Any:
        """Return the tags that scikit-learn asks for."""
        return make_tags(self.kind, several_classes=self.several_classes)

    def __sklearn_is_fitted__(self) -> bool:
        """Tell scikit-learn whether `fit` has run."""
        return hasattr(self, "_run")

    def fit(self, X: npt.ArrayLike | Frame, y: npt.ArrayLike | Frame) -> Self:
        """Sample the posterior.

        Parameters
        ----------
        X : array_like or data frame, shape (n, p)
            Predictors: an array, a memory map, or a frame.
        y : array_like or data frame, shape (n,)
            Numbers, or labels of two classes.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        DataError
            A value cannot be used. The message names its row and column.
        """
        return self._fit(X, y)

    def _fit(
        self,
        X: npt.ArrayLike | Frame,
        y: npt.ArrayLike | Frame,
        weights: npt.ArrayLike | None = None,
        groups: npt.ArrayLike | None = None,
        group_predictors: GroupPredictors = None,
    ) -> Self:
        check_sampling(self)
        seed = read_seed(self.seed)
        given = {f.name: getattr(self, f.name) for f in fields(self.plugin.Options)}
        options = fill_options(self.plugin.Options, given, type(self).__name__)
        self._warn_of_row_order(X, y=y, sample_weight=weights, groups=groups)
        arrays = make_arrays(self.device, None if self.threads is None else int(self.threads))
        data, classes, labels_type = self._read(X, y, weights, groups, group_predictors)
        keys = Keys(seed, tuple(range(int(self.chains))))
        announced = announce_compiling(write_line) if self.progress or is_interactive() else nullcontext()
        with announced, explain_device_errors():
            sampler = prepared_sampler(self.plugin, data, options, arrays)
            choices = read_choices(sampler)
            if self.progress:
                for line in words_of_choices(choices):
                    write_line(line)
            chains = make_chains(sampler, arrays, keys, int(self.burn_in), int(self.thin))
            self._advance(chains)
        coords = dict(sampler.coords)
        if classes is not None:
            coords |= {"class": classes, "contrast": classes[:-1]}
        self._predictors, self._sampler_coords, self._parameters = data.predictors, coords, sampler.parameters
        self._run, self.seed_ = chains.result(), seed
        self.options_ = options_in_use(options, choices)
        self.classes_ = label_array(coords["class"], labels_type) if "class" in coords else None
        self.feature_names_in_ = np.array(data.predictors.names, dtype=object)
        self.n_features_in_ = data.predictors.p
        means = {name: values.mean(axis=(0, 1)) for name, values in self._run.draws.items()}
        self.coef_ = means.get("beta")
        self.intercept_ = means.get("intercept")
        result = self._run.draws, self._parameters, self._sampler_coords
        doubtful = describe_doubtful_draws(*result, int(self.samples), int(self.burn_in))
        if doubtful:
            warn_of_draws(f"{type(self).__name__}: {doubtful}")
        return self

    def _read(
        self,
        X: npt.ArrayLike | Frame,
        y: npt.ArrayLike | Frame,
        weights: npt.ArrayLike | None,
        groups: npt.ArrayLike | None,
        group_predictors: GroupPredictors,
    ) -> tuple[RegressionData, list | None, np.dtype]:
        """Read the data as a plugin takes them.

        Returns them with the classes of a response whose records were counted by weight, and the type of the response.
        """
        name = ", ".join(map(str, y.columns)) if hasattr(y, "columns") else "y"
        standardise = bool(self.standardise)
        if weights is None:
            predictors = read_predictors(X, standardise=standardise)
            labels = None if groups is None else read_array(groups, "groups", "the label of a group")
            labels = (
                np.full(predictors.n, labels) if labels is not None and labels.ndim == 0 else labels
            )  # one label for all
            response = _response(y, name)
            self._warn_of_labels(response, labels, name)
            return RegressionData(predictors, response, name, labels, group_predictors), None, response.dtype
        values, names = read_table(X)
        n = len(values)
        response, w = _response(y, name), read_weights(weights, n)
        labels_type = response.dtype
        self._warn_of_labels(response, None, name)
        if len(response) != n:
            raise DataError(f"{name}: found {len(response)} rows, needed {n}, one for each row of predictors")
        counts = w > 0
        # A row of weight 0 may have any response; the others are read before rows go, so that errors name theirs.
        response = response[np.where(counts, np.arange(n), counts.argmax())]
        classes: list | None = None
        if self.kind == "regressor":
            response = read_numbers(response, n, name, varying=False)
        else:
            response, classes = weighted_classes(response, w, name)
        values, response, w = (a if counts.all() else a[counts] for a in (values, response, w))
        predictors = read_predictors(values, names, standardise, weights=w)
        data = RegressionData(predictors, response, name, weights=w if classes is None else None)
        return data, classes, labels_type

    def _advance(self, chains: SideBySideChains) -> None:
        n_sweeps = int(self.burn_in) + int(self.samples)
        if not self.progress:
            chains.advance(n_sweeps)
            return
        from tqdm.auto import tqdm  # a widget in a notebook

        def show(chains: SideBySideChains) -> bool:
            bar.update()
            return False

        with tqdm(total=n_sweeps, desc=f"{self.plugin.name}, {self.chains} chains", unit="sweep") as bar:
            chains.advance(n_sweeps, show)

    @property
    def posterior(self) -> xarray.Dataset:
        """Draws, as an xarray.Dataset with dimensions (chain, draw, ...)."""
        import xarray

        self._needs_fit()
        shape = next(iter(self._run.draws.values())).shape
        coords: dict[str, Any] = {"chain": np.arange(shape[0]), "draw": np.arange(shape[1])}
        used = {d for p in self._parameters.values() for d in p.dims}
        coords |= {d: list(labels) for d, labels in self._sampler_coords.items() if d in used}
        variables = {
            name: (("chain", "draw", *self._parameters[name].dims), values) for name, values in self._run.draws.items()
        }
        return xarray.Dataset(variables, coords=coords)

    def summary(self) -> dict[str, np.ndarray]:
        """Summarise the draws of every parameter.

        Returns
        -------
        dict of ndarray
            Columns parameter, mean, median, sd, mcse, ess_bulk, ess_tail, rhat, hpd_low and hpd_high.
            `polars.DataFrame(...)` shows them as a table.
        """
        self._needs_fit()
        return summary_table(named_draws(self._run.draws, self._parameters, self._sampler_coords))

    def _repr_html_(self) -> str:
        from mmgibbs.regressions.notebook import MAX_ROWS, as_html

        if not hasattr(self, "_run"):
            return as_html(repr(self), None)
        named = named_draws(self._run.draws, self._parameters, self._sampler_coords)
        first = dict(islice(named.items(), MAX_ROWS))
        return as_html(repr(self), summary_table(first), len(named))

    def _warn_of_row_order(self, X: object, **beside: object) -> None:
        """Warn where an index of pandas says that rows belong together in another way than by position."""
        for name in find_rows_in_other_order(X, **beside):
            warn_of_rows(
                f"{type(self).__name__}: the index of {name} has the labels of X in another order; rows are taken in "
                f"the order in which they stand, whatever their labels; {name}.loc[X.index] has them in the order of X"
            )

    def _warn_of_labels(self, response: np.ndarray, groups: np.ndarray | None, name: str) -> None:
        """Warn of codes for missing values among labels, and of labels that differ in their spelling only."""
        of_labels = {} if self.kind == "regressor" else {name: response}
        if groups is not None:
            of_labels["groups"] = groups
        for argument, values in of_labels.items():
            for what in find_doubtful_labels(values):
                warn_of_rows(f"{type(self).__name__}: {argument}: {what}")

    def _needs_fit(self) -> None:
        if not hasattr(self, "_run"):
            raise not_fitted(f"{type(self).__name__}: not fitted yet, needed fit(X, y) before this")

    def _predicted(self, X: npt.ArrayLike | Frame) -> np.ndarray:
        self._needs_fit()
        new = read_predictors(X, like=self._predictors)
        pooled = {name: values.reshape(-1, *values.shape[2:]) for name, values in self._run.draws.items()}
        return self.plugin.predict(pooled, new, None if self.classes_ is None else list(self.classes_))

    def predict(self, X: npt.ArrayLike | Frame) -> np.ndarray:
        """Predict the posterior mean of the response, or the most probable class.

        Parameters
        ----------
        X : array_like or data frame, shape (n, p)
            Predictors: an array, a memory map, or a frame.

        Returns
        -------
        ndarray, shape (n,)
            Expected responses, or classes.
        """
        predicted = self._predicted(X)
        return predicted if self.classes_ is None else self.classes_[predicted.argmax(axis=1)]

    def score(self, X: npt.ArrayLike | Frame, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None) -> float:
        """Score predictions: the share of variance explained, or the accuracy of a classifier.

        The share of the variance of y that the predictions f explain is 1 - sum (y - f)^2 / sum (y - mean)^2.

        Parameters
        ----------
        X : array_like or data frame, shape (n, p)
            Predictors: an array, a memory map, or a frame.
        y : array_like, shape (n,)
            Observed responses.
        sample_weight : array_like, shape (n,), default None
            Weights of the rows.

        Returns
        -------
        float
            The score; NaN if the observed responses do not vary.
        """
        self._warn_of_row_order(X, y=y, sample_weight=sample_weight)
        predicted, observed = self.predict(X), read_array(y, "y")
        observed = observed.reshape(len(observed)) if observed.ndim == 2 and observed.shape[1] == 1 else observed
        if observed.shape != predicted.shape:
            raise DataError(f"y: found an array of shape {observed.shape}, needed {predicted.shape}, one for each row")
        w = np.ones(len(predicted)) if sample_weight is None else read_weights(sample_weight, len(predicted))
        if self.classes_ is not None:
            return float(np.average(_are_equal_labels(predicted, observed), weights=w))
        observed = read_numbers(observed, len(predicted), "y", varying=False)
        residual_sum = w @ (observed - predicted) ** 2
        total = w @ (observed - np.average(observed, weights=w)) ** 2
        return float(1 - residual_sum / total) if total > 0 else float("nan")


class Classifier(Regression):
    """Base of the estimators whose response is a class."""

    kind: ClassVar[str] = "classifier"

    def predict_proba(self, X: npt.ArrayLike | Frame) -> np.ndarray:
        """Predict posterior mean probabilities.

        Parameters
        ----------
        X : array_like or data frame, shape (n, p)
            Predictors: an array, a memory map, or a frame.

        Returns
        -------
        ndarray, shape (n, K)
            Probabilities, with columns as in `classes_`.
        """
        return self._predicted(X)


def named_draws(
    draws: Mapping[str, np.ndarray], parameters: Mapping[str, Parameter], coords: Mapping[str, Sequence]
) -> dict[str, np.ndarray]:
    """Name every draw, beta[name], beta[name,class], ...: (chains, draws) each, ordered as the plugin's parameters."""
    out = {}
    for name, parameter in parameters.items():
        values = draws[name]
        if not parameter.dims:
            out[name] = values
            continue
        for index in np.ndindex(*values.shape[2:]):
            label = ",".join(str(coords[d][i]) for d, i in zip(parameter.dims, index, strict=True))
            out[f"{name}[{label}]"] = values[(slice(None), slice(None), *index)]
    return out


def _response(y: npt.ArrayLike | Frame, name: str) -> np.ndarray:
    """Read y as (n,) or, of counts, (n, K). DataError for what is no array."""
    if y is None:
        raise DataError("y: found nothing; fit requires y to be passed, but the target y is None")
    response = read_array(y, name)
    if response.ndim == 0:
        raise DataError(f"{name}: found a single value, needed one for each row: y should be a 1d array")
    if response.ndim == 2 and response.shape[1] == 1:
        warn_of_a_column(response.shape)
        return response[:, 0]
    return response


def _are_equal_labels(predicted: np.ndarray, observed: np.ndarray) -> np.ndarray:
    """Compare labels, (n,) bool. DataError for an observed label that is missing."""
    missing = missing_rows(observed)
    if missing.any():
        i = int(missing.argmax())
        raise DataError(f"y row {i + 1}: found {shown(observed[i])}, needed a class label")
    if predicted.dtype.kind in "OMm" or observed.dtype.kind in "OMm":
        pairs = zip(comparable_labels(predicted), comparable_labels(observed), strict=True)
        return np.array([a == b for a, b in pairs], bool)
    return predicted == observed
