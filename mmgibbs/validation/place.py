"""Who does the work of a validation: threads of this process, or the workers of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from mmgibbs.build.memory_estimate import solutions_that_fit
from mmgibbs.config import Analysis
from mmgibbs.machine.threads import cores
from mmgibbs.model.design import Design
from mmgibbs.runs.chains import Executor
from mmgibbs.runs.local import LocalExecutor
from mmgibbs.validation.plan import SAMPLE, Plan

# On two cores, maternal model of 100,000 animals, 202,065 equations
EVALUATED = 4.1e-6  # seconds of one evaluation for an equation: 0.83 s measured
STARTED = 4.0  # seconds to start workers of this machine, to load the program, to end them: measured step by step
ONE_AT_A_TIME = 0.15  # of an evaluation, what threads of one process cannot do side by side: assumed (above 6)


@dataclass(frozen=True)
class Work:
    """What is to be done for one analysis."""

    analysis: Analysis
    design: Design
    plan: Plan
    folds: int  # as the data have them; 0: none are left out

    @property
    def by_blup(self) -> bool:
        return not sampled(self.design, self.plan)

    @property
    def evaluations(self) -> int:
        return max(1, self.folds)

    @property
    def with_matrices(self) -> bool:
        """A relationship has a dense matrix, which every fold makes anew."""
        return any(t.relationship.dense is not None for t in self.design.terms)


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
def place_of_work(cluster: str | None, works: Sequence[Work], say: Callable[[str], None]) -> Iterator[list[Executor]]:
    """Yields who does the work of each validation.

    cluster: as the user gave it; 'local:N' is N threads of this process where starting N processes would take longer
    than they save. Without one, `sampler.threads` of each.
    """
    if cluster is None:
        yield [_on_threads(w, w.analysis.sampler.threads or 1, say) if w.by_blup else LocalExecutor() for w in works]
        return
    from mmgibbs.runs.cluster import ClusterExecutor, connect
    from mmgibbs.runs.cluster.workers import count_local_workers

    here = count_local_workers(cluster)
    if here and all(w.by_blup and not workers_pay(here, w.design.n_equations, w.evaluations) for w in works):
        at_once = min(here, cores())
        say(
            f"cluster {cluster}: {at_once} {'threads' if at_once > 1 else 'thread'} of this process, as starting "
            "workers would take longer than they save"
        )
        yield [_on_threads(w, at_once, say) for w in works]
        return
    with connect(cluster, say) as workers:
        yield [ClusterExecutor(workers, say) for _ in works]


def _on_threads(work: Work, threads: int, say: Callable[[str], None]) -> LocalExecutor:
    """So many, or as many evaluations by BLUP as memory has room for.

    One where relationships have dense matrices: BLAS shares these out over all cores as it is. Side by side each would
    have to make its own with one thread of BLAS, in which the sums run in another order.
    """
    if threads > 1 and work.with_matrices:
        say(f"{work.analysis.name}: one fold at a time, as each makes matrices of relationships, on all cores")
        return LocalExecutor(1, say)
    wanted = min(threads, work.evaluations)
    fit = solutions_that_fit(work.design, work.analysis.sampler.precision, wanted)
    if fit < wanted:
        say(
            f"{work.analysis.name}: {fit} in place of {wanted} folds at once, as no more of "
            f"{work.design.n_equations:,} equations fit into the memory that is free"
        )
        return LocalExecutor(fit, say)
    return LocalExecutor(threads, say)
