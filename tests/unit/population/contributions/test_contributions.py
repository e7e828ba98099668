"""`mmgibbs contributions`: from a finished run to tables, a page and a list of matings, and what is refused."""

import json

import numpy as np
import polars as pl
import pytest
from reference import tabular
from scipy.optimize import minimize

import mmgibbs
from mmgibbs import Matings
from mmgibbs.cli import main
from mmgibbs.errors import ConfigError, DataError
from mmgibbs.pedigree.inbreeding import inbreeding
from mmgibbs.pedigree.read import read_pedigree
from mmgibbs.pedigree.relationship_products import relationship_block

N_FOUNDERS, N_YOUNG = 16, 40


def herd(seed=1):
    """Pedigree of founders, their progeny, and young animals: sires have even numbers."""
    rng = np.random.default_rng(seed)
    rows = [(f"f{i}", None, None) for i in range(N_FOUNDERS)]
    rows += [(f"p{i}", f"f{2 * rng.integers(0, 4)}", f"f{2 * rng.integers(0, 8) + 1}") for i in range(30)]
    rows += [(f"y{i}", f"p{2 * rng.integers(0, 4)}", f"p{2 * rng.integers(0, 15) + 1}") for i in range(N_YOUNG)]
    return pl.DataFrame(rows, schema=["id", "sire", "dam"], orient="row")


def young(**more):
    ids = [f"y{i}" for i in range(N_YOUNG)]
    return pl.DataFrame({"id": ids, "sex": ["M", "F"] * (N_YOUNG // 2)} | more)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("contributions"), np.random.default_rng(5)
    animals = herd()
    animals.write_csv(folder / "pedigree.csv")
    records = animals.select(animal="id").with_columns(
        milk=pl.Series(rng.normal(30, 3, animals.height)), fat=pl.Series(rng.normal(4, 0.5, animals.height))
    )
    records.write_csv(folder / "records.csv")
    data = {"phenotypes": str(folder / "records.csv"), "pedigree": str(folder / "pedigree.csv")}
    model = {"random": {"genetic": {"level": "animal", "relationship": "pedigree"}}}
    analysis = {"data": data, "traits": {"milk": {}, "fat": {}}, "model": model}
    sampler = {"chains": 2, "burn_in": 20, "samples": 60, "thin": 2, "seed": 1}
    output = {"save_levels": {"genetic": young()["id"].to_list()}}
    mmgibbs.run(analysis | {"sampler": sampler, "output": output}, directory=folder / "gibbs", progress=False)
    starts = {"mode": "fixed", "genetic": {"start": [[4, 0], [0, 0.1]]}, "residual": {"start": [[6, 0], [0, 0.2]]}}
    solved = {"sampler": {"method": "blup"}, "variances": starts}
    mmgibbs.run(analysis | solved, directory=folder / "blup", progress=False)
    young().write_csv(folder / "young.csv")
    return folder


@pytest.fixture(scope="module")
def made(folder):
    return mmgibbs.optimise_contributions(
        folder / "gibbs", young(), folder / "made", matings=Matings(20, max_females=1), trait="milk", rate=0.05,
        progress=False, report=True,
    )  # fmt: skip


def optimise(folder, candidates=None, run="blup", **given):
    given = {"matings": 20, "trait": "milk", "rate": 0.05, "progress": False} | given
    return mmgibbs.optimise_contributions(folder / run, young() if candidates is None else candidates, **given)


def coancestry_by_hand(folder, ids):
    read = read_pedigree(folder / "pedigree.csv")
    codes = read.codes(ids).to_numpy()
    return relationship_block(read.sire, read.dam, inbreeding(read.sire, read.dam), codes) / 2


def test_the_plan_by_hand(folder, made):
    frame, facts = made.candidates, made.facts
    c, f = frame["contribution"].to_numpy(), coancestry_by_hand(folder, frame["id"])
    values = mmgibbs.open_run(folder / "gibbs").solutions.filter(term="genetic", trait="milk")
    values = frame.join(values, left_on="id", right_on="level", maintain_order="left")["mean"]
    np.testing.assert_allclose(frame["value"], values)
    is_male = (frame["sex"] == "M").to_numpy()
    equal = np.full(N_YOUNG, 1 / N_YOUNG)
    base = equal @ f @ equal
    np.testing.assert_allclose(facts["coancestry_limit"], base + 0.05 * (1 - base))
    np.testing.assert_allclose(c @ f @ c, facts["coancestry"])
    assert c @ f @ c <= facts["coancestry_limit"] * (1 + 1e-8)
    np.testing.assert_allclose((c[is_male].sum(), c[~is_male].sum()), 0.5)
    assert c[~is_male].max() <= 1 / 40 + 1e-12
    np.testing.assert_allclose(facts["gain"], (c - equal) @ values.to_numpy())
    assert frame.group_by("sex").agg(pl.col("matings").sum())["matings"].to_list() == [20, 20]


def test_frontier_and_pairs(folder, made):
    frontier = made.frontier
    assert (frontier["coancestry"].diff() > -1e-9).all() and (frontier["gain"].diff() > -1e-9).all()
    assert frontier["chosen"].sum() == 1
    np.testing.assert_allclose(frontier.filter("chosen")["gain"], made.facts["gain"])
    f = coancestry_by_hand(folder, young()["id"])
    place = {id_: i for i, id_ in enumerate(young()["id"])}
    for row in made.matings.iter_rows(named=True):
        np.testing.assert_allclose(row["inbreeding"], f[place[row["sire"]], place[row["dam"]]], atol=1e-12)
    assert made.matings["matings"].sum() == 20
    of_sires = dict(made.matings.group_by("sire").agg(pl.col("matings").sum()).iter_rows())
    used = made.candidates.filter(pl.col("matings") > 0, sex="M")
    assert of_sires == dict(used.select("id", "matings").rows())
    mean = (made.matings["matings"] * made.matings["inbreeding"]).sum() / 20
    assert mean <= made.facts["inbreeding_at_random"]


def test_draws(folder, made):
    """The run has kept 60 draws of each young animal: their plans, and gains of the plans over them."""
    assert made.facts["draws"] == 60
    plans = {row["plan"]: row for row in made.plans.iter_rows(named=True)}
    assert plans["perfect"]["gain"] >= plans["robust"]["gain"]
    assert plans["robust"]["gain_worst"] >= plans["plan"]["gain_worst"] - 1e-9
    np.testing.assert_allclose(plans["plan"]["gain"], made.facts["gain"])
    frame = made.candidates
    np.testing.assert_allclose(frame["mean_of_draws"].sum(), 1.0)
    assert frame["p_selected"].is_between(0, 1).all() and (frame["low_of_draws"] <= frame["high_of_draws"]).all()
    assert optimise(folder, run="gibbs", draws=7).facts["draws"] <= 7
    few = optimise(folder, run="gibbs", draws=0)
    assert few.facts["draws"] == 0 and few.candidates["p_selected"].null_count() == N_YOUNG and few.notes == ()


def test_draws_of_some_candidates_alone(folder):
    """Those without kept draws are left out of the plans of draws, and named; one that must be mated forbids them."""
    more = pl.concat([young(), pl.DataFrame({"id": ["p2", "p1"], "sex": ["M", "F"]})])
    made = optimise(folder, more, run="gibbs", draws=5)
    assert made.facts["draws"] == 4  # every twelfth of 30 in each of two chains
    said = "the robust plan and what the draws say leave out 2 candidates, such as 'p2', 'p1', that have no kept draws"
    assert made.notes == (said,)
    made = optimise(folder, more.with_columns(min=pl.Series([0] * N_YOUNG + [2, 0])), run="gibbs", draws=5)
    assert made.facts["draws"] == 0 and made.notes[0].startswith("warning: no uncertainty of the contributions")
    assert made.candidates.filter(id="p2")["matings"][0] >= 2


def test_files_and_page(folder, made):
    names = sorted(path.name for path in (folder / "made").iterdir())
    tables = [f"{name}.{end}" for name in ("candidates", "frontier", "matings", "plans") for end in ("csv", "parquet")]
    assert names == sorted([*tables, "contributions.html", "contributions.json"])
    assert json.loads((folder / "made" / "contributions.json").read_text())["matings"] == 20
    page = (folder / "made" / "contributions.html").read_text()
    assert "Gain against coancestry" in page and "Perfect knowledge" in page and made.matings["sire"][0] in page
    with pytest.raises(ConfigError, match="holds contributions"):
        optimise(folder, output=folder / "made")


def test_an_index_weighs_traits(folder):
    both = optimise(folder, trait=None, index={"milk": 2.0, "fat": -1.0})
    values = {t: dict(optimise(folder, trait=t).candidates.select("id", "value").iter_rows()) for t in ("milk", "fat")}
    expected = [2 * values["milk"][i] - values["fat"][i] for i in both.candidates["id"]]
    np.testing.assert_allclose(both.candidates["value"], expected)
    assert both.facts["criterion"] == "2 x milk - 1 x fat"


def test_semen_that_is_bought_and_matings_that_are_made(folder):
    free = optimise(folder).candidates
    poor = free.filter((pl.col("matings") == 0) & (pl.col("sex") == "M"))["id"][-1]
    dam = free.filter((pl.col("matings") == 0) & (pl.col("sex") == "F"))["id"][-1]
    bought = optimise(folder, young().with_columns(min=pl.when(pl.col("id") == poor).then(3)))
    assert bought.candidates.filter(id=poor)["matings"][0] == 3
    mated = optimise(folder, matings=Matings(20, mated=pl.DataFrame({"sire": [poor, poor], "dam": [dam, dam]})))
    assert mated.matings.filter("made").rows()[0][:3] == (poor, dam, 2)
    assert mated.matings["matings"].sum() == 20
    assert mated.candidates.filter(id=dam)["matings"][0] >= 2


def test_genomic_coancestry_counts_alleles_alike_in_state(folder, tmp_path):
    rng = np.random.default_rng(8)
    codes = rng.integers(0, 3, (N_YOUNG, 60))
    frame = pl.DataFrame({"animal": young()["id"]} | {f"s{j}": codes[:, j] for j in range(60)})
    frame.write_csv(tmp_path / "genotypes.csv")
    made = optimise(folder, genotypes=tmp_path / "genotypes.csv", rate=0.01)
    z = codes - 1.0
    alike = (1 + z @ z.T / 60) / 2 + 0.0005 * np.eye(N_YOUNG)
    place = [young()["id"].to_list().index(i) for i in made.candidates["id"]]
    c = made.candidates["contribution"].to_numpy()
    np.testing.assert_allclose(c @ alike[np.ix_(place, place)] @ c, made.facts["coancestry"], rtol=1e-6)
    np.testing.assert_allclose(made.facts["coancestry_of_equal_contributions"], alike.mean(), rtol=1e-6)
    frame.tail(-1).write_csv(tmp_path / "fewer.csv")
    with pytest.raises(DataError, match=r"row 1: found 'y0'\nneeded ids of genotyped animals of fewer.csv"):
        optimise(folder, genotypes=tmp_path / "fewer.csv")


@pytest.mark.parametrize(
    ("candidates", "given", "message"),
    [
        (young().with_columns(sex=pl.lit("M")), {}, "all 40 candidates are males; needed females as well"),
        (young().with_columns(sex=pl.lit("x")), {}, "row 1: found sex 'x'\n.*\nneeded M or F, male or female"),
        (young().drop("sex"), {}, "found no column sex among id; needed one with M or F"),
        (pl.concat([young(), young().head(1)]), {}, "row 41: found 'y0' again\nneeded every candidate once"),
        (young().with_columns(id=pl.col("id").replace("y3", "Y3")), {}, "row 4: found 'Y3'\n.*'Y3' may be 'y3'"),
        (young(), {"matings": Matings(30, max_females=1)}, "20 females can have 20 matings .* 30 .*max_females"),
        (young(max=[1] * 40), {"matings": 30}, "20 males can have 20 matings in total, needed 30 .*column max"),
        (young(min=[2] * 40), {}, "males must have 40 matings in total .*more than the 20 of matings"),
        (young(min=[2] * 40, max=[1] * 40), {}, "found min above max"),
        (young(min=["a"] + [""] * 39), {}, "row 1: found min 'a'\nneeded a whole number of matings"),
        (pl.DataFrame({"id": ["p0", "p1"], "sex": ["F", "M"]}), {}, "found sex female of 'p0', a sire in the pedigree"),
    ],
)  # fmt: skip
def test_candidates_that_cannot_be_used_are_named(folder, candidates, given, message):
    with pytest.raises(DataError, match=f"(?s){message}"):
        optimise(folder, candidates, **given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"trait": None}, r"several traits \(milk, fat\); needed one of them \(trait\) or their weights \(index\)"),
        ({"trait": "mlik"}, "'mlik' is no trait with breeding values; did you mean 'milk'"),
        ({"index": {"milk": 1.0}}, "trait cannot be combined with index"),
        ({"coancestry": 0.01, "rate": None}, "limit of coancestry of 0.0100 cannot be met: .* is (between )?0.0"),
        ({"coancestry": 0.1}, "coancestry cannot be combined with rate"),
        ({"matings": 0}, "contributions: matings: expected a whole number of 1 or more, got 0"),
        ({"worst": 0}, "contributions: worst: expected a number from 0.001 to 1, got 0"),
        ({"genotypes": {"map": "a.txt"}}, "map belongs to a file of genotypes"),
        ({"report": True}, "report needs output"),
    ],
)
def test_arguments_that_cannot_be_used_are_named(folder, given, message):
    with pytest.raises(ConfigError, match=message):
        optimise(folder, **given)


def test_one_candidate_of_a_sex_and_one_plan_are_said(folder, capsys):
    few = young().filter((pl.col("sex") == "F") | (pl.col("id") == "y0"))
    made = optimise(folder, few, matings=Matings(20, max_females=1))
    assert made.notes[0].startswith("there is one male among the candidates: it is a parent of all progeny")
    assert made.notes[1].startswith("there is nothing to choose: the limits of matings")
    few.write_csv(folder / "few.csv")
    options = "--matings 20 --trait milk --max-females 1 --no-report --output".split()
    assert main(["contributions", str(folder / "blup"), str(folder / "few.csv"), *options, str(folder / "few")]) == 0
    out = capsys.readouterr().out
    assert "1 male, 20 females" in out and "Gain of the plan  0 above" in out  # not 2.8e-16
    made = optimise(folder, few)
    assert not any("nothing to choose" in note for note in made.notes)


def test_limits_that_do_nothing_or_too_much_are_said(folder):
    said = [n for n in optimise(folder, rate=None, coancestry=0.9).notes if n.startswith("the limit of coancestry")]
    assert len(said) == 1 and "of 0.9000 changes nothing: the plan with the highest gain of all has" in said[0]
    assert not any("limit of coancestry" in note for note in optimise(folder).notes)
    said = [note for note in optimise(folder, matings=1).notes if note.startswith("warning: in whole matings")]
    assert len(said) == 1 and "1 mating is too few to be shared as the plan asks" in said[0]
    assert not any("in whole matings" in note for note in optimise(folder, matings=500).notes)
    said = optimise(folder).notes[0]
    assert said.startswith("the uncertainty of the contributions and a robust plan need draws")
    assert "(method blup or reml)" in said


def test_matings_of_others_are_named(folder):
    with pytest.raises(DataError, match="table row 1: found sire 'f0', which is no candidate"):
        optimise(folder, matings=Matings(20, mated=pl.DataFrame({"sire": ["f0"], "dam": ["y1"]})))
    with pytest.raises(DataError, match="found sire 'y1', a female"):
        optimise(folder, matings=Matings(20, mated=pl.DataFrame({"sire": ["y1"], "dam": ["y0"]})))
    with pytest.raises(DataError, match="found 2 matings of 'y1' in table"):
        optimise(
            folder,
            matings=Matings(20, mated=pl.DataFrame({"sire": ["y0"], "dam": ["y1"], "matings": [2]}), max_females=1),
        )


def test_the_command(folder, capsys):
    arguments = [str(folder / "blup"), str(folder / "young.csv"), "--matings", "20", "--no-report"]
    assert main(["contributions", *arguments, "--index", "milk=1,fat=2.5", "--output", str(folder / "out")]) == 0
    out = capsys.readouterr().out
    assert "20 males, 20 females" in out and "1 x milk + 2.5 x fat" in out and "expected inbreeding" in out
    assert (folder / "out" / "matings.csv").exists() and not (folder / "out" / "contributions.html").exists()
    assert main(["contributions", *arguments, "--index", "milk"]) == 2
    assert "--index: expected TRAIT=WEIGHT,..., got 'milk'" in capsys.readouterr().err
    assert main(["contributions", *arguments]) == 2
    assert "(--trait) or their weights (--index)" in capsys.readouterr().err


@pytest.fixture(scope="module")
def lines(tmp_path_factory):
    """(run, ids, K, values) of lines after generations of selfing; K by the tabular method."""
    folder, rng = tmp_path_factory.mktemp("lines"), np.random.default_rng(8)
    founders = [f"p{i}" for i in range(6)]
    ids = [f"L{i}" for i in range(14)]
    sire = np.concatenate([np.full(6, -1), rng.integers(0, 6, 14)])
    dam = np.concatenate([np.full(6, -1), rng.integers(0, 6, 14)])
    generations = np.concatenate([np.full(6, 5), rng.integers(0, 7, 14)])
    names = np.array([*founders, *ids, None], object)
    parents = {"sire": list(names[sire]), "dam": list(names[dam])}
    frame = pl.DataFrame({"id": [*founders, *ids]} | parents | {"g": generations})
    order = rng.permutation(20)  # rows in any order
    records = pl.DataFrame({"id": ids, "y": rng.normal(size=14)})
    source = {
        "data": {"phenotypes": records, "pedigree": frame[order]},
        "traits": ["y"],
        "model": {"random": {"genetic": {"level": "id", "relationship": {"kind": "pedigree", "selfing": "g"}}}},
        "variances": {"mode": "fixed", "genetic": 1, "residual": 1},
        "sampler": {"method": "blup"},
    }
    run = mmgibbs.run(source, directory=folder / "run", progress=False)
    K = tabular.selfed_relationship(sire, dam, generations)[6:, 6:]
    values = pl.DataFrame({"level": ids}).join(run.solutions.filter(term="genetic"), on="level", maintain_order="left")
    return run.directory, ids, K, values["mean"].to_numpy()


def test_lines_may_be_either_parent(lines):
    """Contributions of one sum, 1, with relationships of selfed lines: as SLSQP; matings of whole numbers, by roles."""
    run, ids, K, b = lines
    equal = np.full(len(ids), 1 / len(ids))
    limit = equal @ K @ equal / 2 * 1.3
    given = {"matings": Matings(25, monoecious=True), "coancestry": limit, "progress": False}
    plan = mmgibbs.optimise_contributions(run, pl.DataFrame({"id": ids}), **given)
    found = pl.DataFrame({"id": ids}).join(plan.candidates, on="id", maintain_order="left")
    c = found["contribution"].to_numpy()
    right = minimize(
        lambda x: -b @ x, equal, jac=lambda x: -b, method="SLSQP", bounds=[(0, 1)] * len(ids),
        constraints=[
            {"type": "eq", "fun": lambda x: x.sum() - 1},
            {"type": "ineq", "fun": lambda x: limit - x @ K @ x / 2, "jac": lambda x: -K @ x},
        ],
        options={"ftol": 1e-14, "maxiter": 2000},
    )  # fmt: skip
    np.testing.assert_allclose((c.sum(), c @ K @ c / 2, b @ c), (1, limit, -right.fun), rtol=1e-5)
    assert found["sex"].null_count() == len(ids) and plan.facts["coancestry_source"] == "pedigree with selfing"
    assert found["matings"].sum() == 50 and plan.matings["matings"].sum() == 25
    roles = pl.concat([plan.matings.select("matings", id=role) for role in ("sire", "dam")])
    counts = dict(roles.group_by("id").agg(pl.col("matings").sum()).iter_rows())
    assert counts == dict(found.filter(pl.col("matings") > 0).select("id", "matings").iter_rows())
    sires, dams = (np.array([ids.index(i) for i in plan.matings[role]]) for role in ("sire", "dam"))
    np.testing.assert_allclose(plan.matings["inbreeding"], K[sires, dams] / 2, atol=1e-9)


def test_plants_have_no_sex(lines):
    run, ids, *_ = lines
    plants = pl.DataFrame({"id": ids})
    for table, given, message in (
        (plants, {}, r"found no column sex .*\(monoecious=True for plants that may be either parent\)"),
        (plants.with_columns(sex=pl.lit("M")), {"monoecious": True}, "found a column 'sex', but monoecious says"),
        (plants.with_columns(max=pl.lit(1)), {"monoecious": True}, r"14 plants can have 14 .* 50 \(two for each"),
        (plants, {"monoecious": True, "max_males": 2}, "max_males cannot be combined with monoecious"),
    ):
        with pytest.raises((ConfigError, DataError), match=message):
            mmgibbs.optimise_contributions(run, table, matings=Matings(25, **given), progress=False)


def test_mated_plants_and_the_page(lines, tmp_path):
    """A plant may be sire in one mating that is made and dam in another; the command prints plants."""
    run, ids, *_ = lines
    pl.DataFrame({"id": ids}).write_csv(tmp_path / "plants.csv")
    pl.DataFrame({"sire": ["L0", "L1", "L2"], "dam": ["L1", "L0", "L2"]}).write_csv(tmp_path / "mated.csv")
    options = ["--matings", "20", "--monoecious", "--mated", str(tmp_path / "mated.csv"), "--rate", "0.3"]
    command = ["contributions", str(run), str(tmp_path / "plants.csv"), *options, "--output", str(tmp_path / "out")]
    assert main(command) == 0
    made = pl.read_parquet(tmp_path / "out" / "matings.parquet")
    of = made.filter("made").select("sire", "dam", "matings").rows()
    assert of == [("L0", "L1", 1), ("L1", "L0", 1), ("L2", "L2", 1)]
    assert made["matings"].sum() == 20
    assert "plants" in (tmp_path / "out" / "contributions.html").read_text(encoding="utf-8")
