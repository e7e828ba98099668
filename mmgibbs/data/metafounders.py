"""Gamma, the relationships among metafounders: a number, a table, or from the genotypes of the analysis."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from mmgibbs.data.animal_ids import explain_respelled
from mmgibbs.data.genotypes.prepare import PreparedGenotypes
from mmgibbs.data.phenotypes import SHOWN, cells_as_text, clean_ids, read_any, refuse_rows
from mmgibbs.errors import DataError
from pedigree.errors import PedigreeError
from pedigree.inbreeding import inbreeding
from pedigree.metafounders import checked_gamma, estimated_gamma
from pedigree.tables import quoted

if TYPE_CHECKING:
    from mmgibbs.config.tables import Data
    from mmgibbs.data.relationships import Kin

GAMMA = "data.groups.gamma"


def with_gamma(kin: Kin, data: Data, genotypes: PreparedGenotypes | None) -> Kin:
    """The pedigree with Gamma where its groups are metafounders; DataError where there can be none."""
    if data.groups is None or data.groups.effect != "metafounders":
        return kin
    names, given = kin.pedigree.groups, data.groups.gamma
    if not names:
        raise DataError(  # groups in place of parents are there, or the pedigree is refused
            f"{kin.pedigree.name}: no animal has an unknown parent and a value in column '{data.groups.column}'; "
            "needed some for data.groups.effect: metafounders"
        )
    try:
        if isinstance(given, Path):
            gamma = checked_gamma(read_gamma(given, names))
        elif isinstance(given, float):
            gamma = checked_gamma(given * np.eye(len(names)))
        else:
            assert genotypes is not None, "checked with the analysis"
            gamma = checked_gamma(_from_genotypes(kin, genotypes))
    except PedigreeError as error:
        which = ", ".join(f"{i + 1} is {name}" for i, name in enumerate(names[:10]))
        if given == "genotypes":
            raise DataError(
                f"{GAMMA}: as estimated from the genotypes of {len(genotypes.animals) if genotypes else 0:,} animals, "
                f"{error} ({which}). For a population with few genotyped descendants the error of the estimate is "
                "larger than the estimate; needed more of them, fewer and larger populations, or gamma: a number or a "
                "table"
            ) from None
        raise DataError(f"{GAMMA}: {error} ({which})") from None
    return replace(kin, gamma=gamma)


def read_gamma(path: Path, names: tuple[str, ...]) -> np.ndarray:
    """(m, m) from a table of three columns, two metafounders and their relationship; each pair once, or twice alike."""
    frame, _, rows, name = read_any(path, header=False)
    if frame.width != 3:
        raise DataError(
            f"{name}: found {frame.width} columns; needed two metafounders and their relationship ({GAMMA})"
        )
    frame = frame.with_columns(cells_as_text(frame.to_series(2), name))
    if len(frame) and frame.to_series(2).head(1).cast(pl.Float64, strict=False)[0] is None:
        frame, rows = frame[1:], rows[1:]  # the first line is a header
    first, second = (clean_ids(frame.to_series(i), (), name) for i in (0, 1))
    value = frame.to_series(2).cast(pl.Float64, strict=False)
    wrong = np.flatnonzero((~value.is_finite()).fill_null(True).to_numpy())
    if wrong.size:
        problems = [f"found {quoted(frame.to_series(2)[int(i)])} as the relationship" for i in wrong[:SHOWN]]
        raise refuse_rows(name, rows[wrong], problems, "a number")
    at = {n: i for i, n in enumerate(names)}
    out = np.full((len(names), len(names)), np.nan)
    for row, a, b, v in zip(rows, first, second, value, strict=True):
        if a not in at or b not in at:
            continue  # of a population that this pedigree does not have
        for i, j in ((at[a], at[b]), (at[b], at[a])):
            if not np.isnan(out[i, j]) and abs(out[i, j] - v) > 1e-9:
                raise DataError(f"{name} row {row}: found {v:g} for {a} and {b}, and {out[i, j]:g} in another row")
            out[i, j] = v
    absent = np.argwhere(np.isnan(out))
    if absent.size:
        i, j = absent[0]
        in_table = pl.concat([first.rename("id"), second.rename("id")]).drop_nulls()
        hint = explain_respelled(in_table.filter(~in_table.is_in(list(names))), pl.Series(names), "the pedigree")
        raise DataError(
            f"{name}: found no relationship of {names[i]} and {names[j]}; needed one for each pair of metafounders of "
            f"the pedigree, and of each with itself ({GAMMA})" + ("" if hint is None else f"\n{hint}")
        )
    return out


def _from_genotypes(kin: Kin, genotypes: PreparedGenotypes) -> np.ndarray:
    """By generalised least squares, of the genotyped animals that the pedigree knows."""
    read, ids = kin.pedigree, genotypes.animals["animal"]
    codes = read.codes(ids)
    known = ids.filter(codes.is_not_null())
    store = genotypes.packed(known)
    zero = np.zeros(store.n_snps)
    M = store.decode(store.every, store.values(zero, mean=genotypes.mean)).T
    F = inbreeding(read.sire, read.dam)
    return estimated_gamma(read.sire, read.dam, F, len(read.groups), codes.drop_nulls().to_numpy().astype(np.int64), M)
