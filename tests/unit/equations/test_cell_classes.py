"""Levels with the same cells share one list of them; what is made only for the equations is held once."""

import numpy as np
from helpers.mixed_models import equations_of

from mmgibbs.equations.cell_classes import shared_cells
from mmgibbs.simulation.simulate import beef_design, simulate_beef


def test_a_class_too_many():
    """250 classes of 2,000 levels are worthwhile, 251 are not."""
    for classes in (250, 251):
        pattern = (np.arange(2000) % classes).astype(np.uint32)
        which, *_ = shared_cells(np.arange(2001, dtype=np.uint64), pattern, np.ones((2000, 1, 1)))
        assert which.size == (2000 if classes == 250 else 0)


def test_the_pedigree_is_listed_once():
    """The sweep has lists of its own: those of the model would be 40 bytes an animal beside them."""
    design = beef_design(simulate_beef(2500, 3))
    equations_of(design, precision="single")
    kin = next(t.relationship.relatives for t in design.terms if t.relationship.of_pedigree)
    assert not {"_lists", "diagonal", "dinv"} & set(vars(kin))
    assert kin.progeny.size == kin.n_entries and "_lists" in vars(kin)
