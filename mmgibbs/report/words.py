"""The model and the figures in words, for everyone and for those who do not see the plots."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from mmgibbs.data.natural_order import natural
from mmgibbs.report.findings import MIXING, ORDER, RHAT
from mmgibbs.report.html_tables import Column, Table, counted, counts, decimals, figure, interval, known, listed, number
from mmgibbs.results.relationships import describe_relationships
from mmgibbs.results.reliability import SHOWN_AS_NEGATIVE

ENGINES = {  # what each does, for readers who want breeding values; docs/explanation/engines.md says how
    "serial": "draws the levels of all effects one after another",
    "structured": "draws many levels at the same time",
    "hybrid": "draws several blocks of the effects at the same time",
    "marginal": "draws the variances first, without the effects, then all effects together",
    "direct": "solves the mixed-model equations directly",
    "pcg": "finds all effects together, by iterations that solve the mixed-model equations",
}


OF_CATEGORIES = ("binary", "ordinal")  # types whose liability has a residual variance of 1


def component_label(effect: str, trait: str, term: str = "", several: bool = False) -> str:
    """'genetic direct, weaning_weight'; the term alone where the effect has no name."""
    label = " ".join(piece for piece in (term if several or not effect else "", effect) if piece)
    return f"{label}, {trait}" if label else trait


# ------------------------------------------------------------------------------------------------ the model


def model_equations(analysis: dict, intercept_traits: Sequence[str] = ()) -> list[tuple[str, list[str]]]:
    """(trait, or what lies behind its records; what it is the sum of) for each trait."""
    model = analysis.get("model", {})
    out = []
    for trait, of in analysis.get("traits", {}).items():
        parts = ["intercept"] if trait in intercept_traits else []
        parts += [name for name, fixed in (model.get("fixed") or {}).items() if trait in fixed.get("traits", [trait])]
        for name, random in (model.get("random") or {}).items():
            for effect, spec in _effects(random).items():
                if trait in (spec.get("traits") or [trait]):
                    curve = " curve" if spec.get("legendre") or spec.get("covariates") else ""
                    level = spec.get("level") or name
                    of_level = f" ({level})" if effect or level != name else ""
                    parts.append(f"{name}{'.' + effect if effect else ''}{curve}{of_level}")
        for name, markers in (model.get("markers") or {}).items():
            if trait in (markers.get("traits") or [trait]):
                parts.append(f"{name} (SNP effects, {markers.get('level')})")
        scale, exposure = link_name(of), of.get("exposure")
        per = f" per unit of {exposure}" if exposure else ""
        out.append((f"{scale} of {trait}{per}" if scale else trait, [*parts, "residual"]))
    return out


def link_name(trait: dict) -> str:
    """What follows the linear model where the records themselves do not: 'liability', 'log rate', 'log' or ''."""
    if trait.get("type") == "censored":
        return "log" if trait.get("log") else ""
    return {"binary": "liability", "ordinal": "liability", "count": "log rate"}.get(trait.get("type", ""), "")


def underlying_words(traits: Mapping[str, dict]) -> str:
    """'the liability or log rate behind it, or its logarithm': of which records the sum is not; '' if of all it is."""
    scales = dict.fromkeys(link_name(trait) for trait in traits.values())
    hidden = " or ".join(scale for scale in scales if scale in ("liability", "log rate"))
    return ", or ".join(
        [*([f"the {hidden} behind it"] if hidden else []), *(["its logarithm"] if "log" in scales else [])]
    )


def scale_words(traits: dict[str, dict]) -> str:
    """'on the scale of the trait (for pneumonia, that of its liability)'."""
    scales = {name: "logarithm" if link_name(spec) == "log" else link_name(spec) for name, spec in traits.items()}
    phrases = [f"for {name}, that of its {scale}" for name, scale in scales.items() if scale]
    return "on the scale of the trait" + (f" ({'; '.join(phrases)})" if phrases else "")


def solutions_scale_words(traits: Mapping[str, dict]) -> str:
    """On which scale solutions of these traits are, where it is not that of their records; '' where it is of all."""
    scales = {name: link_name(spec) for name, spec in traits.items()}
    if not any(scales.values()):
        return ""
    said = f"They are {scale_words(dict(traits))}."
    logs = [name for name, scale in scales.items() if scale.startswith("log")]
    if logs:
        said += f" A difference of d on a log scale is a factor of exp(d) of {listed(logs)}."
    return said


def values_words(record: dict, reliable: bool = True, errors: bool = True, coefficients: str = "none") -> str:
    """What breeding values, their intervals and, where they have them, their reliabilities are.

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


SYMBOLS = {  # what the covariance matrix of the levels of a random effect is
    "A": "has the relationships of the pedigree",
    "G": "without a name below it has the relationships by genotypes",
    "D": "has the dominance relationships by genotypes",
    "H": "has the relationships of the pedigree and, between genotyped animals, those by genotypes",
    "C": "has the covariances of plots, times or points of a curve, up to the variance",
    "K": "is the user\u2019s relationship matrix",
}
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
    """How the reliability of genomic values is computed, or of their sums with those of the random term `polygenic`.

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


def _effects(random: dict) -> dict[str, dict]:
    return random.get("effects") or {"": random}


def residuals_words(record: dict) -> str:
    """Between which records R differs; '' if it is one matrix for all."""
    analysis, data = record["analysis"], record.get("data", {})
    used = data.get("records", {}).get("used")
    by = (analysis.get("variances", {}).get("residual") or {}).get("by")
    sentences = {
        "observed traits": any(n != used for n in data.get("observations", {}).values()),
        "weight": analysis.get("data", {}).get("weights") is not None,
        f"residual class ({by})": by is not None,
    }
    what = [words for words, is_so in sentences.items() if is_so]
    return f"between records with different {listed(what, 'or')}" if what else ""


def model_table(
    record: dict, intercept_traits: Sequence[str] = (), coefficients: Mapping[str, int] | None = None
) -> Table:
    """Every term of the model: what it is, on which traits it acts, how its variance is treated.

    coefficients: of each covariate, on one trait (their number depends on whether there is a constant already).
    """
    analysis, levels = record["analysis"], record.get("levels", {})
    traits, variances = list(analysis.get("traits", {})), analysis.get("variances", {})
    estimated, solved = record.get("method") == "reml", record.get("method") in ("blup", "reml")

    def describe_traits(spec: dict) -> str:
        chosen = spec.get("traits") or traits
        return "all traits" if len(traits) > 1 and list(chosen) == traits else ", ".join(chosen)

    rows, coefficients = [], coefficients or {}
    if intercept_traits:
        every = describe_traits({"traits": list(intercept_traits)})
        rows.append(("intercept", "fixed", every, levels.get("intercept"), "none" if solved else "flat prior"))
    for name, fixed in (analysis["model"].get("fixed") or {}).items():
        rows.append(
            (
                name,
                f"fixed {_fixed_kind(name, fixed)}",
                describe_traits(fixed),
                coefficients.get(name, levels.get(name)),
                "none" if solved else fixed_prior_words(fixed.get("prior", "flat"), fixed.get("traits") or traits),
            )
        )
    relationships = describe_relationships(record)
    for name, random in (analysis["model"].get("random") or {}).items():
        related = related_words(relationships[name]["sentence"], str(random.get("relationship", "")))
        related += _groups_words(record) if relationships[name]["of_pedigree"] else ""
        for effect, spec in _effects(random).items():
            curve = ""
            if spec.get("legendre"):
                legendre = spec["legendre"]
                curve = f", Legendre polynomials of {legendre.get('column')} up to degree {legendre.get('degree')}"
            elif spec.get("covariates"):
                curve = f", regression on {', '.join(spec['covariates'])}"
            level = spec.get("level") or name
            title = f"{name}.{effect}" if effect else name
            rows.append(
                (
                    title,
                    f"random effect of {_level_words(spec, level)}{curve}; {related}",
                    describe_traits(spec),
                    levels.get(name),
                    _treated(variances, name, estimated),
                )
            )
    snps = record.get("data", {}).get("genotypes", {}).get("kept", {}).get("SNPs")
    for name, markers in (analysis["model"].get("markers") or {}).items():
        fixed = (
            "fixed at its given value" if (markers.get("variance") or {}).get("fixed") else "sampled with the effects"
        )
        rows.append((name, f"effects of SNPs, prior {markers.get('prior')}", describe_traits(markers), snps, fixed))
    weights = analysis.get("data", {}).get("weights")
    rows.append(
        (
            "residual",
            f"random; weighted by {weights}" if weights else f"random{_correlations_clause(variances)}",
            describe_traits({}),
            record.get("data", {}).get("records", {}).get("used"),
            _residual_treated(analysis, estimated) + _classes_clause(record),
        )
    )
    size = "Levels or coefficients" if coefficients else "Levels"
    columns = [
        Column("Term"),
        Column("What it is", "wide"),
        Column("Acts on"),
        Column(size, "number"),
        Column("Variance", "wide"),
    ]
    sizes = counts([row[3] for row in rows])
    return Table("Terms of the model", columns, [(*row[:3], n, row[4]) for row, n in zip(rows, sizes, strict=True)])


def _level_words(effect: dict, level: str) -> str:
    columns = effect.get("interaction")
    return f"the interaction of {' and '.join(columns)}" if columns else level


def related_words(sentence: str, written: str) -> str:
    """The sentence with the name of a relationship file in place of its path, which says where on a machine it lay."""
    if not written or not sentence.endswith(written):
        return sentence
    return sentence.removesuffix(written) + re.split(r"[/\\]", written)[-1]


def _groups_words(record: dict) -> str:
    """', with 2 random unknown-parent groups among its levels'; '' without such groups, and of metafounders."""
    n, groups = record.get("data", {}).get("groups"), record["analysis"].get("data", {}).get("groups")
    effect = groups.get("effect", "random") if groups else None
    if not n or effect not in ("random", "fixed"):
        return ""
    return f", with {counted(n, f'{effect} unknown-parent group')} among its levels"


def _fixed_kind(name: str, fixed: dict) -> str:
    column = "" if fixed.get("column", name) == name else f" ({fixed['column']})"
    columns, numbers = fixed.get("interaction") or (), fixed.get("covariates") or ()
    if columns:
        classes = [c for c in columns if c not in numbers]
        if not numbers:
            return f"class effect, interaction of {' and '.join(classes)}"
        column = f", {'product of ' if len(numbers) > 1 else ''}{' and '.join(numbers)}"
        fixed = fixed | {"by": " and ".join(classes)}
    if fixed.get("kind", "class") == "class":
        return f"class effect{column}"
    legendre, by = fixed.get("legendre"), fixed.get("by")
    curve = (
        f"Legendre polynomials up to degree {legendre['degree']}"
        if legendre
        else f"polynomial of degree {fixed.get('degree') or 1}"
    )
    return f"covariate{column}, {curve}" + (f", within {by}" if by else "")


def _classes_clause(record: dict) -> str:
    """', one for each class of housing (indoor, outdoor)'."""
    by = (record["analysis"].get("variances", {}).get("residual") or {}).get("by")
    classes = record.get("data", {}).get("residual_classes", {})
    return f", one for each class of {by} ({', '.join(sorted(classes, key=natural))})" if by else ""


def has_correlated_residuals(record: dict) -> bool:
    """Residuals of different records are correlated."""
    residual = record["analysis"].get("variances", {}).get("residual") or {}
    kinds = [residual.get("relationship"), *((c or {}).get("relationship") for c in _classes(residual).values())]
    return bool(residual.get("known") or any(kinds))


def _classes(residual: dict) -> dict:
    return residual.get("classes") or {}


def _correlations_clause(variances: dict) -> str:
    """'; correlated between neighbouring rows and columns (AR1)'; of each class that has another one."""
    residual = variances.get("residual") or {}
    clauses = [_directions(residual.get("relationship"))]
    clauses += [
        f"in {name} {_directions(of_class['relationship'])}"
        for name, of_class in _classes(residual).items()
        if (of_class or {}).get("relationship")
    ]
    return "".join(f"; {clause}" for clause in clauses if clause)


def _directions(kind: dict | str | None) -> str:
    if not isinstance(kind, dict):
        return ""
    within = f" within {kind['within']}" if kind.get("within") else ""
    if kind.get("time"):
        return f"correlated between successive {kind['time']}{within} (AR1)"
    directions = [f"{key}s" for key in ("row", "column") if kind.get(key)]
    return f"correlated between neighbouring {' and '.join(directions)}{within} (AR1)"


def _treated(variances: dict, name: str, estimated: bool = False) -> str:
    settings = variances.get(name) or {}
    if variances.get("mode") == "fixed" or settings.get("fixed"):
        return "fixed at its given value"
    if estimated:
        return "estimated by REML" + structure_clause(settings.get("structure"))
    structure, prior = settings.get("structure"), settings.get("prior")
    if isinstance(structure, dict) and prior in (None, "flat"):
        prior = {"half_t": {"df": 2}}
    return f"sampled, {prior_words(prior)}{structure_clause(structure)}"


def structure_clause(structure: str | dict | None) -> str:
    """', factor-analytic with 2 factors'; nothing for a full matrix."""
    if isinstance(structure, str) or structure is None:
        return ", no covariances" if structure == "diagonal" else ""
    kind, factors = structure["kind"], structure.get("factors") or 1
    words = {
        "factor_analytic": f"factor-analytic with {factors} factor{'' if factors == 1 else 's'}",
        "compound_symmetry": "with one correlation (compound symmetry)",
        "ar1": "with correlations that fall with the distance of components (AR1)",
        "antedependence": "each component a regression on the one before it (ante-dependence)",
    }[kind]
    return f", {words}" + (", equal variances" if structure.get("variances") == "equal" else "")


def _residual_treated(analysis: dict, estimated: bool = False) -> str:
    """As of any matrix, but for liabilities of categories, whose residual variance is 1."""
    traits, variances = analysis["traits"], analysis.get("variances", {})
    unit = [name for name, trait in traits.items() if trait.get("type") in OF_CATEGORIES]
    settings = variances.get("residual") or {}
    by = settings.get("by")
    if settings.get("known"):
        return "known: the covariance matrix of the means of a first analysis"
    if not unit:
        return _treated(variances, "residual", estimated)
    convention = "1 by convention" + (f" in one class of {by}" if by else "")
    if len(traits) == 1 and not by:
        return convention
    of = "" if len(traits) == 1 else f" for {', '.join(unit)}"
    return f"{convention}{of}; else {_treated(variances, 'residual')}"


def fixed_prior_words(prior: dict | str, traits: Sequence[str]) -> str:
    """Of a fixed effect on some traits: flat, {variance: V} or {variance: {trait: V}}."""
    variance = prior.get("variance") if isinstance(prior, dict) else None
    if variance is None:
        return "flat prior"
    if not isinstance(variance, dict):
        return f"normal prior with variance {variance:g}"
    flat = [trait for trait in traits if variance.get(trait) is None]
    if len(traits) == 1 and not flat:
        return f"normal prior with variance {variance[traits[0]]:g}"
    of = listed([f"{v:g} for {trait}" for trait, v in variance.items() if v is not None])
    return f"normal prior with variance {of}" + (f"; flat for {listed(flat)}" if flat else "")


def prior_words(prior: dict | str | None) -> str:
    """Of a covariance matrix: flat, {df, scale}, {h2: uniform} or {half_t: {df, scale}}."""
    if not isinstance(prior, dict):
        return "flat prior"
    if "h2" in prior:
        return f"share of the variance (its own plus the residual's) {prior['h2']} on (0, 1)"
    if "half_t" in prior:
        half_t = prior["half_t"]
        return f"half-t prior of standard deviations with {_degrees(half_t['df'], half_t.get('scale'))}"
    return f"inverse-Wishart prior with {_degrees(prior['df'], prior.get('scale'))}"


def _degrees(df: float, scale: Any) -> str:
    """'4 degrees of freedom and scale 0.8'; of a matrix its diagonal, of standard deviations one for each."""
    said = f"{df:g} degrees of freedom"
    values = np.asarray([] if scale is None else scale, float)
    if not values.size:
        return said
    numbers = [f"{v:g}" for v in (np.diag(values) if values.ndim == 2 else values.ravel())]
    if len(numbers) == 1:
        return f"{said} and scale {numbers[0]}"
    return f"{said} and {'a diagonal of the scale of' if values.ndim == 2 else 'scales'} {listed(numbers)}"


def engine_words(record: dict) -> str:
    name = record.get("engine", "unknown")
    why = record.get("engine_chosen_because") or ""
    if why.startswith("auto"):  # counts and milliseconds, which say nothing of the results
        why = "chosen by auto; run.json says why"
    return f"{name}: {ENGINES.get(name, 'see the documentation')}" + (f" ({why})" if why else "")


def interweaved_words(terms: Sequence[str]) -> str:
    """Which terms interweave; the word alone says nothing to most readers."""
    return (
        f"{listed(terms)}: variances are drawn again given the standardised effects, for faster mixing"
        if terms
        else "none"
    )


def is_sampled_reml(record: dict) -> bool:
    """REML by Monte Carlo, which has no likelihood."""
    return record.get("method") == "reml" and record.get("likelihood") == "monte_carlo"


def reml_words(record: dict) -> str:
    """What REML reached."""
    if is_sampled_reml(record):
        iterations = counted(record["iterations"], "iteration")
        return f"REML by Monte Carlo: {counted(record['samples'], 'sample')}, {iterations}"
    likelihood, aic, bic = number(record["log_likelihood"], 3), number(record["aic"], 1), number(record["bic"], 1)
    return f"REML: log likelihood {likelihood}, AIC {aic}, BIC {bic}, {counted(record['iterations'], 'iteration')}"


# ------------------------------------------------------------------------------------------------ the figures


def chosen_words(total: int, worst: int, heritabilities: int) -> str:
    """Which of `total` parameters have figures: the `worst` by mixing, then so many heritabilities that mix better."""
    if worst == total:
        return f"{ORDER}."
    better = {0: "", 1: ", and after them 1 heritability that mixes better"}.get(
        heritabilities, f", and after them {heritabilities:,} heritabilities that mix better"
    )
    return (
        f"Of {total:,} parameters these are the {worst:,} that mix worst, the worst first{better}; draws.nc has all of "
        f"them. How well a parameter mixes is told {MIXING}."
    )


def key_of_figures(chains: int, interval: bool) -> dict[str, str]:
    """Heading of a figure of chains -> what its lines are; interval: the density has one."""
    legend, several = "one line for each chain" if chains > 1 else "", chains > 1
    parts = ["thick line: all chains", "thin lines: each chain"] if several else []
    parts += ["shaded: 95\u00a0% interval"] if interval else []
    return {
        "Trace": legend,
        "Ranks by chain": "dashed: where chains agree",
        "Autocorrelation": legend,
        "Posterior density": "; ".join([*parts, "dashed: mean"]),
    }


def trace_words(draws: np.ndarray, row: dict) -> str:
    means, places = draws.mean(axis=1), decimals(row["sd"])
    n = counted(draws.shape[0], "chain")
    spread = (
        f"their means run from {number(means.min(), places)} to {number(means.max(), places)}"
        if len(means) > 1
        else f"its mean is {number(means[0], places)}"
    )
    verdict = ""
    if known(row["rhat"]):
        verdict = f" R-hat is {row['rhat']:.3f}: " + (
            "the chains have not mixed." if row["rhat"] > RHAT else "the chains agree."
        )
    sd = number(row["sd"], places)
    return f"{n} of {draws.shape[1]:,} kept draws; {spread}, where the posterior SD is {sd}.{verdict}"


def rank_words(shares: np.ndarray) -> str:
    bins = shares.shape[1]
    chain = int(np.abs(shares - 1 / bins).max(axis=1).argmax())
    return (
        f"Share of each chain's draws in {bins} equal classes of rank: from {100 * shares.min():.0f} to "
        f"{100 * shares.max():.0f} % where "
        f"{100 / bins:.0f} % is expected; chain {chain + 1} departs most."
    )


def autocorrelation_words(values: np.ndarray, limit: float = 0.1) -> str:
    below = [int(np.argmax(row < limit)) for row in values if (row < limit).any()]
    last = values.shape[1] - 1
    if len(below) < len(values):
        slow = [str(i + 1) for i, row in enumerate(values) if not (row < limit).any()]
        chains = listed(slow)
        return (
            f"Autocorrelation stays above {limit} up to lag {last} in chain {chains}: draws far apart are still alike."
        )
    return f"Autocorrelation falls below {limit} at lag {min(below)}" + (
        f" to {max(below)}, by chain." if max(below) > min(below) else " in every chain."
    )


def density_words(row: dict) -> str:
    places = decimals(row["sd"])
    middle = (
        f"Mean {number(row['mean'], places)}, median {number(row['median'], places)}, SD {number(row['sd'], places)}"
    )
    ends = interval(row["hpd_low"], row["hpd_high"], places)
    return middle + (f"; 95 % interval {ends}." if ends else ".")


def histogram_words(values: np.ndarray, what: str = "breeding value", called: str = "animal") -> str:
    """what: of which values, such as 'polygenic value'; called: what has one."""
    places = decimals(values.std())
    low, middle, high = np.percentile(values, (5, 50, 95))
    return (
        f"{what.capitalize()}s of {counted(len(values), called)}: from {number(values.min(), places)} to "
        f"{number(values.max(), places)}, median {number(middle, places)}; "
        f"nine tenths lie between {number(low, places)} and {number(high, places)}."
    )


def birth_year_words(what: str, years: np.ndarray, middle: np.ndarray, band: str) -> str:
    places = decimals(np.ptp(middle) or abs(middle).max())
    top = int(middle.argmax())
    return (
        f"{what} runs from {number(middle[0], places)} in {years[0]} to {number(middle[-1], places)} in {years[-1]}; "
        f"the highest is {number(middle[top], places)} in {years[top]}. {band}"
    )


def slope_words(years: np.ndarray, middle: np.ndarray, draws: np.ndarray | None = None) -> str:
    """The regression of the yearly means on the years; from draws (draws, years) with its interval."""
    if len(years) < 3:
        return ""
    x = (years - years.mean()) / ((years - years.mean()) ** 2).sum()
    slope = float(middle @ x)
    sentence = f"The regression of the yearly means on the year is {figure(slope, 2)} a year"
    if draws is None:
        return f"{sentence}."
    low, high = np.percentile(draws @ x, (2.5, 97.5))
    return f"{sentence} (95 % interval {interval(low, high, decimals(high - low))})."
