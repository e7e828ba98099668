"""`mmgibbs validate`: its options, and what it prints."""

from __future__ import annotations

import argparse

from mmgibbs.options import (
    SEED,
    NumberRange,
    add_cluster,
    add_no_report,
    add_output,
    add_overwrite,
    add_quiet,
    add_set,
    collect_arguments,
    describe,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Validate an evaluation: how well does it predict records that it has not seen? It is solved by BLUP at given "
        "variances, or by sampling if traits are not normal or SNPs have effects. There are two methods, and both are "
        "used unless you choose one.",
        "kfold, cross-validation: the records are divided into folds; those of each fold are left "
        "out in turn, predicted from all others, and compared with the prediction, corrected for fixed effects. You "
        "get predictive ability (their correlation), accuracy (this correlation divided by the root of the "
        "heritability), dispersion (regression of record on prediction, expected 1) and bias (prediction minus "
        "record, expected 0), or scores of probabilities and counts; standard errors are over folds.",
        "lr, the LR method: the records of young animals are left out, and their breeding values without these "
        "records (partial data) are compared with those from all records (whole data): bias, dispersion, ratios of "
        "accuracies and of reliabilities, accuracy, with standard errors. Young are the animals with records that "
        "were born in the last birth year of which there are records (data.pedigree_columns.birth); choose an "
        "earlier year with --cutoff, or name the animals with --focal.",
    )
    parser.add_argument(
        "file", metavar="FILE", nargs="+",
        help="the analysis file (YAML), with a start for every variance (or see --variances); several analyses of the "
        "same records are validated in the same way and compared",
    )  # fmt: skip
    parser.add_argument(
        "--method", choices=["kfold", "lr", "both"], default="both",
        help="both needs birth years or --focal, as lr does (default: both)",
    )  # fmt: skip
    parser.add_argument(
        "--folds",
        type=NumberRange(2, is_whole=True),
        metavar="N",
        help="kfold: number of folds, 2 or more (default: 5)",
    )
    parser.add_argument(
        "--by",
        choices=["random", "family", "time", "column", "cell"],
        help="kfold: what is in a fold. random: animals at random; family: half-sib families by sire, each in one "
        "fold; time: the animals born in one of the last N years, predicted from the years before it; column: the "
        "records with one value of a column; cell: animals or lines in one environment, at random (default: random)",
    )
    parser.add_argument(
        "--column",
        metavar="NAME",
        help="with --by column: this column of the records; each of its values is a fold. With --by cell: the "
        "column of the environments (default: that of traits by environment)",
    )
    parser.add_argument(
        "--time", metavar="COLUMN",
        help="with --by time: a column of the records with numbers, such as the year of the record, in place of the "
        "birth year of the animal",
    )  # fmt: skip
    parser.add_argument(
        "--cutoff",
        type=NumberRange(),
        metavar="YEAR",
        help="lr: young are the animals with records that were born in this year or later (default: the last birth "
        "year of an animal with records)",
    )
    parser.add_argument(
        "--focal",
        metavar="FILE",
        help="lr: compare the animals of this file, one id per line, and leave out their records; with --cutoff the "
        "records of all animals born from that year on are left out, also of those that are not in the file",
    )
    parser.add_argument(
        "--variances",
        metavar="RUN",
        action="append",
        help="use the posterior means (or REML estimates) of a finished run in place of the starts in FILE; the word "
        "sample in place of a folder: sample the variances in every chain, without the records that are left out; "
        "with several FILEs give it once for all, or once for each",
    )
    parser.add_argument(
        "--seed",
        type=SEED,
        default=1,
        help="seed of folds, simulation and bootstrap (default: 1); chains use sampler.seed",
    )
    parser.add_argument(
        "--replicates",
        type=NumberRange(0, is_whole=True),
        metavar="N",
        help="lr by BLUP: number of sets of records simulated from the model, for expected values and standard errors "
        "(default: 100; each takes as long as one evaluation; 0: standard errors from a bootstrap of half-sib "
        "families, which are too small)",
    )
    add_cluster(
        parser,
        "evaluate folds and simulated records on {workers} with the same results; the work of a lost worker starts "
        "again on another",
    )
    add_output(
        parser,
        "the folder to write (default: the name of the run folder with -validation added; for several analyses the "
        "folder validations in the same place)",
    )
    add_overwrite(parser, "replace an existing validation")
    add_set(parser)
    add_quiet(parser, "print no progress")
    add_no_report(parser, "do not write validation.html")


def main(args: argparse.Namespace) -> None:
    from mmgibbs.validation.options import ValidationPlan
    from mmgibbs.validation.run import validate

    plan = ValidationPlan(**collect_arguments(ValidationPlan, args))
    validated = validate(args.file, plan=plan, **collect_arguments(validate, args))
    print(validated.as_text())
    print(f"written to {validated.directory}")


COMMANDS = {"validate": (add_arguments, main)}
