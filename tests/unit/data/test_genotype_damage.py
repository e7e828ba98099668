"""Files of genotypes that were cut short or changed on their way: refused by name, or read as far as they are right."""

import numpy as np
import pytest
from helpers.genotype_files import (
    CODES,
    IDS,
    SNPS,
    WRITERS,
    lines_of_blupf90,
    opened,
    write_bcf,
    write_bed,
    write_compressed_vcf,
    write_csv,
    write_gzipped_blupf90,
    write_gzipped_csv,
    write_gzipped_hapmap,
    write_gzipped_vcf,
    write_parquet,
    write_pgen,
)
from helpers.selection import first

from mmgibbs.errors import DataError

WITH_CHECKSUMS = [
    write_gzipped_blupf90, write_gzipped_csv, write_gzipped_vcf, write_compressed_vcf, write_bcf, write_gzipped_hapmap,
]  # fmt: skip
OF_KNOWN_SIZE = [*WITH_CHECKSUMS, write_parquet, write_bed, write_pgen]
MOST_LINES = 7  # of a message: five rows, how many more there are, and a hint
RNG = np.random.default_rng(11)


def read_damaged(path, keys, part):
    """(ids, SNPs, codes) as far as the file is read; None where it is refused by its name."""
    try:
        file = opened(path, **keys)
        return file.ids.to_list(), file.snps["snp"].to_list(), file.source.block(0, file.n_snps)
    except DataError as error:
        message = str(error)
        assert part.name in message or path.name in message, message
        assert len(message.splitlines()) <= MOST_LINES and "Traceback" not in message
        return None


def places(size, most):
    """All places in a small file, some of a larger one."""
    return range(size) if size <= most else np.sort(RNG.choice(size, most, replace=False))


def parts_of(write, folder):
    path, keys = write(folder)
    endings = {"g.bed": ("bed", "bim", "fam"), "g.pgen": ("pgen", "pvar", "psam")}.get(path.name)
    files = [path.with_suffix(f".{ending}") for ending in endings] if endings else [path]
    files += [path.parent / "map.txt"] * ("map" in keys)
    return path, keys, files


@pytest.mark.parametrize("write", first(4, WRITERS))
def test_any_byte_may_be_another(write, tmp_path):
    path, keys, files = parts_of(write, tmp_path)
    for part in files:
        content = part.read_bytes()
        for place in places(len(content), 30):
            changed = bytearray(content)
            changed[place] ^= 1 << int(RNG.integers(8))
            part.write_bytes(changed)
            found = read_damaged(path, keys, part)
            if found is not None and write in WITH_CHECKSUMS and part == path:
                assert (found[0], found[1]) == (IDS, SNPS) and np.array_equal(found[2], CODES)
        part.write_bytes(content)


@pytest.mark.parametrize("write", first(4, WRITERS))
def test_any_file_may_be_cut_short(write, tmp_path):
    path, keys, files = parts_of(write, tmp_path)
    for part in files:
        content = part.read_bytes()
        for place in places(len(content), 30):
            part.write_bytes(content[:place])
            found = read_damaged(path, keys, part)
            if part != path:
                assert found is None or np.array_equal(found[2], CODES)
            elif write in OF_KNOWN_SIZE:
                assert found is None, f"read though it ends at byte {place} of {len(content)}"
            elif found is not None:  # text: what is there is right, but for the last line, which may be cut, too
                ids, snps, codes = found
                assert ids == IDS[: len(ids)] and snps == SNPS[: len(snps)]
                assert np.array_equal(codes[:-1, :-1], CODES[: len(snps) - 1, : len(ids) - 1])
        part.write_bytes(content)


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize(
    "content", [b"", b"\0" * 200, b"\xff" * 200, b"\n\n\n", b"PK\x03\x04" + b"x" * 99, b"\x1f\x8bx"]
)
def test_what_is_no_such_file_is_refused(write, content, tmp_path):
    path, keys, files = parts_of(write, tmp_path)
    for part in files:
        before = part.read_bytes()
        part.write_bytes(content)
        assert read_damaged(path, keys, part) is None
        part.write_bytes(before)


@pytest.mark.parametrize("write", [write_csv, write_bed])
def test_a_folder_and_a_missing_file_are_refused(write, tmp_path):
    path, keys, files = parts_of(write, tmp_path)
    for part in files:
        part.unlink()
        assert read_damaged(path, keys, part) is None
        part.mkdir()
        assert read_damaged(path, keys, part) is None
        part.rmdir()
        write(tmp_path)


def test_lengths_are_compared_with_those_of_most_lines(tmp_path):
    (tmp_path / "g.txt").write_text("\n".join(["animal genotypes", *lines_of_blupf90()]))
    with pytest.raises(DataError, match="^g.txt row 1: found 9 genotypes; needed 7, as in row 2$"):
        opened(tmp_path / "g.txt", format="blupf90")
