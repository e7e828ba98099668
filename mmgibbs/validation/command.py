"""`mmgibbs validate`: its options, and what it prints."""

from __future__ import annotations

import argparse
import textwrap
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mmgibbs.validation.compare import Comparison
    from mmgibbs.validation.found import Validation


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = textwrap.fill(
        "Validate an evaluation, by BLUP at given variances, and by sampling where traits are not normal or SNPs have "
        "effects. k-fold cross-validation leaves out the records of "
        "one fold "
        "after the other, predicts them, and holds the predictions against records corrected for fixed effects: "
        "correlation (predictive ability), accuracy (it divided by the root of h2), dispersion (regression of "
        "record on "
        "prediction, expected 1) and bias (prediction less record, expected 0), with standard errors over folds. "
        "The LR "
        "method leaves out the records of young animals and compares their breeding values from partial and from whole "
        "data: bias, dispersion, ratio of accuracies, ratio of reliabilities, accuracy, with standard errors.",
        100,
    )
    parser.add_argument(
        "file", metavar="FILE", nargs="+",
        help="the analysis file (YAML), with a start for every variance; several of the same records are validated "
        "alike and compared",
    )  # fmt: skip
    parser.add_argument("--method", choices=["kfold", "lr", "both"], default="both", help="default: both")
    parser.add_argument("--folds", type=int, metavar="N", help="folds of cross-validation (default: 5)")
    parser.add_argument(
        "--by",
        choices=["random", "family", "time", "column"],
        help="what a fold is: animals at random, half-sib families by sire kept together, one of the last N birth "
        "years, predicted from the years before it, or the value of a column of the records (default: random)",
    )
    parser.add_argument("--column", metavar="NAME", help="with --by column: which one")
    parser.add_argument("--time", metavar="COLUMN", help="with --by time: a column of the records, not the birth year")
    parser.add_argument(
        "--cutoff",
        type=float,
        metavar="YEAR",
        help="LR: the records of animals born from this year on are left out (default: the last year with records)",
    )
    parser.add_argument(
        "--focal",
        metavar="FILE",
        help="LR: ids, one per line, of the animals to compare (default: those whose records are left out; without "
        "--cutoff, their records are the ones left out)",
    )
    parser.add_argument(
        "--variances",
        metavar="RUN",
        action="append",
        help="take the posterior means of a finished run (default: the starts in FILE); the word sample: sample them "
        "in every chain, without the records that are left out; with several FILEs once for all, or once for each",
    )
    parser.add_argument("--seed", type=int, default=1, help="of folds and simulation (default: 1)")
    parser.add_argument(
        "--replicates",
        type=int,
        metavar="N",
        help="LR: sets of records simulated from the model, for what it expects and for standard errors (default: 100, "
        "each the work of one more evaluation; 0: a bootstrap of half-sib families, quick and too small)",
    )
    parser.add_argument(
        "--cluster",
        metavar="ADDRESS",
        help="evaluate folds and simulated records on the workers of a Dask scheduler, tcp://HOST:PORT, or on N "
        "workers of "
        "this machine, local:N, to the same numbers; what a lost worker had is begun again on another one",
    )
    parser.add_argument("--output", metavar="DIR", help="where to write (default: the run's folder, with -validation)")
    parser.add_argument("--overwrite", action="store_true", help="replace a validation that is there already")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="put VALUE in place of what FILE says"
    )
    parser.add_argument("--quiet", action="store_true", help="say nothing while working")
    parser.add_argument("--no-report", action="store_true", help="write no validation.html")


def main(args: argparse.Namespace) -> None:
    from mmgibbs.validation.make import validate
    from mmgibbs.validation.plan import Plan
    from mmgibbs.validation.several import validate_several

    variances = args.variances or [None]
    plan = Plan(
        args.method, args.folds, args.by, args.time, args.cutoff, args.focal, variances[-1], args.seed,
        args.replicates, args.column,
    )  # fmt: skip
    where: dict[str, Any] = {"output": args.output, "overwrite": args.overwrite, "cluster": args.cluster}
    where |= {"progress": not args.quiet, "report": not args.no_report}
    if len(args.file) == 1:
        found: Validation | Comparison = validate(args.file[0], plan, args.set, **where)
    else:
        found = validate_several(args.file, plan, args.set, variances=variances, **where)
    print(found.as_text())
    print(f"written to {found.directory}")


COMMANDS = {"validate": (add_arguments, main)}
