"""The contract of priors of covariance matrices.

A prior is an inverse Wishart, or one given auxiliary variables (`Mixture`). Each is one class in a file of its own,
listed in the registry of this package. The class names the keys that it takes from the analysis file, is built from
them, and has the words for it in reports. Everything that draws with it asks for its inverse Wishart or its mixture.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from mmgibbs.models.priors.log_density import LogDensity, block_sizes
from mmgibbs.models.priors.mixture import Mixture

MOST_NUMBERS = 8  # that reports list; of more they count the rest


class PriorContext(NamedTuple):
    """The matrix that a prior is built for."""

    where: str  # its key in messages: 'variances.animal.prior'
    labels: Sequence[str]  # of its components
    unit: np.ndarray  # (k,) bool: the residual variance of the component's trait is 1 by convention
    sd: np.ndarray  # (k,) phenotypic standard deviation of the component's trait


class CovariancePrior(ABC):
    """A prior of a covariance matrix; each subclass is one kind, an instance has its numbers."""

    key: ClassVar[str]  # of the analysis file: where it is in a section, the section is of this prior
    keys: ClassVar[type]  # all keys of the section, a dataclass (see keys.py); its docstring is in the reference
    form: ClassVar[str]  # the section in the reference of keys, as '{half_t: {df, scale}}'
    short_form: ClassVar[str]  # the section in messages, as '{half_t: {}}'
    suits_residuals: ClassVar[bool] = True  # False: it is of random effects alone
    suits_structures: ClassVar[bool] = False  # True: standard deviations are half-t(nu, A), as structures have them
    is_flat: ClassVar[bool] = False
    is_proper: ClassVar[bool] = False  # True: whatever its numbers are

    @classmethod
    def build(cls, keys: Any, context: PriorContext) -> Self:
        """Build the prior from its section, which has the attributes of `keys`. ConfigError where it does not suit."""
        raise NotImplementedError(f"{cls.__name__}: needed build, to be in an analysis file")

    @classmethod
    @abstractmethod
    def describe(cls, keys: Mapping[str, Any]) -> str:
        """Describe the prior of a section in a report: 'half-t prior of standard deviations with ...'."""

    @property
    def mixture(self) -> Mixture | None:
        """The inverse Wishart given auxiliary variables that it is; None: it is an inverse Wishart itself."""
        return None

    # ---------------------------------------------------------------- of an inverse Wishart IW(nu, S)

    def degrees(self, size: int) -> float:
        """Return nu of a block of this size."""
        raise NotImplementedError(f"{type(self).__name__} is an inverse Wishart given its auxiliary variables alone")

    def scale_matrix(self, k: int) -> np.ndarray:
        """Return S (k, k) of all blocks."""
        raise NotImplementedError(f"{type(self).__name__} is an inverse Wishart given its auxiliary variables alone")

    def log_density(self, blocks: Sequence[tuple[int, ...]]) -> LogDensity:
        """Return log p(G), the auxiliary variables of a mixture integrated out."""
        if self.mixture is not None:
            return self.mixture.log_density(blocks)
        sizes = block_sizes(blocks)
        given, scale, zeros = self.scale_matrix(len(sizes)), np.zeros((len(sizes), len(sizes))), np.zeros(len(sizes))
        for block in blocks:
            scale[np.ix_(block, block)] = given[np.ix_(block, block)]
        return LogDensity(np.array([self.degrees(int(k)) + k + 1.0 for k in sizes]), scale, zeros, zeros, zeros)


def describe_degrees(df: float, scale: Any) -> str:
    """'4 degrees of freedom and scale 0.8'; of a matrix its diagonal, of standard deviations one for each."""
    words = f"{df:g} degrees of freedom"
    values = np.asarray([] if scale is None else scale, float)
    if not values.size:
        return words
    numbers = np.diag(values) if values.ndim == 2 else values.ravel()
    if len(numbers) == 1:
        return f"{words} and scale {numbers[0]:g}"
    return f"{words} and {'a diagonal of the scale of' if values.ndim == 2 else 'scales'} {_listed(numbers)}"


def _listed(numbers: Iterable[float]) -> str:
    """'1, 2 and 3'; of many the first ones and the number of the others."""
    words = [f"{v:g}" for v in numbers]
    if len(words) > MOST_NUMBERS:
        words = [*words[: MOST_NUMBERS - 1], f"{len(words) - MOST_NUMBERS + 1} more"]
    return f"{', '.join(words[:-1])} and {words[-1]}"
