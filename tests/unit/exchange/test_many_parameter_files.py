"""Parameter files, data and pedigrees of renumf90 as users have them: the solutions of the plain files, or a message.

'same': the solutions and no more lines of what was not carried over than of the plain files; 'told': a line more, or a
warning of the run; 'refused': one line, and nothing is written.
"""

import re

import numpy as np
import polars as pl
import pytest
from helpers.renumf90_cases import ANIMAL, head, pedigree, records
from reference import dense

from mmgibbs.build.assemble import assemble
from mmgibbs.config import load_config
from mmgibbs.data.prepare import prepare
from mmgibbs.errors import MmgibbsError
from mmgibbs.exchange.import_blupf90 import import_blupf90
from pedigree.errors import PedigreeError

MIN_INPUTS = 50
PLAIN = head("6") + "EFFECT\n2 cross alpha\nEFFECT\n4 cov\n" + ANIMAL + "(CO)VARIANCES\n1.5\n"
TWO = (
    head("5 6", "", "", "2.0 0.3\n0.3 1.5")
    + "EFFECT\n2 2 cross alpha\n"
    + ANIMAL.replace("1 cross", "1 1 cross")
    + "(CO)VARIANCES\n1.0 0.2\n0.2 0.8\nEFFECT\n10 10 cross alpha\nRANDOM\ndiagonal\n(CO)VARIANCES\n0.5 0.1\n0.1 0.4\n"
)
ID, HERD, SEX, AGE, Y1, Y2, YEAR, STAPLES, SIRE, LITTER, AGE2 = range(11)


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
        self.folder, self.solved = folder, {}
        self.plain = {text: self.solutions(text, DATA, PARENTS) for text in (PLAIN, TWO)}

    def solutions(self, parameters, data, animals):
        """(solutions by term, trait and level; lines that are told, without their numbers)."""
        for name, text in (("renum.par", parameters), ("data.txt", data), ("ped.txt", animals)):
            (self.folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        path, said = import_blupf90(self.folder / "renum.par", overwrite=True)
        prepared = prepare(load_config(path))
        warnings = [f"run: {w}" for w in prepared.warnings]
        return self.solve(load_config(path), prepared), [re.sub(r" line \d+", "", s) for s in said] + warnings

    def solve(self, analysis, prepared):
        design = prepared.design
        model = assemble(analysis, prepared).model
        G = [None if c is None else c.start for c in model.covariances]
        R = model.residual.matrices[0].start
        effects = [e for t in design.terms for e in t.effects]
        kin = [t.relationship.relatives for t in design.terms if hasattr(t.relationship, "relatives")]
        arrays = [
            design.y, design.weight, R, *(g for g in G if g is not None),
            *(e.level for e in effects), *(e.covariates for e in effects),
            *(a for k in kin for a in (k.sire, k.dam, k.dinv)),
        ]  # fmt: skip
        key = tuple(None if a is None else np.asarray(a).tobytes() for a in arrays)
        if key not in self.solved:
            equations = dense.build(design, G, R)
            self.solved[key] = equations.theta(equations.solution)
        return {
            (term.name, c, level): value
            for term, labels, theta in zip(design.terms, prepared.levels, self.solved[key], strict=True)
            for level, row in zip(labels.ids.to_list(), np.asarray(theta), strict=True)
            for c, value in enumerate(row)
        }

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
        if respell is not None:
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


# ------------------------------------------------------------------------------------------------ parameter files


def parameter_inputs():
    inputs = []

    def add(name, expected, parameters, base=PLAIN, data=DATA, animals=PARENTS):
        assert parameters != base or name == "plain", name
        inputs.append((name, expected, base, parameters, data, animals))

    def replaced(old, new, text=PLAIN, count=None):
        assert old in text, old
        return text.replace(old, new) if count is None else text.replace(old, new, count)

    add("plain", "same", PLAIN)
    add("two traits", "same", TWO + "\n", TWO)
    # how lines are written
    add("CRLF", "same", PLAIN.replace("\n", "\r\n"))
    add("CR", "same", PLAIN.replace("\n", "\r"))
    add("byte order mark", "same", "\ufeff" + PLAIN)
    add("two byte order marks", "same", "\ufeff\ufeff" + PLAIN)
    add("end of text of DOS", "same", PLAIN + "\x1a")
    add("UTF-16", "refused", PLAIN.encode("utf-16"))
    add("no last line end", "same", PLAIN[:-1])
    add("blank lines", "same", PLAIN.replace("\n", "\n\n"))
    add("blanks in front", "same", re.sub("(?m)^(?=.)", "  ", PLAIN))
    add("blanks behind", "same", re.sub("(?m)$", "   ", PLAIN))
    add("tabs between values", "same", PLAIN.replace(" cross", "\tcross").replace("1 2 3", "1\t2\t3"))
    add("no-break spaces", "same", PLAIN.replace(" cross", "\u00a0cross"))
    add("comments behind", "same", re.sub(r"(?m)^(.+)$", r"\1 # a comment", PLAIN))
    add("comments behind without a blank", "same", re.sub(r"(?m)^([A-Z].*)$", r"\1# a comment", PLAIN))
    add("comments between", "same", re.sub(r"(?m)^(?=[A-Z(])", "# EFFECT 3 cross alpha\n", PLAIN))
    add("comments by exclamation marks", "refused", re.sub("(?m)^EFFECT$", "! an effect\nEFFECT", PLAIN))
    add(
        "values on the line of the keyword",
        "same",
        re.sub(r"(?m)^(TRAITS|EFFECT|RANDOM|FILE|FILE_POS|DATAFILE)\n", r"\1 ", PLAIN),
    )
    add("colons behind keywords", "refused", re.sub(r"(?m)^(TRAITS|EFFECT|RANDOM)$", r"\1:", PLAIN))
    add("equals signs", "refused", replaced("DATAFILE\n", "DATAFILE = "))
    add("quoted file", "same", replaced("data.txt", '"data.txt"'))
    add("./ before the file", "same", replaced("data.txt", "./data.txt").replace("ped.txt", "./ped.txt"))
    add("a file called like a keyword", "refused", replaced("data.txt", "effect"))  # for there is none
    add("another folder", "refused", replaced("data.txt", "..\\data.txt"))
    add("file in capitals", "refused", replaced("data.txt", "DATA.TXT"))
    for keyword in (
        "DATAFILE",
        "TRAITS",
        "FIELDS_PASSED TO OUTPUT",
        "WEIGHT(S)",
        "RESIDUAL_VARIANCE",
        "EFFECT",
        "RANDOM",
        "FILE",
        "FILE_POS",
        "PED_DEPTH",
        "INBREEDING",
        "(CO)VARIANCES",
    ):
        add(f"{keyword} in small letters", "refused", re.sub(rf"(?m)^{re.escape(keyword)}$", keyword.lower(), PLAIN))
        add(f"{keyword} in title case", "refused", re.sub(rf"(?m)^{re.escape(keyword)}$", keyword.title(), PLAIN))
    add("everything in small letters", "refused", PLAIN.lower())
    for right, wrong in (
        ("DATAFILE", "DATA_FILE"),
        ("DATAFILE", "DATA FILE"),
        ("TRAITS", "TRAIT"),
        ("EFFECT", "EFFECTS"),
        ("RESIDUAL_VARIANCE", "RESIDUAL VARIANCE"),
        ("RESIDUAL_VARIANCE", "RESIDUAL_VARIANCES"),
        ("(CO)VARIANCES", "(CO)VARIANCE"),
        ("(CO)VARIANCES", "COVARIANCES"),
        ("(CO)VARIANCES", "(CO) VARIANCES"),
        ("RANDOM", "RANDOM_EFFECT"),
        ("FILE_POS", "FILEPOS"),
        ("PED_DEPTH", "PEDDEPTH"),
        ("WEIGHT(S)", "WEIGHTS"),
        ("WEIGHT(S)", "WEIGHT"),
        ("INBREEDING", "INBREEDING_METHOD"),
        ("FIELDS_PASSED TO OUTPUT", "FIELDS_PASSED"),
    ):
        expected = "same" if wrong == "FIELDS_PASSED" else "refused"
        add(f"{wrong} for {right}", expected, re.sub(rf"(?m)^{re.escape(right)}$", wrong, PLAIN))
    # words in another case
    for right, wrong in (
        ("cross alpha", "CROSS ALPHA"),
        ("cross alpha", "Cross Alpha"),
        ("4 cov", "4 COV"),
        ("animal", "ANIMAL"),
        ("animal", "Animal"),
        ("pedigree", "PEDIGREE"),
    ):
        add(f"{wrong}", "refused", replaced(right, wrong))
    add("cross without alpha", "refused", replaced("cross alpha", "cross"))
    add("class for cross", "refused", replaced("2 cross alpha", "2 class alpha"))
    add("cov alpha", "refused", replaced("4 cov", "4 cov alpha"))
    add("numer for text", "same|told|refused", replaced("2 cross alpha", "2 cross numer"))
    # numbers of columns
    for position in ("0", "12", "-2", "2.0", "two", "02"):
        add(
            f"EFFECT in column {position}",
            "same" if position == "02" else "refused",
            replaced("2 cross alpha", f"{position} cross alpha"),
        )
    for position in ("0", "12", "-6", "6.0", "6,"):
        add(f"TRAITS {position}", "refused", replaced("TRAITS\n6", f"TRAITS\n{position}"))
    add("TRAITS of text", "refused|told", replaced("TRAITS\n6", "TRAITS\n2"))
    add("a covariate of text", "refused|told", replaced("4 cov", "2 cov"))
    add("two positions for one trait", "refused", replaced("2 cross alpha", "2 2 cross alpha"))
    add("one position for two traits", "refused", replaced("2 2 cross alpha", "2 cross alpha", TWO), TWO)
    for text in ("1 2", "1 2 3 0 0 0 0 0", "1 1 3", "0 2 3", "1 2 9", "1 2 3 0 9", "1 2 -3"):
        add(f"FILE_POS {text}", "refused", replaced("1 2 3 0 0", text))
    add("FILE_POS 1 2 3", "same", replaced("1 2 3 0 0", "1 2 3"))
    add("FILE_POS 1 3 2", "same", replaced("1 2 3 0 0", "1 3 2"))  # sires and dams have the same relationships
    add("FILE_POS with births", "same", replaced("1 2 3 0 0", "1 2 3 0 4"))
    add("FILE_POS not stated", "same", replaced("FILE_POS\n1 2 3 0 0\n", ""))
    add("FILE_POS of two parents alone", "refused|told", replaced("1 2 3 0 0", "2 3 1 0 0"))
    # matrices
    for name, text in (
        ("one line", "1.0 0.2 0.2 0.8"),
        ("a line each", "1.0\n0.2\n0.2\n0.8"),
        ("blank lines", "1.0 0.2\n\n0.2 0.8\n"),
        ("comments between", "1.0 0.2 # first\n# second\n0.2 0.8"),
        ("exponents", "1.0e0 2.0e-1\n2.0E-01 8.0e-1"),
        ("Fortran", "1.0d0 2.0D-1\n0.2d+00 0.8"),
        ("whole numbers", "1 .2\n.2 .8"),
        ("tabs", "1.0\t0.2\n0.2\t0.8"),
        ("plus", "+1.0 +0.2\n+0.2 +0.8"),
    ):
        add(f"matrix, {name}", "same", replaced("(CO)VARIANCES\n1.0 0.2\n0.2 0.8", f"(CO)VARIANCES\n{text}", TWO), TWO)
    for name, text in (
        ("lower triangle", "1.0\n0.2 0.8"),
        ("upper triangle", "1.0 0.2\n0.8"),
        ("one number", "1.0"),
        ("nine numbers", "1 0 0\n0 1 0\n0 0 1"),
        ("commas", "1.0, 0.2\n0.2, 0.8"),
        ("decimal commas", "1,0 0,2\n0,2 0,8"),
        ("not symmetric", "1.0 0.2\n0.3 0.8"),
        ("a correlation of 2", "1 2\n2 1"),
        ("a negative variance", "-1 0\n0 1"),
        ("words", "var cov\ncov var"),
        ("infinite", "inf 0\n0 1"),
        ("nan", "nan 0\n0 1"),
        ("nothing", ""),
        ("stars", "1.0 ***\n*** 0.8"),
        ("zeros", "0 0\n0 0"),
        ("brackets", "[1.0 0.2]\n[0.2 0.8]"),
        ("semicolons", "1.0 0.2;\n0.2 0.8"),
    ):
        add(
            f"matrix, {name}",
            "refused",
            replaced("(CO)VARIANCES\n1.0 0.2\n0.2 0.8", f"(CO)VARIANCES\n{text}", TWO),
            TWO,
        )
        add(f"residual, {name}", "refused", replaced("2.0 0.3\n0.3 1.5", text, TWO), TWO)
    add("genetic variance of 0", "refused", replaced("1.5\n", "0\n"))
    add("no (CO)VARIANCES", "told", replaced("(CO)VARIANCES\n1.5\n", ""))
    # options
    for option in (
        "sol se",
        "missing 0",
        "missing 0.0",
        "use_yams",
        "method BLUP",
        "max_string_readline 800",
        "alpha_size 30",
    ):
        add(f"OPTION {option}", "same", PLAIN + f"OPTION {option}\n")
    for option in (
        "conv_crit 1d-12",
        "maxrounds 5000",
        "EM-REML 10",
        "solv_method FSPAK",
        "residual",
        "blksize 1",
        "prior 5 2 -1",
        "saveGInverse",
        "se_covar_function h2 G_2_2_1_1/(G_2_2_1_1+R_1_1)",
        "fixed_var all",
        "unknown_option 3",
        "SNP_file snp.txt",
    ):
        add(f"OPTION {option}", "told", PLAIN + f"OPTION {option}\n")
    add("OPTION without a word", "refused", PLAIN + "OPTION\n")
    add("option in small letters", "refused", PLAIN + "option sol se\n")
    add("OPTION with a value below", "refused", PLAIN + "OPTION missing\n-999\n")
    add("OPTION with a comment", "same", PLAIN + "OPTION sol se # errors\n")
    add("OPTION missing in capitals", "same|told|refused", PLAIN + "OPTION MISSING 0\n")
    add("OPTION missing a word", "refused|told", PLAIN + "OPTION missing NA\n")
    add("options above", "same", "OPTION sol se\n" + PLAIN)
    # what is missing, twice or elsewhere
    for keyword, old in (
        ("DATAFILE", "DATAFILE\ndata.txt\n"),
        ("TRAITS", "TRAITS\n6\n"),
        ("RESIDUAL_VARIANCE", "RESIDUAL_VARIANCE\n2.0\n"),
        ("FILE", "FILE\nped.txt\n"),
    ):
        add(f"no {keyword}", "refused", replaced(old, ""))
        add(f"{keyword} twice", "refused", replaced(old, old + old))
    add("no WEIGHT(S)", "same", replaced("WEIGHT(S)\n\n", ""))
    add("no FIELDS_PASSED", "same", replaced("FIELDS_PASSED TO OUTPUT\n\n", ""))
    add("no INBREEDING", "told", replaced("INBREEDING\npedigree\n", ""))
    add("no PED_DEPTH", "told", replaced("PED_DEPTH\n0\n", ""))
    add(
        "RANDOM above EFFECT",
        "refused",
        replaced("EFFECT\n1 cross alpha\nRANDOM\nanimal\n", "RANDOM\nanimal\nEFFECT\n1 cross alpha\n"),
    )
    add(
        "a file of blupf90",
        "refused",
        "DATAFILE\nrenf90.dat\nNUMBER_OF_TRAITS\n1\nNUMBER_OF_EFFECTS\n3\n"
        "OBSERVATION(S)\n1\nWEIGHT(S)\n\nEFFECTS:\n2 3 cross\n",
    )
    add("an empty file", "refused", "")
    add("only comments", "refused", "# DATAFILE\n# data.txt\n")
    add("another program's", "refused", "!DATA data.txt\ny ~ mu herd !r animal\n")
    add("a mixed model of DMU", "refused", "$COMMENT\n$ANALYSE 11 9 0 0\n$DATA ASCII (3,1,-999) data.txt\n")
    add("MIXED MODEL", "refused", PLAIN + "MIXED MODEL\n")
    add("NUMBER_OF_EFFECTS too", "refused", "NUMBER_OF_EFFECTS\n3\n" + PLAIN)
    # weights
    add("weights of 1", "same", replaced("WEIGHT(S)\n", "WEIGHT(S)\n12"), data=joined([[*r, "1"] for r in data_rows()]))
    add(
        "weights of 1.0",
        "same",
        replaced("WEIGHT(S)\n", "WEIGHT(S)\n12"),
        data=joined([[*r, "1.00"] for r in data_rows()]),
    )
    for weight in ("0", "-1", "NA", "x"):
        rows = [[*r, weight if k == 7 else "1"] for k, r in enumerate(data_rows())]
        add(f"a weight of {weight}", "refused|told", replaced("WEIGHT(S)\n", "WEIGHT(S)\n12"), data=joined(rows))
    add("two weights for one trait", "refused", replaced("WEIGHT(S)\n", "WEIGHT(S)\n8 8"))
    add("a weight in column 13", "refused", replaced("WEIGHT(S)\n", "WEIGHT(S)\n13"))
    # random effects
    add("RANDOM diag", "same", replaced("diagonal", "diag", TWO), TWO)
    for word in ("sire_mgs", "permanent", "animals", "diagonals", ""):
        add(f"RANDOM {word}", "refused", replaced("RANDOM\nanimal", f"RANDOM\n{word}"))
    add("RANDOM for a covariate", "refused", replaced("EFFECT\n4 cov\n", "EFFECT\n4 cov\nRANDOM\ndiagonal\n"))
    add("OPTIONAL of nothing", "refused", replaced("animal\nFILE", "animal\nOPTIONAL\n\nFILE"))
    add("OPTIONAL perm", "refused", replaced("animal\nFILE", "animal\nOPTIONAL\nperm\nFILE"))
    add("OPTIONAL PE", "told|refused", replaced("animal\nFILE", "animal\nOPTIONAL\nPE\nFILE"))
    add("NESTED below a class", "refused", replaced("EFFECT\n4 cov", "NESTED\n2 alpha\nEFFECT\n4 cov"))
    add("NESTED without a form", "refused", replaced("4 cov\n", "4 cov\nNESTED\n2\n"))
    add("NESTED in a covariate of column 14", "refused", replaced("4 cov\n", "4 cov\nNESTED\n14 alpha\n"))
    return inputs


@pytest.mark.slow
def test_parameter_files(importer):
    assert_right(parameter_inputs(), importer)


# ------------------------------------------------------------------------------------------------ data and pedigrees


def table_inputs():
    inputs = []

    def add(name, expected, data=DATA, animals=PARENTS, parameters=PLAIN, respell=None, base=PLAIN):
        inputs.append((name, expected, base, parameters, data, animals, respell))

    rows, kin = data_rows(), pedigree_rows()
    for name, separator in (("tabs", "\t"), ("many blanks", "    "), ("blanks and tabs", " \t ")):
        for of_line, end in (("", "\n"), (", CRLF", "\r\n"), (", CR", "\r")):
            add(f"{name}{of_line}", "same", joined(rows, separator, end), joined(kin, separator, end))
    add(
        "blanks in front and behind",
        "same",
        re.sub("(?m)^(?=.)", "   ", DATA).replace("\n", "  \n"),
        re.sub("(?m)^(?=.)", " ", PARENTS),
    )
    add("blank lines below", "same", DATA + "\n\n", PARENTS + "\n  \n")
    add("blank lines between", "same", DATA.replace("\n", "\n\n"), PARENTS.replace("\n", "\n\n"))
    add("no last line end", "same", DATA[:-1], PARENTS[:-1])
    add("byte order marks", "same", "\ufeff" + DATA, "\ufeff" + PARENTS)
    add("end of text of DOS", "same", DATA + "\x1a", PARENTS + "\x1a")
    add("fixed columns", "same", "".join("".join(c.rjust(9) for c in r) + "\n" for r in rows))
    for name, separator in (("commas", ","), ("semicolons", ";")):
        add(f"data with {name}", "refused", joined(rows, separator))
        add(f"pedigree with {name}", "refused", DATA, joined(kin, separator))
    add("a field too many", "refused", DATA.replace("\n", " 7\n", 1))
    add("a field too few", "refused", joined([r[:-1] if k == 6 else r for k, r in enumerate(rows)]))
    add(
        "an empty field",
        "refused",
        joined([["" if j == 4 and k == 6 else c for j, c in enumerate(r)] for k, r in enumerate(rows)]),
    )
    add("no data", "refused", "")
    add("no pedigree", "refused", DATA, "")
    add("names above the data", "refused|told", "animal herd sex age y1 y2 year staples sire litter age2\n" + DATA)
    add(
        "names above the data, skipped",
        "told",
        "animal herd sex age y1 y2 year staples sire litter age2\n" + DATA,
        parameters=PLAIN.replace("data.txt\n", "data.txt\nSKIP_HEADER\n1\n"),
    )
    skips = PLAIN.replace("data.txt\n", "data.txt\nSKIP_HEADER\n1\n")  # a blank line is one, and no record
    add("a blank line above the data, skipped", "same", "\n" + DATA, parameters=skips)
    add("names above the pedigree", "refused|told", DATA, "id sire dam birth\n" + PARENTS)
    add("comment above the data", "refused|told", "# records of 2020\n" + DATA)
    add("UTF-16", "refused", DATA.encode("utf-16"))
    add("reversed", "same", joined(rows[::-1]), joined(kin[::-1]))
    # numbers
    add("exponents", "same", joined(changed(rows, Y2, lambda c: f"{float(c):.8e}")))
    add("zeros behind", "same", joined(changed(rows, Y2, lambda c: f"{float(c):.6f}")))
    add("Fortran", "refused|told", joined(changed(rows, Y2, lambda c: f"{float(c):.6e}".replace("e", "D"))))
    add("decimal commas", "same|refused|told", joined(changed(rows, Y2, lambda c: c.replace(".", ","))))
    add("stars", "refused", joined(changed(rows, Y2, lambda c: "****", lambda k: k == 9)))
    add("a plus", "same", joined(changed(rows, AGE, lambda c: "+" + c)))
    add("ages without a zero in front", "same", joined(changed(rows, AGE, lambda c: re.sub(r"^0\.", ".", c))))
    for code in ("0", "0.0", "0.000", "0.", "0e0", "00", "-0", "0.0E+00"):
        add(f"missing as {code}", "same", joined(changed(rows, Y2, lambda c, code=code: code if c == "0" else c)))
    for code in ("-999", "-9", "-99", "99999", "-999.9", "-1"):
        data = joined(changed(rows, Y2, lambda c, code=code: code if c == "0" else c))
        add(f"missing {code}, not stated", "told", data)
        add(f"missing {code}", "same", data, parameters=PLAIN + f"OPTION missing {code}\n")
        if "." not in code:
            more = data.replace(f" {code} ", f" {code}.0 ")
            add(f"missing {code}.0", "same", more, parameters=PLAIN + f"OPTION missing {code}\n")
            add(f"missing {code} as a real number", "same", data, parameters=PLAIN + f"OPTION missing {code}.0\n")
    for code in ("NA", ".", "NaN", "*", "-", "nan"):
        data = joined(changed(rows, Y2, lambda c, code=code: code if c == "0" else c))
        add(f"missing {code}, not stated", "refused|told", data)
        add(f"missing {code}", "same|refused|told", data, parameters=PLAIN + f"OPTION missing {code}\n")
    add("ages of -999", "told", joined(changed(rows, AGE, lambda c: "-999", lambda k: k % 9 == 0)))
    add("herds of 0", "told", joined(changed(rows, HERD, lambda c: "0", lambda k: k % 9 == 0)))
    for code in ("NA", ".", "-999", "?"):
        add(f"herds of {code}", "told", joined(changed(rows, HERD, lambda c, code=code: code, lambda k: k % 9 == 0)))
    add(
        "herds as numbers",
        "same",
        joined(changed(rows, HERD, lambda c: c[1:] + "1")),
        respell=lambda level: level[1:] + "1" if re.fullmatch(r"H\d", level) else level,
    )
    add("herds in two spellings", "told", joined(changed(rows, HERD, str.lower, lambda k: k % 5 == 0)))
    add(
        "herds as 1 and 1.0",
        "told",
        joined(changed(changed(rows, HERD, lambda c: c[1:] + "1"), HERD, lambda c: c + ".0", lambda k: k % 4 == 0)),
    )
    # animals
    number = {row[0]: str(100 + k) for k, row in enumerate(kin)} | {"0": "0"}
    as_numbers = [[number[c] if j < 3 else c for j, c in enumerate(r)] for r in kin]
    numbered = changed(rows, ID, number.get)
    to_number = lambda level: number.get(level, level)
    add("animals as numbers", "same", joined(numbered), joined(as_numbers), respell=to_number)
    add(
        "animals as long numbers",
        "same",
        joined(changed(numbered, ID, "27600000000{}".format)),
        joined([[c if j > 2 or c == "0" else f"27600000000{c}" for j, c in enumerate(r)] for r in as_numbers]),
        respell=lambda level: f"27600000000{number[level]}" if level in number else level,
    )
    add(
        "zeros before animals of the data",
        "refused|told",
        joined(changed(numbered, ID, "0{}".format)),
        joined(as_numbers),
    )
    add(
        "points behind animals of the data",
        "same",
        joined(changed(numbered, ID, "{}.0".format)),
        joined(as_numbers),
        respell=to_number,
    )
    add("animals in capitals in the data", "refused|told", joined(changed(rows, ID, str.upper)))
    for code in ("00", "0.0"):
        add(f"unknown parents {code}", "same", DATA, joined([[code if c == "0" else c for c in r] for r in kin]))
    for code in (".", "NA", "-1", "-999", "UNK", "x", "*", "999", "?", "-"):
        add(
            f"unknown parents {code}",
            "told|refused",
            DATA,
            joined([[code if c == "0" and j else c for j, c in enumerate(r)] for r in kin]),
        )
    add("an animal twice", "refused", DATA, PARENTS + PARENTS.splitlines()[20] + "\n")
    add("an animal twice, otherwise", "refused", DATA, PARENTS + "c03 s1 d2 2018\n")
    add("its own sire", "refused", DATA, PARENTS + "c90 c90 0 2018\n")
    add("a loop", "refused", DATA, PARENTS + "c90 c91 0 2018\nc91 c90 0 2018\n")
    add("sire and dam", "refused|told", DATA, PARENTS + "c90 d3 s1 2050\n")
    add("without founders", "same", DATA, joined([r for r in kin if r[1:3] != ["0", "0"]]))
    add("an animal without a row", "told", DATA, joined([r for r in kin if r[0] != "c28"]))
    add("a record of animal 0", "refused|told", DATA + DATA.splitlines()[3].replace("c03", "0") + "\n")
    add(
        "progeny younger than parents",
        "told|refused",
        DATA,
        joined([[*r[:3], "1990" if r[0] == "c10" else r[3]] for r in kin]),
        parameters=PLAIN.replace("1 2 3 0 0", "1 2 3 0 4"),
    )
    add(
        "births of 0",
        "same",
        DATA,
        joined([[*r[:3], "0" if r[0] in ("s1", "d4") else r[3]] for r in kin]),
        parameters=PLAIN.replace("1 2 3 0 0", "1 2 3 0 4"),
    )
    add("a pedigree of more columns", "same", DATA, joined([[*r, "x", "1"] for r in kin]))
    add(
        "pedigree in other columns",
        "same",
        DATA,
        joined([[r[3], r[2], r[0], r[1]] for r in kin]),
        parameters=PLAIN.replace("1 2 3 0 0", "3 4 2 0 1"),
    )
    add(
        "groups as negative parents",
        "refused|told",
        DATA,
        joined([["-1" if c == "0" and j else c for j, c in enumerate(r)] for r in kin]),
    )
    return inputs


@pytest.mark.slow
def test_tables(importer):
    assert_right(table_inputs(), importer)
