"""The pedigree of an analysis: whether it is used, how it is read, and animals of the records that it lacks."""

from __future__ import annotations

import numpy as np
import polars as pl

from mmgibbs.config import Analysis
from mmgibbs.data.animal_ids import name_keys
from mmgibbs.data.dates import birth_years
from mmgibbs.data.phenotypes import Phenotypes
from mmgibbs.data.random import ANIMAL_COLUMNS, animal_column, ids_with_records, takes_parents
from mmgibbs.data.relationships import Kin
from mmgibbs.data.traits import Records
from mmgibbs.errors import DataError
from mmgibbs.pedigree.errors import PedigreeError, TableError, UnknownColumns
from mmgibbs.pedigree.parents import are_unlike
from mmgibbs.pedigree.problems import Problems
from mmgibbs.pedigree.read import ParentGroups, Pedigree, read_pedigree
from mmgibbs.pedigree.spelling import find_respelled, find_similar
from mmgibbs.pedigree.tables import agreeing, counted, quoted

SHOWN_LEVELS = 10  # ids named one by one
_MAX_SHARE_UNKNOWN = 0.1  # of the parents of the animals of late birth years


def uses_pedigree(analysis: Analysis, records: Records) -> bool:
    """Check whether an effect needs the pedigree that is given."""
    random = analysis.model.random
    needed = any(r.relationship.needs_pedigree for r in random.values())
    return analysis.data.pedigree is not None and (needed or takes_parents(random, records.phenotypes))


def read_kin(analysis: Analysis, records: Records, problems: Problems | None = None) -> Kin | None:
    """The pedigree, where an effect needs it; problems: takes what is wrong in its rows, which is DataError else."""
    data, random = analysis.data, analysis.model.random
    specs = [r.relationship for r in random.values() if r.relationship.needs_pedigree]
    if data.pedigree is None or not uses_pedigree(analysis, records):
        return None
    in_rows = None if problems is None else Problems()
    try:
        pedigree = read_pedigree(
            data.pedigree,
            columns=None if data.pedigree_columns is None else dict(data.pedigree_columns.given),
            header=data.pedigree_header,
            separator=data.pedigree_widths or data.pedigree_separator,
            encoding=data.pedigree_encoding,
            problems=in_rows,
            unknown=tuple(data.unknown_parent),
            groups=ParentGroups() if data.groups is None else ParentGroups(data.groups.column, data.groups.parents),
            founders=ids_with_records(analysis, records.phenotypes, records.observed)
            if data.add_missing_animals
            else None,
            hermaphrodites=not all(spec.one_sex for spec in specs),
            more=tuple(column for spec in specs for column in spec.pedigree_columns.values()),
            name="pedigree" if isinstance(data.pedigree, pl.DataFrame) else None,
            recorded=lambda: ids_with_records(analysis, records.phenotypes, records.observed),
        )
        kin = Kin(pedigree, data)
        for spec in specs if data.groups is None or data.groups.effect != "metafounders" else ():
            kin.additive(spec)
    except UnknownColumns as error:
        needed = (
            "needed such names (case and punctuation do not count), or data.pedigree_columns: {id: COLUMN, "
            "sire: COLUMN, dam: COLUMN}, with sire: null in a pedigree without sires"
        )
        if not isinstance(data.pedigree, pl.DataFrame):
            needed += "; where the first line is an animal, data.pedigree_header: false"
        raise DataError(f"{error}\n{needed}") from None
    except (PedigreeError, TableError) as error:
        raise DataError(name_keys(str(error))) from None
    if problems is not None and in_rows is not None:
        for text in in_rows.texts:
            problems.add(name_keys(text))
    return kin


def find_recorded_ids(analysis: Analysis, records: Records, kin: Kin | None) -> pl.Series | None:
    """Ids of the animals with records as the pedigree writes them, None where no column is known to name them."""
    genomic = (
        r for r in analysis.model.random.values() if r.relationship.of_genotypes and not r.relationship.of_pedigree
    )
    levels = [m.level for m in analysis.model.markers.values()] + [
        column for r in genomic for e in r.effects.values() for column in e.id_columns
    ]
    named = next((level for level in levels if records.phenotypes.has(level)), None)
    column = named or animal_column(analysis.model.random, records.phenotypes)
    if column is None:
        return None
    ids = records.phenotypes.text(column, "level", analysis.data.unknown_parent)
    return ids if kin is None else kin.pedigree.spelled(ids)


def warn_of_strangers(analysis: Analysis, records: Records, kin: Kin | None) -> tuple[str, ...]:
    """A warning where animals of the records were added to the pedigree that it has in another spelling, or most of
    them: then their ids are hardly written alike.
    """
    if kin is None or not analysis.data.add_missing_animals:
        return ()
    pedigree, named = kin.pedigree, ids_with_records(analysis, records.phenotypes, records.observed)
    known = np.asarray(pedigree.row) >= 0
    for parent in (pedigree.sire, pedigree.dam):
        known[parent[(parent >= 0) & (parent < known.size)]] = True  # of these it knows the progeny
    codes = pedigree.codes(named)
    strange = named.filter(pl.Series(~known).gather(codes.fill_null(0)) | codes.is_null())
    if not len(strange):
        return ()
    known_ids = pedigree.ids.filter(pl.Series(known))
    respelled = find_respelled(strange, known_ids)
    if not respelled.height:
        respelled = find_similar(strange, known_ids)
    start = (
        f"data.add_missing_animals: {len(strange):,} of the {len(named):,} animals with records "
        f"{agreeing(len(strange), 'is')} not in the pedigree and {agreeing(len(strange), 'was')} added without "
        "parents, with unknown relationships"
    )
    if respelled.height:
        text, animal, _ = respelled.row(0)
        return (
            f"{start}; the pedigree has {respelled.height:,} of them in another spelling, such as {quoted(animal)} for "
            f"{quoted(text)}: write each id in one way",
        )
    if 2 * len(strange) <= len(named):
        odd = strange.filter(pl.Series(are_unlike(strange, known_ids)))
        if not len(odd):
            return ()
        names = ", ".join(quoted(i) for i in odd.head(SHOWN_LEVELS))
        return (
            f"{start}: {names} {agreeing(len(odd), 'is')} unlike the other ids. Where it means an unknown animal, "
            "add it to data.unknown_parent",
        )
    example = quoted(pedigree.ids[int(np.flatnonzero(known)[0])])
    return (f"{start}. Are ids written in the same way? Records have {quoted(strange[0])}, the pedigree {example}",)


def trend_notes(pedigree: Pedigree) -> list[str]:
    """Say where unknown parents of late birth years draw a trend towards 0: nothing where few are, or with groups.

    An unknown parent is an animal of the base population, whose mean is 0, in whatever year its progeny are born.
    """
    if pedigree.birth is None or pedigree.groups:
        return []
    years = birth_years(pl.Series(pedigree.birth, nan_to_null=True))
    if years.drop_nulls().n_unique() < 2:
        return []
    first, last = int(years.min()), int(years.max())  # type: ignore[arg-type]
    is_late = (years > (first + last) / 2).fill_null(False).to_numpy()
    lacks = np.stack([pedigree.sire[is_late] < 0, pedigree.dam[is_late] < 0])
    if lacks.mean() <= _MAX_SHARE_UNKNOWN:
        return []
    return [
        f"{100 * lacks.mean():.0f} % of the parents of animals born after {(first + last) // 2} are unknown "
        f"({counted(int(lacks.any(axis=0).sum()), 'animal', 'lacks')} one or both, of {lacks.shape[1]:,}). They count "
        "as animals of the base population, whose mean is 0, which draws a genetic trend towards 0; groups of unknown "
        "parents (data.groups, effect: random, fixed or metafounders) say where they come from"
    ]


def warn_of_unused_pedigree(analysis: Analysis, phenotypes: Phenotypes, kin: Kin | None) -> tuple[str, ...]:
    """A warning where a pedigree is given that no effect uses, with what uses it."""
    if kin is not None or analysis.data.pedigree is None:
        return ()
    column = next((c for c in ANIMAL_COLUMNS if c in phenotypes.columns), "COLUMN")
    write = f"model.random.genetic: {{level: {column}, relationship: pedigree}}"
    if "genetic" in analysis.model.random:
        write = "relationship: pedigree in model.random.genetic"
    if analysis.data.genotypes is not None:
        write += ", or a term with relationship: single_step, which has the genotypes too"
    return (
        "data.pedigree: the pedigree is not read, as no effect has `relationship: pedigree` or takes its sires or "
        f"dams from it; for breeding values by the pedigree write {write}",
    )
