"""Mixed models of the examples: their equations, residual classes, everything sampled, traits that are not normal."""

from dataclasses import replace

import numpy as np
from reference import models

from mmgibbs.equations.partition import partition
from mmgibbs.equations.structured import StructuredEquations, structured_equations
from mmgibbs.models.covariance import CovarianceModel, blocks_recorded_together, full_block
from mmgibbs.models.families import Categories, Count, Interval
from mmgibbs.models.priors import FLAT, InverseWishart
from mmgibbs.models.relationships.identity import Identity
from mmgibbs.models.residual import ResidualModel, fold_classes
from mmgibbs.sampler.mixed_model import MixedModel


def equations_of(of, kind: str = "colour", precision: str = "double") -> StructuredEquations:
    """Of a design, or of an example or a model that has one."""
    design = getattr(of, "design", of)
    return structured_equations(design, partition(design, kind), precision)


def starting_point(example, seed: int = 5) -> list[np.ndarray]:
    """Effects at random, 0 where a component is held there."""
    rng = np.random.default_rng(seed)
    terms = example.design.terms
    return [rng.normal(size=(t.n_levels, t.n_components)) * (1.0 if t.active is None else t.active) for t in terms]


def with_classes(design, names, seed=5):
    """Classes drawn at random for the records of a design."""
    of_record = np.random.default_rng(seed).integers(0, len(names), design.n_records)
    pattern, patterns, of_pattern = fold_classes(design.pattern, design.patterns, of_record, len(names))
    return replace(design, pattern=pattern, patterns=patterns, pattern_class=of_pattern, residual_classes=names)


def matrices(R, n):
    """(n, T, T): very different ones."""
    scales = np.array([1.0, 4.0, 0.2])[:n, None, None]
    return R * scales + np.eye(len(R)) * np.arange(n)[:, None, None] / 3


def example_of(name, n=3):
    """(design with classes, G, R of each class)"""
    example = models.example(name)
    return with_classes(example.design, tuple("abc"[:n])), example.G, matrices(np.asarray(example.R), n)


def sampled(design, G, R):
    """Everything sampled under proper priors."""

    def covariance(start, blocks):
        start = np.asarray(start, float)
        return CovarianceModel(start, False, blocks, InverseWishart(len(start) + 4.0, 3.0 * start))

    own = [design.patterns[design.class_of_pattern == c] for c in range(max(1, len(design.residual_classes)))]
    each = R if np.ndim(R) == 3 else [R]
    residual = tuple(covariance(r, blocks_recorded_together(p)) for r, p in zip(each, own, strict=True))
    terms = tuple(None if g is None else covariance(g, full_block(len(g))) for g in G)
    return MixedModel(design, terms, ResidualModel(residual, design.residual_classes))


def one_trait(kind):
    """A trait that is not normal, of 40 animals."""
    rng = np.random.default_rng(3)
    n = 40
    effects = [models.Effect("", np.arange(n, dtype=np.int32), (0,))]
    animal = models.random_term("animal", effects, Identity(n), n)
    intercept = models.class_term("intercept", np.zeros(n, int), 1, [0])
    G, R = np.array([[0.8]]), np.array([[1.0]])
    plain = models.with_records(rng, n, [intercept, animal], [None, G], R)
    liability = plain.y[:, 0] - np.median(plain.y)
    match kind:
        case "binary" | "ordinal":
            inner = [0.0] if kind == "binary" else [0.0, 0.6]
            labels = tuple("abc"[: len(inner) + 1])
            response = Categories(0, labels, np.searchsorted(inner, liability).astype(np.int16))
        case "censored":
            lower = np.minimum(liability, 0.5)
            response = Interval(0, lower, np.where(liability > 0.5, np.inf, lower))
        case _:
            response = Count(0, rng.poisson(np.exp(liability)).astype(float), np.ones(n))
    unit = kind in ("binary", "ordinal")
    prior = FLAT if unit else InverseWishart(9.0, 9.0 * R)
    residual = CovarianceModel(R, unit, full_block(1), prior, unit=(0,) if unit else ())
    design = replace(plain, y=response.start()[:, None], responses=(response,))
    return MixedModel(design, (None, CovarianceModel(G, False, full_block(1), InverseWishart(6.0, 5.0 * G))), residual)
