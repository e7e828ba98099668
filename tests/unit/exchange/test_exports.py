"""Deregressed proofs (Garrick et al. 2009) and draws as tables."""

import numpy as np
import polars as pl
import pytest
from helpers.finished_run import write_run

import mmgibbs
from mmgibbs.cli import main
from mmgibbs.errors import ConfigError, MmgibbsError
from mmgibbs.exchange.deregression import Evaluated, deregress, export_deregressed, weigh
from mmgibbs.exchange.draws_write import draws_frame, export_draws
from mmgibbs.report.finished import read_finished

LAMBDA = 3.0  # of h2 = 0.25


def evaluated(sire, dam, ebv, reliability, inbreeding=None):
    F = np.zeros(len(ebv)) if inbreeding is None else np.array(inbreeding, float)
    return Evaluated(np.array(sire), np.array(dam), np.array(ebv, float), np.array(reliability, float), F)


def test_formulas_of_the_paper():
    """Heritability .25; parents with EBVs 10 and 2 and reliabilities .97 and .36, their progeny 15 and .68."""
    found = deregress(evaluated([-1, -1, 0], [-1, -1, 1], [10, 2, 15], [0.97, 0.36, 0.68]), 0.25)
    r_pa = (0.97 + 0.36) / 4
    alpha, delta = 1 / (0.5 - r_pa), (0.5 - r_pa) / (1 - 0.68)
    of_parents = LAMBDA * (0.5 * alpha - 4) + 0.5 * LAMBDA * np.sqrt(alpha**2 + 16 / delta)
    own = delta * of_parents + 2 * LAMBDA * (2 * delta - 1)
    assert found.parent_average[2] == 6.0
    assert found.information[2] == pytest.approx(own)
    assert found.reliability[2] == pytest.approx(1 - LAMBDA / (own + LAMBDA))
    assert found.proof[2] == pytest.approx((-2 * LAMBDA * 6 + (own + 2 * LAMBDA) * 15) / own)
    assert (own, found.proof[2], found.reliability[2]) == pytest.approx((5.0763, 25.6377, 0.62854), abs=5e-5)
    assert weigh(np.array([0.62854]), 0.25, 0.5) == pytest.approx(3 / (0.5 + 0.37146 / 0.62854))


def test_single_animals():
    found = deregress(evaluated([-1], [-1], [4.0], [0.4]), 0.25)
    assert found.proof[0] == pytest.approx(10.0) and found.reliability[0] == pytest.approx(0.4)
    assert found.information[0] == pytest.approx(2.0)  # two records: 2 / (2 + 3) = .4
    found = deregress(evaluated([-1, -1, 0], [-1, -1, 1], [10, 2, 6], [0.97, 0.36, (0.97 + 0.36) / 4]), 0.25)
    assert np.isnan(found.proof[2]) and np.isnan(found.reliability[2])


def test_the_way_back():
    """The two equations of parent average and animal give EBVs and prediction error variances again, with any F."""
    rng = np.random.default_rng(1)
    ebv, reliability = rng.normal(size=9), rng.uniform(0.3, 0.5, 9)
    reliability[6:] = 0.75
    sire, dam = np.array([-1] * 6 + [0, 1, -1]), np.array([-1] * 6 + [3, 4, 5])
    F = np.array([0, 0.1, 0, 0.05, 0, 0.2, 0.125, 0.0, 0.25])
    given = evaluated(sire, dam, ebv, reliability, F)
    found = deregress(given, 0.25)
    assert found.parent_average[8] == ebv[5] / 2
    for i in (6, 7, 8):
        if sire[i] >= 0:
            parents = [sire[i], dam[i]]
            v = (2 + F[parents].sum() + 4 * F[i]) / 4
            d, share = (2 - F[parents].sum()) / 4, 1.0
            mean, errors = ebv[parents].mean(), given.errors[parents].sum() / 4
        else:
            v, d, share = 1 + F[dam[i]], (3 - F[dam[i]]) / 4, 0.5
            mean, errors = ebv[dam[i]], given.errors[dam[i]]
        prior = LAMBDA * np.array([[1 / v + share**2 / d, -share / d], [-share / d, 1 / d]])
        # information on the parents, such that their error variance is right: C_11 - C_12^2 / C_22 = lambda / errors
        C = prior + np.diag([0.0, found.information[i]])
        C[0, 0] = LAMBDA / errors + C[0, 1] ** 2 / C[1, 1]
        right = np.array([(C @ [mean, ebv[i]])[0], found.information[i] * found.proof[i]])
        np.testing.assert_allclose(np.linalg.solve(C, right), [mean, ebv[i]], atol=1e-9)
        assert LAMBDA * np.linalg.inv(C)[1, 1] == pytest.approx(given.errors[i], rel=1e-8)


GENETIC = {"level": "animal", "relationship": "pedigree"}


def solved(records, folder, name, effect, **tables):
    """A run by BLUP with one random effect and without a mean."""
    source = {
        "data": {"phenotypes": records} | tables,
        "traits": ["y"],
        "model": {"intercept": False, "random": {name: effect}},
        "variances": {"mode": "fixed", name: 1.0, "residual": 3.0},
        "sampler": {"method": "blup", "tolerance": 1e-12},
    }
    return mmgibbs.run(source, directory=folder / "run", progress=False)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Dams with records, and one progeny each with records; no fixed effects, so that records are deviations."""
    rng = np.random.default_rng(7)
    folder = tmp_path_factory.mktemp("run")
    n = rng.integers(0, 4, 40)
    n[::2] = np.maximum(n[::2], 1)
    animals = [f"D{i // 2}" if i % 2 == 0 else f"P{i // 2}" for i in range(40)]
    dams = [None if i % 2 == 0 else f"D{i // 2}" for i in range(40)]
    pedigree = pl.DataFrame({"id": animals, "sire": [None] * 40, "dam": dams}, schema_overrides={"sire": pl.String})
    records = pl.DataFrame({"animal": np.repeat(animals, n), "y": rng.normal(size=n.sum())})
    return solved(records, folder, "genetic", GENETIC, pedigree=pedigree), records


def test_proofs_are_the_means_of_the_records(run, tmp_path):
    """Exact with one known parent: what an animal's records say, as many as they are, whatever its dam."""
    result, records = run
    folder, notes = export_deregressed(result.directory, tmp_path / "proofs")
    table = pl.read_parquet(folder / "deregressed.parquet").filter(pl.col("animal").str.starts_with("P"))
    means = records.group_by("animal").agg(pl.col("y").mean(), n=pl.len()).filter(pl.col("animal").str.starts_with("P"))
    both = table.join(means, on="animal", how="full", coalesce=True)
    assert both.null_count().sum_horizontal()[0] == 0
    assert both["deregressed"].to_numpy() == pytest.approx(both["y"].to_numpy(), abs=1e-8)
    assert both["information"].to_numpy() == pytest.approx(both["n"].to_numpy(), abs=1e-8)
    n = both["n"].to_numpy()
    assert both["reliability"].to_numpy() == pytest.approx(n / (n + 3))
    assert both["weight"].to_numpy() == pytest.approx(3 / (0.5 + 3 / n))
    without = 20 - means.height
    assert notes == [f"y: {without} animals have no information beyond the parents: left out"]


def test_inbreeding_of_the_run_counts(tmp_path):
    """Progeny of full sibs, whose prediction error variances are in units of 1 + F."""
    pedigree = {"id": ["S", "D", "A", "B", "I"], "sire": ["0", "0", "S", "S", "A"], "dam": ["0", "0", "D", "D", "B"]}
    records = pl.DataFrame({"animal": pedigree["id"], "y": [1.0, -2.0, 3.0, 0.5, 4.0]})
    solutions = solved(records, tmp_path, "genetic", GENETIC, pedigree=pl.DataFrame(pedigree)).solutions
    rows = {row["level"]: row for row in solutions.iter_rows(named=True)}
    ebv, reliability, F = ([rows[a][c] or 0.0 for a in "SDABI"] for c in ("mean", "reliability", "inbreeding"))
    assert F[4] == 0.25
    proofs = deregress(evaluated([-1, -1, 0, 0, 2], [-1, -1, 1, 1, 3], ebv, reliability, F), 0.25)
    export_deregressed(tmp_path / "run", tmp_path / "out")
    table = pl.read_parquet(tmp_path / "out" / "deregressed.parquet").filter(animal="I")
    assert table["deregressed"][0] == pytest.approx(proofs.proof[4])
    assert table["reliability"][0] == pytest.approx(proofs.reliability[4])


def test_command(run, tmp_path, capsys):
    result, _ = run
    target = tmp_path / "out"
    command = ["export", "--format", "deregressed", str(result.directory), "--output", str(target)]
    assert main([*command, "--unexplained", "0.1"]) == 0
    assert f"written to {target}" in capsys.readouterr().out
    columns = ["animal", "trait", "deregressed", "reliability", "weight"]
    assert pl.read_csv(target / "deregressed.csv").columns[:5] == columns
    assert main(command) == 2
    assert "holds deregressed proofs (deregressed.csv" in capsys.readouterr().err
    assert main([*command, "--overwrite", "--unexplained", "1"]) == 2
    assert "expected a number from 0 to below 1, got '1'" in capsys.readouterr().err
    assert main([*command[:-1], str(result.directory)]) == 2
    assert "is the folder of a run" in capsys.readouterr().err


def test_what_has_no_proofs(tmp_path):
    records = pl.DataFrame({"herd": ["a", "b"] * 10, "y": np.arange(20.0)})
    solved(records, tmp_path, "herd", {})
    with pytest.raises(MmgibbsError, match="has no heritability of a direct effect of a pedigree"):
        export_deregressed(tmp_path / "run", tmp_path / "out")


@pytest.mark.parametrize("mixed", [True, False])
def test_the_table_has_every_draw(tmp_path, mixed, capsys):
    run = write_run(tmp_path / "run", mixed=mixed)
    assert main(["export", "--format", "draws", str(run)]) == 0
    assert capsys.readouterr().out == f"written to {tmp_path / 'run-draws'}\n"
    table = pl.read_parquet(tmp_path / "run-draws" / "draws.parquet")
    expected = read_finished(run).draws
    assert len(expected) >= 4
    assert table.columns == ["chain", "draw", *expected]
    chains, kept = next(iter(expected.values())).shape
    assert table.height == chains * kept
    assert table["chain"].to_list() == [chain for chain in range(1, chains + 1) for _ in range(kept)]
    for name, values in expected.items():
        second = table.filter(chain=2).sort("draw")[name].to_numpy()
        assert np.array_equal(second, values[1])
    from_csv = pl.read_csv(tmp_path / "run-draws" / "draws.csv", infer_schema_length=None)
    assert from_csv.equals(table), "every digit"


def test_what_is_refused(tmp_path, capsys):
    run = write_run(tmp_path / "run")
    export_draws(run, tmp_path / "out")
    assert main(["export", "--format", "draws", str(run), "--output", str(tmp_path / "out")]) == 2
    assert "holds draws (draws.csv, draws.json, draws.parquet)" in capsys.readouterr().err
    export_draws(run, tmp_path / "out", overwrite=True)
    with pytest.raises(ConfigError, match="is the folder of a run"):
        export_draws(run, run)
    with pytest.raises(ConfigError, match="export: .*nothing"):
        export_draws(tmp_path / "nothing")
    with pytest.raises(ConfigError, match=r"expected a run with draws \(method: gibbs\), got one of method reml"):
        export_draws(write_run(tmp_path / "reml", method="reml"))
    (run / "draws.nc").unlink()
    with pytest.raises(ConfigError, match="export: "):
        export_draws(run, tmp_path / "other")


def test_parameters_that_are_called_as_the_numbers():
    assert draws_frame({"chain": np.zeros((2, 3)), "b": np.ones((2, 3))}).columns == ["chain", "draw", "chain_", "b"]
