"""What a page says before any figure."""

from pathlib import Path

import polars as pl
import pytest

from mmgibbs.report.findings import attention, chain_findings, diagnosis, excess, remarks
from mmgibbs.report.finished import Finished


@pytest.mark.parametrize(
    ("note", "title"),
    [
        ("herd, milk: 2 levels set to 0 (no records): 7, 9", "Levels set to 0"),
        ("reference level of sex: bull", "Reference levels"),
        ("reference of the unknown-parent groups of genetic: 1990", "Reference levels"),
        ("genotypes.bed: 3 genotyped animals have no record, such as a, b, c", "Note"),
    ],
)
def test_titles_of_notes(note, title):
    (found,) = remarks(Finished(Path("run"), {"notes": [note]}, pl.DataFrame()))
    assert (found.title, found.fact) == (title, note)


def test_records_left_out_are_said_once():
    note = "40 of 912 records left out: no observed trait"
    record = {"data": {"records": {"left_out": {"no observed trait": 40, "no genotypes": 3}}}, "notes": [note]}
    found = remarks(Finished(Path("run"), record, pl.DataFrame()))
    assert [f.text for f in found] == ["3 records: no genotypes.", note]
    del record["notes"]
    assert len(remarks(Finished(Path("run"), record, pl.DataFrame()))) == 2


@pytest.mark.parametrize(
    ("rhat", "bulk", "tail", "beyond", "said"),
    [
        (1.004, 800.0, 900.0, 0.125, "R-hat 1.004, ESS bulk 800"),
        (1.004, 800.0, 40.0, 2.5, "R-hat 1.004, ESS tail 40"),
        (1.1, 800.0, 900.0, 2.0, "R-hat 1.100, ESS bulk 800"),
        (None, 50.0, None, 2.0, "ESS bulk 50"),
        (1.1, None, None, 2.0, "R-hat 1.100"),
        (None, None, None, 0.0, ""),
    ],
)
def test_how_far_a_parameter_is_beyond_the_limits(rhat, bulk, tail, beyond, said):
    row = {"rhat": rhat, "ess_bulk": bulk, "ess_tail": tail}
    assert excess(row) == pytest.approx(beyond) and diagnosis(row) == said
    assert attention(row) == (beyond > 1)


ENDS = "The ends of the intervals are rough, and so"
BULK = "whose effective sample size of the bulk is below 100."


@pytest.mark.parametrize(
    ("bulk", "tail", "advice"),
    [
        ([50, 60, 70], [40, 900, 900], "The means have a large Monte Carlo error and the intervals are rough."),
        ([500, 600, 700], [40, 50, 60], "It is the tail alone: the ends of the intervals are rough, the means are not"),
        ([50, 600, 700], [40, 50, 60], f"{ENDS} is the mean of the 1 parameter {BULK}"),
        ([50, 60, 700], [40, 50, 60], f"{ENDS} are the means of the 2 parameters {BULK}"),
    ],
)
def test_few_effective_draws_say_of_what(bulk, tail, advice):
    known = {"parameter": ["h2", "var", "cov"], "mean": [0.3, 2.0, 1.0], "sd": [1.0] * 3, "rhat": [1.051, 1.01, 1.01]}
    apart, few = chain_findings(pl.DataFrame(known | {"ess_bulk": bulk, "ess_tail": tail}), {})
    assert apart.fact.endswith("the worst is h2 with 1.051.")
    assert few.fact.endswith("is below 100 for 3 of 3 parameters; the smallest is 40, of h2.")
    assert few.advice.startswith(advice)
