"""Work on the workers of a Dask cluster, to the same results as on one machine.

with connect("tcp://10.0.0.5:8786", print) as cluster:     # or 'local:2': two workers on this machine
    executor = ClusterExecutor(cluster, print)              # see runs.chains.Executor
    run_chains(factory, executor)
    executor.each(function, shared, calls, names)

workers.py    which workers there are, what each of them holds, and how it is found out that one is lost
chains.py     chains, which advance, are kept in checkpoints and continue from them
tasks.py      calls of a function: folds, replicates, solutions; Dask makes one whose worker is lost again
executor.py   the two together
"""

from __future__ import annotations

__all__ = ["ClusterExecutor", "connect"]

from mmgibbs.runs.cluster.executor import ClusterExecutor
from mmgibbs.runs.cluster.workers import connect
