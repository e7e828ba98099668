"""Chains that share a GPU, each in a thread of this process.

A chain has a stream of its own, so that the device works on all of them at once: while one waits for memory, or for a
draw that a single thread makes, the others go on. What they only read is on the device once (machine/shared_arrays.py).
Each has the draws, and the checkpoint, that it would have alone.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed

from mmgibbs.errors import submit_in_context
from mmgibbs.runs.chains import Job, advance_chain, start_chain
from mmgibbs.sampler.loop import ResumableChain


def advance_side_by_side(job: Job, at_once: int, until: int) -> list:
    """Results of all chains up to a sweep, `at_once` of them at a time; None of those that were stopped before."""
    chains = range(len(job.names))
    groups = [chains[first : first + at_once] for first in range(0, len(chains), at_once)]
    return [result for group in groups for result in _advance_group(job, group, until)]


def _advance_group(job: Job, chains: Sequence[int], until: int) -> list:
    """Where a chain fails the others end after their sweep, and its error is raised."""
    if job.progress.asked_to_stop:
        return [None for _ in chains]
    started: list[ResumableChain] = []  # one after another: the first uploads what the others read
    for chain in chains:
        started.append(start_chain(job, chain, started[0] if started else None))
    failed = threading.Event()
    with ThreadPoolExecutor(len(chains)) as pool:
        running = [
            submit_in_context(pool, advance_chain, job, chain, of, until, failed.is_set)
            for chain, of in zip(chains, started, strict=True)
        ]
        for ended in as_completed(running):
            if ended.exception() is not None:
                failed.set()
    return [advanced.result() for advanced in running]
