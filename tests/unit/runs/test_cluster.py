"""Chains, folds and scenarios on the workers of a Dask cluster:
what a local run gives, whatever becomes of the workers.
"""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import polars as pl
import pytest
import xarray
import yaml
from helpers.genomic_cows import analysis as genomic
from helpers.genomic_cows import tables as genotyped
from helpers.kept_runs import SAMPLED, assert_same, found_in_one_go
from helpers.small_analysis import ANALYSIS, command, write_files
from helpers.validation_data import analysis_of, beef_frames, small_beef
from polars.testing import assert_frame_equal

import mmgibbs
import mmgibbs.runs.chains
import mmgibbs.runs.cluster.chains
import mmgibbs.runs.cluster.tasks
import mmgibbs.runs.cluster.workers

__all__ = ["genotyped"]  # a fixture
distributed = pytest.importorskip("distributed", reason="needs Dask: pip install 'mmgibbs[cluster]'")
RUN = ("run", "analysis.yaml")


@pytest.fixture(scope="module")
def workers():
    with distributed.LocalCluster(
        2, threads_per_worker=1, memory_limit=0, dashboard_address=None, silence_logs="CRITICAL"
    ) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """What a run on this machine finds; it also leaves compiled kernels to the workers."""
    return found_in_one_go(tmp_path_factory.mktemp("whole"))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    write_files(tmp_path, {"analysis.yaml": SAMPLED})
    monkeypatch.setattr("mmgibbs.runs.local.cores", lambda: 1)
    monkeypatch.setattr("mmgibbs.runs.cluster.chains.TURN", 0.0)  # a sweep each
    monkeypatch.setattr("mmgibbs.runs.cluster.workers.LOOKING", 0.1)
    return tmp_path


def once_kept(monkeypatch, sweep, happens, chains=2):
    """happens() once, when so many chains have written a checkpoint at this sweep or later; they wait for it.

    Sweeps that chains began at.
    """
    begun, kept, all_of_them = [], set(), threading.Barrier(chains, happens)

    class CheckpointWriter(mmgibbs.runs.chains.CheckpointWriter):
        def __init__(self, checkpoints, name, sweep, tell):
            super().__init__(checkpoints, name, sweep, tell)
            begun.append(sweep)

        def save(self, at, arrays, facts):
            super().save(at, arrays, facts)
            if at >= sweep and len(kept) < chains and (self.checkpoints.folder, self.name) not in kept:
                kept.add((self.checkpoints.folder, self.name))
                all_of_them.wait(60)

    monkeypatch.setattr("mmgibbs.runs.chains.CheckpointWriter", CheckpointWriter)
    return begun


def test_a_worker_of_another_version_is_refused(folder, workers, monkeypatch):
    monkeypatch.setattr(mmgibbs, "__version__", "9.9.9")
    told = command(folder, *RUN, "--cluster", workers.scheduler_address)
    assert told.code == 2
    assert "has mmgibbs 0.1.0" in told.err and "needed 9.9.9" in told.err and not (folder / "run").exists()


def test_a_worker_killed_in_the_middle(folder, whole, workers, monkeypatch):
    """Its chain continues elsewhere from its checkpoint: same result as a local run, and the run says what happened."""
    nanny = workers.workers[0]
    pid, address = nanny.pid, nanny.worker_address
    begun = once_kept(monkeypatch, 21, lambda: os.kill(pid, signal.SIGKILL))
    told = command(folder, *RUN, "--cluster", workers.scheduler_address)
    assert told.code == 0, told.err
    lost = (
        rf"chain-[12]: worker {address} was lost after sweep (\d+); the chain continues from its checkpoint of "
        r"sweep (\d+)"
    )
    reached, kept = map(int, re.search(lost, told.err).groups())
    assert 21 <= kept <= reached < kept + 8 and begun == [0, 0, kept]
    cluster = json.loads((folder / "run/run.json").read_text())["cluster"]
    assert len(cluster["workers"]) == 2 and len(cluster["happened"]) == 1 and re.fullmatch(lost, cluster["happened"][0])
    assert_same(folder / "run", whole)


@pytest.mark.slow
def test_a_chain_that_loses_every_worker(folder, workers, monkeypatch):

    def gone(*_):
        raise mmgibbs.runs.cluster.workers.WorkerLost

    monkeypatch.setattr("mmgibbs.runs.cluster.chains._SpreadChains._to", gone)
    told = command(folder, *RUN, "--cluster", workers.scheduler_address)
    assert told.code == 2 and "4 workers were lost" in told.err and "needed workers with more memory" in told.err
    assert "continues from the start" in told.err


@pytest.mark.parametrize(
    ("cluster", "words"),
    [
        ("10.0.0.5", ["'10.0.0.5'", "tcp://HOST:PORT", "local:WORKERS"]),
        ("tcp://127.0.0.1:9", ["no Dask scheduler answers at tcp://127.0.0.1:9", "seconds", "dask scheduler"]),
    ],
)
def test_addresses_that_lead_nowhere(folder, monkeypatch, cluster, words):
    monkeypatch.setattr("mmgibbs.runs.cluster.workers.CONNECTING", 0.2)
    told = command(folder, *RUN, "--cluster", cluster)
    assert told.code == 2 and all(word in told.err for word in words), told.err


def test_without_dask(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    told = command(folder, *RUN, "--cluster", "local:2")
    assert told.code == 2 and "pip install 'mmgibbs[cluster]'" in told.err


@pytest.fixture
def local_worker():
    """The address of the scheduler, and its keys, of a worker that a run has started on this machine."""
    pytest.importorskip("cryptography", reason="needs keys: pip install 'mmgibbs[cluster]'")
    with mmgibbs.runs.cluster.connect("local:1", lambda text: None) as cluster:
        yield cluster


STRANGER = """
import os, sys
import distributed

for security in (None, distributed.Security.temporary()):
    for address in (sys.argv[1], sys.argv[1].replace("tls:", "tcp:")):
        try:
            client = distributed.Client(address, timeout=2, set_as_default=False, security=security)
            print(client.submit(os.getpid).result(timeout=5), flush=True)
        except Exception:
            print("refused", flush=True)
os._exit(0)  # without waiting for its attempts
"""


def listening(pids):
    """Addresses on which these processes listen."""
    psutil = pytest.importorskip("psutil")
    return {c.laddr.ip for pid in pids for c in psutil.Process(pid).net_connections() if c.status == "LISTEN"}


def test_nobody_else_can_use_the_workers_of_this_machine(local_worker):
    """Whoever connects to a scheduler can run code in its workers, as any user of this machine could."""
    address = local_worker.client.scheduler.address
    assert address.startswith("tls://127.0.0.1:")
    assert all(worker.startswith("tls://127.0.0.1:") for worker in local_worker.workers())
    said = subprocess.run(
        [sys.executable, "-c", STRANGER, address], capture_output=True, text=True, timeout=120, check=False
    )
    assert said.stdout == "refused\n" * 4, said
    pids = [os.getpid(), *local_worker.client.run(os.getpid).values()]
    assert listening(pids) <= {"127.0.0.1"}
    assert list(local_worker.client.run(len, "abc").values()) == [3]


def test_workers_here_need_the_library_of_their_keys(folder, monkeypatch):
    def absent():
        raise ImportError("no cryptography")

    monkeypatch.setattr(distributed.Security, "temporary", absent)
    told = command(folder, *RUN, "--cluster", "local:2")
    assert told.code == 2 and "pip install 'mmgibbs[cluster]'" in told.err and "cryptography" in told.err


def kill(workers, which=0):
    """A function that kills a worker; its address. A new one takes its place after a while."""
    nanny = workers.workers[which]
    pid, address = nanny.pid, nanny.worker_address
    return lambda: os.kill(pid, signal.SIGKILL), address


REGRESSION = """\
name: lasso
data: {phenotypes: phenotypes.csv}
model: {plugin: bayesian_lasso, response: age, predictors: [weight]}
sampler: {burn_in: 10, samples: 30, chains: 2, checkpoint_every: 8, threads: 1}
output: {directory: lasso}
"""


@pytest.mark.slow
def test_a_regression_whose_worker_is_killed(folder, workers, monkeypatch):
    (folder / "lasso.yaml").write_text(REGRESSION)
    assert command(folder, "run", "lasso.yaml", "--output", "here").code == 0
    begun = once_kept(monkeypatch, 16, lambda: [kill(workers, w)[0]() for w in range(2)], chains=1)
    told = command(folder, "run", "lasso.yaml", "--cluster", workers.scheduler_address)
    assert told.code == 0, told.err
    assert re.search(
        r"chains: worker \S+ was lost after sweep 16; the chain continues from its checkpoint of sweep 16", told.err
    )
    assert begun == [0, 16] and len(json.loads((folder / "lasso/run.json").read_text())["cluster"]["happened"]) == 1
    one, two = (xarray.open_datatree(folder / run / "draws.nc", engine="h5netcdf") for run in ("here", "lasso"))
    with one, two:
        assert one["posterior"].equals(two["posterior"])


@pytest.mark.slow
def test_several_analyses_at_once(folder, whole, workers, monkeypatch):
    """One by Gibbs, one by BLUP, one that cannot be used; a worker is killed when both chains of the first are
    half-way.
    """
    bad = ANALYSIS.replace("level: animal", "level: nobody")
    write_files(folder, {"analysis.yaml": SAMPLED, "blup.yaml": ANALYSIS, "bad.yaml": bad})
    killing, address = kill(workers)
    once_kept(monkeypatch, 21, killing)
    files = ("analysis.yaml", "blup.yaml", "bad.yaml")
    told = command(folder, "run", *files, "--output", "all", "--cluster", workers.scheduler_address)
    assert told.code == 2 and "2 of 3 analyses done" in told.err, told.err
    assert "bad: phenotypes.csv: there is no column 'nobody'" in told.err and not (folder / "all/bad").exists()
    assert re.search(f"analysis: chain-[12]: worker {address} was lost", told.err)
    assert_same(folder / "all/analysis", whole)
    assert command(folder, "run", "blup.yaml", "--output", "here").code == 0
    here, there = (pl.read_parquet(folder / run / "solutions.parquet") for run in ("here", "all/blup"))
    assert here["mean"].equals(there["mean"])
    assert_frame_equal(here, there, rel_tol=1e-12, abs_tol=1e-12)  # sums of the inverse depend on threads of BLAS
    sampled, blup = (json.loads((folder / "all" / n / "run.json").read_text())["cluster"] for n in ("analysis", "blup"))
    assert len(sampled["happened"]) == 1 and blup["workers"]


@pytest.mark.slow
def test_relationships_from_genotypes(genotyped, tmp_path, workers):
    """The dense block travels; what was derived from it here does not. The record has the memory of the worker."""
    here, there = (
        mmgibbs.run(genomic(genotyped, tmp_path / name), overwrite=True, progress=False, cluster=cluster)
        for name, cluster in (("here", None), ("there", workers.scheduler_address))
    )
    ((chain, memory),) = there.info["peak_memory"]["workers"].items()
    assert chain == "chain-1" and memory > 2e7
    assert_frame_equal(here.solutions, there.solutions, rel_tol=1e-12, abs_tol=1e-12)
    for name in here.draws["posterior"].data_vars:
        np.testing.assert_allclose(*(r.draws["posterior"][name] for r in (here, there)), rtol=1e-12, atol=1e-12)


@pytest.mark.slow
def test_ctrl_c_stops_all_of_them(folder, whole, workers, monkeypatch):
    other = SAMPLED.replace("directory: run", "directory: other").replace("seed: ", "seed: 1")
    write_files(folder, {"analysis.yaml": SAMPLED, "other.yaml": other})
    monkeypatch.setattr("mmgibbs.runs.cluster.workers.Cluster.threads", 4)  # so that both run at once
    once_kept(monkeypatch, 21, lambda: os.kill(os.getpid(), signal.SIGINT), chains=4)
    told = command(folder, "run", "analysis.yaml", "other.yaml", "--cluster", workers.scheduler_address)
    assert told.code == 130, told.err
    assert all(f"{name}: stopped by SIGINT after sweep 2" in told.err for name in ("analysis", "other"))
    assert "mmgibbs run analysis.yaml other.yaml --cluster" in told.err and "--resume" in told.err
    assert command(folder, "run", "analysis.yaml", "other.yaml", "--resume").code == 0
    assert_same(folder / "run", whole)


@pytest.fixture
def population(tmp_path, monkeypatch):
    monkeypatch.setattr("mmgibbs.runs.cluster.workers.LOOKING", 0.1)
    phenotypes, pedigree = beef_frames(small_beef(160, 3, 4))
    phenotypes.write_csv(tmp_path / "phenotypes.csv")
    pedigree.write_csv(tmp_path / "pedigree.csv")
    tables = {"phenotypes": "phenotypes.csv", "pedigree": "pedigree.csv"}
    (tmp_path / "analysis.yaml").write_text(yaml.safe_dump(analysis_of(phenotypes, pedigree) | {"data": tables}))
    return tmp_path


def validation(folder, output):
    return [pl.read_parquet(folder / output / f"{table}.parquet") for table in ("validation", "predictions")]


VALIDATE = ("validate", "analysis.yaml", "--folds", "3", "--replicates", "6", "--no-report")


@pytest.mark.slow
def test_validation_with_a_worker_killed(population, workers, monkeypatch):
    monkeypatch.setattr("mmgibbs.validation.lr.VALUES", 2000)  # two replicates at once
    assert command(population, *VALIDATE, "--output", "here").code == 0
    killing, address = kill(workers)
    look, killed = mmgibbs.runs.cluster.tasks._Losses.look, []

    def look_and_kill(self):
        look(self)
        if any(name.startswith("fold") for name in self._doing.get(address, ())) and not killed:
            killed.append(killing())
            until = time.monotonic() + 30
            while address in self.cluster.workers() and time.monotonic() < until:
                time.sleep(0.01)
            look(self)  # short folds may all be done again before anybody looks

    monkeypatch.setattr("mmgibbs.runs.cluster.tasks._Losses.look", look_and_kill)
    monkeypatch.setattr("mmgibbs.runs.cluster.tasks.LOOKING", 0.0)
    told = command(population, *VALIDATE, "--output", "there", "--cluster", workers.scheduler_address)
    assert told.code == 0, told.err
    assert re.search(rf"fold \d: worker {address} was lost; it starts again on another one", told.err), told.err
    for one, two in zip(validation(population, "here"), validation(population, "there"), strict=True):
        assert one.equals(two)
    there, here = (json.loads((population / run / "validation.json").read_text()) for run in ("there", "here"))
    assert len(there["cluster"]["happened"]) == 1 and "cluster" not in here
