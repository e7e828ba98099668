"""Horseshoe probit: passes over the rows and draws of coefficients against dense algebra, its contract, its input."""

import numpy as np
import pytest
from helpers.mutants import mutant
from helpers.regression_contract import KnownNormals, assert_chains_are_their_own, states
from scipy.special import log_ndtr, ndtr

from mmgibbs import HorseshoeProbit
from mmgibbs.errors import ConfigError, DataError, DeviceError, ModelError
from mmgibbs.machine import memory
from mmgibbs.regressions.arrays.base import Host
from mmgibbs.regressions.horseshoe import coefficients as horseshoe_coefficients
from mmgibbs.regressions.horseshoe import latent as horseshoe_latent
from mmgibbs.regressions.horseshoe import rows as horseshoe_rows
from mmgibbs.regressions.horseshoe.coefficients import CoefficientsByGram, CoefficientsByRowGram
from mmgibbs.regressions.horseshoe.ellipse import Ellipse, expansion, probit_fit, separated
from mmgibbs.regressions.horseshoe.probit import HorseshoeProbitModel, HorseshoeProbitOptions
from mmgibbs.regressions.horseshoe.rows import LATENT, Latent, ProbitRows
from mmgibbs.regressions.predictors import read_predictors
from mmgibbs.regressions.protocol import Keys, RegressionData

RNG = np.random.default_rng(8)
TALL, WIDE = RNG.integers(0, 5, (30, 4)), RNG.integers(0, 5, (7, 9))
KEYS = Keys(3, (0, 4))
SIDES = RNG.random(30) < 0.4


class LikeADevice(Host):
    """A host that is treated as a device: nothing fused, rows in blocks one after another."""

    device = "gpu"


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    """Blocks of a few rows and columns, so that their edges are met."""
    monkeypatch.setattr(horseshoe_rows, "ROW_BLOCK_BYTES", 200)
    monkeypatch.setattr(horseshoe_rows, "ROWS", 11)
    monkeypatch.setattr(horseshoe_rows, "PIECES", 3)
    monkeypatch.setattr(horseshoe_coefficients, "COLUMN_BLOCK", 4)


def sampler(X, threads=1, arrays=None, **options):
    data = RegressionData(read_predictors(X, standardise=True), (X[:, 0] + np.arange(len(X))) % 3 == 1)
    return HorseshoeProbitModel.prepare(data, HorseshoeProbitOptions(**options), arrays or Host(threads))


@pytest.mark.parametrize("dtype", ["float64", "float32", "uint8", "int8"])
@pytest.mark.parametrize("standardise", [False, True])
@pytest.mark.parametrize("arrays", [Host(1), Host(3), LikeADevice(1)], ids=["one thread", "three", "device"])
def test_passes_over_rows_equal_dense_ones(dtype, standardise, arrays):
    X = read_predictors(TALL.astype(dtype), standardise=standardise)
    rows, W = ProbitRows(X, SIDES, arrays), np.column_stack([(TALL - X.centre) / X.scale, np.ones(30)])
    beta, intercept = RNG.normal(size=(2, 3, 4)), RNG.normal(size=(2, 3))
    eta = np.concatenate([beta, intercept[..., None]], -1) @ W.T
    np.testing.assert_allclose(rows.eta(beta, intercept), eta, atol=1e-12)
    z = Host(1).truncated_normals(KEYS, 5, LATENT, eta[:, 0], SIDES)
    latent = rows.latent(beta[:, 0], intercept[:, 0], KEYS, 5, keep=True)
    np.testing.assert_allclose(latent.z, z, atol=1e-9)
    np.testing.assert_allclose(latent.right, z @ W, atol=1e-8)
    np.testing.assert_allclose(latent.square, (z**2).sum(1))
    w = RNG.random(30)
    np.testing.assert_allclose(rows.transposed(w), W.T @ w, atol=1e-10)
    np.testing.assert_allclose(rows.gram(), W.T @ W, atol=1e-10)
    np.testing.assert_allclose(rows.gram(w), W.T @ (w[:, None] * W), atol=1e-10)
    exact = log_ndtr(np.where(SIDES, 1, -1) * eta[:, 0]).sum(1)
    np.testing.assert_allclose(rows.log_likelihood(lambda some: eta[:, 0, some]), exact, rtol=1e-12)


def a_pass(X, precision="float64", latent_rows=None, monkeypatch=None):
    """z and its sums for one chain."""
    if latent_rows is not None:
        monkeypatch.setattr(horseshoe_rows, "latent_rows", latent_rows)
    rows = ProbitRows(read_predictors(X), SIDES, Host(2), precision)
    return rows.latent(np.array([[0.5, -0.2, 0.1, 0.3]]), np.array([-0.4]), Keys(3, (4,)), 5, keep=True)


def test_a_pass_over_rows_that_lie_otherwise_in_memory(tmp_path):
    """A memory map, also a read-only one, columns one after another, every second row, the other order of bytes."""
    X = TALL.astype(np.float64)
    mapped = np.memmap(tmp_path / "x", np.float64, "w+", shape=X.shape)
    mapped[:] = X
    whole = a_pass(X)
    read_only = np.memmap(tmp_path / "x", np.float64, "r", shape=X.shape)
    swapped = X.astype(X.dtype.newbyteorder())
    for other in (mapped, read_only, np.asfortranarray(X), np.repeat(X, 2, axis=0)[::2], swapped):
        latent = a_pass(other)
        np.testing.assert_allclose(latent.z, whole.z, rtol=1e-12)
        np.testing.assert_allclose(latent.right, whole.right, rtol=1e-12)
    single = a_pass(X, "float32")
    np.testing.assert_allclose(single.right, whole.right, rtol=1e-5)
    assert not np.array_equal(single.z, whole.z)


def test_a_pass_over_wide_rows():
    """Of which a few make a batch."""
    rng = np.random.default_rng(9)
    X = rng.normal(size=(100, 2000))
    side, beta, intercept = rng.random(100) < 0.5, rng.normal(size=(2, 2000)) / 40, rng.normal(size=2)
    latent = ProbitRows(read_predictors(X), side, Host(2)).latent(beta, intercept, KEYS, 5, keep=True)
    z = Host(1).truncated_normals(KEYS, 5, LATENT, beta @ X.T + intercept[:, None], side)
    np.testing.assert_allclose(latent.z, z, atol=1e-9)
    np.testing.assert_allclose(latent.right, z @ np.column_stack([X, np.ones(100)]), atol=1e-8)


@pytest.mark.parametrize(
    "right, wrong",
    [
        ("np.uint64(first) + i,", "i,"),
        ("_add(real, total[:p], X[i], real(zc[i]))", "_add(real, total[:p], X[i], real(zc[start]))"),
    ],
)
def test_a_pass_that_is_wrong_is_noticed(right, wrong, monkeypatch):
    X = TALL.astype(np.float64)
    expected, spoilt = a_pass(X), mutant(horseshoe_latent, right, wrong, compiled=False)
    got = a_pass(X, latent_rows=spoilt.latent_rows, monkeypatch=monkeypatch)
    assert np.abs(got.right - expected.right).max() > 1e-3


@pytest.mark.parametrize("right, wrong", [("a[j + ONE] + t1", "a[j] + t1"), ("range(threes, k)", "range(k, k)")])
def test_linear_predictors_that_are_wrong_are_noticed(right, wrong, monkeypatch):
    X, b, a = TALL.astype(np.float64), np.arange(16.0).reshape(4, 1, 4) / 10, np.arange(4.0)[:, None]
    rows = ProbitRows(read_predictors(X), SIDES, Host(2))
    expected = (b[:, 0] @ X.T + a)[:, None]
    np.testing.assert_allclose(rows.eta(b, a), expected, rtol=1e-12)
    spoilt = mutant(horseshoe_latent, right, wrong, compiled=False)
    monkeypatch.setattr(horseshoe_rows, "linear_predictors", spoilt.linear_predictors)
    assert not np.allclose(rows.eta(b, a), expected, rtol=1e-3)


def test_log_of_the_normal_distribution_function():
    x = np.concatenate([np.linspace(-40, 12, 5001), [-1e5, -1e3, 0.0, 30.0, 1e3]])
    np.testing.assert_allclose(Host(1).log_ndtr(x), log_ndtr(x), rtol=1e-12, atol=1e-12)
    assert x[0] == -40


@pytest.mark.parametrize("X", [TALL, WIDE], ids=["n > p", "n < p"])
@pytest.mark.parametrize("by_rows", [False, True])
@pytest.mark.parametrize("intercept_precision", [0.0, 0.3])
def test_both_forms_draw_from_the_dense_conditional(X, by_rows, intercept_precision):
    """The draw is linear in the normals: mean Sigma W'z, and the images of unit normals give Sigma."""
    n, p = X.shape
    table, g = read_predictors(X, standardise=True), np.array([1.0, 1.7])
    W = np.column_stack([(X - table.centre) / table.scale, np.ones(n)])
    z = np.array([np.cos(np.arange(n)), np.sin(np.arange(n)) + 1])
    precision = np.column_stack([[np.linspace(0.1, 3, p), np.linspace(1e8, 1e-3, p)], [intercept_precision] * 2])

    def draw(one):
        arrays = KnownNormals(one)
        rows = ProbitRows(table, np.arange(n) % 2 == 0, arrays)
        fit = CoefficientsByRowGram(rows, arrays) if by_rows else CoefficientsByGram(rows.gram(), arrays)
        posterior = fit.given(Latent(z @ W, (z**2).sum(1), z), precision)
        beta, intercept = posterior.draw(g, KEYS, 1)
        return posterior.misfit, np.column_stack([beta, intercept])

    misfit, mean = draw(-1)
    root = np.stack([draw(i)[1] - mean for i in range(p + 1 + n)], axis=2)
    for c in range(2):
        Sigma = np.linalg.inv(W.T @ W + np.diag(precision[c]))
        np.testing.assert_allclose(mean[c], g[c] * Sigma @ W.T @ z[c], rtol=1e-6, atol=1e-10)
        np.testing.assert_allclose(root[c] @ root[c].T, Sigma, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(misfit[c], z[c] @ z[c] - z[c] @ W @ Sigma @ W.T @ z[c], rtol=1e-7)


FORMS = {
    "columns": (TALL, {"collapsed": False}),
    "collapsed": (TALL, {"collapsed": True}),
    "rows": (WIDE, {}),
    "slab": (TALL, {"slab_scale": 2.0, "collapsed": False}),
    "plain, single": (TALL, {"expansion": False, "precision": "single", "collapsed": False}),
}


@pytest.mark.parametrize("form", FORMS)
def test_contract(form):
    X, options = FORMS[form]
    assert_chains_are_their_own(lambda threads: sampler(X, threads, **options))


@pytest.mark.parametrize("form", FORMS)
def test_a_device_gives_the_same_chain(form):
    X, options = FORMS[form]
    host, device = (states(sampler(X, arrays=a, **options), KEYS, 2)[-1] for a in (Host(1), LikeADevice(1)))
    for name, values in host.items():
        np.testing.assert_allclose(device[name], values, rtol=1e-4 if "single" in form else 1e-9)


def test_the_expansion_is_that_of_the_log_likelihood():
    """Gradient and curvature by differences; the fit has no gradient but its ridge's."""
    rows = sampler(TALL).rows
    b, h = RNG.normal(size=5), 1e-4
    value = lambda b: float(rows.log_likelihood(lambda some: rows.eta(b[None, None, :-1], b[None, -1:])[0, :, some])[0])
    gradient, H = expansion(rows, b)
    for j, e in enumerate(h * np.eye(5)):
        np.testing.assert_allclose(gradient[j], (value(b + e) - value(b - e)) / (2 * h), rtol=1e-6)
        np.testing.assert_allclose(-H[j], (expansion(rows, b + e)[0] - expansion(rows, b - e)[0]) / (2 * h), rtol=1e-5)
    np.testing.assert_allclose(expansion(rows, probit_fit(rows).b)[0], 0, atol=0.05)


def test_the_collapsed_draw_is_exact_for_a_normal_likelihood(monkeypatch):
    """Where the expansion is the likelihood every first angle is taken: m + (beta - m) cos + f sin."""
    rows = sampler(TALL).rows
    b = np.zeros(5)
    gradient, H = expansion(rows, b)
    ellipse, right = Ellipse(rows, b, gradient, H, Host(1)), H @ b + gradient
    W = np.column_stack([(TALL - rows.X.centre) / rows.X.scale, np.ones(30)])

    def normal(eta):
        points = np.linalg.lstsq(W, eta(slice(None)).T, rcond=None)[0].T
        return points @ right - 0.5 * ((points @ H) * points).sum(1)

    monkeypatch.setattr(rows, "log_likelihood", normal)
    precision = np.full((2, 5), 0.7)
    *_, tries = ellipse.draw(RNG.normal(size=(2, 4)), np.zeros(2), precision, KEYS, 1)
    np.testing.assert_array_equal(tries, 1)


def test_separated_classes_are_found():
    arrays = Host(1)
    look = lambda X, y: separated(read_predictors(X), y, arrays, np.float64)
    x = RNG.normal(size=(4000, 3))
    plane = x @ [1.0, -2.0, 0.5] > 0.3
    touched = plane.copy()
    touched[np.argsort(x @ [1.0, -2.0, 0.5])[[5, -5]]] ^= True
    assert look(x, plane) and not look(x, touched)
    assert look(RNG.normal(size=(20, 30)), np.arange(20) % 2 == 0)
    assert not look(np.repeat(RNG.normal(size=(10, 30)), 2, axis=0), np.arange(20) % 2 == 0)


@pytest.mark.parametrize("standardise", [False, True])
def test_estimator_reports_the_columns_as_given(standardise, tmp_path, monkeypatch):
    """Many rows: the fitted probabilities are those that made the labels, for a memory map of bytes and labels of
    text.
    """
    monkeypatch.setattr(horseshoe_rows, "ROW_BLOCK_BYTES", 10_000)
    rng = np.random.default_rng(1)
    X = np.memmap(tmp_path / "x", np.uint8, "w+", shape=(1500, 2))
    X[:] = rng.integers(0, 200, X.shape)
    p = ndtr(0.02 * X[:, 0] - 0.01 * X[:, 1] - 0.5)
    y = np.where(rng.random(1500) < p, "well", "sick")
    model = HorseshoeProbit(chains=2, burn_in=30, samples=60, threads=1, standardise=standardise).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], p, atol=0.08)
    np.testing.assert_allclose(model.predict_proba(X).sum(1), 1)
    assert list(model.classes_) == ["sick", "well"] and model.score(X, y) > 0.6
    assert list(model.summary()["parameter"]) == ["beta[x0]", "beta[x1]", "intercept", "tau"]


GOOD = np.arange(30) % 2


@pytest.mark.parametrize(
    "X, y, options, error, message",
    [
        (TALL, GOOD[:-1], {}, DataError, "y: found an array of shape (29,), needed one label for each of the 30 rows"),
        (TALL, np.arange(30) % 3, {}, DataError, "y: found 3 classes, 0, 1, 2, needed two"),
        (WIDE, GOOD[:7], {"intercept_prior_sd": None}, DataError, "separate completely"),
        (TALL, GOOD, {"global_scale": 0.0}, ConfigError, "global_scale: found 0.0, needed a number above 0"),
        (TALL, GOOD, {"slab_scale": -1.0}, ConfigError, "slab_scale"),
        (TALL, GOOD, {"collapsed": "yes"}, ConfigError, "collapsed"),
        (WIDE, GOOD[:7], {"collapsed": True}, ConfigError, "collapsed: found true with 9 predictors of 7 records"),
    ],
)
def test_refused(X, y, options, error, message):
    with pytest.raises(error) as found:
        HorseshoeProbit(threads=1, **options).fit(X, y)
    assert message in str(found.value)


@pytest.mark.parametrize(
    "X, free, what",
    [
        (TALL, 900, "cross-products of 4 predictors"),
        (TALL, 1300, "a sweep of 40 chains"),
        (WIDE, 1300, "a sweep of 40 chains"),
    ],
)
def test_what_does_not_fit_is_refused_with_an_estimate(X, free, what, monkeypatch):
    monkeypatch.setattr(memory, "free_bytes", lambda: free)
    with pytest.raises(DeviceError, match=what):
        HorseshoeProbit(chains=40, threads=1).fit(X, np.arange(len(X)) % 2)


def test_columns_that_depend_on_each_other_under_a_flat_prior_are_named():
    gram = np.ones((3, 3))
    with pytest.raises(ModelError, match="depend on each other linearly"):
        CoefficientsByGram(gram, Host(1)).factor(np.full((1, 3), 1e-30))
