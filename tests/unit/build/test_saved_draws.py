"""The size of draws of levels is said before they are made."""

import polars as pl
import pytest

import mmgibbs


@pytest.mark.parametrize(("samples", "megabytes"), [(40_000, 16), (4_000, None)])
def test_check_says_how_large_the_kept_draws_are(samples, megabytes):
    """8 bytes x 2 chains x samples / thin x 100 levels x 1 component."""
    ids = [f"a{i}" for i in range(100)]
    records = pl.DataFrame({"animal": ids, "weight": [float(i % 7) for i in range(100)]})
    pedigree = pl.DataFrame({"id": ids, "sire": [""] * 100, "dam": [""] * 100})
    analysis = {
        "data": {"phenotypes": records, "pedigree": pedigree},
        "traits": {"weight": {}},
        "model": {"random": {"genetic": {"level": "animal", "relationship": "pedigree"}}},
        "sampler": {"chains": 2, "samples": samples, "thin": 4},
        "output": {"save_levels": {"genetic": "all"}},
    }
    notes = [note for note in mmgibbs.check(analysis)["notes"] if note.startswith("output.save_levels")]
    expected = f"output.save_levels: {2 * samples // 4:,} draws of 100 levels take {megabytes} MB of draws.nc"
    assert notes == ([] if megabytes is None else [expected])


@pytest.mark.parametrize("method", ["reml", "blup"])
def test_a_method_without_draws_says_that_it_keeps_none(tmp_path, method):
    records = pl.DataFrame(
        {"herd": [f"h{i % 5}" for i in range(60)], "weight": [float(i % 7 + i % 5) for i in range(60)]}
    )
    analysis = {
        "data": {"phenotypes": records},
        "traits": ["weight"],
        "model": {"random": {"herd": {}}},
        "variances": {"mode": "fixed", "herd": 1, "residual": 4} if method == "blup" else {},
        "sampler": {"method": method},
        "output": {"save_levels": ["herd"]},
    }
    result = mmgibbs.run(analysis, directory=tmp_path / "run", progress=False)
    for notes in (mmgibbs.check(analysis)["notes"], result.info["notes"]):
        (note,) = (note for note in notes if note.startswith("output.save_levels"))
        assert f"method: {method} draws nothing, so there are no draws of herd" in note
    without = mmgibbs.run(analysis | {"output": {}}, directory=tmp_path / "without", progress=False)
    assert not any("save_levels" in note for note in without.info["notes"])
