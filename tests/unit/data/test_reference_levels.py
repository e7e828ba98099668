"""Which level of an effect is set to 0, and that it stays the one when levels come and go."""

import numpy as np
import polars as pl
import pytest
from helpers.analyses import analysis, effect, fixed, random
from reference import dense

import mmgibbs
from mmgibbs.data import fixed_columns
from mmgibbs.data.fixed import ClassEffect, resolve
from mmgibbs.data.prepare import prepare
from mmgibbs.engines.direct.standard_errors import posterior_sd
from mmgibbs.errors import ConfigError, DataError
from mmgibbs.pedigree.groups import groups_by_age

R = np.array([[1.0]])


def table(years, herds=("h2", "h10", "h1"), n=90, seed=3):
    """Records of every herd and sex in each of the years; the effects of years do not depend on which there are."""
    rng = np.random.default_rng(seed)
    classes = {"year": [years[i % len(years)] for i in range(n)], "herd": rng.choice(herds, n)}
    frame = pl.DataFrame(classes | {"sex": rng.choice(["M", "F"], n), "x": rng.normal(5, 1, n)})
    y = 80 + 3 * frame["x"] + frame["year"].cast(pl.Float64) % 7 + frame["herd"].str.len_chars()
    return frame.with_columns(y=y + 5 * (frame["sex"] == "M").cast(pl.Float64))


def effects(*names, **keys):
    return {name: fixed(name, traits=["y"], **keys.get(name, {})) for name in names}


def solved(frame, model, **more):
    """(prepared, {term: {level: solution on the user's scale}}) of fixed effects."""
    prepared = prepare(analysis(frame, ["y"], model, **more))
    equations = dense.build(prepared.design, [None] * len(prepared.design.terms), R)
    theta = prepared.design.to_original_scale(equations.theta(equations.solution))
    levels = [labels.ids.to_list() for labels in prepared.levels]
    names = [term.name for term in prepared.design.terms]
    return prepared, {
        name: dict(zip(ids, t[:, 0].tolist(), strict=False)) for name, ids, t in zip(names, levels, theta, strict=True)
    }


def least_squares(frame, mean, others, references):
    """The same by numpy: all levels of one effect, and the others as differences from their references."""
    columns, names = [], []
    for name in (mean, *others):
        for level in frame[name].unique().sort():
            if name == mean or level != references[name]:
                columns.append((frame[name] == level).to_numpy().astype(float))
                names.append((name, str(level)))
    columns.append(frame["x"].to_numpy())
    b = np.linalg.lstsq(np.stack(columns, axis=1), frame["y"].to_numpy(), rcond=None)[0]
    out = {name: {references[name]: 0.0} for name in others} | {mean: {}}
    for (name, level), value in zip(names, b, strict=False):
        out[name][level] = float(value)
    return out


X = {"x": fixed("x", "covariate", traits=["y"])}
YEARS = ["1998", "1999", "2000", "2001"]


@pytest.mark.parametrize("order", [("herd", "year", "sex"), ("sex", "herd", "year"), ("year", "sex", "herd")])
@pytest.mark.parametrize("n_years", [1, 2, 3, 4, 8])
def test_the_first_effect_has_the_mean_however_many_levels_there_are(order, n_years):
    frame = table([str(1997 + i) for i in range(n_years)])
    prepared, found = solved(frame, effects(*order) | X)
    references = {"herd": "h1", "year": "1997", "sex": "F"}
    expected = least_squares(frame, order[0], order[1:], references)
    for name in order:
        assert found[name] == pytest.approx(expected[name], abs=1e-8), name
    for name in order[1:]:
        assert found[name][references[name]] == 0.0
        assert f"reference level of {name}: {references[name]}" in prepared.design.notes or n_years == 1
    assert prepared.references["means"] == {"y": order[0]}
    assert not any("set to 0" in note for note in prepared.design.notes if n_years > 1)


@pytest.mark.parametrize("order", [("herd", "year"), ("year", "herd", "sex"), ("sex", "year", "herd")])
def test_a_new_year_leaves_the_solutions_of_the_others(order):
    """Data without errors, of which each year tells the same: one, two and five years more change nothing."""
    model = effects(*order, *(name for name in ("sex",) if name not in order)) | X
    _, before = solved(table(YEARS), model)
    for more in (["2002"], ["2002", "2003"], [str(2002 + i) for i in range(5)]):
        _, after = solved(table(YEARS + more, n=30 * len(YEARS + more)), model)
        for name in ("year", "herd", "sex"):
            assert {level: after[name][level] for level in before[name]} == pytest.approx(before[name], abs=1e-7)


def test_the_default_reference_is_the_first_in_natural_order():
    frame = table(["9", "10", "11"], herds=("h2", "h10", "h1b"))
    _, found = solved(frame, effects("sex", "herd", "year"))
    assert found["year"]["9"] == found["herd"]["h1b"] == 0.0 != found["herd"]["h10"]


@pytest.mark.parametrize("reference", ["2000", 2000, 2000.0, " 2000", "2000.0"])
def test_a_stated_reference(reference):
    frame = table(YEARS)
    prepared, found = solved(frame, effects("herd", "year", year={"reference": reference}) | X)
    expected = least_squares(frame, "herd", ["year"], {"year": "2000"})
    assert found["year"] == pytest.approx(expected["year"], abs=1e-8) and found["year"]["2000"] == 0.0
    assert found["herd"] == pytest.approx(expected["herd"], abs=1e-8)
    assert prepared.references["fixed"] == {"year": {"y": "2000"}}


def test_a_stated_reference_of_the_first_effect_gives_the_mean_to_the_next_one():
    frame = table(YEARS)
    prepared, found = solved(frame, effects("year", "herd", year={"reference": "1999"}) | X)
    assert prepared.references == {"fixed": {"year": {"y": "1999"}}, "groups": {}, "means": {"y": "herd"}}
    assert found["herd"] == pytest.approx(least_squares(frame, "herd", ["year"], {"year": "1999"})["herd"], abs=1e-8)


def test_stated_references_of_all_effects_give_the_mean_to_an_intercept():
    frame = table(YEARS)
    model = effects("herd", "sex", herd={"reference": "h2"}, sex={"reference": "M"})
    prepared, found = solved(frame, model)
    assert [t.name for t in prepared.design.terms] == ["intercept", "herd", "sex"]
    assert found["herd"]["h2"] == found["sex"]["M"] == 0.0 and prepared.references["means"] == {"y": "intercept"}
    with pytest.raises(ConfigError, match=r"model.intercept: found false, and a reference in every class effect on y"):
        analysis(frame, ["y"], model, intercept=False)


def test_what_is_no_level_or_group_is_refused_with_those_that_are():
    with pytest.raises(DataError) as error:
        prepare(analysis(table(YEARS), ["y"], effects("herd", "year", year={"reference": "2005"})))
    assert str(error.value) == (
        "model.fixed.year.reference: found '2005', which is not a level; the levels are '1998', '1999', '2000', '2001'"
    )
    many = table([str(year) for year in range(1990, 2005)])
    with pytest.raises(DataError, match="'1999' and 5 more"):
        prepare(analysis(many, ["y"], effects("herd", "year", year={"reference": "2005"})))
    with pytest.raises(DataError) as error:
        breeding_values(PEDIGREE, reference="nord")
    assert str(error.value) == (
        "data.groups.reference: found 'nord', which is not a level; the groups are 'east', 'south', 'west'"
    )
    assert breeding_values(PEDIGREE, reference="WEST")[1]["west"] == 0.0
    with pytest.raises(ConfigError, match="data.groups.reference: cannot be combined with effect: random"):
        breeding_values(PEDIGREE, effect="random", reference="west")


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (fixed("x", "covariate", traits=["y"], reference="1"), "cannot be combined with kind: covariate"),
        (fixed("herd", traits=["y"], reference="h1", prior_variance=3.0), "found with a normal prior"),
    ],
)
def test_effects_that_have_no_reference(entry, said):
    with pytest.raises(ConfigError, match=f"reference: {said}"):
        analysis(table(YEARS), ["y"], {"an_effect": entry})


def test_a_stated_reference_without_records_of_a_trait_is_a_warning():
    frame = table(YEARS).with_columns(z=pl.when(pl.col("year") != "2000").then("y"))
    both = {"herd": fixed("herd", traits=["y", "z"]), "year": fixed("year", traits=["y", "z"], reference="2000")}
    prepared = prepare(analysis(frame, ["y", "z"], both))
    assert prepared.references["fixed"] == {"year": {"y": "2000", "z": "1998"}}
    said = "model.fixed.year.reference: level '2000' has no records of z; its solutions are differences from '1998'"
    assert said in prepared.warnings
    assert "reference level of year, z: 1998" in prepared.design.notes
    assert not prepare(analysis(frame, ["y"], {"year": fixed("year", traits=["y"], reference="2000")})).warnings


def test_aliased_levels_are_said_apart_from_references():
    """Two regions that have no year in common: one more year of the second region is set to 0."""
    frame = table(["2001", "2002", "2003", "2004"]).with_columns(
        herd=pl.when(pl.col("year") < "2003").then(pl.lit("a")).otherwise(pl.lit("b")) + pl.col("herd")
    )
    notes = prepare(analysis(frame, ["y"], effects("herd", "year"))).design.notes
    assert "reference level of year: 2001" in notes
    assert "year, y: 1 level set to 0 (aliased: the records cannot tell them from other fixed effects): 2003" in notes
    # a class that another one divides, whatever comes first
    nested = frame.with_columns(region=pl.col("herd").str.head(1))
    for order in (("region", "herd"), ("herd", "region")):
        prepared = prepare(analysis(nested, ["y"], effects(*order)))
        assert [note for note in prepared.design.notes if "level" in note] == [
            "region, y: 2 levels set to 0 (aliased: the records cannot tell them from other fixed effects): a, b"
        ]
        assert prepared.references["means"] == {"y": "herd"}


def test_standard_errors_are_those_of_differences_from_the_reference():
    """B by transforming every unit vector; years are kept in full by the equations, herds have the mean."""
    model = effects("herd", "year", "sex") | X
    design = prepare(analysis(table([str(y) for y in range(1990, 1999)]), ["y"], model)).design
    assert design.base
    truth = dense.build(design, [None] * 4, R)
    zero = design.to_original_scale([np.zeros((t.n_levels, t.n_components)) for t in design.terms])
    units = [design.to_original_scale(truth.theta(unit)) for unit in np.eye(truth.size)]
    B = np.array([np.concatenate([(m - z).ravel() for m, z in zip(u, zero, strict=True)]) for u in units])
    expected = np.sqrt(np.einsum("ix,ij,jx->x", B, truth.covariance, B))
    found = np.concatenate([sd.ravel() for sd in posterior_sd(design, [None] * 4, R)])
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    at = [t.name for t in design.terms].index("year")
    assert posterior_sd(design, [None] * 4, R)[at][0, 0] == 0.0 < posterior_sd(design, [None] * 4, R)[at][1, 0]


PEDIGREE = """id,sire,dam,birth,origin
a,,,2001,west
b,,,1999,east
c,,,2003,south
d,a,b,2004,
e,,c,2005,east
f,d,e,2007,
g,a,,2004,west
h,g,f,2009,
i,d,,2008,south
"""


def breeding_values(pedigree, animals="defghicba" * 3, seed=1, **groups):
    rng = np.random.default_rng(seed)
    names = list(animals)
    pedigree = pl.read_csv(pedigree.encode(), infer_schema_length=0)
    order = {name: i for i, name in enumerate(pedigree["id"])}
    y = [10.0 + order[name] % 3 + rng.normal() for name in names]
    frame = pl.DataFrame({"animal": names, "herd": [f"h{i % 2}" for i in range(len(names))], "y": y})
    genetic = {"genetic": random("pedigree", _=effect("animal", traits=["y"]))}
    groups = {"column": "origin", "effect": "fixed"} | groups
    prepared = prepare(analysis(frame, ["y"], {"herd": {}}, genetic, pedigree=pedigree, groups=groups))
    equations = dense.build(prepared.design, [None, np.array([[0.5]])], R)
    theta = prepared.design.to_original_scale(equations.theta(equations.solution))
    return prepared, dict(zip(prepared.levels[1].ids.to_list(), theta[1][:, 0].tolist(), strict=True))


def test_the_group_with_the_oldest_animals_is_the_base():
    prepared, values = breeding_values(PEDIGREE)
    assert values["east"] == 0.0 and prepared.references["groups"] == {"genetic": {"y": "east"}}
    assert "reference of the unknown-parent groups of genetic: east" in prepared.design.notes
    _, others = breeding_values(PEDIGREE, reference="south")
    assert others["south"] == 0.0
    shift = {name: values[name] - others[name] for name in values}
    assert shift == pytest.approx(dict.fromkeys(values, values["south"]), abs=1e-8)


def test_a_new_group_leaves_the_base():
    """Of animals of its own, whose records are in a herd of their own effect: nothing is said of the others."""
    _, before = breeding_values(PEDIGREE)
    _, after = breeding_values(PEDIGREE + "z,,,2010,another\n")
    assert after["another"] == 0.0  # no record says anything of it: aliased, and said so
    assert {name: after[name] for name in before} == pytest.approx(before, abs=1e-8)


def test_groups_by_age():
    sire, dam = np.array([5, -1, 0, 6, 2], np.int32), np.array([5, -1, 1, 7, 3], np.int32)
    birth = np.array([2000.0, np.nan, 2003, 1990, 2005])
    assert groups_by_age(sire, dam, birth, [0, 1, 2]).tolist() == [1, 2, 0]
    assert groups_by_age(sire, dam, birth, [0, 2, 1]).tolist() == [2, 1, 0]
    # without births: two generations after animal 0, one after animal 3
    assert groups_by_age(sire, dam, None, [1, 0, 2]).tolist() == [0, 1, 2]
    assert groups_by_age(sire, dam, np.full(5, np.nan), [2, 1, 0]).tolist() == [0, 2, 1]


def test_classes_of_a_binary_trait_are_differences_from_a_reference(tmp_path, monkeypatch):
    """The intercept contains the reference level, draw by draw; another variance leaves deviations."""
    rng = np.random.default_rng(1)
    n = 120
    frame = pl.DataFrame({"sex": rng.choice(["male", "female"], n), "pen": rng.choice(["p1", "p2", "p10"], n)})
    frame = frame.with_columns(
        sire=pl.Series(rng.choice(list("abcdef"), n)), ill=pl.Series(rng.choice(["no", "yes"], n))
    )
    source = {
        "data": {"phenotypes": frame},
        "traits": {"ill": {"type": "binary", "positive": "yes"}},
        "model": {"fixed": {"sex": {"reference": "male"}, "pen": {}}, "random": {"sire": {}}},
        "sampler": {"burn_in": 10, "samples": 200, "thin": 1, "chains": 1},
    }
    monkeypatch.chdir(tmp_path)
    found = mmgibbs.run(source, directory="found", progress=False)
    monkeypatch.setattr(fixed_columns, "is_vague", lambda *_: False)
    plain = mmgibbs.run(source, directory="plain", progress=False)
    assert found.info["reference_levels"]["fixed"] == {"sex": {"ill": "male"}, "pen": {"ill": "p1"}}
    assert plain.info["reference_levels"]["fixed"] == {}
    values, expected = (
        dict(zip(result.solutions["level"], result.solutions["mean"], strict=True)) for result in (found, plain)
    )
    assert values["male"] == values["p1"] == 0.0
    assert values["1"] == pytest.approx(expected["1"] + expected["male"] + expected["p1"])
    assert values["female"] == pytest.approx(expected["female"] - expected["male"])
    assert values["p10"] == pytest.approx(expected["p10"] - expected["p1"])
    sd = dict(zip(found.solutions["level"], found.solutions["sd"], strict=True))
    assert sd["male"] == 0.0 and sd["female"] < 1.0


def test_a_level_without_records_of_a_binary_trait_moves_too():
    """Under its prior it has a solution: a difference from the reference, as those of other levels."""
    effect = ClassEffect("herd", "herd", (0,), np.array([0, 0, 1, -1], np.int32), ["a", "b", "c"], (10.0,), None, (0,))
    intercept = ClassEffect("intercept", "", (0,), np.zeros(4, np.int32), ["1"])
    design = resolve([intercept, effect], np.ones((4, 1), bool), np.zeros(1), np.ones(4), ["ill"])
    assert [shift.moved.tolist() for shift in design.base] == [[True], [False, True, True], [True, False, False]]


def test_a_reference_of_a_binary_trait_needs_something_with_the_mean():
    source = {
        "data": {"phenotypes": "p.csv"},
        "traits": {"ill": {"type": "binary", "positive": "yes"}},
        "model": {"intercept": False, "fixed": {"sex": {"reference": "M"}}, "random": {"sire": {}}},
    }
    with pytest.raises(ConfigError, match=r"model.fixed.sex.reference: found without an intercept"):
        mmgibbs.load_config(source)
