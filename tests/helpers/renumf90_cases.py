"""Parameter files as renumf90 reads them, their data, and for each the analysis that a person would write by hand.

The records and the pedigree are simulated once; the parameter files take them from white-space separated files without
names, the analyses written by hand from frames with names.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl

DATA_COLUMNS = ("animal", "herd", "sex", "age", "y1", "y2", "year", "staples", "sire", "litter", "age2")
HEAD = """\
DATAFILE
data.txt
TRAITS
{traits}
FIELDS_PASSED TO OUTPUT
{passed}
WEIGHT(S)
{weight}
RESIDUAL_VARIANCE
{residual}
"""


def records() -> pl.DataFrame:
    """90 records of 30 animals; y2 is missing on every fifth."""
    rng = np.random.default_rng(11)
    n = 90
    animal = np.resize(np.arange(30), n)
    herd, sex = rng.integers(0, 3, n), animal % 2 + 1
    age = np.round(rng.uniform(1, 5, n), 1)
    age[:2] = 0.0  # a covariate may be 0
    y = np.round(
        5 + herd[:, None] + 0.5 * age[:, None] + rng.standard_normal((n, 2)) + rng.standard_normal((30, 2))[animal], 2
    )
    return pl.DataFrame(
        {
            "animal": [f"c{i:02d}" for i in animal],
            "herd": [f"H{h}" for h in herd],
            "sex": sex.astype(str),
            "age": age,
            "y1": y[:, 0],
            "y2": [None if i % 5 == 4 else v for i, v in enumerate(y[:, 1])],
            "year": (2020 + np.arange(n) % 3).astype(str),
            "staples": rng.integers(1, 6, n),
            "sire": [f"s{i % 5}" for i in animal],
            "litter": (animal // 2).astype(str),
            "age2": np.round(age**2, 2),
        }
    )


def pedigree() -> pl.DataFrame:
    """Founders s0-s4, d0-d9; calves c00-c29; c20-c24 by the sire of their dam, and so c25-c29, out of them."""
    rows = [(f"s{i}", "0", "0", 2010) for i in range(5)] + [(f"d{i}", "0", "0", 2011) for i in range(10)]
    for i in range(30):
        dam = f"d{i % 10}" if i < 20 else f"c{i - (20 if i < 25 else 5):02d}"
        rows.append((f"c{i:02d}", f"s{i % 5}", "0" if i == 5 else dam, 2013 + i))
    return pl.DataFrame(rows, schema=["id", "sire", "dam", "birth"], orient="row")


def groups() -> pl.DataFrame:
    """(sire, dam): the group of each animal's unknown parents, negative numbers as text."""
    n = pedigree().height
    return pl.DataFrame(
        {"sire": [f"-{i % 2 + 1}" for i in range(n)], "dam": [f"-{(i // 3) % 2 + 1}" for i in range(n)]}
    )


def weighed_by_trait() -> pl.DataFrame:
    """The records of y1 with the weight `staples`, below them those of y2 with the weight `year`."""
    columns = ("animal", "herd", "y1", "y2", "w")
    of_each = (("y1", "y2", "staples"), ("y2", "y1", "year"))
    frames = [
        records().with_columns(pl.lit(None, pl.Float64).alias(other), pl.col(by).cast(pl.Float64).alias("w"))
        for _, other, by in of_each
    ]
    return pl.concat(f.drop_nulls(of).select(columns) for f, (of, *_) in zip(frames, of_each, strict=True))


@dataclass(frozen=True)
class Case:
    parameters: str
    analysis: dict  # without data; traits y1, y2, ...
    data: dict = field(default_factory=dict)  # of the analysis by hand, beside the tables
    told: tuple[str, ...] = ()  # what must be said of lines that are not carried over
    pedigree: str = "plain"  # 'plain' | 'in_pedigrees' | 'one group'
    overrides: tuple[str, ...] = ()


def head(traits="5", passed="", weight="", residual="2.0") -> str:
    return HEAD.format(traits=traits, passed=passed, weight=weight, residual=residual)


ANIMAL = """\
EFFECT
1 cross alpha
RANDOM
animal
FILE
ped.txt
FILE_POS
1 2 3 0 0
PED_DEPTH
0
INBREEDING
pedigree
"""
# Intercept and slope of two traits: renumf90 has the traits of each coefficient together, an analysis file the
# coefficients of each trait.
REGRESSIONS = (
    head("5 6", "", "", "2.0 0.3\n0.3 1.5")
    + "EFFECT\n2 2 cross alpha\n"
    + ANIMAL.replace("1 cross", "1 1 cross").replace("animal\nFILE\n", "animal\nOPTIONAL\npe\nFILE\n")
)
COVARIANCES_OF_REGRESSIONS = (
    "(CO)VARIANCES\n1.0 0.2 0.1 0.05\n0.2 0.8 0.02 0.03\n0.1 0.02 0.3 0.04\n0.05 0.03 0.04 0.2\n"
    "(CO)VARIANCES_PE\n0.5 0 0.1 0\n0 0.4 0 0\n0.1 0 0.3 0\n0 0 0 0.2\n"
)
VARIANCES_OF_REGRESSIONS = {
    "genetic": [[1.0, 0.1, 0.2, 0.05], [0.1, 0.3, 0.02, 0.04], [0.2, 0.02, 0.8, 0.03], [0.05, 0.04, 0.03, 0.2]],
    "permanent_environment": [[0.5, 0.1, 0, 0], [0.1, 0.3, 0, 0], [0, 0, 0.4, 0], [0, 0, 0, 0.2]],
    "residual": [[2.0, 0.3], [0.3, 1.5]],
}

CASES = {
    "animal model": Case(
        "# the animal model in its simplest form\n"
        + head()
        + "EFFECT   # herd\n2 cross alpha\nEFFECT # age\n4 cov\n"
        + ANIMAL
        + "(CO)VARIANCES\n1.5 # start\nOPTION sol se\nOPTION method BLUP\n",
        {
            "traits": ["y1"],
            "model": {
                "fixed": {"effect1": {"column": "herd"}, "effect2": {"column": "age", "kind": "covariate"}},
                "random": {"genetic": {"level": "animal", "relationship": "pedigree"}},
            },
            "variances": {"genetic": 1.5, "residual": 2.0},
        },
    ),
    "two traits with models of their own": Case(
        head("5 6", "1 9", "", "2.0 0.3\n0.3 1.5")
        + "EFFECT\n2 2 cross alpha\nEFFECT\n0 3 cross alpha\nEFFECT\n4 0 cov\nEFFECT\n1 1 cross alpha\nRANDOM\nanimal\n"
        + "FILE\nped.txt\nPED_DEPTH\n3\n(CO)VARIANCES\n1.0 0.2\n0.2 0.8\nOPTION missing -999\nOPTION maxrounds 2000\n",
        {
            "traits": ["y1", "y2"],
            "model": {
                "fixed": {
                    "effect1": {"column": "herd"},
                    "effect2": {"column": "sex", "traits": ["y2"]},
                    "effect3": {"column": "age", "kind": "covariate", "traits": ["y1"]},
                },
                "random": {"genetic": {"level": "animal", "relationship": "pedigree"}},
            },
            "variances": {"genetic": [[1.0, 0.2], [0.2, 0.8]], "residual": [[2.0, 0.3], [0.3, 1.5]]},
        },
        {"inbreeding": "ignore"},
        ("line 5: FIELDS_PASSED TO OUTPUT", "PED_DEPTH 3", "INBREEDING is not stated", "OPTION maxrounds 2000"),
    ),
    "direct, maternal and two environments": Case(
        head()
        + "EFFECT\n2 cross alpha\n"
        + ANIMAL.replace("animal\nFILE\n", "animal\nOPTIONAL\npe mat mpe\nFILE\n")
        + "(CO)VARIANCES\n1.0 0.2\n0.2 0.6\n(CO)VARIANCES_PE\n0.4\n(CO)VARIANCES_MPE\n0.3\n",
        {
            "traits": ["y1"],
            "model": {
                "fixed": {"effect1": {"column": "herd"}},
                "random": {
                    "genetic": {
                        "relationship": "pedigree",
                        "effects": {
                            "direct": {"level": "animal"},
                            "maternal": {"level": "dam", "unknown_level": "omit"},
                        },
                    },
                    "permanent_environment": {"level": "animal"},
                    "maternal_environment": {"level": "dam", "unknown_level": "omit"},
                },
            },
            "variances": {
                "genetic": [[1.0, 0.2], [0.2, 0.6]],
                "permanent_environment": 0.4,
                "maternal_environment": 0.3,
                "residual": 2.0,
            },
        },
    ),
    "maternal effects on the second trait only": Case(
        head("5 6", "", "", "2.0 0.3 0.3 1.5")
        + "EFFECT\n2 2 cross alpha\n"
        + ANIMAL.replace("1 cross", "1 1 cross").replace("animal\nFILE\n", "animal\nOPTIONAL\nmat mpe\nFILE\n")
        + "(CO)VARIANCES\n1.0 0.2 0 0.1\n0.2 0.8 0 -0.1\n0 0 0 0\n0.1 -0.1 0 0.5\n"
        + "(CO)VARIANCES_MPE\n0 0\n0 0.3\nOPTION missing -999\n",
        {
            "traits": ["y1", "y2"],
            "model": {
                "fixed": {"effect1": {"column": "herd"}},
                "random": {
                    "genetic": {
                        "relationship": "pedigree",
                        "effects": {
                            "direct": {"level": "animal"},
                            "maternal": {"level": "dam", "traits": ["y2"], "unknown_level": "omit"},
                        },
                    },
                    "maternal_environment": {"level": "dam", "traits": ["y2"], "unknown_level": "omit"},
                },
            },
            "variances": {
                "genetic": [[1.0, 0.2, 0.1], [0.2, 0.8, -0.1], [0.1, -0.1, 0.5]],
                "maternal_environment": 0.3,
                "residual": [[2.0, 0.3], [0.3, 1.5]],
            },
        },
    ),
    "nested covariates, columns by trait, weights": Case(
        head("5 6", "", "8", "2.0 0.0\n0.0 1.5")
        + "EFFECT\n2 7 cross alpha\nEFFECT\n4 4 cov\nNESTED\n3 2 alpha\nEFFECT\n11 0 cov\n"
        + ANIMAL.replace("1 cross", "1 0 cross")
        + "(CO)VARIANCES\n1.0 0.2\n0.2 0.8\nOPTION missing -999\n",
        {
            "traits": ["y1", "y2"],
            "model": {
                "fixed": {
                    "effect1_col2": {"column": "herd", "traits": ["y1"]},
                    "effect1_col7": {"column": "year", "traits": ["y2"]},
                    "effect2_col4_by_col3": {"column": "age", "kind": "covariate", "by": "sex", "traits": ["y1"]},
                    "effect2_col4_by_col2": {"column": "age", "kind": "covariate", "by": "herd", "traits": ["y2"]},
                    "effect3": {"column": "age2", "kind": "covariate", "traits": ["y1"]},
                },
                "random": {"genetic": {"level": "animal", "relationship": "pedigree", "traits": ["y1"]}},
            },
            "variances": {"genetic": 1.0, "residual": [[2.0, 0.0], [0.0, 1.5]]},
        },
        {"weights": "staples"},
        ("(CO)VARIANCES: covariances with a trait that lacks the effect",),
    ),
    "sires and litters": Case(
        head()
        + "EFFECT\n2 cross alpha\nEFFECT\n9 cross alpha\nRANDOM\nsire\nFILE\nped.txt\nFILE_POS\n1 2 3\n"
        + "REC_SEX\n1\nPED_DEPTH\n0\n"
        + "INBREEDING\npedigree\n(CO)VARIANCES\n0.3\nEFFECT\n10 cross numer\nRANDOM\ndiagonal\n",
        {
            "traits": ["y1"],
            "model": {
                "fixed": {"effect1": {"column": "herd"}},
                "random": {"sire": {"relationship": "pedigree"}, "effect3": {"level": "litter"}},
            },
            "variances": {"sire": 0.3, "effect3": 1.0, "residual": 2.0},
        },
        {},
        ("RANDOM sire", "REC_SEX", "numer:", "(CO)VARIANCES is not stated", " 0 in column 10: a level"),
    ),
    "joined columns, a header line": Case(
        "COMBINE\n20 2 3\nCOMBINE\n21 20 7\n"
        + head().replace("data.txt\n", "data_with_header.txt\nSKIP_HEADER\n1\n")
        + "EFFECT\n20 cross alpha\nEFFECT\n21 cross alpha\nRANDOM\ndiag\n(CO)VARIANCES\n0.5\n"
        + ANIMAL
        + "(CO)VARIANCES\n1.0d0\n",
        {
            "traits": ["y1"],
            "model": {
                "fixed": {"effect1": {"column": "herd_sex"}},
                "random": {
                    "effect2": {"level": "herd_sex_year"},
                    "genetic": {"level": "animal", "relationship": "pedigree"},
                },
            },
            "variances": {"effect2": 0.5, "genetic": 1.0, "residual": 2.0},
        },
        {},
        ("renum_data.csv is a copy of the data file",),
    ),
    "groups in a column": Case(
        head()
        + "EFFECT\n2 cross alpha\n"
        + ANIMAL.replace(
            "FILE_POS\n1 2 3 0 0\nPED_DEPTH\n0\n",
            "FILE_POS\n1 2 3 6 4 5\nSNP_FILE\nsnp.txt\nPED_DEPTH\n0\nGEN_INT\n1 3 10\nUPG_TYPE\ngroup_unisex\n",
        ).replace("INBREEDING\npedigree", "INBREEDING\nfile inb.txt")
        + "(CO)VARIANCES\n1.0\nOPTION SNP_file snp.txt\n",
        {
            "traits": ["y1"],
            "model": {
                "fixed": {"effect1": {"column": "herd"}},
                "random": {"genetic": {"level": "animal", "relationship": "pedigree"}},
            },
            "variances": {"genetic": 1.0, "residual": 2.0},
        },
        {"groups": {"column": "group", "effect": "fixed"}},
        (
            "SNP_FILE: genotypes",
            "GEN_INT",
            "inbreeding coefficients are not read",
            "OPTION SNP_file",
            "the alternate dam (column 6)",
        ),
        "one group",
    ),
    "groups by year of birth": Case(
        head()
        + "EFFECT\n2 cross alpha\n"
        + ANIMAL.replace("0 0\nPED_DEPTH\n0\n", "0 4\nPED_DEPTH\n0\nINB_FILE\ninb.txt\nUPG_TYPE\nyob\n").replace(
            "INBREEDING\npedigree", "INBREEDING\nno-inbreeding"
        )
        + "(CO)VARIANCES\n1.0\nOPTION cat 0\n",
        {
            "traits": ["y1"],
            "model": {
                "fixed": {"effect1": {"column": "herd"}},
                "random": {"genetic": {"level": "animal", "relationship": "pedigree"}},
            },
            "variances": {"genetic": 1.0, "residual": 2.0},
        },
        {"inbreeding": "ignore"},
        ("UPG_TYPE yob", "OPTION cat 0"),
    ),
    "random regression, variances to be estimated": Case(
        REGRESSIONS
        + "RANDOM_REGRESSION\ndata\nRR_POSITION\n8 4\n"
        + COVARIANCES_OF_REGRESSIONS
        + "OPTION method VCE\nOPTION missing -999\n",
        {
            "traits": ["y1", "y2"],
            "model": {
                "fixed": {"effect1": {"column": "herd"}},
                "random": {
                    "genetic": {
                        "relationship": "pedigree",
                        "effects": {"direct": {"level": "animal", "covariates": ["staples", "age"]}},
                    },
                    "permanent_environment": {"effects": {"rr": {"level": "animal", "covariates": ["staples", "age"]}}},
                },
            },
            "variances": VARIANCES_OF_REGRESSIONS,
        },
        {},
        ("OPTION method VCE",),
        overrides=("sampler.method=blup",),
    ),
    "Legendre polynomials of age": Case(
        REGRESSIONS
        + "RANDOM_REGRESSION\nlegendre\nRR_POSITION\n4 1\n"
        + COVARIANCES_OF_REGRESSIONS
        + "OPTION missing -999\n",
        {
            "traits": ["y1", "y2"],
            "model": {
                "fixed": {"effect1": {"column": "herd"}},
                "random": {
                    "genetic": {
                        "relationship": "pedigree",
                        "effects": {"direct": {"level": "animal", "legendre": {"column": "age", "degree": 1}}},
                    },
                    "permanent_environment": {
                        "effects": {"rr": {"level": "animal", "legendre": {"column": "age", "degree": 1}}}
                    },
                },
            },
            "variances": VARIANCES_OF_REGRESSIONS,
        },
        {},
        ("normalised polynomials sqrt((2j+1)/2) P_j of col4, j = 0 to 1, with its range in the data [0, 5]",),
    ),
    "a weight for each trait, independent residuals": Case(
        head("5 6", "", "8 7", "2.0 0.0\n0.0 1500")
        + "EFFECT\n2 2 cross alpha\n"
        + ANIMAL.replace("1 cross", "1 1 cross")
        + "(CO)VARIANCES\n1.0 0.2\n0.2 0.8\nOPTION missing -999\n",
        {
            "traits": ["y1", "y2"],
            "model": {
                "fixed": {"effect1": {"column": "herd"}},
                "random": {"genetic": {"level": "animal", "relationship": "pedigree"}},
            },
            "variances": {"genetic": [[1.0, 0.2], [0.2, 0.8]], "residual": [[2.0, 0.0], [0.0, 1500.0]]},
        },
        {"phenotypes": weighed_by_trait(), "weights": "w"},
        ("WEIGHT(S): renum_data.csv has a record for each weight, 162 for 90",),
    ),
}


def write_files(folder: Path, case: Case) -> Path:
    """The files of a case as a user of renumf90 has them; returns the parameter file."""
    text = records().with_columns(y2=pl.col("y2").fill_null(-999 if "-999" in case.parameters else 0))
    text.write_csv(folder / "data.txt", separator=" ", include_header=False)
    text.write_csv(folder / "data_with_header.txt", separator=" ")
    animals = pedigree()
    if case.pedigree == "one group":
        animals = animals.with_columns(groups()["sire"].alias("group"), pl.lit("0").alias("recipient"))
    if case.pedigree == "in_pedigrees":
        animals = animals.with_columns(
            pl.when(pl.col(p) == "0").then(groups()[p]).otherwise(p).alias(p) for p in ("sire", "dam")
        )
    animals.write_csv(folder / "ped.txt", separator=" ", include_header=False)
    (folder / "renum.par").write_text(case.parameters)
    return folder / "renum.par"


def by_hand(case: Case) -> dict:
    """The analysis that a person would write, with frames for tables."""
    animals = pedigree().drop("birth").with_columns(group=groups()["sire"])
    text = records().with_columns(herd_sex=pl.col("herd") + pl.col("sex"))
    text = text.with_columns(herd_sex_year=pl.col("herd_sex") + pl.col("year"))
    data = {"phenotypes": text, "pedigree": animals} | case.data
    return case.analysis | {"name": "hand", "data": data, "sampler": {"method": "blup"}}
