"""Before anything is estimated: do the records determine the variances, and has a sampled run a posterior?

One rule for every method and engine. It looks at error contrasts (contrasts.py) of a part of the records first
(families.py): what these determine, all records do. Where something is left, all records are asked. Both cost tenths of
a second for ordinary data, and about a minute where millions of records leave a variance undetermined.

Which (co)variances the records determine in combination alone, or not at all.

With normal records y ~ N(X b, sum_i psi_i V_i) the likelihood of error contrasts depends on psi through M V M alone, M
the projection that takes out X. It is linear in psi, so that psi is determined exactly where the matrices M V_i M are
linearly independent: where the expected information, tr(M V_i M V_j) / 2 at V = I, is regular (Searle, Casella &
McCulloch 1992, chapter 11; MINQUE of Rao 1971 has the same condition). A combination d with sum_i d_i M V_i M = 0 can
be added to psi without any change of the likelihood.

Random contrasts G show that: sum_i d_i G'V_i G = 0 for all d of that kind, and with probability 1 for no other, if the
forms have as many elements as there are matrices. Traits with liabilities have no scale of their own, so that their
residual variance, 1 by convention, counts as one more (matrices.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from mmgibbs.build.estimable import messages
from mmgibbs.build.estimable.contrasts import draw_contrasts, mask_flat_components
from mmgibbs.build.estimable.families import sample_families
from mmgibbs.build.estimable.forms import Element, Form, Forms, compute_forms
from mmgibbs.build.estimable.matrices import Block, list_estimated_blocks
from mmgibbs.build.estimable.posterior import (
    Growth,
    count_contrasts_needed,
    find_improper_at_zero,
    find_improper_blocks,
    find_unlimited_growth,
)
from mmgibbs.errors import ModelError
from mmgibbs.likelihood.trait_groups import group_traits, take_traits
from mmgibbs.models.covariance import CovarianceModel
from mmgibbs.models.design import Design
from mmgibbs.models.residual import ResidualModel

NOTHING = 1e-9  # size of a form, in units of its own variance, up to which the records say nothing of it
DEPENDENT = 1e-6  # singular value of forms of length 1, up to which they depend on each other
INVOLVED = 1e-6  # elements of the projection on directions that are not determined


def find_undetermined(forms: Forms, blocks: Sequence[Block]) -> list[tuple[Element, ...]]:
    """Elements that are determined together alone, as a sum or another combination; or one that is not at all."""
    out: list[tuple[Element, ...]] = []
    for of_traits in forms.of_traits.values():
        dependent = _find_dependent(of_traits)
        out += [elements for elements in dependent if any(_is_free(e, blocks) for e in elements)]
    return out


def _is_free(element: Element, blocks: Sequence[Block]) -> bool:
    return not (element.row == element.column and element.row in blocks[element.block].unit)


def _find_dependent(forms: Sequence[Form]) -> list[tuple[Element, ...]]:
    elements = [form.element for form in forms]
    columns = np.column_stack([form.matrix.ravel() for form in forms])
    lengths = np.linalg.norm(columns, axis=0)
    known = lengths > NOTHING
    out: list[tuple[Element, ...]] = [(e,) for e, is_known in zip(elements, known, strict=True) if not is_known]
    kept = np.flatnonzero(known)
    if kept.size < 2:
        return out
    _, values, directions = np.linalg.svd(columns[:, kept] / lengths[kept], full_matrices=False)
    rank = int(np.count_nonzero(values > DEPENDENT))
    null = directions[rank:]
    joined = csr_array(np.abs(null.T @ null) > INVOLVED)
    involved = joined.diagonal()
    label = connected_components(joined, directed=False)[1]
    for component in np.unique(label[involved]):
        out.append(tuple(elements[kept[i]] for i in np.flatnonzero(label == component)))
    return out


SIZES = (500, 1500)  # records of the parts that are looked at first
CONTRASTS = (16, 64)  # of each trait, at least and at most
CONTRASTS_PER_ELEMENT = 2  # error contrasts of a trait for each of its (co)variances, below which there are too few


@dataclass(frozen=True)
class Findings:
    """Findings on what some of the records leave open, and on all records."""

    elements: list[tuple[Element, ...]]
    growth: list[Growth]


def check_variances(
    design: Design, covariances: Sequence[CovarianceModel | None], residual: ResidualModel, is_sampled: bool
) -> list[str]:
    """Warnings of (co)variances that the records do not determine; ModelError for priors that leave no posterior.

    is_sampled: by Gibbs; variances are estimated by REML otherwise.
    """
    blocks = list_estimated_blocks(design, covariances, residual)
    if not any(_is_estimated(block) for block in blocks):
        return []
    if is_sampled:
        for number in find_improper_at_zero(blocks):
            raise ModelError(messages.describe_prior_at_zero(blocks[number]))
    groups = [] if is_sampled or design.markers or design.responses else group_traits(design, covariances, residual)
    if len(groups) > 1:
        findings, is_complete = _look_at_groups(design, covariances, residual, groups, blocks)
    else:
        findings, is_complete = _look_at_records(design, blocks, is_sampled)
    if findings.growth and is_complete:
        raise ModelError(messages.describe_growth(findings.growth, blocks, design))
    if not is_complete:
        return [messages.describe_untested(findings.elements, blocks)] if findings.elements else []
    return [
        *messages.describe_undetermined(findings.elements, blocks, design, is_sampled),
        *_find_too_few(design, blocks, is_sampled),
    ]


def _look_at_groups(
    design: Design,
    covariances: Sequence[CovarianceModel | None],
    residual: ResidualModel,
    groups: Sequence[tuple[int, ...]],
    blocks: Sequence[Block],
) -> tuple[Findings, bool]:
    """Test groups of traits that have nothing in common, one after another, as many trials are."""
    elements: list[tuple[Element, ...]] = []
    is_complete = True
    for traits in groups:
        group = take_traits(design, covariances, residual, traits)
        of_group = list_estimated_blocks(group.design, group.covariances, group.residual)
        numbers = [i for i, block in enumerate(blocks) if set(block.traits) <= set(traits)]  # in the same order
        findings, is_known = _look_at_records(group.design, of_group, is_sampled=False)
        is_complete &= is_known
        elements += [tuple(e._replace(block=numbers[e.block]) for e in together) for together in findings.elements]
    return Findings(elements, []), is_complete


def _is_estimated(block: Block) -> bool:
    return any(i not in block.unit for i in range(block.size))


def _look_at_records(design: Design, blocks: Sequence[Block], is_sampled: bool) -> tuple[Findings, bool]:
    """Test all records, or a part of them that leaves nothing open; False where all are too many."""
    m = int(np.clip(count_contrasts_needed(blocks), *CONTRASTS))
    m = max(m, _count_contrasts_for_elements(blocks))
    findings = Findings([], [])
    for seed, size in enumerate((*SIZES, design.n_records)):
        if size < design.n_records < 2 * size:  # a part that is most of them saves nothing
            continue
        records = sample_families(design, size, seed)
        contrasts = draw_contrasts(design, records, m)
        if contrasts is None:
            return findings, False
        forms = compute_forms(design, blocks, contrasts)
        growth = find_unlimited_growth(design, blocks, forms, contrasts) if is_sampled else []
        findings = Findings(find_undetermined(forms, blocks), growth)
        if records.size == design.n_records or not (findings.elements or findings.growth):
            break
    return findings, True


def _count_contrasts_for_elements(blocks: Sequence[Block]) -> int:
    """m with m (m + 1) / 2 elements of a form, twice as many as there are elements of one pair of traits."""
    of_traits: dict[tuple[int, int], int] = {}
    for block in blocks:
        for b, u in enumerate(block.traits):
            for t in block.traits[: b + 1]:
                pair = min(t, u), max(t, u)
                of_traits[pair] = of_traits.get(pair, 0) + 1
    return int(np.ceil(2 * np.sqrt(max(of_traits.values(), default=1)))) + 1


def _find_too_few(design: Design, blocks: Sequence[Block], is_sampled: bool) -> list[str]:
    """Warnings of traits with fewer than two error contrasts for each (co)variance that they have a part in."""
    chosen = find_improper_blocks(blocks) if is_sampled else range(len(blocks))
    observed = design.patterns[design.pattern].sum(axis=0)
    out = []
    for trait in range(design.n_traits):
        count = 0
        for block in (blocks[i] for i in chosen):
            inside = sum(t == trait for t in block.traits)
            count += inside * (inside + 1) // 2 + inside * (block.size - inside)
        equations = sum(_count_flat_equations(design, i, trait) for i in range(len(design.terms)))
        if int(observed[trait]) - equations < CONTRASTS_PER_ELEMENT * count:
            needed = CONTRASTS_PER_ELEMENT * count
            out.append((trait, int(observed[trait]), equations, count, needed))
    return [messages.describe_too_few(design, out)] if out else []


def _count_flat_equations(design: Design, number: int, trait: int) -> int:
    term = design.terms[number]
    of_trait = term.component_trait == trait
    active = np.ones((term.n_levels, term.n_components), bool) if term.active is None else term.active
    if term.kind == "random":
        return int(active[term.n_without_fixed_groups :, of_trait].sum())
    return int(active[:, of_trait & mask_flat_components(term)].sum())
