"""What bad tables get: one message with file, row, column, found and needed; never a traceback, a NaN or a silent
drop."""

import numpy as np
import polars as pl
import pytest
from helpers.analyses import analysis, effect, fixed, random, trait
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mmgibbs.data.prepare import prepare
from mmgibbs.errors import DataError

GOOD = """animal,herd,sex,y,z,w,x
c1,1,F,1.5,2,1,0.5
c2,2,M,2.5,1,1,1.5
c3,1,F,3,4,1,2.5
c3,2,M,3.5,NA,1,3.5
c1,2,F,4.5,5,1,4.5
"""
PEDIGREE = "id,sire,dam\nc1,s,d\nc2,s,d2\nc3,c1,c2\n"


def standard(phenotypes, pedigree, traits=("y", "z"), **data):
    every = [t if isinstance(t, str) else next(iter(t)) for t in traits]
    last = every[-1:]
    fixed_effects = {
        "herd": fixed("herd", traits=every),
        "sex": fixed("sex", traits=last),
        "age": fixed("x", "covariate", traits=last, legendre=(1, (0, 5))),
    }
    direct, maternal = effect("animal", traits=every), effect("dam", traits=every[:1])
    genetic = {"genetic": random("pedigree", direct=direct, maternal=maternal)}
    return analysis(phenotypes, traits, fixed_effects, genetic, pedigree=pedigree, **{"weights": "w"} | data)


def message(tmp_path, phenotypes=GOOD, pedigree=PEDIGREE, **options):
    for name, text in (("phenotypes.csv", phenotypes), ("pedigree.csv", pedigree)):
        (tmp_path / name).unlink(missing_ok=True)
        if text is not None:
            (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(DataError) as caught:
        prepare(standard(tmp_path / "phenotypes.csv", tmp_path / "pedigree.csv", **options))
    return str(caught.value)


def test_the_good_files_are_good(tmp_path):
    (tmp_path / "phenotypes.csv").write_text(GOOD)
    (tmp_path / "pedigree.csv").write_text(PEDIGREE)
    design = prepare(standard(tmp_path / "phenotypes.csv", tmp_path / "pedigree.csv")).design
    assert design.n_records == 5 and np.isfinite(design.y).sum() == 9


CORRUPTIONS = [  # row, what replaces what in the phenotype file, what the message says
    (
        2,
        "1.5,2,1,0.5",
        "tall,2,1,0.5",
        ["'tall'", "column 'y' (traits.y)", "needed a finite number", "(NA, empty; data."],
    ),
    (2, "1.5,2,1,0.5", "1.5,inf,1,0.5", ["'inf'", "column 'z'", "finite"]),
    (3, "2.5,1,1,1.5", "NaN,1,1,1.5", ["'NaN'", "column 'y'"]),
    (3, "2.5,1,1,1.5", "1e999,1,1,1.5", ["'1e999'"]),
    (4, "3,4,1,2.5", "3,4,-2,2.5", ["weight -2 in column 'w' (data.weights)", "needed a positive weight"]),
    (4, "3,4,1,2.5", "3,4,0,2.5", ["the weight 0"]),
    (4, "3,4,1,2.5", "3,4,,2.5", ["no weight"]),
    (4, "3,4,1,2.5", "3,4,heavy,2.5", ["'heavy'", "data.weights"]),
    (4, "3,4,1,2.5", "3,4,1,old", ["'old'", "column 'x' (model.fixed.age)"]),
    (4, "3,4,1,2.5", "3,4,1,NA", ["no value in column 'x' (model.fixed.age)", "needed a covariate"]),
    (4, "3,4,1,2.5", "3,4,1,7", ["found 7 in column 'x' (model.fixed.age.legendre)", "the stated range, 0 to 5"]),
    (3, "c2,2,M", "c2,NA,M", ["no value in column 'herd' (model.fixed.herd)", "needed a level"]),
    (6, "c1,2,F", "c1,2, ", ["no value in column 'sex'"]),
    (3, "c2,2,M", "c9,2,M", ["animal 'c9' (column 'animal') is not in the pedigree", "data.add_missing_animals: true"]),
    (3, "c2,2,M", ",2,M", ["no known level in column 'animal'"]),
    (3, "c2,2,M", "0,2,M", ["no known level in column 'animal'"]),
    (0, "herd,sex", "heard,sex", ["no column 'herd' (model.fixed.herd)", "nearest: 'heard'"]),
    (0, "y,z,w", "y,zz,w", ["there is no column 'z' (traits.z)"]),
    (0, "z,w,x", "z,weight,x", ["there is no column 'w' (data.weights)"]),
    (0, "animal,herd", "animel,herd", ["no column 'animal' (model.random.genetic.effects.direct.level)", "'animel'"]),
    (3, "c2,2,M,2.5,1,1,1.5", "c2,2,M", ["3 fields", "7"]),
]


@pytest.mark.parametrize(("row", "old", "new", "said"), CORRUPTIONS)
def test_a_corrupted_phenotype_file(tmp_path, row, old, new, said):
    assert GOOD.count(old) == 1
    found = message(tmp_path, GOOD.replace(old, new))
    for part in [f"phenotypes.csv row {row}" if row else "phenotypes.csv: ", *said]:
        assert part in found, found


def test_files_that_are_not_tables(tmp_path):
    assert "phenotypes.csv: no such file" in message(tmp_path, None)
    assert "pedigree.csv: no such file" in message(tmp_path, pedigree=None)
    assert "phenotypes.csv: is empty" in message(tmp_path, "")
    assert "phenotypes.csv: has a header line but no rows" in message(tmp_path, GOOD.splitlines()[0] + "\n")
    assert "animal 'ü' (column 'animal') is not in" in message(tmp_path, GOOD.replace("c2", "ü").encode("latin-1"))


def test_a_trait_without_records(tmp_path):
    found = message(tmp_path, GOOD, traits=("y", trait("empty", "z", missing=["2", "1.0", "4", "5"])))
    assert "phenotypes.csv: found no record of trait 'empty' (column 'z'); needed at least one" in found
    assert "no record of trait 'y'" in message(tmp_path, "animal,herd,sex,y,z,w,x\nc1,1,F,NA,,1,1\n")


def test_the_first_rows_are_shown():
    frame = pl.DataFrame({"y": [1.0] * 30, "c": [None if i % 2 else "a" for i in range(30)]})
    with pytest.raises(DataError) as caught:
        prepare(analysis(frame, ["y"], {"c": fixed("c", traits=["y"])}))
    lines = str(caught.value).splitlines()
    assert (
        lines[0] == "phenotypes row 2: found no value in column 'c' (model.fixed.c); needed a level for every record "
        "of a trait that the effect acts on, or 'model.fixed.c.without_value: drop' (these records are then left out)"
    )
    assert [line.split(":")[0] for line in lines[1:5]] == [f"  row {r}" for r in (4, 6, 8, 10)]
    assert lines[5:] == ["  ... and 10 more rows, the last of them row 30"]


def test_rows_are_counted_as_an_editor_does(tmp_path):
    """Blank lines count, records without a trait too."""
    text = "animal,herd,sex,y,z,w,x\n\nc1,1,F,NA,NA,1,1\n\nc1,1,F,1,1,1,1\nc1,,F,1,1,1,1\n"
    assert message(tmp_path, text).startswith("phenotypes.csv row 6: found no value in column 'herd'")


def test_numbers_in_frames_are_checked_too():
    for value in (np.inf, np.nan):
        with pytest.raises(DataError, match=f"phenotypes row 2: found {value} in column 'y'"):
            prepare(analysis(pl.DataFrame({"y": [1.0, value]}), ["y"]))
    p = prepare(analysis(pl.DataFrame({"y": [1.0, np.nan, 2.0]}), [trait("y", missing=["nan"])]))
    assert p.record_row.tolist() == [1, 3]
    single = pl.DataFrame({"y": [1.0, -9.9, 2.0]}, schema={"y": pl.Float32})
    p = prepare(analysis(single, [trait("y", missing=["-9.9"])]))
    assert p.record_row.tolist() == [1, 3]


def test_a_trait_that_does_not_vary_is_a_warning():
    p = prepare(analysis(pl.DataFrame({"y": [0.1, 0.1, 0.1]}), ["y"]))
    assert p.phenotypic_variance.tolist() == [0] and any("trait 'y' does not vary" in n for n in p.warnings)


def test_parents_cannot_be_found(tmp_path):
    frame = pl.DataFrame({"y": [1.0, 2], "tag": ["c1", "c2"], "cow": ["d", "d2"]})
    (tmp_path / "ped.csv").write_text(PEDIGREE)
    dam = {"environment": random(_=effect("dam", traits=["y"]))}
    with pytest.raises(DataError, match=r"no column 'dam' \(model.random.environment.level\), nor a pedigree"):
        prepare(analysis(frame, ["y"], random=dam))
    with pytest.raises(DataError, match="no column names the record's animal; needed a column animal or id"):
        prepare(analysis(frame, ["y"], random=dam, pedigree=tmp_path / "ped.csv"))
    two = {"genetic": random("pedigree", a=effect("tag", traits=["y"]), b=effect("cow", traits=["y"])), **dam}
    with pytest.raises(DataError, match="no column names the record's animal"):
        prepare(analysis(frame, ["y"], random=two, pedigree=tmp_path / "ped.csv"))


@pytest.mark.parametrize(
    "text, said",
    [
        (
            "a a 1\nb b 1\na b 0.2\nb a 0.3\n",
            "kinv.txt row 4: found 0.3 for the pair b, a, but 0.2 in row 3; needed a sym",
        ),
        ("a a 1\na b 0.2\n", "kinv.txt: found no entry on the diagonal for id 'b'"),
        ("a a 1\nb b -1\n", "kinv.txt: found -1 on the diagonal for id 'b'"),
        (
            "a a 1\nb b 1\na b 1\n",
            "found 1 for the pair a, b, which their diagonal values do not allow; needed a positive",
        ),
        (
            "a a 1\nb b 1\nc c 1\na b .8\nb c .8\na c -.8\n",
            "found a matrix with the eigenvalue -0.6; needed a positive definite one (model.random.line.relationship)",
        ),
        ("a a 1\nb b inf\n", "kinv.txt row 2: found 'inf' as the value; needed a finite number"),
        ("a a\nb b\n", "kinv.txt: found 2 columns; needed three, id1 id2 value"),
        (
            "a a 1\n",
            "phenotypes row 2: 'b' (column 'line') is not in kinv.txt; needed an id of the relationship file of ",
        ),
    ],
)
def test_a_relationship_file_that_cannot_be_used(tmp_path, text, said):
    (tmp_path / "kinv.txt").write_text(text)
    frame = pl.DataFrame({"y": [1.0, 2], "line": ["a", "b"]})
    with pytest.raises(DataError) as caught:
        prepare(analysis(frame, ["y"], random={"line": random(tmp_path / "kinv.txt", _=effect("line", traits=["y"]))}))
    assert said in str(caught.value)


GOOD_VALUES = [["c1", "c2", "c3"], ["1", "2", "10"], ["F", "M"], ["1", "2.5", "NA", ""]]
GOOD_VALUES += [["-1", "3e0", "NA", "0"], ["1", "0.5"], ["0.5", "2", "5"]]
ANYTHING = st.sampled_from(["", "NA", "0", "1", "3.5", "-1", "c9", "s", "inf", "nan", "x y", "1e3", '"q"', "007"])
ROW = st.tuples(*[st.sampled_from(v) for v in GOOD_VALUES])
TABLE = st.tuples(
    st.lists(ROW, min_size=1, max_size=8),
    st.lists(st.tuples(st.integers(0, 7), st.integers(0, 6), ANYTHING), max_size=2),
)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(TABLE)
def test_random_tables_are_read_or_refused(tmp_path, drawn):
    """Either a design with finite numbers where a trait is observed and valid codes for levels, or one DataError."""
    rows, changes = [list(r) for r in drawn[0]], drawn[1]
    for row, column, value in changes:
        rows[row % len(rows)][column] = value
    (tmp_path / "phenotypes.csv").write_text("\n".join([GOOD.splitlines()[0], *(",".join(r) for r in rows)]) + "\n")
    (tmp_path / "pedigree.csv").write_text(PEDIGREE)
    try:
        p = prepare(standard(tmp_path / "phenotypes.csv", tmp_path / "pedigree.csv"))
    except DataError as error:
        assert str(error)
        return
    d = p.design
    np.testing.assert_array_equal(np.isfinite(d.y), d.patterns[d.pattern])
    assert np.all(d.weight > 0) and d.patterns.any(axis=1).all()
    assert p.counts["records"]["read"] == d.n_records + p.counts["records"]["left_out"]["no observed trait"]
    for term in d.terms:
        for e in term.effects:
            assert len(e.level) == d.n_records and e.level.min() >= -1 and e.level.max() < term.n_levels
            observes = d.patterns[d.pattern][:, list(e.traits)].any(axis=1)
            assert np.array_equal(e.level >= 0, observes)
