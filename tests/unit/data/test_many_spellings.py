"""The same records written in many ways: the right answer, or the user is told; never silence.

Pedigrees and other tables are in test_many_spellings_of_tables.py.

'same': the breeding values of the plain tables without a warning; 'refused': an error that names the file; 'told':
refused, or a warning.
"""

import io
from itertools import permutations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from helpers.spelled_tables import (
    NUMBERED,
    PLAIN,
    RECORD_COLUMNS,
    Case,
    Spelling,
    breeding_values,
    comma,
    delimited,
    grouped,
    plain_id,
    solve,
)

from mmgibbs.config import load_config
from mmgibbs.data.prepare import prepare

ROWS, PARENT_ROWS = PLAIN.records(), PLAIN.pedigree()


@pytest.fixture(scope="module")
def right(tmp_path_factory):
    """Breeding values of the plain tables, (animals, traits), by dense equations."""
    found = breeding_values(prepare(load_config(Case("plain").config(tmp_path_factory.mktemp("plain")))))
    return np.array([found[i] for i in PLAIN.ids])


def assert_right(cases, folder, right):
    """Every case has the outcome that is expected of it."""
    wrong = []
    for case in cases:
        outcome, said = solve(case, folder, right)
        accepted = case.expected.replace("told", "told|refused").split("|")
        if outcome not in accepted or (outcome == "refused" and not said):
            wrong.append(f"{case.name}: {outcome}, expected {case.expected}: {said[:300]}")
    assert not wrong, "\n".join(wrong)


def write_records(rows=ROWS, header=RECORD_COLUMNS, separator=",", end="\n"):
    return delimited(rows, header, separator, end)


def fixed_width(rows, widths, end="\n"):
    return "".join("".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) + end for row in rows)


def text_cases():
    cases = [Case("plain")]
    for mark, end in zip((",", ";", "\t", "|", "  ", " \t "), ("\n", "\r\n", "\r") * 2, strict=True):
        cases.append(Case(f"separator {mark!r}, end {end!r}", records=write_records(separator=mark, end=end)))
    quoted_rows = [[f'"{c}"' for c in row] for row in [RECORD_COLUMNS, *ROWS]]
    umlauts = Spelling(herd=lambda herd, k: {"north": "Nørre", "south": "Süd", "east": "Øst"}[herd]).records()
    widths = [max(len(row[j]) for row in [*ROWS, RECORD_COLUMNS]) + 1 for j in range(len(RECORD_COLUMNS))]
    names, text = list(RECORD_COLUMNS), write_records()
    for name, expected, records, data in (
        ("every cell quoted", "same", delimited(quoted_rows), {}),
        ("byte order mark", "same", "\ufeff" + text, {}),
        ("two byte order marks", "same", "\ufeff\ufeff" + text, {}),
        ("end of text of DOS", "same", text + "\x1a", {}),
        ("no last line end", "same", text[:-1], {}),
        ("blank lines", "same", "\n\n" + text.replace("\n", "\n\n"), {}),
        ("umlauts", "same", write_records(umlauts), {}),
        ("Latin-1", "same", write_records(umlauts).encode("latin-1"), {}),
        ("UTF-16", "refused", text.encode("utf-16"), {}),
        ("UTF-16 without a mark", "refused", text.encode("utf-16-be"), {}),
        ("comma behind each row", "same", write_records([[*r, ""] for r in ROWS], [*names, ""]), {}),
        ("comma behind records", "same", write_records([[*r, ""] for r in ROWS]), {}),
        ("blanks around commas", "same", write_records(separator=" , "), {}),
        ("column of row numbers", "same", write_records([[str(i), *r] for i, r in enumerate(ROWS)], ["", *names]), {}),
        ("names of columns again", "refused", text + text, {}),
        ("units below the names", "refused", ",".join(names) + "\n,,,d,kg,%\n" + write_records(header=None), {}),
        ("title", "refused", "Milk records of 2024\n" + text, {}),
        ("two comments", "refused", "# one\n# and two\n" + text, {}),
        ("comment below", "refused", text + "# end\n", {}),
        ("sep= of spreadsheets", "refused", "sep=;\n" + write_records(separator=";"), {}),
        ("total below", "refused", text + "Total,,,,9999,\n", {}),
        ("row names of R", "refused", write_records([["1", *r] for r in ROWS], separator=" "), {}),
        ("names in capitals", "refused", write_records(header=[n.upper() for n in names]), {}),
        ("no names", "refused", write_records(header=None), {}),
        ("no names, stated", "same", write_records(header=None), {"header": names}),
        ("names stated and there", "refused", text, {"header": names}),
        ("fixed widths", "same", fixed_width([names, *ROWS], widths), {"widths": widths}),
        ("fixed widths, CRLF", "same", fixed_width([names, *ROWS], widths, "\r\n"), {"widths": widths}),
        ("fixed widths, wrong", "refused", fixed_width([names, *ROWS], widths), {"widths": [2, *widths[1:]]}),
        ("rows reversed", "same", write_records(ROWS[::-1]), {}),
    ):
        cases.append(Case(name, expected, records=records, data=data))
    for order in list(permutations(range(6)))[37::120]:
        header = [names[j] for j in order]
        cases.append(Case(f"columns {header}", records=write_records([[r[j] for j in order] for r in ROWS], header)))
    return cases


def test_text_of_records(tmp_path, right):
    assert_right(text_cases(), tmp_path, right)


def number_cases():
    cases = []

    def add(name, expected, spelling, separator=";", **data):
        records = write_records(spelling.records(), separator=separator)
        cases.append(Case(name, expected, records=records, spelling=spelling, data=data))

    add("decimal commas", "same", Spelling(number=comma))
    add("decimal commas, stated", "same", Spelling(number=comma), decimal=",")
    add("decimal commas between commas", "refused", Spelling(number=comma), separator=",")
    for mark in (",", ".", " ", "\u00a0", "\u2009", "\u202f", "'", "\u2019"):
        point = "," if mark == "." else "."
        add(f"thousands {mark!r}", "refused", Spelling(number=grouped(mark, point)))
        add(f"thousands {mark!r}, stated", "same", Spelling(number=grouped(mark, point)), decimal=point)
    for name, expected, number in (
        ("plus", "same", lambda x: "+" + x),
        ("exponents", "same", lambda x: f"{float(x):.8e}"),
        ("zeros in front", "same", lambda x: "00" + x),
        ("zeros behind", "same", lambda x: x + "00"),
        ("no-break space", "same", lambda x: "\u00a0" + x),
        ("unit", "refused", lambda x: x + " kg"),
        ("Fortran", "refused", lambda x: f"{float(x):.8e}".replace("e", "D")),
        ("letter for a zero", "refused", lambda x: x.replace("0", "O")),
        ("underscores", "refused", lambda x: x[0] + "_" + x[1:]),
    ):
        add(name, expected, Spelling(number=number))
    for code in ("", "NA", " NA", "\u00a0"):
        add(f"missing {code!r}", "same", Spelling(missing=code))
    for code in ". - * NaN null N/A #N/A -- ND x \\N \u2013 (blank) nan <NA>".split():
        add(f"missing {code!r}", "refused", Spelling(missing=code))
        add(f"missing {code!r}, stated", "same", Spelling(missing=code), missing=["", code])
    for code in ("0", "0.0", "-9", "-99", "-999", "9999", "-1", "32767", "1e30", "999.9"):
        add(f"missing {code!r}", "told", Spelling(missing=code))
        add(f"missing {code!r}, stated", "same", Spelling(missing=code), missing=["", code])
    return cases


@pytest.mark.slow
def test_numbers_and_missing_values_of_records(tmp_path, right):
    assert_right(number_cases(), tmp_path, right)


def level_cases():
    herds = {"north": "1", "south": "2", "east": "3"}
    cases = []
    for name, expected, write in (
        ("capitals", "told", str.upper),
        ("a capital", "told", str.title),
        ("blanks", "same", lambda h: f"  {h} "),
        ("no-break space", "same", lambda h: h + "\u00a0"),
        ("zero width", "told", lambda h: h + "\u200b"),
        ("quoted", "told", lambda h: f"'{h}'"),
    ):
        for which, chosen in (("some", lambda k: k % 5 == 0), ("one", lambda k: k == 8)):
            herd = lambda h, k, write=write, chosen=chosen: write(h) if chosen(k) else h
            cases.append(Case(f"{which} {name}", expected, spelling=Spelling(herd=herd)))
    for name, write in (("1.0", "{}.0"), ("01", "0{}"), ("+1", "+{}"), ("1.", "{}.")):
        herd = lambda h, k, write=write: write.format(herds[h]) if k % 4 == 0 else herds[h]
        cases.append(Case(f"numbers as {name}", "told", spelling=Spelling(herd=herd)))
    codes = ["", "not known", *". ? UNK unknown n/a NaN null -9 -999 #N/A * N.A. \\N unbekannt (null) Na".split()]
    for number, code in enumerate(codes):
        of = herds.get if number % 2 else str
        herd = lambda h, k, of=of, code=code: code if k % 9 == 0 else of(h)
        cases.append(Case(f"{code!r}", "told", spelling=Spelling(herd=herd)))
    return cases


def test_levels_of_records(tmp_path, right):
    assert_right(level_cases(), tmp_path, right)


# name: (id as it should be, the same in another spelling)
RESPELLED = {
    "zeros": (lambda i: str(i + 1), lambda i: f"{i + 1:04d}"),
    "point": (lambda i: str(i + 1), lambda i: f"{i + 1}."),
    "case": (plain_id, lambda i: plain_id(i).lower()),
    "blank": (plain_id, lambda i: "K " + plain_id(i)[1:]),
    "zero width": (plain_id, lambda i: plain_id(i) + "\u200b"),
    "dash": (lambda i: f"DE-{i}", lambda i: f"DE\u2013{i}"),
    "minus": (lambda i: f"DE-{i}", lambda i: f"DE\u2212{i}"),
    "no-break space": (lambda i: f"DE {i}", lambda i: f"DE\u00a0{i}"),
    "combining": (lambda i: f"Kü{i}", lambda i: f"Ku\u0308{i}"),
    "full width": (lambda i: str(i + 10), lambda i: "".join(chr(0xFF10 + int(c)) for c in str(i + 10))),
    "apostrophe": (lambda i: str(i + 10), lambda i: f"'{i + 10}"),
    "underscore": (lambda i: f"DE-{i}", lambda i: f"DE_{i}"),
    "separator": (lambda i: f"DE-{i}", lambda i: f"DE{i}"),
    "zeros within": (lambda i: f"DE{i + 10}", lambda i: f"DE{i + 10:09d}"),
    "slash": (lambda i: f"{i}-20", lambda i: f"{i}/20"),
    "Cyrillic": (plain_id, lambda i: "\u041a" + plain_id(i)[1:]),
    "letter O": (plain_id, lambda i: plain_id(i).replace("0", "O")),
    "hash": (lambda i: str(i + 1), lambda i: f"#{i + 1}"),
}


def id_cases():
    cases = []
    for name, (write, other) in RESPELLED.items():
        if name in ("zeros", "case", "dash", "slash"):
            cases.append(Case(f"{name}: both", spelling=Spelling(other)))
        one_animal = lambda i, write=write, other=other: other(i) if i == 20 else write(i)
        one_parent = lambda i, write=write, other=other: other(i) if i == 2 else write(i)
        added = {"add_missing_animals": True}
        cases.append(Case(f"{name}: a record", "refused", spelling=Spelling(one_animal, write)))
        cases.append(Case(f"{name}: a parent", "told", spelling=Spelling(write, write, one_parent)))
        if name in ("zeros", "case", "dash", "Cyrillic"):
            cases.append(Case(f"{name}: added", "told", spelling=Spelling(one_animal, write), data=added))
            cases.append(Case(f"{name}: parents", "told", spelling=Spelling(write, write, other)))
    for code in ("NA", ".", "?", "UNK", "0", "-9", "999", "x", "\\N", "none", "00", "99999"):
        animal = lambda i, code=code: code if i == 33 else plain_id(i)
        cases.append(Case(f"record of {code}", "told", spelling=Spelling(animal, plain_id)))
        if code != "NA":
            data = {"add_missing_animals": True}
            cases.append(Case(f"record of {code} added", "told", spelling=Spelling(animal, plain_id), data=data))
    return cases


def test_ids_of_two_tables(tmp_path, right):
    assert_right(id_cases(), tmp_path, right)


def written(frame, method):
    target = io.BytesIO()
    getattr(frame, method)(target)
    return target.getvalue()


def frame_cases():
    frame, pedigree = PLAIN.record_frame(), PLAIN.pedigree_frame()
    numbered = NUMBERED.record_frame().with_columns(pl.col("animal").cast(pl.Int64))
    parents = NUMBERED.pedigree_frame().cast(pl.Int64)
    parents = parents.with_columns(
        [pl.when(pl.col(c) != 0).then(pl.col(c)).alias(c) for c in ("sire", "dam")]  # with gaps
    )
    cases = []

    def add(name, expected, records, pedigree, spelling=PLAIN, **other):
        cases.append(Case(name, expected, records, pedigree, spelling, **other))

    for kind in (pl.Int16, pl.UInt64, pl.Float64, pl.Float32, pl.Decimal(18, 2), pl.String, pl.Categorical):
        as_text = kind == pl.Categorical
        cast = (lambda f: f.cast(pl.String).cast(pl.Categorical)) if as_text else (lambda f, kind=kind: f.cast(kind))
        ids = numbered.with_columns(cast(pl.col("animal")))
        add(f"both {kind}", "same", ids, cast(parents), NUMBERED)
        if not as_text:
            add(f"herd {kind}", "same", frame.with_columns(_herd_numbers().cast(kind)), pedigree)
    plain, animals = (pd.DataFrame({c: f[c].to_list() for c in f.columns}) for f in (frame, pedigree))
    numbers, kin = (pd.DataFrame({c: f[c].to_list() for c in f.columns}) for f in (numbered, parents))
    for kind in ("category", "string", "object", "Int64", "int32", "float64", "Float64"):
        add(f"pandas, records {kind}", "same", numbers.assign(animal=numbers.animal.astype(kind)), kin, NUMBERED)
        if kind != "int32":
            add(f"pandas, pedigree {kind}", "same", numbers, kin.astype(dict.fromkeys(kin, kind)), NUMBERED)
    mixed = [int(x) if i % 2 else str(x) for i, x in enumerate(numbers.animal)]
    add("pandas, mixed ids", "same", numbers.assign(animal=mixed), kin, NUMBERED)
    for name, expected, changed in (
        ("index", "same", plain.set_index("animal")),
        ("index twice", "same", plain.set_index("animal", drop=False)),
        ("two indexes", "same", plain.set_index(["animal", "herd"])),
        ("sorted", "same", plain.sort_values("milk")),
        ("nullable", "same", plain.convert_dtypes()),
        ("sparse ages", "same", plain.assign(age=pd.arrays.SparseArray(plain.age))),
        ("sparse with gaps", "same", plain.assign(fat=pd.arrays.SparseArray(plain.fat))),
        ("sparse text", "same", plain.assign(herd=plain.herd.astype("Sparse[object]"))),
        ("decimal commas", "same", plain.assign(milk=[comma(str(x)) for x in plain.milk])),
        ("ordered", "same", plain.assign(herd=pd.Categorical(plain.herd, ["north", "south", "east", "west"]))),
        ("infinite", "refused", plain.assign(fat=plain.fat.fillna(np.inf))),
        ("durations", "refused", plain.assign(age=pd.to_timedelta(plain.age, unit="D"))),
        ("complex", "refused", plain.assign(milk=plain.milk.astype(complex))),
        ("twice a column", "refused", pd.concat([plain, plain[["fat"]]], axis=1)),
        ("no rows", "refused", plain.iloc[:0]),
        ("a column", "refused", plain.animal),
        ("NumPy", "refused", plain.to_numpy()),
        ("dict", "refused", {c: plain[c].tolist() for c in plain}),
    ):
        add(f"pandas, {name}", expected, changed, animals)
    long = 276_000_000_000_000_000
    lost = numbered.with_columns((pl.col("animal") + long).cast(pl.Float64))
    add("ids that lost digits", "refused", lost, parents + long)
    for method, ending in (("write_parquet", "parquet"), ("write_ipc", "arrow"), ("write_ipc_stream", "arrow")):
        files = written(frame, method), written(pedigree, method)
        add(method, "same", *files, endings=(ending, ending))
        add(f"{method} called csv", "same", *files)
        add(f"{method} cut", "refused", files[0][: len(files[0]) // 2], files[1])
        floats = written(numbered.cast({"animal": pl.Float64}), method), written(parents.cast(pl.Float64), method)
        add(f"{method} floats", "same", *floats, NUMBERED)
    return cases


def _herd_numbers():
    return pl.col("herd").replace_strict({"north": 1, "south": 2, "east": 3})


def test_frames_and_binary_files(tmp_path, right):
    assert_right(frame_cases(), tmp_path, right)
