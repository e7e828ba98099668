"""Sweeps of genomic relationships on a device, by kernels compiled for the host: the chain of the serial engine."""

import numpy as np
import pytest
from helpers.nvrtc import read_resources
from helpers.races import remove_barrier, run_with_threads, run_without_race
from helpers.selection import first
from reference import models
from unit.engines.test_resident_variances import assert_same_results, chains, sampled_example, schedule_of
from unit.engines.test_structured_shim import KEY, assert_near, engines, swept

from mmgibbs.engines.coloured_gpu.source import dense_kernels, source
from mmgibbs.errors import ModelError
from mmgibbs.models.relationships.genomic import NoLists
from mmgibbs.models.relationships.pedigree import PedigreeLists
from mmgibbs.sampler.resident import ResidentSweep


@pytest.fixture(params=[128, 4])
def tile(request, monkeypatch):
    """One tile, or several of which the last is shorter."""
    monkeypatch.setattr("mmgibbs.engines.coloured_gpu.dense.TILE", request.param)
    return request.param


@pytest.mark.parametrize("backwards", first(1, [False, True]))
@pytest.mark.parametrize("update", ["level", "site"])
@pytest.mark.parametrize("name", models.DENSE)
def test_the_chain_of_the_serial_engine(name, update, backwards, shim, tile):
    example = models.example(name)
    truth, engine = (swept(e) for e in engines(example, shim("double"), update, backwards=backwards))
    for a, b in zip(truth.fetch(), engine.fetch(), strict=True):
        assert_near(b, a, 1e-10)
    assert_near(np.asarray(engine.resident.e), truth.e, 1e-10)
    for i in example.random_terms():
        assert_near(engine.quadratic_form(i), truth.quadratic_form(i), 1e-10)


@pytest.mark.slow
def test_single_precision(shim):
    truth, engine = (
        swept(e) for e in engines(models.example("single_step_maternal"), shim("single"), precision="single")
    )
    for a, b in zip(truth.fetch(), engine.fetch(), strict=True):
        assert_near(b, a, 1e-4)


@pytest.mark.parametrize("name", models.DENSE)
def test_variances_drawn_on_the_device(name, shim, tile):
    """One graph a sweep, a checkpoint of the host, and back."""
    model = sampled_example(name)
    schedule = schedule_of(model)
    expected, found = chains(model, shim("double"), schedule)
    can_resident = isinstance(found.steps[0], ResidentSweep)
    for run in (expected, found):
        run.advance(13)
    states = [{k: np.array(v) for k, v in run.state().items()} for run in (found, expected)]
    swapped = chains(model, shim("double"), schedule, states=states)
    for run in (expected, found, *swapped):
        run.advance(33)
    for run in (found, *swapped):
        assert_same_results(run, expected)
    fixed_groups = any(t.groups_fixed for t in model.design.terms)
    assert can_resident != fixed_groups


def test_a_level_that_cannot_be_drawn_is_named(shim):
    example = models.example("genomic_relationships")
    _, engine = engines(example, shim("double"))
    dense = next(iter(engine._dense.values()))
    np.asarray(dense._values)[3, 3] = -1e9
    engine.sweep(1, KEY)
    with pytest.raises(ModelError, match="term 'genetic'.*level number 4 of 13"):
        engine.fetch()


MAIN = """
typedef mmgibbs::Dense<double> Dense;
int main() {
    const int n = 8;
    static double S[n * n], rows[n], theta[n], e[n], Rinv[1] = {0.7}, Ginv[1] = {0.5}, cells[n];
    static mmgibbs::word32 visits[n + 1], codes[n], patterns[n], counter[3] = {1, 2, 3};
    static mmgibbs::word32 sire[n], dam[n], none[n + 1];
    static double ones[n];
    static unsigned char pattern[n], coupled[n] = {0, 1, 1, 1, 1, 1, 1, 1};
    static mmgibbs::DenseSystem<1> systems[n];
    static mmgibbs::bits64 failed = ~0ULL;
    for (int i = 0; i < n; ++i) {
        for (int j = 0; j < n; ++j) S[i * n + j] = i == j ? 3.0 : 1.0 / (2 + i + j);
        theta[i] = 0.1 * i, e[i] = 1.0 - 0.2 * i, visits[i] = codes[i] = i, cells[i] = ones[i] = 1.0;
        sire[i] = i - 1, dam[i] = mmgibbs::UNKNOWN;
    }
    visits[n] = n;
    mmgibbs::Term<1> term = {};
    term.visit_ptr = term.cell_ptr = visits, term.visit_record = term.code = codes, term.cell_pattern = patterns;
    term.cell_sums = cells, term.Ginv = Ginv, term.theta = theta, term.regressors = 1;
    const mmgibbs::Records records = {e, e, pattern, 0, codes, Rinv, n};
    const Dense dense = {S, rows, n, 0};
    run([=] { mmgibbs::dense_rows<1, double>(dense, theta, 0); }, n, 8);
    const mmgibbs::Pedigree kin = {sire, dam, ones, ones, none, none, none, ones};
    run([=] {
        mmgibbs::draw_tile<1, 1, mmgibbs::NoLists, double>(
            term, {n}, records, dense, 0, n, 0, systems, 1, counter, &failed);
    }, 1, 8);
    run([=] {
        mmgibbs::draw_tile<1, 1, mmgibbs::Pedigree, double>(
            term, kin, records, dense, 0, n, coupled, systems, 1, counter, &failed);
    }, 1, 8);
    for (double value : theta) printf("%.17g ", value);
    for (double value : e) printf("%.17g ", value);
}
"""
HEAD = "// Levels that a dense block S"
PLACES = (
    "part[c][threadIdx.x] = sum[c];\n    }\n",
    "for (int c = 0; c < K; ++c) system.moved[c] = 0.0;\n        }\n    }\n",
    "move_visit<K, T>(term, records, v, system.change);\n            }\n        }\n",
)


@pytest.fixture(scope="module")
def dense_text():
    """The draws of a tile in double precision."""
    return source(np.dtype(np.float64), np.dtype(np.uint8))


@pytest.mark.slow
def test_no_race_in_a_tile_and_every_barrier_is_needed(tmp_path, dense_text):
    """With relatives in the tile, without which the equations of later levels would not see its first draw."""
    before, text = dense_text.split(HEAD)
    complete = run_without_race(tmp_path, dense_text, MAIN)
    assert len(complete.printed.split()) == 16
    for place in PLACES:
        spoilt = before + HEAD + remove_barrier(text, place)
        outcome = run_with_threads(tmp_path, "without", spoilt, MAIN)
        assert not outcome.has_ended or outcome.races or outcome.printed != complete.printed, place


@pytest.mark.slow
def test_registers_and_shared_memory():
    """Of one to three components hardly anything is spilled."""
    text = source(np.dtype(np.float32), np.dtype(np.uint8))
    given = (1, 1, NoLists), (2, 1, PedigreeLists), (3, 3, NoLists)
    names = {name for of in given for name in dense_kernels(*of, np.dtype(np.float32)).values()}
    taken = [of for name, of in read_resources(text, "sm_90", sorted(names)) if name in ("dense_rows", "draw_tile")]
    assert len(taken) == len(names) == 6
    for of_kernel in taken:
        assert of_kernel.spilled_bytes <= 8 and of_kernel.registers <= 64 and of_kernel.shared_bytes <= 3 * 1024
