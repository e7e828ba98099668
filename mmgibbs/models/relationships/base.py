"""What every kind of relationship matrix K offers: K^-1 as an engine, a partition, a check and a report need it.

The levels of a random term have Theta ~ MN(0, K (x) G). A *kind* of K (independent levels, a pedigree, a pedigree with
unknown-parent groups, a user's inverse) is one class with all of its operations, and one file here. K itself is never
built; K^-1 = B' B is known by

    lists          the arrays from which compiled kernels read a row of K^-1, levels in sweep order
    inverse_csr    the rows themselves, for the explicit forms
    edges          which levels K^-1 joins, for colours and for counts
    dense          a block between chosen levels that K^-1 has beside the lists, as a matrix, or as products with it
                   (core.py); as a rule there is none
    noise          B' Z, what perturb-and-solve adds to the right-hand side
    draw           values of covariance K from independent normals, for simulated records
    times          products with K, for what the variances say of the records

K may have parameters of its own, such as correlations of neighbours. Its pattern stays, and its coefficients are
renewed: K^-1 = sum_m f_m(parameters) M_m with matrices M_m that do not change (see `parameters`).

The lists are a NamedTuple whose class brings its kernels (see `Lists`); several kinds may share one class of lists.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from mmgibbs.models.relationships.core import CoreBlock

UNKNOWN = np.uint32(0xFFFFFFFF)  # no such level
MAX_SHARE_OF_SPARSE = 0.1  # elements of K^-1 other than 0, beyond which it is factorised as a dense matrix


class Lists(Protocol):
    """K^-1 as compiled kernels see it: a NamedTuple of arrays (levels in sweep order) whose class has the kernels.

    The kernels are plain functions, compiled where equations/relationships.py calls them:

        weight(K, level)                    kappa_ll
        times_row(K, level, theta, out)     out = sum_m kappa_lm theta_m           (m = l included)
        quadratic(K, theta, out)            out = Theta' K^-1 Theta; where there is none, row by row
    """

    @staticmethod
    def weight(K: Any, level: int) -> float: ...

    @staticmethod
    def times_row(K: Any, level: int, theta: np.ndarray, out: np.ndarray) -> None: ...

    @staticmethod
    def cuda() -> str:
        """The structure of engines/kernels/level.cu that has the same fields in the same order."""

    def __iter__(self) -> Iterator[Any]: ...

    def _asdict(self) -> dict[str, Any]: ...

    @property
    def relative_ptr(self) -> np.ndarray | None:
        """Start of the list of relatives of each level, (q + 1,); None where levels have none."""

    def bytes_per_sweep(self, row: int) -> int:
        """Bytes that one sweep must read of the lists and of relatives' rows of Theta (`row` bytes each)."""


@dataclass(frozen=True)
class DenseBlock:
    """The part of K^-1 between m chosen levels that is no list: K^-1 = (what the lists say) + (values at these levels).

    Genomic relationships join every genotyped animal with every other. In a partition the chosen levels are a block of
    their own, which the engines sweep from the rows of `values` (engines/dense.py).
    """

    levels: np.ndarray  # (m,) int32, rising
    values: np.ndarray  # (m, m) symmetric, float64, or float32 to halve what a sweep reads

    def bytes(self, real: int) -> int:
        """Count the bytes of the values, with at most `real` bytes a number."""
        return self.values.size * min(real, self.values.itemsize)


class JointLevels(NamedTuple):
    """Levels that are drawn all at once, in words."""

    what: str  # 'splines'
    why: str  # 'their points have to be drawn all at once'
    instead: str  # what else the reader may do: 'relationship: random_walk'


class Weights(NamedTuple):
    """f(parameters) of the fixed matrices and log|K^-1|, with their derivatives by each of P parameters."""

    values: np.ndarray  # (M,)
    derivatives: np.ndarray  # (P, M)
    log_determinant: float
    log_determinant_derivatives: np.ndarray  # (P,)


class Relationship(ABC):
    """A kind of K for the q levels of a random term. Defaults here hold unless a kind overrides them.

    Abstract methods are those that every kind has; `fixed_matrices`, `weigh` and `renewed` those of a kind with
    parameters.
    """

    words: ClassVar[str]  # in run.json and what `mmgibbs check` prints: 'pedigree'
    symbol: ClassVar[str] = "K"  # in the model that the report writes, one of `mmgibbs.report.model_words.SYMBOLS` or I
    related: ClassVar[bool] = True  # levels are individuals, some of which are relatives: effects are breeding values
    of_pedigree: ClassVar[bool] = False  # levels are the animals of the pedigree, then any unknown-parent groups
    known_diagonal: ClassVar[bool] = True  # K's diagonal is known (1 + F with a pedigree), and so is reliability
    can_draw: ClassVar[bool] = True  # `draw` works: K is known by more than its inverse

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields alone.

        What was derived from them stays here: factors cannot be sent to another process, and matrices are made there
        sooner than they are sent.
        """
        return {f.name: getattr(self, f.name) for f in fields(self)} if is_dataclass(self) else self.__dict__

    @property
    def joint_levels(self) -> JointLevels | None:
        """Levels that determine each other so closely that they must be drawn all at once, not one after another."""
        return None

    @property
    def stiff_part(self) -> str:
        """Description of the part of K^-1 that keeps iterations from converging, or ''.

        Its elements differ in size by orders of magnitude. Solutions are those of a factor.
        """
        return ""

    @property
    def diagonal_operations(self) -> float:
        """Multiplications that the diagonal of K takes where it is not at hand."""
        return 0.0

    @property
    def sets_of_normals(self) -> int:
        """Number of normals that `noise` takes for each value that it returns."""
        return 1

    @property
    @abstractmethod
    def n_levels(self) -> int:
        """Number q of levels."""

    @property
    def n_groups(self) -> int:
        """Number of unknown-parent groups, which are the last levels."""
        return 0

    @property
    def groups_fixed(self) -> bool:
        """True if the unknown-parent groups have a flat prior."""
        return False

    def group_shares(self) -> np.ndarray:
        """Return the expected share of each group's genes, Q (q, groups) float32."""
        return np.zeros((self.n_levels, 0), np.float32)

    @property
    @abstractmethod
    def sentence(self) -> str:
        """Description for the report of how the levels are related."""

    @property
    def dense(self) -> DenseBlock | CoreBlock | None:
        """The part of K^-1 that is not in its lists."""
        return None

    @property
    def diagonal(self) -> np.ndarray | None:
        """Diagonal of K, (q,) float64; None where it is 1, or 1 + F of the pedigree, or unknown."""
        return None

    @property
    def prior_diagonal(self) -> np.ndarray | None:
        """Variances (q,) of the levels in units of that of the effect, which reliabilities compare with PEV."""
        return self.diagonal

    @property
    def facts(self) -> dict[str, Any]:
        """Plain numbers and words for run.json, beside what every kind says."""
        return {}

    @property
    def log_determinant(self) -> float | None:
        """log|K^-1| of the levels that have a variance; None where it takes a factor."""
        return None

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names (P,) of the parameters of K; () where it has none.

        A kind that has some brings all of what follows, and REML and the sampler estimate them.
        """
        return ()

    @property
    def parameter_values(self) -> np.ndarray:
        """Values (P,) of the parameters at which the coefficients of K^-1 are."""
        return np.zeros(0)

    @property
    def parameter_bounds(self) -> np.ndarray:
        """Smallest and largest value of each parameter, (P, 2), within -1 and 1.

        They bound a uniform prior, and estimates by atanh.
        """
        return np.zeros((0, 2))

    def place_usual(self, usual: np.ndarray) -> np.ndarray:
        """Return values (P,) within the bounds where correlations over the usual distance are these (P,)."""
        return usual

    @property
    def parameters_fixed(self) -> bool:
        """True if the parameters are given, not estimated."""
        return True

    @property
    def has_free_parameters(self) -> bool:
        """True if there are parameters, and they are estimated."""
        return bool(self.parameters) and not self.parameters_fixed

    @property
    def n_independent(self) -> int | None:
        """Number of independent sets of levels, such as trials; None if there are many.

        With few sets and a parameter at its upper bound, the variance is determined by the bound.
        """
        return None

    @property
    def fixed_matrices(self) -> csr_array:
        """Elements of the M_m in the order of those of `inverse_csr`, (nnz, M)."""
        raise NotImplementedError(f"{self.words}: K has no parameters")

    def weigh(self, parameters: np.ndarray) -> Weights:
        """f_m and log|K^-1| at other values of the parameters, with their derivatives."""
        raise NotImplementedError(f"{self.words}: K has no parameters")

    def renewed(self, parameters: np.ndarray) -> Self:
        """Return K at other values of the parameters: same pattern, new coefficients."""
        raise NotImplementedError(f"{self.words}: K has no parameters")

    @abstractmethod
    def lists(self, order: np.ndarray, real: np.dtype) -> Lists:
        """The kernels' view. order: (q,) model-order level at each sweep position; real: dtype of stored values."""

    @abstractmethod
    def list_bytes(self, real: int) -> int:
        """Bytes of `lists`, with `real` bytes a value, before they are made."""

    @abstractmethod
    def inverse_csr(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return K^-1 in CSR, both triangles.

        indptr (q + 1,) int64, indices (nnz,) int32 sorted in a row, values float64.
        """

    def lists_csr(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """K^-1 in CSR as `inverse_csr` has it, less the dense block."""
        return self.inverse_csr()

    def inverse_matrix(self) -> csr_array:
        """Return K^-1 (q, q)."""
        from scipy.sparse import csr_array

        indptr, indices, values = self.inverse_csr()
        return csr_array((values, indices, indptr), shape=(self.n_levels, self.n_levels))

    @abstractmethod
    def edges(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Pairs of levels (two arrays, -1: none) that the lists join, in parts; a pair may come more than once."""

    def nearest_relative(self) -> np.ndarray | None:
        """Return a relative that each level should be near in memory, (q,) int32 (-1: none); None: no better order."""
        return None

    @abstractmethod
    def noise(self, lists: Lists, code: np.ndarray, who: str) -> Callable[[np.ndarray], np.ndarray]:
        """The function Z -> B' Z, (q, k) in sweep order, with K^-1 = B' B: noise of covariance K^-1 from normals Z.

        Z is (q, k), or as many of these side by side as `sets_of_normals` says. code: (q,) model-order level at each
        sweep position. ModelError, which begins with `who`, where there is no B.
        """

    def draw(self, z: np.ndarray) -> np.ndarray:
        """Values of covariance K from independent normals z (q, m), levels in model order."""
        raise NotImplementedError(f"{self.words}: K is known by its inverse alone")

    def times(self, x: np.ndarray) -> np.ndarray:
        """K x, of x (q, m) in model order; fixed unknown-parent groups have no part in K: their rows are 0."""
        out, n = np.zeros(x.shape), self.n_levels - (self.n_groups if self.groups_fixed else 0)
        out[:n] = solve_inverse(self, np.arange(n), x[:n])
        return out

    def spread(self, levels: np.ndarray) -> float:
        """tr(V)/n - 1'V 1/n^2 for V the part of K of these n levels: the variance among them in units of sigma2_u.

        NaN where K is not known.
        """
        return np.nan

    def deviations(self, lists: Lists, parents_first: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """Return the part of Theta (q, k) that has the variance G: all but fixed groups and what comes from them.

        parents_first: (q,) sweep positions of the levels in model order.
        """
        return theta


def solve_inverse(relationship: Relationship, levels: np.ndarray, x: np.ndarray) -> np.ndarray:
    """P^-1 x, of x (m, c): P the part of K^-1 between these m levels, that of K where the other levels are 0.

    LinAlgError where P is not positive definite.
    """
    from scipy.linalg import cho_factor, cho_solve
    from scipy.sparse.linalg import splu

    inverse = relationship.inverse_matrix()
    P = inverse if levels.size == relationship.n_levels else inverse[levels][:, levels]
    if P.nnz > MAX_SHARE_OF_SPARSE * levels.size**2:
        return cho_solve(cho_factor(P.toarray(), lower=True), x)
    options = {"SymmetricMode": True}
    try:
        return splu(P.tocsc(), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options).solve(x)
    except RuntimeError as error:
        raise np.linalg.LinAlgError(str(error)) from error
