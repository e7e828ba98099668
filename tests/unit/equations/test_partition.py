"""Partitions cover every equation once; colours are proper; nonzeros are counted as the dense equations have them."""

import numpy as np
import pytest
from reference import dense, models

from mmgibbs.equations.nonzeros import count_nonzeros
from mmgibbs.equations.partition import KINDS, count_blocks_by_colour, level_colours, partition
from mmgibbs.errors import ModelError
from mmgibbs.models.terms import Effect


@pytest.mark.parametrize("name", models.NAMES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_equation_is_in_one_block(name, kind):
    design = models.example(name).design
    part = partition(design, kind, n_blocks=5)
    visited = [np.zeros((t.n_levels, t.n_components), int) for t in design.terms]
    for b in part.blocks:
        visited[b.term][part.order[b.term][b.first : b.last], b.first_component : b.last_component] += 1
    assert all((v == 1).all() for v in visited)
    assert kind != "colour" or count_blocks_by_colour(design) == len(part.blocks)
    assert part.keeps_complete_levels(design) == (kind != "effect" or all(t.n_components == 1 for t in design.terms))


@pytest.mark.parametrize("name", models.LISTED)
def test_levels_of_one_colour_share_nothing(name):
    example = models.example(name)
    equations = dense.build(example.design, example.G, example.R)
    colours = [level_colours(t) for t in example.design.terms]
    group = np.array([colours[term][level] for term, level, _ in equations.labels])
    term = np.array([t for t, _, _ in equations.labels])
    level = np.array([lv for _, lv, _ in equations.labels])
    same = (term[:, None] == term) & (group[:, None] == group) & (level[:, None] != level)
    assert np.abs(equations.C[same]).max(initial=0.0) < 1e-12 * np.abs(equations.C).max()


@pytest.mark.parametrize("name", models.DENSE)
@pytest.mark.parametrize("kind", KINDS)
def test_a_dense_block_is_swept_apart(name, kind):
    """Last, in its own order, all components at once (one by one in 'effect'); colours elsewhere are proper."""
    example = models.example(name)
    design, number = example.design, len(example.design.terms) - 1
    dense_block = design.terms[number].relationship.dense
    part = partition(design, kind, n_blocks=5)
    own = [b for b in part.blocks if b.dense]
    assert {(b.term, b.first, b.last) for b in own} == {
        (number, design.terms[number].n_levels - dense_block.levels.size, design.terms[number].n_levels)
    }
    assert len(own) == (design.terms[number].n_components if kind == "effect" else 1)
    np.testing.assert_array_equal(part.order[number][own[0].first :], dense_block.levels)
    if kind == "colour":
        equations = dense.build(design, example.G, example.R)
        for b in part.blocks:
            if b.term == number and not b.dense:
                at = np.isin([level for _, level, _ in equations.labels], part.order[number][b.first : b.last])
                at &= np.array([term == number for term, _, _ in equations.labels])
                within = equations.C[np.ix_(at, at)]
                k = design.terms[number].n_components
                assert np.abs(within[np.kron(np.eye(at.sum() // k), np.ones((k, k))) == 0]).max(initial=0) < 1e-12


def nonzeros_of(example):
    """The dense C at generic variances, so that no entry cancels: fully filled positive-definite G and R."""
    rng = np.random.default_rng(1)

    def generic(k):
        root = rng.normal(size=(k, k))
        return root @ root.T + k * np.eye(k)

    G = [None if g is None else generic(len(g)) for g in example.G]
    return dense.build(example.design, G, generic(len(example.R)))


@pytest.mark.parametrize("name", models.NAMES)
def test_nonzeros_as_in_the_dense_equations(name):
    example = models.example(name)
    equations = nonzeros_of(example)
    for kind in KINDS:
        part = partition(example.design, kind, n_blocks=4)
        block = {}
        for number, b in enumerate(part.blocks):
            for level in part.order[b.term][b.first : b.last]:
                for c in range(b.first_component, b.last_component):
                    block[b.term, int(level), c] = number
        number = np.array([block[label] for label in equations.labels])
        filled = np.abs(equations.C) > 1e-12 * np.abs(equations.C).max()  # the dense K^-1 is a numerical inverse
        counted = np.array(count_nonzeros(example.design, part))
        expected = np.array([filled.sum(), (filled & (number[:, None] == number)).sum()])
        # Positions are counted, not values: a group that is a grandparent and a parent's mate may cancel (-1/2 a + 1/4
        # b = 0).
        # In a dense block metafounders stand beside genotyped animals, with 0 where none is a parent.
        cancelled = {"random_groups": 2 * 2**2, "single_step_populations": 18}.get(name, 0)
        assert counted[0] == expected[0] + cancelled
        assert 0 <= counted[1] - expected[1] <= cancelled
    assert count_nonzeros(example.design) == (counted[0], 0)


def test_nonzeros_of_many_components():
    """9 x 9 pairs of components, more than a word has bits; some of them are held at 0."""
    rng = np.random.default_rng(9)
    n, q, T = 30, 6, 3
    covariates = models.legendre(rng.uniform(-1, 1, n), 2)
    curve = Effect("", rng.integers(0, q, n).astype(np.int32), (0, 1, 2), covariates, ("0", "1", "2"))
    kin = models.pedigree_relationship(*models.looped_pedigree(rng, q, 2))
    held = rng.random((q, 9)) < 0.2
    terms = [
        models.class_term("herd", np.arange(n) % 4, 4, [0, 2]),
        models.random_term("genetic", [curve], kin, q, ~held),
    ]
    G, R = [None, np.eye(9)], np.eye(T)
    design = models.with_records(rng, n, terms, G, R, models.some_observed(rng, n, T))
    C = nonzeros_of(models.Example("", design, G, R)).C
    assert count_nonzeros(design) == (int((np.abs(C) > 1e-12 * np.abs(C).max()).sum()), 0)


def test_unknown_kind():
    with pytest.raises(ModelError, match="partition: expected one of term, effect, equal, colour, got 'rows'"):
        partition(models.example("univariate_animal").design, "rows")
