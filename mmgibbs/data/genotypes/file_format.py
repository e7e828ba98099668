"""Which format a file of genotypes has, where its name does not say: by its first bytes."""

from __future__ import annotations

import zlib
from pathlib import Path

HEAD_BYTES = 1 << 24  # of a file, within which its first line must end
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
GZIP = b"\x1f\x8b"


def read_head(path: Path) -> bytes:
    """Return the first bytes of a file, of a gzip file those of its content, as far as it is undamaged."""
    with open(path, "rb") as file:
        head = file.read(HEAD_BYTES)
    if not head.startswith(GZIP):
        return head
    try:
        return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(head, HEAD_BYTES)
    except zlib.error:
        return b""  # the reader says what is wrong


def format_of_content(path: Path) -> str:
    """Return the format by the first bytes; 'table' where they are those of no other.

    BLUPF90 has an id and a string of digits on its first line, HapMap the columns rs#, alleles, chrom, pos.
    """
    head = read_head(path)
    if head.startswith(b"\x6c\x1b"):
        return "pgen" if head[2:3] > b"\x01" else "plink"
    if head.startswith((b"##fileformat=VCF", b"BCF\x02")):
        return "vcf"
    line = head.removeprefix(BYTE_ORDER_MARK).replace(b"\r", b"\n").lstrip().split(b"\n", 1)[0]
    if is_hapmap_header(line.decode(errors="replace")):
        return "hapmap"
    fields = line.split()
    return "blupf90" if len(fields) == 2 and fields[1].isdigit() else "table"


def is_hapmap_header(line: str) -> bool:
    """Whether a line is the header of a HapMap file, however its fields are separated."""
    fields = line.replace(",", " ").replace(";", " ").replace('"', " ").lower().split()[:4]
    return len(fields) == 4 and fields[0] in ("rs#", "rs") and fields[1:] == ["alleles", "chrom", "pos"]
