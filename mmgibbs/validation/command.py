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
        "Validate an evaluation, by BLUP at given variances, or by sampling if traits are not normal or SNPs have "
        "effects. k-fold cross-validation leaves out the records of one fold after another, predicts them, and "
        "compares "
        "the predictions with records corrected for fixed effects: correlation (predictive ability), accuracy (this "
        "correlation divided by the root of h2), dispersion (regression of record on prediction, expected 1) and bias "
        "(prediction minus record, expected 0), with standard errors over folds. The LR method leaves out the records "
        "of young animals and compares their breeding values from partial and from whole data: bias, "
        "dispersion, ratio of accuracies, ratio of reliabilities, accuracy, with standard errors.",
        100,
    )
    parser.add_argument(
        "file", metavar="FILE", nargs="+",
        help="the analysis file (YAML), with a start for every variance; several analyses of the same records are "
        "validated in the same way and compared",
    )  # fmt: skip
    parser.add_argument("--method", choices=["kfold", "lr", "both"], default="both", help="default: both")
    parser.add_argument("--folds", type=int, metavar="N", help="folds of cross-validation (default: 5)")
    parser.add_argument(
        "--by",
        choices=["random", "family", "time", "column"],
        help="what a fold is: animals at random, half-sib families kept together by sire, one of the last N birth "
        "years, predicted from the years before it, or a value of a column of the records (default: random)",
    )
    parser.add_argument("--column", metavar="NAME", help="with --by column: the name of the column")
    parser.add_argument(
        "--time", metavar="COLUMN", help="with --by time: a column of the records instead of the birth year"
    )
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
        help="use the posterior means of a finished run (default: the starts in FILE); the word sample: sample them "
        "in every chain, without the records that are left out; with several FILEs give it once for all, or once "
        "for each",
    )
    parser.add_argument("--seed", type=int, default=1, help="seed of folds and simulation (default: 1)")
    parser.add_argument(
        "--replicates",
        type=int,
        metavar="N",
        help="LR: number of sets of records simulated from the model, for expected values and standard errors "
        "(default: "
        "100; each takes as long as one evaluation; 0: a bootstrap of half-sib families, whose standard errors are too "
        "small)",
    )
    parser.add_argument(
        "--cluster",
        metavar="ADDRESS",
        help="evaluate folds and simulated records on the workers of a Dask scheduler, tcp://HOST:PORT, or on N "
        "workers of this machine, local:N, with the same results; the work of a lost worker starts again on another",
    )
    parser.add_argument(
        "--output", metavar="DIR", help="the folder to write (default: that of the run, with -validation)"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace an existing validation")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="use VALUE instead of what FILE says"
    )
    parser.add_argument("--quiet", action="store_true", help="print no progress")
    parser.add_argument("--no-report", action="store_true", help="do not write validation.html")


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
