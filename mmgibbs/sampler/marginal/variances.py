"""What the samplers of all variances share: x and log p(x), and the matrices that x stands for."""

from __future__ import annotations

import numpy as np

from mmgibbs.engines.base import Integrated
from mmgibbs.errors import ModelError
from mmgibbs.posterior.draw_names import RESIDUAL, matrix_name
from mmgibbs.posterior.parameters import Parameter
from mmgibbs.sampler.covariances import CovarianceMatrices
from mmgibbs.sampler.marginal.log_cholesky import LogCholesky
from mmgibbs.sampler.marginal.moves import Shape
from mmgibbs.sampler.marginal.target import Target
from mmgibbs.sampler.mixed_model import MixedModel

PREFIX = "marginal."


class SampledVariances:
    """The variances of a chain as one vector x; key = (seed, chain). A subclass draws them."""

    def __init__(
        self,
        model: MixedModel,
        space: LogCholesky,
        likelihood: Integrated,
        matrices: CovarianceMatrices,
        burn_in: int,
        key: tuple[int, int],
    ):
        self.model, self.likelihood, self.matrices, self.burn_in, self.key = model, likelihood, matrices, burn_in, key
        self._take_space(space)
        p = len(self.space)
        self.blocks = self.space.blocks()
        self.parameters = _parameters(model)
        self._x = np.zeros(p)
        self._psi: np.ndarray | None = None  # all elements of G and R at x; None before the first sweep
        self._take_shape(Shape(np.zeros(p), np.eye(p)))  # before any draw

    def _start(self, x: np.ndarray) -> None:
        """Begin at x; ModelError where there is no likelihood."""
        self._x = x
        self._value, self._psi = self.target.evaluate(x)
        if not np.isfinite(self._value):
            raise ModelError(
                "variances: the mixed-model equations are not positive definite at the starting variances: they differ "
                "too much, or effects cannot be separated; needed other starts (variances.*.start) or fewer effects"
            )
        self.likelihood.keep()

    def _take_space(self, space: LogCholesky) -> None:
        """The coordinates of the variances, and the density in them."""
        self.space, self.target = space, Target(space, self.likelihood)

    def _take_shape(self, shape: Shape) -> None:
        """A shape, with a root of the conditional covariance of each block."""
        self.shape = shape
        precision = np.linalg.inv(shape.root @ shape.root.T)
        self._roots = [np.linalg.cholesky(np.linalg.inv(precision[np.ix_(b, b)])) for b in self.blocks]

    def draws(self) -> dict[str, np.ndarray]:
        """Views of psi at x, by the names of the matrices."""
        psi, out, at = self._psi_of_matrices() if self._psi is None else self._psi, {}, 0
        for i in self.model.random_terms:
            k = self.model.design.terms[i].n_components
            out[matrix_name(i)] = psi[at : at + k * k].reshape(k, k)
            at += k * k
        R = psi[at:].reshape(-1, *self.model.residual.matrices[0].start.shape)
        return out | {RESIDUAL: R if self.model.residual.classes else R[0]}

    def _psi_of_matrices(self) -> np.ndarray:
        """Concatenate all elements of G and R as the other steps have them."""
        G = [g.ravel() for g in self.matrices.G if g is not None]
        return np.concatenate([*G, self.matrices.R.ravel()])


def _parameters(model: MixedModel) -> dict[str, Parameter]:
    """List the parameters under the names of covariances.py."""
    out = {}
    for i in model.random_terms:
        component = f"{model.design.terms[i].name}_component"
        out[matrix_name(i)] = Parameter((component, component), "covariance matrix of the effects of a level")
    dims = ("residual_class", "trait", "trait") if model.residual.classes else ("trait", "trait")
    return out | {RESIDUAL: Parameter(dims, "covariance matrix of the residuals of a record")}
