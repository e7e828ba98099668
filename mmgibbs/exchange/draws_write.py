"""Draws of a finished run as a table: `mmgibbs export --format draws`."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import polars as pl

from mmgibbs.errors import ConfigError
from mmgibbs.exchange.exported import choose_folder, read_any_run, write_exported
from mmgibbs.machine.output_places import OutputKind

FILES = ("draws.csv", "draws.parquet", "draws.json")
KIND = OutputKind(FILES[2], frozenset(FILES), "draws", is_alone=False)
RESERVED = ("chain", "draw")


def export_draws(run: str | os.PathLike, output: str | os.PathLike | None = None, *, overwrite: bool = False) -> Path:
    """Write the draws of a finished run; returns their folder, by default RUN-draws.

    ConfigError: no finished run, one whose method draws nothing, or files that are there already.
    """
    finished = read_any_run(run)
    method = finished.record.get("method", "gibbs")
    if method != "gibbs" or not finished.draws:  # draws.nc of REML and BLUP has the estimates alone
        raise ConfigError(f"export: expected a run with draws (method: gibbs), got one of method {method}")
    folder = choose_folder(finished, output, KIND, overwrite)
    frame = draws_frame(finished.draws)
    write_exported(KIND, folder, finished, {FILES[0]: frame, FILES[1]: frame})
    return folder


def draws_frame(draws: dict[str, np.ndarray]) -> pl.DataFrame:
    """A row for each draw, one chain after another, both counted from 1. draws: (chains, draws) each."""
    chains, kept = next(iter(draws.values())).shape
    columns = {"chain": np.repeat(np.arange(1, chains + 1), kept), "draw": np.tile(np.arange(1, kept + 1), chains)}
    columns |= {f"{name}_" if name in RESERVED else name: values.ravel() for name, values in draws.items()}
    return pl.DataFrame(columns)
