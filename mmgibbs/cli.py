"""The command line: its parser and its exit codes. A command is a module with its options, and a line in `_COMMANDS`.

Exit code 0: done. 2: the input cannot be used, one message on stderr. 1: a bug, with its traceback. 130: Ctrl-C.
143: SIGTERM. 129: SIGHUP. A run that was sampling then has kept its state.
"""

from __future__ import annotations

import argparse
import errno
import os
import re
import shlex
import sys
import textwrap
import traceback
from contextlib import suppress
from importlib import import_module
from typing import Any, NamedTuple

import mmgibbs
from mmgibbs.errors import Stopped, as_a_command
from mmgibbs.options import BAD_INPUT, COLUMNS
from mmgibbs.pedigree.errors import PedigreeError, TableError

DONE, BUG, STOPPED, PIPE_CLOSED = 0, 1, 130, 141
_KEY = re.compile(r"[^\W\d][\w.\- ]*=(?!.*\.ya?ml$)")  # KEY=VALUE, no analysis file in a folder h2=0.3
# The machine's refusals that are no mistakes of this program: no permission, no space.
_REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))


class Command(NamedTuple):
    module: str  # of mmgibbs, whose COMMANDS have the options and what is printed
    help: str
    example: str


_COMMANDS = {
    "init": Command(
        "draft.command",
        "look at tables and write a first analysis file, with comments and alternatives",
        "mmgibbs init phenotypes.csv --pedigree pedigree.csv\n"
        "  mmgibbs init records.txt --pedigree ped.txt --traits weight,height --output weights.yaml\n"
        "  mmgibbs init records.csv --pedigree ped.csv --formula 'weight ~ sex + (1 | animal)'",
    ),
    "open": Command(
        "local_page.command",
        "open a page in the browser that drafts, checks and runs the analyses of a folder",
        "mmgibbs open data/beef",
    ),
    "run": Command(
        "runs.command",
        "run an analysis, or several, and write a run folder for each",
        "mmgibbs run analysis.yaml --set sampler.samples=2000 --overwrite\n"
        "  mmgibbs run analysis.yaml --resume\n"
        "  mmgibbs run analysis.yaml --set 'sampler.stop={rhat: 1.01, ess: 400, mcse_ebv: 0.05}'\n"
        "      stops once R-hat and effective sample sizes of all variances are good enough, and the\n"
        "      Monte Carlo error of every breeding value is at most 0.05 of its posterior standard deviation\n"
        "  mmgibbs run ignore.yaml account.yaml --output runs/inbreeding --cluster tcp://10.0.0.5:8786\n"
        "      two analyses at once on the workers of a cluster, into runs/inbreeding/ignore and .../account",
    ),
    "check": Command(
        "runs.command",
        "read and check an analysis and its data, and count what a run would have; sample nothing",
        "mmgibbs check analysis.yaml",
    ),
    "report": Command(
        "report.command",
        "write the report page of a finished run, or a page that compares several",
        "mmgibbs report runs/beef runs/beef-ignored --output comparison.html",
    ),
    "figures": Command(
        "report.command",
        "write every picture of the report page as a file for a paper, with its data as csv",
        "mmgibbs figures runs/beef --format svg\n"
        "  mmgibbs figures runs/beef --only 'genetic-trend-*' --only 'posterior-density-of-h2-*'",
    ),
    "compare": Command(
        "report.comparison.command",
        "compare two runs, or the solutions of two programs: correlations, ranks, largest differences",
        "mmgibbs compare runs/beef runs/beef-ignored\n"
        "  mmgibbs compare runs/beef blupf90/solutions --output comparison",
    ),
    "predict": Command(
        "runs.command",
        "compute genomic breeding values of more animals, from the SNP effects of a finished run",
        "mmgibbs predict runs/genomic young.bed --output young.csv",
    ),
    "pedigree": Command(
        "population.command",
        "describe a pedigree: completeness, inbreeding, effective size, founders, generation intervals",
        "mmgibbs pedigree pedigree.csv --output pedigree\n"
        "  mmgibbs pedigree pedigree.csv --genotypes chips.bed --output pedigree",
    ),
    "gwas": Command(
        "association.command",
        "test every SNP in the mixed model of a finished run, and show them along the genome",
        "mmgibbs gwas runs/genomic-reml genotypes.bed\n  mmgibbs gwas runs/gblup --loco --windows",
    ),
    "finemap": Command(
        "association.command",
        "give the SNPs of the regions that gwas found probabilities and credible sets",
        "mmgibbs finemap runs/gblup-gwas",
    ),
    "contributions": Command(
        "population.contributions.command",
        "plan matings: optimum contributions of candidates at a limit of coancestry, and who is mated with whom",
        "mmgibbs contributions runs/beef candidates.csv --matings 200 --max-females 1\n"
        "  mmgibbs contributions runs/beef candidates.csv --matings 200 --index milk=1,fertility=0.5 --rate 0.005",
    ),
    "schema": Command(
        "config.command",
        "print the JSON schema of the analysis file, with which editors complete keys and mark mistakes",
        "mmgibbs schema --output mmgibbs.schema.json",
    ),
    "simulate": Command(
        "simulation.command",
        "write simulated records with known true values: weights, scores, a disease, longevity or counts",
        "mmgibbs simulate data/beef --animals 5000 --seed 1\n"
        "  mmgibbs simulate data/calving --traits calving_ease --categories 1,2,3 --shares 0.6,0.3,0.1\n"
        "  mmgibbs simulate data/chips --animals 20000 --snps 50000 --qtl 300",
    ),
    "bench": Command(
        "runs.bench.command",
        "measure sweeps per second and memory on this machine",
        "mmgibbs bench evaluation configs/beef.yaml --sweeps 1000",
    ),
    "validate": Command(
        "validation.command",
        "validate an evaluation by cross-validation, and by comparing partial with whole data (LR method)",
        "mmgibbs validate configs/blup.yaml --by family",
    ),
    "export": Command(
        "exchange.command",
        "write a finished run as the files of another program",
        "mmgibbs export --format blupf90 runs/beef",
    ),
    "import-blupf90": Command(
        "exchange.command",
        "turn a parameter file of renumf90 into an analysis file, and say what could not be carried over",
        "mmgibbs import-blupf90 renum.par --output analysis.yaml",
    ),
}
_DESCRIPTION = """\
Breeding values with their reliability, and variance components with their uncertainty,
from pedigree and phenotype tables."""
_EXAMPLES = """\
examples:
  mmgibbs init records.csv --pedigree ped.csv  write a first analysis file for your own tables
  mmgibbs simulate data/beef                   write example data and their analysis file
  mmgibbs check data/beef/analysis.yaml        read and check everything, sample nothing
  mmgibbs run data/beef/analysis.yaml          sample, and write the run folder
  mmgibbs COMMAND --help                       all options of a command
"""


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    open_closed_streams()
    with as_a_command():
        return _run_command(arguments)


def open_closed_streams() -> None:
    """Standard streams that were closed by who started the program lead nowhere from here on.

    Python has None in their places, and the system would give their numbers to the next files that are opened: what a
    library writes to its standard error would go to a result.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # it gets the lowest free number, this one
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115  as long as the program


def _run_command(arguments: list[str]) -> int:
    try:
        code = _dispatch(arguments)
        sys.stdout.flush()
        return code
    except (mmgibbs.MmgibbsError, PedigreeError, TableError) as error:
        return _refuse(str(error))
    except Stopped as stopped:
        _say(f"\n{stopped}")
        if stopped.kept:
            _say(f"continue with: mmgibbs {shlex.join(resuming(arguments))}")
        return 128 + stopped.signal
    except KeyboardInterrupt:
        _say("\nstopped")
        return STOPPED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or closing stdout complains once more
        return PIPE_CLOSED
    except MemoryError as error:
        return _refuse(f"not enough memory: {error}")
    except Exception as error:  # noqa: BLE001  the last resort: whatever else comes here is a bug
        if isinstance(error, OSError) and error.errno in _REFUSED:
            return _refuse(f"{error.filename or 'output'}: {error.strerror}")
        _say(
            f"{traceback.format_exc()}\nThis is a bug in mmgibbs {mmgibbs.__version__}. "
            "Please report it with the lines above and your analysis file."
        )
        return BUG


def _dispatch(arguments: list[str]) -> int:
    try:
        args, unknown = _parser(arguments).parse_known_args(arguments)
        keys = []
        if getattr(args, "set", None):
            loose = [u for u in unknown if not u.startswith("-") and "=" in u]
            keys = list(dict.fromkeys(_follows_set(arguments) + loose))
        if unknown or keys:  # said by the command itself, with its own options
            options_text = " ".join(f"--set {shlex.quote(key)}" for key in keys)
            said = keys + [u for u in unknown if u.startswith("-")] if keys else unknown
            hint = f"; needed one --set for each key: {options_text}" if keys else ""
            args.parser.error(f"unrecognized arguments: {shlex.join(said)}{hint}")
    except SystemExit as end:  # argparse has spoken: help and version 0, a wrong command line 2
        return end.code if isinstance(end.code, int) else DONE
    return args.command(args) or DONE


def _follows_set(arguments: list[str]) -> list[str]:
    """Second and later KEY=VALUE behind one --set, wherever it stands: a command with files takes them for files."""
    positions, value, behind = [], False, False  # the next one is the value of --set; it comes behind that value
    for argument in arguments:
        if behind and _KEY.match(argument) and not os.path.exists(argument):
            positions.append(argument)
            continue
        behind = value or argument.startswith("--set=")
        value = argument == "--set"
    return positions


def _refuse(message: str) -> int:
    _say(message)
    return BAD_INPUT


def _say(text: str) -> None:
    """Print to stderr. A terminal that is gone, or a log on a full disk, changes no exit code."""
    with suppress(OSError):
        print(text, file=sys.stderr, flush=True)


def _parser(arguments: list[str]) -> argparse.ArgumentParser:
    layout: dict[str, Any] = {"formatter_class": argparse.RawDescriptionHelpFormatter, "allow_abbrev": False}
    parser = argparse.ArgumentParser("mmgibbs", description=_DESCRIPTION, epilog=_EXAMPLES, **layout)
    parser.add_argument("--version", action="version", version=f"mmgibbs {mmgibbs.__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    chosen = next((a for a in arguments if not a.startswith("-")), None)
    for name, of in _COMMANDS.items():
        description = textwrap.fill(f"{of.help[0].upper()}{of.help[1:]}.", COLUMNS)
        command = commands.add_parser(
            name, help=of.help, description=description, epilog=f"example:\n  {of.example}", **layout
        )
        command.set_defaults(parser=command)
        if name == chosen:  # the others need not be imported
            add_arguments, main = import_module(f"mmgibbs.{of.module}").COMMANDS[name]
            add_arguments(command)
            command.set_defaults(command=main)
    return parser


def resuming(arguments: list[str]) -> list[str]:
    """The command line that continues the run of this one."""
    kept, rest = [], iter(arguments)
    for argument in rest:
        if argument == "--extend":
            next(rest)
        elif argument not in ("--overwrite", "--resume") and not argument.startswith("--extend="):
            kept.append(argument)
    return [*kept, "--resume"]
