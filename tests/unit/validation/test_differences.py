"""What a comparison of validations says of the analyses: in what they differ, and equations that are the same once."""

from pathlib import Path

import polars as pl
import pytest

from mmgibbs.validation.differences import difference_table
from mmgibbs.validation.found import SCHEMA, Validation
from mmgibbs.validation.head import relationships_words

PEDIGREE, BOTH = "related by the pedigree", "related by the pedigree, and the genotyped ones by their genotypes"
GENETIC = {"relationship": "pedigree", "level": "animal"}


def validation(name, sentence=PEDIGREE, variances=None, model=None, info=None, **sections):
    random = {"genetic": GENETIC} if model is None else model
    kind = {"words": "w", "symbol": "A", "sentence": sentence, "related": True, "of_pedigree": True}
    head = {
        "analysis": {"traits": {"weight": {}}, "model": {"fixed": {"herd": {}}, "random": random}} | sections,
        "relationships": dict.fromkeys(random, kind),
        "levels": {"herd": 4} | dict.fromkeys(random, 80),
        "components": {"genetic": ["weight"], "residual": ["weight"]},
    }
    facts = {"analysis": name, "records": 90, "variances": variances or "sample"} | (info or {})
    return Validation(pl.DataFrame(schema=SCHEMA), pl.DataFrame(), facts, head=head)


def rows(*validations):
    table = difference_table(validations)
    return {} if table is None else {row[0]: row[1:] for row in table.rows}


def test_nothing_is_said_where_nothing_differs():
    assert difference_table([validation("one"), validation("two")]) is None
    assert difference_table([Validation(pl.DataFrame(schema=SCHEMA), pl.DataFrame(), {"analysis": "a"})] * 2) is None


def test_relationships_are_in_words_and_files_by_name():
    genotypes = {"file": str(Path("/data/snps.bed")), "format": "auto"}
    found = difference_table(
        [validation("chip", BOTH, data={"genotypes": genotypes}), validation("herd book", data={"genotypes": None})]
    )
    assert [c.label for c in found.columns] == ["What", "chip", "herd book"]
    assert found.rows == [("levels of genetic", BOTH, PEDIGREE), ("data.genotypes", "snps.bed", "none")]
    assert "keys of the analysis file" in found.note


def test_files_of_one_name_are_told_apart():
    one, two = ({"genotypes": {"file": f"/{year}/snps.bed"}} for year in (2024, 2025))
    assert rows(validation("a", data=one), validation("b", data=two)) == {
        "data.genotypes.file": ("/2024/snps.bed", "/2025/snps.bed")
    }


def test_variances_that_were_given_and_how_it_was_solved():
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


def test_relationships_that_are_the_same_stand_below_the_equations():
    more = {"genetic": GENETIC, "litter": {"relationship": "identity"}}
    one, two, chip = validation("a"), validation("b", model=more), validation("c", BOTH)
    assert relationships_words([one.head, two.head]) == f"genetic: {PEDIGREE}; litter: {PEDIGREE}."
    assert relationships_words([one.head, chip.head]) == "" == relationships_words([{}])


@pytest.mark.parametrize("order", [1, -1])
def test_a_random_term_that_one_lacks_is_said_once(order):
    more = {"genetic": GENETIC, "litter": {"relationship": "identity"}}
    pair = [validation("a"), validation("b", model=more)][::order]
    assert rows(*pair) == {"levels of litter": ("none", PEDIGREE)[::order]}
