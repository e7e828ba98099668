"""Which column `init` takes for the animals and their parents, beside a pedigree and genotypes."""

import shlex

import numpy as np
import polars as pl
import pytest
from helpers.drafts import ROWS, accepted, made_of
from reference import tabular

from mmgibbs.config import load_config
from mmgibbs.draft.make import init
from mmgibbs.errors import ConfigError, DataError
from mmgibbs.pedigree.read import read_pedigree


def test_ids_of_genotypes_tell_which_column_has_the_animals(tmp_path):
    """Without a pedigree and under any name; a column of few numbers that are ids too is not taken."""
    records = ["SUBJECT.NAME,pen,weight", *(f"{i},{i % 7},{i % 11 + 0.5}" for i in range(60))]
    made = made_of(tmp_path, records, None, ["id,s1,s2", *(f"{i},{i % 3},{(i + 1) % 3}" for i in range(70))])
    assert accepted(made).model.markers["snps"].level == "SUBJECT.NAME"
    assert "60 of its 60 ids have genotypes" in made.path.read_text()
    assert "with the pedigree" not in made.path.read_text()
    assert "# genetic: {level: SUBJECT.NAME, relationship: genomic}" in made.path.read_text()
    with pytest.raises(ConfigError, match="found no column of the records with the ids of animals"):
        made_of(tmp_path, records, None, ["id,s1,s2", *(f"x{i},{i % 3},{(i + 1) % 3}" for i in range(50))])


@pytest.mark.parametrize(("name", "prefix"), [("animal", ""), ("line", "a"), ("SUBJECT.NAME", "")])
def test_animals_of_which_few_are_genotyped_are_found(name, prefix, tmp_path):
    """100 of 240; every number of a litter is that of a genotyped animal too."""
    rows = [f"{prefix}{i},{i % 30 + 1},{i % 11 + 0.5}" for i in range(240)]
    snps = [f"{prefix}{i},{i % 3},{(i + 1) % 3}" for i in range(100)]
    made = made_of(tmp_path, [f"{name},litter,weight", *rows], None, ["id,s1,s2", *snps])
    assert "snps.csv: genotypes of 100 of the 240 animals with records" in made.said
    assert f"level: {name}, without_genotypes: keep" in made.path.read_text()
    assert "100 of its 240 ids have genotypes" in made.path.read_text()


@pytest.mark.parametrize("name", ["animal", "SUBJECT.NAME"])
def test_genotyped_sires_are_not_the_animals(name, tmp_path):
    """All 12 sires have genotypes, and 90 of 240 progeny."""
    rows = [f"a{i},s{i % 12},{i % 11 + 0.5}" for i in range(240)]
    genotyped = [*(f"s{i}" for i in range(12)), *(f"a{i}" for i in range(90))]
    snps = [f"{animal},{i % 3},{(i + 1) % 3}" for i, animal in enumerate(genotyped)]
    made = made_of(tmp_path, [f"{name},sire,weight", *rows], None, ["id,s1,s2", *snps])
    assert "snps.csv: genotypes of 90 of the 240 animals with records" in made.said
    assert "relationship: genomic" not in made.path.read_text()


def test_a_trait_with_some_numbers_of_genotyped_animals_is_no_animal(tmp_path):
    """Neither are sires, where no column has the genotyped animals."""
    rows = [f"{i % 12},{i % 13 + 0.5},{200 + i}" for i in range(40)]
    snps = ["id,s1,s2", *(f"{i},{i % 3},1" for i in range(210))]
    with pytest.raises(ConfigError, match="found no column of the records with the ids of animals"):
        made_of(tmp_path, ["sire,weight,height", *rows], None, snps)


def test_records_that_could_be_the_pedigree_are_named(tmp_path):
    parents = lambda i: "," if i < 9 else f"a{i % 4},a{4 + i % 5}"
    rows = [f"a{i},{parents(i)},{i % 13 + 0.5}" for i in range(60)]
    made, records = made_of(tmp_path, ["animal,sire,dam,weight", *rows]), tmp_path / "r.csv"
    said = f"r.csv has the parents of its animals: --pedigree {shlex.quote(str(records))} takes them from there"
    assert said in made.said
    with_it = init(records, records, output=tmp_path / "b.yaml")
    assert set(accepted(with_it).model.random) == {"genetic"} and not any("takes them" in s for s in with_it.said)


def test_ids_under_the_name_that_the_pedigree_has_for_them(tmp_path):
    """Numbers, in a column that no list of names knows; tanks that are families once more."""
    r = np.random.default_rng(4)
    family = np.arange(300) // 10
    fish = pl.DataFrame({"Fish": 1 + np.arange(300), "Father": 1000 + family // 2, "Mother": 2000 + family})
    records = fish.select("Fish").with_columns(family=family, tank=1000 + family, kg=r.normal(1, 0.1, 300).round(3))
    made = made_of(tmp_path, records, fish)
    said = "\n".join(made.said)
    assert "Fish    whole numbers from 1 to 300, 300 different: animal" in said
    assert "tank    whole numbers from 1000 to 1029, 30 different: left out (the same groups of records as" in said
    assert {"genetic", "family"} == set(load_config(made.path).model.random)


@pytest.mark.parametrize("spelling", ["00{}", "COW{}"])
def test_animals_that_the_pedigree_spells_otherwise(spelling, tmp_path):
    """The sires alone agree: a sire model, which must not come without a word."""
    cows = range(100, 160)
    rows = [f"{spelling.format(c)},{1 + c % 3},{20 + c / 7:g}" for c in cows]
    kin = [f"{s},0,0" for s in (1, 2, 3)] + [f"{c},{1 + c % 3},0" for c in cows]
    made = made_of(tmp_path, ["animal,sire,milk", *rows], ["id,sire,dam", *kin])
    (said,) = (line for line in made.said if "a sire model therefore" in line)
    first = spelling.format(100)
    if spelling == "COW{}":
        assert f"0 of the 60 ids in animal (the records have '{first}', which the pedigree lacks)" in said
    else:
        assert said.startswith("warning: ") and f"the records have '{first}', the pedigree '100')" in said


def test_what_is_questioned_of_a_pedigree_is_said(tmp_path):
    records = "animal,sex,herd,weight\n" + "\n".join(ROWS)
    kin = "nr,name,sire,dam\n" + "".join(f"{i + 1},a{39 - i},,\n" for i in range(36)) + "37,a0,a5,a6\n38,a1,a5,a6\n"
    made = made_of(tmp_path, records, kin.replace("nr,", ",", 1))
    assert not any("which column is the id" in line for line in made.said)  # no row number is a parent
    kin = kin.replace("37,a0,a5,a6", "37,a0,XXX,a6").replace("38,a1,a5,a6", "38,a1,XXX,a6\n39,a2,XXX,\n40,a3,a7,a8")
    kin += "41,q1,a9,a10\n42,q2,a11,a12\n43,q3,a13,a12\n"
    made = made_of(tmp_path, records, kin)
    assert any(line.startswith("warning: p.csv: 'XXX' has no row and is the sire of 3") for line in made.said)


def test_a_pedigree_whose_columns_are_not_known_says_what_is_needed(tmp_path):
    records = "animal,sex,herd,weight\n" + "\n".join(ROWS)
    with pytest.raises(DataError, match="which column is the id.*\n.*\n?needed such names, or an analysis file of"):
        made_of(tmp_path, records, "father,mother\na1,a2\na3,a4\n")


def test_a_pedigree_whose_sires_are_the_dams_of_the_records(tmp_path):
    rows = [f"a{i},d{i % 20},{20 + i / 7:g}" for i in range(60)]
    kin = [f"a{i},d{i % 20},s{i % 6}" for i in range(60)]
    for head, wrong in (([], True), (["animal,dam,sire"], False)):
        made = made_of(tmp_path, ["animal,dam,weight", *rows], [*head, *kin])
        said = [line for line in made.said if "agrees with the sires of p.csv" in line]
        assert bool(said) == wrong


@pytest.mark.parametrize("parents", [["mother"], ["father", "mother"], ["mother", "father"]])
def test_parents_of_selfed_plants_keep_the_roles_of_their_names(parents, tmp_path):
    """Both parents of the pedigree are the same: each column agrees with both."""
    kin = [f"p{i},,,0" for i in range(20)] + [f"a{i},p{i % 20},p{i % 20},1" for i in range(200)]
    rows = [",".join([f"a{i}", *[f"p{i % 20}"] * len(parents), f"{20 + i / 7:g}"]) for i in range(200)]
    records = "\n".join([",".join(["id", *parents, "weight"]), *rows])
    made = made_of(tmp_path, records, "\n".join(["id,sire,dam,selfing", *kin]))
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
        made = made_of(tmp_path, "\n".join(["animal,dam,weight", *rows]), "\n".join(["animal,sire,dam", *kin]))
        assert any("exchanged" in line for line in made.said) == wrong


@pytest.mark.parametrize("name", ["mgs", "sire of dam"])
def test_a_pedigree_of_sires_and_maternal_grandsires_is_named(tmp_path, name):
    """The file says what it is and what to do; what it says to write is accepted."""
    bulls = [(f"a{i}", f"a{i // 10}" if i > 9 else "", f"a{i // 7}" if i > 9 else "") for i in range(40)]
    pedigree = f"animal,sire,{name}\n" + "\n".join(",".join(bull) for bull in bulls)
    records = "animal,sex,herd,weight\n" + "\n".join(ROWS)
    made = made_of(tmp_path, records, pedigree)
    assert any(f"p.csv: {name} is the maternal grandsire: a pedigree of sires" in line for line in made.said)
    analysis, text = accepted(made), made.path.read_text(encoding="utf-8")
    assert analysis.data.pedigree is None and "# It is not used" in text and "X,SIRE,dam_of_X" in text
    dams = [f"dam_of_{id},{grandsire}," for id, _, grandsire in bulls if grandsire]
    rows = [f"{id},{sire},{f'dam_of_{id}' if grandsire else ''}" for id, sire, grandsire in bulls]
    made = made_of(tmp_path, records, "id,sire,dam\n" + "\n".join([*rows, *dams]))
    assert accepted(made).data.pedigree is not None
    kin = read_pedigree(tmp_path / "p.csv")
    A = tabular.relationship(kin.sire, kin.dam)
    at = {id: i for i, id in enumerate(kin.ids.to_list())}
    assert A[at["a39"], at["a3"]] == 0.5 and A[at["a39"], at["a5"]] == 0.25  # its sire, its maternal grandsire


def test_one_dam_is_spoken_of_in_the_singular(tmp_path):
    pedigree = "id,sire,dam\ns,,\nd,,\n" + "\n".join(f"a{i},s,d" for i in range(40))
    for more, own in (([], "it has no records of its own"), (["d,f,1,20.5"], "it has records of its own")):
        records = "animal,sex,herd,weight\n" + "\n".join([*ROWS, *more])
        made = made_of(tmp_path, records, pedigree)
        assert f"1 dam has 40 progeny with records; {own}" in made.said


@pytest.mark.parametrize(("strangers", "is_found"), [(12, True), (100, False)])
def test_birds_that_are_not_in_the_pedigree(strangers, is_found, tmp_path):
    """Of 200 records of rings: a few do not hide the others."""
    rings = [f"BV-{i:05d}" for i in range(120)]
    of_record = [f"XX-{i}" if i < strangers else rings[i % 120] for i in range(200)]
    rows = [f"{ring},{'mf'[i % 2]},{18 + (i * 37 % 100) / 50}" for i, ring in enumerate(of_record)]
    parents = ["," if i < 40 else f"{rings[i % 20]},{rings[20 + i % 20]}" for i in range(120)]
    kin = [f"{ring},{pair}" for ring, pair in zip(rings, parents, strict=True)]
    text = made_of(tmp_path, ["ring,sex,mass", *rows], ["Ring no.,dad,mum", *kin]).path.read_text()
    warning = "warning: no column has the ids of p.csv (most in ring: 100 of 200)"
    assert (warning in text) != is_found and ("level: ring, relationship: pedigree" in text) == is_found


@pytest.mark.parametrize(("first", "is_found"), [(1001, True), (1, False)])
def test_numbers_of_animals_under_any_name_and_numbers_of_records(first, is_found, tmp_path):
    """Cows 1001, 1002, ... are those of the pedigree; a column that counts the records may have its ids by chance."""
    r = np.random.default_rng(3)
    weights = r.normal(50, 4, 300).round(1)
    rows = [f"{first + i:07d},{i % 30 + 1},{weights[i]}" for i in range(300)]
    ids = [f"{i:07d},," if i < 1001 else f"{i:07d},{i % 20 + 1:07d},{i % 300 + 21:07d}" for i in range(1, 1301)]
    made = made_of(tmp_path, ["cow,herd,weight", *rows], ["id,sire,dam", *ids])
    assert ("300 of its 300 ids are in the pedigree" in made.path.read_text()) == is_found


@pytest.mark.parametrize("groups", [(), ("G1", "G2")])
def test_genotyped_bulls_of_recorded_cows_are_used_by_single_step(groups, tmp_path):
    """With groups the relationship stays that of the pedigree, and the draft shows the other."""
    r = np.random.default_rng(4)
    base = [",", ","] if not groups else [f"{g},{g}" for g in groups]
    bulls = [f"b{i},{base[i % 2]}" for i in range(12)] + [f"d{i},{base[i % 2]}" for i in range(60)]
    cows = [f"c{i},b{i % 12},d{i % 60}" for i in range(240)]
    weights = r.normal(50, 4, 240).round(1)
    records = ["animal,weight", *(f"c{i},{weights[i]}" for i in range(240))]
    snps = [f"b{i}," + ",".join(map(str, r.integers(0, 3, 30))) for i in range(12)]
    header = "id," + ",".join(f"s{j}" for j in range(30))
    data = {"groups": {"parents": groups}} if groups else None
    made = made_of(tmp_path, records, ["id,sire,dam", *bulls, *cows], [header, *snps], data=data)
    analysis, text = accepted(made), made.path.read_text()
    kind = type(analysis.model.random["genetic"].relationship).__name__
    assert kind == ("Pedigree" if groups else "SingleStep")
    assert not analysis.model.markers
    assert ("data.groups then needs effect: metafounders" in text) == bool(groups)
