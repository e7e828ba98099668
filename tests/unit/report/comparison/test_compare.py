"""`mmgibbs compare`: figures against plain NumPy, files of other programs, and the likelihood-ratio test."""

import copy
import html
import re
from dataclasses import replace
from itertools import combinations

import numpy as np
import polars as pl
import pytest
from helpers.finished_run import write_run
from helpers.html_page import Page, as_number
from helpers.support import ROOT

import mmgibbs
from mmgibbs.cli import main
from mmgibbs.errors import ConfigError, DataError
from mmgibbs.exchange.blupf90_write import export_blupf90
from mmgibbs.report import likelihood_ratio as module
from mmgibbs.report.compare import difference_column, pairs_in_words
from mmgibbs.report.comparison.make import FILES, as_text, compare
from mmgibbs.report.comparison.sides import read_side
from mmgibbs.report.comparison.solutions import pairs
from mmgibbs.report.finished import read_finished
from mmgibbs.report.likelihood_ratio import LikelihoodRatio, likelihood_ratio
from mmgibbs.report.make import make_report
from mmgibbs.report.notebook import as_html
from mmgibbs.results.tables import was_drawn
from mmgibbs.runs.run import run


@pytest.fixture(scope="module")
def a_run(tmp_path_factory):
    return write_run(tmp_path_factory.mktemp("runs") / "calves")


@pytest.fixture(scope="module")
def reml(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reml")
    config, method = ROOT / "configs" / "repeated_records.yaml", "sampler.method=reml"
    without = "model.random={genetic: {level: animal, relationship: pedigree}}"
    other_fixed = "model.fixed={age: {}}"
    out = {}
    for name, overrides in {"whole": [], "without": [without], "other": [without, other_fixed]}.items():
        run(config, [method, *overrides], directory=folder / name, progress=False, report=True)
        out[name] = folder / name
    return out


def tables(tmp_path, n=50, seed=1):
    rng = np.random.default_rng(seed)
    a = rng.standard_normal(n)
    b = 0.5 * a + 0.3 * rng.standard_normal(n) + 1
    ids = [f"x{i}" for i in range(n)]
    pl.DataFrame({"id": [*ids, "only a"], "ebv": [*a, 0.0]}).write_csv(tmp_path / "a.csv")
    pl.DataFrame({"animal": ids[::-1], "sex": ["m"] * n, "solution": b[::-1]}).write_csv(tmp_path / "b.csv")
    return tmp_path / "a.csv", tmp_path / "b.csv", ids, a, b


def test_figures_of_two_tables(tmp_path):
    one, other, ids, a, b = tables(tmp_path)
    (pair,) = pairs(read_side(one), read_side(other))
    s = pair.statistics(top=10)
    assert (s["levels"], s["only_a"], s["only_b"]) == (50, 1, 0)
    assert s["correlation"] == pytest.approx(np.corrcoef(a, b)[0, 1], abs=1e-12)
    assert s["regression_of_b_on_a"] == pytest.approx(np.polyfit(a, b, 1)[0], abs=1e-12)
    assert s["regression_of_a_on_b"] == pytest.approx(np.polyfit(b, a, 1)[0], abs=1e-12)
    rank = {x: {ids[i]: r for r, i in enumerate(np.argsort(-v), 1)} for x, v in (("a", a), ("b", b))}
    assert s["in_both_top"] == sum(rank["a"][i] <= 10 and rank["b"][i] <= 10 for i in ids)
    farthest = pair.farthest(1).row(0, named=True)
    assert farthest["level"] == ids[int(np.argmax(np.abs(b - a)))]
    assert farthest["places"] == rank["a"][farthest["level"]] - rank["b"][farthest["level"]]
    assert s["largest_difference"] == pytest.approx(np.abs(b - a).max())
    text = as_text((read_side(one), read_side(other)), [pair], None, None, 10)
    assert f"places, the largest change is {s['most_places']:,}\n" in text


def test_a_run_and_itself_as_blupf90(reml, tmp_path):
    """Its own export agrees to the digits that the file has, effect by effect, ids from levels.csv beside it."""
    folder = export_blupf90(reml["whole"], tmp_path / "blupf90")
    found = {p.label.split(",")[0]: p.statistics() for p in pairs(read_side(reml["whole"]), read_side(folder))}
    for label in ("genetic", "permanent_environment"):
        assert found[label]["correlation"] == pytest.approx(1, abs=1e-6), label
        assert found[label]["largest_difference"] == pytest.approx(0, abs=1e-5), label


def test_ids_of_blupf90(tmp_path):
    """From renadd02.ped, from a table that is named, or from the file itself with OPTION origID."""
    lines = [" trait/effect level  solution          s.e."]
    lines += [f"   1   1   {i}   {10 * i}.0   0.5" for i in (1, 2)]
    lines += [f"   1   2   {i}   {v}D+00   0.25" for i, v in enumerate((0.5, -1.25, 2.0, 0.1), 1)]
    (tmp_path / "solutions").write_text("\n".join(lines) + "\n")
    ped = [f"{i} 0 0 1 0 2 1 0 0 calf{i}" for i in (1, 2, 3, 4)]
    (tmp_path / "renadd02.ped").write_text("\n".join(ped) + "\n")
    side = read_side(tmp_path / "solutions")
    by_effect = {c.effect: c.values for c in side.components}
    assert by_effect["2"].rows() == [("calf1", 0.5), ("calf2", -1.25), ("calf3", 2.0), ("calf4", 0.1)]
    assert by_effect["1"]["level"].to_list() == ["1", "2"]
    (tmp_path / "names.csv").write_text("effect,level,id\n2,1,A\n2,2,B\n2,3,C\n2,4,D\n")
    named = read_side(tmp_path / "solutions", tmp_path / "names.csv")
    assert named.components[1].values["level"].to_list() == ["A", "B", "C", "D"]
    own = [" trait/effect level original_id solution", "1 2 1 C01 0.5", "1 2 2 C02 -1.25", "1 2 3 C03 2.0"]
    (tmp_path / "own").write_text("\n".join(own))
    assert read_side(tmp_path / "own").components[0].values["level"].to_list() == ["C01", "C02", "C03"]
    (tmp_path / "own").write_text("\n".join([*own, "1 2"]))
    for wrong, said in (
        ("1 1 x cow 0.5", "'x', needed the number of the level"),
        ("1 1 2 cow 0,5", "'0,5', needed a solution"),
    ):
        (tmp_path / "wrong").write_text("trait effect level original_id solution\n1 1 1 bull 1.5D-1\n\n" + wrong)
        with pytest.raises(DataError, match=f"wrong row 4: found {said}$"):
            read_side(tmp_path / "wrong")
    with pytest.raises(DataError, match="own row 5: found 2 values, needed at least 5"):
        read_side(tmp_path / "own")


def test_ids_that_come_twice(tmp_path):
    a, b, ids, *_ = tables(tmp_path)
    text = b.read_text()
    b.write_text(text + f"{ids[7]},m,0.5\n")
    with pytest.raises(DataError, match=f"found '{ids[7]}' more than once in the second solutions"):
        pairs(read_side(a), read_side(b))


def test_levels_that_are_numbers_of_another_effect(tmp_path):
    """Herds 1 and 2 are animals too: effects are joined by all of their levels, not by some."""
    frame = {"term": ["herd"] * 2 + ["animal"] * 6, "effect": [None] * 8, "trait": ["y"] * 8}
    frame |= {"level": [1, 2, 1, 2, 3, 4, 5, 6], "mean": [9.0, 8.0, 0.1, 0.2, 0.3, 0.1, -0.2, -0.4]}
    pl.DataFrame(frame).write_csv(tmp_path / "a.csv")
    pl.DataFrame({"id": range(1, 7), "ebv": [0.1, 0.2, 0.3, 0.1, -0.2, -0.4]}).write_csv(tmp_path / "b.csv")
    (pair,) = pairs(read_side(tmp_path / "a.csv"), read_side(tmp_path / "b.csv"))
    assert pair.label == "animal, y" and pair.statistics()["correlation"] == pytest.approx(1)


def test_files_and_text(a_run, tmp_path, capsys):
    other = write_run(tmp_path / "other", seed=7)
    assert main(["compare", str(a_run), str(other), "--output", str(tmp_path / "out"), "--top", "5"]) == 0
    said = capsys.readouterr().out
    assert "of the 5 highest of a are among those of b" in said and "largest differences" in said
    assert "  b - a, SD: in the mean of both posterior standard deviations\n" in said
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == sorted(FILES)
    table = pl.read_csv(tmp_path / "out" / "comparison.csv")
    assert table.height == said.count(" in both\n") + said.count(" in both,") > 3
    levels = pl.read_csv(tmp_path / "out" / "levels.csv", infer_schema_length=None)
    assert levels.columns == ["component", "level", "a", "b", "rank_a", "rank_b", "difference", "places"]
    one = levels.filter(component=table["component"][0])
    assert float(np.corrcoef(one["a"], one["b"])[0, 1]) == pytest.approx(table["correlation"][0])
    assert main(["compare", str(a_run), str(other), "--page", str(tmp_path / "c.html")]) == 0
    assert (tmp_path / "c.html").exists()


def test_parameters_of_reml_have_the_digits_of_their_errors(reml, a_run, tmp_path, capsys):
    assert main(["compare", str(reml["whole"]), str(reml["without"]), "--page", str(tmp_path / "page.html")]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["parameter", "a", "b", "b", "-", "a,", "SE"] in lines
    assert "b - a, SE: in the mean of both standard errors".split() in lines
    assert ["h2[fleece_weight]", "0.365", "0.574", "+5.40"] in lines
    page = Page(tmp_path / "page.html").table("Parameters")
    assert page["head"] == ["Parameter", "whole", "SE", "without", "SE", "Run 2 \u2212 run 1, SE"]
    row = next(row for row in page["rows"] if row[0] == "h2[fleece_weight]")
    assert [as_number(cell) for cell in row[1:]] == [0.365, 0.055, 0.574, 0.022, 5.4]
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Estimates by REML with 1.96 standard errors on either side." in text and "Posterior means" not in text
    assert "run 1: 0.365 (0.256 to 0.474); run 2: 0.574 (0.531 to 0.618)" in text.replace("Run 1", "run 1")
    mixed = [read_finished(folder) for folder in (reml["whole"], a_run)]
    assert [was_drawn(run.summary) for run in mixed] == [False, True]
    assert difference_column([False, True])[0] == "Run 2 \u2212 run 1, SD"


def test_small_variances_are_no_zeros(tmp_path):
    side = read_side(tables(tmp_path)[0])
    rows = [("residual.var[fat]", 2.5e-10, 1e-11, 2.6e-10, 1e-11, 0.7), ("edge", 0.0, 0.1, -0.001, 0.1, None)]
    schema = ["parameter", "mean_a", "sd_a", "mean_b", "sd_b", "apart"]
    shown = as_text((side, side), [], pl.DataFrame(rows, schema, orient="row"), None, 10).splitlines()[-3:-1]
    assert [" ".join(row.split()) for row in shown] == ["residual.var[fat] 2.5e-10 2.6e-10 +0.70", "edge 0.00 0.00"]


def test_the_report_of_a_reml_run_heads_estimates_as_such(reml):
    page = Page(reml["whole"] / "report.html")
    shares = page.table("Heritabilities and shares of the phenotypic variance")
    assert shares["head"] == ["Parameter", "Estimate", "SE"]
    assert [as_number(cell) for cell in shares["rows"][0][1:]] == [0.365, 0.055]
    run = read_finished(reml["whole"])
    html = as_html(run.summary, run.record, run.directory)
    heads = re.findall(r"<th[^>]*>([^<]*)</th>", html)
    assert heads == ["parameter", "estimate", "standard error"] and ">0.365</td>" in html and ">0.055</td>" in html


def refusal(a, b):
    with pytest.raises(ConfigError) as refused:
        compare(a, b)
    return str(refused.value)


def test_what_cannot_be_compared(a_run, tmp_path):
    pl.DataFrame({"id": ["q1", "q2"], "ebv": [1.0, 2.0]}).write_csv(tmp_path / "strangers.csv")
    said = refusal(a_run, tmp_path / "strangers.csv")
    assert "nothing to compare: no level of one side is one of the other, in any spelling: a has '" in said
    assert "b has 'q1', 'q2' (" in said
    pl.DataFrame({"id": ["q1"], "name": ["x"]}).write_csv(tmp_path / "text.csv")
    pl.DataFrame({"cow_name": ["q1"], "ebv": [1.0]}).write_csv(tmp_path / "no_ids.csv")
    (tmp_path / "empty").mkdir()
    assert "no such file or folder" in refusal(a_run, tmp_path / "none")
    assert "is not the folder of a finished run" in refusal(a_run, tmp_path / "empty")
    assert "found no column of numbers other than 'id'" in refusal(a_run, tmp_path / "text.csv")
    assert "needed a column of ids named id" in refusal(a_run, tmp_path / "no_ids.csv")


def side(tmp_path, name, columns):
    pl.DataFrame(columns).write_csv(tmp_path / f"{name}.csv")
    return tmp_path / f"{name}.csv"


@pytest.mark.parametrize(
    ("ids", "others", "said"),
    [
        (["001", "002", "3"], ["1", "2", "3"], "2 levels matched in another spelling, such as '001' and '1'"),
        (["1", "2"], ["1.0", "2.0"], "2 levels matched in another spelling, such as '1' and '1.0'"),
        (["A1", "A2"], ["a1", "a2 "], "2 levels matched in another spelling, such as 'A1' and 'a1'"),
        (["A1", "A2"], ["A1", "A2"], ""),
        # two animals of one side: as they are written, and no other
        (["007", "7", "8"], ["7", "8", "9"], ""),
        (["007", "07", "8"], ["7", "8", "9"], ""),
    ],
)
def test_ids_in_another_spelling(tmp_path, ids, others, said):
    values = [1.0, 2.0, 4.0][: len(ids)]
    a, b = (side(tmp_path, name, {"id": own, "ebv": values}) for name, own in (("a", ids), ("b", others)))
    (pair,) = pairs(read_side(a), read_side(b))
    assert " ".join(pair.notes) == said and said in compare(a, b).text
    assert pair.table.height == (len(ids) if said else len({*ids} & {*others}))
    assert not said or (pair.table["difference"] == 0).all()


def test_nothing_to_compare_is_no_success(tmp_path, capsys):
    a, b = (side(tmp_path, name, {"id": own, "ebv": [1.0]}) for name, own in (("a", ["A1"]), ("b", ["B1"])))
    assert main(["compare", str(a), str(b), "--output", str(tmp_path / "out")]) == 2
    said = capsys.readouterr()
    assert said.out == "" and not (tmp_path / "out").exists()
    assert said.err.startswith("compare: nothing to compare: no level of one side is one of the other, in any spelling")
    assert said.err.endswith(": a has 'A1' (ebv); b has 'B1' (ebv). Needed ids that name the same animals\n")
    assert main(["compare", str(a), str(a)]) == 0
    a = side(tmp_path, "a", {"id": ["A1", "A2"], "ebv": [1.0, 2.0]})
    numbers, ids = "trait/effect level solution\n1 1 1 0.5\n", "trait effect level original_id solution\n1 1 1 B1 0.5\n"
    for text, level in ((numbers, "1"), (ids, "B1")):
        (tmp_path / "solutions").write_text(text)
        said = refusal(a, tmp_path / "solutions")
        assert f"b has '{level}' (1, 1)" in said
        assert "A file of BLUPF90 without original ids has numbers of levels; levels.csv or" in said


BASE_MODEL = """\
data: {phenotypes: p.csv, pedigree: ped.csv, groups: {column: origin, effect: fixed}}
traits: [y]
model: {fixed: {herd: {}, year: {}}, random: {genetic: {level: animal, relationship: pedigree}}}
variances: {genetic: 0.4, residual: 1}
sampler: {method: blup}
"""


def test_runs_with_other_references_are_compared_on_contrasts(tmp_path):
    """The same model with other bases: nothing differs. Without the contrasts, all means do."""
    rng = np.random.default_rng(2)
    ids = [f"x{i}" for i in range(30)]
    parents = [("", "") if i < 6 else (ids[rng.integers(0, 3)], ids[rng.integers(3, 6)]) for i in range(30)]
    origin = ["" if i >= 6 else "west" if i % 2 else "east" for i in range(30)]
    columns = {"animal": ids, "sire": [p[0] for p in parents], "dam": [p[1] for p in parents], "origin": origin}
    pl.DataFrame(columns).write_csv(tmp_path / "ped.csv")
    y = {"herd": [f"h{i % 3}" for i in range(30)], "year": [str(2000 + i % 4) for i in range(30)]}
    pl.DataFrame({"animal": ids, **y, "y": rng.normal(50, 2, 30)}).write_csv(tmp_path / "p.csv")
    (tmp_path / "a.yaml").write_text(BASE_MODEL)
    other = ["model.fixed.year.reference=2002", "model.fixed.herd.reference=h1", "data.groups.reference=west"]
    runs = {}
    for name, overrides in (("one", []), ("same", []), ("two", other)):
        run(tmp_path / "a.yaml", overrides, directory=tmp_path / name, progress=False)
        runs[name] = read_side(tmp_path / name)
    found = {pair.label: pair for pair in pairs(runs["one"], runs["two"])}
    for label in ("herd, y", "year, y", "genetic, y"):
        assert found[label].statistics()["largest_difference"] == pytest.approx(0, abs=1e-6), label
    assert found["year, y"].notes == ("differences from '2000', as another level may be set to 0 in each",)
    assert found["genetic, y"].notes == ("relative to the unknown-parent group 'east', which is not the base of b",)
    plain = [{c.term: c.values["value"] for c in runs[name].components}["genetic"] for name in ("one", "two")]
    assert (plain[0] - plain[1]).abs().min() > 0.01
    # the same references: values as they are
    assert all(not pair.notes for pair in pairs(runs["one"], runs["same"]))
    # another program, whose base is unknown
    folder = export_blupf90(tmp_path / "two", tmp_path / "blupf90")
    by_label = {pair.label.split(",")[0]: pair for pair in pairs(runs["one"], read_side(folder))}
    assert by_label["year"].statistics()["largest_difference"] == pytest.approx(0, abs=1e-4)


def test_names_that_are_not_the_same_are_listed(tmp_path):
    ids, values = [f"x{i}" for i in range(30)], np.arange(30.0)
    a = side(tmp_path, "a", {"id": ids, "weight": values, "milk": values})
    b = side(tmp_path, "b", {"id": ids, "Gewicht": values, "Milch": values})
    assert "but not their traits: a has 'weight' and 'milk'; b has 'Gewicht' and 'Milch'. Needed the" in refusal(a, b)
    of = lambda trait: {"term": "animal", "effect": "", "trait": trait, "level": ids, "mean": values}
    said = refusal(*(side(tmp_path, trait, of(trait)) for trait in ("weight", "milk")))
    assert "nothing to compare: no effect of one side has the term, effect and trait of one of the other" in said
    assert "a has 'animal, weight'; b has 'animal, milk'" in said
    c = side(tmp_path, "c", {"id": [*ids[:9], *(f"y{i}" for i in range(30))], "weight": np.arange(39.0), "fat": 1.0})
    assert "9 of the 30 levels of weight in a are among the 39 of weight in b: too few" in refusal(a, c)


def test_a_lone_column_is_compared(tmp_path):
    ids = [f"x{i}" for i in range(40)]
    a = side(tmp_path, "a", {"id": ids, "weight": np.arange(40.0), "milk": 1.0})
    b = side(tmp_path, "b", {"id": [*ids[:10], *(f"y{i}" for i in range(50))], "ebv": np.arange(60.0)})
    (pair,) = pairs(read_side(a), read_side(b))
    assert pair.table.height == 10 and (pair.only_a, pair.only_b) == (30, 50)
    ids = [f"x{i}" for i in range(20)]
    a = side(tmp_path, "a", {"id": ids, "weight": np.arange(20.0), "milk": 1.0})
    b = side(tmp_path, "b", {"id": ids, "milk": np.arange(20.0)})
    for sides in ((a, b), (b, a)):
        assert [(p.label, p.label_b) for p in pairs(*map(read_side, sides))] == [("milk", "milk")]


def test_decimal_commas_and_missing_values(tmp_path):
    (tmp_path / "commas.csv").write_text("id;name;ebv\na;x;1,5\nb;y;NA\nc;z;-0,25\nd;x;2\n")
    (tmp_path / "points.csv").write_text("id,ebv\na,1.5\nb,.\nc,-0.25\nd,2\n")
    pl.DataFrame({"id": list("abcd"), "ebv": [1.5, None, -0.25, 2.0]}).write_parquet(tmp_path / "nulls.parquet")
    (null,) = read_side(tmp_path / "nulls.parquet").components
    assert null.values["level"].to_list() == ["a", "c", "d"]
    for name in ("commas", "points"):
        (found,) = read_side(tmp_path / f"{name}.csv").components
        assert found.values.rows() == [("a", 1.5), ("c", -0.25), ("d", 2.0)], name
    (tmp_path / "a.csv").write_text("term;effect;trait;level;mean\nanimal;;w;a;1,5\nanimal;;w;b;2\nanimal;;w;c;NA\n")
    (found,) = read_side(tmp_path / "a.csv").components
    assert found.values.rows() == [("a", 1.5), ("b", 2.0)]
    (tmp_path / "b.csv").write_text("term,effect,trait,level,mean\nanimal,,w,a,1.5\nanimal,,w,b,two\n")
    with pytest.raises(ConfigError, match="found cells in column 'mean' that are no numbers"):
        read_side(tmp_path / "b.csv")


@pytest.mark.parametrize(
    ("statistic", "variances", "covariances"),
    [
        (2.7055, 1, 0),  # critical values at 5 %: chi2_0 and chi2_1 in halves, Self & Liang (1987), case 5
        (5.1385, 1, 1),  # chi2_1 and chi2_2 in halves, Stram & Lee (1994)
        (7.0451, 1, 2),  # chi2_2 and chi2_3 in halves
        (4.2306, 2, 0),  # weights 1/4, 1/2, 1/4, Self & Liang, case 7
        (3.8415, 0, 1),  # no boundary
    ],
)  # fmt: skip
def test_critical_values_of_five_per_cent(statistic, variances, covariances):
    p, exact = module._tail(statistic, variances, covariances)
    assert exact and p == pytest.approx(0.05, abs=1e-5)


def test_weights_that_depend_on_the_data_give_a_bound():
    p, exact = module._tail(7.8147, 2, 1)
    assert not exact and p == pytest.approx(0.05, abs=1e-5)  # chi2_3
    assert module._tail(0.0, 1, 0) == (1.0, True)


def test_two_reml_runs(reml):
    runs = {name: read_finished(path) for name, path in reml.items()}
    test = likelihood_ratio(runs["without"], runs["whole"])
    assert isinstance(test, LikelihoodRatio) and (test.small, test.large) == ("a", "b")
    difference = runs["whole"].record["log_likelihood"] - runs["without"].record["log_likelihood"]
    assert test.statistic == pytest.approx(2 * difference) and test.statistic == pytest.approx(17.97, abs=0.01)
    assert test.lacking == ("permanent_environment.var[fleece_weight]",) and test.exact
    assert test.p == pytest.approx(test.p_without_boundary / 2)
    turned = likelihood_ratio(runs["whole"], runs["without"])
    assert isinstance(turned, LikelihoodRatio) and (turned.small, turned.p) == ("b", test.p)
    said = compare(reml["whole"], reml["without"]).text
    assert "mixture of chi-squares" in said and "D = 17.9" in said


def without_tags(page):
    return html.unescape(re.sub("<[^>]+>", "", page.text))


def test_the_page_says_what_the_terminal_says(reml, tmp_path, capsys):
    """A row for each two nested runs, in numbers and in the words of the terminal."""
    assert main(["compare", str(reml["whole"]), str(reml["without"]), "--page", str(tmp_path / "page.html")]) == 0
    said = capsys.readouterr().out
    page = Page(tmp_path / "page.html")
    text = without_tags(page)
    of = {"b (without)": "run 2 (without)", "a (whole)": "run 1 (whole)"}
    first, lacks, distribution = said[said.index("likelihood-ratio test of ") :].splitlines()[:3]
    first = first.removeprefix("likelihood-ratio test of ")
    for letter, run_name in of.items():
        first = first.replace(letter, run_name)
    assert f"Test of {first}." in text
    assert lacks.strip()[1:] in text and distribution.strip() in text
    (row,) = page.table("Likelihood-ratio tests")["rows"]
    test = likelihood_ratio(read_finished(reml["whole"]), read_finished(reml["without"]))
    assert row[:3] == ["run 2 (without)", "run 1 (whole)", "permanent_environment.var[fleece_weight]"]
    assert as_number(row[3]) == pytest.approx(test.statistic, abs=1e-4)
    assert row[4] == "0 and 1, half each"
    assert [float(x) for x in row[5:]] == pytest.approx([test.p, test.p_without_boundary], rel=0.05)


def test_pages_without_a_test(reml, a_run, tmp_path):
    """Why two of three runs have none is said, once for all pairs; where no two are by REML there is no section."""
    page = Page(make_report([*reml.values()], tmp_path / "three.html"))
    assert len(page.table("Likelihood-ratio tests")["rows"]) == 1
    names = [f"run {i} ({name})" for i, name in enumerate(reml, 1)]
    other = names.pop(list(reml).index("other"))
    said = f"{other} with each of {names[0]} and {names[1]}: no test: the fixed effects of the two runs differ"
    assert without_tags(page).count("no test:") == 1 and f"R{said[1:]}" in without_tags(page)
    assert "Likelihood-ratio test" not in Page(make_report([reml["whole"], a_run], tmp_path / "mixed.html")).text


@pytest.mark.parametrize(
    ("untested", "words"),
    [
        ([(0, 1)], "Run 1 and run 2"),
        ([(0, 1), (0, 2), (1, 2)], "Every two of run 1, run 2 and run 3"),
        (list(combinations(range(9), 2)), "Every two of " + ", ".join(f"run {i}" for i in range(1, 9)) + " and run 9"),
        ([(0, 2), (1, 2)], "Run 3 with each of run 1 and run 2"),
        ([(0, 1), (2, 3)], "Run 1 and run 2; run 3 and run 4"),
        ([(0, 2), (0, 3), (1, 2), (1, 3)], "Run 1 with each of run 3 and run 4; run 2 with each of run 3 and run 4"),
    ],
)
def test_pairs_that_have_no_test_for_one_reason(untested, words):
    assert pairs_in_words(untested, [f"run {i}" for i in range(1, 10)]) == words


@pytest.mark.parametrize(
    ("variances", "covariances", "words", "compared_with"),
    [
        (0, 2, "chi-square with 2 degrees of freedom", "2"),
        (1, 1, "that of the mixture of chi-squares (chi-square with 2 degrees of freedom: p =", "1 and 2, half each"),
        (2, 0, "that of the mixture of chi-squares (chi-square with 2 degrees", "0 to 2, binomial weights"),
        (2, 1, "p, of 3 degrees of freedom, is an upper bound", "at most 3"),
    ],
)
def test_words_of_each_kind_of_test(variances, covariances, words, compared_with):
    p, exact = module._tail(5.0, variances, covariances)
    test = LikelihoodRatio("b", "a", 5.0, variances, covariances, p, 0.1, exact, ("line.var[y]",))
    first, lacks, distribution = module.describe_test(test, "one", "two")
    assert first == f"one within two: D = 5.0000, p = {p:.4f}" and lacks == "the smaller model lacks line.var[y]"
    assert words in distribution and test.degrees_of_freedom == compared_with


def test_what_cannot_be_tested(reml, a_run, tmp_path):
    runs = {name: read_finished(path) for name, path in reml.items()}
    assert "the fixed effects of the two runs differ" in likelihood_ratio(runs["whole"], runs["other"])
    assert likelihood_ratio(runs["whole"], runs["whole"]) == "no test: both are the same model"
    assert likelihood_ratio(runs["whole"], read_finished(a_run)) is None
    one = read_finished(reml["whole"])
    other = read_finished(reml["without"])
    for section, said in (("analysis", "the data of the two runs differ"), ("data", "used different records")):
        record = copy.deepcopy(other.record)
        if section == "analysis":
            record["analysis"]["data"]["phenotypes"] = "/other.csv"
        else:
            record["data"]["records"]["used"] -= 1
        assert said in likelihood_ratio(one, replace(other, record=record))


def held(small, name, value):
    """The run with a variance held at a value: a row of its table with a standard error of 0."""
    row = small.summary.head(1).with_columns(parameter=pl.lit(name), mean=pl.lit(value), sd=pl.lit(0.0))
    return replace(small, summary=pl.concat([small.summary, row]))


def test_a_variance_held_above_zero_is_not_on_the_boundary(reml):
    runs = {name: read_finished(path) for name, path in reml.items()}
    name = "permanent_environment.var[fleece_weight]"
    inside = likelihood_ratio(held(runs["without"], name, 0.5), runs["whole"])
    assert (inside.variances, inside.covariances) == (0, 1) and inside.p == pytest.approx(inside.p_without_boundary)
    boundary = likelihood_ratio(held(runs["without"], name, 0.0), runs["whole"])
    assert (boundary.variances, boundary.covariances) == (1, 0)
    assert boundary.p == pytest.approx(inside.p / 2)


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_byte_order_mark_is_no_part_of_a_file_of_another_program(mark, tmp_path):
    """Neither of solutions nor of the numbers of animals beside them."""
    solutions = "trait/effect level solution\n1 1 1 0.5\n1 1 2 1.5D0\n"
    (tmp_path / "solutions").write_text(mark + solutions)
    (tmp_path / "renadd01.ped").write_text(mark + "".join(f"{k} 0 0 1 0 1 0 0 0 cow{k}\n" for k in (1, 2)))
    (component,) = read_side(tmp_path / "solutions").components
    assert component.values.rows() == [("cow1", 0.5), ("cow2", 1.5)]
    (tmp_path / "renadd01.ped").write_text("animal " * 10 + "\n")
    (component,) = read_side(tmp_path / "solutions").components
    assert component.values["level"].to_list() == ["1", "2"]


@pytest.mark.parametrize("column", ["rel", "tag", "value2"])
def test_columns_that_are_not_compared_may_hold_anything(tmp_path, column):
    rows = [f"a{i},{i}.5,{'<0.1' if i == 3 else f'0.{i}'}" for i in range(9)]
    sides = []
    for name in ("one", "two"):
        (tmp_path / f"{name}.csv").write_text(f"id,ebv,{column}\n" + "\n".join(rows) + "\n")
        sides.append(read_side(tmp_path / f"{name}.csv"))
    assert [c.trait for c in sides[0].components] == ["ebv"]
    (tmp_path / "one.csv").write_text(f"id,ebv,{column}\n" + "\n".join(rows).replace("4.5", "x") + "\n")
    with pytest.raises(DataError, match="row 6: found 'x' in column 'ebv'"):
        read_side(tmp_path / "one.csv")


def test_runs_without_a_common_level_are_compared_without_a_mean(tmp_path):
    """The animals of two herds: nothing is in both, and nothing is computed of nothing."""
    for name, first in (("a", 0), ("b", 100)):
        ids = [f"x{first + i}" for i in range(12)]
        pl.DataFrame({"id": ids, "y": [float(i) for i in range(12)]}).write_csv(tmp_path / f"{name}.csv")
        sections = {"data": {"phenotypes": str(tmp_path / f"{name}.csv")}, "traits": ["y"]}
        variances = {"mode": "fixed", "id": 1.0, "residual": 1.0}
        sections |= {"model": {"random": {"id": {}}}, "variances": variances, "sampler": {"method": "blup"}}
        mmgibbs.run(sections, directory=tmp_path / name, progress=False)
    row = mmgibbs.compare(tmp_path / "a", tmp_path / "b").components.filter(component="id, y").row(0, named=True)
    assert (row["levels"], row["only_a"], row["only_b"]) == (0, 12, 12)
    assert all(row[name] is None for name in ("mean_a", "sd_b", "correlation", "largest_difference"))
