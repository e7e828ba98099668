"""Pedigree against genotypes: known wrong parents are found, and nothing else; counts by hand; what is refused."""

import json

import numpy as np
import polars as pl
import pytest
from scipy import stats

import mmgibbs
from mmgibbs.cli import main
from mmgibbs.errors import ConfigError, DataError
from mmgibbs.pedigree.read import read_pedigree
from mmgibbs.population.parentage import Thresholds, are_descendants, birth_bounds
from mmgibbs.population.results import parentage_lines

N_SNPS, ERROR = 3000, 0.002
N_PARENTS, N_PROGENY = 40, 160
NAMES = [f"p{i}" for i in range(N_PARENTS)] + [f"o{i}" for i in range(N_PROGENY)]


def simulated(seed=1):
    """(animals, SNPs) genotypes with errors, and the true pedigree: sires are p0 .. p19, dams p20 .. p39."""
    rng = np.random.default_rng(seed)
    frequency = rng.uniform(0.1, 0.9, N_SNPS)
    sire = np.concatenate([np.full(N_PARENTS, -1), rng.integers(0, 20, N_PROGENY)])
    dam = np.concatenate([np.full(N_PARENTS, -1), rng.integers(20, N_PARENTS, N_PROGENY)])
    haplotypes = (rng.random((len(NAMES), 2, N_SNPS)) < frequency).astype(np.int8)
    for i in range(N_PARENTS, len(NAMES)):
        for k, parent in enumerate((sire[i], dam[i])):
            haplotypes[i, k] = np.where(rng.random(N_SNPS) < 0.5, haplotypes[parent, 0], haplotypes[parent, 1])
    genotypes = haplotypes.sum(axis=1)
    is_wrong = rng.random(genotypes.shape) < ERROR
    genotypes = np.where(is_wrong, (genotypes + rng.integers(1, 3, genotypes.shape)) % 3, genotypes).astype(float)
    genotypes[rng.random(genotypes.shape) < 0.02] = np.nan
    return genotypes, sire, dam


def pedigree_frame(sire, dam, births=True):
    names = np.array([*NAMES, None], dtype=object)
    frame = pl.DataFrame({"id": NAMES, "sire": names[sire].tolist(), "dam": names[dam].tolist()})
    return frame.with_columns(birth=pl.Series([2000] * N_PARENTS + [2003] * N_PROGENY)) if births else frame


def write_genotypes(path, genotypes, names=NAMES):
    columns = {f"s{j}": pl.Series(genotypes[:, j], nan_to_null=True).cast(pl.Int8) for j in range(genotypes.shape[1])}
    pl.DataFrame({"animal": names} | columns).write_parquet(path)
    return path


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    """Eight sires and four dams are wrong, five sires unknown, and one animal is genotyped twice."""
    folder = tmp_path_factory.mktemp("parentage")
    genotypes, sire, dam = simulated()
    rng = np.random.default_rng(2)
    chosen = N_PARENTS + rng.choice(N_PROGENY, 17, replace=False)
    wrong_sires, wrong_dams, unknown = chosen[:8], chosen[8:12], chosen[12:]
    given_sire, given_dam = sire.copy(), dam.copy()
    given_sire[wrong_sires] = (sire[wrong_sires] + 1 + rng.integers(0, 18, 8)) % 20
    given_dam[wrong_dams] = 20 + (dam[wrong_dams] - 20 + 1 + rng.integers(0, 18, 4)) % 20
    given_sire[unknown] = -1
    genotypes[NAMES.index("o5")] = genotypes[NAMES.index("o4")]
    for parents in (given_sire, given_dam, sire, dam):
        parents[NAMES.index("o5")] = parents[NAMES.index("o4")]
    path = write_genotypes(folder / "genotypes.parquet", genotypes)
    frame = pedigree_frame(given_sire, given_dam)
    described = mmgibbs.describe_pedigree(frame, folder / "out", genotypes=path, report=True)
    return {"folder": folder, "path": path, "frame": frame, "described": described, "true": (sire, dam),
            "given": (given_sire, given_dam), "genotypes": genotypes}  # fmt: skip


def wrong_pairs(case):
    """(progeny, parent, role) that are wrong in the pedigree."""
    out = set()
    for role, true, given in zip(("sire", "dam"), case["true"], case["given"], strict=True):
        out |= {(NAMES[i], NAMES[given[i]], role) for i in np.flatnonzero((given != true) & (given >= 0))}
    return out


def test_all_wrong_parents_are_found_and_no_true_one(case):
    conflicts = case["described"].parentage.conflicts
    assert set(conflicts.select("progeny", "parent", "role").iter_rows()) == wrong_pairs(case)
    known = sum(int((given >= 0).sum()) for given in case["given"])
    assert case["described"].facts["parentage"]["pairs"] == known
    for row in conflicts.iter_rows(named=True):
        a, b = (case["genotypes"][NAMES.index(row[name])] for name in ("progeny", "parent"))
        both = ~np.isnan(a) & ~np.isnan(b)
        assert (row["opposing"], row["compared"]) == (int((np.abs(a - b)[both] == 2).sum()), int(both.sum()))
        assert row["opposing"] > row["limit"] and row["share"] == row["opposing"] / row["compared"]
    assert case["described"].parentage.duplicates.select("first", "second", "different").rows() == [("o4", "o5", 0)]


def test_the_true_parents_are_the_most_likely(case):
    likely, (sire, dam) = case["described"].parentage.likely_parents, case["true"]
    first = likely.group_by("animal", "role").first().select("animal", "role", "candidate")
    best = {(a, role): c for a, role, c in first.iter_rows()}
    expected = {}
    for role, true, given in zip(("sire", "dam"), (sire, dam), case["given"], strict=True):
        expected |= {(NAMES[i], role): NAMES[true[i]] for i in np.flatnonzero(given != true)}
    assert best == expected
    assert likely["born_before"].all()
    named = case["described"].parentage.conflicts.select("progeny", "role", "most_likely").iter_rows()
    assert all(expected[progeny, role] == candidate for progeny, role, candidate in named)


def test_files_page_and_command(case, capsys):
    folder = case["folder"]
    names = {path.name for path in (folder / "out").iterdir()}
    assert {"conflicts.csv", "likely_parents.parquet", "duplicates.csv", "pedigree.html"} <= names
    page = (folder / "out" / "pedigree.html").read_text()
    assert "Parents and genotypes" in page and case["described"].parentage.conflicts["progeny"][0] in page
    facts = json.loads((folder / "out" / "pedigree.json").read_text())["parentage"]
    assert facts["conflicts"] == 12 and facts["duplicates"] == 1
    case["frame"].write_csv(folder / "pedigree.csv")
    words = ["pedigree", str(folder / "pedigree.csv"), "--genotypes", str(case["path"]), "--error-rate", "0.005"]
    assert main(words) == 0
    out = capsys.readouterr()
    assert "12 of 315 pairs of parent and progeny are in conflict" in out.out
    assert "warning: 12 of 315 pairs" in out.err and "o4 and o5" in out.err


def test_without_births_both_directions_are_listed(case):
    """A pair of which neither is known as the parent of the other may be so in both directions."""
    frame = case["frame"].drop("birth")
    made = mmgibbs.describe_pedigree(frame, genotypes=case["path"]).parentage
    likely = set(made.likely_parents.select("animal", "role", "candidate").iter_rows())
    sire, given = case["true"][0], case["given"][0]
    for i in np.flatnonzero((given < 0) & (sire >= 0)):
        assert (NAMES[i], "sire", NAMES[sire[i]]) in likely
        assert (NAMES[sire[i]], "sire", NAMES[i]) in likely  # the sire's own sire is unknown
    assert made.likely_parents["born_before"].null_count() == made.likely_parents.height
    said = [note for note in made.notes if note.startswith("likely parents: ")]
    assert len(said) == 1 and "may be progeny as well as a parent: the pedigree has no births" in said[0]
    facts = made.facts
    assert facts["animals_with_older_likely_parents"] == 0 < facts["animals_with_likely_parents"]
    recorded = {pair for of in ("sire", "dam") for pair in frame.drop_nulls(of).select("id", of).rows()}
    candidates = made.likely_parents.select("candidate", "animal").rows()
    assert not recorded & set(candidates)  # an animal whose sire is unknown has its progeny among the compatible pairs
    lines = dict(parentage_lines(facts))
    assert lines["Parents checked"].endswith("(known to be older than their progeny: of 0)")
    births = case["described"].parentage
    assert not any("may be progeny" in note for note in births.notes)
    assert "known to be older" not in dict(parentage_lines(births.facts))["Parents checked"]


def test_births_of_relatives_tell_who_is_older(case):
    """Parents without births are older than their recorded progeny, and so than all animals of that year."""
    known = pl.when(pl.col("birth") > 2000).then("birth")  # those of the parents are unknown
    frame = case["frame"].with_columns(birth=known)
    made = mmgibbs.describe_pedigree(frame, genotypes=case["path"]).parentage
    assert set(made.likely_parents["born_before"]) == {True}
    expected = case["described"].parentage.likely_parents
    assert set(made.likely_parents.rows()) == set(expected.rows())


def test_bounds_of_births_and_descendants():
    rows = [
        ("a", None, None, None), ("f", "a", None, 2010.0), ("b", "a", None, 2000.0), ("c", "b", None, None),
        ("d", "c", None, 2006.0), ("e", "c", None, None),
    ]  # fmt: skip
    read = read_pedigree(pl.DataFrame(rows, schema=["id", "sire", "dam", "birth"], orient="row"))
    code = dict(zip(read.ids, range(6), strict=True))
    low, high = birth_bounds(read)
    found = {name: (low[code[name]], high[code[name]]) for name in "abcde"}
    assert found == {"a": (-np.inf, 2000), "b": (2000, 2000), "c": (2000, 2006), "d": (2006, 2006), "e": (2000, np.inf)}
    assert (low[-1], high[-1]) == (-np.inf, np.inf)
    pairs = np.array([[code[x] for x in pair] for pair in ("ae", "ea", "ce", "fe", "aa")] + [[-1, 0], [0, -1]])
    found = are_descendants(read, pairs[:, 0], pairs[:, 1])
    assert found.tolist() == [True, False, True, False, False, False, False]


def test_a_true_pedigree_has_no_conflict(tmp_path):
    genotypes, sire, dam = simulated(3)
    path = write_genotypes(tmp_path / "g.parquet", genotypes)
    parentage = mmgibbs.describe_pedigree(pedigree_frame(sire, dam), genotypes=path, error_rate=0.004).parentage
    assert parentage.conflicts.is_empty() and parentage.duplicates.is_empty()
    assert not [note for note in parentage.notes if note.startswith("warning")]


def test_thresholds_by_hand():
    """r = e (1 - 2 pq): with p = 1/2 and e = 0.01, half a per cent; every SNP with all true pairs in proportion."""
    p, e = 0.5, 0.01
    pair = {(2, 2): p**3, (2, 1): p * p * (1 - p), (1, 2): p * p * (1 - p)}  # of one homozygote; the other alike
    exact = 2 * (pair[2, 2] * 2 * e / 2 + (pair[2, 1] + pair[1, 2]) * e / 2)  # one error, of the first order in e
    assert exact == pytest.approx(e * (1 - 2 * p * (1 - p)))
    limits = Thresholds(e, exact, 0.125)
    highest = int(limits.highest_opposing(1000))
    assert stats.binom.sf(highest, 1000, exact) < 1e-6 <= stats.binom.sf(highest - 1, 1000, exact)
    assert int(Thresholds(0.0, 0.0, 0.1).highest_opposing(500)) == 0


def test_genotypes_that_do_not_suffice(case, tmp_path):
    path = write_genotypes(tmp_path / "few.parquet", case["genotypes"][:, :150])
    notes = mmgibbs.describe_pedigree(case["frame"], genotypes=path, error_rate=0.03).notes
    assert any("150 SNPs do not tell a parent from a full sib" in note for note in notes)
    genotypes = case["genotypes"].copy()
    genotypes[60, :400] = np.nan
    path = write_genotypes(tmp_path / "gaps.parquet", genotypes)
    described = mmgibbs.describe_pedigree(case["frame"], genotypes=path)
    assert any(f"1 animal left out, call rate below 0.9, such as {NAMES[60]}" in note for note in described.notes)
    assert NAMES[60] not in described.parentage.conflicts["progeny"]


def test_what_cannot_be_used_is_refused(case, tmp_path):
    strangers = write_genotypes(tmp_path / "strangers.parquet", case["genotypes"], [f"x{i}" for i in range(len(NAMES))])
    with pytest.raises(DataError, match="none of the 200 genotyped animals is in the pedigree.*Genotypes have 'x0'"):
        mmgibbs.describe_pedigree(case["frame"], genotypes=strangers)
    few = write_genotypes(tmp_path / "few.parquet", case["genotypes"][:, :50])
    with pytest.raises(DataError, match="50 of 50 SNPs are known in 90 % of the animals; needed 100"):
        mmgibbs.describe_pedigree(case["frame"], genotypes=few)
    with pytest.raises(ConfigError, match="error_rate: expected a number from 0 to below 0.25, got 2"):
        mmgibbs.describe_pedigree(case["frame"], genotypes=few, error_rate=2)
    with pytest.raises(DataError, match="no such file"):
        mmgibbs.describe_pedigree(case["frame"], genotypes=tmp_path / "absent.bed")
