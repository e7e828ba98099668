"""First runs: one of them compiles kernels and says so; later runs and other processes use them."""

import io
import shutil
import sys

import numpy as np
import pytest
from numba.extending import is_jitted
from reference import models

from mmgibbs.engines.choice import EngineChoice
from mmgibbs.equations.partition import partition
from mmgibbs.equations.structured import structured_equations
from mmgibbs.machine.compiling import compiling_message
from mmgibbs.models.covariance import CovarianceModel, blocks_recorded_together, full_block
from mmgibbs.models.residual import ResidualModel
from mmgibbs.pedigree.kernel_store import KernelStore
from mmgibbs.runs import first_run
from mmgibbs.runs.mixed_model_chains import MixedModelFactory
from mmgibbs.runs.progress import Console
from mmgibbs.sampler.interweave import terms_to_interweave
from mmgibbs.sampler.mixed_model import MixedModel
from mmgibbs.sampler.schedule import Schedule


@pytest.fixture
def store(tmp_path, monkeypatch):
    """An empty store in place of that of this process."""
    made = KernelStore("mmgibbs-kernels-of-a-test", [tmp_path])
    for module in (first_run, first_run.compiling_message.__globals__):
        monkeypatch.setitem(module if isinstance(module, dict) else vars(module), "kernel_store", lambda: made)
    yield made
    shutil.rmtree(made.folder, ignore_errors=True)


def said(is_sampled=True):
    stream = io.StringIO()
    with first_run.first_run(Console(stream=stream), is_sampled):
        pass
    return stream.getvalue()


def compiled(store, name):
    (store.folder / "draws").mkdir(exist_ok=True)
    (store.folder / "draws" / f"{name}-1.py311.nbi").write_bytes(b"index")
    store.save()


def test_a_first_run_says_that_it_compiles(store):
    assert said() == said(is_sampled=False) == compiling_message() + "\n"


def test_nothing_is_said_where_kernels_are_kept(store):
    compiled(store, "scan")  # as `mmgibbs check` leaves it
    assert said(is_sampled=False) == "" and said() == compiling_message() + "\n"
    compiled(store, f"inverse_wishart.{first_run.SAMPLED_ONLY}")
    assert said() == ""


def test_the_kernel_looked_for_is_one():
    from mmgibbs.draws.inverse_wishart import draw_inverse_wishart

    assert draw_inverse_wishart.py_func.__name__ == first_run.SAMPLED_ONLY


def kernels():
    return {
        value
        for name, module in list(sys.modules.items())
        if name.split(".")[0] == "mmgibbs"
        for value in vars(module).values()
        if is_jitted(value)
    }


@pytest.mark.parametrize("engine", ["serial", "structured", "hybrid"])
def test_chains_find_every_kernel_compiled(engine):
    """Whatever steps a model has: no kernel, and no further form of one, is compiled by a chain afterwards."""
    example = models.example("bivariate_missing")
    design = example.design
    covariances = tuple(None if g is None else CovarianceModel(g, False, full_block(len(g))) for g in example.G)
    residual = ResidualModel((CovarianceModel(example.R, False, blocks_recorded_together(design.patterns)),))
    model = MixedModel(design, covariances, residual)
    equations = structured_equations(design, partition(design, "colour"))
    schedule = Schedule(2, 6, thin=2, interweave=terms_to_interweave(model))
    factory = MixedModelFactory(model, equations, EngineChoice(engine), schedule, 1)
    factory.compile_kernels()
    before = {k: set(k.signatures) for k in kernels()}
    assert sum(map(bool, before.values())) > 10
    chain = factory.start(0, None)
    chain.advance(schedule.n_sweeps)
    assert np.isfinite(chain.draws()["R"]).all()
    assert {k.__name__: set(k.signatures) - before.get(k, set()) for k in kernels() if k.signatures} == {
        k.__name__: set() for k in kernels() if k.signatures
    }
