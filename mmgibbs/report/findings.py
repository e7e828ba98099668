"""What a reader must know before any figure: warnings first, then what was decided on the way."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from mmgibbs.report.finished import Finished
from mmgibbs.report.html_tables import counted, known
from mmgibbs.report.parameters import lower_triangle
from mmgibbs.results.tables import negative_reliabilities

RHAT, ESS = 1.05, 100  # beyond these a number should not be used
MIXING = (
    "by how far R-hat is above 1, or how low the smaller of the bulk and tail effective sample sizes (ESS) is, each "
    f"relative to its limit ({RHAT} and {ESS})"
)
ORDER = f"The parameters that mix worst come first, {MIXING}"
FEW = 0.05  # share of breeding values that may have a smaller effective sample size


@dataclass(frozen=True)
class Finding:
    """A thing to know of a run. grade: `stop` where results should not be used, `care` where they are rough."""

    title: str
    fact: str
    advice: str = ""
    grade: str = "care"

    @property
    def text(self) -> str:
        return f"{self.fact} {self.advice}" if self.advice else self.fact


def attention(row: dict) -> bool:
    """A row of the summary that should not be used as it is."""
    return (known(row["rhat"]) and row["rhat"] > RHAT) or any(
        known(row[c]) and row[c] < ESS for c in ("ess_bulk", "ess_tail")
    )


def smaller_ess(row: dict) -> tuple[str, float] | None:
    """('bulk' or 'tail', the effective sample size) of the two that is smaller; None where neither is known."""
    sizes = [(row[f"ess_{of}"], of) for of in ("bulk", "tail") if known(row[f"ess_{of}"])]
    return (min(sizes)[1], min(sizes)[0]) if sizes else None


def excess(row: dict) -> float:
    """Measure how far a row of the summary exceeds `attention`: above 1 where it does, 0 where this is unknown.

    The larger of (R-hat - 1) / (RHAT - 1) and ESS / the smaller effective sample size.
    """
    apart, ess = row["rhat"], smaller_ess(row)
    of_chains = (apart - 1) / (RHAT - 1) if known(apart) else 0.0
    of_draws = (ESS / ess[1] if ess[1] > 0 else math.inf) if ess else 0.0
    return max(of_chains, of_draws)


def diagnosis(row: dict) -> str:
    """'R-hat 1.036, ESS tail 41': what `excess` is made of."""
    ess = smaller_ess(row)
    said = [f"R-hat {row['rhat']:.3f}"] if known(row["rhat"]) else []
    return ", ".join([*said, f"ESS {ess[0]} {ess[1]:,.0f}"] if ess else said)


def warnings(run: Finished) -> list[Finding]:
    """List the warnings by importance: chains apart, few effective draws, the posterior itself, breeding values."""
    of_data = (Finding("Model and data", text) for text in run.record.get("warnings", ()))
    return [*chain_findings(run.summary, run.record), *of_data, *_levels(run)]


def said_at_the_end(summary: pl.DataFrame, record: Mapping) -> list[str]:
    """The warnings that a run says in a line each when it ends, also one that is to be quiet."""
    chains = [f"{finding.title}: {finding.fact}" for finding in chain_findings(summary, record)]
    negative = reliability_findings(record.get("negative_reliabilities"), record)
    last = [] if negative is None else [f"{negative.title}: {negative.fact}"]
    return [f"warning: {text}" for text in (*chains, *record.get("warnings", ()), *last)]


def remarks(run: Finished) -> list[Finding]:
    """List remarks that are no mistakes, but that results depend on: decisions, and limits of the draws."""
    out, notes = [], run.record.get("notes", ())
    left_out = run.record.get("data", {}).get("records", {}).get("left_out", {})
    for reason, n in left_out.items():
        if n and not any(note.endswith(f"left out: {reason}") for note in notes):
            out.append(Finding("Records left out", f"{counted(n, 'record')}: {reason}."))
    for note in notes:
        out.append(Finding(_title(note), note))
    return out


def _title(note: str) -> str:
    if note.startswith(("reference level of", "reference of the unknown-parent groups")):
        return "Reference levels"
    return "Levels set to 0" if "set to 0" in note else "Note"


def chain_findings(summary: pl.DataFrame, record: Mapping) -> list[Finding]:
    """Parameters that move, but whose chains do not agree or whose draws are too few."""
    out, sampled = [], lower_triangle(summary).filter(pl.col("sd") > 0)
    if record.get("method") in ("blup", "reml") or sampled.is_empty():
        return []
    of_all = f"of {counted(sampled.height, 'parameter')}"
    apart = sampled.filter(pl.col("rhat") > RHAT).sort("rhat", descending=True)
    if apart.height:
        worst = apart.row(0, named=True)
        out.append(
            Finding(
                "Chains have not mixed",
                f"R-hat is above {RHAT} for {apart.height:,} {of_all}; the worst is {worst['parameter']} with "
                f"{worst['rhat']:.3f}.",
                "Do not use the means and intervals of these yet: run longer (sampler.samples, sampler.burn_in).",
                "stop",
            )
        )
    smallest = pl.min_horizontal("ess_bulk", "ess_tail")
    few = sampled.with_columns(smallest=smallest).filter(pl.col("smallest") < ESS).sort("smallest")
    if few.height:
        worst = few.row(0, named=True)
        out.append(
            Finding(
                "Few effective draws",
                f"The effective sample size, the smaller of bulk and tail, is below {ESS} for {few.height:,} {of_all}; "
                f"the smallest is {worst['smallest']:.0f}, of {worst['parameter']}.",
                _few_draws_text(few.filter(pl.col("ess_bulk") < ESS).height, few.height),
            )
        )
    if sampled["rhat"].null_count() == sampled.height:
        out.append(
            Finding(
                "No R-hat",
                "With one chain, or very few draws, nothing can tell whether it has converged: needed at least two "
                "chains (sampler.chains).",
            )
        )
    return out


def _few_draws_text(of_bulk: int, of_all: int) -> str:
    """Describe what few effective draws leave uncertain; of_bulk: the number of parameters whose mean is concerned."""
    if of_bulk == of_all:
        return "The means have a large Monte Carlo error and the intervals are rough."
    if of_bulk == 0:
        return "It is the tail alone: the ends of the intervals are rough, the means are not."
    means = "the mean of the 1 parameter" if of_bulk == 1 else f"the means of the {of_bulk:,} parameters"
    return (
        f"The ends of the intervals are rough, and so {'is' if of_bulk == 1 else 'are'} {means} whose effective sample "
        f"size of the bulk is below {ESS}."
    )


def reliability_findings(counted_as: Mapping | None, record: Mapping) -> Finding | None:
    """Describe negative reliabilities by the counts of results/tables.py; None where none is shown as negative."""
    if not counted_as:
        return None
    negative, of = counted_as["negative"], counted_as["of"]
    return Finding(
        "Negative reliabilities",
        f"{negative:,} of {of:,} reliabilities of breeding values {'is' if negative == 1 else 'are'} below 0: "
        f"the {uncertainty_name(record)} of such a value is above the SD of the effect.",
        _negative_text(record),
    )


def _negative_text(record: Mapping) -> str:
    """Explain what may make the posterior SD of a value larger than the SD of its effect."""
    groups_section = record.get("analysis", {}).get("data", {}).get("groups") or {}
    # metafounders and random groups have a variance, which is in the SD of the values
    in_variance = groups_section.get("effect") in ("metafounders", "random")
    groups = bool(record.get("data", {}).get("groups")) and not in_variance
    first = (
        f"Values include those of the unknown-parent groups, whose uncertainty is in the {uncertainty_name(record)}; "
        "fixed groups have no variance to compare it with, so such a reliability has no meaning. "
        "data.groups: {effect: random} gives them one. "
        if groups
        else ""
    )
    if _is_solved(record):
        error = "Monte Carlo error where PEVs were sampled (sampler.pev_samples)"
        return f"{first}It may also be {error}." if groups else f"That is {error}."
    error = "With little information {} Monte Carlo error, which more samples reduce; else the variance is uncertain."
    return first + error.format("it may also be" if groups else "that is")


def uncertainty_name(record: Mapping) -> str:
    """Name the uncertainty of a value."""
    return "standard error" if _is_solved(record) else "posterior SD"


def _is_solved(record: Mapping) -> bool:
    return record.get("method") in ("blup", "reml")


def _levels(run: Finished) -> list[Finding]:
    related = [term for term, kind in run.relationships.items() if kind["related"]]
    negative = reliability_findings(negative_reliabilities(run.solutions, run.record), run.record)
    last = [] if negative is None else [negative]
    if run.solutions is None or not related:
        return last
    values, out = run.solutions.lazy().filter(pl.col("term").is_in(related)), []
    small, n, smallest = (
        values.select(
            (pl.col("ess") < ESS).sum(),
            pl.col("ess").count().alias("n"),
            pl.col("ess").min().alias("least"),
        )
        .collect()
        .row(0)
    )
    if n and small > FEW * n:
        called = "Animals" if any(run.level_names(term)[0] == "animal" for term in related) else "Levels"
        out.append(
            Finding(
                "Monte Carlo error of breeding values",
                f"{small:,} of {n:,} breeding values ({100 * small / n:.0f} %) {'has' if small == 1 else 'have'} an "
                f"effective sample size below {ESS}; the smallest is {smallest:.0f}. "
                f"{called} whose values lie close together may change places in a longer run.",
            )
        )
    return [*out, *last]
