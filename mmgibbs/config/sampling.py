"""How the posterior is computed, and where it goes: sections `sampler` and `output`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Self

from pydantic import model_validator
from pydantic_core import PydanticCustomError

from mmgibbs.config.fields import (
    TEXT,
    Interval,
    Problems,
    Section,
    a_boolean,
    a_name,
    a_path,
    a_text,
    accepted_by,
    accepts,
    an_interval,
    any_of,
    auto_or_boolean,
    checked,
    expected,
    list_of,
    number,
    one_of,
    unless,
    whole_number,
    wrong,
)  # fmt: skip
from mmgibbs.config.text import is_nothing

# What is left of the error, in posterior standard deviations for gibbs. Measured against 1e-13 at
# this value: no level of the simdata evaluation (4,807 equations) is off by more than 3e-7 of its standard deviation,
# none of the beef sample (15,195) by more than 5e-6, where ten thousand draws know a mean to 1e-2. Three digits less
# save a quarter to two fifths of the iterations and leave 5e-4 and 3e-3, which a long chain begins to see.
# For reml the distance to the maximum, in standard errors of the estimates.
TOLERANCES = {"blup": 1e-12, "gibbs": 1e-8, "reml": 1e-5}  # by method
WORD = 2**32  # seeds, chains and sweeps are words of the random-number counter
SavedLevels = tuple[str, ...] | dict[str, tuple[str, ...] | None]  # terms; or term -> ids, None: every level
MARKER_DRAWS = 200  # of SNP effects: 40 MB for 50,000 SNPs; at least half of them are kept, see posterior/thinned.py
TEN_MINUTES = Interval(10.0, "minutes")


@accepts(any_of({"const": "never"}, accepted_by(an_interval)))
def _checkpoint_every(value: object) -> Interval | str:
    if is_nothing(value):
        return TEN_MINUTES
    return "never" if isinstance(value, str) and value == "never" else an_interval(value)


_MCSE = "a mapping from patterns of parameters to errors in the unit of each, such as {'h2[*]': 0.01}"


@accepts({"type": "object", "additionalProperties": {"type": "number", "exclusiveMinimum": 0}})
def _mcse(value: object) -> dict[str, float]:
    if not isinstance(value, dict) or not value:
        raise expected(value, _MCSE)
    problems, error = Problems(), number("a number above 0", above=0)
    out: dict[str, float] = {}
    for pattern, needed in value.items():
        try:
            out[a_text("a pattern")(pattern)] = error(needed)
        except PydanticCustomError as wrong_one:
            problems.add((str(pattern),), wrong_one.message())
    problems.refuse()
    return out


class Stop(Section):
    """Targets at which the chains stop: checked after `samples` sweeps, then after every further tenth.

    rhat and ess: of the parameters that `parameters` names, by patterns in which `*` matches any text; absent, of
    all. mcse: pattern -> error. mcse_ebv: of every breeding value, as a fraction of its posterior SD.
    """

    rhat: Annotated[float | None, checked(number("a number above 1, such as 1.01", above=1))] = None
    """R-hat of every parameter is at most this, such as 1.01."""

    ess: Annotated[float | None, checked(number("a number above 0, such as 400", above=0))] = None
    """Effective sample sizes (bulk and tail) of every parameter are at least this, such as 400."""

    mcse: Annotated[dict[str, float] | None, checked(_mcse)] = None
    """Pattern of parameters -> largest Monte Carlo error of each of them, in its unit."""

    mcse_ebv: Annotated[
        float | None, checked(number("a number between 0 and 1: a fraction of the posterior SD", above=0, below=1))
    ] = None
    """Largest Monte Carlo error of every breeding value, as a fraction of its posterior standard deviation."""

    parameters: Annotated[
        tuple[str, ...] | None, checked(list_of(a_text("a pattern"), "a list of patterns of parameters"))
    ] = None
    """Patterns of the parameters for rhat and ess; `*` matches any text. Default: all."""

    max_samples: Annotated[int | None, checked(whole_number(1))] = None
    """Largest number of sweeps after burn-in. Default: ten times samples."""

    @property
    def targets(self) -> tuple[tuple[str, float, tuple[str, ...]], ...]:
        """(name, needed, patterns of the parameters) of each."""
        patterns = self.parameters or ("*",)
        of_parameters = [(name, getattr(self, name), patterns) for name in ("rhat", "ess")]
        errors = [("mcse", needed, (pattern,)) for pattern, needed in (self.mcse or {}).items()]
        of_levels = [("mcse_ebv", self.mcse_ebv, ("*",))]
        return tuple(target for target in (*of_parameters, *errors, *of_levels) if target[1] is not None)

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if not self.targets:
            raise wrong("found no target, needed one or more of rhat, ess, mcse, mcse_ebv")
        if self.parameters is not None and self.rhat is None and self.ess is None:
            raise wrong("found parameters without rhat or ess, which they are for; needed one of them")
        return self


class Sampler(Section):
    """How the posterior is computed."""

    @classmethod
    def unknown_key(cls, key: str) -> str:
        if key == "joint_variances":
            return "is not a key any more; use engine: marginal, which draws variances jointly, or take the key out"
        return super().unknown_key(key)

    method: Annotated[str, checked(one_of("gibbs", "blup", "reml"))] = "gibbs"
    """gibbs: draws from the posterior; reml: restricted maximum likelihood; blup: solutions at given variances."""

    chains: Annotated[int, checked(whole_number(1, WORD - 1))] = 4
    """Number of chains. R-hat needs at least two."""

    burn_in: Annotated[int, checked(whole_number(0))] = 2000
    """Sweeps of each chain that are dropped at its start."""

    samples: Annotated[int, checked(whole_number(1))] = 10_000
    """Sweeps of each chain after burn-in."""

    thin: Annotated[int, checked(whole_number(1))] = 10
    """Number of sweeps between draws that are kept."""

    seed: Annotated[int, checked(whole_number(0, WORD - 1))] = 42
    """Seed of the random numbers: the same seed and file give the same draws."""

    engine: Annotated[str, checked(one_of("auto", "serial", "hybrid", "structured", "pcg", "marginal"))] = "auto"
    """What draws effects and variances; auto: what is estimated, from counts alone, to give most effective draws a
    second: serial, structured or marginal."""

    partition: Annotated[str, checked(one_of("auto", "effect", "equal", "colour"))] = "auto"
    """How equations are put into blocks; auto: what suits the engine best."""

    update: Annotated[str, checked(one_of("level", "site"))] = "level"
    """level: all effects of a level are drawn at once; site: one at a time."""

    device: Annotated[str, checked(one_of("auto", "cpu", "gpu"))] = "auto"
    """auto and cpu: the CPU, so that a file gives the same bits on every machine; gpu: an NVIDIA GPU."""

    threads: Annotated[int | None, checked(unless("auto", whole_number(1, 10_000)))] = None
    """Threads of the whole run; auto: every core. Default: auto."""

    precision: Annotated[str, checked(one_of("double", "single"))] = "double"
    """Floating-point precision of the location effects."""

    interweave: Annotated[str | bool, checked(auto_or_boolean)] = "auto"
    """Draw covariance matrices a second time given standardised effects, which mixes faster."""

    refresh_every: Annotated[int, checked(whole_number(1))] = 1000
    """Sweeps between two computations of the residuals from scratch."""

    checkpoint_every: Annotated[Interval | str, checked(_checkpoint_every)] = TEN_MINUTES
    """How often a run saves its state: a number of sweeps, minutes such as 10m, or never. Of minutes, the
    first ones come sooner: after 1, then 2 more, 4 more and so on, up to that time."""

    stop: Stop | None = None
    """Targets at which the chains stop. Default: after `samples` sweeps."""

    tolerance: Annotated[float | None, checked(number("a number between 0 and 1", above=0, below=1))] = None
    """Largest error that may remain. Default: 1e-8 posterior standard deviations for engine pcg, a relative residual
    of 1e-12 for blup, 1e-5 standard errors for reml."""

    preconditioner: Annotated[str, checked(one_of("auto", "absorption", "blocks"))] = "auto"
    """What makes the iteration of blup converge. absorption: animals without progeny are absorbed into their parents
    (or the levels of another effect, where these are more); blocks: diagonal blocks of the levels alone; auto:
    absorption where the effects allow it."""

    pev_limit: Annotated[int | None, checked(unless("auto", whole_number(0)))] = None
    """Equations up to which blup computes prediction error variances; auto: where that is estimated to take minutes at
    most, mostly up to several hundred thousand equations. Default: auto."""

    pev_samples: Annotated[int | None, checked(whole_number(20))] = None
    """Where blup does not compute prediction error variances (pev_limit): the number of samples from which it estimates
    them, each with its standard error. Default: none, and they are blank."""

    max_iterations: Annotated[int, checked(whole_number(1))] = 100
    """Largest number of iterations of reml."""

    @property
    def most_samples(self) -> int:
        """Sweeps after burn-in at most."""
        return self.samples if self.stop is None else self.stop.max_samples or 10 * self.samples

    @model_validator(mode="after")
    def _agree(self) -> Self:
        problems = Problems()
        if self.thin > self.samples:
            problems.add(
                ("thin",), f"found {self.thin}, needed at most sampler.samples ({self.samples}), or no draw is kept"
            )
        if self.burn_in + self.most_samples >= WORD:
            problems.add(
                ("samples",), f"found {self.burn_in + self.most_samples} sweeps with burn_in, needed fewer than {WORD}"
            )
        if self.stop is not None:
            self._check_stop(self.stop, problems)
        if self.partition == "effect" and self.update == "level":
            problems.add(
                ("partition",),
                "found effect, which draws the effects of a level separately and cannot be combined with "
                "update: level; needed update: site, or partition: colour or equal",
            )
        if self.engine == "structured" and self.partition == "effect":
            problems.add(
                ("partition",),
                "found effect, which cannot be combined with engine: structured; needed colour or auto, or engine: "
                "serial or hybrid",
            )
        if self.engine == "serial" and self.device == "gpu":
            problems.add(("device",), "found gpu, which cannot be combined with engine: serial; needed cpu or auto")
        self._check_engine(problems)
        if self.preconditioner != "auto" and self.method != "blup":
            problems.add(
                ("preconditioner",),
                f"found {self.preconditioner}, which cannot be combined with method: {self.method}; needed auto, or "
                "method: blup",
            )
        if self.pev_samples is not None and self.method != "blup":
            why = "which computes every PEV" if self.method == "reml" else "whose draws know every PEV"
            problems.add(
                ("pev_samples",),
                f"found {self.pev_samples}, which cannot be combined with method: {self.method}, {why}; needed "
                "method: blup",
            )
        if self.method == "reml":
            self._check_reml(problems)
        elif self.engine == "marginal" and self.method == "gibbs":
            self._check_marginal(problems)
        if self.method == "blup" and self.engine not in ("auto", "pcg"):
            problems.add(
                ("engine",), f"found {self.engine}, which cannot be combined with method: blup; needed pcg or auto"
            )
        problems.refuse()
        return self

    def _check_engine(self, problems: Problems) -> None:
        """What one engine takes cannot be combined with another, which would drop it."""
        solves = self.method != "gibbs" or self.engine == "pcg"
        exact = solves or self.engine == "marginal"
        what = f"method: {self.method}" if self.method != "gibbs" else f"engine: {self.engine}"
        if exact and self.update == "site":
            why = "which draws nothing" if self.method != "gibbs" else "which draws all levels at once"
            problems.add(("update",), f"found site, which cannot be combined with {what}, {why}; needed level")
        if self.tolerance is not None and not solves:
            problems.add(
                ("tolerance",),
                f"found {self.tolerance:g}, which cannot be combined with {what}, which solves nothing; "
                "needed engine: pcg, or method: blup or reml",
            )
        if self.engine in ("pcg", "marginal"):
            self.refuse_threads(problems)

    def refuse_threads(self, problems: Problems, place: tuple[str, ...] = ()) -> None:
        """Of an engine that runs on one thread."""
        if self.method == "gibbs" and (self.threads or 1) > 1:
            problems.add(
                (*place, "threads"),
                f"found {self.threads}, which cannot be combined with engine: {self.engine}, which runs on one thread; "
                "needed 1 or auto, or engine: structured or hybrid",
            )

    def _check_marginal(self, problems: Problems) -> None:
        """It factorises the equations on the CPU, in double precision, and draws variances without their effects."""
        for key, found, needed in (
            ("precision", self.precision, "double"),
            ("device", "gpu" if self.device == "gpu" else "cpu", "cpu"),
            ("interweave", "true" if self.interweave is True else "auto", "auto"),
        ):
            if found != needed:
                problems.add((key,), f"found {found}, which cannot be combined with engine: marginal; needed {needed}")

    def _check_reml(self, problems: Problems) -> None:
        """REML factorises the equations on the CPU, in double precision."""
        for key, found, needed in (
            ("engine", self.engine, "auto"),
            ("precision", self.precision, "double"),
        ):
            if found != needed:
                problems.add((key,), f"found {found}, which cannot be combined with method: reml; needed {needed}")
        if self.device == "gpu":
            problems.add(("device",), "found gpu, which cannot be combined with method: reml; needed cpu or auto")

    def _check_stop(self, stop: Stop, problems: Problems) -> None:
        if self.method != "gibbs":
            problems.add(
                ("stop",),
                f"cannot be combined with method: {self.method}, which draws nothing; needed method: gibbs",
            )
        if stop.rhat is not None and self.chains < 2:
            problems.add(("stop", "rhat"), "found chains: 1, needed at least two chains, which R-hat compares")
        if self.most_samples < self.samples:
            problems.add(
                ("stop", "max_samples"),
                f"found {stop.max_samples}, needed at least sampler.samples ({self.samples}), "
                "after which the targets are checked first",
            )


_LEVELS = any_of(
    TEXT,
    {
        "type": "object",
        "additionalProperties": {"anyOf": [{"type": ["array", "null"], "items": TEXT}, {"const": "all"}]},
    },
)


@accepts(any_of(_LEVELS, {"type": "array", "items": _LEVELS}))
def _save_levels(value: object) -> SavedLevels:
    """A tuple of terms (every level), or term -> ids where ids are chosen; None or all in place of ids: every level."""
    needed = "a list of terms, or of TERM: [ids]"
    entries = value if isinstance(value, list) else [value]
    chosen: dict[str, tuple[str, ...] | None] = {}
    problems = Problems()
    for entry in entries:
        if isinstance(entry, str):
            entry = {entry: None}
        if not isinstance(entry, dict):
            raise expected(entry, needed)
        for term, ids in entry.items():
            if term in chosen:
                problems.add((term,), "found twice, needed once")
            try:
                whole = is_nothing(ids) or ids == "all"
                chosen[str(term)] = None if whole else list_of(a_text("an id"), "a list of ids")(ids)
            except PydanticCustomError as error:
                problems.add((term,), error.message())
    problems.refuse()
    return chosen if any(ids is not None for ids in chosen.values()) else tuple(chosen)


class Output(Section):
    """The run folder."""

    directory: Annotated[Path | None, checked(a_path)] = None
    """The run folder; a relative path starts where the command runs. Default: runs/NAME."""

    save_levels: Annotated[SavedLevels, checked(_save_levels)] = ()
    """Terms whose draws are kept: names, or TERM: [ids] for some levels and TERM: all for every one."""

    probabilities: Annotated[tuple[str, ...], checked(list_of(a_name, "names of traits", empty=True))] = ()
    """Traits of which every animal gets the probability of each category, or its expected count."""

    moments: Annotated[tuple[str, ...], checked(list_of(a_name, "names of traits", empty=True))] = ()
    """Traits of which mean, variance of the fixed effects, CV_A and evolvability are reported."""

    save_marker_draws: Annotated[int | None, checked(whole_number(0))] = None
    """Draws of SNP effects to keep over all chains, at most. Default: 200 where the model has SNP effects."""

    csv: Annotated[str, checked(one_of("auto", "always", "never"))] = "auto"
    """auto: solutions.csv and decisions.csv up to a million rows; always: whatever their size; never: parquet alone."""

    escape_formulas: Annotated[bool, checked(a_boolean)] = False
    """In csv files, put an apostrophe before text that spreadsheets take for a formula (it begins with = + - @)."""
