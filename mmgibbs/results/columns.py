"""What the columns of every table of a run mean, and the parameters by their names: the reference is made from here.

Words in capitals are names of the analysis: p_top_X is p_top_5, probability[CATEGORY] is probability[ill].
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from mmgibbs.results.tables import SOLUTION_COLUMNS, SUMMARY_COLUMNS


class Output(NamedTuple):
    """A file of the run folder."""

    rows: str  # what a row is
    columns: Mapping[str, str]


_SUMMARY = {
    "parameter": "name of the parameter (see Parameters below)",
    "mean": "posterior mean; with method reml the estimate",
    "median": "posterior median",
    "sd": "posterior standard deviation; with method reml the standard error",
    "mcse": "Monte Carlo standard error of the mean; with method reml and engine pcg that of the estimate",
    "ess_bulk": "effective sample size for the centre of the distribution",
    "ess_tail": "effective sample size for its tails",
    "rhat": "R-hat, rank-normalised: compares the chains; if it is above 1.05 the chains do not agree yet",
    "hpd_low": "lower end of the shortest interval that contains 95 % of the draws",
    "hpd_high": "upper end of that interval",
}
_SOLUTIONS = {
    "term": "name of the effect in the analysis",
    "effect": "which effect of a random term (`direct`, `maternal`; `.0`, `.1`, ... of a random regression); `gebv`: "
    "genomic value by the SNP effects; `total`: its sum with the other breeding values of the animal",
    "trait": "name of the trait",
    "level": "level of the effect as in the table, such as the id of an animal; `slope` for a covariate, and for a "
    "curve its coefficients `x^1`, `x^2`, ... or `legendre.0`, `legendre.1`, ...",
    "mean": "posterior mean; with method blup or reml the solution",
    "sd": "posterior standard deviation; with method blup or reml the standard error",
    "mcse": "Monte Carlo standard error of the mean",
    "ess": "effective sample size",
    "pev": "prediction error variance, the posterior variance; of genomic values with that of missing genotypes",
    "reliability": "1 - pev / ((1 + F) variance), with the diagonal of G or H in place of 1 + F if relationships are "
    "from genotypes, and 1 + F plus the sum of the squared shares of the groups with random unknown-parent groups. It "
    "can be negative: slightly by Monte Carlo error where it is near 0, and with fixed groups, whose errors are in pev "
    "but which have no variance",
    "accuracy": "square root of the reliability, 0 if that is negative",
    "inbreeding": "inbreeding coefficient F of the animal, as the model uses it",
    "pev_mcse": "Monte Carlo standard error of pev (of sd squared for fixed effects), if it was estimated from "
    "samples (`sampler.pev_samples`)",
    "probability[CATEGORY]": "probability of the category (`output.probabilities`)",
    "probability_sd[CATEGORY]": "its posterior standard deviation",
    "expected_count": "expected count at an exposure of 1 (`output.probabilities`)",
    "expected_count_sd": "its posterior standard deviation",
}
_DECISIONS = {
    "criterion": "trait or index by which candidates are ranked",
    "level": "id of the candidate",
    "mean": "posterior mean of the score",
    "sd": "posterior standard deviation of the score",
    "mcse": "Monte Carlo standard error of the mean",
    "ess": "effective sample size",
    "p_top_X": "probability of being among the best X per cent of the candidates",
    "mcse_top_X": "Monte Carlo standard error of that probability, of 0 and 1 that of a count of 0",
    "rank_low": "lower end of the interval of the rank (rank 1 is the best)",
    "rank_median": "median rank",
    "rank_high": "upper end of the interval of the rank",
}
_RESPONSE = {
    "criterion": "trait or index",
    "top": "per cent of the candidates that are selected",
    "selected": "number of candidates that are selected",
    "candidates": "number of candidates",
    "by_mean": "expected response if those with the highest posterior means are selected",
    "by_p_top": "expected response if those with the highest `p_top_X` are selected",
    "perfect": "expected response if the true values were known",
    "perfect_sd": "its posterior standard deviation",
    "perfect_mcse": "its Monte Carlo standard error",
    "perfect_ess": "its effective sample size",
}
_ANIMALS = {
    "id": "id of the animal",
    "sire": "id of the sire, empty where unknown",
    "dam": "id of the dam, empty where unknown",
    "birth": "year of birth, with decimals if the pedigree has dates",
    "selfings": "generations of selfing after the cross, in a run with `selfing`",
}
_MARKERS = {
    "snp": "name of the SNP",
    "chromosome": "chromosome",
    "position": "position in the unit of the map",
    "counted": "allele whose copies are counted",
    "other": "the other allele",
    "frequency": "frequency of the counted allele",
    "call_rate": "share of the animals with a known genotype",
    "known": "number of animals with a known genotype",
    "kept": "whether the SNP is in the analysis",
    "why_dropped": "why it was left out",
    "centre": "copies that are subtracted from each genotype",
    "effect_TRAIT": "posterior mean of the effect of one copy of the counted allele",
    "effect_sd_TRAIT": "its posterior standard deviation",
    "effect_mcse_TRAIT": "its Monte Carlo standard error",
    "pip_TRAIT": "probability that the effect is not 0",
    "pip_mcse_TRAIT": "its Monte Carlo standard error, of SNPs in no draw (or in all) that of a count of 0",
    "class_K_TRAIT": "probability that the effect belongs to class K of the prior",
    "state_SET": "probability that the SNP has an effect on exactly the traits of SET",
    "state_mcse_SET": "its Monte Carlo standard error",
}
_SNP_EFFECTS = {
    **{name: _MARKERS[name] for name in list(_MARKERS)[: list(_MARKERS).index("centre")]},
    "centre": "copies that the relationships subtract from each genotype; `centre_TERM` if several terms have "
    "genotypes",
    "effect_COMPONENT": "effect of one copy of the counted allele on a component (trait, or effect:trait) of the term, "
    "by its breeding values; `effect_TERM_COMPONENT` if several terms have genotypes, and so on",
    "effect_sd_COMPONENT": "its posterior standard deviation, at the variances of the run",
    "log10_p_COMPONENT": "-log10 of the p value of the effect",
}
_SHARE = {
    "share": "share of the genetic variance of the genotyped animals, mean of the draws",
    "share_sd": "its posterior standard deviation",
    "share_low": "2.5 % of its draws are smaller",
    "share_high": "97.5 % of its draws are smaller",
}
_OF_TERM = {"term": "name of the term of SNP effects", "trait": "name of the trait", "chromosome": "chromosome"}
_WINDOWS = {
    **_OF_TERM,
    "window": "number of the window",
    "start": "where the window begins",
    "end": "where the window ends",
    "snps": "number of SNPs in it",
    "first_snp": "first SNP of the window",
    "last_snp": "last SNP of the window",
    **_SHARE,
    "ppa": "probability that the share is larger than `above`",
    "above": "the share to which `ppa` refers (`windows.share` of the analysis)",
    "p_any": "probability that some SNP of the window has an effect",
    "draws": "number of draws of the effects",
}
_CHROMOSOMES = {
    **_OF_TERM,
    "snps": "number of SNPs",
    "variance": "variance of the genomic values by this chromosome alone, mean of the draws",
    "variance_sd": "its posterior standard deviation",
    "variance_low": "2.5 % of its draws are smaller",
    "variance_high": "97.5 % of its draws are smaller",
    "covariance_with_rest": "covariance with the values of all other chromosomes, mean of the draws",
    "covariance_with_rest_sd": "its posterior standard deviation",
    "covariance_with_rest_low": "2.5 % of its draws are smaller",
    "covariance_with_rest_high": "97.5 % of its draws are smaller",
    **_SHARE,
}
_GENOTYPED = {
    "animal": "its id",
    "pc_J": "its score on principal component J of the genotypes",
    "share_J": "share of the variance of the genotypes on component J, the same in every row",
}
_RELATIONSHIP_SAMPLE = {
    "animal": "id of a genotyped animal; the file has relatives next to each other",
    "other": "id of another, in the same order",
    "genomic": "their genomic relationship (VanRaden 1), neither blended nor tuned",
    "pedigree": "their relationship by the pedigree, empty without a pedigree",
}
_PREDICTED = {
    "trait": "name of the trait",
    "effect": "class effect, empty for all records together",
    "level": "level of that effect",
    "records": "number of records",
    "category": "category, empty for counts",
    "observed": "share of the records that are in the category; of counts their mean",
    "predicted": "mean over draws of the same share in records simulated from the model",
    "low": "2.5 % of these draws are smaller",
    "high": "97.5 % of these draws are smaller",
}
_MEANS = {
    "effect": "name of the class effect (`output.means`)",
    "trait": "name of the trait",
    "level": "level of the effect",
    "records": "number of records of the trait with this level",
    "mean": "adjusted mean: other class effects averaged over their levels, nested ones within their class, covariates "
    "over the records, other random effects 0; of draws the posterior mean",
    "se": "its standard error; of draws the posterior standard deviation; blank where a correlation between neighbours "
    "is at its upper bound and decides a variance",
    "reason": "why the mean is blank: the records do not determine it",
}
_FITTED = {
    "row": "row of the record in the file",
    "trait": "name of the trait",
    "observed": "the record; empty for traits that are not normal",
    "fitted": "sum of all effects of the record, a liability if the trait is not normal; of draws the posterior mean",
    "residual": "observed less fitted",
}
_DRAWS = {
    "chain": "number of the chain, from 1",
    "draw": "number of the kept draw within its chain, from 1",
    "PARAMETER": "the draw of this parameter of `summary.csv`",
}
_DEREGRESSED = {
    "animal": "id of the animal",
    "trait": "name of the trait",
    "deregressed": "deregressed proof: what the records of the animal and of its progeny say, without its parents",
    "reliability": "reliability of the deregressed proof, X / (X + (1 - h2) / h2)",
    "weight": "(1 - h2) / ((c + (1 - reliability) / reliability) h2), c from `--unexplained`, for an analysis of the "
    "deregressed proofs",
    "information": "X, the information of the animal and its progeny as a number of records",
    "ebv": "breeding value in the run",
    "ebv_reliability": "its reliability",
    "parent_average": "mean of the breeding values of the parents, an unknown one as 0; 0 without known parents",
}
_FACTOR_SCORES = {
    "term": "name of the random effect with `structure: factor_analytic` or `reduced_rank`",
    "level": "level of the effect, such as a line",
    "overall_performance": "mean over the traits of the loading of the first factor, times the score of the level on "
    "it: where traits are environments, its value in an average one (Smith & Cullis 2018)",
    "stability": "root mean square, over the traits, of what the other factors add: small where a level follows the "
    "first factor everywhere; empty with one factor",
    "score_J": "score on factor J, given the values of the level",
}
_OF_TREND = {
    "term": "name of the random effect with `relationship: ar1`, or of the surface (`spline`)",
    "effect": "which effect of it, empty if it has one",
    "trait": "name of the trait",
    "trial": "level of `within`: the trial, empty if all records are of one",
}
_FIELD = {
    **_OF_TREND,
    "row": "row of the plot, empty if rows have no correlation",
    "column": "column of the plot, empty if columns have no correlation",
    "records": "number of records of the trait, 0 of a plot that has none",
    "mean": "trend at the plot: posterior mean; with method blup or reml the solution; of a surface the sum of its "
    "parts and of fixed covariates of rows and columns, less its mean over the trial",
    "sd": "posterior standard deviation of the trend; with method blup or reml its standard error; "
    "empty for surfaces of more than 5,000 plots",
    "residual": "mean of the records of the plot less all effects but the trend, that is trend plus error; empty "
    "without records, for traits that are not normal and for traits with SNP effects",
}
_VARIOGRAM = {
    **_OF_TREND,
    "row_displacement": "how many rows the plots of a pair are apart",
    "column_displacement": "how many columns they are apart",
    "pairs": "number of pairs of plots",
    "semivariance": "half the mean squared difference of `residual` in these pairs (Gilmour et al. 1997)",
}
_SMOOTHS = {
    "term": "name of the random effect with `relationship: random_walk` or `spline`",
    "trait": "name of the trait",
    "class": "level of `within`, empty if there is one curve",
    "covariate": "column of the covariate",
    "at": "value of the covariate",
    "records": "number of records of the trait there",
    "mean": "mean of the trait along the curve: with the fixed covariate, other class effects averaged over their "
    "levels and other random effects 0, on the liability scale of traits that are not normal; of draws the posterior "
    "mean",
    "sd": "its standard error; of draws the posterior standard deviation",
}
_CURVES = {
    "term": "name of the random regression",
    "effect": "name of its effect",
    "trait": "name of the trait",
    "quantity": "`variance` of the term at this point, or `heritability`, its share of all variances there",
    "covariate": "column of the covariate",
    "at": "value of the covariate",
    "mean": "posterior mean; with method reml the estimate",
    "sd": "posterior standard deviation, empty with method reml",
    "mcse": "Monte Carlo standard error of the mean",
    "hpd_low": "lower end of the shortest interval that contains 95 % of the draws",
    "hpd_high": "upper end of that interval",
}
OUTPUTS = {
    "summary.csv": Output("a variance component or another parameter of the model", _SUMMARY),
    "solutions.csv": Output("a level of an effect on a trait", _SOLUTIONS),
    "curves.csv": Output("a point of the curve of a random regression, evenly spaced over its range", _CURVES),
    "decisions.csv": Output("a candidate for selection, by each criterion", _DECISIONS),
    "response.csv": Output("a criterion and a share of selected candidates", _RESPONSE),
    "animals.parquet": Output("an animal of the pedigree", _ANIMALS),
    "markers.parquet": Output("a SNP of the file of genotypes", _MARKERS),
    "snp_effects.parquet": Output("a SNP of the file of genotypes (`output.snp_effects`)", _SNP_EFFECTS),
    "windows.parquet": Output("a window of neighbouring SNPs, by term and trait", _WINDOWS),
    "chromosomes.csv": Output("a chromosome, by term and trait", _CHROMOSOMES),
    "genotyped.parquet": Output("a genotyped animal, if relationships are from genotypes", _GENOTYPED),
    "relationship_sample.parquet": Output("a pair among some of the genotyped animals", _RELATIONSHIP_SAMPLE),
    "means.csv": Output("a level of an effect in `output.means`, for each trait", _MEANS),
    "fitted.csv": Output("an observation of a trait (`output.fitted`)", _FITTED),
    "factor_scores.csv": Output("a level of a random effect with factors over traits", _FACTOR_SCORES),
    "field.csv": Output("a plot of a field trial, also one without a record, for each trait", _FIELD),
    "variogram.csv": Output("a displacement of plots of a field trial, for each trait", _VARIOGRAM),
    "smooths.csv": Output("a value of the covariate of a curve, for each trait", _SMOOTHS),
    "deregressed.csv": Output("an animal and trait, written by `mmgibbs export --format deregressed`", _DEREGRESSED),
    "draws.csv": Output("a kept draw of a chain, written by `mmgibbs export --format draws`", _DRAWS),
    "predicted_classes.csv": Output("a category of a trait that is not normal, overall and by class", _PREDICTED),
}
PARAMETERS = {
    "TERM.var[COMPONENT]": "variance of a component (trait, or effect:trait) of a random effect",
    "TERM.cov[A,B]": "covariance of two components",
    "TERM.corr[A,B]": "their correlation, computed draw by draw",
    "residual.var[TRAIT]": "residual variance; residual.var[TRAIT|CLASS] of a residual class",
    "residual.cov[A,B]": "residual covariance of two traits",
    "residual.corr[A,B]": "residual correlation",
    "TERM.rho[DIRECTION]": "correlation of neighbouring rows, columns or times (`relationship: ar1`), over the step of "
    "run.json; `TERM.rho` of a covariance matrix whose `structure` has one correlation",
    "TERM.loading[COMPONENT:J]": "loading of a component on factor J (`structure: factor_analytic`, `reduced_rank`), "
    "on principal axes",
    "TERM.factors": "number of active factors (`factors: auto`); the mean of `TERM.factors[J]` is the posterior "
    "probability of J",
    "TERM.specific[COMPONENT]": "variance of a component that no factor explains",
    "TERM.regression[B,A]": "regression of a component on the one before (`structure: antedependence`)",
    "TERM.innovation[B]": "variance of what that regression leaves",
    "TERM.explained[COMPONENT]": "share of the variance of a component that the factors explain; `TERM.explained[J]`: "
    "share of all variances together that factor J explains",
    "residual.rho[DIRECTION]": "correlation of residuals of neighbouring rows, columns or times "
    "(`variances.residual.relationship`); residual.rho[TRAIT:DIRECTION] of several traits, "
    "residual.rho[DIRECTION|CLASS] of a residual class",
    "h2[TRAIT]": "heritability: direct genetic variance over the phenotypic variance, draw by draw",
    "total_h2[TRAIT]": "variance of total breeding values, direct and through mates, over the phenotypic variance",
    "ratio[TERM:TRAIT]": "share of the phenotypic variance; `ratio[TERM.EFFECT:TRAIT]` if the term has several effects",
    "threshold[TRAIT:A|B]": "threshold between two neighbouring categories of an ordinal trait",
    "incidence[TRAIT:CATEGORY]": "share of the category among unrelated animals; `incidence[TRAIT]` of a binary trait",
    "h2_observed[TRAIT]": "heritability on the scale of the records; `h2_observed[TRAIT:CATEGORY]` of one category",
    "mean[TRAIT]": "mean of the trait over its records (`output.moments`)",
    "fixed_var[TRAIT]": "variance by the fixed effects among the records",
    "cv_a[TRAIT]": "100 sqrt(V_A) / mean, the additive genetic coefficient of variation, if all records are above 0",
    "i_a[TRAIT]": "V_A / mean^2, the evolvability, if all records are above 0",
    "TERM.QUANTITY[TRAIT]": "parameters of the prior of SNP effects, such as their variance, scale or shares",
    "QUANTITY": "parameter of a regression, such as `beta[PREDICTOR]`",
}  # fmt: skip


def meaning(file: str, column: str) -> str | None:
    """Return the meaning of a column of a file; None where it is not described."""
    columns = OUTPUTS[file].columns
    known = [p for p in columns if p == column] or [p for p in columns if _matches(p, column)]
    return columns[max(known, key=len)] if known else None  # the one with most words of its own


def _matches(pattern: str, column: str) -> bool:
    """A word in capitals matches any text."""
    parts = re.split(r"\b([A-Z]+)\b|(?<=_)([A-Z]+)(?=_|$|\])", pattern)
    expression = "".join(".+" if p and p.isupper() else re.escape(p or "") for p in parts)
    return re.fullmatch(expression, column) is not None


assert tuple(_SUMMARY) == SUMMARY_COLUMNS and tuple(_SOLUTIONS)[: len(SOLUTION_COLUMNS)] == SOLUTION_COLUMNS
