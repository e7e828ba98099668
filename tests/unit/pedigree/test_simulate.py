"""The simulated populations: possible pedigrees, the ages asked for, AI bulls of heavy-tailed use, breeding values of
the right law."""

import numpy as np
import pytest

from mmgibbs.pedigree.inbreeding import inbreeding
from mmgibbs.pedigree.relationship import quadratic_form, relatives
from mmgibbs.pedigree.simulate import FEMALE, MALE, Population, simulate_pedigree, survival

G = np.array([[2.0, 0.5], [0.5, 1.0]])


@pytest.fixture(scope="module")
def herdbook():
    return simulate_pedigree(60_000, 11, Population(years=25))


def test_sizes_and_types(herdbook):
    p = herdbook
    assert p.n_animals == 60_000 and all(len(a) == 60_000 for a in (p.sire, p.dam, p.birth, p.sex, p.herd))
    assert (p.sire.dtype, p.dam.dtype, p.birth.dtype, p.herd.dtype, p.sex.dtype) == (*(np.int32,) * 4, np.int8)
    assert p.breeding_values is None and p.inbreeding is None


def test_a_possible_pedigree(herdbook):
    p = herdbook
    known = p.sire >= 0
    assert ((p.dam >= 0) == known).all()
    assert (np.diff(p.birth) >= 0).all()
    age_sire, age_dam = (p.birth[known] - p.birth[parent[known]] for parent in (p.sire, p.dam))
    assert min(age_sire.min(), age_dam.min()) == 2 and max(age_sire.max(), age_dam.max()) == 15
    assert (p.sex[p.sire[known]] == MALE).all() and (p.sex[p.dam[known]] == FEMALE).all()
    assert (p.herd[known] == p.herd[p.dam[known]]).all()
    assert p.birth[~known].max() < 1980 and p.birth[known].min() == 1980 and p.birth.max() == 2004
    assert (~known).mean() < 0.09
    assert abs((p.sex[known] == MALE).mean() - 0.5) < 4 * 0.5 / np.sqrt(known.sum())
    # one calf per cow and year
    _, calves = np.unique(p.dam[known].astype(np.int64) * 3000 + p.birth[known], return_counts=True)
    assert calves.max() == 1


@pytest.mark.parametrize("interval", [4.0, 5.0, 6.0])
def test_generation_interval(interval):
    """Mean age of parents at the birth of their progeny; bulls are few, so their mean varies more."""
    p = simulate_pedigree(400_000, 3, Population(years=25, generation_interval=interval))
    late = np.flatnonzero(p.birth >= 1990)
    age_dam, age_sire = ((p.birth[late] - p.birth[parent[late]]).mean() for parent in (p.dam, p.sire))
    assert abs(age_dam - interval) < 0.1
    assert abs(age_sire - interval) < 0.3


def test_heavy_tailed_use_of_ai_bulls():
    """1.1 million animals: the busiest AI bull has several thousand calves, natural-service bulls have tens."""
    p = simulate_pedigree(1_100_000, 1, Population(years=20))
    progeny = np.bincount(p.sire[p.sire >= 0], minlength=p.n_animals)
    used = np.sort(progeny[progeny > 0])[::-1]
    assert 5000 < used[0] < 12_000
    assert 10 < np.median(used) < 80
    assert used[: used.size // 100].sum() > 0.15 * used.sum()


def test_the_seed_decides():
    a, b, c = (simulate_pedigree(5000, seed, Population(years=10), G=G) for seed in (1, 1, 2))
    assert a.sire.tolist() == b.sire.tolist() and a.breeding_values.tolist() == b.breeding_values.tolist()
    assert a.sire.tolist() != c.sire.tolist()


@pytest.mark.parametrize("selection", [None, [1.0, 0.0]])
def test_breeding_values_follow_the_pedigree(selection):
    """Theta' A^-1 Theta ~ Wishart(n, G): each element within 4 of its standard deviations, sqrt(n (g_ij^2 + g_ii
    g_jj))."""
    p = simulate_pedigree(40_000, 5, Population(years=20), G=G, selection=selection)
    F = inbreeding(p.sire, p.dam)
    assert p.inbreeding.tolist() == F.tolist() and F.max() > 0.1
    S = quadratic_form(relatives(p.sire, p.dam, F), p.breeding_values)
    n = p.n_animals
    assert (np.abs(S - n * G) < 4 * np.sqrt(n * (G**2 + np.outer(np.diag(G), np.diag(G))))).all()


def test_ignoring_inbreeding_would_be_noticed():
    """The twin of the test above with F left out of d: the Mendelian variances no longer fit."""
    p = simulate_pedigree(40_000, 5, Population(years=20, herd_size=2000, ai_share=0.9, ai_calves_per_bull=20_000), G=G)
    n = p.n_animals
    deviation = [
        (quadratic_form(relatives(p.sire, p.dam, F), p.breeding_values)[0, 0] - 2 * n) / np.sqrt(8 * n)
        for F in (p.inbreeding, None)
    ]
    assert abs(deviation[0]) < 4 < abs(deviation[1])


def test_selection_moves_the_mean():
    population = Population(years=15)
    drift, gain = (simulate_pedigree(20_000, 4, population, G=G, selection=s) for s in (None, [1.0, 0.0]))

    def trend(p):
        first, last = (p.breeding_values[p.birth == year].mean(0) for year in (1980, 1994))
        return (last - first) / np.sqrt(np.diag(G))

    assert trend(gain)[0] > 1.5 and 0 < trend(gain)[1] < trend(gain)[0]  # the second trait follows by its correlation
    assert np.abs(trend(drift)).max() < 0.7


def test_survival_gives_the_mean_age():
    ages = np.arange(2, 16)
    for mean in (2.5, 4.0, 8.0):
        weight = survival(mean, 2, 15) ** ages
        assert weight @ ages / weight.sum() == pytest.approx(mean, abs=1e-9)


@pytest.mark.parametrize(
    "population",
    [
        Population(years=1),
        Population(years=12, ai_share=0.0),
        Population(years=12, ai_share=1.0),
        Population(years=8, herd_size=500, first_age=1, last_age=6, generation_interval=2.0),
    ],
)
def test_odd_populations(population):
    p = simulate_pedigree(3000, 8, population)
    known = p.sire >= 0
    assert p.n_animals == 3000 and (p.sire[known] < np.flatnonzero(known)).all() and (p.dam < np.arange(3000)).all()


def test_refusals():
    with pytest.raises(ValueError, match="50 animals over 40 years: needed at least 10 a year"):
        simulate_pedigree(50, 1)
    with pytest.raises(ValueError, match="selection needs G"):
        simulate_pedigree(5000, 1, selection=[1.0])
    with pytest.raises(ValueError, match="accuracy of selection must lie in"):
        simulate_pedigree(5000, 1, G=G, selection=[1.0, 0.0], accuracy=0.0)
    with pytest.raises(ValueError, match="a mean age of 12 needs to lie between 2 and 8.5"):
        simulate_pedigree(5000, 1, Population(generation_interval=12.0))
