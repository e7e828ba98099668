"""Curves of a trait over a covariate as a table: the mean of the trait at each value, with its error."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from mmgibbs.data.prepared import Prepared
from mmgibbs.posterior.adjusted_means import AdjustedMeans, MeansMoments
from mmgibbs.results.csv_files import csv_writer
from mmgibbs.results.folder import is_csv_wanted

NAME = "smooths"


def smooths_frame(
    prepared: Prepared, means: Sequence[AdjustedMeans], moments: Mapping[str, MeansMoments]
) -> pl.DataFrame | None:
    """A row for each value of the covariate of each curve; None without curves, or before they are computed."""
    frames = [
        _frame(prepared, curve, moments[curve.name]) for curve in means if curve.is_curve and curve.name in moments
    ]
    return pl.concat(frames) if frames else None


def _frame(prepared: Prepared, means: AdjustedMeans, moments: MeansMoments) -> pl.DataFrame:
    assert means.random is not None, "curves are those of random terms"
    curve = prepared.levels[means.random[0]].curve
    assert curve is not None, "the term has one"
    text = lambda word: pl.repeat(word, len(curve.values), dtype=pl.String, eager=True)
    return pl.DataFrame(
        {
            "term": text(means.effect),
            "trait": text(means.trait),
            "class": curve.classes,
            "covariate": text(curve.column),
            "at": curve.values,
            "records": means.records,
            "mean": moments.mean,
            "sd": np.sqrt(np.maximum(np.diag(moments.covariance), 0.0)),
        }
    )


def smooths_files(frame: pl.DataFrame | None, csv: str, escaped: bool = False) -> dict[str, Callable[[Path], None]]:
    """File name -> its writer, for `folder.write_run_folder`; csv: `output.csv`."""
    if frame is None:
        return {}
    files: dict[str, Callable[[Path], None]] = {f"{NAME}.parquet": frame.write_parquet}
    return files | ({f"{NAME}.csv": csv_writer(frame, escaped)} if is_csv_wanted(csv, frame.height) else {})
