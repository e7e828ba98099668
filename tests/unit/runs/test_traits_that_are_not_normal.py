"""Runs with traits that are not normal: every type, alone and together, on every engine that takes them."""

import numpy as np
import polars as pl
import pytest
from helpers.estimates import assert_same_draws

import mmgibbs
from mmgibbs.errors import ConfigError, ModelError

SAMPLER = {"chains": 1, "burn_in": 30, "samples": 60, "thin": 1, "seed": 4}


def tables(n=120):
    """Records of five traits with one genetic value behind them, and their pedigree; (phenotypes, pedigree)."""
    rng = np.random.default_rng(12)
    founders = 20
    sire = np.where(np.arange(n) < founders, -1, rng.integers(0, founders // 2, n))
    dam = np.where(np.arange(n) < founders, -1, rng.integers(founders // 2, founders, n))
    u = np.zeros(n)
    for i in range(n):
        u[i] = rng.normal() if sire[i] < 0 else 0.5 * (u[sire[i]] + u[dam[i]]) + np.sqrt(0.5) * rng.normal()
    e = rng.normal(size=(n, 5))
    liability = 0.3 + 0.7 * u[:, None] + e
    time = np.exp(3 + 0.3 * liability[:, 2])
    ended = time < 30
    name = lambda code: [None if c < 0 else f"a{c}" for c in code]
    phenotypes = pl.DataFrame(
        {
            "animal": [f"a{i}" for i in range(n)],
            "herd": [f"h{i % 3}" for i in range(n)],
            "alive": np.where(liability[:, 0] > 0, "yes", "no"),
            "ease": np.array(["easy", "assisted", "difficult"])[np.searchsorted([0.0, 0.8], liability[:, 1])],
            "days": np.minimum(time, 30),
            "status": np.where(ended, "dead", "alive"),
            "cases": rng.poisson(np.exp(0.5 * liability[:, 3])),
            "months": rng.uniform(0.5, 2, n),
            "weight": 40 + 3 * liability[:, 4],
        }
    )
    pedigree = pl.DataFrame({"id": phenotypes["animal"], "sire": name(sire), "dam": name(dam)})
    return phenotypes, pedigree


TYPES = {
    "alive": {"type": "binary", "positive": "yes"},
    "ease": {"type": "ordinal", "categories": ["easy", "assisted", "difficult"]},
    "days": {
        "type": "censored",
        "log": True,
        "censored": "status",
        "values": {"right": ["alive"], "none": ["dead"]},
    },
    "cases": {"type": "count", "exposure": "months"},
    "weight": {},
}


def analysis(path, traits=tuple(TYPES), frame=None, variances=None, **sampler):
    phenotypes, pedigree = tables()
    return {
        "name": "types",
        "data": {"phenotypes": phenotypes if frame is None else frame, "pedigree": pedigree},
        "traits": {t: TYPES[t] for t in traits},
        "model": {"fixed": {"herd": {}}, "random": {"genetic": {"level": "animal", "relationship": "pedigree"}}},
        "variances": variances or {},
        "sampler": SAMPLER | sampler,
        "output": {"directory": str(path)},
    }


def run(path, *arguments, **options):
    return mmgibbs.run(analysis(path, *arguments, **options), overwrite=True, progress=False)


def finite(column):
    return column.is_not_null().all() and column.cast(pl.Float64).is_finite().all()


@pytest.fixture(scope="module")
def all_types(tmp_path_factory):
    return run(tmp_path_factory.mktemp("all") / "run")


def test_all_types_together(all_types):
    table = {row["parameter"]: row for row in all_types.summary.to_dicts()}
    assert table["residual.var[alive]"]["mean"] == table["residual.var[ease]"]["mean"] == 1.0
    assert table["residual.var[alive]"]["sd"] == 0.0
    assert 0 < table["threshold[ease:assisted|difficult]"]["mean"] < 3
    assert {f"h2[{t}]" for t in TYPES} <= set(table) and {"residual.cov[alive,ease]"} <= set(table)
    assert finite(all_types.summary["mean"]) and finite(all_types.solutions["mean"])
    facts = all_types.draws["sample_stats"]
    assert 0 <= float(facts["threshold_acceptance[ease]"].mean()) <= 1
    resolved = all_types.info["analysis"]["model"]["fixed"]["herd"]["prior"]
    assert resolved == {"variance": {"alive": 10.0, "ease": 10.0}}  # the default, written out


def test_engines_give_the_same_chain(tmp_path):
    assert_same_draws(
        run(tmp_path / "a", engine="serial", partition="colour", samples=10, burn_in=5),
        run(tmp_path / "b", engine="structured", samples=10, burn_in=5),
        rtol=1e-6,
        atol=1e-8,
    )


def test_exact_draws_take_liabilities(tmp_path):
    found = run(tmp_path / "run", ("alive", "weight"), engine="pcg", samples=20, burn_in=10)
    assert finite(found.summary["mean"])


@pytest.mark.parametrize("sampler", [{"engine": "hybrid"}, {"method": "blup"}])
def test_what_cannot_be_combined(tmp_path, sampler):
    held = {"mode": "fixed", "genetic": 0.5, "residual": 1} if "method" in sampler else None
    with pytest.raises((ConfigError, ModelError), match="cannot be combined with"):
        run(tmp_path / "run", ("alive",), variances=held, **sampler)


def test_a_run_in_pieces_is_a_run_in_one_go(tmp_path):
    """Liabilities, thresholds, the step of their walk and auxiliary variables are in the checkpoint."""
    whole = run(tmp_path / "whole", samples=60)
    run(tmp_path / "pieces", samples=25)
    config = analysis(tmp_path / "pieces", samples=25)
    assert_same_draws(whole, mmgibbs.run(config, extend=35, progress=False))


@pytest.mark.slow
def test_exact_draws_in_pieces_too(tmp_path):
    """The residuals that liabilities are drawn from are made anew alike in a chain that continues."""
    how = {"engine": "pcg", "burn_in": 5}
    whole = run(tmp_path / "whole", ("ease", "weight"), samples=16, **how)
    run(tmp_path / "pieces", ("ease", "weight"), samples=7, **how)
    config = analysis(tmp_path / "pieces", ("ease", "weight"), samples=7, **how)
    assert_same_draws(whole, mmgibbs.run(config, extend=9, progress=False))


def test_few_levels_have_a_posterior_under_the_default_prior(tmp_path):
    config = analysis(tmp_path / "run", ("alive",), samples=20)
    config["model"] = {"random": {"herd": {}}}
    assert finite(mmgibbs.run(config, overwrite=True, progress=False).summary["mean"])


@pytest.mark.parametrize(
    ("trait", "another_type"),
    [
        ("alive", {"type": "ordinal", "categories": ["no", "yes"]}),
        ("weight", {"type": "censored", "censored": "known", "values": {"none": ["exact"]}}),
    ],
)
def test_ordinal_with_two_categories_is_binary_and_censored_without_censoring_normal(tmp_path, trait, another_type):
    frame = tables()[0].with_columns(pl.lit("exact").alias("known"))
    other = analysis(tmp_path / "b", (trait,), frame) | {"traits": {trait: another_type}}
    assert_same_draws(run(tmp_path / "a", (trait,), frame), mmgibbs.run(other, overwrite=True, progress=False))


def test_narrow_intervals_are_normal_records(tmp_path):
    """Bounds a millionth of a unit apart: the same chain as the record itself, to the width of the interval."""
    frame = tables()[0].with_columns(
        (pl.col("weight") - 5e-7).alias("low"), (pl.col("weight") + 5e-7).alias("high"), weight=pl.lit(0.0)
    )
    trait = {"weight": {"type": "censored", "lower": "low", "upper": "high"}}
    short = {"samples": 20, "burn_in": 5, "precision": "double"}
    other = analysis(tmp_path / "b", ("weight",), frame, **short) | {"traits": trait}
    exact = run(tmp_path / "a", ("weight",), tables()[0], **short)
    found = mmgibbs.run(other, overwrite=True, progress=False)
    for name in ("genetic.var[weight]", "residual.var[weight]"):
        a, b = (r.draws["posterior"][name].to_numpy() for r in (exact, found))
        np.testing.assert_allclose(a, b, rtol=1e-4)


def test_fixed_variances_still_sample_thresholds_which_are_targets(tmp_path):
    stop = {"ess": 3, "parameters": ["threshold[*]"], "max_samples": 200}
    held = {"mode": "fixed", "genetic": 0.5}  # the residual variance can only be 1
    found = run(tmp_path / "run", ("ease",), variances=held, stop=stop)
    assert found.info["stop"]
    table = {row["parameter"]: row for row in found.summary.to_dicts()}
    assert table["h2[ease]"]["sd"] == 0.0 and table["threshold[ease:assisted|difficult]"]["sd"] > 0.0


def in_barns(traits, path, residual=None, **sampler):
    barn = np.where(np.arange(120) % 3 == 0, "loose", "tied")
    frame = tables()[0].with_columns(pl.Series("barn", barn))
    return analysis(path, traits, frame, {"residual": {"by": "barn"} | (residual or {})}, **sampler)


@pytest.mark.slow
def test_residual_classes_of_traits_in_categories(tmp_path):
    """R = 1 in the larger class, sampled in the other under a half-t; restarts are the same chain."""
    config = in_barns(("alive", "ease", "weight"), tmp_path / "whole", samples=40, burn_in=20)
    whole = mmgibbs.run(config, overwrite=True, progress=False)
    table = {row["parameter"]: row for row in whole.summary.to_dicts()}
    for trait in ("alive", "ease"):
        assert table[f"residual.var[{trait}|tied]"]["mean"] == 1.0 and table[f"residual.var[{trait}|tied]"]["sd"] == 0.0
        assert table[f"residual.var[{trait}|loose]"]["sd"] > 0.0
        assert f"h2[{trait}|loose]" in table
        assert f"residual_scale_acceptance[{trait}|loose]" in whole.draws["sample_stats"]
    assert whole.info["analysis"]["variances"]["residual"]["prior"] == {"half_t": {"df": 2.0, "scale": None}}
    pieces = in_barns(("alive", "ease", "weight"), tmp_path / "pieces", samples=15, burn_in=20)
    mmgibbs.run(pieces, overwrite=True, progress=False)
    assert_same_draws(whole, mmgibbs.run(pieces, extend=25, progress=False))


@pytest.mark.parametrize(
    ("residual", "said"),
    [
        ({"prior": "flat"}, r"variances.residual.classes.loose.prior: found flat for alive, of which 0 records"),
        ({"classes": {"tied": {"start": 2}}}, r"variances.residual.classes.tied.start: found 2 for alive, needed 1"),
        ({"classes": {"loose": {"prior": {"h2": "uniform"}}}}, r"variances.residual.classes.loose.prior.h2"),
    ],
)
def test_residual_classes_that_make_no_sense(tmp_path, residual, said):
    with pytest.raises((ConfigError, ModelError), match=said):
        mmgibbs.run(in_barns(("alive",), tmp_path / "run", residual), progress=False)


def test_a_half_t_prior_of_a_diagonal_matrix(tmp_path):
    found = run(tmp_path / "run", ("alive", "weight"), variances={"genetic": {"structure": "diagonal"}}, samples=20)
    assert found.info["analysis"]["variances"]["genetic"]["prior"] == {"half_t": {"df": 2.0, "scale": None}}
    assert finite(found.summary["mean"])


def test_a_flat_variance_of_a_binary_animal_model_is_refused(tmp_path):
    with pytest.raises(ModelError, match="the posterior does not exist.*h2: uniform"):
        run(tmp_path / "run", ("alive",), variances={"genetic": {"prior": "flat"}})


@pytest.mark.parametrize(
    "prior", [{"h2": "uniform"}, {"half_t": {}}, {"half_t": {"df": 3, "scale": 0.5}}, {"df": 4, "scale": 1}]
)
def test_priors(tmp_path, prior):
    found = run(tmp_path / "run", ("alive",), variances={"genetic": {"prior": prior}}, samples=20)
    assert finite(found.summary["mean"])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"variances": {"residual": 2}}, "residual.start: found 2 for alive, needed 1"),
        ({"variances": {"residual": {"prior": {"h2": "uniform"}}}}, "variances.residual.prior.h2"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path, change, said):
    traits = ("alive",) if "start" in said else ("alive", "weight")
    with pytest.raises(ConfigError) as caught:
        mmgibbs.run(analysis(tmp_path / "run", traits) | change, overwrite=True, progress=False)
    assert said in str(caught.value)


def test_weights_are_refused(tmp_path):
    config = analysis(tmp_path / "run", ("alive",))
    config["data"]["weights"] = "months"
    with pytest.raises(ConfigError, match="weights cannot be combined with traits.alive.type: binary"):
        mmgibbs.run(config, progress=False)
