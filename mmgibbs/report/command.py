"""`mmgibbs report`: its options, and what it prints."""

from __future__ import annotations

import argparse

from mmgibbs.options import add_output, add_top


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "runs", nargs="+", metavar="RUN", help="the folder of a finished run; several are compared side by side"
    )
    add_output(parser, "the page to write (default: RUN/report.html; for several runs ./comparison.html)", "FILE")
    add_top(parser, "number of animals listed for each trait")


def main(args: argparse.Namespace) -> None:
    from mmgibbs.report.make import make_report

    print(f"written to {make_report(args.runs, args.output, args.top)}")


COMMANDS = {"report": (add_arguments, main)}
