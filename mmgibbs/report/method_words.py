"""Breeding values, their reliabilities and the method of a run, in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from mmgibbs.models.engine_kinds import ENGINES
from mmgibbs.report.html_tables import counted, known, listed, number
from mmgibbs.report.model_words import link_name
from mmgibbs.results.relationships import describe_relationships
from mmgibbs.results.tables import SHOWN_AS_NEGATIVE


def scale_words(traits: dict[str, dict]) -> str:
    """'on the scale of the trait (for pneumonia, that of its liability)'."""
    scales = {name: "logarithm" if link_name(spec) == "log" else link_name(spec) for name, spec in traits.items()}
    phrases = [f"for {name}, that of its {scale}" for name, scale in scales.items() if scale]
    return "on the scale of the trait" + (f" ({'; '.join(phrases)})" if phrases else "")


def solutions_scale_words(traits: Mapping[str, dict]) -> str:
    """Describe the scale of the solutions of these traits, where it is not that of their records; '' where it is."""
    scales = {name: link_name(spec) for name, spec in traits.items()}
    if not any(scales.values()):
        return ""
    said = f"They are {scale_words(dict(traits))}."
    logs = [name for name, scale in scales.items() if scale.startswith("log")]
    if logs:
        said += f" A difference of d on a log scale is a factor of exp(d) of {listed(logs)}."
    return said


def values_words(record: dict, reliable: bool = True, errors: bool = True, coefficients: str = "none") -> str:
    """Describe breeding values, their intervals and, where they have them, their reliabilities.

    coefficients: whether 'none', 'some' or 'all' of the values are those of curves, which are not on the scale of the
    trait but on that scale divided by what they multiply.
    """
    scale = scale_words(record.get("analysis", {}).get("traits", {}))
    if coefficients == "all":
        scale = f"of the coefficients of curves, {scale} per unit of what they multiply"
    elif coefficients == "some":
        scale += ", coefficients of curves per unit of what they multiply"
    method = record.get("method")
    variance = {"blup": "given variance", "reml": "estimated variance"}.get(
        str(method), "posterior mean of the variance"
    )
    reliability = f" Reliability is {reliability_words(record)}, with the {variance}." if reliable else ""
    if method not in ("blup", "reml"):
        return (
            f"Posterior means {scale}; intervals are the mean \u00b1 1.96 posterior standard deviations.{reliability}"
        )
    if not errors:
        return f"BLUP {scale}, without standard errors of prediction: a note above says why."
    return f"BLUP {scale}; intervals are the solution \u00b1 1.96 standard errors of prediction (SE).{reliability}"


FROM_GENOTYPES = ("G", "D", "H")  # symbols of relationships whose diagonal takes the place of 1 + F


def reliability_words(record: dict) -> str:
    """'1 \u2212 PEV / ((1 + F) variance)', or what stands for 1 + F in this run: a diagonal, or nothing."""
    symbols = [kind["symbol"] for kind in describe_relationships(record).values() if kind["related"]]
    genomic = list(dict.fromkeys(symbol for symbol in symbols if symbol in FROM_GENOTYPES))
    if genomic:
        pedigree = "; for terms of the pedigree alone, d is 1 + F" if set(symbols) - set(genomic) else ""
        return (
            f"1 \u2212 PEV / (d variance), where d is the animal\u2019s diagonal element of {listed(genomic)}{pedigree}"
        )
    return "1 \u2212 PEV / variance" if record.get("inbreeding") == "ignore" else "1 \u2212 PEV / ((1 + F) variance)"


def genomic_reliability_words(record: dict, polygenic: str = "") -> str:
    """Describe how the reliability of genomic values is computed, or of their sums with those of the term `polygenic`.

    See results/markers.py and build/totals.py.
    """
    of_genotypes = (
        "the sum of squares of the animal\u2019s genotypes, as the effects multiply them, times the mean variance of a "
        "SNP effect under the prior"
    )
    averages = "Variances are posterior means."
    if not polygenic:
        return f"Reliability is 1 \u2212 PEV / g, where g is {of_genotypes}. {averages}"
    symbol = describe_relationships(record).get(polygenic, {}).get("symbol", "A")
    predicted = any(
        section.get("single_step") == "epsilon"
        for section in (record["analysis"]["model"].get("markers") or {}).values()
    )
    if predicted:
        epsilon = (
            f"the variance of {polygenic} times the share of it that genotypes leave to the animal, none if genotyped"
        )
    elif symbol in FROM_GENOTYPES:
        epsilon = f"the animal\u2019s diagonal element of {symbol} times the variance of {polygenic}"
    elif record.get("inbreeding") == "ignore":
        epsilon = f"the variance of {polygenic}"
    else:
        epsilon = f"(1 + F) times the variance of {polygenic}"
    return (
        f"Reliability of the sums is 1 \u2212 PEV / (a + g), where a is {epsilon}, and g is {of_genotypes}. {averages}"
    )


def negative_reliability_words(reliabilities: Iterable[float | None], solved: bool, warned: bool) -> str:
    """Why reliabilities that are shown are negative; '' where none is. solved: by BLUP; warned: Warnings says why."""
    if not any(known(r) and r < SHOWN_AS_NEGATIVE for r in reliabilities):
        return ""
    if warned:
        return "Reliabilities below 0 are explained under Warnings."
    spread = "standard error" if solved else "posterior SD"
    return f"A reliability is below 0 where the {spread} of a value is above the SD that the model gives it."


def curve_words(coefficients: Sequence[str], called: str = "animal") -> str:
    """Says that these values are coefficients of curves; '' if there are none. called: what has a curve."""
    if not coefficients:
        return ""
    return (
        f"By random regression each {called} has a curve of breeding values. These are its coefficients, not breeding "
        f"values: {'; '.join(coefficients)}. The breeding value at a point is the sum of the coefficients times what "
        "they multiply there (Legendre polynomials or covariates)."
    )


def polygenic_words(values: Sequence[str]) -> str:
    """Says that these values are not all of a breeding value; '' if there are none."""
    if not values:
        return ""
    return (
        "SNPs have effects of their own, so that these values are only the polygenic part of a breeding value, which "
        f"the SNPs do not explain: {'; '.join(values)}. To select animals, use the sums of genomic and polygenic "
        "values, shown under SNP effects with their trend."
    )


SOLVERS = {"direct": "solves the mixed-model equations directly"}  # beside the engines of an analysis


def engine_words(record: dict) -> str:
    name = record.get("engine", "unknown")
    does = ENGINES[name].words if name in ENGINES else SOLVERS.get(name, "see the documentation")
    why = record.get("engine_chosen_because") or ""
    if why.startswith("auto"):  # counts and milliseconds, which say nothing of the results
        why = "chosen by auto; run.json says why"
    return f"{name}: {does}" + (f" ({why})" if why else "")


def interweaved_words(terms: Sequence[str]) -> str:
    """Describe the terms that interweave; the word alone says nothing to most readers."""
    return (
        f"{listed(terms)}: variances are drawn again given the standardised effects, for faster mixing"
        if terms
        else "none"
    )


def is_sampled_reml(record: dict) -> bool:
    """REML by Monte Carlo, which has no likelihood."""
    return record.get("method") == "reml" and record.get("likelihood") == "monte_carlo"


def reml_words(record: dict) -> str:
    """Describe the maximum that REML reached."""
    if is_sampled_reml(record):
        iterations = counted(record["iterations"], "iteration")
        return f"REML by Monte Carlo: {counted(record['samples'], 'sample')}, {iterations}"
    likelihood, aic, bic = number(record["log_likelihood"], 3), number(record["aic"], 1), number(record["bic"], 1)
    return f"REML: log likelihood {likelihood}, AIC {aic}, BIC {bic}, {counted(record['iterations'], 'iteration')}"
