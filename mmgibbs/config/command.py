"""`mmgibbs schema`: its options, and what it prints."""

from __future__ import annotations

import argparse
from pathlib import Path

from mmgibbs.errors import ConfigError
from mmgibbs.options import add_output


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_output(parser, "write the schema to this file (default: print it)", "FILE")


def main(args: argparse.Namespace) -> None:
    from mmgibbs.config.schema import as_json

    if args.output is None:
        print(as_json(), end="")
        return
    try:
        Path(args.output).write_text(as_json(), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"schema: cannot write '{args.output}': {error.strerror}") from None
    print(f"written to {args.output}; the first line of an analysis file beside it that editors look for:")
    print(f"# yaml-language-server: $schema={Path(args.output).name}")


COMMANDS = {"schema": (add_arguments, main)}
