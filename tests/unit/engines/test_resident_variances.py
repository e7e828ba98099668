"""Sweeps whose variances the device draws, without a GPU: one graph, and the chain of the host up to rounding."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.host_device import HostDevice
from helpers.key_models import residual_classes, three_traits, under_half_t
from helpers.mixed_model_chains import assert_continues, assert_same_results
from helpers.mixed_models import equations_of, example_of, sampled
from helpers.nvrtc import ARCHITECTURES, read_resources
from helpers.races import assert_barrier_is_needed, run_without_race
from helpers.selection import first
from reference import models
from unit.sampler.test_interweave import with_diagonal_matrices

from mmgibbs.engines.coloured_gpu.engine import StructuredGpuEngine
from mmgibbs.engines.coloured_gpu.source import OF_LIABILITIES, OF_TERMS, OF_VARIANCES, kernels, source
from mmgibbs.engines.serial import SerialEngine
from mmgibbs.errors import ModelError
from mmgibbs.models.covariance import CovarianceModel
from mmgibbs.models.priors.inverse_wishart import InverseWishart
from mmgibbs.models.relationships.identity import IdentityLists
from mmgibbs.models.residual import ResidualModel
from mmgibbs.models.structures.factor_analytic import FactorAnalytic
from mmgibbs.sampler.chain import Chain
from mmgibbs.sampler.factors import FactorInterweaving
from mmgibbs.sampler.interweave import terms_to_interweave
from mmgibbs.sampler.mixed_model import MixedModel
from mmgibbs.sampler.resident import ResidentSweep
from mmgibbs.sampler.schedule import Schedule
from mmgibbs.simulation.simulate import beef_design, simulate_beef

KEY = (11, 2)


def sampled_example(name):
    example = models.example(name)
    return sampled(example.design, example.G, example.R)


def with_fixed(model, terms=(), residual=False):
    covariances = tuple(replace(c, fixed=True) if i in terms else c for i, c in enumerate(model.covariances))
    matrices = tuple(replace(m, fixed=residual) for m in model.residual.matrices)
    return replace(model, covariances=covariances, residual=ResidualModel(matrices, model.residual.classes))


MODELS = {
    "one trait": lambda: sampled_example("univariate_animal"),
    "missing traits": lambda: sampled_example("bivariate_missing"),
    "three traits, five components": lambda: sampled_example("three_traits_maternal"),
    "traits never together": lambda: sampled_example("never_together"),
    "covariates": lambda: sampled_example("random_regression"),
    "diagonal": lambda: with_diagonal_matrices(sampled_example("direct_maternal")),
    "a fixed term": lambda: with_fixed(sampled_example("direct_maternal"), terms=(1,)),
    "fixed residuals": lambda: with_fixed(sampled_example("direct_maternal"), residual=True),
    "half-t priors": lambda: under_half_t(sampled_example("direct_maternal")),
    "half-t priors, fixed residuals": lambda: with_fixed(MODELS["half-t priors"](), residual=True),
    "half-t priors of residual classes": lambda: under_half_t(sampled(*example_of("bivariate_missing"))),
    "blocks of traits that are not neighbours": three_traits,
    "the same of residual classes": residual_classes,
    "residual classes": lambda: sampled(*example_of("three_traits_maternal")),
}


def chains(model, library, schedule, backwards=False, states=(None, None)):
    """The chain of the serial engine, and that of a device."""
    equations = equations_of(model)
    engines = SerialEngine(equations), StructuredGpuEngine(equations, device=HostDevice(library, backwards))
    return [Chain(model, engine, schedule, KEY, state) for engine, state in zip(engines, states, strict=True)]


def schedule_of(model, **options):
    given = {"burn_in": 3, "samples": 40, "thin": 2, "refresh_every": 7} | options
    return Schedule(**given, interweave=terms_to_interweave(model, "auto"))


@pytest.mark.parametrize("backwards", first(1, [False, True]))
@pytest.mark.parametrize("name", MODELS)
def test_the_chain_of_the_host_up_to_rounding(name, backwards, shim):
    """Residuals anew on the way, over-relaxed draws after the twentieth sweep, draws that are not kept."""
    model = MODELS[name]()
    expected, found = chains(model, shim("double"), schedule_of(model), backwards)
    assert isinstance(found.steps[0], ResidentSweep)
    for run in (expected, found):
        run.advance(33)
    assert_same_results(found, expected)
    assert any(np.ptp(values) > 0 for values in found.result().draws.values())


def test_a_ring_of_few_slots_loses_no_draw(shim, monkeypatch):
    monkeypatch.setattr("mmgibbs.machine.ring.MAX_SLOTS", 4)
    model = MODELS["missing traits"]()
    expected, found = chains(model, shim("double"), schedule_of(model, thin=1))
    for run in (expected, found):
        run.advance(9)
        run.state()
        run.advance(32)
    assert_same_results(found, expected)


@pytest.mark.parametrize("name", ["missing traits", "residual classes", "half-t priors"])
def test_a_chain_continues_bit_for_bit_and_on_the_other_device(name, shim):
    model = MODELS[name]()
    assert_continues(lambda states: chains(model, shim("double"), schedule_of(model), states=states), 13, 33)


def test_two_chains_of_one_engine(shim):
    """What was recorded for the first is not repeated for the second."""
    model = MODELS["missing traits"]()
    expected, first = chains(model, shim("double"), schedule_of(model))
    first.advance(5)
    first.engine.start()
    second = Chain(model, first.engine, schedule_of(model), KEY)
    for run in (expected, second):
        run.advance(9)
    assert_same_results(second, expected)


@pytest.fixture(scope="module")
def beef():
    herds = simulate_beef(3000, 3)
    design = beef_design(herds)
    return sampled(design, herds.G, herds.R)


def test_nodes_and_waits_of_a_sweep(beef, shim):
    """Twelve nodes beside those of the location effects: 35 of the Small system, whose location effects have 23."""
    _, chain = chains(beef, shim("double"), schedule_of(beef, thin=1, refresh_every=1000))
    chain.advance(2)
    device = chain.engine.queue.device
    device.asked.clear(), device.nodes.clear(), device.launched.clear()
    for number in range(3, 6):
        facts = chain._sweep(number)
        chain.number = number
        if chain.schedule.keeps(number):
            chain.steps[0].count_kept()
        assert facts == {"sweep": number}
    assert device.asked == [] and len(device.nodes) == 3 and len(set(device.nodes)) == 1
    launched = device.launched[: device.nodes[0]]
    of_locations = ("sweep_levels", "sum_pieces", "draw_l", "move_pieces")
    others = [name for name in launched if not any(kernel in name for kernel in of_locations)]
    assert len(others) == 12 and len(launched) - len(others) > 12


def test_nothing_is_launched_for_what_is_fixed(shim):
    model = MODELS["fixed residuals"]()
    _, chain = chains(model, shim("double"), schedule_of(model))
    chain.advance(1)
    names = chain.engine.queue.device.launched
    assert not any("residual" in name for name in names) and any("end_sweep" in name for name in names)
    assert sum("scaling" in name for name in names) == 2 * len(model.random_terms)


def test_steps_that_no_device_can_make_stay_on_the_host(shim):
    """Deviations from fixed groups are made on the host."""
    model = sampled_example("fixed_groups")
    _, chain = chains(model, shim("double"), schedule_of(model))
    assert not any(isinstance(step, ResidentSweep) for step in chain.steps)
    _, alone = chains(model, shim("double"), replace(schedule_of(model), interweave=()))
    assert isinstance(alone.steps[0], ResidentSweep)


def test_factors_given_records_on_either_side(shim):
    """By the host, of what a device holds. Few sweeps: draws of a factor-analytic G magnify rounding."""
    model = sampled_example("three_traits_maternal")
    i = max(model.random_terms, key=lambda i: len(model.covariance(i).start))
    k = len(model.covariance(i).start)
    structure = FactorAnalytic(k, 1, False, np.ones(k), np.ones(k))
    covariances = tuple(replace(c, structure=structure) if j == i else c for j, c in enumerate(model.covariances))
    model = replace(model, covariances=covariances)
    expected, found = chains(model, shim("double"), schedule_of(model))
    for run in (expected, found):
        assert sum(isinstance(step, FactorInterweaving) for step in run.steps) == 1
        run.advance(13)
    assert_same_results(found, expected)


def test_a_matrix_that_cannot_be_drawn_is_named(shim):
    """With the sweep in which it was lost, when the chain next looks."""
    model = MODELS["missing traits"]()
    wrong = lambda c: CovarianceModel(
        c.start, False, c.blocks, InverseWishart(c.prior.df, -1e6 * np.eye(len(c.start))), "genetic"
    )
    covariances = tuple(c and wrong(c) for c in model.covariances)
    model = MixedModel(model.design, covariances, model.residual)
    messages = []
    for chain in chains(model, shim("double"), schedule_of(model)):
        with pytest.raises(
            ModelError, match="variances.genetic: no covariance matrix can be drawn at sweep 1 of"
        ) as lost:
            chain.advance(5)
            chain.draws()
        messages.append(str(lost.value))
    assert messages[0] == messages[1]


MAIN = """
using namespace mmgibbs;

int main() {
    const int k = 3, p = 6, n = 40, n_values = 2 * k * k + 1 + k;
    static double values[n_values], ones[k] = {1, 1, 1}, inverse[2][k * k], scale[k * k], degrees[1] = {30};
    static double work[2][12 * k * k];
    static double strands[p * n], sums[(p * (p + 1) / 2 + p) * n], of_scaling[(2 * p + 2) * p], change[k * k + 1];
    static double exponents[k] = {-30, -31, -32}, Rinv[2 * k * k], fill[2 * k * k], noise[2 * k * k];
    static double of_patterns[2 * k * k], slots[2 * n_values];
    static int members[k] = {0, 1, 2}, first[2] = {0, k}, row[p] = {0, 1, 1, 2, 2, 2}, column[p] = {0, 0, 1, 0, 1, 2};
    static int no_unit[1] = {-1}, unit[1] = {1};
    static int of_pattern[2], block[k], traits[2 * k];
    static unsigned char observed[2 * k] = {1, 1, 1, 1, 0, 1};
    static word32 counter[3] = {21, 5, 6};
    static bits64 lost[1] = {~0ULL};
    for (int i = 0; i < k; ++i) {
        scale[i * k + i] = 3;
        for (int j = 0; j < k; ++j) values[i * k + j] = values[k * k + i * k + j] = i == j ? 1 : 0.1;
    }
    for (int m = 0; m < p; ++m)
        for (int s = 0; s < n; ++s) strands[m * n + s] = m == 0 || m == 2 || m == 5 ? 1 + 0.01 * s : 0.01 * m;
    for (int i = 0, m = 0; i < p; ++i)
        for (int j = 0; j <= i; ++j, ++m)
            for (int s = 0; s < n; ++s) sums[m * n + s] = i == j ? 1000 : 0.1;
    for (int s = 0; s < p * n; ++s) sums[p * (p + 1) / 2 * n + s] = 0.001 * s;
    Matrix of_term = {values,  inverse[0], scale,   degrees, members, first, no_unit, strands,
                      work[0], n,          1,       0,       0,       k,     1,       1};
    Matrix of_residuals = of_term;
    of_residuals.now = values + k * k, of_residuals.inverse = inverse[1], of_residuals.work = work[1];
    of_residuals.stream = 2, of_residuals.number = 1, of_residuals.unit = unit;
    static Matrix matrices[2] = {of_term, of_residuals};
    Patterns q = {observed, of_pattern, block, Rinv, fill, noise, of_patterns, traits, 0, 2, k, 0};
    Scaling scaling = {row, column, exponents, sums, of_scaling, change, values + 2 * k * k, n, 3, p};
    Kept kept = {values, n_values, {slots, n_values, 2, 0, 1}};
    static Auxiliaries of_prior = {values + 2 * k * k + 1, scale, values, inverse[0], ones, ones,
                                   2, 2, 0, 4, 0, k, 1, 0};
    run([=] { invert_matrices(matrices, 1, matrices + 1, 1, q, counter, lost); }, 1, 16);
    run([=] { draw_covariances(matrices, counter, lost); }, 1, 16);
    run([=] { draw_scaling(matrices, scaling, counter, lost); }, 1, 16);
    run([=] { draw_residuals(matrices + 1, 1, q, kept, 0, counter, lost); }, 1, 16);
    run([=] { draw_auxiliaries(&of_prior, 1, kept, counter); }, 1, 16);
    for (double value : slots) printf("%.17g ", value);
    for (double value : noise) printf("%.17g ", value);
    printf("%g %u %u", change[k * k], counter[0], (unsigned)(lost[0] == ~0ULL));
}
"""
NEEDED = [
    "now[at] = before[i * k + j];",
    "S[at] = W[i * k + j] - W[u * k + i] * (W[u * k + j] / W[u * k + u]);",
    "draw_auxiliary(auxiliaries[m], i, counter);",
    "if (a % p <= a / p) H[a] = factor[a / p * (a / p + 1) / 2 + a % p];",
    "for (int c = 0; c < k; ++c) X[a] += M[a / k * k + c] * m.now[c * k + a % k];",
]


@pytest.mark.slow
def test_threads_of_a_block_do_not_race_and_a_barrier_that_is_taken_out_is_noticed(tmp_path):
    text = source(np.dtype(np.float64), np.dtype(np.uint8))
    first, last = "// What leaves the device", "// Passes over the records for traits"
    text = text[: text.index(first)] + text[text.index("// Draws of covariance matrices (") : text.index(last)]
    complete = run_without_race(tmp_path, text, MAIN)
    *values, flag, sweep, nothing_lost = np.array(complete.printed.split(), float)
    assert np.isfinite(values).all() and np.count_nonzero(values) == 23 and (flag, sweep, nothing_lost) == (1, 22, 1)
    for place in NEEDED:
        assert_barrier_is_needed(tmp_path, text, MAIN, place, complete)


FEW_SPILLED_BYTES = 16  # of some architectures
SPILLED_BYTES = 160  # of a pass over liabilities
SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ARCHITECTURES if name != "sm_90"]


@pytest.mark.parametrize("architecture", ["sm_90", *SLOW])
def test_kernels_fit_on_a_device(architecture):
    real = np.dtype(np.float32)
    text, names = source(real, np.dtype(np.uint8)), kernels([(1, IdentityLists)], 3, real)
    taken = dict(read_resources(text, architecture, names))
    for name in (*OF_VARIANCES, *OF_TERMS, "quadratic_strands", "residual_strands", "moved_residual_strands"):
        assert taken[name].spilled_bytes <= FEW_SPILLED_BYTES and taken[name].registers <= 128, name
        assert taken[name].shared_bytes <= 2048, name
    for name in OF_LIABILITIES:  # calls of functions that the compiler keeps
        assert taken[name].spilled_bytes <= SPILLED_BYTES and taken[name].registers <= 128, name
