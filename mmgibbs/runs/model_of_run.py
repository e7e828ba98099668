"""The model of a finished run, from its data as they are now, at the variances that the run found."""

from __future__ import annotations

import os
import reprlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from mmgibbs.build.assemble import assemble
from mmgibbs.config import Analysis
from mmgibbs.data.prepare import prepare
from mmgibbs.data.prepared import Prepared
from mmgibbs.data.traits import load_analysis
from mmgibbs.engines.direct.standard_errors import MOST_EQUATIONS
from mmgibbs.errors import ConfigError, DataError, DeviceError
from mmgibbs.likelihood.coefficients import Blocks
from mmgibbs.likelihood.matrices import Variances
from mmgibbs.likelihood.restricted import Point, RestrictedLikelihood
from mmgibbs.machine.memory import free_bytes
from mmgibbs.machine.speed import estimate_seconds
from mmgibbs.models.covariance import join_all
from mmgibbs.models.design import Design
from mmgibbs.report.finished import OF_ANIMALS, Finished, read_finished
from mmgibbs.results.relationships import describe_relationships
from mmgibbs.runs.fingerprint import NO_FILE, fingerprint
from mmgibbs.runs.starts import read_starts

MAX_SECONDS = 600  # of a factor that is made for standard errors alone
FROM_GENOTYPES = ("G", "D", "H")  # symbols of relationships


@dataclass(frozen=True)
class RunModel:
    """A run whose data were read again."""

    directory: Path
    record: dict[str, Any]  # run.json
    analysis: Analysis
    prepared: Prepared
    variances: Variances
    finished: Finished

    @property
    def design(self) -> Design:
        return self.prepared.design

    @property
    def method(self) -> str:
        return str(self.record.get("method"))

    @property
    def uses_genotypes(self) -> bool:
        """True if some relationships are from genotypes."""
        return any(kind["symbol"] in FROM_GENOTYPES for kind in describe_relationships(self.record).values())

    def levels(self) -> dict[str, tuple[pl.Series, np.ndarray]]:
        """Column of the records -> ids of the levels, and the level of each record (-1: none), of random effects."""
        out: dict[str, tuple[pl.Series, np.ndarray]] = {}
        for term, labels in zip(self.design.terms, self.prepared.levels, strict=True):
            if term.kind != "random":
                continue
            effects = self.analysis.model.random[term.name].effects
            for effect in term.effects:
                column = effects[effect.name].level
                if not effect.has_several_levels:
                    out.setdefault(column, (labels.ids, effect.level))
        return out

    def animal_level(self, genotyped: pl.Series) -> str:
        """The column of the first random effect with relationships, else the one with most genotyped levels."""
        kinds = describe_relationships(self.record)
        levels = self.levels()
        for term in self.design.terms:
            if term.kind == "random" and kinds.get(term.name, {}).get("symbol") in OF_ANIMALS:
                column = self.analysis.model.random[term.name].effects[term.effects[0].name].level
                if column in levels:
                    return str(column)
        if not levels:
            raise ConfigError(
                f"gwas: '{self.directory}' has no random effect; needed one whose levels are the genotyped animals"
            )
        common = {column: int(ids.is_in(genotyped.implode()).sum()) for column, (ids, _) in levels.items()}
        return max(common, key=lambda column: common[column])


def read_model_of_run(run: str | os.PathLike, tell: Callable[[str], None]) -> RunModel:
    """The model for tests: ConfigError where they are not for such a run, DataError where its data have changed."""
    finished = read_finished_run("gwas", run)
    refuse_other_runs(finished)
    model = restore_model("gwas", finished, tell)
    if model.design.correlated:
        raise ConfigError(
            f"gwas: '{finished.directory}' has residuals that are correlated (variances.residual); needed a run with "
            "independent residuals, such as a random effect with relationship: ar1 and a residual of its own"
        )
    return model


def read_finished_run(command: str, run: str | os.PathLike) -> Finished:
    """The finished run; messages begin with the command."""
    if not isinstance(run, (str, os.PathLike)):
        raise ConfigError(f"{command}: found {reprlib.repr(run)}, needed the folder of a finished run")
    try:
        return read_finished(run)
    except ConfigError as error:
        raise ConfigError(str(error).replace("report:", f"{command}:", 1)) from None


def restore_model(
    command: str, finished: Finished, tell: Callable[[str], None], pedigree: Path | None = None
) -> RunModel:
    """The model of a run from its data, which are read again, at its variances.

    pedigree: a file in place of that of the run, with more animals. DataError where another file has changed.
    """
    _refuse_data_from_python(command, finished)
    extras = ("decisions", "output")  # what is reported of a run changes no model
    source = {key: value for key, value in finished.record["analysis"].items() if key not in extras}
    starts: list[str] = []
    is_normal = all(keys.get("type", "normal") == "normal" for keys in source["traits"].values())
    if is_normal and finished.record.get("method") != "blup":  # whose starts are the variances
        without = load_analysis(source | {"sampler": {"method": "reml"}}, ["variances.mode=sample"])
        starts = [*read_starts(finished.directory, without), "variances.mode=fixed"]
    if pedigree is not None:
        source = source | {"data": source["data"] | {"pedigree": str(pedigree.absolute())}}
    # other traits have no BLUP, and what is asked of them needs no variances
    analysis = load_analysis(source | ({"sampler": {"method": "blup"}} if is_normal else {}), starts)
    _refuse_changed_data(command, finished, analysis, () if pedigree is None else ("data.pedigree",))
    tell(f"reading the data of '{finished.directory}'")
    prepared = prepare(analysis)
    model = assemble(analysis, prepared).model
    variances = Variances([None if c is None else c.start for c in model.covariances], model.residual.start)
    return RunModel(finished.directory, finished.record, analysis, prepared, variances, finished)


def refuse_other_runs(finished: Finished) -> None:
    """ConfigError for a regression, SNP effects, and traits that are not normal."""
    analysis = finished.record.get("analysis", {})
    name = f"gwas: '{finished.directory}'"
    if "plugin" in finished.record or not analysis.get("model", {}).get("random"):
        raise ConfigError(f"{name} is not a mixed model with random effects; needed such a run")
    if analysis["model"].get("markers"):
        raise ConfigError(
            f"{name} has SNP effects of its own (model.markers): look at their probabilities (pip) in markers.parquet; "
            "needed a run without model.markers, such as one with relationship: pedigree or genomic"
        )
    other = {t: keys["type"] for t, keys in analysis["traits"].items() if keys.get("type", "normal") != "normal"}
    if other:
        trait, kind = next(iter(other.items()))
        raise ConfigError(
            f"{name}: trait {trait} is {kind}, and the tests are those of normal traits; needed a run of normal "
            "traits. For others, fit SNP effects (model.markers with prior: bayes_c) and look at their probabilities "
            "(pip)"
        )
    _refuse_data_from_python("gwas", finished)


def _refuse_data_from_python(command: str, finished: Finished) -> None:
    records = finished.record.get("analysis", {}).get("data", {}).get("phenotypes")
    if not isinstance(records, str) or not Path(records).is_absolute():
        raise ConfigError(
            f"{command}: '{finished.directory}' was given its records from Python; needed a run whose data are files"
        )


def _refuse_changed_data(command: str, finished: Finished, analysis: Analysis, replaced: Collection[str]) -> None:
    """DataError where the fingerprint of a file is not that of the run."""
    then = finished.record.get("data_files", {})
    now = fingerprint(analysis)["files"]
    absent = [key for key, digest in now.items() if digest == NO_FILE and then.get(key) != NO_FILE]
    if absent:
        raise DataError(f"{command}: there is no file of {absent[0]} now; needed the data of '{finished.directory}'")
    changed = [key for key in now if key in then and then[key] != now[key] and key not in replaced]
    if changed:
        raise DataError(
            f"{command}: the file of {changed[0]} is not the one that '{finished.directory}' has read; needed its data "
            "as they were, or a new run"
        )


def refuse_changed_run_data(command: str, finished: Finished) -> None:
    """DataError where a file that the run has read is not as it was."""
    _refuse_data_from_python(command, finished)
    source = {key: value for key, value in finished.record["analysis"].items() if key != "output"}
    _refuse_changed_data(command, finished, load_analysis(source), ())


def factor_model(model: RunModel) -> Point | str:
    """The equations of the run at its variances, with their factor; or why there is none."""
    design, variances = model.design, model.variances
    blocks = join_all(variances.G)
    residual_blocks = [(tuple(range(design.n_traits)),)] * len(variances.R)
    return factor_if_affordable(design, variances, blocks, residual_blocks)


def factor_if_affordable(
    design: Design, variances: Variances, of_terms: Sequence[Blocks | None], of_residuals: Sequence[Blocks]
) -> Point | str:
    """Factor C of a design, or explain why not; of_terms, of_residuals: components that may covary."""
    if design.responses or design.correlated or design.markers:
        return "they need normal traits, independent residuals and no SNP effects in the model"
    n, free = design.n_equations, free_bytes()
    too_long = f"a factor of {n:,} equations would take too long"
    joined = [t.relationship.dense.levels.size for t in design.terms if t.relationship.dense is not None]
    if n > MOST_EQUATIONS or estimate_seconds(sum(float(m) ** 3 for m in joined) / 3) > MAX_SECONDS:
        return too_long  # known before a pattern is made
    try:
        likelihood = RestrictedLikelihood(design, of_terms, of_residuals)
    except DeviceError as error:
        return str(error)
    if estimate_seconds(likelihood.operations) > MAX_SECONDS:
        return too_long
    if free is not None and likelihood.bytes > free:
        return f"a factor of {n:,} equations does not fit into memory"
    return likelihood.evaluate(variances)
