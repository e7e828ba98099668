"""Pedigrees, relationship matrices, tables of metafounders and tables to compare, each written in many ways: the right
answer, or the user is told; never silence.

'same': the parents (the matrix, the correlation) of the plain table without a warning; 'refused': an error that names
the file; 'told': refused, or a warning.
"""

from itertools import permutations

import numpy as np
import polars as pl
from helpers.spelled_tables import PARENTS, PEDIGREE_COLUMNS, PLAIN, Spelling, comma, delimited

from mmgibbs.data.relationship_files import read_gamma, read_relationship
from mmgibbs.errors import MmgibbsError
from mmgibbs.pedigree.errors import PedigreeError, TableError
from mmgibbs.pedigree.read import read_pedigree
from mmgibbs.report.comparison.make import compare

PARENT_ROWS = PLAIN.pedigree()
STYLES = [(",", "\n"), (";", "\r\n"), ("\t", "\r"), ("|", "\n"), ("  ", "\r\n"), (" ", "\r")]


def pedigree_inputs():
    """(name, expected, text, ids, options of read_pedigree)."""
    inputs = []

    def add(name, expected, text, ids=PLAIN.ids, **options):
        inputs.append((name, expected, text, ids, options))

    def text_of(rows=PARENT_ROWS, header=PEDIGREE_COLUMNS, separator=",", end="\n"):
        return delimited(rows, header, separator, end)

    for mark, end in STYLES[:-1]:
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
        text = text_of(Spelling(unknown=code).pedigree(), separator=";")
        add(f"unknown {code!r}", "told", text)
        add(f"unknown {code!r}, stated", "same", text, unknown=(code,))
    for order in permutations(range(3)):
        header = [PEDIGREE_COLUMNS[j] for j in order]
        rows = [[r[j] for j in order] for r in PARENT_ROWS]
        add(f"order {order}", "same", text_of(rows, header))
        if order[0] != 0:
            add(f"order {order}, no names", "told", text_of(rows, None))
    for header in (("ID", "Sire", "Dam"), ("calf", "father", "mother"), ("Animal_No", "Sire-ID", "Dam ID")):
        add(f"names {header}", "same", text_of(header=header))
    add("names of another language", "same", text_of(header=("Tier", "Vater", "Mutter")))
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


def triplets(K, names, decimals=9):
    return [(names[i], names[j], f"{K[i, j]:.{decimals}f}") for i in range(len(names)) for j in range(i + 1)]


def triplet_inputs(rows, header):
    """(name, expected, text, change of the ids): of a relationship file or a table of gamma."""

    def change(function):
        return [tuple(function(i, row)) for i, row in enumerate(rows)]

    inputs = []
    quoted = [[f'"{c}"' for c in r] for r in rows]
    for mark, end in STYLES:
        inputs.append((f"separator {mark!r} end {end!r}", "same", delimited(rows, header, mark, end)))
        inputs.append((f"quoted, separator {mark!r}", "same", delimited(quoted, ("x", "y", "K"), mark)))
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
        of_row = slice(*inverse.indptr[i : i + 2])
        K[i, inverse.indices[of_row]] = inverse.values[of_row]
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


def comparison_inputs(values):
    """(name, expected, text of b): 'same', 'told' of ids that are spelled otherwise, 'refused'."""
    numbers = [f"{v:.6f}" for v in values]

    def table(ids=PLAIN.ids, cells=numbers, header=("id", "ebv"), separator=",", end="\n"):
        return delimited(list(zip(ids, cells, strict=True)), header, separator, end)

    inputs = []
    quoted_cells = [f'"{v}"' for v in numbers]
    for mark, end in STYLES[:-1]:
        inputs.append((f"separator {mark!r} end {end!r}", "same", table(separator=mark, end=end)))
        inputs.append((f"quoted, separator {mark!r}", "same", table(cells=quoted_cells, separator=mark)))
        inputs.append((f"no names, separator {mark!r}", "refused", table(header=None, separator=mark)))
    for header in (("Animal", "EBV"), ("eartag", "blup"), ("level", "solution"), ("IID", "gebv")):
        inputs.append((f"names {header}", "same", table(header=header)))
    for name, write in {
        "small letters": str.lower, "blank": lambda i: "K " + i[1:], "zero width": lambda i: i + "\u200b",
        "quoted": lambda i: f"'{i}'", "no-break space": lambda i: "K\u00a0" + i[1:],
    }.items():  # fmt: skip
        for which, chosen in (("all", range(40)), ("one", (5,))):
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
