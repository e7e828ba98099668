"""The LR method (Legarra & Reverter 2018, Genet. Sel. Evol. 50:53): breeding values from whole and from partial data.

With w and p the breeding values of n focal animals from whole and partial data, moments with divisor n,

    bias                 mean(p) - mean(w)                                    expected 0
    dispersion           cov(w, p) / var(p)                                   expected 1
    ratio of accuracies  cor(w, p)                                            estimates acc_p / acc_w
    reliability ratio    cov(w, p) / var(w)                                   estimates acc_p^2 / acc_w^2
    accuracy             sqrt(cov(w, p) / ((1 + Fbar - 2 fbar) sigma2_u))     estimates acc_p

where 1 + Fbar - 2 fbar = tr(V)/n - 1'V 1/n^2 among the focal animals, themselves included in the mean relationship,
with V = A, and V = A + Q Q' for random unknown-parent groups, of variance sigma2_u, of which animals hold the shares Q.
Fixed groups have no variance, so that there is no accuracy. For a random regression all of it is said of each
coefficient.

Standard errors. Under the model d = w - p is independent of p, with variance C_p - C_w (C: the block of the inverse
mixed-model equations). Given p, bias and dispersion are linear in d: -k'd with k = 1/n, and 1 + x'd with x = (p - pbar)
/ sum (p - pbar)^2, so that their variances are k'(C_p - C_w)k and x'(C_p - C_w)x, each from one more solution of the
equations (compare Bermann et al. 2024, Genet. Sel. Evol. 56:18). The others have theirs, and what the model expects of
them, from records simulated at the given variances (simulated_records). Without a simulation they come from a bootstrap
of half-sib families, drawn whole, which knows nothing of what other families would have shown, and is too small.

Fixed unknown-parent groups are estimated, not predicted: their errors are a part of p, so that d is not independent of
p and dispersion is not 1. Bias and dispersion then have expectations and standard errors from the simulation as well,
at the estimated groups. Where other groups are set to 0 in the partial data than in the whole, w and p are measured
from different bases and bias means nothing: it has neither.

What the model expects of the LR statistics: whole and partial evaluations of records that are simulated from it.

Breeding values are drawn down the pedigree of the analysis at its variances, u = L D^1/2 z with A = L D L', the other
random effects and the residuals beside them; fixed effects are 0, which no contrast sees. Fixed unknown-parent groups
are seen: where a term has them, they and the fixed effects are the solutions from the whole data. Every replicate is
one more right-hand side of both systems of equations.

"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial as bind

import numpy as np

from mmgibbs.engines.direct.solver import DirectSolver, PlannedFactor, fit_together, may_pay
from mmgibbs.engines.pcg.solver import column_products
from mmgibbs.machine.threads import ALONE, Threads, blas_threads
from mmgibbs.models.design import Design
from mmgibbs.posterior.fitted import fitted
from mmgibbs.runs.chains import Executor
from mmgibbs.runs.local import LocalExecutor
from mmgibbs.validation.evaluation import Evaluation, differing_held_groups, label, random_solutions
from mmgibbs.validation.options import BOOTSTRAP_DRAWS, SIMULATION_DRAWS

EXPECTED = {"bias": 0.0, "dispersion": 1.0}  # whatever the data, without fixed groups
ROUNDING_TOLERANCE = 1e-6  # of the posterior variance: how far below 0 rounding takes a difference of two of them
BOOTSTRAPS = 1000
MIN_REPLICATES_FOR_CLUSTER = (
    80  # replicates that are solved by two factors in the time that it takes to send those to workers: 2.3 s
)
TOLERANCE = 1e-5  # of the solutions behind standard errors: what it leaves in a variance is its square


@dataclass(frozen=True)
class Compared:
    """A component of breeding values of the focal animals from whole and partial data."""

    term: str
    effect: str
    trait: str
    whole: np.ndarray  # (n,)
    partial: np.ndarray  # (n,)
    estimates: dict[str, float]
    errors: dict[str, float]  # standard errors
    expected: dict[str, float]  # by the model
    from_model: frozenset[str]  # statistics whose standard error is that of the inverse equations
    notes: tuple[str, ...] = ()


def family_sums(of_whole: np.ndarray, partial: np.ndarray, family: np.ndarray) -> np.ndarray:
    """(families, 6): per family the sums of 1, w, p, w^2, p^2 and w p."""
    _, code = np.unique(family, return_inverse=True)
    w, p = of_whole - of_whole.mean(), partial - of_whole.mean()
    return np.stack([np.bincount(code, v) for v in (np.ones(w.size), w, p, w * w, p * p, w * p)], axis=1)


def lr_statistics(sums: np.ndarray, genetic_variance: float) -> dict[str, np.ndarray]:
    """The statistics above from sums (..., 6) over animals; genetic_variance: (1 + Fbar - 2 fbar) sigma2_u, or NaN."""
    n, w, p, ww, pp, wp = np.moveaxis(sums, -1, 0)
    cov, var_w, var_p = wp / n - w * p / n**2, ww / n - (w / n) ** 2, pp / n - (p / n) ** 2
    with np.errstate(invalid="ignore", divide="ignore"):
        return {
            "bias": (p - w) / n,
            "dispersion": cov / var_p,
            "ratio_of_accuracies": cov / np.sqrt(var_w * var_p),
            "reliability_ratio": cov / var_w,
            "accuracy": np.sqrt(cov / genetic_variance),
        }


def bootstrap(
    sums: np.ndarray, genetic_variance: float, rng: np.random.Generator
) -> tuple[dict[str, float], dict[str, int]]:
    """(standard errors over families drawn with replacement, samples that have no such statistic and are left out):
    NaN and none where a single family leaves nothing to draw.
    """
    m = len(sums)
    drawn = np.stack([np.bincount(rng.integers(m, size=m), minlength=m) @ sums for _ in range(BOOTSTRAPS)])
    statistics = lr_statistics(drawn, genetic_variance)
    sd = {k: _sd(v[np.isfinite(v)]) if m > 1 else np.nan for k, v in statistics.items()}
    return sd, {k: int(np.count_nonzero(~np.isfinite(v))) if m > 1 else 0 for k, v in statistics.items()}


def dropped_samples_notes(
    statistics: dict, sd: dict, left_out: dict[str, int], with_errors: Collection[str] = ()
) -> list[str]:
    """Notes on bootstrap samples that have no statistic; own: names whose standard errors are no bootstrap's."""
    return [
        f"{n} of {BOOTSTRAPS:,} bootstrap samples without {name}, left out of its standard error, which is then too "
        "small"
        for name, n in left_out.items()
        if n and name not in with_errors and np.isfinite(statistics[name]) and np.isfinite(sd[name])
    ]


def families_text(units: str) -> str:
    """Describe such standard errors."""
    return (
        f"standard deviation over {BOOTSTRAPS:,} bootstrap samples of half-sib families by sire among the focal "
        f"{units}; too small, as it knows nothing of other families"
    )


def _sd(values: np.ndarray) -> float:
    return float(values.std(ddof=1)) if values.size > 1 else np.nan


def posterior_variances(evaluation: Evaluation, term: int, contrasts: list[tuple[int, np.ndarray]]) -> np.ndarray:
    """(m,) k'C^-1 k for contrasts of one term's levels: (component, (q,) k) each."""
    engine = evaluation.engine
    code = engine.equations.terms[term].code
    b = np.zeros((engine.bounds[-1], len(contrasts)))
    block = engine.split(b)[term]
    for j, (component, k) in enumerate(contrasts):
        block[:, component, j] = k[code]
    scale = np.sqrt(engine.equations.n_equations / column_products(b, engine.precondition(b)))
    b *= scale
    x = evaluation.solutions(b, TOLERANCE)
    return column_products(b, x) / scale**2


def compare_evaluations(
    whole_data: Evaluation,
    without: Callable[[Threads], Evaluation],
    masked: np.ndarray,
    focal: Mapping[int, np.ndarray],
    family: np.ndarray,
    replicates: int,
    seed: int,
    executor: Executor,
) -> list[Compared]:
    """The LR statistics of every component of every term with relationships.

    without: the evaluation of the partial data, on these threads. masked: (records,) those that the partial data lack.
    focal: term number -> (n,) level codes of the focal animals; family: (n,) their families. replicates: of the
    simulation; 0: bootstrap.
    """
    contrasts = sum(len(EXPECTED) * whole_data.design.terms[i].n_components for i in focal)
    thetas: list[list[np.ndarray]] = []

    def checked(threads: Threads) -> Evaluation:
        """An animal that left the pedigree is named before anything else is made."""
        evaluation = without(threads)
        thetas.append(random_solutions(evaluation, whole_data))
        return evaluation

    whole_data, partial = solve_whole_and_partial(replicates + contrasts, whole_data, checked)
    (partial_theta,) = thetas
    out = []
    place = {t.name: i for i, t in enumerate(partial.design.terms)}
    infos = {info.name: info for info in whole_data.assembled.terms}
    simulated = simulated_moments(whole_data, partial, masked, focal, replicates, seed, executor) if replicates else {}
    rng = np.random.default_rng([seed, BOOTSTRAP_DRAWS])
    for i, levels in focal.items():
        term, info = whole_data.design.terms[i], infos[whole_data.design.terms[i].name]
        G, spread = whole_data.variance(i), term.relationship.spread(levels)
        w, p = whole_data.theta[i][levels], partial_theta[i][levels]
        errors = {} if term.groups_fixed else model_errors(whole_data, partial, i, place[term.name], levels, p)
        elsewhere = differing_held_groups(whole_data, partial, i)
        for c, component in enumerate(info.components):
            trait = whole_data.design.traits[info.trait_of_component[c]]
            sums = family_sums(w[:, c], p[:, c], family)
            statistics = {k: float(v) for k, v in lr_statistics(sums.sum(axis=0), spread * G[c, c]).items()}
            effect = component.removesuffix(trait).removesuffix(":")
            mean, sd, missing = simulated[i][c] if replicates else ({}, {}, {})
            left_out: dict[str, int] = {}
            if not replicates:
                sd, left_out = bootstrap(sums, spread * G[c, c], rng)
            if term.groups_fixed:
                void = dict.fromkeys(["bias"] * bool(elsewhere[c]) + [*EXPECTED] * (replicates == 0), np.nan)
                mean, sd = mean | void, sd | void
            else:
                mean, sd = mean | EXPECTED, sd | {k: float(v[c]) for k, v in errors.items()}
            notes = describe_problems(statistics, sd, errors, missing, replicates, term.groups_fixed, elsewhere[c])
            notes += dropped_samples_notes(statistics, sd, left_out, errors)
            if term.groups_fixed:
                notes.append(
                    "no accuracy: unknown-parent groups are fixed, so that there is no variance of breeding values"
                )
            elif np.isnan(spread):
                notes.append(
                    "no accuracy: the file has the inverse of the relationships, not the relationships themselves"
                )
            elif np.isnan(statistics["accuracy"]) and statistics["dispersion"] < 0:
                notes.append("no accuracy: breeding values from whole and from partial data have a negative covariance")
            of = label(term.name, effect, trait)
            labelled, names = tuple(f"{of}: {note}" for note in notes), frozenset(errors)
            out.append(Compared(term.name, effect, trait, w[:, c], p[:, c], statistics, sd, mean, names, labelled))
    return out


def solve_whole_and_partial(
    columns: int, whole_data: Evaluation, without: Callable[[Threads], Evaluation]
) -> tuple[Evaluation, Evaluation]:
    """Prepare whole and partial data for so many right-hand sides: side by side where there are threads for it.

    Factors are made one after the other where memory has no room to make them together.
    """
    at_once = whole_data.engine.threads
    if not may_pay(whole_data.design, columns):
        return whole_data, without(at_once)
    prepared = [without(at_once)] if at_once.count == 1 else []
    planned: list[PlannedFactor | None] = [None, None]
    made: list[DirectSolver | None] = [None, None]

    def plan_complete() -> None:
        planned[0] = whole_data.planned(columns)

    def plan_partial() -> None:
        if not prepared:
            prepared.append(without(ALONE))
            prepared[0].engine.threads = at_once
        planned[1] = prepared[0].planned(columns)

    def make(i: int) -> None:
        of, planned[i] = planned[i], None  # which has its own memory
        made[i] = None if of is None else of.made()

    with blas_threads(1):  # each would put the number back that it found, while the other is at work
        at_once([plan_complete, plan_partial])
        threads = at_once if fit_together(*planned) else ALONE
        threads([bind(make, i) for i in range(2)])
    return replace(whole_data, direct=made[0]), replace(prepared[0], direct=made[1])


def describe_problems(
    statistics: dict,
    sd: dict,
    errors: Collection[str],
    missing: dict,
    replicates: int,
    groups_fixed: bool,
    elsewhere: bool,
) -> list[str]:
    """Describe what must be known of the statistics of one component beside their numbers.

    found: estimates; sd: standard errors; errors: names of those from the inverse equations; missing: replicates
    without a statistic; elsewhere: other groups are set to 0 in the partial data.
    """
    notes = []
    if np.isnan(statistics["dispersion"]):
        notes.append("the partial breeding values of the focal animals do not vary")
    notes += [
        f"no standard error of {name}: its variance would be below 0, as the equations with and without the records "
        "are not of one model"
        for name in errors
        if np.isnan(sd[name]) and np.isfinite(statistics[name])
    ]
    notes += [
        f"{n} of {replicates} simulated sets of records without {name}: expectation and standard error are those "
        "of the others"
        for name, n in missing.items()
        if n > 0 and (n < replicates or np.isfinite(statistics[name]))
    ]
    if groups_fixed and not replicates:
        notes.append(
            "unknown-parent groups are fixed: no expectation and no standard error of bias and dispersion without "
            "a simulation"
        )
    if groups_fixed and elsewhere:
        notes.append(
            "different unknown-parent groups are set to 0 with and without the records, so that breeding values are "
            "measured from different bases: bias has no expectation and no standard error"
        )
    return notes


def simulated_moments(
    whole_data: Evaluation,
    partial: Evaluation,
    masked: np.ndarray,
    focal: Mapping[int, np.ndarray],
    replicates: int,
    seed: int,
    executor: Executor,
) -> dict[int, list[tuple[dict, dict, dict]]]:
    """Term -> per component (mean, standard deviation, replicates without it) of each statistic over simulated
    records.
    """
    blocks = divide_replicates(replicates, whole_data.design.n_equations)
    names = [f"block {b + 1} of {len(blocks)} of simulated records" for b, _ in blocks]
    place = _choose_executor(whole_data, partial, replicates, executor)
    if place.max_local_calls > 1:
        whole_data, partial = whole_data.single_threaded(), partial.single_threaded()
        draw_once(whole_data)
    solved = list(place.each(simulated_sums, (whole_data, partial, masked, focal, seed), blocks, names))
    out = {}
    for i, levels in focal.items():
        variances = whole_data.design.terms[i].relationship.spread(levels) * np.diag(whole_data.variance(i))
        sums = np.concatenate([block[i] for block in solved], axis=1)
        out[i] = [
            moments_over_replicates(lr_statistics(sums_of_component, v))
            for sums_of_component, v in zip(sums, variances, strict=True)
        ]
    return out


def _choose_executor(whole_data: Evaluation, partial: Evaluation, replicates: int, executor: Executor) -> Executor:
    """Choose who solves for simulated records.

    With both factors here it is this process, unless other machines have so much to do that it pays to send them the
    factors.
    """
    if whole_data.direct is None or partial.direct is None:
        return executor
    if isinstance(executor, LocalExecutor):
        return executor
    return (
        LocalExecutor(executor.max_local_calls)
        if executor.max_local_calls or replicates <= MIN_REPLICATES_FOR_CLUSTER
        else executor
    )


def moments_over_replicates(statistics: dict[str, np.ndarray]) -> tuple[dict, dict, dict]:
    """(mean, standard deviation, number not finite) of each statistic (m,);
    the first two are those of the finite ones.
    """
    finite = {k: v[np.isfinite(v)] for k, v in statistics.items()}
    mean = {k: float(v.mean()) if v.size else np.nan for k, v in finite.items()}
    return mean, {k: _sd(v) for k, v in finite.items()}, {k: statistics[k].size - v.size for k, v in finite.items()}


def model_errors(
    whole_data: Evaluation, partial: Evaluation, i: int, j: int, levels: np.ndarray, p: np.ndarray
) -> dict[str, np.ndarray]:
    """(k,) standard errors of bias and dispersion per component, given p (n, k); term i of whole is j of partial.

    NaN where the difference of variances is negative beyond rounding: the two systems of equations are not of one
    model.
    """
    n, k = p.shape
    deviation = p - p.mean(axis=0)
    squares = (deviation**2).sum(axis=0)
    slope = np.divide(deviation, squares, out=np.full(p.shape, 1 / n), where=squares > 0)
    contrasts = [
        (c, _scattered(values, levels, whole_data.theta[i]))
        for values in (np.full((n, k), 1 / n), slope)
        for c, values in enumerate(values.T)
    ]
    of_partial = posterior_variances(partial, j, contrasts)
    difference = of_partial - posterior_variances(whole_data, i, contrasts)
    wrong = difference < -ROUNDING_TOLERANCE * of_partial
    bias, dispersion = np.where(wrong, np.nan, np.sqrt(np.maximum(difference, 0.0))).reshape(2, k)
    return {"bias": bias, "dispersion": np.where(squares > 0, dispersion, np.nan)}


def _scattered(values: np.ndarray, levels: np.ndarray, theta: np.ndarray) -> np.ndarray:
    out = np.zeros(len(theta))
    out[levels] = values
    return out


# ------------------------------------------------------------ simulated records

SIMULATION_TOLERANCE = 1e-4  # of solutions, in posterior standard deviations
VALUES = 20_000_000  # equations times replicates that are solved at once, and
AT_ONCE = 10  # replicates: enough to share a pass over the data, few enough to share out


def can_simulate(evaluation: Evaluation) -> bool:
    """Check that no random effect has a relationship matrix that is known by its inverse alone."""
    return all(t.relationship.can_draw for t in evaluation.design.terms)


def has_fixed_groups(design: Design) -> bool:
    return any(term.groups_fixed for term in design.terms)


def divide_replicates(replicates: int, n_equations: int) -> list[tuple[int, int]]:
    """(number, replicates) of the blocks that are solved at once: their size does not depend on who solves them."""
    at_once = max(1, min(AT_ONCE, VALUES // n_equations))
    return [(block, min(at_once, replicates - first)) for block, first in enumerate(range(0, replicates, at_once))]


def simulated_sums(
    whole_data: Evaluation,
    partial: Evaluation,
    masked: np.ndarray,
    focal: Mapping[int, np.ndarray],
    seed: int,
    block: int,
    m: int,
) -> dict[int, np.ndarray]:
    """Term of whole -> (k, m, 6) sums over its focal levels of 1, w, p, w^2, p^2 and w p, for the m replicates of a
    block.

    masked: (n,) records that the partial data lack. focal: term -> (f,) level codes.
    """
    y = simulated_records(whole_data, m, np.random.default_rng([seed, SIMULATION_DRAWS, block]))
    of_whole, of_partial = _solutions(whole_data, y), _solutions(partial, y[~masked])
    sums = {}
    for term, levels in focal.items():
        name = whole_data.design.terms[term].name
        w, p = of_whole[name][levels], of_partial[name][levels]
        moments = [np.full(w.shape[1:], len(levels)), *(v.sum(axis=0) for v in (w, p, w * w, p * p, w * p))]
        sums[term] = np.stack(moments, axis=-1)
    return sums


def draw_once(evaluation: Evaluation) -> None:
    """Draw each random effect once, so that its relationship keeps what it derives for draws.

    Threads that draw side by side without it would each derive it.
    """
    for term in evaluation.design.terms:
        if term.kind == "random":
            term.relationship.draw(np.zeros((term.n_levels, 1)))


def simulated_records(evaluation: Evaluation, m: int, rng: np.random.Generator) -> np.ndarray:
    """(n, T, m) records at the variances of an evaluation; traits that are not observed have values too."""
    design, model = evaluation.design, evaluation.assembled.model
    theta, with_fixed = [], has_fixed_groups(design)
    for i, (term, effects) in enumerate(zip(design.terms, evaluation.theta, strict=True)):
        if term.kind == "fixed":
            theta.append(np.repeat(effects[:, :, None], m, axis=2) if with_fixed else np.zeros((0, 0, m)))
            continue
        z = rng.standard_normal((term.n_levels, term.n_components, m))
        u = np.einsum("ab,qbm->qam", np.linalg.cholesky(evaluation.variance(i)), z)
        if term.groups_fixed:
            first = term.n_levels - term.n_groups
            u[first:] = effects[first:, :, None]
        theta.append(term.relationship.draw(u.reshape(len(u), -1)).reshape(u.shape))
    root, z = np.linalg.cholesky(model.residual.start), rng.standard_normal((*design.y.shape, m))
    if model.residual.classes:
        e = np.einsum("nst,ntm->nsm", root[design.class_of_pattern[design.pattern]], z)
    else:
        e = np.einsum("st,ntm->nsm", root, z)
    return (
        fitted(design, theta, lambda term, _: with_fixed or term.kind == "random")
        + e / np.sqrt(design.weight)[:, None, None]
    )


def _solutions(evaluation: Evaluation, y: np.ndarray) -> dict[str, np.ndarray]:
    """Term -> (q, k, m) solutions from records y (n, T, m) of the evaluation."""
    engine = evaluation.engine
    b = engine.weighted_sums(y[engine.equations.records.record])
    solved = engine.split(evaluation.solutions(b, SIMULATION_TOLERANCE))
    out = {}
    for term, lists, solution in zip(evaluation.design.terms, engine.equations.terms, solved, strict=True):
        out[term.name] = np.empty(solution.shape)
        out[term.name][lists.code] = solution
    return out
