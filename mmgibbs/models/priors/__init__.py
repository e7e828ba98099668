"""Priors of variances and covariance matrices.

To add one, write its class in a file of its own and list the class in `KINDS`. The reference of keys has the priors in
this order.
"""

from collections.abc import Collection, Mapping
from typing import Any

from mmgibbs.models.priors.base import CovariancePrior
from mmgibbs.models.priors.flat import Flat
from mmgibbs.models.priors.half_t import HalfT
from mmgibbs.models.priors.inverse_wishart import InverseWishart
from mmgibbs.models.priors.uniform_heritability import UniformHeritability

# The first is that of a section without the key of another one.
KINDS: tuple[type[CovariancePrior], ...] = (InverseWishart, UniformHeritability, HalfT)
PRIORS = {kind.key: kind for kind in KINDS}  # by the key that tells it from others in an analysis file
FLAT = Flat()
# Sections of proper priors where the file says nothing and the data do not limit a variance: of one, of several.
PROPER_OF_ONE: Mapping[str, Any] = {"h2": "uniform"}
PROPER: Mapping[str, Any] = {"half_t": {"df": 2}}


def find_prior(keys: Collection[str]) -> type[CovariancePrior]:
    """Find the prior of a section of these keys."""
    first, *others = KINDS
    return next((kind for kind in others if kind.key in keys), first)
