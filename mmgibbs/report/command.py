"""`mmgibbs report`: its options, and what it prints."""

from __future__ import annotations

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "runs", nargs="+", metavar="RUN", help="the folder of a finished run; several are compared side by side"
    )
    parser.add_argument(
        "--output",
        metavar="FILE",
        help="the page to write (default: RUN/report.html; for several runs ./comparison.html)",
    )
    parser.add_argument(
        "--top", type=int, default=20, metavar="N", help="number of animals listed for each trait (default: 20)"
    )


def main(args: argparse.Namespace) -> None:
    from mmgibbs.report.make import make_report

    print(f"written to {make_report(args.runs, args.output, args.top)}")


COMMANDS = {"report": (add_arguments, main)}
