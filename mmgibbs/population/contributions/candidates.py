"""Who may be a parent: a table of candidates with their sex, least and most matings, and the matings that are made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from mmgibbs.data.phenotypes import SHOWN
from mmgibbs.errors import ConfigError, DataError, option, option_name
from mmgibbs.options import AT_LEAST_ONE
from mmgibbs.pedigree.columns import has_role_name
from mmgibbs.pedigree.contents import UTF8
from mmgibbs.pedigree.parents import find_rows
from mmgibbs.pedigree.recode import IdIndex
from mmgibbs.pedigree.spelling import find_respelled, normal_form, normal_forms, parse_numbers
from mmgibbs.pedigree.tables import Source, Table, counted, open_table, quoted
from mmgibbs.population.contributions.optimum import Limits

SEX_NAMES = ("sex", "gender")
MALE = ("m", "male", "1", "sire", "bull", "boar", "ram", "buck", "stallion", "cock")
FEMALE = ("f", "female", "2", "dam", "cow", "heifer", "sow", "gilt", "ewe", "doe", "mare", "hen")
MAX_MATINGS = 1_000_000_000  # of a candidate: more are a typing error


@dataclass(frozen=True)
class Matings:
    """Matings that are to be planned.

    Parameters
    ----------
    matings : int
        Number of matings.
    max_males, max_females : int or None, default None
        Most matings of an animal of this sex, if its `max` does not say it. By default all.
    mated : path-like, polars.DataFrame or None, default None
        Table of the matings that are made already: columns sire and dam, and perhaps matings. They count.
    monoecious : bool, default False
        Each candidate may be either parent, also both (a selfed plant): the table of candidates then has no sex.

    Examples
    --------
    >>> import mmgibbs
    >>> mmgibbs.Matings(200, max_females=1).max_females
    1
    """

    matings: int
    max_males: int | None = None
    max_females: int | None = None
    mated: Source | None = None
    monoecious: bool = False

    def __post_init__(self) -> None:
        """Check each number. ConfigError for limits that do not fit together."""
        for name in ("matings", "max_males", "max_females"):
            value = getattr(self, name)
            if value is None and name != "matings":
                continue
            AT_LEAST_ONE.check(f"contributions: {option_name(name)}", value)
            if name != "matings" and self.monoecious:
                raise ConfigError(
                    f"contributions: {option_name(name)} cannot be combined with {option_name('monoecious')}; needed "
                    "a column max of the candidates"
                )


@dataclass(frozen=True)
class Candidates:
    """The m candidates in the order of their table."""

    name: str  # of the table
    ids: pl.Series  # (m,) String
    lines: np.ndarray  # (m,) of the table
    is_male: np.ndarray | None  # (m,) bool; None: plants, each of which may be either parent, also both
    lowest: np.ndarray  # (m,) int64 matings
    highest: np.ndarray  # (m,) int64 matings
    matings: int
    mated: pl.DataFrame  # sire and dam (places of candidates) and number of matings that are made already

    def limits(self) -> Limits:
        """Return the limits as contributions, of which each sex has 1/2."""
        shares = 2.0 * self.matings
        return Limits(self.is_male, self.lowest / shares, np.minimum(self.highest, self.most_matings) / shares)

    @property
    def most_matings(self) -> int:
        """Matings of the only parent of a sex; a plant may be selfed in all, and has two in each."""
        return 2 * self.matings if self.is_male is None else self.matings

    def sexes(self) -> dict[str, np.ndarray]:
        """'male' and 'female', or 'plant' -> their places."""
        if self.is_male is None:
            return {"plant": np.arange(len(self.ids))}
        return {"male": np.flatnonzero(self.is_male), "female": np.flatnonzero(~self.is_male)}

    def equal_contributions(self) -> np.ndarray:
        """(m,) the same of each candidate of a sex."""
        out, sexes = np.zeros(len(self.ids)), self.sexes()
        for places in sexes.values():
            out[places] = 1.0 / (len(sexes) * places.size)
        return out


def read_candidates(source: Source, asked: Matings) -> Candidates:
    """The table of candidates, and the matings that are made already.

    DataError for one without a sex (or, of monoecious plants, with one) or twice, and for limits that cannot be met.
    """
    candidates = _read_table(source, asked)
    if asked.mated is not None:
        candidates = read_mated(asked.mated, candidates)
    check_limits(candidates, asked)
    return candidates


def _read_table(source: Source, asked: Matings) -> Candidates:
    table, matings = open_table(source, encoding=UTF8), asked.matings
    id_column, sex_column = _find_id(table), _find_sex(table, asked.monoecious)
    columns = {role: _find_column(table, role) for role in ("min", "max")}
    frame = table.read([c for c in (id_column, sex_column, *columns.values()) if c is not None])
    ids, lines = frame[id_column].cast(pl.String), np.array([table.line(row) for row in range(frame.height)])
    _refuse_rows(table.name, lines, ids.is_null().to_numpy(), "found no id", "the id of a candidate")
    _refuse_twice(table.name, lines, ids)
    is_male, limit_of_sex = None, np.full(len(ids), 2 * matings)
    if sex_column is not None:
        is_male = _read_sex(table.name, lines, frame[sex_column])
        limit_of_sex = np.where(is_male, asked.max_males or matings, asked.max_females or matings)
    lowest = _read_matings(table.name, lines, frame, columns["min"], np.zeros(len(ids), np.int64))
    highest = _read_matings(table.name, lines, frame, columns["max"], limit_of_sex)
    _refuse_rows(table.name, lines, lowest > highest, "found min above max", "min of at most max (matings)")
    none = pl.DataFrame(schema={"sire": pl.Int64, "dam": pl.Int64, "matings": pl.Int64})
    return Candidates(table.name, ids, lines, is_male, lowest, highest, matings, none)


def read_mated(source: Source, candidates: Candidates) -> Candidates:
    """The candidates, with the matings that are made already as the least that they have."""
    table = open_table(source, encoding=UTF8)
    names = {role: next((n for n in table.names if has_role_name(n, role)), None) for role in ("sire", "dam")}
    for role, column in names.items():
        if column is None:
            raise DataError(f"{table.name}: found no column {role} among {', '.join(table.names)}; needed sire and dam")
    number = _find_column(table, "matings")
    frame = table.read([*(str(n) for n in names.values()), *([number] if number else [])])
    lines = np.array([table.line(row) for row in range(frame.height)])
    index, places = IdIndex(candidates.ids), {}
    for role, column in names.items():
        ids = frame[str(column)].cast(pl.String)
        place = find_rows(index, ids)
        absent = place < 0
        shown = [f"found {role} {quoted(ids[i] or '')}, which is no candidate" for i in np.flatnonzero(absent).tolist()]
        needed = f"a candidate of {candidates.name}: add the animal there, or leave out the mating"
        _refuse_rows(table.name, lines, absent, shown, needed)
        is_male = candidates.is_male
        is_wrong = np.zeros(place.size, bool) if is_male is None else is_male[place] != (role == "sire")
        shown = [
            f"found {role} {quoted(ids[i])}, a {'fe' if role == 'sire' else ''}male"
            for i in np.flatnonzero(is_wrong).tolist()
        ]
        _refuse_rows(table.name, lines, is_wrong, shown, "a sire that is male and a dam that is female")
        places[role] = place.astype(np.int64)
    count = _read_matings(table.name, lines, frame, number, np.ones(frame.height, np.int64))
    mated = pl.DataFrame({**places, "matings": count}).group_by("sire", "dam", maintain_order=True).sum()
    made = np.zeros(len(candidates.ids), np.int64)
    for role in ("sire", "dam"):
        np.add.at(made, mated[role].to_numpy(), mated["matings"].to_numpy())
    shown = [
        f"found {made[i]:,} matings of {quoted(candidates.ids[int(i)])} in {table.name}"
        for i in np.flatnonzero(made > candidates.highest)
    ]
    needed = "a max that is not below the matings that are made"
    _refuse_rows(candidates.name, candidates.lines, made > candidates.highest, shown, needed)
    return replace(candidates, lowest=np.maximum(candidates.lowest, made), mated=mated)


def check_limits(candidates: Candidates, asked: Matings) -> None:
    """DataError where there is one sex alone, or where halves of the sexes cannot be reached."""
    needed, plants = candidates.most_matings, " (two for each mating)" if candidates.is_male is None else ""
    for word, places in candidates.sexes().items():
        n, name = places.size, f"max_{word}s"
        if not n:
            other, total = "female" if word == "male" else "male", len(candidates.ids)
            raise DataError(f"{candidates.name}: all {total:,} candidates are {other}s; needed {word}s as well")
        most, least = int(candidates.highest[places].sum()), int(candidates.lowest[places].sum())
        if most < needed:
            source = option_name(name) if getattr(asked, name, None) else "column max"
            raise DataError(
                f"{candidates.name}: {counted(n, word)} can have {most:,} matings in total, needed "
                f"{needed:,}{plants} ({option_name('matings')}); raise {source}, add {word}s or plan fewer matings"
            )
        if least > needed:
            raise DataError(
                f"{candidates.name}: {word}s must have {least:,} matings in total (column min, matings that are made), "
                f"more than the {needed:,}{plants} of {option_name('matings')}; lower min or plan more matings"
            )


def locate_candidates(candidates: Candidates, ids: pl.Series, where: str) -> np.ndarray:
    """(m,) int64 the place of each candidate among ids; DataError names those that are not there."""
    places = find_rows(IdIndex(ids), candidates.ids).astype(np.int64)
    absent = np.flatnonzero(places < 0)
    if absent.size:
        respelled = find_respelled(candidates.ids.gather(absent), ids)
        hint = f"; {quoted(respelled[0, 'text'])} may be {quoted(respelled[0, 'id'])}" if respelled.height else ""
        shown = [f"found {quoted(candidates.ids[int(i)])}" for i in absent]
        _refuse_rows(candidates.name, candidates.lines, places < 0, shown, f"ids of {where}{hint}")
    _refuse_twice(candidates.name, candidates.lines, ids.gather(places))  # '5.0' and '5' may be one animal
    return places


def check_sexes(candidates: Candidates, parents: dict[str, pl.Series]) -> None:
    """DataError for candidates whose sex contradicts the pedigree; parents: 'sire' and 'dam' of all animals."""
    if candidates.is_male is None:
        return
    for role, sex, is_other_sex in (("sire", "female", ~candidates.is_male), ("dam", "male", candidates.is_male)):
        other = parents["dam" if role == "sire" else "sire"]
        is_both = candidates.ids.is_in(other.drop_nulls().implode()).to_numpy()
        is_wrong = candidates.ids.is_in(parents[role].drop_nulls().implode()).to_numpy() & is_other_sex & ~is_both
        shown = [
            f"found sex {sex} of {quoted(candidates.ids[i])}, a {role} in the pedigree"
            for i in np.flatnonzero(is_wrong).tolist()
        ]
        _refuse_rows(candidates.name, candidates.lines, is_wrong, shown, "the sex that it has as a parent")


def _find_id(table: Table) -> str:
    named = [name for name in table.names if has_role_name(name, "id")]
    if not named:
        raise DataError(f"{table.name}: found no column of ids among {', '.join(table.names)}; needed one called id")
    return named[0]


def _find_sex(table: Table, monoecious: bool) -> str | None:
    """Find the column of sex; None for plants."""
    sex = next((name for name in table.names if normal_form(name) in SEX_NAMES), None)
    if sex is None and not monoecious:
        raise DataError(
            f"{table.name}: found no column sex among {', '.join(table.names)}; needed one with M or F, male or "
            f"female, or 1 or 2 ({option('monoecious', True)} for plants that may be either parent)"
        )
    if sex is not None and monoecious:
        raise DataError(
            f"{table.name}: found a column {quoted(sex)}, but {option_name('monoecious')} says that each candidate may "
            "be either parent; needed one or the other"
        )
    return sex


def _find_column(table: Table, role: str) -> str | None:
    return next((name for name in table.names if normal_form(name) == role), None)


def _read_sex(name: str, lines: np.ndarray, values: pl.Series) -> np.ndarray:
    form = normal_forms(values.cast(pl.String)).fill_null("")
    is_male, is_female = form.is_in(list(MALE)).to_numpy(), form.is_in(list(FEMALE)).to_numpy()
    unknown = ~is_male & ~is_female
    shown = [f"found sex {quoted(values[int(i)] or '')}" for i in np.flatnonzero(unknown)]
    _refuse_rows(name, lines, unknown, shown, "M or F, male or female, 1 (male) or 2 (female)")
    return np.asarray(is_male)


def _read_matings(
    name: str, lines: np.ndarray, frame: pl.DataFrame, column: str | None, default: np.ndarray
) -> np.ndarray:
    """(m,) int64 whole numbers; the default where the table is empty or has no such column."""
    if column is None:
        return default.astype(np.int64)
    text = frame[column].cast(pl.String)
    numbers = parse_numbers(text)
    is_count = numbers.is_between(0, MAX_MATINGS) & (numbers == numbers.round())
    wrong = (text.is_not_null() & ~is_count.fill_null(False)).to_numpy()
    shown = [f"found {column} {quoted(text[int(i)])}" for i in np.flatnonzero(wrong)]
    _refuse_rows(name, lines, wrong, shown, f"a whole number of matings, 0 to {MAX_MATINGS:,}")
    return np.where(text.is_null().to_numpy(), default, numbers.fill_null(0).to_numpy()).astype(np.int64)


def _refuse_twice(name: str, lines: np.ndarray, ids: pl.Series) -> None:
    again = (ids.is_duplicated() & ~ids.is_first_distinct()).to_numpy()
    shown = [f"found {quoted(ids[int(i)])} again" for i in np.flatnonzero(again)]
    _refuse_rows(name, lines, again, shown, "every candidate once")


def _refuse_rows(name: str, lines: np.ndarray, is_wrong: np.ndarray, found: str | Sequence[str], needed: str) -> None:
    """DataError that names the first rows that are wrong; found: of all, or of each of them."""
    rows = np.flatnonzero(is_wrong)
    if not rows.size:
        return
    texts = [found] * rows.size if isinstance(found, str) else found
    listed = [f"{name} row {lines[row]}: {text}" for row, text in zip(rows[:SHOWN], texts, strict=False)]
    more = [f"... and {rows.size - SHOWN:,} more"] if rows.size > SHOWN else []
    raise DataError("\n".join([*listed, *more, f"needed {needed}"]))
