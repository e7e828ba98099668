"""Good enough to stop: the targets of `sampler.stop`, held against the draws of all chains so far.

    rhat        rank-normalised split R-hat of every variance parameter at most this
    ess         bulk and tail effective sample size of every variance parameter at least this
    mcse_ebv    Monte Carlo standard error of every breeding value, by batch means over all chains (moments.py), at
                most this fraction of its posterior standard deviation: 0.05 is the same as 400 effective draws of each

Variance parameters are those of summary.csv that are not held fixed: variances, covariances and what follows from them.
The chains know nothing of all this: they pause at set numbers of sweeps (`pauses`), and go on or not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mmgibbs.posterior.diagnostics import diagnose
from mmgibbs.posterior.moments import PooledMoments

_WORDS = {
    "rhat": ("largest R-hat", "at most"),
    "ess": ("smallest effective sample size", "at least"),
    "mcse_ebv": ("largest MCSE of a breeding value, in its posterior SD,", "at most"),
}


@dataclass(frozen=True)
class Target:
    """One target, and what stands farthest from it."""

    name: str  # 'rhat' | 'ess' | 'mcse_ebv'
    needed: float
    found: float  # NaN where it cannot be known yet
    at: str  # the parameter, or the level

    @property
    def met(self) -> bool:
        return self.found >= self.needed if self.name == "ess" else self.found <= self.needed

    @property
    def fact(self) -> str:
        what, bound = _WORDS[self.name]
        found = (
            "unknown" if np.isnan(self.found) else f"{self.found:,.0f}" if self.name == "ess" else f"{self.found:.3g}"
        )
        if self.name == "rhat" and not np.isnan(self.found):
            found = f"{self.found:.4f}"
        return f"{what} {found} ({self.at}), needed {bound} {self.needed:g}"

    def __str__(self) -> str:
        return f"{self.fact}: {'met' if self.met else 'missed'}"


def judge(
    wanted: Mapping[str, float],
    parameters: Mapping[str, np.ndarray],
    moments: PooledMoments,
    breeding_values: Sequence[int],
    label: Callable[[int, int, int], str],
) -> list[Target]:
    """A Target for each of `wanted` (name -> needed).

    parameters: name -> (chains, draws) of the variance parameters that are sampled; breeding_values: terms of `moments`
    whose levels count for mcse_ebv; label(term, level, component): what a level is called.
    """
    out = []
    rows = {name: diagnose(draws) for name, draws in parameters.items()} if {"rhat", "ess"} & set(wanted) else {}
    for name, needed in wanted.items():
        if name == "rhat":
            out.append(Target(name, needed, *_worst({p: row["rhat"] for p, row in rows.items()}, max)))
        elif name == "ess":
            least = {p: float(np.minimum(row["ess_bulk"], row["ess_tail"])) for p, row in rows.items()}
            out.append(Target(name, needed, *_worst(least, min)))
        else:
            out.append(Target(name, needed, *largest_error(moments, breeding_values, label)))
    return out


def _worst(values: Mapping[str, float], extreme) -> tuple[float, str]:
    unknown = [name for name, value in values.items() if np.isnan(value)]
    worst = unknown[0] if unknown else extreme(values, key=values.__getitem__)
    return values[worst], worst


def largest_error(moments: PooledMoments, terms: Sequence[int], label) -> tuple[float, str]:
    """The largest MCSE / SD over the levels of some terms, and whose it is; levels that never move do not count."""
    worst, at = 0.0, "no level moves"
    for i in terms:
        sd, mcse = moments.sd[i], moments.mcse[i]
        ratio = np.divide(mcse, sd, out=np.zeros_like(sd), where=sd != 0)  # NaN where a number is not known yet
        level, component = np.unravel_index(np.argmax(ratio), ratio.shape)  # the first NaN, where there is one
        if not ratio[level, component] <= worst:
            worst, at = float(ratio[level, component]), label(i, int(level), int(component))
        if np.isnan(worst):
            break
    return worst, at


def pauses(first: int, most: int, thin: int) -> tuple[int, ...]:
    """Sweeps after burn-in at which chains pause to be judged: `first`, then a tenth more each time, up to `most`."""
    out = [first]
    while out[-1] < most:
        step = -(-max(out[-1] // 10, 1) // thin) * thin
        out.append(min(most, out[-1] + step))
    return tuple(out)
