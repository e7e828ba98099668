"""Genomic breeding values of animals that were never in the run, from what its folder keeps."""

import numpy as np
import polars as pl
import pytest
from helpers.genotyped_records import CHROMOSOMES, IDS, NAMES, POSITIONS, SNPS, TRAINED, N, analysis, genotypes, run
from helpers.genotypes import write_plink

import mmgibbs
from mmgibbs.cli import main
from mmgibbs.errors import ConfigError, DataError

__all__ = ["genotypes"]


@pytest.fixture(scope="module")
def finished(genotypes, tmp_path_factory):
    path = tmp_path_factory.mktemp("finished") / "run"
    return run(genotypes, path, {"prior": "bayes_r"}, {"save_marker_draws": 1000})


def gebv(frame):
    return frame.filter(effect="gebv").sort("trait", "level")


def compare(found, solutions, own=None):
    """Every draw was kept, so that deviations are those of the moments."""
    known = set(solutions["level"])
    there = gebv(found.values.filter(pl.col("level").is_in(own or known)))
    expected = gebv(solutions.filter(pl.col("level").is_in(own or known)))
    assert there.height == expected.height > 0
    for name, tolerance in (("mean", 1e-6), ("sd", 1e-5), ("reliability", 1e-4)):
        np.testing.assert_allclose(there[name], expected[name], atol=tolerance, rtol=tolerance)


def test_the_animals_of_the_run_get_their_breeding_values(genotypes, finished):
    found = mmgibbs.predict(finished.directory, genotypes[0] / "all.bed")
    compare(found, finished.solutions)
    assert found.values.height == N and found.notes == ()
    assert found.values.filter(pl.col("level") == "a70")["sd"].is_finite().all()


@pytest.mark.parametrize(
    ("section", "data"),
    [
        ({"prior": "rr", "scale": "standard"}, {"frequencies": "half"}),
        ({"prior": "bayes_c"}, {"quality": {"maf": 0.3}}),
    ],
)
def test_scales_frequencies_and_several_traits(genotypes, tmp_path, section, data):
    result = run(genotypes, tmp_path / "run", section, {"save_marker_draws": 1000}, data, ("milk", "fat"))
    compare(mmgibbs.predict(result.directory, genotypes[0] / "all.bed"), result.solutions)


def test_no_draws_give_means_alone(genotypes, tmp_path):
    result = run(genotypes, tmp_path / "run", output={"save_marker_draws": 0})
    assert not (result.directory / "marker_draws.npz").exists()
    found = mmgibbs.predict(result.directory, genotypes[0] / "all.bed")
    assert found.values["sd"].null_count() == N and "no sd" in found.notes[-1]
    own = gebv(found.values.filter(pl.col("level").is_in(IDS[:TRAINED])))
    np.testing.assert_allclose(own["mean"], gebv(result.solutions)["mean"], atol=1e-6)


def test_a_run_in_pieces_keeps_the_same_draws(genotypes, tmp_path):
    options = {"section": {"prior": "bayes_b"}, "output": {"save_marker_draws": 40}}
    run(genotypes, tmp_path / "whole", **options)
    run(genotypes, tmp_path / "pieces", **options, samples=23)
    mmgibbs.run(analysis(genotypes, tmp_path / "pieces", **options, samples=23), extend=37, progress=False)
    whole, pieces = (np.load(tmp_path / name / "marker_draws.npz") for name in ("whole", "pieces"))
    with whole, pieces:
        assert whole["effects.0"].shape == (2, 15, SNPS) and list(whole["number"][:2]) == [4, 8]
        for key in whole.files:
            np.testing.assert_array_equal(whole[key], pieces[key])


def rewritten(folder, name, codes, alleles=None, names=NAMES):
    """A .bed with other alleles: SNP name -> (counted, other)."""
    write_plink(folder / f"{name}.bed", codes, IDS[: codes.shape[1]], names, CHROMOSOMES[: len(names)], POSITIONS)
    bim = folder / f"{name}.bim"
    lines = [line.split("\t") for line in bim.read_text().splitlines()]
    for line in lines:
        line[4:] = (alleles or {}).get(line[1], line[4:])
    bim.write_text("".join("\t".join(line) + "\n" for line in lines))
    return folder / f"{name}.bed"


def test_swapped_alleles_are_turned_round(genotypes, finished, tmp_path):
    codes = genotypes[1].copy()
    codes[:7] = np.array([2, 1, 0, 3], np.uint8)[codes[:7]]
    swapped = dict.fromkeys(NAMES[:7], ("C", "a"))
    found = mmgibbs.predict(finished.directory, rewritten(tmp_path, "swapped", codes, swapped))
    compare(found, finished.solutions)
    assert found.notes == ("swapped.bed: 7 SNPs count the other allele and are reversed",)
    # PLINK writes 0 for an allele that no animal of the file has
    codes = genotypes[1].copy()
    codes[0, codes[0] != 3] = 2
    straight = mmgibbs.predict(finished.directory, rewritten(tmp_path, "straight", codes))
    other = np.array([2, 1, 0, 3], np.uint8)[codes]
    one = {NAMES[0]: ("0", "A")}
    turned = mmgibbs.predict(finished.directory, rewritten(tmp_path, "turned", np.r_[other[:1], codes[1:]], one))
    np.testing.assert_array_equal(straight.values["mean"], turned.values["mean"])


def test_other_alleles_are_refused_by_name(genotypes, finished, tmp_path):
    path = rewritten(tmp_path, "strand", genotypes[1], {"rs3": ("T", "G"), "rs9": ("A", "T")})
    with pytest.raises(DataError) as caught:
        mmgibbs.predict(finished.directory, path)
    assert str(caught.value).splitlines() == [
        "strand.bed: SNP 'rs3' has the alleles T and G; the run has A and C",
        "strand.bed: SNP 'rs9' has the alleles A and T; the run has A and C",
        "needed the alleles of the run, in either order: is it another strand?",
    ]


def test_absent_snps_and_missing_genotypes_stand_for_the_mean(genotypes, finished, tmp_path):
    few = mmgibbs.predict(finished.directory, rewritten(tmp_path, "few", genotypes[1][:20], names=NAMES[:20]))
    assert few.notes[0].startswith("few.bed: 10 of the 30 SNPs of the run are not in it, such as rs20, rs21")
    codes = genotypes[1].copy()
    codes[20:] = 3
    missing = mmgibbs.predict(finished.directory, rewritten(tmp_path, "missing", codes))
    for name in ("mean", "sd", "reliability", "call_rate"):
        np.testing.assert_allclose(few.values[name], missing.values[name], rtol=1e-9, atol=1e-12)
    assert few.values["call_rate"].max() <= 20 / 30


def exact(finished, codes, snps=None, term=0):
    """(PEV, prior variance) of every animal, over all draws and all genotypes that the missing ones may be.

    snps: those of the file, None: all. The draws of g given each combination of missing genotypes make a mixture with
    weights in Hardy-Weinberg proportions; its variance is found combination by combination.
    """
    table = pl.read_parquet(finished.directory / "markers.parquet").filter("kept")
    with np.load(finished.directory / "marker_draws.npz") as file:
        b = file[f"effects.{term}"].reshape(-1, table.height).astype(float)
        v = file[f"prior_variance.{term}"] * file[f"scale.{term}"] ** 2
    p, centre = table["frequency"].to_numpy(), table["centre"].to_numpy()
    m = np.where(codes == 3, np.nan, codes.astype(float)).T
    if snps is not None:
        m[:, snps:] = np.nan
    pev, prior = np.zeros((2, len(m)))
    for a, of_animal in enumerate(m):
        gone = np.isnan(of_animal)
        known = b[:, ~gone] @ (of_animal - centre)[~gone]
        weights, of_draws = np.ones(1), known[:, None]
        for j in np.flatnonzero(gone):
            of_genotype = np.array([(1 - p[j]) ** 2, 2 * p[j] * (1 - p[j]), p[j] ** 2])
            weights = np.outer(weights, of_genotype).ravel()
            of_draws = (of_draws[:, :, None] + (np.arange(3) - centre[j]) * b[:, j, None, None]).reshape(len(b), -1)
        mean = of_draws @ weights
        pev[a] = mean.var(ddof=1) + (of_draws**2 @ weights - mean**2).mean()
        square = np.where(gone, 2 * p * (1 - p) + (2 * p - centre) ** 2, (of_animal - centre) ** 2)
        prior[a] = square @ v
    return pev, prior


def compare_to_exact(found, expected):
    pev, prior = expected
    draws = 120
    # of the mean square of an effect: variance of the draws with draws - 1 in place of draws
    np.testing.assert_allclose(found["pev"], pev, rtol=3 / draws)
    np.testing.assert_allclose(found["reliability"], 1 - found["pev"] / prior, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found["sd"] ** 2, found["pev"], rtol=1e-9)


def by_animal(found):
    order = pl.DataFrame({"level": IDS})
    return order.join(found.values.filter(effect="gebv"), on="level", how="left", maintain_order="left")


def test_missing_genotypes_leave_their_variance(genotypes, finished, tmp_path):
    """All genotypes, some missing in every animal, and a chip that lacks SNPs."""
    full = genotypes[1].copy()
    full[full == 3] = 1
    known = by_animal(mmgibbs.predict(finished.directory, rewritten(tmp_path, "full", full)))
    compare_to_exact(known, exact(finished, full))
    some = full.copy()
    some[[2, 9, 17, 28], :] = 3
    some[5, ::2] = 3
    compare_to_exact(by_animal(mmgibbs.predict(finished.directory, rewritten(tmp_path, "some", some))),
                     exact(finished, some))  # fmt: skip
    chip = mmgibbs.predict(finished.directory, rewritten(tmp_path, "chip", full[:25], names=NAMES[:25]))
    fewer = by_animal(chip)
    compare_to_exact(fewer, exact(finished, full, snps=25))
    assert (fewer["pev"].mean() > known["pev"].mean()) and (fewer["reliability"].mean() < known["reliability"].mean())


def test_missing_genotypes_with_other_centres_and_scales(genotypes, tmp_path):
    options = {"prior": "rr", "scale": "standard"}, {"save_marker_draws": 1000}, {"frequencies": "half"}
    result = run(genotypes, tmp_path / "run", *options)
    some = np.where(genotypes[1] == 3, 1, genotypes[1])
    some[[2, 9, 17], :] = 3
    found = by_animal(mmgibbs.predict(result.directory, rewritten(tmp_path, "some", some)))
    compare_to_exact(found, exact(result, some))


def test_a_table_without_alleles(genotypes, finished, tmp_path):
    codes = genotypes[1]
    columns = {n: [None if c == 3 else int(c) for c in row] for n, row in zip(NAMES, codes, strict=True)}
    path = tmp_path / "all.csv"
    pl.DataFrame({"tag": IDS, "rs99": 1} | columns).select("rs99", "tag", *NAMES).write_csv(path)
    found = mmgibbs.predict(finished.directory, {"file": path, "id": "tag"})
    compare(found, finished.solutions)
    assert "30 SNPs without known alleles" in found.notes[0] and "1 SNP has no effect" in found.notes[1]


def test_files_without_names_need_the_same_snps(genotypes, finished, tmp_path):
    digits = np.array(["0", "1", "2", "5"])[genotypes[1].T]
    (tmp_path / "all.txt").write_text("".join(f"{i} {''.join(row)}\n" for i, row in zip(IDS, digits, strict=True)))
    compare(mmgibbs.predict(finished.directory, tmp_path / "all.txt"), finished.solutions)
    (tmp_path / "few.txt").write_text("".join(f"{i} {''.join(row[:9])}\n" for i, row in zip(IDS, digits, strict=True)))
    with pytest.raises(DataError, match="has 9 SNPs without names, but the run's file had 30"):
        mmgibbs.predict(finished.directory, tmp_path / "few.txt")


def test_other_snps_are_refused(genotypes, finished, tmp_path):
    path = rewritten(tmp_path, "others", genotypes[1], names=[f"x{j}" for j in range(SNPS)])
    with pytest.raises(DataError, match="has none of the 30 SNPs of the run; the run has 'rs0', the file 'x0'"):
        mmgibbs.predict(finished.directory, path)


def test_the_command(genotypes, finished, tmp_path, capsys):
    output = tmp_path / "young.parquet"
    assert main(["predict", str(finished.directory), str(genotypes[0] / "all.bed"), "--output", str(output)]) == 0
    assert capsys.readouterr().out == f"written to {output}: genomic breeding values of 80 animals\n"
    assert pl.read_parquet(output).columns == [*finished.solutions.columns, "call_rate"]
    assert main(["predict", str(tmp_path), "x.bed"]) == 2
    assert capsys.readouterr().err.startswith(f"predict: '{tmp_path}' is not the folder of a finished run")
    assert main(["predict", str(finished.directory), "no.bed", "--output", str(output)]) == 2
    assert capsys.readouterr().err.strip().endswith("no.bed: no such file")


def test_messages_name_options_and_no_key_of_an_analysis(genotypes, finished, tmp_path, capsys):
    bed, map_ = str(genotypes[0] / "all.bed"), tmp_path / "map.txt"
    map_.write_text("snp chromosome position\nx1 1 10\n")
    for name in ("bed", "fam"):
        (tmp_path / f"alone.{name}").write_bytes((genotypes[0] / f"all.{name}").read_bytes())
    calls = {
        ("alone.bed",): "needed the .bim that belongs to the .bed",
        (bed, "--map", str(map_)): "the map has 'x1' (--map)",
    }
    for (file, *options), expected in calls.items():
        assert main(["predict", str(finished.directory), str(tmp_path / file), *options]) == 2
        said = capsys.readouterr().err.strip()
        assert said.endswith(expected) and "data.genotypes" not in said
    with pytest.raises(DataError, match=r"the map has 'x1' \(map\)$"):
        mmgibbs.predict(finished.directory, {"file": bed, "map": map_})


def test_wrong_options_are_named(finished):
    with pytest.raises(ConfigError, match="predict: format: found 'bad', needed"):
        mmgibbs.predict(finished.directory, {"file": "x.bed", "format": "bad"})


def test_draws_are_of_snp_effects(tmp_path):
    with pytest.raises(ConfigError, match="output.save_marker_draws: found no SNP effects"):
        mmgibbs.load_config(
            {"data": {"phenotypes": "x.csv"}, "traits": ["y"], "output": {"save_marker_draws": 5}},
        )
