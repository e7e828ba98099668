"""The hybrid engine's CUDA side without a GPU: kernels by g++, on a device that runs late and at random."""

import numpy as np
import pytest
from helpers.mixed_models import equations_of
from helpers.nvrtc import ARCHITECTURES, compiled
from helpers.selection import first
from reference import fake_device, models
from reference.fake_device import FakeDevice

from mmgibbs.engines.hybrid.device import SOURCE
from mmgibbs.engines.hybrid.engine import HybridEngine
from mmgibbs.engines.hybrid.kernels import PIECE
from mmgibbs.engines.hybrid.sizes import matrix_bytes, vector_bytes
from mmgibbs.errors import DeviceError

KEY = (7, 3)


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("kernels")


@pytest.mark.parametrize("real", ["float", "double"])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_nvrtc_compiles_the_kernels(architecture, real):
    code, _ = compiled(SOURCE.read_text(encoding="utf-8"), architecture, f"-DPIECE={PIECE}", f"-DREAL={real}")
    assert len(code) > 1000


def run(engine, example, sweeps):
    """Variances that stay, change, and change every sweep."""
    for number in range(1, sweeps + 1):
        if number in (1, 4) or number > sweeps - 4:
            engine.set_variances(
                [None if g is None else g * (1 + 0.1 * number) for g in example.G], example.R * (1 + 0.05 * number)
            )
        engine.sweep(number, KEY)
    return engine.fetch()


def identical(one, other) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


CASES = [
    ("direct_maternal", "colour", "level"),
    ("three_traits_maternal", "effect", "site"),
    ("fixed_covariates", "equal", "level"),
    ("same_effect_twice", "term", "site"),
]


@pytest.mark.parametrize("precision", first(1, ["double", "single"]))
@pytest.mark.parametrize("name, kind, update", CASES)
def test_the_chain_of_the_worker_threads_bit_for_bit(folder, name, kind, update, precision):
    example = models.example(name)
    equations = equations_of(example, kind, precision)
    expected = run(HybridEngine(equations, update, threads=1), example, 12)
    for seed in range(3):
        assert identical(run(HybridEngine(equations, update, FakeDevice(folder, seed)), example, 12), expected)


def test_rows_longer_than_a_piece(folder):
    """Two herds of 900 records each, each record of its own litter: the rows of herds are summed in pieces."""
    rng = np.random.default_rng(4)
    litter = models.random_term(
        "litter", [models.Effect("", np.arange(1800, dtype=np.int32) % 1500, (0,))], models.Identity(1500), 1500
    )
    terms = [models.class_term("herd", np.arange(1800) % 2, 2, [0]), litter]
    G, R = [None, np.array([[2.0]])], np.array([[3.0]])
    example = models.Example("litters", models.with_records(rng, 1800, terms, [None, [[2.0]]], R), G, R)
    equations = equations_of(example)
    engine = HybridEngine(equations, device=FakeDevice(folder, 1))
    pieces = [s.pieces for s in engine.updates._every_slice() if s.pieces is not None]
    assert sum(np.count_nonzero(np.diff(p.ptr.view(np.int64))) for p in pieces) == 2
    assert identical(run(engine, example, 12), run(HybridEngine(equations, threads=1), example, 12))


def too_small_for(equations, folder) -> int:
    """Device memory that holds everything but the matrix, and two buffers."""
    device = FakeDevice(folder)
    engine = HybridEngine(equations, device=device)
    return device.used - engine.row_blocks.bytes_off_diagonal + 2 * engine.updates._largest_slice_bytes()


@pytest.mark.parametrize("precision", first(1, ["double", "single"]))
def test_a_matrix_that_does_not_fit_is_streamed_and_says_so(folder, precision):
    example = models.example("fixed_covariates")
    equations = equations_of(example, "equal", precision)
    expected = run(HybridEngine(equations, threads=1), example, 12)
    for seed in range(3):
        device = FakeDevice(folder, seed, too_small_for(equations, folder))
        with pytest.warns(RuntimeWarning, match="does not fit on the device.*copied there in every sweep"):
            engine = HybridEngine(equations, device=device)
        assert "does not fit" in engine.notes[0]
        assert identical(run(engine, example, 12), expected)


@pytest.mark.parametrize("short", ["vectors", "buffers"])
def test_a_device_without_room_is_refused(folder, short):
    equations = equations_of(models.example("fixed_covariates"), "term")
    memory = 1000 if short == "vectors" else too_small_for(equations, folder) - 1
    with pytest.raises(
        DeviceError, match="device memory free; the matrix needs .* GB, or two of its blocks .* partition: equal"
    ):
        HybridEngine(equations, device=FakeDevice(folder, 0, memory))


def without(monkeypatch, what: str):
    """Take one kind of ordering away: events between streams, or the host's wait for r."""
    if what == "events":
        monkeypatch.setattr(fake_device.FakeStream, "wait_event", lambda self, event: None)
    else:
        monkeypatch.setattr(fake_device.FakeEvent, "synchronize", lambda self: None)


@pytest.mark.parametrize("what", ["events", "waits"])
def test_without_events_or_waits_the_chain_is_wrong(folder, monkeypatch, what):
    example = models.example("direct_maternal")
    equations = equations_of(example)
    expected = run(HybridEngine(equations, threads=1), example, 12)
    without(monkeypatch, what)
    engine = HybridEngine(equations, device=FakeDevice(folder, 1))
    engine.updates.r[0][:] = 0.0
    assert not identical(run(engine, example, 12), expected)


@pytest.mark.parametrize("ordered", [True, False])
def test_a_buffer_holds_its_block_until_the_kernel_has_read_it(folder, monkeypatch, ordered):
    """The copy into a buffer waits for the last kernel that reads it."""
    example = models.example("fixed_covariates")
    equations = equations_of(example, "equal")
    with pytest.warns(RuntimeWarning):
        engine = HybridEngine(equations, device=FakeDevice(folder, 1, too_small_for(equations, folder)))
    updates, right = engine.updates, []

    def launch(k, i, block_slice, lists):
        there = list(zip(lists, block_slice.host.lists, strict=True))
        updates.streams[k].queue(lambda: right.append(all(np.array_equal(a, b) for a, b in there)))

    monkeypatch.setattr(updates, "_launch", launch)
    if not ordered:
        monkeypatch.setattr(updates._copying, "wait_event", lambda event: None)
    run(engine, example, 12)
    assert len(right) > 100
    assert all(right) == ordered


@pytest.mark.parametrize("kind", ["colour", "term"])
@pytest.mark.parametrize("precision", first(1, ["double", "single"]))
def test_memory_is_counted_from_below(kind, precision):
    """The matrix by the elements of an explicit C outside the diagonal blocks; vectors as they are allocated."""
    for name in ("univariate_animal", "direct_maternal", "fixed_covariates"):
        example = models.example(name)
        equations = equations_of(example, kind, precision)
        engine = HybridEngine(equations, threads=1)
        assert vector_bytes(equations) == sum(2 * b.nbytes + x.nbytes for b, x in zip(engine.b, engine.x, strict=True))
        slices = [s for of_pair in engine.row_blocks.slices.values() for s in of_pair]
        elements = sum(s.lists.indices.nbytes + s.lists.number.nbytes for s in slices)
        held = engine.row_blocks.bytes_off_diagonal
        assert 0 < matrix_bytes(equations) <= elements < held < 8 * matrix_bytes(equations), name
        if name == "univariate_animal":  # one component: a number for each element of C
            assert matrix_bytes(equations) == elements
