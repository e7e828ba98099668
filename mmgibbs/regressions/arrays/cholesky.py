"""Cholesky factors over threads, the same bits whatever their number; compiled, with vector instructions of its own.

    A = U'U (U = L'),    U_ij = (A_ij - sum_{k < i} U_ki U_kj) / U_ii,    k = 0, 1, ... for each element

The columns of U lie in strips of WIDTH columns; a strip holds its rows down to the diagonal, one after another. So a
group of ROWS rows of a strip is a matrix that stays in registers while k runs, and what it takes, a row of its strip
and ROWS numbers of a row of another, lies side by side in memory, which nothing must be copied for. Nearly all
operations are such products, whatever the size.

A thread takes the next strip, from the left, when it is free, and goes down its rows; it waits where it needs a strip
that another thread is still at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import numpy as np
from llvmlite import ir
from llvmlite.binding import get_host_cpu_features
from numba import config, njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from mmgibbs.machine.barrier import come, next_number, places_of_threads, wait_for


def _lanes() -> int:
    """float64 in a vector of this processor."""
    try:
        named = getattr(config, "CPU_NAME", None)  # told to compile for another processor
        features = {} if named else get_host_cpu_features()
    except RuntimeError:  # no way to ask this one
        features = {}
    return 8 if features.get("avx512f") else 4 if features.get("avx2") else 2


# Of a group: LANES x PARTS columns, and as many rows as fit beside what they are multiplied by in 32 registers, with
# four lanes in 16. WIDTH is a multiple of ROWS. None of them changes a bit
LANES, PARTS = _lanes(), 3
ROWS, WIDTH = {8: 8, 4: 4, 2: 6}[LANES], LANES * PARTS
LINE = 8  # float64 in a line of the cache, at which strips begin
DOUBLE, WORD, INDEX = ir.DoubleType(), ir.IntType(32), ir.IntType(64)
VECTOR = ir.VectorType(DOUBLE, LANES)

AtOnce = Callable[[Iterable[Callable[[], None]]], None]


def _repeat(builder: ir.IRBuilder, number: ir.Value) -> ir.Value:
    none = ir.Constant(VECTOR, ir.Undefined)
    first = builder.insert_element(none, number, WORD(0))
    return builder.shuffle_vector(first, none, ir.Constant(ir.VectorType(WORD, LANES), [0] * LANES))


def _row(builder: ir.IRBuilder, start: ir.Value, r: int = 0) -> list[ir.Value]:
    """Row r of a strip, from `start` on, in vectors."""
    places = [builder.gep(start, [INDEX(r * WIDTH + part * LANES)]) for part in range(PARTS)]
    return [builder.load(builder.bitcast(place, VECTOR.as_pointer()), align=8) for place in places]


def _store(builder: ir.IRBuilder, row: list[ir.Value], start: ir.Value, r: int = 0) -> None:
    for part, x in enumerate(row):
        place = builder.gep(start, [INDEX(r * WIDTH + part * LANES)])
        builder.store(x, builder.bitcast(place, VECTOR.as_pointer()), align=8)


def _less(builder: ir.IRBuilder, rows: list[ir.Value], number: ir.Value, other: list[ir.Value]) -> list[ir.Value]:
    """rows - number other, each product and difference rounded once where the processor can."""
    number, fused = _repeat(builder, number), ("contract",)
    return [
        builder.fsub(row, builder.fmul(number, x, flags=fused), flags=fused) for row, x in zip(rows, other, strict=True)
    ]


@intrinsic
def _group(typingctx, A, U, inverse, group, strip, other, n, solve):
    """Rows n ... n + ROWS - 1 of a strip: U_i = A_i - sum_k U_ki U_k over k < n; with `solve` = 1 further over
    n <= k < i, and divided by U_ii.

    A, U: flat, float64; group, strip, other: where in them this group begins, its strip, and U_0n; inverse: 1 / U_ii.
    """
    if not isinstance(solve, types.IntegerLiteral):
        return None
    solves = bool(solve.literal_value)

    def codegen(context, b, signature, args):
        data = [context.make_array(t)(context, b, x).data for t, x in zip(signature.args[:3], args[:3], strict=True)]
        group, strip, other, n = (
            context.cast(b, x, t, types.int64) for t, x in zip(signature.args[3:7], args[3:7], strict=True)
        )
        at = lambda start, place: b.gep(start, [INDEX(place)])
        source, target = b.gep(data[0], [group]), b.gep(data[1], [group])
        strip, other = b.gep(data[1], [strip]), b.gep(data[1], [other])
        first = [_row(b, source, r) for r in range(ROWS)]
        before, loop, after = b.block, b.append_basic_block("products"), b.append_basic_block("sums")
        b.cbranch(b.icmp_signed(">", n, INDEX(0)), loop, after)

        b.position_at_end(loop)
        k, sums = b.phi(INDEX), [[b.phi(VECTOR) for _ in of] for of in first]
        own, numbers = (b.gep(start, [b.mul(k, INDEX(WIDTH))]) for start in (strip, other))
        with_k = _row(b, own)
        new = [_less(b, of, b.load(at(numbers, r)), with_k) for r, of in enumerate(sums)]
        following = b.add(k, INDEX(1))
        k.add_incoming(INDEX(0), before)
        k.add_incoming(following, loop)
        b.cbranch(b.icmp_signed("<", following, n), loop, after)

        b.position_at_end(after)
        out = [[b.phi(VECTOR) for _ in of] for of in first]
        for r in range(ROWS):
            for part in range(PARTS):
                for phi in (sums[r][part], out[r][part]):
                    phi.add_incoming(first[r][part], before)
                    phi.add_incoming(new[r][part], loop)
        if solves:
            corner, divisors = b.gep(other, [b.mul(n, INDEX(WIDTH))]), b.gep(data[2], [n])
            for r in range(ROWS):
                for k in range(r):
                    out[r] = _less(b, out[r], b.load(at(corner, k * WIDTH + r)), out[k])
                divisor = _repeat(b, b.load(at(divisors, r)))
                out[r] = [b.fmul(x, divisor) for x in out[r]]
        for r in range(ROWS):
            _store(b, out[r], target, r)
        return context.get_dummy_value()

    return types.void(A, U, inverse, group, strip, other, n, solve), codegen


@njit(cache=True, nogil=True, error_model="numpy")
def _start(strip):
    """Where a strip begins."""
    return WIDTH * WIDTH * (strip * (strip + 1) // 2)


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _diagonal_group(U, inverse, d, n, group, column):
    """Rows n ... of the factor, whose columns from n on begin at `column` of the strip; -1, or the row that has no
    root.
    """
    for r in range(ROWS):
        own = group + r * WIDTH
        U[own + column + r] += d[n + r]
        for k in range(r):
            other = group + k * WIDTH
            number = U[other + column + r]
            for j in range(column + r, WIDTH):
                U[own + j] -= number * U[other + j]
        pivot = U[own + column + r]
        if not pivot > 0.0:
            return n + r
        root = np.sqrt(pivot)
        inverse[n + r] = 1.0 / root
        for j in range(WIDTH):
            U[own + j] = U[own + j] * inverse[n + r] if j > column + r else 0.0
        U[own + column + r] = root
    return -1


@njit(cache=True, nogil=True, error_model="numpy")
def factor_strips(A, d, U, inverse, done):
    """U'U = A + diag(d), by all threads that call this; A may be U.

    A, U: strips of m columns, the last filled up; d, inverse: (m,), of which inverse becomes 1 / U_ii. done:
    `places_of_threads` of strips + 1, from 0: which strips are done, which is next, and, last, 1 + the row that has no
    root.
    """
    strips = done.shape[0] - 2
    while True:
        strip = next_number(done, strips)
        if strip >= strips:
            return
        start, ready = _start(strip), 0
        for n in range(0, strip * WIDTH, ROWS):
            other = n // WIDTH
            if other == ready:
                if not wait_for(done, other, 1):
                    return
                ready += 1
            _group(A, U, inverse, start + n * WIDTH, start, _start(other) + n - other * WIDTH, n, 1)
        for column in range(0, WIDTH, ROWS):
            n = strip * WIDTH + column
            group = start + n * WIDTH
            _group(A, U, inverse, group, start, start + column, n, 0)
            failed = _diagonal_group(U, inverse, d, n, group, column)
            if failed >= 0:
                come(done, strips + 1, failed + 1)
                return
        come(done, strip, 1)


@njit(cache=True, nogil=True, error_model="numpy")
def _pack(A, U, first, last):
    """Strips first ... last - 1 of symmetric A (m, m); beyond it the identity."""
    m = A.shape[0]
    for strip in range(first, last):
        for i in range((strip + 1) * WIDTH):
            for c in range(WIDTH):
                j = strip * WIDTH + c
                U[_start(strip) + i * WIDTH + c] = A[i, j] if i < m and j < m else 1.0 if i == j else 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def _unpack(U, L, first, last):
    """Rows of strips first ... last - 1 of the lower factor L (m, m), 0 above the diagonal."""
    m = L.shape[0]
    for strip in range(first, last):
        for j in range(strip * WIDTH, min(m, (strip + 1) * WIDTH)):
            for i in range(j + 1):
                L[j, i] = U[_start(strip) + i * WIDTH + j - strip * WIDTH]
            L[j, j + 1 :] = 0.0


@intrinsic
def _above_diagonal(typingctx, U, x, strip, n, transposed):
    """Of the rows k < n of a strip with the columns n ... n + WIDTH - 1, which begins at `strip` of U: with
    `transposed` = 1 x_j -= sum_k U_kj x_k, with 0 x_k -= sum_j U_kj x_j.
    """
    if not isinstance(transposed, types.IntegerLiteral):
        return None
    down = bool(transposed.literal_value)

    def codegen(context, b, signature, args):
        U, x = (context.make_array(t)(context, b, a).data for t, a in zip(signature.args[:2], args[:2], strict=True))
        strip, n = (context.cast(b, a, t, types.int64) for t, a in zip(signature.args[2:4], args[2:4], strict=True))
        place = b.gep(x, [n])
        own, before, loop, after = _row(b, place), b.block, b.append_basic_block("rows"), b.append_basic_block("end")
        b.cbranch(b.icmp_signed(">", n, INDEX(0)), loop, after)
        b.position_at_end(loop)
        k, sums = b.phi(INDEX), [b.phi(VECTOR) for _ in own]
        of_k, row = b.gep(x, [k]), _row(b, b.gep(U, [b.add(strip, b.mul(k, INDEX(WIDTH)))]))
        new = sums
        if down:
            new = _less(b, sums, b.load(of_k), row)
        else:
            total = b.fmul(row[0], own[0])
            for u, v in zip(row[1:], own[1:], strict=True):
                total = b.fadd(b.fmul(u, v, flags=("contract",)), total, flags=("contract",))
            kind = ir.FunctionType(DOUBLE, [DOUBLE, VECTOR])
            add = cgutils.get_or_insert_function(b.module, kind, f"llvm.vector.reduce.fadd.v{LANES}f64")
            b.store(b.fsub(b.load(of_k), b.call(add, [DOUBLE(0.0), total], fastmath=("reassoc",))), of_k)
        following = b.add(k, INDEX(1))
        for phi, first, later in zip([k, *sums], [INDEX(0), *own], [following, *new], strict=True):
            phi.add_incoming(first, before)
            phi.add_incoming(later, loop)
        b.cbranch(b.icmp_signed("<", following, n), loop, after)
        b.position_at_end(after)
        out = [b.phi(VECTOR) for _ in own]
        for phi, first, later in zip(out, own, new, strict=True):
            phi.add_incoming(first, before)
            phi.add_incoming(later, loop)
        if down:
            _store(b, out, place)
        return context.get_dummy_value()

    return types.void(U, x, strip, n, transposed), codegen


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _solve_transposed(U, inverse, x):
    """x (m,) becomes U'^-1 x."""
    for strip in range(x.size // WIDTH):
        start, n = _start(strip), strip * WIDTH
        _above_diagonal(U, x, start, n, 1)
        for k in range(n, n + WIDTH):
            x[k] *= inverse[k]
            for j in range(k + 1, n + WIDTH):
                x[j] -= U[start + k * WIDTH + j - n] * x[k]


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _solve(U, inverse, x):
    """x (m,) becomes U^-1 x."""
    for strip in range(x.size // WIDTH - 1, -1, -1):
        start, n = _start(strip), strip * WIDTH
        for k in range(n + WIDTH - 1, n - 1, -1):
            for j in range(k + 1, n + WIDTH):
                x[k] -= U[start + k * WIDTH + j - n] * x[j]
            x[k] *= inverse[k]
        _above_diagonal(U, x, start, n, 0)


def _in_shares(kernel: Callable[..., None], strips: int, at_once: AtOnce, *arguments: np.ndarray) -> None:
    """kernel(*arguments, first, last) for a few strips at a time."""
    at_once([partial(kernel, *arguments, first, min(first + 4, strips)) for first in range(0, strips, 4)])


class Strips:
    """Memory for C matrices of m columns in strips, on lines of the cache: values (C, size)."""

    def __init__(self, C: int, m: int):
        self.m, self.count = m, -(-m // WIDTH)
        self.padded = self.count * WIDTH
        size = WIDTH * WIDTH * (self.count * (self.count + 1) // 2)
        stride = -(-size // LINE) * LINE
        room = np.empty(C * stride + LINE)
        start = -(room.ctypes.data // room.itemsize) % LINE
        self.values = room[start : start + C * stride].reshape(C, stride)

    def pack(self, c: int, A: np.ndarray, at_once: AtOnce) -> None:
        """A (m, m), symmetric, as matrix c."""
        _in_shares(_pack, self.count, at_once, A, self.values[c])

    def lower(self, c: int, L: np.ndarray, at_once: AtOnce) -> None:
        """The lower factor (m, m) of matrix c, 0 above the diagonal, into L."""
        _in_shares(_unpack, self.count, at_once, self.values[c], L)


class StripFactors:
    """Factors of C matrices A_c + diag(d_c) of m columns."""

    def __init__(self, C: int, m: int):
        self.strips = Strips(C, m)
        self.inverse = np.empty((C, self.strips.padded))

    def factor(self, c: int, A: np.ndarray, d: np.ndarray | None, at_once: AtOnce, threads: int) -> None:
        """A: strips of one matrix, or this one's own; d: (m,), or None for 0. at_once(calls) runs calls over `threads`
        threads.

        numpy.linalg.LinAlgError where the matrix is not positive definite.
        """
        s = self.strips
        shift, done = np.zeros(s.padded), places_of_threads(s.count + 1)
        if d is not None:
            shift[: s.m] = d
        at_once([partial(factor_strips, A, shift, s.values[c], self.inverse[c], done)] * threads)
        failed = int(done[-1, 0])
        if failed:
            raise np.linalg.LinAlgError(f"the matrix is not positive definite: column {failed} of {s.m}")

    def solve(self, b: np.ndarray, transposed: bool = False) -> np.ndarray:
        """L^-1 b, or L'^-1 b, for b (C, m)."""
        s = self.strips
        x = np.zeros((len(s.values), s.padded))
        x[:, : s.m] = b
        for U, inverse, one in zip(s.values, self.inverse, x, strict=True):
            (_solve if transposed else _solve_transposed)(U, inverse, one)
        return x[:, : s.m]
