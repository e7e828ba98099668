"""Windows and chromosomes of a run, from the draws of the effects that it keeps."""

import numpy as np
import polars as pl
import pytest
from helpers.genotyped_records import CHROMOSOMES, NAMES, SNPS, TRAINED, genotypes, run

import mmgibbs
from mmgibbs.errors import ConfigError

__all__ = ["genotypes"]


def test_windows_and_chromosomes_are_those_of_the_draws(genotypes, tmp_path):
    section = {"prior": "bayes_c", "windows": {"size": 5000, "share": 0.1}}
    path = run(genotypes, tmp_path / "run", section, {"save_marker_draws": 1000}).directory
    windows, chromosomes = pl.read_parquet(path / "windows.parquet"), pl.read_csv(path / "chromosomes.csv")
    with np.load(path / "marker_draws.npz") as file:
        draws = file["effects.0"].reshape(-1, SNPS).astype(np.float64)
    codes = genotypes[1][:, :TRAINED].astype(np.float64)
    codes[codes == 3] = np.nan
    m = np.where(np.isnan(codes), np.nanmean(codes, axis=1)[:, None], codes)
    x = m - m.mean(axis=1)[:, None]
    position = np.array([1000 * (j + 1) for j in range(SNPS)])
    place = list(zip(CHROMOSOMES, position // 5000, strict=True))
    total = np.array([(a @ x).var() for a in draws])
    assert windows.height == len(set(place))
    for row, key in zip(windows.iter_rows(named=True), sorted(set(place)), strict=True):
        own = np.array([p == key for p in place])
        share = np.array([((a * own) @ x).var() for a in draws]) / total
        some = (draws[:, own] != 0).any(axis=1)
        assert (row["chromosome"], row["start"], row["end"]) == (str(key[0]), 5000 * key[1], 5000 * (key[1] + 1))
        assert row["snps"] == own.sum() and row["first_snp"] == NAMES[np.flatnonzero(own)[0]]
        found = [row[c] for c in ("share", "share_sd", "share_low", "ppa", "p_any")]
        low = np.quantile(share, 0.025)
        expected = [share.mean(), share.std(ddof=1), low, (share > 0.1).mean(), some.mean()]
        np.testing.assert_allclose(found, expected, atol=1e-4)
    for row, c in zip(chromosomes.iter_rows(named=True), (1, 2), strict=True):
        own = np.array(CHROMOSOMES) == c
        parts = [((a * own) @ x, (a * ~own) @ x) for a in draws]
        rest = np.mean([np.cov(g, r, ddof=0)[0, 1] for g, r in parts])
        found = row["snps"], row["variance"], row["covariance_with_rest"]
        np.testing.assert_allclose(found, [own.sum(), np.mean([g.var() for g, _ in parts]), rest], rtol=1e-3, atol=1e-5)
    metadata = pl.read_parquet_metadata(path / "windows.parquet")
    assert "above `above`" in metadata["ppa"] and windows["above"].unique().to_list() == [0.1]


def test_nothing_unless_asked_for(genotypes, tmp_path):
    path = run(genotypes, tmp_path / "run").directory
    assert not (path / "windows.parquet").exists() and (path / "chromosomes.csv").exists()
    path = run(genotypes, tmp_path / "run", output={"save_marker_draws": 0}).directory
    assert not (path / "chromosomes.csv").exists()


@pytest.mark.parametrize(
    ("windows", "output", "said"),
    [
        ({"size": 5, "snps": 3}, {}, "windows.snps: cannot be combined with size"),
        ({"share": 2}, {}, "windows.share: found 2, needed a number between 0 and 1"),
        ({}, {"save_marker_draws": 0}, "windows: cannot be combined with output.save_marker_draws: 0"),
    ],
)
def test_mistakes(genotypes, tmp_path, windows, output, said):
    with pytest.raises(ConfigError) as caught:
        run(genotypes, tmp_path / "run", {"windows": windows}, output)
    assert said in str(caught.value)


def test_a_file_without_a_map_has_windows_of_snps(genotypes, tmp_path):
    digits = np.array(["0", "1", "2", "5"])[genotypes[1].T]
    text = "".join(f"a{i} {''.join(row)}\n" for i, row in enumerate(digits))
    (tmp_path / "all.txt").write_text(text)
    section = {"windows": {"snps": 8}}
    data = {"file": str(tmp_path / "all.txt")}
    found = run(genotypes, tmp_path / "run", section, data=data)
    assert isinstance(found, mmgibbs.runs.run.Result)
    windows = pl.read_parquet(found.directory / "windows.parquet")
    assert windows["snps"].to_list() == [8, 8, 8, 6] and windows["chromosome"].null_count() == 4
    assert not (found.directory / "chromosomes.csv").exists()
