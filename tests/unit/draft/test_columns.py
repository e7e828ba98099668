"""Which columns `init` takes for traits, effects, times, rates and dates, and what in a column of numbers is a slip."""

import numpy as np
import polars as pl
import pytest
from helpers.drafts import accepted, made_of, of_sample, write
from helpers.support import shared_data

import mmgibbs
from mmgibbs.config import load_config
from mmgibbs.draft.make import init
from mmgibbs.errors import ConfigError, DataError


def of_columns(tmp_path, traits=(), **columns):
    """What init says of, and writes from, 300 records with a weight and these columns."""
    r = np.random.default_rng(8)
    frame = pl.DataFrame({"id": [f"a{i}" for i in range(300)]} | columns | {"kg": r.normal(50, 4, 300).round(1)})
    frame.write_csv(tmp_path / "records.csv")
    made = init(tmp_path / "records.csv", traits=traits, output=tmp_path / "analysis.yaml", overwrite=True)
    accepted(made)
    return "\n".join(made.said), load_config(made.path), made.path.read_text()


def test_what_was_asked_for_is_the_trait(tmp_path):
    files = of_sample("beef")
    made = init(*files, traits=("yearling_weight", "weaning_weight"), output=tmp_path / "a.yaml")
    assert [t.name for t in accepted(made).traits] == ["yearling_weight", "weaning_weight"]
    with pytest.raises(ConfigError, match="has no column 'yearling'; nearest: 'yearling_weight'"):
        init(*files, traits=("yearling",), output=tmp_path / "b.yaml")
    assert not (tmp_path / "b.yaml").exists()


def test_a_trait_without_a_value_is_refused(tmp_path):
    """A column of blanks and missing values, asked for by its name; one that is guessed is left out."""
    rows = [f"a{i},{i % 3},{20 + (i * 7) % 11 + i / 10},{'NA' if i % 2 else ''}" for i in range(60)]
    files = write(tmp_path, "animal,herd,weight,height\n" + "\n".join(rows))
    with pytest.raises(ConfigError, match=r"found no value in column 'height' of .*, needed at least one .*empty, NA"):
        init(*files, traits=("height",), output=tmp_path / "a.yaml")
    assert [t.name for t in accepted(init(*files, output=tmp_path / "b.yaml")).traits] == ["weight"]


def test_results_and_true_values_are_no_traits(tmp_path):
    """t1_a and t1_d are the components of a simulated value; a lone b_a is a trait like others."""
    made = init(shared_data("data/warcolak/warcolak.csv"), output=tmp_path / "a.yaml")
    text = made.path.read_text(encoding="utf-8")
    assert "t1_a, t1_d, t1_r look like components of a value: the true ones of a simulation?" in text
    assert "trait2: {}" in text and "# t1_a: {}  # numbers" not in text
    rows = [f"a{i},{i % 3},{20 + i / 7},{i / 3},{i / 9}" for i in range(40)]
    made = made_of(tmp_path, "animal,herd,weight,true_bv,size_a\n" + "\n".join(rows))
    text = made.path.read_text(encoding="utf-8")
    assert "left out (named for a result or a true value, not a record)" in text and "# size_a: {}" in text


def test_properties_of_a_place_and_numbers_of_rows_are_no_traits(tmp_path):
    """Counts of ticks on grouse chicks (Elston et al. 2001): broods within locations, whose height is known."""
    made = init(shared_data("data/traits/grouseticks.csv"), output=tmp_path / "a.yaml")
    analysis = accepted(made)
    assert [(t.name, t.type) for t in analysis.traits] == [("TICKS", "count")]
    assert set(analysis.model.random) == {"BROOD", "LOCATION"} and set(analysis.model.fixed) == {"YEAR"}
    text = made.path.read_text(encoding="utf-8")
    assert "left out (each level of LOCATION has one value of it)" in text and "it numbers the records" in text


def test_what_is_the_same_in_all_records_of_an_animal_is_no_trait(tmp_path):
    """Anger of a person, beside 24 answers each."""
    made = init(shared_data("data/traits/VerbAgg.csv"), output=tmp_path / "a.yaml")
    assert "each id has one value of it" in made.path.read_text(encoding="utf-8")
    assert [t.name for t in accepted(made).traits] != ["Anger"]


def test_sires_without_a_pedigree_are_random(tmp_path):
    made = init(shared_data("data/traits/foulley_1983_bw_cd.csv"), output=tmp_path / "a.yaml")
    assert set(accepted(made).model.random) == {"sire"}


def test_a_random_effect_by_name_with_few_levels_is_fixed(tmp_path):
    rows = [f"a{i},{i % 6 + 2},c{i % 40},{i % 17 + 0.5}" for i in range(240)]
    model = accepted(made_of(tmp_path, "\n".join(["animal,litter,cage,weight", *rows]) + "\n")).model
    assert (set(model.fixed), set(model.random)) == ({"litter"}, {"cage"})


def test_lines_with_one_record_each_have_no_effect_beside_the_residual(tmp_path):
    for times, random in ((1, set()), (2, {"line"})):
        rows = [f"l{i},{i % 17 + 0.5 + t}" for i in range(120) for t in range(times)]
        made = made_of(tmp_path, "\n".join(["line,yield", *rows]) + "\n")
        assert set(accepted(made).model.random) == random
        assert "# line: {relationship: inverse.txt}" in made.path.read_text()


def test_codes_of_two_classes_are_taken_by_their_names(tmp_path):
    of = np.random.default_rng(2).integers(0, 2, (5, 300))
    _, analysis, _ = of_columns(tmp_path, male=of[0], is_female=of[1], yob=98 + of[2], castrated=of[3], horned=of[4])
    assert set(analysis.model.fixed) == {"male", "is_female", "yob", "castrated"}


def test_a_code_of_missing_values_among_words_is_no_class(tmp_path):
    """Survival as yes, no and -99, and grades with a 9; 3 among words is a class."""
    r = np.random.default_rng(9)
    survived, grade = r.choice(["yes", "no", "no", "-99"], 300), r.choice(["low", "mid", "top", "9"], 300)
    said, analysis, text = of_columns(tmp_path, ["survived", "grade"], survived=survived, grade=grade)
    assert "survived: {type: binary, positive: 'yes', missing: ['-99']}" in text.replace('"', "'")
    assert analysis.traits[1].categories == ("low", "mid", "top")
    n = int((survived == "-99").sum())
    assert f"traits.survived: {n} of 300 values of column 'survived' are -99 among words: taken for missing" in said
    _, analysis, text = of_columns(tmp_path, ["grade"], grade=np.where(grade == "9", "3", grade))
    assert analysis.traits[0].categories == ("3", "low", "mid", "top") and "missing: [" not in text.split("traits:")[1]


def test_measurements_of_few_values_are_no_first_choice(tmp_path):
    dose = np.array([0.5, 1.5, 2.5])[np.arange(300) % 3]
    said, analysis, text = of_columns(tmp_path, dose=dose)
    assert [t.name for t in analysis.traits] == ["kg"]
    assert "dose" in said and "few different ones: a trait, or a covariate or class?" in said
    assert "    # dose: {kind: covariate}  # if it is no trait" in text and "  # dose: {}" in text
    _, analysis, text = of_columns(tmp_path, ["dose"], dose=dose)
    assert [t.name for t in analysis.traits] == ["dose"] and "dose: {kind: covariate}" not in text
    _, analysis, _ = of_columns(tmp_path, lean_score=dose)
    assert [t.name for t in analysis.traits] == ["lean_score"]  # its name says so


def test_scores_in_letters_and_numbers_of_plots(tmp_path):
    """Grades of hips are a trait, not an effect on the weight; a plot that is left out is offered as a class."""
    r = np.random.default_rng(7)
    plot = np.arange(300) % 30
    said, analysis, text = of_columns(
        tmp_path, hips=r.choice(list("ABCDE"), 300), litter=[f"L{p}" for p in plot], plot=100 + plot
    )
    assert "hips    text, 5 different" in said and "may be a trait (its name says so)" in said
    assert "# hips: {type: ordinal, categories: [A, B, C, D, E]}" in text and "hips" not in analysis.model.fixed
    assert "    # plot: {}  # left out: the same groups of records as litter" in text


@pytest.mark.parametrize("form", ["%d.%m.%y", "%Y-%m-%d %H:%M"])
def test_dates_in_many_forms_are_seen(tmp_path, form):
    days = [(np.datetime64("2019-01-01") + i).item().strftime(form) for i in range(300)]
    said, analysis, _ = of_columns(tmp_path, day=days)
    assert "dates, 300 different" in said and "year, season or an age in days, as columns of their own" in said
    assert analysis.model.fixed == {}


def test_init_names_levels_that_are_alike_or_unknown(tmp_path):
    said, _, _ = of_columns(tmp_path, sex=["m", "M", "f", "?"] * 75)
    assert "warning: levels of column 'sex' differ only in how they are written" in said and "'M' (75 records)" in said
    assert "warning: column 'sex' has 1 level that may mean a missing value" in said
    assert "write model.fixed.sex.missing: ['?']" in said
    said, _, _ = of_columns(tmp_path, sex=["m", "f"] * 150)
    assert "warning" not in said


def uncommented(path, start):
    """The file with the comment line that begins with `start` in the place of the same trait."""
    lines = path.read_text(encoding="utf-8").splitlines()
    (at,) = [i for i, line in enumerate(lines) if line.startswith(f"  # {start}")]
    lines[at] = lines[at].replace("# ", "", 1)
    name = start.split(":")[0]
    kept = [line for i, line in enumerate(lines) if i == at or not line.startswith((f"  {name}:", f"    {name}:"))]
    path.write_text("\n".join(kept), encoding="utf-8")
    assert mmgibbs.check(path)["equations"] > 0
    return load_config(path).traits[0]


LIVES = [f"a{i},h{i % 4},{30 + 7 * i},{int(i % 3 > 0)}" for i in range(60)]


@pytest.mark.parametrize("status, still", [("culled", "0"), ("Cens", "1")])
def test_a_time_with_a_status_of_0_and_1_is_offered_as_censored(tmp_path, status, still):
    made = made_of(tmp_path, f"animal,herd,days,{status}\n" + "\n".join(LIVES))
    assert [(t.name, t.type) for t in accepted(made).traits] == [("days", "normal")]
    n = 20 if still == "0" else 40
    said = f"days may be a censored time: {status} is 0 or 1, and {still} in {n} records may say that it has not ended"
    assert any(line.startswith(said) for line in made.said)
    trait = uncommented(made.path, "days: {type: censored")
    assert trait.type == "censored" and trait.censored == status and trait.log
    assert (trait.values.right, trait.values.none) == ((still,), ("1" if still == "0" else "0",))


def test_a_time_of_0_has_no_logarithm_and_a_covariate_goes(tmp_path):
    rows = [f"a{i},h{i % 4},{40 + i % 9 + i / 10},{7 * (i % 25)},{int(i % 3 > 0)}" for i in range(60)]
    made = made_of(tmp_path, "animal,herd,weight,age,dead\n" + "\n".join(rows))
    text = made.path.read_text(encoding="utf-8")
    assert 'none: ["1"]}}  # without age in model' in text and "log: true" not in text
    assert list(accepted(made).model.fixed) == ["herd", "age"]


@pytest.mark.parametrize("header", ["days,herd_status", "weight,culled", "days,sex", "days_in_milk,culled"])
def test_no_time_or_no_status_is_no_censored_time(tmp_path, header):
    """Status is a class of three, the other column no time, or the other no status."""
    rows = LIVES if header != "days,herd_status" else [row[:-1] + str(i % 3) for i, row in enumerate(LIVES)]
    made = made_of(tmp_path, f"animal,herd,{header}\n" + "\n".join(rows))
    assert "censored" not in made.path.read_text(encoding="utf-8")


def test_cases_of_a_size_are_offered_as_a_rate(tmp_path):
    rows = [f"a{i},h{i % 4},{i % 4 if i % 3 else 0},{5 + i % 17}" for i in range(60)]
    made = made_of(tmp_path, "cow,herd,cases,group_size\n" + "\n".join(rows))
    assert [t.name for t in accepted(made).traits] == ["cases"]
    assert "cases is never above group_size: cases of so many? (see traits)" in made.said
    assert "left out (may say of how many cases are)" in made.path.read_text(encoding="utf-8")
    trait = uncommented(made.path, "cases: {type: count, exposure")
    assert (trait.type, trait.exposure) == ("count", "group_size")
    rows[5] = "a5,h1,30,20"  # more than there are
    made = made_of(tmp_path, "cow,herd,cases,group_size\n" + "\n".join(rows))
    assert "exposure" not in made.path.read_text(encoding="utf-8")


def test_slips_in_a_column_of_numbers_are_named(tmp_path):
    """The column would be a trait of 200 categories, or be left out without a word. 'missing' is a code for that."""
    weights = [f"{7 + i / 100:.2f}" for i in range(200)]
    weights[16], weights[39] = "8..3", "missing"
    table = pl.DataFrame({"animal": [f"a{i}" for i in range(200)], "weight": weights, "length": range(200, 400)})
    made = made_of(tmp_path, table.with_columns(pl.col("length") ** 0.5))
    said, slips = "\n".join(made.said), "weight {} numbers, and 1 value that is none (8..3), {}"
    assert slips.format("", "199 different, 1 missing: trait (numbers, and its name says so)") in said
    assert slips.format("has", "the first in row 18: correct what is wrong, or write it into data.missing") in said
    analysis = load_config(made.path)
    assert [t.name for t in analysis.traits] == ["weight"] and "missing" in analysis.data.missing
    assert made.refused.startswith("r.csv row 18: found '8..3' in column 'weight' (traits.weight)")


@pytest.mark.parametrize("rows, words, slips", [(200, 10, True), (200, 11, False)])
def test_many_words_among_numbers_are_no_slips(rows, words, slips, tmp_path):
    """At most one value in twenty: beyond it is a column of text with some numbers."""
    grades = [f"word{i}" if i < words else f"{7 + i / 100:.2f}" for i in range(rows)]
    table = pl.DataFrame({"animal": [f"a{i}" for i in range(rows)], "grade": grades, "length": range(rows)})
    made = made_of(tmp_path, table.with_columns(pl.col("length") ** 0.5), traits=["length"])
    assert any(f"and {words} values that are none" in line for line in made.said) == slips


def test_a_few_words_among_numbers_are_no_categories(tmp_path):
    """A fifth of the weights say that the animal was sold: they are listed, and no word becomes a category."""
    weights = ["sold" if i % 5 == 0 else "#N/A" if i % 7 == 0 else f"{70 + i / 10:.1f}" for i in range(300)]
    made = made_of(tmp_path, pl.DataFrame({"animal": [f"a{i}" for i in range(300)], "weight": weights}))
    text = made.path.read_text(encoding="utf-8")
    assert "ordinal" not in text and 'missing: ["", NA, "#N/A"]' in text
    assert any(
        "weight has numbers, and 60 values that are none (sold), the first in row 2" in line for line in made.said
    )
    assert "found 'sold' in column 'weight'" in made.refused


@pytest.mark.parametrize("name", ["weight", "remark"])
def test_text_of_many_values_is_no_trait(tmp_path, name):
    words = [f"w{chr(97 + i % 26)}{chr(97 + i // 26)}" for i in range(300)]
    table = pl.DataFrame({"animal": [f"a{i}" for i in range(300)], name: words, "gain": [i**0.5 for i in range(300)]})
    made = made_of(tmp_path, table)
    assert [t.name for t in accepted(made).traits] == ["gain"]
    warned = any(line.startswith(f"warning: {name} is named for a trait, but has text") for line in made.said)
    assert warned == (name == "weight") and "ordinal" not in made.path.read_text(encoding="utf-8")


def test_no_line_of_a_draft_is_long(tmp_path):
    """A name of 90 letters, twenty categories of 30, and a long list of codes; the file means the same."""
    long = "score_" + "x" * 84
    rows = [f"a{i},{'c' * 28}{i % 20:02d},{i % 3}" for i in range(400)]
    made = made_of(tmp_path, f"animal,{long},herd\n" + "\n".join(rows), traits=[long])
    lines = made.path.read_text(encoding="utf-8").splitlines()
    assert max(map(len, lines)) <= 200
    (trait,) = load_config(made.path).traits
    assert len(trait.categories) == 20 and trait.name == long


def test_ids_with_a_point_and_a_letter_are_no_slips(tmp_path):
    ids = [f"2000.{i:03d}" for i in range(60)] + ["2000.005b"]
    table = pl.DataFrame({"animal": ids, "tag": ids[::-1], "weight": [i / 7 for i in range(61)]})
    table.write_csv(tmp_path / "r.csv")
    said = "\n".join(init(tmp_path / "r.csv", output=tmp_path / "a.yaml").said)
    assert "that is none" not in said and "animal  text, 61 different" in said


def test_codes_of_classes_with_a_letter_are_no_slips(tmp_path):
    """Few values, unless the name says that they were measured."""
    zones = [f"{1 + i % 3}.{1 + i // 3 % 3}" for i in range(198)] + ["3.x", "3.x"]
    table = pl.DataFrame({"animal": range(200), "zone": zones, "score": zones, "weight": [i / 7 for i in range(200)]})
    made = made_of(tmp_path, table, traits=["weight"])
    assert list(load_config(made.path).model.fixed) == ["zone"]
    assert any("zone " in line and "text, 10 different" in line for line in made.said)
    (slips,) = (line for line in made.said if line.startswith("warning: "))
    assert slips.startswith("warning: score has numbers, and 2 values that are none (3.x), the first in row 200")


def test_a_code_for_a_missing_value_is_written_below_the_name_of_the_trait(tmp_path):
    """A name that an analysis file cannot have is replaced."""
    milk = [-999.0 if i == 5 else 20 + i / 7 for i in range(200)]
    made = made_of(tmp_path, pl.DataFrame({"animal": range(1, 401, 2), "milk[kg]": milk}))
    assert [t.name for t in load_config(made.path).traits] == ["milk_kg_"]
    (said,) = (line for line in made.said if "mean a missing value" in line)
    assert "of column 'milk[kg]'" in said and "Then write traits.milk_kg_.missing: ['-999']" in said


def test_slips_of_other_traits_are_said_where_the_pedigree_is_refused(tmp_path):
    """One message has them: the first trait is drafted, the second is a comment in it."""
    rows = [[f"a{i}", f"{200 + i / 7:.1f}", f"{40 + i / 9:.1f}"] for i in range(60)]
    rows[20][2] = "4o"
    table = "animal,weight,birth_weight\n" + "\n".join(map(",".join, rows)) + "\n"
    (tmp_path / "records.csv").write_text(table)
    parents = [f"a{i},," for i in range(60)] + ["a5,a1,", "a5,a2,"]
    (tmp_path / "ped.csv").write_text("animal,sire,dam\n" + "\n".join(parents) + "\n")
    with pytest.raises(DataError, match="'a5' has a row already") as raised:
        init(tmp_path / "records.csv", tmp_path / "ped.csv", traits=["weight"], output=tmp_path / "a.yaml")
    assert "birth_weight has numbers, and 1 value that is none (4o), the first in row 22" in str(raised.value)
    assert not (tmp_path / "a.yaml").exists()
