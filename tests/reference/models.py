"""Small designs of every kind, 20-60 equations each, for tests that ask every engine and block kind the same question.

    @pytest.mark.parametrize("name", models.NAMES)
    def test_...(name):
        example = models.example(name)

Each comes with variances in force (`G` per term, None for fixed terms; `R`) and records simulated from them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from reference import dense, tabular
from scipy.linalg import block_diag

from mmgibbs.models.design import Design
from mmgibbs.models.relationships.base import DenseBlock
from mmgibbs.models.relationships.genomic import Genomic
from mmgibbs.models.relationships.groups import GroupedPedigree
from mmgibbs.models.relationships.identity import Identity
from mmgibbs.models.relationships.metafounders import metafounders
from mmgibbs.models.relationships.pedigree import Pedigree
from mmgibbs.models.relationships.selfing import SelfedPedigree
from mmgibbs.models.relationships.single_step import SingleStep
from mmgibbs.models.relationships.user_inverse import SparseInverse
from mmgibbs.models.terms import Effect, Flat, Levels, Normal, Related, Term
from mmgibbs.pedigree.metafounders import metafounder_relatives
from mmgibbs.pedigree.relationship import relatives
from mmgibbs.pedigree.selfing import selfed_relatives

EXAMPLES = {}


@dataclass(frozen=True)
class Example:
    name: str
    design: Design
    G: list  # (k, k) per term; None for fixed terms
    R: np.ndarray  # (T, T)

    def random_terms(self) -> list[int]:
        return [i for i, g in enumerate(self.G) if g is not None]


def example(name: str) -> Example:
    return _made(name)


@cache
def _made(name: str) -> Example:
    design, G, R = EXAMPLES[name]()
    return Example(name, design, [None if g is None else np.asarray(g, float) for g in G], np.asarray(R, float))


def _register(make):
    EXAMPLES[make.__name__] = make
    return make


# Parts


def looped_pedigree(rng, n: int, founders: int) -> tuple[np.ndarray, np.ndarray]:
    """Parents from a narrow pool of the last few animals: loops, inbreeding, now and then one parent unknown."""
    sire, dam = np.full(n, -1, np.int32), np.full(n, -1, np.int32)
    for i in range(founders, n):
        pool = np.arange(max(0, i - 7), i)
        sire[i] = rng.choice(pool[pool % 2 == 0])
        dam[i] = rng.choice(pool[pool % 2 == 1])
    sire[founders + 1] = -1
    dam[founders + 2] = -1
    return sire, dam


def pedigree_relationship(sire, dam, inbreeding: bool = True, n_groups: int = 0, random_groups: bool = False):
    F = tabular.inbreeding(sire, dam) if inbreeding else None
    kin = relatives(sire, dam, F, n_groups=n_groups, random_groups=random_groups)
    return GroupedPedigree(kin) if n_groups else Pedigree(kin)


def user_inverse(K_inverse: np.ndarray) -> SparseInverse:
    K_inverse = (K_inverse + K_inverse.T) / 2  # rounding leaves a 0 on one side of the diagonal alone
    rows, columns = np.nonzero(K_inverse)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(K_inverse)))]).astype(np.int64)
    return SparseInverse(indptr, columns.astype(np.int32), K_inverse[rows, columns])


def class_term(name, level, n_levels, traits, active=None, prior_precision=None) -> Term:
    effect = Effect("", np.asarray(level, np.int32), tuple(traits))
    prior = Flat() if prior_precision is None else Normal(prior_precision)
    return Term(name, Levels((effect,), n_levels), prior, active)


def random_term(name, effects, relationship, n_levels, active=None) -> Term:
    return Term(name, Levels(tuple(effects), n_levels), Related(relationship), active)


def without_first_level(q: int, k: int) -> np.ndarray:
    """The usual constraint of a second class effect."""
    active = np.ones((q, k), bool)
    active[0] = False
    return active


def legendre(x, degree: int) -> np.ndarray:
    """Normalised Legendre polynomials, sqrt((2j + 1)/2) P_j(x), (n, degree + 1)."""
    values = [np.polynomial.legendre.Legendre.basis(j)(x) * np.sqrt((2 * j + 1) / 2) for j in range(degree + 1)]
    return np.stack(values, axis=1)


def with_records(rng, n: int, terms, G, R, observed=None, weight=None) -> Design:
    """Simulate theta from its prior (fixed effects from N(0, 4)) and y from theta; NaN where not observed."""
    R = np.asarray(R, float)
    T = len(R)
    y = np.zeros((n, T))
    weight = np.ones(n) if weight is None else weight
    for term, g in zip(terms, G, strict=True):
        q, k = term.n_levels, term.n_components
        theta = 2 * rng.standard_normal((q, k))
        if g is not None:
            m = term.n_prior_levels
            K = np.linalg.inv(dense.relationship_inverse(term)[:m, :m])
            theta = np.zeros((q, k))
            theta[:m] = np.linalg.cholesky(K) @ rng.standard_normal((m, k)) @ np.linalg.cholesky(np.asarray(g, float)).T
        if term.active is not None:
            theta = np.where(term.active, theta, 0.0)
        y += dense.incidence(term, T) @ theta.ravel()
    y += rng.standard_normal((n, T)) @ np.linalg.cholesky(R).T / np.sqrt(weight)[:, None]
    observed = np.ones((n, T), bool) if observed is None else observed
    patterns, pattern = np.unique(observed, axis=0, return_inverse=True)
    names = tuple(f"trait{t + 1}" for t in range(T))
    return Design(
        names, np.where(observed, y, np.nan), pattern.reshape(n).astype(np.int32), patterns, weight, tuple(terms)
    )


def some_observed(rng, n: int, T: int) -> np.ndarray:
    """Every missing pattern occurs; every record has at least one trait."""
    patterns = np.array([[bool(p >> t & 1) for t in range(T)] for p in range(1, 2**T)])
    return patterns[np.concatenate([np.arange(len(patterns)), rng.integers(0, len(patterns), n - len(patterns))])]


# Examples


@_register
def univariate_animal():
    """One trait, a class effect, weights, repeated records, inbreeding loops."""
    rng = np.random.default_rng(101)
    n_animals, n = 22, 30
    sire, dam = looped_pedigree(rng, n_animals, 4)
    animal = Effect("", rng.integers(3, n_animals, n).astype(np.int32), (0,))
    terms = [
        class_term("herd", np.arange(n) % 3, 3, [0]),
        random_term("genetic", [animal], pedigree_relationship(sire, dam), n_animals),
    ]
    G, R = [None, [[4.0]]], [[6.0]]
    return with_records(rng, n, terms, G, R, weight=rng.uniform(0.5, 2.5, n)), G, R


@_register
def univariate_inbreeding_ignored():
    """Loops, but Mendelian sampling variances as if no parent were inbred; two class effects."""
    rng = np.random.default_rng(102)
    n_animals, n = 20, 24
    sire, dam = looped_pedigree(rng, n_animals, 4)
    animal = Effect("", (np.arange(n) % n_animals).astype(np.int32), (0,))
    terms = [
        class_term("herd", np.arange(n) % 4, 4, [0]),
        class_term("sex", np.arange(n) // 4 % 2, 2, [0], active=without_first_level(2, 1)),
        random_term("genetic", [animal], pedigree_relationship(sire, dam, inbreeding=False), n_animals),
    ]
    G, R = [None, None, [[3.0]]], [[5.0]]
    return with_records(rng, n, terms, G, R), G, R


@_register
def bivariate_missing():
    """Two traits, half of the records with one of them missing, weights; the class effect of trait 2 differs."""
    rng = np.random.default_rng(103)
    n_animals, n = 18, 26
    sire, dam = looped_pedigree(rng, n_animals, 4)
    animal = Effect("", rng.integers(0, n_animals, n).astype(np.int32), (0, 1))
    terms = [
        class_term("herd", np.arange(n) % 2, 2, [0, 1]),
        class_term("season", np.arange(n) // 3 % 3, 3, [1], active=without_first_level(3, 1)),
        random_term("genetic", [animal], pedigree_relationship(sire, dam), n_animals),
    ]
    G, R = [None, None, [[4.0, 1.5], [1.5, 3.0]]], [[6.0, 2.0], [2.0, 5.0]]
    return with_records(rng, n, terms, G, R, some_observed(rng, n, 2), rng.uniform(0.5, 2.0, n)), G, R


@_register
def direct_maternal():
    """Two traits, maternal genetic effect and maternal environment on the second; some dams unknown, missing traits."""
    rng = np.random.default_rng(104)
    n_animals = 14
    sire, dam = looped_pedigree(rng, n_animals, 4)
    animal = rng.integers(4, n_animals, 24).astype(np.int32)
    mother = dam[animal]  # -1 where unknown: such a record meets no maternal level
    assert (mother < 0).any()
    dams, maternal_level = np.unique(mother[mother >= 0], return_inverse=True)
    environment = np.full(24, -1, np.int32)
    environment[mother >= 0] = maternal_level
    terms = [
        class_term("contemporary_group", np.arange(24) % 3, 3, [0, 1]),
        random_term(
            "genetic",
            [Effect("direct", animal, (0, 1)), Effect("maternal", mother, (1,))],
            pedigree_relationship(sire, dam),
            n_animals,
        ),
        random_term("maternal_environment", [Effect("", environment, (1,))], Identity(len(dams)), len(dams)),
    ]
    G = [None, [[4.0, 1.0, 0.2], [1.0, 5.0, -1.0], [0.2, -1.0, 3.0]], [[1.5]]]
    R = [[6.0, 2.0], [2.0, 8.0]]
    return with_records(rng, 24, terms, G, R, some_observed(rng, 24, 2), rng.uniform(0.5, 2.0, 24)), G, R


@_register
def three_traits_maternal():
    """Three traits, all seven missing patterns, maternal effects on two of them: k = 5, k = 2 and k = 3."""
    rng = np.random.default_rng(105)
    n_animals, n = 9, 30
    sire, dam = looped_pedigree(rng, n_animals, 3)
    animal = rng.integers(3, n_animals, n).astype(np.int32)
    mother = dam[animal]
    terms = [
        class_term("sex", np.arange(n) % 2, 2, [0, 1, 2]),
        random_term(
            "genetic",
            [Effect("direct", animal, (0, 1, 2)), Effect("maternal", mother, (1, 2))],
            pedigree_relationship(sire, dam),
            n_animals,
        ),
        random_term("herd_year", [Effect("", (np.arange(n) % 3).astype(np.int32), (0, 2))], Identity(3), 3),
    ]
    L = np.tril(rng.uniform(-0.5, 0.5, (5, 5)), -1) + np.diag([2.0, 1.8, 1.5, 1.2, 1.0])
    M = np.tril(rng.uniform(-0.5, 0.5, (3, 3)), -1) + np.diag([2.0, 2.2, 1.8])
    G, R = [None, L @ L.T, [[1.0, 0.3], [0.3, 2.0]]], M @ M.T
    return with_records(rng, n, terms, G, R, some_observed(rng, n, 3), rng.uniform(0.5, 2.0, n)), G, R


@_register
def random_regression():
    """Two traits, Legendre intercept and slope of age for animal and permanent environment; repeated records."""
    rng = np.random.default_rng(106)
    n_animals, n = 8, 28
    sire, dam = looped_pedigree(rng, n_animals, 3)
    animal = np.concatenate([np.arange(2, n_animals), rng.integers(2, n_animals, n - n_animals + 2)]).astype(np.int32)
    age = rng.uniform(-1, 1, n)
    labels = ("legendre.0", "legendre.1")
    curve = Effect("rr", animal, (0, 1), legendre(age, 1), labels)
    own = Effect("rr", (animal - 2).astype(np.int32), (1,), legendre(age, 1), labels)
    terms = [
        class_term("herd", np.arange(n) % 2, 2, [0, 1]),
        random_term("genetic", [curve], pedigree_relationship(sire, dam), n_animals),
        random_term("permanent_environment", [own], Identity(n_animals - 2), n_animals - 2),
    ]
    G = [
        None,
        [[5.0, 1.0, 1.5, 0.2], [1.0, 2.0, 0.3, 0.4], [1.5, 0.3, 4.0, -0.8], [0.2, 0.4, -0.8, 1.5]],
        [[2.0, 0.5], [0.5, 1.0]],
    ]
    R = [[4.0, 1.0], [1.0, 3.0]]
    return with_records(rng, n, terms, G, R, some_observed(rng, n, 2)), G, R


@_register
def user_relationship():
    """A user's inverse relationship matrix (a sparse positive definite one) with weights; k = 2."""
    rng = np.random.default_rng(107)
    q, n = 15, 25
    B = np.eye(q) + np.diag(rng.uniform(-0.5, 0.5, q - 1), -1) + np.diag(rng.uniform(-0.4, 0.4, q - 4), -4)
    line = Effect("", rng.integers(0, q, n).astype(np.int32), (0, 1))
    terms = [
        class_term("trial", np.arange(n) % 2, 2, [0, 1]),
        random_term("genomic", [line], user_inverse(B.T @ B), q),
    ]
    G, R = [None, [[3.0, -1.0], [-1.0, 2.0]]], [[4.0, 1.0], [1.0, 5.0]]
    return with_records(rng, n, terms, G, R, some_observed(rng, n, 2), rng.uniform(0.3, 3.0, n)), G, R


def _grouped_pedigree(rng, n_animals: int, n_groups: int):
    """Unknown parents become one of the groups n, n + 1, ...; one founder has the same group twice."""
    sire, dam = looped_pedigree(rng, n_animals, 5)
    for parents in (sire, dam):
        unknown = np.flatnonzero(parents < 0)
        parents[unknown] = n_animals + rng.integers(0, n_groups, unknown.size)
    sire[0] = dam[0] = n_animals
    sire[1], dam[1] = n_animals + 1, n_animals + n_groups - 1
    return sire, dam


@_register
def random_groups():
    """Unknown-parent groups with the variance of the genetic effect; one founder without a group; two traits."""
    rng = np.random.default_rng(108)
    n_animals, n_groups, n = 16, 3, 26
    sire, dam = _grouped_pedigree(rng, n_animals, n_groups)
    sire[2] = dam[2] = -1
    animal = Effect("", rng.integers(0, n_animals, n).astype(np.int32), (0, 1))
    kind = pedigree_relationship(sire, dam, n_groups=n_groups, random_groups=True)
    terms = [
        class_term("herd", np.arange(n) % 2, 2, [0, 1]),
        random_term("genetic", [animal], kind, n_animals + n_groups),
    ]
    G, R = [None, [[4.0, 1.0], [1.0, 3.0]]], [[6.0, 1.0], [1.0, 5.0]]
    return with_records(rng, n, terms, G, R, some_observed(rng, n, 2)), G, R


@_register
def fixed_groups():
    """Flat unknown-parent groups: their shares sum to one, so with a class effect each trait holds one of them at 0."""
    rng = np.random.default_rng(109)
    n_animals, n_groups, n = 18, 3, 30
    sire, dam = _grouped_pedigree(rng, n_animals, n_groups)
    animal = Effect("", rng.integers(0, n_animals, n).astype(np.int32), (0, 1))
    kind = pedigree_relationship(sire, dam, n_groups=n_groups, random_groups=False)
    active = np.ones((n_animals + n_groups, 2), bool)
    active[-1, 0] = active[-2, 1] = False
    terms = [
        class_term("herd", np.arange(n) % 2, 2, [0, 1]),
        random_term("genetic", [animal], kind, n_animals + n_groups, active),
    ]
    G, R = [None, [[4.0, 1.0], [1.0, 3.0]]], [[6.0, 1.0], [1.0, 5.0]]
    return with_records(rng, n, terms, G, R, some_observed(rng, n, 2), rng.uniform(0.5, 2.0, n)), G, R


def selfed_pedigree(
    rng, n: int, founders: int, generations=(0, 0, 1, 2, 5)
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Plants that are both sire and dam, some crossed with themselves; founders and lines with generations of
    selfing."""
    sire, dam = np.full(n, -1, np.int32), np.full(n, -1, np.int32)
    for i in range(founders, n):
        sire[i], dam[i] = rng.integers(max(0, i - 8), i, 2)
    dam[founders] = sire[founders]
    sire[founders + 1] = -1
    return sire, dam, rng.choice(generations, n)


@_register
def selfed_lines():
    """A pedigree of lines with generations of selfing after the crosses; weights, repeated records."""
    rng = np.random.default_rng(113)
    n_lines, n = 20, 30
    sire, dam, generations = selfed_pedigree(rng, n_lines, 6, (0, 1, 2))
    kind = SelfedPedigree(selfed_relatives(sire, dam, generations), generations)
    line = Effect("", rng.integers(0, n_lines, n).astype(np.int32), (0,))
    terms = [class_term("block", np.arange(n) % 3, 3, [0]), random_term("line", [line], kind, n_lines)]
    G, R = [None, [[3.0]]], [[5.0]]
    return with_records(rng, n, terms, G, R, weight=rng.uniform(0.5, 2.0, n)), G, R


@_register
def sire_and_grandsire():
    """Sire and maternal grandsire effects of one bull: some records meet one level through both effects."""
    rng = np.random.default_rng(110)
    n_bulls, n = 10, 30
    sire, dam = looped_pedigree(rng, n_bulls, 3)
    bull = rng.integers(0, n_bulls, n).astype(np.int32)
    grandsire = rng.integers(0, n_bulls, n).astype(np.int32)
    grandsire[:6] = bull[:6]
    grandsire[6:9] = -1
    effects = [Effect("sire", bull, (0, 1)), Effect("grandsire", grandsire, (0, 1))]
    terms = [
        class_term("herd", np.arange(n) % 3, 3, [0, 1]),
        random_term("genetic", effects, pedigree_relationship(sire, dam), n_bulls),
    ]
    L = np.tril(rng.uniform(-0.4, 0.4, (4, 4)), -1) + np.diag([1.5, 1.2, 1.0, 0.8])
    G, R = [None, L @ L.T], [[6.0, 1.0], [1.0, 5.0]]
    return with_records(rng, n, terms, G, R, some_observed(rng, n, 2), rng.uniform(0.5, 2.0, n)), G, R


@_register
def same_effect_twice():
    """A social model: a record meets its term again through the pen mate, on the same trait, with a covariate."""
    rng = np.random.default_rng(111)
    q, n = 12, 26
    own = rng.integers(0, q, n).astype(np.int32)
    mate = rng.integers(0, q, n).astype(np.int32)
    mate[:4] = own[:4]
    effects = [Effect("direct", own, (0,)), Effect("social", mate, (0,), rng.uniform(0.2, 1.0, (n, 1)), ("share",))]
    terms = [
        class_term("pen", np.arange(n) % 4, 4, [0]),
        random_term("group", effects, Identity(q), q),
    ]
    G, R = [None, [[3.0, -0.5], [-0.5, 1.0]]], [[4.0]]
    return with_records(rng, n, terms, G, R), G, R


@_register
def pen_mates():
    """Direct effects of two traits and social effects of up to three mates with weights, on the first trait; one mate
    has another twice."""
    rng = np.random.default_rng(114)
    n_animals, n = 16, 26
    sire, dam = looped_pedigree(rng, n_animals, 4)
    own = rng.integers(0, n_animals, n).astype(np.int32)
    mates = rng.integers(0, n_animals, (n, 3)).astype(np.int32)
    mates[rng.uniform(size=mates.shape) < 0.2] = -1
    mates[0], mates[1] = (3, 3, -1), (own[1], 5, 5)
    effects = [
        Effect("direct", own, (0, 1)),
        Effect("social", mates, (0,), rng.uniform(0.2, 1.0, mates.shape)),
    ]
    terms = [
        class_term("pen", np.arange(n) % 3, 3, [0, 1]),
        random_term("genetic", effects, pedigree_relationship(sire, dam), n_animals),
    ]
    G = [None, [[4.0, 1.0, -0.6], [1.0, 5.0, 0.4], [-0.6, 0.4, 1.0]]]
    R = [[6.0, 2.0], [2.0, 8.0]]
    return with_records(rng, n, terms, G, R, some_observed(rng, n, 2), rng.uniform(0.5, 2.0, n)), G, R


@_register
def diallel():
    """One trait, the general combining abilities of the two parents of each cross, and the crosses."""
    rng = np.random.default_rng(115)
    lines, n = 7, 30
    parents = rng.integers(0, lines, (n, 2)).astype(np.int32)
    low, high = parents.min(axis=1), parents.max(axis=1)
    cross, of_cross = np.unique(low * lines + high, return_inverse=True)
    terms = [
        class_term("block", np.arange(n) % 2, 2, [0]),
        random_term("gca", [Effect("", parents, (0,))], Identity(lines), lines),
        random_term("sca", [Effect("", of_cross.astype(np.int32), (0,))], Identity(cross.size), cross.size),
    ]
    G, R = [None, [[2.0]], [[1.0]]], [[3.0]]
    return with_records(rng, n, terms, G, R), G, R


@_register
def fixed_covariates():
    """Nested slopes with a prior precision, a flat covariate, level x traits set to 0, a level without records."""
    rng = np.random.default_rng(112)
    n, q = 32, 5
    herd = (np.arange(n) % 3).astype(np.int32)
    active = np.ones((4, 2), bool)
    active[3] = False  # nobody is in herd 3
    active[1, 1] = False  # herd 1 is dependent in trait 2
    x = rng.standard_normal((n, 2))
    precision = np.kron(np.eye(2), [[2.0, 0.5], [0.5, 1.0]])
    slopes_active = np.ones((4, 4), bool)
    slopes_active[3] = False
    slopes_active[2, 1] = False
    slopes = Effect("", herd, (0, 1), x, ("x^1", "x^2"))
    line = Effect("", rng.integers(0, q, n).astype(np.int32), (0, 1))
    flat = Effect("", np.zeros(n, np.int32), (1,), rng.standard_normal((n, 1)), ("x^1",))
    terms = [
        class_term("herd", herd, 4, [0, 1], active),
        Term("slopes", Levels((slopes,), 4), Normal(precision), slopes_active),
        Term("weight", Levels((flat,), 1)),
        class_term("season", np.arange(n) // 3 % 3, 3, [0, 1], prior_precision=np.array([[1.0, 0.3], [0.3, 0.5]])),
        random_term("line", [line], Identity(q), q),
    ]
    G, R = [None, None, None, None, [[2.0, 0.5], [0.5, 1.0]]], [[4.0, 1.0], [1.0, 3.0]]
    return with_records(rng, n, terms, G, R, some_observed(rng, n, 2), rng.uniform(0.5, 2.0, n)), G, R


@_register
def never_together():
    """Two traits never recorded on one animal: they meet through G alone, and R has a structural zero."""
    rng = np.random.default_rng(113)
    n_animals, n = 18, 26
    sire, dam = looped_pedigree(rng, n_animals, 4)
    animal = Effect("", rng.integers(0, n_animals, n).astype(np.int32), (0, 1))
    observed = np.arange(n)[:, None] % 2 == np.arange(2)[None, :]
    terms = [
        class_term("herd", np.arange(n) // 2 % 2, 2, [0, 1]),
        random_term("genetic", [animal], pedigree_relationship(sire, dam), n_animals),
    ]
    G, R = [None, [[4.0, 2.0], [2.0, 3.0]]], [[6.0, 0.0], [0.0, 5.0]]
    return with_records(rng, n, terms, G, R, observed, rng.uniform(0.5, 2.0, n)), G, R


def covariance_of(rng, n: int) -> np.ndarray:
    """Some relationships among n animals, far from those of any pedigree."""
    x = rng.standard_normal((n, 2 * n))
    return 0.9 * x @ x.T / (2 * n) + 0.1 * np.eye(n)


@_register
def genomic_relationships():
    """Two traits, every animal related to every other; weights, missing traits, two animals without records."""
    rng = np.random.default_rng(118)
    q, n = 13, 24
    K = covariance_of(rng, q)
    animal = Effect("", rng.integers(0, q - 2, n).astype(np.int32), (0, 1))
    block = DenseBlock(np.arange(q, dtype=np.int32), symmetric(np.linalg.inv(K)))
    terms = [
        class_term("herd", np.arange(n) % 2, 2, [0, 1]),
        random_term("genetic", [animal], Genomic(block, K.diagonal().copy(), {}), q),
    ]
    G, R = [None, [[4.0, 1.5], [1.5, 3.0]]], [[6.0, 2.0], [2.0, 5.0]]
    return with_records(rng, n, terms, G, R, some_observed(rng, n, 2), rng.uniform(0.5, 2.0, n)), G, R


@_register
def single_step_maternal():
    """Direct and maternal effects in a pedigree of which some animals are genotyped: their levels, in the middle and at
    the end, share records and relatives with the others."""
    rng = np.random.default_rng(121)
    n_animals, n = 17, 26
    sire, dam = looped_pedigree(rng, n_animals, 4)
    genotyped = np.array([1, 6, 7, 10, 13, 16], np.int32)
    animal = rng.integers(4, n_animals, n).astype(np.int32)
    listed = pedigree_relationship(sire, dam).relatives
    A22 = tabular.relationship(sire, dam)[np.ix_(genotyped, genotyped)]
    S = 1.1 * np.linalg.inv(0.7 * A22 + 0.3 * covariance_of(rng, 6)) - 0.9 * np.linalg.inv(A22)
    terms = [
        class_term("herd", np.arange(n) % 3, 3, [0]),
        random_term(
            "genetic",
            [Effect("direct", animal, (0,)), Effect("maternal", dam[animal], (0,))],
            SingleStep(listed, DenseBlock(genotyped, symmetric(S)), {}),
            n_animals,
        ),
    ]
    G, R = [None, [[4.0, -1.0], [-1.0, 3.0]]], [[6.0]]
    return with_records(rng, n, terms, G, R), G, R


GAMMA = np.array([[0.7, 0.2, 0.1], [0.2, 0.5, -0.05], [0.1, -0.05, 0.6]])


def symmetric(matrix):
    return (matrix + matrix.T) / 2


def _populations(seed: int, n_animals: int, n: int):
    """(rng, sire, dam, animals of the records): unknown parents are of three populations, one stays unknown."""
    rng = np.random.default_rng(seed)
    sire, dam = _grouped_pedigree(rng, n_animals, 3)
    sire[0] = -1
    return rng, sire, dam, rng.integers(0, n_animals, n).astype(np.int32)


@_register
def populations():
    """A pedigree with metafounders, two traits."""
    rng, sire, dam, animal = _populations(131, 15, 24)
    kind = metafounders(metafounder_relatives(sire, dam, GAMMA), GAMMA, {})
    terms = [
        class_term("herd", np.arange(24) % 3, 3, [0, 1]),
        random_term("genetic", [Effect("", animal, (0, 1))], kind, 18),
    ]
    G, R = [None, [[4.0, 1.0], [1.0, 2.0]]], [[6.0, 1.0], [1.0, 5.0]]
    return with_records(rng, 24, terms, G, R), G, R


@_register
def single_step_populations():
    """Metafounders, and some animals genotyped."""
    rng, sire, dam, animal = _populations(132, 15, 24)
    kin, genotyped = metafounder_relatives(sire, dam, GAMMA), np.array([2, 5, 9, 13], np.int32)
    A22 = tabular.with_metafounders(sire, dam, GAMMA)[np.ix_(genotyped, genotyped)]
    S = np.linalg.inv(0.6 * A22 + 0.4 * covariance_of(rng, 4)) - np.linalg.inv(A22)
    levels = np.concatenate([genotyped, np.arange(15, 18, dtype=np.int32)])
    block = DenseBlock(levels, symmetric(block_diag(S, np.linalg.inv(GAMMA))))
    kind = SingleStep(kin, block, {})
    terms = [
        class_term("herd", np.arange(24) % 3, 3, [0]),
        random_term("genetic", [Effect("", animal, (0,))], kind, 18),
    ]
    G, R = [None, [[4.0]]], [[6.0]]
    return with_records(rng, 24, terms, G, R), G, R


NAMES = tuple(EXAMPLES)
# K^-1 has a dense block
DENSE = (
    "genomic_relationships",
    "single_step_maternal",
    "populations",
    "single_step_populations",
)  # K^-1 has a dense block
LISTED = tuple(name for name in NAMES if name not in DENSE)
# a record meets several levels through one effect: no GPU takes them
SEVERAL_LEVELS = ("pen_mates", "diallel")
ON_GPU = tuple(name for name in LISTED if name not in SEVERAL_LEVELS)
