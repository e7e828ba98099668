"""The SNPs of a term: chromosomes, groups of a file, the rest; what is in two terms or in none is said."""

import polars as pl
import pytest

from mmgibbs.config.markers import ChosenSnps
from mmgibbs.data.genotypes.chosen import chosen_snps, shared_or_in_none
from mmgibbs.errors import DataError

SNPS = pl.DataFrame(
    {"snp": [f"s{i}" for i in range(6)], "chromosome": ["1", "1", "2", "X", "X", None]},
    schema={"snp": pl.String, "chromosome": pl.String},
)


@pytest.fixture
def groups(tmp_path):
    path = tmp_path / "groups.csv"
    path.write_text("SNP,group\ns0,coding\ns2,coding\ns2,splice\ns5,splice\ns9,coding\n")
    return path


def of(**terms):
    read = {name: None if value is None else ChosenSnps.model_validate(value) for name, value in terms.items()}
    found, notes = chosen_snps(read, SNPS)
    return {name: chosen.nonzero()[0].tolist() for name, chosen in found.items()}, notes


def test_snps_of_chromosomes_of_the_rest_and_of_groups(groups):
    found, notes = of(some={"chromosomes": [1, "X"]}, others="rest")
    assert found == {"some": [0, 1, 3, 4], "others": [2, 5]}
    assert notes == ["model.markers.some: 4 of 6 SNPs", "model.markers.others: 2 of 6 SNPs"]
    found, notes = of(a={"group": "coding", "file": str(groups)}, b={"group": ["splice"], "file": str(groups)})
    assert found == {"a": [0, 2], "b": [2, 5]}
    assert notes[0] == "groups.csv: 1 SNPs are not among those kept, such as s9 (model.markers.a.snps)"
    assert of(a={"file": str(groups)})[0] == {"a": [0, 2, 5]}
    assert of(a=None) == ({"a": list(range(6))}, [])


def test_snps_in_two_terms_and_in_none(groups):
    terms = {"a": {"group": "coding", "file": str(groups)}, "b": {"group": "splice", "file": str(groups)}}
    found, _ = chosen_snps({k: ChosenSnps.model_validate(v) for k, v in terms.items()}, SNPS)
    both = {"a": ["milk", "fat"], "b": ["milk", "fat"]}
    assert shared_or_in_none(found, both, SNPS["snp"]) == [
        "model.markers: 1 SNP, such as s2, is in several of the terms a, b: their effects add up",
        "model.markers: 3 SNPs, such as s1, s3, s4, are in none of the terms a, b: they have no effect",
    ]
    own = {"a": ["milk"], "b": ["fat"]}
    assert shared_or_in_none(found, own, SNPS["snp"]) == [
        "model.markers: 4 SNPs, such as s1, s3, s4, s5, are in none of the terms a: they have no effect (trait milk)",
        "model.markers: 4 SNPs, such as s0, s1, s3, s4, are in none of the terms b: they have no effect (trait fat)",
    ]


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ({"chromosomes": [3]}, "model.markers.a.snps.chromosomes: no SNP is in chromosome '3'; the SNPs are on"),
        ({"group": "coging", "file": "groups.csv"}, "no SNP is in group 'coging'; did you mean 'coding'"),
        ({"file": "lost.csv"}, "lost.csv"),
        ({"file": "other.csv"}, "found the columns 'x', 'y'; needed one called snp (model.markers.a.snps.file)"),
        ({"file": "three.csv", "group": "u"}, "found the columns 'snp', 'x', 'y'; needed one called group"),
        ({"file": "strange.csv"}, "none of the 6 SNPs that are kept is one of these"),
    ],
)
def test_mistakes(groups, chosen, said, monkeypatch):
    monkeypatch.chdir(groups.parent)
    for name, text in (("other", "x,y\n1,2\n"), ("three", "snp,x,y\ns1,u,v\n"), ("strange", "snp\nq1\n")):
        (groups.parent / f"{name}.csv").write_text(text)
    with pytest.raises(DataError) as caught:
        of(a=chosen)
    assert said in str(caught.value)


def test_without_a_map():
    with pytest.raises(DataError, match=r"no SNP has a chromosome; needed a map \(data.genotypes.map\)"):
        nowhere = SNPS.with_columns(chromosome=pl.lit(None, pl.String))
        chosen_snps({"a": ChosenSnps.model_validate({"chromosomes": ["1"]})}, nowhere)
