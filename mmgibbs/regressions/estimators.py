"""Regressions called from Python, in scikit-learn's manner: `HorseshoeProbit(chains=4, seed=1).fit(X, y)`."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from mmgibbs.draws.purpose import check_key
from mmgibbs.errors import ConfigError, ModelError
from mmgibbs.machine.threads import blas_threads
from mmgibbs.posterior.summary import summary_table
from mmgibbs.regressions.hierarchical.slice import HierarchicalSliceModel
from mmgibbs.regressions.horseshoe.probit import HorseshoeProbitModel
from mmgibbs.regressions.lasso import Lasso
from mmgibbs.regressions.loop import SideBySideChains
from mmgibbs.regressions.multinomial.hmc import MultinomialHMCModel
from mmgibbs.regressions.multinomial.polya_gamma import MultinomialPGModel
from mmgibbs.regressions.options import fill_options
from mmgibbs.regressions.predictors import Frame, read_predictors
from mmgibbs.regressions.protocol import GroupPredictors, Keys, Parameter, Plugin, RegressionData

if TYPE_CHECKING:
    import xarray

    from mmgibbs.regressions.arrays.base import Arrays


def make_arrays(device: str, threads: int | None) -> Arrays:
    """Where arrays live: `cpu` or `gpu`; `auto` is the CPU, as everywhere. DeviceError says what a GPU lacks."""
    if device in ("cpu", "auto"):
        from mmgibbs.regressions.arrays.base import Host

        return Host(threads)
    if device != "gpu":
        raise ConfigError(f"device: found {device!r}, needed 'cpu', 'gpu' or 'auto'")
    from mmgibbs.regressions.arrays.gpu import Gpu

    return Gpu()


class Regression:
    """Base of the estimators. A subclass names its plugin and lists the plugin's options, with their defaults, in
    __init__.

    After `fit`: `posterior` (xarray.Dataset, dims chain, draw, ...), `coef_` and `intercept_` (posterior means, on the
    scale of the columns as given), `feature_names_in_`, `n_features_in_`, for classifiers `classes_`; `summary()`,
    `predict(X)`, for classifiers `predict_proba(X)`.
    """

    plugin: Plugin
    chains: int
    burn_in: int
    samples: int
    thin: int
    seed: int
    device: str
    threads: int | None
    standardise: bool
    progress: bool

    def _take(self, values: dict) -> None:
        """Keep the parameters of the constructor, from its `locals()`, under their names."""
        for name in self._parameter_names():
            setattr(self, name, values[name])

    @classmethod
    def _parameter_names(cls) -> list[str]:
        return [name for name in inspect.signature(cls.__init__).parameters if name != "self"]

    def get_params(self, deep: bool = True) -> dict:
        """Parameters of the constructor by name."""
        return {name: getattr(self, name) for name in self._parameter_names()}

    def set_params(self, **parameters: Any) -> Self:
        """Change parameters of the constructor. ConfigError for an unknown name."""
        known = self.get_params()
        for name, value in parameters.items():
            if name not in known:
                raise ConfigError(
                    f"{type(self).__name__}: unknown parameter '{name}', needed one of {', '.join(known)}"
                )
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self).__init__).parameters
        changed = {
            k: v for k, v in self.get_params().items() if v is not defaults[k].default and v != defaults[k].default
        }
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in changed.items())})"

    def fit(
        self,
        X: npt.ArrayLike | Frame,
        y: npt.ArrayLike | Frame,
        groups: npt.ArrayLike | None = None,
        group_predictors: GroupPredictors = None,
    ) -> Self:
        """Sample the posterior. X: (n, p) array, memory map or frame; y: (n,) or (n, K).

        DataError names row and column of what cannot be used.
        """
        for name, least in (("chains", 1), ("burn_in", 0), ("samples", 1), ("thin", 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
                raise ConfigError(f"{name}: found {value!r}, needed a whole number from {least}")
        check_key(self.seed, self.chains - 1)
        options = fill_options(
            self.plugin.Options,
            {f.name: getattr(self, f.name) for f in fields(self.plugin.Options)},
            type(self).__name__,
        )
        arrays = make_arrays(self.device, self.threads)
        predictors = read_predictors(X, standardise=self.standardise)
        name = ", ".join(map(str, y.columns)) if hasattr(y, "columns") else "y"
        data = RegressionData(
            predictors, np.asarray(y), name, None if groups is None else np.asarray(groups), group_predictors
        )
        with blas_threads(getattr(arrays, "threads", None)):
            sampler = self.plugin.prepare(data, options, arrays)
        chains = SideBySideChains(sampler, arrays, Keys(self.seed, tuple(range(self.chains))), self.burn_in, self.thin)
        self._advance(chains)
        self._predictors, self._sampler_coords, self._parameters = predictors, sampler.coords, sampler.parameters
        self._run = chains.result()
        self.classes_ = np.asarray(sampler.coords["class"]) if "class" in sampler.coords else None
        self.feature_names_in_, self.n_features_in_ = np.array(predictors.names, dtype=object), predictors.p
        means = {name: values.mean(axis=(0, 1)) for name, values in self._run.draws.items()}
        self.coef_ = means.get("beta")
        self.intercept_ = means.get("intercept")
        return self

    def _advance(self, chains: SideBySideChains) -> None:
        n_sweeps = self.burn_in + self.samples
        if not self.progress:
            chains.advance(n_sweeps)
            return
        from tqdm import tqdm

        def show(chains: SideBySideChains) -> bool:
            bar.update()
            return False

        with tqdm(total=n_sweeps, desc=f"{self.plugin.name}, {self.chains} chains", unit="sweep") as bar:
            chains.advance(n_sweeps, show)

    @property
    def posterior(self) -> xarray.Dataset:
        """The draws: xarray.Dataset with dims (chain, draw, ...)."""
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
        """parameter, mean, median, sd, mcse, ess_bulk, ess_tail, rhat, hpd_low, hpd_high:
        an array each (polars.DataFrame(...) shows it).
        """
        self._needs_fit()
        return summary_table(named_draws(self._run.draws, self._parameters, self._sampler_coords))

    def _needs_fit(self) -> None:
        if not hasattr(self, "_run"):
            raise ModelError(f"{type(self).__name__}: not fitted yet, needed fit(X, y) before this")

    def _predicted(self, X: npt.ArrayLike | Frame) -> np.ndarray:
        self._needs_fit()
        new = read_predictors(X, like=self._predictors)
        pooled = {name: values.reshape(-1, *values.shape[2:]) for name, values in self._run.draws.items()}
        return self.plugin.predict(pooled, new, None if self.classes_ is None else list(self.classes_))

    def predict(self, X: npt.ArrayLike | Frame) -> np.ndarray:
        """The posterior mean of the response, or the most probable class."""
        predicted = self._predicted(X)
        return predicted if self.classes_ is None else self.classes_[predicted.argmax(axis=1)]


class Classifier(Regression):
    """Base of the estimators whose response is a class."""

    def predict_proba(self, X: npt.ArrayLike | Frame) -> np.ndarray:
        """(n, K): posterior mean probabilities, columns as in `classes_`."""
        return self._predicted(X)

    def score(self, X: npt.ArrayLike | Frame, y: npt.ArrayLike) -> float:
        """Accuracy."""
        return float(np.mean(self.predict(X) == np.asarray(y)))


def named_draws(
    draws: Mapping[str, np.ndarray], parameters: Mapping[str, Parameter], coords: Mapping[str, Sequence]
) -> dict[str, np.ndarray]:
    """beta[name], beta[name,class], ...: (chains, draws) each, in the order of the plugin's parameters."""
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


class BayesianLasso(Regression):
    """y = intercept + X beta + e with Laplace priors on beta / sigma (Park & Casella 2008), two-block Gibbs sampler.

    penalty: lambda held fixed; None samples lambda^2 ~ Gamma(penalty_shape, rate penalty_rate). lambda belongs to
    columns of length 1, to which they are brought unless standardise=False; coefficients are those of the columns as
    given. sigma^2 ~ IG(residual_shape, residual_scale). posterior: beta (predictor), intercept, sigma2, lambda.
    """

    plugin = Lasso

    def __init__(
        self,
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
        seed: int = 1,
        device: str = "cpu",
        threads: int | None = None,
        standardise: bool = True,
        progress: bool = False,
    ) -> None:
        self._take(locals())


class HorseshoeProbit(Classifier):
    """P(y = second class) = Phi(intercept + X beta) with horseshoe priors on beta (Carvalho et al. 2010).

    The intercept is not penalised: its normal prior, of standard deviation intercept_prior_sd at the means of the
    predictors, is by default as good as none; None makes it flat, which is refused where a plane separates the classes.
    Where one does (nearly always for n <= p) coefficients have no posterior mean under the horseshoe alone: set
    slab_scale, which regularises it (Piironen & Vehtari 2017). collapsed: a further draw of all coefficients with the
    latent responses integrated out, for rare classes; None: where the rarer class has 50 rows for each coefficient.
    The priors hold for standardised columns unless standardise=False; coefficients are those of the columns as given.
    posterior: beta (predictor), intercept, tau, and slab where there is one.
    """

    plugin = HorseshoeProbitModel

    def __init__(
        self,
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
        seed: int = 1,
        device: str = "cpu",
        threads: int | None = None,
        standardise: bool = True,
        progress: bool = False,
    ) -> None:
        self._take(locals())


class MultinomialHMC(Classifier):
    """Multinomial logit by Hamiltonian Monte Carlo (Beam, Ghosh & Doyle 2016), Cauchy or normal prior; K >= 2 classes,
    the last the reference.

    y: labels (n,) or counts (n, K). scale, intercept_scale: of the priors, for standardised columns unless
    standardise=False; coefficients are those of the columns as given. adaptation: 'pooled' (step size and trajectory
    length learnt from all chains in the burn-in), 'separate' (each chain by itself) or 'none' (step_size and
    leapfrog_steps as given; the burn-in is annealed from `temperature`). mass: 'hessian', 'diagonal' or 'identity'.
    posterior: beta (predictor, contrast), intercept (contrast).
    """

    plugin = MultinomialHMCModel

    def __init__(
        self,
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
        seed: int = 1,
        device: str = "cpu",
        threads: int | None = None,
        standardise: bool = True,
        progress: bool = False,
    ) -> None:
        self._take(locals())


class HierarchicalSlice(Classifier):
    """Binary or multinomial logit, or Poisson regression, with coefficients for each group, by slice sampling (Mahani
    2012; Neal 2003).

        beta_i ~ N(Delta' z_i, V),   Delta normal,   V inverse Wishart

    family: 'logit' (labels, or counts of classes) or 'poisson'. fit(X, y, groups, group_predictors): groups (n,)
    labels; group_predictors z, (groups, q) in sorted order of the labels, or a mapping label -> values. method: 'slice'
    or, for logits, 'polya_gamma'. Predictors are standardised unless standardise=False (the priors are for that scale);
    coefficients are those of the columns as given. posterior: beta (group, predictor), intercept (group), population
    (Delta), covariance (V). Of two classes the coefficients are the log odds of the second, of more those against the
    last. predict(X, groups, group_predictors): rows of unknown groups get the population's mean Delta'z.
    """

    plugin = HierarchicalSliceModel

    def __init__(
        self,
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
        seed: int = 1,
        device: str = "cpu",
        threads: int | None = None,
        standardise: bool = True,
        progress: bool = False,
    ) -> None:
        self._take(locals())

    def predict(
        self,
        X: npt.ArrayLike | Frame,
        groups: npt.ArrayLike | None = None,
        group_predictors: npt.ArrayLike | None = None,
    ) -> np.ndarray:
        """(n,): the most probable class, or the Poisson mean; see predict_proba."""
        predicted = self._of_groups(X, groups, group_predictors)
        return predicted if self.classes_ is None else self.classes_[predicted.argmax(axis=1)]

    def predict_proba(
        self,
        X: npt.ArrayLike | Frame,
        groups: npt.ArrayLike | None = None,
        group_predictors: npt.ArrayLike | None = None,
    ) -> np.ndarray:
        """(n, K). groups: (n,) labels; a label that the fit has not seen, and every row where there are none, gets the
        population's mean.

        group_predictors: (n, q), of the rows of new groups."""
        return self._of_groups(X, groups, group_predictors)

    def _of_groups(
        self, X: npt.ArrayLike | Frame, groups: npt.ArrayLike | None, group_predictors: npt.ArrayLike | None
    ) -> np.ndarray:
        self._needs_fit()
        new = read_predictors(X, like=self._predictors)
        pooled = {name: values.reshape(-1, *values.shape[2:]) for name, values in self._run.draws.items()}
        numbers = {label: i for i, label in enumerate(self._sampler_coords["group"])}
        group = None if groups is None else [numbers.get(label, -1) for label in np.asarray(groups).tolist()]
        return self.plugin.predict(
            pooled, new, None if self.classes_ is None else list(self.classes_), group, group_predictors
        )


class MultinomialPG(Classifier):
    """Multinomial logit with normal priors by Polya-Gamma augmentation (Polson, Scott & Windle 2013); K >= 2 classes,
    the last the reference.

    y: labels (n,) or counts (n, K). prior_mean, prior_precision (1 / variance, 0 flat): a number, or a table of K - 1
    classes by p predictors, or for the precision a matrix for each class; on the scale of the standardised columns
    unless standardise=False. The same for the intercepts, flat by default. posterior: beta (predictor, contrast),
    intercept (contrast).
    """

    plugin = MultinomialPGModel

    def __init__(
        self,
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
        seed: int = 1,
        device: str = "cpu",
        threads: int | None = None,
        standardise: bool = True,
        progress: bool = False,
    ) -> None:
        self._take(locals())
