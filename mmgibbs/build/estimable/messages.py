"""What is said of variances that the records do not determine, and of posteriors that do not exist."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mmgibbs.build.estimable.forms import Element
from mmgibbs.build.estimable.matrices import Block
from mmgibbs.build.estimable.posterior import Growth
from mmgibbs.models.design import Design
from mmgibbs.models.relationships.identity import Identity

MAX_LINES = 3  # of priors without a posterior
MAX_LABELS = 6  # of one matrix that a message lists


def describe_undetermined(
    undetermined: Sequence[tuple[Element, ...]], blocks: Sequence[Block], design: Design, is_sampled: bool
) -> list[str]:
    """A warning for each set of matrices whose elements the records do not determine, of all traits together."""
    by_blocks: dict[tuple[bool, tuple[int, ...]], list[tuple[Element, ...]]] = {}
    for elements in undetermined:
        key = len(elements) == 1, tuple(sorted({e.block for e in elements}))
        by_blocks.setdefault(key, []).append(elements)
    source = "the prior alone" if is_sampled else "the starting values alone"
    out = []
    for (is_single, _), groups in by_blocks.items():
        describe = _describe_none if is_single else _describe_several
        out.append(describe([e for elements in groups for e in elements], blocks, design, source))
    return out


def _describe_none(elements: Sequence[Element], blocks: Sequence[Block], design: Design, source: str) -> str:
    """Describe undetermined elements of one matrix."""
    block = blocks[elements[0].block]
    of_variances = all(e.row == e.column for e in elements)
    of_covariances = all(e.row != e.column for e in elements)
    come = f"The estimate{'s' * (len(elements) > 1)}, and the shares made of {_pronoun(elements)}, come from {source}"
    if block.residual_class is not None:
        advice = "Needed records that have both traits, or variances.residual.structure: diagonal"
        if of_variances:
            advice = "Needed more records, or fewer fixed effects"
    elif of_covariances:
        advice = "Needed levels with records of both, or structure: diagonal in the same section"
    else:
        advice = f"Leave out {_path(block)}, or the fixed effects that take up its differences"
    reason = "" if of_covariances else ": it differs by nothing that the fixed effects do not take up"
    if of_covariances:
        reason = ": no records, or levels, have both"
    return (
        f"variances.{block.name}: the records say nothing of {_name_elements(elements, blocks)}{reason}"
        f"{_describe_few_values(elements, blocks, design)}. {come}. {advice}"
    )


def _describe_several(elements: Sequence[Element], blocks: Sequence[Block], design: Design, source: str) -> str:
    involved = [blocks[i] for i in dict.fromkeys(e.block for e in elements)]
    of_one = len(involved) == 1
    several_classes = sum(b.residual_class is not None for b in involved) > 1
    what = "only combinations of them" if of_one or several_classes else "only their sums"
    what = "only their sum" if len(elements) == 2 and what == "only their sums" else what
    if any(b.unit for b in involved):
        what += " (a residual variance of 1 is a convention, which the records do not know)"
    return (
        f"variances.{involved[0].name}: the records do not determine each of {_name_elements(elements, blocks)}, {what}"
        f"{_describe_few_values(elements, blocks, design)}: how these are divided comes from {source}. "
        f"{_advise(involved, design)}"
    )


def _advise(involved: Sequence[Block], design: Design) -> str:
    terms = list(dict.fromkeys(_path(b) for b in involved if b.residual_class is None))
    if len(involved) == 1 and involved[0].is_random_term:
        return f"Leave a coefficient or an effect out of {terms[0]} (such as a lower degree), or add records at others"
    more = ""
    independent = [b for b in involved if b.term is not None and _is_independent(design, b)]
    has_residual = any(b.residual_class is not None for b in involved)
    if has_residual and len(independent) == 1 and not any(t.relationship.related for t in design.terms):
        name = independent[0].name
        more = f". If its levels are animals, say how they are related (model.random.{name}.relationship: pedigree)"
    needed = "repeated records, or records of relatives," if has_residual else "records in other combinations,"
    return f"Leave out {' or '.join(terms)}, or add {needed} which tell them apart{more}"


def _is_independent(design: Design, block: Block) -> bool:
    assert block.term is not None
    return type(design.terms[block.term].relationship) is Identity


def _describe_few_values(elements: Sequence[Element], blocks: Sequence[Block], design: Design) -> str:
    """Describe a random regression whose covariates have fewer values than coefficients."""
    for number in dict.fromkeys(e.block for e in elements):
        block = blocks[number]
        for effect in design.terms[block.term].effects if block.term is not None else ():
            if effect.covariates is None:
                continue
            size = max(float(np.abs(effect.covariates).max(initial=0.0)), np.finfo(float).tiny)
            values = len(np.unique(np.round(effect.covariates[effect.level >= 0] / size, 9), axis=0))
            if values < effect.n_regressors:
                return (
                    f" (its covariates have {values} different value{'s' * (values != 1)} in the records, too few for "
                    f"{effect.n_regressors} coefficient{'s' * (effect.n_regressors != 1)})"
                )
    return ""


def _path(block: Block) -> str:
    return f"model.{'markers' if block.markers else 'random'}.{block.name}"


def _pronoun(elements: Sequence[Element]) -> str:
    return "it" if len(elements) == 1 else "them"


def _name_elements(elements: Sequence[Element], blocks: Sequence[Block]) -> str:
    """'the variances of animal (y) and residual (y)'."""
    several = "s" * (len(elements) > 1)
    kind = f"(co)variance{several}"
    if all(e.row == e.column for e in elements):
        kind = f"variance{several}"
    elif all(e.row != e.column for e in elements):
        kind = f"covariance{several}"
    names = []
    for number in dict.fromkeys(e.block for e in elements):
        inside, block = [e for e in elements if e.block == number], blocks[number]
        if all(e.row != e.column for e in inside):
            labels = [f"{block.labels[e.column]} with {block.labels[e.row]}" for e in inside]
        else:
            labels = [block.labels[p] for p in sorted({p for e in inside for p in (e.row, e.column)})]
        shown = ", ".join(labels[:MAX_LABELS]) + ", ..." * (len(labels) > MAX_LABELS)
        names.append(f"{block.name} ({shown})")
    return f"the {kind} of {_join_names(names)}"


def _join_names(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def describe_untested(undetermined: Sequence[tuple[Element, ...]], blocks: Sequence[Block]) -> str:
    """Describe elements that a part of the records leaves open, where all records are too many to be tested."""
    named = _name_elements([e for elements in undetermined for e in elements], blocks)
    return (
        f"variances: a sample of families does not determine {named}, and all records and fixed effects are too many "
        "to be asked. Compare two runs with different starts or priors"
    )


def describe_growth(growths: Sequence[Growth], blocks: Sequence[Block], design: Design) -> str:
    """Why priors leave no posterior, a line each."""
    lines = [_describe_growth(growth, blocks, design) for growth in growths[:MAX_LINES]]
    more = len(growths) - MAX_LINES
    return "\n".join([*lines, *([f"and so for {more:,} more set{'s' * (more > 1)} of variances"] if more > 0 else [])])


def _describe_growth(growth: Growth, blocks: Sequence[Block], design: Design) -> str:
    names = list(dict.fromkeys(blocks[b].name for b in growth.blocks))
    random = [blocks[b] for b in growth.blocks if blocks[b].is_random_term]
    elements = [Element(b, p, p) for b, at in zip(growth.blocks, growth.positions, strict=True) for p in at]
    is_flat = all(m is not None and m.flat for m in (blocks[b].model for b in growth.blocks))
    priors = f"{'a ' * (len(names) == 1)}{'flat' if is_flat else 'given'} prior{'s' * (len(names) > 1)}"
    named = _name_elements(elements, blocks)
    where = f"variances.{names[0]}.prior: the posterior does not exist with {priors} of {named}"
    seen = f"{growth.contrasts:,} independent contrast{'' if growth.contrasts == 1 else 's'} after fixed effects"
    proper = f"a proper prior ({' and '.join(f'variances.{name}.prior: {{half_t: {{}}}}' for name in names)})"
    if growth.direction:
        few = _describe_few_values(elements, blocks, design) or (
            " (nearly all records have the same values of its covariates)"
        )
        return (
            f"{where}: the slope, or another combination of the coefficients, is not determined{few}: the records tell "
            f"it in {seen}, needed more than {growth.needed:,}; needed records at other values of the covariates, "
            f"fewer coefficients in {_path(random[0])}, or {proper}"
        )
    without = f"a model without {_path(random[0])}, or " if random else ""
    if growth.contrasts == 0:
        return (
            f"{where}: the records say nothing of it, since the fixed effects take up all of its differences; needed "
            f"{without}{proper}, which then decides alone"
        )
    return (
        f"{where}: the records tell it in {seen}, needed more than {growth.needed:,}; needed more levels with records, "
        f"{without}{proper}"
    )


def describe_prior_at_zero(block: Block) -> str:
    """A prior such as 1 / variance."""
    return (
        f"variances.{block.name}.prior: the posterior does not exist: with scale 0 and this df the prior has no finite "
        "integral near a variance of 0, where the likelihood stays above 0; needed a scale above 0, flat, or "
        "{half_t: {}}"
    )


def describe_too_few(design: Design, traits: Sequence[tuple[int, int, int, int, int]]) -> str:
    """traits: of each its number, records, equations of fixed effects, (co)variances and contrasts needed for these."""
    trait, records, equations, count, needed = traits[0]
    more = f" (and so for {len(traits) - 1} more of the traits)" if len(traits) > 1 else ""
    return (
        f"variances: {records:,} records of {design.traits[trait]} less {_equations(equations)} of fixed effects leave "
        f"{records - equations:,} for the {count:,} variances and covariances that it has a part in{more}: they do "
        "not determine so many, and estimates may not converge or lie on the boundary. Needed at least "
        f"{needed:,}, fewer traits in one analysis, or structure: diagonal in the sections of variances"
    )


def _equations(n: int) -> str:
    return f"{n:,} equation{'' if n == 1 else 's'}"
