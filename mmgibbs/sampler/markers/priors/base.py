"""What a prior of SNP effects is: the conditional prior of each effect now, and the draw of what that depends on.

Two forms of conditional serve every prior: a normal for each effect, or a mixture of normals with a class of exact
zeros. A new prior is a class of this kind in a file of its own and a line in the registry (`priors/__init__.py`), or an
entry point in the group `mmgibbs.marker_priors`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from mmgibbs.model.covariance import CovarianceModel
from mmgibbs.posterior.parameters import Parameter


@dataclass(frozen=True)
class Normals:
    """a_j ~ N(0, variance_j)."""

    variance: np.ndarray  # (p,)


@dataclass(frozen=True)
class Mixture:
    """a_j is 0 in class 0, N(0, variance_kj) in class k with probability exp(log_share_k)."""

    variance: np.ndarray  # (K, p), or (K, 1) where it is the same for every SNP; row 0 is 0
    log_share: np.ndarray  # (K,)


@dataclass(frozen=True)
class Effects:
    """The effects of a term as they are now."""

    a: np.ndarray  # (p,)
    of_class: np.ndarray  # (p,) int8: 0 is an effect of exactly 0; 1 of every SNP where there are no classes


@dataclass(frozen=True)
class Site:
    """Where the random numbers of a term come from."""

    term: int  # its number among all terms that draw
    level: np.ndarray  # (p,) uint64 number of each SNP in its file
    key: tuple[int, int]  # (seed, chain)


class MarkerPrior(Protocol):
    """The prior of the effects of one term in one chain."""

    @property
    def n_classes(self) -> int:
        """Of a mixture; 1 else."""

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """Names and dimensions of `draws`."""

    @property
    def common(self) -> CovarianceModel | None:
        """Prior of the variance that scales all effects, where there is one that is sampled."""

    def conditional(self) -> Normals | Mixture: ...

    def update(self, effects: Effects, number: int) -> None:
        """Draw what the conditional depends on, given the effects."""

    def rescale(self, square: float) -> None:
        """The common variance goes to `square` times itself, the effects with it."""

    @property
    def variance(self) -> float:
        """The common variance, or what represents it in a report."""

    def draws(self) -> dict[str, np.ndarray]: ...

    def state(self) -> dict[str, np.ndarray]:
        """What the next sweep depends on."""

    def restore(self, state: dict[str, np.ndarray]) -> None: ...
