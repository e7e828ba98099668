"""The priors of SNP effects, by the names in models/marker_priors.py; others come from entry points."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points
from typing import cast

from mmgibbs.errors import ModelError, nearest
from mmgibbs.models.marker_priors import GROUP, MARKER_PRIORS
from mmgibbs.models.markers import MarkerPriorSpec
from mmgibbs.sampler.markers.priors.base import MarkerPrior, Site


def make_prior(spec: MarkerPriorSpec, p: int, site: Site) -> MarkerPrior:
    """The prior of one chain of a term of p SNPs."""
    if spec.kind in MARKER_PRIORS:
        module, name = MARKER_PRIORS[spec.kind].place.split(".")
        return cast(MarkerPrior, getattr(import_module(f"{__name__}.{module}"), name)(spec, p, site))
    of_plugins = {e.name: e for e in entry_points(group=GROUP)}
    if spec.kind not in of_plugins:
        known = nearest(spec.kind, [*MARKER_PRIORS, *of_plugins])
        raise ModelError(f"there is no prior of SNP effects '{spec.kind}'; {known}")
    return cast(MarkerPrior, of_plugins[spec.kind].load()(spec, p, site))
