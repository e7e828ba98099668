"""`mmgibbs schema`: its options, and what it prints."""

from __future__ import annotations

import argparse
from pathlib import Path

from mmgibbs.options import add_output


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_output(parser, "write the schema to this file (default: print it)", "FILE")


def main(args: argparse.Namespace) -> None:
    from mmgibbs.config.schema import as_json, write_schema_file

    if args.output is None:
        print(as_json(), end="")
        return
    write_schema_file(Path(args.output), "--output")
    print(f"written to {args.output}; the first line of an analysis file beside it that editors look for:")
    print(f"# yaml-language-server: $schema={Path(args.output).name}")


COMMANDS = {"schema": (add_arguments, main)}
