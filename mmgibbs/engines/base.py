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

`HostState` is all of this but the sweep, for engines in the memory of this machine. `SweepEngine` makes its sweep from
a list of `BlockSweep`s: a new way to draw some equations is one class with two methods. What an engine cannot do it
says in `refuses`, which is asked before anything is built (engines/choice.py).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import ClassVar, Protocol

import numpy as np

from mmgibbs.engines.augment import ResidualSums, Sums
from mmgibbs.engines.dense_products import LaterTiles, dense_quadratic_form
from mmgibbs.engines.liabilities import Liabilities
from mmgibbs.engines.markers import gather, scatter, weights_of_animals
from mmgibbs.equations.base import invert_residual, invert_terms
from mmgibbs.equations.dense import DenseLevels
from mmgibbs.equations.partition import KINDS
from mmgibbs.equations.records import subtract_matvec
from mmgibbs.equations.relationships import quadratic_form
from mmgibbs.equations.renewable import RenewableLists
from mmgibbs.equations.scaling import Elements, Scaling
from mmgibbs.equations.structured import StructuredEquations
from mmgibbs.errors import ModelError
from mmgibbs.machine.threads import ALONE, Threads
from mmgibbs.models.design import Design
from mmgibbs.models.labels import component_labels
from mmgibbs.models.residual import Blocks, ClassBlocks

Key = tuple[int, int]  # (seed, chain)


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

    def replace_y(self, trait: int, y: np.ndarray) -> None: ...

    def fetch(self) -> list[np.ndarray]: ...

    def state(self) -> dict[str, np.ndarray]: ...

    def restore(self, state: dict[str, np.ndarray]) -> None: ...


class LiabilityEngine(Engine, Protocol):
    """An engine that holds liabilities of traits that are not normal, in place of y: see the methods of HostState."""

    @property
    def y(self) -> np.ndarray: ...

    @property
    def e(self) -> np.ndarray: ...

    @property
    def theta(self) -> list[np.ndarray]: ...

    def draw_liabilities(self, response: int, cuts: np.ndarray, number: int, key: Key) -> tuple[float, float]: ...

    def ratio_of_cuts(self, response: int, cuts: np.ndarray, proposed: np.ndarray) -> float: ...

    def ratio_of_residual_scale(self, response: int, cuts: np.ndarray, of_class: int, s: float) -> float: ...

    def scale_trait(self, trait: int, g: float) -> None: ...

    def sums_of_products(self, term: int) -> np.ndarray: ...


class MarkerEngine(Engine, Protocol):
    """An engine that takes SNP effects: see the methods of HostState.

    One on a device has `make_effects` besides, where the sweeps over them are made: coloured_gpu/markers.py.
    """

    threads_of_effects: Threads

    @property
    def real(self) -> np.dtype: ...

    @property
    def Rinv(self) -> np.ndarray: ...

    @property
    def theta(self) -> list[np.ndarray]: ...

    def sums_of_animals(self, markers: int, n: int) -> np.ndarray: ...

    def weights_of_animals(self, markers: int, n: int) -> np.ndarray: ...

    def move_breeding_values(self, markers: int, g: np.ndarray) -> None: ...


class LocationMoments(Protocol):
    """Running moments of every location on the user's scale, kept where the engine keeps its state.

    `state()` and `restore(state)` speak as posterior.moments.Moments.state() does, levels in model order."""

    def add(self) -> None:
        """The engine's state is a draw."""

    def levels(self, term: int, codes: np.ndarray) -> np.ndarray:
        """(levels, k) float64: chosen levels of the draw last added."""

    def state(self) -> dict[str, np.ndarray]: ...

    def restore(self, state: dict[str, np.ndarray]) -> None: ...


class Integrated(Protocol):
    """log p(y | psi) with theta integrated out. A sweep of the engine draws theta at the psi that was kept.

    psi: G of each random term, row by row, one after another, then R of each class."""

    def evaluate(self, psi: np.ndarray) -> float:
        """Up to a constant; -inf where a matrix is not positive definite."""

    def keep(self) -> None:
        """The psi of the last call of `evaluate` is the one of the chain."""

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
        """The liabilities are multiplied by g: the draws of theta follow."""

    def take_reference(self) -> None:
        """The psi of the last call of `evaluate` is the one at which liabilities are summarised."""

    def summarise(self) -> np.ndarray:
        """(n_summary,) what the liabilities say of psi."""


class HostState(ABC):
    """Theta and e of a chain in the memory of this machine, in sweep order, and what an engine is asked about them.

        e_r = y_r - sum over terms of W_r theta_l(r) - sum over terms of SNP effects of x_a(r)' a

    An engine adds `sweep`, and says how it holds Theta: `theta`, `put_theta`. Where its sweeps move Theta alone, it
    calls `moved`, and e is made anew when it is asked for. Where they move e too (`keeps_residuals`), e is part of the
    state: made anew it would differ in its last bits.
    """

    name: ClassVar[str]
    options: ClassVar[tuple[str, ...]] = ("update",)  # what of an EngineChoice it takes (choice.py)
    partitions: ClassVar[tuple[str, ...]] = KINDS  # that it sweeps; the first where the analysis leaves it open
    keeps_residuals: ClassVar[bool] = False
    draws_scores: ClassVar[bool] = False  # whether it sweeps terms whose G has no inverse (scores.py)
    runs_side_by_side: ClassVar[bool] = False  # chains of it in threads of one process, built with `beside`
    threads: Threads = ALONE
    threads_of_effects: Threads = ALONE  # that share sweeps over SNP effects

    def __init__(self, equations: StructuredEquations, real: np.dtype | None = None):
        self.equations = equations
        self.real = equations.real if real is None else real  # dtype of Theta and e
        self.y = equations.records.y  # (n, T) shared with other chains, until replace_y; 0 where not observed
        # (n,) for each term of SNP effects: the breeding value of the animal of a record, in sweep order
        self.offsets = [np.zeros(len(self.y), self.real) for _ in equations.design.markers]
        self._e: np.ndarray | None = None
        self._scaling: Scaling = Scaling(equations)
        self._sums: ResidualSums | None = None
        self._later: dict[int, LaterTiles] = {}
        self._key_of_R: bytes | None = None  # of the R that `Rinv` is the inverse of

    @staticmethod
    def refuses(design: Design) -> str | None:
        """What of a design the engine cannot do, in words that follow "cannot be combined with"; None: nothing."""
        return None

    @abstractmethod
    def sweep(self, number: int, key: Key) -> dict[str, float] | None:
        """Draw every location once; `number` and key = (seed, chain) say which draws to use. Facts of the sweep."""

    @property
    @abstractmethod
    def theta(self) -> list[np.ndarray]:
        """(q, k) per term, sweep order."""

    @abstractmethod
    def put_theta(self, term: int, theta: np.ndarray) -> None:
        """Take (q, k) of one term, sweep order."""

    @property
    def e(self) -> np.ndarray:
        """(n, T) residuals as of now. Unobserved traits have fitted values in them; no one reads those."""
        if self._e is None:
            self._e = self._residuals()
        return self._e

    def _residuals(self) -> np.ndarray:
        """y less the offsets of the SNPs and every term: from the beginning, with the rounding of this order."""
        e = np.array(self.y, dtype=self.real)
        for markers, offset in zip(self.equations.design.markers, self.offsets, strict=True):
            e[:, markers.trait] -= offset
        for lists, theta in zip(self.equations.terms, self.theta, strict=True):
            if theta.any():
                subtract_matvec(lists, theta, e)
        return e

    def moved(self) -> None:
        """Theta, or y, is another: e is made anew when it is asked for."""
        self._e = None

    def start(self, theta: list[np.ndarray] | None = None) -> None:
        """Take Theta (model order; zero where None), and e = y - W theta. Components set to 0 are 0."""
        for i, (term, lists) in enumerate(zip(self.equations.design.terms, self.equations.terms, strict=True)):
            given = np.zeros((term.n_levels, term.n_components)) if theta is None else np.asarray(theta[i])[lists.code]
            self.put_theta(i, np.where(lists.active, given, 0.0) if lists.active.size else given)
        self.refresh()

    def refresh(self) -> None:
        """e = y - W theta from scratch: rounding drift ends here."""
        self._e = self._residuals() if self.keeps_residuals else None

    def replace_y(self, trait: int, y: np.ndarray) -> None:
        """Own data of this chain for one trait, y (n,), records in model order; e follows.

        Values of records that do not observe the trait are not read.
        """
        old = self.y
        self.take_y(replaced_y(self.equations, old, trait, y))
        if self.keeps_residuals and self._e is not None:
            self._e[:, trait] += self.y[:, trait] - old[:, trait]
        else:
            self.moved()

    def take_y(self, y: np.ndarray) -> None:
        """y (n, T), sweep order, 0 where not observed; an engine forgets here what it made of the old one."""
        self.y = y

    @cached_property
    def liabilities(self) -> Liabilities:
        """The responses of the design, in sweep order."""
        return Liabilities(self.equations.design.responses, self.equations.records, self.threads)

    def draw_liabilities(self, response: int, cuts: np.ndarray, number: int, key: Key) -> tuple[float, float]:
        """y of one response of the design | theta, the other residuals, cuts (K + 1,); e follows (liabilities.py).

        (a, b) of the scale of the liabilities, of a trait in categories.
        """
        y, e = self._writable_y(), self.e
        sums = self.liabilities.draw(response, cuts, y, e, self.Rinv, number, key)
        self.take_y(y)
        self._e = e
        return sums

    def reflect_liabilities(self, response: int, cuts: np.ndarray, number: int, key: Key) -> None:
        """y of one response moves as `draw_liabilities` would draw it, over-relaxed; e follows."""
        y, e = self._writable_y(), self.e
        self.liabilities.reflect(response, cuts, y, e, self.Rinv, number, key)
        self.take_y(y)
        self._e = e

    def ratio_of_cuts(self, response: int, cuts: np.ndarray, proposed: np.ndarray) -> float:
        """log p(categories | proposed) - log p(categories | cuts), liabilities integrated out."""
        return self.liabilities.log_ratio(response, cuts, proposed, self.y, self.e, self.Rinv)

    def ratio_of_residual_scale(self, response: int, cuts: np.ndarray, of_class: int, s: float) -> float:
        """log p(categories of the records of one class | s) - log p(... | 1), liabilities integrated out; s multiplies
        the residual standard deviation of the trait in that class."""
        in_class = self.equations.design.class_of_pattern == of_class
        return self.liabilities.log_ratio_of_scale(response, cuts, s, in_class, self.y, self.e, self.Rinv)

    def scale_trait(self, trait: int, g: float) -> None:
        """y, e and theta of one trait times g."""
        y, e = self._writable_y(), self.e
        for i, components in self._components[trait]:
            theta = self.theta[i]
            for component in components:
                theta[:, component] *= g
            self.put_theta(i, theta)
        y[:, trait] *= g
        e[:, trait] *= g
        self.take_y(y)
        self._e = e

    @cached_property
    def _components(self) -> list[list[tuple[int, list[int]]]]:
        """Of each trait: the terms that have components of it, and these."""
        design = self.equations.design
        of_traits: list[dict[int, list[int]]] = [{} for _ in design.traits]
        for i, term in enumerate(design.terms):
            for component, trait in enumerate(term.component_trait.tolist()):
                of_traits[trait].setdefault(i, []).append(component)
        return [list(of_trait.items()) for of_trait in of_traits]

    def scale_liabilities(self, trait: int, g: float) -> None:
        """y of one trait times g; its effects are drawn anew after it."""
        y = self._writable_y()
        y[:, trait] *= g
        self.take_y(y)
        self.moved()

    def sums_of_animals(self, markers: int, n: int) -> np.ndarray:
        """(n,) float64: sum over the records of each animal of a term of SNP effects of w_r (R_p^-1 e_r)_t."""
        records, out = self.equations.records, np.empty(n)
        trait = self.equations.design.markers[markers].trait
        gather(records.pattern, records.weight, self._animals[markers], trait, self.e, self.Rinv, out)
        return out

    def weights_of_animals(self, markers: int, n: int) -> np.ndarray:
        """(patterns, n) float64: the sum of the weights of each animal's records, by missing pattern."""
        return weights_of_animals(self.equations.design, self.equations.records, markers, n)

    def move_breeding_values(self, markers: int, g: np.ndarray) -> None:
        """The breeding values of the animals of a term of SNP effects are g now; e follows."""
        e = self.e
        trait = self.equations.design.markers[markers].trait
        scatter(self._animals[markers], trait, g, self.offsets[markers], e)
        self._e = e

    @cached_property
    def _animals(self) -> list[np.ndarray]:
        """(n,) of each term of SNP effects: the animal of each record in its store, sweep order."""
        return [m.animal[self.equations.records.record] for m in self.equations.design.markers]

    def sums_of_products(self, term: int) -> np.ndarray:
        """Theta' Theta, (k, k)."""
        theta = self.theta[term].astype(np.float64)
        return theta.T @ theta

    def _writable_y(self) -> np.ndarray:
        """The y that this engine may change: a copy, where it is still that of the equations."""
        return self.y.copy() if self.y is self.equations.records.y else self.y

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
        later = self.later_tiles(term) if isinstance(dense, DenseLevels) else None
        return of_lists + dense_quadratic_form(dense, self.theta[term], self.threads, later)

    def renew_relationship(self, term: int, parameters: np.ndarray) -> None:
        """Let the sweeps read K^-1 of a term at other values of its parameters."""
        self._renewable(term).renew(parameters)

    def sum_products(self, term: int) -> np.ndarray:
        """(M, k, k) Theta' M_m Theta of the fixed matrices that K^-1 of a term is made of."""
        return self._renewable(term).sum_products(self.theta[term])

    def _renewable(self, term: int) -> RenewableLists:
        if term not in self._renewable_lists:
            self._renewable_lists[term] = RenewableLists(self.equations, term)
        return self._renewable_lists[term]

    @cached_property
    def _renewable_lists(self) -> dict[int, RenewableLists]:
        return {}

    def later_tiles(self, term: int) -> LaterTiles:
        """What sweeps and quadratic forms of a dense block share."""
        if term not in self._later:
            dense = self.equations.dense[term]
            assert isinstance(dense, DenseLevels)
            self._later[term] = LaterTiles(dense, self.threads)
        return self._later[term]

    def _quadratic_form_of_lists(self, term: int) -> np.ndarray:
        """What the lists of K^-1 add to it."""
        return quadratic_form(self.equations.relationships[term], self.theta[term])

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
        self._e = e

    def transform_term(self, term: int, M: np.ndarray) -> None:
        """theta_l <- M theta_l for every level (with fixed groups: the deviations from their mean), and e follows."""
        theta, e = self.theta[term], self.e
        later = self._known_later(term, theta)
        self._scaling.transform(term, M, theta, e)
        self.put_theta(term, theta)
        self._e = e
        if later is not None and not self.equations.design.terms[term].groups_fixed:
            later.take(np.asarray(M, float) @ later.sums, later.dense.columns(self.theta[term]))

    def _known_later(self, term: int, theta: np.ndarray) -> LaterTiles | None:
        """Those of a term, if they are those of theta."""
        later = self._later.get(term)
        return later if later is not None and later.known(later.dense.columns(theta)) else None

    def fetch(self) -> list[np.ndarray]:
        """(q, k) float64 per term, model order: copies."""
        out = []
        for theta, lists in zip(self.theta, self.equations.terms, strict=True):
            ordered = np.empty(theta.shape)
            ordered[lists.code] = theta
            out.append(ordered)
        return out

    def state(self) -> dict[str, np.ndarray]:
        """Theta per term, e where it is kept, y where it is the chain's own; sweep order."""
        kept = {"e": self.e} if self.keeps_residuals else {}
        changed_y = {} if self.y is self.equations.records.y else {"y": self.y}
        offsets = {f"offset.{i}": offset for i, offset in enumerate(self.offsets)}
        known = {i: self._known_later(i, theta) for i, theta in enumerate(self.theta)}
        later = {tiles.name(i): tiles.sums for i, tiles in known.items() if tiles is not None}
        return kept | changed_y | offsets | later | {f"theta.{i}": theta for i, theta in enumerate(self.theta)}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        self.take_y(np.array(state["y"]) if "y" in state else self.equations.records.y)
        self.offsets = [np.array(state[f"offset.{i}"]) for i in range(len(self.offsets))]
        for i in range(len(self.equations.terms)):
            self.put_theta(i, state[f"theta.{i}"])
        self._later = {}
        for i in range(len(self.equations.terms)):
            later = self.later_tiles(i) if isinstance(self.equations.dense[i], DenseLevels) else None
            if later is not None and later.name(i) in state:
                later.take(np.array(state[later.name(i)]), later.dense.columns(self.theta[i]))
        self._e = np.array(state["e"]) if self.keeps_residuals else None


def replaced_y(equations: StructuredEquations, y: np.ndarray, trait: int, values: np.ndarray) -> np.ndarray:
    """A copy of y (n, T), sweep order, with `values` (n,), model order, for one trait where it is observed."""
    records = equations.records
    observed = equations.design.patterns[records.pattern, trait]
    out = y.copy()
    out[:, trait] = np.where(observed, np.asarray(values)[records.record], 0.0)
    return out


class BlockSweep(Protocol):
    """Some equations, and one way to draw them: levels one after another, side by side, on records joined to few.

    Called once in a sweep, it draws theta of its equations given everything else and moves `state.theta` and `state.e`
    with them; ModelError (refuse_singular) where a level cannot be drawn.
    """

    def renew(self, state: SweepEngine) -> None:
        """The variances are others: state.Ginv, state.Rinv."""

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
        """One Gibbs sweep; `number` and key = (seed, chain) say which draws to use."""
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
