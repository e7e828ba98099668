"""Files of genotypes for tests: the same animals, SNPs and genotypes in every format that can be read."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from helpers.genotypes import codes_and_dosages, write_plink

from mmgibbs.config.genotypes import Genotypes
from mmgibbs.data.genotypes.file_format import GenotypeFile, open_genotypes

N, P = 13, 7
CODES, DOSAGES = codes_and_dosages(P, N, seed=1, missing=0.2)
IDS, SNPS = [f"a{i}" for i in range(N)], [f"m{j}" for j in range(P)]
CHROMOSOMES, POSITIONS = [1 + j // 4 for j in range(P)], [100 * (j + 1) for j in range(P)]
PLACES = list(zip(CHROMOSOMES, POSITIONS, SNPS, strict=True))
MAP = "chr position marker\n" + "".join(f"{c} {x} {snp}\n" for c, x, snp in PLACES)
VCF_HEAD = """##fileformat=VCFv4.2
##FORMAT=<ID=GT,Number=1,Type=String,Description="Genotype">
##FORMAT=<ID=DS,Number=1,Type=Float,Description="Dosage">
##contig=<ID=1>
##contig=<ID=2>
"""


def opened(file: Path | str, **keys) -> GenotypeFile:
    traits = keys.pop("traits", ())
    return open_genotypes(Genotypes.model_validate({"file": str(file)} | keys).completed(), traits)


def lines_of_blupf90(codes=CODES, ids=IDS) -> list[str]:
    digits = np.array(list("0125"))[codes]
    return [f"{id:<6}{''.join(digits[:, i])}" for i, id in enumerate(ids)]


def table_frame() -> pl.DataFrame:
    columns = {snp: pl.Series(DOSAGES[j]).cast(pl.Int8, strict=False) for j, snp in enumerate(SNPS)}
    return pl.DataFrame({"animal": IDS, **columns})


def vcf_text(rows: list[str], ids=IDS) -> str:
    columns = "#CHROM POS ID REF ALT QUAL FILTER INFO FORMAT".split()
    return VCF_HEAD + "\t".join([*columns, *ids]) + "\n" + "".join(row + "\n" for row in rows)


def vcf_row(chromosome, position, name, genotypes, ref="C", alt="A", field="GT") -> str:
    return "\t".join([str(chromosome), str(position), name, ref, alt, ".", ".", ".", field, *genotypes])


def vcf_rows() -> list[str]:
    text = np.array(["0/0", "0|1", "1/1", "./."])[CODES]
    return [vcf_row(c, x, snp, text[j]) for j, (c, x, snp) in enumerate(PLACES)]


def hapmap_text(genotypes, ids=IDS, alleles=None, places=PLACES) -> str:
    """genotypes: (SNPs, animals) text; alleles: C/A of each SNP unless given."""
    head = "rs# alleles chrom pos strand assembly# center protLSID assayLSID panelLSID QCcode".split()
    alleles = ["C/A"] * len(places) if alleles is None else alleles
    rows = [
        [snp, of_snp, str(c), str(x), "+", "NA", "NA", "NA", "NA", "NA", "NA", *row]
        for (c, x, snp), of_snp, row in zip(places, alleles, genotypes, strict=True)
    ]
    return "".join("\t".join(row) + "\n" for row in [[*head, *ids], *rows])


def write_blupf90(folder: Path) -> tuple[Path, dict]:
    (folder / "g.txt").write_text("\n".join(lines_of_blupf90()) + "\n")
    (folder / "map.txt").write_text(MAP)
    return folder / "g.txt", {"map": str(folder / "map.txt")}


def write_gzipped_blupf90(folder: Path) -> tuple[Path, dict]:
    (folder / "map.txt").write_text(MAP)
    (folder / "g.gz").write_bytes(gzip.compress("\r\n".join(["", *lines_of_blupf90()]).encode()))
    return folder / "g.gz", {"map": str(folder / "map.txt")}


def write_csv(folder: Path) -> tuple[Path, dict]:
    table_frame().write_csv(folder / "g.csv", null_value="NA")
    (folder / "map.txt").write_text(MAP)
    return folder / "g.csv", {"map": str(folder / "map.txt")}


def write_gzipped_csv(folder: Path) -> tuple[Path, dict]:
    (folder / "g.csv.gz").write_bytes(gzip.compress(table_frame().write_csv(null_value="NA").encode()))
    (folder / "map.txt").write_text(MAP)
    return folder / "g.csv.gz", {"map": str(folder / "map.txt")}


def write_parquet(folder: Path) -> tuple[Path, dict]:
    table_frame().select(*SNPS, "animal").write_parquet(folder / "g.parquet")
    (folder / "map.txt").write_text(MAP)
    return folder / "g.parquet", {"map": str(folder / "map.txt"), "id": "animal"}


def write_bed(folder: Path) -> tuple[Path, dict]:
    write_plink(folder / "g.bed", CODES, IDS, SNPS, CHROMOSOMES, POSITIONS)
    return folder / "g.bed", {}


def write_vcf(folder: Path) -> tuple[Path, dict]:
    pytest.importorskip("cyvcf2", reason="needs cyvcf2 (mmgibbs[genotypes])")
    (folder / "g.vcf").write_text(vcf_text(vcf_rows()))
    return folder / "g.vcf", {}


def write_compressed_vcf(folder: Path, ending: str = "vcf.gz", mode: str = "wz") -> tuple[Path, dict]:
    path, _ = write_vcf(folder)
    import cyvcf2

    reader = cyvcf2.VCF(str(path))
    writer = cyvcf2.Writer(str(folder / f"g.{ending}"), reader, mode)
    writer.write_header()
    for site in reader:
        writer.write_record(site)
    writer.close()
    return folder / f"g.{ending}", {}


def write_bcf(folder: Path) -> tuple[Path, dict]:
    return write_compressed_vcf(folder, "bcf", "wb")


def write_gzipped_vcf(folder: Path) -> tuple[Path, dict]:
    """By gzip, not by bgzip."""
    path, _ = write_vcf(folder)
    (folder / "z.vcf.gz").write_bytes(gzip.compress(path.read_bytes()))
    return folder / "z.vcf.gz", {}


def write_hapmap(folder: Path) -> tuple[Path, dict]:
    (folder / "g.hmp.txt").write_text(hapmap_text(np.array(list("CMAN"))[CODES]))
    return folder / "g.hmp.txt", {}


def write_gzipped_hapmap(folder: Path) -> tuple[Path, dict]:
    text = hapmap_text(np.array(["CC", "CA", "AA", "NN"])[CODES])
    (folder / "g.hmp.txt.gz").write_bytes(gzip.compress(text.encode()))
    return folder / "g.hmp.txt.gz", {}


def write_pgen(folder: Path) -> tuple[Path, dict]:
    pgenlib = pytest.importorskip("pgenlib", reason="needs pgenlib (mmgibbs[genotypes])")
    with pgenlib.PgenWriter(str(folder / "g.pgen").encode(), N, variant_ct=P, nonref_flags=False) as writer:
        for row in CODES:
            writer.append_biallelic(np.where(row == 3, -9, row.astype(np.int8)))
    (folder / "g.psam").write_text("#IID\tSEX\n" + "".join(f"{id}\t0\n" for id in IDS))
    rows = "".join(f"{c}\t{x}\t{snp}\tC\tA\n" for c, x, snp in PLACES)
    (folder / "g.pvar").write_text("##x\n#CHROM\tPOS\tID\tREF\tALT\n" + rows)
    return folder / "g.pgen", {}


WRITERS = [
    write_blupf90, write_gzipped_blupf90, write_csv, write_gzipped_csv, write_parquet, write_bed, write_vcf,
    write_compressed_vcf, write_gzipped_vcf, write_bcf, write_hapmap, write_gzipped_hapmap, write_pgen,
]  # fmt: skip
