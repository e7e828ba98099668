"""Problems are collected, and said in one message."""

import pytest

from mmgibbs.pedigree.errors import PedigreeError, TableError
from mmgibbs.pedigree.problems import MAX_ROWS_LISTED, Problems, list_rows


def test_one_problem_is_said_as_it_is():
    problems = Problems()
    problems.refuse(PedigreeError)  # nothing is wrong
    problems.add("t.csv row 3: found 'x'; needed y")
    problems.add("t.csv row 3: found 'x'; needed y")
    with pytest.raises(PedigreeError) as raised:
        problems.refuse(PedigreeError)
    assert str(raised.value) == "t.csv row 3: found 'x'; needed y"


def test_several_problems_are_numbered_and_questions_follow():
    problems = Problems()
    with problems.collect(TableError):
        raise TableError("first\n  row 4: more")
    with pytest.raises(ValueError, match="^other$"), problems.collect(TableError):
        raise ValueError("other")
    problems.add("second")
    problems.ask("is it?")
    assert problems.describe() == (
        "found 2 things that must be changed:\n1. first\n     row 4: more\n2. second\nlook at this too:\n3. is it?"
    )


def test_rows_are_listed_and_the_rest_is_counted():
    rows = list(range(2, 102))
    lines = list_rows("t.csv", rows, [f"found {i}" for i in rows], "less").split("\n")
    assert lines[:2] == ["t.csv row 2: found 2; needed less", "  row 3: found 3"]
    assert len(lines) == MAX_ROWS_LISTED + 1
    assert lines[-1] == f"  ... and {100 - MAX_ROWS_LISTED} more rows, the last of them row 101"


def test_problems_of_a_file_stand_together():
    problems = Problems()
    for text in ("a.csv row 3: x", "b.csv: y", "c d.csv row 2: z", "a.csv: w", "b.csv row 9: v"):
        problems.add(text)
    problems.sort_by_file()
    assert [text[:1] for text in problems.texts] == ["a", "a", "b", "b", "c"]
    assert problems.texts[1] == "a.csv: w" and problems.texts[3] == "b.csv row 9: v"
