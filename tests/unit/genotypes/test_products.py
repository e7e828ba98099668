"""Products over stored genotypes, against the same sums in plain NumPy, for every kind of store."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from helpers.genotypes import codes_and_dosages, stored
from helpers.support import ROOT
from llvmlite.binding import get_host_cpu_features
from numba.core.errors import TypingError

from mmgibbs.genotypes.parts import realised_variances
from mmgibbs.genotypes.products import CHUNK, GROUP, dot_rows
from mmgibbs.genotypes.store import FixedGenotypes, PackedGenotypes, RealGenotypes

KINDS = [PackedGenotypes, FixedGenotypes, RealGenotypes]
ANIMALS = [1, 127, 128, 129, 700, GROUP * CHUNK + 1]


def numbers(dosages, centre, scale):
    """(p, n) what stands for each genotype, in plain words: scale (dosage - centre), 0 where missing."""
    return np.nan_to_num(scale[:, None] * (dosages.astype(np.float64) - centre[:, None]))


@pytest.fixture
def coding():
    rng = np.random.default_rng(7)
    return rng.uniform(0, 2, 11), rng.uniform(0.5, 2, 11)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", ANIMALS)
@pytest.mark.parametrize("real", [np.float32, np.float64])
def test_dot_and_sum_are_those_of_numpy(kind, n, real, coding):
    codes, dosages = codes_and_dosages(11, n, seed=n)
    store = stored(kind, codes)
    x = numbers(dosages, *coding)
    values = store.values(*coding)
    rng = np.random.default_rng(n)
    v, rows = rng.standard_normal(n).astype(real), np.array([3, 0, 10, 10, 7, 1, 2])
    by = rng.standard_normal(rows.size).astype(real)
    assert store.dot(rows, values, v) == pytest.approx(x[rows] @ v, abs=1e-5 * n)
    assert store.product(rows, values, by) == pytest.approx(by @ x[rows], abs=1e-5)


def test_sums_of_packed_genotypes():
    codes, _ = codes_and_dosages(5, 3000, seed=1)
    store = stored(PackedGenotypes, codes)
    values = store.values(np.full(5, 0.25))  # exact in float32
    v = np.random.default_rng(2).standard_normal(3000)
    x = np.array([-0.25, 0.75, 1.75, 0.0])[codes]
    assert store.dot(store.every, values, v) == pytest.approx(x @ v, abs=1e-11)
    assert store.product(store.every, values, v[:5]) == pytest.approx(v[:5] @ x, abs=1e-14)
    codes, _ = codes_and_dosages(6, 2000, seed=5)
    store = stored(PackedGenotypes, codes)
    values, v = store.values(np.ones(6)), store.padded(np.random.default_rng(6).standard_normal(2000))
    out = np.zeros(6)
    for first, stop in ((0, 4), (4, 5), (5, store.n_chunks)):
        dot_rows(store.array, store.every, values, v, first, stop, out)
    assert out == pytest.approx(store.dot(store.every, values, v[:2000]), abs=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_together_and_alone_are_the_same_to_the_bit(kind):
    codes, _ = codes_and_dosages(10, 900, seed=3)
    store = stored(kind, codes)
    values = store.values(np.linspace(0, 2, 10))
    v = np.random.default_rng(4).standard_normal(900).astype(np.float32)
    alone = np.concatenate([store.dot(store.every[j : j + 1], values, v) for j in range(10)])
    assert np.array_equal(store.dot(store.every, values, v), alone)


def test_arrays_of_other_types_are_refused():
    store = stored(PackedGenotypes, codes_and_dosages(2, 10, seed=1)[0])
    with pytest.raises(TypingError, match="needed a store, int64 rows, float32 values"):
        dot_rows(store.array, store.every, np.ones((2, 4)), np.zeros(128, np.float32), 0, 1, np.zeros(2))


SUMS = """
    import numpy as np
    from helpers.genotypes import codes_and_dosages, stored
    from mmgibbs.genotypes.store import PackedGenotypes
    store = stored(PackedGenotypes, codes_and_dosages(7, 1500, seed=8)[0])
    values, v = store.values(np.linspace(0, 2, 7)), np.random.default_rng(9).standard_normal(1500).astype(np.float32)
    print(store.dot(store.every, values, v).tobytes().hex(), store.product(store.every, values, v[:7]).tobytes().hex())
"""


@pytest.mark.skipif(not get_host_cpu_features().get("avx2"), reason="needs a CPU with AVX2 to compare with others")
@pytest.mark.slow
def test_every_machine_gives_the_same_bits():
    """The permutation of AVX-512 (where it is), that of AVX2, and comparisons."""
    avx2 = {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": "+avx,+avx2,+fma"}
    plain = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    found = set()
    for other in ({}, avx2, plain):
        environment = os.environ | other | {"PYTHONPATH": str(ROOT / "tests")}
        script = [sys.executable, "-c", textwrap.dedent(SUMS)]
        done = subprocess.run(script, cwd=ROOT, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        found.add(done.stdout)
    assert len(found) == 1


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
