"""`mmgibbs import-blupf90`: a renumf90 parameter file becomes an analysis file that runs."""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl
import yaml

from mmgibbs.config import load_config
from mmgibbs.config.schema import MODELINE, write_schema
from mmgibbs.errors import ConfigError, option, option_name
from mmgibbs.exchange.blupf90_analysis import translate
from mmgibbs.exchange.blupf90_read import ParameterFile, read_parameter_file


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
    for target in written:
        _refuse_a_source(target, file)
        if target.is_dir():
            raise ConfigError(
                f"import-blupf90: '{target}' is a folder, needed the name of a file for {option_name('output')}"
            )
        if target.exists() and not overwrite:
            raise ConfigError(
                f"import-blupf90: '{target}' exists; choose another {option_name('output')}, or give "
                f"{option('overwrite')}"
            )
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


def _write(written: dict[Path, str | pl.DataFrame]) -> None:
    """All files or none: each is written under another name first, and takes its place once all are."""
    new = {target: target.with_name(f".{target.name}.new") for target in written}
    try:
        for target, content in written.items():
            target.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, str):
                new[target].write_text(content, encoding="utf-8")
            else:
                content.write_csv(new[target])
        for target, file in new.items():
            file.replace(target)
    except OSError as error:
        raise ConfigError(f"import-blupf90: cannot write '{target}': {error.strerror or error}") from None
    finally:
        for file in new.values():
            if file.exists():
                file.unlink()


def _refuse_a_source(target: Path, file: ParameterFile) -> None:
    """Refuse, whatever the flags, to write over a file that is read; links are followed."""
    sources = [("the parameter file", file.path)]
    sources += [(f"{keyword} of {file.path.name} line {line}", path) for keyword, line, path in file.files]
    for what, source in sources:
        if source.resolve() == target.resolve() or (target.exists() and source.exists() and source.samefile(target)):
            raise ConfigError(
                f"import-blupf90: '{target}', the file to write, is {what}; needed another {option_name('output')} "
                "(new tables are named after it)"
            )
