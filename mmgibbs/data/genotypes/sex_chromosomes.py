"""Chromosomes that parents do not pass on as they do autosomes: X and Y, Z and W, mitochondria.

A male has the X of its dam alone, and is read as a homozygote: it may be an opposing homozygote of its sire. Names tell
such chromosomes (X, chrX, BTAX, MT). Numbers do not, as 23 is X of men and an autosome of cattle: the last numbers of a
map are looked at, and count as X where genotyped sires have no heterozygotes and dams have them (as Z where dams have
none, as haploid where no parent has). Pseudo-autosomal regions (XY, PAR) are inherited like autosomes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import numpy as np
import polars as pl

from mmgibbs.genotypes.quality import count_heterozygous
from mmgibbs.genotypes.store import Store
from pedigree.tables import counted

NUMBERS_AFTER_AUTOSOMES = 4  # X, Y, XY and MT, as PLINK numbers them
SNPS_ELSEWHERE = 512  # with which a chromosome is compared
MIN_EXPECTED = 12.0  # heterozygotes of an animal on a chromosome, from which having none is no chance
MIN_PARENTS = 3
PURE = 0.9  # share of the parents of a sex

_NAME = re.compile(r"(?:chromosome|chrom|chr|[a-z]{3})?[\s_.:-]*(.+?)(?:[_-]?non[_-]?par|_random|_alt)?")
_KINDS = {"x": "X", "y": "Y", "z": "Z", "w": "W", "m": "MT", "mt": "MT", "mito": "MT", "mitochondrion": "MT"}
_ROMAN = {"viii", "ix", "xi", "xii"}  # beside which X is the tenth
_LETTERS = set("abcdefghijkl")  # beside which X, Y, Z are linkage groups


def name_sex_chromosomes(chromosomes: Iterable[str | None]) -> dict[str, str]:
    """Name -> X, Y, Z, W or MT, of those whose name tells it."""
    plain = {}
    for name in filter(None, chromosomes):
        text = name.strip().lower()
        matched = None if text in _KINDS else _NAME.fullmatch(text)  # 'mito' is no name behind three letters
        plain[name] = text if matched is None else matched[1]
    others = set(plain.values())
    if others & _ROMAN or len(others & _LETTERS) > 2:
        return {}
    return {name: _KINDS[text] for name, text in plain.items() if text in _KINDS}


def find_sex_chromosomes(chromosome: pl.Series, store: Store, sires: np.ndarray, dams: np.ndarray) -> dict[str, str]:
    """Name -> kind, by names and by the genotypes of parents (places in the store)."""
    named = name_sex_chromosomes(chromosome.unique())
    numbers = sorted((c for c in chromosome.drop_nulls().unique() if c.isdecimal()), key=int, reverse=True)
    if set(named.values()) & {"X", "Z"} or len(numbers) < 2:
        return named
    for number in numbers[:NUMBERS_AFTER_AUTOSOMES]:
        kind = _recognise(store, mark_chromosomes(chromosome, {number: ""}), sires, dams)
        if kind is not None:
            named[number] = kind
    return named


def _recognise(store: Store, is_here: np.ndarray, sires: np.ndarray, dams: np.ndarray) -> str | None:
    """X, Z, haploid, or None for an autosome or where too few parents are genotyped."""
    elsewhere = np.flatnonzero(~is_here)
    elsewhere = elsewhere[:: max(1, elsewhere.size // SNPS_ELSEWHERE)]
    (here_het, here_known), (het, known) = (
        count_heterozygous(store, rows).T for rows in (np.flatnonzero(is_here), elsewhere)
    )
    expected = het / np.maximum(known, 1) * here_known
    is_haploid, can_tell = here_het <= np.maximum(1.0, 0.05 * expected), expected >= MIN_EXPECTED
    shares = []
    for parents in (sires, dams):
        telling = np.unique(parents)[can_tell[np.unique(parents)]]
        shares.append(is_haploid[telling].mean() if telling.size >= MIN_PARENTS else np.nan)
    of_sires, of_dams = shares
    if of_sires >= PURE:
        return "haploid" if of_dams >= PURE else "X" if of_dams <= 1 - PURE or np.isnan(of_dams) else None
    return "Z" if of_dams >= PURE and of_sires <= 1 - PURE else None


def mark_chromosomes(chromosome: pl.Series, names: Mapping[str, str]) -> np.ndarray:
    """(p,) bool: which SNPs are on these chromosomes."""
    return chromosome.is_in(pl.Series(list(names), dtype=pl.String).implode()).fill_null(False).to_numpy()


def describe_sex_chromosomes(chromosome: pl.Series, names: Mapping[str, str]) -> str:
    """'63 SNPs of sex chromosomes or mitochondria (X: 60, MT: 3)'; a number with its kind; '' for none."""
    counts = {name: int((chromosome == name).sum()) for name in names}
    words = [
        f"{name}: {n:,}" if kind.lower() in name.lower() or kind == "MT" else f"{name} ({kind}): {n:,}"
        for (name, n), kind in zip(counts.items(), names.values(), strict=True)
    ]
    if not words:
        return ""
    return f"{counted(sum(counts.values()), 'SNP')} of sex chromosomes or mitochondria ({', '.join(words)})"
