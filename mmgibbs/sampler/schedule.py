"""How long a chain runs, and what of it is kept."""

from __future__ import annotations

from dataclasses import dataclass

from mmgibbs.posterior.moments import batches_per_chain


@dataclass(frozen=True)
class Schedule:
    """Schedule of a chain: `burn_in` sweeps that are discarded, then `samples` sweeps of which every `thin`-th is kept.

    `most`: the sweeps after burn-in that there may be in the end, where targets or an extension decide; batches of the
    moments are planned for `samples`.
    `interweave`: the terms whose covariance matrix is redrawn given the standardised effects too (see
    interweave.terms_to_interweave).
    """

    burn_in: int
    samples: int
    thin: int = 1
    refresh_every: int = 1000
    chains: int = 1
    interweave: tuple[int, ...] = ()
    most: int = 0

    @property
    def n_sweeps(self) -> int:
        return self.burn_in + max(self.samples, self.most)

    @property
    def n_kept(self) -> int:
        return max(self.samples, self.most) // self.thin

    def keeps(self, number: int) -> bool:
        return number > self.burn_in and (number - self.burn_in) % self.thin == 0

    @property
    def planned_batches(self) -> tuple[int, int]:
        """Kept draws that a chain is planned to have, and their batches."""
        planned = self.samples // self.thin
        return planned, batches_per_chain(planned, self.chains)
