"""`mmgibbs run`, `mmgibbs check` and `mmgibbs predict`: their options, and what they print."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from typing import TYPE_CHECKING

from mmgibbs.machine.signals import end_like_ctrl_c
from mmgibbs.options import (
    AT_LEAST_ONE,
    BAD_INPUT,
    add_cluster,
    add_escape_formulas,
    add_genotypes,
    add_no_report,
    add_output,
    add_overwrite,
    add_quiet,
    add_set,
    add_verbose,
    collect_arguments,
    describe,
    read_genotypes,
)

if TYPE_CHECKING:
    from mmgibbs.runs.result import Result
    from mmgibbs.runs.several import Scenario


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    files = "the analysis file (YAML); if you give several, each is run, and one that fails does not stop the others"
    parser.add_argument("files", metavar="FILE", nargs="+", help=files)
    add_set(parser)
    add_output(
        parser,
        "the run folder, instead of output.directory; for several analyses the folder that contains their run "
        "folders, which are named after the files",
    )
    group = parser.add_mutually_exclusive_group()
    add_overwrite(group, "replace an existing run folder")
    group.add_argument(
        "--resume",
        action="store_true",
        help="continue from the checkpoints of a run that was stopped or killed, with the same draws as an "
        "uninterrupted run; without checkpoints the run starts from the beginning, and a finished run is left as it is",
    )
    group.add_argument(
        "--extend",
        type=AT_LEAST_ONE,
        default=0,
        metavar="SWEEPS",
        help="add this number of sweeps to each chain of a finished run",
    )
    add_cluster(
        parser,
        "run the chains on {workers} with the same draws; several analyses run at once; a chain whose worker is lost "
        "continues from its checkpoint",
    )
    group = parser.add_mutually_exclusive_group()
    add_quiet(group)
    add_verbose(group)
    add_no_report(parser, "do not write report.html (mmgibbs report RUN writes it later)")


def add_check_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the analysis file (YAML)")
    add_set(parser)


def run_command(args: argparse.Namespace) -> int:
    if len(args.files) > 1:
        return _run_several(args)
    from mmgibbs.runs.run import run

    # in quotation marks, or a folder's name could be taken for something else that YAML knows
    output = [] if args.output is None else [f"output.directory={json.dumps(args.output, ensure_ascii=False)}"]
    with end_like_ctrl_c():
        overrides = {"overrides": [*args.set, *output]}
        result = run(args.files[0], **collect_arguments(run, args) | overrides)
    _warn(args, result)
    return 0


def _run_several(args: argparse.Namespace) -> int:
    """BAD_INPUT where one of them could not be run."""
    from mmgibbs.runs.several import run_scenarios

    def done(scenario: Scenario) -> None:
        if scenario.error is not None:
            print(f"{scenario.name}: {scenario.error}", file=sys.stderr)
        elif scenario.result is not None:
            _warn(args, scenario.result, f"{scenario.name}: ")

    with end_like_ctrl_c():
        scenarios = run_scenarios(done=done, **collect_arguments(run_scenarios, args))
    good = [str(s.result.directory) for s in scenarios if s.result is not None]
    if not args.quiet:
        print(f"{len(good)} of {len(scenarios)} analyses done", file=sys.stderr)
        if len(good) > 1:
            print(f"compare them with: mmgibbs report {shlex.join(good)}", file=sys.stderr)
    return 0 if len(good) == len(scenarios) else BAD_INPUT


def _warn(args: argparse.Namespace, result: Result, name: str = "") -> None:
    """Print the warnings of a quiet run; other runs have printed them."""
    if args.quiet:
        from mmgibbs.report.findings import said_at_the_end

        for warning in said_at_the_end(result.summary, result.info):
            print(f"{name}{warning}", file=sys.stderr)


def check_command(args: argparse.Namespace) -> None:
    from mmgibbs.runs.check_text import counts_as_text, notes_as_text
    from mmgibbs.runs.run import check

    counts = check(args.file, args.set)
    print(counts_as_text(counts))
    for note in notes_as_text(counts):
        print(note, file=sys.stderr)


def add_predict_arguments(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Compute genomic breeding values of animals, which need not have been in the run: copies of the run's counted "
        "allele minus the run's centre, times its SNP effects. The file may have any format of data.genotypes. SNPs "
        "are matched by name and alleles; if the file counts the other allele, its genotypes are reversed. A missing "
        "genotype, and a SNP that is not in the file, count as the mean of the run. The deviation comes from the "
        "draws of the effects that the run kept (output.save_marker_draws).",
        "A run with relationship: genomic or single_step predicts new animals too: its data are read again, and values "
        "are those that an evaluation with these animals in it has, with their reliability.",
    )
    parser.add_argument(
        "run",
        metavar="RUN",
        help="the folder of a finished run with SNP effects (model.markers), or with relationship: genomic or "
        "single_step",
    )
    parser.add_argument("genotypes", metavar="FILE", help="the genotypes of the animals, such as young.bed")
    add_output(parser, "the table to write, .csv or .parquet (default: %(default)s)", "FILE", "gebv.csv")
    parser.add_argument(
        "--pedigree",
        metavar="FILE",
        help="for a run with genomic relationships: the pedigree with the new animals, in place of that of the run",
    )
    add_genotypes(parser)
    add_escape_formulas(parser)


def predict_command(args: argparse.Namespace) -> None:
    from mmgibbs.pedigree.tables import counted
    from mmgibbs.runs.predict import predict

    prediction = predict(**collect_arguments(predict, args) | {"genotypes": read_genotypes(args, args.genotypes)})
    for note in prediction.notes:
        print(note, file=sys.stderr)
    n_animals = prediction.values["level"].n_unique()
    print(f"written to {args.output}: genomic breeding values of {counted(n_animals, 'animal')}")


COMMANDS = {
    "run": (add_run_arguments, run_command),
    "check": (add_check_arguments, check_command),
    "predict": (add_predict_arguments, predict_command),
}
