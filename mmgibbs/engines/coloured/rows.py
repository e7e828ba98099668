"""Multiples of rows of k numbers, as one vector instruction each.

    set_multiple(k_, out, i, a, source, j)      out[i, :] = a source[j, :]
    add_multiple(k_, out, i, a, source, j)      out[i, :] += a source[j, :]
    widen(T_, W_, out, source, j)               out[0, :] = source[j, :], then zeros

k_ is a tuple of k zeros; out (.., k) and source (.., k) are C-ordered, float32 or float64, and `a` is a number. Sums
and products are float64. Numba does not make vectors of a few consecutive numbers on its own; a loop over k = 4
elements costs about three times as much.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

DOUBLE, WORD = ir.DoubleType(), ir.IntType(32)


def _address(context, builder, array_type, array, index_type, index, k):
    """Address of array[index, :] as a vector of k numbers."""
    if array_type.layout != "C":
        raise TypeError("rows: arrays are in C order")
    real = context.get_value_type(array_type.dtype)
    data = builder.bitcast(context.make_array(array_type)(context, builder, array).data, real.as_pointer())
    place = builder.mul(context.cast(builder, index, index_type, types.int64), ir.Constant(ir.IntType(64), k))
    return builder.bitcast(builder.gep(data, [place]), ir.VectorType(real, k).as_pointer())


def _load(builder, address):
    """The row in float64."""
    vector = address.type.pointee
    row = builder.load(address, align=8 if vector.element == DOUBLE else 4)
    return row if vector.element == DOUBLE else builder.fpext(row, ir.VectorType(DOUBLE, vector.count))


def _store(builder, row, address):
    vector = address.type.pointee
    if vector.element == DOUBLE:
        builder.store(row, address, align=8)
    else:
        builder.store(builder.fptrunc(row, vector), address, align=4)


def _repeat(builder, number, k):
    vector = ir.VectorType(DOUBLE, k)
    first = builder.insert_element(ir.Constant(vector, ir.Undefined), number, WORD(0))
    return builder.shuffle_vector(
        first, ir.Constant(vector, ir.Undefined), ir.Constant(ir.VectorType(WORD, k), [0] * k)
    )


def _multiple(k_, out, i, a, source, j, adds):
    k = len(k_)

    def codegen(context, builder, signature, args):
        _, out_type, i_type, a_type, source_type, j_type = signature.args
        target = _address(context, builder, out_type, args[1], i_type, args[2], k)
        row = _load(builder, _address(context, builder, source_type, args[4], j_type, args[5], k))
        factor = _repeat(builder, context.cast(builder, args[3], a_type, types.float64), k)
        row = builder.fmul(factor, row, flags=["contract"])
        _store(builder, builder.fadd(_load(builder, target), row, flags=["contract"]) if adds else row, target)
        return context.get_dummy_value()

    return types.void(k_, out, i, a, source, j), codegen


@intrinsic
def set_multiple(typingctx, k_, out, i, a, source, j):
    """out[i, :] = a source[j, :]."""
    return _multiple(k_, out, i, a, source, j, adds=False)


@intrinsic
def add_multiple(typingctx, k_, out, i, a, source, j):
    """out[i, :] += a source[j, :]."""
    return _multiple(k_, out, i, a, source, j, adds=True)


@intrinsic
def widen(typingctx, T_, W_, out, source, j):
    """out[0, :] = source[j, :] and zeros; out (1, len(W_)), source (.., len(T_))."""
    T, W = len(T_), len(W_)

    def codegen(context, builder, signature, args):
        _, _, out_type, source_type, j_type = signature.args
        row = _load(builder, _address(context, builder, source_type, args[3], j_type, args[4], T))
        zeros, lanes = ir.Constant(row.type, None), ir.Constant(ir.VectorType(WORD, W), list(range(T)) + [T] * (W - T))
        first = _address(context, builder, out_type, args[2], types.int64, ir.Constant(ir.IntType(64), 0), W)
        _store(builder, builder.shuffle_vector(row, zeros, lanes), first)
        return context.get_dummy_value()

    return types.void(T_, W_, out, source, j), codegen
