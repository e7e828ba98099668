"""Deregressed proofs: what records of an animal and its progeny say of it, without its parents (Garrick, Taylor &
Fernando 2009).

An EBV is regressed towards the parent average. With lambda = (1 - h2) / h2, PA the average of the parents and d the
Mendelian variance in units of the additive one, the equations of PA and of animal i were

    [ X_PA + lambda (1/v + 1/d)     -lambda/d      ] [ PA  ]   [ y_PA ]
    [       -lambda/d           X_i + lambda/d     ] [ g_i ] = [ y_i  ]         v the variance of PA

X: information as a number of records. The prediction error variances of PA and g_i are those of the inverse times
lambda, which gives both diagonal elements, so X_i; then y_i (neither depends on v), and

    deregressed proof = y_i / X_i        reliability = X_i / (X_i + lambda)

    weight = (1 - h2) / [ (c + (1 - reliability) / reliability) h2 ]      c the share that markers do not explain

With F = 0 these are the formulas of the paper: v = d = 1/2. The errors of the parents are taken as uncorrelated, as
there. Of an animal with one known parent this parent takes the place of PA (v = 1 + F, d = 3/4 - F/4, and half of it in
the mean); without parents X_i = lambda r / (1 - r) for the reliability r, and the proof is the EBV divided by r.

Deregressed proofs of a finished run as a table: `mmgibbs export --format deregressed`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from mmgibbs.errors import ConfigError
from mmgibbs.exchange.exported import choose_folder, read_exported, write_exported
from mmgibbs.machine.output_places import OutputKind
from mmgibbs.pedigree.tables import counted, quoted
from mmgibbs.report.finished import Finished

MIN_RELIABILITY = 1e-3  # of a deregressed proof: with less an animal has next to no information of its own


@dataclass(frozen=True)
class Evaluated:
    """EBVs of n animals for one trait, in units of the trait; parents by their number, -1: unknown."""

    sire: np.ndarray  # (n,) int64
    dam: np.ndarray  # (n,) int64
    ebv: np.ndarray  # (n,)
    reliability: np.ndarray  # (n,)
    inbreeding: np.ndarray  # (n,)

    @property
    def errors(self) -> np.ndarray:
        """(n,) prediction error variances in units of the additive variance."""
        return (1.0 - self.reliability) * (1.0 + self.inbreeding)


@dataclass(frozen=True)
class Deregressed:
    """Deregressed values of the same animals; NaN where there is no information beyond the parents."""

    proof: np.ndarray  # (n,)
    reliability: np.ndarray  # (n,)
    information: np.ndarray  # (n,) X_i
    parent_average: np.ndarray  # (n,) 0 without known parents


@dataclass(frozen=True)
class _ParentAverage:
    """PA in the two equations of each animal: the average of its parents, or the one that is known."""

    ebv: np.ndarray  # (n,)
    share: np.ndarray  # (n,) of it in the mean of the animal: 1 of an average, 1/2 of one parent
    errors: np.ndarray  # (n,) prediction error variances, as those of Evaluated
    mendelian: np.ndarray  # (n,) d


def deregress(evaluated: Evaluated, heritability: float) -> Deregressed:
    """Deregress EBVs of which the parents are among the animals, or unknown."""
    ratio = (1.0 - heritability) / heritability
    average, has_parents = _average_parents(evaluated), (evaluated.sire >= 0) | (evaluated.dam >= 0)
    reliability, ebv = evaluated.reliability, evaluated.ebv
    with np.errstate(divide="ignore", invalid="ignore"):
        information = ratio * reliability / (1.0 - reliability)
        sums = (information + ratio) * ebv
        pair_information, pair_sums = _solve_pair(average, evaluated, ratio)
        information = np.where(has_parents, pair_information, information)
        sums = np.where(has_parents, pair_sums, sums)
        reliability = information / (information + ratio)
        is_informed = reliability >= MIN_RELIABILITY
        proof = np.where(is_informed, sums / information, np.nan)
    parent_average = np.where(has_parents, average.ebv * average.share, 0.0)
    reliability, information = (np.where(is_informed, values, np.nan) for values in (reliability, information))
    return Deregressed(proof, reliability, information, parent_average)


def _average_parents(evaluated: Evaluated) -> _ParentAverage:
    sire, dam, F = evaluated.sire, evaluated.dam, evaluated.inbreeding
    both, known = (sire >= 0) & (dam >= 0), np.where(sire >= 0, sire, dam)
    ebv = np.where(both, (evaluated.ebv[sire] + evaluated.ebv[dam]) / 2, evaluated.ebv[known])
    errors = np.where(both, (evaluated.errors[sire] + evaluated.errors[dam]) / 4, evaluated.errors[known])
    mendelian = np.where(both, (2.0 - F[sire] - F[dam]) / 4, (3.0 - F[known]) / 4)
    return _ParentAverage(ebv, np.where(both, 1.0, 0.5), errors, mendelian)


def _solve_pair(average: _ParentAverage, evaluated: Evaluated, ratio: float) -> tuple[np.ndarray, np.ndarray]:
    """(X_i, y_i), each (n,), by the matrix [a b; b c] of the equations: b and the diagonal of its inverse are known.

    c / (a c - b^2) = e_PA / lambda  and  a / (a c - b^2) = e_i / lambda  for the prediction error variances e, so that
    c / a = e_PA / e_i, and a is the positive root of a quadratic equation.
    """
    first, second = average.errors / ratio, evaluated.errors / ratio
    off = -ratio * average.share / average.mendelian
    a = (1.0 + np.sqrt(1.0 + 4.0 * first * second * off**2)) / (2.0 * first)
    c = a * first / second
    information = c - ratio / average.mendelian
    return information, off * average.ebv + c * evaluated.ebv


def weigh(reliability: np.ndarray, heritability: float, unexplained: float) -> np.ndarray:
    """Weights of deregressed proofs; unexplained: share of the genetic variance that markers do not explain."""
    return (1.0 - heritability) / ((unexplained + (1.0 - reliability) / reliability) * heritability)


NAME = "deregressed"
FILES = (f"{NAME}.csv", f"{NAME}.parquet", f"{NAME}.json")
KIND = OutputKind(FILES[2], frozenset(FILES), "deregressed proofs", is_alone=False)
UNEXPLAINED = 0.5  # share of the genetic variance, as in the example of Garrick et al. (2009)


def export_deregressed(
    run: str | os.PathLike,
    output: str | os.PathLike | None = None,
    *,
    unexplained: float = UNEXPLAINED,
    overwrite: bool = False,
) -> tuple[Path, list[str]]:
    """Write deregressed proofs of a finished run; returns their folder, by default RUN-deregressed, and notes.

    unexplained: share of the genetic variance that markers do not explain, for the weights. ConfigError: no finished
    run of a mixed model with a pedigree and reliabilities, or files that are there already.
    """
    if not 0 <= unexplained < 1:
        raise ConfigError(f"export: --unexplained: expected a share from 0 to below 1, got {unexplained:g}")
    finished = read_exported(run)
    folder = choose_folder(finished, output, KIND, overwrite)
    frame, notes = deregressed_frame(finished, unexplained)
    write_exported(KIND, folder, finished, {FILES[0]: frame, FILES[1]: frame})
    return folder, notes


def deregressed_frame(finished: Finished, unexplained: float) -> tuple[pl.DataFrame, list[str]]:
    """A row for each trait and animal with information beyond its parents, and notes on the others."""
    _refuse_groups(finished)
    h2 = dict(finished.summary.select("parameter", "mean").iter_rows())
    frames, notes = [], []
    for trait, counted_variances in finished.record.get("variances_counted", {}).items():
        direct = counted_variances.get("direct_variance")
        name = f"h2[{trait}]"
        if direct is None or name not in h2:
            continue
        if "|" in trait and trait not in finished.record["analysis"]["traits"]:
            raise ConfigError(
                f"export: expected one heritability of each trait, got {name} of a residual class; needed a run "
                "without variances.residual.by"
            )
        if not 0 < h2[name] < 1:
            raise ConfigError(f"export: {name}: expected a heritability above 0 and below 1, got {h2[name]:g}")
        frame = _deregress_trait(finished, trait, str(direct), float(h2[name]), unexplained)
        left_out = frame.filter(pl.col("deregressed").is_null()).height
        if left_out:
            notes.append(f"{trait}: {counted(left_out, 'animal', 'has')} no information beyond the parents: left out")
        frames.append(frame.drop_nulls("deregressed"))
    if not frames:
        raise ConfigError(
            f"export: '{finished.directory}' has no heritability of a direct effect of a pedigree; needed a run with "
            "relationship: pedigree (or single_step) and without random regressions"
        )
    return pl.concat(frames), notes


def _refuse_groups(finished: Finished) -> None:
    """Parents of animals in groups have the values of groups, which animals.parquet does not say."""
    if finished.record["analysis"].get("data", {}).get("groups"):
        raise ConfigError("export: expected a run without unknown-parent groups (data.groups) for format deregressed")


def _deregress_trait(
    finished: Finished, trait: str, direct: str, heritability: float, unexplained: float
) -> pl.DataFrame:
    rows = _select_solutions(finished, trait, direct)
    if rows["reliability"].null_count() == rows.height:
        raise ConfigError(
            f"export: {trait}: expected reliabilities in the solutions, got none; needed a run with prediction error "
            "variances (sampler.pev_limit, or sampler.pev_samples)"
        )
    assert finished.animals is not None, "a pedigree that is needed is in the folder"
    number = pl.DataFrame({"id": rows["level"], "number": pl.int_range(0, rows.height, eager=True)})
    parents = rows.select(id="level").join(finished.animals, on="id", how="left", maintain_order="left")

    def find_numbers(column: str) -> np.ndarray:
        ids = parents.select(id=column).join(number, on="id", how="left", maintain_order="left")
        return ids["number"].fill_null(-1).to_numpy()

    as_array = lambda column: rows[column].cast(pl.Float64).fill_null(np.nan).to_numpy()
    inbreeding = np.nan_to_num(as_array("inbreeding"))
    evaluated = Evaluated(
        find_numbers("sire"), find_numbers("dam"), as_array("mean"), as_array("reliability"), inbreeding
    )
    proofs = deregress(evaluated, heritability)
    return pl.DataFrame(
        {
            "animal": rows["level"],
            "trait": [trait] * rows.height,
            "deregressed": proofs.proof,
            "reliability": proofs.reliability,
            "weight": weigh(proofs.reliability, heritability, unexplained),
            "information": proofs.information,
            "ebv": evaluated.ebv,
            "ebv_reliability": evaluated.reliability,
            "parent_average": proofs.parent_average,
        }
    ).with_columns(pl.col(pl.Float64).fill_nan(None))


def _select_solutions(finished: Finished, trait: str, direct: str) -> pl.DataFrame:
    """The rows of the direct effect, whose variance has the name `direct`: 'genetic.var[direct:trait]'."""
    for term, effect, component_trait in finished.components:
        component = f"{effect}:{trait}" if effect else trait
        if component_trait == trait and f"{term}.var[{component}]" == direct:
            symbol = finished.relationships[term]["symbol"]
            relationship = finished.record["analysis"]["model"]["random"][term].get("relationship")
            if symbol not in ("A", "H") or finished.animals is None:
                raise ConfigError(
                    f"export: expected breeding values by a pedigree (model.random.{term}.relationship: pedigree), got "
                    f"{quoted(str(relationship))}: the parent average would be missing"
                )
            if isinstance(relationship, dict) and relationship.get("selfing"):
                raise ConfigError(f"export: model.random.{term}.relationship: cannot be combined with selfing")
            return finished.component(term, effect, trait).filter(
                pl.col("level").is_in(finished.animals["id"].implode())
            )
    raise ConfigError(f"export: {trait}: found no solutions of {direct}")
