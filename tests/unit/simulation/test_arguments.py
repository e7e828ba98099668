"""Arguments of simulations from Python: each that cannot be used is answered by the name that Python has for it."""

from collections import deque

import numpy as np
import polars as pl
import pytest

from mmgibbs.errors import ConfigError, as_a_command
from mmgibbs.simulation.calving import simulate_calving
from mmgibbs.simulation.disease import simulate_disease
from mmgibbs.simulation.genome import Genome
from mmgibbs.simulation.longevity import simulate_longevity
from mmgibbs.simulation.mastitis import simulate_mastitis
from mmgibbs.simulation.simulate import simulate_beef

SEED = "needed a whole number from 0 to 4294967295"


@pytest.mark.parametrize(
    "simulate", [simulate_beef, simulate_calving, simulate_disease, simulate_longevity, simulate_mastitis]
)
@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        (("x", 1), "n_animals: found 'x', needed a whole number of at least 1"),
        ((500.5, 1), "n_animals: found 500.5, needed a whole number of at least 1"),
        ((500, 1.5), f"seed: found 1.5, {SEED}"),
        ((500, None), f"seed: found None, {SEED}"),
        ((500, 2**32), f"seed: found 4294967296, {SEED}"),
        ((500, 1, 2.5), "years: found 2.5, needed a whole number of at least 1"),
        ((500, 1, 0), "years: found 0, needed a whole number of at least 1"),
    ],
)
def test_numbers_of_every_simulation(simulate, numbers, said):
    with pytest.raises(ConfigError) as refused:
        simulate(*numbers)
    assert str(refused.value) == said


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: simulate_beef(500, 1, selection="bad"), "selection: found 'bad', needed one of 'true', 'phenotype'"),
        (lambda: simulate_beef(500, 1, genotyped=5), "genotyped=5: found without a genome, needed one"),
        (lambda: simulate_beef(500, 1, genome=50), "genome: found 50, needed a Genome"),
        (lambda: simulate_beef(500, 1, genome=Genome(50.5, 10)), "snps: found 50.5, needed a whole number"),
        (lambda: simulate_beef(500, 1, genome=Genome(50, 10, qtl_share="x")), "qtl_share: found 'x', needed a number"),
        (lambda: simulate_beef(500, 1, genome=Genome(50, 10), genotyped=True), "genotyped: found True, needed a whole"),
        (lambda: simulate_disease(500, 1, incidence="x"), "incidence: found 'x', needed a share between 0 and 1"),
        (lambda: simulate_calving(500, 1, categories="abc"), "categories: found 'abc', needed a list of names"),
        (lambda: simulate_calving(500, 1, categories=(1, 2, 3)), "categories: found (1, 2, 3), needed a list of names"),
        (lambda: simulate_calving(500, 1, shares=0.5), "shares: found 0.5, needed a list of shares"),
        (lambda: simulate_calving(500, 1, shares=np.full((3, 1), 0.5)), "shares: found array([[0.5],"),
        (lambda: simulate_calving(500, 1, shares={0.5}), "shares: found {0.5}, needed a list of shares"),
        (lambda: simulate_calving(500, 1, shares=(0.5, 0.5, "x")), "shares: found 'x', needed a share between 0 and 1"),
    ],
)
def test_arguments_of_some(call, said):
    with pytest.raises(ConfigError) as refused:
        call()
    assert str(refused.value).startswith(said)


def test_a_command_names_its_options():
    with as_a_command(), pytest.raises(ConfigError, match="^--animals: found 0, needed"):
        simulate_beef(0, 1)
    with as_a_command(), pytest.raises(ConfigError, match="^--qtl-share: found 3, needed"):
        simulate_beef(500, 1, genome=Genome(50, 10, qtl_share=3))


def test_numbers_of_numpy_make_the_same_animals():
    one, two = simulate_beef(np.int64(300), np.uint32(7), np.int16(5)), simulate_beef(300, 7, 5)
    np.testing.assert_array_equal(one.y, two.y)


def test_arrays_and_other_sequences_are_lists_too():
    names, shares = ("easy", "assisted", "difficult"), (0.6, 0.3, 0.1)
    listed = simulate_calving(800, 1, categories=list(names), shares=list(shares))
    for kind in (np.array, deque, pl.Series):
        made = simulate_calving(800, 1, categories=kind(names), shares=kind(shares))
        np.testing.assert_array_equal(made.records["calving_ease"], listed.records["calving_ease"])
        assert made.parameters == listed.parameters
