"""Simulated beef data: three weights with direct and maternal effects, missing traits, known true values. `mmgibbs
simulate`.

The herds breed as `mmgibbs.pedigree.simulate` says: overlapping generations, bulls of artificial insemination with
heavy-tailed use. The calf i of dam j, born in contemporary group c (herd x year), has, in kg,

    birth weight      y1 = mu1 + c1 + sex1 + dam age1 + direct1_i                               + e1
    weaning weight    y2 = mu2 + c2 + sex2 + dam age2 + direct2_i + maternal_j + environment_j  + e2
    yearling weight   y3 = mu3 + c3 + sex3 + dam age3 + direct3_i                               + e3

with (direct1, direct2, direct3, maternal) ~ N(0, A (x) GENETIC), environment ~ N(0, MATERNAL_ENVIRONMENT), e ~ N(0,
RESIDUAL).

Records are as patchy as in practice: founders have none, some herds never weigh at birth, calves die or miss a
weighing, and only some of the weaned calves, rather the heavier ones and fewer bulls than heifers, are kept and weighed
as yearlings (missing at random: it depends on the weaning weight alone, which is recorded). Some sires and a few dams
are not recorded; a calf without recorded dam has no record, since a maternal effect needs the dam. Everything but the
writing of files needs NumPy and `pedigree` only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from mmgibbs.errors import ConfigError
from mmgibbs.models.design import Design
from mmgibbs.models.relationships.identity import Identity
from mmgibbs.models.relationships.pedigree import Pedigree
from mmgibbs.models.terms import Effect, Flat, Levels, Related, Term
from mmgibbs.pedigree.simulate import Population, simulate_pedigree
from mmgibbs.simulation import arguments
from mmgibbs.simulation.genome import (
    Genome,
    Inheritance,
    SimulatedGenotypes,
    provenance,
    simulate_genotypes,
    write_genotypes,
)

if TYPE_CHECKING:
    import polars as pl

TRAITS = ("birth_weight", "weaning_weight", "yearling_weight")
COMPONENTS = ("direct:birth_weight", "direct:weaning_weight", "direct:yearling_weight", "maternal:weaning_weight")
DAM_AGES = ("2", "3", "4", "5-9", "10+")  # classes, in years
SEXES = ("heifer", "bull")
WEANING = 1  # the trait with maternal effects

# kg^2. Direct heritabilities 0.39, 0.28, 0.46; maternal heritability 0.15; direct-maternal correlation of weaning
# weight -0.20.
GENETIC = np.array(
    [
        [7.0, 15.5, 25.0, -1.0],
        [15.5, 170.0, 200.0, -25.0],
        [25.0, 200.0, 380.0, -18.0],
        [-1.0, -25.0, -18.0, 90.0],
    ]
)
MATERNAL_ENVIRONMENT = 70.0
RESIDUAL = np.array([[11.0, 14.0, 14.0], [14.0, 300.0, 220.0], [14.0, 220.0, 450.0]])

MEAN = np.array([38.0, 235.0, 390.0])  # kg, bull calf of a dam of 5 to 9 years
SEX = np.array([[-2.5, -17.0, -48.0], [0.0, 0.0, 0.0]])
DAM_AGE = np.array([[-2.5, -21.0, -16.0], [-1.2, -10.0, -8.0], [-0.4, -4.0, -3.0], [0.0, 0.0, 0.0], [-0.3, -7.0, -5.0]])
CONTEMPORARY_GROUP_SD = np.array([1.5, 17.0, 26.0])

SIRE_UNRECORDED, DAM_UNRECORDED = 0.08, 0.02  # shares of calves with parents
HERD_WEIGHS_AT_BIRTH, WEIGHED_AT_BIRTH = 0.85, 0.95
WEIGHED_AT_WEANING = 0.90  # alive and weighed
KEPT_TO_A_YEAR = {"heifer": 0.70, "bull": 0.45}  # of those weighed at weaning
YEARS = 20  # of calving
SELECTED = 2  # component that parents are selected by, where they are: direct effect on yearling weight
SELECTION = ("true", "phenotype")  # by the breeding value itself, or by a weighing of their own
FIRST_YEAR = 2000


class BornInOrder(Protocol):
    """Animals in the order of their birth."""

    @property
    def birth_year(self) -> np.ndarray: ...


@dataclass(frozen=True)
class Beef:
    """A simulated beef population of n animals in birth order, with r records. Codes are positions; -1 is unknown."""

    sire: np.ndarray  # (n,) int32, as recorded
    dam: np.ndarray  # (n,) int32
    birth_year: np.ndarray  # (n,) int32
    sex: np.ndarray  # (n,) int8, position in SEXES
    herd: np.ndarray  # (n,) int32
    breeding_values: np.ndarray  # (n, 4) float32, kg, in the order of COMPONENTS
    maternal_environment: np.ndarray  # (n,) float32, kg, of each animal as a dam
    animal: np.ndarray  # (r,) int32 the animal of each record
    contemporary_group: np.ndarray  # (r,) int32
    dam_age: np.ndarray  # (r,) int8, years
    y: np.ndarray  # (r, 3) float64, kg; NaN where not weighed
    group_herd: np.ndarray  # (groups,) int32 herd of each contemporary group
    group_year: np.ndarray  # (groups,) int32
    group_effect: np.ndarray  # (groups, 3) float64, kg
    genotypes: SimulatedGenotypes | None = None

    @property
    def n_animals(self) -> int:
        return self.sire.size

    @property
    def n_records(self) -> int:
        return self.animal.size

    @property
    def dam_age_class(self) -> np.ndarray:
        """(r,) int8, position in DAM_AGES."""
        return dam_age_classes(self.dam_age).astype(np.int8)

    @property
    def G(self) -> tuple:
        """True covariance matrix of each term of `beef_design`; None for the fixed ones."""
        return (None, None, None, GENETIC.copy(), np.array([[MATERNAL_ENVIRONMENT]]))

    @property
    def R(self) -> np.ndarray:
        return RESIDUAL.copy()


def simulate_beef(
    n_animals: int,
    seed: int,
    years: int = YEARS,
    genome: Genome | None = None,
    selection: str | None = None,
) -> Beef:
    """A beef population of n_animals, founders included, born over `years` years; the same for the same arguments.

    genome: with genotypes and QTL. Animals, parents and herds are
    those of the same arguments without a genome; breeding values and records are not. selection: one of SELECTION,
    the best young animals become parents, bulls of all herds, heifers within theirs; None: any of them.
    Raises ConfigError where the arguments make no population."""
    n_animals, seed, years = arguments.population(n_animals, seed, years)
    if genome is not None and not isinstance(genome, Genome):
        raise arguments.wrong("genome", genome, "a Genome, such as Genome(snps=1000, qtl=100)")
    if selection not in (None, *SELECTION):
        raise arguments.wrong("selection", selection, f"one of {', '.join(map(repr, SELECTION))}, or None")
    of_genome, inherit, weights, accuracy = np.random.default_rng([seed, 2]), None, None, 1.0
    if selection is not None:
        inherit = None if genome is None else Inheritance(n_animals, GENETIC, genome, of_genome)
        weights, accuracy = np.eye(len(GENETIC))[SELECTED], selection_accuracy(selection)
    population = Population(years=years, first_year=FIRST_YEAR)
    try:
        herds = simulate_pedigree(n_animals, seed, population, GENETIC, weights, accuracy, inherit)
    except ValueError as error:
        raise ConfigError(f"no beef population: {error}") from None
    rng = np.random.default_rng([seed, 1])  # not [seed, 0], which is the generator of the pedigree
    sire, dam_of, year, sex, herd = herds.sire.copy(), herds.dam.copy(), herds.birth, herds.sex, herds.herd
    assert herds.breeding_values is not None, "there are some where G is given"
    genotypes = None
    if genome is None:
        u = herds.breeding_values.astype(np.float32)
    elif inherit is not None:
        genotypes, u = inherit.finish(), inherit.values.astype(np.float32)
    else:
        parents = herds.sire, herds.dam  # the true ones
        genotypes, values = simulate_genotypes(*parents, herds.breeding_values, GENETIC, genome, of_genome)
        u = values.astype(np.float32)
    sire[rng.random(n_animals) < SIRE_UNRECORDED] = -1
    dam_of[rng.random(n_animals) < DAM_UNRECORDED] = -1
    environment = np.float32(np.sqrt(MATERNAL_ENVIRONMENT)) * rng.standard_normal(n_animals, dtype=np.float32)

    calf = np.flatnonzero(dam_of >= 0).astype(np.int32)
    dam = dam_of[calf]
    dam_age = (year[calf] - year[dam]).astype(np.int8)
    n_herds, n_years = int(herd.max()) + 1, int(year.max()) - int(year.min()) + 1
    group = herd[calf].astype(np.int64) * n_years + (year[calf] - year.min())
    group_effect = CONTEMPORARY_GROUP_SD * rng.standard_normal((n_herds * n_years, len(TRAITS)))
    y = rng.standard_normal((calf.size, len(TRAITS))) @ np.linalg.cholesky(RESIDUAL).T
    deviation = (
        y[:, WEANING] + u[calf, WEANING] + u[dam, 3] + environment[dam]
    )  # weaning weight within contemporary group, sex and dam age
    y += MEAN + group_effect[group] + SEX[sex[calf]] + DAM_AGE[dam_age_classes(dam_age)]
    y += u[calf, : len(TRAITS)]
    y[:, WEANING] += u[dam, 3] + environment[dam]
    y[~_weighed(rng, sex[calf], herd[calf], n_herds, deviation)] = np.nan

    used = ~np.isnan(y).all(axis=1)
    present, codes = np.unique(group[used], return_inverse=True)
    return Beef(
        sire, dam_of, year, sex, herd, u, environment,
        calf[used], codes.astype(np.int32), dam_age[used], np.ascontiguousarray(y[used]),
        (present // n_years).astype(np.int32), (present % n_years + year.min()).astype(np.int32), group_effect[present],
        genotypes,
    )  # fmt: skip


def selection_accuracy(selection: str) -> float:
    """Correlation with the breeding value of yearling weight: 1, or the root of its heritability."""
    variance = float(GENETIC[SELECTED, SELECTED])
    return 1.0 if selection == "true" else float(np.sqrt(variance / (variance + RESIDUAL[SELECTED, SELECTED])))


def dam_age_classes(years: np.ndarray) -> np.ndarray:
    """(n,) positions in DAM_AGES of ages in years."""
    return np.searchsorted([3, 4, 5, 10], years, side="right")


def _weighed(
    rng: np.random.Generator, sex: np.ndarray, herd: np.ndarray, n_herds: int, deviation: np.ndarray
) -> np.ndarray:
    """(r, 3) bool: which weights of a calf are taken."""
    weighed = np.empty((sex.size, 3), bool)
    herds = rng.random(n_herds) < HERD_WEIGHS_AT_BIRTH
    herds[0] |= not herds.any()  # otherwise a trait would have no record
    weighed[:, 0] = herds[herd] & (rng.random(sex.size) < WEIGHED_AT_BIRTH)
    weighed[:, 1] = rng.random(sex.size) < WEIGHED_AT_WEANING
    # Kept by weaning weight plus as much chance: the standardised sum is N(0, 2).
    score = (deviation / deviation.std() if deviation.size else deviation) + rng.standard_normal(sex.size)
    weighed[:, 2] = weighed[:, 1]
    for code, name in enumerate(SEXES):
        of_sex = sex == code
        if of_sex.any():
            weighed[:, 2] &= ~of_sex | (score > np.quantile(score[of_sex], 1 - KEPT_TO_A_YEAR[name]))
    return weighed


# ---------------------------------------------------------------------------------------------------- as a design


def beef_design(beef: Beef, account_inbreeding: bool = True) -> Design:
    """The evaluation of `write_beef`'s analysis file, straight from the arrays: nine fixed-effect blocks (contemporary
    group, sex, dam age on three traits), the genetic term with k = 4, and maternal environment. At 1.1 million animals
    about 4.7 million equations.
    """
    from mmgibbs.pedigree.inbreeding import inbreeding
    from mmgibbs.pedigree.relationship import relatives

    observed = ~np.isnan(beef.y)
    every, weaned = (0, 1, 2), observed[:, WEANING]
    dam = beef.dam[beef.animal]
    mothers, environment_level = np.unique(dam[weaned], return_inverse=True)
    environment = np.full(beef.n_records, -1, np.int32)
    environment[weaned] = environment_level
    fixed = [
        ("contemporary_group", beef.contemporary_group, beef.group_herd.size),
        ("sex", beef.sex[beef.animal].astype(np.int32), len(SEXES)),
        ("dam_age", beef.dam_age_class.astype(np.int32), len(DAM_AGES)),
    ]
    active = _independent_levels(fixed, observed)
    means = np.nanmean(beef.y, axis=0)
    patterns, pattern = np.unique(observed @ np.array([4, 2, 1], np.uint8), return_inverse=True)
    F = inbreeding(beef.sire, beef.dam) if account_inbreeding else None
    kin = Pedigree(relatives(beef.sire, beef.dam, F))
    terms = [
        Term(name, Levels((Effect("", level, every),), q), Flat(), a)
        for (name, level, q), a in zip(fixed, active, strict=True)
    ]
    maternal = np.where(weaned, dam, np.int32(-1))
    effects = (Effect("direct", beef.animal, every), Effect("maternal", maternal, (WEANING,)))
    terms.append(Term("genetic", Levels(effects, beef.n_animals), Related(kin)))
    dams = Levels((Effect("", environment, (WEANING,)),), mothers.size)
    terms.append(Term("maternal_environment", dams, Related(Identity(mothers.size))))
    return Design(
        traits=TRAITS,
        y=beef.y - means,
        pattern=pattern.astype(np.int32),
        patterns=(patterns[:, None] & np.array([4, 2, 1])) > 0,
        weight=np.ones(beef.n_records),
        terms=tuple(terms),
        offsets=tuple((0, t, float(means[t])) for t in every),  # every contemporary group carries the constant
    )


def _independent_levels(fixed: Sequence[tuple[str, np.ndarray, int]], observed: np.ndarray) -> list[np.ndarray]:
    """(q, 3) bool per fixed effect: the levels in force, trait by trait."""
    from mmgibbs.data.rank import Columns, independent_columns

    active = [np.zeros((q, observed.shape[1]), bool) for _, _, q in fixed]
    for t in range(observed.shape[1]):
        columns = [Columns(np.where(observed[:, t], level, np.int32(-1)), q) for _, level, q in fixed]
        for a, independent in zip(active, independent_columns(columns).independent, strict=True):
            a[:, t] = independent[:, 0]
    return active


# ---------------------------------------------------------------------------------------------------- as files

FILES = ("pedigree.csv", "phenotypes.csv", "true_values.csv", "analysis.yaml", "PROVENANCE.txt")


def write_beef(
    beef: Beef, directory: str | Path, how: str = "mmgibbs.simulation.simulate.simulate_beef", overwrite: bool = False
) -> Path:
    """Write pedigree, records, true values, an analysis file and a provenance note; returns the directory.

    how: the command or call that made the data, for the note. ConfigError where the directory holds anything, unless
    `overwrite` (files of the same names are then replaced, others stay)."""
    from mmgibbs.simulation.data_folder import new_data  # and the schema of the analysis with it

    with new_data(directory, how, overwrite) as target:
        _write_beef(beef, target, Path(directory).resolve().name, how)
    return Path(directory)


def _write_beef(beef: Beef, target: Path, name: str, how: str) -> None:
    ids, herds = animal_ids(beef), herd_ids(beef)
    _write_pedigree(beef, ids, target / "pedigree.csv")
    _write_phenotypes(beef, ids, herds, target / "phenotypes.csv")
    _write_true_values(beef, ids, target / "true_values.csv")
    analysis = _ANALYSIS.format(name=name)
    if beef.genotypes is not None:
        parents = parent_ids(ids, beef.sire), parent_ids(ids, beef.dam)
        write_genotypes(beef.genotypes, ids, parents, beef.sex, COMPONENTS, target)
        analysis = analysis.replace("pedigree.csv\n", "pedigree.csv\n  genotypes: genotypes.bed\n", 1)
    (target / "analysis.yaml").write_text(analysis, encoding="utf-8")
    (target / "PROVENANCE.txt").write_text(_provenance(beef, how), encoding="utf-8")


def animal_ids(animals: BornInOrder) -> pl.Series:
    """(n,) Polars String series: year of birth and number within the year, '2003-0127'."""
    import polars as pl

    year = animals.birth_year  # animals stand in birth order
    number = np.arange(year.size) - np.searchsorted(year, year) + 1
    width = len(str(number.max()))
    frame = pl.DataFrame({"year": year, "number": number})
    return frame.select(pl.format("{}-{}", "year", pl.col("number").cast(pl.String).str.zfill(width)).alias("id"))["id"]


def herd_ids(beef: Beef) -> pl.Series:
    """Polars String series by herd code: 'H01'."""
    import polars as pl

    number = np.arange(1, int(beef.herd.max()) + 2)
    return (
        pl.Series("herd", number)
        .cast(pl.String)
        .str.zfill(len(str(number[-1])))
        .to_frame()
        .select(pl.format("H{}", "herd").alias("herd"))["herd"]
    )


def parent_ids(ids: pl.Series, code: np.ndarray) -> pl.Series:
    """Ids of parents, null where unknown."""
    import polars as pl

    known = pl.Series("code", code).to_frame().select(pl.when(pl.col("code") >= 0).then("code"))["code"]
    return ids.gather(known)


def _write_pedigree(beef: Beef, ids: pl.Series, path: Path) -> None:
    import polars as pl

    columns = {
        "animal": ids,
        "sire": parent_ids(ids, beef.sire),
        "dam": parent_ids(ids, beef.dam),
        "birth_year": beef.birth_year,
    }
    pl.DataFrame(columns).write_csv(path)


def _write_phenotypes(beef: Beef, ids: pl.Series, herds: pl.Series, path: Path) -> None:
    import polars as pl

    groups = pl.DataFrame({"herd": herds.gather(beef.group_herd), "year": beef.group_year}).select(
        pl.format("{}-{}", "herd", "year").alias("group")
    )["group"]
    frame = pl.DataFrame(
        {
            "animal": ids.gather(beef.animal),
            "contemporary_group": groups.gather(beef.contemporary_group),
            "sex": pl.Series(SEXES).gather(beef.sex[beef.animal]),
            "dam_age": beef.dam_age,
            "dam_age_class": pl.Series(DAM_AGES).gather(beef.dam_age_class),
            **{t: beef.y[:, i] for i, t in enumerate(TRAITS)},
        }
    )
    frame.with_columns(pl.col(TRAITS).fill_nan(None)).write_csv(path, float_precision=1)


def _write_true_values(beef: Beef, ids: pl.Series, path: Path) -> None:
    import polars as pl

    columns = {c.replace(":", "_"): beef.breeding_values[:, i] for i, c in enumerate(COMPONENTS)}
    mothers = np.isin(np.arange(beef.n_animals), beef.dam)
    columns["maternal_environment"] = np.where(mothers, beef.maternal_environment, np.nan)
    pl.DataFrame({"animal": ids, **columns}, nan_to_null=True).write_csv(path, float_precision=3)


_ANALYSIS = """\
# Three weights of beef cattle: direct and maternal genetic effects, maternal environment, missing traits.
# Paths of data are relative to this file, the output directory to where the command runs.
name: {name}
data:
  phenotypes: phenotypes.csv
  pedigree: pedigree.csv
traits: [birth_weight, weaning_weight, yearling_weight]
model:
  fixed:
    contemporary_group: {{}}
    sex: {{}}
    dam_age: {{column: dam_age_class}}
  random:
    genetic:
      relationship: pedigree
      effects:
        direct: {{level: animal}}
        maternal: {{level: dam, traits: [weaning_weight]}}
    maternal_environment: {{level: dam, traits: [weaning_weight]}}
sampler: {{chains: 4, burn_in: 2000, samples: 10000, thin: 10, seed: 42}}
output: {{directory: runs/{name}}}
"""


def program() -> str:
    """'mmgibbs 0.1.0, numpy 2.4.1': what the data were made by."""
    from mmgibbs.runs.record import versions

    return ", ".join(
        f"{name} {version}"
        for name, version in versions().items()
        if name in ("mmgibbs", "numpy") and version[0].isdigit()
    )


def _provenance(beef: Beef, how: str) -> str:
    lines = [
        "Simulated beef cattle; no animal in it ever lived.",
        f"Made by: {how}",
        f"Program: {program()}",
        f"{beef.n_animals} animals born {beef.birth_year.min()} to {beef.birth_year.max()}, {beef.n_records} with "
        "records.",
        "",
        "pedigree.csv       animal, sire, dam (empty: unknown), birth_year",
        "phenotypes.csv     one row per calf with records; weights in kg, empty where not weighed",
        "true_values.csv    true breeding values (direct on three weights, maternal on weaning weight), and "
        "maternal environment of dams, kg",
        "analysis.yaml      an analysis of these files",
        *(provenance(beef.genotypes) if beef.genotypes is not None else [""]),
        "True parameters (kg, kg^2)",
        f"genetic covariance ({', '.join(COMPONENTS)}):",
        *_matrix(GENETIC),
        f"maternal environment, variance on weaning weight: {MATERNAL_ENVIRONMENT:g}",
        f"residual covariance ({', '.join(TRAITS)}):",
        *_matrix(RESIDUAL),
        f"means ({SEXES[1]}, dam of 5 to 9 years): {_row(MEAN)}",
        f"{SEXES[0]} minus {SEXES[1]}: {_row(SEX[0])}",
        *(f"dam of {age} years: {_row(effect)}" for age, effect in zip(DAM_AGES, DAM_AGE, strict=True)),
        f"standard deviation of contemporary groups: {_row(CONTEMPORARY_GROUP_SD)}",
        "",
    ]
    return "\n".join(lines)


def _row(values: Iterable[float]) -> str:
    return "  ".join(f"{v:g}" for v in values)


def _matrix(values: Iterable[Iterable[float]]) -> list[str]:
    return ["  " + "".join(f"{v:>8g}" for v in row) for row in values]
