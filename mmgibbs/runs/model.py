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
    """A folder that is there as long as this object is, or the program runs."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="mmgibbs-"))
        weakref.finalize(self, shutil.rmtree, self.path, True)


class MixedModel(Keywords):
    """A mixed model: its effects, and how it is fitted. You pass the data to `fit`.

        model = mmgibbs.MixedModel(
            traits=["weaning_weight"], fixed=["herd", "sex"], random={"animal": "pedigree", "dam": "identity"},
            chains=4, samples=5000,
        ).fit(phenotypes, pedigree)
        model.result_.plot_posterior()

    traits: columns, or a mapping from traits to their keys ({"ease": {"type": "ordinal"}}).
    fixed: columns of class effects, or a mapping from effects to 'class', 'covariate' or their keys.
    random: columns of independent effects, or a mapping from effects to 'identity', 'pedigree' or their keys.
    markers, variances, decisions, data, output, sampler: the sections of the analysis file, as mappings.
    intercept: True or False; None: an intercept for each trait unless a fixed class effect takes its place.
    weights: column of the weights of the records.
    name: of the run, in its record and its report.
    seed: None draws a new one, kept as `seed_`; a run that is resumed or extended keeps its own.

    The other keywords are keys of the section `sampler`; None means the default of the analysis file.

    After `fit`: `result_` (mmgibbs.Result), `summary_`, `solutions_`, `seed_`.
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
        """The analysis for `mmgibbs.run`: the sections of the analysis file. Tables: paths or data frames."""
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

    def _seed(self, there: Path | None = None) -> int:
        """The seed of the section `sampler`, where one is there, before that of the keyword, which has a default. None
        means that of the run that is continued `there`, or a fresh one.
        """
        given = self.sampler if isinstance(self.sampler, Mapping) else {}
        seed = given.get("seed", self.seed)
        return read_seed(seed_of_run(there) if seed is None and there is not None else seed)

    def check(self, phenotypes: Any, pedigree: Any = None, *, genotypes: Any = None) -> dict:
        """Read and check everything and count what a fit would have; nothing is sampled."""
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
        """Fit the model. phenotypes, pedigree: paths, or data frames of Polars, pandas or any library that speaks the
        Arrow PyCapsule interface; genotypes: the section `data.genotypes`; directory: the run folder to keep; None: a
        temporary folder without checkpoints, which is deleted with the result. overwrite, resume, extend, report: as in
        `mmgibbs.run`, for a folder that is kept. progress: print what is being done, with a bar.

        ConfigError, DataError and ModelError say what cannot be used.
        """
        there = _folder(directory, self.output) if resume or extend else None
        seed = self._seed(there)
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
        return hasattr(self, "result_")

    @property
    def summary_(self) -> pl.DataFrame:
        return self._fitted().summary

    @property
    def solutions_(self) -> pl.DataFrame:
        solutions = self._fitted().solutions
        assert solutions is not None, "a mixed model has solutions"
        return solutions

    def _fitted(self) -> Result:
        if not hasattr(self, "result_"):
            raise not_fitted("MixedModel: not fitted yet, needed fit(phenotypes, pedigree) before this")
        return self.result_

    def _repr_html_(self) -> str:
        from html import escape

        shown = f'<pre style="white-space:pre-wrap">{escape(repr(self))}</pre>'
        return shown + self.result_._repr_html_() if hasattr(self, "result_") else shown


def _run_in_temporary_folder(analysis: dict, how: dict[str, Any]) -> Result:
    """The folder is deleted with the result, and so is kept for as long as it. Nothing could continue from it."""
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
    """The folder of a run that is to be continued, if one is named."""
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
    """{name: keys}; a word means {key: word}."""
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
