"""The marginal engine: variances with the location effects integrated out, and the effects drawn exactly given them.

The sampler moves psi (sampler/marginal) by `integrated` (likelihood/integrated.py); a sweep is one draw
theta ~ N(C^-1 b, C^-1) with the factor that the last psi left. Normals are keyed by level in model order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from mmgibbs.draws.normal import fill_normals
from mmgibbs.draws.purpose import LOCATION, stream
from mmgibbs.engines.base import HostState, Key
from mmgibbs.engines.direct.costs import FactorCost, Joined, describe_too_large, factor_cost, least_cost
from mmgibbs.engines.markers import with_markers
from mmgibbs.engines.scores import with_scores
from mmgibbs.equations.structured import StructuredEquations
from mmgibbs.errors import ModelError
from mmgibbs.likelihood.coefficients import coefficients
from mmgibbs.likelihood.integrated import IntegratedLikelihood
from mmgibbs.likelihood.liabilities import LiabilityLikelihood
from mmgibbs.machine.memory import refuse_beyond_free
from mmgibbs.models.covariance import full_block
from mmgibbs.models.design import Design
from mmgibbs.models.families import Response
from mmgibbs.models.residual import stack_classes

OTHER_ENGINE = "a machine with more memory, or another sampler.engine"


class MarginalEngine(HostState):
    """Exact draws of theta given variances and y, independent of the last draw.

    joined: components that may covary (None: all), which the pattern of the factor is made for.
    """

    name = "marginal"
    options = ("joined",)
    auto_obstacle = staticmethod(describe_too_large)

    def __init__(self, equations: StructuredEquations, joined: Joined | None = None):
        super().__init__(equations, np.dtype(np.float64))
        design = equations.design
        of_terms, of_residuals = _all_joined(design) if joined is None else joined
        known = coefficients(design, of_terms, of_residuals, columns_alone=True, advice=OTHER_ENGINE)
        refuse_beyond_free(
            known.bytes,
            f"a sparse factor of {design.n_equations:,} equations ({known.symbolic.nonzeros:,} elements)",
            OTHER_ENGINE,
        )
        self.liability_likelihood: LiabilityLikelihood | None = None
        if design.responses:
            position = np.argsort(equations.records.record)
            self.liability_likelihood = LiabilityLikelihood(known, position, power_of_scale(design.responses[0]))
        self.integrated = self.liability_likelihood or IntegratedLikelihood(known)
        self._streams = [stream(LOCATION, i) for i in range(len(design.terms))]
        self._active = self.integrated.coefficients.explicit.layout.active
        self._theta = [np.zeros((t.n_levels, t.n_components)) for t in design.terms]

    @staticmethod
    def refuses(design: Design) -> str | None:
        """Describe what it refuses: see EngineFacts.refuses."""
        return with_markers(design) or unsupported_liabilities(design) or with_scores(design)

    @staticmethod
    def likelihood_costs(design: Design, joined: Joined) -> Iterator[FactorCost]:
        """Yield a bound without fill, mostly enough to know that it does not win, then what elimination says."""
        yield least_cost(design, *joined)
        yield factor_cost(design, *joined)

    @staticmethod
    def count_bytes(design: Design, joined: Joined) -> int:
        """Count the bytes of a factor and its lists."""
        return factor_cost(design, *joined).bytes

    @property
    def theta(self) -> list[np.ndarray]:
        return self._theta

    def put_theta(self, term: int, theta: np.ndarray) -> None:
        if theta is not self._theta[term]:
            self._theta[term][:] = theta
        self.moved()

    def set_variances(self, G: Sequence[np.ndarray | None], R: np.ndarray) -> None:
        super().set_variances(G, R)
        matrices = [np.asarray(g, float).ravel() for g in G if g is not None]
        if not np.isfinite(self.integrated.evaluate(np.concatenate([*matrices, stack_classes(self.R).ravel()]))):
            raise ModelError("the mixed-model equations are not positive definite at these variances")
        self.integrated.keep()

    def sweep(self, number: int, key: Key) -> None:
        """theta at the psi that `integrated` keeps; `number` and key = (seed, chain) say which draw it is."""
        layout = self.integrated.coefficients.explicit.layout
        z = np.empty(layout.size)
        for i, normals in enumerate(layout.split(z)):
            fill_normals(normals, number, np.arange(len(normals)), self._streams[i], key[0], key[1])
        drawn = np.zeros(layout.size)
        drawn[self._active] = self.integrated.draw(z[self._active])
        for theta, lists, drawn_theta in zip(self._theta, self.equations.terms, layout.split(drawn), strict=True):
            theta[:] = drawn_theta[lists.code]
        self.moved()


def _all_joined(design: Design) -> Joined:
    """Join every component of a term with every other, and every trait with every other."""
    of_terms = tuple(full_block(t.n_components) if t.kind == "random" else None for t in design.terms)
    return of_terms, (full_block(design.n_traits),) * max(1, len(design.residual_classes))


def power_of_scale(response: Response) -> float:
    """M of the density of the scale of the liabilities; 0 of records that set the scale."""
    if not response.has_unit_residual:
        return 0.0
    return float(np.count_nonzero(response.one_sided_masks()[0]) + response.n_free_thresholds)


def unsupported_liabilities(design: Design) -> str | None:
    """Describe traits that are not normal and that the engine cannot do; None: nothing."""
    if not design.responses:
        return None
    name, alternatives = design.traits[design.responses[0].trait], "use engine: serial, structured or pcg on the CPU"
    if design.n_traits > 1:
        return f"trait '{name}', which is not normal, beside other traits; {alternatives}"
    if design.residual_classes:
        return f"residual classes of trait '{name}', which is not normal; {alternatives}"
    return None
