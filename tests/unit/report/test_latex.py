"""Tables of a result in LaTeX and as frames of pandas."""

import builtins
import importlib.util
import pickle
import sys

import polars as pl
import pytest
from helpers.finished_run import write_run

from mmgibbs.errors import ConfigError
from mmgibbs.runs import result_frame
from mmgibbs.runs.result_frame import ResultFrame
from mmgibbs.runs.run import open_run

SUMMARY = pl.DataFrame(
    {
        "parameter": ["genetic.var[milk_kg]", "h2[milk_kg]", "genetic.cov[a|b,c]"],
        "mean": [123456.789, 0.31234, -0.004567],
        "median": [123000.0, 0.31, -0.0046],
        "sd": [2345.6, 0.0456, 0.00123],
        "mcse": [23.4, 0.0012, 0.00002],
        "ess_bulk": [1234.4, 980.0, 1000.0],
        "ess_tail": [1200.0, 900.0, 1000.0],
        "rhat": [1.0012, 1.01, None],
        "hpd_low": [119000.0, 0.22, -0.007],
        "hpd_high": [128000.0, 0.40, -0.002],
    }
)


def test_estimates_have_the_digits_of_their_errors():
    assert ResultFrame(SUMMARY).to_latex() == "\n".join(
        [
            r"\begin{tabular}{lrrrrrr}",
            r"\toprule",
            r"Parameter & Mean & SD & 95\,\% HPD, low & high & ESS & $\hat{R}$ \\",
            r"\midrule",
            r"genetic.var[milk\_kg] & 123,457 & 2,346 & 119,000 & 128,000 & 1,234 & 1.001 \\",
            r"h2[milk\_kg] & 0.312 & 0.046 & 0.220 & 0.400 & 980 & 1.010 \\",
            r"genetic.cov[a\textbar{}b,c] & $-$0.0046 & 0.0012 & $-$0.0070 & $-$0.0020 & 1,000 &  \\",
            r"\bottomrule",
            r"\end{tabular}",
            "",
        ]
    )


def test_a_summary_without_draws_has_estimates_and_standard_errors():
    solved = SUMMARY.with_columns(
        pl.lit(None, pl.Float64).alias(c) for c in SUMMARY.columns if c not in ("parameter", "mean", "sd")
    )
    assert ResultFrame(solved).to_latex().splitlines()[2] == r"Parameter & Estimate & SE \\"


def test_rows_columns_and_a_caption():
    text = ResultFrame(SUMMARY).to_latex(["parameter", "mean"], rows="h2[*]", caption="Shares in %", label="tab:h2")
    assert text.splitlines()[:4] == [
        r"\begin{table}",
        r"\centering",
        r"\caption{Shares in \%}",
        r"\label{tab:h2}",
    ]
    assert r"h2[milk\_kg] & 0.312 \\" in text and "genetic" not in text and text.endswith("\\end{table}\n")


def test_other_tables_have_their_columns_and_empty_cells():
    frame = ResultFrame(
        {"term": ["a&b", "c"], "level": ["x_1", None], "n": [1, 1000], "mean": [0.5, None], "pev": [None, None]}
    )
    lines = frame.to_latex().splitlines()
    assert lines[0] == r"\begin{tabular}{llrr}" and lines[2] == r"Term & Level & N & Mean \\"
    assert lines[4:6] == [r"a\&b & x\_1 & 1 & 0.5 \\", r"c &  & 1,000 &  \\"]


def test_unknown_names_are_refused():
    frame = ResultFrame(SUMMARY)
    with pytest.raises(ConfigError, match="no column 'means'; did you mean 'mean'"):
        frame.to_latex(["means"])
    with pytest.raises(ConfigError, match=r"no row fits 'h3\[\*\]'"):
        frame.to_latex(rows="h3[*]")
    with pytest.raises(ConfigError, match="at least one column"):
        frame.to_latex([])


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    return open_run(write_run(tmp_path_factory.mktemp("latex") / "calves"))


def test_a_result_has_its_tables(result):
    assert "h2[birth] & 0.3" in result.to_latex(rows="h2[*]")
    assert result.to_latex("solutions", ["level", "mean"]).count("\n") == result.solutions.height + 6
    with pytest.raises(ConfigError, match="to_latex: found 'sumary', needed a table of this run"):
        result.to_latex("sumary")
    assert pickle.loads(pickle.dumps(result)).summary.equals(result.summary)
    assert type(result.summary.filter(parameter="h2[birth]")) is pl.DataFrame


def test_frames_become_pandas_without_pyarrow(result, monkeypatch):
    """The test environment may have pyarrow: it is hidden."""
    find_spec, real_import = importlib.util.find_spec, builtins.__import__
    monkeypatch.setattr(result_frame, "find_spec", lambda name: None if name == "pyarrow" else find_spec(name))

    def without_pyarrow(name, *arguments, **settings):
        if name.split(".")[0] == "pyarrow":
            raise ModuleNotFoundError("No module named 'pyarrow'")
        return real_import(name, *arguments, **settings)

    monkeypatch.setattr(builtins, "__import__", without_pyarrow)
    frame = result.summary.to_pandas()
    assert frame.shape == result.summary.shape and list(frame.columns) == result.summary.columns
    assert frame["mean"].tolist() == pytest.approx(result.summary["mean"].to_list())
    with pytest.raises(ConfigError, match=r"pip install \"mmgibbs\[pandas\]\""):
        result.summary.to_pandas(use_pyarrow_extension_array=True)


def test_without_pandas_the_message_says_what_to_install(result, monkeypatch):
    monkeypatch.setattr(result_frame, "find_spec", lambda name: None)
    monkeypatch.delitem(sys.modules, "pandas", raising=False)
    for ask in (result.summary.to_pandas, lambda: result.to_pandas("summary")):
        with pytest.raises(ConfigError, match="pandas is not installed; install it with: pip install pandas"):
            ask()
