"""What a run says while it works: bars on a terminal, a line a minute elsewhere, everything in the log."""

import io
import time
from types import SimpleNamespace

import pytest
from helpers.small_analysis import command, write_files

from mmgibbs.runs import progress
from mmgibbs.runs.log import RunLog
from mmgibbs.runs.progress import Console, format_remaining_time
from mmgibbs.runs.progress_file import Position

SCHEDULE, LABELS = SimpleNamespace(n_sweeps=1000, burn_in=200), ("chain 1", "chain 2")


def h2(values):
    return f"h2[y] {values['h2']:.3f}"


def at(number, share):
    return Position(number, {"h2": share})


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_a_line_a_minute_where_there_is_no_terminal(clock):
    said = io.StringIO()
    with Console(stream=said).chains(SCHEDULE, LABELS, h2) as show:
        for second in range(201):
            clock[0] = 1000.0 + second
            show(0, at(5 * second or 1, 0.25))
        show(0, at(1000, 0.3))
    lines = said.getvalue().splitlines()
    assert len(lines) == 4  # three minutes, and the end
    assert lines[0].startswith("chain 1: sweep 300 of 1,000, 5 sweeps/s, 02:20 left, done about ")
    assert lines[0].endswith("; h2[y] 0.250")
    assert lines[3] == "chain 1: sweep 1,000 of 1,000, 5 sweeps/s; h2[y] 0.250"


def test_a_chain_that_goes_on_is_as_fast_as_it_is_now(clock):
    said = io.StringIO()
    with Console(stream=said).chains(SCHEDULE, LABELS, h2) as show:
        show(1, at(700, 0.25))
        clock[0] += 60
        show(1, at(760, 0.25))
    assert said.getvalue().startswith("chain 2: sweep 760 of 1,000, 1 sweeps/s, 04:00 left")


def test_bars_on_a_terminal_and_lines_in_the_log(clock, tmp_path):
    screen = Terminal()
    console = Console(stream=screen)
    console.say("before there is a folder")
    console.log = RunLog(tmp_path)
    console.log.begin(console.lines)
    with console.chains(SCHEDULE, LABELS, h2) as show:
        show(0, at(100, 0.25))
        show(1, at(500, 0.35))
        console.say("a word between")
        clock[0] += 61
        show(0, at(300, 0.26))
    console.log.close()
    shown = screen.getvalue()
    assert "chain 1:" in shown and "burn-in, h2[y] 0.250" in shown and "chain 2:" in shown and "h2[y] 0.260" in shown
    assert "sweep/s" in shown and "chain 2:  50%" in shown and "a word between\n" in shown
    log = (tmp_path / "run.log").read_text().splitlines()
    assert (
        "begun by process" in log[0]
        and log[1].endswith("  before there is a folder")
        and log[2].endswith("  a word between")
    )
    assert "  chain 1: sweep 300 of 1,000, 3 sweeps/s" in log[3] and len(log) == 4
    time.strptime(log[3][:19], "%Y-%m-%d %H:%M:%S")


def test_a_quiet_run_keeps_its_log(clock, tmp_path, capsys):
    console = Console(False)
    console.say("one")
    console.log = RunLog(tmp_path)
    console.log.begin(console.lines)
    with console.chains(SCHEDULE, LABELS, h2) as show:
        show(0, at(10, 0.25))
        clock[0] += 60
        show(0, at(20, 0.25))
    console.log.close()
    assert capsys.readouterr() == ("", "")
    assert [line[21:].split(":")[0] for line in (tmp_path / "run.log").read_text().splitlines()[1:]] == [
        "one",
        "chain 1",
    ]


def test_a_full_disk_silences_the_log_alone(tmp_path, monkeypatch):
    log = RunLog(tmp_path)

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(log, "_file", SimpleNamespace(write=full, close=log._file.close))
    log.write("not there")
    log.close()


def test_the_time_that_is_left(monkeypatch):
    monkeypatch.setattr(time, "time", lambda: 1_700_000_000.0)
    monkeypatch.setattr(time, "localtime", lambda s=1_700_000_000.0: time.gmtime(s))
    assert format_remaining_time(75) == "01:15 left, done about 22:14"
    assert format_remaining_time(3 * 86400 + 60) == "72:01:00 left, done about Fri 17 Nov 22:14"
    monkeypatch.setattr(time, "localtime", lambda s: time.gmtime(s + 7200))
    assert format_remaining_time(75).endswith("00:14")
    assert format_remaining_time(75, utc=True) == "01:15 left, done about 22:14 UTC"


def test_a_run_is_brief_unless_it_is_verbose(tmp_path):
    """Thirty lines of a hundred columns on data of three traits; all of it in the log, and by --verbose."""
    write_files(tmp_path)
    brief = command(tmp_path, "run", "analysis.yaml")
    lines = (brief.out + brief.err).splitlines()
    assert brief.code == 0 and len(lines) <= 30
    assert all(len(line) <= 100 for line in lines if not line.startswith(("warning", "written", "report")))
    log = (tmp_path / "run" / "run.log").read_text()
    notes = brief.record["notes"]
    assert notes and not any(note in brief.err for note in notes) and all(note in log for note in notes)
    assert "run.log, or --verbose" in brief.err and all(f"warning: {w}" in brief.err for w in brief.record["warnings"])
    verbose = command(tmp_path, "run", "analysis.yaml", "--verbose", "--overwrite")
    assert all(note in verbose.err for note in notes) and "reading: phenotypes" in verbose.err
    assert "run.log, or --verbose" not in verbose.err


def test_what_is_being_done_is_said_after_some_silence(clock):
    said = io.StringIO()
    console = Console(stream=said)
    console.tell("reading: phenotypes")
    clock[0] += 6
    console.tell("reading: pedigree")
    console.tell("reading: fixed effects")
    assert said.getvalue() == "reading: pedigree\n"
