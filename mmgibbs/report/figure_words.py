"""The figures in words, for everyone and for those who do not see them."""

from __future__ import annotations

import numpy as np

from mmgibbs.report.findings import MIXING, ORDER, RHAT
from mmgibbs.report.html_tables import counted, decimals, figure, interval, known, listed, number

LOW_CORRELATION = 0.1  # between draws: from here on they are taken as independent


def chosen_words(total: int, worst: int, heritabilities: int) -> str:
    """Describe which of `total` parameters have figures.

    These are the `worst` by mixing, then so many heritabilities that mix better.
    """
    if worst == total:
        return f"{ORDER}."
    better = {0: "", 1: ", and after them 1 heritability that mixes better"}.get(
        heritabilities, f", and after them {heritabilities:,} heritabilities that mix better"
    )
    return (
        f"Of {total:,} parameters these are the {worst:,} that mix worst, the worst first{better}; draws.nc has all of "
        f"them. How well a parameter mixes is told {MIXING}."
    )


def key_of_figures(chains: int, interval: bool) -> dict[str, str]:
    """Heading of a figure of chains -> what its lines are; interval: the density has one."""
    legend, several = "one line for each chain" if chains > 1 else "", chains > 1
    parts = ["thick line: all chains", "thin lines: each chain"] if several else []
    parts += ["shaded: 95\u00a0% interval"] if interval else []
    return {
        "Trace": legend,
        "Ranks by chain": "dashed: where chains agree",
        "Autocorrelation": legend,
        "Posterior density": "; ".join([*parts, "dashed: mean"]),
    }


def trace_words(draws: np.ndarray, row: dict) -> str:
    means, places = draws.mean(axis=1), decimals(row["sd"])
    n = counted(draws.shape[0], "chain")
    spread = (
        f"their means run from {number(means.min(), places)} to {number(means.max(), places)}"
        if len(means) > 1
        else f"its mean is {number(means[0], places)}"
    )
    verdict = ""
    if known(row["rhat"]):
        verdict = f" R-hat is {row['rhat']:.3f}: " + (
            "the chains have not mixed." if row["rhat"] > RHAT else "the chains agree."
        )
    sd = number(row["sd"], places)
    return f"{n} of {draws.shape[1]:,} kept draws; {spread}, where the posterior SD is {sd}.{verdict}"


def rank_words(shares: np.ndarray) -> str:
    bins = shares.shape[1]
    chain = int(np.abs(shares - 1 / bins).max(axis=1).argmax())
    return (
        f"Share of each chain's draws in {bins} equal classes of rank: from {100 * shares.min():.0f} to "
        f"{100 * shares.max():.0f} % where "
        f"{100 / bins:.0f} % is expected; chain {chain + 1} departs most."
    )


def autocorrelation_words(values: np.ndarray) -> str:
    below = [int(np.argmax(row < LOW_CORRELATION)) for row in values if (row < LOW_CORRELATION).any()]
    last = values.shape[1] - 1
    if len(below) < len(values):
        slow = [str(i + 1) for i, row in enumerate(values) if not (row < LOW_CORRELATION).any()]
        chains = listed(slow)
        return (
            f"Autocorrelation stays above {LOW_CORRELATION} up to lag {last} in chain {chains}: draws far apart are "
            "still alike."
        )
    return f"Autocorrelation falls below {LOW_CORRELATION} at lag {min(below)}" + (
        f" to {max(below)}, by chain." if max(below) > min(below) else " in every chain."
    )


def density_words(row: dict) -> str:
    places = decimals(row["sd"])
    middle = (
        f"Mean {number(row['mean'], places)}, median {number(row['median'], places)}, SD {number(row['sd'], places)}"
    )
    ends = interval(row["hpd_low"], row["hpd_high"], places)
    return middle + (f"; 95 % interval {ends}." if ends else ".")


def histogram_words(values: np.ndarray, what: str = "breeding value", called: str = "animal") -> str:
    """what: of which values, such as 'polygenic value'; called: what has one."""
    places = decimals(values.std())
    low, middle, high = np.percentile(values, (5, 50, 95))
    return (
        f"{what.capitalize()}s of {counted(len(values), called)}: from {number(values.min(), places)} to "
        f"{number(values.max(), places)}, median {number(middle, places)}; "
        f"nine tenths lie between {number(low, places)} and {number(high, places)}."
    )


def birth_year_words(what: str, years: np.ndarray, middle: np.ndarray, band: str) -> str:
    places = decimals(np.ptp(middle) or abs(middle).max())
    top = int(middle.argmax())
    return (
        f"{what} runs from {number(middle[0], places)} in {years[0]} to {number(middle[-1], places)} in {years[-1]}; "
        f"the highest is {number(middle[top], places)} in {years[top]}. {band}"
    )


def slope_words(years: np.ndarray, middle: np.ndarray, draws: np.ndarray | None = None) -> str:
    """The regression of the yearly means on the years; from draws (draws, years) with its interval."""
    if len(years) < 3:
        return ""
    x = (years - years.mean()) / ((years - years.mean()) ** 2).sum()
    slope = float(middle @ x)
    sentence = f"The regression of the yearly means on the year is {figure(slope, 2)} a year"
    if draws is None:
        return f"{sentence}."
    low, high = np.percentile(draws @ x, (2.5, 97.5))
    return f"{sentence} (95 % interval {interval(low, high, decimals(high - low))})."
