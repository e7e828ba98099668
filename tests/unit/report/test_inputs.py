"""The files that a run read, with their rows, whatever forms the analysis has."""

import polars as pl
import pytest
from helpers.finished_run import describe_random

from mmgibbs.config.fields import plain
from mmgibbs.config.relationships import KINDS
from mmgibbs.config.schema import analysis_schema
from mmgibbs.report.inputs import FRAME, FREQUENCIES, MARKS, input_files
from mmgibbs.report.page import facts


def test_words_are_those_of_the_analysis_file():
    schema = str(analysis_schema()["$defs"]["SingleStep"])
    assert str(list(FREQUENCIES)) in schema and not any(mark in name for mark in MARKS for name in KINDS)


def test_every_file_has_its_name_and_rows():
    record = {
        "analysis": {
            "data": {
                "phenotypes": "/farm/records.csv",
                "pedigree": "C:\\farm\\pedigree.csv",
                "groups": {"column": "origin", "effect": "metafounders", "gamma": "/farm/gamma.txt"},
                "genotypes": {
                    "file": "/farm/chips.bed",
                    "map": "/farm/chips.bim",
                    "animals": "/farm/chips.fam",
                    "frequencies": "/farm/frequencies.txt",
                },
            },
            "model": {
                "random": {
                    "line": {"relationship": "/farm/kinship.txt"},
                    "genetic": {"relationship": {"kind": "single_step", "core": {"file": "/farm/core.txt"}}},
                    "litter": {"relationship": "identity"},
                },
                "markers": {"coding": {"snps": {"file": "/farm/groups.csv"}}, "rest": {"snps": {"rest": True}}},
            },
            "decisions": {"candidates": {"file": "/farm/young.txt"}},
        },
        "data": {
            "records": {"read": 225, "used": 200},
            "animals": 60,
            "founders_added": 8,
            "groups": 2,
            "genotypes": {"read": {"SNPs": 1500, "animals": 1}, "kept": {"SNPs": 1400, "animals": 1}},
        },
        "levels": {"line": 50, "genetic": 62, "litter": 9},
        "decisions": {"candidates": 7},
    }
    assert input_files(record) == {
        "Phenotype file": "records.csv, 225 rows",
        "Pedigree file": "pedigree.csv, 52 animals",
        "Genotype file": "chips.bed, 1,500 SNPs of 1 animal",
        "SNP map": "chips.bim",
        "File of genotyped animals": "chips.fam, 1 animal",
        "File of allele frequencies": "frequencies.txt",
        "Gamma file": "gamma.txt, 2 groups",
        "Relationship file": "kinship.txt, 50 levels",
        "File of the core": "core.txt",
        "File of chosen SNPs": "groups.csv",
        "Candidate file": "young.txt, 7 candidates",
    }
    shown = dict(facts(record | {"relationships": describe_random(record["analysis"])})[0][1])
    assert shown["Relationship file"] == "kinship.txt, 50 levels" and shown["Phenotype file"].startswith("records.csv")
    assert not any("/farm" in text or "C:" in text for text in shown.values())


@pytest.mark.parametrize("gamma", ["genotypes", 0.4, None])
def test_words_and_numbers_are_no_files(gamma):
    random = {name: {"relationship": name} for name in KINDS} | {"own": {"relationship": {"kind": "genomic"}}}
    data = {"groups": {"gamma": gamma}, "genotypes": {"file": "g.bed", "frequencies": "half", "map": None}}
    assert input_files({"analysis": {"data": data, "model": {"random": random}}}) == {"Genotype file": "g.bed"}
    assert input_files({}) == {}


def test_each_input_stands_once():
    tables = {"phenotypes": "data frame of 7 rows and 3 columns", "pedigree": "data frame of 9 rows and 3 columns"}
    counts = {"records": {"read": 7}, "animals": 9}
    assert input_files({"analysis": {"data": tables}, "data": counts}) == {
        "Phenotype file": tables["phenotypes"],
        "Pedigree file": tables["pedigree"],
    }
    assert plain(pl.DataFrame({"a": [1]})).startswith(FRAME)
    record = {"analysis": {"data": {"pedigree": "/p.csv"}}, "data": {"records": {"read": 7}}}
    assert input_files(record) == {}
    assert input_files(record | {"data": {}}) == {"Pedigree file": "p.csv"}  # not known
    two = {name: {"relationship": "/k.txt"} for name in ("line", "line_by_year")}
    of = lambda **levels: input_files({"analysis": {"model": {"random": two}}, "levels": levels})["Relationship file"]
    assert of(line=5, line_by_year=5) == "k.txt, 5 levels" and of(line=5) == "k.txt, 5 levels; k.txt"
