"""Work on the workers of a Dask cluster, to the same results as on one machine.

with connect("tcp://10.0.0.5:8786", print) as cluster:     # or 'local:2': two workers on this machine
    where = cluster.executor(print)
    run_chains(model, equations, choice, schedule, seed, executor=executor)       # see parallel.Where
    executor.each(function, shared, calls)

workers.py    which workers there are, what each of them holds, and how it is found out that one is lost
walks.py      chains, which advance, are kept in checkpoints and go on from them
tasks.py      calls of a function: folds, replicates, solutions; one whose worker is lost is made again
"""

from __future__ import annotations

__all__ = ["connect"]

from mmgibbs.runs.cluster.workers import connect
