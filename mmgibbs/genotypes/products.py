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

from mmgibbs.machine.intrinsics import CHUNK, GROUP, LANES, MISSING_FIXED, WORDS, add_packed, dot_packed
from mmgibbs.pedigree.kernels import kernel

__all__ = ["CHUNK", "GROUP", "LANES", "MISSING", "MISSING_FIXED", "WORDS", "add_rows", "dot_rows"]

MISSING = 3  # code of 2 bits
DOTS, SUMS = 3, 4  # SNPs at once: as many as 16 registers of AVX2 hold


_DOTS, _SUMS = (0,) * DOTS, (0,) * SUMS


@kernel(fastmath=False)
def dot_rows(genotypes, rows, values, v, first, stop, out):
    """out[i] += x[rows[i], :] . v over chunks first .. stop - 1; the order of each sum does not depend on `rows`."""
    i = 0
    while i + DOTS <= rows.size:
        dot_packed(_DOTS, genotypes, rows, i, values, v, first, stop, out)
        i += DOTS
    while i < rows.size:
        dot_packed((0,), genotypes, rows, i, values, v, first, stop, out)
        i += 1


@kernel(fastmath=False)
def add_rows(genotypes, rows, values, by, first, stop, out):
    """out += sum over i of by[i] x[rows[i], :] over chunks first .. stop - 1, in the order of `rows`."""
    i = 0
    while i + SUMS <= rows.size:
        add_packed(_SUMS, genotypes, rows, i, values, by, first, stop, out)
        i += SUMS
    while i < rows.size:
        add_packed((0,), genotypes, rows, i, values, by, first, stop, out)
        i += 1
