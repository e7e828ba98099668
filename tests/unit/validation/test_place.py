"""Who does the work of a validation: workers of this machine only where they save more than it takes to start them."""

import threading
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from mmgibbs.runs.local import LocalExecutor
from mmgibbs.validation import place
from mmgibbs.validation.plan import SAMPLE, Plan


@pytest.fixture
def connected(monkeypatch):
    """Addresses that were connected to, by nothing that starts."""
    asked = []

    @contextmanager
    def connect(address, say):
        asked.append(address)
        yield SimpleNamespace(threads=2, local=address.startswith("local:"))

    monkeypatch.setattr("mmgibbs.runs.cluster.connect", connect)
    return asked


def design(equations=1000, **parts):
    return SimpleNamespace(**{"n_equations": equations, "responses": None, "markers": []} | parts)


def placed(cluster, of_design, plan, threads=None):
    """(calls at once, what was said)"""
    said = []
    with place.place_of_work(cluster, [(of_design, plan)], threads, said.append) as executor:
        return executor.calls_here, " ".join(said)


def test_starting_workers_must_pay():
    """Two never save anything beside two threads; twenty do, where the folds take long enough."""
    assert not place.workers_pay(2, 10**9, 100)
    assert place.workers_pay(20, 10**7, 20) and not place.workers_pay(20, 10**5, 20)


def test_threads_where_workers_do_not_pay(connected, monkeypatch):
    monkeypatch.setattr(place, "cores", lambda: 3)
    assert placed(None, design(), Plan()) == (1, "") and placed(None, design(), Plan(), threads=2) == (2, "")
    at_once, said = placed("local:8", design(), Plan(folds=4))
    assert at_once == 3 and not connected
    assert said == ("cluster local:8: 3 threads of this process, as starting workers would take longer than they save")


def test_workers_where_they_pay_and_for_chains(connected):
    sampled = [
        (design(responses=[object()]), Plan()), (design(markers=[object()]), Plan()), (design(), Plan(variances=SAMPLE))
    ]  # fmt: skip
    for of_design, plan in sampled:
        placed("local:2", of_design, plan)
        assert placed(None, of_design, plan, threads=2) == (1, "")  # they take the threads themselves
    placed("local:20", design(10**8), Plan(folds=20))
    placed("tcp://10.0.0.5:8786", design(), Plan())
    assert connected == ["local:2"] * 3 + ["local:20", "tcp://10.0.0.5:8786"]


def test_calls_on_threads_come_in_order_and_at_once():
    both = threading.Barrier(2, timeout=20)

    def call(shared, i):
        if i < 2:
            both.wait()  # of two that run at once
        return shared * i

    assert list(LocalExecutor(2).each(call, (10,), [(i,) for i in range(5)], [""] * 5)) == [0, 10, 20, 30, 40]


def test_a_call_that_fails_ends_those_that_have_not_begun():
    begun = []

    def call(i):
        begun.append(i)
        raise ValueError(f"fold {i}")

    with pytest.raises(ValueError, match="fold 0"):
        list(LocalExecutor(2).each(call, (), [(i,) for i in range(500)], [""] * 500))
    assert len(begun) < 500
