"""Relations of the genotyped animals, for pictures: genotyped.parquet and relationship_sample.parquet.

Principal components of all of them, and the genomic relationships of some, ordered by likeness, beside those of the
pedigree.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

COMPONENTS, SAMPLE = "genotyped.parquet", "relationship_sample.parquet"


def genotyped_files(
    ids: pl.Series,
    scores: np.ndarray,
    shares: np.ndarray,
    chosen: Sequence[str],
    genomic: np.ndarray,
    pedigree: np.ndarray | None,
) -> dict[str, pl.DataFrame]:
    """File name -> table. scores (n, k) and shares (k,) of components; relationships among the chosen (m, m), in
    their order."""
    components = pl.DataFrame({"animal": ids} | {f"pc_{j + 1}": scores[:, j] for j in range(scores.shape[1])})
    components = components.with_columns(pl.lit(float(s)).alias(f"share_{j + 1}") for j, s in enumerate(shares))
    m = len(chosen)
    sample = pl.DataFrame(
        {
            "animal": np.repeat(np.array(chosen, object), m).tolist(),
            "other": np.tile(np.array(chosen, object), m).tolist(),
            "genomic": genomic.ravel(),
            "pedigree": [None] * m**2 if pedigree is None else pedigree.ravel(),
        },
        schema_overrides={"pedigree": pl.Float64},
    )
    return {COMPONENTS: components, SAMPLE: sample}
