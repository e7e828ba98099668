"""What is said of the genetic trend before it is sampled."""

import polars as pl
import pytest

from mmgibbs.build.trends import trend_notes
from mmgibbs.pedigree.read import ParentGroups, read_pedigree


def tables(unknown, groups=False, births=True):
    """Ten years of 20 animals; so many of each later year have no sire."""
    rows = []
    for year in range(2000, 2010):
        for i in range(20):
            sire, dam = (f"a{year - 1}-{i % 5}", f"a{year - 1}-{5 + i % 10}") if year > 2000 else (None, None)
            rows.append((f"a{year}-{i}", None if i < unknown else sire, dam, year, f"g{year // 5}"))
    columns = ["animal", "sire", "dam", *(["birth"] if births else []), *(["origin"] if groups else [])]
    return pl.DataFrame(rows, ["animal", "sire", "dam", "birth", "origin"], orient="row").select(columns)


@pytest.mark.parametrize(
    ("unknown", "options", "said"),
    [(8, {}, True), (3, {}, False), (8, {"births": False}, False), (8, {"groups": True}, False)],
)
def test_unknown_parents_of_late_years_are_said(unknown, options, said):
    group = "origin" if options.get("groups") else None
    pedigree = read_pedigree(tables(unknown, **options), groups=ParentGroups(group))
    years = None if pedigree.birth is None else pl.Series(pedigree.birth).cast(pl.Int64)
    notes = trend_notes(pedigree, years)
    assert len(notes) == said
    if said:
        assert notes[0].startswith("20 % of the parents of animals born after 2004 are unknown. They count as animals")
