"""The result of a run for Python: tables, draws, figures, and its form in a notebook."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from mmgibbs.errors import ConfigError
from mmgibbs.pedigree.tables import counted
from mmgibbs.results.reading import RunFiles, refuse_outside_storage
from mmgibbs.results.relationships import describe_relationships
from mmgibbs.runs.result_frame import ResultFrame

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped]
    import xarray

    from mmgibbs.report.pictures import Picture

TABLES = ("summary", "solutions", "decisions", "response")
MOST_IN_MEMORY = 64 * 2**20  # bytes of draws.nc


@dataclass(frozen=True)
class Result:
    """The result of a run. A notebook shows its summary with its warnings.

    Attributes
    ----------
    summary : polars.DataFrame
        A row for each parameter.
    solutions : polars.DataFrame or None
        A row for each level of each effect; None for a regression.
    info : dict
        Contents of run.json.
    directory : pathlib.Path
        The run folder.
    decisions : polars.DataFrame or None
        Candidates for selection, if the analysis has a section `decisions`.
    response : polars.DataFrame or None
        Expected response to selection, if the analysis has a section `decisions`.
    folder : object
        Keeps a temporary folder while this object is in use.
    """

    summary: pl.DataFrame
    solutions: pl.DataFrame | None  # None for a regression
    info: dict
    directory: Path
    decisions: pl.DataFrame | None = None  # the candidates for selection, where the analysis asks for them
    response: pl.DataFrame | None = None
    folder: object = field(default=None, repr=False, compare=False)  # keeps a temporary folder while this is in use

    def __post_init__(self) -> None:
        """Give the tables their own `to_pandas` and `to_latex`."""
        for name in TABLES:
            table = getattr(self, name)
            if table is not None:
                object.__setattr__(self, name, ResultFrame(table))

    def __repr__(self) -> str:
        """Describe the result in a few lines: the tables and run.json are longer than a screen."""
        from mmgibbs.report.findings import said_at_the_end

        parts = [f"Result of {self.info.get('name', 'a run')!r}: {counted(self.summary.height, 'parameter')}"]
        if self.solutions is not None:
            parts.append(counted(self.solutions.height, "solution"))
        warned = [f"warning: {text.removeprefix('warning: ')}" for text in said_at_the_end(self.summary, self.info)]
        return "\n".join([", ".join(parts) + f"; in {self.directory}", *warned, f"summary {self.summary}"])

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the draws that were read: the folder has them."""
        return {of_result.name: getattr(self, of_result.name) for of_result in fields(self)}

    @property
    def draws(self) -> xarray.DataTree:
        """Draws of variance components, derived parameters and chosen levels, an xarray.DataTree.

        It has /posterior and /sample_stats, which ArviZ takes from version 1 on; `to_arviz` is for any. Up to 64 MB are
        read once and kept in memory; larger files are opened, and read where you use them.
        """
        return self._open_draws() if self._draws_in_memory is None else self._draws_in_memory.copy(deep=True)

    @cached_property
    def _draws_in_memory(self) -> xarray.DataTree | None:
        import xarray

        if self._draws_file.stat().st_size > MOST_IN_MEMORY:
            return None
        with self._open_draws() as tree:
            return xarray.DataTree.from_dict({node.path: node.to_dataset().load() for node in tree.subtree})

    def _open_draws(self) -> xarray.DataTree:
        import xarray

        self._check_draws_exist()
        return xarray.open_datatree(self._draws_file, engine="h5netcdf")

    @cached_property
    def _draws_file(self) -> Path:
        """The path of draws.nc, which is as the run wrote it."""
        self._check_draws_exist()
        path = RunFiles(self.directory, "draws: ").path("draws.nc")
        if path is None:
            raise ConfigError(f"draws: the run in '{self.directory}' wrote no draws.nc")
        refuse_outside_storage(path, "draws: ")
        return path

    def _check_draws_exist(self) -> None:
        """Check that draws.nc exists.

        ConfigError if the folder of the run was moved or deleted, as a temporary one is with its result.
        """
        if not (self.directory / "draws.nc").is_file():
            raise ConfigError(
                f"draws: found no '{self.directory / 'draws.nc'}', needed the folder of the run; one that is named by "
                "directory=FOLDER is kept"
            )

    @cached_property
    def _parameters(self) -> dict[str, np.ndarray]:
        """Draws by parameter, (chains, draws) each."""
        from mmgibbs.report.finished import read_finished

        self._check_draws_exist()
        return read_finished(self.directory).draws

    def _sampled(self, asked: str) -> dict[str, np.ndarray]:
        """Return the draws for a figure of them. ConfigError where the method draws nothing."""
        method = self.info.get("method")
        if method in ("blup", "reml"):
            raise ConfigError(
                f"{asked}: found a run of method {method}, which draws nothing; needed one of method gibbs (`summary` "
                "and `solutions` have the estimates)"
            )
        return self._parameters

    def to_arviz(self) -> Any:
        """Return the draws as the installed ArviZ takes them.

        Returns
        -------
        xarray.DataTree or arviz.InferenceData
            `draws`; before version 1 of ArviZ, the same as its own type.

        Raises
        ------
        ConfigError
            Nothing was drawn, or ArviZ is not installed.

        Examples
        --------
        >>> import mmgibbs
        >>> draws = mmgibbs.open_run("runs/first").to_arviz()  # doctest: +SKIP
        >>> arviz.plot_trace(draws, var_names=["h2[yearling_weight]"])  # doctest: +SKIP
        """
        try:
            import arviz
        except ImportError as error:
            raise ConfigError("to_arviz: ArviZ is not installed; needed: pip install arviz") from error
        tree = self.draws
        if not hasattr(arviz, "InferenceData"):
            return tree
        return arviz.InferenceData(**{name: node.to_dataset() for name, node in tree.children.items()})

    def to_pandas(self, table: str = "solutions") -> pandas.DataFrame:
        """Return a table as a frame of pandas, without pyarrow, which `to_pandas` of Polars needs.

        Parameters
        ----------
        table : {"summary", "solutions", "decisions", "response"}, default "solutions"
            The table.

        Returns
        -------
        pandas.DataFrame
            The same columns and rows.

        Raises
        ------
        ConfigError
            There is no such table in this run, or pandas is not installed.

        Examples
        --------
        >>> import mmgibbs
        >>> mmgibbs.open_run("runs/first").to_pandas("summary").shape[0]
        3
        """
        return self._table(table, "to_pandas").to_pandas()

    def _table(self, table: str, asked: str) -> ResultFrame:
        """Return a table by its name; asked: what the message begins with."""
        frame = getattr(self, table, None) if isinstance(table, str) and table in TABLES else None
        if frame is None:
            has = [name for name in TABLES if getattr(self, name) is not None]
            raise ConfigError(f"{asked}: found {reprlib.repr(table)}, needed a table of this run: {', '.join(has)}")
        assert isinstance(frame, ResultFrame)
        return frame

    def to_latex(
        self,
        table: str = "summary",
        columns: Sequence[str] | None = None,
        *,
        rows: str | Sequence[str] | None = None,
        caption: str | None = None,
        label: str | None = None,
    ) -> str:
        r"""Return a table in LaTeX, for `\usepackage{booktabs}`.

        Parameters
        ----------
        table : {"summary", "solutions", "decisions", "response"}, default "summary"
            The table.
        columns : sequence of str or None, default None
            Columns. None: of the summary the estimates with their errors and intervals, else all that have values.
        rows : str, sequence of str, or None, default None
            Names in the first column, or patterns such as "h2[*]". None: all rows.
        caption : str or None, default None
            Caption of a floating table. None: the `tabular` alone.
        label : str or None, default None
            Label of the floating table.

        Returns
        -------
        str
            A `tabular` environment, within a `table` if there is a caption or a label.

        Raises
        ------
        ConfigError
            There is no such table, column or row.

        Examples
        --------
        >>> import mmgibbs
        >>> text = mmgibbs.open_run("runs/first").to_latex(rows="h2[*]", columns=["parameter", "mean", "sd"])
        >>> text.splitlines()[2]
        'Parameter & Mean & SD \\\\'
        """
        return self._table(table, "to_latex").to_latex(columns, rows=rows, caption=caption, label=label)

    def save_figures(
        self,
        output: str | Path | None = None,
        format: str = "pdf",
        only: str | Sequence[str] | None = None,
    ) -> list[Path]:
        """Write every picture of the report page as a file, with the data that it draws beside it as csv.

        Parameters
        ----------
        output : path-like or None, default None
            Folder to write to. None: `figures` in the folder of the run.
        format : {"pdf", "svg", "png"}, default "pdf"
            Format of the pictures.
        only : str, sequence of str, or None, default None
            Names of pictures, or patterns such as "trace-*". None: all pictures.

        Returns
        -------
        list of pathlib.Path
            The pictures. `figures.csv` in their folder has a caption for each.

        Raises
        ------
        ConfigError
            There is no such picture or format, the folder cannot be written, or that of the run is gone.
        """
        from mmgibbs.report.make import check_libraries

        check_libraries("save_figures")
        from mmgibbs.report.saved_figures import save_figures

        return save_figures(self.directory, output, format, only)

    @cached_property
    def means(self) -> pl.DataFrame | None:
        """Adjusted means (effect, trait, level, records, mean, se) of `output.means`; None without any."""
        return self._read_table("means")

    @cached_property
    def factor_scores(self) -> pl.DataFrame | None:
        """Overall performance, stability and scores of levels of terms with factors over traits; None without any."""
        return self._read_table("factor_scores")

    @cached_property
    def field(self) -> pl.DataFrame | None:
        """Trends of the plots of field trials (trial, row, column, mean, sd, residual); None without any."""
        return self._read_table("field")

    @cached_property
    def smooths(self) -> pl.DataFrame | None:
        """Curves over covariates (term, trait, class, covariate, at, records, mean, sd); None without any."""
        return self._read_table("smooths")

    def _read_table(self, name: str) -> ResultFrame | None:
        frame = RunFiles(self.directory, f"{name}: ").table_if_any(f"{name}.parquet")
        return None if frame is None else ResultFrame(frame)

    def contrast(self, effect: str, weights: Mapping[str, float], trait: str | None = None) -> tuple[float, float]:
        """Estimate a linear combination of adjusted means, such as a difference of two.

        Parameters
        ----------
        effect : str
            An effect in `output.means`.
        weights : mapping of str to float
            Weight of each level; others have 0. {"A": 1, "B": -1} is the difference of A and B.
        trait : str or None, default None
            The trait. None: the only one of this effect.

        Returns
        -------
        tuple of float
            The estimate and its standard error; of draws the posterior mean and standard deviation.

        Raises
        ------
        ConfigError
            There are no such means, or an unknown level.
        """
        from mmgibbs.results.means import estimate_contrast

        return estimate_contrast(self.directory, self.means, effect, weights, trait)

    def breeding_values(self, term: str | None = None, trait: str | None = None) -> pl.DataFrame:
        """Return the solutions of the random effects with related levels, best first.

        Parameters
        ----------
        term : str or None, default None
            One term. None: every term with relationships.
        trait : str or None, default None
            One trait. None: every trait.

        Returns
        -------
        polars.DataFrame
            Rows of `solutions`, sorted by falling mean.

        Raises
        ------
        ConfigError
            There is no such term or trait, or the run is a regression.

        Examples
        --------
        >>> import mmgibbs
        >>> best = mmgibbs.open_run("runs/first").breeding_values(trait="yearling_weight")
        >>> best["mean"].is_sorted(descending=True)
        True
        """
        if self.solutions is None:
            raise ConfigError("breeding_values: found a regression, needed a mixed model")
        for what, given in (("term", term), ("trait", trait)):
            if given is not None and not isinstance(given, str):
                raise ConfigError(f"{what}: found {reprlib.repr(given)}, needed the name of one {what}, or None")
        related = [name for name, kind in describe_relationships(self.info).items() if kind["related"]]
        terms = related if term is None else [term]
        rows = self.solutions.filter(pl.col("term").is_in(terms), pl.col("effect") != "group")
        if trait is not None:
            rows = rows.filter(trait=trait)
        if rows.is_empty():
            of = f" of '{trait}'" if trait is not None else ""
            traits_by_term = self.solutions.group_by("term", maintain_order=True).agg(pl.col("trait").unique())
            has = "; ".join(f"{name} ({', '.join(sorted(traits))})" for name, traits in traits_by_term.iter_rows())
            raise ConfigError(
                f"breeding_values: found none{of} in {', '.join(terms) or 'the model'}; there are the terms, with "
                f"their traits, {has}"
            )
        return rows.sort("mean", descending=True)

    def plot_trace(self, parameters: str | Sequence[str] | None = None) -> Picture:
        """Plot the draws in order, by chain.

        Parameters
        ----------
        parameters : str, sequence of str, or None, default None
            Names or patterns such as "h2[*]". None: all parameters.

        Returns
        -------
        matplotlib.figure.Figure
            The figure, which a notebook shows.

        Raises
        ------
        ConfigError
            The method draws nothing (BLUP, REML), or a name is unknown.
        """
        from mmgibbs.report.make import check_libraries

        check_libraries("plot_trace")
        from mmgibbs.report import pictures

        return pictures.trace(self._sampled("plot_trace"), parameters)

    def plot_posterior(self, parameters: str | Sequence[str] | None = None) -> Picture:
        """Plot posterior densities with means and 95 % intervals.

        Parameters
        ----------
        parameters : str, sequence of str, or None, default None
            Names or patterns such as "h2[*]". None: all parameters.

        Returns
        -------
        matplotlib.figure.Figure
            The figure, which a notebook shows.

        Raises
        ------
        ConfigError
            The method draws nothing (BLUP, REML), or a name is unknown.
        """
        from mmgibbs.report.make import check_libraries

        check_libraries("plot_posterior")
        from mmgibbs.report import pictures

        return pictures.posterior(self._sampled("plot_posterior"), self.summary, parameters)

    def plot_breeding_values(self, term: str | None = None, trait: str | None = None, top: int = 30) -> Picture:
        """Plot the highest breeding values with their intervals.

        Parameters
        ----------
        term : str or None, default None
            As of `breeding_values`.
        trait : str or None, default None
            As of `breeding_values`.
        top : int, default 30
            How many levels.

        Returns
        -------
        matplotlib.figure.Figure
            The figure, which a notebook shows.

        Raises
        ------
        ConfigError
            There is no such term or trait, or `top` is not a whole number of at least 1.
        """
        from mmgibbs.report.make import check_libraries

        check_libraries("plot_breeding_values")
        from mmgibbs.report import pictures

        if isinstance(top, bool) or not isinstance(top, Integral) or top < 1:
            raise ConfigError(f"top: found {top!r}, needed a whole number from 1")
        return pictures.breeding_values(self.breeding_values(term, trait), int(top))

    def _repr_html_(self) -> str:
        from mmgibbs.report.notebook import as_html

        return as_html(self.summary, self.info, self.directory)
