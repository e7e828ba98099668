"""The bytes of a file as UTF-8 text: unpacked, decoded, and refused where they are no text."""

from __future__ import annotations

import codecs
import difflib
import re
import zlib
from pathlib import Path

from mmgibbs.pedigree.errors import TableError
from mmgibbs.pedigree.messages import quoted

UTF8 = "utf-8"  # of tables whose encoding no argument and no key states
ENCODING = "the encoding of the file"  # what messages call the argument `encoding`
UNPACKED_BYTES_ALWAYS_ALLOWED = 1 << 30  # of a gzip file
MAX_UNPACKED_RATIO = 100  # unpacked to packed size of larger ones; tables have 3 to 30
_HEAD_BYTES = 1 << 16  # of an unpacked file, which say whether it is text
_NO_TEXT = {  # how files begin that are often given for a table
    b"PK\x03\x04": "a spreadsheet or zip file",
    b"\xd0\xcf\x11\xe0": "an old spreadsheet (xls)",
    b"\x1f\x8b": "gzipped twice",
    b"BZh": "a bzip2 file",
    b"\xfd7zXZ": "an xz file",
    b"\x28\xb5\x2f\xfd": "a zstd file",
    b"%PDF": "a PDF file",
}
_NEEDED = "needed a text table (save it as csv), parquet or arrow"
_UTF8_MARK = b"\xef\xbb\xbf"
_WINDOWS = "Windows-1252"  # of the spreadsheets of western Europe and America
_CONTROLS = re.compile(rb"[\x01-\x08\x0e-\x1f]")  # characters that no text has


def read_bytes(path: Path, name: str) -> bytes:
    """Read the file's bytes, decompressed. Only a regular file is accepted: a pipe could be read only once."""
    shown = quoted(path, 400)[1:-1]
    try:
        if path.is_symlink() and not path.exists():
            raise TableError(f"{shown}: is a symbolic link that leads to no file")
        if not path.exists():
            beside = difflib.get_close_matches(
                path.name, [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else [], n=1
            )
            hint = (
                f" (beside it: {quoted(beside[0])})"
                if beside
                else ""
                if path.parent.is_dir()
                else f" (there is no folder {quoted(path.parent, 400)[1:-1]})"
            )
            raise TableError(f"{shown}: no such file{hint}")
        if path.is_dir():
            raise TableError(f"{shown}: is a folder, needed a file")
        if not path.is_file():
            raise TableError(f"{shown}: is not a regular file (a device or a pipe), needed a file")
        content = path.read_bytes()
    except OSError as error:
        raise TableError(f"{shown}: cannot be read: {error.strerror or error}") from error
    return unzip(content, name)


def unzip(content: bytes, name: str) -> bytes:
    """Return the content of a gzip file, any other content as it is.

    Raises TableError where it is damaged, or larger than any table is for its packed size: a file of some megabytes can
    be made to fill all memory.
    """
    if content[:2] != b"\x1f\x8b":
        return content
    most = max(UNPACKED_BYTES_ALWAYS_ALLOWED, MAX_UNPACKED_RATIO * len(content))
    parts, size, rest = [], 0, content
    while rest:
        member = zlib.decompressobj(wbits=31)  # of gzip, with its checksum
        try:
            if not size:  # a file of nothing but zeros, which takes seconds to unpack, is told from its beginning
                parts.append(member.decompress(rest, min(_HEAD_BYTES, most + 1)))
                if parts[0] and not parts[0].strip(b"\0"):
                    raise TableError(f"{name}: is a gzip file of zero bytes; needed a text table")
                rest, size = member.unconsumed_tail, len(parts[0])
            parts.append(member.decompress(rest, max(most - size + 1, 1)))
        except zlib.error as error:
            raise TableError(f"{name}: the gzip file is damaged or cut short: {error}") from error
        size += len(parts[-1])
        if size > most:
            raise TableError(
                f"{name}: unpacks to more than {most / 1e9:,.1f} GB from {len(content) / 1e6:,.1f} MB; needed at most "
                f"{MAX_UNPACKED_RATIO} times the packed size, as of any table: if the file is one, unpack it (gunzip) "
                "and give the unpacked file, which has no limit"
            )
        if not member.eof:
            raise TableError(f"{name}: the gzip file is damaged or cut short: its end is missing")
        rest = member.unused_data.lstrip(b"\0")
    return parts[0] if len(parts) == 1 else b"".join(parts)


def decode_text(content: bytes, name: str, encoding: str | None = None) -> tuple[bytes, tuple[str, ...]]:
    """Return the content as UTF-8 without marks of its beginning and end, and a note where it was in another encoding.

    encoding: as Python calls it. None: UTF-8, else Windows-1252, in which spreadsheets of western Europe write text.
    Detectors by frequencies of letters take that for other encodings of the same bytes where a table has few of them.
    """
    for start, kind in _NO_TEXT.items():
        if content.startswith(start):
            raise TableError(f"{name}: is {kind}, {_NEEDED}")
    if encoding is not None:
        return _decode_as(content, name, encoding), ()
    if content.startswith(codecs.BOM_UTF32_LE):  # which begins as UTF-16 does
        raise TableError(f"{name}: is UTF-32 text, needed UTF-8 (save it as 'CSV UTF-8'), or state {ENCODING}: utf-32")
    if _is_utf16(content):
        raise TableError(f"{name}: is UTF-16 text, needed UTF-8 (save it as 'CSV UTF-8'), or state {ENCODING}: utf-16")
    content = _strip_marks(content)
    _refuse_zeros(content, name)
    bad = None if content.isascii() else _first_not_utf8(content)
    if bad is None:
        return content, ()
    if _CONTROLS.search(content):
        raise TableError(f"{name}: is a binary file, {_NEEDED}")
    _refuse_mixed(content, bad, name)
    text = _decode_as(content, name, _WINDOWS)
    return text, (_describe_encoding(text, name),)


def _decode_as(content: bytes, name: str, encoding: str) -> bytes:
    other = "" if encoding == UTF8 else f", or state {ENCODING}"
    try:
        decoded = content.decode(encoding).lstrip("\ufeff").encode()
    except UnicodeDecodeError as error:
        row = content.count(10, 0, error.start) + 1
        raise TableError(
            f"{name} row {row}: found byte 0x{content[error.start]:02x}, which is not text in {encoding}, at byte "
            f"{error.start} of the file: save the file as UTF-8{other}"
        ) from None
    except UnicodeError as error:  # of encodings for other texts than tables, such as idna
        raise TableError(f"{name}: is not text in {encoding} ({error}): save the file as UTF-8{other}") from None
    except (LookupError, ValueError):  # no encoding, or one of bytes, as hex; ValueError of a zero byte in its name
        raise TableError(
            f"{name}: {ENCODING} is stated as {quoted(encoding)}, which is none of text; expected a name such as "
            "utf-8, windows-1252, latin-1, cp850 or utf-16"
        ) from None
    decoded = _strip_marks(decoded)
    _refuse_zeros(decoded, name)
    return decoded


def _strip_marks(content: bytes) -> bytes:
    while content[:3] == _UTF8_MARK:  # twice where a file with one was joined to another
        content = content[3:]
    return content[:-1] if content[-1:] == b"\x1a" else content  # how DOS ends a text


def _refuse_zeros(content: bytes, name: str) -> None:
    bad = content.find(b"\x00")
    if bad >= 0:
        raise TableError(
            f"{name} row {content.count(10, 0, bad) + 1}: found a zero byte, at byte {bad} of the file; {_NEEDED}"
        )


def _is_utf16(content: bytes) -> bool:
    """UTF-16 by its mark, or by the zeros beside the first two characters."""
    has_zeros = content[:2].find(b"\x00") >= 0 and content[2:4].find(b"\x00") >= 0
    return content[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) or has_zeros


def _first_not_utf8(content: bytes) -> int | None:
    try:
        content.decode()
    except UnicodeDecodeError as error:
        return error.start
    return None


def _refuse_mixed(content: bytes, bad: int, name: str) -> None:
    """TableError where some letters are UTF-8 and others are not, as of tables in two encodings put together.

    In one encoding, the same word would be read in two ways. bad: the first byte that is not UTF-8. Text in one-byte
    encodings has next to no neighbours that UTF-8 takes for a letter.
    """
    letter = re.search(r"[^\x00-\x7f\ufffd]", content.decode(errors="replace"))
    if letter is None:
        return
    row = content.count(10, 0, bad) + 1
    of_letter = letter.string.count("\n", 0, letter.start()) + 1
    raise TableError(
        f"{name} row {row}: found byte 0x{content[bad]:02x}, which is not UTF-8 text, at byte {bad} of the file, "
        f"while {quoted(letter[0])} in row {of_letter} is; needed a file in one encoding: save its parts as UTF-8 anew"
        f", or state {ENCODING} where it has a single one"
    )


def _describe_encoding(text: bytes, name: str) -> str:
    said = f"{name}: is not UTF-8 and was read as Windows-1252"
    match = re.search(rb"[^\s;,|\"\x80-\xff]*[\x80-\xff][^\s;,|\"]*", text)
    if match is not None:
        row = text.count(b"\n", 0, match.start()) + 1
        said += f" (row {row}: {quoted(match[0].decode())})"
    return f"{said}; if letters are wrong, state {ENCODING}"
