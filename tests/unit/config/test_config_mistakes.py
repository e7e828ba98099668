"""Every mistake in an analysis file gets one line: file, YAML path, what was found, what is needed."""

import numpy as np
import polars as pl
import pytest
from helpers.good_analysis import GOOD, IN_ORDER, REMOVE, changed, message_of

from mmgibbs.config import load_config

# path, value, the one message that must come ('analysis: ' before it)
MISTAKES = [
    # keys
    ("nam", "x", "nam: unknown key; did you mean 'name'?"),
    ("thin", 2, "thin: unknown key; did you mean 'sampler.thin'?"),
    ("phenotypes", "p.csv", "phenotypes: unknown key; did you mean 'data.phenotypes'?"),
    ("data.phenotype", "p.csv", "data.phenotype: unknown key; did you mean 'phenotypes'?"),
    ("model.fixed.sex.kindd", "class", "model.fixed.sex.kindd: unknown key; did you mean 'kind'?"),
    ("model.random.herd.trait", "ww", "model.random.herd.trait: unknown key; did you mean 'traits'?"),
    (
        "model.random.genetic.effects.direct.xyz",
        1,
        "model.random.genetic.effects.direct.xyz: unknown key; known are level, levels, weights, mates, "
        "interaction, missing, traits, covariates, legendre, unknown_level",
    ),
    ("model.fixed.sex.prior_variance", 3, "model.fixed.sex.prior_variance: unknown key; did you mean 'prior'?"),
    ("variances.herd", {"strat": 3}, "variances.herd.strat: unknown key; did you mean 'start'?"),
    ("sampler.stop", {}, "sampler.stop: found no target, needed one or more of rhat, ess, mcse, mcse_ebv"),
    (
        "sampler.stop",
        400,
        "sampler.stop: found 400, needed a mapping with keys such as rhat, ess, mcse, mcse_ebv",
    ),
    ("sampler.stop", {"esss": 400}, "sampler.stop.esss: unknown key; did you mean 'ess'?"),
    ("sampler.stop", {"rhat": 1}, "sampler.stop.rhat: found 1, needed a number above 1, such as 1.01"),
    (
        "sampler.stop",
        {"mcse_ebv": 5},
        "sampler.stop.mcse_ebv: found 5, needed a number between 0 and 1: a fraction of the posterior SD",
    ),
    (
        "sampler.stop",
        {"ess": 400, "max_samples": 10},
        "sampler.stop.max_samples: found 10, needed at least sampler.samples (1000), after which the targets are "
        "checked first",
    ),
    (
        "sampler",
        {"chains": 1, "stop": {"rhat": 1.01}},
        "sampler.stop.rhat: found chains: 1, needed at least two chains, which R-hat compares",
    ),
    (
        "sampler",
        {"method": "blup", "stop": {"ess": 400}},
        "sampler.stop: cannot be combined with method: blup, which draws nothing; needed method: gibbs",
    ),
    ("path", "x", "path: unknown key; known are name, data, traits, model, variances, sampler, output, decisions"),
    # missing
    ("data", REMOVE, "data: missing, needed here"),
    ("data.phenotypes", REMOVE, "data.phenotypes: missing, needed here"),
    (
        "model.random.genetic.effects.direct.level",
        REMOVE,
        "model.random.genetic.effects.direct.level: missing, needed the column of its levels, such as animal or dam",
    ),
    ("variances.herd", {"prior": {"df": 3}}, "variances.herd.prior.scale: missing, needed here"),
    ("model.fixed.age.legendre", {"range": [0, 1]}, "model.fixed.age.legendre.degree: missing, needed here"),
    ("data.groups", {"effect": "random"}, "data.groups: found neither column nor parents, needed one of them"),
    # types
    (
        "data",
        "p.csv",
        "data: found 'p.csv', needed a mapping with keys such as phenotypes, pedigree, separator, pedigree_separator",
    ),
    (
        "model.fixed",
        ["sex"],
        "model.fixed: found a list of 1 value, needed a mapping from the name of each fixed effect to its keys",
    ),
    (
        "model.fixed.sex",
        3,
        "model.fixed.sex: found 3, needed a mapping with keys such as column, kind, degree, legendre",
    ),
    ("model.intercept", "maybe", "model.intercept: found 'maybe', needed auto, true or false"),
    (
        "data.phenotypes",
        ["p.csv"],
        "data.phenotypes: found a list of 1 value, needed the path of a file (or, from Python, a data frame such as "
        "those of Polars and pandas)",
    ),
    (
        "data.phenotypes",
        "~nobody-has-this-name/p",
        "data.phenotypes: found '~nobody-has-this-name/p', but there is no such home directory",
    ),
    (
        "data.phenotypes",
        pl.LazyFrame(),
        "data.phenotypes: found a LazyFrame, needed a path or a DataFrame (call .collect())",
    ),
    ("data.add_missing_animals", "perhaps", "data.add_missing_animals: found 'perhaps', needed true or false"),
    ("data.encoding", "hex", "data.encoding: found 'hex', needed the name of an encoding, as windows-1252 or cp850"),
    ("data.separator", "ab", "data.separator: found 'ab', needed one character, tab or whitespace"),
    ("data.weights", True, "data.weights: found true, needed the name of a column"),
    (
        "data.missing",
        [None],
        "data.missing: value 1 of the list: found nothing, needed the text of a cell (write '' for empty cells)",
    ),
    ("data.header", ["a", "b", "a"], "data.header: found 'a' twice, needed every value once"),
    ("data.inbreeding", "accout", "data.inbreeding: found 'accout', needed account or ignore; did you mean 'account'?"),
    ("name", "a/b", "name: found 'a/b', needed a name that a folder can have"),
    ("name", "..", "name: found '..', needed a name that a folder can have"),
    # traits
    ("traits", REMOVE, "traits: missing, needed at least one trait"),
    ("traits", [], "traits: found an empty list, needed the names of one or more traits"),
    ("traits", ["bw", "ww", "bw"], "traits: found 'bw' twice, needed every value once"),
    (
        "traits",
        {"bw": {"type": "binary", "exposure": "age"}, "ww": {}},
        "traits.bw.exposure: cannot be combined with type: binary; needed type: count",
    ),
    (
        "traits",
        {"bw": {"type": "ordinal", "positive": "x"}, "ww": {}},
        "traits.bw.positive: cannot be combined with type: ordinal; needed type: binary",
    ),
    (
        "traits",
        {"bw": {"type": "censored"}, "ww": {}},
        "traits.bw.type: found censored without bounds, needed lower and upper, or censored and values",
    ),
    (
        "traits",
        {"bw": {"type": "normall"}, "ww": {}},
        "traits.bw.type: found 'normall', needed normal, binary, ordinal, censored or count; did you mean 'normal'?",
    ),
    (
        "traits",
        {"bw": {"name": "x"}, "ww": {}},
        "traits.bw.name: unknown key; known are column, missing, by, where, type, categories, positive, lower, "
        "upper, log, censored, values, ...",
    ),
    (
        "traits",
        {"bw": {"column": "ww"}, "ww": {}},
        "traits.ww: trait 'bw' has its column 'ww' already, needed a different one",
    ),
    (
        "traits",
        ["bw", "ww", "milk,kg"],
        "traits: value 3 of the list: found the name 'milk,kg' with the character ',', needed a name without [ ] "
        ", : / = (the column may have any name)",
    ),
    # the model
    ("model.fixed.sex.traits", ["wv"], "model.fixed.sex.traits: 'wv' is not a trait; the traits are bw, ww"),
    ("model.random.herd.traits", ["www"], "model.random.herd.traits: 'www' is not a trait; did you mean 'ww'?"),
    (
        "model.random.genetic.effects.maternal.traits",
        ["www"],
        "model.random.genetic.effects.maternal.traits: 'www' is not a trait; did you mean 'ww'?",
    ),
    (
        "model.random.herd.traits",
        [],
        "model.random.herd.traits: found an empty list, needed the names of one or more traits",
    ),
    (
        "model.fixed.sex.kind",
        "klass",
        "model.fixed.sex.kind: found 'klass', needed class or covariate; did you mean 'class'?",
    ),
    (
        "model.fixed.sex.degree",
        2,
        "model.fixed.sex.degree: cannot be combined with kind: class; needed kind: covariate",
    ),
    ("model.fixed.sex.by", "herd", "model.fixed.sex.by: cannot be combined with kind: class; needed kind: covariate"),
    ("model.fixed.age.degree", 0, "model.fixed.age.degree: found 0, needed a whole number from 1 to 20"),
    ("model.fixed.age.degree", 1.5, "model.fixed.age.degree: found 1.5, needed a whole number from 1 to 20"),
    (
        "model.fixed.age.legendre",
        {"degree": 2, "range": [5, 1]},
        "model.fixed.age.legendre.range: found [5, 1], needed two numbers [low, high], low below high",
    ),
    (
        "model.fixed.age.legendre",
        {"degree": 2, "range": [5]},
        "model.fixed.age.legendre.range: found a list of 1 value, needed two numbers [low, high], low below high",
    ),
    ("model.fixed.age.prior", {"variance": 0}, "model.fixed.age.prior.variance: found 0, needed a number above 0"),
    ("model.fixed.age.prior", 3, "model.fixed.age.prior: found 3, needed a mapping with keys such as variance"),
    (
        "model.fixed.intercept",
        {},
        "model.fixed.intercept: this name is reserved, needed another name (column: or level: says which column)",
    ),
    (
        "model.random.mode",
        {},
        "model.random.mode: this name is reserved, needed another name (column: or level: says which column)",
    ),
    (
        "model.random.residual",
        {},
        "model.random.residual: this name is reserved, needed another name (column: or level: says which column)",
    ),
    (
        "model.random.sex",
        {},
        "model.random.sex: a fixed effect has this name already, needed another name (level: says which column)",
    ),
    (
        "model.random.herd.relationship",
        "pedigre",
        "model.random.herd.relationship: found 'pedigre', needed identity, pedigree, genomic, dominance, single_step "
        "or the path of a file such as inverse.txt",
    ),
    (
        "model.random.herd.relationship",
        {"kind": "pedigre"},
        "model.random.herd.relationship.kind: found 'pedigre'; did you mean 'pedigree'?",
    ),
    (
        "model.random.herd.relationship",
        {"file": "inverse.txt"},
        "model.random.herd.relationship.kind: missing, needed one of identity, pedigree, ar1, random_walk, "
        "spline, file, genomic, dominance, single_step",
    ),
    (
        "model.random.herd.relationship",
        "genomic",
        "model.random.herd.relationship: found genomic, but the analysis has no genotypes: needed data.genotypes",
    ),
    (
        "model.random.herd.relationship",
        "dominance",
        "model.random.herd.relationship: found dominance, but the analysis has no genotypes: needed data.genotypes, "
        "or, for dominance of a pedigree, the path of a file with the inverse of its matrix",
    ),
    (
        "model.random.herd.relationship",
        {"kind": "single_step", "tau": 0},
        "model.random.herd.relationship.tau: found 0, needed a number above 0",
    ),
    (
        "model.random.herd.relationship",
        {"kind": "single_step", "with": "G"},
        "model.random.herd.relationship.with: found 'G', needed A22 (pedigree relationships of the genotyped) or I",
    ),
    (
        "model.random.herd.relationship",
        {"kind": "single_step", "tune": "both"},
        "model.random.herd.relationship.tune: found 'both', needed A22, unit, mean, fst, none, true"
        " (A22) or false (none)",
    ),
    (
        "model.random.herd.relationship",
        {"kind": "genomic", "frequencies": "bse"},
        "model.random.herd.relationship.frequencies: found 'bse', needed genotyped, recorded, half,"
        " base or the path of a file such as frequencies.txt; did you mean 'base'?",
    ),
    (
        "model.random.herd.relationship",
        {"kind": "dominance", "tau": 2},
        "model.random.herd.relationship.tau: unknown key; known are blend, storage",
    ),
    (
        "model.random.herd.relationship",
        {"kind": "file"},
        "model.random.herd.relationship.file: missing, needed here",
    ),
    (
        "model.random.herd.relationship",
        {"kind": "file", "fil": "inverse.txt", "file": "inverse.txt"},
        "model.random.herd.relationship.fil: unknown key; did you mean 'file'?",
    ),
    (
        "model.random.herd.relationship",
        ["pedigree"],
        "model.random.herd.relationship: found a list of 1 value, needed identity, pedigree, genomic, dominance, "
        "single_step or the path of a file "
        "such as inverse.txt",
    ),
    (
        "model.random.herd.effects",
        {},
        "model.random.herd.traits: cannot be combined with effects; needed inside one of these effects",
    ),
    (
        "model.random.herd",
        {"effects": {}},
        "model.random.herd.effects: found no effect, needed at least one: effects: {NAME: {level: COLUMN}}",
    ),
    (
        "model.random.herd.covariates",
        ["age"],
        "model.random.herd.covariates: found without the name of an effect, needed effects: {NAME: {level: ..., "
        "covariates: ...}}",
    ),
    (
        "model.random.genetic.effects.direct.unknown_level",
        "drop",
        "model.random.genetic.effects.direct.unknown_level: found 'drop', needed error or omit",
    ),
    (
        "data.pedigree",
        REMOVE,
        "model.random.genetic.relationship: found pedigree, but the analysis has no pedigree: needed data.pedigree",
    ),
    ("model.response", "y", "model.response: found without plugin; it belongs to a regression"),
    # the pedigree
    (
        "data.pedigree_columns",
        {"id": 1, "sire": "s", "dam": 3},
        "data.pedigree_columns: names cannot be combined with positions; needed either names or positions",
    ),
    (
        "data.pedigree_columns",
        {"id": 1, "sire": 2, "dam": 2},
        "data.pedigree_columns: found the same column twice, needed a column of its own for each",
    ),
    (
        "data.pedigree_columns",
        {"id": 0, "sire": 2, "dam": 3},
        "data.pedigree_columns.id: found 0, needed a whole number of at least 1",
    ),
    (
        "data.groups",
        {"column": "g", "effect": "randm"},
        "data.groups.effect: found 'randm', needed random, fixed or metafounders; did you mean 'random'?",
    ),
    # variances
    ("variances.mode", "fix", "variances.mode: found 'fix', needed sample or fixed; did you mean 'fixed'?"),
    ("variances.genetics", 3, "variances.genetics: is not a random effect of the model; did you mean 'genetic'?"),
    ("variances.sex", 3, "variances.sex: is a fixed effect of the model; there are genetic, herd, residual"),
    ("variances.herd", -3, "variances.herd.start: found the variance -3 for ww, needed one above 0"),
    ("variances.herd", "big", "variances.herd.start: found 'big', needed a number or a matrix (a list of rows)"),
    (
        "variances.herd",
        "3,5",
        "variances.herd.start: found '3,5', needed a number or a matrix (a list of rows) (decimals follow a point)",
    ),
    ("variances.herd", float("nan"), "variances.herd.start: found nan, needed a number or a matrix (a list of rows)"),
    (
        "variances.herd",
        [[1, 0], [0, 1]],
        "variances.herd.start: found a 2 x 2 matrix, needed one number (the variance of ww)",
    ),
    ("variances.genetic", 30, f"variances.genetic.start: found the number 30, needed a 3 x 3 matrix {IN_ORDER}"),
    (
        "variances.genetic",
        np.eye(2),
        f"variances.genetic.start: found a 2 x 2 matrix, needed a 3 x 3 matrix {IN_ORDER}",
    ),
    (
        "variances.genetic",
        [[1, 0, 0], [0, 1], [0, 0, 1]],
        f"variances.genetic.start: found a matrix with rows of 2 and 3 numbers, needed a 3 x 3 matrix {IN_ORDER}",
    ),
    (
        "variances.genetic",
        [1, 2, 3],
        "variances.genetic.start: row 1 of the matrix: found 1, needed a list of numbers: [[a, b], [b, c]]",
    ),
    (
        "variances.genetic",
        [[1, 0, "x"], [0, 1, 0], [0, 0, 1]],
        "variances.genetic.start: row 1 of the matrix: found 'x', needed a number",
    ),
    (
        "variances.residual",
        [[12, 10], [9, 160]],
        "variances.residual.start: found 10 for (bw, ww) and 9 for (ww, bw), needed a symmetric matrix",
    ),
    (
        "variances.residual",
        [[1, 2], [2, 1]],
        "variances.residual.start: found the correlation 2 between bw and ww, needed one between -1 and 1 (a "
        "positive definite matrix)",
    ),
    (
        "variances.genetic",
        [[1, 0.9, -0.9], [0.9, 1, 0.9], [-0.9, 0.9, 1]],
        "variances.genetic.start: found a matrix whose correlations cannot occur together (smallest eigenvalue "
        "-0.8 as correlations), needed a positive definite matrix",
    ),
    (
        "variances.residual",
        [[1, 1], [1, 1]],
        "variances.residual.start: found a matrix whose correlations cannot occur together (smallest eigenvalue 0 "
        "as correlations), needed a positive definite matrix",
    ),
    (
        "variances.residual",
        [[1, 0], [0, 0]],
        "variances.residual.start: found the variance 0 for ww, needed one above 0",
    ),
    (
        "variances.residual",
        {"start": [[2, 1], [1, 2]], "structure": "diagonal"},
        "variances.residual.start: found covariances other than 0, needed 0 outside the diagonal for structure: "
        "diagonal",
    ),
    (
        "variances.residual",
        {"prior": {"df": 3, "scale": [[1, 0], [0, -1]]}},
        "variances.residual.prior.scale: found the variance -1 for ww, needed one of 0 or more",
    ),
    (
        "variances.residual",
        {"prior": {"df": 3, "scale": [[1, 1], [1, 0]]}},
        "variances.residual.prior.scale: found the covariance 1 of bw and ww where a variance is 0, needed 0",
    ),
    (
        "variances.herd",
        {"prior": {"df": "inf", "scale": 1}},
        "variances.herd.prior.df: found 'inf', needed a number below 1e12",
    ),
    (
        "variances.herd",
        {"prior": "uniform"},
        "variances.herd.prior: found 'uniform', needed a mapping with keys such as df, scale",
    ),
    (
        "variances.herd",
        {"fixed": True},
        "variances.herd.start: missing, needed one number (the variance of ww) for fixed: true",
    ),
    # the sampler
    ("sampler.thin", -3, "sampler.thin: found -3, needed a whole number of at least 1"),
    ("sampler.thin", 2000, "sampler.thin: found 2000, needed at most sampler.samples (1000), or no draw is kept"),
    ("sampler.samples", "many", "sampler.samples: found 'many', needed a whole number of at least 1"),
    (
        "sampler.samples",
        10**30,
        "sampler.samples: found a number of more than 30 digits, needed a whole number of at least 1",
    ),
    ("sampler.samples", 2**32, "sampler.samples: found 4294969296 sweeps with burn_in, needed fewer than 4294967296"),
    ("sampler.seed", 2**32, "sampler.seed: found 4294967296, needed a whole number from 0 to 4294967295"),
    ("sampler.seed", -1, "sampler.seed: found -1, needed a whole number from 0 to 4294967295"),
    ("sampler.chains", 0, "sampler.chains: found 0, needed a whole number from 1 to 4294967295"),
    ("sampler.chains", True, "sampler.chains: found true, needed a whole number from 1 to 4294967295"),
    (
        "sampler.engine",
        "sereal",
        "sampler.engine: found 'sereal', needed auto, serial, hybrid, structured, pcg or marginal; did you mean "
        "'serial'?",
    ),
    ("sampler.precision", 32, "sampler.precision: found 32, needed double or single"),
    (
        "sampler.checkpoint_every",
        "2 hours",
        "sampler.checkpoint_every: found '2 hours', needed a number of sweeps such as 500, or minutes such as 10m",
    ),
    ("sampler.tolerance", 0, "sampler.tolerance: found 0, needed a number between 0 and 1"),
    (
        "sampler",
        {"tolerance": 1e-6},
        "sampler.tolerance: found 1e-06, which cannot be combined with engine: auto, which solves nothing; needed "
        "engine: pcg, or method: blup or reml",
    ),
    (
        "sampler",
        {"engine": "serial", "tolerance": 1e-6},
        "sampler.tolerance: found 1e-06, which cannot be combined with engine: serial, which solves nothing; needed "
        "engine: pcg, or method: blup or reml",
    ),
    (
        "sampler",
        {"engine": "serial", "threads": 4},
        "sampler.threads: found 4, which cannot be combined with engine: serial, which runs on one thread; needed 1 or "
        "auto, or engine: structured or hybrid",
    ),
    (
        "sampler",
        {"engine": "pcg", "threads": 2},
        "sampler.threads: found 2, which cannot be combined with engine: pcg, which runs on one thread; needed 1 or "
        "auto, or engine: structured or hybrid",
    ),
    (
        "sampler",
        {"engine": "pcg", "update": "site"},
        "sampler.update: found site, which cannot be combined with engine: pcg, which draws all levels at once; needed "
        "level",
    ),
    (
        "sampler",
        {"engine": "marginal", "update": "site"},
        "sampler.update: found site, which cannot be combined with engine: marginal, which draws all levels at once; "
        "needed level",
    ),
    (
        "sampler",
        {"engine": "marginal", "precision": "single"},
        "sampler.precision: found single, which cannot be combined with engine: marginal; needed double",
    ),
    (
        "sampler",
        {"engine": "marginal", "interweave": True},
        "sampler.interweave: found true, which cannot be combined with engine: marginal; needed auto",
    ),
    (
        "sampler",
        {"joint_variances": True},
        "sampler.joint_variances: is not a key any more; use engine: marginal, which draws variances jointly, or take "
        "the key out",
    ),
    (
        "sampler",
        {"engine": "marginal", "device": "gpu"},
        "sampler.device: found gpu, which cannot be combined with engine: marginal: it factorises sparse "
        "equations, which the CPU does; needed engine: structured, hybrid or pcg, or device: cpu or auto",
    ),
    (
        "sampler",
        {"method": "blup", "update": "site"},
        "sampler.update: found site, which cannot be combined with method: blup, which draws nothing; needed level",
    ),
    (
        "sampler.partition",
        "effect",
        "sampler.partition: found effect, which draws the effects of a level separately and cannot be combined with "
        "update: level; needed update: site, or partition: colour or equal",
    ),
    (
        "sampler",
        {"engine": "serial", "device": "gpu"},
        "sampler.device: found gpu, which cannot be combined with engine: serial: it draws one level after "
        "another; needed engine: structured, hybrid or pcg, or device: cpu or auto",
    ),
    (
        "sampler",
        {"method": "blup", "engine": "hybrid"},
        "sampler.engine: found hybrid, which cannot be combined with method: blup; needed pcg or auto",
    ),
    # the output
    (
        "output.save_levels",
        ["herds"],
        "output.save_levels: 'herds' is not an effect of the model; did you mean 'herd'?",
    ),
    (
        "output.save_levels",
        [["herd"]],
        "output.save_levels: found a list of 1 value, needed a list of terms, or of TERM: [ids]",
    ),
    (
        "output.save_levels",
        {"herd": {"a": 1}},
        "output.save_levels.herd: found a mapping with the keys a, needed a list of ids, {file: PATH} with an id on "
        "each line, or all",
    ),
    ("output.csv", "allways", "output.csv: found 'allways', needed auto, always or never; did you mean 'always'?"),
]


def test_the_good_one_is_good():
    load_config(GOOD)


@pytest.mark.parametrize("path, value, message", MISTAKES, ids=[f"{i}-{m[0]}" for i, m in enumerate(MISTAKES)])
def test_one_mistake_one_message(path, value, message):
    assert message_of(changed(path, value)) == f"analysis: {message}"
