"""Which engine `auto` takes, that it says why, and that a run which continues keeps the one it was begun with."""

import dataclasses
import json

import polars as pl
import pytest
from helpers.kept_runs import SAMPLED
from helpers.shared_cases import analysis as shared_analysis
from helpers.small_analysis import command, replaced, write_files
from helpers.support import ROOT

from mmgibbs.build import engine as of_runs
from mmgibbs.build.assemble import assemble
from mmgibbs.build.effective_draws import count_kept
from mmgibbs.build.engine import choose_engine, estimated_sweeps, joined_components
from mmgibbs.build.memory_estimate import refuse_sampling_beyond_memory
from mmgibbs.config import load_config
from mmgibbs.data.prepare import prepare
from mmgibbs.engines.choice import engine_class
from mmgibbs.engines.direct import costs
from mmgibbs.errors import ConfigError, DeviceError
from mmgibbs.likelihood.integrated import IntegratedLikelihood
from mmgibbs.models.engine_kinds import ENGINES
from mmgibbs.runs.mixed_model_chains import MixedModelFactory
from mmgibbs.sampler.schedule import Schedule

LONG = replaced(SAMPLED, "burn_in: 10, samples: 50", "burn_in: 100, samples: 600")  # long enough for marginal


def read(name):
    config = load_config(ROOT / "configs" / f"{name}.yaml")
    return config.sampler, assemble(config, prepare(config)).model


@pytest.fixture(scope="module")
def first():
    return read("first")


@pytest.mark.parametrize(
    "name, engine",
    [("first", "marginal"), ("repeated_records", "marginal"), ("beef", "structured"), ("disease", "serial")],
)
def test_auto_takes_what_was_measured_to_be_the_best(name, engine):
    """benchmarks/RESULTS.md, "Which engine"."""
    sampler, model = read(name)
    chosen = choose_engine(sampler, model)
    assert chosen.engine.name == engine
    assert chosen.partition == {"structured": "colour"}.get(engine, "term")
    for one, milliseconds in estimated_sweeps(model).items():
        assert f"{milliseconds:.2g} ms per sweep of {one}" in chosen.why
    assert json.loads(json.dumps(chosen.estimates)) == chosen.estimates  # as run.json has them


def test_neither_cores_nor_threads_nor_memory_have_a_say(first, monkeypatch):
    sampler, model = first
    before = choose_engine(sampler, model)
    monkeypatch.setattr(of_runs, "cores", lambda: 64)
    monkeypatch.setattr("mmgibbs.machine.memory.free_bytes", lambda: 1)
    after = choose_engine(sampler.model_copy(update={"threads": 7}), model)
    assert after == before


@pytest.mark.parametrize(
    "key, value, said",
    [
        ("update", "site", "sampler.update: site"),
        ("precision", "single", "sampler.precision: single"),
        ("partition", "equal", "sampler.partition: equal"),
        ("interweave", False, "sampler.interweave: false"),
        ("interweave", True, "sampler.interweave: true"),
        ("burn_in", 99, "sampler.burn_in: 99, fewer than the 100"),
    ],
)
def test_an_analysis_that_asks_for_sweeps_gets_sweeps(first, key, value, said):
    sampler, model = first
    chosen = choose_engine(sampler.model_copy(update={key: value}), model)
    assert chosen.engine.name in ("serial", "structured")
    assert f"marginal cannot be combined with {said}" in chosen.why


def test_fixed_variances_and_too_many_equations_get_sweeps(first, monkeypatch):
    sampler, model = first
    fixed = dataclasses.replace(
        model,
        covariances=tuple(c and dataclasses.replace(c, fixed=True) for c in model.covariances),
        residual=dataclasses.replace(model.residual.matrices[0], fixed=True),
    )
    assert "cannot be combined with fixed variances" in choose_engine(sampler, fixed).why
    monkeypatch.setattr(costs, "MAX_FACTOR_EQUATIONS", 3000)
    chosen = choose_engine(sampler, model)
    assert chosen.engine.name != "marginal" and "3,573 equations, more than 3,000" in chosen.why
    monkeypatch.setitem(ENGINES, "structured", ENGINES["structured"]._replace(fastest_from=3000))
    chosen = choose_engine(sampler, model)
    assert (chosen.engine.name, chosen.why) == ("structured", "auto: 3,573 equations, at least 3,000")


def families(records, trait):
    family = [i % 40 for i in range(len(records))]
    ids = [f"a{i}" for i in range(len(records))]
    pedigree = {"id": ids, "sire": [f"s{f}" for f in family], "dam": [f"d{f}" for f in family]}
    data = {"phenotypes": pl.DataFrame({"animal": ids, "y": records}), "pedigree": pl.DataFrame(pedigree)}
    random = {"animal": {"relationship": "pedigree"}}
    content = {"name": "families", "data": data, "traits": {"y": trait}, "model": {"random": random}}
    analysis = load_config(content, ["sampler.thin=1"])
    return analysis.sampler, assemble(analysis, prepare(analysis)).model


@pytest.mark.parametrize(
    ("records", "trait", "engine"),
    [
        ([i % 2 for i in range(400)], {"type": "binary"}, "marginal"),
        ([i % 3 for i in range(400)], {"type": "ordinal"}, "marginal"),
        ([i % 25 == 0 for i in range(400)], {"type": "binary"}, "serial"),  # a rare category
        ([i % 5 for i in range(400)], {"type": "count"}, "serial"),
    ],
    ids=["binary", "ordinal", "rare", "counts"],
)
def test_a_trait_that_is_not_normal(records, trait, engine):
    """benchmarks/RESULTS.md, below "Which engine"."""
    sampler, model = families([int(x) for x in records], trait)
    chosen = choose_engine(sampler, model)
    assert chosen.engine.name == engine and "times the effective draws per second" in chosen.why


def test_what_marginal_cannot_do_with_liabilities_is_refused(tmp_path):
    sampler, model = read("calving_ease")
    named = sampler.model_copy(update={"engine": "marginal"})
    with pytest.raises(ConfigError, match="marginal .* cannot be combined with trait 'calving_ease', .* normal"):
        choose_engine(named, model)
    assert "marginal cannot be combined with trait 'calving_ease'" in choose_engine(sampler, model).why
    sampler, model = families([i % 2 for i in range(80)], {"type": "binary"})
    classes = dataclasses.replace(model.design, residual_classes=("a", "b"))
    with pytest.raises(ConfigError, match="residual classes of trait 'y', which is not normal; use engine: serial"):
        choose_engine(sampler.model_copy(update={"engine": "marginal"}), dataclasses.replace(model, design=classes))


def test_where_marginal_cannot_win_nothing_is_eliminated(monkeypatch):
    sampler, model = read("beef")
    whole = choose_engine(sampler, model)
    monkeypatch.setattr("mmgibbs.engines.direct.engine.factor_cost", lambda *_: pytest.fail("C was built"))
    chosen = choose_engine(sampler, model)
    assert chosen == whole and "at least " in chosen.why and "at most " in chosen.why
    assert chosen.estimates["marginal"]["without_fill"]


def test_factors_too_large_for_all_chains_at_once_are_never_taken(first, monkeypatch):
    sampler, model = first
    size = choose_engine(sampler, model).engine.bytes
    monkeypatch.setattr(costs, "MAX_FACTOR_BYTES", 3 * size)
    assert choose_engine(sampler, model).engine.name == "marginal"  # two chains
    chosen = choose_engine(sampler.model_copy(update={"chains": 4}), model)
    assert chosen.engine.name != "marginal" and "too large for 4 chains" in chosen.why


def test_marginal_has_to_win_by_a_margin(first, monkeypatch):
    sampler, model = first
    ratio = choose_engine(sampler, model).estimates["marginal"]["effective_draws_per_second_to_sweeps"]
    monkeypatch.setattr(of_runs, "MARGIN", 1.01 * ratio)
    chosen = choose_engine(sampler, model)
    assert chosen.engine.name != "marginal"
    assert "times the effective draws per second" in chosen.why and chosen.why.endswith(", too few")
    assert chosen.engine.bytes == 0


def test_draws_that_thinning_discards_are_said_and_counted(first):
    sampler, model = first
    every, tenth = (choose_engine(sampler.model_copy(update={"thin": thin}), model) for thin in (1, 10))
    assert "thin" not in every.why and "effective draws per second with thin: 10" in tenth.why
    of_every, of_tenth = (c.estimates["marginal"]["effective_draws_per_second_to_sweeps"] for c in (every, tenth))
    assert of_tenth < of_every / 2


def test_kept_draws_are_those_of_an_autoregression():
    """ESS of every t-th draw of an AR(1) chain with e effective draws a sweep, against sums of its autocorrelations."""
    for e, thin in [(0.3, 1), (0.05, 4), (0.6, 10), (1.0, 7)]:
        of_lag = ((1 - e) / (1 + e)) ** thin
        expected = 1 / (1 + 2 * sum(of_lag**lag for lag in range(1, 2000))) / thin
        assert count_kept(e, thin) == pytest.approx(expected, rel=1e-9)


def test_two_traits_with_four_matrices_are_swept(tmp_path):
    """Gryphons: 10,000 draws of the slowest variance gave 18 effective ones a second by marginal, 23 by serial."""
    for case, engine in [("gryphon, two traits", "serial"), ("gryphon", "marginal"), ("milk", "marginal")]:
        config = load_config(shared_analysis(case, tmp_path, burn_in=1000, samples=10_000, thin=1, chains=1))
        chosen = choose_engine(config.sampler, assemble(config, prepare(config)).model)
        assert chosen.engine.name == engine
        drawn = chosen.estimates["effective_draws_per_sweep"], chosen.estimates["marginal"]["effective_draws_per_sweep"]
        assert "{:.2g} effective draws per sweep, {:.2g} of marginal: ".format(*drawn) in chosen.why


@pytest.mark.parametrize("name", ["first", "beef"])
def test_the_factor_is_what_was_estimated(name):
    """Its elements and operations exactly, its bytes from above; nothing was factorised to know them."""
    _, model = read(name)
    joined = joined_components(model)
    cost = costs.factor_cost(model.design, *joined)
    known = engine_class("marginal", "cpu")
    assert known.refuses(model.design) is None
    built = IntegratedLikelihood(costs_of(model))
    assert (cost.elements, cost.operations) == (built.columns.elements, built.columns.flops)
    held = built.bytes + built.coefficients.explicit.bytes
    assert held < cost.bytes < 4 * held


def costs_of(model):
    from mmgibbs.likelihood.coefficients import coefficients

    return coefficients(model.design, *joined_components(model), columns_alone=True)


def test_memory_of_marginal_counts_for_every_chain_at_work(first, monkeypatch):
    sampler, model = first
    chosen = choose_engine(sampler, model).engine
    schedule = Schedule(10, 10, 1, chains=2)

    class Equations:
        real, bytes = model.design.y.dtype, 0

    of = lambda engine: MixedModelFactory(model, Equations, engine, schedule, 1).bytes_per_chain
    assert of(chosen) - of(dataclasses.replace(chosen, bytes=0)) == chosen.bytes > 0
    config = load_config(ROOT / "configs" / "first.yaml")
    assembled = assemble(config, prepare(config))
    refuse_sampling_beyond_memory(config, assembled, schedule, chosen.bytes)
    with pytest.raises(DeviceError, match=r"needed fewer .*, another sampler.engine, or a machine"):
        refuse_sampling_beyond_memory(config, assembled, schedule, 10**15)


# ------------------------------------------------------------------------------------------------ runs


pytestmark = pytest.mark.usefixtures("one_core")


def test_a_run_says_what_it_took_and_why_and_keeps_it(tmp_path, monkeypatch):
    """Where it is extended, whatever `auto` would take now."""
    folder = tmp_path / "a"
    write_files(folder, {"analysis.yaml": LONG})
    outcome = command(folder, "run", "analysis.yaml", "--verbose")
    record = outcome.record
    assert outcome.code == 0 and record["engine"] == "marginal"
    assert f"engine marginal ({record['engine_chosen_because']})" in outcome.err
    assert set(record["engine_estimates"]["milliseconds_per_sweep"]) == {"serial", "structured"}
    assert record["engine_estimates"]["marginal"]["milliseconds_per_factorisation"] > 0
    checked = command(folder, "check", "analysis.yaml")
    assert f"engine marginal ({record['engine_chosen_because']})" in checked.out
    monkeypatch.setattr(of_runs, "MARGIN", 1e9)
    extended = command(folder, "run", "analysis.yaml", "--quiet", "--extend", "10")
    assert extended.code == 0 and extended.record["engine"] == "marginal"
    assert extended.record["engine_chosen_because"] == "auto: the engine that the run was begun with"
    anew = command(folder, "run", "analysis.yaml", "--quiet", "--overwrite")
    assert anew.code == 0 and anew.record["engine"] != "marginal"


def test_a_dense_block_too_large_for_a_factor_is_known_before_it_is_built(monkeypatch):
    """Of 20,000 genotyped animals the lists of C alone would take tens of gigabytes."""
    sampler, model = read("single_step")
    monkeypatch.setattr(costs, "MAX_FACTOR_BYTES", 1_000_000)
    monkeypatch.setattr("mmgibbs.engines.direct.engine.factor_cost", lambda *_: pytest.fail("C was built"))
    chosen = choose_engine(sampler, model)
    assert chosen.engine.name == "serial" and "relationships that join all of" in chosen.why
