"""Agreement of two sets of solutions."""

import polars as pl
import pytest

from mmgibbs.report.agreement import compute_agreement, rank_levels


def test_equal_values_share_their_mean_rank_in_the_rank_correlation():
    """Spearman's: the correlation of the ranks 1, 2.5, 2.5, 4, 5 and 2, 1, 3.5, 3.5, 5, which have sums of squares of
    9.5 about their mean and a sum of products of 7.25. Ranks without ties would give 0.7 or 0.9.
    """
    values = pl.DataFrame({"level": list("abcde"), "a": [1.0, 2, 2, 3, 4], "b": [0.2, 0.1, 0.3, 0.3, 0.9]})
    found = compute_agreement(rank_levels(values), 2)
    assert found["rank_correlation"] == pytest.approx(7.25 / 9.5)
