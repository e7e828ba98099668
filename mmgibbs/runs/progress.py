"""What a person sees while a run works: notes, one progress bar per chain on a terminal, a plain line every minute
elsewhere.

All of it goes to the log of the run folder too, also what a quiet run does not say aloud.
"""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager

from mmgibbs.runs.log import RunLog

LOG_EVERY = 60.0  # seconds between two lines where there is no terminal


class Console:
    """Everything that a run says. `Console(False)` says nothing.

    name: of one run among several at once; what is said aloud begins with it, and no bars are shown.
    """

    def __init__(self, aloud: bool = True, stream=None, name: str = ""):
        self.aloud, self.stream, self.name = aloud, stream or sys.stderr, name
        self.log: RunLog | None = None  # also hears what is not said aloud
        self.lines: list[tuple[float, str]] = []  # (time, text) until there is a log

    @property
    def bars(self) -> bool:
        return self.aloud and not self.name and self.stream.isatty()

    def say(self, text: str) -> None:
        if self.bars:
            from tqdm import tqdm

            tqdm.write(text, file=self.stream)  # above the bars, where there are some
        elif self.aloud:
            name = f"{self.name}:" + ("\n" if "\n" in text else " ") if self.name else ""
            self.stream.write(f"{name}{text}\n")  # in one piece, also where several runs speak at once
            self.stream.flush()
        self.write_log(text)

    def write_log(self, text: str) -> None:
        if self.log is not None:
            self.log.write(text)
        else:
            self.lines.append((time.time(), text))

    @contextmanager
    def chains(self, schedule, assembled):
        """Yields show(chain, sweep, values): bars on a terminal, lines elsewhere, and lines in the log."""
        if self.bars:
            lines = _Lines(schedule, assembled, self.write_log)
            with _Bars(schedule, assembled, self.stream) as bars:
                yield lambda *seen: (bars.show(*seen), lines.show(*seen))
        else:
            yield _Lines(schedule, assembled, self.say).show

    def finish(self, summary, path, record, shown=None) -> None:
        """shown: the part of a long summary that is said."""
        import polars as pl

        from mmgibbs.report.findings import said_at_the_end

        shown = (summary if shown is None else shown).select(
            "parameter", "mean", "sd", "mcse", "ess_bulk", "rhat", "hpd_low", "hpd_high"
        )
        with pl.Config(
            tbl_rows=60,
            tbl_hide_dataframe_shape=True,
            tbl_hide_column_data_types=True,
            tbl_width_chars=160,
            float_precision=4,
            fmt_str_lengths=80,
        ):
            self.say(str(shown))
        for warning in said_at_the_end(summary, record):
            self.say(warning)
        self.say(f"written to {path}")


def current_shares(assembled, values) -> str:
    """'h2[weaning_weight] 0.31 ...' of one draw; residual variances where there is no h2."""
    from mmgibbs.posterior.parameters import named_parameters

    one = {name: matrix[None, None] for name, matrix in values.items()}
    named = named_parameters(assembled.terms, one, assembled.residual).draws
    chosen = {k: v for k, v in named.items() if k.startswith("h2[")} or {
        k: v for k, v in named.items() if k.startswith("residual.var[")
    }
    return ", ".join(f"{name} {draw.item():.3f}" for name, draw in list(chosen.items())[:4])


def time_left(seconds: float) -> str:
    """'1:02:03 left, done about 16:40'; with the day where that is not today's."""
    from tqdm import tqdm

    end, now = time.localtime(time.time() + seconds), time.localtime()
    clock = "%H:%M" if end[:3] == now[:3] else "%a %d %b %H:%M"
    return f"{tqdm.format_interval(seconds)} left, done about {time.strftime(clock, end)}"


class _Bars:
    def __init__(self, schedule, assembled, stream):
        self.schedule, self.assembled, self.stream = schedule, assembled, stream
        self.seen: set[int] = set()

    def __enter__(self):
        from tqdm import tqdm

        self.bars = [
            tqdm(
                total=self.schedule.n_sweeps,
                desc=f"chain {c + 1}",
                position=c,
                unit="sweep",
                file=self.stream,
                leave=True,
            )
            for c in range(self.schedule.chains)
        ]
        return self

    def show(self, chain, number, values) -> None:
        bar, first = self.bars[chain], chain not in self.seen
        if first:  # of a chain that goes on, the sweeps before do not count for its speed
            self.seen.add(chain)
            bar.initial = bar.n = number
        if number > bar.n or first:
            stage = "burn-in, " if number <= self.schedule.burn_in else ""
            bar.set_postfix_str(stage + current_shares(self.assembled, values), refresh=first)
            bar.update(number - bar.n)

    def __exit__(self, *_):
        for bar in self.bars:
            bar.close()


class _Lines:
    """A line per chain every LOG_EVERY seconds, and one when it is done."""

    def __init__(self, schedule, assembled, say):
        self.schedule, self.assembled, self.say = schedule, assembled, say
        self.told = {}  # chain -> (time, sweep) of its last line, or of when it was first seen

    def show(self, chain, number, values) -> None:
        now, total = time.monotonic(), self.schedule.n_sweeps
        since, before = self.told.setdefault(chain, (now, 0 if number == total else number))
        done = number == total and before < total
        if not done and (number == total or now - since < LOG_EVERY):
            return
        rate = (number - before) / max(now - since, 1e-9)
        speed = f", {rate:,.0f} sweeps/s" if now - since > 1 else ""
        left = "" if done or rate <= 0 else f", {time_left((total - number) / rate)}"
        self.told[chain] = (now, number)
        self.say(
            f"chain {chain + 1}: sweep {number:,} of {total:,}{speed}{left}; {current_shares(self.assembled, values)}"
        )
