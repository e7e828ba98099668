"""What is compared: a run folder, the `solutions` of a BLUPF90 program, or a table of ids and values.

Each becomes levels with a value, by component: a run has (term, effect, trait), a BLUPF90 file numbers of effects and
traits, a table its columns of numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from mmgibbs.data.number_format import parse_column
from mmgibbs.errors import ConfigError, DataError
from mmgibbs.pedigree.columns import RECOGNISED
from mmgibbs.pedigree.contents import UTF8
from mmgibbs.pedigree.errors import TableError
from mmgibbs.pedigree.spelling import are_unknown_codes, parse_numbers
from mmgibbs.pedigree.tables import Table, nearest, open_table, quoted
from mmgibbs.report.finished import Finished, read_finished

LEVELS = "levels.csv"  # beside a solutions file: effect, level, id[, term, name], as `mmgibbs export` writes it
SOLUTIONS = "solutions"
_MAX_SHARE_OF_SLIPS = 0.1  # of the cells of a column of numbers that are none
_VALUES = ("mean", "ebv", "solution", "value", "estimate", "blup", "bv")  # a lone column of values by these names


@dataclass(frozen=True)
class Base:
    """Origin of solutions, which another run, or another program, may choose in another way.

    is_class: of a fixed class effect, of which differences between levels alone are comparable. reference: the level,
    or the fixed unknown-parent group, that is set to 0; '' where there is none. groups: solutions of the groups.
    of_all: everything that was chosen in the run, by which two runs are seen to have the same base.
    """

    is_class: bool
    reference: str
    groups: dict[str, float] = field(default_factory=dict)
    of_all: Any = None


@dataclass(frozen=True)
class Component:
    """An effect on one trait. values: level, value."""

    term: str  # '' where the file has no names
    effect: str
    trait: str
    values: pl.DataFrame
    base: Base | None = None  # None: what it is measured from is unknown, or nothing to choose

    @property
    def label(self) -> str:
        return ", ".join(name for name in (self.term, self.effect, self.trait) if name) or "values"


@dataclass(frozen=True)
class Side:
    name: str
    kind: str  # 'run' | 'blupf90' | 'table'
    components: list[Component]
    run: Finished | None = None


def read_side(path: Path, levels: Path | None = None) -> Side:
    """A run folder, a file of solutions or a folder that has one. levels: table that says which id each number of a
    level means.

    Raises ConfigError: no such path, no run, no values; DataError: a file that cannot be read.
    """
    if path.is_dir() and not (path / "run.json").exists() and (path / SOLUTIONS).is_file():
        path = path / SOLUTIONS  # as `mmgibbs export` leaves it
    if path.is_dir():
        return _read_run(path)
    if not path.exists():
        raise ConfigError(f"compare: {path}: no such file or folder; needed a run folder or a file of solutions")
    with path.open("rb") as file:
        head = file.readline(200).decode("utf-8", "replace").lower()
    if "effect" in head and "level" in head and "solution" in head and "," not in head:
        return _read_blupf90(path, levels)
    return _read_solutions_table(path)


# ------------------------------------------------------------------------------------------------ runs


def _read_run(path: Path) -> Side:
    try:
        run = read_finished(path)
    except ConfigError as error:  # it speaks for the command that reads most runs
        raise ConfigError(f"compare: {str(error).removeprefix('report: ')}") from None
    if run.solutions is None:
        raise ConfigError(f"compare: '{path}' holds a regression, needed the run of a mixed model")
    components = [replace(c, base=_base(c, run)) for c in _components_by_name(run.solutions)]
    return Side(path.resolve().name, "run", components, run)


def _base(component: Component, run: Finished) -> Base | None:
    """Find the base of a fixed class effect, or of breeding values beside fixed unknown-parent groups."""
    chosen = run.record.get("reference_levels", {})
    model = run.record.get("analysis", {}).get("model", {})
    if model.get("fixed", {}).get(component.term, {}).get("kind") == "class":
        reference = chosen.get("fixed", {}).get(component.term, {}).get(component.trait, "")
        return Base(True, reference, of_all=chosen or None)
    label = ":".join(name for name in (component.effect, component.trait) if name)
    reference = chosen.get("groups", {}).get(component.term, {}).get(label, "")
    if not reference or run.solutions is None:
        return None
    rows = run.solutions.filter(term=component.term, effect="group", trait=component.trait)
    groups = {} if rows["level"].is_duplicated().any() else dict(rows.select("level", "mean").iter_rows())
    return Base(False, reference, groups, of_all=chosen)


def _components_by_name(solutions: pl.DataFrame) -> list[Component]:
    """Components of a table with the columns of solutions.csv, in its order."""
    frame = solutions.filter(pl.col("effect").fill_null("") != "group").with_columns(pl.col("effect").fill_null(""))
    out = []
    for (term, effect, trait), rows in frame.group_by("term", "effect", "trait", maintain_order=True):
        values = rows.select(pl.col("level").cast(pl.String).fill_null(""), pl.col("mean").alias("value")).drop_nulls()
        out.append(Component(str(term), str(effect), str(trait), values))
    return out


# ------------------------------------------------------------------------------------------------ BLUPF90


def _read_blupf90(path: Path, levels: Path | None) -> Side:
    """`solutions`, also with the original ids that OPTION origID adds."""
    lines = read_lines(path)
    own_ids = "original" in lines[0].lower()
    rows = [_solution(line.split(), own_ids, f"{path} row {i}") for i, line in enumerate(lines[1:], 2) if line.strip()]
    schema = {"trait": pl.Int64, "effect": pl.Int64, "level": pl.Int64, "id": pl.String, "value": pl.Float64}
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    if not own_ids:
        frame = _with_ids(frame, path, levels)
    out = []
    for (effect, trait), component_frame in frame.group_by("effect", "trait", maintain_order=True):
        values = component_frame.select(pl.col("id").alias("level"), "value")
        out.append(Component("", str(effect), str(trait), values))
    return Side(path.name, "blupf90", out)


def _solution(fields: list[str], own_ids: bool, where: str) -> tuple[int, int, int, str, float]:
    """(trait, effect, level, id, value) of a row; Fortran writes 1.5D-3 for 1.5E-3."""
    least = 5 if own_ids else 4
    if len(fields) < least:
        raise DataError(f"{where}: found {len(fields)} values, needed at least {least}")
    trait, effect, level = (
        _parse_field(int, f, where, f"the number of {of}") for f, of in zip(fields, _NUMBERED, strict=False)
    )
    value = _parse_field(float, fields[4 if own_ids else 3].upper().replace("D", "E"), where, "a solution")
    return trait, effect, level, fields[3] if own_ids else fields[2], value


def read_lines(path: Path) -> list[str]:
    """Return the lines of a text file of another program, without a byte order mark."""
    return path.read_text(encoding="utf-8-sig", errors="replace").splitlines()


_NUMBERED = ("the trait", "the effect", "the level")


def _parse_field(kind: Callable[[str], Any], field: str, where: str, needed: str) -> Any:
    try:
        return kind(field)
    except ValueError:
        raise DataError(f"{where}: found {field!r}, needed {needed}") from None


def _with_ids(frame: pl.DataFrame, path: Path, levels: Path | None) -> pl.DataFrame:
    """Add the ids of `levels`, of levels.csv beside the file, or of each renaddEE.ped, which is about effect EE."""
    beside = path.with_name(LEVELS)
    if levels is not None or beside.exists():
        known = _level_table(levels or beside)
    else:
        known = pl.concat([pl.DataFrame(schema=_KNOWN), *(_renumbered(p) for p in path.parent.glob("renadd*.ped"))])
    joined = frame.join(known, on=["effect", "level"], how="left", suffix="_known", maintain_order="left")
    return joined.with_columns(id=pl.coalesce("id_known", "id"))


_KNOWN = {"effect": pl.Int64, "level": pl.Int64, "id": pl.String}


def _level_table(path: Path) -> pl.DataFrame:
    try:
        return (
            open_table(path, encoding=UTF8)
            .read(list(_KNOWN))
            .select(pl.col(c).cast(t) for c, t in _KNOWN.items())
            .unique()
        )
    except TableError as error:
        raise DataError(str(error)) from None


def _renumbered(path: Path) -> pl.DataFrame:
    """renadd02.ped of renumf90 is about effect 2: its first column is the new number, its tenth the id."""
    digits = path.stem.removeprefix("renadd")
    rows = [line.split() for line in read_lines(path) if line.strip()]
    if not digits.isdigit() or any(len(row) < 10 or not row[0].isdigit() for row in rows):
        return pl.DataFrame(schema=_KNOWN)
    columns = {"effect": [int(digits)] * len(rows), "level": [int(r[0]) for r in rows], "id": [r[9] for r in rows]}
    return pl.DataFrame(columns, schema=_KNOWN)


# ------------------------------------------------------------------------------------------------ tables


def _read_solutions_table(path: Path) -> Side:
    """Solutions as `mmgibbs run` writes them, or a column of ids and columns of numbers, one for each trait."""
    try:
        table = open_table(path, encoding=UTF8)
        frame = table.read()
    except TableError as error:
        raise DataError(str(error)) from None
    if {"term", "effect", "trait", "level", "mean"} <= set(frame.columns):
        numbers = _numbers(frame["mean"])
        if numbers is None:
            raise ConfigError(
                f"compare: {path}: found cells in column 'mean' that are no numbers, or none with a value; needed the "
                "solutions"
            )
        return Side(path.name, "table", _components_by_name(frame.with_columns(numbers)))
    plain = {"".join(c for c in name.lower() if c.isalnum()): name for name in frame.columns}
    ids = next((plain[name] for name in (*RECOGNISED["id"], "level") if name in plain), None)
    if ids is None:
        needed = f"a column of ids named {', '.join(RECOGNISED['id'][:4])} or level"
        raise ConfigError(f"compare: {path}: {nearest('id', frame.columns)}; needed {needed}")
    lone_value = next((c for c in frame.columns if c != ids and c.lower() in _VALUES), None)
    frame = frame.select(ids, *([c for c in frame.columns if c != ids] if lone_value is None else [lone_value]))
    _refuse_slips(table, frame.drop(ids))
    columns = {c: _numbers(frame[c]) for c in frame.columns if c != ids}
    numeric = {c: values for c, values in columns.items() if values is not None}
    if not numeric:
        raise ConfigError(
            f"compare: {path}: found no column of numbers other than '{ids}'; needed the values to compare"
        )
    components = [Component("", "", c, _values(frame[ids], values)) for c, values in numeric.items()]
    return Side(path.name, "table", components)


def _refuse_slips(table: Table, frame: pl.DataFrame) -> None:
    """DataError for a cell that is no finite number in a column of values, which else would be left out in silence."""
    for column in frame.columns:
        text = _known(frame[column])
        infinite = text.cast(pl.Float64, strict=False).is_infinite().fill_null(False)
        wrong = text.is_not_null() & (infinite | (parse_numbers(text).is_null() & (_numbers(text) is None)))
        n_known = len(text) - text.null_count()
        is_value = column.lower() in _VALUES and not wrong.all()
        numbers = text.filter(~wrong).drop_nulls()
        is_value |= bool(numbers.str.contains("[.,]").any()) and int(wrong.sum()) <= _MAX_SHARE_OF_SLIPS * n_known
        if wrong.any() and is_value:
            row = int(wrong.arg_max() or 0)
            raise DataError(
                f"{table.name} row {table.line(row)}: found {quoted(text[row])} in column {quoted(column)}; needed a "
                "finite number, or NA where there is none"
            )


def _known(text: pl.Series) -> pl.Series:
    """(n,) String, null where a code says that there is no value."""
    text = text.cast(pl.String).str.strip_chars()
    return text.set(are_unknown_codes(text, "value"), None)


def _numbers(text: pl.Series) -> pl.Series | None:
    """(n,) Float64, null where missing, also of decimal commas; None for a column with anything else, or nothing."""
    text = _known(text)
    values = text.cast(pl.Float64, strict=False)
    if values.null_count() > text.null_count():
        parsed = parse_column(text, (), None)
        values = parse_numbers(text) if parsed.comma is None else parsed.values
    return values if values.null_count() == text.null_count() < text.len() else None


def _values(ids: pl.Series, numbers: pl.Series) -> pl.DataFrame:
    return pl.DataFrame({"level": ids, "value": numbers}).drop_nulls().filter(pl.col("value").is_finite())
