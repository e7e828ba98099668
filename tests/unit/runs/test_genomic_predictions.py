"""New animals from runs with genomic relationships, against evaluations with them in it; SNP effects, against dense
formulas."""

import numpy as np
import polars as pl
import pytest
from helpers.mutants import mutant
from helpers.new_animals import SNPS, Herd, N
from helpers.selection import first
from scipy import stats

import mmgibbs
import mmgibbs.data.genomic_parts as module
from mmgibbs.cli import main
from mmgibbs.errors import ConfigError, DataError

GENOMIC = {"kind": "genomic", "blend": 0.05}
WITH_PEDIGREE = {"kind": "genomic", "blend": 0.2, "with": "A22", "method": "vanraden2"}
SINGLE_STEP = {"kind": "single_step", "blend": 0.1, "tune": "none", "tau": 1.2}


@pytest.fixture(scope="module")
def herd(tmp_path_factory):
    herd = Herd(tmp_path_factory.mktemp("herd"))
    (herd.folder / "core.txt").write_text("\n".join(herd.ids[i] for i in herd.old[::2]))
    return herd


@pytest.fixture(scope="module")
def run(herd):
    return herd.run("genomic", GENOMIC, output={"snp_effects": True})


def compare(predicted, evaluated, n):
    both = predicted.join(evaluated.solutions.filter(term="genetic"), on=["level", "trait", "effect"], suffix="_there")
    assert both.height == n
    for column in ("mean", "sd", "pev", "reliability", "accuracy"):
        np.testing.assert_allclose(both[column], both[f"{column}_there"], rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("name", "relationship"),
    first(
        2,
        [
            ("single_step", SINGLE_STEP),
            ("core", SINGLE_STEP | {"core": {"file": "core.txt"}}),
            ("g", GENOMIC),
            ("with_pedigree", WITH_PEDIGREE),
        ],
    ),
)
def test_predictions_are_those_of_an_evaluation_with_the_animals_in_it(herd, name, relationship):
    if "core" in relationship:
        relationship = relationship | {"core": {"file": str(herd.folder / "core.txt")}}
    old = herd.run(f"{name}_old", relationship)
    predicted = mmgibbs.predict(old.directory, herd.folder / "young.csv")
    compare(predicted.values, herd.run(f"{name}_every", relationship, "every.csv"), len(herd.young))
    assert predicted.values["call_rate"].to_list() == [1.0] * len(herd.young)
    assert not any(note.startswith("warning") for note in predicted.notes)


def test_predictions_of_direct_and_maternal_effects(herd, tmp_path):
    records = pl.read_csv(herd.folder / "records.csv")
    records.join(herd.pedigree.select(animal="id", dam="dam"), on="animal", how="left").write_csv(tmp_path / "r.csv")

    def run(genotypes):
        analysis = herd.analysis(GENOMIC, genotypes)
        analysis["data"]["phenotypes"] = str(tmp_path / "r.csv")
        dam = {"level": "dam", "unknown_level": "omit"}
        effects = {"direct": {"level": "animal"}, "maternal": dam}
        analysis["model"]["random"] = {"genetic": {"relationship": GENOMIC, "effects": effects}}
        analysis["variances"] = {"genetic": {"start": [[1.5, -0.2], [-0.2, 0.5]]}, "residual": {"start": 1.2}}
        return mmgibbs.run(analysis, directory=tmp_path / genotypes.removesuffix(".csv"), progress=False)

    predicted = mmgibbs.predict(run("old.csv").directory, herd.folder / "young.csv").values
    compare(predicted, run("every.csv"), 2 * len(herd.young))
    assert predicted["effect"].unique(maintain_order=True).to_list() == ["direct", "maternal"]


def test_predictions_with_metafounders(herd, tmp_path):
    is_founder = pl.col("sire").is_null()
    group = pl.when(is_founder & (pl.int_range(pl.len()) % 2 == 0)).then(pl.lit("P")).when(is_founder).then(pl.lit("Q"))
    herd.pedigree.with_columns(group=group).write_csv(tmp_path / "pedigree.csv")

    def run(genotypes):
        analysis = herd.analysis(SINGLE_STEP | {"frequencies": "half"}, genotypes)
        groups = {"column": "group", "effect": "metafounders", "gamma": 0.4}
        analysis["data"] |= {"pedigree": str(tmp_path / "pedigree.csv"), "groups": groups}
        return mmgibbs.run(analysis, directory=tmp_path / genotypes.removesuffix(".csv"), progress=False)

    predicted = mmgibbs.predict(run("old.csv").directory, herd.folder / "young.csv").values
    compare(predicted, run("every.csv"), len(herd.young))


def test_what_needs_no_prediction_errors_is_given_without_them(herd, run, tmp_path, monkeypatch):
    records = pl.read_csv(herd.folder / "records.csv")
    records.with_columns(ill=(pl.col("gain") > pl.col("gain").median()).cast(int)).write_csv(tmp_path / "r.csv")
    analysis = herd.analysis(GENOMIC, traits={"ill": {"type": "binary"}}, variances={})
    analysis["data"]["phenotypes"] = str(tmp_path / "r.csv")
    del analysis["model"]["random"]["pe"]
    analysis["sampler"] = {"chains": 1, "burn_in": 20, "samples": 60, "thin": 1}
    ill = mmgibbs.run(analysis, directory=tmp_path / "ill", progress=False)
    predicted = mmgibbs.predict(ill.directory, herd.folder / "young.csv")
    assert predicted.values["mean"].null_count() == 0 and predicted.values["reliability"].null_count() == len(
        herd.young
    )
    assert any(note.startswith("no sd, PEV and reliability: they need normal traits") for note in predicted.notes)
    whole = mmgibbs.predict(run.directory, herd.folder / "young.csv").values
    monkeypatch.setattr("mmgibbs.runs.model_of_run.MOST_EQUATIONS", 10)
    without = mmgibbs.predict(run.directory, herd.folder / "young.csv")
    np.testing.assert_array_equal(without.values["mean"], whole["mean"])
    assert any("a factor of" in note and "would take too long" in note for note in without.notes)


def test_a_share_of_the_pedigree_that_is_left_out_is_noticed(herd, monkeypatch):
    spoilt = mutant(module, "k = b.shift + b.snps * products + b.pedigree * of_pedigree[self.chosen]",
                    "k = b.shift + b.snps * products", compiled=False)  # fmt: skip
    old = herd.run("spoilt_old", WITH_PEDIGREE)
    right = mmgibbs.predict(old.directory, herd.folder / "young.csv").values
    monkeypatch.setattr("mmgibbs.runs.genomic_predictions.genomic_parts", spoilt.genomic_parts)
    wrong = mmgibbs.predict(old.directory, herd.folder / "young.csv").values
    assert np.abs(right["mean"] - wrong["mean"]).max() > 1e-3


def test_a_newer_pedigree(herd, tmp_path):
    first = herd.pedigree.head(N - len(herd.young))
    first.write_csv(tmp_path / "old_pedigree.csv")
    analysis = herd.analysis(WITH_PEDIGREE)
    analysis["data"]["pedigree"] = str(tmp_path / "old_pedigree.csv")
    old = mmgibbs.run(analysis, directory=tmp_path / "old", progress=False)
    blind = mmgibbs.predict(old.directory, herd.folder / "young.csv")
    assert any("is not in the pedigree" in note or "are not in the pedigree" in note for note in blind.notes)
    known = mmgibbs.predict(old.directory, herd.folder / "young.csv", pedigree=herd.folder / "pedigree.csv")
    compare(known.values, herd.run("newer_every", WITH_PEDIGREE, "every.csv"), len(herd.young))
    assert np.abs(known.values["mean"] - blind.values["mean"]).max() > 1e-4
    assert (known.values["reliability"] > blind.values["reliability"]).mean() > 0.9
    other = first.with_columns(sire=pl.when(pl.col("id") == "a60").then(None).otherwise("sire"))
    other.write_csv(tmp_path / "other.csv")
    with pytest.raises(DataError, match=r"other.csv: 1 animal of the run is not in it with the same parents, .*a60"):
        mmgibbs.predict(old.directory, herd.folder / "young.csv", pedigree=tmp_path / "other.csv")


def test_animals_of_the_run_keep_their_values(herd, run):
    path = herd.write_genotypes("both.csv", np.array([3, N - 1, 5]))
    predicted = mmgibbs.predict(run.directory, path)
    assert predicted.values["level"].to_list() == ["a3", f"a{N - 1}", "a5"]
    of_run = dict(run.solutions.filter(term="genetic").select("level", "mean").iter_rows())
    np.testing.assert_array_equal(predicted.values["mean"][[0, 2]], [of_run["a3"], of_run["a5"]])
    assert any("2 animals of the file are in the run" in note for note in predicted.notes)


def test_missing_genotypes_and_absent_snps_count_as_the_mean_of_the_run(herd, run):
    snps = [j for j in range(SNPS) if j != 7]
    some = herd.write_genotypes("some.csv", herd.young, snps)
    mean = herd.genotypes[herd.old, 7].mean()
    values = herd.genotypes.astype(float)
    values[herd.young, 7] = mean
    full = herd.write_genotypes("full.csv", herd.young, values=values)
    few, whole = (mmgibbs.predict(run.directory, path) for path in (some, full))
    np.testing.assert_allclose(few.values["mean"], whole.values["mean"], atol=1e-8)
    assert any("1 of the 90 SNPs of the run is not in it, such as s7" in note for note in few.notes)
    assert few.values["call_rate"][0] == pytest.approx(89 / 90)


def test_newly_genotyped_animals_with_information_are_warned_of(herd):
    """By single-step an animal with records may be genotyped later."""
    first = herd.old[:80]
    herd.write_genotypes("first.csv", first)
    old = herd.run("first", SINGLE_STEP, "first.csv")
    herd.write_genotypes("later.csv", np.array([90, N - 1]))
    notes = mmgibbs.predict(old.directory, herd.folder / "later.csv").notes
    assert any(n.startswith("warning: 1 newly genotyped animal has records or progeny") and "a90" in n for n in notes)


def test_refusals(herd, run, tmp_path, capsys):
    polygenic = herd.run("polygenic", "pedigree")
    with pytest.raises(ConfigError, match="no relationships from genotypes; needed a finished run with SNP effects"):
        mmgibbs.predict(polygenic.directory, herd.folder / "young.csv")
    with pytest.raises(ConfigError, match="output.snp_effects: needed a random effect with relationship: genomic"):
        herd.run("nothing", "pedigree", output={"snp_effects": True})
    without = herd.analysis(GENOMIC)
    del without["data"]["pedigree"]
    old = mmgibbs.run(without, directory=tmp_path / "without", progress=False)
    with pytest.raises(ConfigError, match="is a run without a pedigree"):
        mmgibbs.predict(old.directory, herd.folder / "young.csv", pedigree=herd.folder / "pedigree.csv")
    output = tmp_path / "gebv.csv"
    assert main(["predict", str(run.directory), str(herd.folder / "young.csv"), "--output", str(output)]) in (0, None)
    assert pl.read_csv(output).height == len(herd.young)


# ------------------------------------------------------------------------------------------------ SNP effects


def dense_effects(herd):
    """(estimate, posterior variance, variance of the estimate) of each SNP effect from matrices of the records."""
    records = pl.read_csv(herd.folder / "records.csv")
    n = records.height
    Z = np.zeros((n, len(herd.old)))
    Z[np.arange(n), herd.animal] = 1
    M = herd.genotypes[herd.old] - 1.0
    variance = 1.5 * 0.95 / (SNPS / 2)  # of an effect
    V = Z @ (variance * M @ M.T + (1.5 * 0.05 + 0.3) * np.eye(len(herd.old))) @ Z.T + 1.2 * np.eye(n)
    X = records["herd"].to_dummies().to_numpy().astype(float)
    V_inverse = np.linalg.inv(V)
    P = V_inverse - V_inverse @ X @ np.linalg.solve(X.T @ V_inverse @ X, X.T @ V_inverse)
    W = Z @ M
    of_estimate = variance**2 * np.einsum("nj,nj->j", W, P @ W)
    return variance * W.T @ P @ records["gain"].to_numpy(), variance - of_estimate, of_estimate


def test_snp_effects_against_dense_formulas(herd, run):
    made = pl.read_parquet(run.directory / "snp_effects.parquet")
    estimate, posterior, of_estimate = dense_effects(herd)
    np.testing.assert_allclose(made["effect_gain"], estimate, atol=1e-8)
    np.testing.assert_allclose(made["effect_sd_gain"], np.sqrt(posterior), rtol=1e-8)
    p = 2 * stats.norm.sf(np.abs(estimate) / np.sqrt(of_estimate))
    np.testing.assert_allclose(10 ** -made["log10_p_gain"].to_numpy(), p, rtol=1e-7)
    assert made["centre"].to_list() == [1.0] * SNPS and made["snp"][3] == "s3"


@pytest.mark.parametrize("relationship", [GENOMIC, SINGLE_STEP | {"tune": "A22", "tau": 1.0}])
def test_their_p_values_are_those_of_single_snps_where_all_are_genotyped(herd, run, relationship):
    directory = run.directory
    if relationship is not GENOMIC:
        directory = herd.run("tuned", relationship).directory
    tested = mmgibbs.gwas(directory, quality={"maf": 0.0}, progress=False)
    assert tested.snp_effects is not None
    np.testing.assert_allclose(tested.snp_effects["log10_p_gain"], tested.values["log10_p_gain"], atol=1e-8)


def test_effects_make_the_values_of_new_animals(herd):
    relationship = SINGLE_STEP | {"tau": 1.0, "blend": 0.3, "with": "I"}
    old = herd.run("effects", relationship, output={"snp_effects": True})
    made = pl.read_parquet(old.directory / "snp_effects.parquet")
    values = (herd.genotypes[herd.young] - made["centre"].to_numpy()) @ made["effect_gain"].to_numpy()
    np.testing.assert_allclose(mmgibbs.predict(old.directory, herd.folder / "young.csv").values["mean"], values)


def test_of_draws_the_effects_are_their_means(herd):
    """They are linear in the breeding values, whose means the solutions are."""
    gibbs = herd.run("gibbs", GENOMIC, sampler={"chains": 1, "burn_in": 20, "samples": 60, "thin": 1, "seed": 3},
                     output={"snp_effects": True})  # fmt: skip
    made = pl.read_parquet(gibbs.directory / "snp_effects.parquet")
    u = gibbs.solutions.filter(term="genetic").sort(pl.col("level").str.slice(1).cast(pl.Int64))["mean"].to_numpy()
    M = herd.genotypes[herd.old] - 1.0
    K = 0.95 * M @ M.T / (SNPS / 2) + 0.05 * np.eye(len(M))
    np.testing.assert_allclose(made["effect_gain"], 0.95 / (SNPS / 2) * M.T @ np.linalg.solve(K, u), atol=1e-8)
    assert made["effect_sd_gain"].null_count() == 0
