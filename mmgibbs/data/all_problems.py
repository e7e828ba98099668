"""Everything that is wrong in the tables of an analysis, where reading them has ended with the first thing.

The tables are read again in parts that do not need each other: trait by trait, effect by effect, the pedigree. Each
part says what is wrong in it, and parts that need what cannot be read are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import polars as pl

from mmgibbs.config import Analysis
from mmgibbs.data.fixed_columns import read_fixed_effects
from mmgibbs.data.genotypes.file_format import open_genotypes
from mmgibbs.data.interactions import interactions_of_columns
from mmgibbs.data.kin import read_kin
from mmgibbs.data.phenotypes import Phenotypes, cells_as_text, read_phenotypes
from mmgibbs.data.random import RandomTerms
from mmgibbs.data.record_checks import refuse_rounded_ids
from mmgibbs.data.responses import response_columns
from mmgibbs.data.traits import Records, read_records
from mmgibbs.errors import DataError, ModelError
from mmgibbs.pedigree.problems import Problems


def collect_problems(analysis: Analysis, first: DataError, table: Phenotypes | None = None) -> DataError:
    """Return the error with all problems. first: the one that was found first; table: the phenotypes, where read."""
    problems = Problems()
    phenotypes = None
    with problems.collect(DataError):
        phenotypes = read_phenotypes(analysis.data) if table is None else table
    records = None
    if phenotypes is not None:
        phenotypes = replace(phenotypes, interactions=interactions_of_columns(analysis))
        with problems.collect(DataError):
            refuse_rounded_ids(analysis, phenotypes)
        records = _read_traits(analysis, phenotypes, problems)
        _read_effects(analysis, records, problems)
        _read_genotypes(analysis, problems)
        for question in phenotypes.may_lack_mark.values():
            problems.ask(f"{phenotypes.name}: {question}")
    else:
        _read_pedigree_alone(analysis, problems)
    if not any(_has_text(str(first), text) or _has_text(text, str(first)) for text in problems.texts):
        problems.texts = [str(first), *problems.texts]
    problems.sort_by_file()
    return DataError(problems.describe())


def _has_text(text: str, part: str) -> bool:
    """Check whether a text has a part, in a numbered list too, whose lines are indented."""
    return "\n".join(map(str.strip, part.split("\n"))) in "\n".join(map(str.strip, text.split("\n")))


def _read_traits(analysis: Analysis, phenotypes: Phenotypes, problems: Problems) -> Records:
    """Read trait by trait, and return the records; of a trait that cannot be read, those without a missing value."""
    observed = np.ones((len(phenotypes), len(analysis.traits)), bool)
    for i, trait in enumerate(analysis.traits):
        with problems.collect(DataError, ModelError):
            columns = [c for c, _ in response_columns(trait) if c in phenotypes.frame.columns]
            absent = ["", *phenotypes.missing, *trait.missing]
            texts = [cells_as_text(phenotypes.frame[c], phenotypes.name) for c in columns]
            if texts:
                observed[:, i] = np.any([~text.is_in(absent).fill_null(True).to_numpy() for text in texts], axis=0)
            read = read_records(analysis.model_copy(update={"traits": (trait,)}), phenotypes)
            observed[:, i] = np.isin(phenotypes.rows, read.phenotypes.rows)
    used = np.asarray(observed.any(axis=1))
    observed = observed[used]
    ones = np.ones(len(analysis.traits))
    return Records(
        phenotypes.keep(used), np.where(observed, 1.0, np.nan), observed, np.ones(len(observed)), ones, ones,
        len(phenotypes), (),
    )  # fmt: skip


def _read_effects(analysis: Analysis, records: Records, problems: Problems) -> None:
    for part in _fixed_effects_one_by_one(analysis):
        with problems.collect(DataError, ModelError):
            read_fixed_effects(part, records)
    kin = None
    with problems.collect(DataError, ModelError):
        kin = read_kin(analysis, records, problems)
    for name, random in analysis.model.random.items():
        relationship = random.relationship
        if relationship.of_genotypes or (relationship.needs_pedigree and kin is None):
            continue
        with problems.collect(DataError, ModelError):
            RandomTerms(analysis, records.phenotypes, records.observed, kin, None).build(name)


def _read_genotypes(analysis: Analysis, problems: Problems) -> None:
    """Read the file of the genotypes; whether its animals are those of other tables is not asked."""
    section = analysis.data.genotypes
    if section is not None:
        with problems.collect(DataError):
            open_genotypes(section)


def _fixed_effects_one_by_one(analysis: Analysis) -> Iterator[Analysis]:
    """The analysis with one of its fixed effects each time."""
    for name, fixed in analysis.model.fixed.items():
        model = analysis.model.model_copy(update={"fixed": {name: fixed}})
        yield analysis.model_copy(update={"model": model})


def _read_pedigree_alone(analysis: Analysis, problems: Problems) -> None:
    """Read the pedigree of records that cannot be read."""
    nothing = Phenotypes(pl.DataFrame(), (), "", np.empty(0, np.int64), ())
    n_traits = len(analysis.traits)
    values, ones = np.empty((0, n_traits)), np.ones(n_traits)
    with problems.collect(DataError, ModelError):
        read_kin(analysis, Records(nothing, values, values > 0, np.empty(0), ones, ones, 0, ()), problems)
