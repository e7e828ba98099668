"""Variances of windows and chromosomes from the kept draws of SNP effects, at the end of a run.

What a run leaves of the genotyped animals beside their breeding values: their principal components, and a sample of
their relationships.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import polars as pl

from mmgibbs.data.genotypes.windows import placed
from mmgibbs.data.prepared import Prepared
from mmgibbs.genotypes.components import principal_components
from mmgibbs.genotypes.parts import realised_variances
from mmgibbs.genotypes.relationship import Additive, products
from mmgibbs.models.relationships.pedigree import Pedigree
from mmgibbs.posterior.moments import PooledMoments
from mmgibbs.posterior.thinned import KeptDraws
from mmgibbs.results.markers import CHANCE
from mmgibbs.results.tables import genotyped_files
from mmgibbs.results.windows import chromosome_frame, shares, window_files, window_frame
from pedigree.relationship_products import relationship_block


def files_of_windows(
    prepared: Prepared,
    effects: Mapping[str, KeptDraws],
    moments: Mapping[str, PooledMoments],
    escaped: bool = False,
) -> dict[str, Callable[[Path], None]]:
    """windows.parquet where the analysis asks for windows, chromosomes.csv where chromosomes are known; none without
    draws of the effects. By key of a term of SNP effects.
    """
    if prepared.genotypes is None:
        return {}
    every, windows, chromosomes = prepared.genotypes.checked.snps, [], []
    for m, labels in zip(prepared.design.markers, prepared.markers, strict=True):
        snps = every[m.number]
        mapped = snps["chromosome"].is_not_null().any()
        asked, trait = labels.section.windows, prepared.design.traits[m.trait]
        if m.key not in effects or not (asked or mapped) or not effects[m.key].number.size:
            continue
        parts, draws = placed(snps, asked, prepared.genotypes.file.unit), effects[m.key].side_by_side
        values = m.genotypes.values(m.centre, m.scale, m.mean)
        realised = realised_variances(m.genotypes, values, draws, parts.of_snp, parts.chromosome, m.n_genotyped)
        if asked:
            share = shares(realised.of_part, realised.total)
            has_effect = _some(draws, parts.of_snp, len(parts.chromosome)) if _has_classes(moments[m.key]) else None
            windows.append(window_frame(m.name, trait, parts.windows, share, asked.share, has_effect))
        if mapped:
            variances = realised.of_group, realised.with_rest, realised.total
            chromosomes.append(chromosome_frame(m.name, trait, parts.chromosomes, *variances))
    return window_files(windows, chromosomes, escaped)


def _has_classes(moments: PooledMoments) -> bool:
    return moments.mean[CHANCE].shape[1] > 1


def _some(draws: np.ndarray, window: np.ndarray, parts: int) -> np.ndarray:
    """(draws, parts) bool: some effect of the part is not 0."""
    return np.stack([np.bincount(window, draw != 0, parts) > 0 for draw in draws])


COUNT = 4  # principal components
SHOWN = 150  # animals of the sample


def files_of_genotyped(prepared: Prepared) -> dict[str, Callable[[Path], None]]:
    """{} unless relationships are made of genotypes."""
    kinds = [t.relationship for t in prepared.design.terms if t.relationship.dense is not None]
    if not kinds or prepared.genotypes is None:
        return {}
    ids = prepared.genotypes.animals["animal"]
    scores, shares = principal_components(_scaled(prepared, ids), COUNT)
    shown = ids.gather(np.unique(np.linspace(0, len(ids) - 1, min(SHOWN, len(ids))).astype(np.int64)))
    G = products(_scaled(prepared, shown), np.arange(len(prepared.genotypes.frequency))).matrix
    order = cluster_order(G)
    chosen = shown.gather(order)
    A = None
    of_pedigree = next((kind for kind in kinds if isinstance(kind, Pedigree)), None)
    codes = None if prepared.pedigree is None else prepared.pedigree.codes(chosen)
    if of_pedigree is not None and codes is not None and not codes.null_count():
        kin = of_pedigree.relatives
        A = relationship_block(kin.sire, kin.dam, kin.inbreeding, codes.to_numpy().astype(np.int64))
    return genotyped_files(ids, scores, shares, chosen.to_list(), G[np.ix_(order, order)], A)


def _scaled(prepared: Prepared, ids: pl.Series) -> Additive:
    """VanRaden 1 at the frequencies of `data.genotypes`."""
    genotypes = prepared.genotypes
    assert genotypes is not None
    p = genotypes.frequency
    scale = np.full(len(p), 1 / np.sqrt(max(genotypes.sum_2pq, np.finfo(float).tiny)))
    return Additive(genotypes.packed(ids), 2 * p, scale, genotypes.mean)


def cluster_order(G: np.ndarray) -> np.ndarray:
    """(m,) animals so that relatives are neighbours: the leaves of average linkage of G_ii + G_jj - 2 G_ij."""
    from scipy.cluster.hierarchy import leaves_list, linkage

    if len(G) < 3:
        return np.arange(len(G))
    diagonal = G.diagonal()
    apart = np.sqrt(np.maximum(diagonal[:, None] + diagonal - 2 * G, 0.0))
    return leaves_list(linkage(apart[np.triu_indices(len(G), 1)], "average", optimal_ordering=True)).astype(np.int64)
