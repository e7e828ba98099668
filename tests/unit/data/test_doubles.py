"""Rows that are the same as an earlier one are warned of, unless chance explains them."""

import numpy as np
import polars as pl
from helpers.analyses import analysis, effect, random

from mmgibbs.data.prepare import prepare


def recorded(n=60, digits=1, animals=None):
    y = np.random.default_rng(6).normal(50, 5, n).round(digits)
    return pl.DataFrame({"animal": [f"a{i % (animals or n)}" for i in range(n)], "sex": list("mf") * (n // 2), "y": y})


def doubles(frame):
    """Warnings; `sex` is a column that the analysis does not read."""
    return prepare(analysis(frame, ["y"], {}, {"animal": random(_=effect("animal", traits=["y"]))})).warnings


def test_rows_that_are_entered_twice_are_named(tmp_path):
    path = tmp_path / "records.csv"
    pl.concat([recorded(), recorded()[3:5]]).write_csv(path)
    (warning,) = doubles(path)
    assert warning == (
        "records.csv: 2 rows are the same as an earlier one in every column (rows 62, 63): entered twice? Each counts "
        "as a record"
    )
    pl.concat([recorded(), recorded()[:1], recorded()[:1]]).write_csv(path, separator=";")
    assert "2 rows are the same as an earlier one in every column (rows 62, 63)" in doubles(path)[0]
    (warning,) = doubles(pl.concat([recorded(), recorded()[7:8]]))
    assert warning.startswith("phenotypes: 1 row is the same as an earlier one in every column (row 61): entered")


def test_records_that_may_be_equal_by_chance_are_no_doubles():
    whole = recorded().with_columns(pl.col("y").round(0))
    assert doubles(pl.concat([whole, whole[3:5]])) == ()  # scores
    often = recorded(400, 1, animals=4)  # a hundred records of each animal, of about 200 values
    assert often.is_duplicated().any() and doubles(often) == ()
    other = pl.concat([recorded(), recorded()[3:5].with_columns(sex=pl.lit("?"))])
    assert doubles(other) == ()  # another value in a column that is not read
    none = recorded()[:2].with_columns(y=pl.lit(None, pl.Float64))
    assert doubles(pl.concat([recorded(), none, none])) == ()  # no records
    twice_said = often.with_columns(pounds=pl.col("y") * 2.2046, animal=pl.lit("a"))
    assert twice_said.is_duplicated().any() and doubles(twice_said) == ()  # another column says the same


def test_what_records_of_an_animal_have_in_common_is_no_evidence():
    """Half-point scores of which an animal has several: a birth weight beside them makes no pair of them a double."""
    r = np.random.default_rng(1)
    of, score = np.arange(1000) // 5, r.integers(2, 10, 1000) / 2
    scores = pl.DataFrame({"animal": [f"a{i}" for i in of], "y": score, "bw": r.normal(40, 4, 200).round(3)[of]})
    assert scores.is_duplicated().any() and doubles(scores) == ()
    of_two = {"animal": random(_=effect("animal", traits=["y", "bw"]))}
    assert prepare(analysis(scores, ["y", "bw"], {}, of_two)).warnings == ()
    finely = recorded(600, 6, animals=200)
    assert "the same as an earlier one" in doubles(pl.concat([finely, finely[3:5]]))[0]


def test_a_word_for_a_missing_number_does_not_make_scores_measurements():
    r = np.random.default_rng(1)
    scores = pl.DataFrame({f"y{i}": r.integers(1, 6, 60).astype(float) for i in range(5)})
    scores = scores.with_columns(
        animal=pl.Series([f"a{i}" for i in range(60)]), y0=pl.Series(["NaN", "3", "NaN", "4"] * 15)
    )
    traits, missing = [f"y{i}" for i in range(5)], ["", "NA", "NaN"]
    again = pl.concat([scores, scores[2:5]])
    assert prepare(analysis(again, traits, missing=missing)).warnings == ()


def test_a_frame_with_a_column_that_cannot_be_compared():
    frame = pl.concat([recorded(), recorded()[3:5]]).with_columns(notes=pl.lit([1, 2]), none=None, raw=pl.lit(b"\xff"))
    assert len(doubles(frame)) == 1


def test_rows_of_equal_hashes_are_compared(monkeypatch):
    """Two rows that differ may have one hash."""
    monkeypatch.setattr(pl.DataFrame, "hash_rows", lambda self: pl.zeros(self.height, pl.UInt64, eager=True))
    assert doubles(recorded()) == ()
    assert "(row 61): entered twice" in doubles(pl.concat([recorded(), recorded()[7:8]]))[0]
