"""Hierarchical logit, multinomial logit and Poisson regression, by Polya-Gamma variables or slice sampling.

    y_ir | beta_i ~ Bernoulli-logit, multinomial logit or Poisson(exp(x_ir beta_i)),   r = 1 ... n_i, groups i = 1 ... G
    beta_i ~ N(Delta' z_i, V)     Delta_kj ~ N(0, s^2)     V ~ IW(nu, S),  S = (nu - d - 1) v I, so that E V = v I

x holds the predictors and a 1, z_i a 1 and the predictors of the group, beta_i d coefficients. A sweep (Mahani 2012;
Neal 2003):

    beta | .   of logits all of a class at once given Polya-Gamma variables (polya_gamma.py); of Poisson counts, or
               where it is asked for, each coordinate of every group by a slice step (kernels.py)
    Delta | .  normal: with Z'Z = U diag(l) U' and Q = V^-1, row k of U'Delta is N(P^-1 Q (U'Z'B)_k, P^-1),
               P = l_k Q + I/s^2
    V | .      ~ IW(nu + G, S + (B - Z Delta)'(B - Z Delta))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from mmgibbs.draws.purpose import REGRESSION_START, stream
from mmgibbs.errors import ConfigError, DataError, ModelError
from mmgibbs.machine.threads import equal_ranges
from mmgibbs.regressions.arrays.base import Arrays, Host
from mmgibbs.regressions.classes import read_classes
from mmgibbs.regressions.containers import read_array, read_real
from mmgibbs.regressions.description import (
    Columns,
    Description,
    label,
    labels,
    log_odds,
    predictors_words,
    probability,
    reference_words,
)
from mmgibbs.regressions.hierarchical import kernels as slice_kernels
from mmgibbs.regressions.hierarchical import polya_gamma as group_polya_gamma
from mmgibbs.regressions.hierarchical.device import (
    COEFFICIENT,
    COVARIANCE,
    LATENT,
    MAX_COEFFICIENTS,
    POPULATION,
    SLICE,
    HierarchicalChains,
)
from mmgibbs.regressions.hierarchical.grouped import Groups, pack, read_group_predictors, read_groups, read_rows
from mmgibbs.regressions.hierarchical.population import (
    draw_group_covariance,
    draw_population,
    group_means,
    invert_covariance,
)
from mmgibbs.regressions.multinomial.softmax_gradient import softmax
from mmgibbs.regressions.options import AUTO, Choice, option
from mmgibbs.regressions.predictors import Predictors
from mmgibbs.regressions.protocol import Array, Keys, Parameter, RegressionData, State

START = stream(REGRESSION_START, 0)
RANGES_PER_THREAD = 4  # of groups: finer than threads, so that nobody waits long for the last
DRAWS_AT_A_TIME = 16  # in a prediction


@dataclass(frozen=True)
class HierarchicalSliceOptions:
    family: Literal["logit", "poisson"] = option(
        "logit", "logit: labels or counts of two or more classes; poisson: counts"
    )
    method: Literal["auto", "slice", "polya_gamma"] = option(
        "auto", "how the coefficients of a group are drawn; polya_gamma for logits only, for which auto takes it"
    )
    population_sd: float = option(10.0, "prior standard deviation of the population's coefficients Delta", above=0)
    covariance_df: float | None = option(
        None, "nu of the inverse-Wishart prior of V (default: coefficients of a group + 3)"
    )
    covariance_mean: float = option(1.0, "prior mean of V is this times the identity", above=0)
    width: float = option(2.5, "first bracket of a slice, in standard deviations of its coordinate, roughly", above=0)
    most_steps: int = option(8, "m: brackets grow to at most m widths", least=1, most=1_000_000)
    save_groups: bool = option(True, "keep the draws of every group's coefficients, not of the population's alone")
    precision: Literal["double", "single"] = option("double", "single: predictors kept in float32, sums in float64")


class HierarchicalSliceModel:
    """The plugin. Response: labels (n,), counts of classes (n, K), or for poisson counts (n,). Needs `groups`."""

    name = "hierarchical_slice"
    Options = HierarchicalSliceOptions

    @staticmethod
    def prepare(data: RegressionData, options: HierarchicalSliceOptions, arrays: Arrays) -> HierarchicalSliceSampler:
        return HierarchicalSliceSampler(data, options, arrays)

    @staticmethod
    def predict(
        draws: Mapping[str, np.ndarray],
        predictors: Predictors,
        classes: list | None,
        group: npt.ArrayLike | None = None,
        group_predictors: npt.ArrayLike | None = None,
    ) -> np.ndarray:
        """Posterior mean of the probabilities (n, K) or of the Poisson mean (n,).

        group (n,): number of a row's group in the fitted data, or -1 for a new one, which gets the population's mean
        Delta'z: its own deviation from it is unknown and left out. group_predictors (n, q): of the new groups' rows,
        where the model has them.
        """
        population = draws["population"]
        population = population.reshape(*population.shape[:3], -1)  # (m, 1 + q, D, M)
        group = np.full(predictors.n, -1) if group is None else np.asarray(group)
        m, q, _, M = population.shape
        z = np.ones((predictors.n, 1))
        if group_predictors is not None:
            z = np.column_stack([z, read_rows(group_predictors, predictors.n)])
        if z.shape[1] != q and (group < 0).any():
            raise ModelError(
                f"prediction for a new group: found {z.shape[1] - 1} group predictors, needed the {q - 1} of the "
                "fitted model"
            )
        if (group >= 0).any() and "beta" not in draws:
            raise ModelError(
                "prediction for a group of the fitted data: found no draws of its coefficients, needed a fit with "
                "save_groups=True"
            )
        out = np.zeros((predictors.n, 1 if classes is None else len(classes)))
        for first, last, X in predictors.blocks():
            rows, X = slice(first, last), np.column_stack([X, np.ones(last - first)])
            known = np.flatnonzero(group[rows] >= 0)
            for d in range(0, m, DRAWS_AT_A_TIME):
                chunk = slice(d, d + DRAWS_AT_A_TIME)
                eta = np.zeros((len(population[chunk]), M, last - first))
                if known.size < last - first:
                    eta += np.einsum("nk,nj,skjm->smn", z[rows], X, population[chunk], optimize=True)
                if known.size:
                    numbers = group[rows][known]
                    slopes, intercept = draws["beta"][chunk][:, numbers], draws["intercept"][chunk][:, numbers]
                    slopes, intercept = slopes.reshape(*slopes.shape[:3], M), intercept.reshape(*intercept.shape[:2], M)
                    eta[:, :, known] = np.einsum("nj,snjm->smn", X[known, :-1], slopes) + np.moveaxis(intercept, 2, 1)
                out[rows] += _sum_expected_responses(eta, classes)
        return out[:, 0] / m if classes is None else out / m


def _sum_expected_responses(eta: np.ndarray, classes: list | None) -> np.ndarray:
    """(n, K) sums over draws of the mean response, of linear predictors (s, M, n)."""
    if classes is None:
        return np.exp(eta).sum(0).T
    if len(classes) == 2:
        with np.errstate(over="ignore"):  # a probability of 0
            p = 1 / (1 + np.exp(-eta[:, 0]))
        return np.column_stack([(1 - p).sum(0), p.sum(0)])
    softmax(eta)
    p = eta.sum(0).T
    return np.column_stack([p, len(eta) - p.sum(1)])


def choose_method(family: str) -> Choice:
    """The `method` where the analysis names none: the one that is never very slow.

    Effective draws a second of what mixes worst, by Polya-Gamma variables for one by slice steps, on 26 data sets
    (`python benchmarks/regressions_defaults.py hierarchical`): 1.2 to 5 times as many with up to 15 records in a group,
    4 to 21 times with predictors that are not centred, where slice steps get down to 2 a second; 0.2 to 0.8 times with
    150 records of centred predictors, and 0.03 times where the class is also rare (2 %), which still were 50 a second.
    """
    if family == "poisson":
        return Choice("slice", "Polya-Gamma variables are for logits")
    return Choice("polya_gamma", "coefficients of a group together, which suits few records and correlated predictors")


class GroupUpdate(Protocol):
    """An update of the coefficients of every group, beta (C, G, d), in place."""

    def __call__(self, beta: Array, Q: Array, mean: Array, width: Array, sweep: int, keys: Keys) -> None: ...


class HierarchicalSliceSampler:
    """State: beta (C, G, d), d = M D coefficients, class by class, D = p + 1, the intercept last; population (C, 1 +
    q, d), Delta; covariance (C, d, d), V: on the scale of the standardised columns. M = K - 1 classes have
    coefficients; of two classes the second."""

    has_kernels = True

    def __init__(self, data: RegressionData, options: HierarchicalSliceOptions, arrays: Arrays):
        self.choices = {} if options.method != AUTO else {"method": choose_method(options.family)}
        options = replace(options, **{name: choice.value for name, choice in self.choices.items()})
        self.options, self.arrays, self.predictors = options, arrays, data.predictors
        self.host = arrays if isinstance(arrays, Host) else Host()
        successes, trials, classes = read_response(data, options)
        codes, self.labels = read_groups(data.groups, data.predictors.n)
        Z, names = read_group_predictors(data.group_predictors, self.labels)
        self.M, self.D = successes.shape[1], data.predictors.p + 1
        self.d = d = self.M * self.D
        if d > MAX_COEFFICIENTS:
            raise DataError(
                f"predictors: found {d} coefficients in each group, needed at most {MAX_COEFFICIENTS}, for their "
                "covariance matrix is sampled"
            )
        self.nu = d + 3.0 if options.covariance_df is None else options.covariance_df
        if not self.nu > d + 1:
            raise ConfigError(
                f"covariance_df: found {self.nu:g}, needed more than {d + 1}, the coefficients of a group + 1, "
                "for a prior mean"
            )
        if options.family == "poisson" and options.method == "polya_gamma":
            raise ConfigError(
                "method: found 'polya_gamma' with family 'poisson', needed 'slice': Polya-Gamma variables suit "
                "logits only"
            )
        real = np.float32 if options.precision == "single" else np.float64
        self.prior_scale = float((self.nu - d - 1) * options.covariance_mean)  # S is this times the identity
        self.ridge = 1 / options.population_sd**2
        self.groups = pack(data.predictors, codes, successes, trials, real)
        self.Z = np.ascontiguousarray(Z, np.float64)
        self.eigenvalues, self.U = (np.ascontiguousarray(a) for a in np.linalg.eigh(Z.T @ Z))
        self.W = np.ascontiguousarray((self.Z @ self.U).T)
        self.information = compute_information(self.groups, options.family).reshape(len(self.labels), d)
        self.update_groups: GroupUpdate = HostGroupUpdate(self.groups, options, self.host)
        self.intercept_guess = guess_intercepts(self.groups, options.family)
        self.transform = make_original_scale_transform(data.predictors, self.M)
        self._set_parameters(classes, names)

    def _set_parameters(self, classes: list, names: list[str]) -> None:
        predictors, contrasts = list(self.predictors.names), classes[:-1] if self.M > 1 else []
        per_class = ("contrast",) if self.M > 1 else ()
        coefficients = [*predictors, "intercept"]
        flat = [f"{c},{k}" for k in contrasts for c in coefficients] if self.M > 1 else coefficients
        self.coords = {
            "group": self.labels, "predictor": predictors, "contrast": contrasts, "group_predictor": names,
            "coefficient": coefficients,
            "row": flat, "column": flat,
        }  # fmt: skip
        if classes:
            self.coords["class"] = classes
        self.parameters = {
            "population": Parameter(
                ("group_predictor", "coefficient", *per_class), "Delta: what a group's coefficients are expected to be"
            ),
            "covariance": Parameter(("row", "column"), "V: of a group's coefficients about their expectation"),
        }
        if self.options.save_groups:
            self.parameters |= {
                "intercept": Parameter(("group", *per_class), "of the group, where the predictors are 0"),
                "beta": Parameter(("group", "predictor", *per_class), "coefficients of the group"),
            }

    def adapt_until(self, burn_in: int) -> None:
        """Nothing is learnt: widths follow from the data and V."""

    def start(self, keys: Keys) -> State:
        """Population at the data's overall level, groups scattered about it, V at its prior mean."""
        C, G = len(keys), len(self.labels)
        population = np.zeros((C, self.Z.shape[1], self.d))
        population[:, 0, self.D - 1 :: self.D] = self.intercept_guess
        scatter = 0.5 * self.host.normals(keys, 0, START, G * self.d).reshape(C, G, self.d)
        covariance = np.tile(self.options.covariance_mean * np.eye(self.d), (C, 1, 1))
        return {"beta": self.Z @ population + scatter, "population": population, "covariance": covariance}

    def step(self, state: State, sweep: int, keys: Keys) -> State:
        """Draw everything once on the host; LinAlgError where a matrix has no Cholesky factor."""
        beta, d = np.array(state["beta"]), self.d
        Q, means = np.empty((len(keys), d, d)), np.empty(beta.shape)
        for c in range(len(keys)):
            if not invert_covariance(state["covariance"][c], Q[c], np.empty((2, d, d))):
                raise np.linalg.LinAlgError("the covariance of the coefficients is not positive definite")
            group_means(self.Z, state["population"][c], means[c])
        width = self.options.width / np.sqrt(self.information + np.diagonal(Q, axis1=1, axis2=2)[:, None])
        self.update_groups(beta, Q, means, width, sweep, keys)
        population, covariance = np.empty(state["population"].shape), np.empty(Q.shape)
        draw = partial(self._draw_hyperparameters, beta, Q, population, covariance, sweep, keys)
        self.host.at_once([partial(draw, c) for c in range(len(keys))])
        if np.isnan(population).any():
            raise np.linalg.LinAlgError("the precision of the population's coefficients is not positive definite")
        return {"beta": beta, "population": population, "covariance": covariance}

    def _draw_hyperparameters(
        self,
        beta: np.ndarray,
        Q: np.ndarray,
        population: np.ndarray,
        covariance: np.ndarray,
        sweep: int,
        keys: Keys,
        c: int,
    ) -> None:
        """Delta and V of chain c, into population[c] and covariance[c]; nan where they cannot be drawn."""
        key = keys.seed, keys.chains[c]
        given = beta[c], Q[c], self.ridge, population[c], sweep, POPULATION
        if not draw_population(self.W, self.eigenvalues, self.U, *given, *key):
            population[c] = np.nan
        prior = self.nu + len(self.labels), self.prior_scale
        draw_group_covariance(self.Z, population[c], beta[c], *prior, covariance[c], sweep, COVARIANCE, *key)

    def plan_device_chains(self, keys: Keys, burn_in: int, thin: int) -> HierarchicalChains:
        """Plan the same chains on a GPU, see protocol.DeviceSampler."""
        return HierarchicalChains(self, keys, burn_in, thin)

    def log(self, state: State) -> dict:
        T, C, per_class = self.transform, len(state["population"]), (self.M,) if self.M > 1 else ()
        by_class = lambda a: np.moveaxis(a.reshape(*a.shape[:2], self.M, self.D), 2, 3)
        out = {
            "population": by_class(state["population"] @ T.T).reshape(C, -1, self.D, *per_class),
            "covariance": T @ state["covariance"] @ T.T,
        }
        if self.options.save_groups:
            beta = by_class(state["beta"] @ T.T).reshape(C, -1, self.D, *per_class)
            out |= {"intercept": beta[:, :, -1], "beta": beta[:, :, :-1]}
        return out

    def statistics(self, state: State) -> dict:
        return {}

    def describe(self, columns: Columns) -> Description:
        o, y, by = self.options, columns.response[0], columns.groups or "group"
        n, classes = len(self.labels), self.coords.get("class")
        right = "α_{ik} + zβ_{ik}" if self.M > 1 else "α_{i} + zβ_{i}"
        if classes is None:
            what, equation = "Poisson regression", f"log E({y}) = {right}"
        elif self.M > 1:
            what, equation = "multinomial logit", f"{log_odds(columns, classes)} = {right}"
        else:
            what, equation = "binary logit", f"logit {probability(columns, label(classes[1]))} = {right}"
        of_groups = columns.group_predictors
        mean = "I" if o.covariance_mean == 1 else f"{o.covariance_mean:g} I"
        names = "α_{i} and β_{i} for all k" if self.M > 1 else "α_{i} and β_{i}"
        return Description(
            model=f"Hierarchical {what} of {', '.join(columns.response)}: each {by} has an intercept and coefficients "
            "of its own, drawn around those of the population.",
            equations=(equation,),
            priors=(
                "b_{i} ~ N(Δ'w_{i}, V)" if of_groups else "b_{i} ~ N(Δ, V)",
                f"Δ_{{j}} ~ N(0, {o.population_sd:g}²)",
                f"V ~ inverse Wishart with {self.nu:g} degrees of freedom and mean {mean}",
            ),
            where=(
                f"The groups i are the levels of {by}: {n:,} of them.",
                *([reference_words(classes)] if classes is not None and self.M > 1 else []),
                f"b_{{i}} holds {names}."
                + (f" w_{{i}} has a 1 and {', '.join(of_groups)} of the group." if of_groups else ""),
                predictors_words(self.predictors),
                self._describe_population(of_groups),
            ),
        )

    def _describe_population(self, columns: Sequence[str]) -> str:
        """Describe the parameters of the population, by the names of the first predictor and of the first class.

        columns: the user's names of the group predictors, whose parameters may have others (z0, z1).
        """
        x, *slopes = self.coords["coefficient"]
        of_groups, contrasts = self.coords["group_predictor"][1:], self.coords["contrast"]
        called = columns or of_groups
        k, for_k = (f",{contrasts[0]}", f" for {label(contrasts[0])}") if self.M > 1 else ("", "")
        of_x = f"coefficients of {x}" if slopes else "intercepts"
        where = f" where {labels(called)} {'is' if len(called) == 1 else 'are'} 0" if of_groups else ""
        said = [f"population[intercept,{x}{k}] is the mean of the {of_x}{for_k}{where}"]
        if of_groups:
            said.append(f"population[{of_groups[0]},{x}{k}] what one unit of {called[0]} adds to it")
        if slopes:
            said.append(f"population[intercept,intercept{k}] that of the intercepts{for_k}{where}")
        return f"Δ is population: {labels(said)}. V is covariance, of the groups about these means."


class HostGroupUpdate:
    """Update of all coefficients of all groups; chains and ranges of groups of about equal work share the threads."""

    def __init__(self, groups: Groups, options: HierarchicalSliceOptions, arrays: Arrays):
        self.groups, self.options, self.arrays = groups, options, arrays
        self.ranges = equal_ranges(
            np.diff(groups.ptr) + 16, 1 if arrays.threads == 1 else (arrays.threads or 1) * RANGES_PER_THREAD
        )

    def __call__(
        self, beta: np.ndarray, Q: np.ndarray, mean: np.ndarray, width: np.ndarray, sweep: int, keys: Keys
    ) -> None:
        """beta (C, G, d) in place; Q (C, d, d); mean, width (C, G, d)."""
        options, groups = self.options, self.groups

        def sweep_range(c: int, first: int, last: int) -> None:
            key = keys.seed, keys.chains[c]
            if options.method == "slice":
                of_slice = options.family == "poisson", Q[c], mean[c], width[c], options.most_steps, True
                slice_kernels.sweep_groups(groups, *of_slice, beta[c], first, last, sweep, SLICE, *key)
            else:
                group_polya_gamma.sweep_groups(
                    groups, Q[c], mean[c], beta[c], first, last, sweep, LATENT, COEFFICIENT, *key
                )

        self.arrays.at_once([partial(sweep_range, c, a, b) for c in range(len(keys)) for a, b in self.ranges])


def read_response(data: RegressionData, options: HierarchicalSliceOptions) -> tuple[np.ndarray, np.ndarray, list]:
    """successes (n, M) of the classes with coefficients, trials (n,), classes (none for a Poisson). DataError for what
    is neither."""
    n, name = data.predictors.n, data.response_name
    y = read_array(data.response, name)
    if len(np.atleast_1d(y)) != n:
        raise DataError(f"{name}: found {len(np.atleast_1d(y))} rows, needed {n}, one for each row of the predictors")
    if options.family == "poisson":
        y = read_real(y, name, "a count, a whole number from 0") if y.ndim == 1 and y.dtype.kind == "O" else y
        if y.ndim != 1 or y.dtype.kind not in "buif":
            raise DataError(
                f"{name}: found an array of type {y.dtype} and shape {y.shape}, needed counts ({n},), whole "
                "numbers from 0"
            )
        with np.errstate(invalid="ignore"):
            bad = ~((y >= 0) & (y == np.floor(y)) & np.isfinite(y))
        if bad.any():
            i = int(bad.argmax())
            raise DataError(f"{name} row {i + 1}: found {y[i]}, needed a count, a whole number from 0")
        return y[:, None].astype(np.float64), np.ones(n), []
    response, classes = read_classes(y, name)
    counts = response if response.ndim == 2 else np.eye(len(classes))[response]
    return (counts[:, 1:] if len(classes) == 2 else counts[:, :-1]).astype(np.float64), counts.sum(1), classes


def guess_intercepts(groups: Groups, family: str) -> np.ndarray:
    """(M,) intercepts of all data as one group: log odds against the class without coefficients, or log mean."""
    total, trials = groups.cross[:, :, -1].sum(0), groups.trials.sum()
    if family == "poisson":
        return np.log((total + 0.5) / trials)
    return np.log((total + 0.5) / (trials - total.sum() + 0.5))


def compute_information(groups: Groups, family: str) -> np.ndarray:
    """(G, M, D) of each coefficient, all others given, at the group's own frequencies: sum t x^2 times a variance."""
    total, trials = groups.cross[:, :, -1], groups.squares[:, -1:]
    share = (total + 0.5) / (trials + (0.5 if family == "poisson" else 1.0))
    variance = share if family == "poisson" else share * (1 - share)
    return groups.squares[:, None, :] * variance[:, :, None]


def make_original_scale_transform(predictors: Predictors, M: int) -> np.ndarray:
    """(d, d): coefficients of the columns as given from those of the standardised ones."""
    D = predictors.p + 1
    T = np.diag(np.append(1 / predictors.scale, 1.0))
    T[-1, :-1] = -predictors.origin / predictors.scale
    return np.kron(np.eye(M), T) if M > 1 else T.reshape(D, D)
