"""Horseshoe probit regression (Albert & Chib 1993; Carvalho et al. 2010; Makalic & Schmidt 2016; Terenin et al. 2018).

    P(y_i = 1) = Phi(a + x_i beta),   a flat or N(0, sd^2),   beta_j ~ N(0, 1/d_j),   d of a horseshoe (prior.py)

One sweep, with W = [X 1]:

    [a, beta | d, y   with z integrated out, where `collapsed`]                     ellipse.py, choice.py
    z_i ~ TN(a + x_i beta, 1; > 0 if y_i = 1, < 0 if not)                           rows.py
    g^2 ~ Gamma(n/2, rate z'(I - W Sigma W')z / 2),  z <- g z                       Haar PX-DA, where `expansion`
    a, beta ~ N(Sigma W'z, Sigma),  Sigma^-1 = W'W + diag(d)                        coefficients.py
    lambda, nu, tau, xi (and c of the regularised horseshoe) given beta             prior.py

Under a flat prior on a there is no posterior where a plane separates the classes and E|beta_j| is infinite (no slab c):
along separating directions the integral of the likelihood over a grows like |beta|. So a is given a normal prior by
default, so wide that it does not count; flat is refused where such a plane is found. Separated classes leave the tails
of beta to its prior in any case, so that without a slab there is a posterior but E(beta_j | y) does not exist.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from mmgibbs.draws.purpose import REGRESSION_RESCALE, REGRESSION_START, stream
from mmgibbs.errors import ConfigError, DataError
from mmgibbs.machine.memory import refuse_beyond_free
from mmgibbs.machine.threads import blas_threads
from mmgibbs.regressions.arrays.base import Arrays, Host
from mmgibbs.regressions.classes import read_classes
from mmgibbs.regressions.description import (
    Columns,
    Description,
    label,
    predictors_counted,
    predictors_words,
    probability,
)
from mmgibbs.regressions.horseshoe.choice import choose_collapsed
from mmgibbs.regressions.horseshoe.coefficients import SMALLEST_MISFIT, CoefficientsByGram, CoefficientsByRowGram
from mmgibbs.regressions.horseshoe.device import HorseshoeChains
from mmgibbs.regressions.horseshoe.ellipse import Ellipse, expansion, probit_fit, separated
from mmgibbs.regressions.horseshoe.prior import Horseshoe, RegularisedHorseshoe
from mmgibbs.regressions.horseshoe.rows import GRAM_PIECES, ProbitRows
from mmgibbs.regressions.options import AUTO, Choice, option
from mmgibbs.regressions.predictors import ROW_BLOCK_BYTES, Predictors
from mmgibbs.regressions.protocol import Array, Keys, Parameter, RegressionData, State


@dataclass(frozen=True)
class HorseshoeProbitOptions:
    expansion: bool = option(True, "multiply z by a drawn factor in each sweep (Haar PX-DA)")
    collapsed: bool | Literal["auto"] | None = option(
        AUTO,
        "a further draw of all coefficients with z integrated out; auto: where the coefficients would else mix more "
        "slowly than tau, on the CPU",
    )
    intercept_prior_sd: float | None = option(
        1000.0,
        "standard deviation of the normal prior on the intercept; the default is almost flat; null: flat",
        above=0,
    )
    global_scale: float = option(1.0, "t of the prior of tau, half-Cauchy(0, t)", above=0)
    slab_scale: float | None = option(
        None,
        "s of the regularised horseshoe, the size beyond which coefficients are shrunk; absent: plain horseshoe",
        above=0,
    )
    slab_df: float = option(4.0, "k, degrees of freedom of the slab", above=0)
    precision: Literal["double", "single"] = option(
        "double", "type in which predictors are multiplied; sums and draws are float64"
    )


class HorseshoeProbitModel:
    """Plugin for two classes and sparse coefficients."""

    name = "horseshoe_probit"
    standardise = True
    Options = HorseshoeProbitOptions

    @staticmethod
    def prepare(data: RegressionData, options: HorseshoeProbitOptions, arrays: Arrays) -> HorseshoeProbitSampler:
        """DataError for labels that are missing, not of two classes, or separated completely where the prior needs
        overlap.
        """
        X = data.predictors
        codes, classes = read_classes(data.response, data.response_name)
        if codes.shape != (X.n,):
            got = f"an array of shape {np.shape(data.response)}"
            raise DataError(
                f"{data.response_name}: found {got}, needed one label for each of the {X.n} rows of predictors"
            )
        if len(classes) > 2:
            raise DataError(
                f"{data.response_name}: found {len(classes)} classes, {', '.join(map(repr, classes[:5]))}, needed two. "
                "Only binary classification is supported."
            )
        return HorseshoeProbitSampler(X, codes == 1, classes, options, arrays, data.response_name)

    @staticmethod
    def predict(draws: Mapping[str, np.ndarray], predictors: Predictors, classes: list | None) -> np.ndarray:
        """(n, 2): posterior means of 1 - Phi(a + x beta) and Phi(a + x beta)."""
        beta, intercept = draws["beta"], draws["intercept"]
        out = np.empty((predictors.n, 2))
        step = max(1, ROW_BLOCK_BYTES // (8 * max(len(beta), predictors.p)))
        for first in range(0, predictors.n, step):
            eta = predictors.values[first : first + step].astype(np.float64) @ beta.T + intercept
            out[first : first + step] = np.stack([ndtr(-eta).mean(1), ndtr(eta).mean(1)], 1)
        return out


class HorseshoeProbitSampler:
    """State, of the standardised columns: beta (C, p), intercept (C,), the scales (prior.py) and tries, of
    angles (C,).
    """

    def __init__(
        self,
        X: Predictors,
        positive: np.ndarray,
        classes: list,
        options: HorseshoeProbitOptions,
        arrays: Arrays,
        name: str = "response",
    ):
        self.X, self.options, self.n, self.p = X, options, X.n, X.p
        self.share, self.arrays = positive.mean(), arrays
        with blas_threads(1):  # the rows are shared out over threads here, so that their number changes no bit
            self._read(positive, np.float32 if options.precision == "single" else np.float64, name)
        if options.slab_scale is None:
            self.prior = Horseshoe(X.p, options.global_scale, self.arrays)
        else:
            scales = options.global_scale, options.slab_scale, options.slab_df
            self.prior = RegularisedHorseshoe(X.p, *scales, self.arrays)
        self.parameters = {
            "beta": Parameter(("predictor",), "coefficients"),
            "intercept": Parameter(),
            "tau": Parameter(help="global scale of the coefficients"),
        }
        if options.slab_scale is not None:
            self.parameters["slab"] = Parameter(help="c, the size beyond which coefficients are shrunk")
        self.coords = {"predictor": list(X.names), "class": list(classes)}

    def _read(self, positive: np.ndarray, real: npt.DTypeLike, name: str) -> None:
        """Prepare the data: cross-products, and the expansion where there is a collapsed draw."""
        X, o = self.X, self.options
        if self.p <= self.n:
            what = f"cross-products of {self.p:,} predictors"
            refuse_beyond_free(8 * (GRAM_PIECES + 1) * (self.p + 1) ** 2, what, "fewer predictors")
        host = self.arrays if self.arrays.device == "cpu" else Host()
        if o.intercept_prior_sd is None and o.slab_scale is None and separated(X, positive, host, real):
            raise DataError(
                f"{name}: found two classes that the predictors separate completely, so that there is no posterior "
                "under a flat prior on the intercept and a horseshoe without slab; needed intercept_prior_sd or "
                "slab_scale, or classes that overlap"
            )
        on_host = ProbitRows(X, positive, host, real)
        self.gram = on_host.gram() if self.p <= self.n else np.empty((0, 0))
        is_collapsed = self._choose_collapsed(on_host)
        self.has_kernels = self.p <= self.n and not is_collapsed  # otherwise a GPU runs array operations
        if self.has_kernels and not isinstance(self.arrays, Host):
            self.arrays = Host()
        arrays = self.arrays
        self.rows = ProbitRows(X, positive, arrays, real)
        self.coefficients = (
            CoefficientsByGram(self.gram, arrays) if self.p <= self.n else CoefficientsByRowGram(self.rows, arrays)
        )
        self.ellipse = None
        if is_collapsed:
            b = probit_fit(on_host).b
            self.ellipse = Ellipse(self.rows, b, *expansion(on_host, b), arrays)

    def _choose_collapsed(self, rows: ProbitRows) -> bool:
        """Is there a further draw with z integrated out? What is chosen goes into `choices`."""
        o, self.choices = self.options, dict[str, Choice]()
        if o.collapsed is True and self.p > self.n:
            raise ConfigError(
                f"collapsed: found true with {self.p:,} predictors of {self.n:,} records, needed auto or false: there "
                "is no such draw with more predictors than records"
            )
        if o.collapsed not in (AUTO, None):
            return bool(o.collapsed)
        if self.p > self.n:
            choice = Choice(False, "more predictors than records, for which there is none")
        elif not isinstance(self.arrays, Host):
            choice = Choice(False, "the kernels of a GPU have none")
        else:
            slab = 0.0 if o.slab_scale is None else o.slab_scale**-2
            choice = choose_collapsed(rows, self.gram, slab, self._intercept_precision, o.expansion)
        self.choices["collapsed"] = choice
        return choice.value

    @property
    def _intercept_precision(self) -> float:
        sd = self.options.intercept_prior_sd
        return 0.0 if sd is None else sd**-2

    def plan_device_chains(self, keys: Keys, burn_in: int, thin: int) -> HorseshoeChains:
        """Plan the same chains on a GPU, see protocol.DeviceSampler."""
        return HorseshoeChains(self, keys, burn_in, thin)

    def adapt_until(self, burn_in: int) -> None:
        """Nothing adapts."""

    def start(self, keys: Keys) -> State:
        """Coefficients 0; intercept and scales drawn around those of a sample without predictors.

        DeviceError where the Cholesky factors of all chains, or the linear predictors of the collapsed draw, do not
        fit.
        """
        if self.arrays.device == "cpu":
            needed = min(self.n, self.p + 1) ** 2 + (0 if self.ellipse is None else 3 * self.n)
            what = f"a sweep of {len(keys)} chains with {self.n:,} rows and {self.p:,} predictors"
            refuse_beyond_free(8 * len(keys) * needed, what, "fewer chains or predictors")
        xp = self.arrays.xp
        return self.prior.start(keys) | {
            "beta": xp.zeros((len(keys), self.p)),
            "intercept": ndtri(self.share) + 0.3 * self.arrays.normals(keys, 0, stream(REGRESSION_START, 0), 1)[:, 0],
            "tries": xp.zeros(len(keys)),
        }

    def step(self, state: State, sweep: int, keys: Keys) -> State:
        with blas_threads(1):
            return self._sweep(state, sweep, keys)

    def _sweep(self, state: State, sweep: int, keys: Keys) -> State:
        precision, tries = self.prior_precision(state), state["tries"]
        beta, intercept = state["beta"], state["intercept"]
        if self.ellipse is not None:
            beta, intercept, tries = self.ellipse.draw(beta, intercept, precision, keys, sweep)
        latent = self.rows.latent(beta, intercept, keys, sweep, self.coefficients.keep_z)
        posterior = self.coefficients.given(latent, precision)
        beta, intercept = posterior.draw(self.factor_of_z(posterior.misfit, latent.square, keys, sweep), keys, sweep)
        return {"beta": beta, "intercept": intercept, "tries": tries} | self.prior.draw(beta, state, keys, sweep)

    def prior_precision(self, state: State) -> Array:
        """(C, p + 1): d_j, and that of the intercept last."""
        xp, d = self.arrays.xp, self.prior.precision(state)
        return xp.concatenate([d, xp.full((len(d), 1), self._intercept_precision)], 1)

    def factor_of_z(self, misfit: Array, square: Array, keys: Keys, sweep: int) -> Array:
        """(C,): g of Haar PX-DA, 1 without it; misfit and square (C,), z'z.

        NaN where so little of z is left that rounding makes the misfit: it is a difference from z'z.
        """
        xp = self.arrays.xp
        if not self.options.expansion:
            return xp.ones(len(keys))
        misfit = xp.where(misfit > SMALLEST_MISFIT * square, misfit, np.nan)
        shape = xp.full((len(keys), 1), 0.5 * self.n)
        return xp.sqrt(2.0 * self.arrays.gammas(keys, sweep, stream(REGRESSION_RESCALE, 0), shape)[:, 0] / misfit)

    def log(self, state: State) -> dict:
        beta = state["beta"] / self.rows.scale
        out = {
            "beta": beta,
            "intercept": state["intercept"] - (beta * self.arrays.asarray(self.X.origin)).sum(1),
            "tau": state["global"] ** -0.5,
        }
        if self.options.slab_scale is not None:
            out["slab"] = state["slab"] ** -0.5
        return out

    def statistics(self, state: State) -> dict:
        """angles_tried, where coefficients are drawn with z integrated out."""
        return {} if self.ellipse is None else {"angles_tried": state["tries"]}

    def describe(self, columns: Columns) -> Description:
        o = self.options
        of, y = probability(columns, label(self.coords["class"][1])), columns.response[0]
        slab, size = o.slab_scale is not None, o.slab_scale or 0.0
        return Description(
            model=f"Horseshoe probit: probit regression of {y} on {predictors_counted(self.p)}, with a prior under "
            "which most coefficients are near 0 and a few may be large.",
            equations=(f"{of} = Φ(α + zβ)",),
            priors=(
                "β_{j} ~ N(0, 1 / (τ⁻² λ_{j}⁻² + c⁻²))" if slab else "β_{j} ~ N(0, τ² λ_{j}²)",
                "λ_{j} ~ half-Cauchy(0, 1)",
                f"τ ~ half-Cauchy(0, {o.global_scale:g})",
                *([f"c⁻² ~ Gamma({o.slab_df / 2:g}, rate {o.slab_df * size**2 / 2:g})"] if slab else []),
                "p(α) ∝ 1 (flat)" if o.intercept_prior_sd is None else f"α ~ N(0, {o.intercept_prior_sd:g}²)",
            ),
            where=(
                "Φ is the distribution function of the standard normal.",
                predictors_words(self.X),
                "α is the intercept, and τ the scale of all coefficients" + (", c the slab." if slab else "."),
            ),
        )
