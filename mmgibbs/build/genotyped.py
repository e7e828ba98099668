"""Principal components of the genotyped animals, and a sample of their relationships, at the end of a run."""

from __future__ import annotations

import numpy as np
import polars as pl

from mmgibbs.data.prepared import Prepared
from mmgibbs.genotypes.components import principal_components
from mmgibbs.genotypes.relationship import Additive, products
from mmgibbs.models.relationships.pedigree import Pedigree
from mmgibbs.pedigree.relationship_products import relationship_block
from mmgibbs.results.genotyped import genotyped_files

COUNT = 4  # principal components
SHOWN = 150  # animals of the sample


def files_of_genotyped(prepared: Prepared) -> dict[str, pl.DataFrame]:
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
