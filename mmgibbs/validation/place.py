"""Who does the work of a validation: threads of this process, or the workers of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from mmgibbs.machine.threads import cores
from mmgibbs.model.design import Design
from mmgibbs.runs.chains import Executor
from mmgibbs.runs.local import LocalExecutor
from mmgibbs.validation.plan import SAMPLE, Plan

# On two cores, maternal model of 100,000 animals, 202,065 equations
EVALUATED = 4.1e-6  # seconds of one evaluation for an equation: 0.83 s measured
STARTED = 4.0  # seconds to start workers of this machine, to load the program, to end them: measured step by step
ONE_AT_A_TIME = 0.15  # of an evaluation, what threads of one process cannot do side by side: assumed (above 6)


def sampled(design: Design, plan: Plan) -> bool:
    """Chains, not solutions of BLUP, are what takes time."""
    return bool(design.responses or design.markers or plan.variances == SAMPLE)


def workers_pay(workers: int, equations: int, evaluations: int) -> bool:
    """Processes on this machine save more than it takes to start them, beside as many threads.

    equations: of an evaluation by BLUP. Counts decide, not the clock, so that the same command does the same again.
    """
    on_threads = max(1 / workers, ONE_AT_A_TIME)
    return EVALUATED * equations * evaluations * (on_threads - 1 / workers) > STARTED


@contextmanager
def place_of_work(
    cluster: str | None, validated: Sequence[tuple[Design, Plan]], threads: int | None, say: Callable[[str], None]
) -> Iterator[Executor]:
    """Yields who does the work of one validation or of several.

    cluster: as the user gave it; 'local:N' is N threads of this process where starting N processes would take longer
    than they save. validated: design and plan of each; threads: `sampler.threads` of the first.
    """
    by_blup = not any(sampled(design, plan) for design, plan in validated)
    if cluster is None:
        yield LocalExecutor(threads or 1) if by_blup else LocalExecutor()
        return
    from mmgibbs.runs.cluster import ClusterExecutor, connect  # and Dask with it
    from mmgibbs.runs.cluster.workers import workers_here

    here = workers_here(cluster)
    if here and by_blup and not any(workers_pay(here, d.n_equations, p.folds or 1) for d, p in validated):
        at_once = min(here, cores())
        say(
            f"cluster {cluster}: {at_once} {'threads' if at_once > 1 else 'thread'} of this process, as starting "
            "workers would take longer than they save"
        )
        yield LocalExecutor(at_once)
        return
    with connect(cluster, say) as workers:
        yield ClusterExecutor(workers, say)
