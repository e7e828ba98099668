"""SNPs that the fixed effects hold: not tested, with their reason; the others against least squares.

Animals have one record each and no relationships, so that V = 2 I: effects and standard errors of the tests are those
of least squares with numpy, b = x'My / x'Mx and sqrt(2 / x'Mx), M = I - X (X'X)^- X'.
"""

import json

import numpy as np
import polars as pl
import pytest

import mmgibbs
from mmgibbs.association.statistics import false_discovery_rates, genomic_inflation

N, P = 90, 130  # more SNPs than calibrate tests
HERD, TWICE, NEARLY, SECOND_ALONE = 5, 6, 7, 8
QUIET = {"progress": False, "quality": {"maf": 0.0}, "level": "id"}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Two SNPs are functions of the herd, one is but for an animal, and one among the animals with the second trait."""
    folder, rng = tmp_path_factory.mktemp("confounded"), np.random.default_rng(4)
    herd = np.arange(N) % 3
    copies = rng.integers(0, 3, (N, P))
    copies[:, HERD], copies[:, TWICE], copies[:, NEARLY] = herd == 1, 2 - herd, herd == 1
    copies[0, NEARLY] = 1
    has_second = np.arange(N) >= 30
    copies[has_second, SECOND_ALONE] = 2 * (herd[has_second] == 2)
    y = rng.normal(10, 1.4, N) + herd
    z = np.where(has_second, rng.normal(5, 1.4, N), np.nan)
    ids = [f"a{i}" for i in range(N)]
    pl.DataFrame({"id": ids, "herd": [f"h{h}" for h in herd], "y": y, "z": z}).with_columns(
        pl.col("z").fill_nan(None)
    ).write_csv(folder / "records.csv")
    names = [f"s{j}" for j in range(P)]
    pl.DataFrame({"id": ids} | dict(zip(names, copies.T, strict=True))).write_csv(folder / "snps.csv")
    places = {"snp": names, "chromosome": ["1"] * P, "position": list(range(P))}
    pl.DataFrame(places).write_csv(folder / "map.csv")
    return folder, herd, copies.astype(float), {"y": y, "z": z}


def run_traits(folder, traits, name):
    genetic, residual = (v if len(traits) == 1 else (v * np.eye(2)).tolist() for v in (0.5, 1.5))
    analysis = {
        "data": {"phenotypes": str(folder / "records.csv"),
                 "genotypes": {"file": str(folder / "snps.csv"), "map": str(folder / "map.csv")}},
        "traits": traits, "model": {"fixed": {"herd": {}}, "random": {"id": {}}},
        "variances": {"mode": "fixed", "id": genetic, "residual": residual}, "sampler": {"method": "blup"},
    }  # fmt: skip
    return mmgibbs.run(analysis, directory=folder / name, progress=False).directory


@pytest.fixture(scope="module")
def runs(data):
    return {len(traits): run_traits(data[0], traits, "-".join(traits)) for traits in (["y"], ["y", "z"])}


def least_squares(x, y, herd):
    """Effect and standard error."""
    known = ~np.isnan(y)
    X = (herd[known, None] == np.arange(3)).astype(float)
    center = lambda v: v - X @ np.linalg.lstsq(X, v, rcond=None)[0]
    x, y = center(x[known]), center(y[known])
    return x @ y / (x @ x), np.sqrt(2 / (x @ x))


@pytest.mark.parametrize("limit", [600.0, 0.0])
def test_confounded_snps_are_not_tested(data, runs, limit):
    folder, herd, copies, traits = data
    tested = mmgibbs.gwas(runs[1], exact_limit=limit, output=folder / f"one-{limit}", **QUIET)
    values, others = tested.values, [j for j in range(P) if j not in (HERD, TWICE)]
    reasons = values["left_out"].to_list()
    assert [j for j in range(P) if reasons[j]] == [HERD, TWICE]
    assert {reasons[HERD], reasons[TWICE]} == {"confounded with fixed effects"}
    columns = ["effect_y", "se_y", "log10_p_y", "q_y"]
    assert values.select(columns)[[HERD, TWICE]].null_count().row(0) == (2, 2, 2, 2)
    assert not values["exact"][[HERD, TWICE]].any()
    assert tested.facts["tested"] == P - 2
    assert json.loads((folder / f"one-{limit}" / "gwas.json").read_text())["left_out"][reasons[HERD]] == 2
    assert "2 left out (confounded with fixed effects)" in tested.notes
    p = 10.0 ** -values["log10_p_y"].to_numpy()[others]
    np.testing.assert_allclose(values["q_y"].to_numpy()[others], false_discovery_rates(p))
    np.testing.assert_allclose(tested.facts["lambda"]["y"], genomic_inflation(-np.log10(p)))
    if limit:
        expected = np.array([least_squares(copies[:, j], traits["y"], herd) for j in others])
        np.testing.assert_allclose(values.select("effect_y", "se_y").to_numpy()[others], expected, rtol=1e-7)


def test_the_threshold_counts_no_confounded_snp(data, runs, tmp_path):
    """As the effective number of tests of a file without them."""
    folder = data[0]
    without = pl.read_csv(folder / "snps.csv").drop(f"s{HERD}", f"s{TWICE}")
    without.write_csv(tmp_path / "snps.csv")
    found = [mmgibbs.gwas(runs[1], file, **QUIET) for file in (folder / "snps.csv", tmp_path / "snps.csv")]
    counts = [each.facts["effective_tests"] for each in found]
    np.testing.assert_allclose(counts[0], counts[1], rtol=1e-12)


@pytest.mark.parametrize("limit", [600.0, 0.0])
def test_a_snp_is_tested_on_the_traits_where_its_effect_is_estimable(data, runs, limit):
    _, herd, copies, traits = data
    tested = mmgibbs.gwas(runs[2], exact_limit=limit, **QUIET)
    values = tested.values
    assert values["left_out"][SECOND_ALONE] is None and values["left_out"][HERD] is not None
    row = values.row(SECOND_ALONE, named=True)
    assert row["log10_p_z"] is None and row["q_z"] is None and row["log10_p_joint"] is None
    expected = least_squares(copies[:, SECOND_ALONE], traits["y"], herd)  # R is diagonal: traits do not help each other
    np.testing.assert_allclose([row["effect_y"], row["se_y"]], expected, rtol=1e-7)
    assert "2 SNPs are not tested on z: confounded with its fixed effects" in tested.notes
    assert values["log10_p_z"].is_not_null().sum() == P - 4  # NEARLY has the first animal alone, without that trait


@pytest.mark.parametrize("limit", [600.0, 0.0])
def test_confounded_snps_are_in_no_window(runs, limit):
    """A window of them alone has no test; one that has more has the test of the others."""
    tested = mmgibbs.gwas(runs[1], windows={"snps": 1}, exact_limit=limit, **QUIET)
    assert tested.windows.height == P - 2
    by_three = mmgibbs.gwas(runs[1], windows={"snps": 3}, exact_limit=limit, **QUIET).windows
    assert by_three["snps"].to_list()[1:3] == [2, 2]  # of SNPs 3 to 5 without 5, and 6 to 8 without 6
