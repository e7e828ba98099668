"""How the drafted analysis is solved: by Gibbs sampling, unless flat priors leave no posterior."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import NamedTuple

from mmgibbs.draft.yaml_text import yaml_text

COMMENT_COLUMNS = 108
SAMPLING = "sampler: {chains: 4, burn_in: 1000, samples: 6000, thin: 5, seed: 42}"


class Method(NamedTuple):
    """gibbs, reml or blup; `variances`: term -> value as YAML; reason: why flat priors are refused; fixed: keys of the
    fixed effects.
    """

    name: str = "gibbs"
    variances: Mapping[str, str] | None = None
    reason: str = ""
    fixed: str = ""

    def describe(self) -> str:
        """Return the choice and its reason, '' for Gibbs sampling with flat priors."""
        if not self.reason:
            return ""
        chosen = {"reml": "REML", "blup": "BLUP at assumed variances", "gibbs": "proper priors"}[self.name]
        return f"{chosen} in place of Gibbs sampling with flat priors: {self.reason}"


GIBBS = Method()


def method_lines(method: Method, offers_reml: bool) -> list[str]:
    """The sections `variances` and `sampler`; offers_reml: as a comment beside Gibbs sampling."""
    lines = [f"# {line}" for line in textwrap.wrap(method.describe(), COMMENT_COLUMNS)]
    if method.name == "reml":
        draws = [] if method.reason else [f"# {SAMPLING}  # draws from the posterior instead"]
        return [*lines, "sampler: {method: reml}  # estimates of the variances with standard errors", *draws]
    if method.name == "blup":
        lines += [
            "# These are equal shares of the variance of the records:",
            "# write the variances that other studies have found in their place.",
        ]
    if method.variances is not None:
        mode = ["  mode: fixed"] if method.name == "blup" else []
        pairs = [f"  {yaml_text(name)}: {value}" for name, value in method.variances.items()]
        lines += ["variances:", *mode, *pairs, ""]
    if method.name == "blup":
        return [*lines, "sampler: {method: blup}  # breeding values at given variances"]
    lines.append(f"{SAMPLING}  # a longer run has smaller Monte Carlo errors")
    if offers_reml:
        lines.append("# sampler: {method: reml}  # estimates of the variances with standard errors, in seconds")
    return lines
