"""The way back to the user's scale: the solution of the working design, returned, is the solution of the raw one."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from helpers.analyses import analysis, effect, fixed, random
from numpy.polynomial import Legendre
from reference import dense

from mmgibbs.data.prepare import prepare
from mmgibbs.errors import ModelError
from mmgibbs.models.terms import Flat, Normal

BOTH = ("a", "b")


def table(seed=1, n=60, missing=True):
    """Two traits, some missing; herd 3 levels, sex nested in nothing, x around 5, z around 0."""
    rng = np.random.default_rng(seed)
    y = rng.normal([100, -3], [5, 2], (n, 2)) + rng.normal(size=(n, 1))
    a, b = ([None if missing and rng.random() < 0.3 else float(v) for v in y[:, j]] for j in (0, 1))
    a[0] = float(y[0, 0])
    x = rng.normal(5, 1, n)
    herd = rng.integers(0, 4, n)
    columns = {"a": a, "b": b, "herd": herd, "sex": rng.integers(1, 3, n), "breed": rng.integers(1, 4, n), "x": x}
    # every pair holds two herds, so that two levels of it depend on the herds
    columns |= {"pair": herd // 2}
    columns |= {"z": rng.normal(size=n), "twice": 2 * x, "age_of_herd": herd * 1.5 + 2, "w": rng.uniform(0.5, 2, n)}
    return pl.DataFrame(columns | {"pen": [f"p{i}" for i in rng.integers(0, 25, n)], "sire": rng.integers(1, 9, n)})


def raw_covariates(spec, x, labels):
    """Columns on the user's scale, by hand."""
    if spec.legendre is None:
        return np.stack([x ** int(label.partition("^")[2] or 1) for label in labels], axis=1)
    low, high = spec.legendre.range or (x.min(), x.max())
    columns = []
    for label in labels:
        j = int(label.split(".")[1])
        columns.append(np.sqrt((2 * j + 1) / 2) * Legendre.basis(j, domain=[low, high])(x))
    return np.stack(columns, axis=1)


def raw_design(a, prepared):
    """The same model on the user's scale: no centring, no orthonormal covariates, the same levels set to 0."""
    frame = a.data.phenotypes
    kept = frame.filter(pl.any_horizontal(pl.col(t.column).is_not_null() for t in a.traits))
    terms = []
    for term in prepared.design.terms:
        spec = a.model.fixed.get(term.name)
        if spec is not None and spec.kind == "covariate":
            x = kept[spec.column].to_numpy()
            effects = tuple(replace(e, covariates=raw_covariates(spec, x, e.coefficients)) for e in term.effects)
            prior = Flat() if spec.prior_variance is None else Normal(np.eye(term.n_components) / spec.prior_variance)
            term = replace(term, incidence=replace(term.incidence, effects=effects), prior=prior)
        terms.append(term)
    y = np.stack([kept[t.column].cast(pl.Float64).fill_null(np.nan).to_numpy() for t in a.traits], axis=1)
    return replace(prepared.design, y=y, terms=tuple(terms), rescale=(), shifts=(), offsets=())  # `base` stays


def age(traits=BOTH, column="x", **keys):
    return fixed(column, "covariate", traits=traits, **keys)


HERD, SEX, BREED, PEN = (fixed(c, traits=BOTH) for c in ("herd", "sex", "breed", "pen"))
SEX_OF_B = fixed("sex", traits=["b"])
CASES = {
    "intercept and quadratic": {"fixed": {"age": age(degree=2)}},
    "classes and quadratic": {"fixed": {"herd": HERD, "sex": SEX, "age": age(degree=2)}},
    "quadratic before the classes": {"fixed": {"age": age(degree=2), "sex": SEX, "herd": HERD}},
    "slopes in the largest class": {"fixed": {"herd": HERD, "sex": SEX, "age": age(by="herd")}},
    "slopes in a class with a level set to 0": {"fixed": {"herd": HERD, "sex": SEX, "age": age(by="sex", degree=2)}},
    "slopes in a class beside an intercept": {"fixed": {"herd": HERD, "age": age(by="herd")}, "intercept": True},
    "slopes in a class that is no effect": {"fixed": {"herd": HERD, "age": age(by="sex", degree=2)}},
    "slopes in a class of one trait": {"fixed": {"herd": HERD, "sex": SEX_OF_B, "age": age(by="sex")}},
    "slopes in a class set to 0 in two levels": {
        "fixed": {"herd": HERD, "pair": fixed("pair", traits=BOTH), "age": age(by="pair", degree=2)}
    },
    "legendre": {"fixed": {"herd": HERD, "age": age(legendre=(2, (0, 10)))}},
    "legendre without an intercept": {"fixed": {"age": age(legendre=(3, None))}, "intercept": False},
    "legendre in a class": {"fixed": {"herd": HERD, "sex": SEX, "age": age(legendre=(2, (0, 10)), by="sex")}},
    "legendre in a class that is no effect": {"fixed": {"age": age(legendre=(1, (0, 10)), by="sex")}},
    "normal prior on a quadratic": {"fixed": {"herd": HERD, "age": age(degree=2, prior_variance=0.3)}},
    "normal prior on slopes": {"fixed": {"herd": HERD, "age": age(degree=2, by="herd", prior_variance=0.3)}},
    "normal prior on legendre": {"fixed": {"sex": SEX_OF_B, "age": age(legendre=(2, None), prior_variance=0.3)}},
    "normal prior on a class": {"fixed": {"herd": fixed("herd", traits=BOTH, prior_variance=2.0), "age": age()}},
    "a class of one trait": {"fixed": {"herd": fixed("herd", traits=["b"]), "age": age(degree=2)}},
    "a trait without a constant": {
        "fixed": {"herd": fixed("herd", traits=["b"]), "age": age(degree=2), "size": age(["a"], "z")},
        "intercept": False,
    },
    "an intercept beside a class": {"fixed": {"herd": HERD, "age": age()}, "intercept": True},
    "a covariate constant in a class": {"fixed": {"herd": HERD, "age": age(column="age_of_herd", degree=2)}},
    "a gap among the powers": {"fixed": {"herd": HERD, "first": age(column="twice"), "age": age(degree=3)}},
    "a gap for one trait": {"fixed": {"herd": HERD, "first": age(["b"], "twice"), "age": age(degree=2)}},
    "slopes in small classes": {"fixed": {"pen": PEN, "age": age(degree=2, by="pen")}},
    "two classes with slopes": {
        "fixed": {"herd": HERD, "sex": SEX, "breed": BREED, "age": age(by="sex"), "size": age(["a"], "z", by="breed")}
    },
    "with random effects and weights": {
        "fixed": {"herd": HERD, "sex": SEX_OF_B, "age": age(["b"], degree=2, by="sex")},
        "random": {
            "sire": random(_=effect("sire", traits=BOTH)),
            "curve": random(rr=effect("pen", traits=["a"], legendre=("x", 1, (0, 10)))),
        },
        "weights": "w",
    },
}
G = {"sire": np.array([[2.0, 0.5], [0.5, 1.0]]), "curve": np.array([[1.0, 0.2], [0.2, 0.5]])}
R = np.array([[4.0, 1.0], [1.0, 2.0]])


def solutions(name):
    a = analysis(table(), BOTH, **CASES[name])
    prepared = prepare(a)
    covariances = [G.get(t.name) for t in prepared.design.terms]
    working = dense.build(prepared.design, covariances, R)
    raw_model = raw_design(a, prepared)
    raw = dense.build(raw_model, covariances, R)
    return prepared, working.theta(working.solution), raw_model.to_original_scale(raw.theta(raw.solution))


@pytest.mark.parametrize("name", CASES)
def test_the_solution_returns_to_the_users_scale(name):
    prepared, theta, expected = solutions(name)
    before = [t.copy() for t in theta]
    for i, (found, needed) in enumerate(zip(prepared.design.to_original_scale(theta), expected, strict=True)):
        name, estimated = prepared.design.terms[i].name, prepared.design.estimated(i)
        np.testing.assert_allclose(found, needed, rtol=1e-8, atol=1e-8 * np.abs(needed).max(), err_msg=name)
        if estimated is not None:
            # What is set to 0 is reported as 0.
            assert np.all(found[~estimated] == 0)
    assert all(np.array_equal(a, b) for a, b in zip(theta, before))


@pytest.mark.parametrize(
    "name",
    ["classes and quadratic", "slopes in the largest class", "slopes in a class with a level set to 0", "legendre"],
)
def test_working_covariates_are_centred_and_orthonormal(name):
    prepared = prepare(analysis(table(), BOTH, **CASES[name]))
    term = next(t for t in prepared.design.terms if t.name == "age")
    (e,) = term.effects
    Z, weight = e.covariates, prepared.design.weight
    np.testing.assert_allclose(Z.T @ (weight[:, None] * Z) / weight.sum(), np.eye(Z.shape[1]), atol=1e-12)
    for level in range(term.n_levels):
        np.testing.assert_allclose(Z[e.level == level].mean(axis=0), 0, atol=1e-12)


def test_powers_of_a_year_survive_rounding():
    """x^3 of a year, raw, has a condition number of 1e13; the working columns do not."""
    rng = np.random.default_rng(3)
    year = rng.integers(1990, 2021, 400).astype(float)
    u = year - 2005
    frame = pl.DataFrame({"y": 3 + 0.5 * u + 0.02 * u**2 - 0.001 * u**3, "year": year})
    prepared = prepare(analysis(frame, ["y"], {"trend": fixed("year", "covariate", degree=3, traits=["y"])}))
    assert all(t.active is None for t in prepared.design.terms)
    equations = dense.build(prepared.design, [None, None], np.eye(1))
    fitted = np.nanmax(np.abs(equations.residuals(equations.solution)))
    assert fitted < 1e-9
    _, trend = prepared.design.to_original_scale(equations.theta(equations.solution))
    assert trend[0, 2] == pytest.approx(-0.001, rel=1e-7)
    assert trend[0, 1] == pytest.approx(0.02 + 3 * 0.001 * 2005, rel=1e-7)


def test_what_was_held_at_0_is_noted():
    notes = prepare(analysis(table(), BOTH, **CASES["a gap for one trait"])).design.notes
    assert "first, b: 1 level set to 0 (not separable from the other fixed effects): x^1" not in notes
    assert "age, b: 1 level set to 0 (not separable from the other fixed effects): x^1" in notes
    notes = prepare(analysis(table(), BOTH, **CASES["slopes in small classes"])).design.notes
    (note,) = [n for n in notes if n.startswith("age, a: ")]
    assert "p" in note and ":x^2" in note and " and " in note and note.endswith(" more")


def test_a_polynomial_of_degree_0_beside_an_intercept_is_refused():
    with pytest.raises(ModelError, match="model.fixed.age.legendre: found degree 0 .* needed degree 1 or more"):
        prepare(analysis(table(), BOTH, {"herd": HERD, "age": age(legendre=(0, (0, 10)))}))
