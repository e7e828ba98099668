"""The Bayesian lasso for Python."""

from __future__ import annotations

from typing import Self

import numpy.typing as npt

from mmgibbs.regressions.containers import Frame
from mmgibbs.regressions.estimator import Regression
from mmgibbs.regressions.lasso import Lasso


class BayesianLasso(Regression):
    """Fit a linear regression with Laplace priors, the Bayesian lasso.

    The model is y = intercept + X beta + e, with Laplace priors on beta / sigma [1]_, sampled by a two-block Gibbs
    sampler. The penalty lambda applies to columns of length 1. Predictors are scaled to this length unless
    `standardise=False`; coefficients are those of the columns as given.

    Parameters
    ----------
    penalty : float or None, default None
        A fixed lambda, above 0. None samples lambda^2 from its posterior.
    penalty_shape : float, default 1.0
        Shape r of the prior of lambda^2, Gamma(r, rate delta).
    penalty_rate : float, default 1.78
        Rate delta of that prior.
    residual_shape : float, default 0.0
        Shape a of the prior of sigma^2, inverse gamma(a, b).
    residual_scale : float, default 0.0
        Scale b of that prior.
    precision : {"double", "single"}, default "double"
        Type in which predictors are multiplied if there are fewer rows than predictors. Sums and draws are float64.
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
        Centre the predictors and scale them to length 1.
    progress : bool, default False
        Show a progress bar, and say when kernels are compiled.

    Attributes
    ----------
    coef_ : ndarray, shape (p,)
        Posterior means of the coefficients, on the scale of the columns as given.
    intercept_ : float
        Posterior means of the intercepts.
    posterior : xarray.Dataset
        Draws, with dimensions (chain, draw, ...): beta (predictor), intercept, sigma2, lambda.
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
    .. [1] Park, T. & Casella, G. (2008). The Bayesian lasso. Journal of the American Statistical Association
        103, 681-686.

    Examples
    --------
    >>> import numpy as np
    >>> import mmgibbs
    >>> random = np.random.default_rng(1)
    >>> X = random.normal(size=(200, 3))
    >>> y = X @ [2.0, 0.0, -1.0] + random.normal(size=200)
    >>> model = mmgibbs.BayesianLasso(chains=2, burn_in=100, samples=400).fit(X, y)
    >>> bool(abs(model.coef_ - [2.0, 0.0, -1.0]).max() < 0.3)
    True
    """

    plugin = Lasso

    # Many parameters: options that users give by name, as in scikit-learn.
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
        """Sample the posterior.

        Parameters
        ----------
        X : array_like or data frame, shape (n, p)
            Predictors: an array, a memory map, or a frame.
        y : array_like or data frame, shape (n,)
            The response, finite numbers.
        sample_weight : array_like, shape (n,), default None
            Weights of at least 0. A record of weight w counts as w equal records, so it is that much more precise.

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
