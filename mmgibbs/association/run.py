"""`mmgibbs.gwas`: from a finished run and a file of genotypes to tests of all SNPs, their tables and their page."""

from __future__ import annotations

import os
import reprlib
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from mmgibbs.association.animals import Animals, match_animals, open_tested_genotypes
from mmgibbs.association.chunks import EVERY, FOLDER, Checkpoint, plan_chunks, refuse_unfinished
from mmgibbs.association.fingerprint import fingerprint_scan
from mmgibbs.association.projection import Projection
from mmgibbs.association.regions import flank_of_width, make_regions
from mmgibbs.association.results import Association, list_tests
from mmgibbs.association.scan import CALIBRATION_SNPS, Genotypes, Limits, scan
from mmgibbs.association.tables import (
    association_frame,
    collect_facts,
    collect_notes,
    describe_left_out,
    find_families,
)
from mmgibbs.association.windows import place_windows, read_windows, scan_windows, windows_frame
from mmgibbs.config.fields import read_section
from mmgibbs.config.genotypes import Quality
from mmgibbs.data.chromosomes_left_out import ChromosomesLeftOut, leave_chromosomes_out
from mmgibbs.data.genomic_parts import genomic_parts
from mmgibbs.data.genotypes.file_format import GenotypeFile
from mmgibbs.data.genotypes.snps import describe_sex_chromosomes, name_sex_chromosomes
from mmgibbs.data.levels import natural
from mmgibbs.data.phenotypes import SHOWN
from mmgibbs.errors import ConfigError, DataError, option_name
from mmgibbs.machine.output_places import OutputKind, check_output_folder, list_paths, list_run_inputs
from mmgibbs.machine.signals import StopSignals
from mmgibbs.machine.speed import describe_duration, estimate_seconds
from mmgibbs.options import NumberRange
from mmgibbs.results.csv_files import is_escaped
from mmgibbs.results.folder import is_csv_wanted
from mmgibbs.results.output_folder import Content, write_files
from mmgibbs.runs.genomic_predictions import read_breeding_values
from mmgibbs.runs.model_of_run import RunModel, read_model_of_run
from mmgibbs.runs.other_genotypes import NamedGenotypes, describe_other_genotypes
from mmgibbs.runs.progress import Console
from mmgibbs.runs.snp_effects import snp_effects_frame

SECONDS_BETWEEN_LINES = 30.0  # of progress
EXACT_LIMIT = 600.0  # seconds


KIND = OutputKind(
    "gwas.json",
    frozenset(
        {
            "markers.parquet",
            "markers.csv",
            "snp_effects.parquet",
            "windows.parquet",
            "windows.csv",
            "regions.parquet",
            "regions.csv",
            "gwas.json",
            "gwas.html",
        }
    ),
    "an association",
    working=frozenset({FOLDER}),
)


def gwas(
    run: str | os.PathLike,
    genotypes: NamedGenotypes | None = None,
    output: str | os.PathLike | None = None,
    *,
    level: str | None = None,
    quality: Mapping[str, float] | None = None,
    exact_limit: float = EXACT_LIMIT,
    seed: int = 1,
    loco: bool = False,
    windows: float | Literal[True] | Mapping[str, float] | None = None,
    region_width: float | None = None,
    overwrite: bool = False,
    resume: bool = False,
    progress: bool = True,
    report: bool = False,
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
    genotypes : path-like, mapping or None, default None
        Any file that `data.genotypes` reads, or keys of that section: `{"file": "snps.csv", "map": "map.csv"}`. By
        default that of the run.
    output : path-like or None, default None
        Folder to write. By default nothing is written.
    level : str or None, default None
        Column of the records with the ids of the genotyped animals or lines: the level of a random effect. By default
        that of the first random effect with relationships.
    quality : mapping or None, default None
        `maf` and `call_rate`, the least minor allele frequency and call rate, among the animals with records, of SNPs
        that are tested. By default those of `data.genotypes.quality` of the run if its genotypes are tested, else 0.01
        and 0.9.
    exact_limit : float, default 600
        Seconds of estimated time up to which all tests are exact.
    seed : int, default 1
        Of the SNPs by which tests are calibrated.
    loco : bool, default False
        For a run with relationships from genotypes: test the SNPs of each chromosome with relationships that are made
        without them. Chromosomes come from the maps of the run and of the file.
    windows : float, True, mapping or None, default None
        Test windows of neighbouring SNPs too, of this width in the unit of the map; True: 1,000,000 base pairs, 1 Mb or
        1 cM; `{"snps": 20}`: of so many SNPs.
    region_width : float or None, default None
        Width of a region around one SNP beyond the threshold, in the unit of the map: SNPs within half of it belong to
        the region. By default 1,000,000 base pairs, 1 Mb or 1 cM; of SNPs without a place it is a number of SNPs, by
        default 100.
    overwrite : bool, default False
        Replace the files of an earlier association in `output`.
    resume : bool, default False
        Continue a scan that was interrupted, in `output`.
    progress : bool, default True
        Print what is being done.
    report : bool, default False
        Write gwas.html too, with Manhattan and quantile-quantile plots; needs `output`.

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
    if not isinstance(run, (str, os.PathLike)):
        raise ConfigError(f"gwas: found {reprlib.repr(run)}, needed the folder of a finished run")
    NumberRange(0, can_be_infinite=True).check(f"gwas: {option_name('exact_limit')}", exact_limit)
    given_limits = _read_limits(quality)
    asked_windows = read_windows(windows)
    flank_of_width(region_width, None, "gwas")
    console = Console(progress)
    if (report or resume) and output is None:
        raise ConfigError(f"gwas: {'report' if report else 'resume'} needs output, the folder to write")
    if overwrite and resume:
        raise ConfigError(f"gwas: {option_name('overwrite')} and {option_name('resume')} cannot be combined")
    model = read_model_of_run(run, console.say)
    file, section = open_tested_genotypes(model, genotypes)
    limits = Limits(section.quality.maf, section.quality.call_rate)._replace(**given_limits)
    folder = None
    if output is not None:
        inputs = [*list_run_inputs(model.directory, model.record), *list_paths(section.as_file())]
        refuse_unfinished(output, overwrite or resume)
        folder = check_output_folder(KIND, output, overwrite or resume, inputs)
    of_windows = None if asked_windows is None else place_windows(file, asked_windows)
    families = find_families(model.analysis.traits)
    animals = match_animals(model, file, level)
    projection = Projection(model.design, model.variances, animals.record_animal, len(animals.places))
    chunks = plan_chunks(file.snps["chromosome"], loco)
    left_out = check_loco(model, file) if loco else None
    n_models = len({chunk.model for chunk in chunks})
    seconds = n_models * projection.cost(-(-file.n_snps // n_models))
    is_exact = seconds <= exact_limit or file.n_snps <= CALIBRATION_SNPS
    console.say(_describe_plan(file, animals, seconds, is_exact, exact_limit))
    if left_out is not None:
        m, p = len(animals.places), len(left_out.chromosome)
        more = estimate_seconds(n_models * (2.0 * m**2 * p + 6.0 * m**3))
        console.say(f"{option_name('loco')}: {n_models} relationships of {m:,} animals more{describe_duration(more)}")

    def make_projection(chromosome: str) -> Projection:
        if chromosome == EVERY or left_out is None:
            return projection
        console.say(f"chromosome {chromosome}: relationships from the other SNPs")
        return Projection(left_out.leave_out(chromosome), model.variances, animals.record_animal, len(animals.places))

    settings: dict[str, Any] = {
        **limits._asdict(), "exact": is_exact, "seed": seed, "loco": loco, "level": animals.level,
        "windows": None if asked_windows is None else asked_windows.as_file(),
    }  # fmt: skip
    tested = Genotypes(file.source, animals.places, limits)
    known = None if folder is None else fingerprint_scan(model.directory, file, section, settings)
    with StopSignals(lambda: None) as stop:
        checkpoint = Checkpoint(stop=stop)
        if folder is not None and known is not None:
            checkpoint = Checkpoint.open(folder, known, resume, stop)
        tell = _progress(console, file.n_snps, "SNPs")
        found = scan(make_projection, tested, chunks, is_exact, seed, checkpoint, tell, list(families.values()))
        window_values = None
        if of_windows is not None:
            tell = _progress(console, of_windows.windows.height, "windows")
            is_tested = np.isfinite(found.tests.log_p)
            log_p, n_tested = scan_windows(
                make_projection, tested, of_windows, is_tested, loco, is_exact, seed, checkpoint, tell
            )
            window_values = windows_frame(of_windows, log_p, n_tested, model.design.traits)
    if not (found.left_out == "").any():
        checkpoint.remove()
        raise DataError(f"{file.name}: no SNP can be tested; {describe_left_out(found)}")
    values = association_frame(found, file, model.design.traits, list(families))
    facts = collect_facts(found, model, file, animals, values, seconds, families) | {
        "fingerprint": known, **limits._asdict(), "loco": loco,
        "genotypes_section": section.as_file(), "map_unit": file.unit,
    }  # fmt: skip
    regions, region_notes = make_regions(values, list_tests(facts), facts, region_width, "gwas")
    file_notes = (*(f"warning: {warning}" for warning in file.warnings), *file.notes)
    if genotypes is not None:
        file_notes += tuple(describe_other_genotypes(model.prepared.genotypes, file, section.map is not None))
    file_notes += describe_tested_sex_chromosomes(model, file)
    if left_out is not None:
        file_notes += warn_of_other_chromosomes(left_out, file)
    notes = (*file_notes, *animals.notes, *collect_notes(found, model, facts), *region_notes)
    effects = compute_snp_effects(model, projection, console)
    association = Association(values, facts, notes, folder, effects, window_values, regions)
    if folder is not None:
        _write(association, folder, report, is_escaped(model.record))
        checkpoint.remove()
    return association


def _write(association: Association, folder: Path, page: bool, escaped: bool) -> None:
    """Write all files, whole or not at all; escaped: no formulas in csv files."""
    values = association.values
    contents: dict[str, Content] = {
        "markers.parquet": values,
        "markers.csv": values if is_csv_wanted("auto", values.height) else None,
        "snp_effects.parquet": association.snp_effects,
        "windows.parquet": association.windows,
        "windows.csv": association.windows,
        "regions.parquet": association.regions,
        "regions.csv": association.regions,
    }
    if page:
        from mmgibbs.association.page import write_page  # and matplotlib with it

        contents["gwas.html"] = lambda path: write_page(association, path)
    write_files(KIND, folder, contents, association.facts | {"notes": list(association.notes)}, escaped)


def compute_snp_effects(model: RunModel, projection: Projection, console: Console) -> pl.DataFrame | None:
    """Effects of the SNPs of the run behind its breeding values; None without relationships from genotypes."""
    parts = genomic_parts(model.analysis, model.prepared) if model.uses_genotypes else []
    if not parts:
        return None
    console.say("SNP effects from breeding values")
    values = lambda part: read_breeding_values(model, part)
    return snp_effects_frame(parts, model.prepared, values, model.variances, projection.point)


def describe_tested_sex_chromosomes(model: RunModel, file: GenotypeFile) -> tuple[str, ...]:
    """A note of how SNPs of sex chromosomes and mitochondria are tested; () without such."""
    genotypes, chromosome = model.prepared.genotypes, file.snps["chromosome"]
    names = name_sex_chromosomes(chromosome.unique())
    if genotypes is not None:
        names |= {c: k for c, k in genotypes.checked.sex_chromosomes.items() if (chromosome == c).any()}
    words = describe_sex_chromosomes(chromosome, names)
    return (f"{file.name}: {words} are tested like others, a haploid genotype as a homozygous one",) if words else ()


def check_loco(model: RunModel, file: GenotypeFile) -> ChromosomesLeftOut:
    """ConfigError where no relationships of the run are without a chromosome, or chromosomes are not known."""
    option_words = option_name("loco")
    if not genomic_parts(model.analysis, model.prepared):
        raise ConfigError(
            f"gwas: {option_words} makes genomic relationships without the SNPs of a chromosome; '{model.directory}' "
            "has none, needed a run with relationship: genomic or single_step"
        )
    left_out = leave_chromosomes_out(model.analysis, model.prepared)
    of_run = left_out.chromosome.drop_nulls().unique()
    if not len(of_run):
        raise ConfigError(
            f"gwas: {option_words}: the SNPs of '{model.directory}' have no chromosomes; needed a run with a map "
            "(data.genotypes.map)"
        )
    tested = file.snps["chromosome"].drop_nulls().unique()
    absent = sorted(tested.filter(~tested.is_in(of_run.implode())), key=natural)
    if len(absent) == len(tested):
        raise ConfigError(
            f"gwas: {option_words}: {file.name} has "
            + (
                f"the chromosomes {', '.join(absent[:SHOWN])}, the run {', '.join(sorted(of_run, key=natural)[:SHOWN])}"
                if absent
                else f"no chromosomes; needed a map of it ({option_name('map')})"
            )
        )
    return left_out


def warn_of_other_chromosomes(left_out: ChromosomesLeftOut, file: GenotypeFile) -> tuple[str, ...]:
    """A warning where chromosomes of the tested file are none of the run's: nothing is left out for them."""
    tested = file.snps["chromosome"].drop_nulls().unique()
    absent = sorted(tested.filter(~tested.is_in(left_out.chromosome.drop_nulls().unique().implode())), key=natural)
    if not absent:
        return ()
    of = f"chromosome {absent[0]} of {file.name} is none of the run"
    if len(absent) > 1:
        of = f"chromosomes {', '.join(absent[:SHOWN])} of {file.name} are none of the run"
    return (f"warning: {of}: tested with the relationships of the run",)


def _read_limits(quality: Mapping[str, float] | None) -> dict[str, float]:
    """The limits of `Limits` that are given."""
    checked = read_section(Quality, quality, "gwas: quality.")
    for name in quality or {}:
        if name not in Limits._fields:
            raise ConfigError(f"gwas: quality.{name}: expected {' or '.join(Limits._fields)}, the limits of a test")
    return {name: getattr(checked, name) for name in quality or {}}


def _describe_plan(file: GenotypeFile, animals: Animals, seconds: float, is_exact: bool, limit: float) -> str:
    how = "exact tests" if is_exact else f"calibrated tests, as exact ones are above the limit of {limit:,.0f} s"
    about = f"about {max(1, round(seconds)):,} s on one core if every SNP is tested exactly"
    return f"{file.n_snps:,} SNPs, {len(animals.places):,} animals with records and genotypes: {about}; {how}"


def _progress(console: Console, n: int, what: str) -> Callable[[int], None]:
    """Say what is done, at most every half a minute."""
    last = [time.monotonic()]

    def tell(done: int) -> None:
        if time.monotonic() - last[0] >= SECONDS_BETWEEN_LINES:
            last[0] = time.monotonic()
            console.say(f"{done:,} of {n:,} {what}")

    return tell
