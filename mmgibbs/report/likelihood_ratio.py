"""Likelihood-ratio test of two nested models that were both fitted by REML.

    D = 2 (l_large - l_small)

Under the smaller model D is chi-square with as many degrees of freedom as covariances that it lacks. A variance that it
lacks is 0 there, on the boundary of what it can be (Self & Liang 1987): for one variance with its c covariances D is
half chi2_c, half chi2_(c+1) (Stram & Lee 1994); for m variances without covariances, whose estimates are taken as
independent, the mixture of chi2_0 .. chi2_m with binomial weights. Where neither holds the weights depend on the data;
chi2_(m+c) then gives an upper bound of the p value. Structures of covariance matrices fix parameters too, and where the
smaller one lacks common factors p is an upper bound as well. Parameters of which the data say
nothing (`undetermined_elements` in run.json) do not count.

Restricted likelihoods of models with other fixed effects, or of other data, are not comparable.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from typing import Any

from scipy.stats import chi2

from mmgibbs.report.finished import Finished
from mmgibbs.report.method_words import is_sampled_reml
from mmgibbs.report.nested import Nested, NotNested, Restriction, Unknown, count_undetermined, fixed_effects_key, nested

INSTEAD = "compare their AIC or BIC"


@dataclass(frozen=True)
class LikelihoodRatio:
    """small, large: 'a' or 'b'. p: upper tail probability; exact: whether p has the mixture's weights."""

    small: str
    large: str
    statistic: float
    variances: int  # that the smaller model lacks
    covariances: int
    p: float
    p_without_boundary: float  # chi2 with all elements, as if none lay on the boundary
    exact: bool
    lacking: tuple[str, ...]
    equal: int = 0  # elements that are equal to another one in the smaller model; among `covariances`
    restrictions: tuple[Restriction, ...] = ()  # their parameters are among `covariances`
    most: int | None = None  # degrees of freedom of an upper bound of p, where a structure lacks common factors
    undetermined: int = 0  # parameters that do not count: the data say nothing of them

    @property
    def degrees_of_freedom(self) -> str:
        """Degrees of freedom of the chi-squares that D is compared with."""
        m, c = self.variances, self.covariances
        if self.most is not None:
            return f"at most {self.most}"
        if not self.exact:
            return f"at most {m + c}"
        if m == 0:
            return str(c)
        return f"{c} and {c + 1}, half each" if m == 1 else f"0 to {m}, binomial weights"


def likelihood_ratio(a: Finished, b: Finished) -> LikelihoodRatio | str | None:
    """The test; why there is none, in words; None where not both runs are REML."""
    if a.record.get("method") != "reml" or b.record.get("method") != "reml":
        return None
    if is_sampled_reml(a.record) or is_sampled_reml(b.record):
        return "no test: REML by Monte Carlo (sampler.engine: pcg) does not compute the likelihood"
    reason = _not_comparable(a.record, b.record)
    if reason:
        return reason
    within = {"a": nested(a, b), "b": nested(b, a)}
    if all(isinstance(relation, Nested) for relation in within.values()):
        return "no test: both are the same model"
    small = next((name for name, relation in within.items() if isinstance(relation, Nested)), None)
    if small is None:
        unknown = [relation.why for relation in within.values() if isinstance(relation, Unknown)]
        if unknown:
            return f"no test: whether one model is nested in the other cannot be judged: {unknown[0]}; {INSTEAD}"
        why = "; ".join(relation.why for relation in within.values() if isinstance(relation, NotNested))
        return f"no test: neither model is nested in the other ({why}); {INSTEAD}"
    relation, large = within[small], "b" if small == "a" else "a"
    assert isinstance(relation, Nested), "chosen so"
    runs = {"a": a, "b": b}
    statistic = 2 * (runs[large].record["log_likelihood"] - runs[small].record["log_likelihood"])
    m, n = relation.variances, len(relation.lacking) + relation.equal + sum(r.parameters for r in relation.restrictions)
    undetermined = max(count_undetermined(runs[large]) - count_undetermined(runs[small]), 0)
    if n <= undetermined:
        return f"no test: the data determine as many parameters of one model as of the other; {INSTEAD}"
    m, n = min(m, n - undetermined), n - undetermined
    added = sum(r.most - r.parameters for r in relation.restrictions)
    lacks_factors = any(r.lacks_factors for r in relation.restrictions)
    most = n + added if lacks_factors else None
    p, exact = (
        _tail(max(statistic, 0.0), m, n - m) if most is None else (float(chi2.sf(max(statistic, 0.0), most)), False)
    )
    return LikelihoodRatio(
        small=small,
        large=large,
        statistic=statistic,
        variances=m,
        covariances=n - m,
        p=p,
        p_without_boundary=float(chi2.sf(max(statistic, 0.0), n)),
        exact=exact,
        lacking=relation.lacking,
        equal=relation.equal,
        restrictions=relation.restrictions,
        most=most,
        undetermined=undetermined,
    )


def _tail(statistic: float, variances: int, covariances: int) -> tuple[float, bool]:
    """(p, whether the weights of the mixture are known)."""
    if variances == 0:
        return float(chi2.sf(statistic, covariances)), True
    if variances == 1:
        return _mixture(statistic, {covariances: 0.5, covariances + 1: 0.5}), True
    if covariances == 0:
        return _mixture(statistic, {j: comb(variances, j) / 2**variances for j in range(variances + 1)}), True
    return float(chi2.sf(statistic, variances + covariances)), False


def _mixture(statistic: float, weights: dict[int, float]) -> float:
    """Sum of weight x P(chi2_df >= statistic); chi2_0 is 0."""
    of_zero = 1.0 if statistic <= 0 else 0.0
    return sum(w * (float(chi2.sf(statistic, df)) if df else of_zero) for df, w in weights.items())


def _not_comparable(a: dict[str, Any], b: dict[str, Any]) -> str:
    """Why restricted likelihoods of these runs cannot be compared; '' where they can."""
    for what, path in (("data", ("data",)), ("traits", ("traits",))):
        if _get_item(a["analysis"], path) != _get_item(b["analysis"], path):
            return f"no test: the {what} of the two runs differ, and restricted likelihoods cannot be compared then"
    fixed = [fixed_effects_key(run["analysis"]) for run in (a, b)]
    if fixed[0] != fixed[1]:
        return "no test: the fixed effects of the two runs differ, and restricted likelihoods cannot be compared then"
    if a["degrees_of_freedom"] != b["degrees_of_freedom"] or a["data"]["records"] != b["data"]["records"]:
        return "no test: the two runs used different records"
    return ""


def _get_item(tree: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        tree = tree.get(key)
    return tree


def describe_test(test: LikelihoodRatio, small: str, large: str) -> list[str]:
    """Describe the test, what the smaller model lacks, and the source of p; small, large: both models."""
    lines = [
        f"{small} within {large}: D = {test.statistic:.4f}, p = {p_in_words(test.p)}",
        f"the smaller model {_lacks(test)}",
    ]
    n = test.variances + test.covariances
    elements = _degrees(n)
    if test.undetermined:
        lines[1] += f" (the data do not determine {test.undetermined} of what it lacks, not counted below)"
    if test.most is not None:
        return [
            *lines,
            "common factors of variance 0, or specific variances of 0, are on the boundary: p, of "
            f"{_degrees(test.most)}, those of a full matrix, is an upper bound (chi-square with {elements}: p = "
            f"{p_in_words(test.p_without_boundary)})",
        ]
    if test.variances == 0:
        return [*lines, f"chi-square with {elements}"]
    if test.exact:
        return [
            *lines,
            "a variance of 0 is on the boundary of its range: p is that of the mixture of chi-squares (chi-square with "
            f"{elements}: p = {p_in_words(test.p_without_boundary)})",
        ]
    return [
        *lines,
        "variances of 0 lie on the boundary, and the weights of the mixture of chi-squares depend on the data: p, of "
        f"{elements}, is an upper bound",
    ]


def _lacks(test: LikelihoodRatio) -> str:
    parts = [f"lacks {', '.join(test.lacking)}"] if test.lacking else []
    if test.equal and test.lacking:
        parts.append(f"has {test.equal} more of them equal")
    elif test.equal:
        parts.append(f"has {test.equal} more {'elements' if test.equal > 1 else 'element'} equal to others")
    parts += [f"has {words}" for words in describe_restrictions(test)]
    return ", and ".join(parts)


def describe_restrictions(test: LikelihoodRatio) -> list[str]:
    """'line compound_symmetry instead of full (5 parameters fewer)', for each structure."""
    return [f"{r.words} ({r.parameters} parameter{'s' if r.parameters > 1 else ''} fewer)" for r in test.restrictions]


def p_in_words(value: float) -> str:
    """0.0317, or 1.1e-05"""
    return f"{value:.4f}" if value >= 0.0001 else f"{value:.1e}"


def _degrees(n: int) -> str:
    return f"{n} degree{'s' if n > 1 else ''} of freedom"
