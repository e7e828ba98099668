"""Flat effects that separate records together, against known cases and every direction of small designs."""

import itertools

import numpy as np
import polars as pl
import pytest

from mmgibbs.build import separation
from mmgibbs.build.separation import Sides, find_separation, refuse_separation
from mmgibbs.config import load_config
from mmgibbs.data.prepare import prepare
from mmgibbs.errors import DataError

FLAT = {"prior": "flat"}


def prepared(columns, fixed, trait="binary", intercept=True, **random):
    """columns: name -> values; y the records."""
    n = len(columns["y"])
    frame = pl.DataFrame({"animal": [f"a{i}" for i in range(n)]} | columns)
    config = {
        "name": "separated",
        "data": {"phenotypes": frame},
        "traits": {"y": trait if isinstance(trait, dict) else {"type": trait}},
        "model": {"intercept": intercept, "fixed": fixed, "random": random},
    }
    return prepare(load_config(config))


def found(*arguments, **options):
    design = prepared(*arguments, **options).design
    return find_separation(design, design.responses[0])


def crossed(y):
    """Two herds x two sexes, three records in each cell."""
    cells = list(itertools.product("AB", "FM", range(3)))
    return {"herd": [c[0] for c in cells], "sex": [c[1] for c in cells], "y": y}


BOTH = {"herd": FLAT, "sex": FLAT}
# No level is of one kind, but males of herd B are all 1 and females of herd A all 0, with overlap along the diagonal.
SEPARATED = [0, 0, 0, 0, 1, 1, 0, 1, 0, 1, 1, 1]
OVERLAPPING = [0, 0, 1, 0, 1, 1, 0, 1, 0, 1, 1, 0]


def test_two_class_effects_together():
    of = found(crossed(SEPARATED), BOTH)
    assert of is not None and of.records == 6 and of.observed == 12
    assert found(crossed(OVERLAPPING), BOTH) is None


def test_the_message_names_combination_counts_and_remedies():
    with pytest.raises(DataError) as caught:
        refuse_separation(prepared(crossed(SEPARATED), BOTH))
    said = str(caught.value)
    assert "trait 'y': these effects separate its records" in said and "6 of 12 records fit" in said
    assert "herd " in said and "sex " in said and "(+)" in said and "{variance: 10}" in said and "random" in said


def test_a_normal_prior_or_a_random_effect_holds_it():
    assert found(crossed(SEPARATED), {"herd": FLAT, "sex": {"prior": {"variance": 10}}}) is None
    assert found(crossed(SEPARATED), {"herd": FLAT}, sex={}) is None


def line(y, name="y"):
    return {"x": [float(i) for i in range(len(y))], name: y}


@pytest.mark.parametrize(
    ("y", "separated"),
    [
        ([0, 0, 0, 0, 1, 1, 1, 1], True),
        ([0, 0, 0, 1, 0, 1, 1, 1], False),
        ([1, 1, 2, 2, 3, 3, 3, 3], True),
        ([1, 2, 1, 2, 3, 3, 3, 3], False),  # the highest lies apart, but the threshold between is then its own
        ([1, 3, 2, 2, 1, 3, 2, 3], False),
    ],
)
def test_a_covariate(y, separated):
    """Of three categories the highest may move away with its threshold only where the others are held: its threshold
    would leave with it, which the records of category 2 allow."""
    kind = "ordinal" if max(y) == 3 else "binary"
    of = found(line(y), {"x": {"kind": "covariate"}}, kind)
    assert (of is not None) == (separated or brute_force(line(y), {"x": {"kind": "covariate"}}, kind))


def brute_force(columns, fixed, kind, points=41):
    """Directions of a fine net, held against the constraints of each record."""
    design = prepared(columns, fixed, kind).design
    lower, upper, K = design.responses[0].sides()
    flat = separation.flat_columns(design, 0)
    sides = separation._unique(design, flat, np.arange(len(lower)), lower, upper, K)
    net = np.linspace(-1, 1, points)
    for x in itertools.product(net, repeat=len(flat) + K):
        x = np.array(x)
        slack = sides.slack(x)
        slack = np.where(np.isfinite(slack), slack, 0)
        if slack.min() > -1e-9 and slack.max() > 1e-6:
            return True
    return False


def test_against_every_direction_of_a_net():
    """Random records of three categories at a class effect and an intercept: the answers are those of the net, in
    which nine points an axis hold every order of the effects and thresholds.
    """
    rng, answers = np.random.default_rng(4), []
    for _ in range(40):
        y = rng.permutation([1, 2, 3, *rng.integers(1, 4, 3)]).tolist()
        columns, fixed = {"c": ["p", "p", "p", "q", "q", "q"], "y": y}, {"c": FLAT}
        try:
            of_net = brute_force(columns, fixed, "ordinal", points=9)
            answers.append((found(columns, fixed, "ordinal") is not None, of_net))
        except DataError:  # a level with extreme records alone is told before
            continue
    assert len({a for a, _ in answers}) == 2 and all(a == b for a, b in answers)


def test_counts():
    """Along a line that turns about the one count above 0 all zeros fit the better; two of them, or zeros on both
    sides, hold it.
    """
    assert found(line([0, 0, 0, 0, 0, 0, 0, 5]), {"x": {"kind": "covariate"}}, "count") is not None
    assert found(line([0, 0, 0, 0, 0, 0, 1, 5]), {"x": {"kind": "covariate"}}, "count") is None
    assert found(line([0, 0, 0, 0, 1, 0, 0, 0]), {"x": {"kind": "covariate"}}, "count") is None


def test_censored_records():
    """All but one age is open above: the line turns about it."""
    columns = {"x": [0.0, 1, 2, 3], "y": [5.0, 6, 7, 8], "up": [5.0, None, None, None]}
    kind = {"type": "censored", "lower": "y", "upper": "up"}
    assert found(columns, {"x": {"kind": "covariate"}}, kind) is not None
    assert found(columns | {"up": [5.0, None, 7.5, None]}, {"x": {"kind": "covariate"}}, kind) is None


def test_a_few_records_among_many():
    """Constraints of few records matter, which are added to those the programme begins with."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=5000)
    y = (x + 0.3 > 0).astype(int)
    columns = {"x": x, "y": y}
    assert found(columns, {"x": {"kind": "covariate"}}) is not None
    y[np.argmax(x)] = 0
    assert found(columns | {"y": y}, {"x": {"kind": "covariate"}}) is None


def test_beyond_the_limit_it_is_said(monkeypatch):
    monkeypatch.setattr(separation, "MOST_COLUMNS", 2)
    notes = refuse_separation(prepared(crossed(SEPARATED), BOTH))
    assert len(notes) == 1 and "it was not checked" in notes[0] and "at most 2 of their equations" in notes[0]
    monkeypatch.setattr(separation, "MOST_COLUMNS", 10)
    monkeypatch.setattr(separation, "MOST_VALUES", 5)
    assert "it was not checked" in refuse_separation(prepared(crossed(SEPARATED), BOTH))[0]


def test_forgotten_thresholds_are_noticed():
    """The mutant: with thresholds that stay where they are, the highest category does not move."""
    columns, fixed = line([1, 1, 1, 2, 2, 2, 3, 3]), {"x": {"kind": "covariate"}}
    design = prepared(columns, fixed, "ordinal").design
    lower, upper, K = design.responses[0].sides()
    flat = separation.flat_columns(design, 0)
    right = separation._unique(design, flat, np.arange(8), lower, upper, K)
    wrong = Sides(right.Z, np.minimum(right.lower, -1), np.minimum(right.upper, -1), 0, right.count)
    from mmgibbs.posterior.separation import separating_direction

    assert separating_direction(right, "") is not None and separating_direction(wrong, "") is None
