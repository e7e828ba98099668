"""A sixth plugin in a package of its own, found by its entry point:
ridge regression, whose posterior is known exactly.
"""

import json
import textwrap

import numpy as np
import polars as pl
import pytest

import mmgibbs
from mmgibbs.cli import main
from mmgibbs.regressions.registry import plugin_names

PLUGIN = '''
from dataclasses import dataclass

import numpy as np

from mmgibbs.draws.purpose import REGRESSION_COEFFICIENT, stream
from mmgibbs.errors import ModelError
from mmgibbs.regressions.options import option
from mmgibbs.regressions.protocol import Parameter


class Ridge:
    """y ~ N(Z beta, 1), beta ~ N(0, 1/precision): exact, independent draws."""

    name = "ridge"
    standardise = False

    @dataclass(frozen=True)
    class Options:
        precision_of_prior: float = option(1.0, "1 / variance of a coefficient", above=0)
        spoil_at: int | None = option(None, "sweep whose draw is no number", least=1)

    @staticmethod
    def prepare(data, options, arrays):
        return Sampler(data, options, arrays)

    @staticmethod
    def predict(draws, predictors, classes):
        return predictors.times(draws["beta"].mean(0)[:, None])[:, 0]


class Sampler:
    def __init__(self, data, options, arrays):
        if data.response.dtype.kind != "f":
            raise ModelError("response: found text, needed numbers")
        self.arrays, self.options, X = arrays, options, data.predictors
        P = X.gram() + options.precision_of_prior * np.eye(X.p)
        self.L = arrays.cholesky(P)
        self.mean = np.linalg.solve(P, X.transposed_times(data.response[:, None])[:, 0])
        self.parameters = {"beta": Parameter(("predictor",), "coefficients")}
        self.coords = {"predictor": list(X.names)}

    def adapt_until(self, burn_in):
        self.burn_in = burn_in

    def start(self, keys):
        return {"beta": np.zeros((len(keys), self.mean.size))}

    def step(self, state, sweep, keys):
        z = self.arrays.normals(keys, sweep, stream(REGRESSION_COEFFICIENT, 0), self.mean.size)
        noise = np.array([self.arrays.solve_lower(self.L, one, transposed=True) for one in z])
        return {"beta": self.mean + noise + (np.nan if sweep == self.options.spoil_at else 0.0)}

    def log(self, state):
        return {"beta": state["beta"]}

    def statistics(self, state):
        return {"largest": np.abs(state["beta"]).max(1)}
'''


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The folder of a package with one module and one entry point, as pip would install it."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "third_party_ridge.py").write_text(textwrap.dedent(PLUGIN))
    info = folder / "third_party_ridge-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: third-party-ridge\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[mmgibbs.models]\nridge = third_party_ridge:Ridge\nbroken = third_party_ridge:Absent\n"
    )
    return folder


@pytest.fixture
def plugin(installed, monkeypatch):
    monkeypatch.syspath_prepend(str(installed))


@pytest.fixture
def analysis(tmp_path):
    rng = np.random.default_rng(2)
    X = rng.integers(0, 3, (40, 3))
    y = X @ [1.0, -2.0, 0.5] + rng.normal(size=40)
    frame = pl.DataFrame({"y": y, "snp_a": X[:, 0], "snp_b": X[:, 1], "snp_c": X[:, 2], "other": rng.normal(size=40)})
    frame = frame.with_columns(y=pl.when(pl.int_range(40) == 7).then(None).otherwise("y"))
    frame.write_csv(tmp_path / "table.csv")
    path = tmp_path / "ridge.yaml"
    path.write_text(
        "data: {phenotypes: table.csv}\n"
        "model: {plugin: ridge, response: y, predictors: 'snp_*', options: {precision_of_prior: 2}}\n"
        "sampler: {chains: 2, burn_in: 10, samples: 2000, thin: 2, seed: 5}\n"
        f"output: {{directory: {tmp_path / 'run'}}}\n"
    )
    keep = np.arange(40) != 7
    return path, X[keep].astype(float), y[keep]


def test_the_plugin_runs_from_an_analysis_file(plugin, analysis, capsys):
    path, X, y = analysis
    result = mmgibbs.run(path, progress=False)
    P = X.T @ X + 2 * np.eye(3)
    assert result.summary["parameter"].to_list() == ["beta[snp_a]", "beta[snp_b]", "beta[snp_c]"]
    z = (result.summary["mean"].to_numpy() - np.linalg.solve(P, X.T @ y)) / result.summary["mcse"].to_numpy()
    assert np.abs(z).max() < 4
    np.testing.assert_allclose(result.summary["sd"].to_numpy(), np.sqrt(np.diag(np.linalg.inv(P))), rtol=0.05)
    assert result.solutions is None
    with result.draws as tree:
        beta = tree["posterior"]["beta"]
        assert beta.dims == ("chain", "draw", "predictor") and beta.shape == (2, 1000, 3)
        assert tree["sample_stats"]["largest"].shape == (2, 1000)
    info = json.loads((result.directory / "run.json").read_text())
    assert info["plugin"] == "ridge" and info["options"]["precision_of_prior"] == 2.0
    assert info["data"]["records"] == {"read": 40, "used": 39, "left_out": {"without a response": 1}}
    assert info["predictor_type"] == "uint8"
    files = {"checkpoint", "draws.nc", "run.json", "run.log", "summary.csv", "summary.parquet"}
    assert {p.name for p in result.directory.iterdir()} >= files


def test_the_command_line_knows_it(plugin, analysis, capsys):
    path, *_ = analysis
    assert "ridge" in plugin_names()
    assert main(["check", str(path)]) == 0
    shown = capsys.readouterr().out
    for text in ("regression ridge", "39 used, 1 left out (without a response)", "precision_of_prior"):
        assert text in shown


def test_a_batch_of_chains_equals_single_chains(plugin, analysis, tmp_path):
    path, *_ = analysis
    both = mmgibbs.run(path, ["sampler.samples=20"], progress=False, directory=tmp_path / "both")
    one = mmgibbs.run(path, ["sampler.samples=20", "sampler.chains=1"], progress=False, directory=tmp_path / "one")
    with both.draws as a, one.draws as b:
        assert np.array_equal(a["posterior"]["beta"].values[:1], b["posterior"]["beta"].values)


COMBINED = "cannot be combined with"
MISTAKES = {  # what is set, and what is said
    "model.options.presicion=1": "model.options.presicion: unknown option; the options are precision_of_prior",
    "model.options.precision_of_prior=abc": "model.options.precision_of_prior: found 'abc', needed a number",
    "model.options.precision_of_prior=-1": "model.options.precision_of_prior: found -1.0, needed a number above 0",
    "model.options.standardise=3": "model.options.standardise: found 3, needed true or false",
    "model.predictors=snp_d": "table.csv: there is no column 'snp_d' (model.predictors)",
    "model.predictors=gene_*": "table.csv: no column matches 'gene_*' (model.predictors)",
    "model.response=z": "there is no column 'z' (model.response)",
    "model.predictors=[y, snp_a]": "model.predictors: 'y' is the response or a group too",
    "sampler.update=site": f"sampler.update: {COMBINED} model.plugin; it belongs to a mixed model",
    "data.pedigree=table.csv": f"data.pedigree: {COMBINED} model.plugin; it belongs to a mixed model",
    "sampler.method=blup": f"sampler.method: found blup, which {COMBINED} model.plugin; needed gibbs",
    "sampler.precision=single": f"sampler.precision: found single, which {COMBINED} plugin 'ridge'; needed double",
    "model.group_predictors=other": "model.group_predictors: found without groups",
    "model.plugin=rigde": "found 'rigde', needed one of the installed regressions; did you mean 'ridge'?",
    "model.plugin=broken": "model.plugin: 'broken' is installed but cannot be loaded: AttributeError",
    "model.options.spoil_at=2010": "the chain cannot continue after sweep 2010: a value of 'beta'",
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_told(plugin, analysis, capsys, mistake):
    path, *_ = analysis
    assert main(["run", str(path), "--quiet", "--set", mistake]) == 2
    assert MISTAKES[mistake] in capsys.readouterr().err
    assert not (path.parent / "run").exists()


def test_a_missing_predictor_names_its_row(plugin, analysis, capsys):
    path, *_ = analysis
    table = path.parent / "table.csv"
    lines = table.read_text().splitlines()
    lines[4] = lines[4].rsplit(",", 4)[0] + ",NA,1,1,0.5"
    lines[8] = lines[8].rsplit(",", 4)[0] + ",NA,1,1,0.5"  # the record without a response is left out before
    table.write_text("\n".join(lines) + "\n")
    assert main(["run", str(path), "--quiet"]) == 2
    assert capsys.readouterr().err.startswith(
        "table.csv row 5: no value in column 'snp_a' (model.predictors); needed a number"
    )
