"""run.json: versions, the resolved analysis, what was read and left out, sizes, choices, times;
and what `mmgibbs check` prints.
"""

from __future__ import annotations

import datetime
import platform
from collections.abc import Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

import numpy as np

from mmgibbs.equations.nonzeros import count_nonzeros
from mmgibbs.equations.partition import partition
from mmgibbs.models.labels import state_labels
from mmgibbs.results.relationships import described

if TYPE_CHECKING:
    from mmgibbs.build.assemble import Assembled
    from mmgibbs.config import Analysis
    from mmgibbs.data.prepared import Prepared
    from mmgibbs.equations.structured import StructuredEquations
    from mmgibbs.models.design import Design
    from mmgibbs.models.markers import JointPriorSpec
    from mmgibbs.models.terms import Term
    from mmgibbs.posterior.parameters import NamedParameters

COUNT_NONZEROS_UP_TO = 3_000_000  # records; beyond, counting costs more than it tells


@cache
def versions() -> dict[str, str]:
    names = ("mmgibbs", "numpy", "scipy", "numba", "polars", "arviz-stats")
    version_of = {"python": platform.python_version()}
    for name in names:
        try:
            version_of[name] = version(name)
        except PackageNotFoundError:
            version_of[name] = "not installed"
    return version_of


def common_record(analysis: Analysis) -> dict:
    """Return the part of run.json that every run has."""
    return {
        "name": analysis.name,
        "finished": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "versions": versions(),
        "analysis": analysis.resolved(),
        "seed": analysis.sampler.seed,
    }


def model_record(
    analysis: Analysis,
    prepared: Prepared,
    equations: StructuredEquations,
    parameters: NamedParameters,
    facts: dict,
    seconds: dict,
    warnings: Sequence[str],
    notes: Sequence[str],
) -> dict:
    """Return the part of run.json that a mixed model has."""
    design = prepared.design
    nonzeros = count_nonzeros(design)[0] if design.n_records <= COUNT_NONZEROS_UP_TO else None
    return {
        **common_record(analysis),
        "inbreeding": analysis.data.inbreeding,
        "data": prepared.counts,
        "equations": equations.n_equations,
        "nonzeros": nonzeros,
        "bytes": equations.bytes,
        "block_kinds": {t.name: block_kind(t) for t in design.terms},
        "relationships": {t.name: described_relationship(t) for t in design.terms if t.kind == "random"},
        "levels": {t.name: t.n_levels for t in design.terms},
        "reference_levels": prepared.references,
        **({"markers": described_markers(design)} if design.markers else {}),
        "partition": equations.partition.kind,
        "blocks": len(equations.partition.blocks),
        "device": "cpu",
        "precision": "single" if equations.real == np.float32 else "double",
        **facts,
        "variances_counted": parameters.variances_counted,
        "scales": scales(design, parameters),
        "seconds": {**seconds, "reading": prepared.timings},
        "warnings": list(warnings),
        "notes": [*design.notes, *parameters.notes, *notes],
    }


def scales(design: Design, parameters: NamedParameters) -> dict[str, dict[str, str]]:
    """Trait -> name of a heritability -> the scale that it is on."""
    responses = {r.trait: r for r in design.responses}
    out = {}
    for t, trait in enumerate(design.traits):
        named = {name.partition("[")[0] for name in parameters.draws if _is_of_trait(name, trait)}
        response = responses.get(t)
        known = {"h2": "the trait's own"} if response is None else response.describe_scales()
        out[trait] = {name: words for name, words in known.items() if name in named}
    return {trait: of for trait, of in out.items() if of}


def _is_of_trait(name: str, trait: str) -> bool:
    inside = name.partition("[")[2].removesuffix("]")
    return inside == trait or inside.startswith((f"{trait}:", f"{trait}|"))


def described_markers(design: Design) -> list[dict]:
    """Describe each term of SNP effects with the numbers of its prior, as plain values."""
    out = []
    for m in design.markers:
        spec = m.prior
        options = {key: value for key, value in spec.options.items() if value not in (None, ())}
        joint = {} if m.joint is None or not m.first else {"joint": described_joint(m.joint, design.traits)}
        out.append(
            joint
            | {
                "term": m.name,
                "trait": design.traits[m.trait],
                "prior": spec.kind,
                "SNPs": m.n_snps,
                "genotyped_animals": m.n_genotyped,
                "records": int(np.count_nonzero((m.animal >= 0) & design.patterns[:, m.trait][design.pattern])),
                "effect_variance": {"start": spec.start, "fixed": spec.fixed, "df": spec.df, "scale": spec.scale},
                "options": {k: list(v) if isinstance(v, tuple) else v for k, v in options.items()},
            }
        )
    return out


def described_joint(spec: JointPriorSpec, traits: Sequence[str]) -> dict:
    """The prior of effects on several traits, as plain values."""
    states = dict(zip(state_labels(spec, traits), spec.pi.tolist(), strict=True))
    counts = {} if spec.counts is None else {"counts": spec.counts.tolist()}
    return {
        "traits": [traits[t] for t in spec.traits],
        "one_by_one": spec.one_by_one,
        "effect_covariance": {"start": spec.start.tolist(), "fixed": spec.fixed, "df": spec.df,
                              "scale": spec.scale.tolist()},
        **({"states": states} | counts if len(states) > 1 else {}),
    }  # fmt: skip


def described_relationship(term: Term) -> dict:
    """Describe a random term for run.json: the relationships of its levels, and its degrees of freedom."""
    reliability = "1 - PEV / (K_ll variance)" if term.relationship.known_diagonal else None
    description = {"degrees_of_freedom": term.n_prior_levels, "reliability": reliability}
    return described(term.relationship) | description


def block_kind(term: Term) -> str:
    """'pedigree, 4 x 4' and the like: relationship of the levels and size of their blocks."""
    most = max(len(effect.slots) for effect in term.effects)
    several = f", up to {most} levels per record" if term.has_several_levels else ""
    return f"{term.kind}, {term.relationship.words}, {term.n_components} x {term.n_components}{several}"


def model_counts(analysis: Analysis, prepared: Prepared, assembled: Assembled) -> dict:
    """Count what `mmgibbs check` prints.

    These are records, levels, equations, nonzeros in and outside the diagonal blocks of each partition, colours, bytes.
    """
    from mmgibbs.build.connectivity import count_common_levels
    from mmgibbs.equations.structured import structured_equations

    design = prepared.design
    partitions = {kind: partition(design, kind) for kind in ("effect", "equal", "colour")}
    rows: dict[str, dict[str, int | None]] = {}
    for kind, split in partitions.items():
        counted = count_nonzeros(design, split) if design.n_records <= COUNT_NONZEROS_UP_TO else None
        total, inside = (None, None) if counted is None else counted
        rows[kind] = {
            "blocks": len(split.blocks),
            "largest_block": max(block.n_equations for block in split.blocks),
            "nonzeros": total,
            "inside_diagonal_blocks": inside,
            "outside_diagonal_blocks": None if counted is None else counted[0] - counted[1],
        }
    colours = {t.name: sum(1 for b in partitions["colour"].blocks if b.term == i) for i, t in enumerate(design.terms)}
    equations = structured_equations(design, partition(design), analysis.sampler.precision)
    return {
        "analysis": analysis.name,
        "data": prepared.counts,
        "terms": [
            {
                "term": t.name,
                "kind": block_kind(t),
                "levels": t.n_levels,
                "equations": t.n_equations,
                "colours": colours[t.name],
            }
            for t in design.terms
        ],
        "common_levels": [c.as_dict() for c in count_common_levels(design)],
        "markers": described_markers(design),
        "equations": design.n_equations,
        "bytes": equations.bytes,
        "partitions": rows,
        "notes": list(design.notes),
        "warnings": list(assembled.notes),
    }
