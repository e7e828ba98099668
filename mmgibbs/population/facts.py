"""`mmgibbs.describe_pedigree`: what a pedigree says of the population, and of the animals of the present generation.

The reference population is that of the animals born from a year on (by default in the last generation), or, without
births, those without progeny. With F of an animal and t its equivalent generations (Gutierrez et al. 2009),

    Delta F_i = 1 - (1 - F_i)^(1 / (t_i - 1))        Ne = 1 / (2 mean Delta F_i)

is the effective size by the individual increase in inbreeding, over the reference animals with t_i > 1. 1 - F_i is
computed by itself, as F_i is rounded to 1 in old strains.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from mmgibbs.data.dates import birth_years
from mmgibbs.errors import ConfigError, DataError, is_command, option_name
from mmgibbs.machine.output_places import OutputKind, check_output_folder
from mmgibbs.pedigree.ancestry import (
    completeness,
    effective_number,
    equivalent_generations,
    founder_contributions,
    major_ancestors,
)
from mmgibbs.pedigree.contents import ENCODING
from mmgibbs.pedigree.errors import PedigreeError, TableError
from mmgibbs.pedigree.group_columns import find_group_column
from mmgibbs.pedigree.group_names import GROUP_PARENTS
from mmgibbs.pedigree.inbreeding import inbreeding
from mmgibbs.pedigree.panmictic_index import panmictic_index
from mmgibbs.pedigree.parents import UNKNOWN_VALUES
from mmgibbs.pedigree.read import ParentGroups, Pedigree, read_pedigree
from mmgibbs.population.parentage import ERROR_RATE, check_parentage, question_both_sexes
from mmgibbs.population.results import PedigreeFacts
from mmgibbs.results.output_folder import Content, write_files

GENERATIONS = 6  # of which completeness is told
MAX_ANCESTORS = 100
PATHS = {"sire of sires": ("sire", True), "sire of dams": ("sire", False), "dam of sires": ("dam", True),
         "dam of dams": ("dam", False)}  # fmt: skip
UNKNOWN = ("", "NA", "0")


PARENTAGE_TABLES = ("conflicts", "likely_parents", "duplicates")
KIND = OutputKind(
    "pedigree.json",
    frozenset({"animals.parquet", "years.csv", "ancestors.csv", "pedigree.json", "pedigree.html"}).union(
        f"{name}.{ending}" for name in PARENTAGE_TABLES for ending in ("parquet", "csv")
    ),
    "a described pedigree",
)


def describe_pedigree(
    pedigree: str | os.PathLike | pl.DataFrame,
    output: str | os.PathLike | None = None,
    *,
    born_after: int | None = None,
    columns: Mapping[str, str | int | None] | None = None,
    unknown: Sequence[str] = UNKNOWN,
    groups: Sequence[str] = (),
    group_column: str | int | None = None,
    genotypes: str | os.PathLike | Mapping[str, Any] | None = None,
    error_rate: float = ERROR_RATE,
    overwrite: bool = False,
    report: bool = False,
    escape_formulas: bool = False,
    encoding: str | None = None,
) -> PedigreeFacts:
    """Describe a pedigree: completeness, inbreeding, effective size, founders, generation intervals.

    Parameters
    ----------
    pedigree : path-like or polars.DataFrame
        Table of animals with their sires and dams, and births if there are any.
    output : path-like or None, default None
        Folder to write. By default nothing is written.
    born_after : int or None, default None
        The reference population are the animals born after this year. By default those of the last generation interval,
        or without births those that have no progeny.
    columns : mapping or None, default None
        Name or 1-based position of the columns "id", "sire", "dam" and "birth". By default they are recognised.
    unknown : sequence of str, default ("", "NA", "0")
        Values that mean an unknown parent.
    groups : sequence of str, default ()
        Names in the columns of sires and dams that are genetic groups (unknown-parent groups), not animals; "*" stands
        for any characters, as in "UPG_*". They count as unknown parents.
    group_column : str, int or None, default None
        Name or 1-based position of the column with the group of each animal's unknown parents.
    genotypes : path-like, mapping or None, default None
        Genotypes, or keys of `data.genotypes`: parents are checked, and likely ones are looked for.
    error_rate : float, default 0.01
        Probability that a genotype is wrong, at most: it says how many opposing homozygotes a parent may have.
    overwrite : bool, default False
        Replace the files of an earlier description in `output`.
    report : bool, default False
        Write pedigree.html too; needs `output`.
    escape_formulas : bool, default False
        In csv files, put an apostrophe before text that a spreadsheet would take for a formula.
    encoding : str or None, default None
        Encoding of the table, such as "cp850". By default UTF-8, else Windows-1252.

    Returns
    -------
    PedigreeFacts
        Figures and tables.

    Raises
    ------
    DataError
        The pedigree cannot be used.
    ConfigError
        An argument cannot be used.

    References
    ----------
    Boichard, Maignel & Verrier (1997), Genet. Sel. Evol. 29:5-23; Gutierrez, Cervantes & Goyache (2009),
    J. Anim. Breed. Genet. 126:327-332.

    Examples
    --------
    >>> import mmgibbs
    >>> described = mmgibbs.describe_pedigree("data_samples/beef/pedigree.csv")
    >>> described.facts["animals"]
    3500
    """
    of_genotypes = genotypes.values() if isinstance(genotypes, Mapping) else [genotypes]
    folder = None if output is None else check_output_folder(KIND, output, overwrite, [pedigree, *of_genotypes])
    if isinstance(error_rate, bool) or not isinstance(error_rate, (int, float)) or not 0 <= error_rate < 0.25:
        raise ConfigError(f"{option_name('error_rate')}: expected a number from 0 to below 0.25, got {error_rate!r}")
    if report and folder is None:
        raise ConfigError("describe_pedigree: report needs output, the folder to write")
    try:
        read = read_pedigree(
            pedigree,
            columns=columns,
            unknown=tuple(unknown),
            groups=ParentGroups(group_column, (groups,) if isinstance(groups, str) else tuple(groups), False),
            hermaphrodites=True,
            encoding=encoding,
        )
    except (PedigreeError, TableError) as error:
        raise DataError(_name_option(str(error))) from None
    years = _years(read)
    reference, words = choose_reference(read, years, born_after)
    F, generations = inbreeding(read.sire, read.dam), equivalent_generations(read.sire, read.dam)
    animals = _animals(read, years, F, generations, reference)
    parentage = None if genotypes is None else check_parentage(read, genotypes, error_rate)
    ancestors = major_ancestors(read.sire, read.dam, reference, MAX_ANCESTORS)
    facts = {
        "pedigree": read.name,
        **_counts(read),
        "reference": words,
        "reference_animals": int(reference.sum()),
        **_completeness(read, reference, generations),
        **_inbreeding(F, panmictic_index(read.sire, read.dam, F), generations, reference),
        **_origins(read, reference, ancestors.marginal),
        "generation_intervals": generation_intervals(read),
        "family_sizes": _family_sizes(read),
    }
    if read.groups:
        facts["groups"] = _count_groups(read)
    if parentage is not None:
        facts["parentage"] = parentage.facts
    table = pl.DataFrame(
        {
            "ancestor": read.ids.gather(ancestors.code),
            "birth_year": years.gather(ancestors.code),
            "marginal_share": ancestors.marginal,
            "cumulative_share": np.cumsum(ancestors.marginal),
        }
    )
    said = [*(f"warning: {warning}" for warning in read.warnings), *read.notes, *question_both_sexes(read)]
    offered = None
    if group_column is None and not groups:
        offered = find_group_column(pedigree, read, columns=columns, unknown=tuple(unknown), encoding=encoding)
    if offered is not None:
        option = option_name("group_column")
        said.append(f"column '{offered}' may have the groups of unknown parents: {option} {offered} counts them")
    notes = (*map(_name_option, said), *(() if parentage is None else parentage.notes))
    described = PedigreeFacts(facts, animals, _summarise_years(animals), table, notes, folder, parentage)
    if folder is not None:
        _write(described, folder, report, escape_formulas)
    return described


def _write(described: PedigreeFacts, folder: Path, page: bool, escaped: bool) -> None:
    """Write all files, whole or not at all; escaped: no formulas in csv files."""
    contents: dict[str, Content] = {
        "animals.parquet": described.animals,
        "years.csv": described.years,
        "ancestors.csv": described.ancestors,
    }
    for name in PARENTAGE_TABLES if described.parentage is not None else ():
        contents[f"{name}.parquet"] = contents[f"{name}.csv"] = getattr(described.parentage, name)
    if page:
        from mmgibbs.population.page import write_page  # and matplotlib with it

        contents["pedigree.html"] = lambda path: write_page(described, path)
    write_files(KIND, folder, contents, described.facts | {"notes": list(described.notes)}, escaped)


def _name_option(message: str) -> str:
    """A message of the pedigree with the option that it speaks of."""
    option = option_name("groups")
    if is_command():  # a shell replaces '*', and '-*' looks like an option
        message = _GROUP_LIST.sub(lambda found: f"{option}='{found[1].replace(', ', ',')}'", message)
    message = message.replace(ENCODING, option_name("encoding"))
    return message.replace(UNKNOWN_VALUES, option_name("unknown")).replace(GROUP_PARENTS, option)


_GROUP_LIST = re.compile(rf"{GROUP_PARENTS}: \[([^]]*)\]")


def _count_groups(read: Pedigree) -> dict[str, dict[str, int]]:
    """Group -> times that it is a sire and a dam; animals with an unknown parent of no group."""
    counts = {
        role: np.bincount(parent[parent >= read.n_animals] - read.n_animals, minlength=read.n_groups)
        for role, parent in (("sire", read.sire), ("dam", read.dam))
    }
    return {name: {role: int(counts[role][g]) for role in counts} for g, name in enumerate(read.groups)}


def _years(read: Pedigree) -> pl.Series:
    """(n,) Int64, null where unknown."""
    if read.birth is None:
        return pl.Series("birth_year", [None] * read.n_animals, dtype=pl.Int64)
    return birth_years(pl.Series(read.birth, nan_to_null=True)).alias("birth_year")


def choose_reference(read: Pedigree, years: pl.Series, born_after: int | None) -> tuple[np.ndarray, str]:
    """(n,) bool of the reference animals, and who they are in words."""
    if years.null_count() == len(years):
        if born_after is not None:
            raise ConfigError(f"{option_name('born_after')}: {read.name} has no births; needed a column of them")
        is_parent = np.zeros(read.n_animals, bool)
        for parent in (read.sire, read.dam):
            is_parent[parent[(parent >= 0) & (parent < read.n_animals)]] = True
        return ~is_parent, "animals without progeny"
    year = years.fill_null(-(10**6)).to_numpy()
    if born_after is None:
        interval = generation_intervals(read).get("mean")
        born_after = int(year.max()) - max(1, round(1.0 if interval is None else interval["years"]))
    reference = np.asarray(year > born_after)
    if not reference.any():
        raise ConfigError(
            f"{option_name('born_after')}: found {born_after}, after which no animal was born; needed a year before "
            f"{int(year.max())}"
        )
    return reference, f"animals born after {born_after}"


def _is_known(read: Pedigree, parent: np.ndarray) -> np.ndarray:
    return np.asarray((parent >= 0) & (parent < read.n_animals))


def _animals(
    read: Pedigree, years: pl.Series, F: np.ndarray, generations: np.ndarray, reference: np.ndarray
) -> pl.DataFrame:
    """A row for each animal, in the order of the file."""
    names = pl.concat([read.ids, pl.Series([None], dtype=pl.String)])  # the last one: unknown
    parent = {
        role: names.gather(np.where(_is_known(read, code), code, read.n_animals))
        for role, code in (("sire", read.sire), ("dam", read.dam))
    }
    frame = pl.DataFrame(
        {
            "id": read.ids, **parent, "birth_year": years, "inbreeding": F, "equivalent_generations": generations,
            "reference": reference,
        }
    )  # fmt: skip
    return frame[read.file_order.astype(np.int64)]


def _summarise_years(animals: pl.DataFrame) -> pl.DataFrame:
    return (
        animals.drop_nulls("birth_year")
        .group_by("birth_year")
        .agg(
            animals=pl.len(),
            sires_known=pl.col("sire").is_not_null().mean(),
            dams_known=pl.col("dam").is_not_null().mean(),
            equivalent_generations=pl.col("equivalent_generations").mean(),
            inbreeding=pl.col("inbreeding").mean(),
            inbred=(pl.col("inbreeding") > 0).mean(),
        )
        .sort("birth_year")
    )


def _counts(read: Pedigree) -> dict[str, Any]:
    sire, dam = _is_known(read, read.sire), _is_known(read, read.dam)
    return {
        "animals": read.n_animals,
        "without_parents": int((~sire & ~dam).sum()),
        "one_parent": int((sire ^ dam).sum()),
        "sires": int(np.unique(read.sire[sire]).size),
        "dams": int(np.unique(read.dam[dam]).size),
    }


def _completeness(read: Pedigree, reference: np.ndarray, generations: np.ndarray) -> dict[str, Any]:
    shares = completeness(read.sire, read.dam, GENERATIONS)[reference].mean(axis=0)
    return {
        "known_ancestors_by_generation": [float(share) for share in shares],
        "equivalent_generations": float(generations[reference].mean()),
    }


def _inbreeding(F: np.ndarray, panmictic: np.ndarray, generations: np.ndarray, reference: np.ndarray) -> dict[str, Any]:
    chosen = F[reference]
    out: dict[str, Any] = {
        "inbreeding": {
            "mean": float(chosen.mean()),
            "highest": float(chosen.max()),
            "inbred": float((chosen > 0).mean()),
        }
    }
    counted = reference & (generations > 1)
    if not counted.any():
        return out
    rate = 1 - panmictic[counted] ** (1 / (generations[counted] - 1))
    out["rate_of_inbreeding"] = float(rate.mean())
    if rate.mean() > 0:
        size = 1 / (2 * float(rate.mean()))
        error = 2 * size**2 * float(rate.std(ddof=1)) / np.sqrt(rate.size) if rate.size > 1 else None
        out["effective_size"] = {"ne": size, "se": error, "animals": rate.size}
    return out


def _origins(read: Pedigree, reference: np.ndarray, marginal: np.ndarray) -> dict[str, Any]:
    founders = founder_contributions(read.sire, read.dam, reference)
    shares = np.cumsum(marginal)
    half = int(np.searchsorted(shares, 0.5)) + 1 if shares.size and shares[-1] >= 0.5 else None
    rest = 1.0 - float(marginal.sum())
    smallest = float(marginal[-1]) if marginal.size else 1.0
    # what is left unexplained lies in ancestors that are at most as important as the last one
    highest = 1.0 / (float(np.sum(marginal**2))) if marginal.size else float("nan")
    lowest = 1.0 / (float(np.sum(marginal**2)) + rest * smallest) if marginal.size else float("nan")
    return {
        "founders": int((founders > 0).sum()),
        "effective_founders": effective_number(founders),
        "effective_ancestors": {"lowest": lowest, "highest": highest},
        "ancestors_of_half_the_genes": half,
    }


def birth_times(birth: np.ndarray) -> np.ndarray:
    """(n,) births in years: numbers such as 20110304 are dates, others are years already."""
    is_date = (birth > 1e7) & (birth < 1e8)
    number = np.where(is_date, birth, 0.0)
    year, month, day = number // 10_000, number // 100 % 100, number % 100
    return np.where(is_date, year + (month - 1) / 12 + (day - 1) / 365.25, birth)


def generation_intervals(read: Pedigree) -> dict[str, dict[str, float]]:
    """Path -> mean age of parents at the birth of progeny that became parents, and how many; {} without births."""
    time = np.full(read.n_animals, np.nan) if read.birth is None else birth_times(np.asarray(read.birth))
    n = read.n_animals
    is_sire, is_dam = np.zeros(n, bool), np.zeros(n, bool)
    is_sire[read.sire[_is_known(read, read.sire)]] = True
    is_dam[read.dam[_is_known(read, read.dam)]] = True
    out, ages = {}, []
    for name, (role, of_sires) in PATHS.items():
        parent = read.sire if role == "sire" else read.dam
        chosen = np.flatnonzero(_is_known(read, parent) & (is_sire if of_sires else is_dam))
        age = time[chosen] - time[parent[chosen]]
        age = age[np.isfinite(age)]
        if age.size:
            out[name] = {"years": float(age.mean()), "n": int(age.size)}
            ages.append(float(age.mean()))
    if ages:
        out["mean"] = {"years": float(np.mean(ages)), "n": int(sum(path["n"] for path in out.values()))}
    return out


def _family_sizes(read: Pedigree) -> dict[str, dict[str, float]]:
    out = {}
    for role, parent in (("sire", read.sire), ("dam", read.dam)):
        sizes = np.unique(parent[_is_known(read, parent)], return_counts=True)[1]
        if sizes.size:
            out[role] = {"mean": float(sizes.mean()), "largest": int(sizes.max())}
    return out
