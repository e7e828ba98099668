"""Every mistake in an analysis file gets one line: file, YAML path, what was found, what is needed."""

import polars as pl
import pytest
from helpers.good_analysis import GOOD, IN_ORDER, REMOVE, changed, message_of

from mmgibbs.config import load_config

# path: (value, how the one message that must come begins, without the path)
MISTAKES = {
    "nam": [("x", ": unknown key; did you mean 'name'?")],
    "thin": [(2, ": unknown key; did you mean 'sampler.thin'?")],
    "model.random.genetic.effects.direct.xyz": [
        (1, ": unknown key; known are level, levels, weights, mates, interaction, missing, traits, covariates,"),
    ],
    "model.fixed.sex.prior_variance": [(3, ": unknown key; did you mean 'prior'?")],
    "sampler.stop": [
        ({}, ": found no target, needed one or more of rhat, ess, mcse, mcse_ebv"),
        (400, ": found 400, needed a mapping with keys such as rhat, ess, mcse, mcse_ebv"),
        ({"rhat": 1}, ".rhat: found 1, needed a number above 1, such as 1.01"),
        ({"mcse_ebv": 5}, ".mcse_ebv: found 5, needed a number between 0 and 1: a fraction of the posterior SD"),
        ({"ess": 400, "max_samples": 10}, ".max_samples: found 10, needed at least sampler.samples (1000), after"),
    ],
    "sampler": [
        ({"chains": 1, "stop": {"rhat": 1.01}}, ".stop.rhat: found chains: 1, needed at least two chains, which R-hat"),
        ({"method": "blup", "stop": {"ess": 400}}, ".stop: cannot be combined with method: blup, which draws nothing;"),
        ({"tolerance": 1e-06}, ".tolerance: found 1e-06, which cannot be combined with engine: auto, which solves"),
        ({"engine": "serial", "tolerance": 1e-06}, ".tolerance: found 1e-06, which cannot be combined with engine:"),
        ({"engine": "serial", "threads": 4}, ".threads: found 4, which cannot be combined with engine: serial, which"),
        ({"engine": "marginal", "update": "site"}, ".update: found site, which cannot be combined with engine:"),
        ({"engine": "marginal", "precision": "single"}, ".precision: found single, which cannot be combined with"),
        ({"engine": "marginal", "interweave": True}, ".interweave: found true, which cannot be combined with engine:"),
        ({"joint_variances": True}, ".joint_variances: is not a key any more; use engine: marginal, which draws"),
        (
            {"engine": "marginal", "device": "gpu"},
            ".device: found gpu, which cannot be combined with engine: marginal: it factorises sparse equations, which "
            "the CPU does; needed engine: structured, hybrid or pcg, or device: cpu or auto",
        ),
        ({"method": "blup", "update": "site"}, ".update: found site, which cannot be combined with method: blup,"),
        (
            {"engine": "serial", "device": "gpu"},
            ".device: found gpu, which cannot be combined with engine: serial: it draws one level after another; "
            "needed engine: structured, hybrid or pcg, or device: cpu or auto",
        ),
        ({"method": "blup", "engine": "hybrid"}, ".engine: found hybrid, which cannot be combined with method: blup;"),
    ],
    "data": [
        (REMOVE, ": missing, needed here"),
        ("p.csv", ": found 'p.csv', needed a mapping with keys such as phenotypes, pedigree, separator,"),
    ],
    "data.phenotypes": [
        (REMOVE, ": missing, needed here"),
        ("~nobody-has-this-name/p", ": found '~nobody-has-this-name/p', but there is no such home directory"),
        (pl.LazyFrame(), ": found a LazyFrame, needed a path or a DataFrame (call .collect())"),
    ],
    "model.random.genetic.effects.direct.level": [
        (REMOVE, ": missing, needed the column of its levels, such as animal or dam")
    ],
    "variances.herd": [
        ({"prior": {"df": 3}}, ".prior.scale: missing, needed here"),
        (-3, ".start: found the variance -3 for ww, needed one above 0"),
        ("3,5", ".start: found '3,5', needed a number or a matrix (a list of rows) (decimals follow a point)"),
        ([[1, 0], [0, 1]], ".start: found a 2 x 2 matrix, needed one number (the variance of ww)"),
        ({"prior": {"df": "inf", "scale": 1}}, ".prior.df: found 'inf', needed a number below 1e12"),
        ({"prior": "uniform"}, ".prior: found 'uniform', needed a mapping with keys such as df, scale"),
    ],
    "model.fixed.age.legendre": [
        ({"range": [0, 1]}, ".degree: missing, needed here"),
        ({"degree": 2, "range": [5, 1]}, ".range: found [5, 1], needed two numbers [low, high], low below high"),
        ({"degree": 2, "range": [5]}, ".range: found a list of 1 value, needed two numbers [low, high], low below"),
    ],
    "data.groups": [
        ({"effect": "random"}, ": found neither column nor parents, needed one of them"),
        ({"column": "g", "effect": "randm"}, ".effect: found 'randm', needed random, fixed or metafounders; did you"),
    ],
    "model.fixed": [
        (["sex"], ": found a list of 1 value, needed a mapping from the name of each fixed effect to its keys")
    ],
    "model.intercept": [("maybe", ": found 'maybe', needed auto, true or false")],
    "data.encoding": [("hex", ": found 'hex', needed the name of an encoding, as windows-1252 or cp850")],
    "data.separator": [("ab", ": found 'ab', needed one character, tab or whitespace")],
    "data.widths": [
        ([4, 0], ": value 2 of the list: found 0, needed a whole number of at least 1"),
    ],
    "data.missing": [
        ([None], ": value 1 of the list: found nothing, needed the text of a cell (write '' for empty cells)")
    ],
    "data.header": [(["a", "b", "a"], ": found 'a' twice, needed every value once")],
    "name": [(name, f": found {name!r}, needed a name that a folder can have") for name in ("a/b", "..")],
    "traits": [
        (REMOVE, ": missing, needed at least one trait"),
        ([], ": found an empty list, needed the names of one or more traits"),
        (["bw", "ww", "bw"], ": found 'bw' twice, needed every value once"),
        ({"bw": {"type": "normall"}, "ww": {}}, ".bw.type: found 'normall', needed normal, binary, ordinal, censored"),
        ({"bw": {"name": "x"}, "ww": {}}, ".bw.name: unknown key; known are column, missing, by, where, type,"),
        ({"bw": {"column": "ww"}, "ww": {}}, ".ww: trait 'bw' has its column 'ww' already, needed a different one"),
        (["bw", "ww", "milk,kg"], ": value 3 of the list: found the name 'milk,kg' with the character ',', needed a"),
    ],
    "model.fixed.sex.traits": [(["wv"], ": 'wv' is not a trait; the traits are bw, ww")],
    "model.random.genetic.effects.maternal.traits": [(["www"], ": 'www' is not a trait; did you mean 'ww'?")],
    "model.fixed.sex.without_value": [("omit", ": found 'omit', needed error or drop")],
    "model.fixed.sex.degree": [(2, ": cannot be combined with kind: class; needed kind: covariate")],
    "model.fixed.age.degree": [(0, ": found 0, needed a whole number from 1 to 20")],
    "model.fixed.age.prior": [({"variance": 0}, ".variance: found 0, needed a number above 0")],
    "model.fixed.intercept": [
        ({}, ": this name is reserved, needed another name (column: or level: says which column)")
    ],
    "model.random.mode": [({}, ": this name is reserved, needed another name (column: or level: says which column)")],
    "model.random.sex": [
        ({}, ": a fixed effect has this name already, needed another name (level: says which column)")
    ],
    "model.random.herd.relationship": [
        ("pedigre", ": found 'pedigre', needed identity, pedigree, genomic, dominance, single_step or the path of a"),
        ({"kind": "pedigre"}, ".kind: found 'pedigre'; did you mean 'pedigree'?"),
        ({"file": "inverse.txt"}, ".kind: missing, needed one of identity, pedigree, ar1, random_walk, spline, file,"),
        ("genomic", ": found genomic, but the analysis has no genotypes: needed data.genotypes"),
        ("dominance", ": found dominance, but the analysis has no genotypes: needed data.genotypes, or, for dominance"),
        ({"kind": "single_step", "tau": 0}, ".tau: found 0, needed a number above 0"),
        ({"kind": "single_step", "with": "G"}, ".with: found 'G', needed A22"),
        ({"kind": "single_step", "tune": "both"}, ".tune: found 'both', needed A22, unit, mean, fst, none, true (A22)"),
        ({"kind": "genomic", "frequencies": "bse"}, ".frequencies: found 'bse', needed genotyped, recorded, half,"),
        ({"kind": "dominance", "tau": 2}, ".tau: unknown key; known are blend, storage"),
        (["pedigree"], ": found a list of 1 value, needed identity, pedigree, genomic, dominance, single_step or the"),
    ],
    "model.random.herd.effects": [
        ({}, "model.random.herd.traits: cannot be combined with effects; needed inside one of these effects")
    ],
    "model.random.herd": [
        ({"effects": {}}, ".effects: found no effect, needed at least one: effects: {NAME: {level: COLUMN}}")
    ],
    "model.random.herd.covariates": [
        (["age"], ": found without the name of an effect, needed effects: {NAME: {level: ..., covariates: ...}}")
    ],
    "data.pedigree": [
        (REMOVE, "model.random.genetic.relationship: found pedigree, but the analysis has no pedigree: needed"),
    ],
    "model.response": [("y", ": found without plugin; it belongs to a regression")],
    "data.pedigree_columns": [
        ({"id": 1, "sire": "s", "dam": 3}, ": names cannot be combined with positions; needed either names or"),
        ({"id": 1, "sire": 2, "dam": 2}, ": found the same column twice, needed a column of its own for each"),
        ({"sire": None, "dam": None}, ": found neither a sire nor a dam, needed one of them at least"),
    ],
    "data.genotypes": [
        ({"file": "g.bed", "quality": {"maf": 0.7}}, ".quality.maf: found 0.7, needed a number from 0 to 0.5"),
        ({"file": "g.bed", "quality": {"mav": 0.1}}, ".quality.mav: unknown key; did you mean 'maf'?"),
        ({"file": "g.bed", "format": "finalreport"}, ".format: found 'finalreport', needed auto, plink, pgen, vcf,"),
    ],
    "variances.genetics": [(3, ": is not a random effect of the model; did you mean 'genetic'?")],
    "variances.sex": [(3, ": is a fixed effect of the model; there are genetic, herd, residual")],
    "variances.genetic": [
        (30, f".start: found the number 30, needed a 3 x 3 matrix {IN_ORDER}"),
        (
            [[1, 0, 0], [0, 1], [0, 0, 1]],
            f".start: found a matrix with rows of 2 and 3 numbers, needed a 3 x 3 matrix {IN_ORDER}",
        ),
        ([1, 2, 3], ".start: row 1 of the matrix: found 1, needed a list of numbers: [[a, b], [b, c]]"),
        ([[1, 0, "x"], [0, 1, 0], [0, 0, 1]], ".start: row 1 of the matrix: found 'x', needed a number"),
        ([[1, 0.9, -0.9], [0.9, 1, 0.9], [-0.9, 0.9, 1]], ".start: found a matrix whose correlations cannot occur"),
    ],
    "variances.residual": [
        ([[12, 10], [9, 160]], ".start: found 10 for (bw, ww) and 9 for (ww, bw), needed a symmetric matrix"),
        ([[1, 2], [2, 1]], ".start: found the correlation 2 between bw and ww, needed one between -1 and 1"),
        ([[1, 1], [1, 1]], ".start: found a matrix whose correlations cannot occur together"),
        ([[1, 0], [0, 0]], ".start: found the variance 0 for ww, needed one above 0"),
        ({"start": [[2, 1], [1, 2]], "structure": "diagonal"}, ".start: found covariances other than 0, needed 0"),
        ({"prior": {"df": 3, "scale": [[1, 0], [0, -1]]}}, ".prior.scale: found the variance -1 for ww, needed one of"),
        ({"prior": {"df": 3, "scale": [[1, 1], [1, 0]]}}, ".prior.scale: found the covariance 1 of bw and ww where a"),
    ],
    "sampler.thin": [(2000, ": found 2000, needed at most sampler.samples (1000), or no draw is kept")],
    "sampler.samples": [
        (10**30, ": found a number of more than 30 digits, needed a whole number of at least 1"),
        (2**32, ": found 4294969296 sweeps with burn_in, needed fewer than 4294967296"),
    ],
    "sampler.seed": [(2**32, ": found 4294967296, needed a whole number from 0 to 4294967295")],
    "sampler.chains": [(0, ": found 0, needed a whole number from 1 to 4294967295")],
    "sampler.engine": [
        ("sereal", ": found 'sereal', needed auto, serial, hybrid, structured, pcg or marginal; did you mean 'serial'?")
    ],
    "sampler.precision": [(32, ": found 32, needed double or single")],
    "sampler.checkpoint_every": [
        ("2 hours", ": found '2 hours', needed a number of sweeps such as 500, or minutes such as 10m")
    ],
    "sampler.tolerance": [(0, ": found 0, needed a number between 0 and 1")],
    "sampler.partition": [
        ("effect", ": found effect, which draws the effects of a level separately and cannot be combined with update:"),
    ],
    "output.save_levels": [
        (["herds"], ": 'herds' is not an effect of the model; did you mean 'herd'?"),
        ([["herd"]], ": found a list of 1 value, needed a list of terms, or of TERM: [ids]"),
        ({"herd": {"a": 1}}, ".herd: found a mapping with the keys a, needed a list of ids, {file: PATH} with an id"),
    ],
}
CASES = [(path, *mistake) for path, mistakes in MISTAKES.items() for mistake in mistakes]


def test_the_good_one_is_good():
    load_config(GOOD)


@pytest.mark.parametrize("path, value, message", CASES, ids=[f"{i}-{path}" for i, (path, *_) in enumerate(CASES)])
def test_one_mistake_one_message(path, value, message):
    at = path if message[0] in ":." else ""
    found = message_of(changed(path, value))
    assert found.startswith(f"analysis: {at}{message}") and "\n" not in found
