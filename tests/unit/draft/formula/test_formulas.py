"""Formulas beside their analysis files, and what a formula cannot say."""

import builtins
import inspect
import re
from pathlib import Path

import polars as pl
import pytest
import yaml
from helpers.support import ROOT

import mmgibbs
from mmgibbs.cli import main
from mmgibbs.config import load_config
from mmgibbs.draft.formula import grammar
from mmgibbs.draft.formula.columns import Columns, read_columns
from mmgibbs.draft.formula.grammar import parse_formula
from mmgibbs.draft.formula.model import translate_formula
from mmgibbs.draft.formula.related import choose_related
from mmgibbs.draft.formula.sections import build_sections
from mmgibbs.draft.formula.text import write_analysis
from mmgibbs.errors import ConfigError, DataError
from mmgibbs.runs.model import MixedModel

pytest.importorskip("formulaic", reason="needs formulaic: pip install formulaic")

TABLE = yaml.safe_load((Path(__file__).parent / "formulas.yaml").read_text(encoding="utf-8"))
NUMBERS = ("y", "y2", "score", "cases", "months", "year", "age", "temp", "a.b")
CLASSES = ("ill", "sex", "herd", "animal", "sire", "line", "site", "rep", "my col", "residual")
COLUMNS = Columns(NUMBERS + CLASSES, frozenset(NUMBERS), frozenset({"year"}))
RELATED = re.compile(r"\| (animal|sire)\)|pedigree\(|single_step\(")
SHEEP = ROOT / "data_samples" / "sheep"


def sections_of(text, **settings):
    parsed = parse_formula(text)
    pedigree = "pedigree.csv" if RELATED.search(text) else None
    genotypes = "geno.bed" if "genomic(" in text or "single_step(" in text else None
    pedigree = settings.pop("pedigree", "pedigree.csv" if "dominance(" in text else pedigree)
    _, _, related = choose_related(parsed, pedigree, settings.pop("genotypes", genotypes))
    return build_sections(parsed, COLUMNS, related=related, has_pedigree=pedigree is not None, **settings)


def analysis_of(sections):
    data = {"phenotypes": "records.csv", "pedigree": "pedigree.csv", "genotypes": "geno.bed"}
    traits = sections.traits if any(sections.traits.values()) else list(sections.traits)
    return {"name": "formula", "data": data, "traits": traits, "model": sections.model}


@pytest.mark.parametrize("written", TABLE)
def test_a_formula_and_its_analysis_file(written):
    text, _, family = written.partition("  [")
    sections = sections_of(text, family=family.removesuffix("]") or "normal")
    expected = {"traits": ["y"], "fixed": {}} | TABLE[written]
    made = analysis_of(sections)
    assert {"traits": made["traits"]} | made["model"] == expected
    loaded = load_config(made)
    assert loaded.as_file() == load_config(yaml.safe_load(write_analysis(made))).as_file()


REFUSED = {
    "y": "there is no '~'",
    "y ~ sex ~ age": "several '~'",
    "y ~": "lacks a term on one side",
    "y ~ sex herd": "Missing operator between 'sex' and 'herd'",
    "y ~ (1 | animal": "a parenthesis has no partner",
    "y ~ poly(age": "it ends before this is closed by )",
    "y ~ sex | herd": "out of place, at '|'; expected a random term in parentheses",
    "y ~ (1 | a | b)": "expected a random term in parentheses with one bar",
    "y ~ .": "expected the names of the columns",
    "y ~ sex$age": "expected the name of the column alone",
    "y > 3 ~ sex": "expected columns with + - * / : and ^ between them",
    "y ~ class": "no column 'class'",
    "y ~ as.numeric(sex)": "as.numeric(sex) is not supported",
    "y ~ weights(age)": "data: {weights: COLUMN}",
    "y|weights(age) ~ sex": "weights='COLUMN'",
    "weighted(y, age) ~ sex": "weights='COLUMN'",
    "y | se(age) ~ sex": "1/se**2",
    "p(score, age) ~ sex": "a row for each trial",
    "y | cens(ill) ~ sex": "censored: STATUS",
    "cases | rate(months) ~ sex": "offset(log(COLUMN))",
    "y | sex ~ age": "expected one column, or cbind(a, b)",
    "sqrt(y) ~ sex": "make a column of its values in the table",
    "y ~ sx": "no column 'sx'; did you mean 'sex'",
    "y ~ (1 | anmal)": "no column 'anmal'; did you mean 'animal'",
    "y ~ 2*age": "2 is no effect",
    "log(y) ~ sex": "make a column of log(y) in the table",
    "cens(y, months) ~ sex": "type: censored, lower: COLUMN, upper: COLUMN",
    "cbind(y, y) ~ sex": "the trait y stands twice",
    "y*y2 ~ sex": "'*' before '~' cannot be read",
    "y ~ s(age)": "random: {curve: {relationship: {kind: spline, of: age}}}",
    "y ~ (s(age) | animal)": "kind: random_walk; within: CLASS has a curve for each class",
    "y ~ rw2(age)": "{kind: random_walk, of: age, order: ORDER}",
    "y ~ (1 | us(sex):animal)": "traits: {y: {by: sex}}",
    "y ~ (poly(age, 2) || animal)": "variances: {animal: {structure: diagonal}}",
    "y ~ log(age)": "make a column of its values in the table",
    "y ~ age + factor(age)": "age is in it twice",
    "y ~ I(age**2)": "without the lower ones; add age",
    "y ~ age + I(age**3)": "add I(age**2)",
    "y ~ I(age + 1)": "I(age + 1) is not supported",
    "y ~ poly(age, 2.5)": "expected poly(age, 2)",
    "y ~ legendre(age, 2, 1)": "expected legendre(age, 2) or legendre(age, 2, 1, 6)",
    "y ~ C(sex, Treatment('f'))": "fixed: {COLUMN: {reference: LEVEL}}",
    "y ~ sex:I(age**2)": "expected poly(age, 2) in it",
    "y ~ poly(age, 2):temp": "a curve can be combined with classes",
    "y ~ sex:(1 | animal)": "expected + before and after it",
    "y ~ (sex + age)**age": "to a power of 1 to 6",
    "y ~ sex - herd": "'-' removes herd, which stands nowhere before it",
    "y ~ sex - (1 | animal)": "leave it out",
    "y ~ (1 | sex + herd)": "write a term in parentheses for each",
    "y ~ (0 | animal)": "has no coefficient",
    "y ~ (1 | animal) + (1 | animal)": "repeats the intercept of (1 | animal)",
    "y ~ (1 | animal) + (age | animal)": "expected (0 + ... | animal)",
    "y ~ (sex | line)": "(1 | line) + (1 | line:sex)",
    "y ~ (age + temp | line)": "covariates: [one, age, temp]",
    "y ~ (I(age**2) | line)": "expected poly(COLUMN, 2)",
    "y ~ (0 + poly(age, 2) | line)": "expected 1 in place of 0",
    "y ~ (poly(age, 2) || line)": "expected | in place of ||",
    "y ~ (sex:age | line)": "an interaction before the bar",
    "y ~ (1 | gr(animal, cov=A))": "{relationship: inverse.txt}",
    "y ~ (1 | mm(sire, line))": "{levels: [sire, line]}",
    "y ~ (1 | pedigree(line):site)": "combinations of columns are independent",
    "y ~ offset(age)": "expected offset(log(COLUMN))",
    "y ~ offset(log(months))": "expected family='poisson'",
}


@pytest.mark.parametrize("text", list(REFUSED))
def test_what_a_formula_cannot_say_is_refused_with_advice(text):
    with pytest.raises(ConfigError, match=re.escape(REFUSED[text])) as error:
        sections_of(text)
    assert text.split("~")[0].strip() in str(error.value), "the message has the formula"


@pytest.mark.parametrize("text", ["", "  ", None, 3, ["y ~ x"], "y ~ " + "x + " * 9000 + "x"])
def test_what_is_no_formula_is_refused(text):
    with pytest.raises(ConfigError, match="formula: expected"):
        parse_formula(text)


def test_advice_of_refusals_is_followed():
    """The YAML that messages give is understood."""
    for text in ("y ~ (age + temp | line)", "log(months) ~ sex"):
        with pytest.raises(ConfigError) as error:
            sections_of(text)
        advice = re.search(r"((?:random|traits): \{.*\})", str(error.value))[1]
        made = analysis_of(sections_of("y ~ sex"))
        section = yaml.safe_load(advice)
        made |= section if "traits" in section else {"model": made["model"] | section}
        load_config(made)


def test_families():
    traits = sections_of("cbind(y, cases) ~ sex", family={"cases": "poisson"}).traits
    assert traits == {"y": {}, "cases": {"type": "count"}}
    assert sections_of("ill[yes] ~ sex", family="Bernoulli").traits == {"ill": {"type": "binary", "positive": "yes"}}
    with pytest.raises(ConfigError, match="expected normal, gaussian, binary, .* got 'gamma'"):
        sections_of("y ~ sex", family="gamma")
    with pytest.raises(ConfigError, match="there is no trait 'z'"):
        sections_of("y ~ sex", family={"z": "normal"})
    with pytest.raises(ConfigError, match="cannot be combined with the family count"):
        sections_of("ill[yes] ~ sex", family="count")


WORDS = [  # values of a column, what a formula with family="binomial" says of them
    (["no", "yes"], "which of them counts as 1? Expected ill[yes] ~ ... or ill[no] ~ ..."),
    (["1", "ill"], "Expected ill[ill] ~ ... or ill['1'] ~ ..."),
    (["it's", "not so"], """Expected ill['not so'] ~ ... or ill["it's"] ~ ..."""),
    (["False", "True"], {"type": "binary", "positive": True}),
    (["FALSE", "TRUE", "NA"], {"type": "binary", "positive": True}),
    (["1", "2"], {"type": "binary"}),
    (["yes", "NA"], {"type": "binary"}),
    (["a", "b", "c"], {"type": "binary"}),
]


@pytest.mark.parametrize("values, expected", WORDS, ids=lambda value: str(value)[:40])
def test_the_value_that_counts_as_1(values, expected):
    records = pl.DataFrame({"ill": values * 4, "weight": range(4 * len(values))})
    make = lambda formula: mmgibbs.model(formula, records, family="binomial").analysis["traits"]["ill"]
    if isinstance(expected, dict):
        assert make("ill ~ 1") == expected
        return
    with pytest.raises(ConfigError, match=re.escape(expected)) as error:
        make("ill ~ 1")
    advised = re.search(r"Expected (.*) or (.*)$", str(error.value)).groups()
    assert {make(formula.replace("...", "1"))["positive"] for formula in advised} == set(values)
    blank = records.rename({"ill": "was ill"})
    with pytest.raises(ConfigError, match=re.escape("Expected `was ill`[")) as error:
        mmgibbs.model("`was ill` ~ 1", blank, family="binary")
    for formula in re.search(r"Expected (.*) or (.*)$", str(error.value)).groups():
        assert "positive" in mmgibbs.model(formula.replace("...", "1"), blank).analysis["traits"]["was ill"]


def test_truth_values_count_true_as_1():
    records = pl.DataFrame({"ill": [True, False, None] * 4})
    model = mmgibbs.model("ill ~ 1", records, family="bernoulli")
    assert model.notes == ["ill: true counts as 1, false as 0"]
    assert model.check()["data"]["observations"] == {"ill": 8}


def test_a_column_of_dates_that_becomes_a_class_is_named(tmp_path):
    days = [f"{day}.3.2021" for day in range(1, 25)]
    records = pl.DataFrame({"y": range(24), "born": days, "code": [f"{i}.3.x" for i in range(24)]})
    records = records.with_columns(scored=pl.col("born").str.to_date("%d.%m.%Y"))
    records.write_csv(tmp_path / "records.csv")
    for table in (records, tmp_path / "records.csv"):
        for column in ("born", "scored"):
            (note,) = mmgibbs.model(f"y ~ {column}", table).notes
            assert note.startswith(f"{column} has dates and is a class") and f"factor({column})" in note
            assert len(mmgibbs.model(f"y ~ {column}:code", table).notes) == 1
            assert mmgibbs.model(f"y ~ factor({column}) + (1 | {column})", table).notes == []
        assert mmgibbs.model("y ~ code", table).notes == []


def test_which_level_the_tables_are_of():
    related = lambda text, *tables: choose_related(parse_formula(text), *tables)[2]
    assert related("y ~ (1 | animal) + (1 | herd)", "p", None) == {"animal": "pedigree"}
    assert related("y ~ (1 | animal) + (1 | herd)", None, "g") == {"animal": "genomic"}
    assert related("y ~ (1 | animal) + (1 | herd)", "p", "g") == {"animal": "single_step"}
    assert related("y ~ (1 | sire) + (1 | herd)", "p", None) == {"sire": "pedigree"}
    assert related("y ~ (1 | line)", "p", {"file": "geno.bed", "quality": {}}) == {"line": "single_step"}
    both = related("y ~ (1 | animal) + (1 | dam)", {"animal": "p", "dam": "p"}, None)
    assert both == {"animal": "pedigree", "dam": "pedigree"}
    assert related("y ~ (1 | pedigree(line)) + (1 | site)", "p", None) == {}
    assert related("y ~ (1 | iid(herd)) + (1 | line)", "p", None) == {"line": "pedigree"}
    assert related("y ~ (1 | ring) + (1 | iid(ring)) + (1 | year)", "p", None) == {"ring": "pedigree"}
    expected = "pedigree: which level is it of? Expected (1 | pedigree(line)) or (1 | pedigree(`site no`)) or "
    with pytest.raises(ConfigError, match=re.escape(expected)):
        related("y ~ (1 | line) + (1 | `site no`)", "p", None)
    with pytest.raises(ConfigError, match=r"Expected \(1 \| genomic\(line\)\) or"):
        related("y ~ (1 | line) + (1 | site)", None, "g")
    assert related("y ~ (1 | line/site)", "p", None) == {"line": "pedigree"}
    for formula in ("y ~ sex", "y ~ (1 | herd/animal)", "y ~ (1 | herd) + (1 | animal:herd)"):
        with pytest.raises(ConfigError, match="which level is it of"):
            related(formula, "p", None)
    with pytest.raises(ConfigError, match=r"there is no \(1 \| lin\); did you mean 'line'"):
        related("y ~ (1 | line)", {"lin": "p"}, None)
    with pytest.raises(ConfigError, match="expected one table for all levels"):
        related("y ~ (1 | line) + (1 | sire)", {"line": "p", "sire": "q"}, None)


@pytest.mark.parametrize("levels", ["(1 | iid(animal))", "(1 | iid(flock))", "(1 | iid(animal)) + (1 | flock)"])
@pytest.mark.parametrize("pedigree", [None, SHEEP / "pedigree.csv"])
def test_independent_effects_need_no_pedigree_and_may_have_one(levels, pedigree):
    model = mmgibbs.model(f"fleece_weight ~ {levels}", SHEEP / "shearings.csv", pedigree=pedigree)
    assert all("relationship" not in keys for keys in model.analysis["model"]["random"].values())
    warnings = model.check()["warnings"]
    assert any("the pedigree is not read" in text for text in warnings) == (pedigree is not None)


def test_independent_dams_are_taken_from_the_pedigree():
    table = {"pedigree": SHEEP / "pedigree.csv"}
    model = mmgibbs.model("fleece_weight ~ (1 | iid(animal)) + (1 | iid(dam))", SHEEP / "shearings.csv", **table)
    assert any("dams are taken from the pedigree" in text for text in model.check()["notes"])
    with pytest.raises(ConfigError, match="no column 'dam'"):
        mmgibbs.model("fleece_weight ~ (1 | iid(dam))", SHEEP / "shearings.csv")


def test_a_pedigree_that_is_not_said_to_be_of_the_levels_is_not_denied():
    """Two levels that also stand within iid(): the pedigree may be of either."""
    effects = "(1 | flock) + (1 | iid(flock)) + (1 | year) + (1 | iid(year))"
    with pytest.raises(ConfigError, match=r"said to be of flock; expected \(1 \| pedigree\(flock\)\) for one"):
        mmgibbs.model(f"fleece_weight ~ {effects}", SHEEP / "shearings.csv", pedigree=SHEEP / "pedigree.csv")


@pytest.mark.parametrize(
    "effects, given, message",
    [
        ("(1 | animal) + (1 | iid(animal))", {}, "are the same effect, as no pedigree or genotypes relate the levels"),
        ("(1 | pedigree(animal))", {}, "pedigree() needs the table of the pedigree, which is not given; expected ped"),
        ("(1 | dominance(animal))", {}, "dominance() needs the table of the pedigree"),
        ("(1 | genomic(animal))", {}, "genomic() needs the file of genotypes"),
        ("(1 | iid(animal))", {"pedigree": {"animal": SHEEP / "pedigree.csv"}}, "independent levels by iid(animal)"),
    ],
)
def test_relationships_and_independence_that_contradict_what_is_given(effects, given, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        mmgibbs.model(f"fleece_weight ~ {effects}", SHEEP / "shearings.csv", **given)


@pytest.mark.parametrize("effects", ["s(age)", "vm(animal)", "(1 | vm(animal))", "flok + (1 | flock) + (1 | dam)"])
def test_a_mistake_in_an_effect_comes_before_a_pedigree_without_a_level(effects):
    with pytest.raises(ConfigError, match="analysis file|no column 'flok'"):
        mmgibbs.model(f"fleece_weight ~ {effects}", SHEEP / "shearings.csv", pedigree=SHEEP / "pedigree.csv")


def test_words_of_python_are_names_of_columns():
    columns = {"y": [1.0, 2.0], "class": ["a", "b"], "lambda": [1.0, 2.5], "is": ["f", "m"], "_word_x": [1, 2]}
    records = pl.DataFrame(columns)
    assert "_word_x" in mmgibbs.model("y ~ _word_x", records).analysis["model"]["fixed"]
    formula = "y ~ factor(class) + poly(lambda, 2) + `is`:class + as.factor(`is`) + (1 | class)"
    model = mmgibbs.model(formula, records).analysis["model"]
    classes = {"class": {}, "is": {}, "is:class": {}}
    assert model["fixed"] == classes | {"lambda": {"kind": "covariate", "degree": 2}}
    assert model["random"] == {"class_random": {"level": "class"}}
    answers = pl.DataFrame({"ill": ["class", "not"]})
    assert mmgibbs.model("ill['class'] ~ 1", answers).analysis["traits"]["ill"]["positive"] == "class"
    assert mmgibbs.model("ill[not] ~ 1", answers).analysis["traits"]["ill"]["positive"] == "not"


def test_a_check_has_the_genotypes():
    folder = ROOT / "data_samples" / "genomic"
    records = pl.read_csv(folder / "phenotypes.csv", infer_schema_length=None)
    trait = next(name for name in records.columns if records.schema[name].is_float())
    model = mmgibbs.model(f"{trait} ~ (1 | animal)", records, genotypes=folder / "genotypes.bed")
    assert model.check()["data"]["observations"][trait] > 0


def test_keywords_that_are_not_there_are_named():
    model = mmgibbs.model("y ~ 1", pl.DataFrame({"y": [1.0, 2.0]}))
    with pytest.raises(ConfigError, match="fit: there is no keyword 'mehod'; did you mean 'method'"):
        model.fit(mehod="reml")
    with pytest.raises(ConfigError, match="fixed is given by the formula"):
        model.fit(fixed={})
    with pytest.raises(ConfigError, match=re.escape("mmgibbs.model('mass ~ year + sex*age', records, pedigree)")):
        MixedModel("mass ~ year + sex*age")
    with pytest.raises(ConfigError, match=r"BayesianLasso: expected keywords \(.*\), got 3 without one"):
        mmgibbs.BayesianLasso(3)


def test_columns_of_numbers_are_covariates(tmp_path):
    rows = "".join(f"a{i},{i % 3},{i / 7:.2f},f,NA\n" for i in range(30))
    (tmp_path / "r.csv").write_text("id,herd,age,sex,empty\n" + rows)
    found = read_columns(tmp_path / "r.csv")
    assert (found.numbers, found.codes) == ({"herd", "age"}, {"herd"})
    frame = pl.DataFrame({"code": ["1", "2"], "n": [1, 2], "flag": [True, False]})
    assert read_columns(frame).numbers == {"n"}, "text and truth values of a frame are classes"
    pandas = pytest.importorskip("pandas")
    assert read_columns(pandas.DataFrame({"code": ["1", "2"], "n": [1.5, None]})).numbers == {"n"}
    with pytest.raises(ConfigError, match="expected the path of a table or a data frame, got int"):
        read_columns(3)
    with pytest.raises(DataError, match=r"none\.csv"):
        read_columns(tmp_path / "none.csv")
    expected = "year has few whole numbers and is a covariate; factor(year) makes it a class"
    assert sections_of("y ~ year").notes == [expected]
    assert sections_of("y ~ factor(year) + age + (1 | year)").notes == []
    assert "Legendre" in sections_of("y ~ (age | animal)").notes[0]


@pytest.fixture(scope="module")
def model():
    files = ("shearings.csv", "pedigree.csv")
    records, pedigree = (pl.read_csv(SHEEP / name, infer_schema_length=None) for name in files)
    return mmgibbs.model(
        "fleece_weight ~ flock_year + poly(age, 2) + flock:shearing_day + (1 | animal) + (1 | iid(animal))",
        records.rename({"animal": "ewe"}).with_columns(animal="ewe"),
        pedigree={"animal": pedigree},
        name="fleece",
    )


def test_a_fit_is_that_of_the_analysis(model):
    result = model.fit(method="reml", progress=False)
    fixed = {"flock_year": {}, "age": {"kind": "covariate", "degree": 2}}
    fixed |= {"flock:shearing_day": {"covariates": ["shearing_day"]}}
    random = {"animal": {"relationship": "pedigree"}, "permanent_environment": {"level": "animal"}}
    analysis = {"name": "fleece", "data": model.analysis["data"], "traits": ["fleece_weight"]}
    analysis |= {"model": {"fixed": fixed, "random": random}, "sampler": {"method": "reml", "seed": 1}}
    same = mmgibbs.run(analysis, directory=result.directory.parent / "same", progress=False)
    assert same.summary.equals(result.summary) and result.summary.height >= 4
    assert model.check()["data"]["records"]["used"] == 2519


def test_a_model_prints_its_analysis_file(model):
    text = str(model)
    assert "phenotypes: (a data frame of 2,519 rows)" in text
    assert yaml.safe_load(text)["model"] == model.analysis["model"]
    assert repr(model).startswith("Model('fleece_weight ~ ")
    assert "<pre" in model._repr_html_() and "flock:shearing_day" in model._repr_html_()
    with pytest.raises(ConfigError, match="fixed is given by the formula"):
        model.fit(fixed=["sex"])


def test_the_function_makes_the_model_of_its_arguments():
    arguments = ("fleece_weight ~ age + (1 | animal)", SHEEP / "shearings.csv", SHEEP / "pedigree.csv")
    keywords = {"family": "gaussian", "weights": "fleece_weight", "name": "fleece"}
    model = mmgibbs.model(*arguments, **keywords)
    assert isinstance(model, mmgibbs.Model)
    assert model.analysis == mmgibbs.Model(*arguments, **keywords).analysis
    assert inspect.signature(mmgibbs.model).parameters == inspect.signature(mmgibbs.Model).parameters
    analysis, _ = translate_formula("fleece_weight ~ 1", SHEEP / "shearings.csv", weights="staples", name="w")
    assert (analysis["name"], analysis["data"]["weights"]) == ("w", "staples")


def test_without_formulaic_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setattr(grammar, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r'pip install "mmgibbs\[formula\]"'):
        parse_formula("y ~ x")


def test_nothing_is_evaluated(monkeypatch):
    monkeypatch.setattr(builtins, "eval", lambda *_: pytest.fail("evaluated"))
    with pytest.raises(ConfigError):
        sections_of("y ~ __import__('os').system('true')")


def test_init_writes_the_file_of_a_formula(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    tables = [str(SHEEP / "shearings.csv"), "--pedigree", str(SHEEP / "pedigree.csv")]
    formula = "fleece_weight ~ flock_year + age + (1 | animal) + (1 | iid(animal))"
    assert main(["init", *tables, "--formula", formula]) == 0
    said = "".join(capsys.readouterr())
    assert "factor(age) makes it a class" in said and "next: read it, then mmgibbs run analysis.yaml" in said
    text = (tmp_path / "analysis.yaml").read_text()
    assert f"#   {formula}" in text and "permanent_environment: {level: animal}" in text
    analysis = load_config(tmp_path / "analysis.yaml")
    assert analysis.data.pedigree == SHEEP / "pedigree.csv"
    assert list(analysis.model.random) == ["animal", "permanent_environment"]
    assert main(["init", *tables, "--formula", formula]) == 2 and "exists" in capsys.readouterr().err
    for extra, message in (
        (["--formula", "fleece ~ age + (1 | animal)"], "no column 'fleece'; did you mean 'fleece_weight'"),
        (["--formula", formula, "--traits", "body_weight"], "--traits cannot be combined with --formula"),
        (["--family", "binary"], "--family belongs to --formula"),
    ):
        assert main(["init", *tables, *extra, "--output", "other.yaml"]) == 2
        assert message in capsys.readouterr().err and not Path("other.yaml").exists()


def test_init_without_a_check_looks_at_the_columns_alone(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("r.csv").write_text("animal,n,cases,weight\n" + "".join(f"a{i},{i + 1},{i % 3},{i}.5\n" for i in range(9)))
    formula = ["--formula", "cbind(cases, weight) ~ (1 | animal)"]
    call = ["init", "r.csv", *formula, "--pedigree", "none.csv", "--weights", "n"]
    assert main([*call, "--family", "cases=count", "--no-check"]) == 0
    analysis = yaml.safe_load(Path("analysis.yaml").read_text())
    assert analysis["data"] == {"phenotypes": "r.csv", "pedigree": "none.csv", "weights": "n"}
    assert analysis["traits"] == {"cases": {"type": "count"}, "weight": {}}
    assert main([*call, "--overwrite"]) == 2, "a check reads the pedigree"
    assert "none.csv" in capsys.readouterr().err
    for extra in (["--no-check"], ["--weights", "n"]):
        assert main(["init", "r.csv", *extra, "--output", "b.yaml"]) == 2
        assert f"{extra[0]} belongs to --formula" in capsys.readouterr().err
    with pytest.raises(ConfigError, match="check=False belongs to formula"):
        mmgibbs.init("r.csv", check=False, output="b.yaml")
    for family, message in (("cases=", "expected TRAIT=TYPE"), ("case=count", "no trait 'case'")):
        assert main(["init", "r.csv", *formula, "--family", family, "--output", "b.yaml"]) == 2
        assert message in capsys.readouterr().err
