"""`mmgibbs compare`: its options, and what it prints."""

from __future__ import annotations

import argparse

from mmgibbs.options import add_escape_formulas, add_output, add_top, collect_arguments, describe


def add_arguments(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Compare two runs, or a run with the solutions of another program: correlations, regressions, changes of rank "
        "and the largest differences with their ids; for two runs also the parameters, and for two runs with "
        "method reml a likelihood-ratio test. Each of A and B is a run folder, the file `solutions` of a BLUPF90 "
        "program (ids from levels.csv or renaddNN.ped in the same folder), or a table (csv, tsv, parquet) with a "
        "column of ids, called id, animal or level, and columns of numbers: one called ebv, solution or the like, or "
        "one for each trait, called as in the other. Effects and traits belong together by name; of files without "
        "names, by the ids that they have in common. Ids may be spelled in two ways (007 and 7) where one of each side "
        "is meant. Fixed class effects are compared as differences from one level unless both runs have the same "
        "reference levels. Where nothing can be compared the exit status is 2.",
    )
    parser.add_argument("a", metavar="A", help="run folder, BLUPF90 solutions or table")
    parser.add_argument("b", metavar="B", help="what A is compared with")
    add_output(parser, "write the comparison as text and csv into this folder")
    parser.add_argument(
        "--levels", metavar="FILE", help="table with the columns effect, level and id, for a BLUPF90 file without ids"
    )
    add_top(parser, "how many of the highest are looked at: how many of these both have")
    add_escape_formulas(parser)
    parser.add_argument("--page", metavar="FILE", help="also write a page about two runs, like mmgibbs report A B")


def main(args: argparse.Namespace) -> None:
    from mmgibbs.report.comparison.make import compare

    made = compare(**collect_arguments(compare, args))
    print(made.text)
    if made.directory is not None:
        print(f"\nwritten to {args.output}")
    if made.page is not None:
        print(f"written to {made.page}")


COMMANDS = {"compare": (add_arguments, main)}
