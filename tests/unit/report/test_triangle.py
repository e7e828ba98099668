"""Of a symmetric matrix a page shows one triangle."""

import polars as pl

from mmgibbs.report.findings import chain_findings
from mmgibbs.report.triangle import lower_triangle


def summary(rows):
    return pl.DataFrame(
        [{"parameter": name, "mean": mean, "sd": sd} for name, mean, sd in rows],
        {"parameter": pl.String, "mean": pl.Float64, "sd": pl.Float64},
    )


def test_a_covariance_is_shown_once():
    whole = summary(
        [
            ("covariance[slope,slope]", 1.0, 0.1),
            ("covariance[slope,intercept]", 0.2, 0.3),
            ("covariance[intercept,slope]", 0.2, 0.3),
            ("covariance[intercept,intercept]", 2.0, 0.1),
            ("tau", None, None),
        ]
    )
    shown = lower_triangle(whole)["parameter"].to_list()
    assert shown == [
        "covariance[slope,slope]",
        "covariance[intercept,slope]",
        "covariance[intercept,intercept]",
        "tau",
    ]


def test_coefficients_are_no_matrix():
    names = ["beta[a,b]", "beta[b,a]"]
    assert lower_triangle(summary([(name, 0.0, 0.0) for name in names]))["parameter"].to_list() == names


def test_labels_with_commas_have_their_mirror_too():
    names = [f"V[{a},{b}]" for a in ("x,yes", "x,no") for b in ("x,yes", "x,no")]
    shown = lower_triangle(summary([(name, 1.0 if k in (1, 2) else k, 0.5) for k, name in enumerate(names)]))
    assert shown["parameter"].to_list() == ["V[x,yes,x,yes]", "V[x,no,x,yes]", "V[x,no,x,no]"]


def test_what_is_not_symmetric_stays():
    table = summary(
        [("beta[a,b]", 0.2, 0.3), ("beta[b,a]", 0.4, 0.3), ("beta[a,a]", 0.2, 0.3), ("corr[a,b]", 0.1, 0.2)]
    )
    assert lower_triangle(table).equals(table) and lower_triangle(summary([])).is_empty()


def test_it_counts_once_in_warnings():
    rows = [("V[a,a]", 1.0, 0.1), ("V[a,b]", 0.2, 0.3), ("V[b,a]", 0.2, 0.3), ("V[b,b]", 2.0, 0.1)]
    table = summary(rows).with_columns(rhat=1.2, ess_bulk=500.0, ess_tail=500.0)
    (found,) = chain_findings(table, {})
    assert "for 3 of 3 parameters" in found.fact
