"""The command line: what each command passes on, exit codes, where its words go, and one message for bad input."""

import errno
import inspect
import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import polars as pl
import pytest
from helpers.small_analysis import command, write_files
from helpers.support import ROOT

import mmgibbs
import mmgibbs.runs.run
from mmgibbs.cli import main
from mmgibbs.errors import DataError, DeviceError, as_a_command, is_command, option, option_name, submit_in_context
from mmgibbs.pedigree.errors import PedigreeError, TableError
from mmgibbs.runs.check_text import counts_as_text, notes_as_text

ANALYSIS = """\
data: {phenotypes: phenotypes.csv, pedigree: pedigree.csv}
traits: [y]
model: {random: {animal: {relationship: pedigree}}}
variances:  # three records: flat priors would leave no posterior
  animal: {start: 1, prior: {df: 4, scale: 4}}
  residual: {start: 2, prior: {df: 4, scale: 8}}
"""
PEDIGREE = "id,sire,dam\na,,\nb,,\nc,a,b\nd,a,b\n"
PHENOTYPES = "animal,y\na,1.5\nb,2.0\nc,NA\nd,4.0\n"


@pytest.fixture
def analysis(tmp_path):
    for name, text in (("analysis.yaml", ANALYSIS), ("pedigree.csv", PEDIGREE), ("phenotypes.csv", PHENOTYPES)):
        (tmp_path / name).write_text(text)
    return tmp_path / "analysis.yaml"


@pytest.fixture
def called(monkeypatch):
    """Calls of `mmgibbs.runs.run.run`, which then raises `called.raises` where it is set."""

    class Calls(list):
        raises, warnings = None, ()
        diagnostics = {"rhat": 1.05, "ess_bulk": 101.0, "ess_tail": 100.0}
        summary = pl.DataFrame({"parameter": ["h2[y]"], "mean": 0.3, "sd": 0.1} | diagnostics)

        def __call__(self, *positional, **keywords):
            self.append((positional, keywords))
            if self.raises is not None:
                raise self.raises
            return SimpleNamespace(directory="runs/a", summary=self.summary, info={"warnings": self.warnings})

    calls = Calls()
    calls.__signature__ = inspect.signature(mmgibbs.runs.run.run)
    monkeypatch.setattr(mmgibbs.runs.run, "run", calls)
    return calls


def test_run_passes_on_what_it_was_told(called, capsys):
    line = "run a.yaml --set sampler.thin=5 --set name=x --overwrite --quiet --cluster local:2 --output"
    assert main([*line.split(), "runs/a: b #1"]) == 0
    overrides = ["sampler.thin=5", "name=x", 'output.directory="runs/a: b #1"']
    options = {"overwrite": True, "resume": False, "extend": 0, "cluster": "local:2", "report": True}
    options |= {"progress": False, "verbose": False}
    assert called == [(("a.yaml",), {"overrides": overrides, **options})]
    assert capsys.readouterr() == ("", "")


def test_a_quiet_run_says_its_warnings(called, capsys):
    """The thresholds of the report; what is met is not said."""
    h2 = called.summary.with_columns(rhat=pl.lit(1.68), ess_bulk=pl.lit(12.0))
    called.summary = pl.concat([called.summary, h2.with_columns(parameter=pl.lit("h2[z]"))])
    called.warnings = ["sampler.stop.rhat: missed"]
    assert main(["run", "a.yaml", "--quiet"]) == 0
    assert capsys.readouterr().err.splitlines() == [
        "warning: Chains have not mixed: R-hat is above 1.05 for 1 of 2 parameters; the worst is h2[z] with 1.680.",
        "warning: Few effective draws: The effective sample size, the smaller of bulk and tail, is below 100 for 1 of "
        "2 parameters; the smallest is 12, of h2[z].",
        "warning: sampler.stop.rhat: missed",
    ]


def test_run_without_options(called):
    assert main(["run", "a.yaml"]) == 0
    options = {"overwrite": False, "resume": False, "extend": 0, "progress": True, "verbose": False, "report": True}
    assert called == [(("a.yaml",), {"overrides": [], **options})]


@pytest.mark.parametrize("directory", ["runs/a: b #1", "a, [b] é\U0001f404", "null", "12", "'quoted'"])
def test_the_output_directory_may_have_any_name(directory, analysis, monkeypatch):
    seen = []
    keep = lambda file, overrides, **_: seen.append(mmgibbs.load_config(file, overrides))
    monkeypatch.setattr(mmgibbs.runs.run, "run", keep)
    assert main(["run", str(analysis), "--output", directory, "--no-report"]) == 0
    assert str(seen[0].output.directory).endswith(f"/{directory}")


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (DataError("phenotypes.csv row 3: bad"), 2, "phenotypes.csv row 3: bad\n"),
        (DeviceError("no GPU"), 2, "no GPU\n"),
        (PedigreeError("loop"), 2, "loop\n"),
        (TableError("empty"), 2, "empty\n"),
        (PermissionError(errno.EACCES, "Permission denied", "runs/x"), 2, "runs/x: Permission denied\n"),
        (OSError(errno.ENOSPC, "No space left on device"), 2, "output: No space left on device\n"),
        (MemoryError("Unable to allocate 3 TiB"), 2, "not enough memory: Unable to allocate 3 TiB\n"),
        (KeyboardInterrupt(), 130, "\nstopped\n"),
    ],
)
def test_what_is_no_bug_is_one_message(called, capsys, error, code, message):
    called.raises = error
    assert main(["run", "a.yaml"]) == code
    assert capsys.readouterr() == ("", message)


@pytest.mark.parametrize("error", [ZeroDivisionError("x"), OSError("odd"), ValueError("shapes")])
def test_a_bug_shows_its_traceback_and_code_1(called, capsys, error):
    called.raises = error
    assert main(["run", "a.yaml"]) == 1
    shown = capsys.readouterr().err
    assert "Traceback" in shown and "This is a bug in mmgibbs" in shown and "Please report it" in shown


def test_a_missing_file_and_a_misspelt_key(analysis, capsys):
    assert main(["check", "none.yaml"]) == 2
    assert capsys.readouterr().err == "none.yaml: no such file\n"
    assert main(["check", str(analysis), "--set", "sampler.thn=3"]) == 2
    assert capsys.readouterr().err == "override 'sampler.thn=3': sampler.thn: unknown key; did you mean 'thin'?\n"


def test_check_counts(analysis, capsys):
    assert main(["check", str(analysis)]) == 0
    out, err = capsys.readouterr()
    assert "4 records read, 3 used, 1 left out (no observed trait)" in out
    assert "3 observations of y" in out and "4 animals in the pedigree" in out and "5 equations" in out
    table = [line.split() for line in out.splitlines() if line.startswith(("effect ", "equal ", "colour "))]
    assert [row[0] for row in table] == ["effect", "equal", "colour"]
    assert all(int(inside) + int(outside) == int(total) for *_, total, inside, outside in table)
    assert err and all(line.startswith("note: ") for line in err.splitlines())
    assert not (analysis.parent / "runs").exists()


def test_counts_that_were_not_made():
    records = {"read": 5_000_000, "used": 5_000_000, "left_out": {"no observed trait": 0}}
    data = {"records": records, "observations": {"y": 5_000_000}}
    terms = [{"term": "a", "kind": "fixed", "levels": 3, "equations": 3, "colours": 1}]
    uncounted = dict.fromkeys(("nonzeros", "inside_diagonal_blocks", "outside_diagonal_blocks"))
    partitions = {"colour": {"blocks": 4, "largest_block": 2} | uncounted}
    counts = {
        "analysis": "x", "data": data, "terms": terms, "equations": 3, "bytes": 2_500_000, "partitions": partitions,
        "common_levels": [], "markers": [], "notes": ["n"], "warnings": ["w"],
    }  # fmt: skip
    text = counts_as_text(counts).splitlines()
    assert text[2] == "5,000,000 records read, 5,000,000 used"
    assert notes_as_text(counts) == ["note: n", "warning: w"]
    assert text[-4:] == [
        "partition  blocks  rows of the largest     nonzeros  inside diagonal blocks      outside",
        "colour          4                    2  not counted             not counted  not counted",
        "",
        "3 equations in 2.5 MB",
    ]


def test_help_and_version(capsys):
    assert main(["--help"]) == 0
    assert "mmgibbs run data/beef/analysis.yaml" in capsys.readouterr().out
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"mmgibbs {mmgibbs.__version__}\n"


@pytest.mark.parametrize("arguments", [[], ["frobnicate"], ["run"], ["simulate"]])
def test_a_wrong_command_line_is_code_2(arguments, capsys, called):
    assert main(arguments) == 2
    assert "usage: mmgibbs" in capsys.readouterr().err and not called


@pytest.mark.parametrize("arguments", [["check", "a", "--overwrite"], ["check", "a", "b"], ["run", "a", "--over"]])
def test_an_unknown_option_shows_the_options_of_its_command(arguments, capsys):
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"usage: mmgibbs {arguments[0]} ") and "--set" in said
    assert said.endswith(f"error: unrecognized arguments: {arguments[-1]}\n")


SETTING = ("run", "check", "validate")
THIN, CHAINS = "sampler.thin=2", "sampler.chains=2"
EACH = "needed one --set for each key: --set"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["check", "a.yaml", "--set", THIN, CHAINS], f"unrecognized arguments: {CHAINS}; {EACH} {CHAINS}"),
        *(([name, "--set", THIN, CHAINS, "name=b", "a.yaml"], f"{EACH} {CHAINS} --set name=b\n") for name in SETTING),
        (["run", "--set", THIN, "model.random.dam herd.level=herd", "a.yaml"], f"{EACH} 'model.random.dam herd.level="),
        (["run", "--set", THIN, "h2=0.3/a.yaml"], "h2=0.3/a.yaml: no such file"),  # no key
        (["check", "--set", THIN, "a.yaml", CHAINS, "--bogus"], f"arguments: {CHAINS} --bogus; {EACH} {CHAINS}"),
        (["check", "--set", THIN, "a=b.yaml"], "a=b.yaml: is empty"),
    ],
)
def test_several_keys_behind_one_set(arguments, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a=b.yaml").write_text("")
    assert main(arguments) == 2
    assert said in capsys.readouterr().err


COMMANDS = "run check report predict simulate bench validate export import-blupf90 schema init compare open".split()


@pytest.mark.parametrize("command", COMMANDS)
def test_help_is_not_wider_than_a_screen_and_ends_with_an_example(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    assert main([command, "--help"]) == 0
    out = capsys.readouterr().out
    assert max(len(line) for line in out.splitlines()) <= 100
    assert f"mmgibbs {command} " in out.split("example:")[-1]


@pytest.mark.parametrize("top", ["0", "-5"])
def test_a_report_lists_at_least_one_animal(top, tmp_path, capsys):
    assert main(["report", str(tmp_path), "--top", top]) == 2
    assert f"argument --top: expected a whole number of 1 or more, got '{top}'" in capsys.readouterr().err


def test_a_closed_pipe_is_no_bug(analysis):
    command = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from mmgibbs.cli import main; "
    command += "sys.exit(main(['check', 'analysis.yaml']))"
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen([sys.executable, "-c", command], cwd=analysis.parent, **pipes)
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 141


SHELL = pytest.mark.skipif(os.name != "posix", reason="closes streams by a shell")


def in_a_shell(analysis, line, **environment):
    """The exit code of a command line in which {mmgibbs} stands for the program."""
    program = f"'{sys.executable}' -m mmgibbs"
    environment = os.environ | {"PYTHONPATH": str(ROOT)} | environment
    return subprocess.run(
        ["sh", "-c", line.format(mmgibbs=program)], cwd=analysis.parent, env=environment, capture_output=True,
        text=True, timeout=300, check=False,
    )  # fmt: skip


@pytest.mark.slow
@SHELL
def test_streams_that_are_closed_change_nothing(analysis):
    """As some services start programs: nothing is said, and nothing goes wrong."""
    shut = "0>&- 1>&- 2>&-"
    short = "--no-report --set sampler.chains=2 --set sampler.samples=20 --set sampler.burn_in=10"
    assert in_a_shell(analysis, f"{{mmgibbs}} run analysis.yaml {short} --output run {shut}").returncode == 0
    assert json.loads((analysis.parent / "run" / "run.json").read_text())["seed"] is not None
    assert in_a_shell(analysis, f"{{mmgibbs}} check analysis.yaml {shut}").returncode == 0
    assert in_a_shell(analysis, f"{{mmgibbs}} check none.yaml {shut}").returncode == 2


@SHELL
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is full")
@pytest.mark.slow
def test_a_full_disk_behind_stderr_ends_no_run(analysis):
    short = "--no-report --set sampler.chains=1 --set sampler.samples=20 --set sampler.burn_in=10"
    assert in_a_shell(analysis, f"{{mmgibbs}} run analysis.yaml {short} --output run 2>/dev/full").returncode == 0
    assert (analysis.parent / "run" / "run.json").exists()
    assert in_a_shell(analysis, "{mmgibbs} check none.yaml 2>/dev/full").returncode == 2
    said = in_a_shell(analysis, "{mmgibbs} check analysis.yaml >/dev/full")
    assert said.returncode == 2 and said.stderr == "output: No space left on device\n"


@SHELL
@pytest.mark.slow
def test_without_docstrings_a_run_is_refused_before_it_begins(analysis):
    said = in_a_shell(analysis, "{mmgibbs} run analysis.yaml", PYTHONOPTIMIZE="2")
    assert said.returncode == 2 and said.stderr.count("\n") == 1 and "PYTHONOPTIMIZE=1 is fine" in said.stderr
    assert not (analysis.parent / "runs").exists()
    assert in_a_shell(analysis, "{mmgibbs} check analysis.yaml", PYTHONOPTIMIZE="2").returncode == 0
    short = "--no-report --set sampler.chains=1 --set sampler.samples=20 --set sampler.burn_in=10"
    assert in_a_shell(analysis, f"{{mmgibbs}} run analysis.yaml {short}", PYTHONOPTIMIZE="1").returncode == 0


def modules_read(code):
    """What a process has read of some libraries."""
    libraries = "{'numba', 'polars', 'numpy', 'matplotlib', 'jinja2'}"
    command = f"import sys; sys.path.insert(0, {str(ROOT)!r}); {code}; print(sorted({libraries} & set(sys.modules)))"
    shown = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True).stdout
    return shown.splitlines()[-1]


@pytest.mark.parametrize("arguments", [["--help"], ["validate", "--help"], ["compare", "--help"], ["report", "--help"]])
def test_help_does_not_load_the_solver(arguments):
    assert modules_read(f"from mmgibbs.cli import main; main({arguments})") == "[]"


def test_what_a_validation_says_needs_no_figures():
    """matplotlib is imported for a page, not for the words on it, nor for a validation without one."""
    names = "mmgibbs.validation.words, mmgibbs.validation.run, mmgibbs.report.comparison.make"
    assert "matplotlib" not in modules_read(f"import {names}")


@pytest.mark.parametrize(
    ("name", "value", "python", "command"),
    [
        ("resume", True, "resume=True", "--resume"),
        ("extend", "SWEEPS", "extend=SWEEPS", "--extend SWEEPS"),
        ("folds", 3, "folds=3", "--folds 3"),
        ("by", "time", "by='time'", "--by time"),
        ("qtl_share", 0.5, "qtl_share=0.5", "--qtl-share 0.5"),
    ],
)
def test_options_of_python_and_of_a_command(name, value, python, command):
    assert option(name, value) == python and option_name(name) == name
    with as_a_command():
        assert option(name, value) == command and option_name(name) == command.split()[0]
    assert option(name, value) == python


def test_words_are_restored(tmp_path):
    assert not is_command()
    with as_a_command():
        assert main(["check", str(tmp_path / "none.yaml")]) == 2
        assert is_command()
    assert main(["--version"]) == 0 and not is_command()
    with pytest.raises(ZeroDivisionError), as_a_command():
        raise ZeroDivisionError
    assert not is_command()


def test_a_command_in_one_thread_leaves_the_words_of_another():
    """A program may call `main` beside functions of Python."""
    inside, outside, words = threading.Event(), threading.Event(), {}

    def command():
        with as_a_command():
            inside.set()
            outside.wait(10)
            words["command"] = option("resume")
            with ThreadPoolExecutor(1) as pool:
                words["its thread"] = submit_in_context(pool, option, "resume").result()
                words["a thread alone"] = pool.submit(option, "resume").result()

    thread = threading.Thread(target=command)
    thread.start()
    inside.wait(10)
    words["python"] = option("resume")
    outside.set()
    thread.join()
    command, python = "--resume", "resume=True"
    assert words == {"command": command, "its thread": command, "a thread alone": python, "python": python}


WORDS = {
    "run": ["run", "analysis.yaml", "--output", "new"],
    "check": ["check", "analysis.yaml"],
    "report": ["report", "run"],
    "compare": ["compare", "run", "run"],
    "pedigree": ["pedigree", "pedigree.csv", "--output", "described", "--no-report"],
    "export": ["export", "run", "--format", "blupf90"],
    "init": ["init", "phenotypes.csv", "--pedigree", "pedigree.csv", "--output", "drafted.yaml", "--no-check",
             "--formula", "birth_weight ~ sex + (1 | pedigree(animal))"],
    "simulate": ["simulate", "data", "--animals", "300"],
    "schema": ["schema", "--output", "s.json"],
}  # fmt: skip
RESULTS = {
    "run": "genetic.var[birth_weight]", "check": "equations", "compare": "correlation",
    "pedigree": "animals", "simulate": "animals in", "init": "written to drafted.yaml",
}  # fmt: skip
SAID_ALOUD = ("warning: ", "note: ")


@pytest.fixture(scope="module")
def streams(tmp_path_factory):
    streams = tmp_path_factory.mktemp("streams")
    write_files(streams)
    assert command(streams, "run", "analysis.yaml").code == 0
    return streams


@pytest.mark.parametrize("name", WORDS)
def test_results_are_on_stdout_and_the_rest_is_on_stderr(name, streams):
    outcome = command(streams, *WORDS[name])
    assert outcome.code == 0, outcome.err
    assert RESULTS.get(name, "written to") in outcome.out
    assert not [line for line in outcome.out.splitlines() if line.startswith(SAID_ALOUD)]
    assert "written to" not in outcome.err and RESULTS.get(name, "written to") not in outcome.err.splitlines()


def test_progress_and_messages_are_on_stderr(streams):
    outcome = command(streams, "run", "analysis.yaml", "--output", "again")
    assert outcome.err and "written to" in outcome.out and "records" not in outcome.out
    quiet = command(streams, "run", "analysis.yaml", "--quiet", "--output", "quiet")
    assert quiet.code == 0 and quiet.out == ""
    outcome = command(streams, "run", "none.yaml")
    assert outcome.code == 2 and outcome.out == "" and "none.yaml" in outcome.err
