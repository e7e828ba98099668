"""The explicit mixed-model equations: one CSR block for each pair of scalar effects, new variances without a rebuild.

    block(i, j) = G^-1[c_i, c_j] K^-1 + sum_p R_p^-1[t_i, t_j] U^p        (unit_blocks.py)

A scalar effect is one component of one term; scalar effects are numbered term by term, component by component.
`set_variances` is one pass over the stored values. Blocks of the same two effects share `indptr` and `indices`, and a
block that equals its mirror image is stored once. Rows and columns of components set to 0 (`Term.active`) stay in a
block and hold zeros, the diagonal included; `matrix` leaves them out. C is symmetric to the last bit.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mmgibbs.equations.base import Layout, layout, precisions
from mmgibbs.equations.explicit.unit_blocks import UnitBlock, unit_blocks
from mmgibbs.model.design import Design
from mmgibbs.model.labels import components
from pedigree.kernels import kernel

if TYPE_CHECKING:
    from scipy.sparse import csr_array


class ScalarEffect(NamedTuple):
    """One component of one term."""

    term: int
    component: int
    trait: int
    effect: int  # numbered through all terms
    covariate: int  # which of the effect's own


class Block(NamedTuple):
    """CSR, levels of scalar effect i by levels of scalar effect j, in model order."""

    indptr: np.ndarray  # (q_i + 1,) int64
    indices: np.ndarray  # (nnz,) int32, sorted within a row
    values: np.ndarray  # (nnz,) float64 or float32; `set_variances` writes into it, nobody else


@dataclass
class ExplicitEquations:
    """C as blocks of scalar effects, at the variances given last, levels in model order."""

    design: Design
    real: np.dtype  # of stored values; sums run in float64
    units: dict[tuple[int, int], UnitBlock]
    layout: Layout
    scalar_effects: tuple[ScalarEffect, ...]
    values: dict[tuple[int, int], np.ndarray] = field(default_factory=dict)  # absent: the block is zero
    record_precision: np.ndarray | None = None  # (patterns, T, T) R_p^-1 in force

    @property
    def n_equations(self) -> int:
        return self.design.n_equations

    @property
    def nonzeros(self) -> int:
        """Elements of C that are not 0 at the variances in force, both triangles, equations in force only."""
        return sum(int(np.count_nonzero(values)) for values in self.values.values())

    @property
    def bytes(self) -> int:
        """Unit blocks and values; arrays that several blocks share count once."""
        values = {id(v): v.nbytes for v in self.values.values()}
        return sum(unit.bytes for unit in self.units.values()) + sum(values.values())

    def set_variances(self, G: Sequence[np.ndarray | None], R: np.ndarray) -> None:
        """New coefficients on the stored unit blocks. G: one (k, k) per term, None for fixed terms; R: (T, T)."""
        inverses, self.record_precision = precisions(self.design, G, R)
        old, self.values = self.values, {}
        for i, row in enumerate(self.scalar_effects):
            for j, column in enumerate(self.scalar_effects):
                unit = self.units.get((row.effect, column.effect))
                by_pattern = np.ascontiguousarray(self.record_precision[:, row.trait, column.trait])
                prior = inverses[row.term][row.component, column.component] if row.term == column.term else 0.0
                if unit is None or (not by_pattern.any() and (prior == 0.0 or unit.kappa.size == 0)):
                    continue
                if j < i and self._mirrored(row, column):
                    self.values[i, j] = self.values[j, i]
                    continue
                values = old.pop((i, j), None)
                if values is None:
                    values = np.empty(unit.indices.size, self.real)
                sums = unit.sums[row.covariate, column.covariate]
                _combine(unit.kappa, unit.position, unit.pattern, sums, prior, by_pattern, values)
                held = self._held_at_zero(row), self._held_at_zero(column)
                if held[0].any() or held[1].any():
                    _hold_at_zero(unit.indptr, unit.indices, *held, values)
                self.values[i, j] = values

    def _mirrored(self, row: ScalarEffect, column: ScalarEffect) -> bool:
        """Blocks (i, j) and (j, i) are one array: symmetric within an effect, unless different levels are set to 0."""
        same_levels = np.array_equal(self._held_at_zero(row), self._held_at_zero(column))
        return row.effect == column.effect and same_levels

    def _held_at_zero(self, scalar: ScalarEffect) -> np.ndarray:
        return self._held[scalar.term][scalar.component]

    @cached_property
    def _held(self) -> list[np.ndarray]:
        return [np.ascontiguousarray(~active.T) for active in self.layout.split(self.layout.active)]

    def block(self, i: int, j: int) -> Block:
        """The block of scalar effects i (rows) and j (columns); no elements where it is zero at these variances."""
        if (i, j) not in self.values:
            rows = self.design.terms[self.scalar_effects[i].term].n_levels
            return Block(np.zeros(rows + 1, np.int64), np.empty(0, np.int32), np.empty(0, self.real))
        unit = self.units[self.scalar_effects[i].effect, self.scalar_effects[j].effect]
        return Block(unit.indptr, unit.indices, self.values[i, j])

    def times(self, x: np.ndarray) -> np.ndarray:
        """C x for a flat vector (`base.Layout`), (places,) float64; places set to 0 are not read and get 0."""
        x = np.ascontiguousarray(x, np.float64)
        assert x.shape == (self.layout.size,), f"a vector of {self.layout.size} places is needed, found shape {x.shape}"
        # One contiguous vector per scalar effect: the rows of Theta' of each term.
        pieces = [row for theta in self.layout.split(x) for row in np.ascontiguousarray(theta.T)]
        sums = [np.zeros(piece.size) for piece in pieces]
        for (i, j), values in self.values.items():
            unit = self.units[self.scalar_effects[i].effect, self.scalar_effects[j].effect]
            _add_times(unit.indptr.view(np.uint64), unit.indices.view(np.uint32), values, pieces[j], sums[i])
        out = np.empty(self.layout.size)
        totals = self.layout.split(out)
        for scalar, total in zip(self.scalar_effects, sums, strict=True):
            totals[scalar.term][:, scalar.component] = total
        return out

    def diagonal(self) -> np.ndarray:
        """The diagonal of C, (places,) float64; 0 in places set to 0."""
        out = np.zeros(self.layout.size)
        total = self.layout.split(out)
        for i, scalar in enumerate(self.scalar_effects):
            _add_diagonal(*self.block(i, i), total[scalar.term][:, scalar.component])
        return out

    def right_hand_side(self, y: np.ndarray | None = None) -> np.ndarray:
        """sum_r W_r' R_r^-1 y_r, (places,) float64, 0 in places set to 0.

        y: (n, T) in place of the design's traits; what it holds for traits that were not observed is not read.
        """
        design = self.design
        y = np.where(design.patterns[design.pattern], design.y if y is None else y, 0.0)
        weighted = _weighted(design.pattern, design.weight, self.record_precision, y)
        out = np.zeros(self.layout.size)
        total = self.layout.split(out)
        effects = [effect for term in design.terms for effect in term.effects]
        for scalar in self.scalar_effects:
            effect = effects[scalar.effect]
            met = effect.level >= 0
            covariate = 1.0 if effect.covariates is None else effect.covariates[met, scalar.covariate]
            sums = np.bincount(effect.level[met], weighted[met, scalar.trait] * covariate, len(total[scalar.term]))
            total[scalar.term][:, scalar.component] = sums
        return np.where(self.layout.active, out, 0.0)

    def matrix(self) -> csr_array:
        """C as a scipy.sparse.csr_array, (n_equations, n_equations): columns sorted, zeros left out, both triangles.

        Equations run term by term, level by level, component by component; those set to 0 have no row and no column.
        """
        from scipy.sparse import csr_array

        n = self.n_equations
        indptr = np.zeros(n + 1, np.int64)
        for block, rows, _ in self._numbered_blocks():
            _count_rows(*block, rows, indptr)
        np.cumsum(indptr, out=indptr)
        indices, values = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], self.real)
        fill = indptr[:-1].copy()
        for block, rows, columns in self._numbered_blocks():
            _fill_rows(*block, rows, columns, fill, indices, values)
        # SciPy holds both index arrays in one type.
        matrix = csr_array((values, indices, indptr.astype(np.int32 if indptr[-1] < 2**31 else np.int64)), shape=(n, n))
        matrix.sort_indices()
        return matrix

    def _numbered_blocks(self) -> Iterator[tuple[Block, np.ndarray, np.ndarray]]:
        """Each block with the equation of each of its rows and columns (-1: set to 0)."""
        number = [equations.T.astype(np.int32, order="C") for equations in self.layout.split(self.layout.equation)]
        for i, j in sorted(self.values):
            row, column = self.scalar_effects[i], self.scalar_effects[j]
            yield self.block(i, j), number[row.term][row.component], number[column.term][column.component]

    def write_matrix_market(self, directory: str | Path, level_names: list | None = None) -> None:
        """Write C.mtx (lower triangle, symmetric), rhs.mtx (a column) and equations.csv: what each equation is.

        equations.csv: equation (from 1, as in the .mtx files), term, effect, coefficient, trait, level. Levels are
        numbered from 1 in the order of the term, or named by `level_names`, one sequence per term (None: numbered).
        The directory is made if need be; files of these names are overwritten.
        """
        from scipy.io import mmwrite
        from scipy.sparse import tril

        directory = Path(directory)
        directory.mkdir(parents=True, exist_ok=True)
        mmwrite(directory / "C.mtx", tril(self.matrix(), format="coo"), symmetry="symmetric")
        mmwrite(directory / "rhs.mtx", self.right_hand_side()[self.layout.active][:, None])
        with open(directory / "equations.csv", "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["equation", "term", "effect", "coefficient", "trait", "level"])
            writer.writerows(self._descriptions(level_names))

    def _descriptions(self, level_names: Sequence[Sequence[str] | None] | None) -> Iterator[tuple[Any, ...]]:
        equation = 0
        for number, term in enumerate(self.design.terms):
            names = None if level_names is None else level_names[number]
            for level in range(term.n_levels):
                for component, description in enumerate(components(term, self.design.traits)):
                    if term.active is None or term.active[level, component]:
                        equation += 1
                        yield equation, term.name, *description, level + 1 if names is None else names[level]


def explicit_equations(design: Design, precision: str = "double") -> ExplicitEquations:
    """The unit blocks of a design; `set_variances` makes the blocks. precision: 'double' or 'single' (float32)."""
    real = np.dtype(np.float32 if precision == "single" else np.float64)
    scalars, first_effect = [], 0
    for number, term in enumerate(design.terms):
        components = [
            (e, t, a)
            for e, effect in enumerate(term.effects)
            for t in effect.traits
            for a in range(effect.n_regressors)
        ]
        scalars += [ScalarEffect(number, c, t, first_effect + e, a) for c, (e, t, a) in enumerate(components)]
        first_effect += len(term.effects)
    return ExplicitEquations(design, real, unit_blocks(design, real), layout(design), tuple(scalars))


# One pass over the values of a block each.


@kernel
def _combine(kappa, position, pattern, sums, prior, by_pattern, out):
    """out = prior K^-1 + sum_p by_pattern[p] U^p."""
    if kappa.size > 0 and prior != 0.0:
        for e in range(np.uint64(out.size)):
            out[e] = prior * kappa[e]
    else:
        out[:] = 0.0
    for m in range(np.uint64(sums.size)):
        out[position[m]] += by_pattern[pattern[m]] * sums[m]


@kernel
def _hold_at_zero(indptr, indices, row_held, column_held, values):
    for row in range(indptr.size - 1):
        for e in range(indptr[row], indptr[row + 1]):
            if row_held[row] or column_held[indices[e]]:
                values[e] = 0.0


@kernel
def _add_times(indptr, indices, values, x, out):
    """out += block x; indptr uint64 and indices uint32: no index can be negative."""
    # Rows are short: reassociated sums, which pay on long ones, were slower here.
    for row in range(np.uint64(indptr.size - 1)):
        total = 0.0
        for e in range(indptr[row], indptr[row + np.uint64(1)]):
            total += values[e] * x[indices[e]]
        out[row] += total


@kernel
def _add_diagonal(indptr, indices, values, out):
    for row in range(indptr.size - 1):
        for e in range(indptr[row], indptr[row + 1]):
            if indices[e] == row:
                out[row] += values[e]


@kernel
def _weighted(pattern, weight, record_precision, y):
    """(n, T) R_r^-1 y_r, w_r included."""
    n, T = y.shape
    out = np.zeros((n, T))
    for r in range(n):
        for t in range(T):
            for u in range(T):
                out[r, t] += weight[r] * record_precision[pattern[r], t, u] * y[r, u]
    return out


@kernel
def _count_rows(indptr, indices, values, equation, sizes):
    """sizes[1 + equation of a row] += its nonzeros."""
    for row in range(indptr.size - 1):
        if equation[row] >= 0:
            for e in range(indptr[row], indptr[row + 1]):
                sizes[equation[row] + 1] += values[e] != 0.0


@kernel
def _fill_rows(indptr, indices, values, row_equation, column_equation, fill, out_indices, out_values):
    for row in range(indptr.size - 1):
        if row_equation[row] >= 0:
            for e in range(indptr[row], indptr[row + 1]):
                if values[e] != 0.0:
                    place = fill[row_equation[row]]
                    out_indices[place], out_values[place] = column_equation[indices[e]], values[e]
                    fill[row_equation[row]] = place + 1
