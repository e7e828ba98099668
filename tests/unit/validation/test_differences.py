"""What a comparison of validations says of the analyses: in what they differ, and equations that are the same once."""

from pathlib import Path

import polars as pl
import pytest

from mmgibbs.validation.results import SCHEMA, Validation
from mmgibbs.validation.words import difference_table, models_words, relationships_words, solution_text

PEDIGREE, BOTH = "related by the pedigree", "related by the pedigree, and the genotyped ones by their genotypes"
GENETIC = {"relationship": "pedigree", "level": "animal"}


def validation(name, sentence=PEDIGREE, variances=None, model=None, info=None, data=None, **sections):
    random = {"genetic": GENETIC} if model is None else model
    kind = {"words": "w", "symbol": "A", "sentence": sentence, "related": True, "of_pedigree": True}
    head = {
        "analysis": {"traits": {"weight": {}}, "model": {"fixed": {"herd": {}}, "random": random} | sections},
        "relationships": dict.fromkeys(random, kind),
        "levels": {"herd": 4} | dict.fromkeys(random, 80),
        "components": {"genetic": ["weight"], "residual": ["weight"]},
    }
    head["analysis"] |= {"data": data} if data else {}
    facts = {"analysis": name, "records": 90, "variances": variances or "sample"} | (info or {})
    return Validation(pl.DataFrame(schema=SCHEMA), pl.DataFrame(), facts, head=head)


def rows(*validations):
    table = difference_table(validations)
    return {} if table is None else {row[0]: row[1:] for row in table.rows}


def test_what_differs_is_said_and_nothing_else():
    assert difference_table([validation("one"), validation("two")]) is None
    assert difference_table([Validation(pl.DataFrame(schema=SCHEMA), pl.DataFrame(), {"analysis": "a"})] * 2) is None
    of = lambda analysis, classes: validation(analysis, markers={"snps": {"classes": classes}})
    assert rows(of("a", [0, 0.1]), of("b", [0, 1])) == {"model.markers.snps.classes": ("0, 0.1", "0, 1")}
    assert rows(validation("a", data={"missing": []}), validation("b", data={"missing": None})) == {}
    one = validation("a", BOTH, model={"genetic": GENETIC | {"relationship": "single_step"}})
    two = validation("b")
    one.head["analysis"]["variances"] = {"genetic": {"start": 2.0}, "residual": {"start": 1.0, "classes": {"in": {}}}}
    two.head["analysis"]["variances"] = {"genetic": {"start": 3.0}, "residual": {"start": 4.0, "classes": {}}}
    assert rows(one, two) == {"levels of genetic": (BOTH, PEDIGREE)}


def test_relationships_are_in_words_and_files_by_name():
    genotypes = {"file": str(Path("/data/snps.bed")), "format": "auto"}
    chip = validation("chip", BOTH, data={"genotypes": genotypes})
    found = difference_table([chip, validation("herd book", data={"genotypes": None})])
    assert [c.label for c in found.columns] == ["What", "chip", "herd book"]
    assert found.rows == [("levels of genetic", BOTH, PEDIGREE), ("data.genotypes", "snps.bed", "none")]
    assert found.note == "Names that begin with data. are keys of the analysis file."
    with_markers = validation("snps", data={"genotypes": genotypes}, markers={"snp": {"prior": "bayesc"}})
    note = difference_table([validation("chip"), with_markers]).note
    assert note == "Names that begin with data. or model. are keys of the analysis file."


def test_files_of_one_name_are_told_apart():
    one, two = ({"genotypes": {"file": f"/{year}/snps.bed"}} for year in (2024, 2025))
    found = rows(validation("a", data=one), validation("b", data=two))
    assert found == {"data.genotypes.file": ("/2024/snps.bed", "/2025/snps.bed")}

    def of(analysis, *path):
        file = str(Path("/", *path))
        model = {"genetic": GENETIC | {"relationship": file}}
        return validation(analysis, f"related by {file}", model=model)

    one, two, old = of("a", "new", "G.csv"), of("b", "new", "H.csv"), of("c", "old", "G.csv")
    assert rows(one, two) == {"levels of genetic": ("related by G.csv", "related by H.csv")}
    apart = rows(one, old)["levels of genetic"]
    assert apart == tuple(f"related by {Path('/', year, 'G.csv')}" for year in ("new", "old"))
    assert rows(one, two, old)["levels of genetic"][0] == apart[0]  # one of three would be taken for another
    assert relationships_words([one.head, one.head]) == "Levels of genetic: related by G.csv."
    assert relationships_words([one.head, old.head]) == ""


def test_how_it_was_solved():
    of = lambda name, v: validation(name, variances={"genetic": [[v]], "residual": [[40.0]]})
    assert rows(of("a", 20.0), of("b", 0.25)) == {"genetic.var[weight]": ("20", "0.25")}
    prior = {"genetic": {"prior": {"df": 4}, "start": 1.0}}  # of what is given a prior says nothing
    one, two = of("a", 20.0), of("b", 20.0)
    one.head["analysis"]["variances"] = prior
    assert rows(one, two) == {}
    sampled = validation("c", variances="sample", info={"sampled": {"burn_in": 100, "samples": 2000}})
    found = rows(two, sampled)
    assert found["each chain"] == ("none", "100 sweeps of burn-in, 2,000 sweeps") and "solved" in found
    assert found["genetic.var[weight]"] == ("20", "none")
    assert solution_text({"variances": {}}) == "BLUP at given variances"
    assert solution_text({"variances": {}, "sampled": {}}) == "by sampling at given variances"
    assert solution_text({"variances": "sample", "sampled": {}}) == "by sampling, variances too"


def test_relationships_that_are_the_same_stand_below_the_equations():
    more = {"genetic": GENETIC, "litter": {"relationship": "identity"}}
    one, two, chip = validation("a"), validation("b", model=more), validation("c", BOTH)
    assert relationships_words([one.head, two.head]) == f"Levels of genetic: {PEDIGREE}; of litter: {PEDIGREE}."
    assert relationships_words([one.head, chip.head]) == "" == relationships_words([{}])


@pytest.mark.parametrize("order", [1, -1])
def test_a_random_term_that_one_lacks_is_said_once(order):
    more = {"genetic": GENETIC, "litter": {"relationship": "identity"}}
    pair = [validation("a"), validation("b", model=more)][::order]
    assert rows(*pair) == {"levels of litter": ("none", PEDIGREE)[::order]}


def test_keys_that_one_lacks_within_a_random_term_are_said():
    direct = {"direct": {"level": "animal"}}
    maternal = {"genetic": {"relationship": "pedigree", "effects": direct | {"maternal": {"level": "dam"}}}}
    curve = {"genetic": GENETIC | {"legendre": {"column": "age", "degree": 2}}}
    found = rows(validation("a"), validation("b", model=maternal))
    assert found["model.random.genetic.effects"] == ("none", "direct, maternal")
    assert found["model.random.genetic.level"] == ("animal", "none")
    assert rows(validation("a"), validation("b", model=curve)) == {"model.random.genetic.legendre": ("none", "yes")}
    covariates = {"genetic": GENETIC | {"covariates": ["age", "age2"]}}
    found = rows(validation("a"), validation("b", model=covariates))
    assert found == {"model.random.genetic.covariates": ("none", "age, age2")}


@pytest.mark.parametrize("name", ["start", "classes", "relationship"])
def test_effects_may_have_the_names_of_keys(name):
    of = lambda analysis, fixed: validation(analysis, fixed=fixed)
    one, two = of("a", {"herd": {}}), of("b", {"herd": {}, name: {"prior": "flat"}})
    assert rows(one, two) == {f"model.fixed.{name}": ("none", "yes")}
    one, two = (validation(level, model={name: GENETIC | {"level": level}}) for level in ("animal", "sire"))
    assert rows(one, two) == {f"model.random.{name}.level": ("animal", "sire")}
    one, two = (validation(a, variances="sample") for a in "ab")
    one.head["analysis"]["variances"], two.head["analysis"]["variances"] = ({name: {"fixed": f}} for f in (True, False))
    assert rows(one, two) == {f"variances.{name}.fixed": ("yes", "no")}


def test_hidden_scales_of_all_analyses_are_named():
    """A trait that is normal in the first and binary in the second."""
    normal, binary = ({"analysis": {"traits": {"alive": {"type": kind}}}} for kind in ("normal", "binary"))
    for heads in ([normal, binary], [binary, normal]):
        assert "(or the liability behind it)" in models_words(heads)
    assert "liability" not in models_words([normal])
