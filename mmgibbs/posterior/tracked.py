"""What is followed of the locations, draw by draw, without keeping their draws.

Moments of every level, draws of chosen levels, averages by birth year, ranks of candidates: each is one function of
Theta that is told of every kept draw. A new one is one file that speaks this protocol, and one line where the sampler
puts the list together (sampler/recorder.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np


class Theta(Protocol):
    """The locations of one kept draw on the user's scale. They are asked for, so that what nobody asks for stays on
    the device that holds it.
    """

    @property
    def parameters(self) -> Mapping[str, np.ndarray]:
        """Values that the steps drew beside theta, by name: covariance matrices, thresholds, ..."""

    def levels(self, term: int, codes: np.ndarray) -> np.ndarray:
        """Return chosen levels of a term, (levels, k) float64."""


class HostTheta(Theta, Protocol):
    """Locations that have been brought to the host."""

    def arrays(self) -> list[np.ndarray]:
        """Return theta, (q, k) float64 per term."""


class Tracked(Protocol):
    """Something that is followed over one chain."""

    def add(self, theta: Any) -> None:
        """Add one draw (a Theta)."""

    def state(self) -> dict[str, np.ndarray]:
        """Everything, as plain arrays (not copied): what a checkpoint stores."""

    def restore(self, state: dict[str, np.ndarray]) -> None: ...


Kept = TypeVar("Kept", bound="Pooled")


class Pooled(Tracked, Protocol):
    """A tracked quantity that can be pooled over chains."""

    def pool(self: Kept, further: Sequence[Kept]) -> Any:
        """Pool this chain with the others, ordered by chain number."""
