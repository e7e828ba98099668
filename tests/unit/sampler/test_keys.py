"""Every draw of a sweep has numbers of its own: no two share a counter and a key."""

import numpy as np
import pytest
from helpers.draw_batches import compiler
from helpers.key_recorder import find_overlaps, record

from mmgibbs.draws.purpose import LOCATION, VARIANCE, stream
from mmgibbs.models.covariance import CovarianceModel
from mmgibbs.models.priors.inverse_wishart import InverseWishart
from mmgibbs.sampler.covariances import draw_covariance

MODELS = "blocks apart", "half-t priors of residual classes", "ordinal in residual classes"
ADVANCE = "from helpers.key_models import advance\nadvance({name!r})\n"
BEFORE = [1.3295025953655137, 0.4132992272270512, 0.8999351650055172, 1.4268983540288214]  # of draws of variances below
OLD_KEY = """
import numpy as np
from helpers.key_models import advance
from mmgibbs.sampler import covariances
draw = covariances.inverse_wishart
covariances.inverse_wishart = lambda nu, S, now, number, rows, *site: draw(
    nu, S, now, number, rows[0] + np.arange(len(rows)), *site)
advance("blocks apart")
"""


@pytest.fixture(scope="module")
def recorded():
    """Counters and keys of chains of each model, and of one with the key of rows that blocks once had."""
    return record({name: ADVANCE.format(name=name) for name in MODELS} | {"old key": OLD_KEY}, compiler())


@pytest.mark.parametrize("name", MODELS)
def test_no_two_draws_of_a_sweep_share_a_key(recorded, name):
    drawn = recorded[name]
    assert {LOCATION, VARIANCE} <= set(drawn[:, 2] >> 24)
    assert find_overlaps(drawn).tolist() == []


def test_the_key_that_rows_of_blocks_once_had_is_noticed(recorded):
    """Row 2 of block (0, 2) had the key of trait 1, which is a block alone."""
    overlaps = find_overlaps(recorded["old key"])
    assert {(int(level), int(s)) for _, level, s, *_ in overlaps} == {(1, stream(VARIANCE, 3))}
    assert len(np.unique(overlaps[:, 0])) == 22


def test_neighbouring_blocks_draw_as_they_always_did():
    """Rows of the first trait of a block on; the draw is of the program before rows had keys of their own."""
    S = np.array([[6.0, 2.0, 0.0], [2.0, 5.0, 0.0], [0.0, 0.0, 4.0]])
    model = CovarianceModel(S, False, ((0, 1), (2,)), InverseWishart(5.0, S))
    drawn = draw_covariance(model, 3 * S, 9, 4, 1, (7, 1), 3)
    np.testing.assert_allclose(drawn[[0, 0, 1, 2], [0, 1, 1, 2]], BEFORE, rtol=1e-12)
