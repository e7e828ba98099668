"""Parameter files of renumf90: what comes of them is what a person would write, and mistakes are named by line."""

import errno
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from helpers.renumf90_cases import (
    ANIMAL,
    CASES,
    DATA_COLUMNS,
    Case,
    by_hand,
    groups,
    head,
    pedigree,
    records,
    write_files,
)
from helpers.selection import first

from mmgibbs.cli import main
from mmgibbs.config import load_config
from mmgibbs.errors import ConfigError, DataError
from mmgibbs.exchange.blupf90_read import KEYWORDS, read_parameter_file
from mmgibbs.exchange.import_blupf90 import import_blupf90
from mmgibbs.runs.run import check, run

KEYS = ["term", "effect", "trait", "level"]


def write_pedigree(folder, frame):
    frame.write_csv(folder / "ped.txt", separator=" ", include_header=False)


def solutions(analysis, folder, overrides=()):
    found = run(analysis, overrides, directory=folder, progress=False).solutions
    return found.with_columns(pl.col("effect").fill_null(""), pl.col("trait").str.replace("^y", "trait"))


def assert_same(imported, hand):
    joined = imported.join(hand, on=KEYS, how="full", suffix="_hand", coalesce=True, nulls_equal=True)
    assert len(joined) == len(imported) == len(hand)
    for column in ("mean", "sd", "reliability"):
        np.testing.assert_allclose(joined[column].to_numpy(), joined[f"{column}_hand"].to_numpy(), rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("name", first(6, CASES))
def test_runs_and_is_the_blup_of_the_analysis_written_by_hand(name, tmp_path):
    case = CASES[name]
    path, said = import_blupf90(write_files(tmp_path, case))
    for text in case.told:
        assert sum(text in line for line in said) == 1, (text, said)
    assert_same(solutions(path, tmp_path / "run", case.overrides), solutions(by_hand(case), tmp_path / "hand"))


def test_variances_to_be_estimated_are_estimated_by_reml(tmp_path):
    case = CASES["random regression, variances to be estimated"]
    path, said = import_blupf90(write_files(tmp_path, case))
    assert load_config(path).sampler.method == "reml"
    assert any("OPTION method VCE: sampler.method is reml; for their posterior: method: gibbs" in line for line in said)
    path, _ = import_blupf90(write_files(tmp_path, CASES["animal model"]), overwrite=True)
    assert load_config(path).sampler.method == "blup"


def test_every_line_told_of_is_a_line_of_the_file(tmp_path):
    for number, case in enumerate(CASES.values()):
        lines = case.parameters.splitlines()
        (tmp_path / str(number)).mkdir()
        for said in import_blupf90(write_files(tmp_path / str(number), case))[1]:
            if " line " in said:
                number, text = said.split(" line ")[1].split(": ", 1)
                keyword = lines[int(number) - 1].split()[0]
                assert keyword in (*KEYWORDS, "OPTION"), said
                if text.split()[0].rstrip(":") in KEYWORDS and "not stated" not in text:
                    assert keyword == text.split()[0].rstrip(":"), said


def shares(animals, unknown):
    """(n, 2) expected share of groups -1 and -2 in each animal, from its parents in the order of the rows."""
    share = {}
    for (animal, sire, dam, *_), (of_sire, of_dam) in zip(animals.rows(), unknown.rows(), strict=True):
        parts = [share[p] if p != "0" else np.eye(2)[int(g[1:]) - 1] for p, g in ((sire, of_sire), (dam, of_dam))]
        share[animal] = (parts[0] + parts[1]) / 2
    return np.array([share[a] for a in animals["id"]])


@pytest.mark.parametrize("upg", ["in_pedigrees", "group", "group_sex"])
def test_groups_of_each_parent_are_regressions_on_expected_shares(upg, tmp_path):
    """u = Q g + a: differences of animals against a model with the shares Q as covariates (Quaas & Pollak 1981)."""
    positions = {"in_pedigrees": "1 2 3", "group": "1 2 3 0 0 5", "group_sex": "1 2 3 0 0 5 6"}[upg]
    animal = ANIMAL.replace("1 2 3 0 0", positions).replace("INBREEDING", f"UPG_TYPE\n{upg}\nINBREEDING")
    case = Case(head() + "EFFECT\n2 cross alpha\n" + animal + "(CO)VARIANCES\n1.0\n", {}, pedigree="in_pedigrees")
    path = write_files(tmp_path, case)
    unknown = groups()
    if upg != "in_pedigrees":
        codes = unknown.select(pl.all().str.slice(1).name.suffix("_group"))
        write_pedigree(tmp_path, pedigree().hstack(codes))
    if upg == "group":  # one code, and groups of their own for sires and dams: four
        unknown = unknown.with_columns(dam="sire")
    Q = shares(pedigree(), unknown)
    if upg == "group":
        of_sires = shares_of_sires(pedigree(), unknown)
        Q = np.hstack([of_sires, Q - of_sires])
    imported = solutions(import_blupf90(path)[0], tmp_path / "run").filter(term="genetic", effect="")
    u = dict(zip(imported["level"], imported["mean"], strict=True))

    names = [f"q{i}" for i in range(Q.shape[1])]
    by_animal = pl.DataFrame({"animal": pedigree()["id"], **dict(zip(names, Q.T, strict=True))})
    hand = by_hand(CASES["animal model"])
    hand["data"]["phenotypes"] = records().join(by_animal, on="animal", maintain_order="left")
    fixed = {"effect1": {"column": "herd"}} | {name: {"kind": "covariate"} for name in names}
    hand |= {"model": {**hand["model"], "fixed": fixed}, "variances": {"genetic": 1.0, "residual": 2.0}}
    found = solutions(hand, tmp_path / "hand")
    g = np.array([found.filter(term=name)["mean"][0] for name in names])
    a = found.filter(term="genetic")
    a = dict(zip(a["level"], a["mean"], strict=True))
    ids = pedigree()["id"].to_list()
    expected = np.array([a[i] for i in ids]) + Q @ g
    ours = np.array([u[i] for i in ids])
    recorded = np.array([i.startswith("c") for i in ids])  # of others the data may not tell the groups apart
    np.testing.assert_allclose((ours - ours[-1])[recorded], (expected - expected[-1])[recorded], rtol=1e-7, atol=1e-7)


def shares_of_sires(animals, unknown):
    """(n, 2) the part of the shares that comes through unknown sires."""
    share = {}
    for (animal, sire, dam, *_), (of_sire, _) in zip(animals.rows(), unknown.rows(), strict=True):
        own = np.eye(2)[int(of_sire[1:]) - 1] if sire == "0" else share[sire]
        share[animal] = (own + (np.zeros(2) if dam == "0" else share[dam])) / 2
    return np.array([share[a] for a in animals["id"]])


def test_phantom_sires_are_candidates_and_said_to_be_so(tmp_path):
    """45 animals, five of which have a sire and a dam of different groups; phantoms have no birth."""
    animal = ANIMAL.replace("0 0", "0 4").replace("INBREEDING", "UPG_TYPE\nin_pedigrees\nINBREEDING")
    case = Case(head() + animal + "(CO)VARIANCES\n1.0\n", {}, pedigree="in_pedigrees")
    target, said = import_blupf90(write_files(tmp_path, case))
    assert sum("and a candidate of decisions: {candidates: all}" in line for line in said) == 1
    sampler = ["sampler.method=gibbs", "sampler.chains=1", "sampler.samples=20", "sampler.thin=1"]
    for candidates, n in (("all", 50), ("{born_after: 1900}", 45)):
        asked = f"decisions={{term: genetic, top: [10], candidates: {candidates}}}"
        notes = check(target, [*sampler, asked])["notes"]
        assert any(f"decisions: {n} candidates of genetic" in note for note in notes)


def test_an_unknown_parent_without_a_group_is_named_by_row(tmp_path):
    animal = ANIMAL.replace("INBREEDING", "UPG_TYPE\nin_pedigrees\nINBREEDING")
    path = write_files(tmp_path, Case(head() + animal, {}))
    with pytest.raises(DataError, match=r"ped\.txt row 1: found an unknown sire of 's0' without a group, needed one"):
        import_blupf90(path)


@pytest.mark.parametrize("name", ["animal model", "joined columns, a header line", "sires and litters"])
def test_a_pedigree_that_knows_none_of_the_recorded_animals_is_refused(name, tmp_path, capsys):
    """Else every animal would be a founder, and the evaluation one without a pedigree."""
    path = write_files(tmp_path, CASES[name])
    write_pedigree(tmp_path, pedigree().with_columns(pl.col("id", "sire", "dam").str.replace(r"^[a-z]", "$0-")))
    before = sorted(tmp_path.iterdir())
    assert main(["import-blupf90", str(path)]) == 2
    n, column, ids = (5, 9, "'s0', 's1', 's2'") if "sires" in name else (30, 1, "'c00', 'c01', 'c02'")
    file = "data_with_header.txt" if "header" in name else "data.txt"
    message = (
        f"FILE: found none of the {n} animals of column {column} of {file} ({ids}, ...) among the animals of ped.txt "
        "(FILE_POS 1 2 3) ('s-0', 's-1', 's-2', ...), needed the same ids in both"
    )
    assert message in capsys.readouterr().err
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("spelling", [str.upper, lambda i: i + "\u200b"])
def test_a_pedigree_that_spells_the_recorded_animals_otherwise_is_refused(spelling, tmp_path, capsys):
    path = write_files(tmp_path, CASES["animal model"])
    write_pedigree(tmp_path, pedigree().with_columns(pl.col("id", "sire", "dam").map_elements(spelling, pl.String)))
    assert main(["import-blupf90", str(path)]) == 2
    said = "needed the same ids in both: 30 are there in another spelling, such as"
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(("kept", "told"), [(14, True), (15, False)])
def test_a_pedigree_without_rows_for_most_recorded_animals_is_told_of_first(kept, told, tmp_path):
    path = write_files(tmp_path, CASES["animal model"])
    write_pedigree(tmp_path, pedigree().head(15 + kept))
    said = import_blupf90(path)[1]
    warnings = [line for line in said if "WARNING" in line]
    assert warnings == (said[:1] if told else [])
    if told:
        start = "renum.par line 20: WARNING: only 14 of the 30 animals of column 1 of data.txt have a row in ped.txt"
        assert warnings[0].startswith(start) and "the others ('c14', 'c15', 'c16', ...) are founders" in warnings[0]


def test_parents_alone_are_known_animals_but_told_of(tmp_path):
    """As for renumf90, an animal may stand in the columns of parents without a row: here every one with records."""
    path = write_files(tmp_path, CASES["sires and litters"])
    write_pedigree(tmp_path, pedigree().tail(30))
    assert "WARNING: only 0 of the 5 animals of column 9" in import_blupf90(path)[1][0]


GOOD = CASES["two traits with models of their own"].parameters
MISTAKES = [  # what is put in place of what, and how the message begins
    ("RANDOM\n", "RANDON\n", "line 20: found 'RANDON', needed a keyword after the values of EFFECT (line 18); did yo"),
    ("1 1 cross", "1 cross", "line 19: EFFECT: found '1 cross alpha', needed 2 positions (one for each trait, 0 for "),
    ("0.2 0.8", "0.3 0.8", "line 26: (CO)VARIANCES: found 0.2 in row 1, column 2 and 0.3 in row 2, column 1, needed "),
    ("1.0 0.2\n0.2 0.8", "1 2\n2 1", "line 26: (CO)VARIANCES: found correlations that cannot occur together, needed "),
    ("1.0 0.2\n0.2 0.8", "1.0 0.2\n0.2 0.0", "line 26: (CO)VARIANCES: found a covariance beside a variance of 0, nee"),
    ("4 0 cov", "40 0 cov", "line 16: EFFECT: found position 40, needed one from 1 to 11, the columns of data.txt"),
    ("data.txt", "dat.txt", "line 1: DATAFILE: "),
    ("FILE\nped.txt\n", "", "line 20: RANDOM animal: found no FILE, needed the pedigree"),
    ("RANDOM\nanimal", "RANDOM\nanimals", "line 21: RANDOM: found 'animals', needed animal, sire, diagonal or diag"),
    ("animal\nFILE", "animal\nOPTIONAL\npe mpa\nFILE", "line 23: OPTIONAL: found 'mpa', needed one or more of pe, ma"),
    ("2.0 0.3\n", "2.0 x\n", "line 10: found 'x', needed a number or a keyword after RESIDUAL_VARIANCE (line 9)"),
    ("RESIDUAL_VARIANCE\n2.0 0.3\n0.3 1.5\n", "", ": found no RESIDUAL_VARIANCE, needed one"),
    ("0 3 cross alpha", "0 3 cross alpha\nNESTED\n2 2 alpha",
     "line 16: NESTED: found after a cross-classified effect (line 14), needed after EFFECT ... cov"),
    ("1 1 cross", "1 9 cross", "line 20: RANDOM: found positions 1 and 9 in the EFFECT of line 18, needed one cross-"),
    ("TRAITS\n5 6\n", "NUMBER_OF_TRAITS\n2\n", "line 3: found NUMBER_OF_TRAITS, which is a keyword of blupf90; neede"),
    ("PED_DEPTH\n3\n", "PED_DEPTH\n3\nUPG_TYPE\ngroup\n",
     "line 26: UPG_TYPE group: found FILE_POS 1 2 3, needed 6 positions, the last for the group"),
    ("PED_DEPTH\n3\n", "PED_DEPTH\n3\nUPG_TYPE\ninternal\n",
     "line 27: UPG_TYPE: found 'internal', groups by a function within the user's own renumf90, needed yob and yea"),
    ("PED_DEPTH\n3\n", "PED_DEPTH\n3\nUPG_TYPE\nyob\n1990 INBREDING\n",
     "line 28: found 'INBREDING', needed a year or a keyword after UPG_TYPE yob (line 26); did you mean 'INBREEDIN"),
    ("DATAFILE\n", "COMBINE\n20\nDATAFILE\n", "line 2: COMBINE: found '20', needed the position of the new column, t"),
    ("(CO)VARIANCES\n1.0 0.2", "RANDOM_REGRESSION\nlegendre\nRR_POSITION\n4 2\n(CO)VARIANCES\n1.0 0.2",
     "line 28: RR_POSITION: found order 2 and (CO)VARIANCES of 1 polynomials, needed 0 (the degree) or 1 (how many"),
    ("(CO)VARIANCES\n1.0 0.2", "RANDOM_REGRESSION\nlegendre\nRR_POSITION\n4 1 8\n(CO)VARIANCES\n1.0 0.2",
     "line 28: RR_POSITION: found 3 numbers with legendre, needed the position of the covariate, and the order"),
    ("(CO)VARIANCES\n1.0 0.2", "RR_POSITION\n4\n(CO)VARIANCES\n1.0 0.2",
     "line 26: RR_POSITION: found no RANDOM_REGRESSION, needed both or none"),
    ("DATAFILE\n", "COMBINE\n20 2 21\nDATAFILE\n", "line 1: COMBINE: found position 21, needed one from 1 to 11 or 2"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "message"), MISTAKES)
def test_a_mistake_is_named_by_its_line(old, new, message, tmp_path):
    assert GOOD.count(old) == 1
    path = write_files(tmp_path, Case(GOOD.replace(old, new), {}))
    before = sorted(tmp_path.iterdir())
    with pytest.raises(ConfigError, match=f"^renum.par ?{re.escape(message)}") as told:
        import_blupf90(path)
    assert "needed" in str(told.value) or "no such file" in str(told.value)
    assert sorted(tmp_path.iterdir()) == before


def test_what_stands_on_the_line_of_its_keyword_is_taken_too(tmp_path):
    path = write_files(tmp_path, Case(GOOD.replace("TRAITS\n5 6\n", "TRAITS 5 6\n"), {}))
    assert read_parameter_file(path).stated["TRAITS"].value == (5, 6)


@pytest.mark.parametrize("years", [" 1990 1995", "\n1990 1995", "\n1990\n1995", " 1990\n1995"])
def test_years_of_groups_stand_on_the_line_of_yob_or_below(years, tmp_path):
    case = CASES["groups by year of birth"]
    path = write_files(tmp_path, Case(case.parameters.replace("UPG_TYPE\nyob", f"UPG_TYPE\nyob{years}"), {}))
    said = import_blupf90(path)[1]
    told = "UPG_TYPE yob: unknown parents of animals born up to 1990 are group 1, from 1991 to 1995 group 2, later"
    line = path.read_text().splitlines().index("UPG_TYPE") + 1
    assert sum(text.startswith(f"renum.par line {line}: {told}") for text in said) == 1


def test_groups_by_year_of_birth_are_those_of_a_column(tmp_path):
    """Founders of 2010 and of 2011, and a calf of 2018 without a dam: three groups, as in a column by hand."""
    case = CASES["groups by year of birth"]
    parameters = case.parameters.replace("UPG_TYPE\nyob", "UPG_TYPE\nyob 2010 2015").replace("OPTION cat 0\n", "")
    imported = solutions(import_blupf90(write_files(tmp_path, Case(parameters, {})))[0], tmp_path / "run")
    of_year = pl.when(pl.col("birth") <= 2010).then(1).when(pl.col("birth") <= 2015).then(2).otherwise(3)
    hand = by_hand(case)
    hand["data"] |= {
        "pedigree": pedigree().with_columns(group=of_year.cast(pl.String)).drop("birth"),
        "groups": {"column": "group", "effect": "fixed"},
    }
    assert_same(imported, solutions(hand, tmp_path / "hand"))
    assert set(imported.filter(effect="group")["level"]) == {"1", "2", "3"}


def test_groups_by_year_need_a_birth_year(tmp_path):
    case = CASES["groups by year of birth"]
    parameters = case.parameters.replace("UPG_TYPE\nyob", "UPG_TYPE\nyob 2010").replace("0 4\n", "0 0\n")
    said = import_blupf90(write_files(tmp_path, Case(parameters, {})))[1]
    assert sum("UPG_TYPE yob 2010: found no position of the birth year in FILE_POS" in text for text in said) == 1


def test_a_column_may_be_copied_by_combine(tmp_path):
    """COMBINE with two positions, the least that renumf90 takes; the new one may be a column that is there."""
    case = CASES["animal model"]
    for copy in ("20 2", "3 2"):
        new = copy.split()[0]
        parameters = f"COMBINE\n{copy}\n" + case.parameters.replace("2 cross alpha", f"{new} cross alpha")
        path, _ = import_blupf90(write_files(tmp_path, Case(parameters, {})), overwrite=True)
        imported = solutions(path, tmp_path / f"run{new}")
        assert_same(imported, solutions(by_hand(case), tmp_path / f"hand{new}"))


def test_a_file_in_latin_1_is_read_and_said_so(tmp_path):
    """A word processor's ellipsis, byte 0x85, is no end of a line."""
    case = CASES["animal model"]
    path = write_files(tmp_path, case)
    path.write_bytes(case.parameters.replace("# herd", "# rebaño\x85 EFFECT").encode("latin-1"))
    target, said = import_blupf90(path)
    assert [line for line in said if "Latin-1" in line] == [said[0]] and "the file is not UTF-8" in said[0]
    assert load_config(target).name == "renum"
    path.write_bytes(b"DATAFILE\n\xff\x00")
    with pytest.raises(ConfigError, match="cannot be read as text: found a zero byte, needed UTF-8 or Latin-1 text"):
        import_blupf90(path)


def test_missing_values(tmp_path):
    path = write_files(tmp_path, Case(GOOD.replace("missing -999", "missing -999 -1"), {}))
    target, said = import_blupf90(path)
    assert [line for line in said if "missing" in line] == [
        "renum.par line 29: OPTION missing: -1 is not carried over: one number says what is missing"
    ]
    assert load_config(target).traits[0].missing == ("-999",)
    path.write_text(path.read_text() + "OPTION missing -1\n")
    target, said = import_blupf90(path, overwrite=True)
    (told,) = [line for line in said if "missing" in line]
    assert told == "renum.par line 29: OPTION missing -999 -1: the one of line 31 counts"
    assert load_config(target).traits[0].missing == ("-1",)
    analysis = load_config(import_blupf90(write_files(tmp_path, CASES["animal model"]), overwrite=True)[0])
    assert analysis.traits[0].missing == ("0",) and analysis.data.missing == ()


def test_residual_classes_are_carried_over(tmp_path):
    """OPTION hetres_int 3 2: the third column, sex, says which residual variance a record has."""
    path = write_files(tmp_path, Case(GOOD + "OPTION hetres_int 3 2\n", {}))
    target, said = import_blupf90(path)
    column = load_config(target).variances.residual.by
    assert [line for line in said if "hetres_int" in line] == [
        f"renum.par line 31: OPTION hetres_int 3 2: residual (co)variances by class of {column}; those of every class "
        "start at RESIDUAL_VARIANCE"
    ]
    assert check(target)["data"]["residual_classes"].keys() == {"1", "2"}
    for wrong, needed in (("3", "needed the position of the class"), ("99 2", "found position 99, needed one from 1")):
        path.write_text(GOOD + f"OPTION hetres_int {wrong}\n")
        with pytest.raises(ConfigError, match=needed):
            import_blupf90(path, overwrite=True)


with_a_header_line = lambda parameters: parameters.replace("data.txt\n", "data_with_header.txt\nSKIP_HEADER\n1\n")


def records_of_file(folder):
    return pl.read_csv(folder / "data.txt", separator=" ", has_header=False, new_columns=list(DATA_COLUMNS))


def test_legendre_polynomials_are_those_computed_by_hand_in_columns(tmp_path):
    """`data` with the columns sqrt(1/2), sqrt(3/2) u, sqrt(5/2) (3 u^2 - 1) / 2 of the age is the same model."""
    matrix = "0.9 0.1 0.05\n0.1 0.4 0.02\n0.05 0.02 0.2\n"
    one_trait = head() + "EFFECT\n2 cross alpha\n" + ANIMAL + "RANDOM_REGRESSION\n{}\n(CO)VARIANCES\n" + matrix
    found = []
    for regression in ("legendre\nRR_POSITION\n4 3", "data\nRR_POSITION\n12 13 14"):
        path = write_files(tmp_path, Case(one_trait.format(regression), {}))
        table = records_of_file(tmp_path)
        u = 2 * table["age"] / 5 - 1
        columns = [u * 0 + 0.5**0.5, 1.5**0.5 * u, 2.5**0.5 * (1.5 * u**2 - 0.5)]
        table = table.with_columns(c.alias(f"p{j}") for j, c in enumerate(columns))
        table.write_csv(tmp_path / "data.txt", separator=" ", include_header=False)
        found.append(solutions(import_blupf90(path, overwrite=True)[0], tmp_path / f"run{len(found)}"))
    assert_same(*found)
    assert set(found[0].filter(term="genetic")["effect"]) == {"direct.0", "direct.1", "direct.2"}


def test_the_range_of_a_polynomial_is_of_numbers_that_differ(tmp_path):
    polynomials = GOOD.replace("(CO)VARIANCES", "RANDOM_REGRESSION\nlegendre\nRR_POSITION\n{}\n(CO)VARIANCES")
    path = write_files(tmp_path, Case(polynomials.format("2"), {}))
    with pytest.raises(DataError, match=r"data.txt row 1: found 'H\d' in column 2, needed a number: RR_POSITION"):
        import_blupf90(path)
    path.write_text(with_a_header_line(polynomials.format("2")))
    with pytest.raises(DataError, match=r"data_with_header.txt row 2: found 'H\d' in column 2, needed a number"):
        import_blupf90(path)
    path.write_text(polynomials.format("2"))
    table = records_of_file(tmp_path).with_columns(age=pl.lit(3))
    table.write_csv(tmp_path / "data.txt", separator=" ", include_header=False)
    path.write_text(polynomials.format("4"))
    with pytest.raises(ConfigError, match="line 28: RR_POSITION: found 3 in every record of column 4, needed two"):
        import_blupf90(path)


BY_TRAIT = GOOD.replace("WEIGHT(S)\n\n", "WEIGHT(S)\n8 7\n")


def test_weights_of_each_trait_need_independent_residuals(tmp_path):
    path = write_files(tmp_path, Case(BY_TRAIT, {}))
    target, said = import_blupf90(path)
    assert said[0] == (
        "renum.par line 7: WARNING: WEIGHT(S): a weight for each trait is not carried over where RESIDUAL_VARIANCE has "
        "covariances and a record has traits of different weights: every weight is 1"
    )
    assert load_config(target).data.weights is None


def test_where_records_have_one_trait_its_weight_is_that_of_the_record(tmp_path):
    """y1 is missing where y2 is not: residual covariances do not matter, and no record is divided."""
    path = write_files(tmp_path, Case(BY_TRAIT, {}))
    table = records_of_file(tmp_path).with_columns(y1=pl.when(pl.col("y2") == -999).then("y1").otherwise(-999.0))
    table.write_csv(tmp_path / "data.txt", separator=" ", include_header=False)
    target, said = import_blupf90(path)
    assert sum("renum_data.csv has the weight of the traits that a record has" in line for line in said) == 1
    hand = by_hand(CASES["two traits with models of their own"])
    by = table.with_columns(pl.when(pl.col(y) != -999).then(y) for y in ("y1", "y2"))
    weight = pl.when(pl.col("y2").is_null()).then("staples").otherwise("year")
    hand["data"] |= {"phenotypes": by.with_columns(w=weight), "weights": "w"}
    assert_same(solutions(target, tmp_path / "run"), solutions(hand, tmp_path / "hand"))


def test_a_weight_that_is_none_is_named_by_its_row(tmp_path):
    parameters = BY_TRAIT.replace("8 7", "8 4")
    path = write_files(tmp_path, Case(parameters, {}))
    with pytest.raises(DataError, match=r"data.txt row 1: found '0.0' in column 4, needed a weight above 0: trait2 is"):
        import_blupf90(path)
    path.write_text(with_a_header_line(parameters))
    with pytest.raises(DataError, match=r"data_with_header.txt row 2: found '0.0' in column 4, needed a weight above"):
        import_blupf90(path)


def test_the_command_writes_an_analysis_that_says_where_it_comes_from(tmp_path, capsys):
    case = CASES["two traits with models of their own"]
    path, target = write_files(tmp_path, case), tmp_path / "elsewhere" / "analysis.yaml"
    assert main(["import-blupf90", str(path), "--output", str(target)]) == 0
    out = capsys.readouterr().out
    assert "renum.par line 24: PED_DEPTH 3: the pedigree is not cut back" in out
    text = target.read_text()
    assert "# renum.par line 24: PED_DEPTH 3" in text and "*" not in text.split("name:")[1]
    assert load_config(target).data.phenotypes == (tmp_path / "data.txt").resolve()
    assert main(["import-blupf90", str(path), "--output", str(target)]) == 2
    assert "exists; choose another --output, or give --overwrite" in capsys.readouterr().err
    assert main(["import-blupf90", str(path), "--output", str(target), "--overwrite"]) == 0


COMBINED = CASES["joined columns, a header line"].parameters
WITH_GROUPS = head() + ANIMAL.replace("INBREEDING", "UPG_TYPE\nin_pedigrees\nINBREEDING") + "(CO)VARIANCES\n1.0\n"
DATA_OVER = COMBINED.replace("data_with_header.txt", "f_data.csv")
PEDIGREE_OVER = WITH_GROUPS.replace("ped.txt", "f_pedigree.csv")
GENOTYPES = GOOD.replace("PED_DEPTH", "SNP_FILE\nsnp.yaml\nPED_DEPTH")
INBREEDING = GOOD.replace("PED_DEPTH", "INBREEDING\nfile inb.yaml\nPED_DEPTH")
SOURCES = {  # parameters, what is there under which name, --output, and what the message calls it
    "new data over the data": (DATA_OVER, {"f_data.csv": "data_with_header.txt"}, "f.yaml", "DATAFILE of renum.par"),
    "the analysis over the data": (GOOD, {}, "data.txt", "DATAFILE of"),
    "the analysis over the parameter file": (GOOD, {}, "renum.par", "the parameter file"),
    "a new pedigree over the pedigree": (
        PEDIGREE_OVER, {"f_pedigree.csv": "ped.txt"}, "f.yaml", "FILE of renum.par line 15"
    ),
    "genotypes": (GENOTYPES, {"snp.yaml": "ped.txt"}, "snp.yaml", "SNP_FILE of renum.par line 24"),
    "genotypes of an option": (
        GOOD + "OPTION SNP_file snp.yaml\n", {"snp.yaml": "ped.txt"}, "snp.yaml", "OPTION SNP_file of renum.par line 31"
    ),
    "coefficients of inbreeding": (INBREEDING, {"inb.yaml": "ped.txt"}, "inb.yaml", "INBREEDING of renum.par line 24"),
    "by a link": (GOOD, {"link.yaml": "-> data.txt"}, "link.yaml", "DATAFILE of"),
    "by a hard link": (GOOD, {"link.yaml": "= data.txt"}, "link.yaml", "DATAFILE of"),
}  # fmt: skip


@pytest.mark.parametrize("name", SOURCES)
def test_no_file_that_is_read_is_written_over(name, tmp_path, capsys):
    parameters, files, output, message = SOURCES[name]
    path = write_files(tmp_path, Case(parameters, {}, pedigree="in_pedigrees" if "UPG_TYPE" in parameters else "plain"))
    for new, source in files.items():
        if source.startswith("-> "):
            (tmp_path / new).symlink_to(tmp_path / source[3:])
        elif source.startswith("= "):
            (tmp_path / new).hardlink_to(tmp_path / source[2:])
        else:
            (tmp_path / new).write_bytes((tmp_path / source).read_bytes())
    before = {p: p.read_bytes() for p in tmp_path.iterdir()}
    assert main(["import-blupf90", str(path), "--output", str(tmp_path / output), "--overwrite"]) == 2
    told = capsys.readouterr().err
    assert f"', the file to write, is {message}" in told and "needed another --output" in told
    assert {p: p.read_bytes() for p in tmp_path.iterdir()} == before


def test_a_folder_is_no_analysis_file_and_nothing_is_written(tmp_path):
    path = write_files(tmp_path, CASES["joined columns, a header line"])
    (tmp_path / "f.yaml").mkdir()
    with pytest.raises(ConfigError, match="is a folder, needed the name of a file for output"):
        import_blupf90(path, tmp_path / "f.yaml", overwrite=True)
    assert not (tmp_path / "f_data.csv").exists()


def test_where_a_file_cannot_be_written_none_is(tmp_path, monkeypatch):
    path = write_files(tmp_path, CASES["joined columns, a header line"])
    before = sorted(tmp_path.iterdir())

    def full(self, *args, **keys):
        raise OSError(errno.ENOSPC, "No space left on device")

    for kind, name in ((pl.DataFrame, "write_csv"), (Path, "write_text")):
        said = "cannot write .*: No space left on device"
        with monkeypatch.context() as patched, pytest.raises(ConfigError, match=said):
            patched.setattr(kind, name, full)
            import_blupf90(path)
        assert sorted(tmp_path.iterdir()) == before
