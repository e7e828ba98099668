"""What an engine is: it holds Theta and e, and makes one sweep over them. It sees no files, no tables and no names of
models.

    engine = SerialEngine(equations, update="level")
    engine.start(theta)                         # Theta in model order; e = y - W theta
    engine.set_variances(G, R)                  # one (k, k) per random term (None for fixed ones), (T, T)
    engine.sweep(number, (seed, chain))         # theta ~ one Gibbs sweep given G, R; facts of it (name -> number), or
                                                # None
    engine.quadratic_form(term)                 # Theta' K^-1 Theta
    engine.residual_products(number, key)       # sum_r w_r e_r e_r', missing residuals augmented
    engine.scaling_products(term, elements)     # how the records see theta_l -> M theta_l: normal equations for
                                                # elements of M
    engine.transform_term(term, M)              # theta_l <- M theta_l for every level, e follows
    engine.loading_products(term, f, elements)  # how the records see theta_l -> theta_l + D f_l, likewise
    engine.move_term(term, theta)               # theta (sweep order) is another, e follows
    engine.replace_y(trait, y)                  # other data for this chain, e follows
    engine.fetch()                              # list of (q, k) float64 in model order
    engine.state()                              # named arrays: all that the next sweep depends on, variances aside; not
                                                # copied
    engine.restore(state)                       # continue from there, in another process or another year: the same bits

Where an engine has them:

    engine.moments(batch_length)                # LocationMoments of its own: a kept draw is then never fetched
    engine.notes                                # what it chose on the way, in words for the user
    engine.integrated                           # log p(y | variances), theta integrated out: see Integrated

Engines with the same partition, update and key give the same chain up to rounding.

`HostState` is all of this but the sweep, for engines in the memory of this machine; state.py has its parts.
`SweepEngine` makes its sweep from a list of `BlockSweep`s: a new way to draw some equations is one class with two
methods. What an engine cannot do, and what it costs, its class says before anything is built (facts.py).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import ClassVar, Protocol

import numpy as np

from mmgibbs.engines.augment import ResidualSums, Sums
from mmgibbs.engines.dense_products import dense_quadratic_form
from mmgibbs.engines.facts import EngineFacts
from mmgibbs.engines.state import Key as Key  # noqa: PLC0414  engines find it here
from mmgibbs.engines.state import LocationState
from mmgibbs.equations.base import invert_residual, invert_terms
from mmgibbs.equations.records import subtract_matvec
from mmgibbs.equations.relationships import quadratic_form
from mmgibbs.equations.scaling import Elements, Scaling
from mmgibbs.equations.structured import StructuredEquations
from mmgibbs.errors import ModelError
from mmgibbs.machine.threads import ALONE, Threads
from mmgibbs.models.labels import component_labels
from mmgibbs.models.residual import Blocks, ClassBlocks


class Engine(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def equations(self) -> StructuredEquations: ...

    def start(self, theta: list[np.ndarray] | None = None) -> None: ...

    def set_variances(self, G: Sequence[np.ndarray | None], R: np.ndarray) -> None: ...

    def sweep(self, number: int, key: Key) -> dict[str, float] | None: ...

    def refresh(self) -> None: ...

    def quadratic_form(self, term: int) -> np.ndarray: ...

    def residual_products(
        self, number: int, key: Key, blocks: Blocks | ClassBlocks
    ) -> tuple[np.ndarray, np.ndarray | list[np.ndarray]]: ...

    def scaling_products(self, term: int, elements: Elements) -> tuple[np.ndarray, np.ndarray]: ...

    def transform_term(self, term: int, M: np.ndarray) -> None: ...

    def loading_products(self, term: int, scores: np.ndarray, elements: Elements) -> tuple[np.ndarray, np.ndarray]: ...

    def move_term(self, term: int, theta: np.ndarray) -> None: ...

    @property
    def theta(self) -> list[np.ndarray]: ...

    def replace_y(self, trait: int, y: np.ndarray) -> None: ...

    def fetch(self) -> list[np.ndarray]: ...

    def state(self) -> dict[str, np.ndarray]: ...

    def restore(self, state: dict[str, np.ndarray]) -> None: ...


class ResponsePasses(Protocol):
    """The liabilities of an engine: see state.Responses."""

    def draw(self, response: int, cuts: np.ndarray, number: int, key: Key) -> tuple[float, float]: ...

    def compare_cuts(self, response: int, cuts: np.ndarray, proposed: np.ndarray) -> float: ...

    def compare_residual_scales(self, response: int, cuts: np.ndarray, of_class: int, s: float) -> float: ...

    def scale_trait(self, trait: int, g: float) -> None: ...


class LiabilityEngine(Engine, Protocol):
    """An engine that holds liabilities of traits that are not normal, in place of y."""

    @property
    def y(self) -> np.ndarray: ...

    @property
    def e(self) -> np.ndarray: ...

    @property
    def theta(self) -> list[np.ndarray]: ...

    @property
    def responses(self) -> ResponsePasses: ...

    def sums_of_products(self, term: int) -> np.ndarray: ...


class AnimalPasses(Protocol):
    """The breeding values of SNP effects of an engine: see state.MarkerPasses."""

    def sum_by_animal(self, markers: int, n: int) -> np.ndarray: ...

    def weigh_animals(self, markers: int, n: int) -> np.ndarray: ...

    def move_breeding_values(self, markers: int, g: np.ndarray) -> None: ...


class MarkerEngine(Engine, Protocol):
    """An engine that takes SNP effects.

    One on a device has `make_effects` besides, where the sweeps over them are made: coloured_gpu/markers.py.
    """

    threads_of_effects: Threads

    @property
    def real(self) -> np.dtype: ...

    @property
    def Rinv(self) -> np.ndarray: ...

    @property
    def theta(self) -> list[np.ndarray]: ...

    @property
    def marker_passes(self) -> AnimalPasses: ...


class LocationMoments(Protocol):
    """Running moments of every location on the user's scale, kept where the engine keeps its state.

    `state()` and `restore(state)` speak as posterior.moments.Moments.state() does, levels in model order."""

    def add(self) -> None:
        """Add the state of the engine as a draw."""

    def levels(self, term: int, codes: np.ndarray) -> np.ndarray:
        """Return chosen levels of the draw last added, (levels, k) float64."""

    def state(self) -> dict[str, np.ndarray]: ...

    def restore(self, state: dict[str, np.ndarray]) -> None: ...


class Integrated(Protocol):
    """log p(y | psi) with theta integrated out. A sweep of the engine draws theta at the psi that was kept.

    psi: G of each random term, row by row, one after another, then R of each class."""

    def evaluate(self, psi: np.ndarray) -> float:
        """Up to a constant; -inf where a matrix is not positive definite."""

    def keep(self) -> None:
        """Make the psi of the last call of `evaluate` the one of the chain."""

    def gradient(self, kept: bool = False) -> tuple[list[np.ndarray], np.ndarray]:
        """D with d log p = tr(D dG) of each random term, and (classes, T, T) of R: at the last psi, or the kept one."""


class IntegratedLiabilities(Integrated, Protocol):
    """log p(l | psi) of liabilities l (n, 1) that change, sweep order; or of their direction (power > 0)."""

    power: float  # M: the scale g of l has g^2 ~ chi-square(M) / Q given its direction; 0: l is as long as it is
    n_summary: int
    kept_log_determinants: float  # what of the density at the kept psi is no function of l

    def fill(self, liabilities: np.ndarray) -> None:
        """Let `evaluate` read other liabilities."""

    def take(self, liabilities: np.ndarray) -> float:
        """Other liabilities: log p at the psi that was kept."""

    def kept_squares(self) -> float:
        """Q = l'Pl at the psi that was kept."""

    def scale(self, g: float) -> None:
        """Multiply the liabilities by g, and with them the draws of theta."""

    def take_reference(self) -> None:
        """Summarise liabilities from now on at the psi of the last call of `evaluate`."""

    def summarise(self) -> np.ndarray:
        """Return what the liabilities say of psi, (n_summary,)."""


class HostState(EngineFacts, LocationState):
    """A chain in the memory of this machine: its state (state.py), and products of it. An engine adds `sweep`."""

    draws_scores: ClassVar[bool] = False  # whether it sweeps terms whose G has no inverse (scores.py)
    threads_of_effects: Threads = ALONE  # that share sweeps over SNP effects

    def __init__(self, equations: StructuredEquations, real: np.dtype | None = None):
        super().__init__(equations, real)
        self._scaling: Scaling = Scaling(equations)
        self._sums: ResidualSums | None = None
        self._key_of_R: bytes | None = None  # of the R that `Rinv` is the inverse of

    @abstractmethod
    def sweep(self, number: int, key: Key) -> dict[str, float] | None:
        """Draw every location once; `number` and key = (seed, chain) say which draws to use. Facts of the sweep."""

    def set_variances(self, G: Sequence[np.ndarray | None], R: np.ndarray) -> None:
        """G: one (k, k) per term, None for fixed ones; R: (T, T), or (classes, T, T).

        ModelError where one cannot be inverted.
        """
        self.take_residual(R)
        self.G = list(G)
        self.Ginv = invert_terms(self.equations.design, G, self.draws_scores)

    def take_residual(self, R: np.ndarray) -> None:
        """R (T, T), or (classes, T, T); ModelError where it cannot be inverted."""
        residual = np.asarray(R, dtype=float)
        key = residual.tobytes()
        if key != self._key_of_R:  # the inverses of one that stays are not made anew in every sweep
            self.R, self.Rinv = residual.copy(), invert_residual(self.equations.design, residual)
            self._key_of_R = key

    def quadratic_form(self, term: int) -> np.ndarray:
        """Theta' K^-1 Theta, (k, k)."""
        dense, of_lists = self.equations.dense[term], self._quadratic_form_of_lists(term)
        if dense is None:
            return of_lists
        return of_lists + dense_quadratic_form(dense, self.theta[term], self.threads, self.dense_tiles.find(term))

    def _quadratic_form_of_lists(self, term: int) -> np.ndarray:
        """Compute the part of the quadratic form of a term that comes from the lists of K^-1."""
        return quadratic_form(self.equations.relationships[term], self.theta[term])

    def sums_of_products(self, term: int) -> np.ndarray:
        """Theta' Theta, (k, k)."""
        theta = self.theta[term].astype(np.float64)
        return theta.T @ theta

    def residual_products(
        self, number: int, key: Key, blocks: Blocks | ClassBlocks
    ) -> tuple[np.ndarray, np.ndarray | list[np.ndarray]]:
        """sum_r w_r e_r e_r' (T, T), or one for each class (classes, T, T), missing residuals augmented, and the
        records behind each block (augment.py)."""
        known = self._sums
        if known is None or known.blocks is not blocks:
            known = self._sums = ResidualSums(self.equations.records, self.equations.design.patterns, blocks)
        return known(self.e, self.R, number, key, self._sums_of_residuals(number, key))

    def _sums_of_residuals(self, number: int, key: Key) -> Sums | None:
        """A faster way to the sums than augment.py has, where an engine knows one."""
        return None

    def scaling_products(self, term: int, elements: Elements) -> tuple[np.ndarray, np.ndarray]:
        """H (p, p) and s (p,): how the records see theta_l -> M theta_l (equations/scaling.py)."""
        return self._scaling.products(term, elements, self.theta[term], self.e, self.Rinv)

    def loading_products(self, term: int, scores: np.ndarray, elements: Elements) -> tuple[np.ndarray, np.ndarray]:
        """H (p, p) and s (p,): how the records see theta_l -> theta_l + D f_l, f_l the scores (q, f) of the levels in
        sweep order and (c, j) the elements of D (k, f) that may be other than 0."""
        return self._scaling_by_records.products(term, elements, scores, self.e, self.Rinv)

    @cached_property
    def _scaling_by_records(self) -> Scaling:
        """A pass over the records, for any values of the levels: that of an engine may read its own effects alone."""
        return Scaling(self.equations)

    def move_term(self, term: int, theta: np.ndarray) -> None:
        """Theta (q, k) of one term, sweep order, is another; e follows."""
        e, before = self.e, self.theta[term].astype(np.float64)
        self.put_theta(term, theta.astype(self.real))
        subtract_matvec(self.equations.terms[term], self.theta[term] - before, e)
        self.moved(e)

    def transform_term(self, term: int, M: np.ndarray) -> None:
        """theta_l <- M theta_l for every level (with fixed groups: the deviations from their mean), and e follows."""
        theta, e = self.theta[term], self.e
        later = self.dense_tiles.find_known(term, theta)
        self._scaling.transform(term, M, theta, e)
        self.put_theta(term, theta)
        self.moved(e)
        if later is not None and not self.equations.design.terms[term].groups_fixed:
            later.take(np.asarray(M, float) @ later.sums, later.dense.columns(self.theta[term]))


class BlockSweep(Protocol):
    """A set of equations and a way to draw them: levels one after another, side by side, or on records joined to few.

    Called once in a sweep, it draws theta of its equations given everything else and moves `state.theta` and `state.e`
    with them; ModelError (refuse_singular) where a level cannot be drawn.
    """

    def renew(self, state: SweepEngine) -> None:
        """Renew what depends on the variances state.Ginv and state.Rinv, which have changed."""

    def __call__(self, state: SweepEngine, number: int, key: Key) -> None:
        """`number` of the sweep and key = (seed, chain) say which draws to use."""


class SweepEngine(HostState):
    """An engine whose sweep is a list of block sweeps. Theta per term and e in the equations' precision."""

    keeps_residuals = True
    draws_scores = True
    theta: list[np.ndarray] = []  # an attribute: it is asked for several times a sweep

    def __init__(self, equations: StructuredEquations, sweeps: Iterable[BlockSweep]):
        super().__init__(equations)
        self.sweeps = list(sweeps)
        shapes = [(t.n_levels + 1, t.n_components) for t in equations.design.terms]
        self.rows = [np.zeros(shape, self.real) for shape in shapes]  # the last row, 0, represents unknown parents
        self.theta = [rows[:-1] for rows in self.rows]
        self.start()

    def put_theta(self, term: int, theta: np.ndarray) -> None:
        if theta is not self.theta[term]:
            self.theta[term][:] = theta

    def set_variances(self, G: Sequence[np.ndarray | None], R: np.ndarray) -> None:
        super().set_variances(G, R)
        for sweep in self.sweeps:
            sweep.renew(self)

    def sweep(self, number: int, key: Key) -> None:
        """Run one Gibbs sweep; `number` and key = (seed, chain) select its random numbers."""
        for sweep in self.sweeps:
            sweep(self, number, key)


def refuse_singular(equations: StructuredEquations, term: int, position: int) -> None:
    """Stop on a diagonal block of C that is not positive definite, naming the effect and the level."""
    t = equations.design.terms[term]
    level = int(equations.terms[term].code[position])
    raise ModelError(
        f"term '{t.name}' ({', '.join(component_labels(t, equations.design.traits))}), level number {level + 1} "
        f"of {t.n_levels}: its equations cannot be solved (they are not positive definite): the current variances have "
        "grown without limit or differ too much, or the level has neither records nor a prior; needed variances that "
        "the data determine, proper priors, or fewer effects"
    )
