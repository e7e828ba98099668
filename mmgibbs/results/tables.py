"""Tables of a run: parameters, solutions with their reliability, and animals.

    pev         = posterior variance of the effect
    reliability = 1 - pev / ((1 + F) sigma2_u)          accuracy = sqrt(max(reliability, 0))

sigma2_u is the posterior mean of the variance of that very component (of a random regression: of that coefficient), F
the inbreeding coefficient that the model uses (0 under `inbreeding: ignore`, and for terms without a pedigree).
Reliability is 1 - PEV / (K_ll variance): K_ll is 1 + F with a pedigree, the diagonal of G or H with genotypes. With
random unknown-parent groups a value is u + Q g of the variance 1 + F + sum_g Q_lg^2; fixed groups have no variance, and
where their PEV is large the reliability is negative.
Reliability and accuracy are blank for a user's relationship file, whose diagonal is unknown, and for unknown-parent
groups. What rounding leaves below 0 is 0. A reliability that Monte Carlo error or an uncertain variance makes negative
is reported as it is, and warned of where it would be shown as negative: one rule for tables, messages and pages.

animals.parquet is the pedigree in the user's own ids, so that a report can speak of parents and birth years.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from mmgibbs.data.prepared import LevelLabels, Prepared
from mmgibbs.models.design import Design
from mmgibbs.models.labels import numbered
from mmgibbs.models.terms import Term
from mmgibbs.pedigree.read import Pedigree
from mmgibbs.posterior.moments import PooledMoments
from mmgibbs.results.relationships import describe_relationships

ROUNDING = 1e-6  # of a reliability of 0 that was computed, not drawn
SHOWN_AS_NEGATIVE = -0.005  # with two decimals


def reliabilities(pev: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """(n,) 1 - PEV / prior, 0 for what rounding leaves below it; NaN where the prior variance is 0 or unknown."""
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.where(prior > 0, 1 - pev / prior, np.nan)
    return np.where((values < 0) & (values > -ROUNDING), 0.0, values)


def count_negative(values: pl.Series) -> dict | None:
    """{negative, of, lowest} of reliabilities, or None where none would be shown as negative."""
    known = values.drop_nulls()
    if not len(known) or known.min() > SHOWN_AS_NEGATIVE:  # type: ignore[operator]
        return None
    return {"negative": int((known < -ROUNDING).sum()), "of": len(known), "lowest": known.min()}


def negative_reliabilities(solutions: pl.DataFrame | None, record: Mapping) -> dict | None:
    """Count the negative reliabilities of a run: of breeding values, polygenic, genomic and in total."""
    if solutions is None or "reliability" not in solutions.columns:
        return None
    related = [term for term, kind in describe_relationships(record).items() if kind["related"]]
    is_value = pl.col("term").is_in(related) | pl.col("effect").is_in(["gebv", "total"])
    return count_negative(solutions.lazy().filter(is_value).select("reliability").collect().to_series())


SUMMARY_COLUMNS = ("parameter", "mean", "median", "sd", "mcse", "ess_bulk", "ess_tail", "rhat", "hpd_low", "hpd_high")
SOLUTION_COLUMNS = (
    "term", "effect", "trait", "level", "mean", "sd", "mcse", "ess", "pev", "reliability", "accuracy", "inbreeding",
)  # fmt: skip
_TEXT = SOLUTION_COLUMNS[:4]


def summary_frame(table: Mapping[str, np.ndarray]) -> pl.DataFrame:
    """`posterior.summary.summary_table` as a frame; NaN becomes blank."""
    names = pl.Series("parameter", list(table["parameter"]), dtype=pl.String)
    return pl.DataFrame([names, *(_numbers(c, table[c]) for c in SUMMARY_COLUMNS[1:])])


def was_drawn(summary: pl.DataFrame) -> bool:
    """Check whether the rows are moments of draws, not estimates of REML, which have no median."""
    return "median" not in summary.columns or summary["median"].null_count() < summary.height


LevelColumns = Mapping[str, np.ndarray]  # name of a column -> (q,) of the levels of a component


def sd_column(name: str) -> str:
    """'probability[alive]' -> 'probability_sd[alive]'."""
    what, bracket, label = name.partition("[")
    return f"{what}_sd{bracket}{label}"


def solutions_frame(
    prepared: Prepared,
    pooled: PooledMoments,
    variances: Mapping[str, np.ndarray],
    more: Mapping[tuple[int, int], LevelColumns] | None = None,
) -> pl.DataFrame:
    """Solutions of all levels of all terms.

    pooled: moments on the user's scale, an array (q, k) per term; NaN where unknown (BLUP). variances: random term ->
    (k, k) posterior mean of its covariance matrix. Rows run term by term, level by level in reporting order, and within
    a level as the components do: effect, trait, coefficient. A fixed covariate has its power or polynomial for a level,
    so there the coefficient goes before the trait. A level x trait that is set to 0 (dropped, or without records) has
    mean 0, sd 0 and blanks. Columns that do not apply to a term are blank. more: (term, component) -> further columns,
    which come last.
    """
    frames = [
        _term_frame(prepared.design, i, labels, mean, sd, mcse, ess, variances.get(prepared.design.terms[i].name))
        for i, (labels, mean, sd, mcse, ess) in enumerate(
            zip(prepared.levels, pooled.mean, pooled.sd, pooled.mcse, pooled.ess, strict=True)
        )
    ]
    frames = [_with_columns(i, f, prepared, more) for i, f in enumerate(frames) if f.height]
    return pl.concat(frames) if frames else _empty_solutions()


def _term_frame(
    design: Design,
    number: int,
    labels: LevelLabels,
    mean: np.ndarray,
    sd: np.ndarray,
    mcse: np.ndarray,
    ess: np.ndarray,
    variance: np.ndarray | None,
) -> pl.DataFrame:
    traits, term, estimated = design.traits, design.terms[number], design.estimated(number)
    order, k = np.asarray(labels.order), term.n_components
    components = _reported_components(term, labels)
    held = None if estimated is None else ~_stack_rows(estimated, order, components)

    def unless_held(values: np.ndarray, instead: float) -> np.ndarray:
        rows = _stack_rows(values, order, components)
        return rows if held is None else np.where(held, instead, rows)

    def per_level(values: np.ndarray) -> np.ndarray:
        return np.repeat(values[order], k)

    def per_component(texts: Sequence[str]) -> pl.Series:
        return pl.Series([texts[c] for c in components], dtype=pl.String).gather(np.tile(np.arange(k), len(order)))

    effect = per_component(_effect_labels(term))
    if labels.n_groups:
        is_group = pl.Series(per_level(labels.group))
        effect = pl.select(pl.when(is_group).then(pl.lit("group")).otherwise(effect)).to_series()
    text = {
        "term": pl.repeat(term.name, len(order) * k, dtype=pl.String, eager=True),
        "effect": effect,
        "trait": per_component([traits[t] for t in term.component_trait]),
        "level": _levels(term, labels, order, components),
    }
    numbers = {
        "mean": _stack_rows(mean, order, components),
        "sd": unless_held(sd, 0.0),
        "mcse": unless_held(mcse, np.nan),
        "ess": unless_held(ess, np.nan),
    }
    if term.kind == "random":
        if labels.inbreeding is not None:
            numbers["inbreeding"] = per_level(labels.inbreeding)
        if not np.isnan(sd).all():
            numbers["pev"] = numbers["sd"] ** 2 if held is None else np.where(held, np.nan, numbers["sd"] ** 2)
    if "pev" in numbers and variance is not None and term.relationship.known_diagonal:
        prior = np.tile(np.diagonal(variance)[components], len(order))
        diagonal = term.relationship.prior_diagonal if labels.diagonal is None else labels.diagonal
        if diagonal is not None:
            prior *= per_level(diagonal)
        elif labels.inbreeding is not None:
            prior *= 1.0 + numbers["inbreeding"]
        reliability = reliabilities(numbers["pev"], prior)
        if labels.n_groups:
            reliability[per_level(labels.group)] = np.nan
        numbers |= {"reliability": reliability, "accuracy": np.sqrt(np.maximum(reliability, 0.0))}
    blank = pl.repeat(None, len(order) * k, dtype=pl.Float64, eager=True)
    columns = text | {name: _numbers(name, values) for name, values in numbers.items()}
    return pl.DataFrame([columns.get(c, blank).alias(c) for c in SOLUTION_COLUMNS])


def _stack_rows(values: np.ndarray, order: np.ndarray, components: np.ndarray) -> np.ndarray:
    """(q, k) -> (rows,): levels in reporting order, components as reported within each."""
    rows = values[order]
    as_reported = np.array_equal(components, np.arange(len(components)))
    return (rows if as_reported else rows[:, components]).reshape(-1)


def _with_columns(
    i: int, frame: pl.DataFrame, prepared: Prepared, more: Mapping[tuple[int, int], LevelColumns] | None
) -> pl.DataFrame:
    """The rows of a term with the further columns of its components; blank where another has them."""
    names = dict.fromkeys(name for columns in (more or {}).values() for name in columns)
    if not more or not names:
        return frame
    term, labels = prepared.design.terms[i], prepared.levels[i]
    order, components = np.asarray(labels.order), _reported_components(term, labels)
    values_by_name = {name: np.full((term.n_levels, term.n_components), np.nan) for name in names}
    for (of_term, component), columns in more.items():
        for name, values in columns.items() if of_term == i else ():
            values_by_name[name][:, component] = values
    return frame.with_columns(_numbers(n, _stack_rows(v, order, components)) for n, v in values_by_name.items())


def _reported_components(term: Term, labels: LevelLabels) -> np.ndarray:
    """(k,) component numbers in the order of the rows of one level."""
    if labels.coefficient_in_level:
        return np.lexsort((np.arange(term.n_components), term.component_regressor))
    return np.arange(term.n_components)


def _effect_labels(term: Term) -> list[str]:
    """(k,) name of the effect of each component, with '.j' for coefficient j of a random regression."""
    named = numbered if term.kind == "random" else lambda effect: [effect.name] * effect.n_regressors
    return [name for effect in term.effects for _ in effect.traits for name in named(effect)]


def _levels(term: Term, labels: LevelLabels, order: np.ndarray, components: np.ndarray) -> pl.Series:
    k = len(components)
    if not labels.coefficient_in_level:
        return labels.ids.gather(np.repeat(order, k))
    coefficient = [c for effect in term.effects for _ in effect.traits for c in effect.coefficients]
    reported = {c: labels.reported(c).gather(order) for c in dict.fromkeys(coefficient)}
    columns = pl.DataFrame([reported[coefficient[c]].alias(str(j)) for j, c in enumerate(components)])
    return columns.select(pl.concat_list(pl.all()).alias("level")).explode("level").to_series()


def _numbers(name: str, values: np.ndarray) -> pl.Series:
    return pl.Series(name, np.ascontiguousarray(values, dtype=np.float64), nan_to_null=True)


def _empty_solutions() -> pl.DataFrame:
    return pl.DataFrame(schema={c: pl.String if c in _TEXT else pl.Float64 for c in SOLUTION_COLUMNS})


def animals_frame(pedigree: Pedigree, generations: np.ndarray | None = None) -> pl.DataFrame:
    """id, sire, dam (blank: unknown, or a group), birth (as read, or blank), in the order of the pedigree file.

    generations: (n,) of selfing by code, the column selfings; None: there is no such column.
    """
    order = np.asarray(pedigree.file_order, np.int64)
    n = len(order)

    def parents(codes: np.ndarray) -> pl.Series:
        pedigree_codes = pl.Series(codes[order].astype(np.int64))
        return pedigree.ids.gather(
            pl.select(pl.when((pedigree_codes >= 0) & (pedigree_codes < n)).then(pedigree_codes)).to_series()
        )

    birth = np.full(n, np.nan) if pedigree.birth is None else pedigree.birth
    more = {} if generations is None else {"selfings": generations[order]}
    return pl.DataFrame(
        {
            "id": pedigree.ids.gather(order),
            "sire": parents(pedigree.sire),
            "dam": parents(pedigree.dam),
            "birth": pl.Series(birth[order], dtype=pl.Float64, nan_to_null=True),
            **more,
        }
    )
