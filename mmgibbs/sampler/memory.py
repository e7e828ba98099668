"""What a chain needs in memory: at work, and once it has ended."""

from __future__ import annotations

import numpy as np

from mmgibbs.models.design import Design
from mmgibbs.sampler.mixed_model import MixedModel
from mmgibbs.sampler.schedule import Schedule

MOMENTS = 8 * 4  # bytes of an effect in the results of a chain


def bytes_per_chain(design: Design, real: np.dtype) -> int:
    """State, moments and one fetched copy of a chain: Theta, e, four moments, two copies of Theta on the way to
    them; with traits that are not normal its own y, and what is known of their records (16 bytes at most).
    """
    n = design.n_effects
    of_records = design.n_records * design.n_traits * (2 if design.responses else 1)
    known = design.n_records * 16 * len(design.responses)
    return (n + of_records) * np.dtype(real).itemsize + n * 8 * 6 + known


def bytes_of_results(model: MixedModel, schedule: Schedule) -> int:
    """Count the bytes of a finished chain without markers: moments of all effects, and its draws."""
    sizes = [c.start.size for c in (*model.covariances, model.residual) if c is not None]
    components = {t.name: t.n_components for t in model.design.terms}
    saved = sum(codes.size * components[name] for name, codes in model.saved.items())
    return model.design.n_effects * MOMENTS + schedule.n_kept * (sum(sizes) + saved) * 8 + model.followed_bytes
