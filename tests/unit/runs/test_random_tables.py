"""Random small pedigrees, tables and models, sound or not, through mmgibbs.run: refused in words, or right.

Where a run succeeds, records and observations add up, every number is finite, and `blup` solves the dense equations.
"""

import tempfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from helpers.selection import first
from helpers.small_analysis import assert_readable
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from reference import dense

import mmgibbs.results.folder
import mmgibbs.runs.run
from mmgibbs.build.assemble import assemble
from mmgibbs.config import load_config
from mmgibbs.data.prepare import prepare
from mmgibbs.errors import MmgibbsError
from mmgibbs.pedigree.errors import PedigreeError
from mmgibbs.posterior.moments import PooledMoments
from mmgibbs.results.tables import solutions_frame

ANIMALS = [f"a{i}" for i in range(9)]
TRAITS = ["y", "z", "w"]
UNKNOWN = ["0", "NA", ""]


@pytest.fixture(scope="module", autouse=True)
def without_draws():
    """draws.nc takes longer to write than all the rest, and holds nothing here."""
    patch = pytest.MonkeyPatch()
    patch.setattr(mmgibbs.results.folder, "write_draws", lambda path, **_: path.touch())
    yield
    patch.undo()


@st.composite
def pedigrees(draw):
    """Animals with parents among those before them, of two sexes; one in four is spoilt: any cell gets any id."""
    n = draw(st.integers(3, len(ANIMALS)))
    rows = []
    for i in range(n):
        males = [a for j, a in enumerate(ANIMALS[:i]) if j % 2 == 0]
        females = [a for j, a in enumerate(ANIMALS[:i]) if j % 2]
        group = draw(st.sampled_from("pq"))
        rows.append(
            [ANIMALS[i], *(draw(st.sampled_from([*UNKNOWN, *known, *known])) for known in (males, females)), group]
        )
    if draw(st.integers(0, 3)) == 0:
        for _ in range(draw(st.integers(1, 2))):
            cell = draw(st.sampled_from([*ANIMALS, *UNKNOWN, "stranger"]))
            rows[draw(st.integers(0, n - 1))][draw(st.integers(0, 2))] = cell
    rows = draw(st.permutations(rows))
    return pl.DataFrame(rows, schema=dict.fromkeys(["id", "sire", "dam", "breed"], pl.String), orient="row")


@st.composite
def tables(draw, traits, sound):
    """Records with classes, covariates (x2 = 2 x, c constant), weights and missing traits; a few are spoilt."""
    value = st.one_of(st.integers(-9, 99).map(str), st.floats(-99, 99).map(lambda v: f"{v:.3g}"))
    record = {
        "animal": st.sampled_from(sound),
        "herd": st.sampled_from(["north", "south", "east"]),
        "sex": st.sampled_from("FM"),
        "x": st.integers(0, 4).map(str),
        "weight": st.sampled_from(["1", "2", "0.5"]),
        **{t: st.one_of(value, value, value, st.just("NA")) for t in traits},
    }
    rows = draw(st.lists(st.fixed_dictionaries(record), min_size=draw(st.sampled_from([1, 5, 8])), max_size=14))
    for row in rows:
        row["x2"], row["c"] = str(2 * int(row["x"])), "7"
    if draw(st.integers(0, 3)) == 0:
        odd = st.sampled_from(["", "NA", "0", "-1", "inf", "nan", "tall", "1e300", "a77", " 3 ", "2011-03-04"])
        row = rows[draw(st.integers(0, len(rows) - 1))]
        row[draw(st.sampled_from(sorted(row)))] = draw(odd)
    return pl.DataFrame(rows, schema=dict.fromkeys(rows[0], pl.String))


def some(items, least=0):
    return st.lists(st.sampled_from(items), min_size=least, max_size=len(items), unique=True)


@st.composite
def covariances(draw, k):
    """A positive definite matrix: equal correlations, variances of different size."""
    sd = np.array(draw(st.lists(st.sampled_from([0.5, 1.0, 3.0, 10.0]), min_size=k, max_size=k)))
    correlation = draw(st.sampled_from([0.0, 0.3, 0.9]))
    return (np.outer(sd, sd) * np.where(np.eye(k, dtype=bool), 1.0, correlation)).tolist()


@st.composite
def variance(draw, k, method):
    """A start; for Gibbs mostly a proper prior as well: so few records seldom determine a variance."""
    start = draw(covariances(k))
    if method == "blup" or draw(st.integers(0, 5)) == 0:
        return {"start": start}
    return {"start": start, "prior": {"df": k + 2, "scale": start}}


FIXED = {
    "herd": {},
    "sex": {},
    "district": {"column": "herd"},
    "x": {"kind": "covariate", "degree": 2},
    "twice": {"column": "x2", "kind": "covariate"},
    "constant": {"column": "c", "kind": "covariate"},
    "slopes": {"column": "x", "kind": "covariate", "by": "herd"},
    "curve": {"column": "x", "kind": "covariate", "legendre": {"degree": 2, "range": [0, 4]}},
    "farm": {"column": "herd", "prior": {"variance": 4}},
}


@st.composite
def analyses(draw, method):
    traits = TRAITS[: draw(st.integers(1, 3))]
    pedigree = draw(pedigrees())
    phenotypes = draw(tables(traits, pedigree["id"].to_list()))
    fixed = {name: FIXED[name] | {"traits": draw(some(traits, 1))} for name in draw(some(list(FIXED)))}
    random, variances = {}, {}

    def add(name, relationship, effects):
        k = sum(len(e["traits"]) * len(e.get("covariates", "1")) for e in effects.values())
        random[name] = {"relationship": relationship, "effects": effects}
        variances[name] = draw(variance(k, method))

    kinds = draw(some(["genetic", "permanent", "barn"]))
    if "genetic" in kinds:
        effects = {"direct": {"level": "animal", "traits": draw(some(traits, 1))}}
        if draw(st.booleans()):
            unknown = draw(st.sampled_from(["omit", "omit", "error"]))
            effects["maternal"] = {"level": "dam", "traits": draw(some(traits, 1)), "unknown_level": unknown}
        if draw(st.integers(0, 3)) == 0:
            effects["direct"]["covariates"] = ["x", "c"]
        add("genetic", "pedigree", effects)
    if "permanent" in kinds:
        add("permanent", "identity", {"own": {"level": "animal", "traits": draw(some(traits, 1))}})
    if "barn" in kinds:
        add("barn", "identity", {"barn": {"level": "herd", "traits": draw(some(traits, 1))}})
    variances["residual"] = draw(variance(len(traits), method))
    data = {
        "phenotypes": phenotypes,
        "pedigree": pedigree,
        "pedigree_columns": {"id": "id", "sire": "sire", "dam": "dam"},
        "inbreeding": draw(st.sampled_from(["account", "ignore"])),
        "add_missing_animals": draw(st.booleans()),
    }
    if draw(st.booleans()):
        data["weights"] = "weight"
    if "genetic" in kinds and draw(st.integers(0, 2)) == 0:
        data["groups"] = {"column": "breed", "effect": draw(st.sampled_from(["fixed", "random"]))}
    if method == "blup":
        sampler = {"method": "blup"}
    else:
        update = draw(st.sampled_from(["level", "site"]))
        sampler = {
            "chains": 1,
            "burn_in": 2,
            "samples": 12,
            "thin": 3,
            "update": update,
            "seed": draw(st.integers(0, 99)),
        }
        variances["mode"] = draw(st.sampled_from(["sample", "fixed"]))
    return {
        "data": data,
        "traits": traits,
        "model": {"fixed": fixed, "random": random, "intercept": draw(st.sampled_from(["auto", True, False]))},
        "variances": variances,
        "sampler": sampler,
    }


def ran(config):
    """The result of a run, or None where it is refused in words; either way nothing is left that should not be."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "run"
        try:
            result = mmgibbs.runs.run.run(config | {"output": {"directory": str(target)}}, progress=False)
        except (MmgibbsError, PedigreeError) as error:
            assert_readable(str(error))
            assert list(Path(folder).iterdir()) == []
            event("refused: " + str(error).splitlines()[0].split(":")[-1][:40])
            return None
        assert [p.name for p in Path(folder).iterdir()] == ["run"]
    event("ran")
    return result


def assert_adds_up(config, result) -> None:
    table = config["data"]["phenotypes"]
    observed = table.select(
        pl.col(t).str.strip_chars().is_in(["", "NA"], nulls_equal=True).not_() & pl.col(t).is_not_null()
        for t in config["traits"]
    )
    counts = result.info["data"]
    used = observed.select(pl.any_horizontal(pl.all())).to_series().sum()
    left_out = sum(counts["records"]["left_out"].values())
    assert (counts["records"]["read"], counts["records"]["used"], left_out) == (table.height, used, table.height - used)
    assert counts["observations"] == {t: observed[t].sum() for t in config["traits"]}
    for frame in (result.solutions, result.summary):
        assert frame["mean"].null_count() == 0 and frame["mean"].is_finite().all()
        assert frame["sd"].drop_nulls().is_finite().all() and (frame["sd"].drop_nulls() >= 0).all()
    if "genetic" in config["model"]["random"]:
        solved = result.solutions.filter((pl.col("term") == "genetic") & (pl.col("effect") != "group"))
        assert set(config["data"]["pedigree"]["id"]) <= set(solved["level"])
    if "herd" in config["model"]["fixed"]:
        herds = (
            table["herd"]
            .str.strip_chars()
            .filter(observed.select(pl.any_horizontal(pl.all())).to_series())
            .drop_nulls()
        )
        assert set(result.solutions.filter(pl.col("term") == "herd")["level"]) == set(herds) - {"", "NA"}


quick = settings(
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    database=None,
)


@pytest.mark.parametrize("n", first(1, [10, 80]))
def test_blup_is_the_dense_solution_or_refused(n):
    settings(quick, max_examples=n)(given(analyses("blup"))(assert_dense_solution_or_refused))()


def assert_dense_solution_or_refused(config):
    result = ran(config)
    if result is None:
        return
    assert_adds_up(config, result)
    analysis = load_config(config)
    prepared = prepare(analysis)
    model, design = assemble(analysis, prepared).model, prepared.design
    G, R = [None if c is None else c.start for c in model.covariances], model.residual.start
    equations = dense.build(design, G, R)
    theta = design.to_original_scale(equations.theta(equations.solution))
    expected = solutions_frame(prepared, PooledMoments.exact(theta, None), {})
    keys = ["term", "effect", "trait", "level"]
    assert result.solutions.select(keys).equals(expected.select(keys))
    scale = max(1.0, float(expected["mean"].abs().max()))
    np.testing.assert_allclose(result.solutions["mean"], expected["mean"], rtol=1e-6, atol=1e-7 * scale)
    # The map to the original scale is affine: its linear part takes a square root of the covariance, column by column.
    values, vectors = np.linalg.eigh(equations.covariance)
    columns = [*(vectors * np.sqrt(np.maximum(values, 0.0))).T, np.zeros(equations.size)]
    *images, offset = [design.to_original_scale(equations.theta(column)) for column in columns]
    sd = [np.sqrt(sum((image[i] - offset[i]) ** 2 for image in images)) for i in range(len(theta))]
    expected = solutions_frame(prepared, PooledMoments.exact(theta, sd), {})
    np.testing.assert_allclose(result.solutions["sd"], expected["sd"], rtol=1e-6, atol=1e-7)


@settings(quick, max_examples=6)
@given(analyses("gibbs"))
def test_a_few_sweeps_are_finite_or_refused(config):
    result = ran(config)
    if result is not None:
        assert_adds_up(config, result)
        assert result.info["kept_draws_per_chain"] == 4
