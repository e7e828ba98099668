"""SNP_FILE and the options of preGSf90: the analysis that comes of them, and what is refused by name."""

import re

import numpy as np
import polars as pl
import pytest
from helpers.renumf90_cases import ANIMAL, Case, head, pedigree, write_files
from scipy.sparse import csr_array

from mmgibbs.config import load_config
from mmgibbs.data.prepare import prepare
from mmgibbs.errors import ConfigError
from mmgibbs.exchange.import_blupf90 import import_blupf90
from mmgibbs.runs.run import run

GENOTYPED = [f"c{i:02d}" for i in range(4, 24)]


def files(folder, options="", animal=ANIMAL, snp=True):
    """The parameter file, its tables, and 60 SNPs of 20 calves by gene dropping."""
    if snp:
        animal = animal.replace("PED_DEPTH", "SNP_FILE\nsnp.txt\nPED_DEPTH")
    text = head() + "EFFECT\n2 cross alpha\n" + animal + "(CO)VARIANCES\n1.0\n" + options
    path = write_files(folder, Case(text, {}))
    rng, codes = np.random.default_rng(2), {}
    for id, sire, dam, _ in pedigree().rows():
        gamete = lambda parent: rng.binomial(1, codes[parent] / 2 if parent in codes else np.full(60, 0.4))
        codes[id] = gamete(sire) + gamete(dam)
    (folder / "snp.txt").write_text("".join(f"{id} {''.join(map(str, codes[id]))}\n" for id in GENOTYPED))
    return path


def translated(tmp_path, options="", **keys):
    path, said = import_blupf90(files(tmp_path, options, **keys), overwrite=True)
    analysis = load_config(path)
    return analysis, analysis.model.random["genetic"].relationship, said


def test_the_defaults_of_pregsf90(tmp_path):
    analysis, found, said = translated(tmp_path)
    assert (found.name, found.blend, found.blend_with, found.tune, found.tau, found.omega) == (
        "single_step", 0.05, "A22", "A22", 1.0, 1.0,
    )  # fmt: skip
    quality = analysis.data.genotypes.quality
    assert (quality.maf, quality.call_rate, quality.animal_call_rate) == (0.05, 0.9, 0.9)
    assert analysis.data.genotypes.file == (tmp_path / "snp.txt").resolve()
    assert sum("single-step relationships; quality control" in line for line in said) == 1
    analysis, _, _ = translated(tmp_path, "OPTION no_quality_control\n")
    assert analysis.data.genotypes.quality.maf == 0 and analysis.data.genotypes.quality.monomorphic == "keep"


def test_every_option(tmp_path):
    options = [
        "AlphaBeta 0.9 0.1", "TauOmega 1.5 0.8", "tunedG 0", "whichG 2", "whichfreq 1", "minfreq 0.02",
        "callrate 0.8", "callrateAnim 0.7",
    ]  # fmt: skip
    analysis, found, said = translated(tmp_path, "".join(f"OPTION {o}\n" for o in options))
    assert (found.blend, found.tau, found.omega, found.tune) == (0.1, 1.5, 0.8, "none")
    assert (found.method, found.frequencies) == ("vanraden2", "half")
    quality = analysis.data.genotypes.quality
    assert (quality.maf, quality.call_rate, quality.animal_call_rate) == (0.02, 0.8, 0.7)
    assert not any("not carried over" in line for line in said)


@pytest.mark.parametrize(
    "option, message",
    [
        ("GammaDelta 0.1 0.2", "OPTION GammaDelta 0.1 0.2: this program has no such genomic relationships"),
        ("apy 100", "OPTION apy 100: not carried over; here it is the key core of the relationship; needed a file"),
        ("tunedG 9", "OPTION tunedG: found 9, needed one of 0 (none), 1 (unit), 2 (A22), 3 (mean), 4 (fst)"),
        ("AlphaBeta 0.9 0.2", "OPTION AlphaBeta: found 0.9 and 0.2, needed shares of 0 or more that add up to 1"),
        ("TauOmega 1", "OPTION TauOmega: found 1 values, needed 2"),
        ("minfreq few", "OPTION minfreq: found few, needed a number"),
    ],
)
def test_options_that_are_refused(tmp_path, option, message):
    with pytest.raises(ConfigError, match=re.escape(f"line 29: {message}")):
        import_blupf90(files(tmp_path, f"OPTION {option}\n"))


def test_files_that_are_not_there(tmp_path):
    said = import_blupf90(files(tmp_path, "OPTION tunedG 2\n", snp=False))[1]
    assert any("OPTION tunedG 2: there is no SNP_FILE that it applies to" in line for line in said)
    path = files(tmp_path)
    (tmp_path / "snp.txt").unlink()
    with pytest.raises(ConfigError, match=re.escape("SNP_FILE: found snp.txt, which is no file")):
        import_blupf90(path)


def test_genotypes_alone_take_a_pedigree_of_unknown_parents(tmp_path):
    """As in the GBLUP example of the BLUPF90 tutorials, which has no FILE: what is refused says what does it, and that
    is BLUP by G alone."""
    path = files(tmp_path, "OPTION tunedG 0\nOPTION no_quality_control\n")
    text = path.read_text()
    path.write_text(text.replace("FILE\nped.txt\n", "", 1))
    with pytest.raises(ConfigError, match="found no FILE, needed the pedigree; where genotypes alone .* ID 0 0, leav"):
        import_blupf90(path)
    path.write_text(text)
    ids = pedigree().to_series(0).to_list()
    (tmp_path / "ped.txt").write_text("".join(f"{id} 0 0 0\n" for id in ids))
    made, _ = import_blupf90(path, overwrite=True)
    prepared = prepare(load_config(made))
    (term,) = (t for t in prepared.design.terms if t.name == "genetic")
    indptr, indices, values = term.relationship.inverse_csr()
    inverse = csr_array((values, indices, indptr), shape=(term.n_levels,) * 2).toarray()
    (level,) = (of for t, of in zip(prepared.design.terms, prepared.levels, strict=True) if t.name == "genetic")
    own = np.flatnonzero(level.ids.is_in(GENOTYPED).to_numpy())
    others = np.setdiff1d(np.arange(term.n_levels), own)
    np.testing.assert_allclose(inverse[np.ix_(others, others)], np.eye(others.size))
    assert not inverse[np.ix_(own, others)].any() and np.abs(inverse[np.ix_(own, own)] - np.eye(own.size)).max() > 0.1
    M = np.array([[int(x) for x in line.split()[1]] for line in (tmp_path / "snp.txt").read_text().splitlines()])
    p = M.mean(axis=0) / 2
    G = 0.95 * (M - 2 * p) @ (M - 2 * p).T / (2 * p * (1 - p)).sum() + 0.05 * np.eye(len(M))
    order = [GENOTYPED.index(level.ids[int(i)]) for i in own]
    np.testing.assert_allclose(inverse[np.ix_(own, own)] @ G[np.ix_(order, order)], np.eye(own.size), atol=1e-6)


def test_it_runs_and_is_the_analysis_written_by_hand(tmp_path):
    found = run(import_blupf90(files(tmp_path))[0], directory=tmp_path / "run", progress=False)
    analysis = {
        "data": {
            "phenotypes": str(tmp_path / "data.txt"),
            "header": ["animal", *(f"col{i}" for i in range(2, 12))],
            "separator": "whitespace",
            "pedigree": str(tmp_path / "ped.txt"),
            "pedigree_columns": {"id": 1, "sire": 2, "dam": 3},
            "genotypes": {"file": str(tmp_path / "snp.txt"), "quality": {"maf": 0.05}},
        },
        "traits": {"trait1": {"column": "col5", "missing": ["0"]}},
        "model": {
            "intercept": False,
            "fixed": {"effect1": {"column": "col2"}},
            "random": {"genetic": {"level": "animal", "relationship": "single_step"}},
        },
        "variances": {"genetic": 1.0, "residual": 2.0},
        "sampler": {"method": "blup"},
    }
    hand = run(analysis, directory=tmp_path / "hand", progress=False)
    for column in ("mean", "sd", "reliability"):
        ours, theirs = (r.solutions.filter(pl.col("term") == "genetic").sort("level")[column] for r in (found, hand))
        np.testing.assert_allclose(ours.to_numpy(), theirs.to_numpy(), rtol=1e-8, atol=1e-9)
