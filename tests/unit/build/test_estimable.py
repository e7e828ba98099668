"""Variances that the records do not determine are said by every method; flat priors without a posterior are refused."""

import numpy as np
import polars as pl
import pytest

import mmgibbs
from mmgibbs.errors import ModelError

N = 60
rng = np.random.default_rng(1)
RECORDS = pl.DataFrame(
    {
        "animal": [f"a{i}" for i in range(N)],
        "dam": [f"d{i % 20}" for i in range(N)],
        "tag": [f"t{i}" for i in range(N)],
        "herd": [f"h{i % 6}" for i in range(N)],
        "hy": [f"h{i % 6}-{i // 6 % 2}" for i in range(N)],
        "pen": [f"p{i % 12}" for i in range(N)],
        "litter": [f"l{i % 12}" for i in range(N)],
        "barn": [("in", "out")[i % 2] for i in range(N)],
        "farm": ["one"] * N,
        "age": [float(i % 5 + 1) for i in range(N)],
        "y": rng.normal(size=N).round(3),
        "z": rng.normal(size=N).round(3),
        "w": [1.0 + i % 2 for i in range(N)],
        "ill": [str(i) for i in rng.integers(0, 2, N)],
        "score": [str(i) for i in rng.integers(1, 5, N)],
    }
)
AGAIN = pl.concat([RECORDS, RECORDS.with_columns(y=pl.col("y") + pl.Series(rng.normal(size=N).round(3)))])
FAMILIES = pl.DataFrame(
    {
        "id": [f"s{k}" for k in range(5)] + [f"d{k}" for k in range(20)] + [f"a{i}" for i in range(N)],
        "sire": ["0"] * 5 + [f"s{k % 3}" for k in range(20)] + [f"s{i * 7 % 5}" for i in range(N)],
        "dam": ["0"] * 25 + [f"d{i % 20}" for i in range(N)],
    }
)
FOUNDERS = pl.DataFrame({"id": RECORDS["animal"], "sire": ["0"] * N, "dam": ["0"] * N})
ANIMAL = {"animal": "pedigree"}
EFFECTS = {"direct": {"level": "animal"}, "maternal": {"level": "dam"}}
MATERNAL = {"g": {"relationship": "pedigree", "effects": EFFECTS}}
METHODS = ["gibbs", "reml"]


def curve(degree=1, name="g", relationship="pedigree", level="animal"):
    legendre = {"column": "age", "degree": degree, "range": [1, 6]}
    return {name: {"relationship": relationship, "effects": {"rr": {"level": level, "legendre": legendre}}}}


def said(random, pedigree=None, records=RECORDS, traits="y", method="gibbs", **more):
    """Warnings of variances, but those of few levels under a flat prior."""
    model = mmgibbs.MixedModel(traits=traits, random=random, method=method, **more)
    warnings = model.check(records, pedigree)["warnings"]
    of_few = ("a flat prior, and", "mean may not exist")
    return [text for text in warnings if text.startswith("variances") and not any(words in text for words in of_few)]


def refused(random, pedigree=None, records=RECORDS, traits="y", **more):
    with pytest.raises(ModelError, match="the posterior does not exist") as error:
        said(random, pedigree, records, traits, **more)
    return str(error.value)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("random", "pedigree", "records", "named"),
    [
        (ANIMAL, FOUNDERS, RECORDS, "animal (y) and residual (y), only their sum:"),
        ("tag", None, RECORDS, "tag (y) and residual (y), only their sum:"),
        (["pen", "litter"], None, RECORDS, "pen (y) and litter (y), only their sum:"),
        (ANIMAL | {"pe": {"level": "animal"}}, FAMILIES, RECORDS, "pe (y) and residual (y), only their sum:"),
        (ANIMAL | {"pe": {"level": "animal"}}, FOUNDERS, AGAIN, "animal (y) and pe (y), only their sum:"),
    ],
)
def test_two_variances_of_which_the_sum_is_known(method, random, pedigree, records, named):
    (warning,) = said(random, pedigree, records, method=method)
    assert f"the records do not determine each of the variances of {named}" in warning
    source = {"gibbs": "the prior alone", "reml": "the starting values alone"}[method]
    assert f"how these are divided comes from {source}. Leave out model.random." in warning


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("random", "pedigree", "more"),
    [
        (ANIMAL, FAMILIES, {}),
        (ANIMAL, FAMILIES, {"traits": ["y", "z"]}),
        (ANIMAL, FOUNDERS, {"weights": "w"}),
        (ANIMAL, FAMILIES, {"variances": {"residual": {"by": "barn"}}}),
        (ANIMAL, FOUNDERS, {"records": AGAIN}),
        (ANIMAL | {"pe": {"level": "animal"}}, FAMILIES, {"records": AGAIN}),
        ("pen", None, {}),
        ("hy", None, {"fixed": ["herd"]}),
        (["pen", "herd"], None, {}),
        (MATERNAL, FAMILIES, {}),
        (curve(), FAMILIES, {}),
        (curve(2), FAMILIES, {"records": AGAIN}),
        (curve(relationship="identity"), None, {"records": pl.concat([AGAIN, AGAIN])}),
        ("tag", None, {"variances": {"tag": {"start": 1, "fixed": True}}}),
        ("tag", None, {"variances": {"tag": 1.0, "residual": {"start": 1.0, "fixed": True}}}),
    ],
)
def test_what_records_determine_is_not_questioned(method, random, pedigree, more):
    assert said(random, pedigree, method=method, **more) == []


@pytest.mark.parametrize("trait", [{"ill": {"type": "binary"}}, {"score": {"type": "ordinal"}}])
def test_a_liability_has_no_scale_of_its_own(trait):
    """Its residual variance is 1 by convention; a level for each record cannot be told from it."""
    (warning,) = said(ANIMAL, FOUNDERS, traits=trait)
    assert f"animal ({next(iter(trait))}) and residual" in warning and "is a convention" in warning
    assert said(ANIMAL, FAMILIES, traits=trait) == said("pen", traits=trait) == []
    assert "pen" in said(["pen", "litter"], traits=trait)[0] and "residual" not in said(["pen", "litter"])[0]


def test_counts_know_their_overdispersion():
    counts = RECORDS.with_columns(n=pl.Series(rng.poisson(3, N)))
    assert said("pen", records=counts, traits={"n": {"type": "count"}}) == []
    assert "tag (n) and residual (n)" in said("tag", records=counts, traits={"n": {"type": "count"}})[0]


@pytest.mark.parametrize("method", METHODS)
def test_residual_classes(method):
    by_barn = {"residual": {"by": "barn"}}
    (warning,) = said(ANIMAL, FOUNDERS, method=method, variances=by_barn)
    assert "animal (y), residual.classes.in (y) and residual.classes.out (y), only combinations" in warning


@pytest.mark.parametrize("method", METHODS)
def test_covariances_of_traits_that_meet_nowhere(method):
    first = pl.arange(0, N) < N // 2
    apart = RECORDS.with_columns(
        y=pl.when(first).then("y"), z=pl.when(~first).then("z"), cg=pl.Series([f"c{i // 5}" for i in range(N)])
    )
    assert said(ANIMAL, FAMILIES, apart, ["y", "z"], method) == []  # relatives have both
    (warning,) = said("cg", None, apart, ["y", "z"], method)
    assert "the records say nothing of the covariance of cg (y with z): no records, or levels, have both" in warning
    assert said("cg", None, apart, ["y", "z"], method, variances={"cg": {"structure": "diagonal"}}) == []


@pytest.mark.parametrize("method", METHODS)
def test_full_sisters_do_not_tell_direct_and_maternal_effects_apart(method):
    """Dams that are not related, each with one sire: full sibs have A / 2 and the whole maternal variance in common."""
    pairs = FAMILIES.with_columns(sire=pl.when(pl.col("id").str.starts_with("a")).then("sire").otherwise(pl.lit("0")))
    pairs = pairs.with_columns(
        sire=pl.when(pl.col("dam") != "0")
        .then("s" + (pl.col("dam").str.slice(1).cast(int) % 5).cast(str))
        .otherwise("sire")
    )
    (warning,) = said(MATERNAL, pairs, method=method)
    assert "(co)variances of g (direct:y, maternal:y), only combinations of them" in warning


@pytest.fixture(scope="module")
def genotypes(tmp_path_factory):
    path = tmp_path_factory.mktemp("genotypes") / "genotypes.csv"
    dosages = rng.binomial(2, rng.uniform(0.2, 0.5, 100), (N, 100))
    pl.DataFrame({"animal": RECORDS["animal"]} | {f"s{j}": dosages[:, j] for j in range(100)}).write_csv(path)
    return {"file": str(path), "quality": {"maf": 0, "call_rate": 0, "animal_call_rate": 0}}


def test_snp_effects_beside_relationships_of_the_same_snps(genotypes):
    """SNP effects of one variance, and genomic relationships made of them, are one effect twice."""
    genomic = {"u": {"level": "animal", "relationship": {"kind": "genomic", "blend": 0, "frequencies": "half"}}}
    data, ridge = {"genotypes": genotypes}, {"snps": {"level": "animal", "prior": "rr"}}
    (warning,) = said(genomic, data=data, markers=ridge)
    assert "u (y) and snps (y), only their sum" in warning
    assert "Leave out model.random.u or model.markers.snps" in warning
    mixture = {"snps": {"level": "animal", "prior": "bayes_c"}}
    assert said(genomic, data=data) == said(genomic, data=data, markers=mixture) == []
    assert said({"tag": {}}, data=data, markers=ridge)[0].startswith("variances.tag: ")
    assert said(ANIMAL, FAMILIES, data=data, markers=ridge) == []
    assert said("pen", data=data, markers=ridge) == []


def test_a_relationship_file_that_is_the_identity(tmp_path):
    path, near = tmp_path / "identity.txt", tmp_path / "near.txt"
    lines = [f"a{i} a{i} 1" for i in range(N)]
    path.write_text("\n".join(lines) + "\n")
    near.write_text("\n".join([*lines, "a0 a1 0.1"]) + "\n")
    (warning,) = said({"animal": {"relationship": str(path)}})
    assert "animal (y) and residual (y), only their sum" in warning
    assert said({"animal": {"relationship": str(near)}}) == []


def test_random_herds_within_fixed_herd_years():
    message = refused("herd", fixed=["hy"])
    assert "flat prior of the variance of herd (y): the records say nothing of it, since the fixed effects" in message
    assert "a model without model.random.herd, or a proper prior (variances.herd.prior: {half_t: {}})" in message
    for more in ({"variances": {"herd": {"prior": {"half_t": {}}}}}, {"method": "reml"}):
        (warning,) = said("herd", fixed=["hy"], **more)
        assert "the records say nothing of the variance of herd (y)" in warning
    assert said("hy", fixed=["herd"]) == []


@pytest.mark.parametrize(("levels", "exists"), [(2, False), (3, False), (4, True)])
def test_a_flat_variance_needs_three_contrasts(levels, exists):
    """Gelman (2006): a uniform prior of the variance of J groups needs J of at least 4."""
    records = RECORDS.with_columns(group=pl.Series([f"g{i % levels}" for i in range(N)]))
    if exists:
        assert said("group", records=records) == []
    else:
        assert "variances.group" in refused("group", records=records)
    assert said("group", records=records, variances={"group": {"prior": {"df": 1, "scale": 1}}}) == []


def test_a_prior_of_1_over_the_variance():
    message = refused("herd", variances={"herd": {"prior": {"df": 0, "scale": 0}}})
    assert "no finite integral near a variance of 0" in message
    assert said("herd", variances={"herd": {"prior": {"df": -1, "scale": 0}}}) == []  # 1 / standard deviation


@pytest.mark.parametrize(
    ("ages", "degree", "words"),
    [
        ([3.0] * N, 1, "have 1 different value in the records, too few for 2 coefficients"),
        ([4.0, *[3.0] * (N - 1)], 1, "tell it in 1 independent contrast after fixed effects, needed more than 3"),
        ([1.0, 2.0] * (N // 2), 2, "have 2 different values in the records, too few for 3 coefficients"),
    ],
)
def test_ages_that_do_not_determine_a_curve(ages, degree, words):
    records = RECORDS.with_columns(age=pl.Series(ages))
    message = refused(curve(degree), FAMILIES, records)
    assert "the slope, or another combination of the coefficients, is not determined" in message and words in message
    assert refused(curve(degree, relationship="identity"), None, records)


def test_twelve_traits_of_few_records():
    """44 contrasts less the mean for 12 + 12 (co)variances of each trait."""
    traits = {f"t{k}": rng.normal(size=44) for k in range(12)}
    records = pl.DataFrame({"animal": [f"a{i}" for i in range(44)], **traits})
    (warning,) = said(ANIMAL, FAMILIES, records, list(traits), "reml")
    assert "44 records of t0 less 1 equation of fixed effects leave 43 for the 24 variances and covariances" in warning
    assert said(ANIMAL, FAMILIES, records, list(traits)[:4], "reml") == []
    assert said(ANIMAL, FAMILIES, records, list(traits), "reml", variances={
        "animal": {"structure": "diagonal"}, "residual": {"structure": "diagonal"}
    }) == []  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
def test_more_records_than_are_looked_at_first(method):
    n = 4000
    big = pl.DataFrame(
        {
            "animal": [f"a{i}" for i in range(n)],
            "cg": [f"c{i // 10}" for i in range(n)],
            "pen": [f"p{i // 5}" for i in range(n)],
            "stall": [f"q{i // 5}" for i in range(n)],
            "y": rng.normal(size=n).round(3),
        }
    )
    kin = pl.DataFrame(
        {"id": big["animal"], "sire": [f"a{i % 40}" if i >= 40 else "0" for i in range(n)], "dam": ["0"] * n}
    )
    alone = kin.with_columns(sire=pl.lit("0"))
    assert said(ANIMAL, kin, big, fixed=["cg"], method=method) == []
    assert said(ANIMAL | {"pen": {}}, kin, big, fixed=["cg"], method=method) == []
    assert "animal (y) and residual (y)" in said(ANIMAL, alone, big, fixed=["cg"], method=method)[0]
    assert "pen (y) and stall (y)" in said(["pen", "stall"], None, big, fixed=["cg"], method=method)[0]
    # one pair of half sibs among thousands: little information is information
    pair = alone.with_columns(sire=pl.when(pl.col("id").is_in(["a3998", "a3999"])).then(pl.lit("a0")).otherwise("sire"))
    assert said(ANIMAL, pair, big, method=method) == []


def test_a_value_that_the_first_level_alone_has_counts():
    """Animal a0, the first level, has the second of two ages: as many as there are coefficients."""
    records = RECORDS.with_columns(age=pl.Series([4.0] + [3.0] * (N - 1)))
    (warning,) = said(curve(relationship="identity"), None, records, method="reml")
    assert "rr.0:y, rr.1:y" in warning and "different value" not in warning
