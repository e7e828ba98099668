"""A sweep that a device makes alone: the steps launch kernels, once, and what they launched is repeated as a graph.

Nothing waits for it. The matrices are brought over for a checkpoint and for steps of kept sweeps, kept draws many at a
time by way of a ring (machine/ring.py). Where the residuals are to be computed anew the sweep is two graphs, with that
between.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from mmgibbs.engines.base import Engine
from mmgibbs.engines.device_sweep import DeviceVariances, VariancePlan, auxiliary_name
from mmgibbs.models.covariance import CovarianceModel
from mmgibbs.models.residual import stack_classes
from mmgibbs.posterior.draw_names import RESIDUAL
from mmgibbs.posterior.parameters import Parameter
from mmgibbs.sampler.covariances import CovarianceMatrices, refuse_lost_matrix
from mmgibbs.sampler.interweave import Interweaving
from mmgibbs.sampler.liabilities import LiabilityStep
from mmgibbs.sampler.locations import Locations
from mmgibbs.sampler.mixed_model import MixedModel
from mmgibbs.sampler.schedule import Schedule

CHECK_EVERY = 100  # sweeps between two looks for what could not be drawn


@runtime_checkable
class DeviceStep(Protocol):
    """A step that a device can make.

    `can_launch`: whether it can for this model; `add_to_plan(plan)`: say what is drawn; `launch(variances)`: queue the
    kernels, the same every time.
    """

    can_launch: bool

    def add_to_plan(self, plan: VariancePlan) -> None: ...

    def launch(self, variances: DeviceVariances) -> None: ...


class KeptDraw(NamedTuple):
    """A kept draw as it is stored in the ring."""

    draws: dict[str, np.ndarray]
    facts: dict[str, float]


class ResidentSweep:
    """The steps of a sweep on the device of the engine; key = (seed, chain). It speaks for them: see steps.Step."""

    def __init__(
        self,
        model: MixedModel,
        engine: Any,
        steps: Sequence[Any],
        matrices: CovarianceMatrices,
        schedule: Schedule,
        key: tuple[int, int],
    ):
        self.model, self.engine, self.steps, self.matrices, self.key = model, engine, list(steps), matrices, key
        self.refresh_every = schedule.refresh_every
        self.parameters: dict[str, Parameter] = {n: p for step in steps for n, p in step.parameters.items()}
        plan = VariancePlan(model.residual, schedule.burn_in, schedule.thin)
        for step in steps:
            step.add_to_plan(plan)
        self.variances: DeviceVariances = engine.make_variances(plan)
        self._n_first = next(i for i, step in enumerate(steps) if isinstance(step, Locations)) + 1
        self._next: int | None = None  # sweep for which the device is ready
        self._is_host_behind = False  # the device has drawn what the steps have not

    def __call__(self, number: int) -> None:
        """Queue sweep `number`."""
        if self.matrices.changed or self._next != number:
            self.bring_over()
            values = self._list_values()
            self.matrices.give(self.engine)
            self.variances.load(values, number, self.key)
        if number % self.refresh_every:
            self.variances.repeat("whole sweep", self._launch_all)
        else:
            self.variances.repeat("locations", self._launch_locations)
            self.engine.refresh()
            self.variances.repeat("variances", self._launch_variances)
        self._next = number + 1
        self._is_host_behind = True
        if number % CHECK_EVERY == 0:
            self._refuse_lost()

    def bring_over(self) -> None:
        """Give the steps what the device drew, unless they have it: waits."""
        if not self._is_host_behind:
            return
        self._refuse_lost()
        values = self.variances.read()
        names = [of.matrix for of in self.variances.plan.auxiliaries]
        auxiliaries = {name: values[auxiliary_name(name)].copy() for name in names}
        self.matrices.put_drawn(self._name_matrices(values), auxiliaries)
        for step in self.steps:
            if isinstance(step, LiabilityStep):
                step.put_drawn(values)
        self._is_host_behind = False

    def count_kept(self) -> None:
        """Note that the draw of this sweep is kept."""
        self.variances.ring.count()

    def take_kept(self) -> list[KeptDraw]:
        """Wait for the sweeps that were queued; the kept draws that were not taken before."""
        return [self._make_kept(self.variances.split(values)) for values in self.variances.ring.take()]

    def _make_kept(self, values: Mapping[str, np.ndarray]) -> KeptDraw:
        draws, facts = self._name_matrices(values), dict[str, float]()
        for step in self.steps:
            if isinstance(step, LiabilityStep):
                draws |= step.find_draws(values)
            if isinstance(step, LiabilityStep | Interweaving):
                facts |= step.find_facts(values)
        unsampled = {name: self.matrices[name] for name in self.parameters if name not in draws}
        return KeptDraw(draws | unsampled, facts)

    def draws(self) -> dict[str, np.ndarray]:
        """See steps.Step: waits for the device."""
        self.bring_over()
        return {name: values for step in self.steps for name, values in step.draws().items()}

    def state(self) -> dict[str, np.ndarray]:
        """See steps.Step: waits for the device."""
        self.bring_over()
        return {name: values for step in self.steps for name, values in step.state().items()}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Restore the state: see steps.Step."""
        for step in self.steps:
            step.restore(state)
        self._next, self._is_host_behind = None, False

    def _launch_all(self) -> None:
        self._launch_locations()
        self._launch_variances()

    def _launch_locations(self) -> None:
        """The steps up to that of the location effects."""
        for step in self.steps[: self._n_first]:
            step.launch(self.variances)

    def _launch_variances(self) -> None:
        for step in self.steps[self._n_first :]:
            step.launch(self.variances)
        self.variances.launch_end()

    def _list_values(self) -> dict[str, np.ndarray]:
        """List the host's copies of the values on the device."""
        values = dict(self.matrices.items()) | {RESIDUAL: stack_classes(self.matrices.R)}
        values |= {auxiliary_name(name): a for name, a in self.matrices.auxiliaries.items()}
        for step in self.steps:
            if isinstance(step, LiabilityStep):
                values |= step.list_values()
        return values

    def _name_matrices(self, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Copy the sampled matrices, and R, so that they may be kept."""
        R = values[RESIDUAL]
        matrices = {of.name: values[of.name].copy() for of in self.variances.plan.terms.values()}
        return matrices | {RESIDUAL: (R if self.model.residual.classes else R[0]).copy()}

    def _refuse_lost(self) -> None:
        """Wait for what was queued; ModelError where a matrix or a level could not be drawn."""
        lost = self.variances.find_lost()
        if lost is not None:
            refuse_lost_matrix(self._drawn_models[lost[1]], lost[0], self.key[1])
        self.engine.refuse_failed()

    @property
    def _drawn_models(self) -> list[CovarianceModel]:
        """Covariance models by the numbers of the matrices on the device."""
        terms = [self.model.covariance(term) for term in self.variances.plan.terms]
        return [*terms, *self.model.residual.matrices]


def join_steps(
    model: MixedModel,
    engine: Engine,
    steps: list[Any],
    matrices: CovarianceMatrices,
    schedule: Schedule,
    key: tuple[int, int],
) -> list[Any]:
    """Join the steps of a sweep to one.

    They are left as they are where the device of the engine cannot make all of them, or they draw locations alone.
    """
    if not hasattr(engine, "make_variances") or (model.all_fixed and not model.design.responses):
        return steps
    if not all(isinstance(step, DeviceStep) and step.can_launch for step in steps):
        return steps
    return [ResidentSweep(model, engine, steps, matrices, schedule, key)]
