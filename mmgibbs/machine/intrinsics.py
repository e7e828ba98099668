"""Instructions that Numba cannot express, written for LLVM by hand: the one file that uses private parts of Numba.

Each is here because plain loops were measured to be slower (milliseconds or nanoseconds of one thread, an AMD EPYC):

    dot_packed, add_packed  SNPs times a vector, from 2 bits a genotype: 0.019 ns a genotype; in plain loops 0.33
    set_multiple, ...       rows of k numbers as vectors of k lanes: a loop over 4 numbers takes three times as long
    stack, stack_array      small work arrays in registers: a 4 x 4 factor in an array of the heap takes twice as long
    prefetch                the memory that is read some steps later: a large sweep waits for little else
    load_acquire, ...       a barrier between threads within a kernel (barrier.py), thousands of times in a sweep
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.cpu import CPUContext
from numba.core.errors import TypingError
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array

_I32, _I64, _BYTE = ir.IntType(32), ir.IntType(64), ir.IntType(8)
_SINGLE, _DOUBLE = ir.FloatType(), ir.DoubleType()

# Small arrays


@intrinsic
def stack(typingctx, k_, power, lanes):
    """Address of len(k_)^power * lanes float64 on the stack; k_ is a tuple, power and lanes are literal."""
    if not isinstance(power, types.IntegerLiteral) or not isinstance(lanes, types.IntegerLiteral):
        return None
    size = max(1, len(k_) ** power.literal_value * lanes.literal_value)

    def codegen(context, builder, signature, args):
        memory = cgutils.alloca_once(builder, ir.ArrayType(ir.DoubleType(), size))
        memory.align = 64
        return builder.bitcast(memory, ir.DoubleType().as_pointer())

    return types.CPointer(types.float64)(k_, power, lanes), codegen


def _array_on_stack(shape: Sequence[Any], dtype: Any) -> tuple[Any, Callable] | None:
    sizes = [n.literal_value for n in shape if isinstance(n, types.IntegerLiteral)]
    if len(sizes) < len(shape):
        return None
    array_type: Any = types.Array(dtype, len(sizes), "C")
    size = dtype.bitwidth // 8

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        number, element = context.get_constant, context.get_data_type(dtype)
        memory = cgutils.alloca_once(builder, ir.ArrayType(element, max(1, prod(sizes))))
        memory.align = 64
        array = context.make_array(array_type)(context, builder)
        populate_array(
            array,
            data=builder.bitcast(memory, element.as_pointer()),
            shape=[number(types.intp, n) for n in sizes],
            strides=[number(types.intp, size * prod(sizes[i + 1 :])) for i in range(len(sizes))],
            itemsize=number(types.intp, size),
            meminfo=None,
        )
        return array._getvalue()

    return array_type(shape), codegen


@intrinsic
def stack_array(typingctx, shape):
    """A C-ordered float64 array on the stack, not set; `shape` is a tuple of literal numbers and len() of tuples.

    `carray(stack(...), shape)` in one.
    """
    return _array_on_stack(shape, types.float64)


@intrinsic
def positions_on_stack(typingctx, shape):
    """Allocate an array of uint64 on the stack."""
    return _array_on_stack(shape, types.uint64)


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


# Rows of k numbers as one vector each: k_ is a tuple of k zeros; arrays are C-ordered, float32 or float64


def _row_address(context, builder, array_type, array, index_type, index, k):
    """Address of array[index, :] as a vector of k numbers."""
    if array_type.layout != "C":
        raise TypeError("set_multiple: arrays are in C order")
    real = context.get_value_type(array_type.dtype)
    data = builder.bitcast(context.make_array(array_type)(context, builder, array).data, real.as_pointer())
    place = builder.mul(context.cast(builder, index, index_type, types.int64), ir.Constant(ir.IntType(64), k))
    return builder.bitcast(builder.gep(data, [place]), ir.VectorType(real, k).as_pointer())


def _load_row(builder, address):
    """The row in float64."""
    vector = address.type.pointee
    row = builder.load(address, align=8 if vector.element == _DOUBLE else 4)
    return row if vector.element == _DOUBLE else builder.fpext(row, ir.VectorType(_DOUBLE, vector.count))


def _store_row(builder, row, address):
    vector = address.type.pointee
    if vector.element == _DOUBLE:
        builder.store(row, address, align=8)
    else:
        builder.store(builder.fptrunc(row, vector), address, align=4)


def _repeat_number(builder, number, k):
    vector = ir.VectorType(_DOUBLE, k)
    first = builder.insert_element(ir.Constant(vector, ir.Undefined), number, _I32(0))
    return builder.shuffle_vector(
        first, ir.Constant(vector, ir.Undefined), ir.Constant(ir.VectorType(_I32, k), [0] * k)
    )


def _multiple(k_, out, i, a, source, j, adds):
    k = len(k_)

    def codegen(context, builder, signature, args):
        _, out_type, i_type, a_type, source_type, j_type = signature.args
        target = _row_address(context, builder, out_type, args[1], i_type, args[2], k)
        row = _load_row(builder, _row_address(context, builder, source_type, args[4], j_type, args[5], k))
        factor = _repeat_number(builder, context.cast(builder, args[3], a_type, types.float64), k)
        row = builder.fmul(factor, row, flags=["contract"])
        _store_row(builder, builder.fadd(_load_row(builder, target), row, flags=["contract"]) if adds else row, target)
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
        row = _load_row(builder, _row_address(context, builder, source_type, args[3], j_type, args[4], T))
        zeros, lanes = ir.Constant(row.type, None), ir.Constant(ir.VectorType(_I32, W), list(range(T)) + [T] * (W - T))
        first = _row_address(context, builder, out_type, args[2], types.int64, ir.Constant(ir.IntType(64), 0), W)
        _store_row(builder, builder.shuffle_vector(row, zeros, lanes), first)
        return context.get_dummy_value()

    return types.void(T_, W_, out, source, j), codegen


# Counters that threads share


def _counter_address(
    context: CPUContext, builder: ir.IRBuilder, array_type: types.Array, array: ir.Value, row: ir.Value
) -> ir.Value:
    data = context.make_array(array_type)(context, builder, array)
    shape = cgutils.unpack_tuple(builder, data.shape)
    return builder.gep(data.data, [builder.mul(row, shape[1])])


@intrinsic
def load_acquire(typingctx, arrived, row):
    """arrived[row, 0], after which nothing is read that stands later."""

    def codegen(context, builder, signature, args):
        row = context.cast(builder, args[1], signature.args[1], types.int64)
        address = _counter_address(context, builder, signature.args[0], args[0], row)
        return builder.load_atomic(address, "acquire", 8)

    return types.int64(arrived, row), codegen


@intrinsic
def store_release(typingctx, arrived, row, value):
    """arrived[row, 0] = value, after everything that was written before."""

    def codegen(context, builder, signature, args):
        row = context.cast(builder, args[1], signature.args[1], types.int64)
        value = context.cast(builder, args[2], signature.args[2], types.int64)
        address = _counter_address(context, builder, signature.args[0], args[0], row)
        builder.store_atomic(value, address, "release", 8)
        return context.get_dummy_value()

    return types.void(arrived, row, value), codegen


@intrinsic
def pause(typingctx):
    """Tell the processor that this is a loop of looks, where it has a word for that."""

    def codegen(context, builder, signature, args):
        if context.codegen().magic_tuple()[0].startswith("x86_64"):
            kind = ir.FunctionType(ir.VoidType(), [])
            builder.call(cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.sse2.pause"), [])
        return context.get_dummy_value()

    return types.void(), codegen


# Products of SNPs with a vector

CHUNK = 128  # animals, of a chunk of genotypes (genotypes/products.py)
WORDS = 8  # uint32 of a chunk, 16 animals each
MISSING_FIXED = 255  # code of a missing genotype of 8 bits
LANES = 16
GROUP = 4  # chunks that are added in the precision of v before they go to float64


def _vector(number: ir.Type, count: int = LANES) -> ir.VectorType:
    return ir.VectorType(number, count)


def _constants(number: ir.Type, values: Sequence[float]) -> ir.Constant:
    return ir.Constant(_vector(number, len(values)), list(values))


def _shuffle(builder: ir.IRBuilder, a: ir.Value, b: ir.Value, places: Sequence[int]) -> ir.Value:
    return builder.shuffle_vector(a, b, _constants(_I32, places))


def _repeat(builder: ir.IRBuilder, vector_type: ir.VectorType, number: ir.Value) -> ir.Value:
    none = ir.Constant(vector_type, ir.Undefined)
    return _shuffle(builder, builder.insert_element(none, number, _I32(0)), none, [0] * vector_type.count)


def _bytes(number: ir.Type) -> int:
    return {_SINGLE: 4, _DOUBLE: 8, _I32: 4, _BYTE: 1}[number]


def _load(builder: ir.IRBuilder, address: ir.Value, vector_type: ir.VectorType) -> ir.Value:
    """The vector at an address that is aligned as its elements are."""
    return builder.load(builder.bitcast(address, vector_type.as_pointer()), align=_bytes(vector_type.element))


def _function(builder: ir.IRBuilder, name: str, result: ir.Type, arguments: Sequence[ir.Type]) -> ir.Function:
    return cgutils.get_or_insert_function(builder.module, ir.FunctionType(result, arguments), name)


def _fma(builder: ir.IRBuilder, a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
    width = "f32" if a.type.element == _SINGLE else "f64"
    fma = _function(builder, f"llvm.fma.v{a.type.count}{width}", a.type, [a.type] * 3)
    return builder.call(fma, [a, b, c])


class _Array:
    """Addresses in a C-ordered array."""

    def __init__(self, context: CPUContext, builder: ir.IRBuilder, array_type: types.Array, value: ir.Value):
        if array_type.layout != "C":
            raise TypeError("products: arrays are in C order")
        array = context.make_array(array_type)(context, builder, value)
        self.context, self.builder, self.data, self.dtype = context, builder, array.data, array_type.dtype
        self.shape = cgutils.unpack_tuple(builder, array.shape)

    def at(self, *index: ir.Value) -> ir.Value:
        place = _I64(0)
        for length, i in zip(self.shape, index, strict=True):
            place = self.builder.add(self.builder.mul(place, length), i)
        return self.builder.gep(self.data, [place])


def _features(context: CPUContext) -> set[str]:
    triple, _, features = context.codegen().magic_tuple()
    return set(features.split(",")) if triple.startswith("x86_64") else set()


class _Packed:
    """16 neighbouring animals of one row at a time, from 2 bits each."""

    def __init__(self, context: CPUContext, builder: ir.IRBuilder, genotypes: _Array, row: ir.Value, numbers: ir.Value):
        self.builder, self.genotypes, self.row, self.features = builder, genotypes, row, _features(context)
        self.four = [builder.load(builder.gep(numbers, [_I64(k)])) for k in range(4)]
        self.table = _load(builder, numbers, _vector(_SINGLE, 4))
        if "+avx" in self.features:
            none = ir.Constant(self.table.type, ir.Undefined)
            wide = LANES if "+avx512f" in self.features else WORDS
            self.table = _shuffle(builder, self.table, none, list(range(4)) * (wide // 4))

    def start(self, chunk: ir.Value) -> None:
        words = _load(self.builder, self.genotypes.at(self.row, chunk, _I64(0)), _vector(_I32, WORDS))
        self.words = words if "+avx" in self.features and "+avx512f" not in self.features else self._twice(words)

    def _twice(self, words: ir.Value) -> ir.Value:
        return _shuffle(self.builder, words, ir.Constant(words.type, ir.Undefined), list(range(WORDS)) * 2)

    def step(self, s: int) -> ir.Value:
        """(16,) float32 of animals 16 s .. 16 s + 15 of the chunk."""
        builder = self.builder
        low, high = [4 * s] * WORDS, [4 * s + 2] * WORDS
        if "+avx512f" in self.features:
            name = "llvm.x86.avx512.vpermilvar.ps.512"
            return self._permuted(name, builder.lshr(self.words, _constants(_I32, low + high)))
        if "+avx" in self.features:
            name = "llvm.x86.avx.vpermilvar.ps.256"
            halves = [self._permuted(name, builder.lshr(self.words, _constants(_I32, shift))) for shift in (low, high)]
            return _shuffle(builder, halves[0], halves[1], range(LANES))
        return self._compared(builder.lshr(self.words, _constants(_I32, low + high)))

    def _permuted(self, name: str, control: ir.Value) -> ir.Value:
        kind = self.table.type
        return self.builder.call(_function(self.builder, name, kind, [kind, control.type]), [self.table, control])

    def _compared(self, codes: ir.Value) -> ir.Value:
        builder = self.builder
        zero = _constants(_I32, [0] * LANES)
        odd, upper = (
            builder.icmp_signed("!=", builder.and_(codes, _constants(_I32, [bit] * LANES)), zero) for bit in (1, 2)
        )
        a, b, c, d = (_repeat(builder, _vector(_SINGLE), number) for number in self.four)
        return builder.select(upper, builder.select(odd, d, c), builder.select(odd, b, a))


class _Dense:
    """16 neighbouring animals of one row at a time, from one byte or one float32 each."""

    def __init__(self, context: CPUContext, builder: ir.IRBuilder, genotypes: _Array, row: ir.Value, numbers: ir.Value):
        self.builder, self.genotypes, self.row = builder, genotypes, row
        self.slope, self.constant, self.missing = (
            _repeat(builder, _vector(_SINGLE), builder.load(builder.gep(numbers, [_I64(k)]))) for k in (0, 1, 3)
        )

    def start(self, chunk: ir.Value) -> None:
        self.chunk = chunk

    def step(self, s: int) -> ir.Value:
        builder = self.builder
        address = self.genotypes.at(self.row, self.chunk, _I64(LANES * s))
        if self.genotypes.dtype == types.float32:
            dosage = _load(builder, address, _vector(_SINGLE))
            known = builder.fcmp_ordered("ord", dosage, dosage)
        else:
            codes = _load(builder, address, _vector(_BYTE))
            known = builder.icmp_unsigned("!=", codes, _constants(_BYTE, [MISSING_FIXED] * LANES))
            dosage = builder.uitofp(builder.zext(codes, _vector(_I32)), _vector(_SINGLE))
        return builder.select(known, _fma(builder, dosage, self.slope, self.constant), self.missing)


def _decoders(
    context: CPUContext,
    builder: ir.IRBuilder,
    genotypes: _Array,
    rows: _Array,
    at: ir.Value,
    values: _Array,
    k: int,
) -> list[_Packed | _Dense]:
    """Make the decoders of the k rows rows[at] .. rows[at + k - 1]."""
    kind = _Packed if genotypes.dtype == types.uint32 else _Dense
    places = [builder.load(rows.at(builder.add(at, _I64(i)))) for i in range(k)]
    return [kind(context, builder, genotypes, row, values.at(row, _I64(0))) for row in places]


def _refuse(genotypes: types.Array, rows: types.Array, values: types.Array, v: types.Array) -> None:
    """TypingError for arrays that the code below would misread: it sees addresses alone."""
    kinds = {types.uint32, types.uint8, types.float32}
    if genotypes.dtype not in kinds or rows.dtype != types.int64 or values.dtype != types.float32:
        raise TypingError(f"products: found {genotypes}, {rows}, {values}; needed a store, int64 rows, float32 values")
    if v.dtype not in (types.float32, types.float64):
        raise TypingError(f"products: found {v}; needed float32 or float64")


def _widened(builder: ir.IRBuilder, lanes: ir.Value) -> ir.Value:
    return lanes if lanes.type.element == _DOUBLE else builder.fpext(lanes, _vector(_DOUBLE))


def _sum_of_lanes(builder: ir.IRBuilder, lanes: ir.Value) -> ir.Value:
    while lanes.type.count > 1:
        half, none = lanes.type.count // 2, ir.Constant(lanes.type, ir.Undefined)
        low, high = (_shuffle(builder, lanes, none, range(at, at + half)) for at in (0, half))
        lanes = builder.fadd(low, high)
    return builder.extract_element(lanes, _I32(0))


@intrinsic
def dot_packed(typingctx, k_, genotypes, rows, at, values, v, first, stop, out):
    """dot_rows for the len(k_) rows rows[at], ..."""
    _refuse(genotypes, rows, values, v)
    if out.dtype != types.float64:
        raise TypingError(f"products: found {out}; needed float64")
    k = len(k_)

    def codegen(context, builder, signature, args):
        array = {n: _Array(context, builder, signature.args[n], args[n]) for n in (1, 2, 4, 5, 8)}
        genotypes, rows, values, v, out = (array[n] for n in (1, 2, 4, 5, 8))
        at, first, stop = (context.cast(builder, args[n], signature.args[n], types.int64) for n in (3, 6, 7))
        real = context.get_value_type(v.dtype)
        decoders = _decoders(context, builder, genotypes, rows, at, values, k)
        totals = [cgutils.alloca_once_value(builder, _constants(_DOUBLE, [0.0] * LANES)) for _ in range(k)]
        sums = [cgutils.alloca_once(builder, _vector(real)) for _ in range(k)]
        with cgutils.for_range_slice(builder, first, stop, _I64(GROUP), inc=True) as (begin, _):
            for lanes in sums:
                builder.store(_constants(real, [0.0] * LANES), lanes)
            end = builder.add(begin, _I64(GROUP))
            end = builder.select(builder.icmp_signed("<", end, stop), end, stop)
            with cgutils.for_range_slice(builder, begin, end, _I64(1), inc=True) as (chunk, _):
                for decoder in decoders:
                    decoder.start(chunk)
                place = builder.mul(chunk, _I64(CHUNK))
                for s in range(CHUNK // LANES):
                    words = _load(builder, v.at(builder.add(place, _I64(LANES * s))), _vector(real))
                    for decoder, lanes in zip(decoders, sums, strict=True):
                        x = decoder.step(s)
                        x = x if real == _SINGLE else builder.fpext(x, _vector(_DOUBLE))
                        builder.store(_fma(builder, x, words, builder.load(lanes)), lanes)
            for lanes, total in zip(sums, totals, strict=True):
                builder.store(builder.fadd(builder.load(total), _widened(builder, builder.load(lanes))), total)
        for i, total in enumerate(totals):
            address = out.at(builder.add(at, _I64(i)))
            builder.store(builder.fadd(builder.load(address), _sum_of_lanes(builder, builder.load(total))), address)
        return context.get_dummy_value()

    return types.void(k_, genotypes, rows, at, values, v, first, stop, out), codegen


@intrinsic
def add_packed(typingctx, k_, genotypes, rows, at, values, by, first, stop, out):
    """add_rows for the len(k_) rows rows[at], ..."""
    _refuse(genotypes, rows, values, out)
    k = len(k_)

    def codegen(context, builder, signature, args):
        array = {n: _Array(context, builder, signature.args[n], args[n]) for n in (1, 2, 4, 5, 8)}
        genotypes, rows, values, by, out = (array[n] for n in (1, 2, 4, 5, 8))
        at, first, stop = (context.cast(builder, args[n], signature.args[n], types.int64) for n in (3, 6, 7))
        real = context.get_value_type(out.dtype)
        decoders = _decoders(context, builder, genotypes, rows, at, values, k)
        factors = []
        for i in range(k):
            number = context.cast(builder, builder.load(by.at(builder.add(at, _I64(i)))), by.dtype, out.dtype)
            factors.append(_repeat(builder, _vector(real), number))
        with cgutils.for_range_slice(builder, first, stop, _I64(1), inc=True) as (chunk, _):
            for decoder in decoders:
                decoder.start(chunk)
            place = builder.mul(chunk, _I64(CHUNK))
            for s in range(CHUNK // LANES):
                address = out.at(builder.add(place, _I64(LANES * s)))
                lanes = _load(builder, address, _vector(real))
                for decoder, factor in zip(decoders, factors, strict=True):
                    x = decoder.step(s)
                    x = x if real == _SINGLE else builder.fpext(x, _vector(_DOUBLE))
                    lanes = _fma(builder, x, factor, lanes)
                builder.store(lanes, builder.bitcast(address, lanes.type.as_pointer()), align=_bytes(real))
        return context.get_dummy_value()

    return types.void(k_, genotypes, rows, at, values, by, first, stop, out), codegen
