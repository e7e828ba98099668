"""Files of a validation: the variances of a finished run come in, tables and the page go out."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mmgibbs.config import Analysis
from mmgibbs.config.complete import implied_variances
from mmgibbs.errors import ConfigError, option, option_name
from mmgibbs.machine.files import WORK, replaced_files
from mmgibbs.report.finished import read_finished
from mmgibbs.results.folder import plain

if TYPE_CHECKING:
    from mmgibbs.validation.compare import Comparison
    from mmgibbs.validation.found import Validation

WITH_COMMON_VARIANCE = ("rr", "bayes_c", "bayes_r")  # priors whose variance can be fixed
FILES = ("validation.csv", "validation.parquet", "predictions.parquet", "validation.json", "validation.html")
COMPARISON = ("comparison.csv", "comparison.parquet", "comparison.html")


def starts_of_run(run: str | os.PathLike, analysis: Analysis) -> list[str]:
    """Overrides that put the posterior means of a finished run in place of the starts."""
    try:
        finished = read_finished(run)
    except ConfigError as error:
        raise ConfigError(f"{option_name('variances')}: {str(error).removeprefix('report: ')}") from None
    given = option("variances", str(run))
    mean = dict(finished.summary.select("parameter", "mean").iter_rows())
    ours = analysis.resolved()["model"]["random"]
    theirs = finished.record.get("analysis", {}).get("model", {}).get("random")
    markers = finished.record.get("analysis", {}).get("model", {}).get("markers") or {}
    if {name: of.get("prior") for name, of in markers.items()} != {
        name: of.prior for name, of in analysis.model.markers.items()
    }:
        raise ConfigError(
            f"{given}: its terms of SNP effects are not those of this analysis; needed a run of the same model"
        )
    if theirs != ours or list(finished.record["analysis"]["traits"]) != [t.name for t in analysis.traits]:
        raise ConfigError(
            f"{given}: its traits or random effects are not those of this analysis; needed a run of the same model"
        )
    out = []
    by_class = list(finished.record.get("data", {}).get("residual_classes", ()))
    if (by_class != []) != (analysis.variances.residual.by is not None):
        raise ConfigError(
            f"{given}: the classes of its residuals are not those of this analysis; needed a run of the same model"
        )
    if by_class:
        traits, starts = list(finished.record["analysis"]["traits"]), {}
        for of in by_class:
            starts[of] = {
                "start": [
                    [
                        mean[f"residual.var[{a}|{of}]"] if a == b else _covariance(mean, "residual", a, b, of)
                        for b in traits
                    ]
                    for a in traits
                ]
            }
        out.append(f"variances.residual.classes={json.dumps(starts)}")
    implied = implied_variances(analysis.model)  # they follow from those of SNP effects
    for name in (*(n for n in ours if n not in implied), *(() if by_class else ("residual",))):
        first, last = f"{name}.var[", "]"
        labels = [p.removeprefix(first).removesuffix(last) for p in mean if p.startswith(first)]
        start = [
            [mean[f"{name}.var[{a}]"] if a == b else _covariance(mean, name, a, b) for b in labels] for a in labels
        ]
        out.append(f"variances.{name}.start={json.dumps(start)}")
    return out + [line for name in analysis.model.markers for line in _starts_of_markers(name, analysis, mean)]


def _starts_of_markers(name: str, analysis: Analysis, mean: dict) -> list[str]:
    """Variance and class shares of the effects of SNPs, fixed; none where the prior has no common variance, or where
    several traits have one each: those are sampled in every chain."""
    section = analysis.model.markers[name]
    traits = section.traits or tuple(t.name for t in analysis.traits)
    if len(traits) != 1 or section.prior not in WITH_COMMON_VARIANCE:
        return []
    at = f"model.markers.{name}"
    out = [f"{at}.variance={json.dumps({'start': mean[f'{name}.effect_var[{traits[0]}]'], 'fixed': True})}"]
    shares = [mean[p] for k in range(len(section.classes)) if (p := f"{name}.pi[{traits[0]}:{k}]") in mean]
    return [*out, f"{at}.pi={json.dumps({'start': shares, 'fixed': True})}"] if shares else out


def _covariance(mean: dict, name: str, a: str, b: str, of_class: str = "") -> float:
    """0 where the model has none (`structure: diagonal`, traits never recorded together)."""
    end = f"|{of_class}]" if of_class else "]"
    return mean.get(f"{name}.cov[{a},{b}{end}", mean.get(f"{name}.cov[{b},{a}{end}", 0.0))


def output_folder(directory: str | os.PathLike, overwrite: bool, folders: Sequence[str] = ()) -> Path:
    """The absolute path, once it is sure that it may be written. folders: of several validations beside a comparison of
    theirs."""
    path = Path(directory).resolve()
    if folders:
        return _folder_of_folders(path, directory, overwrite, folders)
    _refuse_file(path, directory)
    there = {p.name for p in path.iterdir()} - {WORK} if path.is_dir() else set()
    if there - set(FILES) or (there and not overwrite):
        remedy = "" if there - set(FILES) else f", or give {option('overwrite')}"
        what = "a validation" if remedy else "other files"
        raise ConfigError(f"{option_name('output')}: '{directory}' holds {what}; choose another one{remedy}")
    return path


def _folder_of_folders(path: Path, directory: str | os.PathLike, overwrite: bool, folders: Sequence[str]) -> Path:
    _refuse_file(path, directory)
    there = {p.name for p in path.iterdir()} - {WORK} if path.is_dir() else set()
    if there & set(COMPARISON) and not overwrite:
        raise ConfigError(
            f"{option_name('output')}: '{directory}' holds a comparison; choose another one, or give "
            f"{option('overwrite')}"
        )
    for folder in folders:
        output_folder(path / folder, overwrite)
    return path


def _refuse_file(path: Path, directory: str | os.PathLike) -> None:
    if path.exists() and not path.is_dir():
        raise ConfigError(f"{option_name('output')}: '{directory}' is a file, needed a directory")


def _unwritable(path: Path, error: OSError) -> ConfigError:
    return ConfigError(f"{option_name('output')}: cannot write '{path}': {error.strerror}")


def write_comparison(comparison: Comparison, path: Path, report: bool, say: Callable[[str], None]) -> None:
    """The files of COMPARISON, beside the folders of the validations; they take their places together."""
    with_page = report and _can_write_page(COMPARISON[2], say)
    try:
        with replaced_files(path, COMPARISON) as new:
            comparison.table.write_csv(new / COMPARISON[0])
            comparison.table.write_parquet(new / COMPARISON[1])
            if with_page:
                from mmgibbs.validation.compare_page import write_page

                write_page(comparison, new / COMPARISON[2])
    except OSError as error:
        raise _unwritable(path, error) from None
    for note in comparison.notes:
        say(f"note: {note}")


def write(validation: Validation, path: Path, report: bool, say: Callable[[str], None]) -> None:
    """The files of FILES; they take their places together, once all are written."""
    with_page = report and _can_write_page(FILES[4], say)
    try:
        with replaced_files(path, FILES) as new:
            validation.table.write_csv(new / FILES[0])
            validation.table.write_parquet(new / FILES[1])
            validation.predictions.write_parquet(new / FILES[2])
            record = plain(validation.info | {"statistics": validation.table.to_dicts()})
            (new / FILES[3]).write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
            if with_page:
                from mmgibbs.validation.page import write_page

                write_page(validation, new / FILES[4])
    except OSError as error:
        raise _unwritable(path, error) from None
    for note in validation.info["notes"]:
        say(f"note: {note}")


def _can_write_page(name: str, say: Callable[[str], None]) -> bool:
    """Whether the libraries of pages are installed; says which are not."""
    from mmgibbs.report.render import missing_libraries

    missing = missing_libraries()
    if missing:
        say(f"no {name}: found no {' and no '.join(missing)}; needed: pip install {' '.join(missing)}")
    return not missing
