"""The tables of the contract: columns, row order, names, reliability, blanks."""

import time
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from mmgibbs.data.prepared import LevelLabels
from mmgibbs.models.design import Design
from mmgibbs.models.relationships.groups import GroupedPedigree
from mmgibbs.models.relationships.identity import Identity
from mmgibbs.models.relationships.pedigree import Pedigree
from mmgibbs.models.relationships.user_inverse import SparseInverse
from mmgibbs.models.terms import Effect, Flat, Levels, Related, Term
from mmgibbs.pedigree.relationship import relatives
from mmgibbs.posterior.moments import PooledMoments
from mmgibbs.posterior.summary import summary_table
from mmgibbs.results.tables import SOLUTION_COLUMNS, SUMMARY_COLUMNS, solutions_frame, summary_frame

TRAITS = ("birth", "weaning")


def effect(name, traits=(0, 1), covariates=None, coefficients=("",)):
    return Effect(name, np.zeros(1, np.int32), traits, covariates, coefficients)


def term(name, kind, effects, n_levels, relationship=None, **more):
    prior = Flat() if kind == "fixed" else Related(relationship or Identity(n_levels))
    return Term(name, Levels(tuple(effects), n_levels), prior, **more)


def pedigree(n, n_groups=0):
    parents = np.full(n, n if n_groups else -1, np.int32)
    kin = relatives(parents, parents, None, n_groups, False)
    return GroupedPedigree(kin) if n_groups else Pedigree(kin)


def labels(ids, order=None, **more):
    return LevelLabels(
        pl.Series(ids, dtype=pl.String), np.arange(len(ids)) if order is None else np.array(order), **more
    )


def prepared(*terms_and_labels):
    terms, levels = zip(*terms_and_labels)
    design = Design(TRAITS, np.zeros((1, 2)), np.zeros(1, np.int32), np.ones((1, 2), bool), np.ones(1), terms)
    return SimpleNamespace(design=design, levels=levels)


def pooled(p, sd=2.0):
    """Means that say where they come from: 100 x term + 10 x level code + component."""
    shapes = [(t.n_levels, t.n_components) for t in p.design.terms]
    mean = [100.0 * i + 10.0 * np.arange(q)[:, None] + np.arange(k) for i, (q, k) in enumerate(shapes)]
    for m, t in zip(mean, p.design.terms):
        if t.active is not None:
            m[~t.active] = 0
    sds, mcses, sizes = ([np.full(s, value) for s in shapes] for value in (sd, 0.1, 400.0))
    return PooledMoments(mean, sds, mcses, sizes, 4000, 100)


def rows(frame, *columns):
    return frame.select(columns).rows()


def test_class_and_intercept_rows_run_in_reporting_order_and_held_levels_have_blanks():
    active = np.ones((3, 2), bool)
    active[2, 1] = False
    p = prepared(
        (term("intercept", "fixed", [effect("", (1,))], 1), labels(["1"])),
        (term("cg", "fixed", [effect("")], 3, active=active), labels(["10", "9", "2"], order=[2, 1, 0])),
    )
    frame = solutions_frame(p, pooled(p), {})
    assert tuple(frame.columns) == SOLUTION_COLUMNS
    assert frame.schema == {
        c: pl.String if c in ("term", "effect", "trait", "level") else pl.Float64 for c in SOLUTION_COLUMNS
    }
    assert rows(frame, "term", "effect", "trait", "level", "mean", "sd", "mcse", "ess") == [
        ("intercept", "", "weaning", "1", 0.0, 2.0, 0.1, 400.0),
        ("cg", "", "birth", "2", 120.0, 2.0, 0.1, 400.0),
        ("cg", "", "weaning", "2", 0.0, 0.0, None, None),
        ("cg", "", "birth", "9", 110.0, 2.0, 0.1, 400.0),
        ("cg", "", "weaning", "9", 111.0, 2.0, 0.1, 400.0),
        ("cg", "", "birth", "10", 100.0, 2.0, 0.1, 400.0),
        ("cg", "", "weaning", "10", 101.0, 2.0, 0.1, 400.0),
    ]
    assert frame.select(pl.col("pev", "reliability", "accuracy", "inbreeding").is_null().all()).row(0) == (True,) * 4


def test_a_covariate_has_its_power_for_a_level_before_the_trait():
    age = effect("", covariates=np.zeros((1, 2)), coefficients=("x^1", "x^2"))
    p = prepared(
        (term("age", "fixed", [age], 1), labels([""], coefficient_in_level=True)),
        (term("age_by_sex", "fixed", [age], 2), labels(["M", "F"], order=[1, 0], coefficient_in_level=True)),
    )
    frame = solutions_frame(p, pooled(p), {})
    assert rows(frame, "effect", "trait", "level", "mean") == [
        ("", "birth", "x^1", 0.0),
        ("", "weaning", "x^1", 2.0),
        ("", "birth", "x^2", 1.0),
        ("", "weaning", "x^2", 3.0),
        ("", "birth", "F:x^1", 110.0),
        ("", "weaning", "F:x^1", 112.0),
        ("", "birth", "F:x^2", 111.0),
        ("", "weaning", "F:x^2", 113.0),
        ("", "birth", "M:x^1", 100.0),
        ("", "weaning", "M:x^1", 102.0),
        ("", "birth", "M:x^2", 101.0),
        ("", "weaning", "M:x^2", 103.0),
    ]


def test_reliability_uses_each_components_variance_and_the_inbreeding_of_the_level():
    genetic = term("genetic", "random", [effect("direct"), effect("maternal", (1,))], 3, pedigree(2, 1))
    inbreeding = np.array([0.0, 0.25, np.nan])
    p = prepared((genetic, labels(["A", "B", "unknown sires"], inbreeding=inbreeding, n_groups=1)))
    G = np.diag([9.0, 90.0, 3.0])
    frame = solutions_frame(p, pooled(p), {"genetic": G})
    assert rows(frame, "effect", "trait", "level") == [
        *[
            (e, t, animal)
            for animal in "AB"
            for e, t in (("direct", "birth"), ("direct", "weaning"), ("maternal", "weaning"))
        ],
        *[("group", t, "unknown sires") for t in ("birth", "weaning", "weaning")],
    ]
    assert frame["pev"].to_list() == [4.0] * 9
    expected = [1 - 4 / ((1 + f) * v) for f in (0, 0.25) for v in (9, 90, 3)]
    assert frame["reliability"][:6].to_list() == pytest.approx(expected)
    assert expected[2] < 0 and frame["accuracy"][2] == 0.0 and frame["accuracy"][1] == pytest.approx(expected[1] ** 0.5)
    assert frame["inbreeding"].to_list() == [0.0] * 3 + [0.25] * 3 + [None] * 3
    assert frame["reliability"][6:].null_count() == 3 and frame["accuracy"][6:].null_count() == 3


def test_random_regressions_number_their_coefficients_and_use_their_own_variance():
    curve = effect("rr", (0,), np.zeros((1, 2)), ("legendre.0", "legendre.1"))
    p = prepared(
        (term("genetic", "random", [curve], 2, pedigree(2)), labels(["A", "B"], order=[1, 0], inbreeding=np.zeros(2)))
    )
    frame = solutions_frame(p, pooled(p), {"genetic": np.array([[8.0, 1.0], [1.0, 16.0]])})
    assert rows(frame, "effect", "trait", "level", "reliability") == [
        ("rr.0", "birth", "B", 0.5),
        ("rr.1", "birth", "B", 0.75),
        ("rr.0", "birth", "A", 0.5),
        ("rr.1", "birth", "A", 0.75),
    ]


def test_a_users_relationship_has_pev_but_no_reliability_and_identity_no_inbreeding():
    p = prepared(
        (
            term(
                "line", "random", [effect("", (0,))], 1, SparseInverse(np.arange(2), np.zeros(1, np.int32), np.ones(1))
            ),
            labels(["L"]),
        ),
        (term("litter", "random", [effect("", (0,))], 1), labels(["1"])),
    )
    frame = solutions_frame(p, pooled(p), {"line": np.eye(1) * 8, "litter": np.eye(1) * 8})
    assert rows(frame, "pev", "reliability", "accuracy", "inbreeding") == [
        (4.0, None, None, None),
        (4.0, 0.5, 0.5**0.5, None),
    ]


def test_computed_solutions_leave_the_unknown_blank():
    p = prepared(
        (term("genetic", "random", [effect("", (0,))], 2, pedigree(2)), labels(["A", "B"], inbreeding=np.zeros(2)))
    )
    mean = [np.ones((2, 1))]
    blank = solutions_frame(p, PooledMoments.exact(mean), {"genetic": np.eye(1)})
    assert rows(blank, "mean", "sd", "mcse", "ess", "pev", "reliability", "accuracy") == [(1.0, *[None] * 6)] * 2
    known = solutions_frame(p, PooledMoments.exact(mean, [np.full((2, 1), 0.6)]), {"genetic": np.eye(1)})
    assert rows(known, "sd", "mcse", "ess", "pev", "reliability", "accuracy")[0] == pytest.approx(
        (0.6, None, None, 0.36, 0.64, 0.8)
    )


def test_no_terms_give_an_empty_table_with_all_columns():
    design = Design(TRAITS, np.zeros((1, 2)), np.zeros(1, np.int32), np.ones((1, 2), bool), np.ones(1), ())
    frame = solutions_frame(SimpleNamespace(design=design, levels=()), PooledMoments.exact([]), {})
    assert frame.height == 0 and tuple(frame.columns) == SOLUTION_COLUMNS


def test_summary_has_the_columns_of_the_contract_and_blanks_for_fixed_variances():
    draws = {"h2[y]": np.random.default_rng(1).normal(size=(2, 50)), "residual.var[y]": np.full((2, 50), 3.0)}
    frame = summary_frame(summary_table(draws))
    assert tuple(frame.columns) == SUMMARY_COLUMNS
    assert frame["parameter"].to_list() == list(draws)
    assert frame.row(1) == ("residual.var[y]", 3.0, 3.0, 0.0, *[None] * 6)
    assert all(v is not None for v in frame.row(0))


@pytest.mark.slow
def test_millions_of_rows_take_seconds():
    q, k = 500_000, 3
    genetic = term("genetic", "random", [effect("direct"), effect("maternal", (1,))], q, pedigree(q))
    ids = [f"animal-number-{i}" for i in range(q)]
    p = prepared((genetic, labels(ids, order=np.random.default_rng(1).permutation(q), inbreeding=np.zeros(q))))
    moments = pooled(p)
    started = time.perf_counter()
    frame = solutions_frame(p, moments, {"genetic": np.eye(k)})
    assert frame.height == q * k
    assert time.perf_counter() - started < 10
