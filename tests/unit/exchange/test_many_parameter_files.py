"""Parameter files, data and pedigrees of renumf90 as users have them: the solutions of the plain files, or a message.

'same': the solutions and no more lines of what was not carried over than of the plain files; 'told': a line more, or a
warning of the run; 'refused': one line, and nothing is written.
"""

import re

import polars as pl
import pytest
from helpers.renumf90_cases import ANIMAL, head, pedigree, records

from mmgibbs.config import load_config
from mmgibbs.errors import MmgibbsError
from mmgibbs.exchange.import_blupf90 import import_blupf90
from mmgibbs.pedigree.errors import PedigreeError
from mmgibbs.validation.evaluation import evaluate

MIN_INPUTS = 40
PLAIN = head("6") + "EFFECT\n2 cross alpha\nEFFECT\n4 cov\n" + ANIMAL + "(CO)VARIANCES\n1.5\n"
TWO = (
    head("5 6", "", "", "2.0 0.3\n0.3 1.5")
    + "EFFECT\n2 2 cross alpha\n"
    + ANIMAL.replace("1 cross", "1 1 cross")
    + "(CO)VARIANCES\n1.0 0.2\n0.2 0.8\nEFFECT\n10 10 cross alpha\nRANDOM\ndiagonal\n(CO)VARIANCES\n0.5 0.1\n0.1 0.4\n"
)
ID, HERD, AGE, Y2 = 0, 1, 3, 5  # columns of the data


def data_rows():
    """The records as text; a missing y2 is 0, no herd, litter or age is."""
    frame = records().with_columns(y2=pl.col("y2").fill_null(0), litter=pl.concat_str(pl.lit("L"), "litter"))
    return [["0" if c == 0.0 and j == Y2 else str(c) for j, c in enumerate(row)] for row in frame.rows()]


def pedigree_rows():
    return [[str(c) for c in row] for row in pedigree().rows()]


def joined(rows, separator=" ", end="\n"):
    return "".join(separator.join(row) + end for row in rows)


def changed(rows, column, write, chosen=lambda k: True):
    return [[write(c) if j == column and chosen(k) else c for j, c in enumerate(row)] for k, row in enumerate(rows)]


DATA, PARENTS = joined(data_rows()), joined(pedigree_rows())


class Importer:
    """Imports files and solves what comes of them; the solutions of the plain ones are what others must have."""

    def __init__(self, folder):
        self.folder = folder
        self.plain = {text: self.solutions(text, DATA, PARENTS) for text in (PLAIN, TWO)}

    def solutions(self, parameters, data, animals):
        """(solutions by term, trait and level; lines that are told, without their numbers)."""
        for name, text in (("renum.par", parameters), ("data.txt", data), ("ped.txt", animals)):
            (self.folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        path, said = import_blupf90(self.folder / "renum.par", overwrite=True)
        solved = evaluate(load_config(path))
        found = {
            (term.name, c, level): value
            for term, labels, theta in zip(solved.design.terms, solved.prepared.levels, solved.theta, strict=True)
            for level, row in zip(labels.ids.to_list(), theta, strict=True)
            for c, value in enumerate(row)
        }
        return found, [re.sub(r" line \d+", "", s) for s in said] + [f"run: {w}" for w in solved.prepared.warnings]

    def outcome(self, base, parameters, data, animals, respell=None):
        """('same', 'told', 'refused' or 'different', what was said); respell: a level of the plain files -> here."""
        (self.folder / "renum.yaml").unlink(missing_ok=True)
        try:
            found, said = self.solutions(parameters, data, animals)
        except (MmgibbsError, PedigreeError) as error:
            return "refused", str(error)
        expected, usual = self.plain[base]
        more = [s for s in said if s not in usual]
        if more:
            return "told", "\n".join(more)
        respell = respell or (lambda level: level)
        expected = {(t, c, respell(level)): v for (t, c, level), v in expected.items()}
        if found.keys() != expected.keys():
            return "different", f"{sorted(set(found) ^ set(expected), key=str)[:6]}"
        worst = max(abs(found[k] - expected[k]) for k in expected)
        return ("same", "") if worst < 1e-6 else ("different", f"solutions differ by up to {worst}")


@pytest.fixture(scope="module")
def importer(tmp_path_factory):
    return Importer(tmp_path_factory.mktemp("renumf90"))


def assert_right(inputs, importer):
    assert len(inputs) >= MIN_INPUTS and len({name for name, *_ in inputs}) == len(inputs)
    wrong = []
    for name, expected, base, parameters, data, animals, *respell in inputs:
        outcome, said = importer.outcome(base, parameters, data, animals, *respell)
        if outcome not in expected.split("|"):
            wrong.append(f"{name}: {outcome}, expected {expected}: {said[:400]}")
    assert not wrong, "\n".join(wrong)


G, ANOTHER_G = "(CO)VARIANCES\n1.0 0.2\n0.2 0.8", "(CO)VARIANCES\n{}"
KEYWORDS = ("DATAFILE", "TRAITS", "WEIGHT(S)", "RESIDUAL_VARIANCE", "EFFECT", "FILE_POS", "(CO)VARIANCES")


def keyword(right, wrong):
    return re.sub(rf"(?m)^{re.escape(right)}$", wrong, PLAIN)


def replaced(old, new, text=PLAIN):
    assert old in text, old
    return text.replace(old, new)


def parameter_inputs():
    """(name, expected, base, parameters, data, pedigree) of ways to write lines, words, numbers and matrices."""
    weighted = replaced("WEIGHT(S)\n", "WEIGHT(S)\n12")
    rows = data_rows()
    weights = {w: joined([[*r, w if k == 7 else "1"] for k, r in enumerate(rows)]) for w in ("1.00", "0", "-1", "x")}
    inputs = {
        "same": {
            "plain": PLAIN,
            "CRLF": PLAIN.replace("\n", "\r\n"),
            "CR": PLAIN.replace("\n", "\r"),
            "byte order marks": "\ufeff\ufeff" + PLAIN,
            "end of text of DOS": PLAIN + "\x1a",
            "no last line end": PLAIN[:-1],
            "blank lines": PLAIN.replace("\n", "\n\n"),
            "blanks around": re.sub("(?m)$", "   ", re.sub("(?m)^(?=.)", "  ", PLAIN)),
            "tabs between values": PLAIN.replace(" cross", "\tcross").replace("1 2 3", "1\t2\t3"),
            "no-break spaces": PLAIN.replace(" cross", "\u00a0cross"),
            "comments behind": re.sub(r"(?m)^(.+)$", r"\1 # a comment", PLAIN),
            "comments between": re.sub(r"(?m)^(?=[A-Z(])", "# EFFECT 3 cross alpha\n", PLAIN),
            "values on the line of the keyword": re.sub(r"(?m)^(TRAITS|EFFECT|RANDOM|FILE|FILE_POS)\n", r"\1 ", PLAIN),
            "quoted file": replaced("data.txt", '"data.txt"'),
            "./ before the file": replaced("data.txt", "./data.txt").replace("ped.txt", "./ped.txt"),
            "EFFECT in column 02": replaced("2 cross alpha", "02 cross alpha"),
            "FILE_POS 1 3 2": replaced("1 2 3 0 0", "1 3 2"),  # sires and dams have the same relationships
            "FILE_POS with births": replaced("1 2 3 0 0", "1 2 3 0 4"),
            "FILE_POS not stated": replaced("FILE_POS\n1 2 3 0 0\n", ""),
            "no FIELDS_PASSED": replaced("FIELDS_PASSED TO OUTPUT\n\n", ""),
            "options above": "OPTION sol se\n" + PLAIN,
            "OPTION with a comment": PLAIN + "OPTION sol se # errors\n",
            "other options": PLAIN + "OPTION missing 0.0\nOPTION use_yams\nOPTION method BLUP\nOPTION alpha_size 30\n",
        },
        "told": {
            "no (CO)VARIANCES": replaced("(CO)VARIANCES\n1.5\n", ""),
            "no INBREEDING": replaced("INBREEDING\npedigree\n", ""),
            "no PED_DEPTH": replaced("PED_DEPTH\n0\n", ""),
            **{
                f"OPTION {option}": PLAIN + f"OPTION {option}\n"
                for option in ("conv_crit 1d-12", "EM-REML 10", "prior 5 2 -1", "unknown_option 3", "SNP_file snp.txt")
            },
        },
        "refused|told": {
            "a covariate of text": replaced("4 cov", "2 cov"),
            "FILE_POS of two parents alone": replaced("1 2 3 0 0", "2 3 1 0 0"),
        },
        "refused": {
            "UTF-16": PLAIN.encode("utf-16"),
            "comments by exclamation marks": re.sub("(?m)^EFFECT$", "! an effect\nEFFECT", PLAIN),
            "colons behind keywords": re.sub(r"(?m)^(TRAITS|EFFECT|RANDOM)$", r"\1:", PLAIN),
            "file in capitals": replaced("data.txt", "DATA.TXT"),
            **{f"{word} in title case": keyword(word, word.title()) for word in KEYWORDS},
            "DATA FILE": keyword("DATAFILE", "DATA FILE"),
            "(CO) VARIANCES": keyword("(CO)VARIANCES", "(CO) VARIANCES"),
            "CROSS ALPHA": replaced("cross alpha", "CROSS ALPHA"),
            **{f"EFFECT in column {at}": replaced("2 cross", f"{at} cross") for at in ("0", "12", "-2", "2.0", "two")},
            **{f"FILE_POS {at}": replaced("1 2 3 0 0", at) for at in ("1 2", "1 2 3 0 0 0 0 0", "1 1 3", "1 2 9")},
            "option in small letters": PLAIN + "option sol se\n",
            "an empty file": "",
        },
    }  # fmt: skip
    matrices = {
        "same": ["1.0 0.2 0.2 0.8", "1.0 0.2 # first\n# second\n0.2 0.8", "1.0d0 2.0D-1\n0.2d+00 .8"],
        "refused": [
            "1.0\n0.2 0.8", "1 0 0\n0 1 0\n0 0 1", "1,0 0,2\n0,2 0,8", "1.0 0.2\n0.3 0.8", "1 2\n2 1", "-1 0\n0 1",
            "var cov\ncov var", "inf 0\n0 1", "nan 0\n0 1", "", "0 0\n0 0", "[1.0 0.2]\n[0.2 0.8]",
        ],
    }  # fmt: skip
    out = [(name, how, PLAIN, text, DATA, PARENTS) for how, texts in inputs.items() for name, text in texts.items()]
    out += [
        (f"matrix {text!r}", how, TWO, replaced(G, ANOTHER_G.format(text), TWO), DATA, PARENTS)
        for how, texts in matrices.items()
        for text in texts
    ]
    of_weight = lambda w: "same" if w == "1.00" else "refused|told"
    out += [(f"a weight of {w}", of_weight(w), PLAIN, weighted, weights[w], PARENTS) for w in weights]
    out.append(("RANDOM diag", "same", TWO, replaced("diagonal", "diag", TWO), DATA, PARENTS))
    return out


@pytest.mark.slow
def test_parameter_files(importer):
    assert_right(parameter_inputs(), importer)


def table_inputs():
    """The same of data and pedigrees, with the levels that are spelt otherwise."""
    inputs = []

    def add(name, expected, data=DATA, animals=PARENTS, parameters=PLAIN, respell=None):
        inputs.append((name, expected, PLAIN, parameters, data, animals, respell))

    rows, kin = data_rows(), pedigree_rows()
    with_births = PLAIN.replace("1 2 3 0 0", "1 2 3 0 4")
    for name, separator, end in (("tabs", "\t", "\n"), ("blanks and tabs, CRLF", " \t ", "\r\n"), ("CR", " ", "\r")):
        add(name, "same", joined(rows, separator, end), joined(kin, separator, end))
    blanks = re.sub("(?m)^(?=.)", "   ", DATA).replace("\n", "  \n")
    add("blanks around", "same", blanks, re.sub("(?m)^(?=.)", " ", PARENTS))
    add("blank lines", "same", DATA.replace("\n", "\n\n"), PARENTS + "\n  \n")
    add("no last line end", "same", DATA[:-1], PARENTS[:-1])
    add("byte order marks, end of text of DOS", "same", "\ufeff" + DATA + "\x1a", "\ufeff" + PARENTS + "\x1a")
    add("fixed columns", "same", "".join("".join(c.rjust(9) for c in r) + "\n" for r in rows))
    add("data with commas", "refused", joined(rows, ","))
    add("pedigree with semicolons", "refused", DATA, joined(kin, ";"))
    add("a field too few", "refused", joined([r[:-1] if k == 6 else r for k, r in enumerate(rows)]))
    add("no pedigree", "refused", DATA, "")
    skips = PLAIN.replace("data.txt\n", "data.txt\nSKIP_HEADER\n1\n")  # a blank line is one, and no record
    add("a blank line above the data, skipped", "same", "\n" + DATA, parameters=skips)
    add("UTF-16", "refused", DATA.encode("utf-16"))
    add("reversed", "same", joined(rows[::-1]), joined(kin[::-1]))
    # numbers
    add("exponents", "same", joined(changed(rows, Y2, lambda c: f"{float(c):.8e}")))
    for code in ("0.000", "0e0", "00", "-0"):
        add(f"missing as {code}", "same", joined(changed(rows, Y2, lambda c, code=code: code if c == "0" else c)))
    for code in ("-999", "-999.9"):
        data = joined(changed(rows, Y2, lambda c, code=code: code if c == "0" else c))
        add(f"missing {code}, not stated", "told", data)
        add(f"missing {code}", "same", data, parameters=PLAIN + f"OPTION missing {code}\n")
    for column, code in ((AGE, "-999"), (HERD, "0"), (HERD, "NA")):
        spoilt = changed(rows, column, lambda c, code=code: code, lambda k: k % 9 == 0)
        add(f"{code} in {column}", "told", joined(spoilt))
    add("herds in two spellings", "told", joined(changed(rows, HERD, str.lower, lambda k: k % 5 == 0)))
    as_number = changed(rows, HERD, lambda c: c[1:] + "1")
    add("herds as 1 and 1.0", "told", joined(changed(as_number, HERD, lambda c: c + ".0", lambda k: k % 4 == 0)))
    respell = lambda of: of[1:] + "1" if re.fullmatch(r"H\d", of) else of
    add("herds as numbers", "same", joined(as_number), respell=respell)
    # animals
    number = {row[0]: str(100 + k) for k, row in enumerate(kin)} | {"0": "0"}
    as_numbers = joined([[number[c] if j < 3 else c for j, c in enumerate(r)] for r in kin])
    numbered = changed(rows, ID, number.get)
    to_number = lambda level: number.get(level, level)
    add("animals as numbers", "same", joined(numbered), as_numbers, respell=to_number)
    add("points behind animals", "same", joined(changed(numbered, ID, "{}.0".format)), as_numbers, respell=to_number)
    add("animals in capitals in the data", "refused|told", joined(changed(rows, ID, str.upper)))
    for code, how in (("0.0", "same"), (".", "told|refused"), ("-1", "told|refused"), ("UNK", "told|refused")):
        spoilt = [[code if c == "0" and j else c for j, c in enumerate(r)] for r in kin]
        add(f"unknown parents {code}", how, DATA, joined(spoilt))
    wrong = {"twice": "c03 s1 d2 2018", "its own sire": "c90 c90 0 2018", "a loop": "c90 c91 0 1\nc91 c90 0 1"}
    for name, row in wrong.items():
        add(name, "refused", DATA, PARENTS + row + "\n")
    add("without founders", "same", DATA, joined([r for r in kin if r[1:3] != ["0", "0"]]))
    add("an animal without a row", "told", DATA, joined([r for r in kin if r[0] != "c28"]))
    young = joined([[*r[:3], "1990" if r[0] == "c10" else r[3]] for r in kin])
    add("progeny older than parents", "told|refused", DATA, young, with_births)
    unborn = joined([[*r[:3], "0" if r[0] in ("s1", "d4") else r[3]] for r in kin])
    add("births of 0", "same", DATA, unborn, with_births)
    other = joined([[r[3], r[2], r[0], r[1]] for r in kin])
    add("pedigree in other columns", "same", DATA, other, PLAIN.replace("1 2 3 0 0", "3 4 2 0 1"))
    return inputs


@pytest.mark.slow
def test_tables(importer):
    assert_right(table_inputs(), importer)
