"""What to write in place of what other programs have before and behind '~', with the keys that do it."""

from __future__ import annotations

import re
from collections.abc import Sequence

_SURFACE = (
    "a smooth surface of the rows and columns of a field needs the analysis file: random: {{surface: {{relationship: "
    "{{kind: spline, row: {first}, column: {second}}}}}}}"
)
_CURVE = (
    "a smooth curve needs the analysis file: fixed: {{{first}: {{kind: covariate}}}}, random: {{curve: {{relationship: "
    "{{kind: spline, of: {first}}}}}}}, or kind: random_walk; within: CLASS has a curve for each class. A polynomial "
    "is poly({first}, 3) in the formula"
)
_WALK = (
    "a random walk needs the analysis file: random: {{walk: {{relationship: {{kind: random_walk, of: {first}, order: "
    "ORDER}}}}}}, with order 1 or 2, and within: CLASS for a walk of each class"
)
_NEIGHBOURS = (
    "correlated times or plots need the analysis file: random: {{series: {{relationship: {{kind: ar1, time: TIME, "
    "within: LEVEL}}}}}}, or row: ROW, column: COLUMN of a field; of residuals, variances: {{residual: {{relationship: "
    "{{kind: ar1, ...}}}}}}"
)
_BY_CLASS = (
    "values of a level in each class, correlated or not, need the analysis file: traits: {{{trait}: {{by: {first}}}}} "
    "makes a trait of each class; their covariances are full, or variances: {{EFFECT: {{structure: diagonal}}}}, or "
    "factor_analytic"
)
_SEVERAL = (
    "an effect of several columns at once needs the analysis file: random: {{NAME: {{levels: [{columns}]}}}}, with "
    "weights: [COLUMN, ...] if they count differently"
)
_RELATED = (
    "expected (1 | animal), with the pedigree or genotypes given beside the formula. For a matrix of your own, the "
    "analysis file has the path of its inverse: random: {{NAME: {{relationship: inverse.txt}}}}"
)
_RANDOM = "expected (1 | {first}) for independent levels"
_KINDS = {
    _SURFACE: ("te", "ti", "t2", "tensor", "spl2D", "spl2Da", "spl2Db", "spl2Dc", "PSANOVA"),
    _CURVE: ("s", "bs", "ns", "cr", "spl", "pspline", "smooth", "gp", "lo", "loess"),
    _WALK: ("rw", "rw1", "rw2"),
    _NEIGHBOURS: ("ar", "ar1", "ar1v", "ar1h", "arma", "ou", "corAR1", "cosy"),
    _BY_CLASS: (
        "us", "un", "unst", "unstr", "idh", "diag", "dg", "corh", "corgh", "corg", "corv", "cor", "cs", "hcs", "fa",
        "xfa", "rr", "at", "dsum", "usm", "dsm", "atm", "csm", "usr", "dsr", "atr", "csr",
    ),
    _SEVERAL: ("mm", "overlay"),
    _RELATED: ("gr", "vm", "ped", "giv", "ginv", "vs", "vsm", "vsr", "ism", "ide"),
    _RANDOM: ("f", "re", "random"),
}  # fmt: skip
_EFFECT_ADVICE = {name: advice for advice, names in _KINDS.items() for name in names}


def advise_effect(name: str, columns: Sequence[str], trait: str) -> str | None:
    """Advise what to write in place of a call behind '~', with these columns in it; None for an unknown one.

    trait: the response of the formula.
    """
    if name == "s" and len(columns) > 1:
        name = "te"
    advice = _EFFECT_ADVICE.get(name)
    if advice is None:
        return None
    first, second = (*columns, "COLUMN", "COLUMN")[:2] if len(columns) != 1 else (columns[0], "COLUMN")
    return advice.format(first=first, second=second, columns=", ".join(columns) or "COLUMN, COLUMN", trait=trait)


_CENSORED = (
    "a trait that may be censored needs the analysis file: traits: {TIME: {type: censored, lower: COLUMN, upper: "
    "COLUMN}}, or with a column of the status, traits: {TIME: {type: censored, censored: STATUS, values: {right: [0], "
    "none: [1]}}}"
)
_WEIGHTS = (
    "weights are given beside the formula: weights='COLUMN', or in the analysis file data: {weights: COLUMN}. A record "
    "with the weight w has the residual variance divided by w"
)
_ERRORS = (
    "a column of 1/se**2 has the weights of records with known errors: give weights='COLUMN' beside the formula, and "
    "variances={'residual': {'start': 1, 'fixed': True}}"
)
_TRIALS = "several trials in a row are not supported; expected a row for each trial, and ill[yes] ~ ... or 0 and 1"
_EXPOSURE = "the exposure of a count stands behind '~': offset(log(COLUMN)), with family='poisson'"
_LATENT = "a function of the response is not supported; make a column of its values in the table"
_RESPONSE_ADVICE = {
    "weights": _WEIGHTS, "weighted": _WEIGHTS,
    "se": _ERRORS, "mi": "a record without a value of the trait is left out, or taken for the other traits alone",
    "trials": _TRIALS, "prop": _TRIALS, "proportion": _TRIALS, "p": _TRIALS,
    "cens": _CENSORED, "censored": _CENSORED, "Surv": _CENSORED, "trunc": _CENSORED, "truncated": _CENSORED,
    "rate": _EXPOSURE, "offset": _EXPOSURE,
    "log": _LATENT, "log10": _LATENT, "sqrt": _LATENT, "exp": _LATENT, "scale": _LATENT, "I": _LATENT,
    "thres": "the thresholds of an ordinal trait are as many as it has categories, less one; leave it out",
}  # fmt: skip
_CALL = re.compile(r"([A-Za-z_][\w.]*)\s*\(")


def advise_call(name: str) -> str | None:
    """Advise what to write in place of a call before '~'; None for an unknown one."""
    return _RESPONSE_ADVICE.get(name.removeprefix("np."))


def advise_bar(response: str) -> str | None:
    """Advise what to write in place of 'y | weights(w)', the response of a formula; None if it has no bar."""
    column, bar, behind = re.sub("`[^`]*`", "x", response).partition("|")
    if not bar:
        return None
    calls = (advise_call(name) for name in _CALL.findall(behind))
    advice = list(dict.fromkeys(filter(None, calls))) or ["expected one column, or cbind(a, b) for several traits"]
    return f"'|' before '~' is not supported behind {column.strip() or 'a column'}: {'; '.join(advice)}"
