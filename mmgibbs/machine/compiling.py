"""Tell somebody who waits that kernels are being compiled, once that takes longer than a moment."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

SAID = (
    "compiling kernels: the first fit after an install or an upgrade takes up to a minute longer; later fits use them "
    "again"
)
PATIENCE = 2.0  # seconds of compiling


@contextmanager
def telling_of_compiling(tell: Callable[[str], None]) -> Iterator[None]:
    """Within the block tell(SAID) is called once, as soon as kernels have been compiled for PATIENCE seconds. Those
    that are kept are read, which is quick and not told.
    """
    from numba.core import event

    with event.install_listener("numba:compile", _listener(event.Listener, tell)):
        yield


def _listener(base: type, tell: Callable[[str], None]) -> Any:
    """Of Numba: it hears the beginning and the end of each function that is compiled. One calls others, which are
    compiled meanwhile, so that it hears something every fraction of a second.
    """

    class Patience(base):
        def __init__(self) -> None:
            self.depth, self.spent, self.since, self.done = 0, 0.0, 0.0, False

        def on_start(self, event: object) -> None:
            if self.depth == 0:
                self.since = time.monotonic()
            self.depth += 1
            self._tell()

        def on_end(self, event: object) -> None:
            if self.depth == 0:
                return  # of another thread, which began before this listened
            self._tell()
            self.depth -= 1
            if self.depth == 0:
                self.spent += time.monotonic() - self.since

        def _tell(self) -> None:
            if not self.done and self.spent + time.monotonic() - self.since > PATIENCE:
                self.done = True
                tell(SAID)

    return Patience()


def somebody_waits() -> bool:
    """Whether this is a session at a prompt or in a notebook, not a script."""
    return hasattr(sys, "ps1")


def write_line(text: str) -> None:
    """On standard error, above the bars, where there are some."""
    from tqdm import tqdm

    tqdm.write(text, file=sys.stderr)
    sys.stderr.flush()
