"""The pass over the SNPs of a file: which are tested, scores, informations, and their tests.

Exact: x'P x of every SNP. Calibrated: x'P x = gamma v, v = x' D x with D what the records of an animal say alone, and
gamma the mean of x'P x / v over some SNPs (Svishcheva et al. 2012, Zhou et al. 2018); what is then near significance is
computed exactly. The file is read in blocks of SNPs: memory does not depend on their number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from mmgibbs.association.multiple_testing import BLOCK_SNPS, effective_number
from mmgibbs.association.projection import Information, Projection
from mmgibbs.association.statistics import SnpTests, compute_tests
from mmgibbs.genotypes.store import GenotypeSource, dosages

CALIBRATION_SNPS = 100
NEAR = 5.0  # -log10 p from which a calibrated test is computed exactly
MAX_ANIMALS_OF_CORRELATIONS = 2_000
ANIMALS_PER_SNP, MIN_BLOCK_SNPS = 10, 4  # of the blocks whose correlations are looked at
LEFT_OUT = {"call_rate": "call rate", "maf": "minor allele frequency", "constant": "does not vary"}


class Limits(NamedTuple):
    """SNPs that are tested have at least these, among the animals of the records."""

    maf: float
    call_rate: float


class Block(NamedTuple):
    """Some neighbouring SNPs of the file."""

    number: np.ndarray  # (m,) int64 place in the file
    x: np.ndarray  # (animals, m) float64 copies minus their mean; 0 where missing
    frequency: np.ndarray  # (m,)
    call_rate: np.ndarray  # (m,)
    left_out: np.ndarray  # (m,) String: why it is not tested; ''


@dataclass
class Scan:
    """What was found, in the order of the file."""

    tests: SnpTests
    frequency: np.ndarray  # (p,) of the counted allele among the animals of the records
    call_rate: np.ndarray  # (p,)
    left_out: np.ndarray  # (p,) String
    is_exact: np.ndarray  # (p,) bool
    effective_tests: float
    calibration: Calibration | None = None
    facts: dict = field(default_factory=dict)


class Calibration(NamedTuple):
    """Gamma by traits, and how much x'P x / v differs between SNPs: its coefficient of variation for each trait."""

    gamma: np.ndarray  # (T, T)
    variation: np.ndarray  # (T,)
    n_snps: int


def read_blocks(source: GenotypeSource, animals: np.ndarray, limits: Limits) -> Iterator[Block]:
    """Neighbouring SNPs of the file; animals: their places in it."""
    for first in range(0, source.n_snps, BLOCK_SNPS):
        stop = min(first + BLOCK_SNPS, source.n_snps)
        yield make_block(np.arange(first, stop), dosages(source.block(first, stop)[:, animals]), limits)


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


def scan(
    projection: Projection,
    source: GenotypeSource,
    animals: np.ndarray,
    limits: Limits,
    exact: bool,
    seed: int,
    tell: Callable[[int], None] | None = None,
) -> Scan:
    """Test every SNP. animals: (m,) places in the file of the animals of `projection`; tell: SNPs that are done."""
    p, T = source.n_snps, projection.design.n_traits
    information = projection.information(p if exact else CALIBRATION_SNPS)
    calibration = None if exact else calibrate(projection, information, source, animals, limits, seed)
    empty = lambda *shape: np.full((p, *shape), np.nan)
    tests = SnpTests(empty(T), empty(T), empty(T), empty(), empty())
    out = Scan(tests, empty(), empty(), np.full(p, "", object), np.zeros(p, bool), 0.0, calibration)
    near: list[int] = []
    for block in read_blocks(source, animals, limits):
        is_tested = block.left_out == ""
        chosen = block.number[is_tested]
        out.frequency[block.number], out.call_rate[block.number] = block.frequency, block.call_rate
        out.left_out[block.number] = block.left_out
        x = block.x[:, is_tested]
        if x.shape[1]:
            found = information(x) if calibration is None else approximate(calibration, projection, x)
            store_tests(out, chosen, compute_tests(x.T @ projection.scores, found), exact)
            out.effective_tests += count_effective_tests(x)
            if not exact:
                strongest = np.fmax(tests.log_p[chosen].max(axis=1), tests.joint_log_p[chosen])
                near += chosen[strongest > NEAR].tolist()
        if tell is not None:
            tell(int(block.number[-1]) + 1)
    for number in np.array_split(np.array(near, np.int64), -(-len(near) // BLOCK_SNPS)) if near else ():
        copies = np.concatenate([dosages(source.block(j, j + 1)[:, animals]) for j in number.tolist()])
        x = make_block(number, copies, limits).x
        store_tests(out, number, compute_tests(x.T @ projection.scores, information(x)), True)
    return out


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


def store_tests(out: Scan, number: np.ndarray, tests: SnpTests, exact: bool) -> None:
    """Keep the tests of these SNPs."""
    for kept, values in zip(out.tests, tests, strict=True):
        kept[number] = values
    out.is_exact[number] = exact


def sum_squares(projection: Projection, x: np.ndarray) -> np.ndarray:
    """(m,) v = x' D x of genotypes x (animals, m), D the mean over the traits."""
    weights = np.einsum("att->a", projection.diagonal) / projection.design.n_traits
    return np.asarray(np.einsum("am,a->m", x**2, weights, optimize=True))


def approximate(calibration: Calibration, projection: Projection, x: np.ndarray) -> np.ndarray:
    """(m, T, T) gamma v of genotypes x (animals, m)."""
    return np.asarray(sum_squares(projection, x)[:, None, None] * calibration.gamma)


def calibrate(
    projection: Projection,
    information: Information,
    source: GenotypeSource,
    animals: np.ndarray,
    limits: Limits,
    seed: int,
) -> Calibration | None:
    """Gamma from SNPs at random places of the file, among those that are tested; None without any."""
    order = np.random.default_rng(seed).permutation(source.n_snps)
    columns: list[np.ndarray] = []
    for j in order.tolist():
        block = make_block(np.array([j]), dosages(source.block(j, j + 1)[:, animals]), limits)
        if block.left_out[0] == "":
            columns.append(block.x)
        if len(columns) == CALIBRATION_SNPS:
            break
    if not columns:
        return None
    x = np.concatenate(columns, axis=1)
    ratio = information(x) / sum_squares(projection, x)[:, None, None]
    gamma, diagonal = ratio.mean(axis=0), np.einsum("mtt->mt", ratio)
    variation = diagonal.std(axis=0, ddof=1) / diagonal.mean(axis=0) if len(ratio) > 1 else np.full(len(gamma), np.nan)
    return Calibration(gamma, variation, len(ratio))
