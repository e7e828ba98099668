"""`mmgibbs.gwas`: from a finished run and a file of genotypes to tests of all SNPs, their tables and their page."""

from __future__ import annotations

import os
import reprlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from mmgibbs.association.files import output_folder, write_association
from mmgibbs.association.model_of_run import RunModel, read_model_of_run
from mmgibbs.association.multiple_testing import ALPHA, false_discovery_rates
from mmgibbs.association.projection import Projection
from mmgibbs.association.scan import CALIBRATION_SNPS, LEFT_OUT, Limits, Scan, scan
from mmgibbs.association.statistics import genomic_inflation
from mmgibbs.association.trait_columns import trait_columns
from mmgibbs.config.genotypes import Genotypes
from mmgibbs.data.genotypes.file import GenotypeFile
from mmgibbs.data.phenotypes import SHOWN
from mmgibbs.errors import ConfigError, DataError, option, option_name
from mmgibbs.runs.other_genotypes import genotypes_section, open_other_genotypes
from mmgibbs.runs.progress import Console
from pedigree.spelling import find_respelled
from pedigree.tables import counted, quoted

SECONDS_BETWEEN_LINES = 30.0  # of progress
EXACT_LIMIT = 600.0  # seconds


@dataclass(frozen=True)
class Association:
    """Tests of the SNPs of a file in the model of a run.

    Attributes
    ----------
    values : polars.DataFrame
        A row for each SNP of the file: effect, standard error, -log10 p and q of each trait.
    facts : dict
        What was done: SNPs tested and left out, calibration, inflation, threshold.
    notes : tuple of str
        What to know about them; warnings begin with "warning: ".
    directory : pathlib.Path or None
        Where they were written.
    """

    values: pl.DataFrame
    facts: dict[str, Any]
    notes: tuple[str, ...]
    directory: Path | None


def gwas(
    run: str | os.PathLike,
    genotypes: str | os.PathLike | None = None,
    output: str | os.PathLike | None = None,
    *,
    level: str | None = None,
    maf: float = 0.01,
    call_rate: float = 0.9,
    exact_limit: float = EXACT_LIMIT,
    seed: int = 1,
    overwrite: bool = False,
    progress: bool = True,
    report: bool = False,
    **options: Any,
) -> Association:
    """Test every SNP of a file in the whole mixed model of a finished run, at the variances of the run.

    For genotypes x of the animals of the records, in copies of the counted allele,

        b = x'Py / x'Px        se = 1 / sqrt(x'Px)        chi2 = b^2 x'Px

    with P of the run: repeated records, weights, all random effects and residual classes. Several traits are tested
    together and each with the others (b = I^-1 s). x'Px is computed for every SNP if the estimated time is below
    `exact_limit`; otherwise from x'Dx and the mean of the ratio of both over 100 SNPs, and exactly if p < 1e-5.

    Parameters
    ----------
    run : path-like
        Folder of a finished run (REML, BLUP or Gibbs) with normal traits and without SNP effects.
    genotypes : path-like or None, default None
        Any file that `data.genotypes` reads. By default that of the run.
    output : path-like or None, default None
        Folder to write. By default nothing is written.
    level : str or None, default None
        Column of the records with the ids of the genotyped animals or lines: the level of a random effect. By default
        that of the first random effect with relationships.
    maf, call_rate : float, default 0.01 and 0.9
        Least minor allele frequency and call rate, among the animals with records, of SNPs that are tested.
    exact_limit : float, default 600
        Seconds of estimated time up to which all tests are exact.
    seed : int, default 1
        Of the SNPs by which tests are calibrated.
    overwrite : bool, default False
        Replace the files of an earlier association in `output`.
    progress : bool, default True
        Print what is being done.
    report : bool, default False
        Write gwas.html too, with Manhattan and quantile-quantile plots; needs `output`.
    **options : Any
        Other keys of `data.genotypes`: `map`, `format`, `animals`, `id`, ...

    Returns
    -------
    Association
        `values`, a Polars frame with a row for each SNP, `facts` and `notes`.

    Raises
    ------
    ConfigError
        The run cannot be used (traits that are not normal, SNP effects), or an argument.
    DataError
        The data of the run have changed, or the file of genotypes cannot be used.

    References
    ----------
    Svishcheva et al. (2012), Nature Genetics 44:1166-1170; Zhou et al. (2018), Nature Genetics 50:1335-1341.

    Examples
    --------
    >>> import mmgibbs
    >>> without_snps = ["sampler={method: reml}", "model.markers={}"]
    >>> run = mmgibbs.run("configs/genomic.yaml", without_snps, directory="runs/genomic-reml", progress=False)
    >>> tested = mmgibbs.gwas(run.directory, "data_samples/genomic/genotypes.bed", progress=False)
    >>> tested.values.columns[:5]
    ['snp', 'chromosome', 'position', 'counted', 'other']
    """
    _check_arguments(run, maf, call_rate, exact_limit)
    console = Console(progress)
    if report and output is None:
        raise ConfigError("gwas: report needs output, the folder to write")
    model = read_model_of_run(run, console.say)
    file = _open_genotypes(model, genotypes, options)
    folder = None if output is None else output_folder(output, overwrite)
    animals = match_animals(model, file, level)
    projection = Projection(model.design, model.variances, animals.of_record, len(animals.places))
    seconds = projection.cost(file.n_snps)
    is_exact = seconds <= exact_limit or file.n_snps <= CALIBRATION_SNPS
    console.say(_describe_plan(file, animals, seconds, is_exact, exact_limit))
    found = scan(
        projection, file.source, animals.places, Limits(maf, call_rate), is_exact, seed, _progress(console, file.n_snps)
    )
    if not (found.left_out == "").any():
        raise DataError(f"{file.name}: no SNP can be tested; {_left_out_words(found)}")
    values = association_frame(found, file, model.design.traits)
    facts = _facts(found, model, file, animals, values, seconds)
    notes = (*(f"warning: {w}" for w in file.warnings), *file.notes, *animals.notes, *_notes(found, model, facts))
    association = Association(values, facts, notes, folder)
    if folder is not None:
        write_association(association, folder, report)
    return association


def _check_arguments(run: object, maf: float, call_rate: float, exact_limit: float) -> None:
    if not isinstance(run, (str, os.PathLike)):
        raise ConfigError(f"gwas: found {reprlib.repr(run)}, needed the folder of a finished run")
    for name, value, top in (("maf", maf, 0.5), ("call_rate", call_rate, 1.0), ("exact_limit", exact_limit, np.inf)):
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= top:
            of = "0 or more" if top == np.inf else f"0 to {top:g}"
            raise ConfigError(f"gwas: {option_name(name)}: expected a number, {of}, got {reprlib.repr(value)}")


# ------------------------------------------------------------------------------------------------ genotypes


@dataclass(frozen=True)
class Animals:
    """The animals that have both records and genotypes."""

    places: np.ndarray  # (m,) int64 in the file of genotypes
    of_record: np.ndarray  # (n,) int64 the animal of each record, -1: none of them
    level: str  # column of the records
    notes: tuple[str, ...]


def _open_genotypes(model: RunModel, genotypes: str | os.PathLike | None, options: dict[str, Any]) -> GenotypeFile:
    given = {key: value for key, value in options.items() if value is not None}
    of_run = model.analysis.data.genotypes
    if genotypes is None:
        if of_run is None:
            raise ConfigError(
                f"gwas: '{model.directory}' is a run without genotypes; needed a file of them as second argument"
            )
        if given:
            raise ConfigError(f"gwas: {option_name(next(iter(given)))} belongs to a file of genotypes that is named")
        section: Genotypes = of_run
    else:
        section = genotypes_section("gwas", {"file": genotypes} | given)
    traits = {trait.column or trait.name for trait in model.analysis.traits}
    return open_other_genotypes(section, traits)


def match_animals(model: RunModel, file: GenotypeFile, level: str | None) -> Animals:
    """Who has both, by the ids of one column of the records."""
    candidates = model.levels()
    if level is not None and level not in candidates:
        known = ", ".join(candidates) or "none"
        raise ConfigError(
            f"gwas: {option('level', level)}: expected the level of a random effect of the run ({known}), got another "
            "column"
        )
    column = level or model.animal_level(file.ids)
    ids, code = candidates[column]
    place = pl.DataFrame({"id": ids}).join(
        pl.DataFrame({"id": file.ids}).with_row_index("place"), on="id", how="left", maintain_order="left"
    )["place"]
    of_level = place.cast(pl.Int64).fill_null(-1).to_numpy()
    recorded = np.unique(code[code >= 0])
    both = recorded[of_level[recorded] >= 0]
    if not both.size:
        raise DataError(
            f"{file.id_file}: none of the {file.n_animals:,} genotyped animals has a record; are ids written in the "
            f"same way? Genotypes have {quoted(file.ids[0])}, column {column} {quoted(ids[int(recorded[0])])}. "
            f"{option_name('level')} names another column"
        )
    number = np.full(len(ids), -1, np.int64)
    number[both] = np.arange(both.size)
    of_record = np.where(code >= 0, number[np.maximum(code, 0)], -1)
    return Animals(of_level[both], of_record, column, _match_notes(file, ids, recorded, of_level, column))


def _match_notes(
    file: GenotypeFile, ids: pl.Series, recorded: np.ndarray, place: np.ndarray, column: str
) -> tuple[str, ...]:
    ungenotyped = ids.gather(recorded[place[recorded] < 0])
    notes = []
    if len(ungenotyped):
        shown = ", ".join(ungenotyped.head(SHOWN).to_list())
        notes.append(
            f"{counted(len(ungenotyped), 'level', 'has')} records and no genotypes ({column}: {shown}): they stay in "
            "the model, and count as average in every SNP"
        )
        alike = find_respelled(ungenotyped, file.ids)
        if alike.height:
            shown = ", ".join(f"{quoted(text)} = {quoted(id)}" for text, id, _ in alike.head(SHOWN).iter_rows())
            found = counted(alike.height, "recorded id")
            notes.append(f"warning: {found} may be genotyped in another spelling: {shown}")
    return tuple(notes)


# ------------------------------------------------------------------------------------------------ tables and words


def association_frame(found: Scan, file: GenotypeFile, traits: tuple[str, ...]) -> pl.DataFrame:
    """A row for each SNP of the file, in its order."""
    columns: dict[str, Any] = {name: file.snps[name] for name in ("snp", "chromosome", "position", "counted", "other")}
    columns |= {
        "frequency": found.frequency,
        "call_rate": found.call_rate,
        "left_out": pl.Series([why or None for why in found.left_out], dtype=pl.String),
        "exact": found.is_exact,
    }
    for t, trait in enumerate(traits):
        names = trait_columns(trait)
        columns |= {
            names.effect: found.tests.effect[:, t],
            names.error: found.tests.error[:, t],
            names.log_p: found.tests.log_p[:, t],
            names.q: false_discovery_rates(10.0 ** -found.tests.log_p[:, t]),
        }
    if len(traits) > 1:
        log_p = found.tests.joint_log_p
        columns |= {"chi2_joint": found.tests.joint_chi2, "log10_p_joint": log_p}
        columns["q_joint"] = false_discovery_rates(10.0**-log_p)
    return pl.DataFrame(columns).with_columns(pl.selectors.float().fill_nan(None))


def _describe_plan(file: GenotypeFile, animals: Animals, seconds: float, is_exact: bool, limit: float) -> str:
    how = "exact tests" if is_exact else f"calibrated tests, as exact ones are above the limit of {limit:,.0f} s"
    about = f"about {max(1, round(seconds)):,} s on one core if every SNP is tested exactly"
    return f"{file.n_snps:,} SNPs, {len(animals.places):,} animals with records and genotypes: {about}; {how}"


def _progress(console: Console, n_snps: int) -> Callable[[int], None]:
    """Say what is done, at most every half a minute."""
    last = [time.monotonic()]

    def tell(done: int) -> None:
        if time.monotonic() - last[0] >= SECONDS_BETWEEN_LINES:
            last[0] = time.monotonic()
            console.say(f"{done:,} of {n_snps:,} SNPs")

    return tell


def _facts(
    found: Scan, model: RunModel, file: GenotypeFile, animals: Animals, values: pl.DataFrame, seconds: float
) -> dict[str, Any]:
    tested = int((found.left_out == "").sum())
    facts: dict[str, Any] = {
        "run": str(model.directory),
        "method": model.method,
        "genotypes": file.name,
        "level": animals.level,
        "animals": len(animals.places),
        "records": int((animals.of_record >= 0).sum()),
        "tested": tested,
        "left_out": {why: int((found.left_out == why).sum()) for why in LEFT_OUT.values()},
        "exact": int(found.is_exact.sum()),
        "estimated_seconds": seconds,
        "effective_tests": found.effective_tests,
        "threshold_log10_p": float(np.log10(max(found.effective_tests, 1.0) / ALPHA)),
        "threshold": f"{ALPHA} over the effective number of tests (Li & Ji 2005)",
        "lambda": {trait: genomic_inflation(found.tests.log_p[:, t]) for t, trait in enumerate(model.design.traits)},
    }
    if found.calibration is not None:
        facts["calibration"] = {
            "snps": found.calibration.n_snps,
            "gamma": found.calibration.gamma.tolist(),
            "variation": found.calibration.variation.tolist(),
        }
    columns = [trait_columns(trait).log_p for trait in model.design.traits]
    columns += ["log10_p_joint"] if len(columns) > 1 else []
    above = values.select(pl.col(columns) >= facts["threshold_log10_p"]).sum().row(0)
    return facts | {"significant": dict(zip(columns, above, strict=True))}


def _left_out_words(found: Scan) -> str:
    counts = {why: int((found.left_out == why).sum()) for why in LEFT_OUT.values()}
    return ", ".join(f"{n:,} left out ({why})" for why, n in counts.items() if n)


def _notes(found: Scan, model: RunModel, facts: dict[str, Any]) -> list[str]:
    notes = [words] if (words := _left_out_words(found)) else []
    if found.calibration is not None:
        spread = ", ".join(f"{100 * v:.1f} %" for v in found.calibration.variation)
        notes.append(
            f"standard errors are calibrated by {found.calibration.n_snps} SNPs, whose ratios differ by {spread} "
            f"(coefficient of variation); {facts['exact']:,} tests with p < 1e-5 are exact"
        )
    if model.record.get("converged") is False:
        notes.append("warning: REML of the run has not converged: tests are at variances that are not its estimates")
    for trait, value in facts["lambda"].items():
        if value > 1.2:
            notes.append(
                f"warning: lambda of {trait} is {value:.2f}, above 1: effects of many genes, or relationships that the "
                "model lacks (a random effect with relationship: genomic or pedigree)"
            )
    if model.uses_genotypes:
        notes.append(
            "the relationships of the run are from genotypes, which hold the tested SNPs too: tests are conservative"
        )
    return notes
