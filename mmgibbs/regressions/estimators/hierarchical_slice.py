"""The hierarchical logit and Poisson models for Python."""

from __future__ import annotations

import warnings
from typing import Self

import numpy as np
import numpy.typing as npt

from mmgibbs.errors import DataError, ModelError
from mmgibbs.regressions.containers import Frame, comparable_labels, label_array, python_labels, read_array
from mmgibbs.regressions.estimator import Classifier
from mmgibbs.regressions.hierarchical.grouped import read_rows
from mmgibbs.regressions.hierarchical.slice import HierarchicalSliceModel
from mmgibbs.regressions.predictors import read_predictors
from mmgibbs.regressions.protocol import GroupPredictors

ONE_GROUP = "all rows"  # the label of the one group of a fit without groups


class HierarchicalSlice(Classifier):
    """Fit a logit or Poisson regression with coefficients for each group.

    The coefficients of group i with predictors z_i are beta_i ~ N(Delta' z_i, V), with a normal prior on Delta and an
    inverse Wishart prior on V [1]_. Of two classes, coefficients are the log odds of the second; of more, those
    against the last. The priors apply to standardised columns unless `standardise=False`; coefficients are those of the
    columns as given.

    Parameters
    ----------
    family : {"logit", "poisson"}, default "logit"
        "logit" for labels, or counts of two or more classes; "poisson" for counts.
    method : {"auto", "slice", "polya_gamma"}, default "auto"
        How the coefficients of a group are drawn: by slice sampling [2]_, or given Polya-Gamma variables [3]_, which is
        for logits only. "auto" takes "polya_gamma" for logits and "slice" for counts; `options_` says which.
    population_sd : float, default 10.0
        Prior standard deviation of the population's coefficients Delta.
    covariance_df : float or None, default None
        Degrees of freedom of the prior of V. None takes the number of coefficients of a group plus 3.
    covariance_mean : float, default 1.0
        The prior mean of V is this number times the identity.
    width : float, default 2.5
        First bracket of a slice, roughly in standard deviations of its coordinate.
    most_steps : int, default 8
        Brackets grow to at most `most_steps` widths.
    save_groups : bool, default True
        Keep the draws of every group's coefficients, not only those of the population.
    precision : {"double", "single"}, default "double"
        Type in which predictors are kept. Sums are float64.
    chains : int, default 4
        Number of chains, which run side by side.
    burn_in : int, default 1000
        Sweeps of each chain that are dropped at its start.
    samples : int, default 1000
        Sweeps of each chain after the burn-in.
    thin : int, default 1
        Keep one sweep in `thin`.
    seed : int or None, default 1
        Seed of the random numbers. None draws a new one, kept as `seed_`.
    device : {"cpu", "gpu", "auto"}, default "cpu"
        Device of the arrays. "auto" is the CPU.
    threads : int or None, default None
        Threads of the linear algebra. None takes every core.
    standardise : bool, default True
        Centre the predictors and scale them to a standard deviation of 1.
    progress : bool, default False
        Show a progress bar, and say when kernels are compiled.

    Attributes
    ----------
    coef_ : ndarray, shape (groups, p) or (groups, p, K - 1)
        Posterior means of the coefficients, on the scale of the columns as given.
    intercept_ : ndarray, shape (groups,) or (groups, K - 1)
        Posterior means of the intercepts.
    classes_ : ndarray, shape (K,)
        Classes of the response, in order.
    posterior : xarray.Dataset
        Draws, with dimensions (chain, draw, ...): beta (group, predictor), intercept (group), population (Delta),
        covariance (V).
    feature_names_in_ : ndarray, shape (p,)
        Names of the predictors.
    n_features_in_ : int
        Number of predictors p.
    seed_ : int
        The seed that was used.
    options_ : dict
        The options of the model as the fit used them: what was "auto" has the value that it chose.

    References
    ----------
    .. [1] Mahani (2012).
    .. [2] Neal, R. M. (2003). Slice sampling. The Annals of Statistics 31, 705-767.
    .. [3] Polson, N. G., Scott, J. G. & Windle, J. (2013). Bayesian inference for logistic models using Polya-Gamma
        latent variables. Journal of the American Statistical Association 108, 1339-1349.

    Examples
    --------
    >>> import numpy as np
    >>> import mmgibbs
    >>> random = np.random.default_rng(1)
    >>> herds = np.repeat(["A", "B", "C"], 40)
    >>> X = random.normal(size=(120, 1))
    >>> y = random.poisson(np.exp(0.5 * X[:, 0]))
    >>> model = mmgibbs.HierarchicalSlice(family="poisson", chains=2, burn_in=100, samples=200).fit(X, y, groups=herds)
    >>> model.predict(X[:3], groups=herds[:3]).shape
    (3,)
    """

    plugin = HierarchicalSliceModel
    family: str
    save_groups: bool

    # Many parameters: options that users give by name, as in scikit-learn.
    def __init__(
        self,
        *,
        family: str = "logit",
        method: str = "auto",
        population_sd: float = 10.0,
        covariance_df: float | None = None,
        covariance_mean: float = 1.0,
        width: float = 2.5,
        most_steps: int = 8,
        save_groups: bool = True,
        precision: str = "double",
        chains: int = 4,
        burn_in: int = 1000,
        samples: int = 1000,
        thin: int = 1,
        seed: int | None = 1,
        device: str = "cpu",
        threads: int | None = None,
        standardise: bool = True,
        progress: bool = False,
    ) -> None:
        self._take(locals())

    @property
    def kind(self) -> str:  # type: ignore[override]
        """Kind of estimator in scikit-learn: 'regressor' for counts, 'classifier' for classes."""
        return "regressor" if self.family == "poisson" else "classifier"

    def fit(
        self,
        X: npt.ArrayLike | Frame,
        y: npt.ArrayLike | Frame,
        groups: npt.ArrayLike | None = None,
        group_predictors: GroupPredictors = None,
    ) -> Self:
        """Sample the posterior.

        Parameters
        ----------
        X : array_like or data frame, shape (n, p)
            Predictors: an array, a memory map, or a frame.
        y : array_like or data frame, shape (n,) or (n, K)
            Labels or counts, or the counts of each class.
        groups : array_like, shape (n,), default None
            Label of each row's group. Without it all rows form one group, and there is a warning.
        group_predictors : array_like, mapping or data frame, shape (groups, q), default None
            Predictors z of the groups: an array in sorted order of the labels, a mapping from labels to values, or a
            frame of pandas whose index has the labels.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        DataError
            A value cannot be used. The message names its row and column.
        """
        one_group = groups is None
        if one_group:
            warnings.warn("HierarchicalSlice: fit without groups: all rows are taken as one group", stacklevel=2)
        self._fit(X, y, groups=ONE_GROUP if one_group else groups, group_predictors=group_predictors)
        self._one_group = one_group
        return self

    def predict(
        self,
        X: npt.ArrayLike | Frame,
        groups: npt.ArrayLike | None = None,
        group_predictors: npt.ArrayLike | Frame | None = None,
    ) -> np.ndarray:
        """Predict the most probable class, or the Poisson mean.

        Parameters
        ----------
        X : array_like or data frame, shape (n, p)
            Predictors: an array, a memory map, or a frame.
        groups : array_like, shape (n,), default None
            Labels of the groups; see `predict_proba`.
        group_predictors : array_like or data frame, shape (n, q), default None
            Predictors of the groups of rows whose group was not in the fit.

        Returns
        -------
        ndarray, shape (n,)
            Classes, or expected counts.
        """
        predicted = self._predict_groups(X, groups, group_predictors)
        return predicted if self.classes_ is None else self.classes_[predicted.argmax(axis=1)]

    def predict_proba(
        self,
        X: npt.ArrayLike | Frame,
        groups: npt.ArrayLike | None = None,
        group_predictors: npt.ArrayLike | Frame | None = None,
    ) -> np.ndarray:
        """Predict posterior mean probabilities.

        Parameters
        ----------
        X : array_like or data frame, shape (n, p)
            Predictors: an array, a memory map, or a frame.
        groups : array_like, shape (n,), default None
            Labels of the groups. A label that was not in the fit is predicted with the population's mean Delta' z, and
            there is a warning. Without `groups` every row is predicted so; after a fit without groups, every row
            belongs to the only group if its draws were kept (`save_groups`).
        group_predictors : array_like or data frame, shape (n, q), default None
            Predictors of the groups of rows whose group was not in the fit.

        Returns
        -------
        ndarray, shape (n, K)
            Probabilities, with columns as in `classes_`.

        Raises
        ------
        ModelError
            The family is "poisson", which has no classes.
        """
        if self.family == "poisson":
            raise ModelError("HierarchicalSlice: predict_proba needs classes, found family 'poisson'; use predict")
        return self._predict_groups(X, groups, group_predictors)

    def _predict_groups(
        self, X: npt.ArrayLike | Frame, groups: npt.ArrayLike | None, group_predictors: npt.ArrayLike | Frame | None
    ) -> np.ndarray:
        self._needs_fit()
        new = read_predictors(X, like=self._predictors)
        pooled = {name: values.reshape(-1, *values.shape[2:]) for name, values in self._run.draws.items()}
        classes = None if self.classes_ is None else list(self.classes_)
        if group_predictors is not None:
            group_predictors = read_rows(group_predictors, new.n, self._sampler_coords["group_predictor"][1:])
        return self.plugin.predict(pooled, new, classes, self._group_numbers(groups, new.n), group_predictors)

    def _group_numbers(self, groups: npt.ArrayLike | None, n: int) -> list[int] | None:
        """Numbers of the groups of n rows among those of the fit, -1 for others; None: the population."""
        if groups is None:
            return [0] * n if self._one_group and self.save_groups else None
        known = self._sampler_coords["group"]
        numbers = {label: i for i, label in enumerate(comparable_labels(label_array(known)))}
        labels = read_array(groups, "groups", "the label of a group")
        if labels.shape != (n,):
            raise DataError(f"groups: found an array of shape {labels.shape}, needed ({n},), a label for each row")
        of_rows = [numbers.get(label, -1) for label in comparable_labels(labels)]
        new = [label for label, number in zip(python_labels(labels), of_rows, strict=True) if number < 0]
        if new:
            _warn_of_new_groups(new, n, known)
        return of_rows


def _warn_of_new_groups(new: list, n: int, known: list) -> None:
    """Warn of groups that were not in the fit. new: their labels, of n rows; known: the labels that were."""
    labels = list(dict.fromkeys(map(repr, new)))  # each NaN is another object
    rows, are = ("1 row has", "is") if len(new) == 1 else (f"{len(new):,} of {n:,} rows have", "are")
    text = (
        f"HierarchicalSlice: groups: {rows} a group that was not in the fit ({_some(labels)}), and {are} predicted "
        "with the population's coefficients"
    )
    if len(new) == n:
        text += f"; labels of the fit are {_some([repr(label) for label in known])}"
    warnings.warn(text, stacklevel=5)


def _some(labels: list[str], most: int = 3) -> str:
    """Join the first few labels, as they are written in Python, where 7 is not '7'."""
    more = f" and {len(labels) - most:,} more" if len(labels) > most else ""
    return ", ".join(labels[:most]) + more
