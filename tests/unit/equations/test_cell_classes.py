"""Levels with the same cells share one list of them; what is made only for the equations is held once."""

import numpy as np
import pytest

from mmgibbs.equations.cell_classes import shared_cells
from mmgibbs.equations.partition import partition
from mmgibbs.equations.structured import structured_equations
from mmgibbs.simulation.simulate import beef_design, simulate_beef


def cells_of_levels(q, kinds, seed, real=np.float32):
    """(ptr, pattern, sums) of q levels whose cells are one of `kinds` lists, in any order within a level."""
    rng = np.random.default_rng(seed)
    lists = [
        (rng.permutation(7)[:n], rng.integers(0, 4, (n, 2, 2)).astype(real)) for n in rng.integers(0, 4, kinds).tolist()
    ]
    chosen = [lists[i] for i in rng.integers(0, kinds, q)]
    orders = [rng.permutation(len(pattern)) for pattern, _ in chosen]
    ptr = np.cumsum([0] + [len(pattern) for pattern, _ in chosen]).astype(np.uint64)
    pattern = np.concatenate([p[o] for (p, _), o in zip(chosen, orders, strict=True)]).astype(np.uint32)
    return ptr, pattern, np.concatenate([s[o] for (_, s), o in zip(chosen, orders, strict=True)])


def contents(ptr, pattern, sums, i):
    """The cells of list i in the order of their patterns, the lower triangles of their sums."""
    own = slice(*ptr[i : i + 2].tolist())
    return sorted((int(p), s[0, 0], s[1, 0], s[1, 1]) for p, s in zip(pattern[own], sums[own], strict=True))


@pytest.mark.parametrize("real", [np.float32, np.float64])
@pytest.mark.parametrize("seed", range(3))
def test_every_level_finds_its_cells(seed, real):
    cells = cells_of_levels(4000, 60, seed, real)
    which, *shared = shared_cells(*cells)
    assert which.size == 4000 and 1 < len(shared[0]) - 1 <= 60 and len(shared[1]) < len(cells[1]) / 20
    for level in range(4000):
        assert contents(*shared, which[level]) == contents(*cells, level)
    assert not all(contents(*shared, which[level - 1]) == contents(*cells, level) for level in range(4000))


def test_a_class_too_many():
    """250 classes of 2,000 levels are worthwhile, 251 are not."""
    for classes in (250, 251):
        pattern = (np.arange(2000) % classes).astype(np.uint32)
        which, *_ = shared_cells(np.arange(2001, dtype=np.uint64), pattern, np.ones((2000, 1, 1)))
        assert which.size == (2000 if classes == 250 else 0)


@pytest.mark.parametrize(("q", "kinds"), [(1999, 10), (4000, 100_000)])
def test_cells_stay_where_sharing_gains_nothing(q, kinds):
    """Few levels; or sums that nearly every level has for itself."""
    ptr, pattern, sums = cells_of_levels(q, kinds, 5)
    sums = sums + np.random.default_rng(1).random(sums.shape).astype(np.float32) if kinds > q else sums
    which, *same = shared_cells(ptr, pattern, sums)
    assert which.size == 0 and all(a is b for a, b in zip(same, (ptr, pattern, sums), strict=True))


def test_the_pedigree_is_listed_once():
    """The sweep has lists of its own: those of the model would be 40 bytes an animal beside them."""
    design = beef_design(simulate_beef(2500, 3))
    structured_equations(design, partition(design, "colour"), "single")
    kin = next(t.relationship.relatives for t in design.terms if t.relationship.of_pedigree)
    assert not {"_lists", "diagonal", "dinv"} & set(vars(kin))
    assert kin.progeny.size == kin.n_entries and "_lists" in vars(kin)
