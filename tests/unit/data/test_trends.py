"""What is said of the genetic trend before it is sampled."""

import polars as pl
import pytest

import mmgibbs
from mmgibbs.data.kin import trend_notes
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
    notes = trend_notes(pedigree)
    assert len(notes) == said
    if said:
        who = "20 % of the parents of animals born after 2004 are unknown (40 animals lack one or both, of 100)"
        assert notes[0].startswith(f"{who}. They count as animals of the base population")
        assert "groups of unknown parents (data.groups, effect: random, fixed or metafounders)" in notes[0]


@pytest.mark.parametrize("method", ["gibbs", "reml", "blup"])
def test_every_method_says_so(method, tmp_path):
    kin = tables(8).drop("origin", strict=False)
    records = kin.select("animal", y=pl.int_range(kin.height) * 37 % 101)
    given = {"mode": "fixed", "genetic": 1, "residual": 2} if method == "blup" else {}
    checked = mmgibbs.check(
        {
            "name": "trend",
            "data": {"phenotypes": records, "pedigree": kin},
            "traits": ["y"],
            "model": {"fixed": {}, "random": {"genetic": {"level": "animal", "relationship": "pedigree"}}},
            "variances": given,
            "sampler": {"method": method},
        }
    )
    assert sum("draws a genetic trend towards 0" in note for note in checked["notes"]) == 1
