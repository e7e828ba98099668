"""Runs `mmgibbs` again and again in children of one warm process, and kills them: a program that a test starts.

Standard input: one JSON list a line, [folder, arguments, kind, number]: the child runs the arguments in the folder and
ends itself with SIGKILL at the number-th event of this kind ('sweep', or 'file': half a checkpoint, a flush to the
disk, a rename); kind null: it runs to its end; 'stop': it stops at that sweep, which is answered at once, and the next
line kills it. Standard output: one JSON list a line, [exit status as subprocess has it, {kind: events seen}, what it
said].
"""

import io
import json
import os
import signal
import sys
import tempfile
from pathlib import Path

import arviz_stats.base  # noqa: F401  imported here, children need not
import h5netcdf  # noqa: F401
import numpy as np
import xarray  # noqa: F401
from helpers.support import mixed_model
from reference import models

from mmgibbs.cli import main
from mmgibbs.engines.serial import SerialEngine
from mmgibbs.equations.partition import partition
from mmgibbs.equations.structured import structured_equations
from mmgibbs.sampler.chain import sample_chain
from mmgibbs.sampler.interweave import terms_to_interweave
from mmgibbs.sampler.schedule import Schedule

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # chains one after another, in the process that is killed


def warm() -> None:
    """Load compiled kernels here, so that children need not: without Polars, whose threads a fork would lose."""
    example = models.example("bivariate_missing")
    priors = {i: (len(g) + 4.0, 3.0 * g) for i, g in enumerate(example.G) if g is not None}
    model = mixed_model(example.design, example.G, example.R, priors | {"residual": (9.0, 9.0 * example.R)})
    engine = SerialEngine(structured_equations(example.design, partition(example.design)))
    sample_chain(model, engine, Schedule(0, 2, 1, refresh_every=1, interweave=terms_to_interweave(model)), (1, 0))


def watch(kind, number, seen):
    """Count events, and die at one of them."""

    def event(what, first=lambda: None):
        seen[what] += 1
        if what == kind and seen[what] == number:
            first()
            os.kill(os.getpid(), signal.SIGKILL)
        if what == "sweep" and kind == "stop" and seen[what] == number:
            os.kill(os.getpid(), signal.SIGSTOP)

    def before(function, what):
        return lambda *a, **k: (event(what), function(*a, **k))[1]

    def savez(file, **arrays):
        whole = io.BytesIO()
        real_savez(whole, **arrays)
        half = whole.getvalue()[: len(whole.getvalue()) // 2]
        event("file", lambda: (file.write(half), file.flush()))
        file.write(whole.getvalue())

    real_savez, np.savez = np.savez, savez
    SerialEngine.sweep = before(SerialEngine.sweep, "sweep")
    os.fsync, os.replace, Path.rename = (
        before(os.fsync, "file"),
        before(os.replace, "file"),
        before(Path.rename, "file"),
    )


def child(arguments, kind, number, said, counts):
    os.dup2(said.fileno(), 1)
    os.dup2(said.fileno(), 2)
    seen = {"sweep": 0, "file": 0}
    watch(kind, number, seen)
    code = main(arguments)
    counts.write(json.dumps(seen).encode())
    counts.flush()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def answer(status, said, counts):
    said.seek(0)
    counts.seek(0)
    print(
        json.dumps([os.waitstatus_to_exitcode(status), json.loads(counts.read() or b"{}"), said.read().decode()]),
        flush=True,
    )


warm()
stopped = None
for line in sys.stdin:
    folder, arguments, kind, number = json.loads(line)
    if stopped is not None:
        os.kill(stopped[0], signal.SIGKILL)
        os.waitpid(stopped[0], 0)
        stopped = None
    said, counts = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115
    pid = os.fork()
    if pid == 0:
        try:
            os.chdir(folder)
            child(arguments, kind, number, said, counts)
        finally:
            os._exit(99)
    _, status = os.waitpid(pid, os.WUNTRACED)
    if os.WIFSTOPPED(status):
        stopped = (pid,)
        print(json.dumps([None, {}, str(pid)]), flush=True)
    else:
        answer(status, said, counts)
