"""A model guessed from the tables: which columns have an effect, which are left out, and why."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from mmgibbs.config.fields import NOT_IN_A_NAME
from mmgibbs.config.genotypes import Genotypes
from mmgibbs.config.tables import MISSING, UNKNOWN_PARENT
from mmgibbs.config.text import as_number
from mmgibbs.data.genotypes.file_format import format_of_content, open_genotypes
from mmgibbs.data.genotypes.prepare import prepare_genotypes
from mmgibbs.data.number_format import Decimal
from mmgibbs.data.self_explained import is_linear_function
from mmgibbs.draft.animals import Animals, find_animals, recognised
from mmgibbs.draft.columns import (
    Column,
    choose_decimal,
    describe_columns,
    determines,
    find_codes_among_levels,
    is_ambiguous,
    missing_tokens,
)
from mmgibbs.draft.roles import (
    COUNTS,
    STATUS,
    CasesOfSize,
    Role,
    TimeAndStatus,
    cases_of_size,
    find_status,
    guess_type,
    has_slips,
    has_word,
    hint,
    roles,
    time_and_status,
)
from mmgibbs.draft.trial import Trial, find_trial
from mmgibbs.draft.unknown_parents import (
    UnknownParents,
    advise,
    find_unknown_parents,
    grandsire_column,
    offer_group_column,
)
from mmgibbs.draft.wide import SetAside, choose_names, split_columns
from mmgibbs.errors import ConfigError, DataError, option_name
from mmgibbs.genotypes.formats import FORMATS
from mmgibbs.pedigree.contents import ENCODING
from mmgibbs.pedigree.errors import PedigreeError, TableError, UnknownColumns
from mmgibbs.pedigree.group_names import GROUP_PARENTS
from mmgibbs.pedigree.parents import UNKNOWN_VALUES
from mmgibbs.pedigree.problems import Problems
from mmgibbs.pedigree.read import Pedigree, read_pedigree
from mmgibbs.pedigree.spelling import are_unknown_codes, is_unknown_code
from mmgibbs.pedigree.tables import nearest, open_table

_REPEATED = 1.5  # records of an animal
_MIN_NUMBERS_BELOW = 0.8  # share of the values of a column, below a word that is its name
_ALIKE, _MIN_COMPARED = 0.995, 20  # correlation of two covariates, and records that have both
_MOST_FIXED, _OF_A_LEVEL = 10, 20.0  # levels, and records in each, of a fixed class of a trait that is not normal


@dataclass(frozen=True)
class StatedData:
    """Statements of the user about the tables, as keys of the section `data`."""

    widths: tuple[int, ...] | None = None  # of columns of fixed widths
    pedigree_widths: tuple[int, ...] | None = None
    encoding: str | None = None
    pedigree_encoding: str | None = None
    unknown_parents: UnknownParents = UnknownParents()


READING = ("widths", "pedigree_widths", "encoding", "pedigree_encoding")  # how files are read


@dataclass
class Guess:
    """Everything that the analysis file is written from; lists are in the order of the table."""

    phenotypes: Path
    columns: list[Column]
    named: bool  # the table has a line of names
    missing: tuple[str, ...]  # texts that mean a missing value beside the usual ones
    animals: Animals
    roles: dict[str, Role]
    pedigree_file: Path | None = None
    pedigree: Pedigree | None = None
    unknown_parents: UnknownParents = field(default_factory=UnknownParents)
    selfing: str | None = None  # column of the pedigree
    genotypes: Path | None = None
    kind_of_genotypes: str = ""  # 'HapMap', where the file shows it
    genotyped: tuple[int, int] = (0, 0)  # of the animals with records: with genotypes, all
    is_single_step: bool = False  # relationships of the pedigree and the genotypes together
    traits: list[Column] = field(default_factory=list)  # the first is analysed, the others are offered
    n_traits: int = 1
    censored: tuple[Column, dict[str, list[str]]] | None = None
    of_time: TimeAndStatus | None = None  # offered: a time and whether it has ended
    of_size: CasesOfSize | None = None  # offered: cases and of how many
    twice: tuple[int, ...] = ()  # lines that are the same in every column as an earlier one of the same animal
    odd: dict[str, int] = field(default_factory=dict)  # column of numbers -> the first line with a value that is none
    again: pl.Series | None = None  # (n,) Boolean: these lines
    unused_pedigree: list[str] = field(default_factory=list)  # why a pedigree is not used, and what to do
    codes_among_levels: list[tuple[str, str, int]] = field(default_factory=list)  # of `missing`; column, records
    decimal: Decimal = None  # where a comma of some column may be decimal, or something separates thousands
    names: list[str] = field(default_factory=list)  # of every column of the table
    stated: StatedData = StatedData()
    aside: list[SetAside] = field(default_factory=list)  # columns that are not among `columns`
    trial: Trial | None = None  # of lines, without a pedigree
    lines: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))  # of the records in the file
    of_records: tuple[str, ...] = ()  # notes of reading
    of_pedigree: tuple[str, ...] = ()
    problems: Problems = field(default_factory=Problems)  # of the pedigree, without which the guess was made

    def has_unknown(self, parent: Column) -> bool:
        """True if some record of a chosen trait has an unknown parent: no value, or a code for one."""
        codes = self.unknown_parents.all_codes
        text = parent.text.to_frame().select(pl.when(~pl.first().is_in(codes)).then(pl.first())).to_series()
        return self.count_missing(replace(parent, text=text)) > 0 or bool(are_unknown_codes(text.drop_nulls()).any())

    def columns_by_use(self, use: str) -> list[Column]:
        return [c for c in self.columns if self.roles[c.name].use == use]

    def count_missing(self, *columns: Column) -> int:
        """Records of a chosen trait without a value in some of these columns."""
        traits = pl.DataFrame([t.text.is_not_null() for t in self.traits[: self.n_traits]])
        observed = traits.select(pl.any_horizontal(pl.all())).to_series()
        lacks = pl.DataFrame([c.text.is_null() for c in columns]).select(pl.any_horizontal(pl.all())).to_series()
        return int((observed & lacks).sum())

    @property
    def is_by_site(self) -> bool:
        """The trait of each site of a trial is one of its own, where names of traits can have those of the sites."""
        trial = self.trial
        if trial is None or trial.site is None or not (trial.is_replicated and self.is_normal):
            return False
        return not any(mark in site for site in trial.site.values() for mark in NOT_IN_A_NAME)

    @property
    def is_normal(self) -> bool:
        """True if all chosen traits are normal."""
        return self.censored is None and all(guess_type(c)[0] == "normal" for c in self.traits[: self.n_traits])

    @property
    def decimal_is_guessed(self) -> bool:
        """True if no cell shows which mark is decimal."""
        return self.decimal is not None and all(is_ambiguous(c.in_groups) for c in self.columns if c.in_groups)

    def slips(self, c: Column) -> bool:
        """The values of a column that are no numbers are slips of the pen, not ids or codes of classes."""
        use = self.roles[c.name].use
        said = hint(c.name) if self.named else None
        if use == "trait":
            return c.odd is not None
        return use in ("left out", "covariate") and not recognised(c.name, "id") and has_slips(c, said)

    @property
    def repeated(self) -> int:
        """Animals with several records of the first trait, where not the same line twice."""
        animal = self.animals.animal
        if animal is None:
            return 0
        known = pl.DataFrame({"id": animal.text, "y": self.traits[0].text})
        known = (known if self.again is None else known.filter(~self.again)).drop_nulls()
        return int((known["id"].value_counts()["count"] > 1).sum())


def guess(
    phenotypes: Path,
    pedigree_file: Path | None = None,
    genotypes: Path | None = None,
    traits: Sequence[str] = (),
    stated: StatedData = StatedData(),
) -> Guess:
    """Look at the tables. `traits`: columns to analyse, where they are not to be guessed.

    What is wrong in the rows of the pedigree is kept in `problems`, and the guess is made without it. Raises DataError
    for a table that cannot be read, ConfigError for a trait that is no column or has no values and for
    a table without a column that could be a trait.
    """
    _refuse_genotypes(phenotypes)
    problems, unknown_parents = Problems(), stated.unknown_parents
    of_file = {"separator": stated.pedigree_widths, "encoding": stated.pedigree_encoding}
    frame, lines, named, separator, of_records, unread = _records_or_all_problems(
        phenotypes, stated, pedigree_file, of_file, traits
    )
    every, (chosen, aside) = frame, split_columns(frame, traits)
    aside += unread
    frame = every.select(chosen)
    missing = missing_tokens(frame)
    guessed: Decimal = "." if separator == "," else ","
    guessed = choose_decimal(frame, (*MISSING, *missing), guessed)
    columns = describe_columns(frame, (*MISSING, *missing), guessed)
    grandsire = None if pedigree_file is None else grandsire_column(pedigree_file, of_file)
    unused = [] if pedigree_file is None or grandsire is None else advise(pedigree_file, grandsire)
    pedigree_file = None if unused else pedigree_file
    kin, selfing = None, None
    if pedigree_file is not None:
        kin, unknown_parents, selfing = _pedigree(pedigree_file, of_file, unknown_parents, problems)
    genotyped = None if genotypes is None else open_genotypes(_genotypes_section(genotypes)).ids
    animals = find_animals(
        columns, kin, genotyped, None if pedigree_file is None else _id_column(pedigree_file, of_file)
    )
    found = {c.name: Role("left out", "") for c in columns}
    rest = [c for c in columns if all(c is not a for a in animals.all)]
    ids = [c.name for c in rest if recognised(c.name, "id")]
    found |= roles([c for c in rest if c.name not in ids], named) | _roles_of_animals(animals)
    found |= dict.fromkeys(ids, Role("left out", "its name says that it has ids"))
    found |= _constant_by_animal(columns, animals, found, traits)
    genotyped_lines = None if genotyped is None else animals.animal
    trial = find_trial([c for c in columns if c.name not in traits], genotyped_lines) if named and kin is None else None
    found |= {} if trial is None else {name: Role("trial", what) for name, what in trial.uses().items()}
    out = Guess(phenotypes, columns, named, missing, animals, found, pedigree_file, kin, unknown_parents, selfing)
    out.decimal = guessed if any(c.in_groups for c in columns) else None
    out.stated, out.lines, out.problems, out.of_records = stated, lines, problems, of_records
    out.of_pedigree = () if kin is None else notes_of_reading(kin)
    out.codes_among_levels = find_codes_among_levels(frame, rest, missing)
    out.unused_pedigree, out.names, out.aside, out.trial = unused, every.columns, aside, trial
    out.odd = {c.name: int(lines[c.odd.to_numpy()][0]) for c in columns if c.odd is not None}
    if animals.animal is not None:
        out.again = ~every.select(pl.struct(pl.all()).is_first_distinct()).to_series()
        out.twice = tuple(lines[out.again.to_numpy()].tolist())
    _look_at_pairs(out, traits)
    _leave_out_powers(out, traits)
    _choose_traits(out, traits)
    _leave_out_repetitions(out)
    _random_for_liabilities(out)
    if genotyped is not None and genotypes is not None:
        genotyped = genotyped if trial is None else _genotyped_lines(genotypes)
        out.genotypes, out.genotyped = genotypes, _count_genotyped(genotyped, animals)
        is_pedigree = kin is not None and selfing is None and animals.animal is not None
        out.is_single_step = is_pedigree and out.genotyped[0] < out.genotyped[1]
        out.kind_of_genotypes = FORMATS[format_of_content(genotypes)].label
    return out


# ------------------------------------------------------------------------------------------------ tables


def _refuse_genotypes(path: Path) -> None:
    """DataError where the table of records is a file of genotypes."""
    kind = FORMATS[format_of_content(path)].label if path.is_file() else ""
    if kind:
        raise DataError(
            f"{path.name}: is a {kind} file of genotypes, needed the table of records; genotypes are named by "
            f"{option_name('genotypes')}"
        )


RecordsOfDraft = tuple[pl.DataFrame, np.ndarray, bool, str, tuple[str, ...], list[SetAside]]


def _records_or_all_problems(
    path: Path,
    stated: StatedData,
    pedigree_file: Path | None,
    of_file: Mapping[str, Any],
    traits: Sequence[str],
) -> RecordsOfDraft:
    """`_records`; where they cannot be read, DataError says what is wrong with the pedigree as well."""
    try:
        return _records(path, stated, traits)
    except DataError as error:
        problems = Problems()
        problems.add(str(error))
        if pedigree_file is not None and grandsire_column(pedigree_file, of_file) is None:
            with problems.collect(DataError):
                _pedigree(pedigree_file, of_file, stated.unknown_parents, problems)
        raise DataError(problems.describe()) from None


def _records(path: Path, stated: StatedData, traits: Sequence[str]) -> RecordsOfDraft:
    """The records as text, their lines in the file, whether the first line holds names: it does not where one of them
    is a number; the separator of columns, notes, and columns that are not read.
    """
    try:
        first = (
            open_table(path, stated.widths, False, encoding=stated.encoding).first_record or ()
        )  # none in parquet, which has names
        named = _are_names(first, path, stated)
        header = True if named else [f"column{i}" for i in range(1, len(first) + 1)]
        table = open_table(path, stated.widths, header, encoding=stated.encoding)
        notes = tuple(note.replace(ENCODING, "data.encoding") for note in table.notes)
        chosen, unread = choose_names(table.names, traits)
        if unread and not named:
            raise DataError(
                f"{table.name}: found {len(table.names):,} columns and no line with their names; needed names, or the "
                f"genotypes in {option_name('genotypes')} and the records in a table of their own"
            )
        return table.read(chosen), table.lines(), named, table.separator, notes, unread
    except TableError as error:
        raise DataError(str(error).replace(ENCODING, option_name("encoding"))) from None


_WORD = re.compile(r"[^\W\d_]{2}.*")


def _are_names(first: Sequence[str], path: Path, stated: StatedData) -> bool:
    """Check whether the first line holds names: no numbers, or words above columns of numbers ('2019' beside 'weight').

    Names of missing values, such as 'NaN', are names as well.
    """
    is_number = [as_number(text) is not None for text in first]
    if not any(is_number) or all(is_number) or len(set(first)) < len(first):
        return not any(is_number)
    words = [i for i, text in enumerate(first, 1) if _WORD.fullmatch(text) and not is_unknown_code(text, "value")]
    below = open_table(path, stated.widths, False, encoding=stated.encoding).read(words)[1:]
    shares = below.select(pl.all().str.contains(r"^[+-]?[0-9]+([.,][0-9]+)?$").mean()).row(0)
    return any(share is not None and share >= _MIN_NUMBERS_BELOW for share in shares)


def _pedigree(
    path: Path, of_file: Mapping[str, Any], stated: UnknownParents, problems: Problems
) -> tuple[Pedigree, UnknownParents, str | None]:
    """The pedigree, how it writes unknown parents, and its column of generations of selfing.

    of_file: its separator and encoding; problems: takes what is wrong in its rows.
    """
    found = find_unknown_parents(path, of_file, stated)
    try:
        in_rows = Problems()
        read = read_pedigree(path, problems=in_rows, **of_file, **found.reading)
        if not in_rows:
            return read, offer_group_column(path, of_file, found, read), None
        selfing = _selfing_column(path, of_file)
        if selfing is not None:
            read = read_pedigree(path, hermaphrodites=True, more=(selfing,), **of_file, **found.reading)
            return read, found, selfing
        for text in in_rows.texts:
            problems.add(_name_options(text))
        return read, found, None
    except UnknownColumns as error:
        needed = "needed such names, or an analysis file of your own with data.pedigree_columns: {id: COLUMN, ...}"
        raise DataError(f"{error}\n{needed}") from None
    except (PedigreeError, TableError) as error:
        raise DataError(_name_options(str(error))) from None


def _name_options(message: str) -> str:
    """A message of the pedigree with the options that it speaks of."""
    message = message.replace(ENCODING, option_name("pedigree_encoding"))
    return message.replace(UNKNOWN_VALUES, option_name("unknown")).replace(GROUP_PARENTS, option_name("groups"))


def notes_of_reading(pedigree: Pedigree) -> tuple[str, ...]:
    """Notes of what was read past, and of the encoding."""
    return tuple(n for n in pedigree.notes if any(word in n for word in ("read past", "was read as", "taken once")))


def _id_column(path: Path, of_file: Mapping[str, Any]) -> str | None:
    """Name of the column of a pedigree that has the ids: a column of the records may have it too."""
    from mmgibbs.pedigree.columns import choose_columns

    try:
        table, chosen = choose_columns(
            path, None, None, of_file["separator"], UNKNOWN_PARENT, None, None, of_file["encoding"]
        )
    except (PedigreeError, TableError):
        return None
    return chosen.id if table.has_header or table.first_record is None else None


def _selfing_column(path: Path, of_file: Mapping[str, Any]) -> str | None:
    try:
        return next((name for name in open_table(path, **of_file).names if "self" in name.lower()), None)
    except TableError:
        return None


def _genotypes_section(path: Path) -> Genotypes:
    return Genotypes.model_validate(str(path.resolve())).completed()


def _genotyped_lines(path: Path) -> pl.Series:
    """Ids of the lines whose genotypes pass the quality control; all lines of a trial need them."""
    return prepare_genotypes(_genotypes_section(path), None, None).checked.animals.filter("kept")["animal"]


def _count_genotyped(ids: pl.Series, animals: Animals) -> tuple[int, int]:
    """(animals with records and genotypes, animals with records)."""
    if animals.animal is None:
        raise ConfigError(
            f"init: found no column of the records with the ids of animals, which {option_name('genotypes')} needs"
        )
    animal_ids = animals.animal.text.drop_nulls().unique()
    return int(animal_ids.is_in(ids.to_list()).sum()), len(animal_ids)


# ------------------------------------------------------------------------------------------------ columns


def _roles_of_animals(animals: Animals) -> dict[str, Role]:
    whose = {"animal": animals.animal, "sire": animals.sire, "dam": animals.dam}
    why = {"animal": f"the animal of the record: {animals.why}", "sire": "the sire", "dam": "the dam"}
    return {c.name: Role("animal" if role == "animal" else "parent", why[role]) for role, c in whose.items() if c}


def _constant_by_animal(
    columns: Sequence[Column], animals: Animals, roles: dict[str, Role], wanted: Sequence[str]
) -> dict[str, Role]:
    """Numbers that are the same in all records of an animal: as a trait they would count as often as it has records."""
    of = animals.animal
    if of is None or of.records_per_level < _REPEATED:
        return {}
    constant = [c for c in columns if roles[c.name].use == "trait" and determines(of, c)]
    if all(roles[c.name].use != "trait" or c in constant for c in columns):
        return {}  # nothing else to analyse
    why = f"each {of.name} has one value of it; in several records it would count several times"
    return {c.name: Role("left out", why) for c in constant if c.name not in wanted}


def _choose_traits(g: Guess, wanted: Sequence[str]) -> None:
    by_name = {c.name: c for c in g.columns}
    for name in wanted:
        if name not in by_name:
            raise ConfigError(
                f"init: {option_name('traits')}: {g.phenotypes.name} has no column '{name}'; {nearest(name, by_name)}"
            )
        if by_name[name].known == 0:
            void = ", ".join(m or "empty" for m in (*MISSING, *g.missing))
            raise ConfigError(
                f"init: {option_name('traits')}: found no value in column '{name}' of {g.phenotypes.name}, needed at "
                f"least one that is not missing ({void})"
            )
        g.roles[name] = Role("trait", "you asked for it")
    candidates = g.columns_by_use("trait")
    if not candidates:
        slips = [
            f"{c.name} has numbers, and {c.odd_ones}, the first in row {g.odd[c.name]}" for c in g.columns if g.slips(c)
        ]
        got = f", found {'; '.join(slips)}" if slips else ""
        correct = "these values corrected, or " if slips else ""
        raise ConfigError(
            f"init: {g.phenotypes.name}: no column looks like a trait{got}; needed {correct}"
            f"{option_name('traits')}, a column"
        )
    likely = sorted(  # stable: the first of those that are alike
        candidates, key=lambda c: (like_codes(c), hint(c.name) != "trait", c.whole and not g.named)
    )
    g.traits = [by_name[n] for n in wanted] + [c for c in likely if c.name not in wanted]
    g.n_traits = max(1, len(wanted))
    g.censored = find_status(g.traits[0], [c for c in g.columns if c is not g.traits[0]])
    statuses = [c for c in g.columns if has_word(c.name, STATUS)]
    covariates = sorted(g.columns_by_use("covariate"), key=lambda c: has_word(c.name, ("age",)))
    time = next((c for c in covariates if find_status(c, statuses)), None)
    if time is not None and g.censored is None and not wanted:
        g.roles[time.name] = Role("trait", "a time, and another column says whether it has ended")
        g.traits, g.censored = [time, *g.traits], find_status(time, statuses)
    if g.censored is not None:
        g.roles[g.censored[0].name] = Role("status", f"says whether {g.traits[0].name} has ended")
        g.traits = [c for c in g.traits if c is not g.censored[0]]


def _leave_out_powers(g: Guess, wanted: Sequence[str]) -> None:
    """Columns that are the square or the cube of a covariate, or the covariate in another unit."""
    kept: list[Column] = []
    for c in sorted(g.columns_by_use("covariate"), key=lambda c: _is_named_for_power(c.name)):
        kept += [] if _leave_out_power(g, c, kept) else [c]
    for c in g.columns_by_use("trait"):
        if c.name not in wanted and _is_named_for_power(c.name):
            _leave_out_power(g, c, kept)


_POWERS = ("square", "squared", "sq", "sqr", "quadratic", "cube", "cubed", "cubic")


def _is_named_for_power(name: str) -> bool:
    return has_word(name, _POWERS) or name.endswith(("2", "3", "sq", "\u00b2", "\u00b3"))


def _leave_out_power(g: Guess, c: Column, kept: Sequence[Column]) -> bool:
    """Leave out the column if it is a power of one of `kept`; return True if so."""
    for of in kept:
        for degree, what in ((2, "the square"), (3, "the cube"), (1, "another unit")):
            if c.numbers is None or of.numbers is None or not is_linear_function(c.numbers, [of.numbers**degree]):
                continue
            instead = f": write degree: {degree} there instead" if degree > 1 else ""
            g.roles[c.name] = Role("left out", f"{what} of {of.name}{instead}")
            return True
        if g.roles[c.name].use == "covariate" and _are_alike(c.numbers, of.numbers):
            g.roles[c.name] = Role("left out", f"nearly the same as {of.name}")
            return True
    return False


def _are_alike(x: np.ndarray | None, z: np.ndarray | None) -> bool:
    """Covariates of which one says what the other says, as days and whole months do."""
    if x is None or z is None:
        return False
    both = ~np.isnan(x) & ~np.isnan(z)
    if both.sum() < _MIN_COMPARED or not (np.ptp(x[both]) and np.ptp(z[both])):
        return False
    return bool(abs(np.corrcoef(x[both], z[both])[0, 1]) > _ALIKE)


def like_codes(c: Column) -> bool:
    """Words, few whole numbers, or few others (doses of 0.5 and 1.5) that no name says are records."""
    return (c.numbers is None and c.odd is None) or c.few or (c.has_few_values and hint(c.name) is None)


def _look_at_pairs(g: Guess, wanted: Sequence[str]) -> None:
    """A time with its status and cases of sizes, which are offered: a status or a size alone is no trait."""
    rest = [c for c in g.columns if g.roles[c.name].use not in ("animal", "parent")]
    g.of_time, g.of_size = time_and_status(rest), cases_of_size(rest)
    reasons = {}
    if g.of_time is not None and g.roles[g.of_time.status.name].use == "left out":
        reasons[g.of_time.status.name] = f"may say whether {g.of_time.time.name} has ended"
    if g.of_size is not None and not has_word(g.of_size.size.name, COUNTS):
        reasons[g.of_size.size.name] = f"may say of how many {g.of_size.cases.name} are"
    g.roles |= {name: Role("left out", why) for name, why in reasons.items() if name not in wanted}


def _leave_out_repetitions(g: Guess) -> None:
    """Columns that say again what another says: the animal a second time, the herd beside the herd-year."""
    for c in g.columns:
        role, animal = g.roles[c.name], g.animals.animal
        if role.use not in ("class", "random", "covariate"):
            continue
        if animal is not None and c.text.equals(animal.text):
            g.roles[c.name] = Role("left out", f"the same as {animal.name}")
            continue
        grouped = [f for f in g.columns if g.roles[f.name].use in ("class", "random")]
        earlier = [f for f in grouped if g.roles[f.name].use == "class" or g.columns.index(f) < g.columns.index(c)]
        alike = [f for f in grouped if f is not c and determines(f, c) and determines(c, f)]
        same = next((f for f in alike if f in earlier and (role.use == "random" or _precedes(g, f, c))), None)
        if same is not None:
            g.roles[c.name] = Role("left out", f"the same groups of records as {same.name}")
            continue
        classes = [f for f in g.columns_by_use("class") if f is not c and f not in alike]
        coarser = next((f for f in classes if hint(c.name) == "covariate" and determines(c, f)), None)
        finer = next((f for f in classes if role.use == "class" and determines(f, c)), None)
        if coarser is not None:
            g.roles[c.name] = Role("left out", f"{coarser.name} is made of it")
        elif finer is not None and hint(finer.name) != "covariate":
            g.roles[c.name] = Role("left out", f"each level of {finer.name} lies in one of {c.name}")


def _precedes(g: Guess, f: Column, c: Column) -> bool:
    return g.columns.index(f) < g.columns.index(c)


def _random_for_liabilities(g: Guess) -> None:
    """Traits that are not normal: a level whose records are all of one category has no estimate with a flat prior."""
    if g.is_normal:
        return
    for c in g.columns_by_use("class"):
        if c.levels > _MOST_FIXED or c.records_per_level < _OF_A_LEVEL:
            why = f"{g.roles[c.name].why}; random, as levels may have records of one category alone"
            g.roles[c.name] = Role("random", why)
