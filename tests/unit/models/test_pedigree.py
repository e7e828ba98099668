"""A pedigree as a relationship."""

import numpy as np
import pytest

from mmgibbs.models.relationships.groups import GroupedPedigree
from mmgibbs.models.relationships.pedigree import Pedigree
from mmgibbs.pedigree.inbreeding import inbreeding
from mmgibbs.pedigree.relationship import relatives


@pytest.mark.parametrize("groups", ["none", "fixed", "random"])
def test_the_log_determinant_is_that_of_the_levels_with_a_variance(groups):
    """Sire 6 and 7 stand for groups of unknown parents, one plant is selfed, two animals are inbred."""
    sire, dam = np.array([-1, 6, -1, 0, 3, 3], np.int32), np.array([-1, 7, 7, 1, 2, 3], np.int32)
    if groups == "none":
        sire[sire > 5], dam[dam > 5] = -1, -1
    n_groups = 0 if groups == "none" else 2
    kin = relatives(sire, dam, inbreeding(sire, dam), n_groups, groups == "random")
    K = GroupedPedigree(kin) if n_groups else Pedigree(kin)
    n = 8 if groups == "random" else 6
    assert K.log_determinant == pytest.approx(np.linalg.slogdet(K.inverse_matrix().toarray()[:n, :n])[1], abs=1e-12)
