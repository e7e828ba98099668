"""Races between the threads of a block: kernels with a real thread for each CUDA thread, under ThreadSanitizer.

The text is that of the device. A barrier is one of pthreads, shared memory is static, and blocks run one after another.
A missing barrier shows as a report, as threads that wait for ever, or as other values.

Two barriers take turns. With one, a thread that wakes up late would be taken for one that waited for all that the
others did until they reached it again, and most races would be missed.
"""

import shutil
import subprocess
from dataclasses import dataclass

import pytest
from helpers.draw_batches import compiler

from mmgibbs.draws.source import FOLDER

SECONDS = 20  # that an executable may take before it counts as waiting for ever
GRID = r"""
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <thread>
#include <vector>
#define __global__
#define __shared__ static
#define __launch_bounds__(...)
struct Dimension { unsigned x; };
static Dimension blockIdx, blockDim, gridDim;
static thread_local Dimension threadIdx;
static thread_local unsigned n_barriers;
static pthread_barrier_t barriers[2];
#define BLOCKS
#define BARRIER_OF_BLOCKS(arrived, target)
#define PHASE
#define BARRIER pthread_barrier_wait(&barriers[n_barriers++ % 2]);

static inline void atomicMin(unsigned long long *at, unsigned long long value) {
    unsigned long long old = __atomic_load_n(at, __ATOMIC_RELAXED);
    while (value < old && !__atomic_compare_exchange_n(at, &old, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}

template <class Kernel>
void run(Kernel kernel, unsigned blocks, unsigned threads) {
    blockDim.x = threads, gridDim.x = blocks;
    for (auto &barrier : barriers) pthread_barrier_init(&barrier, 0, threads);
    for (unsigned block = 0; block < blocks; ++block) {
        blockIdx.x = block;
        std::vector<std::thread> of_block;
        for (unsigned thread = 0; thread < threads; ++thread)
            of_block.emplace_back([=] { threadIdx.x = thread, n_barriers = 0; kernel(); });
        for (auto &thread : of_block) thread.join();
    }
    for (auto &barrier : barriers) pthread_barrier_destroy(&barrier);
}
"""


@dataclass(frozen=True)
class Outcome:
    """Races that were reported, what the program printed, and whether it ended."""

    races: int
    printed: str
    has_ended: bool = True


def run_with_threads(folder, name: str, text: str, main: str) -> Outcome:
    """Kernels `text` and a `main` that runs them, run(kernel, blocks, threads), and prints the result."""
    shim = (FOLDER / "host_shim.h").read_text(encoding="utf-8").replace("#pragma once\n", "")
    code, program = folder / f"{name}.cpp", folder / name
    code.write_text(shim + GRID + text + main, encoding="utf-8")
    options = ["-std=c++17", "-O0", "-g", "-w", "-fsanitize=thread", "-ffp-contract=off", "-pthread"]
    made = subprocess.run(
        [compiler(), *options, str(code), "-o", str(program)], capture_output=True, text=True, check=False
    )
    if "cannot find" in made.stderr and "tsan" in made.stderr:
        pytest.skip("needs the library of ThreadSanitizer, which is not here")
    assert made.returncode == 0, made.stderr
    fixed = ["setarch", "-R"] if shutil.which("setarch") else []  # addresses that ThreadSanitizer can use
    environment = {"TSAN_OPTIONS": "history_size=7 exitcode=0"}
    try:
        done = subprocess.run(
            [*fixed, str(program)], capture_output=True, text=True, timeout=SECONDS, env=environment, check=False
        )
    except subprocess.TimeoutExpired:
        return Outcome(0, "", has_ended=False)
    if "FATAL: ThreadSanitizer" in done.stderr or (done.returncode and "ThreadSanitizer" not in done.stderr):
        pytest.skip(f"ThreadSanitizer cannot run here: {done.stderr[:200]}")
    return Outcome(done.stderr.count("WARNING: ThreadSanitizer: data race"), done.stdout)


def run_without_race(folder, text: str, main: str) -> Outcome:
    """The outcome of kernels whose threads do not race."""
    outcome = run_with_threads(folder, "complete", text, main)
    assert outcome.has_ended and outcome.races == 0
    return outcome


def assert_barrier_is_needed(folder, text: str, main: str, place: str, complete: Outcome) -> None:
    """Without the first BARRIER behind `place` threads race or wait for ever, or values differ from the `complete`."""
    outcome = run_with_threads(folder, "without", remove_barrier(text, place), main)
    assert not outcome.has_ended or outcome.races or outcome.printed != complete.printed, place


def remove_barrier(text: str, place: str) -> str:
    """The text less the first BARRIER behind `place`, which occurs once."""
    before, found, behind = text.partition(place)
    assert found and place not in behind, f"needed once: {place}"
    assert "BARRIER" in behind
    return before + found + behind.replace("BARRIER", "", 1)
