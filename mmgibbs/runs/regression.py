"""A regression from its analysis: table -> plugin -> chains side by side -> tables of what was found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from mmgibbs.build.targets import StoppingRule, check_patterns, read_targets
from mmgibbs.config import Analysis
from mmgibbs.data.regression import RegressionTable, read_regression
from mmgibbs.errors import ConfigError
from mmgibbs.posterior.draws_file import Group, Variable, write_groups
from mmgibbs.posterior.summary import summary_table
from mmgibbs.regressions.description import Columns
from mmgibbs.regressions.estimator import named_draws
from mmgibbs.regressions.options import (
    Choice,
    OptionsClass,
    fill_options,
    options_in_use,
    read_choices,
    words_of_choices,
)
from mmgibbs.regressions.predictors import read_predictors
from mmgibbs.regressions.protocol import RegressionData, RegressionDraws, Sampler
from mmgibbs.regressions.registry import find_plugin
from mmgibbs.results.tables import summary_frame
from mmgibbs.runs.chains import Executor
from mmgibbs.runs.place import RunFolder
from mmgibbs.runs.problem import Clock, Sampled, Tables, sample
from mmgibbs.runs.progress import Console
from mmgibbs.runs.record import common_record
from mmgibbs.runs.regression_chains import RegressionFactory
from mmgibbs.sampler.schedule import Schedule


@dataclass(frozen=True)
class RegressionProblem:
    """A plugin with its data and options, ready to sample: see problem.Problem."""

    analysis: Analysis
    table: RegressionTable
    factory: RegressionFactory
    described: dict  # {"described": the model in words and symbols}; empty where a plugin has none

    stage = "sampling"

    @property
    def sampler(self) -> Sampler:
        return self.factory.prepared[0]

    @property
    def choices(self) -> dict[str, Choice]:
        """Values of the options that were "auto"."""
        return read_choices(self.sampler)

    def reasons(self) -> dict:
        """Why, for run.json and `check`; empty where nothing was chosen."""
        reasons = {name: f"auto: {choice.why}" for name, choice in self.choices.items()}
        return {"options_chosen_because": reasons} if reasons else {}

    @property
    def notes(self) -> tuple[str, ...]:
        return self.table.notes + self.factory.data.predictors.notes

    def solve(self, folder: RunFolder, console: Console, executor: Executor) -> Sampled:
        stop, rule = self.analysis.sampler.stop, None
        if stop is not None and folder.samples is None:
            rule = StoppingRule(read_targets(stop), self._named, self.factory.schedule.burn_in, console.say)
        return sample(self.factory, folder, console, executor, rule, lambda values: "", self._so_far)

    def tables(self, sampled: Sampled) -> Tables:
        return Tables(
            summary=summary_frame(summary_table(self._named(sampled.results))),
            files={"draws.nc": lambda path: self._write_draws(path, sampled.results[0])},
        )

    def record(self, sampled: Sampled, seconds: dict[str, float]) -> dict:
        arrays = self.factory.prepared[1]
        return {
            **common_record(self.analysis),
            "plugin": self.factory.plugin,
            "options": options_in_use(self.factory.options, self.choices),
            **self.reasons(),
            **self.described,
            "data": self.table.counts,
            "predictor_type": str(self.table.predictors.dtype),
            "device": arrays.device,
            "threads": arrays.threads,
            "chains": self.factory.schedule.chains,
            **sampled.facts,
            "seconds": seconds,
            "warnings": [*self.table.warnings, *sampled.missed],
            "notes": list(self.notes),
        }

    def _so_far(self, draws: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Single parameters first, then coefficients."""
        parameters = {name: p for name, p in self.sampler.parameters.items() if name in draws}
        few_first = dict(sorted(parameters.items(), key=lambda item: len(item[1].dims)))
        return named_draws(draws, few_first, self.sampler.coords)

    def _named(self, results: list[RegressionDraws]) -> dict[str, np.ndarray]:
        return named_draws(results[0].draws, self.sampler.parameters, self.sampler.coords)

    def _write_draws(self, path: Path, draws: RegressionDraws) -> None:
        write_regression_draws(path, draws, self.sampler, {"analysis": self.analysis.name})


def read_problem(analysis: Analysis, samples: int | None = None) -> RegressionProblem:
    """Read the table and make the plugin's sampler. ConfigError, DataError and ModelError say what cannot be used.

    samples: sweeps after burn-in, where those are not for the analysis to say.
    """
    model, s = analysis.model, analysis.sampler
    assert model.plugin is not None, "an analysis of a mixed model"
    options, standardise = _options(analysis, model.plugin)
    table = read_regression(analysis)
    predictors = read_predictors(table.predictors, table.names, standardise)
    data = RegressionData(
        predictors, table.response, ", ".join(table.response_names), table.groups, table.group_predictors
    )
    schedule = Schedule(s.burn_in, s.samples, s.thin, chains=s.chains, most=samples or s.most_samples)
    factory = RegressionFactory(model.plugin, data, options, s.device, s.threads, schedule, s.seed)
    factory.count_device()  # refuses what does not fit
    problem = RegressionProblem(analysis, table, factory, _described(factory.prepared[0], analysis))
    check_patterns(read_targets(s.stop), _parameter_names(problem.sampler))
    return problem


def _options(analysis: Analysis, name: str) -> tuple[OptionsClass, bool]:
    """The plugin's options, and whether predictors are standardised."""
    model, precision = analysis.model, analysis.sampler.precision
    plugin, given = find_plugin(name), dict(model.options)
    standardise = given.pop("standardise", getattr(plugin, "standardise", False))
    if not isinstance(standardise, bool):
        raise ConfigError(f"model.options.standardise: found {standardise!r}, needed true or false")
    if "precision" in getattr(plugin.Options, "__dataclass_fields__", {}):
        given.setdefault("precision", precision)
    elif precision != "double":
        raise ConfigError(
            f"sampler.precision: found {precision}, which cannot be combined with plugin '{name}'; needed double"
        )
    return fill_options(plugin.Options, given), standardise


def _parameter_names(sampler: Sampler) -> list[str]:
    shape = lambda p: (1, 1, *(len(sampler.coords[d]) for d in p.dims))
    empty_draws = {name: np.empty(shape(p)) for name, p in sampler.parameters.items()}
    return list(named_draws(empty_draws, sampler.parameters, sampler.coords))


def read_regression_problem(
    analysis: Analysis, samples: int | None, console: Console, clock: Clock
) -> RegressionProblem:
    """read_problem, and what there is to say of it."""
    problem = read_problem(analysis, samples)
    n, p = problem.table.predictors.shape
    kind, size = problem.table.predictors.dtype, problem.table.predictors.nbytes
    console.say(f"{n:,} records, {p:,} predictors as {kind} ({size / 1e6:,.1f} MB)")
    console.note([*words_of_choices(problem.choices), *problem.notes, *problem.table.warnings])
    clock.lap("data")
    return problem


def regression_counts(analysis: Analysis) -> dict:
    """Count what `mmgibbs check` prints of a regression; nothing is sampled."""
    problem = read_problem(analysis)
    sampler, table = problem.sampler, problem.table
    return {
        "analysis": analysis.name,
        "plugin": analysis.model.plugin,
        "data": table.counts,
        "predictor_type": str(table.predictors.dtype),
        "bytes": table.predictors.nbytes,
        "parameters": {name: [len(sampler.coords[d]) for d in p.dims] for name, p in sampler.parameters.items()},
        "options": options_in_use(problem.factory.options, problem.choices),
        **problem.reasons(),
        **({} if (of_device := problem.factory.count_device()) is None else {"device": of_device}),
        "notes": list(problem.notes),
        "warnings": list(table.warnings),
    }


def write_regression_draws(path: Path, sampled: RegressionDraws, sampler: Sampler, attributes: Mapping) -> None:
    """draws.nc with the groups /posterior, dims (chain, draw, ...), and /sample_stats."""
    chains, draws = next(iter(sampled.draws.values())).shape[:2]
    shape = {"chain": np.arange(chains), "draw": np.arange(draws)}
    used = {d for p in sampler.parameters.values() for d in p.dims}
    labels = shape | {d: [str(label) for label in labels] for d, labels in sampler.coords.items() if d in used}
    posterior = {
        name: Variable(("chain", "draw", *sampler.parameters[name].dims), np.asarray(values))
        for name, values in sampled.draws.items()
    }
    statistics = {name: Variable(("chain", "draw"), np.asarray(values)) for name, values in sampled.statistics.items()}
    groups = {"posterior": Group(posterior, labels), "sample_stats": Group(statistics, shape)}
    write_groups(path, groups, attributes)


def _described(sampler: Sampler, analysis: Analysis) -> dict:
    """Describe the regression before sampling, so that a fault in a plugin's words costs no draws."""
    describe = getattr(sampler, "describe", None)
    if describe is None:
        return {}
    model = analysis.model
    return {"described": asdict(describe(Columns(model.response, model.groups, model.group_predictors)))}
