"""Fine-mapping of the regions that `mmgibbs gwas` names: bayes_c on their SNPs, all other SNPs as polygenic term.

The prior probability of an effect is that among all SNPs of the file, pi = effects / SNPs, and not among those that
passed: chosen SNPs would otherwise be evidence twice. From the draws of the effects of a region,

    p_any             the share of the draws in which some SNP of it has an effect
    credible set      the fewest SNPs, by falling PIP, some of which have an effect in 95 % of the draws

A region with p_any below 95 % has no credible set.
"""

from __future__ import annotations

import json
import os
import reprlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import mmgibbs
from mmgibbs.association.fine_map_files import RUN, SNPS, FineMapFolder, open_folder
from mmgibbs.association.fingerprint import fingerprint_scan
from mmgibbs.association.regions import make_regions, snps_of_region
from mmgibbs.association.results import FineMap
from mmgibbs.association.tables import trait_columns
from mmgibbs.config.environments import BETWEEN_TRAIT_AND_LEVEL
from mmgibbs.config.load import listed_overrides
from mmgibbs.errors import ConfigError, DataError, MmgibbsError, option_name
from mmgibbs.machine.files import sha256_of_file
from mmgibbs.machine.output_places import list_names, list_run_inputs, name_results_folder
from mmgibbs.report.finished import Finished
from mmgibbs.results.csv_files import is_escaped, unescape_formulas
from mmgibbs.results.marker_draws import read_marker_draws
from mmgibbs.results.reading import RECORD, RunFiles, read_csv, read_parquet, read_record
from mmgibbs.runs.model_of_run import read_finished_run, refuse_changed_run_data
from mmgibbs.runs.other_genotypes import genotypes_section, open_other_genotypes
from mmgibbs.runs.run import run

LEVEL = 0.95
TERM, REST = "regions", "rest"
DRAWS = 1000  # of the effects, from which credible sets are made
READ = ("gwas.json", "regions.parquet", "markers.parquet")
FROM_GENOTYPES = ("genomic", "dominance", "single_step")
CHAINS = {"method": "gibbs", "chains": 2, "burn_in": 2000, "samples": 10_000, "thin": 10, "seed": 42}


def finemap(
    association: str | os.PathLike,
    output: str | os.PathLike | None = None,
    *,
    effects: float | None = None,
    region_width: float | None = None,
    overrides: Sequence[str] = (),
    overwrite: bool = False,
    resume: bool = False,
    progress: bool = True,
) -> FineMap:
    """Fine-map the regions that an association names: draft an analysis with bayes_c on their SNPs, and run it.

    Parameters
    ----------
    association : path-like
        Folder that `mmgibbs gwas` wrote, of a run with one trait.
    output : path-like or None, default None
        Folder to write. By default that of the association with -finemap added.
    effects : float or None, default None
        SNPs that are expected to have an effect, of all SNPs of the file: the prior probability of each is this number
        over the SNPs. By default the number of regions.
    region_width : float or None, default None
        Width of a region around one SNP beyond the threshold, in the unit of the map; without a map a number of SNPs.
        By default the regions are those of the association.
    overrides : sequence of str, default ()
        Keys of the drafted analysis, such as "sampler.samples=20000".
    overwrite : bool, default False
        Replace the files of an earlier fine-mapping.
    resume : bool, default False
        Continue a fine-mapping that was interrupted.
    progress : bool, default True
        Print what is being done.

    Returns
    -------
    FineMap
        `values` with the PIP of each SNP, `sets` with a credible set for each region, `analysis` and `notes`.

    Raises
    ------
    ConfigError
        The folder has no association, no region passed, or the run has several traits.

    Examples
    --------
    >>> import mmgibbs
    >>> mapped = mmgibbs.finemap("runs/growth-gwas")  # doctest: +SKIP
    >>> mapped.sets.select("region", "lead_snp", "p_any", "size")  # doctest: +SKIP
    """
    source, facts, regions, snps = _read_association(association)
    finished = read_finished_run("finemap", facts["run"])
    trait = _find_trait(finished.record["analysis"], facts["run"], facts["level"])
    refuse_changed_association(source, facts, finished)
    regions = regions.filter(test=trait)
    notes: tuple[str, ...] = ()
    if regions.height:
        by_width, notes = make_regions(snps, {trait: trait_columns(trait).log_p}, facts, region_width, "finemap")
        regions = regions if region_width is None else by_width
    if not regions.height:
        raise ConfigError(
            f"finemap: no region of '{source}' has a SNP beyond the threshold (p = "
            f"{10 ** -facts['threshold_log10_p']:.2g}); needed one"
        )
    members = pl.concat(
        snps_of_region(snps, row).to_frame("snp").with_columns(region=pl.lit(row["region"], pl.Int64))
        for row in regions.iter_rows(named=True)
    ).join(snps.filter(pl.col("left_out").is_null()).select("snp"), on="snp", maintain_order="left")  # fmt: skip
    estimates = dict(finished.summary.select("parameter", "mean").iter_rows())
    draft = lambda snps_file: draft_analysis(
        finished.record["analysis"], facts, trait, members, snps, effects, snps_file, estimates
    )
    directory = Path(output or name_results_folder(source, "finemap"))
    identity = {
        "version": mmgibbs.__version__, "association": sha256_of_file(source / "gwas.json"),
        "table of regions": sha256_of_file(source / "regions.parquet"),
        "table of SNPs": sha256_of_file(source / "markers.parquet"), "region width": region_width, "effects": effects,
        "overrides": listed_overrides(overrides),
    }  # fmt: skip
    inputs = [source / name for name in READ] + list_run_inputs(finished.directory, finished.record)
    analysis = draft(directory.resolve() / SNPS)  # what cannot be drafted is refused before anything is removed
    folder = open_folder(directory, overwrite, resume, inputs, identity)
    chosen = members.select("snp", group=pl.lit(TERM)).unique("snp", maintain_order=True)
    escaped = is_escaped(finished.record)
    if folder.is_finished:
        values = read_parquet(folder.path / "fine_map.parquet")
        sets = read_csv(folder.path / "credible_sets.csv")
        sets = unescape_formulas(sets) if escaped else sets
        info = read_record(folder.path / RUN, "finemap: ")
    else:
        path = folder.write_draft(draft(folder.work / SNPS), chosen, identity)
        info = _run_draft(folder, path, overrides, resume, progress)
        values, sets = summarise_regions(folder.work / RUN, regions, members, trait)
        tables = {"fine_map.parquet": values, "fine_map.csv": values, "credible_sets.csv": sets}
        facts_of_map = {"association": str(source.absolute()), "identity": identity}
        folder.write_results(analysis, chosen, tables, facts_of_map, escaped)
    return FineMap(values, sets, analysis, folder.path, (*notes, *_notes(sets, info, analysis)))


def _run_draft(
    folder: FineMapFolder, path: Path, overrides: Sequence[str], resume: bool, progress: bool
) -> dict[str, Any]:
    """Run the draft; return its run.json. What is made of a draft that cannot be run is removed."""
    directory = folder.work / RUN
    try:
        result = run(path, overrides, directory=directory, resume=resume and directory.is_dir(), progress=progress)
        return dict(result.info)
    except MmgibbsError:
        if not list_names(directory):
            folder.remove_work()
        raise


def refuse_changed_association(source: Path, facts: dict[str, Any], finished: Finished) -> None:
    """ConfigError or DataError where the run, its data or the genotypes are not those that were tested."""
    known = facts["fingerprint"]
    section = genotypes_section("finemap", facts["genotypes_section"])
    if sha256_of_file(finished.directory / RECORD) != known["run"]:
        raise ConfigError(
            f"finemap: '{finished.directory}' is not the run that '{source}' has tested: it was run again since; run "
            "mmgibbs gwas again"
        )
    refuse_changed_run_data("finemap", finished)
    traits = finished.record["analysis"]["traits"]
    file = open_other_genotypes(section, {trait.get("column") or name for name, trait in traits.items()})
    now = fingerprint_scan(finished.directory, file, section, {})
    changed = [key for key in ("variances", "genotypes", "animals and SNPs") if now[key] != known[key]]
    if changed:
        raise DataError(
            f"finemap: {changed[0]}: '{section.file}' and the files beside it are not those that '{source}' has "
            "tested; needed these files as they were, or run mmgibbs gwas again"
        )


def _read_association(directory: object) -> tuple[Path, dict[str, Any], pl.DataFrame, pl.DataFrame]:
    if not isinstance(directory, (str, os.PathLike)):
        raise ConfigError(f"finemap: found {reprlib.repr(directory)}, needed the folder of an association")
    source = Path(directory)
    for name in READ:
        if not (source / name).is_file():
            raise ConfigError(
                f"finemap: '{directory}' is not the folder of an association: found no {name}; needed what `mmgibbs "
                "gwas` writes"
            )
    try:
        facts = json.loads((source / "gwas.json").read_text(encoding="utf-8"))
        tables = read_parquet(source / "regions.parquet"), read_parquet(source / "markers.parquet")
    except (OSError, ValueError, pl.exceptions.PolarsError) as error:
        raise ConfigError(f"finemap: '{directory}' cannot be read: {str(error).splitlines()[0]}") from None
    return source, facts, *tables


def _find_trait(analysis: dict[str, Any], name: str, level: str) -> str:
    traits = list(analysis["traits"])
    if len(traits) == 1:
        return str(traits[0])
    several = "expected a run with one trait"
    families = {trait.partition(BETWEEN_TRAIT_AND_LEVEL)[0] for trait in traits}
    if len(families) > 1 or BETWEEN_TRAIT_AND_LEVEL not in traits[0]:
        raise ConfigError(
            f"finemap: {several}, got '{name}' with {', '.join(traits)}: run the analysis with one of them (--set "
            f"'traits=[{traits[0]}]'), then mmgibbs gwas and mmgibbs finemap on that run"
        )
    (family,) = families
    environment = traits[0].partition(BETWEEN_TRAIT_AND_LEVEL)[2]
    column = next(column for column, value in analysis["traits"][traits[0]]["where"].items() if value == environment)
    raise ConfigError(
        f"finemap: {several}, got '{name}' with {family} by {column} ({', '.join(traits)}).\n"
        f"For the mean of these: traits: [{family}], with {column} under model.fixed and '{level}:{column}' under "
        "model.random.\n"
        f"For one of them: traits: {{{family}: {{where: {{{column}: {environment}}}}}}}.\n"
        "Run one of these analyses, then mmgibbs gwas and mmgibbs finemap on that run"
    )


def draft_analysis(
    analysis: dict[str, Any],
    facts: dict[str, Any],
    trait: str,
    members: pl.DataFrame,
    snps: pl.DataFrame,
    effects: float | None,
    snps_file: Path,
    estimates: dict[str, float],
) -> dict[str, Any]:
    """The analysis of the run with effects of the SNPs of regions (bayes_c) and of the others (rr), by Gibbs sampling.

    Random effects with relationships from genotypes are left out: the effects of all SNPs are in their place. Variances
    start at the estimates of the run, parameter -> value, and those of SNP effects have their prior there: the genetic
    variance over sum 2pq.
    """
    expected = members["region"].n_unique() if effects is None else effects
    n_snps = int(snps["left_out"].is_null().sum())
    if not 0 < expected < n_snps:
        raise ConfigError(
            f"finemap: {option_name('effects')}: expected a number above 0 and below the {n_snps:,} SNPs, got "
            f"{expected:g}"
        )
    level = facts["level"]
    pi, column = float(expected) / n_snps, trait_columns(trait)
    of_regions = snps.filter(pl.col("snp").is_in(members["snp"].implode()))
    leads = of_regions.filter(pl.col(column.log_p) >= facts["threshold_log10_p"])
    variance = float((leads[column.effect] ** 2).mean())  # type: ignore[arg-type]
    shared: dict[str, Any] = {"level": level, "without_genotypes": "keep"}
    of_regions_term = {
        **shared, "prior": "bayes_c", "pi": {"start": [1 - pi, pi], "fixed": True},
        "variance": {"start": variance}, "snps": {"file": str(snps_file)},
    }  # fmt: skip
    model = analysis["model"]
    random = {name: term for name, term in model["random"].items() if not _is_from_genotypes(term)}
    has_rest = of_regions.height < n_snps
    rest: dict[str, Any] = {**shared, "prior": "rr", "snps": "rest"}
    genetic = [(name, estimates.get(f"{name}.var[{trait}]", 0.0)) for name in model["random"]]
    of_level = [(name, v) for name, v in genetic if (model["random"][name].get("level") or name) == level]
    frequency = snps.filter(pl.col("left_out").is_null())["frequency"].to_numpy()
    if of_level and sum(v for _, v in of_level) > 0:
        shares = [v if name not in random else v / 2 for name, v in of_level]  # the rest stays with a term that stays
        rest["variance"] = {"start": float(sum(shares) / np.sum(2 * frequency * (1 - frequency)))}
    markers = {TERM: of_regions_term} | ({REST: rest} if has_rest else {})
    starts = {
        name: {"start": section["start"]}
        for name, section in analysis.get("variances", {}).items()
        if name in (*random, "residual") and isinstance(section, dict) and section.get("start") is not None
    }
    starts |= {
        name: {"start": float(value)}
        for name in (*random, "residual")
        if (value := estimates.get(f"{name}.var[{trait}]", 0.0)) > 0
    }
    data = {key: value for key, value in analysis["data"].items() if key != "genotypes"}
    return {
        "name": f"{analysis.get('name', 'run')}-finemap",
        "data": data | {"genotypes": facts["genotypes_section"]},
        "traits": analysis["traits"],
        "model": {**model, "random": random, "markers": markers},
        "variances": starts,
        "sampler": CHAINS,
        "output": {"save_marker_draws": DRAWS},
    }


def _is_from_genotypes(term: dict[str, Any]) -> bool:
    relationship = term.get("relationship")
    kind = relationship.get("kind") if isinstance(relationship, dict) else relationship
    return kind in FROM_GENOTYPES


def summarise_regions(
    directory: Path, regions: pl.DataFrame, members: pl.DataFrame, trait: str
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """PIPs of the SNPs, and the credible sets, from the run of the drafted analysis."""
    files = RunFiles(directory, "finemap: ")
    kept = files.table("markers.parquet").filter("kept")
    draws = next(of for of in read_marker_draws(files) if of.term == TERM)
    ending = f"{TERM}_{trait}" if f"pip_{TERM}_{trait}" in kept.columns else trait
    place = {snp: j for j, snp in enumerate(kept["snp"].to_list())}
    pip = kept[f"pip_{ending}"].fill_null(0.0).to_numpy()
    tables, sets = [], []
    for row in regions.iter_rows(named=True):
        snps = [place[snp] for snp in members.filter(region=row["region"])["snp"].to_list() if snp in place]
        columns = np.array(snps, np.int64)
        has_effect = draws.effects[:, columns] != 0
        chosen, reached = credible_set(pip[columns], has_effect)
        in_set = np.zeros(columns.size, bool)
        in_set[chosen] = True
        tables.append(
            kept[columns].select(
                pl.lit(row["region"]).alias("region"), "snp", "chromosome", "position", "counted", "other", "frequency",
                pip=pl.col(f"pip_{ending}"), pip_mcse=pl.col(f"pip_mcse_{ending}"), effect=pl.col(f"effect_{ending}"),
                effect_sd=pl.col(f"effect_sd_{ending}"), in_credible_set=pl.Series(in_set),
            )
        )  # fmt: skip
        best = int(columns[np.argmax(pip[columns])])
        sets.append(
            {
                "region": row["region"], "chromosome": row["chromosome"], "start": row["start"], "end": row["end"],
                "snps": columns.size, "lead_snp": row["lead_snp"],
                "p_any": float(has_effect.any(axis=1).mean()),
                "expected_effects": float(pip[columns].sum()),
                "best_snp": kept["snp"][best], "best_pip": float(pip[best]),
                "size": len(chosen) or None, "probability": reached if len(chosen) else None,
                "credible_set": " ".join(kept["snp"][int(j)] for j in columns[chosen]) or None,
            }
        )  # fmt: skip
    return pl.concat(tables), pl.DataFrame(sets, infer_schema_length=None)


def credible_set(pip: np.ndarray, has_effect: np.ndarray) -> tuple[np.ndarray, float]:
    """Positions of the fewest SNPs by falling PIP some of which have an effect in a share LEVEL of the draws, and
    that share; none where no set reaches it. has_effect: (draws, SNPs).
    """
    order = np.argsort(-pip, kind="stable")
    reached = np.logical_or.accumulate(has_effect[:, order], axis=1).mean(axis=0)
    enough = np.flatnonzero(reached >= LEVEL)
    return (order[: enough[0] + 1], float(reached[enough[0]])) if enough.size else (order[:0], float(reached[-1]))


def _notes(sets: pl.DataFrame, info: dict[str, Any], analysis: dict[str, Any]) -> tuple[str, ...]:
    start = analysis["model"]["markers"][TERM]["pi"]["start"][1]
    notes = [f"prior probability of an effect of a SNP: {start:.2g}, that among all SNPs"]
    without = sets.filter(pl.col("size").is_null())["region"].to_list()
    if without:
        of = f"{'region' if len(without) == 1 else 'regions'} {', '.join(map(str, without))}"
        notes.append(f"no credible set of {of}: p_any is below {LEVEL:.0%}")
    notes += [f"warning: {warning}" for warning in info.get("warnings", ())]
    return tuple(notes)
