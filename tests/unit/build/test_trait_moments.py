"""Mean, variance of the fixed effects, CV_A and evolvability of a trait, against the draws of the effects."""

import numpy as np
import polars as pl
import pytest

import mmgibbs
from mmgibbs.errors import ConfigError

N = 120
RNG = np.random.default_rng(4)
HERD = RNG.integers(0, 4, N)
AGE = RNG.uniform(1, 6, N).round(1)
Y = 100 + 5.0 * HERD + 2 * AGE + RNG.normal(0, 3, N)
NOISE = RNG.normal(0, 1, N)
PEDIGREE = pl.DataFrame(
    {
        "id": [f"a{i}" for i in range(N)],
        "sire": [None] * 20 + [f"a{i % 10}" for i in range(20, N)],
        "dam": [None] * 20 + [f"a{10 + i % 10}" for i in range(20, N)],
    }
)


def analysis(y=Y, **changes):
    second = np.where(np.arange(N) % 3 == 0, np.nan, y * 2 + NOISE)
    records = pl.DataFrame(
        {"animal": PEDIGREE["id"], "herd": [f"h{h}" for h in HERD], "age": AGE, "y": y, "z": second}
    ).with_columns(pl.col("z").fill_nan(None))
    return {
        "data": {"phenotypes": records, "pedigree": PEDIGREE},
        "traits": ["y"],
        "model": {
            "fixed": {"herd": {}, "age": {"kind": "covariate"}},
            "random": {"animal": {"relationship": "pedigree"}},
        },
        "sampler": {"chains": 2, "burn_in": 10, "samples": 30, "thin": 1, "seed": 3, "threads": 1},
        "output": {"moments": ["y"], "save_levels": {"herd": "all", "age": "all"}},
    } | changes


def run(folder, **changes):
    given = analysis(**changes)
    return mmgibbs.run(given, directory=folder, progress=False)


def fixed_part(result, trait=0):
    """(draws, records) from the draws of the levels on the user's scale."""
    posterior, eta = result.draws["posterior"], 0.0
    for term, x in (("herd", np.eye(4)[HERD]), ("age", AGE[:, None])):
        if term in posterior:
            saved = posterior[term].to_numpy()[..., trait]
            eta = eta + saved.reshape(-1, saved.shape[-1]) @ x.T
    return eta


def drawn(result, name):
    return result.draws["posterior"][name].to_numpy().ravel()


@pytest.mark.parametrize("engine", ["serial", "structured", "hybrid", "marginal"])
def test_moments_are_those_of_the_draws(tmp_path, engine):
    sampler = analysis()["sampler"] | {"engine": engine}
    result = run(tmp_path / "run", sampler=sampler)
    eta = fixed_part(result)
    np.testing.assert_allclose(drawn(result, "mean[y]"), eta.mean(axis=1), rtol=1e-6)
    np.testing.assert_allclose(drawn(result, "fixed_var[y]"), eta.var(axis=1), rtol=1e-4)
    va = drawn(result, "animal.var[y]")
    np.testing.assert_allclose(drawn(result, "cv_a[y]"), 100 * np.sqrt(va) / eta.mean(axis=1), rtol=1e-6)
    np.testing.assert_allclose(drawn(result, "i_a[y]"), va / eta.mean(axis=1) ** 2, rtol=1e-6)
    row = result.summary.filter(parameter="mean[y]").row(0, named=True)
    assert abs(row["mean"] - Y.mean()) < 1 and row["rhat"] is not None


def test_no_other_draw_changes(tmp_path):
    plain, asked = run(tmp_path / "plain", output={}), run(tmp_path / "asked")
    for name in plain.summary["parameter"]:
        assert np.array_equal(drawn(plain, name), drawn(asked, name)), name
    assert set(asked.summary["parameter"]) - set(plain.summary["parameter"]) == {
        "mean[y]", "fixed_var[y]", "cv_a[y]", "i_a[y]"
    }  # fmt: skip


def test_records_of_a_trait_alone_count(tmp_path):
    result = run(tmp_path / "run", traits=["y", "z"], output=analysis()["output"] | {"moments": ["z"]})
    observed = np.arange(N) % 3 != 0
    eta = fixed_part(result, trait=1)[:, observed]
    np.testing.assert_allclose(drawn(result, "mean[z]"), eta.mean(axis=1), rtol=1e-6)
    np.testing.assert_allclose(drawn(result, "fixed_var[z]"), eta.var(axis=1), rtol=1e-4)
    assert "mean[y]" not in set(result.summary["parameter"])


@pytest.mark.parametrize("y", [Y - Y.mean(), Y - Y.min(), -Y])
def test_a_trait_without_a_true_zero_has_no_coefficient_of_variation(tmp_path, y):
    result = run(tmp_path / "run", y=y)
    names = set(result.summary["parameter"])
    assert {"mean[y]", "fixed_var[y]"} <= names and not {"cv_a[y]", "i_a[y]"} & names
    assert any("some records are 0 or less" in note for note in result.info["notes"])
    assert not any("0 or less" in warning for warning in result.info["warnings"])


def test_a_run_in_pieces_has_the_same_moments(tmp_path):
    whole = run(tmp_path / "whole")
    short = analysis()["sampler"] | {"samples": 12}
    run(tmp_path / "pieces", sampler=short)
    pieces = mmgibbs.run(analysis(sampler=short), directory=tmp_path / "pieces", extend=18, progress=False)
    for name in ("mean[y]", "fixed_var[y]", "i_a[y]"):
        assert np.array_equal(drawn(whole, name), drawn(pieces, name))


@pytest.mark.parametrize(
    "change, message",
    [
        ({"output": {"moments": ["w"]}}, "output.moments: 'w' is not a trait"),
        ({"traits": {"y": {"type": "count"}}}, "output.moments: found y, whose type is count; needed a normal trait"),
        (
            {"sampler": {"method": "reml"}},
            "output.moments: cannot be combined with method: reml, which draws nothing; "
            "needed method: gibbs, or no output.moments (--set output.moments=null)",
        ),
    ],
)
def test_what_has_no_such_moments_is_refused(change, message):
    with pytest.raises(ConfigError) as told:
        mmgibbs.load_config(analysis(**change))
    assert message in str(told.value)
