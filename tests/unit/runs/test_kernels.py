"""The first run compiles kernels on all cores and says so; later runs use them again."""

import io
import subprocess

import numpy as np
import pytest
from reference import models

from mmgibbs.engines.coloured.engine import StructuredEngine
from mmgibbs.engines.hybrid.engine import HybridEngine
from mmgibbs.engines.serial import SerialEngine
from mmgibbs.equations.partition import partition
from mmgibbs.equations.structured import structured_equations
from mmgibbs.machine import kernel_cache
from mmgibbs.model.covariance import CovarianceModel, blocks_recorded_together, full_block
from mmgibbs.model.residual import ResidualModel
from mmgibbs.runs import kernels
from mmgibbs.runs.progress import Console
from mmgibbs.sampler.interweave import terms_to_interweave
from mmgibbs.sampler.kernels import PARTS, any_effects, compile_part, parts_of_sweep, take_any_effects
from mmgibbs.sampler.mixed_model import MixedModel
from mmgibbs.sampler.schedule import Schedule
from mmgibbs.sampler.steps import gibbs_steps

KEY = (1, 0)


class Beside:
    """In place of another process."""

    def __init__(self, command, **how):
        self.command, self.how, self.ended = command, how, []
        Beside.last = self

    def terminate(self):
        self.ended.append("terminated")

    def wait(self):
        self.ended.append("waited for")


@pytest.fixture
def fresh(monkeypatch, tmp_path):
    """A folder without kernels."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(kernels, "cores", lambda: 2)
    monkeypatch.setattr(subprocess, "Popen", Beside)
    Beside.last = None
    return tmp_path


def said(sampled=True):
    stream, Beside.last = io.StringIO(), None
    with kernels.compiling_beside(Console(stream=stream), sampled):
        started = Beside.last
        assert started is None or not started.ended
    return stream.getvalue(), started


def test_a_first_run_says_that_it_compiles_and_has_help(fresh):
    text, beside = said()
    assert text == kernels.SAID + "\n"
    assert beside.command[-1].endswith("kernels.compile_draws()") and beside.ended == ["terminated", "waited for"]


def test_nothing_is_said_where_kernels_have_been_kept(fresh):
    (fresh / "pedigree").mkdir()
    (fresh / "pedigree" / "scan.1.nbc").touch()  # as `mmgibbs check` leaves it
    assert said(sampled=False) == ("", None) and kernel_cache.kernels_are_kept()
    assert said()[0] == kernels.SAID + "\n"
    (fresh / "draws").mkdir()
    (fresh / "draws" / "12.inverse_wishart.draw_inverse_wishart-15.py311.1.nbc").touch()
    assert said() == ("", None)


def test_the_kernel_looked_for_is_one():
    from mmgibbs.draws.inverse_wishart import draw_inverse_wishart

    assert draw_inverse_wishart.py_func.__name__ == kernels.ONLY_SAMPLED


@pytest.mark.parametrize("components", [1, 4, 12])
def test_matrices_can_be_drawn_given_the_effects_that_a_part_begins_with(components):
    """Otherwise a part would end at the first matrix, and each chain would compile the rest."""
    effects = any_effects(60, components)
    assert np.linalg.eigvalsh(effects.T @ effects / 60).min() > 0.1


def test_no_process_where_it_would_not_help(fresh, monkeypatch):
    assert said(sampled=False) == (kernels.SAID + "\n", None)
    monkeypatch.setattr(kernels, "cores", lambda: 1)
    assert said() == (kernels.SAID + "\n", None)


def test_the_process_is_ended_where_a_run_fails(fresh):
    with pytest.raises(ZeroDivisionError), kernels.compiling_beside(Console(False), True):
        raise ZeroDivisionError
    assert Beside.last.ended == ["terminated", "waited for"]


def test_draws_compiled_beside_are_those_that_a_sweep_calls():
    """After a sweep every kernel is there for just the arrays that compile_draws brings: nothing is compiled anew."""
    from mmgibbs.draws.inverse_wishart import draw_inverse_wishart
    from mmgibbs.engines.augment import _augmentation
    from mmgibbs.model.design import _invert_observed
    from mmgibbs.posterior.moments import _add_draw
    from mmgibbs.sampler.interweave import _draw_scaling

    model, engine, schedule = sampled_example()
    for part in range(parts_of_sweep(model)):
        compile_part(model, engine, schedule, KEY, part)
    used = (draw_inverse_wishart, _draw_scaling, _augmentation, _invert_observed, _add_draw)
    before = [set(kernel.signatures) for kernel in used]
    kernels.compile_draws()
    assert all(before) and [set(kernel.signatures) for kernel in used] == before


@pytest.mark.parametrize("make", [SerialEngine, StructuredEngine, HybridEngine])
@pytest.mark.parametrize("precision", ["double", "single"])
@pytest.mark.parametrize("follow", [True, False])
def test_a_part_begins_with_any_effects(make, precision, follow):
    """And with residuals of these, or those of before, where the engine keeps them."""
    design = models.example("bivariate_missing").design
    engine = make(structured_equations(design, partition(design, "colour"), precision))
    take_any_effects(engine, follow)
    assert all(np.ptp(theta) > 0.5 for theta in engine.theta)
    e, kept = engine.e.copy(), engine.e
    engine.refresh()
    anew = engine.e.copy()
    engine.start()
    followed = follow or not engine.keeps_residuals
    assert np.array_equal(e, anew if followed else engine.e) and not np.array_equal(anew, engine.e)
    assert kept.dtype == engine.equations.real


@pytest.mark.parametrize("value", [1.5, np.nan])
def test_residuals_follow_a_single_effect(value):
    """Terms whose effects are all 0 move no residual, and are passed over."""
    design = models.example("bivariate_missing").design
    engine = SerialEngine(structured_equations(design, partition(design, "colour")))
    before, theta = engine.e.copy(), [np.zeros((t.n_levels, t.n_components)) for t in design.terms]
    theta[0][int(engine.equations.terms[0].code[-1]), 0] = value
    engine.start(theta)
    moved = ~(engine.e == before)
    lists = engine.equations.terms[0]
    met = lists.visit_record[int(lists.visit_ptr[-2]) :]
    assert set(np.flatnonzero(moved.any(axis=1))) == set(met.tolist()) and met.size


def test_every_step_is_of_one_part():
    model, engine, schedule = sampled_example()
    steps = gibbs_steps(model, engine, schedule, KEY)
    assert all(sum(isinstance(step, part) for part in PARTS) == 1 for step in steps)
    assert parts_of_sweep(model) == len(PARTS)


def sampled_example():
    example = models.example("bivariate_missing")
    design = example.design
    covariances = tuple(None if g is None else CovarianceModel(g, False, full_block(len(g))) for g in example.G)
    residual = ResidualModel((CovarianceModel(example.R, False, blocks_recorded_together(design.patterns)),))
    model = MixedModel(design, covariances, residual)
    engine = SerialEngine(structured_equations(design, partition(design, "term")))
    assert np.isfinite(design.y).any()
    return model, engine, Schedule(5, 10, interweave=terms_to_interweave(model))
