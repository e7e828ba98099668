"""LR statistics and their standard errors against the same written out."""

from copy import copy
from dataclasses import replace
from threading import Barrier, Lock

import numpy as np
import pytest
from helpers.mutants import mutant
from helpers.validation_data import G, R, analysis_of, beef_frames, small_beef
from reference.dense import build

from mmgibbs.config import load_config
from mmgibbs.engines.direct import solver
from mmgibbs.machine.threads import Threads
from mmgibbs.models.relationships.groups import GroupedPedigree
from mmgibbs.pedigree.group_shares import group_composition
from mmgibbs.pedigree.inbreeding import inbreeding
from mmgibbs.pedigree.relationship import a_inverse_csr, relatives
from mmgibbs.pedigree.relationship_products import relationship_block
from mmgibbs.validation import lr
from mmgibbs.validation.evaluation import evaluate, evaluate_masked, random_solutions, read_recorded
from mmgibbs.validation.lr import divide_replicates, simulated_sums
from mmgibbs.validation.options import BOOTSTRAP_DRAWS, FOLD_DRAWS


@pytest.fixture(scope="module")
def two():
    """(whole, partial, focal levels) of a small population; the records of the last year are left out."""
    records = read_recorded(load_config(analysis_of(*beef_frames(small_beef(120, 3, 4)), group="herd")))
    year = records.phenotypes.frame["year"].to_numpy()
    masked = year == year.max()
    whole = evaluate(records.analysis)
    return whole, evaluate_masked(records, masked, "the last year"), whole.design.terms[-1].effects[0].level[masked]


def test_statistics_are_those_of_their_names():
    rng = np.random.default_rng(2)
    w = rng.standard_normal(80) + 5
    p = 0.5 * w + rng.standard_normal(80)
    found = lr.lr_statistics(lr.family_sums(w, p, np.arange(80) // 7).sum(axis=0), 3.0)
    (var_w, cov), (_, var_p) = np.cov(w, p, bias=True)
    expected = {
        "bias": p.mean() - w.mean(),
        "dispersion": cov / var_p,
        "ratio_of_accuracies": np.corrcoef(w, p)[0, 1],
        "reliability_ratio": cov / var_w,
        "accuracy": np.sqrt(cov / 3.0),
    }
    assert found == pytest.approx(expected, rel=1e-12)


def test_spread_of_animals(two):
    whole, _, focal = two
    kin = whole.design.terms[-1].relationship
    A = relationship_block(kin.relatives.sire, kin.relatives.dam, kin.relatives.inbreeding, focal)
    assert kin.spread(focal) == pytest.approx(np.trace(A) / focal.size - A.mean(), rel=1e-12)
    sire, dam = np.array([-1, 7, 6, 0, 3, 3], np.int32), np.array([-1, 7, 7, 1, 2, 3], np.int32)
    F, focal = inbreeding(sire, dam), np.array([1, 3, 4, 5])
    kin = GroupedPedigree(relatives(sire, dam, F, 2, True))
    V = np.linalg.inv(a_inverse_csr(kin.relatives).toarray())[np.ix_(focal, focal)]
    A = relationship_block(sire, dam, F, focal)
    assert kin.spread(focal) == pytest.approx(np.trace(V) / 4 - V.mean(), rel=1e-12)
    assert kin.spread(focal) != pytest.approx(np.trace(A) / 4 - A.mean(), rel=0.01)
    assert np.isnan(GroupedPedigree(relatives(sire, dam, F, 2, False)).spread(focal))


def test_variances_that_are_0_or_below(two):
    whole, partial, focal = two
    p = random_solutions(partial, whole)[-1][focal]
    found = lr.model_errors(partial, whole, len(partial.design.terms) - 1, len(whole.design.terms) - 1, focal, p)
    assert np.isnan(found["bias"]).all() and np.isnan(found["dispersion"]).all()
    values = {"bias": 1.0, "dispersion": 1.0}
    told = lr.describe_problems(values, dict.fromkeys(values, np.nan), found, {}, 2, False, False)
    assert len(told) == 2 and told[0].startswith("no standard error of bias: its variance would be below 0")
    whole, _, focal = two
    last = len(whole.design.terms) - 1
    found = lr.model_errors(whole, whole, last, last, focal, whole.theta[last][focal])
    assert found["bias"] == found["dispersion"] == 0


def memory(monkeypatch, threads):
    """Free bytes of a machine, of which a factor keeps half of what it needed; most of them in the making at once."""
    room, lock, busy = {"free": 0, "most": 0}, Lock(), []
    made = solver.PlannedFactor.made

    def take(self):
        with lock:
            busy.append(self)
            room["most"] = max(room["most"], len(busy))
        if threads > 1 and room["together"]:
            together.wait(timeout=20)  # both are in the making
        found = made(self)
        with lock:
            busy.remove(self)
            room["free"] -= self.bytes / 2 if found is not None else 0
        return found

    together = Barrier(threads)
    monkeypatch.setattr(solver, "WORTH", -10.0)
    monkeypatch.setattr(solver, "free_bytes", lambda: room["free"])
    monkeypatch.setattr(solver.PlannedFactor, "made", take)
    return room


def on_a_machine(two, monkeypatch, threads):
    """The two evaluations, a machine's memory, and what each factor needs of it."""
    whole, partial = (replace(one, solver=copy(one.solver)) for one in two[:2])
    whole.engine.threads = Threads(threads)
    room = memory(monkeypatch, threads)
    needed = [one.planned(3).bytes for one in (whole, partial)]
    assert needed[0] > needed[1]
    return whole, partial, room, needed


@pytest.mark.parametrize("threads", [1, 2])
def test_two_factors_share_the_memory(two, monkeypatch, threads):
    """Together where both fit, one after the other where they do not, and one alone where the other has no room."""
    whole, partial, room, needed = on_a_machine(two, monkeypatch, threads)
    for free, together, factors in (
        (sum(needed), True, (True, True)),
        (sum(needed) - 1, False, (True, True)),
        (needed[0], False, (True, needed[1] <= needed[0] / 2)),
        (needed[1], False, (False, True)),
        (0, False, (False, False)),
    ):
        room.update(free=free, most=0, together=together)
        found = lr.solve_whole_and_partial(3, whole, lambda threads: partial)
        assert tuple(one.direct is not None for one in found) == factors
        assert room["most"] == (threads if together else 1)


def test_two_factors_at_once_without_room_are_seen(two, monkeypatch):
    whole, partial, room, needed = on_a_machine(two, monkeypatch, 2)
    room.update(free=sum(needed) - 1, most=0, together=True)
    heedless = mutant(lr, "at_once if fit_together(*planned) else ALONE", "at_once", compiled=False)
    heedless.solve_whole_and_partial(3, whole, lambda threads: partial)
    assert room["most"] == 2


def test_standard_errors_are_those_of_the_inverse_equations(two):
    whole, partial, focal = two
    p = random_solutions(partial, whole)[-1][focal]
    term = len(whole.design.terms) - 1
    found = lr.model_errors(whole, partial, term, len(partial.design.terms) - 1, focal, p)
    blocks = []
    for design in (partial.design, whole.design):
        dense = build(design, [None] * term + [np.array([[G]])], np.array([[R]]))
        own = [dense.index(len(design.terms) - 1, level, 0) for level in focal]
        blocks.append(dense.covariance[np.ix_(own, own)])
    difference = blocks[0] - blocks[1]
    x = (p[:, 0] - p.mean()) / np.sum((p - p.mean()) ** 2)
    assert found["bias"] == pytest.approx(np.sqrt(difference.mean()), rel=1e-6)
    assert found["dispersion"] == pytest.approx(np.sqrt(x @ difference @ x), rel=1e-6)


@pytest.mark.parametrize("random_groups", [True, False])
def test_simulated_breeding_values_have_the_covariance_of_the_pedigree(random_groups):
    """Sire 6 and 7 stand for groups of unknown parents, one plant is selfed."""
    sire, dam = np.array([-1, 6, -1, 0, 3, 3], np.int32), np.array([-1, 7, 7, 1, 2, 3], np.int32)
    kin = relatives(sire, dam, inbreeding(sire, dam), 2, random_groups)
    half = GroupedPedigree(kin).draw(np.eye(8))
    if random_groups:
        assert half @ half.T @ a_inverse_csr(kin).toarray() == pytest.approx(np.eye(8), abs=1e-12)
    else:  # groups are what they are told to be, and animals vary about them
        A, Q = relationship_block(sire, dam, kin.inbreeding, np.arange(6)), group_composition(sire, dam, 2)
        assert half[:, :6] @ half[:, :6].T == pytest.approx(np.pad(A, (0, 2)), abs=1e-12)
        assert half[:, 6:] == pytest.approx(Q, abs=1e-12)


def test_bootstrap_of_unrelated_animals_is_the_textbook_one():
    rng = np.random.default_rng(4)
    n = 400
    w = rng.standard_normal(n)
    p = 0.7 * w + rng.standard_normal(n)
    errors, left_out = lr.bootstrap(lr.family_sums(w, p, np.arange(n)), 1.0, rng)
    assert not any(left_out.values())
    r = np.corrcoef(w, p)[0, 1]
    assert errors["ratio_of_accuracies"] == pytest.approx((1 - r**2) / np.sqrt(n), rel=0.15)
    assert errors["bias"] == pytest.approx((p - w).std() / np.sqrt(n), rel=0.1)
    ten_times = (np.repeat(of[:40], 10) for of in (w, p, np.arange(40)))
    together, _ = lr.bootstrap(lr.family_sums(*ten_times), 1.0, rng)
    assert together["bias"] > 2 * errors["bias"]  # ten copies tell no more than one
    assert all(np.isnan(v) for v in lr.bootstrap(lr.family_sums(w, p, np.zeros(n, int)), 1.0, rng)[0].values())


def test_bootstrap_samples_without_an_accuracy_are_counted():
    """Whole and partial data hardly covary: the root of a negative covariance is no accuracy."""
    rng = np.random.default_rng(5)
    w, p = rng.standard_normal((2, 60))
    p += (0.1 - np.cov(w, p)[0, 1]) * w
    sums = lr.family_sums(w, p, np.arange(60))
    found = {k: float(v) for k, v in lr.lr_statistics(sums.sum(axis=0), 1.0).items()}
    errors, left_out = lr.bootstrap(sums, 1.0, rng)
    assert 0 < left_out["accuracy"] < lr.BOOTSTRAPS / 2 and not left_out["bias"]
    notes = lr.dropped_samples_notes(found, errors, left_out)
    counted = f"{left_out['accuracy']} of {lr.BOOTSTRAPS:,} bootstrap samples without accuracy"
    assert notes == [f"{counted}, left out of its standard error, which is then too small"]
    assert lr.dropped_samples_notes(found, errors, left_out, {"accuracy"}) == []


def test_every_block_of_simulated_records_has_its_own_numbers(two, monkeypatch):
    whole, partial, focal = two
    term = len(whole.design.terms) - 1
    masked = np.isin(whole.design.terms[term].effects[0].level, focal)
    of = lambda block, m, seed=1: simulated_sums(whole, partial, masked, {term: focal}, seed, block, m)[term]
    assert np.array_equal(of(0, 3), of(0, 3))
    for other in (of(1, 3), of(0, 3, seed=2)):
        assert not np.any(other[..., 1:] == of(0, 3)[..., 1:])
    assert divide_replicates(25, 1000) == [(0, 10), (1, 10), (2, 5)]
    assert divide_replicates(3, 15_000_000) == [(0, 1), (1, 1), (2, 1)]
    whole, partial, focal = two
    term, seeds, make = len(whole.design.terms) - 1, [], np.random.default_rng
    masked = np.isin(whole.design.terms[term].effects[0].level, focal)
    monkeypatch.setattr(np.random, "default_rng", lambda seed=None: seeds.append(seed) or make(seed))
    for block in (0, 1):
        simulated_sums(whole, partial, masked, {term: focal}, 1, block, 1)
    seeds += [[1, FOLD_DRAWS], [1, BOOTSTRAP_DRAWS]]
    assert len({make(seed).random() for seed in seeds}) == 4
