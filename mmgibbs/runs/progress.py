"""What a person sees of a run: on stdout its results, on stderr notes, warnings and progress.

Progress is one bar per chain on a terminal, a plain line every minute elsewhere. All of it goes to the log of the run
folder too, also what a quiet run does not say aloud.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Self, TextIO

import numpy as np

from mmgibbs.pedigree.messages import counted, split_messages
from mmgibbs.runs.log import RunLog
from mmgibbs.runs.progress_file import Position
from mmgibbs.sampler.schedule import Schedule

if TYPE_CHECKING:
    import polars as pl

Describe = Callable[[Mapping[str, np.ndarray]], str]
Show = Callable[[int, Position], None]
Say = Callable[[str], None]
LOG_EVERY = 60.0  # seconds between two lines where there is no terminal
TELL_AFTER = 5.0  # seconds of silence after which what is being done is said aloud


class Console:
    """Everything that a run says. `Console(False)` says nothing.

    stream: takes all of it, in place of stdout and stderr. name: of one run among several at once; what is said aloud
    begins with it, and no bars are shown. verbose: notes and every stage are said aloud, not only written to the log.
    """

    def __init__(self, aloud: bool = True, stream: TextIO | None = None, name: str = "", verbose: bool = False):
        self.results = stream or sys.stdout
        stream = stream or sys.stderr  # None where it was closed before Python began
        self.aloud, self.stream, self.name = aloud and stream is not None, stream, name
        self.verbose, self.n_notes, self.warned = verbose, 0, set[str]()
        self._heard = time.monotonic()  # when something was last said aloud
        self.log: RunLog | None = None  # also hears what is not said aloud
        self.lines: list[tuple[float, str]] = []  # (time, text) until there is a log

    @property
    def bars(self) -> bool:
        return self.aloud and not self.name and (self.stream.isatty() or is_notebook())

    def say(self, text: str) -> None:
        self._heard = time.monotonic()
        if self.bars and not is_notebook():
            from tqdm import tqdm

            tqdm.write(text, file=self.stream)  # above the bars, where there are some
        elif self.aloud:
            self._write(self.stream, text)
        self.write_log(text)

    def print_result(self, text: str) -> None:
        """Write what the run has found, and where it is, to stdout."""
        if self.aloud and self.results is not None:
            self._write(self.results, text)
        self.write_log(text)

    def _write(self, stream: TextIO, text: str) -> None:
        name = f"{self.name}:" + ("\n" if "\n" in text else " ") if self.name else ""
        with suppress(OSError):  # a terminal that is gone, a log on a full disk: the run goes on
            stream.write(f"{name}{text}\n")  # in one piece, also where several runs speak at once
            stream.flush()

    def write_log(self, text: str) -> None:
        if self.log is not None:
            self.log.write(text)
        else:
            self.lines.append((time.time(), text))

    def say_all(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.say(line)

    def tell(self, text: str) -> None:
        """Write what is being done to the log, and aloud after some silence."""
        if self.verbose or time.monotonic() - self._heard > TELL_AFTER:
            self.say(text)
        else:
            self.write_log(text)

    def note(self, lines: Iterable[str]) -> None:
        """Write notes to the log, and aloud where the run is verbose; warnings among them are always said aloud."""
        warnings, notes = split_messages(tuple(lines))
        for text in warnings:
            self.warn(f"warning: {text}")
        for text in notes:
            self.n_notes += 1
            (self.say if self.verbose else self.write_log)(text)

    def warn(self, text: str) -> None:
        """Say a warning, once."""
        if text not in self.warned:
            self.warned.add(text)
            self.say(text)

    @contextmanager
    def chains(self, schedule: Schedule, labels: Sequence[str], describe: Describe) -> Iterator[Show]:
        """Yields show(chain, position): bars on a terminal, lines elsewhere, and lines in the log.

        labels: of the chains; describe: what there is to say of the draws that are shown.
        """
        if self.bars:
            lines = _Lines(schedule, labels, describe, self.write_log, self.write_log)
            with _Bars(schedule, labels, describe, self.stream) as bars:

                def show(chain: int, position: Position) -> None:
                    bars.show(chain, position)
                    lines.show(chain, position)

                yield show
        else:
            yield _Lines(schedule, labels, describe, self.say, self.say if self.verbose else self.write_log).show

    def finish(self, summary: pl.DataFrame, path: Path, record: Mapping) -> None:
        """Variances and their ratios, of which most readers look at no others; warnings; and where everything is."""
        from mmgibbs.report.findings import said_at_the_end
        from mmgibbs.report.terminal import matrices_as_text, most_wanted, summary_as_text

        everything = [summary_as_text(summary), *matrices_as_text(summary)]
        if self.verbose:
            for text in everything:
                self.print_result(text)
        else:
            shown = most_wanted(summary)
            if self.aloud and self.results is not None:
                self._write(self.results, summary_as_text(shown, brief=True))
            for text in everything:
                self.write_log(text)
        for text in said_at_the_end(summary, record):
            self.warn(text)
        hidden = 0 if self.verbose else summary.height - shown.height
        more = f" ({counted(hidden, 'more parameter')} in summary.csv)" if hidden else ""
        self.print_result(f"written to {path}{more}")
        if self.n_notes and not self.verbose:
            self.say(f"{counted(self.n_notes, 'note')} on the data and the model: run.log, or --verbose")


def format_remaining_time(seconds: float, utc: bool = False) -> str:
    """'1:02:03 left, done about 16:40'; with the day where that is not today's. utc: for readers elsewhere."""
    from tqdm import tqdm

    at = time.time()
    end, now = (time.gmtime(t) if utc else time.localtime(t) for t in (at + seconds, at))
    clock = ("%H:%M" if end[:3] == now[:3] else "%a %d %b %H:%M") + (" UTC" if utc else "")
    return f"{tqdm.format_interval(seconds)} left, done about {time.strftime(clock, end)}"


def is_notebook() -> bool:
    """Check whether this runs in a notebook, whose bars are widgets."""
    shell = sys.modules.get("IPython")
    current = None if shell is None else shell.get_ipython()
    return type(current).__name__ == "ZMQInteractiveShell"


class _Bars:
    def __init__(self, schedule: Schedule, labels: Sequence[str], describe: Describe, stream: TextIO):
        self.schedule, self.labels, self.describe, self.stream = schedule, labels, describe, stream
        self.seen: set[int] = set()

    def __enter__(self) -> Self:
        with warnings.catch_warnings(action="ignore"):  # of widgets that are not installed: bars are text then
            from tqdm.auto import tqdm

        self.bars = [
            tqdm(total=self.schedule.n_sweeps, desc=label, position=c, unit="sweep", file=self.stream, leave=True)
            for c, label in enumerate(self.labels)
        ]
        return self

    def show(self, chain: int, position: Position) -> None:
        bar, first, number = self.bars[chain], chain not in self.seen, position.number
        if first:  # of a chain that continues, the sweeps before do not count for its speed
            self.seen.add(chain)
            bar.initial = bar.n = number
        if number > bar.n or first:
            stage = "burn-in" if number <= self.schedule.burn_in else ""
            bar.set_postfix_str(", ".join(filter(None, (stage, self.describe(position.values)))), refresh=first)
            bar.update(number - bar.n)

    def __exit__(self, *_: object) -> None:
        for bar in self.bars:
            bar.close()


class _Lines:
    """A line per chain every LOG_EVERY seconds, and one when it is done: by `log` where it is the only one."""

    def __init__(self, schedule: Schedule, labels: Sequence[str], describe: Describe, say: Say, log: Say):
        self.schedule, self.labels, self.describe, self.say, self.log = schedule, labels, describe, say, log
        self._named: set[int] = set()  # chains that have had a line
        # chain -> (time, sweep) of its last line, or of when it was first seen
        self._last: dict[int, tuple[float, int]] = {}

    def show(self, chain: int, position: Position) -> None:
        now, number, total = time.monotonic(), position.number, self.schedule.n_sweeps
        since, before = self._last.setdefault(chain, (now, 0 if number == total else number))
        done = number == total and before < total
        if not done and (number == total or now - since < LOG_EVERY):
            return
        rate = (number - before) / max(now - since, 1e-9)
        speed = f", {rate:,.0f} sweeps/s" if now - since > 1 else ""
        remaining = "" if done or rate <= 0 else f", {format_remaining_time((total - number) / rate)}"
        self._last[chain] = (now, number)
        line = f"{self.labels[chain]}: sweep {number:,} of {total:,}{speed}{remaining}"
        say = self.log if done and chain not in self._named else self.say
        self._named.add(chain)
        say("; ".join(filter(None, (line, self.describe(position.values)))))
