"""BLUP of an analysis file from tables to solutions, step by step, by each preconditioner of `sampler.preconditioner`.
With --candidates also the iterations of others, on the equations written out as a sparse matrix.

    python benchmarks/preconditioners.py FILE [--tolerance 1e-10] [--threads 1 2] [--candidates]

FILE has `sampler: {method: blup}` and variances. Candidates, whose cost is counted in products with C for an iteration:

    blocks        the inverse of each level's diagonal block                                        1
    Gauss-Seidel  a forward and a backward sweep over the levels, colour by colour (SSOR): 3; 2 as Eisenstat does it
    fixed         the exact factor of C among fixed effects beside the other levels' blocks         1 and two triangles
    incomplete    IC(0), youngest animals first, fixed effects last                                 2
    absorption    animals without progeny absorbed, blocks of what is left                          1 and a third
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numba import njit
from scipy.sparse import csr_array, tril
from scipy.sparse.linalg import LinearOperator, cg, splu

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from helpers.explicit_matrix import right_hand_side, sparse_matrix  # noqa: E402

from mmgibbs.build.assemble import assemble  # noqa: E402
from mmgibbs.config import load_config  # noqa: E402
from mmgibbs.data.prepare import prepare  # noqa: E402
from mmgibbs.engines.pcg.solver import PRECONDITIONERS, PcgSolver  # noqa: E402
from mmgibbs.equations.explicit.csr import explicit_equations  # noqa: E402
from mmgibbs.equations.partition import level_colours, partition  # noqa: E402
from mmgibbs.equations.structured import structured_equations  # noqa: E402
from mmgibbs.errors import ModelError  # noqa: E402
from mmgibbs.machine.threads import Threads  # noqa: E402
from mmgibbs.models.design import Design  # noqa: E402

Vector = np.ndarray


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file")
    parser.add_argument("--tolerance", type=float, default=1e-10)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--candidates", action="store_true")
    arguments = parser.parse_args()
    clock = Clock()
    analysis = load_config(arguments.file, [])
    prepared = prepare(analysis)
    clock.done("tables read, ids coded, design")
    model = assemble(analysis, prepared).model
    design, G, R = model.design, [None if c is None else c.start for c in model.covariances], model.residual.start
    clock.done("covariances")
    equations = structured_equations(design, partition(design, "colour"))
    clock.done(f"colours and {equations.n_equations:,} equations of {len(equations.records.y):,} records")
    for threads in arguments.threads:
        for name in PRECONDITIONERS:
            for last in (1e-2, arguments.tolerance):  # the first compiles
                solver = PcgSolver(equations, Threads(threads), name)
                solver.set_variances(G, R)
                clock.start()
                try:
                    found = solver.solve(last)
                except ModelError as error:
                    print(f"{name}: {error}")
                    break
            else:
                clock.done(f"{name}, {threads} thread(s): {found.iterations} iterations")
    if arguments.candidates:
        candidates(design, G, R, arguments.tolerance)


class Clock:
    """Prints wall and processor seconds of each step."""

    def __init__(self) -> None:
        self.start()

    def start(self) -> None:
        self._wall, self._processor = time.perf_counter(), time.process_time()

    def done(self, what: str) -> None:
        spent = time.perf_counter() - self._wall, time.process_time() - self._processor
        print(f"{what:>62} {spent[0]:8.2f} s, processor {spent[1]:8.2f} s", flush=True)
        self.start()


def candidates(design: Design, G: list[Vector | None], R: Vector, tolerance: float) -> None:
    explicit = explicit_equations(design)
    explicit.set_variances(G, R)
    active = explicit.layout.active
    C, b = sparse_matrix(explicit), right_hand_side(explicit)
    shapes = explicit.layout.shapes
    term = np.repeat(np.arange(len(shapes)), [q * k for q, k in shapes])[active]
    level = np.concatenate([np.repeat(np.arange(q), k) for q, k in shapes])[active]
    colour = np.concatenate([level_colours(t).repeat(t.n_components) for t in design.terms])[active]
    animals = next(i for i, t in enumerate(design.terms) if t.relationship is not None and t.relationship.of_pedigree)
    kin = design.terms[animals].relationship.relatives
    age, progeny = ages(kin.sire, kin.dam)
    fixed = np.isin(term, [i for i, t in enumerate(design.terms) if t.kind == "fixed"])
    youngest = np.where(term == animals, age[np.minimum(level, age.size - 1)], age.max() + 1 + fixed)
    absorbed = (term == animals) & ~progeny[np.minimum(level, progeny.size - 1)]
    norm = np.linalg.norm(b)

    def report(name: str, C: csr_array, b: Vector, M: Callable[[Vector], Vector]) -> None:
        count = [0]
        operator = LinearOperator(C.shape, M, dtype=np.float64)
        step = lambda x: count.__setitem__(0, count[0] + 1)
        _, failed = cg(C, b, rtol=0.0, atol=tolerance * norm, maxiter=500, M=operator, callback=step)
        print(f"{name:>62} {count[0]:5d} iterations{' (not solved)' if failed else ''}", flush=True)

    blocks = inverse_blocks(C, term, level)
    report("blocks", C, b, lambda r: blocks @ r)
    order = np.lexsort((level, colour, term))
    inner = C[order][:, order].tocsr()
    report("Gauss-Seidel", inner, b[order], gauss_seidel(inner, inverse_blocks(inner, term[order], level[order])))
    among = splu(C[fixed][:, fixed].tocsc())
    report("fixed", C, b, lambda r: with_part(blocks @ r, fixed, among.solve(r[fixed])))
    order = np.lexsort((level, term, youngest))
    inner = C[order][:, order].tocsr()
    M = incomplete(inner)
    if M is not None:
        report("incomplete", inner, b[order], M)
    across, D = C[~absorbed][:, absorbed], inverse_blocks(C[absorbed][:, absorbed], term[absorbed], level[absorbed])
    S = csr_array(C[~absorbed][:, ~absorbed] - across @ D @ across.T)
    left, own = term[~absorbed], level[~absorbed]
    right = b[~absorbed] - across @ (D @ b[absorbed])
    for name, of in (("absorption, blocks of C", C[~absorbed][:, ~absorbed]), ("absorption", S)):
        inverse = inverse_blocks(of, left, own)
        report(name, S, right, lambda r, inverse=inverse: inverse @ r)
    order = np.lexsort((own, colour[~absorbed], left))
    inner = S[order][:, order].tocsr()
    M = gauss_seidel(inner, inverse_blocks(inner, left[order], own[order]))
    report("absorption, Gauss-Seidel on what is left", inner, right[order], M)


def ages(sire: Vector, dam: Vector) -> tuple[Vector, Vector]:
    """(generations of descendants, has progeny) of animals that come after their parents."""
    age = np.zeros(sire.size, np.int64)
    for animal in range(sire.size - 1, -1, -1):
        for parent in (sire[animal], dam[animal]):
            if parent >= 0:
                age[parent] = max(age[parent], age[animal] + 1)
    return age, age > 0


def with_part(x: Vector, where: Vector, values: Vector) -> Vector:
    x[where] = values
    return x


def inverse_blocks(C: csr_array, term: Vector, level: Vector) -> csr_array:
    """Of the diagonal blocks of levels, whose equations follow one another."""
    C = C.tocoo()
    own = (term[C.row] == term[C.col]) & (level[C.row] == level[C.col])
    row, column, values = C.row[own], C.col[own], C.data[own]
    first = np.flatnonzero(np.append(True, (np.diff(term) != 0) | (np.diff(level) != 0)))
    sizes, at = np.diff(np.append(first, term.size)), np.searchsorted(first, row, "right") - 1
    out = np.zeros(row.size)
    for k in np.unique(sizes):
        chosen = sizes[at] == k
        number = np.searchsorted(np.flatnonzero(sizes == k), at[chosen])
        i, j = row[chosen] - first[at[chosen]], column[chosen] - first[at[chosen]]
        dense = np.zeros((int((sizes == k).sum()), k, k))
        dense[number, i, j] = values[chosen]
        out[chosen] = np.linalg.inv(dense)[number, i, j]
    return csr_array((out, (row, column)), shape=C.shape)


def gauss_seidel(C: csr_array, blocks: csr_array) -> Callable[[Vector], Vector]:
    """r -> (D + U)^-1 D (D + L)^-1 r, with C = L + D + U and D its blocks."""

    def times(r: Vector) -> Vector:
        x = np.zeros(r.size)
        half_sweep(C.indptr, C.indices, C.data, blocks.indptr, blocks.indices, blocks.data, r, x, False)
        half_sweep(C.indptr, C.indices, C.data, blocks.indptr, blocks.indices, blocks.data, r, x, True)
        return x

    return times


@njit
def half_sweep(indptr, indices, data, block_ptr, block_indices, inverse, r, x, backward):
    """x_B += D_B^-1 (r - C x)_B block by block; the rows of a block have its columns in `block_indices`."""
    n, i = r.size, 0
    while i < n:
        row = n - 1 - i if backward else i
        own = block_indices[block_ptr[row] : block_ptr[row + 1]]
        left = np.empty(own.size)
        for a in range(own.size):
            s = r[own[a]]
            for p in range(indptr[own[a]], indptr[own[a] + 1]):
                s -= data[p] * x[indices[p]]
            left[a] = s
        for a in range(own.size):
            for b in range(own.size):
                x[own[a]] += inverse[block_ptr[own[a]] + b] * left[b]
        i += own.size


def incomplete(C: csr_array) -> Callable[[Vector], Vector] | None:
    """None where the factor without what fills in does not exist."""
    L = tril(C, format="csr")
    L.sort_indices()
    data = L.data.astype(np.float64)
    failed = factor_in_place(L.indptr, L.indices, data)
    if failed:
        print(f"{'incomplete':>62} {failed:5d} pivots are not positive", flush=True)
        return None
    return lambda r: solve_both(L.indptr, L.indices, data, r)


@njit
def factor_in_place(indptr, indices, data):
    """IC(0) of the lower triangle; a pivot that is not positive keeps its diagonal element."""
    failed = 0
    for i in range(indptr.size - 1):
        last = indptr[i + 1] - 1
        for p in range(indptr[i], last):
            j, a, b = indices[p], indptr[i], indptr[indices[p]]
            while a < p and b < indptr[j + 1] - 1:
                if indices[a] == indices[b]:
                    data[p] -= data[a] * data[b]
                forward = indices[a] <= indices[b]
                b += indices[b] <= indices[a]
                a += forward
            data[p] /= data[indptr[j + 1] - 1]
        left = data[last] - np.sum(data[indptr[i] : last] ** 2)
        failed += left <= 1e-3 * data[last]
        data[last] = np.sqrt(left if left > 1e-3 * data[last] else data[last])
    return failed


@njit
def solve_both(indptr, indices, data, r):
    x = r.copy()
    for i in range(x.size):
        last = indptr[i + 1] - 1
        for p in range(indptr[i], last):
            x[i] -= data[p] * x[indices[p]]
        x[i] /= data[last]
    for i in range(x.size - 1, -1, -1):
        last = indptr[i + 1] - 1
        x[i] /= data[last]
        for p in range(indptr[i], last):
            x[indices[p]] -= data[p] * x[i]
    return x


if __name__ == "__main__":
    main()
