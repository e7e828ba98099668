"""Windows of neighbouring SNPs: whether the variance of the effects in each is 0, for each trait (Wu et al. 2011).

Q = s's with the scores s = x'Py of the SNPs of a window; statistics.py has its distribution from I = X'P X. Exact, or
where the scan is calibrated from gamma X'D X, and exactly where p is below 1e-5.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

import numpy as np
import polars as pl

from mmgibbs.association.chunks import EVERY, Arrays, Checkpoint
from mmgibbs.association.projection import Projection
from mmgibbs.association.scan import NEAR, Genotypes, MakeProjection, SnpModel
from mmgibbs.association.statistics import false_discovery_rates, log_p_of_weighted_chi2
from mmgibbs.association.tables import trait_columns
from mmgibbs.config.fields import read_section
from mmgibbs.config.markers import Windows
from mmgibbs.data.genotypes.file_format import GenotypeFile
from mmgibbs.data.genotypes.windows import Placed, placed
from mmgibbs.errors import ConfigError, is_command, option_name

MAX_SNPS = 3_000  # of a window, whose matrix (m, m) has eigenvalues
WINDOWS_PER_CHUNK = 50


def read_windows(given: float | Literal[True] | Mapping[str, float] | None) -> Windows | None:
    """The windows that an argument asks for: a width, True for the usual one, or keys as of `model.markers`."""
    if given is None:
        return None
    keys = given if given is True or isinstance(given, Mapping) else {"size": given}
    return read_section(Windows, keys, f"gwas: {option_name('windows')}.")


def place_windows(file: GenotypeFile, asked: Windows) -> Placed:
    """The windows of the SNPs of a file; ConfigError where one has too many."""
    windows = placed(file.snps, asked, file.unit)
    largest = int(np.bincount(windows.of_snp).max())
    if largest > MAX_SNPS:
        name = "window_snps" if asked.snps is not None and is_command() else "windows"
        raise ConfigError(
            f"gwas: {option_name(name)}: a window has {largest:,} SNPs; needed windows of at most {MAX_SNPS:,}"
        )
    return windows


def scan_windows(
    make_projection: MakeProjection,
    genotypes: Genotypes,
    windows: Placed,
    is_tested: np.ndarray,
    leave_chromosomes_out: bool,
    exact: bool,
    seed: int,
    checkpoint: Checkpoint,
    tell: Callable[[int], None] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """(windows, T) -log10 p, and (windows,) tested SNPs. is_tested (p, T): SNPs that the scan tested on each trait."""
    chromosome = windows.windows["chromosome"].fill_null(EVERY).to_list()
    order = np.argsort(windows.of_snp, kind="stable")
    snps_of = np.split(order, np.cumsum(np.bincount(windows.of_snp, minlength=len(chromosome)))[:-1])
    model: dict[str, SnpModel] = {}
    results, done = [], 0
    for first in range(0, len(chromosome), WINDOWS_PER_CHUNK):
        chunk = range(first, min(first + WINDOWS_PER_CHUNK, len(chromosome)))

        def compute(chunk: range = chunk) -> Arrays:
            out = []
            for w in chunk:
                checkpoint.raise_if_stopped()
                left_out = chromosome[w] if leave_chromosomes_out else EVERY
                if left_out not in model:
                    model.clear()
                    of_model = np.concatenate(
                        [
                            s
                            for s, c in zip(snps_of, chromosome, strict=True)
                            if not leave_chromosomes_out or c == left_out
                        ]
                    )
                    model[left_out] = SnpModel(make_projection(left_out), genotypes, np.sort(of_model), exact, seed)
                snps = np.sort(snps_of[w])
                out.append(_test_window(model[left_out], snps, is_tested[snps]))
            return {"log_p": np.stack(out)}

        results.append(checkpoint.load_or_compute(f"windows-{first // WINDOWS_PER_CHUNK:06d}", compute)["log_p"])
        done += len(chunk)
        if tell is not None:
            tell(done)
    n_tested = np.bincount(windows.of_snp, is_tested.any(axis=1), len(chromosome)).astype(np.int64)
    return np.concatenate(results), n_tested


def _test_window(model: SnpModel, snps: np.ndarray, is_tested: np.ndarray) -> np.ndarray:
    """(T,) -log10 p of the SNPs of one window, is_tested (m, T); NaN without any."""
    out = np.full(is_tested.shape[1], np.nan)
    snps, is_tested = snps[is_tested.any(axis=1)], is_tested[is_tested.any(axis=1)]
    if not snps.size:
        return out
    x = model.genotypes.read(snps).x
    scores = x.T @ model.projection.scores
    exact = model.exact or model.calibration is None
    for t, chosen in enumerate(is_tested.T):
        if not chosen.any():
            continue
        of_trait = x if chosen.all() else x[:, chosen]
        out[t] = _log_p(scores[chosen, t], covariances(model, of_trait, t, exact))
        if not exact and out[t] > NEAR:
            out[t] = _log_p(scores[chosen, t], covariances(model, of_trait, t, True))
    return out


def covariances(model: SnpModel, x: np.ndarray, t: int, exact: bool) -> np.ndarray:
    """(m, m) of the scores of trait t, x'P_tt x."""
    if exact or model.calibration is None:
        return model.information.cross(x, t)
    gamma = float(model.calibration.gamma[t, t])
    return gamma * (x.T @ (mean_diagonal(model.projection)[:, None] * x))


def mean_diagonal(projection: Projection) -> np.ndarray:
    """(animals,) D of the calibration: the mean over the traits."""
    return np.einsum("att->a", projection.diagonal) / projection.design.n_traits


def _log_p(scores: np.ndarray, covariance: np.ndarray) -> float:
    weights = np.maximum(np.linalg.eigvalsh(covariance), 0.0)
    return log_p_of_weighted_chi2(float(scores @ scores), weights) if weights.max() > 0 else np.nan


def windows_frame(windows: Placed, log_p: np.ndarray, n_tested: np.ndarray, traits: tuple[str, ...]) -> pl.DataFrame:
    """A row for each window with a tested SNP."""
    frame = windows.windows.with_columns(snps=pl.Series(n_tested))
    for t, trait in enumerate(traits):
        names = trait_columns(trait)
        values = {names.log_p: log_p[:, t], names.q: false_discovery_rates(10.0 ** -log_p[:, t])}
        frame = frame.with_columns(pl.Series(name, column, nan_to_null=True) for name, column in values.items())
    return frame.filter(pl.col("snps") > 0)
