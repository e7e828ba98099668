"""Windows of neighbouring SNPs, by a map and without one."""

import polars as pl
import pytest

from mmgibbs.config.markers import Windows
from mmgibbs.data.genotypes.windows import placed

PLACES = [("10", 5.0), ("2", 1.0), ("X", 3.0), ("2", 1999.0), (None, None), ("2", 2000.0), ("10", 999.0), ("2", None)]


def table(places):
    names = [f"s{i}" for i in range(len(places))]
    kinds = {"snp": pl.String, "chromosome": pl.String, "position": pl.Float64}
    columns = names, [c for c, _ in places], [x for _, x in places]
    return pl.DataFrame(dict(zip(kinds, columns, strict=True)), schema=kinds)


def test_windows_by_place():
    found = placed(table(PLACES), Windows(size=1000))
    shown = found.windows.select("window", "chromosome", "start", "end", "snps", "first_snp", "last_snp").rows()
    assert shown == [
        (1, "2", 0, 1000, 1, "s1", "s1"),
        (2, "2", 1000, 2000, 1, "s3", "s3"),
        (3, "2", 2000, 3000, 1, "s5", "s5"),
        (4, "2", None, None, 1, "s7", "s7"),
        (5, "10", 0, 1000, 2, "s0", "s6"),
        (6, "X", 0, 1000, 1, "s2", "s2"),
        (7, None, None, None, 1, "s4", "s4"),
    ]
    assert found.of_snp.tolist() == [4, 0, 5, 1, 6, 2, 4, 3]
    assert found.chromosomes.rows() == [("2", 4), ("10", 2), ("X", 1), (None, 1)]
    assert found.chromosome.tolist() == [0, 0, 0, 0, 1, 2, 3]


@pytest.mark.parametrize(("asked", "per"), [(Windows(snps=3), 3), (Windows(), 100)])
def test_windows_by_number_without_a_map(asked, per):
    found = placed(table([(None, None)] * 250), asked)
    assert found.windows["snps"].to_list() == [per] * (250 // per) + [250 % per] * (250 % per > 0)
    assert found.of_snp.tolist() == [i // per for i in range(250)] and found.windows["start"].null_count() > 0


def test_windows_by_number_with_a_map_follow_it():
    found = placed(table(PLACES), Windows(snps=2))
    assert [set(found.windows.row(0)[5:]), found.windows["snps"].to_list()] == [{"s1", "s3"}, [2, 2, 2, 1, 1]]


def test_without_windows_each_chromosome_is_one():
    found = placed(table(PLACES), None)
    assert found.chromosome.tolist() == [0, 1, 2, 3] and found.windows["snps"].to_list() == [4, 2, 1, 1]
