"""The LR method by sampling: breeding values from a chain of all records and from one without some of them.

w and p are posterior means, of whole and of partial data, in any model: of SNP effects, and of traits that are not
normal, whose breeding values are those of the liability (with a residual variance of 1, and counts on the log scale).
Whatever the likelihood, p is the mean of w over the records that p has not seen, given those that it has,

    E(w | partial data) = E(E(u | whole data) | partial data) = E(u | partial data) = p,

so that bias is expected 0 and dispersion 1 where the model, its priors included, is the one that made the records; and
the variance of w given the partial data is, of any contrast k,

    var(k'w | partial data) = var(k'u | partial data) - E(var(k'u | whole data) | partial data),

which gives the standard errors of bias (k = 1/n) and dispersion (k of the regression on p) from the draws of the two
chains, as the inverse equations give them for BLUP (lr.py). The chains' Monte Carlo error is added, and taken out of
the variances of w and p by which the statistics divide. The other standard errors are a bootstrap of half-sib families.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mmgibbs.data.genotypes.imputed import MOST_SOLVED
from mmgibbs.model.design import Design
from mmgibbs.validation.lr import EXPECTED, Compared, bootstrap, family_sums, lr_statistics, samples_left_out
from mmgibbs.validation.values import BreedingValue, FollowedValue, Left

MUCH = 0.05  # of the variance of p: from this share on Monte Carlo error is worth a note


def compare(
    design: Design,
    values: Sequence[BreedingValue],
    whole: Sequence[FollowedValue],
    partial: Sequence[FollowedValue],
    parameters: Mapping[str, np.ndarray],
    matrices: Mapping[int, str],
    family: np.ndarray,
    seed: int,
) -> list[Compared]:
    """The LR statistics of each kind of breeding value.

    parameters: draws of the whole data, name -> (draws, ...); matrices: term -> name of its covariance matrix among
    them. family: (n,) of the focal animals.
    """
    rng, out = np.random.default_rng([seed, 1]), []
    known: Left = {}
    for value, w, p in zip(values, whole, partial, strict=True):
        variance = value.variance(design, parameters, matrices, known)
        sums = without_noise(family_sums(w.mean, p.mean, family[value.animals]), w.noise, p.noise)
        found = {k: float(v) for k, v in lr_statistics(sums.sum(axis=0), variance).items()}
        drawn, left_out = bootstrap(sums, variance, rng)
        own = errors_of_contrasts(w, p)
        sd = drawn | own
        notes = [*_notes(found, sd, p, variance), *samples_left_out(found, sd, left_out, own)]
        labelled = tuple(f"{value.label}: {note}" for note in notes)
        names = value.term, value.effect, value.trait
        out.append(Compared(*names, w.mean, p.mean, found, sd, dict(EXPECTED), frozenset(EXPECTED), labelled))
    return out


def without_noise(sums: np.ndarray, of_whole: float, of_partial: float) -> np.ndarray:
    """Family sums (families, 6) of 1, w, p, w^2, p^2, w p, less what Monte Carlo error adds to the squares."""
    out = sums.copy()
    out[:, 3] -= sums[:, 0] * of_whole
    out[:, 4] -= sums[:, 0] * of_partial
    return out


def errors_of_contrasts(w: FollowedValue, p: FollowedValue) -> dict[str, float]:
    """Standard errors of bias and dispersion given p; NaN where the chains are too short to tell."""
    n, deviation = p.mean.size, p.mean - p.mean.mean()
    squares = float((deviation**2).sum()) - n * p.noise
    out = {"bias": _error(w, p, np.full(n, 1 / n)), "dispersion": np.nan}
    if squares > 0:
        out["dispersion"] = _error(w, p, deviation / squares)
    return out


def _error(w: FollowedValue, p: FollowedValue, k: np.ndarray) -> float:
    """Standard deviation of k'w given the partial data, with the Monte Carlo error of k'w and k'p."""
    of_whole, of_partial = w.draws @ k, p.draws @ k
    variance = of_partial.var(ddof=1) - of_whole.var(ddof=1)
    variance += error_of_mean(of_whole) ** 2 + error_of_mean(of_partial) ** 2
    return float(np.sqrt(variance)) if variance > 0 else np.nan


def error_of_mean(draws: np.ndarray) -> float:
    """Monte Carlo standard error of the mean of (draws,), from as many batches as each has draws."""
    batches = max(2, int(np.sqrt(draws.size)))
    length = draws.size // batches
    means = draws[: batches * length].reshape(batches, length).mean(axis=1)
    return float(means.std(ddof=1) / np.sqrt(batches))


def _notes(found: Mapping[str, float], sd: Mapping[str, float], p: FollowedValue, variance: float) -> list[str]:
    notes, of_p = [], float(p.mean.var())
    if np.isnan(found["dispersion"]):
        notes.append("breeding values from partial data vary by no more than their Monte Carlo error")
    notes += [
        f"no standard error of {name}: the draws do not vary less with all records than without some; needed more "
        "sampler.samples"
        for name in EXPECTED
        if np.isnan(sd[name]) and np.isfinite(found[name])
    ]
    if np.isnan(variance):
        notes.append(
            "no accuracy: the relationships of the focal animals are not known (a file has their inverse alone, or "
            f"genotypes of more than {MOST_SOLVED:,} of them are predicted)"
        )
    elif np.isnan(found["accuracy"]) and found["dispersion"] < 0:
        notes.append("no accuracy: breeding values from whole and from partial data have a negative covariance")
    if of_p > 0 and p.noise > MUCH * of_p:
        notes.append(
            f"Monte Carlo error makes up {100 * p.noise / of_p:.0f} % of the variance of the values from partial data; "
            "needed more sampler.samples"
        )
    return notes
