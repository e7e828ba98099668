"""`mmgibbs init`: the file that it writes is accepted by `check`, for tables that it has never seen."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from helpers.drafts import ROWS, SAMPLES, accepted, made_of, of_sample, write
from helpers.selection import first
from helpers.support import shared_data

import mmgibbs
from mmgibbs.cli import main
from mmgibbs.config import load_config
from mmgibbs.config.schema import FILE, MODELINE
from mmgibbs.data.prepare import prepare
from mmgibbs.draft.make import init
from mmgibbs.errors import ConfigError, DataError

TEXTBOOK = "data/textbook/mrode4_mixblup"

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

TYPES = {"disease": "binary", "longevity": "censored", "mastitis": "count"}

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

# Textbook examples of a few records, which flat priors of the variances leave without a posterior; where the records
# do not determine the variances at all, BLUP is drafted, else REML.
METHODS = {"Mrode 4.1": "blup", "Mrode 5.1": "reml", "Mrode 6.1": "blup", "test days": "reml"}


@pytest.mark.parametrize("name", CASES)
def test_samples(name, tmp_path):
    files, traits, fixed, random = CASES[name]
    analysis = accepted(init(*files, output=tmp_path / "analysis.yaml"))
    assert {t.name for t in analysis.traits} == traits
    assert analysis.traits[0].type == TYPES.get(name, "normal")
    assert fixed <= set(analysis.model.fixed) and random <= set(analysis.model.random)
    assert set(analysis.model.markers) == ({"snps"} if name == "genomic" else set())


@pytest.mark.parametrize("name", first(3, SHARED))
def test_data_that_the_project_has_not_seen(name, tmp_path):
    records, pedigree, trait, fixed = SHARED[name]
    records = shared_data(records)
    pedigree = shared_data(pedigree) if "/" in pedigree else records.with_name(pedigree)
    made = init(records, pedigree, output=tmp_path / "analysis.yaml")
    analysis = accepted(made)
    assert analysis.sampler.method == METHODS.get(name, "gibbs")
    assert [t.name for t in analysis.traits] == [trait] and fixed <= set(analysis.model.fixed)
    assert any(r.relationship.of_pedigree for r in analysis.model.random.values())


FIVE = "id,sire,dam\n1,0,0\n2,0,0\n3,0,0\n4,1,0\n5,3,2\n6,1,2\n7,4,5\n8,3,6\n"
WEIGHTS = "calf,sex,gain\n4,M,4.5\n5,F,2.9\n6,F,3.9\n7,M,3.5\n8,M,5.0\n"  # Mrode (2014), example 3.1


def test_a_textbook_example_runs_as_it_is_drafted(tmp_path):
    """Five records do not determine variances: BLUP at variances that a user then replaces."""
    made = made_of(tmp_path, WEIGHTS, FIVE)
    text = made.path.read_text(encoding="utf-8")
    assert "write the variances that other studies have found in their place." in text
    assert accepted(made).sampler.method == "blup"
    overrides = ["variances.genetic=20.0", "variances.residual=40.0"]
    solutions = mmgibbs.run(made.path, overrides, directory=tmp_path / "run", progress=False).solutions
    found = solutions.filter(term="genetic").sort("level")["mean"]
    printed = [0.098, -0.019, -0.041, -0.009, -0.186, 0.177, -0.249, 0.183]  # the book's table of solutions
    np.testing.assert_allclose(found, printed, atol=6e-4)


def test_few_records_of_counts_have_proper_priors(tmp_path):
    rows = "".join(f"{i},{n}\n" for i, n in zip((4, 5, 6, 7, 8), (0, 3, 1, 0, 7), strict=True))
    made = made_of(tmp_path, "calf,cases\n" + rows, FIVE)
    analysis = accepted(made)
    assert analysis.traits[0].type == "count" and analysis.sampler.method == "gibbs"
    assert "genetic: {prior: {half_t: {}}}" in made.path.read_text(encoding="utf-8")


def test_an_effect_that_records_lack_is_told_of(tmp_path):
    rows = [row if i % 9 else row.replace(",0,", ",,").replace(",1,", ",,") for i, row in enumerate(ROWS)]
    made = made_of(tmp_path, "animal,sex,herd,weight\n" + "\n".join(rows))
    assert any(line.startswith("warning: herd has no value in ") for line in made.said)
    text = made.path.read_text(encoding="utf-8")
    (line,) = [line for line in text.splitlines() if line.startswith("    # herd: {without_value: drop}")]
    made.path.write_text(text.replace(line, line.replace("# ", "", 1)))
    assert "herd" in accepted(made).model.fixed


@pytest.mark.parametrize(("mark", "form"), [(",", "{:,.2f}"), (".", "{:,.2f}"), ("\u202f", "{:,.1f}")])
def test_separated_thousands_are_understood(mark, form, tmp_path):
    point = "," if mark == "." else "."
    cells = [form.format(4000 + 137.35 * i).replace(",", "_").replace(".", point).replace("_", mark) for i in range(40)]
    rows = "".join(f"a{i};{'mf'[i % 2]};{cell}\n" for i, cell in enumerate(cells))
    made = made_of(tmp_path, "animal;sex;milk\n" + rows)
    assert not any("guess that" in line for line in made.said)
    y = prepare(load_config(made.path)).design.y[:, 0]
    np.testing.assert_allclose(y - y[0], [137.35 * i for i in range(40)], atol=0.101)


def test_alternatives_are_valid_too(tmp_path):
    """The maternal model and the further traits, without their marks of comments."""
    made = init(*of_sample("beef"), output=tmp_path / "a.yaml")
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
    made = init(tmp_path / "records.csv", output=tmp_path / "analysis.yaml")
    text = made.path.read_text(encoding="utf-8")
    assert "from 4900000 to 4900413, 60 different" in text and "e+06" not in text


def test_it_never_replaces_a_file_unasked(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("analysis.yaml").write_text("mine")
    words = ["init", str(SAMPLES / "lines" / "trial.csv")]
    for more in ([], ["--overwrite"]):
        assert main([*words, *more]) == 2 and Path("analysis.yaml").read_text() == "mine"
        assert "'analysis.yaml' exists and is not an analysis that mmgibbs wrote" in capsys.readouterr().err
    Path("analysis.yaml").write_text(MODELINE)
    assert main(words) == 2
    assert "exists; choose another --output, or give --overwrite" in capsys.readouterr().err
    assert Path("analysis.yaml").read_text() == MODELINE and list(tmp_path.iterdir()) == [tmp_path / "analysis.yaml"]
    assert main([*words, "--overwrite"]) == 0
    assert Path("analysis.yaml").read_text(encoding="utf-8").startswith(MODELINE)


def test_a_table_is_no_output(tmp_path):
    (tmp_path / "t.csv").write_text("animal,weight\na,1.5\nb,2.5\nc,2.0\n")
    with pytest.raises(ConfigError, match="is one of the files that are read"):
        init(tmp_path / "t.csv", output=tmp_path / "t.csv", overwrite=True)
    assert (tmp_path / "t.csv").read_text().startswith("animal")


def test_odd_names_are_quoted(tmp_path):
    """Names that YAML or the run folder would take otherwise: no, a colon, one of the reserved names."""
    rows = [f"a{i},{'m' if i % 2 else 'f'},{i % 3},{20 + (i * 7) % 11 + i / 10}" for i in range(60)]
    text = "animal,no sex,residual block,weight: kg\n" + "\n".join(rows)
    made = made_of(tmp_path, text)
    analysis = accepted(made)
    assert analysis.traits[0].column == "weight: kg" and "no sex" in analysis.model.fixed
    rows = [row.replace(",", ";") for row in rows]
    made = made_of(tmp_path, "animal;sex;mode;weight,kg\n" + "\n".join(rows))
    assert accepted(made).traits[0].column == "weight,kg"


def test_paths_with_spaces_are_quoted_in_offered_commands(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = [f"a{i},{'' if i < 9 else f'a{i % 4}'},{'' if i < 9 else f'a{4 + i % 5}'},{i % 13 + 0.5}" for i in range(60)]
    Path("my records.csv").write_text("\n".join(["animal,sire,dam,weight", *rows]) + "\n")
    assert main(["init", "my records.csv", "--output", "my model.yaml"]) == 0
    said = capsys.readouterr().out
    assert "--pedigree 'my records.csv' takes them" in said and "then mmgibbs run 'my model.yaml'" in said
    assert "#   mmgibbs check 'my model.yaml'" in Path("my model.yaml").read_text(encoding="utf-8")


def test_a_file_that_the_tables_refuse_is_an_error_of_the_command(tmp_path, monkeypatch, capsys):
    """A class that has one level where the trait is known: `check` refuses the file, and init says what comes next."""
    import mmgibbs.draft.make as module

    def write_refused(text, new):
        new.write_text("name: a\n")
        return "model.fixed.herd: wrong", module.GIBBS

    monkeypatch.setattr(module, "_write_accepted", write_refused)
    records, _ = write(tmp_path, "animal,sex,herd,weight\n" + "\n".join(ROWS))
    assert main(["init", str(records), "--output", str(tmp_path / "a.yaml")]) == 2
    said = capsys.readouterr().err
    assert "model.fixed.herd: wrong\nnext: change it, then mmgibbs check" in said and "mmgibbs run" not in said


def test_no_file_without_its_schema(tmp_path, monkeypatch):
    import mmgibbs.draft.make as module

    def full(folder):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "write_schema", full)
    records, _ = write(tmp_path, "animal,sex,herd,weight\n" + "\n".join(ROWS))
    with pytest.raises(ConfigError, match="cannot write .*No space left"):
        init(records, output=tmp_path / "a.yaml")
    assert [p.name for p in tmp_path.iterdir()] == ["r.csv"]


def test_the_reason_for_another_method_is_said_and_written(tmp_path):
    """200 records of 3 sires are not few: what is too few are the sires."""
    rows = [f"s{i % 3},{'mf'[i % 2]},{300 + (7 * i) % 40}.5" for i in range(200)]
    pedigree = "id,sire,dam\n" + "\n".join(f"s{i},0,0" for i in range(3))
    made = made_of(tmp_path, "sire,sex,weight\n" + "\n".join(rows), pedigree)
    warning = next(line for line in made.said if line.startswith("warning: REML in place of Gibbs sampling"))
    assert "the records tell it in 2 independent contrasts" in warning and "needed more levels with records" in warning
    text = " ".join(line.lstrip("# ") for line in (tmp_path / "a.yaml").read_text().splitlines())
    assert warning.removeprefix("warning: ") in text


def test_few_records_and_strange_ids_are_warned_of(tmp_path):
    pedigree = "id,sire,dam\n" + "\n".join(f"x{i},," for i in range(40))
    made = made_of(tmp_path, "animal,sex,herd,weight\n" + "\n".join(ROWS), pedigree)
    assert any("too few to estimate variances" in line for line in made.said)
    strange = "most animals with records are not in the pedigree: are ids written in the same way"
    assert any(strange in line for line in made.said)
    assert accepted(made).data.add_missing_animals


def test_a_table_without_a_trait_and_a_broken_pedigree(tmp_path):
    names = pl.DataFrame({"animal": [f"a{i}" for i in range(9)]})
    names.write_csv(tmp_path / "r.csv")
    with pytest.raises(ConfigError, match="no column looks like a trait"):
        init(tmp_path / "r.csv", output=tmp_path / "a.yaml")
    with pytest.raises(DataError, match="p.csv row"):
        made_of(tmp_path, "animal,w\na,1.5\nb,2\n", "id,sire,dam\na,b,\nb,a,\n")
    with pytest.raises(DataError, match="none.csv"):
        init(tmp_path / "none.csv", output=tmp_path / "a.yaml")
    assert not (tmp_path / "a.yaml").exists()
