"""A finished run as files that programs of the BLUPF90 family leave: solutions, postgibbs_samples, postind.

Effects are numbered from 1 in the order of the analysis (an intercept first): one number for each fixed effect, each
power or polynomial of a covariate, and each effect and coefficient of a random term. Fixed effects that follow each
other as effectN_colA, effectN_colB, ..., as the import names an EFFECT whose column differs by trait, are one effect.
Levels are numbered from 1 within an effect; unknown-parent groups follow the animals. levels.csv says what the numbers
mean. A level of a trait that lacks it has the solution 0, as in the files of those programs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from mmgibbs.exchange.exported import choose_folder, read_exported, write_exported
from mmgibbs.machine.output_places import OutputKind
from mmgibbs.report.finished import Finished
from mmgibbs.results.markers import GEBV, TOTAL
from mmgibbs.results.output_folder import Content

FILES = ("solutions", "levels.csv", "postgibbs_samples", "postind", "blupf90.json")
KIND = OutputKind(FILES[4], frozenset(FILES), "an export", is_alone=False)


@dataclass(frozen=True)
class TermNumbers:
    """The components of a term in the order of the solutions, k of them for each level."""

    name: str
    rows: pl.DataFrame  # of the solutions: id, mean, sd
    labels: list[str]  # (k,) effect, with its coefficient; '' where the term has but one
    effects: list[int]  # (k,) number of the effect
    traits: list[int]  # (k,) number of the trait
    levels_before: int = 0  # levels of other terms of the same effect

    @property
    def n_levels(self) -> int:
        return self.rows.height // len(self.labels)


def export_blupf90(run: str | os.PathLike, output: str | os.PathLike | None = None, *, overwrite: bool = False) -> Path:
    """Write the files of a finished run; returns their folder, by default RUN-blupf90.

    postgibbs_samples and postind are written where variances were sampled. ConfigError: no finished run of a mixed
    model, a folder that holds a run (which a new run would replace, and leave these files beside it), files that are
    there already.
    """
    finished = read_exported(run)
    folder = choose_folder(finished, output, KIND, overwrite)
    terms = numbered_terms(finished)
    n_traits = len(finished.record["analysis"]["traits"])
    contents: dict[str, Content] = {
        "solutions": lambda path: _write_solutions(path, terms, n_traits),
        "levels.csv": level_table(terms),
    }
    if finished.record.get("method") == "gibbs":
        matrices = covariance_components(terms, finished)
        contents["postind"] = lambda path: _write_postind(path, matrices)
        contents["postgibbs_samples"] = lambda path: _write_samples(path, matrices, finished)
    write_exported(KIND, folder, finished, contents)
    return folder


# ------------------------------------------------------------------------------------------------ solutions


def numbered_terms(finished: Finished) -> list[TermNumbers]:
    """The terms of the run in the order of its solutions."""
    analysis = finished.record["analysis"]
    trait_number = {name: t for t, name in enumerate(analysis["traits"], 1)}
    fixed, before = analysis["model"]["fixed"], 0
    terms: list[TermNumbers] = []
    solutions = finished.solutions
    assert solutions is not None, "only mixed models are exported"
    solutions = solutions.filter(~pl.col("effect").fill_null("").is_in([GEBV, TOTAL]))  # sums, no levels of a term
    for name in solutions["term"].unique(maintain_order=True):
        rows = solutions.filter(term=name)
        labels = pl.col("effect").fill_null("")
        ids = pl.col("level")
        if fixed.get(name, {}).get("kind") == "covariate":  # its level is 'slope' or 'x^1', or 'CLASS:slope'
            labels = ids.str.split(":").list.last()
            ids = ids.str.strip_suffix(labels).str.strip_suffix(":")
        rows = rows.select(ids.alias("id"), labels.alias("label"), "trait", "mean", "sd")
        k = (rows["id"] != rows["id"][0]).arg_max() or rows.height
        first = rows.head(k)
        traits = [trait_number[t] for t in first["trait"]]
        shared = terms[-1] if terms and _is_same_effect(name, traits, fixed, terms) else None
        if shared is not None:
            before -= 1
        number = {label: before + i for i, label in enumerate(dict.fromkeys(first["label"]), 1)}
        terms.append(
            TermNumbers(
                name,
                rows,
                first["label"].to_list(),
                [number[e] for e in first["label"]],
                traits,
                shared.levels_before + shared.n_levels if shared is not None else 0,
            )
        )
        before += len(number)
    return terms


def _is_same_effect(name: str, traits: Sequence[int], fixed: dict, terms: Sequence[TermNumbers]) -> bool:
    """Check whether a term is of the same EFFECT as the one before it.

    Such are effectN_colA, then effectN_colB for other traits.
    """
    prefix, before = (re.match(r"effect\d+_(?=col\d)", n) if n in fixed else None for n in (name, terms[-1].name))
    if prefix is None or before is None or prefix[0] != before[0]:
        return False
    taken = {t for term in terms if term.effects[0] == terms[-1].effects[0] for t in term.traits}
    return taken.isdisjoint(traits) and len(set(terms[-1].labels)) == 1


def _with_numbers(term: TermNumbers) -> pl.DataFrame:
    n, k = term.n_levels, len(term.labels)
    return term.rows.with_columns(
        trait=pl.Series(np.tile(term.traits, n)),
        effect=pl.Series(np.tile(term.effects, n)),
        level=pl.Series(term.levels_before + np.repeat(np.arange(1, n + 1), k)),
    )


def _zeros(term: TermNumbers, n_traits: int) -> pl.DataFrame:
    """The levels of traits that lack an effect."""
    having = set(zip(term.effects, term.traits, strict=True))
    lacking = [(e, t) for e in dict.fromkeys(term.effects) for t in range(1, n_traits + 1) if (e, t) not in having]
    effects = pl.DataFrame(lacking, schema={"effect": pl.Int64, "trait": pl.Int64}, orient="row")
    levels = pl.DataFrame({"level": term.levels_before + np.arange(1, term.n_levels + 1)})
    return levels.join(effects, how="cross").with_columns(mean=0.0, sd=0.0)


def _write_solutions(path: Path, terms: Sequence[TermNumbers], n_traits: int) -> None:
    """Trait, effect, level, solution and, where it is known, its standard error (the posterior standard deviation)."""
    known = any((term.rows["sd"] > 0).any() for term in terms)  # a level set to 0 has an s.e. of 0 in any case
    columns = ["trait", "effect", "level", "mean", *(["sd"] if known else [])]
    with path.open("wb") as file:
        file.write(b"trait/effect level  solution" + (b"          s.e.\n" if known else b"\n"))
        for term in terms:
            rows = pl.concat([_with_numbers(term).select(columns), _zeros(term, n_traits).select(columns)])
            rows = rows.sort("effect", "level", "trait")
            rows.with_columns(pl.col(columns[3:]).fill_null(0.0)).write_csv(file, include_header=False, separator=" ")


def level_table(terms: Sequence[TermNumbers]) -> pl.DataFrame:
    """effect, level, id, term, name (of the effect and its coefficient): what the numbers of the solutions mean."""
    tables = []
    for term in terms:
        ids = term.rows["id"].gather_every(len(term.labels))
        levels = pl.DataFrame({"level": term.levels_before + np.arange(1, len(ids) + 1), "id": ids})
        for number, label in dict(zip(term.effects, term.labels, strict=True)).items():
            tables.append(
                levels.select(
                    pl.lit(number).alias("effect"),
                    "level",
                    "id",
                    pl.lit(term.name).alias("term"),
                    pl.lit(label).alias("name"),
                )
            )
    return pl.concat(tables)


# ------------------------------------------------------------------------------------------------ samples


@dataclass(frozen=True)
class Components:
    """A covariance matrix: its effects and the draws of its upper triangle by rows, components by effect and trait."""

    title: str
    k: int
    draws: list[np.ndarray]  # k (k + 1) / 2 times (chains, draws)


def covariance_components(terms: Sequence[TermNumbers], finished: Finished) -> list[Components]:
    """The matrices of the random terms, then that of the residuals; 0 where a covariance is not in the model."""
    traits = list(finished.record["analysis"]["traits"])
    zero = np.zeros_like(next(iter(finished.draws.values())))
    matrices = []
    for term in terms:
        if term.name in finished.relationships:
            order = sorted(range(len(term.labels)), key=lambda c: (term.effects[c], term.traits[c]))
            names = [traits[term.traits[c] - 1] for c in order]
            names = [
                f"{term.labels[c]}:{name}" if term.labels[c] else name for c, name in zip(order, names, strict=True)
            ]
            effects = " ".join(map(str, dict.fromkeys(sorted(term.effects))))
            matrices.append((f" G matrix for effect = {effects}", term.name, names, ""))
    classes = finished.record.get("data", {}).get("residual_classes", {})
    matrices += [(f" R matrix, class {c}", "residual", traits, f"|{c}") for c in classes]
    matrices += [] if classes else [(" R matrix", "residual", traits, "")]

    def draws(term: str, a: str, b: str, end: str) -> np.ndarray:
        named = [f"{term}.var[{a}{end}]"] if a == b else [f"{term}.cov[{a},{b}{end}]", f"{term}.cov[{b},{a}{end}]"]
        return next((finished.draws[name] for name in named if name in finished.draws), zero)

    return [
        Components(title, len(names), [draws(term, a, b, end) for i, a in enumerate(names) for b in names[i:]])
        for title, term, names, end in matrices
    ]


def _write_postind(path: Path, matrices: Sequence[Components]) -> None:
    """The position of every (co)variance among those of a sample, in the upper triangle of its matrix."""
    lines, before = [], 0
    for matrix in matrices:
        positions = np.zeros((matrix.k, matrix.k), int)
        positions[np.triu_indices(matrix.k)] = before + 1 + np.arange(len(matrix.draws))
        before += len(matrix.draws)
        lines += [matrix.title, *("".join(f"{p:6d}" for p in row) for row in positions)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _write_samples(path: Path, matrices: Sequence[Components], finished: Finished) -> None:
    """Number, round, how many (co)variances, and they; the rounds of a chain continue those of the one before."""
    draws = [d for matrix in matrices for d in matrix.draws]
    chains, kept = draws[0].shape
    offset = np.arange(chains)[:, None] * int(finished.record["sweeps_per_chain"])
    columns = {
        "number": np.arange(1, chains * kept + 1),
        "round": (_sweeps(finished) + offset).ravel(),
        "n": np.full(chains * kept, len(draws)),
    }
    columns |= {str(i): d.ravel() for i, d in enumerate(draws)}
    pl.DataFrame(columns).write_csv(path, include_header=False, separator=" ")


def _sweeps(finished: Finished) -> np.ndarray:
    """(chains, draws) int64: the sweep of each draw."""
    import xarray

    with xarray.open_datatree(finished.directory / "draws.nc", engine="h5netcdf") as tree:
        return np.asarray(tree["/sample_stats/sweep"].values).astype(np.int64)
