"""Five regressions called from Python, in scikit-learn's manner: `HorseshoeProbit(chains=4, seed=1).fit(X, y)`."""

from __future__ import annotations

import warnings
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from mmgibbs.errors import DataError, ModelError
from mmgibbs.regressions.containers import Frame, comparable_labels, label_array, python_labels, read_array
from mmgibbs.regressions.estimator import Classifier, Regression
from mmgibbs.regressions.hierarchical.grouped import read_rows
from mmgibbs.regressions.hierarchical.slice import HierarchicalSliceModel
from mmgibbs.regressions.horseshoe.probit import HorseshoeProbitModel
from mmgibbs.regressions.lasso import Lasso
from mmgibbs.regressions.multinomial.hmc import MultinomialHMCModel
from mmgibbs.regressions.multinomial.polya_gamma import MultinomialPGModel
from mmgibbs.regressions.predictors import read_predictors
from mmgibbs.regressions.protocol import GroupPredictors

__all__ = [
    "BayesianLasso",
    "Classifier",
    "HierarchicalSlice",
    "HorseshoeProbit",
    "MultinomialHMC",
    "MultinomialPG",
    "Regression",
]

ONE_GROUP = "all rows"  # the label of the one group of a fit without groups


class BayesianLasso(Regression):
    """y = intercept + X beta + e with Laplace priors on beta / sigma (Park & Casella 2008), two-block Gibbs sampler.

    penalty: a fixed lambda; None samples lambda^2 ~ Gamma(penalty_shape, rate penalty_rate).
    residual_shape, residual_scale: sigma^2 ~ IG(residual_shape, residual_scale).

    Draws in `posterior`: beta (predictor), intercept, sigma2, lambda.

    lambda applies to columns of length 1, to which they are scaled unless standardise=False; coefficients are those of
    the columns as given.
    """

    plugin = Lasso

    def __init__(
        self,
        *,
        penalty: float | None = None,
        penalty_shape: float = 1.0,
        penalty_rate: float = 1.78,
        residual_shape: float = 0.0,
        residual_scale: float = 0.0,
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

    def fit(
        self,
        X: npt.ArrayLike | Frame,
        y: npt.ArrayLike | Frame,
        sample_weight: npt.ArrayLike | None = None,
    ) -> Self:
        """Sample the posterior. X: (n, p) array, memory map or frame; y: (n,) numbers; sample_weight: (n,), from 0; a
        record of weight w counts as w equal records, and is that much more precise.

        DataError names row and column of what cannot be used.
        """
        return self._fit(X, y, sample_weight)


class HorseshoeProbit(Classifier):
    """P(y = second class) = Phi(intercept + X beta) with horseshoe priors on beta (Carvalho et al. 2010).

    The intercept is not penalised: its normal prior, of standard deviation intercept_prior_sd at the means of the
    predictors, has practically no effect by default; None makes it flat, which is refused if a plane separates the
    classes. For separated classes (nearly always if n <= p) coefficients have no posterior mean under the horseshoe
    alone: set slab_scale, which regularises it (Piironen & Vehtari 2017).

    collapsed: a further draw of all coefficients with the latent responses integrated out, for rare classes; None: if
    the rarer class has 50 rows for each coefficient.

    Draws in `posterior`: beta (predictor), intercept, tau, and slab if there is one.

    The priors apply to standardised columns unless standardise=False; coefficients are those of the columns as given.
    """

    plugin = HorseshoeProbitModel
    several_classes: ClassVar[bool] = False

    def __init__(
        self,
        *,
        expansion: bool = True,
        collapsed: bool | None = None,
        intercept_prior_sd: float | None = 1000.0,
        global_scale: float = 1.0,
        slab_scale: float | None = None,
        slab_df: float = 4.0,
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


class MultinomialHMC(Classifier):
    """Multinomial logit by Hamiltonian Monte Carlo (Beam, Ghosh & Doyle 2016), Cauchy or normal prior; K >= 2 classes,
    the last the reference.

    scale, intercept_scale: of the priors.
    adaptation: 'pooled' (step size and trajectory length adapted to all chains in the burn-in), 'separate' (each chain
    by itself) or 'none' (step_size and leapfrog_steps as given; the burn-in is annealed from `temperature`).
    mass: 'hessian', 'diagonal' or 'identity'.

    Draws in `posterior`: beta (predictor, contrast), intercept (contrast).

    The priors apply to standardised columns unless standardise=False; coefficients are those of the columns as given.
    """

    plugin = MultinomialHMCModel

    def __init__(
        self,
        *,
        prior: str = "cauchy",
        scale: float = 2.5,
        intercept: bool = True,
        intercept_scale: float = 10.0,
        adaptation: str = "pooled",
        mass: str = "hessian",
        leapfrog_steps: int = 100,
        step_size: float | None = None,
        temperature: float = 1000.0,
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

    def fit(
        self,
        X: npt.ArrayLike | Frame,
        y: npt.ArrayLike | Frame,
        sample_weight: npt.ArrayLike | None = None,
    ) -> Self:
        """Sample the posterior. X: (n, p) array, memory map or frame; y: (n,) labels or (n, K) counts;
        sample_weight: (n,) whole numbers from 0; a row of weight w counts as w equal rows.

        DataError names row and column of what cannot be used.
        """
        return self._fit(X, y, sample_weight)


class HierarchicalSlice(Classifier):
    """Binary or multinomial logit, or Poisson regression, with coefficients for each group, by slice sampling (Mahani
    2012; Neal 2003).

        beta_i ~ N(Delta' z_i, V),   Delta normal,   V inverse Wishart

    family: 'logit' (labels, or counts of classes) or 'poisson'.
    method: 'slice' or, for logits, 'polya_gamma'.

    Draws in `posterior`: beta (group, predictor), intercept (group), population (Delta), covariance (V).

    Predictors are standardised unless standardise=False (the priors are for that scale); coefficients are those of the
    columns as given. For two classes they are the log odds of the second, for more those against the last.
    """

    plugin = HierarchicalSliceModel
    family: str
    save_groups: bool

    def __init__(
        self,
        *,
        family: str = "logit",
        method: str = "slice",
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
        """As scikit-learn calls it: 'regressor' for counts, 'classifier' for classes."""
        return "regressor" if self.family == "poisson" else "classifier"

    def fit(
        self,
        X: npt.ArrayLike | Frame,
        y: npt.ArrayLike | Frame,
        groups: npt.ArrayLike | None = None,
        group_predictors: GroupPredictors = None,
    ) -> Self:
        """Sample the posterior. X: (n, p) array, memory map or frame; y: (n,) labels or counts, or (n, K) counts;
        groups: (n,) label of each row's group; without them all rows are one group, and there is a warning;
        group_predictors: z, (groups, q) in sorted order of the labels, a mapping label -> values, or a frame of pandas
        whose index has the labels.

        DataError names row and column of what cannot be used.
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
        """(n,): the most probable class, or the Poisson mean; see predict_proba."""
        predicted = self._group_arguments(X, groups, group_predictors)
        return predicted if self.classes_ is None else self.classes_[predicted.argmax(axis=1)]

    def predict_proba(
        self,
        X: npt.ArrayLike | Frame,
        groups: npt.ArrayLike | None = None,
        group_predictors: npt.ArrayLike | Frame | None = None,
    ) -> np.ndarray:
        """Posterior mean probabilities (n, K), columns as in `classes_`. groups: (n,) labels; a label that was not in
        the fit gets the population's mean Delta'z, and there is a warning; without `groups` every row gets that mean.
        After a fit without groups every row belongs to the only group, if its draws were kept (save_groups).
        group_predictors: (n, q), for the rows of new groups.

        ModelError for family 'poisson', which has no classes.
        """
        if self.family == "poisson":
            raise ModelError("HierarchicalSlice: predict_proba needs classes, found family 'poisson'; use predict")
        return self._group_arguments(X, groups, group_predictors)

    def _group_arguments(
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
    """new: labels of those of n rows whose groups were not in the fit; known: the labels that were."""
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
    """The first few. labels: as they are written in Python, where 7 is not '7'."""
    more = f" and {len(labels) - most:,} more" if len(labels) > most else ""
    return ", ".join(labels[:most]) + more


class MultinomialPG(Classifier):
    """Multinomial logit with normal priors by Polya-Gamma augmentation (Polson, Scott & Windle 2013); K >= 2 classes,
    the last the reference.

    prior_mean: a number, or a table of K - 1 classes by p predictors.
    prior_precision: 1 / variance (0: flat); a number, such a table, or a matrix for each class.
    intercept_mean, intercept_precision: the same for the intercepts; a number, or a list for K - 1 classes.

    Draws in `posterior`: beta (predictor, contrast), intercept (contrast).

    The priors apply to standardised columns unless standardise=False; coefficients are those of the columns as given.
    """

    plugin = MultinomialPGModel

    def __init__(
        self,
        *,
        prior_mean: npt.ArrayLike = 0.0,
        prior_precision: npt.ArrayLike = 0.1,
        intercept: bool = True,
        intercept_mean: npt.ArrayLike = 0.0,
        intercept_precision: npt.ArrayLike = 0.0,
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

    def fit(
        self,
        X: npt.ArrayLike | Frame,
        y: npt.ArrayLike | Frame,
        sample_weight: npt.ArrayLike | None = None,
    ) -> Self:
        """Sample the posterior. X: (n, p) array, memory map or frame; y: (n,) labels or (n, K) counts;
        sample_weight: (n,) whole numbers from 0; a row of weight w counts as w equal rows.

        DataError names row and column of what cannot be used.
        """
        return self._fit(X, y, sample_weight)
