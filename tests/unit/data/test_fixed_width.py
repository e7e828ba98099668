"""Analyses of tables whose columns have fixed widths give what those of separated ones give."""

import pytest
from helpers.drafts import accepted

import mmgibbs
from mmgibbs.cli import main
from mmgibbs.config import load_config
from mmgibbs.data.regression import read_regression
from mmgibbs.draft.make import init

ROWS = [(f"a{i:03}", f"h{i % 4}", round(30 + (7 * i) % 11 + i / 8, 1)) for i in range(40)]


@pytest.fixture
def tables(tmp_path):
    """records and pedigree, each with separators and with fixed widths."""
    (tmp_path / "r.csv").write_text("animal,herd,weight\n" + "".join(f"{a},{h},{w}\n" for a, h, w in ROWS))
    (tmp_path / "r.txt").write_text("anim" + "hd" + "weight\n" + "".join(f"{a}{h}{w:6.1f}\n" for a, h, w in ROWS))
    parents = [("a000", "a001") if i > 1 else ("", "") for i in range(40)]
    kin = list(zip((a for a, _, _ in ROWS), parents, strict=True))
    (tmp_path / "p.csv").write_text("id,sire,dam\n" + "".join(f"{a},{s},{d}\n" for a, (s, d) in kin))
    (tmp_path / "p.txt").write_text("".join(f"{a}{s:4}{d:4}\n" for a, (s, d) in kin))
    return tmp_path


def test_a_regression(tables):
    model = {"plugin": "lasso", "response": "weight", "predictors": ["x"]}
    (tables / "x.txt").write_text("".join(f"{i % 7:3}{w:6.1f}\n" for i, (_, _, w) in enumerate(ROWS)))
    data = {"phenotypes": str(tables / "x.txt"), "widths": [3, 6], "header": ["x", "weight"]}
    found = read_regression(load_config({"data": data, "model": model}))
    assert found.response.tolist() == [w for _, _, w in ROWS]


def test_init(tables, capsys):
    data = {"widths": (4, 2, 6), "pedigree_widths": [4, 4, 4]}
    made = init(tables / "r.txt", tables / "p.txt", output=tables / "a.yaml", data=data)
    analysis = accepted(made)
    assert analysis.data.widths == (4, 2, 6) and analysis.data.pedigree_widths == (4, 4, 4)
    words = ["init", str(tables / "r.txt"), "--pedigree", str(tables / "p.txt"), "--output", str(tables / "b.yaml")]
    assert main([*words, "--widths", "4, 2,6", "--pedigree-widths", "4,4,4"]) == 0
    assert mmgibbs.check(tables / "b.yaml")["data"]["records"]["read"] == 40
    assert main([*words, "--widths", "4,two", "--overwrite"]) == 2
    assert "--widths: found '4,two', needed whole numbers such as 8,8,6" in capsys.readouterr().err
