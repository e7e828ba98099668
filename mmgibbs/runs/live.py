"""The page while a run works, written from a thread of this process whenever a chain has kept its state, and every
AGAIN seconds: report.html, or running.html where the folder holds an earlier run, whose page stays until this one is
complete.

The chains know nothing of it: their draws are read from their checkpoints. It costs at most SHARE of one core, and
whatever goes wrong with it ends the page, never the run.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

import numpy as np

from mmgibbs.runs.chains import ChainFactory
from mmgibbs.runs.checkpoints import Checkpoints
from mmgibbs.runs.progress import Show, format_remaining_time
from mmgibbs.runs.progress_file import Position

if TYPE_CHECKING:
    from mmgibbs.report.running import Running

FIRST = 5.0  # seconds of a run before its first page
LOOK = 1.0  # seconds between two looks for new checkpoints
AGAIN = 15.0  # seconds after which a page is written again without one: chains are further
SHARE = 0.02  # of the time, that pages may take
MOST_PARAMETERS = 200  # with diagnostics
MOST_BYTES = 50_000_000  # of the draws of one parameter of a chain that are read

BESIDE_A_FINISHED = "running.html"

Named = Callable[[Mapping[str, np.ndarray]], Mapping[str, np.ndarray]]  # draws by matrix -> by parameter


@dataclass
class LivePage:
    """Use as a context while the chains run; `show` passes on what it receives about them.

    named: (chains, draws, ...) by the names of the sampler -> (chains, draws) by parameter. say: called once where the
    page cannot be made.
    """

    folder: Path  # of the run
    name: str  # of the analysis
    factory: ChainFactory
    checkpoints: Checkpoints
    named: Named
    say: Callable[[str], None]
    _positions: dict[int, int] = field(default_factory=dict)  # chain -> its last sweep
    _first: dict[int, int] = field(default_factory=dict)  # chain -> the sweep at which it was first seen

    def __post_init__(self) -> None:
        self._started, self._failed, self._written = time.monotonic(), False, False
        self._seen: dict[str, tuple[int, int]] = {}  # checkpoint -> when it was written
        self._done, self._thread = threading.Event(), threading.Thread(target=self._watch, daemon=True)
        earlier = (self.folder / "run.json").exists()
        self.path = self.folder / (BESIDE_A_FINISHED if earlier else "report.html")

    def forward_to(self, show: Show) -> Show:
        """`show`, and this page receives it too."""

        def both(chain: int, position: Position) -> None:
            show(chain, position)
            self._first.setdefault(chain, position.number)
            self._positions[chain] = position.number

        return both

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()

    def ended_early(self, why: str, kept: bool) -> None:
        """The run has stopped or failed: the page says so, and goes where nothing of the run is kept."""
        if not self._written:
            return
        try:
            if kept:
                self._write(why)
            else:
                self.path.unlink(missing_ok=True)
        except OSError as error:  # a full disk: what has stopped the run is what the user has to hear
            self.say(f"{self.path.name}: {error}")

    def _watch(self) -> None:
        written, next_one = -AGAIN, FIRST
        while not self._done.wait(min(LOOK, FIRST)) and not self._failed:
            elapsed, worked = time.monotonic() - self._started, time.thread_time()
            if elapsed < next_one or not (self._new_checkpoints() or elapsed - written >= AGAIN):
                continue
            self._write()
            written, next_one = elapsed, elapsed + (time.thread_time() - worked) / SHARE

    def _new_checkpoints(self) -> bool:
        now = {}
        for name in self.factory.names:
            try:
                status = self.checkpoints.path(name).stat()
            except OSError:  # between two names, or not there yet
                continue
            now[name] = (status.st_mtime_ns, status.st_ino)
        changed, self._seen = now != self._seen, now
        return changed

    def _write(self, stopped: str = "") -> None:
        try:
            from mmgibbs.report.running import write_running

            write_running(self._running(stopped), self.path)
            self._written = True
        except Exception as error:  # noqa: BLE001  a run is worth more than its page
            self._failed = True
            self.say(f"no page while it runs: {type(error).__name__}: {error}")

    def _running(self, stopped: str) -> Running:
        from mmgibbs.posterior.summary import summary_table
        from mmgibbs.report.running import ChainProgress, Running
        from mmgibbs.results.tables import summary_frame

        schedule, labels = self.factory.schedule, self.factory.labels
        at = [self._positions.get(c, 0) for c in range(len(labels))]
        figures = dict(self.named(together(self._kept())))
        draws = {name: figures[name] for name in list(figures)[:MOST_PARAMETERS]}
        return Running(
            name=self.name,
            at=time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime()),
            burn_in=schedule.burn_in,
            chains=[ChainProgress(label, n, schedule.n_sweeps) for label, n in zip(labels, at, strict=True)],
            left=self._sweeps_remaining(at, schedule.n_sweeps),
            draws=draws,
            summary=summary_frame(summary_table(draws)) if draws else None,
            left_out=len(figures) - len(draws),
            stopped=stopped,
        )

    def _sweeps_remaining(self, at: Sequence[int], total: int) -> str:
        """Describe the time for all sweeps that are left, at the speed of all chains since they were first seen."""
        made = sum(sweep - self._first.get(c, 0) for c, sweep in enumerate(at))
        seconds = time.monotonic() - self._started
        return format_remaining_time(sum(total - sweep for sweep in at) * seconds / made, utc=True) if made > 0 else ""

    def _kept(self) -> list[dict[str, np.ndarray]]:
        """Return the kept draws of each chain with a checkpoint: name -> (draws, ...).

        Of chains side by side they are (draws, chains, ...).
        """
        results = []
        for name in self.factory.names:
            try:
                with np.load(self.checkpoints.path(name), allow_pickle=False) as file:
                    small = [key for key in file.files if file.zip.getinfo(f"{key}.npy").file_size <= MOST_BYTES]
                    results += self.factory.kept_draws({key: file[key] for key in self.factory.keys_of_draws(small)})
            except (OSError, KeyError, ValueError):
                continue  # not there yet
        return results


def together(chains: Sequence[Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """name -> (chains, draws, ...): of chains that have kept different numbers of draws those, cut to the shortest,
    that leave the most draws in all.
    """
    lengths = [min((len(values) for values in chain.values()), default=0) for chain in chains]
    order = sorted(range(len(chains)), key=lambda c: -lengths[c])
    best = max(range(len(order)), key=lambda k: (k + 1) * lengths[order[k]], default=-1)
    if best < 0 or lengths[order[best]] == 0:
        return {}
    taken, n = sorted(order[: best + 1]), lengths[order[best]]
    return {name: np.stack([chains[c][name][:n] for c in taken]) for name in chains[taken[0]]}
