"""Products of SNPs with a vector over animals, straight from stored genotypes.

For rows (SNPs) j_1 .. j_m of the array and chunks first .. stop - 1 of 128 animals each,

    dot_rows(genotypes, rows, values, v, first, stop, out)      out[i] += sum_a x[j_i, a] v[a]
    add_rows(genotypes, rows, values, by, first, stop, out)     out[a] += sum_i by[i] x[j_i, a]

where x[j, a] is the number that represents the genotype of animal a. `genotypes` is one of

    (p, chunks, 8) uint32     2 bits a genotype: animal 8 s + l of its chunk in bits 2 s and 2 s + 1 of word l;
                              x = values[j, code], code 3 is missing
    (p, chunks, 128) uint8    fixed point: x = values[j, 0] code + values[j, 1], 255 is missing: x = values[j, 3]
    (p, chunks, 128) float32  x = values[j, 0] dosage + values[j, 1], NaN is missing: x = values[j, 3]

and `values` (p, 4) float32 are those of a store (`mmgibbs.genotypes.store`). v and out over animals are float32 or
float64, of 128 chunks numbers; out of dot_rows is float64 (m,), rows int64 (m,), by a float (m,). All are C-ordered,
and no bounds are checked. The places after the last animal are missing.

**Centred genotypes for nothing.** With values[j] = (0 - c, 1 - c, 2 - c, 0) x is centred and a missing genotype is the
mean of its column, exactly: nothing is corrected afterwards, and code 3 costs what the others cost.

**Order of a sum**, the same on every machine: 16 lanes, animal a in lane a mod 16; a lane adds GROUP chunks in the
precision of v, then in float64; at the end the lanes are added, half onto half. Each product is one fused multiply-add.

**Why this layout.** One constant shift of the 8 words brings 8 neighbouring animals to the lowest bits of 8 lanes, and
one permutation, which reads the lowest 2 bits of each lane alone, replaces each by its number: shift, permute,
multiply-add for 8 genotypes, or 16 with AVX-512, and several SNPs share each load of v. Elsewhere than on x86 with AVX
the same numbers are chosen by comparisons. Nanoseconds per genotype, 10,000 animals x 1,000 SNPs, one thread, v in
float32 (float64), an AMD EPYC with AVX-512 and the same restricted to AVX2:

    layout                                              AVX-512            AVX2
    this one, dot_rows                                  0.019 (0.051)      0.031 (0.096)
    this one, add_rows                                  0.016 (0.048)      0.027 (0.096)
    a byte a genotype, dot                              0.035              0.047
    float32 a genotype, dot (memory is the limit)       0.12               0.66
    order of .bed, table of 256 x 4 numbers, dot        0.25               0.28
    this one, dot in plain loops of Numba               0.33               0.32
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.core.cpu import CPUContext
from numba.core.errors import TypingError
from numba.extending import intrinsic

CHUNK = 128  # animals
WORDS = 8  # uint32 of a chunk, 16 animals each
MISSING = 3  # code of 2 bits
MISSING_FIXED = 255  # code of fixed point
LANES = 16
GROUP = 4  # chunks that are added in the precision of v before they go to float64
DOTS, SUMS = 3, 4  # SNPs at once: as many as 16 registers of AVX2 hold

_I32, _I64, _BYTE = ir.IntType(32), ir.IntType(64), ir.IntType(8)
_SINGLE, _DOUBLE = ir.FloatType(), ir.DoubleType()


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
    """Those of the k rows rows[at] .. rows[at + k - 1]."""
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
def _dot(typingctx, k_, genotypes, rows, at, values, v, first, stop, out):
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
                    part = _load(builder, v.at(builder.add(place, _I64(LANES * s))), _vector(real))
                    for decoder, lanes in zip(decoders, sums, strict=True):
                        x = decoder.step(s)
                        x = x if real == _SINGLE else builder.fpext(x, _vector(_DOUBLE))
                        builder.store(_fma(builder, x, part, builder.load(lanes)), lanes)
            for lanes, total in zip(sums, totals, strict=True):
                builder.store(builder.fadd(builder.load(total), _widened(builder, builder.load(lanes))), total)
        for i, total in enumerate(totals):
            address = out.at(builder.add(at, _I64(i)))
            builder.store(builder.fadd(builder.load(address), _sum_of_lanes(builder, builder.load(total))), address)
        return context.get_dummy_value()

    return types.void(k_, genotypes, rows, at, values, v, first, stop, out), codegen


@intrinsic
def _add(typingctx, k_, genotypes, rows, at, values, by, first, stop, out):
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
                part = _load(builder, address, _vector(real))
                for decoder, factor in zip(decoders, factors, strict=True):
                    x = decoder.step(s)
                    x = x if real == _SINGLE else builder.fpext(x, _vector(_DOUBLE))
                    part = _fma(builder, x, factor, part)
                builder.store(part, builder.bitcast(address, part.type.as_pointer()), align=_bytes(real))
        return context.get_dummy_value()

    return types.void(k_, genotypes, rows, at, values, by, first, stop, out), codegen


_DOTS, _SUMS = (0,) * DOTS, (0,) * SUMS


@njit(cache=True, nogil=True, error_model="numpy", fastmath=False)
def dot_rows(genotypes, rows, values, v, first, stop, out):
    """out[i] += x[rows[i], :] . v over chunks first .. stop - 1; the order of each sum does not depend on `rows`."""
    i = 0
    while i + DOTS <= rows.size:
        _dot(_DOTS, genotypes, rows, i, values, v, first, stop, out)
        i += DOTS
    while i < rows.size:
        _dot((0,), genotypes, rows, i, values, v, first, stop, out)
        i += 1


@njit(cache=True, nogil=True, error_model="numpy", fastmath=False)
def add_rows(genotypes, rows, values, by, first, stop, out):
    """out += sum over i of by[i] x[rows[i], :] over chunks first .. stop - 1, in the order of `rows`."""
    i = 0
    while i + SUMS <= rows.size:
        _add(_SUMS, genotypes, rows, i, values, by, first, stop, out)
        i += SUMS
    while i < rows.size:
        _add((0,), genotypes, rows, i, values, by, first, stop, out)
        i += 1
