"""Responses: how the records of a trait that is not normal are observed."""

import numpy as np

from mmgibbs.models.families import Categories, Interval

NAN, INF = np.nan, np.inf


def test_tally_of_categories_counts_every_label_and_no_missing_record():
    assert Categories(0, ("low", "mid", "high"), np.array([0, 2, 2, -1], np.int16)).tally() == {
        "low": 1,
        "mid": 0,
        "high": 2,
    }


def test_tally_of_censored_records_by_what_is_known():
    lower = np.array([1.0, 2.0, -INF, 0.5, NAN, 3.0])
    upper = np.array([1.0, INF, 4.0, 0.7, NAN, 3.0])
    assert Interval(0, lower, upper).tally() == {
        "exact": 2,
        "right-censored": 1,
        "left-censored": 1,
        "within an interval": 1,
    }
    assert Interval(0, lower[:1], upper[:1]).tally() == {"exact": 1}
