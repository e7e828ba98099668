"""The command line: what each command passes on, exit codes, and one message without a traceback for bad input."""

import argparse
import errno
import json
import os
import subprocess
import sys
from types import SimpleNamespace

import polars as pl
import pytest
from helpers.support import ROOT

import mmgibbs
import mmgibbs.runs.run
from mmgibbs.bench.command import add_arguments as add_bench_arguments
from mmgibbs.cli import main
from mmgibbs.errors import DataError, DeviceError
from mmgibbs.runs.check_text import counts_as_text, notes_as_text
from pedigree.errors import PedigreeError, TableError

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
        summary = pl.DataFrame(
            {"parameter": ["h2[y]"], "mean": 0.3, "sd": 0.1, "rhat": 1.05, "ess_bulk": 101.0, "ess_tail": 100.0}
        )

        def __call__(self, *positional, **keywords):
            self.append((positional, keywords))
            if self.raises is not None:
                raise self.raises
            return SimpleNamespace(directory="runs/a", summary=self.summary, info={"warnings": self.warnings})

    calls = Calls()
    monkeypatch.setattr(mmgibbs.runs.run, "run", calls)
    return calls


def test_run_passes_on_what_it_was_told(called, capsys):
    assert (
        main(
            [
                "run",
                "a.yaml",
                "--set",
                "sampler.thin=5",
                "--set",
                "name=x",
                "--output",
                "runs/a: b #1",
                "--overwrite",
                "--quiet",
                "--cluster",
                "local:2",
            ]
        )
        == 0
    )
    overrides = ["sampler.thin=5", "name=x", 'output.directory="runs/a: b #1"']
    options = {"overwrite": True, "resume": False, "extend": 0, "cluster": "local:2", "progress": False, "report": True}
    assert called == [(("a.yaml", overrides), options)]
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
    options = {"overwrite": False, "resume": False, "extend": 0, "cluster": None, "progress": True, "report": True}
    assert called == [(("a.yaml", []), options)]


@pytest.mark.parametrize("directory", ["runs/a: b #1", "a, [b] é\U0001f404", "null", "12", "'quoted'"])
def test_the_output_directory_may_have_any_name(directory, analysis, monkeypatch):
    seen = []
    monkeypatch.setattr(
        mmgibbs.runs.run, "run", lambda file, overrides, **_: seen.append(mmgibbs.load_config(file, overrides))
    )
    assert main(["run", str(analysis), "--output", directory, "--no-report"]) == 0
    assert str(seen[0].output.directory).endswith(f"/{directory}")


@pytest.mark.parametrize(
    "error", [DataError("phenotypes.csv row 3: bad"), DeviceError("no GPU"), PedigreeError("loop"), TableError("empty")]
)
def test_bad_input_is_one_message_and_code_2(called, capsys, error):
    called.raises = error
    assert main(["run", "a.yaml"]) == 2
    assert capsys.readouterr() == ("", f"{error}\n")


@pytest.mark.parametrize(
    "error, message",
    [
        (PermissionError(errno.EACCES, "Permission denied", "runs/x"), "runs/x: Permission denied\n"),
        (OSError(errno.ENOSPC, "No space left on device"), "output: No space left on device\n"),
        (MemoryError("Unable to allocate 3 TiB"), "not enough memory: Unable to allocate 3 TiB\n"),
    ],
)
def test_what_the_machine_refuses_is_no_bug(called, capsys, error, message):
    called.raises = error
    assert main(["run", "a.yaml"]) == 2
    assert capsys.readouterr().err == message


@pytest.mark.parametrize("error", [ZeroDivisionError("x"), OSError("odd"), ValueError("shapes")])
def test_a_bug_shows_its_traceback_and_code_1(called, capsys, error):
    called.raises = error
    assert main(["run", "a.yaml"]) == 1
    shown = capsys.readouterr().err
    assert "Traceback" in shown and "This is a bug in mmgibbs" in shown and "Please report it" in shown


def test_ctrl_c(called, capsys):
    called.raises = KeyboardInterrupt()
    assert main(["run", "a.yaml"]) == 130
    assert capsys.readouterr().err == "\nstopped\n"


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


def test_check_names_the_row(analysis, capsys):
    (analysis.parent / "pedigree.csv").write_text(PEDIGREE + "e,e,b\n")
    assert main(["check", str(analysis)]) == 2
    err = capsys.readouterr().err
    assert err.startswith("pedigree.csv row 6: ") and "Traceback" not in err


def test_counts_that_were_not_made():
    data = {
        "records": {"read": 5_000_000, "used": 5_000_000, "left_out": {"no observed trait": 0}},
        "observations": {"y": 5_000_000},
    }
    terms = [{"term": "a", "kind": "fixed", "levels": 3, "equations": 3, "colours": 1}]
    uncounted = dict.fromkeys(("nonzeros", "inside_diagonal_blocks", "outside_diagonal_blocks"))
    partitions = {"colour": {"blocks": 4, "largest_block": 2} | uncounted}
    counts = dict(
        analysis="x",
        data=data,
        terms=terms,
        equations=3,
        bytes=2_500_000,
        partitions=partitions,
        common_levels=[],
        markers=[],
        notes=["n"],
        warnings=["w"],
    )
    text = counts_as_text(counts).splitlines()
    assert text[2] == "5,000,000 records read, 5,000,000 used"
    assert notes_as_text(counts) == ["note: n", "warning: w"]
    assert text[-4:] == [
        "partition  blocks  rows of the largest     nonzeros  inside diagonal blocks      outside",
        "colour          4                    2  not counted             not counted  not counted",
        "",
        "3 equations in 2.5 MB",
    ]


@pytest.mark.parametrize("command", ["run", "check", "simulate", "bench"])
def test_every_command_has_help_with_an_example(command, capsys):
    assert main([command, "--help"]) == 0
    assert f"mmgibbs {command} " in capsys.readouterr().out.split("example:")[1]


def test_help_and_version(capsys):
    assert main(["--help"]) == 0
    assert "mmgibbs run data/beef/analysis.yaml" in capsys.readouterr().out
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"mmgibbs {mmgibbs.__version__}\n"


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["frobnicate"],
        ["run"],
        ["check", "a", "b"],
        ["run", "a", "--over"],
        ["check", "a", "--overwrite"],
        ["simulate"],
    ],
)
def test_a_wrong_command_line_is_code_2(arguments, capsys, called):
    assert main(arguments) == 2
    assert "usage: mmgibbs" in capsys.readouterr().err and not called


@pytest.mark.parametrize("arguments", [["check", "a", "--overwrite"], ["check", "a", "b"], ["run", "a", "--over"]])
def test_an_unknown_option_shows_the_options_of_its_command(arguments, capsys):
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"usage: mmgibbs {arguments[0]} ") and "--set" in said
    assert said.endswith(f"error: unrecognized arguments: {arguments[-1]}\n")


def test_two_keys_behind_one_set(capsys):
    arguments = ["check", "analysis.yaml", "--set", "sampler.thin=2", "sampler.chains=2"]
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert "unrecognized arguments: sampler.chains=2; needed one --set for each key: --set sampler.chains=2" in said


@pytest.mark.parametrize("name", ["run", "check", "validate"])
def test_two_keys_behind_one_set_before_the_file(name, capsys):
    assert main([name, "--set", "sampler.thin=2", "sampler.chains=2", "name=b", "analysis.yaml"]) == 2
    said = capsys.readouterr().err
    needed = "needed one --set for each key: --set sampler.chains=2 --set name=b"
    assert said.endswith(f"error: unrecognized arguments: sampler.chains=2 name=b; {needed}\n")


def test_a_key_with_the_name_of_an_effect_behind_one_set(capsys):
    assert main(["run", "--set", "sampler.thin=2", "model.random.dam herd.level=herd", "analysis.yaml"]) == 2
    assert "one --set for each key: --set 'model.random.dam herd.level=herd'" in capsys.readouterr().err


def test_a_file_that_is_missing_in_a_folder_with_an_equals_sign_is_no_key(capsys):
    assert main(["run", "--set", "sampler.thin=2", "h2=0.3/analysis.yaml"]) == 2
    assert capsys.readouterr().err.startswith("h2=0.3/analysis.yaml: no such file")


def test_a_key_behind_the_file_and_an_unknown_option(capsys):
    assert main(["check", "--set", "sampler.thin=2", "analysis.yaml", "sampler.chains=2", "--bogus"]) == 2
    said = capsys.readouterr().err
    assert "unrecognized arguments: sampler.chains=2 --bogus; needed one --set for each key: --set sampler.ch" in said


def test_a_file_with_an_equals_sign_is_no_key(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a=b.yaml").write_text("")
    main(["check", "--set", "sampler.thin=2", "a=b.yaml"])
    assert capsys.readouterr().err.startswith("a=b.yaml: is empty")


COMMANDS = "run check report predict simulate bench validate export import-blupf90 schema init compare".split()


@pytest.mark.parametrize("command", COMMANDS)
def test_help_is_not_wider_than_a_screen(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    assert main([command, "--help"]) == 0
    assert max(len(line) for line in capsys.readouterr().out.splitlines()) <= 100


def test_every_option_of_bench_has_a_help_text():
    parser = argparse.ArgumentParser()
    add_bench_arguments(parser)
    (kinds,) = parser._subparsers._group_actions
    assert [a.dest for kind in kinds.choices.values() for a in kind._actions if not a.help] == []


@pytest.mark.parametrize("top", ["0", "-5"])
def test_a_report_lists_at_least_one_animal(top, tmp_path, capsys):
    assert main(["report", str(tmp_path), "--top", top]) == 2
    assert f"argument --top: expected a whole number of 1 or more, got '{top}'" in capsys.readouterr().err


def test_simulate_writes_an_analysis_that_is_accepted(tmp_path, capsys):
    assert main(["simulate", str(tmp_path / "beef"), "--animals", "400"]) == 0
    assert "next: mmgibbs run" in capsys.readouterr().out
    mmgibbs.load_config(tmp_path / "beef" / "analysis.yaml")
    assert main(["simulate", str(tmp_path / "beef"), "--animals", "400"]) == 2


def test_a_closed_pipe_is_no_bug(analysis):
    command = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from mmgibbs.cli import main; "
    command += "sys.exit(main(['check', 'analysis.yaml']))"
    process = subprocess.Popen(
        [sys.executable, "-c", command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=analysis.parent
    )
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
@pytest.mark.parametrize("closed", ["0 1 2", "1", "2"])
def test_streams_that_are_closed_change_nothing(analysis, closed):
    """As some services start programs: nothing is said, and nothing goes wrong."""
    shut = " ".join(f"{n}>&-" for n in closed.split())
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


@pytest.mark.parametrize("arguments", [["--help"], ["validate", "--help"], ["compare", "--help"], ["report", "--help"]])
def test_help_does_not_load_the_solver(arguments):
    command = f"import sys; sys.path.insert(0, {str(ROOT)!r}); "
    command += (
        f"from mmgibbs.cli import main; main({arguments}); "
        "print(sorted({'numba', 'polars', 'numpy', 'matplotlib', 'jinja2'} & set(sys.modules)))"
    )
    shown = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True).stdout
    assert shown.endswith("[]\n")


def test_what_a_validation_says_needs_no_figures():
    """matplotlib is imported for a page, not for the words on it, nor for a validation without one."""
    command = f"import sys; sys.path.insert(0, {str(ROOT)!r}); "
    command += "import mmgibbs.validation.words, mmgibbs.validation.run, mmgibbs.comparison.make; "
    command += "print('matplotlib' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True).stdout
    assert shown == "False\n"
