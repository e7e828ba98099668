"""SNP effects and what predicted genotypes leave, with one genetic variance: single-step GBLUP, variances sampled.

The same records, J a covariate and the same priors: H = G at frequencies of one half, not blended, not tuned, in one
model, SNP effects and epsilon in the other. Genetic and residual variance, and total breeding values.
"""

import numpy as np
import polars as pl
import pytest
from helpers.monte_carlo import chain_batches, compare
from helpers.single_step_herd import N, V, analysis, covariances, data  # noqa: F401  data is a fixture

import mmgibbs
from mmgibbs.config import load_config
from mmgibbs.data.prepare import prepare
from mmgibbs.errors import ConfigError
from mmgibbs.sampler.markers.implied import ImpliedVariance
from mmgibbs.validation.options import ValidationPlan
from mmgibbs.validation.run import validate_analysis

DF, SCALE = 6.0, 1.2  # of the genetic variance
SAMPLER = {"chains": 2, "burn_in": 200, "samples": 6000, "thin": 1, "seed": 5}
OF_ONE = ("genetic.var[milk]", "residual.var[milk]")


def residual(k):
    return {"start": np.eye(k).tolist(), "prior": {"df": 4 + k, "scale": (5.0 * np.eye(k)).tolist()}}


def sections(path):
    return {"sampler": SAMPLER, "output": {"directory": str(path)}}


def half(wanted):
    wanted["data"]["genotypes"]["frequencies"] = "half"
    return wanted


def by_snps(data, path, gamma=1.0, **section):  # noqa: F811
    """gamma: the mean factor of the classes of an effect."""
    k = gamma * 0.5 * pl.read_csv(data[2]).drop("animal").width
    variance = {"start": 1.0 / k, "df": DF, "scale": SCALE / k}
    own = {"variance": variance, "variance_left": "implied"} | section
    wanted = half(analysis(data, path, own, **sections(path), variances={"residual": residual(1)}))
    return mmgibbs.run(wanted, overwrite=True, progress=False)


def by_relationships(data, path, traits=("milk",)):  # noqa: F811
    """J of its own formula as a covariate."""
    *_, j = covariances(data)
    records = data[0].with_columns(j=pl.Series(j[data[3][3]]))
    kind = {"kind": "single_step", "blend": 0, "tune": "none"}
    model = {
        "fixed": {"J": {"column": "j", "kind": "covariate"}},
        "random": {"genetic": {"level": "animal", "relationship": kind}},
    }
    k = len(traits)
    prior = {"df": DF + k - 1, "scale": (DF * SCALE * np.eye(k)).tolist()}
    variances = {"residual": residual(k), "genetic": {"start": np.eye(k).tolist(), "prior": prior}}
    wanted = half(analysis((records, *data[1:]), path, model=model, variances=variances, **sections(path)))
    wanted["traits"] = {trait: {} for trait in traits}
    wanted["sampler"] = SAMPLER | {"engine": "pcg", "samples": 2000}  # nearly independent draws
    return mmgibbs.run(wanted, overwrite=True, progress=False)


def means_of(found, names):
    """(2, m) means of these parameters and their errors."""
    rows = {r["parameter"]: r for r in found.summary.iter_rows(named=True)}
    return np.array([[rows[name]["mean"], rows[name]["mcse"]] for name in names]).T


@pytest.fixture(scope="module")
def exact(data, tmp_path_factory):  # noqa: F811
    found = by_relationships(data, tmp_path_factory.mktemp("relationships"))
    return found, means_of(found, OF_ONE)


def agreement(found, exact, names=OF_ONE):
    of = np.stack([found.draws["posterior"][name].to_numpy() for name in names], axis=-1)
    return compare(chain_batches(of), *exact)


@pytest.mark.slow
def test_variances_and_breeding_values_are_those_of_single_step(data, tmp_path, exact):  # noqa: F811
    found = by_snps(data, tmp_path)
    draws, k = found.draws["posterior"], 0.5 * pl.read_csv(data[2]).drop("animal").width
    np.testing.assert_allclose(draws["genetic.var[milk]"], k * draws["snps.effect_var[milk]"], rtol=1e-12)
    comparison = agreement(found, exact[1])
    assert comparison.agrees, comparison
    *_, j = covariances(data)
    u = exact[0].solutions.filter(pl.col("term") == "genetic").select("level", "mean", "mcse")
    slope = exact[0].solutions.filter(pl.col("term") == "J")["mean"][0]
    total = found.solutions.filter(effect="total").join(u, on="level", suffix="_of_h")
    whole = total["mean_of_h"].to_numpy() + slope * j[[int(i[1:]) for i in total["level"]]]
    assert total.height > 60
    off = (total["mean"] - whole).to_numpy()
    assert np.sqrt(np.mean(off**2)) < 0.1 * whole.std()
    rows = found.summary.filter(parameter="genetic.var[milk]")
    assert rows["ess_bulk"][0] > 400


QUARTER = {"gamma": 0.25, "prior": "bayes_r", "classes": [0, 0.25], "pi": {"start": [1e-9, 1 - 1e-9], "fixed": True}}


@pytest.mark.slow
def test_a_class_of_a_quarter_implies_a_quarter(data, tmp_path, exact, monkeypatch):  # noqa: F811
    """Effects of one class, of a quarter of the variance: the same model, and another without the quarter."""
    comparison = agreement(by_snps(data, tmp_path, **QUARTER), exact[1])
    assert comparison.agrees, comparison
    monkeypatch.setattr("mmgibbs.data.markers._mean_factor", lambda section: 1.0)
    assert not agreement(by_snps(data, tmp_path, **QUARTER), exact[1]).agrees


squares = ImpliedVariance.squares
WRONG = {
    "squares": lambda own: (squares(own)[0], 2 * own.n),  # degrees of freedom twice
    "epsilon": lambda own, n: np.zeros((len(own.components), n)),  # interweaving sees one part, and scales both
}


@pytest.mark.slow
@pytest.mark.parametrize("what", list(WRONG))
def test_a_step_that_is_wrong_is_seen(data, tmp_path, exact, monkeypatch, what):  # noqa: F811
    monkeypatch.setattr("mmgibbs.runs.local.cores", lambda: 1)  # chains in this process
    monkeypatch.setattr(ImpliedVariance, what, WRONG[what])
    assert not agreement(by_snps(data, tmp_path), exact[1]).agrees


# Two traits

TRAITS = ("milk", "fat")
OF_TWO = [f"{term}.{of}" for term in ("genetic", "residual") for of in ("var[milk]", "cov[milk,fat]", "var[fat]")]


@pytest.fixture(scope="module")
def two(data):  # noqa: F811
    """A second trait, which shares genes and errors with the first and lacks some records."""
    rng = np.random.default_rng(3)
    milk = data[0]["milk"].to_numpy()
    fat = 0.6 * milk + rng.standard_normal(len(milk))
    fat = pl.Series(np.where(rng.random(len(milk)) < 0.15, np.nan, fat)).fill_nan(None)
    return data[0].with_columns(fat=fat), *data[1:]


def two_by_snps(two, path, order=TRAITS, **section):
    """order: of the traits of SNP effects; those of the model are TRAITS."""
    k = 0.5 * pl.read_csv(two[2]).drop("animal").width
    matrix = lambda value: [[value, 0.0], [0.0, value]]
    variance = {"start": matrix(1.0 / k), "df": DF, "scale": matrix(SCALE / k)}
    own = {"variance": variance, "variance_left": "implied", "traits": list(order)} | section
    wanted = half(analysis(two, path, own, **sections(path), variances={"residual": residual(2)}))
    wanted["traits"] = {trait: {} for trait in TRAITS}
    wanted["sampler"] = SAMPLER | {"seed": 6}
    return wanted


@pytest.mark.slow
def test_covariances_of_two_traits_are_those_of_single_step(two, tmp_path, monkeypatch):
    """SNP effects on the traits in another order than the model has; a matrix left in their order is seen."""
    exact = means_of(by_relationships(two, tmp_path / "relationships", TRAITS), OF_TWO)
    wanted = two_by_snps(two, tmp_path / "snps", TRAITS[::-1])
    comparison = agreement(mmgibbs.run(wanted, overwrite=True, progress=False), exact, OF_TWO)
    assert comparison.agrees, comparison
    monkeypatch.setattr("mmgibbs.runs.local.cores", lambda: 1)  # chains in this process
    monkeypatch.setattr(ImpliedVariance, "_permute_traits", lambda own, of_traits: of_traits)
    assert not agreement(mmgibbs.run(wanted, overwrite=True, progress=False), exact, OF_TWO).agrees


def test_the_matrix_of_two_traits_follows_that_of_effects(two, tmp_path):
    """In the order of the traits of the model, sampled or held."""
    for fixed in (False, True):
        variance = {"start": [[2e-3, 5e-4], [5e-4, 1e-3]]} | ({"fixed": True} if fixed else {"df": DF})
        wanted = two_by_snps(two, tmp_path / f"{fixed}", TRAITS[::-1], variance=variance) | {"sampler": FEW}
        found = mmgibbs.run(wanted, progress=False, report=False)
        factor = prepare(load_config(wanted)).design.markers[0].left.factor
        draws = found.draws["posterior"]
        for trait in TRAITS:
            own = draws[f"snps.effect_var[{trait}]"].to_numpy()
            np.testing.assert_allclose(draws[f"genetic.var[{trait}]"].to_numpy(), factor * own, rtol=1e-12)
            assert np.ptp(own) == 0 if fixed else np.ptp(own) > 0
        if fixed:
            assert draws["genetic.var[fat]"].to_numpy().ravel()[0] == pytest.approx(2e-3 * factor)
            np.testing.assert_allclose(draws["genetic.cov[milk,fat]"].to_numpy(), 5e-4 * factor, rtol=1e-12)


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ({"across_traits": "independent"}, "several traits with prior: rr, across_traits: independent; needed rr and"),
        (
            {"prior": "bayes_c", "pi": {"start": [0.9, 0.1], "fixed": True}},
            "several traits with prior: bayes_c, across",
        ),
    ],
)
def test_what_two_traits_do_not_go_with(two, tmp_path, section, words):
    with pytest.raises(ConfigError, match=words):
        load_config(two_by_snps(two, tmp_path, variance={"share": 0.4}, **section))


@pytest.mark.parametrize(
    ("section", "variances", "words"),
    [
        (
            {"prior": "bayes_c"},
            {},
            "prior: bayes_c, whose shares of classes are sampled.*needed pi: {fixed: true}, or rr",
        ),
        ({"prior": "bayes_a"}, {}, "prior: bayes_a, whose SNPs have no common variance"),
        ({"single_step": "none"}, {}, "found implied without single_step: epsilon"),
        ({}, {"genetic": [[1.0]]}, "cannot be combined with variances.genetic, which follows from it"),
    ],
)
def test_what_it_does_not_go_with(data, tmp_path, section, variances, words):  # noqa: F811
    own = {"variance": {"share": 0.4}, "variance_left": "implied"} | section
    with pytest.raises(ConfigError, match=words):
        load_config(analysis(data, tmp_path, own, variances=variances))


def test_its_animals_are_those_of_the_store(data, tmp_path):  # noqa: F811
    wanted = analysis(data, tmp_path, {"variance_left": "implied", "variance": {"share": 0.4}}, variances={})
    m = prepare(load_config(wanted)).design.markers[0]
    assert m.left is not None and m.left.term == "genetic"
    codes = pl.read_csv(data[2]).drop("animal").to_numpy()
    p = codes.mean(axis=0) / 2
    assert m.left.factor == pytest.approx(np.sum(2 * p * (1 - p))) and m.animal.max() < N


SNPS = {"variance_left": "implied", "variance": {"start": V, "fixed": True}}
FEW = {"chains": 1, "burn_in": 20, "samples": 60, "thin": 1, "seed": 5}


@pytest.mark.parametrize(
    "variances", [{"mode": "fixed", "residual": [[1.0]]}, {"residual": {"start": 1.0, "fixed": True}}]
)
def test_it_is_held_where_that_of_snps_is(data, tmp_path, variances):  # noqa: F811
    """At the sum of 2pq times theirs; nothing asks for a start of its own."""
    wanted = analysis(data, tmp_path / "run", SNPS, variances=variances, sampler=FEW)
    found = mmgibbs.run(wanted, progress=False, report=False)
    factor = prepare(load_config(wanted)).design.markers[0].left.factor
    draws = found.draws["posterior"]
    np.testing.assert_allclose(draws["genetic.var[milk]"].to_numpy(), factor * V, rtol=1e-12)
    assert np.ptp(draws["residual.var[milk]"].to_numpy()) == 0
    assert found.summary.filter(parameter="genetic.var[milk]")["sd"][0] == 0


def test_mode_fixed_holds_what_has_a_matrix_and_not_what_snps_imply(data, tmp_path):  # noqa: F811
    """The variance of SNP effects is sampled, and that of epsilon with it; that of residuals is held."""
    own = {"variance_left": "implied", "variance": {"share": 0.4}}
    wanted = analysis(data, tmp_path / "run", own, variances={"mode": "fixed", "residual": [[1.0]]}, sampler=FEW)
    draws = mmgibbs.run(wanted, progress=False, report=False).draws["posterior"]
    factor = prepare(load_config(wanted)).design.markers[0].left.factor
    np.testing.assert_allclose(draws["genetic.var[milk]"], factor * draws["snps.effect_var[milk]"], rtol=1e-12)
    assert np.ptp(draws["genetic.var[milk]"].to_numpy()) > 0 and np.ptp(draws["residual.var[milk]"].to_numpy()) == 0


def test_validation_at_the_variances_of_a_run(data, tmp_path):  # noqa: F811
    """The variance of SNP effects is that of the run, and epsilon's follows; a file of its own needs no start."""
    own = {"variance_left": "implied", "variance": {"share": 0.4}}
    wanted = analysis(data, tmp_path / "run", own, variances={}, sampler=FEW)
    run = mmgibbs.run(wanted, progress=False, report=False)
    plan = ValidationPlan("kfold", folds=2, variances=str(tmp_path / "run"))
    found = validate_analysis(wanted, plan, progress=False, report=False, output=tmp_path / "out")
    v = run.summary.filter(parameter="snps.effect_var[milk]")["mean"][0]
    factor = prepare(load_config(wanted)).design.markers[0].left.factor
    assert np.ravel(found.info["variances"]["genetic"]) == pytest.approx([factor * v], rel=1e-9)
    held = analysis(data, tmp_path / "run", SNPS, variances={"residual": [[1.0]]}, sampler=FEW)
    found = validate_analysis(
        held, ValidationPlan("kfold", folds=2), progress=False, report=False, output=tmp_path / "again"
    )
    assert np.ravel(found.info["variances"]["genetic"]) == pytest.approx([factor * V], rel=1e-9)
