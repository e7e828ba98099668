"""The pass over the SNPs of a file: which are tested, scores, informations, and their tests.

Exact: x'P x of every SNP. Calibrated: x'P x = gamma v, v = x' D x with D what the records of an animal say alone, and
gamma the mean of x'P x / v over some SNPs (Svishcheva et al. 2012, Zhou et al. 2018); what is then near significance is
computed exactly. The file is read in blocks of SNPs: but for the results, memory does not depend on their number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from mmgibbs.association.chunks import Arrays, Checkpoint, Chunk
from mmgibbs.association.projection import Information, Projection
from mmgibbs.association.statistics import (
    BLOCK_SNPS,
    Families,
    SnpTests,
    compute_tests,
    effective_number,
    empty_tests,
    find_estimable,
)
from mmgibbs.genotypes.store import GenotypeSource, dosages

CALIBRATION_SNPS = 100
NEAR = 5.0  # -log10 p from which a calibrated test is computed exactly
MAX_ANIMALS_OF_CORRELATIONS = 2_000
ANIMALS_PER_SNP, MIN_BLOCK_SNPS = 10, 4  # of the blocks whose correlations are looked at
DOUBTFUL = 1e-8  # chi2 of a calibrated test, below which the SNP may be confounded: its score is then 0
LEFT_OUT = {
    "call_rate": "call rate", "maf": "minor allele frequency", "constant": "does not vary",
    "confounded": "confounded with fixed effects", "inseparable": "effects on the traits cannot be told apart",
}  # fmt: skip
REASONS = ("", *LEFT_OUT.values())


class Limits(NamedTuple):
    """SNPs that are tested have at least these, among the animals of the records."""

    maf: float
    call_rate: float


class Block(NamedTuple):
    """Neighbouring SNPs of the file."""

    number: np.ndarray  # (m,) int64 place in the file
    x: np.ndarray  # (animals, m) float64 copies minus their mean; 0 where missing
    frequency: np.ndarray  # (m,)
    call_rate: np.ndarray  # (m,)
    left_out: np.ndarray  # (m,) String: why it is not tested; ''


class BlockTests(NamedTuple):
    """Tests of the SNPs of a block that may be tested."""

    tests: SnpTests
    is_estimable: np.ndarray  # (m, T) bool
    is_exact: np.ndarray  # (m,) bool


@dataclass
class Scan:
    """Results of a scan, in the order of the file."""

    tests: SnpTests
    frequency: np.ndarray  # (p,) of the counted allele among the animals of the records
    call_rate: np.ndarray  # (p,)
    left_out: np.ndarray  # (p,) String
    is_exact: np.ndarray  # (p,) bool
    effective_tests: float
    calibration: Calibration | None = None  # with a model for each chromosome the mean of theirs


class Calibration(NamedTuple):
    """Gamma by traits, and how much x'P x / v differs between SNPs: its coefficient of variation for each trait."""

    gamma: np.ndarray  # (T, T)
    variation: np.ndarray  # (T,)
    n_snps: int


@dataclass(frozen=True)
class Genotypes:
    """Genotypes to test: SNPs of a source among some of its animals."""

    source: GenotypeSource
    animals: np.ndarray  # (m,) places in the source of the animals of the projection
    limits: Limits

    def read(self, number: np.ndarray) -> Block:
        """Read these SNPs, by their positions in the file; neighbours are read at once."""
        runs = np.split(number, np.flatnonzero(np.diff(number) != 1) + 1)
        copies = [dosages(self.source.block(int(r[0]), int(r[-1]) + 1)[:, self.animals]) for r in runs if r.size]
        return make_block(number, np.concatenate(copies), self.limits)

    def read_blocks(self, number: np.ndarray) -> Iterator[Block]:
        """BLOCK_SNPS at a time."""
        for first in range(0, number.size, BLOCK_SNPS):
            yield self.read(number[first : first + BLOCK_SNPS])


@dataclass(frozen=True)
class SnpModel:
    """Model in which SNPs are tested."""

    projection: Projection
    genotypes: Genotypes
    snps: np.ndarray  # (p,) places of those that are tested in it
    exact: bool
    seed: int
    families: Families = ()

    @cached_property
    def information(self) -> Information:
        """x'P x by the quicker way."""
        return self.projection.information(self.snps.size if self.exact else CALIBRATION_SNPS)

    @cached_property
    def calibration(self) -> Calibration | None:
        """Calibration of the tests; None where every test is exact."""
        return None if self.exact else calibrate(self)

    def test(self, x: np.ndarray) -> BlockTests:
        """Tests of genotypes (animals, m); calibrated ones near significance, and of doubtful SNPs, exactly."""
        m, T = x.shape[1], self.projection.design.n_traits
        if self.calibration is None:
            return self._test_exactly(x)
        found = approximate(self.calibration, self.projection, x)
        scores = x.T @ self.projection.scores
        tests = compute_tests(scores, found, self.families)
        is_estimable, is_exact = np.ones((m, T), bool), np.zeros(m, bool)
        is_near = np.fmax(tests.log_p.max(axis=1), tests.joint_log_p) > NEAR
        is_doubtful = (scores**2 <= DOUBTFUL * np.einsum("mtt->mt", found)).any(axis=1)
        chosen = np.flatnonzero(is_near | is_doubtful)
        if chosen.size:
            exact = self._test_exactly(np.ascontiguousarray(x[:, chosen]))
            store_tests(tests, chosen, exact.tests)
            is_estimable[chosen], is_exact[chosen] = exact.is_estimable, True
        return BlockTests(tests, is_estimable, is_exact)

    def _test_exactly(self, x: np.ndarray) -> BlockTests:
        information = self.information(x)
        is_estimable = find_estimable(information, sum_squares_by_trait(self.projection, x))
        tests = compute_tests(x.T @ self.projection.scores, information, self.families, is_estimable)
        return BlockTests(tests, is_estimable, np.ones(x.shape[1], bool))


MakeProjection = Callable[[str], Projection]  # from the chromosome that is left out


def scan(
    make_projection: MakeProjection,
    genotypes: Genotypes,
    chunks: Sequence[Chunk],
    exact: bool,
    seed: int,
    checkpoint: Checkpoint | None = None,
    tell: Callable[[int], None] | None = None,
    families: Families = (),
) -> Scan:
    """Test every SNP, chunk by chunk. tell: SNPs that are done; make_projection: called once for each model."""
    checkpoint = checkpoint or Checkpoint()
    model: dict[str, SnpModel] = {}
    results, done = [], 0
    for chunk in chunks:

        def compute(chunk: Chunk = chunk) -> Arrays:
            if chunk.model not in model:
                model.clear()  # one at a time: its matrices are large
                snps = np.concatenate([c.snps for c in chunks if c.model == chunk.model])
                model[chunk.model] = SnpModel(make_projection(chunk.model), genotypes, snps, exact, seed, families)
            return scan_chunk(model[chunk.model], chunk, checkpoint)

        results.append(checkpoint.load_or_compute(chunk.name, compute))
        done += chunk.snps.size
        if tell is not None:
            tell(done)
    return gather(chunks, results)


def scan_chunk(model: SnpModel, chunk: Chunk, checkpoint: Checkpoint) -> Arrays:
    """Tests of the SNPs of a chunk."""
    m, T = chunk.snps.size, model.projection.design.n_traits
    tests = empty_tests(m, T, len(model.families))
    out: Arrays = {
        "frequency": np.full(m, np.nan),
        "call_rate": np.full(m, np.nan),
        "left_out": np.zeros(m, np.int8),
        "is_exact": np.zeros(m, bool),
    }
    effective, first = 0.0, 0
    for block in model.genotypes.read_blocks(chunk.snps):
        checkpoint.raise_if_stopped()
        rows = slice(first, first + block.number.size)
        out["frequency"][rows], out["call_rate"][rows] = block.frequency, block.call_rate
        out["left_out"][rows] = [REASONS.index(why) for why in block.left_out]
        is_tested = block.left_out == ""
        chosen, x = first + np.flatnonzero(is_tested), block.x[:, is_tested]
        first += block.number.size
        if not x.shape[1]:
            continue
        found = model.test(x)
        is_tested = np.isfinite(found.tests.log_p).any(axis=1)
        why = np.where(found.is_estimable.any(axis=1), LEFT_OUT["inseparable"], LEFT_OUT["confounded"])
        out["left_out"][chosen] = [REASONS.index(reason) for reason in np.where(is_tested, "", why)]
        store_tests(tests, chosen, found.tests)
        out["is_exact"][chosen] = found.is_exact & is_tested
        effective += count_effective_tests(x[:, is_tested])
    calibration = None if "calibration" not in vars(model) else model.calibration
    if calibration is not None:
        out |= {"gamma": calibration.gamma, "variation": calibration.variation, "n": np.array(calibration.n_snps)}
    return out | tests._asdict() | {"effective_tests": np.array(effective)}


def gather(chunks: Sequence[Chunk], results: Sequence[Arrays]) -> Scan:
    """The results of all chunks in the order of the file."""
    order = np.argsort(np.concatenate([chunk.snps for chunk in chunks]), kind="stable")
    collect = lambda name: np.concatenate([result[name] for result in results])[order]
    calibrations = [Calibration(r["gamma"], r["variation"], int(r["n"])) for r in results if "gamma" in r]
    mean = None
    if calibrations:
        gamma = np.mean([c.gamma for c in calibrations], axis=0)
        variation = np.mean([c.variation for c in calibrations], axis=0)
        mean = Calibration(gamma, variation, calibrations[0].n_snps)
    left_out = np.array(REASONS, object)[collect("left_out")]
    effective = float(sum(float(result["effective_tests"]) for result in results))
    tests = SnpTests(*(collect(name) for name in SnpTests._fields))
    frequency, call_rate = collect("frequency"), collect("call_rate")
    return Scan(tests, frequency, call_rate, left_out, collect("is_exact"), effective, mean)


def make_block(number: np.ndarray, copies: np.ndarray, limits: Limits) -> Block:
    """copies: (m, animals) float32, NaN missing."""
    m = np.asarray(copies, np.float64)
    is_known = ~np.isnan(m)
    n_known = is_known.sum(axis=1)
    mean = np.where(is_known, m, 0.0).sum(axis=1) / np.maximum(n_known, 1)
    x = np.where(is_known, m - mean[:, None], 0.0)
    call_rate = n_known / max(1, m.shape[1])
    left_out = np.where(np.abs(x).max(axis=1, initial=0.0) < 1e-6, LEFT_OUT["constant"], "")
    left_out = np.where(np.minimum(mean / 2, 1 - mean / 2) < limits.maf, LEFT_OUT["maf"], left_out)
    left_out = np.where(call_rate < limits.call_rate, LEFT_OUT["call_rate"], left_out)
    return Block(number, np.ascontiguousarray(x.T), mean / 2, call_rate, left_out)


def count_effective_tests(x: np.ndarray) -> float:
    """Effective number of tests of genotypes (animals, m), over blocks of fewer SNPs than there are animals.

    Correlations of as many SNPs as animals are mostly chance, and would make independent SNPs look linked.
    """
    step = -(-x.shape[0] // MAX_ANIMALS_OF_CORRELATIONS)
    sample = x[::step]
    sample = sample[:, sample.std(axis=0) > 0]
    size = max(MIN_BLOCK_SNPS, sample.shape[0] // ANIMALS_PER_SNP)
    blocks = range(0, sample.shape[1], size)
    return sum(effective_number(sample[:, first : first + size].T) for first in blocks)


def store_tests(kept: SnpTests, rows: np.ndarray, tests: SnpTests) -> None:
    """Keep the tests of these rows."""
    for array, values in zip(kept, tests, strict=True):
        array[rows] = values


def sum_squares(projection: Projection, x: np.ndarray) -> np.ndarray:
    """(m,) v = x' D x of genotypes x (animals, m), D the mean over the traits."""
    weights = np.einsum("att->a", projection.diagonal) / projection.design.n_traits
    return np.asarray(np.einsum("am,a->m", x**2, weights, optimize=True))


def sum_squares_by_trait(projection: Projection, x: np.ndarray) -> np.ndarray:
    """(m, T) x' D_tt x of genotypes x (animals, m)."""
    return np.asarray(np.einsum("am,att->mt", x**2, projection.diagonal, optimize=True))


def approximate(calibration: Calibration, projection: Projection, x: np.ndarray) -> np.ndarray:
    """(m, T, T) gamma v of genotypes x (animals, m)."""
    return np.asarray(sum_squares(projection, x)[:, None, None] * calibration.gamma)


def calibrate(model: SnpModel) -> Calibration | None:
    """Gamma from SNPs at random places, among those that are tested on every trait; None without any."""
    columns: list[np.ndarray] = []
    for j in np.random.default_rng(model.seed).permutation(model.snps):
        block = model.genotypes.read(np.array([j]))
        if block.left_out[0] == "":
            columns.append(block.x)
        if len(columns) == CALIBRATION_SNPS:
            break
    if not columns:
        return None
    x = np.concatenate(columns, axis=1)
    information = model.information(x)
    is_estimable = find_estimable(information, sum_squares_by_trait(model.projection, x)).all(axis=1)
    if not is_estimable.any():
        return None
    ratio = (information / sum_squares(model.projection, x)[:, None, None])[is_estimable]
    gamma, diagonal = ratio.mean(axis=0), np.einsum("mtt->mt", ratio)
    variation = diagonal.std(axis=0, ddof=1) / diagonal.mean(axis=0) if len(ratio) > 1 else np.full(len(gamma), np.nan)
    return Calibration(gamma, variation, len(ratio))
