"""Candidates are ranked by total breeding values where SNPs have effects: against the draws that the run keeps."""

import numpy as np
import polars as pl
import pytest
from helpers.single_step_herd import N, analysis, covariances, data  # noqa: F401  data is a fixture
from reference.decisions import from_draws

import mmgibbs
from mmgibbs.errors import ConfigError
from mmgibbs.posterior.decisions import DecisionCounts
from mmgibbs.sampler.markers.totals import DecisionsWithMarkers

DRAWS = 60
SAMPLER = {"chains": 2, "burn_in": 10, "samples": DRAWS, "thin": 1, "seed": 3}


@pytest.fixture(autouse=True)
def short_batches(monkeypatch):
    monkeypatch.setattr("mmgibbs.posterior.decisions.LONG_ENOUGH", 1)
    monkeypatch.setattr("mmgibbs.runs.local.cores", lambda: 1)


def wanted(data, path, section=None, decisions=None, random=None, saved=("genetic",)):  # noqa: F811
    model = {
        "random": random or {"genetic": {"level": "animal", "relationship": "pedigree"}},
        "markers": {"snps": section or {"single_step": "none", "without_genotypes": "keep"}},
    }
    output = {"directory": str(path), "save_levels": list(saved), "save_marker_draws": 2 * DRAWS}
    more = {"model": model, "variances": {}, "sampler": SAMPLER, "output": output}
    return analysis(data, path, None, **more) | {
        "decisions": {"top": [5, 20], "index": {"less": {"milk": -2}}} | (decisions or {})
    }


def run(*arguments, **options):
    return mmgibbs.run(wanted(*arguments, **options), overwrite=True, progress=False)


def parts(found, data, level):  # noqa: F811
    """(chains, draws, animals) of the random effect, of the SNPs and of J, from draws and columns."""
    names = [f"a{i}" for i in range(N)]
    posterior = found.draws["/posterior"]
    own = posterior["genetic"].sel(genetic_level=level).to_numpy()[..., 0]
    effects = np.load(found.directory / "marker_draws.npz")["effects.0"].astype(float)
    _, columns, _, j = covariances(data)
    at = [names.index(i) for i in level]
    on_j = posterior["J"].to_numpy()[..., 0, :] * j[at] if "J" in posterior else 0.0
    return own, np.einsum("cdj,aj->cda", effects, columns[at]), on_j


def differences(found, scores_of):
    """What in decisions.parquet is not what these scores say; scores_of(levels)."""
    out = []
    for criterion, weight in (("milk", 1.0), ("less", -2.0)):
        rows = found.decisions.filter(criterion=criterion)
        selected = found.response.filter(criterion=criterion)["selected"].to_list()
        stored = from_draws(weight * scores_of(rows["level"].to_list()), selected, "0.9", 1)
        for name in ("mean", "sd"):
            if not np.allclose(rows[name], stored[name], rtol=1e-4, atol=1e-5):
                out.append(f"{criterion} {name}")
        if np.abs(rows["p_top_20"].to_numpy() - stored[selected[1]]["p"]).max() > 0.5 / DRAWS:
            out.append(f"{criterion} p_top_20")
        if np.abs(rows["rank_median"].to_numpy() - stored["rank_median"]).max() > 1:
            out.append(f"{criterion} rank")
    return out


def test_ranks_are_of_pedigree_and_snps_together(data, tmp_path):  # noqa: F811
    found = run(data, tmp_path)
    assert differences(found, lambda level: sum(parts(found, data, level))) == []
    genotyped = {f"a{i}" for i in data[3][2]}
    assert set(found.decisions["level"]) == genotyped
    warning = f"not candidates, without genotypes: {N - len(genotyped)} animals"
    assert any(warning in text for text in found.info["warnings"])
    total = found.solutions.filter(effect="total").join(found.decisions.filter(criterion="milk"), on="level")
    assert total.height == len(genotyped)
    np.testing.assert_allclose(total["mean"], total["mean_right"], rtol=1e-9)
    # by one of the parts alone everything is another
    for part in (0, 1):
        assert len(differences(found, lambda level, part=part: parts(found, data, level)[part])) >= 4


def test_the_random_effect_alone_is_seen(data, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.setattr(DecisionsWithMarkers, "levels", DecisionCounts.levels)
    spoiled = run(data, tmp_path)
    assert differences(spoiled, lambda level: sum(parts(spoiled, data, level)))


def test_predicted_genotypes_what_they_leave_and_j(data, tmp_path):  # noqa: F811
    found = run(data, tmp_path, {"single_step": "epsilon"}, saved=("genetic", "J"))
    assert differences(found, lambda level: sum(parts(found, data, level))) == []
    recorded = {f"a{i}" for i in range(16, N)} | {f"a{i}" for i in data[3][2]}
    assert set(found.decisions["level"]) == recorded
    without_j = differences(found, lambda level: sum(parts(found, data, level)[:2]))
    assert "milk mean" in without_j and "milk p_top_20" in without_j


def test_a_run_in_pieces(data, tmp_path):  # noqa: F811
    whole = run(data, tmp_path / "whole", {"single_step": "epsilon"})
    short = wanted(data, tmp_path / "pieces", {"single_step": "epsilon"})
    short["sampler"] = SAMPLER | {"samples": 25}
    mmgibbs.run(short, overwrite=True, progress=False)
    again = mmgibbs.run(short, extend=DRAWS - 25, progress=False)
    np.testing.assert_allclose(again.decisions["mean"], whole.decisions["mean"], rtol=1e-12)
    totals = [found.solutions.filter(effect="total") for found in (whole, again)]
    for name in ("mean", "sd", "reliability"):  # batches are planned for other lengths: sums round elsewhere
        np.testing.assert_allclose(totals[1][name], totals[0][name], rtol=1e-9)
    for name in ("level", "rank_low", "p_top_5"):
        np.testing.assert_array_equal(again.decisions[name], whole.decisions[name])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"decisions": {"candidates": ["a1", "a3"]}}, "candidates: found 'a1' without genotypes"),
        ({"random": {"genetic": {"level": "sire", "relationship": "pedigree"}}},
         r"SNP effects \(model.markers.snps\) on milk, which cannot be added to genetic to give breeding"),
    ],
)  # fmt: skip
def test_what_has_no_total(data, tmp_path, change, words):  # noqa: F811
    given = wanted(data, tmp_path, **change)
    if "random" in change:
        pedigree = data[1].rename({"id": "animal"})
        given["data"]["phenotypes"] = data[0].join(pedigree, on="animal").filter(pl.col("sire").is_not_null())
    with pytest.raises(ConfigError, match=words):
        mmgibbs.run(given, overwrite=True, progress=False)
