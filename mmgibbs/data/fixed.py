"""Fixed effects as terms of the design: working covariates, columns set to 0, and the way back to the user's scale.

A *carrier* of a trait is a flat-prior intercept or class effect whose columns for this trait are all in force: its
levels sum to 1 on every record, so a constant can move into it. Traits and covariates are centred where there is one,
and only there.

Reference levels. On the user's scale the first intercept or class effect without a stated reference contains the mean
of the trait; every other class effect is differences from its reference level. This does not depend on how many levels
there are, so that a new level moves no other. The equations keep all levels of the largest class instead, which with
the others as differences from a level of few records would be far slower to sample; `Design.base` moves its reference
level into the effect that contains the mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from mmgibbs.data.covariates import Basis
from mmgibbs.data.levels import natural_order
from mmgibbs.data.rank import Columns, Rank, independent_columns
from mmgibbs.errors import ModelError
from mmgibbs.models.design import CentringShift, Rescale
from mmgibbs.models.terms import Effect, Flat, Levels, Normal, Term

INTERCEPT = "intercept"


@dataclass(frozen=True)
class ClassEffect:
    """An intercept or a class effect on the records."""

    name: str
    column: str
    traits: tuple[int, ...]
    level: np.ndarray  # (n,) int32
    ids: Sequence[str]  # (q,) labels, for notes
    prior_variances: tuple[float | None, ...] = ()  # of each trait, None: flat; (): flat for all
    reference: int | None = None  # level that the user names; None: the first in natural order
    vague: tuple[int, ...] = ()  # traits on which the effect has a prior that leaves differences alone to report

    @cached_property
    def _natural_order(self) -> np.ndarray:
        return np.array(natural_order(self.ids), np.int64)

    def choose_reference(self, levels: np.ndarray) -> int:
        """Return the reference level where only these, (q,) bool, have records of a trait; 0 where none has any."""
        if self.reference is not None and levels[self.reference]:
            return self.reference
        order = self._natural_order
        return int(order[np.argmax(levels[order])]) if levels.any() else 0

    def is_flat(self, trait: int) -> bool:
        """The effect acts on the trait, with a flat prior."""
        return _is_flat(self, trait)


@dataclass(frozen=True)
class CovariateEffect:
    """A regression on powers or Legendre polynomials, one line for all or one per level of `by`."""

    name: str
    traits: tuple[int, ...]
    basis: Basis
    ids: Sequence[str]  # (q,) labels; ('',) without `by`
    by: str | None = None  # column of the class that the slopes are nested in
    prior_variances: tuple[float | None, ...] = ()

    def is_flat(self, trait: int) -> bool:
        return _is_flat(self, trait)


def _is_flat(effect: ClassEffect | CovariateEffect, trait: int) -> bool:
    if trait not in effect.traits:
        return False
    return not effect.prior_variances or effect.prior_variances[effect.traits.index(trait)] is None


Effects = Sequence[ClassEffect | CovariateEffect]


def _class(effects: Effects, i: int) -> ClassEffect:
    effect = effects[i]
    assert isinstance(effect, ClassEffect)
    return effect


def _covariate(effects: Effects, i: int) -> CovariateEffect:
    effect = effects[i]
    assert isinstance(effect, CovariateEffect)
    return effect


@dataclass(frozen=True)
class GroupColumns:
    """Contributions of the unknown-parent groups of one component of a random term to the records of its trait."""

    term: str
    component: int
    trait: int
    values: np.ndarray  # (n, g) z_ra times the expected group composition
    label: str = ""  # of the component, where it is not that of the trait alone
    order: np.ndarray | None = None  # (g,) the group that is set to 0 first, the next one, ...; None: 0, 1, ...

    @property
    def reference(self) -> int:
        return 0 if self.order is None else int(self.order[0])

    @property
    def kept_order(self) -> np.ndarray:
        """(g,) groups in the order in which their columns are kept."""
        return (np.arange(self.values.shape[1]) if self.order is None else self.order)[::-1]


@dataclass(frozen=True)
class FixedDesign:
    terms: tuple[Term, ...]
    rescale: tuple[Rescale, ...]
    shifts: tuple[CentringShift, ...]
    offsets: tuple[tuple[int, int, float], ...]
    groups_active: dict[tuple[str, int], np.ndarray]  # (term, component) -> (g,) bool
    notes: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    base: tuple[CentringShift, ...] = ()
    references: dict = field(default_factory=dict)  # for run.json


@dataclass(frozen=True)
class _CovariateColumns:
    """The traits of one covariate effect that share their columns."""

    effect: int
    traits: tuple[int, ...]
    first: int  # power or polynomial that the columns begin with
    centre: bool  # the constant has left the columns
    Z: np.ndarray  # (n, m) columns as `Basis.working` makes them
    T: np.ndarray  # (m, m)
    means: np.ndarray  # (q, m)


def resolve(
    effects: Effects,
    observed: np.ndarray,
    y_mean: np.ndarray,
    weight: np.ndarray,
    trait_names: Sequence[str],
    groups: Sequence[GroupColumns] = (),
    group_names: Sequence[str] = (),
) -> FixedDesign:
    """Terms of the fixed effects in the order given. observed (n, T) bool, y_mean (T,), weight (n,)."""
    flat = [i for i, e in enumerate(effects) if isinstance(e, ClassEffect) and any(map(e.is_flat, e.traits))]
    parts = [
        p for i, e in enumerate(effects) if isinstance(e, CovariateEffect) for p in _parts(i, effects, flat, weight)
    ]
    ranks = _rank_by_trait(effects, flat, parts, groups, observed)
    carriers = [_carrier(effects, flat, ranks[t], t) for t in range(len(trait_names))]
    parts, shifts = _representable(effects, parts, flat, ranks, carriers, weight)
    terms, rescale = [], []
    for i, effect in enumerate(effects):
        if isinstance(effect, ClassEffect):
            terms.append(_class_term(effect, [ranks[t].class_columns.get(i) for t in effect.traits]))
        else:
            term, matrices = _covariate_term(i, effect, [(n, p) for n, p in enumerate(parts) if p.effect == i], ranks)
            terms.append(term)
            rescale += matrices
    offsets = tuple((c, effects[c].traits.index(t), float(y_mean[t])) for t, c in enumerate(carriers) if c is not None)
    active = {(g.term, g.component): ranks[g.trait].group_columns[n] for n, g in enumerate(groups)}
    with_means = [_effect_of_the_mean(effects, flat, rank, t) for t, rank in enumerate(ranks)]
    base = [
        shift
        for t, (carrier, mean) in enumerate(zip(carriers, with_means, strict=True))
        if carrier is not None and mean is not None and carrier != mean
        for shift in _base_shifts(effects, ranks[t].class_records[carrier], ranks[t], t, carrier, mean)
    ]
    vague: dict[tuple[int, int], int] = {}
    for i, effect in enumerate(effects):
        if not isinstance(effect, ClassEffect):
            continue
        for t in effect.vague:
            mean = with_means[t]
            records = np.bincount(effect.level[observed[:, t] & (effect.level >= 0)], minlength=len(effect.ids)) > 0
            if mean is not None and records.any():
                vague[i, t] = effect.choose_reference(records)
                base += _base_shifts(effects, records, ranks[t], t, i, mean)
    levels = Dropped(effects, flat, ranks, carriers, with_means, trait_names, groups, group_names, vague)
    notes = [*levels.notes(), *_notes(effects, parts, ranks, trait_names)]
    return FixedDesign(
        tuple(terms), tuple(rescale), tuple(shifts), offsets, active, tuple(notes), tuple(levels.warnings()),
        tuple(base), levels.references(),
    )  # fmt: skip


# ------------------------------------------------------------------------------------------------ working columns


def _parts(i: int, effects: Effects, flat: Sequence[int], weight: np.ndarray) -> list[_CovariateColumns]:
    """Group the traits of covariate effect i by whether a constant can leave its columns."""
    effect = _covariate(effects, i)
    spanned = {
        t: any(effects[c].is_flat(t) for c in flat if effect.by is None or _class(effects, c).column == effect.by)
        for t in effect.traits
    }
    parts = []
    for centre in (True, False):
        traits = tuple(t for t in effect.traits if spanned[t] == centre)
        first = 1 if centre or effect.basis.legendre_range is None else 0
        if traits and first <= effect.basis.degree:
            parts.append(
                _CovariateColumns(i, traits, first, centre, *effect.basis.working(first, centre, True, weight))
            )
    if not parts:
        raise ModelError(
            f"model.fixed.{effect.name}.legendre: found degree 0 where an intercept or a class effect includes the "
            "constant already; needed degree 1 or more"
        )
    return parts


def _representable(
    effects: Effects,
    parts: list[_CovariateColumns],
    flat: Sequence[int],
    ranks: list[_TraitRank],
    carriers: Sequence[int | None],
    weight: np.ndarray,
) -> tuple[list[_CovariateColumns], list[CentringShift]]:
    """(parts, shifts): a part whose centring no shift can undo, or with a gap among its kept columns, is made anew.

    The one is not centred, the other not orthonormal.
    """
    out, shifts = [], []
    for n, covariate in enumerate(parts):
        effect = _covariate(effects, covariate.effect)
        moved = (
            [_shifts(effects, parts, n, t, flat, ranks[t], carriers[t]) for t in covariate.traits]
            if covariate.centre
            else []
        )
        centre = covariate.centre and None not in moved
        # beta = T gamma keeps a dropped beta at 0 where only the last columns of a level go: T is upper triangular.
        orthonormal = not any(
            np.any(np.diff(ranks[t].part_columns[n].astype(np.int8), axis=1) > 0)
            for t in covariate.traits
            if n in ranks[t].part_columns
        )
        if centre != covariate.centre or not orthonormal:
            Z, T, means = effect.basis.working(covariate.first, centre, orthonormal, weight)
            covariate = replace(covariate, centre=centre, Z=Z, T=T, means=means)
        out.append(covariate)
        if centre:
            shifts += [s for of_trait in moved if of_trait is not None for s in of_trait]
    return out, shifts


def _shifts(
    effects: Effects,
    parts: Sequence[_CovariateColumns],
    n: int,
    t: int,
    flat: Sequence[int],
    rank: _TraitRank,
    carrier: int | None,
) -> list[CentringShift] | None:
    """The shifts that undo the centring of part n for trait t; None where there is no way to write them."""
    covariate = parts[n]
    effect = _covariate(effects, covariate.effect)
    # The centred part of an effect comes first, so its components begin at 0.
    m = covariate.Z.shape[1]
    components = tuple(covariate.traits.index(t) * m + j for j in range(m))

    def shift(target: int, source_level: np.ndarray, means: np.ndarray) -> CentringShift:
        return CentringShift(
            target, effects[target].traits.index(t), covariate.effect, components, source_level.astype(np.int32), means
        )

    if effect.by is None:
        return None if carrier is None else [shift(carrier, np.zeros(len(effects[carrier].ids)), covariate.means)]
    by = next(c for c in flat if _class(effects, c).column == effect.by and effects[c].is_flat(t))
    where = {label: code for code, label in enumerate(effect.ids)}
    # A level of the class that the slopes never meet has no records for this trait: it is set to 0, its entry unused.
    source_level = np.array([where.get(label, 0) for label in effects[by].ids])
    centring = shift(by, source_level, covariate.means)
    held = np.flatnonzero(rank.class_records[by] & ~rank.class_columns[by])
    if len(held) == 0:
        return [centring]
    if len(held) > 1 or carrier is None or carrier == by:
        return None
    # The one level set to 0 is the carrier less all the other levels, so its constant goes there.
    lost = source_level[held[0]]
    return [
        centring,
        shift(carrier, np.full(len(effects[carrier].ids), lost), covariate.means),
        shift(by, np.full(len(effects[by].ids), lost), -covariate.means),
    ]


# ------------------------------------------------------------------------------------------------ rank


@dataclass(frozen=True)
class _TraitRank:
    """The columns in force for one trait."""

    class_columns: dict[int, np.ndarray]  # effect -> (q,) bool
    class_records: dict[int, np.ndarray]  # effect -> (q,) bool: the level has records of this trait
    part_columns: dict[int, np.ndarray]  # part -> (q, m) bool
    group_columns: dict[int, np.ndarray]  # entry of `groups` -> (g,) bool
    apart: tuple[int, ...]  # flat class effects and parts that were checked against the largest class alone

    def dropped(self, effect: int) -> np.ndarray:
        """(q,) bool: levels of a class that have records of the trait and no equation."""
        return self.class_records[effect] & ~self.class_columns[effect]


def _rank_by_trait(
    effects: Effects,
    flat: Sequence[int],
    parts: Sequence[_CovariateColumns],
    groups: Sequence[GroupColumns],
    observed: np.ndarray,
) -> list[_TraitRank]:
    ranks: list[_TraitRank] = []
    known: list[tuple[tuple, int]] = []
    of_traits = [np.packbits(column).tobytes() for column in observed.T]  # quick to compare
    for t in range(observed.shape[1]):
        classes = [i for i in flat if effects[i].is_flat(t)]
        slopes = [n for n, p in enumerate(parts) if t in p.traits and effects[p.effect].is_flat(t)]
        gene_groups = [n for n, g in enumerate(groups) if g.trait == t]
        same = next(
            (s for key, s in known if not gene_groups and key == (classes, slopes) and of_traits[s] == of_traits[t]),
            None,
        )
        if same is not None:
            ranks.append(ranks[same])
            continue
        known.append(((classes, slopes), t))
        rows = np.flatnonzero(observed[:, t])
        everything = len(rows) == len(observed)

        def take(a: np.ndarray, rows: np.ndarray = rows, everything: bool = everything) -> np.ndarray:
            return a if everything else a[rows]

        columns = [_class_columns(_class(effects, i), take(_class(effects, i).level)) for i in classes]
        columns += [
            Columns(take(basis.level), basis.n_levels, take(parts[n].Z))
            for n in slopes
            for basis in [_covariate(effects, parts[n].effect).basis]
        ]
        columns += [
            Columns(np.zeros(len(rows), np.int32), 1, take(groups[n].values)[:, groups[n].kept_order])
            for n in gene_groups
        ]
        intercept = next((j for j, i in enumerate(classes) if effects[i].name == INTERCEPT), None)
        rank = independent_columns(columns, intercept)
        kept_orders = [groups[n].kept_order for n in gene_groups]
        ranks.append(_classify_columns(rank, classes, slopes, dict(zip(gene_groups, kept_orders, strict=True))))
    return ranks


def _class_columns(effect: ClassEffect, level: np.ndarray) -> Columns:
    """level: (n,) of the records of a trait."""
    with_records = np.bincount(level[level >= 0], minlength=len(effect.ids)) > 0
    return Columns(level, len(effect.ids), reference=effect.choose_reference(with_records))


def _classify_columns(
    rank: Rank, classes: Sequence[int], slopes: Sequence[int], gene_groups: Mapping[int, np.ndarray]
) -> _TraitRank:
    """gene_groups: entry of `groups` -> the order of its columns."""
    a, b = len(classes), len(classes) + len(slopes)
    return _TraitRank(
        {i: rank.independent[j][:, 0] for j, i in enumerate(classes)},
        {i: rank.with_records[j][:, 0] for j, i in enumerate(classes)},
        {n: rank.independent[a + j] for j, n in enumerate(slopes)},
        {n: rank.independent[b + j][0][np.argsort(order)] for j, (n, order) in enumerate(gene_groups.items())},
        rank.checked_apart,
    )


def _carrier(effects: Effects, flat: Sequence[int], rank: _TraitRank, t: int) -> int | None:
    """The first flat intercept or class effect with all its levels in force for trait t."""
    for i in flat:
        if (
            effects[i].is_flat(t)
            and np.any(rank.class_records[i])
            and np.array_equal(rank.class_columns[i], rank.class_records[i])
        ):
            return i
    return None


def _effect_of_the_mean(effects: Effects, flat: Sequence[int], rank: _TraitRank, t: int) -> int | None:
    """The intercept or class effect that contains the mean of trait t on the user's scale: the first without a stated
    reference that has no more than one level depending on other effects, as nested classes have."""
    for i in flat:
        if not effects[i].is_flat(t) or _class(effects, i).reference is not None:
            continue
        if np.any(rank.class_records[i]) and np.count_nonzero(rank.dropped(i)) <= 1:
            return i
    return None


def _base_shifts(
    effects: Effects, of_carrier: np.ndarray, rank: _TraitRank, t: int, carrier: int, mean: int
) -> list[CentringShift]:
    """The reference level r of the carrier moves into the effect with the mean: m_l += c_r, c_l -= c_r, c_r = 0.

    Every record has a level of both, so that it is the same fit. c_r is subtracted from itself last, by itself.
    of_carrier: (q,) bool, the levels of the carrier with records of trait t; under a prior all levels have solutions.
    """
    of_mean = rank.class_records[mean]
    r = _class(effects, carrier).choose_reference(of_carrier)
    is_reference = np.arange(len(of_carrier)) == r
    components = tuple(effects[i].traits.index(t) for i in (mean, carrier))

    def shift(target: int, component: int, sign: float, moved: np.ndarray) -> CentringShift:
        sources = np.full(len(effects[target].ids), r, np.int32)
        means = np.full((len(of_carrier), 1), sign)
        return CentringShift(target, component, carrier, (components[1],), sources, means, moved)

    moved = np.ones(len(is_reference), bool) if t in _class(effects, carrier).vague else of_carrier
    return [
        shift(mean, components[0], -1.0, of_mean),
        shift(carrier, components[1], 1.0, moved & ~is_reference),
        shift(carrier, components[1], 1.0, is_reference),
    ]


# ------------------------------------------------------------------------------------------------ terms


def _class_term(effect: ClassEffect, columns: list[np.ndarray | None]) -> Term:
    q = len(effect.ids)
    prior: Flat | Normal = Flat()
    if any(v is not None for v in effect.prior_variances):
        prior = Normal(np.diag([0.0 if v is None else 1 / v for v in effect.prior_variances]))
    active = np.stack([np.ones(q, bool) if c is None else c for c in columns], axis=1)
    return Term(
        effect.name, Levels((Effect("", effect.level, effect.traits),), q), prior, None if active.all() else active
    )


def _covariate_term(
    index: int, effect: CovariateEffect, parts: list[tuple[int, _CovariateColumns]], ranks: Sequence[_TraitRank]
) -> tuple[Term, list[Rescale]]:
    brought, active, blocks, rescale = [], [], [], []
    start = 0
    for n, covariate in parts:
        m = covariate.Z.shape[1]
        brought.append(
            Effect("", effect.basis.level, covariate.traits, covariate.Z, effect.basis.labels(covariate.first))
        )
        for t in covariate.traits:
            rescale.append(Rescale(index, tuple(range(start, start + m)), covariate.T))
            active.append(ranks[t].part_columns.get(n, np.ones((effect.basis.n_levels, m), bool)))
            # beta = T gamma ~ N(0, v I), so gamma has precision T'T / v
            variance = effect.prior_variances[effect.traits.index(t)] if effect.prior_variances else None
            if variance is not None:
                blocks.append((start, covariate.T.T @ covariate.T / variance))
            start += m
    prior: Flat | Normal = Flat()
    if blocks:
        precision = np.zeros((start, start))
        for at, block in blocks:
            precision[at : at + len(block), at : at + len(block)] = block
        prior = Normal(precision)
    in_force = np.hstack(active)
    incidence = Levels(tuple(brought), effect.basis.n_levels)
    return Term(effect.name, incidence, prior, None if in_force.all() else in_force), rescale


# ------------------------------------------------------------------------------------------------ notes


@dataclass(frozen=True)
class Dropped:
    """The levels that are set to 0 on the user's scale, and why: as references, or as aliased with others."""

    effects: Effects
    flat: Sequence[int]
    ranks: Sequence[_TraitRank]
    carriers: Sequence[int | None]  # by trait
    with_means: Sequence[int | None]  # by trait: the effect that contains its mean
    trait_names: Sequence[str]
    groups: Sequence[GroupColumns]
    group_names: Sequence[str]
    vague: Mapping[tuple[int, int], int]  # (effect, trait) -> reference level, where a prior has kept its equation

    def _set_to_0(self, i: int, t: int) -> tuple[int | None, list[int]]:
        """(reference level, aliased levels) of class effect i on trait t."""
        effect, rank = _class(self.effects, i), self.ranks[t]
        dropped, mean = rank.dropped(i), self.with_means[t]
        reference = effect.choose_reference(rank.class_records[i])
        if mean is not None and mean != self.carriers[t]:
            dropped = np.zeros(len(dropped), bool) if i == mean else dropped
            dropped[reference] |= i == self.carriers[t]
        levels = np.flatnonzero(dropped).tolist()
        if len(levels) == np.count_nonzero(rank.class_records[i]) > 1:
            return None, levels  # aliased with other effects altogether
        return (reference if reference in levels else None), [level for level in levels if level != reference]

    def references(self) -> dict:
        """Term -> trait -> reference level; {'fixed': ..., 'groups': ..., 'means': trait -> effect with its mean}."""
        fixed: dict[str, dict[str, str]] = {}
        of_groups: dict[str, dict[str, str]] = {}
        for t, i in ((t, i) for t, rank in enumerate(self.ranks) for i in rank.class_columns):
            if (level := self._set_to_0(i, t)[0]) is not None:
                fixed.setdefault(self.effects[i].name, {})[self.trait_names[t]] = self.effects[i].ids[level]
        for (i, t), level in self.vague.items():
            fixed.setdefault(self.effects[i].name, {})[self.trait_names[t]] = _class(self.effects, i).ids[level]
        for n, group in enumerate(self.groups):
            if not self.ranks[group.trait].group_columns[n][group.reference]:
                label = self.trait_names[group.trait] if group.label == "" else group.label
                of_groups.setdefault(group.term, {})[label] = self.group_names[group.reference]
        named = {self.trait_names[t]: self.effects[i].name for t, i in enumerate(self.with_means) if i is not None}
        return {"fixed": fixed, "groups": of_groups, "means": named}

    def notes(self) -> list[str]:
        references, notes = self.references(), []
        for term, levels in references["fixed"].items():
            notes += _reference_notes(f"reference level of {term}", levels)
        for term, levels in references["groups"].items():
            notes += _reference_notes(f"reference of the unknown-parent groups of {term}", levels)
        for t, trait in enumerate(self.trait_names):
            rank = self.ranks[t]
            for i in rank.class_columns:
                ids = self.effects[i].ids
                what, empty = f"{self.effects[i].name}, {trait}", np.flatnonzero(~rank.class_records[i]).tolist()
                notes += _held(what, [ids[j] for j in empty], "no records")
                notes += _held(what, [ids[j] for j in self._set_to_0(i, t)[1]], ALIASED)
            for n, columns in rank.group_columns.items():
                group = self.groups[n]
                also = [j for j in np.flatnonzero(~columns).tolist() if j != group.reference]
                notes += _held(
                    f"unknown-parent groups of {group.term} (component {group.component + 1}), {trait}",
                    [self.group_names[j] for j in also],
                    "aliased: the records cannot tell them from fixed effects and other groups",
                )
        return notes

    def warnings(self) -> list[str]:
        """References that the user names and that have no records of a trait."""
        out = []
        for t, trait in enumerate(self.trait_names):
            for i, records in self.ranks[t].class_records.items():
                effect = _class(self.effects, i)
                if effect.reference is not None and not records[effect.reference] and records.any():
                    level, instead = effect.ids[effect.reference], effect.ids[effect.choose_reference(records)]
                    out.append(
                        f"model.fixed.{effect.name}.reference: level '{level}' has no records of {trait}; its "
                        f"solutions are differences from '{instead}'"
                    )
        return out


ALIASED = "aliased: the records cannot tell them from other fixed effects"


def _reference_notes(what: str, levels: Mapping[str, str]) -> list[str]:
    """List notes on reference levels, a single one where all traits have the same level."""
    if len(set(levels.values())) == 1:
        return [f"{what}: {next(iter(levels.values()))}"]
    return [f"{what}, {trait}: {level}" for trait, level in levels.items()]


def _notes(
    effects: Effects, parts: Sequence[_CovariateColumns], ranks: Sequence[_TraitRank], trait_names: Sequence[str]
) -> list[str]:
    """List notes on columns of covariates that were set to 0, and on effects that were not checked in full."""
    notes = []
    for t, trait in enumerate(trait_names):
        rank = ranks[t]
        for n, columns in rank.part_columns.items():
            effect, covariate = _covariate(effects, parts[n].effect), parts[n]
            labels = effect.basis.labels(covariate.first)
            levels, coefficients = np.nonzero(~columns)
            names = [
                f"{effect.ids[a]}:{labels[b]}" if effect.by is not None else labels[b]
                for a, b in zip(levels.tolist(), coefficients.tolist(), strict=False)
            ]
            notes += _held(f"{effect.name}, {trait}", names, "not separable from the other fixed effects")
        if rank.apart:
            every = [effects[i].name for i in rank.class_columns] + [
                effects[parts[n].effect].name for n in rank.part_columns
            ]
            notes.append(
                f"{trait}: {', '.join(every[j] for j in rank.apart)} too large for the full check of rank; "
                "compared with the largest class effect alone"
            )
    return notes


def _held(what: str, names: list[str], reason: str) -> list[str]:
    """List a note on levels set to 0, at most six of them by name."""
    if not names:
        return []
    more = f" and {len(names) - 6} more" if len(names) > 6 else ""
    return [
        f"{what}: {len(names)} level{'s' if len(names) > 1 else ''} set to 0 ({reason}): {', '.join(names[:6])}{more}"
    ]
