"""How the posterior is computed, and where it goes: sections `sampler` and `output`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BeforeValidator, Field, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from mmgibbs.config.fields import (
    NUMBER,
    WHOLE,
    Auto,
    AutoOrBoolean,
    Boolean,
    Choice,
    Count,
    FilePath,
    Fraction,
    Interval,
    ListOf,
    Name,
    Pattern,
    Positive,
    Section,
    Some,
    TermName,
    any_of,
    check_unique,
    read_interval,
    read_list,
)
from mmgibbs.config.messages import Expected, Problems, unexpected, unexpected_text, wrong
from mmgibbs.config.rules import WORD
from mmgibbs.config.text import is_nothing
from mmgibbs.models.engine_kinds import ENGINES, SOLVERS

if TYPE_CHECKING:
    EngineName = str
else:  # made of ENGINES, so that a new engine is one line there
    EngineName = Choice[Literal[("auto", *ENGINES)]]

# What is left of the error, in posterior standard deviations for gibbs. Measured against 1e-13 at
# this value: no level of the simdata evaluation (4,807 equations) is off by more than 3e-7 of its standard deviation,
# none of the beef sample (15,195) by more than 5e-6, where ten thousand draws know a mean to 1e-2. Three digits less
# save a quarter to two fifths of the iterations and leave 5e-4 and 3e-3, which a long chain begins to see.
# For reml the distance to the maximum, in standard errors of the estimates.
TOLERANCES = {"blup": 1e-12, "gibbs": 1e-8, "reml": 1e-5}  # by method
TOLERANCE_OF_SAMPLED_REML = 0.03  # with engine pcg: far below the Monte Carlo error, 0.1 with 100 samples


class SavedFile(Section):
    """The levels whose draws are kept, in a file."""

    file: FilePath
    """A text file with the name of a level on each line."""


# terms; or term -> ids, None: every level
SavedLevels = tuple[str, ...] | dict[str, tuple[str, ...] | SavedFile | None]
MARKER_DRAWS = 200  # of SNP effects: 40 MB for 50,000 SNPs; at least half of them are kept, see posterior/thinned.py
TEN_MINUTES = Interval(10.0, "minutes")


def _read_checkpoint_every(value: object) -> object:
    if is_nothing(value):
        return TEN_MINUTES
    return value if value == "never" else read_interval(value)


_MINUTES = {"type": "string", "pattern": "^[0-9.]+ ?(m|min|minutes)$"}
CheckpointEvery = Annotated[
    Interval | Literal["never"],
    BeforeValidator(_read_checkpoint_every),
    Expected("a number of sweeps such as 500, or minutes such as 10m"),
    WithJsonSchema(any_of({"const": "never"}, {"type": "integer", "minimum": 1}, _MINUTES)),
]
_ERRORS = Expected("a mapping from patterns of parameters to errors in the unit of each, such as {'h2[*]': 0.01}")


class Stop(Section):
    """Targets at which the chains stop: checked after `samples` sweeps, then after every further tenth.

    rhat and ess: of the parameters that `parameters` names, by patterns in which `*` matches any text; absent, of
    all. mcse: pattern -> error. mcse_ebv: of every breeding value, as a fraction of its posterior SD.
    """

    rhat: Annotated[float, Field(gt=1), NUMBER, Expected("a number above 1, such as 1.01")] | None = None
    """R-hat of every parameter is at most this, such as 1.01."""

    ess: Annotated[Positive, Expected("a number above 0, such as 400")] | None = None
    """Effective sample sizes (bulk and tail) of every parameter are at least this, such as 400."""

    mcse: Annotated[dict[Pattern, Positive], Field(min_length=1), _ERRORS] | None = None
    """Pattern of parameters -> largest Monte Carlo error of each of them, in its unit."""

    mcse_ebv: Annotated[Fraction, Expected("a number between 0 and 1: a fraction of the posterior SD")] | None = None
    """Largest Monte Carlo error of every breeding value, as a fraction of its posterior standard deviation."""

    parameters: Annotated[Some[Pattern], Expected("a list of patterns of parameters")] | None = None
    """Patterns of the parameters for rhat and ess; `*` matches any text. Default: all."""

    max_samples: Count | None = None
    """Largest number of sweeps after burn-in. Default: ten times samples."""

    @property
    def targets(self) -> tuple[tuple[str, float, tuple[str, ...]], ...]:
        """(name, needed, patterns of the parameters) of each."""
        patterns = self.parameters or ("*",)
        of_parameters = [(name, getattr(self, name), patterns) for name in ("rhat", "ess")]
        errors = [("mcse", needed, (pattern,)) for pattern, needed in (self.mcse or {}).items()]
        of_levels = [("mcse_ebv", self.mcse_ebv, ("*",))]
        return tuple(target for target in (*of_parameters, *errors, *of_levels) if target[1] is not None)


class Sampler(Section):
    """How the posterior is computed."""

    @classmethod
    def unknown_key(cls, key: str) -> str:
        if key == "joint_variances":
            return "is not a key any more; use engine: marginal, which draws variances jointly, or take the key out"
        return super().unknown_key(key)

    method: Choice[Literal["gibbs", "blup", "reml"]] = "gibbs"
    """gibbs: draws from the posterior; reml: restricted maximum likelihood; blup: solutions at given variances."""

    chains: Annotated[int, Field(ge=1, le=WORD - 1), WHOLE] = 4
    """Number of chains. R-hat needs at least two."""

    burn_in: Annotated[int, Field(ge=0), WHOLE] = 2000
    """Sweeps of each chain that are dropped at its start."""

    samples: Count = 10_000
    """Sweeps of each chain after burn-in."""

    thin: Count = 10
    """Number of sweeps between draws that are kept."""

    seed: Annotated[int, Field(ge=0, le=WORD - 1), WHOLE] = 42
    """Seed of the random numbers: the same seed and file give the same draws."""

    engine: EngineName = "auto"
    """What draws effects and variances; auto: what is estimated, from counts alone, to give most effective draws a
    second: serial, structured or marginal. With method: reml, pcg estimates by Monte Carlo, for equations that are too
    many for a factor."""

    partition: Choice[Literal["auto", "effect", "equal", "colour"]] = "auto"
    """How equations are put into blocks; auto: what suits the engine best."""

    update: Choice[Literal["level", "site"]] = "level"
    """level: all effects of a level are drawn at once; site: one at a time."""

    device: Choice[Literal["auto", "cpu", "gpu"]] = "auto"
    """auto and cpu: the CPU, so that a file gives the same bits on every machine; gpu: an NVIDIA GPU."""

    threads: Auto[Annotated[int, Field(ge=1, le=10_000), WHOLE]] = None
    """Threads of the whole run; auto: every core. Default: auto."""

    precision: Choice[Literal["double", "single"]] = "double"
    """Floating-point precision of the location effects."""

    interweave: AutoOrBoolean = "auto"
    """Draw covariance matrices a second time given standardised effects, which mixes faster."""

    refresh_every: Count = 1000
    """Sweeps between two computations of the residuals from scratch."""

    checkpoint_every: CheckpointEvery = TEN_MINUTES
    """How often a run saves its state: a number of sweeps, minutes such as 10m, or never. Of minutes, the
    first ones come sooner: after 1, then 2 more, 4 more and so on, up to that time."""

    stop: Stop | None = None
    """Targets at which the chains stop. Default: after `samples` sweeps."""

    tolerance: Fraction | None = None
    """Largest error that may remain. Default: 1e-8 posterior standard deviations for engine pcg, a relative residual
    of 1e-12 for blup, 1e-5 standard errors for reml, 0.03 for reml with engine pcg."""

    preconditioner: Choice[Literal["auto", "absorption", "blocks"]] = "auto"
    """What makes the iteration of blup converge. absorption: animals without progeny are absorbed into their parents
    (or the levels of another effect, where these are more); blocks: diagonal blocks of the levels alone; auto:
    absorption where the effects allow it."""

    pev_limit: Auto[Annotated[int, Field(ge=0), WHOLE]] = None
    """Equations up to which blup, or reml with engine pcg, computes prediction error variances; auto: where that is
    estimated to take minutes at most, mostly up to several hundred thousand equations. Default: auto."""

    pev_samples: Annotated[int, Field(ge=20), WHOLE] | None = None
    """Where blup, or reml with engine pcg, does not compute prediction error variances (pev_limit): the number of
    samples from which it estimates them, each with its standard error. Default: none, and they are blank."""

    reml_samples: Annotated[int, Field(ge=10), WHOLE] = 100
    """Simulated data sets from which reml with engine pcg estimates its traces. The Monte Carlo error of an estimate is
    about its standard error divided by the square root of this number: a tenth of it for 100."""

    max_iterations: Count = 100
    """Largest number of iterations of reml."""

    @property
    def most_samples(self) -> int:
        """Sweeps after burn-in at most."""
        return self.samples if self.stop is None else self.stop.max_samples or 10 * self.samples

    @property
    def most_sweeps(self) -> int:
        return self.burn_in + self.most_samples

    @property
    def is_sampled_reml(self) -> bool:
        """REML by Monte Carlo."""
        return self.method == "reml" and self.has_solver

    @property
    def has_solver(self) -> bool:
        """The engine that is named solves the equations."""
        return self.engine in SOLVERS

    @property
    def default_tolerance(self) -> float:
        """The tolerance where the analysis gives none."""
        return TOLERANCE_OF_SAMPLED_REML if self.is_sampled_reml else TOLERANCES[self.method]

    @property
    def has_several_threads(self) -> bool:
        """More than one thread is asked for sampling, which some engines cannot use."""
        return self.method == "gibbs" and (self.threads or 1) > 1

    @property
    def sampling_engine(self) -> str | None:
        """The engine, where something is sampled."""
        return self.engine if self.method == "gibbs" else None


_TEXT = {"type": ["string", "integer"]}
_FILE: dict = {"type": "object", "properties": {"file": {"type": "string"}}, "required": ["file"]}
_IDS = {
    "anyOf": [
        {"type": ["array", "null"], "items": _TEXT},
        {"const": "all"},
        _FILE | {"additionalProperties": False},
    ]
}
_LEVELS = any_of(_TEXT, {"type": "object", "additionalProperties": _IDS})


_NEEDED_IDS = "a list of ids, {file: PATH} with an id on each line, or all"


def _read_saved_levels(value: object) -> SavedLevels:
    """A tuple of terms (every level), or term -> ids where ids are chosen; None or all in place of ids: every level."""
    chosen: dict[str, tuple[str, ...] | SavedFile | None] = {}
    problems = Problems()
    for entry in value if isinstance(value, list) else [value]:
        if not isinstance(entry, (str, dict)):
            raise unexpected(entry, "a list of terms, or of TERM: [ids]")
        for term, ids in entry.items() if isinstance(entry, dict) else [(entry, None)]:
            if term in chosen:
                problems.add((term,), "found twice, needed once")
            try:
                chosen[str(term)] = None if is_nothing(ids) or ids == "all" else _read_ids(ids)
            except PydanticCustomError as error:
                problems.add((term,), error.message())
    problems.refuse()
    return chosen if any(ids is not None for ids in chosen.values()) else tuple(chosen)


def _read_ids(value: object) -> tuple[str, ...] | SavedFile:
    if isinstance(value, SavedFile):
        return value
    if isinstance(value, dict):
        path = value.get("file")
        if list(value) != ["file"] or not isinstance(path, (str, Path)) or not str(path).strip():
            raise unexpected(value, _NEEDED_IDS)
        return SavedFile.model_construct(file=Path(path))
    ids = read_list(value)
    if not isinstance(ids, tuple) or not ids:
        raise unexpected(value, _NEEDED_IDS)
    for i, item in enumerate(ids, 1):
        if not isinstance(item, (str, int)) or isinstance(item, bool) or not str(item).strip():
            raise wrong(f"value {i} of the list: {unexpected_text(item, 'an id')}")
    return check_unique(tuple(map(str, ids)))


class Output(Section):
    """The run folder."""

    directory: FilePath | None = None
    """The run folder; a relative path starts where the command runs. Default: runs/NAME."""

    save_levels: Annotated[
        SavedLevels,
        PlainValidator(_read_saved_levels),
        WithJsonSchema(any_of(_LEVELS, {"type": "array", "items": _LEVELS})),
    ] = ()
    """Terms whose draws are kept: names, or TERM: [ids] for some levels, TERM: {file: PATH} for those of a text file
    with an id on each line, and TERM: all for every one."""

    probabilities: Annotated[ListOf[Name], Expected("names of traits")] = ()
    """Traits of which every animal gets the probability of each category, or its expected count."""

    moments: Annotated[ListOf[Name], Expected("names of traits")] = ()
    """Traits of which mean, variance of the fixed effects, CV_A and evolvability are reported, with method: gibbs."""

    means: Annotated[ListOf[TermName], Expected("names of effects")] = ()
    """Class effects, fixed or random, also interactions such as site:line, whose levels get adjusted means: other class
    effects are averaged over their levels, nested ones within their class, covariates over the records, other random
    effects are 0. With standard errors, and those of differences."""

    save_marker_draws: Annotated[int, Field(ge=0), WHOLE] | None = None
    """Draws of SNP effects to keep over all chains, at most. Default: 200 where the model has SNP effects."""

    snp_effects: Boolean = False
    """Write snp_effects.parquet: effects of SNPs from the breeding values of terms with relationship: genomic or
    single_step, with standard deviations and p values."""

    fitted: Boolean = False
    """Write fitted.csv: observed and fitted value and residual of each observation."""

    csv: Choice[Literal["auto", "always", "never"]] = "auto"
    """auto: solutions.csv and decisions.csv up to a million rows; always: whatever their size; never: parquet alone."""

    escape_formulas: Boolean = False
    """In csv files, put an apostrophe before text that spreadsheets take for a formula (it begins with = + - @)."""
