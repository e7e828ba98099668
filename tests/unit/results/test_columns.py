"""The meaning of columns: of every column that a run writes, none without one."""

import pytest

from mmgibbs.results.columns import OUTPUTS, meaning
from mmgibbs.results.folder import CONTENTS


def test_every_table_of_the_run_folder_is_described():
    tables = {name for name in CONTENTS if name.endswith((".csv", ".parquet"))}
    assert {name for name in tables if name not in OUTPUTS and name.replace(".parquet", ".csv") not in OUTPUTS} == set()


@pytest.mark.parametrize(
    ("file", "column", "known"),
    [
        ("decisions.csv", "p_top_5", "X per cent"),
        ("decisions.csv", "p_top_2.5", "X per cent"),
        ("solutions.csv", "probability[very ill]", "probability of the category"),
        ("markers.parquet", "effect_sd_milk_yield", "standard deviation"),
        ("markers.parquet", "effect_milk", "posterior mean"),
        ("markers.parquet", "class_2_milk", "class K"),
    ],
)
def test_names_of_the_analysis_within_columns(file, column, known):
    assert known in meaning(file, column)


def test_an_unknown_column_has_none():
    assert meaning("summary.csv", "effect_milk") is None
