"""`mmgibbs import-blupf90`: a renumf90 parameter file becomes an analysis file that runs."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path

import polars as pl
import yaml

from mmgibbs.config import load_config
from mmgibbs.config.schema import FILE as SCHEMA
from mmgibbs.config.schema import MODELINE, check_schema_file, write_schema
from mmgibbs.errors import ConfigError, option_name
from mmgibbs.exchange.blupf90_analysis import translate
from mmgibbs.exchange.blupf90_read import read_parameter_file
from mmgibbs.machine.files import replaced_file
from mmgibbs.machine.output_places import begins_with, check_output_file
from mmgibbs.results.csv_files import write_csv


class _Dumper(yaml.SafeDumper):
    """Values that occur twice are written twice, not referred to."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def import_blupf90(
    parameters: str | os.PathLike, output: str | os.PathLike | None = None, *, overwrite: bool = False
) -> tuple[Path, list[str]]:
    """Write the analysis file of a renumf90 parameter file: (its path, what was not carried over, line by line).

    Files that the parameter file names are looked for beside it. output: default beside it, with the ending .yaml.
    Columns joined by COMBINE, and unknown-parent groups of each parent, come with new tables beside the analysis.
    Raises ConfigError or DataError that names the line, what was found there and what is needed; ConfigError, too,
    where a file to be written is one of those that are read, whatever `overwrite` says.
    """
    file = read_parameter_file(Path(parameters))
    path = Path(output) if output is not None else file.path.with_suffix(".yaml")
    translation = translate(file, path.parent, path.stem)
    load_config(translation.analysis)  # whatever else is wrong is reported before anything is written
    written: dict[Path, str | pl.DataFrame] = {path: ""} | {
        path.parent / name: frame for name, frame in translation.tables.items()
    }
    place = f"import-blupf90: {option_name('output')}"
    sources = [("the parameter file", file.path)]
    sources += [(f"{keyword} of {file.path.name} line {line}", source) for keyword, line, source in file.files]
    for target in written:
        is_written = _is_analysis if target == path else lambda target: _is_table_of_an_analysis(path, target)
        check_output_file(
            target, "a file that this import wrote", is_written, inputs=sources, overwrite=overwrite, place=place
        )
    check_schema_file(path.with_name(SCHEMA), place)
    said = [
        f"{file.path.name} line {line}: {text}" if line else f"{file.path.name}: {text}"
        for line, text in translation.notes
    ]
    head = [f"From {file.path.name}, by mmgibbs import-blupf90.", *said]
    text = yaml.dump(
        translation.analysis, Dumper=_Dumper, sort_keys=False, default_flow_style=None, allow_unicode=True, width=120
    )
    written[path] = MODELINE + "".join(f"# {line}\n" for line in head) + text
    _write(written)
    write_schema(path.parent)
    return path, said


def _is_analysis(path: Path) -> bool:
    return begins_with(path, (f"{MODELINE}# From ".encode(),))


def _is_table_of_an_analysis(path: Path, table: Path) -> bool:
    """Check whether a table belongs to the analysis that an earlier import wrote: its lines say so."""
    return _is_analysis(path) and begins_with(path, (table.name.encode(),), 1_000_000)


def _write(written: dict[Path, str | pl.DataFrame]) -> None:
    """Write all files or none. Each is written under another name first, and takes its place once all are."""
    try:
        with ExitStack() as stack:
            for target, content in written.items():
                target.parent.mkdir(parents=True, exist_ok=True)
                new = stack.enter_context(replaced_file(target))
                if isinstance(content, str):
                    new.write_text(content, encoding="utf-8")
                else:
                    write_csv(content, new, False)  # an input of the analysis
    except OSError as error:
        raise ConfigError(f"import-blupf90: cannot write '{target}': {error.strerror or error}") from None
