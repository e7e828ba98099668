"""A regression from its analysis file: table -> plugin -> chains side by side -> summary -> run folder."""

from __future__ import annotations

import datetime
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from mmgibbs.data.regression import RegressionTable, read_regression
from mmgibbs.errors import ConfigError
from mmgibbs.posterior.summary import summary_table
from mmgibbs.regressions.estimators import named_draws
from mmgibbs.regressions.options import fill_options
from mmgibbs.regressions.predictors import read_predictors
from mmgibbs.regressions.protocol import RegressionData, RegressionDraws, Sampler
from mmgibbs.regressions.registry import find_plugin
from mmgibbs.results.folder import write_run_folder
from mmgibbs.results.tables import summary_frame
from mmgibbs.runs.chains import Executor, LocalExecutor
from mmgibbs.runs.progress import time_left
from mmgibbs.runs.record import versions
from mmgibbs.runs.sample_regression import RegressionChains, RegressionJob, RegressionSchedule, sample_regression

LOG_EVERY = 60.0  # seconds between two lines where there is no terminal
SHOWN = 20  # parameters printed at the end


@dataclass(frozen=True)
class PreparedRegression:
    """A plugin with its data and options, ready to sample."""

    table: RegressionTable
    chains: RegressionChains
    sampler: Sampler
    arrays: object

    @property
    def notes(self) -> tuple[str, ...]:
        return self.chains.data.predictors.notes


def prepare_regression(analysis, samples: int | None = None) -> PreparedRegression:
    """Read the table and make the plugin's sampler. ConfigError, DataError and ModelError say what cannot be used.

    samples: sweeps after burn-in, where those are not for the analysis to say.
    """
    model, s = analysis.model, analysis.sampler
    plugin = find_plugin(model.plugin)
    given = dict(model.options)
    standardise = given.pop("standardise", getattr(plugin, "standardise", False))
    if not isinstance(standardise, bool):
        raise ConfigError(f"model.options.standardise: found {standardise!r}, needed true or false")
    fields = getattr(plugin.Options, "__dataclass_fields__", {})
    if "precision" in fields:
        given.setdefault("precision", s.precision)
    elif s.precision != "double":
        raise ConfigError(f"sampler.precision: found {s.precision}, needed double for plugin '{model.plugin}'")
    options = fill_options(plugin.Options, given)
    table = read_regression(analysis)
    predictors = read_predictors(table.predictors, table.names, standardise)
    data = RegressionData(
        predictors, table.response, ", ".join(table.response_names), table.groups, table.group_predictors
    )
    schedule = RegressionSchedule(s.seed, s.chains, s.burn_in, samples or s.samples, s.thin)
    chains = RegressionChains(model.plugin, data, options, s.device, s.threads, schedule)
    return PreparedRegression(table, chains, *chains.prepare())


def run_regression(analysis, place, console, executor: Executor):
    """Sample, and write the run folder: (summary, info). place: resume.RunFolder."""
    s, started = analysis.sampler, time.perf_counter()
    if s.stop is not None:
        raise ConfigError(
            "sampler.stop: found with model.plugin, whose parameters have no targets; needed sampler.samples alone"
        )
    prepared = prepare_regression(analysis, place.samples)
    table, schedule = prepared.table, prepared.chains.schedule
    n, p = table.predictors.shape
    console.say(
        f"{n:,} records, {p:,} predictors as {table.predictors.dtype} ({table.predictors.nbytes / 1e6:,.1f} MB)"
    )
    for note in prepared.notes:
        console.say(note)
    seconds = {"data": time.perf_counter() - started}
    place.start()
    job = RegressionJob(prepared.chains, place.checkpoints, _progress(analysis, schedule, console), console.say)
    found = sample_regression(
        job, (prepared.sampler, prepared.arrays) if isinstance(executor, LocalExecutor) else None, executor
    )
    place.end(schedule.samples)
    seconds["sampling"] = found.seconds
    draws = named_draws(found.draws, prepared.sampler.parameters, prepared.sampler.coords)
    summary = summary_frame(summary_table(draws))
    seconds["summary"] = time.perf_counter() - started - sum(seconds.values())
    info = _record(analysis, prepared, found, seconds) | executor.facts
    path = write_run_folder(
        place.path,
        summary=summary,
        run=info | {"run_id": place.run_id, "begun": place.kind},
        extra={
            "draws.nc": lambda place: write_regression_draws(
                place, found, prepared.sampler, {"analysis": analysis.name}
            )
        },
        csv=analysis.output.csv,
        overwrite=True,  # whether it may be is settled, and the folder is locked
    )
    console.finish(summary, path, info, clearest(summary))
    if summary.height > SHOWN:
        console.say(
            f"the {SHOWN} parameters that differ most from 0; {summary.height - SHOWN:,} more are in summary.csv"
        )
    return summary, info


def clearest(summary: pl.DataFrame) -> pl.DataFrame:
    """The SHOWN rows whose means are most standard deviations from 0, in their order."""
    ratio = (pl.col("mean").abs() / pl.col("sd")).fill_null(0).fill_nan(0)
    return summary.with_row_index("place").sort(ratio, descending=True).head(SHOWN).sort("place").drop("place")


def regression_counts(analysis) -> dict:
    """What `mmgibbs check` prints of a regression; nothing is sampled."""
    prepared = prepare_regression(analysis)
    table = prepared.table
    return {
        "analysis": analysis.name,
        "plugin": analysis.model.plugin,
        "data": table.counts,
        "predictor_type": str(table.predictors.dtype),
        "bytes": table.predictors.nbytes,
        "parameters": {
            name: [len(prepared.sampler.coords[d]) for d in p.dims] for name, p in prepared.sampler.parameters.items()
        },
        "options": vars(prepared.chains.options),
        "notes": list(prepared.notes),
    }


def write_regression_draws(path: Path, found: RegressionDraws, sampler: Sampler, attributes: dict) -> None:
    """draws.nc with the groups /posterior, dims (chain, draw, ...), and /sample_stats."""
    import xarray

    chains, draws = next(iter(found.draws.values())).shape[:2]
    shape = {"chain": np.arange(chains), "draw": np.arange(draws)}
    used = {d for p in sampler.parameters.values() for d in p.dims}
    coords = shape | {d: [str(label) for label in labels] for d, labels in sampler.coords.items() if d in used}
    posterior = {
        name: (("chain", "draw", *sampler.parameters[name].dims), values) for name, values in found.draws.items()
    }
    statistics = {name: (("chain", "draw"), values) for name, values in found.statistics.items()}
    tree = xarray.DataTree.from_dict(
        {
            "/posterior": xarray.Dataset(posterior, coords=coords),
            "/sample_stats": xarray.Dataset(statistics, coords=shape),
        }
    )
    tree.attrs = attributes
    tree.to_netcdf(path, engine="h5netcdf")


def _record(analysis, prepared: PreparedRegression, found: RegressionDraws, seconds: dict) -> dict:
    """What run.json holds."""
    s = analysis.sampler
    return {
        "name": analysis.name,
        "finished": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "versions": versions(),
        "analysis": analysis.resolved(),
        "seed": s.seed,
        "plugin": analysis.model.plugin,
        "options": vars(prepared.chains.options),
        "data": prepared.table.counts,
        "predictor_type": str(prepared.table.predictors.dtype),
        "device": prepared.arrays.device,
        "threads": prepared.arrays.threads,
        "chains": s.chains,
        "sweeps_per_chain": found.sweeps,
        "kept_draws_per_chain": next(iter(found.draws.values())).shape[1],
        "seconds": seconds,
        "warnings": [],
        "notes": list(prepared.notes),
    }


def _progress(analysis, schedule: RegressionSchedule, console) -> Callable[[int], None]:
    """A bar on a terminal, a line a minute elsewhere and in the log."""
    n_sweeps, bar = schedule.n_sweeps, None
    if console.bars:
        from tqdm import tqdm

        what = f"{analysis.model.plugin}, {schedule.chains} chains"
        bar = tqdm(total=n_sweeps, desc=what, unit="sweep", file=sys.stderr)
    tell = console.say if bar is None else console.write_log
    told, before = (
        time.monotonic(),
        None,
    )  # before: the sweep that was told last; of chains that go on, the first that is seen

    def show(number: int) -> None:
        nonlocal told, before
        now = time.monotonic()
        if before is None:
            before = number - 1
            if bar is not None:
                bar.initial = bar.n = before
        if bar is not None:
            bar.update(number - bar.n)
        if now - told >= LOG_EVERY or number == n_sweeps:
            rate = (number - before) / max(now - told, 1e-9)
            told, before = now, number
            tell(
                f"sweep {number:,} of {n_sweeps:,}, {rate:,.1f} sweeps/s"
                + ("" if number == n_sweeps else f", {time_left((n_sweeps - number) / max(rate, 1e-9))}")
            )
        if bar is not None and number == n_sweeps:
            bar.close()

    return show
