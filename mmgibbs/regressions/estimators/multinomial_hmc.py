"""The multinomial logit by Hamiltonian Monte Carlo for Python."""

from __future__ import annotations

from typing import Self

import numpy.typing as npt

from mmgibbs.regressions.containers import Frame
from mmgibbs.regressions.estimator import Classifier
from mmgibbs.regressions.multinomial.hmc import MultinomialHMCModel


class MultinomialHMC(Classifier):
    """Fit a multinomial logit with Cauchy or normal priors, by Hamiltonian Monte Carlo.

    K >= 2 classes, the last of which is the reference [1]_. The priors apply to standardised columns unless
    `standardise=False`; coefficients are those of the columns as given.

    Parameters
    ----------
    prior : {"cauchy", "normal"}, default "cauchy"
        Prior of the coefficients.
    scale : float, default 2.5
        Scale of the Cauchy prior, or standard deviation of the normal one.
    intercept : bool, default True
        Fit an intercept for each class but the last.
    intercept_scale : float, default 10.0
        Scale of the prior of the intercepts.
    adaptation : {"pooled", "separate", "none"}, default "pooled"
        "pooled" adapts step size and trajectory length to all chains during the burn-in, "separate" to each chain by
        itself. "none" keeps `step_size` and `leapfrog_steps`; the burn-in is then annealed from `temperature`.
    mass : {"hessian", "diagonal", "identity"}, default "hessian"
        Mass matrix. "hessian" is the Hessian at the frequencies of the classes, with adaptation at the running mean.
        "diagonal" is its diagonal, with adaptation the running variances.
    leapfrog_steps : int, default 100
        Leapfrog steps of a trajectory; with adaptation, the maximum.
    step_size : float or None, default None
        Leapfrog step; with adaptation, the first one.
    temperature : float, default 1000.0
        Temperature at the start of the burn-in without adaptation. 1 means no annealing.
    precision : {"double", "single"}, default "double"
        Type in which predictors are multiplied. Sums are float64.
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
    .. [1] Beam, A. L., Ghosh, S. K. & Doyle, J. (2016). Fast Hamiltonian Monte Carlo using GPU computing. Journal of
        Computational and Graphical Statistics 25, 536-548.

    Examples
    --------
    >>> import numpy as np
    >>> import mmgibbs
    >>> random = np.random.default_rng(1)
    >>> X = random.normal(size=(200, 2))
    >>> y = np.array(["low", "middle", "high"])[np.digitize(X[:, 0] + random.normal(size=200), [-1, 1])]
    >>> model = mmgibbs.MultinomialHMC(chains=2, burn_in=100, samples=200).fit(X, y)
    >>> model.classes_.tolist(), model.coef_.shape
    (['high', 'low', 'middle'], (2, 2))
    """

    plugin = MultinomialHMCModel

    # Many parameters: options that users give by name, as in scikit-learn.
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
