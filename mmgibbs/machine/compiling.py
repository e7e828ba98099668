"""Tell somebody who waits that kernels are being compiled, once that takes longer than a moment."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from mmgibbs.pedigree.kernel_store import kernel_store

DELAY_SECONDS = 2.0


def compiling_message(fitted: str = "run") -> str:
    """Return the message, shown once, that the first `run` or `fit` compiles kernels."""
    if kernel_store().is_lasting:
        return (
            f"compiling kernels: the first {fitted} after an install or an upgrade takes up to a minute longer; later "
            f"{fitted}s use them again"
        )
    return (
        f"compiling kernels: every {fitted} takes up to a minute longer, because none of the folders for compiled "
        "kernels can be written, or their disks are full; set NUMBA_CACHE_DIR to a folder that can be written"
    )


@contextmanager
def announce_compiling(tell: Callable[[str], None]) -> Iterator[None]:
    """Call tell(message) once within the block if a kernel is compiled.

    It is called after DELAY_SECONDS, or later. Kernels that are kept are read, which is quick and not told.
    """
    store, ended = kernel_store(), threading.Event()
    before = store.n_compiled

    def watch() -> None:
        while not ended.wait(DELAY_SECONDS):
            if store.n_compiled > before:
                tell(compiling_message("fit"))
                return

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def is_interactive() -> bool:
    """Check whether this is a session at a prompt or in a notebook, not a script."""
    return hasattr(sys, "ps1")


def write_line(text: str) -> None:
    """Write a line on standard error, above the bars, where there are some."""
    from tqdm import tqdm

    tqdm.write(text, file=sys.stderr)
    sys.stderr.flush()
