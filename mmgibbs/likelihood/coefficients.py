"""C on a pattern that holds for all variances, its factor, and the traces of C^-1 that derivatives ask for.

The pattern is that of every component and covariance that may be other than 0. Each stored element of the explicit
blocks (equations/explicit) knows its index in the factor (cholesky): new variances are written there, and elements
of C^-1 are read there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy
from scipy.sparse import csr_array

from mmgibbs.equations.base import layout, precisions
from mmgibbs.equations.explicit.csr import ExplicitEquations, explicit_equations
from mmgibbs.equations.explicit.unit_blocks import UnitBlock
from mmgibbs.errors import ModelError
from mmgibbs.likelihood.cholesky.columns import analyse_columns
from mmgibbs.likelihood.cholesky.elimination import Elimination, eliminate
from mmgibbs.likelihood.cholesky.factor import Factor, NotPositiveDefiniteError, analyse, factorise, factorise_matrix
from mmgibbs.likelihood.cholesky.symbolic import SymbolicFactor
from mmgibbs.likelihood.incidence import Incidence
from mmgibbs.likelihood.memory import KEPT, SOLUTION, count_pattern, refuse_large_lists, refuse_large_pattern
from mmgibbs.machine.threads import blas_threads
from mmgibbs.models.covariance import full_block, join_all
from mmgibbs.models.design import Design
from mmgibbs.models.labels import component_labels
from mmgibbs.pedigree.kernels import kernel

Blocks = Sequence[tuple[int, ...]]  # components that may covary


class Traces(NamedTuple):
    """Sums over C^-1 that log|C| brings to derivatives."""

    of_terms: list[np.ndarray]  # per term (k, k): sum_lm kappa_lm C^-1[(l, a), (m, b)]
    of_records: np.ndarray  # (patterns, T, T): sum over the records of a pattern of w_r W_r C^-1 W_r'


@dataclass(frozen=True)
class Coefficients:
    """The coefficient matrix of a design, for any variances of one structure."""

    explicit: ExplicitEquations
    symbolic: SymbolicFactor
    indices: dict[tuple[int, int], np.ndarray]  # scalar effects i >= j -> (nnz,) int64 index in the factor; -1: none

    @property
    def design(self) -> Design:
        return self.explicit.design

    @property
    def bytes(self) -> int:
        """Bytes of C, its factor and a selected inverse, or of the search for their pattern, whichever is more."""
        sizes = {pair: indices.size for pair, indices in self.indices.items()}
        units = sum(unit.bytes for unit in self.explicit.units.values())
        return units + max(count_pattern(sizes), self.symbolic.bytes + KEPT * sum(sizes.values()))

    def factor(self, G: Sequence[np.ndarray | None], R: np.ndarray) -> Factor:
        """Factor C at these variances; ModelError, which names the equation, where it is not positive definite."""
        return self.factor_precisions(*precisions(self.design, G, R))

    def factor_precisions(self, inverses: Sequence[np.ndarray], record_precision: np.ndarray) -> Factor:
        """Factor C at the inverses of the covariance matrices: (k, k) per term, and (patterns, T, T)."""
        self.explicit.set_precisions(inverses, record_precision)
        values = np.zeros(self.symbolic.elements)
        for pair, indices in self.indices.items():
            if pair in self.explicit.values:
                _scatter(self.explicit.values[pair], indices, values)
        try:
            with blas_threads(1):
                return factorise(self.symbolic, values)
        except NotPositiveDefiniteError as error:
            raise refuse_equation(equation_name(self.design, error.equation)) from None

    def selected_inverse(self, factor: Factor) -> np.ndarray:
        """Compute C^-1 where its factor has elements, (elements,), the same bits on every machine."""
        with blas_threads(1):
            return factor.selected_inverse()

    def diagonal(self, inverse: np.ndarray) -> np.ndarray:
        """Return the diagonal of C^-1, (equations,), from the selected inverse."""
        return inverse[self.symbolic.diagonal]

    def traces(self, inverse: np.ndarray) -> Traces:
        """Compute the traces from the selected inverse (elements,)."""
        design = self.design
        T, scalars = design.n_traits, self.explicit.scalar_effects
        of_terms = [np.zeros((t.n_components, t.n_components)) for t in design.terms]
        of_records = np.zeros((len(design.patterns), T, T))
        for (i, j), indices in self.indices.items():
            row, column = scalars[i], scalars[j]
            unit = self.explicit.units[row.effect, column.effect]
            by_pattern = np.zeros(len(design.patterns))
            sums = unit.sums[row.covariate, column.covariate]
            total = _sums(unit.kappa, unit.position, unit.pattern, sums, indices, inverse, by_pattern)
            of_records[:, row.trait, column.trait] += by_pattern
            if i != j:
                of_records[:, column.trait, row.trait] += by_pattern
            if row.term == column.term:
                of_terms[row.term][row.component, column.component] = total
                of_terms[row.term][column.component, row.component] = total
        return Traces(of_terms, of_records)


def coefficients(
    design: Design,
    of_terms: Sequence[Blocks | None],
    of_residuals: Sequence[Blocks],
    columns_alone: bool = False,
    advice: str = SOLUTION,
) -> Coefficients:
    """The pattern and its symbolic factor. of_terms: components that may covary, None for fixed terms; of_residuals:
    traits that may, for each class of residuals; columns_alone: whatever it costs (factor.py). DeviceError with this
    advice where they do not fit into memory."""
    explicit, used = _make_used(design, of_terms, of_residuals, advice)
    pattern = _find_pattern(explicit, used)
    for products in correlated_products(design):
        pattern = fill_ones(csr_array(pattern.astype(float) + fill_ones(products)), bool)
    symbolic: SymbolicFactor = analyse_columns(eliminate(pattern)) if columns_alone else analyse(pattern)
    indices = {pair: symbolic.locate(*numbers) for pair, (numbers, _in_force) in used.items()}
    return Coefficients(explicit, symbolic, indices)


def correlated_products(design: Design) -> list[csr_array]:
    """W'K^-1 W between the equations in force, of each group of correlated records with one in every cell."""
    if not design.correlated:
        return []
    W = Incidence(design).matrix[:, np.flatnonzero(layout(design).active)]
    products = []
    for group in design.correlated:
        cells = W[(group.records * design.n_traits + group.trait)[np.argsort(group.cells)]]
        products.append(csr_array(cells.T @ (group.relationship.inverse_matrix() @ cells)))
    return products


def fill_ones(matrix: csr_array, dtype: type = float) -> csr_array:
    """1 where a matrix has an element other than 0, sorted in each row."""
    nonzero = csr_array(matrix, copy=True)
    nonzero.eliminate_zeros()
    nonzero.sort_indices()
    return csr_array((np.ones(nonzero.nnz, dtype), nonzero.indices, nonzero.indptr), shape=nonzero.shape)


def joined_coefficients(design: Design, G: Sequence[np.ndarray | None], advice: str = SOLUTION) -> Coefficients:
    """Build C where all components of a term and all traits of the residuals may covary; G: None for fixed terms."""
    of_residuals = [full_block(design.n_traits)] * max(1, len(design.residual_classes))
    return coefficients(design, join_all(G), of_residuals, advice=advice)


def eliminated(
    design: Design, of_terms: Sequence[Blocks | None], of_residuals: Sequence[Blocks]
) -> tuple[ExplicitEquations, Elimination]:
    """The stored equations and how they are eliminated, which says what a factor costs before there is one.

    Free memory has no say, so that an engine that is chosen by it is the same on every machine.
    """
    explicit, used = _make_used(design, of_terms, of_residuals, None)
    return explicit, eliminate(_find_pattern(explicit, used))


def equation_name(design: Design, number: int) -> str:
    """An equation in force by its number from 0, in model order: 'effect herd (weight), level number 2 of 7'."""
    for term in design.terms:
        active = np.ones((term.n_levels, term.n_components), bool) if term.active is None else term.active
        places = np.flatnonzero(active)
        if number < places.size:
            level, component = divmod(int(places[number]), term.n_components)
            return (
                f"effect {term.name} ({component_labels(term, design.traits)[component]}), level number "
                f"{level + 1} of {term.n_levels}"
            )
        number -= places.size
    raise IndexError(number)


def factorise_inverse(relationship: scipy.sparse.csr_array) -> Factor:
    """The factor of K^-1 of a relationship, or of part of it."""
    try:
        with blas_threads(1):
            return factorise_matrix(relationship)
    except NotPositiveDefiniteError as error:
        raise refuse_equation(f"equation {error.equation}") from None


def solve_factor(factor: Factor, b: np.ndarray) -> np.ndarray:
    """C^-1 b, b (n,) or (n, m), the same bits whatever the number of threads."""
    with blas_threads(1):
        return factor.solve(b)


def refuse_equation(equation: str) -> ModelError:
    """The error for equations that are not positive definite; equation: the first at which it shows, in words."""
    return ModelError(
        f"the mixed-model equations are not positive definite, first at {equation}: the variances differ too much, or "
        "effects cannot be separated; needed other variances or fewer effects"
    )


def _joined(
    explicit: ExplicitEquations, of_terms: Sequence[Blocks | None], of_residuals: Sequence[Blocks]
) -> Iterator[tuple[int, int]]:
    """Scalar effects (i, j), i >= j, whose block of C may be other than 0."""
    design = explicit.design
    priors = [_prior_mask(design, number, blocks) for number, blocks in enumerate(of_terms)]
    by_records = np.zeros((design.n_traits, design.n_traits), bool)
    for observed, residual_class in zip(design.patterns, design.class_of_pattern, strict=True):
        for block in of_residuals[residual_class]:
            inside = np.zeros(design.n_traits, bool)
            inside[list(block)] = True
            by_records |= np.outer(observed & inside, observed & inside)
    for i, row in enumerate(explicit.scalar_effects):
        for j, column in enumerate(explicit.scalar_effects[: i + 1]):
            unit = explicit.units.get((row.effect, column.effect))
            if unit is None:
                continue
            by_prior = row.term == column.term and priors[row.term][row.component, column.component]
            if by_records[row.trait, column.trait] or (by_prior and unit.kappa.size):
                yield i, j


def _prior_mask(design: Design, number: int, blocks: Blocks | None) -> np.ndarray:
    term = design.terms[number]
    k = term.n_components
    if term.kind == "fixed" or blocks is None:
        return np.zeros((k, k), bool) if term.prior_precision is None else np.asarray(term.prior_precision) != 0.0
    mask = np.zeros((k, k), bool)
    for block in blocks:
        mask[np.ix_(block, block)] = True
    return mask


Numbers = tuple[np.ndarray, np.ndarray]
Used = dict[tuple[int, int], tuple[Numbers, Numbers]]


def _make_used(
    design: Design, of_terms: Sequence[Blocks | None], of_residuals: Sequence[Blocks], advice: str | None
) -> tuple[ExplicitEquations, Used]:
    """The stored equations, and the numbers of the elements of each block that may be other than 0.

    advice: DeviceError with it where they do not fit into memory; None: they are not compared with what is free.
    """
    if advice is not None:
        refuse_large_lists(design, of_terms, advice)
    explicit = explicit_equations(design)
    pairs = list(_joined(explicit, of_terms, of_residuals))
    scalars = explicit.scalar_effects
    unit = lambda i, j: explicit.units[scalars[i].effect, scalars[j].effect]
    if advice is not None:
        refuse_large_pattern(explicit, {pair: unit(*pair).indices.size for pair in pairs}, advice)
    return explicit, {pair: _numbered(explicit, *pair) for pair in pairs}


def _find_pattern(explicit: ExplicitEquations, used: Used) -> scipy.sparse.csr_array:
    return _pattern(explicit.n_equations, [in_force for _, in_force in used.values()])


def _numbered(explicit: ExplicitEquations, i: int, j: int) -> tuple[Numbers, Numbers]:
    """(row equations, column equations) of the stored elements of a block, -1 where set to 0; and those in force."""
    row, column = explicit.scalar_effects[i], explicit.scalar_effects[j]
    unit: UnitBlock = explicit.units[row.effect, column.effect]
    equation = explicit.layout.split(explicit.layout.equation.astype(np.int32))  # they take most of the memory
    rows = np.repeat(equation[row.term][:, row.component], np.diff(unit.indptr))
    columns = equation[column.term][:, column.component][unit.indices]
    in_force = (rows >= 0) & (columns >= 0)
    numbers = rows, columns
    return numbers, numbers if in_force.all() else (rows[in_force], columns[in_force])


def _pattern(n: int, pairs: Sequence[Numbers]) -> scipy.sparse.csr_array:
    diagonal = np.arange(n, dtype=np.int32)
    rows = np.concatenate([diagonal, *(r for r, _ in pairs), *(c for _, c in pairs)])
    columns = np.concatenate([diagonal, *(c for _, c in pairs), *(r for r, _ in pairs)])
    matrix = scipy.sparse.csr_array(scipy.sparse.coo_array((np.ones(rows.size, bool), (rows, columns)), shape=(n, n)))
    matrix.sort_indices()
    return matrix


@kernel
def _scatter(values, indices, out):
    for e in range(values.size):
        if indices[e] >= 0:
            out[indices[e]] = values[e]


@kernel
def _sums(kappa, position, pattern, sums, indices, inverse, by_pattern):
    """sum_e kappa_e Z_e; by_pattern[p] += sum of U^p_e Z_e."""
    total = 0.0
    for e in range(kappa.size):
        if indices[e] >= 0:
            total += kappa[e] * inverse[indices[e]]
    for m in range(sums.size):
        if indices[position[m]] >= 0:
            by_pattern[pattern[m]] += sums[m] * inverse[indices[position[m]]]
    return total
