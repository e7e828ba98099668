"""Processes that end with the one that started them, however that ends.

A killed process cannot tell its workers. One that computes may go on for hours, and one that waits for work, or for
room in a pipe that nobody reads any more, for ever.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable

POLL_SECONDS = 0.5
ENDED_WITH_PARENT = 1  # the exit code


def end_with_parent(parent: int, before: Callable[[], None] | None = None) -> None:
    """End this process, at once and whatever its other threads do, as soon as process `parent` has ended.

    parent: process id of the one that started this one. It may have ended already. before: called first, to remove
    what the process would leave behind.
    """
    threading.Thread(target=_watch, args=(parent, before), name="end with parent", daemon=True).start()


def _watch(parent: int, before: Callable[[], None] | None) -> None:
    if sys.platform == "win32":  # where a process keeps the id of a parent that has ended
        _wait_for_process(parent)
    else:
        while os.getppid() == parent:
            time.sleep(POLL_SECONDS)
    try:
        if before is not None:
            before()
    finally:
        os._exit(ENDED_WITH_PARENT)


if sys.platform == "win32":

    def _wait_for_process(number: int) -> None:
        import ctypes

        synchronize, infinite = 0x00100000, 0xFFFFFFFF
        kernel = ctypes.WinDLL("kernel32", use_last_error=True)
        kernel.OpenProcess.restype = ctypes.c_void_p
        handle = kernel.OpenProcess(synchronize, False, number)
        if handle:
            kernel.WaitForSingleObject(ctypes.c_void_p(handle), infinite)
