"""When which update of a right-hand side may run: the order of Golden, Lupo & Garrick, for worker threads and CUDA
streams alike.

    r_k = b_k - sum_{i != k} A_ki x_i       whenever block k is consumed, so that the chain is the serial Gibbs chain of
    the same order

Each target block k has one queue, run in order, so r_k has one writer and its updates one order, whoever runs them and
when:

    reset r_k = b_k, then the sources i = k + 1, ..., n of this sweep, then i = 1, ..., k - 1 of the next

`prime` queues the same: at the start, on resume and after every change of the variances r holds products with other
coefficients or none.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol


class Queues(Protocol):
    """A queue for each target block."""

    def publish_effects(self, i: int) -> None:
        """x_i has new values: updates queued from now on read them."""

    def reset(self, k: int) -> None:
        """Queue r_k = b_k."""

    def subtract(self, k: int, i: int) -> None:
        """Queue r_k -= A_ki x_i."""

    def wait(self, k: int) -> None:
        """Return when all that was queued for block k is done and r_k can be read here."""

    def discard(self) -> None:
        """Forget what is queued; return when nothing runs."""


class UpdateOrder:
    """The queue of every target block is filled here and nowhere else."""

    def __init__(self, n_blocks: int, pairs: Collection[tuple[int, int]], queues: Queues):
        self.n_blocks, self.queues = n_blocks, queues
        self.sources = [sorted(i for k, i in pairs if k == target) for target in range(n_blocks)]
        targets = [sorted(k for k, i in pairs if i == source) for source in range(n_blocks)]
        # The block that is sampled next is updated first.
        self.onward = [[k for k in of if k > i] for i, of in enumerate(targets)]
        self.backward = [[k for k in of if k < i] for i, of in enumerate(targets)]

    def prime(self) -> None:
        """r_k = b_k - sum_{i > k} A_ki x_i for every block, early blocks first; what was queued is forgotten."""
        self.queues.discard()
        for i in range(self.n_blocks):
            self.queues.publish_effects(i)
        for k in range(self.n_blocks):
            self.queues.reset(k)
            for i in self.sources[k]:
                if i > k:
                    self.queues.subtract(k, i)

    def consume(self, k: int) -> None:
        """Wait for r_k."""
        self.queues.wait(k)

    def release(self, i: int, for_next_sweep: bool = True) -> None:
        """Block i was consumed and x_i drawn: reset r_i before any later block subtracts from it, then subtract from
        the others.

        for_next_sweep=False leaves out the blocks before i: for a sweep after which `prime` follows anyway."""
        self.queues.reset(i)
        self.queues.publish_effects(i)
        for k in self.onward[i]:
            self.queues.subtract(k, i)
        if for_next_sweep:
            for k in self.backward[i]:
                self.queues.subtract(k, i)
