"""Ctrl-C (SIGINT), SIGTERM and SIGHUP (a terminal that is closed) while chains run: they finish their sweep and keep
their state, then the program ends.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, ClassVar, NoReturn, Self

from mmgibbs.errors import Stopped

Handler = Callable[[int, FrameType | None], Any] | int | None
HANG_UP: int | None = getattr(signal, "SIGHUP", None)  # there is none on Windows
SIGNALS = (signal.SIGINT, signal.SIGTERM, *([] if HANG_UP is None else [HANG_UP]))


def is_heard(number: int) -> bool:
    """False for SIGHUP under `nohup`, which has it ignored so that the program outlives its terminal."""
    return number != HANG_UP or signal.getsignal(number) is not signal.SIG_IGN


class StopSignals:
    """Call `ask` within the block at the first of these signals, kept in `signal`; a second one ends the program.

    Python gives signals to the main thread alone. In another thread the block hears of a signal from the block that the
    main thread is in, also of one that came before; where the main thread is in none, nothing changes.
    """

    _of_main: ClassVar[list[StopSignals]] = []  # innermost last
    _elsewhere: ClassVar[list[StopSignals]] = []

    def __init__(self, ask: Callable[[], None]):
        self.ask = ask
        self.signal: int | None = None
        self._before: dict[int, Handler] = {}

    def _came(self, number: int, frame: FrameType | None) -> None:
        self._give_back()
        self._hear(number)
        for handler in tuple(self._elsewhere):
            handler._hear(number)

    def _hear(self, number: int) -> None:
        self.signal = number
        self.ask()

    def _give_back(self) -> None:
        while self._before:
            signal.signal(*self._before.popitem())

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._came) for number in SIGNALS if is_heard(number)}
            self._of_main.append(self)
        else:
            self._elsewhere.append(self)
            for main in self._of_main[-1:]:
                if main.signal is not None:
                    self._hear(main.signal)
        return self

    def __exit__(self, *_: Any) -> None:
        self._give_back()
        (self._of_main if self in self._of_main else self._elsewhere).remove(self)


@contextmanager
def end_like_ctrl_c() -> Iterator[None]:
    """Unwind the program at SIGTERM and SIGHUP within the block as Ctrl-C does; StopSignals aside."""

    def stop(number: int, frame: FrameType | None) -> NoReturn:
        raise Stopped(number, "stopped")

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [number for number in SIGNALS if number != signal.SIGINT and is_heard(number)]
    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
