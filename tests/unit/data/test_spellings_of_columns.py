"""Every key that names a column of classes: levels that differ in their spelling alone are warned of, once."""

import numpy as np
import polars as pl
import pytest

from mmgibbs.data.environments import load_analysis
from mmgibbs.data.prepare import prepare

AR1 = {"kind": "ar1", "time": "day", "within": "site"}


def records():
    """Sites North and South, one of them in two spellings; places in time and in a field, animals in pens."""
    rng = np.random.default_rng(1)
    n = 48
    site = np.array(["North", "north", "South"])[np.arange(n) % 3]
    return pl.DataFrame(
        {
            "site": site,
            "herd": [f"h{i % 4}" for i in range(n)],
            "animal": [f"a{i}" for i in range(n)],
            "day": np.arange(n) // 3 + 1.0,
            "row": np.arange(n) // 12 + 1,
            "column": np.arange(n) // 3 % 4 + 1,
            "x": rng.standard_normal(n),
            "y": rng.standard_normal(n),
        }
    )


def source(random=None, fixed=None, residual=None, traits=None, **data):
    return {
        "data": {"phenotypes": records()} | data,
        "traits": traits or ["y"],
        "model": {"random": random or {}, "fixed": fixed or {}},
        "variances": {"residual": residual or {}},
        "sampler": {"method": "reml"},
    }


def of_term(**keys):
    return {"random": {"e": keys}}


KEYS = {
    "traits": {"traits": {"y": {"by": "site"}}},
    "traits where": {"traits": {f"y{s}": {"column": "y", "where": {"site": s}} for s in ("North", "north", "South")}},
    "model.fixed.site": {"fixed": {"site": {}}},
    "model.fixed.herd:site": {"fixed": {"herd:site": {}}},
    "model.fixed.x.by": {"fixed": {"x": {"kind": "covariate", "by": "site"}}},
    "model.random.site": {"random": {"site": {}}},
    "model.random.herd:site": {"random": {"herd:site": {}}},
    "model.random.e": of_term(levels=["site", "herd"]),
    "model.random.e.effects.mates.level.group": {
        "random": {
            "e": {"effects": {"own": {"level": "animal"}, "mates": {"level": {"group": "site", "of": "animal"}}}}
        }
    },
    "variances.residual.by": {"residual": {"by": "site"}},
    "variances.residual.relationship.within": {"residual": {"relationship": AR1}},
    "variances.residual.classes.h0.relationship.within": {
        "residual": {"by": "herd", "classes": {"h0": {"relationship": AR1}}},
    },
    "model.random.e.relationship.within": of_term(relationship=AR1),
    "model.random.e.relationship.within field": of_term(
        relationship={"kind": "ar1", "row": "row", "column": "column", "within": "site"}
    ),
    "model.random.e.relationship.within walk": of_term(
        relationship={"kind": "random_walk", "of": "day", "within": "site", "order": 1}
    ),
    "model.random.e.relationship.within curve": of_term(relationship={"kind": "spline", "of": "day", "within": "site"}),
    "model.random.e.relationship.within surface": of_term(
        relationship={"kind": "spline", "row": "row", "column": "column", "part": "surface", "within": "site"}
    ),
}


@pytest.mark.parametrize("key", KEYS)
def test_two_spellings_are_warned_of_once(key):
    said = [w for w in prepare(load_analysis(source(**KEYS[key]))).warnings if "differ only" in w]
    (warning,) = said
    assert "levels of column 'site' differ only in how they are written" in warning
    assert "'North' (16 records) and 'north' (16 records)" in warning
    assert f" {key.split()[0]}: " in warning


def test_groups_of_parents_are_warned_of():
    animals = records()["animal"].to_list()
    pedigree = pl.DataFrame(
        {"id": animals, "sire": [None] * 48, "dam": [None] * 48, "group": ["G1", "g1", "G2", "G2"] * 12},
        schema_overrides={"sire": pl.String, "dam": pl.String},
    )
    analysis = source({"animal": {"relationship": "pedigree"}}, pedigree=pedigree, groups={"column": "group"})
    (warning,) = [w for w in prepare(load_analysis(analysis)).warnings if "differ only" in w]
    assert (
        warning.startswith("data.groups.column: groups differ only in how they are written")
        and "'G1' and 'g1'" in warning
    )


def test_similar_names_that_are_different_are_left_alone():
    names = np.array(["F1", "F2", "F11", "F1b"])[np.arange(48) % 4]
    analysis = source(traits={"y": {"by": "site"}}, residual={})
    analysis["data"]["phenotypes"] = records().with_columns(site=pl.Series(names))
    assert not [w for w in prepare(load_analysis(analysis)).warnings if "written" in w]


def test_codes_for_unknown_environments_are_warned_of():
    analysis = source(traits={"y": {"by": "site"}})
    analysis["data"]["phenotypes"] = records().with_columns(pl.col("site").replace({"north": "unknown"}))
    (warning,) = [w for w in prepare(load_analysis(analysis)).warnings if "may mean a missing value" in w]
    assert "traits: column 'site' has 1 level that may mean a missing value" in warning
