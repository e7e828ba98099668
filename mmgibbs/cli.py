"""The command line: `mmgibbs run | check | report | simulate | bench | validate | export | import-blupf90`.

Exit code 0: done. 2: the input cannot be used, one message on stderr. 1: a bug, with its traceback. 130: Ctrl-C.
143: SIGTERM. A run that was sampling then has kept its state.
"""

from __future__ import annotations

import argparse
import errno
import json
import os
import shlex
import sys
import textwrap
import traceback
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

import mmgibbs
from mmgibbs.errors import Stopped
from mmgibbs.machine.signals import end_like_ctrl_c
from pedigree.errors import PedigreeError, TableError

if TYPE_CHECKING:
    from mmgibbs.runs.run import Result
    from mmgibbs.runs.several import Scenario

DONE, BUG, BAD_INPUT, STOPPED, PIPE_CLOSED = 0, 1, 2, 130, 141
WIDTH = 100  # columns of what argparse does not wrap
# The machine's refusals that are no mistakes of this program: no permission, no room.
_REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))
_IN_THEIR_MODULES = {
    "report": (
        "write the report page of a finished run, or compare several",
        "mmgibbs report runs/beef runs/beef-ignored --output comparison.html",
    ),
    "simulate": (
        "write a simulated beef population with known true values",
        "mmgibbs simulate data/beef --animals 5000 --seed 1",
    ),
    "bench": (
        "measure sweeps per second and memory on this machine",
        "mmgibbs bench evaluation configs/beef.yaml --sweeps 1000",
    ),
    "validate": (
        "validate an evaluation by cross-validation and by whole against partial data (LR method)",
        "mmgibbs validate configs/blup.yaml --by family",
    ),
    "export": (
        "write a finished run as the files of another program",
        "mmgibbs export --format blupf90 runs/beef",
    ),
    "import-blupf90": (
        "turn a parameter file of renumf90 into an analysis file, and say what could not be carried over",
        "mmgibbs import-blupf90 renum.par --output analysis.yaml",
    ),
}
_MODULES = {  # of the others: their name
    "export": "exchange.export",
    "import-blupf90": "exchange.import_blupf90",
    "simulate": "simulation.simulate",
    "validate": "validation",
}
_DESCRIPTION = """\
Breeding values with their reliability, and variance components with their uncertainty,
from pedigree and phenotype tables."""
_EXAMPLES = """\
examples:
  mmgibbs simulate data/beef                   write example data and their analysis file
  mmgibbs check data/beef/analysis.yaml        read and check everything, count, stop
  mmgibbs run data/beef/analysis.yaml          sample, and write the run folder
  mmgibbs COMMAND --help                       all options of a command
"""


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        code = _dispatch(arguments)
        sys.stdout.flush()
        return code
    except (mmgibbs.MmgibbsError, PedigreeError, TableError) as error:
        return _refuse(str(error))
    except Stopped as stopped:
        print(f"\n{stopped}", file=sys.stderr)
        if stopped.kept:
            print(f"go on with: mmgibbs {shlex.join(resuming(arguments))}", file=sys.stderr)
        return 128 + stopped.signal
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
        return STOPPED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or closing stdout complains once more
        return PIPE_CLOSED
    except MemoryError as error:
        return _refuse(f"not enough memory: {error}")
    except Exception as error:  # noqa: BLE001  the last resort: whatever else comes here is a bug
        if isinstance(error, OSError) and error.errno in _REFUSED:
            return _refuse(f"{error.filename or 'output'}: {error.strerror}")
        traceback.print_exc()
        print(
            f"\nThis is a bug in mmgibbs {mmgibbs.__version__}. "
            "Please report it with the lines above and your analysis file.",
            file=sys.stderr,
        )
        return BUG


def _dispatch(arguments: list[str]) -> int:
    try:
        args, unknown = _parser(arguments).parse_known_args(arguments)
        if unknown:  # told by the command itself, with its own options
            args.parser.error(f"unrecognized arguments: {shlex.join(unknown)}")
    except SystemExit as told:  # argparse has spoken: help and version 0, a wrong command line 2
        return told.code if isinstance(told.code, int) else DONE
    return args.command(args) or DONE


def _refuse(message: str) -> int:
    print(message, file=sys.stderr)
    return BAD_INPUT


def _parser(arguments: list[str]) -> argparse.ArgumentParser:
    layout: dict[str, Any] = {"formatter_class": argparse.RawDescriptionHelpFormatter, "allow_abbrev": False}
    parser = argparse.ArgumentParser("mmgibbs", description=_DESCRIPTION, epilog=_EXAMPLES, **layout)
    parser.add_argument("--version", action="version", version=f"mmgibbs {mmgibbs.__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def add(
        name: str, what: str, example: str, command: Callable[[argparse.Namespace], int | None] | None
    ) -> argparse.ArgumentParser:
        description = textwrap.fill(f"{what[0].upper()}{what[1:]}.", WIDTH)
        added = commands.add_parser(name, help=what, description=description, epilog=f"example:\n  {example}", **layout)
        added.set_defaults(command=command, parser=added)
        return added

    run = add(
        "run",
        "run an analysis, or several, and write a run folder for each",
        "mmgibbs run analysis.yaml --set sampler.samples=2000 --overwrite\n"
        "  mmgibbs run analysis.yaml --resume\n"
        "  mmgibbs run analysis.yaml --set 'sampler.stop={rhat: 1.01, ess: 400, mcse_ebv: 0.05}'\n"
        "      stops once R-hat and effective sample sizes of all variances are good enough, and the\n"
        "      Monte Carlo error of every breeding value is at most 0.05 of its posterior standard deviation\n"
        "  mmgibbs run ignore.yaml account.yaml --output runs/inbreeding --cluster tcp://10.0.0.5:8786\n"
        "      two analyses at once on the workers of a cluster, into runs/inbreeding/ignore and .../account",
        _run,
    )
    check = add(
        "check",
        "read and check an analysis and its data, count what a run would hold, then stop",
        "mmgibbs check analysis.yaml",
        _check,
    )
    several = "the analysis file (YAML); of several, each is run, one that fails does not end the others"
    run.add_argument("files", metavar="FILE", nargs="+", help=several)
    check.add_argument("file", metavar="FILE", help="the analysis file (YAML)")
    for command in (run, check):
        command.add_argument(
            "--set",
            action="append",
            default=[],
            metavar="KEY=VALUE",
            help="put VALUE in place of what the file says, e.g. --set sampler.thin=5; may be repeated",
        )
    run.add_argument(
        "--output",
        metavar="DIR",
        help="the run folder, in place of output.directory; for several analyses the folder of their run folders, "
        "which are named after the files",
    )
    there = run.add_mutually_exclusive_group()
    there.add_argument("--overwrite", action="store_true", help="replace a run folder that is there already")
    there.add_argument(
        "--resume",
        action="store_true",
        help="go on from the checkpoints of a run that was stopped or killed, to the same draws as a run in one go; "
        "starts anew where there is none, and does nothing where the run is finished",
    )
    there.add_argument(
        "--extend", type=_sweeps, default=0, metavar="SWEEPS", help="add so many sweeps to each chain of a finished run"
    )
    run.add_argument(
        "--cluster",
        metavar="ADDRESS",
        help="run the chains on the workers of a Dask scheduler, tcp://HOST:PORT, or on N workers of this machine, "
        "local:N, to the same draws; several analyses run at once; a chain whose worker is lost goes on from its "
        "checkpoint",
    )
    run.add_argument("--quiet", action="store_true", help="say nothing but warnings and errors")
    run.add_argument(
        "--no-report", action="store_true", help="leave out report.html (mmgibbs report RUN makes it later)"
    )

    chosen = next((a for a in arguments if not a.startswith("-")), None)
    for name, (what, example) in _IN_THEIR_MODULES.items():
        command = add(name, what, example, None)
        if name == chosen:  # the others need not be imported
            module = import_module(f"mmgibbs.{_MODULES.get(name, name)}")
            module.add_arguments(command)
            command.set_defaults(command=module.main)
    return parser


def resuming(arguments: list[str]) -> list[str]:
    """The command line that goes on with the run of this one."""
    kept, rest = [], iter(arguments)
    for argument in rest:
        if argument == "--extend":
            next(rest)
        elif argument not in ("--overwrite", "--resume") and not argument.startswith("--extend="):
            kept.append(argument)
    return [*kept, "--resume"]


def _sweeps(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"found {text!r}, needed a whole number of sweeps of at least 1")
    return int(text)


def _run(args: argparse.Namespace) -> int:
    how = {
        "overwrite": args.overwrite,
        "resume": args.resume,
        "extend": args.extend,
        "cluster": args.cluster,
        "progress": not args.quiet,
    }
    if len(args.files) > 1:
        return _run_several(args, how)
    from mmgibbs.runs.run import run

    # in quotation marks, or a folder's name could be taken for something else that YAML knows
    output = [] if args.output is None else [f"output.directory={json.dumps(args.output, ensure_ascii=False)}"]
    with end_like_ctrl_c():
        result = run(args.files[0], [*args.set, *output], **how)
    _warn(args, result)
    _report(args, result)
    return DONE


def _run_several(args: argparse.Namespace, how: dict) -> int:
    """BAD_INPUT where one of them could not be run."""
    from mmgibbs.runs.several import run_scenarios

    def done(scenario: Scenario) -> None:
        if scenario.error is not None:
            print(f"{scenario.name}: {scenario.error}", file=sys.stderr)
        elif scenario.result is not None:
            _warn(args, scenario.result, f"{scenario.name}: ")
            _report(args, scenario.result)

    with end_like_ctrl_c():
        found = run_scenarios(args.files, args.set, output=args.output, done=done, **how)
    good = [str(s.result.directory) for s in found if s.result is not None]
    if not args.quiet:
        print(f"{len(good)} of {len(found)} analyses done", file=sys.stderr)
        if len(good) > 1:
            print(f"compare them with: mmgibbs report {shlex.join(good)}", file=sys.stderr)
    return DONE if len(good) == len(found) else BAD_INPUT


def _warn(args: argparse.Namespace, result: Result, name: str = "") -> None:
    """What a quiet run has to say all the same; the others have said it."""
    if args.quiet:
        from mmgibbs.report.findings import said_at_the_end

        for warning in said_at_the_end(result.summary, result.info):
            print(f"{name}{warning}", file=sys.stderr)


def _report(args: argparse.Namespace, result: Result) -> None:
    if not args.no_report:
        from mmgibbs.report.make import report_after_run

        report_after_run(result.directory, lambda text: None if args.quiet else print(text, file=sys.stderr))


def _check(args: argparse.Namespace) -> None:
    from mmgibbs.runs.run import check

    print(counts_as_text(check(args.file, args.set)))


# ------------------------------------------------------------------------------------------------ what check prints


def counts_as_text(counts: dict) -> str:
    """The counts of `mmgibbs.check` for people to read."""
    if "plugin" in counts:
        return _regression_as_text(counts)
    data = counts["data"]
    records = data["records"]
    left_out = [f"{n:,} left out ({reason})" for reason, n in records["left_out"].items() if n]
    lines = [
        f"analysis {counts['analysis']}",
        "",
        ", ".join([f"{records['read']:,} records read", f"{records['used']:,} used", *left_out]),
    ]
    lines += [f"{n:,} observations of {trait}" for trait, n in data["observations"].items()]
    if "residual_classes" in data:
        of_class = ", ".join(f"{n:,} of {name}" for name, n in data["residual_classes"].items())
        lines.append(f"records by residual class: {of_class}")
    if "animals" in data:
        lines.append(f"{data['animals']:,} animals in the pedigree")
    rows = [(t["term"], t["kind"], t["levels"], t["equations"], t["colours"]) for t in counts["terms"]]
    lines += ["", *_table(("term", "kind", "levels", "equations", "colours"), rows)]
    rows = [(name, *p.values()) for name, p in counts["partitions"].items()]
    head = ("partition", "blocks", "rows of the largest", "nonzeros", "inside diagonal blocks", "outside")
    lines += ["", *_table(head, rows)]
    lines += ["", f"{counts['equations']:,} equations in {counts['bytes'] / 1e6:,.1f} MB"]
    lines += [f"note: {note}" for note in counts["notes"]] + [f"warning: {warning}" for warning in counts["warnings"]]
    return "\n".join(lines)


def _regression_as_text(counts: dict) -> str:
    data = counts["data"]
    records = data["records"]
    left_out = [f"{n:,} left out ({reason})" for reason, n in records["left_out"].items() if n]
    size = {name: " x ".join(str(n) for n in shape) or "1" for name, shape in counts["parameters"].items()}
    lines = [
        f"analysis {counts['analysis']}, regression {counts['plugin']}",
        "",
        ", ".join([f"{records['read']:,} records read", f"{records['used']:,} used", *left_out]),
        f"{data['predictors']:,} predictors as {counts['predictor_type']}, {counts['bytes'] / 1e6:,.1f} MB",
        "",
        *_table(("parameter", "size"), list(size.items())),
        "",
        *_table(("option", "value"), [(name, str(value)) for name, value in counts["options"].items()]),
    ]
    return "\n".join(lines + [f"note: {note}" for note in counts["notes"]])


def _table(head: tuple[str, ...], rows: list[tuple]) -> list[str]:
    """Text to the left, numbers to the right, under their heads."""
    cells = [
        head,
        *(
            tuple("not counted" if v is None else f"{v:,}" if isinstance(v, int) else str(v) for v in row)
            for row in rows
        ),
    ]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    number = [all(not isinstance(row[j], str) for row in rows) for j in range(len(head))]
    return [
        "  ".join(c.rjust(w) if n else c.ljust(w) for c, w, n in zip(row, widths, number, strict=True)).rstrip()
        for row in cells
    ]
