"""The steps that draw covariance matrices, each given everything else (see models/covariance.py): over-relaxed from the
matrix so far, and independent of it in the first sweeps and now and then.

The Metropolis step of an over-relaxed chi-square refuses nearly every move of a variance that lies some ten times below
what the data say, as a poor start may. An independent draw ends that at once. When there is one depends on the number
of the sweep alone, so each sweep leaves the posterior as it is.
"""

from __future__ import annotations

from collections.abc import ItemsView, Mapping, Sequence
from typing import NoReturn

import numpy as np

from mmgibbs.draws.inverse_wishart import NOTHING, inverse_wishart
from mmgibbs.draws.purpose import VARIANCE, stream
from mmgibbs.engines.base import Engine
from mmgibbs.engines.device_sweep import DeviceVariances, SampledTerm, VariancePlan
from mmgibbs.errors import ModelError
from mmgibbs.models.covariance import CovarianceModel
from mmgibbs.models.residual import ClassBlocks, ResidualModel
from mmgibbs.posterior.draw_names import RESIDUAL, class_matrix_name, matrix_name
from mmgibbs.posterior.parameters import Parameter
from mmgibbs.sampler.mixed_model import MixedModel
from mmgibbs.sampler.slice import named_lost_density
from mmgibbs.sampler.unit_diagonals import draw_with_unit_diagonal

# Chains of sampled variances start apart, so that R-hat can see a chain that has not forgotten its start.
START_SCALES = (1.0, 0.5, 2.0, 0.75, 1.5)
APART = 20  # sweeps from one draw that is independent of the matrix so far to the next


class CovarianceMatrices:
    """The matrices of one chain as they are now, by name: what its steps share.

    `changed`: names of those that the engine has not taken yet. `auxiliaries`: of the scale priors of matrices
    (auxiliaries.py), by the name of the matrix. Where a device draws, resident.py brings both over.
    """

    def __init__(self, G: Sequence[np.ndarray | None], R: np.ndarray):
        self._priors: dict[str, CovarianceModel | None] = {}  # given the auxiliaries, where they have been asked for
        self.auxiliaries: dict[str, np.ndarray] = {}
        self._names = [matrix_name(i) for i in range(len(G))]
        self._now = {matrix_name(i): g for i, g in enumerate(G) if g is not None} | {RESIDUAL: R}
        self.changed = set(self._now)

    def put_drawn(self, matrices: Mapping[str, np.ndarray], auxiliaries: Mapping[str, np.ndarray]) -> None:
        """Take what a device has drawn: the engine has it."""
        self._now |= matrices
        for name, a in auxiliaries.items():
            self.take_auxiliaries(name, a)

    def items(self) -> ItemsView[str, np.ndarray]:
        return self._now.items()

    def __getitem__(self, name: str) -> np.ndarray:
        return self._now[name]

    def __setitem__(self, name: str, matrix: np.ndarray) -> None:
        self._now[name] = matrix
        self.changed |= {name}

    @property
    def G(self) -> list[np.ndarray | None]:
        """Covariance matrices (k, k) of the terms, None for fixed ones."""
        return list(map(self._now.get, self._names))

    @property
    def R(self) -> np.ndarray:
        return self._now[RESIDUAL]

    def take_auxiliaries(self, name: str, a: np.ndarray) -> None:
        """Set the auxiliary variables of the scale prior of one matrix to a (k,)."""
        self.auxiliaries[name] = a
        self._priors[name] = None

    def prior(self, name: str, covariance: CovarianceModel) -> CovarianceModel:
        """Return the prior of one matrix: of a scale prior the inverse Wishart given its auxiliary variables."""
        if name not in self.auxiliaries:
            return covariance
        prior = self._priors[name]
        if prior is None:
            prior = self._priors[name] = covariance.given(self.auxiliaries[name])
        return prior

    def give(self, engine: Engine) -> None:
        """Pass G and R to the engine, unless it has them."""
        if self.changed:
            self.changed.clear()
            engine.set_variances(self.G, self._now[RESIDUAL])


def starting_matrices(model: MixedModel, chain: int) -> CovarianceMatrices:
    """Return the starts of the analysis, those that are sampled times the START_SCALES of the chain."""
    scale = START_SCALES[chain % len(START_SCALES)]

    def scale_start(c: CovarianceModel) -> np.ndarray:
        """The start times `scale`; variances of 1 stay."""
        if c.fixed:
            return np.array(c.start, float)
        sd = np.full(len(c.start), np.sqrt(scale))
        sd[list(c.unit)] = 1.0
        return np.array(c.start, float) * (sd[:, None] * sd if c.unit else scale)

    R = np.stack([scale_start(c) for c in model.residual.matrices])
    return CovarianceMatrices(
        [None if c is None else scale_start(c) for c in model.covariances], R if model.residual.classes else R[0]
    )


class TermCovariance:
    """G | theta of one random term; of a matrix that is fixed its value."""

    def __init__(
        self, model: MixedModel, term: int, engine: Engine, matrices: CovarianceMatrices, key: tuple[int, int]
    ):
        self.term, self.engine, self.matrices, self.key = term, engine, matrices, key
        self.covariance, self.name = model.covariance(term), matrix_name(term)
        self.n_levels = model.design.terms[term].n_prior_levels
        self.is_sampled = not self.covariance.fixed
        name = model.design.terms[term].name
        if any(m.left is not None and m.left.term == name for m in model.design.markers):  # implied by another step
            self.is_sampled = False
        component = f"{name}_component"
        self.parameters = {self.name: Parameter((component, component), "covariance matrix of the effects of a level")}

    def __call__(self, number: int) -> None:
        if self.is_sampled:
            products = self.engine.quadratic_form(self.term)
            prior = self.matrices.prior(self.name, self.covariance)
            self.matrices[self.name] = draw_covariance(
                prior, products, self.n_levels, number, self.term, self.key, current=self.matrices[self.name]
            )

    @property
    def can_launch(self) -> bool:
        """True if a device can draw it: see resident.py."""
        return not (self.is_sampled and self.covariance.unit)

    def add_to_plan(self, plan: VariancePlan) -> None:
        """Add this step to the plan: see resident.DeviceStep."""
        if self.is_sampled:
            given = self.matrices.prior(self.name, self.covariance)
            plan.terms[self.term] = SampledTerm(self.name, given, self.n_levels)
            plan.values[self.name] = given.start.shape

    def launch(self, variances: DeviceVariances) -> None:
        """Launch this step: see resident.DeviceStep."""
        if self.is_sampled:
            variances.launch_products(self.term)

    def draws(self) -> dict[str, np.ndarray]:
        return {self.name: self.matrices[self.name]}

    def state(self) -> dict[str, np.ndarray]:
        return self.draws()

    def restore(self, state: dict[str, np.ndarray]) -> None:
        self.matrices[self.name] = state[self.name].copy()


class ResidualCovariance:
    """R | e, or R_c of each class given the residuals of its own records; of what is fixed its value."""

    def __init__(self, model: MixedModel, engine: Engine, matrices: CovarianceMatrices, key: tuple[int, int]):
        self.engine, self.matrices, self.key = engine, matrices, key
        self.residual, self.n_terms = model.residual, len(model.design.terms)
        self.is_sampled = not model.residual.fixed
        of_class = tuple(m.blocks for m in model.residual.matrices)
        classes = model.residual.classes
        self.blocks = ClassBlocks(of_class, model.design.class_of_pattern) if classes else of_class[0]
        dims = ("residual_class", "trait", "trait") if classes else ("trait", "trait")
        self.parameters = {RESIDUAL: Parameter(dims, "covariance matrix of the residuals of a record")}

    def __call__(self, number: int) -> None:
        if not self.is_sampled:
            return
        products, n = self.engine.residual_products(number, self.key, self.blocks)
        if not self.residual.classes:
            self.matrices[RESIDUAL] = self._draw(0, products, np.asarray(n), number)
            return
        R = self.matrices[RESIDUAL].copy()
        for c, covariance in enumerate(self.residual.matrices):
            if not covariance.fixed:
                R[c] = self._draw(c, products[c], n[c], number)
        self.matrices[RESIDUAL] = R

    def _draw(self, c: int, products: np.ndarray, n: np.ndarray, number: int) -> np.ndarray:
        """Draw R_c. Its blocks are keyed by c T + trait: the first class draws as one for all would."""
        first, now = c * len(products), self.matrices[RESIDUAL]
        name = class_matrix_name(c) if self.residual.classes else RESIDUAL
        model = self.matrices.prior(name, self.residual.matrices[c])
        so_far = now[c] if self.residual.classes else now
        return draw_covariance(model, products, n, number, self.n_terms, self.key, first, so_far)

    @property
    def can_launch(self) -> bool:
        """True if a device can draw it: at most one of correlated traits has the variance 1 by convention."""
        blocks = [(m, block) for m in self.residual.matrices for block in m.blocks]
        return not self.is_sampled or all(sum(c in m.unit for c in block) <= 1 for m, block in blocks)

    def add_to_plan(self, plan: VariancePlan) -> None:
        """Add this step to the plan: see resident.DeviceStep."""
        plan.samples_residual = self.is_sampled
        names = (
            [class_matrix_name(c) for c in range(len(self.residual.matrices))] if self.residual.classes else [RESIDUAL]
        )
        given = tuple(
            self.matrices.prior(name, c).given() for name, c in zip(names, self.residual.matrices, strict=True)
        )
        plan.residual = ResidualModel(given, self.residual.classes)
        plan.values[RESIDUAL] = (len(given), *given[0].start.shape)

    def launch(self, variances: DeviceVariances) -> None:
        """Launch this step: see resident.DeviceStep."""
        variances.launch_residuals()

    def draws(self) -> dict[str, np.ndarray]:
        return {RESIDUAL: self.matrices[RESIDUAL]}

    def state(self) -> dict[str, np.ndarray]:
        return self.draws()

    def restore(self, state: dict[str, np.ndarray]) -> None:
        self.matrices[RESIDUAL] = state[RESIDUAL].copy()


def is_independent(number: int) -> bool:
    """True in the sweeps that draw matrices independently of the last: the first APART, then each APARTth."""
    return number <= APART or number % APART == 0


def draw_covariance(
    model: CovarianceModel,
    products: np.ndarray,
    n: int | np.ndarray,
    number: int,
    term: int,
    key: tuple[int, int],
    first: int = 0,
    current: np.ndarray | None = None,
) -> np.ndarray:
    """Draw G (or R) given sums of squares and products (k, k) and the number n of levels (records), or n of each block.

    first: number of the first component among all draws of the term, which key the draws of each row; current: the
    matrix so far, from which the draw is over-relaxed (but see `is_independent`) and several correlations of
    `model.unit` move on; None: independent of it.
    """
    of_term = stream(VARIANCE, term)
    if len(model.blocks) == 1 and not model.unit:
        nu, S = model.inverse_wishart(model.blocks[0])
        now = NOTHING if current is None or is_independent(number) else np.ascontiguousarray(current)
        count = n[0] if isinstance(n, np.ndarray) else n
        rows = first + np.arange(len(products))
        out = inverse_wishart(nu + count, S + products, now, number, rows, of_term, key[0], key[1])
    else:
        out, counts = np.zeros_like(products), n if isinstance(n, np.ndarray) else [n] * len(model.blocks)
        for block, (nu, S), count in zip(model.blocks, model.inverse_wisharts, counts, strict=True):
            index = np.ix_(block, block)
            W, site = S + products[index], (number, first + np.array(block), of_term)
            unit = tuple(i for i, c in enumerate(block) if c in model.unit)
            if unit:
                so_far = np.eye(len(block)) if current is None else current[index]
                with named_lost_density(f"variances.{model.name or '*'}", number, key[1]):
                    out[index] = draw_with_unit_diagonal(nu + count, W, unit, so_far, *site, key)
            else:
                now = NOTHING if current is None or is_independent(number) else np.ascontiguousarray(current[index])
                out[index] = inverse_wishart(nu + count, W, now, *site, key[0], key[1])
    if not np.logical_and.reduce(np.isfinite(out), axis=None):
        refuse_lost_matrix(model, number, key[1])
    return out


def refuse_lost_matrix(model: CovarianceModel, number: int, chain: int) -> NoReturn:
    """ModelError for a matrix that could not be drawn."""
    raise ModelError(
        f"variances.{model.name or '*'}: no covariance matrix can be drawn at sweep {number} of chain {chain + 1}: "
        "the sum of squares and products is not positive definite, so the data do not determine this matrix; "
        f"needed a proper prior (variances.{model.name or '*'}.prior), fewer effects, or fixed variances"
    )
