"""The simulated beef data are what their docstring says; arguments that cannot be used are answered by name."""

import argparse
import shlex
from collections import deque
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from mmgibbs.cli import main
from mmgibbs.config import load_config
from mmgibbs.data.prepare import prepare
from mmgibbs.errors import ConfigError, as_a_command
from mmgibbs.pedigree.relationship import mendelian_variance
from mmgibbs.simulation import command, simulate
from mmgibbs.simulation.calving import simulate_calving
from mmgibbs.simulation.disease import simulate_disease
from mmgibbs.simulation.genome import Genome
from mmgibbs.simulation.longevity import simulate_longevity
from mmgibbs.simulation.mastitis import simulate_mastitis
from mmgibbs.simulation.simulate import GENETIC, RESIDUAL, beef_design, simulate_beef, write_beef


@pytest.fixture(scope="module")
def beef():
    return simulate_beef(40_000, seed=3, years=10)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    beef = simulate_beef(1500, seed=5, years=8)
    return beef, write_beef(beef, tmp_path_factory.mktemp("simulated") / "beef")


def test_true_parameters_and_seeds():
    one, two, other = simulate_beef(800, 1, 8), simulate_beef(800, 1, 8), simulate_beef(800, 2, 8)
    for name in one.__dataclass_fields__:
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name), err_msg=name)
    assert not np.array_equal(one.breeding_values, other.breeding_values)
    assert np.linalg.eigvalsh(GENETIC).min() > 0 and np.linalg.eigvalsh(RESIDUAL).min() > 0
    direct = np.diag(GENETIC)[:3]
    phenotypic = direct + np.diag(RESIDUAL)
    phenotypic[1] += GENETIC[3, 3] + GENETIC[1, 3] + simulate.MATERNAL_ENVIRONMENT
    np.testing.assert_allclose(direct / phenotypic, [0.39, 0.28, 0.46], atol=0.006)
    assert GENETIC[3, 3] / phenotypic[1] == pytest.approx(0.15, abs=0.005)
    assert GENETIC[1, 3] / np.sqrt(GENETIC[1, 1] * GENETIC[3, 3]) == pytest.approx(-0.20, abs=0.005)


def test_pedigree_and_records_are_as_in_practice(beef):
    for parent in (beef.sire, beef.dam):
        assert (parent < np.arange(beef.n_animals)).all()
    born = beef.dam >= 0
    assert (beef.birth_year[beef.dam[born]] <= beef.birth_year[born] - 2).all()
    assert (beef.sex[beef.dam[born]] == 0).all() and (beef.sex[beef.sire[beef.sire >= 0]] == 1).all()
    # Every record has its dam, and its animal once.
    assert (beef.dam[beef.animal] >= 0).all() and len(np.unique(beef.animal)) == beef.n_records
    np.testing.assert_array_equal(beef.dam_age, (beef.birth_year[beef.animal] - beef.birth_year[beef.dam[beef.animal]]))
    classes = np.array(simulate.DAM_AGES)[beef.dam_age_class]
    expected = [str(a) if a < 5 else "5-9" if a < 10 else "10+" for a in beef.dam_age]
    assert classes.tolist() == expected
    np.testing.assert_array_equal(beef.group_herd[beef.contemporary_group], beef.herd[beef.animal])
    np.testing.assert_array_equal(beef.group_year[beef.contemporary_group], beef.birth_year[beef.animal])
    # Unrecorded parents, AI sires of heavy-tailed use.
    calves = beef.birth_year >= simulate.FIRST_YEAR
    assert abs((beef.sire[calves] < 0).mean() - simulate.SIRE_UNRECORDED) < 0.01
    assert abs((beef.dam[calves] < 0).mean() - simulate.DAM_UNRECORDED) < 0.005
    progeny = np.bincount(beef.sire[beef.sire >= 0])
    assert progeny.max() > 20 * np.median(progeny[progeny > 0])


def test_missing_traits_are_as_in_practice(beef):
    observed = ~np.isnan(beef.y)
    assert observed.any(axis=1).all()
    assert not (observed[:, 2] & ~observed[:, 1]).any()  # no yearling weight without a weaning weight
    assert len(np.unique(observed, axis=0)) == 5
    sex = beef.sex[beef.animal]
    for code, name in enumerate(simulate.SEXES):
        weaned = observed[:, 1] & (sex == code)
        assert observed[weaned, 2].mean() == pytest.approx(simulate.KEPT_TO_A_YEAR[name], abs=0.02)
    kept = observed[:, 2]
    assert beef.y[kept, 1].mean() > beef.y[observed[:, 1] & ~kept, 1].mean() + 5


def residuals(beef):
    """y less every true effect."""
    animal, dam = beef.animal, beef.dam[beef.animal]
    e = beef.y - simulate.MEAN - beef.group_effect[beef.contemporary_group]
    e -= simulate.SEX[beef.sex[animal]] + simulate.DAM_AGE[beef.dam_age_class] + beef.breeding_values[animal, :3]
    e[:, 1] -= beef.breeding_values[dam, 3] + beef.maternal_environment[dam]
    return e


def check_residuals(beef):
    """Covariances of what is left against RESIDUAL, within 4 standard errors;
    yearling weight given weaning weight, since it was chosen by it.
    """
    e = residuals(beef)
    slope = RESIDUAL[2, 1] / RESIDUAL[1, 1]
    e[:, 2] -= slope * e[:, 1]
    expected = RESIDUAL[:2, :2]
    both = ~np.isnan(e[:, :2]).any(axis=1)
    products = np.einsum("ri,rj->rij", e[both, :2], e[both, :2])
    z = (products.mean(axis=0) - expected) / (products.std(axis=0) / np.sqrt(both.sum()))
    assert np.abs(z).max() < 4
    last = e[~np.isnan(e[:, 2]), 2]
    variance = RESIDUAL[2, 2] - slope * RESIDUAL[1, 2]
    assert abs(last.var() / variance - 1) < 4 * np.sqrt(2 / last.size)
    means = np.array([np.nanmean(column) / np.nanstd(column) for column in e.T])
    assert (np.abs(means) * np.sqrt((~np.isnan(e)).sum(axis=0)) < 4).all()


def test_records_are_the_stated_model(beef):
    check_residuals(beef)


def test_a_record_model_without_the_dam_would_be_seen(beef):
    broken = SimpleNamespace(**{name: getattr(beef, name) for name in (*beef.__dataclass_fields__, "dam_age_class")})
    broken.maternal_environment = np.zeros_like(beef.maternal_environment)
    with pytest.raises(AssertionError):
        check_residuals(broken)


def test_breeding_values_follow_the_pedigree(beef):
    """Mendelian sampling terms over their variance have covariance GENETIC."""
    d = mendelian_variance(beef.sire, beef.dam, np.zeros(beef.n_animals))
    both = (beef.sire >= 0) & (beef.dam >= 0)
    u = beef.breeding_values
    m = u[both] - 0.5 * (u[beef.sire[both]] + u[beef.dam[both]])
    found = m.T.astype(float) @ m / d[both].sum()
    deviation = np.sqrt(np.diag(GENETIC))
    # Inbreeding, left out here, lowers d by about a percent.
    assert np.abs((found - GENETIC) / np.outer(deviation, deviation)).max() < 0.03


def test_design_is_the_nine_block_system(beef):
    design = beef_design(beef)
    assert [t.name for t in design.terms] == ["contemporary_group", "sex", "dam_age", "genetic", "maternal_environment"]
    assert [t.n_components for t in design.terms] == [3, 3, 3, 4, 1]
    assert design.terms[3].n_levels == beef.n_animals
    # 4.7 million at 1.1 million animals, where dams have fewer calves each
    assert 4.2 < design.n_equations / beef.n_animals < 4.5
    np.testing.assert_array_equal(design.patterns[design.pattern], ~np.isnan(design.y))
    offsets = np.array([v for _, _, v in design.offsets])
    np.testing.assert_allclose(design.y + offsets, beef.y)
    assert np.abs(np.nanmean(design.y, axis=0)).max() < 1e-9
    # One level of sex and one of dam age depend on the contemporary groups; a group without a weight of a trait is out
    # of force.
    assert (~design.terms[1].active).sum(axis=0).tolist() == [1, 1, 1]
    assert (~design.terms[2].active).sum(axis=0).tolist() == [1, 1, 1]
    for t in range(3):
        with_records = np.unique(beef.contemporary_group[~np.isnan(beef.y[:, t])])
        np.testing.assert_array_equal(np.flatnonzero(design.terms[0].active[:, t]), with_records)
    assert beef.G[3].shape == (4, 4) and beef.G[:3] == (None, None, None) and beef.G[4].shape == (1, 1)


def test_files(written):
    beef, directory = written
    assert {p.name for p in directory.iterdir()} == {*simulate.FILES, "mmgibbs.schema.json", "simulation.json"}
    pedigree = pl.read_csv(directory / "pedigree.csv", infer_schema=False)
    truth = pl.read_csv(directory / "true_values.csv", infer_schema_length=None)
    assert pedigree["animal"].n_unique() == beef.n_animals == truth.height
    code = dict(zip(pedigree["animal"], range(beef.n_animals)))
    np.testing.assert_array_equal([code.get(s, -1) for s in pedigree["sire"]], beef.sire)
    np.testing.assert_allclose(truth["maternal_weaning_weight"], beef.breeding_values[:, 3], atol=6e-4)
    is_dam = np.isin(np.arange(beef.n_animals), beef.dam)
    assert (truth["maternal_environment"].is_not_null().to_numpy() == is_dam).all()
    note = (directory / "PROVENANCE.txt").read_text()
    assert "simulate_beef" in note and "170" in note and str(beef.n_records) in note


def test_design_from_files_is_design_from_arrays(written):
    beef, directory = written
    direct, prepared = beef_design(beef), prepare(load_config(directory / "analysis.yaml"))
    design = prepared.design
    ids, herds = simulate.animal_ids(beef), simulate.herd_ids(beef)
    groups = np.array([f"{herds[int(h)]}-{y}" for h, y in zip(beef.group_herd, beef.group_year)])
    mothers = np.unique(beef.dam[beef.animal][~np.isnan(beef.y[:, 1])])
    classes = [np.array(simulate.SEXES), np.array(simulate.DAM_AGES)]
    own = [groups, *classes, ids.to_numpy(), ids.gather(mothers).to_numpy()]
    assert [t.name for t in design.terms] == [t.name for t in direct.terms]
    assert design.n_equations == direct.n_equations
    for term, twin, labels, names in zip(design.terms, direct.terms, prepared.levels, own):
        assert term.n_levels == twin.n_levels
        for effect, other in zip(term.effects, twin.effects):
            assert effect.traits == other.traits
            np.testing.assert_array_equal(effect.level >= 0, other.level >= 0)
            met = effect.level >= 0
            assert labels.ids.to_numpy()[effect.level[met]].tolist() == names[other.level[met]].tolist()
    total, twin = (of.terms[3].relationship.relatives.diagonal.sum() for of in (design, direct))
    assert total == twin
    np.testing.assert_array_equal(np.isnan(design.y), np.isnan(direct.y))
    assert np.nanmax(np.abs(design.y - direct.y)) < 0.06


def arguments(*words):
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return parser.parse_args([str(w) for w in words])


def test_command_says_what_comes_next(tmp_path, capsys):
    target = tmp_path / "new" / "my beef"
    assert command.main(arguments(target, "--animals", 600, "--years", 6)) == 0
    out = capsys.readouterr().out
    assert "600 animals" in out and f"next: mmgibbs run {shlex.quote(str(target / 'analysis.yaml'))}" in out
    assert "'" in out.splitlines()[-1]  # a shell takes the folder's name for one word
    assert "--animals 600 --years 6 --seed 1" in (target / "PROVENANCE.txt").read_text()
    with pytest.raises(ConfigError, match="overwrite=True"):
        command.main(arguments(target, "--animals", 600, "--years", 6))
    before = (target / "phenotypes.csv").read_text()
    (target / "mine.txt").write_text("kept")
    assert command.main(arguments(target, "--animals", 600, "--years", 6, "--seed", 2, "--overwrite")) == 0
    assert (target / "phenotypes.csv").read_text() != before and (target / "mine.txt").read_text() == "kept"


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_every_trait_of_a_single_herd_has_records(tmp_path, capsys, seed):
    """Some herds do not weigh at birth; one always does, and the analysis that is written can be run."""
    assert main(["simulate", str(tmp_path / "beef"), "--animals", "500", "--seed", str(seed)]) == 0
    assert "in 1 herd," in capsys.readouterr().out
    records = pl.read_csv(tmp_path / "beef" / "phenotypes.csv")
    assert all(records[trait].drop_nulls().len() > 50 for trait in ("birth_weight", "weaning_weight"))
    assert main(["check", str(tmp_path / "beef" / "analysis.yaml")]) == 0


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
        (lambda: simulate_beef(500, 1, 6, Genome(50, 10, genotyped=501)), "genotyped: found 501, needed a whole"),
        (lambda: simulate_beef(500, 1, genome=50), "genome: found 50, needed a Genome"),
        (lambda: simulate_beef(500, 1, genome=Genome(50.5, 10)), "snps: found 50.5, needed a whole number"),
        (lambda: simulate_beef(500, 1, genome=Genome(50, 10, qtl_share="x")), "qtl_share: found 'x', needed a number"),
        (lambda: simulate_beef(500, 1, genome=Genome(50, 10, genotyped=True)), "genotyped: found True, needed a whole"),
        (lambda: simulate_beef(500, 1, genome=Genome(50, 10, generations=0)), "generations: found 0, needed a whole"),
        (lambda: simulate_beef(500, 1, genome=Genome(50, 10, smallest=1)), "smallest: found 1, needed a whole number"),
        (lambda: simulate_beef(500, 1, genome=Genome(50, 10, morgans=np.nan)), "morgans: found nan, needed a number"),
        (lambda: simulate_beef(500, 1, genome=Genome(50, 10, mutation=-1)), "mutation: found -1, needed a number from"),
        (
            lambda: simulate_beef(500, 1, genome=Genome(50, 10, maf=0.9)),
            "maf: found 0.9, needed a number from 0 to",
        ),
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


def test_other_kinds_of_numbers_and_lists():
    one, two = simulate_beef(np.int64(300), np.uint32(7), np.int16(5)), simulate_beef(300, 7, 5)
    np.testing.assert_array_equal(one.y, two.y)
    names, shares = ("easy", "assisted", "difficult"), (0.6, 0.3, 0.1)
    listed = simulate_calving(800, 1, categories=list(names), shares=list(shares))
    for kind in (np.array, deque, pl.Series):
        made = simulate_calving(800, 1, categories=kind(names), shares=kind(shares))
        np.testing.assert_array_equal(made.records["calving_ease"], listed.records["calving_ease"])
        assert made.parameters == listed.parameters
