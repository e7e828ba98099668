"""Variances of parts of the genome against matrices written out."""

import numpy as np
import pytest
from helpers.genotypes import codes_and_dosages, stored

from mmgibbs.genotypes.parts import realised_variances
from mmgibbs.genotypes.store import FixedGenotypes, PackedGenotypes, RealGenotypes


@pytest.mark.parametrize("kind", [PackedGenotypes, FixedGenotypes, RealGenotypes])
def test_they_are_those_of_the_sums(kind):
    codes, dosages = codes_and_dosages(60, 150, 4)
    store = stored(kind, codes if kind is PackedGenotypes else dosages)
    rng = np.random.default_rng(1)
    centre, scale, mean = rng.uniform(0, 2, 60), rng.uniform(0.5, 2, 60), np.nanmean(dosages, axis=1)
    draws = (rng.standard_normal((3, 60)) * (rng.random((3, 60)) < 0.5)).astype(np.float32)
    part, group = rng.permutation(np.arange(60) % 7), np.array([0, 0, 1, 1, 1, 2, 2])
    found = realised_variances(store, store.values(centre, scale, mean), draws, part, group)
    x = scale[:, None] * (np.where(np.isnan(dosages), mean[:, None], dosages) - centre[:, None])
    for k, a in enumerate(draws.astype(np.float64)):
        of_part = np.stack([(a * (part == w)) @ x for w in range(7)])
        of_group = np.stack([of_part[group == c].sum(axis=0) for c in range(3)])
        g = of_part.sum(axis=0)
        close = {"rtol": 1e-5, "atol": 1e-9}
        np.testing.assert_allclose(found.total[k], g.var(), **close)
        np.testing.assert_allclose(found.of_part[k], of_part.var(axis=1), **close)
        np.testing.assert_allclose(found.of_group[k], of_group.var(axis=1), **close)
        rest = [np.cov(c, g - c, ddof=0)[0, 1] for c in of_group]
        np.testing.assert_allclose(found.with_rest[k], rest, rtol=1e-4, atol=1e-5)
