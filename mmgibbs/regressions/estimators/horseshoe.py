"""Probit regression with horseshoe priors for Python."""

from __future__ import annotations

from typing import ClassVar

from mmgibbs.regressions.estimator import Classifier
from mmgibbs.regressions.horseshoe.probit import HorseshoeProbitModel


class HorseshoeProbit(Classifier):
    """Fit a probit regression with horseshoe priors.

    The model is P(y = second class) = Phi(intercept + X beta), with horseshoe priors on beta [1]_. The priors apply to
    standardised columns unless `standardise=False`; coefficients are those of the columns as given.

    Parameters
    ----------
    expansion : bool, default True
        Multiply the latent responses by a drawn factor in each sweep (Haar PX-DA).
    collapsed : bool or "auto", default "auto"
        Add a draw of all coefficients with the latent responses integrated out, which helps with rare classes and
        classes that are nearly separated. "auto" does so on the CPU if the coefficients would otherwise mix more slowly
        than tau; `options_` says what it chose.
    intercept_prior_sd : float or None, default 1000.0
        Standard deviation of the normal prior on the intercept at the means of the predictors. The default has
        practically no effect. None is a flat prior, which is refused if a plane separates the classes.
    global_scale : float, default 1.0
        Scale t of the prior of tau, half-Cauchy(0, t).
    slab_scale : float or None, default None
        Size beyond which coefficients are shrunk, the regularised horseshoe [2]_. None is the plain horseshoe. If the
        classes are separated (nearly always if n <= p), coefficients have no posterior mean without a slab.
    slab_df : float, default 4.0
        Degrees of freedom of the slab.
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
    coef_ : ndarray, shape (p,)
        Posterior means of the coefficients, on the scale of the columns as given.
    intercept_ : float
        Posterior means of the intercepts.
    classes_ : ndarray, shape (K,)
        Classes of the response, in order.
    posterior : xarray.Dataset
        Draws, with dimensions (chain, draw, ...): beta (predictor), intercept, tau, and slab if there is one.
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
    .. [1] Carvalho, C. M., Polson, N. G. & Scott, J. G. (2010). The horseshoe estimator for sparse signals.
        Biometrika 97, 465-480.
    .. [2] Piironen, J. & Vehtari, A. (2017). Sparsity information and regularization in the horseshoe and
        other shrinkage priors. Electronic Journal of Statistics 11, 5018-5051.

    Examples
    --------
    >>> import numpy as np
    >>> import mmgibbs
    >>> random = np.random.default_rng(1)
    >>> X = random.normal(size=(200, 3))
    >>> y = np.where(X @ [2.0, 0.0, -1.0] + random.normal(size=200) > 0, "ill", "well")
    >>> model = mmgibbs.HorseshoeProbit(chains=2, burn_in=100, samples=400).fit(X, y)
    >>> model.classes_.tolist()
    ['ill', 'well']
    >>> model.predict_proba(X[:5]).shape
    (5, 2)
    """

    plugin = HorseshoeProbitModel
    several_classes: ClassVar[bool] = False

    # Many parameters: options that users give by name, as in scikit-learn.
    def __init__(
        self,
        *,
        expansion: bool = True,
        collapsed: bool | str = "auto",
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
