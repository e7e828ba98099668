"""Where a run begins: anew, from the checkpoints of one that ended early, or beyond the end of a finished one.

    with RunFolder(analysis, console, resume=True) as place:      # looks, locks, refuses
        if place.kind == FINISHED: ...
        place.start()                                         # the folder is there; log and checkpoints are written
        ...                                                   # sample with place.checkpoints, write the results
        place.end(samples)

While a run works its folder holds the lock, `run.log` and `checkpoint/`: a file for each chain and
`run.npz`, which says what is being run. `run.json`, written last, names the run that it is of (`run_id`): so a folder
is complete where the two agree, whenever a run was killed.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import secrets
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from numbers import Integral
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from mmgibbs.config import Analysis
from mmgibbs.errors import ConfigError, MmgibbsError, Stopped, VersionError, option, option_name
from mmgibbs.results.checksums import CHECKSUMS, damage_of_file
from mmgibbs.results.folder import (
    LISTED_IN_LOG,
    RECORD,
    RUN_FOLDER,
    WORKING,
    check_run_directory,
    write_run_folder,
)
from mmgibbs.results.reading import read_record
from mmgibbs.runs.checkpoints import Checkpoints
from mmgibbs.runs.fingerprint import changes, fingerprint, is_of_files, settings, states_of_files
from mmgibbs.runs.live import LivePage
from mmgibbs.runs.lock import FolderLock
from mmgibbs.runs.log import RunLog
from mmgibbs.runs.progress import Console
from mmgibbs.runs.record import versions

if TYPE_CHECKING:
    from mmgibbs.runs.problem import Tables

NEW, RESUMED, EXTENDED, FINISHED = "new", "resumed", "extended", "finished"
SHOWN = 5  # changes named one by one
RUN = "run"  # the checkpoint that says what is being run


class RunFolder:
    """The folder of a run from the first look at it to the last file in it.

    kind: NEW, RESUMED, EXTENDED or FINISHED. checkpoints: where chains keep their state, None where they do not.
    samples: sweeps after burn-in to go to, None for what the analysis says. reached: sweeps of the chain that is
    farthest. begun_with: the engine of a run that is continued, None where nothing is continued; engine: the one of
    this run, for who continues it.

    page: report.html is wanted, while the run works too; live: that page, from the first sweep until the results are
    written.

    Raises ConfigError where the folder cannot be used: another run is writing it; it holds a run, and neither
    `overwrite`, `resume` nor `extend` was asked for; the analysis or a data file is another one than that of the run.
    """

    def __init__(
        self,
        analysis: Analysis,
        console: Console,
        *,
        overwrite: bool = False,
        resume: bool = False,
        extend: int = 0,
        page: bool = False,
    ):
        extend = _sweeps(extend)
        if overwrite + resume + bool(extend) > 1:
            given = {"overwrite": overwrite, "resume": resume, "extend": extend}
            first, second, *_ = [name for name, value in given.items() if value]
            raise ConfigError(f"{first} cannot be combined with {second}; needed one of them at most")
        self.analysis, self.console, self.overwrite = analysis, console, overwrite
        assert analysis.output.directory is not None, "an analysis that load_config has not completed"
        self._inputs = [analysis.path, *states_of_files(analysis)]
        # what run is there: below
        self.path = check_run_directory(analysis.output.directory, overwrite=True, inputs=self._inputs)
        self.kind, self.reached = NEW, 0
        self.page = page
        self.live: LivePage | None = None
        self.samples: int | None = None
        self.begun_with: str | None = None
        self.engine: str | None = None
        self.run_id = f"{datetime.datetime.now(datetime.UTC).isoformat(timespec='seconds')}-{secrets.token_hex(4)}"
        self._states = states_of_files(analysis)
        self._lock = FolderLock(self.path) if self.path.is_dir() else None
        self._log: RunLog | None = None
        self._made: list[Path] = []  # folders, innermost first
        self._started = False
        self._runs = Checkpoints(self.path / "checkpoint", RUN)
        self.checkpoints: Checkpoints | None = None
        every = analysis.sampler.checkpoint_every
        self.unfinished = ""  # what the results that are written already lack
        self._replaces_complete = False
        if analysis.sampler.method in ("gibbs", "reml") and not isinstance(every, str):
            self.checkpoints = Checkpoints(self._runs.folder, "", every.every, every.unit)
        elif (resume or extend) and self._runs.names():
            self.checkpoints = Checkpoints(self._runs.folder, "")  # those that are there; written at the end alone
        try:
            self._look(resume, extend)
        except BaseException:
            self._close()
            raise

    @cached_property
    def _fingerprint(self) -> dict:
        """Fingerprint of this run; the words of a run that is continued, which may be of a version with fewer keys."""
        return fingerprint(self.analysis)

    @property
    def data_files(self) -> dict[str, str]:
        """Dotted key of the analysis -> SHA-256 of the data file; {} where some table is a data frame."""
        return dict(self._fingerprint["files"]) if is_of_files(self.analysis) else {}

    # What is there

    def _look(self, resume: bool, extend: int) -> None:
        shown, record = f"output.directory: '{self.analysis.output.directory}'", _record(self.path)
        saved, useless = self._runs.read(RUN)
        facts = saved.facts if saved else None
        complete = record is not None and (facts is None or record.get("run_id") == facts["run_id"])
        if complete and (resume or extend):
            complete = self._results_are_good(record)
        is_unfinished = bool((record or {}).get("unfinished"))
        complete = complete and not is_unfinished
        begun = is_unfinished or facts is not None or any((self.path / name).exists() for name in WORKING)
        begun = begun and not complete
        self._replaces_complete = complete
        if not (resume or extend or self.overwrite):
            if begun:
                raise ConfigError(
                    f"{shown} holds an unfinished run; {option('resume')} continues it, {option('overwrite')} starts "
                    "again"
                )
            check_run_directory(self.path)
        if extend and not complete:
            content = f"an unfinished run: {option('resume')} first" if begun else "no run"
            raise ConfigError(f"{shown} holds {content}; {option('extend', 'SWEEPS')} needs a finished one")
        if not (resume or extend):
            return
        if complete or facts is not None:
            self._refuse_changes(facts, record)
        if complete and resume:
            self.kind = FINISHED
            self.console.say(
                f"{shown} holds this run, finished: nothing is left to do ({option('extend', 'SWEEPS')} adds to it)"
            )
        elif extend:
            if facts is None or self.checkpoints is None or self.analysis.sampler.method != "gibbs":
                raise ConfigError(
                    f"{shown}: its run kept no checkpoints to continue from (sampler.checkpoint_every: never, or "
                    "method: blup or reml)"
                )
            self.kind, self.samples = EXTENDED, facts["samples"] + extend
            self.begun_with = facts["engine"]
            self._check_chains(self.checkpoints)
        elif self.checkpoints is not None and self.checkpoints.names():
            self._tell_useless(useless)
            self.kind = RESUMED
            if facts is not None:
                self.samples, self.run_id = facts["samples"] if facts["extended"] else None, facts["run_id"]
                self.begun_with = facts["engine"]
            kept = self._check_chains(self.checkpoints)
            if facts is None:
                self.begun_with = next((facts["engine"] for facts in kept), None)
        else:
            self.console.say(f"{shown} holds no checkpoint: the run starts from the beginning")

    def _results_are_good(self, record: dict | None) -> bool:
        """Check that every result file is as the run wrote it. One that is not is reported."""
        for name, expected in ((record or {}).get(CHECKSUMS) or {}).items():
            damage = damage_of_file(self.path / name, expected)
            if damage is not None:
                self.console.say(f"warning: '{self.path / name}' {damage}; the results have to be written again")
                return False
        return True

    def _refuse_changes(self, facts: dict | None, record: dict | None) -> None:
        """ConfigError where the analysis or a data file is not that of the run that is there."""
        then = facts["what"] if facts else {"analysis": settings((record or {}).get("analysis", {}))}
        differences = changes(then, self._fingerprint)
        if differences:
            more = [f"and {len(differences) - SHOWN} more"] if len(differences) > SHOWN else []
            lines = [
                f"output.directory: '{self.analysis.output.directory}' holds the run of another analysis:",
                *differences[:SHOWN],
                *more,
                f"needed the analysis and the data of that run (more sweeps: {option('extend', 'SWEEPS')}), or "
                f"{option('overwrite')}",
            ]
            raise ConfigError("\n".join(lines))
        if facts and facts["versions"] != versions():
            changed = ", ".join(
                f"{name} was {facts['versions'].get(name)}, is {v}"
                for name, v in versions().items()
                if facts["versions"].get(name) != v
            )
            self.console.say(
                f"warning: versions have changed since the run began ({changed}): "
                "the draws may differ from those of an uninterrupted run"
            )
        if facts:
            self._fingerprint = facts["what"]

    def _check_chains(self, kept: Checkpoints) -> list[dict]:
        """Read what chains have kept, and say where they are; the facts of those that continue."""
        checkpoints = self._identify(kept)
        at, continued = [], []
        for name in checkpoints.names():
            if name == RUN:
                continue
            checkpoint, useless = checkpoints.read(name)
            if any("damaged" not in why for why in useless.values()):
                raise ConfigError(
                    "\n".join(f"{path}: {why}; needed the checkpoint of this run" for path, why in useless.items())
                )
            self._tell_useless(useless)
            continued += [checkpoint.facts] if checkpoint else []
            sweep = checkpoint.facts["sweep"] if checkpoint else 0
            self.reached = max(self.reached, sweep)
            unit = "iteration" if self.analysis.sampler.method == "reml" else "sweep"
            at.append(f"{name} at {unit} {sweep:,}" if checkpoint else f"{name} from the start")
        self.console.say(f"continuing from checkpoints: {', '.join(at) or 'none was written yet, so from the start'}")
        return continued

    def _tell_useless(self, useless: Mapping[Path, str]) -> None:
        """Damaged files are said and removed, so that they do not replace a good one."""
        for path, why in useless.items():
            self.console.say(f"warning: checkpoint/{path.name} {why}")
            path.unlink(missing_ok=True)

    def _identify(self, c: Checkpoints) -> Checkpoints:
        """Restrict `checkpoints` from here on to this analysis and these data."""
        what = json.dumps(self._fingerprint, sort_keys=True)
        self.checkpoints = Checkpoints(c.folder, hashlib.sha256(what.encode()).hexdigest(), c.every, c.unit)
        return self.checkpoints

    # From start to end

    def start(self) -> None:
        """Make and lock the folder, and say in it what is being run. What was said so far goes to the log."""
        try:
            if self._lock is None:
                self._made = [p for p in (self.path, *self.path.parents) if not p.exists()]
                self.path.mkdir(parents=True, exist_ok=True)
                self._lock = FolderLock(self.path)
                if self.kind == NEW:  # someone may have been quicker
                    is_finished = (self.path / "run.json").exists() and not (_record(self.path) or {}).get("unfinished")
                    check_run_directory(self.path, self.overwrite or not is_finished, self._inputs)
            self._log = RunLog(self.path)
            self._started = True
            self._log.begin(self.console.lines)
            self.console.log = self._log
            folder = self._runs.folder
            if self.kind == NEW:
                self._runs.remove_all()
            if self.checkpoints is None:
                self._refuse_changed_files()
                return
            _ = self._fingerprint  # reads the data files, unless that is done
            self._refuse_changed_files()
            folder.mkdir(exist_ok=True)
            self._runs.clear_unfinished()
            if self.kind == NEW:
                self._identify(self.checkpoints)
            if self.kind != RESUMED:
                self._announce(self.samples or self.analysis.sampler.samples)
        except OSError as error:
            raise ConfigError(f"output.directory: cannot write '{self.path}': {error.strerror or error}") from error

    def _refuse_changed_files(self) -> None:
        """ConfigError where a data file is not the one that was there before the first was read: the checkpoints would
        go by the name of data that the run has not read, or continue with other data.
        """
        now = states_of_files(self.analysis)
        changed = [str(path) for path, state in self._states.items() if now[path] != state]
        if changed:
            raise ConfigError(
                f"{changed[0]}: was changed while the run read its data; needed files that stay as they are: start the "
                "run again"
            )

    def _announce(self, samples: int) -> None:
        facts = {
            "run_id": self.run_id,
            "what": self._fingerprint,
            "versions": versions(),
            "samples": samples,
            "extended": self.samples is not None,
            "engine": self.engine,
        }
        self._runs.write(RUN, {}, facts)

    def end(self, samples: int) -> None:
        """Record the number of sweeps after burn-in of all chains, which an extension will add to."""
        if self.checkpoints is not None:
            try:
                self._announce(samples)
            except OSError as error:
                raise ConfigError(f"output.directory: cannot write '{self.path}': {error.strerror or error}") from error

    def write_unfinished(self, tables: Tables, record: Mapping[str, Any], lacking: str) -> None:
        """Write results that lack something, and say so in them; not in place of those of a finished run, which stay
        until the new ones are complete."""
        if self._replaces_complete:
            return
        warning = f"unfinished: {lacking}"
        more = {"run_id": self.run_id, "unfinished": lacking, "warnings": [warning, *record.get("warnings", ())]}
        self.write_results(tables, {**record, **more})
        self.unfinished = lacking
        self.console.say(f"the solutions are in {self.path}")

    def write_results(self, tables: Tables, record: Mapping[str, Any]) -> dict[str, Any]:
        """Write the results in place of earlier ones, and list them in the log; return run.json."""
        output = self.analysis.output
        write_run_folder(
            self.path,
            summary=tables.summary,
            solutions=tables.solutions,
            run=record,
            draws=tables.draws,
            extra=tables.files,
            csv=output.csv,
            escaped=output.escape_formulas,
            overwrite=True,  # whether it may be is settled, and the folder is locked
        )
        written: dict[str, Any] = json.loads((self.path / RECORD).read_text(encoding="utf-8"))
        self.console.write_log(f"{LISTED_IN_LOG}{', '.join(written['files'])}")
        return written

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        kept = self.checkpoints is not None and any(name != RUN for name in self.checkpoints.names())
        if error is None or not self._started:
            if error is None and self.analysis.sampler.method == "reml":
                self._runs.remove_all()  # finished: there is nothing to continue
            self._close()
            return
        self.console.write_log(str(error) or type(error).__name__)
        if self.live is not None:
            why = (str(error) or type(error).__name__).splitlines()[0]
            self.live.ended_early(f"{why}; continue with {option('resume')}", kept)
        if self.unfinished and not isinstance(error, Stopped):
            self._remove_results()
        if not kept and self.kind == NEW:
            self._remove()
        if self.kind == EXTENDED and isinstance(error, VersionError):
            self._runs.take_back(RUN)  # the run that is there stays finished
        self._close()
        if isinstance(error, Stopped):
            never = "sampler.checkpoint_every: never" if self.checkpoints is None else "no checkpoint was written"
            state = f"the state is kept in '{self._runs.folder}'" if kept else f"nothing is kept ({never})"
            if self.unfinished:
                written = f"results are in '{self.path}'"
                state = f"{written}, {state}" if kept else f"{written}, without {self.unfinished}"
            raise Stopped(error.signal, f"{error}; {state}", kept) from None
        if kept and isinstance(error, MmgibbsError) and not isinstance(error, VersionError):
            raise type(error)(
                f"{error}\nthe checkpoints in '{self._runs.folder}' are kept: {option('resume')} continues from them"
            ) from error

    def _remove_results(self) -> None:
        """Remove results that lack something, after an error: what came of them is not known."""
        if (_record(self.path) or {}).get("unfinished"):
            for name in RUN_FOLDER.list_written(self.path) - WORKING:
                (self.path / name).unlink(missing_ok=True)

    def _remove(self) -> None:
        """Nothing of the run is worth keeping: leave no trace of it."""
        self._runs.remove_all()
        if self._lock is not None:
            self._lock.release()
        if self._log is not None and self._log.made:
            self._log.path.unlink(missing_ok=True)
        for folder in self._made:
            with suppress(OSError):
                folder.rmdir()

    def _close(self) -> None:
        self.console.log = None
        if self._log is not None:
            self._log.close()
        if self._lock is not None:
            self._lock.release()


def seed_of_run(path: Path) -> int | None:
    """The seed of the run in a folder, finished or not; None where there is none."""
    record, _ = Checkpoints(path / "checkpoint", RUN).read(RUN)
    of_checkpoint = record.facts["what"]["analysis"].get("sampler.seed") if record else None
    seed = json.loads(of_checkpoint) if of_checkpoint is not None else (_record(path) or {}).get("seed")
    return seed if isinstance(seed, int) else None


def _record(path: Path) -> dict | None:
    """run.json; None where there is none that is as a run wrote it."""
    try:
        return read_record(path)
    except ConfigError:
        return None


def _sweeps(extend: object) -> int:
    if isinstance(extend, bool) or not isinstance(extend, Integral) or extend < 0:
        raise ConfigError(f"{option_name('extend')}: found {extend!r}, needed a whole number of sweeps from 1")
    return int(extend)
