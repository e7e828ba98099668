"""Columns of unknown-parent groups as users have them: the parents of the plain column, or the user is told."""

import io
from dataclasses import replace

import polars as pl
import pytest
from helpers.spelled_tables import PARENTS, PEDIGREE_COLUMNS, PLAIN, Case, delimited

from mmgibbs.config import load_config
from mmgibbs.data.prepare import prepare
from mmgibbs.errors import MmgibbsError
from mmgibbs.pedigree.errors import PedigreeError

NAMES = ("base", "home", "import")
ROWS = PLAIN.pedigree()


def has_unknown_parent(i):
    return None in PARENTS[i]


def group_of(i):
    """By number, mixed among sires, dams and their progeny."""
    return (i + i // 5) % 3


def with_groups(write, rows=ROWS):
    """The pedigree with a column behind the dam; write: function of (number of the group, animal)."""
    return [[*row, write(group_of(i), i)] for i, row in enumerate(rows)]


def table(rows, names=(*PEDIGREE_COLUMNS, "origin"), separator=","):
    return delimited(rows, names, separator)


PLAIN_TABLE = table(with_groups(lambda g, i: NAMES[g] if has_unknown_parent(i) else ""))


def parents_of(case, folder):
    """(animal: (sire, dam), groups in the place of unknown ones; warnings)."""
    data = dict(case.data)
    groups = {"column": "origin", "effect": "random", **data.pop("groups", {})}
    prepared = prepare(load_config(replace(case, data={"groups": groups, **data}).config(folder)))
    kin = prepared.pedigree
    names = [*kin.ids, *kin.groups]
    return {i: (names[s], names[d]) for i, s, d in zip(kin.ids, kin.sire, kin.dam, strict=True)}, prepared.warnings


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    found, warnings = parents_of(Case("plain", pedigree=PLAIN_TABLE), tmp_path_factory.mktemp("plain"))
    assert not warnings and {name for pair in found.values() for name in pair} >= set(NAMES)
    return found


def outcome_of(case, folder, right, names):
    """('same', 'told', 'refused' or 'different', what was said)."""
    try:
        found, warnings = parents_of(case, folder)
    except (MmgibbsError, PedigreeError) as error:
        return "refused", str(error)
    if warnings:
        return "told", "\n".join(warnings)
    called = dict(zip(NAMES, names, strict=True))
    right = {i: tuple(called.get(parent, parent) for parent in pair) for i, pair in right.items()}
    return ("same", "") if found == right else ("different", str(set(found.items()) ^ set(right.items()))[:300])


def group_inputs():
    """(case, names of the groups)."""
    inputs = []

    def add(name, expected, pedigree, names=NAMES, **other):
        inputs.append((Case(name, expected, pedigree=pedigree, **other), names))

    def named(names, of_known=""):
        return table(with_groups(lambda g, i: names[g] if has_unknown_parent(i) else of_known))

    add("plain", "same", PLAIN_TABLE)
    for text in (
        "1 2 3", "-1 -2 -3", "1990 2000 2010", "10 9 100", "a B c", "DE FR NL", "North South Ügland",
        "1990-1995 1996-2000 2001+", "0.5 1.5 2.5", "true false maybe", "AA Aa bb", "<1990 >1990 =1990",
        "none local import",
    ):  # fmt: skip
        names = tuple(text.split())
        alike = names == ("AA", "Aa", "bb")
        add(f"names {names}", "told" if alike or "none" in names else "same", named(names), names)
    add("numbers from 0", "same", named(("0", "1", "2")), ("0", "1", "2"))
    add("0 beside 10 and 20", "told", named(("0", "10", "20")), ("0", "10", "20"))
    add("-1 beside 10 and 20", "told", named(("-1", "10", "20")), ("-1", "10", "20"))
    add("known ones too", "same", table(with_groups(lambda g, i: NAMES[g])))
    add("another group of known parents", "same", named(NAMES, "never"))
    for code in ("0", "NA", ".", "-9", "unknown", "-"):
        add(f"{code} where parents are known", "same", named(NAMES, code))
    for code in ("", "NA", " "):
        write = lambda g, i, code=code: (code if i == 2 else NAMES[g]) if has_unknown_parent(i) else ""
        add(f"{code!r} where a parent is unknown", "refused", table(with_groups(write)))
    for code in "0 . -9 -99 -999 unknown UNK ? * N/A NULL NaN nan 00 0.0 - \\N <NA>".split():
        write = lambda g, i, code=code: (code if i in (2, 7) else NAMES[g]) if has_unknown_parent(i) else ""
        add(f"{code!r} for some", "told|refused", table(with_groups(write)))
    for name, change in (
        ("capitals", str.upper),
        ("a capital", str.title),
        ("zero width", lambda n: n + "\u200b"),
        ("quotes", lambda n: f"'{n}'"),
        ("blanks within", lambda n: n[0] + " " + n[1:]),
    ):
        write = lambda g, i, change=change: (
            (change(NAMES[g]) if i % 4 == 0 else NAMES[g]) if has_unknown_parent(i) else ""
        )
        add(f"some in {name}", "told|refused", table(with_groups(write)))
    for name, change in (("outer blanks", lambda n: f"  {n} "), ("no-break space", lambda n: n + "\u00a0")):
        write = lambda g, i, change=change: (
            (change(NAMES[g]) if i % 4 == 0 else NAMES[g]) if has_unknown_parent(i) else ""
        )
        add(f"some with {name}", "same", table(with_groups(write)))
    for name, form in (("1.0", "{}.0"), ("01", "0{}"), ("+1", "+{}")):
        write = lambda g, i, form=form: (
            (form.format(g + 1) if i % 4 == 0 else str(g + 1)) if has_unknown_parent(i) else ""
        )
        add(f"some numbers as {name}", "told|refused", table(with_groups(write)), ("1", "2", "3"))
    add("a group called like an animal", "told", named(("K100", "home", "import")))
    add("a group called nearly like an animal", "same", named(("k100", "home", "import")), ("k100", "home", "import"))
    add("no group at all", "refused", named(("", "", "")))
    # where the column stands
    for place in range(3):
        order = [*range(place), 3, *range(place, 3)]
        rows = [[row[j] for j in order] for row in with_groups(lambda g, i: NAMES[g])]
        names = [[*PEDIGREE_COLUMNS, "origin"][j] for j in order]
        add(f"in column {place + 1}", "same", table(rows, names))
    add("by its position", "refused", table(with_groups(lambda g, i: NAMES[g])), data={"groups": {"column": "4"}})
    add(
        "no names, by its position",
        "same",
        table(with_groups(lambda g, i: NAMES[g]), None),
        data={"groups": {"column": "4"}, "pedigree_header": False, "pedigree_columns": {"id": 1, "sire": 2, "dam": 3}},
    )
    add("by another name", "refused", PLAIN_TABLE, data={"groups": {"column": "group"}})
    add("in capitals", "refused", PLAIN_TABLE, data={"groups": {"column": "ORIGIN"}})
    for column in ("sire", "dam", "id", "5", "0"):
        add(f"column {column}", "refused|told", PLAIN_TABLE, data={"groups": {"column": column}})
    # frames and binary files
    frame = pl.DataFrame(with_groups(lambda g, i: str(g + 1)), schema=[*PEDIGREE_COLUMNS, "origin"], orient="row")
    for kind in (pl.Int16, pl.Float64, pl.String, pl.Categorical):
        cast = frame.with_columns(origin=pl.col("origin").cast(kind))
        add(f"a frame of {kind}", "same", cast, ("1", "2", "3"))
        target = io.BytesIO()
        cast.write_parquet(target)
        add(f"parquet of {kind}", "same", target.getvalue(), ("1", "2", "3"), endings=("csv", "parquet"))
    with_gaps = frame.with_columns(
        origin=pl.when(pl.Series([has_unknown_parent(i) for i in range(40)])).then(pl.col("origin").cast(pl.Float64))
    )
    add("numbers with gaps", "same", with_gaps, ("1", "2", "3"))
    of_nan = with_gaps.with_columns(pl.col("origin").fill_null(float("nan")))
    add("numbers with gaps of NaN", "same", of_nan, ("1", "2", "3"))
    # groups in place of the parents
    in_place = [[row[0], *(NAMES[group_of(i)] if p == "0" else p for p in row[1:])] for i, row in enumerate(ROWS)]
    add("in place of the parents", "told|refused", table([[*r, ""] for r in in_place]))
    # without a row
    no_founders = [row for row in with_groups(lambda g, i: NAMES[g]) if set(row[1:3]) != {"0"}]
    add("founders without rows", "refused", table(no_founders))
    add("reference", "refused|same", PLAIN_TABLE, data={"groups": {"reference": "Base"}})
    return inputs


@pytest.mark.slow
def test_columns_of_groups(plain, tmp_path):
    wrong = []
    for case, names in group_inputs():
        outcome, said = outcome_of(case, tmp_path, plain, names)
        if outcome not in case.expected.split("|"):
            wrong.append(f"{case.name}: {outcome}, expected {case.expected}: {said[:300]}")
    assert not wrong, "\n".join(wrong)
