"""`mmgibbs bench`: the speed of an analysis on this machine, as a table and as JSON."""

from __future__ import annotations

import argparse
import json
import platform
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

from mmgibbs.machine.files import replaced_file
from mmgibbs.machine.output_places import begins_with, check_output_file
from mmgibbs.options import AT_LEAST_ONE

JSON_HELP = "write the figures to FILE as well"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    kinds = parser.add_subparsers(dest="bench", required=True, metavar="KIND")
    p = kinds.add_parser(
        "evaluation", help="milliseconds per sweep of an analysis file, one chain, everything included"
    )
    p.add_argument("config", help="analysis file, e.g. configs/beef.yaml")
    p.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="override a value of the analysis file"
    )
    p.add_argument("--sweeps", type=AT_LEAST_ONE, default=2000, help="timed sweeps (default: %(default)s)")
    p.add_argument("--json", metavar="FILE", help=JSON_HELP)


def main(args: argparse.Namespace) -> int:
    from mmgibbs.runs.bench.evaluation import bench_evaluation

    if args.json is not None:
        check_output_file(
            Path(args.json),
            "figures of mmgibbs bench",
            lambda file: begins_with(file, (b'"processor"',)),
            inputs=(args.config,),
            place="--json",
        )
    show_figures(bench_evaluation(args), args.json)
    return 0


def show_figures(measured: Mapping[str, Any], file: str | None) -> None:
    """Print figures with the date and the machine, lists as tables, and write them to a JSON file if there is one."""
    from mmgibbs.runs.bench.evaluation import processor

    figures = {"date": date.today().isoformat(), "processor": processor(), "python": platform.python_version()}
    figures |= measured
    width = max(len(name) for name, value in figures.items() if not isinstance(value, list))
    for name, value in figures.items():
        if isinstance(value, list):
            print(f"\n{name}")
            print_table(value)
        else:
            print(f"{name:<{width}}  {as_text(value)}")
    if file:
        with replaced_file(Path(file)) as new:
            new.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


def as_text(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def print_table(rows: list[dict]) -> None:
    columns = list(dict.fromkeys(name for row in rows for name in row))
    cells = [columns, *([as_text(row.get(c, "")) for c in columns] for row in rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(columns))]
    for line in cells:
        print("  ".join(text.rjust(w) for text, w in zip(line, widths, strict=True)))


COMMANDS = {"bench": (add_arguments, main)}
