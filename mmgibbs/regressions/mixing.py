"""Whether the draws of a fit are enough to be used: a warning names the parameters whose draws are not.

Diagnoses take milliseconds for each parameter, and there may be a million. So all are first put in order by how far
means of batches vary, and those alone that mix worst are diagnosed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mmgibbs.posterior.diagnostics import MIN_DRAWS_PER_CHAIN, diagnose
from mmgibbs.regressions.protocol import Parameter

MAX_RHAT, MIN_ESS = 1.05, 100  # limits, as of the report
MAX_NAMED_PARAMETERS = 3  # in a warning
PARAMETERS_AT_A_TIME = 512  # whose batch means are in memory


def describe_doubtful_draws(
    draws: Mapping[str, np.ndarray],
    parameters: Mapping[str, Parameter],
    coords: Mapping[str, Sequence],
    samples: int,
    burn_in: int,
) -> str:
    """Write a warning; '' where R-hat, as far as there are several chains, and effective sample sizes are good enough.

    draws: name -> (chains, draws, ...); samples, burn_in: of the fit.
    """
    kept = next((values.shape[1] for values in draws.values()), 0)
    if kept < MIN_DRAWS_PER_CHAIN:
        return (
            f"few effective draws: {kept} kept of each chain, needed {MIN_DRAWS_PER_CHAIN} to see whether they are "
            f"enough; set samples above {samples}, or a smaller thin"
        )
    said, apart = [], False
    for name, index in _worst(draws):
        row = diagnose(_elements(draws[name], index))
        effective = np.fmin(row["ess_bulk"], row["ess_tail"])
        if row["rhat"] > MAX_RHAT or effective < MIN_ESS:
            apart |= row["rhat"] > MAX_RHAT
            numbers = [(row["rhat"], f"R-hat {row['rhat']:.3f}"), (effective, f"{effective:.0f} effective draws")]
            shown = _label(name, index, draws[name].shape[2:], parameters[name], coords)
            said.append(f"{shown} ({', '.join(text for value, text in numbers if not np.isnan(value))})")
    if not said:
        return ""
    what = "chains have not mixed, or few effective draws" if apart else "few effective draws"
    needed = f"R-hat of at most {MAX_RHAT} and {MIN_ESS}" if apart else f"{MIN_ESS}"
    more = f"samples above {samples}" + (f" and burn_in above {burn_in}" if apart else "")
    return (
        f"{what}, worst of {', '.join(said)}; needed {needed} effective draws: set {more} "
        "(summary() has all parameters)"
    )


def _elements(values: np.ndarray, numbers: int | np.ndarray) -> np.ndarray:
    """Select the elements with these numbers, (chains, draws) or (chains, draws, numbers).

    Draws of classes are not contiguous, so that values.reshape(chains, draws, parameters) would copy them all.
    """
    if values.ndim == 2:
        return values if np.ndim(numbers) == 0 else values[:, :, None]
    of_element: tuple[Any, ...] = np.unravel_index(numbers, values.shape[2:])
    return values[(slice(None), slice(None), *of_element)]


def _worst(draws: Mapping[str, np.ndarray]) -> list[tuple[str, int]]:
    """(name, number among its elements) of the parameters whose batch means vary most for their variance; of two with
    the same draws, such as covariances [a,b] and [b,a], the first."""
    ranked: list[tuple[float, str, int]] = []
    for name, values in draws.items():
        p = int(np.prod(values.shape[2:]))
        for first in range(0, p, PARAMETERS_AT_A_TIME):
            times = _autocorrelation_time(_elements(values, np.arange(first, min(first + PARAMETERS_AT_A_TIME, p))))
            order = np.argsort(-times, kind="stable")[: 2 * MAX_NAMED_PARAMETERS]
            ranked += [(float(times[i]), name, first + int(i)) for i in order if times[i] > 0]
    worst: list[tuple[str, int]] = []
    seen: list[np.ndarray] = []
    for _, name, i in sorted(ranked, key=lambda entry: -entry[0]):
        if len(worst) == MAX_NAMED_PARAMETERS:
            break
        element_draws = _elements(draws[name], i)
        if not any(np.allclose(element_draws, seen_draws, rtol=1e-9, atol=0) for seen_draws in seen):
            worst.append((name, i))
            seen.append(element_draws)
    return worst


def _autocorrelation_time(draws: np.ndarray) -> np.ndarray:
    """(p,) of draws (chains, draws, p): variance of the means of batches times their length over that of the draws; 0
    for what never changes."""
    C, n, p = draws.shape
    length = max(1, int(np.sqrt(n)))
    used = n // length * length
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        centred = draws - draws.mean(axis=(0, 1))
        variance = np.mean(centred**2, axis=(0, 1))
        means = centred[:, :used].reshape(C, used // length, length, p).mean(axis=2)
        time = length * np.mean(means**2, axis=(0, 1)) / variance
    moves = np.ptp(draws, axis=(0, 1)) > 1e-14 * np.abs(draws).max(axis=(0, 1))
    return np.where(moves & np.isfinite(time), time, 0.0)


def _label(name: str, index: int, shape: tuple[int, ...], parameter: Parameter, coords: Mapping[str, Sequence]) -> str:
    """beta[name], beta[name,class], as in the summary."""
    if not parameter.dims:
        return name
    place = np.unravel_index(index, shape)
    return f"{name}[{','.join(str(coords[d][int(i)]) for d, i in zip(parameter.dims, place, strict=True))}]"
