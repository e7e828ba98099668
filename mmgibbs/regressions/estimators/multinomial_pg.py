"""The multinomial logit by Polya-Gamma variables for Python."""

from __future__ import annotations

from typing import Self

import numpy.typing as npt

from mmgibbs.regressions.containers import Frame
from mmgibbs.regressions.estimator import Classifier
from mmgibbs.regressions.multinomial.polya_gamma import MultinomialPGModel


class MultinomialPG(Classifier):
    """Fit a multinomial logit with normal priors, by Polya-Gamma augmentation.

    K >= 2 classes, the last of which is the reference [1]_. The priors apply to standardised columns unless
    `standardise=False`; coefficients are those of the columns as given.

    Parameters
    ----------
    prior_mean : float or array_like, default 0.0
        Prior mean of all coefficients, or a table of K - 1 classes by p predictors.
    prior_precision : float or array_like, default 0.1
        1 / variance of all coefficients, such a table, or an array (K - 1, p, p) with a matrix for each class. 0 is
        flat.
    intercept : bool, default True
        Fit an intercept for each class but the last.
    intercept_mean : float or array_like, default 0.0
        Prior mean of the intercepts, or a list for K - 1 classes.
    intercept_precision : float or array_like, default 0.0
        1 / variance of the intercepts, or such a list. 0 is flat.
    precision : {"double", "single"}, default "double"
        Type in which predictors are multiplied. Sums and draws are float64.
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
    coef_ : ndarray, shape (p, K - 1)
        Posterior means of the coefficients, on the scale of the columns as given.
    intercept_ : ndarray, shape (K - 1,)
        Posterior means of the intercepts.
    classes_ : ndarray, shape (K,)
        Classes of the response, in order.
    posterior : xarray.Dataset
        Draws, with dimensions (chain, draw, ...): beta (predictor, contrast), intercept (contrast).
    feature_names_in_ : ndarray, shape (p,)
        Names of the predictors.
    n_features_in_ : int
        Number of predictors p.
    seed_ : int
        The seed that was used.
    options_ : dict
        The options of the model as the fit used them.

    References
    ----------
    .. [1] Polson, N. G., Scott, J. G. & Windle, J. (2013). Bayesian inference for logistic models using Polya-Gamma
        latent variables. Journal of the American Statistical Association 108, 1339-1349.

    Examples
    --------
    >>> import numpy as np
    >>> import mmgibbs
    >>> random = np.random.default_rng(1)
    >>> X = random.normal(size=(200, 2))
    >>> y = np.digitize(X[:, 0] + random.normal(size=200), [-1, 1])
    >>> model = mmgibbs.MultinomialPG(chains=2, burn_in=100, samples=200).fit(X, y)
    >>> model.predict(X[:5]).shape
    (5,)
    """

    plugin = MultinomialPGModel

    # Many parameters: options that users give by name, as in scikit-learn.
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
        """Sample the posterior.

        Parameters
        ----------
        X : array_like or data frame, shape (n, p)
            Predictors: an array, a memory map, or a frame.
        y : array_like or data frame, shape (n,) or (n, K)
            Labels of the classes, or the counts of each class.
        sample_weight : array_like, shape (n,), default None
            Whole numbers of at least 0. A row of weight w counts as w equal rows.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        DataError
            A value cannot be used. The message names its row and column.
        """
        return self._fit(X, y, sample_weight)
