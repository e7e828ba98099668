"""Small work arrays on the stack: the compiler keeps them in registers once the loops over them are unrolled.

An array from np.empty lies on the heap, where every element written must be assumed to alias every other array; a 4 x 4
Cholesky factor then costs about twice as much. `stack(k_, power, lanes)` gives the address of len(k_)^power * lanes
floats; wrap it with `carray` *in the function that uses it*, since the memory is gone when that function returns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array


@intrinsic
def stack(typingctx, k_, power, lanes):
    """Address of len(k_)^power * lanes float64 on the stack; k_ is a tuple, power and lanes are literal."""
    if not isinstance(power, types.IntegerLiteral) or not isinstance(lanes, types.IntegerLiteral):
        return None
    size = max(1, len(k_) ** power.literal_value * lanes.literal_value)

    def codegen(context, builder, signature, args):
        room = cgutils.alloca_once(builder, ir.ArrayType(ir.DoubleType(), size))
        room.align = 64
        return builder.bitcast(room, ir.DoubleType().as_pointer())

    return types.CPointer(types.float64)(k_, power, lanes), codegen


def _array_on_stack(shape: Sequence[Any], dtype: Any) -> tuple[Any, Callable] | None:
    sizes = [n.literal_value for n in shape if isinstance(n, types.IntegerLiteral)]
    if len(sizes) < len(shape):
        return None
    array_type: Any = types.Array(dtype, len(sizes), "C")
    size = dtype.bitwidth // 8

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        number, element = context.get_constant, context.get_data_type(dtype)
        room = cgutils.alloca_once(builder, ir.ArrayType(element, max(1, prod(sizes))))
        room.align = 64
        array = context.make_array(array_type)(context, builder)
        populate_array(
            array,
            data=builder.bitcast(room, element.as_pointer()),
            shape=[number(types.intp, n) for n in sizes],
            strides=[number(types.intp, size * prod(sizes[i + 1 :])) for i in range(len(sizes))],
            itemsize=number(types.intp, size),
            meminfo=None,
        )
        return array._getvalue()

    return array_type(shape), codegen


@intrinsic
def on_stack(typingctx, shape):
    """A C-ordered float64 array on the stack, not set; `shape` is a tuple of literal numbers and len() of tuples.

    `carray(stack(...), shape)` in one, for functions that are compiled without counts of references (_nrt=False).
    """
    return _array_on_stack(shape, types.float64)


@intrinsic
def positions_on_stack(typingctx, shape):
    """The same of uint64."""
    return _array_on_stack(shape, types.uint64)


@intrinsic
def clear(typingctx, array):
    """All numbers of a C-ordered array are 0: one instruction, where an assignment is loops that are compiled anew."""
    if not isinstance(array, types.Array) or array.layout != "C":
        return None

    def codegen(context, builder, signature, args):
        numbers = context.make_array(array)(context, builder, args[0])
        cgutils.memset(builder, numbers.data, builder.mul(numbers.nitems, numbers.itemsize), 0)
        return context.get_dummy_value()

    return types.void(array), codegen


@intrinsic
def least(typingctx, a, b):
    """The smaller of two unsigned numbers of one type: one instruction, where `min` is a function that is compiled for
    each set of options of its callers."""
    if a != b or not isinstance(a, types.Integer) or a.signed:
        return None

    def codegen(context, builder, signature, args):
        return builder.select(builder.icmp_unsigned("<", *args), *args)

    return a(a, b), codegen


@intrinsic
def prefetch(typingctx, array, row):
    """Ask for the cache line of array[row] (first dimension, C order), without waiting for it."""

    def codegen(context, builder, signature, args):
        array_type, _ = signature.args
        data = context.make_array(array_type)(context, builder, args[0])
        stride = cgutils.unpack_tuple(builder, data.strides)[0]
        byte = ir.IntType(8)
        index = context.cast(builder, args[1], signature.args[1], types.int64)
        address = builder.gep(builder.bitcast(data.data, byte.as_pointer()), [builder.mul(index, stride)])
        i32 = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte.as_pointer(), i32, i32, i32])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        builder.call(function, [address, i32(0), i32(3), i32(1)])  # for reading, keep in all levels of cache, data
        return context.get_dummy_value()

    return types.void(array, row), codegen
