"""A model for Python from a formula and its data: `mmgibbs.model("weight ~ sex + (1 | animal)", records, pedigree)`."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mmgibbs.draft.formula.columns import Columns, advise_backticks, read_columns
from mmgibbs.draft.formula.grammar import ParsedFormula, parse_formula, problem
from mmgibbs.draft.formula.related import choose_related
from mmgibbs.draft.formula.sections import build_sections
from mmgibbs.draft.formula.text import write_analysis
from mmgibbs.errors import ConfigError, nearest

if TYPE_CHECKING:
    from mmgibbs.runs.result import Result

GIVEN_BY_FORMULA = frozenset({"traits", "fixed", "random", "intercept", "weights", "name"})  # keywords of MixedModel


def translate_formula(
    formula: str,
    data: Any,
    pedigree: Any = None,
    genotypes: Any = None,
    family: str | Mapping[str, str] = "normal",
    weights: str | None = None,
    name: str = "model",
) -> tuple[dict[str, Any], list[str]]:
    """(analysis, notes) of a formula: the sections of the analysis file, and what was decided for the user."""
    parsed, columns = _parse(formula, data)
    try:
        table, of_genotypes, related = choose_related(parsed, pedigree, genotypes)
    except ConfigError:
        build_sections(parsed, columns, family, has_pedigree=True)  # a mistake in an effect is the better message
        raise
    sections = build_sections(parsed, columns, family, related, table is not None)
    tables = {"phenotypes": data, "pedigree": table, "genotypes": of_genotypes, "weights": weights}
    analysis: dict[str, Any] = {
        "name": name,
        "data": {key: value for key, value in tables.items() if value is not None} | sections.data,
        "traits": _short_traits(sections.traits),
        "model": sections.model,
    }
    return analysis, sections.notes


def _parse(formula: str, data: Any) -> tuple[ParsedFormula, Columns]:
    """The formula and the columns of the records; a name that lacks its backticks is the better message."""
    try:
        return parse_formula(formula), read_columns(data)
    except ConfigError:
        advice = advise_backticks(formula, read_columns(data).names) if isinstance(formula, str) else None
        if advice is not None:
            raise problem(formula, advice) from None
        raise


def _short_traits(traits: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]] | list[str]:
    """Names alone where no trait has a key."""
    return traits if any(traits.values()) else list(traits)


class Model:
    """A mixed model as a formula, in the grammar of lme4 and bambi, with its data.

    `print(model)` shows the analysis file of the same model; `mmgibbs.model` makes one.

    Parameters
    ----------
    formula : str
        `traits ~ effects`. Columns of numbers are covariates, others are classes; `factor(x)` makes a class.
        `cbind(a, b)` before `~` has several traits, `ill[yes]` a trait that is yes or no. `(1 | g)` has an effect for
        each level of g, `(1 + x | g)` a curve.
    data : path-like or data frame
        Table of records.
    pedigree : path-like, data frame or mapping, default None
        Table of the pedigree. It relates the levels of `(1 | animal)`; `{"line": table}` names another level.
    genotypes : path-like or mapping, default None
        File of genotypes, or keys of the section `data.genotypes`; alone a genomic relationship, with a pedigree single
        step. `{"line": file}` names the level.
    family : str or mapping, default "normal"
        Type of the traits: normal, binary, ordinal or count (also gaussian, bernoulli, cumulative, poisson), or a
        mapping from traits to types.
    weights : str or None, default None
        Column of the weights of the records.
    name : str, default "model"
        Name of the run in its record and its report.

    Attributes
    ----------
    analysis : dict
        The sections of the analysis file, for `mmgibbs.run`.
    notes : list of str
        What was decided where the formula does not say.

    Raises
    ------
    ConfigError
        The formula has a mistake, names a column that is not there, or has what a formula does not support; the
        message has what to write instead.

    Examples
    --------
    >>> import mmgibbs
    >>> model = mmgibbs.Model(
    ...     "fleece_weight ~ flock_year + poly(age, 2) + (1 | animal) + (1 | iid(animal))",
    ...     "data_samples/sheep/shearings.csv",
    ...     pedigree="data_samples/sheep/pedigree.csv",
    ... )
    >>> print(model)
    name: model
    data:
      phenotypes: data_samples/sheep/shearings.csv
      pedigree: data_samples/sheep/pedigree.csv
    traits: [fleece_weight]
    model:
      fixed:
        flock_year: {}
        age: {kind: covariate, degree: 2}
      random:
        animal: {level: animal, relationship: pedigree}
        permanent_environment: {level: animal}
    <BLANKLINE>
    """

    def __init__(
        self,
        formula: str,
        data: Any,
        pedigree: Any = None,
        genotypes: Any = None,
        *,
        family: str | Mapping[str, str] = "normal",
        weights: str | None = None,
        name: str = "model",
    ) -> None:
        self.formula = formula
        self.analysis, self.notes = translate_formula(formula, data, pedigree, genotypes, family, weights, name)

    def __str__(self) -> str:
        """Return the analysis file of the same model."""
        return write_analysis(self.analysis, self.notes)

    def __repr__(self) -> str:
        """Return the formula and the analysis."""
        return f"Model({self.formula!r})\n{self}"

    def _repr_html_(self) -> str:
        from html import escape

        from mmgibbs.report.notebook import text_as_html

        return f"<div><p><strong>{escape(self.formula)}</strong></p>{text_as_html(str(self))}</div>"

    def check(self) -> dict:
        """Read and check everything, and count what a fit would have; nothing is sampled.

        Returns
        -------
        dict
            As of `mmgibbs.check`.
        """
        return self._mixed_model({}).check(*self._tables(), genotypes=self.analysis["data"].get("genotypes"))

    def fit(
        self,
        *,
        directory: str | Path | None = None,
        overwrite: bool = False,
        progress: bool = True,
        report: bool = False,
        **keywords: Any,
    ) -> Result:
        """Fit the model.

        Parameters
        ----------
        directory : path-like or None, default None
            Run folder to keep. None: a temporary folder, which is deleted with the result.
        overwrite : bool, default False
            Replace an existing run.
        progress : bool, default True
            Print what is being done, with a progress bar.
        report : bool, default False
            Write report.html.
        **keywords : Any
            Keywords of `MixedModel` that the formula does not say: method, chains, burn_in, samples, thin, seed,
            threads, engine, device, variances, decisions, sampler, output.

        Returns
        -------
        Result
            Tables, draws and record of the run.

        Raises
        ------
        ConfigError, DataError, ModelError
            The model or the data cannot be used; the message says why.
        """
        model = self._mixed_model(keywords)
        phenotypes, pedigree = self._tables()
        genotypes = self.analysis["data"].get("genotypes")
        model.fit(
            phenotypes, pedigree, genotypes=genotypes,
            directory=directory, overwrite=overwrite, progress=progress, report=report,
        )  # fmt: skip
        return model.result_

    def _tables(self) -> tuple[Any, Any]:
        data = self.analysis["data"]
        return data["phenotypes"], data.get("pedigree")

    def _mixed_model(self, keywords: Mapping[str, Any]) -> Any:
        from mmgibbs.runs.model import MixedModel

        given_twice = sorted(GIVEN_BY_FORMULA & set(keywords))
        if given_twice:
            raise ConfigError(f"fit: {given_twice[0]} is given by the formula; leave it out here")
        known = [name for name in signature(MixedModel).parameters if name not in GIVEN_BY_FORMULA]
        for name in keywords:
            if name not in known:
                raise ConfigError(f"fit: there is no keyword '{name}'; {nearest(name, known, 'the keywords are')}")
        sections = self.analysis["model"]
        return MixedModel(
            traits=self.analysis["traits"],
            fixed=sections["fixed"],
            random=sections.get("random", {}),
            intercept=sections.get("intercept"),
            weights=self.analysis["data"].get("weights"),
            name=self.analysis["name"],
            **keywords,
        )


def model(
    formula: str,
    data: Any,
    pedigree: Any = None,
    genotypes: Any = None,
    *,
    family: str | Mapping[str, str] = "normal",
    weights: str | None = None,
    name: str = "model",
) -> Model:
    """Make a mixed model from a formula, in the grammar of lme4 and bambi, and its data.

    Parameters
    ----------
    formula : str
        `traits ~ effects`, as `Model` explains.
    data : path-like or data frame
        Table of records.
    pedigree : path-like, data frame or mapping, default None
        Table of the pedigree.
    genotypes : path-like or mapping, default None
        File of genotypes.
    family : str or mapping, default "normal"
        Type of the traits.
    weights : str or None, default None
        Column of the weights of the records.
    name : str, default "model"
        Name of the run.

    Returns
    -------
    Model
        The model, which `fit` fits.

    Raises
    ------
    ConfigError
        As of `Model`.

    Examples
    --------
    >>> import mmgibbs
    >>> records = "data_samples/sheep/shearings.csv"
    >>> mmgibbs.model("fleece_weight ~ flock_year + age", records).analysis["model"]
    {'fixed': {'flock_year': {}, 'age': {'kind': 'covariate'}}}
    """
    return Model(formula, data, pedigree, genotypes, family=family, weights=weights, name=name)
