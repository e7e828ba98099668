"""Variances of windows and chromosomes (`model.markers`), from the kept draws of SNP effects."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mmgibbs.data.genotypes.windows import placed
from mmgibbs.data.prepared import Prepared
from mmgibbs.genotypes.parts import realised_variances
from mmgibbs.posterior.moments import PooledMoments
from mmgibbs.posterior.thinned import KeptDraws
from mmgibbs.results.markers import CHANCE
from mmgibbs.results.output_folder import Content
from mmgibbs.results.windows import chromosome_frame, shares, window_files, window_frame


def files_of_windows(
    prepared: Prepared,
    effects: Mapping[str, KeptDraws],
    moments: Mapping[str, PooledMoments],
) -> dict[str, Content]:
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
    return window_files(windows, chromosomes)


def _has_classes(moments: PooledMoments) -> bool:
    return moments.mean[CHANCE].shape[1] > 1


def _some(draws: np.ndarray, window: np.ndarray, parts: int) -> np.ndarray:
    """(draws, parts) bool: some effect of the part is not 0."""
    return np.stack([np.bincount(window, draw != 0, parts) > 0 for draw in draws])
