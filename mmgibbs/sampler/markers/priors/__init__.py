"""The priors of SNP effects by name; those of plugins come from the entry points `mmgibbs.marker_priors`."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points

from mmgibbs.errors import ModelError, nearest
from mmgibbs.models.markers import MarkerPriorSpec
from mmgibbs.sampler.markers.priors.base import MarkerPrior, Site
from mmgibbs.sampler.markers.priors.bayes_a import OwnVariances, OwnVariancesOrZero
from mmgibbs.sampler.markers.priors.bayes_r import Classes
from mmgibbs.sampler.markers.priors.horseshoe import Horseshoe
from mmgibbs.sampler.markers.priors.lasso import Lasso
from mmgibbs.sampler.markers.priors.ridge import Ridge

GROUP = "mmgibbs.marker_priors"
PRIORS: dict[str, Callable[[MarkerPriorSpec, int, Site], MarkerPrior]] = {
    "rr": Ridge,
    "bayes_a": OwnVariances,
    "bayes_b": OwnVariancesOrZero,
    "bayes_c": Classes,
    "bayes_r": Classes,
    "lasso": Lasso,
    "horseshoe": Horseshoe,
}


def make_prior(spec: MarkerPriorSpec, p: int, site: Site) -> MarkerPrior:
    """The prior of one chain of a term of p SNPs."""
    if spec.kind in PRIORS:
        return PRIORS[spec.kind](spec, p, site)
    of_plugins = {e.name: e for e in entry_points(group=GROUP)}
    if spec.kind not in of_plugins:
        known = nearest(spec.kind, [*PRIORS, *of_plugins])
        raise ModelError(f"there is no prior of SNP effects '{spec.kind}'; {known}")
    return of_plugins[spec.kind].load()(spec, p, site)
