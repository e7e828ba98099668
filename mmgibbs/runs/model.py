"""A mixed model for Python, built from keywords: `MixedModel(traits="y", random={"animal": "pedigree"}).fit(table)`."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from mmgibbs.errors import ConfigError, Stopped, option
from mmgibbs.regressions.arguments import read_seed
from mmgibbs.regressions.keywords import Keywords
from mmgibbs.regressions.scikit_learn import not_fitted
from mmgibbs.runs.place import seed_of_run
from mmgibbs.runs.run import check, run

if TYPE_CHECKING:
    import polars as pl

    from mmgibbs.runs.result import Result

Effects = str | Sequence[str] | Mapping[str, Any]
OF_SAMPLER = ("method", "chains", "burn_in", "samples", "thin", "seed", "threads", "engine", "device")


class TemporaryFolder:
    """A folder that exists as long as this object does, or until the program ends."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="mmgibbs-"))
        weakref.finalize(self, shutil.rmtree, self.path, True)


class MixedModel(Keywords):
    """A mixed model: its effects, and how it is fitted. The data are passed to `fit`.

    Parameters other than those of `data`, `model` and `variances` are keys of the section `sampler`; None means the
    default of the analysis file.

    Parameters
    ----------
    traits : str, sequence of str, or mapping
        Columns, or a mapping from traits to their keys: `{"ease": {"type": "ordinal"}}`.
    fixed : str, sequence of str, or mapping, default ()
        Columns of class effects, or a mapping from effects to "class", "covariate" or their keys.
    random : str, sequence of str, or mapping, default ()
        Columns of independent effects, or a mapping from effects to "identity", "pedigree" or their keys.
    markers : mapping or None, default None
        Section `model.markers`.
    intercept : bool, str or None, default None
        Whether each trait has an intercept. None: unless a fixed class effect takes its place.
    variances : mapping or None, default None
        Section `variances`.
    decisions : mapping or None, default None
        Section `decisions`.
    weights : str or None, default None
        Column of the weights of the records.
    name : str, default "model"
        Name of the run in its record and its report.
    method : {"gibbs", "reml", "blup"} or None, default None
        How variances and effects are estimated.
    chains : int or None, default None
        Number of chains.
    burn_in : int or None, default None
        Sweeps of each chain that are dropped at its start.
    samples : int or None, default None
        Sweeps of each chain after the burn-in.
    thin : int or None, default None
        Keep one sweep in `thin`.
    seed : int or None, default 1
        Seed of the random numbers. None draws a new one, kept as `seed_`; a run that is resumed or extended keeps its
        own.
    threads : int or None, default None
        Threads of the run.
    engine : str or None, default None
        Engine that draws the location effects.
    device : {"auto", "cpu", "gpu"} or None, default None
        Device of the engine.
    data : mapping or None, default None
        Other keys of the section `data`.
    sampler : mapping or None, default None
        Other keys of the section `sampler`.
    output : mapping or None, default None
        Section `output`.

    Attributes
    ----------
    result_ : Result
        Tables, draws and record of the run.
    summary_ : polars.DataFrame
        A row for each parameter.
    solutions_ : polars.DataFrame
        A row for each level of each effect.
    seed_ : int
        The seed that was used.

    Examples
    --------
    >>> import mmgibbs
    >>> model = mmgibbs.MixedModel(
    ...     traits="yearling_weight", fixed=["contemporary_group", "sex"], random={"animal": "pedigree"},
    ...     chains=2, burn_in=20, samples=50,
    ... )
    >>> model = model.fit("data_samples/beef/phenotypes.csv", "data_samples/beef/pedigree.csv", progress=False)
    >>> model.solutions_.filter(term="animal").height
    3500
    """

    OF_FIT = ("result_", "summary_", "solutions_", "seed_")
    traits: Effects
    fixed: Effects
    random: Effects
    markers: Mapping[str, Any] | None
    intercept: bool | str | None
    variances: Mapping[str, Any] | None
    decisions: Mapping[str, Any] | None
    weights: str | None
    name: str
    seed: int | None
    data: Mapping[str, Any] | None
    sampler: Mapping[str, Any] | None
    output: Mapping[str, Any] | None

    # Many parameters: options that users give by name, as in scikit-learn.
    def __init__(
        self,
        *,
        traits: Effects = (),
        fixed: Effects = (),
        random: Effects = (),
        markers: Mapping[str, Any] | None = None,
        intercept: bool | str | None = None,
        variances: Mapping[str, Any] | None = None,
        decisions: Mapping[str, Any] | None = None,
        weights: str | None = None,
        name: str = "model",
        method: str | None = None,
        chains: int | None = None,
        burn_in: int | None = None,
        samples: int | None = None,
        thin: int | None = None,
        seed: int | None = 1,
        threads: int | None = None,
        engine: str | None = None,
        device: str | None = None,
        data: Mapping[str, Any] | None = None,
        sampler: Mapping[str, Any] | None = None,
        output: Mapping[str, Any] | None = None,
    ) -> None:
        self._take(locals())

    def analysis(self, phenotypes: Any, pedigree: Any = None, genotypes: Any = None) -> dict:
        """Build the analysis for `mmgibbs.run`, as a dict of the sections of the analysis file.

        Parameters
        ----------
        phenotypes : path-like or data frame
            Table of records.
        pedigree : path-like or data frame, default None
            Table of the pedigree.
        genotypes : path-like or mapping, default None
            Section `data.genotypes`.

        Returns
        -------
        dict
            The sections of the analysis file.
        """
        return self._analysis(phenotypes, pedigree, genotypes, self._seed())

    def _analysis(self, phenotypes: Any, pedigree: Any, genotypes: Any, seed: int) -> dict:
        model: dict[str, Any] = {
            "fixed": _effects(self.fixed, "fixed", "kind"),
            "random": _effects(self.random, "random", "relationship"),
        }
        given = {"markers": self.markers, "intercept": self.intercept}
        model |= {key: value for key, value in given.items() if value is not None}
        of_sampler = {key: getattr(self, key) for key in OF_SAMPLER if getattr(self, key) is not None}
        tables = {"phenotypes": phenotypes, "pedigree": pedigree, "genotypes": genotypes, "weights": self.weights}
        sections = {
            "name": self.name,
            "data": _merged("data", {k: v for k, v in tables.items() if v is not None}, self.data),
            "traits": dict(self.traits) if isinstance(self.traits, Mapping) else _names(self.traits, "traits"),
            "model": model,
            "variances": self.variances,
            "sampler": _merged("sampler", of_sampler, self.sampler) | {"seed": seed},
            "output": None if self.output is None else _merged("output", {}, self.output),
            "decisions": self.decisions,
        }
        return {key: value for key, value in sections.items() if value is not None}

    def _seed(self, folder: Path | None = None) -> int:
        """Choose the seed: that of the section `sampler`, else that of the keyword, which has a default.

        None means that of the run that is continued `there`, or a fresh one.
        """
        given = self.sampler if isinstance(self.sampler, Mapping) else {}
        seed = given.get("seed", self.seed)
        return read_seed(seed_of_run(folder) if seed is None and folder is not None else seed)

    def check(self, phenotypes: Any, pedigree: Any = None, *, genotypes: Any = None) -> dict:
        """Read and check everything, and count what a fit would have; nothing is sampled.

        Parameters
        ----------
        phenotypes : path-like or data frame
            Table of records.
        pedigree : path-like or data frame, default None
            Table of the pedigree.
        genotypes : path-like or mapping, default None
            Section `data.genotypes`.

        Returns
        -------
        dict
            As of `mmgibbs.check`.
        """
        return check(self.analysis(phenotypes, pedigree, genotypes))

    def fit(
        self,
        phenotypes: Any,
        pedigree: Any = None,
        *,
        genotypes: Any = None,
        directory: str | Path | None = None,
        overwrite: bool = False,
        resume: bool = False,
        extend: int = 0,
        progress: bool = True,
        report: bool = False,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        phenotypes : path-like or data frame
            Table of records; a frame of Polars, pandas or any library with the Arrow PyCapsule interface.
        pedigree : path-like or data frame, default None
            Table of the pedigree.
        genotypes : path-like or mapping, default None
            Section `data.genotypes`.
        directory : path-like or None, default None
            Run folder to keep. None: a temporary folder without checkpoints, which is deleted with the result.
        overwrite : bool, default False
            Replace an existing run.
        resume : bool, default False
            Continue from the checkpoints of a run that ended early, with the same draws as an uninterrupted run.
        extend : int, default 0
            Sweeps to add to a finished run.
        progress : bool, default True
            Print what is being done, with a progress bar.
        report : bool, default False
            Write report.html at each checkpoint while the chains run, and when the run has ended.

        Returns
        -------
        self
            The fitted model.

        Raises
        ------
        ConfigError, DataError, ModelError
            The model or the data cannot be used; the message says why.
        """
        folder = _folder(directory, self.output) if resume or extend else None
        seed = self._seed(folder)
        analysis = self._analysis(phenotypes, pedigree, genotypes, seed)
        how: dict[str, Any] = {"overwrite": overwrite, "resume": resume, "extend": extend}
        how |= {"progress": progress, "report": report}
        if directory is None and "directory" not in (self.output or {}):
            result = _run_in_temporary_folder(analysis, how)
        else:
            result = run(analysis, directory=directory, **how)
        self.result_, self.seed_ = result, seed
        return self

    def __sklearn_is_fitted__(self) -> bool:
        """Tell scikit-learn whether `fit` has run."""
        return hasattr(self, "result_")

    @property
    def summary_(self) -> pl.DataFrame:
        """Summary of the parameters, a polars.DataFrame."""
        return self._fitted().summary

    @property
    def solutions_(self) -> pl.DataFrame:
        """Solutions of all effects, a polars.DataFrame."""
        solutions = self._fitted().solutions
        assert solutions is not None, "a mixed model has solutions"
        return solutions

    def _fitted(self) -> Result:
        if not hasattr(self, "result_"):
            raise not_fitted("MixedModel: not fitted yet, needed fit(phenotypes, pedigree) before this")
        return self.result_

    def _repr_html_(self) -> str:
        from mmgibbs.report.notebook import text_as_html

        shown = text_as_html(repr(self))
        return shown + self.result_._repr_html_() if hasattr(self, "result_") else shown


def _run_in_temporary_folder(analysis: dict, how: dict[str, Any]) -> Result:
    """Run into a folder that is deleted with the result.

    The result keeps the folder as long as it exists. Nothing could continue from it.
    """
    folder = TemporaryFolder()
    for name in ("resume", "extend"):
        if how[name]:
            raise ConfigError(f"fit: found {option(name, how[name])} without directory, needed the folder of the run")
    try:
        result = run(analysis, ["sampler.checkpoint_every=never"], directory=folder.path / "run", **how)
    except Stopped as stopped:
        raise Stopped(stopped.signal, f"{stopped}\nwith directory=FOLDER a fit keeps its state") from None
    return replace(result, folder=folder)


def _folder(directory: str | Path | None, output: Mapping[str, Any] | None) -> Path | None:
    """Return the folder of a run that is to be continued, if one is named."""
    named = directory if directory is not None or not isinstance(output, Mapping) else output.get("directory")
    return Path(named) if isinstance(named, (str, Path)) else None


def _names(given: object, what: str) -> list[str]:
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise ConfigError(f"{what}: found {given!r}, needed names of columns, or a mapping from names to keys")
    twice = [name for name in names if list(names).count(name) > 1]
    if twice:
        raise ConfigError(f"{what}: found '{twice[0]}' twice, needed different names")
    return list(names)


def _effects(given: object, what: str, key: str) -> dict[str, Any]:
    """Complete effects to {name: keys}; a word means {key: word}."""
    if not isinstance(given, Mapping):
        return {name: {} for name in _names(given, what)}
    return {name: {key: value} if isinstance(value, str) else value for name, value in given.items()}


def _merged(section: str, keywords: Mapping[str, Any], given: Mapping[str, Any] | None) -> dict[str, Any]:
    if given is None:
        return dict(keywords)
    if not isinstance(given, Mapping):
        raise ConfigError(f"{section}: found {given!r}, needed a mapping as in the analysis file")
    both = sorted(given.keys() & keywords.keys() - {"seed"})
    if both:
        raise ConfigError(f"{section}.{both[0]}: cannot be combined with the keyword '{both[0]}'; needed one of them")
    return dict(keywords) | dict(given)
