"""Who does the work of a validation: workers of this machine only where they save more than it takes to start them."""

import threading
from contextlib import closing, contextmanager
from types import SimpleNamespace

import pytest

from mmgibbs.build import memory_estimate
from mmgibbs.runs.local import LocalExecutor
from mmgibbs.validation import run
from mmgibbs.validation.options import SAMPLE, ValidationPlan


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


def work(equations=1000, folds=1, variances=None, threads=None, dense=None, **parts):
    term = SimpleNamespace(relationship=SimpleNamespace(dense=dense))
    of_design = {"n_equations": equations, "responses": None, "markers": [], "terms": [term]} | parts
    sampler = SimpleNamespace(threads=threads, precision="double")
    analysis = SimpleNamespace(name="beef", sampler=sampler)
    return run.Work(analysis, SimpleNamespace(**of_design), ValidationPlan(variances=variances), folds)


@pytest.fixture(autouse=True)
def enough_memory(monkeypatch):
    monkeypatch.setattr(run, "solutions_that_fit", lambda design, precision, wanted: wanted)


def placed(cluster, *works):
    """(calls at once of each, what was said)"""
    said = []
    with run.open_executors(cluster, works, said.append) as executors:
        return [e.max_local_calls for e in executors], " ".join(said)


def test_starting_workers_must_pay():
    """Two never save anything beside two threads; twenty do, where the folds take long enough."""
    assert not run.workers_pay(2, 10**9, 100)
    assert run.workers_pay(20, 10**7, 20) and not run.workers_pay(20, 10**5, 20)


def test_threads_where_workers_do_not_pay(connected, monkeypatch):
    monkeypatch.setattr(run, "cores", lambda: 3)
    assert placed(None, work()) == ([1], "") and placed(None, work(threads=2)) == ([2], "")
    at_once, said = placed("local:8", work(folds=4))
    placed("local:20", work(5 * 10**6))  # of twenty folds they would pay
    assert at_once == [3] and not connected
    assert said == ("cluster local:8: 3 threads of this process, as starting workers would take longer than they save")


def test_threads_of_each_analysis(connected):
    assert placed(None, work(threads=2), work(threads=4, markers=[object()]), work(threads=3)) == ([2, 1, 3], "")
    assert placed(None, work(dense=object())) == ([1], "")
    at_once, said = placed(None, work(threads=2, dense=object()))
    assert at_once == [1] and "one fold at a time" in said


def test_fewer_folds_at_once_where_memory_is_small(monkeypatch):
    monkeypatch.setattr(run, "solutions_that_fit", memory_estimate.solutions_that_fit)
    monkeypatch.setattr(memory_estimate, "solving_bytes", lambda design, precision: 100)
    monkeypatch.setattr(memory_estimate, "free_bytes", lambda: 399)
    at_once, said = placed(None, work(threads=8, folds=5))
    assert at_once == [2]  # beside the equations of the whole data
    assert said.startswith("beef: 2 in place of 5 folds at once, as no more of 1,000 equations fit into the memory")
    monkeypatch.setattr(memory_estimate, "free_bytes", lambda: 50)
    assert placed("local:2", work(folds=5))[0] == [1]
    monkeypatch.setattr(memory_estimate, "free_bytes", lambda: 10**6)
    assert placed(None, work(threads=8, folds=5)) == ([8], "")
    monkeypatch.setattr(memory_estimate, "free_bytes", lambda: None)
    assert placed(None, work(threads=8, folds=5)) == ([8], "")


def test_workers_where_they_pay_and_for_chains(connected):
    for of in (work(responses=[object()]), work(markers=[object()]), work(variances=SAMPLE)):
        placed("local:2", of)
    placed("local:20", work(5 * 10**6, folds=20))
    placed("tcp://10.0.0.5:8786", work())
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


def test_a_consumer_that_ends_early_waits_for_what_has_begun_and_says_so():
    """And BLAS has its threads again at once."""
    go, said, ended = threading.Event(), [], []

    def call(i):
        if i:
            go.wait(20)
        ended.append(i)

    def say(text):
        said.append(text)
        go.set()

    names = [f"fold {i + 1}" for i in range(9)]
    results = LocalExecutor(2, say).each(call, (), [(i,) for i in range(9)], names)
    with pytest.raises(KeyboardInterrupt), closing(results):
        for _ in results:
            raise KeyboardInterrupt
    (text,) = said
    assert text.startswith("waiting for the end of fold ") and text.endswith(", which cannot be stopped")
    assert 0 < len(ended) < 9
