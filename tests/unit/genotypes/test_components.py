"""Principal components of packed genotypes are those of the matrix written out."""

import numpy as np
import pytest
from helpers.genotypes import codes_and_dosages, stored

from mmgibbs.genotypes.components import principal_components
from mmgibbs.genotypes.relationship import Additive, products
from mmgibbs.genotypes.store import PackedGenotypes


def case(n, p):
    """Two lines that differ at a tenth of the SNPs, some genotypes missing."""
    codes, _ = codes_and_dosages(p, n, seed=5)
    codes[: max(1, p // 10), : n // 2] = 2
    codes[: max(1, p // 10), n // 2 :] = 0
    dosages = np.where(codes == 3, np.nan, codes.astype(float))
    mean = np.nanmean(dosages, axis=1)
    store = stored(PackedGenotypes, codes)
    return Additive(store, mean, np.full(p, 1 / np.sqrt(p)), mean)


@pytest.mark.parametrize("n, p", [(60, 200), (40, 25), (5, 100)])
def test_scores_and_shares(n, p):
    coded = case(n, p)
    G = products(coded, np.arange(p)).matrix
    roots, vectors = np.linalg.eigh(G)
    scores, shares = principal_components(coded, 2)
    np.testing.assert_allclose(shares, roots[::-1][:2] / G.trace(), rtol=1e-4)
    for j in range(2):
        expected = vectors[:, -1 - j] * np.sqrt(roots[-1 - j])
        assert abs(scores[:, j] @ expected) == pytest.approx(roots[-1 - j], rel=1e-3)
        assert scores[np.argmax(np.abs(scores[:, j])), j] > 0


def test_the_first_component_tells_the_lines_apart():
    scores, _ = principal_components(case(60, 200), 1)
    assert np.unique(np.sign(scores[:30, 0])).size == 1 and np.sign(scores[0, 0]) != np.sign(scores[40, 0])


def test_no_more_components_than_animals():
    assert principal_components(case(3, 50), 4)[0].shape == (3, 3)
