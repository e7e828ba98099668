"""The workers of a cluster as an executor."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager

from mmgibbs.runs.chains import Advance, Job
from mmgibbs.runs.cluster.chains import spread
from mmgibbs.runs.cluster.tasks import each
from mmgibbs.runs.cluster.workers import Cluster


class ClusterExecutor:
    """The workers of a cluster for one run or validation, and what is to be said of it: see runs.chains.Executor."""

    def __init__(self, cluster: Cluster, say: Callable[[str], None]):
        self.cluster, self._say = cluster, say
        self.happened: list[str] = []
        self.worker_peaks: dict[str, int] = {}

    def tell(self, text: str) -> None:
        self.happened.append(text)
        self._say(text)

    @property
    def facts(self) -> dict:
        """Facts for run.json."""
        return {
            "cluster": {
                "address": self.cluster.address,
                "workers": self.cluster.first_workers,
                "happened": self.happened,
            }
        }

    @property
    def max_local_calls(self) -> int:
        return self.cluster.threads if self.cluster.local else 0

    def chains(self, job: Job) -> AbstractContextManager[Advance]:
        return spread(self.cluster, job, self.tell, self.worker_peaks)

    def each(self, function: Callable, shared: tuple, calls: Sequence[tuple], names: Sequence[str]) -> Generator:
        return each(self.cluster, function, shared, calls, names, self.tell, self.worker_peaks)
