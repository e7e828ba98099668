"""Deregressed proofs of a finished run as a table: `mmgibbs export --format deregressed`."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import polars as pl

from mmgibbs.errors import ConfigError
from mmgibbs.exchange.deregression import Evaluated, deregress, weigh
from mmgibbs.exchange.exported import choose_folder, read_exported, write_exported
from mmgibbs.machine.output_places import OutputKind
from mmgibbs.report.finished import Finished
from mmgibbs.results.csv_files import csv_writer, is_escaped
from mmgibbs.results.output_folder import Writers
from pedigree.tables import counted, quoted

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
    writers: Writers = {FILES[0]: csv_writer(frame, is_escaped(finished.record)), FILES[1]: frame.write_parquet}
    write_exported(KIND, folder, finished, writers)
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
