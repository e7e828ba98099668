"""Results and mixed models in Python: what they give, how a notebook shows them, and tables of other libraries."""

import gc
import pickle
import sys
import types
from datetime import date

import matplotlib.figure
import numpy as np
import pandas as pd
import polars as pl
import pytest
import xarray
from helpers.html_page import Page
from helpers.support import ROOT

import mmgibbs
from mmgibbs.config.frames import as_polars
from mmgibbs.errors import ConfigError, ModelError, Stopped
from mmgibbs.runs import progress, result

BEEF = ROOT / "data_samples" / "beef"
SHORT = dict(chains=2, burn_in=5, samples=40, thin=1, seed=3)
MODEL = dict(traits="yearling_weight", fixed=["contemporary_group", "sex"], random={"animal": "pedigree"})


@pytest.fixture(scope="module")
def tables():
    phenotypes, pedigree = (
        pl.read_csv(BEEF / f"{n}.csv", infer_schema_length=None) for n in ("phenotypes", "pedigree")
    )
    pedigree = pedigree.head(900)
    return phenotypes.filter(pl.col("animal").is_in(pedigree["animal"].implode())), pedigree


@pytest.fixture(scope="module")
def model(tables):
    return mmgibbs.MixedModel(**MODEL, **SHORT).fit(*tables, progress=False)


# ------------------------------------------------------------------------------------------------ the model


def test_a_model_is_its_analysis_file(model, tables, tmp_path):
    analysis = {
        "data": {"phenotypes": tables[0], "pedigree": tables[1]},
        "traits": ["yearling_weight"],
        "model": {"fixed": {"contemporary_group": {}, "sex": {}}, "random": {"animal": {"relationship": "pedigree"}}},
        "sampler": SHORT,
    }
    result = mmgibbs.run(analysis, directory=tmp_path / "run", progress=False)
    assert result.summary.equals(model.summary_) and result.solutions.equals(model.solutions_)


def test_tables_of_pandas_need_no_pyarrow(model, monkeypatch):
    result = model.result_
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "pyarrow", None)  # importing it fails
        solutions, summary = result.to_pandas(), result.to_pandas("summary")
    assert isinstance(solutions, pd.DataFrame) and list(solutions) == result.solutions.columns
    assert list(summary["parameter"]) == result.summary["parameter"].to_list()
    assert np.allclose(summary["mean"], result.summary["mean"])
    assert solutions["pev"].isna().sum() == result.solutions["pev"].null_count() > 0
    best = solutions[solutions.term == "animal"].sort_values("mean", ascending=False)
    assert best.iloc[0].level == result.breeding_values()["level"][0]
    for table in ("decisions", "draws", 3):
        with pytest.raises(ConfigError, match="to_pandas: found .*, needed a table of this run: summary, solutions$"):
            result.to_pandas(table)


def test_words_and_keys_of_effects():
    model = mmgibbs.MixedModel(
        traits={"ease": {"type": "ordinal"}},
        fixed={"age": "covariate", "herd": "class", "sex": {"prior": "flat"}},
        random={"animal": "pedigree", "litter": {"relationship": "identity", "traits": ["ease"]}},
        weights="w",
        sampler={"checkpoint_every": "never"},
        chains=2,
        seed=7,
    )
    found = model.analysis("a.csv", "b.csv")
    kinds = {"age": {"kind": "covariate"}, "herd": {"kind": "class"}}
    assert found["model"]["fixed"] == kinds | {"sex": {"prior": "flat"}}
    assert found["model"]["random"]["litter"] == {"relationship": "identity", "traits": ["ease"]}
    assert found["data"] == {"phenotypes": "a.csv", "pedigree": "b.csv", "weights": "w"}
    assert found["sampler"] == {"chains": 2, "seed": 7, "checkpoint_every": "never"} and found["name"] == "model"


@pytest.mark.parametrize(
    "keywords, said",
    [
        ({"traits": 3}, "traits: found 3, needed names of columns"),
        ({"random": [1]}, r"random: found \[1\], needed names"),
        ({"sampler": {"chains": 3}, "chains": 2}, "sampler.chains: cannot be combined with the keyword 'chains'"),
        ({"sampler": [1]}, "sampler: found"),
        ({"seed": -1}, "seed: found -1"),
        ({"output": "directory"}, "output: found 'directory', needed a mapping as in the analysis file"),
        ({"random": {"animal": "pedigre"}}, "model.random.animal.relationship: .*pedigre"),
        ({"samples": "many"}, "sampler.samples: "),
    ],
)
def test_keywords_are_refused_by_name(keywords, said, tables):
    with pytest.raises(ConfigError, match=said):
        mmgibbs.MixedModel(**(MODEL | keywords)).fit(*tables, progress=False)


def test_parameters_by_name():
    model = mmgibbs.MixedModel(traits="y", chains=2)
    assert repr(model) == "MixedModel(traits='y', chains=2)" and model.set_params(chains=3).get_params()["chains"] == 3
    with pytest.raises(ConfigError, match="unknown parameter 'chain'; did you mean 'chains'"):
        model.set_params(chain=3)
    with pytest.raises(ModelError, match="not fitted yet"):
        model.summary_  # noqa: B018


def test_what_a_fit_leaves_is_missed_by_name():
    model, lasso = mmgibbs.MixedModel(traits="y"), mmgibbs.BayesianLasso()
    names = ((model, "result_"), (model, "seed_"), (model, "summary_"), (lasso, "coef_"), (lasso, "posterior"))
    for one, name in names:
        with pytest.raises(ModelError, match=f"^{type(one).__name__}: not fitted yet, needed fit"):
            getattr(one, name)
        assert not hasattr(one, name)
    with pytest.raises(AttributeError, match="MixedModel has no attribute 'summary'; did you mean 'summary_'"):
        model.summary  # noqa: B018
    with pytest.raises(AttributeError, match="^BayesianLasso has no attribute '_nothing'$"):
        lasso._nothing  # noqa: B018
    assert pickle.loads(pickle.dumps(model)).traits == "y"


@pytest.mark.parametrize(
    "call, said",
    [
        (lambda: mmgibbs.run({}, directory=3), "directory: found 3, needed the path of a folder"),
        (lambda: mmgibbs.run("name: a\ntraits: [y]\n"), "analysis: found a text of 2 lines, needed the path of a YAML"),
        (lambda: mmgibbs.check("a.yaml\n"), r"analysis: found 'a.yaml\\n', a text with a line break, needed the path"),
        (lambda: mmgibbs.predict(None, "a.bed"), "predict: found None, needed the folder of a finished run"),
    ],
)
def test_arguments_that_are_no_paths_are_refused_by_name(call, said):
    with pytest.raises(ConfigError, match=said):
        call()


@pytest.mark.parametrize("address", [3, b"local:2"])
def test_a_cluster_that_is_no_text_is_refused_by_name(address, calves, tmp_path):
    with pytest.raises(ConfigError, match="^cluster: found .*, needed tcp://HOST:PORT of a Dask scheduler"):
        mmgibbs.run(calves, directory=tmp_path / "run", cluster=address, progress=False)


def test_check_counts_and_samples_nothing(tables):
    counts = mmgibbs.MixedModel(**MODEL, **SHORT).check(*tables)
    assert counts["data"]["animals"] == tables[1].height


def test_the_seed_of_the_section_is_the_one_that_is_kept(tables):
    short = {key: value for key, value in SHORT.items() if key != "seed"} | {"samples": 5, "burn_in": 0, "chains": 1}
    fit = lambda **keywords: mmgibbs.MixedModel(**MODEL, **short, **keywords).fit(*tables, progress=False)
    one, two, fresh = fit(seed=7), fit(sampler={"seed": 7}), fit(sampler={"seed": None})
    assert one.seed_ == two.seed_ == two.result_.info["seed"] == 7 and one.summary_.equals(two.summary_)
    assert fresh.seed_ == fresh.result_.info["seed"] != 1


def test_python_is_told_of_options_as_python_writes_them(tables, tmp_path):
    fit = lambda: mmgibbs.MixedModel(**MODEL, **SHORT).fit(*tables, directory=tmp_path / "run", progress=False)
    fit()
    with pytest.raises(ConfigError, match="choose another directory, or give overwrite=True$"):
        fit()
    from mmgibbs.cli import main

    assert main(["check", str(tmp_path / "none.yaml")]) == 2  # a command, whose options are --overwrite, ends
    with pytest.raises(ConfigError, match="overwrite=True$"):
        fit()


def test_a_fit_is_extended_and_resumed_in_its_folder(tables):
    model = mmgibbs.MixedModel(**MODEL, **SHORT)
    with pytest.raises(ConfigError, match="fit: found extend=5 without directory, needed the folder of the run"):
        model.fit(*tables, extend=5, progress=False)
    with pytest.raises(ConfigError, match="fit: found resume=True without directory"):
        model.fit(*tables, resume=True, progress=False)


@pytest.mark.parametrize("seed", [{"seed": None}, {"sampler": {"seed": None}}], ids=["keyword", "section"])
def test_without_a_seed_the_run_that_is_continued_keeps_its_own(seed, tables, tmp_path):
    """A fresh one would be another analysis, which is refused."""
    short = {key: value for key, value in SHORT.items() if key != "seed"} | {"burn_in": 0, "chains": 1}
    fit = lambda how: mmgibbs.MixedModel(**MODEL, **short, **seed).fit(
        *tables, directory=tmp_path / "run", progress=False, **{how: 5 if how == "extend" else True}
    )
    begun = fit("resume")  # nothing is there: a fresh seed
    for path in (tmp_path / "run").iterdir():  # as where it was killed before its end
        if path.is_file() and path.name != "run.log":
            path.unlink()
    resumed, extended = fit("resume"), fit("extend")
    assert begun.seed_ == resumed.seed_ == extended.seed_ == extended.result_.info["seed"]
    assert resumed.summary_.equals(begun.summary_)
    assert extended.result_.info["kept_draws_per_chain"] == SHORT["samples"] + 5
    first = {"draw": slice(SHORT["samples"])}
    draws = [f.result_.draws["posterior"]["h2[yearling_weight]"].isel(**first) for f in (begun, extended)]
    np.testing.assert_array_equal(*draws)
    assert fit("overwrite").seed_ != begun.seed_


def test_a_fit_without_a_folder_that_is_stopped_says_how_to_keep_one(tables, monkeypatch):
    def stopped(analysis, overrides, **how):
        raise Stopped(2, "stopped by SIGINT; nothing is kept", False)

    monkeypatch.setattr("mmgibbs.runs.model.run", stopped)
    with pytest.raises(Stopped, match="nothing is kept\nwith directory=FOLDER a fit keeps its state$"):
        mmgibbs.MixedModel(**MODEL, **SHORT).fit(*tables, progress=False)


def test_a_temporary_folder_goes_with_the_result(tables):
    short = SHORT | {"samples": 5, "burn_in": 0, "chains": 1}
    result = mmgibbs.MixedModel(**MODEL, **short).fit(*tables, progress=False).result_
    path = result.directory
    assert path.exists()
    del result
    gc.collect()
    assert not path.exists()


def test_a_fitted_model_can_be_pickled(model):
    again = pickle.loads(pickle.dumps(model))
    assert again.summary_.equals(model.summary_) and again.result_.breeding_values().height


# ------------------------------------------------------------------------------------------------ the result


@pytest.mark.parametrize("extend", [2.5, "x", -50, True])
def test_an_extension_is_a_number_of_sweeps(extend, tables, tmp_path):
    with pytest.raises(ConfigError, match="extend: found .*needed a whole number of sweeps from 1"):
        mmgibbs.MixedModel(**MODEL, **SHORT).fit(*tables, directory=tmp_path / "run", extend=extend, progress=False)
    assert not (tmp_path / "run").exists()


def test_draws_are_a_tree_that_arviz_takes(model):
    with model.result_.draws as tree:
        assert isinstance(tree, xarray.DataTree) and set(tree.children) == {"posterior", "sample_stats"}
        assert tree["posterior"]["h2[yearling_weight]"].dims == ("chain", "draw")


@pytest.mark.parametrize("version", ["0.23", "1.0", "installed"])
def test_draws_for_any_arviz(version, model, monkeypatch):
    """Versions before 1 take a type of their own, which is made of one Dataset for each group."""
    arviz = pytest.importorskip("arviz") if version == "installed" else types.SimpleNamespace()
    if version == "0.23":
        arviz.InferenceData = dict
    monkeypatch.setitem(sys.modules, "arviz", arviz)
    found = model.result_.to_arviz()
    if version == "installed":
        assert len(arviz.summary(found, var_names=["h2[yearling_weight]"])) == 1
    elif version == "0.23":
        assert found.keys() == {"posterior", "sample_stats"}
        assert all(isinstance(group, xarray.Dataset) for group in found.values())
    else:
        assert isinstance(found, xarray.DataTree)


def test_arviz_is_asked_for_where_it_is_absent(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(ConfigError, match="to_arviz: .*pip install arviz"):
        model.result_.to_arviz()


def test_draws_are_read_once_and_large_ones_where_they_are_looked_at(model, monkeypatch):
    """A change of one copy is no change of the next; both ways give the same numbers."""
    first = model.result_.draws
    first["posterior"]["h2[yearling_weight]"].values[:] = 0
    in_memory = model.result_.draws["posterior"]["h2[yearling_weight]"]
    assert in_memory.to_numpy().all()
    monkeypatch.setattr(result, "MOST_IN_MEMORY", 0)
    with pickle.loads(pickle.dumps(model.result_)).draws as tree:
        opened = tree["posterior"]["h2[yearling_weight]"]
        np.testing.assert_array_equal(opened, in_memory)
        assert tree["sample_stats"].data_vars.keys() == model.result_.draws["sample_stats"].data_vars.keys()


def test_draws_are_not_pickled(tables, tmp_path):
    """Looked at or not, a result is pickled with the path of its draws; without the folder the message names it."""
    short = SHORT | {"samples": 5, "burn_in": 0, "chains": 1}
    found = mmgibbs.MixedModel(**MODEL, **short).fit(*tables, directory=tmp_path / "run", progress=False).result_
    before = pickle.dumps(found)
    assert found.draws["posterior"].sizes["draw"] == 5 and found.plot_trace() is not None
    assert len(pickle.dumps(found)) == len(before)
    again = pickle.loads(pickle.dumps(found))
    assert again.draws["posterior"].sizes["draw"] == 5
    (tmp_path / "run").rename(tmp_path / "elsewhere")
    fresh = pickle.loads(before)
    for look in (lambda: fresh.draws, fresh.plot_trace, fresh.plot_posterior):
        with pytest.raises(ConfigError, match=r"draws: found no '.*run.draws.nc', needed the folder of the run"):
            look()


def test_breeding_values_are_the_related_levels_best_first(model, tables):
    values = model.result_.breeding_values()
    assert values.height == tables[1].height and values["mean"].is_sorted(descending=True)
    assert set(values["term"]) == {"animal"}
    with pytest.raises(ConfigError, match=r"found none of 'milk' in animal; .* animal \(yearling_weight\)$"):
        model.result_.breeding_values(trait="milk")
    with pytest.raises(ConfigError, match=r"found none in anima; there .*; sex \(yearling_weight\); animal \(yearl"):
        model.result_.breeding_values("anima")


def test_figures(model, tmp_path):
    trace = model.result_.plot_trace()
    assert isinstance(trace, matplotlib.figure.Figure)
    assert trace.axes[0].get_title("left") == "h2[yearling_weight]" and len(trace.axes[0].lines) == 2
    second = model.result_.draws["posterior"]["h2[yearling_weight]"][1]
    assert np.array_equal(trace.axes[0].lines[1].get_ydata(), second)
    titles = [axes.get_title("left") for axes in model.result_.plot_posterior("*var[*]").axes]
    assert titles == ["animal.var[yearling_weight]", "residual.var[yearling_weight]"]
    best = model.result_.plot_breeding_values(top=5)
    highest = model.result_.breeding_values().head(5)
    assert [t.get_text() for t in best.axes[0].get_xticklabels()] == highest["level"].to_list()
    for figure in (trace, best):
        assert figure._repr_png_().startswith(b"\x89PNG")
    trace.savefig(tmp_path / "trace.pdf")


def test_what_cannot_be_drawn_is_said(model):
    with pytest.raises(ConfigError, match=r"parameters: no parameter fits 'h3\[\*\]'; the parameters are animal.var"):
        model.result_.plot_trace("h3[*]")
    with pytest.raises(ConfigError, match="top: found 0"):
        model.result_.plot_breeding_values(top=0)
    assert model.result_.plot_breeding_values(top=np.int64(2)).axes
    for parameters in (3, [3], [], {}):
        for plot in (model.result_.plot_trace, model.result_.plot_posterior):
            with pytest.raises(ConfigError, match="parameters: expected the name of a parameter, a pattern .*, got "):
                plot(parameters)
    for given in ({"term": 3}, {"trait": ["yearling_weight"]}):
        with pytest.raises(ConfigError, match="(term|trait): found .*, needed the name of one (term|trait), or None"):
            model.result_.breeding_values(**given)


def test_a_notebook_shows_a_table_and_the_warnings(model, tmp_path):
    html = model.result_._repr_html_()
    (tmp_path / "cell.html").write_text(html)
    page = Page(tmp_path / "cell.html")
    assert page.tables[0]["head"][0] == "parameter" and len(page.tables[0]["rows"]) == model.summary_.height
    assert "warning: Few effective draws" in html and "40 kept draws per chain" in html and "<script" not in html
    assert html in model._repr_html_() and "MixedModel(traits=" in model._repr_html_()
    unfitted = mmgibbs.MixedModel(traits="<y>")._repr_html_()
    assert '<pre style="white-space:pre-wrap">MixedModel(' in unfitted and "&lt;y&gt;" in unfitted


def test_a_notebook_shows_given_variances_without_columns_of_draws(tables, tmp_path):
    """BLUP: nothing is estimated."""
    given = {"mode": "fixed", "residual": 400, "animal": 300}
    blup = mmgibbs.MixedModel(**MODEL, method="blup", variances=given).fit(*tables, progress=False)
    (tmp_path / "cell.html").write_text(blup.result_._repr_html_())
    assert Page(tmp_path / "cell.html").tables[0]["head"] == ["parameter", "value"]


def test_a_printed_result_is_its_summary_and_where_it_is(model):
    """Not run.json, which is longer than a screen."""
    text = repr(model.result_)
    assert text.startswith("Result of 'model': 3 parameters, ") and str(model.result_.directory) in text
    assert "h2[" in text and "versions" not in text and len(text) < 3000
    assert "\nwarning: Few effective draws" in text


def test_bars_in_a_notebook_are_widgets(monkeypatch):
    class ZMQInteractiveShell:
        pass

    shell = types.ModuleType("IPython")
    shell.get_ipython = ZMQInteractiveShell
    assert not progress.is_notebook()
    monkeypatch.setitem(sys.modules, "IPython", shell)
    assert progress.is_notebook() and progress.Console().bars and not progress.Console(False).bars


# ------------------------------------------------------------------------------------------------ a run of yesterday


def test_a_finished_run_is_opened_from_its_folder(tables, tmp_path):
    short = SHORT | {"samples": 10, "burn_in": 0, "chains": 2}
    made = mmgibbs.MixedModel(**MODEL, **short).fit(*tables, directory=tmp_path / "run", progress=False).result_
    again = mmgibbs.open_run(str(tmp_path / "run"))
    assert isinstance(again, mmgibbs.Result) and again.directory == made.directory and again.info == made.info
    assert again.folder is None and again.summary.equals(made.summary) and again.solutions.equals(made.solutions)
    assert again.breeding_values().equals(made.breeding_values()) and again.plot_trace("h2[*]").axes
    assert again._repr_html_() == made._repr_html_() and repr(again) == repr(made)
    xarray.testing.assert_identical(again.draws["posterior"].to_dataset(), made.draws["posterior"].to_dataset())


@pytest.mark.parametrize("method", ["reml", "regression"])
def test_runs_of_other_kinds_are_opened(method, tables, tmp_path, calves):
    if method == "reml":
        mmgibbs.MixedModel(**MODEL, method="reml").fit(*tables, directory=tmp_path / "run", progress=False)
    else:
        mmgibbs.run(calves, directory=tmp_path / "run", progress=False)
    found = mmgibbs.open_run(tmp_path / "run")
    assert (found.solutions is None) == (method == "regression") and found.summary.height
    if method == "reml":
        for plot in (found.plot_trace, found.plot_posterior):
            with pytest.raises(ConfigError, match="plot_.*: found a run of method reml, which draws nothing; needed"):
                plot("h2[*]")
    assert found.draws["posterior"].data_vars and "<table>" in found._repr_html_()


@pytest.fixture
def calves():
    return {
        "data": {"phenotypes": str(ROOT / "data_samples" / "markers" / "calves.csv")},
        "model": {"plugin": "horseshoe_probit", "response": "disease", "predictors": ["snp_01", "snp_02"]},
        "sampler": {"chains": 1, "burn_in": 2, "samples": 10, "thin": 1},
    }


def _begun(folder):
    (folder / "checkpoint").mkdir()
    (folder / "run.log").write_text("")


def _without_summary(folder):
    """Of a finished run, which keeps its log."""
    _begun(folder)
    (folder / "run.json").write_text("{}")


def _torn(name):
    def tear(folder):
        pl.DataFrame({"parameter": ["a"]}).write_parquet(folder / "summary.parquet")
        (folder / "run.json").write_text("{}")
        (folder / name).write_text("[")

    return tear


@pytest.mark.parametrize(
    "fill, said",
    [
        (lambda folder: folder.rmdir(), "open_run: found no folder '.*here'; needed the folder of a finished run"),
        (lambda folder: None, "open_run: '.*here' is empty; needed the folder"),
        (_begun, "open_run: the run in '.*here' has not finished: .* resume=True continues it; needed"),
        (lambda folder: (folder / "a.csv").write_text(""), "open_run: '.*here' holds no run; needed"),
        (
            lambda folder: [(folder / name).mkdir() or (folder / name / "run.json").write_text("{}") for name in "ba"],
            "open_run: '.*here' is no run folder, but holds a, b; needed",
        ),
        (_without_summary, "open_run: '.*here' has no summary.parquet; needed"),
        (_torn("run.json"), "'.*run.json' cannot be read: Expecting value"),
        (_torn("summary.parquet"), "'.*summary.parquet' cannot be read: "),
        (_torn("solutions.parquet"), "'.*solutions.parquet' cannot be read: "),
    ],
)
def test_a_folder_without_a_finished_run_is_refused(fill, said, tmp_path):
    (tmp_path / "here").mkdir()
    fill(tmp_path / "here")
    with pytest.raises(ConfigError, match=said):
        mmgibbs.open_run(tmp_path / "here")


def test_what_is_no_folder_is_refused(tmp_path):
    (tmp_path / "a.yaml").write_text("")
    with pytest.raises(ConfigError, match="open_run: '.*a.yaml' is a file; needed the folder of a finished run"):
        mmgibbs.open_run(tmp_path / "a.yaml")
    with pytest.raises(ConfigError, match="open_run: found None, needed the folder"):
        mmgibbs.open_run(None)


# ------------------------------------------------------------------------------------------------ tables


class Capsule:
    """A table of a library that nobody knows, which speaks the Arrow PyCapsule interface."""

    def __init__(self, frame):
        self._frame = frame

    def __arrow_c_stream__(self, requested_schema=None):
        return self._frame.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("kind", ["pandas", "capsule"])
def test_tables_of_other_libraries_give_the_same_draws(kind, model, tables):
    if kind == "pandas":
        others = [pd.DataFrame({c: t[c].to_list() for c in t.columns}) for t in tables]
    else:
        others = [Capsule(t) for t in tables]
    other = mmgibbs.MixedModel(**MODEL, **SHORT).fit(*others, progress=False)
    assert other.summary_.equals(model.summary_) and other.solutions_.equals(model.solutions_)


def test_columns_of_pandas():
    table = pd.DataFrame(
        {
            "id": [1.0, None], "text": ["x", None], "number": [1.5, np.nan], "mixed": [1, "q"],
            "class": pd.Categorical(["u", None]), "whole": pd.array([1, None], dtype="Int64"), "float": [1.0, 2.0],
            "truth": [True, False], "day": [date(2020, 1, 2), None],
        },
        index=pd.Index(["i", "j"], name="animal"),
    )  # fmt: skip
    found = as_polars(table)
    assert found.rows() == [
        ("i", 1, "x", 1.5, "1", "u", 1, 1.0, True, date(2020, 1, 2)),
        ("j", None, None, None, "q", None, None, 2.0, False, None),
    ]
    assert found.schema["id"] == pl.Int64 and found.schema["float"] == pl.Float64
    assert as_polars("path.csv") is None and as_polars(found) is found


def test_an_index_of_pandas_that_repeats_a_column():
    """As `set_index("animal", drop=False)` leaves it; an index of other values is refused."""
    table = pd.DataFrame({"animal": ["a", "b"], "y": [1.5, 2.5]})
    found = as_polars(table.set_index("animal", drop=False))
    assert found.rows() == [("a", 1.5), ("b", 2.5)] and found.columns == ["animal", "y"]
    other = table.set_index(pd.Index([7, 8], name="animal"))
    with pytest.raises(ValueError, match="a table with the index 'animal' and another column 'animal'"):
        as_polars(other)
    numbers = pd.DataFrame([[1, 2, 3], [4, 5, 6]])  # names that are numbers, too
    for index in (2, [2], [1, 0]):
        found = as_polars(numbers.set_index(index, drop=False))
        assert found.rows() == [(1, 2, 3), (4, 5, 6)] and found.columns == ["0", "1", "2"]
    of_two = table.set_index(pd.MultiIndex.from_arrays([["a", "b"], [7, 8]], names=["animal", "day"]))
    assert as_polars(of_two).rows() == [(7, "a", 1.5), (8, "b", 2.5)]
    with pytest.raises(ValueError, match=r"a table with the index '\('a', 'b'\)' and another column"):
        as_polars(pd.DataFrame({("a", "b"): [1, 2]}).rename_axis(index=[("a", "b")]))
    of_tuples = pd.DataFrame([[1.5]], [7], pd.MultiIndex.from_tuples([("a", "x")])).rename_axis("a")
    assert as_polars(of_tuples).row(0) == (7, 1.5)


class Broken:
    def __arrow_c_stream__(self, requested_schema=None):
        raise RuntimeError("no stream")


@pytest.mark.parametrize(
    "table, said",
    [
        (Broken(), r"found a table of .* that cannot be read \(.*no stream.*\), needed a path or a data frame"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "found a table with the column 'a' twice"),
        (pl.LazyFrame({"a": [1]}), "found a LazyFrame"),
        (pd.Series([1.5], name="weight"), r"found a Series of pandas \('weight'\), needed a path or a data frame"),
        ({"a": [1]}, r"found a mapping with the keys a, needed the path of a file \(or, from Python, a data frame"),
    ],
)
def test_tables_that_cannot_be_read_are_said(table, said, tables):
    with pytest.raises(ConfigError, match=f"data.phenotypes: {said}"):
        mmgibbs.MixedModel(**MODEL).fit(table, tables[1], progress=False)
