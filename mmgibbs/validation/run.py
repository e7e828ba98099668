"""`mmgibbs validate`: one analysis, or several of the same records."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mmgibbs.errors import ConfigError, option_name
from mmgibbs.validation.compare import Comparison
from mmgibbs.validation.found import Validation
from mmgibbs.validation.make import validate as validate_one
from mmgibbs.validation.plan import Plan
from mmgibbs.validation.several import validate_several


def validate(
    config: str | os.PathLike | dict | Sequence[str | os.PathLike | dict],
    overrides: Sequence[str] = (),
    *,
    method: str = "both",
    folds: int | None = None,
    by: str | None = None,
    column: str | None = None,
    time: str | None = None,
    cutoff: float | None = None,
    focal: str | os.PathLike | None = None,
    variances: str | os.PathLike | Sequence[str | os.PathLike | None] | None = None,
    seed: int = 1,
    replicates: int | None = None,
    cluster: str | None = None,
    output: str | os.PathLike | None = None,
    overwrite: bool = False,
    progress: bool = True,
    report: bool = True,
) -> Validation | Comparison:
    """Validate an evaluation: how well does it predict records that it has not seen?

    The arguments are the options of `mmgibbs validate`.

    Parameters
    ----------
    config : str, path or dict, or a list of these
        The analysis, as of `mmgibbs.run`. Several analyses of the same records are validated in the same way and
        compared.
    overrides : sequence of str, optional
        Strings 'key.path=value' that replace what the analysis says.
    method : {'both', 'kfold', 'lr'}, default 'both'
        'kfold' is cross-validation, 'lr' compares breeding values from partial and from whole data.
    folds : int, optional
        kfold: number of folds, 2 or more (default 5).
    by : {'random', 'family', 'time', 'column'}, optional
        kfold: what is in a fold: animals at random (default), half-sib families by sire, the animals born in one of
        the last years, or the records with one value of `column`.
    column : str, optional
        With ``by='column'``: the column of the records whose values are the folds.
    time : str, optional
        With ``by='time'``: a column of numbers in the records, in place of the birth year of the animal.
    cutoff : float, optional
        lr: leave out the records of animals born in this year or later (default: the last birth year of an animal
        with records).
    focal : str or path, optional
        lr: file with one id per line; these animals are compared and their records are left out.
    variances : str, path, or list of these, optional
        Folder of a finished run, whose posterior means replace the starts of the analysis, or 'sample' to sample the
        variances in every chain. A list has one for each analysis.
    seed : int, default 1
        Seed of folds, simulation and bootstrap; chains use `sampler.seed`.
    replicates : int, optional
        lr by BLUP: number of sets of records simulated for expected values and standard errors (default 100; 0:
        bootstrap of half-sib families).
    cluster : str, optional
        Address of a Dask scheduler, 'tcp://HOST:PORT', or 'local:N' for N workers of this machine.
    output : str or path, optional
        Folder to write (default: that of the run with -validation added; of several analyses the folder validations
        beside it).
    overwrite : bool, default False
        Replace an existing validation.
    progress : bool, default True
        Print what is being done.
    report : bool, default True
        Write validation.html.

    Returns
    -------
    Validation or Comparison
        `table` has the statistics with their standard errors and expected values, `predictions` every prediction
        beside what was observed, as Polars frames; `info` is the contents of validation.json, `directory` the folder.
        A Comparison, of several analyses, has a `table` with their differences, and their `validations`.

    Raises
    ------
    MmgibbsError
        If options do not fit each other or the data: a fold without records, a variance without a start.

    See Also
    --------
    run : Run the analysis.

    Examples
    --------
    >>> import mmgibbs
    >>> data = mmgibbs.simulate("data/young", animals=400)
    >>> analysis = {
    ...     "name": "weaning",
    ...     "data": {"phenotypes": data.phenotypes, "pedigree": data.pedigree},
    ...     "traits": ["weaning_weight"],
    ...     "model": {"fixed": {"sex": {}}, "random": {"animal": {"relationship": "pedigree"}}},
    ...     "variances": {"animal": 170, "residual": 300},
    ... }
    >>> validated = mmgibbs.validate(analysis, method="kfold", folds=2, progress=False, output="validation")
    >>> validated.table["statistic"].to_list()
    ['predictive_ability', 'accuracy', 'dispersion', 'bias']
    """
    of_ids: Any = focal  # a path is made text with the other options
    options = Plan(method, folds, by, time, cutoff, of_ids, None, seed, replicates, column)
    written: dict[str, Any] = {"output": output, "overwrite": overwrite, "progress": progress}
    written |= {"report": report, "cluster": cluster}
    if isinstance(config, (str, os.PathLike, dict)) or not isinstance(config, Sequence) or len(config) == 1:
        one: Any = config[0] if isinstance(config, Sequence) and not isinstance(config, str) else config
        return validate_one(one, replace(options, variances=_single(variances)), overrides, **written)
    return validate_several(config, options, overrides, variances=() if variances is None else variances, **written)


def _single(variances: Any) -> Any:
    """The variances of a single analysis, which may be the only item of a list."""
    if not isinstance(variances, Sequence) or isinstance(variances, str):
        return variances
    if len(variances) > 1:
        raise ConfigError(f"validate: {option_name('variances')}: found {len(variances)} for 1 analysis; needed one")
    return variances[0] if variances else None
