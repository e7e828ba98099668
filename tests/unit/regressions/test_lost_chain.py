"""A chain whose numbers run away ends with the reason, not with a library's error."""

import numpy as np
import pytest

from mmgibbs.errors import ModelError
from mmgibbs.regressions.arrays.base import Host
from mmgibbs.regressions.loop import SideBySideChains
from mmgibbs.regressions.protocol import Keys, Parameter


class Runaway:
    """State x, multiplied by `by` in each sweep; its square must have a Cholesky factor."""

    parameters, coords = {"x": Parameter()}, {}

    def __init__(self, by, matrix):
        self.by, self.matrix = by, matrix

    def adapt_until(self, burn_in):
        pass

    def start(self, keys):
        return {"x": np.ones(len(keys))}

    def step(self, state, sweep, keys):
        x = state["x"] * (self.by if sweep == 3 else 1.0)
        if self.matrix:
            np.linalg.cholesky(x[:, None, None])
        return {"x": x}

    def log(self, state):
        return state

    def statistics(self, state):
        return {}


@pytest.mark.parametrize(
    "by, matrix, message",
    [(np.nan, False, "after sweep 5: a value of 'x'"), (-1.0, True, "continue at sweep 3: a matrix")],
)
def test_reason(by, matrix, message):
    chains = SideBySideChains(Runaway(by, matrix), Host(1), Keys(1, (0, 1)), 2)
    with pytest.raises(ModelError, match=message) as error:
        chains.advance(5)
    assert "needed a proper prior, or standardised predictors" in str(error.value)
