"""Processes of chains, and what becomes of them."""

import errno
import os
import shutil
import subprocess
import sys
from types import SimpleNamespace

import pytest
from helpers.kept_runs import SAMPLED
from helpers.small_analysis import command, refused, write_files
from helpers.support import ROOT

import mmgibbs.runs.local
from mmgibbs.errors import DeviceError

REPLACED = """
from mmgibbs.runs import local

OF_JOBLIB = "joblib.externals.loky.process_executor"
LEAK = f"import {{OF_JOBLIB}} as p; p._MAX_MEMORY_LEAK_SIZE = -1e15; p._MEMORY_LEAK_CHECK_DELAY = 0"
WORK = "[exec(leak), __import__('time').sleep(0.05), __import__('os').getpid()][-1]"
with local._workers(2, "{scratch}") as at_once:
    worked = [at_once(eval, [(WORK, {{"leak": LEAK}})] * 4) for _ in range(2)]
print(len(set(sum(worked, []))))
"""


def replaced(tmp_path):
    """How many processes have worked, where joblib takes all for leaking and warnings are errors; what was said."""
    script = tmp_path / "script.py"
    script.write_text(REPLACED.format(scratch=tmp_path))
    run = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", str(script)],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    return int(run.stdout), run.stderr


@pytest.mark.slow
def test_a_process_that_is_replaced_is_no_end(tmp_path):
    """As one is that has come to hold 300 MB more: a chain of a million equations does."""
    pytest.importorskip("psutil")  # without it joblib replaces none
    processes, said = replaced(tmp_path)
    assert processes > 2 and said == ""


LEAVES_A_LOCK = """
from mmgibbs.runs.local import _workers
from joblib.externals.loky.backend import resource_tracker

if __name__ == "__main__":
    with _workers(2, "."):
        resource_tracker.register("/left-by-a-killed-chain", "semlock")
"""


@pytest.mark.skipif(os.name != "posix", reason="locks with names")
def test_what_a_killed_chain_leaves_is_removed_without_a_word(tmp_path):
    """The process that clears up ends after the run, whose message would not be the last one."""
    (tmp_path / "run.py").write_text(LEAVES_A_LOCK)
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONWARNINGS"} | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "run.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=100
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_full_shared_memory_is_named(tmp_path, monkeypatch):
    """Of a container, say: not the disk of the results."""
    write_files(tmp_path, {"analysis.yaml": SAMPLED})
    monkeypatch.setattr("mmgibbs.runs.local.cores", lambda: 2)
    monkeypatch.setattr(mmgibbs.runs.local, "SHARED_MEMORY", tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda place: SimpleNamespace(free=3e5))
    message = refused(tmp_path)
    assert message.startswith("temporary files: no space left for what the processes of chains share; found ")
    assert f"0.3 MB in '{tmp_path}'" in message and "sampler.chains: 1" in message
    assert command(tmp_path, "run", "analysis.yaml", "--quiet", "--set=sampler.chains=1").code == 0


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), DeviceError),
        (OSError(errno.ENOSPC, "No space left on device", "a file"), OSError),
        (OSError(errno.EIO, "Input/output error"), OSError),
    ],
)
def test_only_what_the_processes_share_is_meant(error, kind, tmp_path):
    with pytest.raises(kind) as raised, mmgibbs.runs.local._workers(2, str(tmp_path)):
        raise error
    assert type(raised.value) is kind


@pytest.mark.parametrize("processes", [1, 2])
def test_the_record_has_the_peak_memory_of_every_process(tmp_path, monkeypatch, processes):
    write_files(tmp_path, {"analysis.yaml": SAMPLED})
    monkeypatch.setattr("mmgibbs.runs.local.cores", lambda: processes)
    outcome = command(tmp_path, "run", "analysis.yaml", "--quiet")
    assert outcome.code == 0, outcome.err
    memory = outcome.record["peak_memory"]
    assert list(memory["workers"]) == (["chain-1", "chain-2"] if processes == 2 else [])
    assert all(2e7 < n < 1e11 for n in (memory["main"], *memory["workers"].values()))
