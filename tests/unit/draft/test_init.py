"""`mmgibbs init`: the file that it writes is accepted by `check`, for tables that it has never seen."""

import shlex
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from helpers.support import ROOT, shared_data
from reference import tabular

import mmgibbs
from mmgibbs.cli import main
from mmgibbs.config import load_config
from mmgibbs.config.schema import FILE, MODELINE
from mmgibbs.data.prepare import prepare
from mmgibbs.draft.make import draft
from mmgibbs.errors import ConfigError, DataError
from pedigree.read import read_pedigree

SAMPLES = ROOT / "data_samples"
TEXTBOOK = "data/textbook/mrode4_mixblup"


def of_sample(name, records="phenotypes.csv", pedigree="pedigree.csv", genotypes=None):
    files = [SAMPLES / name / f for f in (records, pedigree, genotypes) if f is not None]
    return files + [None] * (2 - len(files))


CASES = {
    "beef": (of_sample("beef"), {"birth_weight"}, {"contemporary_group", "sex", "dam_age_class"}, {"genetic"}),
    "calving_ease": (of_sample("calving_ease"), {"birth_weight"}, {"contemporary_group", "sex"}, {"genetic"}),
    "disease": (of_sample("disease"), {"pneumonia"}, {"sex", "season"}, {"genetic", "contemporary_group"}),
    "genomic": (of_sample("genomic", genotypes="genotypes.bed"), {"birth_weight"}, {"sex"}, {"genetic"}),
    "lines": (of_sample("lines", "trial.csv", None), {"yield"}, {"block"}, {"line"}),
    "longevity": (of_sample("longevity"), {"days"}, {"age_at_first_calving"}, {"genetic", "herd_year"}),
    "markers": (of_sample("markers", "calves.csv", None), {"weight"}, {"herd", "birth"}, set()),
    "mastitis": (of_sample("mastitis"), {"mastitis_cases"}, {"lactation"}, {"genetic", "permanent_environment"}),
    "pigs": (of_sample("pigs", "growth.csv"), {"daily_gain"}, {"batch", "sex"}, {"genetic"}),
    "selfed": (of_sample("selfed", "trial.csv"), {"yield"}, {"block"}, {"genetic", "permanent_environment"}),
    "sheep": (of_sample("sheep", "shearings.csv"), {"fleece_weight"}, {"flock_year"}, {"genetic"}),
}
SHARED = {
    "bluetits": ("data/bluetits/BTdata.csv", "data/bluetits/BTped.csv", "tarsus", {"sex", "hatchdate"}),
    "milk": ("data/milk/milk.csv", "data/milk/pedCows.csv", "milk", {"lact", "herd", "dim"}),
    "mastitis of sires": ("data/milk/mastitis.csv", "data/milk/pedSires.csv", "mastitis", {"DIM"}),
    "warcolak": ("data/warcolak/warcolak.csv", "data/warcolak/warcolak.csv", "trait1", {"sex"}),
    "gryphon": ("data/gryphon/gryphon.csv", "data/gryphon/gryphonped.csv", "bwt", {"sex", "byear"}),
    "laying dates": ("data/gryphon/gryphonRM.csv", "data/gryphon/gryphonped.csv", "laydate", {"age"}),
    "Mrode 4.1": (f"{TEXTBOOK}/Ex_4.1_Animal_Model/data_4.1.txt", "ped_4.1.txt", "column5", {"column2"}),
    "Mrode 5.1": (f"{TEXTBOOK}/Ex_5.1_Repeatability_Model/data_5.1.txt", "ped_5.1.txt", "column7", {"column5"}),
    "Mrode 6.1": (f"{TEXTBOOK}/Ex_6.1_Bivariate_Model/data_6.1.txt", "ped_6.1.txt", "column5", {"column2"}),
    "Mrode 11.1": (f"{TEXTBOOK}/Ex_11.1_GBLUP/data_11.1.txt", "ped_11.1.txt", "column6", set()),
    "Mrode 12.1": (f"{TEXTBOOK}/Ex_12.1_ssGBLUP/data_12.1.txt", "ped_12.1.txt", "column6", set()),
    "moths": ("data/traits/plodia_animal.csv", "data/traits/plodia_animal_pedigree.csv", "pupated", set()),
    "test days": ("data/textbook/mrode_ch9_testday/testday.csv", "pedigree.csv", "tdy", {"dim"}),
}  # fmt: skip


def accepted(made):
    """The analysis that was written, which `check` accepts."""
    assert made.refused is None
    assert mmgibbs.check(made.path)["equations"] > 0
    return load_config(made.path)


@pytest.mark.parametrize("name", CASES)
def test_samples(name, tmp_path):
    files, traits, fixed, random = CASES[name]
    analysis = accepted(draft(*files, output=tmp_path / "analysis.yaml"))
    assert {t.name for t in analysis.traits} == traits
    assert fixed <= set(analysis.model.fixed) and random <= set(analysis.model.random)
    assert set(analysis.model.markers) == ({"snps"} if name == "genomic" else set())


@pytest.mark.parametrize("name", SHARED)
def test_data_that_the_project_has_not_seen(name, tmp_path):
    records, pedigree, trait, fixed = SHARED[name]
    records = shared_data(records)
    pedigree = shared_data(pedigree) if "/" in pedigree else records.with_name(pedigree)
    made = draft(records, pedigree, output=tmp_path / "analysis.yaml")
    analysis = accepted(made)
    assert [t.name for t in analysis.traits] == [trait] and fixed <= set(analysis.model.fixed)
    assert any(r.relationship.of_pedigree for r in analysis.model.random.values())


def test_types_of_traits(tmp_path):
    kinds = {"disease": "binary", "longevity": "censored", "mastitis": "count", "beef": "normal"}
    for name, kind in kinds.items():
        made = draft(*CASES[name][0], output=tmp_path / f"{name}.yaml")
        assert load_config(made.path).traits[0].type == kind, name


def test_alternatives_are_valid_too(tmp_path):
    """The maternal model and the further traits, without their marks of comments."""
    made = draft(*of_sample("beef"), output=tmp_path / "a.yaml")
    lines = made.path.read_text(encoding="utf-8").splitlines()
    start = next(i for i, line in enumerate(lines) if line.endswith("instead of `genetic`:"))
    plain = [i for i, line in enumerate(lines) if line.startswith("    genetic:")]
    of_traits = [i for i, line in enumerate(lines) if line.startswith("  # ") and line.endswith("{}  # numbers")]
    assert len(of_traits) == 2
    for i in [*range(start + 1, start + 5), *of_traits]:
        lines[i] = lines[i].replace("# ", "", 1)
    made.path.write_text("\n".join(line for i, line in enumerate(lines) if i not in plain), encoding="utf-8")
    counts = mmgibbs.check(made.path)
    assert set(counts["data"]["observations"]) == {"birth_weight", "weaning_weight", "yearling_weight"}
    assert list(load_config(made.path).model.random["genetic"].effects) == ["direct", "maternal"]


def test_the_command_says_what_it_guessed_and_why(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    sample = SAMPLES / "sheep"
    assert main(["init", str(sample / "shearings.csv"), "--pedigree", str(sample / "pedigree.csv")]) == 0
    said = capsys.readouterr().out
    assert "730 animals have several records of fleece_weight" in said and "written to analysis.yaml" in said
    assert "459 dams have 1.8 progeny with records each; 328 have records of their own" in said
    text = Path("analysis.yaml").read_text(encoding="utf-8")
    assert text.startswith(MODELINE) and Path(FILE).exists()
    assert all(f"# {line}" in text for line in said.splitlines()[:5])
    assert f"name: {tmp_path.name}" in text or f'name: "{tmp_path.name}"' in text


def test_ids_that_are_large_numbers_are_described_with_all_their_digits(tmp_path):
    rows = [f"{4900000 + 7 * i},{i % 4},{20 + i % 9 + 0.5}" for i in range(60)]
    (tmp_path / "records.csv").write_text("\n".join(["animal,herd,weight", *rows]) + "\n")
    made = draft(tmp_path / "records.csv", output=tmp_path / "analysis.yaml")
    text = made.path.read_text(encoding="utf-8")
    assert "from 4900000 to 4900413, 60 different" in text and "e+06" not in text


def test_a_table_as_a_spreadsheet_of_europe_writes_it(tmp_path):
    """Line ends of Windows, semicolons, decimal commas, blank lines, ids with blanks, dates, a row twice."""
    weights = np.random.default_rng(5).normal(35, 4, 60)
    born = [f"{1 + i % 28:02}.{1 + i % 7:02}.2020" for i in range(60)]
    shown = [f"{weight:.1f}".replace(".", ",") for weight in weights]
    rows = [f"Kalb {i};Hof {i % 3};{born[i]};{shown[i]}" for i in range(60)]
    lines = ["\ufeffcalf;Betrieb;geboren;Gewicht (kg)", *rows[:20], "", *rows[20:], rows[3], ""]
    (tmp_path / "daten.csv").write_bytes("\r\n".join(lines).encode())
    pedigree = ["animal;sire;dam;birth", *(f"Kalb {i};Stier {i % 5};Kuh {i % 20};{born[i]}" for i in range(60))]
    (tmp_path / "pedigree.csv").write_text("\n".join(pedigree))
    made = draft(tmp_path / "daten.csv", tmp_path / "pedigree.csv", output=tmp_path / "analysis.yaml")
    analysis = accepted(made)
    (trait,) = analysis.traits
    assert trait.column == "Gewicht (kg)" and trait.type == "normal"
    assert set(analysis.model.random) == {"genetic"}  # one row twice is no permanent environment
    said = "\n".join(made.said)
    assert "numbers with decimal commas from" in said
    assert "warning: 1 row is the same as an earlier one in every column (row 63): entered twice?" in said
    births = prepare(analysis).pedigree.birth
    assert births is not None and 2020 == np.nanmin(births) < np.nanmax(births) < 2021


def test_it_never_replaces_a_file_unasked(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("analysis.yaml").write_text("mine")
    words = ["init", str(SAMPLES / "lines" / "trial.csv")]
    assert main(words) == 2
    assert "exists; choose another --output, or give --overwrite" in capsys.readouterr().err
    assert Path("analysis.yaml").read_text() == "mine" and list(tmp_path.iterdir()) == [tmp_path / "analysis.yaml"]
    assert main([*words, "--overwrite"]) == 0
    assert Path("analysis.yaml").read_text(encoding="utf-8").startswith(MODELINE)


def test_a_table_is_no_output(tmp_path):
    (tmp_path / "t.csv").write_text("animal,weight\na,1.5\nb,2.5\nc,2.0\n")
    with pytest.raises(ConfigError, match="is one of the tables"):
        draft(tmp_path / "t.csv", output=tmp_path / "t.csv", overwrite=True)
    assert (tmp_path / "t.csv").read_text().startswith("animal")


def write(tmp_path, records, pedigree=None):
    (tmp_path / "r.csv").write_text(records)
    if pedigree is not None:
        (tmp_path / "p.csv").write_text(pedigree)
    return tmp_path / "r.csv", None if pedigree is None else tmp_path / "p.csv"


ROWS = [f"a{i},{'m' if i % 2 else 'f'},{i % 3},{20 + (i * 7) % 11 + i / 10}" for i in range(40)]


def test_texts_that_mean_missing_and_unknown_parents(tmp_path):
    """'.' among numbers is a missing value, '.' among parents an unknown one; animals without a row are added."""
    rows = [*ROWS, "b1,m,1,.", "b2,f,1,."]
    pedigree = "id,sire,dam\n" + "\n".join(f"a{i},.,." if i < 10 else f"a{i},a{i % 4},." for i in range(40))
    made = draft(*write(tmp_path, "animal,sex,herd,weight\n" + "\n".join(rows), pedigree), output=tmp_path / "a.yaml")
    data = accepted(made).data
    assert data.missing == ("", "NA", ".") and data.unknown_parent == ("", "NA", "0", ".") and data.add_missing_animals


def test_what_was_asked_for_is_the_trait(tmp_path):
    files = of_sample("beef")
    made = draft(*files, traits=("yearling_weight", "weaning_weight"), output=tmp_path / "a.yaml")
    assert [t.name for t in accepted(made).traits] == ["yearling_weight", "weaning_weight"]
    with pytest.raises(ConfigError, match="has no column 'yearling'; nearest: 'yearling_weight'"):
        draft(*files, traits=("yearling",), output=tmp_path / "b.yaml")
    assert not (tmp_path / "b.yaml").exists()


def test_a_trait_without_a_value_is_refused(tmp_path):
    """A column of blanks and missing values, asked for by its name; one that is guessed is left out."""
    rows = [f"a{i},{i % 3},{20 + (i * 7) % 11 + i / 10},{'NA' if i % 2 else ''}" for i in range(60)]
    files = write(tmp_path, "animal,herd,weight,height\n" + "\n".join(rows))
    with pytest.raises(ConfigError, match=r"found no value in column 'height' of .*, needed at least one .*empty, NA"):
        draft(*files, traits=("height",), output=tmp_path / "a.yaml")
    assert [t.name for t in accepted(draft(*files, output=tmp_path / "b.yaml")).traits] == ["weight"]


def test_odd_names_are_quoted(tmp_path):
    """Names that YAML or the run folder would take otherwise: no, a colon, one of the reserved names."""
    rows = [f"a{i},{'m' if i % 2 else 'f'},{i % 3},{20 + (i * 7) % 11 + i / 10}" for i in range(60)]
    text = "animal,no sex,residual block,weight: kg\n" + "\n".join(rows)
    made = draft(*write(tmp_path, text), output=tmp_path / "a.yaml")
    analysis = accepted(made)
    assert analysis.traits[0].column == "weight: kg" and "no sex" in analysis.model.fixed
    rows = [row.replace(",", ";") for row in rows]
    made = draft(*write(tmp_path, "animal;sex;mode;weight,kg\n" + "\n".join(rows)), output=tmp_path / "b.yaml")
    assert accepted(made).traits[0].column == "weight,kg"


def test_results_and_true_values_are_no_traits(tmp_path):
    """t1_a and t1_d are the components of a simulated value; a lone b_a is a trait like others."""
    made = draft(shared_data("data/warcolak/warcolak.csv"), output=tmp_path / "a.yaml")
    text = made.path.read_text(encoding="utf-8")
    assert "t1_a, t1_d, t1_r look like components of a value: the true ones of a simulation?" in text
    assert "trait2: {}" in text and "# t1_a: {}  # numbers" not in text
    rows = [f"a{i},{i % 3},{20 + i / 7},{i / 3},{i / 9}" for i in range(40)]
    made = draft(*write(tmp_path, "animal,herd,weight,true_bv,size_a\n" + "\n".join(rows)), output=tmp_path / "b.yaml")
    text = made.path.read_text(encoding="utf-8")
    assert "left out (named for a result or a true value, not a record)" in text and "# size_a: {}" in text


def test_properties_of_a_place_and_numbers_of_rows_are_no_traits(tmp_path):
    """Counts of ticks on grouse chicks (Elston et al. 2001): broods within locations, whose height is known."""
    made = draft(shared_data("data/traits/grouseticks.csv"), output=tmp_path / "a.yaml")
    analysis = accepted(made)
    assert [(t.name, t.type) for t in analysis.traits] == [("TICKS", "count")]
    assert set(analysis.model.random) == {"BROOD", "LOCATION"} and set(analysis.model.fixed) == {"YEAR"}
    text = made.path.read_text(encoding="utf-8")
    assert "left out (each level of LOCATION has one value of it)" in text and "it numbers the records" in text


def test_what_is_the_same_in_all_records_of_an_animal_is_no_trait(tmp_path):
    """Anger of a person, beside 24 answers each."""
    made = draft(shared_data("data/traits/VerbAgg.csv"), output=tmp_path / "a.yaml")
    assert "each id has one value of it" in made.path.read_text(encoding="utf-8")
    assert [t.name for t in accepted(made).traits] != ["Anger"]


def test_sires_without_a_pedigree_are_random(tmp_path):
    made = draft(shared_data("data/traits/foulley_1983_bw_cd.csv"), output=tmp_path / "a.yaml")
    assert set(accepted(made).model.random) == {"sire"}


def test_ids_of_genotypes_tell_which_column_has_the_animals(tmp_path):
    """Without a pedigree and under any name; a column of few numbers that are ids too is not taken."""
    write = lambda name, lines: (tmp_path / name).write_text("\n".join(lines) + "\n")
    write("records.csv", ["SUBJECT.NAME,pen,weight", *(f"{i},{i % 7},{i % 11 + 0.5}" for i in range(60))])
    write("snps.csv", ["id,s1,s2", *(f"{i},{i % 3},{(i + 1) % 3}" for i in range(70))])
    made = draft(tmp_path / "records.csv", None, tmp_path / "snps.csv", output=tmp_path / "a.yaml")
    assert accepted(made).model.markers["snps"].level == "SUBJECT.NAME"
    assert "60 of its 60 ids have genotypes" in made.path.read_text()
    assert "with the pedigree" not in made.path.read_text()
    assert "# genetic: {level: SUBJECT.NAME, relationship: genomic}" in made.path.read_text()
    write("others.csv", ["id,s1,s2", *(f"x{i},{i % 3},{(i + 1) % 3}" for i in range(50))])
    with pytest.raises(ConfigError, match="found no column of the records with the ids of animals"):
        draft(tmp_path / "records.csv", None, tmp_path / "others.csv", output=tmp_path / "b.yaml")


@pytest.mark.parametrize("name", ["animal", "line", "SUBJECT.NAME"])
@pytest.mark.parametrize("prefix", ["", "a"])
def test_animals_of_which_few_are_genotyped_are_found(name, prefix, tmp_path):
    """100 of 240; every number of a litter is that of a genotyped animal too."""
    rows = [f"{prefix}{i},{i % 30 + 1},{i % 11 + 0.5}" for i in range(240)]
    (tmp_path / "r.csv").write_text("\n".join([f"{name},litter,weight", *rows]) + "\n")
    snps = [f"{prefix}{i},{i % 3},{(i + 1) % 3}" for i in range(100)]
    (tmp_path / "snps.csv").write_text("\n".join(["id,s1,s2", *snps]) + "\n")
    made = draft(tmp_path / "r.csv", None, tmp_path / "snps.csv", output=tmp_path / "a.yaml")
    assert "snps.csv: genotypes of 100 of the 240 animals with records" in made.said
    assert f"level: {name}, without_genotypes: keep" in made.path.read_text()
    assert "100 of its 240 ids have genotypes" in made.path.read_text()


@pytest.mark.parametrize("name", ["animal", "SUBJECT.NAME"])
def test_genotyped_sires_are_not_the_animals(name, tmp_path):
    """All 12 sires have genotypes, and 90 of 240 progeny."""
    rows = [f"a{i},s{i % 12},{i % 11 + 0.5}" for i in range(240)]
    (tmp_path / "r.csv").write_text("\n".join([f"{name},sire,weight", *rows]) + "\n")
    genotyped = [*(f"s{i}" for i in range(12)), *(f"a{i}" for i in range(90))]
    snps = [f"{animal},{i % 3},{(i + 1) % 3}" for i, animal in enumerate(genotyped)]
    (tmp_path / "snps.csv").write_text("\n".join(["id,s1,s2", *snps]) + "\n")
    made = draft(tmp_path / "r.csv", None, tmp_path / "snps.csv", output=tmp_path / "a.yaml")
    assert "snps.csv: genotypes of 90 of the 240 animals with records" in made.said
    assert "relationship: genomic" not in made.path.read_text()


def test_a_trait_with_some_numbers_of_genotyped_animals_is_no_animal(tmp_path):
    """Neither are sires, where no column has the genotyped animals."""
    rows = [f"{i % 12},{i % 13 + 0.5},{200 + i}" for i in range(40)]
    (tmp_path / "r.csv").write_text("\n".join(["sire,weight,height", *rows]) + "\n")
    (tmp_path / "snps.csv").write_text("\n".join(["id,s1,s2", *(f"{i},{i % 3},1" for i in range(210))]) + "\n")
    with pytest.raises(ConfigError, match="found no column of the records with the ids of animals"):
        draft(tmp_path / "r.csv", None, tmp_path / "snps.csv", output=tmp_path / "a.yaml")


def test_records_that_could_be_the_pedigree_are_named(tmp_path):
    parents = lambda i: "," if i < 9 else f"a{i % 4},a{4 + i % 5}"
    rows = [f"a{i},{parents(i)},{i % 13 + 0.5}" for i in range(60)]
    (tmp_path / "r.csv").write_text("\n".join(["animal,sire,dam,weight", *rows]) + "\n")
    made, records = draft(tmp_path / "r.csv", output=tmp_path / "a.yaml"), tmp_path / "r.csv"
    said = f"r.csv has the parents of its animals: --pedigree {shlex.quote(str(records))} takes them from there"
    assert said in made.said
    with_it = draft(records, records, output=tmp_path / "b.yaml")
    assert set(accepted(with_it).model.random) == {"genetic"} and not any("takes them" in s for s in with_it.said)


def test_paths_with_spaces_are_quoted_in_offered_commands(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = [f"a{i},{'' if i < 9 else f'a{i % 4}'},{'' if i < 9 else f'a{4 + i % 5}'},{i % 13 + 0.5}" for i in range(60)]
    Path("my records.csv").write_text("\n".join(["animal,sire,dam,weight", *rows]) + "\n")
    assert main(["init", "my records.csv", "--output", "my model.yaml"]) == 0
    said = capsys.readouterr().out
    assert "--pedigree 'my records.csv' takes them" in said and "then mmgibbs run 'my model.yaml'" in said
    assert "#   mmgibbs check 'my model.yaml'" in Path("my model.yaml").read_text(encoding="utf-8")


def test_a_random_effect_by_name_with_few_levels_is_fixed(tmp_path):
    rows = [f"a{i},{i % 6 + 2},c{i % 40},{i % 17 + 0.5}" for i in range(240)]
    (tmp_path / "r.csv").write_text("\n".join(["animal,litter,cage,weight", *rows]) + "\n")
    model = accepted(draft(tmp_path / "r.csv", output=tmp_path / "a.yaml")).model
    assert (set(model.fixed), set(model.random)) == ({"litter"}, {"cage"})


def test_lines_with_one_record_each_have_no_effect_beside_the_residual(tmp_path):
    for times, random in ((1, set()), (2, {"line"})):
        rows = [f"l{i},{i % 17 + 0.5 + t}" for i in range(120) for t in range(times)]
        (tmp_path / "r.csv").write_text("\n".join(["line,yield", *rows]) + "\n")
        made = draft(tmp_path / "r.csv", output=tmp_path / "a.yaml", overwrite=True)
        assert set(accepted(made).model.random) == random
        assert "# line: {relationship: inverse.txt}" in made.path.read_text()


def test_a_pedigree_whose_columns_are_not_known_says_what_is_needed(tmp_path):
    records = "animal,sex,herd,weight\n" + "\n".join(ROWS)
    with pytest.raises(
        DataError, match="which column is the id.*\n.*\n?needed such names, or an analysis file of your"
    ):
        draft(*write(tmp_path, records, "father,mother\na1,a2\na3,a4\n"), output=tmp_path / "a.yaml")


def test_sires_and_maternal_grandsires_of_charolais(tmp_path):
    """Foulley, Gianola & Thompson (1983): the pedigree that init asks for relates the sires of its records."""
    pedigree = shared_data("data/traits/foulley_1983_pedigree.csv")
    records = pedigree.with_name("foulley_1983_bw_cd.csv")
    made = draft(records, pedigree, output=tmp_path / "a.yaml")
    assert any("maternal_grandsire is the maternal grandsire" in line for line in made.said)
    assert accepted(made).data.pedigree is None
    bulls = pl.read_csv(pedigree).rows()
    rows = [f"{sire},{of_sire},{f'dam_of_{sire}' if mgs else 0}" for sire, of_sire, mgs in bulls]
    dams = [f"dam_of_{sire},{mgs},0" for sire, _, mgs in bulls if mgs]
    (tmp_path / "p.csv").write_text("id,sire,dam\n" + "\n".join([*rows, *dams]))
    analysis = accepted(draft(records, tmp_path / "p.csv", output=tmp_path / "b.yaml"))
    assert analysis.model.random["sire"].relationship.of_pedigree


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


@pytest.mark.parametrize("status, still", [("culled", "0"), ("event", "0"), ("censored", "1"), ("Cens", "1")])
def test_a_time_with_a_status_of_0_and_1_is_offered_as_censored(tmp_path, status, still):
    records, _ = write(tmp_path, f"animal,herd,days,{status}\n" + "\n".join(LIVES))
    made = draft(records, output=tmp_path / "a.yaml")
    assert [(t.name, t.type) for t in accepted(made).traits] == [("days", "normal")]
    n = 20 if still == "0" else 40
    said = f"days may be a censored time: {status} is 0 or 1, and {still} in {n} records may say that it has not ended"
    assert any(line.startswith(said) for line in made.said)
    trait = uncommented(made.path, "days: {type: censored")
    assert trait.type == "censored" and trait.censored == status and trait.log
    assert (trait.values.right, trait.values.none) == ((still,), ("1" if still == "0" else "0",))


def test_a_time_of_0_has_no_logarithm_and_a_covariate_goes(tmp_path):
    rows = [f"a{i},h{i % 4},{40 + i % 9 + i / 10},{7 * (i % 25)},{int(i % 3 > 0)}" for i in range(60)]
    made = draft(*write(tmp_path, "animal,herd,weight,age,dead\n" + "\n".join(rows)), output=tmp_path / "a.yaml")
    text = made.path.read_text(encoding="utf-8")
    assert 'none: ["1"]}}  # without age in model' in text and "log: true" not in text
    assert list(accepted(made).model.fixed) == ["herd", "age"]


@pytest.mark.parametrize("header", ["days,herd_status", "weight,culled", "days,sex", "days_in_milk,culled"])
def test_no_time_or_no_status_is_no_censored_time(tmp_path, header):
    """Status is a class of three, the other column no time, or the other no status."""
    rows = LIVES if header != "days,herd_status" else [row[:-1] + str(i % 3) for i, row in enumerate(LIVES)]
    made = draft(*write(tmp_path, f"animal,herd,{header}\n" + "\n".join(rows)), output=tmp_path / "a.yaml")
    assert "censored" not in made.path.read_text(encoding="utf-8")


def test_cases_of_a_size_are_offered_as_a_rate(tmp_path):
    rows = [f"a{i},h{i % 4},{i % 4 if i % 3 else 0},{5 + i % 17}" for i in range(60)]
    made = draft(*write(tmp_path, "cow,herd,cases,group_size\n" + "\n".join(rows)), output=tmp_path / "a.yaml")
    assert [t.name for t in accepted(made).traits] == ["cases"]
    assert "cases is never above group_size: cases of so many? (see traits)" in made.said
    assert "left out (may say of how many cases are)" in made.path.read_text(encoding="utf-8")
    trait = uncommented(made.path, "cases: {type: count, exposure")
    assert (trait.type, trait.exposure) == ("count", "group_size")
    rows[5] = "a5,h1,30,20"  # more than there are
    made = draft(*write(tmp_path, "cow,herd,cases,group_size\n" + "\n".join(rows)), output=tmp_path / "b.yaml")
    assert "exposure" not in made.path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["mgs", "Maternal_Grandsire", "sire of dam"])
def test_a_pedigree_of_sires_and_maternal_grandsires_is_named(tmp_path, name):
    """The file says what it is and what to do; what it says to write is accepted."""
    bulls = [(f"a{i}", f"a{i // 10}" if i > 9 else "", f"a{i // 7}" if i > 9 else "") for i in range(40)]
    pedigree = f"animal,sire,{name}\n" + "\n".join(",".join(bull) for bull in bulls)
    records = "animal,sex,herd,weight\n" + "\n".join(ROWS)
    made = draft(*write(tmp_path, records, pedigree), output=tmp_path / "a.yaml")
    assert any(f"p.csv: {name} is the maternal grandsire: a pedigree of sires" in line for line in made.said)
    analysis, text = accepted(made), made.path.read_text(encoding="utf-8")
    assert analysis.data.pedigree is None and "# It is not used" in text and "X,SIRE,dam_of_X" in text
    dams = [f"dam_of_{id},{grandsire}," for id, _, grandsire in bulls if grandsire]
    rows = [f"{id},{sire},{f'dam_of_{id}' if grandsire else ''}" for id, sire, grandsire in bulls]
    made = draft(*write(tmp_path, records, "id,sire,dam\n" + "\n".join([*rows, *dams])), output=tmp_path / "b.yaml")
    assert accepted(made).data.pedigree is not None
    kin = read_pedigree(tmp_path / "p.csv")
    A = tabular.relationship(kin.sire, kin.dam)
    at = {id: i for i, id in enumerate(kin.ids.to_list())}
    assert A[at["a39"], at["a3"]] == 0.5 and A[at["a39"], at["a5"]] == 0.25  # its sire, its maternal grandsire


def test_one_dam_is_spoken_of_in_the_singular(tmp_path):
    pedigree = "id,sire,dam\ns,,\nd,,\n" + "\n".join(f"a{i},s,d" for i in range(40))
    for more, own in (([], "it has no records of its own"), (["d,f,1,20.5"], "it has records of its own")):
        records = "animal,sex,herd,weight\n" + "\n".join([*ROWS, *more])
        made = draft(*write(tmp_path, records, pedigree), output=tmp_path / "a.yaml", overwrite=True)
        assert f"1 dam has 40 progeny with records; {own}" in made.said


def test_a_file_that_the_tables_refuse_is_an_error_of_the_command(tmp_path, monkeypatch, capsys):
    """A class that has one level where the trait is known: `check` refuses the file, and init says what comes next."""
    import mmgibbs.draft.make as module

    monkeypatch.setattr(module, "_problem", lambda path: "model.fixed.herd: wrong")
    records, _ = write(tmp_path, "animal,sex,herd,weight\n" + "\n".join(ROWS))
    assert main(["init", str(records), "--output", str(tmp_path / "a.yaml")]) == 2
    said = capsys.readouterr().out
    assert "model.fixed.herd: wrong\nnext: change it, then mmgibbs check" in said and "mmgibbs run" not in said


def test_no_file_without_its_schema(tmp_path, monkeypatch):
    import mmgibbs.draft.make as module

    def full(folder):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "write_schema", full)
    records, _ = write(tmp_path, "animal,sex,herd,weight\n" + "\n".join(ROWS))
    with pytest.raises(ConfigError, match="cannot write .*No space left"):
        draft(records, output=tmp_path / "a.yaml")
    assert [p.name for p in tmp_path.iterdir()] == ["r.csv"]


def test_few_records_and_strange_ids_are_warned_of(tmp_path):
    pedigree = "id,sire,dam\n" + "\n".join(f"x{i},," for i in range(40))
    made = draft(*write(tmp_path, "animal,sex,herd,weight\n" + "\n".join(ROWS), pedigree), output=tmp_path / "a.yaml")
    assert any("too few to estimate variances" in line for line in made.said)
    assert any(
        "most animals with records are not in the pedigree: are ids written in the same way" in line
        for line in made.said
    )
    assert accepted(made).data.add_missing_animals


def test_a_table_without_a_trait_and_a_broken_pedigree(tmp_path):
    names = pl.DataFrame({"animal": [f"a{i}" for i in range(9)]})
    names.write_csv(tmp_path / "r.csv")
    with pytest.raises(ConfigError, match="no column looks like a trait"):
        draft(tmp_path / "r.csv", output=tmp_path / "a.yaml")
    with pytest.raises(DataError, match="p.csv row"):
        draft(*write(tmp_path, "animal,w\na,1.5\nb,2\n", "id,sire,dam\na,b,\nb,a,\n"), output=tmp_path / "a.yaml")
    with pytest.raises(DataError, match="none.csv"):
        draft(tmp_path / "none.csv", output=tmp_path / "a.yaml")
    assert not (tmp_path / "a.yaml").exists()


def test_slips_in_a_column_of_numbers_are_named(tmp_path):
    """The column would be a trait of 200 categories, or be left out without a word."""
    weights = [f"{7 + i / 100:.2f}" for i in range(200)]
    weights[16], weights[39] = "8..3", "missing"
    table = pl.DataFrame({"animal": [f"a{i}" for i in range(200)], "weight": weights, "length": range(200, 400)})
    table.with_columns(pl.col("length") ** 0.5).write_csv(tmp_path / "r.csv")
    made = draft(tmp_path / "r.csv", output=tmp_path / "a.yaml")
    said, slips = "\n".join(made.said), "weight {} numbers, and 2 values that are none (8..3, missing), {}"
    assert slips.format("", "200 different: left out (numbers but for a few values") in said
    assert slips.format("has", "the first in row 18: correct what is wrong, or write it into data.missing") in said
    assert made.refused is None and [t.name for t in load_config(made.path).traits] == ["length"]
    asked = draft(tmp_path / "r.csv", traits=["weight"], output=tmp_path / "b.yaml")
    assert "r.csv row 18: found '8..3' in column 'weight' (traits.weight)" in asked.refused


def test_a_slip_in_the_only_trait_is_named(tmp_path):
    weights = [f"{7 + i / 100:.2f}" for i in range(200)]
    weights[16] = "8..3"
    pl.DataFrame({"animal": [f"a{i}" for i in range(200)], "weight": weights}).write_csv(tmp_path / "r.csv")
    slip = r"trait, found weight has numbers, and 1 value that is none \(8\.\.3\), the first in row 18; needed these"
    with pytest.raises(ConfigError, match=slip):
        draft(tmp_path / "r.csv", output=tmp_path / "a.yaml")


def test_an_infinite_number_is_such_a_slip(tmp_path):
    weights = [f"{7 + i / 100:.2f}" for i in range(60)]
    weights[3] = "Inf"
    pl.DataFrame({"animal": [f"a{i}" for i in range(60)], "weight": weights}).write_csv(tmp_path / "r.csv")
    said = "\n".join(draft(tmp_path / "r.csv", traits=["weight"], output=tmp_path / "a.yaml").said)
    assert "1 value that is none (Inf), the first in row 5" in said


def test_ids_with_a_letter_are_no_slips(tmp_path):
    ids = [str(100 + i) for i in range(59)] + ["12b"]
    pl.DataFrame({"animal": ids, "tag": ids[::-1], "weight": [i / 7 for i in range(60)]}).write_csv(tmp_path / "r.csv")
    assert "that is none" not in "\n".join(draft(tmp_path / "r.csv", output=tmp_path / "a.yaml").said)


def test_ids_with_a_point_and_a_letter_are_no_slips(tmp_path):
    ids = [f"2000.{i:03d}" for i in range(60)] + ["2000.005b"]
    table = pl.DataFrame({"animal": ids, "tag": ids[::-1], "weight": [i / 7 for i in range(61)]})
    table.write_csv(tmp_path / "r.csv")
    said = "\n".join(draft(tmp_path / "r.csv", output=tmp_path / "a.yaml").said)
    assert "that is none" not in said and "animal  text, 61 different" in said


def test_codes_of_classes_with_a_letter_are_no_slips(tmp_path):
    """Few values, unless the name says that they were measured."""
    zones = [f"{1 + i % 3}.{1 + i // 3 % 3}" for i in range(198)] + ["3.x", "3.x"]
    table = pl.DataFrame({"animal": range(200), "zone": zones, "score": zones, "weight": [i / 7 for i in range(200)]})
    table.write_csv(tmp_path / "r.csv")
    made = draft(tmp_path / "r.csv", traits=["weight"], output=tmp_path / "a.yaml")
    assert list(load_config(made.path).model.fixed) == ["zone"]
    assert any("zone " in line and "text, 10 different" in line for line in made.said)
    (slips,) = (line for line in made.said if line.startswith("warning: "))
    assert slips.startswith("warning: score has numbers, and 2 values that are none (3.x), the first in row 200")


def test_a_code_for_a_missing_value_is_written_below_the_name_of_the_trait(tmp_path):
    """A name that an analysis file cannot have is replaced."""
    milk = [-999.0 if i == 5 else 20 + i / 7 for i in range(200)]
    pl.DataFrame({"animal": range(1, 401, 2), "milk[kg]": milk}).write_csv(tmp_path / "r.csv")
    made = draft(tmp_path / "r.csv", output=tmp_path / "a.yaml")
    assert [t.name for t in load_config(made.path).traits] == ["milk_kg_"]
    (said,) = (line for line in made.said if "mean a missing value" in line)
    assert "of column 'milk[kg]'" in said and "Then write traits.milk_kg_.missing: ['-999']" in said


@pytest.mark.parametrize("spelling", ["00{}", "{}.0", "COW{}"])
def test_animals_that_the_pedigree_spells_otherwise(spelling, tmp_path):
    """The sires alone agree: a sire model, which must not come without a word."""
    cows = range(100, 160)
    rows = [f"{spelling.format(c)},{1 + c % 3},{20 + c / 7:g}" for c in cows]
    (tmp_path / "records.csv").write_text("animal,sire,milk\n" + "\n".join(rows))
    kin = [f"{s},0,0" for s in (1, 2, 3)] + [f"{c},{1 + c % 3},0" for c in cows]
    (tmp_path / "pedigree.csv").write_text("id,sire,dam\n" + "\n".join(kin))
    made = draft(tmp_path / "records.csv", tmp_path / "pedigree.csv", output=tmp_path / "analysis.yaml")
    (said,) = (line for line in made.said if "a sire model therefore" in line)
    first = spelling.format(100)
    if spelling == "COW{}":
        assert f"0 of the 60 ids in animal (the records have '{first}', which the pedigree lacks)" in said
    else:
        assert said.startswith("warning: ") and f"the records have '{first}', the pedigree '100')" in said


def test_a_pedigree_whose_sires_are_the_dams_of_the_records(tmp_path):
    rows = [f"a{i},d{i % 20},{20 + i / 7:g}" for i in range(60)]
    (tmp_path / "records.csv").write_text("animal,dam,weight\n" + "\n".join(rows))
    kin = [f"a{i},d{i % 20},s{i % 6}" for i in range(60)]
    for head, wrong in (("", True), ("animal,dam,sire\n", False)):
        (tmp_path / "pedigree.csv").write_text(head + "\n".join(kin))
        made = draft(
            tmp_path / "records.csv", tmp_path / "pedigree.csv", output=tmp_path / "analysis.yaml", overwrite=True
        )
        said = [line for line in made.said if "agrees with the sires of pedigree.csv" in line]
        assert bool(said) == wrong


@pytest.mark.parametrize("parents", [["mother"], ["father"], ["father", "mother"], ["mother", "father"]])
def test_parents_of_selfed_plants_keep_the_roles_of_their_names(parents, tmp_path):
    """Both parents of the pedigree are the same: each column agrees with both."""
    kin = [f"p{i},,,0" for i in range(20)] + [f"a{i},p{i % 20},p{i % 20},1" for i in range(200)]
    rows = [",".join([f"a{i}", *[f"p{i % 20}"] * len(parents), f"{20 + i / 7:g}"]) for i in range(200)]
    records = "\n".join([",".join(["id", *parents, "weight"]), *rows])
    made = draft(*write(tmp_path, records, "\n".join(["id,sire,dam,selfing", *kin])), output=tmp_path / "a.yaml")
    said = "\n".join(made.said)
    assert "exchanged" not in said and made.refused is None
    for name, role in (("father", "the sire"), ("mother", "the dam")):
        lines = [line for line in made.said if line.split()[0] == name]
        assert len(lines) == (name in parents) and all(f"({role})" in line for line in lines)


def test_one_known_parent_does_not_make_an_exchanged_pedigree(tmp_path):
    """One sire of 200 is known, and has the number of the dam; 60 of them would be no chance."""
    rows = [f"a{i},{i % 20},{20 + i / 7:g}" for i in range(200)]
    for known, wrong in ((1, False), (9, False), (60, True)):
        kin = [f"a{i},{i % 20 if i < known else ''}," for i in range(200)]
        made = draft(
            *write(tmp_path, "\n".join(["animal,dam,weight", *rows]), "\n".join(["animal,sire,dam", *kin])),
            output=tmp_path / "a.yaml",
            overwrite=True,
        )
        assert any("exchanged" in line for line in made.said) == wrong


def of_columns(tmp_path, traits=(), **columns):
    """What init says of, and writes from, 300 records with a weight and these columns."""
    r = np.random.default_rng(8)
    frame = pl.DataFrame({"id": [f"a{i}" for i in range(300)]} | columns | {"kg": r.normal(50, 4, 300).round(1)})
    frame.write_csv(tmp_path / "records.csv")
    made = draft(tmp_path / "records.csv", traits=traits, output=tmp_path / "analysis.yaml", overwrite=True)
    accepted(made)
    return "\n".join(made.said), load_config(made.path), made.path.read_text()


def test_codes_of_two_classes_are_taken_by_their_names(tmp_path):
    of = np.random.default_rng(2).integers(0, 2, (5, 300))
    _, analysis, _ = of_columns(tmp_path, male=of[0], is_female=of[1], yob=98 + of[2], castrated=of[3], horned=of[4])
    assert set(analysis.model.fixed) == {"male", "is_female", "yob", "castrated"}


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


@pytest.mark.parametrize("form", ["%Y/%m/%d", "%d.%m.%y", "%Y-%m-%d %H:%M", "%d-%b-%Y"])
def test_dates_in_many_forms_are_seen(tmp_path, form):
    days = [(np.datetime64("2019-01-01") + i).item().strftime(form) for i in range(300)]
    said, analysis, _ = of_columns(tmp_path, day=days)
    assert "dates, 300 different" in said and "year and season, or an age in days, as columns of their own" in said
    assert analysis.model.fixed == {}


def test_init_names_levels_that_are_alike_or_unknown(tmp_path):
    said, _, _ = of_columns(tmp_path, sex=["m", "M", "f", "?"] * 75)
    assert "warning: levels of column 'sex' differ by case or blanks alone" in said and "'M' (75 records)" in said
    assert "warning: column 'sex' has 1 level that may mean a missing value" in said
    assert "write data.missing: ['', 'NA', '?']" in said
    said, _, _ = of_columns(tmp_path, sex=["m", "f"] * 150)
    assert "warning" not in said


def test_decimal_commas_in_quotation_marks(tmp_path):
    text = "id,kg,age\n" + "".join(f'a{i},"{50 + i % 9},{i % 7}","{i % 30},5"\n' for i in range(120))
    (tmp_path / "records.csv").write_text(text)
    made = draft(tmp_path / "records.csv", output=tmp_path / "analysis.yaml")
    accepted(made)
    assert "kg   numbers with decimal commas from 50 to 58.6" in "\n".join(made.said)


def test_ids_under_the_name_that_the_pedigree_has_for_them(tmp_path):
    """Numbers, in a column that no list of names knows; tanks that are families once more."""
    r = np.random.default_rng(4)
    family = np.arange(300) // 10
    fish = pl.DataFrame({"Fish": 1 + np.arange(300), "Father": 1000 + family // 2, "Mother": 2000 + family})
    records = fish.select("Fish").with_columns(family=family, tank=1000 + family, kg=r.normal(1, 0.1, 300).round(3))
    fish.write_csv(tmp_path / "pedigree.csv")
    records.write_csv(tmp_path / "records.csv")
    made = draft(tmp_path / "records.csv", tmp_path / "pedigree.csv", output=tmp_path / "a.yaml")
    assert "Fish    whole numbers from 1 to 300, 300 different: animal" in "\n".join(made.said)
    assert "tank    whole numbers from 1000 to 1029, 30 different: left out (the same groups of records as family)" in (
        "\n".join(made.said)
    )
    assert {"genetic", "family"} == set(load_config(made.path).model.random)


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
