"""SNP effects on a device without a GPU: every sweep bit for bit that of the CPU, chains up to the rounding of sums."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from helpers.host_device import HostDevice, build
from helpers.mixed_model_chains import assert_continues, assert_same_results
from helpers.mixed_models import equations_of
from helpers.nvrtc import ARCHITECTURES, assert_kernels_fit
from helpers.races import assert_barrier_is_needed, run_without_race
from helpers.selection import first
from reference import models
from statistical.test_joint_markers import PRIORS as JOINT_PRIORS
from statistical.test_joint_markers import terms_of
from statistical.test_markers import markers_of

from mmgibbs.engines.coloured_gpu.engine import StructuredGpuEngine
from mmgibbs.engines.coloured_gpu.markers import DRAWS, PASSES, marker_bytes, marker_source, sweep_name
from mmgibbs.engines.coloured_gpu.source import kernel, kernels, source
from mmgibbs.engines.device_sweep import ClassDraws
from mmgibbs.engines.serial import SerialEngine
from mmgibbs.errors import ModelError
from mmgibbs.genotypes.store import FixedGenotypes, PackedGenotypes, RealGenotypes
from mmgibbs.models.covariance import CovarianceModel, full_block
from mmgibbs.models.markers import MarkerPriorSpec
from mmgibbs.models.priors.inverse_wishart import InverseWishart
from mmgibbs.models.relationships.identity import IdentityLists
from mmgibbs.sampler.chain import Chain
from mmgibbs.sampler.markers.arguments import NO_CLASSES, Animals, Classes, Genotypes
from mmgibbs.sampler.markers.block import gram_blocks
from mmgibbs.sampler.markers.choose import NO_CLASS
from mmgibbs.sampler.markers.engine_sweeps import HostSweeps, make_sweeps
from mmgibbs.sampler.markers.followed import collect_effects
from mmgibbs.sampler.markers.joint import JointMarkerEffects
from mmgibbs.sampler.markers.sweep import recorded_chunks
from mmgibbs.sampler.mixed_model import MixedModel
from mmgibbs.sampler.schedule import Schedule

ANIMALS, RECORDED, RECORDS, SNPS = 400, 330, 420, 70  # four chunks, three with records; two blocks of SNPs
KEY = (7, 1)
R = np.array([[1.0, 0.4], [0.4, 2.0]])
REAL = {"double": np.dtype(np.float64), "single": np.dtype(np.float32)}
PRIORS = ("rr", "bayes_a", "bayes_b", "bayes_c", "bayes_r", "lasso", "horseshoe")
CLASSES = {"bayes_b": (0.0, 1.0), "bayes_c": (0.0, 1.0), "bayes_r": (0.0, 0.1, 0.5, 1.0)}


@cache
def data():
    """A design of two traits with missing records and weights, and codes (SNPS, ANIMALS) with missing genotypes."""
    rng = np.random.default_rng(12)
    codes = rng.binomial(2, 0.4, (SNPS, ANIMALS)).astype(np.uint8)
    codes[rng.random(codes.shape) < 0.05] = 3
    animal = np.concatenate([np.arange(RECORDED), rng.integers(-1, RECORDED, RECORDS - RECORDED)]).astype(np.int32)
    weight, observed = rng.uniform(0.5, 2.0, RECORDS), models.some_observed(rng, RECORDS, 2)
    herd = models.class_term("herd", rng.integers(0, 40, RECORDS), 40, [0, 1], prior_precision=np.eye(2))
    design = models.with_records(rng, RECORDS, [herd], [None], R, observed, weight)
    x = np.where(codes == 3, 1.0, codes)[:5].sum(axis=0)
    y = design.y + np.where(animal >= 0, x[animal], 0.0)[:, None]
    return replace(design, y=y), codes, animal


def spec_of(prior):
    classes = CLASSES.get(prior, (1.0,))
    counts = tuple(float(c) for c in range(len(classes), 0, -1))
    options = {"classes": classes, "pi": tuple(np.array(counts) / sum(counts)), "counts": counts}
    options |= {"shape": 3.0, "rate": 15.0, "global_scale": 0.3}
    return MarkerPriorSpec(prior, 0.05, False, 5.0, 0.05, options)


def model_of(*priors, kind=None, n_equal=1):
    """A term of SNP effects on each of the first traits; the first SNPs may be equal, whose effects are exchanged."""
    design, codes, animal = data()
    codes[:n_equal] = codes[0]
    terms = tuple(
        markers_of(codes, animal, spec_of(prior), RECORDED, trait, kind) for trait, prior in enumerate(priors)
    )
    residual = CovarianceModel(R, False, full_block(2), InverseWishart(5.0, 5.0 * R))
    return MixedModel(replace(design, markers=terms), (None,), residual)


@pytest.fixture(scope="module")
def shim(tmp_path_factory):
    """shim(precision): libraries of the kernels of the model's term and of its SNP effects."""
    folder, made = tmp_path_factory.mktemp("markers"), {}

    def libraries(precision):
        if precision not in made:
            real, pattern = REAL[precision], np.dtype(np.uint8)
            of_terms = sorted({name for k in (1, 2) for name in kernels([(k, IdentityLists)], k, real)})
            of_term = build(folder, f"term_{precision}", source(real, pattern), of_terms)
            names = [*sweep_names(), *map(kernel, PASSES)]
            made[precision] = of_term, build(folder, f"markers_{precision}", marker_source(real, pattern), names)
        return made[precision]

    return libraries


def sweep_names():
    """Draws on one trait over genotypes of every kind, those on several over packed ones."""
    of_stores = [sweep_name(np.dtype(kind.dtype), "OneTrait") for kind in STORES.values()]
    return of_stores + [sweep_name(np.dtype(PackedGenotypes.dtype), draws) for draws in DRAWS[1:]]


STORES = {"packed": PackedGenotypes, "8 bits": FixedGenotypes, "float32": RealGenotypes}


def engines_of(model, libraries, precision="double", backwards=False):
    equations = equations_of(model, precision=precision)
    pair = SerialEngine(equations), StructuredGpuEngine(equations, device=HostDevice(libraries, backwards))
    for engine in pair:
        engine.set_variances([None], R)
    return pair


@pytest.mark.parametrize("precision", first(1, REAL))
def test_sums_and_moves_of_animals_are_those_of_the_host(precision, shim):
    model = model_of("rr", "rr")
    host, device = engines_of(model, shim(precision), precision)
    host.sweep(1, KEY)
    device.restore(host.state())
    rng = np.random.default_rng(3)
    for _ in range(2):
        for term in (1, 0):
            n = recorded_chunks(model.design.markers[term].genotypes, RECORDED) * 128
            g = rng.standard_normal(n)
            sums = [engine.marker_passes.sum_by_animal(term, n) for engine in (host, device)]
            np.testing.assert_array_equal(*sums)
            np.testing.assert_array_equal(*(engine.marker_passes.weigh_animals(term, n) for engine in (host, device)))
            for engine in (host, device):
                engine.marker_passes.move_breeding_values(term, g)
            np.testing.assert_array_equal(device.e, host.e)
    assert np.any(sums[0]) and device.state().keys() == host.state().keys()
    for name, values in host.state().items():
        np.testing.assert_array_equal(device.state()[name], values, err_msg=name)
    for engine in (host, device):
        engine.refresh()
    np.testing.assert_allclose(device.e, host.e, rtol=1e-5 if precision == "single" else 1e-12)


def sweeps_of(model, libraries, precision, backwards, n_patterns):
    """Sweeps of the host and of the device over the genotypes of the first term, and the animals that they move."""
    engines = engines_of(model, libraries, precision, backwards)
    m = model.design.markers[0]
    chunks = recorded_chunks(m.genotypes, m.n_recorded)
    n, values = chunks * 128, m.genotypes.values(m.centre, m.scale, m.mean)
    weights = engines[0].marker_passes.weigh_animals(0, n)[:n_patterns]
    grams = np.stack([gram_blocks(m.genotypes, values, w) for w in weights])
    genotypes = Genotypes(m.genotypes.array, values, chunks)
    pair = [make_sweeps(engine, genotypes, grams, 1, 3) for engine in engines]
    assert isinstance(pair[0], HostSweeps) and not isinstance(pair[1], HostSweeps)
    rng = np.random.default_rng(2)
    Q = rng.uniform(0.5, 2, n_patterns)
    real = REAL[precision]
    d, s = (Q @ weights).astype(real), (3 * rng.standard_normal(n)).astype(real)
    animals = [Animals(d[None, None].copy(), s[None].copy(), np.zeros((1, n))) for _ in pair]
    return pair, Q[:, None, None], animals


@pytest.mark.parametrize("backwards", first(1, [False, True]))
@pytest.mark.parametrize("n_patterns", [1, 2])
@pytest.mark.parametrize("precision", first(1, REAL))
@pytest.mark.parametrize("kind", STORES)
def test_a_sweep_of_normals_bit_for_bit(kind, precision, n_patterns, backwards, shim):
    model = model_of("rr", kind=STORES[kind])
    pair, Q, animals = sweeps_of(model, shim(precision), precision, backwards, n_patterns)
    rng = np.random.default_rng(4)
    effects, classes, chances = np.zeros((2, SNPS, 1)), np.ones(SNPS, np.int8), np.zeros((SNPS, 3), np.float32)
    for variance in (rng.uniform(0.01, 0.1, SNPS), np.full(SNPS, 0.05), np.full(SNPS, np.nan)):
        prior = Classes(variance[None], NO_CLASSES.log_share)
        draws = ClassDraws(classes, prior, NO_CLASSES, rng.standard_normal(SNPS), np.empty(0), chances)
        for sweeps, of_animals, a in zip(pair, animals, effects, strict=True):
            sweeps.draw(Q, of_animals, a, draws)
        for arrays in (*zip(*animals, strict=True), effects):
            np.testing.assert_array_equal(*arrays)
        assert effects.all() and animals[0].g.any() and np.isnan(effects).all() == np.isnan(variance).all()
    assert classes.all() and not chances.any()


@pytest.mark.parametrize("is_backward", [False, True])
@pytest.mark.parametrize(
    ("kind", "n_patterns", "precision"), first(1, [("packed", 2, "double"), ("8 bits", 1, "single")])
)
@pytest.mark.parametrize("is_own", first(1, [False, True]))  # a variance for each SNP
def test_a_sweep_of_classes_bit_for_bit(is_own, kind, n_patterns, precision, is_backward, shim):
    model = model_of("bayes_r", kind=STORES[kind])
    pair, Q, animals = sweeps_of(model, shim(precision), precision, is_backward, n_patterns)
    rng = np.random.default_rng(5)
    effects, classes = np.zeros((2, SNPS, 1)), np.ones((2, SNPS), np.int8)
    chances = np.zeros((2, SNPS, 3), np.float32)
    variance = np.array([0.0, 0.02, 0.3])[:, None] * (rng.uniform(0.5, 2, SNPS) if is_own else np.ones(1))
    prior, other = Classes(variance, np.log([0.5, 0.3, 0.2])), Classes(2 * variance, np.log([0.4, 0.3, 0.3]))
    without = Classes(variance, np.array([-0.7, -np.inf, -0.7]))  # a share of 0
    ratios = []
    for compared in (NO_CLASSES, other, without, NO_CLASSES):
        z, u = rng.standard_normal(SNPS), rng.random(SNPS)
        of_pair = zip(pair, animals, effects, classes, chances, strict=True)
        found = [
            sweeps.draw(Q, of_animals, a, ClassDraws(of_class, prior, compared, z, u, c), is_backward)
            for sweeps, of_animals, a, of_class, c in of_pair
        ]
        assert found[0] == found[1]
        ratios.append(found[0])
        for arrays in (*zip(*animals, strict=True), effects, classes, chances):
            np.testing.assert_array_equal(*arrays)
    assert set(classes[0]) == {0, 1, 2} and chances[0].any(axis=0).all() and ratios[0] == 0 and ratios[1] != 0


def test_classes_without_chances_are_none_on_both(shim):
    """The first SNP already has none; what follows of it is NaN."""
    model = model_of("bayes_r")
    pair, Q, animals = sweeps_of(model, shim("double"), "double", False, 1)
    prior = Classes(np.array([0.0, np.nan, 0.3])[:, None], np.log([0.5, 0.3, 0.2]))
    for sweeps, of_animals in zip(pair, animals, strict=True):
        classes, chances = np.ones(SNPS, np.int8), np.zeros((SNPS, 3), np.float32)
        given = ClassDraws(classes, prior, NO_CLASSES, np.zeros(SNPS), np.full(SNPS, 0.5), chances)
        sweeps.draw(Q, of_animals, np.zeros((SNPS, 1)), given)
        assert set(classes) == {NO_CLASS}


@pytest.mark.parametrize("kind", ["joint", "one_by_one"])
def test_states_without_chances_end_both_chains(kind, shim):
    for chain in chains_of(joint_model(kind), shim("double")):
        step = next(s for s in chain.steps if isinstance(s, JointMarkerEffects))
        step.prior.pi = np.full_like(step.prior.pi, np.nan)
        with pytest.raises(ModelError, match="SNP 1 of 70 cannot be drawn at sweep 1 of chain 2"):
            chain.advance(1)


def chains_of(model, libraries, states=(None, None)):
    schedule = Schedule(6, 30, 2, refresh_every=7)
    return [
        Chain(model, engine, schedule, KEY, state)
        for engine, state in zip(engines_of(model, libraries), states, strict=True)
    ]


def joint_model(kind):
    """A term with one prior of its effects on both traits, whose covariance matrix is sampled."""
    design, codes, animal = data()
    spec = replace(JOINT_PRIORS[kind], fixed=False, counts=np.ones(len(JOINT_PRIORS[kind].pi)))
    residual = CovarianceModel(R, False, full_block(2), InverseWishart(5.0, 5.0 * R))
    return MixedModel(replace(design, markers=terms_of(spec, codes, animal, RECORDED)), (None,), residual)


@pytest.mark.parametrize("backwards", first(1, [False, True]))
@pytest.mark.parametrize("precision", first(1, REAL))
@pytest.mark.parametrize("kind", JOINT_PRIORS)
def test_effects_on_several_traits_bit_for_bit(kind, precision, backwards, shim):
    """The same step given the same residuals."""
    model = joint_model(kind)
    pair = engines_of(model, shim(precision), precision, backwards)
    chains = [Chain(model, engine, Schedule(6, 30, 2), KEY) for engine in pair]
    steps = [next(s for s in chain.steps if isinstance(s, JointMarkerEffects)) for chain in chains]
    for number in (1, 2, 3):
        pair[0].sweep(number, KEY)
        pair[1].restore(pair[0].state())
        for step in steps:
            step(number)
        for name, values in steps[0].state().items():
            np.testing.assert_array_equal(steps[1].state()[name], values, err_msg=name)
        for name in ("chances", "inside"):
            np.testing.assert_array_equal(*(getattr(step, name) for step in steps), err_msg=name)
        np.testing.assert_array_equal(pair[1].e, pair[0].e)
    assert steps[0].a.any() and (kind == "rr" or not steps[0].a.all())


CONTINUED = {
    "two terms": lambda: model_of("bayes_r", "bayes_a"),
    **{kind: (lambda kind=kind: joint_model(kind)) for kind in ("joint", "one_by_one")},
}


@pytest.mark.parametrize("name", CONTINUED)
def test_a_chain_continues_bit_for_bit_and_on_the_other_device(name, shim):
    model = CONTINUED[name]()
    assert_continues(lambda states: chains_of(model, shim("double"), states), 9, 18)


@pytest.mark.parametrize("prior", PRIORS)
def test_the_chain_of_the_host_up_to_rounding(prior, shim):
    expected, actual = chains_of(model_of(prior), shim("double"))
    for chain in (expected, actual):
        chain.advance(20)
    assert_same_results(actual, expected)
    of_device, of_host = (collect_effects(chain.steps)[0] for chain in (actual, expected))
    np.testing.assert_allclose(of_device.a, of_host.a, rtol=1e-7, atol=1e-9)


def test_launches_and_waits_of_a_sweep(shim):
    """One cooperative launch for all SNPs; sums come and effects go, whatever the number of SNPs."""
    _, chain = chains_of(model_of("bayes_r"), shim("double"))
    chain.advance(3)
    device = chain.engine.queue.device
    device.asked.clear(), device.launched.clear()
    chain._sweep(5)
    names = [name for name in device.launched if "all_rounds" in name or "animal" in name]
    sweep = sweep_name(np.dtype(np.uint32), "OneTrait")
    assert names == [kernel("sum_by_animal"), sweep, kernel("move_records_of_animals")]
    assert device.asked.count("allocate") == 0 and device.asked.count("wait") <= WAITS


WAITS = 10  # of a sweep with SNP effects on one trait and a sampled residual variance


def test_the_memory_that_effects_take_is_asked_for(shim):
    model = model_of("bayes_r", "bayes_a")
    device = HostDevice(shim("double"))
    allocated = []
    zeros = device.zeros
    device.zeros = lambda shape, dtype, stream: (allocated.append(zeros(shape, dtype, stream)), allocated[-1])[1]
    engine = StructuredGpuEngine(equations_of(model), device=device)
    before = sum(array.nbytes for array in allocated)
    of_records = sum(8 * (len(m.offset) + m._values.size) for m in engine.marker_passes.records)
    lists = ("animal", "ptr", "record")
    of_records += sum(shared_array(engine, "animals", m, name).nbytes for m in range(2) for name in lists)
    chain = Chain(model, engine, Schedule(2, 4), KEY)
    chain.advance(3)
    taken = sum(array.nbytes for array in allocated) - before + of_records
    assert 0.5 * taken < marker_bytes(model.design, engine.real) < 1.5 * taken


def shared_array(engine, *name):
    return engine.shared.find(name, lambda: pytest.fail(f"{name} is not shared"))


def test_chains_side_by_side_have_genotypes_on_the_device_once(shim):
    """They advance in turns, each to the draws that it has alone."""
    model = model_of("bayes_r", "rr")
    equations = equations_of(model)
    schedule = Schedule(2, 4)
    devices = [HostDevice(shim("double")) for _ in range(4)]
    first = StructuredGpuEngine(equations, device=devices[0])
    second = StructuredGpuEngine(equations, device=devices[1], beside=first)
    alone = [StructuredGpuEngine(equations, device=device) for device in devices[2:]]
    chains = [Chain(model, e, schedule, (7, c)) for e, c in zip((first, second, *alone), (0, 1, 0, 1), strict=True)]
    for number in range(1, 7):
        for chain in chains:
            chain.advance(number)
    for found, expected in zip(chains[:2], chains[2:], strict=True):
        for name, values in expected.state().items():
            if name != "seconds":
                np.testing.assert_array_equal(found.state()[name], values, err_msg=name)
    for number in (1, 2):
        for name in ("genotypes", "grams", "values"):
            assert shared_array(first, name, number) is shared_array(second, name, number)
    assert devices[1].allocated < devices[0].allocated - shared_array(first, "genotypes", 1).nbytes


MAIN = """
using namespace mmgibbs;

int main() {
    const int p = 70, chunks = 12, n = chunks * CHUNK, K = 3, blocks = 2;
    static word32 genotypes[p * chunks * Packed::WIDTH], arrived[1];
    static Values values[p];
    static REAL d[n], s[n];
    static double g[n], right[BLOCK], changes[BLOCK], a[p], z[p], u[p], Q[1] = {1}, log_ratio[1];
    static double variance[K] = {0, 0.1, 1}, log_share[K] = {-0.5, -1.5, -1.7}, other[K] = {0, 0.2, 2};
    static float gram[blocks * BLOCK * BLOCK], chances[p * K];
    static signed char of_class[p];
    word32 state = 1;
    for (auto &word : genotypes) word = state = state * 1664525u + 1013904223u;
    for (auto &value : values) value = {{-1, 0, 1, 0}};
    for (int j = 0; j < p; ++j) z[j] = 0.3 * (j % 5) - 0.6, u[j] = (j * 37 % 70 + 0.5) / 70;
    for (int i = 0; i < n; ++i) d[i] = 1, s[i] = (REAL)(i % 7) - 3;
    for (int j = 0; j < blocks * BLOCK; ++j) {
        for (int l = 0; l < BLOCK; ++l) gram[j * BLOCK + l] = j % BLOCK == l ? 900.0f : 20.0f;
    }
    OneTrait draws = {{gram, Q, 1, blocks}, {variance, log_share, K, 1}, {other, log_share, K, 1}, a, of_class, chances,
                      z, u, log_ratio};
    EffectSweep<Packed, OneTrait> work = {genotypes, values, d, s, g, right, changes, draws, p, chunks, 1, 0};
    for (int r = 0; r < work.rounds(); ++r) run([=] { work.round(r); }, 3, 32);
    for (double value : a) printf("%.17g ", value);
    for (int i = 0; i < n; i += 96) printf("%.17g %.17g ", (double)s[i], g[i]);
    printf("%.17g %.9g", *log_ratio, chances[7]);
}
"""
MAIN_OF_SEVERAL = """
using namespace mmgibbs;

int main() {
    const int p = 70, T = 2, K = 4, blocks = 2;
    static double a[2][p * T], z[p * T], u[p * T], Q[T * T] = {1, 0.2, 0.2, 1.5}, work[200], right[T * BLOCK];
    static double changes[T * BLOCK], precision[K * T * T], log_weight[K] = {-1, -2, -2, -1.5}, zeros[K * T * T];
    static int traits[K * T] = {0, 1, 0, 1, 1, 0, 0, 1}, n_traits[K] = {0, 1, 1, 2};
    static float gram[blocks * BLOCK * BLOCK], chances[p * K], inside[p * T];
    static signed char state[p];
    for (int i = 0; i < p * T; ++i) z[i] = 0.3 * (i % 5) - 0.6, u[i] = (i * 37 % 140 + 0.5) / 140;
    for (int i = 0; i < T * BLOCK; ++i) right[i] = i % 9 - 4.0;
    for (int k = 0; k < K; ++k) precision[k * 4] = precision[k * 4 + 3] = 10;
    for (int i = 0; i < blocks * BLOCK * BLOCK; ++i) gram[i] = i / BLOCK % BLOCK == i % BLOCK ? 20.0f : 0.5f;
    const SeveralTraits of = {{gram, Q, 1, blocks}, a[0], state, chances, z, work, work + 4, work + 6, T, K};
    StatesOfTraits states = {of, traits, n_traits, precision, log_weight, u, work + 8, work + 20, work + 40};
    static double inverse[T * T] = {10, 1, 1, 12};
    SitesOfTraits sites = {of, inverse, zeros, zeros, log_weight, z, u, inside, work + 60};
    sites.of.a = a[1];
    run([=] { states.draw({0, 0, 64}, right, changes, false, 0); }, 1, 32);
    run([=] { sites.draw({1, 64, 6}, right, changes, false, 0); }, 1, 32);
    for (int i = 0; i < p * T; ++i) printf("%.17g %.17g ", a[0][i], a[1][i]);
    for (double value : right) printf("%.17g ", value);
}
"""
NEEDED_OF_SEVERAL = (
    "q[t] = of_trait;",
    "weight[k] = log_weight[k] + log_evidence(k);",
    "each[k] = exp(weight[k] - largest_of(weight, K));",
    "draw_effects(chosen < 0 ? 0 : chosen, of.z + i * of.T);",
    "changes[t * BLOCK + j] = drawn[t] - effects[t], effects[t] = drawn[t];",
    "right[t * BLOCK + l] -= (double)grams.at(P, block.number, j, l) * step;",
    "draw_traits((size_t)(block.first + j));",
)
NEEDED = (
    "begin + at / LANES, at % LANES);",
    "total[lane] = sum;",
    "before[j] = a[block.first + j];",
    "compared.log_weight(C, q, k - K, i);",
    "weight[k] = exp(log_weight[k] - largest(log_weight, k < K));",
    "*log_ratio += largest(log_weight, true) + log(total);",
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("main", "places"), [(MAIN, NEEDED), (MAIN_OF_SEVERAL, NEEDED_OF_SEVERAL)], ids=["one trait", "several"]
)
def test_threads_of_a_block_do_not_race_and_a_barrier_that_is_taken_out_is_noticed(main, places, tmp_path):
    text = marker_source(np.dtype(np.float64), np.dtype(np.uint8))
    complete = run_without_race(tmp_path, text, main)
    values = np.array(complete.printed.split(), float)
    assert np.isfinite(values).all() and (values[:SNPS] == 0).any() and (values[:SNPS] != 0).any()
    for place in places:
        assert_barrier_is_needed(tmp_path, text, main, place, complete)


SPILLED_BYTES = {"all_rounds": 36}  # of a sweep of states, on sm_100; most sweeps spill nothing


@pytest.mark.parametrize("architecture", first(1, ARCHITECTURES))
@pytest.mark.parametrize("real", first(1, [np.float32, np.float64]))
def test_kernels_fit_on_a_device(real, architecture):
    text = marker_source(np.dtype(real), np.dtype(np.uint8))
    assert_kernels_fit(text, architecture, sweep_names(), {"all_rounds", *PASSES}, SPILLED_BYTES)
