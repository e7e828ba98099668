"""What to write in place of what other programs have behind '~', with the keys of the analysis file that do it."""

from __future__ import annotations

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
_ADVICE = {name: advice for advice, names in _KINDS.items() for name in names}


def advise_effect(name: str, columns: Sequence[str], trait: str) -> str | None:
    """What to write in place of a call behind '~', with these columns in it; None of one that is not known.

    trait: the response of the formula.
    """
    if name == "s" and len(columns) > 1:
        name = "te"
    advice = _ADVICE.get(name)
    if advice is None:
        return None
    first, second = (*columns, "COLUMN", "COLUMN")[:2] if len(columns) != 1 else (columns[0], "COLUMN")
    return advice.format(first=first, second=second, columns=", ".join(columns) or "COLUMN, COLUMN", trait=trait)
