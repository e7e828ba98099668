"""Several levels in one effect: which levels and weights records get, what is refused, and the oracles."""

import numpy as np
import polars as pl
import pytest
from helpers.support import shared_data

import mmgibbs
from mmgibbs.build.assemble import assemble
from mmgibbs.build.connectivity import count_common_levels
from mmgibbs.data.group_mates import find_mates
from mmgibbs.data.prepare import prepare
from mmgibbs.data.traits import load_analysis
from mmgibbs.errors import ConfigError, DataError

RECORDS = pl.DataFrame(
    {
        "animal": ["a", "b", "c", "d", "e", "f", "b"],
        "pen": ["p", "p", "p", "q", "q", "r", "p"],
        "m1": ["b", "a", "a", "e", "d", None, "a"],
        "m2": ["c", "c", "b", None, None, None, "c"],
        "w1": [0.5, 0.2, 0.3, 1.0, 1.0, None, 0.2],
        "w2": [0.25, 0.1, 0.4, None, None, None, 0.1],
        "days": [10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0],
        "gain": [1.0, 2.0, None, 4.0, 5.0, 6.0, 3.0],
    }
)
PEDIGREE = pl.DataFrame({"animal": list("abcdef"), "sire": ["0"] * 5 + ["a"], "dam": ["0"] * 5 + ["b"]})


def keys(social, relationship="pedigree", records=RECORDS):
    random = {"genetic": {"relationship": relationship, "effects": {"direct": {"level": "animal"}, "social": social}}}
    return {
        "name": "pens",
        "data": {"phenotypes": records} | ({"pedigree": PEDIGREE} if relationship == "pedigree" else {}),
        "traits": ["gain"],
        "model": {"random": random},
        "sampler": {"method": "blup"},
        "variances": {"mode": "fixed", "genetic": [[2.0, 0.3], [0.3, 0.5]], "residual": 1.0},
    }


def analysis(social, **more):
    return load_analysis(keys(social, **more))


def levels_of(social, **more):
    """(records, slots) names of the levels of the social effect, and their weights."""
    prepared = prepare(analysis({"unknown_level": "omit"} | social, **more))
    effect = prepared.design.terms[-1].effects[1]
    names = [*prepared.levels[-1].ids.to_list(), None]
    return [[names[i] for i in row] for row in effect.level.tolist()], effect.covariates, prepared


MATES = [["b", "c"], ["a", "c"], ["e", None], ["d", None], [None, None], ["a", "c"]]


@pytest.mark.parametrize("relationship", ["pedigree", "identity"])
def test_mates_are_the_other_animals_of_the_group_with_or_without_a_record_of_the_trait(relationship):
    """Animal c has no gain and is a mate; animal b has two records and is a mate once."""
    found, weights, prepared = levels_of({"level": {"group": "pen"}}, relationship=relationship)
    assert [sorted(filter(None, row)) for row in found] == [sorted(filter(None, row)) for row in MATES]
    assert weights is None
    assert any("1 record is of animals alone in their pen" in note for note in prepared.design.notes)


def test_columns_of_mates_are_the_same_levels_as_the_group():
    by_group, _, _ = levels_of({"level": {"group": "pen"}})
    by_column, _, prepared = levels_of({"level": ["m1", "m2"]})
    assert [set(row) for row in by_column] == [set(row) for row in by_group]
    assert any("2 records have no level in some of the columns m1, m2" in note for note in prepared.design.notes)


def test_the_own_animal_belongs_to_the_group_where_others_is_false():
    found, _, _ = levels_of({"level": {"group": "pen", "others": False}})
    assert [len(list(filter(None, row))) for row in found] == [3, 3, 2, 2, 1, 3]


def test_weights_of_columns_of_records_and_of_dilution():
    _, weights, _ = levels_of({"level": ["m1", "m2"], "weights": ["w1", "w2"]})
    np.testing.assert_array_equal(weights[:3], [[0.5, 0.25], [0.2, 0.1], [1.0, 0.0]])
    _, weights, _ = levels_of({"level": {"group": "pen", "dilution": 1}})
    np.testing.assert_array_equal(weights, [[0.5, 0.5], [0.5, 0.5], [1, 0], [1, 0], [0, 0], [0.5, 0.5]])
    _, weights, _ = levels_of({"level": {"group": "pen", "dilution": 0.5, "weight": "days"}})
    np.testing.assert_allclose(weights[:3], [[10 / 2**0.5] * 2, [20 / 2**0.5] * 2, [40, 0]])


def test_find_mates_by_definition():
    rng = np.random.default_rng(3)
    n = 200
    groups = pl.Series([None if rng.random() < 0.1 else f"g{rng.integers(30)}" for _ in range(n)])
    animals = pl.Series([None if rng.random() < 0.1 else f"a{rng.integers(80)}" for _ in range(n)])
    records = np.sort(rng.choice(n, 120, replace=False))
    for others in (True, False):
        ids, mate = find_mates(groups, animals, records, others)
        for row, r in zip(mate, records.tolist(), strict=True):
            same = {a for a, g in zip(animals, groups, strict=True) if g == groups[r] and a is not None}
            expected = set() if groups[r] is None else same - ({animals[r]} if others else set())
            found = [ids[int(i)] for i in row if i >= 0]
            assert len(found) == len(set(found)) and set(found) == expected


def test_solutions_are_those_of_dense_equations(tmp_path):
    """W of the social effect has the weight of each mate."""
    social = {"level": {"group": "pen", "dilution": 1}, "unknown_level": "omit"}
    result = mmgibbs.run(keys(social), directory=tmp_path / "run", progress=False)
    kept = RECORDS.filter(pl.col("gain").is_not_null())
    ids = list("abcdef")
    Z = np.array([[float(a == i) for i in ids] for a in kept["animal"]])
    S = np.zeros_like(Z)
    for r, row in enumerate(MATES):
        for mate in filter(None, row):
            S[r, ids.index(mate)] = 1 / len(list(filter(None, row)))
    A = np.eye(6)
    A[5, :2] = A[:2, 5] = 0.5
    G = np.array([[2.0, 0.3], [0.3, 0.5]])
    W = np.hstack([Z, S])
    V = W @ np.kron(G, A) @ W.T + np.eye(len(kept))
    one, y = np.ones(len(kept)), kept["gain"].to_numpy()
    mean = one @ np.linalg.solve(V, y) / (one @ np.linalg.solve(V, one))
    u = np.kron(G, A) @ W.T @ np.linalg.solve(V, y - mean)
    for effect, expected in (("direct", u[:6]), ("social", u[6:])):
        rows = result.solutions.filter(pl.col("term") == "genetic", pl.col("effect") == effect)
        np.testing.assert_allclose(dict(rows.select("level", "mean").iter_rows())["f"], expected[5], atol=1e-8)
        np.testing.assert_allclose(rows.sort("level")["mean"], expected, atol=1e-8)


@pytest.mark.parametrize(
    "social, place, message",
    [
        ({"level": ["m1", "m2"], "weights": ["w1"]}, "weights", "found 1 columns, needed one for each of the 2"),
        ({"level": ["m1", "m1"]}, "level", "m1"),
        ({"levels": ["m1", "m1"]}, "levels", "m1"),
        ({"level": {"group": "pen", "of": "pen"}}, "level.of", "which is the column of the groups as well"),
        ({"level": {"group": "pen"}, "weights": ["w1"]}, "weights", "needed level: {group: pen, weight: COLUMN}"),
        ({"level": {"pen": "pen"}}, "level.pen", "unknown key"),
        ({"level": {"of": "animal"}}, "level.group", "missing"),
        ({"mates": {"pen": "pen"}}, "mates.pen", "unknown key"),
        ({"level": {"group": "pen"}, "weight": "w1"}, "weight", "it belongs within level: {group: COLUMN, weight:"),
        ({"level": "pen", "group": "pen"}, "group", "it belongs within level: {group: COLUMN}"),
        ({"level": ["m1", "m2"], "covariates": ["days"]}, "level", "cannot be combined with covariates"),
        ({"level": ["m1"], "mates": {"group": "pen"}}, "level", "cannot be combined with mates"),
        ({"level": {"group": "pen", "dilution": 2}}, "level.dilution", "0"),
    ],
)
def test_refused(social, place, message):
    with pytest.raises(ConfigError) as refused:
        analysis(social)
    assert f"social.{place}: " in str(refused.value) and message in str(refused.value)


def test_an_effect_that_names_no_animals_asks_for_their_column():
    read = keys({"level": {"group": "pen"}})
    read["model"] = {"random": {"genetic": {"level": {"group": "pen"}, "relationship": "pedigree"}}}
    with pytest.raises(ConfigError, match=r"genetic\.level\.of: missing, .* level: \{group: pen, of: animal\}"):
        load_analysis(read)


def test_rows_without_a_group_are_named_by_its_column():
    lacking = RECORDS.with_columns(pen=pl.when(pl.col("animal") != "d").then("pen"))
    with pytest.raises(DataError) as refused:
        prepare(analysis({"level": {"group": "pen"}}, records=lacking))
    assert "row 4: found no value in column 'pen' (model.random.genetic.effects.social.level.group)" in str(
        refused.value
    )
    assert "needed its group, or 'model.random.genetic.effects.social.unknown_level: omit'" in str(refused.value)
    notes = prepare(analysis({"level": {"group": "pen"}, "unknown_level": "omit"}, records=lacking)).design.notes
    path = "model.random.genetic.effects.social"
    assert f"{path}.unknown_level: omit: 1 record has no pen: used without this effect" in notes
    assert f"{path}.level: a record has 1.2 other animals of its pen on average, 2 at most" in notes
    assert f"{path}.level: 2 records are of animals alone in their pen: used without this effect" in notes
    notes = prepare(analysis({"level": {"group": "pen", "others": False}, "unknown_level": "omit"})).design.notes
    assert f"{path}.level: a record has 2.33 animals of its pen on average, 3 at most, itself among them" in notes


def test_a_record_without_a_weight_for_its_mates_is_refused():
    lacking = RECORDS.with_columns(days=pl.when(pl.col("animal") != "d").then("days"))
    with pytest.raises(DataError, match=r"row 4: found no value in column 'days' \(.*level.weight\); .*; 0 leaves"):
        prepare(analysis({"level": {"group": "pen", "weight": "days"}, "unknown_level": "omit"}, records=lacking))


def test_records_without_any_level_and_levels_without_weight_are_refused_by_row():
    with pytest.raises(DataError, match=r"row 6.*m1 \+ m2"):
        prepare(analysis({"level": ["m1", "m2"]}))
    lacking = RECORDS.with_columns(w1=pl.when(pl.col("animal") != "a").then("w1"))
    with pytest.raises(DataError, match="no value in column 'w1' .* needed a number for every level of a record; 0"):
        prepare(analysis({"level": ["m1", "m2"], "weights": ["w1", "w2"], "unknown_level": "omit"}, records=lacking))
    for level, place in (({"group": "cage"}, "level.group"), ({"group": "pen", "of": "sow"}, "level.of")):
        with pytest.raises(DataError, match=rf"no column '(cage|sow)' \(model.random.genetic.effects.social.{place}\)"):
            prepare(analysis({"level": level}))


def test_the_total_heritability_and_the_variance_of_records(tmp_path):
    """Of the five records with mates three have two, with weights of 1 / sqrt(2), and two have one."""
    social = {"level": {"group": "pen", "dilution": 0.5}, "unknown_level": "omit"}
    result = mmgibbs.run(keys(social), directory=tmp_path / "run", progress=False)
    values = dict(result.summary.select("parameter", "mean").iter_rows())
    of_sums, of_squares = (3 * 2**0.5 + 2) / 5, 1.0
    phenotypic = 2.0 + of_squares * 0.5 + 1.0
    total = 2.0 + 2 * of_sums * 0.3 + of_sums**2 * 0.5
    assert values["h2[gain]"] == pytest.approx(2.0 / phenotypic)
    assert values["total_h2[gain]"] == pytest.approx(total / phenotypic)
    assert values["ratio[genetic.social:gain]"] == pytest.approx(of_squares * 0.5 / phenotypic)


def test_mates_of_twice_the_weight_have_a_quarter_of_the_starting_variance(tmp_path):
    """So that every effect begins with the same share of the variance of the records."""

    def start(weights):
        frame = RECORDS.with_columns(pl.lit(weights).alias("w1"), pl.lit(weights).alias("w2"))
        social = {"level": ["m1", "m2"], "weights": ["w1", "w2"], "unknown_level": "omit"}
        changed = {"variances": {"genetic": {"prior": {"half_t": {}}}}, "sampler": {}}
        read = load_analysis(keys(social, records=frame) | changed)
        return assemble(read, prepare(read)).model.covariance(-1).start

    one, two = start(1.0), start(2.0)
    assert two[1, 1] == pytest.approx(one[1, 1] / 4) and two[0, 0] == pytest.approx(one[0, 0])


def test_levels_in_common_count_mates(tmp_path):
    """Of two traits at different sites, animals that are mates at both."""
    frame = RECORDS.with_columns(site=pl.Series(["s", "s", "s", "t", "t", "t", "t"]), gain=pl.lit(1.0))
    random = {"mate": {"level": ["m1", "m2"], "unknown_level": "omit"}}
    read = load_analysis(
        {"name": "x", "data": {"phenotypes": frame}, "traits": {"gain": {"by": "site"}}, "model": {"random": random}}
    )
    (counted,) = count_common_levels(prepare(read).design)
    at_s, at_t = {"a", "b", "c"}, {"d", "e", "a", "c"}
    assert counted.counts.tolist() == [[len(at_s), len(at_s & at_t)], [len(at_s & at_t), len(at_t)]]


def test_general_combining_abilities_of_a_diallel(tmp_path):
    """Grover and Rai (2010): parents fixed, here with a prior variance of 1e6 error variances."""
    diallel = {
        "name": "diallel",
        "data": {"phenotypes": str(shared_data("data/agridat/grover.diallel.txt")), "separator": "tab"},
        "traits": ["yield"],
        "model": {"fixed": {"rep": {}}, "random": {"gca": {"level": ["parent1", "parent2"]}}},
        "variances": {"mode": "fixed", "gca": 1e6, "residual": 1.0},
        "sampler": {"method": "blup"},
    }
    result = mmgibbs.run(diallel, directory=tmp_path / "run", progress=False)
    found = result.solutions.filter(pl.col("term") == "gca").sort("level")["mean"]
    np.testing.assert_allclose(found, [1.4851, -0.9911, 2.2630, 5.4247, -4.2490, -3.9328], atol=1e-4)


def test_validation_refuses_mates_that_have_no_record():
    read = keys({"level": {"group": "pen"}, "unknown_level": "omit"})
    with pytest.raises(ConfigError, match=r"social.level: cannot be combined with rows of .* without a record"):
        mmgibbs.validate(read, plan=mmgibbs.ValidationPlan(folds=2))


def test_the_page_and_comparisons_say_which_levels_records_have(tmp_path):
    runs = []
    for name, social in (
        ("group", {"level": {"group": "pen"}, "unknown_level": "omit"}),
        ("columns", {"level": ["m1", "m2"], "unknown_level": "omit"}),
    ):
        runs.append(str(tmp_path / name))
        mmgibbs.run(keys(social), directory=runs[-1], progress=False, report=True)
    pages = [(tmp_path / name / "report.html").read_text() for name in ("group", "columns")]
    assert "genetic.social (others of the same pen)" in pages[0] and "genetic.social (m1 + m2)" in pages[1]
    assert mmgibbs.compare(*runs) is not None
