"""`mmgibbs init`: from tables to an analysis file that `mmgibbs check` accepts."""

from __future__ import annotations

import os
import re
import reprlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mmgibbs.build.assemble import assemble, default_starts
from mmgibbs.config import Analysis
from mmgibbs.config.fields import read_section
from mmgibbs.config.schema import FILE as SCHEMA
from mmgibbs.config.schema import MODELINE, check_schema_file, write_schema
from mmgibbs.config.tables import Data, Groups
from mmgibbs.data.prepare import prepare
from mmgibbs.data.prepared import Prepared
from mmgibbs.data.traits import load_analysis
from mmgibbs.draft.guess import READING, StatedData, guess
from mmgibbs.draft.method import GIBBS, Method
from mmgibbs.draft.texts import DraftText, TextOfFormula, TextOfGuess
from mmgibbs.draft.unknown_parents import UnknownParents
from mmgibbs.errors import ConfigError, DataError, MmgibbsError, ModelError, is_command, nearest, option_name
from mmgibbs.machine.files import replaced_file
from mmgibbs.machine.output_places import begins_with, check_output_file
from mmgibbs.pedigree.problems import Problems

DATA_KEYS = (*READING, "unknown_parent", "groups")


class Draft(NamedTuple):
    """An analysis file that was written by looking at tables.

    path: the file. said: what was seen and guessed, a line each. refused: why the tables cannot be analysed with the
    file as it is, None where they can.
    """

    path: Path
    said: list[str]
    refused: str | None

    def _repr_html_(self) -> str:
        from mmgibbs.report.notebook import lines_as_html

        lines = [*self.said, "", f"written to {self.path}"]
        if self.refused is not None:
            lines += ["it needs a change before it can run:", self.refused]
        return lines_as_html(lines)


def init(
    phenotypes: str | os.PathLike,
    pedigree: str | os.PathLike | None = None,
    genotypes: str | os.PathLike | None = None,
    *,
    traits: str | Sequence[str] = (),
    output: str | os.PathLike = "analysis.yaml",
    overwrite: bool = False,
    data: Mapping[str, Any] | None = None,
    formula: str | None = None,
    family: str | Mapping[str, str] | None = None,
    weights: str | None = None,
    check: bool = True,
) -> Draft:
    """Look at tables and write a first analysis file, with comments and alternatives.

    The arguments, with the keys of `data`, are the options of `mmgibbs init`. The file is checked against the tables
    before it takes its place, and its schema is written beside it.

    Parameters
    ----------
    phenotypes : str or path
        Table of records: csv, tsv, white-space separated, parquet or arrow.
    pedigree : str or path, optional
        Table of animals with their sires and dams.
    genotypes : str or path, optional
        File of genotypes, in any format of ``data.genotypes``.
    traits : str or sequence of str, optional
        Columns to analyse. By default they are guessed.
    output : str or path, default 'analysis.yaml'
        The file to write.
    overwrite : bool, default False
        Replace the file if it exists.
    data : mapping, optional
        Keys of the section `data` that are known: `widths` and `pedigree_widths` (of columns in characters, where they
        are fixed), `encoding` and `pedigree_encoding`, `unknown_parent` (by default empty, NA, 0 and codes such as "."
        or "-9" that are parents and have no row), `groups` (by default guessed): `{"groups": {"parents": ["UPG_*"]}}`.
    formula : str, optional
        The model in the grammar of lme4, such as "weight ~ sex + (1 | animal)", in place of a guess; see `Model`.
    family : str or mapping, optional
        With a formula, the type of its traits: normal (the default), binary, ordinal or count; or a mapping from traits
        to types.
    weights : str, optional
        With a formula, the column of the weights of the records.
    check : bool, default True
        Read and check everything that the file names. False, with a formula, looks at the columns of the records alone.

    Returns
    -------
    Draft
        Path of the file, what was guessed (`said`), and what must be changed before it can run (`refused`, None if
        nothing must).

    Raises
    ------
    ConfigError
        If the file exists (unless `overwrite`), if it is one of the tables, or if nothing could be a trait.
    DataError
        If a table cannot be read, or if rows of the pedigree contradict each other. The message has everything that
        must be changed.

    See Also
    --------
    check : Read and check an analysis file with its data.

    Examples
    --------
    >>> import mmgibbs
    >>> data = mmgibbs.simulate("data/first", animals=400)
    >>> made = mmgibbs.init(data.directory / "phenotypes.csv", pedigree=data.directory / "pedigree.csv")
    >>> str(made.path), made.refused
    ('analysis.yaml', None)
    """
    columns = (traits,) if isinstance(traits, str) else traits
    paths = {"phenotypes": phenotypes, "pedigree": pedigree, "genotypes": genotypes, "output": output}
    for name, given in paths.items():
        if not isinstance(given, (str, os.PathLike)) and (given is not None or name in ("phenotypes", "output")):
            raise ConfigError(f"init: {name}: found {reprlib.repr(given)}, needed the path of a file")
    if not isinstance(columns, Sequence) or not all(isinstance(name, str) for name in columns):
        raise ConfigError(f"init: traits: found {reprlib.repr(traits)}, needed a list of columns")
    path = Path(output)
    tables = [Path(table) for table in (phenotypes, pedigree, genotypes) if table is not None]
    _refuse(path, tables, overwrite)
    stated = _read_data(data or {}, pedigree)
    of_animals = None if pedigree is None else Path(pedigree)
    of_genotypes = None if genotypes is None else Path(genotypes)
    if formula is None:
        given_of_formula = [option_name(name) for name, value in (("family", family), ("weights", weights)) if value]
        given_of_formula += [] if check else [option_name("no_check") if is_command() else "check=False"]
        if given_of_formula:
            raise ConfigError(f"init: {given_of_formula[0]} belongs to {option_name('formula')}; expected both")
        guessed = guess(Path(phenotypes), of_animals, of_genotypes, tuple(columns), stated)
        problems = guessed.problems
        text: DraftText = TextOfGuess(guessed, path)
    else:
        problems = Problems()
        guessing: dict[str, Any] = {"traits": columns} | {name: getattr(stated, name) for name in READING}
        refused_option = next((name for name, value in guessing.items() if value), None)
        if refused_option is not None:
            raise ConfigError(f"init: {option_name(refused_option)} cannot be combined with {option_name('formula')}")
        text = TextOfFormula(
            formula, family or "normal", Path(phenotypes), of_animals, of_genotypes, path, weights,
            stated.unknown_parents,
        )  # fmt: skip
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replaced_file(path) as new:
            if check:
                refused, method = _write_accepted(text, new)
                if problems:  # the tables have to be corrected first
                    unused = text.explain_unused()
                    beside = ["in columns that the draft would not use:", *unused] if unused else []
                    raise DataError("\n".join([refused or problems.describe(), *beside]))
            else:
                refused, method = None, text.first_method
                new.write_text(text.write(method), encoding="utf-8")
            write_schema(path.parent)
    except OSError as error:
        raise ConfigError(f"init: cannot write '{path}': {error.strerror or error}") from None
    reason = method.describe()
    return Draft(path, [*text.explain(), *([f"warning: {reason}"] if reason else [])], refused)


def _read_data(given: Mapping[str, Any], pedigree: object) -> StatedData:
    """Read the keys of the section `data`. ConfigError for other keys, and for wrong values."""
    if not isinstance(given, Mapping):
        raise ConfigError(f"init: data: expected keys of the section data, got {reprlib.repr(given)}")
    for key in given:
        if key not in DATA_KEYS:
            raise ConfigError(f"init: data.{key}: no key of init; {nearest(key, DATA_KEYS)}")
    of_pedigree = next((key for key in ("unknown_parent", "groups") if key in given), None)
    if of_pedigree is not None and pedigree is None:
        message = f"init: data.{of_pedigree} belongs to {option_name('pedigree')}; expected both"
        raise ConfigError(_name_options(message))
    try:
        tables = {"phenotypes": "records", "pedigree": None if pedigree is None else "pedigree"}
        section = read_section(Data, {**tables, **given}, "init: data.")
    except ConfigError as error:
        raise ConfigError(_name_options(str(error))) from None
    codes = section.unknown_parent if "unknown_parent" in given else None
    groups = section.groups or Groups.model_construct()
    reading = {key: getattr(section, key) for key in READING}
    return StatedData(**reading, unknown_parents=UnknownParents(codes, groups.parents, groups.column))


def _name_options(message: str) -> str:
    """Name keys of the section `data` as options, on the command line."""
    if not is_command():
        return message
    return re.sub(r"\bdata\.(\w+)", lambda key: option_name(key[1].replace("unknown_parent", "unknown")), message)


def _refuse(path: Path, tables: Sequence[Path], overwrite: bool) -> None:
    """Refuse, before any work is done, to replace a file of the user by the analysis or its schema."""
    is_draft = lambda file: begins_with(file, (MODELINE.encode(),))
    what = "an analysis that mmgibbs wrote"
    check_output_file(path, what, is_draft, inputs=tables, overwrite=overwrite, place=f"init: {option_name('output')}")
    check_schema_file(path.with_name(SCHEMA), f"init: {option_name('output')}")


def _write_accepted(text: DraftText, new: Path) -> tuple[str | None, Method]:
    """Write the analysis to `new`, or the simpler one, as `mmgibbs check` accepts it; return what it would refuse, and
    the method.
    """
    refused, method = _write_any_method(text, new)
    if refused is None or text.simpler is None:
        return refused, method
    if (simpler := _write_accepted(text.simpler, new))[0] is None:
        return simpler
    new.write_text(text.write(method), encoding="utf-8")
    return refused, method


def _write_any_method(text: DraftText, new: Path) -> tuple[str | None, Method]:
    """Write the analysis to `new` with the first method that is accepted; return what is refused, and the method."""
    first = text.first_method
    new.write_text(text.write(first), encoding="utf-8")
    try:
        analysis = load_analysis(new)
        prepared = prepare(analysis)
        try:
            assemble(analysis, prepared)
        except (ModelError, DataError) as error:
            return _write_other_method(text, new, analysis, prepared, str(error))
    except MmgibbsError as error:
        return str(error).replace(f"{new}: ", ""), first
    return None, first


def _write_other_method(
    text: DraftText, new: Path, analysis: Analysis, prepared: Prepared, refused: str
) -> tuple[str | None, Method]:
    """Write the analysis with another method where flat priors leave no posterior.

    It is REML where that can estimate every variance, else BLUP; proper priors of traits that are not normal, and with
    effects of SNPs.
    """
    is_normal = all(trait.is_normal for trait in analysis.traits)
    proper, fixed = _proper_priors(analysis, prepared), GIBBS._replace(fixed="prior: {variance: 10}")
    of_liabilities = (proper, fixed, proper._replace(fixed=fixed.fixed))
    for method in (Method("reml"), _given_variances(prepared), proper) if is_normal else of_liabilities:
        method = method._replace(reason=" ".join(refused.replace(f"{new}: ", "").split()))
        new.write_text(text.write(method), encoding="utf-8")
        try:
            completed = load_analysis(new)
            assembled = assemble(completed, prepare(completed) if method.fixed else prepared)
        except MmgibbsError:
            continue
        if not (method.name == "reml" and assembled.undetermined):
            return None, method
    new.write_text(text.write(GIBBS), encoding="utf-8")
    return refused, GIBBS


def _given_variances(prepared: Prepared) -> Method:
    """BLUP with equal shares of the phenotypic variance."""
    terms, residual = default_starts(prepared.design, prepared.phenotypic_variance)
    named = {t.name: G for t, G in zip(prepared.design.terms, terms, strict=True) if G is not None}
    return Method("blup", {name: _rounded(G) for name, G in (*named.items(), ("residual", residual))})


def _rounded(G: np.ndarray) -> str:
    rows = [[float(f"{v:.4g}") for v in row] for row in G]
    return str(rows[0][0] if len(rows) == 1 else rows)


def _proper_priors(analysis: Analysis, prepared: Prepared) -> Method:
    random = [t.name for t in prepared.design.terms if t.kind == "random"]
    has_normal = not all(trait.has_unit_residual for trait in analysis.traits)
    return Method("gibbs", dict.fromkeys((*random, *(["residual"] if has_normal else [])), "{prior: {half_t: {}}}"))
