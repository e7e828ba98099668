"""A long run of sampled variances with checkpoints: memory stays flat and no file is left open."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from helpers.kept_runs import SAMPLED, SAMPLER
from helpers.small_analysis import replaced, write_files
from helpers.support import ROOT

SECONDS = 20
LONG = "chains: 1, burn_in: 10, samples: 4000000000, thin: 4000000, checkpoint_every: 0.02m, refresh_every: 100"


def resident_bytes(process: int) -> int:
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc to see memory and open files")
def test_memory_and_open_files_stay_as_they_are(tmp_path):
    """Within 5 % from the first tenth to the end; a checkpoint every 1.2 seconds."""
    folder = tmp_path / "soak"
    write_files(folder, {"analysis.yaml": replaced(SAMPLED, SAMPLER, LONG)})
    run = subprocess.Popen(
        [sys.executable, "-m", "mmgibbs", "run", "analysis.yaml", "--quiet", "--no-report"],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)},
        stderr=subprocess.PIPE,
        text=True,
    )
    memory, files, checkpoint = [], [], folder / "run" / "checkpoint" / "chain-1.npz"
    try:
        give_up = time.monotonic() + 120
        while not checkpoint.exists() and run.poll() is None and time.monotonic() < give_up:
            time.sleep(0.1)
        assert run.poll() is None, run.stderr.read()
        started = time.monotonic()
        while time.monotonic() < started + SECONDS:
            time.sleep(min(1.0, SECONDS / 100))
            memory.append(resident_bytes(run.pid))
            files.append(len(os.listdir(f"/proc/{run.pid}/fd")))
        written = checkpoint.stat().st_mtime
        run.send_signal(signal.SIGTERM)
        _, said = run.communicate(timeout=60)
    finally:
        if run.poll() is None:
            run.kill()
            run.wait()
    assert run.returncode == 143 and "the state is kept" in said
    assert time.time() - written < 60
    first, rest = memory[: len(memory) // 10], memory[len(memory) // 10 :]
    print(
        f"{SECONDS} s: {first[-1] / 1e6:.1f} MB after a tenth, at most {max(rest) / 1e6:.1f} MB later; "
        f"{min(files)} to {max(files)} open files"
    )
    assert max(rest) <= 1.05 * first[-1] and min(rest) >= 0.95 * first[-1]
    steady = sorted(files)[len(files) // 2]
    assert max(files) <= steady + 1 and files[-1] <= steady + 1  # one more while a checkpoint is being written
