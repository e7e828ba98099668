"""What is warned of or resolved: few levels or records, dependent fixed effects; and where a run may be written."""

import numpy as np
import polars as pl
import pytest
from helpers.small_analysis import ANALYSIS, altered, command, contents, refused, replaced, write_files

GIBBS = replaced(ANALYSIS, "method: blup", "chains: 1, burn_in: 5, samples: 20, thin: 1")
# One variance of few levels, so that its prior decides whether a draw and a mean exist.
HERDS = """\
data: {phenotypes: herds.csv}
traits: [y]
model: {random: {herd: {}}}
sampler: {chains: 1, burn_in: 20, samples: 50, thin: 1}
output: {directory: run}
"""


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "analysis"


# ------------------------------------------------------------------------------------------------ warned of, resolved


def herds(levels):
    rng = np.random.default_rng(7)
    rows = [f"h{i % levels},{10 + 3 * (i % levels) + rng.normal():.3f}" for i in range(4 * levels)]
    return {"analysis.yaml": HERDS, "herds.csv": "\n".join(["herd,y", *rows]) + "\n"}


@pytest.mark.parametrize(
    ("prior", "df", "warned"),
    [("{df: -1.5, scale: 1}", -1.5, True), ("{df: -1, scale: 1}", -1, True), ("{df: -0.5, scale: 1}", -0.5, False)],
)
def test_prior_df_without_a_mean_is_a_warning(folder, prior, df, warned):
    """Three herds: nu + 3 > 0 for a draw, > 2 for a mean."""
    write_files(folder, herds(3))
    outcome = command(folder, "run", "analysis.yaml", "--set", f"variances.herd.prior={prior}")
    assert outcome.code == 0, outcome.err
    warning = f"variances.herd: the posterior mean may not exist: prior df {df} plus 3 levels gives {df + 3} degrees"
    assert (f"warning: {warning}" in outcome.err) == warned
    assert any(w.startswith(warning) for w in outcome.record["warnings"]) == warned
    assert outcome.summary["mean"].is_finite().all()


def test_prior_df_without_a_draw_is_refused(folder):
    write_files(folder, herds(2))
    message = refused(folder)
    assert message == (
        "variances.herd: the posterior does not exist: prior df -2 plus 2 levels gives 0 degrees of freedom, "
        "needed more than 0 for a 1 x 1 matrix; give a prior with df above -2, or fix it"
    )


@pytest.mark.parametrize(
    ("levels", "prior", "said"),
    [
        (
            8,
            "flat",
            "8 levels with records: if their effects were known, the posterior mean of the variance would be 2",
        ),
        (19, "flat", "variance would be 1.3 times their mean square"),
        (20, "flat", None),
        (8, "{df: 4, scale: 1}", None),
    ],
)
def test_a_flat_prior_on_few_levels_is_said(folder, levels, prior, said):
    """E(S / chi^2) of q - 2 degrees of freedom is S / (q - 4): q / (q - 4) times the mean square S / q."""
    write_files(folder, herds(levels))
    outcome = command(folder, "check", "analysis.yaml", "--set", f"variances.herd.prior={prior}")
    warnings = [line for line in outcome.err.splitlines() if "a flat prior, and" in line]
    assert outcome.code == 0 and len(warnings) == (said is not None)
    assert said is None or said in warnings[0]


def test_a_flat_prior_on_three_levels_is_refused(folder):
    write_files(folder, herds(3))
    assert (
        "variances.herd.prior: the posterior does not exist with a flat prior of the variance of herd (y): the records "
        "tell it in 2 independent contrasts after fixed effects, needed more than 2" in refused(folder)
    )
    write_files(folder, herds(4))
    assert command(folder, "check", "analysis.yaml").code == 0


def test_too_few_records_for_flat_priors_are_refused(folder):
    """Six records of a trait and three equations; each flat 2 x 2 matrix needs more than three contrasts of it."""
    write_files(folder, {"analysis.yaml": GIBBS})
    message = refused(folder)
    for name in ("genetic", "residual"):
        assert f"the posterior does not exist with a flat prior of the variance of {name} (birth_weight)" in message
    assert "in 3 independent contrasts after fixed effects, needed more than 3" in message
    outcome = command(folder, "check", "analysis.yaml", "--set", "variances.mode=fixed")
    assert outcome.code == 0 and "warning" not in outcome.out + outcome.err


def test_a_rank_deficient_design_is_resolved_and_reported(folder):
    """Herd again under another name: its last level goes, and nothing else changes but who carries what."""
    write_files(folder)
    assert command(folder, "run", "analysis.yaml", "--quiet").code == 0
    plain = command(folder, "run", "analysis.yaml", "--quiet", "--output", "plain").folder / "plain"
    write_files(folder, altered("analysis.yaml", "sex: {}", "sex: {}\n    district: {column: herd}"))
    outcome = command(folder, "run", "analysis.yaml", "--overwrite", "--verbose")
    assert outcome.code == 0, outcome.err
    dropped = outcome.solutions.filter(pl.col("term") == "district")
    assert dropped["mean"].to_list() == dropped["sd"].to_list() == [0.0] * 4
    aliased = "aliased: the records cannot tell them from other fixed effects"
    note = f"district, weaning_weight: 2 levels set to 0 ({aliased}): north, south"
    assert note in outcome.record["notes"] and note in outcome.err
    kept = outcome.solutions.filter(pl.col("term") != "district")
    expected = pl.read_parquet(plain / "solutions.parquet")
    assert kept.drop("mean", "sd").columns == expected.drop("mean", "sd").columns
    for column in ("mean", "sd", "reliability"):
        np.testing.assert_allclose(kept[column].fill_null(-9), expected[column].fill_null(-9), rtol=1e-6, atol=1e-8)


def test_a_class_that_no_trait_needs_may_be_missing(folder):
    write_files(folder, altered("phenotypes.csv", "d3,north,F,175", "d3,,,NA"))
    assert command(folder, "run", "analysis.yaml", "--quiet").code == 0


# ------------------------------------------------------------------------------------------------ the run folder


def test_an_existing_run_is_kept_unless_told(folder):
    write_files(folder)
    assert command(folder, "run", "analysis.yaml", "--quiet").code == 0
    said = "exists and holds a run; choose another directory, or give --overwrite"
    assert refused(folder) == f"output.directory: '{folder / 'run'}' {said}"
    first = contents(folder / "run")
    broken = altered("phenotypes.csv", "41.0", "heavy")
    write_files(folder, broken)
    assert refused(folder, "--overwrite").startswith("phenotypes.csv row 3")  # the earlier run stays
    assert contents(folder / "run") == first
    write_files(folder, altered("phenotypes.csv", "41.0", "43.0"))
    assert command(folder, "run", "analysis.yaml", "--quiet", "--overwrite").code == 0
    assert contents(folder / "run") != first and sorted(contents(folder / "run")) == sorted(first)


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("file", "is a file, needed a directory"),
        ("file/run", "cannot be created, since"),
        ("mine", "holds files that are not of a run (notes.txt); needed a new directory"),
    ],
)
def test_an_output_directory_of_something_else(folder, place, said):
    write_files(folder)
    (folder / "file").write_text("mine")
    (folder / "mine").mkdir()
    (folder / "mine" / "notes.txt").write_text("mine")
    message = refused(folder, "--output", place, "--overwrite")
    assert message.startswith("output.directory: ") and said in message


def test_a_disk_that_fills_up_leaves_nothing(folder, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    write_files(folder)
    monkeypatch.setattr("mmgibbs.results.folder.write_draws", full)
    assert "No space left on device" in refused(folder, "--output", "new/folder/run")
