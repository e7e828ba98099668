"""VCF files: genotypes that are not two known alleles, and sites that cannot be used."""

import gzip

import numpy as np
import polars as pl
import pytest
from helpers.genotype_files import (
    CODES,
    IDS,
    PLACES,
    SNPS,
    N,
    opened,
    vcf_row,
    vcf_rows,
    vcf_text,
    write_compressed_vcf,
)

from mmgibbs.data.genotypes.alleles import counterparts
from mmgibbs.errors import DataError

pytest.importorskip("cyvcf2", reason="needs cyvcf2 (mmgibbs[genotypes])")
WHOLE = ["0/0", "0/1", "1|1", "1|0"] + ["0/0"] * (N - 4)  # 0, 1, 2 and 1 copies


def written(folder, *rows, ids=IDS, name="g.vcf"):
    (folder / name).write_text(vcf_text(list(rows), ids))
    return opened(folder / name)


def with_genotypes(folder, genotypes):
    """A file with these genotypes of the last animals at its second site."""
    rows = vcf_rows()
    rows[1] = vcf_row(1, 200, "m1", [*WHOLE[: N - len(genotypes)], *genotypes])
    return written(folder, *rows)


@pytest.mark.parametrize(
    ("genotypes", "reason"),
    [
        (["./0", "./1", "1|."], "3 genotypes with one known allele of two, as in ./1, are taken as missing"),
        (["0", "1"], "2 genotypes with one allele, as of males on X, are taken as missing"),
        (["0/0/1", "1/1/1"], "2 genotypes with more than two alleles are taken as missing"),
        (["0/0/1/1", "0|0|0|1"], "2 genotypes with more than two alleles are taken as missing"),
        (["0/2", "2/2", "1/2"], "3 genotypes with an allele that the site does not name are taken as missing"),
        (["./1/1"], "1 genotype with more than two alleles is taken as missing"),
    ],
)
def test_genotypes_that_are_not_two_known_alleles_are_missing(genotypes, reason, tmp_path):
    file = with_genotypes(tmp_path, genotypes)
    found = file.source.block(0, file.n_snps)
    assert found[1].tolist() == [0, 1, 2, 1, *[0] * (N - 4 - len(genotypes)), *[3] * len(genotypes)]
    assert np.array_equal(np.delete(found, 1, axis=0), np.delete(CODES, 1, axis=0))
    first = IDS[N - len(genotypes)]
    assert file.warnings == (f"g.vcf: {reason}, the first of them that of '{first}' at 1:200",)


def test_every_reason_is_counted_over_sites(tmp_path):
    file = written(tmp_path, *(vcf_row(1, j, ".", ["./1", "0", "0/0/0", "0/2", *WHOLE[4:]]) for j in (5, 6)))
    assert [warning.split(" genotypes ")[0] for warning in file.warnings] == ["g.vcf: 2"] * 4
    assert (file.source.block(0, 2)[:, :4] == 3).all() and (file.source.block(0, 2)[:, 4:] == 0).all()


@pytest.mark.parametrize(
    ("genotype", "reason"),
    [("1", "with one allele"), ("0/0/0/1", "with more than two alleles"), ("./1", "with one known allele of two")],
)
def test_a_file_without_a_genotype_of_two_alleles_is_refused(genotype, reason, tmp_path):
    with pytest.raises(DataError, match=f"g.vcf: found no genotype with two known alleles, but 13 {reason}.*'a0' at"):
        written(tmp_path, vcf_row(1, 5, "x", [genotype] * N))


def test_sites_that_cannot_be_used_are_left_out_and_counted(tmp_path):
    rows = vcf_rows()
    rows[2:2] = [vcf_row(1, 250, "ds", ["0.5"] * N, field="DS"), vcf_row(1, 260, "ds2", ["1.5"] * N, field="DS")]
    file = written(tmp_path, *rows)
    assert file.snps["snp"].to_list() == SNPS and np.array_equal(file.source.block(0, 7), CODES)
    assert file.notes == ("g.vcf: 2 sites without genotypes (GT) left out, such as 1:250",)
    several = vcf_row(1, 5, "x", ["0/2"] * N, alt="A,G")
    assert written(tmp_path, several, *vcf_rows()).notes == ("g.vcf: 1 site with more than two alleles left out",)


@pytest.mark.parametrize("alt", [".", "<NON_REF>"])
def test_sites_without_an_alternative_allele_have_copies_of_the_reference(tmp_path, alt):
    """As PLINK's A1 = 0; another site of the same place has the alternative allele."""
    single = vcf_row(1, 6, "y", ["0/0", "./.", "0/1", *["0/0"] * (N - 3)], alt=alt)
    covered = vcf_row(1, 100, "s0", WHOLE, alt=alt)
    file = written(tmp_path, single, *vcf_rows()[:1], covered, *vcf_rows()[1:])
    place = file.snps["snp"].to_list().index("y")
    assert file.snps.row(place, named=True)["counted"] == "."
    assert file.source.block(place, place + 1)[0].tolist() == [0, 3, 3, *[0] * (N - 3)]
    assert "taken as missing, the first of them that of 'a2' at 1:6" in file.warnings[0]
    assert file.snps.height == 1 + len(vcf_rows())
    assert file.notes == ("g.vcf: 1 site without an alternative allele left out, at places of other sites",)


@pytest.mark.parametrize(("counted", "other", "is_turned"), [("A", "C", False), ("C", "A", True)])
def test_the_reference_says_which_allele_is_counted(tmp_path, counted, other, is_turned):
    """0/0 of a site without an alternative allele: no copy of A, and two of C."""
    file = written(tmp_path, vcf_row(1, 6, "y", ["0/0"] * N, alt="."), *vcf_rows())
    snps = pl.DataFrame({"snp": ["y"], "counted": [counted], "other": [other], "number": [0]})
    found = counterparts(snps, 1, file, False)
    assert found.turned.tolist() == [is_turned] and not any("mean" in note for note in found.notes)
    with pytest.raises(DataError, match="has the alleles . and C; the run has A and G"):
        counterparts(snps.with_columns(counted=pl.lit("A"), other=pl.lit("G")), 1, file, False)


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (vcf_row(1, 5, "x", ["0.5"] * N, field="DS"), "1 site has no GT"),
        (vcf_row(1, 5, "x", ["0/2"] * N, alt="A,G"), "1 site has more than two alleles"),
        (vcf_row(1, 5, "x", ["0/0"] * N, alt="."), "1 site has no alternative allele"),
    ],
)
def test_a_file_without_a_site_that_can_be_used_says_why(row, why, tmp_path):
    with pytest.raises(DataError, match=rf"g.vcf: found no SNP with two alleles and genotypes \(GT\): {why}"):
        written(tmp_path, row)


def test_a_sample_twice_is_named(tmp_path):
    for ids in (["a0", *IDS[:-1]], [*IDS[:-1], "a3"]):
        with pytest.raises(DataError, match=f"g.vcf: cannot be read as VCF: sample '{ids[-1]}|a0' is there twice"):
            written(tmp_path, *vcf_rows(), ids=ids)


def test_the_place_of_damage_is_said(tmp_path, capfd):
    text = vcf_text(vcf_rows())
    (tmp_path / "g.vcf").write_text(text[: text.index("\tm3\t") + 20])
    with pytest.raises(DataError, match="g.vcf: cannot be read as VCF: site 4, after 1:300, is damaged or cut short"):
        opened(tmp_path / "g.vcf")
    assert capfd.readouterr().err == "", "htslib's own lines are not shown"


def test_a_file_cut_between_its_blocks_is_refused(tmp_path):
    """Where only the mark at its end says it."""
    path, _ = write_compressed_vcf(tmp_path)
    path.write_bytes(path.read_bytes()[:-28])
    with pytest.raises(DataError, match=r"g.vcf.gz: is cut short: the mark at its end is missing"):
        opened(path)


def test_a_vcf_is_known_by_its_first_line(tmp_path):
    (tmp_path / "g.txt").write_text(vcf_text(vcf_rows()))
    (tmp_path / "z").write_bytes(gzip.compress(vcf_text(vcf_rows()).encode()))
    for name in ("g.txt", "z"):
        assert opened(tmp_path / name).snps["snp"].to_list() == [snp for _, _, snp in PLACES]
