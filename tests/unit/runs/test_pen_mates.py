"""Whole runs of models with several levels per record: a binary trait, repeated records, cross-validation."""

import numpy as np
import polars as pl
import pytest

import mmgibbs

PENS, SIZE = 16, 4


@pytest.fixture(scope="module")
def tables():
    rng = np.random.default_rng(2)
    animals = [f"a{i}" for i in range(20 + PENS * SIZE)]
    parents = [("0", "0")] * 20 + [(f"a{rng.integers(10)}", f"a{10 + rng.integers(10)}") for _ in animals[20:]]
    pedigree = pl.DataFrame({"animal": animals, "sire": [s for s, _ in parents], "dam": [d for _, d in parents]})
    order = rng.permutation(animals[20:]).reshape(PENS, SIZE)
    rows = []
    for pen, members in enumerate(order):
        for animal in members:
            mates = [m for m in members if m != animal]
            for _ in range(2):
                gain = 10 + rng.normal()
                rows.append((animal, f"p{pen}", f"s{pen % 2}", *mates, gain, int(gain > 10)))
    columns = ["animal", "pen", "side", "m1", "m2", "m3", "gain", "ill"]
    return pl.DataFrame(rows, schema=columns, orient="row"), pedigree


def analysis(tables, traits, social, **more):
    records, pedigree = tables
    effects = {"direct": {"level": "animal"}, "social": social}
    random = {"genetic": {"relationship": "pedigree", "effects": effects}, "companion": {"level": ["m1", "m2", "m3"]}}
    return {
        "name": "pens",
        "data": {"phenotypes": records, "pedigree": pedigree},
        "traits": traits,
        "model": {"fixed": {"side": {}}, "random": random},
        "sampler": {"chains": 1, "burn_in": 20, "samples": 40, "thin": 2, "seed": 3},
    } | more


def test_a_binary_trait_has_an_incidence_and_a_heritability_of_the_records(tables, tmp_path):
    """Effects of companions are no classes of which records are drawn anew: a record has three of them."""
    asked = analysis(tables, {"ill": {"type": "binary"}}, {"level": {"group": "pen"}})
    asked["model"]["fixed"] = {}
    result = mmgibbs.run(asked, directory=tmp_path / "run", progress=False)
    values = dict(result.summary.select("parameter", "mean").iter_rows())
    assert 0 < values["incidence[ill]"] < 1 and 0 < values["h2_observed[ill]"] < values["h2[ill]"]
    assert "total_h2[ill]" in values


def test_two_records_of_an_animal_are_warned_of_though_its_mates_are_an_effect(tables):
    asked = analysis(tables, ["gain"], {"level": {"group": "pen"}})
    said = " ".join(mmgibbs.check(asked)["warnings"])
    assert "64 of 64 animals (column 'animal') have several records" in said


def test_check_says_how_many_levels_a_record_meets_at_most(tables):
    """Of a term with the animal itself and its three mates the mates count."""
    counts = mmgibbs.check(analysis(tables, ["gain"], {"level": {"group": "pen"}}))
    kinds = {term["term"]: term["kind"] for term in counts["terms"]}
    assert kinds["genetic"] == "random, pedigree, 2 x 2, up to 3 levels per record"
    assert kinds["companion"] == "random, identity, 1 x 1, up to 3 levels per record"


def test_cross_validation_knows_the_mates_of_the_records_left_out(tables, tmp_path):
    """What mates do to others is no part of the prediction by breeding values alone, and other records inform on it."""
    variances = {"mode": "fixed", "genetic": [[0.3, 0.0], [0.0, 0.1]], "companion": 0.1, "residual": 0.6}
    asked = analysis(tables, ["gain"], {"level": {"group": "pen"}}, variances=variances)
    asked["sampler"] = {"method": "blup"}
    found = mmgibbs.validate(asked, plan=mmgibbs.ValidationPlan("kfold", folds=3), output=tmp_path / "folds")
    assert any("genetic social" in note and "companion" in note for note in found.info["notes"]), found.info
