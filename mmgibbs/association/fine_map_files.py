"""The folder of a fine-mapping. All is made in its folder CHECKPOINT, and takes its place together at the end."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import yaml

from mmgibbs.errors import ConfigError, option, option_name
from mmgibbs.machine.files import REPLACED, WORK, remove_files, remove_folder, replaced_file
from mmgibbs.machine.output_places import OutputKind, check_output_folder, list_names, name_some
from mmgibbs.results.checksums import record_with_checksum
from mmgibbs.results.csv_files import write_csv
from mmgibbs.results.folder import LOCK, RUN_FOLDER
from mmgibbs.results.output_folder import Content, write_file, write_files
from mmgibbs.results.reading import RECORD, read_record

CHECKPOINT = "checkpoint"  # of a fine-mapping that is not finished
DRAFT, SNPS, ANALYSIS, RUN = "draft.json", "snps.csv", "analysis.yaml", "run"
FILES = (ANALYSIS, SNPS, "fine_map.parquet", "fine_map.csv", "credible_sets.csv", "finemap.json", RUN)
KIND = OutputKind("finemap.json", frozenset(FILES), "a fine-mapping", frozenset({CHECKPOINT}))
WITHIN = (DRAFT, SNPS, ANALYSIS)  # CHECKPOINT, besides the run


@dataclass(frozen=True)
class FineMapFolder:
    """The folder of a fine-mapping, from the first look at it to the last file in it. is_finished: nothing is to do."""

    path: Path
    is_finished: bool

    @property
    def work(self) -> Path:
        """The folder where it is made."""
        return self.path / CHECKPOINT

    def write_draft(self, analysis: Mapping[str, Any], snps: pl.DataFrame, identity: Mapping[str, Any]) -> Path:
        """Write the drafted analysis and its SNPs into `work`, and what they are of; return the analysis file."""
        self.work.mkdir(parents=True, exist_ok=True)
        identity_text = json.dumps(identity, indent=2, default=str) + "\n"
        for name, content in {DRAFT: identity_text, **_draft_contents(analysis, snps)}.items():
            with replaced_file(self.work / name) as path:
                write_file(path, content, False)
        return self.work / ANALYSIS

    def write_results(
        self,
        analysis: Mapping[str, Any],
        snps: pl.DataFrame,
        tables: Mapping[str, pl.DataFrame],
        facts: Mapping,
        escaped: bool,
    ) -> None:
        """Give all their places: the draft, its run, and the tables. facts: for finemap.json; escaped: no formulas."""
        _move_paths(self.work / RUN, self.work, self.path)
        contents = {**_draft_contents(analysis, snps), **tables}
        write_files(KIND, self.path, contents, facts, escaped, {RUN: self.work / RUN})
        self.remove_work()

    def remove_work(self) -> None:
        """Remove what was made so far, and the folder where nothing else is in it."""
        remove_folder(self.work / RUN)
        remove_files(self.work, _is_draft)
        remove_files(self.path, lambda name: False)


def open_folder(
    directory: Path, overwrite: bool, resume: bool, inputs: Iterable[object], identity: Mapping[str, Any]
) -> FineMapFolder:
    """Look at a folder and make it ready. ConfigError where it may not be written, or holds another fine-mapping.

    identity: what this fine-mapping is of; one that was interrupted or is finished is continued only if it is alike.
    """
    if overwrite and resume:
        raise ConfigError(f"finemap: {option_name('overwrite')} and {option_name('resume')} cannot be combined")
    path = check_output_folder(KIND, directory, True, inputs)
    folder = FineMapFolder(path, False)
    _refuse_other_files(path, directory)
    now = json.loads(json.dumps(identity, default=str))
    is_begun, is_complete = folder.work.is_dir(), (path / KIND.record).is_file()
    if resume:
        _refuse_another(directory, folder.work / DRAFT if is_begun else path / KIND.record, now)
        return FineMapFolder(path, not is_begun)
    if is_begun and not overwrite:
        raise ConfigError(
            f"finemap: '{directory}' holds a fine-mapping that is not finished; {option('resume')} continues it, "
            f"{option('overwrite')} starts again"
        )
    if is_complete and not overwrite:
        raise ConfigError(
            f"{KIND.place_name}: '{directory}' holds {KIND.what}; choose another one, or give {option('overwrite')}"
        )
    folder.remove_work()
    return folder


def _refuse_other_files(path: Path, directory: Path) -> None:
    """Refuse files of others in the run that is replaced and in the work that is removed."""
    work = path / CHECKPOINT
    strange = {f"{CHECKPOINT}/{name}" for name in list_names(work) if not _is_draft(name) and name != RUN}
    replaced = path / WORK
    for run in (path / RUN, work / RUN, replaced / RUN, replaced / REPLACED / RUN):
        if run.is_symlink():
            raise ConfigError(f"{KIND.place_name}: '{directory}' has a link in place of its run; choose another one")
        unknown = list_names(run) - RUN_FOLDER.list_written(run) - {LOCK, WORK}
        unknown |= {f"{WORK}/{name}" for name in RUN_FOLDER.list_strange(run)}
        strange |= {f"{run.relative_to(path).as_posix()}/{name}" for name in unknown}
    if strange:
        raise ConfigError(
            f"{KIND.place_name}: '{directory}' holds other files ({name_some(strange)}); choose another one, or move "
            "those files"
        )


def _refuse_another(directory: Path, known: Path, now: Mapping[str, Any]) -> None:
    if not known.is_file():
        raise ConfigError(f"finemap: {option('resume')}: '{directory}' holds no fine-mapping that was interrupted")
    content = json.loads(known.read_text(encoding="utf-8"))
    then = content if known.name == DRAFT else content.get("identity", {})
    changed = [key for key in dict.fromkeys([*then, *now]) if then.get(key) != now.get(key)]
    if changed:
        raise ConfigError(
            f"finemap: {option('resume')}: '{directory}' holds a fine-mapping of another {changed[0]}; needed the same "
            f"association and options, or {option('overwrite')}"
        )


def _is_draft(name: str) -> bool:
    """Check whether a file within CHECKPOINT is of the draft, or was being written."""
    return name in WITHIN or any(name.startswith(f".{known}.") for known in WITHIN)


def _draft_contents(analysis: Mapping[str, Any], snps: pl.DataFrame) -> dict[str, Content]:
    """The drafted analysis and its SNPs, which are never escaped: the run reads them."""
    text = yaml.safe_dump(dict(analysis), sort_keys=False, allow_unicode=True)
    return {SNPS: lambda path: write_csv(snps, path, False), ANALYSIS: text}


def _move_paths(run: Path, work: Path, place: Path) -> None:
    """Let run.json name the files of the draft where they will be."""

    def moved(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: moved(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [moved(inner) for inner in value]
        if isinstance(value, str) and (value == str(work) or value.startswith(f"{work}{os.sep}")):
            return str(place) + value[len(str(work)) :]
        return value

    record = read_record(run, "finemap: ")
    text = json.dumps(record_with_checksum(moved(record)), indent=2, ensure_ascii=False, allow_nan=False)
    with replaced_file(run / RECORD) as path:
        path.write_text(f"{text}\n", encoding="utf-8")
