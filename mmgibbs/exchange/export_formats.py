"""Formats of `mmgibbs export`: a line here, and a function in `exchange` that writes the files."""

from __future__ import annotations

from typing import NamedTuple


class ExportFormat(NamedTuple):
    """A format; its function is imported where it is asked for.

    The function takes RUN, the folder to write to or None, `overwrite`, and its options by name. It returns the folder
    that it wrote, or that and notes.
    """

    writer: str  # 'module:function' below `exchange`
    words: str  # what it writes, for the help
    options: tuple[str, ...] = ()  # of the command, that are for this format


EXPORT_FORMATS: dict[str, ExportFormat] = {  # by the word of --format
    "blupf90": ExportFormat(
        "blupf90_write:export_blupf90",
        "`solutions` (trait, effect, level, solution, s.e., which is the posterior standard deviation, "
        "left out if it is unknown); `levels.csv` (effect, level, id, term, name: what the numbers of effects and "
        "levels mean); and, if variances were sampled, `postgibbs_samples` (number, round, how many, the "
        "(co)variances; one chain after another, with rounds numbered on) and `postind` (the position of each "
        "(co)variance in a sample).",
    ),
    "deregressed": ExportFormat(
        "deregression:export_deregressed",
        "`deregressed.csv` and `.parquet` with the deregressed proof of each animal, the parent "
        "average removed, its reliability and its weight (Garrick, Taylor & Fernando 2009), for a second analysis such "
        "as one by SNPs. Animals without information beyond their parents are left out and counted.",
        options=("unexplained",),
    ),
    "draws": ExportFormat(
        "draws_write:export_draws",
        "`draws.csv` and `.parquet` with a row for each kept draw of each chain (chain, draw, and a "
        "column for each parameter), for programs that do not read draws.nc.",
    ),
}
