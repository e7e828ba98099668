"""Kernels of readers: bytes of a file as genotypes.

They stand beside what they fill, so that no kernel depends on tables or on sections of an analysis.
"""

from __future__ import annotations

import numpy as np

from mmgibbs.pedigree.kernels import kernel

SNPS_AT_ONCE = 64  # of one chunk of animals: their words stay in the first cache while digits become bits
BLANK, LINE_END, ZERO, FIVE = 32, 10, 48, 53


@kernel
def split_lines(content, out):
    """Rows of out (lines, 5) int64 for each line of content (bytes,) uint8 that is not blank: where its id begins and
    ends, its string begins and ends (0, 0 where it has not two fields), its number from 1. How many there are."""
    n_lines, begin, line = 0, 0, 0
    while begin < content.size:
        line += 1
        end = begin
        while end < content.size and content[end] != LINE_END:
            end += 1
        fields, at = 0, begin
        while at < end:
            while at < end and content[at] <= BLANK:
                at += 1
            if at == end:
                break
            start = at
            while at < end and content[at] > BLANK:
                at += 1
            fields += 1
            if fields <= 2:
                out[n_lines, 2 * fields - 2] = start
                out[n_lines, 2 * fields - 1] = at
        if fields > 0:
            if fields != 2:
                out[n_lines, 1] = at  # the whole line, for the message
                out[n_lines, 2] = 0
                out[n_lines, 3] = 0
            out[n_lines, 4] = line
            n_lines += 1
        begin = end + 1
    return n_lines


@kernel
def pack_digits(content, start, words):
    """The digits from `start` of each animal as the words of PackedGenotypes; (animal, SNP) of the first that is
    none, or (-1, -1)."""
    n, p = start.size, words.shape[0]
    words[:] = 0xFFFFFFFF
    for chunk in range(words.shape[1]):
        last = min(n, (chunk + 1) * 128)
        for first in range(0, p, SNPS_AT_ONCE):
            for a in range(chunk * 128, last):
                within = a & 127
                shift, lane = np.uint32(2 * (within >> 3)), within & 7
                for j in range(first, min(p, first + SNPS_AT_ONCE)):
                    digit = content[start[a] + j]
                    if digit != FIVE:
                        if digit < ZERO or digit > ZERO + 2:
                            return a, j
                        words[j, chunk, lane] ^= np.uint32(3 - (digit - ZERO)) << shift
    return -1, -1


@kernel
def decode_bed(content, codes, out):
    """out (SNPs, animals) uint8: codes (4,) of the pairs of bits in content (SNPs, bytes), the lowest first."""
    for j in range(out.shape[0]):
        for a in range(out.shape[1]):
            out[j, a] = codes[(content[j, a >> 2] >> np.uint8(2 * (a & 3))) & np.uint8(3)]
