"""How a run was computed, in words: the engine, interweaving, and what REML reached."""

from __future__ import annotations

from collections.abc import Sequence

from mmgibbs.report.html_tables import counted, listed, number

ENGINES = {  # what each does, for readers who want breeding values; docs/explanation/engines.md says how
    "serial": "draws the levels of all effects one after another",
    "structured": "draws many levels at the same time",
    "hybrid": "draws several blocks of the effects at the same time",
    "marginal": "draws the variances first, without the effects, then all effects together",
    "direct": "solves the mixed-model equations directly",
    "pcg": "finds all effects together, by iterations that solve the mixed-model equations",
}


def engine_words(record: dict) -> str:
    name = record.get("engine", "unknown")
    why = record.get("engine_chosen_because") or ""
    if why.startswith("auto"):  # counts and milliseconds, which say nothing of the results
        why = "chosen by auto; run.json says why"
    return f"{name}: {ENGINES.get(name, 'see the documentation')}" + (f" ({why})" if why else "")


def interweaved_words(terms: Sequence[str]) -> str:
    """Which terms interweave; the word alone says nothing to most readers."""
    return (
        f"{listed(terms)}: variances are drawn again given the standardised effects, for faster mixing"
        if terms
        else "none"
    )


def is_sampled_reml(record: dict) -> bool:
    """REML by Monte Carlo, which has no likelihood."""
    return record.get("method") == "reml" and record.get("likelihood") == "monte_carlo"


def reml_words(record: dict) -> str:
    """What REML reached."""
    if is_sampled_reml(record):
        iterations = counted(record["iterations"], "iteration")
        return f"REML by Monte Carlo: {counted(record['samples'], 'sample')}, {iterations}"
    likelihood, aic, bic = number(record["log_likelihood"], 3), number(record["aic"], 1), number(record["bic"], 1)
    return f"REML: log likelihood {likelihood}, AIC {aic}, BIC {bic}, {counted(record['iterations'], 'iteration')}"
