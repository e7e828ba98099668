"""`mmgibbs.optimise_contributions`: from a finished run and a table of candidates to contributions and matings."""

from __future__ import annotations

import os
import reprlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from mmgibbs.errors import ConfigError, DataError, option_name
from mmgibbs.machine.output_places import OutputKind, check_output_folder, list_paths, list_run_inputs
from mmgibbs.options import COUNT, NumberRange
from mmgibbs.pedigree.errors import TableError
from mmgibbs.pedigree.tables import Source
from mmgibbs.population.contributions.candidates import (
    Matings,
    check_sexes,
    locate_candidates,
    read_candidates,
)
from mmgibbs.population.contributions.coancestry_of_run import make_coancestry
from mmgibbs.population.contributions.matings import round_matings
from mmgibbs.population.contributions.planning import Planner
from mmgibbs.population.contributions.results import Contributions, describe_draws, note_limit, note_pairs
from mmgibbs.population.contributions.tables import (
    collect_facts,
    contributions_frame,
    frontier_frame,
    matings_frame,
    plans_frame,
)
from mmgibbs.population.contributions.values import ASKED, choose_criterion, evaluated_ids, posterior_means, read_draws
from mmgibbs.report.finished import Finished, read_finished
from mmgibbs.results.csv_files import is_escaped
from mmgibbs.results.folder import is_csv_wanted
from mmgibbs.results.output_folder import Content, write_files
from mmgibbs.runs.other_genotypes import NamedGenotypes, genotypes_section
from mmgibbs.runs.progress import Console

RATE = 0.01  # of the increase in coancestry, of what is left to 1
WORST_SHARE = 0.2
RATES, COANCESTRY, WORST = NumberRange(-1, 1), NumberRange(0, 1), NumberRange(0.001, 1)  # that are taken


TABLES = ("candidates", "frontier", "plans", "matings")
KIND = OutputKind(
    "contributions.json",
    frozenset({"contributions.json", "contributions.html"}).union(
        f"{name}.{ending}" for name in TABLES for ending in ("parquet", "csv")
    ),
    "contributions",
)


def optimise_contributions(
    run: str | os.PathLike,
    candidates: Source,
    output: str | os.PathLike | None = None,
    *,
    matings: int | Matings,
    coancestry: float | None = None,
    rate: float | None = None,
    trait: str | None = None,
    index: Mapping[str, float] | None = None,
    genotypes: NamedGenotypes | None = None,
    draws: int = 200,
    worst: float = WORST_SHARE,
    overwrite: bool = False,
    progress: bool = True,
    report: bool = False,
) -> Contributions:
    """Optimise the contributions of candidates of a finished run, and pair them.

    The contributions c of the candidates, half of them of each sex unless they are monoecious plants, have the highest
    mean breeding value b'c at a limit of the mean coancestry c'Kc / 2 (Meuwissen 1997), the expected inbreeding of the
    progeny. If the run has kept draws of the breeding values of the candidates (`output.save_levels`), they are
    optimised for each draw too, and a robust plan has the highest mean gain of the worst draws.

    Parameters
    ----------
    run : path-like
        Folder of a finished run with breeding values.
    candidates : path-like or polars.DataFrame
        Table of the candidates: columns id, sex (M or F; none of monoecious plants), and perhaps min and max, the
        least and most matings of each (semen that is bought already: min).
    output : path-like or None, default None
        Folder to write. By default nothing is written.
    matings : int or Matings
        Number of matings that are planned, or `Matings(50, max_females=1)` with limits of animals, the matings that are
        made already, or monoecious plants.
    coancestry : float or None, default None
        Highest mean coancestry. By default `rate` gives it.
    rate : float or None, default None
        Increase d of coancestry: the limit is C + d (1 - C), with C of equal contributions of all candidates of a sex.
        By default 0.01.
    trait : str or None, default None
        Trait whose breeding values count. By default the only one.
    index : mapping from str to float or None, default None
        Traits and what one unit of each is worth.
    genotypes : path-like, mapping or None, default None
        Genotypes of all candidates, a file or keys of `data.genotypes`: coancestry is then from alleles alike in state.
        By default by the pedigree.
    draws : int, default 200
        Draws of the breeding values for which contributions are optimised, at most. 0: none.
    worst : float, default 0.2
        Share of the draws, those with the lowest gains, whose mean gain the robust plan maximises.
    overwrite : bool, default False
        Replace the files of earlier contributions in `output`.
    progress : bool, default True
        Print what is being done.
    report : bool, default False
        Write contributions.html too; needs `output`.

    Returns
    -------
    Contributions
        `candidates`, `frontier`, `plans` and `matings`, Polars frames, `facts` and `notes`.

    Raises
    ------
    ConfigError
        The run or an argument cannot be used, or no plan is within the limit of coancestry.
    DataError
        A table cannot be used: unknown animals, one sex alone, limits that cannot be met.

    References
    ----------
    Meuwissen (1997), J. Anim. Sci. 75:934-940; Colleau (2002), Genet. Sel. Evol. 34:409-421.

    Examples
    --------
    >>> import polars as pl
    >>> import mmgibbs
    >>> run = mmgibbs.run("configs/blup.yaml", directory="runs/blup", progress=False)
    >>> herd_book = pl.read_csv("data_samples/beef/pedigree.csv").tail(200)
    >>> young = herd_book.select(id="animal", sex=pl.Series(["M", "F"] * 100))
    >>> made = mmgibbs.optimise_contributions(run.directory, young, matings=50, progress=False)
    >>> made.candidates["matings"].sum(), made.matings["matings"].sum()
    (100, 50)
    """
    asked = matings if isinstance(matings, Matings) else Matings(matings)
    for name, value, limits in (
        ("coancestry", coancestry, COANCESTRY), ("rate", rate, RATES), ("draws", draws, COUNT), ("worst", worst, WORST),
    ):  # fmt: skip
        if value is not None:
            limits.check(f"{ASKED}{option_name(name)}", value)
    if coancestry is not None and rate is not None:
        raise ConfigError(f"{ASKED}{option_name('coancestry')} cannot be combined with {option_name('rate')}")
    if report and output is None:
        raise ConfigError(f"{ASKED}report needs output, the folder to write")
    console = Console(progress)
    finished = _read_run(run)
    section = None if genotypes is None else genotypes_section("contributions", genotypes)
    files = [] if section is None else list_paths(section.as_file())
    read = [candidates, asked.mated, *files, *list_run_inputs(finished.directory, finished.record)]
    folder = None if output is None else check_output_folder(KIND, output, overwrite, read)
    criterion = choose_criterion(finished, trait, index)
    try:
        chosen = read_candidates(candidates, asked)
    except TableError as error:
        raise DataError(str(error)) from None
    evaluated = evaluated_ids(finished, criterion)
    places = locate_candidates(chosen, evaluated, f"animals with breeding values of {criterion.words} in the run")
    chosen = replace(chosen, ids=evaluated.gather(places))
    if finished.animals is not None:
        check_sexes(chosen, {role: finished.animals[role] for role in ("sire", "dam")})
    K, kind = make_coancestry(finished, chosen, section)
    b = posterior_means(finished, criterion, chosen.ids)
    planner = Planner(K, chosen, b, console)
    limit = planner.choose_limit(coancestry, RATE if rate is None else rate)
    plan = planner.optimise(limit)
    kept = read_draws(finished, criterion, chosen.ids, draws) if draws else None
    over_draws = None if kept is None else planner.optimise_draws(kept, plan, limit, worst)
    counts = round_matings(plan.contributions, planner.limits, chosen.matings)
    pairs = planner.pair(counts)
    facts = collect_facts(finished, criterion, chosen, kind, planner, limit, plan, counts, over_draws, worst)
    notes = (
        *note_limit(limit, plan, facts["coancestry_of_matings"], chosen.matings, planner.limits),
        *describe_draws(finished, criterion, chosen, draws, kept, over_draws),
        *note_pairs(pairs, chosen.matings),
    )
    made = Contributions(
        contributions_frame(chosen, b, plan, counts, over_draws),
        frontier_frame(planner.trace_frontier(plan), planner.base, planner.base_gain),
        plans_frame(planner, plan, counts, over_draws, worst),
        matings_frame(chosen, pairs),
        facts,
        notes,
        folder,
    )
    if folder is not None:
        _write(made, folder, report, is_escaped(finished.record))
    return made


def _write(made: Contributions, folder: Path, page: bool, escaped: bool) -> None:
    """Write all files, whole or not at all; escaped: no formulas in csv files."""
    contents: dict[str, Content] = {}
    for name in TABLES:
        frame = getattr(made, name)
        contents[f"{name}.parquet"] = frame
        contents[f"{name}.csv"] = frame if is_csv_wanted("auto", frame.height) else None
    if page:
        from mmgibbs.population.contributions.page import write_page  # and matplotlib with it

        contents["contributions.html"] = lambda path: write_page(made, path)
    write_files(KIND, folder, contents, made.facts | {"notes": list(made.notes)}, escaped)


def _read_run(run: str | os.PathLike) -> Finished:
    if not isinstance(run, (str, os.PathLike)):
        raise ConfigError(f"{ASKED}found {reprlib.repr(run)}, needed the folder of a finished run")
    try:
        return read_finished(run)
    except ConfigError as error:
        raise ConfigError(str(error).replace("report: ", ASKED, 1)) from None
