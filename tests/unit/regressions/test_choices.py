"""Options that are `auto`: what the data make of them, and where it is said."""

import json

import numpy as np
import polars as pl
import pytest
from helpers.mutants import mutant
from helpers.regression_contract import states

import mmgibbs
from mmgibbs.cli import main
from mmgibbs.regressions.arrays.base import Host
from mmgibbs.regressions.hierarchical.slice import HierarchicalSliceModel, HierarchicalSliceOptions
from mmgibbs.regressions.horseshoe import choice
from mmgibbs.regressions.horseshoe.choice import MOST_PREDICTORS, choose_collapsed, slowest_rate
from mmgibbs.regressions.horseshoe.probit import HorseshoeProbitModel, HorseshoeProbitOptions
from mmgibbs.regressions.loop import SideBySideChains
from mmgibbs.regressions.predictors import read_predictors
from mmgibbs.regressions.protocol import Keys, RegressionData

KEYS = Keys(3, (0, 4))


def simulate(n, p, size, positive=0.5, seed=1):
    """Predictors and classes, three effects of this size."""
    rng = np.random.default_rng(seed)
    X, beta = rng.normal(size=(n, p)), np.zeros(p)
    beta[:3] = size * rng.choice([-1.0, 1.0], 3)
    latent = X @ beta + rng.normal(size=n)
    return X, (latent > np.quantile(latent, 1 - positive)).astype(int)


def horseshoe(X, y, threads=1, **options):
    data = RegressionData(read_predictors(X, standardise=True), y)
    return HorseshoeProbitModel.prepare(data, HorseshoeProbitOptions(**options), Host(threads))


CASES = {  # measured: benchmarks/regressions_defaults.py
    "nearly separated": (simulate(400, 12, 8.0), {}, True),
    "nearly separated, a slab": (simulate(400, 5, 8.0), {"slab_scale": 2.5}, True),
    "rare": (simulate(2000, 5, 1.0, 0.02), {}, True),
    "balanced": (simulate(400, 12, 1.0), {}, False),
    "noise": (simulate(400, 12, 0.0), {}, False),
    "many predictors": (simulate(400, 60, 1.0), {}, False),
    "many records": (simulate(3000, 5, 1.0), {}, False),  # the rule by rows took it: 250 of a class for a coefficient
    "plain data augmentation": (simulate(400, 5, 3.0), {"expansion": False}, True),
}


@pytest.mark.parametrize("case", CASES)
def test_the_further_draw_is_taken_where_coefficients_would_mix_most_slowly(case):
    (X, y), options, expected = CASES[case]
    model = horseshoe(X, y, **options)
    chosen = model.choices["collapsed"]
    assert chosen.value is expected and (model.ellipse is not None) is expected
    slowest = "coefficients" if expected else "tau"
    assert chosen.why.startswith(f"without it {slowest} would mix most slowly, rates ")


def test_an_automatic_choice_draws_what_the_same_option_draws_and_nothing_is_chosen_that_was_set():
    for case, way in (("nearly separated", True), ("balanced", False)):
        (X, y), _, _ = CASES[case]
        options = {"collapsed": way}, {}, {"collapsed": None}, {"collapsed": not way}
        chosen, default, missing, other = (horseshoe(X, y, **given) for given in options)
        assert chosen.choices == other.choices == {} and default.choices == missing.choices
        last = [states(model, KEYS, 2)[-1]["beta"] for model in (chosen, default, missing, other)]
        np.testing.assert_array_equal(last[0], last[1])
        np.testing.assert_array_equal(last[0], last[2])
        assert np.abs(last[3] - last[0]).max() > 1e-6


def test_the_rate_is_that_of_the_slowest_direction_of_a_sweep_by_z():
    """In units of the columns it is the same; a prior that holds the coefficients fast makes it 1; the expansion takes
    one direction out, so that it can only rise."""
    X, y = simulate(400, 4, 3.0)
    rate = lambda X, slab, expansion: slowest_rate(
        (model := horseshoe(X, y, collapsed=False)).rows, model.gram, slab, 1e-6, expansion
    )
    plain, expanded = rate(X, 0.0, False), rate(X, 0.0, True)
    assert 0 < plain < 0.3 * expanded < 0.3
    np.testing.assert_allclose(rate(X * [1e3, 1.0, 1e-3, 1.0], 0.0, True), expanded, rtol=1e-6)
    held = rate(X, 1e9, True)
    assert expanded < held < 1  # the intercept alone moves by shares


def test_large_data_are_not_looked_at():
    model = horseshoe(*simulate(300, 5, 1.0))
    rows = model.rows
    rows.p = MOST_PREDICTORS + 1
    assert "more than 200 predictors" in choose_collapsed(rows, model.gram, 0.0, 1e-6, True).why
    rows.p, rows.n = 5, 20_000_001
    chosen = choose_collapsed(rows, model.gram, 0.0, 1e-6, True)
    assert chosen.value is False and "more than 20,000,000 records" in chosen.why


def test_where_there_is_no_further_draw_the_reason_is_said():
    class Elsewhere:
        device = "gpu"

    X, y = CASES["nearly separated"][0]
    data = RegressionData(read_predictors(X, standardise=True), y)
    on_gpu = HorseshoeProbitModel.prepare(data, HorseshoeProbitOptions(), Elsewhere())
    assert on_gpu.choices["collapsed"].why == "the kernels of a GPU have none" and on_gpu.has_kernels
    wide = horseshoe(np.random.default_rng(1).normal(size=(10, 20)), np.arange(10) % 2)
    assert wide.choices["collapsed"].why.startswith("more predictors than records")
    assert wide.choices["collapsed"].value is False


def test_a_rule_that_forgets_the_number_of_predictors_is_noticed():
    model = horseshoe(*simulate(400, 60, 3.0), slab_scale=2.5)
    spoilt = mutant(choice, "limit = RATE / rows.p", "limit = RATE")
    arguments = model.rows, model.gram, 2.5**-2, 1e-6, True
    assert not choose_collapsed(*arguments).value and spoilt.choose_collapsed(*arguments).value


# ------------------------------------------------------------------------------------------------- hierarchical models


@pytest.mark.parametrize(
    ("response", "options", "used"),
    [
        (np.arange(40) % 2, {}, "polya_gamma"),
        (np.arange(40) % 3, {}, "polya_gamma"),
        (np.tile([[3, 2], [1, 5]], (20, 1)), {}, "polya_gamma"),
        (np.arange(40) % 4, {"family": "poisson"}, "slice"),
    ],
)
def test_logits_are_drawn_by_polya_gamma_variables_unless_told(response, options, used):
    X = np.random.default_rng(1).normal(size=(40, 2))
    data = RegressionData(read_predictors(X), response, "y", np.arange(40) % 4)
    make = lambda **more: HierarchicalSliceModel.prepare(data, HierarchicalSliceOptions(**options, **more), Host(1))
    default = make()
    assert default.options.method == default.choices["method"].value == used and default.choices["method"].why
    asked = make(method="slice")
    assert asked.choices == {} and asked.options.method == "slice"
    last = [states(model, KEYS, 2)[-1]["beta"] for model in (default, make(method=used), asked)]
    np.testing.assert_array_equal(last[0], last[1])
    assert np.array_equal(last[0], last[2]) is (used == "slice")


# ----------------------------------------------------------------------------------------------------- where it is said


ANALYSIS = """\
name: chosen
data: {phenotypes: table.csv}
model: {plugin: PLUGIN, response: y, predictors: "x*"}
sampler: {chains: 2, burn_in: 2, samples: 4, thin: 1, seed: 3, threads: 1}
output: {directory: run}
"""


@pytest.mark.parametrize(
    ("plugin", "line"),
    [
        ("horseshoe_probit", "collapsed true (auto: without it coefficients would mix most slowly, rates "),
        ("hierarchical_slice, groups: g", "method polya_gamma (auto: coefficients of a group together"),
    ],
)
def test_a_run_says_what_was_chosen_and_why(plugin, line, tmp_path, monkeypatch, capsys):
    X, y = CASES["nearly separated"][0]
    monkeypatch.chdir(tmp_path)
    columns = {f"x{k}": X[:, k] for k in range(5)}
    pl.DataFrame({"y": np.where(y, "yes", "no"), "g": np.arange(len(y)) % 5, **columns}).write_csv("table.csv")
    (tmp_path / "a.yaml").write_text(ANALYSIS.replace("PLUGIN", plugin))
    assert main(["run", "a.yaml", "--verbose"]) == 0
    assert line in capsys.readouterr().err
    name, value = line.split(" ")[:2]
    value = {"true": True}.get(value, value)
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["options"][name] == value
    why = record["options_chosen_because"][name]
    assert f"{name} {str(value).lower()} ({why})".startswith(line)
    assert f"{name} {value} chosen by auto" in (tmp_path / "run" / "report.html").read_text()
    assert record["analysis"]["model"]["options"] == {}  # as it was written
    assert main(["check", "a.yaml"]) == 0
    assert str(value) in next(row for row in capsys.readouterr().out.splitlines() if row.startswith(name))
    assert (
        main(["run", "a.yaml", "--verbose", "--output=told", f"--set=model.options={{{name}: {str(value).lower()}}}"])
        == 0
    )
    told = json.loads((tmp_path / "told" / "run.json").read_text())
    assert told["options"] == record["options"] and "options_chosen_because" not in told
    assert "(auto: " not in capsys.readouterr().err


def test_an_estimator_has_the_options_in_use(capsys):
    X, y = CASES["balanced"][0]
    model = mmgibbs.HorseshoeProbit(chains=1, burn_in=2, samples=5, progress=True)
    with pytest.warns(UserWarning, match="few effective draws"):
        model.fit(X, y)
    assert model.options_["collapsed"] is False and model.options_["expansion"] is True
    assert model.collapsed == "auto" == model.get_params()["collapsed"]
    assert "collapsed false (auto: without it tau" in capsys.readouterr().err


def test_facts_of_sweeps_that_one_device_alone_records_are_left_out_of_a_run_on_both():
    """Chains that go on without the further draw have no angles to count."""
    X, y = CASES["nearly separated"][0]
    first = SideBySideChains(horseshoe(X, y, collapsed=True), Host(1), KEYS, 1)
    first.advance(4)
    assert first.result().statistics["angles_tried"].shape == (2, 3)
    second = SideBySideChains(horseshoe(X, y, collapsed=False), Host(1), KEYS, 1, 1, first.state())
    second.advance(7)
    result = second.result()
    assert result.draws["tau"].shape == (2, 6) and result.statistics == {}


def test_threads_choose_the_same():
    X, y = simulate(400, 5, 3.0)
    assert horseshoe(X, y, threads=3).choices == horseshoe(X, y).choices


def test_degenerate_data_have_a_choice():
    """A column twice, a single positive record, separated classes."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 3))
    X = np.column_stack([X, X[:, 0]])
    for y in (np.arange(60) == 7, X[:, 0] > 0, np.arange(60) % 2):
        assert set(horseshoe(X, y.astype(int)).choices) == {"collapsed"}
