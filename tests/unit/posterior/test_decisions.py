"""Counted ranks against stored draws: probabilities, intervals, gains; over chains, through a checkpoint, in bins."""

import numpy as np
import pytest
from reference.decisions import from_draws

from mmgibbs.posterior import decisions
from mmgibbs.posterior.decisions import DecisionCounts, Decisions, decide, rank_bins

WEIGHTS = np.array([[1.0, 0.0], [0.5, -2.0]])
SELECTED, INTERVAL, PLANNED, BATCHES = (1, 6), "0.8", 60, 6


def draws_of(m: int, chains: int = 2, draws: int = PLANNED + 3) -> np.ndarray:
    """(chains, draws, m, 2): candidates apart by about one standard deviation; an unfinished batch at the end."""
    rng = np.random.default_rng(6)
    return rng.normal(size=(m, 2)) + rng.normal(size=(chains, draws, m, 2))


def counted(draws, again_from=None, kind=DecisionCounts) -> list[DecisionCounts]:
    """A DecisionCounts for each chain; `again_from`: the draw before which its state goes through a checkpoint."""
    asked = Decisions("genetic", np.arange(draws.shape[2]), WEIGHTS, SELECTED, float(INTERVAL))
    out = []
    for chain in draws:
        counts = kind(asked, PLANNED, BATCHES)
        for t, rows in enumerate(chain):
            if t == again_from:
                state = {name: array.copy() for name, array in counts.state().items()}
                counts = kind(asked, PLANNED, BATCHES)
                counts.restore(state)
            counts.count(rows)
        out.append(counts)
    return out


def equal(decided, draws) -> bool:
    """Ranks and probabilities exactly, means up to rounding."""
    for s, w in enumerate(WEIGHTS):
        stored = from_draws(draws @ w, SELECTED, INTERVAL, PLANNED // BATCHES)
        same = [
            np.array_equal(decided.rank[i, s], stored[f"rank_{name}"])
            for i, name in enumerate(("low", "median", "high"))
        ]
        same += [np.allclose(getattr(decided.scores, name)[0][s], stored[name], rtol=1e-12) for name in ("mean", "sd")]
        for x, n in enumerate(SELECTED):
            of = stored[n]
            same.append(np.array_equal(decided.top[s, x], of["p"]))
            same.append(np.allclose(decided.top_mcse[s, x], of["mcse"], rtol=1e-9))
            found = decided.gain_by_mean, decided.gain_by_top, decided.scores.mean[1], decided.scores.sd[1]
            same += [
                np.isclose(f[s, x], of[name]) for f, name in zip(found, ("by_mean", "by_p", "perfect", "perfect_sd"))
            ]
        if not all(same):
            return False
    return True


@pytest.mark.parametrize("again_from", [None, 17])
def test_counted_is_what_stored_draws_say(again_from):
    draws = draws_of(40)
    assert equal(decide(counted(draws, again_from)), draws)


def test_short_batches_have_no_error():
    """Where every draw is a batch of its own, every score seems to have as many effective draws as draws."""
    counts = [DecisionCounts(Decisions("", np.arange(9), WEIGHTS, SELECTED, float(INTERVAL)), 60, n) for n in (60, 60)]
    longer = [
        DecisionCounts(Decisions("", np.arange(9), WEIGHTS, SELECTED, float(INTERVAL)), 60, n) for n in (7, 7)
    ]  # 8 draws each
    for chain in (*counts, *longer):
        for rows in draws_of(9, chains=1)[0]:
            chain.count(rows)
    short, known = (decide(chains) for chains in (counts, longer))
    for decided, blank in ((short, True), (known, False)):
        errors = [*decided.scores.mcse, *decided.scores.ess, decided.top_mcse]
        assert all(np.isnan(e).all() if blank else np.isfinite(e).any() for e in errors)
    assert np.array_equal(short.top, known.top) and np.allclose(short.scores.sd[0], known.scores.sd[0])
    assert (short.batch_length, known.batch_length) == (1, 8)


class ForgetsTheBatch(DecisionCounts):
    """The batch in progress is left out of a checkpoint."""

    def restore(self, state):
        super().restore(state | {"top_in_batch": np.zeros_like(state["top_in_batch"])})


class OneTooFew(DecisionCounts):
    """The last of the selected is not counted."""

    def count(self, rows):
        before = self.top.copy()
        super().count(rows)
        last = np.argsort(-(rows @ WEIGHTS[0]))[SELECTED[1] - 1]
        self.top[0, 1, last] = before[0, 1, last]


class LowestFirst(DecisionCounts):
    """Rank 1 for the lowest score."""

    def count(self, rows):
        super().count(-rows)


@pytest.mark.parametrize("kind", [ForgetsTheBatch, OneTooFew, LowestFirst])
def test_a_spoiled_accumulator_is_seen(kind):
    draws = draws_of(40)
    assert not equal(decide(counted(draws, 17, kind)), draws)


def test_bins_hold_every_rank_once():
    for m in (2, decisions.EXACT, decisions.EXACT + 1, 4641, 1_000_000):
        bins = rank_bins(m)
        assert bins[0] == 1 and bins[-1] == m + 1 and (np.diff(bins) >= 1).all()
        widths = np.diff(bins)
        assert (
            (widths == 1).all()
            if m <= decisions.EXACT
            else (widths <= np.maximum(1, bins[:-1] // decisions.RELATIVE)).all()
        )
    assert rank_bins(1_000_000).size < 150


def test_beyond_the_limit_ends_are_those_of_their_bins(monkeypatch):
    monkeypatch.setattr(decisions, "EXACT", 10)
    draws = draws_of(200)
    decided, bins = decide(counted(draws)), rank_bins(200)
    for s, w in enumerate(WEIGHTS):
        stored = from_draws(draws @ w, SELECTED, INTERVAL, PLANNED // BATCHES)
        first = {
            name: np.searchsorted(bins, stored[f"rank_{name}"], side="right") - 1 for name in ("low", "median", "high")
        }
        assert np.array_equal(decided.rank[0, s], bins[first["low"]])
        assert np.array_equal(decided.rank[2, s], bins[first["high"] + 1] - 1)
        assert np.array_equal(decided.rank[1, s], (bins[first["median"]] + bins[first["median"] + 1] - 1) // 2)
        assert np.array_equal(decided.top[s, 1], stored[6]["p"])
