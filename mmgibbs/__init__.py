"""mmgibbs: breeding values with their reliability, and variance components with their uncertainty.

    import mmgibbs
    result = mmgibbs.run("analysis.yaml")     # Result(summary, solutions, info, directory), Polars frames
    result = mmgibbs.open_run("runs/beef")    # the same for a run that has finished already
    model = mmgibbs.model("weight ~ herd + (1 | animal)", records, pedigree)  # and model.fit()
    model = mmgibbs.MixedModel(traits="weight", fixed=["herd"], random={"animal": "pedigree"}).fit(records, pedigree)
    analysis = mmgibbs.load_config("analysis.yaml", ["sampler.samples=2000"])
    validated = mmgibbs.validate("analysis.yaml")   # and check, compare, predict, simulate, init

Names are imported when they are first used, so that the solver core can be imported without Polars.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"
__all__ = [
    "BayesianLasso",
    "ConfigError",
    "DataError",
    "DeviceError",
    "Genome",
    "HierarchicalSlice",
    "HorseshoeProbit",
    "Matings",
    "MixedModel",
    "MmgibbsError",
    "Model",
    "ModelError",
    "MultinomialHMC",
    "MultinomialPG",
    "Result",
    "ValidationPlan",
    "check",
    "compare",
    "describe_pedigree",
    "finemap",
    "gwas",
    "init",
    "load_config",
    "model",
    "open_run",
    "optimise_contributions",
    "predict",
    "run",
    "run_scenarios",
    "simulate",
    "validate",
]

_HOME = {
    "BayesianLasso": "mmgibbs.regressions.estimators",
    "MultinomialHMC": "mmgibbs.regressions.estimators",
    "MultinomialPG": "mmgibbs.regressions.estimators",
    "HierarchicalSlice": "mmgibbs.regressions.estimators",
    "HorseshoeProbit": "mmgibbs.regressions.estimators",
    "MixedModel": "mmgibbs.runs.model",
    "Model": "mmgibbs.draft.formula.model",
    "model": "mmgibbs.draft.formula.model",
    "Result": "mmgibbs.runs.result",
    "run": "mmgibbs.runs.run",
    "open_run": "mmgibbs.runs.run",
    "predict": "mmgibbs.runs.predict",
    "run_scenarios": "mmgibbs.runs.several",
    "check": "mmgibbs.runs.run",
    "compare": "mmgibbs.report.comparison.make",
    "describe_pedigree": "mmgibbs.population.facts",
    "finemap": "mmgibbs.association.fine_map",
    "gwas": "mmgibbs.association.run",
    "init": "mmgibbs.draft.make",
    "optimise_contributions": "mmgibbs.population.contributions.run",
    "Matings": "mmgibbs.population.contributions.candidates",
    "load_config": "mmgibbs.config",
    "Genome": "mmgibbs.simulation.genome",
    "simulate": "mmgibbs.simulation.make",
    "ValidationPlan": "mmgibbs.validation.options",
    "validate": "mmgibbs.validation.run",
    **dict.fromkeys(("ConfigError", "DataError", "DeviceError", "MmgibbsError", "ModelError"), "mmgibbs.errors"),
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'mmgibbs' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)
