"""Probabilities of categories for every animal: the mean over draws of Phi, not Phi of the mean."""

import numpy as np
import polars as pl
import pytest
from helpers.other_traits import MATERNAL, draws_of, tables
from scipy import stats

import mmgibbs
from mmgibbs.errors import ConfigError

TRAITS = {"alive": {"type": "binary"}, "score": {"type": "ordinal"}, "cases": {"type": "count", "exposure": "months"}}
ANIMAL = {"genetic": {"level": "animal", "relationship": "pedigree"}}


def config(path, traits, asked, random=None, samples=30, **sampler):
    phenotypes, pedigree = tables()
    return {
        "name": "probabilities",
        "data": {"phenotypes": phenotypes, "pedigree": pedigree},
        "traits": {t: TRAITS[t] for t in traits},
        "model": {"intercept": True, "random": random or ANIMAL},
        "variances": {"genetic": {"prior": {"half_t": {"scale": 1}}}},
        "sampler": {"chains": 2, "burn_in": 10, "samples": samples, "thin": 1, "seed": 4, **sampler},
        "output": {"directory": str(path), "save_levels": ["intercept", "genetic"], "probabilities": list(asked)},
    }


def run(path, *arguments, **options):
    return mmgibbs.run(config(path, *arguments, **options), overwrite=True, progress=False)


@pytest.fixture(scope="module")
def all_three(tmp_path_factory):
    return run(tmp_path_factory.mktemp("three") / "run", TRAITS, TRAITS)


def rows(found, trait, effect=None):
    frame = found.solutions.filter(term="genetic", trait=trait)
    return frame if effect is None else frame.filter(effect=effect)


def per_draw(d, trait, component):
    """(chains, draws, animals): mu + u_i of every animal in every draw."""
    at = list(TRAITS).index(trait)
    return d["intercept"][..., 0, at][..., None] + d["genetic"][..., component]


def test_categories(all_three):
    d = draws_of(all_three)
    liability, t = per_draw(d, "score", 1), d["threshold[score:2|3]"][..., None]
    below = [0 * liability, stats.norm.cdf(-liability), stats.norm.cdf(t - liability), 1 + 0 * liability]
    p = np.diff(below, axis=0)
    for k in range(3):
        found = rows(all_three, "score")
        np.testing.assert_allclose(found[f"probability[{k + 1}]"], p[k].mean(axis=(0, 1)), rtol=1e-9)
        np.testing.assert_allclose(
            found[f"probability_sd[{k + 1}]"], p[k].reshape(-1, found.height).std(0, ddof=1), rtol=1e-9
        )
    alive = rows(all_three, "alive")
    assert alive["probability[2]"].null_count() == alive.height  # of another trait


def test_counts_at_an_exposure_of_1(all_three):
    d = draws_of(all_three)
    rate = per_draw(d, "cases", 2) + d["residual.var[cases]"][..., None] / 2
    np.testing.assert_allclose(rows(all_three, "cases")["expected_count"], np.exp(rate).mean(axis=(0, 1)), rtol=1e-9)


def test_other_effects_of_the_animal_are_averaged_over(tmp_path):
    """Maternal effects vary around the mean: v = their variance + 1."""
    found = run(tmp_path / "run", ["alive"], ["alive"], MATERNAL)
    d = draws_of(found)
    used, mother = tables()[0]["alive"].is_not_null(), tables()[0]["mother"]
    share = (used & mother.is_not_null()).sum() / used.sum()  # of the records meet a maternal effect
    v = 1 + share * d["genetic.var[maternal:alive]"][..., None]
    p = stats.norm.cdf((d["intercept"][..., 0] + d["genetic"][..., 0]) / np.sqrt(v)).mean(axis=(0, 1))
    np.testing.assert_allclose(rows(found, "alive", "direct")["probability[1]"], p, rtol=1e-9)
    assert rows(found, "alive", "maternal")["probability[1]"].null_count() == 90


def test_a_run_in_pieces_has_the_same_probabilities(tmp_path):
    whole = run(tmp_path / "whole", ["alive"], ["alive"], samples=30)
    run(tmp_path / "pieces", ["alive"], ["alive"], samples=12)
    pieces = mmgibbs.run(
        config(tmp_path / "pieces", ["alive"], ["alive"], samples=12), extend=18, progress=False
    )  # fmt: skip
    np.testing.assert_array_equal(rows(pieces, "alive")["probability[1]"], rows(whole, "alive")["probability[1]"])
    np.testing.assert_array_equal(*(draws_of(found)["h2_observed[alive]"] for found in (pieces, whole)))
    classes = [pl.read_parquet(found.directory / "predicted_classes.parquet") for found in (pieces, whole)]
    assert classes[0].equals(classes[1]) and classes[0]["level"].to_list() == ["all records"] * 2


@pytest.mark.parametrize(
    ("asked", "random", "said"),
    [
        ("alife", None, "output.probabilities: 'alife' is not a trait; did you mean 'alive'?"),
        ("weight", None, "found weight, whose type is normal; needed a binary, ordinal or count trait: alive"),
        ("alive", {"herd": {}}, "found no such effect of alive; needed an effect of the animal itself"),
    ],
)
def test_what_is_refused(tmp_path, asked, random, said):
    wanted = config(tmp_path / "run", ["alive"], [asked])
    wanted["data"]["phenotypes"] = wanted["data"]["phenotypes"].with_columns(pl.lit(1.5).alias("weight"))
    wanted["traits"]["weight"] = {}
    wanted["output"]["save_levels"], wanted["variances"] = [], {}
    if random:
        wanted["model"]["random"] = random
        del wanted["traits"]["weight"]
    with pytest.raises(ConfigError) as caught:
        mmgibbs.run(wanted, overwrite=True, progress=False)
    assert said in str(caught.value)


INDEX = {
    "merit": {"alive": 2.0, "probability[alive]": 500.0, "probability[score:3]": -200.0, "expected_count[cases]": -80.0}
}


def with_index(path, index):
    wanted = config(path, TRAITS, TRAITS)
    wanted["traits"]["score"] = {"type": "ordinal", "categories": [1, 2, 3]}
    return wanted | {"decisions": {"index": index, "top": [10]}}


def test_an_index_weighs_probabilities(tmp_path):
    """The mean score is the weighted sum of what the solutions have."""
    found = mmgibbs.run(with_index(tmp_path / "run", INDEX), overwrite=True, progress=False)
    of = lambda trait, column: rows(found, trait).select("level", column)
    table = of("alive", "mean").rename({"mean": "u"}).join(of("alive", "probability[1]"), on="level")
    table = table.join(of("score", "probability[3]"), on="level").join(of("cases", "expected_count"), on="level")
    exact = table.select(
        "level",
        merit=2 * pl.col("u")
        + 500 * pl.col("probability[1]")
        - 200 * pl.col("probability[3]")
        - 80 * pl.col("expected_count"),
    )
    both = found.decisions.filter(criterion="merit").join(exact, on="level")
    np.testing.assert_allclose(both["mean"], both["merit"], rtol=1e-9)
    assert found.info["decisions"]["criteria"]["merit"]["probability[score:3]"] == -200.0


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("probability[score]", "score is ordinal, needed probability[score:CATEGORY]"),
        ("probability[cases]", "cases is count, needed expected_count[cases]"),
        ("probability[alife]", "'alife' is not a trait; did you mean 'alive'?"),
        ("probability[score:7]", "decisions.index: probability[score:7]"),
    ],
)
def test_what_an_index_cannot_weigh(tmp_path, name, said):
    with pytest.raises(ConfigError) as caught:
        mmgibbs.run(with_index(tmp_path / "run", {"merit": {name: 1.0}}), overwrite=True, progress=False)
    assert said in str(caught.value)
