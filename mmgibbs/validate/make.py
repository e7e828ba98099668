"""The whole of a validation on one page: analysis -> evaluations with and without records -> statistics -> files."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import polars as pl

from mmgibbs.config import load_config
from mmgibbs.data.levels import lookup
from mmgibbs.errors import ConfigError
from mmgibbs.report.finished import read_finished
from mmgibbs.report.folder import plain
from mmgibbs.report.progress import Talk
from mmgibbs.report.record import versions
from mmgibbs.validate import cross, lr
from mmgibbs.validate.evaluation import Evaluation, Recorded, evaluate, evaluate_without, random_solutions, recorded
from mmgibbs.validate.folds import balanced_folds, birth_year_of, families, fold_times, forward_folds
from pedigree.tables import quoted

FILES = ("validation.csv", "validation.parquet", "predictions.parquet", "validation.json", "validation.html")
FEW_FAMILIES = 20  # below, a bootstrap of families says little
FEWEST_FOCAL = 3
OVER_FOLDS, FROM_MODEL, FROM_FAMILIES = "folds", "model", "bootstrap of families"


@dataclass(frozen=True)
class Plan:
    """What is asked for; the options of `mmgibbs validate`."""

    method: str = "both"  # 'kfold' | 'lr' | 'both'
    folds: int = 5
    by: str = "random"  # 'random' | 'family' | 'time'
    time: str | None = None  # a column of the records
    cutoff: float | None = None  # birth year
    focal: str | None = None  # file of ids
    variances: str | None = None  # folder of a finished run
    seed: int = 1


@dataclass(frozen=True)
class Validation:
    """What was found."""

    # method, term, effect, trait, statistic, estimate, se, expected, se_from, n: animals (lr) or records (kfold)
    table: pl.DataFrame
    predictions: pl.DataFrame  # method, term, effect, trait, fold, animal, row, predicted, observed (lr: from whole data)
    info: dict
    directory: Path | None = None

    def as_text(self) -> str:
        """The table for people to read."""
        shown = self.table.drop("expected")
        with pl.Config(tbl_rows=-1, tbl_hide_dataframe_shape=True, tbl_hide_column_data_types=True, tbl_width_chars=160, tbl_cols=-1, float_precision=4, fmt_str_lengths=80):
            return str(shown)


def validate(
    config, plan: Plan = Plan(), overrides: Sequence[str] = (), *, output=None, overwrite: bool = False, progress: bool = True, report: bool = True
) -> Validation:
    """Validate the evaluation of an analysis and write what was found.

    config, overrides: as of `mmgibbs.run`. output: the folder (default: that of the run, with -validation).
    Raises MmgibbsError with one readable message: options that do not fit the data, a fold without records, no starts.
    """
    talk = Talk(progress)
    analysis = load_config(config, overrides)
    if plan.variances is not None:
        analysis = load_config(config, [*overrides, *starts_of_run(plan.variances, analysis)])
    path = output_folder(output or f"{analysis.output.directory}-validation", overwrite)
    validation = examine(recorded(analysis), plan, talk.say)
    return write(validation, path, report, talk.say)


def examine(records: Recorded, plan: Plan, say) -> Validation:
    """Statistics, without files."""
    whole = evaluate(records.analysis)
    say(f"whole data: {whole.design.n_records:,} records, {whole.design.n_equations:,} equations")
    pedigree = whole.prepared.pedigree
    codes = _codes(records.animal, None if pedigree is None else pedigree.ids)
    rows, predictions, info = [], [], {"notes": []}
    if plan.method in ("kfold", "both"):
        folds = _folds(records, plan, codes, pedigree)
        found = cross.cross_validate(records, whole, folds, say)
        rows += [row for p in found for row in _fold_rows(p, whole)]
        predictions += [_fold_predictions(p, records, whole, folds) for p in found]
        info["folds"] = [{"name": f.name, "left_out": int(f.masked.sum()), "predicted": int(f.tested.sum())} for f in folds]
    if plan.method in ("lr", "both"):
        found, facts, animals = _lr(records, whole, plan, codes, say)
        rows += [row for c in found for row in _lr_rows(c)]
        predictions += [_lr_predictions(c, animals) for c in found]
        info["notes"] += facts.pop("notes")
        info["lr"] = facts
    model = whole.assembled.model
    record = {
        "analysis": records.analysis.name,
        "plan": asdict(plan),
        "versions": versions(),
        "variances": {i.name: c.start for i, c in zip(whole.assembled.terms, [c for c in model.covariances if c is not None], strict=True)}
        | {"residual": model.residual.start},
        "records": whole.design.n_records,
        "standard_errors": {
            OVER_FOLDS: "standard deviation over folds divided by the root of their number; folds share training data",
            FROM_MODEL: "inverse mixed-model equations with and without the records, given the partial breeding values and the variances",
            FROM_FAMILIES: f"{lr.REPLICATES} bootstrap samples of half-sib families by sire among the focal animals",
        },
        **info,
    }
    return Validation(pl.DataFrame(rows, schema=_SCHEMA, orient="row"), pl.concat(predictions), record)


_SCHEMA = {c: pl.String for c in ("method", "term", "effect", "trait", "statistic")} | {
    "estimate": pl.Float64, "se": pl.Float64, "expected": pl.Float64, "se_from": pl.String, "n": pl.Int64,
}  # fmt: skip


def _codes(animals: pl.Series, ids: pl.Series | None) -> np.ndarray:
    """(n,) int64 code of each animal; without a pedigree animals are numbered as they appear, unknown ones -1."""
    ids = animals.drop_nulls().unique(maintain_order=True) if ids is None else ids
    return lookup(animals, ids).fill_null(-1).to_numpy().astype(np.int64)


# ------------------------------------------------------------------------------------------------ k-fold


def _folds(records: Recorded, plan: Plan, codes: np.ndarray, pedigree) -> list:
    if plan.time is not None and plan.by != "time":
        raise ConfigError(f"validate: found --time beside --by {plan.by}, needed --by time")
    if plan.by == "time":
        return forward_folds(fold_times(records, codes, pedigree, plan.time), plan.folds)
    rng = np.random.default_rng([plan.seed, 0])
    if plan.by == "random":
        return balanced_folds(codes, plan.folds, rng, "animals")
    if pedigree is None:
        raise ConfigError("validate: found no pedigree, needed one for --by family")
    return balanced_folds(families(pedigree, codes), plan.folds, rng, "half-sib families")


def _fold_rows(found: cross.Predicted, whole: Evaluation) -> list[tuple]:
    p, n = found.predictor, len(found.record)
    return [
        ("kfold", p.term, p.effect, whole.design.traits[p.trait], name, _number(v.mean()), _number(v.std(ddof=1) / np.sqrt(len(v))), cross.EXPECTED[name], OVER_FOLDS, n)
        for name, v in found.by_fold().items()
    ]


def _fold_predictions(found: cross.Predicted, records: Recorded, whole: Evaluation, folds) -> pl.DataFrame:
    names = pl.Series([f.name for f in folds]).gather(found.fold)
    who = (records.animal.gather(found.record), records.phenotypes.rows[found.record])
    return _predictions("kfold", found.predictor, whole.design.traits[found.predictor.trait], names, *who, found.predicted, found.observed)


def _predictions(method: str, of, trait: str, fold, animal, row, predicted, observed) -> pl.DataFrame:
    named = {"method": method, "term": of.term, "effect": of.effect, "trait": trait}
    columns = {"fold": fold, "animal": animal, "row": row, "predicted": predicted, "observed": observed}
    types = {"fold": pl.String, "animal": pl.String, "row": pl.Int64, "predicted": pl.Float64, "observed": pl.Float64}
    return pl.DataFrame(columns, schema=types).select(*(pl.lit(v).alias(k) for k, v in named.items()), pl.all())


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


# ------------------------------------------------------------------------------------------------ LR


def _lr(records: Recorded, whole: Evaluation, plan: Plan, codes: np.ndarray, say):
    """(statistics per component, facts, ids of the focal animals)."""
    terms = lr.related_terms(whole)
    if not terms:
        raise ConfigError("validate: the LR method compares breeding values; found no random effect with a relationship; use --method kfold")
    notes, pedigree = [], whole.prepared.pedigree
    focal = None if plan.focal is None else read_ids(plan.focal)
    cutoff = plan.cutoff
    if focal is not None and cutoff is None:
        masked = records.animal.is_in(focal.implode()).fill_null(False).to_numpy()
        what = f"the animals of {plan.focal}"
    else:
        year = birth_year_of(pedigree, codes, "the LR method", "--focal FILE, or --method kfold")
        cutoff = float(np.nanmax(year)) if cutoff is None and not np.isnan(year).all() else cutoff
        masked, what = year >= (np.inf if cutoff is None else cutoff), f"animals born from {cutoff or 0:g} on"
        if np.isnan(year).any():
            notes.append(f"{np.count_nonzero(np.isnan(year)):,} records of animals without a birth year stay in the partial data")
    if not masked.any() or masked.all():
        raise ConfigError(f"validate: {what} have {'all' if masked.any() else 'none'} of the {masked.size:,} records; needed some of them (--cutoff, --focal)")
    animals = records.animal.filter(pl.Series(masked)).drop_nulls().unique(maintain_order=True) if focal is None else focal
    if len(animals) < FEWEST_FOCAL:
        raise ConfigError(f"validate: found {len(animals)} focal animals, needed at least {FEWEST_FOCAL}")
    levels = {i: _focal_levels(whole.prepared.levels[i].ids, animals, whole.design.terms[i].name) for i in terms}
    family = families(pedigree, _codes(animals, None if pedigree is None else pedigree.ids))
    say(f"LR: {np.count_nonzero(masked):,} of {masked.size:,} records left out, {len(animals):,} focal animals")
    partial = evaluate_without(records, masked, what)
    rng = np.random.default_rng([plan.seed, 1])
    found = lr.compare(whole, partial, random_solutions(partial, whole), levels, family, rng)
    n_families = len(np.unique(family))
    if n_families < FEW_FAMILIES:
        notes.append(f"the focal animals are of {n_families} half-sib families: standard errors from a bootstrap of so few are too small")
    for c in found:
        if not np.isfinite(c.estimates["dispersion"]):
            notes.append(f"{c.term} {c.effect} {c.trait}: the partial breeding values of the focal animals do not vary")
    facts = {"cutoff": cutoff, "left_out": int(masked.sum()), "focal_animals": len(animals), "families": n_families, "notes": notes}
    return found, facts, animals


def read_ids(file: str | os.PathLike) -> pl.Series:
    """The ids of a text file, one per line."""
    try:
        lines = [line.strip() for line in Path(file).read_text(encoding="utf-8-sig").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--focal {file}: cannot be read: {getattr(error, 'strerror', None) or 'not UTF-8'}") from None
    return pl.Series("id", [line for line in lines if line], pl.String).unique(maintain_order=True)


def _focal_levels(ids: pl.Series, animals: pl.Series, term: str) -> np.ndarray:
    code = lookup(animals, ids)
    if code.null_count():
        raise ConfigError(f"validate: focal animal {quoted(animals.filter(code.is_null())[0])} is no level of '{term}'")
    return code.to_numpy().astype(np.int64)


def _lr_rows(found: lr.Compared) -> list[tuple]:
    of = ("lr", found.term, found.effect, found.trait)
    origin = {"bias": FROM_MODEL, "dispersion": FROM_MODEL}
    return [
        (*of, name, _number(value), _number(found.errors[name]), lr.EXPECTED[name], origin.get(name, FROM_FAMILIES), len(found.whole))
        for name, value in found.estimates.items()
    ]


def _lr_predictions(found: lr.Compared, animals: pl.Series) -> pl.DataFrame:
    none = [None] * len(animals)
    return _predictions("lr", found, found.trait, none, animals, none, found.partial, found.whole)


# ------------------------------------------------------------------------------------------------ variances, files


def starts_of_run(run: str | os.PathLike, analysis) -> list[str]:
    """Overrides that put the posterior means of a finished run in place of the starts."""
    finished = read_finished(run)
    mean = dict(finished.summary.select("parameter", "mean").iter_rows())
    theirs, ours = finished.record.get("analysis", {}).get("model", {}).get("random"), analysis.resolved()["model"]["random"]
    if theirs != ours or list(finished.record["analysis"]["traits"]) != [t.name for t in analysis.traits]:
        raise ConfigError(f"--variances {run}: its traits or random effects are not those of this analysis")
    out = []
    for name in (*ours, "residual"):
        first, last = f"{name}.var[", "]"
        labels = [p.removeprefix(first).removesuffix(last) for p in mean if p.startswith(first)]
        start = [[mean[f"{name}.var[{a}]"] if a == b else _covariance(mean, name, a, b) for b in labels] for a in labels]
        out.append(f"variances.{name}.start={json.dumps(start)}")
    return out


def _covariance(mean: dict, name: str, a: str, b: str) -> float:
    """0 where the model has none (`structure: diagonal`, traits never recorded together)."""
    return mean.get(f"{name}.cov[{a},{b}]", mean.get(f"{name}.cov[{b},{a}]", 0.0))


def output_folder(directory: str | os.PathLike, overwrite: bool) -> Path:
    """The absolute path, once it is sure that it may be written."""
    path = Path(directory).resolve()
    if path.exists() and not path.is_dir():
        raise ConfigError(f"--output: '{directory}' is a file, needed a directory")
    there = {p.name for p in path.iterdir()} if path.is_dir() else set()
    if there - set(FILES) or (there and not overwrite):
        what = "other files; choose another one" if there - set(FILES) else "a validation; choose another one, or give --overwrite"
        raise ConfigError(f"--output: '{directory}' holds {what}")
    return path


def write(validation: Validation, path: Path, report: bool, say) -> Validation:
    """The files of FILES; they take their places together, once all are written."""
    from mmgibbs.report.render import missing_libraries

    work = path.with_name(f".{path.name}.writing")
    shutil.rmtree(work, ignore_errors=True)
    try:
        work.mkdir(parents=True)
        validation.table.write_csv(work / FILES[0])
        validation.table.write_parquet(work / FILES[1])
        validation.predictions.write_parquet(work / FILES[2])
        record = plain(validation.info | {"statistics": validation.table.to_dicts()})
        (work / FILES[3]).write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        missing = missing_libraries()
        if report and missing:
            say(f'no validation.html: found no {" and no ".join(missing)}; needed: pip install "mmgibbs[report]"')
        elif report:
            from mmgibbs.validate.page import write_page

            write_page(validation, work / FILES[4])
        if path.exists():
            shutil.rmtree(path)  # holds nothing but an earlier validation
        work.rename(path)
    except OSError as error:
        raise ConfigError(f"--output: cannot write '{path}': {error.strerror}") from None
    finally:
        shutil.rmtree(work, ignore_errors=True)
    for note in validation.info["notes"]:
        say(f"note: {note}")
    return Validation(validation.table, validation.predictions, validation.info, path)
