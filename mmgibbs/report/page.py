"""report.html: the page of one run, from what its folder holds. What it shows is gathered here; how, in templates/."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from mmgibbs.report import figure_words, method_words, model_words, plots
from mmgibbs.report.breeding import breeding_values, unrelated_effect_rows
from mmgibbs.report.curves import curves_of_variance, dimensions_table, smooths_section
from mmgibbs.report.decisions import decision_tables
from mmgibbs.report.factors import factor_tables, is_of_factors, performance_section
from mmgibbs.report.field import field_section
from mmgibbs.report.findings import ESS, RHAT, attention, diagnosis, excess, remarks, warnings
from mmgibbs.report.finished import Finished, read_finished
from mmgibbs.report.fixed import fixed_effects, fixed_scale_words, fixed_title
from mmgibbs.report.genomic import genomic_section
from mmgibbs.report.genotyped import genotyped_section
from mmgibbs.report.html_tables import (
    Bar,
    Table,
    bar_column,
    bars,
    bars_words,
    cell_column,
    count_decimals,
    counted,
    counts,
    decimals,
    figure,
    interval_range,
    known,
    lines_words,
    listed,
    make_table,
    marked,
    number_column,
    numbers,
    text_column,
)
from mmgibbs.report.inputs import input_files
from mmgibbs.report.matrices import correlation_tables
from mmgibbs.report.means import means_tables
from mmgibbs.report.other_traits import describe_scales, extreme_words, non_normal_rows
from mmgibbs.report.parameters import bound_as_0, bounds, lower_triangle
from mmgibbs.report.render import render
from mmgibbs.results.relationships import describe_relationships
from mmgibbs.results.tables import was_drawn

PARAMETERS = 12  # with figures, besides the heritabilities: those that mix worst
COEFFICIENTS, INCIDENCES = "Coefficients", "Incidences"  # captions: of a regression, of categories
SHARES = "Heritabilities and shares of the phenotypic variance"
SHORT = 0.05  # seconds
WORKING = ("run.log", "checkpoint")  # in the run folder besides the results: its log, and the state of its chains
ROWS = 400  # of one table of parameters (a regression may have many thousands)


def write_report(
    directory: str | os.PathLike,
    output: str | os.PathLike | None = None,
    top: int = 20,
    solutions: pl.DataFrame | None = None,
) -> Path:
    """Write the page of a finished run to `output`, by default report.html in its folder, and return its path.

    top: animals listed for each trait. solutions: see read_finished. Raises ConfigError where the folder holds no
    finished run or cannot be written.
    """
    run = read_finished(directory, solutions)
    return render(
        "report.html.j2", page(run, top), Path(output) if output is not None else run.directory / "report.html"
    )


def page(run: Finished, top: int = 20, figures: plots.Figures | None = None) -> dict:
    """Prepare the values that the template shows; figures: what draws them, by default into the page."""
    run = replace(run, summary=lower_triangle(run.summary))
    figures = plots.Figures() if figures is None else figures
    breeding = breeding_values(run, figures, top)
    curves = [b["label"] for b in breeding if b["values"] == "coefficient"]
    called = {b["called"] for b in breeding if b["values"] == "coefficient"}
    return {
        "title": run.name,
        "subtitle": subtitle(run.record),
        "finished": str(run.record.get("finished", ""))[:16].replace("T", " "),
        "warnings": warnings(run),
        "remarks": remarks(run),
        "thresholds": {"rhat": RHAT, "ess": ESS},
        "model": model_section(run.record, count_coefficients(run), traits_with_intercept(run)),
        "regression": run.record.get("described"),
        "facts": facts(run.record),
        "counted": run.record.get("variances_counted", {}),
        "results": (results := first_results(tables := make_parameter_tables(run.summary))),
        "parameters": [table for table in tables if table not in results],
        "correlations": [*factor_tables(run.summary), *correlation_tables(run.summary)],
        "curves": curves_of_variance(run, figures),
        "estimated": run.summary["hpd_low"].count() > 0,
        "reml": run.record.get("method") == "reml",
        "solved": run.solved,
        "diagnostics": diagnostics(run, figures),
        "breeding": breeding,
        "means": means_tables(run),
        "performance": performance_section(run, figures, top),
        "field": field_section(run, figures),
        "smooths": smooths_section(run, figures),
        "dimensions": dimensions_table(run),
        "genomic": genomic_section(run, figures, top),
        "genotyped": genotyped_section(run, figures),
        "decisions": decision_tables(run, top),
        "decided": run.record.get("decisions", {}),
        "other_traits": non_normal_rows(run, figures),
        "other_traits_words": describe_scales(run),
        "breeding_words": method_words.values_words(
            run.record,
            has_values(run, "reliability"),
            has_values(run, "sd"),
            "none" if not curves else "all" if len(curves) == len(breeding) else "some",
        ),
        "breeding_title": "Curves of breeding values" if len(curves) == len(breeding) else "Breeding values",
        "curve_words": method_words.curve_words(curves, "level" if called == {"level"} else "animal"),
        "polygenic_words": method_words.polygenic_words(
            [
                model_words.component_label(e, t, name, True)
                for name, e, t in run.components
                if (name, e, t) in run.polygenic
            ]
        ),
        "extreme": extreme_words(run),
        "others": unrelated_effect_rows(run),
        "fixed": (fixed := fixed_effects(run)),
        "fixed_title": fixed_title(run),
        "fixed_scale": fixed_scale_words(run),
        "set_to_0": any("held" in table.classes for table in fixed),
        "files": list_files(run),
        "record": run.record,
    }


def list_files(run: Finished) -> list[str]:
    """List the files of the run folder besides this page.

    These are results that are still there, the log, and folders with a slash.
    """
    paths = [(name, run.directory / name) for name in [*run.record.get("files", []), *WORKING]]
    return [f"{name}/" if path.is_dir() else name for name, path in paths if path.exists()]


def subtitle(record: dict) -> str:
    data, sampler = record.get("data", {}), record.get("analysis", {}).get("sampler", {})
    parts = [counted(data[key], key.removesuffix("s")) for key in ("animals",) if key in data]
    if "records" in data:
        parts.append(counted(data["records"].get("used", 0), "record"))
    if "observations" in data:
        parts.append(counted(len(data["observations"]), "trait"))
    if record.get("method") == "blup":
        parts.append("solved at given variances (BLUP)")
    elif record.get("method") == "reml":
        parts.append("variances by REML")
    elif "kept_draws_per_chain" in record:
        parts.append(
            f"{counted(sampler.get('chains', 1), 'chain')} of {counted(record['kept_draws_per_chain'], 'kept draw')}"
        )
    return " \u00b7 ".join(parts)


# ------------------------------------------------------------------------------------------------ what was run


def has_values(run: Finished, column: str) -> bool:
    """Any breeding value has one in a column of the solutions. There are no reliabilities with a user's relationships,
    whose diagonal is not known; no errors where equations were too many for the PEV."""
    if run.solutions is None:
        return False
    related = pl.col("term").is_in(list(run.related))
    return run.solutions.lazy().filter(related, pl.col(column).is_not_null()).head(1).collect().height > 0


def count_coefficients(run: Finished) -> dict[str, int]:
    """Covariate -> how many coefficients it has, on the trait where it has most."""
    fixed = run.record.get("analysis", {}).get("model", {}).get("fixed") or {}
    names = [name for name, spec in fixed.items() if spec.get("kind", "class") != "class"]
    if run.solutions is None or not names:
        return {}
    counts = run.solutions.lazy().filter(pl.col("term").is_in(names)).group_by("term", "trait").len()
    return dict(counts.group_by("term").agg(pl.col("len").max()).collect().rows())


def traits_with_intercept(run: Finished) -> list[str]:
    """The traits that have an intercept: with `auto`, those that no class effect spans."""
    traits = list(run.record.get("analysis", {}).get("traits", {}))
    if run.solutions is None or "intercept" not in run.record.get("levels", {}):
        return []
    names = run.solutions.lazy().filter(term="intercept").select("trait").unique().collect()["trait"].to_list()
    return [trait for trait in traits if trait in names]


def model_section(
    record: dict, coefficients: Mapping[str, int] | None = None, intercept: Sequence[str] = ()
) -> dict | None:
    """The model in words and in symbols; None for an analysis without terms (a regression). coefficients: of each
    covariate; intercept: traits that have one."""
    analysis = record.get("analysis", {})
    model = analysis.get("model", {})
    if not (model.get("fixed") or model.get("random") or model.get("markers")):
        return None
    random = {name: kind["symbol"] for name, kind in describe_relationships(record).items()}
    return {
        "equations": model_words.model_equations(analysis, intercept),
        "behind": model_words.underlying_words(analysis.get("traits", {})),
        "random": random,
        "symbols": [
            (symbol, model_words.SYMBOLS[symbol]) for symbol in model_words.SYMBOLS if symbol in random.values()
        ],
        "markers": list(model.get("markers") or {}),
        "residuals": model_words.residuals_words(record),
        "correlated": model_words.has_correlated_residuals(record),
        "terms": model_words.model_table(record, intercept, coefficients),
    }


def facts(record: dict) -> list[tuple[str, list[tuple[str, str]]]]:
    """(heading, [(name, value)]) of the data, the choices and the work; what a run does not know is left out."""
    data, analysis = record.get("data", {}), record.get("analysis", {})
    sampler, tables = analysis.get("sampler", {}), analysis.get("data", {})
    records = data.get("records", {})
    seconds = {k: v for k, v in record.get("seconds", {}).items() if isinstance(v, (int, float))}
    gibbs = record.get("method") not in ("blup", "reml")
    kin = any(kind["of_pedigree"] for kind in describe_relationships(record).values())
    inbreeding = {
        "account": "accounted for, in relationships and reliability",
        "ignore": "ignored: every animal as if not inbred",
    }
    held = {
        "Records": f"{records['used']:,} used of {records['read']:,} read" if records else None,
        "Observations": _observations(data) if "observations" in data else None,
        "Weights": _weights(tables["weights"], record.get("scales") or {}) if tables.get("weights") else None,
        "Exposure": _exposures(analysis.get("traits") or {}),
        "Predictors": f"{data['predictors']:,}" if "predictors" in data else None,
        "Animals": _animals(data) if "animals" in data else None,
        "Unknown-parent groups": f"{data['groups']:,}" if data.get("groups") else None,
        "Genotypes": _genotypes(data["genotypes"]) if "genotypes" in data else None,
        **input_files(record),
    }
    chosen = {
        "Regression": _regression(record, analysis) if "plugin" in record else None,
        "Method": None
        if "plugin" in record
        else "Gibbs sampling"
        if gibbs
        else method_words.reml_words(record)
        if record.get("method") == "reml"
        else "BLUP: mixed-model equations solved at given variances",
        "Chains": _chains(record, sampler) if gibbs else None,
        "Targets": listed([_target(t) for t in record["stop"]]) if record.get("stop") else None,
        "Seed": f"{record['seed']}" if "seed" in record and (gibbs or method_words.is_sampled_reml(record)) else None,
        "Engine": method_words.engine_words(record) if "engine" in record else None,
        "Inbreeding": inbreeding.get(str(record.get("inbreeding"))) if kin else None,
        "Interweaving": method_words.interweaved_words(record["interweaved_terms"])
        if "interweaved_terms" in record
        else None,
        "Precision": record.get("precision"),
    }
    done = {
        "Equations": f"{record['equations']:,}"
        + (f" in {record['bytes'] / 1e6:,.1f} MB" if record.get("bytes") else "")
        if "equations" in record
        else None,
        "Device": _device(record) if "device" in record else None,
        "Time": _time(seconds),
        "Versions": ", ".join(f"{name} {v}" for name, v in record.get("versions", {}).items() if v != "not installed")
        or None,
    }
    groups = (("Data", held), ("Choices", chosen), ("Work", done))
    return [(title, [(k, v) for k, v in items.items() if v]) for title, items in groups if any(items.values())]


def _device(record: dict) -> str:
    return f"{record['device']}, {counted(record.get('threads') or 1, 'thread')}"


def _weights(column: str, scales: Mapping[str, Mapping[str, str]]) -> str:
    """scales: of the heritabilities of each trait, empty where there are none."""
    they = "they, and heritabilities," if any("h2" in of for of in scales.values()) else "they"
    return f"{column}: residual variances are divided by it; {they} are shown for a weight of 1"


def _observations(data: Mapping) -> str:
    """'calving_ease 2,796 (2,058 easy, 510 assisted and 228 difficult)'."""
    kinds = data.get("observed_as", {})
    of = {
        trait: f" ({listed([f'{n:,} {kind}' for kind, n in tally.items()], most=12)})" for trait, tally in kinds.items()
    }
    return listed([f"{trait} {n:,}{of.get(trait, '')}" for trait, n in data["observations"].items()], most=40)


def _exposures(traits: Mapping) -> str | None:
    """'months, of mastitis_cases': the columns with the time or the area that counts belong to."""
    exposures = [f"{of['exposure']}, of {trait}" for trait, of in traits.items() if of.get("exposure")]
    return "; ".join(exposures) or None


def _animals(data: Mapping) -> str:
    text = f"{data['animals']:,} in the pedigree"
    if "animals_with_records" in data:
        text += f", {data['animals_with_records']:,} with records"
    return text + (f", {data['founders_added']:,} added as founders" if data.get("founders_added") else "")


def _genotypes(counts: Mapping) -> str:
    kept = counts.get("kept", {})
    of = f"{kept['SNPs']:,} SNPs of {kept['animals']:,} animals used" if {"SNPs", "animals"} <= set(kept) else "read"
    return f"{of}, {counts.get('file', 'one file')}"


def _regression(record: dict, analysis: dict) -> str:
    chosen = record.get("options", {})
    idle = _idle(chosen)
    by_auto = record.get("options_chosen_because", {})
    options = ", ".join(
        f"{name} {value}{' chosen by auto' if name in by_auto else ''}"
        for name, value in chosen.items()
        if value is not None and name not in idle
    )
    response = analysis.get("model", {}).get("response") or []
    of = listed([response] if isinstance(response, str) else response)
    return f"{record['plugin']} of {of}" + (f" ({options})" if options else "")


def _idle(options: Mapping) -> set[str]:
    """Options of a regression that the others leave without effect."""
    components = set()
    if "slab_scale" in options and options["slab_scale"] is None:  # plain horseshoe
        components.add("slab_df")
    if options.get("penalty") is not None:  # given, so that it has no prior
        components |= {"penalty_shape", "penalty_rate"}
    if options.get("method") == "polya_gamma":  # no slices
        components |= {"width", "most_steps"}
    if options.get("intercept") is False:
        components |= {name for name in options if name.startswith("intercept_")}
    return components


def _chains(record: dict, sampler: dict) -> str | None:
    """Sweeps after burn-in are those that were made, where a run was extended or stopped at its targets."""
    if not {"chains", "burn_in", "samples", "thin"} <= set(sampler):
        return None
    burn_in, thin = sampler["burn_in"], sampler["thin"]
    samples = record["sweeps_per_chain"] - burn_in if "sweeps_per_chain" in record else sampler["samples"]
    kept = "all kept" if thin == 1 else f"one in {thin:,} kept"
    return f"{sampler['chains']}, each {burn_in:,} sweeps of burn-in and {samples:,} sweeps, {kept}"


def _target(target: dict) -> str:
    outcome = "met" if target["met"] else "missed"
    return f"{target['target']} {figure(target['needed'])} {outcome} with {figure(target['found'])}"


def _time(seconds: Mapping[str, float]) -> str | None:
    """The steps that took time: those of less than SHORT seconds would be 0.0 s."""
    long = [f"{stage} {_seconds(s)}" for stage, s in seconds.items() if s >= SHORT]
    return listed(long) if long else None


def _seconds(s: float) -> str:
    """'1.5 s' on one line: its space does not break."""
    number, unit = (f"{s:.1f}", "s") if s < 100 else (f"{s / 60:.0f}", "min") if s < 6000 else (f"{s / 3600:.1f}", "h")
    return f"{number}\u00a0{unit}"


# ------------------------------------------------------------------------------------------------ parameters


def make_parameter_tables(summary: pl.DataFrame) -> list[Table]:
    """Make tables of shares of the phenotypic variance, of correlations, of (co)variances by term, and of the rest."""
    groups: dict[str, list[dict]] = {SHARES: [], "Correlations": []}
    for row in bound_as_0(summary).iter_rows(named=True):
        kind = str(row["parameter"]).partition("[")[0]
        if is_of_factors(row["parameter"]):
            continue
        if kind in ("h2", "ratio", "h2_observed"):
            caption = SHARES
        elif kind == "incidence":
            caption = INCIDENCES
        elif kind.endswith(".corr"):
            caption = "Correlations"
        elif kind.endswith((".var", ".cov")):
            caption = f"Variances and covariances: {kind[:-4]}"
        else:
            caption = COEFFICIENTS if kind == "beta" else "Parameters"
        groups.setdefault(caption, []).append(row)
    drawn = was_drawn(summary)
    return [_parameter_table(caption, rows, drawn) for caption, rows in groups.items() if rows]


def first_results(tables: Sequence[Table]) -> list[Table]:
    """Choose what a reader looks for first: heritabilities, shares and incidences; else the first table."""
    return [table for table in tables if table.caption in (SHARES, INCIDENCES)] or list(tables[:1])


def _parameter_table(caption: str, rows: list[dict], drawn: bool) -> Table:
    """drawn: moments of draws; else estimates with their standard errors."""
    total = len(rows)
    if total > ROWS:
        rows = sorted(rows, key=lambda r: -abs(r["mean"] or 0) / (r["sd"] or math.inf))[:ROWS]
    in_units_of = "posterior standard deviations" if drawn else "standard errors"
    note = f"{ROWS} of {total:,}, those furthest from 0 in {in_units_of}; summary.csv has all of them."
    notes = [note] if total > ROWS else []
    share, correlation = caption in (SHARES, INCIDENCES), caption == "Correlations"
    fraction = share or correlation
    scale = (0.0, 1.0) if share else (-1.0, 1.0) if correlation else None
    places = [3 if drawn and fraction else count_decimals(r["mean"], r["sd"]) for r in rows]
    mcse_places = [4 if fraction else decimals(r["mcse"]) for r in rows]
    means, errors, lows, highs, mcse, rhat = (
        [r[key] for r in rows] for key in ("mean", "sd", "hpd_low", "hpd_high", "mcse", "rhat")
    )
    varies = not drawn or any(errors)  # else all are given: no means of draws
    columns = [
        text_column("Parameter", [str(r["parameter"]) for r in rows]),
        number_column(("Mean" if varies else "Value") if drawn else "Estimate", means, places),
    ]
    if varies:
        error = ("SD", "posterior standard deviation") if drawn else ("SE", "standard error")
        columns.append(number_column(error[0], [e or None for e in errors], places, error[1]))
    if any(map(known, lows)):
        columns += [
            number_column("Low", lows, places, "lower end of the 95 % highest-density interval"),
            number_column("High", highs, places, "upper end"),
        ]
        if fraction or caption == COEFFICIENTS:
            ends = f", {scale[0]:g} to {scale[1]:g}".replace("-", "\u2212") if scale else ""
            drawn_bars = bars(means, lows, highs, scale)
            columns.append(bar_column(f"Interval{ends}", drawn_bars))
            notes += lines_words(drawn_bars) if scale else _scale_words(lows, highs, drawn_bars, places)
        columns.append(number_column("MCSE", mcse, mcse_places, "Monte Carlo standard error of the mean"))
        for key, of in (("bulk", "mean"), ("tail", "interval")):
            sizes = marked(counts([r[f"ess_{key}"] for r in rows]), lambda n: n < ESS)
            what = f"effective sample size of the {of}; below {ESS} is too few"
            columns.append(cell_column(f"ESS {key}", sizes, what))
        if any(map(known, rhat)):  # one chain alone, or very few draws, have none
            what = f"1 where the chains agree; above {RHAT} they have not mixed"
            columns.append(cell_column("R-hat", marked(numbers(rhat, 3), lambda n: n > RHAT), what))
    elif any(map(known, mcse)):  # REML by Monte Carlo
        columns.append(number_column("MCSE", mcse, mcse_places, "Monte Carlo standard error of the estimate"))
    return make_table(caption, columns, *notes)


def _scale_words(
    lows: Sequence[float | None], highs: Sequence[float | None], drawn: Sequence[Bar | None], places: Sequence[int]
) -> list[str]:
    """Describe the scale of the bars, its ends with the decimals of the rows that have them."""
    ends = interval_range(lows, highs)
    of = [
        [p for p, v in zip(places, column, strict=True) if v == end]
        for column, end in ((lows, ends[0]), (highs, ends[1]))
    ]
    return bars_words({"": ends}, drawn, {"": (of[0][0], of[1][0])}) if all(of) else []


def diagnostics(run: Finished, figures: plots.Figures) -> dict:
    """Trace, ranks, autocorrelation and density: of the parameters that mix worst, then of the other heritabilities."""
    rows = {r["parameter"]: r for r in run.summary.filter(pl.col("sd") > 0).iter_rows(named=True)}
    shown = [
        name
        for name in rows
        if name in run.draws and run.draws[name].shape[1] >= 8 and np.isfinite(run.draws[name]).all()
    ]
    shown.sort(key=lambda name: -excess(rows[name]))
    worst, heritabilities = shown[:PARAMETERS], [name for name in shown[PARAMETERS:] if name.startswith("h2[")]
    items = [_parameter_figures(name, rows[name], run.draws[name], figures) for name in [*worst, *heritabilities]]
    colours = legend(run.draws[shown[0]].shape[0]) if shown else []
    return {
        "items": items,
        "legend": colours,
        "order": figure_words.chosen_words(len(shown), len(worst), len(heritabilities)),
    }


def legend(chains: int) -> list[tuple[int, str]]:
    """(colour number, what it represents)."""
    return [(c % len(plots.SERIES) + 1, f"chain {c + 1}") for c in range(chains)] if chains > 1 else []


def _parameter_figures(name: str, row: dict, draws: np.ndarray, figures: plots.Figures) -> dict:
    shares, values = plots.rank_shares(draws), plots.autocorrelations(draws)
    posterior = plots.paint_density(draws, row["mean"], row["hpd_low"], row["hpd_high"], bounds(name, draws))

    key = figure_words.key_of_figures(len(draws), known(row["hpd_low"]))

    def drawn(
        heading: str, paint: plots.Painter, caption: str, left: float = 0.18, x_label: str = ""
    ) -> tuple[str, str, str]:
        svg = figures.draw(paint, f"{heading} of {name}", caption, left, x_label, size=plots.SMALL)
        return heading, svg, key[heading]

    ranks = []
    if len(draws) > 1:
        paint = plots.paint_ranks(shares)
        ranks = [drawn("Ranks by chain", paint, figure_words.rank_words(shares), 0.1, "rank among all draws")]
    trace = drawn("Trace", plots.paint_trace(draws), figure_words.trace_words(draws, row), x_label="kept draw")
    panels = [trace, *ranks]
    correlations, caption = plots.paint_autocorrelation(values), figure_words.autocorrelation_words(values)
    panels.append(drawn("Autocorrelation", correlations, caption, x_label="lag"))
    panels.append(drawn("Posterior density", posterior, figure_words.density_words(row), 0.06))
    return {"name": name, "diagnosis": diagnosis(row), "attention": attention(row), "figures": panels}
