"""Sires and dams that come from the pedigree, missing animals and unknown-parent groups, by hand."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from helpers.analyses import analysis, effect, fixed, random
from helpers.prepared_tables import ids_of_records, labels, term
from reference import dense

from mmgibbs.data.prepare import prepare
from mmgibbs.errors import DataError


def direct_maternal(files, frame, animal="animal", **data):
    maternal = effect("dam", traits=["y"], unknown_level=data.pop("unknown_level", "error"))
    effects = {"genetic": random("pedigree", direct=effect(animal, traits=["y"]), maternal=maternal)}
    effects["environment"] = random(_=effect("dam", traits=["y"], unknown_level="omit"))
    return analysis(frame, ["y"], random=effects, pedigree=files / "pedigree.csv", **data)


@pytest.mark.parametrize("column, other", [("animal", "note"), ("tag", "id"), ("tag", "animal")])
def test_the_dam_of_the_records_animal(files, column, other):
    """By the one level column of the pedigree effects, whatever it is called; a column `id` that is no level does not
    count."""
    frame = pl.DataFrame({column: ["calf1", "calf4", "calf3"], other: ["cow", "cow", "cow"], "y": [1.0, 2, 3]})
    p = prepare(direct_maternal(files, frame, column))
    assert ids_of_records(p, "genetic", 1) == ["cow", "calf2", "calf2"]
    assert ids_of_records(p, "environment") == ["cow", "calf2", "calf2"]
    assert labels(p, "environment").ids.to_list() == ["calf2", "cow"]


def test_a_column_of_that_name_goes_before_the_pedigree(files):
    frame = pl.DataFrame({"animal": ["calf1", "calf3"], "dam": ["cow2", "0"], "y": [1.0, 2]})
    p = prepare(direct_maternal(files, frame, unknown_level="omit"))
    assert ids_of_records(p, "genetic", 1) == ["cow2", None] == ids_of_records(p, "environment")


def test_a_sire_model_takes_sires_by_the_column_animal(files):
    frame = pl.DataFrame({"animal": ["calf1", "calf3"], "y": [1.0, 2]})
    sire = {"sire": random("pedigree", _=effect("sire", traits=["y"]))}
    p = prepare(analysis(frame, ["y"], random=sire, pedigree=files / "pedigree.csv"))
    assert ids_of_records(p, "sire") == ["bull", "calf1"]


def test_an_unknown_dam_is_refused_unless_omitted(files):
    frame = pl.DataFrame({"animal": ["calf1", "cow"], "y": [1.0, 2]})
    where = "model.random.genetic.effects.maternal"
    message = rf"phenotypes row 2: the dam of animal 'cow' is unknown in the pedigree \({where}.level\); needed .*"
    message += f"'{where}.unknown_level: omit'"
    with pytest.raises(DataError, match=message):
        prepare(direct_maternal(files, frame))
    p = prepare(direct_maternal(files, frame, unknown_level="omit"))
    assert ids_of_records(p, "genetic", 1) == ["cow", None] == ids_of_records(p, "environment")


def test_dams_from_the_pedigree_have_the_levels_of_a_column(tmp_path):
    """In numeric order, whatever that of the pedigree; also sires and dams that share levels."""
    (tmp_path / "pedigree.csv").write_text("id,sire,dam\n101,0,0\n12,0,0\n9,101,12\n100,101,9\n8,0,9\n7,101,0\n")
    frame = pl.DataFrame({"animal": ["100", "9", "7", "8"], "y": [1.0, 2, 3, 5]})
    parents = frame.with_columns(sire=pl.Series(["101", "101", "101", None]), dam=pl.Series(["9", "12", None, "9"]))
    dams = effect("dam", traits=["y"], unknown_level="omit")
    model = {
        "genetic": random("pedigree", _=effect("animal", traits=["y"])),
        "of_dams": random(_=dams),
        "of_both": random(a=effect("sire", traits=["y"], unknown_level="omit"), b=dams),
    }
    found, given, mixed = (
        prepare(analysis(f, ["y"], random=model, pedigree=tmp_path / "pedigree.csv", unknown_parent=["0"]))
        for f in (frame, parents, parents.drop("dam"))
    )
    assert labels(found, "of_dams").ids.to_list() == ["9", "12"]
    assert labels(found, "of_both").ids.to_list() == ["9", "12", "101"]
    for name in ("of_dams", "of_both"):
        for other in (given, mixed):
            assert labels(found, name).ids.to_list() == labels(other, name).ids.to_list()
            for a, b in zip(term(found, name).effects, term(other, name).effects, strict=True):
                assert a.level.dtype == b.level.dtype and a.level.tolist() == b.level.tolist()


def test_a_record_without_an_animal_is_none_with_records(files):
    frame = pl.DataFrame({"animal": ["calf1", None, "calf2", "calf1"], "y": [1.0, 2, 4, 3]})
    model = {"genetic": random("pedigree", _=effect("animal", traits=["y"], unknown_level="omit"))}
    p = prepare(analysis(frame, ["y"], random=model, pedigree=files / "pedigree.csv", add_missing_animals=True))
    assert p.counts["animals_with_records"] == 2


def test_missing_animals_are_added_as_founders(files):
    frame = pl.DataFrame({"animal": ["calf1", "stranger", "calf1", "alien"], "y": [1.0, 2, 3, 4]})
    message = r"phenotypes row 2: animal 'stranger' \(column 'animal'\) is not in the pedigree; .*add_missing_animals"
    with pytest.raises(DataError, match=message) as caught:
        prepare(direct_maternal(files, frame, unknown_level="omit"))
    assert "row 4" in str(caught.value)
    p = prepare(direct_maternal(files, frame, unknown_level="omit", add_missing_animals=True))
    assert labels(p, "genetic").ids.gather(labels(p, "genetic").order).to_list()[-2:] == ["stranger", "alien"]
    assert ids_of_records(p, "genetic") == ["calf1", "stranger", "calf1", "alien"] and p.counts["founders_added"] == 4
    (warning,) = p.warnings
    assert warning.startswith("data.add_missing_animals: 2 of the 3 animals with records are not in the pedigree")
    assert "Records have 'stranger', the pedigree " in warning


@pytest.mark.parametrize("animals", [["calf1", "alien"], ["calf1", "bull", "alien"], ["bull", "cow2", "calf1"]])
def test_a_few_missing_animals_are_no_warning(files, animals):
    """Half of them, or a third; parents without a row of their own are in the pedigree."""
    frame = pl.DataFrame({"animal": animals, "y": [float(i) for i in range(len(animals))]})
    assert prepare(direct_maternal(files, frame, unknown_level="omit", add_missing_animals=True)).warnings == ()


def test_a_pedigree_that_no_effect_needs_is_not_read(files):
    p = prepare(analysis(pl.DataFrame({"y": [1.0, 2]}), ["y"], pedigree=files / "absent.csv"))
    assert p.pedigree is None and not any("pedigree" in n for n in p.design.notes)
    (warning,) = p.warnings
    assert warning.startswith("data.pedigree: the pedigree is not read, as no effect has `relationship: pedigree`")
    assert warning.endswith("write model.random.genetic: {level: COLUMN, relationship: pedigree}")


GROUPS = """id,sire,dam,origin
a,0,0,west
b,0,0,east
c,0,0,south
d,a,b,
e,0,c,east
f,d,e,
g,a,0,west
"""


@pytest.mark.parametrize("kind", ["random", "fixed"])
@pytest.mark.parametrize("model", ["direct", "maternal", "regression"])
def test_unknown_parent_groups(tmp_path, kind, model):
    """Fixed groups: as many are set to 0 as [X, ZQ] lacks in rank, and the equations are regular. Random ones stay."""
    (tmp_path / "ped.csv").write_text(GROUPS)
    rng = np.random.default_rng(4)
    animal = list("dfgefdbcegf")
    n = len(animal)
    frame = pl.DataFrame({"animal": animal, "herd": rng.integers(0, 2, n), "t": rng.normal(size=n), "one": np.ones(n)})
    frame = frame.with_columns(y=rng.normal(size=n), z=rng.normal(size=n))
    direct = effect("animal", traits=["y", "z"])
    effects = {
        "direct": {"direct": direct},
        "maternal": {"direct": direct, "maternal": effect("dam", traits=["z"], unknown_level="omit")},
        "regression": {"rr": effect("animal", traits=["z"], covariates=("one", "t"))},
    }[model]
    herd, genetic = {"herd": fixed("herd", traits=["y", "z"])}, {"genetic": random("pedigree", **effects)}
    tables = {"pedigree": tmp_path / "ped.csv", "groups": {"column": "origin", "effect": kind}}
    a = analysis(frame, ["y", "z"], herd, genetic, **tables)
    p = prepare(a)
    g = term(p, "genetic")
    k = g.n_components
    assert (g.n_groups, g.n_levels, g.groups_fixed) == (3, 10, kind == "fixed")
    assert labels(p, "genetic").ids.to_list()[7:] == list(p.pedigree.groups)
    assert labels(p, "genetic").group.tolist() == [False] * 7 + [True] * 3
    assert np.isnan(labels(p, "genetic").inbreeding[7:]).all() and g.n_prior_levels == (7 if kind == "fixed" else 10)
    equations = dense.build(p.design, [None, np.eye(k) + 0.2], np.eye(2))
    assert np.linalg.matrix_rank(equations.C) == equations.size
    if kind == "random":
        assert g.active is None
        return
    assert g.active[:7].all() and not g.active[7:].all()
    # Every group in: the same equations are singular, by one null direction for each group that was held.
    complete = replace(p.design, terms=(p.design.terms[0], replace(g, active=None)))
    everything = dense.build(complete, [None, np.eye(k) + 0.2], np.eye(2))
    assert everything.size - np.linalg.matrix_rank(everything.C) == np.count_nonzero(~g.active)
    assert any("unknown-parent group" in note for note in p.design.notes)
