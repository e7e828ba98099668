"""Chains on the workers of a Dask cluster: the draws of a local run, whatever becomes of the workers."""

import json
import os
import re
import signal
import sys
import threading

import numpy as np
import pytest
from unit.small_analysis import command, write_files
from unit.test_resumed_runs import SAMPLED, found_in

import mmgibbs
import mmgibbs.cluster

distributed = pytest.importorskip("distributed", reason="needs Dask: pip install 'mmgibbs[cluster]'")
RUN = ("run", "analysis.yaml")


@pytest.fixture(scope="module")
def workers():
    """Two workers with a core each."""
    with distributed.LocalCluster(2, threads_per_worker=1, memory_limit=0, dashboard_address=None, silence_logs="CRITICAL") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """What a run on this machine finds; it also leaves compiled kernels to the workers."""
    folder = tmp_path_factory.mktemp("whole")
    write_files(folder, {"analysis.yaml": SAMPLED})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mmgibbs.parallel.cores", lambda: 1)
        assert command(folder, *RUN).code == 0
    return found_in(folder / "run")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    write_files(tmp_path, {"analysis.yaml": SAMPLED})
    monkeypatch.setattr("mmgibbs.parallel.cores", lambda: 1)
    monkeypatch.setattr("mmgibbs.cluster.TURN", 0.0)  # a sweep each
    monkeypatch.setattr("mmgibbs.cluster.LOOKING", 0.1)
    return tmp_path


def once_kept(monkeypatch, sweep, happens):
    """happens() once, when both chains have written a checkpoint at this sweep or later; they wait for it. Sweeps that chains began at."""
    begun, kept, both = [], set(), threading.Barrier(2, happens)

    class Keeper(mmgibbs.cluster.Keeper):
        def __init__(self, checkpoints, name, sweep, tell):
            super().__init__(checkpoints, name, sweep, tell)
            begun.append(sweep)

        def save(self, at, arrays, facts):
            super().save(at, arrays, facts)
            if at >= sweep and self.name not in kept:
                kept.add(self.name)
                both.wait(60)

    monkeypatch.setattr("mmgibbs.cluster.Keeper", Keeper)
    return begun


def assert_same(one, two):
    assert one["draws"].keys() == two["draws"].keys()
    for name, draws in one["draws"].items():
        np.testing.assert_array_equal(draws, two["draws"][name], err_msg=name)
    assert one["summary"].equals(two["summary"]) and one["solutions"].equals(two["solutions"])


def test_a_worker_of_another_version_is_refused(folder, workers, monkeypatch):
    monkeypatch.setattr(mmgibbs, "__version__", "9.9.9")
    told = command(folder, *RUN, "--cluster", workers.scheduler_address)
    assert told.code == 2
    assert "has mmgibbs 0.1.0" in told.err and "needed 9.9.9" in told.err and not (folder / "run").exists()


@pytest.mark.slow
def test_ctrl_c_keeps_the_state(folder, whole, workers, monkeypatch):
    """The run then goes on on this machine, to the draws of a run in one go."""
    once_kept(monkeypatch, 21, lambda: os.kill(os.getpid(), signal.SIGINT))
    told = command(folder, *RUN, "--cluster", workers.scheduler_address)
    assert told.code == 130 and "stopped by SIGINT after sweep 2" in told.err and "--resume" in told.err
    assert command(folder, *RUN, "--resume").code == 0
    assert_same(found_in(folder / "run"), whole)


def test_a_worker_killed_in_the_middle(folder, whole, workers, monkeypatch):
    """Its chain goes on elsewhere from its checkpoint: same result as a local run, and the run says what happened."""
    nanny = workers.workers[0]
    pid, address = nanny.pid, nanny.worker_address
    begun = once_kept(monkeypatch, 21, lambda: os.kill(pid, signal.SIGKILL))
    told = command(folder, *RUN, "--cluster", workers.scheduler_address)
    assert told.code == 0, told.err
    lost = rf"chain-[12]: worker {address} was lost after sweep (\d+); the chain goes on from its checkpoint of sweep (\d+)"
    reached, kept = map(int, re.search(lost, told.err).groups())
    assert 21 <= kept <= reached < kept + 8 and begun == [0, 0, kept]
    cluster = json.loads((folder / "run/run.json").read_text())["cluster"]
    assert len(cluster["workers"]) == 2 and len(cluster["happened"]) == 1 and re.fullmatch(lost, cluster["happened"][0])
    assert_same(found_in(folder / "run"), whole)


def test_a_chain_that_loses_every_worker(folder, workers, monkeypatch):
    """It is not tried for ever; the message says how often, and what is needed."""

    def gone(*_):
        raise mmgibbs.cluster._Lost

    monkeypatch.setattr("mmgibbs.cluster._Spread._to", gone)
    told = command(folder, *RUN, "--cluster", workers.scheduler_address)
    assert told.code == 2 and "4 workers were lost" in told.err and "needed workers with more memory" in told.err
    assert "goes on from the start" in told.err


@pytest.mark.parametrize(
    ("cluster", "words"),
    [
        ("10.0.0.5", ["'10.0.0.5'", "tcp://HOST:PORT", "local:WORKERS"]),
        ("tcp://127.0.0.1:9", ["no Dask scheduler answers at tcp://127.0.0.1:9", "seconds", "dask scheduler"]),
    ],
)
def test_addresses_that_lead_nowhere(folder, monkeypatch, cluster, words):
    monkeypatch.setattr("mmgibbs.cluster.CONNECTING", 0.2)
    told = command(folder, *RUN, "--cluster", cluster)
    assert told.code == 2 and all(word in told.err for word in words), told.err


def test_without_dask(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    told = command(folder, *RUN, "--cluster", "local:2")
    assert told.code == 2 and "pip install 'mmgibbs[cluster]'" in told.err


def test_an_analysis_without_chains(folder):
    write_files(folder)
    told = command(folder, *RUN, "--cluster", "local:2")
    assert told.code == 2 and "sampler.method: blup" in told.err
