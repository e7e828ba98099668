"""Processes that end with the one that started them."""

import os
import signal
import subprocess
import sys
import time

import pytest
from helpers.support import ROOT

STARTED = """
import os, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", sys.argv[1].replace("PARENT", str(os.getpid()))], stdin=subprocess.PIPE)
print(child.pid, flush=True)
child.wait()
"""
WATCHED = "from mmgibbs.machine.parent import end_with_parent; end_with_parent(PARENT); "
BLOCKED = {
    "sleeping": "import time; time.sleep(1000)",
    "reading a pipe that it keeps open itself": "import os; r, w = os.pipe(); os.read(r, 1)",
    "writing to a full pipe": "import os; r, w = os.pipe(); os.write(w, bytes(10_000_000))",
    "computing": "while True: pass",
}


def is_alive(pid):
    try:
        os.kill(pid, 0)
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def ends_within(pid, seconds):
    end = time.monotonic() + seconds
    while is_alive(pid) and time.monotonic() < end:
        time.sleep(0.05)
    return not is_alive(pid)


def started(code):
    parent = subprocess.Popen(
        [sys.executable, "-c", STARTED, code], env=os.environ | {"PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE
    )
    return parent, int(parent.stdout.readline())


needs_proc = pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="needs /proc to see processes")


@needs_proc
@pytest.mark.parametrize("what", BLOCKED)
def test_a_killed_process_takes_its_workers_with_it(what):
    parent, child = started(WATCHED + BLOCKED[what])
    with parent.stdout:
        time.sleep(0.3)
        parent.kill()
        parent.wait()
        assert ends_within(child, 20)


@needs_proc
def test_without_the_watch_it_would_stay():
    """So that the test above can fail."""
    parent, child = started(BLOCKED["sleeping"])
    with parent.stdout:
        parent.kill()
        parent.wait()
        assert not ends_within(child, 1.5)
        os.kill(child, signal.SIGKILL)


@needs_proc
def test_a_parent_that_has_ended_before():
    done = subprocess.run(
        [sys.executable, "-c", (WATCHED + BLOCKED["sleeping"]).replace("PARENT", "999999999")],
        env=os.environ | {"PYTHONPATH": str(ROOT)}, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 1


@needs_proc
def test_a_worker_lives_as_long_as_its_parent():
    parent, child = started(WATCHED + "import time; time.sleep(1.5); print('done')")
    with parent.stdout:
        time.sleep(0.8)
        assert is_alive(child)
        assert parent.stdout.read() == b"done\n" and parent.wait() == 0
