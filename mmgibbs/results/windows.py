"""windows.parquet and chromosomes.csv: which parts of the genome the variance of breeding values lies in.

Everything is of draws of the effects, over the genotyped animals as they are: with g_w = X_w a_w the sum over the SNPs
of a window and g = X a the breeding value, the share of a window in a draw is var(g_w) / var(g). Shares of all
windows need not add up to 1, since neighbours covary. The definitions are in the metadata of windows.parquet.

p values as -log10 p, exact however small they are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from scipy import special

from mmgibbs.results.output_folder import Content

WINDOWS, CHROMOSOMES = "windows.parquet", "chromosomes.csv"
LOW, HIGH = 0.025, 0.975  # ends of intervals among the draws
DEFINITIONS = {
    "share": "var(X_w a_w) / var(X a) among the genotyped animals, in each draw of the effects a that the run kept",
    "share_low, share_high": "2.5 % and 97.5 % of its draws",
    "ppa": "posterior probability that the share is above `above`: the share of the draws in which it is",
    "above": "the share s of the definition of ppa (windows.share of the analysis)",
    "p_any": "posterior probability that some SNP of the window has an effect: the share of the draws in which "
    "one has; "
    "null for priors under which no effect is 0",
    "draws": "number of draws of the effects, of all chains",
}


def window_frame(
    term: str, trait: str, windows: pl.DataFrame, share: np.ndarray, above: float, has_effect: np.ndarray | None
) -> pl.DataFrame:
    """windows: of data/genotypes/windows.py; share (draws, windows); some: the same, bool: a SNP has an effect."""
    return windows.select(
        pl.lit(term).alias("term"), pl.lit(trait).alias("trait"), pl.all(), *described("share", share),
        _numbers("ppa", (share > above).mean(axis=0)),
        pl.lit(above).alias("above"),
        _numbers("p_any", np.full(share.shape[1], np.nan) if has_effect is None else has_effect.mean(axis=0)),
        pl.lit(len(share)).alias("draws"),
    )  # fmt: skip


def chromosome_frame(
    term: str, trait: str, chromosomes: pl.DataFrame, of: np.ndarray, rest: np.ndarray, total: np.ndarray
) -> pl.DataFrame:
    """of (draws, chromosomes) variance of g_c; rest: its covariance with all others; total (draws,) var(g)."""
    return chromosomes.select(
        pl.lit(term).alias("term"), pl.lit(trait).alias("trait"), pl.all(), *described("variance", of),
        *described("covariance_with_rest", rest), *described("share", shares(of, total)),
    )  # fmt: skip


def shares(of: np.ndarray, total: np.ndarray) -> np.ndarray:
    """(draws, parts) of the total; 0 in draws in which nothing varies."""
    return np.divide(of, total[:, None], out=np.zeros_like(of), where=total[:, None] > 0)


def described(name: str, draws: np.ndarray) -> list[pl.Series]:
    """NAME, NAME_sd, NAME_low and NAME_high of (draws, m)."""
    low, high = np.quantile(draws, [LOW, HIGH], axis=0)
    sd = draws.std(axis=0, ddof=1) if len(draws) > 1 else np.full(draws.shape[1], np.nan)
    columns = {"": draws.mean(axis=0), "_sd": sd, "_low": low, "_high": high}
    return [_numbers(f"{name}{ending}", values) for ending, values in columns.items()]


def window_files(windows: Sequence[pl.DataFrame], chromosomes: Sequence[pl.DataFrame]) -> dict[str, Content]:
    """File name -> content; none for what is not there."""
    files: dict[str, Content] = {}
    if windows:
        every = pl.concat(windows)
        files[WINDOWS] = lambda path: every.write_parquet(path, metadata=DEFINITIONS)
    if chromosomes:
        files[CHROMOSOMES] = pl.concat(chromosomes)
    return files


def _numbers(name: str, values: np.ndarray) -> pl.Series:
    return pl.Series(name, np.ascontiguousarray(values, np.float64), nan_to_null=True)


LOG_10 = float(np.log(10.0))


def log_p_of_z(z: np.ndarray) -> np.ndarray:
    """-log10 of the two-sided p value of a normal."""
    return -(np.log(2.0) + special.log_ndtr(-np.abs(z))) / LOG_10
