"""What to write in place of what other programs have before '~' beside the name of a column."""

from __future__ import annotations

import re

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
_ADVICE = {
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
    """What to write in place of a call before '~'; None of one that is not known."""
    return _ADVICE.get(name.removeprefix("np."))


def advise_bar(response: str) -> str | None:
    """What to write in place of 'y | weights(w)', the response of a formula; None if it has no bar."""
    column, bar, behind = re.sub("`[^`]*`", "x", response).partition("|")
    if not bar:
        return None
    calls = (advise_call(name) for name in _CALL.findall(behind))
    advice = list(dict.fromkeys(filter(None, calls))) or ["expected one column, or cbind(a, b) for several traits"]
    return f"'|' before '~' is not supported behind {column.strip() or 'a column'}: {'; '.join(advice)}"
