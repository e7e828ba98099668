"""Traits that are not normal on a device without a GPU: liabilities bit for bit, sums and chains up to rounding."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.host_device import HostDevice
from helpers.key_models import with_categories
from helpers.mixed_model_chains import assert_continues, assert_same_results
from helpers.mixed_models import equations_of, example_of, one_trait, sampled
from helpers.races import assert_barrier_is_needed, run_without_race
from helpers.selection import first
from reference import models

from mmgibbs.engines.coloured_gpu.engine import StructuredGpuEngine
from mmgibbs.engines.coloured_gpu.source import source
from mmgibbs.engines.serial import SerialEngine
from mmgibbs.models.families import Categories, Count, Interval
from mmgibbs.models.priors import FLAT, HalfT, UniformHeritability
from mmgibbs.models.terms import Normal
from mmgibbs.sampler.chain import Chain
from mmgibbs.sampler.interweave import terms_to_interweave
from mmgibbs.sampler.resident import ResidentSweep
from mmgibbs.sampler.schedule import Schedule

KEY = (11, 2)
KINDS = ("binary", "ordinal", "censored", "count")


def observe(design, trait, kind):
    """A design whose records of one trait are known as `kind`, and how its liabilities start."""
    liability = design.y[:, trait] - np.nanmedian(design.y[:, trait])
    seen = np.isfinite(liability)
    match kind:
        case "binary" | "ordinal":
            inner = [0.0] if kind == "binary" else [0.0, 0.8, 1.5]
            category = np.where(seen, np.searchsorted(inner, liability), -1).astype(np.int16)
            response = Categories(trait, tuple("abcd"[: len(inner) + 1]), category)
        case "censored":
            lower = np.where(seen, np.minimum(liability, 0.5), np.nan)
            response = Interval(
                trait, lower, np.where(liability > 0.5, np.inf, np.where(seen, lower + (lower < -1), np.nan))
            )
        case _:
            rng = np.random.default_rng(1)
            counts = np.where(seen, rng.poisson(np.exp(np.clip(np.nan_to_num(liability), -5, 5))), np.nan)
            response = Count(trait, counts, np.full(len(seen), 1.5))
    y = design.y.copy()
    y[:, trait] = response.start()
    return replace(design, y=y, responses=(response,))


def beside_normal_traits(name, trait, kind):
    """A model of an example, all matrices sampled: a trait in categories has a residual variance of 1."""
    example = models.example(name)
    R = np.asarray(example.R, float)
    R = R / np.sqrt(np.outer(np.diag(R), np.diag(R)))
    model = sampled(observe(example.design, trait, kind), example.G, R)
    unit = (trait,) if kind in ("binary", "ordinal") else ()
    matrices = tuple(replace(m, unit=unit) for m in model.residual.matrices)
    return replace(model, residual=replace(model.residual, matrices=matrices))


def under_scale_prior(model, half_t=False):
    """Matrices of terms under priors with auxiliary variables; the default is that of one trait in categories."""
    prior = lambda c: HalfT(3.0, np.sqrt(np.diag(c.start))) if half_t else UniformHeritability()
    covariances = [c and replace(c, prior=prior(c)) for c in model.covariances]
    return replace(model, covariances=tuple(covariances))


def under_flat_prior(model):
    """Matrices of terms move along with the scale of the trait."""
    return replace(model, covariances=tuple(c and replace(c, prior=FLAT) for c in model.covariances))


def with_known_residuals(model):
    matrices = tuple(replace(m, fixed=True) for m in model.residual.matrices)
    return replace(model, residual=replace(model.residual, matrices=matrices))


def known(model):
    """All variances are known."""
    covariances = tuple(c and replace(c, fixed=True) for c in model.covariances)
    return with_known_residuals(replace(model, covariances=covariances))


def with_prior_of_fixed_effects(model):
    """Proper priors of fixed effects, whose levels stay when the scale moves."""
    terms = tuple(
        t if c is not None else replace(t, prior=Normal(np.eye(t.n_components) + 0.3))
        for t, c in zip(model.design.terms, model.covariances, strict=True)
    )
    return replace(model, design=replace(model.design, terms=terms))


MODELS = {
    **{kind: (lambda kind=kind: one_trait(kind)) for kind in KINDS},
    "uniform heritability": lambda: under_scale_prior(one_trait("ordinal")),
    "flat prior": lambda: under_flat_prior(one_trait("ordinal")),
    "known variances": lambda: known(one_trait("binary")),
    "half-t, ordinal beside another, known residuals": lambda: under_scale_prior(
        with_known_residuals(MODELS["ordinal beside another, weights"]()), half_t=True
    ),
    "priors of fixed effects, known residuals": lambda: with_prior_of_fixed_effects(
        with_known_residuals(MODELS["binary beside two others, missing"]())
    ),
    "binary beside two others, missing": lambda: beside_normal_traits("three_traits_maternal", 1, "binary"),
    "ordinal beside another, weights": lambda: beside_normal_traits("bivariate_missing", 0, "ordinal"),
    "ordinal before one that is not its neighbour": lambda: with_categories(0),
    "ordinal behind one that is not its neighbour": lambda: with_categories(2),
    "censored beside another": lambda: beside_normal_traits("bivariate_missing", 1, "censored"),
    "count beside another": lambda: beside_normal_traits("bivariate_missing", 1, "count"),
}


def engines(model, library, precision="double", backwards=False):
    equations = equations_of(model, precision=precision)
    both = SerialEngine(equations), StructuredGpuEngine(equations, device=HostDevice(library, backwards))
    for engine in both:
        engine.set_variances([None if c is None else c.start for c in model.covariances], model.residual.start)
        engine.sweep(1, KEY)
    both[1].restore(both[0].state())  # where lists are long sums differ in their last bits
    return both


def cuts_of(response):
    return response.start_of_cuts() if isinstance(response, Categories) else np.array([-np.inf, np.inf])


@pytest.mark.parametrize("backwards", first(1, [False, True]))
@pytest.mark.parametrize("precision", first(1, ["double", "single"]))
@pytest.mark.parametrize("name", MODELS)
def test_liabilities_are_those_of_the_host_bit_for_bit(name, precision, backwards, shim):
    model = MODELS[name]()
    host, device = engines(model, shim(precision), precision, backwards)
    response = model.design.responses[0]
    for number in range(1, 4):
        sums = [engine.responses.draw(0, cuts_of(response), number, KEY) for engine in (host, device)]
        np.testing.assert_allclose(sums[1], sums[0], rtol=1e-12)
        np.testing.assert_array_equal(device.y, host.y)
        np.testing.assert_array_equal(device.e, host.e)
        for engine in (host, device):
            engine.responses.scale_trait(response.trait, 1.0 + 0.1 * number)
        for found, expected in zip((device.y, device.e, *device.theta), (host.y, host.e, *host.theta), strict=True):
            np.testing.assert_array_equal(found, expected)
        host.sweep(number + 1, KEY)
        device.restore(host.state())
    assert isinstance(response, Categories) == bool(np.all(sums[0][0] > 0))


def test_liabilities_far_out(shim):
    """Cuts of which a record lies tens of standard deviations away, and an interval that holds no probability."""
    model = MODELS["ordinal beside another, weights"]()
    host, device = engines(model, shim("double"))
    for cuts in ([-np.inf, 0, 40, 90, np.inf], [-np.inf, 0, 1e-9, 2e-9, np.inf], [-np.inf, -50, -49.9, -49, np.inf]):
        for engine in (host, device):
            engine.responses.draw(0, np.array(cuts, float), 5, KEY)
        np.testing.assert_array_equal(device.y, host.y)


def chains(model, library, states=(None, None)):
    schedule = Schedule(5, 40, 2, refresh_every=8, interweave=terms_to_interweave(model, "auto"))
    equations = equations_of(model)
    pair = SerialEngine(equations), StructuredGpuEngine(equations, device=HostDevice(library))
    return [Chain(model, engine, schedule, KEY, state) for engine, state in zip(pair, states, strict=True)]


def two_binary_traits():
    """Two correlated residual variances of 1: the correlation is drawn by the host."""
    model = beside_normal_traits("three_traits_maternal", 1, "binary")
    design = observe(model.design, 0, "binary")
    design = replace(design, responses=(*model.design.responses, *design.responses))
    matrices = tuple(replace(m, unit=(0, 1)) for m in model.residual.matrices)
    return replace(model, design=design, residual=replace(model.residual, matrices=matrices))


def binary_in_classes():
    """A binary trait beside others in three classes of records: R of the first has a variance of 1, others a scale."""
    design, G, R = example_of("three_traits_maternal")
    R = R / np.sqrt(np.einsum("ci,cj->cij", *[np.diagonal(R, axis1=1, axis2=2)] * 2))
    model = sampled(observe(design, 1, "binary"), G, R)
    first, *others = model.residual.matrices
    return replace(model, residual=replace(model.residual, matrices=(replace(first, unit=(1,)), *others)))


MODELS["binary in classes of records"] = binary_in_classes
MODELS["two binary traits"] = two_binary_traits
BY_STEPS_OF_THE_HOST = {"two binary traits"}


@pytest.mark.parametrize("name", MODELS)
def test_the_chain_of_the_host_up_to_rounding(name, shim):
    model = MODELS[name]()
    expected, found = chains(model, shim("double"))
    assert isinstance(found.steps[0], ResidentSweep) == (name not in BY_STEPS_OF_THE_HOST)
    for run in (expected, found):
        run.advance(30)
    assert_same_results(found, expected)


@pytest.mark.parametrize("name", ["ordinal", "count beside another", "binary in classes of records"])
def test_a_chain_continues_bit_for_bit_and_on_the_other_device(name, shim):
    """Liabilities are part of the state."""
    model = MODELS[name]()
    assert_continues(lambda states: chains(model, shim("double"), states), 12, 24)


def test_nodes_and_waits_of_a_sweep(shim):
    """Seven nodes of an ordinal trait: three of thresholds, one of liabilities, three of their scale."""
    _, chain = chains(MODELS["ordinal"](), shim("double"))
    chain.advance(3)
    device = chain.engine.queue.device
    device.asked.clear(), device.launched.clear(), device.nodes.clear()
    chain._sweep(4)
    assert device.asked == [] and device.nodes == [len(device.launched)]
    names = [name.removeprefix("mmgibbs::").partition("<")[0] for name in device.launched]
    of_trait = ["propose_cuts", "compare_cuts", "decide_cuts", "draw_liabilities", "quadratic_strands", "decide_scale"]
    assert names[:7] == [*of_trait, "scale_columns"]


MAIN = """
using namespace mmgibbs;

int main() {
    const int n = 40, T = 2;
    static double y[n * T], e[n * T], B[T], s[1] = {1};
    static double cuts[4] = {-1e300, 0, 1, 1e300}, proposed[4] = {-1e300, 0, 1.1, 1e300};
    static double scratch[2 * n], sums[2 * 3], ratio[3];
    static short category[n];
    static PATTERN pattern[n];
    static word32 record[n], counter[3] = {3, 4, 5};
    for (int r = 0; r < n; ++r) category[r] = r % 3, record[r] = r, y[r * T] = 0.01 * r;
    Response of = {category, 0, 0, 0, 0, cuts, proposed, B, s, y, 7, 0, T};
    Records records = {y, e, pattern, 0, record, 0, n};
    run([=] { draw_liabilities(of, records, counter, n, scratch, sums); }, 3, 16);
    run([=] { compare_cuts(of, records, n, scratch, ratio); }, 3, 16);
    static double log_step[1], has_moved[1], walk[1], g[1], work[3], steps[1] = {0.1}, precision[1] = {2}, strands[20];
    static bits64 lost[1];
    static unsigned char mask[1] = {1};
    for (double &value : strands) value = 0.1;
    PriorTerm term = {0, 0, precision, strands, mask, 20, 1};
    static PriorTerm terms[2] = {term, term};
    Trait t = {of, log_step, has_moved, walk, g, work, steps, sums, terms, 50, 0.44, 3, 8, 9, 10, 1, 2};
    run([=] { propose_cuts(t, counter); }, 1, 16);
    run([=] { decide_cuts(t, counter); }, 1, 16);
    run([=] { decide_scale(t, counter, lost); }, 1, 16);
    static double R[T * T] = {1, 0.2, 0.2, 2}, inverse[T * T], scale[T * T] = {1, 0, 0, 1}, of_matrix[12 * T * T];
    static double Rinv[T * T], fill[T * T], noise[T * T], of_patterns[T * T], steps_of_scale[5];
    static unsigned char both[T] = {1, 1}, observed[T] = {1, 1};
    static int one_matrix[1], block[T], traits[T];
    static Matrix residuals[1];
    residuals[0] = Matrix{R, inverse, scale, 0, 0, 0, 0, 0, of_matrix, 0, 0, 0, 0, T, 1, 1};
    Patterns q = {observed, one_matrix, block, Rinv, fill, noise, of_patterns, traits, 0, 1, T, 0};
    ResidualScale of_class = {of, residuals, both, steps_of_scale, steps_of_scale + 1, steps_of_scale + 2,
                              steps_of_scale + 3, steps_of_scale + 4, ratio, 0.01, 0.44, 4, 3, 11, 10, 0};
    run([=] { invert_matrices(0, 0, residuals, 1, q, counter, lost); }, 1, 16);
    run([=] { propose_residual_scale(of_class, counter); }, 1, 16);
    run([=] { decide_residual_scale(of_class, residuals, q, counter, lost); }, 1, 16);
    printf("%.17g %.17g %.17g %.17g %.17g ", *g, *log_step, R[0], inverse[3], Rinv[1]);
    for (double value : sums) printf("%.17g ", value);
    for (double value : ratio) printf("%.17g ", value);
}
"""


@pytest.mark.slow
def test_threads_of_a_block_do_not_race_and_a_barrier_that_is_taken_out_is_noticed(tmp_path):
    text = source(np.dtype(np.float64), np.dtype(np.uint8))
    complete = run_without_race(tmp_path, text, MAIN)
    values = np.array(complete.printed.split(), float)
    assert len(values) == 14 and np.isfinite(values).all() and values[:8].all() and values[2] != 1
    needed = (
        "scratch[(size_t)strands + s] = b;",
        "scratch[strand] = total + log(product);",
        "R[j * T + t.of.trait] *= *t.s;",
    )
    for place in needed:
        assert_barrier_is_needed(tmp_path, text, MAIN, place, complete)
