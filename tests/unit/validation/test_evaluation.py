"""BLUP without some records: what goes wrong names them, and a fold may have too few of them to be absorbed."""

import numpy as np
import polars as pl
import pytest
import yaml
from helpers.validation_data import G, R, analysis_of, beef_frames, small_beef

from mmgibbs.config import load_config
from mmgibbs.engines.pcg.solver import PcgSolver
from mmgibbs.errors import ConfigError, ModelError
from mmgibbs.validation.evaluation import evaluate, evaluate_masked, read_recorded
from mmgibbs.validation.options import starts_text


def records_of(preconditioner):
    """(records, those of the last year): a small population solved by this preconditioner."""
    analysis = analysis_of(*beef_frames(small_beef(120, 3, 4)), group="herd")
    sampler = {"method": "blup", "preconditioner": preconditioner}
    records = read_recorded(load_config(analysis | {"sampler": sampler}))
    year = records.phenotypes.frame["year"].to_numpy()
    return records, year == year.max()


def test_iterations_that_stop_name_what_was_left_out(monkeypatch):
    records, last = records_of("blocks")
    monkeypatch.setattr(PcgSolver, "iteration_limit", 1)
    with pytest.raises(ModelError, match=r"^validate: without the records of fold 2: PCG stopped after 1 iteration"):
        evaluate_masked(records, last, "fold 2")


def test_a_fold_with_too_few_records_to_be_absorbed_has_blocks(monkeypatch):
    """The whole data have just enough."""
    records, last = records_of("absorption")
    monkeypatch.setattr("mmgibbs.engines.coloured.unrolled.UNROLL_FROM", last.size)
    evaluate(records.analysis)
    found = evaluate_masked(records, last, "the last year")
    expected = evaluate_masked(records_of("blocks")[0], last, "the last year")
    assert found.solver.solve(1e-12).preconditioner == "blocks"
    for ours, other in zip(found.theta, expected.theta, strict=True):
        np.testing.assert_array_equal(ours, other)


def test_folds_are_solved_as_the_file_asks(monkeypatch):
    monkeypatch.setattr("mmgibbs.engines.coloured.unrolled.UNROLL_FROM", 0)
    for name in ("absorption", "blocks"):
        records, last = records_of(name)
        assert evaluate_masked(records, last, "the last year").solver.solve(1e-12).preconditioner == name


def test_the_lines_of_a_start_are_given():
    analysis = analysis_of(*beef_frames(small_beef(60, 3, 4)), group="herd")
    with pytest.raises(ConfigError) as refused:
        read_recorded(load_config(analysis | {"variances": {"residual": R}}))
    said, *lines = str(refused.value).splitlines()
    assert said.startswith("variances.animal: found no start, needed one, ") and "C (covariance):" in said
    assert lines == ["variances:", "  animal:", "    start: V"]
    read = yaml.safe_load("\n".join(lines).replace("V", str(G)))
    read_recorded(load_config(analysis | {"variances": read["variances"] | {"residual": R}}))


def test_the_lines_of_starts_are_of_all_components_in_their_order():
    phenotypes, pedigree = beef_frames(small_beef(60, 3, 4))
    analysis = analysis_of(phenotypes.with_columns(heavy=pl.col("birth_weight") > 40), pedigree)
    analysis["traits"] = {"birth_weight": {}, "heavy": {"type": "binary"}}
    both = {"a": {"level": "animal"}, "m": {"level": "dam"}}
    analysis["model"]["random"] = {
        "animal": {"relationship": "pedigree", "effects": both},
        "dam herd": {"level": "herd"},
    }
    analysis["variances"] = {"dam herd": {"structure": "diagonal"}}
    lines = starts_text(load_config(analysis), ["dam herd", "residual"]).splitlines()
    assert lines == [
        "variances:",
        "  dam herd:  # rows and columns: birth_weight, heavy",
        "    start: [[V1, 0], [0, V2]]",
        "  residual:  # rows and columns: birth_weight, heavy",
        "    start: [[V1, C12], [C12, 1]]",
    ]
    of_four = starts_text(load_config(analysis), ["animal"])
    assert "a:birth_weight, a:heavy, m:birth_weight, m:heavy" in of_four and "[C14, C24, C34, V4]]" in of_four
