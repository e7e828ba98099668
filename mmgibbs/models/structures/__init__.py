"""Structured covariance matrices: G as a function of fewer parameters than it has elements.

To add a kind, write its class in a file of its own and list the class in `KINDS`. The reference of keys has the kinds
in this order.
"""

from mmgibbs.models.structures.antedependence import Antedependence
from mmgibbs.models.structures.base import Structure
from mmgibbs.models.structures.correlated import Autoregressive, CompoundSymmetry
from mmgibbs.models.structures.factor_analytic import FactorAnalytic
from mmgibbs.models.structures.reduced_rank import ReducedRank
from mmgibbs.models.structures.unstructured import Diagonal, Unstructured

KINDS = (Unstructured, Diagonal, FactorAnalytic, ReducedRank, CompoundSymmetry, Autoregressive, Antedependence)
STRUCTURES: dict[str, type[Structure]] = {
    structure.kind: structure for structure in KINDS
}  # by the word in an analysis file
