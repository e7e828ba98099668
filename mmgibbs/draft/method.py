"""How the drafted analysis is solved: by Gibbs sampling, unless the records are too few for that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

SAMPLING = "sampler: {chains: 4, burn_in: 1000, samples: 6000, thin: 5, seed: 42}"


class Method(NamedTuple):
    """gibbs, reml or blup, and what stands in `variances`: term -> value as YAML."""

    name: str = "gibbs"
    variances: Mapping[str, str] | None = None


GIBBS = Method()


def method_lines(method: Method, offers_reml: bool) -> list[str]:
    """The sections `variances` and `sampler`; offers_reml: as a comment beside Gibbs sampling."""
    if method.name == "reml":
        return ["# The records are too few for Gibbs sampling with flat priors.", "sampler: {method: reml}"]
    lines = []
    if method.name == "blup":
        lines += [
            "# The records are too few to estimate the variances. These are equal shares of the variance of the",
            "# records: write the variances that other studies have found in their place.",
        ]
    elif method.variances:
        lines.append("# The records are too few for flat priors.")
    if method.variances is not None:
        mode = ["  mode: fixed"] if method.name == "blup" else []
        lines += ["variances:", *mode, *(f"  {name}: {value}" for name, value in method.variances.items()), ""]
    if method.name == "blup":
        return [*lines, "sampler: {method: blup}  # breeding values at given variances"]
    lines.append(f"{SAMPLING}  # a longer run has smaller Monte Carlo errors")
    if offers_reml:
        lines.append("# sampler: {method: reml}  # estimates of the variances with standard errors, in seconds")
    return lines
