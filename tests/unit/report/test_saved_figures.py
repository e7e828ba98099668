"""Pictures of the page as files, each with the data that it draws, and tables in LaTeX and pandas."""

import builtins
import importlib.util
import pickle
import re
import sys

import numpy as np
import polars as pl
import pytest
from helpers.finished_run import write_run

from mmgibbs.cli import main
from mmgibbs.errors import ConfigError
from mmgibbs.report import pictures, plots, saved_figures
from mmgibbs.report.finished import read_finished
from mmgibbs.report.page import page
from mmgibbs.report.saved_figures import PendingFigure, draw_figure, file_name, light_palette, save_figures
from mmgibbs.runs import result_frame
from mmgibbs.runs.result_frame import ResultFrame
from mmgibbs.runs.run import open_run


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return write_run(tmp_path_factory.mktemp("figures") / "calves")


@pytest.fixture(scope="module")
def saved(run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    return folder, save_figures(run, folder, "svg", only=["trace-of-h2-*", "genetic-trend-direct-birth"])


class Titles(plots.Figures):
    """Keeps the titles of a page."""

    def __init__(self):
        super().__init__()
        self.titles = []

    def draw(self, paint, title, *arguments, **settings):
        self.titles.append(title)
        return ""


def test_every_picture_of_the_page_has_its_file_and_data(run, monkeypatch, tmp_path):
    monkeypatch.setattr(saved_figures.Figure, "savefig", lambda self, path, **_: path.write_bytes(b"drawn"))
    paths = save_figures(run, tmp_path)
    titles = Titles()
    page(read_finished(run), figures=titles)
    index = pl.read_csv(tmp_path / "figures.csv")
    assert index["title"].to_list() == titles.titles and len(paths) == 4 * 4 + 3 * 3
    assert {p.name for p in tmp_path.iterdir()} == {"figures.csv", *index["file"], *index["data"]}
    assert all(pl.read_csv(tmp_path / name).height for name in index["data"])
    assert index.filter(title="Genetic trend, direct, birth")["caption"][0].startswith("Mean breeding value")


def test_data_are_those_of_the_run(run, saved):
    folder, _ = saved
    table = pl.read_csv(folder / "trace-of-h2-birth.csv")
    draws = read_finished(run).draws["h2[birth]"]
    assert table["series"].unique(maintain_order=True).to_list() == ["chain 1", "chain 2", "chain 3"]
    chain = table.filter(series="chain 2")
    np.testing.assert_allclose(chain["y"], draws[1][chain["x"].cast(pl.Int64).to_numpy() - 1], rtol=1e-12)
    trend = pl.read_csv(folder / "genetic-trend-direct-birth.csv")
    assert trend["series"].unique(maintain_order=True).to_list()[:2] == ["band", "line"]
    assert trend.filter(series="line")["x"].to_list() == list(range(2000, 2008))
    band, line = trend.filter(series="band"), trend.filter(series="line")
    assert (band["low"] <= line["y"]).all() and (line["y"] <= band["high"]).all()


def test_a_picture_has_the_colours_of_the_page_its_title_and_a_legend(saved):
    folder, paths = saved
    names = ["trace-of-h2-weaning.svg", "trace-of-h2-birth.svg", "genetic-trend-direct-birth.svg"]
    assert [path.name for path in paths] == names
    text = (folder / "trace-of-h2-birth.svg").read_text()
    assert "Trace of h2[birth]" in text and "chain 3" in text and "kept draw" in text
    assert not any(colour in text for colour in plots.VARIABLES), "a stand-in colour is left"
    assert all(colour in text for colour in pictures.COLOURS[:3])
    assert "chain" not in (folder / "genetic-trend-direct-birth.svg").read_text()


def test_equal_runs_give_equal_files(run, saved, tmp_path):
    folder, _ = saved
    for path in save_figures(run, tmp_path, "svg", "genetic-trend-direct-birth"):
        assert path.read_bytes() == (folder / path.name).read_bytes()


def test_colours_are_those_of_the_style_sheet():
    palette = light_palette()
    assert [palette[colour] for colour in plots.SERIES] == list(pictures.COLOURS)
    assert (palette[plots.INK], palette[plots.BAND]) == (pictures.INK, pictures.BAND)


def draw(paint):
    figure, data = draw_figure(PendingFigure(paint, "a title with $ and \\alpha", "", "x", plots.SIZE))
    figure.canvas.draw()
    return data


def test_every_form_is_recorded():
    values = np.array([0.2, 0.5, 0.9])
    bars = draw(plots.paint_histogram(np.arange(30.0)))
    assert bars.columns == ["series", "x", "x_end", "y"] and bars.filter(series="bars")["y"].sum() == 30
    assert bars.filter(series="vertical line")["x"].to_list() == [0.0]
    shares = np.full((2, 20), 0.05)
    assert draw(plots.paint_ranks(shares)).filter(series="chain 2")["y"].to_list() == pytest.approx([0.05] * 20)
    matrix = draw(plots.paint_heat_map(np.arange(4.0).reshape(2, 2), 0, 3))
    assert matrix.rows() == [("matrix", 1, 1, 0), ("matrix", 2, 1, 1), ("matrix", 1, 2, 2), ("matrix", 2, 2, 3)]
    classes = draw(plots.paint_categories(0.5, 1.0, [0.0, 1.0]))
    assert {"category 1", "category 2", "category 3"} <= set(classes["series"])
    table = np.array([[0.1], [0.2]])
    observed = draw(plots.paint_observed(table, table, table - 0.1, table + 0.1))
    assert observed.filter(series="intervals")["high"].to_list() == pytest.approx([0.2, 0.3])
    genome = draw(plots.paint_along_genome(np.arange(3.0), values, np.array([0, 0, 1]), [(0.0, "1"), (2.0, "2")]))
    assert genome.filter(series="points 2")["y"].to_list() == [0.9]
    cloud = draw(plots.paint_cloud(values, values))
    assert cloud.filter(series="points").height == 3 and "horizontal line" in cloud["series"]


def test_names_of_files():
    assert file_name("Trace of h2[weight]", ()) == "trace-of-h2-weight"
    assert file_name("Trace of h2[weight]", ["trace-of-h2-weight"]) == "trace-of-h2-weight-2"
    assert file_name("Größe/../x", ()) == "größe-x" and file_name("[]", ()) == "figure"
    assert len(file_name("a" * 1000, ())) == saved_figures.MAX_NAME_CHARACTERS


def test_the_command_says_what_it_wrote(run, tmp_path, capsys):
    folder = tmp_path / "new" / "folder"
    assert main(["figures", str(run), "--format", "png", "--only", "trace-of-h2-b*", "--output", str(folder)]) == 0
    said = capsys.readouterr().out
    assert f"wrote {folder / 'trace-of-h2-birth.png'}" in said and "figures.csv" in said
    assert (folder / "trace-of-h2-birth.png").read_bytes()[:4] == b"\x89PNG"
    assert sorted(p.name for p in folder.parent.iterdir()) == ["folder"], "nothing is left beside it"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"only": "trace-of-h2-brith"}, "no picture fits 'trace-of-h2-brith'; did you mean 'trace-of-h2-birth'"),
        ({"only": 3}, "expected the name of a picture"),
        ({"only": []}, "expected the name of a picture"),
        ({"format": "jpg"}, "expected pdf, svg or png, got 'jpg'"),
        ({"output": ""}, "expected the path of a folder to write to, got ''"),
        ({"output": 3}, "expected the path of a folder to write to, got 3"),
    ],
)
def test_what_cannot_be_saved_is_refused(run, tmp_path, settings, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        save_figures(run, **({"output": tmp_path / "f"} | settings))
    assert list(tmp_path.iterdir()) == []


def test_the_folder_may_be_that_of_the_shell(run, tmp_path, monkeypatch):
    (tmp_path / "paper").mkdir()
    monkeypatch.chdir(tmp_path / "paper")
    assert [str(path) for path in save_figures(run, ".", "svg", "trace-of-h2-birth")] == ["trace-of-h2-birth.svg"]
    assert [path.name for path in tmp_path.iterdir()] == ["paper"]


def test_the_index_keeps_pictures_that_are_there_already(run, tmp_path):
    """The name of the folder is no pattern."""
    folder = tmp_path / "y[1]"
    save_figures(run, folder, "svg", ["trace-of-h2-birth", "trace-of-h2-weaning"])
    save_figures(run, folder, "png", "trace-of-h2-birth")
    (folder / "trace-of-h2-weaning.svg").unlink()
    save_figures(run, folder, "svg", "trace-of-h2-birth")
    index = pl.read_csv(folder / "figures.csv", glob=False)
    assert index["file"].to_list() == ["trace-of-h2-birth.svg", "trace-of-h2-birth.png"]


@pytest.mark.parametrize("text", ["mine,too\n1,2\n", "", "a,b\n1,2,3\n"])
def test_a_table_of_the_user_is_not_replaced(run, tmp_path, text):
    (tmp_path / "figures.csv").write_text(text)
    with pytest.raises(ConfigError, match="is not an index of pictures"):
        save_figures(run, tmp_path, "svg", "trace-of-h2-birth")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("figures.csv", text)]


def test_a_folder_that_cannot_be_written_is_named(run, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="file.* is a file, needed a directory"):
        save_figures(run, tmp_path / "file", only="trace-of-h2-birth")
    with pytest.raises(ConfigError, match="no-run"):
        save_figures(tmp_path / "no-run")


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
    unknown = [c for c in SUMMARY.columns if c not in ("parameter", "mean", "sd")]
    solved = SUMMARY.with_columns(pl.lit(None, pl.Float64).alias(c) for c in unknown)
    assert ResultFrame(solved).to_latex().splitlines()[2] == r"Parameter & Estimate & SE \\"


def test_chosen_rows_columns_and_other_tables():
    text = ResultFrame(SUMMARY).to_latex(["parameter", "mean"], rows="h2[*]", caption="Shares in %", label="tab:h2")
    assert text.splitlines()[:4] == [
        r"\begin{table}",
        r"\centering",
        r"\caption{Shares in \%}",
        r"\label{tab:h2}",
    ]
    assert r"h2[milk\_kg] & 0.312 \\" in text and "genetic" not in text and text.endswith("\\end{table}\n")
    columns = {"term": ["a&b", "c"], "level": ["x_1", None], "n": [1, 1000], "mean": [0.5, None]}
    frame = ResultFrame(columns | {"pev": [None, None]})
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
