"""Conjugate gradients on a device, by NumPy and SciPy in the place of CuPy: the solutions of the CPU."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.host_arrays import ArraysDevice, DeviceArray
from helpers.likelihoods import likelihood_of
from helpers.mixed_models import equations_of
from helpers.small_analysis import ANALYSIS, command, refused, replaced, write_files
from reference import models

import mmgibbs.build.device_memory
import mmgibbs.build.engine
import mmgibbs.engines.pcg.device_solver
from mmgibbs.engines.pcg.device_solver import DevicePcgSolver, bytes_per_iteration, count_bytes, count_elements
from mmgibbs.engines.pcg.engine import PcgEngine
from mmgibbs.engines.pcg.solver import PcgSolver
from mmgibbs.errors import DeviceError, ModelError
from mmgibbs.machine.threads import ALONE
from mmgibbs.models.design import Design
from mmgibbs.models.relationships.core import CoreBlock, parts_of_core
from mmgibbs.models.terms import Effect
from mmgibbs.reml.information import gradient
from mmgibbs.reml.monte_carlo.score import SampledLikelihood


def solvers(example, design=None):
    equations = equations_of(example.design if design is None else design)
    made = PcgSolver(equations, ALONE, "blocks"), DevicePcgSolver(equations, ALONE, ArraysDevice())
    for solver in made:
        solver.set_variances(example.G, example.R)
    return made


def vectors(solver, m, seed=3):
    x = np.random.default_rng(seed).standard_normal((int(solver.bounds[-1]), m))
    return x * solver.active[:, None]


@pytest.mark.parametrize("name", models.NAMES)
def test_products_are_those_of_the_cpu(name):
    host, device = solvers(models.example(name))
    x = vectors(host, 3)
    on_device = device._upload(x)
    for product, expected in (
        (device._times(on_device), host.times(x)),
        (device._precondition(on_device), host.precondition(x)),
    ):
        np.testing.assert_allclose(device._download(product), expected, rtol=0, atol=1e-12 * np.abs(expected).max())


@pytest.mark.parametrize("name", models.NAMES)
def test_blup_is_that_of_the_cpu(name):
    host, device = solvers(models.example(name))
    told = []
    expected, found = host.solve(1e-12), device.solve(1e-12, callback=told.append)
    assert found.relative_residual < 1e-11 and found.preconditioner == "blocks" and told[-1] == found.iterations
    for a, b in zip(found.theta, expected.theta, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-8 * max(1.0, np.abs(b).max()))


@pytest.mark.parametrize("columns", [1, 70])
def test_many_right_hand_sides(columns):
    """From a start, each to its own tolerance; beyond 64 of them in parts."""
    host, device = solvers(models.example("three_traits_maternal"))
    b, start = vectors(host, columns), vectors(host, columns, 4)
    b[:, 0] *= 1e3
    for relative in (False, True):
        expected, found = (s.solve_columns(b, start, 1e-10, relative) for s in (host, device))
        np.testing.assert_allclose(found.x, expected.x, rtol=0, atol=1e-8 * np.abs(expected.x).max())
        assert (found.error <= 1e-10).all() and (np.abs(found.iterations - expected.iterations) <= 2).all()
    zero = device.solve_columns(np.zeros(b.shape), np.zeros(b.shape), 1e-10, True)
    assert not zero.x.any() and not zero.iterations.any()


def test_the_host_waits_once_for_sixteen_iterations():
    _, device = solvers(models.example("three_traits_maternal"))
    b = vectors(device, 4)
    before = DeviceArray.waits
    found = device.solve_columns(b, np.zeros(b.shape), 1e-10)
    looks = -(-int(found.iterations.max()) // 16) + 1
    assert found.iterations.max() > 16 and DeviceArray.waits - before == looks + 4  # what is fetched at the end


def test_values_that_are_lost_on_the_device_are_no_solution():
    """No comparison with NaN is true, so that the iterations end."""
    _, device = solvers(models.example("three_traits_maternal"))
    b = vectors(device, 2)
    device._weights = device._weights * np.nan
    with pytest.raises(ModelError, match="PCG stopped after 1 iterations at a relative residual of nan"):
        device.solve(1e-12)
    with pytest.raises(ModelError, match="PCG stopped after 1 iterations at an error of nan"):
        device.solve_columns(b, np.zeros(b.shape), 1e-10)


def test_relationships_by_a_core():
    example = models.example("genomic_relationships")
    i = next(i for i, term in enumerate(example.design.terms) if term.relationship.dense is not None)
    term = example.design.terms[i]
    K = np.linalg.inv(term.relationship.block.values.astype(float))
    core = np.arange(0, len(K), 2)
    block = CoreBlock(term.relationship.block.levels, parts_of_core(K[:, core], K.diagonal().copy(), core), 0.9)
    prior = replace(term.prior, relationship=replace(term.relationship, block=block))
    terms = tuple(replace(t, prior=prior) if t is term else t for t in example.design.terms)
    host, device = solvers(example, replace(example.design, terms=terms))
    x = vectors(host, 2)
    np.testing.assert_allclose(device._download(device._times(device._upload(x))), host.times(x), atol=1e-10)


@pytest.mark.parametrize("fixed", [False, True])
def test_draws_of_engine_pcg(fixed, monkeypatch):
    monkeypatch.setattr(mmgibbs.engines.pcg.device_solver, "Device", ArraysDevice)
    example = models.example("bivariate_missing")
    engines = [
        PcgEngine(equations_of(example.design, "term"), 1e-10, fixed, device=device) for device in ("cpu", "gpu")
    ]
    for engine in engines:
        engine.set_variances(example.G, example.R)
        for number in (1, 2):
            assert engine.sweep(number, (4, 0))["pcg_error"] <= 1e-10
    for a, b in zip(*(engine.fetch() for engine in engines), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-8)


@pytest.mark.parametrize("name", models.NAMES)
def test_memory_is_counted(name):
    """What stays on the device, less the numbers of its positions."""
    _, device = solvers(models.example(name))
    assert device.W.nnz <= sum(map(count_elements, device.equations.terms))
    sparse = [device.W, device.W_transposed, *device.inverses]
    held = sum(12 * matrix.nnz for matrix in sparse) + device._weights.nbytes
    held += sum(blocks.nbytes for blocks in device._inverse_blocks)
    held += sum(dense.values.nbytes for dense in device.dense if dense is not None)
    said, per_column = count_bytes(device.equations)
    assert held <= said and per_column > 0
    with pytest.raises(DeviceError, match=r"found 100 bytes free on the device, needed [\d,]+ for"):
        DevicePcgSolver(device.equations, ALONE, ArraysDevice(100))


def test_bytes_of_an_iteration_are_those_of_matrices_and_vectors():
    """Counted by hand: 8 records of 2 traits in 3 herds, 2 components each, and 5 animals of one sire."""
    rng = np.random.default_rng(3)
    herd, animal = np.arange(8) % 3, np.arange(8) % 5
    kind = models.pedigree_relationship(np.array([-1, 0, 0, 0, 0]), np.full(5, -1))
    terms = (
        models.class_term("herd", herd, 3, [0, 1]),
        models.random_term("genetic", [Effect("", animal.astype(np.int32), (0, 1))], kind, 5),
    )
    seen = np.ones((1, 2), bool)
    design = Design(("a", "b"), rng.normal(size=(8, 2)), np.zeros(8, np.int32), seen, np.ones(8), terms)
    W = 8 * 2 + 8 * 2  # elements: a record meets one level of each term with a component for each trait
    K_inverse = 5 + 2 * 4  # elements: the diagonal, and the sire with each of its progeny
    matrices = 12 * (2 * W + K_inverse) + 8 * 8 * 2 * 2 + 8 * (3 + 5) * 2 * 2
    vectors = 8 * (8 * (3 + 5) * 2 + 2 * 8 * 2)
    for columns in (1, 3):
        assert bytes_per_iteration(equations_of(design, "term"), columns) == matrices + columns * vectors


def test_scores_of_sampled_reml(monkeypatch):
    monkeypatch.setattr(mmgibbs.engines.pcg.device_solver, "Device", ArraysDevice)
    example = models.example("bivariate_missing")
    _, elements, start = likelihood_of(example)
    found = []
    for device in ("cpu", "gpu"):
        made = SampledLikelihood(equations_of(example.design, "term"), 20, len(elements), 7, 1e-8, ALONE, device)
        found.append(gradient(made.evaluate(start), elements))
    np.testing.assert_allclose(found[1], found[0], rtol=1e-6)


@pytest.fixture
def arrays(monkeypatch):
    made = ArraysDevice()
    monkeypatch.setattr(mmgibbs.build.engine, "import_cupy", lambda: None)
    for module in (mmgibbs.build.device_memory, mmgibbs.engines.pcg.device_solver):
        monkeypatch.setattr(module, "Device", lambda: made)
    return made


def runs(folder, sampler):
    """The run on the CPU and on the device."""
    out = []
    for device in ("cpu", "gpu"):
        write_files(
            folder / device, {"analysis.yaml": replaced(ANALYSIS, "method: blup", f"{sampler}, device: {device}")}
        )
        out.append(command(folder / device, "run", "analysis.yaml"))
        assert out[-1].code == 0, out[-1].err
        assert out[-1].record["device"] == device
    return out


@pytest.mark.parametrize("sampler", ["method: blup", "method: blup, pev_limit: 0, pev_samples: 40"])
def test_a_run_is_that_of_the_cpu(tmp_path, arrays, sampler):
    host, device = runs(tmp_path, sampler)
    for column in ("mean", "pev"):
        if column in host.solutions.columns:
            a, b = (run.solutions[column].cast(float).to_numpy() for run in (device, host))
            np.testing.assert_allclose(a, b, rtol=1e-3 if column == "pev" else 1e-6, atol=1e-6)


def test_check_says_the_memory(tmp_path, arrays):
    write_files(tmp_path, {"analysis.yaml": replaced(ANALYSIS, "method: blup", "method: blup, device: gpu")})
    said = command(tmp_path, "check", "analysis.yaml").out
    (line,) = [line for line in said.splitlines() if line.startswith("device ")]
    assert " bytes needed; an iteration moves " in line
    assert line.endswith(" ms at the nominal 1,000 GB/s (not measured)")
    arrays.free = 1000
    message = refused(tmp_path, run=("check", "analysis.yaml"))
    assert message.startswith("device: gpu: found 1,000 bytes free on the device, needed ")
