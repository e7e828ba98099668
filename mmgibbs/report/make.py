"""The page at the end of a run, and of finished runs: whatever goes wrong with a page, its run stays."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mmgibbs.errors import ConfigError, option_name
from mmgibbs.machine.output_places import check_output_file, is_page
from mmgibbs.report.render import missing_libraries

if TYPE_CHECKING:
    import polars as pl

FORMATS = ("pdf", "svg", "png")  # of pictures that are saved


def report_after_run(directory: Path, say: Callable[[str], None], solutions: pl.DataFrame | None = None) -> Path | None:
    """Write report.html into the run folder; None, after saying why, where that cannot be done.

    solutions: those of the run, as they are in memory; else they are read."""
    try:
        path = make_report([directory], solutions=solutions)
    except Exception as error:  # noqa: BLE001  a finished run is worth more than its page
        what = str(error) if isinstance(error, ConfigError) else f"{type(error).__name__}: {error}"
        say(f"the run is complete, but has no report.html: {what.removeprefix('report: ')}")
        return None
    say(f"report: {path}")
    return path


def make_report(
    runs: Sequence[str | os.PathLike],
    output: str | os.PathLike | None = None,
    top: int = 20,
    solutions: pl.DataFrame | None = None,
) -> Path:
    """The page of one finished run, or of several side by side; returns its path.

    output: the file to write, by default report.html in the folder of one run, and comparison.html where the command
    runs for several. top: animals listed for each trait. solutions: of the one run, where they are in memory. Raises
    ConfigError: top below 1, no finished run, a file that cannot be written, libraries that are missing.
    """
    if top < 1:
        raise ConfigError(f"report: {option_name('top')}: found {top}, needed at least 1 animal to list for each trait")
    from mmgibbs.results.reading import list_inputs  # and Polars with it

    kind = "report" if len(runs) == 1 else "comparison"
    page = Path(output or (Path(runs[0]) / "report.html" if len(runs) == 1 else "comparison.html"))
    check_page(page, kind, [path for run in runs for path in list_inputs(run, "report: ")])
    check_libraries("report", f"mmgibbs report {shlex.join(map(str, runs))}")
    if len(runs) == 1:
        from mmgibbs.report.page import write_report

        return write_report(runs[0], page, top, solutions)
    from mmgibbs.report.compare import write_comparison

    return write_comparison(runs, page, top)


def check_page(path: str | os.PathLike, kind: str, inputs: Iterable[object], place: str | None = None) -> None:
    """ConfigError where a path may not become a page of this kind, by default that of --output."""
    what = f"a page of mmgibbs {'report' if kind == 'report' else 'report A B'}"
    check_output_file(Path(path), what, lambda file: is_page(file, kind), inputs=inputs, place=place)


def check_libraries(name: str, command: str = "") -> None:
    """Raise a ConfigError where a library that draws pages is not installed.

    name: of the command or method, with which the message begins. command: what to repeat after the installation.
    """
    missing = missing_libraries()
    if missing:
        next_step = f", then {command}" if command else ""
        raise ConfigError(
            f"{name}: found no {' and no '.join(missing)}; needed: pip install {' '.join(missing)}{next_step}"
        )
