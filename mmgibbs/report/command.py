"""`mmgibbs report` and `mmgibbs figures`: their options, and what they print."""

from __future__ import annotations

import argparse
import shlex

from mmgibbs.options import add_output, add_top
from mmgibbs.report.make import FORMATS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "runs", nargs="+", metavar="RUN", help="the folder of a finished run; several are compared side by side"
    )
    add_output(parser, "the page to write (default: RUN/report.html; for several runs ./comparison.html)", "FILE")
    add_top(parser, "number of animals listed for each trait")


def main(args: argparse.Namespace) -> None:
    from mmgibbs.report.make import make_report

    print(f"written to {make_report(args.runs, args.output, args.top)}")


def add_figures_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="the folder of a finished run")
    parser.add_argument(
        "--format", choices=FORMATS, default=FORMATS[0], help=f"of the pictures (default: {FORMATS[0]})"
    )
    parser.add_argument(
        "--only",
        action="append",
        metavar="NAME",
        help="write this picture only; NAME is that of a file, or a pattern such as 'trace-*'; may be repeated",
    )
    add_output(parser, "the folder to write to; pictures of the same names are replaced (default: RUN/figures)")


def main_figures(args: argparse.Namespace) -> None:
    from mmgibbs.report.make import check_libraries

    check_libraries("figures", f"mmgibbs figures {shlex.quote(args.run)}")
    from mmgibbs.report.saved_figures import INDEX, save_figures

    paths = save_figures(args.run, args.output, args.format, args.only)
    for path in paths:
        print(f"wrote {path}")
    print(f"beside each its data as csv; captions: {paths[0].parent / INDEX}")


COMMANDS = {"report": (add_arguments, main), "figures": (add_figures_arguments, main_figures)}
