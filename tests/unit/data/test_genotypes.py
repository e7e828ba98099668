"""Genotypes of an analysis: matched, checked, packed; nothing is left out without a word."""

import pickle

import numpy as np
import polars as pl
import pytest
from helpers.genotypes import write_plink
from helpers.support import shared_data

from mmgibbs import check
from mmgibbs.config import load_config
from mmgibbs.config.genotypes import Genotypes
from mmgibbs.data.genotypes.prepare import prepare_genotypes
from mmgibbs.data.prepare import prepare
from mmgibbs.errors import DataError
from mmgibbs.pedigree.read import read_pedigree
from mmgibbs.runs.check_text import counts_as_text, notes_as_text

N, P = 60, 40
IDS, SNPS = [f"a{i}" for i in range(N)], [f"m{j}" for j in range(P)]
NO_LIMITS = {"call_rate": 0, "animal_call_rate": 0, "maf": 0, "monomorphic": "keep"}


def clean(seed=1, missing=0.0):
    rng = np.random.default_rng(seed)
    codes = rng.binomial(2, rng.uniform(0.3, 0.7, P)[:, None], (P, N)).astype(np.uint8)
    codes[rng.random((P, N)) < missing] = 3
    return codes


def prepared(folder, codes, recorded=IDS, pedigree=None, ids=IDS, **keys):
    write_plink(folder / "g.bed", codes, ids, SNPS, [1] * P, list(range(P)))
    section = Genotypes.model_validate({"file": str(folder / "g.bed")} | keys).completed()
    return prepare_genotypes(section, None if recorded is None else pl.Series("id", recorded), pedigree)


def a_pedigree(sires):
    """Of the animals IDS: 'a1': 'a0' for a sire."""
    frame = pl.DataFrame(
        {"id": IDS, "sire": [sires.get(i) for i in IDS], "dam": [None] * N}, schema_overrides={"dam": str}
    )
    return read_pedigree(frame)


def test_who_is_missing_where_is_counted_and_named(tmp_path):
    pedigree = read_pedigree(pl.DataFrame({"id": IDS[:-2], "sire": ["0"] * (N - 2), "dam": ["0"] * (N - 2)}))
    found = prepared(tmp_path, clean(), [*IDS[5:], *IDS[5:8], "x1", "x2"], pedigree)
    assert found.counts["matched"] == {"animals": 60, "in_pedigree": 58, "with_records": 55, "records_of_others": 2}
    assert found.notes[:3] == (
        "g.bed: 2 genotyped animals are not in the pedigree, such as a58, a59",
        "g.bed: 5 genotyped animals have no record, such as a0, a1, a2, a3, a4",
        "g.bed: 2 recorded animals are not genotyped, such as x1, x2",
    )
    assert found.matched.recorded.sum() == 55
    assert (found.matched.pedigree_code[-3:] >= 0).tolist() == [True, False, False]


def test_who_has_no_record(tmp_path):
    with pytest.raises(DataError, match="none of the 60 genotyped animals has a record; are ids written in the same"):
        prepared(tmp_path, clean(), ["A0", "A1"])
    found = prepared(tmp_path, clean(), ["a0x"], a_pedigree({}))
    assert found.counts["matched"]["with_records"] == 0
    assert found.notes[0] == "g.bed: 60 genotyped animals have no record, such as a0, a1, a2, a3, a4"
    with pytest.raises(DataError, match="no genotyped animal has a record; needed some for data.genotypes.frequencies"):
        prepared(tmp_path, clean(), ["a0x"], a_pedigree({}), frequencies="recorded")


def test_ids_in_another_spelling_are_named(tmp_path):
    said = "in the records in another spelling only, such as"
    with pytest.raises(DataError, match=f"g.fam: 60 genotyped animals are {said} 'a0' = 'A0', 'a1' = 'A1'"):
        prepared(tmp_path, clean(), [i.upper() for i in IDS])
    (warning,) = prepared(tmp_path, clean(), [" A0", *IDS[1:]]).warnings
    assert warning.startswith(f"g.fam: 1 genotyped animal is {said} 'a0' = ' A0'")
    pedigree = read_pedigree(pl.DataFrame({"id": [*IDS[:-1], "A59"], "sire": ["0"] * N, "dam": ["0"] * N}))
    (warning,) = prepared(tmp_path, clean(), IDS, pedigree).warnings
    assert warning == (
        "g.fam: 1 genotyped animal is in the pedigree in another spelling only, such as 'a59' = 'A59': these count as "
        "other animals; needed each id in one spelling"
    )
    ids = ["07", "7", *IDS[2:]]
    pedigree = read_pedigree(pl.DataFrame({"id": ids, "sire": ["0"] * N, "dam": ["0"] * N}))
    assert prepared(tmp_path, clean(), ["07", *IDS[2:]], pedigree, ids).warnings == ()
    assert prepared(tmp_path, clean(), ids, pedigree, ids).warnings == ()


def test_every_step_drops_what_it_says(tmp_path):
    codes = clean()
    codes[0, : N // 5] = 3  # call rate 0.8
    codes[1] = 2  # monomorphic
    codes[2], codes[2, 0] = 0, 1  # frequency 1/120
    codes[:, 7][np.arange(P) % 4 == 3] = 3  # animal with call rate 0.75
    codes[9] = 2 - codes[8]  # the same but for the allele that is counted
    codes[9, 7] = codes[8, 7]
    found = prepared(tmp_path, codes, quality={"duplicates": "drop"})
    assert found.counts["dropped"] == [
        {"what": "SNPs", "why": "call rate below 0.9", "count": 1},
        {"what": "animals", "why": "call rate below 0.9", "count": 1},
        {"what": "SNPs", "why": "monomorphic", "count": 1},
        {"what": "SNPs", "why": "minor allele frequency below 0.01", "count": 1},
        {"what": "SNPs", "why": "the genotypes of an earlier one of the SNPs", "count": 1},
    ]
    why = found.checked.snps["why_dropped"]
    assert [why[j] for j in (0, 1, 2, 9)] == [
        "call rate below 0.9", "monomorphic", "minor allele frequency below 0.01",
        "the genotypes of an earlier one of the SNPs",
    ]  # fmt: skip
    assert found.checked.animals.filter(~pl.col("kept"))["animal"].to_list() == ["a7"]
    assert found.snps["snp"].to_list() == [s for j, s in enumerate(SNPS) if j not in (0, 1, 2, 9)]
    assert found.animals.height == N - 1
    kept = np.delete(np.delete(codes, [0, 1, 2, 9], axis=0), 7, axis=1)
    assert found.frequency == pytest.approx(np.where(kept == 3, 0, kept).sum(axis=1) / (2 * (kept != 3).sum(axis=1)))


def test_what_is_kept_with_its_duplicates_is_said(tmp_path):
    codes = clean()
    codes[9] = codes[8]
    codes[:, 50] = codes[:, 49]
    found = prepared(tmp_path, codes)
    assert found.notes == (
        "g.bed: 1 animal has the genotypes of an earlier one, such as a50 = a49; kept",
        "g.bed: 1 SNP has the genotypes of an earlier one, such as m9 = m8; kept",
    )
    assert found.counts["kept"] == {"SNPs": P, "animals": N}
    dropped = prepared(tmp_path, codes, quality={"duplicate_animals": "drop"})
    assert dropped.checked.animals["why_dropped"][50] == "the genotypes of an earlier one of the animals"


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        (np.full((P, N), 1), "none of the 40 SNPs is left: 40 by monomorphic; needed other limits"),
        (np.full((P, N), 3), "none of the 40 SNPs is left: 40 by no genotype known"),
        (np.where(np.arange(N) % 2, 3, clean()), "none of the 40 SNPs is left: 40 by call rate below 0.9"),
    ],
)
def test_nothing_left_is_refused(codes, message, tmp_path):
    with pytest.raises(DataError, match=message):
        prepared(tmp_path, codes.astype(np.uint8))


def test_parents_that_cannot_be(tmp_path):
    """a0 has progeny a1 .. a5; the genotypes of a6 were taken for those of a2."""
    codes = clean(missing=0.02)
    homozygous = np.where(codes[:, 0] == 0, 0, 2)
    for i in range(1, 6):
        codes[:, i] = np.where(np.isin(codes[:, 0], (0, 2)), np.minimum(homozygous, 1) + (codes[:, i] > 1), codes[:, i])
    codes[:, 2] = np.where(np.isin(codes[:, 0], (0, 2)), 2 - homozygous, 1)
    pedigree = a_pedigree({f"a{i}": "a0" for i in range(1, 6)})
    found = prepared(tmp_path, codes, pedigree=pedigree)
    assert len(found.notes) == 1
    assert "1 of 5 pairs of parent and progeny are opposing homozygotes at more than 1 % of the SNPs" in found.notes[0]
    assert "such as a0 and a2" in found.notes[0]
    assert found.animals.height == N
    dropped = prepared(tmp_path, codes, pedigree=pedigree, quality={"parent_progeny": "drop"})
    assert dropped.checked.animals.filter(~pl.col("kept"))["animal"].to_list() == ["a2"]
    ignored = prepared(tmp_path, codes, pedigree=pedigree, quality={"parent_progeny": "ignore"})
    assert ignored.notes == ()


def test_a_parent_that_conflicts_with_all_its_progeny_goes_first(tmp_path):
    codes = clean()
    codes[:, 0] = 0
    codes[:, 1:6] = 2
    pedigree = a_pedigree({f"a{i}": "a0" for i in range(1, 6)})
    quality = {"parent_progeny": "drop", "monomorphic": "keep", "maf": 0}
    found = prepared(tmp_path, codes, pedigree=pedigree, quality=quality)
    assert found.checked.animals.filter(~pl.col("kept"))["animal"].to_list() == ["a0"]


def test_frequencies_by_choice(tmp_path):
    codes = clean()
    (tmp_path / "p.txt").write_text("SNP p\n" + "".join(f"m{j} {j / 100}\n" for j in reversed(range(P))))
    recorded = IDS[10:40]
    by = {c: prepared(tmp_path, codes, recorded, frequencies=c) for c in ("genotyped", "recorded", "half")}
    by["file"] = prepared(tmp_path, codes, recorded, frequencies=str(tmp_path / "p.txt"))
    assert by["genotyped"].frequency == pytest.approx(codes.mean(axis=1) / 2)
    assert by["recorded"].frequency == pytest.approx(codes[:, 10:40].mean(axis=1) / 2)
    assert np.array_equal(by["half"].frequency, np.full(P, 0.5)) and by["half"].sum_2pq == P / 2
    assert np.array_equal(by["file"].frequency, np.arange(P) / 100)
    assert all(np.array_equal(one.mean, by["genotyped"].mean) for one in by.values())
    (tmp_path / "p.txt").write_text("SNP p\nm0 0.5\nm1 1.5\n")
    with pytest.raises(DataError, match=r"p.txt row 3: found '1.5' as the frequency; needed a number from 0 to 1"):
        prepared(tmp_path, codes, frequencies=str(tmp_path / "p.txt"))
    (tmp_path / "p.txt").write_text("SNP p\nm0 0.5\n")
    with pytest.raises(DataError, match=r"p.txt: 39 SNPs are not in it, such as m1, m2, m3"):
        prepared(tmp_path, codes, frequencies=str(tmp_path / "p.txt"))


def test_packed_genotypes_in_a_chosen_order_are_kept_in_a_folder(tmp_path):
    codes = clean(missing=0.05)
    codes[3] = 0
    found = prepared(tmp_path, codes, quality={"call_rate": 0.5, "animal_call_rate": 0.5})
    ids = pl.Series(["a9", "a2", "a33"])
    expected = np.array([0, 1, 2, np.nan], np.float32)[np.delete(codes, 3, axis=0)[:, [9, 2, 33]]]
    folder = tmp_path / "run" / "genotypes"
    store = found.packed(ids, folder)
    assert np.array_equal(store.decode(store.every), expected, equal_nan=True)
    files = list(folder.iterdir())
    again = found.packed(ids, folder)
    assert list(folder.iterdir()) == files and again.array.filename == store.array.filename
    sent = pickle.dumps(again)
    assert len(sent) < 500 and np.array_equal(pickle.loads(sent).array, store.array)
    found.packed(ids[::-1], folder)
    assert len(list(folder.iterdir())) == 2
    in_memory = found.packed(ids)
    assert np.array_equal(in_memory.array, store.array)


def test_animals_that_were_left_out_cannot_be_packed(tmp_path):
    codes = clean()
    codes[: P // 4, 7] = 3
    found = prepared(tmp_path, codes)
    with pytest.raises(DataError, match=r"2 animals are not genotyped, or left out by data.genotypes.quality, such as"):
        found.packed(pl.Series(["a1", "a7", "q"]))


def test_missing_genotypes_stand_for_the_mean(tmp_path):
    """Also where the centre is another."""
    codes = clean(missing=0.05)
    found = prepared(tmp_path, codes, frequencies="half", quality=NO_LIMITS)
    store = found.packed(found.animals["animal"])
    x = store.decode(store.every, store.values(found.centre, mean=found.mean))
    dosage = np.where(codes == 3, found.mean[:, None], codes)
    assert x == pytest.approx(dosage - 1, abs=1e-6)


def analysis(folder, **genotypes):
    codes = clean(missing=0.01)
    codes[1] = 2
    write_plink(folder / "g.bed", codes, IDS, SNPS, [1] * P, list(range(P)))
    rng = np.random.default_rng(3)
    pl.DataFrame({"animal": IDS[:50], "y": rng.standard_normal(50)}).write_csv(folder / "y.csv")
    pl.DataFrame({"animal": IDS, "sire": ["0"] * N, "dam": ["0"] * N}).write_csv(folder / "p.csv")
    return {
        "data": {"phenotypes": str(folder / "y.csv"), "pedigree": str(folder / "p.csv"),
                 "genotypes": {"file": str(folder / "g.bed")} | genotypes},
        "traits": ["y"],
        "model": {"random": {"animal": {"relationship": "pedigree"}}},
    }  # fmt: skip


def test_check_prints_what_was_left_out(tmp_path):
    counts = check(analysis(tmp_path))
    text = counts_as_text(counts).splitlines()
    at = next(i for i, line in enumerate(text) if line.startswith("genotypes of g.bed"))
    assert [line.split() for line in text[at : at + 4]] == [
        ["genotypes", "of", "g.bed", "SNPs", "animals"],
        ["read", "40", "60"],
        ["dropped:", "call", "rate", "below", "0.9", "0"],
        ["dropped:", "call", "rate", "below", "0.9", "0"],
    ]
    assert "dropped: monomorphic                           1" in text
    assert "kept                                          39       60" in text
    assert "of 60 genotyped animals 50 have records, 60 are in the pedigree" in text
    assert "warning: data.genotypes: no term of the model uses the genotypes" in notes_as_text(counts)


def test_paths_are_relative_to_the_analysis_and_what_lies_beside_is_found(tmp_path):
    given = analysis(tmp_path)
    (tmp_path / "a.yaml").write_text(
        "data: {phenotypes: y.csv, genotypes: g.bed}\ntraits: [y]\nmodel: {random: {animal: {}}}\n"
    )
    section = load_config(tmp_path / "a.yaml").data.genotypes
    beside = {key: getattr(section, key) for key in ("file", "map", "animals")}
    assert beside == {"file": tmp_path / "g.bed", "map": tmp_path / "g.bim", "animals": tmp_path / "g.fam"}
    resolved = load_config(given).resolved()
    assert load_config(resolved).resolved() == resolved


def test_real_data():
    """PLINK files of 600 animals, 1,000 SNPs; demo.ma of the same folder has the frequencies of A1."""
    folder = shared_data("data/genomics/hibayes_demo")
    section = Genotypes.model_validate({"file": str(folder / "demo.bed"), "quality": NO_LIMITS}).completed()
    records = pl.read_csv(folder / "demo.phe", separator="\t", null_values="NA").filter(pl.col("T1").is_not_null())
    found = prepare_genotypes(section, records["id"], None)
    other = pl.read_csv(folder / "demo.ma", separator=" ")
    assert (found.snps["snp"] == other["SNP"]).all() and (found.snps["counted"] == other["A1"]).all()
    assert found.frequency == pytest.approx(other["MAF"].to_numpy(), abs=5e-5)


def test_dosages_are_kept_in_8_bits_or_in_float32(tmp_path):
    rng = np.random.default_rng(5)
    real = rng.uniform(0, 2, (N, 5)).round(3)
    frame = pl.DataFrame({"animal": IDS, **{f"m{j}": real[:, j] for j in range(5)}})
    frame.write_csv(tmp_path / "d.csv")
    keys = {"file": str(tmp_path / "d.csv")}
    for dosages, most in (("byte", 1 / 254 + 1e-6), ("single", 1e-6)):
        found = prepare_genotypes(Genotypes.model_validate(keys | {"dosages": dosages}), None, None)
        store = found.packed(pl.Series(IDS))
        assert np.abs(store.decode(store.every) - real.T).max() <= most
        assert found.frequency == pytest.approx(real.mean(axis=0) / 2, abs=1e-3 if dosages == "byte" else 1e-6)


def test_records_of_animals_that_were_left_out_say_why(tmp_path):
    """An animal of the file whose genotypes are mostly missing, and one that the file does not have."""
    rng = np.random.default_rng(1)
    ids = [f"a{i}" for i in range(12)]
    genotypes = pl.DataFrame({"id": ids} | {f"s{j}": rng.integers(0, 3, 12) for j in range(30)})
    bad = pl.when(pl.col("id") != "a3").then(pl.col(r"^s[0-5]$"))
    genotypes.with_columns(bad).write_csv(tmp_path / "g.csv")
    records = pl.DataFrame({"id": [*ids, "b1"], "y": rng.normal(size=13)})
    source = {
        "data": {"phenotypes": records, "genotypes": {"file": str(tmp_path / "g.csv"), "quality": {"call_rate": 0.8}}},
        "traits": ["y"],
        "model": {"random": {"genetic": {"level": "id", "relationship": "genomic"}}},
        "variances": {"mode": "fixed", "genetic": 1, "residual": 1},
        "sampler": {"method": "blup"},
    }
    with pytest.raises(DataError) as refused:
        prepare(load_config(source))
    assert "2 records are of animals without genotypes, such as a3, b1" in str(refused.value)
    said = "g.csv has 1 of these animals (a3), left out by data.genotypes.quality: call rate below 0.9"
    assert str(refused.value).endswith("\n" + said)
