"""The covariance matrices that a model estimates, as blocks of components that may covary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mmgibbs.models.covariance import CovarianceModel
from mmgibbs.models.design import Design
from mmgibbs.models.labels import parameter_labels
from mmgibbs.models.marker_priors import MARKER_PRIORS
from mmgibbs.models.markers import Markers
from mmgibbs.models.residual import ResidualModel


@dataclass(frozen=True)
class Block:
    """Components of one covariance matrix that may covary."""

    name: str  # of its section in `variances`, or of its term of SNP effects
    components: tuple[int, ...]
    traits: tuple[int, ...]  # of each component
    labels: tuple[str, ...]  # of each component
    model: CovarianceModel | None = None  # None: of SNP effects
    term: int | None = None
    residual_class: int | None = None
    markers: tuple[Markers, ...] = ()  # of each component
    unit: tuple[int, ...] = ()  # positions whose variance is 1 by convention

    @property
    def size(self) -> int:
        return len(self.components)

    @property
    def is_random_term(self) -> bool:
        return self.term is not None


def list_estimated_blocks(
    design: Design, covariances: Sequence[CovarianceModel | None], residual: ResidualModel
) -> list[Block]:
    """List the blocks of matrices that are estimated, and the residual variances that are 1 by convention.

    Data do not know the scale of a liability: what cannot be told from such a variance is not determined.
    """
    implied = {m.left.term for m in design.markers if m.left is not None}
    blocks = []
    for i, model in enumerate(covariances):
        if model is None or model.fixed or design.terms[i].name in implied:
            continue
        labels, traits = parameter_labels(design.terms[i], design.traits), design.terms[i].component_trait
        for b in model.blocks:
            of_block = tuple(int(traits[c]) for c in b), tuple(labels[c] for c in b)
            blocks.append(Block(design.terms[i].name, b, *of_block, model, term=i))
    for c, model in enumerate(residual.matrices):
        observed = design.patterns[design.class_of_pattern == c].any(axis=0)
        for b in model.blocks:
            known = tuple(t for t in b if observed[t] and (not model.fixed or t in model.unit))
            if known:
                unit = tuple(i for i, t in enumerate(known) if t in model.unit)
                of_traits = tuple(design.traits[t] for t in known)
                blocks.append(Block(model.name, known, known, of_traits, model, residual_class=c, unit=unit))
    return [*blocks, *_list_marker_blocks(design)]


def _list_marker_blocks(design: Design) -> list[Block]:
    """List the blocks of SNP effects of equal variance.

    Other priors are mixtures, which differ from normal effects in more than their variance.
    """
    by_key: dict[str, list[Markers]] = {}
    for m in design.markers:
        is_fixed = m.prior.fixed if m.joint is None else m.joint.fixed
        kind = MARKER_PRIORS.get(m.prior.kind)
        if kind is not None and kind.is_normal and not is_fixed:
            by_key.setdefault(m.key if m.joint is None else m.joint_key, []).append(m)
    out = []
    for terms in by_key.values():
        traits = tuple(m.trait for m in terms)
        labels = tuple(design.traits[t] for t in traits)
        out.append(Block(terms[0].name, tuple(range(len(terms))), traits, labels, markers=tuple(terms)))
    return out
