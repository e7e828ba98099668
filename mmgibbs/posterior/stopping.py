"""Good enough to stop: the targets of `sampler.stop`, checked against the draws of all chains so far.

    rhat        rank-normalised split R-hat of every parameter at most this
    ess         bulk and tail effective sample size of every parameter at least this
    mcse        Monte Carlo standard error of the mean of every parameter at most this, in its own unit
    mcse_ebv    Monte Carlo standard error of every breeding value, by batch means over all chains (moments.py), at
                most this fraction of its posterior standard deviation: 0.05 is the same as 400 effective draws of each

Parameters are those of summary.csv that a pattern names, `*` standing for any text: `h2[*]`, `beta[*]`, `*`. Those that
never change do not count. The chains know nothing of all this: they pause at set numbers of sweeps (`pauses`), and
continue or not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mmgibbs.posterior.diagnostics import diagnose
from mmgibbs.posterior.moments import PooledMoments

EVERY = ("*",)
_WORDS = {
    "rhat": ("largest R-hat", "at most"),
    "ess": ("smallest effective sample size", "at least"),
    "mcse": ("largest Monte Carlo standard error", "at most"),
    "mcse_ebv": ("largest MCSE of a breeding value, in its posterior SD,", "at most"),
}
_SHOWN = {"rhat": ".4f", "ess": ",.0f"}
NOTHING_MOVES = "no parameter moves"


@dataclass(frozen=True)
class Wanted:
    """A target."""

    name: str  # 'rhat' | 'ess' | 'mcse' | 'mcse_ebv'
    needed: float
    patterns: tuple[str, ...] = EVERY  # of the parameters that it is about

    @property
    def key(self) -> str:
        """Key of the target in `sampler.stop`."""
        return f"mcse.{self.patterns[0]}" if self.name == "mcse" else self.name


@dataclass(frozen=True)
class Target:
    """A target, and the quantity that is farthest from it."""

    wanted: Wanted
    found: float  # NaN where it cannot be known yet
    at: str  # the parameter, or the level

    @property
    def met(self) -> bool:
        needed = self.wanted.needed
        return self.found >= needed if self.wanted.name == "ess" else self.found <= needed

    @property
    def fact(self) -> str:
        what, bound = _WORDS[self.wanted.name]
        return f"{what} {self._shown} ({self.at}), needed {bound} {self.wanted.needed:g}"

    @property
    def _shown(self) -> str:
        if np.isnan(self.found):
            return "unknown"
        return format(self.found, _SHOWN.get(self.wanted.name, ".3g"))

    def __str__(self) -> str:
        return f"{self.fact}: {'met' if self.met else 'missed'}"


def matching(patterns: Iterable[str], names: Iterable[str]) -> list[str]:
    """The names that one of the patterns fits, in their order; `*` matches any text, all else itself."""
    expressions = [re.compile(".*".join(map(re.escape, pattern.split("*"))), re.DOTALL) for pattern in patterns]
    return [name for name in names if any(e.fullmatch(name) for e in expressions)]


def assess(
    wanted: Iterable[Wanted],
    parameters: Mapping[str, np.ndarray],
    error_of_breeding_values: Callable[[], tuple[float, str]] | None = None,
) -> list[Target]:
    """A Target for each of `wanted`.

    parameters: name -> (chains, draws) of the parameters that are sampled; error_of_breeding_values: for mcse_ebv, the
    largest MCSE / SD and whose it is.
    """
    wanted = list(wanted)
    about = matching((p for w in wanted if w.name != "mcse_ebv" for p in w.patterns), parameters)
    rows = {name: diagnose(parameters[name]) for name in about}
    moving = {name: row for name, row in rows.items() if row["sd"] != 0}
    out = []
    for w in wanted:
        if w.name == "mcse_ebv":
            assert error_of_breeding_values is not None
            out.append(Target(w, *error_of_breeding_values()))
        else:
            values = {name: _value(w.name, moving[name]) for name in matching(w.patterns, moving)}
            out.append(Target(w, *_worst(values, min if w.name == "ess" else max)))
    return out


def _value(name: str, row: Mapping[str, float]) -> float:
    """Return the figure of a parameter that a target asks for; `ess` is the smaller of bulk and tail."""
    return float(np.minimum(row["ess_bulk"], row["ess_tail"])) if name == "ess" else row[name]


def _worst(values: Mapping[str, float], extreme: Callable[..., str]) -> tuple[float, str]:
    """Return value and name of the worst; one that is unknown is worse than any."""
    if not values:
        return np.nan, NOTHING_MOVES
    unknown = [name for name, value in values.items() if np.isnan(value)]
    worst = unknown[0] if unknown else extreme(values, key=values.__getitem__)
    return values[worst], worst


def largest_error(
    moments: PooledMoments, terms: Sequence[int], label: Callable[[int, int, int], str]
) -> tuple[float, str]:
    """Find the largest MCSE / SD over the levels of some terms, and its level; levels that never move do not count."""
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
