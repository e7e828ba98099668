"""The state of a chain in the memory of this machine, and what reads or moves parts of it.

LocationState           Theta, e and y
Responses               liabilities of traits that are not normal, in place of y
MarkerPasses            breeding values of the animals of SNP effects, offsets of y
DenseTiles              what sweeps over dense blocks of K^-1 leave for the next one
RelationshipParameters  K^-1 at other values of the parameters of a relationship
"""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from functools import cached_property
from typing import ClassVar

import numpy as np

from mmgibbs.engines.dense_products import LaterTiles
from mmgibbs.engines.liabilities import Liabilities
from mmgibbs.engines.markers import gather, scatter, weights_of_animals
from mmgibbs.equations.dense import DenseLevels
from mmgibbs.equations.records import subtract_matvec
from mmgibbs.equations.renewable import RenewableLists
from mmgibbs.equations.structured import StructuredEquations
from mmgibbs.machine.threads import ALONE, Threads

Key = tuple[int, int]  # (seed, chain)


class LocationState(ABC):
    """Theta, e and y of a chain, in sweep order.

        e_r = y_r - sum over terms of W_r theta_l(r) - sum over terms of SNP effects of x_a(r)' a

    An engine says how it holds Theta: `theta`, `put_theta`. Where its sweeps move Theta alone, it calls `moved`, and e
    is made anew when it is asked for. Where they move e too (`keeps_residuals`), e is part of the state: made anew it
    would differ in its last bits.
    """

    keeps_residuals: ClassVar[bool] = False
    threads: Threads = ALONE
    Rinv: np.ndarray  # (patterns, T, T) R_p^-1 in force

    def __init__(self, equations: StructuredEquations, real: np.dtype | None = None):
        self.equations = equations
        self.real = equations.real if real is None else real  # dtype of Theta and e
        self.y = equations.records.y  # (n, T) shared with other chains, until replace_y; 0 where not observed
        self._e: np.ndarray | None = None
        self.marker_passes, self.dense_tiles = MarkerPasses(self), DenseTiles(self)

    @cached_property
    def responses(self) -> Responses:
        """The responses of the design."""
        return Responses(self)

    @cached_property
    def relationship_parameters(self) -> RelationshipParameters:
        """The relationships of the design whose parameters are sampled."""
        return RelationshipParameters(self)

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
            self._e = self._compute_residuals()
        return self._e

    def _compute_residuals(self) -> np.ndarray:
        """y less the offsets of the SNPs and every term: from the beginning, with the rounding of this order."""
        e = np.array(self.y, dtype=self.real)
        self.marker_passes.subtract_offsets(e)
        for lists, theta in zip(self.equations.terms, self.theta, strict=True):
            if theta.any():
                subtract_matvec(lists, theta, e)
        return e

    def moved(self, e: np.ndarray | None = None) -> None:
        """Theta, or y, is another: so is e, which is made anew when it is asked for where it is not given."""
        self._e = e

    def start(self, theta: list[np.ndarray] | None = None) -> None:
        """Take Theta (model order; zero where None), and e = y - W theta. Components set to 0 are 0."""
        for i, (term, lists) in enumerate(zip(self.equations.design.terms, self.equations.terms, strict=True)):
            given = np.zeros((term.n_levels, term.n_components)) if theta is None else np.asarray(theta[i])[lists.code]
            self.put_theta(i, np.where(lists.active, given, 0.0) if lists.active.size else given)
        self.refresh()

    def refresh(self) -> None:
        """e = y - W theta from scratch: rounding drift ends here."""
        self.moved(self._compute_residuals() if self.keeps_residuals else None)

    def replace_y(self, trait: int, y: np.ndarray) -> None:
        """Replace the records y (n,) of one trait in this chain, in model order, and update the residuals.

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

    def fetch(self) -> list[np.ndarray]:
        """Copy theta, (q, k) float64 per term, to model order."""
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
        theta = {f"theta.{i}": theta for i, theta in enumerate(self.theta)}
        return kept | changed_y | self.marker_passes.state_arrays() | self.dense_tiles.state_arrays() | theta

    def restore(self, state: dict[str, np.ndarray]) -> None:
        self.take_y(np.array(state["y"]) if "y" in state else self.equations.records.y)
        self.marker_passes.restore(state)
        for i in range(len(self.equations.terms)):
            self.put_theta(i, state[f"theta.{i}"])
        self.dense_tiles.restore(state)
        self.moved(np.array(state["e"]) if self.keeps_residuals else None)


def replaced_y(equations: StructuredEquations, y: np.ndarray, trait: int, values: np.ndarray) -> np.ndarray:
    """Copy y (n, T), sweep order, with `values` (n,), model order, for one trait where it is observed."""
    records = equations.records
    observed = equations.design.patterns[records.pattern, trait]
    out = y.copy()
    out[:, trait] = np.where(observed, np.asarray(values)[records.record], 0.0)
    return out


class Responses:
    """The responses of a design: y of their traits are liabilities (liabilities.py). `response` is a number of one."""

    def __init__(self, state: LocationState):
        self.state: LocationState = weakref.proxy(state)  # which keeps this object
        self.liabilities = Liabilities(state.equations.design.responses, state.equations.records, state.threads)

    def draw(self, response: int, cuts: np.ndarray, number: int, key: Key) -> tuple[float, float]:
        """y of one response | theta, the other residuals, cuts (K + 1,); e follows.

        (a, b) of the scale of the liabilities, of a trait in categories.
        """
        y, e = self._writable_y(), self.state.e
        sums = self.liabilities.draw(response, cuts, y, e, self.state.Rinv, number, key)
        self.state.take_y(y)
        return sums

    def reflect(self, response: int, cuts: np.ndarray, number: int, key: Key) -> None:
        """y of one response moves as `draw` would draw it, over-relaxed; e follows."""
        y, e = self._writable_y(), self.state.e
        self.liabilities.reflect(response, cuts, y, e, self.state.Rinv, number, key)
        self.state.take_y(y)

    def compare_cuts(self, response: int, cuts: np.ndarray, proposed: np.ndarray) -> float:
        """log p(categories | proposed) - log p(categories | cuts), liabilities integrated out."""
        state = self.state
        return self.liabilities.log_ratio(response, cuts, proposed, state.y, state.e, state.Rinv)

    def compare_residual_scales(self, response: int, cuts: np.ndarray, of_class: int, s: float) -> float:
        """log p(categories of the records of one class | s) - log p(... | 1), liabilities integrated out; s multiplies
        the residual standard deviation of the trait in that class."""
        state = self.state
        in_class = state.equations.design.class_of_pattern == of_class
        return self.liabilities.log_ratio_of_scale(response, cuts, s, in_class, state.y, state.e, state.Rinv)

    def scale_trait(self, trait: int, g: float) -> None:
        """y, e and theta of one trait times g."""
        state, y, e = self.state, self._writable_y(), self.state.e
        for i, components in self._components[trait]:
            theta = state.theta[i]
            for component in components:
                theta[:, component] *= g
            state.put_theta(i, theta)
        y[:, trait] *= g
        e[:, trait] *= g
        state.take_y(y)
        state.moved(e)

    @cached_property
    def _components(self) -> list[list[tuple[int, list[int]]]]:
        """For each trait, the terms that have components of it, and these components."""
        design = self.state.equations.design
        places = [
            [(i, np.flatnonzero(term.component_trait == trait).tolist()) for i, term in enumerate(design.terms)]
            for trait in range(design.n_traits)
        ]
        return [[(i, components) for i, components in of_trait if components] for of_trait in places]

    def scale(self, trait: int, g: float) -> None:
        """y of one trait times g; its effects are drawn anew after it."""
        y = self._writable_y()
        y[:, trait] *= g
        self.state.take_y(y)
        self.state.moved()

    def _writable_y(self) -> np.ndarray:
        """Return the y that this chain may change: a copy, where it is still that of the equations."""
        y = self.state.y
        return y.copy() if y is self.state.equations.records.y else y


class MarkerPasses:
    """Passes over the records for terms of SNP effects (markers.py); `markers` is a number of one."""

    def __init__(self, state: LocationState):
        self.state: LocationState = weakref.proxy(state)  # which keeps this object
        self.design, self.records = state.equations.design, state.equations.records
        # (n,) for each term: the breeding value of the animal of a record, in sweep order
        self.offsets = [np.zeros(len(state.y), state.real) for _ in self.design.markers]

    def sum_by_animal(self, markers: int, n: int) -> np.ndarray:
        """Sum w_r (R_p^-1 e_r)_t over the records of each animal of a term of SNP effects, (n,) float64."""
        out, trait = np.empty(n), self.design.markers[markers].trait
        pattern, weight = self.records.pattern, self.records.weight
        gather(pattern, weight, self._animals[markers], trait, self.state.e, self.state.Rinv, out)
        return out

    def weigh_animals(self, markers: int, n: int) -> np.ndarray:
        """Sum the weights of each animal's records by missing pattern, (patterns, n) float64."""
        return weights_of_animals(self.design, self.records, markers, n)

    def move_breeding_values(self, markers: int, g: np.ndarray) -> None:
        """Set the breeding values of the animals of a term of SNP effects to g, and update e."""
        e = self.state.e
        scatter(self._animals[markers], self.design.markers[markers].trait, g, self.offsets[markers], e)
        self.state.moved(e)

    def subtract_offsets(self, e: np.ndarray) -> None:
        """Take the breeding values off e, which was made without them."""
        for markers, offset in zip(self.design.markers, self.offsets, strict=True):
            e[:, markers.trait] -= offset

    @cached_property
    def _animals(self) -> list[np.ndarray]:
        """(n,) of each term of SNP effects: the animal of each record in its store, sweep order."""
        return [m.animal[self.records.record] for m in self.design.markers]

    def state_arrays(self) -> dict[str, np.ndarray]:
        """The offsets, by name."""
        return {f"offset.{i}": offset for i, offset in enumerate(self.offsets)}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        self.offsets = [np.array(state[f"offset.{i}"]) for i in range(len(self.offsets))]


class DenseTiles:
    """Cached products that sweeps and quadratic forms of dense blocks of K^-1 share, by term."""

    def __init__(self, state: LocationState):
        self.state: LocationState = weakref.proxy(state)  # which keeps this object
        self.by_term: dict[int, LaterTiles] = {}

    def find(self, term: int) -> LaterTiles | None:
        """Return the cached products of a term; None where its block is of another kind, or it has none."""
        dense = self.state.equations.dense[term]
        if term not in self.by_term and isinstance(dense, DenseLevels):
            self.by_term[term] = LaterTiles(dense, self.state.threads)
        return self.by_term.get(term)

    def find_known(self, term: int, theta: np.ndarray) -> LaterTiles | None:
        """Return the cached products of a term if they belong to theta, else None."""
        later = self.by_term.get(term)
        return later if later is not None and later.known(later.dense.columns(theta)) else None

    def state_arrays(self) -> dict[str, np.ndarray]:
        """Return the sums that are those of Theta, by name."""
        known = {i: self.find_known(i, theta) for i, theta in enumerate(self.state.theta)}
        return {later.name(i): later.sums for i, later in known.items() if later is not None}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        self.by_term = {}
        for i, theta in enumerate(self.state.theta):
            later = self.find(i)
            if later is not None and later.name(i) in state:
                later.take(np.array(state[later.name(i)]), later.dense.columns(theta))


class RelationshipParameters:
    """The lists of K^-1 of terms whose relationship has parameters that are sampled."""

    def __init__(self, state: LocationState):
        self.state: LocationState = weakref.proxy(state)  # which keeps this object
        self._lists: dict[int, RenewableLists] = {}

    def renew(self, term: int, parameters: np.ndarray) -> None:
        """Let the sweeps read K^-1 of a term at other values of its parameters."""
        self._find(term).renew(parameters)

    def sum_products(self, term: int) -> np.ndarray:
        """Compute (M, k, k) Theta' M_m Theta of the fixed matrices that K^-1 of a term is made of."""
        return self._find(term).sum_products(self.state.theta[term])

    def _find(self, term: int) -> RenewableLists:
        if term not in self._lists:
            self._lists[term] = RenewableLists(self.state.equations, term)
        return self._lists[term]
