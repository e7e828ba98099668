"""Genotypes written in many ways: for each reader inputs with the same animals, SNPs and genotypes, or with a fault.
Each gives the genotypes of the clean file, or is refused or warned of by its name: none is read wrongly
in silence.
"""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
import pytest
from helpers.genotype_files import CHROMOSOMES, CODES, IDS, PLACES, POSITIONS, SNPS, VCF_HEAD, N, P, opened, table_frame
from helpers.genotypes import bed_bytes
from hypothesis import given, settings
from hypothesis import strategies as st

from mmgibbs.config.genomic_relationships import Core
from mmgibbs.data.genomic_relationships import choose_core
from mmgibbs.data.genotypes.alleles import counterparts
from mmgibbs.data.genotypes.map_file import read_frequencies
from mmgibbs.errors import DataError

BED = bed_bytes(CODES)
ENDS = ["\n", "\r\n", "\r"]
SILENT, SAME, REFUSED, SAID = "silent", "same", "refused", "said"
QUOTED: Callable[[str], str] = '"{}"'.format
STYLES = [
    (",", "\n", str), (";", "\r\n", QUOTED), ("\t", "\r", str), (" ", "\n", QUOTED), ("|", "\r\n", str),
    ("  ", "\r", str), (",", "\r", QUOTED), (" ", "\r\n", str),
]  # fmt: skip


class Case(NamedTuple):
    """An input, and what must come of it.

    SILENT: the genotypes of the clean file and no warning; SAME: these, perhaps with a warning; SAID: a warning;
    REFUSED: a DataError that names the file.
    """

    name: str
    files: dict[str, str | bytes]  # the first is the file of genotypes
    expected: str
    keys: dict = {}
    ids: list[str] = IDS


def write(folder: Path, files: dict[str, str | bytes]) -> None:
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())


def outcome(case: Case, folder: Path, places: bool) -> str:
    write(folder, case.files)
    main = next(iter(case.files))
    beside = {key: str(folder / name) for key, name in case.keys.items() if key in ("map", "animals")}
    try:
        file = opened(folder / main, **case.keys | beside)
        codes = file.source.block(0, file.n_snps)
    except DataError as error:
        assert any(name in str(error) for name in case.files), error
        return REFUSED
    is_same = file.ids.to_list() == case.ids and file.snps["snp"].to_list() == SNPS and np.array_equal(codes, CODES)
    if places:
        chromosomes = file.snps["chromosome"].str.replace("^[Cc]hr", "").str.strip_chars_start("0").to_list()
        is_same &= chromosomes == list(map(str, CHROMOSOMES)) and file.snps["position"].to_list() == POSITIONS
    if is_same:
        return SAME if file.warnings else SILENT
    return SAID if file.warnings else "different"


def is_as_expected(found: str, expected: str) -> bool:
    return found == expected or (expected, found) in ((SAME, SILENT), (SAID, SAME))


def failures(cases: list[Case], folder: Path, places: bool = False) -> list[str]:
    outcomes = ((case, outcome(case, folder / str(i), places)) for i, case in enumerate(cases))
    return [f"{case.name}: {found}" for case, found in outcomes if not is_as_expected(found, case.expected)]


def cells(missing: str = "NA", spell: Callable[[str], str] = str) -> list[list[str]]:
    """Of each animal, the text of each SNP."""
    text = [spell("0"), spell("1"), spell("2"), missing]
    return [[text[code] for code in of_animal] for of_animal in CODES.T]


def table(
    separator: str = ",", end: str = "\n", missing: str = "NA", spell: Callable[[str], str] = str, id: str = "animal",
    ids: list[str] = IDS, quote: Callable[[str], str] = str, mark: str = "", before: dict | None = None,
) -> str:  # fmt: skip
    """Text of a table; before: columns in front of the animals or, with the key None, of the SNPs."""
    columns = {**(before or {}), id: ids, **dict(zip(SNPS, zip(*cells(missing, spell), strict=True), strict=True))}
    rows = [list(columns), *zip(*columns.values(), strict=True)]
    return mark + "".join(separator.join(map(quote, row)) + end for row in rows)


def text_tables() -> Iterator[Case]:
    for separator, end, quote in STYLES:
        yield Case(f"separator {separator!r} {end!r} {quote}", {"g.csv": table(separator, end, quote=quote)}, SILENT)
    for code in ["", *"NA na N/A #N/A NaN . - -- ? null None unknown <NA> \u2013".split()]:
        yield Case(f"missing {code!r}", {"g.csv": table(missing=code)}, SILENT)
    for code in ["-9", "9", "5", "NoCall", "NN", "./.", "inf", "99", "-1", "x y", "-9.0"]:
        yield Case(f"missing {code!r}", {"g.csv": table(missing=code)}, SILENT if code == "./." else REFUSED)
        yield Case(f"declared {code!r}", {"g.csv": table(missing=code)}, SILENT, {"missing": [code]})
    for form in ["{}.0", "{}.", "0{}", "+{}", "{}e0", "{}E+00", " {} ", "{}\u00a0", "{}.000000"]:
        yield Case(f"cell {form!r}", {"g.csv": table(spell=form.format)}, SILENT)
    for form in ["'{}", "={}", "{}%", "{}_0", "0x{}", "{}5", "-{}", "{}/1", "A{}"]:
        yield Case(f"cell {form!r}", {"g.csv": table(spell=form.format)}, REFUSED)
    yield Case("decimal commas", {"g.csv": table(";", spell="{},0".format)}, SILENT)
    yield Case("byte order mark", {"g.csv": table(mark="\ufeff", quote=QUOTED)}, SILENT)
    yield Case("gzip", {"g.csv.gz": gzip.compress(table().encode())}, SILENT)
    yield Case("blank lines", {"g.csv": "\n" + table() + "\n\n"}, SILENT)
    yield Case("a separator ends each line", {"g.csv": table(end=",\n")}, SILENT)
    yield Case("UTF-16", {"g.csv": table().encode("utf-16")}, REFUSED)
    yield Case("no header", {"g.csv": table().split("\n", 1)[1]}, REFUSED)
    dosages = np.random.default_rng(3).uniform(0, 2, (N, P)).round(4).astype(str)
    rows = "".join(",".join([id, *row]) + "\n" for id, row in zip(IDS, dosages, strict=True))
    yield Case("no header, dosages", {"g.csv": rows}, REFUSED)
    for name in ["ID", "IID", "#IID", "Animal ID", "", "Sample", "Ear tag", "Taxa", "<Marker>", "Unnamed: 0", "index"]:
        yield Case(f"ids called {name!r}", {"g.csv": table(id=name)}, SILENT)
    for name in ["snp", "Marker", "rs#", "SNP_ID", "locus"]:
        yield Case(f"SNPs in rows, {name}", {"g.csv": table(id=name)}, REFUSED)
    zeros, numbers = [f"{i:03d}" for i in range(N)], [str(i + 1) for i in range(N)]
    yield Case("ids with zeros", {"g.csv": table(ids=zeros)}, SILENT, ids=zeros)
    for name in ("animal", ""):
        yield Case(f"ids 1, 2, ... {name}", {"g.csv": table(ids=numbers, id=name)}, SILENT, ids=numbers)
    yield Case("families", {"g.csv": table(before={"FID": ["1"] * N})}, SILENT)
    yield Case("the ids twice", {"g.csv": table(before={"IID": IDS})}, SILENT)
    yield Case("an animal twice", {"g.csv": table(ids=["a1", *IDS[1:]])}, REFUSED)
    for name in ["", "Unnamed: 0", "X", "row", "No", "n", "nr", "level_0", "rowid", "obs", "Number", "seq", "_N_"]:
        yield Case(f"numbers of rows {name!r}", {"g.csv": table(before={name: numbers})}, SAME)
    tags = [f"t{i}" for i in range(N)]
    yield Case("two columns of ids", {"g.csv": table(before={"passport": tags})}, SAID, ids=tags)
    yield Case("the column of ids is said", {"g.csv": table(before={"tag": numbers})}, SILENT, {"id": "animal"})


def extra_columns() -> Iterator[Case]:
    """A column beside the SNPs that is none, with values that could be genotypes."""
    names = "sex breed herd plate Chip CR het F_x n_missing species country fold set lactation rep inbreeding gen"
    names += " fixed yield_kg chip_batch weight_kg slaughterhouse"
    for k, name in enumerate(names.split()):
        frame = pl.read_csv(table().encode(), infer_schema=False)
        values = ["0.98", "0.4"] * N if k % 2 else ["1", "2"] * N
        text = frame.insert_column((1, frame.width)[k // 2 % 2], pl.Series(name, values[:N])).write_csv()
        yield Case(f"{name} {values[0]}", {"g.csv": text}, SAID)


def binary_tables() -> Iterator[Case]:
    frame = table_frame()
    snps = pl.col(SNPS)
    numbers = {t: snps.cast(t) for t in (pl.Int16, pl.Int64, pl.UInt8, pl.Float32, pl.Float64, pl.Decimal(5, 2))}
    texts = {t: snps.cast(pl.String).cast(t) for t in (pl.String, pl.Categorical, pl.Enum(["0", "1", "2"]))}
    index = pl.Series("__index_level_0__", range(N))
    good = {str(t): frame.with_columns(change) for t, change in {**numbers, **texts}.items()} | {
        "NaN": frame.with_columns(snps.cast(pl.Float64).fill_null(np.nan)),
        "NA": frame.with_columns(snps.cast(pl.String).fill_null("NA")),
        "1.0": frame.with_columns(snps.cast(pl.Float64).cast(pl.String)),
        "categories of ids": frame.with_columns(pl.col("animal").cast(pl.Categorical)),
        "named index at the end": frame.select(*SNPS, "animal"),
        "index at the end": frame.select(*SNPS, pl.col("animal").alias("__index_level_0__")),
        "numbers of rows": frame.with_columns(index),
        "other numbers of rows": frame.with_columns(index * 2),
        "repeated numbers of rows": frame.with_columns(index % 3),
    }
    bad = {
        "-9": frame.with_columns(snps.fill_null(-9)),
        "255": frame.with_columns(snps.cast(pl.UInt8).fill_null(255)),
        "infinite": frame.with_columns(snps.cast(pl.Float64).fill_null(np.inf)),
        "an animal without an id": frame.with_columns(pl.col("animal").replace({"a3": None})),
        "bytes as ids": frame.with_columns(pl.col("animal").cast(pl.Binary)),
        "dates": frame.with_columns(m8=pl.lit(1).cast(pl.Date)),
        "lists": frame.with_columns(m8=pl.concat_list("m0")),
    }
    said = {
        "truth values": frame.with_columns(is_bull=pl.lit(True)),
        "an empty column": frame.with_columns(remark=pl.lit(None, pl.String)),
    }
    for expected, frames in {SILENT: good, REFUSED: bad, SAID: said}.items():
        for name, changed in frames.items():
            for ending, writer in (("parquet", "write_parquet"), ("arrow", "write_ipc")):
                getattr(changed, writer)(content := io.BytesIO())
                yield Case(f"{name} {ending}", {f"g.{ending}": content.getvalue()}, expected)


@pytest.mark.parametrize("cases", [text_tables, extra_columns, binary_tables])
def test_tables(cases, tmp_path):
    assert failures(list(cases()), tmp_path) == []


@settings(max_examples=20, derandomize=True, database=None)
@given(
    style=st.tuples(st.sampled_from([",", ";", "\t", " ", "|"]), st.sampled_from(ENDS)),
    missing=st.sampled_from(["NA", ".", "-", "?", "nan", "N/A", "#N/A"]),
    form=st.sampled_from(["{}", "{}.0", "+{}", "0{}", "{}e0"]),
    ids=st.lists(st.text("abcXYZ019-_äø", min_size=1, max_size=8), min_size=N, max_size=N, unique=True),
    quote=st.sampled_from([str, QUOTED]),
    mark=st.sampled_from(["", "\ufeff"]),
)
def test_any_style_with_any_ids(style, missing, form, ids, quote, mark, tmp_path_factory):
    text = table(*style, missing, form.format, ids=ids, quote=quote, mark=mark)
    folder = tmp_path_factory.mktemp("table")
    try:
        file = opened(written(folder / "g.csv", text))
    except DataError as error:  # ids such as '-' mean that there is none
        assert "g.csv row" in str(error) and "found no animal" in str(error)
        return
    assert file.ids.to_list() == ids and np.array_equal(file.source.block(0, P), CODES) and file.warnings == ()


def written(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


RAW = ["FID", "IID", "PAT", "MAT", "SEX", "PHENOTYPE"]


def raw_files() -> Iterator[Case]:
    def raw(name, expected=SILENT, separator=" ", end="\n", head=RAW, form="{}_A", missing="NA", ending="raw"):
        rows = [["0", id, "0", "0", "1", "-9", *row] for id, row in zip(IDS, cells(missing), strict=True)]
        lines = [[*head, *map(form.format, SNPS)], *rows]
        return Case(name, {f"g.{ending}": "".join(separator.join(line) + end for line in lines)}, expected)

    for separator, end, ending in zip(" \t,; \t", ENDS * 2, ["raw", "csv", "txt", "dat", "txt", "raw"]):
        yield raw(f"{separator!r} {end!r} {ending}", separator=separator, end=end, ending=ending)
    for form in ["{}_A", "{}_1", "{}_ACGT", "{}_A(/C)", "{}_A(/C,T)", "{}_*"]:
        yield raw(form, form=form)
    yield raw("#FID", head=["#FID", *RAW[1:]])
    yield raw("lower case", head=[name.lower() for name in RAW])
    yield raw("missing .", missing=".")
    yield raw("missing -9", REFUSED, missing="-9")
    dominance = [[x for code in row for x in (code, {"1": "1", "NA": "NA"}.get(code, "0"))] for row in cells()]
    names = [name for snp in SNPS for name in (f"{snp}_A", f"{snp}_HET")]
    for head in (RAW, ["#FID", *RAW[1:]]):
        rows = [[*"0", id, *"0012", *row] for id, row in zip(IDS, dominance, strict=True)]
        yield Case("HET", {"g.raw": "\n".join(" ".join(row) for row in [[*head, *names], *rows])}, SILENT)


def test_raw_files_and_dominance_in_a_table(tmp_path):
    assert failures(list(raw_files()), tmp_path) == []
    dominance = [["1" if code == "1" else "0" for code in row] for row in cells()]
    columns = {f"{s}_A": [row[j] for row in cells()] for j, s in enumerate(SNPS)}
    columns |= {f"{s}_HET": [row[j] for row in dominance] for j, s in enumerate(SNPS)}
    pl.DataFrame({"IID": IDS, **columns}).write_csv(tmp_path / "g.csv")
    assert opened(tmp_path / "g.csv").snps["snp"].to_list() == [f"{s}_A" for s in SNPS]


def plink_files() -> Iterator[Case]:
    def lines(rows, separator, end):
        return "".join(separator.join(row) + end for row in rows)

    def plink(name, expected=SILENT, separator="\t", end="\n", bim=None, fam=None, mark="", bed=BED):
        bim = bim or [[str(c), s, "0", str(x), "A", "C"] for c, x, s in PLACES]
        fam = fam or [["0", id, "0", "0", "1", "-9"] for id in IDS]
        files = {"g.bed": bed, "g.bim": mark + lines(bim, separator, end), "g.fam": mark + lines(fam, separator, end)}
        return Case(name, files, expected)

    ends = [*ENDS, "\n\n", " \n", "\t\n"]
    for separator, end, mark in zip(["\t", " ", "   ", "\t "] * 3, ends * 2, ["", "\ufeff"] * 6):
        yield plink(f"{separator!r} {end!r} {mark!r}", separator=separator, end=end, mark=mark)
    for separator in ",;|":
        yield plink(separator, REFUSED, separator)
    bim = lambda chromosome="{}", position="{}", morgans="0", snp="{}", alleles="AC": [
        [chromosome.format(c), snp.format(s), morgans, position.format(x), *alleles] for c, x, s in PLACES
    ]
    for changed in [bim("chr{}"), bim("0{}"), bim("{}.0"), bim(position="{}.0"), bim(alleles="ac"), bim(alleles="0C")]:
        yield plink(str(changed[0]), bim=changed)
    yield plink(
        "one chromosome in several spellings", bim=[["chr1", *row[1:]] if row[1] == "m2" else row for row in bim()]
    )
    for changed in [bim(snp="x"), bim(position="{}bp"), bim(position="1_{}"), bim(morgans="x"), bim()[1:]]:
        yield plink(str(changed[0]), REFUSED, bim=changed)
    fam = [["0", id, "0", "0", "1", "-9"] for id in IDS]
    yield plink("seven columns", fam=[[*row, "1.5"] for row in fam])
    for changed in [[RAW, *fam], [["#FID", *RAW[1:]], *fam], fam[:-1], fam[:-5], [row[:5] for row in fam], fam[:1] * N]:
        yield plink(f"fam {changed[0]} {len(changed)}", REFUSED, fam=changed)
    for changed in [BED[:-1], BED + b"\0", b"\x6c\x1b\0" + BED[3:], b"\0" + BED[1:], b""]:
        yield plink(f"bed {changed[:3]!r} {len(changed)}", REFUSED, bed=changed)


def test_plink_files(tmp_path):
    assert failures(list(plink_files()), tmp_path, places=True) == []


def test_centimorgans_with_decimal_commas_and_positions_below_zero(tmp_path):
    rows = [[str(c), s, f"0,{x}", "0", "A", "C"] for c, x, s in PLACES]
    write(tmp_path, {"g.bed": bed_bytes(CODES), "g.fam": "".join(f"0 {id} 0 0 0 -9\n" for id in IDS)})
    (tmp_path / "g.bim").write_text("".join(" ".join(row) + "\n" for row in rows))
    file = opened(tmp_path / "g.bed")
    assert file.unit == "cM" and file.snps["position"].to_list() == [x / 1000 for x in POSITIONS]
    (tmp_path / "g.bim").write_text("".join(f"{c} {s} 0 {-x if s == 'm1' else x} A C\n" for c, x, s in PLACES))
    file = opened(tmp_path / "g.bed")
    assert file.snps["position"].to_list() == [100, None, *POSITIONS[2:]]
    assert file.notes == ("g.bed: 1 SNP without a known position (written as -200)",)


def blupf90(separator=" ", end="\n", ids=IDS, digits="0125", before="", after="") -> str:
    strings = ["".join(digits[code] for code in of_animal) for of_animal in CODES.T]
    return "".join(f"{before}{id}{separator}{text}{after}{end}" for id, text in zip(ids, strings, strict=True))


def blupf90_files() -> Iterator[Case]:
    numbered = "chr pos snp\n" + "".join(f"{c} {x} {s}\n" for c, x, s in PLACES)

    def case(name, text, expected=SILENT, ids=IDS):
        return Case(name, {"g.txt": text, "map.txt": numbered}, expected, {"map": "map.txt"}, ids)

    separators, ends = [" ", "\t", "   ", " \t"] * 3, [*ENDS, "\n\n"] * 3
    for separator, end, before, after in zip(separators, ends[1:], ["", " "] * 6, ["", " ", "\t"] * 4):
        yield case(f"{separator!r} {end!r} {before!r} {after!r}", blupf90(separator, end, before=before, after=after))
    yield case("byte order mark", "\ufeff" + blupf90())
    for separator in [",", ";", "|", ""]:
        yield case(f"separator {separator!r}", blupf90(separator), REFUSED)
    for digits in ["0129", "012.", "012-", "AHBN", "0123", "012 "]:
        yield case(f"digits {digits}", blupf90(digits=digits), REFUSED)
    for ids in [[f"{i:05d}" for i in range(N)], [f"Ä{i}" for i in range(N)], [f"DE-{i}" for i in range(N)]]:
        yield case(ids[0], blupf90(ids=ids), ids=ids)
    yield case("not UTF-8", blupf90(ids=[f"Ä{i}" for i in range(N)]).encode("latin-1"), REFUSED)
    yield case("zero byte", blupf90().replace("a3", "a\0"), REFUSED)
    for encoding in ("utf-16", "utf-16-le", "utf-16-be"):
        yield case(encoding, blupf90().encode(encoding), REFUSED)
    yield case("header", "id genotypes\n" + blupf90(), REFUSED)
    yield case("an animal twice", blupf90(ids=["a1", *IDS[1:]]), REFUSED)
    yield case("blanks between genotypes", blupf90().replace("1", "1 "), REFUSED)


def test_blupf90_files(tmp_path):
    assert failures(list(blupf90_files()), tmp_path, places=True) == []


def vcf_files() -> Iterator[Case]:
    def vcf(name, expected=SILENT, text=("0/0", "0/1", "1/1", "./."), end="\n", ids=IDS, read_ids=None, **columns):
        form = {"c": "{}", "x": "{}", "s": "{}", "ref": "C", "alt": "A", "format": "GT", "cell": "{}", "tab": "\t"}
        form |= columns
        head = ["#CHROM", "POS", "ID", "REF", "ALT", "QUAL", "FILTER", "INFO", "FORMAT", *ids]
        sites = [
            [form["c"].format(c), form["x"].format(x), form["s"].format(s), form["ref"], form["alt"], ".", ".", ".",
             form["format"], *(form["cell"].format(text[code]) for code in CODES[j])]
            for j, (c, x, s) in enumerate(PLACES)
        ]  # fmt: skip
        body = VCF_HEAD + "".join(form["tab"].join(row) + "\n" for row in [head, *sites])
        return Case(name, {"g.vcf": columns.get("mark", "") + body.replace("\n", end)}, expected, ids=read_ids or ids)

    phased = ["0|0", "0|1", "1|1", ".|."], ["0/0", "1|0", "1/1", "."], ["0|0", "1/0", "1|1", "./."]
    for text, end, alleles in zip(
        phased * 2, ["\n", "\r\n"] * 2, [("C", "A"), ("c", "a"), ("CT", "C"), ("N", "<DEL>")]
    ):
        ref, alt = alleles
        yield vcf(f"{text} {end!r} {alleles}", text=text, end=end, ref=ref, alt=alt)
    for format, cell in [("GT:DP", "{}:3"), ("DP:GT", "3:{}"), ("GT:DP", "{}"), ("GT:GQ:DP", "{}:9:3")]:
        yield vcf(f"{format} {cell}", format=format, cell=cell)
    for missing in ["./1", "1/.", "0/2", "1"]:
        yield vcf(f"missing {missing}", SAME, text=["0/0", "0/1", "1/1", missing])
    for text in ["0 1 2 .", "C/C C/A A/A ./.", "0/0/0 0/0/1 1/1/1 ./././.", "NA NA NA NA"]:
        yield vcf(text, REFUSED, text=text.split())
    for columns in [{"alt": "."}, {"alt": "A,T"}, {"format": "DS"}, {"tab": " "}, {"mark": "\ufeff"}, {"s": "x"}]:
        yield vcf(str(columns), REFUSED, **columns)
    yield vcf("chr", c="chr{}")
    blanks = [f"{id} " for id in IDS]
    yield vcf("blanks around ids", ids=blanks, read_ids=IDS)
    for ids in [[f"a {i}" for i in range(N)], [f"{i:03d}" for i in range(N)], [f"Ä{i}" for i in range(N)]]:
        yield vcf(ids[0], ids=ids)
    yield vcf("an animal twice", REFUSED, ids=["a1", *IDS[1:]])


def test_vcf_files(tmp_path):
    pytest.importorskip("cyvcf2", reason="needs cyvcf2 (mmgibbs[genotypes])")
    assert failures(list(vcf_files()), tmp_path) == []


def hapmap_files() -> Iterator[Case]:
    columns = "rs# alleles chrom pos strand assembly# center protLSID assayLSID panelLSID QCcode".split()

    def hapmap(name, expected=SILENT, text="CMAN", separator="\t", end="\n", head=columns, alleles="C/A", quote=str,
               ending="hmp.txt", position="{}", mark="", ids=IDS):  # fmt: skip
        rows = [
            [s, alleles, str(c), position.format(x), "+", *["NA"] * (len(head) - 5), *(text[code] for code in CODES[j])]
            for j, (c, x, s) in enumerate(PLACES)
        ]
        body = "".join(separator.join(map(quote, row)) + end for row in [[*head, *ids], *rows])
        return Case(name, {f"g.{ending}": mark + body}, expected, ids=ids)

    pairs = ["CC", "CA", "AA", "NN"]
    styles = zip("\t ,;" * 2, [*ENDS, *ENDS, "\n", "\r"], ["CMAN", pairs] * 4, ["hmp.txt", "txt", "csv"] * 3)
    for separator, end, text, ending in styles:
        yield hapmap(f"{separator!r} {end!r} {text} {ending}", text=text, separator=separator, end=end, ending=ending)
    for missing in ["NN", "--", "NA", "", "..", "??", "XX", "CN", "00", "N/N", "N"]:
        yield hapmap(f"missing {missing}", text=[*pairs[:3], missing])
    for text in ["C/C C/A A/A N/N", "CC AC AA NN", "cc ca aa nn", "C|C A|C A|A N"]:
        yield hapmap(text, text=text.split())
    for text in ["0 1 2 NA", "AA AB BB NN", "CC CA AA TT", "CC H AA NN"]:
        yield hapmap(text, REFUSED, text=text.split())
    for alleles in ["C/A", "c/a", "C:A", "C,A", "C|A", "C / A", "C", "C/N"]:
        yield hapmap(f"alleles {alleles}", alleles=alleles)
    for alleles in ["C/A/T", "T/G", "CA", "C>A"]:
        yield hapmap(f"alleles {alleles}", REFUSED, alleles=alleles)
    for head in [["rs", *columns[1:]], [name.upper() for name in columns], columns[:5], columns[:10]]:
        yield hapmap(str(head), head=head)
    yield hapmap("byte order mark", mark="\ufeff", quote=QUOTED, separator=",")
    yield hapmap("position", REFUSED, position="1,{}")
    yield hapmap("an animal twice", REFUSED, ids=["a1", *IDS[1:]])


def test_hapmap_files(tmp_path):
    assert failures(list(hapmap_files()), tmp_path, places=True) == []


def maps() -> Iterator[Case]:
    def a_map(name, expected=SILENT, separator=" ", end="\n", head=("chr", "pos", "snp"), form=("{}", "{}", "{}"),
              order=(0, 1, 2), quote=str, mark="", file="map.txt", rows=PLACES):  # fmt: skip
        lines = [head, *([f.format(x) for f, x in zip(form, row, strict=True)] for row in rows)]
        text = mark + "".join(separator.join(quote(line[k]) for k in order) + end for line in lines)
        return Case(name, {"g.csv": table(), file: text}, expected, {"map": file})

    for separator, end, quote in STYLES:
        yield a_map(f"{separator!r} {end!r} {quote}", separator=separator, end=end, quote=quote)
    for head in ["Chromosome Position Name", "CHR BP SNP_ID", "#CHROM POS ID", "Chr. bp Marker_Name", "LG pos locus"]:
        yield a_map(head, head=head.split())
    for order in [(2, 0, 1), (1, 2, 0), (2, 1, 0)]:
        yield a_map(f"order {order}", order=order)
    for form in [("chr{}", "{}", "{}"), ("0{}", "{}", "{}"), ("{}.0", "{}.0", "{}"), ("{}", "{}e0", " {} ")]:
        yield a_map(str(form), form=form, separator=",")
    spelled = [("chr1", *PLACES[0][1:]), ("01", *PLACES[1][1:]), ("Chr1", *PLACES[2][1:]), *PLACES[3:]]
    yield a_map("one chromosome in several spellings", rows=spelled)
    yield a_map("byte order mark", mark="\ufeff")
    yield a_map("reversed", rows=PLACES[::-1])
    yield a_map("one more", rows=[*PLACES, (2, 900, "m99")])
    yield a_map("one SNP in another spelling", SAID, rows=[*PLACES[:6], (2, 700, "M6")])
    yield a_map("all SNPs in another spelling", REFUSED, form=("{}", "{}", "SNP{}"))
    yield a_map("a SNP twice", REFUSED, rows=[*PLACES, PLACES[0]])
    yield a_map("no header", REFUSED, head=("1", "5", "m9"))
    for form in ["{}bp", "1,{}", "1_{}", "x"]:
        yield a_map(f"position {form}", REFUSED, form=("{}", form, "{}"), separator=";")


def test_maps(tmp_path):
    assert failures(list(maps()), tmp_path, places=True) == []


FREQUENCIES = [0.1, 0.25, 0.5, 0.75, 0.9, 0.333, 0.05]


def test_tables_of_frequencies(tmp_path):
    def text(separator=" ", end="\n", head=("snp", "frequency"), form="{}", snp="{}", quote=str, mark=""):
        rows = [[snp.format(s), form.format(f)] for s, f in zip(SNPS, FREQUENCIES, strict=True)]
        return mark + "".join(separator.join(map(quote, row)) + end for row in [head, *rows])

    good = [text(separator, end, quote=quote) for separator, end, quote in STYLES]
    good += [text(head=head) for head in (("SNP", "p"), ("marker", "freq"), ("Name", "MAF"), ("locus", "p"))]
    good += [text(",", form=form) for form in ("+{}", "{}e0", " {} ", "{}0")] + [text(mark="\ufeff")]
    good += [text(";", form="{}").replace(".", ","), text() + "m99 0.2\n", text("\t", order := "\n")]
    for content in good:
        found = read_frequencies(written(tmp_path / "f.txt", content), pl.Series(SNPS))
        assert found == pytest.approx(FREQUENCIES), content
    bad = [text(";", form=form) for form in ("{}%", "-{}", "1{}", "NA", "1/{}", "x")]
    bad += [text(snp="M{}"), text() + "m3 0.2\n", text().split("\n", 1)[1], "", text(",").replace("0.75", ""), order]
    for content in bad:
        with pytest.raises(DataError, match=r"f\.txt"):
            read_frequencies(written(tmp_path / "f.txt", content), pl.Series(SNPS))
    with pytest.raises(DataError, match="7 SNPs of the analysis only in another spelling, such as 'm0' = 'M0'"):
        read_frequencies(written(tmp_path / "f.txt", text().upper()), pl.Series(SNPS))


def core_among(path: Path) -> list[int]:
    return choose_core("animal", N, pl.Series(IDS), Core(file=str(path)), lambda: np.eye(N), []).tolist()


def test_files_of_core_animals(tmp_path):
    for mark, end, around, ids in (
        ("", "\n", "{}", ["a1", "a3", "a5"]), ("\ufeff", "\r\n", " {}\t", ["a5", "a1", "a3"]),
        ("", "\r", "{}\u00a0", ["a1", "a3", "a5"]), ("", "\n\n", " {}", ["a5", "a1", "a3"]),
    ):  # fmt: skip
        for last in ("", "\n"):
            text = mark + end.join(map(around.format, ids)) + last
            assert core_among(written(tmp_path / "core.txt", text)) == [1, 3, 5], text
    wrong = ['"a1"\n"a3"', "id\na1", "A1\nA3", "a1,a3", "a1 a3", "a1 1\na3 1", "a1,\na3,", "# x\na1", "NA\na1"]
    for text in [*wrong, "", "a1\0"]:
        with pytest.raises(DataError, match=r"core\.txt: found"):
            core_among(written(tmp_path / "core.txt", text))
    with pytest.raises(DataError, match="the file of genotypes has 2 of 2 such ids in another spelling: 'a1' for 'A1'"):
        core_among(written(tmp_path / "core.txt", "A1\nA3"))


def test_files_for_predictions(tmp_path):
    """SNPs of a run in another file: by name, whatever the order and the counted allele."""
    run = pl.DataFrame({"snp": SNPS, "counted": "A", "other": "C", "number": pl.Series(range(P), dtype=pl.UInt32)})

    def read(names, alleles):
        sites = "".join(f"1 {s} 0 {k + 1} {alleles[0]} {alleles[1]}\n" for k, s in enumerate(names))
        write(tmp_path, {"p.bed": bed_bytes(CODES), "p.bim": sites, "p.fam": "".join(f"0 {i} 0 0 0 -9\n" for i in IDS)})
        return counterparts(run, P, opened(tmp_path / "p.bed"), mapped=False)

    orders = [np.random.default_rng(seed).permutation(P) for seed in range(2)]
    turned = {"AC": False, "ac": False, "A0": False, "0C": False, "CA": True, "ca": True, "0A": True, "C.": True}
    for order, alleles in product(orders, turned):
        found = read([SNPS[k] for k in order], alleles)
        assert found.row.tolist() == np.argsort(order).tolist() and found.turned.all() == turned[alleles]
        assert found.turned.any() == turned[alleles] and found.warnings == ()
    for alleles in ["TG", "AT", "12", "BA", "NC", "CG"]:
        with pytest.raises(DataError, match=r"p\.bed: SNP 'm0' has the alleles"):
            read(SNPS, alleles)
    with pytest.raises(DataError, match=r"p\.bed: has none of the 7 SNPs"):
        read([s.upper() for s in SNPS], "AC")
    found = read(["M0", *SNPS[1:]], "AC")
    assert found.row[0] == -1 and "1 SNP of the run only in another spelling, such as 'm0' = 'M0'" in found.warnings[0]
