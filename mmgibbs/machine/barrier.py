"""A barrier for threads within one kernel: `meet(arrived, me)` continues when all threads have come as far.

A kernel that meets thousands of times in a few milliseconds cannot be called anew each time: all threads are in it from
beginning to end, each with its number `me`, and wait for each other in turn. They look at a counter of their own
`SPINS` times, then let others have the core between looks, so that a machine with fewer free cores than threads keeps
working. What a thread wrote before it came is seen by all others afterwards.

arrived (threads + 1, LINE) int64, from 0, a row for each thread (a cache line of its own): how often it came. The last
row says that one of them has given up: every meeting then returns at once with False, and kernels leave.
"""

from __future__ import annotations

import sys

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.core.cpu import CPUContext
from numba.extending import intrinsic

LINE = 16  # int64: two cache lines, which some processors fetch together
SPINS = 2_000  # looks, some tens of microseconds

# of the C library, which every process has
_give_way = types.ExternalFunction("SwitchToThread" if sys.platform == "win32" else "sched_yield", types.int32())


def places_of_threads(count: int) -> np.ndarray:
    """`arrived` of so many threads."""
    return np.zeros((count + 1, LINE), np.int64)


def _address(
    context: CPUContext, builder: ir.IRBuilder, array_type: types.Array, array: ir.Value, row: ir.Value
) -> ir.Value:
    data = context.make_array(array_type)(context, builder, array)
    shape = cgutils.unpack_tuple(builder, data.shape)
    return builder.gep(data.data, [builder.mul(row, shape[1])])


@intrinsic
def _look(typingctx, arrived, row):
    """arrived[row, 0], after which nothing is read that stands later."""

    def codegen(context, builder, signature, args):
        row = context.cast(builder, args[1], signature.args[1], types.int64)
        address = _address(context, builder, signature.args[0], args[0], row)
        return builder.load_atomic(address, "acquire", 8)

    return types.int64(arrived, row), codegen


@intrinsic
def _come(typingctx, arrived, row, value):
    """arrived[row, 0] = value, after everything that was written before."""

    def codegen(context, builder, signature, args):
        row = context.cast(builder, args[1], signature.args[1], types.int64)
        value = context.cast(builder, args[2], signature.args[2], types.int64)
        address = _address(context, builder, signature.args[0], args[0], row)
        builder.store_atomic(value, address, "release", 8)
        return context.get_dummy_value()

    return types.void(arrived, row, value), codegen


@intrinsic
def _pause(typingctx):
    """Tell the processor that this is a loop of looks, where it has a word for that."""

    def codegen(context, builder, signature, args):
        if context.codegen().magic_tuple()[0].startswith("x86_64"):
            kind = ir.FunctionType(ir.VoidType(), [])
            builder.call(cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.sse2.pause"), [])
        return context.get_dummy_value()

    return types.void(), codegen


@njit(cache=True, nogil=True, error_model="numpy")
def meet(arrived, me):
    """True once every thread has come; False where one gave up."""
    threads = arrived.shape[0] - 1
    if threads == 1:
        return True
    turn = _look(arrived, me) + 1
    _come(arrived, me, turn)
    for other in range(threads):
        looks = 0
        while _look(arrived, other) < turn:
            if _look(arrived, threads) != 0:
                return False
            looks += 1
            if looks < SPINS:
                _pause()
            else:
                _give_way()
    return True


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def share(n, me, threads, unit=1):
    """(first, stop) of thread `me` among n things that come in units, the last of which may be short."""
    units = -(-n // unit)
    return min(n, unit * (units * me // threads)), min(n, unit * (units * (me + 1) // threads))
