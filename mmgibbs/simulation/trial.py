"""Simulated variety trials at several sites: rows and columns of plots with a field trend.

    y = mu_s + block_b + g_is + f_rc + e,   g_i ~ N(0, L L' + Psi),   f ~ N(0, TREND AR1(rows) x AR1(columns))

g_is is the value of line i at site s, by one factor; f the trend of a site, with correlations between neighbouring rows
and columns; e is independent, with a variance for each site.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from mmgibbs.simulation import arguments
from mmgibbs.simulation.data_folder import new_data
from mmgibbs.simulation.simulate import program

FILES = (
    "phenotypes.csv",
    "true_values.csv",
    "true_parameters.csv",
    "analysis.yaml",
    "one_site.yaml",
    "PROVENANCE.txt",
)
LINES, SITES, REPLICATES = 60, 4, 3
MEAN, SITE_SD, BLOCK_SD = 6.0, 1.0, 0.3  # t/ha
LOADING, LOADING_SD, SPECIFIC = 0.7, 0.2, 0.15  # mean and SD of the loadings of the sites; specific variance
TREND, ROW_CORRELATION, COLUMN_CORRELATION = 0.6, 0.7, 0.7
RESIDUAL = (0.2, 0.5)  # variance at a site, uniform between these
STREAM = 7


@dataclass(frozen=True)
class Trial:
    """Plots of all sites, and the values behind them."""

    lines: tuple[str, ...]
    sites: tuple[str, ...]
    seed: int
    plots: pl.DataFrame  # site, row, column, rep, line, yield
    values: np.ndarray  # (lines, sites) mean of the site plus the value of the line there
    loadings: np.ndarray  # (sites,)
    residual: np.ndarray  # (sites,) variances

    @property
    def covariance(self) -> np.ndarray:
        """(sites, sites) of the values of a line."""
        return np.outer(self.loadings, self.loadings) + SPECIFIC * np.eye(len(self.sites))


def simulate_trial(n_lines: int = LINES, n_sites: int = SITES, seed: int = 1) -> Trial:
    """Lay out every line in REPLICATES complete blocks, side by side, at every site.

    Raises ConfigError for numbers that make no trial.
    """
    n_lines = arguments.check_integer("lines", n_lines, 4)
    n_sites = arguments.check_integer("sites", n_sites, 1)
    seed = arguments.check_integer("seed", seed, 0, arguments.LARGEST_SEED)
    rng = np.random.default_rng([seed, STREAM])
    lines = tuple(f"L{i + 1:0{len(str(n_lines))}d}" for i in range(n_lines))
    sites = tuple(f"S{s + 1}" for s in range(n_sites))
    loadings = rng.normal(LOADING, LOADING_SD, n_sites)
    values = MEAN + rng.normal(0.0, SITE_SD, n_sites) + np.outer(rng.standard_normal(n_lines), loadings)
    values += np.sqrt(SPECIFIC) * rng.standard_normal(values.shape)
    residual = rng.uniform(*RESIDUAL, n_sites)
    plots = [_site(site, lines, values[:, s], residual[s], rng) for s, site in enumerate(sites)]
    return Trial(lines, sites, seed, pl.concat(plots), values, loadings, residual)


def _site(
    site: str, lines: tuple[str, ...], values: np.ndarray, residual: float, rng: np.random.Generator
) -> pl.DataFrame:
    """The plots of one site; a block is filled row by row, and its last row may be short."""
    n = len(lines)
    n_columns = max(2, round(np.sqrt(n / 2)))
    n_rows = -(-n // n_columns)
    trend = (
        np.sqrt(TREND) * _correlated(n_rows, ROW_CORRELATION) @ rng.standard_normal((n_rows, REPLICATES * n_columns))
    )
    trend = trend @ _correlated(REPLICATES * n_columns, COLUMN_CORRELATION).T
    blocks = []
    for b in range(REPLICATES):
        line, place = rng.permutation(n), np.arange(n)
        row, column = place // n_columns, b * n_columns + place % n_columns
        block = BLOCK_SD * rng.standard_normal()
        y = values[line] + block + trend[row, column] + np.sqrt(residual) * rng.standard_normal(n)
        blocks.append(
            pl.DataFrame(
                {
                    "site": [site] * n,
                    "row": row + 1,
                    "column": column + 1,
                    "rep": [f"R{b + 1}"] * n,
                    "line": [lines[i] for i in line],
                    "yield": y.round(3),
                }
            )
        )
    return pl.concat(blocks).sort("row", "column")


def _correlated(n: int, rho: float) -> np.ndarray:
    """(n, n) L with L L' the correlations rho^|i - j|."""
    return np.linalg.cholesky(rho ** np.abs(np.subtract.outer(np.arange(n), np.arange(n))))


def write(trial: Trial, directory: str | Path, how: str, overwrite: bool = False) -> Path:
    """Write the files into a directory and return it; how: the command that made the data.

    ConfigError where the directory holds anything, unless `overwrite` (files of the same names are then replaced).
    """
    with new_data(directory, how, overwrite) as target:
        _write_files(trial, target, Path(directory).resolve().name, how)
    return Path(directory)


def _write_files(trial: Trial, target: Path, name: str, how: str) -> None:
    trial.plots.write_csv(target / "phenotypes.csv")
    wide = pl.DataFrame({"line": trial.lines} | {s: trial.values[:, i] for i, s in enumerate(trial.sites)})
    values = wide.unpivot(index="line", variable_name="site", value_name="value")
    values.write_csv(target / "true_values.csv", float_precision=3)
    parameters = _parameters(trial)
    table = pl.DataFrame({"parameter": list(parameters), "value": list(parameters.values())})
    table.with_columns(pl.col("value").round(6)).write_csv(target / "true_parameters.csv")
    structure = "" if len(trial.sites) < 3 else _STRUCTURE
    (target / "analysis.yaml").write_text(
        _ANALYSIS.replace("{name}", name).replace("{structure}", structure), encoding="utf-8"
    )
    text = _ONE_SITE.replace("{name}", name).replace("{site}", trial.sites[0])
    (target / "one_site.yaml").write_text(text, encoding="utf-8")
    (target / "PROVENANCE.txt").write_text(_provenance(trial, parameters, how), encoding="utf-8")


def _parameters(trial: Trial) -> dict[str, float]:
    """True values with the names of summary.csv of analysis.yaml."""
    G, names = trial.covariance, [f"yield|{site}" for site in trial.sites]
    out = {f"line.var[{a}]": G[i, i] for i, a in enumerate(names)}
    pairs = [(i, j) for j in range(len(names)) for i in range(j)]
    out |= {f"line.corr[{names[i]},{names[j]}]": G[i, j] / np.sqrt(G[i, i] * G[j, j]) for i, j in pairs}
    # without the field trend in the model, it is a part of the residual
    out |= {f"residual.var[{a}]": v + TREND for a, v in zip(names, trial.residual, strict=True)}
    return {name: float(value) for name, value in out.items()}


def _provenance(trial: Trial, parameters: dict[str, float], how: str) -> str:
    return "\n".join(
        [
            "Simulated variety trials; no line in them was ever grown.",
            f"Made by: {how}",
            f"Program: {program()}",
            f"{len(trial.lines)} lines in {REPLICATES} complete blocks at {len(trial.sites)} sites.",
            "",
            "phenotypes.csv         a plot a row: site, row, column, rep (block), line, yield in t/ha",
            "true_values.csv        true value of every line at every site, the mean of the site included",
            "true_parameters.csv    what is below, with the names of summary.csv of analysis.yaml",
            "analysis.yaml          all sites, with correlations between them",
            f"one_site.yaml          site {trial.sites[0]}, with a field trend and adjusted means",
            "",
            f"Field trend of each site: variance {TREND:g}, correlations of neighbours {ROW_CORRELATION:g} (rows) and "
            f"{COLUMN_CORRELATION:g} (columns);",
            "it is included in the residual variances below, since analysis.yaml has no trend.",
            "Residual variances without it: "
            + ", ".join(f"{v:.3f} ({s})" for s, v in zip(trial.sites, trial.residual, strict=True)),
            "",
            "True parameters",
            *(f"{name:<66}{value:.6g}" for name, value in parameters.items()),
            "",
        ]
    )


_STRUCTURE = """
variances:
  line: {structure: factor_analytic}  # correlations between sites by one common factor"""

_ANALYSIS = """\
# Variety trials at several sites: a trait for each site, correlated values of the lines.
# Paths of data are relative to this file, the output directory to where the command runs.
name: {name}
data:
  phenotypes: phenotypes.csv
traits:
  yield: {by: site}
model:
  fixed:
    rep: {}
  random:
    line: {}{structure}
sampler: {method: reml}
output: {directory: runs/{name}, means: [line]}
"""

_ONE_SITE = """\
# One variety trial with a field trend: correlated rows and columns, adjusted means of the lines.
name: {name}-one-site
data:
  phenotypes: phenotypes.csv
traits:
  yield: {where: {site: {site}}}
model:
  fixed:
    rep: {}
  random:
    line: {}
    field: {relationship: {kind: ar1, row: row, column: column, within: site}}
sampler: {method: reml}
output: {directory: runs/{name}-one-site, means: [line]}
"""
