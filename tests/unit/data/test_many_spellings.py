"""The same tables written in many ways, for every reader: the right answer, or the user is told; never silence.

Each list has at least fifty inputs with their right answer. 'same': the breeding values (the matrix, the ids) of the
plain table without a warning; 'refused': an error that names the file; 'told': refused, or a warning.
"""

import io
from itertools import permutations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from helpers.spelled_tables import (
    NUMBERED,
    PARENTS,
    PEDIGREE_COLUMNS,
    PLAIN,
    RECORD_COLUMNS,
    RECORDS,
    Case,
    Spelling,
    delimited,
    plain_id,
    solve,
)

from mmgibbs.comparison.make import compare
from mmgibbs.data.metafounders import read_gamma
from mmgibbs.data.relationship_file import read_relationship
from mmgibbs.errors import MmgibbsError
from mmgibbs.runs.run import run
from pedigree.errors import PedigreeError, TableError
from pedigree.read import read_pedigree

ROWS, PARENT_ROWS = PLAIN.records(), PLAIN.pedigree()
MIN_INPUTS = 50


@pytest.fixture(scope="module")
def right(tmp_path_factory):
    """Breeding values of the plain tables by the program, (animals, traits); `solve` has them by dense equations."""
    folder = tmp_path_factory.mktemp("plain")
    result = run(Case("plain").config(folder), directory=folder / "run", progress=False)
    of_animals = result.solutions.filter(pl.col("term") == "genetic")
    values = {(level, trait): mean for level, trait, mean in of_animals.select("level", "trait", "mean").iter_rows()}
    return np.array([[values[i, trait] for trait in ("milk", "fat")] for i in PLAIN.ids])


def assert_right(cases, folder, right):
    """Every case has the outcome that is expected of it."""
    assert len(cases) >= MIN_INPUTS and len({case.name for case in cases}) == len(cases)
    wrong = []
    for case in cases:
        outcome, said = solve(case, folder, right)
        accepted = case.expected.replace("told", "told|refused").split("|")
        if outcome not in accepted or (outcome == "refused" and not said):
            wrong.append(f"{case.name}: {outcome}, expected {case.expected}: {said[:300]}")
    assert not wrong, "\n".join(wrong)


# ------------------------------------------------------------------------------------------------ text of records


def write_records(rows=ROWS, header=RECORD_COLUMNS, separator=",", end="\n"):
    return delimited(rows, header, separator, end)


def comma(number):
    return number.replace(".", ",")


def grouped(mark, point):
    def write(number):
        whole, dot, decimals = number.partition(".")
        return f"{int(whole):,}".replace(",", mark) + point * bool(dot) + decimals

    return write


def fixed_width(rows, widths, end="\n"):
    return "".join("".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) + end for row in rows)


def text_cases():
    cases = [Case("plain")]
    for mark in (",", ";", "\t", "|", "  ", " \t "):
        for end in ("\n", "\r\n", "\r"):
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
        ("Latin-1", "refused", write_records(umlauts).encode("latin-1"), {}),
        ("UTF-16", "refused", text.encode("utf-16"), {}),
        ("UTF-16 without a mark", "refused", text.encode("utf-16-be"), {}),
        ("comma behind each row", "same", write_records([[*r, ""] for r in ROWS], [*names, ""]), {}),
        ("comma behind records", "refused", write_records([[*r, ""] for r in ROWS]), {}),
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
    for code in (
        ".",
        "-",
        "*",
        "NaN",
        "null",
        "N/A",
        "#N/A",
        "--",
        "ND",
        "x",
        "\\N",
        "\u2013",
        "(blank)",
        "nan",
        "<NA>",
    ):
        add(f"missing {code!r}", "refused", Spelling(missing=code))
        add(f"missing {code!r}, stated", "same", Spelling(missing=code), missing=["", code])
    for code in ("0", "0.0", "-9", "-99", "-999", "9999", "-1", "32767", "1e30", "999.9"):
        add(f"missing {code!r}", "told", Spelling(missing=code))
        add(f"missing {code!r}, stated", "same", Spelling(missing=code), missing=["", code])
    return cases


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
    for code in ("", "NA", ".", "?", "UNK", "unknown", "n/a", "NaN", "null", "-9", "-999", "#N/A", "*", "N.A.", "\\N",
                 "not known", "unbekannt", "inconnu", "???", "(null)", "Na"):  # fmt: skip
        for name, of in (("words", lambda h: h), ("numbers", herds.get)):
            herd = lambda h, k, of=of, code=code: code if k % 9 == 0 else of(h)
            cases.append(Case(f"{code!r} among {name}", "told", spelling=Spelling(herd=herd)))
    return cases


def test_levels_of_records(tmp_path, right):
    assert_right(level_cases(), tmp_path, right)


# ------------------------------------------------------------------------------------------------ ids of two tables

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
        cases += [
            Case(f"{name}: a record", "refused", spelling=Spelling(one_animal, write)),
            Case(f"{name}: added", "told", spelling=Spelling(one_animal, write), data={"add_missing_animals": True}),
            Case(f"{name}: parents", "told", spelling=Spelling(write, write, other)),
            Case(f"{name}: a parent", "told", spelling=Spelling(write, write, one_parent)),
        ]
    for code in ("NA", ".", "?", "UNK", "0", "-9", "999", "x", "\\N", "none", "00", "99999"):
        animal = lambda i, code=code: code if i == 33 else plain_id(i)
        cases.append(Case(f"record of {code}", "told", spelling=Spelling(animal, plain_id)))
        if code != "NA":
            data = {"add_missing_animals": True}
            cases.append(Case(f"record of {code} added", "told", spelling=Spelling(animal, plain_id), data=data))
    return cases


def test_ids_of_two_tables(tmp_path, right):
    assert_right(id_cases(), tmp_path, right)


# ------------------------------------------------------------------------------------------------ frames and binary


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
        add(f"records {kind}", "same", ids, parents, NUMBERED)
        add(f"pedigree {kind}", "same", numbered, cast(parents), NUMBERED)
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
    add(
        "ids that lost digits",
        "refused",
        numbered.with_columns((pl.col("animal") + long).cast(pl.Float64)),
        parents + long,
    )
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


# ------------------------------------------------------------------------------------------------ pedigrees


def pedigree_inputs():
    """(name, expected, text, ids, options of read_pedigree)."""
    inputs = []

    def add(name, expected, text, ids=PLAIN.ids, **options):
        inputs.append((name, expected, text, ids, options))

    def text_of(rows=PARENT_ROWS, header=PEDIGREE_COLUMNS, separator=",", end="\n"):
        return delimited(rows, header, separator, end)

    for mark in (",", ";", "\t", "|", "  "):
        for end in ("\n", "\r\n", "\r"):
            add(f"separator {mark!r} end {end!r}", "same", text_of(separator=mark, end=end))
        add(f"separator {mark!r} no names", "same", text_of(header=None, separator=mark))
    for form in (
        "{}", "{:04d}", "27600000000000{:04d}", "2760000000000000{:04d}", "DK {:05d} 12", "DE-{:03d}-A", "{}/2020",
        "A.{}.B", "k_{}", "Kü{}", "#{}", "*{}", "({})", "{}E5", "{}%", "2020-01-{:02d}", "{}.0", "O'{}", "🐄{}",
    ):  # fmt: skip
        spelling = Spelling(lambda i, form=form: form.format(i + 1))
        ids = [i.removesuffix(".0") if form == "{}.0" else i for i in spelling.ids]
        add(f"ids {form}", "same", text_of(spelling.pedigree()), spelling.ids if form == "{}.0" else ids)
    pairs = Spelling(lambda i: f"{'aA'[i % 2]}{i // 2}")
    add("ids told apart by case", "same", text_of(pairs.pedigree()), pairs.ids)
    for code in ("0", "", "NA", "00", "0.0", "0,0", "\u00a00", "na", "-0"):
        add(f"unknown {code!r}", "same", text_of(Spelling(unknown=code).pedigree(), separator=";"))
    for code in (".", "-", "?", "*", "-9", "-999", "UNK", "Unknown", "N/A", "NaN", "NULL", "None", "\\N", "--",
                 "\u2013", "x", "999", "(null)", "unbekannt", "founder", "nd", "K0"):  # fmt: skip
        add(f"unknown {code!r}", "told", text_of(Spelling(unknown=code).pedigree(), separator=";"))
        add(
            f"unknown {code!r}, stated",
            "same",
            text_of(Spelling(unknown=code).pedigree(), separator=";"),
            unknown=(code,),
        )
    for order in permutations(range(3)):
        header = [PEDIGREE_COLUMNS[j] for j in order]
        rows = [[r[j] for j in order] for r in PARENT_ROWS]
        add(f"order {order}", "same", text_of(rows, header))
        if order[0] != 0:
            add(f"order {order}, no names", "told", text_of(rows, None))
    for header in (("ID", "Sire", "Dam"), ("calf", "father", "mother"), ("Animal_No", "Sire-ID", "Dam ID")):
        add(f"names {header}", "same", text_of(header=header))
    add("names of another language", "refused", text_of(header=("Tier", "Vater", "Mutter")))
    stated = {"id": "Tier", "sire": "Vater", "dam": "Mutter"}
    add("these stated", "same", text_of(header=tuple(stated.values())), columns=stated)
    add("two byte order marks", "same", "\ufeff\ufeff" + text_of())
    add("row numbers", "same", text_of([[str(k), *r] for k, r in enumerate(PARENT_ROWS)], ["", *PEDIGREE_COLUMNS]))
    add("reversed", "same", text_of(PARENT_ROWS[::-1]))
    add("comment", "refused", "# of 2020\n" + text_of())
    add("comment in three cells", "refused", "# herds, animals, 2020\n" + text_of())
    add("names again", "refused", text_of() + "id,sire,dam\n")
    add("names again in capitals", "refused", text_of() + "ID,SIRE,DAM\n")
    add("names of another table again", "refused", text_of() + "Animal,Father,Mother\n")
    numbered = Spelling(lambda i: f"N{i + 1}")
    add("the last animal is N and a number", "same", text_of(numbered.pedigree()), numbered.ids)
    for last in ("Total,40,", "n=40,,", "(40 rows affected),,", "TOTAL:,,"):
        add(f"last line {last}", "told", text_of() + last + "\n")
    for name, again, expected in (
        ("", "K120", "refused"), ("case", "k120", "told"), ("blank", "K 120", "told"),
        ("zero width", "K1\u200b20", "told"), ("padded", "  K120", "refused"),
    ):  # fmt: skip
        add(f"an animal twice {name}", expected, text_of() + f"{again},0,0\n")
    add("its own sire", "refused", text_of() + "K999,K999,0\n")
    return inputs


def test_pedigrees(tmp_path):
    inputs, wrong = pedigree_inputs(), []
    assert len(inputs) >= MIN_INPUTS and len({name for name, *_ in inputs}) == len(inputs)
    for name, expected, text, ids, options in inputs:
        path = tmp_path / "pedigree.csv"
        path.write_text(text, encoding="utf-8", newline="")
        try:
            p = read_pedigree(path, **options)
        except (PedigreeError, TableError) as error:
            outcome, said = "refused", str(error)
        else:
            names = [*p.ids.to_list(), None]
            got = {i: (names[s], names[d]) for i, s, d in zip(p.ids, p.sire, p.dam, strict=True)}
            parents = {ids[i]: tuple(None if k is None else ids[k] for k in pair) for i, pair in enumerate(PARENTS)}
            outcome, said = ("told", p.warnings[0]) if p.warnings else ("same" if got == parents else "different", got)
        if outcome not in expected.replace("told", "told|refused").split("|"):
            wrong.append(f"{name}: {outcome}, expected {expected}: {str(said)[:300]}")
    assert not wrong, "\n".join(wrong)


# ------------------------------------------------------------------------------------------------ triplets


def triplets(K, names, decimals=9):
    return [(names[i], names[j], f"{K[i, j]:.{decimals}f}") for i in range(len(names)) for j in range(i + 1)]


def triplet_inputs(rows, header):
    """(name, expected, text, change of the ids): of a relationship file or a table of gamma."""

    def change(function):
        return [tuple(function(i, row)) for i, row in enumerate(rows)]

    inputs = []
    for mark in (",", ";", "\t", "|", " ", "    "):
        for end in ("\n", "\r\n", "\r"):
            inputs.append((f"separator {mark!r} end {end!r}", "same", delimited(rows, header, mark, end)))
        inputs.append((f"other names, separator {mark!r}", "same", delimited(rows, ("x", "y", "K"), mark)))
        inputs.append(
            (f"quoted, separator {mark!r}", "same", delimited([[f'"{c}"' for c in r] for r in rows], header, mark))
        )
    for name, expected, changed in (
        ("other triangle", "same", change(lambda i, r: (r[1], r[0], r[2]))),
        ("both triangles", "same", [*rows, *((b, a, v) for a, b, v in rows if a != b)]),
        ("reversed", "same", rows[::-1]),
        ("a pair twice", "same", [*rows, rows[3]]),
        ("exponents", "same", change(lambda i, r: (*r[:2], f"{float(r[2]):.12e}"))),
        ("outer blanks", "same", change(lambda i, r: (f"  {r[0]} ", r[1], r[2]))),
        ("no-break space", "same", change(lambda i, r: (r[0] + "\u00a0", r[1], r[2]))),
        ("a pair twice, unlike", "refused", [*rows, (*rows[3][:2], "9")]),
        ("without a diagonal", "refused", rows[:-1]),
        ("a number missing", "refused", change(lambda i, r: (*r[:2], "NA" if i == 4 else r[2]))),
        ("an empty number", "refused", change(lambda i, r: (*r[:2], "" if i == 4 else r[2]))),
        ("a word for a number", "refused", change(lambda i, r: (*r[:2], "x" if i == 4 else r[2]))),
        ("an infinite number", "refused", change(lambda i, r: (*r[:2], "inf" if i == 4 else r[2]))),
        ("per cent", "refused", change(lambda i, r: (*r[:2], r[2] + "%"))),
        ("row numbers", "refused", change(lambda i, r: (str(i), *r))),
        ("one id in small letters", "refused", change(lambda i, r: (r[0].lower() if i == 1 else r[0], *r[1:]))),
        ("one id with a dash", "refused", change(lambda i, r: (r[0] + "-" if i == 1 else r[0], *r[1:]))),
        ("names again", "refused", [*rows, ("a", "b", "value")]),
        ("dashes for minus", "refused", change(lambda i, r: (*r[:2], "\u2212" + r[2].removeprefix("-")))),
    ):
        inputs.append((name, expected, delimited(changed, header if name != "row numbers" else ("n", *header))))
    inputs.append(("byte order mark", "same", "\ufeff" + delimited(rows, header)))
    inputs.append(("blank lines", "same", delimited(rows, header).replace("\n", "\n\n")))
    inputs.append(("comment", "refused", "# of 2020\n" + delimited(rows, header)))
    inputs.append(("UTF-16", "refused", delimited(rows, header).encode("utf-16")))
    return inputs


def assert_matrices(inputs, folder, read, right):
    assert len(inputs) >= MIN_INPUTS
    wrong = []
    for name, expected, text in inputs:
        path = folder / "matrix.txt"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        try:
            got = read(path)
            outcome, said = "same" if got is not None and np.allclose(got, right, rtol=1e-7) else "different", got
        except MmgibbsError as error:
            outcome, said = "refused" if "matrix.txt" in str(error) else "crashed", error
        if outcome != expected:
            wrong.append(f"{name}: {outcome}, expected {expected}: {str(said)[:300]}")
    assert not wrong, "\n".join(wrong)


def relationship_matrix(path, names):
    inverse, ids, _ = read_relationship(path, "line")
    if sorted(ids) != sorted(names):
        return None
    K = np.zeros((len(ids), len(ids)))
    for i in range(len(ids)):
        K[i, inverse.indices[inverse.indptr[i] : inverse.indptr[i + 1]]] = inverse.values[
            inverse.indptr[i] : inverse.indptr[i + 1]
        ]
    order = [ids.to_list().index(name) for name in names]
    return K[np.ix_(order, order)]


def test_relationship_files(tmp_path):
    A = np.random.default_rng(3).normal(size=(6, 9))
    K = np.linalg.inv(A @ A.T / 9 + np.eye(6)).round(9)
    names = [f"L{i}" for i in range(6)]
    rows = triplets(K, names)
    inputs = triplet_inputs(rows, ("id1", "id2", "value"))
    inputs += [(f"no names, separator {m!r}", "same", delimited(rows, None, m)) for m in (",", ";", "\t", " ")]
    first = [(rows[1][0], rows[1][1], "x"), *rows[:1], *rows[2:]]
    inputs.append(("the first of no names is wrong", "refused", delimited(first)))
    assert_matrices(inputs, tmp_path, lambda path: relationship_matrix(path, names), K)
    numbers = [str(i + 1) for i in range(6)]
    frame = pl.DataFrame(triplets(K, numbers), schema=["a", "b", "v"], orient="row").cast({"v": pl.Float64})
    for kind in (pl.String, pl.Int32, pl.Float64, pl.Categorical):
        path = tmp_path / "k.parquet"
        frame.cast({"a": kind, "b": kind}).write_parquet(path)
        np.testing.assert_allclose(relationship_matrix(path, numbers), K)


def test_tables_of_metafounders(tmp_path):
    gamma = np.array([[0.5, 0.2, 0.1], [0.2, 0.6, 0.15], [0.1, 0.15, 0.7]])
    names = ("A", "B", "C")
    rows = triplets(gamma, names, 2)
    inputs = triplet_inputs(rows, ("first", "second", "gamma"))
    inputs += [(f"no names, separator {m!r}", "same", delimited(rows, None, m)) for m in (",", ";", "\t", " ")]
    inputs.append(("another group", "same", delimited([*rows, ("D", "D", "0.5")], ("a", "b", "c"))))
    inputs.append(("a square matrix", "refused", ",A,B,C\nA,.5,.2,.1\nB,.2,.6,.15\nC,.1,.15,.7\n"))
    assert_matrices(inputs, tmp_path, lambda path: read_gamma(path, names), gamma)


# ------------------------------------------------------------------------------------------------ tables to compare


def comparison_inputs(values):
    """(name, expected, text of b): 'same', 'told' of ids that are spelled otherwise, 'refused'."""
    numbers = [f"{v:.6f}" for v in values]

    def table(ids=PLAIN.ids, cells=numbers, header=("id", "ebv"), separator=",", end="\n"):
        return delimited(list(zip(ids, cells, strict=True)), header, separator, end)

    inputs = []
    for mark in (",", ";", "\t", "|", "  "):
        for end in ("\n", "\r\n", "\r"):
            inputs.append((f"separator {mark!r} end {end!r}", "same", table(separator=mark, end=end)))
        quoted_cells = [f'"{v}"' for v in numbers]
        inputs.append((f"quoted, separator {mark!r}", "same", table(cells=quoted_cells, separator=mark)))
        inputs.append((f"no names, separator {mark!r}", "refused", table(header=None, separator=mark)))
    for header in (("Animal", "EBV"), ("eartag", "blup"), ("level", "solution"), ("IID", "gebv")):
        inputs.append((f"names {header}", "same", table(header=header)))
    for name, write in {
        "small letters": str.lower, "blank": lambda i: "K " + i[1:], "zero width": lambda i: i + "\u200b",
        "quoted": lambda i: f"'{i}'", "no-break space": lambda i: "K\u00a0" + i[1:],
    }.items():  # fmt: skip
        for which, chosen in (("all", range(40)), ("some", range(0, 40, 3)), ("one", (5,))):
            ids = [write(i) if k in chosen else i for k, i in enumerate(PLAIN.ids)]
            inputs.append((f"{which} ids {name}", "told", table(ids)))
    for name, expected, cells in (
        ("decimal commas", "same", [comma(v) for v in numbers]),
        ("minus signs", "same", [v.replace("-", "\u2212") for v in numbers]),
        ("exponents", "same", [f"{float(v):.9e}" for v in numbers]),
        ("plus", "same", [v if v.startswith("-") else "+" + v for v in numbers]),
        ("a word", "refused", ["x" if k == 4 else v for k, v in enumerate(numbers)]),
        ("an infinite value", "refused", ["inf" if k == 4 else v for k, v in enumerate(numbers)]),
        ("a unit", "refused", ["1.5 kg" if k == 4 else v for k, v in enumerate(numbers)]),
    ):
        inputs.append((name, expected, table(cells=cells, separator=";")))
        two = [f"{v};{k % 7}" for k, v in enumerate(cells)]
        if expected == "refused":
            inputs.append(
                (f"{name} beside counts", expected, table(cells=two, header=("id", "ebv", "n"), separator=";"))
            )
    for code in (".", "NA", "", "-", "NaN", "null"):
        inputs.append((f"without a value {code!r}", "same", table([*PLAIN.ids, "K999"], [*numbers, code])))
    inputs.append(("an id twice", "refused", table([*PLAIN.ids, "K100"], [*numbers, "1"])))
    inputs.append(("sorted", "same", table(PLAIN.ids[::-1], numbers[::-1])))
    inputs.append(("UTF-16", "refused", table().encode("utf-16")))
    inputs.append(("comment", "refused", "# of 2020\n" + table()))
    return inputs


def test_tables_to_compare(tmp_path):
    rng = np.random.default_rng(5)
    a = rng.normal(size=40).round(6)
    b = (0.9 * a + 0.1 * rng.normal(size=40)).round(6)
    correlation = np.corrcoef(a, b)[0, 1]
    path, other = tmp_path / "a.csv", tmp_path / "b.csv"
    path.write_text(delimited(list(zip(PLAIN.ids, [f"{v:.6f}" for v in a], strict=True)), ("id", "ebv")))
    inputs, wrong = comparison_inputs(b), []
    assert len(inputs) >= MIN_INPUTS and len({name for name, *_ in inputs}) == len(inputs)
    for name, expected, text in inputs:
        other.write_bytes(text if isinstance(text, bytes) else text.encode())
        try:
            said = compare(path, other).text
            same = "40 levels in both" in said and f"correlation {correlation:.4f}," in said
            outcome = "told" if "in another spelling" in said else "same" if same else "different"
        except MmgibbsError as error:
            outcome, said = "refused", str(error)
        if outcome != expected:
            wrong.append(f"{name}: {outcome}, expected {expected}: {said[:300]}")
    assert not wrong, "\n".join(wrong)


def test_the_plain_tables_have_what_the_lists_need():
    assert len(PARENTS) == len(set(PLAIN.ids)) == 40 and len(RECORDS) == 60
    assert sum(r.fat is None for r in RECORDS) >= 5
