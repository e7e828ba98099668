"""`mmgibbs pedigree`: figures of a small population by hand, files, and what is refused."""

import json

import numpy as np
import polars as pl
import pytest
from helpers.support import ROOT

import mmgibbs
from mmgibbs.cli import main
from mmgibbs.errors import ConfigError, DataError
from mmgibbs.pedigree.inbreeding import inbreeding
from mmgibbs.pedigree.panmictic_index import panmictic_index
from mmgibbs.population.results import fact_lines

HERD_BOOK = ROOT / "data_samples" / "beef" / "pedigree.csv"
# a x b -> c, d; full sibs c x d -> e, f; e x f -> g, h
ROWS = (
    "id,sire,dam,birth\na,0,0,2000\nb,0,0,2000\nc,a,b,2002\nd,a,b,2003\n"
    "e,c,d,2005\nf,c,d,2005\ng,e,f,2008\nh,e,f,2008\n"
)


@pytest.fixture
def small(tmp_path):
    (tmp_path / "p.csv").write_text(ROWS)
    return tmp_path / "p.csv"


def test_full_sib_matings(small):
    facts = mmgibbs.describe_pedigree(small).facts
    assert (facts["animals"], facts["without_parents"], facts["sires"], facts["dams"]) == (8, 2, 3, 3)
    assert facts["reference"] == "animals born after 2006" and facts["reference_animals"] == 2
    assert facts["inbreeding"] == {"mean": 0.375, "highest": 0.375, "inbred": 1.0}
    assert facts["known_ancestors_by_generation"][:4] == [1.0, 1.0, 1.0, 0.0]
    assert facts["equivalent_generations"] == 3.0
    rate = 1 - (1 - 0.375) ** (1 / 2)
    np.testing.assert_allclose(facts["rate_of_inbreeding"], rate)
    np.testing.assert_allclose(facts["effective_size"]["ne"], 1 / (2 * rate))
    assert facts["founders"] == 2 and facts["effective_founders"] == pytest.approx(2.0)
    assert facts["effective_ancestors"]["lowest"] == pytest.approx(2.0)
    assert facts["generation_intervals"]["sire of sires"] == {"years": 2.5, "n": 2}  # a at c, c at e
    assert facts["generation_intervals"]["dam of dams"] == {"years": 2.5, "n": 2}
    assert facts["family_sizes"]["sire"] == {"mean": 2.0, "largest": 2}
    described = mmgibbs.describe_pedigree(small)
    assert described.animals["id"].to_list() == list("abcdefgh")
    assert described.animals.filter(pl.col("reference"))["id"].to_list() == ["g", "h"]
    assert described.animals.filter(id="e").select("sire", "dam", "inbreeding").row(0) == ("c", "d", 0.25)
    assert described.years["animals"].to_list() == [2, 1, 1, 2, 2]
    assert described.ancestors["cumulative_share"][-1] == pytest.approx(1.0)


def test_which_animals_are_described(small):
    facts = mmgibbs.describe_pedigree(pl.read_csv(small).drop("birth")).facts
    assert facts["reference"] == "animals without progeny" and facts["reference_animals"] == 2
    assert facts["generation_intervals"] == {}
    with pytest.raises(ConfigError, match="born-after.*|born_after.*has no births"):
        mmgibbs.describe_pedigree(pl.read_csv(small).drop("birth"), born_after=2005)
    assert mmgibbs.describe_pedigree(small, born_after=2003).facts["reference_animals"] == 4
    with pytest.raises(ConfigError, match="found 2008, after which no animal was born; needed a year before 2008"):
        mmgibbs.describe_pedigree(small, born_after=2008)


def test_command_writes_files_and_a_page(tmp_path, capsys):
    folder = tmp_path / "facts"
    assert main(["pedigree", str(HERD_BOOK), "--output", str(folder)]) == 0
    out = capsys.readouterr().out
    assert "Effective population size" in out and "Generation interval, years" in out
    assert {path.name for path in folder.iterdir()} == {
        "animals.parquet", "years.csv", "ancestors.csv", "pedigree.json", "pedigree.html"
    }  # fmt: skip
    facts = json.loads((folder / "pedigree.json").read_text())
    assert facts["animals"] == 3500 and 20 < facts["effective_size"]["ne"] < 100
    assert "Mean inbreeding by birth year" in (folder / "pedigree.html").read_text(encoding="utf-8")
    assert main(["pedigree", str(HERD_BOOK), "--output", str(folder)]) == 2
    assert "--overwrite" in capsys.readouterr().err


def test_a_pedigree_that_cannot_be_used(tmp_path, capsys):
    (tmp_path / "loop.csv").write_text("id,sire,dam\na,b,0\nb,a,0\n")
    with pytest.raises(DataError, match="loop.csv"):
        mmgibbs.describe_pedigree(tmp_path / "loop.csv")
    assert main(["pedigree", str(tmp_path / "nothing.csv")]) == 2
    assert "nothing.csv" in capsys.readouterr().err


def test_generation_intervals_count_days(tmp_path):
    """s born 2010-12-20, x 2012-01-10, y 2013-01-25, as dates and as numbers."""
    births = ("2010-12-20", "2012-01-10", "2013-01-25", "")
    rows = list(zip("sxyz", "0sxy", "0000", births, strict=True))
    for name, write in (("dates", str), ("numbers", lambda date: date.replace("-", ""))):
        text = "id,sire,dam,birth\n" + "".join(f"{i},{s},{d},{write(b)}\n" for i, s, d, b in rows)
        (tmp_path / f"{name}.csv").write_text(text)
        interval = mmgibbs.describe_pedigree(tmp_path / f"{name}.csv").facts["generation_intervals"]["sire of sires"]
        assert interval["n"] == 2 and interval["years"] == pytest.approx((386 + 381) / 2 / 365.25, abs=0.01)


def test_error_of_the_effective_size():
    """By hand from the table of animals."""
    described = mmgibbs.describe_pedigree(HERD_BOOK)
    chosen = described.animals.filter(pl.col("reference") & (pl.col("equivalent_generations") > 1))
    rate = 1 - (1 - chosen["inbreeding"].to_numpy()) ** (1 / (chosen["equivalent_generations"].to_numpy() - 1))
    size = 1 / (2 * rate.mean())
    expected = 1 / (2 * rate.mean() ** 2) * rate.std(ddof=1) / np.sqrt(rate.size)  # d Ne / d rate, times its error
    np.testing.assert_allclose(described.facts["effective_size"]["ne"], size)
    np.testing.assert_allclose(described.facts["effective_size"]["se"], expected)


def test_bounds_of_the_effective_number_of_ancestors(monkeypatch):
    """With five ancestors looked for, the rest is in others: at most as important as the last, or tiny."""
    monkeypatch.setattr("mmgibbs.population.facts.MAX_ANCESTORS", 5)
    described = mmgibbs.describe_pedigree(HERD_BOOK)
    shares = described.ancestors["marginal_share"].to_numpy()
    bounds, squares = described.facts["effective_ancestors"], np.sum(shares**2)
    assert shares.size == 5 and shares.sum() < 0.9
    np.testing.assert_allclose(bounds["highest"], 1 / squares)
    np.testing.assert_allclose(bounds["lowest"], 1 / (squares + (1 - shares.sum()) * shares[-1]))


def test_codes_of_unknown_parents_are_named_with_the_option_that_takes_them(tmp_path, capsys):
    (tmp_path / "dots.csv").write_text("id,sire,dam\na,.,.\nb,.,.\nc,a,b\nd,a,.\n")
    (note,) = [n for n in mmgibbs.describe_pedigree(tmp_path / "dots.csv").notes if n.startswith("warning: ")]
    assert "'.' (5 times), a parent without a row, is taken for an unknown parent: add it to unknown; " in note
    assert main(["pedigree", str(tmp_path / "dots.csv")]) == 0
    assert "is taken for an unknown parent: add it to --unknown; " in capsys.readouterr().err
    assert main(["pedigree", str(tmp_path / "dots.csv"), "--unknown", ",."]) == 0
    assert "warning" not in capsys.readouterr().err
    rows = [f"A{i},{CODES[i % 6]},{CODES[(i + 1) % 6]}" for i in range(60)]
    (tmp_path / "c.csv").write_text("\n".join(["id,sire,dam", *rows, "B1,A1,A2", "B2,A1,x9", ""]))
    described = mmgibbs.describe_pedigree(tmp_path / "c.csv")
    assert described.facts["animals"] == 63 and described.facts["without_parents"] == 61  # x9 is a founder
    assert any("are taken for an unknown parent: add them to unknown" in note for note in described.notes)
    described = mmgibbs.describe_pedigree(tmp_path / "c.csv", unknown=(*CODES, "x9"))
    assert described.facts["animals"] == 62 and described.facts["one_parent"] == 1
    assert not any(note.startswith("warning") for note in described.notes)


def with_groups(tmp_path, names=("UPG_1", "UPG_2", "UPG_3")):
    """Sixty animals of unknown parents, their groups in place of these, and one of known parents."""
    rows = [f"A{i},{names[i % len(names)]},{names[i % len(names)]}" for i in range(60)]
    (tmp_path / "g.csv").write_text("\n".join(["id,sire,dam", *rows, "B1,A1,A2", ""]))
    return tmp_path / "g.csv"


def test_groups_in_place_of_parents_are_suggested_and_counted(tmp_path, capsys):
    file = with_groups(tmp_path)
    assert main(["pedigree", str(file)]) == 0
    err = capsys.readouterr().err
    assert "warning: g.csv: 'UPG_1' (40 times)" in err and "if they are, give --groups='UPG_*'" in err
    assert main(["pedigree", str(file), "--groups=UPG_*"]) == 0
    said = capsys.readouterr()
    assert "warning" not in said.err
    assert "Groups of unknown parents  3: UPG_1 (20 sires, 20 dams), UPG_2 (20 sires, 20 dams)" in said.out
    described = mmgibbs.describe_pedigree(file, groups="UPG_*")
    assert described.facts["animals"] == 61 and described.facts["without_parents"] == 60
    assert described.facts["groups"]["UPG_3"] == {"sire": 20, "dam": 20}
    assert "groups=['UPG_*']" not in str(described.notes)
    assert any("give groups: [UPG_*]" in note for note in mmgibbs.describe_pedigree(file).notes)
    file = with_groups(tmp_path, ("-1", "-2"))
    assert main(["pedigree", str(file)]) == 0
    assert "give --groups='-*'" in capsys.readouterr().err
    assert main(["pedigree", str(file), "--groups=-*"]) == 0
    assert "2: -1 (30 sires, 30 dams), -2" in capsys.readouterr().out


def test_a_column_of_groups_is_suggested_and_counted(capsys):
    file = str(ROOT / "data_samples" / "sheep" / "pedigree.csv")
    assert main(["pedigree", file]) == 0
    assert "column 'origin' may have the groups of unknown parents: --group-column origin" in capsys.readouterr().err
    assert main(["pedigree", file, "--group-column", "origin"]) == 0
    said = capsys.readouterr()
    assert "Groups of unknown parents" in said.out and "may have the groups" not in said.err


CODES = (".", "-9", "NA", "0", "", "unknown")


def test_effective_size_of_an_old_strain(tmp_path):
    """1 - F after brother-sister mating is P_t = P_(t-1) / 2 + P_(t-2) / 4 of generation t (Falconer & Mackay 1996),
    1.4e-23 after 249: F itself is 1 in 64 bits.
    """
    generations = 250
    rows = ["id,sire,dam", "m0,,", "f0,,"]
    rows += [f"{sex}{t},m{t - 1},f{t - 1}" for t in range(1, generations) for sex in "mf"]
    (tmp_path / "strain.csv").write_text("\n".join(rows) + "\n")
    P = [1.0, 1.0]
    while len(P) < generations:
        P.append(P[-1] / 2 + P[-2] / 4)
    right = 1 / (2 * (1 - P[-1] ** (1 / (generations - 2))))
    size = mmgibbs.describe_pedigree(tmp_path / "strain.csv").facts["effective_size"]
    np.testing.assert_allclose(size["ne"], right)
    assert round(right, 2) == 2.62


def test_panmictic_index_without_cancellation(monkeypatch):
    """Of all animals by pairs, as by the tabular method: a pedigree with unknown parents, selfing and close matings."""
    rng = np.random.default_rng(2)
    parents = rng.integers(-1, np.arange(1, 60)[:, None], (59, 2)).astype(np.int32)
    sire, dam = np.concatenate([[[-1, -1]], parents]).astype(np.int32).T
    F = inbreeding(sire, dam)
    monkeypatch.setattr("mmgibbs.pedigree.panmictic_index.HIGHEST_F", -1.0)
    np.testing.assert_allclose(panmictic_index(sire, dam, F), 1 - F, atol=1e-14)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (["a,,", "b,,", "c,a,b", "d,a,b", "e,c,d"], "2.0 (no SE from one animal), from the increase in inbreeding "),
        (["a,,", "b,,", "c,a,b"], "not known: no reference animal has more than one equivalent generation of known"),
        (["a,,", "b,,", "c,,", "d,,", "e,a,b", "f,c,d", "g,e,f"], "not known: no reference animal with more than one"),
    ],
)
def test_reason_for_an_unknown_effective_size(tmp_path, rows, words):
    """F of e is 1/4 with two equivalent generations: Delta F 1/4, Ne 2."""
    (tmp_path / "p.csv").write_text("\n".join(["id,sire,dam", *rows]) + "\n")
    lines = dict(fact_lines(mmgibbs.describe_pedigree(tmp_path / "p.csv").facts))
    assert lines["Effective population size"].startswith(words)


def test_sires_that_are_dams_are_named(tmp_path):
    """Sire and dam of row 5 are exchanged: a warning; plants that are selfed may be both: a note."""
    rows = ["id,sire,dam", "a,,", "b,,", "c,a,b", "d,b,a"]
    (tmp_path / "p.csv").write_text("\n".join(rows) + "\n")
    said = [note for note in mmgibbs.describe_pedigree(tmp_path / "p.csv").notes if "dam of others" in note]
    assert len(said) == 1 and said[0].startswith("warning: p.csv: 2 animals are sire of some and dam of others: ")
    assert "'a' is a sire in row 4 and a dam in row 5; 'b' is a sire in row 5 and a dam in row 4" in said[0]
    (tmp_path / "p.csv").write_text("\n".join([*rows, "e,c,c"]) + "\n")
    said = [note for note in mmgibbs.describe_pedigree(tmp_path / "p.csv").notes if "dam of others" in note]
    assert said[0].startswith("p.csv: 2 animals are sire of some") and said[0].endswith("these are plants")
    (tmp_path / "p.csv").write_text("\n".join(rows[:-1]) + "\n")
    assert not any("dam of others" in note for note in mmgibbs.describe_pedigree(tmp_path / "p.csv").notes)
